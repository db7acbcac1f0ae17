"""A plan's approval, bound to its content: what was approved, and what of the plan is something else now.

An approval signs a hash of the whole plan. What is not an artifact (goal, settings, profile) is compared by one digest;
of the artifacts, those that changed since are known one by one, so that only they are asked about again.
"""

from __future__ import annotations

import hashlib

import msgspec

from headway.core.plan import ArtifactSpec
from headway.core.state import State

LENGTH = 32


def spec_hash(spec: ArtifactSpec) -> str:
    """All that an artifact says, as a digest."""
    return _hash(msgspec.json.encode(spec))


def head_hash(state: State) -> str:
    """All of a plan that is not an artifact: what it is for, how it is set up, and how many may work on it at once."""
    return _hash(msgspec.json.encode((state.goal, state.settings, state.profile)))


def plan_hash(state: State) -> str:
    """The whole plan, whatever the order of its artifacts.

    A pipeline is part of the settings, and with it whatever its units become: its artifacts need no digest of their
    own. Its units do, where nobody said how many there may be.
    """
    parts = sorted(f"{a} {spec_hash(spec)}" for a, spec in state.artifacts.items() if not spec.pipeline)
    open_ended = sorted(name for name in state.units if is_open_ended(state, name))
    units = (f"{name}:* {unit}" for name in open_ended for unit in sorted(state.units[name].units))
    return _hash("\n".join((head_hash(state), *parts, *units)).encode())


def is_open_ended(state: State, pipeline: str) -> bool:
    """Whether a pipeline may grow without end: then units that come later are asked about, one by one.

    One that names its units, or says how many there may be, was approved with all of them.
    """
    found = state.settings.pipeline(pipeline)
    return found is not None and not found.units.names and found.units.max is None


def in_force(state: State) -> bool:
    """Whether anybody's approval is asked for: the plan says so, or was approved once, or was rejected."""
    return state.approval is not None or state.refused is not None or bool(state.settings.approval)


def awaits_approval(state: State, artifact_id: str) -> bool:
    """Whether this artifact is not, or no longer, what somebody approved."""
    if not in_force(state):
        return False
    if state.approval is None or state.refused is not None:
        return True
    return artifact_id in state.changed or head_hash(state) != state.approval.head


def is_open(state: State) -> bool:
    """Whether anything of the plan waits for an approval."""
    if not in_force(state):
        return False
    if state.approval is None or state.refused is not None:
        return True
    return any(a in state.artifacts for a in state.changed) or head_hash(state) != state.approval.head


def _hash(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()[:LENGTH]
