"""What a changed plan file changes. The ledger owns the structure; the file is a proposal.

Three versions meet: `base`, the proposal as last taken in; `new`, the proposal now; and the state, which may have
been changed by others since. Only what differs between `base` and `new` becomes a change; what both sides changed,
differently, is a conflict.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import msgspec

from headway.core.commands import ChangePlan
from headway.core.plan import ArtifactSpec, PlanSpec, Profile, Settings
from headway.core.state import State


class _Nothing:
    """Stands for a variable that is not there."""

    def __str__(self) -> str:
        return "none"


_NONE = _Nothing()


class Merged(NamedTuple):
    """What to change, and what cannot be decided without the user."""

    change: ChangePlan
    profile: Profile | None
    conflicts: list[str]


def merge(base: PlanSpec, new: PlanSpec, state: State, *, take: str = "") -> Merged:
    """Changes from `base` to `new`, on top of the state. `take` ("file" or "ledger") settles conflicts."""
    conflicts: list[str] = []

    def settle(name: str, was: Any, wants: Any, has: Any) -> Any:
        """The value to end with: the file's if it changed, the ledger's if not."""
        if wants in (was, has):
            return has
        if was != has and not take:
            conflicts.append(name)
        return has if was != has and take == "ledger" else wants

    goal = settle("goal", base.goal, new.goal, state.goal)
    settings = Settings(
        **{
            field: settle(field, getattr(base.settings, field), getattr(new.settings, field), has)
            for field, has in msgspec.structs.asdict(state.settings).items()
            if field != "vars"
        },
        vars=_settle_variables(base.settings.vars, new.settings.vars, state.settings.vars, take),
    )
    profile = settle("profile", _lockless(base.profile), _lockless(new.profile), _lockless(state.profile))
    if _is_locked(new.profile) and not _is_locked(base.profile) and profile is not None:
        profile = msgspec.structs.replace(profile, locked=True)
    elif state.profile is not None and profile == _lockless(state.profile):
        profile = state.profile

    was, wants = _by_id(base), _by_id(new)
    add, update, remove = [], [], []
    for artifact_id in {**was, **wants}:
        before, has = was.get(artifact_id), state.artifacts.get(artifact_id)
        end = settle(artifact_id, before, wants.get(artifact_id), has)
        if end is None and has is not None:
            remove.append(artifact_id)
        elif end is not None and has is None:
            add.append(end)
        elif end is not None and end != has:
            update.append(end)
    order = _order(list(was), list(wants), state, add, remove)
    change = ChangePlan(
        goal=goal, settings=settings, add=tuple(add), update=tuple(update), remove=tuple(remove), order=order
    )
    return Merged(change, profile, conflicts)


def _settle_variables(
    was: Mapping[str, Any], wants: Mapping[str, Any], has: Mapping[str, Any], take: str
) -> dict[str, Any]:
    """Each variable for itself: what somebody set holds until the file says something else, unless the ledger is to be
    taken.
    """
    found = {}
    for name in {**has, **wants}:
        before, there, said = was.get(name, _NONE), has.get(name, _NONE), wants.get(name, _NONE)
        is_set = before != there
        end = there if said == before or (is_set and take == "ledger") else said
        if end is not _NONE:
            found[name] = end
    return found


def _is_locked(profile: Profile | None) -> bool:
    return profile is not None and profile.locked


def _lockless(profile: Profile | None) -> Profile | None:
    return msgspec.structs.replace(profile, locked=False) if profile is not None else None


def _by_id(plan: PlanSpec) -> dict[str, ArtifactSpec]:
    specs: dict[str, ArtifactSpec] = {}
    for spec in plan.artifacts:
        specs.setdefault(spec.id, spec)
    return specs


def _order(
    was: list[str], wants: list[str], state: State, add: list[ArtifactSpec], remove: list[str]
) -> tuple[str, ...]:
    """The order to end with, or nothing if what is added may simply stand at the end.

    The file's order holds for what the file names; what only the ledger knows keeps its place behind its
    predecessor.
    """
    gone = set(remove)
    now = [a for a in state.artifacts if a not in gone] + [spec.id for spec in add]
    known = set(now)
    file_order = [a for a in wants if a in known]
    named, before = set(file_order), set(was)
    if file_order == [a for a in now if a in named]:
        return ()
    unmoved = [a for a in was if a in named] == [a for a in file_order if a in before]
    if unmoved and not add:
        return ()
    followers: dict[str, list[str]] = {}
    previous = ""
    for artifact_id in now:
        if artifact_id in named:
            previous = artifact_id
        else:
            followers.setdefault(previous, []).append(artifact_id)
    order = followers.get("", [])
    for artifact_id in file_order:
        order += [artifact_id, *followers.get(artifact_id, [])]
    return tuple(order)
