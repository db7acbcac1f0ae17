"""The execution profile: four fields, set, locked, immutable once locked, and carried by every surface."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from headway.core.commands import SetProfile, StartArtifacts
from headway.core.plan import Profile
from headway.errors import DecisionNeeded, Rejected, TryLater, UsageError
from tests.workshop import PLAN, Workshop

LOCKED = Profile(parallelization_enabled=True, max_concurrent_tasks=4, council_parallel=True, locked=True)
FIELDS = {
    "parallelization_enabled": True,
    "max_concurrent_tasks": 4,
    "council_parallel": True,
    "locked": True,
}


@pytest.fixture
def shop(tmp_path: Path) -> Workshop:
    """A project with a saved plan that has no profile."""
    shop = Workshop(tmp_path / "project")
    shop.save()
    return shop


def test_a_plan_whose_profile_was_never_set_is_not_bound_by_one(shop: Workshop) -> None:
    """Without a profile any number may be in progress; everywhere it reads as null."""
    shop.change(add=())
    assert shop.load().state.profile is None
    assert json.loads((shop.folder() / "plan.json").read_bytes())["execution_profile"] is None


def test_the_defaults_are_closed(shop: Workshop) -> None:
    """A profile without a word means one at a time, unlocked."""
    profile = shop.project.set_profile("api", Profile()).state.profile
    assert profile == Profile(
        parallelization_enabled=False, max_concurrent_tasks=1, council_parallel=False, locked=False
    )
    assert profile.limit == 1


@pytest.mark.parametrize("number", [0, -1, 65, 10**9])
def test_numbers_outside_the_range_are_refused(shop: Workshop, number: int) -> None:
    """1 to 64 artifacts at once; a refused number changes nothing."""
    before = shop.tree()
    with pytest.raises(UsageError, match="1 to 64"):
        shop.project.set_profile("api", Profile(max_concurrent_tasks=number))
    assert shop.events() == ["plan_created", "proposal_taken"]
    assert {**shop.tree(), **before} == shop.tree()


@pytest.mark.parametrize("number", [1, 64])
def test_the_ends_of_the_range_are_allowed(shop: Workshop, number: int) -> None:
    """Both ends belong to it."""
    wanted = Profile(parallelization_enabled=True, max_concurrent_tasks=number)
    assert shop.project.set_profile("api", wanted).state.profile == wanted


def test_parallelization_disabled_means_one_whatever_the_number(shop: Workshop) -> None:
    """The switch fails closed: a number alone opens nothing."""
    shop.project.set_profile("api", Profile(max_concurrent_tasks=64))
    shop.do(StartArtifacts(ids=("model",)))
    shop.change(add=())
    with pytest.raises(TryLater, match="allows 1 at once"):
        shop.do(StartArtifacts(ids=("routes",)))


def test_a_locked_profile_is_immutable(shop: Workshop) -> None:
    """Every other value is refused and leaves no trace, unlocking included; the same value again is accepted."""
    shop.project.set_profile("api", LOCKED)
    events = shop.events()
    assert events[-2:] == ["profile_set", "profile_locked"]
    for wanted in (Profile(), Profile(locked=True), Profile(parallelization_enabled=True, max_concurrent_tasks=4)):
        with pytest.raises(Rejected, match="locked") as error:
            shop.project.set_profile("api", wanted)
        assert "headway reset --all" in error.value.hint
    shop.project.set_profile("api", LOCKED)
    assert shop.events() == events
    assert shop.load().state.profile == LOCKED


def test_a_plan_file_cannot_change_a_locked_profile(shop: Workshop) -> None:
    """What is locked is locked for files too."""
    shop.project.set_profile("api", LOCKED)
    shop.file.write_text(PLAN + "profile: {max_concurrent_tasks: 64}\n", encoding="utf-8")
    for take in ("", "file"):
        with pytest.raises(DecisionNeeded):
            shop.save(take=take)
        assert shop.load().state.profile == LOCKED


def test_only_a_reset_unlocks(shop: Workshop) -> None:
    """Resetting the plan keeps the values and opens the lock; closing and saving do not."""
    shop.project.set_profile("api", LOCKED)
    shop.save()
    assert shop.load().state.profile == LOCKED
    assert shop.project.close_plan("api").state.profile == LOCKED
    unlocked = shop.project.reset("api").state.profile
    assert unlocked == Profile(parallelization_enabled=True, max_concurrent_tasks=4, council_parallel=True)
    assert shop.project.set_profile("api", Profile()).state.profile == Profile()


def test_a_plan_file_sets_and_locks_a_profile(shop: Workshop) -> None:
    """`profile:` in the file is the same record."""
    shop.file.write_text(PLAN + f"profile: {json.dumps(FIELDS)}\n", encoding="utf-8")
    shop.save()
    assert shop.load().state.profile == LOCKED


def test_every_surface_carries_the_profile(shop: Workshop, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    """plan.json, ledger, snapshot, checkpoint, export, plan.md and the command line all tell the same four fields."""
    shop.project.set_profile("api", LOCKED)
    with shop.project.folder("api").writing() as writer:
        writer.snapshot()
    shop.project.export_plan("api", str(tmp_path / "out"))

    def profile_in(path: Path) -> Any:
        return json.loads(path.read_bytes())["execution_profile"]

    assert profile_in(shop.folder() / "plan.json") == FIELDS
    assert profile_in(shop.folder() / "export" / "PLAN.json") == FIELDS
    assert profile_in(tmp_path / "out" / "PLAN.json") == FIELDS
    assert shop.run(capsys, "profile", "--json").json["execution_profile"] == FIELDS
    assert shop.run(capsys, "plans", "show", "--json").json["execution_profile"] == FIELDS
    assert "At most 4 at once, locked." in (shop.folder() / "plan.md").read_text(encoding="utf-8")
    events: list[Any] = [record.event for record in shop.history()]
    assert [event.profile for event in events if event.type == "profile_set"] == [
        Profile(parallelization_enabled=True, max_concurrent_tasks=4, council_parallel=True)
    ]
    (snapshot,) = [event for event in events if event.type == "snapshot"]
    assert json.loads(bytes(snapshot.state))["profile"] == FIELDS


def test_an_import_carries_the_lock(shop: Workshop, tmp_path: Path) -> None:
    """A locked plan is locked wherever it goes."""
    shop.do(SetProfile(profile=LOCKED))
    there = Workshop(tmp_path / "there")
    there.project.import_plan(str(shop.folder() / "export"))
    with pytest.raises(Rejected, match="locked"):
        there.project.set_profile("api", Profile())
