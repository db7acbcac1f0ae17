"""RFC-040's trace, told from a ledger: plans, waves, artifacts, ends. One mapping an event, ready for a JSONL file.

Waves are depths of the graph, numbered from 0. Scheduling does not wait for them, so they overlap: one starts with the
first of its artifacts, and is complete when all that the run set out to make of it has ended well.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from headway.core import events as ev
from headway.core.graph import ArtifactGraph
from headway.core.state import State


def trace(history: Iterable[tuple[State, ev.Record]]) -> Iterator[dict[str, Any]]:
    """The trace of a plan; each state is the one after its event."""
    tracer = Tracer()
    for state, record in history:
        yield from tracer.follow(state, record)


class Tracer:
    """Follows one plan, event by event."""

    def __init__(self) -> None:
        self._run = ""
        self._depths: dict[str, int] = {}
        self._open: dict[int, set[str]] = {}
        self._begun: set[int] = set()

    def follow(self, state: State, record: ev.Record) -> Iterator[dict[str, Any]]:
        """What this event adds to the trace."""
        for found in self._told(state, record.event):
            yield {"ts": record.ts, **found}

    def _told(self, state: State, event: ev.Event) -> Iterator[dict[str, Any]]:
        match event:
            case ev.PlanCreated():
                yield {"event": "plan_created", "artifact_count": len(event.plan.artifacts)}
            case ev.RunStarted():
                yield from self._begin(state, event)
            case ev.ArtifactStarted():
                for start in event.starts:
                    yield from self._start(start.id)
            case ev.ArtifactCompleted():
                yield self._complete(event)
                yield from self._settle(event.id)
            case ev.OutputAccepted():
                yield {"event": "artifact_complete", "id": event.id, "duration_ms": 0, "how": "accepted"}
                yield from self._settle(event.id)
            case ev.ArtifactFailed():
                yield {
                    "event": "artifact_failed",
                    "id": event.id,
                    "error": event.error,
                    "duration_ms": event.ms,
                    "attempts": event.attempts,
                }
            case ev.ArtifactSkipped():
                for artifact_id in event.ids:
                    yield {"event": "artifact_skipped", "id": artifact_id, "reason": event.reason}
                    yield from self._settle(artifact_id)
            case ev.RunCompleted() | ev.RunFailed() | ev.RunPaused():
                for artifact_id in (*event.kept, *event.restored):
                    yield from self._settle(artifact_id)
                status = event.type.removeprefix("run_")
                yield {"event": "execution_complete", "run": event.run, "status": status}
                self._open.clear()

    def _begin(self, state: State, event: ev.RunStarted) -> Iterator[dict[str, Any]]:
        self._run = event.run
        self._depths = ArtifactGraph.over(state.artifacts).depths()
        self._open, self._begun = {}, set()
        reasons = event.reasons
        for artifact_id in reasons:
            self._open.setdefault(self._depths.get(artifact_id, 0), set()).add(artifact_id)
        kept = len(state.artifacts) - len(reasons)
        yield {"event": "incremental_analysis", "run": event.run, "to_build": list(reasons), "skip": kept}

    def _start(self, artifact_id: str) -> Iterator[dict[str, Any]]:
        wave = self._depths.get(artifact_id, 0)
        if wave in self._begun or wave not in self._open:
            return
        self._begun.add(wave)
        yield {"event": "wave_start", "wave": wave, "artifacts": sorted(self._open[wave])}

    def _complete(self, event: ev.ArtifactCompleted) -> dict[str, Any]:
        found: dict[str, Any] = {
            "event": "artifact_complete",
            "id": event.id,
            "duration_ms": event.ms,
            "how": event.how,
        }
        return {**found, "attempts": event.attempts} if event.attempts > 1 else found

    def _settle(self, artifact_id: str) -> Iterator[dict[str, Any]]:
        wave = self._depths.get(artifact_id, 0)
        left = self._open.get(wave)
        if left is None or artifact_id not in left:
            return
        left.discard(artifact_id)
        if not left:
            del self._open[wave]
            if wave in self._begun:
                yield {"event": "wave_complete", "wave": wave}
