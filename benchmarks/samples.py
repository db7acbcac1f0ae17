"""Plans, commands and events of a realistic shape: 20 layers, each artifact requires three of the layer before."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence

from headway.core.commands import CompleteArtifact, CreatePlan
from headway.core.events import ArtifactCompleted, ArtifactStarted, Event, PlanCreated, Record, Start
from headway.core.graph import ArtifactGraph
from headway.core.plan import ArtifactSpec, PlanSpec
from headway.core.state import Fingerprint, Output

LAYERS, FAN_IN = 20, 3
TIME = "2026-01-01T00:00:00.000000Z"


def specs(count: int) -> list[ArtifactSpec]:
    """That many artifacts, in layers."""
    width = max(1, count // LAYERS)
    made = []
    for number in range(count):
        below = number - number % width - width
        needs = {f"a{below + (number + step) % width}" for step in range(FAN_IN)} if below >= 0 else set()
        made.append(_spec(number, sorted(needs)))
    return made


def flat(count: int) -> list[ArtifactSpec]:
    """Three artifacts, and that many more which require all three."""
    needs = [f"a{number}" for number in range(FAN_IN)]
    return [_spec(number, needs if number >= FAN_IN else []) for number in range(FAN_IN + count)]


def batches(artifacts: Sequence[ArtifactSpec], size: int) -> Iterator[list[ArtifactSpec]]:
    """What could be started together, at most so many at a time."""
    graph = ArtifactGraph(artifacts)
    for wave in graph.execution_waves():
        for begin in range(0, len(wave), size):
            yield [graph[artifact_id] for artifact_id in wave[begin : begin + size]]


def create(artifacts: Sequence[ArtifactSpec]) -> CreatePlan:
    """The command that begins a ledger with such a plan."""
    return CreatePlan(plan_id="bench", project_id="bench", plan=_plan(artifacts))


def complete(spec: ArtifactSpec, token: int) -> CompleteArtifact:
    """The command that records what an attempt made."""
    return CompleteArtifact(id=spec.id, token=token, outputs=_outputs(spec), fp=_fingerprint(spec), ms=12)


def records(count: int) -> Iterator[Record]:
    """A plan, then for each artifact a start, a completion, and a completion of the same bytes once more."""
    plan = _plan(specs(count))
    yield _record(1, PlanCreated(format=1, plan_id="bench", project_id="bench", plan=plan))
    seq = 1
    for spec in plan.artifacts:
        done = ArtifactCompleted(id=spec.id, outputs=_outputs(spec), fp=_fingerprint(spec), ms=12)
        for event in (ArtifactStarted(starts=(Start(id=spec.id),), run="r"), done, done):
            seq += 1
            yield _record(seq, event)


def _plan(artifacts: Sequence[ArtifactSpec]) -> PlanSpec:
    return PlanSpec(goal="Make all the parts", artifacts=tuple(artifacts))


def _spec(number: int, needs: Sequence[str]) -> ArtifactSpec:
    return ArtifactSpec(
        id=f"a{number}",
        description=f"Part {number} of the whole",
        requires=tuple(needs),
        produces=(f"out/{number % 500}/a{number}.txt",),
        run="python tools/write.py --out {output}",
    )


def _record(seq: int, event: Event) -> Record:
    return Record(seq, TIME, "bench", event, "", "")


def _outputs(spec: ArtifactSpec) -> tuple[Output, ...]:
    return (Output(spec.produces[0], _digest(spec.id, 64), 4096),)


def _fingerprint(spec: ArtifactSpec) -> Fingerprint:
    inputs = {required: _digest(required, 32) for required in spec.requires}
    return Fingerprint(spec=_digest(spec.id + "spec", 32), recipe=_digest("recipe", 32), inputs=inputs)


def _digest(text: str, length: int) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:length]
