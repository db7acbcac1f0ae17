"""What to do about bytes that cannot be believed. They are set aside, named and counted; never deleted, never used.

Order of every recovery: the quarantine file is durable; then `ledger_recovered` is written at the cut; then the file
is synced, truncated and synced again. It can be interrupted anywhere and done again.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from typing import NamedTuple

import msgspec

from headway.core import codec
from headway.core.events import Event, LedgerRecovered, Record
from headway.core.state import Position
from headway.disk import Disk, make_folders, write_all, write_file
from headway.errors import FormatTooNew, LedgerDamaged
from headway.ledger.scan import Break, Mark, Scan, digest_range, lines, pieces, unknown_breaks

BY = "recovery"


class Damage(NamedTuple):
    """A scan, sorted by what can be done about it."""

    holes: list[Break]
    cut: Break | None
    headless: bool
    debris: Break | None


def sort_out(fd: int, found: Scan) -> Damage:
    """Before the newest snapshot: holes. After it: a cut. Nothing to start from: headless. At the end: debris."""
    breaks = unknown_breaks(fd, found)
    debris = next((b for b in breaks if b.resumes is None), None)
    breaks = [b for b in breaks if b.resumes is not None]
    if found.snapshot is None:
        headless = found.first is None or any(b.after.seq == 0 for b in breaks)
        return Damage([], breaks[0] if breaks and not headless else None, headless, debris)
    start = found.snapshot.offset
    holes = [b for b in breaks if b.end <= start]
    return Damage(holes, next((b for b in breaks if b.end > start), None), False, debris)


def cut(disk: Disk, fd: int, folder: str, end: Mark, size: int, *, kind: str) -> tuple[Mark, list[Record]]:
    """Set everything from `end` to `size` aside and go on behind it: the new end, and the event that says so."""
    event = _set_aside(disk, fd, folder, kind, end.offset, size, end.position, None)
    if end.position.seq == 0:
        disk.truncate(fd, 0)
        disk.sync(fd)
        return end, []
    ts, seq = now(), end.position.seq + 1
    line, digest = codec.encode(event, seq=seq, ts=ts, by=BY, prev=end.position.hash)
    write_all(disk, fd, line + b"\n", end.offset)
    disk.sync(fd)
    after = end.offset + len(line) + 1
    disk.truncate(fd, after)
    disk.sync(fd)
    return Mark(after, Position(seq, digest)), [Record(seq, ts, BY, event, end.position.hash, digest)]


def describe_hole(disk: Disk, fd: int, folder: str, gap: Break) -> Event:
    """Keep a copy of the bytes of a hole; the event that accounts for them."""
    return _set_aside(disk, fd, folder, "hole", gap.start, gap.end, gap.after, gap.resumes)


def _set_aside(
    disk: Disk,
    fd: int,
    folder: str,
    kind: str,
    start: int,
    end: int,
    after: Position,
    resumes: Position | None,
) -> LedgerRecovered:
    digest = digest_range(fd, start, end)
    lost = lost_events(fd, start, end)
    reason = {
        "kind": kind,
        "file": "ledger.jsonl",
        "offset": start,
        "length": end - start,
        "digest": digest,
        "after event": after.seq,
        "events in it that verify": lost,
        "set aside": now(),
    }
    name = quarantine(disk, folder, f"{after.seq}-{kind}-{digest[:16]}", reason, pieces(fd, start, end))
    return LedgerRecovered(
        kind=kind,  # type: ignore[arg-type]  # the three words of the event
        offset=start,
        length=end - start,
        digest=digest,
        quarantine=name,
        after=after.seq,
        lost=lost,
        resumes=resumes,
    )


def quarantine(disk: Disk, folder: str, name: str, reason: dict[str, object], chunks: Iterable[bytes]) -> str:
    """One file an incident: a line of JSON that says why, then the bytes. Existing files are left alone."""
    home = os.path.join(folder, "quarantine")
    make_folders(disk, home)
    path = os.path.join(home, name)
    if not os.path.exists(path):
        header = msgspec.json.encode(reason) + b"\n"
        write_file(disk, path, _chain(header, chunks), durable=True)
    return f"quarantine/{name}"


def _chain(header: bytes, chunks: Iterable[bytes]) -> Iterator[bytes]:
    yield header
    yield from chunks


def lost_events(fd: int, start: int, end: int) -> dict[str, int]:
    """What a stretch of bytes says it holds: verifying events by type. Told to the user, never believed."""
    counts: dict[str, int] = {}
    for line in lines(fd, start, end):
        if codec.seal(line.data) is None:
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
    return datetime.now(UTC).isoformat(timespec="microseconds")[:-6] + "Z"
