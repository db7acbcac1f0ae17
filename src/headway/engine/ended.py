"""What light attempts made that ended together, as it is recorded. Looks at what they read; writes nothing."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from operator import attrgetter

from headway.core.events import ArtifactCompleted
from headway.engine.judge import Judge
from headway.engine.making import Task
from headway.engine.moved import changed_meanwhile
from headway.engine.row import Outcome
from headway.engine.sources import Moment

_told_apart = attrgetter("gates", "integrates", "modifies", "reads", "run", "verify", "effects")
"""Of what has any of these, more is to be told than that it was made."""


def came_of(
    outcomes: Sequence[Outcome], running: Mapping[str, Task], judge: Judge, moment: Moment
) -> tuple[ArtifactCompleted, ...]:
    """What was made, one for each outcome; nothing if more is to be said of any of them, whatever it is."""
    completed, held, found = judge.state.completed, moment.held, []
    for outcome in outcomes:
        task = running[outcome.id]
        spec, fp, before = task.job.spec, task.fp, completed.get(outcome.id)
        if not (outcome.ok and task.light) or outcome.stood or outcome.other or outcome.attempts > 1:
            return ()
        if any(_told_apart(spec)):
            return ()
        is_held = held.issuperset(spec.requires) and not (spec.sources or spec.templates)
        if not is_held and any(changed_meanwhile(judge, task, before, moment)):
            return ()
        if before is not None and before.fp == fp:  # it may be unstable
            return ()
        found.append(
            ArtifactCompleted(
                id=outcome.id,
                token=task.token,
                outputs=outcome.outputs,
                fp=fp,
                ms=outcome.ms,
                stdout=outcome.stdout,
                stderr=outcome.stderr,
                prompt=outcome.prompt,
            )
        )
    return tuple(found)
