"""What making takes, before it is made: spans, schedules, and when to ask."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headway.core.graph import ArtifactGraph
from headway.core.plan import ArtifactSpec, Settings
from headway.core.state import Run, State
from headway.engine.asking import OLD, ask_first, kind_of, warn_of_age
from headway.engine.estimates import Span, makespan, median

NOW = datetime(2026, 11, 15, 12, tzinfo=UTC)


@st.composite
def graphs(draw: st.DrawFn) -> tuple[ArtifactGraph, dict[str, int]]:
    """A graph without cycles, and a time for each of its artifacts."""
    size = draw(st.integers(1, 12))
    specs = []
    for n in range(size):
        needs = draw(st.sets(st.integers(0, n - 1), max_size=3)) if n else set()
        specs.append(ArtifactSpec(id=f"n{n}", requires=tuple(f"n{m}" for m in sorted(needs))))
    return ArtifactGraph(specs), {spec.id: draw(st.integers(0, 50)) for spec in specs}


def critical_path(graph: ArtifactGraph, times: dict[str, int]) -> int:
    """The longest chain, the slow way: plan order is dependency order here."""
    ends: dict[str, int] = {}
    for artifact_id in graph:
        ends[artifact_id] = times[artifact_id] + max((ends[r] for r in graph[artifact_id].requires), default=0)
    return max(ends.values())


@given(graphs(), st.integers(1, 5))
def test_a_schedule_is_neither_faster_nor_slower_than_possible(
    drawn: tuple[ArtifactGraph, dict[str, int]], jobs: int
) -> None:
    """At least the longest chain and the fair share; at most one after the other; Graham's bound in between."""
    graph, times = drawn
    took = makespan(graph, times, jobs)
    total, chain = sum(times.values()), critical_path(graph, times)
    assert max(chain, -(-total // jobs)) <= took <= total
    assert took <= total / jobs + chain * (1 - 1 / jobs) + 1e-9


@given(graphs())
def test_one_at_a_time_takes_the_sum(drawn: tuple[ArtifactGraph, dict[str, int]]) -> None:
    """Nothing overlaps."""
    graph, times = drawn
    assert makespan(graph, times, 1) == sum(times.values())


def test_what_is_not_to_be_made_holds_nobody_up() -> None:
    """Only what has a time counts; a requirement that is fresh is there already."""
    graph = ArtifactGraph([ArtifactSpec(id="a"), ArtifactSpec(id="b", requires=("a",))])
    assert makespan(graph, {"b": 7}, 2) == 7
    assert makespan(graph, {}, 2) == 0


@pytest.mark.parametrize(("samples", "middle"), [([3], 3), ([1, 9, 2], 2), ([1, 2, 3, 10], 2.5)])
def test_the_median_is_the_one_in_the_middle(samples: list[int], middle: float) -> None:
    """Or between the two."""
    assert median(samples) == middle
    assert Span.of(samples) == (round(middle), min(samples), max(samples))


def test_the_kind_of_an_artifact_is_how_it_is_made() -> None:
    """By its recipe, or by whom it names."""
    made = [ArtifactSpec(id="a", run="x"), ArtifactSpec(id="a", make="m:f"), ArtifactSpec(id="a", agent="coder")]
    assert [kind_of(spec) for spec in (*made, ArtifactSpec(id="a"))] == ["command", "function", "agent", "hand"]


def state(*, planned: datetime | None = None, ran: datetime | None = None, confirm_above: float = 1.0) -> State:
    """A plan that a model made at some time, and that was run at some other."""
    return State(
        plan_id="p",
        project_id="q",
        settings=Settings(planned_by="a model" if planned else "", confirm_above=confirm_above),
        planned_at=planned.isoformat() if planned else "",
        run=Run(id="r", seq=3, at=ran.isoformat()) if ran else None,
    )


@pytest.mark.parametrize(
    ("costs", "limit", "code"),
    [
        ([], 1.0, ""),
        ([0.4, 0.5], 1.0, ""),
        ([0.6, 0.5], 1.0, "cost"),
        ([0.1], 0.05, "cost"),
        ([0.1, None], 1.0, "cost_unknown"),
    ],
)
def test_it_asks_before_it_spends(costs: list[float | None], limit: float, code: str) -> None:
    """More than confirm_above, or nobody can tell how much. Commands and functions have no cost to ask about."""
    question = ask_first(state(confirm_above=limit), ["a", "b"], costs)
    assert (question.code if question else "") == code


def test_it_asks_before_it_makes_what_a_model_planned() -> None:
    """Until it has been run once since it was planned; and not where there is nothing to make."""
    planned = state(planned=NOW)
    question = ask_first(planned, ["a"], [])
    assert question is not None
    assert question.code == "planned"
    assert ask_first(planned, [], []) is None
    assert ask_first(state(planned=NOW, ran=NOW + timedelta(seconds=1)), ["a"], []) is None
    assert ask_first(state(planned=NOW, ran=NOW - timedelta(seconds=1)), ["a"], []) is not None
    assert ask_first(state(), ["a"], []) is None


def test_it_warns_once_of_a_plan_that_a_model_made_a_day_ago() -> None:
    """Not earlier, not of people's plans, and not again after a run that has said so."""
    assert "25 h ago" in warn_of_age(state(planned=NOW), NOW + OLD + timedelta(hours=1))
    assert warn_of_age(state(planned=NOW), NOW + OLD - timedelta(seconds=1)) == ""
    assert warn_of_age(state(), NOW) == ""
    ran_early, ran_late = NOW + timedelta(hours=1), NOW + OLD + timedelta(minutes=1)
    assert warn_of_age(state(planned=NOW, ran=ran_early), NOW + 2 * OLD) != ""
    assert warn_of_age(state(planned=NOW, ran=ran_late), NOW + 2 * OLD) == ""
