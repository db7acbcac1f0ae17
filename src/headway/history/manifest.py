"""What was made and still counts: the manifest over all goals, and what of old goals may be dropped.

Knows shapes only. Who wrote a file last counts as who made it; every goal that ever did is named.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from operator import attrgetter

from headway.history.goals import AT_ONCE, are_verbatim, manifest_of, nodes_of, uses_of
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
    kept: dict[str, list[str]] = {}
    for name, entry in known.artifacts.items():
        kept[name] = [user for user in entry.used_by if user.partition(":")[0] not in stale]
        if stale.isdisjoint(entry.goals):
            artifacts[name] = entry
    users: dict[str, list[str]] = defaultdict(list)
    for goal in details:
        own = nodes_of(goal)
        for name, entry in manifest_of(goal, own):
            other = artifacts.get(name)
            if other is None:
                artifacts[name] = entry
                continue
            newest = entry if entry.last_modified >= other.last_modified else other
            newest.goals = sorted({*other.goals, goal.id})
            artifacts[name] = newest
        for task in goal.tasks:
            node = own[task.id]
            for used in uses_of(task, own):
                users[used].append(node)
    direct = users.keys() & artifacts.keys()
    direct = direct and direct - {entry.task for entry in artifacts.values()}
    for name, entry in artifacts.items():  # whoever uses a task uses all that it made
        found = {*users.get(entry.task, ())}
        if name in kept:
            found.update(kept[name])
        if name in direct:
            found.update(users[name])
        entry.used_by = sorted(found)
    in_order = {name: artifacts[name] for name in sorted(artifacts)}
    return Manifest(version=VERSION, last_updated=last_updated, artifacts=in_order)


def first_lines(goal: GoalDetail) -> bytes | None:
    """The artifacts of a manifest of this goal alone, as they are written, without making a value of each; None where
    that takes more: some are integrated, made twice or used by their paths, or names have to be escaped."""
    goal_id, users = goal.id, defaultdict[str, list[str]](list)
    tasks = sorted(goal.tasks, key=attrgetter("id"))  # and so are those who use something
    nodes = {task.id: f'"{goal_id}:{task.id}"' for task in tasks}
    for task in tasks:
        requires, node = task.requires, nodes[task.id]
        if task.imports or task.integrates or len({*requires}) < len(requires):
            return None
        for name in requires:
            users[name].append(node)
    makers = {path: task for task in tasks for path in task.produces}
    sources = [path for task in tasks if task.sources for path in task.sources]
    if not makers.keys().isdisjoint(sources) or not makers.keys().isdisjoint(users):
        return None
    several = [task for task in tasks if len(task.produces) != 1 or task.hashes]
    count = len(tasks) + sum([len(task.produces) - 1 for task in several])
    if len(makers) < count or any(len(task.produces) != len(task.hashes) for task in several):
        return None
    hashes = {path: digest for task in several for path, digest in zip(task.produces, task.hashes, strict=True)}
    digests = [*hashes.values(), *[task.content_hash or "" for task in tasks]]
    about = {task.type for task in tasks} | {task.completed_at for task in tasks}  # many have the same
    if not are_verbatim([goal_id, *nodes, *makers, *digests, *about]):
        return None
    paths, by, used_by = sorted(makers), f'"createdBy":"{goal_id}"', users.get
    found: list[bytes] = []
    for at in range(0, len(paths), AT_ONCE):
        lines = [
            f'''"{path}":{{"id":"{task.id}","path":{"null" if path.endswith("#text") else f'"{path}"'},'''
            f'"type":"{task.type or "file"}",{by},"contentHash":"{hashes.get(path, task.content_hash or "")}",'
            f'"lastModified":"{task.completed_at}","usedBy":[{",".join(used_by(task.id, ()))}],'
            f'"task":{nodes[task.id]},"goals":["{goal_id}"]}}'
            for path in paths[at : at + AT_ONCE]
            for task in (makers[path],)
        ]
        found.append(",\n".join(lines).encode())
    return b",\n".join(found)


def compact(details: list[GoalDetail], orphans: set[str], before: str) -> int:
    """Drop from goals without a ledger that ended before a day whatever nothing names any more; how many tasks.

    What stands is kept: the tasks of all other goals, and those whose file no later goal made again. So is everything
    that they name, and what that names in turn: what they require, import, integrate with or were reused from.
    The goals themselves, their words, dates, figures and learnings stay for good.
    """
    old = [goal for goal in details if goal.id in orphans and goal.updated_at < before]
    newest: dict[str, tuple[str, str]] = {}
    for goal in details:
        for task in goal.tasks:
            for path in task.produces:
                newest[path] = max(newest.get(path, ("", "")), (task.completed_at, task_id(goal.id, task.id)))
    standing = {node for path, (_, node) in newest.items() if not path.endswith("#text")}
    compacting = {goal.id for goal in old}
    standing |= {task_id(g.id, task.id) for g in details if g.id not in compacting for task in g.tasks}
    kept = _named(details, standing)
    dropped = 0
    for goal in old:
        tasks = [task for task in goal.tasks if task_id(goal.id, task.id) in kept]
        dropped += len(goal.tasks) - len(tasks)
        goal.compacted = goal.compacted or len(tasks) < len(goal.tasks)
        goal.tasks = tasks
    return dropped


def _named(details: Iterable[GoalDetail], standing: Iterable[str]) -> set[str]:
    """What stands, and all that it names, directly or not."""
    names: dict[str, list[str]] = {}
    makers: dict[str, list[str]] = {}
    by_content: dict[tuple[str, str], list[str]] = {}
    for goal in details:
        own = nodes_of(goal)
        for task in goal.tasks:
            node = own[task.id]
            names[node] = uses_of(task, own)
            by_content.setdefault((goal.id, task.content_hash or ""), []).append(node)
            for path in task.produces:
                makers.setdefault(path, []).append(node)
    for goal in details:
        for task in goal.tasks:
            if task.how == "reused":  # from `event 7 of api`
                origin = (task.note.rpartition(" of ")[2], task.content_hash or "")
                names[task_id(goal.id, task.id)] += by_content.get(origin, ())
    found: set[str] = set()
    waiting = list(standing)
    while waiting:
        name = waiting.pop()
        if name not in found:
            found.add(name)
            waiting += (*names.get(name, ()), *makers.get(name, ()))
    return found
