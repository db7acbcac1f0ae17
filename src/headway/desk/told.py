"""Parts of what an agent is told at its desk, and the one word that it is asked for: plain values, no calls."""

from __future__ import annotations

from typing import Any

import msgspec

from headway.core.clipping import clip
from headway.core.plan import ArtifactSpec, Role
from headway.core.state import State, Word
from headway.errors import UsageError


def outlined(state: State) -> dict[str, Any]:
    """A plan in four figures."""
    return {
        "plan_id": state.plan_id,
        "version": state.version,
        "artifacts": len(state.artifacts),
        "status": state.status,
    }


def role_told(role: Role) -> dict[str, Any]:
    """What whoever acts in a role is told of it: what it may use and where it stops is theirs to keep to."""
    limits = {name: limit for name, limit in msgspec.to_builtins(role.limits).items() if limit is not None}
    found = {"instructions": role.instructions, "tools": role.tools, "commands": role.commands, "limits": limits}
    return {name: value for name, value in found.items() if value}


def listed(spec: ArtifactSpec, status: str) -> dict[str, Any]:
    """An artifact in a list."""
    found: dict[str, Any] = {
        "id": spec.id,
        "status": status,
        "what": clip(spec.description or spec.contract, 200),
        "requires": list(spec.requires[:20]),
        "produces": list(spec.produces[:20]),
        "agent": spec.agent,
        "milestone": spec.milestone,
    }
    return {name: value for name, value in found.items() if value}


def word_of(verdict: str) -> Word:
    """The verdict that an agent means by a word."""
    words: dict[str, Word] = {"approve": "APPROVE", "reject": "REJECT", "concerns": "CONCERNS"}
    if verdict.lower() not in words:
        raise UsageError(
            f"A verdict is not {clip(verdict, 40)!r}", hint="approve, reject or concerns", code="gate.verdict"
        )
    return words[verdict.lower()]
