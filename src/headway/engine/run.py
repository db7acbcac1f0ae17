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
from headway.core.fingerprint import content_digest
from headway.core.plan import ArtifactSpec, Retry
from headway.core.state import Output, State
from headway.engine import prompts
from headway.engine.beginning import Beginning
from headway.engine.edits import Edits
from headway.engine.ended import came_of
from headway.engine.ending import Halt, end_of, pause_of, sum_up
from headway.engine.in_place import InPlace
from headway.engine.jobs import Jobs
from headway.engine.judge import Judge
from headway.engine.keeping import Keeper
from headway.engine.making import TOUCHED, Task, Workshop
from headway.engine.moved import changed_meanwhile, moved_inputs, read_too_early, with_moves
from headway.engine.recipes.base import Job
from headway.engine.recording import Recorder
from headway.engine.result import Options, Pause, Preserved, Reporter, RunResult
from headway.engine.row import Outcome
from headway.engine.scheduler_lock import Groups
from headway.engine.sources import Moment
from headway.engine.tally import Tally
from headway.engine.workers import Workers
from headway.errors import BugError, HeadwayError, Rejected, TryLater, UsageError
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
        self._stop = stop
        self._show = show
        self._show_at = time.monotonic() + max(SHOW_EVERY, SHOW_SHARE * SHOWING * len(judge.state.artifacts))
        self._boot = boot
        self._halt = Halt()
        self._running: dict[str, Task] = {}
        self._groups = Groups(lock, run_id)
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
        self._keeper = keeper = Keeper(judge, self._record, self._jobs.checks, self.result.preserved)
        self._edits = Edits(judge, self._record, self._tally, keeper, self._jobs, options, root)
        self._beginning = Beginning(
            judge,
            self._record,
            self._tally,
            self._workers,
            run_id=run_id,
            jobs=self._jobs,
            keeper=keeper,
            edits=self._edits,
            in_place=self._in_place,
            select=select if options.partial else None,
            halt=self._halt,
            running=self._running,
            moment=self._moment,
            options=options,
            reporter=reporter,
            fail=self._fail_unmade,
            loop=loop,
        )

    def sweep(self, specs: Sequence[ArtifactSpec]) -> None:
        """Take away what killed processes left beside the outputs of these; nothing that somebody wrote is lost."""
        self._keeper.sweep(specs)

    def unfit(self, artifact_id: str) -> str:
        """Why what stands at the paths of an artifact cannot be accepted, whatever is in it; or ""."""
        return self._edits.unfit(artifact_id)

    def accept(self, ids: Sequence[str], why: str, brought: Sequence[Output] = ()) -> None:
        """Adopt what stands at their paths (or an effect elsewhere: somebody saw it), or say why that cannot be.

        If anything is not there, nothing is adopted; what is refused only when it is looked at names those before it.
        """
        for artifact_id in ids:
            self._edits.refuse_unfit(artifact_id)
        for number, artifact_id in enumerate(ids):
            self._judge.state = self._record.state
            try:
                self._edits.accept(artifact_id, why, brought)
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
        self._beginning.announced = frozenset(run.pending if run is not None else ())
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
            self._beginning.take_back()
            began_to_show = time.monotonic()
            if began_to_show > self._show_at:
                self._show()
                ended = time.monotonic()
                self._show_at = ended + max(SHOW_EVERY, SHOW_SHARE * (ended - began_to_show))

    def _watch(self, began: float) -> None:
        """Notice that somebody wants the run to stop, that its time is up, or that it cannot go on."""
        self._groups.refuse_lost()
        if self._running and not self._workers.at_work:
            raise BugError(f"nobody brings what came of {', '.join([*self._running][:3])}")
        why = self._stop()
        if why and not self._halt.cancelling:
            self._halt.now(why)
        limit = self._options.max_time
        if limit is not None and time.monotonic() - began > limit:
            self._halt.later("max_time")

    # The work.

    def _advance(self) -> None:
        """Begin what is ready; if nothing is, and nothing runs, what is left waits for others."""
        self._beginning.begin()
        if self._halt:
            self._beginning.recall()
        elif self._is_idle:
            self._tally.wait_for_others()

    @property
    def _is_idle(self) -> bool:
        """Nothing runs, and nobody is about to come back from what was told of already."""
        return not self._running and not self._workers.busy

    def _took(self, artifact_id: str) -> int | None:
        """How many ms it took when it was last made, if that is known."""
        done = self._record.state.completed.get(artifact_id)
        return done.ms if done is not None and done.how == "made" else None

    # Outcomes.

    def _outcomes(self) -> list[Outcome]:
        """What has come of attempts; whatever was looked at before waiting for it may have changed."""
        found = self._workers.outcomes(wait=0.2)
        self._moment.over()
        return found

    def _take(self, outcomes: list[Outcome]) -> None:
        """Record what came of attempts, all of it in one write, and go on from there."""
        self._judge.state = self._record.state
        tasks = [self._running[outcome.id] for outcome in outcomes]
        required = [task.job.spec.requires for task, outcome in zip(tasks, outcomes, strict=True) if outcome.ok]
        moved_inputs(self._judge, set[str]().union(*required), self._moment, cheaply=False)
        if self._complete(outcomes, tasks):
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

    def _complete(self, outcomes: list[Outcome], tasks: list[Task]) -> bool:
        """Record what was made as one command, if nothing else is to be said of any of these; whether it was done."""
        came = came_of(outcomes, tasks, self._judge, self._moment)
        if not came:
            return False
        try:
            self._record(cmd.CompleteArtifacts(came=came))
        except (Rejected, UsageError, TryLater):  # of one: each is told by itself
            return False
        self._judge.state = self._record.state
        self._halt.succeeded()
        made = {outcome.id: outcome.ms for outcome in outcomes}
        for artifact_id in made:
            del self._running[artifact_id]
        self._workers.learn_all(tasks, outcomes)
        self._in_place.let_go(*made)
        self._groups.ended(*made)
        self._tally.settle_made(made)
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
            self._reporter.released(outcome.id)
            self._beginning.doubt(outcome.id)

        command = cmd.ReleaseArtifacts(ids=(outcome.id,), reason=outcome.error, token=task.token, begun=False)
        return command, go_on

    def _released(self, task: Task, outcome: Outcome) -> tuple[cmd.Command, Callable[[], None]]:
        def go_on() -> None:
            self._reporter.released(outcome.id)
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
        """Something that is no artifact's fault: leave as little open as possible, and let it be known.

        Whoever has asked for it before has waited long enough: what runs is ended at once.
        """
        patience = DRAIN
        with suppress(KeyboardInterrupt):  # which may strike here, too
            patience = 0.0 if self._halt.cancelling or self._stop() else DRAIN
        self._halt.now("interrupted")
        try:
            with suppress(HeadwayError):
                self._beginning.recall()
                deadline = time.monotonic() + patience
                while self._running and self._workers.at_work and time.monotonic() < deadline:
                    self._take(self._outcomes())
        finally:  # also where somebody does not want to wait even for that
            if self._workers.busy or self._running:
                self._groups.end_all()
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
