"""Many at once: processes, threads, event loops and readers share one ledger, and nobody loses or invents anything."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from headway.core.commands import ChangePlan, CompleteArtifact, CreatePlan, StartArtifacts
from headway.core.events import Record
from headway.core.evolve import fold
from headway.core.plan import ArtifactSpec, PlanSpec
from headway.errors import HeadwayError, Rejected, TryLater
from headway.ledger import repair
from headway.ledger.file import FileLedger
from headway.ledger.memory import MemoryLedger, Shelf
from headway.ledger.repair import examine
from headway.ledger.writer import Writer
from headway.testing import FailingDisk, WatchedDisk
from tests.behaviour.plans import CREATE, goal, load, small_plan, state_of, writer

REPOSITORY = Path(__file__).parents[2]


def process(work: str, *arguments: object, out: int = subprocess.DEVNULL) -> subprocess.Popen[str]:
    """Another process at work."""
    command = [sys.executable, "-m", "tests.behaviour.appending", work, *map(str, arguments)]
    return subprocess.Popen(command, cwd=REPOSITORY, stdout=out, text=True)


def goals(folder: Path) -> list[str]:
    """Every goal the plan ever had, in order."""
    found = FileLedger(str(folder)).history()
    return [r.event.goal for r in found if r.event.type == "goal_changed"]  # type: ignore[attr-defined]  # by its type


def assert_one_chain(folder: Path) -> None:
    """Numbers without a gap, each event linked to the one before."""
    records = list(FileLedger(str(folder)).history())
    assert [r.seq for r in records] == list(range(1, len(records) + 1))
    assert [r.prev for r in records[1:]] == [r.hash for r in records[:-1]]
    assert examine(FileLedger(str(folder))) == []


@pytest.mark.slow
def test_two_processes_append_five_thousand_events_each(tmp_path: Path) -> None:
    """Both get their turns, no event is lost, and each one's events keep their order."""
    small_plan(tmp_path)
    both = [process("append", tmp_path, name, 5000) for name in ("left", "right")]
    assert [p.wait(timeout=120) for p in both] == [0, 0]
    mine = goals(tmp_path)
    for name in ("left", "right"):
        assert [g for g in mine if g.startswith(name)] == [f"{name} {n}" for n in range(5000)]
    assert_one_chain(tmp_path)
    turns = sum(1 for a, b in pairwise(mine) if a.split()[0] != b.split()[0])
    assert turns > 2


@pytest.mark.slow
def test_a_reader_never_sees_damage_while_others_write_and_rotate(tmp_path: Path) -> None:
    """What is read is always a whole chain that only grows."""
    small_plan(tmp_path)
    both = [process("append", tmp_path, name, 1500, 400) for name in ("left", "right")]
    newest, reads = 0, 0
    while any(p.poll() is None for p in both):
        loaded = load(tmp_path)
        assert loaded is not None
        assert loaded.end is not None
        assert loaded.end.seq >= newest
        newest, reads = loaded.end.seq, reads + 1
        assert fold(None, loaded.records) is not None
        if reads % 10 == 0:
            assert examine(FileLedger(str(tmp_path))) == []
            seqs = [r.seq for r in FileLedger(str(tmp_path)).history()]
            assert seqs == list(range(1, len(seqs) + 1))
    assert [p.returncode for p in both] == [0, 0]
    assert reads > 5
    assert len(FileLedger(str(tmp_path)).segments()) == 6
    assert_one_chain(tmp_path)


def test_whoever_rotates_while_a_ledger_is_examined_loses_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """However often: what was sealed after a file was opened says nothing about that file."""
    small_plan(tmp_path)
    w, look = writer(tmp_path), repair._look

    def meanwhile(ledger: FileLedger, fd: int) -> repair.Look:
        found = look(ledger, fd)
        w.execute(goal(f"after {found.end.position.seq}"), by="other")
        w.rotate()
        return found

    monkeypatch.setattr(repair, "_look", meanwhile)
    assert examine(FileLedger(str(tmp_path))) == []
    w.close()


def test_threads_share_a_writer_and_its_syncs(tmp_path: Path) -> None:
    """Four threads, one chain; what each was told is on disk, with fewer syncs than events."""
    small_plan(tmp_path)
    syncs = Counter[str]()
    disk = WatchedDisk(lambda _, operation: syncs.update([operation]))
    w = writer(tmp_path, disk=disk)
    told: list[Record] = []

    def work(name: str) -> None:
        for number in range(100):
            told.extend(w.execute(goal(f"{name} {number}"), by=name))

    threads = [threading.Thread(target=work, args=(name,)) for name in "abcd"]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert load(tmp_path) is not None
    mine = goals(tmp_path)
    w.close()
    for name in "abcd":
        assert [g for g in mine if g.startswith(name)] == [f"{name} {n}" for n in range(100)]
    assert len({record.seq for record in told}) == 400
    assert syncs["sync"] < 400
    assert_one_chain(tmp_path)


def test_sixty_four_at_once_in_an_event_loop_share_a_few_syncs(tmp_path: Path) -> None:
    """Everything written in one turn of the loop is durable after one sync; nobody is told before."""
    small_plan(tmp_path)
    synced: list[int] = []
    written = 0

    class Counted(WatchedDisk):
        def write(self, fd: int, data: bytes | memoryview, offset: int) -> int:
            nonlocal written
            written += 1
            return super().write(fd, data, offset)

        def sync(self, fd: int) -> None:
            before = written
            super().sync(fd)
            synced.append(before)

    w = writer(tmp_path, disk=Counted())

    async def one(number: int) -> None:
        await w.aexecute(goal(str(number)), by="test")
        assert synced
        assert synced[-1] > 0

    async def all_of_them() -> None:
        await asyncio.gather(*(one(number) for number in range(64)))

    asyncio.run(all_of_them())
    w.close()
    assert len(synced) <= 3
    assert sorted(map(int, goals(tmp_path)[3:])) == list(range(64))
    assert_one_chain(tmp_path)


def test_of_many_completions_awaited_at_once_each_is_told_what_came_of_it_alone(tmp_path: Path) -> None:
    """They share a write; one that was lost, and one by somebody else, change nothing about that."""
    specs = tuple(ArtifactSpec(id=f"a{number}") for number in range(64))
    w = writer(tmp_path)
    w.execute(CreatePlan(plan_id="p", project_id="q", plan=PlanSpec(goal="g", artifacts=specs)), by="test")
    token = w.execute(StartArtifacts(ids=tuple(spec.id for spec in specs)), by="test")[0].seq

    async def all_of_them(lost: str, other: str, ids: list[str]) -> list[Any]:
        tokens = {lost: 999}
        asked = [(CompleteArtifact(id=a, token=tokens.get(a, token)), "other" if a == other else "test") for a in ids]
        answers = [w.aexecute(command, by=by) for command, by in asked]
        return await asyncio.gather(*answers, return_exceptions=True)

    names = [spec.id for spec in specs]
    for ids, lost, other in ((names[:20], "", ""), (names[20:40], "a30", ""), (names[40:], "", "a50")):
        before = w.state.updated_at if w.state else ""
        answers = asyncio.run(all_of_them(lost, other, ids))
        for artifact_id, answer in zip(ids, answers, strict=True):
            if artifact_id == lost:
                assert isinstance(answer, Rejected)
            else:
                (record,) = answer
                assert (record.event.id, record.by) == (artifact_id, "other" if artifact_id == other else "test")
        assert w.state is not None
        assert w.state.updated_at >= before
    assert w.state is not None
    assert w.state.completed.keys() == set(names) - {"a30"}
    assert w.state.claims.keys() == {"a30"}
    w.close()
    assert_one_chain(tmp_path)
    found = writer(tmp_path)
    assert found.catch_up() == w.state
    found.close()


def test_an_event_loop_goes_on_while_somebody_else_holds_the_lock() -> None:
    """Waiting for another process happens elsewhere; the loop stays free."""
    shelf = Shelf()
    w = Writer(MemoryLedger(shelf))
    w.execute(CREATE, by="test")
    other = MemoryLedger(shelf)
    other.begin(None)
    ticks = 0

    async def tick() -> None:
        nonlocal ticks
        while ticks < 5:
            await asyncio.sleep(0.01)
            ticks += 1
        other.end()

    async def main() -> list[Record]:
        _, records = await asyncio.gather(tick(), w.aexecute(goal("later"), by="test"))
        return records

    records = asyncio.run(main())
    assert ticks == 5
    assert records[0].event.type == "goal_changed"
    w.close()


def test_a_refusal_in_an_event_loop_leaves_nothing_locked(tmp_path: Path) -> None:
    """A rejected command is told to the one who asked, and others can write at once."""
    small_plan(tmp_path)
    w = writer(tmp_path)

    async def main() -> None:
        with pytest.raises(Rejected):
            await w.aexecute(CREATE, by="test")

    asyncio.run(main())
    other = FileLedger(str(tmp_path))
    other.begin(None, patience=0)
    other.end()
    w.close()


def test_a_process_that_died_holds_no_lock(tmp_path: Path) -> None:
    """What it wrote is there, and the next process waits for nobody."""
    small_plan(tmp_path)
    dead = process("die", tmp_path)
    assert dead.wait(timeout=30) == -signal.SIGKILL
    assert state_of(tmp_path).goal == "written by somebody who died"
    ledger = FileLedger(str(tmp_path))
    ledger.begin(None, patience=0)
    ledger.end()
    ledger.close()
    assert_one_chain(tmp_path)


def test_a_forked_child_holds_no_lock_and_writes_nothing(tmp_path: Path) -> None:
    """Locks are not inherited: a child that lives on stops nobody, and its copy of the writer is refused."""
    small_plan(tmp_path)
    parent = process("fork", tmp_path, out=subprocess.PIPE)
    said, _ = parent.communicate(timeout=30)
    refused, child = said.split()
    try:
        assert refused == "refused"
        ledger = FileLedger(str(tmp_path))
        ledger.begin(None, patience=0)
        ledger.end()
        assert goals(tmp_path)[3:] == ["before the fork", "by the parent"]
    finally:
        os.kill(int(child), signal.SIGKILL)


def test_a_busy_writer_lets_others_have_their_turn(tmp_path: Path) -> None:
    """The lock is yielded between batches, however many events are waiting to be written."""
    small_plan(tmp_path)
    stop = threading.Event()
    busy = writer(tmp_path)

    def work() -> None:
        number = 0
        while not stop.is_set():
            busy.execute(goal(f"busy {number}"), by="busy", wait=False)
            number += 1

    thread = threading.Thread(target=work)
    thread.start()
    try:
        time.sleep(0.1)
        other = writer(tmp_path)
        began = time.monotonic()
        for number in range(3):
            other.execute(goal(f"other {number}"), by="other")
        waited = time.monotonic() - began
        other.close()
    finally:
        stop.set()
        thread.join()
        busy.close()
    assert waited < 30
    assert [g for g in goals(tmp_path) if g.startswith("other")] == ["other 0", "other 1", "other 2"]
    assert_one_chain(tmp_path)


def test_who_waits_too_long_is_told_to_try_later(tmp_path: Path) -> None:
    """Nothing is wrong and nothing was written; somebody else is at it."""
    small_plan(tmp_path)
    holder = FileLedger(str(tmp_path))
    holder.begin(None)
    with pytest.raises(TryLater):
        FileLedger(str(tmp_path)).begin(None, patience=0.02)
    holder.end()
    holder.close()


def test_rules_are_applied_to_what_others_have_done_meanwhile(tmp_path: Path) -> None:
    """Of two completions with one token exactly one is accepted, whatever each writer believed before."""
    small_plan(tmp_path)
    one, two = writer(tmp_path), writer(tmp_path)
    token = one.execute(StartArtifacts(ids=("b",)), by="one")[0].seq
    two.refresh()
    assert two.state is not None
    assert "b" in two.state.claims
    one.execute(CompleteArtifact(id="b", token=token), by="one")
    before = (tmp_path / "ledger.jsonl").read_bytes()
    with pytest.raises(Rejected):
        two.execute(CompleteArtifact(id="b", token=token), by="two")
    assert (tmp_path / "ledger.jsonl").read_bytes() == before
    assert "b" in two.state.completed
    one.close()
    two.close()


def test_a_writer_follows_a_rotation_by_another_process(tmp_path: Path) -> None:
    """The old file is left alone; state, numbers and chain go on in the new one."""
    small_plan(tmp_path)
    one, two = writer(tmp_path), writer(tmp_path)
    one.execute(goal("one"), by="one")
    two.execute(goal("two"), by="two")
    one.rotate()
    two.execute(goal("three"), by="two")
    assert one.refresh() == two.state
    one.execute(goal("four"), by="one")
    two.refresh()
    assert two.state is not None
    assert two.state.goal == "four"
    one.close()
    two.close()
    assert_one_chain(tmp_path)


def test_a_clock_that_goes_backwards_changes_nothing_but_times(tmp_path: Path) -> None:
    """Order is by number; times are only told."""
    times = (datetime(2026, 1, 1, tzinfo=UTC) - timedelta(days=n) for n in range(100))
    w = Writer(FileLedger(str(tmp_path)), clock=lambda: next(times).isoformat()[:-6] + "Z")
    w.execute(CREATE, by="test")
    for text in ("one", "two", "three"):
        w.execute(goal(text), by="test")
    w.snapshot()
    w.execute(goal("four"), by="test")
    w.close()
    assert state_of(tmp_path).goal == "four"
    assert goals(tmp_path) == ["one", "two", "three", "four"]
    assert_one_chain(tmp_path)


@pytest.mark.parametrize("moment", ["before", "after"])
def test_an_interrupt_while_writing_leaves_no_doubt(tmp_path: Path, moment: str) -> None:
    """Ctrl-C before or after the bytes were written: the writer learns from the file what happened."""
    small_plan(tmp_path)

    class Interrupted(FileLedger):
        armed = False

        def write(self) -> None:
            armed, self.armed = self.armed, False
            if armed and moment == "before":
                raise KeyboardInterrupt
            super().write()
            if armed:
                raise KeyboardInterrupt

    ledger = Interrupted(str(tmp_path))
    w = Writer(ledger)
    w.execute(goal("one"), by="test", wait=False)  # the batch stays open
    ledger.armed = True
    with pytest.raises(KeyboardInterrupt):
        w.execute(ChangePlan(add=(ArtifactSpec(id="new"),)), by="test")
    w.execute(goal("two"), by="test")
    assert w.state is not None
    assert w.state == state_of(tmp_path)
    assert ("new" in w.state.artifacts) == (moment == "after")
    w.close()
    assert goals(tmp_path)[3:] == ["one", "two"]
    assert_one_chain(tmp_path)


def test_many_commands_are_one_write_and_each_sees_what_those_before_it_did(tmp_path: Path) -> None:
    """A refusal among them stops nothing: it is that command's answer."""
    small_plan(tmp_path)
    operations: list[str] = []
    disk = WatchedDisk(before=lambda _, operation: operations.append(operation))
    w = Writer(FileLedger(str(tmp_path), disk=disk))
    w.execute(goal("before"), by="test")
    operations.clear()

    added, refused, changed = w.execute_all(
        [ChangePlan(add=(ArtifactSpec(id="new"),)), ChangePlan(add=(ArtifactSpec(id="new"),)), goal("after")], by="test"
    )

    assert operations == ["write", "sync"]
    assert isinstance(added, list)
    assert added[0].event.type == "artifact_added"
    assert isinstance(refused, HeadwayError)
    assert refused.error_code == "plan.duplicate"
    assert isinstance(changed, list)
    assert changed[0].seq == added[0].seq + 1
    assert w.state == state_of(tmp_path)
    w.close()
    assert_one_chain(tmp_path)


def test_when_the_disk_refuses_many_commands_none_of_them_happened(tmp_path: Path) -> None:
    """The state is what the file says, and the next command goes on from there."""
    small_plan(tmp_path)
    disk = FailingDisk(at=-1)
    w = Writer(FileLedger(str(tmp_path), disk=disk))
    w.execute(goal("before"), by="test")
    disk.at = disk.steps + 1
    with pytest.raises(HeadwayError):
        w.execute_all([goal("one"), goal("two")], by="test")

    assert w.state is not None
    assert w.state.goal == "before"
    w.execute(goal("three"), by="test")
    w.close()
    assert goals(tmp_path)[-2:] == ["before", "three"]
    assert_one_chain(tmp_path)


def test_what_nobody_waits_for_is_synced_soon(tmp_path: Path) -> None:
    """Within a moment the bytes are durable and the lock is free, although nobody asked."""
    small_plan(tmp_path)
    synced = threading.Event()
    disk = WatchedDisk(lambda _, operation: synced.set() if operation == "sync" else None)
    w = writer(tmp_path, disk=disk)
    w.execute(goal("one"), by="test", wait=False)
    assert not synced.is_set()
    assert synced.wait(5)
    eventually(lambda: not locked(tmp_path))
    w.close()


def eventually(fact: Callable[[], bool]) -> None:
    """Wait until it is so; a minute is for ever."""
    deadline = time.monotonic() + 60
    while not fact():
        assert time.monotonic() < deadline
        time.sleep(0.005)


def locked(folder: Path) -> bool:
    """Whether somebody is in a batch."""
    ledger = FileLedger(str(folder))
    try:
        ledger.begin(None, patience=0)
    except TryLater:
        return True
    ledger.end()
    return False
