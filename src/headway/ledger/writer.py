"""The only way to write: lock, learn what others did, decide on that, append, sync, tell.

Writes happen at once, so a killed process loses none. Syncs are shared: whoever waits first syncs for all that is
written by then, and what nobody waits for is synced within `LINGER`. The lock is held from a batch's first write to
its sync and yielded between batches.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import msgspec

from headway.core import codec
from headway.core.commands import Command
from headway.core.decide import Rejection, decide
from headway.core.events import Event, Record, Snapshot
from headway.core.evolve import apply
from headway.core.state import Position, State
from headway.errors import BugError, HeadwayError, PlanConflict, Rejected, TryLater, UsageError
from headway.ledger.base import Ledger, Loaded
from headway.ledger.recovery import now

if TYPE_CHECKING:
    import asyncio  # only named in an annotation: importing it costs more than the rest of this module

LINGER = 0.05
SNAPSHOT_EVERY = 50
SMALL_STATE = 64 * 1024
BASES = frozenset({"snapshot", "plan_created", "plan_imported", "plan_rebuilt"})
ENDINGS = frozenset({"milestone_completed", "run_completed", "run_failed", "run_paused", "plan_closed"})


class Pace:
    """When a snapshot (or a projection) is due: what it costs must be paid for by what came since the last one."""

    def __init__(self, *, base: int = 0, cost: int = 0, events: int = 0) -> None:
        self.base = base
        self.cost = cost
        self.events = events

    def might_be_due(self, size: int, *, ending: bool) -> bool:
        """Cheap test before the state is encoded. At endings, a small state is written regardless."""
        if ending and self.cost < SMALL_STATE:
            return True
        return self.events >= SNAPSHOT_EVERY and size - self.base >= self.cost

    def is_due(self, size: int, cost: int, *, ending: bool) -> bool:
        """The same with the state's true size; a state that grew too much waits for more events."""
        self.cost = cost
        return self.might_be_due(size, ending=ending)

    def done(self, size: int) -> None:
        """It was written; the ledger now has this size."""
        self.base, self.events = size, 0


class Writer:
    """One plan's ledger and state, for any number of threads of one process."""

    def __init__(
        self,
        ledger: Ledger,
        *,
        sync_first: Sequence[Callable[[], None]] = (),
        clock: Callable[[], str] = now,
        notify: Callable[[State, Sequence[Record]], None] | None = None,
    ) -> None:
        self._ledger = ledger
        self._sync_first = sync_first
        self._clock = clock
        self._notify = notify
        self._mutex = threading.RLock()
        self._leader = threading.Lock()
        self._state: State | None = None
        self._end: Position | None = None
        self._synced = 0
        self._pace = Pace()
        self._in_batch = False
        self._batch_since = 0.0
        self._failure: HeadwayError | None = None
        self._lingering: threading.Thread | None = None
        self._dirty = threading.Event()
        self._shared: asyncio.Future[None] | None = None
        self._closed = False

    # What callers use.

    @property
    def state(self) -> State | None:
        """The state as of the newest event this writer knows. Not to be changed."""
        return self._state

    @property
    def position(self) -> Position | None:
        """The newest event this writer knows."""
        return self._end

    def execute(self, command: Command, *, by: str, wait: bool = True) -> list[Record]:
        """Do what the command asks, or raise why not. With `wait`, what is returned is on disk."""
        records = self._decide(command, by)
        if records and wait:
            self.sync(records[-1].seq)
        elif records:
            self._linger()
        return records

    async def aexecute(self, command: Command, *, by: str) -> list[Record]:
        """As `execute`, for many at once in one event loop: all that is written in one turn shares a sync."""
        import asyncio

        records = self._decide(command, by)
        while records and self._synced < records[-1].seq:
            self._check()
            if self._shared is None or self._shared.done():
                self._shared = asyncio.ensure_future(self._sync_turn())
            await asyncio.shield(self._shared)
        return records

    async def _sync_turn(self) -> None:
        import asyncio

        await asyncio.sleep(0)
        await asyncio.get_running_loop().run_in_executor(None, self.sync)

    def record(self, events: Sequence[Event], *, by: str) -> list[Record]:
        """Append events that no rule is about (recovery, repair); durable when it returns."""
        with self._mutex:
            self._begin()
            records = self._write(list(events), by)
        self.sync(records[-1].seq)
        return records

    def refresh(self) -> State | None:
        """Learn what others appended, without writing."""
        with self._mutex:
            if not self._in_batch:
                loaded = self._ledger.load()
                if loaded is not None and loaded.end != self._end:
                    self._rebuild(loaded)
            return self._state

    def sync(self, seq: int | None = None) -> None:
        """Return when everything up to this event (or all that is written) is durable."""
        with self._mutex:
            target = seq if seq is not None else (self._end.seq if self._end and self._in_batch else 0)
        with self._leader:
            if self._synced >= target:
                return
            with self._mutex:
                self._check()
                last_chance = time.monotonic() - self._batch_since > LINGER
                if last_chance:
                    self._sync_now()
                    self._end_batch()
                    return
                reached = self._end
            self._flush()
            with self._mutex:
                self._synced = reached.seq if reached else 0
                if self._end == reached:
                    self._end_batch()

    def snapshot(self) -> None:
        """Write a snapshot now, whether due or not."""
        with self._mutex:
            self._begin()
            self._append([self._snapshot_event(self._encoded())], "ledger")
        self.sync()

    def close(self) -> None:
        """Sync what is open and let go."""
        self._closed = True
        self._dirty.set()
        try:
            if self._failure is None:
                self.sync()
        finally:
            with self._mutex:
                if self._in_batch:
                    self._end_batch()
                self._ledger.close()

    # One batch.

    def _decide(self, command: Command, by: str) -> list[Record]:
        """Decide on the newest state there is, under the lock, and write what was decided."""
        with self._mutex:
            fresh = self._begin()
            records: list[Record] = []
            try:
                outcome = decide(self._state, command)
                if isinstance(outcome, Rejection):
                    raise rejected(outcome)
                records = self._write(outcome, by) if outcome else []
            finally:
                if fresh and not records:
                    self._end_batch()
        return records

    def _begin(self) -> bool:
        """Start a batch if none is open; whether this call started it."""
        self._check()
        if self._in_batch:
            return False
        news = self._ledger.begin(self._end)
        self._in_batch, self._batch_since = True, time.monotonic()
        try:
            if news.whole:
                self._rebuild(news)
            else:
                self._advance(news.records)
        except BaseException:
            self._end_batch()
            raise
        self._synced = self._end.seq if self._end else 0
        return True

    def _end_batch(self) -> None:
        if self._in_batch:
            self._in_batch = False
            self._ledger.end()

    def _write(self, events: list[Event], by: str) -> list[Record]:
        records = self._append(events, by)
        ending = any(record.event.type in ENDINGS for record in records)
        if self._pace.might_be_due(self._ledger.size(), ending=ending):
            encoded = self._encoded()
            if self._pace.is_due(self._ledger.size(), len(encoded), ending=ending):
                self._append([self._snapshot_event(encoded)], "ledger")
        return records

    def _append(self, events: Sequence[Event], by: str) -> list[Record]:
        records = self._ledger.append(events, by=by, ts=self._clock())
        self._advance(records)
        return records

    def _advance(self, records: Sequence[Record]) -> None:
        for record in records:
            self._state = apply(self._state, record)
            self._pace.events += 1
            if record.event.type in BASES:
                self._pace.done(self._ledger.size())
        if records:
            self._end = records[-1].position
            if self._notify is not None and self._state is not None:
                self._notify(self._state, records)

    def _rebuild(self, loaded: Loaded) -> None:
        self._state = None
        for record in loaded.records:
            self._state = apply(self._state, record)
        self._end = loaded.end
        self._pace = Pace(base=self._ledger.size() - loaded.tail, cost=loaded.base, events=len(loaded.records))

    def _encoded(self) -> bytes:
        if self._state is None:
            raise BugError("a snapshot of nothing")
        return codec.encode_state(self._state)

    @staticmethod
    def _snapshot_event(encoded: bytes) -> Snapshot:
        return Snapshot(state=msgspec.Raw(encoded), digest=codec.digest(encoded))

    # Syncing.

    def _sync_now(self) -> None:
        self._flush()
        self._synced = self._end.seq if self._end else 0

    def _flush(self) -> None:
        try:
            for sync in self._sync_first:
                sync()
            self._ledger.sync()
        except HeadwayError as error:
            self._failure = error
            with self._mutex:
                self._end_batch()
            raise

    def _check(self) -> None:
        if self._failure is not None:
            raise self._failure

    def _linger(self) -> None:
        """Have what nobody waits for synced soon."""
        self._dirty.set()
        if self._lingering is None:
            self._lingering = threading.Thread(target=self._sync_soon, name="headway-sync", daemon=True)
            self._lingering.start()

    def _sync_soon(self) -> None:
        while self._dirty.wait() and not self._closed:
            self._dirty.clear()
            time.sleep(LINGER / 2)
            try:
                self.sync()
            except HeadwayError:
                return


def rejected(why: Rejection) -> HeadwayError:
    """A rejection as the error that callers see."""
    kind = {"usage": UsageError, "later": TryLater}.get(why.kind, Rejected)
    if why.code == PlanConflict.code:
        kind = PlanConflict
    return kind(why.message, facts=why.facts, hint=why.hint, code=why.code)
