"""The plan as a whole: profile, approval, reset, close, what was learned."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from headway.core import events as ev
from headway.core.evolve.base import drop_claims, forget, open_counts, reopen
from headway.core.lifecycle import is_done, plan_after
from headway.core.plan import Profile
from headway.core.state import BEFORE, Approval, Learning, Refusal, State, Step


def profile_set(state: State, event: ev.ProfileSet, record: ev.Record) -> None:
    state.profile = event.profile


def profile_locked(state: State, event: ev.ProfileLocked, record: ev.Record) -> None:
    state.profile = msgspec.structs.replace(state.profile or Profile(), locked=True)


def approved(state: State, event: ev.PlanApproved, record: ev.Record) -> None:
    state.approval = Approval(
        seq=record.seq,
        at=record.ts,
        by=record.by,
        hash=event.hash,
        head=event.head,
        profile=event.profile,
        note=event.note,
    )
    state.refused, state.changed = None, {}


def rejected(state: State, event: ev.PlanRejected, record: ev.Record) -> None:
    state.refused = Refusal(seq=record.seq, at=record.ts, by=record.by, reason=event.reason)


def reset(state: State, event: ev.PlanReset, record: ev.Record) -> None:
    if event.ids:
        _reset_some(state, event.ids)
        return
    begun = {artifact_id: _found_before(state, artifact_id) for artifact_id in state.artifacts}
    state.completed, state.failed, state.skipped, state.claims, state.milestones = {}, {}, {}, {}, {}
    state.uncertain, state.steps = dict.fromkeys(state.uncertain, 0), {a: steps for a, steps in begun.items() if steps}
    state.made, state.evidence, state.notes, state.asked, state.replanned = {}, {}, {}, {}, 0
    state.past, state.prompts, state.whole = {}, {}, False
    if state.profile is not None:
        state.profile = msgspec.structs.replace(state.profile, locked=False)
    state.run, state.closed = None, ""
    state.open = open_counts(state)
    state.status = plan_after(state.status, event.type)


def _reset_some(state: State, ids: Iterable[str]) -> None:
    """Only these are to be made as if they had never been."""
    for artifact_id in ids:
        if is_done(state, artifact_id):
            reopen(state, state.artifacts[artifact_id].milestone)
        begun = _found_before(state, artifact_id)
        forget(state, artifact_id)
        if begun:
            state.steps[artifact_id] = begun
    state.status = plan_after(state.status, "work_appeared")


def _found_before(state: State, artifact_id: str) -> dict[str, Step]:
    """What the files that it changes in place were before it did: as if it had never been, it begins there again."""
    found = {name: step for name, step in state.steps.get(artifact_id, {}).items() if name.startswith(BEFORE)}
    done = state.made.get(artifact_id) or state.completed.get(artifact_id)
    before = done.fp.before if done is not None else {}
    for path in state.artifacts[artifact_id].modifies:
        if before.get(path) or (path in before and path in state.origins):
            found[BEFORE + path] = Step(key="", blob=before[path])
    return found


def closed(state: State, event: ev.PlanClosed, record: ev.Record) -> None:
    state.closed = record.ts
    drop_claims(state)
    state.open = open_counts(state)
    state.status = plan_after(state.status, event.type)


def exported(state: State, event: ev.PlanExported, record: ev.Record) -> None:
    state.exported = event.export


def learned(state: State, event: ev.LearningRecorded, record: ev.Record) -> None:
    state.learnings += (Learning(text=event.text, at=record.ts, by=record.by, artifact=event.artifact),)


def milestone(state: State, event: ev.MilestoneCompleted, record: ev.Record) -> None:
    state.milestones[event.milestone] = record.ts
