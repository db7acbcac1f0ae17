"""What a worker is given to make an artifact with: inputs, environment, durable steps, and the key of its effects."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

import msgspec

from headway.core import commands as cmd
from headway.core.fingerprint import reuse_key
from headway.core.gates import Check
from headway.core.plan import ArtifactSpec
from headway.core.state import Fingerprint, Step
from headway.engine.judge import Judge
from headway.engine.making import Task, Workshop, told
from headway.engine.recipes.base import Inputs, Job, Stepper, Stopped, Surroundings
from headway.engine.recording import Recorder
from headway.engine.result import Reporter
from headway.engine.scheduler_lock import Groups
from headway.engine.sources import Moment
from headway.engine.steps import recorded_as, taken_from

EFFECT = "effect key"
"""Names the step that keeps the key of an attempt with effects elsewhere."""


class Jobs(Surroundings):
    """Builds the jobs of one run, and is around them.

    `running` knows the attempts that have begun; `cancelled`, whether to give up.
    """

    def __init__(
        self,
        judge: Judge,
        record: Recorder,
        workshop: Workshop,
        *,
        run_id: str,
        environ: Mapping[str, str],
        function: Callable[[ArtifactSpec], Callable[..., Any]],
        reporter: Reporter,
        groups: Groups,
        running: Mapping[str, Task],
        moment: Moment,
        cancelled: Callable[[], bool],
    ) -> None:
        """`moment`: what was looked at just now; a command that is waited for ends it."""
        super().__init__(environ, record.state.plan_id, run_id)
        self._judge = judge
        self._record = record
        self._workshop = workshop
        self._function = function
        self._reporter = reporter
        self._groups = groups
        self._running = running
        self._moment = moment
        self._cancelled = cancelled

    def job(self, spec: ArtifactSpec, fp: Fingerprint | None) -> Job:
        """What is to be done for an artifact. `fp`: what it is made from; none where it is only checked."""
        state = self._record.state
        shared_file = ""
        if spec.phase:
            pipeline = state.settings.pipeline(spec.pipeline)
            named = pipeline.state if pipeline is not None else ""
            shared_file = named if named in spec.reads or named in spec.modifies else ""
        function = self._function(spec) if spec.make and fp is not None else None
        if function is not None and fp is not None:
            fp = self._judge.digests.as_loaded(spec, fp)
        reads = spec.sources or spec.run or spec.verify
        return Job(
            spec=spec,
            root=self._workshop.root,
            inputs=self._workshop.inputs(spec, self._judge.recorded, state.artifacts) if spec.requires else Inputs(),
            sources=(self._judge.files.declared(spec) or self._judge.sources_of(spec.id)) if reads else [],
            variables=state.settings.vars,
            around=self,
            timeout=spec.timeout or state.settings.timeout,
            function=function,
            fp=fp,
            effect_key=self._effect_key(spec) if spec.effects else "",
            state=shared_file,
        )

    def jobs(self, specs: Sequence[ArtifactSpec]) -> list[Job]:
        """The same for many functions as they were judged: what several of them require, they are given together."""
        state, workshop, judge = self._record.state, self._workshop, self._judge
        plain = [spec for spec in specs if not (spec.phase or spec.templates or spec.timeout)]
        if len(plain) < len(specs) or state.settings.timeout:
            return [self.job(spec, judge.now[spec.id]) for spec in specs]
        required = list({r for spec in specs for r in spec.requires})
        given = dict(zip(required, map(workshop.input, judge.recorded_all(required)), strict=True))
        inputs = [Inputs({r: given[r] for r in spec.requires}) for spec in specs]
        sources = [judge.files.declared(spec) if spec.sources else () for spec in specs]
        root, variables = workshop.root, state.settings.vars
        told = zip(specs, inputs, sources, *self._made_by(specs), strict=True)
        return [Job(spec, root, ins, read, variables, self, None, by, fp) for spec, ins, read, by, fp in told]

    def _made_by(self, specs: Sequence[ArtifactSpec]) -> tuple[list[Callable[..., Any]], list[Fingerprint]]:
        """The functions of many, and what each is made from: functions that no program has are looked for by name."""
        now, digests = self._judge.now, self._judge.digests
        made_from = [now[spec.id] for spec in specs]
        if self._judge.functions or any(spec.version for spec in specs):
            return [*map(self._function, specs)], [*map(digests.as_loaded, specs, made_from)]
        by_name = {spec.make: spec for spec in specs}
        functions = {make: self._function(spec) for make, spec in by_name.items()}
        if not all(map(digests.is_loaded, by_name.values())):
            made_from = [*map(digests.as_loaded, specs, made_from)]
        return [functions[spec.make] for spec in specs], made_from

    def verify(self, spec: ArtifactSpec) -> str:
        """Why what is at its paths does not stand the artifact's own check, or ""."""
        checked = self._workshop.verify(self.job(spec, None))
        self._moment.over()
        return told(spec, checked) if checked is not None and not checked.ok else ""

    def checks(self, spec: ArtifactSpec, names: Collection[str] | None = None) -> tuple[Check, ...]:
        """What its gates that are commands say of what is at its paths; of all of them, or of those named."""
        if not spec.gates:
            return ()
        said = self._workshop.checks(self.job(spec, None), names)
        self._moment.over()
        return said

    # What is around them.

    def began(self, job: Job, pid: int) -> None:
        self._groups.began(job.spec.id, pid)

    def printed(self, job: Job, data: bytes) -> None:
        self._reporter.printed(job.spec.id, data)

    def cancelled(self) -> bool:
        return self._cancelled()

    def stepper(self, job: Job) -> Stepper:
        """Durable parts of one attempt at a function: by name, and only for the same inputs and code."""
        counts: dict[str, int] = {}
        artifact_id, key = job.spec.id, reuse_key(job.fp) if job.fp is not None else ""
        token = self._running[artifact_id].token

        blobs = self._judge.outputs.blobs

        def keep(label: str, value: Any) -> Any:
            stored = recorded_as(value, key, blobs)
            self._record.step(artifact_id, token, label, stored)
            return taken_from(stored, blobs)

        async def known_or_kept(label: str, known: Step | None, call: Callable[[], Any]) -> Any:
            return keep(label, await call()) if known is None else taken_from(known, blobs)

        def step(name: str, call: Callable[[], Any], is_async: bool) -> Any:
            counts[name] = counts.get(name, 0) + 1
            label = name if counts[name] == 1 else f"{name}#{counts[name]}"
            known = self._record.state.steps.get(artifact_id, {}).get(label)
            known = known if known is not None and known.key == key else None
            if known is None and self.cancelled() and not job.spec.effects:  # half an effect is nobody's wish
                raise Stopped
            if is_async:
                return known_or_kept(label, known, call)
            return keep(label, call()) if known is None else taken_from(known, blobs)

        return step

    # Effects elsewhere.

    def keep_effect_key(self, task: Task) -> None:
        """Before an attempt with effects begins, the key that it is given is on disk."""
        spec = task.job.spec
        if spec.effects:
            step = Step(key=self._asked(spec), value=self.key(task.job))
            self._record(cmd.RecordStep(id=spec.id, token=task.token, name=EFFECT, step=step), True)

    def key(self, job: Job) -> str:
        return job.effect_key or (reuse_key(job.fp) if job.fp is not None else "")

    def _effect_key(self, spec: ArtifactSpec) -> str:
        """What the attempts before it were given, as long as none succeeded: with it, doing it twice does it once.

        Asked for before an attempt begins: what it does to its sources changes nothing about that.
        """
        step = self._record.state.steps.get(spec.id, {}).get(EFFECT)
        return str(step.value) if step is not None and step.key == self._asked(spec) else ""

    def _asked(self, spec: ArtifactSpec) -> str:
        """What is to be done, without the files that the command happens to name: it may have written them itself."""
        fp, declared = self._judge.made_from(spec.id), set(self._judge.files.declared(spec))
        return reuse_key(msgspec.structs.replace(fp, sources={p: d for p, d in fp.sources.items() if p in declared}))
