"""Rules about gates: whose word counts, and what becomes of an artifact when one is given."""

from __future__ import annotations

from collections.abc import Sequence

from headway.core import commands as cmd
from headway.core import events as ev
from headway.core.decide.base import Events, Rejection, too_long, unknown
from headway.core.fingerprint import content_digest
from headway.core.gates import REJECTED, Check, open_gates, rejecting, replaced
from headway.core.ids import as_word
from headway.core.lifecycle import is_done, last_made, stage_of
from headway.core.plan import ArtifactSpec, Gate
from headway.core.state import Completion, State, Verdict


def gated_completion(state: State, command: cmd.CompleteArtifact) -> Events:
    """What an attempt made, held against the artifact's gates."""
    done = Completion(
        seq=0,
        at="",
        outputs=command.outputs,
        fp=command.fp,
        how=command.how,
        ms=command.ms,
        verified=command.verified,
        tier=command.tier,
        note=command.note,
        wrote=command.wrote,
        stdout=command.stdout,
        stderr=command.stderr,
        prompt=command.prompt,
        attempts=command.attempts,
    )
    said = _said(command.id, command.checks, done)
    return _with_milestones(state, [*said, *_led_by(state, state.artifacts[command.id], done, said, command.token)])


def gated_acceptance(state: State, command: cmd.AcceptOutput) -> Events:
    """What somebody wants to count, held against the artifact's gates."""
    done = Completion(
        seq=0,
        at="",
        outputs=command.outputs,
        fp=command.fp,
        how="accepted",
        note=command.reason,
        verified=command.verified,
    )
    said = _said(command.id, command.checks, done)
    return _with_milestones(state, [*said, *_led_by(state, state.artifacts[command.id], done, said)])


def record_checks(state: State, command: cmd.RecordChecks) -> Events | Rejection:
    """What checks said of bytes that are recorded already."""
    subject = _subject(state, command.id)
    if isinstance(subject, Rejection):
        return subject
    said = _said(command.id, command.checks, subject)
    return _with_milestones(state, [*said, *_moved_by(state, state.artifacts[command.id], subject, said)])


def record_verdict(state: State, command: cmd.RecordVerdict) -> Events | Rejection:
    """Somebody's word at a gate, if it is theirs to say and they mean what there is."""
    subject = _subject(state, command.id)
    if isinstance(subject, Rejection) and command.id not in state.artifacts:
        return subject
    gate = next((g for g in state.artifacts[command.id].gates if g.name == command.gate), None)
    refusal = _not_theirs(state, command, gate) or too_long(evidence=command.text, by=command.by)
    if refusal is not None or gate is None:
        return refusal or unknown(state, [command.id])
    if isinstance(subject, Rejection):
        return subject
    content = content_digest(subject.outputs)
    if command.content and not content.startswith(command.content):
        return Rejection(
            code="gate.outdated",
            message=f"Artifact {command.id} was made again since you looked at it",
            facts={"you looked at": command.content, "it is now": content},
            hint=f"headway gate {as_word(command.id)} shows what there is to judge",
        )
    said = ev.GateRecorded(
        id=command.id,
        gate=gate.name,
        verdict=command.verdict,
        by=command.by.strip(),
        contract=subject.fp.spec,
        content=content,
        text=command.text,
    )
    return _with_milestones(state, [said, *_moved_by(state, state.artifacts[command.id], subject, [said])])


def regate(state: State, specs: Sequence[ArtifactSpec]) -> Events:
    """What follows from other gates: they are asked about what was made already, and nothing is made again."""
    events: Events = []
    for spec in specs:
        done = state.completed.get(spec.id) if is_done(state, spec.id) else None
        subject = state.made.get(spec.id) or done
        if subject is not None and spec.gates != state.artifacts[spec.id].gates:
            events += _moved_by(state, spec, subject, [])
    return _with_milestones(state, events)


def milestones(state: State, ids: Sequence[str]) -> Events:
    """Milestones whose last open artifacts these are."""
    closing: dict[str, int] = {}
    for artifact_id in ids:
        milestone = state.artifacts[artifact_id].milestone
        if milestone and milestone not in state.milestones:
            closing[milestone] = closing.get(milestone, 0) + (not is_done(state, artifact_id))
    return [ev.MilestoneCompleted(milestone=m) for m, n in closing.items() if state.open.get(m, 0) == n]


def between_milestones(state: State, came: Sequence[ev.ArtifactCompleted]) -> Events:
    """What ended together, each milestone right behind the artifact that is its last."""
    events: Events = []
    open_ = dict(state.open)
    for event in came:
        events.append(event)
        milestone = state.artifacts[event.id].milestone
        if milestone and milestone not in state.milestones and not is_done(state, event.id):
            open_[milestone] -= 1
            if not open_[milestone]:
                events.append(ev.MilestoneCompleted(milestone=milestone))
    return events


def _with_milestones(state: State, events: Events) -> Events:
    return [*events, *milestones(state, [e.id for e in events if isinstance(e, ev.ArtifactCompleted)])]


def _subject(state: State, artifact_id: str) -> Completion | Rejection:
    """The bytes that a word at a gate is about."""
    if artifact_id not in state.artifacts:
        return unknown(state, [artifact_id])
    made = last_made(state, artifact_id)
    if made is not None and artifact_id not in state.claims:
        return made
    return Rejection(
        kind="later",
        code="gate.early",
        message=f"There is nothing of {artifact_id} to judge yet",
        facts={"it is": stage_of(state, artifact_id).replace("_", " ")},
        hint=f"headway run {as_word(artifact_id)}, or headway claim {as_word(artifact_id)}, makes it first",
    )


def _not_theirs(state: State, command: cmd.RecordVerdict, gate: Gate | None) -> Rejection | None:
    gates = state.artifacts[command.id].gates
    if gate is None:
        return Rejection(
            kind="usage",
            code="gate.unknown",
            message=f"Artifact {command.id} has no gate {command.gate}",
            facts={"its gates": ", ".join(g.name for g in gates) or "none"},
            hint=f"headway gate {as_word(command.id)} lists them",
        )
    if not command.by.strip():
        return Rejection(
            kind="usage", code="gate.nobody", message="A verdict is somebody's: say whose", hint="--by NAME"
        )
    if gate.kind == "check":
        return Rejection(
            kind="usage",
            code="gate.check",
            message=f"Gate {gate.name} of {command.id} is a command; nobody's word passes it",
            facts={"command": gate.run},
            hint=f"headway gate {as_word(command.id)} {gate.name} --run",
        )
    if gate.by and command.by.strip() not in gate.by:
        return Rejection(
            code="gate.stranger",
            message=f"{command.by} has no say at gate {gate.name} of {command.id}",
            facts={"who has": ", ".join(gate.by)},
            hint=f"headway gate {as_word(command.id)} {gate.name} {command.verdict.lower()} --by {gate.by[0]}",
        )
    return None


def _said(artifact_id: str, checks: Sequence[Check], made: Completion) -> list[ev.GateRecorded]:
    content = content_digest(made.outputs)
    return [
        ev.GateRecorded(
            id=artifact_id,
            gate=check.gate,
            verdict=check.verdict,
            contract=made.fp.spec,
            content=content,
            asked=check.asked,
            text=check.text,
        )
        for check in checks
    ]


def _evidence(state: State, artifact_id: str, said: Sequence[ev.GateRecorded]) -> list[Verdict]:
    """What was said before, and now."""
    found = list(state.evidence.get(artifact_id, ()))
    for word in said:
        verdict = Verdict(
            gate=word.gate,
            verdict=word.verdict,
            by=word.by,
            seq=0,
            at="",
            contract=word.contract,
            content=word.content,
            asked=word.asked,
            text=word.text,
        )
        found = [*(v for v in found if not replaced(v, verdict)), verdict]
    return found


def _led_by(
    state: State, spec: ArtifactSpec, done: Completion, said: Sequence[ev.GateRecorded], token: int = 0
) -> Events:
    """Where these bytes get with what was said: complete, waiting, or turned down."""
    evidence = _evidence(state, spec.id, said)
    if not open_gates(spec, evidence, done):
        return [_event(ev.ArtifactCompleted, spec, done, token)]
    made: Events = [_event(ev.ArtifactMade, spec, done, token)]
    against = rejecting(spec, evidence, done)
    if against:
        error = "; ".join(f"gate {v.gate}: REJECT{f' by {v.by}' if v.by else ''}{_why(v.text)}" for v in against)
        made.append(ev.ArtifactFailed(id=spec.id, error=error, code=REJECTED, token=token, left=done.outputs))
    return made


def _moved_by(state: State, spec: ArtifactSpec, done: Completion, said: Sequence[ev.GateRecorded]) -> Events:
    """The same for bytes that are recorded already: nothing where they stay where they are.

    Only a rejection takes back what is complete; a worry, or a word withdrawn, is recorded and no more.
    """
    led = _led_by(state, spec, done, said)
    waits = spec.id in state.made
    turned_down = waits and spec.id in state.failed and state.failed[spec.id].code == REJECTED
    end = led[-1]
    if isinstance(end, ev.ArtifactFailed):
        return led[1:] if waits else led
    if isinstance(end, ev.ArtifactMade):
        return led if turned_down or not (waits or said) else []
    return [] if is_done(state, spec.id) else led


def _event(kind: type[ev.Event], spec: ArtifactSpec, done: Completion, token: int) -> ev.Event:
    return kind(
        id=spec.id,
        token=token,
        outputs=done.outputs,
        fp=done.fp,
        how=done.how,
        ms=done.ms,
        verified=done.verified,
        external=bool(spec.effects),
        tier=done.tier,
        note=done.note,
        wrote=done.wrote,
        stdout=done.stdout,
        stderr=done.stderr,
        attempts=done.attempts,
        integrates=spec.integrates,
        by=done.by,
        prompt=done.prompt,
    )


def _why(text: str) -> str:
    line = " ".join(text.split())
    return f" ({line[:200]})" if line else ""
