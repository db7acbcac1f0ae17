"""Reading a ledger's bytes: framing, the chain, and where it breaks. One strict framing, on line feeds, for all.

Never writes and takes no lock. Knows lines and hashes; what to do about a break is recovery.py's business.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import NamedTuple

from headway.core import codec
from headway.core.events import LedgerRecovered, Snapshot
from headway.core.state import Position

CHUNK = 1 << 20
MAX_LINE = 1 << 29
"""No event is longer than 512 MiB; a longer line is not ours and is never brought into memory."""

START = Position(0, codec.START)


class Line(NamedTuple):
    """A complete line: where it starts, its bytes without the line feed, and how far it reaches."""

    offset: int
    data: bytes
    end: int


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
    """A whole file, looked at once."""

    first: Position | None
    end: Mark
    size: int
    breaks: list[Break]
    snapshot: Mark | None
    holes: list[LedgerRecovered]
    events: int


def lines(fd: int, start: int, stop: int) -> Iterator[Line]:
    """Complete lines between two offsets; a line that is too long comes with empty data."""
    offset, pending, scanned = start, bytearray(), start
    too_long = False
    while scanned < stop:
        chunk = os.pread(fd, min(CHUNK, stop - scanned), scanned)
        if not chunk:
            return
        scanned += len(chunk)
        begin = 0
        while (feed := chunk.find(b"\n", begin)) >= 0:
            if pending or too_long:
                pending += chunk[begin:feed]
                data = b"" if too_long else bytes(pending)
                pending.clear()
            else:
                data = chunk[begin:feed]
            end = scanned - len(chunk) + feed + 1
            yield Line(offset, data, end)
            offset, begin, too_long = end, feed + 1, False
        if not too_long:
            pending += chunk[begin:]
        if len(pending) > MAX_LINE:
            pending.clear()
            too_long = True


class Chain:
    """Follows the chain line by line."""

    __slots__ = ("at",)

    def __init__(self, at: Position) -> None:
        self.at = at

    def takes(self, data: bytes) -> bool:
        """Whether this line verifies and continues the chain; if so, it is now the newest event."""
        sealed = codec.seal(data)
        if sealed is None or codec.link(data) != self.at.hash or number(data) != self.at.seq + 1:
            return False
        self.at = Position(self.at.seq + 1, sealed)
        return True


_SEQ = b',"seq":'


def number(data: bytes) -> int:
    """The number of a verified line; 0 where it has none."""
    begin = data.find(_SEQ, 0, 64)
    stop = data.find(b",", begin + len(_SEQ), begin + len(_SEQ) + 24)
    if begin >= 0 and stop > begin and data[begin + len(_SEQ) : stop].isdigit():
        return int(data[begin + len(_SEQ) : stop])
    return codec.peek(data)[0]


def _is(data: bytes, event: str) -> bool:
    return b'"type":"%s"' % event.encode() in data[:200]


def scan(fd: int, size: int, *, start: int = 0, before: Position = START, known_first: bool = False) -> Scan:
    """Look at every line between `start` and `size`. `before` is the event that the first one must follow.

    Without `known_first`, the first verifying line may also begin a new segment: it then names what it follows.
    """
    chain = Chain(before)
    first: Position | None = None
    breaks: list[Break] = []
    broken_at: int | None = None
    snapshot: Mark | None = None
    holes: list[LedgerRecovered] = []
    good_end, count = start, 0
    for line in lines(fd, start, size):
        if chain.takes(line.data):
            if broken_at is not None:
                breaks.append(
                    Break(broken_at, line.offset, Position(chain.at.seq - 1, codec.link(line.data)), chain.at)
                )
                broken_at = None
        else:
            sealed = codec.seal(line.data)
            if sealed is None:
                broken_at = line.offset if broken_at is None else broken_at
                continue
            here = Position(number(line.data), sealed)
            begins = first is None and broken_at is None and not known_first and _is(line.data, "ledger_rotated")
            if not begins:
                begin = line.offset if broken_at is None else broken_at
                breaks.append(Break(begin, line.offset, chain.at, here))
            broken_at = None
            chain = Chain(here)
        count += 1
        first = first or chain.at
        good_end = line.end
        if _is(line.data, Snapshot.type) and (snapshot is None or chain.at.seq > snapshot.position.seq):
            snapshot = Mark(line.offset, chain.at)
        elif _is(line.data, LedgerRecovered.type):
            event = codec.decode(line.data).event
            if isinstance(event, LedgerRecovered) and event.kind == "hole":
                holes.append(event)
    if good_end < size:
        breaks.append(Break(good_end, size, chain.at, None))
    return Scan(first, Mark(good_end, chain.at), size, breaks, snapshot, holes, count)


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


def any_verifies(fd: int, start: int, end: int) -> bool:
    """Whether any complete line in this stretch verifies: then it is no debris."""
    return any(codec.seal(line.data) is not None for line in lines(fd, start, end))
