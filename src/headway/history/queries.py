"""Questions to a project's history: what would a change touch, where does this come from, what exists already.

Answers are documents for `--json` and for people alike. Reads; decides nothing.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from contextlib import suppress
from typing import Any, NamedTuple

from headway.core import events as ev
from headway.core.ids import name_elsewhere
from headway.core.plan import ArtifactSpec
from headway.core.state import Completion
from headway.errors import HeadwayError, NotFound
from headway.files.observe import Observer
from headway.history.dag import Dag
from headway.history.goals import nodes_of, uses_of
from headway.history.shapes import GoalDetail, Task, task_id

UP, DOWN, BOTH = "up", "down", "both"


class Place(NamedTuple):
    """A task of a goal."""

    goal: GoalDetail
    task: Task

    @property
    def node(self) -> str:
        return task_id(self.goal.id, self.task.id)


class Graph:
    """Who builds on whom, over all goals: loaded goal by goal, as far as a question leads."""

    def __init__(self, dag: Dag) -> None:
        self.dag = dag
        self.goals: dict[str, GoalDetail] = {}

    def goal(self, goal_id: str) -> GoalDetail | None:
        """A goal, or None if there is none that can be read."""
        if goal_id not in self.goals:
            try:
                self.goals[goal_id] = self.dag.goal(goal_id)
            except HeadwayError:
                return None
        return self.goals[goal_id]

    def place(self, node: str) -> Place | None:
        """The task that a node is."""
        name = name_elsewhere(node)
        goal = self.goal(name[0]) if name is not None else None
        if goal is None or name is None:
            return None
        return next((Place(goal, task) for task in goal.tasks if task.id == name[1]), None)

    def named(self, word: str) -> list[Place]:
        """Tasks that a word means: `api:UserModel`, `UserModel`, or a file that they made; the newest last."""
        exact = self.place(word)
        if exact is not None:
            return [exact]
        path = os.path.normpath(word)
        found = [
            Place(goal, task)
            for goal in self.dag.goals()
            for task in goal.tasks
            if task.id == word or word in task.produces or any(_holds(p, path) for p in task.produces)
        ]
        return sorted(found, key=lambda place: place.task.completed_at)

    def readers(self, word: str) -> list[Place]:
        """Tasks that were made from this file as a source, though no goal made it: as their ledgers have it, or as
        their plans name it where they were never made."""
        path, found = os.path.normpath(word), []
        for goal in self.dag.goals():
            execution = None
            with suppress(HeadwayError):
                execution = self.dag.store.folder(goal.id).load()
            completed = execution.state.completed if execution is not None else {}
            for task in goal.tasks:
                read = completed[task.id].fp.sources if task.id in completed else ()
                if any(_holds(source, path) for source in (*read, *task.sources)):
                    found.append(Place(goal, task))
        return found

    def found(self, word: str) -> tuple[list[Place], list[Place]]:
        """What a word means: who made it, or else who reads it."""
        made = self.named(word)
        read = [] if made else self.readers(word)
        if not made and not read:
            from headway.core.nearest import Nearest

            names = [task.id for goal in self.dag.goals() for task in goal.tasks]
            near = Nearest(list(dict.fromkeys(names))).of(word)
            raise NotFound(
                f"No goal has made {word}",
                facts={"did you mean": near} if near else {},
                hint=f"headway dag search {word}",
                code="node.none",
            )
        return made, read

    def above(self, starts: Iterable[str]) -> list[Place]:
        """Everything that builds on these nodes, directly or not, nearest first: in all goals that could."""
        users = self._users()
        seen = set(starts)
        queue = list(seen)
        found: list[Place] = []
        for node in queue:
            for user in users.get(node, ()):
                if user.node not in seen:
                    seen.add(user.node)
                    found.append(user)
                    queue += [user.node, *(p for p in user.task.produces if p not in seen)]
                    seen.update(user.task.produces)
        return found

    def below(self, start: Place) -> list[str]:
        """Everything that a task rests on, directly or not, nearest first; files outside of all goals included."""
        makers = self._makers()
        nodes: dict[str, dict[str, str]] = {}
        seen = {start.node}
        found: list[str] = []
        queue = [start]
        for place in queue:
            own = nodes.get(place.goal.id)
            if own is None:
                own = nodes[place.goal.id] = nodes_of(place.goal)
            for used in uses_of(place.task, own):
                below = self.place(used) or makers.get(used)
                node = below.node if below is not None else used
                if node not in seen:
                    seen.add(node)
                    found.append(node)
                    if below is not None:
                        queue.append(below)
        return found

    def _users(self) -> dict[str, list[Place]]:
        users: dict[str, list[Place]] = {}
        for goal in self.dag.goals():
            self.goals[goal.id] = goal
            own = nodes_of(goal)
            for task in goal.tasks:
                place = Place(goal, task)
                for used in dict.fromkeys(uses_of(task, own)):
                    users.setdefault(used, []).append(place)
        return users

    def _makers(self) -> dict[str, Place]:
        """Who made each file last."""
        makers: dict[str, Place] = {}
        for goal in self.dag.goals():
            for task in goal.tasks:
                for path in task.produces:
                    known = makers.get(path)
                    if known is None or known.task.completed_at <= task.completed_at:
                        makers[path] = Place(goal, task)
        return makers


def impact(dag: Dag, word: str) -> dict[str, Any]:
    """What would be touched if this changed, in all goals of the project, and what making it again cost last."""
    graph = Graph(dag)
    starts, readers = graph.found(word)
    touched = [*readers, *graph.above(_nodes(starts or readers))]
    return {
        "of": [place.node for place in starts] or [os.path.normpath(word)],
        "touched": [_touched(place) for place in touched],
        "goals": sorted({place.goal.id for place in touched}),
        "files": sorted({p for place in touched for p in place.task.produces if not p.endswith("#text")}),
        "cost": {
            "artifacts": len(touched),
            "ms": sum(place.task.ms for place in touched),
            "tokens": 0,
            "cost_usd": 0.0,
            "basis": "what each took when it was last made; early cut-off may spare some",
        },
    }


def _touched(place: Place) -> dict[str, Any]:
    return {
        "node": place.node,
        "goal": place.goal.id,
        "artifact": place.task.id,
        "status": place.task.status,
        "produces": place.task.produces,
        "how": place.task.how,
        "ms": place.task.ms,
    }


def provenance(dag: Dag, word: str, *, direction: str = BOTH) -> dict[str, Any]:
    """Where something comes from: every goal that made it, how, from what; what it rests on and what rests on it."""
    graph = Graph(dag)
    places, readers = graph.found(word)
    observer = Observer(dag.root, {})
    newest = places[-1:]
    document: dict[str, Any] = {
        "of": word,
        "made_by": [_origin(dag, place, observer) for place in places],
        "current": newest[0].node if newest else os.path.normpath(word),
    }
    if direction in (UP, BOTH):
        document["up"] = graph.below(newest[0]) if newest else []
    if direction in (DOWN, BOTH):
        document["down"] = [place.node for place in (*readers, *graph.above(_nodes(newest or readers)))]
    return document


def _nodes(places: Iterable[Place]) -> list[str]:
    return [name for place in places for name in (place.node, *place.task.produces)]


def _holds(known: str, path: str) -> bool:
    """Whether a path is this one, or lies in it."""
    base = known.rstrip("/")
    return path == base or path.startswith(f"{base}/")


def _origin(dag: Dag, place: Place, observer: Observer) -> dict[str, Any]:
    """One goal's part in it, as its ledger tells; as its file tells where the ledger is gone."""
    goal, task = place.goal, place.task
    found: dict[str, Any] = {
        "node": place.node,
        "goal": {"id": goal.id, "title": goal.title, "status": goal.status, "createdAt": goal.created_at},
        "artifact": task.id,
        "status": task.status,
        "completedAt": task.completed_at or None,
        "contentHash": task.content_hash,
        "how": task.how,
        "note": task.note,
        "outputs": _standing(task, observer),
        "cost": {"ms": task.ms, "tokens": 0, "cost_usd": 0.0},
        "run": None,
        "recipe": None,
        "prompt": None,
        "model": None,
        "inputs": {},
        "sources": {},
        "completions": [],
    }
    try:
        execution = dag.store.folder(goal.id).load()
    except HeadwayError as error:
        return {**found, "problem": error.message}
    if execution is None or task.id not in execution.state.artifacts:
        return found
    state = execution.state
    skip = state.skipped.get(task.id)
    done = state.completed.get(task.id) if skip is None else skip.last
    found["recipe"] = _recipe(state.artifacts[task.id], done)
    if done is not None:
        found["model"] = done.tier or None
        found["prompt"] = _prompt(dag, done.prompt)
        found["inputs"], found["sources"] = done.fp.inputs, done.fp.sources
        found["by"] = done.by
        history = list(_completions(dag, goal.id, task.id))
        found["completions"] = history
        found["run"] = next((entry["run"] for entry in reversed(history) if entry["seq"] == done.seq), None)
    return found


def _prompt(dag: Dag, name: str) -> dict[str, Any] | None:
    """What it was made with, as it was given; without its text where the blob is gone."""
    if not name:
        return None
    with suppress(HeadwayError):
        return {"digest": name, "text": dag.store.blobs.get(name).decode("utf-8", "replace")}
    return {"digest": name, "text": None}


def _standing(task: Task, observer: Observer) -> list[dict[str, Any]]:
    """Each output, and whether it is still what was made: "stands", "edited since" or "missing"."""
    outputs = []
    for path, digest in zip(task.produces, task.hashes or [task.content_hash or ""], strict=False):
        if path.endswith("#text"):
            outputs.append({"path": None, "contentHash": digest, "standing": "stands"})
            continue
        now = observer.look(path.rstrip("/")).digest
        standing = "missing" if not now else "stands" if now.startswith(digest) else "changed"
        outputs.append({"path": path, "contentHash": digest, "standing": standing})
    return outputs


def _recipe(spec: ArtifactSpec, done: Completion | None) -> dict[str, Any]:
    kind = "command" if spec.run else "function" if spec.make else "agent" if spec.agent else "hand"
    text = spec.run or spec.make or spec.agent
    return {"kind": kind, "text": text, "fingerprint": done.fp.recipe if done is not None else "", "args": spec.args}


def _completions(dag: Dag, plan_id: str, artifact_id: str) -> Iterator[dict[str, Any]]:
    """Every time that it was made or accepted: when, in which run, what came of it."""
    run = ""
    ends = (ev.RunCompleted, ev.RunFailed, ev.RunPaused)
    for record in dag.store.folder(plan_id).history(naming=(artifact_id, *(k.type for k in (ev.RunStarted, *ends)))):
        event = record.event
        if isinstance(event, ev.RunStarted):
            run = event.run
        elif isinstance(event, ends):
            run = ""
        elif isinstance(event, ev.ArtifactCompleted | ev.OutputAccepted) and event.id == artifact_id:
            how = event.how if isinstance(event, ev.ArtifactCompleted) else "accepted"
            hashes = [output.digest[:16] for output in event.outputs]
            yield {
                "seq": record.seq,
                "at": record.ts,
                "by": record.by,
                "run": run or None,
                "how": how,
                "hashes": hashes,
            }
