"""Projections: derived from the ledger, disposable, and never overwritten where somebody edited them."""

from __future__ import annotations

import json
import os
import shutil
import time
from pathlib import Path
from typing import Any

import pytest

from headway.core.commands import ChangePlan, SetProfile, SkipArtifacts
from headway.core.plan import Profile
from headway.disk import RealDisk
from headway.doctor import Doctor
from headway.errors import PlanConflict, Rejected, UsageError
from headway.project import Project
from headway.projections import markdown, saved_execution
from tests.bench import Bench
from tests.workshop import PLAN, Workshop, fields, spec

FILES = ("plan.json", "plan.md", "export/PLAN.json", "export/PLAN.md")


@pytest.fixture
def shop(tmp_path: Path) -> Workshop:
    """A project with a saved plan."""
    shop = Workshop(tmp_path / "project")
    shop.save()
    return shop


def edit_json(path: Path, change: Any) -> None:
    """Change a JSON file as a person with an editor does."""
    document = json.loads(path.read_text(encoding="utf-8"))
    change(document)
    path.write_text(json.dumps(document, indent=2), encoding="utf-8")


def describe(artifact_id: str, text: str) -> Any:
    """An edit of a description."""

    def change(document: dict[str, Any]) -> None:
        document["graph"]["artifacts"][artifact_id]["description"] = text

    return change


def findings(shop: Workshop) -> list[str]:
    """What doctor finds, by code."""
    return [diagnosis.finding.code for diagnosis in Doctor(shop.project).examine()]


# Derived.


def test_plan_json_has_the_keys_of_rfc_040(shop: Workshop) -> None:
    """Version, goal, graph with waves, execution and metrics stand where RFC-040 put them."""
    shop.complete("model")
    shop.fail("routes", "it broke")
    plan = json.loads((shop.folder() / "plan.json").read_bytes())
    assert plan["version"] == "1.0"
    assert (plan["goal"], len(plan["goal_hash"])) == ("Build an API", 16)
    assert plan["created_at"].endswith("Z")
    assert plan["graph"]["waves"] == [["model"], ["routes"]]
    assert plan["graph"]["artifacts"]["routes"] == {
        "id": "routes",
        "description": "The routes",
        "contract": "",
        "requires": ["model"],
        "produces_file": "src/routes.py",
        "domain_type": None,
        "produces": ["src/routes.py"],
        "run": "cat {inputs.model} > {output}",
    }
    assert plan["execution"]["status"] == "replanning"
    assert plan["execution"]["failed"] == {"routes": "it broke"}
    assert plan["execution"]["skipped"] == []
    done = plan["execution"]["completed"]["model"]
    assert (len(done["content_hash"]), done["duration_ms"], done["verified"]) == (16, 7, False)
    assert plan["metrics"] == {
        "total_duration_ms": 7,
        "model_distribution": {"small": 1, "medium": 1, "large": 0},
        "parallelization_factor": 1.0,
        "estimated_sequential_ms": 7,
        "total_artifacts": 2,
        "completed_count": 1,
        "failed_count": 1,
    }


def test_plan_json_names_the_event_that_it_reflects_and_its_own_digest(shop: Workshop) -> None:
    """The file opens with its digest and its position in the ledger, and both are true."""
    data = (shop.folder() / "plan.json").read_bytes()
    opening = saved_execution.opening_of(data[: saved_execution.OPENING_BYTES])
    assert opening is not None
    assert opening.plan_id == "api"
    assert opening.position == shop.load().position
    assert saved_execution.is_intact(data)
    assert not saved_execution.is_intact(data.replace(b"The routes", b"The root s"))


def test_plan_md_is_for_people(shop: Workshop) -> None:
    """plan.md shows the goal, how far it is, and each artifact with a box to tick."""
    shop.complete("model")
    shop.fail("routes", "it broke\nbadly")
    text = (shop.folder() / "plan.md").read_text(encoding="utf-8")
    assert "# Build an API" in text
    assert "Plan `api`, version 1: replanning, 1 of 2 done." in text
    assert "## base" in text
    assert "- [x] **model**: The user model (`src/model.py`)" in text
    assert "- [!] **routes**: The routes (failed; it broke; needs model; `src/routes.py`)" in text
    assert markdown.position_of(text.encode()) == shop.load().position


@pytest.mark.parametrize("name", [*FILES, "export", "head"])
def test_deleting_a_projection_changes_nothing(shop: Workshop, name: str) -> None:
    """A deleted file is missed by no reader, is no finding, and is written again by the next writer."""
    before = shop.load()
    path = shop.folder() / name
    shutil.rmtree(path) if path.is_dir() else path.unlink()
    assert shop.load() == before
    assert findings(shop) == []
    shop.do(SkipArtifacts(ids=("routes",), reason="not needed"))
    assert path.exists()
    for file in FILES:
        assert (shop.folder() / file).is_file()


def test_everything_but_the_ledger_can_be_deleted(shop: Workshop) -> None:
    """The ledger alone gives the same plan."""
    shop.complete("model")
    before = shop.load()
    for path in shop.folder().iterdir():
        if path.name != "ledger.jsonl":
            shutil.rmtree(path) if path.is_dir() else path.unlink()
    assert shop.load() == before


def test_an_old_projection_is_no_drift(shop: Workshop) -> None:
    """A file from a backup reflects an earlier event, and that is all."""
    old = (shop.folder() / "plan.json").read_bytes()
    shop.complete("model")
    (shop.folder() / "plan.json").write_bytes(old)
    assert findings(shop) == []
    shop.complete("routes")
    assert json.loads((shop.folder() / "plan.json").read_bytes())["metrics"]["completed_count"] == 2


@pytest.mark.parametrize("name", FILES)
@pytest.mark.parametrize("cut", [0, 200, 600])
def test_a_projection_cut_short_is_no_edit(shop: Workshop, name: str, cut: int) -> None:
    """What a power cut leaves of a file is written again without a question, by whoever writes next, or by doctor."""
    path = shop.folder() / name
    whole = path.read_bytes()
    path.write_bytes(whole[:cut] + b"\0" * 100)
    assert findings(shop) == ["projection.cut"]
    assert Doctor(shop.project).repair() == [f"api: {name} written from the ledger again."]
    assert path.read_bytes() == whole
    path.write_bytes(whole[:cut])
    shop.do(SkipArtifacts(ids=("model",), reason="not needed"))
    shop.do(ChangePlan(goal="Build it"))
    assert b"Build it" in path.read_bytes()


def test_reformatting_is_no_edit(shop: Workshop) -> None:
    """A file that says the same in another layout is no drift."""
    path = shop.folder() / "plan.json"
    path.write_text(json.dumps(json.loads(path.read_bytes())), encoding="utf-8")
    assert findings(shop) == []


@pytest.mark.parametrize("name", FILES)
def test_a_line_more_or_less_at_its_end_is_none_either(shop: Workshop, name: str) -> None:
    """Nothing of it is missing."""
    path = shop.folder() / name
    whole = path.read_bytes()
    for data in (whole + b"\n", whole.rstrip(b"\n")):
        path.write_bytes(data)
        assert findings(shop) == []


def test_a_disk_that_refuses_a_projection_refuses_no_event(shop: Workshop) -> None:
    """What was recorded stays recorded and the caller is told of success; the file is told of on the side."""

    class NoProjections(RealDisk):
        def replace(self, source: str, target: str) -> None:
            if target.endswith("plan.json"):
                raise OSError(28, "No space left on device")
            super().replace(source, target)

    heard: list[str] = []
    project = Project(shop.root, disk=NoProjections(), notice=heard.append)
    assert project.set_profile("api", Profile()).state.profile == Profile()
    assert heard == ["plan.json cannot be written (No space left on device); no event depends on it"]
    assert shop.load().state.profile == Profile()
    assert not list(shop.folder().glob("*.tmp"))


def test_what_killed_writers_left_is_swept_away(shop: Workshop) -> None:
    """Half-written copies of projections do not pile up; young ones may be somebody's and stay."""
    old, young = shop.folder() / "plan.json.1.0badcafe.tmp", shop.folder() / "plan.md.1.0badcafe.tmp"
    for path in (old, young):
        path.write_bytes(b"half")
    os.utime(old, (time.time() - 7200, time.time() - 7200))
    shop.complete("model")
    assert (old.exists(), young.exists()) == (False, True)


# Drift.


def test_an_edit_is_reported_field_by_field(shop: Workshop) -> None:
    """Doctor says which fields of the file differ, what it says there and what the ledger says."""
    edit_json(shop.folder() / "plan.json", describe("model", "Mine"))
    (found,) = Doctor(shop.project).examine()
    assert found.plan_id == "api"
    assert found.finding.code == "projection.drift"
    assert found.finding.message == (
        "plan.json was edited by hand\n"
        'graph.artifacts.model.description: "Mine" in the file, "The user model" in the ledger'
    )
    assert found.finding.cost.startswith("nothing")
    assert found.finding.repair == "headway doctor --repair --plan-id api --drift discard (or adopt)"


def test_only_edits_are_reported_however_old_the_file_is(shop: Workshop) -> None:
    """What has happened since the file was written is not taken for an edit of it."""
    edit_json(shop.folder() / "plan.json", describe("model", "Mine"))
    shop.edit("The routes", "All routes")
    shop.save()
    shop.complete("model")
    drift = shop.project.folder("api").files.drift(shop.load())
    assert {kind.name: fields(found.differences) for kind, found in drift.items()} == {
        "plan.json": ["graph.artifacts.model.description"]
    }


@pytest.mark.parametrize("name", FILES)
def test_an_edited_file_is_left_alone_until_the_user_decides(shop: Workshop, name: str) -> None:
    """No writer overwrites what somebody wrote; it is said on the side, and the other files go on."""
    path = shop.folder() / name
    path.write_text(path.read_text(encoding="utf-8").replace("The routes", "My routes"), encoding="utf-8")
    edited = path.read_bytes()
    heard: list[str] = []
    Project(shop.root, notice=heard.append).set_profile("api", Profile())
    assert path.read_bytes() == edited
    assert heard == [f"{name} was edited by hand and is left alone: headway doctor shows the difference"]
    assert findings(shop) == ["projection.drift"]
    for other in {*FILES} - {name}:
        assert saved_execution.is_intact(data := (shop.folder() / other).read_bytes()) or markdown.is_intact(data)


def test_an_edit_of_the_position_is_drift_and_not_damage(shop: Workshop) -> None:
    """A number typed into plan.json cannot make anybody believe that the ledger has lost events."""
    path = shop.folder() / "plan.json"
    path.write_bytes(path.read_bytes().replace(b'"seq": 2', b'"seq": 999'))
    assert shop.load().position.seq == 2
    drift = shop.project.folder("api").files.drift(shop.load())
    assert [fields(found.differences) for found in drift.values()] == [["position.seq"]]


def test_a_projection_of_another_plan_proves_nothing(shop: Workshop) -> None:
    """A plan.json that was copied over from elsewhere does not make this ledger look short."""
    other = Workshop(shop.root.parent / "other")
    other.edit("id: api", "id: other")
    other.save()
    for _ in range(3):
        other.project.reset("other")
    shutil.copy(other.folder("other") / "plan.json", shop.folder() / "plan.json")
    assert shop.load().position.seq == 2


@pytest.mark.parametrize("rubbish", [b"{x", b"[]", b"hello", b"\xff\xfe", b"[" * 100_000, b"null"])
def test_rubbish_in_place_of_a_projection_is_kept_until_it_is_discarded(shop: Workshop, rubbish: bytes) -> None:
    """Nobody knows what somebody meant by it, so that it is shown as an edit and kept as a copy."""
    path = shop.folder() / "plan.json"
    path.write_bytes(rubbish)
    shop.complete("model")
    assert path.read_bytes() == rubbish
    assert findings(shop) == ["projection.drift"]
    Doctor(shop.project).repair(drift="discard")
    assert saved_execution.is_intact(path.read_bytes())
    assert [p.read_bytes() for p in (shop.folder() / "quarantine").iterdir()] == [rubbish]


def test_a_folder_in_place_of_a_projection_is_a_finding(shop: Workshop) -> None:
    """Whatever stands there, plans go on; discarding moves it aside whole."""
    path = shop.folder() / "plan.json"
    path.unlink()
    path.mkdir()
    (path / "note").write_text("mine", encoding="utf-8")
    shop.complete("model")
    assert findings(shop) == ["projection.drift"]
    Doctor(shop.project).repair(drift="discard")
    assert findings(shop) == []
    assert [p.read_text(encoding="utf-8") for p in (shop.folder() / "quarantine").rglob("note")] == ["mine"]


def test_discarding_keeps_a_copy_and_changes_no_event(shop: Workshop) -> None:
    """The file is what the ledger says again, and the edited one is in quarantine."""
    path = shop.folder() / "plan.json"
    edit_json(path, describe("model", "Mine"))
    edited, before = path.read_bytes(), shop.events()
    (said,) = Doctor(shop.project).repair(drift="discard")
    assert said.startswith("api: plan.json written from the ledger again; the edited one is quarantine/")
    assert saved_execution.is_intact(path.read_bytes())
    assert [p.read_bytes() for p in (shop.folder() / "quarantine").iterdir()] == [edited]
    assert shop.events() == before
    assert findings(shop) == []


def test_adopting_makes_an_edit_events(shop: Workshop) -> None:
    """Goal, artifacts, order, settings and profile of an edited plan.json become events, with their reason."""

    def change(plan: dict[str, Any]) -> None:
        artifacts = plan["graph"]["artifacts"]
        artifacts["model"]["description"] = "Mine"
        plan["graph"]["artifacts"] = {"docs": {"id": "docs", "requires": ["model"]}, "model": artifacts["model"]}
        plan["goal"] = "Build my API"
        plan["execution_profile"] = {"parallelization_enabled": True, "max_concurrent_tasks": 3}
        plan["plan"]["settings"] = {"jobs": 2}

    edit_json(shop.folder() / "plan.json", change)
    Doctor(shop.project).repair(drift="adopt")
    state = shop.load().state
    assert state.goal == "Build my API"
    assert list(state.artifacts) == ["docs", "model"]
    assert state.artifacts["model"].description == "Mine"
    assert state.profile == Profile(parallelization_enabled=True, max_concurrent_tasks=3)
    assert state.settings.jobs == 2
    assert {getattr(record.event, "reason", "") for record in shop.history()[3:]} == {"adopted from plan.json"}
    assert findings(shop) == []


def test_adopting_an_old_file_takes_nothing_back(shop: Workshop) -> None:
    """What the ledger has gained since the file was written stays."""
    edit_json(shop.folder() / "plan.json", describe("model", "Mine"))
    shop.edit("artifacts:", "artifacts:\n  docs: {}")
    shop.save()
    Doctor(shop.project).repair(drift="adopt")
    state = shop.load().state
    assert set(state.artifacts) == {"docs", "model", "routes"}
    assert state.artifacts["model"].description == "Mine"


def test_progress_cannot_be_adopted(shop: Workshop) -> None:
    """An artifact is not complete because somebody wrote so; that part is named, and the rest is adopted."""

    def change(plan: dict[str, Any]) -> None:
        plan["goal"] = "Build my API"
        plan["execution"]["completed"]["model"] = {"content_hash": "0" * 16}
        plan["execution"]["status"] = "complete"

    edit_json(shop.folder() / "plan.json", change)
    said = Doctor(shop.project).repair(drift="adopt")
    assert shop.load().state.goal == "Build my API"
    assert shop.load().state.completed == {}
    assert sum("not adopted" in line for line in said) == 2


def test_an_edit_that_collides_with_the_ledger_is_not_adopted(shop: Workshop) -> None:
    """Where both changed the same artifact the user decides, and meanwhile nothing has changed."""
    edit_json(shop.folder() / "plan.json", describe("model", "Mine"))
    shop.change(spec("model", description="Theirs"))
    before = shop.tree()
    with pytest.raises(PlanConflict):
        Doctor(shop.project).repair(drift="adopt")
    assert shop.tree() == before


def test_an_edit_of_a_locked_profile_is_not_adopted(shop: Workshop) -> None:
    """Drift is no way around a lock: nothing of the file becomes an event."""
    shop.do(SetProfile(profile=Profile(locked=True)))

    def change(plan: dict[str, Any]) -> None:
        plan["goal"] = "Build my API"
        plan["execution_profile"]["max_concurrent_tasks"] = 64

    edit_json(shop.folder() / "plan.json", change)
    before = shop.tree()
    with pytest.raises(Rejected, match="locked"):
        Doctor(shop.project).repair(drift="adopt")
    assert shop.tree() == before


@pytest.mark.parametrize(
    "change",
    [
        lambda plan: plan["graph"]["artifacts"]["model"].update(requires=5),
        lambda plan: plan["graph"]["artifacts"]["model"].update(id="other"),
        lambda plan: plan["graph"].pop("artifacts"),
        lambda plan: plan.update(plan_id="other"),
        lambda plan: plan.update(version="2.0"),
        lambda plan: plan["execution"].update(status="wonderful"),
    ],
)
def test_an_edit_that_makes_no_sense_is_not_adopted(shop: Workshop, change: Any) -> None:
    """A file that is no plan any more is refused whole, and nothing has changed."""
    edit_json(shop.folder() / "plan.json", change)
    before = shop.tree()
    with pytest.raises(UsageError):
        Doctor(shop.project).repair(drift="adopt")
    assert shop.tree() == before


def test_an_edited_checkpoint_can_be_adopted_too(shop: Workshop) -> None:
    """export/PLAN.json has the same shape and the same choice."""
    edit_json(shop.folder() / "export" / "PLAN.json", describe("model", "Mine"))
    Doctor(shop.project).repair(drift="adopt")
    assert shop.load().state.artifacts["model"].description == "Mine"
    assert findings(shop) == []


def test_ten_thousand_artifacts_are_projected_whole(tmp_path: Path) -> None:
    """A large plan is projected with everything in it, and read back as it was."""
    shop = Workshop(tmp_path / "large")
    lines = [f"  a{i}: {{produces: out/{i}, run: 'true'}}" for i in range(10_000)]
    shop.file.write_text(PLAN[: PLAN.index("  model")] + "\n".join(lines), encoding="utf-8")
    shop.save()
    data = (shop.folder() / "plan.json").read_bytes()
    assert saved_execution.parse(data) == shop.load()


def test_a_large_projection_follows_runs_that_changed_enough_of_it(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It may be behind by an eighth of itself, names the event that it reflects, and an export is as of now."""
    monkeypatch.setattr("headway.plan_folder.LARGE_VIEW", 0)
    source = bench.path("source.txt")
    source.write_text("0", encoding="utf-8")
    bench.plan("; ".join(f"a{n}" for n in range(300)), a0={"sources": ["source.txt"]})
    bench.run()
    path = bench.path(".headway/plans/plan/plan.json")

    def written() -> int:
        opening = saved_execution.opening_of(path.read_bytes())
        assert opening is not None
        return opening.position.seq

    def newest() -> int:
        return bench.project.show("plan").position.seq

    assert written() == newest()
    behind = []
    for version in range(30):
        source.write_text(f"changed {version}", encoding="utf-8")
        assert bench.run().log == ["made a0"]
        behind.append(newest() - written())
    assert behind[0] > 0
    assert 0 in behind


@pytest.mark.parametrize("killed", [False, True], ids=["shown meanwhile", "killed meanwhile"])
def test_no_large_projection_is_left_at_the_middle_of_a_run_that_has_ended(
    bench: Bench, monkeypatch: pytest.MonkeyPatch, killed: bool
) -> None:
    """However little has happened since it was last written, somebody who reads it is told how the run ended."""
    monkeypatch.setattr("headway.engine.run.SHOW_EVERY", 0)
    monkeypatch.setattr("headway.engine.run.SHOWING", 0)
    monkeypatch.setattr("headway.plan_folder.PlanFolder._is_due", lambda _, execution, ending=False: not ending)
    bench.plan("first -> second -> third")
    if killed:
        with monkeypatch.context() as death:
            death.setattr("headway.engine.run.Run._finish", _die)
            with pytest.raises(KeyboardInterrupt):
                bench.run()
    bench.run()
    opening = saved_execution.opening_of(bench.path(".headway/plans/plan/plan.json").read_bytes())
    assert opening is not None
    assert opening.position == bench.project.show("plan").position


def _die(_: object) -> None:
    raise KeyboardInterrupt
