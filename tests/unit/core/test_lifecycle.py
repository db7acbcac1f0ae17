"""The tables of plan and artifact: every word is known, every status can be reached and left, and work is bounded."""

from __future__ import annotations

from typing import get_args

import pytest

from headway.core import commands as cmd
from headway.core.events import EVENTS
from headway.core.lifecycle import ARTIFACT_ROWS, PLAN_ROWS, Row, allowed, plan_after, recorded_status, statuses
from headway.core.plan import ArtifactSpec, PlanSpec
from headway.core.state import ArtifactStatus, Failure, PlanStatus, State
from tests.unit.core.lives import Life

DERIVED = {"everything_done", "work_appeared", "replans_spent"}
"""What follows from events rather than being one."""


@pytest.mark.parametrize(
    ("rows", "words"),
    [(ARTIFACT_ROWS, {*get_args(ArtifactStatus), "as before", "made"}), (PLAN_ROWS, set(get_args(PlanStatus)))],
    ids=["artifact", "plan"],
)
def test_the_tables_use_known_words_only(rows: tuple[Row, ...], words: set[str]) -> None:
    """A status is one that the state can have; each pair of status and event stands in one row."""
    pairs = [(status, row.event) for row in rows for status in row.given]
    assert {word for row in rows for word in (*row.given, row.then)} <= words
    assert len(pairs) == len(set(pairs))
    assert all(row.meaning for row in rows)


def test_the_artifact_table_names_real_events() -> None:
    """Each row is about an event that can be in a ledger."""
    assert {row.event for row in ARTIFACT_ROWS} <= set(EVENTS)


def test_every_plan_status_can_be_reached_and_left() -> None:
    """No status is a trap, and none is unreachable from a draft."""
    reached = {"draft"}
    for _ in PLAN_ROWS:
        reached |= {row.then for row in PLAN_ROWS if reached & set(row.given)}
    assert reached == set(get_args(PlanStatus))
    assert {status for row in PLAN_ROWS for status in row.given} == set(get_args(PlanStatus))


def test_an_event_without_a_row_leaves_the_plan_as_it_is() -> None:
    """Only what stands in the table moves a plan."""
    assert plan_after("closed", "run_started") == "closed"
    assert plan_after("draft", "run_started") == "in_progress"
    assert not allowed("in_progress", "artifact_started")
    assert allowed("complete", "artifact_started")


def test_a_plan_lives_from_draft_to_complete_and_on() -> None:
    """Started, paused, gone on with, done, extended, done again, put away."""
    life = Life()
    seen: list[str] = []

    def do(command: cmd.Command) -> None:
        life.do(command)
        assert life.state is not None
        seen.append(life.state.status)

    do(cmd.CreatePlan(plan_id="p", project_id="q", plan=PlanSpec(goal="g", artifacts=(ArtifactSpec(id="a"),))))
    do(cmd.StartRun(run="1"))
    do(cmd.EndRun(run="1", status="paused", reason="budget"))
    do(cmd.StartArtifacts(ids=("a",)))
    do(cmd.CompleteArtifact(id="a", token=life.records[-1].seq))
    do(cmd.ChangePlan(add=(ArtifactSpec(id="b"),)))
    do(cmd.SkipArtifacts(ids=("b",), reason="no need"))
    do(cmd.ClosePlan())
    assert seen == ["draft", "in_progress", "paused", "in_progress", "complete", "in_progress", "complete", "closed"]


def test_a_run_says_itself_when_the_plan_is_complete() -> None:
    """While a run is under way the last artifact does not end the plan; the end of the run does."""
    life = Life()
    life.do(cmd.CreatePlan(plan_id="p", project_id="q", plan=PlanSpec(goal="g", artifacts=(ArtifactSpec(id="a"),))))
    life.do(cmd.StartRun(run="1"))
    life.do(cmd.StartArtifacts(ids=("a",), run="1"))
    seen: list[str] = []
    for command in (
        cmd.CompleteArtifact(id="a", token=life.records[-1].seq),
        cmd.EndRun(run="1", status="completed"),
    ):
        life.do(command)
        assert life.state is not None
        seen.append(life.state.status)
    assert seen == ["in_progress", "complete"]


def test_one_failure_blocks_what_is_behind_it_and_nothing_else() -> None:
    """Blocked follows from the graph; complete and skipped work behind a failure stays what it is."""
    state = State(plan_id="p", project_id="q")
    for name, requires in {
        "a": (),
        "b": ("a",),
        "c": ("b",),
        "other": (),
        "lost": ("nowhere",),
        "d": ("lost",),
    }.items():
        state.artifacts[name] = ArtifactSpec(id=name, requires=requires)
    state.failed["a"] = Failure(seq=1, at="t", error="e")
    assert statuses(state) == {
        "a": "failed",
        "b": "blocked",
        "c": "blocked",
        "other": "pending",
        "lost": "blocked",
        "d": "blocked",
    }
    assert recorded_status(state, "b") == "pending"


def test_blocking_a_deep_graph_takes_a_moment() -> None:
    """Each artifact is looked at once, however many paths lead to it."""
    state = State(plan_id="p", project_id="q")
    for layer in range(60):
        for column in range(4):
            above = tuple(f"{layer - 1}.{c}" for c in range(4)) if layer else ()
            state.artifacts[f"{layer}.{column}"] = ArtifactSpec(id=f"{layer}.{column}", requires=above)
    state.failed["0.0"] = Failure(seq=1, at="t", error="e")
    found = statuses(state)
    assert sum(status == "blocked" for status in found.values()) == 59 * 4
