"""The plans of one project on disk: each a folder with its ledger and the projections of it.

Joins ledger, blobs and projections; knows nothing of runs, of people or of how anything is shown.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from typing import NamedTuple

import msgspec

from headway.core.commands import ImportPlan
from headway.core.events import Record
from headway.core.evolve import apply, fold
from headway.core.ids import hash_goal, plan_id_problem
from headway.core.plan import ArtifactSpec, PlanSpec
from headway.core.state import State
from headway.disk import REAL, Disk
from headway.errors import HeadwayError, NotFound, TryLater, UsageError
from headway.files.blobs import Blobs
from headway.ledger.file import FileLedger
from headway.ledger.lock import FileLock
from headway.ledger.writer import SMALL_STATE, Writer
from headway.projections.plan_files import CHECKPOINT, VIEWS, PlanFiles
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
CHECKPOINTS = STRUCTURE | {"milestone_completed", "plan_closed", "profile_set", "profile_locked", "plan_reset"}
EVENT_BYTES = 400
"""A rough size of an event: how far behind a large projection may be is a matter of bytes."""


class PlanFolder:
    """One plan: its ledger, its projections, and the one way to write to it."""

    def __init__(self, path: str, *, blobs: Blobs, disk: Disk = REAL) -> None:
        self.path = path
        self.plan_id = os.path.basename(path)
        self.blobs = blobs
        self.files = PlanFiles(path, disk=disk)
        self.disk = disk

    def ledger(self) -> FileLedger:
        """A ledger object of one's own."""
        return FileLedger(self.path, disk=self.disk, witnesses=self.files.witnesses)

    def load(self) -> SavedExecution | None:
        """The plan as of the newest event, or None where there is no plan. Never writes."""
        loaded = self.ledger().load()
        if loaded is None or loaded.end is None:
            return None
        state = fold(None, loaded.records)
        return SavedExecution(state, loaded.end) if state is not None else None

    def at(self, seq: int) -> SavedExecution:
        """The plan as of an earlier event."""
        state: State | None = None
        last: Record | None = None
        for record in self.ledger().history(1, seq):
            state, last = apply(state, record), record
        if state is None or last is None or last.seq != seq:
            raise NotFound(
                f"Plan {self.plan_id} has no event {seq}",
                facts={"newest": last.seq if last else 0},
                hint=f"headway log --plan-id {self.plan_id}",
            )
        return SavedExecution(state, last.position)

    def history(self, first: int = 1, last: int | None = None) -> Iterator[Record]:
        """Events by number."""
        return self.ledger().history(first, last)

    @contextmanager
    def writing(self) -> Iterator[Writer]:
        """A writer; when it is let go of, projections follow as far as they are due."""
        seen: set[str] = set()

        def notice(_: State, records: Sequence[Record]) -> None:
            seen.update(record.event.type for record in records)

        writer = Writer(self.ledger(), sync_first=(self.blobs.sync,), notify=notice)
        try:
            yield writer
            writer.sync()
            self.project(writer, seen)
        finally:
            writer.close()

    def project(self, writer: Writer, seen: set[str]) -> list[str]:
        """Refresh the projections that are due after events of these types; those that somebody edited."""
        if not seen or writer.state is None or writer.position is None:
            return []
        execution = SavedExecution(writer.state, writer.position)
        important = bool(seen & CHECKPOINTS)
        edited = self.files.refresh(execution, VIEWS) if important or self._views_due(execution) else []
        return edited + (self.files.refresh(execution, CHECKPOINT) if important else [])

    def _views_due(self, execution: SavedExecution) -> bool:
        try:
            size = os.path.getsize(os.path.join(self.path, "plan.json"))
        except OSError:
            return True
        named = dict(self.files.witnesses()).get("plan.json")
        behind = execution.position.seq - (named.seq if named else 0)
        return size < SMALL_STATE or behind * EVENT_BYTES >= size

    def run_lock(self) -> FileLock:
        """Whoever holds this one is the plan's scheduler."""
        return FileLock(os.path.join(self.path, "run.lock"))


class PlanVersion(NamedTuple):
    """One state of a plan's structure, and what made it differ from the one before."""

    version: int
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
        self, base_path: str | os.PathLike[str] = ".headway/plans", *, blobs: Blobs | None = None, disk: Disk = REAL
    ) -> None:
        self.base_path = os.fspath(base_path)
        self.blobs = blobs or Blobs(os.path.join(os.path.dirname(self.base_path) or ".", "blobs"), disk=disk)
        self._disk = disk

    def folder(self, plan_id: str) -> PlanFolder:
        """The folder of a plan, whether it exists or not. Ids are unique whatever their case."""
        problem = plan_id_problem(plan_id)
        if problem:
            raise UsageError(
                f"{plan_id!r} cannot name a plan", facts={"rule": problem}, hint="choose another id", code="plan.id"
            )
        same = [name for name in self.ids() if name.lower() == plan_id.lower()]
        if same and plan_id not in same:
            raise UsageError(f"There is a plan {same[0]} already", hint=f"use {same[0]}, or another id", code="plan.id")
        return PlanFolder(os.path.join(self.base_path, plan_id), blobs=self.blobs, disk=self._disk)

    def ids(self) -> list[str]:
        """The ids of all plans, damaged ones included."""
        try:
            entries = sorted(os.scandir(self.base_path), key=lambda e: e.name)
        except (FileNotFoundError, NotADirectoryError):
            return []
        return [e.name for e in entries if e.is_dir() and not plan_id_problem(e.name)]

    def save(self, execution: SavedExecution) -> str:
        """Make this the plan's state, as an event. Saving what is there already adds nothing. The plan's folder."""
        folder = self.folder(execution.plan_id)
        with folder.writing() as writer:
            current = writer.refresh()
            if current is None or not _same(current, execution.state):
                command = ImportPlan(
                    plan_id=execution.plan_id,
                    project_id=execution.state.project_id,
                    source="PlanStore.save",
                    state=execution.state,
                    replace=True,
                )
                writer.execute(command, by="api")
        return folder.path

    def load(self, plan_id: str) -> SavedExecution | None:
        """A plan by id (or goal hash), or None."""
        return self.folder(plan_id).load()

    def find_by_goal(self, goal: str) -> SavedExecution | None:
        """The plan of this goal: named by its hash, or one that has an id of its own."""
        found = self.load(hash_goal(goal))
        if found is not None:
            return found
        same = (e.execution for e in self.list() if e.execution and e.execution.goal.strip() == goal.strip())
        return next(same, None)

    def list(self) -> list[Listed]:
        """All plans, newest first; one that cannot be read says why and spoils nothing."""
        found = [self._listed(plan_id) for plan_id in self.ids()]
        there = [entry for entry in found if entry.execution or entry.error]
        return sorted(there, key=lambda e: e.execution.updated_at if e.execution else "", reverse=True)

    def list_recent(self, limit: int = 10) -> list[SavedExecution]:
        """The plans that were touched last."""
        return [entry.execution for entry in self.list() if entry.execution][:limit]

    def versions(self, plan_id: str) -> list[PlanVersion]:
        """Every structure that the plan ever had, oldest first."""
        found: list[PlanVersion] = []
        state: State | None = None
        before: dict[str, ArtifactSpec] = {}
        for record in self.folder(plan_id).history():
            state = apply(state, record)
            if record.event.type in STRUCTURE:
                found.append(_version(len(found) + 1, record, state, before))
                before = dict(state.artifacts)
        return found

    def delete(self, plan_id: str) -> None:
        """Delete a plan with its ledger. Not while somebody runs it."""
        folder = self.folder(plan_id)
        if not os.path.isdir(folder.path):
            raise NotFound(f"There is no plan {plan_id}", hint="headway plans list")
        lock = folder.run_lock()
        if not lock.acquire(wait=0):
            raise TryLater(f"Plan {plan_id} is running", facts=lock.signature(), hint="try again when it is done")
        try:
            shutil.rmtree(folder.path)
        finally:
            lock.release()

    def clean(self, max_age: timedelta = timedelta(days=7), *, dry_run: bool = False) -> list[str]:
        """Delete plans that are complete or closed and were not touched for this long. Their ids."""
        limit = (datetime.now(UTC) - max_age).isoformat()
        old = [
            entry.plan_id
            for entry in self.list()
            if entry.execution
            and entry.execution.status in ("complete", "closed")
            and entry.execution.updated_at < limit
        ]
        if not dry_run:
            for plan_id in old:
                self.delete(plan_id)
        return old

    def _listed(self, plan_id: str) -> Listed:
        try:
            return Listed(plan_id, self.folder(plan_id).load(), None)
        except HeadwayError as error:
            return Listed(plan_id, None, error)


def proposal_of(state: State) -> PlanSpec:
    """The structure of a plan as somebody could have proposed it."""
    return PlanSpec(
        goal=state.goal, settings=state.settings, profile=state.profile, artifacts=tuple(state.artifacts.values())
    )


def _same(one: State, other: State) -> bool:
    return msgspec.structs.replace(one, updated_at="") == msgspec.structs.replace(other, updated_at="")


def _version(number: int, record: Record, state: State, before: dict[str, ArtifactSpec]) -> PlanVersion:
    return PlanVersion(
        version=number,
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
