"""Rules about work: runs, claims, what comes of an attempt, and the gates that it has to pass."""

from __future__ import annotations

import msgspec

from headway.core import commands as cmd
from headway.core import events as ev
from headway.core.approval import awaits_approval, in_force
from headway.core.decide.base import Events, Rejection, held, too_long, unknown
from headway.core.decide.gating import between_milestones, gated_acceptance, gated_completion, milestones
from headway.core.ids import as_word, name_elsewhere
from headway.core.lifecycle import (
    allowed,
    last_made,
    not_allowed,
    not_done,
    recorded_status,
    stage_of,
)
from headway.core.state import Proposal, State


def start_run(state: State, command: cmd.StartRun) -> Events | Rejection:
    """Begin a run, and give back what nobody holds any more."""
    dead = tuple(a for a, claim in state.claims.items() if claim.run and claim.run != command.run)
    events: Events = [ev.ArtifactReleased(ids=dead, reason="its run ended without a word")] if dead else []
    events += _expired(state, command.now)
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
            lasting="forced" in because,
            templates=command.templates,
            sure=True,
        )
    )
    return events


def end_run(state: State, command: cmd.EndRun) -> Events | Rejection:
    """End the run that is under way."""
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
        whole = not state.run.partial
        events.append(ev.RunCompleted(run=command.run, kept=command.kept, restored=command.restored, whole=whole))
    elif command.status == "failed":
        events.append(
            ev.RunFailed(
                run=command.run,
                failed=command.failed,
                kept=command.kept,
                restored=command.restored,
                code=command.code if command.artifact else "",
                until=command.until,
                artifact=command.artifact,
            )
        )
    else:
        events.append(
            ev.RunPaused(
                run=command.run,
                reason=command.reason,
                code=command.code,
                until=command.until,
                artifact=command.artifact,
                kept=command.kept,
                restored=command.restored,
            )
        )
    return events


def _draft(state: State, proposal: Proposal) -> Rejection:
    """What its file said and could not be kept may have been a gate: nothing is made past it."""
    return Rejection(
        code="plan.draft",
        message=f"Plan {state.plan_id} is a draft: {proposal.path} has problems",
        facts={"problems": "; ".join(proposal.problems[:3])},
        hint=f"correct {proposal.path}, then: headway plans new {proposal.path}",
    )


def start(state: State, command: cmd.StartArtifacts) -> Events | Rejection:
    """Claim artifacts whose time has come."""
    ids, artifacts = tuple(dict.fromkeys(command.ids)), state.artifacts
    if not artifacts.keys() >= set(ids):
        return unknown(state, [a for a in ids if a not in artifacts])
    if not command.run and state.proposal is not None and state.proposal.problems:
        return _draft(state, state.proposal)
    gathering = [a for a in ids if artifacts[a].gathers] if not command.run else []
    if gathering:
        return _nobodys(gathering[0])
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
    guarded = in_force(state)
    required = set[str]().union(*[artifacts[a].requires for a in ids])
    undone = {r for r in not_done(state, required) if not _is_elsewhere(state, r)}
    barred = not_allowed(state, ids, ev.ArtifactStarted.type)
    for artifact_id in ids if barred or command.seen or guarded or undone else ():
        if artifact_id in barred:
            claim = state.claims[artifact_id]
            return Rejection(
                kind="later",
                code="claim.held",
                message=f"Artifact {artifact_id} is being made already",
                facts={"by": claim.by, "since": claim.at, **({"until": claim.lease} if claim.lease else {})},
                hint=f"headway why {as_word(artifact_id)}",
            )
        if command.seen and _newest(state, artifact_id) != command.seen.get(artifact_id):
            return Rejection(
                kind="later",
                code="artifact.moved",
                message=f"Artifact {artifact_id} was made since you looked",
                facts={"by event": _newest(state, artifact_id)},
                hint=f"headway why {as_word(artifact_id)}",
            )
        if guarded and awaits_approval(state, artifact_id):
            return awaits(state, artifact_id)
        if undone and (waiting := [r for r in artifacts[artifact_id].requires if r in undone]):
            return Rejection(
                kind="later",
                code="artifact.waiting",
                message=f"Artifact {artifact_id} requires what is not done",
                facts={"waits for": ", ".join(waiting)},
                hint=f"headway run {as_word(waiting[0])}",
            )
    reasons, lease, holder = command.reasons, command.lease, command.holder
    starts = tuple([ev.Start(a, reasons.get(a, ""), lease, holder) for a in ids])
    return [ev.ArtifactStarted(starts=starts, run=command.run)] if starts else []


def _nobodys(artifact_id: str) -> Rejection:
    return Rejection(
        kind="usage",
        code="artifact.gathers",
        message=f"{artifact_id} follows from what it gathers: nobody makes it",
        hint=f"headway why {as_word(artifact_id)}",
    )


def _is_elsewhere(state: State, required: str) -> bool:
    """Another plan answers for it: whoever starts looks there."""
    return required not in state.artifacts and name_elsewhere(required) is not None


def _newest(state: State, artifact_id: str) -> int:
    done = last_made(state, artifact_id)
    return done.seq if done is not None else 0


def awaits(state: State, artifact_id: str) -> Rejection:
    """Nobody has approved it as it is."""
    refused = state.refused
    return Rejection(
        kind="later",
        code="approval.awaited",
        message=f"Artifact {artifact_id} waits for the plan's approval",
        facts={"rejected": f"{refused.reason} ({refused.by})"} if refused is not None else {},
        hint=f"headway plans show {state.plan_id} --approved, then headway approve --plan-id {state.plan_id}",
    )


def _fenced(state: State, artifact_id: str, token: int) -> Rejection | None:
    if artifact_id not in state.artifacts:
        return unknown(state, [artifact_id])
    claim = state.claims.get(artifact_id)
    if claim is not None and claim.seq == token:
        return None
    ended = state.uncertain.get(artifact_id) == token
    return Rejection(
        code="claim.lost",
        message=f"Artifact {artifact_id} is no longer yours",
        facts={
            "your token": token,
            **({"your claim": "its lease ran out, or it was given back"} if ended else {}),
            "its holder": f"{claim.by or '?'} (token {claim.seq})" if claim else "nobody",
            "status": recorded_status(state, artifact_id),
        },
        hint=f"headway why {as_word(artifact_id)}; claim it again if it still has to be made",
    )


def complete(state: State, command: cmd.CompleteArtifact) -> Events | Rejection:
    """Record what an attempt made; with gates, it is complete only when it has passed them."""
    lost = _fenced(state, command.id, command.token) or (too_long(note=command.note) if command.note else None)
    if lost:
        return lost
    if state.artifacts[command.id].gates:
        return gated_completion(state, command)
    completed = ev.ArtifactCompleted(  # most events are this one: so many fields by name take several times as long
        command.id,
        command.token,
        command.outputs,
        command.fp,
        command.how,
        command.ms,
        command.verified,
        command.external,
        command.tier,
        command.note,
        command.wrote,
        command.stdout,
        command.stderr,
        command.attempts,
        state.artifacts[command.id].integrates,
        prompt=command.prompt,
    )
    return [completed, *milestones(state, [command.id])] if state.open else [completed]


def complete_all(state: State, command: cmd.CompleteArtifacts) -> Events | Rejection:
    """Record what attempts made that ended together: all of it, or nothing if one of them is nobody's any more."""
    artifacts, claims, ids = state.artifacts, state.claims, [came.id for came in command.came]
    for came in command.came:
        claim = claims.get(came.id)
        if claim is None or claim.seq != came.token or came.id not in artifacts:
            return _fenced(state, came.id, came.token) or unknown(state, [came.id])
        spec = artifacts[came.id]
        if spec.gates or came.note or spec.integrates != came.integrates:
            return _by_itself(came.id, "more is to be said of it than that it was made")
    if len(set(ids)) < len(ids):
        return _by_itself(next(a for a in ids if ids.count(a) > 1), "it is named twice")
    return between_milestones(state, command.came) if state.open else [*command.came]


def _by_itself(artifact_id: str, why: str) -> Rejection:
    return Rejection(
        kind="usage",
        code="artifact.alone",
        message=f"Artifact {artifact_id} is completed by itself: {why}",
        hint=f"headway why {as_word(artifact_id)}",
    )


def accept(state: State, command: cmd.AcceptOutput) -> Events | Rejection:
    """What is on disk counts, once it has passed its gates."""
    if command.id not in state.artifacts:
        return unknown(state, [command.id])
    if not allowed(stage_of(state, command.id), ev.OutputAccepted.type):
        return held(state, command.id, "wait until it is done")
    if refusal := too_long(reason=command.reason):
        return refusal
    if state.artifacts[command.id].gates:
        return gated_acceptance(state, command)
    accepted = ev.OutputAccepted(
        id=command.id, outputs=command.outputs, fp=command.fp, reason=command.reason, verified=command.verified
    )
    return [accepted, *milestones(state, [command.id])]


def fail(state: State, command: cmd.FailArtifact) -> Events | Rejection:
    """Record that an attempt failed."""
    lost = _fenced(state, command.id, command.token) or too_long(error=command.error)
    return lost or [ev.ArtifactFailed(**msgspec.structs.asdict(command))]


def step(state: State, command: cmd.RecordStep) -> Events | Rejection:
    """Record a finished part of an attempt."""
    lost = _fenced(state, command.id, command.token)
    return lost or [ev.StepRecorded(id=command.id, name=command.name, step=command.step, origin=command.origin)]


def skip(state: State, command: cmd.SkipArtifacts) -> Events | Rejection:
    """Decide that artifacts are not made."""
    strangers = [a for a in command.ids if a not in state.artifacts]
    if strangers:
        return unknown(state, strangers)
    if not command.reason.strip():
        return Rejection(kind="usage", code="skip.reason", message="Skipping needs a reason", hint="--reason TEXT")
    units = [a for a in command.ids if state.artifacts[a].gathers == "units"]
    if units:
        return _nobodys(units[0])
    claimed = [a for a in command.ids if a in state.claims]
    if claimed:
        return held(state, claimed[0], "wait until it is done")
    if refusal := too_long(reason=command.reason):
        return refusal
    ids = tuple(a for a in dict.fromkeys(command.ids) if allowed(stage_of(state, a), ev.ArtifactSkipped.type))
    return [ev.ArtifactSkipped(ids=ids, reason=command.reason), *milestones(state, ids)] if ids else []


def release(state: State, command: cmd.ReleaseArtifacts) -> Events | Rejection:
    """Give claims up."""
    refusal = too_long(reason=command.reason)
    if refusal is not None:
        return refusal
    ids = tuple(
        a for a in dict.fromkeys(command.ids) if a in state.claims and command.token in (0, state.claims[a].seq)
    )
    return [ev.ArtifactReleased(ids=ids, reason=command.reason, begun=command.begun)] if ids else []


def preserve(state: State, command: cmd.PreserveEdit) -> Events | Rejection:
    """Record that somebody's bytes were kept."""
    if command.id not in state.artifacts:
        return unknown(state, [command.id])
    return [ev.EditPreserved(id=command.id, outputs=command.outputs)]


# Leases.


def extend(state: State, command: cmd.ExtendLease) -> Events | Rejection:
    """Whoever holds the claim is still at it: nobody may sweep it before then."""
    lost = _fenced(state, command.id, command.token) or too_long(note=command.note)
    return lost or [ev.LeaseExtended(**msgspec.structs.asdict(command))]


def leave(state: State, command: cmd.LeaveClaims) -> Events | Rejection:
    """The connection of their holder is gone; what it no longer held is left alone."""
    held = {a: t for a, t in command.tokens.items() if a in state.claims and state.claims[a].seq == t}
    return [ev.HolderLeft(tokens=held, lease=command.lease)] if held else []


def sweep(state: State, command: cmd.SweepClaims) -> Events | Rejection:
    """Give back what its holders have not been heard of for too long."""
    return _expired(state, command.now)


def _expired(state: State, now: str) -> Events:
    ids = tuple(a for a, claim in state.claims.items() if claim.lease and claim.lease < now)
    return [ev.ArtifactReleased(ids=ids, reason="its lease ran out")] if ids else []
