"""A parsed document whose containers remember their lines. Knows syntax, never what a key means.

Readers of YAML and JSON give the same tree: text, numbers, booleans, None, `Map`, `Seq` and, for what has no
place in JSON, `Odd`. Walks are loops, depth is bounded, and aliases are counted before they are followed.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from headway.core.check import Problem

START = "start with goal: and artifacts:"
DEEPEST = 64
LOWEST, HIGHEST = -(2**63), 2**64 - 1


class Map(dict[str, object]):
    """A mapping with the line of every key, and what it lost: keys given twice and keys that are not text."""

    __slots__ = ("duplicates", "line", "lines", "odd", "written")

    def __init__(self, line: int) -> None:
        super().__init__()
        self.line = line
        self.lines: dict[str, int] = {}
        self.written: dict[str, str] = {}
        self.duplicates: list[tuple[str, int]] = []
        self.odd: list[tuple[str, int]] = []

    def put(self, key: str, value: object, line: int) -> None:
        """Add a pair; of two equal keys the first counts."""
        if key in self.lines:
            self.duplicates.append((key, line))
        else:
            self[key] = value
            self.lines[key] = line


class Seq(list[object]):
    """A list with the line of every item."""

    __slots__ = ("line", "lines")

    def __init__(self, line: int) -> None:
        super().__init__()
        self.line = line
        self.lines: list[int] = []

    def put(self, value: object, line: int) -> None:
        """Add an item."""
        self.append(value)
        self.lines.append(line)


class Odd(NamedTuple):
    """A value that JSON does not have, such as a date: what it is, and how it was written."""

    kind: str
    text: str


class Unreadable(Exception):
    """The text is not a document; nothing of it can be used."""

    def __init__(self, message: str, line: int, hint: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.line = line
        self.hint = hint


def key_line(container: object, key: str) -> int | None:
    """The line on which a key stands, where lines are known."""
    return container.lines.get(key) if isinstance(container, Map) else None


def item_line(container: object, index: int) -> int | None:
    """The line on which an item stands, where lines are known."""
    return container.lines[index] if isinstance(container, Seq) else None


def refuse_unstorable(text: str, line: int) -> str:
    """The text itself, unless it has characters that neither files nor commands can hold."""
    if "\0" in text:
        raise Unreadable("a text holds a NUL character", line, "remove it")
    if not text.isascii() and any("\ud800" <= char <= "\udfff" for char in text):
        raise Unreadable("a text holds half of a surrogate pair, which is no character", line, "remove it")
    return text


def syntax_problem(message: str, line: int, hint: str = "") -> Problem:
    """What is wrong with a document that cannot be read as one."""
    return Problem(code="plan.syntax", message=message, line=line, hint=hint)


def by_line(problems: Iterable[Problem]) -> list[Problem]:
    """Problems in the order of their lines."""
    return sorted(problems, key=lambda problem: problem.line or 1)
