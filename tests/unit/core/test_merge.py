"""A plan file is a proposal: only what changed in it changes the plan, and what both sides changed is asked about."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from headway.core import commands as cmd
from headway.core.decide import Rejection
from headway.core.merge import merge
from headway.core.plan import ArtifactSpec, PlanSpec, Profile, Settings
from headway.core.state import Proposal, State
from tests.unit.core.lives import IDS, Life, some_plans

PROPOSAL = Proposal(path="headway.yaml", source="s", blob="b")


def spec(name: str, text: str = "") -> ArtifactSpec:
    """An artifact that can be told apart."""
    return ArtifactSpec(id=name, description=text)


def plan(*artifacts: ArtifactSpec, goal: str = "g", profile: Profile | None = None, **settings: Any) -> PlanSpec:
    """A proposal."""
    return PlanSpec(goal=goal, artifacts=artifacts, profile=profile, settings=Settings(**settings))


def born(base: PlanSpec) -> Life:
    """A plan as this proposal made it."""
    life = Life()
    life.do(cmd.CreatePlan(plan_id="p", project_id="q", plan=base, proposal=PROPOSAL))
    return life


def now(life: Life) -> State:
    """Its state."""
    assert life.state is not None
    return life.state


def take(life: Life, base: PlanSpec, new: PlanSpec, how: str = "") -> Rejection | list[str]:
    """Take a changed file in; the types of the events, without the one that says so."""
    changed = msgspec.structs.replace(PROPOSAL, source="other")
    outcome = life.do(cmd.TakeProposal(base=base, plan=new, proposal=changed, take=how))
    if isinstance(outcome, Rejection):
        return outcome
    return [record.event.type for record in outcome if record.event.type != "proposal_taken"]


def unique(proposed: PlanSpec) -> PlanSpec:
    """Of artifacts with one id the first."""
    found: dict[str, ArtifactSpec] = {}
    for one in proposed.artifacts:
        found.setdefault(one.id, one)
    return msgspec.structs.replace(proposed, artifacts=tuple(found.values()))


@given(
    some_plans,
    st.lists(st.builds(cmd.ChangePlan, goal=st.text(max_size=3), remove=st.sampled_from(IDS).map(lambda i: (i,)))),
)
def test_an_unchanged_file_changes_nothing(base: PlanSpec, changes: list[cmd.ChangePlan]) -> None:
    """Whatever was done to the plan since then stands."""
    life = born(base)
    for change in changes:
        life.do(change)
    merged = merge(base, base, now(life))
    assert merged.conflicts == []
    before = now(life).copy()
    assert take(life, base, base) == []
    assert msgspec.structs.replace(now(life), proposal=None, updated_at="") == msgspec.structs.replace(
        before, proposal=None, updated_at=""
    )


@given(some_plans, some_plans)
def test_where_nobody_else_changed_anything_the_file_is_the_plan(base: PlanSpec, new: PlanSpec) -> None:
    """Goal, settings, artifacts and their order end up as the file has them; nothing is a conflict."""
    base, new = unique(msgspec.structs.replace(base, profile=None)), unique(msgspec.structs.replace(new, profile=None))
    life = born(base)
    assert not isinstance(take(life, base, new), Rejection)
    state = now(life)
    assert (state.goal, state.settings) == (new.goal, new.settings)
    assert tuple(state.artifacts.values()) == new.artifacts


@given(some_plans, some_plans, st.sampled_from(("file", "ledger")))
def test_a_settled_conflict_leaves_each_artifact_as_one_side_had_it(base: PlanSpec, new: PlanSpec, how: str) -> None:
    """With a word about who wins nothing is mixed: every artifact is the file's, or the ledger's, or gone."""
    base, new = unique(msgspec.structs.replace(base, profile=None)), unique(msgspec.structs.replace(new, profile=None))
    life = born(base)
    life.do(cmd.ChangePlan(update=tuple(msgspec.structs.replace(s, contract="ledger") for s in base.artifacts)))
    before = dict(now(life).artifacts)
    assert not isinstance(take(life, base, new, how), Rejection)
    wanted = {s.id: s for s in new.artifacts}
    was = {s.id: s for s in base.artifacts}
    for artifact_id in {*before, *wanted}:
        has = now(life).artifacts.get(artifact_id)
        if wanted.get(artifact_id) == was.get(artifact_id):
            assert has == before.get(artifact_id)
        elif how == "file" or artifact_id not in was:
            assert has == wanted.get(artifact_id)
        else:
            assert has == before.get(artifact_id)


BASE = plan(spec("a"), spec("b"), spec("c"))


def test_what_only_the_ledger_has_survives_a_changed_file() -> None:
    """Artifacts added, changed or removed by others stay so, in their place, when the file changes elsewhere."""
    life = born(BASE)
    life.do(cmd.ChangePlan(add=(spec("x"),), update=(spec("b", "by an agent"),), order=("a", "x", "b", "c")))
    assert take(life, BASE, plan(spec("a", "by the file"), spec("b"), spec("c"), goal="h")) == [
        "goal_changed",
        "artifact_updated",
    ]
    state = now(life)
    assert list(state.artifacts) == ["a", "x", "b", "c"]
    assert (state.artifacts["a"].description, state.artifacts["b"].description) == ("by the file", "by an agent")


def test_a_variable_that_was_set_is_in_no_others_way() -> None:
    """The file may change, add and remove other variables; the one that was set stays as it was set."""
    base = plan(spec("a"), vars={"n": 7, "m": 1, "gone": 1})
    life = born(base)
    life.do(cmd.ChangePlan(settings=Settings(vars={"n": 8, "m": 1, "gone": 1})))
    assert take(life, base, plan(spec("a"), vars={"n": 7, "m": 2, "new": 1})) == ["plan_updated"]
    assert now(life).settings.vars == {"n": 8, "m": 2, "new": 1}


@pytest.mark.parametrize(("who", "value"), [("", 9), ("file", 9), ("ledger", 8)])
def test_a_variable_that_was_set_stays_so_until_the_file_changes_it(who: str, value: int) -> None:
    """As whoever sets it is told; nobody is asked, unless the ledger is to be taken."""
    base = plan(spec("a"), vars={"n": 7})
    life = born(base)
    life.do(cmd.ChangePlan(settings=Settings(vars={"n": 8})))
    take(life, base, plan(spec("a"), vars={"n": 9}), who)
    assert now(life).settings.vars == {"n": value}


@pytest.mark.parametrize(
    ("ledger", "new", "conflict"),
    [
        (cmd.ChangePlan(update=(spec("a", "l"),)), plan(spec("a", "f"), spec("b"), spec("c")), "a"),
        (cmd.ChangePlan(update=(spec("a", "l"),)), plan(spec("b"), spec("c")), "a"),
        (cmd.ChangePlan(remove=("a",)), plan(spec("a", "f"), spec("b"), spec("c")), "a"),
        (cmd.ChangePlan(add=(spec("x", "l"),)), plan(spec("a"), spec("b"), spec("c"), spec("x", "f")), "x"),
        (cmd.ChangePlan(goal="l"), plan(spec("a"), spec("b"), spec("c"), goal="f"), "goal"),
        (cmd.ChangePlan(settings=Settings(jobs=2)), plan(spec("a"), spec("b"), spec("c"), jobs=3), "jobs"),
    ],
    ids=[
        "changed on both sides",
        "deleted in the file",
        "removed from the ledger",
        "added on both",
        "goal",
        "setting",
    ],
)
def test_what_both_sides_changed_is_a_conflict(ledger: cmd.ChangePlan, new: PlanSpec, conflict: str) -> None:
    """It is refused as a whole until the user says who wins, and either word settles it."""
    life = born(BASE)
    life.do(ledger)
    before = now(life).copy()
    outcome = take(life, BASE, new)
    assert isinstance(outcome, Rejection)
    assert (outcome.code, outcome.facts) == ("plan.conflict", {"changed on both sides": conflict})
    assert now(life) == before
    assert take(life, BASE, new, "ledger") == []
    other = born(BASE)
    other.do(ledger)
    assert take(other, BASE, new, "file") != []


def test_the_same_change_on_both_sides_is_no_conflict() -> None:
    """Who agrees need not be asked."""
    life = born(BASE)
    life.do(cmd.ChangePlan(goal="h", update=(spec("a", "same"),)))
    assert take(life, BASE, plan(spec("a", "same"), spec("b"), spec("c"), goal="h")) == []


def test_an_artifact_deleted_in_the_file_is_removed() -> None:
    """Deleting it counts as saying so."""
    life = born(BASE)
    assert take(life, BASE, plan(spec("a"), spec("c"))) == ["artifact_removed"]
    assert list(now(life).artifacts) == ["a", "c"]


def test_a_new_artifact_stands_where_the_file_has_it() -> None:
    """Order is the file's for what it names."""
    life = born(BASE)
    take(life, BASE, plan(spec("a"), spec("new"), spec("b"), spec("c")))
    assert list(now(life).artifacts) == ["a", "new", "b", "c"]


def test_an_order_that_others_chose_stands_while_the_file_keeps_its_own() -> None:
    """A file whose order did not change does not undo a reordering."""
    life = born(BASE)
    life.do(cmd.ChangePlan(order=("c", "b", "a")))
    assert take(life, BASE, plan(spec("a", "new text"), spec("b"), spec("c"))) == ["artifact_updated"]
    assert list(now(life).artifacts) == ["c", "b", "a"]


# The profile.


def test_a_profile_in_the_file_is_set_when_it_changes_there() -> None:
    """And locked, if the file newly says so."""
    life = born(BASE)
    wide = Profile(parallelization_enabled=True, max_concurrent_tasks=4)
    second = msgspec.structs.replace(BASE, profile=wide)
    assert take(life, BASE, second) == ["profile_set"]
    third = msgspec.structs.replace(BASE, profile=msgspec.structs.replace(wide, locked=True))
    assert take(life, second, third) == ["profile_locked"]
    assert take(life, third, second) == []
    assert now(life).profile == third.profile


def test_a_lock_that_a_reset_opened_is_not_closed_by_an_unrelated_change() -> None:
    """The file said `locked` before and says nothing new about it."""
    base = msgspec.structs.replace(BASE, profile=Profile(max_concurrent_tasks=3, locked=True))
    life = born(base)
    life.do(cmd.ResetPlan())
    assert take(life, base, msgspec.structs.replace(base, goal="h")) == ["goal_changed"]
    assert now(life).profile == Profile(max_concurrent_tasks=3)


def test_a_locked_profile_is_not_changed_by_the_file() -> None:
    """The change is refused, and with it the whole proposal."""
    base = msgspec.structs.replace(BASE, profile=Profile(locked=True))
    life = born(base)
    new = msgspec.structs.replace(base, goal="h", profile=Profile(max_concurrent_tasks=9, locked=True))
    outcome = take(life, base, new)
    assert isinstance(outcome, Rejection)
    assert outcome.code == "profile.locked"
    assert now(life).goal == "g"
