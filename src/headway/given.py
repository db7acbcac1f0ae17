"""What Python code gives for the keys of a plan, as the plan keeps it. Knows values; never files."""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Iterable, Mapping
from typing import Any, TypeVar

import msgspec

from headway.core.paths import normalise
from headway.core.plan import ArtifactSpec, Phase, Pipeline, PlanSpec, Retry, Settings
from headway.errors import UsageError

V = TypeVar("V", ArtifactSpec, Phase, Pipeline, PlanSpec, Settings)
Paths = str | os.PathLike[str] | Iterable[str | os.PathLike[str]]
Templates = str | os.PathLike[str] | Mapping[str, str] | None
LISTS = frozenset({"requires", "inputs", "sources", "requires_outputs", "repeat", "env", "acceptance", "files", "tags"})
LISTS |= {"constraints", "informed_by", "notify"}
_EXPANDED = frozenset(
    ("optional", "reads", "after", "pipeline", "unit", "phase", "iteration", "file", "item", "gathers")
)
STRANGE: Mapping[str, frozenset[str]] = {
    "artifact": _EXPANDED | {"outputs"},
    "phase": _EXPANDED | {"produces", "modifies"},
    "plan": frozenset({"pipelines"}),
}
"""Names of what is no key there: what units expand to has them, or the other of the two."""


_TEXTS = frozenset({str})
_LISTED = frozenset({list, tuple})


def roles_of(given: Templates) -> dict[str, str]:
    """Templates by what they are for; one alone is that of the phase."""
    if isinstance(given, (str, os.PathLike)):
        return {"phase": os.fspath(given)}
    return {role: os.fspath(path) for role, path in (given or {}).items()}


def said_of(what: str, name: str, keys: Mapping[str, Any]) -> dict[str, Any]:
    """Keys as a plan file may give them, too: one text for a list, a number for a version, gates by name."""
    if not STRANGE[what].isdisjoint(keys):
        raise UsageError(
            f"{what.capitalize()} {name} has keys that are none of its own",
            facts={"keys": ", ".join(key for key in keys if key in STRANGE[what])},
            hint="artifacts have produces and modifies, phases have outputs, and plan.pipeline adds phases",
            code="plan.key",
        )
    found: dict[str, Any] = {}
    for key, value in keys.items():
        if isinstance(value, str):
            found[key] = (value,) if key in LISTS else value
        elif key == "version" and isinstance(value, (int, float)):
            found[key] = str(value)
        elif key == "gates" and isinstance(value, Mapping):
            found[key] = [_gate(gate, said) for gate, said in value.items()]
        elif key in ("metadata", "vars") and not is_plain(value):
            raise UsageError(
                f"{what.capitalize()} {name} has values in {key} that JSON has no form for",
                hint="give texts, finite numbers, lists and mappings by name",
                code="plan.value",
            )
        else:
            found[key] = tuple(value) if isinstance(value, list) else value
    return found


def _gate(name: str, said: Any) -> Any:
    """A gate under its name; one with a command is a check."""
    if said is not None and not isinstance(said, Mapping):
        return said
    said = dict(said or {})
    by = {"by": (said["by"],)} if isinstance(said.get("by"), str) else {}
    return {"name": name, "kind": "check" if said.get("run") else "review", **said, **by}


def units_of(given: str | Iterable[str] | Mapping[str, Any]) -> dict[str, Any]:
    """Units by name, one or several, or where they come from."""
    if isinstance(given, Mapping):
        return dict(given)
    return {"names": [given] if isinstance(given, str) else list(given)}


def converted(what: str, name: str, given: Mapping[str, Any], kind: type[V]) -> V:
    """What was given, checked and typed."""
    try:
        return msgspec.convert(given, kind)
    except msgspec.ValidationError as error:
        raise UsageError(
            f"{what.capitalize()} {name} cannot be read",
            facts={"reason": error},
            hint=_meant_key(given, kind) or "docs/plan-file.md lists the keys",
            code="plan.key",
        ) from None  # it says all that there is to say


def _meant_key(given: Mapping[str, Any], kind: type[V]) -> str:
    """What the first key that there is not was meant to be, as a question; or ""."""
    from headway.core.nearest import Nearest

    known = kind.__struct_encode_fields__
    return next((Nearest(known).hint(key) for key in given if key not in known), "")


def with_values(function: Callable[..., Any], args: dict[str, Any]) -> Callable[..., Any]:
    """The function itself, or, where JSON would make something else of arguments, one that gets them as given."""
    odd = {name: value for name, value in args.items() if not _is_the_same_in_json(value)}
    if not odd:
        return function
    from functools import wraps

    @wraps(function)
    def call(**given: Any) -> Any:
        return function(**{**given, **odd})

    vars(call)["given"] = odd
    return call


def plain_artifact(id: str, make: str, requires: Any, produces: Any, sources: Any) -> ArtifactSpec | None:
    """An artifact that says what most say, in texts and lists of them; None if it has to be looked at more closely."""
    if type(id) is not str or type(make) is not str or not _are_texts(requires):
        return None
    if not (type(produces) is str or _are_texts(produces)) or not _are_texts(sources):
        return None
    return ArtifactSpec(
        id=id,
        make=make,
        requires=tuple(sorted(set(requires))) if requires else (),
        produces=(normalise(produces),) if type(produces) is str else tuple(map(normalise, produces)),
        sources=tuple(map(normalise, sources)) if sources else (),
    )


def _are_texts(given: Any) -> bool:
    return type(given) in _LISTED and (not given or _TEXTS.issuperset(map(type, given)))


def paths_of(given: Paths) -> tuple[str, ...]:
    """One path or several, in their one spelling."""
    if isinstance(given, str):
        return (normalise(given),)
    if not isinstance(given, list) and isinstance(given, os.PathLike):  # the second question takes longer
        return (normalise(os.fspath(given)),)
    return tuple([normalise(os.fspath(item)) for item in given])


def retry_of(given: Retry | int | None) -> Retry | None:
    """How often something is tried; a number is one of attempts."""
    return Retry(attempts=given) if isinstance(given, int) else given


def bytes_of(given: int | str | None) -> int | None:
    """A size in bytes."""
    if not isinstance(given, str):
        return given
    from headway.core.check import size_of

    found = size_of(given)
    if found is None:
        raise UsageError(f"{given!r} is no size", hint="write it as 256MiB, 1GB or a number of bytes", code="plan.type")
    return found


def encodable(artifact_id: str, args: Mapping[str, Any]) -> dict[str, Any]:
    """Arguments by value: what has no JSON form is recorded by its digest, and given to the function as it is."""
    from headway.core.fingerprint import NotEncodable
    from headway.core.fingerprint import digest as value_digest

    found: dict[str, Any] = {}
    for name, value in args.items():
        try:
            found[name] = msgspec.to_builtins(value) if is_plain(value) else {"digest": value_digest(value)}
        except (NotEncodable, TypeError, msgspec.MsgspecError) as error:
            raise UsageError(
                f"The argument {name} of {artifact_id} cannot be compared",
                facts={"reason": error},
                hint="pass plain values (text, numbers, lists, dataclasses), or a path that the function opens",
                code="recipe.args",
            ) from error
    return found


def _is_the_same_in_json(value: Any) -> bool:
    """As `_is_plain`, and nothing is lost by it: of a tuple JSON makes a list."""
    if type(value) is list:
        return all(map(_is_the_same_in_json, value))
    if type(value) is dict:
        return all(type(k) is str and _is_the_same_in_json(v) for k, v in value.items())
    return type(value) in (type(None), bool, int, float, str) and is_plain(value)


def is_plain(value: Any) -> bool:
    """Whether JSON has a form for it."""
    if isinstance(value, float):
        return math.isfinite(value)
    if value is None or isinstance(value, (bool, int, str)):
        return True
    if isinstance(value, (list, tuple)):
        return all(is_plain(item) for item in value)
    return isinstance(value, dict) and all(isinstance(k, str) and is_plain(v) for k, v in value.items())
