"""One plan on disk: its ledger, the projections of it, and the one way to write to both.

Joins ledger, blobs and projections; knows nothing of other plans, of runs, of people or of how anything is shown.
"""

from __future__ import annotations

import os
import time
from collections import deque
from collections.abc import Callable, Collection, Container, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import NamedTuple, Protocol

from headway.bulk import Order
from headway.calm import paused
from headway.core.events import Record
from headway.core.evolve import fold, replay
from headway.core.state import Position, State
from headway.disk import REAL, Disk
from headway.errors import HeadwayError, LedgerDamaged, NotFound, TryLater
from headway.files.blobs import Blobs
from headway.files.texts import Texts
from headway.ledger.file import FileLedger, Verified
from headway.ledger.lock import FileLock
from headway.ledger.writer import ENDINGS, SMALL_STATE, Writer
from headway.projections.plan_files import ALL, VIEWS, Left, PlanFiles
from headway.projections.saved_execution import SavedExecution

STRUCTURE = frozenset(
    {
        "plan_created",
        "goal_changed",
        "plan_updated",
        "artifact_added",
        "artifact_updated",
        "artifact_removed",
        "artifact_reordered",
        "plan_replanned",
        "plan_imported",
        "plan_rebuilt",
    }
)
CHECKPOINTS = STRUCTURE | {
    "milestone_completed",
    "plan_closed",
    "plan_reset",
    "plan_approved",
    "plan_rejected",
    "profile_set",
    "profile_locked",
}
"""After these every projection is written, the checkpoint included; after a run, if it pays."""

MADE_OR_WITHDRAWN = frozenset({"artifact_completed", "artifact_made", "plan_reset"})
"""Events by which artifacts come to be made, and by which that is withdrawn."""

STARTS = frozenset({"snapshot", "ledger_rotated"})
"""From one of these on a plan may be told without what came before."""

EVENT_BYTES = 400
"""A rough size of an event: how far behind a large projection may be is a matter of bytes."""

LARGE_VIEW, ENDING_SHARE = 4 * 1024 * 1024, 8
"""A plan.json above this size is written at the end of a run that changed this part of it, or together with others."""

FOLLOW = 0.1
"""How often, in seconds, whoever follows a ledger looks whether it has grown."""

FEW_UNITS = 100
"""Phase ledgers of so many units are brought up to date in the middle of a run; of more, at its end."""

MISFITS = (LookupError, ValueError, TypeError, AttributeError)
"""What comes of an event that nothing before it allows."""

Notice = Callable[[str], None]
"""Hears of what a caller should know although nothing went wrong."""


def keep_quiet(_: str) -> None:
    """For callers who do not want to hear."""


class Watcher(Protocol):
    """Whoever keeps something of its own by the ledgers of all plans: the history of the project."""

    def began(self, plan_id: str) -> None: ...
    def projected(self, execution: SavedExecution) -> None: ...


class Newest(NamedTuple):
    """The plan that was loaded last, as long as its ledger is what it was: commands ask for it more than once.

    Nobody gets this very state, only copies: whoever loads a plan may change it.
    """

    stamp: tuple[int, ...]
    execution: SavedExecution


class PlanFolder:
    """One plan: its ledger, its projections, and the one way to write to it."""

    def __init__(
        self,
        path: str,
        *,
        blobs: Blobs,
        disk: Disk = REAL,
        notice: Notice = keep_quiet,
        watcher: Watcher | None = None,
        verified: dict[str, Verified] | None = None,
        newest: dict[str, Newest] | None = None,
    ) -> None:
        self.path = path
        self._verified = verified if verified is not None else {}
        self._newest = newest if newest is not None else {}
        self.plan_id = os.path.basename(path)
        self.blobs = blobs
        self.files = PlanFiles(path, recall=self._recall, disk=disk)
        self.disk = disk
        self._notice = notice
        self._units: set[str] = set()
        self._since = 0
        self._midway = False
        """Projections may show the middle of a run: whatever has happened since, they are written at its end."""
        self._watcher = watcher

    def ledger(self) -> FileLedger:
        """A ledger object of one's own."""
        return FileLedger(self.path, disk=self.disk, witnesses=self.files.witnesses, verified=self._verified)

    # Reading.

    def load(self, *, thorough: bool = False) -> SavedExecution | None:
        """The plan as of the newest event, or None where there is no plan. Never writes.

        `thorough` verifies the ledger from its first line.
        """
        ledger = self.ledger()
        stamp, known = ledger.stamp(), self._newest.get(self.path)
        if known is not None and known.stamp == stamp and not thorough:
            return SavedExecution(known.execution.state.copy(), known.execution.position)
        loaded = ledger.load(thorough=thorough)
        if loaded is None or loaded.end is None:
            return None
        state = self._last(loaded.records)
        if state is None:
            return None
        if state.plan_id != self.plan_id:
            raise LedgerDamaged(
                f"The ledger in the folder of plan {self.plan_id} is that of plan {state.plan_id}",
                facts={"file": self.ledger().path},
                hint=f"put the ledger of {self.plan_id} back; to copy a plan, export it and import it under another id",
                code="ledger.other_plan",
            )
        self._newest.clear()
        if ledger.stamp() == stamp:
            self._newest[self.path] = Newest(stamp, SavedExecution(state.copy(), loaded.end))
        return SavedExecution(state, loaded.end)

    def _last(self, records: Iterable[Record]) -> State | None:
        """The plan after these, which are one chain. If they do not fit together, step by step: to tell where."""
        try:
            return fold(None, records)
        except MISFITS:
            steps = deque(self.fold(records), maxlen=1)
            return steps[0][0] if steps else None

    def at(self, seq: int) -> SavedExecution:
        """The plan as of an earlier event."""
        newest = 0
        for states in (self.stretch(seq, seq), self.states(seq)):  # if not from a snapshot on, from the first event
            for state, record in states:
                newest = record.seq
                if newest == seq:
                    return SavedExecution(state, record.position)
        self.load(thorough=True)  # damage is called damage
        if any(True for _ in self.history(seq, seq)):
            raise NotFound(
                f"What plan {self.plan_id} was as of event {seq} cannot be told: events before it are gone",
                facts={"known up to event": newest, "known again at event": self._told_again(seq)},
                hint=f"headway log --plan-id {self.plan_id} shows what is left",
                code="event.gone",
            )
        raise NotFound(
            f"Plan {self.plan_id} has no event {seq}",
            facts={"newest before it": newest} if newest else {},
            hint=f"headway log --plan-id {self.plan_id} lists them",
            code="event.none",
        )

    def _told_again(self, seq: int) -> int | str:
        """The first event after this one at which the whole plan is known."""
        return next((record.seq for _, record in self.states() if record.seq > seq), "none")

    def states(self, last: int | None = None) -> Iterator[tuple[State, Record]]:
        """The plan after each event that is still kept. One state, changed in place: copy what is to be kept."""
        return self.fold(self.history(1, last))

    def stretch(self, seq: int, last: int | None = None) -> Iterator[tuple[State, Record]]:
        """The same around one event: from an event before it that tells the whole plan up to the next such event."""
        ledger = self.ledger()
        for state, record in self.fold(ledger.history(ledger.base(seq), last)):
            if record.seq > seq and record.event.type in STARTS and ledger.base(record.seq) == record.seq:
                return
            yield state, record

    def history(
        self,
        first: int = 1,
        last: int | None = None,
        *,
        about: Container[str] | None = None,
        naming: Collection[str] = (),
    ) -> Iterator[Record]:
        """Events by number; those that are not `about` something come as unknown ones. `naming`: as a ledger's."""
        return self.ledger().history(first, last, about=about, naming=naming)

    def completions(self, ids: Collection[str] = ()) -> Iterator[Record]:
        """Events by which artifacts were made, or that was withdrawn; of some of them, or of all."""
        return self.history(about=MADE_OR_WITHDRAWN, naming=(*ids, "plan_reset") if ids else ())

    def recent(self) -> Iterator[Record]:
        """The newest of them, not more than can be looked through in a moment."""
        return self.ledger().recent()

    def follow(self) -> Iterator[Record]:
        """Events from the first one on, and then whatever is appended, as long as the ledger is there."""
        ledger, following = self.ledger(), 1
        seen: tuple[int, ...] = ()
        while now := ledger.stamp():
            if now == seen:
                time.sleep(FOLLOW)
                continue
            seen = now
            for record in ledger.history(following):
                following = record.seq + 1
                yield record

    def fold(self, records: Iterable[Record]) -> Iterator[tuple[State, Record]]:
        """Nothing is built on what is not there: behind a gap the fold begins again where an event carries it all."""
        last: Record | None = None
        try:
            for state, last in replay(records):
                if state is not None:
                    yield state, last
        except MISFITS as error:
            raise _inconsistent(self.path, last, error) from error

    def _recall(self, position: Position) -> SavedExecution | None:
        with suppress(HeadwayError):
            found = self.at(position.seq)
            return found if found.position == position else None
        return None

    # Writing.

    @contextmanager
    def writing(
        self,
        *,
        show: bool = True,
        known: SavedExecution | None = None,
        hear: Callable[[Sequence[Record]], None] | None = None,
        cut_off: bool = False,
    ) -> Iterator[Writer]:
        """A writer; when it is let go of, projections follow as far as they are due, if they are to `show` it.

        `known`: the plan, if it was loaded a moment ago by whoever needs its state no more. `hear` is told of events.
        `cut_off`: the last run ended without a word, and so without projections.
        """
        self._midway = cut_off
        seen: set[str] = set()

        def note(state: State, records: Sequence[Record]) -> None:
            if not seen and records and self._watcher is not None:
                self._watcher.began(self.plan_id)
            seen.update([record.event.type for record in records])
            if hear is not None:
                hear(records)
            if state.units:
                from headway.projections import phases  # only plans that grow have any

                self._since = self._since or records[0].seq
                self._units.update(phases.touched(state, records))

        self._newest.clear()  # it is about to be the past, and not worth its room
        start = (known.state, known.position) if known is not None else None
        writer = Writer(self.ledger(), sync_first=(self.blobs.sync,), notify=note, known=start)
        with self.blobs.used():
            try:
                yield writer
                writer.sync()
                if show:
                    with paused():
                        self.project(writer, seen)
            finally:
                writer.close()

    def project(self, writer: Writer, seen: set[str]) -> list[Left]:
        """Write the projections that are due after events of these types; those that were left alone."""
        if not seen or writer.state is None or writer.position is None:
            return []
        self._write_phases(writer.state, writer.position.seq)
        execution = SavedExecution(writer.state, writer.position)
        important, ending = bool(seen & CHECKPOINTS) or self.files.missing(), bool(seen & ENDINGS)
        is_due = important or (ending and self._midway) or self._is_due(execution, ending=ending)
        left = self.files.refresh(execution, ALL if important or ending else VIEWS) if is_due else []
        for name, why in left:
            self._notice(f"{name} {why}")
        if self._watcher is not None and (is_due or ending):
            self._watcher.projected(execution)
        return left

    def catch_up(self, execution: SavedExecution) -> None:
        """Write what a run that was killed at its very end had no time to, for one that has nothing else to do.

        Not while somebody else is at it, who will write it all.
        """
        seq = execution.position.seq
        named = dict(self.files.witnesses()).get(VIEWS[0].name)
        is_behind = named is not None and named.seq < seq and self._is_due(execution, ending=True)
        lock = self.run_lock()
        if not (is_behind or self.lacks_phases(execution.state, seq)) or not lock.acquire(wait=0):
            return
        try:
            self._since = seq + 1
            self._write_phases(execution.state, seq)
            if is_behind:
                self.files.refresh(execution, ALL)
        finally:
            lock.release()

    def show(self, writer: Writer) -> None:
        """In the middle of a run: a large plan is projected only when enough has happened to pay for it."""
        writer.sync()
        with writer.standing_still() as (state, position):
            if state is not None and position is not None:
                if len(self._units) <= FEW_UNITS:
                    self._write_phases(state, position.seq)
                execution = SavedExecution(state, position)
                if self._is_due(execution):
                    self.files.refresh(execution, ALL if self.files.missing() else VIEWS)
                    self._midway = True

    def _write_phases(self, state: State, seq: int, *, anew: bool = False) -> None:
        """The phase ledgers of units that something has happened to. Nothing depends on them or stops for them.

        `anew`: with all texts that they name, and not only those that are new.
        """
        if not state.units:
            return
        from headway.projections import phases  # only plans that grow have any

        home = self._phases
        known = phases.reflected(home, self.plan_id)
        if known is None:
            self._units.update(unit for expansion in state.units.values() for unit in expansion.units)
        elif known < self._since - 1:  # a run that was killed had no time to write them
            self._units.update(phases.touched(state, self.history(known + 1, self._since - 1)))
        since = 0 if known is None or anew else min(known, self._since - 1)  # another ledger's may be more
        units, self._units, self._since = self._units, set(), seq + 1
        try:
            phases.write(self.disk, home, state, sorted(units), seq, texts=self._texts, since=since)
        except (OSError, HeadwayError) as error:
            self._notice(f"phases/ could not be written: {error}")

    def lacks_phases(self, state: State, seq: int) -> bool:
        """Whether phase ledgers, or texts that they name, could not be written up to this event."""
        if not state.units:
            return False
        from headway.projections import phases  # only plans that grow have any

        return (phases.reflected(self._phases, self.plan_id) or 0) < seq

    @property
    def _phases(self) -> str:
        return os.path.join(self._home, "phases")

    @property
    def _home(self) -> str:
        return os.path.dirname(os.path.dirname(self.path))

    def _texts(self, digests: Collection[str]) -> Iterator[Order]:
        """What has to be written for these texts to be files, as far as their bytes are to be had."""
        texts, size = Texts(os.path.dirname(self._home), self._home, self.blobs.get), self.blobs.size
        absent = [digest for digest in dict.fromkeys(digests) if texts.size(digest) != size(digest)]
        return (texts.order(digest, data) for digest, data in self.blobs.each(absent))

    def phases_amiss(self, execution: SavedExecution) -> dict[str, bool]:
        """Units whose phase ledgers say something else than the plan's, and whether they are there at all. Those that
        something has happened to since they were last written are caught up with by whoever writes next."""
        from headway.projections import phases  # only plans that grow have any

        state = execution.state
        known = phases.reflected(self._phases, self.plan_id)
        behind = phases.touched(state, self.history(known + 1)) if known is not None else set()
        units = (unit for expansion in state.units.values() for unit in expansion.units)
        return phases.amiss(self._phases, state, (unit for unit in units if unit not in behind), self._texts)

    def write_phases(self, execution: SavedExecution, units: Iterable[str]) -> None:
        """The phase ledgers of these units, anew."""
        self._units.update(units)
        self._since = self._since or execution.position.seq + 1
        self._write_phases(execution.state, execution.position.seq, anew=True)

    def _is_due(self, execution: SavedExecution, *, ending: bool = False) -> bool:
        """Whether enough has happened to pay for writing them: less is asked for at the `ending` of a run."""
        try:
            size = os.path.getsize(self.files.path(VIEWS[0]))
        except OSError:
            return True
        named = dict(self.files.witnesses()).get(VIEWS[0].name)
        behind = execution.position.seq - (named.seq if named else 0)
        small, share = (LARGE_VIEW, ENDING_SHARE) if ending else (SMALL_STATE, 1)
        return size < small or behind * EVENT_BYTES * share >= size

    @contextmanager
    def idle(self) -> Iterator[None]:
        """Keep runs out meanwhile; refused while one is under way."""
        lock = self.run_lock()
        if not lock.acquire(wait=0):
            raise TryLater(f"Plan {self.plan_id} is running", facts=lock.signature(), hint="try again when it is done")
        try:
            yield
        finally:
            lock.release()

    def dead_claims(self, state: State) -> tuple[str, ...]:
        """Artifacts that a run has claimed which is not there any more: nobody holds the plan's run lock."""
        held = tuple(artifact_id for artifact_id, claim in state.claims.items() if claim.run)
        return () if not held or self.is_running() else held

    def is_running(self) -> bool:
        """Whether somebody is the plan's scheduler now. Looks only: nothing is created, and no other look is in its
        way; where nobody can tell, somebody is."""
        return self.run_lock().is_taken()

    def run_lock(self) -> FileLock:
        """Whoever holds this one is the plan's scheduler."""
        return FileLock(os.path.join(self.path, "run.lock"))


def _inconsistent(path: str, last: Record | None, error: Exception) -> LedgerDamaged:
    return LedgerDamaged(
        "The ledger's events do not fit together",
        facts={
            "file": os.path.join(path, "ledger.jsonl"),
            "after event": last.seq if last else 0,
            "reason": f"{type(error).__name__}: {error}",
        },
        hint="put the newest backup of ledger.jsonl back",
        code="ledger.inconsistent",
    )
