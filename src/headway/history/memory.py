"""Memory: what is known that bears on a goal, from this project's history and from those it is related to.

Learnings, related goals and artifacts that exist, the nearest first, within a budget of tokens; each line says where it
comes from. Quoted, never obeyed: what goals and learnings say is text that somebody wrote.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from contextlib import suppress
from typing import Any, Literal, NamedTuple

from headway.core.clipping import BYTES_PER_TOKEN, clip
from headway.errors import HeadwayError, UsageError
from headway.files.identity import HOME, find_workspace
from headway.history.cards import dag_of
from headway.history.dag import Dag
from headway.history.documents import read_index
from headway.history.search import Hit, Search
from headway.history.shapes import GoalDetail
from headway.history.upper_shapes import WorkspaceIndex

LONGEST = 300
GOALS = 5
ARTIFACTS = 12
NEIGHBOURS = 3
SURE = 0.85
"""Projects that are related with less confidence are not asked."""

UNREADABLE = (HeadwayError, OSError)
"""Of a history that cannot be read nothing is recalled; whoever asks has other work to do."""

Kind = Literal["learning", "goal", "artifact"]


class Line(NamedTuple):
    """Something that is known, and where it comes from."""

    kind: Kind
    text: str
    source: str

    def __str__(self) -> str:
        return f"{self.text} [{self.source}]"

    @property
    def tokens(self) -> int:
        """What it takes at most, with its kind and a line break."""
        return -(-len(f"{self.kind}: {self}\n".encode()) // BYTES_PER_TOKEN)


class GoalContext(NamedTuple):
    """What bears on a goal. `left_out` lines did not fit."""

    goal: str
    budget: int
    tokens: int
    lines: list[Line]
    related_goals: list[str]
    left_out: int = 0

    @property
    def learnings(self) -> list[Line]:
        """What was learned."""
        return [line for line in self.lines if line.kind == "learning"]

    @property
    def existing_artifacts(self) -> list[Line]:
        """What was made already."""
        return [line for line in self.lines if line.kind == "artifact"]

    def __str__(self) -> str:
        return "".join(f"{line.kind}: {line}\n" for line in self.lines)

    def to_dict(self) -> dict[str, Any]:
        """The same for machines."""
        return {**self._asdict(), "lines": [line._asdict() for line in self.lines]}


def recall(dag: Dag, goal: str, budget: int, *, plan_id: str = "", learnings_only: bool = False) -> GoalContext:
    """What is known that bears on a goal."""
    if budget < 0:
        raise UsageError("A budget is not negative", facts={"budget": budget}, hint="give tokens", code="budget")
    found: dict[Kind, list[Line]] = {"learning": [], "goal": [], "artifact": []}
    related: list[str] = []
    if plan_id:
        found["learning"] += _learnings(_goal(dag, plan_id), "")
    for way, other in (("", dag), *_neighbours(dag.root)):
        for goal_id, hits in _related(other, goal):
            if way or goal_id != plan_id:
                name = f"{way}:{goal_id}" if way else goal_id
                related.append(name)
                detail = _goal(other, goal_id)
                found["learning"] += _learnings(detail, way)
                found["goal"] += _told(detail, name)
                found["artifact"] += _artifacts(detail, hits, way)
    order = found["learning"] if learnings_only else _interleaved(found)
    return _within(goal, budget, list(dict.fromkeys(order)), related)


def _within(goal: str, budget: int, order: list[Line], related: list[str]) -> GoalContext:
    """As much as fits, in order; a line that does not fit makes room for a shorter one."""
    lines: list[Line] = []
    left = budget
    for line in order:
        if line.tokens <= left:
            lines.append(line)
            left -= line.tokens
    kinds: tuple[Kind, ...] = ("learning", "goal", "artifact")
    lines.sort(key=lambda line: kinds.index(line.kind))
    return GoalContext(goal, budget, budget - left, lines, related, len(order) - len(lines))


def _interleaved(found: dict[Kind, list[Line]]) -> Iterator[Line]:
    """Two learnings, a goal, two artifacts, and so on: nothing crowds the rest out."""
    queues = {kind: iter(lines) for kind, lines in found.items()}
    turn: tuple[Kind, ...] = ("learning", "learning", "goal", "artifact", "artifact")
    while queues:
        for kind in turn:
            line = next(queues[kind], None) if kind in queues else None
            if line is not None:
                yield line
            else:
                queues.pop(kind, None)


def _related(dag: Dag, goal: str) -> Iterable[tuple[str, list[Hit]]]:
    with suppress(*UNREADABLE):
        if dag.index().goals:
            return Search(dag, aside=True).related(goal, limit=GOALS).items()
    return ()


def _goal(dag: Dag, goal_id: str) -> GoalDetail | None:
    with suppress(*UNREADABLE):
        return dag.goal(goal_id)
    return None


def _learnings(goal: GoalDetail | None, way: str) -> Iterator[Line]:
    """The newest first."""
    if goal is None:
        return
    for number in reversed(range(len(goal.learnings))):
        about = goal.learned[number] if number < len(goal.learned) else None
        name = f"{goal.id}:{about.artifact}" if about is not None and about.artifact else goal.id
        said = (about.by, about.at[:10]) if about is not None else ()
        source = ", ".join(part for part in (f"{way}:{name}" if way else name, *said) if part)
        yield Line("learning", clip(goal.learnings[number], LONGEST), source)


def _told(goal: GoalDetail | None, name: str) -> Iterator[Line]:
    if goal is None:
        return
    done, total = goal.metrics.tasks_completed + goal.metrics.tasks_skipped, goal.metrics.tasks_total
    failed = next((task for task in goal.tasks if task.error), None)
    said = f"; {failed.id} failed: {failed.error}" if failed is not None else ""
    when = (goal.completed_at or goal.updated_at)[:10]
    told = f"{goal.title} ({goal.status}, {done} of {total} made{said})"
    yield Line("goal", clip(told, LONGEST), f"{name}, {when}")


def _artifacts(goal: GoalDetail | None, hits: list[Hit], way: str) -> Iterator[Line]:
    """What exists of a goal: first what matched, then the rest."""
    if goal is None:
        return
    matched = dict.fromkeys(hit.node.partition(":")[2] for hit in hits if hit.kind in ("artifact", "contract"))
    tasks = {task.id: task for task in goal.tasks if task.status == "complete" and task.completed_at}
    ordered = [*(a for a in matched if a in tasks), *(a for a in tasks if a not in matched)]
    for artifact in ordered[:ARTIFACTS]:
        task = tasks[artifact]
        path = next((p for p in task.produces if not p.endswith("#text")), "")
        about = task.description or task.contract or "made"
        name = f"{goal.id}:{artifact}"
        place = f"{way}/{path}" if way and path else path
        source = ", ".join(part for part in (f"{way}:{name}" if way else name, place) if part)
        yield Line("artifact", clip(f"{artifact}: {about}", LONGEST), source)


def _neighbours(root: str) -> Iterator[tuple[str, Dag]]:
    """Projects that this one depends on or documents, as its workspace was last seen; without one, none."""
    workspace = find_workspace(root)
    if not workspace:
        return
    index: WorkspaceIndex | None = None
    with suppress(HeadwayError):
        index = read_index(workspace)
    here = os.path.relpath(root, workspace)
    links = [link for link in index.links if link.source == here] if index is not None else []
    sure = [link.target for link in links if link.confidence >= SURE and link.relationship != "sibling"]
    for target in sure[:NEIGHBOURS]:
        there = os.path.join(workspace, target)
        if os.path.isdir(os.path.join(there, HOME, "plans")):
            yield os.path.relpath(there, root), dag_of(there)
