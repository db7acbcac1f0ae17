"""Rules about a plan's structure: how it begins, what may change in it, and how one version follows another."""

from __future__ import annotations

from collections import Counter
from typing import Any

import msgspec

from headway.core import commands as cmd
from headway.core import events as ev
from headway.core.codec import encode_state
from headway.core.decide.base import LONGEST, Events, Rejection, held, overlong, too_long, unknown
from headway.core.decide.gating import regate
from headway.core.decide.standing import bad_profile, locked, set_profile
from headway.core.graph import ArtifactGraph
from headway.core.ids import as_word
from headway.core.lifecycle import is_done, recorded_status
from headway.core.plan import ArtifactSpec, PlanSpec, Profile, Replanning
from headway.core.state import State


def create(state: State | None, command: cmd.CreatePlan) -> Events | Rejection:
    """Begin a plan."""
    if state is not None:
        return Rejection(
            code="plan.exists",
            message=f"Plan {command.plan_id} exists already",
            hint=f"headway plans show {command.plan_id}",
        )
    bad = bad_profile(command.plan.profile) or overlong(command.plan.artifacts) or too_long(goal=command.plan.goal)
    if bad:
        return bad
    plan = command.plan
    if len({spec.id for spec in plan.artifacts}) < len(plan.artifacts):
        unique: dict[str, ArtifactSpec] = {}
        for spec in plan.artifacts:
            unique.setdefault(spec.id, spec)
        plan = msgspec.structs.replace(plan, artifacts=tuple(unique.values()))
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


def import_plan(state: State | None, command: cmd.ImportPlan) -> Events | Rejection:
    """Make a checkpoint the plan's state."""
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
        return locked(state, command.state.profile or Profile())
    return [
        ev.PlanImported(
            format=ev.FORMAT,
            plan_id=command.plan_id,
            project_id=command.project_id,
            source=command.source,
            origin=command.origin,
            at=command.at,
            reason=command.reason,
            version=max(command.state.version, state.version + 1) if state is not None else 0,
            state=msgspec.Raw(encode_state(command.state)),
        )
    ]


def take(state: State, command: cmd.TakeProposal) -> Events | Rejection:
    """Take in what changed in a plan file."""
    from headway.core.merge import merge  # for what a file changes of a plan that is there

    merged = merge(command.base, command.plan, state, take=command.take)
    if merged.conflicts:
        return Rejection(
            code="plan.conflict",
            message="Plan file and ledger changed the same thing",
            facts={"changed on both sides": ", ".join(merged.conflicts)},
            hint="headway run --take file lets the file win, headway run --take ledger what the ledger has",
        )
    left_out = [a for a in merged.change.remove if command.drop is not None and a not in command.drop]
    finished = [a for a in left_out if _is_finished(state, a)]
    if finished:
        return Rejection(
            code="plan.drops",
            message=f"The plan leaves out {finished[0]}, which is complete",
            facts={"complete, and left out": ", ".join(finished[:10])},
            hint="a plan is saved as a whole: replan changes parts of it; or give drop: "
            f"{msgspec.json.encode(finished).decode()}",
        )
    events = change(state, merged.change)
    if isinstance(events, Rejection):
        return events
    if merged.profile is not None and merged.profile != state.profile:
        profile = set_profile(state, cmd.SetProfile(profile=merged.profile))
        if isinstance(profile, Rejection):
            return profile
        events += profile
    if command.proposal != state.proposal:
        events.append(ev.ProposalTaken(proposal=command.proposal))
    return events


def change(state: State, command: cmd.ChangePlan) -> Events | Rejection:
    """Change the structure, if nothing forbids it."""
    refusal = _refuse_words(state, command) or _refuse_touching(state, command)
    if refusal is None and command.strict:
        refusal = _refuse_expanded(state, command) or _new_problem(state, command)
    if refusal is not None:
        return refusal
    said: dict[str, Any] = {"reason": command.reason, "version": state.version + 1}
    events: Events = []
    if command.goal is not None and command.goal != state.goal:
        events.append(ev.GoalChanged(goal=command.goal, was=state.goal, **said))
    if command.settings is not None and command.settings != state.settings:
        events.append(ev.PlanUpdated(settings=command.settings, **said))
    if command.remove:
        events.append(ev.ArtifactRemoved(ids=tuple(dict.fromkeys(command.remove)), **said))
    if command.add:
        events.append(ev.ArtifactAdded(artifacts=command.add, after=command.after, **said))
    updated = tuple(s for s in command.update if s != state.artifacts[s.id])
    if updated:
        events.append(ev.ArtifactUpdated(artifacts=updated, **said))
    if command.move:
        events.append(ev.ArtifactReordered(ids=tuple(dict.fromkeys(command.move)), after=command.after, **said))
    if command.order:
        moved = _reorder(state, command)
        if isinstance(moved, Rejection):
            return moved
        events += moved
    return [*events, *regate(state, updated)]


def _refuse_words(state: State, command: cmd.ChangePlan) -> Rejection | None:
    """What cannot be meant: unknown names, names twice, texts without end."""
    named = (*command.remove, *(s.id for s in command.update), *command.move)
    strangers = [a for a in (*named, *([command.after] if command.after else [])) if a not in state.artifacts]
    if strangers:
        return unknown(state, strangers)
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
    if command.after in gone or command.after in command.move:
        return Rejection(
            kind="usage",
            code="plan.order",
            message=f"Nothing can stand behind {command.after}, which is itself moved or removed",
            hint="name another artifact after --after",
        )
    return too_long(reason=command.reason, goal=command.goal or "") or overlong((*command.add, *command.update))


def _refuse_touching(state: State, command: cmd.ChangePlan) -> Rejection | None:
    """What somebody makes now is not changed under their hands, and unfinished work goes only if that was said."""
    claimed = [a for a in (*command.remove, *(s.id for s in command.update)) if a in state.claims]
    if claimed:
        return held(state, claimed[0], "wait until it is done, or stop the run, and try again")
    open_ = [] if command.unfinished else [a for a in command.remove if not is_done(state, a)]
    if open_:
        return Rejection(
            code="plan.unfinished",
            message=f"Artifact {open_[0]} is not done yet",
            facts={"not done": ", ".join(open_[:10])},
            hint=f"headway plans edit remove {' '.join(open_[:3])} --unfinished --reason … says that it is given up",
        )
    return None


def _refuse_expanded(state: State, command: cmd.ChangePlan) -> Rejection | None:
    """What comes of a pipeline is changed there: the next expansion would undo it, and say nothing."""
    named = (*command.remove, *(spec.id for spec in command.update))
    found = next((state.artifacts[a] for a in named if state.artifacts[a].pipeline), None)
    if found is None:
        return None
    return Rejection(
        kind="usage",
        code="plan.expanded",
        message=f"Artifact {found.id} comes of pipeline {found.pipeline}, and is changed there",
        hint=f"edit pipeline {found.pipeline} in the plan file; "
        f"headway skip {as_word(found.id)} --reason … leaves it out",
    )


def _new_problem(state: State, command: cmd.ChangePlan) -> Rejection | None:
    """The first problem that the plan would have and has not: a cycle, a requirement of itself, a second producer."""
    from headway.core.check import check_plan  # only a change by hand or by a planner is looked at this closely

    specs = {a: spec for a, spec in state.artifacts.items() if a not in set(command.remove)}
    specs.update({spec.id: spec for spec in (*command.update, *command.add)})
    now = PlanSpec(
        goal=state.goal if command.goal is None else command.goal,
        id=state.plan_id,
        settings=command.settings or state.settings,
        profile=state.profile,
        artifacts=tuple(specs.values()),
    )
    before = msgspec.structs.replace(
        now, goal=state.goal, settings=state.settings, artifacts=tuple(state.artifacts.values())
    )
    known = None
    for problem in check_plan(now):
        known = {(p.code, p.artifact, p.key, p.value) for p in check_plan(before)} if known is None else known
        if (problem.code, problem.artifact, problem.key, problem.value) not in known:
            return Rejection(
                kind="usage",
                code=problem.code,
                message=f"The plan would not hold: {problem.message}",
                hint=problem.hint or f"headway plans show {state.plan_id}",
            )
    return None


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
    return (
        [ev.ArtifactReordered(ids=command.order, reason=command.reason, version=state.version + 1)]
        if list(command.order) != now
        else []
    )


# One version after another.


def begin_replan(state: State, command: cmd.BeginReplan) -> Events | Rejection:
    """Ask a planner, if it may be asked once more."""
    return _spent(state) or [ev.ReplanBegan(failed=command.failed, reason=command.reason)]


def end_replan(state: State, command: cmd.EndReplan) -> Events | Rejection:
    """The planner had nothing to offer."""
    return [ev.ReplanFailed(reason=command.reason[:LONGEST])] if state.status == "replanning" else []


def replan(state: State, command: cmd.Replan) -> Events | Rejection:
    """Make a patch the next version: bounded, without problems, and silent about nothing."""
    if not command.reason.strip():
        return Rejection(kind="usage", code="replan.reason", message="Replanning needs a reason", hint="--reason TEXT")
    if command.parent != state.version:
        return Rejection(
            code="replan.outdated",
            message=f"Plan {state.plan_id} has changed since this was drawn up",
            facts={"drawn up for version": command.parent, "it is now": state.version},
            hint=f"headway plans show {state.plan_id}, then draw it up again",
        )
    refusal = _spent(state) or _silent_loss(state, command)
    if refusal is not None:
        return refusal
    patch = msgspec.structs.replace(command.change, strict=True, unfinished=True, reason=command.reason)
    events = change(state, patch)
    if isinstance(events, Rejection):
        return events
    if not events:
        return Rejection(
            kind="usage",
            code="replan.same",
            message="The new plan is the old one",
            hint="change what failed, or what it requires; headway run tries again as it is",
        )
    version = ev.PlanReplanned(
        version=state.version + 1,
        parent=state.version,
        reason=command.reason,
        failed=tuple(state.failed),
        added=tuple(spec.id for spec in patch.add),
        updated=tuple(spec.id for spec in patch.update if spec != state.artifacts[spec.id]),
        removed=patch.remove,
    )
    return [*events, version]


def _spent(state: State) -> Rejection | None:
    most = (state.settings.replan or Replanning()).most
    if state.replanned < most:
        return None
    return Rejection(
        code="replan.spent",
        message=f"Plan {state.plan_id} was replanned {state.replanned} times and is not done",
        facts={"at most": most, "failed": ", ".join(list(state.failed)[:10]) or "nothing"},
        hint="headway plans edit changes it by hand; replan: {most: N} in the plan file allows more",
    )


def _is_finished(state: State, artifact_id: str) -> bool:
    return artifact_id in state.made or recorded_status(state, artifact_id) == "complete"


def _silent_loss(state: State, command: cmd.Replan) -> Rejection | None:
    """Completed work that the patch would undo without a word."""
    patch, said = command.change, set(command.drop)
    changed = {s.id for s in patch.update if s.id in state.artifacts and s != state.artifacts[s.id]}
    touched = [a for a in state.artifacts if a in changed or a in patch.remove]
    finished = [a for a in touched if _is_finished(state, a)]
    if not finished:
        return None
    graph = ArtifactGraph.over(state.artifacts)
    affected = set(graph.above([*state.failed, *(a for a in touched if a not in finished)]))
    lost = [a for a in finished if a not in said and (a not in affected or a in patch.remove)]
    if not lost:
        return None
    return Rejection(
        code="replan.drops",
        message=f"The new plan would drop {lost[0]}, which is complete",
        facts={"complete, and removed or changed": ", ".join(lost[:10])},
        hint=f"keep {'it' if len(lost) == 1 else 'them'} as it was, or say so: --drop {' '.join(lost[:5])}",
    )
