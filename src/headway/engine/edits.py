"""Bytes that somebody wrote where an output stands: adopted, set aside, or asked about. Never lost."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from contextlib import nullcontext

from headway.core.freshness import EDITS, FRESH, Reason
from headway.core.ids import as_word
from headway.core.plan import ArtifactSpec
from headway.core.state import Output
from headway.engine.jobs import Jobs
from headway.engine.judge import Judge
from headway.engine.keeping import Keeper
from headway.engine.recording import Recorder
from headway.engine.result import Options
from headway.engine.selecting import answers_to_state
from headway.engine.tally import Tally
from headway.errors import UsageError

ASKED = EDITS | {"pre_state_changed"}
"""What only the user can decide about, by default."""


class Edits:
    """Answers edits as the user, the artifact or the plan wants them answered, in this order."""

    def __init__(
        self, judge: Judge, record: Recorder, tally: Tally, keeper: Keeper, jobs: Jobs, options: Options, root: str
    ) -> None:
        self._judge = judge
        self._record = record
        self._tally = tally
        self._keeper = keeper
        self._jobs = jobs
        self._options = options
        self._root = root
        self.adopted: set[str] = set()
        """What was adopted before its turn came."""
        self._later: list[str] = []
        self._anew: list[str] = []

    def hold_known(self) -> None:
        """All edits that are to be asked about are asked about at once, whatever else they wait for.

        Those of files that others are about to change or to read are answered now: by their turn, others stand there.
        """
        for artifact_id, reason in self._beside():
            self._tally.notice(artifact_id, reason)
        self._later = [a for a, reason in self._tally.todo.items() if reason.code in ASKED]
        self._anew = [a for a in self._later if a in self._judge.forced]
        self.hold_later()

    def hold_later(self) -> None:
        """The same for those of which it was not known whether there still is their unit, as soon as it is."""
        if not self._later:
            return
        artifacts, todo, queue = self._record.state.artifacts, self._tally.todo, self._tally.queue
        known = [a for a in self._later if a in todo and not queue.has_ended(a)]
        self._later = [a for a in known if any(other in queue for other in artifacts[a].after)]
        for artifact_id in known:
            if artifact_id in self._later:
                continue
            spec, reason = artifacts[artifact_id], todo[artifact_id]
            if reason.code in EDITS and self.policy(spec) == "ask":
                self._ask(artifact_id, reason)
            elif reason.code == "output_modified" and self._is_used(reason.subject, artifact_id):
                self._answer_ahead(spec, reason)
            elif reason.code not in EDITS and not self._options.force_resume:
                self.go_on_over(spec, reason)

    def _beside(self) -> list[tuple[str, Reason]]:
        """Edits that are in the way of this run though it is not about the artifacts that answer for them."""
        newest = ((path, self._judge.stages.newest(path)) for path in self._judge.shared.chains)
        known = [(path, a, self._judge.reasons.get(a, FRESH)) for path, a in newest if a is not None]
        return [
            (artifact_id, reason)
            for path, artifact_id, reason in known
            if reason.code == "output_modified" and artifact_id not in self._tally.todo
            if reason.subject == path and self._is_used(path, artifact_id)
        ]

    def _is_used(self, path: str, artifact_id: str) -> bool:
        """Whether others than this artifact have yet to change or to read a file that is changed in place."""
        shared = self._judge.shared
        others = (a for a in self._tally.queue.open if a != artifact_id) if path in shared.chains else ()
        return any(use.path == path for other in others for use in shared.uses(other))

    def _answer_ahead(self, spec: ArtifactSpec, reason: Reason) -> None:
        """Keep an edit, or adopt it: those before it in the same file may put that back after this."""
        if self.policy(spec) == "discard":
            self._keeper.preserve(spec.id, [reason.subject])
        elif self._is_adopted(spec, reason):
            self.adopted.add(spec.id)
            if spec.id not in self._tally.queue:
                self._tally.settle(spec.id, "accepted", reason)

    def answer(self, spec: ArtifactSpec, reason: Reason) -> bool:
        """Bytes that somebody wrote stand at an output: adopt them, set them aside, or ask. Whether to go on."""
        policy = self.policy(spec)
        if policy == "discard":
            self._keeper.discard(spec.id, reason)
            return True
        if policy == "accept":
            if self._is_adopted(spec, reason):
                self._tally.arrive(spec, "accepted", reason)
        else:
            self._ask(spec.id, reason)
        return False

    def go_on_over(self, spec: ArtifactSpec, reason: Reason) -> None:
        """It was made from another state than there is: kept by the user's word, or asked about."""
        if self._options.force_resume:
            why = f"--force-resume over {reason.text}. {self._options.reason}".rstrip(". ")
            self._keeper.go_on_with(spec.id, why)
            self._tally.arrive(spec, "accepted", reason)
        else:
            self._tally.hold(spec.id, reason.code, answers_to_state(spec.id), reason)

    def accept(self, artifact_id: str, why: str, brought: Sequence[Output] = ()) -> None:
        """Adopt what stands at its paths (or an effect elsewhere: somebody saw it), or say why that cannot be."""
        spec = self._record.state.artifacts[artifact_id]
        with self._keeper.laid_out(artifact_id) if not brought else nullcontext():
            problem = self._jobs.verify(spec) if spec.verify else ""
            if problem:
                raise UsageError(
                    f"What is there for {artifact_id} cannot be accepted",
                    facts={"reason": problem},
                    hint=f"correct it, or set it aside: headway run {as_word(artifact_id)} --discard-edits",
                    code="accept.verify",
                )
            self._keeper.adopt(artifact_id, why, brought)

    def refuse_unfit(self, artifact_id: str) -> None:
        """What is not there, or no output, cannot be accepted."""
        problem = self.unfit(artifact_id)
        if not problem:
            return
        spec = self._record.state.artifacts[artifact_id]
        if any(self._stands(path.rstrip("/")) for path in (*spec.produces, *spec.modifies)):
            raise UsageError(
                f"What is there for {artifact_id} cannot be accepted",
                facts={"reason": problem},
                hint=f"headway run {as_word(artifact_id)} --discard-edits",
                code="accept.unfit",
            )
        raise UsageError(
            f"There is nothing to accept for {artifact_id}",
            facts={"reason": problem},
            hint=f"headway run {as_word(artifact_id)}",
            code="accept.missing",
        )

    def unfit(self, artifact_id: str) -> str:
        """Why what stands at its paths cannot be accepted, whatever is in it; or ""."""
        spec = self._record.state.artifacts[artifact_id]
        return self._unfit(spec) if spec.produces or spec.modifies or spec.effects else "it has no files"

    def policy(self, spec: ArtifactSpec) -> str:
        """What becomes of edits of an artifact: `ask`, `accept` or `discard`."""
        return self._options.on_edit or spec.on_edit or self._record.state.settings.on_edit

    def _ask(self, artifact_id: str, reason: Reason) -> None:
        """What is half there, say, can only be set aside: there is one answer then, and why."""
        unfit = self.unfit(artifact_id) if reason.code in ("untracked_output", "output_modified") else ""
        answers = [self._without(artifact_id)] if unfit else ["--accept-edits", self._without(artifact_id)]
        self._tally.hold(artifact_id, reason.code, answers, reason, f"it cannot be accepted: {unfit}" if unfit else "")

    def ask_at_last(self, edited: Mapping[str, str]) -> None:
        """Files that are changed in place and that somebody wrote while the run was on, by who answers for them."""
        asked = {a for decision in self._tally.result.decisions for a in decision.artifacts}
        for artifact_id, path in edited.items():
            if artifact_id not in asked:
                self._tally.result.reasons[artifact_id] = reason = Reason("output_modified", path)
                self._tally.result.decide(reason.code, artifact_id, ["--accept-edits", self._without(artifact_id)])

    def _without(self, artifact_id: str) -> str:
        """What goes on without an edit: of what was asked for anew, it says so again, since only a start keeps that."""
        if artifact_id not in self._judge.forced:
            return "--discard-edits"
        anew = self._anew if artifact_id in self._anew else [artifact_id]
        return f"--rerun {' '.join(map(as_word, anew))} --discard-edits"

    def _is_adopted(self, spec: ArtifactSpec, reason: Reason) -> bool:
        """Adopt what stands at its paths; whether that could be done. Else it is held, and the reason told."""
        try:
            with self._keeper.laid_out(spec.id):
                problem = self._refusal(spec)
                if not problem:
                    self._keeper.adopt(spec.id, self._options.reason or "--accept-edits")
        except UsageError as refusal:  # a folder where a file belongs, say
            problem = refusal.message
        if problem:
            self._tally.hold(spec.id, "edit_not_verified", [self._without(spec.id)], reason, problem)
        return not problem

    def _refusal(self, spec: ArtifactSpec) -> str:
        """Why what stands at its paths cannot be adopted, or ""."""
        return self._unfit(spec) or (self._jobs.verify(spec) if spec.verify else "")

    def _unfit(self, spec: ArtifactSpec) -> str:
        """What is not there and has to be, or is no output, in words; or ""."""
        absent = [path for path in spec.produces if not self._stands(path)]
        if len(absent) < len(spec.produces) + len(spec.modifies):  # else it would be nothing at all
            absent = [path for path in absent if path not in spec.optional]
        strange = [path for path in absent if self._stands(path.rstrip("/"))]
        if strange:
            return f"{strange[0].rstrip('/')} is no folder, and one belongs there"
        if absent:
            return f"{', '.join(absent)} {'is' if len(absent) == 1 else 'are'} missing"
        files = (os.path.join(self._root, path) for path in spec.produces if path[-1] != "/")
        folder = next((file for file in files if os.path.isdir(file) and not os.path.islink(file)), "")
        return f"{os.path.relpath(folder, self._root)} is a folder, and a file belongs there" if folder else ""

    def _stands(self, path: str) -> bool:
        """Whether anything stands at a path."""
        return os.path.lexists(os.path.join(self._root, path))
