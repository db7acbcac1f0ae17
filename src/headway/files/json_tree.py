"""JSON text to values: fast without lines, or slower with them when there is something to report.

Knows syntax, never what a key means. `read_json` says when only the slower way can tell the whole truth.
"""

from __future__ import annotations

import json
import re
from typing import NamedTuple

from headway.files.tree import DEEPEST, Map, Seq, Unreadable, refuse_unstorable

_DIGITS = 40
_TOO_LARGE = 2**64
_ESCAPED = re.compile(r"\\u(?:0000|[dD][89a-fA-F])")
_TOKEN = re.compile(r'"[^"\\]*(?:\\.[^"\\]*)*"|[{}\[\]]|[^\s{}\[\]",:]+', re.DOTALL)
_WORDS: dict[str, object] = {"true": True, "false": False, "null": None}


class JsonDocument(NamedTuple):
    """The values of a text; `plain` is false when it holds what only `locate_json` shows."""

    root: object
    plain: bool


class NotJson(Exception):
    """The text is not JSON: why, and on which line."""

    def __init__(self, message: str, line: int) -> None:
        super().__init__(message)
        self.message = message
        self.line = line


def read_json(text: str) -> JsonDocument:
    """The values of a JSON text without lines, or NotJson."""
    plain = _ESCAPED.search(text) is None

    def pairs(items: list[tuple[str, object]]) -> dict[str, object]:
        nonlocal plain
        found = dict(items)
        plain = plain and len(found) == len(items)
        return found

    try:
        return JsonDocument(json.loads(text, object_pairs_hook=pairs, parse_int=_integer), plain)
    except json.JSONDecodeError as error:
        raise NotJson(error.msg, error.lineno) from None
    except RecursionError:
        return JsonDocument(None, plain=False)


def _integer(digits: str) -> int:
    return int(digits) if len(digits) <= _DIGITS else _TOO_LARGE


def locate_json(text: str) -> object:
    """The tree of a text that `read_json` could read, with its lines, or Unreadable."""
    root = Seq(1)
    stack: list[Map | Seq] = [root]
    keys: list[tuple[str, int] | None] = [None]
    line, position = 1, 0
    for match in _TOKEN.finditer(text):
        line += text.count("\n", position, match.start())
        position, token = match.start(), match[0]
        if token in "}]":
            stack.pop()
            keys.pop()
            continue
        if token[0] == '"' and isinstance(stack[-1], Map) and keys[-1] is None:
            keys[-1] = (_text(token, line), line)
            continue
        value = _value(token, line)
        _put(stack[-1], keys[-1], value, token, line)
        keys[-1] = None
        if isinstance(value, (Map, Seq)):
            stack.append(value)
            keys.append(None)
        if len(stack) > DEEPEST + 1:
            raise Unreadable(f"nested deeper than {DEEPEST} levels", line)
    return root[0]


def _put(into: Map | Seq, key: tuple[str, int] | None, value: object, token: str, line: int) -> None:
    """Add a value to the container that is open."""
    if isinstance(into, Seq):
        into.put(value, line)
    elif key is not None:
        into.put(key[0], value, key[1])
        if isinstance(value, (int, float)):
            into.written[key[0]] = token


def _value(token: str, line: int) -> object:
    if token == "{":
        return Map(line)
    if token == "[":
        return Seq(line)
    if token[0] == '"':
        return _text(token, line)
    return _WORDS[token] if token in _WORDS else json.loads(token, parse_int=_integer)


def _text(token: str, line: int) -> str:
    return refuse_unstorable(json.loads(token), line)
