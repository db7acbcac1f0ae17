"""Files that a run changes in place: as each artifact has to find them, one user at a time, and as they are left."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from headway.core import commands as cmd
from headway.core.fingerprint import NOTHING
from headway.core.plan import ArtifactSpec
from headway.core.state import BEFORE, Fingerprint, Output, Step
from headway.engine.judge import Judge
from headway.engine.making import Task
from headway.engine.recording import Recorder
from headway.engine.shared import Use
from headway.errors import BlobDamaged

Kind = Literal["file", "exec", "tree", "link"]
KINDS: tuple[Kind, ...] = ("file", "exec", "tree", "link")
"""What can be changed in place."""


class InPlace:
    """The shared files of one run, and who is at them now."""

    def __init__(self, judge: Judge, record: Recorder) -> None:
        self._judge = judge
        self._record = record
        self._using: dict[str, list[Use]] = {}
        self._held: dict[str, list[Use]] = {}

    def uses(self, artifact_id: str) -> Sequence[Use]:
        """The shared files that an artifact reads or changes. Most plans have none."""
        shared = self._judge.shared
        return shared.uses(artifact_id) if shared.chains else ()

    def are_free(self, uses: Sequence[Use]) -> bool:
        """Whether all of them can be used beside those who use them now."""
        return all(use.suits(other) for use in uses for other in self._using.get(use.path, ()))

    def take_hold(self, artifact_id: str, uses: Sequence[Use]) -> None:
        """They are used now."""
        if uses:
            self._held[artifact_id] = list(uses)
            for use in uses:
                self._using.setdefault(use.path, []).append(use)

    def let_go(self, *ids: str) -> None:
        """They are not used any more."""
        for artifact_id in ids if self._held else ():
            for use in self._held.pop(artifact_id, ()):
                self._using[use.path].remove(use)

    def found_by(self, spec: ArtifactSpec, fp: Fingerprint) -> tuple[Output, ...]:
        """Shared files, as this artifact has to find them."""
        found: list[Output] = []
        for use in self.uses(spec.id):
            own = use.path in spec.modifies or use.path in spec.reads
            stage = self._judge.stages.before(spec.id, use.path) if own else use.stage
            output = self._judge.stages.output_of(stage, use.path) if stage is not None else None
            if output is not None:
                found.append(output)
            elif use.path in fp.before and fp.before[use.path] != NOTHING:
                self._judge.outputs.set_aside([use.path])
                before = fp.before[use.path]
                found.append(Output(use.path, before, 0, self._kind_before(spec.id, use.path, before)))
        return tuple(found)

    def _kind_before(self, artifact_id: str, path: str, digest: str) -> Kind:
        """What stood at a path before it was first changed: what stands there now, if it is that; as was noted then;
        or else what became of it."""
        if path.endswith("/"):
            return "tree"
        seen = self._judge.observer.look(path)
        noted = self._record.state.steps.get(artifact_id, {}).get(BEFORE + path)
        word: object = next((o.kind for o in self._judge.recorded(artifact_id) if o.path == path), "file")
        if seen.digest == digest:
            word = seen.kind
        elif noted is not None and noted.blob == digest:
            word = noted.value
        elif digest and self._is_of_a_link(digest) != (word == "link"):
            word = "file" if word == "link" else "link"
        return next((kind for kind in KINDS if kind == word), "file")

    def _is_of_a_link(self, digest: str) -> bool:
        """Whether bytes are those by which a link is kept: one line that no file would be without its end."""
        try:
            data = self._judge.outputs.blobs.get(digest)
        except BlobDamaged:
            return False
        return data.startswith(b"link:") and b"\n" not in data

    def keep_before(self, task: Task) -> None:
        """What a shared file was before it was first changed, or that there was none: the next attempt begins there."""
        spec = task.job.spec
        kinds = {output.path: output.kind for output in task.before}
        for path in spec.modifies:
            first = self._judge.stages.before(spec.id, path) is None and self._judge.known(spec.id) is None
            if first:
                step = Step(key="", value=kinds.get(path), blob=task.fp.before[path])
                name = BEFORE + path
                self._record(cmd.RecordStep(id=spec.id, token=task.token, name=name, step=step, origin=True), True)

    def bring_up(self, spec: ArtifactSpec) -> None:
        """What it reads by its path alone stands as the last stage left it, before anybody looks at it: others may have
        had it put back."""
        judge = self._judge
        for path in [path for path in spec.sources if path in judge.displaced] if judge.displaced else ():
            self._put_back(path)
            judge.files.forget([path])

    def stand(self, spec: ArtifactSpec) -> None:
        """What was not made because it need not be: where nobody changes a file after it, the file is as it left it.

        Others may be about to read it by its path alone.
        """
        shared, displaced = self._judge.shared, self._judge.displaced
        for path in (*spec.produces, *spec.modifies) if displaced else ():
            if path in displaced and shared.is_last(spec.id, path):
                self._put_back(path)

    def leave(self) -> dict[str, str]:
        """Shared files that were touched end as the newest of their stages left them; those that somebody has written
        meanwhile stay, by the stage that is asked about them."""
        edited: dict[str, str] = {}
        for path in sorted(self._judge.displaced):
            if stage := self._put_back(path, at_last=True):
                edited[stage] = path
        return edited

    def _put_back(self, path: str, *, at_last: bool = False) -> str:
        """Put a shared file back to its newest stage; that stage, if somebody has been at the file since."""
        stages, state = self._judge.shared.chains.get(path), self._record.state
        if stages is None:
            return ""
        newest = self._judge.stages.newest(path)
        broken = any(stage in state.failed or stage in state.claims for stage in stages)
        output = self._judge.stages.output_of(newest, path) if newest is not None else None
        now = self._judge.observer.look(path).digest
        if output is None or newest is None or (broken and (now or not at_last)):  # what a failed one left stays
            return ""
        if now and not self._judge.is_replaceable(newest, path, now):
            if not self._judge.is_ours(newest, path, now):
                return newest
            if kept := self._judge.outputs.set_aside([path]):  # of an attempt that was cut off, by all that is known
                self._record(cmd.PreserveEdit(id=newest, outputs=kept), True)
        self._judge.outputs.restore([output])
        return ""
