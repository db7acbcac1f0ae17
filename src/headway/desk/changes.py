"""Changes of a plan as an agent sends them: loose JSON in, a patch out, or what is wrong with its shape."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from headway.core.clipping import clip
from headway.core.plan import ArtifactSpec
from headway.core.state import State
from headway.engine.planners import Patch
from headway.errors import NotFound, UsageError
from headway.planning import fields_of

KNOWN = ("add", "update", "remove", "goal")


def patch_of(state: State, plan_id: str, changes: Mapping[str, Any]) -> Patch:
    """`add` and `update` map ids to fields, `remove` lists ids, `goal` is text."""
    strange = sorted(changes.keys() - set(KNOWN))
    if strange:
        raise UsageError(
            f"A change has no {strange[0]}", hint="add, update, remove and goal are known", code="replan.shape"
        )
    return Patch(
        add=tuple(new_artifact(name, fields) for name, fields in _fields(changes, "add")),
        update=tuple(_changed(state, plan_id, name, fields) for name, fields in _fields(changes, "update")),
        remove=tuple(_texts(changes, "remove")),
        goal=changes.get("goal"),
    )


def _fields(changes: Mapping[str, Any], name: str) -> list[tuple[str, Mapping[str, Any]]]:
    given = changes.get(name) or {}
    if not isinstance(given, Mapping) or not all(isinstance(fields, Mapping) for fields in given.values()):
        raise UsageError(f"{name} maps ids to fields", hint='{"id": {"description": …}}', code="replan.shape")
    return list(given.items())


def _texts(changes: Mapping[str, Any], name: str) -> list[str]:
    given = changes.get(name) or []
    if not isinstance(given, list) or not all(isinstance(item, str) for item in given):
        raise UsageError(f"{name} is a list of ids", hint='["id"]', code="replan.shape")
    return given


def new_artifact(artifact_id: str, fields: Mapping[str, Any]) -> ArtifactSpec:
    """An artifact that is not there yet."""
    return ArtifactSpec(id=artifact_id, **fields_of(artifact_id, fields))


def _changed(state: State, plan_id: str, artifact_id: str, fields: Mapping[str, Any]) -> ArtifactSpec:
    if artifact_id not in state.artifacts:
        raise NotFound(
            f"Plan {plan_id} has no artifact {clip(artifact_id, 80)}",
            hint="get_plan lists them",
            code="artifact.unknown",
        )
    changed: ArtifactSpec = msgspec.structs.replace(state.artifacts[artifact_id], **fields_of(artifact_id, fields))
    return changed
