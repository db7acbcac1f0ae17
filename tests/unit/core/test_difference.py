"""How two plans differ: artifact by artifact, key by key."""

from __future__ import annotations

from headway.core.difference import compare_plans
from headway.core.plan import ArtifactSpec, PlanSpec, Profile, Settings


def plan(*artifacts: ArtifactSpec, goal: str = "g", **settings: object) -> PlanSpec:
    return PlanSpec(goal=goal, id="p", settings=Settings(**settings), artifacts=artifacts)  # type: ignore[arg-type]  # its own keys


A, B, C = ArtifactSpec(id="a", run="x"), ArtifactSpec(id="b"), ArtifactSpec(id="c")


def test_equal_plans_do_not_differ() -> None:
    """Under whatever id."""
    assert not compare_plans(plan(A, B), PlanSpec(goal="g", id="other", artifacts=(A, B)))


def test_artifacts_come_go_and_change() -> None:
    """A changed one by the keys that changed, mappings key by key."""
    changed = ArtifactSpec(id="a", run="y", metadata={"k": 1})
    found = compare_plans(plan(A, B), plan(changed, C))
    assert (found.added, found.removed) == (["c"], ["b"])
    assert found.modified == {"a": [("run", "x", "y"), ("metadata.k", None, 1)]}
    assert found.to_dict()["modified"]["a"][0] == {"key": "run", "was": "x", "now": "y"}


def test_the_plan_itself_changes_by_its_keys() -> None:
    """Goal, profile, settings; variables one by one."""
    before = plan(A, vars={"x": 1, "y": 2}, jobs=2)
    after = PlanSpec(
        goal="h", id="p", settings=Settings(vars={"x": 1, "y": 3}), profile=Profile(), artifacts=before.artifacts
    )
    keys = [(c.key, c.was, c.now) for c in compare_plans(before, after).settings]
    assert keys == [("goal", "g", "h"), ("profile", None, Profile()), ("vars.y", 2, 3), ("jobs", 2, None)]


def test_another_order_is_a_difference() -> None:
    """And only of those that both have."""
    assert compare_plans(plan(A, B), plan(B, A)).reordered
    assert not compare_plans(plan(A, B), plan(C, A, B)).reordered
