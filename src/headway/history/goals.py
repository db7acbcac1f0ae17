"""One goal as history sees it: what a plan's state comes to, and the edges that follow from it.

Knows states and shapes; files only through what it is given to ask.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from hashlib import blake2b
from itertools import chain

from headway.core.ids import hash_goal
from headway.core.lifecycle import is_done, progress, statuses
from headway.core.plan import ArtifactSpec
from headway.core.state import ArtifactStatus, Completion, Output, State
from headway.history.imports import LARGEST, Files, imported_files
from headway.history.shapes import (
    TITLE,
    VERSION,
    Edge,
    EdgeType,
    GoalDetail,
    Learned,
    ManifestEntry,
    Metrics,
    NodeStatus,
    Task,
)
from headway.projections.saved_execution import SavedExecution, content_hash

Read = Callable[[Output], "bytes | None"]
"""The bytes of an output, if they are still to be had."""

READ_AT_ONCE = 1000
"""So many new Python sources are read for their imports at one time; the rest follows with the next write."""

AT_ONCE = 500
"""The edges of so many tasks are written down at one time."""

_ESCAPED = bytes(range(32)) + b'"\\'
"""What a text in JSON may not hold as it is."""

_GOALS: dict[str, NodeStatus] = {
    "draft": "planned",
    "in_progress": "running",
    "replanning": "running",
    "paused": "ready",
    "complete": "complete",
    "failed": "failed",
    "closed": "blocked",
}
_TASKS: dict[ArtifactStatus, NodeStatus] = {
    "in_progress": "running",
    "complete": "complete",
    "skipped": "complete",
    "failed": "failed",
    "blocked": "blocked",
}


class Projector:
    """Turns plans into goals of the history."""

    def __init__(self, root: str, read: Read) -> None:
        self._root = root
        self._read = read

    def detail(
        self,
        execution: SavedExecution,
        *,
        size: int,
        crashed: bool = False,
        before: GoalDetail | None = None,
        earlier: Iterable[str] = (),
    ) -> GoalDetail:
        """The goal as of this state. What `before` knew of sources that have not changed is not read again."""
        state = execution.state
        done, total = progress(state)
        skipped = len(state.skipped)
        known = {task.id: task for task in before.tasks} if before is not None else {}
        earlier_goals = list(earlier) or (list(before.earlier_goals) if before is not None else [])
        if before is not None and before.description != state.goal and before.description not in earlier_goals:
            earlier_goals.append(before.description)
        return GoalDetail(
            version=VERSION,
            id=state.plan_id,
            title=title_of(state.goal),
            description=state.goal,
            status="failed" if crashed else goal_status(state, done == total),
            created_at=state.created_at,
            updated_at=state.updated_at,
            completed_at=completed_at(state) if goal_status(state, done == total) == "complete" else None,
            crash_recovery=crashed,
            open_run=has_open_run(state),
            closed_at=state.closed,
            goal_hash=hash_goal(state.goal),
            seq=execution.position.seq,
            size=size,
            earlier_goals=earlier_goals,
            learnings=[learning.text for learning in state.learnings],
            learned=[Learned(by=known.by, at=known.at, artifact=known.artifact) for known in state.learnings],
            metrics=Metrics(
                duration_seconds=sum([c.ms for c in state.completed.values()]) / 1000,
                tasks_completed=done - skipped,
                tasks_skipped=skipped,
                tasks_failed=len(state.failed),
                tasks_total=total,
            ),
            tasks=self._tasks(state, known, crashed=crashed),
        )

    def _tasks(self, state: State, known: dict[str, Task], *, crashed: bool) -> list[Task]:
        status = statuses(state)
        if all(map("complete".__eq__, status.values())):  # as at the end of most runs
            tasks = _outcomes(state)
        else:
            tasks = [_task(state, spec, status[a], crashed=crashed) for a, spec in state.artifacts.items()]
        sources = {task.id: task for task in tasks for path in task.produces if path.endswith(".py")}
        new = []
        for task in sources.values():
            old = known.get(task.id)
            if old is not None and old.content_hash == task.content_hash and old.imports is not None:
                task.imports = old.imports
            else:
                new.append(task)
        if new:
            files = Files(self._root, {path for spec in state.artifacts.values() for path in spec.produces})
            for task in new[:READ_AT_ONCE]:
                task.imports = self._imports(state.completed[task.id], files, known.get(task.id))
        return tasks

    def _imports(self, done: Completion, files: Files, old: Task | None) -> list[str]:
        found: set[str] = set()
        for output in done.outputs:
            if output.path.endswith(".py") and output.size <= LARGEST:
                data = self._read(output)
                if data is None:  # its bytes are nowhere any more: what was once seen stands
                    return list(old.imports or ()) if old is not None else []
                found.update(imported_files(output.path, data.decode("utf-8", "replace"), files.exists))
        return sorted(found)


def goal_status(state: State, all_done: bool) -> NodeStatus:
    if state.closed:
        return "complete" if all_done and state.artifacts else "blocked"
    return _GOALS[state.status]


def has_open_run(state: State) -> bool:
    """Its newest run has no end yet."""
    return state.run is not None and state.run.status == "running"


def completed_at(state: State) -> str:
    ends = [done.at for done in state.completed.values()] + [skip.at for skip in state.skipped.values()]
    return max(ends, default=state.updated_at)


def title_of(goal: str) -> str:
    """The goal in a line. Titles are shown and never compared: two goals may begin with the same words."""
    line = " ".join(goal.split())
    return line if len(line) <= TITLE else line[: TITLE - 1] + "…"


def _task(state: State, spec: ArtifactSpec, status: ArtifactStatus, *, crashed: bool) -> Task:
    artifact_id = spec.id
    if status == "complete":  # as most are at the end of a run: nothing else is known of it
        return _outcome(state.plan_id, spec, state.completed[artifact_id])
    skip = state.skipped.get(artifact_id)
    done = state.completed.get(artifact_id) if skip is None else skip.last
    failure = state.failed.get(artifact_id)
    shown: NodeStatus | None = _TASKS.get(status)
    if shown is None or (crashed and shown == "running"):
        open_ = any(r in state.artifacts and not is_done(state, r) for r in spec.requires)
        shown = "planned" if open_ else "ready"
    task = _outcome(state.plan_id, spec, done) if done is not None else _without_outcome(spec)
    task.status = shown
    if skip is not None:
        task.skipped = True
    if failure is not None:
        task.error = failure.error
    return task


def _without_outcome(spec: ArtifactSpec) -> Task:
    """An artifact of which nothing came yet."""
    return Task(
        id=spec.id,
        status="planned",
        produces=[],
        content_hash=None,
        requires=list(spec.requires),
        description=spec.description,
        contract=spec.contract,
        category=spec.domain_type or spec.milestone,
        sources=_own_sources(spec) if spec.sources else [],
    )


def _outcomes(state: State) -> list[Task]:
    """The artifacts of a plan that is complete: those that came to one file each, as most do, in one go."""
    plan_id, artifacts = state.plan_id, state.artifacts
    return [
        Task(
            id=artifact_id,
            status="complete",
            produces=[done.outputs[0].path],
            content_hash=done.outputs[0].digest[:16],
            requires=list(spec.requires),
            description=spec.description,
            contract=spec.contract,
            category=spec.domain_type or spec.milestone,
            type=spec.domain_type or _type_of(done.outputs[0]),
            completed_at=done.at,
            how=done.how,
            note=done.note,
            ms=done.ms,
            verified=done.verified,
        )
        if len(done.outputs) == 1 and done.outputs[0].path and not spec.sources and not done.integrates
        else _outcome(plan_id, spec, done)
        for (artifact_id, spec), done in zip(
            artifacts.items(), map(state.completed.__getitem__, artifacts), strict=True
        )
    ]


def _outcome(plan_id: str, spec: ArtifactSpec, done: Completion) -> Task:
    """An artifact with what came of it: all at once, for there are many."""
    outputs, kind = done.outputs, spec.domain_type
    if len(outputs) == 1:
        produces, found = [outputs[0].path or f"{plan_id}:{spec.id}#text"], outputs[0].digest[:16]
    else:
        produces, found = [o.path or f"{plan_id}:{spec.id}#text" for o in outputs], content_hash(done)
    task = Task(  # with one argument more, Python would make a dictionary of all of them first
        id=spec.id,
        status="complete",
        produces=produces,
        content_hash=found,
        requires=list(spec.requires),
        description=spec.description,
        contract=spec.contract,
        category=kind or spec.milestone,
        type=kind or (_type_of(outputs[0]) if outputs else "text"),
        completed_at=done.at,
        how=done.how,
        note=done.note,
        ms=done.ms,
        verified=done.verified,
    )
    if spec.sources:
        task.sources = _own_sources(spec)
    if len(outputs) > 1:
        task.hashes = [output.digest[:16] for output in outputs]
    if done.integrates:
        task.integrates = {kind: list(names) for kind, names in done.integrates.items()}
    return task


def _own_sources(spec: ArtifactSpec) -> list[str]:
    return [path for path in spec.sources if not path.startswith(".headway/")]


def _type_of(output: Output) -> str:
    path = output.path
    if not path:
        return "text"
    if output.kind == "tree":
        return "folder"
    name, _, suffix = path.rpartition(".")
    if not name or name[-1] == "/" or "/" in suffix:  # no dot in its last part, or nothing before it
        return "file"
    return "python_module" if suffix == "py" else suffix


# Edges.


def nodes_of(goal: GoalDetail) -> dict[str, str]:
    """The nodes of a goal's own tasks, by their ids; any other name is a node's already."""
    goal_id = goal.id
    return {task.id: f"{goal_id}:{task.id}" for task in goal.tasks}  # as `task_id` has it, without so many calls


def edges_of(goal: GoalDetail, tasks: Iterable[Task] | None = None) -> dict[str, Edge]:
    """The edges that a goal brings, or some of its tasks, by id: what depends on what, what produces what, what is
    integrated with what."""
    some = goal.tasks if tasks is None else list(tasks)
    if not some:
        return {}
    try:
        return _edges(goal, some, str.encode)
    except UnicodeEncodeError:  # to allow for names that are no text takes half as long again
        return _edges(goal, some, _encoded)


def _edges(goal: GoalDetail, tasks: list[Task], encode: Callable[[str], bytes]) -> dict[str, Edge]:
    """In one loop, as `_edge` makes them: there are several for each task."""
    own = nodes_of(goal)
    found: dict[str, Edge] = {}
    goal_id, begun, node_of, new_id = goal.id, goal.created_at, own.get, _EDGE_ID.copy
    for task in tasks:
        node = own[task.id]
        end, ts = f"\0{node}\0{goal_id}", task.completed_at or begun
        sources = [node_of(name, name) for name in task.requires] if task.requires else task.sources
        for source in sources if sources is task.sources else sources + task.sources:
            digest = new_id()
            digest.update(encode(f"dependency\0\0{source}{end}"))
            edge_id = digest.hexdigest()
            found[edge_id] = Edge(id=edge_id, source=source, target=node, type="dependency", ts=begun, goal_id=goal_id)
        for path in task.produces:
            digest = new_id()
            digest.update(encode(f"produces\0\0{node}\0{path}\0{goal_id}"))
            edge_id = digest.hexdigest()
            found[edge_id] = Edge(id=edge_id, source=node, target=path, type="produces", ts=ts, goal_id=goal_id)
        if task.imports or task.integrates:
            found.update((edge.id, edge) for edge in _integrations(task, own, ts, goal_id))
    return found


def edge_lines(goal: GoalDetail) -> bytes | None:
    """The lines of all edges that a goal brings, as `edges_of` has them, without making a value of each; None where
    that takes more: some integrate, or name something twice, or names have to be escaped."""
    tasks, own = goal.tasks, nodes_of(goal)
    strange = [name for task in tasks for name in task.sources]
    names = [*own, *[path for task in tasks for path in task.produces], *[task.completed_at for task in tasks]]
    if not goal.created_at or not are_verbatim([goal.id, goal.created_at, *names, *strange]):
        return None
    found: list[bytes] = []
    for at in range(0, len(tasks), AT_ONCE):
        lines = _lines(goal, own, tasks[at : at + AT_ONCE])
        if lines is None:
            return None
        found.append("".join(lines).encode())
    return b"".join(found)


def _lines(goal: GoalDetail, own: Mapping[str, str], tasks: Iterable[Task]) -> list[str] | None:
    """Those of some tasks: of more of them, what is made for the first would be out of reach before it is used."""
    goal_id, begun, node_of, new_id = goal.id, goal.created_at, own.get, _EDGE_ID.copy
    found: list[str] = []
    for task in tasks:
        node, requires, made = own[task.id], task.requires, task.produces
        end = f"\0{node}\0{goal_id}"
        rest = f'","target":"{node}","type":"dependency","ts":"{begun}","goalId":"{goal_id}"}}\n'
        try:
            sources = [own[name] for name in requires]
        except KeyError:  # of others
            sources = [node_of(name, name) for name in requires]
            if not are_verbatim(sources):
                return None
        if task.sources:
            sources += task.sources
        if task.imports or task.integrates or len({*sources}) < len(sources) or len(made) > len({*made}):
            return None
        for source in sources:
            edge_id = new_id()
            edge_id.update(f"dependency\0\0{source}{end}".encode())
            found.append(f'{{"id":"{edge_id.hexdigest()}","source":"{source}{rest}')
        for path in made:
            edge_id = new_id()
            edge_id.update(f"produces\0\0{node}\0{path}\0{goal_id}".encode())
            found.append(
                f'{{"id":"{edge_id.hexdigest()}","source":"{node}","target":"{path}","type":"produces",'
                f'"ts":"{task.completed_at or begun}","goalId":"{goal_id}"}}\n'
            )
    return found


def are_verbatim(names: Iterable[str]) -> bool:
    """Whether these stand in JSON as they are."""
    try:
        data = "".join(names).encode()
    except UnicodeEncodeError:
        return False
    return len(data.translate(None, _ESCAPED)) == len(data)


def _integrations(task: Task, own: Mapping[str, str], ts: str, goal_id: str) -> Iterator[Edge]:
    for path in task.imports or ():
        for target in task.produces:
            if target.endswith(".py") and target != path:
                yield _integration("import", path, target, ts, goal_id, verified=True)
    for kind, names in task.integrates.items():
        for name in names:
            yield _integration(kind, own.get(name, name), own[task.id], ts, goal_id, verified=task.verified)


def changed_edges(before: GoalDetail | None, now: GoalDetail) -> tuple[list[Edge], list[Edge]]:
    """Edges that came and edges that went. Tasks that are as they were are not looked into."""
    if before is None:
        return list(edges_of(now).values()), []
    was, names = {task.id: task for task in before.tasks}, {task.id for task in now.tasks}
    same_names = was.keys() == names
    changed = [task for task in now.tasks if not same_names or _ties(was[task.id]) != _ties(task)]
    left = [was[task.id] for task in changed if task.id in was]
    left += [task for task in before.tasks if task.id not in names]
    came, went = edges_of(now, changed), edges_of(before, left)
    return [e for i, e in came.items() if i not in went], [e for i, e in went.items() if i not in came]


def _ties(task: Task) -> tuple[object, ...]:
    return (task.requires, task.produces, task.sources, task.imports, task.integrates)


def temporal_edge(earlier: str, later: str, ts: str) -> Edge:
    """The goal that was begun before this one."""
    return _edge("temporal", earlier, later, ts, later)


_EDGE_ID = blake2b(digest_size=8)
"""Copied for every edge: that is quicker than making one."""


def _edge(type_: EdgeType, source: str, target: str, ts: str, goal: str, kind: str = "") -> Edge:
    edge_id = _EDGE_ID.copy()
    edge_id.update(_encoded(f"{type_}\0{kind}\0{source}\0{target}\0{goal}"))
    return Edge(id=edge_id.hexdigest(), source=source, target=target, type=type_, ts=ts, kind=kind, goal_id=goal)


def _encoded(name: str) -> bytes:
    return name.encode("utf-8", "surrogatepass")


def _integration(kind: str, source: str, target: str, ts: str, goal: str, *, verified: bool) -> Edge:
    edge = _edge("integrates", source, target, ts, goal, kind)
    edge.verified = verified
    return edge


def uses_of(task: Task, own: Mapping[str, str]) -> list[str]:
    """The nodes that a task builds on, of whatever kind; `own` are those of its goal."""
    names = [*task.requires, *chain.from_iterable(task.integrates.values())] if task.integrates else task.requires
    found = [own.get(name, name) for name in names]
    if task.sources or task.imports:
        found += (*task.sources, *(task.imports or ()))
    return found


# What it made.


def path_of(task: Task) -> str | None:
    """The first file of a task; None if it is a text."""
    return next((path for path in task.produces if not path.endswith("#text")), None)


def manifest_of(goal: GoalDetail, own: Mapping[str, str]) -> Iterator[tuple[str, ManifestEntry]]:
    """What a goal made, by node; `own` are those of its tasks."""
    goal_id = goal.id
    for task in goal.tasks:
        kind, node, produces = task.type or "file", own[task.id], task.produces
        hashes = task.hashes or (task.content_hash or "",)
        for path, found in zip(produces, hashes, strict=False) if len(produces) != 1 else ((produces[0], hashes[0]),):
            yield (
                path,
                ManifestEntry(
                    id=task.id,
                    path=None if path.endswith("#text") else path,
                    type=kind,
                    created_by=goal_id,
                    content_hash=found,
                    last_modified=task.completed_at,
                    used_by=[],
                    task=node,
                    goals=[goal_id],
                ),
            )
