"""Reading a ledger's bytes: framing, the chain, and where it breaks. One strict framing, on line feeds, for all.

Never writes and takes no lock. Knows lines and hashes; what to do about a break is recovery.py's business.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from typing import NamedTuple

from headway.core import codec
from headway.core.events import LedgerRecovered, LedgerRotated, PlanRebuilt, Snapshot
from headway.core.state import Position

CHUNK = 1 << 20
NEAR = 1 << 16
"""So much is read at a time by whoever needs but a line of it."""

LONG = 1 << 20
"""A longer line enters memory only if it ends as a line must."""

HUGE = 256 << 20
"""And one longer than this only after its hash was found to be right, piece by piece."""

START = Position(0, codec.START)
SETTLING = frozenset({LedgerRecovered.type, PlanRebuilt.type})
"""These may skip numbers: those of events that are gone are never given again."""

OPENING = frozenset({LedgerRotated.type, PlanRebuilt.type})
"""These may stand first and still follow something."""


class Line(NamedTuple):
    """A complete line: where it starts, its bytes without the line feed, and how far it reaches.

    `verified`: that was found out on the way.
    """

    offset: int
    data: bytes
    end: int
    verified: bool = False

    def stands(self) -> bool:
        """Whether it verifies."""
        return self.verified or codec.seal(self.data) is not None


class Mark(NamedTuple):
    """A place in the file: the end of an event, or the start of a snapshot."""

    offset: int
    position: Position


class Break(NamedTuple):
    """Where the chain stops. From `start` to `end` nothing can be believed.

    `after` is the last event before; `resumes` is the verifying line after it, if there is one.
    """

    start: int
    end: int
    after: Position
    resumes: Position | None


class Scan(NamedTuple):
    """A whole file, looked at once. `newest` is the highest number that any verifying line bears."""

    first: Position | None
    end: Mark
    size: int
    breaks: list[Break]
    snapshot: Mark | None
    holes: list[LedgerRecovered]
    newest: Position


def lines(fd: int, start: int, stop: int, *, near: bool = False) -> Iterator[Line]:
    """Complete lines between two offsets; an overlong one that does not verify comes with empty data.

    `near`: what is asked for is probably the first of them.
    """
    offset = scanned = start
    at_once = NEAR if near else CHUNK
    parts: list[bytes] = []
    while scanned < stop:
        chunk = os.pread(fd, min(at_once, stop - scanned), scanned)
        if not chunk:
            return
        if b"\n" in chunk:
            first, *others, rest = chunk.split(b"\n")
            end = scanned + len(first) + 1
            if end - offset > LONG:
                yield _long_line(fd, offset, end)
            else:
                yield Line(offset, b"".join((*parts, first)) if parts else first, end)
            for data in others:
                offset, end = end, end + len(data) + 1
                yield Line(offset, data, end)
            offset, parts = end, []
        else:
            rest = chunk
        scanned += len(chunk)
        if scanned - offset <= LONG:
            parts.append(rest)
        else:
            parts.clear()


def _long_line(fd: int, start: int, end: int) -> Line:
    """A long line; without its bytes if it does not verify. What is handed on is what was hashed."""
    seal_at = end - 1 - codec.SEAL_LENGTH
    claimed = codec.claim(os.pread(fd, codec.SEAL_LENGTH, seal_at))
    if claimed is None or (end - start > HUGE and digest_range(fd, start, seal_at) != claimed):
        return Line(start, b"", end)
    data = os.pread(fd, end - 1 - start, start)  # of two gigabytes and more, the system gives less at a time
    if len(data) < end - 1 - start:
        data = b"".join(pieces(fd, start, end - 1))
    return Line(start, data, end, True) if codec.seal(data) is not None else Line(start, b"", end)


def first_line(fd: int, start: int, stop: int) -> Line | None:
    """The first complete line from an offset on."""
    return next(lines(fd, start, stop, near=True), None)


def before(data: bytes, number: int) -> bool:
    """Whether a line says that it comes before an event of this number, without verifying it: to pass it over."""
    claimed = codec.number(data)
    return claimed is not None and claimed < number


def place_of(fd: int, size: int, number: int) -> int:
    """An offset before which no line claims this number or a later one: where to begin to look for it.

    Numbers grow along the file, so half of what is left is passed over at a time. What is damaged tells no number; then
    more is read than needed.
    """
    low, high = 0, size
    while high - low > NEAR:
        middle = (low + high) // 2
        found = first_line(fd, line_after(fd, middle, high), high)
        if found is not None and before(found.data, number) and found.stands():
            low = found.offset
        else:
            high = middle
    return low


_SNAPSHOT = rb'\n\{"v":1,"seq":(\d{1,18}),"ts":"[^"\\]*","type":"snapshot",'
_HEAD = 256
"""The beginning of a line, up to its type, is shorter than this."""


def snapshot_before(fd: int, offset: int, number: int) -> int:
    """The number of the last line before an offset that says that it is a snapshot, no later than this; or 0.

    Verifies nothing: it is where to begin to read.
    """
    while offset > 0:
        start = max(offset - CHUNK, 0)
        chunk = os.pread(fd, offset - start + _HEAD, start)
        found = [seq for match in re.finditer(_SNAPSHOT, chunk) if (seq := int(match[1])) <= number]
        if found:
            return found[-1]
        offset = start
    return 0


def line_after(fd: int, offset: int, stop: int) -> int:
    """Where the first line begins that begins behind an offset; `stop` if there is none before it."""
    while offset < stop:
        chunk = os.pread(fd, min(NEAR, stop - offset), offset)
        feed = chunk.find(b"\n")
        if feed >= 0 or not chunk:
            return offset + feed + 1 if chunk else stop
        offset += len(chunk)
    return stop


def continues(line: codec.Envelope, seq: int, hash_: str) -> bool:
    """Whether a line that verifies follows the event of this number and hash."""
    return line.prev == hash_ and (line.seq == seq + 1 or (line.seq > seq and line.type in SETTLING))


def follows(line: codec.Envelope) -> Position:
    """What a verifying line that stands first follows: nothing, or an event that is sealed or gone."""
    return Position(line.seq - 1, line.prev) if line.type in OPENING else START


_FORMAT = re.compile(rb'\{"v":1,"seq":\d+,"ts":"[^"\\]*","type":"[a-z_]+","by":"[^"\\]*","data":\{"format":1,')


def check_format(fd: int, size: int) -> None:
    """Refuse a file whose first line says that it is of a newer format; a line that is not intact says nothing."""
    if _FORMAT.match(os.pread(fd, 4096, 0)):
        return
    line = first_line(fd, 0, size)
    if line is not None and line.stands():
        codec.decode(line.data)


def scan(fd: int, size: int) -> Scan:
    """Look at every line of a file."""
    at = newest = START
    first: Position | None = None
    breaks: list[Break] = []
    broken_at: int | None = None
    snapshot: Mark | None = None
    holes: list[LedgerRecovered] = []
    good_end = 0
    for line in lines(fd, 0, size):
        if not line.stands():
            broken_at = line.offset if broken_at is None else broken_at
            continue
        event = codec.opened(line.data)
        if first is None and broken_at is None:
            at = follows(event)
        after, at = at, Position(event.seq, event.hash)
        if not continues(event, *after):
            broken_at = line.offset if broken_at is None else broken_at
        if broken_at is not None:
            breaks.append(Break(broken_at, line.offset, after, at))
            broken_at = None
        first, good_end = first or at, line.end
        newest = max(newest, at, key=_number)
        if event.type == Snapshot.type and (snapshot is None or at.seq > snapshot.position.seq):
            snapshot = Mark(line.offset, at)
        elif event.type == LedgerRecovered.type:
            hole = codec.decode(event).event
            if isinstance(hole, LedgerRecovered) and hole.kind == "hole":
                holes.append(hole)
    if good_end < size:
        breaks.append(Break(good_end, size, at, None))
    return Scan(first, Mark(good_end, at), size, breaks, snapshot, holes, newest)


def _number(position: Position) -> int:
    return position.seq


def unknown_breaks(fd: int, found: Scan) -> list[Break]:
    """Breaks that no `ledger_recovered` accounts for, byte for byte."""
    return [b for b in found.breaks if not any(_accounts(fd, hole, b) for hole in found.holes)]


def _accounts(fd: int, hole: LedgerRecovered, gap: Break) -> bool:
    same = hole.offset == gap.start and hole.length == gap.end - gap.start and hole.after == gap.after.seq
    return same and hole.resumes == gap.resumes and hole.digest == digest_range(fd, gap.start, gap.end)


def digest_range(fd: int, start: int, end: int) -> str:
    """The digest of a stretch of the file, read piece by piece."""
    running = codec.Running()
    for piece in pieces(fd, start, end):
        running.add(piece)
    return running.digest()


def pieces(fd: int, start: int, end: int) -> Iterator[bytes]:
    """A stretch of the file, piece by piece."""
    while start < end:
        piece = os.pread(fd, min(CHUNK, end - start), start)
        if not piece:
            return
        start += len(piece)
        yield piece
