"""The values of a workspace's and of the environment's history, in the shapes that they have on disk.

Keys are those of RFC-105 (and of RFC-103 and 104 for relations and patterns), in camel case; docs/workspace.md
describes each file. A project is named by its path below the workspace; a node of one by that path, a colon, and its
name there: `api:users:UserModel`.
"""

from __future__ import annotations

from typing import Literal

import msgspec

from headway.history.relations import Link
from headway.history.shapes import Edge, NodeStatus, Shape
from headway.history.survey import Facts

VERSION = 1
"""Of workspace-index.json and environment.json. Newer ones are refused untouched."""


class Counts(Shape, kw_only=True, omit_defaults=False):
    """How much there is of a project."""

    goals: int = 0
    completed: int = 0
    artifacts: int = 0
    failed: int = 0
    running: int = 0


class Spent(Shape, kw_only=True, omit_defaults=False):
    """What was spent in a month."""

    goals: int = 0
    ms: int = 0
    tokens: int = 0
    cost_usd: float = 0.0


class Repeated(Shape, kw_only=True):
    """Something that happened several times: an error, or a file that goal after goal makes again."""

    what: str
    count: int
    where: list[str] = msgspec.field(default_factory=list)


class Needed(Shape, kw_only=True):
    """A requirement of another project, as a plan names it."""

    goal: str
    artifact: str
    required: str


class Card(Shape, kw_only=True):
    """A project in a workspace. `stamp` tells whether its history is still the one that was looked at."""

    id: str
    name: str
    path: str
    summary: Counts
    tech_stack: list[str]
    last_activity: str = ""
    health_score: float | None = None
    confidence: float = 0.0
    evidence: list[str] = msgspec.field(default_factory=list)
    moved_from: str = ""
    problem: str = ""
    months: dict[str, Spent] = msgspec.field(default_factory=dict)
    failures: list[Repeated] = msgspec.field(default_factory=list)
    remade: list[Repeated] = msgspec.field(default_factory=list)
    needed: list[Needed] = msgspec.field(default_factory=list)
    goal_status: dict[str, NodeStatus] = msgspec.field(default_factory=dict)
    facts: Facts
    stamp: list[list[int]] = msgspec.field(default_factory=list)
    unsettled: bool = False


class Gone(Shape, kw_only=True):
    """A project that was here and is not any more."""

    id: str
    name: str
    path: str
    since: str
    note: str


class CrossEdge(Edge, kw_only=True):
    """An edge between two projects. The target depends on the source."""

    source_project: str
    target_project: str
    source_artifact: str = ""
    target_artifact: str = ""


class SharedArtifact(Shape, kw_only=True):
    """The same in several projects: the same bytes, or the same contract. `nodes`: one of each project."""

    key: str
    kind: Literal["content", "contract"]
    id: str
    projects: list[str]
    nodes: list[str]
    text: str = ""


class Pattern(Shape, kw_only=True):
    """Something that several projects do in the same way; `confidence` is the part of the projects that do."""

    name: str
    description: str
    frequency: int
    examples: list[str]
    confidence: float


class UpperGoal(Shape, kw_only=True):
    """A goal of the whole workspace: made of goals of its projects, or a plan of the workspace's own folder."""

    id: str
    title: str
    status: NodeStatus
    done: int
    total: int
    parts: dict[str, str] = msgspec.field(default_factory=dict)
    """Each goal of a project, and its status; "unknown" where there is none such."""
    own: bool = False


Topology = Literal["monorepo", "polyrepo", "hybrid"]


class WorkspaceIndex(Shape, kw_only=True):
    """`dag/workspace-index.json`. `folders`: what was listed to find the projects, with its stat."""

    version: int
    workspace_id: str
    name: str
    last_updated: str
    topology: Topology
    links: list[Link]
    cross_project_dependencies: list[CrossEdge]
    shared_artifacts: list[SharedArtifact]
    shared_patterns: list[str]
    patterns: list[Pattern]
    goals: list[UpperGoal]
    gone: list[Gone]
    notes: list[str]
    folders: dict[str, list[int]]
    said: list[int] = msgspec.field(default_factory=list)
    kept: str = ""
    """Names the cache that goes with this index."""
    shared_total: int = 0
    own: Card | None = None
    projects: list[Card]


class WorkspaceDag(Shape, kw_only=True):
    """A workspace as callers get it: projects by path, relations, edges between projects, what they share."""

    workspace_id: str
    workspace_path: str
    name: str
    version: int
    last_updated: str
    topology: Topology
    projects: dict[str, Card]
    links: list[Link]
    cross_project_edges: list[CrossEdge]
    shared_artifacts: list[SharedArtifact]
    shared_patterns: list[str]
    patterns: list[Pattern]
    goals: list[UpperGoal]
    gone: list[Gone]
    notes: list[str]


class WorkspaceSummary(Shape, kw_only=True):
    """A workspace in the environment."""

    id: str
    name: str
    path: str
    project_count: int
    total_goals: int
    completed_goals: int
    completion_rate: float
    last_activity: str = ""
    registered: bool = False
    problem: str = ""


class ProjectEntry(Shape, kw_only=True):
    """A project in the environment."""

    id: str
    name: str
    path: str
    workspace: str
    project_type: str
    health_score: float | None
    goals: int
    completed: int
    last_activity: str = ""


class Root(Shape, kw_only=True):
    """A folder in which workspaces are looked for."""

    path: str
    discovered_at: str
    workspaces: list[str]
    problem: str = ""


class TechStack(Shape, kw_only=True, omit_defaults=False):
    """What this machine's projects are written in and with: how many projects each."""

    languages: dict[str, int]
    tools: dict[str, int]


class Insight(Shape, kw_only=True):
    """Something worth knowing over all projects."""

    kind: Literal["repeated_failure", "made_again", "cost", "health"]
    text: str
    count: int = 0
    projects: list[str] = msgspec.field(default_factory=list)
    figures: dict[str, float] = msgspec.field(default_factory=dict)


class Cost(Spent, kw_only=True, omit_defaults=False):
    """What a project took in a month."""

    project: str
    month: str


class EnvironmentDag(Shape, kw_only=True):
    """`environment.json`, and what callers get."""

    version: int
    user_id: str
    last_updated: str
    workspaces: list[WorkspaceSummary]
    roots: list[Root]
    projects: list[ProjectEntry]
    tech_stack: TechStack
    patterns: list[Pattern]
    insights: list[Insight]
    costs: list[Cost]
    notes: list[str] = msgspec.field(default_factory=list)
