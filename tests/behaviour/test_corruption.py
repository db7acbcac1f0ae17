"""Destroyed bytes are never believed: each kind of damage is found, refused, mended, kept, and its cost named."""

from __future__ import annotations

import os
import shutil
import tracemalloc
from collections.abc import Callable
from pathlib import Path

import pytest

from headway.core.evolve import fold
from headway.core.state import Position, State
from headway.disk import RealDisk
from headway.errors import DamageError, FormatTooNew, LedgerDamaged, StorageFailed
from headway.ledger import file as file_module
from headway.ledger import repair as repair_module
from headway.ledger.file import FileLedger
from headway.ledger.repair import Rescue, examine, repair
from tests.behaviour.damage import resealed
from tests.behaviour.plans import end_of, goal, load, prefixes, small_plan, state_of, writer


class Ruin:
    """A plan's folder, its ledger as it was, and the state after each of its events."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.path = folder / "ledger.jsonl"
        small_plan(folder)
        self.good = self.path.read_bytes()
        self.head = (folder / "head").read_bytes()
        self.states = prefixes(folder)
        self.end = end_of(folder)
        self.starts = [0, *(i + 1 for i, byte in enumerate(self.good[:-1]) if byte == 10)]
        self.snapshot = next(i for i, r in enumerate(FileLedger(str(folder)).history()) if r.event.type == "snapshot")

    def become(self, data: bytes, *, head: bool = False) -> None:
        """Let the ledger have these bytes. Without `head`, nobody was told how far it reached."""
        shutil.rmtree(self.folder / "quarantine", ignore_errors=True)
        self.path.write_bytes(data)
        if head:
            (self.folder / "head").write_bytes(self.head)
        else:
            (self.folder / "head").unlink(missing_ok=True)

    def line(self, offset: int) -> int:
        """Which line this byte belongs to, from zero."""
        return sum(1 for start in self.starts if start <= offset) - 1

    def quarantined(self) -> bytes:
        """All bytes that were set aside."""
        home = self.folder / "quarantine"
        return b"".join(path.read_bytes() for path in sorted(home.iterdir())) if home.is_dir() else b""

    def repair(self, rescue: Rescue = lambda: None) -> list[str]:
        """What `doctor --repair` does to the ledger."""
        return repair(str(self.folder), rescue=rescue, plan_id="plan", project_id="project")

    def findings(self) -> list[str]:
        """The codes of what is wrong."""
        return [finding.code for finding in examine(FileLedger(str(self.folder)))]

    def assert_well(self, damaged: bytes) -> None:
        """The ledger loads, takes events, is clean, and no byte of the damaged one is gone."""
        assert self.findings() == []
        before = state_of(self.folder)
        w = writer(self.folder)
        w.execute(goal("after the repair"), by="test")
        w.close()
        after = state_of(self.folder)
        assert after.goal == "after the repair"
        assert after.artifacts == before.artifacts
        assert self.findings() == []
        kept = self.path.read_bytes() + self.quarantined()
        assert [piece for piece in damaged.split(b"\n") if piece not in kept] == []


@pytest.fixture
def ruin(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Ruin:
    """A good ledger, to be ruined. Nobody else writes to it, so nobody waits to see."""
    monkeypatch.setattr(file_module, "QUIET", 0)
    monkeypatch.setattr(repair_module, "QUIET", 0)
    return Ruin(tmp_path / "plans" / "plan")


def believed(folder: Path) -> State | None:
    """The state that a reader gets to see, or None if it is refused with exit 4."""
    try:
        loaded = load(folder)
    except LedgerDamaged:
        return None
    assert loaded is not None
    return fold(None, loaded.records)


class Unsynced(RealDisk):
    """A disk for tests about bytes, not about power cuts."""

    def sync(self, fd: int) -> None:
        pass

    def sync_folder(self, path: str) -> None:
        pass


# Cut short.


def test_a_ledger_cut_at_any_byte_is_a_shorter_ledger_or_an_error(ruin: Ruin) -> None:
    """Where nobody was told more, what is complete counts and the rest is debris; without a first event, an error."""
    for size in range(len(ruin.good)):
        ruin.become(ruin.good[:size])
        whole = ruin.good[:size].count(b"\n")
        state = believed(ruin.folder)
        if whole == 0:
            assert state is None
            assert ruin.findings() == ["ledger.headless"]
        else:
            assert state == ruin.states[whole]
            assert ruin.findings() == ([] if size in ruin.starts else ["ledger.debris"])


def test_a_ledger_cut_at_any_byte_goes_on_with_the_next_writer(ruin: Ruin) -> None:
    """Debris is set aside without ceremony, an event says so, and the next event follows."""
    for size in range(ruin.starts[1], len(ruin.good)):
        ruin.become(ruin.good[:size])
        whole = ruin.good[:size].count(b"\n")
        torn = ruin.good[ruin.starts[whole] : size]
        w = writer(ruin.folder, disk=Unsynced())
        records = w.execute(goal("on"), by="test")
        w.close()
        assert records[-1].seq == whole + (2 if torn else 1)
        assert state_of(ruin.folder).goal == "on"
        assert ruin.quarantined().endswith(torn)
        assert ruin.findings() == []


def test_a_ledger_cut_at_any_byte_is_an_error_when_somebody_was_told_more(ruin: Ruin) -> None:
    """`head` names the last event: no cut is mistaken for debris, and no writer touches it."""
    for size in range(len(ruin.good)):
        ruin.become(ruin.good[:size], head=True)
        assert believed(ruin.folder) is None
        assert set(ruin.findings()) & {"ledger.lost", "ledger.headless"}
        with pytest.raises(LedgerDamaged):
            writer(ruin.folder).execute(goal("on"), by="test")
        assert ruin.path.read_bytes() == ruin.good[:size]


# One byte changed.


@pytest.mark.parametrize(("mask", "every"), [(0x01, 1), (0x80, 7)])
def test_any_flipped_byte_is_found_and_never_believed(ruin: Ruin, mask: int, every: int) -> None:
    """Doctor sees it; what a reader sees is the state after some event that was really written, or an error."""
    for offset in range(0, len(ruin.good), every):
        ruin.become(ruin.good[:offset] + bytes([ruin.good[offset] ^ mask]) + ruin.good[offset + 1 :])
        assert ruin.findings(), f"byte {offset}"
        state = believed(ruin.folder)
        assert state is None or state in ruin.states.values(), f"byte {offset}"
        ruin.become(ruin.path.read_bytes(), head=True)
        assert ruin.findings(), f"byte {offset}"
        state = believed(ruin.folder)
        assert state is None or state == ruin.states[ruin.end.seq], f"byte {offset}"


@pytest.mark.parametrize("replacement", [b"", b"\0", b"\n", b"\n\n", b"\r\n", b"\xff"])
def test_a_byte_replaced_by_others_is_found_and_never_believed(ruin: Ruin, replacement: bytes) -> None:
    """Bytes that vanish, and line feeds, NULs and invalid UTF-8 that appear, are damage like any other."""
    for offset in range(0, len(ruin.good), 5):
        if ruin.good[offset : offset + 1] == replacement:
            continue
        ruin.become(ruin.good[:offset] + replacement + ruin.good[offset + 1 :])
        assert ruin.findings(), f"byte {offset}"
        state = believed(ruin.folder)
        assert state is None or state in ruin.states.values(), f"byte {offset}"


def test_a_repair_of_a_flipped_byte_costs_what_the_design_says(ruin: Ruin) -> None:
    """Before the newest snapshot: a hole, and the state stays. After it: a cut back to the last good event."""
    for offset in [*range(0, len(ruin.good), 23), *(start - 1 for start in ruin.starts[1:])]:
        damaged = ruin.good[:offset] + bytes([ruin.good[offset] ^ 1]) + ruin.good[offset + 1 :]
        ruin.become(damaged)
        line = ruin.line(offset)

        said = ruin.repair()

        assert said
        if line < ruin.snapshot and offset != ruin.starts[ruin.snapshot] - 1:
            assert now(ruin) == timeless(ruin.states[ruin.end.seq]), offset
            assert "state is unchanged" in said[0]
            assert ruin.path.read_bytes().startswith(damaged)
        else:
            assert now(ruin) == timeless(ruin.states[line]), offset
        ruin.assert_well(damaged)
        assert ruin.repair() == []


def now(ruin: Ruin) -> State:
    """The state without the time of its last change, which a repair moves on."""
    return timeless(state_of(ruin.folder))


def timeless(state: State) -> State:
    """The same, of any state."""
    twin = state.copy()
    twin.updated_at = ""
    return twin


def test_a_hole_that_changes_again_is_damage_again(ruin: Ruin) -> None:
    """A hole is known by its bytes: what happens to them later is found and set aside as well."""
    damaged = ruin.good.replace(b'"because":{"never made":["a"', b'"because":{"never made":["A"')
    ruin.become(damaged)
    ruin.repair()
    assert ruin.findings() == []
    mended = ruin.path.read_bytes()
    ruin.path.write_bytes(mended.replace(b'"because":{"never made":["A"', b'"because":{"never made":["B"'))
    assert ruin.findings() == ["ledger.hole"]
    ruin.repair()
    assert ruin.findings() == []
    assert b'"because":{"never made":["A"' in ruin.quarantined()
    assert b'"because":{"never made":["B"' in ruin.quarantined()


# Every other way to ruin a file.


def duplicated(ruin: Ruin) -> bytes:
    lines = ruin.good.splitlines(keepends=True)
    return b"".join([*lines[:2], lines[1], *lines[2:]])


def missing(ruin: Ruin) -> bytes:
    lines = ruin.good.splitlines(keepends=True)
    return b"".join([*lines[:2], *lines[3:]])


def swapped(ruin: Ruin) -> bytes:
    lines = ruin.good.splitlines(keepends=True)
    return b"".join([*lines[:1], lines[2], lines[1], *lines[3:]])


def swapped_late(ruin: Ruin) -> bytes:
    lines = ruin.good.splitlines(keepends=True)
    return b"".join([*lines[:-2], lines[-1], lines[-2]])


def missing_late(ruin: Ruin) -> bytes:
    lines = ruin.good.splitlines(keepends=True)
    return b"".join([*lines[:-2], lines[-1]])


def same_number_twice(ruin: Ruin) -> bytes:
    return resealed(ruin.good.replace(b'"seq":3,', b'"seq":2,', 1))


def number_left_out(ruin: Ruin) -> bytes:
    return resealed(ruin.good.replace(b'"seq":3,', b'"seq":4,', 1))


def zeroed_block(ruin: Ruin) -> bytes:
    start = ruin.starts[1] + 20
    return ruin.good[:start] + b"\0" * 300 + ruin.good[start + 300 :]


def twice(ruin: Ruin) -> bytes:
    return ruin.good + ruin.good


def first_line_lost(ruin: Ruin) -> bytes:
    return ruin.good[ruin.starts[1] :]


WITH_SNAPSHOT = {
    "a line twice": (duplicated, 9),
    "a line missing": (missing, 9),
    "lines swapped": (swapped, 9),
    "lines swapped after the snapshot": (swapped_late, 7),
    "a line missing after the snapshot": (missing_late, 7),
    "a number twice": (same_number_twice, 9),
    "a number left out": (number_left_out, 9),
    "a block of NULs": (zeroed_block, 9),
    "the file twice": (twice, 9),
    "the first line lost": (first_line_lost, 9),
}


@pytest.mark.parametrize(("ruined", "reached"), WITH_SNAPSHOT.values(), ids=WITH_SNAPSHOT)
def test_damage_is_refused_until_it_is_repaired(ruin: Ruin, ruined: Callable[[Ruin], bytes], reached: int) -> None:
    """Exit 4 for whoever reads all or writes; a repair keeps all that can be believed and says what it cost."""
    damaged = ruined(ruin)
    ruin.become(damaged)
    for touch in (
        lambda: load(ruin.folder),
        lambda: FileLedger(str(ruin.folder)).load(thorough=True),
        lambda: writer(ruin.folder).execute(goal("on"), by="test"),
    ):
        with pytest.raises(LedgerDamaged):
            touch()
    assert ruin.path.read_bytes() == damaged
    assert ruin.findings()

    said = ruin.repair()

    assert any(word in " ".join(said) for word in ("The state is as of event", "the state is unchanged"))
    state = now(ruin)
    assert state.goal == ruin.states[reached].goal
    assert state.completed == ruin.states[reached].completed
    ruin.assert_well(damaged)


def crlf(ruin: Ruin) -> bytes:
    return ruin.good.replace(b"\n", b"\r\n")


def empty(ruin: Ruin) -> bytes:
    return b""


def zeros(ruin: Ruin) -> bytes:
    return b"\0" * len(ruin.good)


def not_utf8(ruin: Ruin) -> bytes:
    return ruin.good.replace(b'{"v"', b'\xff\xfe{"v"')


def headless_without_snapshot(ruin: Ruin) -> bytes:
    lines = ruin.good.splitlines(keepends=True)
    return b"".join([*lines[1 : ruin.snapshot], *lines[ruin.snapshot + 1 :]])


HEADLESS = [crlf, empty, zeros, not_utf8, headless_without_snapshot]


@pytest.mark.parametrize("ruined", HEADLESS)
def test_where_the_beginning_is_lost_the_plan_comes_back_from_elsewhere(
    ruin: Ruin, ruined: Callable[[Ruin], bytes]
) -> None:
    """An export or plan.json becomes the state, named and marked unverified; all bytes are kept."""
    damaged = ruined(ruin)
    ruin.become(damaged)
    with pytest.raises(LedgerDamaged):
        load(ruin.folder)
    with pytest.raises(LedgerDamaged):
        writer(ruin.folder).execute(goal("on"), by="test")
    assert ruin.path.read_bytes() == damaged
    known = ruin.states[7]

    said = ruin.repair(lambda: ("plan.json", known, Position(7, "7" * 32)))

    state = state_of(ruin.folder)
    assert state.unverified == "plan.json"
    assert (state.goal, state.artifacts, state.completed) == (known.goal, known.artifacts, known.completed)
    assert "plan.json as of event 7, marked unverified" in said[0]
    assert end_of(ruin.folder).seq > 7
    ruin.assert_well(damaged)


@pytest.mark.parametrize("ruined", HEADLESS)
def test_where_nothing_is_left_the_plan_is_empty_but_not_silently(ruin: Ruin, ruined: Callable[[Ruin], bytes]) -> None:
    """Without any other source the plan says that it was rebuilt from nothing."""
    damaged = ruined(ruin)
    ruin.become(damaged)
    said = ruin.repair()
    state = state_of(ruin.folder)
    assert (state.unverified, state.plan_id, state.project_id) == ("nothing", "plan", "project")
    assert "it is empty now, marked unverified" in said[0]
    ruin.assert_well(damaged)


def test_a_lost_file_is_an_error_for_those_who_remember_it(ruin: Ruin) -> None:
    """A missing ledger is no new plan as long as anything shows that there was one."""
    ruin.become(b"", head=True)
    ruin.path.unlink()
    with pytest.raises(LedgerDamaged):
        load(ruin.folder)
    with pytest.raises(LedgerDamaged):
        writer(ruin.folder).execute(goal("on"), by="test")
    assert ruin.findings() == ["ledger.lost"]
    assert not ruin.path.exists()

    said = ruin.repair(lambda: ("export/PLAN.json", ruin.states[9], ruin.end))

    assert "rebuilt from export/PLAN.json as of event 9" in said[0]
    assert state_of(ruin.folder).goal == "z"
    assert end_of(ruin.folder).seq > ruin.end.seq
    ruin.assert_well(b"")


def test_a_folder_in_the_place_of_the_ledger_is_moved_aside(ruin: Ruin) -> None:
    """It is refused as damage, and a repair keeps it with all that is in it."""
    ruin.become(b"")
    ruin.path.unlink()
    ruin.path.mkdir()
    (ruin.path / "something").write_bytes(b"of somebody")
    with pytest.raises(LedgerDamaged):
        load(ruin.folder)
    with pytest.raises(LedgerDamaged):
        writer(ruin.folder).execute(goal("on"), by="test")
    assert ruin.findings() == ["ledger.not_a_file"]

    said = ruin.repair(lambda: ("plan.json", ruin.states[9], ruin.end))

    assert "quarantine/ledger.jsonl" in said[0]
    assert (ruin.folder / "quarantine" / "ledger.jsonl" / "something").read_bytes() == b"of somebody"
    assert ruin.findings() == []
    assert state_of(ruin.folder).goal == "z"


def test_a_repair_that_was_interrupted_after_moving_a_folder_still_remembers(ruin: Ruin) -> None:
    """A quarantine without a ledger beside it is no new plan."""
    ruin.become(b"")
    ruin.path.rename(ruin.folder / "elsewhere")
    (ruin.folder / "quarantine" / "ledger.jsonl").mkdir(parents=True)
    with pytest.raises(LedgerDamaged):
        load(ruin.folder)
    assert ruin.repair()
    assert state_of(ruin.folder).unverified == "nothing"


# Acknowledged events that are gone.


def test_events_that_a_projection_still_has_come_back_from_it(ruin: Ruin) -> None:
    """A ledger shorter than plan.json takes the newer state over, unverified, and never gives its numbers again."""
    ruin.become(ruin.good[: ruin.starts[-1]])

    def witnesses() -> list[tuple[str, Position]]:
        return [("plan.json", ruin.end)]

    ledger = FileLedger(str(ruin.folder), witnesses=witnesses)
    with pytest.raises(LedgerDamaged):
        ledger.load()
    said = repair(
        str(ruin.folder),
        rescue=lambda: ("plan.json", ruin.states[9], ruin.end),
        plan_id="plan",
        project_id="project",
        witnesses=witnesses,
    )
    loaded = ledger.load()
    assert loaded is not None
    assert loaded.end is not None
    assert loaded.end.seq > ruin.end.seq
    state = state_of(ruin.folder)
    assert (state.goal, state.unverified) == ("z", "plan.json")
    assert "marked unverified" in said[0]
    assert examine(ledger) == []


def test_events_that_nobody_has_are_recorded_as_lost(ruin: Ruin) -> None:
    """The loss is told once, recorded, and then the plan goes on from what there is."""
    ruin.become(ruin.good[: ruin.starts[-1]], head=True)
    said = ruin.repair()
    assert said == ["Event 9, which head names, is lost, and with it every event after 8. The state is as of event 8."]
    last = [r.event for r in FileLedger(str(ruin.folder)).history()][-2]
    assert (last.type, getattr(last, "named", None)) == ("ledger_recovered", ruin.end)
    assert now(ruin) == timeless(ruin.states[8])
    ruin.assert_well(b"")


def test_a_cut_takes_the_newer_state_of_a_projection_over(ruin: Ruin) -> None:
    """Damage before an event that plan.json names: what can be believed of both is kept."""
    damaged = ruin.good.replace(b'"goal":"x"', b'"goal":"X"')
    ruin.become(damaged, head=True)
    said = ruin.repair(lambda: ("plan.json", ruin.states[9], ruin.end))
    assert len(said) == 2
    assert "The state is as of event 6" in said[0]
    assert "the state is that of plan.json as of event 9" in said[1]
    assert state_of(ruin.folder).goal == "z"
    ruin.assert_well(damaged)


def test_numbers_of_lost_events_are_never_given_again(ruin: Ruin) -> None:
    """A token that somebody still holds cannot come to mean another event."""
    ruin.become(ruin.good.replace(b'"goal":"x"', b'"goal":"X"'))
    ruin.repair()
    seqs = [record.seq for record in FileLedger(str(ruin.folder)).history()]
    assert seqs == [1, 2, 3, 4, 5, 6, 10, 11]


# Segments.


def sealed(ruin: Ruin) -> Path:
    """The same plan with its events in a sealed segment; the segment."""
    w = writer(ruin.folder)
    w.execute(goal("sealed"), by="test")
    w.rotate()
    w.execute(goal("fresh"), by="test")
    w.close()
    return ruin.folder / "ledger.1.jsonl.gz"


def test_any_flipped_byte_in_a_sealed_segment_is_found(ruin: Ruin) -> None:
    """Doctor sees it; the state does not need it."""
    segment = sealed(ruin)
    good = segment.read_bytes()
    for offset in range(0, len(good), 3):
        segment.write_bytes(good[:offset] + bytes([good[offset] ^ 1]) + good[offset + 1 :])
        assert ruin.findings() == ["ledger.segment"], offset
        assert state_of(ruin.folder).goal == "fresh"


def test_what_was_put_behind_a_sealed_segment_is_not_read_through(ruin: Ruin) -> None:
    """However much it is: the segment is damaged as soon as anything follows its end."""
    with sealed(ruin).open("ab") as file:
        file.write(bytes(8 << 20))
    tracemalloc.start()
    try:
        with pytest.raises(LedgerDamaged, match="A sealed segment"):
            list(FileLedger(str(ruin.folder)).history())
        assert tracemalloc.get_traced_memory()[1] < 4 << 20
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("gone", [False, True], ids=["damaged", "missing"])
def test_a_lost_segment_costs_history_and_no_state(ruin: Ruin, gone: bool) -> None:
    """It is set aside and recorded; doctor is content, and the rest of the history stays."""
    segment = sealed(ruin)
    broken = segment.read_bytes()[:-20]
    segment.unlink() if gone else segment.write_bytes(broken)
    assert ruin.findings() == ["ledger.segment"]

    said = ruin.repair()

    assert "The history from event 1 to the next segment is lost; the state is unchanged." in said[0]
    assert not segment.exists()
    assert ruin.quarantined() == (b"" if gone else broken)
    assert ruin.findings() == []
    assert next(FileLedger(str(ruin.folder)).history()).event.type == "ledger_rotated"
    assert state_of(ruin.folder).goal == "fresh"
    w = writer(ruin.folder)
    w.rotate()
    w.close()
    assert ruin.findings() == []


def test_a_ledger_lost_after_a_rotation_comes_back_from_its_segments(ruin: Ruin) -> None:
    """Sealed events verify: they are the next best to the ledger itself."""
    sealed(ruin)
    ruin.path.unlink()
    with pytest.raises(LedgerDamaged):
        load(ruin.folder)
    said = ruin.repair()
    assert "rebuilt from sealed segments as of event 10" in said[0]
    assert state_of(ruin.folder).goal == "sealed"
    assert ruin.findings() == []


def test_an_old_ledger_put_back_beside_its_segment_has_lost_events(ruin: Ruin) -> None:
    """A segment that reaches further than the file which begins with the same event is a witness."""
    sealed(ruin)
    ruin.become(ruin.good)
    assert ruin.findings() == ["ledger.lost"]


# Snapshots.


@pytest.mark.parametrize("field", ["digest", "state"])
def test_a_snapshot_that_is_wrong_is_found_and_replaced(ruin: Ruin, field: str) -> None:
    """Events count: a snapshot that does not follow from them is written anew."""
    old, new = (
        (b'"digest":"', b'"digest":"0') if field == "digest" else (b'"goal":"g","status"', b'"goal":"h","status"')
    )
    lines = ruin.good.splitlines(keepends=True)
    wrong = lines[ruin.snapshot].replace(old, new, 1)
    assert wrong != lines[ruin.snapshot]
    ruin.become(resealed(b"".join([*lines[: ruin.snapshot], wrong, *lines[ruin.snapshot + 1 :]])))
    assert ruin.findings() == ["ledger.snapshot"]
    said = ruin.repair()
    assert "a new one was written from the events. Nothing was lost." in said[0]
    assert now(ruin) == timeless(ruin.states[9])
    ruin.assert_well(b"")


# Huge, and not allowed.


@pytest.mark.parametrize("ending", [b"", b"\n", b'","hash":"' + b"0" * 32 + b'"}\n'], ids=["torn", "line", "sealed"])
def test_a_line_of_a_gigabyte_never_enters_memory(ruin: Ruin, ending: bytes) -> None:
    """It is read past, piece by piece, and what stands before it counts."""
    ruin.become(ruin.good)
    with ruin.path.open("r+b") as file:
        file.seek((1 << 30) + len(ruin.good))
        file.write(ending or b"\0")
    tracemalloc.start()
    try:
        loaded = load(ruin.folder)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert loaded is not None
    assert loaded.debris
    assert loaded.end == ruin.end
    assert peak < 64 << 20


def test_a_long_line_that_verifies_counts(ruin: Ruin, monkeypatch: pytest.MonkeyPatch) -> None:
    """Long lines are hashed before they are brought into memory, and are then like any other."""
    from headway.ledger import scan

    expected = load(ruin.folder)
    for long, chunk in ((10, 7), (400, 100), (400, 1 << 20)):
        monkeypatch.setattr(scan, "LONG", long)
        monkeypatch.setattr(scan, "HUGE", 2 * long)
        monkeypatch.setattr(scan, "CHUNK", chunk)
        assert load(ruin.folder) == expected
        assert ruin.findings() == []


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_a_ledger_that_may_not_be_read_says_so(ruin: Ruin) -> None:
    """No permission is neither an empty plan nor damage that a repair could mend."""
    ruin.path.chmod(0)
    with pytest.raises(DamageError) as raised:
        load(ruin.folder)
    assert raised.value.error_code == "ledger.unreadable"
    assert ruin.findings() == ["ledger.unreadable"]


class ReadOnly(RealDisk):
    """A disk on which this user may not write."""

    def open(self, path: str, flags: int) -> int:
        if flags & (os.O_WRONLY | os.O_RDWR):
            raise PermissionError(13, "Permission denied")
        return super().open(path, flags)


def test_a_ledger_that_may_not_be_written_says_so(ruin: Ruin) -> None:
    """The error names the reason, the file is untouched, and reading goes on."""
    w = writer(ruin.folder, disk=ReadOnly())
    with pytest.raises(StorageFailed) as raised:
        w.execute(goal("on"), by="test")
    assert "Permission denied" in str(raised.value)
    assert ruin.path.read_bytes() == ruin.good
    with pytest.raises(StorageFailed):
        repair_module.repair(
            str(ruin.folder), rescue=lambda: None, plan_id="plan", project_id="project", disk=ReadOnly()
        )
    assert state_of(ruin.folder).goal == "z"


def test_a_repair_refuses_a_newer_format_untouched(ruin: Ruin) -> None:
    """What a newer Headway wrote is left to it, damaged or not."""
    newer = resealed(ruin.good.replace(b'"type":"goal_changed"', b'"type":"goal_sold"', 1)) + b"torn"
    ruin.become(newer)
    with pytest.raises(FormatTooNew):
        ruin.repair()
    assert ruin.path.read_bytes() == newer
    assert not (ruin.folder / "quarantine").exists()
