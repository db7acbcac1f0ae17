"""Paths into JSON, such as `scenes[*].id`: what they match, and the thing around it. Knows values; never files."""

from __future__ import annotations

import math
import re
from typing import Any, NamedTuple

_STEP = r"\.?([A-Za-z_][\w-]*)|\[(\*|\d{1,9})\]"  # compiled when a pipeline names items


class Match(NamedTuple):
    """A value that a path leads to, and the mapping that it stands in."""

    value: Any
    around: dict[str, Any] | None


class PathError(ValueError):
    """A path that cannot be read, or that leads nowhere."""


def steps(path: str) -> list[str]:
    """The steps of a path: names, `*`, or numbers in brackets."""
    found: list[str] = []
    position, step = 0, re.compile(_STEP)
    while position < len(path):
        match = step.match(path, position)
        if match is None or (position == 0 and path.startswith(".")):
            raise PathError(f"{path!r} is not a path such as scenes[*].id")
        found.append(match[1] if match[1] is not None else f"[{match[2]}]")
        position = match.end()
    if not found:
        raise PathError("the path is empty")
    return found


def find(value: Any, path: str) -> list[Match]:
    """Everything that a path matches, in order; a step that leads nowhere is an error that names it."""
    matches = [Match(value, None)]
    walked = ""
    for step in steps(path):
        walked += step if step.startswith("[") or not walked else f".{step}"
        matches = [inner for match in matches for inner in _step(match.value, step, walked)]
    return matches


def _step(value: Any, step: str, walked: str) -> list[Match]:
    if not step.startswith("["):
        if not isinstance(value, dict):
            raise PathError(f"{walked} leads nowhere: what is before it is no mapping")
        if step not in value:
            raise PathError(f"{walked} leads nowhere: there is no {step}")
        return [Match(value[step], value)]
    if not isinstance(value, list):
        raise PathError(f"{walked} leads nowhere: what is before it is no list")
    if step == "[*]":
        return [Match(item, None) for item in value]
    number = int(step[1:-1])
    if number >= len(value):
        raise PathError(f"{walked} leads nowhere: there are {len(value)}")
    return [Match(value[number], None)]


def beyond_json(value: Any, walked: str = "") -> str:
    """The first number in plain values that JSON has no form for, and its path: `nan at scores[2].mean`."""
    if isinstance(value, float):
        return "" if math.isfinite(value) else f"{value} at {walked}" if walked else str(value)
    if isinstance(value, dict):
        inner = (beyond_json(item, f"{walked}.{key}" if walked else str(key)) for key, item in value.items())
    elif isinstance(value, (list, tuple)):
        inner = (beyond_json(item, f"{walked}[{number}]") for number, item in enumerate(value))
    else:
        return ""
    return next(filter(None, inner), "")
