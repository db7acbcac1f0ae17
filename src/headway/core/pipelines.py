"""Pipelines: how a unit becomes artifacts, how a loop goes on, and what becomes of units that come and go.

A unit `u` of a pipeline with the phases `write` and `lint` is the artifacts `u/write` and `u/lint`. A phase of a loop
is made several times: `u/lint~1`, `u/lint~2`; `u/lint` then stands for the last. `scene:*/lint` stands for that phase
of every unit of the pipeline `scene`, and `scene:*` for its units, where they come from another artifact.

All of it is pure. What comes out is recorded as events, and replaying them asks nothing here.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import msgspec

from headway.core.ids import artifact_id_problem
from headway.core.nearest import Nearest
from headway.core.paths import normalise
from headway.core.plan import ArtifactSpec, Phase, Pipeline
from headway.core.state import State

NAME = r"[A-Za-z_][A-Za-z0-9_-]{0,63}"
UNIT_MAX = 120
UNIT_MAX_BYTES = 180
"""Of each part: `phases/<unit>@<plan>.json` is a file, and its name has at most 255 bytes."""

_WILDCARD = r"([A-Za-z_][A-Za-z0-9_-]*):\*/([A-Za-z_][A-Za-z0-9_-]*)"  # compiled when asked for, as the next
_UNIT_ODD = r"[\x00-\x1f\x7f\\:*?\[\]{}~\"'<>|]"
_ITERATION = r"~\d+$"

_CONSTANT = (
    "run", "make", "args", "env", "version", "verify", "agent", "retry", "timeout", "effects", "on_edit",
    "domain_type", "complexity", "tags", "constraints", "gates", "metadata",
)  # fmt: skip
_FILLED = ("description", "contract", "instructions", "milestone")


TOO_MANY = ", and max says {most}"
"""How it is said that there are more units than there may be."""


class Unit(NamedTuple):
    """What goes through a pipeline: its id, the file it is about, or the item that it was read from."""

    id: str
    file: str = ""
    item: Any = None


def unit_problem(unit: str) -> str:
    """Why this cannot name a unit, or "" if it can."""
    if len(unit) > UNIT_MAX:
        return f"a unit's name has at most {UNIT_MAX} characters; this one has {len(unit)}"
    if any(len(part.encode("utf-8", "surrogatepass")) > UNIT_MAX_BYTES for part in unit.split("/")):
        return f"a unit's name has at most {UNIT_MAX_BYTES} bytes between slashes, so that a file can be named after it"
    if re.search(_UNIT_ODD, unit):
        return "a unit's name has no control characters and none of \\ : * ? [ ] { } ~ quotes < > |"
    return artifact_id_problem(unit).replace("an artifact id", "a unit's name").replace("artifact id", "unit's name")


def units_id(pipeline: str) -> str:
    """The artifact that stands for the units of a pipeline."""
    return f"{pipeline}:*"


def all_id(pipeline: str, phase: str) -> str:
    """The artifact that stands for a phase of every unit."""
    return f"{pipeline}:*/{phase}"


def wildcard(required: str) -> tuple[str, str] | None:
    """The pipeline and the phase that a requirement takes of every unit."""
    match = re.fullmatch(_WILDCARD, required) if ":*/" in required else None
    return (match[1], match[2]) if match is not None else None


def wanted_phases(requirements: Iterable[Iterable[str]]) -> dict[str, tuple[str, ...]]:
    """By pipeline, the phases of every unit that these requirements name."""
    found: dict[str, dict[str, None]] = {}
    for requires in requirements:
        for required in requires:
            named = wildcard(required) if ":*" in required else None
            if named is not None:
                found.setdefault(named[0], {})[named[1]] = None
    return {pipeline: tuple(phases) for pipeline, phases in found.items()}


def cause(pipeline: Pipeline, what: str, wanted: Sequence[str]) -> str:
    """The digest of what an expansion follows from: the pipeline, its units, and who asks for all of them."""
    parts = (msgspec.json.encode(pipeline), what.encode("utf-8", "surrogatepass"), "\n".join(wanted).encode())
    return hashlib.sha256(b"\0".join(hashlib.sha256(part).digest() for part in parts)).hexdigest()[:32]


# One unit.


class Shape(NamedTuple):
    """An artifact of any unit, before the unit is put in: ids are without the unit, paths with `{unit}`."""

    phase: Phase
    name: str
    iteration: int
    requires: tuple[str, ...]
    after: tuple[str, ...]
    produces: tuple[str, ...] = ()
    modifies: tuple[str, ...] = ()
    gathers: bool = False
    first: bool = False


def shapes(pipeline: Pipeline, rounds: Mapping[str, int]) -> list[Shape]:
    """All artifacts of a unit, in order. `rounds`: how often each loop, named by its last phase, is gone round."""
    found: list[Shape] = []
    latest: dict[str, str] = {}
    written: set[str] = set()
    done: set[str] = set()
    for phase in pipeline.phases:
        loop = pipeline.loop_around(phase.id)
        if phase.id in done:
            continue
        if loop is None:
            found.append(_shape(pipeline, phase, 0, latest, written, found))
            latest[phase.id] = phase.id
            continue
        block = [each for each in pipeline.phases if each.id in loop.repeat]
        done.update(each.id for each in block)
        for iteration in range(1, max(rounds.get(loop.id, 1), 1) + 1):
            for each in block:
                found.append(_shape(pipeline, each, iteration, latest, written, found))
                latest[each.id] = found[-1].name
        for each in block:
            after = () if each is loop else (loop.id,)
            found.append(Shape(each, each.id, 0, (latest[each.id],), after, gathers=True))
        latest.update({each.id: each.id for each in block})
    return found


def _shape(
    pipeline: Pipeline,
    phase: Phase,
    iteration: int,
    latest: Mapping[str, str],
    written: set[str],
    before: Sequence[Shape],
) -> Shape:
    if phase.inputs is None:
        requires = list(latest.values())
    else:
        requires = [latest[name] for name in _with_writers(pipeline, phase.inputs, latest)]
    previous = before[-1].name if before else ""
    produces: list[str] = []
    modifies: list[str] = []
    for path in map(normalise, phase.outputs.values()):
        shared = path == pipeline.state or not ("{unit}" in path or "{file}" in path)
        (modifies if shared or path in written else produces).append(path)
        written.add(path)
    return Shape(
        phase,
        f"{phase.id}~{iteration}" if iteration else phase.id,
        iteration,
        tuple(requires),
        (previous,) if previous and previous not in requires else (),
        tuple(dict.fromkeys(produces)),
        tuple(dict.fromkeys(modifies)),
        first=not before,
    )


def _with_writers(pipeline: Pipeline, inputs: Sequence[str], latest: Mapping[str, str]) -> list[str]:
    """The phases that are read, and those that have changed since what they wrote: nobody reads an older state."""
    paths = {path for phase in pipeline.phases if phase.id in inputs for path in phase.outputs.values()}
    paths.discard(pipeline.state)
    return [
        phase.id
        for phase in pipeline.phases
        if phase.id in latest and (phase.id in inputs or not paths.isdisjoint(phase.outputs.values()))
    ]


def expand(
    pipeline: Pipeline, units: Iterable[Unit], rounds: Callable[[str, str], int] = lambda unit, loop: 1
) -> Iterator[ArtifactSpec]:
    """The artifacts of all units, unit by unit, phase by phase. Linear, whatever their number."""
    loops = [phase.id for phase in pipeline.phases if phase.repeat]
    known: dict[tuple[int, ...], list[Shape]] = {}
    before = ""
    for unit in units:
        counts = tuple(rounds(unit.id, loop) for loop in loops)
        if counts not in known:
            known[counts] = shapes(pipeline, dict(zip(loops, counts, strict=True)))
        last = ""
        for shape in known[counts]:
            yield _instance(pipeline, shape, unit, before)
            last = shape.name
        before = f"{unit.id}/{pipeline.phases[-1].id}" if pipeline.order == "sequential" and last else ""


def _instance(pipeline: Pipeline, shape: Shape, unit: Unit, before: str) -> ArtifactSpec:
    phase, prefix = shape.phase, f"{unit.id}/"
    own: dict[str, Any] = {
        "id": prefix + shape.name,
        "pipeline": pipeline.name,
        "unit": unit.id,
        "phase": phase.id,
        "requires": tuple(sorted(prefix + name for name in shape.requires)),
        "after": tuple(prefix + name for name in shape.after),
    }

    def fill(text: str) -> str:
        if "{" not in text:
            return text
        return text.replace("{unit}", unit.id).replace("{file}", unit.file).replace("{phase}", phase.id)

    outputs = {name: normalise(fill(path)) for name, path in phase.outputs.items()}
    if shape.gathers:
        until = (phase.until,) if phase.repeat else ()
        return ArtifactSpec(**own, outputs=outputs, gathers="last", acceptance=until)
    own["requires"] = tuple(sorted({*own["requires"], *phase.requires}))
    if before and shape.first:
        own["after"] = (before, *own["after"])
    if pipeline.units.source:  # nothing is made for a unit while it is open whether there still is one
        own["after"] = (units_id(pipeline.name), *own["after"])
    own.update({name: getattr(phase, name) for name in _CONSTANT})
    own.update({name: fill(getattr(phase, name)) for name in _FILLED})
    sources = tuple(map(fill, phase.sources))
    if unit.file and unit.file not in sources and (shape.first or "{file}" in phase.run):
        sources = (unit.file, *sources)
    needed = phase.requires_outputs
    reads = (pipeline.state,) if phase.pre_state and pipeline.state not in shape.modifies else ()
    return ArtifactSpec(
        **own,
        acceptance=tuple(map(fill, phase.acceptance)),
        files=tuple(map(fill, phase.files)),
        sources=sources,
        outputs=outputs,
        produces=tuple(map(fill, shape.produces)),
        modifies=tuple(map(fill, shape.modifies)),
        optional=tuple(path for name, path in outputs.items() if needed is not None and name not in needed),
        reads=reads if pipeline.state else (),
        templates={role: normalise(fill(path)) for role, path in templates(pipeline, phase, unit.id).items()},
        iteration=shape.iteration,
        file=unit.file,
        item=unit.item if shape.first else None,
    )


def templates(pipeline: Pipeline, phase: Phase, unit: str) -> dict[str, str]:
    """A phase's templates by role: the pipeline's, its own, and what overrides them for all units or for this one."""
    found = {**pipeline.templates, **phase.templates} if phase.templates else {}
    for who in ("*", unit):
        by_phase = pipeline.overrides.get(who, {})
        for which in ("*", phase.id):
            if which in by_phase and (found or which != "*"):
                found.update(by_phase[which])
    return found


def without_units(state: State) -> list[str]:
    """Pipelines whose units are files, of which there are none: somebody may have mistyped where they are."""
    empty = {name for name, expansion in state.units.items() if not expansion.units}
    named = [p for p in state.settings.pipelines if p.units.files and (p.name in empty or p.name not in state.units)]
    return [f"No file matches {p.units.files}, so pipeline {p.name} has no units" for p in named]


def strangers(pipeline: Pipeline, units: Sequence[str]) -> str:
    """Of units that overrides name and that there are not, in words: what is said for them is for nobody. Or ""."""
    unknown = [unit for unit in pipeline.overrides if unit != "*" and unit not in units]
    if not unknown:
        return ""
    near = Nearest(units).hint(unknown[0])
    which = "which is no unit" if len(unknown) == 1 else f"and {len(unknown) - 1} more, which are no units"
    return f"Overrides of pipeline {pipeline.name} name {unknown[0]}, {which} of it{f' ({near})' if near else ''}"


# All units.


def gatherers(pipeline: Pipeline, units: Sequence[Unit], wanted: Sequence[str]) -> Iterator[ArtifactSpec]:
    """What stands for the units, if an artifact says which they are, and for a phase of all of them."""
    source = pipeline.units.source
    if source:
        yield ArtifactSpec(
            id=units_id(pipeline.name),
            pipeline=pipeline.name,
            requires=(source,),
            gathers="units",
            contract=pipeline.units.items,
        )
    for phase in wanted:
        each = [f"{unit.id}/{phase}" for unit in units]
        yield ArtifactSpec(
            id=all_id(pipeline.name, phase),
            pipeline=pipeline.name,
            phase=phase,
            requires=tuple(sorted([*each, *([units_id(pipeline.name)] if source else [])])),
            gathers="all",
        )


class Change(NamedTuple):
    """What an expansion changes: artifacts that are new or different, ids that go, and the order of all that stay."""

    artifacts: tuple[ArtifactSpec, ...]
    removed: tuple[str, ...]
    kept_back: bool


def change(
    pipeline: Pipeline,
    units: Sequence[Unit],
    wanted: Sequence[str],
    artifacts: Mapping[str, ArtifactSpec],
    busy: Iterable[str] = (),
) -> Change:
    """From what there is to what these units need. What somebody makes at this moment, and its unit, stays for now."""

    def rounds(unit: str, loop: str) -> int:
        count = 1
        while f"{unit}/{loop}~{count + 1}" in artifacts:
            count += 1
        return count

    specs = {spec.id: spec for spec in expand(pipeline, units, rounds)}
    specs.update((spec.id, spec) for spec in gatherers(pipeline, units, wanted))
    gone = [a for a, spec in artifacts.items() if spec.pipeline == pipeline.name and a not in specs]
    held = {artifacts[a].unit for a in busy if a in artifacts and artifacts[a].pipeline == pipeline.name}
    staying = {a for a in gone if artifacts[a].unit in held and artifacts[a].unit}
    taken = set(busy)
    return Change(
        tuple(spec for a, spec in specs.items() if artifacts.get(a) != spec and a not in taken),
        tuple(a for a in gone if a not in staying),
        bool(staying or any(a in specs and artifacts.get(a) != specs[a] for a in taken)),
    )


def go_round(pipeline: Pipeline, spec: ArtifactSpec, unit: Unit, count: int, have: int) -> Change:
    """A loop of one unit that has been gone round `have` times, and is to be `count` times."""
    loop = pipeline.loop_around(spec.phase)
    assert loop is not None, "only a phase of a loop is made again"
    rounds = {loop.id: max(count, have)}
    block = {*loop.repeat}
    made = [
        _instance(pipeline, shape, unit, "")
        for shape in shapes(pipeline, rounds | {loop.id: count})
        if shape.phase.id in block and (shape.gathers or shape.iteration > have)
    ]
    removed = tuple(f"{unit.id}/{name}~{iteration}" for iteration in range(count + 1, have + 1) for name in loop.repeat)
    return Change(tuple(made), removed, False)


def named_phase(word: str) -> str:
    """A word without the number of an iteration."""
    return re.sub(_ITERATION, "", word)
