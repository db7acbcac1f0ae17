"""What was asked for when an artifact was last made, so that a change can be named by what changed, in its own words.

Reads a ledger only when a spec or a recipe differs, and no part of it twice: completions hold digests, not texts.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from contextlib import suppress
from typing import Any, NamedTuple

import msgspec

from headway.core.events import ArtifactCompleted, OutputAccepted, Record
from headway.core.fingerprint import SPEC_FIELDS, command_values
from headway.core.freshness import Reason
from headway.core.plan import ArtifactSpec, Settings
from headway.core.state import State
from headway.errors import HeadwayError
from headway.plan_folder import PlanFolder

NAMEABLE = frozenset({"spec_changed", "recipe_changed"})

Counts = Collection[str] | None
"""The variables of a plan that count for a recipe besides those that its command names; None: all of them."""


class Former(NamedTuple):
    """An artifact and its plan's settings, as they were when it was made."""

    spec: ArtifactSpec
    settings: Settings


class Formerly:
    """What the artifacts of one plan were when they were last made."""

    def __init__(self, folder: PlanFolder, state: State) -> None:
        self._folder = folder
        self._state = state
        self._wanted: dict[int, str] = {}
        self._seqs: dict[str, int] = {}
        self._known: dict[str, Former | None] = {}

    def name(
        self, reason: Reason, spec: ArtifactSpec, settings: Settings, counts: Callable[[ArtifactSpec], Counts]
    ) -> Reason:
        """The same reason, by the key that changed, with its old and its new value. `counts`: which variables may be
        what changed a recipe.
        """
        former = self._of(spec.id)
        if former is None:
            return reason
        if reason.code == "spec_changed":
            found = _named_spec(former.spec, spec)
        else:
            found = _named_recipe(former, spec, settings, counts(spec))
        if found is None:
            return reason
        subject, was, now = found
        return Reason(reason.code, subject, was or reason.was, now or reason.now)

    def _of(self, artifact_id: str) -> Former | None:
        if not self._wanted:
            self._wanted = {done.seq: made for made, done in self._state.completed.items() if done.seq}
            self._seqs = {made: seq for seq, made in self._wanted.items()}
        seq = self._seqs.get(artifact_id)
        if seq is not None and artifact_id not in self._known:
            self._take(self._folder.stretch(seq, max(self._wanted)))
            if artifact_id not in self._known:
                self._take(self._folder.states(max(self._wanted)))
                self._known = dict.fromkeys(self._seqs) | self._known
        return self._known.get(artifact_id)

    def _take(self, states: Iterable[tuple[State, Record]]) -> None:
        """What cannot be read cannot be named, and nothing else depends on it."""
        with suppress(HeadwayError):
            for state, record in states:
                artifact_id = self._wanted.get(record.seq)
                event = record.event
                if artifact_id is None or not isinstance(event, (ArtifactCompleted, OutputAccepted)):
                    continue
                if event.id == artifact_id:  # of an imported plan the numbers are another ledger's
                    self._known[artifact_id] = Former(state.artifacts[artifact_id], state.settings)


def _named_spec(was: ArtifactSpec, now: ArtifactSpec) -> tuple[str, str, str] | None:
    for field in SPEC_FIELDS:
        old, new = getattr(was, field), getattr(now, field)
        if old != new:
            return field, words(old), words(new)
    return None


def _named_recipe(
    former: Former, spec: ArtifactSpec, settings: Settings, counts: Counts
) -> tuple[str, str, str] | None:
    """The first part of a recipe that differs: what the plan says comes before what it names."""
    was = former.spec
    for field in ("run", "make", "version"):
        old, new = getattr(was, field), getattr(spec, field)
        if old != new:
            return field, words(old), words(new)
    if was.item != spec.item:
        return "item", words(was.item), words(spec.item)
    before, after = _values(was, former.settings, counts), _values(spec, settings, counts)
    for name in {**after, **before}:
        if before.get(name) != after.get(name):
            return name, words(before.get(name)), words(after.get(name))
    declared = (*settings.env, *spec.env)
    if set(declared) != {*former.settings.env, *was.env}:
        return "env", words((*former.settings.env, *was.env)), words(declared)
    variable = f"{' or '.join(dict.fromkeys(declared))} in env"  # values are in no ledger, so which one cannot be told
    if spec.make and not spec.version:
        return (f"code, or {variable}" if declared else "code"), "", ""
    return (variable, "", "") if declared else None


def _values(spec: ArtifactSpec, settings: Settings, counts: Counts) -> Mapping[str, Any]:
    return {
        **(command_values(spec, settings) if spec.run else {}),
        **{f"args.{name}": value for name, value in spec.args.items()},
        **{f"vars.{name}": value for name, value in settings.vars.items() if counts is None or name in counts},
    }


def words(value: Any) -> str:
    """A value of a plan as somebody would write it."""
    if value is None or value in ("", (), []):
        return "nothing"
    if isinstance(value, str):
        return value
    if isinstance(value, (tuple, list)) and all(isinstance(item, str) for item in value):
        return ", ".join(value)
    return msgspec.json.encode(value).decode()
