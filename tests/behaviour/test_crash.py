"""Kills, failing disks and power cuts, at every step: no acknowledged event is lost, and nothing needs a ceremony."""

from __future__ import annotations

import errno
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from headway.core.events import Record
from headway.core.evolve import fold
from headway.disk import Disk
from headway.errors import StorageFailed
from headway.files.blobs import Blobs
from headway.ledger import file as file_module
from headway.ledger import repair as repair_module
from headway.ledger.file import FileLedger
from headway.ledger.repair import examine, repair
from headway.ledger.writer import Writer
from headway.testing import FailingDisk, PowerCutDisk, Unsynced, WatchedDisk
from tests.behaviour.plans import (
    CREATE,
    RESCUED,
    SMALL_PLAN_END,
    blobs_of,
    completions,
    goal,
    load,
    small_plan,
    state_of,
    writer,
)

MODES: tuple[Unsynced, ...] = ("lost", "zeroed", "half", "names")
Tell = Callable[[int], None]
Work = Callable[[Path, Disk, Tell], None]


@pytest.fixture(autouse=True)
def nobody_else_writes(monkeypatch: pytest.MonkeyPatch) -> None:
    """So nobody waits to see."""
    monkeypatch.setattr(file_module, "QUIET", 0)
    monkeypatch.setattr(repair_module, "QUIET", 0)


TORN = b'{"v":1,"seq":10,"ts":"torn here'

# Templates: folders in which the work begins.


def nothing(folder: Path) -> None:
    """No plan yet."""
    folder.mkdir(parents=True)


def a_plan(folder: Path) -> None:
    """A plan with a clean end."""
    small_plan(folder)


def torn(folder: Path) -> None:
    """A plan whose last writer died in the middle of a line."""
    small_plan(folder)
    with (folder / "ledger.jsonl").open("ab") as file:
        file.write(TORN)


def damaged(folder: Path) -> None:
    """A plan with a hole before its snapshot, a cut after it, and a torn end."""
    small_plan(folder)
    path = folder / "ledger.jsonl"
    data = (
        path.read_bytes()
        .replace(b'"because":{"never made":["a"', b'"because":{"never made":["A"')
        .replace(b'"goal":"y"', b'"goal":"Y"')
    )
    path.write_bytes(data + b"torn")
    (folder / "head").unlink()


def headless(folder: Path) -> None:
    """A plan that has lost everything but an unreadable file."""
    small_plan(folder)
    (folder / "ledger.jsonl").write_bytes(b"nothing\nof\nuse")
    (folder / "head").unlink()


# Work: commands, each of which is told when it is acknowledged.


def create(folder: Path, disk: Disk, tell: Tell) -> None:
    """Begin a plan."""
    w = writer(folder, disk=disk)
    for command in (CREATE, goal("one"), goal("two")):
        tell(w.execute(command, by="test")[-1].seq)
    w.close()


def commit(folder: Path, disk: Disk, tell: Tell) -> None:
    """Go on with a plan, with and without waiting, and with a snapshot."""
    w = writer(folder, disk=disk)
    tell(w.execute(goal("one"), by="test")[-1].seq)
    w.execute(goal("two"), by="test", wait=False)
    tell(w.execute(goal("three"), by="test")[-1].seq)
    w.snapshot()
    tell(w.execute(goal("four"), by="test")[-1].seq)
    w.close()


def rotate(folder: Path, disk: Disk, tell: Tell) -> None:
    """Seal the ledger between commits, twice."""
    w = writer(folder, disk=disk)
    for text in ("one", "two"):
        tell(w.execute(goal(text), by="test")[-1].seq)
        w.rotate()
    tell(w.execute(goal("three"), by="test")[-1].seq)
    w.close()


WORK = [(nothing, create), (a_plan, commit), (torn, commit), (a_plan, rotate), (a_plan, completions)]
WORK_IDS = ["creation", "commit", "recovery and commit", "rotation", "commit of what events name"]


def expected(tmp_path: Path, template: Callable[[Path], None], work: Work) -> tuple[list[str], int]:
    """The goals that the plan has, one after the other, when nothing goes wrong; and the number of steps it takes."""
    folder = tmp_path / "expected" / "plans" / "plan"
    template(folder)
    disk = WatchedDisk()
    work(folder, disk, lambda _: None)
    goals = [r.event.goal for r in FileLedger(str(folder)).history() if r.event.type == "goal_changed"]  # type: ignore[attr-defined]  # by its type
    return ["g", *goals], disk.steps


def assert_nothing_acknowledged_is_lost(folder: Path, goals: list[str], told: list[int]) -> None:
    """What a reader finds is a state that the plan really had, not before the last one that somebody was told."""
    loaded = load(folder)
    if loaded is None:
        assert told == []
        return
    assert loaded.end is not None
    assert loaded.end.seq >= max(told, default=0)
    state = fold(None, loaded.records)
    assert state is not None
    assert state.goal in goals
    records = list(FileLedger(str(folder)).history())
    assert_named_blobs_are_there(folder, records, told)
    reached = [r.event.goal for r in records if r.event.type == "goal_changed"]  # type: ignore[attr-defined]  # as above
    assert ["g", *reached] == goals[: len(reached) + 1]


def assert_named_blobs_are_there(folder: Path, records: list[Record], told: list[int]) -> None:
    """What an acknowledged completion names can be read; the template's own completion names nothing real."""
    blobs = Blobs(str(blobs_of(folder)))
    for record in records:
        if record.event.type == "artifact_completed" and SMALL_PLAN_END < record.seq <= max(told, default=0):
            (output,) = record.event.outputs  # type: ignore[attr-defined]  # by its type
            assert blobs.get(output.digest) == f"made at {record.event.token}".encode()  # type: ignore[attr-defined]  # as above


def assert_goes_on(folder: Path) -> None:
    """The next writer needs no ceremony, and after it doctor is content."""
    w = writer(folder)
    w.execute(goal("on") if load(folder) else CREATE, by="test")
    w.close()
    assert state_of(folder).goal in ("on", "g")
    assert examine(FileLedger(str(folder))) == []


# Failing disks.


FAULTS: dict[str, dict[str, int]] = {
    "no space, once": {"error": errno.ENOSPC},
    "no space, for good": {"error": errno.ENOSPC, "lasting": True},
    "I/O error, once": {"error": errno.EIO},
    "I/O error, for good": {"error": errno.EIO, "lasting": True},
    "short write, then the rest": {"error": errno.ENOSPC, "short": True},
    "short write, then no space": {"error": errno.ENOSPC, "lasting": True, "short": True},
    "short write, then an I/O error": {"error": errno.EIO, "lasting": True, "short": True},
}


@pytest.mark.parametrize("fault", FAULTS.values(), ids=FAULTS)
@pytest.mark.parametrize(("template", "work"), WORK, ids=WORK_IDS)
def test_a_disk_that_refuses_any_step_costs_nothing_acknowledged(
    tmp_path: Path, template: Callable[[Path], None], work: Work, fault: dict[str, int]
) -> None:
    """Whatever operation fails: an error or success, never a lost event, and the next process goes on."""
    goals, steps = expected(tmp_path, template, work)
    pristine = tmp_path / "pristine"
    template(pristine)
    for step in range(1, steps + 1):
        folder = tmp_path / str(step) / "plans" / "plan"
        shutil.copytree(pristine, folder)
        told: list[int] = []
        with suppress(StorageFailed):
            work(folder, FailingDisk(step, **fault), told.append)  # type: ignore[arg-type]  # bools are ints here
        assert_nothing_acknowledged_is_lost(folder, goals, told)
        assert_goes_on(folder)


def test_after_a_refused_event_the_same_writer_goes_on(tmp_path: Path) -> None:
    """A full disk is told to the one who asked; the file is as it was, and when there is room again it takes more."""
    small_plan(tmp_path / "plan")
    disk = FailingDisk(0)
    w = writer(tmp_path / "plan", disk=disk)
    w.execute(goal("one"), by="test")
    before = (tmp_path / "plan" / "ledger.jsonl").read_bytes()
    disk.at, disk.short = disk.steps + 1, True
    disk.lasting = True
    with pytest.raises(StorageFailed):
        w.execute(goal("two"), by="test")
    assert (tmp_path / "plan" / "ledger.jsonl").read_bytes() == before
    assert w.state is not None
    assert w.state.goal == "one"
    disk.at, disk.lasting = 0, False
    w.execute(goal("three"), by="test")
    w.close()
    assert state_of(tmp_path / "plan").goal == "three"
    assert examine(FileLedger(str(tmp_path / "plan"))) == []


@pytest.mark.parametrize("first", [True, False], ids=["of what events name", "of the ledger"])
def test_after_a_failed_sync_a_writer_stops(tmp_path: Path, first: bool) -> None:
    """A sync is never tried again: nothing is acknowledged any more, not even what was written before."""
    small_plan(tmp_path / "plan")
    synced: list[str] = []

    def pack() -> None:
        if first and "ledger" in synced:
            raise StorageFailed("The disk did not confirm a blob")
        synced.append("pack")

    class Syncs(WatchedDisk):
        def sync(self, fd: int) -> None:
            if not first and "ledger" in synced:
                raise OSError(errno.EIO, "Input/output error")
            super().sync(fd)
            synced.append("ledger")

    w = Writer(FileLedger(str(tmp_path / "plan"), disk=Syncs()), sync_first=(pack,))
    w.execute(goal("one"), by="test")
    assert synced[:2] == ["pack", "ledger"]
    for _ in range(2):
        with pytest.raises(StorageFailed):
            w.execute(goal("two"), by="test")
    with pytest.raises(StorageFailed):
        w.sync()
    w.close()
    other = writer(tmp_path / "plan")
    other.execute(goal("three"), by="test")
    other.close()
    assert examine(FileLedger(str(tmp_path / "plan"))) == []


def test_a_snapshot_that_finds_no_room_fails_nobody(tmp_path: Path) -> None:
    """The events stand and are acknowledged; the snapshot is a convenience."""
    w = writer(tmp_path / "plan")
    w.execute(CREATE, by="test")
    w.close()

    class NoSnapshots(WatchedDisk):
        def write(self, fd: int, data: bytes | memoryview, offset: int) -> int:
            if b'"type":"snapshot"' in bytes(data):
                raise OSError(errno.ENOSPC, "No space left on device")
            return super().write(fd, data, offset)

    w = writer(tmp_path / "plan", disk=NoSnapshots())
    for number in range(120):
        w.execute(goal(str(number)), by="test", wait=False)
    w.close()
    assert state_of(tmp_path / "plan").goal == "119"
    assert examine(FileLedger(str(tmp_path / "plan"))) == []


# Power cuts.


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize(("template", "work"), WORK, ids=WORK_IDS)
def test_a_power_cut_at_any_step_costs_nothing_acknowledged(
    tmp_path: Path, template: Callable[[Path], None], work: Work, mode: Unsynced
) -> None:
    """What was acknowledged was synced before: bytes, names and folders."""
    goals, _ = expected(tmp_path, template, work)
    root = tmp_path / "root"
    template(root / ".headway" / "plans" / "plan") if template is not nothing else root.mkdir()
    told: list[int] = []

    def cut(step: int, _: str) -> None:
        left = tmp_path / f"cut-{step}"
        disk.left(str(left), mode)
        folder = left / ".headway" / "plans" / "plan"
        assert_nothing_acknowledged_is_lost(folder, goals, told)
        if template is torn:
            assert TORN in b"".join(path.read_bytes() for path in folder.rglob("*") if path.is_file())
        assert_goes_on(folder)
        shutil.rmtree(left)

    disk = PowerCutDisk(str(root), cut)
    work(root / ".headway" / "plans" / "plan", disk, told.append)
    cut(disk.steps + 1, "the end")
    assert told


@pytest.mark.parametrize("mode", MODES)
def test_a_power_cut_loses_no_blob_that_was_synced(tmp_path: Path, mode: Unsynced) -> None:
    """Small or large: after `sync` it is there."""
    (tmp_path / "root").mkdir()
    kept: dict[str, bytes] = {}

    def cut(step: int, _: str) -> None:
        left = tmp_path / f"cut-{step}"
        disk.left(str(left), mode)
        blobs = Blobs(str(left / ".headway" / "blobs"))
        assert all(blobs.get(name) == data for name, data in kept.items())
        for data in BYTES:
            assert blobs.get(blobs.put(data)) == data
        blobs.close()
        shutil.rmtree(left)

    disk = PowerCutDisk(str(tmp_path / "root"), cut)
    blobs = Blobs(str(tmp_path / "root" / ".headway" / "blobs"), disk=disk)
    for data in BYTES:
        name = blobs.put(data)
        blobs.sync()
        kept[name] = data
    blobs.close()
    cut(disk.steps + 1, "the end")


BYTES = (b"small", b"another", b"L" * (300 * 1024), b"", b"last")


# Kills.


def killed(tmp_path: Path, scenario: str, template: Path) -> Iterator[tuple[Path, list[str]]]:
    """The folders that killed processes left, and what each of them had acknowledged."""
    out = tmp_path / "killed"
    command = [sys.executable, "-m", "tests.behaviour.killed", scenario, str(template), str(out)]
    done = subprocess.run(command, cwd=Path(__file__).parents[2], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    steps = sorted(out.iterdir(), key=lambda path: int(path.name))
    assert len(steps) > 5
    for step in steps:
        yield step / "plans" / "plan", (step / "told").read_text().split()


@pytest.mark.parametrize(
    ("template", "scenario"),
    [(nothing, "create"), (a_plan, "commit"), (torn, "commit"), (a_plan, "rotate"), (a_plan, "complete")],
    ids=WORK_IDS,
)
def test_a_process_killed_at_any_step_loses_nothing_acknowledged(
    tmp_path: Path, template: Callable[[Path], None], scenario: str
) -> None:
    """SIGKILL before each operation and in the middle of each write: the next process just goes on."""
    pristine = tmp_path / "pristine"
    template(pristine)
    goals = {"g", "x", "y", "z", "one", "two", "three", "four"}
    for folder, told in killed(tmp_path, scenario, pristine):
        loaded = load(folder)
        if loaded is None:
            assert told == []
        else:
            assert loaded.end is not None
            assert loaded.end.seq >= max(map(int, told), default=0)
            state = fold(None, loaded.records)
            assert state is not None
            assert state.goal in goals
            assert_named_blobs_are_there(folder, list(FileLedger(str(folder)).history()), list(map(int, told)))
        assert_goes_on(folder)


@pytest.mark.parametrize("template", [damaged, headless])
def test_a_repair_killed_at_any_step_can_be_done_again(tmp_path: Path, template: Callable[[Path], None]) -> None:
    """Wherever it was killed, doing it again mends everything, and no byte is gone."""
    pristine = tmp_path / "pristine"
    template(pristine)
    before = (pristine / "ledger.jsonl").read_bytes()
    for folder, _ in killed(tmp_path, "mend", pristine):
        repair(str(folder), rescue=lambda: ("plan.json", RESCUED, None), plan_id="plan", project_id="project")
        assert examine(FileLedger(str(folder))) == []
        kept = b"".join(path.read_bytes() for path in (folder / "quarantine").iterdir())
        kept += (folder / "ledger.jsonl").read_bytes()
        assert [piece for piece in before.split(b"\n") if piece not in kept] == []
        assert state_of(folder).goal == ("x" if template is damaged else "rescued")
        assert_goes_on(folder)


def test_a_process_killed_while_it_keeps_blobs_loses_none_that_was_synced(tmp_path: Path) -> None:
    """What was acknowledged can be read; what was torn belongs to no blob and can be set aside."""
    nothing(tmp_path / "pristine")
    for folder, told in killed(tmp_path, "keep", tmp_path / "pristine"):
        blobs = Blobs(str(folder / "blobs"))
        for name in told:
            blobs.get(name)
        for data in BYTES:
            assert blobs.get(blobs.put(data)) == data
        blobs.close()
        blobs.repair()
        again = Blobs(str(folder / "blobs"))
        assert list(again.verify()) == []
        assert {again.get(again.put(data)) for data in BYTES} == set(BYTES)
