"""Rules about a plan as a whole: its profile, its approval, and how it is reset, closed and exported."""

from __future__ import annotations

import msgspec

from headway.core import commands as cmd
from headway.core import events as ev
from headway.core.approval import head_hash, plan_hash
from headway.core.decide.base import Events, Rejection, held, too_long, unknown
from headway.core.plan import Profile
from headway.core.state import State


def bad_profile(profile: Profile | None) -> Rejection | None:
    """A profile that cannot be."""
    if profile is None or profile.is_possible:
        return None
    return Rejection(
        kind="usage",
        code="profile.invalid",
        message="max_concurrent_tasks is a number from 1 to 64",
        facts={"given": profile.max_concurrent_tasks},
        hint="headway profile set --max-concurrent-tasks N",
    )


def set_profile(state: State, command: cmd.SetProfile) -> Events | Rejection:
    """Decide the plan's concurrency, unless it is locked."""
    new, old = command.profile, state.profile
    if new == old:
        return []
    if old is not None and old.locked:
        return locked(state, new)
    bad = bad_profile(new)
    if bad:
        return bad
    unlocked = msgspec.structs.replace(new, locked=False)
    events: Events = [ev.ProfileSet(profile=unlocked)] if unlocked != old else []
    return [*events, ev.ProfileLocked()] if new.locked else events


def locked(state: State, asked: Profile) -> Rejection:
    """A locked profile stands."""
    return Rejection(
        code="profile.locked",
        message=f"The profile of plan {state.plan_id} is locked",
        facts={"locked": _words(state.profile or Profile()), "asked for": _words(asked)},
        hint=f"headway reset --all --plan-id {state.plan_id} withdraws all progress and unlocks it",
    )


def _words(profile: Profile) -> str:
    return ", ".join(f"{name}={value}" for name, value in msgspec.structs.asdict(profile).items())


def approve(state: State, command: cmd.ApprovePlan) -> Events | Rejection:
    """Sign the plan as it is; what somebody looked at must be what it is."""
    now = plan_hash(state)
    if command.hash != now:
        return Rejection(
            code="approval.outdated",
            message=f"Plan {state.plan_id} has changed since you looked at it",
            facts={"you approve": command.hash, "it is now": now},
            hint=f"headway plans show {state.plan_id} --approved shows what changed",
        )
    same = state.approval is not None and state.approval.hash == now and state.refused is None
    if same:
        return []
    approved = ev.PlanApproved(hash=now, head=head_hash(state), profile=state.profile, note=command.note)
    return too_long(note=command.note) or [approved]


def reject(state: State, command: cmd.RejectPlan) -> Events | Rejection:
    """Say that the plan is not to be made as it is."""
    if not command.reason.strip():
        return Rejection(kind="usage", code="reject.reason", message="Rejecting needs a reason", hint="--reason TEXT")
    return too_long(reason=command.reason) or [ev.PlanRejected(reason=command.reason)]


def reset(state: State, command: cmd.ResetPlan) -> Events | Rejection:
    """Withdraw progress: all of it, or that of some artifacts."""
    strangers = [a for a in command.ids if a not in state.artifacts]
    if strangers:
        return unknown(state, strangers)
    claimed = [a for a in command.ids or state.claims if a in state.claims]
    if claimed:
        return held(state, claimed[0], "stop the run first")
    if state.closed and command.ids:
        return Rejection(
            code="plan.closed",
            message=f"Plan {state.plan_id} is closed",
            facts={"since": state.closed},
            hint=f"headway reset --all --plan-id {state.plan_id} starts it afresh",
        )
    return too_long(reason=command.reason) or [
        ev.PlanReset(reason=command.reason, ids=tuple(dict.fromkeys(command.ids)))
    ]


def close(state: State, command: cmd.ClosePlan) -> Events | Rejection:
    """Put the plan away."""
    return too_long(reason=command.reason) or [ev.PlanClosed(reason=command.reason)]


def export(state: State, command: cmd.RecordExport) -> Events | Rejection:
    """A checkpoint was written."""
    return [ev.PlanExported(export=command.export)]


def learn(state: State, command: cmd.RecordLearning) -> Events | Rejection:
    """Keep what somebody learned, once."""
    if command.artifact and command.artifact not in state.artifacts:
        return unknown(state, [command.artifact])
    if not command.text.strip():
        return Rejection(kind="usage", code="learning.empty", message="A learning is not empty", hint="say it in words")
    if any((known.text, known.artifact) == (command.text, command.artifact) for known in state.learnings):
        return []
    return too_long(learning=command.text) or [ev.LearningRecorded(text=command.text, artifact=command.artifact)]
