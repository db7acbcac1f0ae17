"""Checkpoints: written on save, milestone and close; exported for others; imported whole or not at all."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from headway.core.commands import SetProfile, SkipArtifacts
from headway.core.plan import Profile
from headway.disk import RealDisk
from headway.errors import DecisionNeeded, LedgerDamaged, NotFound, Rejected, StorageFailed, TryLater, UsageError
from headway.project import Project
from headway.projections import saved_execution
from tests.workshop import Workshop, spec, tree


@pytest.fixture
def shop(tmp_path: Path) -> Workshop:
    """A project with a saved plan, of which one artifact is done and one was skipped."""
    shop = Workshop(tmp_path / "here")
    shop.save()
    shop.do(SetProfile(profile=Profile(parallelization_enabled=True, max_concurrent_tasks=3)))
    shop.complete("model")
    shop.do(SkipArtifacts(ids=("routes",), reason="later"))
    return shop


@pytest.fixture
def there(tmp_path: Path) -> Workshop:
    """Another project, without a plan."""
    shop = Workshop(tmp_path / "there")
    shop.file.unlink()
    return shop


def reflected(shop: Workshop) -> int:
    """The event that the checkpoint in the plan's folder reflects."""
    opening = saved_execution.opening_of((shop.folder() / "export" / "PLAN.json").read_bytes())
    assert opening is not None
    return opening.position.seq


def test_saving_a_milestone_and_closing_write_the_checkpoint(tmp_path: Path) -> None:
    """The checkpoint follows each of the three, and a mere step in between leaves it alone."""
    shop = Workshop(tmp_path / "project")
    shop.save()
    assert reflected(shop) == 2
    shop.fail("model")
    assert reflected(shop) == 2
    after_milestone = shop.complete("model").position.seq
    assert "milestone_completed" in shop.events()
    assert reflected(shop) == after_milestone
    closed = shop.project.close_plan("api").position.seq
    assert reflected(shop) == closed


def test_an_exported_plan_is_the_same_plan_elsewhere(shop: Workshop, there: Workshop, tmp_path: Path) -> None:
    """Goal, structure, progress, profile and creation come along; the project's id is the new one's."""
    shop.project.export_plan("api", str(tmp_path / "out"))
    there.project.import_plan(str(tmp_path / "out"))
    ours, theirs = shop.load(), there.load()
    for field in ("goal", "status", "artifacts", "completed", "skipped", "profile", "created_at", "milestones", "open"):
        assert getattr(theirs.state, field) == getattr(ours.state, field), field
    assert theirs.state.project_id == there.project.project_id != ours.state.project_id
    assert there.events()[0] == "plan_imported"


def test_the_ledger_records_where_a_plan_came_from(shop: Workshop, there: Workshop, tmp_path: Path) -> None:
    """The import names its source, the project it came from and the event it reflects."""
    shop.project.export_plan("api", str(tmp_path / "out"))
    there.project.import_plan(str(tmp_path / "out"))
    event: Any = there.history()[0].event
    assert (event.source, event.origin) == ("out", shop.project.project_id)
    assert event.at.seq == len(shop.history()) - 1  # the export itself is recorded after it was written
    assert shop.events()[-1] == "plan_exported"


def test_work_goes_on_after_an_import(shop: Workshop, there: Workshop, tmp_path: Path) -> None:
    """An imported plan can be changed, worked on and saved from a file, although its proposal stayed behind."""
    shop.project.export_plan("api", str(tmp_path / "out"))
    there.project.import_plan(str(tmp_path / "out"))
    there.file.write_text(shop.file.read_text(encoding="utf-8") + "  docs: {}\n", encoding="utf-8")
    assert there.save().outcome == "updated"
    assert there.complete("docs").status == "complete"


def test_importing_what_is_there_already_adds_nothing(shop: Workshop) -> None:
    """A checkpoint of the plan's own present state is no news."""
    before = shop.tree()
    checkpoint = shop.folder() / "export"
    shop.do(SetProfile(profile=Profile()))
    before = shop.tree()
    assert shop.project.import_plan(str(checkpoint)).outcome == "unchanged"
    assert shop.tree() == before


def test_a_plan_that_differs_is_replaced_only_on_demand(shop: Workshop, tmp_path: Path) -> None:
    """Without --replace an older checkpoint is refused; with it, it becomes the state, and the history stays."""
    shop.project.export_plan("api", str(tmp_path / "out"))
    shop.change(goal="Build something else")
    before = shop.tree()
    with pytest.raises(Rejected) as error:
        shop.project.import_plan(str(tmp_path / "out"))
    assert "--replace" in error.value.hint
    assert shop.tree() == before
    events = shop.events()
    assert shop.project.import_plan(str(tmp_path / "out"), replace=True).outcome == "updated"
    assert shop.load().goal == "Build an API"
    assert shop.events() == [*events, "plan_imported"]


def test_a_running_plan_is_not_replaced(shop: Workshop, tmp_path: Path) -> None:
    """Nobody pulls the plan away under a run."""
    shop.project.export_plan("api", str(tmp_path / "out"))
    shop.change(goal="Build something else")
    lock = shop.project.folder("api").run_lock()
    assert lock.acquire(wait=0)
    try:
        with pytest.raises(TryLater, match="running"):
            shop.project.import_plan(str(tmp_path / "out"), replace=True)
    finally:
        lock.release()
    assert shop.load().goal == "Build something else"


def test_a_plan_can_be_imported_under_another_id(shop: Workshop) -> None:
    """A checkpoint becomes a second plan beside the first."""
    shop.project.import_plan(str(shop.folder() / "export"), plan_id="copy")
    assert shop.load("copy").state.artifacts == shop.load().state.artifacts
    assert shop.project.plan_ids() == ["api", "copy"]


def test_a_changed_checkpoint_is_refused(shop: Workshop, there: Workshop, tmp_path: Path) -> None:
    """One byte is enough: nothing is taken in, and nothing is written."""
    target = tmp_path / "out.json"
    shop.project.export_plan("api", str(target))
    target.write_bytes(target.read_bytes().replace(b"Build an API", b"Build an ape"))
    with pytest.raises(UsageError, match="changed after it was written"):
        there.project.import_plan(str(target))
    assert there.tree() == {}


@pytest.mark.parametrize(
    "change",
    [
        lambda plan: plan.pop("graph"),
        lambda plan: plan.update(version="9.0"),
        lambda plan: plan.update(goal=None),
        lambda plan: plan.update(position={"seq": "x", "hash": 1}),
        lambda plan: plan.update(plan_id="../x"),
        lambda plan: plan["graph"]["artifacts"]["model"].update(id="other"),
        lambda plan: plan["graph"]["artifacts"]["model"].update(unheard_of=1),
        lambda plan: plan["graph"]["artifacts"].update(model=None),
        lambda plan: plan["graph"].update(artifacts=[]),
        lambda plan: plan["execution"]["completed"].update(ghost={}),
        lambda plan: plan["execution"]["completed"].update(routes={}),
        lambda plan: plan["execution"].update(completed=[1]),
        lambda plan: plan["execution"].update(status="wonderful"),
        lambda plan: plan["plan"].update(unheard_of=1),
        lambda plan: plan["plan"].update(failed={"model": "x"}),
        lambda plan: plan.update(execution_profile={"max_concurrent_tasks": "many"}),
        lambda plan: plan.update(execution_profile={"max_concurrent_tasks": 65}),
    ],
)
def test_a_file_that_does_not_fit_together_is_refused_whole(shop: Workshop, there: Workshop, change: Any) -> None:
    """Without a digest to vouch for it a file is still checked in every part before anything is written."""
    plan = json.loads((shop.folder() / "plan.json").read_bytes())
    del plan["digest"]
    change(plan)
    source = there.root / "checkpoint.json"
    source.write_text(json.dumps(plan), encoding="utf-8")
    before = there.tree()
    with pytest.raises(UsageError):
        there.project.import_plan(str(source))
    assert there.tree() == before


@pytest.mark.parametrize("data", [b"", b"{", b"[]", b"null", b'{"graph": []}', b"\xff", b"[" * 100_000, b"goal: x"])
def test_what_is_no_checkpoint_is_refused(there: Workshop, data: bytes) -> None:
    """Any bytes may be handed in; those that are no plan are told so."""
    source = there.root / "checkpoint.json"
    source.write_bytes(data)
    before = there.tree()
    with pytest.raises(UsageError, match="not a saved plan"):
        there.project.import_plan(str(source))
    assert there.tree() == before


def test_a_file_that_is_not_there_is_named(there: Workshop) -> None:
    """A wrong path is said to be one."""
    with pytest.raises(NotFound, match="There is no file"):
        there.project.import_plan(str(there.root / "nowhere.json"))


def test_a_disk_that_refuses_leaves_no_half_import(shop: Workshop, there: Workshop) -> None:
    """If the ledger cannot be written, there is no plan afterwards, and a second try succeeds."""

    class Full(RealDisk):
        def write(self, fd: int, data: bytes | memoryview, offset: int) -> int:
            if b'"plan_imported"' in bytes(data[:100]):
                raise OSError(28, "No space left on device")
            return super().write(fd, data, offset)

    with pytest.raises(StorageFailed):
        Project(there.root, disk=Full()).import_plan(str(shop.folder() / "export"))
    assert there.project.store.list_all() == []
    assert there.project.import_plan(str(shop.folder() / "export")).outcome == "created"


def test_an_rfc_040_plan_file_can_be_imported(there: Workshop) -> None:
    """A file of the older shape, without ledger position or digest, becomes a plan with its progress."""
    old = {
        "version": "1.0",
        "goal": "Build a thing",
        "goal_hash": "x",
        "created_at": "2026-01-01T00:00:00Z",
        "graph": {
            "artifacts": {
                "B": {"id": "B", "description": "b", "contract": "", "requires": ["C", "A"], "produces_file": "b.py"},
                "A": {"id": "A", "description": "a", "contract": "c", "requires": [], "domain_type": "protocol"},
                "C": {"id": "C", "requires": [], "produces_file": None},
            },
            "waves": [["A"], ["B"]],
        },
        "execution": {
            "status": "in_progress",
            "completed": {"A": {"content_hash": "0123456789abcdef", "model_tier": "small", "duration_ms": 12}},
            "failed": {"B": "it broke"},
            "skipped": ["C"],
        },
    }
    source = there.root / "old.json"
    source.write_text(json.dumps(old), encoding="utf-8")
    saved = there.project.import_plan(str(source))
    state = saved.execution.state
    assert state.plan_id == saved.execution.goal_hash
    assert state.artifacts["B"] == spec("B", "A", "C", description="b", produces=("b.py",))
    assert state.artifacts["A"].domain_type == "protocol"
    assert (state.completed["A"].tier, state.completed["A"].ms) == ("small", 12)
    assert state.failed["B"].error == "it broke"
    assert list(state.skipped) == ["C"]
    assert state.status == "in_progress"


def test_export_goes_to_a_file_or_into_a_folder(shop: Workshop, tmp_path: Path) -> None:
    """A name ending in .json is a file; any other is a folder, made if need be."""
    out = tmp_path / "deep" / "out"
    assert shop.project.export_plan("api", str(out)) == [str(out / "PLAN.json"), str(out / "PLAN.md")]
    one = tmp_path / "one.json"
    assert shop.project.export_plan("api", str(one)) == [str(one), str(tmp_path / "one.md")]
    assert {path.name for path in tmp_path.iterdir()} >= {"deep", "one.json", "one.md"}


@pytest.mark.parametrize("name", ["PLAN.json", "PLAN.md"])
def test_export_writes_over_nothing_but_a_checkpoint(shop: Workshop, tmp_path: Path, name: str) -> None:
    """An older checkpoint is replaced; a file that somebody wrote is not."""
    out = tmp_path / "out"
    shop.project.export_plan("api", str(out))
    shop.project.export_plan("api", str(out))
    (out / name).write_text("precious", encoding="utf-8")
    before, events = tree(out), shop.events()
    with pytest.raises(DecisionNeeded, match="Something else is there"):
        shop.project.export_plan("api", str(out))
    assert tree(out) == before
    assert shop.events() == events


def test_export_verifies_the_whole_ledger(shop: Workshop, tmp_path: Path) -> None:
    """A flipped byte in an old event is found although no reader of the newest state would meet it."""
    with shop.project.folder("api").writing() as writer:
        writer.snapshot()
    shop.change(goal="Build on")
    data = bytearray(shop.ledger().read_bytes())
    data[50] ^= 1
    shop.ledger().write_bytes(data)
    with pytest.raises(LedgerDamaged):
        shop.project.export_plan("api", str(tmp_path / "out"))
    assert not (tmp_path / "out").exists()


def test_no_path_of_this_machine_is_exported(shop: Workshop, tmp_path: Path) -> None:
    """A checkpoint and a ledger can be given away."""
    shop.project.export_plan("api", str(tmp_path / "out"))
    for file in [*(tmp_path / "out").iterdir(), shop.ledger()]:
        assert str(tmp_path).encode() not in file.read_bytes()
