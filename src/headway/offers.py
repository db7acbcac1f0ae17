"""What can be made now, and of the rest, why not. Judged artifacts and claims in; offers out.

An offer names the completion that it comes after: whoever takes it up later can see whether it still stands.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any, Literal, NamedTuple

from headway.core.freshness import EDITS, Reason
from headway.core.lifecycle import last_made
from headway.core.plan import ArtifactSpec
from headway.core.state import Claim, State
from headway.engine.judged import Judged
from headway.engine.selecting import answers_to_state
from headway.engine.status import lacking
from headway.holding import gone
from headway.ledger.recovery import now
from headway.projections.saved_execution import SavedExecution


class Offer(NamedTuple):
    """An artifact that can be made now: why, by whom ideally, and what is asked for.

    `seen` is the number of its newest completion: what is completed after that is not this offer any more.
    """

    spec: ArtifactSpec
    reason: Reason
    seen: int = 0

    @property
    def by_run(self) -> bool:
        """Whether a run makes it: it has a recipe, and nobody has begun it with their hands."""
        return self.spec.has_recipe and self.reason.code != "interrupted"

    def to_dict(self) -> dict[str, Any]:
        """The same for machines."""
        spec = self.spec
        return {
            "artifact": spec.id,
            "description": spec.description,
            "contract": spec.contract,
            "instructions": spec.instructions,
            "acceptance": list(spec.acceptance),
            "constraints": list(spec.constraints),
            "agent": spec.agent,
            "complexity": spec.complexity,
            "tags": list(spec.tags),
            "files": list(spec.files),
            "produces": list(spec.produces),
            "requires": list(spec.requires),
            "gates": [gate.name for gate in spec.gates],
            "has_recipe": spec.has_recipe,
            "reason": self.reason.to_dict(),
        }


class Next(NamedTuple):
    """What can be made now, and of the rest, why not: waiting for somebody, or blocked by what failed."""

    plan_id: str
    offers: list[Offer]
    waiting: dict[str, str]
    blocked: dict[str, str]
    failed: dict[str, str]
    done: int
    total: int
    execution: SavedExecution | None = None
    """The plan that all of this is said of."""
    edits: Mapping[str, Reason] = {}
    """Of what waits, that for which somebody else's bytes stand at its path."""
    follows: Sequence[str] = ()
    """Of what waits, that which stands for others that are all there: nobody has to make it, and a run sees to it."""

    def helps(self, artifact_id: str) -> str:
        """The verb for what failed: a run makes it again, or somebody does; of what stands for others, `why` tells."""
        spec = self.execution.state.artifacts[artifact_id] if self.execution is not None else None
        if spec is not None and spec.gathers:
            return "why"
        return "run" if spec is not None and spec.has_recipe else "claim"

    @property
    def status(self) -> Literal["ready", "waiting", "blocked", "done"]:
        """In a word: something can be made, somebody else is at it, only a decision helps, or nothing is left."""
        if self.offers:
            return "ready"
        if self.waiting:
            return "waiting"
        return "blocked" if self.failed or self.blocked else "done"

    def to_dict(self) -> dict[str, Any]:
        """`next --json`."""
        return {
            "plan_id": self.plan_id,
            "status": self.status,
            "next": [offer.to_dict() for offer in self.offers],
            "waiting": self.waiting,
            "blocked": self.blocked,
            "failed": self.failed,
            "progress": {"done": self.done, "total": self.total},
        }


def offers_of(judged: Judged, *, dead: Collection[str], agent: str = "") -> Next:
    """What can be made now. `dead`: claimed by a run that is no more. `agent`: what is for them, or for anybody."""
    state, reasons = judged.execution.state, judged.reasons
    roots = _failed_roots(judged)
    offers: list[Offer] = []
    orphans: list[Offer] = []
    waiting: dict[str, str] = {}
    blocked: dict[str, str] = {}
    failed: dict[str, str] = {}
    edits: dict[str, Reason] = {}
    follows: list[str] = []
    moment = now()
    for artifact_id, spec in state.artifacts.items():
        reason = reasons[artifact_id]
        claim = None if artifact_id in dead else state.claims.get(artifact_id)
        if reason.fresh:
            continue
        if claim is not None and gone(claim):
            orphans.append(Offer(spec, Reason("interrupted"), newest_completion(state, artifact_id)))
        elif claim is not None and not is_over(claim, moment):
            waiting[artifact_id] = f"claimed by {claim.by}" + (f" until {claim.lease}" if claim.lease else "")
        elif artifact_id in state.failed and reason.code not in EDITS:
            failed[artifact_id] = state.failed[artifact_id].error
        elif artifact_id not in state.failed and (lacks := lacking(judged, artifact_id)):
            waiting[artifact_id] = "; ".join(map(str, lacks))
        elif reason.code in EDITS:
            edits[artifact_id] = reason
            waiting[artifact_id] = f"{reason.text}: headway run --accept-edits, or headway run --discard-edits"
        elif reason.code == "pre_state_changed":
            ways = ", or ".join(f"headway run {flag}" for flag in answers_to_state(spec.id))
            waiting[artifact_id] = f"{reason.text}: {ways}"
        elif artifact_id in roots:
            blocked[artifact_id] = roots[artifact_id]
        elif (elsewhere := judged.judge.unusable(artifact_id)) is not None:
            waiting[artifact_id] = f"{elsewhere.name} of another plan: {elsewhere.command}"
        elif late := late_requirements(judged, artifact_id):
            waiting[artifact_id] = f"waits for {late[0]}"
        elif spec.gathers:
            follows.append(artifact_id)
            waiting[artifact_id] = "follows from what it stands for: headway run"
        elif not agent or spec.agent in ("", agent):
            offers.append(
                Offer(spec, reason if claim is None else Reason("interrupted"), newest_completion(state, artifact_id))
            )
        else:
            waiting[artifact_id] = f"is for {spec.agent}"
    counting = [
        artifact_id for artifact_id, spec in state.artifacts.items() if not spec.gathers
    ]  # as `progress` counts
    done = sum(reasons[a].fresh for a in counting)
    offers += (offer for offer in orphans if not agent or offer.spec.agent in ("", agent))
    return Next(state.plan_id, offers, waiting, blocked, failed, done, len(counting), judged.execution, edits, follows)


def _failed_roots(judged: Judged) -> dict[str, str]:
    """What cannot be made because something before it failed, and what that is."""
    failed = judged.execution.state.failed
    roots: dict[str, str] = {}
    for artifact_id in judged.reasons:  # in dependency order
        requires = judged.judge.graph[artifact_id].requires
        root = next((r if r in failed else roots[r] for r in requires if r in failed or r in roots), None)
        if root is not None:
            roots[artifact_id] = root
    return roots


def late_requirements(judged: Judged, artifact_id: str) -> list[str]:
    """What of this plan has to be done first: what it requires, earlier stages of a file that it changes in place, and
    whoever else comes before it; or else, who uses such a file at this moment."""
    shared, spec = judged.judge.shared, judged.judge.graph[artifact_id]
    artifacts, failed = judged.execution.state.artifacts, judged.execution.state.failed
    order = [r for r in spec.after if r not in failed and r in artifacts and artifacts[r].gathers != "units"]
    before = dict.fromkeys((*spec.requires, *shared.after(artifact_id), *order))
    late = [r for r in before if r in judged.reasons and not judged.reasons[r].fresh]
    return late or _using_the_same(judged, artifact_id)


def _using_the_same(judged: Judged, artifact_id: str) -> list[str]:
    """Artifacts in somebody's hands whose files this one may not touch, or read, at the same time."""
    shared = judged.judge.shared
    uses = shared.uses(artifact_id)
    return [
        other
        for other, claim in judged.execution.state.claims.items()
        if uses and other != artifact_id and not gone(claim) and not is_over(claim, now())
        if any(use.path == theirs.path and not use.suits(theirs) for use in uses for theirs in shared.uses(other))
    ]


def newest_completion(state: State, artifact_id: str) -> int:
    """The number of its newest completion, or of what waits for its gates; 0 without any."""
    done = last_made(state, artifact_id)
    return done.seq if done is not None else 0


def is_over(claim: Claim, moment: str) -> bool:
    """Whether its lease has run out."""
    return bool(claim.lease) and claim.lease < moment
