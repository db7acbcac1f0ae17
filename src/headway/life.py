"""Artifacts in people's and agents' hands: what is next, claim it, finish it, fail it, skip it, give it back.

A claim is an event, and its number the token that finishing it needs. Rules are core/decide.py's; nothing is run here
but an artifact's own `verify`.
"""

from __future__ import annotations

import os
from typing import Any, NamedTuple

from headway.core.commands import CompleteArtifact, FailArtifact, ReleaseArtifacts, SkipArtifacts, StartArtifacts
from headway.core.events import Record
from headway.core.freshness import Reason
from headway.core.plan import ArtifactSpec
from headway.core.state import Completion, Output, State
from headway.engine.making import Workshop, environment
from headway.engine.recipes.base import Job
from headway.engine.session import Judged
from headway.errors import DecisionNeeded, UsageError
from headway.work import Meant, Work


class Offer(NamedTuple):
    """An artifact that can be made now: why, by whom ideally, and what is asked for."""

    spec: ArtifactSpec
    reason: Reason

    def to_dict(self) -> dict[str, Any]:
        """The same for machines."""
        spec = self.spec
        return {
            "artifact": spec.id,
            "description": spec.description,
            "contract": spec.contract,
            "instructions": spec.instructions,
            "acceptance": list(spec.acceptance),
            "agent": spec.agent,
            "produces": list(spec.produces),
            "requires": list(spec.requires),
            "has_recipe": spec.has_recipe,
            "reason": self.reason.to_dict(),
        }


class Life:
    """Hands on the artifacts of one project."""

    def __init__(self, work: Work, *, by: str) -> None:
        self._work = work
        self._project = work.project
        self._by = by

    def next(self, meant: Meant, *, at: int | None = None, take: str = "") -> list[Offer]:
        """What can be made now: stale, unclaimed, and with everything that it requires up to date."""
        judged = self._work.judge(meant, at=at, take=take)
        state = judged.execution.state
        ready = (a for a in state.artifacts if self._is_ready(judged, a))
        return [Offer(state.artifacts[a], judged.reasons[a]) for a in ready]

    def claim(self, plan_id: str, word: str, *, lease: str = "") -> dict[str, Any]:
        """Take an artifact in hand; the token that finishing it needs."""
        judged, artifact_id = self._find(plan_id, word)
        waits = [
            r for r in judged.judge.graph[artifact_id].requires if r in judged.reasons and not judged.reasons[r].fresh
        ]
        elsewhere = judged.judge.unusable(artifact_id)
        if elsewhere is not None:
            raise DecisionNeeded(
                f"Artifact {artifact_id} requires what another plan has to make first",
                facts={elsewhere.name: elsewhere.problem},
                hint=elsewhere.command,
                code="artifact.waiting",
            )
        if waits:
            raise DecisionNeeded(
                f"Artifact {artifact_id} requires what is not up to date",
                facts={"waits for": ", ".join(waits)},
                hint=f"headway run {waits[0]}",
                code="artifact.waiting",
            )
        reasons: dict[str, str] = {artifact_id: judged.reasons[artifact_id].code}
        command = StartArtifacts(ids=(artifact_id,), lease=lease, reasons=reasons)
        token = self._execute(plan_id, command)[0].seq
        offer = Offer(judged.execution.state.artifacts[artifact_id], judged.reasons[artifact_id])
        return {**offer.to_dict(), "token": token, "by": self._by}

    def complete(
        self, plan_id: str, word: str, *, token: int | None, text: bytes | None = None, note: str = ""
    ) -> Completion:
        """Finish what was claimed: its files are read, verified and recorded. What is returned is on disk."""
        judged, artifact_id = self._find(plan_id, word)
        state = judged.execution.state
        spec = state.artifacts[artifact_id]
        held = self._token(state, artifact_id, token)
        outputs = self._outputs(judged, spec, text)
        verified = self._verify(judged, spec)
        command = CompleteArtifact(
            id=artifact_id,
            token=held,
            outputs=outputs,
            fp=judged.judge.fingerprint(artifact_id),
            verified=verified,
            external=bool(spec.effects),
            note=note,
        )
        self._execute(plan_id, command)
        return self._project.show(plan_id).state.completed[artifact_id]

    def fail(self, plan_id: str, word: str, *, token: int | None, error: str) -> None:
        """Say that it did not work out."""
        judged, artifact_id = self._find(plan_id, word)
        held = self._token(judged.execution.state, artifact_id, token)
        self._execute(plan_id, FailArtifact(id=artifact_id, token=held, error=error))

    def release(self, plan_id: str, word: str, *, token: int | None = None, reason: str) -> None:
        """Give a claim back: nothing is known to be wrong."""
        judged, artifact_id = self._find(plan_id, word)
        held = self._token(judged.execution.state, artifact_id, token)
        self._execute(plan_id, ReleaseArtifacts(ids=(artifact_id,), reason=reason or "given back", token=held))

    def skip(self, plan_id: str, words: list[str], *, reason: str) -> list[str]:
        """Decide that artifacts are not made; their dependents go on without them."""
        state = self._project.show(plan_id).state
        ids = self._work.session.resolve(state, words)
        self._execute(plan_id, SkipArtifacts(ids=tuple(ids), reason=reason))
        return ids

    # Helpers of the above.

    def _is_ready(self, judged: Judged, artifact_id: str) -> bool:
        if judged.reasons[artifact_id].fresh or artifact_id in judged.execution.state.claims:
            return False
        if judged.judge.unusable(artifact_id) is not None:
            return False
        return all(judged.reasons[r].fresh for r in judged.judge.graph[artifact_id].requires if r in judged.reasons)

    def _find(self, plan_id: str, word: str) -> tuple[Judged, str]:
        judged = self._work.session.judge(plan_id)
        return judged, self._work.session.resolve(judged.execution.state, [word])[0]

    def _token(self, state: State, artifact_id: str, token: int | None) -> int:
        if token is not None:
            return token
        claim = state.claims.get(artifact_id)
        if claim is not None and claim.by == self._by and not claim.run:
            return claim.seq
        raise UsageError(
            f"Artifact {artifact_id} is not claimed by {self._by}",
            facts={"its holder": claim.by if claim else "nobody"},
            hint=f"headway claim {artifact_id}"
            if claim is None
            else "give the token that the claim printed: --token N",
            code="claim.none",
        )

    def _outputs(self, judged: Judged, spec: ArtifactSpec, text: bytes | None) -> tuple[Output, ...]:
        outputs = judged.judge.outputs
        if not spec.produces and not spec.modifies:
            return (outputs.keep_text(text or b""),)
        missing = [p for p in spec.produces if not os.path.lexists(os.path.join(self._project.root, p))]
        if missing:
            raise UsageError(
                f"Artifact {spec.id} is not all there",
                facts={"missing": ", ".join(missing)},
                hint=f"write it, then headway complete {spec.id}",
                code="output.missing",
            )
        return outputs.capture((*spec.produces, *spec.modifies))

    def _verify(self, judged: Judged, spec: ArtifactSpec) -> bool:
        """Whether its `verify` was run and agreed; one that does not agree refuses the completion."""
        state, root = judged.execution.state, self._project.root
        workshop = Workshop(root, judged.judge.outputs, self._project.home)
        job = Job(
            spec=spec,
            root=root,
            inputs=workshop.inputs(spec, judged.judge.recorded),
            sources=judged.judge.sources_of(spec.id),
            variables=state.settings.vars,
            environment=environment(self._work.session.environ, spec, state.plan_id, "", ""),
            timeout=spec.timeout or state.settings.timeout,
        )
        checked = workshop.verify(job)
        if checked is not None and not checked.ok:
            raise UsageError(
                f"verify does not agree with {spec.id}",
                facts={"error": checked.error},
                hint=f"mend it, then headway complete {spec.id}; or headway fail {spec.id} --error TEXT",
                code="verify.failed",
            )
        return checked is not None

    def _execute(self, plan_id: str, command: Any) -> list[Record]:
        with self._project.folder(plan_id).writing() as writer:
            return writer.execute(command, by=self._by)
