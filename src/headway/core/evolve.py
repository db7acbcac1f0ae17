"""What each event changes. All facts, no rules: on a ledger that `decide` allowed, nothing here can fail.

`evolve` is pure. A fold that owns its state uses `apply`, which changes it in place, at a cost that depends on the
event and not on the size of the plan.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

import msgspec

from headway.core import events as ev
from headway.core.approval import is_open_ended, spec_hash
from headway.core.codec import decode_state
from headway.core.freshness import EDITS
from headway.core.gates import REJECTED, open_gates, replaced
from headway.core.lifecycle import all_done, is_done, last_whole, plan_after, unfinished
from headway.core.plan import ArtifactSpec, Profile, Replanning, Value
from headway.core.state import (
    Approval,
    Attempt,
    Claim,
    Completion,
    Expansion,
    Failure,
    Learning,
    Note,
    PromptNote,
    Refusal,
    Replanned,
    Run,
    Skip,
    State,
    Verdict,
)

ATTEMPTS = 50
"""So many earlier attempts at a phase are kept; the ledger has them all."""


def evolve(state: State | None, record: ev.Record) -> State:
    """The state after one more event; the state given is not touched."""
    return apply(state.copy() if state is not None else None, record)


def fold(state: State | None, records: Iterable[ev.Record]) -> State | None:
    """The state after many events; the state given is not touched."""
    current = state.copy() if state is not None else None
    for record in records:
        current = apply(current, record)
    return current


def replay(records: Iterable[ev.Record]) -> Iterator[tuple[State | None, ev.Record]]:
    """Each event with the state after it, which the next step changes in place.

    Behind a hole in the chain there is no state, until an event comes that carries it whole.
    """
    state: State | None = None
    last = ""
    for record in records:
        if last and record.prev != last:
            state = None
        if state is not None or record.event.type in _BEGINNINGS:
            state = apply(state, record)
        last = record.hash
        yield state, record


def apply(state: State | None, record: ev.Record) -> State:
    """As `evolve`, for a state that the caller owns: it is changed in place and returned."""
    event = record.event
    base = _BEGINNINGS.get(event.type)
    if base is not None:
        state = base(state, record)
    elif state is None:
        raise ValueError(f"{event.type} cannot begin a ledger")
    else:
        change = _CHANGES.get(event.type)
        if change is not None:
            change(state, event, record)
    state.updated_at = record.ts
    return state


# Beginnings: events that can stand first.


def _created(state: State | None, record: ev.Record) -> State:
    event: ev.PlanCreated = record.event  # type: ignore[assignment]  # the table below pairs type and function
    created = State(
        plan_id=event.plan_id,
        project_id=event.project_id,
        goal=event.plan.goal,
        created_at=record.ts,
        created_by=record.by,
        planned_at=record.ts if event.plan.settings.planned_by else "",
        settings=event.plan.settings,
        profile=event.plan.profile,
        artifacts={spec.id: spec for spec in event.plan.artifacts},
        sound=event.sound,
    )
    created.open = _open_counts(created)
    return created


def _embedded(state: State | None, record: ev.Record) -> State:
    event: ev.PlanRebuilt | ev.PlanImported = record.event  # type: ignore[assignment]  # as above
    taken = decode_state(event.state)
    taken.plan_id, taken.project_id = event.plan_id, event.project_id
    _drop_claims(taken)
    _settle_gates(taken)
    taken.open = _open_counts(taken)
    taken.sound = False
    taken.version = getattr(event, "version", 0) or taken.version
    if event.type == ev.PlanRebuilt.type:
        taken.unverified = event.source
    if taken.run is not None and taken.run.status == "running":
        taken.run = msgspec.structs.replace(taken.run, status="paused", reason=event.type)
        taken.status = plan_after(taken.status, "run_paused")
    return taken


def _snapshot(state: State | None, record: ev.Record) -> State:
    event: ev.Snapshot = record.event  # type: ignore[assignment]  # as above
    return state if state is not None and state.created_at else decode_state(event.state)


def _rotated(state: State | None, record: ev.Record) -> State:
    event: ev.LedgerRotated = record.event  # type: ignore[assignment]  # as above
    return state if state is not None else State(plan_id=event.plan_id, project_id=event.project_id)


_BEGINNINGS: dict[str, Callable[[State | None, ev.Record], State]] = {
    "plan_created": _created,
    "plan_rebuilt": _embedded,
    "plan_imported": _embedded,
    "snapshot": _snapshot,
    "ledger_rotated": _rotated,
}


# Structure.


def _change(state: State, event: Any, record: ev.Record) -> None:
    """What is to be made has changed: it is to be checked again, whoever planned it has looked at it now, and it has
    a version (older events do not say which)."""
    state.sound = False
    state.version = event.version or state.version
    if state.settings.planned_by:
        state.planned_at = record.ts


def _differs(state: State, artifact_id: str, was: ArtifactSpec | None, now: ArtifactSpec | None) -> None:
    """Keep in mind what is not what was approved; what is as it was again need not be."""
    if state.approval is None:
        return
    approved = state.changed.get(artifact_id)
    if approved is None:
        approved = spec_hash(was) if was is not None else ""
    if approved == (spec_hash(now) if now is not None else ""):
        state.changed.pop(artifact_id, None)
    else:
        state.changed[artifact_id] = approved


def _replanned(state: State, event: ev.PlanReplanned, record: ev.Record) -> None:
    """A new version: what failed is to be tried in its new place."""
    _change(state, event, record)
    replanned = Replanned(
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
    state.replans = (*state.replans, replanned)
    state.replanned += 1
    for artifact_id in list(state.failed):
        if state.failed.pop(artifact_id).code == REJECTED:
            state.made.pop(artifact_id, None)
        if is_done(state, artifact_id):
            _shut(state, state.artifacts[artifact_id].milestone)
    state.status = plan_after(state.status, event.type)


def _replan_word(state: State, event: ev.Event, record: ev.Record) -> None:
    state.status = plan_after(state.status, event.type)


def _goal(state: State, event: ev.GoalChanged, record: ev.Record) -> None:
    _change(state, event, record)
    state.goal = event.goal


def _settings(state: State, event: ev.PlanUpdated, record: ev.Record) -> None:
    state.sound = False
    state.version = event.version or state.version
    _mended(state, "", state.settings, event.settings)
    if event.settings.planned_by != state.settings.planned_by:
        state.planned_at = record.ts if event.settings.planned_by else ""
    state.settings = event.settings


def _mended(state: State, artifact_id: str, was: Value, now: Value | None) -> None:
    """What a plan file said and could not be kept is no problem any more once it is said anew, or its artifact goes."""
    proposal = state.proposal
    if proposal is None or not proposal.about:
        return
    said = [
        (problem, (about, key))
        for problem, (about, key) in zip(proposal.problems, proposal.about, strict=True)
        if about != artifact_id or (now is not None and getattr(was, key, None) == getattr(now, key, None))
    ]
    state.proposal = msgspec.structs.replace(
        proposal, problems=tuple(p for p, _ in said), about=tuple(about for _, about in said)
    )


def _proposal(state: State, event: ev.ProposalTaken, record: ev.Record) -> None:
    state.proposal = event.proposal


def _added(state: State, event: ev.ArtifactAdded, record: ev.Record) -> None:
    _change(state, event, record)
    new = {spec.id: spec for spec in event.artifacts}
    if event.after is None:
        state.artifacts.update(new)
    else:
        _insert(state, new, event.after)
    for spec in event.artifacts:
        _reopen(state, spec.milestone)
        _differs(state, spec.id, None, spec)
    state.status = plan_after(state.status, "work_appeared")


def _updated(state: State, event: ev.ArtifactUpdated, record: ev.Record) -> None:
    _change(state, event, record)
    for spec in event.artifacts:
        was = state.artifacts[spec.id].milestone
        _mended(state, spec.id, state.artifacts[spec.id], spec)
        _differs(state, spec.id, state.artifacts[spec.id], spec)
        state.artifacts[spec.id] = spec
        if spec.milestone != was and not is_done(state, spec.id):
            _shut(state, was)
            _reopen(state, spec.milestone)


def _removed(state: State, event: ev.ArtifactRemoved, record: ev.Record) -> None:
    _change(state, event, record)
    for artifact_id in event.ids:
        if not is_done(state, artifact_id):
            _shut(state, state.artifacts[artifact_id].milestone)
        _mended(state, artifact_id, state.artifacts[artifact_id], None)
        _differs(state, artifact_id, state.artifacts.pop(artifact_id), None)
        _forget(state, artifact_id)
        state.uncertain.pop(artifact_id, None)
    _finish(state)


def _reordered(state: State, event: ev.ArtifactReordered, record: ev.Record) -> None:
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


def _expanded(state: State, event: ev.UnitExpanded, record: ev.Record) -> None:
    """Structure that follows from a pipeline: the plan, as somebody proposed it, stays what it was."""
    if state.approval is not None and event.units is not None and is_open_ended(state, event.pipeline):
        _units_differ(state, event)
    for artifact_id in event.removed:
        if not is_done(state, artifact_id):
            _shut(state, state.artifacts[artifact_id].milestone)
        done = state.made.get(artifact_id) or state.completed.get(artifact_id)
        state.left.update({o.path: o.digest for o in (done.outputs if done is not None else ()) if o.path})
        del state.artifacts[artifact_id]
        _forget(state, artifact_id)
        for aspect in (state.uncertain, state.past, state.prompts):
            aspect.pop(artifact_id, None)
    for spec in event.artifacts:
        before = state.artifacts.get(spec.id)
        if before is None or (before.milestone != spec.milestone and not is_done(state, spec.id)):
            _reopen(state, spec.milestone)
            if before is not None:
                _shut(state, before.milestone)
        state.artifacts[spec.id] = spec
        for path in (*spec.produces, *spec.modifies) if state.left else ():
            state.left.pop(path, None)
    if event.units is not None:
        known = state.units.get(event.pipeline)
        state.units[event.pipeline] = Expansion(cause=event.cause, units=event.units)
        if known is not None and known.units != event.units[: len(known.units)]:
            _in_unit_order(state, event.pipeline, event.units)
    if event.artifacts:
        state.status = plan_after(state.status, "work_appeared")
    _finish(state)


def _units_differ(state: State, event: ev.UnitExpanded) -> None:
    """Units that came, or went, after an approval that could not know how many there would be. What stands for others,
    and later rounds of a loop, are part of what they were approved with."""
    known = state.units.get(event.pipeline)
    were, are = set(known.units) if known is not None else set(), set(event.units or ())
    gone = (state.artifacts[artifact_id] for artifact_id in event.removed)
    for was, now in (*((spec, None) for spec in gone), *((None, spec) for spec in event.artifacts)):
        spec = was or now
        if spec is not None and not spec.gathers and spec.iteration <= 1 and spec.unit in were ^ are:
            _differs(state, spec.id, was, now)


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


def _recipe_changed(state: State, event: ev.RecipeChanged, record: ev.Record) -> None:
    by_artifact: dict[str, list[Any]] = {}
    for change in event.changes:
        for artifact_id in change.artifacts:
            if artifact_id in state.artifacts:
                by_artifact.setdefault(artifact_id, []).append(msgspec.structs.replace(change, artifacts=()))
    for artifact_id, changes in by_artifact.items():
        state.prompts[artifact_id] = PromptNote(
            seq=record.seq, at=record.ts, by=record.by, reason=event.reason, changes=tuple(changes)
        )


def _remember(state: State, artifact_id: str) -> None:
    """Before a newer attempt at a phase takes its place: what the last one came to."""
    spec = state.artifacts.get(artifact_id)
    if spec is None or not spec.phase or spec.gathers:
        return
    known = state.past.get(artifact_id, ())
    last = known[-1].seq if known else 0
    done, failure = state.made.get(artifact_id) or state.completed.get(artifact_id), state.failed.get(artifact_id)
    new: list[Attempt] = []
    if done is not None and done.seq > last:
        new.append(
            Attempt(
                seq=done.seq,
                at=done.at,
                ok=True,
                how=done.how,
                outputs=done.outputs,
                prompt=done.prompt,
                stdout=done.stdout,
                templates=done.fp.templates,
            )
        )
    if failure is not None and failure.seq > last:
        new.append(
            Attempt(
                seq=failure.seq,
                at=failure.at,
                ok=False,
                outputs=failure.left,
                prompt=failure.prompt,
                error=failure.error,
                stdout=failure.stdout,
            )
        )
    if new:
        state.past[artifact_id] = (*known, *sorted(new, key=lambda attempt: attempt.seq))[-ATTEMPTS:]


# Profile, reset, close.


def _profile_set(state: State, event: ev.ProfileSet, record: ev.Record) -> None:
    state.profile = event.profile


def _profile_locked(state: State, event: ev.ProfileLocked, record: ev.Record) -> None:
    state.profile = msgspec.structs.replace(state.profile or Profile(), locked=True)


def _approved(state: State, event: ev.PlanApproved, record: ev.Record) -> None:
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


def _rejected(state: State, event: ev.PlanRejected, record: ev.Record) -> None:
    state.refused = Refusal(seq=record.seq, at=record.ts, by=record.by, reason=event.reason)


def _reset(state: State, event: ev.PlanReset, record: ev.Record) -> None:
    if event.ids:
        _reset_some(state, event.ids)
        return
    state.completed, state.failed, state.skipped, state.claims, state.milestones = {}, {}, {}, {}, {}
    state.uncertain, state.steps = dict.fromkeys(state.uncertain, 0), {}
    state.made, state.evidence, state.notes, state.replanned = {}, {}, {}, 0
    state.past, state.prompts, state.whole = {}, {}, False
    if state.profile is not None:
        state.profile = msgspec.structs.replace(state.profile, locked=False)
    state.run, state.closed = None, ""
    state.open = _open_counts(state)
    state.status = plan_after(state.status, event.type)


def _reset_some(state: State, ids: Iterable[str]) -> None:
    """Only these are to be made as if they had never been."""
    for artifact_id in ids:
        if is_done(state, artifact_id):
            _reopen(state, state.artifacts[artifact_id].milestone)
        _forget(state, artifact_id)
    state.status = plan_after(state.status, "work_appeared")


def _forget(state: State, artifact_id: str) -> None:
    """Whatever is known of an artifact's progress; that something of it may be on disk stays known."""
    for aspect in (
        state.completed,
        state.failed,
        state.skipped,
        state.claims,
        state.steps,
        state.made,
        state.evidence,
        state.past,
        state.prompts,
        state.notes,
    ):
        aspect.pop(artifact_id, None)


def _closed(state: State, event: ev.PlanClosed, record: ev.Record) -> None:
    state.closed = record.ts
    _drop_claims(state)
    state.open = _open_counts(state)
    state.status = plan_after(state.status, event.type)


def _exported(state: State, event: ev.PlanExported, record: ev.Record) -> None:
    state.exported = event.export


# Work.


def _run_started(state: State, event: ev.RunStarted, record: ev.Record) -> None:
    state.sound = True
    for artifact_id in sorted(unfinished(state) - state.claims.keys()):
        state.uncertain.setdefault(artifact_id, 0)
    state.run = Run(
        id=event.run,
        seq=record.seq,
        at=record.ts,
        partial=event.partial,
        boot=event.boot,
        since=last_whole(state.run),
        pending=tuple(a for a, code in event.reasons.items() if code not in EDITS and code != "gates_open"),
    )
    state.whole = state.whole and event.partial
    state.status = plan_after(state.status, event.type)


def _run_ended(state: State, event: Any, record: ev.Record) -> None:
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
    _finish(state)


def _started(state: State, event: ev.ArtifactStarted, record: ev.Record) -> None:
    for start in event.starts:
        claim = Claim(seq=record.seq, at=record.ts, by=record.by, run=event.run, lease=start.lease, holder=start.holder)
        milestone = state.artifacts[start.id].milestone
        if milestone and is_done(state, start.id):
            state.open[milestone] = state.open.get(milestone, 0) + 1
        state.claims[start.id] = claim
        state.uncertain.pop(start.id, None)
    state.status = plan_after(state.status, event.type)


def _completed(state: State, event: ev.ArtifactCompleted | ev.ArtifactMade, record: ev.Record) -> None:
    completion = Completion(
        seq=record.seq,
        at=record.ts,
        by=event.by or record.by,
        outputs=event.outputs,
        fp=event.fp,
        how=event.how,
        ms=event.ms,
        verified=event.verified,
        tier=event.tier,
        note=event.note,
        wrote=event.wrote,
        stdout=event.stdout,
        stderr=event.stderr,
        prompt=event.prompt,
        attempts=event.attempts,
        integrates=event.integrates,
    )
    _remember(state, event.id)
    if event.type == "artifact_completed":
        _settle(state, event.id, completion)
    else:
        _wait_for_gates(state, event.id, completion)


def _wait_for_gates(state: State, artifact_id: str, made: Completion) -> None:
    """It was made, and what it was before is hidden until its gates are passed. A skip is over: it was made after all;
    what it had been before that is what it was before."""
    milestone = state.artifacts[artifact_id].milestone
    if is_done(state, artifact_id):
        _reopen(state, milestone)
    skip = state.skipped.pop(artifact_id, None)
    if skip is not None and skip.last is not None:
        state.completed[artifact_id] = skip.last
    for aspect in (state.claims, state.failed, state.uncertain, state.steps, state.notes):
        aspect.pop(artifact_id, None)
    state.made[artifact_id] = made
    state.milestones.pop(milestone, None)
    state.status = plan_after(state.status, "work_appeared")


def _gate(state: State, event: ev.GateRecorded, record: ev.Record) -> None:
    verdict = Verdict(
        gate=event.gate,
        verdict=event.verdict,
        by=event.by or record.by,
        seq=record.seq,
        at=record.ts,
        contract=event.contract,
        content=event.content,
        asked=event.asked,
        text=event.text,
    )
    before = state.evidence.get(event.id, ())
    state.evidence[event.id] = (*(v for v in before if not replaced(v, verdict)), verdict)


def _settle_gates(state: State) -> None:
    """In a state from elsewhere, what is complete and what waits is what its evidence says."""
    for artifact_id, spec in state.artifacts.items():
        done = state.completed.get(artifact_id)
        evidence = state.evidence.get(artifact_id, ())
        if spec.gates and done is not None and artifact_id not in state.made and open_gates(spec, evidence, done):
            state.made[artifact_id] = done
    if state.made:
        state.status = plan_after(state.status, "work_appeared")


def _accepted(state: State, event: ev.OutputAccepted, record: ev.Record) -> None:
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
    _remember(state, event.id)
    _settle(state, event.id, completion)


def _settle(state: State, artifact_id: str, completion: Completion) -> None:
    if not is_done(state, artifact_id):
        _shut(state, state.artifacts[artifact_id].milestone)
    for aspect in (
        state.claims,
        state.failed,
        state.skipped,
        state.uncertain,
        state.steps,
        state.made,
        state.notes,
    ):
        if aspect:
            aspect.pop(artifact_id, None)
    state.completed[artifact_id] = completion
    _finish(state)


def _failed(state: State, event: ev.ArtifactFailed, record: ev.Record) -> None:
    _remember(state, event.id)
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


def _skipped(state: State, event: ev.ArtifactSkipped, record: ev.Record) -> None:
    for artifact_id in event.ids:
        if not is_done(state, artifact_id):
            _shut(state, state.artifacts[artifact_id].milestone)
        state.failed.pop(artifact_id, None)
        state.made.pop(artifact_id, None)
        last = state.completed.pop(artifact_id, None)
        state.skipped[artifact_id] = Skip(seq=record.seq, at=record.ts, reason=event.reason, by=record.by, last=last)
    _finish(state)


def _released(state: State, event: ev.ArtifactReleased, record: ev.Record) -> None:
    for artifact_id in event.ids:
        claim = state.claims.pop(artifact_id, None)
        if claim is None:
            continue
        state.uncertain[artifact_id] = claim.seq
        if is_done(state, artifact_id):
            _shut(state, state.artifacts[artifact_id].milestone)
    _finish(state)


def _extended(state: State, event: ev.LeaseExtended, record: ev.Record) -> None:
    claim = state.claims.get(event.id)
    if claim is None or claim.seq != event.token:
        return
    holder = event.holder or claim.holder
    state.claims[event.id] = msgspec.structs.replace(claim, lease=event.lease, holder=holder, left="")
    if event.note:
        state.notes[event.id] = Note(seq=record.seq, at=record.ts, by=record.by, text=event.note)


def _left(state: State, event: ev.HolderLeft, record: ev.Record) -> None:
    for artifact_id, token in event.tokens.items():
        claim = state.claims.get(artifact_id)
        if claim is not None and claim.seq == token:
            state.claims[artifact_id] = msgspec.structs.replace(claim, lease=event.lease, left=record.ts)


def _learned(state: State, event: ev.LearningRecorded, record: ev.Record) -> None:
    state.learnings += (Learning(text=event.text, at=record.ts, by=record.by, artifact=event.artifact),)


def _step(state: State, event: ev.StepRecorded, record: ev.Record) -> None:
    state.steps.setdefault(event.id, {})[event.name] = event.step


def _milestone(state: State, event: ev.MilestoneCompleted, record: ev.Record) -> None:
    state.milestones[event.milestone] = record.ts


def _drop_claims(state: State) -> None:
    """Nobody makes anything any more; what the attempts left, and whether their effects happened, nobody knows."""
    for artifact_id, claim in state.claims.items():
        if artifact_id in state.artifacts:
            state.uncertain[artifact_id] = claim.seq
    state.claims = {}


def _open_counts(state: State) -> dict[str, int]:
    """What is not done yet, counted per milestone from scratch."""
    counts: dict[str, int] = {}
    for spec in state.artifacts.values():
        if spec.milestone:
            counts[spec.milestone] = counts.get(spec.milestone, 0) + (not is_done(state, spec.id))
    return counts


def _reopen(state: State, milestone: str) -> None:
    """One more artifact of the milestone is not done: it is no longer complete."""
    if milestone:
        state.open[milestone] = state.open.get(milestone, 0) + 1
        state.milestones.pop(milestone, None)


def _shut(state: State, milestone: str) -> None:
    """One less artifact of the milestone is open."""
    if milestone:
        state.open[milestone] -= 1


def _finish(state: State) -> None:
    """The plan is complete when nothing is left and no run is under way to say so itself."""
    running = state.run is not None and state.run.status == "running"
    if not running and all_done(state):
        state.status = plan_after(state.status, "everything_done")
        state.replanned = 0


_CHANGES: dict[str, Callable[[State, Any, ev.Record], None]] = {
    "goal_changed": _goal,
    "plan_updated": _settings,
    "proposal_taken": _proposal,
    "artifact_added": _added,
    "artifact_updated": _updated,
    "artifact_removed": _removed,
    "artifact_reordered": _reordered,
    "unit_expanded": _expanded,
    "recipe_changed": _recipe_changed,
    "replan_began": _replan_word,
    "replan_failed": _replan_word,
    "plan_replanned": _replanned,
    "plan_approved": _approved,
    "plan_rejected": _rejected,
    "profile_set": _profile_set,
    "profile_locked": _profile_locked,
    "plan_reset": _reset,
    "plan_closed": _closed,
    "plan_exported": _exported,
    "run_started": _run_started,
    "run_paused": _run_ended,
    "run_completed": _run_ended,
    "run_failed": _run_ended,
    "artifact_started": _started,
    "artifact_completed": _completed,
    "artifact_made": _completed,
    "gate_recorded": _gate,
    "lease_extended": _extended,
    "holder_left": _left,
    "output_accepted": _accepted,
    "artifact_failed": _failed,
    "artifact_skipped": _skipped,
    "artifact_released": _released,
    "step_recorded": _step,
    "learning_recorded": _learned,
    "milestone_completed": _milestone,
}
