"""The only way to write: lock, learn what others did, decide on that, append, sync, tell.

Writes happen at once, so a killed process loses none. Syncs are shared: whoever waits first syncs for all that is
written by then, and what nobody waits for is synced within `LINGER`. The lock is held from a batch's first write to
its sync and yielded between batches.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from itertools import islice
from typing import TYPE_CHECKING

import msgspec

from headway.core import codec
from headway.core.commands import Command
from headway.core.decide import Rejection, decide, decide_together
from headway.core.events import Event, Record, Snapshot
from headway.core.evolve import apply, apply_all
from headway.core.state import Position, State
from headway.errors import BugError, HeadwayError, PlanConflict, Rejected, StorageFailed, TryLater, UsageError
from headway.ledger.base import Ledger, Loaded
from headway.ledger.recovery import now

if TYPE_CHECKING:
    import asyncio  # only named in an annotation: importing it costs more than the rest of this module

LINGER = 0.05
YIELD = 0.002
"""After a long batch the lock stays free for a moment: longer than somebody who waits for it may overlook that."""

PATIENCE = 60.0
ROTATE_ABOVE = 32 * 1024 * 1024
ROTATE_RATIO = 8
"""A file larger than both, against the state's size, is sealed when a snapshot was due anyway."""

SNAPSHOT_EVERY = 50
SMALL_STATE = 64 * 1024
LONG_TAIL = 20_000
"""Whoever loads a plan waits for so many events: at the end of a run, half of what a snapshot costs pays for one."""

BASES = frozenset({"snapshot", "plan_created", "plan_imported", "plan_rebuilt"})
Asked = tuple[Command, str]
"""A command, and who gives it."""

Outcome = list[Record] | HeadwayError
"""What a command caused, or why it was refused."""

ENDINGS = frozenset({"milestone_completed", "run_completed", "run_failed", "run_paused", "plan_closed"})


class Pace:
    """When a snapshot (or a projection) is due: what it costs must be paid for by what came since the last one."""

    def __init__(self, *, base: int = 0, cost: int = 0, events: int = 0) -> None:
        self.base = base
        self.cost = cost
        self.events = events
        self.patience = 0

    def might_be_due(self, size: int, *, ending: bool) -> bool:
        """Cheap test before the state is encoded. At endings, a small state is written regardless."""
        if ending and self.cost < SMALL_STATE:
            return True
        tail = size - self.base
        if ending and self.events >= LONG_TAIL:
            return 2 * tail >= self.cost
        return self.events >= SNAPSHOT_EVERY and tail >= self.cost and tail >= self.patience

    def is_due(self, size: int, cost: int, *, ending: bool) -> bool:
        """The same with the state's true size. A state that grew as fast as the ledger is not encoded again at once:
        the tail grows by half first, so that trying costs little.
        """
        self.cost, self.patience = cost, 0
        due = self.might_be_due(size, ending=ending)
        if not due:
            self.patience = (size - self.base) * 3 // 2
        return due

    def done(self, size: int) -> None:
        """It was written; the ledger now has this size."""
        self.base, self.events, self.patience = size, 0, 0


class Writer:
    """One plan's ledger and state, for any number of threads and event loops of one process."""

    def __init__(
        self,
        ledger: Ledger,
        *,
        sync_first: Sequence[Callable[[], None]] = (),
        clock: Callable[[], str] = now,
        notify: Callable[[State, Sequence[Record]], None] | None = None,
        known: tuple[State, Position] | None = None,
    ) -> None:
        """`known`: a state that somebody has loaded a moment ago; it is this writer's from here on."""
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
        self._in_doubt = False
        self._staged: list[Record] = []
        self._has_snapshot = False
        self._failure: HeadwayError | None = None
        self._lingering: threading.Thread | None = None
        self._dirty = threading.Event()
        self._turns: dict[asyncio.AbstractEventLoop, list[tuple[Command, str, asyncio.Future[list[Record]]]]] = {}
        self._closed = False
        self._pid = os.getpid()
        self._seeded = known is not None
        if known is not None:
            self._state, self._end = known

    # What callers use.

    @property
    def state(self) -> State | None:
        """The state as of the newest event this writer knows. Not to be changed."""
        return self._state

    @property
    def plan(self) -> State:
        """The same, for whoever knows that there is a plan."""
        assert self._state is not None, "a plan that was judged has events"
        return self._state

    @property
    def position(self) -> Position | None:
        """The newest event this writer knows."""
        return self._end

    def execute(self, command: Command, *, by: str, wait: bool = True) -> list[Record]:
        """Do what the command asks, or raise why not. With `wait`, what is returned is on disk."""
        (outcome,) = self.execute_all([command], by=by, wait=wait)
        if isinstance(outcome, HeadwayError):
            raise outcome
        return outcome

    def execute_all(self, commands: Sequence[Command], *, by: str, wait: bool = True) -> list[Outcome]:
        """Do what many commands ask, in order and in one write: for each what it caused, or why it was refused."""
        outcomes = self._decide([(command, by) for command in commands])
        newest = next((o[-1].seq for o in reversed(outcomes) if isinstance(o, list) and o), 0)
        if newest and wait:
            self.sync(newest)
        elif newest:
            self._linger()
        return outcomes

    def aexecute(self, command: Command, *, by: str) -> asyncio.Future[list[Record]]:
        """As `execute`, to be awaited: all that is asked in one turn of an event loop shares a write and a sync."""
        import asyncio

        loop = asyncio.get_running_loop()
        answer: asyncio.Future[list[Record]] = loop.create_future()
        turn = self._turns.get(loop)
        if turn is None:
            self._turns[loop] = [(command, by, answer)]
            task = loop.create_task(self._take_turn(loop))
            answer.add_done_callback(lambda _: task)  # a task lives while somebody holds it
        else:
            turn.append((command, by, answer))
        return answer

    def record(self, events: Sequence[Event], *, by: str) -> list[Record]:
        """Append events that no rule is about (recovery, repair); durable when it returns."""
        with self._mutex:
            self._begin()
            records = self._stage(list(events), by, self._clock())
            self._write()
        self.sync(records[-1].seq)
        return records

    def catch_up(self) -> State | None:
        """Learn what others appended, as the next write would: for whoever is about to write. Mends what is torn."""
        with self._mutex:
            if self._begin():
                self._end_batch()
            return self._state

    def refresh(self) -> State | None:
        """Learn what others appended, without writing."""
        with self._mutex:
            if not self._in_batch:
                loaded = self._ledger.load(self._end)
                if loaded is None:
                    self._state, self._end = None, None
                elif loaded.whole:
                    self._rebuild(loaded)
                else:
                    self._advance(loaded.records)
            return self._state

    @contextmanager
    def standing_still(self) -> Iterator[tuple[State | None, Position | None]]:
        """The state and where it stands, while nobody in this process changes it."""
        with self._mutex:
            yield self._state, self._end

    def sync(self, seq: int | None = None) -> None:
        """Return when everything up to this event (or all that is written) is durable."""
        with self._leader:
            if seq is not None and self._synced >= seq:
                return
            with self._mutex:
                self._check()
                if not self._in_batch:
                    return
                reached = self._end
                if time.monotonic() - self._batch_since > LINGER:  # others are waiting for the lock
                    self._flush()
                    self._finish_batch(reached)
                    time.sleep(YIELD)
                    return
            self._flush()
            with self._mutex:
                self._synced = reached.seq if reached else 0
                if self._end == reached:
                    self._finish_batch(reached)

    def snapshot(self) -> None:
        """Write a snapshot now, whether due or not."""
        with self._mutex:
            self._begin()
            encoded = self._encoded()
            self._pace.cost = len(encoded)
            self._stage([self._snapshot_event(encoded)], "ledger", self._clock())
            self._write_staged()
        self.sync()

    def rotate(self) -> None:
        """Seal the ledger's file now, whether it has grown large or not."""
        self.sync()
        with self._leader, self._mutex:
            self._begin()
            try:
                self._flush()
                self._rotate()
            finally:
                self._end_batch()

    def close(self) -> None:
        """Sync what is open and let go."""
        if self._pid != os.getpid():
            return
        try:
            if self._failure is None and not self._closed:
                self.sync()
        finally:
            with self._mutex:
                self._closed = True
                self._dirty.set()
                self._end_batch()
                self._ledger.close()

    # One batch.

    def _decide(self, asked: Sequence[Asked], patience: float = PATIENCE) -> list[Outcome]:
        """Decide on the newest state there is, under the lock, and write what was decided."""
        with self._mutex:
            fresh = self._begin(patience)
            written = False
            try:
                ts = self._clock()
                outcomes = self._decide_together(asked, ts) or [self._decide_one(*one, ts) for one in asked]
                written = self._write()
            finally:
                if fresh and not written:
                    self._end_batch()
        return outcomes

    def _decide_one(self, command: Command, by: str, ts: str) -> Outcome:
        decided = decide(self._state, command)
        if isinstance(decided, Rejection):
            return rejected(decided)
        return self._stage(decided, by, ts) if decided else []

    def _decide_together(self, asked: Sequence[Asked], ts: str) -> list[Outcome]:
        """The same of many by the same author, if they can be decided, chained and taken note of at once."""
        _, by = asked[0] if len(asked) > 1 else (None, "")
        if not by or any(other != by for _, other in asked):
            return []
        decided = decide_together(self._state, [command for command, _ in asked])
        if decided is None:
            return []
        records = iter(self._stage([event for events in decided for event in events], by, ts))
        return [[*islice(records, len(events))] for events in decided]

    def _begin(self, patience: float = PATIENCE) -> bool:
        """Start a batch if none is open; whether this call started it."""
        self._check()
        if self._in_batch and not self._in_doubt:
            return False
        if self._in_doubt:  # interrupted between taking note and writing: only the file knows
            self._staged, self._end = [], None
            if self._in_batch:
                self._flush()  # what others wait for is in the file, and must not pass for synced before it is
            self._end_batch()
        news = self._ledger.begin(self._end, patience=patience)
        self._in_batch, self._batch_since = True, time.monotonic()
        try:
            if news.whole:
                self._rebuild(news)
            else:
                self._advance(news.records)
                if self._seeded:
                    self._pace = _pace_after(news)
                self._notice(news.records)
            self._seeded = False
        except BaseException:
            self._in_doubt = True
            self._end_batch()
            raise
        self._in_doubt = False
        self._synced = self._end.seq if self._end else 0
        return True

    def _open_batch(self) -> None:
        """Wait for the lock where waiting is allowed; somebody is about to use it."""
        with self._mutex:
            self._begin()
        self._linger()

    def _finish_batch(self, reached: Position | None) -> None:
        """Everything written is durable: a moment to rotate, then it is somebody else's turn."""
        self._synced = reached.seq if reached else 0
        try:
            if self._has_snapshot and self._ledger.size() > max(ROTATE_ABOVE, ROTATE_RATIO * self._pace.cost):
                with suppress(StorageFailed):  # the old file is still good; if not, the next batch is told
                    self._rotate()
        finally:
            self._end_batch()

    def _end_batch(self) -> None:
        if self._in_batch:
            self._in_batch = self._has_snapshot = False
            self._ledger.end()

    def _stage(self, events: list[Event], by: str, ts: str) -> list[Record]:
        """Chain events to the ledger's end and take note of them; until they are written, only the file knows."""
        self._in_doubt = True
        records = self._ledger.stage(events, by=by, ts=ts)
        self._staged += records
        self._state = apply_all(self._state, records)
        kinds, pace = [record.event.type for record in records], self._pace
        pace.events += len(kinds)
        if not BASES.isdisjoint(kinds):
            pace.done(self._ledger.size())
            pace.events = len(kinds) - 1 - max(number for number, kind in enumerate(kinds) if kind in BASES)
        return records

    def _write(self) -> bool:
        """Write what is staged, and a snapshot if one is due; whether there was anything to write."""
        if not self._staged:
            return False
        ending = not ENDINGS.isdisjoint([record.event.type for record in self._staged])
        self._write_staged()
        size = self._ledger.size()
        if self._pace.might_be_due(size, ending=ending) and self._pace.is_due(size, self._cost(), ending=ending):
            encoded = self._encoded()
            if self._pace.is_due(size, len(encoded), ending=ending):
                self._stage([self._snapshot_event(encoded)], "ledger", self._clock())
                try:
                    self._write_staged()
                except StorageFailed:  # a convenience that the disk has no room for; the events stand
                    self._pace.events = 0
        return True

    def _write_staged(self) -> None:
        """Write what is staged; if the disk refuses, the state is again what the file says."""
        staged, self._staged = self._staged, []
        try:
            self._ledger.write()
        except HeadwayError:
            self._relearn()
            raise
        self._end = staged[-1].position
        self._in_doubt = False
        self._has_snapshot = self._has_snapshot or staged[-1].event.type == Snapshot.type
        self._notice(staged)

    def _relearn(self) -> None:
        """Fold the state anew from what was written."""
        loaded = self._ledger.load()
        if loaded is None:
            self._state, self._end, self._pace = None, None, Pace()
        else:
            self._rebuild(loaded)
        self._in_doubt = False

    def _rotate(self) -> None:
        state = self._state
        if state is None:
            return
        records = self._ledger.rotate(
            self._snapshot_event(self._encoded()),
            by="ledger",
            ts=self._clock(),
            plan_id=state.plan_id,
            project_id=state.project_id,
        )
        self._advance(records)
        self._synced = records[-1].seq
        self._notice(records)

    def _advance(self, records: Sequence[Record]) -> None:
        for record in records:
            self._state = apply(self._state, record)
            self._pace.events += 1
            if record.event.type in BASES:
                self._pace.done(self._ledger.size())
            self._end = record.position

    def _notice(self, records: Sequence[Record]) -> None:
        if records and self._notify is not None and self._state is not None:
            self._notify(self._state, records)

    def _rebuild(self, loaded: Loaded) -> None:
        state: State | None = None
        for record in loaded.records:  # one of a newer version is met only here
            state = apply(state, record)
        self._state, self._end, self._pace = state, loaded.end, _pace_after(loaded)

    def _cost(self) -> int:
        """About what a snapshot would take: encoding a large state only to find that out takes long."""
        return codec.size_of_state(self._state) if self._state is not None else 0

    def _encoded(self) -> bytes:
        if self._state is None:
            raise BugError("a snapshot of nothing")
        return codec.encode_state(self._state)

    @staticmethod
    def _snapshot_event(encoded: bytes) -> Snapshot:
        return Snapshot(state=msgspec.Raw(encoded), digest=codec.digest(encoded))

    # Syncing.

    def _flush(self) -> None:
        """The order of a commit: everything that events name, then the events."""
        try:
            for sync in self._sync_first:
                sync()
            self._ledger.sync()
        except Exception as error:
            self._failure = error if isinstance(error, HeadwayError) else StorageFailed(f"A sync failed: {error}")
            with self._mutex:
                self._end_batch()
            raise self._failure from error

    def _check(self) -> None:
        if self._failure is not None:
            raise self._failure
        if self._closed or self._pid != os.getpid():
            raise BugError("this writer was closed, or belongs to the process that forked")

    def _linger(self) -> None:
        """Have what nobody waits for synced soon."""
        if not self._dirty.is_set():
            self._dirty.set()
        if self._lingering is None:
            self._lingering = threading.Thread(target=self._sync_soon, name="headway-sync", daemon=True)
            try:
                self._lingering.start()
            except RuntimeError:  # the system allows no more threads: then it is done at once
                self._lingering = None
                self.sync()

    def _sync_soon(self) -> None:
        while self._dirty.wait() and not self._closed:
            time.sleep(LINGER * 0.8)
            self._dirty.clear()
            try:
                self.sync()
            except HeadwayError:
                return

    async def _take_turn(self, loop: asyncio.AbstractEventLoop) -> None:
        """Let everybody in this turn of the loop ask, answer all of them after one write and one sync."""
        import asyncio

        await asyncio.sleep(0)
        turn = [(command, by, answer) for command, by, answer in self._turns.pop(loop) if not answer.done()]
        try:
            outcomes = await self._decide_without_blocking([(command, by) for command, by, _ in turn], loop)
            await loop.run_in_executor(None, self.sync)
        except HeadwayError as error:
            outcomes = [error] * len(turn)
        for (_, _, answer), outcome in zip(turn, outcomes, strict=True):
            if answer.done():
                continue
            if isinstance(outcome, HeadwayError):
                answer.set_exception(outcome)
            else:
                answer.set_result(outcome)

    async def _decide_without_blocking(self, asked: list[Asked], loop: asyncio.AbstractEventLoop) -> list[Outcome]:
        while True:
            try:
                return self._decide(asked, patience=0)
            except TryLater as busy:
                if busy.error_code != "ledger.busy":
                    raise
            await loop.run_in_executor(None, self._open_batch)


def _pace_after(loaded: Loaded) -> Pace:
    """How far the newest snapshot is behind, by what was loaded."""
    return Pace(base=loaded.size - loaded.tail, cost=loaded.base, events=loaded.events)


def rejected(why: Rejection) -> HeadwayError:
    """A rejection as the error that callers see."""
    kind = {"usage": UsageError, "later": TryLater}.get(why.kind, Rejected)
    if why.code == PlanConflict.code:
        kind = PlanConflict
    return kind(why.message, facts=why.facts, hint=why.hint, code=why.code)
