"""Where a plan stands, and why: the documents of `status` and `why`. Reads; decides nothing."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

from headway.core.approval import is_open
from headway.core.freshness import EDITS, RESTORABLE, ROOTLESS, Reason, root_causes
from headway.core.gates import Missing, missing
from headway.core.ids import as_word
from headway.core.lifecycle import progress, statuses
from headway.core.plan import ArtifactSpec, Pipeline
from headway.core.state import Claim, Run, State
from headway.engine import prompts
from headway.engine.effects import effect_question
from headway.engine.functions import function_of, is_live
from headway.engine.judged import Judged
from headway.engine.result import Decision, Options
from headway.engine.selecting import answers_to_state, only_before, selected_by
from headway.errors import NotFound
from headway.ledger.recovery import now
from headway.projections.saved_execution import content_hash

RUN = "headway run"

Gone = Callable[[Claim], str]
"""Why the holder of a claim is certainly gone; "" where that cannot be told."""


def nobody_gone(claim: Claim) -> str:
    """Of an earlier time nobody can tell which holders were gone."""
    return ""


def status_document(judged: Judged, gone: Gone = nobody_gone) -> dict[str, Any]:
    """`status --json`."""
    state = judged.execution.state
    done, total = progress(state)
    status = _statuses(state)
    waits = bool(state.made) or is_open(state)
    blockers = _blockers(judged) if state.failed else {}
    status |= {a: "blocked" for a in blockers if status[a] == "pending"}  # by way of a state, or of their order
    decide = prompts.decision(judged.judge, judged.selected, Options())
    leads_on = _next(judged, blockers, decide)
    if decide is None and leads_on not in ("", RUN):
        decide = _about_state(judged)
    return {
        "plan_id": state.plan_id,
        "goal": state.goal,
        "status": state.status,
        "version": state.version,
        "seq": judged.execution.position.seq,
        "artifacts": {
            a: {
                "status": status[a],
                "freshness": "fresh" if judged.reasons[a].fresh else "stale",
                "reason": _reason(judged, a, gone),
                "content_hash": content_hash(state.completed[a]) if a in state.completed else None,
                "produces": list(spec.produces),
                "requires": list(spec.requires),
                **_of_pipeline(spec),
                "error": state.failed[a].error if a in state.failed else None,
                "missing": [lack.to_dict() for lack in lacking(judged, a)] if waits else [],
                "skipped": state.skipped[a].reason if status[a] == "skipped" else None,
                "blocked_by": blockers.get(a),
                "claim": _claim(state.claims[a], gone) if a in state.claims else None,
            }
            for a, spec in state.artifacts.items()
        },
        "progress": {"done": done, "total": total},
        "run": _run(state.run) if state.run is not None else None,
        "next": leads_on,
        "decide": decide._asdict() if decide else None,
        "paused": _paused(state),
        "pipelines": {p.name: _pipeline(judged, p, status) for p in state.settings.pipelines},
        "left": sorted(state.left),
        "code_unknown": judged.out_of_sight,
    }


def _run(run: Run) -> dict[str, Any]:
    return {"id": run.id, "status": run.status, "at": run.at, "reason": run.reason}


def _paused(state: State) -> dict[str, Any] | None:
    """Why and where the last run stopped, and when it is worth trying again."""
    run = state.run
    if run is None or not run.artifact:
        return None
    spec = state.artifacts.get(run.artifact)
    return {
        "code": run.code,
        "until": run.until or None,
        "artifact": run.artifact or None,
        "unit": spec.unit or None if spec is not None else None,
        "phase": spec.phase or None if spec is not None else None,
        "resume": RUN,
    }


def _statuses(state: State) -> dict[str, str]:
    """How each artifact stands; what stands for the last round of a loop is at work while that round is."""
    found: dict[str, str] = {**statuses(state)}
    for artifact_id, spec in state.artifacts.items():
        if spec.gathers == "last" and "in_progress" in map(found.get, spec.requires):
            found[artifact_id] = "in_progress"
    return found


def _pipeline(judged: Judged, pipeline: Pipeline, status: Mapping[str, str]) -> dict[str, Any]:
    """A pipeline as units × phases; of a loop, what stands for its last round."""
    state = judged.execution.state
    known = state.units.get(pipeline.name)
    phases = [phase.id for phase in pipeline.phases]
    return {
        "phases": phases,
        "order": pipeline.order,
        "files": pipeline.units.files or None,
        "units": {
            unit: {
                phase: {
                    "status": status[f"{unit}/{phase}"],
                    "freshness": "fresh" if _is_fresh(judged, f"{unit}/{phase}") else "stale",
                }
                for phase in phases
                if f"{unit}/{phase}" in status
            }
            for unit in (known.units if known is not None else ())
        },
    }


def _is_fresh(judged: Judged, artifact_id: str) -> bool:
    """Whether it is, with the round that it stands for: one that only has to be put back makes nothing else stale."""
    spec = judged.execution.state.artifacts[artifact_id]
    stands_for = spec.requires if spec.gathers == "last" else ()
    return all(judged.reasons[a].fresh for a in (artifact_id, *stands_for))


def _of_pipeline(spec: ArtifactSpec) -> dict[str, Any]:
    if not spec.pipeline:
        return {}
    found = {"pipeline": spec.pipeline, "unit": spec.unit or None, "phase": spec.phase or None}
    return {**found, "gathers": spec.gathers} if spec.gathers else {**found, "iteration": max(spec.iteration, 1)}


def _blockers(judged: Judged) -> dict[str, str]:
    """What is not up to date because of a failure before it, and which: in one pass."""
    failed, found = judged.execution.state.failed, dict[str, str]()
    for a in judged.judge.shared.order():
        by = next((r if r in failed else found[r] for r in _needs(judged, a) if r in failed or r in found), "")
        if by and a not in failed and not judged.reasons[a].fresh:
            found[a] = by
    return found


def _needs(judged: Judged, artifact_id: str) -> tuple[str, ...]:
    """What has to be there before it is made: what it requires, earlier stages of its files, whoever comes first."""
    spec = judged.judge.graph[artifact_id]
    return (*spec.requires, *judged.judge.shared.after(artifact_id), *spec.after)


def _next(judged: Judged, blockers: Mapping[str, str], decide: Decision | None) -> str:
    """The command that leads on: `headway run` while there is anything that a run can make, else what it would name,
    with the first way to decide where it would ask. "" if everything is up to date."""
    state, graph = judged.execution.state, judged.judge.graph
    stale = [a for a in judged.judge.shared.order() if not judged.reasons[a].fresh]
    if not stale:
        return ""
    if state.closed:
        return f"headway reset --all --plan-id {state.plan_id}"
    if decide is not None:
        return f"headway run {decide.flags[0]}"
    if state.run is not None and state.run.status == "paused" and state.run.artifact:
        return RUN  # out of quota, say: the same command goes on
    helps: dict[str, str] = {}
    follows: set[str] = set()
    for a in stale:
        needs = _needs(judged, a)
        behind = next((r for r in needs if r in helps), None)
        if behind is not None:
            helps[a] = helps[behind]
            continue
        if graph[a].gathers and a not in state.failed:  # it follows from what it gathers; nobody makes it
            follows.add(a)
            continue
        behind = next(
            (r for r in needs if r in follows and (r in graph[a].requires or graph[r].gathers != "units")), None
        )
        command = _helps(judged, a, blockers) if behind is None else ""
        if not command:
            return RUN
        helps[a] = command
    last = {"why": 1, "claim": 2}  # a word that is waited for comes first, as in a run's receipt
    held = {_why(a) for a in state.claims if a not in state.failed}  # who has it is all that there is to say

    def rank(command: str) -> int:
        return 3 if command in held else last.get(command.split()[1], 0)

    return min(helps.values(), key=rank, default=RUN)


def _about_state(judged: Judged) -> Decision | None:
    """What was made from another state than there is, and waits for nothing else: what decides about it."""
    held: list[str] = []
    behind: set[str] = set()
    for a in judged.judge.shared.order():
        waits = not behind.isdisjoint(_needs(judged, a))
        asked = judged.reasons[a].code == "pre_state_changed"
        if waits or asked:
            behind.add(a)
        held += [a] if asked and not waits else []
    return _ways_from_state(held[0]) if held else None


def _ways_from_state(artifact_id: str) -> Decision:
    return Decision("pre_state_changed", [artifact_id], answers_to_state(artifact_id))


def _helps(judged: Judged, artifact_id: str, blockers: Mapping[str, str]) -> str:
    """What has to be typed before a run can make it; "" if a run can."""
    state, spec = judged.execution.state, judged.execution.state.artifacts[artifact_id]
    lacks = lacking(judged, artifact_id)
    people = {gate.name for gate in spec.gates if gate.kind != "check" and artifact_id not in state.failed}
    words = [lack for lack in lacks if lack.kind != "gate" or lack.name in people]
    if words:
        return words[0].command
    code = judged.reasons[artifact_id].code
    asked = code == "pre_state_changed" or (code not in RESTORABLE and effect_question(state, spec, judged.dead))
    if artifact_id in state.failed or artifact_id in blockers or asked:
        return _why(blockers.get(artifact_id, artifact_id))
    elsewhere = judged.judge.unusable(artifact_id)
    if elsewhere is not None:
        return elsewhere.command
    by_hand = not spec.has_recipe and code not in RESTORABLE
    if not by_hand:
        return ""
    claim = state.claims.get(artifact_id)
    is_held = claim is not None and not (claim.lease and claim.lease < now())
    return _why(artifact_id) if is_held else f"headway claim {as_word(artifact_id)}"


def lacking(judged: Judged, artifact_id: str) -> list[Missing]:
    """What it needs from somebody; no word about bytes that the next run would make anew."""
    found = missing(judged.execution.state, artifact_id)
    is_as_made = judged.reasons[artifact_id].code == "gates_open"
    return found if is_as_made else [lack for lack in found if lack.kind != "gate"]


def _why(artifact_id: str) -> str:
    """As it is typed: what stands for units has a star in its name."""
    return f"headway why {as_word(artifact_id)}"


def _claim(claim: Claim, gone: Gone) -> dict[str, Any]:
    return {
        "by": claim.by,
        "since": claim.at,
        "until": claim.lease or None,
        "token": claim.seq,
        "run": claim.run or None,
        "over": bool(claim.lease) and claim.lease < now(),
        "gone": gone(claim) or None,
    }


def _reason(judged: Judged, artifact_id: str, gone: Gone) -> dict[str, Any]:
    """Why it is stale; what somebody has in hand who is gone is not being made."""
    found, claim = judged.reasons[artifact_id].to_dict(), judged.execution.state.claims.get(artifact_id)
    if claim is not None and found["code"] == "in_progress" and gone(claim):
        return {**found, "text": f"{claim.by} began it, and is gone"}
    return found


def why_document(judged: Judged, artifact_id: str, gone: Gone = nobody_gone) -> dict[str, Any]:
    """`why --json`."""
    state = judged.execution.state
    if artifact_id not in state.artifacts:
        raise NotFound(f"There is no artifact {artifact_id}", hint="headway status lists them", code="artifact.unknown")
    spec, reason = state.artifacts[artifact_id], judged.reasons[artifact_id]
    roots, cascade = root_causes(judged.reasons, judged.judge.graph, artifact_id)
    failure, done = state.failed.get(artifact_id), state.completed.get(artifact_id)
    before = _in_its_way(judged, artifact_id)
    status, blocked_by = _statuses(state)[artifact_id], _blocked_by(judged, before)
    decide = prompts.decision(judged.judge, set(judged.judge.graph.below([artifact_id])), Options())
    if decide is None and reason.code == "pre_state_changed":
        decide = _ways_from_state(artifact_id)
    elif decide is None and not reason.fresh and reason.code not in RESTORABLE:
        decide = effect_question(state, spec, judged.dead)
    return {
        "artifact": artifact_id,
        "freshness": "fresh" if reason.fresh else "stale",
        "status": "blocked" if blocked_by and status == "pending" else status,
        "reason": _reason(judged, artifact_id, gone),
        "root_causes": [
            {"artifact": root, **_reason(judged, root, gone), "others": list(judged.reasons[root].others)}
            for root in roots
            if not judged.reasons[root].fresh
        ],
        "cascade": cascade if not reason.fresh else [],
        "skipped": state.skipped[artifact_id].reason if artifact_id in state.skipped else None,
        "blocked_by": blocked_by,
        "held_by": _held_by(judged, before) if not reason.fresh else {},
        "waits_for": _waits_for(judged, artifact_id, before, gone) if not reason.fresh else {},
        "missing": [lack.to_dict() for lack in lacking(judged, artifact_id)],
        "claim": _claim(state.claims[artifact_id], gone) if artifact_id in state.claims else None,
        "elsewhere": _elsewhere(judged, artifact_id),
        "decide": decide._asdict() if decide else None,
        "error": {
            "message": failure.error,
            "code": failure.code,
            "at": failure.at,
            "stderr": failure.stderr,
            "attempts": failure.attempts,
            "verify": spec.verify if failure.code == "verify_failed" else "",
        }
        if failure
        else None,
        "accepted": {"by": done.by, "at": done.at, "reason": done.note} if done and done.how == "accepted" else None,
        "left_alone": _is_left_alone(judged, artifact_id, roots),
        "paused": _paused(state) if state.run is not None and state.run.artifact == artifact_id else None,
        "dependents": [a for a in judged.judge.order_behind([artifact_id]) if a != artifact_id],
        "rerun_from": _rerun_from(state, artifact_id) if failure else None,
        "most_units": _most_units(state, artifact_id, failure.error) if failure else None,
        "code_unknown": artifact_id in judged.out_of_sight,
        "by_program": is_live(spec) and function_of(judged.judge.functions, spec) is None,
    }


def _is_left_alone(judged: Judged, artifact_id: str, roots: Sequence[str]) -> bool:
    """Whether it began with the prompt of a unit before it, which a run of it alone leaves as it is."""
    state, prompted = judged.execution.state, [a for a in roots if judged.reasons[a].code == "prompt_changed"]
    if not any(state.artifacts[a].unit for a in prompted):
        return False
    alone = Options(targets=(artifact_id,))
    return not only_before(state, alone, selected_by(state, alone, judged.judge.shared)).isdisjoint(prompted)


def first_cause(reasons: Mapping[str, Reason], ids: Sequence[str]) -> str:
    """Of these, the first that is stale by itself, else the first that is stale, else the first."""
    stale = [a for a in ids if not reasons[a].fresh]
    return next((a for a in stale if reasons[a].code not in ROOTLESS), (stale or [*ids])[0])


def named_reasons(judged: Judged, ids: Sequence[str]) -> dict[str, dict[str, str]]:
    """The reason of each of these; without what only stands for others."""
    specs = judged.execution.state.artifacts
    return {a: judged.reasons[a].to_dict() for a in ids if not specs[a].gathers}


def _rerun_from(state: State, artifact_id: str) -> str | None:
    """For what follows from others and failed, where to begin anew: the same would come of the same again."""
    spec = state.artifacts[artifact_id]
    pipeline = state.settings.pipeline(spec.pipeline)
    if not spec.gathers or pipeline is None:
        return None
    loop = pipeline.loop_around(spec.phase)
    return f"{spec.unit}/{loop.repeat[0]}" if loop is not None else pipeline.units.source or None


def _most_units(state: State, artifact_id: str, error: str) -> dict[str, Any] | None:
    """For units of which there are more than `max`: what says so, since no run of the same leads on."""
    from headway.core.pipelines import TOO_MANY  # most plans have none

    spec = state.artifacts[artifact_id]
    pipeline = state.settings.pipeline(spec.pipeline)
    if spec.gathers != "units" or pipeline is None or not error.endswith(TOO_MANY.format(most=pipeline.units.max)):
        return None
    return {"pipeline": pipeline.name, "max": pipeline.units.max, "file": state.proposal.path if state.proposal else ""}


def _blocked_by(judged: Judged, before: Collection[str]) -> dict[str, str]:
    """What failed before it, and how: whatever it needs, directly or not."""
    failed = judged.execution.state.failed
    return {a: failed[a].error for a in judged.judge.graph.artifacts if a in failed and a in before}


def _held_by(judged: Judged, before: Collection[str]) -> dict[str, str]:
    """What somebody edited before it, and what of that: a run would ask about it, and make nothing behind it."""
    return {a: reason.text for a, reason in judged.reasons.items() if reason.code in EDITS and a in before}


def _waits_for(judged: Judged, artifact_id: str, before: set[str], gone: Gone) -> dict[str, dict[str, str]]:
    """What no run gets past before it, why, and what has to be typed: a word at a gate, or somebody's hands. Not what
    failed, was edited or is of another plan, which is told by itself, nor what it lacks as well."""
    state, graph = judged.execution.state, judged.judge.graph
    own = {lack.command for lack in lacking(judged, artifact_id)}
    found = {}
    for a in (a for a in judged.judge.shared.order() if a in before and not graph[a].gathers):
        if a in state.failed or judged.reasons[a].code in EDITS or judged.judge.unusable(a) is not None:
            continue
        can_be = lacking(judged, a) or before.isdisjoint(_needs(judged, a))  # a word can be given at any time
        command = _helps(judged, a, {}) if can_be else ""
        if command and command not in own:
            found[a] = {"text": _reason(judged, a, gone)["text"], "command": command}
    return found


def _in_its_way(judged: Judged, artifact_id: str) -> set[str]:
    """What it needs, directly or not, that failed or is stale."""
    failed, artifacts = judged.execution.state.failed, judged.judge.graph.artifacts
    found, stack = {artifact_id}, [artifact_id]
    while stack:
        needs = (r for r in _needs(judged, stack.pop()) if r in artifacts and r not in found)
        more = [r for r in needs if r in failed or not judged.reasons[r].fresh]
        found.update(more)
        stack += more
    return found - {artifact_id}


def _elsewhere(judged: Judged, artifact_id: str) -> dict[str, dict[str, str]]:
    """Requirements of other plans that cannot be used as they are: why, and the command that makes them."""
    found = {}
    for a in judged.judge.graph.below([artifact_id]):
        for required in judged.judge.graph[a].requires:
            there = judged.judge.found_elsewhere(required) if required not in judged.judge.graph else None
            if there is not None and there.problem:
                found[required] = {"problem": there.problem, "command": there.command}
    return found
