"""Pipelines as values: what a unit becomes, what a condition says, where a path leads."""

from __future__ import annotations

import pytest

from headway.core.conditions import ConditionError, holds
from headway.core.items import PathError, find
from headway.core.pipelines import Unit, change, expand, go_round, unit_problem, wanted_phases
from headway.core.plan import ArtifactSpec, Phase, Pipeline, Units

WRITE = Phase(id="write", run="true", outputs={"prose": "{unit}.md"}, pre_state=True)
REPAIR = Phase(id="repair", run="true", outputs={"prose": "{unit}.md"})
LINT = Phase(
    id="lint", run="true", outputs={"report": "{unit}.json"}, repeat=("repair", "lint"), until="report.ok", times=3
)
APPLY = Phase(id="apply", run="true", outputs={"after": "state.json"})
SCENE = Pipeline(
    name="scene", units=Units(names=("a", "b")), order="sequential", state="state.json",
    phases=(WRITE, REPAIR, LINT, APPLY),
)  # fmt: skip


def by_id(pipeline: Pipeline = SCENE, rounds: int = 1) -> dict[str, ArtifactSpec]:
    return {spec.id: spec for spec in expand(pipeline, [Unit("a"), Unit("b")], lambda unit, loop: rounds)}


def test_a_unit_becomes_artifacts_phase_by_phase() -> None:
    """Rounds have numbers, and what stands for them has the phase's name."""
    ids = [a.removeprefix("a/") for a in by_id() if a.startswith("a/")]
    assert ids == ["write", "repair~1", "lint~1", "repair", "lint", "apply"]


def test_one_path_has_one_producer_and_modifiers_in_order() -> None:
    """The state, which belongs to all units, has modifiers only."""
    specs = by_id(rounds=2)
    assert [a for a, spec in specs.items() if "a.md" in spec.produces] == ["a/write"]
    assert [a for a, spec in specs.items() if "a.md" in spec.modifies] == ["a/repair~1", "a/repair~2"]
    assert [a for a, spec in specs.items() if "state.json" in spec.modifies] == ["a/apply", "b/apply"]
    assert specs["b/write"].reads == ("state.json",)


def test_a_round_reads_what_the_round_before_wrote() -> None:
    """And what comes after the loop requires what stands for its last round."""
    specs = by_id(rounds=2)
    assert specs["a/repair~2"].requires == ("a/lint~1", "a/repair~1", "a/write")
    assert specs["a/lint"].requires == ("a/lint~2",)
    assert specs["a/apply"].requires == ("a/lint", "a/repair", "a/write")


def test_units_wait_for_each_other_only_in_sequence() -> None:
    """By order alone: what the one before made is nothing that it reads."""
    assert by_id()["b/write"].after == ("a/apply",)
    assert "a/apply" not in by_id()["b/write"].requires


def test_who_names_a_phase_also_reads_whoever_changed_its_file_since() -> None:
    """So that nobody reads an older state of it."""
    narrow = Phase(id="last", run="true", inputs=("write",))
    pipeline = Pipeline(name="p", units=Units(names=("a",)), phases=(WRITE, REPAIR, narrow))
    assert {s.id: s for s in expand(pipeline, [Unit("a")])}["a/last"].requires == ("a/repair", "a/write")


def test_going_round_once_more_changes_only_the_loop() -> None:
    """Two new artifacts, and what stands for them; and back again."""
    specs = by_id()
    more = go_round(SCENE, specs["a/lint~1"], Unit("a"), 2, 1)
    assert [spec.id for spec in more.artifacts] == ["a/repair~2", "a/lint~2", "a/repair", "a/lint"]
    less = go_round(SCENE, specs["a/lint~1"], Unit("a"), 1, 2)
    assert (less.removed, [spec.id for spec in less.artifacts]) == (("a/repair~2", "a/lint~2"), ["a/repair", "a/lint"])


def test_what_somebody_has_in_hand_stays_although_its_unit_is_gone() -> None:
    """Until it is done; the rest goes at once."""
    specs = by_id()
    found = change(SCENE, [Unit("a")], (), specs, busy=["b/write"])
    assert (found.removed, found.kept_back) == ((), True)
    free = change(SCENE, [Unit("a")], (), specs)
    assert set(free.removed) == {a for a in specs if a.startswith("b/")}


def test_a_requirement_of_all_units_names_pipeline_and_phase() -> None:
    """Wherever it stands in the plan."""
    assert wanted_phases([("scene:*/apply", "y"), ("z",)]) == {"scene": ("apply",)}


@pytest.mark.parametrize("name", ["", "../x", "a/../b", "a~1", "a*", "x:y", "a\nb", " a", "u" * 200, "é" * 100])
def test_a_unit_is_named_so_that_it_can_stand_in_paths_and_ids(name: str) -> None:
    """And says why not."""
    assert unit_problem(name)
    assert not unit_problem("ch001_sc001")


@pytest.mark.parametrize(
    ("condition", "expected"),
    [
        ('report.status == "pass"', True),
        ("report.score >= 3 and not report.errors", True),
        ("len(report.errors) > 0 or report.score < 1", False),
        ('"x" in report.tags', True),
        ("report.list[1] == 2", True),
        ("report.none == null", True),
    ],
)
def test_conditions(condition: str, expected: bool) -> None:
    """A small part of Python's expressions, over values."""
    report = {"status": "pass", "score": 3, "errors": [], "tags": ["x"], "list": [1, 2], "none": None}
    assert holds(condition, {"report": report}) is expected


@pytest.mark.parametrize(
    "condition",
    [
        "import os", "report.__class__", "open('x')", "report.nothing", "(lambda: 1)()", "[x for x in report]", "",
        "-" * 990 + "report", "not " * 240 + "report", "report" + ".a" * 400,
    ],
)  # fmt: skip
def test_what_is_no_condition_is_refused(condition: str) -> None:
    """Nothing is run, and nothing that is not there is taken for false."""
    with pytest.raises(ConditionError):
        holds(condition, {"report": {}})


@pytest.mark.parametrize(
    ("report", "what"),
    [
        ({"state": "pass", "n": 1}, "a mapping with state, n"),
        ({}, "an empty mapping"),
        ([1, 2], "a list of 2"),
        ("passed", "text, and no JSON"),
        (None, "null"),
        (3, "3"),
    ],
)
def test_a_condition_that_asks_for_what_is_not_there_says_what_is(report: object, what: str) -> None:
    """A report in another shape than expected is told from one that was not written as JSON."""
    with pytest.raises(ConditionError, match=f"there is no report.status: what is before it is {what}"):
        holds('report.status == "pass"', {"report": report})


def test_a_path_leads_to_values_and_what_is_around_them() -> None:
    """Or says where it ends."""
    value = {"scenes": [{"id": "a", "n": 1}, {"id": "b"}]}
    assert [match.value for match in find(value, "scenes[*].id")] == ["a", "b"]
    assert find(value, "scenes[0].id")[0].around == {"id": "a", "n": 1}
    for path in ("scenes[*].title", "scenes.id", "scenes[9]", "[", ".x"):
        with pytest.raises(PathError):
            find(value, path)
