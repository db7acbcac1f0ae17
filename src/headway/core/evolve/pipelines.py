"""Structure that follows from pipelines, and prompts that were changed on purpose."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from msgspec.structs import replace

from headway.core import events as ev
from headway.core.approval import is_open_ended
from headway.core.evolve.base import differs, finish, forget, leave_files, reopen, shut
from headway.core.lifecycle import is_done, last_made, plan_after
from headway.core.plan import ArtifactSpec
from headway.core.state import REORDERED, Expansion, PromptNote, State


def expanded(state: State, event: ev.UnitExpanded, record: ev.Record) -> None:
    """Structure that follows from a pipeline: the plan, as somebody proposed it, stays what it was."""
    if state.approval is not None and event.units is not None and is_open_ended(state, event.pipeline):
        _units_differ(state, event)
    changed = [*event.removed, *(spec.id for spec in event.artifacts if spec.id in state.artifacts)]
    former = [state.artifacts[a] for a in changed if last_made(state, a) is not None]
    for artifact_id in event.removed:
        if not is_done(state, artifact_id):
            shut(state, state.artifacts[artifact_id].milestone)
        done = last_made(state, artifact_id)
        state.left.update({o.path: o.digest for o in (done.outputs if done is not None else ()) if o.path})
        del state.artifacts[artifact_id]
        forget(state, artifact_id)
        for aspect in (state.uncertain, state.past, state.prompts):
            aspect.pop(artifact_id, None)
    for spec in event.artifacts:
        before = state.artifacts.get(spec.id)
        if before is None or (before.milestone != spec.milestone and not is_done(state, spec.id)):
            reopen(state, spec.milestone)
            if before is not None:
                shut(state, before.milestone)
        state.artifacts[spec.id] = spec
        for path in (*spec.produces, *spec.modifies) if state.left else ():
            state.left.pop(path, None)
    for artifact_id in event.reordered:
        done = state.completed[artifact_id]
        state.completed[artifact_id] = replace(done, fp=replace(done.fp, spec=REORDERED))
    leave_files(state, former, event.shared)
    if event.units is not None:
        known = state.units.get(event.pipeline)
        state.units[event.pipeline] = Expansion(cause=event.cause, units=event.units)
        if known is not None and known.units != event.units[: len(known.units)]:
            _in_unit_order(state, event.pipeline, event.units)
    if event.artifacts:
        state.status = plan_after(state.status, "work_appeared")
    finish(state)


def _units_differ(state: State, event: ev.UnitExpanded) -> None:
    """Units that came, or went, after an approval that could not know how many there would be. What stands for others,
    and later rounds of a loop, are part of what they were approved with."""
    known = state.units.get(event.pipeline)
    were, are = set(known.units) if known is not None else set(), set(event.units or ())
    gone = (state.artifacts[artifact_id] for artifact_id in event.removed)
    for was, now in (*((spec, None) for spec in gone), *((None, spec) for spec in event.artifacts)):
        spec = was or now
        if spec is not None and not spec.gathers and spec.iteration <= 1 and spec.unit in were ^ are:
            differs(state, spec.id, was, now)


def _in_unit_order(state: State, pipeline: str, units: Iterable[str]) -> None:
    """The artifacts of a pipeline, unit by unit, in the place of the first of them."""
    own: dict[str, dict[str, ArtifactSpec]] = {unit: {} for unit in units}
    for artifact_id, spec in state.artifacts.items():
        if spec.pipeline == pipeline:
            own.setdefault(spec.unit, {})[artifact_id] = spec
    order: dict[str, ArtifactSpec] = {}
    for artifact_id, spec in state.artifacts.items():
        if spec.pipeline != pipeline:
            order[artifact_id] = spec
        elif own:
            for members in own.values():
                order.update(members)
            own = {}
    state.artifacts = order


def recipe_changed(state: State, event: ev.RecipeChanged, record: ev.Record) -> None:
    by_artifact: dict[str, list[Any]] = {}
    for change in event.changes:
        for artifact_id in change.artifacts:
            if artifact_id in state.artifacts:
                by_artifact.setdefault(artifact_id, []).append(replace(change, artifacts=()))
    for artifact_id, changes in by_artifact.items():
        state.prompts[artifact_id] = PromptNote(
            seq=record.seq, at=record.ts, by=record.by, reason=event.reason, changes=tuple(changes)
        )
