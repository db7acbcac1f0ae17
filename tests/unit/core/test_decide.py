"""Rules: what is allowed, what is refused, and with which code. A refusal changes nothing."""

from __future__ import annotations

from typing import Any

import pytest

from headway.core import commands as cmd
from headway.core.decide import Rejection, decide, decide_together
from headway.core.events import ArtifactCompleted, Record
from headway.core.plan import ArtifactSpec, Gate, PlanSpec, Profile
from headway.core.state import Export, Output, State
from tests.unit.core.lives import Life


def life(*artifacts: ArtifactSpec, profile: Profile | None = None) -> Life:
    """A plan with these artifacts."""
    born = Life()
    plan = PlanSpec(goal="g", artifacts=artifacts, profile=profile)
    happened(born, cmd.CreatePlan(plan_id="p", project_id="q", plan=plan))
    return born


def happened(life: Life, command: cmd.Command) -> list[Record]:
    """The events of a command that is allowed."""
    outcome = life.do(command)
    assert not isinstance(outcome, Rejection), outcome
    return outcome


def refused(life: Life, command: cmd.Command) -> Rejection:
    """The rejection of a command; the state is as it was."""
    before = life.state.copy() if life.state else None
    outcome = life.do(command)
    assert isinstance(outcome, Rejection), outcome
    assert life.state == before
    return outcome


def state(life: Life) -> State:
    """The state of a plan that exists."""
    assert life.state is not None
    return life.state


def made(life: Life, artifact_id: str) -> None:
    """Start it and complete it."""
    token = happened(life, cmd.StartArtifacts(ids=(artifact_id,)))[0].seq
    happened(life, cmd.CompleteArtifact(id=artifact_id, token=token))


A, B = ArtifactSpec(id="a", milestone="m"), ArtifactSpec(id="b", milestone="m", requires=("a",))


# Plans.


def test_nothing_happens_to_a_plan_that_does_not_exist() -> None:
    """Every command but the two that create one is refused, as bad usage."""
    outcome = decide(None, cmd.ChangePlan(goal="x"))
    assert isinstance(outcome, Rejection)
    assert (outcome.code, outcome.kind) == ("plan.none", "usage")


def test_a_plan_is_created_once() -> None:
    """A second creation is refused, whatever it proposes."""
    assert refused(life(A), cmd.CreatePlan(plan_id="p", project_id="q", plan=PlanSpec(goal="h"))).code == "plan.exists"


def test_of_two_artifacts_with_one_id_the_first_counts() -> None:
    """A draft with problems can be saved; its order is that of first mention."""
    born = life(A, ArtifactSpec(id="b"), ArtifactSpec(id="a", description="again"))
    assert list(state(born).artifacts) == ["a", "b"]
    assert state(born).artifacts["a"] == A


def test_an_import_replaces_a_plan_only_when_told_to() -> None:
    """A checkpoint is not taken over an existing plan by accident."""
    born = life(A)
    other = State(plan_id="x", project_id="y", goal="imported")
    command = cmd.ImportPlan(plan_id="p", project_id="q", source="PLAN.json", state=other)
    assert refused(born, command).code == "plan.exists"
    happened(born, cmd.ImportPlan(plan_id="p", project_id="q", source="PLAN.json", state=other, replace=True))
    assert (state(born).goal, state(born).plan_id, state(born).project_id) == ("imported", "p", "q")


def test_an_import_brings_no_claims() -> None:
    """Whoever made something elsewhere does not make it here; what came of those attempts is uncertain."""
    source = life(A, ArtifactSpec(id="mail", effects="external"))
    made(source, "a")
    happened(source, cmd.StartArtifacts(ids=("a", "mail")))
    born = Life()
    happened(born, cmd.ImportPlan(plan_id="p", project_id="q", source="x", state=state(source)))
    assert state(born).claims == {}
    assert set(state(born).uncertain) == {"a", "mail"}
    assert state(born).open == {"m": 0}


def test_a_closed_plan_is_put_away_until_it_is_reset() -> None:
    """Nothing changes it but a reset; an export is still recorded."""
    born = life(A)
    happened(born, cmd.StartArtifacts(ids=("a",)))
    happened(born, cmd.ClosePlan(reason="done with it"))
    assert state(born).status == "closed"
    assert state(born).claims == {}
    for command in (cmd.ChangePlan(goal="x"), cmd.StartArtifacts(ids=("a",)), cmd.ClosePlan(), cmd.StartRun(run="r")):
        assert refused(born, command).code == "plan.closed"
    happened(born, cmd.RecordExport(export=Export(path="x", at="t", seq=1, hash="h")))
    happened(born, cmd.ResetPlan())
    assert (state(born).status, state(born).closed) == ("draft", "")


# Structure.


@pytest.mark.parametrize(
    ("command", "code"),
    [
        (cmd.ChangePlan(remove=("x",)), "artifact.unknown"),
        (cmd.ChangePlan(update=(ArtifactSpec(id="x"),)), "artifact.unknown"),
        (cmd.ChangePlan(add=(ArtifactSpec(id="a"),)), "plan.duplicate"),
        (cmd.ChangePlan(add=(ArtifactSpec(id="x"), ArtifactSpec(id="x"))), "plan.duplicate"),
        (cmd.ChangePlan(update=(A, A)), "plan.duplicate"),
        (cmd.ChangePlan(remove=("a",), update=(A,)), "plan.duplicate"),
        (cmd.ChangePlan(order=("a",)), "plan.order"),
        (cmd.ChangePlan(order=("a", "b", "b")), "plan.order"),
    ],
)
def test_a_change_that_makes_no_sense_is_bad_usage(command: cmd.ChangePlan, code: str) -> None:
    """Unknown ids, ids twice and incomplete orders are refused as a whole."""
    rejection = refused(life(A, B), command)
    assert (rejection.code, rejection.kind) == (code, "usage")


def test_what_somebody_is_making_is_not_changed_under_their_hands() -> None:
    """It may well be changed later."""
    born = life(A, B)
    happened(born, cmd.StartArtifacts(ids=("a",)))
    for command in (cmd.ChangePlan(remove=("a",)), cmd.ChangePlan(update=(ArtifactSpec(id="a", contract="c"),))):
        rejection = refused(born, command)
        assert (rejection.code, rejection.kind) == ("claim.held", "later")


def test_a_change_that_changes_nothing_appends_nothing() -> None:
    """The same goal, the same settings, the same artifact and the same order are no events."""
    born = life(A, B)
    same = cmd.ChangePlan(goal="g", settings=state(born).settings, update=(A, B), order=("a", "b"))
    assert happened(born, same) == []


def test_an_artifact_removed_and_added_begins_anew() -> None:
    """What was completed under its old name does not count."""
    born = life(A, B)
    made(born, "a")
    happened(born, cmd.ChangePlan(remove=("a", "a"), add=(ArtifactSpec(id="a"),)))
    assert state(born).completed == {}
    assert list(state(born).artifacts) == ["b", "a"]


# Work.


def test_an_artifact_waits_for_what_it_requires() -> None:
    """It may be started when all of that is complete or skipped, and by one at a time."""
    born = life(A, B)
    assert refused(born, cmd.StartArtifacts(ids=("b",))).code == "artifact.waiting"
    happened(born, cmd.StartArtifacts(ids=("a",)))
    assert refused(born, cmd.StartArtifacts(ids=("b",))).code == "artifact.waiting"
    assert refused(born, cmd.StartArtifacts(ids=("a",))).code == "claim.held"
    happened(born, cmd.ReleaseArtifacts(ids=("a", "a"), reason="r"))
    happened(born, cmd.SkipArtifacts(ids=("a", "a"), reason="not needed"))
    happened(born, cmd.StartArtifacts(ids=("b", "b")))
    assert set(state(born).claims) == {"b"}


def test_exactly_one_completion_is_accepted() -> None:
    """Only who holds the claim may end it: an old token is refused, whether to complete, fail or record a step."""
    born = life(A)
    old = happened(born, cmd.StartArtifacts(ids=("a",)))[0].seq
    happened(born, cmd.ReleaseArtifacts(ids=("a",), reason="its lease ran out"))
    new = happened(born, cmd.StartArtifacts(ids=("a",)))[0].seq
    assert new > old
    for command in (cmd.CompleteArtifact(id="a", token=old), cmd.FailArtifact(id="a", token=old, error="e")):
        assert refused(born, command).code == "claim.lost"
    happened(born, cmd.CompleteArtifact(id="a", token=new))
    assert refused(born, cmd.CompleteArtifact(id="a", token=new)).code == "claim.lost"


def test_what_ended_together_is_completed_together() -> None:
    """The same events in the same order as one by one: a milestone stands right behind the last of its artifacts."""
    plan = (A, ArtifactSpec(id="b", milestone="m"), ArtifactSpec(id="c"), ArtifactSpec(id="d", milestone="n"))
    together, alone = life(*plan), life(*plan)
    for born in (together, alone):
        token = happened(born, cmd.StartArtifacts(ids=("a", "b", "c", "d"), run="r"))[0].seq
    came = tuple(ArtifactCompleted(id=a, token=token, ms=1) for a in "abcd")
    events = [record.event for record in happened(together, cmd.CompleteArtifacts(came=came))]
    one_by_one = [
        record.event for a in "abcd" for record in happened(alone, cmd.CompleteArtifact(id=a, token=token, ms=1))
    ]
    assert events == one_by_one
    assert [event.type for event in events].count("milestone_completed") == 2
    assert state(together).claims == {}


@pytest.mark.parametrize(
    ("other", "code"),
    [
        ({"id": "b", "token": 1}, "claim.lost"),
        ({"id": "a"}, "artifact.alone"),
        ({"id": "gated"}, "artifact.alone"),
        ({"id": "b", "note": "said"}, "artifact.alone"),
        ({"id": "nobody"}, "artifact.unknown"),
    ],
    ids=["an old token", "twice", "gates", "more to say", "unknown"],
)
def test_of_what_ended_together_all_is_recorded_or_nothing(other: dict[str, Any], code: str) -> None:
    """If one of them has to be told by itself, none is completed."""
    gated = ArtifactSpec(id="gated", gates=(Gate(name="review"),))
    born = life(A, ArtifactSpec(id="b"), gated)
    token = happened(born, cmd.StartArtifacts(ids=("a", "b", "gated"), run="r"))[0].seq
    came = (ArtifactCompleted(id="a", token=token), ArtifactCompleted(**{"token": token, **other}))
    assert refused(born, cmd.CompleteArtifacts(came=came)).code == code


def test_making_a_complete_artifact_again_does_not_undo_its_completion() -> None:
    """While it is made again, and after a failure, its last completion is still known."""
    born = life(A)
    made(born, "a")
    first = state(born).completed["a"]
    token = happened(born, cmd.StartArtifacts(ids=("a",)))[0].seq
    happened(born, cmd.FailArtifact(id="a", token=token, error="e"))
    assert state(born).completed["a"] == first
    assert "a" in state(born).failed
    happened(born, cmd.ChangePlan(goal="on"))
    made(born, "a")
    assert state(born).failed == {}


def test_a_skipped_artifact_keeps_its_last_output() -> None:
    """Dependents go on with it; and skipping twice, or without a reason, is no event."""
    born = life(A)
    token = happened(born, cmd.StartArtifacts(ids=("a",)))[0].seq
    happened(born, cmd.CompleteArtifact(id="a", token=token, outputs=(Output("x", "d" * 64),)))
    assert refused(born, cmd.SkipArtifacts(ids=("a",), reason=" ")).code == "skip.reason"
    happened(born, cmd.SkipArtifacts(ids=("a", "a"), reason="r"))
    skip = state(born).skipped["a"]
    assert skip.last is not None
    assert skip.last.outputs == (Output("x", "d" * 64),)
    assert happened(born, cmd.SkipArtifacts(ids=("a",), reason="again")) == []


def test_a_milestone_is_completed_with_its_last_artifact() -> None:
    """Once, in the same commit, whether by completing, skipping or accepting."""
    born = life(A, B)
    made(born, "a")
    token = happened(born, cmd.StartArtifacts(ids=("b",)))[0].seq
    types = [r.event.type for r in happened(born, cmd.CompleteArtifact(id="b", token=token))]
    assert types == ["artifact_completed", "milestone_completed"]
    made(born, "b")
    assert sum(r.event.type == "milestone_completed" for r in born.records) == 1
    other = life(A, ArtifactSpec(id="b", milestone="m"))
    types = [r.event.type for r in happened(other, cmd.SkipArtifacts(ids=("a", "b", "a"), reason="r"))]
    assert types == ["artifact_skipped", "milestone_completed"]


def test_a_new_run_releases_what_a_dead_one_held() -> None:
    """Claims of a run that ended without a word are given up; those of people are not."""
    born = life(A, ArtifactSpec(id="c"))
    happened(born, cmd.StartRun(run="r1"))
    happened(born, cmd.StartArtifacts(ids=("a",), run="r1"))
    happened(born, cmd.StartArtifacts(ids=("c",)))
    happened(born, cmd.StartRun(run="r2"))
    assert set(state(born).claims) == {"c"}
    assert refused(born, cmd.EndRun(run="r1", status="completed")).code == "run.none"
    happened(born, cmd.EndRun(run="r2", status="paused", reason="enough"))
    assert state(born).status == "paused"


# The profile: SDUR-40 to 48.


def test_a_profile_is_fail_closed() -> None:
    """Its four fields default to: one at a time, no council in parallel, not locked."""
    assert Profile() == Profile(
        parallelization_enabled=False, max_concurrent_tasks=1, council_parallel=False, locked=False
    )
    assert Profile(max_concurrent_tasks=8).limit == 1
    assert Profile(max_concurrent_tasks=8, parallelization_enabled=True).limit == 8


@pytest.mark.parametrize("number", [-1, 0, 65, 1000])
def test_concurrency_is_a_number_from_one_to_sixty_four(number: int) -> None:
    """Anything else is bad usage, in a new plan and in an existing one."""
    wrong = Profile(max_concurrent_tasks=number)
    assert refused(life(A), cmd.SetProfile(profile=wrong)).code == "profile.invalid"
    outcome = decide(None, cmd.CreatePlan(plan_id="p", project_id="q", plan=PlanSpec(goal="g", profile=wrong)))
    assert isinstance(outcome, Rejection)


@pytest.mark.parametrize("number", [1, 64])
def test_both_ends_of_the_range_are_allowed(number: int) -> None:
    """One and sixty-four are numbers from one to sixty-four."""
    born = life(A)
    happened(born, cmd.SetProfile(profile=Profile(max_concurrent_tasks=number)))
    assert state(born).profile == Profile(max_concurrent_tasks=number)


def test_a_locked_profile_stands() -> None:
    """Another value, or the same one unlocked, is refused; the same value again is accepted without an event."""
    born = life(A)
    locked = Profile(parallelization_enabled=True, max_concurrent_tasks=4, locked=True)
    types = [r.event.type for r in happened(born, cmd.SetProfile(profile=locked))]
    assert types == ["profile_set", "profile_locked"]
    for other in (Profile(), Profile(parallelization_enabled=True, max_concurrent_tasks=4), Profile(locked=True)):
        assert refused(born, cmd.SetProfile(profile=other)).code == "profile.locked"
    assert happened(born, cmd.SetProfile(profile=locked)) == []


def test_a_profile_can_be_locked_as_it_is() -> None:
    """Locking alone is one event."""
    born = life(A, profile=Profile(max_concurrent_tasks=3))
    happened(born, cmd.SetProfile(profile=Profile(max_concurrent_tasks=3, locked=True)))
    assert born.records[-1].event.type == "profile_locked"
    assert state(born).profile == Profile(max_concurrent_tasks=3, locked=True)


def test_only_a_reset_unlocks_a_profile() -> None:
    """It withdraws all progress, keeps the values and the structure, and waits for whoever is at work."""
    born = life(A, profile=Profile(max_concurrent_tasks=3, locked=True))
    happened(born, cmd.StartArtifacts(ids=("a",)))
    assert refused(born, cmd.ResetPlan()).code == "claim.held"
    happened(born, cmd.ReleaseArtifacts(ids=("a",), reason="r"))
    made(born, "a")
    happened(born, cmd.ResetPlan())
    assert state(born).profile == Profile(max_concurrent_tasks=3, locked=False)
    assert (state(born).completed, list(state(born).artifacts), state(born).open) == ({}, ["a"], {"m": 1})
    happened(born, cmd.SetProfile(profile=Profile(max_concurrent_tasks=5)))


def test_a_profile_that_was_set_limits_what_is_made_at_once() -> None:
    """Claims of everybody count; a plan whose profile was never set is not bound by one."""
    three = tuple(ArtifactSpec(id=name) for name in "abc")
    free = life(*three)
    happened(free, cmd.StartArtifacts(ids=("a", "b", "c")))
    bound = life(*three, profile=Profile(parallelization_enabled=True, max_concurrent_tasks=2))
    assert refused(bound, cmd.StartArtifacts(ids=("a", "b", "c"))).code == "profile.limit"
    happened(bound, cmd.StartArtifacts(ids=("a", "a")))
    happened(bound, cmd.StartArtifacts(ids=("b",)))
    rejection = refused(bound, cmd.StartArtifacts(ids=("c",)))
    assert (rejection.code, rejection.kind) == ("profile.limit", "later")
    one = life(*three, profile=Profile(max_concurrent_tasks=64))
    happened(one, cmd.StartArtifacts(ids=("a",)))
    assert refused(one, cmd.StartArtifacts(ids=("b",))).code == "profile.limit"


def test_what_was_complete_before_it_had_a_milestone_can_be_accepted() -> None:
    """Nothing of that milestone was ever open, and so it is complete."""
    life = Life()
    life.do(cmd.CreatePlan(plan_id="p", project_id="q", plan=PlanSpec(goal="g", artifacts=(ArtifactSpec(id="c"),))))
    started = life.do(cmd.StartArtifacts(ids=("c",)))
    assert not isinstance(started, Rejection)
    life.do(cmd.CompleteArtifact(id="c", token=started[0].seq))
    life.do(cmd.ChangePlan(update=(ArtifactSpec(id="c", milestone="m"),)))
    accepted = life.do(cmd.AcceptOutput(id="c", outputs=(), reason="seen"))
    assert not isinstance(accepted, Rejection)
    assert [record.event.type for record in accepted] == ["output_accepted", "milestone_completed"]


# Together.


def begun(*artifacts: ArtifactSpec) -> tuple[State, list[cmd.Command]]:
    """A plan of which all was begun at once, and the commands that complete it."""
    born = life(*artifacts)
    token = happened(born, cmd.StartArtifacts(ids=tuple(spec.id for spec in artifacts)))[0].seq
    return state(born), [cmd.CompleteArtifact(id=spec.id, token=token, ms=7) for spec in artifacts]


C, D, E = ArtifactSpec(id="c"), ArtifactSpec(id="d", integrates={"wiring": ("c",)}), ArtifactSpec(id="e")


def test_completions_that_do_not_touch_each_other_are_decided_together() -> None:
    """Each causes what it causes alone."""
    plan, commands = begun(C, D, E)
    assert decide_together(plan, commands) == [decide(plan, command) for command in commands]


@pytest.mark.parametrize(
    "spoil",
    [
        lambda plan, commands: (plan, [*commands, commands[0]]),
        lambda plan, commands: (plan, [*commands[1:], cmd.CompleteArtifact(id="c", token=99)]),
        lambda plan, commands: (plan, [*commands, cmd.CompleteArtifact(id="nobody", token=2)]),
        lambda plan, commands: (plan, [*commands, cmd.ChangePlan(goal="h")]),
        lambda _, __: begun(C, A),
        lambda _, __: begun(C, ArtifactSpec(id="g", gates=(Gate(name="look", run="true"),))),
        lambda _, commands: (None, commands),
    ],
    ids=["named twice", "no longer its own", "unknown", "another command", "milestone", "gate", "no plan"],
)
def test_whatever_may_touch_another_is_decided_one_after_the_other(spoil: Any) -> None:
    """Or is refused: who asks for each finds out which."""
    plan, commands = spoil(*begun(C, D, E))
    assert decide_together(plan, commands) is None


def test_in_a_plan_that_is_closed_nothing_is_completed_together() -> None:
    """Each is refused by itself."""
    born = life(C, D)
    token = happened(born, cmd.StartArtifacts(ids=("c", "d")))[0].seq
    commands: list[cmd.Command] = [cmd.CompleteArtifact(id=name, token=token) for name in ("c", "d")]
    state(born).closed = "2026-01-01T00:00:00.000000Z"
    assert decide_together(state(born), commands) is None
