"""What to do about bytes that cannot be believed. They are set aside, named and counted; never deleted, never used.

Order of every recovery: the quarantine file is durable; then the events that say so are written at the cut; then the
file is synced, truncated and synced again. It can be interrupted anywhere and done again.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from typing import NamedTuple

import msgspec

from headway.core import codec
from headway.core.events import Event, LedgerRecovered, Record
from headway.core.state import Position
from headway.disk import Disk, make_folders, write_all, write_file
from headway.errors import FormatTooNew, LedgerDamaged
from headway.ledger import segments
from headway.ledger.scan import Break, Mark, Scan, digest_range, lines, pieces, unknown_breaks

BY = "recovery"
FOLDER = "quarantine"
Named = Sequence[tuple[str, Position]]
"""Positions of a ledger that somebody was told about, and where that is written."""


class Damage(NamedTuple):
    """A scan, sorted by what can be done about it."""

    holes: list[Break]
    cut: Break | None
    headless: bool
    debris: Break | None


def sort_out(fd: int, found: Scan) -> Damage:
    """Before the newest snapshot: holes. After it: a cut. Nothing to start from: headless. At the end: debris.

    A ledger is put in place with its first events whole, so a file in which nothing verifies has lost them.
    """
    breaks = unknown_breaks(fd, found)
    debris = next((b for b in breaks if b.resumes is None), None)
    breaks = [b for b in breaks if b.resumes is not None]
    if found.snapshot is None:
        headless = found.first is None or any(b.after.seq == 0 for b in breaks)
        return Damage([], breaks[0] if breaks and not headless else None, headless, None if headless else debris)
    start = found.snapshot.offset
    holes = [b for b in breaks if b.end <= start]
    return Damage(holes, next((b for b in breaks if b.end > start), None), False, debris)


def refuse(path: str, fd: int, found: Scan) -> None:
    """Everything but debris at the very end is for `doctor --repair`."""
    damage = sort_out(fd, found)
    if damage.headless:
        raise headless(path, found.size)
    for gap in (*damage.holes, *((damage.cut,) if damage.cut else ())):
        raise damaged(path, Mark(gap.start, gap.after), gap.end)


def refuse_loss(path: str, end: Position, hashes: dict[int, str], named: Named) -> None:
    """Whoever names a position of this ledger was told about it: the ledger must have it."""
    missing = lost(end, hashes, named)
    if missing:
        name, position = missing[0]
        raise LedgerDamaged(
            "The ledger has lost events that were acknowledged",
            facts={
                "file": path,
                "ledger ends at event": end.seq,
                f"{name} names event": f"{position.seq} ({position.hash[:8]})",
            },
            hint="put the newest backup of ledger.jsonl back, or headway doctor --repair",
            code="ledger.lost",
        )


def lost(end: Position, hashes: dict[int, str], named: Named) -> list[tuple[str, Position]]:
    """Named positions that are not in this ledger, the newest first. `hashes` are those known to be in it."""
    missing = [(n, p) for n, p in named if p.seq > end.seq or hashes.get(p.seq, p.hash) != p.hash]
    return sorted(missing, key=lambda entry: -entry[1].seq)


def traces(folder: str) -> Named:
    """What shows that there was a ledger here, although it says nothing of how far it reached."""
    found = [(segment.name, Position(segment.first, "sealed")) for segment in segments.sealed(folder)]
    if os.path.isdir(os.path.join(folder, FOLDER)):
        found.append((FOLDER, Position(1, "unknown")))
    return found


def set_debris_aside(disk: Disk, fd: int, folder: str, end: Mark, size: int) -> tuple[Mark, list[Record]]:
    """What a dead writer left behind the last event: the new end, and the event that says so."""
    event = set_aside(disk, fd, folder, "debris", Break(end.offset, size, end.position, None))
    data, records = encode_all([event], end.position)
    write_end(disk, fd, end.offset, data, size)
    return Mark(end.offset + len(data), records[-1].position), records


def write_end(disk: Disk, fd: int, at: int, data: bytes, size: int) -> None:
    """Let the file go on with these lines at this offset, and with nothing behind them."""
    write_all(disk, fd, data, at)
    disk.sync(fd)
    if at + len(data) < size:
        disk.truncate(fd, at + len(data))
        disk.sync(fd)


def encode_all(events: Sequence[Event], after: Position, *, above: int = 0) -> tuple[bytes, list[Record]]:
    """These events as lines that follow a position; the first gets a number higher than `above`."""
    parts, records, ts = [], [], now()
    for event in events:
        seq = max(after.seq, above) + 1
        line, digest = codec.encode(event, seq=seq, ts=ts, by=BY, prev=after.hash)
        parts += [line, b"\n"]
        records.append(Record(seq, ts, BY, event, after.hash, digest))
        after = records[-1].position
    return b"".join(parts), records


def set_aside(disk: Disk, fd: int, folder: str, kind: str, gap: Break) -> LedgerRecovered:
    """Keep a copy of bytes that cannot be believed; the event that accounts for them."""
    start, end, after = gap.start, gap.end, gap.after
    digest = digest_range(fd, start, end)
    counts = lost_events(fd, start, end)
    reason = {
        "kind": kind,
        "file": "ledger.jsonl",
        "offset": start,
        "length": end - start,
        "digest": digest,
        "after event": after.seq,
        "events in it that verify": counts,
        "set aside": now(),
    }
    name = quarantine(disk, folder, f"{after.seq}-{kind}-{digest[:16]}", reason, pieces(fd, start, end))
    return LedgerRecovered(
        kind=kind,  # type: ignore[arg-type]  # the words of the event
        offset=start,
        length=end - start,
        digest=digest,
        quarantine=name,
        after=after.seq,
        lost=counts,
        resumes=gap.resumes,
    )


def quarantine(disk: Disk, folder: str, name: str, reason: dict[str, object], chunks: Iterable[bytes]) -> str:
    """One file an incident: a line of JSON that says why, then the bytes. Existing files are left alone."""
    home = os.path.join(folder, FOLDER)
    make_folders(disk, home)
    path = os.path.join(home, name)
    if not os.path.lexists(path):
        header = msgspec.json.encode(reason) + b"\n"
        write_file(disk, path, _chain(header, chunks), durable=True)
    else:
        disk.sync_folder(home)
    return f"{FOLDER}/{name}"


def move_aside(disk: Disk, folder: str, path: str, label: str) -> str:
    """Move a whole file or folder into quarantine under a name of its own."""
    home = os.path.join(folder, FOLDER)
    make_folders(disk, home)
    name, count = label, 1
    while os.path.lexists(os.path.join(home, name)):
        name, count = f"{label}-{count + 1}", count + 1
    disk.replace(path, os.path.join(home, name))
    disk.sync_folder(home)
    disk.sync_folder(os.path.dirname(path))
    return f"{FOLDER}/{name}"


def _chain(header: bytes, chunks: Iterable[bytes]) -> Iterator[bytes]:
    yield header
    yield from chunks


def lost_events(fd: int, start: int, end: int) -> dict[str, int]:
    """What a stretch of bytes says it holds: verifying events by type. Told to the user, never believed."""
    counts: dict[str, int] = {}
    for line in lines(fd, start, end):
        if not line.stands():
            continue
        try:
            name = codec.peek(line.data)[1]
        except FormatTooNew:
            name = "of a newer Headway"
        counts[name] = counts.get(name, 0) + 1
    return counts


def damaged(path: str, end: Mark, stop: int) -> LedgerDamaged:
    """The error of a chain that breaks before its end."""
    return LedgerDamaged(
        "The ledger is damaged",
        facts={
            "file": path,
            "intact up to event": end.position.seq,
            "damage from byte": end.offset,
            "to byte": stop,
        },
        hint="headway doctor says what it costs; headway doctor --repair mends it and deletes nothing",
    )


def headless(path: str, size: int) -> LedgerDamaged:
    """The error of a ledger that has nothing left to begin with."""
    return LedgerDamaged(
        "The ledger has lost its beginning",
        facts={"file": path, "bytes": size},
        hint="put a backup of ledger.jsonl back, or headway doctor --repair rebuilds it from an export or plan.json",
        code="ledger.headless",
    )


def not_a_file(path: str, kind: str) -> LedgerDamaged:
    """The error of something else standing where the ledger should be."""
    return LedgerDamaged(
        "The ledger is not a file",
        facts={"path": path, "found": kind},
        hint="headway doctor --repair sets it aside and rebuilds from an export or plan.json",
        code="ledger.not_a_file",
    )


def now() -> str:
    """The time, as events write it."""
    whole, rest = divmod(time.time_ns() // 1_000_000, 1000)
    return f"{_second(whole)}.{rest:03d}Z"


@lru_cache(maxsize=2)
def _second(whole: int) -> str:
    """The text of a second: most events share theirs with others."""
    return time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(whole))
