"""Differences between an edited file and the ledger: each named by its field, none invented."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from headway.core.plan import ArtifactSpec, Profile, Settings
from headway.core.state import Position, State
from headway.errors import PlanConflict
from headway.projections import saved_execution
from headway.projections.drift import Difference, adoption, differences, line_differences
from headway.projections.saved_execution import SavedExecution


def execution(*artifacts: ArtifactSpec, **fields: Any) -> SavedExecution:
    """A plan with these artifacts."""
    state = State(plan_id="p", project_id="q", goal="g", artifacts={a.id: a for a in artifacts}, **fields)
    return SavedExecution(state, Position(7, "f" * 32))


A, B = ArtifactSpec(id="a", produces=("a.txt",)), ArtifactSpec(id="b", requires=("a",))
WRITTEN = execution(A, B, profile=Profile(max_concurrent_tasks=2))


def edited(change: Callable[[dict[str, Any]], object]) -> bytes:
    """The file after an edit."""
    document = json.loads(saved_execution.render(WRITTEN))
    change(document)
    return json.dumps(document).encode()


def test_without_an_edit_there_is_no_difference() -> None:
    """Layout does not count, nor does the digest that no longer fits."""
    assert differences(edited(lambda plan: None), WRITTEN) == []
    assert differences(edited(lambda plan: plan.update(digest="0" * 32)), WRITTEN) == []


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        (lambda p: p.update(goal="h"), ("goal", "h", "g")),
        (lambda p: p.pop("goal"), ("goal", None, "g")),
        (lambda p: p.update(mine=1), ("mine", 1, None)),
        (lambda p: p["graph"]["artifacts"]["b"].update(requires=["z"]), ("graph.artifacts.b.requires[0]", "z", "a")),
        (lambda p: p["graph"]["artifacts"]["b"].update(requires=[]), ("graph.artifacts.b.requires", [], ["a"])),
        (lambda p: p["execution_profile"].update(locked=1), ("execution_profile.locked", 1, False)),
        (lambda p: p["position"].update(seq=8), ("position.seq", 8, 7)),
        (lambda p: p["metrics"].update(total_artifacts=9), ("metrics.total_artifacts", 9, 2)),
    ],
)
def test_each_edit_is_named_by_its_field(change: Callable[[dict[str, Any]], object], expected: tuple[Any, ...]) -> None:
    """Changed, missing and added fields are told with both values."""
    assert differences(edited(change), WRITTEN) == [Difference(*expected)]


def test_another_order_of_artifacts_is_an_edit() -> None:
    """The plan's order is part of the plan."""

    def turn(plan: dict[str, Any]) -> None:
        plan["graph"]["artifacts"] = dict(reversed(plan["graph"]["artifacts"].items()))

    (found,) = differences(edited(turn), WRITTEN)
    assert found == Difference("graph.artifacts, their order", ["b", "a"], ["a", "b"])
    assert adoption(edited(turn), WRITTEN, WRITTEN).merged.change.order == ("b", "a")


def test_a_difference_is_a_sentence() -> None:
    """Long values are cut; nothing is called nothing."""
    assert str(Difference("goal", "h", None)) == 'goal: "h" in the file, nothing in the ledger'
    assert len(str(Difference("goal", "h" * 500, "g" * 500))) < 200


def test_text_is_compared_line_by_line() -> None:
    """Lines that were added or are gone are told; the first line, which is ours, is not."""
    found = line_differences(b"<!-- x -->\nmine\nsame\n", b"<!-- y -->\nsame\nours\n")
    assert found == [Difference("line", "mine", None), Difference("line", None, "ours")]


def test_an_adoption_holds_what_was_edited_and_nothing_else() -> None:
    """What the ledger has gained since is left out of the change."""
    data = edited(lambda plan: plan["graph"]["artifacts"]["a"].update(description="mine"))
    now = execution(A, B, ArtifactSpec(id="c"), profile=WRITTEN.state.profile, settings=Settings(jobs=3))
    change = adoption(data, WRITTEN, now).merged.change
    assert [spec.description for spec in change.update] == ["mine"]
    assert (change.add, change.remove) == ((), ())
    assert change.settings == Settings(jobs=3)


def test_what_both_sides_changed_is_a_conflict() -> None:
    """The user decides between the file and the ledger."""
    data = edited(lambda plan: plan.update(goal="mine"))
    now = SavedExecution(
        State(plan_id="p", project_id="q", goal="theirs", artifacts={"a": A, "b": B}), WRITTEN.position
    )
    with pytest.raises(PlanConflict) as error:
        adoption(data, WRITTEN, now)
    assert error.value.facts["changed on both sides"] == "goal"


def test_progress_and_origin_are_refused() -> None:
    """Only goal, structure, settings and profile are a plan; the rest is told."""

    def change(plan: dict[str, Any]) -> None:
        plan["goal"] = "mine"
        plan["execution"]["skipped"] = ["a"]
        plan["created_at"] = "yesterday"

    found = adoption(edited(change), WRITTEN, WRITTEN)
    assert found.merged.change.goal == "mine"
    assert [difference.field for difference in found.refused] == ["created_at", "execution.skipped"]
