"""Plan files: bytes of YAML or JSON to a plan and everything that is wrong with it, line by line.

Takes bytes, not paths: reading the file is the caller's. Whatever the bytes are, the answer is a value: a draft
as far as it could be read, and its problems. Which keys exist is said in plan_keys.py; what a plan may say, in
core/check.py.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from typing import NamedTuple

import msgspec

from headway.core.check import Problem, check_plan
from headway.core.paths import normalise
from headway.core.plan import PlanSpec
from headway.files.json_tree import NotJson, locate_json, read_json
from headway.files.plan_keys import plan_schema
from headway.files.plan_reader import Notes, Place, kind_of, on_lines, read_plan
from headway.files.tree import Map, Seq, Unreadable, key_line

__all__ = ["ParsedPlan", "parse_plan", "plan_schema"]

START = "start with goal: and artifacts:"
PLACES_TRIED = 10

Check = Callable[[PlanSpec], list[Problem]]

_NUMBERED = re.compile(r'"version"\s*:\s*-?\d')  # 1.10 is kept as written, which values without lines do not show


class ParsedPlan(NamedTuple):
    """A plan as far as it could be read, and all its problems in the order of their lines."""

    plan: PlanSpec | None
    problems: list[Problem]


def parse_plan(text: bytes, *, name: str, check: Check = check_plan) -> ParsedPlan:
    """Read a plan file; its name says whether it is JSON. Any bytes are accepted, none raise.

    `check` says what is wrong with a plan: with the plan alone, unless the caller knows others.
    """
    try:
        return _parse(_decode(text), is_json=name.lower().endswith(".json"), check=check)
    except Unreadable as error:
        return ParsedPlan(None, [_syntax(error.message, error.line, error.hint)])


def _decode(text: bytes) -> str:
    try:
        decoded = text.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = text.count(b"\n", 0, error.start) + 1
        raise Unreadable("the file is not UTF-8", line, "save it as UTF-8") from None
    if (nul := decoded.find("\0")) >= 0:
        raise Unreadable("the file holds a NUL byte", decoded.count("\n", 0, nul) + 1, "remove it")
    if not decoded.strip():
        raise Unreadable("the file is empty", 1, START)
    return decoded


def _parse(text: str, *, is_json: bool, check: Check) -> ParsedPlan:
    if is_json or text.lstrip().startswith("{"):
        try:
            return _parse_json(text, check)
        except NotJson as error:
            if is_json:
                raise Unreadable(f"this is not JSON: {error.message}", error.line) from None
    from headway.files.yaml_tree import read_yaml  # a parser of its own, for those who write YAML

    document = read_yaml(text)
    parsed = _read(document.root, check)
    if document.second is None:
        return parsed
    extra = _syntax("a second document starts here", document.second, "keep one plan in one file")
    return ParsedPlan(parsed.plan, _sorted([*parsed.problems, extra]))


def _parse_json(text: str, check: Check) -> ParsedPlan:
    """Without lines first; with lines only when there is something to say about them."""
    document = read_json(text)
    if document.plain and _NUMBERED.search(text) is None:
        parsed = _read(document.root, check)
        if not parsed.problems:
            return parsed
    return _read(locate_json(text), check)


def _syntax(message: str, line: int, hint: str = "") -> Problem:
    return Problem(code="plan.syntax", message=message, line=line, hint=hint)


def _sorted(problems: Iterable[Problem]) -> list[Problem]:
    return sorted(problems, key=lambda problem: problem.line or 1)


def _read(root: object, check: Check) -> ParsedPlan:
    if root is None:
        raise Unreadable("the file is empty", 1, START)
    if not isinstance(root, dict):
        return ParsedPlan(None, [_syntax(f"a plan file is a mapping, but this is {kind_of(root)}", 1, START)])
    notes = Notes()
    plan = read_plan(root, notes)
    checked = [p for p in check(plan) if (p.artifact, p.key) not in notes.broken]
    lines = _Lines(root, notes.places)
    return ParsedPlan(plan, _sorted([*notes.problems, *map(lines.locate, checked)]))


class _Lines:
    """Finds the line of a problem that was found in the plan and not in the file."""

    def __init__(self, root: object, places: Mapping[str, list[Place]]) -> None:
        self._root = Place(root, 1)
        self._places = places
        self._repeats: dict[str, int] = {}
        self._items: dict[int, dict[str, int]] = {}

    def locate(self, problem: Problem) -> Problem:
        """The same problem with its line."""
        places = self._places.get(problem.artifact, [self._root]) if problem.artifact else [self._root]
        if problem.code == "plan.duplicate":
            return self._locate_repeat(problem, places)
        tried = places[:PLACES_TRIED]
        exact = (self._item_line(place.given, problem) for place in tried)
        keyed = (self._key_line(place.given, problem) for place in tried)
        line = next(filter(None, (*exact, *keyed)), places[0].line)
        return msgspec.structs.replace(problem, line=line or 1)

    def _locate_repeat(self, problem: Problem, places: list[Place]) -> Problem:
        """An id that a list gives again: this time, and the first time."""
        count = self._repeats[problem.artifact] = self._repeats.get(problem.artifact, 0) + 1
        first, again = places[0].line, places[min(count, len(places) - 1)].line
        message = f"{problem.message}, {on_lines(first, again)}"
        return msgspec.structs.replace(problem, message=message, line=again)

    def _key_line(self, given: object, problem: Problem) -> int | None:
        """The line of a key, or of the key it is nested in."""
        head, _, rest = problem.key.partition(".")
        inner = given.get(head) if isinstance(given, Map) else None
        return key_line(inner, rest) or key_line(given, head) or key_line(given, f"{head}_file")

    def _item_line(self, given: object, problem: Problem) -> int | None:
        """The line of one item of a list."""
        items = given.get(problem.key) if isinstance(given, Map) else None
        return self._lines_of(items).get(problem.value) if isinstance(items, Seq) else None

    def _lines_of(self, items: Seq) -> dict[str, int]:
        """Lines by item, and by the normal form of the path that an item may be; made once for each list."""
        found = self._items.get(id(items))
        if found is None:
            texts = [(item, line) for item, line in zip(items, items.lines, strict=True) if isinstance(item, str)]
            found = {normalise(item): line for item, line in texts} | dict(texts)
            self._items[id(items)] = found
        return found
