"""A ledger in memory: the same contract without a disk, for tests and for trying things out."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence

from headway.core import codec
from headway.core.events import Event, Record, Snapshot
from headway.core.state import Position
from headway.errors import BugError
from headway.ledger.base import Loaded
from headway.ledger.scan import START


class Shelf:
    """Where memory ledgers keep their lines: share one to let several ledgers write to the same chain."""

    def __init__(self) -> None:
        self.lines: list[bytes] = []
        self.lock = threading.Lock()


class MemoryLedger:
    """One chain of events, as encoded lines on a shelf. Unsynced events are visible, as those in a file are."""

    def __init__(self, shelf: Shelf | None = None) -> None:
        self._shelf = shelf or Shelf()
        self._held = False

    def load(self) -> Loaded | None:
        records = list(self.history())
        if not records:
            return None
        start = max((i for i, r in enumerate(records) if r.event.type == Snapshot.type), default=0)
        sizes = [len(line) + 1 for line in self._shelf.lines[start:]]
        return Loaded(records[start:], records[-1].position, base=sizes[0], tail=sum(sizes[1:]))

    def history(self, first: int = 1, last: int | None = None) -> Iterator[Record]:
        for line in self._shelf.lines[first - 1 : last]:
            yield codec.decode(line)

    def begin(self, known: Position | None) -> Loaded:
        self._shelf.lock.acquire()
        self._held = True
        there = known is not None and 0 < known.seq <= len(self._shelf.lines)
        if known is None or not there or codec.seal(self._shelf.lines[known.seq - 1]) != known.hash:
            return self.load() or Loaded([], None)
        return Loaded(list(self.history(known.seq + 1)), known, whole=False)

    def append(self, events: Sequence[Event], *, by: str, ts: str) -> list[Record]:
        if not self._held:
            raise BugError("append outside of a batch")
        records = []
        for event in events:
            last = codec.decode(self._shelf.lines[-1]).position if self._shelf.lines else START
            line, digest = codec.encode(event, seq=last.seq + 1, ts=ts, by=by, prev=last.hash)
            self._shelf.lines.append(line)
            records.append(Record(last.seq + 1, ts, by, event, last.hash, digest))
        return records

    def sync(self) -> None:
        pass

    def end(self) -> None:
        if self._held:
            self._held = False
            self._shelf.lock.release()

    def size(self) -> int:
        return sum(len(line) + 1 for line in self._shelf.lines)

    def close(self) -> None:
        self.end()
