"""The life of a plan and of an artifact.

Rule 1: every legal transition is a row of a table below; docs/states.md is drawn from them.
Rule 2: no other module compares statuses to decide whether something is legal.
Rule 3: `blocked` is never recorded. It follows from what an artifact requires.
Rule 4: `made` is a stage of its own only here: an artifact that waits for its gates is shown as in progress.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import NamedTuple

from headway.core.graph import ArtifactGraph
from headway.core.ids import name_elsewhere
from headway.core.state import ArtifactStatus, Completion, PlanStatus, Run, State


class Row(NamedTuple):
    """In one of these statuses, this event leads to that status."""

    given: tuple[str, ...]
    event: str
    then: str
    meaning: str


ARTIFACT_ROWS = (
    Row(("pending", "failed", "complete", "skipped", "made"), "artifact_started", "in_progress", "somebody makes it"),
    Row(("in_progress", "made"), "artifact_completed", "complete", "made, verified, through its gates, and recorded"),
    Row(("pending", "failed", "complete", "skipped"), "artifact_completed", "complete", "what it stands for is done"),
    Row(
        ("in_progress", "pending", "failed", "complete", "skipped", "made"),
        "artifact_made",
        "made",
        "its bytes are recorded; it waits for its gates",
    ),
    Row(("pending", "failed", "complete", "skipped", "made"), "output_accepted", "complete", "what is on disk counts"),
    Row(("in_progress", "made"), "artifact_failed", "failed", "an attempt failed, after its retries; or was rejected"),
    Row(
        ("in_progress",),
        "artifact_released",
        "as before",
        "the attempt was given up: nothing is known to be wrong",
    ),
    Row(("pending", "failed", "complete", "made"), "artifact_skipped", "skipped", "not to be made; dependents go on"),
    Row(
        ("pending", "failed", "complete", "skipped", "in_progress", "made"),
        "plan_reset",
        "pending",
        "forgotten on purpose",
    ),
)

PLAN_ROWS = (
    Row(("draft", "paused", "failed", "complete", "replanning"), "run_started", "in_progress", "a run begins"),
    Row(
        ("draft", "paused", "failed", "complete", "replanning"),
        "artifact_started",
        "in_progress",
        "work begins",
    ),
    Row(("in_progress",), "run_paused", "paused", "interrupted, out of budget, or waiting for a word"),
    Row(("in_progress",), "run_failed", "failed", "the run ended with failed or blocked artifacts"),
    Row(("in_progress", "failed", "paused"), "replan_began", "replanning", "a failure asks for a better plan"),
    Row(("replanning",), "replan_failed", "failed", "no better plan was found"),
    Row(("in_progress", "paused"), "replans_spent", "failed", "a failure, and no more replanning"),
    Row(
        ("replanning", "failed", "draft", "paused", "complete"),
        "plan_replanned",
        "in_progress",
        "a new version",
    ),
    Row(("draft", "in_progress", "paused", "failed"), "everything_done", "complete", "nothing is left to make"),
    Row(("complete",), "work_appeared", "in_progress", "an artifact was added, or one is to be made again"),
    Row(
        ("draft", "in_progress", "paused", "failed", "complete", "replanning"),
        "plan_closed",
        "closed",
        "put away; read-only until reset",
    ),
    Row(
        ("draft", "in_progress", "paused", "failed", "complete", "replanning", "closed"),
        "plan_reset",
        "draft",
        "started afresh; the history stays",
    ),
)

_ARTIFACT: Mapping[tuple[str, str], str] = {(s, row.event): row.then for row in ARTIFACT_ROWS for s in row.given}
_PLAN: Mapping[tuple[str, str], PlanStatus] = {
    (s, row.event): row.then  # type: ignore[misc]  # the rows hold plain text; test_lifecycle checks the words
    for row in PLAN_ROWS
    for s in row.given
}


def allowed(stage: str, event: str) -> bool:
    """Whether an artifact at this stage can meet this event."""
    return (stage, event) in _ARTIFACT


def plan_after(status: PlanStatus, event: str) -> PlanStatus:
    """The plan's status after this event; events without a row leave it as it is."""
    return _PLAN.get((status, event), status)


def is_done(state: State, artifact_id: str) -> bool:
    """Complete or skipped, with nobody making it again: dependents may go on."""
    if artifact_id in state.claims or artifact_id in state.failed or artifact_id in state.made:
        return False
    return artifact_id in state.completed or artifact_id in state.skipped


def stage_of(state: State, artifact_id: str) -> str:
    """Where it stands in the table: its recorded status, or `made`."""
    status = recorded_status(state, artifact_id)
    return "made" if status == "in_progress" and artifact_id not in state.claims else status


def recorded_status(state: State, artifact_id: str) -> ArtifactStatus:
    """Its status by what is recorded about itself, so never `blocked`."""
    if artifact_id in state.claims:
        return "in_progress"
    if artifact_id in state.failed:
        return "failed"
    if artifact_id in state.made:
        return "in_progress"
    if artifact_id in state.skipped:
        return "skipped"
    return "complete" if artifact_id in state.completed else "pending"


def not_allowed(state: State, ids: Collection[str], event: str) -> set[str]:
    """Those of these that cannot meet this event where they stand."""
    told = (state.claims, state.failed, state.made, state.skipped, state.completed)
    if allowed("pending", event) and all(aspect.keys().isdisjoint(ids) for aspect in told):
        return set()
    return {artifact_id for artifact_id in ids if not allowed(stage_of(state, artifact_id), event)}


def not_done(state: State, ids: Collection[str]) -> set[str]:
    """Those of these that dependents have to wait for."""
    hiding = (state.claims, state.failed, state.made)
    if state.completed.keys() >= set(ids) and all(aspect.keys().isdisjoint(ids) for aspect in hiding):
        return set()
    return {artifact_id for artifact_id in ids if not is_done(state, artifact_id)}


def last_made(state: State, artifact_id: str) -> Completion | None:
    """What it last came to: what waits for its gates, or else what was completed."""
    return (state.made.get(artifact_id) if state.made else None) or state.completed.get(artifact_id)


def unfinished(state: State, boot: str = "") -> set[str]:
    """Artifacts at whose paths an attempt of ours can have left anything: begun, or announced by a run that ended
    without a word, and without an end since.

    `boot` is the machine's boot now. What begins is on record before it touches anything, and only the end of a boot
    takes back what was written: so in the boot of that run, being announced says nothing.
    """
    found = {*state.claims, *state.uncertain}
    run = state.run
    if run is not None and run.status == "running" and (not boot or boot != run.boot):
        found.update(a for a in run.pending if a in state.artifacts and not _has_ended(state, a, run.seq))
    return found


def unseen(state: State) -> set[str]:
    """Artifacts whose attempt failed, and of which nobody could tell what it left: an output without a digest."""
    return {a for a, failure in state.failed.items() if any(not output.digest for output in failure.left)}


def _has_ended(state: State, artifact_id: str, since: int) -> bool:
    aspects = (state.completed, state.failed, state.skipped)
    return any((end := aspect.get(artifact_id)) is not None and end.seq > since for aspect in aspects)


def last_whole(run: Run | None) -> str:
    """The boot in which all outputs were last seen whole: outputs are not synced, so a later boot may lack some."""
    if run is None:
        return ""
    return run.boot if run.status == "completed" and not run.partial else run.since or run.boot


def statuses(state: State) -> dict[str, ArtifactStatus]:
    """Every artifact's status, in plan order. Pending behind something failed, missing or blocked is `blocked`."""
    artifacts, completed = state.artifacts, state.completed
    found: dict[str, ArtifactStatus]
    if state.claims or state.failed or state.made or state.skipped:
        found = {artifact_id: recorded_status(state, artifact_id) for artifact_id in artifacts}
    elif completed.keys() >= artifacts.keys():  # as in most plans: nothing is left to be told
        return dict.fromkeys(artifacts, "complete")
    else:
        found = {artifact_id: "complete" if artifact_id in completed else "pending" for artifact_id in artifacts}
    graph = ArtifactGraph.over(artifacts)
    queue = [a for a, status in found.items() if status == "failed"]

    def block(ids: Iterable[str]) -> None:
        for artifact_id in ids:
            if found[artifact_id] == "pending":
                found[artifact_id] = "blocked"
                queue.append(artifact_id)

    gaps = graph.missing() if "pending" in found.values() else {}
    block(a for a, names in gaps.items() if any(name_elsewhere(name) is None for name in names))
    for artifact_id in queue:
        block(graph.dependents(artifact_id))
    return found


def all_done(state: State) -> bool:
    """Nothing is left to make. A plan without artifacts is never done."""
    total = len(state.artifacts)
    return bool(total) and not (state.claims or state.failed or state.made) and _done(state) == total


def progress(state: State) -> tuple[int, int]:
    """How many artifacts are done, of how many. What only gathers others is nobody's work and does not count."""
    gathering = [a for a, spec in state.artifacts.items() if spec.gathers] if state.settings.pipelines else []
    gathered = sum(1 for artifact_id in gathering if is_done(state, artifact_id))
    return _done(state) - gathered, len(state.artifacts) - len(gathering)


def _done(state: State) -> int:
    """(Complete and skipped exclude each other; the rest hides some.)"""
    hiding = (
        state.claims.keys() | state.failed.keys() | state.made.keys() if state.failed or state.made else state.claims
    )
    hidden = sum(1 for artifact_id in hiding if artifact_id in state.completed or artifact_id in state.skipped)
    return len(state.completed) + len(state.skipped) - hidden


def files_of(state: State) -> set[str]:
    """The files that the artifacts of a plan were made from, and left."""
    found: set[str] = set()
    for done in state.completed.values():
        found.update(done.fp.sources)
        found.update([output.path.rstrip("/") for output in done.outputs])
    return found
