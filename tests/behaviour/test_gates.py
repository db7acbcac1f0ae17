"""Gates: what was made counts only when they are passed, and evidence is about these bytes under this contract."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from headway.core.gates import missing
from headway.engine.result import Options
from headway.errors import HeadwayError
from headway.projections.saved_execution import SavedExecution
from headway.surfaces.cli.main import main
from tests.behaviour.crew import Crew
from tests.processes import soon

PLAN = """\
id: p
goal: Write a page
artifacts:
  page:
    produces: page.txt
    contract: A page
    sources: [facts.txt]
    run: "cat facts.txt > {output}; echo made >> made.log"
    gates:
      review: {by: [bob]}
  site:
    requires: [page]
    produces: site.txt
    run: "cat {inputs.page} > {output}"
"""


@pytest.fixture
def crew(tmp_path: Path) -> Crew:
    """A plan whose page has to be reviewed, after its first run."""
    made = Crew(tmp_path / "project")
    made.write("facts.txt", "one\n")
    made.propose(PLAN)
    result = made.run()
    assert (result.made, result.exit_code) == (["page"], 75)
    return made


def times_made(crew: Crew) -> int:
    return len(crew.read("made.log").splitlines())


def test_until_its_gate_is_passed_an_artifact_is_in_progress_and_what_requires_it_waits(crew: Crew) -> None:
    """It is not made again meanwhile; the word completes it, and the rest goes on."""
    again = crew.run()
    assert (again.made, again.exit_code, times_made(crew)) == ([], 75, 1)
    assert again.waiting["site"] == "waits for page"
    assert crew.say("page", "review", "APPROVE", "bob", "reads well").status == "complete"
    assert crew.run().made == ["site"]
    assert times_made(crew) == 1
    done = crew.state.completed["page"]
    assert (done.by, crew.state.evidence["page"][0].text) == ("api", "reads well")


def test_run_status_and_next_name_the_same_command_and_it_clears_the_block(
    crew: Crew, capsys: pytest.CaptureFixture[str]
) -> None:
    """One function says what is missing; typing what it says is enough."""
    (lack,) = missing(crew.state, "page")
    assert str(lack) == crew.run().waiting["page"] == crew.next().waiting["page"]
    status = crew.work.status(crew.work.meant(None, "p"))
    assert status["artifacts"]["page"]["missing"] == [lack.to_dict()]
    assert (status["artifacts"]["page"]["status"], status["status"]) == ("in_progress", "paused")
    assert main([*lack.command.split()[1:], "--project", str(crew.root)]) == 0
    assert "page is complete" in capsys.readouterr().out


def test_nobody_is_asked_for_a_word_about_bytes_that_the_next_run_makes_anew(crew: Crew) -> None:
    """Neither for what is stale again itself, nor behind it: the word would be given in vain."""
    crew.write("facts.txt", "two\n")
    meant = crew.work.meant(None, "p")
    assert crew.work.status(meant)["artifacts"]["page"]["missing"] == []
    assert crew.work.status(meant)["next"] == "headway run"
    for name in ("page", "site"):
        found = crew.work.why(meant, name)
        assert (found["missing"], found["waits_for"]) == ([], {})
    assert "page" not in crew.next().waiting
    assert (crew.run().made, times_made(crew)) == (["page"], 2)
    assert crew.work.why(meant, "site")["waits_for"]["page"]["command"] == "headway gate page review approve --by bob"


def test_what_waits_for_somebodys_word_is_foreseen_to_wait_and_to_cost_nothing(crew: Crew) -> None:
    """No run makes it, nor what is behind it; one with a check in the way is asked by the run."""
    seen = crew.work.preview(crew.work.meant(None, "p"))
    assert {a: (item.action, item.estimate.basis) for a, item in seen.items.items()} == {
        "page": ("wait", "nothing"),
        "site": ("wait", "nothing"),
    }
    assert seen.estimated_duration_seconds == 0


def test_a_preview_of_some_artifacts_names_the_run_of_them(crew: Crew, capsys: pytest.CaptureFixture[str]) -> None:
    """What is typed next is what was shown."""
    crew.write("facts.txt", "two\n")
    assert main(["run", "-n", "page", "--project", str(crew.root)]) == 0
    assert capsys.readouterr().out.endswith(f"Next: headway run page --project {crew.root}\n")
    assert main(["run", "-n", "--rerun", "page", "--project", str(crew.root)]) == 0
    assert capsys.readouterr().out.endswith(f"Next: headway run --rerun page --project {crew.root}\n")


def test_evidence_stands_for_the_same_bytes_under_the_same_contract_only(crew: Crew) -> None:
    """Other bytes ask again; going back to the approved ones does not; another contract does."""
    crew.say("page", "review", "APPROVE", "bob")
    crew.run()
    crew.write("facts.txt", "two\n")
    assert crew.run().exit_code == 75
    crew.write("facts.txt", "one\n")
    assert crew.run().exit_code == 0
    assert crew.run(options=None).made == []
    crew.propose(PLAN.replace("A page", "A page with a title"))
    assert crew.run().exit_code == 75
    assert [v.content for v in crew.state.evidence["page"]] == [crew.state.evidence["page"][0].content]


def test_making_the_same_bytes_again_does_not_ask_again(crew: Crew) -> None:
    """The verdict was about them."""
    crew.say("page", "review", "APPROVE", "bob")
    crew.write("facts.txt", "one\n")
    result = crew.work.run("p", Options(rerun=("page",)))
    assert (result.exit_code, times_made(crew)) == (0, 2)


def test_a_rejection_fails_the_artifact_and_a_better_attempt_is_judged_anew(crew: Crew) -> None:
    """What was turned down is not taken over by reuse, and the same bytes are turned down again."""
    assert crew.say("page", "review", "REJECT", "bob", "too short").status == "failed"
    assert crew.state.failed["page"].error == "gate review: REJECT by bob (too short)"
    result = crew.run()
    assert (result.exit_code, times_made(crew)) == (1, 2)
    assert "too short" in result.failed["page"]
    crew.write("facts.txt", "much longer\n")
    assert crew.run().exit_code == 75
    assert crew.say("page", "review", "APPROVE", "bob").status == "complete"


def test_whoever_rejected_can_change_their_mind(crew: Crew) -> None:
    """The bytes are still there and recorded, so nothing is made again."""
    crew.say("page", "review", "REJECT", "bob")
    assert crew.say("page", "review", "APPROVE", "bob").status == "complete"
    assert (times_made(crew), "page" in crew.state.failed) == (1, False)


def test_a_gate_added_to_a_finished_artifact_is_asked_without_making_it_again(crew: Crew) -> None:
    """And one that is taken away holds nothing up."""
    crew.say("page", "review", "APPROVE", "bob")
    assert crew.run().exit_code == 0
    with_check = PLAN.replace("{by: [bob]}", "{by: [bob]}\n      polish: {kind: approval}")
    crew.propose(with_check)
    assert crew.status() == "in_progress"
    assert crew.run().exit_code == 75
    assert [lack.name for lack in missing(crew.state, "page")] == ["polish"]
    crew.propose(PLAN)
    assert (crew.run().exit_code, times_made(crew)) == (0, 1)
    crew.propose(PLAN.replace("{by: [bob]}", '{by: [bob]}\n      lint: {run: "test -s {output}"}'))
    assert (crew.run().exit_code, times_made(crew)) == (0, 1)
    assert [v.gate for v in crew.state.evidence["page"]] == ["review", "lint"]


def test_a_check_that_says_no_fails_the_artifact_with_its_evidence(crew: Crew) -> None:
    """What it printed is on record, and every later run asks it again about other bytes."""
    crew.propose(PLAN.replace("review: {by: [bob]}", 'lint: {run: "echo looked; grep -q two {output}"}'))
    result = crew.run()
    assert (result.exit_code, "looked" in crew.state.evidence["page"][0].text) == (1, True)
    crew.write("facts.txt", "two\n")
    assert crew.run().exit_code == 0


def test_a_check_that_says_no_is_tried_again_like_any_failure(tmp_path: Path) -> None:
    """A flaky recipe gets its attempts whatever finds fault with it."""
    crew = Crew(tmp_path / "project")
    crew.propose(
        "id: p\ngoal: g\nartifacts:\n  a:\n    produces: a.txt\n    retry: {attempts: 3, backoff: 0.01}\n"
        '    run: "echo x >> tries; wc -l < tries > {output}"\n    gates: {third: {run: "grep -q 3 {output}"}}\n'
    )
    assert (crew.run().exit_code, crew.read("a.txt").strip(), crew.state.completed["a"].attempts) == (0, "3", 3)


COUNCIL = PLAN.replace(
    "review: {by: [bob]}",
    'lint: {run: "grep -q one {output}"}\n      council: {kind: council, by: [x, y, z]}',
)


def test_a_councils_word_alone_completes_nothing(tmp_path: Path) -> None:
    """Before there are bytes there is nothing to judge, and the check must agree as well."""
    crew = Crew(tmp_path / "project")
    crew.write("facts.txt", "nothing\n")
    crew.propose(COUNCIL)
    with pytest.raises(HeadwayError, match="nothing of page to judge") as early:
        crew.say("page", "council", "APPROVE", "x")
    assert early.value.error_code == "gate.early"
    assert crew.run().exit_code == 1
    assert crew.say("page", "council", "APPROVE", "x").status == "failed"
    assert crew.say("page", "council", "APPROVE", "y").status == "failed"
    assert "page" not in crew.state.completed


def test_a_council_passes_by_its_quorum_and_rejects_when_that_is_out_of_reach(tmp_path: Path) -> None:
    """CONCERNS keep it open; everybody's last word counts."""
    crew = Crew(tmp_path / "project")
    crew.write("facts.txt", "one\n")
    crew.propose(COUNCIL)
    assert crew.run().exit_code == 75
    assert crew.say("page", "council", "APPROVE", "x").status == "in_progress"
    assert crew.say("page", "council", "CONCERNS", "y", "hm").status == "in_progress"
    assert crew.say("page", "council", "REJECT", "z", "no").status == "in_progress"
    assert "y: CONCERNS; z: REJECT" in missing(crew.state, "page")[0].text
    assert crew.say("page", "council", "REJECT", "y").status == "failed"
    assert crew.say("page", "council", "APPROVE", "y").status == "complete"


def test_gates_apply_to_adopted_bytes(crew: Crew) -> None:
    """What a person wrote and wants to count is judged like any other."""
    crew.say("page", "review", "APPROVE", "bob")
    crew.run()
    crew.write("page.txt", "my own words\n")
    assert crew.work.accept("p", ["page"]) == ["page"]
    assert [lack.name for lack in missing(crew.state, "page")] == ["review"]
    crew.say("page", "review", "APPROVE", "bob")
    assert crew.state.completed["page"].how == "accepted"


def test_a_later_rejection_takes_back_what_was_complete_and_concerns_do_not(crew: Crew) -> None:
    """Only a rejection un-completes."""
    crew.say("page", "review", "APPROVE", "bob")
    crew.run()
    assert crew.say("page", "review", "CONCERNS", "bob").status == "complete"
    assert crew.say("page", "review", "REJECT", "bob").status == "failed"


def test_rejected_work_is_never_taken_over(crew: Crew) -> None:
    """Not while it waited, and not what had counted before: what it was made from comes back, and it is made anew, as
    a preview says.
    """
    crew.say("page", "review", "REJECT", "bob")
    crew.write("facts.txt", "two\n")
    crew.run()
    crew.say("page", "review", "APPROVE", "bob")
    crew.say("page", "review", "REJECT", "bob")
    for made, facts in ((3, "one\n"), (4, "two\n")):
        crew.write("facts.txt", facts)
        seen = crew.work.preview(crew.work.meant(None, "p"))
        assert seen.items["page"].action == "make"
        assert crew.run().reused == []
        assert times_made(crew) == made


def test_gates_apply_to_reused_bytes(crew: Crew) -> None:
    """What counted when no gate was asked is taken over, and waits for those there are now."""
    crew.say("page", "review", "APPROVE", "bob")
    crew.write("facts.txt", "two\n")
    crew.run()
    crew.say("page", "review", "APPROVE", "bob")
    crew.propose(PLAN.replace("review: {by: [bob]}", "release: {by: [eve]}"))
    crew.say("page", "release", "APPROVE", "eve")
    crew.write("facts.txt", "one\n")
    again = crew.run()
    assert (times_made(crew), again.exit_code) == (2, 75)
    assert [lack.name for lack in missing(crew.state, "page")] == ["release"]
    assert crew.say("page", "release", "APPROVE", "eve").status == "complete"


def test_work_that_waits_survives_a_kill_and_an_export(crew: Crew, tmp_path: Path) -> None:
    """Its bytes, its evidence and what is missing are in the ledger and in the checkpoint."""
    script = "sleep 60"
    slow = PLAN + f'  slow:\n    produces: slow.txt\n    run: "{script}"\n'
    crew.write("headway.yaml", slow.replace("cat facts.txt", "cat facts.txt facts.txt"))
    process = subprocess.Popen(
        [sys.executable, "-m", "headway", "run", "-j", "2"], cwd=crew.root, start_new_session=True
    )
    assert soon(lambda: "slow" in crew.state.claims and "page" not in crew.state.claims and times_made(crew) == 2)
    os.kill(process.pid, signal.SIGKILL)
    process.wait()
    crew.work.run("p", Options(targets=("page",)))  # whoever runs next ends what the dead one left
    crew.say("page", "review", "APPROVE", "bob")
    assert times_made(crew) == 2
    crew.work.project.export_plan("p", str(tmp_path / "out"))
    other = Crew(tmp_path / "other")
    state = other.work.project.import_plan(str(tmp_path / "out")).execution.state
    assert state.evidence == crew.state.evidence
    assert SavedExecution.from_dict(crew.work.project.show("p").to_dict()).state.evidence == state.evidence


@pytest.mark.parametrize(
    ("word", "gate", "by", "text", "code"),
    [
        ("nowhere", "review", "bob", "", "artifact.unknown"),
        ("page", "nowhere", "bob", "", "gate.unknown"),
        ("page", "review", " ", "", "gate.nobody"),
        ("page", "review", "eve", "", "gate.stranger"),
        ("page", "review", "bob", "x" * 10_000_000, "text.long"),
    ],
)
def test_a_word_that_is_nobodys_or_about_nothing_is_refused(
    crew: Crew, word: str, gate: str, by: str, text: str, code: str
) -> None:
    """With the reason and a next command, and nothing changes."""
    before = crew.seq
    with pytest.raises(HeadwayError) as refused:
        crew.say(word, gate, "APPROVE", by, text)
    assert (refused.value.error_code, bool(refused.value.hint), crew.seq) == (code, True, before)


def test_work_is_approved_and_rejected_by_its_name_on_the_command_line(
    crew: Crew, capsys: pytest.CaptureFixture[str]
) -> None:
    """At its approval gate, or at the one gate that it has; and gates are shown with what was said."""
    place = ["--project", str(crew.root)]
    assert main(["reject", "page", "--reason", "dull", "--by", "bob", *place]) == 0
    assert main(["status", *place]) == 0
    assert "gate review: REJECT by bob (dull)" in capsys.readouterr().out
    before = crew.seq
    assert main(["approve", "page", "--by", "bob", *place]) == 0
    assert main(["gate", "page", *place]) == 0
    assert "review (review): passed\n    APPROVE by bob" in capsys.readouterr().out
    assert main(["gate", "page", "--at", str(before), *place]) == 0, "as it was before he approved"
    assert "REJECT by bob: dull" in capsys.readouterr().out
    assert main(["gate", "page", "review", "approve", "--at", "1", *place]) == 2
    assert main(["approve", "site", "--by", "bob", *place]) == 2
    assert main(["gate", "page", "review", *place]) == 2
    assert main(["gate", "page", "review", "--run", *place]) == 2
    assert main(["log", *place]) == 0
    assert "gate review of page: REJECT (dull)" in capsys.readouterr().out


def test_a_word_about_bytes_that_were_replaced_is_refused(crew: Crew) -> None:
    """Whoever says what they looked at is held to it."""
    looked_at = crew.life().gates("p", "page")["content"]
    crew.write("facts.txt", "other\n")
    crew.run()
    with pytest.raises(HeadwayError, match="made again since you looked"):
        crew.life("bob").verdict("p", "page", "review", "APPROVE", content=looked_at)


@pytest.mark.parametrize(
    ("gates", "message"),
    [
        ("{g: {kind: check}}", "is a check"),
        ("{g: {by: [a], quorum: 2}}", "can never be passed"),
        ("{g: {kind: council}}", "council of nobody"),
        ("{g: {quorum: 0}}", "quorum must be from 1 to 64"),
        ('{g: {run: "test {ouput}"}}', "ouput"),
        ("{g: 3}", "must be a mapping"),
        ("[g]", "must be a mapping"),
        ("{g: {bye: [x]}}", "unknown key"),
    ],
)
def test_gates_that_cannot_be_are_problems_of_the_plan_file(tmp_path: Path, gates: str, message: str) -> None:
    """Each is named before anything runs."""
    crew = Crew(tmp_path)
    with pytest.raises(HeadwayError, match=message):
        crew.propose(f"id: p\ngoal: g\nartifacts:\n  a:\n    produces: a.txt\n    gates: {gates}\n")


def test_what_was_skipped_and_is_made_after_all_waits_for_its_gates_and_is_skipped_no_more(crew: Crew) -> None:
    """Run, status and the ledger say the same: it waits, until the word completes it."""
    crew.say("page", "review", "APPROVE", "bob")
    crew.life().skip("p", ["page"], reason="not now")
    crew.write("facts.txt", "two\n")
    assert crew.run(options=Options(rerun=("page",))).made == ["page"]
    assert (list(crew.state.skipped), list(crew.state.made)) == ([], ["page"])
    again = crew.run()
    assert (again.exit_code, list(again.waiting)) == (75, ["page", "site"])
    assert crew.say("page", "review", "APPROVE", "bob").status == "complete"
    assert crew.run().made == ["site"]


def test_a_milestone_is_not_complete_while_something_of_it_waits_at_a_gate(tmp_path: Path) -> None:
    """It was, before its only artifact was made again."""
    crew = Crew(tmp_path / "project")
    crew.write("facts.txt", "one\n")
    crew.propose(PLAN.replace("    contract: A page\n", "    contract: A page\n    milestone: m\n"))
    crew.run()
    crew.say("page", "review", "APPROVE", "bob")
    crew.run()
    assert list(crew.state.milestones) == ["m"]
    crew.write("facts.txt", "two\n")
    crew.run()
    assert (list(crew.state.made), list(crew.state.milestones)) == (["page"], [])
    crew.say("page", "review", "APPROVE", "bob")
    crew.run()
    assert list(crew.state.milestones) == ["m"]
