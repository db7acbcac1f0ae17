"""What people are told about work in hands and at gates: who, until when, and one command to be typed as it is."""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.workshop import Done, Workshop

PLAN = """\
id: api
goal: Write a book
artifacts:
  intro:
    produces: intro.txt
  page:
    produces: page.txt
    run: "echo page > {output}"
    gates:
      review: {by: [ann, bob], quorum: 2}
      ok: {kind: approval}
"""
Run = Callable[..., Done]


@pytest.fixture
def run(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Run:
    """Command lines in a project with something for people and something behind two gates."""
    shop = Workshop(tmp_path / "project")
    shop.file.write_text(PLAN, encoding="utf-8")
    return lambda *words: shop.run(capsys, *words)


def next_command(done: Done) -> list[str]:
    """The one command that is named as the next."""
    (command,) = re.findall(r"Next: (headway [^\n]*)", done.out + done.err)
    assert not re.search(r"[;()…]|, or ", command)
    return shlex.split(command)[1:]


def test_a_claim_is_finished_by_the_command_that_it_names(run: Run, tmp_path: Path) -> None:
    """Typed as it stands, by whoever claimed it."""
    claimed = run("claim", "intro", "--by", "joe smith")
    (tmp_path / "project" / "intro.txt").write_text("hello")
    assert "  write: intro.txt" in claimed.out
    assert run(*next_command(claimed)).out.startswith("intro is complete")


def test_status_and_why_name_who_has_it_in_hand_and_claim_no_run(run: Run) -> None:
    """Holder, lease and the next step; no run is said to be under way."""
    run("claim", "intro", "--by", "joe")
    claim = run("status", "--json").json["artifacts"]["intro"]["claim"]
    said = run("status").out
    until = f"{claim['until'][:19].replace('T', ' ')}Z"
    assert f"intro  claimed by joe until {until}\n" in said
    assert "under way" not in said
    why = run("why", "intro")
    assert f"claimed by joe until {until}, token {claim['token']}" in why.out
    assert next_command(why)[:4] == ["complete", "intro", "--by", "joe"]


def test_status_names_what_can_be_claimed_before_what_somebody_has_in_hand(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A run could make nothing: while there is something to take, that is next; then it is told who has the rest."""
    shop = Workshop(tmp_path / "other")
    shop.file.write_text("{id: p, goal: g, artifacts: {a: {}, b: {}, c: {requires: [a]}}}", encoding="utf-8")
    for name in "ab":
        assert next_command(shop.run(capsys, "status"))[:2] == ["claim", name]
        shop.run(capsys, "claim", name, "--by", "joe")
    assert next_command(shop.run(capsys, "status"))[:2] == ["why", "a"]
    assert next_command(shop.run(capsys, "why", "a"))[:4] == ["complete", "a", "--by", "joe"]


def test_of_a_lease_that_is_over_it_is_said_that_anybody_may_claim(run: Run) -> None:
    """It still stands, and the next step is another claim."""
    run("claim", "intro", "--by", "joe", "--lease", "0.000001s")
    assert ", which is over" in run("status").out
    why = run("why", "intro")
    assert next_command(why)[:2] == ["claim", "intro"]
    assert run(*next_command(why)).code == 0


def test_with_several_gates_the_next_command_is_one_that_can_be_typed(run: Run) -> None:
    """The first word's; the rest is listed on lines of its own. `run`, `status`, `why` and `gate` agree."""
    made = run("run")
    assert made.code == 75
    assert "and: gate ok (approval): headway gate page ok approve --by NAME" in made.out + made.err
    first = ["gate", "page", "review", "approve", "--by", "ann"]
    for done in (made, run("why", "page"), run("gate", "page")):
        assert next_command(done)[:6] == first
    run("claim", "intro", "--by", "joe")
    assert next_command(run("status"))[:6] == first
    assert run("run", "--json").json["paused"]["resume"].split()[1:7] == first
    assert next_command(run(*first))[:6] == ["gate", "page", "review", "approve", "--by", "bob"]


def test_after_a_rejection_of_the_plan_run_and_status_say_so_with_the_reason(run: Run) -> None:
    """And the next command is still the whole and only one."""
    run("reject", "--reason", "too: long", "--by", "ann")
    for words in (["run"], ["status"]):
        done = run(*words)
        assert "the plan's approval (rejected by ann: too: long)" in done.out + done.err
        assert next_command(done)[:3] == ["approve", "--plan-id", "api"]


def test_after_a_rejection_nobody_is_asked_to_approve_and_all_verbs_agree(run: Run, tmp_path: Path) -> None:
    """It failed: a run cannot make it again and says so with exit 1; whoever claims it can."""
    (tmp_path / "project" / "headway.yaml").write_text(
        "{id: p, goal: g, artifacts: {draft: {produces: d.txt, gates: {release: {kind: approval, by: [ann]}}}, "
        "final: {requires: [draft], run: 'true'}}}"
    )
    run("claim", "draft", "--by", "joe")
    (tmp_path / "project" / "d.txt").write_text("short")
    run("complete", "draft", "--by", "joe")
    run("reject", "draft", "--by", "ann", "--reason", "too short")
    ran = run("run")
    assert (ran.code, "1 failed, 1 blocked" in ran.out) == (1, True)
    for done in (ran, run("status"), run("run", "-n")):
        assert next_command(done)[:2] == ["why", "draft"]
    assert next_command(run("why", "draft"))[:2] == ["claim", "draft"]
    assert (run("next", "--json").json["status"], run("status", "--check").code) == ("blocked", 1)


def test_a_run_behind_what_somebody_failed_at_ends_with_1(run: Run) -> None:
    """As `next` says: it failed, and what needs it is blocked."""
    run("claim", "intro", "--by", "joe")
    run("fail", "intro", "--by", "joe", "--error", "no idea")
    ran = run("run", "intro", "--json")
    assert (ran.code, ran.json["failed"], ran.json["waiting"]) == (1, {"intro": "no idea"}, {})


def test_an_accepted_edit_that_was_rejected_is_yours_to_decide_whoever_is_asked(run: Run, tmp_path: Path) -> None:
    """The same two ways from `status`, `next` and `run`; and `why` asks nobody to approve it."""
    run("run")
    for who in ("ann", "bob"):
        run("gate", "page", "review", "approve", "--by", who)
    run("approve", "page", "--by", "eve")
    (tmp_path / "project" / "page.txt").write_text("mine")
    run("accept", "page", "--reason", "better")
    run("reject", "page", "--by", "eve", "--reason", "worse")
    ways = f"Decide: headway accept page --project {tmp_path / 'project'}  or  headway run page --discard-edits"
    assert ways in run("status").out
    assert "page waits: it was accepted as it is, and since then failed: headway run --accept-edits" in run("next").out
    assert run("run").code == 3
    assert ways in run("why", "page").out


def test_what_complete_asks_for_can_be_typed_as_it_stands(run: Run, tmp_path: Path) -> None:
    """Also in the name of somebody."""
    run("claim", "intro", "--by", "joe smith")
    refused = run("complete", "intro", "--by", "joe smith")
    here = f"--project {tmp_path / 'project'}"
    assert f"write it, then headway complete {here} intro --by 'joe smith'" in refused.err
    (tmp_path / "project" / "intro.txt").write_text("hello")
    assert run(*shlex.split(refused.err.partition("then headway ")[2])).code == 0


def test_whose_lease_ran_out_is_told_so_and_who_has_it_now(run: Run) -> None:
    """Their token is void, so nobody asks for it."""
    run("claim", "intro", "--by", "joe", "--lease", "0.000001s")
    run("claim", "intro", "--by", "eve")
    refused = run("complete", "intro", "--by", "joe")
    assert "your claim: its lease ran out\n  its holder: eve until " in refused.err
    assert "token" not in refused.err


def test_whoever_has_said_nothing_yet_is_asked_before_whoever_has_worries(run: Run) -> None:
    """A worry is a word: the next one is somebody else's, as long as there is one."""
    run("run")
    assert next_command(run("gate", "page", "review", "concerns", "--by", "ann"))[3:6] == ["approve", "--by", "bob"]
    assert next_command(run("gate", "page", "review", "concerns", "--by", "bob"))[3:6] == ["approve", "--by", "ann"]


def test_a_check_is_said_to_be_passed_by_its_command(run: Run, tmp_path: Path) -> None:
    """Whoever completed the artifact had it run; the word is not theirs."""
    file = tmp_path / "project" / "headway.yaml"
    file.write_text("{id: p, goal: g, artifacts: {a: {produces: a.txt, gates: {lint: {run: 'true'}}}}}")
    (file.parent / "a.txt").write_text("a")
    run("claim", "a", "--by", "ann")
    run("complete", "a", "--by", "ann")
    assert "    APPROVE by its command, run by ann\n" in run("gate", "a").out


def test_what_is_skipped_is_said_to_be_skipped_and_a_reset_says_that_it_is_no_longer(run: Run) -> None:
    """Done, but not made: `status` and `why` tell the two apart, with the reason."""
    run("skip", "intro", "--reason", "nobody reads it")
    told = run("status").out
    assert "1 of 2 done, 1 of them skipped\n" in told
    assert "– intro  skipped: nobody reads it\n" in told
    why = run("why", "intro").out
    assert why.startswith("intro is skipped (nobody reads it): nobody makes it")
    assert "No longer skipped: intro. It is to be made, too.\n" in run("reset", "--all").out
    assert ", 1 of them skipped" not in run("status").out
