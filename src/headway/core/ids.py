"""Names: what a plan or an artifact may be called, and the hash that names a goal."""

from __future__ import annotations

import hashlib
import re
import shlex
from typing import NewType

ArtifactId = NewType("ArtifactId", str)
PlanId = NewType("PlanId", str)

PLAN_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")
ARTIFACT_ID_MAX = 200

PROGRAM = "python"
"""The name of what proposes a plan that a program has built and runs itself, where a file has its path."""


def hash_goal(goal: str) -> str:
    """The identity of a goal: 16 hex digits of the sha256 of its stripped text."""
    return hashlib.sha256(goal.strip().encode()).hexdigest()[:16]


def plan_id_problem(plan_id: str) -> str:
    """Why this cannot name a plan, or "" if it can."""
    if PLAN_ID.fullmatch(plan_id):
        return ""
    return "a plan id starts with a letter or digit and has at most 64 of A-Z a-z 0-9 . _ -"


def as_word(name: str) -> str:
    """A name as it is typed in a command: one word, whatever is in it, and no option (`./-x`, as with files)."""
    return shlex.quote(f"./{name}" if name.startswith("-") else name)


def name_elsewhere(name: str) -> tuple[str, str] | None:
    """Plan and artifact of a requirement of another plan, `users:UserModel`; None for any other name.

    A plan of another project is named with the way there: `../api:users` of `../api:users:UserModel`; or by the way
    alone, where only one plan over there has the artifact.
    """
    plan, colon, artifact = name.partition(":")
    if plan.startswith("../"):
        inner, more, rest = artifact.partition(":")
        if more and rest and PLAN_ID.fullmatch(inner):
            return f"{plan}:{inner}", rest
        return (plan, artifact) if artifact else None
    if artifact.startswith("*"):  # all units of a pipeline of this plan
        return None
    return (plan, artifact) if colon and artifact and PLAN_ID.fullmatch(plan) else None


def place_name(plan: str) -> tuple[str, str]:
    """The way to another project, and the plan there, of what `name_elsewhere` calls a plan; each may be ""."""
    if not plan.startswith("../"):
        return "", plan
    way, _, inner = plan.partition(":")
    return way, inner


def artifact_id_problem(artifact_id: str) -> str:
    """Why this cannot name an artifact, or "" if it can."""
    if artifact_id.isascii() and artifact_id.isidentifier() and len(artifact_id) <= ARTIFACT_ID_MAX:
        return ""  # as most are
    if not artifact_id or artifact_id != artifact_id.strip():
        return "an artifact id is not empty and neither starts nor ends with a blank"
    if len(artifact_id) > ARTIFACT_ID_MAX:
        return f"an artifact id has at most {ARTIFACT_ID_MAX} characters; this one has {len(artifact_id)}"
    if not artifact_id.isprintable():
        return "an artifact id has no control characters or line breaks"
    if any(part in {"", ".", ".."} for part in artifact_id.split("/")):
        return "the parts of an artifact id between slashes are not empty, '.' or '..'"
    return ""
