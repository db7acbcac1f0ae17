"""A ledger in memory: the same contract without a disk, for tests and for trying things out."""

from __future__ import annotations

import threading
from collections.abc import Collection, Container, Iterator, Sequence

from headway.core import codec
from headway.core.events import FORMAT, Event, LedgerRotated, Record, Snapshot
from headway.core.state import Position
from headway.errors import BugError, TryLater
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
        self._staged: list[bytes] = []

    def load(self, known: Position | None = None) -> Loaded | None:
        lines = list(self._shelf.lines)
        if not lines:
            return None
        end = codec.decode(lines[-1]).position
        sizes = [len(line) + 1 for line in lines]
        start = max((i for i, line in enumerate(lines) if codec.peek(line)[1] == Snapshot.type), default=0)
        knows = known is not None and 0 < known.seq <= len(lines) and codec.seal(lines[known.seq - 1]) == known.hash
        first = known.seq if known is not None and knows else start
        return Loaded(
            [codec.decode(line) for line in lines[first:]],
            end,
            whole=not knows,
            base=sizes[start],
            tail=sum(sizes[start + 1 :]),
            events=len(lines) - start,
            size=sum(sizes),
        )

    def history(
        self,
        first: int = 1,
        last: int | None = None,
        *,
        about: Container[str] | None = None,
        naming: Collection[str] = (),
    ) -> Iterator[Record]:
        names = codec.names(naming)
        for line in self._shelf.lines[first - 1 : last]:
            if not naming or names(line):
                yield codec.decode(line, about)

    def begin(self, known: Position | None, *, patience: float = 60.0) -> Loaded:
        if not self._shelf.lock.acquire(timeout=patience):
            raise TryLater("Another ledger is writing to this shelf", hint="try again", code="ledger.busy")
        self._held = True
        return self.load(known) or Loaded([], None)

    def stage(self, events: Sequence[Event], *, by: str, ts: str) -> list[Record]:
        if not self._held:
            raise BugError("events outside of a batch")
        there = self._staged or self._shelf.lines
        last = codec.decode(there[-1]).position if there else START
        records, lines = codec.chain(events, last, ts, by)
        self._staged += lines.split(b"\n")[:-1]
        return records

    def write(self) -> None:
        self._shelf.lines += self._staged
        self._staged = []

    def sync(self) -> None:
        pass

    def end(self) -> None:
        self._staged = []
        if self._held:
            self._held = False
            self._shelf.lock.release()

    def rotate(self, snapshot: Snapshot, *, by: str, ts: str, plan_id: str, project_id: str) -> list[Record]:
        last = codec.decode(self._shelf.lines[-1]).position
        lead = LedgerRotated(format=FORMAT, plan_id=plan_id, project_id=project_id, sealed=last, segment="")
        records = self.stage([lead, snapshot], by=by, ts=ts)
        self.write()
        return records

    def size(self) -> int:
        return sum(len(line) + 1 for line in (*self._shelf.lines, *self._staged))

    def close(self) -> None:
        self.end()
