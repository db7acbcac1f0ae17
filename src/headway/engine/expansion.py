"""A pipeline within a run: what stands for its units and loops is gathered, and the plan grows as they do.

What there is to grow is found by growth.py; here it is recorded, judged, and put into the queue.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

import msgspec

from headway.core import commands as cmd
from headway.core.freshness import FRESH, Reason
from headway.core.plan import ArtifactSpec
from headway.core.state import Output, State
from headway.disk import boot_id
from headway.engine.growth import Growth, Ungrown
from headway.engine.judge import Judge
from headway.engine.making import Task
from headway.engine.parting import kept_before
from headway.engine.recording import Recorder
from headway.engine.result import Preserved
from headway.engine.tally import Tally
from headway.errors import Rejected, TryLater

Select = Callable[[State], set[str]]
"""What of a plan is wanted."""


class Expansion:
    """The pipelines of one run. `select` says anew what is wanted, where a run is not for the whole plan."""

    def __init__(
        self,
        judge: Judge,
        record: Recorder,
        tally: Tally,
        running: Mapping[str, Task],
        select: Select | None,
        policy: Callable[[ArtifactSpec], str],
    ) -> None:
        """`policy` says what becomes of edits of an artifact."""
        self._judge = judge
        self._record = record
        self._tally = tally
        self._running = running
        self._reselect = select
        self._policy = policy
        self._growth = Growth(judge.observer.expand, judge.outputs.bytes_of)

    def gather(self, spec: ArtifactSpec, reason: Reason) -> str:
        """What stands for others is done when they are; a loop goes on until it is satisfied. Why it cannot, or ""."""
        try:
            if spec.gathers == "units":
                outputs = self._find_units(spec)
            elif spec.gathers == "all":
                outputs = (self._judge.outputs.keep_text(self._list_all(spec)),)
            else:
                spec = self._cut_short(spec) if spec.acceptance else spec
                (last,) = spec.requires
                if spec.acceptance and not self._is_satisfied(spec, last):
                    return ""
                outputs = self._judge.recorded(last)
        except Ungrown as problem:
            return str(problem)
        except (Rejected, TryLater) as problem:
            return problem.in_one_line
        self._record(cmd.GatherArtifact(id=spec.id, outputs=outputs, fp=self._judge.fingerprint(spec.id)))
        self._judge.state = self._record.state
        self._tally.settle(spec.id, "kept", reason)
        return ""

    def is_enough(self, spec: ArtifactSpec) -> bool:
        """Whether the round before was satisfied after all, so that this one and those after it are not needed.

        What somebody accepted in one of them is asked about first.
        """
        state = self._record.state
        pipeline = state.settings.pipeline(spec.pipeline)
        loop = pipeline.loop_around(spec.phase) if pipeline is not None else None
        if loop is None or loop.repeat[0] != spec.phase:
            return False
        before = state.artifacts.get(f"{spec.unit}/{loop.id}~{spec.iteration - 1}")
        if before is None or not self._judge.reasons[before.id].fresh:
            return False
        if not self._is_content(before, loop.until):
            return False
        command = self._growth.round(state, spec, spec.iteration - 1)
        theirs = self._accepted_in(command.removed)
        if any(self._policy(state.artifacts[a]) != "discard" for a in theirs):
            return False
        try:
            for artifact_id, outputs in theirs.items():
                self._hand_down(f"{spec.unit}/{state.artifacts[artifact_id].phase}~{spec.iteration - 1}", outputs)
            self._grow(command, self._unit_ids(spec))
        except (Rejected, TryLater):
            return False
        return True

    def _cut_short(self, spec: ArtifactSpec) -> ArtifactSpec:
        """What stands for the end of a loop, without rounds that nobody would have asked for: another condition, or
        another report, may be content with one before."""
        state = self._record.state
        last = state.artifacts[spec.requires[0]]
        for number in range(1, last.iteration):
            if self._is_content(state.artifacts[f"{spec.unit}/{spec.phase}~{number}"], spec.acceptance[0]):
                command = self._growth.round(state, last, number)
                if self._accepted_in(command.removed):  # it stands, whoever asks for less now
                    break
                self._grow(command, self._unit_ids(spec))
                return self._record.state.artifacts[spec.id]
        return spec

    def _accepted_in(self, rounds: Iterable[str]) -> dict[str, tuple[Output, ...]]:
        """By artifact, what somebody wrote and accepted in some rounds of a loop."""
        is_theirs, plan = self._judge.precedents.is_only_accepted, self._record.state.plan_id
        done = {a: done for a in rounds if (done := self._judge.known(a)) is not None and done.how == "accepted"}
        theirs = {a: tuple(o for o in d.outputs if is_theirs(plan, o.path, o.digest)) for a, d in done.items()}
        return {a: outputs for a, outputs in theirs.items() if outputs}

    def _hand_down(self, artifact_id: str, outputs: tuple[Output, ...]) -> None:
        """What was accepted in a round that is not needed any more can be had back from one before it."""
        seq = self._record(cmd.PreserveEdit(id=artifact_id, outputs=outputs))[0].seq
        self._tally.result.preserved.append(Preserved(artifact_id, [output.path for output in outputs], seq))

    def _is_content(self, made: ArtifactSpec, until: str) -> bool:
        """Whether a loop is satisfied with a round, as far as what it wrote can still be read."""
        try:
            return self._growth.verdict(made, until, self._judge.recorded(made.id), made.outputs).passed
        except Ungrown:
            return False

    def _find_units(self, spec: ArtifactSpec) -> tuple[Output, ...]:
        """The units that an artifact names now; those that it named before and does not any more are removed."""
        pipeline = self._record.state.settings.pipeline(spec.pipeline)
        assert pipeline is not None, "units belong to a pipeline"
        command = self._growth.grown(self._record.state, pipeline)
        self._grow(command, ())
        return (self._judge.outputs.keep_text(msgspec.json.encode(command.units)),)

    def _list_all(self, spec: ArtifactSpec) -> bytes:
        """What a phase of every unit came to: by unit, its outputs by name; of text, the text itself."""
        found: dict[str, dict[str, dict[str, str]]] = {}
        state, outputs = self._record.state, self._judge.outputs
        units = state.units.get(spec.pipeline)
        for unit in units.units if units is not None else ():
            made = state.artifacts[f"{unit}/{spec.phase}"]
            names = {path: name for name, path in made.outputs.items()}
            found[unit] = {
                names.get(o.path, o.path) or "text": {
                    **({"path": o.path} if o.path else {"text": outputs.bytes_of(o).decode("utf-8", "replace")}),
                    "sha256": o.digest,
                }
                for o in self._judge.recorded(made.id)
            }
        return msgspec.json.format(msgspec.json.encode(found), indent=1) + b"\n"

    def _is_satisfied(self, spec: ArtifactSpec, last: str) -> bool:
        """Whether a loop has come to its end. If not, it is gone round once more, or has failed for good."""
        state = self._record.state
        made = state.artifacts[last]
        verdict = self._growth.verdict(made, spec.acceptance[0], self._judge.recorded(last), made.outputs)
        if verdict.passed:
            return True
        pipeline = state.settings.pipeline(spec.pipeline)
        phase = pipeline.phase(spec.phase) if pipeline is not None else None
        times = phase.times if phase is not None else 1
        if made.iteration >= times:
            raise Ungrown(f"{verdict.why} was not true after {made.iteration} round{'s' * (made.iteration > 1)}")
        self._grow(self._growth.round(state, made, made.iteration + 1), self._unit_ids(made))
        return False

    def _unit_ids(self, spec: ArtifactSpec) -> list[str]:
        """The artifacts of a unit that are made once, and what stands for the others."""
        state = self._record.state
        pipeline = state.settings.pipeline(spec.pipeline)
        phases = pipeline.phases if pipeline is not None else ()
        ids = (f"{spec.unit}/{phase.id}" for phase in phases)
        return [a for a in ids if a in state.artifacts]

    def _grow(self, command: cmd.ExpandUnits, unit: Sequence[str]) -> None:
        """Record what comes and goes, and have the queue grow with it. `unit`: only its loop goes on."""
        for preserve in kept_before(self._record.state, command, boot_id(), lambda: self._judge.outputs):
            self._record(preserve)
        changed = {path for a in command.removed for path in self._record.state.artifacts[a].modifies}
        self._record(command)
        state, judge, tally = self._record.state, self._judge, self._tally
        tally.forget(command.removed)
        tally.result.gone += [a for a in command.removed if not _is_round(a, unit)]
        judge.grow(state, [s for s in command.artifacts if s.id in state.artifacts], command.removed, unit)
        tally.judged.update({spec.id: spec for spec in command.artifacts})
        new = [spec.id for spec in command.artifacts]
        self._select(new, unit)
        more = [a for a in new if not judge.reasons[a].fresh] if unit else self._behind(command.pipeline)
        more = [a for a in more if a in tally.selected and a not in tally.queue]
        judge.displaced.update(path for path in changed if unit or self._is_settled(path))
        tally.extend(more, new, elsewhere=not unit)

    def _is_settled(self, path: str) -> bool:
        """Whether nobody is about to bring a shared file up to date: then it is put back to its newest stage by us,
        without what those did to it that are gone."""
        newest = self._judge.stages.newest(path) if path in self._judge.shared.chains else None
        return newest is not None and self._judge.reasons.get(newest, FRESH).fresh

    def _select(self, new: Iterable[str], unit: Sequence[str]) -> None:
        """What is new is wanted if everything is, or if it belongs to what is."""
        if unit or self._reselect is None:
            self._tally.selected.update(new)
        else:
            self._tally.selected.update(self._reselect(self._record.state))

    def _behind(self, pipeline: str) -> list[str]:
        """After units came or went: what is stale now, or behind what is, and was not waited for so far."""
        judge, queue, found = self._judge, self._tally.queue, set[str]()
        artifacts = self._record.state.artifacts
        order = []
        for artifact_id in judge.shared.order():
            if artifact_id in self._running or queue.has_ended(artifact_id):
                continue
            own = artifacts[artifact_id].pipeline == pipeline
            fresh = judge.again(artifact_id).fresh if own else judge.reasons[artifact_id].fresh
            if not fresh or any(r in found or r in queue for r in self._tally.builds_on(artifact_id)):
                found.add(artifact_id)
                order.append(artifact_id)
        return order


def _is_round(artifact_id: str, unit: Sequence[str]) -> bool:
    """Whether it is one round of a loop: its files are those of the rounds before."""
    return bool(unit) and "~" in artifact_id
