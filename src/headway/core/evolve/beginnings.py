"""Events that can stand first in a ledger: each of them gives a whole state."""

from __future__ import annotations

import msgspec

from headway.core import events as ev
from headway.core.codec import decode_state
from headway.core.evolve.base import drop_claims, open_counts
from headway.core.evolve.gating import settle_gates
from headway.core.lifecycle import plan_after
from headway.core.state import Claim, State


def created(state: State | None, record: ev.Record) -> State:
    event: ev.PlanCreated = record.event  # type: ignore[assignment]  # the table in __init__ pairs type and function
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
    created.open = open_counts(created)
    return created


def embedded(state: State | None, record: ev.Record) -> State:
    event: ev.PlanRebuilt | ev.PlanImported = record.event  # type: ignore[assignment]  # as above
    taken = decode_state(event.state)
    taken.plan_id, taken.project_id = event.plan_id, event.project_id
    handed_on = _handed_on(taken, record) if event.type == ev.PlanImported.type else {}
    drop_claims(taken)
    taken.claims = handed_on
    for artifact_id in handed_on:
        taken.uncertain.pop(artifact_id, None)
    settle_gates(taken)
    taken.open = open_counts(taken)
    taken.sound = False
    taken.version = getattr(event, "version", 0) or taken.version
    if event.type == ev.PlanRebuilt.type:
        taken.unverified = event.source
    if taken.run is not None and taken.run.status == "running":
        taken.run = msgspec.structs.replace(taken.run, status="paused", reason=event.type)
        taken.status = plan_after(taken.status, "run_paused")
    return taken


def _handed_on(taken: State, record: ev.Record) -> dict[str, Claim]:
    """Claims of a plan that came from elsewhere: their holders stayed there, so anybody may go on with their work, and
    knows whose it is; whoever comes along finishes it under the same token. What a run held, its end has released."""
    held = {a: claim for a, claim in taken.claims.items() if claim.lease and not claim.run and a in taken.artifacts}
    return {a: msgspec.structs.replace(claim, left=claim.left or record.ts) for a, claim in held.items()}


def snapshot(state: State | None, record: ev.Record) -> State:
    event: ev.Snapshot = record.event  # type: ignore[assignment]  # as above
    return state if state is not None and state.created_at else decode_state(event.state)


def rotated(state: State | None, record: ev.Record) -> State:
    event: ev.LedgerRotated = record.event  # type: ignore[assignment]  # as above
    return state if state is not None else State(plan_id=event.plan_id, project_id=event.project_id)
