"""What making artifacts will probably take: by this project's own history, else by what is similar, else by defaults.

`Durations` reads ledgers; everything else here is pure. Nothing depends on an estimate but what is shown and asked.
"""

from __future__ import annotations

import heapq
from collections import deque
from collections.abc import Collection, Mapping
from contextlib import suppress
from datetime import datetime
from typing import Literal, NamedTuple

from headway.core import events as ev
from headway.core.graph import ArtifactGraph, Tier
from headway.core.plan import ArtifactSpec
from headway.core.state import State
from headway.engine.asking import Kind, kind_of
from headway.errors import HeadwayError
from headway.store import PlanStore

Basis = Literal["history", "similar", "default", "nothing", "unknown"]

REMEMBERED = 20
"""So many of an artifact's newest completions count."""

ALIKE = 50
"""So many plans, those that were worked at last, tell how long what is similar takes."""


class Guess(NamedTuple):
    """What one artifact is taken to need before anything is known of it."""

    ms: int
    tokens: int = 0
    cost_usd: float = 0.0


DEFAULTS: Mapping[Kind, Guess] = {"command": Guess(1_000), "function": Guess(100)}
AGENT_DEFAULTS: Mapping[Tier, Guess] = {
    "small": Guess(3_000, 1_000, 0.001),
    "medium": Guess(8_000, 2_500, 0.003),
    "large": Guess(15_000, 5_000, 0.008),
}
"""RFC-040's figures by tier. docs/cli.md carries both tables."""


class Span(NamedTuple):
    """Milliseconds: the median, and the range around it."""

    typical: int
    low: int
    high: int

    @classmethod
    def of(cls, samples: Collection[int]) -> Span:
        """Median, smallest and largest."""
        return cls(round(median(samples)), min(samples), max(samples))


def median(samples: Collection[int]) -> float:
    """The middle one, or between the two in the middle. (The standard library's costs a start-up to import.)"""
    ordered = sorted(samples)
    half = len(ordered) // 2
    return ordered[half] if len(ordered) % 2 else (ordered[half - 1] + ordered[half]) / 2


NO_TIME = Span(0, 0, 0)


class Estimate(NamedTuple):
    """What an artifact will probably take. None where nobody can tell."""

    ms: Span | None
    tokens: int | None = 0
    cost_usd: float | None = 0.0
    basis: Basis = "default"
    runs: int = 0


FREE = Estimate(NO_TIME, basis="nothing")
"""Nothing has to be made."""


class Durations:
    """How long artifacts took lately, by the ledgers of a project; each ledger is read at most once."""

    def __init__(self, store: PlanStore, state: State) -> None:
        self._store = store
        self._state = state
        self._own: dict[str, deque[int]] | None = None
        self._similar: dict[Kind, Span] | None = None

    def estimate(self, spec: ArtifactSpec, tier: Tier) -> Estimate:
        """What it will take to make this artifact."""
        kind = kind_of(spec)
        if self._own is None:
            self._own = self._read(self._state.plan_id)
        samples = self._own.get(spec.id) or self._last(spec.id)
        if kind == "hand":
            known = Span.of(samples) if samples else None
            return Estimate(known, None, None, "history" if samples else "unknown", len(samples))
        guess = AGENT_DEFAULTS[tier] if kind == "agent" else DEFAULTS[kind]
        if samples:
            return Estimate(Span.of(samples), guess.tokens, guess.cost_usd, "history", len(samples))
        similar = self._alike().get(kind)
        if similar is not None and kind != "agent":
            return Estimate(similar, guess.tokens, guess.cost_usd, "similar")
        return Estimate(Span(guess.ms, guess.ms, guess.ms), guess.tokens, guess.cost_usd, "default")

    def _last(self, artifact_id: str) -> list[int]:
        """Its newest completion, where the events are another ledger's, or too long ago."""
        done = self._state.completed.get(artifact_id)
        return [done.ms] if done is not None and done.ms and done.how == "made" else []

    def _alike(self) -> dict[Kind, Span]:
        """Over the plans of the project: how long artifacts of each kind took, each counting once."""
        if self._similar is None:
            found: dict[Kind, list[int]] = {}
            for plan_id in self._store.latest(ALIKE):
                samples, kinds = self._read(plan_id), self._kinds(plan_id)
                for artifact_id, taken in samples.items():
                    found.setdefault(kinds.get(artifact_id, "hand"), []).append(round(median(taken)))
            self._similar = {kind: Span.of(taken) for kind, taken in found.items()}
        return self._similar

    def _kinds(self, plan_id: str) -> dict[str, Kind]:
        with suppress(HeadwayError):
            saved = self._store.folder(plan_id).load()
            return {a: kind_of(spec) for a, spec in saved.state.artifacts.items()} if saved is not None else {}
        return {}

    def _read(self, plan_id: str) -> dict[str, deque[int]]:
        """What a ledger says of its artifacts: how long each took, newest last."""
        samples: dict[str, deque[int]] = {}
        claimed: dict[str, str] = {}
        try:
            for record in self._store.folder(plan_id).recent():
                event = record.event
                if isinstance(event, ev.ArtifactStarted):
                    claimed.update((start.id, record.ts) for start in event.starts if not event.run)
                elif isinstance(event, ev.ArtifactCompleted):
                    since = claimed.pop(event.id, "")
                    if event.how == "made":
                        taken = _between(since, record.ts) if since else event.ms
                        samples.setdefault(event.id, deque(maxlen=REMEMBERED)).append(taken)
        except HeadwayError:  # a ledger that cannot be read has no say; whoever opens it hears why
            return samples
        return samples


def _between(start: str, end: str) -> int:
    """What somebody took who claimed it, by the ledger's own times."""
    return max(round((datetime.fromisoformat(end) - datetime.fromisoformat(start)).total_seconds() * 1000), 0)


def makespan(graph: ArtifactGraph, times: Mapping[str, int], jobs: int) -> int:
    """How long a run takes that starts whatever is ready, so many at once. Linear, but for the queues."""
    ids = [artifact_id for artifact_id in graph if artifact_id in times]
    waits = {a: sum(1 for r in graph[a].requires if r in times) for a in ids}
    place_of = {a: n for n, a in enumerate(ids)}
    ready = [place_of[a] for a in ids if not waits[a]]
    running: list[tuple[int, int]] = []
    now = 0
    while ready or running:
        while ready and len(running) < max(jobs, 1):
            place = heapq.heappop(ready)
            heapq.heappush(running, (now + times[ids[place]], place))
        now, done = heapq.heappop(running)
        for dependent in graph.dependents(ids[done]):
            if dependent in place_of:
                waits[dependent] -= 1
                if not waits[dependent]:
                    heapq.heappush(ready, place_of[dependent])
    return now
