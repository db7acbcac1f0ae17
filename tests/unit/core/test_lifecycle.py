"""The tables of plan and artifact: every word is known, every status can be reached and left, and work is bounded."""

from __future__ import annotations

from itertools import combinations
from typing import get_args

import pytest
from hypothesis import given

from headway.core import commands as cmd
from headway.core.events import EVENTS
from headway.core.lifecycle import (
    ARTIFACT_ROWS,
    PLAN_ROWS,
    Row,
    allowed,
    is_done,
    not_allowed,
    not_done,
    plan_after,
    recorded_status,
    stage_of,
    statuses,
)
from headway.core.plan import ArtifactSpec, PlanSpec
from headway.core.state import ArtifactStatus, Claim, Completion, Failure, PlanStatus, Skip, State
from tests.unit.core.lives import Intent, Life, lives

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


EACH = State(
    plan_id="p",
    project_id="x",
    claims={"begun": Claim(seq=1, at=""), "again": Claim(seq=1, at="")},
    failed={"failed": Failure(seq=1, at="", error="e")},
    made={"made": Completion(seq=1, at="")},
    skipped={"skipped": Skip(seq=1, at="", reason="r")},
    completed={"complete": Completion(seq=1, at=""), "again": Completion(seq=1, at="")},
)
STAGES = ("pending", "begun", "again", "failed", "made", "skipped", "complete")


@pytest.mark.parametrize("event", sorted({row.event for row in ARTIFACT_ROWS}))
@pytest.mark.parametrize("count", range(len(STAGES) + 1))
def test_what_holds_for_each_is_told_of_many(event: str, count: int) -> None:
    """Who cannot meet an event, and whom dependents have to wait for, whoever is asked about together."""
    for ids in combinations(STAGES, count):
        assert not_allowed(EACH, ids, event) == {a for a in ids if not allowed(stage_of(EACH, a), event)}
        assert not_done(EACH, ids) == {a for a in ids if not is_done(EACH, a)}


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


@given(lives)
def test_where_many_stand_is_where_each_of_them_does(intents: list[Intent]) -> None:
    """Also of what is not in the plan, which is not done."""
    life = Life()
    for intent in intents:
        life.do(intent(life.state))
        state = life.state
        if state is not None:
            ids = [*state.artifacts, "nobody"]
            for some in (ids, ids[1:2], [a for a in ids if a not in state.claims]):
                for event in ("artifact_started", "artifact_completed"):
                    barred = {a for a in some if not allowed(stage_of(state, a), event)}
                    assert not_allowed(state, some, event) == barred
                assert not_done(state, some) == {a for a in some if not is_done(state, a)}
