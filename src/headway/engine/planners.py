"""Whoever proposes a better plan when artifacts failed for good: a port with one call. A plan file is one, too.

A planner is any callable `replan(plan, failure) -> patch`. It may answer with a whole plan, with a patch, with a
mapping of a patch's fields, or with None: it has nothing to offer. What of it may become the plan's next version is
core/decide's.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple, Protocol

import msgspec

from headway.core.commands import ChangePlan
from headway.core.plan import ArtifactSpec, PlanSpec, Profile, Settings, Value
from headway.core.state import State
from headway.errors import UsageError


class PlanFailure(NamedTuple):
    """What a planner is told: what failed and how, what was tried before, and how often it may still be asked."""

    failed: dict[str, str]
    reason: str
    version: int
    earlier: list[str]
    left: int


class Patch(Value):
    """What is to change. `drop` names completed work that is given up on purpose."""

    add: tuple[ArtifactSpec, ...] = ()
    update: tuple[ArtifactSpec, ...] = ()
    remove: tuple[str, ...] = ()
    drop: tuple[str, ...] = ()
    goal: str | None = None
    settings: Settings | None = None
    reason: str = ""


class Planner(Protocol):
    """Proposes a better plan."""

    def __call__(self, plan: PlanSpec, failure: PlanFailure, /) -> Any: ...


def as_patch(answer: Any, state: State) -> Patch | None:
    """A planner's answer, whatever its form."""
    if answer is None or isinstance(answer, Patch):
        return answer
    plan = answer if isinstance(answer, PlanSpec) else getattr(answer, "spec", None)
    if isinstance(plan, PlanSpec):
        return difference(state, plan)
    try:
        given = dict(answer) if isinstance(answer, Mapping) else answer
        return msgspec.convert(given, Patch, from_attributes=True)
    except (msgspec.ValidationError, TypeError, ValueError) as error:
        raise UsageError(
            "What the planner returned is no plan and no patch",
            facts={"reason": error},
            hint="return a PlanSpec, a Plan, or a mapping of add, update, remove, drop and reason",
            code="replan.shape",
        ) from error


def difference(state: State, wanted: PlanSpec) -> Patch:
    """The patch that makes the plan what is wanted. Of settings that it does not mention at all, nothing changes.

    Artifacts of pipelines are no plan's own: they come and go with their units.
    """
    _refuse_profile(state, wanted.profile)
    specs = {spec.id: spec for spec in wanted.artifacts}
    return Patch(
        add=tuple(spec for a, spec in specs.items() if a not in state.artifacts),
        update=tuple(spec for a, spec in specs.items() if a in state.artifacts and state.artifacts[a] != spec),
        remove=tuple(a for a, spec in state.artifacts.items() if a not in specs and not spec.pipeline),
        goal=wanted.goal,
        settings=wanted.settings if wanted.settings not in (Settings(), state.settings) else None,
    )


def _refuse_profile(state: State, wanted: Profile | None) -> None:
    """Concurrency is decided apart from what is to be made; whether it is locked is no part of a plan file."""
    if wanted is None:
        return
    now = msgspec.structs.replace(state.profile or Profile(), locked=False)
    if msgspec.structs.replace(wanted, locked=False) == now:
        return
    raise UsageError(
        "The new plan has another profile, and replanning does not change it",
        facts={"it is": _said(now), "the new plan says": _said(wanted)},
        hint=f"leave profile: out of it; headway profile --plan-id {state.plan_id} changes it apart",
        code="replan.profile",
    )


def _said(profile: Profile) -> str:
    return f"{profile.limit} at once" + (", councils in parallel" if profile.council_parallel else "")


def change_of(patch: Patch, reason: str) -> ChangePlan:
    """The change of structure that a patch asks for."""
    return ChangePlan(
        goal=patch.goal,
        settings=patch.settings,
        add=patch.add,
        update=patch.update,
        remove=patch.remove,
        reason=reason,
    )
