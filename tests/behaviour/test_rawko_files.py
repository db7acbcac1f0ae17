"""Plans as SPEC-0010 keeps them: two YAML files, read and written back without loss."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from headway.errors import HeadwayError
from headway.life import Life
from headway.project import Project
from headway.projections.saved_execution import SavedExecution
from headway.work import Meant, Work

GIVEN = Path(__file__).parents[1] / "fixtures" / "rawko"
EXAMPLE = "plan-20260123-auth-feature"
OURS = """\
id: site
goal: Build a site
vars: {style: plain}
artifacts:
  page: {produces: page.html, run: "echo {vars.style} > {output}", milestone: first}
  proof: {requires: [page], gates: {read: {kind: review}}}
  index: {requires: [proof], agent: ann, metadata: {a: [1]}}
"""


def load(path: Path) -> Any:
    return yaml.load(path.read_text(encoding="utf-8"), Loader=yaml.BaseLoader)


def export(project: Project, plan_id: str, folder: Path) -> Path:
    project.export_plan(plan_id, str(folder), format="rawko")
    return folder / "plans" / f"{plan_id}.yaml"


def kept(execution: SavedExecution) -> tuple[Any, ...]:
    """What must survive a journey."""
    state = execution.state
    done = {a: (c.at, c.by, c.outputs, c.fp, c.how, c.note) for a, c in state.completed.items()}
    failed = {a: (f.at, f.by, f.error) for a, f in state.failed.items()}
    return (state.goal, state.version, state.settings, state.artifacts, done, failed, state.skipped.keys(), state.made)


@pytest.fixture
def project(tmp_path: Path) -> Project:
    return Project(tmp_path / "here")


def test_the_example_plan_comes_in_with_its_progress(project: Project) -> None:
    """Its steps are artifacts; what is done is done, what was under way can be claimed, and nothing is made again."""
    saved = project.import_plan(str(GIVEN), format="rawko")
    state = saved.execution.state
    assert (state.plan_id, state.goal) == (EXAMPLE, "Implement user authentication with JWT")
    assert list(state.completed) == ["step-0", "step-1"]
    assert state.artifacts["step-3"].requires == ("step-1", "step-2")
    assert state.settings.tags == ("auth", "jwt", "api")
    found = Life(Work(project), by="ann").next(Meant(EXAMPLE))
    assert [offer.spec.id for offer in found.offers] == ["step-2"]


def test_the_example_plan_goes_out_as_it_came_in(project: Project, tmp_path: Path) -> None:
    """Every field of both files is what it was, times and empty lists included."""
    project.import_plan(str(GIVEN), format="rawko")
    written = export(project, EXAMPLE, tmp_path / "out")
    assert load(written) == load(GIVEN / "plans" / f"{EXAMPLE}.yaml")
    assert load(tmp_path / "out" / "current-task.yaml") == load(GIVEN / "current-task.yaml")


def test_what_happens_to_the_example_shows_in_its_file(project: Project, tmp_path: Path) -> None:
    """A step that was done since is complete, and the next one is current."""
    project.import_plan(str(GIVEN), format="rawko")
    life = Life(Work(project), by="ann")
    life.claim(EXAMPLE, "step-2")
    life.complete(EXAMPLE, "step-2", token=None, text=b"made", note="there is a login now")
    found = load(export(project, EXAMPLE, tmp_path / "out"))
    assert load(tmp_path / "out" / "current-task.yaml")["task"] == "Implement user authentication"
    step = found["steps"][2]
    assert (step["status"], step["executedBy"], step["output"]) == ("complete", "ann", "there is a login now")
    assert found["currentStepIndex"] == "3"
    assert found["steps"][1] == load(GIVEN / "plans" / f"{EXAMPLE}.yaml")["steps"][1]


def test_a_plan_of_our_own_comes_back_without_loss(project: Project, tmp_path: Path) -> None:
    """Recipes, gates, milestones, digests and metadata survive in a form that has no place for them."""
    (tmp_path / "here").mkdir()
    (tmp_path / "here" / "headway.yaml").write_text(OURS)
    work = Work(project)
    work.take_in(work.meant(str(tmp_path / "here" / "headway.yaml"), None))
    work.run("site")
    life = Life(work, by="ann")
    life.claim("site", "proof")
    life.complete("site", "proof", token=None, text=b"fine")
    written = export(project, "site", tmp_path / "out")

    other = Project(tmp_path / "there")
    taken = other.import_plan(str(written), format="rawko")
    assert kept(taken.execution) == kept(project.show("site"))
    assert load(export(other, "site", tmp_path / "again"))["steps"] == load(written)["steps"]


def test_what_somebody_changes_in_the_file_counts(project: Project, tmp_path: Path) -> None:
    """One step is said to be skipped: the others keep their recipes and their progress."""
    (tmp_path / "here").mkdir()
    (tmp_path / "here" / "headway.yaml").write_text(OURS)
    work = Work(project)
    work.take_in(work.meant(str(tmp_path / "here" / "headway.yaml"), None))
    work.run("site")
    written = export(project, "site", tmp_path / "out")
    given = yaml.safe_load(written.read_text())
    given["steps"][1] |= {"status": "skipped", "output": "not needed"}
    written.write_text(yaml.safe_dump(given))

    state = Project(tmp_path / "there").import_plan(str(written), format="rawko").execution.state
    assert state.skipped["proof"].reason == "not needed"
    assert state.artifacts["page"].run == "echo {vars.style} > {output}"
    assert list(state.completed) == ["page"]


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"steps": "none"}, "steps must be a list"),
        ({"steps": [{"index": 1}]}, "numbered 0, 1, 2"),
        ({"steps": [{"index": 0, "dependsOn": [7]}]}, "dependsOn"),
        ({"steps": [{"index": 0, "status": "finished"}]}, "status must be one of"),
        ({"steps": [{"index": 0, "dependsOn": [0]}]}, "itself"),
        ({"id": "../../etc"}, "id"),
        ({"task": 7}, "task must be text"),
    ],
)
def test_a_file_that_is_wrong_is_refused_whole(project: Project, tmp_path: Path, change: dict, said: str) -> None:
    """Nothing is taken in, and the reason names the field."""
    file = tmp_path / "plan.yaml"
    file.write_text(yaml.safe_dump({"id": "p", "task": "t", "steps": []} | change))
    with pytest.raises(HeadwayError) as caught:
        project.import_plan(str(file), format="rawko")
    assert said in str(caught.value)
    assert project.plan_ids() == []


def test_other_files_are_not_written_over(project: Project, tmp_path: Path) -> None:
    """What stands there and is no plan of this form stays."""
    project.import_plan(str(GIVEN), format="rawko")
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "current-task.yaml").write_text("mine")
    with pytest.raises(HeadwayError, match="already"):
        export(project, EXAMPLE, tmp_path / "out")
    assert (tmp_path / "out" / "current-task.yaml").read_text() == "mine"
    assert not (tmp_path / "out" / "plans").exists()
