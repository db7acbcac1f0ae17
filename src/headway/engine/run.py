"""The run: start every stale artifact whose requirements are fresh, record what comes of it, go on.

    judge everything; what is not stale is kept
    while something is ready or running:
        judge what is ready once more: kept (cut off early), put back, taken over, held for the user, or started
        for each outcome: record it, then look at its dependents

Resuming is running again. Progress is durable artifact by artifact; nothing here needs to end well.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec

from headway.core import commands as cmd
from headway.core.approval import awaits_approval
from headway.core.events import Record
from headway.core.fingerprint import MOVED, NOTHING, content_digest, reuse_key
from headway.core.freshness import EDITS, RESTORABLE, Reason
from headway.core.gates import Check, missing
from headway.core.plan import ArtifactSpec, Retry
from headway.core.state import Fingerprint, Output, State, Step
from headway.engine import prompts
from headway.engine.growth import Growth, Ungrown
from headway.engine.judge import BEFORE, Judge
from headway.engine.keeping import Keeper
from headway.engine.making import Outcome, Task, Workshop, environment
from headway.engine.moved import changed_meanwhile, moved_inputs
from headway.engine.queue import Queue
from headway.engine.recipes.base import Job
from headway.engine.result import INTERRUPTIONS, Options, Pause, Reporter, RunResult
from headway.engine.scheduler_lock import Groups
from headway.engine.shared import Use
from headway.engine.steps import recorded_as, taken_from
from headway.engine.workers import Workers
from headway.errors import HeadwayError, Rejected, TryLater, UsageError
from headway.ledger.lock import FileLock
from headway.ledger.recovery import now
from headway.ledger.writer import Writer

EQUAL_ERRORS = 5
"""So many equal errors in a row would strike every artifact: nothing more is started."""

EFFECT = "effect key"
"""Names the step that keeps the key of an attempt with effects elsewhere."""

SHOW_EVERY = 1.0
"""How often, in seconds, a run asks whether plan.json and its like are due."""

DRAIN = 5.0
"""How long, in seconds, a run that is torn down waits for what it has told to stop."""


Taken = tuple[Task, cmd.Command, Callable[[], None]]
"""An attempt that ended: its task, the command that records it, and what follows."""


class Run:
    """One run of one plan, from its first event to its last."""

    def __init__(
        self,
        writer: Writer,
        judge: Judge,
        lock: FileLock,
        *,
        root: str,
        home: str,
        run_id: str,
        by: str,
        jobs: int,
        environ: Mapping[str, str],
        options: Options,
        selected: set[str],
        reporter: Reporter,
        function: Callable[[ArtifactSpec], Callable[..., Any]],
        select: Callable[[State], set[str]] | None = None,
        loop: Any = None,
        stop: Callable[[], str] = lambda: "",
        show: Callable[[], object] = lambda: None,
        boot: str = "",
    ) -> None:
        self._writer = writer
        self._judge = judge
        self._history = judge.history
        self._lock = lock
        self._root = root
        self._id = run_id
        self._by = by
        self._jobs = jobs
        self._environ = environ
        self._options = options
        self._selected = selected
        self._reselect = select
        self._reporter = reporter
        self._function = function
        self._loop = loop
        self._stop = stop
        self._show = show
        self._shown = time.monotonic()
        self._boot = boot
        self._keeper = Keeper(judge, self._record, self._checks)
        self._workshop = Workshop(root, judge.outputs, home, judge.templates.render)
        self._growth = Growth(judge.observer.expand, judge.outputs.bytes_of)
        settings = judge.state.settings
        self._workers = Workers(jobs, self._workshop.make, light=settings.timeout is None and settings.retry is None)
        self._todo: dict[str, Reason] = {}
        self._queue = Queue((), needs=tuple, courtesy=tuple)
        self._running: dict[str, Task] = {}
        self._using: dict[str, list[Use]] = {}
        self._held: dict[str, list[Use]] = {}
        self._groups = Groups(lock, run_id)
        self._started = 0
        self._errors: list[str] = []
        self._halted = ""
        self._cancelling = False
        self._retry_after: float | None = None
        self._stopped_at = ""
        self._words: set[str] = set()
        self._judged = dict(judge.state.artifacts)
        self.result = RunResult(plan_id=self._state.plan_id, run_id=run_id, root=root)

    @property
    def _state(self) -> State:
        state = self._writer.state
        assert state is not None, "a run has a plan"
        return state

    # The whole run.

    def go(self) -> RunResult:
        """Make what is stale; what came of it."""
        began = time.monotonic()
        self._announce()
        self._reporter.begun(self.result, self._todo, self._jobs)
        try:
            self._hold_known_edits()
            self._loop_until_done(began)
            self._leave_shared_files()
        except BaseException:
            self._tear_down()
            raise
        finally:
            self._workers.close()
        self.result.duration_ms = round((time.monotonic() - began) * 1000)
        self._finish()
        self._reporter.ended(self.result)
        return self.result

    def _announce(self) -> None:
        """What is to be done, what waits for what, and the event that says so."""
        reasons, artifacts = self._judge.reasons, self._state.artifacts
        chosen = [a for a in reasons if a in self._selected]
        self._todo = {a: reasons[a] for a in chosen if not reasons[a].fresh}
        self.result.reasons = dict(self._todo)
        self.result.kept = [a for a in chosen if a not in self._todo and not artifacts[a].gathers]
        affected: dict[str, None] = {}
        for artifact_id in chosen:  # in dependency order
            if artifact_id in self._todo or any(r in affected for r in self._builds_on(artifact_id)):
                affected[artifact_id] = None
        self._queue = Queue(affected, needs=self._waits_for, courtesy=self._lets_go_first)
        stale: dict[str, str] = {a: reason.code for a, reason in self._todo.items()}
        self._record(
            cmd.StartRun(
                run=self._id,
                now=now(),
                stale=stale,
                jobs=self._jobs,
                partial=self._options.partial,
                boot=self._boot,
            ),
            True,
        )
        if self._options.prompt_change:
            changes = prompts.permitted(self._judge, self._selected)
            self._record(cmd.PermitPromptChange(reason=self._options.prompt_change, changes=tuple(changes)), True)

    def _builds_on(self, artifact_id: str) -> Iterable[str]:
        """What an artifact cannot be made without: what it requires, and earlier stages of what it changes."""
        spec, shared = self._state.artifacts[artifact_id], self._judge.shared
        return (*spec.requires, *shared.after(artifact_id)) if shared.chains else spec.requires

    def _waits_for(self, artifact_id: str) -> Iterable[str]:
        after = self._state.artifacts[artifact_id].after
        return (*self._builds_on(artifact_id), *after) if after else self._builds_on(artifact_id)

    def _lets_go_first(self, artifact_id: str) -> Iterable[str]:
        return self._judge.shared.courtesy(artifact_id)

    def _loop_until_done(self, began: float) -> None:
        while True:
            self._watch(began)
            self._advance()
            if not self._running:
                break
            self._take(self._workers.outcomes(wait=0.2))
            if time.monotonic() - self._shown > SHOW_EVERY:
                self._show()
                self._shown = time.monotonic()

    def _watch(self, began: float) -> None:
        """Notice that somebody wants the run to stop, or that its time is up."""
        why = self._stop()
        if why and not self._cancelling:
            self._halted, self._cancelling = why, True
        limit = self._options.max_time
        if limit is not None and not self._halted and time.monotonic() - began > limit:
            self._halted = "max_time"

    # Starting.

    def _advance(self) -> None:
        """Settle what is ready, and start what has to be made, as one event, as far as there is room."""
        while not self._halted:
            tasks = self._ready_tasks()
            if tasks:
                self._launch(tasks)
            if self._running or not tasks:
                break
        if self._halted:
            self._recall()
        elif not self._running:
            self._wait_for_others()

    def _ready_tasks(self) -> list[Task]:
        """What is ready and has to be made, as far as there is room; what needs no making is settled on the way."""
        tasks: list[Task] = []
        later: list[str] = []
        shared, room, threads = self._judge.shared, self._room(), self._workers.free
        while len(tasks) < room and (artifact_id := self._queue.pop(None if threads else self._is_light)) is not None:
            uses = shared.uses(artifact_id) if shared.chains else ()
            if not all(use.suits(other) for use in uses for other in self._using.get(use.path, ())):
                later.append(artifact_id)
                continue
            try:
                task = self._consider(artifact_id)
            except (Rejected, TryLater) as refusal:  # somebody else claimed it, or what it requires
                self._wait(artifact_id, refusal.message)
                continue
            if task is not None:
                tasks.append(task)
                threads -= not self._workers.is_light(task.job.spec)
                self._judge.displaced.update(use.path for use in uses)
                self._take_hold(artifact_id, uses)
        self._queue.put_back(later)
        return tasks

    def _is_light(self, artifact_id: str) -> bool:
        spec = self._state.artifacts.get(artifact_id)
        return spec is not None and self._workers.is_light(spec)

    def _room(self) -> int:
        """How many more may be started now: by workers, and by the profile, for which others' claims count."""
        room, profile = self._workers.room, self._state.profile
        return room if profile is None else min(room, profile.limit - len(self._state.claims))

    def _recall(self) -> None:
        """Nothing more is begun: what was handed over ahead of its turn is given back."""
        tasks = self._workers.recall()
        if tasks:
            self._take([Outcome(task.job.spec.id, False, (), "cancelled", "The run stopped") for task in tasks])

    def _wait_for_others(self) -> None:
        """Nothing runs and yet something could start: the profile's places are taken by others."""
        while (artifact_id := self._queue.pop()) is not None:
            names = ", ".join(f"{a} ({claim.by})" for a, claim in self._state.claims.items())
            self._wait(artifact_id, f"the profile leaves no place beside {names}")

    def _consider(self, artifact_id: str) -> Task | None:
        """What is ready, judged once more: whatever needs no making is done here. What is left is a task."""
        self._judge.state = state = self._state
        spec = state.artifacts.get(artifact_id)
        if spec is None:
            self._queue.give_up(artifact_id)
            return None
        reason = self._judge.again(artifact_id, anew=True)
        claim = state.claims.get(artifact_id)
        if reason.fresh:
            self._settle(artifact_id, "kept", reason)
            return None
        if spec.gathers:
            self._gather(spec, reason)
            return None
        if spec.iteration > 1 and self._is_enough(spec):
            return None
        self._notice(artifact_id, reason)
        if claim is not None:
            self._wait(artifact_id, f"claimed by {claim.by}")
            return None
        if awaits_approval(state, artifact_id):
            self._wait(artifact_id, str(missing(state, artifact_id)[0]), "approval")
            return None
        if reason.code in EDITS:
            if not self._answer(artifact_id, reason):
                return None
            reason = self._judge.again(artifact_id)
        if reason.code == "pre_state_changed" and not self._goes_on_over(artifact_id, reason):
            return None
        if self._is_blocked_elsewhere(artifact_id, reason) or self._without_making(spec, reason):
            return None
        if self._options.limit is not None and self._started >= self._options.limit:
            self.result.beyond.append(artifact_id)
            return None
        return self._prepare(spec)

    def _notice(self, artifact_id: str, reason: Reason) -> None:
        """It was thought to be fresh, and what it requires has changed since."""
        if artifact_id not in self._todo:
            self._todo[artifact_id] = self.result.reasons[artifact_id] = reason
            if artifact_id in self.result.kept:
                self.result.kept.remove(artifact_id)

    def _is_blocked_elsewhere(self, artifact_id: str, reason: Reason) -> bool:
        """Whether something of another plan has to be made first: it is read, never run."""
        found = self._judge.unusable(artifact_id)
        if found is None:
            return False
        self.result.elsewhere[found.name] = found.command
        self.result.blocked[artifact_id] = found.name
        note = f"{found.name} {found.problem}. Next: {found.command}"
        self._reporter.finished(artifact_id, "blocked", reason, 0, note)
        self._block_behind(artifact_id)
        return True

    def _without_making(self, spec: ArtifactSpec, reason: Reason) -> bool:
        """Whether it could be put back or taken over, must be held, or is somebody else's to make."""
        artifact_id = spec.id
        if reason.code in RESTORABLE and self._keeper.restore(artifact_id):
            self._arrive(spec, "restored", reason)
            return True
        if reason.code == "gates_open":
            self._ask_gates(spec, reason)
            return True
        if not spec.has_recipe:
            self._wait(artifact_id, f"headway claim {artifact_id}")
            return True
        forced = artifact_id in self._judge.forced
        note = self._keeper.reuse(artifact_id, self._id) if not forced and not spec.effects else ""
        if note:
            self._arrive(spec, "reused", reason, note=note)
            return True
        if self._state.uncertain.get(artifact_id, 0) and spec.effects and not forced and not _is_idempotent(spec):
            flags = [f"--rerun {artifact_id}", f"headway accept {artifact_id}", f"headway skip {artifact_id}"]
            self._hold(artifact_id, "effects_uncertain", flags, reason)
            return True
        problem = self._judge.problem(artifact_id)
        if problem:
            self._fail_unmade(spec, "unmakeable", problem)
            return True
        return self._is_moved_before(spec)

    def _is_moved_before(self, spec: ArtifactSpec) -> bool:
        """A requirement's output that is no longer what was recorded: nothing is made from it."""
        for path in moved_inputs(self._judge, spec, cheaply=True):
            self._move(spec.id, path)
            return True
        return False

    def _prepare(self, spec: ArtifactSpec) -> Task | None:
        """Everything that a worker needs; digests of inputs are taken before the recipe can begin."""
        state, artifact_id = self._state, spec.id
        fp = self._judge.made_from(artifact_id)
        key = reuse_key(fp)
        paths = [p for p in (*spec.produces, *spec.modifies) if os.path.lexists(os.path.join(self._root, p))]
        if paths:
            self._keeper.preserve(artifact_id, paths)
        if paths or any(path.endswith("/") for path in spec.produces):
            self._keeper.clear(spec)
        try:
            job = self._job(spec, key)
        except HeadwayError as error:
            self._fail_unmade(spec, error.error_code, str(error).replace("\n ", ";"))
            return None
        self._started += 1
        retry = spec.retry or state.settings.retry or Retry()
        return Task(job, fp, key, retry, loop=self._loop, before=self._files_before(spec, fp), replaces=bool(paths))

    def _job(self, spec: ArtifactSpec, key: str) -> Job:
        state = self._state
        shared_file = ""
        if spec.phase:
            pipeline = state.settings.pipeline(spec.pipeline)
            named = pipeline.state if pipeline is not None else ""
            shared_file = named if named in spec.reads or named in spec.modifies else ""
        return Job(
            spec=spec,
            root=self._root,
            inputs=self._workshop.inputs(spec, self._judge.recorded, state.artifacts),
            state=shared_file,
            sources=self._judge.files.declared(spec) or self._judge.sources_of(spec.id),
            variables=state.settings.vars,
            environment=environment(self._environ, spec, state.plan_id, self._id, self._effect_key(spec, key)),
            timeout=spec.timeout or state.settings.timeout,
            function=self._function(spec) if spec.make and key else None,
            steps=lambda: self._stepper(spec.id, key),
            started=lambda pid: self._groups.began(spec.id, pid),
            printed=lambda data: self._reporter.printed(spec.id, data),
            cancelled=lambda: self._cancelling,
        )

    def _launch(self, tasks: list[Task]) -> None:
        ids = tuple(task.job.spec.id for task in tasks)
        wait = any(task.job.spec.effects or task.replaces for task in tasks)
        reasons: dict[str, str] = {a: self._judge.reasons[a].code for a in ids if a not in self.result.reasons}
        try:
            token = self._record(cmd.StartArtifacts(ids=ids, run=self._id, reasons=reasons), wait)[0].seq
        except (Rejected, TryLater) as refusal:  # somebody else claimed something meanwhile
            self._started -= len(tasks)
            for task in tasks:
                if len(tasks) > 1:
                    self._started += 1
                    self._launch([task])
                else:
                    self._let_go(task.job.spec.id)
                    self._wait(task.job.spec.id, refusal.message)
            return
        for task in tasks:
            task.token = token
            if task.job.spec.modifies or task.job.spec.effects:
                self._keep_before(task, token)
                self._keep_effect_key(task, token)
            artifact_id = task.job.spec.id
            self._running[artifact_id] = task
            self._reporter.started(artifact_id, self._judge.reasons[artifact_id])
            self._workers.start(task)

    # Effects elsewhere.

    def _effect_key(self, spec: ArtifactSpec, key: str) -> str:
        """The same for every attempt at the same thing until one succeeds: with it, doing it twice does it once."""
        step = self._state.steps.get(spec.id, {}).get(EFFECT) if spec.effects else None
        return str(step.value) if step is not None and step.key == self._asked(spec) else key

    def _keep_effect_key(self, task: Task, token: int) -> None:
        spec = task.job.spec
        if spec.effects:
            step = Step(key=self._asked(spec), value=task.job.environment["HEADWAY_IDEMPOTENCY_KEY"])
            self._record(cmd.RecordStep(id=spec.id, token=token, name=EFFECT, step=step), True)

    def _asked(self, spec: ArtifactSpec) -> str:
        """What is to be done, without the files that the command happens to name: it may have written them itself."""
        fp, declared = self._judge.made_from(spec.id), set(self._judge.files.declared(spec))
        return reuse_key(msgspec.structs.replace(fp, sources={p: d for p, d in fp.sources.items() if p in declared}))

    # Files that are changed in place.

    def _files_before(self, spec: ArtifactSpec, fp: Fingerprint) -> tuple[Output, ...]:
        """Shared files, as this artifact has to find them."""
        found = []
        for use in self._judge.shared.uses(spec.id):
            own = use.path in spec.modifies or use.path in spec.reads
            stage = self._judge.stage_before(spec.id, use.path) if own else use.stage
            output = self._judge.output_at(stage, use.path) if stage is not None else None
            if output is not None:
                found.append(output)
            elif use.path in fp.before and fp.before[use.path] != NOTHING:
                self._judge.outputs.set_aside([use.path])
                kind = self._judge.observer.look(use.path).kind
                found.append(Output(use.path, fp.before[use.path], 0, "exec" if kind == "exec" else "file"))
        return tuple(found)

    def _keep_before(self, task: Task, token: int) -> None:
        """What a shared file was before it was first changed: an attempt after this one begins there, too."""
        spec = task.job.spec
        for path in spec.modifies:
            first = self._judge.stage_before(spec.id, path) is None and self._judge.known(spec.id) is None
            if first and task.fp.before[path]:
                step = Step(key="", blob=task.fp.before[path])
                self._record(cmd.RecordStep(id=spec.id, token=token, name=BEFORE + path, step=step), True)

    def _leave_shared_files(self) -> None:
        """Shared files that were touched end as the newest of their stages left them."""
        for path in sorted(self._judge.displaced):
            stages = self._judge.shared.chains.get(path)
            if stages is None:
                continue
            newest = self._judge.newest(path)
            broken = any(stage in self._state.failed or stage in self._state.claims for stage in stages)
            output = self._judge.output_at(newest, path) if newest is not None and not broken else None
            if output is not None:
                self._judge.outputs.restore([output])

    def _take_hold(self, artifact_id: str, uses: Sequence[Use]) -> None:
        if uses:
            self._held[artifact_id] = list(uses)
            for use in uses:
                self._using.setdefault(use.path, []).append(use)

    def _let_go(self, artifact_id: str) -> None:
        for use in self._held.pop(artifact_id, ()):
            self._using[use.path].remove(use)

    # Edits.

    def _policy(self, artifact_id: str) -> str:
        spec = self._state.artifacts[artifact_id]
        return self._options.on_edit or spec.on_edit or self._state.settings.on_edit

    def _hold_known_edits(self) -> None:
        """All edits that are to be asked about are asked about at once, whatever else they wait for."""
        for artifact_id, reason in self._todo.items():
            if any(other in self._queue for other in self._state.artifacts[artifact_id].after):
                continue  # it may yet turn out that its unit is gone
            if reason.code in EDITS and self._policy(artifact_id) == "ask":
                self._ask(artifact_id, reason)
            elif reason.code == "pre_state_changed" and not self._options.force_resume:
                self._goes_on_over(artifact_id, reason)

    def _ask(self, artifact_id: str, reason: Reason) -> None:
        self._hold(artifact_id, reason.code, ["--accept-edits", "--discard-edits"], reason)

    def _answer(self, artifact_id: str, reason: Reason) -> bool:
        """Bytes that somebody wrote stand at an output: adopt them, set them aside, or ask. Whether to go on."""
        policy = self._policy(artifact_id)
        if policy == "discard":
            self._keeper.discard(artifact_id, reason)
            return True
        if policy == "accept":
            self._adopt(artifact_id, reason)
        else:
            self._ask(artifact_id, reason)
        return False

    def _goes_on_over(self, artifact_id: str, reason: Reason) -> bool:
        """It was made from another state than there is: kept by the user's word, or asked about. Whether to make it."""
        if self._options.force_resume:
            self._keeper.adopt(artifact_id, f"--force-resume over {reason.text}. {self._options.reason}".rstrip(". "))
            self._arrive(self._state.artifacts[artifact_id], "accepted", reason)
        else:
            phase = self._state.artifacts[artifact_id].phase
            self._hold(artifact_id, reason.code, [f"--rerun-from {phase}", "--force-resume"], reason)
        return False

    def _adopt(self, artifact_id: str, reason: Reason) -> None:
        problem = self._refusal(artifact_id)
        if problem:
            self._hold(artifact_id, "edit_not_verified", ["--discard-edits"], reason, problem)
            return
        self._keeper.adopt(artifact_id, self._options.reason or "--accept-edits")
        self._arrive(self._state.artifacts[artifact_id], "accepted", reason)

    def accept(self, artifact_id: str, why: str) -> None:
        """Adopt what stands at its paths (or an effect elsewhere: somebody saw it), or say why that cannot be."""
        self._judge.state = self._state
        spec = self._state.artifacts[artifact_id]
        has_something = spec.produces or spec.modifies or spec.effects
        problem = self._refusal(artifact_id) if has_something else "it has no files"
        if problem:
            raise UsageError(
                f"There is nothing to accept for {artifact_id}",
                facts={"reason": problem},
                hint=f"headway run {artifact_id}",
                code="accept.missing",
            )
        self._keeper.adopt(artifact_id, why)

    def _refusal(self, artifact_id: str) -> str:
        """Why what stands at its paths cannot be adopted, or ""."""
        spec = self._state.artifacts[artifact_id]
        missing = [p for p in spec.produces if not os.path.lexists(os.path.join(self._root, p))]
        if missing:
            return f"{', '.join(missing)} is missing"
        if not spec.verify:
            return ""
        checked = self._workshop.verify(self._job(spec, ""))
        return f"verify: {checked.error}" if checked is not None and not checked.ok else ""

    # Outcomes.

    def _take(self, outcomes: list[Outcome]) -> None:
        """Record what came of attempts, all of it in one write, and go on from there."""
        self._judge.state = self._state
        taken = [self._taken(outcome) for outcome in outcomes]
        wait = any(task.job.spec.effects for task, _, _ in taken)
        answers = self._writer.execute_all([command for _, command, _ in taken], by=self._by, wait=wait)
        self._judge.state = self._state
        for (task, _, go_on), answer in zip(taken, answers, strict=True):
            if isinstance(answer, (Rejected, UsageError, TryLater)):  # somebody reset, closed or took it over
                artifact_id = task.job.spec.id
                self._lose(artifact_id, str(answer).replace("\n ", ";"), self._judge.reasons[artifact_id])
            elif isinstance(answer, HeadwayError):
                raise answer
            else:
                self._history.add(answer)
                go_on()

    def _taken(self, outcome: Outcome) -> Taken:
        """What an outcome means: the command that records it, and what follows once it is recorded."""
        task = self._running.pop(outcome.id)
        self._let_go(outcome.id)
        self._groups.ended(outcome.id)
        self._workers.learn(task.job.spec, outcome)
        if outcome.code in ("cancelled", "quota"):
            return task, *self._released(task, outcome)
        if not outcome.ok:
            return task, *self._failed(task, outcome)
        return task, *self._completed(task, outcome)

    def _released(self, task: Task, outcome: Outcome) -> tuple[cmd.Command, Callable[[], None]]:
        def go_on() -> None:
            if outcome.code == "quota":
                self._halted, self._retry_after = self._halted or "quota", outcome.retry_after
                self._stopped_at = self._stopped_at or outcome.id

        return cmd.ReleaseArtifacts(ids=(outcome.id,), reason=outcome.error, token=task.token), go_on

    def _completed(self, task: Task, outcome: Outcome) -> tuple[cmd.Command, Callable[[], None]]:
        spec, before = task.job.spec, self._state.completed.get(outcome.id)
        moved, wrote = changed_meanwhile(self._judge, task, before)
        fp = task.fp
        if moved or wrote:
            sources = {p: MOVED if p in moved else d for p, d in fp.sources.items() if p not in wrote}
            inputs = {r: MOVED if moved.get(r) else d for r, d in fp.inputs.items()}
            templates = {t: MOVED if moved.get(t) else d for t, d in fp.templates.items()}
            before_ = {p: MOVED if p in spec.reads and moved.get(p) else d for p, d in fp.before.items()}
            fp = msgspec.structs.replace(fp, sources=sources, inputs=inputs, templates=templates, before=before_)
        same = before is not None and before.how != "accepted" and reuse_key(before.fp) == task.key
        if same and before and content_digest(before.outputs) != content_digest(outcome.outputs):
            self.result.unstable.append(outcome.id)

        def go_on() -> None:
            self._errors.clear()
            reason = self._judge.reasons[outcome.id]
            if not moved:
                note = f"{outcome.attempts} attempts" if outcome.attempts > 1 else ""
                self._arrive(spec, "made", reason, ms=outcome.ms, note=note)
                return
            path = next(iter(moved.values()))
            self.result.made.append(outcome.id)
            self._reporter.finished(outcome.id, "made", reason, outcome.ms, f"{path} changed meanwhile")
            self._move(outcome.id, path)

        command = cmd.CompleteArtifact(
            id=outcome.id,
            token=task.token,
            outputs=outcome.outputs,
            fp=fp,
            ms=outcome.ms,
            verified=outcome.verified,
            external=bool(spec.effects),
            wrote=tuple(wrote),
            stdout=outcome.stdout,
            stderr=outcome.stderr,
            checks=outcome.checks,
            prompt=outcome.prompt,
            attempts=outcome.attempts,
        )
        return command, go_on

    def _failed(self, task: Task, outcome: Outcome) -> tuple[cmd.Command, Callable[[], None]]:
        def go_on() -> None:
            tried = f" ({outcome.attempts} attempts)" if outcome.attempts > 1 else ""
            self._lose(outcome.id, outcome.error, self._judge.reasons[outcome.id], outcome.ms, tried)
            self._errors.append(f"{outcome.code}: {outcome.error}")
            if self._options.fail_fast:
                self._halted, self._cancelling = self._halted or "fail_fast", True
            elif len(self._errors) >= EQUAL_ERRORS and len(set(self._errors[-EQUAL_ERRORS:])) == 1:
                self._halted = self._halted or "same_error"
            elif outcome.code == "command_missing" and self._all_use_command_of(task.job.spec):
                self._halted = self._halted or "command_missing"

        command = cmd.FailArtifact(
            id=outcome.id,
            token=task.token,
            error=outcome.error,
            code=outcome.code,
            attempts=outcome.attempts,
            left=outcome.outputs,
            ms=outcome.ms,
            stdout=outcome.stdout,
            stderr=outcome.stderr,
            prompt=outcome.prompt,
        )
        return command, go_on

    def _fail_unmade(self, spec: ArtifactSpec, code: str, error: str) -> None:
        """It cannot even be tried; its failure is recorded like any other."""
        token = self._record(cmd.StartArtifacts(ids=(spec.id,), run=self._id))[0].seq
        job = Job(spec, self._root, {}, [], {}, {}, None)
        self._running[spec.id] = Task(job, self._judge.made_from(spec.id), "", Retry(), token)
        self._take_hold(spec.id, self._judge.shared.uses(spec.id))
        self._take([Outcome(spec.id, False, (), code, error)])

    def _lose(self, artifact_id: str, error: str, reason: Reason, ms: int = 0, tried: str = "") -> None:
        self.result.failed[artifact_id] = error
        self._judge.reasons[artifact_id] = Reason("failed")
        self._reporter.finished(artifact_id, "failed", reason, ms, error + tried)
        self._block_behind(artifact_id)

    def _all_use_command_of(self, spec: ArtifactSpec) -> bool:
        """A command that is not there strikes every artifact that is left."""
        left = [self._state.artifacts[a].run for a in self._queue.open if a in self._todo]
        return bool(left) and all(run.split()[:1] == spec.run.split()[:1] for run in left)

    def _settle(self, artifact_id: str, how: str, reason: Reason, *, ms: int = 0, note: str = "") -> None:
        """It is as it should be: its dependents may go on."""
        self._judge.reasons[artifact_id] = Reason("fresh")
        self._queue.settle(artifact_id)
        if artifact_id not in self._todo or self._state.artifacts[artifact_id].gathers:
            return
        getattr(self.result, how).append(artifact_id)
        shown = self._todo.get(artifact_id, reason) if reason.fresh else reason
        self._reporter.finished(artifact_id, how, shown, ms, note)

    def _move(self, artifact_id: str, path: str) -> None:
        """What it is made from changed under it: it is stale at once, and not made twice in one run."""
        self.result.moved[artifact_id] = path
        self._judge.reasons[artifact_id] = Reason("source_changed", path, MOVED)
        self._block_behind(artifact_id)

    def _hold(self, artifact_id: str, code: str, flags: list[str], reason: Reason, note: str = "") -> None:
        """Only the user can decide about this one; the rest goes on."""
        self.result.decide(code, artifact_id, flags)
        self._reporter.finished(artifact_id, "held", reason, 0, note)
        self._block_behind(artifact_id)
        if reason.code == "output_modified" and reason.subject in self._judge.shared.chains:
            self._block_users(reason.subject, artifact_id)

    def _block_users(self, path: str, by: str) -> None:
        """A shared file with somebody's bytes in it is not to be touched by anybody."""
        for artifact_id in self._queue.open:
            if any(use.path == path for use in self._judge.shared.uses(artifact_id)):
                if artifact_id in self._todo:
                    self.result.blocked.setdefault(artifact_id, by)
                self._block_behind(artifact_id)

    # Units and loops.

    def _gather(self, spec: ArtifactSpec, reason: Reason) -> None:
        """What stands for others is done when they are; and a loop goes on until it is satisfied."""
        try:
            if spec.gathers == "units":
                outputs = self._find_units(spec)
            elif spec.gathers == "all":
                outputs = (self._judge.outputs.keep_text(self._list_all(spec)),)
            else:
                (last,) = spec.requires
                if spec.acceptance and not self._is_satisfied(spec, last):
                    return
                outputs = self._judge.recorded(last)
        except (Ungrown, Rejected, TryLater) as problem:
            self._fail_unmade(spec, "gather", str(problem).replace("\n ", ";"))
            return
        self._record(cmd.GatherArtifact(id=spec.id, outputs=outputs, fp=self._judge.fingerprint(spec.id)))
        self._judge.state = self._state
        self._settle(spec.id, "kept", reason)

    def _find_units(self, spec: ArtifactSpec) -> tuple[Output, ...]:
        """The units that an artifact names now; those that it named before and does not any more are removed."""
        pipeline = self._state.settings.pipeline(spec.pipeline)
        assert pipeline is not None, "units belong to a pipeline"
        command = self._growth.grown(self._state, pipeline)
        self._grow(command, ())
        return (self._judge.outputs.keep_text(msgspec.json.encode(command.units)),)

    def _list_all(self, spec: ArtifactSpec) -> bytes:
        """What a phase of every unit came to: by unit, its outputs by name; of text, the text itself."""
        found: dict[str, dict[str, dict[str, str]]] = {}
        units, outputs = self._state.units.get(spec.pipeline), self._judge.outputs
        for unit in units.units if units is not None else ():
            made = self._state.artifacts[f"{unit}/{spec.phase}"]
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
        made = self._state.artifacts[last]
        verdict = self._growth.verdict(made, spec.acceptance[0], self._judge.recorded(last), made.outputs)
        if verdict.passed:
            return True
        pipeline = self._state.settings.pipeline(spec.pipeline)
        phase = pipeline.phase(spec.phase) if pipeline is not None else None
        times = phase.times if phase is not None else 1
        if made.iteration >= times:
            raise Ungrown(f"{verdict.why} was not true after {made.iteration} rounds")
        self._grow(self._growth.round(self._state, made, made.iteration + 1), self._unit_ids(made))
        return False

    def _is_enough(self, spec: ArtifactSpec) -> bool:
        """Whether the round before was satisfied after all, so that this one and those after it are not needed."""
        pipeline = self._state.settings.pipeline(spec.pipeline)
        loop = pipeline.loop_around(spec.phase) if pipeline is not None else None
        if loop is None or loop.repeat[0] != spec.phase:
            return False
        before = self._state.artifacts.get(f"{spec.unit}/{loop.id}~{spec.iteration - 1}")
        if before is None or not self._judge.reasons[before.id].fresh:
            return False
        try:
            if not self._growth.verdict(before, loop.until, self._judge.recorded(before.id), before.outputs).passed:
                return False
            self._grow(self._growth.round(self._state, spec, spec.iteration - 1), self._unit_ids(spec))
        except (Ungrown, Rejected, TryLater):
            return False
        return True

    def _unit_ids(self, spec: ArtifactSpec) -> list[str]:
        """The artifacts of a unit that are made once, and what stands for the others."""
        pipeline = self._state.settings.pipeline(spec.pipeline)
        phases = pipeline.phases if pipeline is not None else ()
        ids = (f"{spec.unit}/{phase.id}" for phase in phases)
        return [a for a in ids if a in self._state.artifacts]

    def _grow(self, command: cmd.ExpandUnits, unit: Sequence[str]) -> None:
        """Record what comes and goes, and have the queue grow with it."""
        removed = set(command.removed)
        self._record(command)
        state, judge = self._state, self._judge
        for artifact_id in command.removed:
            self._judged.pop(artifact_id, None)
            self._selected.discard(artifact_id)
            self._todo.pop(artifact_id, None)
            self.result.reasons.pop(artifact_id, None)
            if artifact_id in self.result.kept:
                self.result.kept.remove(artifact_id)
            self._queue.settle(artifact_id)
        self._forget_questions(removed)
        self.result.gone += [a for a in command.removed if not _is_round(a, unit)]
        judge.grow(state, [s for s in command.artifacts if s.id in state.artifacts], command.removed, unit)
        self._judged.update({spec.id: spec for spec in command.artifacts})
        new = [spec.id for spec in command.artifacts]
        self._select(new, unit)
        more = [a for a in new if not judge.reasons[a].fresh] if unit else self._behind(command.pipeline)
        more = [a for a in more if a in self._selected and a not in self._queue]
        for artifact_id in more:
            if not judge.reasons[artifact_id].fresh:
                self._todo[artifact_id] = judge.reasons[artifact_id]
                if not state.artifacts[artifact_id].gathers:
                    self.result.reasons[artifact_id] = judge.reasons[artifact_id]
                    if artifact_id in self.result.kept:
                        self.result.kept.remove(artifact_id)
            elif artifact_id in new and not state.artifacts[artifact_id].gathers:
                self.result.kept.append(artifact_id)
        self._queue.add(more)
        for artifact_id in new:
            self._queue.wait_more(artifact_id)

    def _behind(self, pipeline: str) -> list[str]:
        """After units came or went: what is stale now, or behind what is, and was not waited for so far."""
        judge, found = self._judge, set[str]()
        order = []
        for artifact_id in judge.shared.order():
            spec = self._state.artifacts[artifact_id]
            if artifact_id in self._running or self._queue.has_ended(artifact_id):
                continue
            fresh = judge.again(artifact_id).fresh if spec.pipeline == pipeline else judge.reasons[artifact_id].fresh
            if not fresh or any(r in found or r in self._queue for r in self._builds_on(artifact_id)):
                found.add(artifact_id)
                order.append(artifact_id)
        return order

    def _forget_questions(self, removed: AbstractSet[str]) -> None:
        """Nobody has to decide about what is gone."""
        for decision in self.result.decisions:
            decision.artifacts[:] = [a for a in decision.artifacts if a not in removed]
        self.result.decisions = [decision for decision in self.result.decisions if decision.artifacts]
        for table in (self.result.blocked, self.result.waiting, self.result.failed):
            for artifact_id in removed & table.keys():
                del table[artifact_id]

    def _select(self, new: Iterable[str], unit: Sequence[str]) -> None:
        """What is new is wanted if everything is, or if it belongs to what is."""
        if not self._options.partial or unit:
            self._selected.update(new)
            return
        if self._reselect is not None:
            self._selected.update(self._reselect(self._state))

    # Gates.

    def _checks(self, spec: ArtifactSpec) -> tuple[Check, ...]:
        """What its gates that are commands say of what is at its paths."""
        return self._workshop.checks(self._job(spec, "")) if spec.gates else ()

    def _ask_gates(self, spec: ArtifactSpec, reason: Reason) -> None:
        """It was made before, and waits: what can be asked at once is asked."""
        open_ = {lack.name for lack in missing(self._state, spec.id)}
        said = self._workshop.checks(self._job(spec, ""), open_)
        if said:
            self._record(cmd.RecordChecks(id=spec.id, checks=said))
        self._arrive(spec, "kept", reason, note="through its gates")

    def _arrive(self, spec: ArtifactSpec, how: str, reason: Reason, *, ms: int = 0, note: str = "") -> None:
        """Its bytes are there and recorded: it is as it should be, unless a gate is in the way."""
        state, artifact_id = self._state, spec.id
        if not spec.gates or (artifact_id not in state.made and artifact_id not in state.failed):
            self._settle(artifact_id, how, reason, ms=ms, note=note)
        elif artifact_id in state.failed:
            self._lose(artifact_id, state.failed[artifact_id].error, reason, ms)
        else:
            lacking = "; ".join(map(str, missing(state, artifact_id)))
            if how != "kept":
                getattr(self.result, how).append(artifact_id)
                self._reporter.finished(artifact_id, how, reason, ms, "waits for its gates")
            self._judge.reasons[artifact_id] = Reason("gates_open", lacking)
            self._wait(artifact_id, lacking, "gates")

    def _wait(self, artifact_id: str, why: str, code: str = "") -> None:
        """It is somebody else's to make, now or at all; the rest goes on. `code`: it is a word that is waited for."""
        self.result.waiting[artifact_id] = why
        if code:
            self._words.add(code)
        for dependent in self._queue.give_up(artifact_id):
            if dependent in self._todo:
                self.result.waiting.setdefault(dependent, f"waits for {artifact_id}")

    def _block_behind(self, artifact_id: str) -> None:
        """Whatever needs it cannot be made now; nothing else is touched."""
        for dependent in self._queue.give_up(artifact_id):
            if dependent in self._todo:
                self.result.blocked.setdefault(dependent, artifact_id)

    # Recording.

    def _record(self, command: cmd.Command, wait: bool = False) -> list[Record]:
        records = self._writer.execute(command, by=self._by, wait=wait)
        self._history.add(records)
        return records

    def _stepper(self, artifact_id: str, key: str) -> Callable[[str, Callable[[], Any]], Any]:
        """Durable parts of one attempt at a function: by name, and only for the same inputs and code."""
        counts: dict[str, int] = {}
        token = self._running[artifact_id].token

        def step(name: str, call: Callable[[], Any]) -> Any:
            counts[name] = counts.get(name, 0) + 1
            label = name if counts[name] == 1 else f"{name}#{counts[name]}"
            known = self._state.steps.get(artifact_id, {}).get(label)
            blobs = self._judge.outputs.blobs
            if known is not None and known.key == key:
                return taken_from(known, blobs)
            stored = recorded_as(call(), key, blobs)
            self._writer.execute(
                cmd.RecordStep(id=artifact_id, token=token, name=label, step=stored), by=self._by, wait=True
            )
            return taken_from(stored, blobs)

        return step

    # Ending.

    def _tear_down(self) -> None:
        """Something that is no artifact's fault: leave as little open as possible, and let it be known."""
        self._halted, self._cancelling = "interrupted", True
        with suppress(HeadwayError):
            self._recall()
            deadline = time.monotonic() + DRAIN
            while self._running and time.monotonic() < deadline:
                self._take(self._workers.outcomes(wait=0.2))
        self.result.paused = Pause("interrupted")
        with suppress(HeadwayError):
            self._close()

    def _finish(self) -> None:
        result, state = self.result, self._state
        result.outputs = {a: state.completed[a].outputs for a in self._selected if a in state.completed}
        held = {a for decision in result.decisions for a in decision.artifacts}
        result.blocked = {a: by for a, by in result.blocked.items() if a not in held}
        spared = (*result.kept, *result.restored, *result.reused)
        result.saved_ms = sum(state.completed[a].ms for a in spared if a in state.completed)
        if self._halted in INTERRUPTIONS:
            result.paused = Pause(self._halted)
        elif self._halted in ("same_error", "command_missing") or (self._halted and self._queue.open):
            until = ""
            if self._retry_after is not None:
                until = (datetime.now(UTC) + timedelta(seconds=self._retry_after)).isoformat(timespec="seconds")
            result.paused = Pause(self._halted, until, artifact=self._stopped_at)
        elif self._plan_changed():
            result.paused = Pause("plan_changed")
        elif self._words:
            first = next(why for why in result.waiting.values() if "headway " in why)
            result.paused = Pause(
                "approval" if "approval" in self._words else "gates", "", f"{first.partition(': ')[2]}"
            )
        self._close()

    def _plan_changed(self) -> bool:
        """Whether somebody changed the plan since it was judged, so that this run cannot answer for all of it."""
        now = self._state.artifacts
        if self._options.partial:
            return any(now.get(a) != self._judged[a] for a in self._selected)
        return now != self._judged

    def _close(self) -> None:
        """The run's last event."""
        result, run = self.result, self._state.run
        if run is None or run.id != self._id or run.status != "running":
            return
        self._record(
            cmd.EndRun(
                run=self._id,
                status={"completed": "completed", "failed": "failed"}.get(result.status, "paused"),  # type: ignore[arg-type]  # two of the words
                reason=result.paused.code if result.paused else result.status,
                code=result.paused.code if result.paused else result.status,
                until=result.paused.until if result.paused else "",
                artifact=result.paused.artifact if result.paused else "",
                failed=tuple(result.failed),
                kept=tuple(a for a in result.kept if a in self._todo),
                restored=tuple(result.restored),
            ),
            True,
        )


def _is_round(artifact_id: str, unit: Sequence[str]) -> bool:
    """Whether it is one round of a loop: its files are those of the rounds before."""
    return bool(unit) and "~" in artifact_id


def _is_idempotent(spec: ArtifactSpec) -> bool:
    """It uses the key that it is given, so doing it twice does it once."""
    return "HEADWAY_IDEMPOTENCY_KEY" in spec.run or bool(spec.metadata.get("idempotent"))
