"""What an event costs: as much in a large plan as in a small one, counted in lines of the core and not in time."""

from __future__ import annotations

import pytest

from headway.core import commands as cmd
from headway.core.decide import Rejection
from headway.core.plan import ArtifactSpec, Gate, PlanSpec, Profile
from headway.core.state import State, Step
from tests.unit.core.lines import lines_run
from tests.unit.core.lives import Life

HELD = ("held1", "held2", "held3")


def life_of(size: int) -> Life:
    """A plan with so many artifacts of each kind: done, failed, skipped, blocked. A few are in somebody's hands."""
    many = range(size)
    specs = [ArtifactSpec(id=f"done{n}", milestone="first") for n in many]
    specs += [ArtifactSpec(id=f"failed{n}", milestone="second") for n in many]
    specs += [ArtifactSpec(id=f"skipped{n}", milestone="second") for n in many]
    specs += [ArtifactSpec(id=f"blocked{n}", milestone="second", requires=(f"failed{n}",)) for n in many]
    specs += [ArtifactSpec(id=a) for a in HELD]
    specs += [ArtifactSpec(id=a, milestone="third", requires=("done0",)) for a in ("one", "two", "three")]
    specs += [ArtifactSpec(id="gated", gates=(Gate(name="review"),))]
    life = Life()

    def start(*ids: str) -> int:
        started = life.do(cmd.StartArtifacts(ids=ids))
        assert not isinstance(started, Rejection)
        return started[0].seq

    life.do(cmd.CreatePlan(plan_id="p", project_id="q", plan=PlanSpec(goal="g", artifacts=tuple(specs))))
    done, failed = start(*(f"done{n}" for n in many)), start(*(f"failed{n}" for n in many))
    for n in many:
        life.do(cmd.CompleteArtifact(id=f"done{n}", token=done))
        life.do(cmd.FailArtifact(id=f"failed{n}", token=failed, error="no"))
    life.do(cmd.SkipArtifacts(ids=tuple(f"skipped{n}" for n in many), reason="not needed"))
    start(*HELD)
    return life


def costs(size: int) -> dict[str, int]:
    """The lines that each kind of command takes, decided and applied, in a plan of this size."""
    life, found = life_of(size), {}

    def do(name: str, command: cmd.Command) -> int:
        found[name], records = lines_run(lambda: life.do(command), of="headway/core/")
        assert records, name
        assert not isinstance(records, Rejection), records
        return int(records[0].seq)

    do("a run begins", cmd.StartRun(run="r", stale={"one": "never made"}))
    token = do("start", cmd.StartArtifacts(ids=("one",), run="r"))
    do("step", cmd.RecordStep(id="one", token=token, name="s", step=Step(key="k", value=1)))
    do("lease", cmd.ExtendLease(id="one", token=token, lease="2099-01-01T00:00:00Z"))
    do("complete", cmd.CompleteArtifact(id="one", token=token))
    do("fail", cmd.FailArtifact(id="two", token=do("retry", cmd.StartArtifacts(ids=("two",), run="r")), error="no"))
    do("skip", cmd.SkipArtifacts(ids=("two",), reason="not needed"))
    do("accept, and a milestone", cmd.AcceptOutput(id="three", outputs=()))
    do("preserve", cmd.PreserveEdit(id="three", outputs=()))
    do("made", cmd.CompleteArtifact(id="gated", token=do("take", cmd.StartArtifacts(ids=("gated",), run="r"))))
    do("verdict", cmd.RecordVerdict(id="gated", gate="review", verdict="APPROVE", by="ann"))
    do("claim", cmd.StartArtifacts(ids=("three",), run="r"))
    do("release", cmd.ReleaseArtifacts(ids=("three",), reason="later"))
    do("goal", cmd.ChangePlan(goal="another"))
    do("add", cmd.ChangePlan(add=(ArtifactSpec(id="new"),)))
    do("update", cmd.ChangePlan(update=(ArtifactSpec(id="new", description="x"),)))
    do("remove", cmd.ChangePlan(remove=("new",)))
    do("profile", cmd.SetProfile(profile=Profile(parallelization_enabled=True, max_concurrent_tasks=64)))
    do("reset of one", cmd.ResetPlan(ids=("one",)))
    do("learning", cmd.RecordLearning(text="it rains"))
    do("a run pauses", cmd.EndRun(run="r", status="paused"))
    return found


def test_an_event_costs_the_same_in_a_plan_of_any_size(monkeypatch: pytest.MonkeyPatch) -> None:
    """Decided and applied, line for line; nobody goes through the plan, and nobody copies it."""
    monkeypatch.setattr(State, "copy", lambda _: pytest.fail("the whole state was copied for one event"))
    costs(1)  # what is made once, when an event of a kind is first met, is there
    assert costs(200) == costs(5)
