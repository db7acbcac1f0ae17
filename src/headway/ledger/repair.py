"""Looking at a ledger through and through, and mending it: what `headway doctor` does to one plan.

Examining never writes. Repairing deletes nothing: what cannot be believed is in quarantine, durably, before the file
changes, and what is left says what was lost. A repair can be interrupted anywhere and done again.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from typing import NamedTuple

import msgspec

from headway.core import codec
from headway.core.events import (
    FORMAT,
    Event,
    LedgerRecovered,
    LedgerRotated,
    PlanRebuilt,
    Record,
    SegmentDropped,
    Snapshot,
)
from headway.core.evolve import apply, replay
from headway.core.state import Position, State
from headway.disk import REAL, Disk, file_kind, make_folders, sync_folders, write_file
from headway.errors import BugError, DamageError, FormatTooNew, LedgerDamaged, StorageFailed, TryLater
from headway.ledger import head as heads
from headway.ledger import recovery, segments
from headway.ledger.base import Finding
from headway.ledger.file import LOCK, PATIENCE, PROJECT_ABOVE, QUIET, TRIES, FileLedger, Witnesses
from headway.ledger.head import Head
from headway.ledger.lock import FileLock
from headway.ledger.recovery import Damage
from headway.ledger.scan import SETTLING, START, Break, Mark, Scan, check_format, lines, scan
from headway.ledger.segments import Segment

REPAIR = "headway doctor --repair"

Rescue = Callable[[], "tuple[str, State, Position | None] | None"]
"""Where else the plan's state is to be had: what it is called, the state, and the position it reflects."""


class Replayed(NamedTuple):
    """Events folded: the state after the last one, which one that is, and what is wrong with the newest snapshot."""

    state: State | None
    end: Position
    wrong: str


class Look(NamedTuple):
    """One ledger, looked at through and through: what is wrong, where its events end, and the state there.

    `reached` is the event that `state` reflects; `hashes` are the events since the last recovery.
    """

    scan: Scan
    damage: Damage
    end: Mark
    state: State | None
    reached: Position
    hashes: dict[int, str]
    differs: str
    segments: list[tuple[Segment, str]]


# Examining.


def examine(ledger: FileLedger) -> list[Finding]:
    """Everything that is wrong with this ledger: file, sealed segments, snapshots, head, and what others name."""
    for _ in range(TRIES):
        before = ledger.stamp()
        found = _examine(ledger)
        if not found:
            break
        time.sleep(QUIET)
        if ledger.stamp() == before:
            break
    return found


def _examine(ledger: FileLedger) -> list[Finding]:
    named, sealed = list(ledger.named()), segments.sealed(ledger.folder)  # before the file: it only ever grows
    try:
        with ledger.opened() as fd:
            if fd is None:
                missing = recovery.lost(START, {}, [*named, *recovery.traces(ledger.folder)])
                return [_loss(missing[0], START)] if missing else []
            look = _look(ledger, fd)
            named += _strays(sealed, look.scan)
    except FormatTooNew as error:
        unknown = f"{error.message}: {error.facts.get('unknown')}"
        return [Finding(error.error_code, unknown, "nothing: it was not touched", error.hint)]
    except DamageError as error:
        cost = "everything, unless an export or plan.json has it" if isinstance(error, LedgerDamaged) else "unknown"
        command = REPAIR if isinstance(error, LedgerDamaged) else error.hint
        return [Finding(error.error_code, error.message, cost, command)]
    except BugError as error:
        what = f"{error.message} (after event {error.facts.get('after event')}: {error.facts.get('error')})"
        return [Finding(error.error_code, what, "unknown", error.hint)]
    found = list(_damage_findings(look))
    missing = [] if look.damage.headless else recovery.lost(look.end.position, look.hashes, named)
    found += [_loss(missing[0], look.end.position)] if missing else []
    found += [_segment_finding(segment, what) for segment, what in look.segments]
    if look.differs:
        found.append(Finding("ledger.snapshot", look.differs, "nothing: the events are there, and they count", REPAIR))
    if heads.is_damaged(ledger.folder):
        found.append(Finding("ledger.head", "`head` is damaged", "nothing: it is derived", REPAIR))
    return found


def _damage_findings(look: Look) -> Iterator[Finding]:
    damage, size = look.damage, look.scan.size
    if damage.headless:
        what = "is empty" if not size else "has lost its first event and has no snapshot"
        yield Finding("ledger.headless", f"ledger.jsonl {what}", "all that no export and no plan.json has", REPAIR)
    for gap in damage.holes:
        yield Finding("ledger.hole", _where(gap), _hole_cost(gap), REPAIR)
    if damage.cut:
        yield Finding("ledger.damaged", _where(damage.cut), f"every event after {damage.cut.after.seq}", REPAIR)
    elif damage.debris:
        what = f"{damage.debris.end - damage.debris.start} bytes after the last event belong to none"
        yield Finding("ledger.debris", what, "nothing that was acknowledged", f"the next write, or {REPAIR}")


def _where(gap: Break) -> str:
    if gap.start == gap.end:
        return f"At byte {gap.start} the chain breaks after event {gap.after.seq}"
    return f"Bytes {gap.start} to {gap.end}, after event {gap.after.seq}, are damaged"


def _hole_cost(gap: Break) -> str:
    resumes = gap.resumes.seq if gap.resumes else 0
    first, last = gap.after.seq + 1, resumes - 1
    gone = "nothing" if first > last else f"event {last}" if first == last else f"events {first} to {last}"
    return f"{gone} of the history; the state is unchanged"


def _loss(missing: tuple[str, Position], end: Position) -> Finding:
    name, position = missing
    what = f"The ledger ends at event {end.seq}, but {name} names event {position.seq} ({position.hash[:8]})"
    cost = f"every event after {end.seq}, unless an export or plan.json has what they did"
    return Finding("ledger.lost", what, cost, f"put a backup of ledger.jsonl back, or {REPAIR}")


def _segment_finding(segment: Segment, what: str) -> Finding:
    cost = f"the history from event {segment.first} on to the next segment; the state is unchanged"
    return Finding("ledger.segment", f"{segment.name} {what}", cost, f"put it back from a backup, or {REPAIR}")


# Looking.


def _look(ledger: FileLedger, fd: int) -> Look:
    size = os.fstat(fd).st_size
    check_format(fd, size)
    found = scan(fd, size)
    damage = recovery.sort_out(fd, found)
    if damage.headless:
        end = Mark(0, found.newest)
    elif damage.cut is not None:
        end = Mark(damage.cut.start, damage.cut.after)
    else:
        end = found.end
    current = list(_verified(fd, end.offset)) if not damage.headless else []
    for line in lines(fd, end.offset, size):
        if line.stands():
            codec.decode(line.data)  # what a newer version wrote is not damage: refused before anything is touched
    wrong = _wrong_segments(ledger.folder, current)
    broken = {segment.name for segment, _ in wrong}
    first = current[0].seq if current else (found.first.seq if found.first else 0)
    older = [s for s in segments.sealed(ledger.folder) if (not first or s.first < first) and s.name not in broken]
    replayed = _replayed(older, current, found.snapshot)
    settled = max((i for i, r in enumerate(current) if r.event.type in SETTLING), default=0)
    hashes = {record.seq: record.hash for record in current[settled:]}
    return Look(found, damage, end, replayed.state, replayed.end, hashes, replayed.wrong, wrong)


def _verified(fd: int, end: int) -> Iterator[Record]:
    for line in lines(fd, 0, end):
        if line.stands():
            yield codec.decode(line.data)


def _replayed(older: list[Segment], current: list[Record], newest: Mark | None) -> Replayed:
    """Fold everything from the first event that is still kept, and hold the newest snapshot against it."""
    state: State | None = None
    end, wrong = START, ""
    try:
        for state, record in replay(_chained(older, current)):
            end = record.position
            if isinstance(record.event, Snapshot) and newest is not None and end == newest.position:
                wrong = _snapshot_fault(record, record.event, state)
    except (KeyError, ValueError, AttributeError, TypeError) as error:
        raise BugError(
            "The events of this ledger verify, but do not fit together",
            facts={"after event": end.seq, "error": f"{type(error).__name__}: {error}"},
            hint="please report this; nothing was touched",
            code="ledger.replay",
        ) from error
    return Replayed(state, end, wrong)


def _snapshot_fault(record: Record, event: Snapshot, folded: State | None) -> str:
    if codec.digest(bytes(event.state)) != event.digest:
        return f"The snapshot in event {record.seq} does not have the digest it names"
    if folded is None or codec.encode_state(folded) != codec.encode_state(apply(None, record)):
        return f"The snapshot in event {record.seq} differs from what the events before it add up to"
    return ""


def _chained(older: list[Segment], current: list[Record]) -> Iterator[Record]:
    for segment in older:
        for data in segments.unpack(segment.path):
            if codec.seal(data) is not None:
                yield codec.decode(data)
    yield from current


def _wrong_segments(folder: str, current: list[Record]) -> list[tuple[Segment, str]]:
    """Sealed segments that are damaged or missing, newest first, unless an event says so already."""
    wrong: list[tuple[Segment, str]] = []
    settled = set(_settled_segments(current))
    lead = current[0].event if current else None
    there = [s for s in reversed(segments.sealed(folder)) if not current or s.first < current[0].seq]
    while there or isinstance(lead, LedgerRotated):
        expected = lead.segment if isinstance(lead, LedgerRotated) else ""
        if expected and (not there or there[0].name != expected):
            missing = Segment(segments.first_of(expected), os.path.join(folder, expected))
            wrong += [(missing, "is missing")] if expected not in settled else []
            lead = None
            continue
        segment = there.pop(0)
        fault, inside = _read_segment(segment, lead.digest if isinstance(lead, LedgerRotated) else "")
        wrong += [(segment, fault)] if fault else []
        settled |= set(_settled_segments(inside))
        lead = inside[0].event if inside and not fault else None
    return wrong


def _read_segment(segment: Segment, digest: str) -> tuple[str, list[Record]]:
    """What is wrong with a segment, and those of its events that tell something about segments."""
    if digest and segments.digest(segment.path) != digest:
        return "is damaged", []
    inside: list[Record] = []
    try:
        for number, data in enumerate(segments.unpack(segment.path)):
            verifies = codec.seal(data) is not None
            if not verifies and not digest:
                return "is damaged", []
            if verifies and (number == 0 or codec.peek(data)[1] in _ABOUT_SEGMENTS):
                inside.append(codec.decode(data))
    except LedgerDamaged:
        return "cannot be unpacked", []
    return "", inside


_ABOUT_SEGMENTS = frozenset({LedgerRecovered.type, SegmentDropped.type})


def _settled_segments(records: Iterable[Record]) -> Iterator[str]:
    for record in records:
        if isinstance(record.event, (LedgerRecovered, SegmentDropped)) and record.event.segment:
            yield record.event.segment


def _strays(sealed: Sequence[Segment], found: Scan) -> list[tuple[str, Position]]:
    """Of these segments, those that begin where the current file does: left by a kill, or proof that the file was once
    longer.
    """
    named = []
    for segment in sealed:
        if found.first is None or segment.first < found.first.seq:
            continue
        end = START
        with suppress(LedgerDamaged):
            for data in segments.unpack(segment.path):
                hash_ = codec.seal(data)
                end = Position(codec.peek(data)[0], hash_) if hash_ is not None else end
        named += [(segment.name, end)] if end.seq else []
    return named


# Mending.


def repair(
    folder: str,
    *,
    rescue: Rescue,
    plan_id: str,
    project_id: str,
    witnesses: Witnesses = list,
    disk: Disk = REAL,
) -> list[str]:
    """Mend what can be mended; a sentence for each thing done, naming what it cost."""
    ledger = FileLedger(folder, disk=disk, witnesses=witnesses)
    lock = FileLock(os.path.join(folder, LOCK))
    try:
        make_folders(disk, folder)
        if not lock.acquire(wait=PATIENCE):
            raise TryLater("Another process is writing to this ledger", hint="try again when it is done")
        return _Repair(ledger, disk, rescue, plan_id, project_id).run()
    except OSError as error:
        raise StorageFailed(
            "The disk refused a repair",
            facts={"error": error.strerror or error, "folder": folder, "cost": "nothing more than before"},
            hint="make room, give this user permission or mend the disk, then headway doctor --repair again",
        ) from error
    finally:
        lock.release()


class _Repair:
    """One repair of one ledger, under its lock."""

    def __init__(self, ledger: FileLedger, disk: Disk, rescue: Rescue, plan_id: str, project_id: str) -> None:
        self.ledger = ledger
        self.folder = ledger.folder
        self.disk = disk
        self.rescue = rescue
        self.plan_id = plan_id
        self.project_id = project_id
        self.said: list[str] = []
        self.events: list[Event] = []

    def run(self) -> list[str]:
        named = list(self.ledger.named())
        self._clear_the_place()
        with ExitStack() as stack:
            fd = stack.enter_context(self._open())
            look = _look(self.ledger, fd) if fd is not None else self._nothing(named)
            if look is None:
                return self.said
            named += _strays(segments.sealed(self.folder), look.scan)
            above = self._settle(fd, look, named)
            self._settle_segments(look)
            if self.events or look.differs:
                self._write(fd, look, above)
            elif heads.is_damaged(self.folder):
                heads.write(self.disk, self.folder, Head(look.scan.snapshot, look.end))
                self.said.append("`head` was damaged and has been written again. Nothing was lost.")
        return self.said

    def _clear_the_place(self) -> None:
        kind = file_kind(self.ledger.path)
        if kind not in ("", "file"):
            kept = recovery.move_aside(self.disk, self.folder, self.ledger.path, "ledger.jsonl")
            self.said.append(f"In the place of ledger.jsonl stood a {kind}; it is {kept} now.")

    @contextmanager
    def _open(self) -> Iterator[int | None]:
        fd = self.disk.open(self.ledger.path, os.O_RDWR) if file_kind(self.ledger.path) else None
        try:
            yield fd
        finally:
            if fd is not None:
                self.disk.close(fd)

    def _nothing(self, named: recovery.Named) -> Look | None:
        """No file: nothing to do where there never was one, else everything."""
        if not named and not recovery.traces(self.folder):
            return None
        wrong = _wrong_segments(self.folder, [])
        broken = {segment.name for segment, _ in wrong}
        older = [s for s in segments.sealed(self.folder) if s.name not in broken]
        replayed = _replayed(older, [], None)
        empty = Scan(None, Mark(0, START), 0, [], None, [], replayed.end)
        headless = Damage([], None, True, None)
        return Look(empty, headless, Mark(0, replayed.end), replayed.state, replayed.end, {}, "", wrong)

    def _settle(self, fd: int | None, look: Look, named: recovery.Named) -> int:
        """Set aside what cannot be believed, and decide what the ledger goes on with; numbers to leave out."""
        damage, end = look.damage, look.end.position
        above = max((position.seq for _, position in named), default=0)
        above = max(above, look.scan.newest.seq)
        if damage.headless:
            self._rebuild_all(fd, look)
            return above
        lost = recovery.lost(end, look.hashes, named)
        if damage.cut and fd is not None:
            gap = Break(damage.cut.start, look.scan.size, damage.cut.after, None)
            event = recovery.set_aside(self.disk, fd, self.folder, "cut", gap)
            event = msgspec.structs.replace(event, named=lost[0][1] if lost else None)
            self.events.append(event)
            counted = ", ".join(f"{count} {name}" for name, count in event.lost.items()) or "no event"
            self.said.append(
                f"After event {end.seq} the ledger was damaged: {event.length} bytes, in which {counted} can still be "
                f"read, were set aside as {event.quarantine}. The state is as of event {end.seq}."
            )
        elif damage.debris and fd is not None:
            event = recovery.set_aside(self.disk, fd, self.folder, "debris", damage.debris)
            self.events.append(event)
            self.said.append(
                f"{event.length} bytes that belong to no event were set aside as {event.quarantine}. "
                "Nothing that was acknowledged was lost."
            )
        for gap in damage.holes if fd is not None else []:
            event = recovery.set_aside(self.disk, fd, self.folder, "hole", gap)  # type: ignore[arg-type]  # not None
            self.events.append(event)
            self.said.append(f"{_where(gap)}: a copy is {event.quarantine}. It cost {_hole_cost(gap)}.")
        if lost:
            self._make_up(look, lost)
        return above if damage.cut or lost else 0

    def _rebuild_all(self, fd: int | None, look: Look) -> None:
        """The beginning is gone: go on from the newest state that is to be had anywhere."""
        found = self.rescue()
        sealed = look.state
        if sealed is not None and (found is None or found[2] is None or found[2].seq <= look.reached.seq):
            found = ("sealed segments", sealed, look.reached)
        source, state, at = found or ("nothing", State(plan_id=self.plan_id, project_id=self.project_id), None)
        self.events.append(self._rebuilt(source, state, at, "the ledger had lost its beginning"))
        kept = ""
        if fd is not None and look.scan.size:
            event = recovery.set_aside(self.disk, fd, self.folder, "cut", Break(0, look.scan.size, START, None))
            self.events.append(event)
            kept = f" What was left of the ledger is {event.quarantine}."
        if found is None:
            self.said.append(
                "The ledger had lost its beginning, and no snapshot, export or plan.json has the plan: it is empty "
                f"now, marked unverified. Take its plan file in again, or put a backup back.{kept}"
            )
        else:
            as_of = f" as of event {at.seq}" if at else ""
            self.said.append(
                f"The ledger had lost its beginning: the plan was rebuilt from {source}{as_of}, marked unverified. "
                f"Later events are lost.{kept}"
            )

    def _make_up(self, look: Look, lost: recovery.Named) -> None:
        """Acknowledged events are gone: take their result from elsewhere, or at least say so."""
        end, (name, position) = look.end.position, lost[0]
        found = self.rescue()
        if found is not None and found[2] is not None and found[2].seq > end.seq:
            source, state, at = found
            self.events.append(self._rebuilt(source, state, at, f"events after {end.seq} were lost"))
            self.said.append(
                f"Events {end.seq + 1} to {position.seq} are lost, but {source} has what they led to: the state is "
                f"that of {source} as of event {at.seq if at else '?'}, marked unverified."
            )
            return
        if not look.damage.cut:
            self.events.append(LedgerRecovered(kind="loss", offset=look.end.offset, after=end.seq, named=position))
        if position.seq > end.seq:
            what = f"Event {position.seq}, which {name} names, is lost, and with it every event after {end.seq}."
        else:
            what = f"Event {position.seq} is not the one that {name} names: what that ledger had after it is lost."
        self.said.append(f"{what} The state is as of event {end.seq}.")

    def _rebuilt(self, source: str, state: State, at: Position | None, reason: str) -> PlanRebuilt:
        return PlanRebuilt(
            format=FORMAT,
            plan_id=self.plan_id,
            project_id=self.project_id,
            source=source,
            state=msgspec.Raw(codec.encode_state(state)),
            reason=reason,
            at=at,
        )

    def _settle_segments(self, look: Look) -> None:
        for segment, what in look.segments:
            kept = ""
            if os.path.lexists(segment.path):
                kept = recovery.move_aside(self.disk, self.folder, segment.path, segment.name)
            event = LedgerRecovered(kind="segment", segment=segment.name, quarantine=kept, after=segment.first - 1)
            self.events.append(event)
            where = f"; it is {kept} now" if kept else ""
            self.said.append(
                f"{segment.name} {what}{where}. The history from event {segment.first} to the next segment is lost; "
                "the state is unchanged."
            )

    def _write(self, fd: int | None, look: Look, above: int) -> None:
        """One write at the cut: what was found, and a snapshot, so that nobody has to look behind it again."""
        if look.differs:
            self.said.append(f"{look.differs}: a new one was written from the events. Nothing was lost.")
        above = max(above, *(e.at.seq for e in self.events if isinstance(e, PlanRebuilt) and e.at), 0)
        data, records = recovery.encode_all(self.events, look.end.position, above=above)
        state = look.state.copy() if look.state is not None else None
        for record in records:
            state = apply(state, record)
        after = records[-1].position if records else look.end.position
        encoded = codec.encode_state(state) if state is not None else b""
        snapshot = Snapshot(state=msgspec.Raw(encoded), digest=codec.digest(encoded))
        more, (last,) = recovery.encode_all([snapshot], after)
        if fd is None:
            path = self.ledger.path
            write_file(self.disk, path, [data, more], durable=True, temporary=f"{path}.new")
            sync_folders(self.disk, self.folder, above=PROJECT_ABOVE)
        else:
            recovery.write_end(self.disk, fd, look.end.offset, data + more, look.scan.size)
        at = look.end.offset + len(data)
        heads.write(self.disk, self.folder, Head(Mark(at, last.position), Mark(at + len(more), last.position)))
