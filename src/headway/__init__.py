"""Make for agent work: a plan is a graph of artifacts, every fact is an event, everything else can be rebuilt.

Names are imported when they are first used: `import headway` costs next to nothing.
"""

from headway.version import VERSION as __version__  # noqa: F401, N811  # the name that tools look for

TYPE_CHECKING = False  # `typing` itself would cost a third of a start
if TYPE_CHECKING:
    from headway.authoring import Plan
    from headway.core.arbiter import ArbiterContext, arbitrate, build_arbiter_prompt
    from headway.core.freshness import ChangeReport, Reason, compute_rebuild_set
    from headway.core.graph import ArtifactGraph, find_invalidated
    from headway.core.ids import hash_goal
    from headway.core.plan import ArtifactSpec, Gate, PlanSpec, Profile, Retry
    from headway.engine.preview import PlanPreview
    from headway.engine.recipes.base import QuotaExhausted
    from headway.engine.recipes.function import Context
    from headway.engine.result import Reporter, RunFailed, RunResult
    from headway.errors import HeadwayError
    from headway.history.environment import Environment
    from headway.history.planning import plan_goal
    from headway.history.workspace import Workspace
    from headway.incremental import ChangeDetector, IncrementalExecutor
    from headway.life import Life
    from headway.overview import get_environment_overview, get_workspace_dag, refresh_workspace_index
    from headway.planning import Planning
    from headway.project import Project
    from headway.projections.saved_execution import SavedExecution
    from headway.store import PlanStore
    from headway.work import Work

_HOMES = {
    "ArbiterContext": "core.arbiter",
    "ArtifactGraph": "core.graph",
    "ArtifactSpec": "core.plan",
    "ChangeDetector": "incremental",
    "ChangeReport": "core.freshness",
    "Context": "engine.recipes.function",
    "Environment": "history.environment",
    "Gate": "core.plan",
    "HeadwayError": "errors",
    "IncrementalExecutor": "incremental",
    "Life": "life",
    "Plan": "authoring",
    "PlanPreview": "engine.preview",
    "PlanSpec": "core.plan",
    "PlanStore": "store",
    "Planning": "planning",
    "Profile": "core.plan",
    "Project": "project",
    "QuotaExhausted": "engine.recipes.base",
    "Reason": "core.freshness",
    "Reporter": "engine.result",
    "Retry": "core.plan",
    "RunFailed": "engine.result",
    "RunResult": "engine.result",
    "SavedExecution": "projections.saved_execution",
    "Work": "work",
    "Workspace": "history.workspace",
    "arbitrate": "core.arbiter",
    "build_arbiter_prompt": "core.arbiter",
    "compute_rebuild_set": "core.freshness",
    "find_invalidated": "core.graph",
    "get_environment_overview": "overview",
    "get_workspace_dag": "overview",
    "hash_goal": "core.ids",
    "plan_goal": "history.planning",
    "refresh_workspace_index": "overview",
}

__all__ = [
    "ArbiterContext",
    "ArtifactGraph",
    "ArtifactSpec",
    "ChangeDetector",
    "ChangeReport",
    "Context",
    "Environment",
    "Gate",
    "HeadwayError",
    "IncrementalExecutor",
    "Life",
    "Plan",
    "PlanPreview",
    "PlanSpec",
    "PlanStore",
    "Planning",
    "Profile",
    "Project",
    "QuotaExhausted",
    "Reason",
    "Reporter",
    "Retry",
    "RunFailed",
    "RunResult",
    "SavedExecution",
    "Work",
    "Workspace",
    "arbitrate",
    "build_arbiter_prompt",
    "compute_rebuild_set",
    "find_invalidated",
    "get_environment_overview",
    "get_workspace_dag",
    "hash_goal",
    "plan_goal",
    "refresh_workspace_index",
]


def __getattr__(name: str) -> object:
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module 'headway' has no attribute {name!r}")
    from importlib import import_module

    from headway.calm import paused as _paused  # the underscore: it is none of what this module offers

    with _paused():  # modules stay: none of what comes with them is garbage
        found = globals()[name] = getattr(import_module(f"headway.{home}"), name)
    return found


def __dir__() -> "list[str]":
    return sorted([*__all__, "__version__"])
