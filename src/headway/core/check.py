"""What is wrong with a plan: all of it at once, as values.

Knows specs; never files, so whether a path or a module exists is asked elsewhere. A plan with problems is
still a plan and can be kept as a draft. Every check is a loop over the plan: linear, and without recursion.
"""

from __future__ import annotations

import math
import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from functools import lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec

from headway.core import paths
from headway.core.graph import ArtifactGraph, is_in_order
from headway.core.ids import artifact_id_problem, name_elsewhere, plan_id_problem
from headway.core.nearest import Nearest
from headway.core.plan import ArtifactSpec, Pipeline, PlanSpec, Retry, Value

if TYPE_CHECKING:
    from headway.core.placeholders import Offer  # what reads commands is loaded for plans that have some

CYCLE_SHOWN = 12

_UNITS = {"": 1, "B": 1, **{f"{n}B": 1000**i for i, n in enumerate("KMGT", 1)}}
_UNITS |= {f"{n}iB": 1024**i for i, n in enumerate("KMGT", 1)}
_SIZE = r"([0-9]{1,12}(?:\.[0-9]{1,6})?) ?([KMGT]i?B|B|)"  # compiled when a plan has one, as the next

_ENV_NAME = r"[A-Za-z_][A-Za-z0-9_]*"


def size_of(text: str) -> int | None:
    """How many bytes a size such as `256MiB` is; None if it is none."""
    found = re.fullmatch(_SIZE, text.strip())
    return None if found is None else int(float(found[1]) * _UNITS[found[2]])


class Problem(Value):
    """One thing that is wrong: a stable code, a sentence, where it is, and what to do about it."""

    code: str
    message: str
    artifact: str = ""
    key: str = ""
    value: str = ""
    hint: str = ""
    line: int | None = None

    def __str__(self) -> str:
        where = "" if self.line is None else f"line {self.line}: "
        return f"{where}{self.message}" + (f" ({self.hint})" if self.hint else "")

    def to_dict(self) -> dict[str, Any]:
        """The same for machines; what is not known is left out."""
        found: dict[str, Any] = msgspec.to_builtins(self)
        return found


class Range(NamedTuple):
    """The numbers that a key may have; an open low end excludes `low` itself."""

    low: int
    high: int | None = None
    open: bool = False

    def problem(self, number: float) -> str:
        """Why the number is not in the range, or "" if it is."""
        fits = number > self.low if self.open else number >= self.low
        if not math.isfinite(number):
            return f"must be a finite number, not {number}"
        return "" if fits and (self.high is None or number <= self.high) else f"must be {self}, not {number}"

    def __str__(self) -> str:
        if self.high is not None:
            return f"from {self.low} to {self.high}"
        return f"{'more than' if self.open else 'at least'} {self.low}"


RANGES: Mapping[str, Range] = {
    "complexity": Range(1, 10),
    "gates.quorum": Range(1, 64),
    "confirm_above": Range(0),
    "jobs": Range(1),
    "phases.times": Range(1, 100),
    "profile.max_concurrent_tasks": Range(1, 64),
    "replan.most": Range(0, 100),
    "retry.attempts": Range(1, 100),
    "retry.backoff": Range(0),
    "store_up_to": Range(0),
    "timeout": Range(0, open=True),
    "units.max": Range(1),
}


def check_plan(plan: PlanSpec, *, in_order: bool | None = None) -> list[Problem]:
    """Every problem of a plan; none means that it can be run.

    `in_order`: whether its artifacts are, if that is known. All are looked at together first, and one by one only where
    that shows something.
    """
    artifacts = plan.artifacts
    specs = {spec.id: spec for spec in artifacts}
    if len(specs) < len(artifacts):  # of those that are given twice, the first counts
        for spec in reversed(artifacts):
            specs[spec.id] = spec
    found = list(_check_head(plan))
    unknown: Collection[str] = ()
    if len(specs) < len(artifacts) or not paths.are_plain(specs):
        found += _check_ids(artifacts)
    if not (is_in_order(artifacts) if in_order is None else in_order):
        missing = list(_check_requirements(plan, specs))
        unknown = {problem.value for problem in missing if problem.code == "plan.missing"}
        found += missing
        found += _check_cycles(specs)
    if not _have_plain_paths(artifacts):
        found += _check_paths(artifacts)
        found += _check_producers(specs.values())
        found += _check_turns(specs) if not any(problem.code == "plan.cycle" for problem in found) else ()
    found += _check_artifacts(artifacts, plan.settings.vars, unknown)
    if plan.settings.pipelines:
        found += _check_pipelines(plan, specs)
    return found


def _have_plain_paths(artifacts: Collection[ArtifactSpec]) -> bool:
    """Whether what they read and write is spelled as usual, and every path is written by one of them alone."""
    produced = [path for spec in artifacts for path in spec.produces]
    sources = [path for spec in artifacts for path in spec.sources]
    if [spec for spec in artifacts if spec.modifies] or not (
        paths.are_plain(produced) and paths.are_plain({*sources}, signs=b"*?[]")
    ):
        return False
    outputs = set(produced)
    return len(outputs) == len(produced) and all(map(outputs.isdisjoint, map(_with_parents, paths.folders(produced))))


def _check_pipelines(plan: PlanSpec, specs: Mapping[str, ArtifactSpec]) -> Iterator[Problem]:
    """The pipelines themselves, and one unit of each as if it were expanded."""
    from headway.core.check_pipelines import check_pipeline, follows, place, samples  # most plans have none

    names: set[str] = set()
    artifacts = {a for a, spec in specs.items() if not spec.pipeline}
    for pipeline in plan.settings.pipelines:
        if pipeline.name in names:
            yield Problem(code="plan.duplicate", message=f"pipeline {pipeline.name} is given twice", key="pipelines")
        names.add(pipeline.name)
        problems = list(check_pipeline(pipeline, artifacts, plan.settings.pipelines))
        yield from problems
        sample = list(samples(pipeline, problems))
        own = [*_check_paths(sample), *_check_producers(sample), *_check_artifacts(sample, plan.settings.vars)]
        by_id = {spec.id: spec for spec in sample}
        for problem in own:
            spec = by_id[problem.artifact]
            message = problem.message.replace(f"artifact {spec.id}", f"pipeline {pipeline.name}, phase {spec.phase}")
            where = place(pipeline, pipeline.phase(spec.phase))
            located = msgspec.structs.replace(problem, message=message, artifact=where)
            if not follows(located, problems, pipeline):
                yield located


def _check_head(plan: PlanSpec) -> Iterator[Problem]:
    settings, profile = plan.settings, plan.profile
    if not plan.goal.strip():
        yield Problem(code="plan.goal", message="the plan has no goal", key="goal", hint="say what should exist")
    if plan.id and (why := plan_id_problem(plan.id)):
        yield Problem(code="plan.id", message=f"{plan.id!r} cannot be the id of a plan", key="id", hint=why)
    numbers: dict[str, float | None] = {
        name: getattr(settings, name) for name in ("complexity", "jobs", "timeout", "confirm_above", "store_up_to")
    }
    if settings.replan is not None:
        numbers["replan.most"] = settings.replan.most
    if profile is not None:
        numbers["profile.max_concurrent_tasks"] = profile.max_concurrent_tasks
    yield from _check_numbers(numbers, settings.retry, "")
    yield from _check_env(settings.env, "")
    if settings.replan is not None and settings.replan.planner and not _names_function(settings.replan.planner):
        named = settings.replan.planner
        message = f"replan.planner must be module:function or path/to/file.py:function, not {named!r}"
        yield Problem(code="plan.make", message=message, key="replan.planner", value=named)
    if settings.agents:
        from headway.core.agents import check_roles  # few plans have agents of their own

        yield from check_roles(settings.agents)


def _check_ids(artifacts: Iterable[ArtifactSpec]) -> Iterator[Problem]:
    seen: set[str] = set()
    for spec in artifacts:
        name = spec.id
        if name in seen:
            yield Problem(
                code="plan.duplicate",
                message=f"artifact {name} is given twice",
                artifact=name,
                hint="give one of them another id",
            )
        elif (
            why := artifact_id_problem(name) or (":*" in name and not spec.gathers and ":* stands for all units") or ""
        ):
            yield Problem(code="plan.id", message=f"{name!r} cannot be an artifact id", artifact=name, hint=why)
        seen.add(name)


def _is_of_a_pipeline(required: str, pipelines: Iterable[Pipeline]) -> bool:
    """Whether it is a phase of a unit, or of all units, that is there or may yet come."""
    unit, _, phase = required.rpartition("/")
    for pipeline in pipelines:
        if pipeline.phase(phase) is None:
            continue
        names = pipeline.units.names
        if unit == f"{pipeline.name}:*" or (unit in names if names else _may_come(unit)):
            return True
    return False


def _may_come(unit: str) -> bool:
    """Whether files, or an artifact, could ever name such a unit: `posts:*` and "" are none."""
    from headway.core.pipelines import unit_problem  # most plans have no pipelines

    return not unit_problem(unit)


def _hint_at_phase(required: str, pipelines: Iterable[Pipeline]) -> str:
    """How a phase of all units is required, where one is named that one pipeline alone has: `html`, `x:*/html`."""
    unit, _, phase = required.rpartition("/")
    having = [pipeline.name for pipeline in pipelines if pipeline.phase(phase)] if not unit or "*" in unit else []
    return f"did you mean {having[0]}:*/{phase}?" if len(having) == 1 else ""


def _check_requirements(plan: PlanSpec, specs: Mapping[str, ArtifactSpec]) -> Iterator[Problem]:
    nearest, pipelines = Nearest(specs), plan.settings.pipelines
    everyone = Nearest(f"{pipeline.name}:*/{phase.id}" for pipeline in pipelines for phase in pipeline.phases)
    for spec in plan.artifacts:
        for required in spec.requires:
            if required == spec.id:
                message, code, hint = "requires itself", "plan.self", "remove it from requires"
            elif required not in specs and not (_is_of_a_pipeline(required, pipelines) or name_elsewhere(required)):
                message, code = f"requires {required}, which is not in the plan", "plan.missing"
                starred = everyone.hint(required) if "*" in required else ""
                hint = starred or nearest.hint(required) or _hint_at_phase(required, pipelines)
            else:
                continue
            yield _problem(code, spec, f"artifact {spec.id} {message}", "requires", required, hint)


def _check_cycles(specs: Mapping[str, ArtifactSpec]) -> Iterator[Problem]:
    for cycle in ArtifactGraph.over(_without_themselves(specs)).cycles():
        message = f"artifacts require each other in a cycle: {_draw(cycle)}"
        yield _cycle(cycle, message, "remove one of these requirements, or merge the artifacts")


def _check_turns(specs: Mapping[str, ArtifactSpec]) -> Iterator[Problem]:
    """Who changes a file in place comes after who produces it, so that one must not wait for it."""
    makers = {path: name for name, spec in specs.items() for path in spec.produces}
    turns: dict[str, ArtifactSpec] = {}
    for name, spec in specs.items():
        if before := [makers[path] for path in spec.modifies if makers.get(path, name) != name]:
            turns[name] = msgspec.structs.replace(spec, requires=(*spec.requires, *before))
    for cycle in ArtifactGraph.over(_without_themselves({**specs, **turns})).cycles() if turns else ():
        message = f"artifacts wait for each other: {_draw(cycle)} (who modifies a file comes after who produces it)"
        yield _cycle(cycle, message, "remove one of these requirements, or let all of them modify the file")


def _cycle(cycle: list[str], message: str, hint: str) -> Problem:
    return Problem(code="plan.cycle", message=message, artifact=cycle[0], key="requires", value=cycle[-1], hint=hint)


def _without_themselves(specs: Mapping[str, ArtifactSpec]) -> dict[str, ArtifactSpec]:
    """The specs without requirements of themselves, which are problems of their own."""
    return {
        name: spec
        if name not in spec.requires
        else msgspec.structs.replace(spec, requires=tuple(r for r in spec.requires if r != name))
        for name, spec in specs.items()
    }


def _draw(cycle: list[str]) -> str:
    shown = cycle if len(cycle) <= CYCLE_SHOWN else [*cycle[:CYCLE_SHOWN], f"… {len(cycle) - CYCLE_SHOWN} more …"]
    return " → ".join((*shown, cycle[0]))


def _check_paths(artifacts: Iterable[ArtifactSpec]) -> Iterator[Problem]:
    is_plain = paths.PLAIN.fullmatch
    for spec in artifacts:
        wrong = [
            ("produces", path, why) for path in spec.produces if is_plain(path) is None and (why := _path_problem(path))
        ]
        if spec.modifies:
            wrong += [("modifies", path, why) for path in spec.modifies if (why := _path_problem(path))]
        if spec.sources:
            wrong += [("sources", path, why) for path in spec.sources if (why := _source_problem(path))]
        for key, path, why in wrong:
            message = f"artifact {spec.id} {'reads' if key == 'sources' else key} {path!r}, which {why}"
            yield _problem("plan.path", spec, message, key, path)


def _source_problem(path: str) -> str:
    plain = paths.normalise(path)
    if not path:
        return "is empty"
    if plain == "./":
        return "is the project itself; name what it reads in it"
    if plain.startswith("/"):
        return "is absolute; sources are given relative to the project"
    return "is inside .headway/, which every run changes" if plain.split("/", 1)[0] == ".headway" else ""


def _path_problem(path: str) -> str:
    if "*" in path or "?" in path:
        return "is a pattern; outputs are named one by one, or as a folder/"
    return paths.output_problem(path)


_Output = tuple[ArtifactSpec, str]
"""Who produces a path, and the path."""


def _check_producers(artifacts: Iterable[ArtifactSpec]) -> Iterator[Problem]:
    """Paths that have two producers, or that one artifact both produces and modifies."""
    owners: dict[str, _Output] = {}
    samples: dict[str, str] = {}  # of each folder
    produced = [(spec, paths.normalise(path)) for spec in artifacts for path in spec.produces if path]
    for output in produced:
        place = output[1].rstrip("/")
        samples[place.rpartition("/")[0]] = place
        first = owners.setdefault(place, output)
        if first is not output:
            yield _two_producers(output, first)
    above = {folder: there for folder, place in samples.items() if (there := _owners_above(place, owners))}
    for output in produced if above else ():
        spec, path = output
        for owner in above.get(path.rstrip("/").rpartition("/")[0], ()):
            if owner[0] is not spec or not owner[1].endswith("/"):
                yield _two_producers(output, owner)
    yield from _check_modified(artifacts, owners)


def _check_modified(artifacts: Iterable[ArtifactSpec], owners: Mapping[str, _Output]) -> Iterator[Problem]:
    for spec in artifacts:
        for path in map(paths.normalise, spec.modifies) if spec.modifies else ():
            exact, above = owners.get(path.rstrip("/")), _owners_above(path, owners)
            if any(owner[0] is spec for owner in (exact, *above) if owner):
                message = f"artifact {spec.id} both produces and modifies {path}"
                yield _problem("plan.output", spec, message, "modifies", path, "keep one of the two")
            elif above:
                owner, taken = above[0]
                message = f"artifact {spec.id} modifies {path}, which is a part of {taken} of artifact {owner.id}"
                yield _problem(
                    "plan.output", spec, message, "modifies", path, f"a folder is one output: modifies {taken}"
                )


def _with_parents(folder: str) -> list[str]:
    return [*paths.parents(folder), folder]


def _owners_above(path: str, owners: Mapping[str, _Output]) -> list[_Output]:
    return [owner for parent in paths.parents(path) if (owner := owners.get(parent)) is not None]


def _two_producers(later: _Output, first: _Output) -> Problem:
    (spec, path), (owner, taken) = later, first
    if taken != path:
        message = f"artifact {spec.id} produces {path}, which overlaps with {taken} of artifact {owner.id}"
    elif owner is spec:
        message = f"artifact {spec.id} produces {path} twice"
    else:
        message = f"artifacts {owner.id} and {spec.id} both produce {path}"
    hint = "name it once" if owner is spec else "one path has one producer; others may list it under modifies"
    return _problem("plan.producers", spec, message, "produces", path, hint)


def _check_artifacts(
    artifacts: Collection[ArtifactSpec], variables: Mapping[str, Any], unknown: Collection[str] = ()
) -> Iterator[Problem]:
    """What can be judged about each artifact by itself. Most say nothing that could be wrong by itself.

    `unknown`: what is required and cannot be, which is told already and suggested to nobody.
    """
    odd = {make for make in {spec.make for spec in artifacts} if not _names_function(make)}
    for spec in [
        spec
        for spec in artifacts
        if spec.run
        or spec.make in odd
        or spec.args
        or spec.env
        or spec.verify
        or spec.gates
        or spec.complexity is not None
        or spec.timeout is not None
        or spec.retry is not None
    ]:
        if spec.complexity is not None or spec.timeout is not None or spec.retry is not None:
            yield from _check_numbers({"complexity": spec.complexity, "timeout": spec.timeout}, spec.retry, spec.id)
        if spec.env:
            yield from _check_env(spec.env, spec.id)
        if spec.run or spec.args or spec.make in odd:
            yield from _check_recipe(spec)
        if spec.run or spec.verify or spec.gates:
            yield from _check_commands(spec, variables, unknown)


def _check_commands(spec: ArtifactSpec, variables: Mapping[str, Any], unknown: Collection[str]) -> Iterator[Problem]:
    from headway.core.placeholders import faults

    offer = _offer(spec, variables)
    if unknown:
        offer = offer._replace(unknown=unknown)
    for key, command in (("run", spec.run), ("verify", spec.verify)):
        for fault in faults(command, offer):
            message = f"artifact {spec.id}: in {key}, {fault.message}"
            yield _problem("plan.placeholder", spec, message, key, fault.text, fault.hint)
    if spec.gates:
        yield from _check_gates(spec, offer)


def _offer(spec: ArtifactSpec, variables: Mapping[str, Any]) -> Offer:
    from headway.core.placeholders import Offer

    if not spec.phase and not spec.templates:
        return Offer(len(spec.produces), _inputs(spec), variables)
    from headway.core.pipelines import named_phase

    own = {"unit": spec.unit, "file": spec.file, "state": spec.reads or spec.modifies, "prompt": spec.templates}
    inputs = [*_inputs(spec), *(named_phase(r.rpartition("/")[2]) for r in spec.requires)]
    has = [name for name, value in own.items() if value]
    return Offer(len(spec.outputs or spec.produces), inputs, variables, spec.outputs, has, phase=bool(spec.phase))


def _check_gates(spec: ArtifactSpec, offer: Offer) -> Iterator[Problem]:
    from headway.core.placeholders import faults

    for gate in spec.gates:
        where = f"artifact {spec.id}: gate {gate.name!r}"
        if not gate.name or gate.name != gate.name.strip() or not gate.name.isprintable():
            yield _problem("plan.gate", spec, f"{where} has no proper name", "gates", gate.name)
        if (gate.kind == "check") != bool(gate.run.strip()):
            hint = "a check has run: COMMAND, the others have not"
            yield _problem("plan.gate", spec, f"{where} is a {gate.kind}", "gates", gate.name, hint)
        if gate.quorum is not None and (why := RANGES["gates.quorum"].problem(gate.quorum)):
            yield _problem("plan.range", spec, f"{where}: quorum {why}", "gates", gate.name)
        if gate.by and gate.needed > len(gate.by):
            hint = "name more people, or lower its quorum"
            yield _problem("plan.gate", spec, f"{where} can never be passed", "gates", gate.name, hint)
        if gate.kind == "council" and not gate.by and gate.quorum is None:
            hint = "say who sits in it (by: [a, b, c]) or how many must approve (quorum: 2)"
            yield _problem("plan.gate", spec, f"{where} is a council of nobody", "gates", gate.name, hint)
        for fault in faults(gate.run, offer):
            yield _problem("plan.placeholder", spec, f"{where}: {fault.message}", "gates", fault.text, fault.hint)


def _inputs(spec: ArtifactSpec) -> Collection[str]:
    """What `{inputs.X}` may name: requirements, and those of other plans also without the plan."""
    elsewhere = [name[1] for r in spec.requires if (name := name_elsewhere(r)) is not None]
    return {*spec.requires, *elsewhere} if elsewhere else spec.requires


def _check_recipe(spec: ArtifactSpec) -> Iterator[Problem]:
    if spec.run and spec.make:
        message = f"artifact {spec.id} has both run and make"
        yield _problem("plan.recipe", spec, message, "make", "", "keep one of the two")
    if spec.args and not spec.make:
        message = f"artifact {spec.id} has args, but no make that could take them"
        yield _problem("plan.args", spec, message, "args", "", "name the function under make: module:function")
    if spec.make and not _names_function(spec.make):
        message = f"artifact {spec.id}: make must be module:function or path/to/file.py:function, not {spec.make!r}"
        yield _problem("plan.make", spec, message, "make", spec.make)


@lru_cache(maxsize=1024)
def _names_function(make: str) -> bool:
    place, _, function = make.rpartition(":")
    if place.endswith(".py"):
        return _is_dotted(function) and not paths.output_problem(place)
    return _is_dotted(function) and _is_dotted(place)


def _is_dotted(name: str) -> bool:
    return all(part.isidentifier() for part in name.split("."))


def _check_numbers(numbers: Mapping[str, float | None], retry: Retry | None, artifact: str) -> Iterator[Problem]:
    if retry is not None:
        numbers = {**numbers, "retry.attempts": retry.attempts, "retry.backoff": retry.backoff}
    for key, number in numbers.items():
        if number is not None and (why := RANGES[key].problem(number)):
            message = f"{_prefix(artifact)}{key} {why}"
            yield Problem(code="plan.range", message=message, artifact=artifact, key=key, value=str(number))


def _check_env(names: Iterable[str], artifact: str) -> Iterator[Problem]:
    for name in names:
        if not re.fullmatch(_ENV_NAME, name):
            yield Problem(
                code="plan.env",
                message=f"{_prefix(artifact)}{name!r} cannot be the name of an environment variable",
                artifact=artifact,
                key="env",
                value=name,
                hint="list names only, such as API_BASE",
            )


def _prefix(artifact: str) -> str:
    return f"artifact {artifact}: " if artifact else ""


def _problem(code: str, spec: ArtifactSpec, message: str, key: str, value: str, hint: str = "") -> Problem:
    return Problem(code=code, message=message, artifact=spec.id, key=key, value=value, hint=hint)
