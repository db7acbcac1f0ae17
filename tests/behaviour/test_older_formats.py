"""Whatever an older Headway wrote is read for ever: one committed project per format version."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from headway import Project
from headway.core.events import FORMAT
from headway.doctor import Doctor
from headway.projections.saved_execution import SavedExecution, parse
from headway.work import Work

FIXTURES = Path(__file__).parents[1] / "fixtures"
VERSIONS = range(1, FORMAT + 1)


@pytest.fixture(params=VERSIONS, ids=lambda version: f"format {version}")
def old(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """A project as it was left by a Headway of that format: ledger, sealed segment, blobs."""
    source = FIXTURES / f"format-{request.param}"
    home, plan = tmp_path / ".headway", tmp_path / ".headway/plans/fixture"
    plan.mkdir(parents=True)
    shutil.copytree(source / "blobs", home / "blobs")
    shutil.copy(source / "project.json", home)
    shutil.copy(source / "headway.yaml", tmp_path)
    for ledger in source.glob("ledger*"):
        shutil.copy(ledger, plan)
    return tmp_path


def loaded(root: Path) -> SavedExecution:
    """The plan, from its ledger alone."""
    return Project(root).show("fixture")


def test_an_old_ledger_gives_the_state_it_gave_then(old: Path) -> None:
    """State, history across the sealed segment, and every earlier event can be read."""
    execution = loaded(old)
    then = parse((FIXTURES / f"format-{FORMAT}" / "PLAN.json").read_bytes())
    assert execution.state.completed == then.state.completed
    assert (execution.goal, sorted(execution.completed), execution.skipped) == (
        "A plan of format 1",
        ["hand", "one", "two"],
        ["bad"],
    )
    profile = execution.state.profile
    assert profile is not None
    assert (profile.max_concurrent_tasks, profile.locked) == (3, True)
    numbers = [record.seq for record in Project(old).log("fixture")]
    assert numbers == list(range(1, execution.position.seq + 1))
    assert Project(old).show("fixture", at=1).status == "draft"


def test_doctor_finds_nothing_wrong_with_it(old: Path) -> None:
    """The whole chain, the snapshots and the blobs verify."""
    assert Doctor(Project(old)).examine() == []


def test_it_can_be_gone_on_with(old: Path) -> None:
    """Lost outputs come back from their blobs, and new events follow the old ones."""
    result = Work(Project(old)).run("fixture")
    assert (sorted(result.restored), result.made, list(result.waiting)) == (["one", "two"], [], ["hand"])
    assert (old / "one.txt").read_text() == "bye\n"
    assert (old / "two/copy.txt").read_text() == "bye\n"
