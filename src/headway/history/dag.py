"""The history of one project: kept up to date by whoever writes to a ledger, read by anybody, rebuilt at any time.

Reading never writes and is never behind: goals whose ledger is not the one that was recorded are looked at anew. What
is remembered between two reads belongs to this object alone, so that no project ever shows another's data.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from typing import NamedTuple

from headway.core import events as ev
from headway.core.state import Output
from headway.errors import DamageError, FormatTooNew, HeadwayError, LedgerDamaged, NotFound
from headway.files.cache import Cache
from headway.files.identity import read_identity
from headway.files.observe import Observer
from headway.history.entries import changes, entry_of, newest, place, recent_of, renewed_entry, unreadable_goal
from headway.history.folder import DagFolder, EdgeLogDamaged
from headway.history.goals import Projector, changed_edges, edge_lines, edges_of, has_open_run
from headway.history.manifest import affected, compact, first_lines, merge_manifest
from headway.history.open_index import OpenIndex
from headway.history.shapes import (
    VERSION,
    DagIndex,
    DagUpdated,
    Edge,
    GoalDetail,
    GoalEntry,
    Manifest,
    Recent,
    Summary,
)
from headway.ledger.recovery import now
from headway.plan_folder import EVENT_BYTES, Notice, keep_quiet
from headway.projections.saved_execution import SavedExecution
from headway.store import PlanStore

SMALL_MANIFEST = 256 * 1024
ENTRY_BYTES = 250
"""A rough size of a manifest's entry: how far behind a large manifest may be is a matter of bytes."""

LARGE_GOAL = 1024 * 1024
"""A goal's file above this size is written once events of about as many bytes have come."""


class Rebuilt(NamedTuple):
    """What a rebuild found."""

    goals: int
    from_ledgers: int
    from_goal_files: list[str]
    unreadable: dict[str, str]
    artifacts: int
    edges: int
    changed: list[str]
    missing: list[str]
    dropped: int = 0


class Dag:
    """All goals ever run in a project, what they made, and what depends on it."""

    def __init__(self, root: str, home: str, store: PlanStore, *, notice: Notice = keep_quiet) -> None:
        self.root = root
        self.home = home
        self.store = store
        self.folder = DagFolder(home)
        self._notice = notice
        self._projector = Projector(root, self._read_output)
        self._listeners: list[Callable[[DagUpdated], None]] = []
        self._known: tuple[tuple[object, ...], DagIndex] | None = None
        self._renewed: dict[str, GoalDetail] = {}
        """What was written a moment ago, and need not be read."""

    # Listening.

    def listen(self, listener: Callable[[DagUpdated], None]) -> Callable[[], None]:
        """Call this with every `dag_updated` of this object; what is returned ends it."""
        self._listeners.append(listener)
        return lambda: self._listeners.remove(listener)

    # Writing: called by whoever writes to a ledger.

    def began(self, plan_id: str) -> None:
        """Somebody writes to this plan from here on."""
        with suppress(OSError):
            self.folder.mark(plan_id)

    def projected(self, execution: SavedExecution) -> None:
        """Take in what a plan has come to. Whatever goes wrong here, no event depends on it."""
        try:
            self.append(execution)
        except Exception as error:  # noqa: BLE001  # what is derived never fails a run, whatever is wrong with it
            what = error.message if isinstance(error, HeadwayError) else getattr(error, "strerror", "") or repr(error)
            self._notice(f"The history (dag/) was not brought up to date: {what}; no event depends on it")

    def append(self, execution: SavedExecution) -> GoalEntry:
        """The same for callers who want to know whether it worked; the goal as the index has it."""
        plan_id = execution.plan_id
        with self.folder.locked():
            index = self._index_to_change()
            if index is None and self._is_first(plan_id):
                index = OpenIndex.of(self._empty_index())
            if index is None:
                self._rebuild()
                index = OpenIndex.of(self._written())
                entry = _entry(index, plan_id)
            else:
                entry = self._take_in(index, execution)
        if not entry.open_run:
            self.folder.unmark(plan_id)
        update = DagUpdated(index.head.project_id, plan_id, entry.status, index.head.last_updated)
        for listener in list(self._listeners):
            listener(update)
        return entry

    def _is_first(self, plan_id: str) -> bool:
        """Whether the project has no other goal, now or earlier: then there is nothing to read."""
        return self.store.ids() == [plan_id] and not self._orphans({plan_id})

    def _empty_index(self) -> DagIndex:
        return DagIndex(
            version=VERSION,
            project_id=self.project_id,
            last_updated=now(),
            summary=Summary(),
            goals=[],
            recent_artifacts=[],
        )

    def _written(self) -> DagIndex:
        index = self.folder.read_index()
        assert index is not None, "it was just written"
        return index

    def _index_to_change(self) -> OpenIndex | None:
        """The index, if it can be gone on from. One that cannot be read is made anew; a newer one is left alone."""
        try:
            return self.folder.open_index()
        except DamageError as error:
            self._notice(f"{error.message}: it is made again from the ledgers")
            return None

    def _take_in(self, index: OpenIndex, execution: SavedExecution) -> GoalEntry:
        known = index.entry(execution.plan_id)
        size = self._ledger_size(execution.plan_id)
        if known is not None and known.seq > execution.position.seq and known.size <= size:
            return known  # somebody who knows more has been here
        self._renewed.clear()
        edges: list[Edge | bytes] = []
        if known is not None and self._may_wait(known, execution):
            entry = renewed_entry(known, execution, size)
            index.put(entry)
            self._finish(index)
            return entry
        try:
            entry = self._renew(index, execution, size, known, edges)
            for plan_id in self.folder.marked():
                if plan_id != execution.plan_id:
                    self._record_crash(index, plan_id, edges)
            index.head.edges_size = self.folder.append_edges(index.head.edges_size, edges)
        except EdgeLogDamaged:
            self._notice("dag/edges.jsonl cannot be read: it is made again from the goals")
            self._rebuild()
            return _entry(OpenIndex.of(self._written()), execution.plan_id)
        self._finish(index)
        return entry

    def _may_wait(self, known: GoalEntry, execution: SavedExecution) -> bool:
        """Whether so little happened to a large goal that writing its file and edges does not pay yet. Readers lack
        nothing: its line in the index is exact, and its tasks are taken from the ledger meanwhile."""
        try:
            size = os.path.getsize(self.folder.goal_path(known.id))
        except OSError:
            return False
        behind = execution.position.seq - (known.detail_seq or known.seq)
        return size > LARGE_GOAL and behind * EVENT_BYTES < size and not has_open_run(execution.state)

    def _renew(
        self,
        index: OpenIndex,
        execution: SavedExecution,
        size: int,
        known: GoalEntry | None,
        edges: list[Edge | bytes],
        *,
        crashed: bool = False,
    ) -> GoalEntry:
        """Write a goal's file, and put what changed into the index and among the edges that are to be appended."""
        before = self._before(execution.plan_id)
        goal = self._projector.detail(execution, size=size, crashed=crashed, before=before)
        lines = edge_lines(goal) if before is None and known is None else None
        if lines is None:
            came, went = self._edges_by_log(goal) if before is None and known else changed_edges(before, goal)
            stamp = now()
            for edge in went:
                edge.gone, edge.ts = True, stamp
            edges += [*went, *came]
        elif lines:
            edges.append(lines)
        entry = entry_of(goal)
        edges += index.put(entry)
        head = index.head
        others = [r for r in head.recent_artifacts if r.goal_id != goal.id]
        head.recent_artifacts = newest([*others, *recent_of(goal)])
        head.behind = [*(g for g in head.behind if g != goal.id), goal.id]
        head.changes += changes(before, goal)
        self._write_goal(goal, before)
        self._renewed[goal.id] = goal
        return entry

    def _before(self, plan_id: str) -> GoalDetail | None:
        """The goal as it was written, if that can be read here."""
        with suppress(DamageError, FormatTooNew):
            return self.folder.read_goal(plan_id)
        return None

    def _write_goal(self, goal: GoalDetail, before: GoalDetail | None) -> None:
        if before is None and self.folder.has_newer_goal(goal.id):
            self._notice(f"dag/goals/{goal.id}.json was written by a newer Headway and is left alone")
            return
        self.folder.write_goal(goal)

    def _edges_by_log(self, goal: GoalDetail) -> tuple[list[Edge], list[Edge]]:
        """As `changed_edges` for a goal whose file is lost: the log knows what it had."""
        mine = {i: e for i, e in self.folder.read_edges().items() if e.goal_id == goal.id and e.type != "temporal"}
        wanted = edges_of(goal)
        return [e for i, e in wanted.items() if i not in mine], [e for i, e in mine.items() if i not in wanted]

    def _record_crash(self, index: OpenIndex, plan_id: str, edges: list[Edge | bytes]) -> None:
        """A run that ended without a word is written down as what it is."""
        with suppress(HeadwayError, OSError):
            execution = self.store.folder(plan_id).load()
            if execution is None:  # it was deleted since
                self.folder.unmark(plan_id)
            if execution is None or not self._is_crashed(execution):
                return
            known = index.entry(plan_id)
            self._renew(index, execution, self._ledger_size(plan_id), known, edges, crashed=True)
            self.folder.unmark(plan_id)

    def _finish(self, index: OpenIndex) -> None:
        index.head.last_updated = now()
        index.head.project_id = index.head.project_id or self.project_id
        self._write_manifest_if_due(index)
        self._renewed.clear()
        self.folder.write_index(index)

    def _summarise(self, index: DagIndex) -> None:
        goals = index.goals
        ordered = sum(1 for e in goals if e.created_at)
        index.summary = Summary(
            total_goals=len(goals),
            completed_goals=sum(1 for e in goals if e.status == "complete"),
            total_artifacts=sum(e.artifacts for e in goals),
            total_edges=sum(e.edges for e in goals) + max(ordered - 1, 0),
        )

    # The manifest.

    def _write_manifest_if_due(self, index: OpenIndex) -> None:
        """A large manifest is written when enough has changed to pay for it; readers add what it lacks."""
        head = index.head
        if not head.behind:
            return
        if head.manifest_size > SMALL_MANIFEST and head.changes * ENTRY_BYTES * 4 < head.manifest_size:
            return
        lines = self._first_lines(head)
        if lines is not None:
            head.manifest_size = self.folder.write_first_manifest(head.last_updated, lines)
        else:
            head.manifest_size = self.folder.write_manifest(self._manifest(index.whole()))
        head.behind, head.changes = [], 0

    def _first_lines(self, head: DagIndex) -> bytes | None:
        """What a goal made that is the first of its project; None where there is more to be told."""
        if head.summary.total_goals > 1 or os.path.lexists(self.folder.manifest_path):
            return None
        goal = self._renewed.get(head.behind[-1])
        return first_lines(goal) if goal is not None and head.behind == [goal.id] else None

    def manifest(self) -> Manifest:
        """What was made, by whom, and who uses it: complete, however far the file is behind."""
        return self._manifest(self.index())

    def _manifest(self, index: DagIndex) -> Manifest:
        known: Manifest | None = None
        with suppress(DamageError):
            known = self.folder.read_manifest()
        if known is None:
            known = Manifest(version=VERSION, last_updated="", artifacts={})
            stale = {entry.id for entry in index.goals}
        else:
            stale = affected(known, index)
        details = [goal for goal_id in sorted(stale) if (goal := self._goal_or_none(goal_id)) is not None]
        return merge_manifest(known, details, stale, last_updated=index.last_updated)

    def _goal_or_none(self, goal_id: str) -> GoalDetail | None:
        with suppress(HeadwayError):
            return self._renewed.get(goal_id) or self.goal(goal_id)
        return None

    # Reading.

    @property
    def project_id(self) -> str:
        """The project's id, or "" where there is none yet."""
        with suppress(DamageError):
            return read_identity(self.home)
        return ""

    def index(self) -> DagIndex:
        """All goals ever run, as their ledgers are now. Not to be changed."""
        key = self._key()
        if self._known is None or self._known[0] != key:
            self._known = (key, self._current_index())
        return self._known[1]

    def _key(self) -> tuple[object, ...]:
        """What has to be as it was for the index to be as it was: a few stats, however many goals there are."""
        marked = [(plan_id, self._ledger_size(plan_id), self._is_held(plan_id)) for plan_id in self.folder.marked()]
        return (_stat(self.folder.index_path), _stat(self.store.base_path), tuple(marked))

    def _current_index(self) -> DagIndex:
        """The index as written, with every goal brought up to date whose ledger has moved since."""
        try:
            index = self.folder.read_index()
        except DamageError as error:
            self._notice(f"{error.message}: shown from the ledgers. Next: headway dag rebuild")
            index = None
        if index is None:
            empty = DagIndex(
                version=VERSION,
                project_id=self.project_id,
                last_updated="",
                summary=Summary(),
                goals=[],
                recent_artifacts=[],
            )
            return self._with(empty, [*self.store.ids(), *self._orphans(set(self.store.ids()))])
        there = set(self.store.ids())
        changed = []
        for entry in index.goals:
            if entry.id not in there:
                entry.gone = True
            elif self._ledger_size(entry.id) != entry.size or (entry.open_run and not entry.crash_recovery):
                changed.append(entry.id)
        new = sorted(there - {entry.id for entry in index.goals})
        return self._with(index, [*changed, *new]) if changed or new else index

    def _orphans(self, there: set[str]) -> list[str]:
        return [goal_id for goal_id in self.folder.goal_ids() if goal_id not in there]

    def _with(self, index: DagIndex, ids: Iterable[str]) -> DagIndex:
        """The index with these goals looked at anew."""
        behind = dict.fromkeys(index.behind)
        for goal_id in ids:
            try:
                goal = self._look(goal_id)
            except HeadwayError as error:
                goal = self._salvaged(goal_id, error)
            if goal is None:
                continue
            entry = entry_of(goal, gone=not os.path.isdir(os.path.join(self.store.base_path, goal_id)))
            position = next((i for i, e in enumerate(index.goals) if e.id == goal_id), None)
            if position is None:
                place(index.goals, entry)
            else:
                index.goals[position] = entry
            others = [r for r in index.recent_artifacts if r.goal_id != goal_id]
            index.recent_artifacts = newest([*others, *recent_of(goal)])
            index.last_updated = max(index.last_updated, goal.updated_at)
            behind[goal_id] = None
        index.behind = list(behind)
        self._summarise(index)
        return index

    def goal(self, goal_id: str) -> GoalDetail:
        """A goal with its tasks: from its file while that is what its ledger says, else from the ledger. One whose
        ledger is damaged is shown as it was last known, with its problem."""
        size = self._ledger_size(goal_id)
        try:
            written = self.folder.read_goal(goal_id)
        except (DamageError, FormatTooNew):
            if not size:
                raise
            written = None
        if written is not None and written.size == size and (not written.open_run or written.crash_recovery):
            return written
        try:
            found = self._look(goal_id) if size or written is None else written
        except LedgerDamaged as error:
            found = self._salvaged(goal_id, error)
        if found is None:
            near = _nearest(goal_id, [e.id for e in self.index().goals])
            raise NotFound(
                f"There is no goal {goal_id}",
                facts={"did you mean": near} if near else {},
                hint="headway dag show lists them",
                code="goal.none",
            )
        return found

    def _look(self, goal_id: str) -> GoalDetail | None:
        """A goal as its ledger has it; as its file has it where there is no ledger any more."""
        execution = self.store.folder(goal_id).load()
        before = self._before(goal_id)
        if execution is None:
            return before
        crashed = self._is_crashed(execution)
        return self._projector.detail(execution, size=self._ledger_size(goal_id), crashed=crashed, before=before)

    def goals(self) -> Iterator[GoalDetail]:
        """Every goal with its tasks, in the order in which they were begun. What cannot be read is left out."""
        for entry in self.index().goals:
            try:
                yield self.goal(entry.id)
            except HeadwayError:
                yield unreadable_goal(entry.id, None, entry)

    # Rebuilding.

    def rebuild(self, *, compact_before: str = "") -> Rebuilt:
        """All of dag/ anew: from the ledgers, from goal files where a ledger is gone. The manifest is compared with
        the files. `compact_before`: goals without a ledger that ended before keep only what something still names.
        """
        with self.folder.locked():
            with suppress(DamageError):
                self.folder.read_index()  # one of a newer Headway is refused here, untouched
            rebuilt = self._rebuild(compact_before=compact_before)
        self._known = None
        update = DagUpdated(self.project_id, "", "rebuilt", now())
        for listener in list(self._listeners):
            listener(update)
        return rebuilt

    def _rebuild(self, *, compact_before: str = "") -> Rebuilt:
        there = self.store.ids()
        orphans = set(self._orphans(set(there)))
        details: list[GoalDetail] = []
        unreadable: dict[str, str] = {}
        from_ledgers = 0
        for goal_id in [*there, *sorted(orphans)]:
            try:
                goal = self._from_ledger(goal_id) if goal_id not in orphans else self.folder.read_goal(goal_id)
                from_ledgers += goal is not None and goal_id not in orphans
            except HeadwayError as error:
                unreadable[goal_id] = error.message
                goal = self._salvaged(goal_id, error)
            if goal is not None:
                details.append(goal)
        dropped = compact(details, orphans, compact_before) if compact_before else 0
        index = self._empty_index()
        details.sort(key=lambda goal: (goal.created_at, goal.id))
        edges: list[Edge] = []
        recent: list[Recent] = []
        for goal in details:
            if goal.id not in unreadable or not os.path.exists(self.folder.goal_path(goal.id)):
                self._write_goal(goal, None)
            edges += place(index.goals, entry_of(goal, gone=goal.id in orphans))
            edges += edges_of(goal).values()
            recent = newest([*recent, *recent_of(goal)])
            if not goal.open_run or goal.crash_recovery:
                self.folder.unmark(goal.id)
        index.recent_artifacts = recent
        index.edges_size = self.folder.write_edges(edges)
        self._summarise(index)
        everything = Manifest(version=VERSION, last_updated=index.last_updated, artifacts={})
        manifest = merge_manifest(everything, details, set(), last_updated=index.last_updated)
        changed, missing = self._compare(manifest)
        index.manifest_size = self.folder.write_manifest(manifest)
        self.folder.write_index(OpenIndex.of(index))
        return Rebuilt(
            goals=len(details),
            from_ledgers=from_ledgers,
            from_goal_files=sorted(orphans - unreadable.keys()),
            unreadable=unreadable,
            artifacts=index.summary.total_artifacts,
            edges=index.summary.total_edges,
            changed=changed,
            missing=missing,
            dropped=dropped,
        )

    def _from_ledger(self, goal_id: str) -> GoalDetail | None:
        folder = self.store.folder(goal_id)
        execution = folder.load()
        if execution is None:
            return self._before(goal_id)
        before = self._before(goal_id)
        changes = (record.event for record in folder.history(naming=(ev.GoalChanged.type,)))
        earlier = [event.was for event in changes if isinstance(event, ev.GoalChanged) and event.was]
        crashed = self._is_crashed(execution)
        return self._projector.detail(
            execution, size=self._ledger_size(goal_id), crashed=crashed, before=before, earlier=dict.fromkeys(earlier)
        )

    def _salvaged(self, goal_id: str, error: HeadwayError) -> GoalDetail:
        """A goal whose ledger cannot be read, as it was last known; nothing is lost from sight."""
        known: GoalDetail | None = None
        with suppress(HeadwayError):
            known = self.folder.read_goal(goal_id)
        if known is None:
            return unreadable_goal(goal_id, error)
        known.problem, known.size = error.message, self._ledger_size(goal_id)
        return known

    def _compare(self, manifest: Manifest) -> tuple[list[str], list[str]]:
        """Whether what was made still stands: files that are something else now, and files that are gone."""
        cache = Cache(os.path.join(self.home, "cache.sqlite"))
        observer = Observer(self.root, cache.stats())
        changed: list[str] = []
        missing: list[str] = []
        for name, entry in manifest.artifacts.items():
            if entry.path is None:
                continue
            found = observer.look(entry.path.rstrip("/")).digest
            entry.standing = "stands" if found.startswith(entry.content_hash) and found else "changed"
            if not found:
                entry.standing = "missing"
                missing.append(name)
            elif entry.standing == "changed":
                changed.append(name)
        cache.close()
        return changed, missing

    # What the above have in common.

    def _ledger_size(self, plan_id: str) -> int:
        try:
            return os.stat(f"{self.store.base_path}/{plan_id}/ledger.jsonl").st_size
        except OSError:
            return 0

    def _is_crashed(self, execution: SavedExecution) -> bool:
        """Its newest run has no end, and nobody holds it."""
        return has_open_run(execution.state) and not self._is_held(execution.plan_id)

    def _is_held(self, plan_id: str) -> bool:
        path = os.path.join(self.store.base_path, plan_id, "run.lock")
        if not os.path.exists(path):
            return False
        lock = self.store.folder(plan_id).run_lock()
        try:
            free = lock.acquire(wait=0, shared=True)
        except OSError:  # nobody can tell: it is not said to have crashed
            return True
        lock.release()
        return not free

    def _read_output(self, output: Output) -> bytes | None:
        """An output as it was made: from its file if that still has the digest, else from its blob."""
        with suppress(OSError), open(os.path.join(self.root, output.path), "rb") as file:
            data = file.read()
            if hashlib.sha256(data).hexdigest() == output.digest:
                return data
        with suppress(HeadwayError):
            return self.store.blobs.get(output.digest)
        return None


def _stat(path: str) -> tuple[int, int, int] | None:
    try:
        found = os.stat(path)
    except OSError:
        return None
    return found.st_mtime_ns, found.st_ino, found.st_size


def _entry(index: OpenIndex, plan_id: str) -> GoalEntry:
    """A goal as an index has it that was just made from the ledgers."""
    found = index.entry(plan_id)
    if found is None:
        raise NotFound(f"{plan_id} was deleted meanwhile", hint="headway dag show lists the goals", code="goal.none")
    return found


def _nearest(word: str, known: list[str]) -> str:
    from headway.core.nearest import Nearest

    return Nearest(known).of(word)
