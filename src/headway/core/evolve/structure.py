"""What is to be made: artifacts that come, change and go, the goal, the settings, versions."""

from __future__ import annotations

from typing import Any

import msgspec

from headway.core import events as ev
from headway.core.evolve.base import differs, finish, forget, leave_files, reopen, shut
from headway.core.gates import REJECTED
from headway.core.lifecycle import is_done, last_made, plan_after
from headway.core.plan import ArtifactSpec, Value
from headway.core.state import Replanned, State


def _change(state: State, event: Any, record: ev.Record) -> None:
    """What is to be made has changed: it is to be checked again, whoever planned it has looked at it now, and it has
    a version (older events do not say which)."""
    state.sound = False
    state.version = event.version or state.version
    if state.settings.planned_by:
        state.planned_at = record.ts


def replanned(state: State, event: ev.PlanReplanned, record: ev.Record) -> None:
    """A new version: what failed is to be tried in its new place."""
    _change(state, event, record)
    new = Replanned(
        version=event.version,
        parent=event.parent,
        seq=record.seq,
        at=record.ts,
        by=record.by,
        reason=event.reason,
        failed=event.failed,
        added=event.added,
        updated=event.updated,
        removed=event.removed,
    )
    state.replans = (*state.replans, new)
    state.replanned += 1
    for artifact_id in list(state.failed):
        if state.failed.pop(artifact_id).code == REJECTED:
            state.made.pop(artifact_id, None)
        if is_done(state, artifact_id):
            shut(state, state.artifacts[artifact_id].milestone)
    state.status = plan_after(state.status, event.type)


def replan_word(state: State, event: ev.Event, record: ev.Record) -> None:
    state.status = plan_after(state.status, event.type)


def goal(state: State, event: ev.GoalChanged, record: ev.Record) -> None:
    _change(state, event, record)
    state.goal = event.goal


def settings(state: State, event: ev.PlanUpdated, record: ev.Record) -> None:
    state.sound = False
    state.version = event.version or state.version
    _mended(state, "", state.settings, event.settings)
    if event.settings.planned_by != state.settings.planned_by:
        state.planned_at = record.ts if event.settings.planned_by else ""
    state.settings = event.settings


def _mended(state: State, artifact_id: str, was: Value, now: Value | None) -> None:
    """What a plan file said and could not be kept is no problem any more once it is said anew, or its artifact goes."""
    known = state.proposal
    if known is None or not known.about:
        return
    said = [
        (problem, (about, key))
        for problem, (about, key) in zip(known.problems, known.about, strict=True)
        if about != artifact_id or (now is not None and getattr(was, key, None) == getattr(now, key, None))
    ]
    state.proposal = msgspec.structs.replace(
        known, problems=tuple(p for p, _ in said), about=tuple(about for _, about in said)
    )


def proposal(state: State, event: ev.ProposalTaken, record: ev.Record) -> None:
    state.proposal = event.proposal


def added(state: State, event: ev.ArtifactAdded, record: ev.Record) -> None:
    _change(state, event, record)
    new = {spec.id: spec for spec in event.artifacts}
    if event.after is None:
        state.artifacts.update(new)
    else:
        _insert(state, new, event.after)
    for spec in event.artifacts:
        reopen(state, spec.milestone)
        differs(state, spec.id, None, spec)
    state.status = plan_after(state.status, "work_appeared")


def updated(state: State, event: ev.ArtifactUpdated, record: ev.Record) -> None:
    _change(state, event, record)
    former = [state.artifacts[s.id] for s in event.artifacts if last_made(state, s.id) is not None]
    for spec in event.artifacts:
        was = state.artifacts[spec.id].milestone
        _mended(state, spec.id, state.artifacts[spec.id], spec)
        differs(state, spec.id, state.artifacts[spec.id], spec)
        state.artifacts[spec.id] = spec
        if spec.milestone != was and not is_done(state, spec.id):
            shut(state, was)
            reopen(state, spec.milestone)
    leave_files(state, former)


def removed(state: State, event: ev.ArtifactRemoved, record: ev.Record) -> None:
    _change(state, event, record)
    gone = [state.artifacts[a] for a in event.ids if last_made(state, a) is not None]
    for artifact_id in event.ids:
        if not is_done(state, artifact_id):
            shut(state, state.artifacts[artifact_id].milestone)
        _mended(state, artifact_id, state.artifacts[artifact_id], None)
        differs(state, artifact_id, state.artifacts.pop(artifact_id), None)
        forget(state, artifact_id)
        state.uncertain.pop(artifact_id, None)
    leave_files(state, gone)
    finish(state)


def reordered(state: State, event: ev.ArtifactReordered, record: ev.Record) -> None:
    _change(state, event, record)
    moved = {artifact_id: state.artifacts.pop(artifact_id) for artifact_id in event.ids}
    _insert(state, moved, event.after or "")


def _insert(state: State, new: dict[str, ArtifactSpec], after: str) -> None:
    """Put artifacts behind the one named, or first when it is none."""
    order = {} if after in state.artifacts else dict(new)
    for artifact_id, spec in state.artifacts.items():
        order[artifact_id] = spec
        if artifact_id == after:
            order.update(new)
    state.artifacts = order
