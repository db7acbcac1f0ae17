"""What is made for the first time, in a moment, by a function that nobody else has a say in: most of what a new plan
has.

Of such an artifact all questions but two have been answered before its turn comes: whether what it requires still
stands, and what it is made from. Whether anything has come to stand at its paths, its worker looks at last. Whoever has
another answer than the rest is looked at like any other.
"""

from __future__ import annotations

from collections.abc import Callable
from operator import attrgetter
from typing import Any

from headway.core.approval import in_force
from headway.core.plan import ArtifactSpec, Retry
from headway.core.state import State
from headway.engine.jobs import Jobs
from headway.engine.judge import UNTOUCHED, Judge, told_of
from headway.engine.keeping import Keeper
from headway.engine.making import Task
from headway.engine.moved import moved_inputs
from headway.engine.result import Options
from headway.engine.sources import Moment
from headway.errors import HeadwayError

ASKED = ("modifies", "reads", "after", "gates", "templates", "gathers", "iteration")
"""Whatever of these a light artifact has is somebody's to ask about before it is made."""

ONCE = Retry()
"""Without a word about it, nothing is tried twice."""

First = Callable[[str], Task | None]
_asked = attrgetter(*ASKED)


class Firsts:
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
        """Something has come to stand at the paths of one of them: from here on, each is asked about like any other."""
        self._in_doubt = True

    def among(self, state: State) -> First:
        """What tells those that are ready apart, as of this state: what a worker needs for one, None for any other.

        There are none where something was made before that could be taken over, or somebody has said otherwise.
        """
        judge, artifacts, completed = self._judge, state.artifacts, state.completed
        said = (judge.shared.chains, judge.left.ids, judge.forced, state.asked, state.skipped, state.made)
        if self._in_doubt or any(said) or in_force(state) or judge.precedents.any():
            return _none
        reasons, is_light, told, task = judge.reasons, self._is_light, told_of(state), self._task

        def first(artifact_id: str) -> Task | None:
            if reasons[artifact_id] is not UNTOUCHED or artifact_id in completed:
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
            return task(spec) if all(map(completed.__contains__, spec.requires)) else None

        return first

    def _task(self, spec: ArtifactSpec) -> Task | None:
        """What a worker needs; None where something is amiss: whoever looks more closely finds out what."""
        judge, produces = self._judge, spec.produces
        try:
            judge.forget(spec, self._moment)
            if spec.requires and moved_inputs(judge, spec.requires, self._moment, cheaply=True):
                return None
            if judge.problem(spec.id):
                return None
            self._keeper.make_room(produces)
            job = self._jobs.job(spec, judge.now[spec.id])
        except (HeadwayError, OSError):
            return None
        assert job.fp is not None, "what is to be made is made from something"
        left = dict.fromkeys(produces, "")
        return Task(job, job.fp, ONCE, loop=self._loop, left=left, light=True)


def _none(_: str) -> None:
    """There are none."""
