"""All rules. `decide(state, command)` gives the events that the command causes, or says why it causes none.

Nothing else in Headway allows or forbids a change of a plan. Nothing here changes one: see evolve/.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from headway.core import commands as cmd
from headway.core.decide import gating, pipelines, standing, structure, work
from headway.core.decide.base import Events, Rejection
from headway.core.state import State

__all__ = ["Events", "Rejection", "decide", "decide_together"]


def decide(state: State | None, command: cmd.Command) -> Events | Rejection:
    """The events that this command causes in this state, or the rule that forbids it."""
    if isinstance(command, cmd.CreatePlan):
        return structure.create(state, command)
    if isinstance(command, cmd.ImportPlan):
        return structure.import_plan(state, command)
    if state is None:
        return Rejection(
            kind="usage", code="plan.none", message="There is no such plan yet", hint="headway plans new FILE"
        )
    if state.closed and not isinstance(command, (cmd.ResetPlan, cmd.RecordExport, cmd.RecordLearning)):
        return Rejection(
            code="plan.closed",
            message=f"Plan {state.plan_id} is closed",
            facts={"since": state.closed},
            hint=f"headway reset --all --plan-id {state.plan_id} starts it afresh",
        )
    return _RULES[type(command)](state, command)


def decide_together(state: State | None, commands: Sequence[cmd.Command]) -> list[Events] | None:
    """What each of many completions causes, where none can change what becomes of another; None where one may, or where
    one is refused: whoever asks for one after the other finds out which.
    """
    if state is None or state.closed or state.open or set(map(type, commands)) != {cmd.CompleteArtifact}:
        return None
    found: dict[str, Events] = {}
    for command in commands:
        assert isinstance(command, cmd.CompleteArtifact), "this was asked above"
        caused = work.complete(state, command)
        if isinstance(caused, Rejection) or state.artifacts[command.id].gates:
            return None
        found[command.id] = caused
    return [*found.values()] if len(found) == len(commands) else None


_RULES: dict[type[cmd.Command], Callable[[State, Any], Events | Rejection]] = {
    cmd.TakeProposal: structure.take,
    cmd.ChangePlan: structure.change,
    cmd.ExpandUnits: pipelines.expand,
    cmd.PermitPromptChange: pipelines.permit,
    cmd.GatherArtifact: pipelines.gather,
    cmd.BeginReplan: structure.begin_replan,
    cmd.EndReplan: structure.end_replan,
    cmd.Replan: structure.replan,
    cmd.SetProfile: standing.set_profile,
    cmd.ApprovePlan: standing.approve,
    cmd.RejectPlan: standing.reject,
    cmd.ResetPlan: standing.reset,
    cmd.ClosePlan: standing.close,
    cmd.RecordExport: standing.export,
    cmd.RecordLearning: standing.learn,
    cmd.StartRun: work.start_run,
    cmd.EndRun: work.end_run,
    cmd.StartArtifacts: work.start,
    cmd.CompleteArtifact: work.complete,
    cmd.CompleteArtifacts: work.complete_all,
    cmd.AcceptOutput: work.accept,
    cmd.FailArtifact: work.fail,
    cmd.RecordStep: work.step,
    cmd.SkipArtifacts: work.skip,
    cmd.ReleaseArtifacts: work.release,
    cmd.ExtendLease: work.extend,
    cmd.LeaveClaims: work.leave,
    cmd.SweepClaims: work.sweep,
    cmd.PreserveEdit: work.preserve,
    cmd.RecordVerdict: gating.record_verdict,
    cmd.RecordChecks: gating.record_checks,
}
