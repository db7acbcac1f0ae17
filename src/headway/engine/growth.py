"""How a plan grows: which units there are, what they need, and when a loop has been gone round often enough.

Looks at files and at what artifacts made; what follows from it is decided in core/pipelines.py, and recorded by whoever
asks. A plan without pipelines is asked one question, and that is all.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import msgspec

from headway.core import commands as cmd
from headway.core.check import Problem, check_plan
from headway.core.conditions import ConditionError, holds
from headway.core.decide import decide
from headway.core.events import Record
from headway.core.evolve import apply
from headway.core.fingerprint import content_digest
from headway.core.items import PathError, find
from headway.core.paths import is_glob, normalise
from headway.core.pipelines import TOO_MANY, Unit, cause, change, go_round, unit_problem, wanted_phases
from headway.core.plan import ArtifactSpec, Pipeline, PlanSpec
from headway.core.state import Output, State
from headway.errors import BlobDamaged, HeadwayError, PlanInvalid
from headway.files.outputs import Outputs
from headway.projections.saved_execution import SavedExecution

LARGEST_OUTLINE = 64 * 1024 * 1024
"""The most bytes of a file that units are read from."""

Read = Callable[[Output], bytes]
"""The bytes of an output."""


class Ungrown(Exception):
    """Units that cannot be: why, in words."""


class Verdict(NamedTuple):
    """Whether a loop is satisfied, and with what."""

    passed: bool
    why: str = ""


def _wanted(state: State) -> Mapping[str, Sequence[str]]:
    """By pipeline: the phases of all its units that artifacts, or phases of other pipelines, require."""
    plain = (spec.requires for spec in state.artifacts.values() if not spec.pipeline)
    return wanted_phases([*plain, *(phase.requires for p in state.settings.pipelines for phase in p.phases)])


class Growth:
    """Finds out what the pipelines of one plan need. `expand` gives the files that a pattern matches."""

    def __init__(self, expand: Callable[[Iterable[str]], list[str]], read: Read) -> None:
        self._expand = expand
        self._read = read

    # Units.

    def due(self, state: State) -> list[cmd.ExpandUnits]:
        """The expansions that are due before anything else is done; units of an artifact as it was last made."""
        if not state.settings.pipelines and not state.units:
            return []
        wanted = _wanted(state)
        found = [self._due(state, pipeline, wanted.get(pipeline.name, ())) for pipeline in state.settings.pipelines]
        named = {pipeline.name for pipeline in state.settings.pipelines}
        for name in state.units:
            if name not in named:
                gone = tuple(a for a, spec in state.artifacts.items() if spec.pipeline == name)
                if gone:
                    found.append(cmd.ExpandUnits(pipeline=name, units=(), removed=gone, reason="no such pipeline"))
        return [command for command in found if command is not None]

    def _due(self, state: State, pipeline: Pipeline, wanted: Sequence[str]) -> cmd.ExpandUnits | None:
        try:
            what, units = self._units(state, pipeline)
        except Ungrown as error:
            if pipeline.units.source:  # the artifact that stands for the units says so, when its turn comes
                what, units = "", []
                if pipeline.name in state.units:
                    return None
            else:
                raise PlanInvalid([_problem(pipeline, str(error))], where=f"Plan {state.plan_id}") from error
        why = cause(pipeline, what, wanted)
        known = state.units.get(pipeline.name)
        if known is not None and known.cause == why:
            return None
        command = self._command(state, pipeline, units, wanted, why)
        problems = self._problems(state, command)
        if problems and pipeline.units.source:  # the same: another outline may come of it
            return (
                None if known is not None else self._command(state, pipeline, [], wanted, cause(pipeline, "", wanted))
            )
        if problems:
            raise PlanInvalid(problems, where=f"Plan {state.plan_id}")
        return command

    def grown(self, state: State, pipeline: Pipeline) -> cmd.ExpandUnits:
        """The expansion that follows from what an artifact has just made."""
        wanted = _wanted(state).get(pipeline.name, ())
        what, units = self._units(state, pipeline)
        if not units:
            raise Ungrown(f"{pipeline.units.source} was not made, so it names no units")
        command = self._command(state, pipeline, units, wanted, cause(pipeline, what, wanted))
        problems = self._problems(state, command)
        if problems:
            raise Ungrown(str(problems[0]))
        return command

    def _command(
        self, state: State, pipeline: Pipeline, units: Sequence[Unit], wanted: Sequence[str], why: str
    ) -> cmd.ExpandUnits:
        found = change(pipeline, units, wanted, state.artifacts, state.claims)
        return cmd.ExpandUnits(
            pipeline=pipeline.name,
            cause="" if found.kept_back else why,
            units=tuple(unit.id for unit in units),
            artifacts=found.artifacts,
            removed=found.removed,
        )

    def _problems(self, state: State, command: cmd.ExpandUnits) -> list[Problem]:
        """What the plan as a whole would not bear: two producers of a path, an id that is taken."""
        if not command.artifacts:
            return []
        gone = set(command.removed)
        specs = {a: spec for a, spec in state.artifacts.items() if a not in gone}
        taken = [s.id for s in command.artifacts if s.id in specs and specs[s.id].pipeline != command.pipeline]
        if taken:
            return [Problem(code="plan.duplicate", message=f"artifact {taken[0]} is there already", artifact=taken[0])]
        if not gone and all(_is_elsewhere_the_same(specs.get(spec.id), spec) for spec in command.artifacts):
            return []
        specs.update({spec.id: spec for spec in command.artifacts})
        plan = PlanSpec(goal=state.goal, id=state.plan_id, settings=state.settings, artifacts=tuple(specs.values()))
        return check_plan(plan)

    def _units(self, state: State, pipeline: Pipeline) -> tuple[str, list[Unit]]:
        """Where the units come from, as text that can be compared, and what they are."""
        units = pipeline.units
        if units.names:
            return "", [Unit(name) for name in units.names]
        if units.files:
            found = _not_of_others(pipeline, _of_files(units.files, self._expand([units.files])))
            self._refuse_too_many(pipeline, len(found))
            return "\n".join(unit.file for unit in found), list(_checked(pipeline, found))
        return self._units_of(state, pipeline)

    def _units_of(self, state: State, pipeline: Pipeline) -> tuple[str, list[Unit]]:
        source, items = pipeline.units.source, pipeline.units.items
        done = state.completed.get(source)
        if done is None:  # never made, or reset: until it is, there are those that there were
            return "", _known(state, pipeline)
        if not done.outputs:
            raise Ungrown(f"{source} made nothing that could name units")
        output = done.outputs[0]
        if output.size > LARGEST_OUTLINE:
            raise Ungrown(f"{output.path} is too large to read units from")
        try:
            matches = find(msgspec.json.decode(self._read(output)), items)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            raise Ungrown(f"what {source} made is not JSON: {error}") from error
        except PathError as error:
            raise Ungrown(f"in what {source} made, {error}") from error
        except (BlobDamaged, OSError) as error:
            raise Ungrown(f"what {source} made cannot be read: {error}") from error
        if not matches:
            raise Ungrown(f"{items} matches nothing in what {source} made")
        self._refuse_too_many(pipeline, len(matches))
        odd = next((match.value for match in matches if not isinstance(match.value, str)), None)
        if any(not isinstance(match.value, str) for match in matches):
            raise Ungrown(f"{items} in what {source} made is {odd!r}, and a unit is named by text")
        found = [Unit(match.value, "", match.around) for match in matches]
        return content_digest(done.outputs), list(_checked(pipeline, found))

    def _refuse_too_many(self, pipeline: Pipeline, count: int) -> None:
        most = pipeline.units.max
        if most is not None and count > most:
            raise Ungrown(f"there are {count} units{TOO_MANY.format(most=most)}")

    # Loops.

    def verdict(self, spec: ArtifactSpec, until: str, outputs: Sequence[Output], names: Mapping[str, str]) -> Verdict:
        """Whether a loop is satisfied with what its last phase wrote."""
        by_path = {output.path: output for output in outputs}
        values: dict[str, Any] = {name: self._value(by_path[p]) for name, p in names.items() if p in by_path}
        if not values and "" in by_path:
            values["output"] = self._value(by_path[""])
        try:
            return Verdict(holds(until, values), until)
        except ConditionError as error:
            raise Ungrown(f"until: {error}") from error

    def _value(self, output: Output) -> Any:
        try:
            data = self._read(output)
        except (HeadwayError, OSError) as error:
            raise Ungrown(f"{output.path or 'its text'} cannot be read: {error}") from error
        try:
            return msgspec.json.decode(data)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            return data.decode("utf-8", "replace").strip()

    def round(self, state: State, spec: ArtifactSpec, count: int) -> cmd.ExpandUnits:
        """Have the loop that an artifact is part of gone round this often."""
        pipeline = state.settings.pipeline(spec.pipeline)
        assert pipeline is not None, "an artifact of a pipeline has one"
        loop = pipeline.loop_around(spec.phase)
        assert loop is not None, "only a phase of a loop is made again"
        have = 1
        while f"{spec.unit}/{loop.id}~{have + 1}" in state.artifacts:
            have += 1
        first = state.artifacts.get(f"{spec.unit}/{pipeline.phases[0].id}") or spec
        first = state.artifacts.get(f"{spec.unit}/{pipeline.phases[0].id}~1", first)
        found = go_round(pipeline, spec, Unit(spec.unit, spec.file or first.file, first.item), count, have)
        reason = f"{loop.until} is not true yet" if count > have else f"{loop.until} is true"
        return cmd.ExpandUnits(
            pipeline=pipeline.name, artifacts=found.artifacts, removed=found.removed, reason=f"{spec.unit}: {reason}"
        )


def foresee(execution: SavedExecution, outputs: Outputs, *, by: str) -> tuple[SavedExecution, list[cmd.ExpandUnits]]:
    """The plan as it will be once its pipelines are expanded, and what expands them. Writes nothing."""
    state = execution.state
    if not state.settings.pipelines and not state.units:
        return execution, []
    due = Growth(outputs.observer.expand, outputs.bytes_of).due(state)
    if not due:
        return execution, []
    state, (seq, hash_) = state.copy(), execution.position
    for command in due:
        events = decide(state, command)
        for event in events if isinstance(events, list) else ():
            state = apply(state, Record(seq, state.updated_at, by, event, hash_, hash_))
    return SavedExecution(state, execution.position), due


def _is_elsewhere_the_same(before: ArtifactSpec | None, spec: ArtifactSpec) -> bool:
    """Whether an artifact only got other templates, or another item: nobody but itself is concerned by that."""
    if before is None:
        return False
    return msgspec.structs.replace(spec, templates=before.templates, item=before.item) == before


def _known(state: State, pipeline: Pipeline) -> list[Unit]:
    """The units as they were last expanded."""
    expansion = state.units.get(pipeline.name)
    first = pipeline.phases[0].id
    found = []
    for unit in expansion.units if expansion is not None else ():
        spec = state.artifacts.get(f"{unit}/{first}~1") or state.artifacts.get(f"{unit}/{first}")
        found.append(Unit(unit, spec.file, spec.item) if spec is not None else Unit(unit))
    return found


def _checked(pipeline: Pipeline, units: Sequence[Unit]) -> Iterable[Unit]:
    seen: dict[str, str] = {}
    for unit in units:
        why = unit_problem(unit.id)
        if why:
            raise Ungrown(f"{unit.id!r} cannot name a unit: {why}")
        if unit.id in seen:
            files = f": {seen[unit.id]} and {unit.file}" if unit.file else ""
            raise Ungrown(f"unit {unit.id} is there twice{files}")
        seen[unit.id] = unit.file
    return units


def _of_files(pattern: str, paths: Sequence[str]) -> list[Unit]:
    """Units named after files: by their path behind the fixed part of the pattern, without ending."""
    base = _base(pattern)
    return [Unit(os.path.splitext(path[len(base) :])[0], path) for path in paths]


def _base(pattern: str) -> str:
    """The folders that all files of a pattern are in."""
    fixed: list[str] = []
    for part in pattern.split("/")[:-1]:
        if is_glob(part):
            break
        fixed.append(f"{part}/")
    return "".join(fixed)


def _not_of_others(pipeline: Pipeline, units: Sequence[Unit]) -> list[Unit]:
    """Without files that are what other units come to: they would be units of their own, and so on without end."""
    base = _base(pipeline.units.files)
    outputs = [normalise(p).replace("{phase}", phase.id) for phase in pipeline.phases for p in phase.outputs.values()]
    own = [p for p in outputs if "{unit}" in p or "{file}" in p]
    near = [p for p in own if base.startswith(fixed := p.partition("{")[0]) or fixed.startswith(base)]
    made = {p.replace("{unit}", unit.id).replace("{file}", unit.file): unit.file for p in near for unit in units}
    return [unit for unit in units if made.get(unit.file, unit.file) == unit.file]


def _problem(pipeline: Pipeline, message: str) -> Problem:
    return Problem(code="plan.units", message=f"pipeline {pipeline.name}: {message}", artifact=f"{pipeline.name}:")
