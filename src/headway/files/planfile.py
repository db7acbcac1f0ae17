"""Plan files: bytes of YAML or JSON to a plan and everything that is wrong with it, line by line.

Takes bytes, not paths: reading the file is the caller's. Whatever the bytes are, the answer is a value: a draft
as far as it could be read, and its problems. Which keys exist is said in plan_keys.py; what a plan may say, in
core/check.py.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import NamedTuple

from headway.core.check import Problem, check_plan
from headway.core.plan import PlanSpec
from headway.files.plain_plan import read_plain
from headway.files.tree import START, Unreadable, by_line, syntax_problem

Check = Callable[[PlanSpec], list[Problem]]

_NUMBERED = r'"version"\s*:\s*-?\d'  # 1.10 is kept as written, which values without lines do not show


class ParsedPlan(NamedTuple):
    """A plan as far as it could be read, and all its problems in the order of their lines."""

    plan: PlanSpec | None
    problems: list[Problem]


def parse_plan(text: bytes, *, name: str, check: Check = check_plan) -> ParsedPlan:
    """Read a plan file; its name says whether it is JSON. Any bytes are accepted, none raise.

    `check` says what is wrong with a plan: with the plan alone, unless the caller knows others.
    """
    try:
        return _parse(text, is_json=name.lower().endswith(".json"), check=check)
    except Unreadable as error:
        return ParsedPlan(None, [syntax_problem(error.message, error.line, error.hint)])


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


def _parse(data: bytes, *, is_json: bool, check: Check) -> ParsedPlan:
    plain = read_plain(data) if is_json or data.lstrip().startswith(b"{") else None
    if plain is not None and not check(plain):
        return ParsedPlan(plain, [])
    text = _decode(data)
    if is_json or text.lstrip().startswith("{"):
        from headway.files.json_tree import NotJson  # for what is not plain, or has problems

        try:
            return _parse_json(text, check, lines=plain is not None)
        except NotJson as error:
            if is_json:
                raise Unreadable(f"this is not JSON: {error.message}", error.line) from None
    from headway.files.plan_lines import read_tree
    from headway.files.yaml_tree import read_yaml  # a parser of its own, for those who write YAML

    document = read_yaml(text)
    plan, problems = read_tree(document.root, check)
    if document.second is not None:
        extra = syntax_problem("a second document starts here", document.second, "keep one plan in one file")
        problems = by_line([*problems, extra])
    return ParsedPlan(plan, problems)


def _parse_json(text: str, check: Check, *, lines: bool) -> ParsedPlan:
    """Without lines first; with lines only when there is something to say about them."""
    from headway.files.json_tree import locate_json, read_json
    from headway.files.plan_lines import read_tree

    document = None if lines else read_json(text)
    if document is not None and document.plain and re.search(_NUMBERED, text) is None:
        parsed = ParsedPlan(*read_tree(document.root, check))
        if not parsed.problems:
            return parsed
    return ParsedPlan(*read_tree(locate_json(text), check))
