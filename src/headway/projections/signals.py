"""Events as subscribers get them: the names of SPEC-0010's state machine, one per artifact, all from the ledger."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import msgspec

from headway.core import events as ev

INTERNAL = frozenset({"snapshot", "ledger_rotated", "ledger_recovered", "segment_dropped", "step_recorded"})
"""Events about the ledger itself, or parts of an attempt: nobody waits for them."""

_LEFT_OUT = frozenset({"state", "plan", "artifacts", "fp"})
"""Fields that are as large as a plan: whoever wants them asks for the plan."""


class Signal(NamedTuple):
    """What happened: PLAN_CREATED, STEP_STARTED, STEP_COMPLETED, STEP_FAILED, PLAN_REPLANNED, PLAN_APPROVED …"""

    type: str
    plan_id: str
    seq: int
    ts: str
    by: str
    artifact: str
    data: dict[str, Any]

    def to_dict(self) -> dict[str, Any]:
        """The same for machines."""
        return self._asdict()


def signals(plan_id: str, record: ev.Record) -> Iterator[Signal]:
    """What an event says to subscribers: nothing, one thing, or one thing per artifact."""
    event = record.event
    kind = event.name if isinstance(event, ev.Unknown) else event.type
    if kind in INTERNAL:
        return
    name = kind.upper().replace("ARTIFACT_", "STEP_", 1)

    def signal(artifact: str, data: dict[str, Any]) -> Signal:
        return Signal(name, plan_id, record.seq, record.ts, record.by, artifact, data)

    if isinstance(event, ev.ArtifactStarted):
        for start in event.starts:
            yield signal(start.id, {"token": record.seq, "reason": start.reason, "run": event.run})
    elif isinstance(event, ev.ArtifactAdded | ev.ArtifactUpdated):
        for spec in event.artifacts:
            yield signal(spec.id, {"reason": event.reason, "version": event.version})
    elif isinstance(event, ev.ArtifactRemoved | ev.ArtifactReordered | ev.ArtifactSkipped | ev.ArtifactReleased):
        for artifact_id in event.ids:
            yield signal(artifact_id, {"reason": event.reason})
    else:
        yield signal(getattr(event, "id", "") or "", _data(event))


def _data(event: ev.Event) -> dict[str, Any]:
    if isinstance(event, ev.Unknown):
        return {}
    if isinstance(event, ev.PlanCreated):
        return {"goal": event.plan.goal, "artifacts": len(event.plan.artifacts)}
    plain: dict[str, Any] = msgspec.to_builtins(event)
    return {name: value for name, value in plain.items() if name not in _LEFT_OUT and name != "id"}
