"""What each event changes. All facts, no rules: on a ledger that `decide` allowed, nothing here can fail.

`evolve` is pure. A fold that owns its state uses `apply`, which changes it in place, at a cost that depends on the
event and not on the size of the plan.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

from headway.core import events as ev
from headway.core.evolve import beginnings, gating, pipelines, standing, structure, work
from headway.core.state import State

__all__ = ["apply", "apply_all", "evolve", "fold", "replay"]


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
    name = event.type
    change = _CHANGES.get(name)
    if change is not None and state is not None:
        change(state, event, record)
    elif (base := _BEGINNINGS.get(name)) is not None:
        state = base(state, record)
    elif state is None:
        raise ValueError(f"{name} cannot begin a ledger")
    state.updated_at = record.ts
    return state


def apply_all(state: State | None, records: Sequence[ev.Record]) -> State | None:
    """As `apply` of one after the other: what ended together, and there is nothing else to it, in one go."""
    if state is None or len(records) == 1 or not work.completed_all(state, records):
        for record in records:
            state = apply(state, record)
    return state


_BEGINNINGS: dict[str, Callable[[State | None, ev.Record], State]] = {
    "plan_created": beginnings.created,
    "plan_rebuilt": beginnings.embedded,
    "plan_imported": beginnings.embedded,
    "snapshot": beginnings.snapshot,
    "ledger_rotated": beginnings.rotated,
}

_CHANGES: dict[str, Callable[[State, Any, ev.Record], None]] = {
    "goal_changed": structure.goal,
    "plan_updated": structure.settings,
    "proposal_taken": structure.proposal,
    "artifact_added": structure.added,
    "artifact_updated": structure.updated,
    "artifact_removed": structure.removed,
    "artifact_reordered": structure.reordered,
    "unit_expanded": pipelines.expanded,
    "recipe_changed": pipelines.recipe_changed,
    "replan_began": structure.replan_word,
    "replan_failed": structure.replan_word,
    "plan_replanned": structure.replanned,
    "plan_approved": standing.approved,
    "plan_rejected": standing.rejected,
    "profile_set": standing.profile_set,
    "profile_locked": standing.profile_locked,
    "plan_reset": standing.reset,
    "plan_closed": standing.closed,
    "plan_exported": standing.exported,
    "run_started": work.run_started,
    "run_paused": work.run_ended,
    "run_completed": work.run_ended,
    "run_failed": work.run_ended,
    "artifact_started": work.started,
    "artifact_completed": work.completed,
    "artifact_made": work.completed,
    "gate_recorded": gating.gate,
    "lease_extended": work.extended,
    "holder_left": work.left,
    "output_accepted": work.accepted,
    "artifact_failed": work.failed,
    "artifact_skipped": work.skipped,
    "artifact_released": work.released,
    "step_recorded": work.step,
    "learning_recorded": standing.learned,
    "milestone_completed": standing.milestone,
}
