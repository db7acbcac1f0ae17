"""What a run would do, what it would take, and whether to ask first. Reads; decides nothing about artifacts.

What is to be made is an upper bound: what comes out the same spares what is behind it. What is not in the plan yet and
may come while it is made is counted apart.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any, Literal, NamedTuple

import msgspec

from headway.core.approval import awaits_approval
from headway.core.freshness import EDITS, RESTORABLE, ChangeReport, Reason
from headway.core.gates import missing
from headway.core.graph import ArtifactGraph, Tier
from headway.core.pipelines import without_units
from headway.core.plan import ArtifactSpec
from headway.engine.asking import SPENDS, Kind, Question, ask_first, kind_of, warn_of_age
from headway.engine.coming import Coming, coming
from headway.engine.estimates import FREE, NO_TIME, Durations, Estimate, Span, makespan
from headway.engine.judged import Judged
from headway.engine.result import Decision
from headway.projections.saved_execution import SavedExecution, content_hash

Action = Literal["make", "restore", "reuse", "ask", "claim", "wait"]

UNDECIDED: frozenset[Action] = frozenset({"ask", "wait"})
"""What becomes of what no run makes before somebody has decided or said something."""


class Item(NamedTuple):
    """One artifact that is stale: what becomes of it, why, and what that takes."""

    id: str
    wave: int
    tier: Tier
    kind: Kind
    action: Action
    reason: Reason
    estimate: Estimate

    def to_dict(self) -> dict[str, Any]:
        """The same for machines."""
        ms = self.estimate.ms
        return {
            "id": self.id,
            "wave": self.wave,
            "tier": self.tier,
            "kind": self.kind,
            "action": self.action,
            "reason": self.reason.to_dict(),
            "estimate": {**self.estimate._asdict(), "ms": ms._asdict() if ms else None},
        }


class TooLarge(NamedTuple):
    """An output that is hashed and not stored."""

    artifact: str
    path: str
    size: int


class Total(NamedTuple):
    """What several artifacts take together: in time side by side, in money one after the other.

    `unknown` counts those of which nobody can tell.
    """

    ms: Span
    tokens: int
    cost_usd: float
    unknown: int


class PlanPreview(msgspec.Struct, frozen=True, kw_only=True):
    """RFC-040's preview: the plan in waves, what would be made and why, what that takes, and what it saves."""

    plan_id: str
    goal: str
    graph: ArtifactGraph
    waves: list[list[str]]
    items: dict[str, Item]
    kept: list[str]
    hashes: dict[str, str]
    model_distribution: dict[str, int]
    total: Total
    full: Total
    jobs: int
    previous: SavedExecution | None = None
    changes: ChangeReport | None = None
    too_large: list[TooLarge] = []
    limit: int = 0
    question: Question | None = None
    decide: Decision | None = None
    """What a run would be refused for before it makes anything, and what decides it."""
    undecided: tuple[str, ...] = ()
    """What is kept with the prompt that it was made with: its unit only hands on its state to the targets."""
    warning: str = ""
    known: tuple[dict[str, Any], ...] = ()
    """What is known from before that bears on the goal: kind, text and source of each line."""
    coming: Coming = Coming()
    """What may come besides: none of the figures counts it."""
    decided: Total | None = None
    """What all that is stale takes, also what nobody makes before somebody has decided or said something."""
    stuck: frozenset[str] = frozenset()
    """What no run makes before somebody has decided, claimed or said something about it or about what comes first."""

    @property
    def estimated_tokens(self) -> int:
        """Of the artifacts that are to be made, as far as anybody can tell."""
        return self.total.tokens

    @property
    def estimated_cost_usd(self) -> float:
        """The same in money."""
        return self.total.cost_usd

    @property
    def estimated_duration_seconds(self) -> float:
        """How long it will probably take, with so many at once."""
        return self.total.ms.typical / 1000

    @property
    def stale(self) -> dict[str, Reason]:
        """What would be made, and why."""
        return {a: item.reason for a, item in self.items.items()}

    @property
    def to_rebuild(self) -> set[str]:
        """RFC-040's rebuild set: an upper bound."""
        return set(self.items)

    @property
    def skip_count(self) -> int:
        """How many artifacts are kept."""
        return len(self.kept)

    @property
    def can_go_on(self) -> bool:
        """Whether a run would do anything before somebody has decided, claimed or said something."""
        return self.decide is None and not self.items.keys() <= self.stuck

    @property
    def savings_percent(self) -> float:
        """Kept, of all that a full rebuild would make. With nothing to make, all of it is saved."""
        total = len(self.items) + len(self.kept)
        return round(100 * len(self.kept) / total, 1) if total else 0.0

    @property
    def saved_ms(self) -> int:
        """The time that a full rebuild would take on top. What only waits for a decision is not saved."""
        return max(self.full.ms.typical - (self.decided or self.total).ms.typical, 0)

    @property
    def parallelization_factor(self) -> float:
        """Artifacts per wave, over what is to be made."""
        made = [item.wave for item in self.items.values() if item.action not in UNDECIDED]
        return round(len(made) / len(set(made)), 1) if made else 0.0

    def __str__(self) -> str:
        bound = "so far; more may come" if self.coming else "at most"
        return f"{self.plan_id}: {len(self.items)} to make {bound}, {len(self.kept)} up to date"

    def __repr__(self) -> str:
        return f"<PlanPreview {self}>"

    def to_dict(self) -> dict[str, Any]:
        """The document of `run -n --json`."""
        changes = self.changes
        return {
            "plan_id": self.plan_id,
            "goal": self.goal,
            "stale": {a: r.to_dict() for a, r in self.stale.items()},
            "kept": len(self.kept),
            "coming": self.coming.to_dict(),
            "known": list(self.known),
            "waves": [w for w in ([a for a in wave if a in self.items] for wave in self.waves) if w],
            "artifacts": {a: item.to_dict() for a, item in self.items.items()},
            "skip": {a: self.hashes.get(a, "") for a in self.kept},
            "estimates": {
                **self.total._asdict(),
                "ms": self.total.ms._asdict(),
                "jobs": self.jobs,
                "parallelization_factor": self.parallelization_factor,
                "model_distribution": self.model_distribution,
            },
            "savings": {
                "percent": self.savings_percent,
                "artifacts": len(self.kept),
                "ms": self.saved_ms,
                "full_ms": self.full.ms.typical,
            },
            "changes": {k: sorted(v) for k, v in changes._asdict().items()} if changes is not None else None,
            "too_large": [t._asdict() for t in self.too_large],
            "store_up_to": self.limit,
            "question": self.question._asdict() if self.question else None,
            "decide": self.decide._asdict() if self.decide else None,
            "undecided": list(self.undecided),
            "warning": self.warning,
        }


def foresee(
    judged: Judged, durations: Durations, *, jobs: int, previous: SavedExecution | None, now: datetime
) -> PlanPreview:
    """What a run of what was judged would do. What only gathers others is nobody's to make, and takes no time: it is
    named only where it failed."""
    state, graph = judged.execution.state, judged.judge.graph
    ordered = _in_order(judged)
    waves = ordered.waves()
    chosen = [a for a in judged.reasons if a in judged.selected and not state.artifacts[a].gathers]
    gathering = dict.fromkeys((a for a in judged.selected if a in graph and graph[a].gathers), FREE)
    estimates = {a: durations.estimate(state.artifacts[a], graph.tier(a)) for a in chosen}
    items = _items(judged, estimates, gathering, waves)
    limit = state.profile.limit if state.profile is not None else jobs
    at_once = min(jobs, limit)
    mix = {"small": 0, "medium": 0, "large": 0}
    for item in items.values():
        mix[item.tier] += 1
    kept = [a for a in chosen if a not in items]
    making = [a for a, item in items.items() if item.action == "make"]
    taking = {a: item.estimate for a, item in items.items()}
    open_ = [a for a, item in items.items() if item.action in UNDECIDED and a in estimates]
    ran_before = previous is not None and previous.state.run is not None
    return PlanPreview(
        plan_id=state.plan_id,
        goal=state.goal,
        graph=graph,
        waves=waves,
        items=items,
        kept=kept,
        hashes={a: content_hash(state.completed[a]) for a in kept if a in state.completed},
        model_distribution=mix,
        total=_total(ordered, gathering | taking, at_once),
        full=_total(ordered, {**gathering, **estimates}, at_once),
        decided=_total(ordered, gathering | taking | {a: estimates[a] for a in open_}, at_once) if open_ else None,
        jobs=at_once,
        previous=previous,
        changes=report_changes(judged.reasons, graph, previous, chosen)
        if ran_before and previous is not None
        else None,
        too_large=[
            TooLarge(a, output.path, output.size)
            for a in chosen
            if a in state.completed
            for output in state.completed[a].outputs
            if output.size > judged.judge.outputs.limit(output.path)
        ],
        limit=judged.judge.outputs.largest,
        question=ask_first(state, making, [items[a].estimate.cost_usd for a in making if items[a].kind in SPENDS]),
        undecided=tuple(judged.judge.left.undecided),
        warning=". ".join(filter(None, [warn_of_age(state, now) if items else "", *without_units(state)])),
        coming=coming(state, judged.reasons, judged.selected, items),
        stuck=_stuck(ordered, waves, items),
    )


def _stuck(ordered: ArtifactGraph, waves: list[list[str]], items: Mapping[str, Item]) -> frozenset[str]:
    """What is not a run's to make, and all that waits for it: what it requires and whoever is first come first."""
    stuck: set[str] = set()
    for artifact_id in (a for wave in waves for a in wave):
        item = items.get(artifact_id)
        is_stuck = item is not None and item.action not in ("make", "restore", "reuse")
        if is_stuck or not stuck.isdisjoint(ordered[artifact_id].requires):
            stuck.add(artifact_id)
    return frozenset(stuck)


def _items(
    judged: Judged, estimates: Mapping[str, Estimate], gathering: Mapping[str, Estimate], waves: Sequence[Sequence[str]]
) -> dict[str, Item]:
    """What is stale, wave by wave; waves of which nothing is stale are not counted."""
    state, graph = judged.execution.state, judged.judge.graph
    depth = {a: number for number, wave in enumerate(waves, 1) for a in wave}
    items: dict[str, Item] = {}
    stuck: set[str] = set()
    stale = (a for a in (*estimates, *gathering) if not judged.reasons[a].fresh)
    for artifact_id in sorted(stale, key=lambda a: depth.get(a, 0)):
        spec, reason = state.artifacts[artifact_id], judged.reasons[artifact_id]
        if _needs_a_word(judged, artifact_id) or not stuck.isdisjoint(spec.requires):
            stuck.add(artifact_id)
        if artifact_id in gathering and artifact_id not in state.failed:
            continue
        waits = artifact_id in stuck or artifact_id in gathering
        action = "wait" if waits else _action(judged, artifact_id, reason)
        estimate = FREE if action in ("restore", "reuse") or action in UNDECIDED else estimates[artifact_id]
        items[artifact_id] = Item(
            artifact_id, depth.get(artifact_id, 0), graph.tier(artifact_id), kind_of(spec), action, reason, estimate
        )
    numbers = {d: number for number, d in enumerate(sorted({item.wave for item in items.values()}), 1)}
    return {a: item._replace(wave=numbers[item.wave]) for a, item in items.items()}


def _in_order(judged: Judged) -> ArtifactGraph:
    """The graph with all that an artifact waits for as if it required it: units in their order, stages of a file."""
    graph, shared = judged.judge.graph, judged.judge.shared
    if not shared.chains and not any(spec.after for spec in graph.artifacts.values()):
        return graph

    def waiting(spec: ArtifactSpec) -> ArtifactSpec:
        others = (*spec.after, *shared.after(spec.id), *shared.courtesy(spec.id))
        return msgspec.structs.replace(spec, requires=tuple(dict.fromkeys((*spec.requires, *others))))

    return ArtifactGraph.over({a: waiting(spec) for a, spec in graph.artifacts.items()})


def _needs_a_word(judged: Judged, artifact_id: str) -> bool:
    """Whether no run gets past it before somebody has spoken; a gate that is a command answers to the run."""
    state = judged.execution.state
    if awaits_approval(state, artifact_id):
        return True
    if judged.reasons[artifact_id].code != "gates_open":
        return False
    people = {gate.name for gate in state.artifacts[artifact_id].gates if gate.kind != "check"}
    return any(lack.name in people for lack in missing(state, artifact_id))


def _action(judged: Judged, artifact_id: str, reason: Reason) -> Action:
    """What the run will do about a stale artifact, as far as that can be told before it."""
    judge, spec = judged.judge, judged.execution.state.artifacts[artifact_id]
    if reason.code in EDITS or reason.code == "pre_state_changed":
        return "ask"
    if reason.code in ("in_progress", "gates_open") or judge.unusable(artifact_id) is not None:
        return "wait"
    if reason.code in RESTORABLE:
        return "restore"
    if not spec.has_recipe:
        return "claim"
    known = reason.code != "requirement_stale" and all(
        judge.reasons[r].fresh or judge.reasons[r].code in RESTORABLE for r in spec.requires if r in judge.reasons
    )
    if not known or judge.is_forced(artifact_id) or spec.effects or not judge.precedents.any():
        return "make"
    earlier = judge.earlier(artifact_id)
    return "reuse" if any(all(map(judge.outputs.is_stored, e.outputs)) for e in earlier) else "make"


def _total(graph: ArtifactGraph, estimates: Mapping[str, Estimate], jobs: int) -> Total:
    spans = {a: estimate.ms or NO_TIME for a, estimate in estimates.items()}
    typical, low, high = (
        makespan(graph, {a: span[part] for a, span in spans.items()}, jobs) for part in range(len(NO_TIME))
    )
    return Total(
        Span(typical, min(low, typical), max(high, typical)),
        sum(estimate.tokens or 0 for estimate in estimates.values()),
        round(sum(estimate.cost_usd or 0.0 for estimate in estimates.values()), 6),
        sum(1 for estimate in estimates.values() if estimate.ms is None),
    )


# Changes.

_KINDS: Mapping[str, str] = {
    "never_made": "added",
    "spec_changed": "contract_changed",
    "recipe_changed": "recipe_changed",
    "prompt_changed": "recipe_changed",
    "source_changed": "source_changed",
    "input_changed": "input_changed",
    "pre_state_changed": "input_changed",
    "output_missing": "missing_output",
    "unstored": "missing_output",
    "output_modified": "output_modified",
    "output_replaced": "output_modified",
    "untracked_output": "output_modified",
    "adopted_edit": "output_modified",
}


def report_changes(
    reasons: Mapping[str, Reason], graph: ArtifactGraph, previous: SavedExecution, ids: Iterable[str]
) -> ChangeReport:
    """What of these changed since a plan was last made, by kind. What only follows from a change is no change."""
    report = ChangeReport.empty()
    before = previous.graph
    report.removed.update(a for a in before if a not in graph)
    for artifact_id in ids:
        kind = _kind(graph, before, artifact_id, reasons[artifact_id])
        if kind:
            getattr(report, kind).add(artifact_id)
    return report


def _kind(graph: ArtifactGraph, before: ArtifactGraph, artifact_id: str, reason: Reason) -> str:
    if artifact_id not in before:
        return "added"
    spec, was = graph[artifact_id], before[artifact_id]
    if was.contract != spec.contract:
        return "contract_changed"
    if was.requires != spec.requires or (reason.code == "spec_changed" and reason.subject == "requires"):
        return "deps_changed"
    return _KINDS.get(reason.code, "")
