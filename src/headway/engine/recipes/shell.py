"""The text of a shell command: where a value may stand in it, and how it is written there so that it stays a value.

Follows quotes, comments, `$(…)`, `${…}`, `case`, backticks and here-documents as far as they decide that; runs nothing.
Where that does not tell, or shells differ, a value is refused.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable
from typing import NamedTuple

from headway.errors import UsageError

_HERE = re.compile(r"<<(?!<)(?P<tabs>-?)[ \t]*(?P<word>(?:\\.|'[^'\n]*'|\"[^\"\n]*\"|[^\s;&|<>()'\"\\])+)")
"""The beginning of a here-document, and the word that ends it."""

_LESS = re.compile("<+")
_BEFORE_A_WORD = frozenset(" \t\n;&|()`")
_BEFORE_A_COMMAND = re.compile(r"(?:^|[;&|(){`!\n]|\b(?:then|do|else|elif|if|while|until|in))\s*$")
_CASE = re.compile(r"(case|esac)(?![^\s;&|()`<>])")
_ALIKE = re.compile(r"'[^'\"}`$\\\n]*'")
"""Within `${…}` in double quotes: whether these quote or are themselves, what is behind them is the same."""

_VARIABLE = re.compile(r"(?<!\\)(?:\\\\)*\$[A-Za-z_]\w*$")
"""A variable of the shell, whose name goes on in whatever is written behind it."""

_NUMBER = re.compile(r"[+-]?(?:0[xX][0-9a-fA-F]+|[0-9]+)")
_OPEN = frozenset({"'", '"', "`", "${", "$'"})
"""What a command cannot end in: then it was misread, or is none."""


class Frame(NamedTuple):
    """What a piece of a command stands in: code, quotes, a comment or a here-document, with the word that ends it.

    `kind`: `'`, `$'`, `"`, `${` (in double quotes or a here-document), `#`, `<<` (in which the shell replaces) or `<<'`
    (in which it does not); of code, how it began: by nothing, `(`, `((`, `case` or a backtick. `unclear`: what is in it
    cannot be told, or depends on the shell.
    """

    kind: str
    end: str = ""
    tabs: bool = False
    unclear: bool = False

    @property
    def is_code(self) -> bool:
        return self.kind in ("", "(", "((", "case", "`")


Place = tuple[Frame, ...]
"""Where something stands, from the outside in."""

_CODE = Frame("")
_ESCAPED = Frame("\\")
_GLUED = Frame("$")
_LOST = Frame("", unclear=True)


def places(command: str, values: Iterable[tuple[int, int]]) -> dict[int, Place]:
    """Where these spans of a command stand, by their beginnings; they are in order, and no part of the shell's text."""
    reading, found, at = _Reading(command), dict[int, Place](), 0
    for start, end in values:
        while at < start:
            at = reading.step(at)
        after = (_ESCAPED,) if reading.escaped == start else ()
        if _is_replaced(reading.stack[-1]) and _VARIABLE.search(command, max(start - 200, 0), start):
            after = (_GLUED,)
        found[start], at = (*reading.stack, *after), end
    while at < len(command):
        at = reading.step(at)
    if any(frame.kind in _OPEN for frame in reading.stack):
        return {start: (_LOST, *place) for start, place in found.items()}
    return found


def _is_replaced(frame: Frame) -> bool:
    """Whether the shell puts values of its variables there."""
    return frame.is_code or frame.kind in ('"', "${", "<<")


class _Reading:
    """How far a command was read."""

    def __init__(self, command: str) -> None:
        self.stack = [_CODE]
        self.escaped = -1
        self._command = command
        self._due: list[Frame] = []

    def step(self, at: int) -> int:
        """Read on from here; where to go on."""
        character, top = self._command[at], self.stack[-1]
        inside = next((n for n, frame in enumerate(self.stack) if frame.kind == "`"), 0)
        if character == "`" and inside:
            while self.stack.pop().kind != "`":
                pass  # it ends whatever was begun inside
        elif character == "\\" and inside and self._command[at + 1 : at + 2] in ("\\", "`", '"'):
            self.stack[inside] = Frame("`", unclear=True)  # it is taken away before the rest is read
            return at + 2
        elif character == "\n":
            return self._line(at + 1)
        elif top.kind in ("'", "$'"):
            if character == "'":
                self.stack.pop()
            elif character == "\\" and top.kind == "$'":
                self.stack[0] = _LOST
        elif top.kind in ("<<'", "#"):
            pass
        elif character == "\\":
            self.escaped = at + 1
            return at + 2
        elif character == "`":
            self.stack.append(Frame("`"))
        elif top.is_code:
            return self._code(at, character)
        else:
            return self._replaced(at, character)
        return at + 1

    def _replaced(self, at: int, character: str) -> int:
        """In double quotes, or in a here-document in which the shell replaces."""
        before, top = self._command[at - 1 : at], self.stack[-1]
        if character == '"' and top.kind == '"':
            self.stack.pop()
        elif character == "(" and before == "$":
            self.stack.append(Frame("((" if self._command[at + 1 : at + 2] == "(" else "("))
        elif character == "{" and before == "$":
            self.stack.append(Frame("${", unclear=top.kind == "<<" or top.unclear))
        elif top.kind == "${":
            if character == "}":
                self.stack.pop()
            elif character == '"':
                self.stack.append(Frame('"', unclear=True))
            elif character == "'":
                alike = _ALIKE.match(self._command, at)
                self.stack[0] = self.stack[0] if alike else _LOST
                return alike.end() if alike else at + 1
        return at + 1

    def _code(self, at: int, character: str) -> int:
        before, top = self._command[at - 1 : at], self.stack[-1]
        if character in "'\"":
            self.stack.append(Frame("$'", unclear=True) if f"{before}{character}" == "$'" else Frame(character))
        elif character in "ce" and top.kind in ("(", "case") and (word := self._case(at)):
            if word == "case":
                self.stack.append(Frame("case"))
            elif top.kind == "case":
                self.stack.pop()
            return at + len(word)
        elif character == "(":
            counts = top.kind == "((" or (before == "$" and self._command[at + 1 : at + 2] == "(")
            self.stack.append(Frame("((" if counts else "("))
        elif character == ")" and top.kind.startswith("("):
            self.stack.pop()
        elif character == "#" and (not before or before in _BEFORE_A_WORD):
            self.stack.append(Frame("#"))
        elif character == "<" and top.kind != "((" and (here := _HERE.match(self._command, at)):
            word = here["word"]
            end = re.sub(r"['\"\\]", "", word)
            self._due.append(Frame("<<" if end == word else "<<'", end, bool(here["tabs"])))
            return here.end()
        elif less := _LESS.match(self._command, at):
            return less.end()
        return at + 1

    def _case(self, at: int) -> str:
        """`case` or `esac`, where one of them is a word of the shell: the brackets of their patterns close nothing."""
        word = _CASE.match(self._command, at)
        return word[0] if word and _BEFORE_A_COMMAND.search(self._command[max(at - 200, 0) : at]) else ""

    def _line(self, at: int) -> int:
        """A new line begins here: a comment is over; a here-document begins, goes on, or ends."""
        if self.stack[-1].kind == "#":
            self.stack.pop()
        if self._due and self.stack[-1].is_code:
            self.stack += reversed(self._due)
            self._due = []
        top = self.stack[-1]
        if top.kind.startswith("<<"):
            over = self._command.find("\n", at)
            line = self._command[at : over if over >= 0 else None]
            if (line.lstrip("\t") if top.tabs else line) == top.end:
                self.stack.pop()
                return at + len(line)
        return at


def quoted(text: str, place: Place, name: str = "a value") -> str:
    """A value, written so that it is itself in this place of a command, and nothing else. `name`: what stands there."""
    top = place[-1]
    if any(frame.unclear for frame in place) or (top.kind == "((" and not _NUMBER.fullmatch(text)):
        raise UsageError(
            f"Where {name} stands in the command, it would not certainly stay text",
            hint=f'put it into a variable first, v={name}, and write "$v" there',
            code="command.place",
        )
    if top is _GLUED:
        place, top = place[:-1], place[-2]
        if re.match(r"\w", text, re.ASCII) and not top.is_code and top.kind != '"':
            raise UsageError(
                f"Where {name} stands in the command, the shell would take it for a part of the variable before it",
                hint="put the variable into braces: ${…}",
                code="command.place",
            )
        between = "''" if top.is_code else '""'  # where its name ends
        return between + quoted(text, place, name) if re.match(r"\w", text, re.ASCII) else quoted(text, place, name)
    if top is _ESCAPED:
        return "\n" + quoted(text, place[:-1], name)  # a backslash at the end of a line is nothing
    if top.kind == "'":
        text = text.replace("'", "'\\''")
    elif top.kind in ('"', "${"):
        text = re.sub(r'[\\"$`}]' if top.kind == "${" else r'[\\"$`]', r"\\\g<0>", text)
    elif top.kind == "#":
        text = text.replace("\n", " ")
    elif top.kind.startswith("<<"):
        if any(line.lstrip("\t") == top.end for line in text.split("\n")):
            raise UsageError(
                f"A value holds a line {top.end}, which would end the here-document that it stands in",
                hint=f"end the here-document with another word than {top.end}",
                code="command.here",
            )
        text = re.sub(r"[\\$`]", r"\\\g<0>", text) if top.kind == "<<" else text
    else:
        text = shlex.quote(text)
    for frame in place:
        if frame.kind == "`":
            text = re.sub(r"[\\`]", r"\\\g<0>", text)
    return text
