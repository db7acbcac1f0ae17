"""Judging and running the plans of one project: joins store, files and the run. One code path for run and resume."""

from __future__ import annotations

import fnmatch
import os
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import Any, NamedTuple

from headway import stamp
from headway.core.commands import ExpandUnits
from headway.core.decide import decide
from headway.core.events import Record
from headway.core.evolve import apply
from headway.core.freshness import EDITS, Reason
from headway.core.graph import ArtifactGraph
from headway.core.nearest import Nearest
from headway.core.pipelines import units_id
from headway.core.plan import ArtifactSpec, PlanSpec
from headway.core.state import Output, Position, State
from headway.engine import neighbours, prompts, scheduler_lock, stamping
from headway.engine.abroad import Abroad, check_beside_others
from headway.engine.asking import SPENDS, Question, ask_first, clock, kind_of, warn_of_age
from headway.engine.code import function_of
from headway.engine.formerly import Formerly
from headway.engine.gc import sweep
from headway.engine.growth import Growth
from headway.engine.history import History
from headway.engine.judge import Judge
from headway.engine.neighbours import Neighbour
from headway.engine.recipes.prints import listening
from headway.engine.result import Decision, Options, Reporter, RunResult, Silent
from headway.engine.run import Run
from headway.engine.shared import Shared
from headway.errors import HeadwayError, NotFound, PlanInvalid, UsageError
from headway.files.cache import Cache
from headway.files.observe import Observer
from headway.files.outputs import LARGEST, Outputs
from headway.ledger.lock import FileLock
from headway.ledger.scan import START
from headway.ledger.writer import Writer
from headway.projections.saved_execution import SavedExecution
from headway.store import PlanFolder, PlanStore
from headway.version import VERSION

Function = Callable[..., Any]


class Judged(NamedTuple):
    """A plan, the verdict on each of its artifacts, and those that are wanted."""

    execution: SavedExecution
    judge: Judge
    selected: set[str]
    due: tuple[ExpandUnits, ...] = ()
    """Its pipelines are to be expanded like this: it was judged as if they had been."""

    @property
    def reasons(self) -> dict[str, Reason]:
        """Why each artifact is fresh or stale."""
        return self.judge.reasons

    @property
    def all_fresh(self) -> bool:
        """Nothing that is wanted has to be made."""
        return all(self.reasons[a].fresh for a in self.selected)

    @property
    def was_cut_off(self) -> bool:
        """The last run ended without a word, so somebody has to say it instead."""
        run = self.execution.state.run
        return run is not None and run.status == "running"


class Call(NamedTuple):
    """What a run was asked to do, by whom, and who wants to hear of it."""

    options: Options
    reporter: Reporter
    functions: Mapping[str, Function] | None = None
    loop: Any = None
    stop: Callable[[], str] = lambda: ""
    agree: Callable[[Question], bool] | None = None
    warn: Callable[[str], None] = lambda _: None


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
        if execution is None:
            execution = folder.at(at) if at is not None else folder.load()
        if execution is None:
            raise NotFound(f"There is no plan {plan_id}", hint="headway plans list", code="plan.none")
        execution, due = self._foreseen(execution) if at is None else (execution, [])
        judged = self._judged(execution, options or Options(), functions, writable=writable, just=just)
        judged = judged._replace(due=tuple(due))
        if execution.state.claims and at is None and not writable:
            dead = folder.dead_claims(execution.state)
            judged.reasons.update(
                {a: Reason("in_progress") for a in execution.state.claims if a in judged.reasons and a not in dead}
            )
        return judged

    def _growth(self, outputs: Outputs) -> Growth:
        return Growth(outputs.observer.expand, outputs.bytes_of)

    def _foreseen(self, execution: SavedExecution) -> tuple[SavedExecution, list[ExpandUnits]]:
        """The plan as it will be once its pipelines are expanded, and what expands them."""
        state = execution.state
        if not state.settings.pipelines and not state.units:
            return execution, []
        due = self._growth(Outputs(self.root, self.store.blobs, Observer(self.root))).due(state)
        if not due:
            return execution, []
        state, (seq, hash_) = state.copy(), execution.position
        for command in due:
            events = decide(state, command)
            for event in events if isinstance(events, list) else ():
                state = apply(state, Record(seq, state.updated_at, self.by, event, hash_, hash_))
        return SavedExecution(state, execution.position), due

    def _ask_about_prompts(self, judged: Judged, call: Call) -> RunResult | None:
        """A prompt that changed before the plan was finished is the user's to decide about, before anything is made."""
        changes = prompts.asked_about(judged.judge, judged.selected, call.options)
        if not changes:
            return None
        result = RunResult(plan_id=judged.execution.plan_id, root=self.root)
        for change in changes:
            result.prompts.append(change)
            for artifact_id in change.artifacts:
                result.reasons[artifact_id] = Reason("prompt_changed", change.template, change.was, change.now)
                result.decide("prompt_changed", artifact_id, list(prompts.FLAGS))
        call.reporter.begun(result, {}, 0)
        call.reporter.ended(result)
        return result

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
    ) -> Judged:
        cache = Cache(os.path.join(self.home, "cache.sqlite"))
        seen = observer or Observer(self.root, cache.stats())
        outputs = Outputs(self.root, self.store.blobs, seen, largest=self._largest(execution.state))
        history = History(self.store, cache, writable=writable)
        boot = scheduler_lock.boot_id()

        def judge_of(state: State, own: Mapping[str, Function] | None = None) -> Judge:
            return Judge(
                state,
                root=self.root,
                outputs=outputs,
                history=history,
                environ=self.environ,
                boot=boot,
                functions=own,
                formerly=Formerly(self.store.folder(state.plan_id), state),
                abroad=abroad,
            )

        def neighbour_of(there: Neighbour, state: State) -> Judge:
            return neighbours.judge_of(there, state, self.environ, boot, abroad.beyond)

        abroad = Abroad(self.store, judge_of, neighbour_of)
        outputs.borrowed = abroad.texts
        judge = judge_of(execution.state, functions)
        selected = self.selected(execution.state, options, judge.shared)
        judge.forced = self.forced(execution.state, options, selected)
        judge.all(just)
        return Judged(execution, judge, selected)

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
    ) -> RunResult:
        """Make what is stale of a plan. With nothing to do, nothing is written and no lock is taken.

        `execution`: the plan, if it was loaded a moment ago. `agree` answers what has to be asked before anything is
        started; without it, and without `yes` among the options, that is a refusal. `warn` hears what else is amiss.
        """
        call = Call(options, reporter or Silent(), functions, loop, stop, agree, warn)
        folder = self.store.folder(plan_id)
        judged = self.judge(plan_id, options=options, functions=functions, writable=True, execution=execution)
        self._refuse_problems(judged.execution.state)
        refused = self._ask_about_prompts(judged, call)
        if refused is not None:
            return refused
        lock = folder.run_lock()
        if judged.all_fresh and not judged.due:
            if not judged.was_cut_off or not lock.acquire(wait=0):
                return self._nothing_to_do(folder, judged, call.reporter)
            scheduler_lock.settle_in(lock)
        else:
            refused = self._ask(judged, call)
            if refused is not None:
                return refused
            scheduler_lock.take(lock, plan_id)
        try:
            result = self._run_locked(folder, judged, call, lock)
        finally:
            lock.release()
        if result.ended is not None:
            from headway.engine.notify import notify

            for problem in notify(self.root, result.ended.settings.notify, result.ended, self.environ):
                self.store.notice(problem)
        return result

    def _ask(self, judged: Judged, call: Call) -> RunResult | None:
        """Ask what has to be asked before anything is started; what to answer if nobody agrees."""
        state = judged.execution.state
        if not state.planned_at and not any(kind_of(spec) in SPENDS for spec in state.artifacts.values()):
            return None
        stale = [a for a in judged.reasons if a in judged.selected and not judged.reasons[a].fresh]
        making = [a for a in stale if state.artifacts[a].has_recipe]
        question = ask_first(state, making, self._costs(state, making))
        if question is not None and not call.options.yes and not (call.agree is not None and call.agree(question)):
            result = RunResult(plan_id=state.plan_id, root=self.root)
            result.kept = [a for a in judged.reasons if a in judged.selected and judged.reasons[a].fresh]
            result.reasons = {a: judged.reasons[a] for a in stale}
            result.decisions = [Decision(question.code, making, ["--yes"])]
            return result
        if warning := warn_of_age(state, clock()):
            call.warn(warning)
        return None

    def _costs(self, state: State, making: Sequence[str]) -> list[float | None]:
        """What those will cost that cost money."""
        from headway.engine.estimates import Durations  # for those who spend: most plans have none

        spending = [a for a in making if kind_of(state.artifacts[a]) in SPENDS]
        durations, graph = Durations(self.store, state), ArtifactGraph.over(state.artifacts)
        return [durations.estimate(state.artifacts[a], graph.tier(a)).cost_usd for a in spending]

    def _run_locked(self, folder: PlanFolder, judged: Judged, call: Call, lock: FileLock) -> RunResult:
        before = judged.execution.position
        with folder.writing(known=None if judged.due else judged.execution) as writer:
            state = writer.catch_up()
            assert state is not None, "judged a moment ago"
            as_judged = writer.position == before
            due = judged.due if as_judged else self._growth(judged.judge.outputs).due(state)
            for command in due:
                writer.execute(command, by=self.by, wait=False)
                state = writer.state
                assert state is not None, "it only grew"
            assert writer.position is not None, "a plan that was judged has events"
            if as_judged and due:
                judged = judged._replace(execution=SavedExecution(state, writer.position))
                if judged.all_fresh and not judged.was_cut_off:
                    judged.judge.follow(state)
                    writer.sync()
                    return self._nothing_to_do(folder, judged, call.reporter)
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
            run = self._run(writer, judged, call, lock, show=lambda: folder.show(writer))
            run.result.gone += [a for command in due for a in command.removed]
            try:
                with listening():
                    result = run.go()
            finally:
                self._keep_stats(judge.observer)
            result.read = self._reader(judge.outputs)
            writer.sync()
            position = writer.position
            if state.settings.notify:
                result.ended = writer.state
        if result.ok and judged.selected == set(state.artifacts) and not result.beyond:
            self._leave_stamp(folder, judge, position)
        if self.store.blobs.crowded:
            with suppress(HeadwayError):  # a convenience: whoever writes meanwhile, or damage, puts it off
                sweep(self.store)
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
            function=self._loader(call.functions),
            select=lambda state: self.selected(state, call.options),
            loop=call.loop,
            stop=call.stop,
            show=show,
            boot=scheduler_lock.boot_id(),
        )

    def jobs(self, state: State, options: Options) -> int:
        """How many artifacts a run makes at once, if the plan's profile does not say less."""
        return options.jobs or state.settings.jobs or os.cpu_count() or 1

    def accept(self, plan_id: str, words: Sequence[str], *, everything: bool = False, reason: str = "") -> list[str]:
        """What is on disk counts as the output of these artifacts, also where they were never made."""
        judged = self.judge(plan_id)
        state = judged.execution.state
        wanted = set(self.resolve(state, words))
        if everything:
            wanted.update(a for a, found in judged.reasons.items() if found.code in EDITS)
        if everything and not wanted:
            return []
        if not wanted:
            raise UsageError("Say what to accept", hint="headway accept ID…, or --all", code="accept.what")
        folder = self.store.folder(plan_id)
        with folder.writing() as writer:
            judged.judge.follow(writer.refresh() or state)
            run = self._run(writer, judged, Call(Options(), Silent()), folder.run_lock())
            accepted = [a for a in judged.reasons if a in wanted]
            for artifact_id in accepted:
                run.accept(artifact_id, reason)
        return accepted

    def _leave_stamp(self, folder: PlanFolder, judge: Judge, position: Position | None) -> None:
        """What the next run will say if nothing changes until then."""
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

    def _nothing_to_do(self, folder: PlanFolder, judged: Judged, reporter: Reporter) -> RunResult:
        done = judged.execution.state.completed
        artifacts = judged.execution.state.artifacts
        kept = [a for a, spec in artifacts.items() if a in judged.selected and not spec.gathers]
        result = RunResult(plan_id=folder.plan_id, kept=kept, root=self.root)
        result.outputs = {a: done[a].outputs for a in kept if a in done}
        result.saved_ms = sum(done[a].ms for a in kept if a in done)
        result.read = self._reader(judged.judge.outputs)
        self._keep_stats(judged.judge.observer)
        if len(judged.selected) == len(artifacts):
            self._leave_stamp(folder, judged.judge, judged.execution.position)
        reporter.begun(result, {}, 0)
        reporter.ended(result)
        return result

    def at_rest(
        self,
        plan_id: str,
        artifacts: Mapping[str, ArtifactSpec],
        functions: Mapping[str, Function],
        *,
        proposal: str,
        source: str,
    ) -> RunResult | None:
        """What a run comes to of a plan that Python code has built, if it is known to have nothing to do."""
        built = stamping.built(source, artifacts.values(), functions)
        name = stamping.name_of(proposal, plan_id)
        if not built or not stamp.still_holds(self.root, name, VERSION, self.environ, built=built):
            return None

        def recall() -> tuple[dict[str, tuple[Output, ...]], Callable[[Output], bytes]]:
            execution = self.store.folder(plan_id).load()
            done = execution.state.completed if execution is not None else {}
            outputs = Outputs(self.root, self.store.blobs, Observer(self.root))
            return {a: completion.outputs for a, completion in done.items()}, self._reader(outputs)

        return RunResult(plan_id=plan_id, kept=list(artifacts), root=self.root, recall=recall)

    def _refuse_problems(self, state: State) -> None:
        if state.proposal is not None and state.proposal.problems:
            path = state.proposal.path
            raise PlanInvalid(
                state.proposal.problems,
                where=f"Plan {state.plan_id} is a draft: {path}",
                hint=f"correct {path}, then: headway plans new {path}",
            )
        if state.sound:
            return
        spec = PlanSpec(
            goal=state.goal,
            id=state.plan_id,
            settings=state.settings,
            profile=state.profile,
            artifacts=tuple(state.artifacts.values()),
        )
        problems = check_beside_others(spec, state.plan_id, self.store)
        if problems:
            raise PlanInvalid(problems, where=f"Plan {state.plan_id}")

    def selected(self, state: State, options: Options, shared: Shared | None = None) -> set[str]:
        """The artifacts that this run is about: all, or targets and whatever they build on."""
        words = (*options.targets, *options.until)
        if not words:
            return set(state.artifacts)
        graph = ArtifactGraph.over(state.artifacts)
        chains = shared or Shared(graph)
        found = set(graph.below(self._named(state, words)))
        while more := {stage for a in found for stage in chains.after(a)} - found:
            found |= set(graph.below(more))
        return found

    def _named(self, state: State, words: Sequence[str]) -> list[str]:
        """What words name. While it is open which units there are, a word may name one that is yet to come."""
        sources = [p.name for p in state.settings.pipelines if p.units.source]
        open_ = [units_id(name) for name in sources if name not in state.units or not state.units[name].units]
        if not open_:
            return self.resolve(state, words)
        found: list[str] = []
        for word in words:
            try:
                found += self.resolve(state, [word])
            except UsageError:
                found += [a for a in open_ if a in state.artifacts]
        return found

    def forced(self, state: State, options: Options, selected: set[str]) -> set[str]:
        """The artifacts that are to be made anew whatever there is."""
        wanted = set(self.resolve(state, options.targets)) if options.targets else selected
        if options.rerun_all:
            return set(selected)
        forced = set(self.resolve(state, options.rerun))
        for word in options.rerun_from:
            phase = self._phase(state, word)
            start = [a for a in phase if a in wanted] if phase else self.resolve(state, [word])
            forced |= set(ArtifactGraph.over(state.artifacts).above(start))
        return {a for a in forced & selected if not state.artifacts[a].gathers}

    def _phase(self, state: State, word: str) -> list[str]:
        """The artifacts of a phase that a word names; an id of that name counts first."""
        named = [p.name for p in state.settings.pipelines if p.phase(word) is not None]
        if word in state.artifacts or not named:
            return []
        if len(named) > 1:
            raise UsageError(
                f"{word} is a phase of several pipelines",
                facts={"pipelines": ", ".join(named)},
                hint=f"name artifacts: --rerun-from '*/{word}' with targets of one of them",
                code="phase.which",
            )
        return [a for a, spec in state.artifacts.items() if spec.phase == word and spec.unit]

    def resolve(self, state: State, words: Sequence[str]) -> list[str]:
        """Artifacts that words name: ids, patterns of ids, or output paths."""
        found: list[str] = []
        for word in words:
            if word in state.artifacts:
                found.append(word)
                continue
            of_unit = [a for a, s in state.artifacts.items() if word in (s.unit, s.pipeline)] if state.units else []
            if of_unit and word:
                found += of_unit
                continue
            path = os.path.normpath(word)
            matches = [a for a in state.artifacts if fnmatch.fnmatchcase(a, word)] if set(word) & set("*?[") else []
            matches = matches or [
                a for a, s in state.artifacts.items() if path in (os.path.normpath(p) for p in s.produces)
            ]
            if not matches:
                near = Nearest(list(state.artifacts)).of(word)
                raise UsageError(
                    f"Plan {state.plan_id} has no artifact {word}",
                    facts={"did you mean": near} if near else {},
                    hint="headway status lists them; a goal has a blank in it",
                    code="artifact.unknown",
                )
            found += matches
        return found

    def _loader(self, functions: Mapping[str, Function] | None) -> Callable[[ArtifactSpec], Function]:
        given = functions or {}
        loaded: dict[str, Function] = {}

        def load(spec: ArtifactSpec) -> Function:
            own = function_of(given, spec)
            if own is not None:
                return own
            if spec.make not in loaded:
                from headway.engine.recipes.function import load_function

                loaded[spec.make] = load_function(self.root, spec.make)
            return loaded[spec.make]

        return load

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
            cache.keep_stats((path, observer.entries[path]) for path in observer.changed if path in observer.entries)
            cache.close()
