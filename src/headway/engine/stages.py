"""Files that several artifacts change in place: whose bytes are there, and as what each of them finds them.

Looks at what is recorded, and at the disk only for what was there before all of them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from headway.core.fingerprint import NOTHING
from headway.core.plan import ArtifactSpec
from headway.core.state import BEFORE, Output

if TYPE_CHECKING:
    from headway.engine.judge import Judge


class Stages:
    """The stages of shared files, by what a judge knows of the artifacts that they are."""

    def __init__(self, judge: Judge) -> None:
        self._judge = judge
        self._newest: dict[str, int] = {}

    def forget(self) -> None:
        """Other artifacts may have been made, or have come to change a file."""
        self._newest = {}

    def before(self, artifact_id: str, path: str) -> str | None:
        """The stage whose bytes an artifact changes in place; one that was skipped and never made leaves none."""
        skipped = self._judge.state.skipped
        for stage in self._judge.shared.earlier(artifact_id, path):
            skip = skipped.get(stage)
            if skip is None or skip.last is not None:
                return stage
        return None

    def output_of(self, artifact_id: str, path: str) -> Output | None:
        """What an artifact left at a path."""
        return next((output for output in self._judge.recorded(artifact_id) if output.path == path), None)

    def bytes_before(self, spec: ArtifactSpec, path: str) -> str:
        """The bytes that an artifact changes in place: as the stage before it left them, or as they once were."""
        stage = self.before(spec.id, path)
        if stage is not None:
            output = self.output_of(stage, path)
            return output.digest if output is not None else NOTHING
        if path not in spec.reads:
            return self._before_first(spec.id, path)
        stages = self._judge.shared.chains.get(path, ())
        return self._before_first(stages[0], path) if stages else self._judge.observer.look(path).digest

    def _before_first(self, stage: str, path: str) -> str:
        """What a shared file is for its first stage: what it was before any of them changed it, or as it is.

        Which of them is the first may change, and what the others did is not to be found there.
        """
        judge = self._judge
        origin, done = self._origin(stage, path), judge.known(stage)
        if done is not None and path in done.fp.before:
            before = done.fp.before[path]
            theirs = done.how == "accepted" and not judge.precedents.names(before)  # nor what one before it had left
            return before if origin is None or theirs else origin
        now = judge.observer.look(path).digest
        if origin is None:
            return now
        failure = judge.state.failed.get(stage)
        if failure is not None:
            ours = now == next((output.digest for output in failure.left if output.path == path), "")
        else:
            ours = not now or judge.is_ours(stage, path, now)
        return origin if ours else now

    def _origin(self, stage: str, path: str) -> str | None:
        """What a shared file was before anybody changed it, or at least this one, as far as it is on record."""
        state = self._judge.state
        step = state.steps.get(stage, {}).get(BEFORE + path)
        if path in state.origins or step is not None:
            return state.origins.get(path, step.blob if step is not None else None)
        return self._found_first(path)

    def _found_first(self, path: str) -> str | None:
        """The same by what those who changed it found there: bytes that none of them left."""
        stages = (self._judge.known(stage) for stage in self._judge.shared.chains.get(path, ()))
        made = [done for done in stages if done is not None]
        left = {output.digest for done in made for output in done.outputs if output.path == path}
        found = (done.fp.before[path] for done in made if path in done.fp.before)
        return next((digest for digest in found if digest not in left), None)

    def is_as_it_began(self, stage: str, path: str, digest: str) -> bool:
        """Whether these bytes are what a shared file was before anybody changed it."""
        return digest == self._origin(stage, path)

    def later(self, artifact_id: str, path: str) -> list[str]:
        """Those who have changed a shared path after an artifact."""
        return [stage for stage in self._judge.shared.later(artifact_id, path) if self._judge.known(stage) is not None]

    def answers_for(self, artifact_id: str, path: str) -> bool:
        """Whether what is on disk is this artifact's: it is the newest stage of a shared path that was ever made."""
        stages = self._judge.shared.chains.get(path)
        return stages is None or self.newest(path, stages[0]) == artifact_id

    def newest(self, path: str, default: str | None = None) -> str | None:
        """The newest stage of a shared path that was ever made. Stages are made in order, so little is looked at."""
        known, skipped = self._judge.known, self._judge.state.skipped
        stages = self._judge.shared.chains[path]
        place = self._newest.get(path, -1)
        if not 0 <= place < len(stages) or known(stages[place]) is None:
            place = next((n for n in range(len(stages) - 1, -1, -1) if known(stages[n]) is not None), -1)
        ahead = place + 1
        while ahead < len(stages) and (known(stages[ahead]) is not None or stages[ahead] in skipped):
            place = ahead if known(stages[ahead]) is not None else place
            ahead += 1
        self._newest[path] = place
        return stages[place] if place >= 0 else default
