"""Judging and running the plans of one project: joins store, files and the run. One code path for run and resume."""

from __future__ import annotations

import fnmatch
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from typing import Any, NamedTuple

from headway.core.check import check_plan
from headway.core.freshness import Reason
from headway.core.graph import ArtifactGraph
from headway.core.nearest import Nearest
from headway.core.plan import ArtifactSpec, PlanSpec
from headway.core.state import Output, State
from headway.engine import scheduler_lock, stamping
from headway.engine.gc import sweep
from headway.engine.history import History
from headway.engine.judge import Judge
from headway.engine.result import Options, Reporter, RunResult, Silent
from headway.engine.run import Run
from headway.errors import HeadwayError, NotFound, PlanInvalid, UsageError
from headway.files.cache import Cache
from headway.files.observe import Observer
from headway.files.outputs import Outputs
from headway.projections.plan_files import CHECKPOINT, VIEWS
from headway.projections.saved_execution import SavedExecution
from headway.store import PlanFolder, PlanStore

Function = Callable[..., Any]


class Judged(NamedTuple):
    """A plan and the verdict on each of its artifacts."""

    execution: SavedExecution
    judge: Judge

    @property
    def reasons(self) -> dict[str, Reason]:
        """Why each artifact is fresh or stale."""
        return self.judge.reasons


class Session:
    """The engine for one project."""

    def __init__(self, root: str, home: str, store: PlanStore, *, environ: Mapping[str, str], by: str) -> None:
        self.root = root
        self.home = home
        self.store = store
        self.environ = environ
        self.by = by

    def judge(
        self,
        plan_id: str,
        *,
        forced: Iterable[str] = (),
        functions: Mapping[str, Function] | None = None,
        writable: bool = False,
        at: int | None = None,
        execution: SavedExecution | None = None,
    ) -> Judged:
        """Judge every artifact of a plan. Writes nothing."""
        folder = self.store.folder(plan_id)
        if execution is None:
            execution = folder.at(at) if at is not None else folder.load()
        if execution is None:
            raise NotFound(f"There is no plan {plan_id}", hint="headway plans list", code="plan.none")
        cache = Cache(os.path.join(self.home, "cache.sqlite"))
        observer = Observer(self.root, cache.stats())
        history = History(self.store, cache, writable=writable)
        judge = self._judge(execution.state, observer, history, forced, functions)
        judge.all()
        return Judged(execution, judge)

    def judge_graph(self, graph: ArtifactGraph, previous: SavedExecution) -> Judged:
        """Judge a graph as if it were the plan's structure, against what was recorded. Writes nothing."""
        state = previous.state.copy()
        state.artifacts = dict(graph.artifacts)
        cache = Cache(os.path.join(self.home, "cache.sqlite"))
        judge = self._judge(
            state, Observer(self.root, cache.stats()), History(self.store, cache, writable=False), (), None
        )
        judge.all()
        return Judged(previous, judge)

    def run(
        self,
        plan_id: str,
        options: Options,
        *,
        reporter: Reporter | None = None,
        functions: Mapping[str, Function] | None = None,
        loop: Any = None,
        stop: Callable[[], str] = lambda: "",
    ) -> RunResult:
        """Make what is stale of a plan. With nothing to do, nothing is written and no lock is taken."""
        folder = self.store.folder(plan_id)
        judged = self.judge(plan_id, functions=functions, writable=True)
        self._refuse_problems(judged.execution.state)
        selected = self.selected(judged.execution.state, options)
        forced = self.forced(judged, options, selected)
        if forced:
            judged.judge.forced = forced
            judged.judge.all()
        voice = reporter or Silent()
        if all(judged.reasons[a].fresh for a in selected):
            return self._nothing_to_do(folder, judged, selected, voice)
        lock = folder.run_lock()
        scheduler_lock.take(lock, plan_id)
        try:
            return self._run_locked(folder, judged, options, selected, voice, functions, loop, stop, lock)
        finally:
            lock.release()

    # Parts of a run.

    def _run_locked(
        self,
        folder: PlanFolder,
        judged: Judged,
        options: Options,
        selected: set[str],
        reporter: Reporter,
        functions: Mapping[str, Function] | None,
        loop: Any,
        stop: Callable[[], str],
        lock: Any,
    ) -> RunResult:
        judge = judged.judge
        outputs = Outputs(self.root, self.store.blobs, judge.observer)
        with folder.writing() as writer:
            state = writer.refresh()
            assert state is not None, "judged a moment ago"
            if writer.position != judged.execution.position:
                judge = self._judge(state, judge.observer, judge.history, judge.forced, functions)
                judge.all()
                selected = self.selected(state, options)
            else:
                judge.state = state
                judge.graph = ArtifactGraph.over(state.artifacts)
            run = Run(
                writer,
                judge,
                outputs,
                judge.history,
                lock,
                root=self.root,
                home=self.home,
                run_id=os.urandom(4).hex(),
                by=self.by,
                jobs=options.jobs or state.settings.jobs or os.cpu_count() or 1,
                environ=self.environ,
                options=options,
                selected=selected,
                reporter=reporter,
                function=self._loader(functions),
                loop=loop,
                stop=stop,
                boot=scheduler_lock.boot_id(),
            )
            try:
                result = run.go()
            finally:
                self._keep_stats(judge.observer)
            result.read = self._reader(outputs)
            writer.sync()
            if writer.state is not None and writer.position is not None:
                folder.files.refresh(SavedExecution(writer.state, writer.position), VIEWS + CHECKPOINT)
        if result.ok and selected == set(state.artifacts):
            self._leave_stamp(folder, judge)
        if self.store.blobs.crowded:
            with suppress(HeadwayError):  # a convenience: whoever writes meanwhile, or damage, puts it off
                sweep(self.store)
        return result

    def _leave_stamp(self, folder: PlanFolder, judge: Judge) -> None:
        """What the next run will say if nothing changes until then."""
        kept = list(judge.state.artifacts)
        result = RunResult(plan_id=folder.plan_id, kept=kept, root=self.root)
        noun = "1 artifact is" if len(kept) == 1 else f"{len(kept)} artifacts are"
        stamping.leave(
            judge,
            result,
            f"Nothing to do: {noun} up to date.",
            root=self.root,
            home=self.home,
            ledger=folder.ledger().path,
            environ=self.environ,
        )
        self._keep_stats(judge.observer)

    def _nothing_to_do(self, folder: PlanFolder, judged: Judged, selected: set[str], reporter: Reporter) -> RunResult:
        done = judged.execution.state.completed
        kept = [a for a in judged.execution.state.artifacts if a in selected]
        result = RunResult(plan_id=folder.plan_id, kept=kept, root=self.root)
        result.outputs = {a: done[a].outputs for a in kept if a in done}
        result.saved_ms = sum(done[a].ms for a in kept if a in done)
        result.read = self._reader(Outputs(self.root, self.store.blobs, judged.judge.observer))
        self._keep_stats(judged.judge.observer)
        if len(kept) == len(judged.execution.state.artifacts):
            self._leave_stamp(folder, judged.judge)
        reporter.begun(result, {}, 0)
        reporter.ended(result)
        return result

    def _judge(
        self,
        state: State,
        observer: Observer,
        history: History,
        forced: Iterable[str],
        functions: Mapping[str, Function] | None,
    ) -> Judge:
        return Judge(
            state,
            root=self.root,
            observer=observer,
            history=history,
            environ=self.environ,
            forced=set(forced),
            functions=functions,
        )

    def _refuse_problems(self, state: State) -> None:
        spec = PlanSpec(
            goal=state.goal,
            id=state.plan_id,
            settings=state.settings,
            profile=state.profile,
            artifacts=tuple(state.artifacts.values()),
        )
        problems = check_plan(spec)
        if problems:
            raise PlanInvalid(problems, where=f"Plan {state.plan_id}")

    def selected(self, state: State, options: Options) -> set[str]:
        """The artifacts that this run is about: all, or targets and what they require."""
        words = (*options.targets, *options.until)
        if not words:
            return set(state.artifacts)
        return set(ArtifactGraph.over(state.artifacts).below(self.resolve(state, words)))

    def forced(self, judged: Judged, options: Options, selected: set[str]) -> set[str]:
        state = judged.execution.state
        if options.rerun_all:
            return set(selected)
        forced = set(self.resolve(state, options.rerun))
        if options.rerun_from:
            forced |= set(ArtifactGraph.over(state.artifacts).above(self.resolve(state, options.rerun_from)))
        return forced & selected

    def resolve(self, state: State, words: Sequence[str]) -> list[str]:
        """Artifacts that words name: ids, patterns of ids, or output paths."""
        found: list[str] = []
        for word in words:
            if word in state.artifacts:
                found.append(word)
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
            if spec.id in given:
                return given[spec.id]
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
