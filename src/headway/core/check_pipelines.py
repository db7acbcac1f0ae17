"""What is wrong with the pipelines of a plan, as values. Knows specs; never files."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator

import msgspec

from headway.core import conditions, items, placeholders
from headway.core.check import RANGES, Problem
from headway.core.ids import name_elsewhere
from headway.core.nearest import Nearest
from headway.core.paths import normalise, output_problem
from headway.core.pipelines import NAME, Unit, all_id, expand, unit_problem, wildcard
from headway.core.plan import ArtifactSpec, Phase, Pipeline

SAMPLE = Unit("unit", "unit.txt")
"""Stands for any unit where a phase is looked at without one."""

UNCLEAR = ("phases", "repeat")
"""Keys whose problems leave open what a phase reads."""


def place(pipeline: Pipeline, phase: Phase | None = None) -> str:
    """How a problem names where it is."""
    return f"{pipeline.name}:{phase.id}" if phase is not None else f"{pipeline.name}:"


def samples(pipeline: Pipeline, problems: Collection[Problem] = ()) -> Iterator[ArtifactSpec]:
    """The artifacts of one unit, each named after its phase. Loops that have problems are gone round by nobody."""
    if any(problem.key == "repeat" for problem in problems):
        phases = tuple(msgspec.structs.replace(phase, repeat=()) for phase in pipeline.phases)
        pipeline = msgspec.structs.replace(pipeline, phases=phases)
    yield from (spec for spec in expand(pipeline, [SAMPLE]) if not spec.gathers)


def follows(problem: Problem, problems: Collection[Problem], pipeline: Pipeline) -> bool:
    """Whether a problem of a phase is there only because of those of its pipeline: who mends them mends it."""
    if problem.code == "plan.placeholder" and problem.value.startswith("{inputs"):
        named = problem.value[len("{inputs.") : -1].rstrip("]")
        missing = ((p.artifact, p.value) for p in problems if p.key == "inputs")
        return (problem.artifact, named) in missing or any(p.key in UNCLEAR for p in problems)
    if problem.code == "plan.path":
        return problem.value == pipeline.state and any(p.key == "state" for p in problems)
    return problem.code == "plan.producers" and any(p.key == "phases" for p in problems)


def check_pipeline(
    pipeline: Pipeline, artifacts: Collection[str], pipelines: Collection[Pipeline]
) -> Iterator[Problem]:
    """Every problem of one pipeline, given the ids of the plan's own artifacts and all of its pipelines."""
    where = f"pipeline {pipeline.name}"
    if not re.fullmatch(NAME, pipeline.name):
        hint = "letters, digits, _ and -, beginning with a letter"
        yield Problem(code="plan.id", message=f"{pipeline.name!r} cannot be the name of a pipeline", hint=hint)
    if not pipeline.phases:
        yield _problem("plan.phases", pipeline, None, f"{where} has no phases", "phases", "name at least one")
    if pipeline.state and (why := output_problem(pipeline.state)):
        yield _problem("plan.path", pipeline, None, f"{where}: its state {pipeline.state!r} {why}", "state")
    yield from _check_units(pipeline, artifacts, where)
    yield from _check_overrides(pipeline, where)
    seen: set[str] = set()
    for phase in pipeline.phases:
        yield from _check_phase(pipeline, phase, seen)
        yield from _check_requires(pipeline, phase, artifacts, pipelines)
        seen.add(phase.id)


def _check_units(pipeline: Pipeline, artifacts: Collection[str], where: str) -> Iterator[Problem]:
    units = pipeline.units
    ways = [bool(units.names), bool(units.files), bool(units.source)]
    if sum(ways) != 1:
        hint = "units: [a, b], {files: 'docs/*.md'} or {from: ARTIFACT, items: 'scenes[*].id'}"
        what = "does not say where its units come from" if not any(ways) else "says twice where its units come from"
        yield _problem("plan.units", pipeline, None, f"{where} {what}", "units", hint)
        return
    seen: set[str] = set()
    for unit in units.names:
        if unit in seen:
            yield _problem("plan.duplicate", pipeline, None, f"{where}: unit {unit} is given twice", "units")
        elif why := unit_problem(unit):
            yield _problem("plan.id", pipeline, None, f"{where}: {unit!r} cannot name a unit", "units", why)
        seen.add(unit)
    if units.max is not None and (why := RANGES["units.max"].problem(units.max)):
        yield _problem("plan.range", pipeline, None, f"{where}: units.max {why}", "units")
    elif units.names and units.max is not None and len(units.names) > units.max:
        message = f"{where} has {len(units.names)} units, and max says {units.max}"
        yield _problem("plan.units", pipeline, None, message, "units")
    if units.files and (why := output_problem(units.files.replace("*", "x").replace("?", "x"))):
        yield _problem("plan.path", pipeline, None, f"{where}: units.files {why}", "units")
    if units.source and units.source not in artifacts:
        message = f"{where} takes its units from {units.source}, which is not in the plan"
        yield _problem("plan.missing", pipeline, None, message, "units", Nearest(artifacts).hint(units.source))
    if units.source:
        try:
            items.steps(units.items)
        except items.PathError as error:
            yield _problem("plan.items", pipeline, None, f"{where}: items: {error}", "units", "scenes[*].id")


def _check_overrides(pipeline: Pipeline, where: str) -> Iterator[Problem]:
    names, units = [phase.id for phase in pipeline.phases], pipeline.units.names
    if pipeline.templates and not (pipeline.overrides or any(phase.templates for phase in pipeline.phases)):
        message = f"{where} has templates, and none of its phases has any to go with them"
        yield _problem("plan.templates", pipeline, None, message, "templates", "give a phase templates: {phase: FILE}")
    for unit, by_phase in pipeline.overrides.items():
        if units and unit != "*" and unit not in units:
            hint = Nearest(units).hint(unit)
            yield _problem("plan.units", pipeline, None, f"{where} has no unit {unit}", "overrides", hint)
        for name, roles in by_phase.items():
            if name != "*" and name not in names:
                hint = Nearest(names).hint(name)
                yield _problem("plan.phases", pipeline, None, f"{where} has no phase {name}", "overrides", hint)
            phases = [phase for phase in pipeline.phases if name in ("*", phase.id)]
            known = {*pipeline.templates, *(role for phase in phases for role in phase.templates)}
            for role, path in roles.items():
                if role not in known and (hint := Nearest(known).hint(role)):  # any other one is one more
                    message = f"{where} has no template {role} to override"
                    yield _problem("plan.templates", pipeline, None, message, "overrides", hint)
                yield from _check_template(pipeline, None, path, where, "overrides")


def _check_phase(pipeline: Pipeline, phase: Phase, before: Collection[str]) -> Iterator[Problem]:
    where = f"pipeline {pipeline.name}, phase {phase.id}"
    if phase.id in before:
        yield _problem("plan.duplicate", pipeline, phase, f"{where} is given twice", "phases", "give one another name")
    elif not re.fullmatch(NAME, phase.id):
        hint = "letters, digits, _ and -, beginning with a letter"
        yield _problem("plan.id", pipeline, phase, f"{where}: this cannot be the name of a phase", "phases", hint)
    if phase.pre_state and not pipeline.state:
        yield _problem("plan.state", pipeline, phase, f"{where} reads a state that nobody names", "pre_state", "state:")
    for name in phase.outputs:
        if not re.fullmatch(NAME, name):
            yield _problem("plan.id", pipeline, phase, f"{where}: {name!r} cannot name an output", "outputs")
    for name in phase.requires_outputs or ():
        if name not in phase.outputs:
            message, hint = f"{where} requires the output {name}, which it has not", Nearest(phase.outputs).hint(name)
            yield _problem("plan.output", pipeline, phase, message, "requires_outputs", hint)
    loop = pipeline.loop_around(phase.id)
    reachable = {*before, *(loop.repeat if loop is not None else ())}
    for name in phase.inputs or ():
        if name not in reachable:
            message = f"{where} reads {name}, which is no phase before it"
            yield _problem("plan.missing", pipeline, phase, message, "inputs", Nearest(reachable).hint(name), name)
    for path in (*phase.templates.values(), *pipeline.templates.values()):
        yield from _check_template(pipeline, phase, path, where, "templates")
    yield from _check_outputs(pipeline, phase, where)
    yield from _check_loop(pipeline, phase, where)


def _check_template(pipeline: Pipeline, phase: Phase | None, path: str, where: str, key: str) -> Iterator[Problem]:
    if why := output_problem(path.replace("{unit}", "u").replace("{phase}", "p")):
        yield _problem("plan.path", pipeline, phase, f"{where}: the template {path} {why}", key)
    for fault in placeholders.path_faults(path):
        message = f"{where}: in the template {path}, {fault.message}"
        yield _problem("plan.placeholder", pipeline, phase, message, key, fault.hint)


def _check_outputs(pipeline: Pipeline, phase: Phase, where: str) -> Iterator[Problem]:
    """Placeholders that are none; and paths that name no unit, where several are listed and nothing is handed on."""
    paths = {name: normalise(path) for name, path in phase.outputs.items()}
    takes_turns = pipeline.order == "sequential" or bool(pipeline.state) or len(pipeline.units.names) < 2
    for name, path in paths.items():
        faults = placeholders.path_faults(path)
        for fault in faults:
            message = f"{where}: in its output {name}, {fault.message}"
            yield _problem("plan.placeholder", pipeline, phase, message, "outputs", fault.hint)
        names_unit = bool(faults) or "{unit}" in path or "{file}" in path
        if not names_unit and not takes_turns:
            message = f"{where}: every unit produces {path}"
            hint = "put {unit} into it; if units change one file in turn, order: sequential says so"
            yield _problem("plan.producers", pipeline, phase, message, "outputs", hint)


def _check_requires(
    pipeline: Pipeline, phase: Phase, artifacts: Collection[str], pipelines: Collection[Pipeline]
) -> Iterator[Problem]:
    """What a phase needs besides the phases before it: artifacts, all units of another pipeline, another plan's."""
    where = f"pipeline {pipeline.name}, phase {phase.id}"
    everyone = [all_id(each.name, one.id) for each in pipelines for one in each.phases]
    for name in phase.requires:
        if name.startswith(f"{pipeline.name}:*"):
            yield _problem("plan.cycle", pipeline, phase, f"{where} requires all units of its own pipeline", "requires")
        elif wildcard(name) is not None and name not in everyone:
            message = f"{where} requires {name}, which is no phase of a pipeline"
            yield _problem("plan.missing", pipeline, phase, message, "requires", Nearest(everyone).hint(name), name)
        elif name not in artifacts and name not in everyone and name_elsewhere(name) is None:
            if pipeline.phase(name):
                message = f"{where} requires {name}, a phase of its own pipeline"
                hint = f"leave it out: a phase reads all phases before it, or those under inputs: [{name}]"
            else:
                message = f"{where} requires {name}, which is no artifact of the plan"
                hint = Nearest(artifacts).hint(name)
            yield _problem("plan.missing", pipeline, phase, message, "requires", hint, name)


def _check_loop(pipeline: Pipeline, phase: Phase, where: str) -> Iterator[Problem]:
    if not phase.repeat:
        if phase.until:
            yield _problem("plan.loop", pipeline, phase, f"{where} has until, but repeats nothing", "until", "repeat:")
        return
    names = [each.id for each in pipeline.phases]
    block = [name for name in names if name in phase.repeat]
    ends = names.index(phase.id)
    if list(phase.repeat) != names[ends - len(phase.repeat) + 1 : ends + 1]:
        begin = names.index(block[0]) if block else ends
        fitting = names[min(begin, ends) : ends + 1]
        hint = f"neighbours in their order, {phase.id} last: repeat: [{', '.join(fitting)}]"
        yield _problem("plan.loop", pipeline, phase, f"{where}: repeat must name the phases up to it", "repeat", hint)
    others = [each.id for each in pipeline.phases if each is not phase and set(each.repeat) & set(phase.repeat)]
    if others:
        yield _problem("plan.loop", pipeline, phase, f"{where}: its loop crosses that of {others[0]}", "repeat")
    if why := RANGES["phases.times"].problem(phase.times):
        yield _problem("plan.range", pipeline, phase, f"{where}: times {why}", "times")
    if not phase.until:
        yield _problem("plan.loop", pipeline, phase, f"{where} repeats without end", "until", "until: CONDITION")
        return
    try:
        strangers = sorted(conditions.names(phase.until) - set(phase.outputs))
    except conditions.ConditionError as error:
        yield _problem("plan.loop", pipeline, phase, f"{where}: until: {error}", "until")
        return
    if strangers and phase.outputs:
        message = f"{where}: until speaks of {strangers[0]}, which is none of its outputs"
        yield _problem("plan.loop", pipeline, phase, message, "until", Nearest(phase.outputs).hint(strangers[0]))


def _problem(
    code: str, pipeline: Pipeline, phase: Phase | None, message: str, key: str, hint: str = "", value: str = ""
) -> Problem:
    return Problem(code=code, message=message, artifact=place(pipeline, phase), key=key, value=value, hint=hint)
