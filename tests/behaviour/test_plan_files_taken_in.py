"""Plan files taken in: the ledger owns the structure, a file is a proposal, and only what changed in it counts."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from headway.core.ids import hash_goal
from headway.core.plan import Profile
from headway.errors import BlobDamaged, PlanConflict, PlanInvalid, Rejected, UsageError
from tests.workshop import PLAN, Workshop, spec, tree


@pytest.fixture
def shop(tmp_path: Path) -> Workshop:
    """A project with a plan file that nobody has taken in yet."""
    return Workshop(tmp_path / "project")


def test_a_new_file_becomes_a_plan(shop: Workshop) -> None:
    """The first time a file is taken in, its plan is created under the file's id."""
    saved = shop.save()
    assert saved.outcome == "created"
    assert shop.events() == ["plan_created", "proposal_taken"]
    assert list(saved.execution.state.artifacts) == ["model", "routes"]


def test_an_unchanged_file_appends_nothing(shop: Workshop) -> None:
    """Taking in the same file again writes nothing at all."""
    shop.save()
    before = shop.tree()
    assert shop.save().outcome == "unchanged"
    assert shop.tree() == before


def test_a_comment_is_no_change_of_the_plan(shop: Workshop) -> None:
    """A file that proposes the same as before appends nothing, however it is written."""
    shop.save()
    shop.file.write_text("# why we do this\n" + PLAN.replace("[model]", "\n      - model"), encoding="utf-8")
    before = shop.tree()
    assert shop.save().outcome == "unchanged"
    assert shop.tree() == before


def test_while_the_file_is_unchanged_the_ledger_stands(shop: Workshop) -> None:
    """What others changed in the ledger is not taken back by a file that says what it always said."""
    shop.save()
    shop.change(spec("model", description="A better model"), add=(spec("docs"),))
    assert shop.save().outcome == "unchanged"
    state = shop.load().state
    assert state.artifacts["model"].description == "A better model"
    assert "docs" in state.artifacts


def test_only_what_changed_in_the_file_becomes_events(shop: Workshop) -> None:
    """A change in the file leaves alone what others changed elsewhere in the plan."""
    shop.save()
    shop.change(spec("model", description="A better model"))
    shop.edit("The routes", "All routes")
    shop.save()
    assert shop.events()[-2:] == ["artifact_updated", "proposal_taken"]
    state = shop.load().state
    assert state.artifacts["routes"].description == "All routes"
    assert state.artifacts["model"].description == "A better model"


def test_deleting_an_artifact_in_the_file_removes_it(shop: Workshop) -> None:
    """Taking an artifact out of the file counts as saying so; one that only the ledger has stays."""
    shop.save()
    shop.change(add=(spec("docs"),))
    text = shop.file.read_text(encoding="utf-8")
    shop.file.write_text(text[: text.index("  routes:")], encoding="utf-8")
    shop.save()
    assert list(shop.load().state.artifacts) == ["model", "docs"]
    assert "artifact_removed" in shop.events()


def test_a_change_on_both_sides_is_refused_and_changes_nothing(shop: Workshop) -> None:
    """Where file and ledger changed the same artifact, the user decides; until then not a byte is written."""
    shop.save()
    shop.change(spec("model", description="A better model"))
    shop.edit("The user model", "Another model")
    before = shop.tree()
    with pytest.raises(PlanConflict) as error:
        shop.save()
    assert error.value.facts == {"changed on both sides": "model"}
    assert "--take file" in error.value.hint
    assert shop.tree() == before


@pytest.mark.parametrize(("take", "expected"), [("file", "Another model"), ("ledger", "A better model")])
def test_the_user_decides_a_conflict(shop: Workshop, take: str, expected: str) -> None:
    """--take file lets the file win, --take ledger what the ledger has; afterwards there is no conflict any more."""
    shop.save()
    shop.change(spec("model", description="A better model"))
    shop.edit("The user model", "Another model")
    shop.save(take=take)
    assert shop.load().state.artifacts["model"].description == expected
    assert shop.save().outcome == "unchanged"


def test_with_an_id_a_new_goal_is_an_event(shop: Workshop) -> None:
    """A plan that has an id keeps it when its goal changes."""
    shop.save()
    shop.edit("Build an API", "Build a better API")
    shop.save()
    assert shop.events()[2:] == ["goal_changed", "proposal_taken"]
    assert shop.project.plan_ids() == ["api"]


def test_without_an_id_the_goal_names_the_plan(shop: Workshop) -> None:
    """A file without an id is known by its goal, so that another goal is another plan."""
    shop.edit("id: api\n", "")
    shop.save()
    shop.edit("Build an API", "Build a better API")
    shop.save()
    assert shop.project.plan_ids() == sorted([hash_goal("Build an API"), hash_goal("Build a better API")])


def test_problems_do_not_prevent_saving_a_draft(shop: Workshop) -> None:
    """A plan with a cycle, a missing requirement and an output outside the project is kept, and all of it is told."""
    shop.edit("  model:\n", "  model:\n    requires: [routes, nothing]\n")
    shop.edit("src/model.py", "../model.py")
    saved = shop.save()
    assert {problem.code for problem in saved.problems} == {"plan.cycle", "plan.missing", "plan.path"}
    assert all(problem.line for problem in saved.problems)
    assert set(shop.load().state.artifacts) == {"model", "routes"}
    assert (shop.folder() / "plan.json").is_file()


def test_where_no_draft_is_wanted_problems_refuse_it(shop: Workshop) -> None:
    """Whoever needs a plan that can run gets all problems and nothing is saved."""
    shop.edit("[model]", "[modl]")
    before = shop.tree()
    with pytest.raises(PlanInvalid) as error:
        shop.save(draft=False)
    assert "did you mean model?" in str(error.value)
    assert shop.tree() == before


@pytest.mark.parametrize(
    "text",
    ["goal: [", "", "\0", "- a\n- b\n", "artifacts: {}\n", b"\xff\xfe".decode("latin-1") * 3, "id: ../x\ngoal: g\n"],
    ids=["broken", "empty", "nul", "list", "nameless", "odd", "outside"],
)
def test_text_that_names_no_plan_saves_nothing(shop: Workshop, text: str) -> None:
    """What does not parse, or has neither goal nor id, or an id that cannot be one, is refused without a trace."""
    shop.file.write_text(text, encoding="latin-1")
    before = shop.tree()
    with pytest.raises(PlanInvalid):
        shop.save()
    assert shop.tree() == before


@pytest.mark.parametrize("plan_id", ["../x", "a/b", ".hidden", "", "x" * 65, "a b", "ä", "-x"])
def test_ids_that_could_leave_the_folder_are_refused(shop: Workshop, plan_id: str) -> None:
    """A plan id is a plain name: nothing outside plans/ can be reached by one."""
    before = tree(shop.root.parent)
    with pytest.raises(UsageError):
        shop.project.store.folder(plan_id)
    assert tree(shop.root.parent) == before


def test_ids_that_differ_by_case_only_are_one_id(shop: Workshop) -> None:
    """On some disks two such folders would be one, so that the second id is refused everywhere."""
    shop.save()
    shop.edit("id: api", "id: API")
    before = shop.tree()
    with pytest.raises(UsageError, match="There is a plan api already"):
        shop.save()
    assert shop.tree() == before


def test_an_id_given_beside_another_in_the_file_is_refused(shop: Workshop) -> None:
    """A file that has an id cannot be saved under a second one."""
    with pytest.raises(UsageError, match=r"differs from the id in headway\.yaml"):
        shop.save(plan_id="other")


def test_a_profile_that_cannot_be_is_kept_closed(shop: Workshop) -> None:
    """An impossible number is a problem of the draft, which is saved with one at a time, and is mended by the file."""
    profile = "profile: {parallelization_enabled: true, max_concurrent_tasks: 99, locked: true}\n"
    shop.file.write_text(PLAN + profile, encoding="utf-8")
    saved = shop.save()
    assert [problem.code for problem in saved.problems] == ["plan.range"]
    assert shop.load().state.profile == Profile(parallelization_enabled=True, max_concurrent_tasks=1)
    shop.edit("99", "9")
    shop.save()
    profile_now = shop.load().state.profile
    assert profile_now == Profile(parallelization_enabled=True, max_concurrent_tasks=9, locked=True)


def test_a_closed_plan_takes_no_file(shop: Workshop) -> None:
    """A plan that was put away is not changed by its file until it is reset."""
    shop.save()
    shop.project.close_plan("api")
    shop.edit("The routes", "All routes")
    before = shop.tree()
    with pytest.raises(Rejected, match="closed"):
        shop.save()
    assert shop.tree() == before


def test_a_lost_proposal_needs_a_word(shop: Workshop) -> None:
    """If what the file last said is gone, its changes cannot be told from the ledger's: one side is taken whole."""
    shop.save()
    shop.change(spec("model", description="A better model"))
    for pack in (shop.root / ".headway" / "blobs").iterdir():
        pack.unlink()
    shop.edit("The routes", "All routes")
    with pytest.raises(BlobDamaged, match="not known any more") as error:
        shop.save()
    assert "--take" in error.value.hint
    shop.save(take="ledger")
    assert shop.load().state.artifacts["routes"].description == "The routes"
    shop.edit("artifacts:", "artifacts:\n  docs: {}")
    shop.save()
    assert set(shop.load().state.artifacts) == {"docs", "model", "routes"}
    assert shop.load().state.artifacts["model"].description == "A better model"


def test_a_file_outside_the_project_is_recorded_by_name(shop: Workshop, tmp_path: Path) -> None:
    """No path of this machine gets into the ledger."""
    other = tmp_path / "elsewhere.yaml"
    other.write_text(PLAN, encoding="utf-8")
    saved = shop.project.save_plan(str(other))
    assert saved.execution.state.proposal is not None
    assert saved.execution.state.proposal.path == "elsewhere.yaml"
    assert str(tmp_path).encode() not in shop.ledger().read_bytes()


def test_the_proposal_is_kept_as_a_blob(shop: Workshop) -> None:
    """What the file proposed can be read back as it was taken in."""
    shop.save()
    proposal = shop.load().state.proposal
    assert proposal is not None
    kept = msgspec.json.decode(shop.project.blobs.get(proposal.blob))
    assert [artifact["id"] for artifact in kept["artifacts"]] == ["model", "routes"]


def test_json_plan_files_are_plan_files(shop: Workshop) -> None:
    """headway.json is found where there is no headway.yaml."""
    shop.file.unlink()
    (shop.root / "headway.json").write_text('{"id": "j", "goal": "g", "artifacts": {"a": null}}', encoding="utf-8")
    assert shop.project.default_file().endswith("headway.json")
    assert shop.project.select() == "j"


TWO = """\
id: two
goal: Two
artifacts:
  page:
    produces: page.txt
    run: "echo page > {output}"
    gates: [{name: review, by: [ann]}]
"""
SOUND = TWO.replace("[{name: review, by: [ann]}]", "{review: {by: [ann]}}")


def test_a_draft_does_not_run_without_what_could_not_be_read(
    shop: Workshop, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The gate that was left out is not passed by silence: by id and by file, run names the problem."""
    monkeypatch.chdir(shop.root)
    (shop.root / "two.yaml").write_text(TWO)
    saved = shop.run(capsys, "plans", "new", "two.yaml")
    assert (saved.code, "then: headway plans new two.yaml" in saved.err) == (2, True)
    for words in (["--plan-id", "two"], ["--plan", "two.yaml"]):
        done = shop.run(capsys, "run", *words)
        assert (done.code, (shop.root / "page.txt").exists()) == (2, False)
        assert "line 7: artifact page: gates must be a mapping of names to gates" in done.err
    assert "headway plans new two.yaml" in shop.run(capsys, "run", "--plan-id", "two").err
    assert shop.run(capsys, "claim", "page", "--plan-id", "two").code == 3
    (shop.root / "two.yaml").write_text(SOUND)
    assert shop.run(capsys, "plans", "new", "two.yaml").code == 0
    assert shop.run(capsys, "run", "--plan-id", "two").code == 75
    assert list(shop.load("two").state.made) == ["page"]


MISTYPED = """\
id: two
goal: g
artifacts:
  page: {run: "echo {ouput}"}
"""
IN_PIPELINES = """\
pipelines:
  scene:
    units: [a, b]
    phases:
      write: {run: "echo {unitt}"}
      read: {inputs: [write, nope], run: "echo {ouput}"}
"""


@pytest.mark.parametrize("more", ["", IN_PIPELINES], ids=["artifacts", "pipelines"])
def test_problems_of_a_draft_keep_their_lines(more: str, shop: Workshop, capsys: pytest.CaptureFixture[str]) -> None:
    """Each of them once, however many units there are; without lines where the file says something else by now."""
    file = shop.root / "two.yaml"
    file.write_text(MISTYPED + more)
    asked = shop.run(capsys, "run", "--plan", str(file))
    assert "line 4: artifact page: in run, {ouput} is not a placeholder" in asked.err
    shop.run(capsys, "plans", "new", str(file))
    for words in (["--plan-id", "two"], ["--plan", str(file)]):
        assert shop.run(capsys, "run", *words) == asked
    file.write_text(f"# moved\n{MISTYPED}{more}")
    moved = shop.run(capsys, "run", "--plan-id", "two")
    assert (moved.code, len(moved.err.splitlines())) == (2, len(asked.err.splitlines()))
    assert moved.err.startswith("headway: Plan two has ")
    assert "  artifact page: in run, {ouput} is not a placeholder" in moved.err
    file.unlink()
    assert shop.run(capsys, "run", "--plan-id", "two").err == moved.err


def test_a_draft_is_sound_again_when_what_could_not_be_read_is_gone(
    shop: Workshop, capsys: pytest.CaptureFixture[str]
) -> None:
    """Nothing of the plan changes by that, and still it is recorded."""
    broken = TWO.replace("id: two", "id: api")
    shop.file.write_text(broken)
    assert shop.run(capsys, "plans", "new").code == 2
    assert shop.load().state.proposal.problems  # type: ignore[union-attr]
    shop.file.write_text(broken.replace("    gates: [{name: review, by: [ann]}]\n", ""))
    assert shop.run(capsys, "run").code == 0
    assert shop.load().state.proposal.problems == ()  # type: ignore[union-attr]
    assert (shop.root / "page.txt").exists()


def test_fresh_makes_the_plan_what_its_file_says(shop: Workshop, capsys: pytest.CaptureFixture[str]) -> None:
    """Whatever others made of it since; what was made and still fits is kept."""
    shop.run(capsys, "run")
    shop.run(capsys, "plans", "edit", "set", "model", "description=Another", "--reason", "a try")
    shop.run(capsys, "plans", "edit", "add", "extra", "run=true", "--reason", "another")
    shown = shop.run(capsys, "run", "-n", "--fresh").out
    assert "Removed    1  extra" in shown
    assert shown.endswith("Nothing to do.\n")
    assert "extra" in shop.run(capsys, "status", "--json").json["artifacts"], "a preview changes nothing"
    assert shop.run(capsys, "run", "--fresh").out == "Nothing to do: 2 artifacts are up to date.\n"
    assert list(shop.run(capsys, "status", "--json").json["artifacts"]) == ["model", "routes"]


def test_a_run_names_what_the_file_no_longer_has_and_the_files_that_stay(
    shop: Workshop, capsys: pytest.CaptureFixture[str]
) -> None:
    """Nothing is deleted, so somebody has to know; the next run has nothing to say."""
    plan = "id: two\ngoal: g\nartifacts:\n  a: {run: 'echo a > {output}', produces: a.txt}\n"
    shop.file.write_text(f"{plan}  b: {{run: 'echo b > {{output}}', produces: b.txt}}\n  c: {{run: 'echo c'}}\n")
    shop.run(capsys, "run")
    shop.file.write_text(plan)
    ran = shop.run(capsys, "run")
    assert ran.err == (
        "No longer in the plan: b, c. Their files stay: b.txt."
        f" headway gc --outputs --dry-run --project {shop.root} lists those that can go.\n"
    )
    assert shop.run(capsys, "run").err == ""
    for produced, said in (("d/", "Folders"), ("d/, c.txt", "Their files stay: c.txt.")):
        shop.file.write_text(f"{plan}  c: {{run: 'echo > d/f; echo > c.txt', produces: [{produced}]}}\n")
        shop.run(capsys, "run", "--accept-edits")
        shop.file.write_text(plan)
        ran = shop.run(capsys, "run")
        assert ran.err.startswith(f"No longer in the plan: c. {said}")
        assert "Folders stay, and are yours to delete: d/.\n" in ran.err, "which gc does not list"
    shop.file.write_text(plan.replace("  a:", "  d:"))
    assert shop.run(capsys, "run", "--json").json["removed"] == ["a"]
