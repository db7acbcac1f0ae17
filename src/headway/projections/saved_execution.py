"""plan.json: a plan, its execution and its metrics in RFC-040's shape, and nothing lost on the way.

The file begins with its own digest and the ledger position that it reflects. `plan` holds whatever RFC-040 has no
place for. Read back, it gives the same state.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import msgspec

from headway.core import codec
from headway.core.graph import ArtifactGraph, artifact_from_dict
from headway.core.ids import hash_goal
from headway.core.state import Completion, Position, State
from headway.errors import FormatTooNew, UsageError

VERSION = "1.0"
_RENAMED = {"ms": "duration_ms", "tier": "model_tier"}
_OPENING = re.compile(
    rb'\{\s*"digest":\s*"([0-9a-f]{32})",\s*"position":\s*\{\s*"seq":\s*(\d+),\s*"hash":\s*"([0-9a-f]{32})"'
)
_DIGEST = re.compile(rb'(\{\s*"digest":\s*")[0-9a-f]{32}(")')


class SavedExecution(msgspec.Struct, frozen=True):
    """Plan, progress and trace of one goal, as of one event."""

    state: State
    position: Position

    @property
    def plan_id(self) -> str:
        return self.state.plan_id

    @property
    def goal(self) -> str:
        return self.state.goal

    @property
    def goal_hash(self) -> str:
        return hash_goal(self.state.goal)

    @property
    def status(self) -> str:
        return self.state.status

    @property
    def graph(self) -> ArtifactGraph:
        return ArtifactGraph.over(self.state.artifacts)

    @property
    def completed(self) -> dict[str, Completion]:
        return self.state.completed

    @property
    def failed(self) -> dict[str, str]:
        return {artifact_id: failure.error for artifact_id, failure in self.state.failed.items()}

    @property
    def skipped(self) -> list[str]:
        return list(self.state.skipped)

    @property
    def content_hashes(self) -> dict[str, str]:
        return {artifact_id: content_hash(done) for artifact_id, done in self.state.completed.items()}

    @property
    def created_at(self) -> str:
        return self.state.created_at

    @property
    def updated_at(self) -> str:
        return self.state.updated_at

    @property
    def model_distribution(self) -> dict[str, int]:
        return _distribution(self.graph)

    def to_dict(self) -> dict[str, Any]:
        """RFC-040's keys, and `plan` for the rest."""
        state, graph = self.state, self.graph
        rest = msgspec.to_builtins(state)
        for key in ("artifacts", "completed", "goal", "created_at", "updated_at", "plan_id"):
            rest.pop(key, None)
        return {
            "position": {"seq": self.position.seq, "hash": self.position.hash},
            "version": VERSION,
            "plan_id": state.plan_id,
            "goal": state.goal,
            "goal_hash": self.goal_hash,
            "created_at": state.created_at,
            "updated_at": state.updated_at,
            "graph": graph.to_dict(),
            "execution": {
                "status": state.status,
                "completed": {a: _completion_to_dict(done) for a, done in state.completed.items()},
                "failed": self.failed,
                "skipped": self.skipped,
            },
            "metrics": _metrics(state, graph),
            "plan": rest,
        }

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> SavedExecution:
        """Read back `to_dict`'s shape, or RFC-040's own without `plan`."""
        version = str(data.get("version", VERSION))
        if version.split(".")[0] != VERSION.split(".")[0]:
            raise FormatTooNew(f"Plan file version {version} is not known", hint="use a newer Headway")
        try:
            return cls(_state(data), Position(**data.get("position", {"seq": 0, "hash": codec.START})))
        except (msgspec.ValidationError, KeyError, TypeError, AttributeError, ValueError) as error:
            raise UsageError(
                "This is not a saved plan",
                facts={"reason": error},
                hint="give a plan.json or a checkpoint",
                code="plan.shape",
            ) from error


def _state(data: Mapping[str, Any]) -> State:
    execution = data.get("execution", {})
    rest = dict(data.get("plan") or _plain_rest(execution))
    state: State = msgspec.convert(
        {
            **rest,
            "plan_id": data.get("plan_id") or hash_goal(data["goal"]),
            "project_id": rest.get("project_id", ""),
            "goal": data["goal"],
            "created_at": data.get("created_at", ""),
            "updated_at": data.get("updated_at", ""),
            "completed": {a: _completion_from_dict(item) for a, item in execution.get("completed", {}).items()},
        },
        State,
    )
    state.artifacts = {a: artifact_from_dict(item) for a, item in data["graph"]["artifacts"].items()}
    return state


def _plain_rest(execution: Mapping[str, Any]) -> dict[str, Any]:
    """What a file of RFC-040's own shape says of failures and skips."""
    failed = {a: {"seq": 0, "at": "", "error": str(error)} for a, error in execution.get("failed", {}).items()}
    skipped = {a: {"seq": 0, "at": "", "reason": "skipped"} for a in execution.get("skipped", ())}
    return {"failed": failed, "skipped": skipped}


def _completion_to_dict(done: Completion) -> dict[str, Any]:
    item = {_RENAMED.get(k, k): v for k, v in msgspec.to_builtins(done).items()}
    return {"content_hash": content_hash(done), "model_tier": "", "duration_ms": 0, "verified": False, **item}


def _completion_from_dict(item: Mapping[str, Any]) -> dict[str, Any]:
    back = {new: old for old, new in _RENAMED.items()}
    found = {back.get(k, k): v for k, v in item.items() if k != "content_hash"}
    return {"seq": 0, "at": item.get("completed_at", ""), **{k: v for k, v in found.items() if k in _FIELDS}}


_FIELDS = set(Completion.__struct_fields__)


def content_hash(done: Completion) -> str:
    """16 hex digits for what came out: of its one output, or of all of them together."""
    if len(done.outputs) == 1:
        return done.outputs[0].digest[:16]
    return codec.digest(msgspec.json.encode(done.outputs))[:16] if done.outputs else ""


def _distribution(graph: ArtifactGraph) -> dict[str, int]:
    mix = {"small": 0, "medium": 0, "large": 0}
    for artifact_id in graph:
        mix[graph.tier(artifact_id)] += 1
    return mix


def _metrics(state: State, graph: ArtifactGraph) -> dict[str, Any]:
    waves = graph.waves()
    durations = {artifact_id: done.ms for artifact_id, done in state.completed.items()}
    return {
        "total_duration_ms": sum(max((durations.get(a, 0) for a in wave), default=0) for wave in waves),
        "model_distribution": _distribution(graph),
        "parallelization_factor": round(len(graph) / len(waves), 2) if waves else 0.0,
        "estimated_sequential_ms": sum(durations.values()),
        "total_artifacts": len(graph),
        "completed_count": len(state.completed),
        "failed_count": len(state.failed),
    }


def render(execution: SavedExecution) -> bytes:
    """The bytes of plan.json: the document, led by its own digest."""
    body = msgspec.json.format(msgspec.json.encode({"digest": "0" * 32, **execution.to_dict()}), indent=2) + b"\n"
    return _DIGEST.sub(rb"\g<1>%s\g<2>" % codec.digest(body).encode(), body, count=1)


def is_intact(data: bytes) -> bool:
    """Whether the bytes still have the digest that they were written with."""
    found = _OPENING.match(data)
    if found is None:
        return False
    blank = _DIGEST.sub(rb"\g<1>%s\g<2>" % (b"0" * 32), data, count=1)
    return codec.digest(blank) == found.group(1).decode()


def position_of(opening: bytes) -> Position | None:
    """The ledger position that a plan.json names, from its first bytes."""
    found = _OPENING.match(opening)
    return Position(int(found.group(2)), found.group(3).decode()) if found else None


def parse(data: bytes) -> SavedExecution:
    """A plan.json or checkpoint, read back. Its digest is the caller's to ask for."""
    try:
        document = msgspec.json.decode(data)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise UsageError(
            "This is not JSON", facts={"reason": error}, hint="give a plan.json or a checkpoint", code="plan.shape"
        ) from error
    if not isinstance(document, dict) or not isinstance(document.get("graph"), dict):
        raise UsageError("This is not a saved plan", hint="give a plan.json or a checkpoint", code="plan.shape")
    return SavedExecution.from_dict(document)
