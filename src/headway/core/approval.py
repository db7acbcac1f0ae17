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
    """The whole plan, whatever the order of its artifacts."""
    parts = sorted(f"{artifact_id} {spec_hash(spec)}" for artifact_id, spec in state.artifacts.items())
    return _hash("\n".join((head_hash(state), *parts)).encode())


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
