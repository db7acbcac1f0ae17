"""What the index says of goals: a line each, in the order in which they were begun. Knows shapes and states only."""

from __future__ import annotations

from bisect import bisect
from operator import attrgetter

import msgspec

from headway.core.ids import name_elsewhere
from headway.core.lifecycle import progress
from headway.errors import HeadwayError
from headway.history.goals import completed_at, goal_status, has_open_run, path_of, temporal_edge, title_of
from headway.history.shapes import VERSION, Edge, GoalDetail, GoalEntry, Metrics, Recent, Task
from headway.projections.saved_execution import SavedExecution

RECENT = 10


def entry_of(goal: GoalDetail, *, gone: bool = False) -> GoalEntry:
    """The goal in the index."""
    outside = set[str]().union(*[task.requires for task in goal.tasks]).difference([task.id for task in goal.tasks])
    elsewhere = {name[0] for r in outside if (name := name_elsewhere(r)) is not None}
    return GoalEntry(
        id=goal.id,
        title=goal.title,
        status=goal.status,
        created_at=goal.created_at,
        completed_at=goal.completed_at,
        updated_at=goal.updated_at,
        task_count=goal.metrics.tasks_total,
        done=goal.metrics.tasks_completed + goal.metrics.tasks_skipped,
        artifacts=sum([len(task.produces) for task in goal.tasks]),
        edges=count_edges(goal),
        ms=round(goal.metrics.duration_seconds * 1000),
        seq=goal.seq,
        size=goal.size,
        requires=sorted(elsewhere),
        crash_recovery=goal.crash_recovery,
        open_run=goal.open_run,
        gone=gone,
        problem=goal.problem,
    )


def renewed_entry(known: GoalEntry, execution: SavedExecution, size: int) -> GoalEntry:
    """The goal in the index, as of a state that its file does not reflect yet; its edges are those of the file."""
    state = execution.state
    done, total = progress(state)
    status = goal_status(state, done == total)
    entry: GoalEntry = msgspec.structs.replace(
        known,
        title=title_of(state.goal),
        status=status,
        completed_at=completed_at(state) if status == "complete" else None,
        updated_at=state.updated_at,
        task_count=total,
        done=done,
        artifacts=sum([len(c.outputs) for c in state.completed.values()]),
        ms=sum([c.ms for c in state.completed.values()]),
        seq=execution.position.seq,
        size=size,
        detail_seq=known.detail_seq or known.seq,
        crash_recovery=False,
        open_run=has_open_run(state),
        problem="",
    )
    return entry


def count_edges(goal: GoalDetail) -> int:
    """How many edges a goal brings."""
    total = 0
    for task in goal.tasks:
        made = task.produces
        total += len(task.requires) + len(task.sources) + (len(made) if len(made) < 2 else len(set(made)))
        if task.imports:
            total += _count_imports(task)
        if task.integrates:
            total += sum(len(set(names)) for names in task.integrates.values())
    return total


def _count_imports(task: Task) -> int:
    targets = {path for path in task.produces if path.endswith(".py")}
    return len({(path, target) for path in task.imports or () for target in targets if path != target})


def recent_of(goal: GoalDetail) -> list[Recent]:
    """What the goal completed last."""
    done = sorted([t for t in goal.tasks if t.completed_at], key=attrgetter("completed_at"), reverse=True)[:RECENT]
    return [Recent(id=t.id, path=path_of(t), goal_id=goal.id, completed_at=t.completed_at) for t in done]


def place(goals: list[GoalEntry], entry: GoalEntry) -> list[Edge]:
    """Put a goal where it belongs by its beginning; the temporal edges that come and go with that."""
    at = bisect(goals, (entry.created_at, entry.id), key=lambda e: (e.created_at, e.id))
    goals.insert(at, entry)
    return temporal_edges(goals[at - 1] if at else None, entry, goals[at + 1] if at + 1 < len(goals) else None)


def temporal_edges(before: GoalEntry | None, entry: GoalEntry, after: GoalEntry | None) -> list[Edge]:
    """What comes and goes when a goal gets its place between two others. One without a beginning has no place."""
    if not entry.created_at:
        return []
    if before is not None and not before.created_at:
        before = None
    edges = []
    if before is not None:
        edges.append(temporal_edge(before.id, entry.id, entry.created_at))
    if after is not None:
        if before is not None:
            stale = temporal_edge(before.id, after.id, after.created_at)
            stale.gone = True
            edges.append(stale)
        edges.append(temporal_edge(entry.id, after.id, after.created_at))
    return edges


def newest(recent: list[Recent]) -> list[Recent]:
    """What was completed last."""
    return sorted(recent, key=lambda r: (r.completed_at, r.goal_id, r.id), reverse=True)[:RECENT]


def changes(before: GoalDetail | None, goal: GoalDetail) -> int:
    """How many artifacts of a goal are not what they were."""
    if before is None:
        return 1 + len([task for task in goal.tasks if task.completed_at])
    was = {task.id: task.completed_at for task in before.tasks}
    return 1 + len([task for task in goal.tasks if was.get(task.id, "") != task.completed_at])


def unreadable_goal(goal_id: str, error: HeadwayError | None, entry: GoalEntry | None = None) -> GoalDetail:
    """A goal of which nothing can be read but that it is there."""
    return GoalDetail(
        version=VERSION,
        id=goal_id,
        title=entry.title if entry is not None else goal_id,
        description="",
        status="failed",
        created_at=entry.created_at if entry is not None else "",
        updated_at=entry.updated_at if entry is not None else "",
        completed_at=entry.completed_at if entry is not None else None,
        learnings=[],
        metrics=Metrics(),
        tasks=[],
        problem=error.message if error is not None else "It cannot be read",
    )
