"""What light attempts made that ended together, as it is recorded. Looks at what they read; writes nothing."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec.structs import replace

from headway.core.events import ArtifactCompleted
from headway.engine.judge import Judge
from headway.engine.making import Task
from headway.engine.moved import changed_meanwhile
from headway.engine.row import Outcome
from headway.engine.sources import Moment


def came_of(
    outcomes: Sequence[Outcome], tasks: Sequence[Task], judge: Judge, moment: Moment
) -> tuple[ArtifactCompleted, ...]:
    """What was made, one for each outcome of a task; nothing if more is to be said of any of them, whatever it is.

    What is light is neither verified nor a command, and has no effects.
    """
    completed, held, found = judge.state.completed, moment.held, list[ArtifactCompleted]()
    for outcome, task in zip(outcomes, tasks, strict=True):
        artifact_id, spec, fp = outcome.id, task.job.spec, task.fp
        if not (outcome.ok and task.light) or outcome.stood or outcome.other or outcome.attempts > 1:
            return ()
        if spec.gates or spec.integrates or spec.modifies or spec.reads:
            return ()
        before = completed.get(artifact_id)
        is_held = held.issuperset(spec.requires) and not (spec.sources or spec.templates)
        if not is_held and any(changed_meanwhile(judge, task, before, moment)):
            return ()
        if before is not None and before.fp == fp:  # it may be unstable
            return ()
        came = ArtifactCompleted(artifact_id, task.token, outcome.outputs, fp, "made", outcome.ms)
        if outcome.stdout or outcome.stderr or outcome.prompt:
            came = replace(came, stdout=outcome.stdout, stderr=outcome.stderr, prompt=outcome.prompt)
        found.append(came)
    return tuple(found)
