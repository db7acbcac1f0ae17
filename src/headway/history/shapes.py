"""The values of a project's history, in the shapes that `dag/` has on disk and that callers are given.

Keys are RFC-105's, in camel case as there; docs/history.md describes each file. A node is named by its goal (`api`), by
goal and artifact (`api:UserModel`), or, if it is a file, by its path: names never collide and never hold a folder of
this machine.
"""

# No annotations from __future__: msgspec would have to parse all of these texts before it reads the first value.

from typing import Any, Literal, NamedTuple, dataclass_transform

import msgspec

VERSION = 1
"""Of all files in dag/. Newer ones are refused untouched."""

NodeStatus = Literal["planned", "ready", "running", "complete", "failed", "blocked"]
EdgeType = Literal["dependency", "produces", "integrates", "temporal", "cross_project"]
TITLE = 80


@dataclass_transform(kw_only_default=True, field_specifiers=(msgspec.field,))
class Shape(msgspec.Struct, rename="camel", omit_defaults=True, kw_only=True, gc=False):
    """Base of all shapes: unknown keys are passed over, so that a reader of this version reads what it knows."""


class Task(Shape, kw_only=True):
    """An artifact of a plan, as its goal's file holds it."""

    id: str
    status: NodeStatus
    produces: list[str]
    content_hash: str | None
    hashes: list[str] = msgspec.field(default_factory=list)
    """Of each output, where there are several."""
    requires: list[str] = msgspec.field(default_factory=list)
    description: str = ""
    contract: str = ""
    category: str = ""
    type: str = ""
    sources: list[str] = msgspec.field(default_factory=list)
    integrates: dict[str, list[str]] = msgspec.field(default_factory=dict)
    imports: list[str] | None = None
    completed_at: str = ""
    how: str = ""
    note: str = ""
    ms: int = 0
    verified: bool = False
    skipped: bool = False
    error: str = ""


class Metrics(msgspec.Struct, kw_only=True, gc=False):
    """What a goal took. RFC-105 writes these keys with underscores."""

    duration_seconds: float = 0.0
    tasks_completed: int = 0
    tasks_skipped: int = 0
    tasks_failed: int = 0
    tasks_total: int = 0


class Learned(Shape, kw_only=True):
    """Whose a learning is, when, and about which artifact."""

    by: str = ""
    at: str = ""
    artifact: str = ""


class GoalDetail(Shape, kw_only=True):
    """`dag/goals/<id>.json`: a goal with its tasks. `seq` and `size` are of the ledger that it reflects."""

    version: int
    id: str
    title: str
    description: str
    status: NodeStatus
    created_at: str
    updated_at: str
    completed_at: str | None
    crash_recovery: bool = False
    open_run: bool = False
    """Its newest run has no end; whether somebody is still at it only its lock can tell."""
    closed_at: str = ""
    problem: str = ""
    goal_hash: str = ""
    seq: int = 0
    size: int = 0
    earlier_goals: list[str] = msgspec.field(default_factory=list)
    learnings: list[str]
    learned: list[Learned] = msgspec.field(default_factory=list)
    """Of each learning, in the same order."""
    metrics: Metrics
    compacted: bool = False
    tasks: list[Task]

    @property
    def progress(self) -> int:
        """From 0 to 100."""
        total = self.metrics.tasks_total
        return 100 * (self.metrics.tasks_completed + self.metrics.tasks_skipped) // total if total else 0


class GoalEntry(Shape, kw_only=True):
    """A goal in the index."""

    id: str
    title: str
    status: NodeStatus
    created_at: str
    completed_at: str | None
    updated_at: str = ""
    task_count: int = 0
    done: int = 0
    artifacts: int = 0
    edges: int = 0
    ms: int = 0
    seq: int = 0
    size: int = 0
    detail_seq: int = 0
    """The event that its file reflects, where that is an earlier one: large goals are not written after every run."""
    requires: list[str] = msgspec.field(default_factory=list)
    crash_recovery: bool = False
    open_run: bool = False
    gone: bool = False
    problem: str = ""


class Recent(Shape, kw_only=True):
    """An artifact that was completed lately."""

    id: str
    path: str | None
    goal_id: str
    completed_at: str = ""


class Summary(Shape, kw_only=True, omit_defaults=False):
    """How much there is."""

    total_goals: int = 0
    completed_goals: int = 0
    total_artifacts: int = 0
    total_edges: int = 0


class DagIndex(Shape, kw_only=True):
    """`dag/index.json`: all goals ever run, in the order in which they were begun.

    `edges_size` is how far the edge log is known; `behind` are goals that the manifest does not reflect yet, with so
    many `changes` of artifacts.
    """

    version: int
    project_id: str
    last_updated: str
    summary: Summary
    goals: list[GoalEntry]
    recent_artifacts: list[Recent]
    edges_size: int = 0
    manifest_size: int = 0
    behind: list[str] = msgspec.field(default_factory=list)
    changes: int = 0


class Edge(Shape, kw_only=True):
    """A line of `dag/edges.jsonl`. Of a dependency: the target depends on the source. `gone` takes it back."""

    id: str
    source: str
    target: str
    type: EdgeType
    ts: str = ""
    kind: str = ""
    verified: bool | None = None
    sequence: int | None = None
    goal_id: str = ""
    gone: bool = False


class ManifestEntry(Shape, kw_only=True):
    """One file (or text) that exists because some goal wanted it."""

    id: str
    path: str | None
    type: str
    created_by: str
    content_hash: str
    last_modified: str
    used_by: list[str]
    task: str = ""
    goals: list[str] = msgspec.field(default_factory=list)
    standing: Literal["", "stands", "changed", "missing"] = ""


class Manifest(Shape, kw_only=True):
    """`dag/artifacts/manifest.json`."""

    version: int
    last_updated: str
    artifacts: dict[str, ManifestEntry]


class Node(Shape, kw_only=True):
    """One node of the graph, whatever its type."""

    id: str
    type: Literal["goal", "task", "artifact", "external"]
    title: str
    description: str = ""
    status: NodeStatus = "complete"
    progress: int = 0
    depends_on: list[str] = msgspec.field(default_factory=list)
    produces: list[str] = msgspec.field(default_factory=list)
    requires: list[str] = msgspec.field(default_factory=list)
    created_at: str = ""
    completed_at: str = ""
    goal_id: str = ""
    project_id: str = ""
    content_hash: str = ""
    category: str = ""
    contract: str = ""
    path: str = ""
    ms: int = 0


class ProjectDag(Shape, kw_only=True):
    """Everything at once: the nodes by id, and all edges."""

    project_id: str
    project_path: str
    version: int
    last_updated: str
    total_goals: int
    completed_goals: int
    goals: dict[str, Node]
    tasks: dict[str, Node]
    artifacts: dict[str, Node]
    externals: dict[str, Node]
    edges: list[Edge]


class DagUpdated(NamedTuple):
    """Told to whoever listens: the history of a project has changed, here by one goal."""

    project_id: str
    goal_id: str
    status: str
    last_updated: str
    type: str = "dag_updated"


def to_dict(value: msgspec.Struct) -> dict[str, Any]:
    """A shape as its JSON document."""
    found: dict[str, Any] = msgspec.to_builtins(value)
    return found


def task_id(goal: str, artifact: str) -> str:
    """The node of an artifact of a goal."""
    return f"{goal}:{artifact}"
