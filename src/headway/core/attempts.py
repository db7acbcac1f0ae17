"""Who was at which artifact, how often, how long, and how it ended: what a ledger can tell an arbiter.

Knows events; judges nobody. Tokens are not among it: what an agent spends elsewhere is in no ledger.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from datetime import datetime

from headway.core import events as ev
from headway.core.arbiter import Entry, Used

Acting = Callable[[str, str], str]
"""Given a name and an artifact, the role in which they were at it."""


class Attempts:
    """What agents did, event by event; what a recipe made is no attempt of an agent."""

    def __init__(self, acting: Acting) -> None:
        self.entries: list[Entry] = []
        self._acting = acting
        self._open: dict[str, tuple[str, str]] = {}
        self._used: dict[str, dict[str, Used]] = {}

    def hear(self, records: Iterable[ev.Record]) -> Attempts:
        """Take these in, in their order."""
        for record in records:
            self._hear(record)
        return self

    def used(self, artifact_id: str, now: str) -> dict[str, Used]:
        """By agent, what was used up at an artifact since it was last complete or changed, as of now."""
        found = dict(self._used.get(artifact_id, {}))
        if artifact_id in self._open:
            agent, since = self._open[artifact_id]
            found[agent] = _longer(found.get(agent, Used()), _seconds(since, now))
        return found

    def _hear(self, record: ev.Record) -> None:
        event = record.event
        if isinstance(event, ev.ArtifactStarted) and not event.run:
            for start in event.starts:
                agent = self._acting(record.by, start.id)
                self._open[start.id] = agent, record.ts
                self._count(start.id, agent)
        elif isinstance(event, ev.ArtifactCompleted):
            agent = self._acting(event.by or record.by, event.id)
            self._forget((event.id,))
            self.entries.append(Entry(agent=agent, status="success", artifact=event.id, output=event.note))
        elif isinstance(event, ev.ArtifactFailed):
            agent = self._acting(record.by, event.id)
            self._close(event.id, record.ts)
            self.entries.append(Entry(agent=agent, status="failure", artifact=event.id, error=event.error))
        elif isinstance(event, ev.ArtifactMade):
            self._close(event.id, record.ts)
        elif isinstance(event, ev.ArtifactReleased):
            for artifact_id in event.ids:
                self._close(artifact_id, record.ts)
        elif isinstance(event, ev.ArtifactUpdated):
            self._forget(spec.id for spec in event.artifacts)
        elif isinstance(event, ev.PlanReplanned):
            self._forget(list(self._used))
        elif isinstance(event, ev.PlanReset):
            self._forget(event.ids or list(self._used))

    def _count(self, artifact_id: str, agent: str) -> None:
        by_agent = self._used.setdefault(artifact_id, {})
        before = by_agent.get(agent, Used())
        by_agent[agent] = Used(iterations=before.iterations + 1, seconds=before.seconds)

    def _close(self, artifact_id: str, at: str) -> None:
        agent, since = self._open.pop(artifact_id, ("", ""))
        if since:
            by_agent = self._used.setdefault(artifact_id, {})
            by_agent[agent] = _longer(by_agent.get(agent, Used()), _seconds(since, at))

    def _forget(self, ids: Iterable[str]) -> None:
        """Whoever goes on with these begins anew."""
        for artifact_id in ids:
            self._used.pop(artifact_id, None)
            self._open.pop(artifact_id, None)


def _longer(used: Used, seconds: float) -> Used:
    return Used(iterations=used.iterations, seconds=used.seconds + seconds)


def _seconds(since: str, until: str) -> float:
    try:
        return max((datetime.fromisoformat(until) - datetime.fromisoformat(since)).total_seconds(), 0.0)
    except (ValueError, TypeError):
        return 0.0
