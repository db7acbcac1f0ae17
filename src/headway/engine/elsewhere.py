"""What other plans have made, for those that require it: read, never run.

A requirement of another plan, `users:UserModel`, is judged by the rules of its own plan; one of a plan of another
project, `../api:users:UserModel`, by the files of that project. What is stale, failed or missing there blocks here, and
names the command that makes it. Plans may require each other as long as no artifact ends up requiring itself. All walks
are loops: plans may form chains of any length.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import suppress
from itertools import chain
from typing import TYPE_CHECKING, NamedTuple

import msgspec

from headway.core.check import Problem, check_plan
from headway.core.fingerprint import NOTHING
from headway.core.graph import ArtifactGraph, is_in_order
from headway.core.ids import as_word, name_elsewhere, place_name
from headway.core.plan import ArtifactSpec, PlanSpec
from headway.core.state import Output, State
from headway.engine.neighbours import Neighbour, at, neighbour, owners, root_of, seen_from
from headway.errors import HeadwayError
from headway.files.blobs import Blobs
from headway.store import PlanStore

if TYPE_CHECKING:
    from headway.engine.judge import Judge


class Found(NamedTuple):
    """What a plan can have of another: outputs and their content, or why it cannot be used and what makes it."""

    name: str
    outputs: tuple[Output, ...] = ()
    content: str = NOTHING
    problem: str = ""
    command: str = ""


class Elsewhere:
    """The other plans, as one judgement sees them."""

    def __init__(
        self,
        store: PlanStore,
        judge_of: Callable[[State], Judge],
        neighbour_of: Callable[[Neighbour, State], Judge] | None = None,
    ) -> None:
        self._store = store
        self._root = root_of(store)
        self._judge_of = judge_of
        self._neighbour_of = neighbour_of
        self._places: dict[str, Neighbour] = {}
        self._found: dict[str, Found] = {}
        self._errors: dict[str, HeadwayError] = {}
        self.sizes: dict[str, int] = {}
        """Of each plan's ledger, when it was read."""
        self.judges: dict[str, Judge | None] = {}
        self.judged: dict[str, list[str]] = {}
        self.texts: dict[str, Blobs] = {}
        """Where the texts of other projects are, by digest."""

    @property
    def leaves_the_project(self) -> bool:
        """Whether anything of another project was looked at."""
        return bool(self._places)

    def look_again(self) -> None:
        """The other plans as they are when they are next asked about."""
        for known in (self._places, self._found, self._errors, self.sizes, self.judges, self.judged):
            known.clear()

    def get(self, name: str) -> Found | None:
        """What stands behind a name; None if it is none of another plan's."""
        known = self._found.get(name)
        if known is None and name_elsewhere(name) is not None:
            full = self._full(name)
            if isinstance(full, Found):
                self._found[name] = full
            else:
                self._learn(full)
                self._found[name] = self._found[full]
            known = self._found[name]
        return known

    def beyond(self, way: str) -> Elsewhere:
        """The same as a plan of another project sees it."""
        return _Beyond(self, self._store, self._root, way)

    def _full(self, name: str) -> str | Found:
        """The name with the plan, where only the way to its project is given; or why nobody can tell which."""
        plan, artifact = _split(name)
        way, inner = place_name(plan)
        if inner:
            return name
        there = self._place(way)
        if there.problem:
            return Found(name, problem=there.problem, command=there.command)
        plans = owners(there.store, artifact)
        if len(plans) == 1:
            return f"{way}:{plans[0]}:{artifact}"
        if plans:
            problem = f"is in {_several(plans)} of {way}: say which, {way}:{plans[0]}:{artifact}"
        else:
            problem = f"is missing: no plan of {way} has it"
        return Found(name, problem=problem, command=f"headway plans list{at(self._root, way)}")

    def _place(self, way: str) -> Neighbour:
        if way not in self._places:
            self._places[way] = neighbour(self._root, way)
        return self._places[way]

    def _learn(self, name: str) -> None:
        """Judge what it is, after everything that it rests on, in whatever plan."""
        needs: dict[str, list[str]] = {}
        queue = [name]
        for node in queue:
            if node not in needs:
                needs[node] = self._needs(node)
                queue += needs[node]
        graph = ArtifactGraph(ArtifactSpec(id=node, requires=tuple(below)) for node, below in needs.items())
        order = graph.depths()
        for node in order:
            if node not in self._found:
                self._found[node] = self._judge(node)
        for node in needs:
            if node not in order:
                self._found[node] = Found(
                    node, problem="requires itself by way of other plans", command=self._why(node)
                )

    def _needs(self, node: str) -> list[str]:
        plan, artifact = _split(node)
        way, inner = place_name(plan)
        judge = self._plan(plan) if inner else None
        if judge is None or artifact not in judge.state.artifacts or node in self._found:
            return []
        spec = judge.state.artifacts[artifact]
        return [
            f"{plan}:{r}" if r in judge.state.artifacts else seen_from(self._root, way, r)
            for r in (*spec.requires, *judge.shared.after(artifact))
            if r in judge.state.artifacts or name_elsewhere(r) is not None
        ]

    def _plan(self, plan: str) -> Judge | None:
        if plan not in self.judges:
            way, inner = place_name(plan)
            there = self._place(way) if way else None
            try:
                if there is not None and there.problem:
                    self.judges[plan] = None
                    return None
                folder = (there.store if there is not None else self._store).folder(inner)
                self.sizes[plan] = _size(folder.path)
                execution = folder.load()
            except HeadwayError as error:
                self._errors[plan] = error
                execution = None
            if execution is None:
                self.judges[plan] = None
            elif there is not None and self._neighbour_of is not None:
                self.judges[plan] = self._neighbour_of(there, execution.state)
            else:
                self.judges[plan] = self._judge_of(execution.state)
        return self.judges[plan]

    def _judge(self, node: str) -> Found:
        plan, artifact = _split(node)
        way, inner = place_name(plan)
        if not inner:
            full = self._full(node)
            return full if isinstance(full, Found) else (self.get(full) or Found(node))
        judge = self._plan(plan)
        if judge is None:
            return self._missing(node, plan)
        state = judge.state
        if artifact not in state.artifacts:
            problem = f"is missing: plan {inner} has no such artifact"
            return Found(node, problem=problem, command=f"headway plans show {inner}{at(self._root, way)}")
        reason = judge.again(artifact)
        self.judged.setdefault(plan, []).append(artifact)
        made = Found(node, self._outputs(way, judge.recorded(artifact)), judge.content(artifact))
        makes = "run" if state.artifacts[artifact].has_recipe else "claim"
        command = f"headway {makes} {as_word(artifact)} --plan-id {inner}{at(self._root, way)}"
        if artifact in state.claims:
            return made._replace(
                problem="is being made now", command=f"headway status --plan-id {inner}{at(self._root, way)}"
            )
        if not reason.fresh:
            word = "failed" if artifact in state.failed else "is stale"
            text = state.failed[artifact].error if artifact in state.failed else reason.text
            return made._replace(problem=f"{word}: {text}", command=command)
        return made

    def _why(self, node: str) -> str:
        plan, artifact = _split(node)
        way, inner = place_name(plan)
        return f"headway why {as_word(artifact)} --plan-id {inner}{at(self._root, way)}"

    def _missing(self, node: str, plan: str) -> Found:
        way, inner = place_name(plan)
        error = self._errors.get(plan)
        if error is not None:
            return Found(
                node, problem=f"cannot be read: {error.message}", command=f"headway doctor{at(self._root, way)}"
            )
        there = self._places.get(way)
        if there is not None and there.problem:
            return Found(node, problem=there.problem, command=there.command)
        problem = f"is missing: there is no plan {inner}"
        return Found(node, problem=problem, command=f"headway plans new FILE{at(self._root, way)}")

    def _outputs(self, way: str, outputs: tuple[Output, ...]) -> tuple[Output, ...]:
        """Outputs by their paths from here; the texts of another project are in that project's blobs."""
        if not way:
            return outputs
        blobs = self._places[way].store.blobs
        if blobs is not None:
            self.texts.update((output.digest, blobs) for output in outputs if not output.path)
        return tuple(
            msgspec.structs.replace(output, path=f"{way}/{output.path}") if output.path else output
            for output in outputs
        )


class _Beyond(Elsewhere):
    """What a plan of another project can have: its names mean something over there."""

    def __init__(self, home: Elsewhere, store: PlanStore, root: str, way: str) -> None:
        super().__init__(store, home._judge_of)
        self._home, self._from, self._way = home, root, way

    def get(self, name: str) -> Found | None:
        """What stands behind a name over there."""
        return self._home.get(seen_from(self._from, self._way, name)) if name_elsewhere(name) is not None else None


def _size(folder: str) -> int:
    try:
        return os.path.getsize(os.path.join(folder, "ledger.jsonl"))
    except OSError:
        return 0


def _split(node: str) -> tuple[str, str]:
    """Plan and artifact of a node."""
    name = name_elsewhere(node)
    assert name is not None, f"{node} names a plan"
    return name


# What is wrong with a plan beside others.


def resolved(plan: PlanSpec, plan_id: str, store: PlanStore) -> tuple[PlanSpec, list[Problem]]:
    """The plan with each plain name of another plan's artifact in full, and the names that could be of several.

    What an artifact was recorded with stays, whatever others have made since: to say the same is no change.
    """
    given = _not_among({spec.id for spec in plan.artifacts}, plan.artifacts)
    if not given:
        return plan, []
    plain = {r for r in given if name_elsewhere(r) is None and r.strip()}
    having = _having(store, plan_id, plain) if plain else {}
    having.update(_having_beyond(store, given))
    if not having:
        return plan, []
    full = _full_names(plan, plan_id, store, having)
    problems = [
        Problem(
            code="plan.ambiguous",
            message=f"artifact {spec.id} requires {r}, which {_several([_split(n)[0] for n in having[r]])} have",
            artifact=spec.id,
            key="requires",
            value=r,
            hint=f"say which: {min(having[r])}",
        )
        for spec in plan.artifacts
        for r in spec.requires
        if r in having and (spec.id, r) not in full
    ]
    specs = tuple(
        msgspec.structs.replace(spec, requires=tuple(sorted({full.get((spec.id, r), r) for r in spec.requires})))
        if not having.keys().isdisjoint(spec.requires)
        else spec
        for spec in plan.artifacts
    )
    return msgspec.structs.replace(plan, artifacts=specs), problems


def _full_names(
    plan: PlanSpec, plan_id: str, store: PlanStore, having: Mapping[str, list[str]]
) -> dict[tuple[str, str], str]:
    """What each artifact means by a name that others may have: as it was recorded, or the only one that it can be."""
    existing = None
    with suppress(HeadwayError):  # whoever needs the plan itself is told what is the matter with it
        existing = store.load(plan_id)
    recorded, completed = (existing.state.artifacts, existing.state.completed) if existing is not None else ({}, {})
    found: dict[tuple[str, str], str] = {}
    for spec in plan.artifacts:
        before = recorded[spec.id].requires if spec.id in recorded else ()
        for r in having.keys() & set(spec.requires):
            meant = having[r] if len(having[r]) == 1 else [name for name in having[r] if name in before]
            if len(meant) == 1:
                found[spec.id, r] = r if r in before and spec.id in completed else meant[0]
    return found


def _not_among(own: Collection[str], specs: Iterable[ArtifactSpec]) -> set[str]:
    """What these artifacts require besides the plan's own."""
    return set(chain.from_iterable(spec.requires for spec in specs)).difference(own)


def _having(store: PlanStore, plan_id: str, plain: set[str]) -> dict[str, list[str]]:
    """For each plain name, the full names that it may stand for."""
    found: dict[str, list[str]] = {}
    for other in store.list_recent(None):
        if other.plan_id != plan_id:
            for name in plain & other.state.artifacts.keys():
                found.setdefault(name, []).append(f"{other.plan_id}:{name}")
    return found


def _having_beyond(store: PlanStore, given: set[str]) -> dict[str, list[str]]:
    """The same for names that give only the way to another project."""
    found: dict[str, list[str]] = {}
    for name in given:
        parts = name_elsewhere(name)
        way, inner = place_name(parts[0]) if parts is not None else ("", "")
        if parts is None or not way or inner:
            continue
        there = neighbour(root_of(store), way)
        plans = owners(there.store, parts[1]) if not there.problem else []
        if plans:
            found[name] = [f"{way}:{plan}:{parts[1]}" for plan in plans]
    return found


def _several(plans: list[str]) -> str:
    shown = sorted(plans)[:4]
    return f"plans {', '.join(shown[:-1])} and {shown[-1]}" + (f" and {len(plans) - 4} more" if len(plans) > 4 else "")


def check_beside_others(plan: PlanSpec, plan_id: str, store: PlanStore) -> list[Problem]:
    """Every problem of a plan, those with other plans included."""
    if is_in_order(plan.artifacts) and not plan.settings.pipelines:
        return check_plan(plan, in_order=True)  # which asks nothing of others
    full, ambiguous = resolved(plan, plan_id, store)
    doubtful = {(p.artifact, p.value) for p in ambiguous}
    found = [p for p in check_plan(full) if p.code != "plan.missing" or (p.artifact, p.value) not in doubtful]
    return [*found, *ambiguous, *_names_of_both(full, plan_id, store), *_problems_across(full, plan_id, store)]


def _names_of_both(plan: PlanSpec, plan_id: str, store: PlanStore) -> Iterator[Problem]:
    """What stands before a colon names a pipeline of this plan or another plan: one name for both says neither."""
    pipelines = {pipeline.name.lower(): pipeline for pipeline in plan.settings.pipelines}
    both = {name.lower() for name in store.ids() if name != plan_id} & pipelines.keys() if pipelines else set()
    if not both:
        return
    own = {spec.id: spec for spec in plan.artifacts if not spec.pipeline}
    phases = _phases(plan)
    for place, spec in {**own, **phases}.items():
        for required in spec.requires:
            name, colon, _ = required.partition(":")
            if colon and name.lower() in both and required not in own:
                what = "phase" if place in phases else "artifact"
                yield Problem(
                    code="plan.ambiguous",
                    message=f"{what} {place} requires {required}: {name} is a pipeline here, and another plan",
                    artifact=place,
                    key="requires",
                    value=required,
                    hint="give the pipeline another name",
                )


def _phases(plan: PlanSpec) -> dict[str, ArtifactSpec]:
    """Phases by where a problem of theirs is."""
    return {f"{p.name}:{phase.id}": phase for p in plan.settings.pipelines for phase in p.phases}


def _problems_across(plan: PlanSpec, plan_id: str, store: PlanStore) -> Iterator[Problem]:
    own = {spec.id: spec for spec in plan.artifacts}
    starts: list[str] = []
    phases = _phases(plan)
    given = {**own, **phases}
    named = {r: name for r in _not_among(own, given.values()) if (name := name_elsewhere(r)) is not None}
    for place, spec in given.items() if named else ():
        for r in spec.requires:
            name = named.get(r)
            if name is None:
                continue
            what = "phase" if place in phases else "artifact"
            way, _ = place_name(name[0])
            problem = _wrong_way(root_of(store), way) if way else None
            if problem is not None:
                message, hint = problem
                yield Problem(
                    code="plan.outside",
                    message=f"{what} {place} requires {r}, which {message}",
                    artifact=place,
                    key="requires",
                    value=r,
                    hint=hint,
                )
            elif name[0] == plan_id:
                yield Problem(
                    code="plan.itself",
                    message=f"{what} {place} requires {r}, which names this plan itself",
                    artifact=place,
                    key="requires",
                    value=r,
                    hint=f"write {name[1]}",
                )
            elif place in own:
                starts.append(place)
    if starts:
        yield from _cycles(own, starts, plan_id, store)


def _wrong_way(root: str, way: str) -> tuple[str, str] | None:
    """What is wrong with a way to another project, and what to write instead; None if it may be gone."""
    there = neighbour(root, way)
    if there.root == root:
        return "names this project itself", "leave the way out: PLAN:ARTIFACT"
    if there.problem == "leads out of the workspace":
        return there.problem, "require only what is in the same workspace; headway dag workspace shows it"
    return None


def _cycles(own: dict[str, ArtifactSpec], starts: list[str], plan_id: str, store: PlanStore) -> Iterator[Problem]:
    """Circles that lead through other plans and back. What cannot be read there leads nowhere."""
    plans: dict[str, dict[str, ArtifactSpec]] = {plan_id: own}
    needs: dict[str, tuple[str, ...]] = {}
    queue = [f"{plan_id}:{a}" for a in dict.fromkeys(starts)]
    for node in queue:
        if node in needs:
            continue
        plan, artifact = _split(node)
        if plan not in plans:
            plans[plan] = _structure(plan, store)
        spec = plans[plan].get(artifact)
        names = spec.requires if spec is not None else ()
        root, way = root_of(store), place_name(plan)[0]
        needs[node] = below = tuple(
            f"{plan}:{r}" if r in plans[plan] else seen_from(root, way, r)
            for r in names
            if r in plans[plan] or name_elsewhere(r) is not None
        )
        queue += below
    for cycle in ArtifactGraph(ArtifactSpec(id=n, requires=below) for n, below in needs.items()).cycles():
        mine = [node for node in cycle if _split(node)[0] == plan_id]
        if len(mine) == len(cycle) or not mine:
            continue
        at = cycle.index(mine[0])
        yield Problem(
            code="plan.cycle",
            message=f"artifacts of several plans require each other in a cycle: {' → '.join((*cycle, cycle[0]))}",
            artifact=_split(mine[0])[1],
            key="requires",
            value=cycle[at - 1],
            hint="remove one of these requirements, or merge the artifacts",
        )


def _structure(plan: str, store: PlanStore) -> dict[str, ArtifactSpec]:
    way, inner = place_name(plan)
    if way:
        there = neighbour(root_of(store), way)
        if there.problem or not inner:
            return {}
        store = there.store
    try:
        execution = store.folder(inner).load()
    except HeadwayError:
        return {}
    return execution.state.artifacts if execution is not None else {}
