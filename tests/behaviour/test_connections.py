"""Claims that follow a connection: kept while it lives, a little longer when it ends, taken over when it is gone."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import msgspec
import pytest

from headway.core.state import Claim
from headway.desk import Desk
from headway.errors import HeadwayError, TryLater
from headway.holding import gone, here
from headway.life import Life
from headway.project import Project
from headway.surfaces.cli.main import main
from headway.work import Work
from tests.behaviour.crew import Crew

PLAN = """\
id: p
goal: g
artifacts:
  one: {}
  two: {}
"""


@pytest.fixture
def crew(tmp_path: Path) -> Crew:
    return Crew(tmp_path, PLAN)


def desk(crew: Crew, by: str, connection: str = "") -> Desk:
    return Desk(str(crew.root), by=by, connection=connection or by)


def test_a_claim_outlasts_its_connection_and_is_released_with_its_note(crew: Crew) -> None:
    """A minute under the same token; after that, whoever comes next reads the note."""
    first = desk(crew, "ann")
    token = first.claim("one")["token"]
    first.note("one", "the hard part is done")
    before = crew.state.claims["one"].lease
    first.leave()
    claim = crew.state.claims["one"]
    assert (claim.seq, bool(claim.left), claim.lease < before) == (token, True, True)
    life = Life(Work(Project(crew.root)), by="ann", holder=here("again"))
    life.heartbeat("p", "one", token=token)
    assert crew.state.claims["one"].left == ""
    life.leave("p", {"one": token}, grace=0.01)
    time.sleep(0.02)
    assert crew.life("bob").sweep("p") == ["one"]
    claimed = desk(crew, "cid").claim("one")
    assert (claimed["continues"]["by"], claimed["continues"]["note"]) == ("ann", "the hard part is done")
    desk(crew, "cid")  # another desk of the same name has no part in it
    with pytest.raises(HeadwayError) as caught:
        first.complete("one", "late", token=token)
    assert caught.value.error_code == "claim.lost"


def test_what_nobody_came_back_for_is_given_back(crew: Crew, monkeypatch: pytest.MonkeyPatch) -> None:
    """A server that goes on does that for a client that went; the note stays."""
    monkeypatch.setattr("headway.desk.GRACE", 0.01)
    first = desk(crew, "ann")
    first.claim("one")
    first.note("one", "half")
    first.leave()
    time.sleep(0.02)
    first.sweep()
    assert (crew.state.claims, crew.state.notes["one"].text) == ({}, "half")


def test_notes_are_gone_when_the_artifact_is_done(crew: Crew) -> None:
    """They are about work under way."""
    ann = desk(crew, "ann")
    ann.claim("one")
    ann.note("one", "half")
    ann.complete("one", "whole")
    assert crew.state.notes == {}


def test_a_holder_that_is_there_is_not_taken_over(crew: Crew) -> None:
    """Another connection of the same process is somebody else."""
    desk(crew, "ann", "c1").claim("one")
    with pytest.raises(HeadwayError) as caught:
        desk(crew, "ann", "c2").claim("one")
    assert caught.value.error_code == "claim.held"
    with pytest.raises(HeadwayError) as caught:
        desk(crew, "ann", "c2").complete("one", "mine")
    assert caught.value.error_code == "claim.none"


def test_whoever_asks_for_anything_gets_what_is_free_before_what_is_orphaned(crew: Crew) -> None:
    """A client that comes back may still want its own."""
    first = desk(crew, "ann")
    first.claim("one")
    first.leave()
    assert desk(crew, "bob").claim()["artifact"] == "two"
    assert desk(crew, "bob").claim()["artifact"] == "one"


def test_renewing_keeps_what_is_held_and_forgets_what_is_not(crew: Crew) -> None:
    """A claim that somebody took over meanwhile is not renewed, and not left either."""
    first = desk(crew, "ann")
    first.claim("one")
    before = crew.state.claims["one"].lease
    first.renew()
    assert crew.state.claims["one"].lease > before
    first.leave()
    token = desk(crew, "bob").claim("one")["token"]
    seq = crew.seq
    first.renew()
    first.leave()
    assert (crew.seq, crew.state.claims["one"].seq) == (seq, token)


def test_only_what_is_certain_counts_as_gone() -> None:
    """Another host is not known; another boot, another process of the same number, and none at all are."""
    alive = Claim(seq=1, at="t", holder=here("c"))
    assert gone(alive) == ""
    assert gone(Claim(seq=1, at="t")) == ""
    assert gone(Claim(seq=1, at="t", holder="who knows")) == ""
    host, boot, pid, started, connection = alive.holder.split(" ")

    def other(**parts: str) -> str:
        found = {"host": host, "boot": boot, "pid": pid, "started": started, "connection": connection} | parts
        return gone(msgspec.structs.replace(alive, holder=" ".join(found.values())))

    assert other(host="elsewhere/x", pid="999999") == ""
    assert "anew" in other(boot="another")
    assert "not there" in other(started="1") if started != "-" else True
    child = subprocess.Popen([sys.executable, "-c", ""])
    child.wait()
    assert "not there" in other(pid=str(child.pid), started="-")
    assert other(started="-") == ""
    assert gone(msgspec.structs.replace(alive, left="2026-01-01")) != ""


def test_other_verbs_do_not_import_the_protocol(crew: Crew) -> None:
    """`mcp` is heavy, and an extra: only the server needs it, not even its settings."""
    code = (
        "import sys; from headway.surfaces.cli.main import main; "
        "main(['status', '--project', sys.argv[1]]); main(['mcp', '--config', 'codex', '--project', sys.argv[1]]); "
        "sys.exit('mcp' in sys.modules or 'asyncio' in sys.modules)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, str(crew.root)], capture_output=True, text=True, check=False, env=dict(os.environ)
    )
    assert (done.returncode, '[mcp_servers.headway]\ncommand = "headway"' in done.stdout) == (0, True), done.stderr


ROLES = """\
id: p
goal: g
agents:
  writer:
    when: for people
    tools: [status]
    next: {success: reviewer, limit: planner}
    limits: {iterations: 2, time: 60}
artifacts:
  one: {}
"""


MINE = "id: p\ngoal: g\nartifacts: {one: {agent: dev}}\n"


def test_agents_of_plan_and_project_are_read_and_merged(tmp_path: Path) -> None:
    """The plan's own stand before the project's, and those before the built-in ones."""
    crew = Crew(tmp_path, ROLES)
    (tmp_path / "headway.toml").write_text('[agents.writer]\nwhen = "project"\n[agents.editor]\nwhen = "edits"\n')
    known = Desk(str(tmp_path)).roles("p")
    assert known["writer"].next.limit == "planner"
    assert (known["writer"].when, known["editor"].when, known["writer"].limits.iterations) == ("for people", "edits", 2)
    assert {"planner", "developer", "tester", "reviewer"} <= known.keys()
    assert crew.state.settings.agents["writer"].tools == ("status",)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("agents: [writer]", "agents must be a mapping"),
        ("agents: {writer: fast}", "agents.writer must be a mapping"),
        ("agents: {writer: {wen: x}}", "unknown key"),
        ("agents: {writer: {next: {success: nobody}}}", "which is no agent"),
        ("agents: {writer: {limits: {iterations: 0}}}", "from 1 to 1000"),
        ("agents: {Writer: {}}", "cannot be the name"),
    ],
)
def test_agents_that_cannot_be_are_problems_of_the_plan(tmp_path: Path, text: str, said: str) -> None:
    """Each is named with its key."""
    with pytest.raises(HeadwayError) as caught:
        Crew(tmp_path, f"{text}\n{PLAN}")
    assert said in str(caught.value)


def test_a_project_file_that_is_wrong_is_refused(tmp_path: Path) -> None:
    """Its problems are those of agents anywhere."""
    crew = Crew(tmp_path, PLAN)
    for text in ("[agents.x]\nnext = {success = 'nobody'}", "agents = 3", "[agents"):
        (tmp_path / "headway.toml").write_text(text)
        with pytest.raises(HeadwayError, match=r"headway\.toml"):
            Desk(str(crew.root)).roles("p")


def test_who_goes_on_is_told_from_the_ledger(crew: Crew) -> None:
    """A failure of the tester sends the work back to the developer; what no rule decides is put as a question."""
    tester = desk(crew, "tester")
    tester.claim("one")
    tester.fail("one", "it does not run\n## Answer\ncomplete")
    found = tester.who()
    assert (found["what"], found["agent"]) == ("select", "developer")
    asked = tester.who([{"agent": "stranger", "status": "success"}])
    assert asked["what"] == "ask"
    assert "\n## Answer\ncomplete" not in asked["prompt"]
    with pytest.raises(HeadwayError) as caught:
        tester.who([{"agent": 3}])
    assert caught.value.error_code == "arbiter.history"


def test_limits_of_roles_are_kept_by_what_the_ledger_knows(tmp_path: Path) -> None:
    """An agent that claims and dies again and again has had its attempts, whatever its client is called."""
    crew = Crew(tmp_path, f"agents: {{dev: {{limits: {{iterations: 2}}, next: {{limit: planner}}}}}}\n{MINE}")
    client = desk(crew, "some-client")
    told = client.claim("one")
    assert told["role"] == {"name": "dev", "limits": {"iterations": 2}}
    assert client.who()["what"] == "continue"
    client.release("one", "lost my way")
    assert client.who()["agent"] == "dev"
    client.claim("one")
    client.release("one", "again")
    found = client.who()
    assert (found["agent"], found["reason"]) == ("planner", "dev has had its 2 attempts")
    crew.planning().edit("p", "one", {"instructions": "simpler"}, reason="it was too much")
    assert client.who()["agent"] == "dev"


def test_people_leave_and_read_notes_too(crew: Crew, capsys: pytest.CaptureFixture[str]) -> None:
    """On the command line as by the protocol: a heartbeat with a note, and whoever claims it next reads it."""
    where = ["--project", str(crew.root), "--plan-id", "p"]
    assert main(["claim", "one", "--by", "ann", *where]) == 0
    assert main(["heartbeat", "one", "--by", "ann", "--note", "half of it", *where]) == 0
    assert main(["release", "one", "--by", "ann", "--reason", "lunch", *where]) == 0
    capsys.readouterr()
    assert main(["claim", "one", "--by", "bob", *where]) == 0
    assert "it continues the work of ann: half of it" in capsys.readouterr().out


def test_people_are_told_that_a_holder_is_gone_and_how_to_go_on(crew: Crew, capsys: pytest.CaptureFixture[str]) -> None:
    """As agents are: by `status` and by `why`, with the command that takes it over; not of earlier times."""
    first = desk(crew, "ann")
    first.claim("one")

    def told(*words: str) -> str:
        main([*words, "--project", str(crew.root), "--plan-id", "p"])
        return capsys.readouterr().out

    assert "gone" not in told("status") + told("why", "one")
    first.leave()
    assert "claimed by ann, who is gone (its connection closed at " in told("status")
    assert "Next: headway claim one --plan-id p" in told("why", "one")
    assert "gone" not in told("why", "one", "--at", str(crew.seq))


def test_whoever_is_gone_is_not_taken_for_somebody_else(tmp_path: Path) -> None:
    """Whatever artifacts are called: it is the one in the way that counts."""
    crew = Crew(tmp_path, PLAN.replace("two", "one is done"))
    ann, bob, cy = (desk(crew, name) for name in ("ann", "bob", "cy"))
    ann.claim("one")
    bob.claim("one is done")
    ann.leave()
    with pytest.raises(TryLater, match="Artifact one is done is being made now") as refused:
        cy.update("one is done", {"description": "another"}, "it is better")
    assert (refused.value.facts["artifact"], refused.value.facts["by"]) == ("one is done", "bob")
    with pytest.raises(TryLater, match="Artifact one is in the hands of ann, who is gone"):
        cy.update("one", {"description": "another"}, "it is better")
