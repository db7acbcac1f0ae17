"""The plans of one project on disk: found, listed, saved and deleted. Knows nothing of runs or of people."""

from __future__ import annotations

import os
from datetime import UTC, datetime, timedelta
from typing import NamedTuple, cast

import msgspec

from headway.core.commands import ImportPlan
from headway.core.decide import decide
from headway.core.events import Event, Record
from headway.core.evolve import apply
from headway.core.ids import hash_goal, name_elsewhere, plan_id_problem
from headway.core.plan import ArtifactSpec
from headway.core.state import State
from headway.disk import REAL, Disk
from headway.errors import DamageError, DecisionNeeded, HeadwayError, NotFound, TryLater, UsageError
from headway.files.blobs import Blobs
from headway.ledger.file import Verified, ends_with
from headway.plan_folder import STRUCTURE, Newest, Notice, PlanFolder, Watcher, keep_quiet
from headway.projections.saved_execution import SavedExecution

TRASH = ".deleted-"

TO_MS = len("2026-11-15T18:04:05.123")
"""So much of a time is compared: some are told to the microsecond, and some are not."""


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
        self._newest: dict[str, Newest] = {}

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
            newest=self._newest,
        )

    def ids(self) -> list[str]:
        """The ids of all plans, damaged ones included."""
        try:
            entries = sorted(os.scandir(self.base_path), key=lambda e: e.name)
        except (FileNotFoundError, NotADirectoryError):
            return []
        return [e.name for e in entries if not plan_id_problem(e.name) and e.is_dir()]

    def ends_with(self, plan_id: str, hash_: str) -> bool:
        """Whether this event is still the newest of a plan, by the end of its ledger alone."""
        return ends_with(os.path.join(self.base_path, plan_id), hash_)

    def latest(self, count: int) -> list[str]:
        """The ids of those that were written to last, the newest first."""
        times = {plan_id: self._written_at(plan_id) for plan_id in self.ids()}
        return sorted(times, key=lambda plan_id: -times[plan_id])[:count]

    def _written_at(self, plan_id: str) -> int:
        try:
            return os.stat(os.path.join(self.base_path, plan_id, "ledger.jsonl")).st_mtime_ns
        except OSError:
            return 0

    def recorded_project(self) -> str:
        """The id by which the ledgers know the project; "" where none can be read."""
        for plan_id in self.ids():
            try:
                first = next(self.folder(plan_id).history(), None)
            except HeadwayError:
                continue
            if found := getattr(first.event, "project_id", "") if first else "":
                return str(found)
        return ""

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
        limit = (datetime.now(UTC) - max_age).isoformat(timespec="milliseconds")[:TO_MS]
        old = [
            entry.plan_id
            for entry in self.list_all()
            if entry.execution
            and entry.execution.status in ("complete", "closed")
            and entry.execution.updated_at[:TO_MS] <= limit
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


def _unreadable(error: OSError) -> DamageError:
    return DamageError(
        "The plan cannot be read",
        facts={"reason": error.strerror or error, "path": error.filename or "?"},
        hint="give this user permission to read it",
        code="plan.unreadable",
    )
