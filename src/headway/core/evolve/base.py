"""What changes of every kind share: how much of a milestone is open, when a plan is complete, what is forgotten."""

from __future__ import annotations

from collections.abc import Iterable

from headway.core.approval import spec_hash
from headway.core.lifecycle import all_done, is_done, last_made, plan_after
from headway.core.plan import ArtifactSpec
from headway.core.state import Attempt, State

ATTEMPTS = 50
"""So many earlier attempts at a phase are kept; the ledger has them all."""


def differs(state: State, artifact_id: str, was: ArtifactSpec | None, now: ArtifactSpec | None) -> None:
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


def remember(state: State, spec: ArtifactSpec) -> None:
    """Before a newer attempt at a phase takes its place: what the last one came to."""
    if not spec.phase or spec.gathers:
        return
    artifact_id = spec.id
    done, failure = last_made(state, artifact_id), state.failed.get(artifact_id) if state.failed else None
    if done is None and failure is None:
        return
    known = state.past.get(artifact_id, ())
    last = known[-1].seq if known else 0
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
    if len(new) > 1:
        new.sort(key=lambda attempt: attempt.seq)
    if new:
        state.past[artifact_id] = (*known, *new)[-ATTEMPTS:]


def forget(state: State, artifact_id: str) -> None:
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
        state.asked,
    ):
        aspect.pop(artifact_id, None)


def leave_files(state: State, former: Iterable[ArtifactSpec], shared: Iterable[str] = ()) -> None:
    """What artifacts did in place that are gone now, or do something else, stays: where none is left that did something
    there, too, or at least is to (`shared`)."""
    paths = {path for spec in former for path in spec.modifies} & state.origins.keys() if state.origins else set()
    paths.difference_update(shared)
    if paths:
        for spec in state.artifacts.values():
            if spec.modifies and last_made(state, spec.id) is not None:
                paths.difference_update(spec.modifies)
        for path in paths:
            del state.origins[path]


def drop_claims(state: State) -> None:
    """Nobody makes anything any more; what the attempts left, and whether their effects happened, nobody knows."""
    for artifact_id, claim in state.claims.items():
        if artifact_id in state.artifacts:
            state.uncertain[artifact_id] = claim.seq
    state.claims = {}


def open_counts(state: State) -> dict[str, int]:
    """What is not done yet, counted per milestone from scratch."""
    counts: dict[str, int] = {}
    for spec in state.artifacts.values():
        if spec.milestone:
            counts[spec.milestone] = counts.get(spec.milestone, 0) + (not is_done(state, spec.id))
    return counts


def reopen(state: State, milestone: str) -> None:
    """One more artifact of the milestone is not done: it is no longer complete."""
    if milestone:
        state.open[milestone] = state.open.get(milestone, 0) + 1
        state.milestones.pop(milestone, None)


def shut(state: State, milestone: str) -> None:
    """One less artifact of the milestone is open."""
    if milestone:
        state.open[milestone] -= 1


def is_running(state: State) -> bool:
    """A run is under way."""
    return state.run is not None and state.run.status == "running"


def finish(state: State) -> None:
    """The plan is complete when nothing is left and no run is under way to say so itself."""
    if not is_running(state) and all_done(state):
        state.status = plan_after(state.status, "everything_done")
        state.replanned = 0
