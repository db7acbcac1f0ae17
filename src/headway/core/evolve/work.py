"""Runs, claims, and what came of attempts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from headway.core import events as ev
from headway.core.evolve.base import finish, remember, shut
from headway.core.evolve.gating import wait_for_gates
from headway.core.freshness import EDITS
from headway.core.gates import REJECTED
from headway.core.lifecycle import is_done, last_whole, plan_after, unfinished
from headway.core.plan import ArtifactSpec, Replanning
from headway.core.state import BEFORE, Claim, Completion, Failure, Note, Run, Skip, State


def run_started(state: State, event: ev.RunStarted, record: ev.Record) -> None:
    state.sound = True
    for artifact_id in sorted(unfinished(state, event.boot if event.sure else "") - state.claims.keys()):
        state.uncertain.setdefault(artifact_id, 0)
    templates = state.run.templates if state.run is not None and not state.whole else {}
    state.run = Run(
        id=event.run,
        seq=record.seq,
        at=record.ts,
        partial=event.partial,
        boot=event.boot,
        since=last_whole(state.run),
        pending=tuple(a for a, code in event.reasons.items() if code not in EDITS and code != "gates_open"),
        templates=templates if event.partial else templates | event.templates,
    )
    if event.lasting:
        state.asked |= {a: record.seq for a, code in event.reasons.items() if code == "forced"}
    state.whole = state.whole and event.partial
    state.status = plan_after(state.status, event.type)


def run_ended(state: State, event: Any, record: ev.Record) -> None:
    if state.run is not None:
        status = event.type.removeprefix("run_")
        state.whole = state.whole or getattr(event, "whole", False)
        state.run = msgspec.structs.replace(
            state.run,
            status=status,
            reason=getattr(event, "reason", ""),
            pending=(),
        )
        if getattr(event, "artifact", ""):
            state.run = msgspec.structs.replace(state.run, code=event.code, until=event.until, artifact=event.artifact)
    state.status = plan_after(state.status, event.type)
    finish(state)


def started(state: State, event: ev.ArtifactStarted, record: ev.Record) -> None:
    artifacts, claims, uncertain = state.artifacts, state.claims, state.uncertain
    claim = Claim(seq=record.seq, at=record.ts, by=record.by, run=event.run)
    for start in event.starts:
        spec = artifacts[start.id]
        artifact_id, milestone = spec.id, spec.milestone
        if milestone and is_done(state, artifact_id):
            state.open[milestone] = state.open.get(milestone, 0) + 1
        if start.lease or start.holder:
            claims[artifact_id] = msgspec.structs.replace(claim, lease=start.lease, holder=start.holder)
        else:
            claims[artifact_id] = claim  # what a run begins together is one and the same
        if uncertain:
            uncertain.pop(artifact_id, None)
    state.status = plan_after(state.status, event.type)


def completed(state: State, event: ev.Came, record: ev.Record) -> None:
    completion = _completion(event, record)
    spec = state.artifacts[event.id]
    if spec.phase:
        remember(state, spec)
    if event.type == "artifact_completed":
        _settle(state, spec, completion)
    else:
        wait_for_gates(state, spec, completion)


def completed_all(state: State, records: Sequence[ev.Record]) -> bool:
    """The same of many, if all of them are completions that leave nothing to be forgotten, remembered or finished;
    whether they are.
    """
    if not records or state.open or any(_told_until_complete(state)):
        return False
    done: dict[str, Completion] = {}
    for record in records:
        event = record.event
        if type(event) is not ev.ArtifactCompleted or state.artifacts[event.id].phase:
            return False
        done[event.id] = _completion(event, record)
    state.completed.update(done)
    for artifact_id in done:
        state.claims.pop(artifact_id, None)
    state.updated_at = records[-1].ts
    finish(state)
    return True


def _completion(event: ev.Came, record: ev.Record) -> Completion:
    return Completion(  # most events are this one, and so many fields by name take four times as long
        record.seq,
        record.ts,
        event.by or record.by,
        event.outputs,
        event.fp,
        event.how,
        event.ms,
        event.verified,
        event.tier,
        event.note,
        event.wrote,
        event.stdout,
        event.stderr,
        event.prompt,
        event.attempts,
        event.integrates,
    )


def _told_until_complete(state: State) -> tuple[dict[str, Any], ...]:
    """What is known of artifacts only until they are complete."""
    return state.failed, state.skipped, state.uncertain, state.steps, state.made, state.notes, state.asked


def accepted(state: State, event: ev.OutputAccepted, record: ev.Record) -> None:
    completion = Completion(
        seq=record.seq,
        at=record.ts,
        by=record.by,
        outputs=event.outputs,
        fp=event.fp,
        how="accepted",
        note=event.reason,
        verified=event.verified,
    )
    spec = state.artifacts[event.id]
    remember(state, spec)
    _settle(state, spec, completion)


def _settle(state: State, spec: ArtifactSpec, completion: Completion) -> None:
    artifact_id = spec.id
    if spec.milestone and not is_done(state, artifact_id):
        shut(state, spec.milestone)
    state.claims.pop(artifact_id, None)
    if any(told := _told_until_complete(state)):
        for aspect in told:
            aspect.pop(artifact_id, None)
    state.completed[artifact_id] = completion
    finish(state)


def failed(state: State, event: ev.ArtifactFailed, record: ev.Record) -> None:
    remember(state, state.artifacts[event.id])
    claim = state.claims.pop(event.id, None)
    if event.code != REJECTED:
        state.made.pop(event.id, None)
    skip = state.skipped.pop(event.id, None)
    if skip is not None and skip.last is not None:
        state.completed[event.id] = skip.last
    state.failed[event.id] = Failure(
        seq=record.seq,
        at=record.ts,
        by=record.by,
        error=event.error,
        code=event.code,
        attempts=event.attempts,
        left=event.left,
        stdout=event.stdout,
        stderr=event.stderr,
        prompt=event.prompt,
    )
    state.milestones.pop(state.artifacts[event.id].milestone, None)
    if claim is not None and not claim.run:
        most = (state.settings.replan or Replanning()).most
        state.status = plan_after(state.status, "replan_began" if state.replanned < most else "replans_spent")


def skipped(state: State, event: ev.ArtifactSkipped, record: ev.Record) -> None:
    for artifact_id in event.ids:
        if not is_done(state, artifact_id):
            shut(state, state.artifacts[artifact_id].milestone)
        state.failed.pop(artifact_id, None)
        state.made.pop(artifact_id, None)
        state.asked.pop(artifact_id, None)
        last = state.completed.pop(artifact_id, None)
        state.skipped[artifact_id] = Skip(seq=record.seq, at=record.ts, reason=event.reason, by=record.by, last=last)
    finish(state)


def released(state: State, event: ev.ArtifactReleased, record: ev.Record) -> None:
    for artifact_id in event.ids:
        claim = state.claims.pop(artifact_id, None)
        if claim is None:
            continue
        if event.begun:
            state.uncertain[artifact_id] = claim.seq
        if is_done(state, artifact_id):
            shut(state, state.artifacts[artifact_id].milestone)
    finish(state)


def extended(state: State, event: ev.LeaseExtended, record: ev.Record) -> None:
    claim = state.claims.get(event.id)
    if claim is None or claim.seq != event.token:
        return
    holder = event.holder or claim.holder
    state.claims[event.id] = msgspec.structs.replace(claim, lease=event.lease, holder=holder, left="")
    if event.note:
        state.notes[event.id] = Note(seq=record.seq, at=record.ts, by=record.by, text=event.note)


def left(state: State, event: ev.HolderLeft, record: ev.Record) -> None:
    for artifact_id, token in event.tokens.items():
        claim = state.claims.get(artifact_id)
        if claim is not None and claim.seq == token:
            state.claims[artifact_id] = msgspec.structs.replace(claim, lease=event.lease, left=record.ts)


def step(state: State, event: ev.StepRecorded, record: ev.Record) -> None:
    state.steps.setdefault(event.id, {})[event.name] = event.step
    if event.origin:
        state.origins[event.name.removeprefix(BEFORE)] = event.step.blob
