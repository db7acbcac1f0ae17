"""All rules. `decide(state, command)` gives the events that the command causes, or says why it causes none.

Nothing else in Headway allows or forbids a change of a plan. Nothing here changes one: see evolve.py.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any, Literal

import msgspec

from headway.core import commands as cmd
from headway.core import events as ev
from headway.core.codec import encode_state
from headway.core.ids import foreign_name
from headway.core.lifecycle import allowed, is_done, recorded_status
from headway.core.merge import merge
from headway.core.plan import ArtifactSpec, Profile, Value
from headway.core.state import State

Events = list[ev.Event]


class Rejection(Value):
    """Why a command is refused, and what to do. State is unchanged.

    `usage`: the command is wrong; `decision`: somebody must choose; `later`: it may well be right in a while.
    """

    code: str
    message: str
    facts: dict[str, Any] = {}
    hint: str = ""
    kind: Literal["usage", "decision", "later"] = "decision"


def decide(state: State | None, command: cmd.Command) -> Events | Rejection:
    """The events that this command causes in this state, or the rule that forbids it."""
    if isinstance(command, (cmd.CreatePlan, cmd.ImportPlan)):
        return _create(state, command) if isinstance(command, cmd.CreatePlan) else _import(state, command)
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


def _create(state: State | None, command: cmd.CreatePlan) -> Events | Rejection:
    if state is not None:
        return Rejection(
            code="plan.exists",
            message=f"Plan {command.plan_id} exists already",
            hint=f"headway plans show {command.plan_id}",
        )
    bad = _bad_profile(command.plan.profile)
    if bad:
        return bad
    unique: dict[str, ArtifactSpec] = {}
    for spec in command.plan.artifacts:
        unique.setdefault(spec.id, spec)
    plan = msgspec.structs.replace(command.plan, artifacts=tuple(unique.values()))
    created: Events = [
        ev.PlanCreated(
            format=ev.FORMAT,
            plan_id=command.plan_id,
            project_id=command.project_id,
            plan=plan,
            sound=command.sound,
        )
    ]
    if command.proposal is not None:
        created.append(ev.ProposalTaken(proposal=command.proposal))
    return created


def _import(state: State | None, command: cmd.ImportPlan) -> Events | Rejection:
    if state is not None and not command.replace:
        return Rejection(
            code="plan.exists",
            message=f"Plan {command.plan_id} exists already and differs from this checkpoint",
            hint="--replace makes the checkpoint its state (the history stays); --plan-id imports it beside",
        )
    if (
        state is not None
        and state.profile is not None
        and state.profile.locked
        and command.state.profile != state.profile
    ):
        return _locked(state, command.state.profile or Profile())
    return [
        ev.PlanImported(
            format=ev.FORMAT,
            plan_id=command.plan_id,
            project_id=command.project_id,
            source=command.source,
            origin=command.origin,
            at=command.at,
            reason=command.reason,
            state=msgspec.Raw(encode_state(command.state)),
        )
    ]


# Structure.


def _take(state: State, command: cmd.TakeProposal) -> Events | Rejection:
    merged = merge(command.base, command.plan, state, take=command.take)
    if merged.conflicts:
        return Rejection(
            code="plan.conflict",
            message="Plan file and ledger changed the same thing",
            facts={"changed on both sides": ", ".join(merged.conflicts)},
            hint="--take file lets the file win, --take ledger what the ledger has",
        )
    change = _change(state, merged.change)
    if isinstance(change, Rejection):
        return change
    events = change
    if merged.profile is not None and merged.profile != state.profile:
        profile = _profile(state, cmd.SetProfile(profile=merged.profile))
        if isinstance(profile, Rejection):
            return profile
        events += profile
    if command.proposal != state.proposal:
        events.append(ev.ProposalTaken(proposal=command.proposal))
    return events


def _change(state: State, command: cmd.ChangePlan) -> Events | Rejection:
    unknown = [i for i in (*command.remove, *(s.id for s in command.update)) if i not in state.artifacts]
    if unknown:
        return _unknown(state, unknown)
    twice = _twice(command)
    if twice:
        return Rejection(
            kind="usage",
            code="plan.duplicate",
            message=f"Artifact {twice[0]} is changed twice at once",
            hint="name each artifact once",
        )
    gone = set(command.remove)
    there = [s.id for s in command.add if s.id in state.artifacts and s.id not in gone]
    if there:
        return Rejection(
            kind="usage",
            code="plan.duplicate",
            message=f"Artifact {there[0]} is there already",
            hint="use another id",
        )
    claimed = [i for i in (*command.remove, *(s.id for s in command.update)) if i in state.claims]
    if claimed:
        return Rejection(
            kind="later",
            code="claim.held",
            message=f"Artifact {claimed[0]} is being made now",
            facts={"by": state.claims[claimed[0]].by},
            hint="wait until it is done, or stop the run, and try again",
        )
    events: Events = []
    if command.goal is not None and command.goal != state.goal:
        events.append(ev.GoalChanged(goal=command.goal, was=state.goal, reason=command.reason))
    if command.settings is not None and command.settings != state.settings:
        events.append(ev.PlanUpdated(settings=command.settings, reason=command.reason))
    if command.remove:
        events.append(ev.ArtifactRemoved(ids=tuple(dict.fromkeys(command.remove)), reason=command.reason))
    if command.add:
        events.append(ev.ArtifactAdded(artifacts=command.add, reason=command.reason))
    updated = tuple(s for s in command.update if s != state.artifacts[s.id])
    if updated:
        events.append(ev.ArtifactUpdated(artifacts=updated, reason=command.reason))
    if command.order and not isinstance(moved := _reorder(state, command), Rejection):
        events += moved
    elif command.order:
        return moved
    return events


def _twice(command: cmd.ChangePlan) -> list[str]:
    """Ids that one change would touch twice; removing and adding is one touch: it begins anew."""
    counts = Counter(spec.id for spec in (*command.add, *command.update))
    counts.update(set(command.remove) - {spec.id for spec in command.add})
    return [artifact_id for artifact_id, count in counts.items() if count > 1]


def _reorder(state: State, command: cmd.ChangePlan) -> Events | Rejection:
    gone = set(command.remove)
    now = [a for a in state.artifacts if a not in gone] + [s.id for s in command.add]
    if set(command.order) != set(now) or len(command.order) != len(now):
        return Rejection(
            kind="usage", code="plan.order", message="An order names every artifact once", hint="list all ids"
        )
    return [ev.ArtifactReordered(ids=command.order, reason=command.reason)] if list(command.order) != now else []


def _unknown(state: State, ids: Sequence[str]) -> Rejection:
    return Rejection(
        kind="usage",
        code="artifact.unknown",
        message=f"There is no artifact {ids[0]} in plan {state.plan_id}",
        facts={"unknown": ", ".join(ids[:10])},
        hint=f"headway plans show {state.plan_id} lists them",
    )


# Profile, reset, close, export.


def _bad_profile(profile: Profile | None) -> Rejection | None:
    if profile is None or profile.is_possible:
        return None
    return Rejection(
        kind="usage",
        code="profile.invalid",
        message="max_concurrent_tasks is a number from 1 to 64",
        facts={"given": profile.max_concurrent_tasks},
        hint="headway profile set --max-concurrent-tasks N",
    )


def _profile(state: State, command: cmd.SetProfile) -> Events | Rejection:
    new, old = command.profile, state.profile
    if new == old:
        return []
    if old is not None and old.locked:
        return _locked(state, new)
    bad = _bad_profile(new)
    if bad:
        return bad
    unlocked = msgspec.structs.replace(new, locked=False)
    events: Events = [ev.ProfileSet(profile=unlocked)] if unlocked != old else []
    return [*events, ev.ProfileLocked()] if new.locked else events


def _locked(state: State, asked: Profile) -> Rejection:
    return Rejection(
        code="profile.locked",
        message=f"The profile of plan {state.plan_id} is locked",
        facts={"locked": _words(state.profile or Profile()), "asked for": _words(asked)},
        hint=f"headway reset --all --plan-id {state.plan_id} withdraws all progress and unlocks it",
    )


def _words(profile: Profile) -> str:
    return ", ".join(f"{name}={value}" for name, value in msgspec.structs.asdict(profile).items())


def _reset(state: State, command: cmd.ResetPlan) -> Events | Rejection:
    if state.claims:
        held = next(iter(state.claims))
        return Rejection(
            kind="later",
            code="claim.held",
            message=f"Artifact {held} is being made now",
            facts={"by": state.claims[held].by},
            hint="stop the run first",
        )
    return [ev.PlanReset(reason=command.reason)]


def _close(state: State, command: cmd.ClosePlan) -> Events | Rejection:
    return [ev.PlanClosed(reason=command.reason)]


def _export(state: State, command: cmd.RecordExport) -> Events | Rejection:
    return [ev.PlanExported(export=command.export)]


# Work.


def _start_run(state: State, command: cmd.StartRun) -> Events | Rejection:
    dead = tuple(a for a, claim in state.claims.items() if claim.run and claim.run != command.run)
    events: Events = [ev.ArtifactReleased(ids=dead, reason="its run ended without a word")] if dead else []
    because: dict[str, list[str]] = {}
    for artifact_id, code in command.stale.items():
        because.setdefault(code, []).append(artifact_id)
    events.append(
        ev.RunStarted(
            run=command.run,
            because={code: tuple(ids) for code, ids in because.items()},
            jobs=command.jobs,
            partial=command.partial,
            boot=command.boot,
        )
    )
    return events


def _end_run(state: State, command: cmd.EndRun) -> Events | Rejection:
    if state.run is None or state.run.id != command.run or state.run.status != "running":
        return Rejection(
            kind="usage",
            code="run.none",
            message=f"Run {command.run} is not under way",
            hint="headway status",
        )
    held = tuple(a for a, claim in state.claims.items() if claim.run == command.run)
    events: Events = [ev.ArtifactReleased(ids=held, reason=command.reason or "the run ended")] if held else []
    if command.status == "completed":
        events.append(ev.RunCompleted(run=command.run, kept=command.kept, restored=command.restored))
    elif command.status == "failed":
        events.append(
            ev.RunFailed(run=command.run, failed=command.failed, kept=command.kept, restored=command.restored)
        )
    else:
        events.append(
            ev.RunPaused(
                run=command.run,
                reason=command.reason,
                code=command.code,
                until=command.until,
                kept=command.kept,
                restored=command.restored,
            )
        )
    return events


def _start(state: State, command: cmd.StartArtifacts) -> Events | Rejection:
    ids = tuple(dict.fromkeys(command.ids))
    unknown = [a for a in ids if a not in state.artifacts]
    if unknown:
        return _unknown(state, unknown)
    limit = state.profile.limit if state.profile is not None else None
    if limit is not None and len(state.claims) + len(ids) > limit:
        return Rejection(
            kind="later",
            code="profile.limit",
            message=f"The profile allows {limit} at once",
            facts={
                "in progress": ", ".join(list(state.claims)[:10]) or "none",
                "asked for": len(ids),
            },
            hint="wait until one of them is done",
        )
    for artifact_id in ids:
        if not allowed(recorded_status(state, artifact_id), ev.ArtifactStarted.type):
            return Rejection(
                kind="later",
                code="claim.held",
                message=f"Artifact {artifact_id} is being made already",
                facts={"by": state.claims[artifact_id].by, "since": state.claims[artifact_id].at},
                hint=f"headway why {artifact_id}",
            )
        waiting = [
            r for r in state.artifacts[artifact_id].requires if not is_done(state, r) and not _is_foreign(state, r)
        ]
        if waiting:
            return Rejection(
                kind="later",
                code="artifact.waiting",
                message=f"Artifact {artifact_id} requires what is not done",
                facts={"waits for": ", ".join(waiting)},
                hint=f"headway run {waiting[0]}",
            )
    starts = tuple(ev.Start(id=a, reason=command.reasons.get(a, ""), lease=command.lease) for a in ids)
    return [ev.ArtifactStarted(starts=starts, run=command.run)] if starts else []


def _is_foreign(state: State, required: str) -> bool:
    """Another plan answers for it: whoever starts looks there."""
    return required not in state.artifacts and foreign_name(required) is not None


def _fenced(state: State, artifact_id: str, token: int) -> Rejection | None:
    if artifact_id not in state.artifacts:
        return _unknown(state, [artifact_id])
    claim = state.claims.get(artifact_id)
    if claim is not None and claim.seq == token:
        return None
    return Rejection(
        code="claim.lost",
        message=f"Artifact {artifact_id} is no longer yours",
        facts={
            "your token": token,
            "its holder": f"{claim.by or '?'} (token {claim.seq})" if claim else "nobody",
            "status": recorded_status(state, artifact_id),
        },
        hint=f"headway why {artifact_id}; claim it again if it still has to be made",
    )


def _complete(state: State, command: cmd.CompleteArtifact) -> Events | Rejection:
    lost = _fenced(state, command.id, command.token)
    if lost:
        return lost
    completed = ev.ArtifactCompleted(
        id=command.id,
        token=command.token,
        outputs=command.outputs,
        fp=command.fp,
        how=command.how,
        ms=command.ms,
        verified=command.verified,
        external=command.external,
        tier=command.tier,
        note=command.note,
        wrote=command.wrote,
        stdout=command.stdout,
        stderr=command.stderr,
        attempts=command.attempts,
        integrates=state.artifacts[command.id].integrates,
    )
    return [completed, *_milestones(state, [command.id])] if state.open else [completed]


def _accept(state: State, command: cmd.AcceptOutput) -> Events | Rejection:
    if command.id not in state.artifacts:
        return _unknown(state, [command.id])
    if not allowed(recorded_status(state, command.id), ev.OutputAccepted.type):
        return Rejection(
            kind="later",
            code="claim.held",
            message=f"Artifact {command.id} is being made now",
            facts={"by": state.claims[command.id].by},
            hint="wait until it is done",
        )
    accepted = ev.OutputAccepted(**msgspec.structs.asdict(command))
    return [accepted, *_milestones(state, [command.id])]


def _fail(state: State, command: cmd.FailArtifact) -> Events | Rejection:
    lost = _fenced(state, command.id, command.token)
    return lost or [ev.ArtifactFailed(**msgspec.structs.asdict(command))]


def _step(state: State, command: cmd.RecordStep) -> Events | Rejection:
    lost = _fenced(state, command.id, command.token)
    return lost or [ev.StepRecorded(id=command.id, name=command.name, step=command.step)]


def _skip(state: State, command: cmd.SkipArtifacts) -> Events | Rejection:
    unknown = [a for a in command.ids if a not in state.artifacts]
    if unknown:
        return _unknown(state, unknown)
    if not command.reason.strip():
        return Rejection(kind="usage", code="skip.reason", message="Skipping needs a reason", hint="--reason TEXT")
    held = [a for a in command.ids if a in state.claims]
    if held:
        return Rejection(
            kind="later",
            code="claim.held",
            message=f"Artifact {held[0]} is being made now",
            facts={"by": state.claims[held[0]].by},
            hint="wait until it is done",
        )
    ids = tuple(a for a in dict.fromkeys(command.ids) if allowed(recorded_status(state, a), ev.ArtifactSkipped.type))
    return [ev.ArtifactSkipped(ids=ids, reason=command.reason), *_milestones(state, ids)] if ids else []


def _release(state: State, command: cmd.ReleaseArtifacts) -> Events | Rejection:
    ids = tuple(
        a for a in dict.fromkeys(command.ids) if a in state.claims and command.token in (0, state.claims[a].seq)
    )
    return [ev.ArtifactReleased(ids=ids, reason=command.reason)] if ids else []


def _preserve(state: State, command: cmd.PreserveEdit) -> Events | Rejection:
    if command.id not in state.artifacts:
        return _unknown(state, [command.id])
    return [ev.EditPreserved(id=command.id, outputs=command.outputs)]


def _learn(state: State, command: cmd.RecordLearning) -> Events | Rejection:
    if command.artifact and command.artifact not in state.artifacts:
        return _unknown(state, [command.artifact])
    if not command.text.strip():
        return Rejection(kind="usage", code="learning.empty", message="A learning is not empty", hint="say it in words")
    if any((known.text, known.artifact) == (command.text, command.artifact) for known in state.learnings):
        return []
    return [ev.LearningRecorded(text=command.text, artifact=command.artifact)]


def _milestones(state: State, ids: Sequence[str]) -> Events:
    """Milestones whose last open artifacts these are."""
    closing: dict[str, int] = {}
    for artifact_id in ids:
        milestone = state.artifacts[artifact_id].milestone
        if milestone and milestone not in state.milestones:
            closing[milestone] = closing.get(milestone, 0) + (not is_done(state, artifact_id))
    return [ev.MilestoneCompleted(milestone=m) for m, n in closing.items() if state.open[m] == n]


_RULES: dict[type[cmd.Command], Callable[[State, Any], Events | Rejection]] = {
    cmd.TakeProposal: _take,
    cmd.ChangePlan: _change,
    cmd.SetProfile: _profile,
    cmd.ResetPlan: _reset,
    cmd.ClosePlan: _close,
    cmd.RecordExport: _export,
    cmd.StartRun: _start_run,
    cmd.EndRun: _end_run,
    cmd.StartArtifacts: _start,
    cmd.CompleteArtifact: _complete,
    cmd.AcceptOutput: _accept,
    cmd.FailArtifact: _fail,
    cmd.RecordStep: _step,
    cmd.SkipArtifacts: _skip,
    cmd.ReleaseArtifacts: _release,
    cmd.PreserveEdit: _preserve,
    cmd.RecordLearning: _learn,
}
