"""When a run asks before it starts, and when it warns. Rules only: who is asked, and how, is the surface's business.

It asks before it spends: more than `confirm_above`, or nobody can tell how much. And it asks before it makes what a
model planned and nobody has run yet. What commands and functions cost is never a question.
"""

from __future__ import annotations

from collections.abc import Collection
from datetime import UTC, datetime, timedelta
from typing import Literal, NamedTuple

from headway.core.plan import ArtifactSpec
from headway.core.state import State

OLD = timedelta(hours=24)
"""A plan that a model made is worth a second look after this long."""

Kind = Literal["command", "function", "agent", "hand"]

SPENDS: frozenset[Kind] = frozenset({"agent"})
"""Kinds of recipes that cost money when a run makes them."""


def kind_of(spec: ArtifactSpec) -> Kind:
    """How an artifact is made."""
    if spec.run:
        return "command"
    if spec.make:
        return "function"
    return "agent" if spec.agent else "hand"


class Question(NamedTuple):
    """Something to be agreed to before anything is started. `--yes` agrees."""

    code: str
    text: str


def ask_first(state: State, making: Collection[str], costs: Collection[float | None]) -> Question | None:
    """What has to be agreed to, if anything. `costs`: of those to be made that cost money; None where nobody knows."""
    unknown = sum(1 for cost in costs if cost is None)
    if unknown:
        return Question("cost_unknown", f"what {unknown} of {len(making)} artifacts will cost is not known")
    cost, limit = sum(c for c in costs if c is not None), state.settings.confirm_above
    if cost > limit:
        return Question("cost", f"it will cost about ${cost:.2f}, and confirm_above is ${limit:g}")
    run = state.run
    if making and state.planned_at and (run is None or run.at < state.planned_at):
        return Question("planned", f"{state.settings.planned_by} made this plan, and nobody has run it yet")
    return None


def warn_of_age(state: State, now: datetime) -> str:
    """That a model made this plan more than a day ago: once, for a run since then has said so already."""
    if not state.planned_at:
        return ""
    planned = datetime.fromisoformat(state.planned_at)
    if now < planned + OLD or (state.run is not None and datetime.fromisoformat(state.run.at) >= planned + OLD):
        return ""
    hours = int((now - planned).total_seconds() // 3600)
    return f"{state.settings.planned_by} made this plan {hours} h ago; it may not fit any more"


def clock() -> datetime:
    """The time by which a plan is old."""
    return datetime.now(UTC)
