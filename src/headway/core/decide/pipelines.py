"""Rules about units and their phases: how they come and go, what stands for them, and prompts that change."""

from __future__ import annotations

from headway.core import commands as cmd
from headway.core import events as ev
from headway.core.decide.base import Events, Rejection, held, overlong, too_long, unknown
from headway.core.decide.gating import milestones, regate
from headway.core.lifecycle import allowed, last_made, stage_of
from headway.core.state import Expansion, State


def expand(state: State, command: cmd.ExpandUnits) -> Events | Rejection:
    """Bring a pipeline's artifacts in line with its units; nobody loses what they have in hand."""
    strangers = [a for a in command.removed if a not in state.artifacts]
    if strangers:
        return unknown(state, strangers)
    for artifact_id in (*command.removed, *(spec.id for spec in command.artifacts)):
        there = state.artifacts.get(artifact_id)
        if there is not None and there.pipeline != command.pipeline:
            return Rejection(
                kind="usage",
                code="plan.duplicate",
                message=f"Artifact {artifact_id} is there already, and pipeline {command.pipeline} would make another",
                hint="rename the artifact, the unit or the phase",
            )
        if artifact_id in state.claims:
            return held(state, artifact_id, "wait until it is done, or stop the run, and try again")
    refusal = overlong(command.artifacts) or too_long(reason=command.reason)
    if refusal is not None:
        return refusal
    artifacts = tuple(spec for spec in command.artifacts if state.artifacts.get(spec.id) != spec)
    same = command.units is None or state.units.get(command.pipeline) == Expansion(
        cause=command.cause, units=command.units
    )
    if same and not artifacts and not command.removed:
        return []
    return [
        ev.UnitExpanded(
            pipeline=command.pipeline,
            cause=command.cause,
            units=command.units,
            artifacts=artifacts,
            removed=command.removed,
            reason=command.reason,
            reordered=_reordered(state, command),
            shared=_shared(state, command),
        ),
        *regate(state, [spec for spec in artifacts if spec.id in state.artifacts]),
    ]


def _reordered(state: State, command: cmd.ExpandUnits) -> tuple[str, ...]:
    """What was gathered of all units, and tells their order, if that is another now. Where an artifact says which they
    are, it is read from what that made."""
    known, units = state.units.get(command.pipeline), command.units
    if known is None or units is None or known.units == units[: len(known.units)]:
        return ()
    left, stayed = set(units), set(known.units)
    if [unit for unit in known.units if unit in left] == [unit for unit in units if unit in stayed]:
        return ()
    from headway.core.pipelines import units_id  # most plans have none

    whole, gone = units_id(command.pipeline), set(command.removed)
    own = (s for s in state.artifacts.values() if s.pipeline == command.pipeline and s.gathers == "all")
    return tuple(s.id for s in own if s.id in state.completed and s.id not in gone and whole not in s.requires)


def _shared(state: State, command: cmd.ExpandUnits) -> tuple[str, ...]:
    """Files that artifacts have changed in place which go, or change, and that units which stay are to change as well,
    whether they have been made or not. A loop that goes on takes none of them away."""
    if not state.origins or command.units is None:
        return ()
    new = {spec.id: spec for spec in command.artifacts}
    concerned = (state.artifacts[a] for a in (*command.removed, *new) if last_made(state, a) is not None)
    paths = {path for spec in concerned for path in spec.modifies if path in state.origins}
    if not paths:
        return ()
    gone = set(command.removed)
    staying = (new.get(a, s) for a, s in state.artifacts.items() if s.pipeline == command.pipeline and a not in gone)
    return tuple(sorted(paths.intersection(path for spec in staying for path in spec.modifies)))


def gather(state: State, command: cmd.GatherArtifact) -> Events | Rejection:
    """What it stands for is done, so it is, too."""
    spec = state.artifacts.get(command.id)
    if spec is None or not spec.gathers:
        return unknown(state, [command.id])
    if not allowed(stage_of(state, command.id), ev.ArtifactCompleted.type):
        return held(state, command.id, "wait until it is done")
    completed = ev.ArtifactCompleted(
        id=command.id, outputs=command.outputs, fp=command.fp, how="gathered", note=command.note
    )
    return [completed, *milestones(state, [command.id])] if state.open else [completed]


def permit(state: State, command: cmd.PermitPromptChange) -> Events | Rejection:
    """Put on record that prompts were changed on purpose, and why."""
    if not command.reason.strip():
        return Rejection(
            kind="usage",
            code="prompt.reason",
            message="A change of prompts needs a reason",
            hint="--resume-allow-prompt-change REASON",
        )
    refusal = too_long(reason=command.reason)
    if refusal is not None:
        return refusal
    return [ev.RecipeChanged(reason=command.reason, changes=command.changes)] if command.changes else []
