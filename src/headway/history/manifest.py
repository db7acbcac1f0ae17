"""What was made and still counts: the manifest over all goals, and what of old goals may be dropped.

Knows shapes only. Who wrote a file last counts as who made it; every goal that ever did is named.
"""

from __future__ import annotations

from collections.abc import Iterable

from headway.core.ids import foreign_name
from headway.history.goals import manifest_of, uses_of
from headway.history.shapes import VERSION, DagIndex, GoalDetail, Manifest, ManifestEntry, task_id


def affected(known: Manifest, index: DagIndex) -> set[str]:
    """Goals of which a manifest has to be told anew: those that changed, those that share a file with one of them,
    and those that require something of them."""
    changed = set(index.behind)
    found = set(changed)
    for entry in known.artifacts.values():
        if not changed.isdisjoint(entry.goals):
            found.update(entry.goals)
    found.update(entry.id for entry in index.goals if not changed.isdisjoint(entry.requires))
    return found


def merge_manifest(known: Manifest, details: Iterable[GoalDetail], stale: set[str], *, last_updated: str) -> Manifest:
    """A manifest in which the stale goals are as `details` have them now, and the others as they were."""
    artifacts: dict[str, ManifestEntry] = {}
    users: dict[str, set[str]] = {}
    for name, entry in known.artifacts.items():
        users[name] = {user for user in entry.used_by if user.partition(":")[0] not in stale}
        if stale.isdisjoint(entry.goals):
            artifacts[name] = entry
    goals = list(details)
    for goal in goals:
        for name, entry in manifest_of(goal):
            other = artifacts.get(name)
            if other is None:
                artifacts[name] = entry
                continue
            newest = entry if entry.last_modified >= other.last_modified else other
            newest.goals = sorted({*other.goals, goal.id})
            artifacts[name] = newest
    made: dict[str, list[str]] = {}
    for name, entry in artifacts.items():
        made.setdefault(entry.task, []).append(name)
    for goal in goals:
        own = {task.id for task in goal.tasks}
        for task in goal.tasks:
            for used in uses_of(goal, task, own):
                for name in made.get(used, (used,)):
                    users.setdefault(name, set()).add(task_id(goal.id, task.id))
    for name, entry in artifacts.items():
        entry.used_by = sorted(users.get(name, ()))
    return Manifest(version=VERSION, last_updated=last_updated, artifacts=dict(sorted(artifacts.items())))


def compact(details: list[GoalDetail], orphans: set[str], before: str) -> int:
    """Drop from goals without a ledger that ended before a day whatever nothing names any more; how many tasks.

    Kept are tasks that another goal requires, reuses or imports from, and those whose file no later goal made again.
    The goals themselves, their words, dates, figures and learnings stay for good.
    """
    named = _named(details)
    newest: dict[str, tuple[str, str]] = {}
    for goal in details:
        for task in goal.tasks:
            for path in task.produces:
                newest[path] = max(newest.get(path, ("", "")), (task.completed_at, task_id(goal.id, task.id)))
    dropped = 0
    for goal in details:
        if goal.id not in orphans or goal.updated_at >= before:
            continue
        kept = []
        for task in goal.tasks:
            node = task_id(goal.id, task.id)
            stands = any(newest[path][1] == node for path in task.produces if not path.endswith("#text"))
            if stands or node in named or not named.isdisjoint(task.produces):
                kept.append(task)
        dropped += len(goal.tasks) - len(kept)
        goal.compacted = goal.compacted or len(kept) < len(goal.tasks)
        names = {task.id for task in kept}
        for task in kept:  # what they required has gone with the rest
            task.requires = [r for r in task.requires if r in names or foreign_name(r) is not None]
        goal.tasks = kept
    return dropped


def _named(details: Iterable[GoalDetail]) -> set[str]:
    """Nodes that another goal names: requires, imports, integrates with, or was reused from (`event 7 of api`)."""
    named: set[str] = set()
    reused: dict[str, set[str]] = {}
    for goal in details:
        own = {task.id for task in goal.tasks}
        for task in goal.tasks:
            named.update(n for n in uses_of(goal, task, own) if n.partition(":")[0] != goal.id)
            if task.how == "reused":
                reused.setdefault(task.note.rpartition(" of ")[2], set()).add(task.content_hash or "")
    for goal in details:
        wanted = reused.get(goal.id, set())
        named.update(task_id(goal.id, task.id) for task in goal.tasks if task.content_hash in wanted)
    return named
