"""The plans of one project on disk: each a folder with its ledger and the projections of it.

Joins ledger, blobs and projections; knows nothing of runs, of people or of how anything is shown.
"""

from __future__ import annotations

import os
import time
from collections import deque
from collections.abc import Callable, Container, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from datetime import UTC, datetime, timedelta
from typing import NamedTuple, Protocol, cast

import msgspec

from headway.calm import paused
from headway.core.commands import ImportPlan
from headway.core.decide import decide
from headway.core.events import Event, Record
from headway.core.evolve import apply, replay
from headway.core.ids import hash_goal, name_elsewhere, plan_id_problem
from headway.core.plan import ArtifactSpec
from headway.core.state import Position, State
from headway.disk import REAL, Disk
from headway.errors import DamageError, DecisionNeeded, HeadwayError, LedgerDamaged, NotFound, TryLater, UsageError
from headway.files.blobs import Blobs
from headway.ledger.file import FileLedger, Verified
from headway.ledger.lock import FileLock
from headway.ledger.writer import ENDINGS, SMALL_STATE, Writer
from headway.projections import phases
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

EVENT_BYTES = 400
"""A rough size of an event: how far behind a large projection may be is a matter of bytes."""

LARGE_VIEW, ENDING_SHARE = 4 * 1024 * 1024, 8
"""A plan.json above this size is written at the end of a run that changed this part of it, or together with others."""

FOLLOW = 0.1
"""How often, in seconds, whoever follows a ledger looks whether it has grown."""

FEW_UNITS = 100
"""Phase ledgers of so many units are brought up to date in the middle of a run; of more, at its end."""

TRASH = ".deleted-"

Notice = Callable[[str], None]
"""Hears of what a caller should know although nothing went wrong."""


def keep_quiet(_: str) -> None:
    """For callers who do not want to hear."""


class Watcher(Protocol):
    """Whoever keeps something of its own by the ledgers of all plans: the history of the project."""

    def began(self, plan_id: str) -> None: ...
    def projected(self, execution: SavedExecution) -> None: ...


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
    ) -> None:
        self.path = path
        self._verified = verified if verified is not None else {}
        self.plan_id = os.path.basename(path)
        self.blobs = blobs
        self.files = PlanFiles(path, recall=self._recall, disk=disk)
        self.disk = disk
        self._notice = notice
        self._units: set[str] = set()
        self._since = 0
        self._watcher = watcher

    def ledger(self) -> FileLedger:
        """A ledger object of one's own."""
        return FileLedger(self.path, disk=self.disk, witnesses=self.files.witnesses, verified=self._verified)

    # Reading.

    def load(self, *, thorough: bool = False) -> SavedExecution | None:
        """The plan as of the newest event, or None where there is no plan. Never writes.

        `thorough` verifies the ledger from its first line.
        """
        loaded = self.ledger().load(thorough=thorough)
        if loaded is None or loaded.end is None:
            return None
        states = deque((state for state, _ in self.fold(loaded.records)), maxlen=1)
        if states and states[0].plan_id != self.plan_id:
            raise LedgerDamaged(
                f"The ledger in the folder of plan {self.plan_id} is that of plan {states[0].plan_id}",
                facts={"file": self.ledger().path},
                hint=f"put the ledger of {self.plan_id} back; to copy a plan, export it and import it under another id",
                code="ledger.other_plan",
            )
        return SavedExecution(states[0], loaded.end) if states else None

    def at(self, seq: int) -> SavedExecution:
        """The plan as of an earlier event."""
        newest = 0
        for state, record in self.states(seq):
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

    def history(
        self, first: int = 1, last: int | None = None, *, about: Container[str] | None = None
    ) -> Iterator[Record]:
        """Events by number; those that are not `about` something come as unknown ones."""
        return self.ledger().history(first, last, about=about)

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
        except (LookupError, ValueError, TypeError, AttributeError) as error:
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
    ) -> Iterator[Writer]:
        """A writer; when it is let go of, projections follow as far as they are due, if they are to `show` it.

        `known`: the plan, if it was loaded a moment ago by whoever needs its state no more. `hear` is told of events.
        """
        seen: set[str] = set()

        def note(state: State, records: Sequence[Record]) -> None:
            if not seen and records and self._watcher is not None:
                self._watcher.began(self.plan_id)
            seen.update(record.event.type for record in records)
            if hear is not None:
                hear(records)
            if state.units:
                self._since = self._since or records[0].seq
                self._units.update(phases.touched(state, records))

        start = (known.state, known.position) if known is not None else None
        writer = Writer(self.ledger(), sync_first=(self.blobs.sync,), notify=note, known=start)
        try:
            yield writer
            writer.sync()
            if show:
                with paused():
                    self.project(writer, seen)
        finally:
            writer.close()
            self.blobs.close()

    def project(self, writer: Writer, seen: set[str]) -> list[Left]:
        """Write the projections that are due after events of these types; those that were left alone."""
        if not seen or writer.state is None or writer.position is None:
            return []
        self._write_phases(writer.state, writer.position.seq)
        execution = SavedExecution(writer.state, writer.position)
        important, ending = bool(seen & CHECKPOINTS) or self.files.missing(), bool(seen & ENDINGS)
        is_due = important or self._is_due(execution, ending=ending)
        left = self.files.refresh(execution, ALL if important or ending else VIEWS) if is_due else []
        for name, why in left:
            self._notice(f"{name} {why}")
        if self._watcher is not None and (is_due or ending):
            self._watcher.projected(execution)
        return left

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

    def _write_phases(self, state: State, seq: int) -> None:
        """The phase ledgers of units that something has happened to. Nothing depends on them or stops for them."""
        if not state.units:
            return
        home = self._phases
        known = phases.reflected(home, self.plan_id)
        if known is None:
            self._units.update(unit for expansion in state.units.values() for unit in expansion.units)
        elif known < self._since - 1:  # a run that was killed had no time to write them
            self._units.update(phases.touched(state, self.history(known + 1, self._since - 1)))
        units, self._units, self._since = self._units, set(), seq + 1
        try:
            phases.write(self.disk, home, state, sorted(units), seq)
        except (OSError, HeadwayError) as error:
            self._notice(f"phases/ could not be written: {error}")

    @property
    def _phases(self) -> str:
        return os.path.join(os.path.dirname(os.path.dirname(self.path)), "phases")

    def phases_amiss(self, execution: SavedExecution) -> dict[str, bool]:
        """Units whose phase ledgers say something else than the plan's, and whether they are there at all. Those that
        something has happened to since they were last written are caught up with by whoever writes next."""
        state = execution.state
        known = phases.reflected(self._phases, self.plan_id)
        behind = phases.touched(state, self.history(known + 1)) if known is not None else set()
        units = (unit for expansion in state.units.values() for unit in expansion.units)
        return phases.amiss(self._phases, state, (unit for unit in units if unit not in behind))

    def write_phases(self, execution: SavedExecution, units: Iterable[str]) -> None:
        """The phase ledgers of these units, anew."""
        self._units.update(units)
        self._since = self._since or execution.position.seq + 1
        self._write_phases(execution.state, execution.position.seq)

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


class PlanVersion(NamedTuple):
    """One state of a plan's structure, and what made it differ from the one before."""

    version: int
    parent: int
    plan_id: str
    goal: str
    created_at: str
    by: str
    reason: str
    seq: int
    artifacts: int
    added: list[str]
    removed: list[str]
    modified: list[str]


class Listed(NamedTuple):
    """A plan in a list: what could be read of it, or why nothing could."""

    plan_id: str
    execution: SavedExecution | None
    error: HeadwayError | None


class PlanStore:
    """All plans under one folder, by id."""

    def __init__(
        self,
        base_path: str | os.PathLike[str] = ".headway/plans",
        *,
        blobs: Blobs | None = None,
        disk: Disk = REAL,
        notice: Notice = keep_quiet,
        watcher: Watcher | None = None,
    ) -> None:
        self.base_path = os.fspath(base_path)
        self.blobs = blobs or Blobs(os.path.join(os.path.dirname(self.base_path) or ".", "blobs"), disk=disk)
        self._disk = disk
        self.notice = notice
        self._watcher = watcher
        self._verified: dict[str, Verified] = {}

    def folder(self, plan_id: str) -> PlanFolder:
        """The folder of a plan, whether it exists or not. Ids are unique whatever their case."""
        problem = plan_id_problem(plan_id)
        if problem:
            raise UsageError(
                f"{plan_id!r} cannot name a plan", facts={"rule": problem}, hint="choose another id", code="plan.id"
            )
        if not os.path.isfile(os.path.join(self.base_path, plan_id, "ledger.jsonl")):
            same = [name for name in self.ids() if name.lower() == plan_id.lower()]
            if same and plan_id not in same:
                raise UsageError(
                    f"There is a plan {same[0]} already",
                    facts={"asked for": plan_id},
                    hint=f"use {same[0]}, or an id that differs by more than its case",
                    code="plan.id",
                )
        return self._folder(plan_id)

    def _folder(self, plan_id: str) -> PlanFolder:
        path = os.path.join(self.base_path, plan_id)
        return PlanFolder(
            path,
            blobs=self.blobs,
            disk=self._disk,
            notice=self.notice,
            watcher=self._watcher,
            verified=self._verified,
        )

    def ids(self) -> list[str]:
        """The ids of all plans, damaged ones included."""
        try:
            entries = sorted(os.scandir(self.base_path), key=lambda e: e.name)
        except (FileNotFoundError, NotADirectoryError):
            return []
        return [e.name for e in entries if not plan_id_problem(e.name) and e.is_dir()]

    def save(self, execution: SavedExecution) -> str:
        """Make this the plan's state, as an event; the plan's folder. Saving what is there already adds nothing.

        What belongs to the moment ends: claims are given up, and a run that was under way is a paused one.
        """
        folder = self.folder(execution.plan_id)
        command = ImportPlan(
            plan_id=execution.plan_id,
            project_id=execution.state.project_id,
            source="PlanStore.save",
            state=execution.state,
            replace=True,
        )
        with folder.writing() as writer:
            current = writer.refresh()
            if current is None or not _same(current, _after(command)):
                writer.execute(command, by="api")
        return folder.path

    def load(self, plan_id: str) -> SavedExecution | None:
        """A plan by id (or goal hash), or None."""
        return self.folder(plan_id).load()

    def find_by_goal(self, goal: str) -> SavedExecution | None:
        """The plan of this goal: named by its hash, or the newest that has an id of its own."""
        found = self.load(hash_goal(goal))
        if found is not None and found.goal.strip() == goal.strip():
            return found
        same = (e.execution for e in self.list_all() if e.execution and e.execution.goal.strip() == goal.strip())
        return next(same, None)

    def list_all(self) -> list[Listed]:
        """All plans, newest first; one that cannot be read says why and spoils nothing."""
        found = [self._listed(plan_id) for plan_id in self.ids()]
        there = [entry for entry in found if entry.execution or entry.error]
        return sorted(there, key=lambda e: e.execution.updated_at if e.execution else "", reverse=True)

    def list_recent(self, limit: int | None = 10) -> list[SavedExecution]:
        """The plans that were touched last; all of them without a limit."""
        return [entry.execution for entry in self.list_all() if entry.execution][:limit]

    def versions(self, plan_id: str) -> list[PlanVersion]:
        """Every structure that the plan ever had, oldest first. What was changed in one go is one version."""
        found: list[PlanVersion] = []
        before: dict[str, ArtifactSpec] = {}
        now: dict[str, ArtifactSpec] = {}
        for state, record in self.folder(plan_id).states():
            if record.event.type not in STRUCTURE:
                continue
            if found and _in_one_go(found[-1], record):
                found.pop()
            else:
                before = now
            now = dict(state.artifacts)
            number = max(found[-1].version + 1 if found else 1, state.version)
            found.append(_version(number, record, state, before))
        return found

    def delete(self, plan_id: str) -> None:
        """Delete a plan with its ledger. Not while somebody runs it, nor while another plan requires of it."""
        folder = self.folder(plan_id)
        if not os.path.isdir(folder.path):
            raise NotFound(f"There is no plan {plan_id}", hint="headway plans list", code="plan.none")
        users = self.required_by().get(plan_id, [])
        if users:
            raise DecisionNeeded(
                f"Plan {plan_id} is required by {', '.join(users[:4])}{' and more' if len(users) > 4 else ''}",
                hint=f"remove {plan_id}:… from what they require, or delete them first",
                code="plan.required",
            )
        self._delete(folder)

    def required_by(self) -> dict[str, list[str]]:
        """Plans that others require something of, each with those others. One that cannot be read requires nothing."""
        found: dict[str, list[str]] = {}
        for other in self.list_recent(None):
            artifacts = other.state.artifacts
            names = (r for spec in artifacts.values() for r in spec.requires if r not in artifacts)
            for plan in {name[0] for r in names if (name := name_elsewhere(r)) is not None}:
                found.setdefault(plan, []).append(other.plan_id)
        return found

    def _delete(self, folder: PlanFolder) -> None:
        plan_id = folder.plan_id
        with folder.idle():
            os.rename(folder.path, os.path.join(self.base_path, f"{TRASH}{plan_id}-{os.urandom(4).hex()}"))
        import shutil

        for name in os.listdir(self.base_path):
            if name.startswith(TRASH):
                shutil.rmtree(os.path.join(self.base_path, name), ignore_errors=True)

    def clean(self, max_age: timedelta = timedelta(days=7), *, dry_run: bool = False) -> list[str]:
        """Delete plans that are complete or closed and were not touched for this long; those that plans require which
        stay are left. Their ids.
        """
        limit = (datetime.now(UTC) - max_age).isoformat(timespec="microseconds")
        old = [
            entry.plan_id
            for entry in self.list_all()
            if entry.execution
            and entry.execution.status in ("complete", "closed")
            and entry.execution.updated_at < limit
        ]
        users = self.required_by() if old else {}
        going = set(old)
        while kept := {plan_id for plan_id in going if not going.issuperset(users.get(plan_id, ()))}:
            going -= kept
        free = [plan_id for plan_id in old if plan_id in going]
        return free if dry_run else [plan_id for plan_id in free if self._cleaned(plan_id)]

    def _cleaned(self, plan_id: str) -> bool:
        try:
            self._delete(self.folder(plan_id))
        except TryLater:
            return False
        return True

    def _listed(self, plan_id: str) -> Listed:
        try:
            return Listed(plan_id, self._folder(plan_id).load(), None)
        except HeadwayError as error:
            return Listed(plan_id, None, error)
        except OSError as error:
            return Listed(plan_id, None, _unreadable(error))


def _same(one: State, other: State) -> bool:
    moment = {"updated_at": "", "version": 0}
    return msgspec.structs.replace(one, **moment) == msgspec.structs.replace(other, **moment)


def _after(command: ImportPlan) -> State:
    """The state that this import would lead to."""
    (event,) = cast("list[Event]", decide(None, command))
    return apply(None, Record(0, "", "", event, "", ""))


def _in_one_go(last: PlanVersion, record: Record) -> bool:
    """Whether an event belongs to the version before it: one command changed both."""
    named = getattr(record.event, "version", 0)
    return named == last.version if named else (last.created_at, last.by) == (record.ts, record.by)


def _version(number: int, record: Record, state: State, before: dict[str, ArtifactSpec]) -> PlanVersion:
    return PlanVersion(
        version=number,
        parent=getattr(record.event, "parent", number - 1),
        plan_id=state.plan_id,
        goal=state.goal,
        created_at=record.ts,
        by=record.by,
        reason=getattr(record.event, "reason", ""),
        seq=record.seq,
        artifacts=len(state.artifacts),
        added=[a for a in state.artifacts if a not in before],
        removed=[a for a in before if a not in state.artifacts],
        modified=[a for a, spec in state.artifacts.items() if before.get(a, spec) != spec],
    )


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


def _unreadable(error: OSError) -> DamageError:
    return DamageError(
        "The plan cannot be read",
        facts={"reason": error.strerror or error, "path": error.filename or "?"},
        hint="give this user permission to read it",
        code="plan.unreadable",
    )
