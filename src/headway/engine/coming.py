"""What a run may come to make that is not in the plan yet: units that an artifact will name, further rounds of loops.

Pure. All of it is counted as if every loop went round as often as it may: an upper bound, or none.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any, NamedTuple

from headway.core.freshness import Reason
from headway.core.pipelines import units_id
from headway.core.plan import Pipeline
from headway.core.state import State


class Coming(NamedTuple):
    """How many artifacts may come, at most: in further rounds, and by pipeline with its units; None: any number."""

    rounds: int = 0
    units: Mapping[str, int | None] = {}

    def __bool__(self) -> bool:
        return bool(self.rounds or self.units)

    @property
    def at_most(self) -> int | None:
        """All of them; None where nobody can tell."""
        known = [number for number in self.units.values() if number is not None]
        return self.rounds + sum(known) if len(known) == len(self.units) else None

    def to_dict(self) -> dict[str, Any]:
        """The same for machines."""
        return {"at_most": self.at_most, "rounds": self.rounds, "units": dict(self.units)}


def coming(state: State, reasons: Mapping[str, Reason], selected: Collection[str], items: Collection[str]) -> Coming:
    """What may come besides `items`, which are those of the plan that may be made."""
    pipelines = state.settings.pipelines
    if not pipelines:
        return Coming()
    stale = [a for a in selected if a in reasons and not reasons[a].fresh and state.artifacts[a].gathers]
    open_ = {p.name: p for p in pipelines if p.units.source and units_id(p.name) in stale}
    rounds = sum(_rounds(state, a) for a in stale if state.artifacts[a].pipeline not in open_)
    return Coming(rounds, {name: _units(state, pipeline, items) for name, pipeline in open_.items()})


def _rounds(state: State, artifact_id: str) -> int:
    """The artifacts of the rounds that a loop may still be gone round; `artifact_id` stands for its last one."""
    spec = state.artifacts[artifact_id]
    pipeline = state.settings.pipeline(spec.pipeline)
    loop = pipeline.phase(spec.phase) if pipeline is not None and spec.gathers == "last" else None
    if loop is None or not loop.repeat:
        return 0
    have = max(state.artifacts[last].iteration for last in spec.requires)
    return max(loop.times - have, 0) * len(loop.repeat)


def _units(state: State, pipeline: Pipeline, items: Collection[str]) -> int | None:
    """What as many units as there may be need, all of them others than now, without what is counted already."""
    if pipeline.units.max is None:
        return None
    loops = {phase.id: pipeline.loop_around(phase.id) for phase in pipeline.phases}
    each = sum(loop.times if loop is not None else 1 for loop in loops.values())
    counted = sum(1 for a in items if state.artifacts[a].pipeline == pipeline.name)
    return max(pipeline.units.max * each - counted, 0)
