"""Conditions such as `report.status == "pass"`, about values that somebody else has read. Evaluates; runs no code.

The grammar is a small part of Python's: names, `.key`, `[0]`, `len(x)`, literals, comparisons, `in`, `and`, `or` and
`not`.
"""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any

LONGEST = 1000
DEEPEST = 100
"""So many parts may stand in one another."""

_COMPARE: dict[type[ast.cmpop], Callable[[Any, Any], bool]] = {
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
    ast.In: lambda a, b: a in b,
    ast.NotIn: lambda a, b: a not in b,
}
_WORDS = {"true": True, "false": False, "null": None}


class ConditionError(ValueError):
    """A condition that cannot be read, or that asks for what is not there."""


@lru_cache(maxsize=256)
def parse(text: str) -> ast.expr:
    """The condition as a tree, if it is one."""
    if len(text) > LONGEST:
        raise ConditionError(f"a condition has at most {LONGEST} characters")
    try:
        tree = ast.parse(text.strip(), mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        raise ConditionError(f'{text!r} is not a condition such as report.status == "pass"') from None
    _allow(tree)
    _refuse_depth(tree)
    return tree


def names(text: str) -> set[str]:
    """The names that a condition begins with."""
    return {node.id for node in ast.walk(parse(text)) if isinstance(node, ast.Name)} - {"len", *_WORDS}


def holds(text: str, values: Mapping[str, Any]) -> bool:
    """Whether the condition is true of these values."""
    return bool(_value(parse(text), values))


def _allow(tree: ast.expr) -> None:
    allowed = (
        ast.BoolOp, ast.boolop, ast.UnaryOp, ast.Not, ast.USub, ast.Compare, ast.cmpop, ast.Name, ast.Load,
        ast.Attribute, ast.Subscript, ast.Constant, ast.List, ast.Tuple,
    )  # fmt: skip
    for node in ast.walk(tree):
        is_len = isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "len"
        if isinstance(node, ast.Call) and is_len and len(node.args) == 1 and not node.keywords:
            continue
        if not isinstance(node, allowed) or isinstance(node, (ast.Is, ast.IsNot)):
            raise ConditionError(f"{ast.unparse(node)!r} cannot stand in a condition")
        if isinstance(node, ast.Attribute) and node.attr.startswith("_"):
            raise ConditionError(f"{ast.unparse(node)!r} cannot stand in a condition")


def _refuse_depth(tree: ast.expr) -> None:
    layer: list[ast.AST] = [tree]
    for _ in range(DEEPEST):
        layer = [inner for node in layer for inner in ast.iter_child_nodes(node)]
    if layer:
        raise ConditionError(f"a condition has at most {DEEPEST} parts in one another")


def _value(node: ast.expr, values: Mapping[str, Any]) -> Any:
    match node:
        case ast.Constant(value=value):
            return value
        case ast.Name(id=name):
            if name in values:
                return values[name]
            if name in _WORDS:
                return _WORDS[name]
            raise ConditionError(f"there is no {name}; there is {', '.join(values) or 'nothing'}")
        case ast.List(elts=items) | ast.Tuple(elts=items):
            return [_value(item, values) for item in items]
        case ast.Attribute(value=inner, attr=key):
            return _inside(_value(inner, values), key, node)
        case ast.Subscript(value=inner, slice=key):
            return _inside(_value(inner, values), _value(key, values), node)
        case ast.BoolOp(op=ast.And(), values=parts):
            return all(_value(part, values) for part in parts)
        case ast.BoolOp(values=parts):
            return any(_value(part, values) for part in parts)
        case ast.UnaryOp(op=ast.Not(), operand=inner):
            return not _value(inner, values)
        case ast.UnaryOp(operand=inner):
            return _tried(node, operator.neg, _value(inner, values))
        case ast.Call(args=[inner]):
            return _tried(node, len, _value(inner, values))
        case ast.Compare(left=left, ops=ops, comparators=rest):
            before = _value(left, values)
            for op, right in zip(ops, rest, strict=True):
                after = _value(right, values)
                if not _tried(node, _COMPARE[type(op)], before, after):
                    return False
                before = after
            return True
        case _:
            raise ConditionError(f"{ast.unparse(node)!r} cannot stand in a condition")


def _inside(value: Any, key: Any, node: ast.expr) -> Any:
    try:
        return value[key]
    except (KeyError, IndexError, TypeError):
        raise ConditionError(f"there is no {ast.unparse(node)}: what is before it is {_kind(value)}") from None


def _kind(value: Any) -> str:
    match value:
        case dict():
            return f"a mapping with {', '.join(map(str, value))}" if value else "an empty mapping"
        case list():
            return f"a list of {len(value)}"
        case str():
            return "text, and no JSON"
        case _:
            return "null" if value is None else str(value).lower()


def _tried(node: ast.expr, function: Callable[..., Any], *values: Any) -> Any:
    try:
        return function(*values)
    except TypeError as error:
        raise ConditionError(f"{ast.unparse(node)}: {error}") from None
