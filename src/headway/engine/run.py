"""The run: start every stale artifact whose requirements are fresh, record what comes of it, go on.

    judge everything; what is not stale is kept
    while something is ready or running:
        judge what is ready once more: kept (cut off early), put back, taken over, held for the user, or started
        for each outcome: record it, then look at its dependents

Resuming is running again. Progress is durable artifact by artifact; nothing here needs to end well.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import Any

from headway.core import commands as cmd
from headway.core.approval import awaits_approval
from headway.core.fingerprint import content_digest
from headway.core.freshness import EDITS, RESTORABLE, Reason
from headway.core.gates import missing
from headway.core.ids import as_word
from headway.core.plan import ArtifactSpec, Retry
from headway.core.state import State
from headway.engine import prompts
from headway.engine.as_judged import ONCE, AsJudged
from headway.engine.edits import Edits
from headway.engine.effects import effect_question
from headway.engine.ended import came_of
from headway.engine.ending import Halt, end_of, pause_of, sum_up
from headway.engine.expansion import Expansion
from headway.engine.in_place import InPlace
from headway.engine.jobs import Jobs
from headway.engine.judge import Judge
from headway.engine.keeping import Keeper
from headway.engine.making import TOUCHED, Task, Workshop
from headway.engine.moved import changed_meanwhile, moved_inputs, read_too_early, with_moves
from headway.engine.recipes.base import Job
from headway.engine.recording import Recorder
from headway.engine.result import CLAIMED, Options, Pause, Preserved, Reporter, RunResult
from headway.engine.row import Outcome, failure_of
from headway.engine.scheduler_lock import Groups
from headway.engine.sources import Moment
from headway.engine.tally import Tally
from headway.engine.workers import Workers
from headway.errors import HeadwayError, Rejected, TryLater, UsageError
from headway.ledger.lock import FileLock
from headway.ledger.recovery import now
from headway.ledger.writer import Writer

SHOW_EVERY = 3.0
"""How often, in seconds, a run asks at most whether plan.json and its like are due."""

SHOW_SHARE = 50
"""It goes on for so many times as long as that took before it asks again."""

SHOWING = 10e-6
"""About how long, in seconds, that takes for an artifact: how long a run goes on before it asks for the first time."""

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
        select: Callable[[State], set[str]],
        loop: Any = None,
        stop: Callable[[], str] = lambda: "",
        show: Callable[[], object] = lambda: None,
        boot: str = "",
    ) -> None:
        self._judge = judge
        self._record = Recorder(writer, by)
        self._root = root
        self._id = run_id
        self._width = jobs
        self._options = options
        self._reporter = reporter
        self._loop = loop
        self._stop = stop
        self._show = show
        self._show_at = time.monotonic() + max(SHOW_EVERY, SHOW_SHARE * SHOWING * len(judge.state.artifacts))
        self._boot = boot
        self._halt = Halt()
        self._running: dict[str, Task] = {}
        self._groups = Groups(lock, run_id)
        self._started = 0
        self._announced: frozenset[str] = frozenset()
        self._moment = Moment()
        self.result = RunResult(plan_id=self._record.state.plan_id, run_id=run_id, root=root, targets=options.part)
        self._tally = Tally(judge, self._record, reporter, self.result, selected)
        self._in_place = InPlace(judge, self._record)
        workshop = Workshop(root, judge.outputs, home, judge.templates.render)
        light = judge.state.settings.timeout is None and judge.state.settings.retry is None
        self._workers = Workers(jobs, workshop.make_all, workshop.row, light=light, took=self._took)
        self._jobs = Jobs(
            judge,
            self._record,
            workshop,
            run_id=run_id,
            environ=environ,
            function=function,
            reporter=reporter,
            groups=self._groups,
            running=self._running,
            moment=self._moment,
            cancelled=lambda: self._halt.cancelling,
        )
        self._keeper = Keeper(judge, self._record, self._jobs.checks, self.result.preserved)
        self._as_judged = AsJudged(
            judge,
            self._jobs,
            self._keeper,
            moment=self._moment,
            options=options,
            is_light=self._workers.is_light,
            loop=loop,
        )
        self._edits = Edits(judge, self._record, self._tally, self._keeper, self._jobs, options, root)
        self._expansion = Expansion(
            judge, self._record, self._tally, self._running, select if options.partial else None
        )

    def accept(self, ids: Sequence[str], why: str) -> None:
        """Adopt what stands at their paths (or an effect elsewhere: somebody saw it), or say why that cannot be.

        If anything is not there, nothing is adopted; what is refused only when it is looked at names those before it.
        """
        for artifact_id in ids:
            self._edits.refuse_absent(artifact_id)
        for number, artifact_id in enumerate(ids):
            self._judge.state = self._record.state
            try:
                self._edits.accept(artifact_id, why)
            except HeadwayError as refusal:
                if number:
                    refusal.facts["accepted before it"] = ", ".join(ids[:number])
                raise

    # The whole run.

    def go(self) -> RunResult:
        """Make what is stale; what came of it."""
        began = time.monotonic()
        self._announce()
        self._reporter.begun(self.result, self._tally.to_make(), self._width)
        try:
            self._edits.hold_known()
            self._loop_until_done(began)
            edited = self._in_place.leave()
            if not self._halt:  # else it may be half of what was cut off
                self._edits.ask_at_last(edited)
                for artifact_id, path in read_too_early(self._judge, self._tally.selected, self.result.arrived).items():
                    self._tally.move(artifact_id, path)
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
        """What is to be done, and the events that say so. What only stands for others is nobody's to make."""
        self._tally.begin()
        specs = self._record.state.artifacts
        stale: dict[str, str] = {a: reason.code for a, reason in self._tally.todo.items() if not specs[a].gathers}
        self._record(
            cmd.StartRun(
                run=self._id,
                now=now(),
                stale=stale,
                jobs=self._width,
                partial=self._options.partial,
                boot=self._boot,
                templates=prompts.gone_on_with(self._judge, stale),
            ),
            True,
        )
        run = self._record.state.run
        self._announced = frozenset(run.pending if run is not None else ())
        if self._options.prompt_change:
            changes = prompts.permitted(self._judge, self._tally.selected)
            self._record(cmd.PermitPromptChange(reason=self._options.prompt_change, changes=tuple(changes)), True)

    def _loop_until_done(self, began: float) -> None:
        while True:
            self._watch(began)
            self._advance()
            if self._is_idle:
                break
            self._take(self._outcomes())
            self._take_back()
            began_to_show = time.monotonic()
            if began_to_show > self._show_at:
                self._show()
                ended = time.monotonic()
                self._show_at = ended + max(SHOW_EVERY, SHOW_SHARE * (ended - began_to_show))

    def _watch(self, began: float) -> None:
        """Notice that somebody wants the run to stop, or that its time is up."""
        why = self._stop()
        if why and not self._halt.cancelling:
            self._halt.now(why)
        limit = self._options.max_time
        if limit is not None and time.monotonic() - began > limit:
            self._halt.later("max_time")

    # Starting.

    def _advance(self) -> None:
        """Settle what is ready, and start what has to be made, as one event, as far as there is room."""
        while not self._halt:
            tasks = self._ready_tasks()
            if tasks:
                self._launch(tasks)
            if self._running or not tasks:
                break
        if self._halt:
            self._recall()
        elif self._is_idle:
            self._tally.wait_for_others()

    @property
    def _is_idle(self) -> bool:
        """Nothing runs, and nobody is about to come back from what was told of already."""
        return not self._running and not self._workers.busy

    def _ready_tasks(self) -> list[Task]:
        """What is ready and has to be made, as far as there is room; what needs no making is settled on the way."""
        tasks: list[Task] = []
        later: list[str] = []
        together: list[ArtifactSpec] = []
        queue, room = self._tally.queue, self._room()
        looked = False
        self._judge.state = self._record.state
        fits, threads = self._as_judged.among(self._record.state), self._workers.free
        while not self._halt and len(tasks) < room:
            is_full = len(tasks) + len(together) >= room
            artifact_id = queue.pop(None if threads > 0 else self._is_light) if not is_full else None
            spec = fits(artifact_id) if artifact_id is not None and not self._judge.shared.chains else None
            if spec is not None:
                together.append(spec)
                continue
            alone, together = self._begin(together, tasks), []
            if artifact_id is not None:
                alone.append(artifact_id)
                if not looked:
                    self._look_ahead(room)
                    looked = True
            for one in alone:
                task = self._alone(one, later)
                if task is not None:
                    tasks.append(task)
                    threads -= not task.light
            if not alone and not is_full:  # whoever is settled may let others begin
                break
        queue.put_back([*(spec.id for spec in together), *later])
        return tasks

    def _begin(self, specs: list[ArtifactSpec], tasks: list[Task]) -> list[str]:
        """Add what a worker needs for those that are begun as they were judged; the others are looked at alone."""
        begun = self._as_judged.begin(specs) if specs else {}
        self._started += len(begun)
        tasks += begun.values()
        return [spec.id for spec in specs if spec.id not in begun]

    def _alone(self, artifact_id: str, later: list[str]) -> Task | None:
        """What has to be made of one that is ready; it waits while somebody is at a file that it shares."""
        uses = self._in_place.uses(artifact_id)
        if self._halt or not self._in_place.are_free(uses):
            later.append(artifact_id)
            return None
        task = self._looked_at(artifact_id)
        if task is not None:
            self._judge.displaced.update(use.path for use in uses)
            self._in_place.take_hold(artifact_id, uses)
        return task

    def _look_ahead(self, count: int) -> None:
        """At what those that are light and come next require, all at once."""
        artifacts, workers = self._record.state.artifacts, self._workers
        coming = self._tally.queue.next(count, aside=workers.free > 0)
        specs = [artifacts[a] for a in coming if a in artifacts]
        requires = {r for spec in specs if spec.requires and workers.is_light(spec) for r in spec.requires}
        moved_inputs(self._judge, requires, self._moment, cheaply=True)

    def _looked_at(self, artifact_id: str) -> Task | None:
        """What has to be made, of what is ready; whatever is in its way is in nobody else's."""
        try:
            task = self._consider(artifact_id)
            self._edits.hold_later()
            return task
        except (Rejected, TryLater) as refusal:  # somebody else claimed it, or what it requires
            self._tally.wait(artifact_id, refusal.message)
        except (UsageError, OSError) as error:  # its paths cannot be brought in order
            if self._record.state.artifacts[artifact_id].gathers:  # it has none: what was asked for is not there
                raise
            self._tally.lose(artifact_id, failure_of(error)[1], self._judge.reasons[artifact_id])
        return None

    def _is_light(self, artifact_id: str) -> bool:
        spec = self._record.state.artifacts.get(artifact_id)
        return spec is not None and self._workers.is_light(spec)

    def _took(self, artifact_id: str) -> int | None:
        """How many ms it took when it was last made, if that is known."""
        done = self._record.state.completed.get(artifact_id)
        return done.ms if done is not None and done.how == "made" else None

    def _room(self) -> int:
        """How many more may be started now: by workers, and by the profile, for which others' claims count."""
        room, profile = self._workers.room, self._record.state.profile
        return room if profile is None else min(room, profile.limit - len(self._record.state.claims))

    def _recall(self) -> None:
        """Nothing more is begun: what was handed over ahead of its turn is given back."""
        self._give_up(self._workers.recall(), "The run stopped")

    def _take_back(self) -> None:
        """What waits behind something that takes its time is looked at anew when its turn comes: until then, somebody
        may edit what it reads, or what it would replace.
        """
        tasks = self._workers.overdue()
        self._give_up(tasks, "It waited for another")
        self._started -= len(tasks)
        self._tally.queue.put_back(task.job.spec.id for task in tasks)

    def _give_up(self, tasks: list[Task], why: str) -> None:
        """Nobody has begun these: one event for all that were launched together."""
        launched: dict[int, list[str]] = {}
        for task in tasks:
            artifact_id = task.job.spec.id
            launched.setdefault(task.token, []).append(artifact_id)
            del self._running[artifact_id]
            self._in_place.let_go(artifact_id)
        for token, ids in launched.items():
            self._record(cmd.ReleaseArtifacts(ids=tuple(ids), reason=why, token=token, begun=False))

    def _consider(self, artifact_id: str) -> Task | None:
        """What is ready, judged once more: whatever needs no making is done here. What is left is a task."""
        self._judge.state = state = self._record.state
        spec = state.artifacts.get(artifact_id)
        if spec is None:
            self._tally.queue.give_up(artifact_id)
            return None
        reason = self._judge.again(artifact_id, anew=self._moment)
        claim = state.claims.get(artifact_id)
        if reason.fresh:
            self._in_place.stand(spec)
            self._tally.settle(artifact_id, "accepted" if artifact_id in self._edits.adopted else "kept", reason)
            return None
        if spec.gathers:
            problem = self._expansion.gather(spec, reason)
            if problem:
                self._fail_unmade(spec, "gather", problem)
            return None
        if spec.iteration > 1 and self._expansion.is_enough(spec):
            return None
        self._tally.notice(artifact_id, reason)
        if claim is not None:
            self._tally.wait(artifact_id, f"{CLAIMED}{claim.by}")
            return None
        if awaits_approval(state, artifact_id):
            self._tally.wait(artifact_id, str(missing(state, artifact_id)[0]), "approval")
            return None
        if reason.code in EDITS:
            if not self._edits.answer(spec, reason):
                if self._judge.reasons[artifact_id].fresh:  # it was adopted
                    self._in_place.stand(spec)
                return None
            reason = self._judge.again(artifact_id)
        if reason.code == "pre_state_changed":
            self._edits.go_on_over(spec, reason)
            return None
        if self._tally.is_blocked_elsewhere(artifact_id, reason) or self._without_making(spec, reason):
            return None
        if self._is_moved_before(spec):
            return None
        if self._options.limit is not None and self._started >= self._options.limit:
            self.result.beyond.append(artifact_id)
            return None
        return self._prepare(spec)

    def _without_making(self, spec: ArtifactSpec, reason: Reason) -> bool:
        """Whether it could be put back or taken over, must be held, or is somebody else's to make."""
        artifact_id = spec.id
        if reason.code in RESTORABLE and self._keeper.restore(artifact_id):
            self._tally.arrive(spec, "restored", reason)
            return True
        if reason.code == "gates_open":
            self._ask_gates(spec, reason)
            return True
        if not spec.has_recipe:
            failure = self._record.state.failed.get(artifact_id)
            if failure is not None:  # in somebody's hands, or at a gate: whoever claims it tries again
                self._tally.lose(artifact_id, failure.error, reason)
            else:
                self._tally.wait(artifact_id, f"headway claim {as_word(artifact_id)}")
            return True
        anew = spec.effects or self._judge.is_forced(artifact_id)
        if reason.code == "interrupted" and spec.modifies and not anew:
            self._keeper.preserve(artifact_id, spec.modifies)  # whoever left it there: its files end as they were
        note = self._keeper.reuse(artifact_id, self._id) if not anew else ""
        if note:
            self._in_place.stand(spec)
            self._tally.arrive(spec, "reused", reason, note=note)
            return True
        question = effect_question(self._record.state, spec) if artifact_id not in self._judge.forced else None
        if question is None:
            return False
        self._tally.hold(artifact_id, question.code, question.flags, reason)
        return True

    def _is_moved_before(self, spec: ArtifactSpec) -> bool:
        """A requirement's output that is no longer what was recorded: nothing is made from it."""
        moved = moved_inputs(self._judge, spec.requires, self._moment, cheaply=True) if spec.requires else ()
        if moved:
            self._tally.move(spec.id, moved[0])
        return bool(moved)

    def _ask_gates(self, spec: ArtifactSpec, reason: Reason) -> None:
        """It was made before, and waits: what can be asked at once is asked."""
        open_ = {lack.name for lack in missing(self._record.state, spec.id)}
        said = self._jobs.checks(spec, open_)
        if said:
            self._record(cmd.RecordChecks(id=spec.id, checks=said))
        self._tally.arrive(spec, "kept", reason, note="through its gates")

    def _prepare(self, spec: ArtifactSpec) -> Task | None:
        """Everything that a worker needs; digests of inputs are taken before the recipe can begin."""
        self._started += 1
        if problem := self._judge.problem(spec.id):
            self._fail_unmade(spec, "unmakeable", problem)
            return None
        fp = self._judge.made_from(spec.id)
        try:
            before = self._in_place.found_by(spec, fp)
            if before:  # which are put back: what stands in their place is not lost
                stands = self._judge.outputs.stands
                self._keeper.preserve(spec.id, [output.path for output in before if not stands(output)])
            way = self._keeper.make_way(spec)
            job = self._jobs.job(spec, fp)
        except (HeadwayError, OSError) as error:
            self._fail_unmade(spec, *failure_of(error))
            return None
        retry = spec.retry or self._record.state.settings.retry or ONCE
        light = self._workers.is_light(spec)
        return Task(job, job.fp or fp, retry, 0, self._loop, before, way.replaces, way.left, light)

    def _is_announced(self, task: Task) -> bool:
        """Whether it is on disk that the run may touch its paths: what stands there after a power cut is no edit."""
        return task.job.spec.id in self._announced

    def _launch(self, tasks: list[Task]) -> None:
        ids = tuple(task.job.spec.id for task in tasks)
        wait = any(task.job.spec.effects or (task.replaces and not self._is_announced(task)) for task in tasks)
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
                    self._in_place.let_go(task.job.spec.id)
                    self._tally.wait(task.job.spec.id, refusal.message)
            return
        for task in tasks:
            task.token = token
            if task.job.spec.modifies or task.job.spec.effects:
                self._in_place.keep_before(task)
                self._jobs.keep_effect_key(task)
            artifact_id = task.job.spec.id
            self._running[artifact_id] = task
            self._reporter.started(artifact_id, self._judge.reasons[artifact_id])
            self._workers.start(task)

    # Outcomes.

    def _outcomes(self) -> list[Outcome]:
        """What has come of attempts; whatever was looked at before waiting for it may have changed."""
        found = self._workers.outcomes(wait=0.2)
        self._moment.over()
        return found

    def _take(self, outcomes: list[Outcome]) -> None:
        """Record what came of attempts, all of it in one write, and go on from there."""
        self._judge.state = self._record.state
        made = [self._running[outcome.id].job.spec for outcome in outcomes if outcome.ok]
        moved_inputs(self._judge, {r for spec in made for r in spec.requires}, self._moment, cheaply=False)
        if self._complete(outcomes):
            return
        taken = [self._taken(outcome) for outcome in outcomes]
        wait = any(task.job.spec.effects for task, _, _ in taken)
        answers = self._record.all([command for _, command, _ in taken], wait)
        self._judge.state = self._record.state
        for (task, _, go_on), answer in zip(taken, answers, strict=True):
            if isinstance(answer, (Rejected, UsageError, TryLater)):  # somebody reset, closed or took it over
                artifact_id = task.job.spec.id
                self._tally.lose(artifact_id, answer.in_one_line, self._judge.reasons[artifact_id])
            elif isinstance(answer, HeadwayError):
                raise answer
            else:
                go_on()

    def _complete(self, outcomes: list[Outcome]) -> bool:
        """Record what was made as one command, if nothing else is to be said of any of these; whether it was done."""
        came = came_of(outcomes, self._running, self._judge, self._moment)
        if not came:
            return False
        try:
            self._record(cmd.CompleteArtifacts(came=came))
        except (Rejected, UsageError, TryLater):  # of one: each is told by itself
            return False
        self._judge.state = self._record.state
        self._halt.succeeded()
        for outcome in outcomes:
            self._workers.learn(self._running.pop(outcome.id).job.spec, outcome)
            self._in_place.let_go(outcome.id)
            self._groups.ended(outcome.id)
        self._tally.settle_made({outcome.id: outcome.ms for outcome in outcomes})
        return True

    def _taken(self, outcome: Outcome) -> Taken:
        """What an outcome means: the command that records it, and what follows once it is recorded."""
        task = self._running.pop(outcome.id)
        self._in_place.let_go(outcome.id)
        self._groups.ended(outcome.id)
        if outcome.code == TOUCHED:
            return task, *self._touched(task, outcome)
        self._workers.learn(task.job.spec, outcome)
        if outcome.stood:
            seq = self._record(cmd.PreserveEdit(id=outcome.id, outputs=outcome.stood), True)[0].seq
            made = {output.digest for output in outcome.outputs}
            paths = dict.fromkeys(o.path for o in outcome.stood if o.size and o.digest not in made)
            if paths:
                self.result.preserved.append(Preserved(outcome.id, [*paths], seq))
        if outcome.ok:
            return task, *self._completed(task, outcome)
        if outcome.code in ("cancelled", "quota"):
            return task, *self._released(task, outcome)
        return task, *self._failed(task, outcome)

    def _touched(self, task: Task, outcome: Outcome) -> tuple[cmd.Command, Callable[[], None]]:
        """It was not begun, and is judged anew: what somebody has left at its paths is theirs."""

        def go_on() -> None:
            self._started -= 1
            self._as_judged.doubt()
            self._tally.queue.put_back([outcome.id])

        command = cmd.ReleaseArtifacts(ids=(outcome.id,), reason=outcome.error, token=task.token, begun=False)
        return command, go_on

    def _released(self, task: Task, outcome: Outcome) -> tuple[cmd.Command, Callable[[], None]]:
        def go_on() -> None:
            if outcome.code == "quota":
                self._halt.quota(outcome.id, outcome.retry_after)

        return cmd.ReleaseArtifacts(ids=(outcome.id,), reason=outcome.error, token=task.token), go_on

    def _completed(self, task: Task, outcome: Outcome) -> tuple[cmd.Command, Callable[[], None]]:
        spec, before = task.job.spec, self._record.state.completed.get(outcome.id)
        moved, wrote = changed_meanwhile(self._judge, task, before, self._moment)
        moved |= {label: label for label in outcome.other}
        same = before is not None and before.how != "accepted" and before.fp == task.fp
        if same and before and content_digest(before.outputs) != content_digest(outcome.outputs):
            self.result.unstable.append(outcome.id)

        def go_on() -> None:
            self._halt.succeeded()
            reason = self._judge.reasons[outcome.id]
            if not moved:
                note = f"{outcome.attempts} attempts" if outcome.attempts > 1 else ""
                self._tally.arrive(spec, "made", reason, ms=outcome.ms, note=note)
                return
            path = next(iter(moved.values()))
            self.result.made.append(outcome.id)
            self._reporter.finished(outcome.id, "made", reason, outcome.ms, f"{path} changed meanwhile")
            self._tally.move(outcome.id, path)

        command = cmd.CompleteArtifact(
            id=outcome.id,
            token=task.token,
            outputs=outcome.outputs,
            fp=with_moves(task.fp, spec, moved, wrote),
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
            self._tally.lose(outcome.id, outcome.error, self._judge.reasons[outcome.id], outcome.ms, tried)
            is_everybodys = self._halt.is_same_error(f"{outcome.code}: {outcome.error}")
            if self._options.fail_fast:
                self._halt.at_once("fail_fast")
            elif is_everybodys or (outcome.code == "unmakeable" and self._tally.is_wrong_with_all(outcome.error)):
                self._halt.later("same_error")
            elif outcome.code == "command_missing" and self._tally.all_use_command_of(task.job.spec):
                self._halt.later("command_missing")

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
        """It cannot even be tried; its failure is recorded like any other, with what attempts before it have left."""
        left = self._judge.left_by_attempts(spec)
        token = self._record(cmd.StartArtifacts(ids=(spec.id,), run=self._id))[0].seq
        job = Job(spec, self._root, {}, [], {}, self._jobs)
        self._running[spec.id] = Task(job, self._judge.made_from(spec.id), Retry(), token)
        self._in_place.take_hold(spec.id, self._in_place.uses(spec.id))
        self._take([Outcome(spec.id, False, left, code, error)])

    # Ending.

    def _tear_down(self) -> None:
        """Something that is no artifact's fault: leave as little open as possible, and let it be known."""
        self._halt.now("interrupted")
        try:
            with suppress(HeadwayError):
                self._recall()
                deadline = time.monotonic() + DRAIN
                while self._running and time.monotonic() < deadline:
                    self._take(self._outcomes())
        finally:  # also where somebody does not want to wait even for that
            if self._workers.busy:
                self._judge.outputs.close()
                self._workers.abandon()
        self.result.paused = Pause("interrupted")
        with suppress(HeadwayError):
            self._close()

    def _finish(self) -> None:
        state = self._record.state
        sum_up(self.result, state, self._tally.selected)
        self.result.undecided = self._judge.left.undecided
        self.result.paused = pause_of(self._halt, self._tally, state, partial=self._options.partial)
        if self.result.beyond:  # and what builds on it
            left = self._tally.to_make()
            self.result.beyond = [a for a in self._tally.queue.open if a in left]
        self._close()

    def _close(self) -> None:
        """The run's last event."""
        run = self._record.state.run
        if run is not None and run.id == self._id and run.status == "running":
            self._record(end_of(self.result, self._tally.todo), True)
