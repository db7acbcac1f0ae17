"""Approval is bound to what was approved: later changes are asked about again, and nothing else is."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from headway.core.approval import plan_hash
from headway.core.plan import Profile
from headway.errors import HeadwayError
from tests.behaviour.crew import Crew
from tests.workshop import Workshop

PLAN = """\
id: p
goal: Write a page
approval: required
artifacts:
  outline: {produces: outline.txt, run: "echo outline > {output}"}
  page: {requires: [outline], produces: page.txt, run: "cat {inputs.outline} > {output}"}
  other: {produces: other.txt, run: "echo other > {output}"}
"""


@pytest.fixture
def crew(tmp_path: Path) -> Crew:
    """A plan that nobody has approved."""
    return Crew(tmp_path / "project", PLAN)


def approved(crew: Crew) -> Crew:
    crew.planning("ann").approve("p")
    assert crew.run().exit_code == 0
    return crew


def test_nothing_is_made_before_somebody_approves(crew: Crew) -> None:
    """The run pauses and says what it waits for; hands are held to it as well."""
    result = crew.run()
    assert (result.made, result.exit_code, result.paused and result.paused.code) == ([], 75, "approval")
    assert result.waiting["outline"] == "the plan's approval: headway approve --plan-id p"
    assert crew.next().status == "waiting"
    with pytest.raises(HeadwayError, match="waits for the plan's approval"):
        crew.life().claim("p", "other")
    assert approved(crew).status() == "complete"


def test_what_nobody_approved_is_foreseen_to_wait(crew: Crew) -> None:
    """It is not made, so it takes no time."""
    seen = crew.work.preview(crew.work.meant(None, "p"))
    assert {item.action for item in seen.items.values()} == {"wait"}
    assert seen.estimated_duration_seconds == 0


def test_a_later_edit_asks_again_only_for_what_changed(crew: Crew) -> None:
    """The rest is made; undoing the edit needs nobody's word."""
    approved(crew)
    crew.propose(PLAN.replace("cat {inputs.outline}", "cat {inputs.outline} {inputs.outline}"))
    (crew.root / "other.txt").unlink()
    result = crew.run()
    assert (result.restored, list(result.waiting), result.exit_code) == (["other"], ["page"], 75)
    crew.propose(PLAN)
    assert crew.run().exit_code == 0
    crew.propose(PLAN.replace("echo other", "echo another"))
    crew.planning("ann").approve("p")
    assert crew.run().made == ["other"]


def test_what_is_not_an_artifact_is_approved_with_the_rest(crew: Crew) -> None:
    """Another goal, other settings or another profile hold everything back."""
    approved(crew)
    crew.work.project.set_profile("p", Profile(parallelization_enabled=True, max_concurrent_tasks=3))
    crew.propose(PLAN.replace("echo other", "echo another"))
    assert crew.run().exit_code == 75
    found = crew.planning().approved("p")
    assert found["drift_detected"] is True
    assert found["approval"]["execution_profile"] is None
    (change,) = found["changes"]["settings"]
    assert (change["key"], change["was"], change["now"].max_concurrent_tasks) == ("profile", None, 3)
    assert list(found["changes"]["modified"]) == ["other"]


def test_what_was_approved_is_compared_with_what_is(crew: Crew) -> None:
    """As `get_approved_plan` answers: by whom, when, which hash, and every difference."""
    before = crew.planning().approved("p")
    assert (before["approved"], before["drift_detected"], before["awaits_approval"]) == (False, "unknown", True)
    approved(crew)
    same = crew.planning().approved("p")
    assert (same["approved"], same["drift_detected"], same["awaits_approval"]) == (True, False, False)
    assert same["approval"]["payload_hash"] == plan_hash(crew.state)
    crew.planning("eve").edit("p", "page", {"description": "longer"}, reason="why not")
    crew.planning("eve").remove("p", ["other"], reason="not needed")
    after = crew.planning().approved("p")
    assert after["changes"]["modified"]["page"] == [{"key": "description", "was": "", "now": "longer"}]
    assert after["changes"]["removed"] == ["other"]
    assert (after["drift_detected"], after["approval"]["by"]) == (True, "ann")


def test_approving_a_plan_that_changed_a_second_ago_is_refused(crew: Crew) -> None:
    """Whoever says what they looked at is held to it, and nothing is recorded."""
    looked_at = plan_hash(crew.state)
    crew.planning("eve").edit("p", "page", {"description": "sneaky"}, reason="hm")
    before = crew.seq
    with pytest.raises(HeadwayError, match="changed since you looked at it") as refused:
        crew.planning("ann").approve("p", hash=looked_at[:16])
    assert (refused.value.error_code, crew.seq) == ("approval.outdated", before)
    assert "--approved" in refused.value.hint


def test_a_rejected_plan_is_not_made_until_it_is_approved(crew: Crew) -> None:
    """Also one that never asked for approval; and rejecting needs a reason."""
    with pytest.raises(HeadwayError, match="needs a reason"):
        crew.planning("bob").reject("p", reason=" ")
    crew.propose(PLAN.replace("approval: required\n", ""))
    crew.planning("bob").reject("p", reason="too expensive")
    assert crew.run().exit_code == 75
    with pytest.raises(HeadwayError) as refused:
        crew.life().claim("p", "other")
    assert refused.value.facts["rejected"] == "too expensive (bob)"
    assert approved(crew).run().exit_code == 0


def test_once_approved_a_plan_is_held_to_it(crew: Crew) -> None:
    """Also where its file does not ask for an approval."""
    crew.propose(PLAN.replace("approval: required\n", ""))
    approved(crew)
    crew.propose(PLAN.replace("approval: required\n", "").replace("echo other", "echo another"))
    assert crew.run().exit_code == 75


def test_an_approval_survives_export_and_import(crew: Crew, tmp_path: Path) -> None:
    """It is bound to content, so it stands wherever the plan is; what exactly changed since is then unknown."""
    approved(crew)
    crew.work.project.export_plan("p", str(tmp_path / "out"))
    other = Crew(tmp_path / "other")
    other.work.project.import_plan(str(tmp_path / "out"))
    assert other.state.approval == crew.state.approval
    assert other.planning().approved("p")["drift_detected"] is False
    other.planning().edit("p", "page", {"tags": ("x",)}, reason="r")
    found = other.planning().approved("p")
    assert (found["drift_detected"], found["changes"], found["awaits_approval"]) == (True, None, True)


def test_the_command_line_approves_and_shows_it(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Exit 75 while somebody's word is awaited, 0 afterwards."""
    shop = Workshop(tmp_path)
    shop.file.write_text(PLAN, encoding="utf-8")
    assert shop.run(capsys, "run").code == 75
    asked = shop.run(capsys, "plans", "show", "--approved", "--json")
    assert (asked.code, asked.json["approved"]) == (75, False)
    assert shop.run(capsys, "approve", "--by", "ann", "--hash", asked.json["hash"][:16]).code == 0
    assert shop.run(capsys, "plans", "show", "--approved").code == 0
    assert shop.run(capsys, "run").code == 0
    assert shop.run(capsys, "run").out.startswith("Nothing to do")
    assert shop.run(capsys, "reject", "--reason", "no").code == 0
    shop.edit("echo other", "echo another")
    assert shop.run(capsys, "run").code == 75


PIPELINE = """\
id: p
goal: Write a book
approval: required
artifacts:
  outline: {produces: outline.json, sources: [scenes.json], run: "cp scenes.json {output}"}
pipelines:
  scene:
    units: {from: outline, items: 'scenes[*].id'%s}
    phases:
      write: {outputs: {text: 'out/{unit}.txt'}, run: 'echo {unit} > out/{unit}.txt'}
      lint:
        outputs: {verdict: 'out/{unit}.json'}
        run: 'case {id} in *~2) echo true;; *) echo false;; esac > out/{unit}.json'
        repeat: [lint]
        until: verdict == true
"""


def scenes(crew: Crew, *names: str) -> None:
    crew.write("scenes.json", json.dumps({"scenes": [{"id": name} for name in names]}))


def test_approving_a_pipeline_approves_what_it_becomes_up_to_its_maximum(tmp_path: Path) -> None:
    """Units and rounds of loops that nobody could know yet need no second word; one too many is refused."""
    crew = Crew(tmp_path / "project", PIPELINE % ", max: 3")
    scenes(crew, "a", "b")
    crew.planning("ann").approve("p")
    signed = plan_hash(crew.state)
    assert sorted(crew.run().made) == ["a/lint~1", "a/lint~2", "a/write", "b/lint~1", "b/lint~2", "b/write", "outline"]
    scenes(crew, "b", "c", "d")
    assert crew.run().exit_code == 0
    found = crew.planning().approved("p")
    assert (found["drift_detected"], found["awaits_approval"], found["hash"]) == (False, False, signed)
    assert crew.planning("bob").approve("p", hash=signed).by == "ann", "what was approved stands"
    scenes(crew, "b", "c", "d", "e")
    result = crew.run()
    assert result.failed["scene:*"] == "there are 4 units, and max says 3"
    assert "e/write" not in crew.state.artifacts


def test_units_of_a_pipeline_without_a_maximum_are_asked_about_as_they_come(tmp_path: Path) -> None:
    """Those that were approved go on, and one that goes and comes back is no new one."""
    crew = Crew(tmp_path / "project", PIPELINE % "")
    scenes(crew, "a", "b")
    crew.planning("ann").approve("p")
    result = crew.run()
    assert (result.made, sorted(result.waiting)[:1], result.exit_code) == (["outline"], ["a/lint~1"], 75)
    assert result.waiting["a/write"] == "the plan's approval: headway approve --plan-id p"
    crew.planning("ann").approve("p")
    assert crew.run().exit_code == 0
    scenes(crew, "b", "c")
    result = crew.run()
    assert (result.made, result.exit_code) == (["outline"], 75)
    found = crew.planning().approved("p")
    assert (found["drift_detected"], found["changes"]["added"]) == (True, ["c/write", "c/lint~1"])
    scenes(crew, "a", "b")
    assert (crew.run().exit_code, crew.planning().approved("p")["drift_detected"]) == (0, False)


def test_whoever_approves_a_pipeline_over_files_approves_the_files_that_there_are(tmp_path: Path) -> None:
    """They are looked at when they are approved, not when the first run finds them, and the hash names them."""
    crew = Crew(tmp_path / "project")
    crew.write("a.md", "a")
    pages = PIPELINE.replace("from: outline, items: 'scenes[*].id'%s", "files: '*.md'")
    crew.propose(pages.replace('sources: [scenes.json], run: "cp scenes.json {output}"', 'run: "echo 1 > {output}"'))
    looked_at = crew.planning().approved("p")["hash"]
    crew.write("b.md", "b")
    with pytest.raises(HeadwayError, match="changed since you looked at it"):
        crew.planning("ann").approve("p", hash=looked_at)
    (crew.root / "b.md").unlink()
    crew.planning("ann").approve("p", hash=looked_at)
    assert crew.run().exit_code == 0
    crew.write("b.md", "b")
    result = crew.run()
    assert (result.made, result.exit_code, "b/write" in result.waiting) == ([], 75, True)


def test_what_comes_of_a_pipeline_is_changed_there_and_kept_by_a_new_version(tmp_path: Path) -> None:
    """An edit of one unit would be undone by the next expansion; a new plan need not repeat what units become."""
    crew = Crew(tmp_path / "project", (PIPELINE % ", max: 3").replace("approval: required\n", ""))
    scenes(crew, "a")
    assert crew.run().exit_code == 0
    before = crew.seq
    with pytest.raises(HeadwayError) as refused:
        crew.planning().edit("p", "a/write", {"description": "mine"}, reason="r")
    assert (refused.value.error_code, crew.seq) == ("plan.expanded", before)
    with pytest.raises(HeadwayError) as refused:
        crew.planning().remove("p", ["a/write"], reason="r")
    assert (refused.value.error_code, crew.seq) == ("plan.expanded", before)
    other = tmp_path / "other.yaml"
    other.write_text((PIPELINE % ", max: 3").replace("approval: required\n", "") + "\n", encoding="utf-8")
    text = other.read_text().replace("pipelines:", "  cover: {run: 'true', produces: c.txt}\npipelines:")
    plan = crew.work.project.parse(text.encode(), "other.yaml").plan
    crew.planning().replan("p", plan, reason="a cover is missing")
    assert crew.state.replans[-1].added == ("cover",)
    assert "a/write" in crew.state.completed
