"""How work is begun: what is ready is judged once more, and what has to be made is handed to workers, as one event.

    kept (cut off early), put back, taken over, held for the user, somebody else's, or begun

Knows nothing of what comes of it.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import TYPE_CHECKING, Any

from headway.core import commands as cmd
from headway.core.approval import awaits_approval
from headway.core.freshness import EDITS, RESTORABLE, Reason
from headway.core.gates import missing
from headway.core.ids import as_word
from headway.core.plan import ArtifactSpec
from headway.core.state import State
from headway.engine.as_judged import ONCE, AsJudged
from headway.engine.edits import Edits
from headway.engine.effects import effect_question
from headway.engine.ending import Halt
from headway.engine.functions import WHERE, function_of, is_live
from headway.engine.in_place import InPlace
from headway.engine.jobs import Jobs
from headway.engine.judge import Judge
from headway.engine.keeping import Keeper
from headway.engine.making import Task
from headway.engine.moved import moved_inputs
from headway.engine.recording import Recorder
from headway.engine.result import CLAIMED, Options, Reporter
from headway.engine.row import failure_of
from headway.engine.sources import Moment
from headway.engine.tally import Tally
from headway.engine.workers import Workers
from headway.errors import HeadwayError, Rejected, TryLater, UsageError

if TYPE_CHECKING:
    from headway.engine.expansion import Expansion


class Beginning:
    """Begins the artifacts of one run, as far as there is room."""

    def __init__(
        self,
        judge: Judge,
        record: Recorder,
        tally: Tally,
        workers: Workers,
        *,
        run_id: str,
        jobs: Jobs,
        keeper: Keeper,
        edits: Edits,
        in_place: InPlace,
        select: Callable[[State], set[str]] | None,
        halt: Halt,
        running: dict[str, Task],
        moment: Moment,
        options: Options,
        reporter: Reporter,
        fail: Callable[[ArtifactSpec, str, str], None],
        loop: Any = None,
    ) -> None:
        """`running` takes down what was begun; `fail` records the failure of what cannot even be tried; `select` says
        what of a plan that has grown is meant, where not all of it is.
        """
        self._judge = judge
        self._record = record
        self._tally = tally
        self._result = tally.result
        self._workers = workers
        self._id = run_id
        self._jobs = jobs
        self._keeper = keeper
        self._edits = edits
        self._in_place = in_place
        self._select = select
        self._halt = halt
        self._running = running
        self._moment = moment
        self._options = options
        self._reporter = reporter
        self._fail = fail
        self._loop = loop
        self._as_judged = AsJudged(
            judge, jobs, keeper, moment=moment, options=options, is_light=workers.is_light, loop=loop
        )
        self._started = 0
        self.announced: frozenset[str] = frozenset()
        """Whose paths the run may touch: it is on disk that what stands there after a power cut is no edit."""

    @cached_property
    def _expansion(self) -> Expansion:
        """For plans with pipelines: most have none."""
        from headway.engine.expansion import Expansion

        return Expansion(self._judge, self._record, self._tally, self._running, self._select, self._edits.policy)

    def begin(self) -> None:
        """Settle what is ready, and start what has to be made, as one event, as far as there is room."""
        while not self._halt:
            tasks = self._ready_tasks()
            if tasks:
                self._launch(tasks)
            if self._running or not tasks:
                break

    def recall(self) -> None:
        """Nothing more is begun: what was handed over ahead of its turn is given back."""
        self._give_up(self._workers.recall(), "The run stopped")

    def take_back(self) -> None:
        """What waits behind something that takes its time is looked at anew when its turn comes: until then, somebody
        may edit what it reads, or what it would replace.
        """
        tasks = self._workers.overdue()
        self._give_up(tasks, "It waited for another")
        self._put_back([task.job.spec.id for task in tasks])

    def doubt(self, artifact_id: str) -> None:
        """It was not begun, as somebody has been at its paths: it is looked at anew, and so are all like it."""
        self._as_judged.doubt()
        self._put_back([artifact_id])

    def _put_back(self, ids: list[str]) -> None:
        self._started -= len(ids)
        self._tally.queue.put_back(ids)

    def _give_up(self, tasks: list[Task], why: str) -> None:
        """Nobody has begun these: one event for all that were launched together."""
        launched: dict[int, list[str]] = {}
        for task in tasks:
            artifact_id = task.job.spec.id
            launched.setdefault(task.token, []).append(artifact_id)
            del self._running[artifact_id]
            self._in_place.let_go(artifact_id)
            self._reporter.released(artifact_id)
        for token, ids in launched.items():
            self._record(cmd.ReleaseArtifacts(ids=tuple(ids), reason=why, token=token, begun=False))

    def _ready_tasks(self) -> list[Task]:
        """What is ready and has to be made, as far as there is room; what needs no making is settled on the way."""
        tasks: list[Task] = []
        later: list[str] = []
        queue, room = self._tally.queue, self._room()
        looked = False
        self._judge.state = self._record.state
        as_judged, threads = self._as_judged.among(self._record.state), self._workers.free
        while not self._halt and len(tasks) < room:
            fits = None if threads > 0 else self._is_light
            together = queue.pop_while(as_judged, room - len(tasks), fits)
            alone = self._begin(together, tasks)
            if not together:
                artifact_id = queue.pop(fits)
                if artifact_id is None:
                    break
                alone.append(artifact_id)
                if not looked:
                    self._look_ahead(room)
                    looked = True
            for one in alone:  # whoever is settled may let others begin
                task = self._alone(one, later)
                if task is not None:
                    tasks.append(task)
                    threads -= not task.light
        queue.put_back(later)
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

    def _room(self) -> int:
        """How many more may be started now: by workers, and by the profile, for which others' claims count."""
        room, profile = self._workers.room, self._record.state.profile
        return room if profile is None else min(room, profile.limit - len(self._record.state.claims))

    def _consider(self, artifact_id: str) -> Task | None:
        """What is ready, judged once more: whatever needs no making is done here. What is left is a task."""
        self._judge.state = state = self._record.state
        spec = state.artifacts.get(artifact_id)
        if spec is None:
            self._tally.queue.give_up(artifact_id)
            return None
        self._in_place.bring_up(spec)
        reason = self._judge.again(artifact_id, anew=self._moment)
        claim = state.claims.get(artifact_id)
        if reason.fresh:
            self._in_place.stand(spec)
            self._tally.settle(artifact_id, "accepted" if artifact_id in self._edits.adopted else "kept", reason)
            return None
        if spec.gathers:
            problem = self._expansion.gather(spec, reason)
            if problem:
                self._fail(spec, "gather", problem)
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
            self._result.beyond.append(artifact_id)
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
        if is_live(spec) and function_of(self._judge.functions, spec) is None:
            self._tally.wait(artifact_id, f"its program makes it: {WHERE}")
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
            self._fail(spec, "unmakeable", problem)
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
            self._fail(spec, *failure_of(error))
            return None
        retry = spec.retry or self._record.state.settings.retry or ONCE
        light = self._workers.is_light(spec)
        return Task(job, job.fp or fp, retry, 0, self._loop, before, way.replaces, way.left, light)

    def _launch(self, tasks: list[Task]) -> None:
        ids = tuple([task.job.spec.id for task in tasks])
        wait = any(
            task.job.spec.effects or (task.replaces and task.job.spec.id not in self.announced) for task in tasks
        )
        reasons: dict[str, str] = {a: self._judge.reasons[a].code for a in ids if a not in self._result.reasons}
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
        running, why, started, start = self._running, self._judge.reasons, self._reporter.started, self._workers.start
        for artifact_id, task in zip(ids, tasks, strict=True):
            task.token = token
            spec = task.job.spec
            if spec.modifies or spec.effects:
                self._in_place.keep_before(task)
                self._jobs.keep_effect_key(task)
            running[artifact_id] = task
            started(artifact_id, why[artifact_id])
            start(task)
