"""Claims: one holder at a time, for as long as they are heard of, and exactly one completion each."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from headway.core.commands import RecordLearning, StartArtifacts, StartRun
from headway.core.events import ArtifactCompleted, ArtifactReleased
from headway.errors import HeadwayError
from headway.life import Life
from headway.project import Project
from headway.work import Meant
from tests.behaviour import claiming
from tests.behaviour.crew import Crew
from tests.processes import finish, soon, start

PLAN = "id: p\ngoal: g\nartifacts:\n  a: {}\n  b: {requires: [a]}\n  c: {}\n"
AGENTS, ARTIFACTS, LAYER = 16, 2000, 500
FATAL = 0.005


@pytest.fixture
def crew(tmp_path: Path) -> Crew:
    """Three artifacts for whoever claims them."""
    return Crew(tmp_path / "project", PLAN)


def expire(crew: Crew, artifact_id: str) -> None:
    """Wait until a lease is over."""
    lease = crew.state.claims[artifact_id].lease
    assert soon(lambda: time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(time.time() - 1)) > lease[:19])


def test_a_claim_whose_lease_ran_out_is_swept_by_the_next_who_wants_it(crew: Crew) -> None:
    """Until somebody sweeps it, it stands; then its token is worth nothing, and the reason is said."""
    old = crew.life("ann").claim("p", "a", lease=0.01)["token"]
    expire(crew, "a")
    assert crew.state.claims["a"].by == "ann"
    assert crew.offered() == ["a", "c"]
    new = crew.life("bob").claim("p", "a")["token"]
    before = crew.seq
    with pytest.raises(HeadwayError, match="no longer yours") as refused:
        crew.life("ann").complete("p", "a", token=old, text=b"late")
    assert (refused.value.error_code, crew.seq) == ("claim.lost", before)
    crew.life("bob").complete("p", "a", token=new, text=b"in time")
    assert crew.state.completed["a"].by == "bob"


def test_after_a_sweep_the_late_holder_is_told_why(crew: Crew) -> None:
    """Nobody else took it: the facts name the lease."""
    token = crew.life("ann").claim("p", "a", lease=0.01)["token"]
    expire(crew, "a")
    assert crew.life("bob").sweep("p") == ["a"]
    with pytest.raises(HeadwayError) as refused:
        crew.life("ann").complete("p", "a", token=token, text=b"late")
    assert refused.value.facts["your claim"] == "its lease ran out, or it was given back"


def test_whoever_is_late_and_was_not_swept_still_finishes(crew: Crew) -> None:
    """Clocks decide nothing by themselves: only the event does."""
    token = crew.life("ann").claim("p", "a", lease=0.01)["token"]
    expire(crew, "a")
    assert crew.life("ann").complete("p", "a", token=token, text=b"x").status == "complete"


def test_a_heartbeat_keeps_a_claim(crew: Crew) -> None:
    """Its holder was heard of, so nobody sweeps it; others have no heartbeat to give."""
    token = crew.life("ann").claim("p", "a", lease=0.01)["token"]
    expire(crew, "a")
    until = crew.life("ann").heartbeat("p", "a", lease=600)
    assert crew.state.claims["a"].lease == until
    assert (crew.life("bob").sweep("p"), crew.state.claims["a"].seq) == ([], token)
    with pytest.raises(HeadwayError, match="not claimed by bob"):
        crew.life("bob").heartbeat("p", "a")


def test_a_run_is_a_claimant_like_any_other(tmp_path: Path) -> None:
    """What it makes nobody else can claim, what others hold it leaves alone, and it sweeps what nobody holds."""
    crew = Crew(
        tmp_path / "project",
        "id: p\ngoal: g\nartifacts:\n"
        "  slow:\n    produces: slow.txt\n"
        '    run: "for n in $(seq 600); do [ -e go ] && break; sleep 0.05; done; echo x > {output}"\n'
        '  quick: {produces: quick.txt, run: "echo x > {output}"}\n'
        '  lost: {produces: lost.txt, run: "echo x > {output}"}\n',
    )
    crew.life("ann").claim("p", "quick")
    crew.life("eve").claim("p", "lost", lease=0.01)
    expire(crew, "lost")
    process = start(crew.root, "-j", "2")
    assert soon(lambda: "slow" in crew.state.claims and "lost" in crew.state.completed)
    with pytest.raises(HeadwayError, match="being made already"):
        crew.life("bob").claim("p", "slow")
    crew.write("go", "")
    assert finish(process)[0] == 75
    assert list(crew.state.claims) == ["quick"]


def test_claims_of_others_count_towards_a_profile(crew: Crew) -> None:
    """One at a time means one, whoever they are."""
    from headway.core.plan import Profile

    crew.work.project.set_profile("p", Profile())
    crew.life("ann").claim("p", "a")
    with pytest.raises(HeadwayError, match="allows 1 at once"):
        crew.life("bob").claim("p", "c")


def test_claiming_without_a_name_takes_what_is_next_for_oneself(crew: Crew) -> None:
    """In plan order; what is for somebody else is left to them; and it says when nothing is left to claim."""
    crew.planning().edit("p", "a", {"agent": "writer"}, reason="hers")
    assert crew.life("ann").claim_next(Meant("p"))["artifact"] == "c"
    with pytest.raises(HeadwayError) as nothing:
        crew.life("ann").claim_next(Meant("p"))
    assert nothing.value.error_code == "next.waiting"
    assert crew.life("x").claim_next(Meant("p"), agent="writer")["artifact"] == "a"


@pytest.mark.parametrize(
    ("call", "code"),
    [
        (lambda c: c.life().complete("p", "a", token=None), "claim.none"),
        (lambda c: c.life().complete("p", "a", token=1), "claim.lost"),
        (lambda c: c.life().fail("p", "a", token=1, error="x"), "claim.lost"),
        (lambda c: c.life().claim("p", "b"), "artifact.waiting"),
        (lambda c: c.life().claim("p", "nowhere"), "artifact.unknown"),
        (lambda c: c.life().claim("p", "7"), "artifact.unknown"),
        (lambda c: c.life().claim("p", "a", lease=0), "claim.lease"),
        (lambda c: c.life().claim("nowhere", "a"), "plan.none"),
        (lambda c: c.life().skip("p", ["a"], reason="x" * 10_000_000), "text.long"),
    ],
)
def test_what_cannot_be_meant_is_refused_and_changes_nothing(crew: Crew, call: object, code: str) -> None:
    """With its reason and the next command."""
    before = crew.seq
    with pytest.raises(HeadwayError) as refused:
        call(crew)  # type: ignore[operator]  # each is a function of the crew
    assert (refused.value.error_code, bool(refused.value.hint), crew.seq) == (code, True, before)


def test_two_completions_of_one_claim_are_one(crew: Crew) -> None:
    """The second comes to nothing, and says so."""
    token = crew.life().claim("p", "a")["token"]
    crew.life().complete("p", "a", token=token, text=b"once")
    before = crew.seq
    with pytest.raises(HeadwayError) as refused:
        crew.life().complete("p", "a", token=token, text=b"twice")
    assert (refused.value.error_code, crew.seq) == ("claim.lost", before)
    with pytest.raises(HeadwayError, match="up to date"):
        crew.life().claim("p", "a")


def _agent(root: Path, name: str, fatal: float) -> subprocess.Popen[bytes]:
    return subprocess.Popen([sys.executable, "-m", claiming.__name__, str(root), name, str(fatal)])


def test_sixteen_agents_two_thousand_artifacts_and_random_kills(tmp_path: Path) -> None:
    """Exactly one accepted completion each, none stuck, and the ledger is whole."""
    shm = Path("/dev/shm")
    root = shm / f"headway-{os.getpid()}" if os.access(shm, os.W_OK) else tmp_path / "project"
    lines = [f"  a{n}: {{requires: [{f'a{n - LAYER}' if n >= LAYER else ''}]}}\n" for n in range(ARTIFACTS)]
    crew = Crew(root, "id: p\ngoal: g\nartifacts:\n" + "".join(lines))
    try:
        agents = {f"w{n}": _agent(root, f"w{n}", FATAL) for n in range(AGENTS)}
        killed, deadline = 0, time.monotonic() + 300
        while agents and time.monotonic() < deadline:
            for name, process in list(agents.items()):
                code = process.poll()
                if code is None:
                    continue
                del agents[name]
                assert code in (0, -9)
                if code:
                    killed += 1
                    again = f"{name}+"
                    agents[again] = _agent(root, again, FATAL if killed < 2 * AGENTS else 0.0)
            time.sleep(0.02)
        assert not agents
        assert killed > AGENTS // 2
        records = list(Project(root).log("p"))
        completed = [record.event.id for record in records if isinstance(record.event, ArtifactCompleted)]
        assert sorted(completed) == sorted(f"a{n}" for n in range(ARTIFACTS))
        assert any(isinstance(r.event, ArtifactReleased) and r.event.reason == "its lease ran out" for r in records)
        assert not crew.state.claims
        assert crew.status() == "complete"
        with Life(crew.work, by="x") as hands:
            assert hands.next(Meant("p")).status == "done"
    finally:
        for process in agents.values():
            process.kill()
        if root.parent == shm:
            import shutil

            shutil.rmtree(root)


def test_a_stale_look_at_a_dead_run_takes_nothing_from_whoever_claimed_it_since(crew: Crew) -> None:
    """Only the dead run's own claim is given back; an agent's, on the same artifact, stays theirs."""
    project = Project(crew.root)
    with project.folder("p").writing() as behind:
        behind.execute(StartRun(run="r", stale={"a": "never made"}), by="run")
        behind.execute(StartArtifacts(ids=("a",), run="r"), by="run")
        token = crew.life("ann").claim("p", "a")["token"]
        project.execute("p", RecordLearning(text="late"), by="bob", writer=behind)
    assert (crew.state.claims["a"].by, crew.state.claims["a"].seq) == ("ann", token)
    assert crew.events().count("artifact_released") == 1


def test_a_claim_whose_lease_ran_out_holds_up_neither_a_reset_nor_a_changed_plan_file(tmp_path: Path) -> None:
    """Its holder may be gone for good. While the lease lasts, the refusal says who can give it back, and how."""
    plan = "id: p\ngoal: Lease it\nartifacts:\n  a: {produces: a.txt}\n"
    crew = Crew(tmp_path / "project", plan)
    crew.life("ann").claim("p", "a")
    changes: tuple[Callable[[], object], ...] = (
        lambda: crew.work.reset("p", ["a"]),
        lambda: crew.propose(plan.replace("a.txt", "b.txt")),
    )
    for change in changes:
        with pytest.raises(HeadwayError, match="being made now") as refused:
            change()
        assert "headway release a --by ann" in refused.value.hint
    crew.life("ann").release("p", "a", reason="later")
    for change in changes:
        crew.life("ann").claim("p", "a", lease=0.001)
        time.sleep(0.01)
        change()
        assert not crew.state.claims
    assert crew.state.artifacts["a"].produces == ("b.txt",)
