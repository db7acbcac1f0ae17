"""A tree of a plan file to a draft of a plan, noting everything that does not fit.

Knows the table of keys and the tree; never bytes or syntax. What is unusable is left out of the draft, so that
a draft can always be kept. What a plan as a whole may say is asked in core/check.py.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from headway.core.check import Problem, size_of
from headway.core.nearest import Nearest
from headway.core.paths import normalise
from headway.core.plan import (
    ArtifactSpec,
    Gate,
    Limits,
    Phase,
    Pipeline,
    PlanSpec,
    Profile,
    Replanning,
    Retry,
    Role,
    Settings,
    Transitions,
    Units,
)
from headway.files.plan_keys import (
    ARTIFACT_KEYS,
    LISTED_ARTIFACT_KEYS,
    PHASE_KEYS,
    PLAN_KEYS,
    SETTINGS_KEYS,
    Key,
    Kind,
    Table,
)
from headway.files.tree import DEEPEST, HIGHEST, LOWEST, Map, Odd, item_line, key_line

SECTIONS: Mapping[str, Callable[..., Any]] = {
    "retry": Retry,
    "profile": Profile,
    "replan": Replanning,
    "integrates": dict,
    "next": Transitions,
    "limits": Limits,
}
QUOTE = "write it in quotes"

_UNUSABLE: Any = object()
_TEXTS = frozenset({str})


class Place(NamedTuple):
    """Where an artifact stands in the file: its mapping and its line."""

    given: object
    line: int | None


class Spot(NamedTuple):
    """The value being read: of which artifact, under which key, on which line, and how it was written."""

    artifact: str
    key: str
    line: int | None
    written: str = ""

    @property
    def label(self) -> str:
        """How a message names it."""
        return f"{self.owner}: {self.key}" if self.artifact else self.key

    @property
    def owner(self) -> str:
        """Whose key it is: an artifact's, a pipeline's (`t:`), a phase's (`t:write`), or the plan's own."""
        pipeline, is_in_one, phase = self.artifact.partition(":")
        if is_in_one:
            return f"pipeline {pipeline}, phase {phase}" if phase else f"pipeline {pipeline}"
        return f"artifact {self.artifact}" if self.artifact else "the plan"


class Notes:
    """What was noticed while reading: problems, keys without a usable value, and where artifacts stand, if known."""

    def __init__(self) -> None:
        self.problems: list[Problem] = []
        self.broken: set[tuple[str, str]] = set()
        self.places: dict[str, list[Place]] = {}
        self._nearest: dict[int, Nearest] = {}

    def note(self, code: str, message: str, spot: Spot, *, line: int | None = None, hint: str = "") -> None:
        """A problem at the spot, or at a line inside it."""
        self.problems.append(
            Problem(code=code, message=message, artifact=spot.artifact, key=spot.key, hint=hint, line=line or spot.line)
        )

    def wrong(self, value: object, key: Key, spot: Spot) -> Any:
        """A value that is not what its key expects."""
        is_scalar = not isinstance(value, (str, list, dict))
        hint = QUOTE if is_scalar and key.kind in {"text", "version"} else ""
        self.note("plan.type", f"{spot.label} must be {key.expects}, not {kind_of(value)}", spot, hint=hint)
        return _UNUSABLE

    def unknown(self, name: str, spot: Spot, table: Table) -> None:
        """A key that the table does not have."""
        hint = self._nearest.setdefault(id(table), Nearest(table)).hint(name)
        if name == "id" and table is ARTIFACT_KEYS:
            hint = "its id is the key that it stands under"
        elif table is PHASE_KEYS and name in ("produces", "produces_file"):
            hint = "the outputs of a phase have names: outputs: {text: 'out/{unit}.txt'}"
        self.note("plan.key", f"{spot.owner} has the unknown key {spot.key}", spot, hint=hint)

    def lost_keys(self, given: object, artifact: str, within: str, noun: str = "") -> None:
        """Keys that a mapping gave twice, and keys that are not text."""
        if not isinstance(given, Map):
            return
        for name, line in given.duplicates:
            spot = Spot(artifact, within + name, line)
            message = f"{noun or spot.label}{name if noun else ''} is given twice, {on_lines(given.lines[name], line)}"
            self.note("plan.duplicate", message, spot, hint="keep one of the two")
        for name, line in given.odd:
            spot = Spot(artifact, within + name, line)
            self.note("plan.type", f"the key {spot.label or '[…]'} must be text", spot, hint=QUOTE)


def on_lines(first: int | None, again: int | None) -> str:
    """Where something stands twice."""
    return f"both times on line {first}" if first == again else f"on lines {first} and {again}"


def kind_of(value: object) -> str:
    """What a value is, for messages."""
    if isinstance(value, Odd):
        return value.kind
    if value is None:
        return "nothing"
    if isinstance(value, bool):
        return "true or false"
    if isinstance(value, (int, float)):
        return "a number"
    if isinstance(value, str):
        return "text"
    return "a list" if isinstance(value, list) else "a mapping"


def read_plan(root: Mapping[str, object], notes: Notes) -> PlanSpec:
    """The draft that a mapping describes."""
    found = _read_keys(notes, root, PLAN_KEYS)
    settings = Settings(**{name: found.pop(name) for name in SETTINGS_KEYS if name in found})
    return PlanSpec(**({"goal": ""} | found), settings=settings)


def _read_keys(
    notes: Notes, given: Mapping[str, object], table: Table, artifact: str = "", within: str = ""
) -> dict[str, Any]:
    """The values of a mapping whose keys the table knows, by field; a key with nothing is a key not given."""
    notes.lost_keys(given, artifact, within)
    found: dict[str, Any] = {}
    for name, value in given.items():
        key = table.get(name)
        if key is not None and (field := key.field or name) not in found:
            kind = key.kind  # a text, or texts, where that is what is expected: nothing is to be said of it
            if kind in ("text", "list") and isinstance(value, str):
                found[field] = value if kind == "text" else key.tidy((value,))
                continue
            if kind == "list" and isinstance(value, list) and _TEXTS.issuperset(map(type, value)):
                found[field] = key.tidy(value)
                continue
        written = given.written.get(name, "") if isinstance(given, Map) else ""
        spot = Spot(artifact, within + name, key_line(given, name), written)
        if key is None:
            notes.unknown(name, spot, table)
        elif value is not None:
            _keep(notes, found, key.field or name, _READ[key.kind](notes, value, key, spot), spot)
    return found


def _keep(notes: Notes, found: dict[str, Any], field: str, value: object, spot: Spot) -> None:
    if value is _UNUSABLE:
        notes.broken.add((spot.artifact, spot.key))
    elif field in found:
        notes.note("plan.duplicate", f"{spot.label} says {field} a second time", spot, hint="keep one of the two")
    else:
        found[field] = value


def _read_text(notes: Notes, value: object, key: Key, spot: Spot) -> Any:
    return value if isinstance(value, str) else notes.wrong(value, key, spot)


def _read_version(notes: Notes, value: object, key: Key, spot: Spot) -> Any:
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        return spot.written or str(value)
    return _read_text(notes, value, key, spot)


def _read_list(notes: Notes, value: object, key: Key, spot: Spot) -> Any:
    if isinstance(value, str):
        return key.tidy([value])
    if not isinstance(value, list):
        return notes.wrong(value, key, spot)
    kept = [item for item in value if isinstance(item, str)]
    if len(kept) < len(value):
        _note_items(notes, value, key, spot)
    return key.tidy(kept)


def _note_items(notes: Notes, items: Sequence[object], key: Key, spot: Spot) -> None:
    for index, item in enumerate(items):
        if not isinstance(item, str):
            message = f"{spot.label} must be {key.expects}, but item {index + 1} is {kind_of(item)}"
            hint = "" if isinstance(item, (list, dict)) else QUOTE
            notes.note("plan.type", message, spot, line=item_line(items, index), hint=hint)


def _read_mapping(notes: Notes, value: object, key: Key, spot: Spot) -> Any:
    return _json_value(notes, value, spot, 1) if isinstance(value, dict) else notes.wrong(value, key, spot)


def _json_value(notes: Notes, value: object, spot: Spot, depth: int) -> Any:
    """The value without its lines; what JSON cannot hold is noted and becomes null."""
    if value is None or isinstance(value, (str, bool)):
        return value
    if not isinstance(value, (dict, list)):
        return _number(notes, value, spot, QUOTE)
    if depth > DEEPEST:
        notes.note("plan.value", f"{spot.label} is nested deeper than {DEEPEST} levels", spot)
        return None
    if isinstance(value, list):
        return [_json_value(notes, v, _item_spot(spot, value, i), depth + 1) for i, v in enumerate(value)]
    notes.lost_keys(value, spot.artifact, f"{spot.key}.")
    return {k: _json_value(notes, v, _key_spot(spot, value, k), depth + 1) for k, v in value.items()}


def _item_spot(spot: Spot, items: Sequence[object], index: int) -> Spot:
    return Spot(spot.artifact, spot.key, item_line(items, index) or spot.line)


def _key_spot(spot: Spot, given: object, name: str) -> Spot:
    return Spot(spot.artifact, f"{spot.key}.{name}", key_line(given, name) or spot.line)


def _number(notes: Notes, value: object, spot: Spot, hint: str = "") -> Any:
    """A number that JSON can hold exactly, or None."""
    if not isinstance(value, (int, float)):
        why = f"must be a JSON value, not {kind_of(value)}"
    elif isinstance(value, float) and not math.isfinite(value):
        why = "must be a finite number"
    elif isinstance(value, int) and not LOWEST <= value <= HIGHEST:
        why = "is a number of more than 64 bits"
    else:
        return value
    notes.note("plan.value", f"{spot.label} {why}", spot, hint=hint)
    return None


def _read_integer(notes: Notes, value: object, key: Key, spot: Spot) -> Any:
    return notes.wrong(value, key, spot) if isinstance(value, float) else _read_number(notes, value, key, spot)


def _read_number(notes: Notes, value: object, key: Key, spot: Spot) -> Any:
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return notes.wrong(value, key, spot)
    return _UNUSABLE if _number(notes, value, spot) is None else value


def _read_size(notes: Notes, value: object, key: Key, spot: Spot) -> Any:
    if isinstance(value, str):
        found = size_of(value)
        return notes.wrong(value, key, spot) if found is None else found
    return _read_integer(notes, value, key, spot)


def _read_flag(notes: Notes, value: object, key: Key, spot: Spot) -> Any:
    return value if isinstance(value, bool) else notes.wrong(value, key, spot)


def _read_choice(notes: Notes, value: object, key: Key, spot: Spot) -> Any:
    if not isinstance(value, str):
        return notes.wrong(value, key, spot)
    if value in key.choices:
        return value
    hint = Nearest(key.choices).hint(value)
    notes.note("plan.value", f"{spot.label} must be {key.expects}, not {value!r}", spot, hint=hint)
    return _UNUSABLE


def _read_section(notes: Notes, value: object, key: Key, spot: Spot) -> Any:
    if not isinstance(value, dict):
        return notes.wrong(value, key, spot)
    return SECTIONS[spot.key.rpartition(".")[2]](**_read_keys(notes, value, key.keys, spot.artifact, f"{spot.key}."))


def _read_gates(notes: Notes, value: object, key: Key, spot: Spot) -> Any:
    if not isinstance(value, dict):
        return notes.wrong(value, key, spot)
    notes.lost_keys(value, spot.artifact, "gates.")
    found = []
    for name, given in value.items():
        inner = Spot(spot.artifact, f"gates.{name}", key_line(value, name))
        if given is not None and not isinstance(given, dict):
            notes.note("plan.type", f"{inner.label} must be a mapping of {', '.join(key.keys)}", inner)
            continue
        said = _read_keys(notes, given or {}, key.keys, spot.artifact, f"{inner.key}.")
        found.append(Gate(**({"name": name, "kind": "check" if said.get("run") else "review"} | said)))
    return tuple(found)


def _read_texts(notes: Notes, value: object, key: Key, spot: Spot) -> Any:
    """Texts by name; what is no text is noted and left out."""
    if not isinstance(value, dict):
        return notes.wrong(value, key, spot)
    notes.lost_keys(value, spot.artifact, f"{spot.key}.")
    found = {}
    for name, text in value.items():
        if isinstance(text, str):
            found[name] = text
        else:
            inner = _key_spot(spot, value, name)
            notes.note("plan.type", f"{inner.label} must be text, not {kind_of(text)}", inner, hint=QUOTE)
    return found


def _read_templates(notes: Notes, value: object, key: Key, spot: Spot) -> Any:
    return {"phase": value} if isinstance(value, str) else _read_texts(notes, value, key, spot)


def _read_units(notes: Notes, value: object, key: Key, spot: Spot) -> Any:
    if isinstance(value, (str, list)):
        names = _read_list(notes, value, key.keys["names"], spot)
        return Units(names=names)
    if not isinstance(value, dict):
        return notes.wrong(value, key, spot)
    return Units(**_read_keys(notes, value, key.keys, spot.artifact, f"{spot.key}."))


def _read_overrides(notes: Notes, value: object, key: Key, spot: Spot) -> Any:
    if not isinstance(value, dict):
        return notes.wrong(value, key, spot)
    found: dict[str, dict[str, dict[str, str]]] = {}
    for unit, by_phase in value.items():
        inner = _key_spot(spot, value, unit)
        if not isinstance(by_phase, dict):
            notes.wrong(by_phase, key, inner)
            continue
        found[unit] = {
            phase: roles
            for phase, given in by_phase.items()
            if isinstance(roles := _read_templates(notes, given, key, _key_spot(inner, by_phase, phase)), dict)
        }
    return found


def _read_pipelines(notes: Notes, value: object, key: Key, spot: Spot) -> Any:
    if not isinstance(value, dict):
        return notes.wrong(value, key, spot)
    notes.lost_keys(value, "", "", noun="pipeline ")
    found = []
    for name, given in value.items():
        place = f"{name}:"
        inner = Spot(place, "", key_line(value, name))
        notes.places.setdefault(place, []).append(Place(given, inner.line))
        if not isinstance(given, dict):
            message = f"pipeline {name} must be a mapping of {', '.join(key.keys)}, not {kind_of(given)}"
            notes.note("plan.type", message, inner)
            continue
        said = _read_keys(notes, given, key.keys, place)
        if said.get("state"):
            said["state"] = normalise(said["state"])
        found.append(Pipeline(**({"name": name} | said)))
    return tuple(found)


def _read_phases(notes: Notes, value: object, key: Key, spot: Spot) -> Any:
    if not isinstance(value, dict):
        return notes.wrong(value, key, spot)
    notes.lost_keys(value, "", "", noun=f"pipeline {spot.artifact} phase ")
    found = []
    for name, given in value.items():
        place = f"{spot.artifact}{name}"
        inner = Spot(place, "", key_line(value, name))
        notes.places.setdefault(place, []).append(Place(given, inner.line))
        if not isinstance(given, dict):
            notes.note("plan.type", f"phase {place} must be a mapping of keys, not {kind_of(given)}", inner)
            continue
        found.append(Phase(**({"id": name} | _read_keys(notes, given, key.keys, place))))
    return tuple(found)


def _read_roles(notes: Notes, value: object, key: Key, spot: Spot) -> Any:
    if not isinstance(value, dict):
        return notes.wrong(value, key, spot)
    notes.lost_keys(value, spot.artifact, "agents.")
    found = {}
    for name, given in value.items():
        inner = Spot(spot.artifact, f"agents.{name}", key_line(value, name))
        if given is not None and not isinstance(given, dict):
            notes.note("plan.type", f"{inner.label} must be a mapping of {', '.join(key.keys)}", inner)
            continue
        found[name] = Role(**_read_keys(notes, given or {}, key.keys, spot.artifact, f"{inner.key}."))
    return found


def read_roles(given: object) -> tuple[dict[str, Role], list[Problem]]:
    """Agents as roles, from a mapping of names, such as headway.toml has them."""
    notes = Notes()
    found = _read_roles(notes, given, SETTINGS_KEYS["agents"], Spot("", "agents", None))
    return ({} if found is _UNUSABLE else found), notes.problems


def _read_artifacts(notes: Notes, value: object, key: Key, spot: Spot) -> Any:
    if isinstance(value, dict):
        notes.lost_keys(value, "", "", noun="artifact ")
        lines = value.lines if isinstance(value, Map) else {}
        return tuple([_read_artifact(notes, name, item, lines.get(name)) for name, item in value.items()])
    if not isinstance(value, list):
        return notes.wrong(value, key, spot)
    listed = (_read_listed(notes, item, n, item_line(value, n) or spot.line) for n, item in enumerate(value))
    return tuple(spec for spec in listed if spec is not None)


def _read_artifact(
    notes: Notes, name: str, given: object, line: int | None, table: Table = ARTIFACT_KEYS
) -> ArtifactSpec:
    if line is not None:
        notes.places.setdefault(name, []).append(Place(given, line))
    if given is None:
        return ArtifactSpec(id=name)
    if isinstance(given, dict):
        found = _read_keys(notes, given, table, name)
        found["id"] = name
        return ArtifactSpec(**found)
    message = f"artifact {name} must be a mapping of keys, not {kind_of(given)}"
    notes.note("plan.type", message, Spot(name, "", line))
    return ArtifactSpec(id=name)


def _read_listed(notes: Notes, given: object, index: int, line: int | None) -> ArtifactSpec | None:
    """An artifact of a list; without an id it cannot be kept."""
    name = given.get("id") if isinstance(given, dict) else None
    if isinstance(name, str):
        return _read_artifact(notes, name, given, line, LISTED_ARTIFACT_KEYS)
    why = "must have an id that is text" if isinstance(given, dict) else f"must be a mapping, not {kind_of(given)}"
    notes.note("plan.type", f"item {index + 1} of artifacts {why}", Spot("", "artifacts", line))
    return None


_READ: Mapping[Kind, Callable[[Notes, object, Key, Spot], Any]] = {
    "text": _read_text,
    "version": _read_version,
    "list": _read_list,
    "mapping": _read_mapping,
    "integer": _read_integer,
    "number": _read_number,
    "size": _read_size,
    "flag": _read_flag,
    "choice": _read_choice,
    "section": _read_section,
    "gates": _read_gates,
    "roles": _read_roles,
    "artifacts": _read_artifacts,
    "texts": _read_texts,
    "templates": _read_templates,
    "units": _read_units,
    "overrides": _read_overrides,
    "phases": _read_phases,
    "pipelines": _read_pipelines,
}
