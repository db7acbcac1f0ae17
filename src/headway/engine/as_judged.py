"""What is begun as it was judged when the run began: made in a moment, by a function that nobody else has a say in.

Of such an artifact all questions but two have been answered before its turn comes: whether what it requires still
stands, and what it is made from, which has to be what it was judged by. Whether somebody has been at its paths, its
worker looks at last. Whoever has another answer than the rest is looked at like any other.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from operator import attrgetter
from typing import Any

from headway.core.approval import in_force
from headway.core.freshness import FRESH, Code
from headway.core.plan import ArtifactSpec, Retry
from headway.core.state import Completion, State
from headway.engine.jobs import Jobs
from headway.engine.judge import UNTOUCHED, Judge, told_of
from headway.engine.keeping import Keeper
from headway.engine.making import Task
from headway.engine.moved import moved_inputs
from headway.engine.result import Options
from headway.engine.sources import Moment
from headway.errors import HeadwayError

ASKED = ("modifies", "reads", "after", "gates", "gathers", "iteration")
"""Whatever of these a light artifact has is somebody's to ask about before it is made."""

CHANGED: frozenset[Code] = frozenset(
    {"spec_changed", "recipe_changed", "prompt_changed", "source_changed", "input_changed"}
)
"""It is stale by what it would be made from, and by nothing else: its outputs stand."""

ONCE = Retry()
"""Without a word about it, nothing is tried twice."""

Fits = Callable[[str], ArtifactSpec | None]
_asked = attrgetter(*ASKED)


class AsJudged:
    """Knows the artifacts of a run that can be begun without further questions, and begins them."""

    def __init__(
        self,
        judge: Judge,
        jobs: Jobs,
        keeper: Keeper,
        *,
        moment: Moment,
        options: Options,
        is_light: Callable[[ArtifactSpec], bool],
        loop: Any = None,
    ) -> None:
        self._judge = judge
        self._jobs = jobs
        self._keeper = keeper
        self._moment = moment
        self._in_doubt = options.limit is not None
        self._is_light = is_light
        self._loop = loop

    def doubt(self) -> None:
        """Somebody has been at the paths of one of them: from here on, each is asked about like any other."""
        self._in_doubt = True

    def among(self, state: State) -> Fits:
        """What tells those that are ready apart, as of this state: the spec of one, None for any other.

        There are none where somebody has said otherwise, and none that are new where something was made before that
        could be taken over.
        """
        judge, artifacts, completed = self._judge, state.artifacts, state.completed
        said = (judge.left.ids, judge.forced, state.asked, state.skipped, state.made)
        if self._in_doubt or any(said) or in_force(state):
            return _none
        reasons, is_light, told = judge.reasons, self._is_light, [table for table in told_of(state) if table]
        may_be_new = not judge.precedents.any()

        def fits(artifact_id: str) -> ArtifactSpec | None:
            if judge.shared.chains:  # units may come that have some
                return None
            reason, done = reasons[artifact_id], completed.get(artifact_id)
            if not (may_be_new and reason is UNTOUCHED if done is None else reason.code in CHANGED):
                return None
            spec = artifacts.get(artifact_id)
            if spec is None or not is_light(spec) or any(_asked(spec)):
                return None
            for table in told:
                if artifact_id in table:
                    return None
            for path in spec.produces:
                if path[-1] == "/":  # a folder is emptied first
                    return None
            for required in spec.requires:
                if required not in completed:
                    return None
            return spec

        return fits

    def begin(self, specs: Sequence[ArtifactSpec]) -> dict[str, Task]:
        """What a worker needs for each of these, by id; whoever is not among them has to be looked at more closely.

        What any of them requires is looked at once, for all of them.
        """
        completed, tasks = self._judge.state.completed, dict[str, Task]()
        new = [spec for spec in specs if spec.id not in completed]
        with suppress(HeadwayError, OSError):  # of one of them: whoever looks more closely finds out what
            moved_inputs(self._judge, {r for spec in specs for r in spec.requires}, self._moment, cheaply=True)
            tasks = self._first(new)
        for spec in specs if len(new) < len(specs) else ():
            done = completed.get(spec.id)
            with suppress(HeadwayError, OSError):
                if done is not None and (task := self._again(spec, done)) is not None:
                    tasks[spec.id] = task
        return tasks

    def _first(self, specs: Sequence[ArtifactSpec]) -> dict[str, Task]:
        """Of what was never made. What many of them have in common is told and put together once."""
        judge, moment, stands = self._judge, self._moment, self._moment.held.issuperset
        reading = [spec for spec in specs if spec.sources or spec.templates]
        for spec in reading:
            judge.forget(spec, moment)
        makeable = [spec for spec in specs if stands(spec.requires)]
        judge.fingerprints(makeable)
        if reading or judge.problems:
            makeable = [spec for spec in makeable if not judge.problem(spec.id)]
        paths = [path for spec in makeable for path in spec.produces]
        self._keeper.make_room(paths)
        judge.outputs.folders.look_ahead(paths)
        loop = self._loop
        return {
            job.spec.id: Task(job, job.fp, ONCE, 0, loop, (), False, dict.fromkeys(job.spec.produces, ""), True)
            for job in self._jobs.jobs(makeable)
            if job.fp is not None
        }

    def _again(self, spec: ArtifactSpec, done: Completion) -> Task | None:
        """Of what was made before, if its verdict is what it was, and nothing can be taken over."""
        judge, recorded = self._judge, {output.path: output for output in done.outputs}
        by = judge.now.get(spec.id)
        if done.how == "accepted" or by is None or by == done.fp:  # somebody has said so since
            return None
        if spec.optional or recorded.keys() != {*(spec.produces or ("",))}:
            return None
        if not all(judge.reasons.get(required) is FRESH for required in spec.requires):
            return None
        judge.forget(spec, self._moment)
        if judge.fingerprint(spec.id) != by or self._is_hindered(spec) or judge.has_earlier(spec.id):
            return None
        if not all(judge.observer.is_alone(recorded[path]) for path in spec.produces):
            return None
        return self._task(spec, {path: recorded[path].digest for path in spec.produces}, replaces=bool(spec.produces))

    def _is_hindered(self, spec: ArtifactSpec) -> bool:
        """Whether what it requires does not stand any more, or it cannot be made at all."""
        judge = self._judge
        if spec.requires and moved_inputs(judge, spec.requires, self._moment, cheaply=True):
            return True
        return bool(judge.problem(spec.id))

    def _task(self, spec: ArtifactSpec, left: dict[str, str], *, replaces: bool) -> Task:
        job = self._jobs.job(spec, self._judge.now[spec.id])
        assert job.fp is not None, "what is to be made is made from something"
        return Task(job, job.fp, ONCE, loop=self._loop, replaces=replaces, left=left, light=True)


def _none(_: str) -> None:
    """There are none."""
