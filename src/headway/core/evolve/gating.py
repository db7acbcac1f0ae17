"""What was said at gates, and what waits behind them."""

from __future__ import annotations

from headway.core import events as ev
from headway.core.evolve.base import reopen
from headway.core.gates import open_gates, replaced
from headway.core.lifecycle import is_done, plan_after
from headway.core.plan import ArtifactSpec
from headway.core.state import Completion, State, Verdict


def gate(state: State, event: ev.GateRecorded, record: ev.Record) -> None:
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


def wait_for_gates(state: State, spec: ArtifactSpec, made: Completion) -> None:
    """It was made, and what it was before is hidden until its gates are passed. A skip is over: it was made after all;
    what it had been before that is what it was before."""
    artifact_id, milestone = spec.id, spec.milestone
    if is_done(state, artifact_id):
        reopen(state, milestone)
    skip = state.skipped.pop(artifact_id, None)
    if skip is not None and skip.last is not None:
        state.completed[artifact_id] = skip.last
    for aspect in (state.claims, state.failed, state.uncertain, state.steps, state.notes, state.asked):
        aspect.pop(artifact_id, None)
    state.made[artifact_id] = made
    state.milestones.pop(milestone, None)
    state.status = plan_after(state.status, "work_appeared")


def settle_gates(state: State) -> None:
    """In a state from elsewhere, what is complete and what waits is what its evidence says."""
    for artifact_id, spec in state.artifacts.items():
        done = state.completed.get(artifact_id)
        evidence = state.evidence.get(artifact_id, ())
        if spec.gates and done is not None and artifact_id not in state.made and open_gates(spec, evidence, done):
            state.made[artifact_id] = done
    if state.made:
        state.status = plan_after(state.status, "work_appeared")
