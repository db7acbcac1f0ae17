"""A plan as somebody proposes it: how it is kept, what it is compared with, and what of it cannot be kept."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import chain
from operator import attrgetter
from typing import TYPE_CHECKING

import msgspec

from headway.core.graph import is_in_order
from headway.core.plan import PlanSpec, Profile
from headway.errors import BlobDamaged
from headway.files.blobs import Blobs
from headway.projections.saved_execution import SavedExecution
from headway.store import PlanStore

if TYPE_CHECKING:
    from headway.core.check import Problem  # what checks a plan is loaded when a plan is checked


def storable(plan: PlanSpec) -> PlanSpec:
    """A draft may have any problem but one: a profile that cannot be is kept as one at a time."""
    profile = plan.profile
    if profile is None or profile.is_possible:
        return plan
    mended = msgspec.structs.replace(profile, max_concurrent_tasks=Profile().max_concurrent_tasks, locked=False)
    return msgspec.structs.replace(plan, profile=mended)


def in_full(plan: PlanSpec, plan_id: str, store: PlanStore) -> PlanSpec:
    """The plan with each plain name of another plan's artifact in full: so it is recorded, whatever comes later."""
    if is_in_order(plan.artifacts):
        return plan
    own = {spec.id for spec in plan.artifacts}
    if own.issuperset(chain.from_iterable(map(attrgetter("requires"), plan.artifacts))):
        return plan
    from headway.engine.elsewhere import resolved

    return resolved(plan, plan_id, store)[0]


def base_of(existing: SavedExecution, plan: PlanSpec, take: str, blobs: Blobs) -> PlanSpec:
    """The proposal as last taken in: what the new one is compared with."""
    before = existing.state.proposal
    if before is None:
        return PlanSpec(goal=existing.goal)
    try:
        return msgspec.json.decode(blobs.get(before.blob), type=PlanSpec)
    except BlobDamaged as error:
        if take:  # nothing is known to be unchanged: one side is taken whole
            return existing.proposal if take == "file" else plan
        raise BlobDamaged(
            f"What {before.path} said when it was last taken in is not known any more",
            facts={"blob": before.blob, "cost": "changes of the file cannot be told from changes of the ledger"},
            hint="--take file makes the plan what the file says, --take ledger keeps what the ledger has",
            code="proposal.lost",
        ) from error


def lost_problems(
    plan: PlanSpec, problems: Sequence[Problem], check: Callable[[PlanSpec], list[Problem]]
) -> list[Problem]:
    """Problems of a proposal that the plan, as it is kept, does not show: the reader left out what is wrong."""
    if not problems:
        return []
    kept = msgspec.structs.replace(plan, artifacts=tuple({spec.id: spec for spec in plan.artifacts}.values()))
    shown = {(p.code, p.artifact, p.key) for p in check(kept)}
    return [p for p in problems if (p.code, p.artifact, p.key) not in shown][:20]
