"""Judging and running the plans of one project: joins store, files and the run. One code path for run and resume."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from itertools import chain
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec

from headway import disk
from headway.calm import calmly
from headway.core.check import Problem
from headway.core.commands import ExpandUnits
from headway.core.events import Record
from headway.core.freshness import EDITS, RESTORABLE, Reason
from headway.core.graph import ArtifactGraph
from headway.core.ids import as_word
from headway.core.lifecycle import files_of, unfinished
from headway.core.plan import ArtifactSpec
from headway.core.state import Output, Position, State
from headway.engine import neighbours, prompts, scheduler_lock, stamping
from headway.engine.asking import SPENDS, Question, ask_first, clock, kind_of, warn_of_age
from headway.engine.drafts import invalid, refuse_drafts
from headway.engine.elsewhere import Elsewhere
from headway.engine.ending import left_by_units
from headway.engine.formerly import Formerly
from headway.engine.functions import Function, loader
from headway.engine.imports import UNGUARDED
from headway.engine.judge import Judge
from headway.engine.judged import Judged
from headway.engine.neighbours import Neighbour
from headway.engine.order import warnings_of_order
from headway.engine.parting import kept_before
from headway.engine.precedents import Precedents
from headway.engine.recipes.prints import listening
from headway.engine.result import Decision, Options, Reporter, RunResult, Silent
from headway.engine.selecting import forced_by, made_as, only_before, resolve, selected_by
from headway.engine.templates import refuse_without_jinja
from headway.errors import HeadwayError, NotFound, PlanInvalid, UsageError
from headway.files.cache import Cache
from headway.files.observe import Observer
from headway.files.outputs import LARGEST, Outputs
from headway.ledger.lock import FileLock
from headway.ledger.scan import START
from headway.ledger.writer import Writer
from headway.plan_folder import PlanFolder
from headway.projections.saved_execution import SavedExecution
from headway.store import PlanStore

if TYPE_CHECKING:
    from headway.engine.growth import Growth  # what grows is loaded for plans with pipelines
    from headway.engine.run import Run  # what makes artifacts is loaded where some are made


class Call(NamedTuple):
    """What a run was asked to do, by whom, and who wants to hear of it."""

    options: Options
    reporter: Reporter
    functions: Mapping[str, Function] | None = None
    loop: Any = None
    stop: Callable[[], str] = lambda: ""
    agree: Callable[[Question], bool] | None = None
    warn: Callable[[str], None] = lambda _: None
    explain: Callable[[Sequence[prompts.Question]], str | None] = lambda _: None
    load: Callable[[ArtifactSpec], Function] | None = None
    """Finds the functions of artifacts, each once."""


@contextmanager
def _growing(writer: Writer, known: State, warn: Callable[[str], None]) -> Iterator[None]:
    """Pipelines grow meanwhile: of units that they name and that did not come, somebody is told."""
    before = dict(known.units)
    yield
    assert writer.state is not None, "a plan that was run has events"
    for pipeline in writer.state.settings.pipelines:
        from headway.core.pipelines import strangers

        now = writer.state.units.get(pipeline.name)
        if now is None or not now.units or now == before.get(pipeline.name):
            continue
        if text := strangers(pipeline, now.units):
            warn(text)


def without_units(state: State) -> list[str]:
    """Pipelines of which there are no units, in words."""
    if not state.settings.pipelines:
        return []
    from headway.core import pipelines

    return pipelines.without_units(state)


class Session:
    """The engine for one project."""

    def __init__(
        self,
        root: str,
        home: str,
        store: PlanStore,
        *,
        environ: Mapping[str, str],
        by: str,
        largest: int | None = None,
    ) -> None:
        self.root = root
        self.home = home
        self.store = store
        self.environ = environ
        self.by = by
        self.largest = largest

    # Judging.

    def judge(
        self,
        plan_id: str,
        *,
        options: Options | None = None,
        functions: Mapping[str, Function] | None = None,
        writable: bool = False,
        at: int | None = None,
        execution: SavedExecution | None = None,
        just: Sequence[str] = (),
    ) -> Judged:
        """Judge every artifact of a plan, as a run with these options would. Writes nothing.

        `just`: only these artifacts, and what they build on.
        """
        folder = self.store.folder(plan_id)
        as_it_is = writable or (execution is None and at is None and not just)
        if execution is None:
            execution = folder.at(at) if at is not None else folder.load()
        if execution is None:
            raise NotFound(f"There is no plan {plan_id}", hint="headway plans list", code="plan.none")
        saved = execution
        execution, due = self.foreseen(execution) if at is None else (execution, [])
        judged = self._judged(
            execution, options or Options(), functions, writable=writable, just=just, trusting=as_it_is and not due
        )
        judged = judged._replace(due=tuple(due), saved=saved if due else None)
        if execution.state.claims and at is None and not writable:
            dead = folder.dead_claims(execution.state)
            judged.reasons.update(
                {a: Reason("in_progress") for a in execution.state.claims if a in judged.reasons and a not in dead}
            )
            judged = judged._replace(dead=dead)
        return judged

    def _growth(self, outputs: Outputs) -> Growth:
        from headway.engine.growth import Growth

        return Growth(outputs.observer.expand, outputs.bytes_of)

    def foreseen(self, execution: SavedExecution) -> tuple[SavedExecution, list[ExpandUnits]]:
        """The plan as it will be once its pipelines are expanded, and what expands them."""
        if not execution.state.settings.pipelines and not execution.state.units:
            return execution, []
        from headway.engine.growth import foresee

        try:
            return foresee(execution, Outputs(self.root, self.store.blobs, Observer(self.root)), by=self.by)
        except PlanInvalid as error:
            problems = [problem for problem in error.problems if isinstance(problem, Problem)]
            raise invalid(execution.state, problems, self.root, self.store) from None

    def _ask_about_prompts(self, judged: Judged, call: Call) -> tuple[Call, RunResult | None]:
        """A prompt that changed before the plan was finished is the user's to decide about, before anything is made.

        With a reason the call goes on as if it had been given with it; without one, this is what to answer.
        """
        changes = prompts.asked_about(judged.judge, judged.selected, call.options)
        if not changes:
            return call, None
        can_agree = judged.execution.state.settings.prompt_changes == "ask"
        reason = call.explain(changes) if can_agree else None
        if reason:
            return call._replace(options=msgspec.structs.replace(call.options, prompt_change=reason)), None
        result = RunResult(plan_id=judged.execution.plan_id, root=self.root, targets=call.options.part)
        ways = prompts.answers(judged.execution.state, changes, call.options, judged.selected)
        for change in changes:
            if reason is None:  # otherwise they were shown a moment ago
                result.prompts.append(change)
            for artifact_id in change.artifacts:
                if artifact_id not in result.reasons:  # of several templates, the first is its reason
                    result.decide("prompt_changed", artifact_id, ways)
                    result.reasons[artifact_id] = Reason("prompt_changed", change.template, change.was, change.now)
        call.reporter.begun(result, {}, 0)
        call.reporter.ended(result)
        return call, result

    def judge_graph(self, graph: ArtifactGraph, previous: SavedExecution) -> Judged:
        """Judge a graph as if it were the plan's structure, against what was recorded. Writes nothing."""
        state = previous.state.copy()
        state.artifacts = dict(graph.artifacts)
        judged = self._judged(SavedExecution(state, previous.position), Options(), None, writable=False)
        return judged._replace(execution=previous)

    def _judged(
        self,
        execution: SavedExecution,
        options: Options,
        functions: Mapping[str, Function] | None,
        *,
        writable: bool,
        observer: Observer | None = None,
        just: Sequence[str] = (),
        trusting: bool = False,
    ) -> Judged:
        """`trusting` a stamp: where it names all but some files as they are, only what these reach is judged."""
        cache = Cache(os.path.join(self.home, "cache.sqlite"))
        standing = self._standing(execution, options, functions) if trusting else None
        concerned = stamping.concerned(execution.state, standing.changed) if standing is not None else None
        known = cache.stats(files_of(execution.state)) if concerned is None and observer is None else {}
        seen = observer or Observer(self.root, known, recall=cache.stats)
        outputs = Outputs(self.root, self.store.blobs, seen, largest=self._largest(execution.state))
        precedents = Precedents(self.store, cache, writable=writable)
        boot = disk.boot_id()

        def judge_of(state: State, own: Mapping[str, Function] | None = None) -> Judge:
            return Judge(
                state,
                root=self.root,
                outputs=outputs,
                precedents=precedents,
                environ=self.environ,
                boot=boot,
                functions=own,
                formerly=Formerly(self.store.folder(state.plan_id), state),
                elsewhere=elsewhere,
            )

        def neighbour_of(there: Neighbour, state: State) -> Judge:
            return neighbours.judge_of(there, state, self.environ, boot, elsewhere.beyond)

        elsewhere = Elsewhere(self.store, judge_of, neighbour_of)
        outputs.borrowed = elsewhere.texts
        judge = judge_of(execution.state, functions)
        selected = selected_by(execution.state, options, judge.shared)
        judge.forced = forced_by(execution.state, options, selected)
        if standing is None or concerned is None:
            judge.all(just)
        else:
            seen.entries.update(cache.stats(judge.behind(concerned)))
            judge.only(standing)
            if not writable:  # whoever shows it shows it in the plan's order
                judge.reasons = {a: judge.reasons[a] for a in judge.shared.order()}
        before = only_before(execution.state, options, selected)
        if before and prompts.are_tried_elsewhere(judge, before, self.store.folder(execution.plan_id).completions):
            judge.left.leave(before)
            judge.left.judge_again()
        return Judged(execution, judge, selected)

    def _select_anew(self, judge: Judge, state: State, options: Options) -> set[str]:
        """What a run is about once the plan has grown."""
        selected = selected_by(state, options, judge.shared)
        if judge.left.ids:
            known = {a for a in judge.left.ids if a in state.artifacts}
            judge.left.leave(only_before(state, options, selected | known))
        return selected

    def _standing(
        self, execution: SavedExecution, options: Options, functions: Mapping[str, Function] | None
    ) -> stamping.Standing | None:
        """What the last stamp says of the plan, for a run that makes nothing anew without need."""
        if options.rerun or options.rerun_from or options.rerun_all:
            return None
        return stamping.standing(
            execution.state, functions or {}, position=execution.position, root=self.root, environ=self.environ
        )

    def _largest(self, state: State) -> int:
        """Outputs above this size are hashed, not stored: by whoever made this session, by the plan, or as ever."""
        limits = (self.largest, state.settings.store_up_to, LARGEST)
        return next(limit for limit in limits if limit is not None)

    # Running.

    def run(
        self,
        plan_id: str,
        options: Options,
        *,
        reporter: Reporter | None = None,
        functions: Mapping[str, Function] | None = None,
        loop: Any = None,
        stop: Callable[[], str] = lambda: "",
        execution: SavedExecution | None = None,
        agree: Callable[[Question], bool] | None = None,
        warn: Callable[[str], None] = lambda _: None,
        explain: Callable[[Sequence[prompts.Question]], str | None] = lambda _: None,
    ) -> RunResult:
        """Make what is stale of a plan. With nothing to do, nothing is written and no lock is taken.

        `execution`: the plan, if it was loaded a moment ago. `agree` answers what has to be asked before anything is
        started; without it, and without `yes` among the options, that is a refusal. `warn` hears what else is amiss.
        `explain` says why prompts were changed: "" to leave all as it is, None where nobody can be asked.
        """
        call = Call(
            options, reporter or Silent(), functions, loop, stop, agree, warn, explain, loader(self.root, functions)
        )
        folder = self.store.folder(plan_id)
        judged = self.judge(plan_id, options=options, functions=functions, writable=True, execution=execution)
        refuse_drafts(judged.execution.state, self.root, self.store)
        call, refused = self._ask_about_prompts(judged, call)
        if refused is not None:
            return refused
        for warning in without_units(judged.execution.state):
            call.warn(warning)
        lock = folder.run_lock()
        is_idle = judged.all_fresh and not judged.due
        if is_idle and not judged.was_cut_off:
            return self._nothing_to_do(folder, judged, call.reporter)
        if not is_idle:
            stale = judged.stale
            self._refuse_without_extras(judged, stale, options)
            self._refuse_unguarded(judged, stale, call)
            refused = self._ask(judged, stale, call)
            if refused is not None:
                return refused
            judge = judged.judge
            for warning in warnings_of_order(judge.graph, stale, judge.shared, judge.state.settings.vars):
                call.warn(warning)
        try:
            if not is_idle:
                scheduler_lock.take(lock, plan_id)
            elif lock.acquire(wait=0):
                scheduler_lock.settle_in(lock)
            else:
                return self._nothing_to_do(folder, judged, call.reporter)
            with calmly():
                result = self._run_locked(folder, judged, call, lock)
        finally:
            lock.release()
        if result.ended is not None:
            from headway.engine.notify import notify

            for problem in notify(self.root, result.ended.settings.notify, result.ended, self.environ):
                self.store.notice(problem)
        return result

    def _refuse_without_extras(self, judged: Judged, stale: Sequence[str], options: Options) -> None:
        """What cannot be made here at all, also of units yet to come, is said before anything is begun."""
        state, reasons = judged.execution.state, judged.reasons
        making = [spec for spec in map(state.artifacts.__getitem__, stale) if spec.templates]
        listed = {name for name, found in state.units.items() if found.units}
        unlisted = [p for p in state.settings.pipelines if p.name not in listed and not options.partial]
        specs = chain(making, (phase for p in unlisted for phase in p.phases))
        needed = (spec for spec in specs if spec.templates and spec.has_recipe)
        refuse_without_jinja(s.id for s in needed if s.id not in reasons or reasons[s.id].code not in RESTORABLE)

    def _refuse_unguarded(self, judged: Judged, stale: Sequence[str], call: Call) -> None:
        """A program that runs its plan whenever its functions are imported is told so before anything is begun."""
        state = judged.execution.state
        by_program = state.proposal is not None and not state.proposal.path.endswith(stamping.PLAN_FILES)
        if call.load is None or call.functions or not by_program:
            return
        specs = map(state.artifacts.__getitem__, stale)
        for spec in {spec.make.partition(":")[0]: spec for spec in specs if ".py:" in spec.make}.values():
            try:
                call.load(spec)
            except UsageError as error:  # whatever else is wrong with it is told when its turn comes
                if error.error_code == UNGUARDED:
                    raise

    def _ask(self, judged: Judged, stale: Sequence[str], call: Call) -> RunResult | None:
        """Ask what has to be asked before anything is started; what to answer if nobody agrees."""
        state = judged.execution.state
        if not state.planned_at and not any(kind_of(s) in SPENDS for s in state.artifacts.values() if s.agent):
            return None
        making = [a for a in stale if state.artifacts[a].has_recipe]
        question = ask_first(state, making, self._costs(state, making))
        if question is not None and not call.options.yes and not (call.agree is not None and call.agree(question)):
            result = RunResult(plan_id=state.plan_id, root=self.root, targets=call.options.part)
            result.kept = [a for a in judged.reasons if a in judged.selected and judged.reasons[a].fresh]
            result.reasons = {a: judged.reasons[a] for a in stale}
            result.decisions = [Decision(question.code, making, ["--yes"])]
            return result
        if warning := warn_of_age(state, clock()):
            call.warn(f"{warning}: headway run -n shows it")
        return None

    def _costs(self, state: State, making: Sequence[str]) -> list[float | None]:
        """What those will cost that cost money."""
        from headway.engine.estimates import Durations  # for those who spend: most plans have none

        spending = [a for a in making if kind_of(state.artifacts[a]) in SPENDS]
        durations, graph = Durations(self.store, state), ArtifactGraph.over(state.artifacts)
        return [durations.estimate(state.artifacts[a], graph.tier(a)).cost_usd for a in spending]

    def _run_locked(self, folder: PlanFolder, judged: Judged, call: Call, lock: FileLock) -> RunResult:
        before = judged.execution.position

        def hear(records: Sequence[Record]) -> None:
            judged.judge.precedents.hear(folder.plan_id, records)

        known = judged.saved or judged.execution
        writing = folder.writing(known=known, hear=hear, cut_off=judged.was_cut_off)
        with writing as writer, _growing(writer, known.state, call.warn):
            state = writer.catch_up()
            assert state is not None, "judged a moment ago"
            as_judged = writer.position == before
            due = judged.due if as_judged else self._growth(judged.judge.outputs).due(state)
            for command in due:
                for preserve in kept_before(writer.plan, command, disk.boot_id(), lambda: judged.judge.outputs):
                    writer.execute(preserve, by=self.by, wait=False)
                writer.execute(command, by=self.by, wait=False)
                state = writer.state
                assert state is not None, "it only grew"
            assert writer.position is not None, "a plan that was judged has events"
            gone = [a for command in due for a in command.removed]
            if as_judged and due:
                judged = judged._replace(execution=SavedExecution(state, writer.position))
                if judged.all_fresh and not judged.was_cut_off:
                    judged.judge.follow(state)
                    writer.sync()
                    return self._nothing_to_do(folder, judged, call.reporter, gone)
            elif writer.position != before:
                execution = SavedExecution(state, writer.position)
                judged = self._judged(
                    execution, call.options, call.functions, writable=True, observer=judged.judge.observer
                )
                if judged.all_fresh and not judged.was_cut_off:
                    writer.sync()
                    return self._nothing_to_do(folder, judged, call.reporter)
            judge = judged.judge
            judge.follow(state)
            cut_off = state.artifacts if judged.was_cut_off else unfinished(state)  # it may have put back any of them
            run = self._run(writer, judged, call, lock, show=lambda: folder.show(writer))
            run.sweep([state.artifacts[a] for a in cut_off if a in state.artifacts])
            run.result.gone += gone
            failed = dict(state.failed)
            try:
                with listening():
                    result = run.go()
            finally:
                self._keep_stats(judge.observer)
            result.read = self._reader(judge.outputs)
            kept = set(result.kept)
            result.code_unknown = [a for a in judged.out_of_sight if a in kept]
            if failed and writer.state is not None:
                from headway.engine import lessons  # what failed before and has not now

                learned = list(lessons.lessons(folder, failed, writer.state))
                writer.execute_all(learned, by=lessons.BY, wait=False)
            writer.sync()
            position = writer.position
            if state.settings.notify:
                result.ended = writer.state
        judge.precedents.settle()
        if result.ok and judged.selected == set(state.artifacts) and not result.beyond and not judge.left:
            self._leave_stamp(folder, judge, position)
        if self.store.blobs.crowded:
            from headway.engine.gc import tidy

            with suppress(HeadwayError, OSError):  # a convenience: others at work, damage or a full disk put it off
                tidy(self.store)
        return result

    def _run(
        self,
        writer: Writer,
        judged: Judged,
        call: Call,
        lock: FileLock,
        *,
        show: Callable[[], object] = lambda: None,
    ) -> Run:
        from headway.engine.run import Run

        return Run(
            writer,
            judged.judge,
            lock,
            root=self.root,
            home=self.home,
            run_id=os.urandom(4).hex(),
            by=self.by,
            jobs=self.jobs(judged.execution.state, call.options),
            environ=self.environ,
            options=call.options,
            selected=judged.selected,
            reporter=call.reporter,
            function=call.load or loader(self.root, call.functions),
            select=lambda state: self._select_anew(judged.judge, state, call.options),
            loop=call.loop,
            stop=call.stop,
            show=show,
            boot=disk.boot_id(),
        )

    def jobs(self, state: State, options: Options) -> int:
        """How many artifacts a run makes at once, if the plan's profile does not say less."""
        return options.jobs or state.settings.jobs or os.cpu_count() or 1

    def accept(
        self,
        plan_id: str,
        words: Sequence[str],
        *,
        everything: bool = False,
        reason: str = "",
        brought: Sequence[Output] = (),
    ) -> list[str]:
        """What is on disk counts as the output of these artifacts, also where they were never made; or, of all, what
        can be accepted: of the rest it is said why not, unless there is nothing else.

        `brought`: of a file that others change after them, these bytes do, which stand there only for now.
        """
        judged = self.judge(plan_id)
        state = judged.execution.state
        named = [made_as(state, resolve(state, [word])) for word in words]
        meant = {a for ids in named for a in ids}
        wanted = set(meant)
        if everything:
            wanted.update(a for a, found in judged.reasons.items() if found.code in EDITS)
        if everything and not wanted:
            return []
        if not wanted:
            raise UsageError("Say what to accept", hint="headway accept ID…, or --all", code="accept.what")
        folder, precedents = self.store.folder(plan_id), judged.judge.precedents
        with folder.writing(hear=lambda records: precedents.hear(plan_id, records)) as writer:
            for command in self._growth(judged.judge.outputs).due(writer.refresh() or state):
                writer.execute(command, by=self.by)  # units that no run has come to yet
            judged.judge.follow(writer.state or state)
            run = self._run(writer, judged, Call(Options(), Silent()), folder.run_lock())
            accepted = [a for a, found in judged.reasons.items() if a in wanted and (brought or not found.fresh)]
            unfit = {a: problem for a in accepted if a not in meant and (problem := run.unfit(a))}
            if len(unfit) < len(accepted):
                accepted = [a for a in accepted if a not in unfit]
                for artifact_id, problem in unfit.items():
                    way = f"headway run {as_word(artifact_id)} --discard-edits makes it"
                    self.store.notice(f"{artifact_id} is left as it is: {problem}. {way}")
            run.accept(accepted, reason, brought)
        return accepted

    def _leave_stamp(self, folder: PlanFolder, judge: Judge, position: Position | None) -> None:
        """What the next run will say if nothing changes until then; unless it is to be warned of something."""
        if without_units(judge.state) or (position and folder.lacks_phases(judge.state, position.seq)):
            return
        kept = [a for a, spec in judge.state.artifacts.items() if not spec.gathers]
        result = RunResult(plan_id=folder.plan_id, kept=kept, root=self.root)
        noun = "1 artifact is" if len(kept) == 1 else f"{len(kept)} artifacts are"
        stamping.leave(
            judge,
            result,
            f"Nothing to do: {noun} up to date.",
            position=position or START,
            root=self.root,
            home=self.home,
            ledger=folder.ledger().path,
            environ=self.environ,
        )
        self._keep_stats(judge.observer)

    def _nothing_to_do(
        self, folder: PlanFolder, judged: Judged, reporter: Reporter, gone: Sequence[str] = ()
    ) -> RunResult:
        done = judged.execution.state.completed
        artifacts = judged.execution.state.artifacts
        kept = [a for a, spec in artifacts.items() if a in judged.selected and not spec.gathers]
        result = RunResult(plan_id=folder.plan_id, kept=kept, root=self.root)
        result.listed = {a: done[a].outputs for a in kept if a in done}
        result.saved_ms = sum(done[a].ms for a in kept if a in done)
        result.read = self._reader(judged.judge.outputs)
        result.code_unknown = judged.out_of_sight
        result.undecided = judged.judge.left.undecided
        if gone:
            result.gone, result.left = [*gone], left_by_units(judged.execution.state, self.root)
        self._keep_stats(judged.judge.observer)
        folder.catch_up(judged.execution)
        if len(judged.selected) == len(artifacts) and not judged.judge.left:
            self._leave_stamp(folder, judged.judge, judged.execution.position)
        reporter.begun(result, {}, 0)
        reporter.ended(result)
        return result

    def recall(self, plan_id: str) -> tuple[dict[str, tuple[Output, ...]], Callable[[Output], bytes]]:
        """What the artifacts of a plan came to, and what reads it."""
        execution = self.store.folder(plan_id).load()
        done = execution.state.completed if execution is not None else {}
        outputs = Outputs(self.root, self.store.blobs, Observer(self.root))
        return {a: completion.outputs for a, completion in done.items()}, self._reader(outputs)

    def resolve(self, state: State, words: Sequence[str]) -> list[str]:
        """Artifacts that words name: ids, patterns of ids, or output paths."""
        return resolve(state, words)

    def _reader(self, outputs: Outputs) -> Callable[[Output], bytes]:
        def read(output: Output) -> bytes:
            if output.path:
                with suppress(OSError), open(os.path.join(self.root, output.path), "rb") as file:
                    return file.read()
            return outputs.blobs.get(output.digest)

        return read

    def _keep_stats(self, observer: Observer) -> None:
        if observer.changed:
            cache = Cache(os.path.join(self.home, "cache.sqlite"))
            cache.keep_stats(observer.entries, observer.changed)
            cache.close()
            observer.changed.clear()  # what is kept once need not be kept again
