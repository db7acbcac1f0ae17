"""What is made for the first time, in a moment, by a function that nobody else has a say in: most of what a new plan
has.

Of such an artifact all questions but one have been answered before its turn comes: what it is made from. Whether
anything has come to stand at its paths, its worker looks at last; whether what it requires still stood, the run looks
at when it has ended. Whoever has another answer than the rest is looked at like any other.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from operator import attrgetter
from typing import Any

from headway.core.approval import in_force
from headway.core.plan import ArtifactSpec, Retry
from headway.core.state import State
from headway.engine.jobs import Jobs
from headway.engine.judge import UNTOUCHED, Judge
from headway.engine.keeping import Keeper
from headway.engine.making import Task
from headway.engine.result import Options
from headway.engine.sources import Moment
from headway.errors import HeadwayError

_said_besides = attrgetter("modifies", "reads", "after", "gates", "templates", "gathers", "iteration")
"""Whatever of these a light artifact has is somebody's to ask about before it is made."""

ONCE = Retry()
"""Without a word about it, nothing is tried twice."""


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
        self._has_limit = options.limit is not None
        self._is_light = is_light
        self._loop = loop
        self._doubtful: set[str] = set()

    def doubt(self, artifact_id: str) -> None:
        """Something has come to stand at its paths: from here on, it is asked about like any other."""
        self._doubtful.add(artifact_id)

    def among(self, state: State) -> Callable[[str], ArtifactSpec | None]:
        """What tells those that are ready apart, as of this state: the spec of one, None for any other.

        There are none where something was made before that could be taken over, or somebody has said otherwise.
        """
        judge, artifacts, completed, doubtful = self._judge, state.artifacts, state.completed, self._doubtful
        said = (judge.shared.chains, judge.left.ids, judge.forced, state.asked, state.skipped, state.made)
        if self._has_limit or any(said) or in_force(state) or judge.precedents.any():
            return _none
        reasons, is_light, known = judge.reasons, self._is_light, (state.claims, state.failed, state.uncertain)

        def first(artifact_id: str) -> ArtifactSpec | None:
            if reasons[artifact_id] is not UNTOUCHED or artifact_id in completed or artifact_id in doubtful:
                return None
            spec = artifacts.get(artifact_id)
            if spec is None or not is_light(spec) or any(_said_besides(spec)):
                return None
            for table in known:
                if artifact_id in table:
                    return None
            for path in spec.produces:
                if path[-1] == "/":  # a folder is emptied first
                    return None
            return spec if all(map(completed.__contains__, spec.requires)) else None

        return first

    def tasks(self, row: Sequence[ArtifactSpec]) -> tuple[list[Task], list[str]]:
        """What workers need to make these, and the ids of those that have to be looked at more closely."""
        judge, make_room, job, moment, loop = (
            self._judge,
            self._keeper.make_room,
            self._jobs.job,
            self._moment,
            self._loop,
        )
        tasks: list[Task] = []
        others: list[str] = []
        for spec in row:
            produces = spec.produces
            try:
                judge.forget(spec, moment)
                if judge.problem(spec.id):
                    others.append(spec.id)
                    continue
                make_room(produces)
                given = job(spec, judge.now[spec.id])
            except (HeadwayError, OSError):  # whoever looks more closely finds out what is the matter
                others.append(spec.id)
            else:
                assert given.fp is not None, "what is to be made is made from something"
                left = dict.fromkeys(produces, "")
                tasks.append(Task(given, given.fp, ONCE, 0, loop, (), False, left, True, True))
        return tasks, others


def _none(_: str) -> None:
    """There are none."""
