"""RFC-040's own interface over the same engine: `IncrementalExecutor`, `ChangeDetector`.

For programs that bring a graph and one function that creates any artifact of it.
"""

from __future__ import annotations

import inspect
import os
from collections.abc import Callable
from typing import Any, NamedTuple

from headway.core.freshness import ChangeReport
from headway.core.graph import ArtifactGraph
from headway.core.ids import hash_goal
from headway.core.plan import ArtifactSpec, PlanSpec
from headway.core.state import Completion
from headway.engine.preview import PlanPreview, report_changes
from headway.engine.result import Options, RunResult, options_of
from headway.project import Project
from headway.projections.saved_execution import SavedExecution
from headway.store import PlanStore
from headway.work import Meant, Work

CreateArtifactFn = Callable[[ArtifactSpec], Any]


class ExecutionResult(NamedTuple):
    """What RFC-040's executor gives back: everything completed, earlier work included, and what failed."""

    completed: dict[str, Completion]
    failed: dict[str, str]
    waves: list[list[str]]
    run: RunResult

    @property
    def success_rate(self) -> float:
        """How much of what was tried or kept is complete."""
        total = len(self.completed) + len(self.failed)
        return len(self.completed) / total if total else 1.0


class IncrementalExecutor:
    """Executes graphs, making only what is stale."""

    def __init__(self, store: PlanStore | None = None, *, project: str | os.PathLike[str] | None = None) -> None:
        where = project
        if where is None:
            base = (
                os.path.dirname(os.path.dirname(os.path.abspath(store.base_path))) if store is not None else os.getcwd()
            )
            where = base
        self.project = Project(where)
        self.work = Work(self.project)

    async def execute(
        self, graph: ArtifactGraph, create_fn: CreateArtifactFn, goal: str, force_rebuild: bool = False, **options: Any
    ) -> ExecutionResult:
        """Make what is stale of the graph by calling `create_fn(spec)` for it."""
        import asyncio

        loop = asyncio.get_running_loop()
        plan_id = self._save(graph, goal)
        functions = {artifact_id: _creator(graph[artifact_id], create_fn) for artifact_id in graph}
        targets, jobs = options.pop("targets", ()), options.pop("jobs", None)
        if force_rebuild:
            options["rerun_all"] = True
        asked = options_of(targets, jobs, options)
        result = await asyncio.to_thread(self.work.run, plan_id, asked, functions=functions, loop=loop)
        state = self.project.show(plan_id).state
        return ExecutionResult(dict(state.completed), dict(result.failed), graph.execution_waves(), result)

    def preview(self, graph: ArtifactGraph, goal: str, force_rebuild: bool = False) -> PlanPreview:
        """What `execute` would do with this graph, and what that would take. Writes nothing."""
        return self.work.preview(_meant(graph, goal), Options(rerun_all=force_rebuild))

    def _save(self, graph: ArtifactGraph, goal: str) -> str:
        return self.work.take_in(_meant(graph, goal))


class ChangeDetector:
    """Says what changed since a plan was last made, by kind."""

    def __init__(self, project: str | os.PathLike[str] | None = None) -> None:
        self.work = Work(Project(project if project is not None else os.getcwd()))

    def detect(self, graph: ArtifactGraph, previous: SavedExecution) -> ChangeReport:
        """Compare a graph and the files on disk with what was recorded."""
        reasons = self.work.session.judge_graph(graph, previous).reasons
        return report_changes(reasons, graph, previous, [a for a in graph if not graph[a].gathers])


def _meant(graph: ArtifactGraph, goal: str) -> Meant:
    """A graph as a proposal of a plan."""
    from headway.core.codec import digest
    from headway.core.graph import artifact_to_dict

    specs = tuple(_with_recipe(spec) for spec in graph.artifacts.values())
    plan = PlanSpec(goal=goal, id=hash_goal(goal), artifacts=specs)
    return Meant(plan.id, plan, "graph", digest(repr([artifact_to_dict(s) for s in specs]).encode()))


def _with_recipe(spec: ArtifactSpec) -> ArtifactSpec:
    import msgspec

    return spec if spec.has_recipe else msgspec.structs.replace(spec, make="live:create", version=spec.version or "1")


def _creator(spec: ArtifactSpec, create_fn: CreateArtifactFn) -> Callable[..., Any]:
    async def create_async() -> Any:
        return _content(await create_fn(spec))

    def create() -> Any:
        return _content(create_fn(spec))

    return create_async if inspect.iscoroutinefunction(create_fn) else create


def _content(made: Any) -> Any:
    """RFC-036's result objects carry their content; anything else is the content."""
    return made.content if hasattr(made, "content") and hasattr(made, "artifact_id") else made
