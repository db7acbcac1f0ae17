"""The graph of artifacts: who needs whom, in which order, at which depth.

Knows specs; never files, status or time. Every order it gives is the plan's own: never that of a set.
All walks are loops, so depth is bounded by memory and not by the interpreter's stack.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from operator import itemgetter
from typing import Any, Literal

import msgspec

from headway.core.plan import ArtifactSpec
from headway.errors import UsageError

Tier = Literal["small", "medium", "large"]


class ArtifactGraph:
    """Artifacts by id, in plan order, with their edges.

    Edges run from what is required to what requires it: leaves require nothing, nothing requires roots.
    A requirement that the graph does not have is remembered by `missing` and otherwise ignored.
    """

    __slots__ = ("_artifacts", "_dependents", "_depths")

    def __init__(self, artifacts: Iterable[ArtifactSpec] = ()) -> None:
        self._artifacts: dict[str, ArtifactSpec] = {}
        self._dependents: dict[str, list[str]] | None = None
        self._depths: dict[str, int] | None = None
        for spec in artifacts:
            self.add(spec)

    @classmethod
    def over(cls, artifacts: dict[str, ArtifactSpec]) -> ArtifactGraph:
        """A graph over a mapping that is already keyed by id; the mapping is shared, not copied."""
        graph = cls()
        graph._artifacts = artifacts
        return graph

    def add(self, spec: ArtifactSpec) -> None:
        """Add one artifact; it may require what is not there yet."""
        if spec.id in self._artifacts:
            raise UsageError(f"Artifact {spec.id} is there already", code="plan.duplicate", hint="give it another id")
        self._artifacts[spec.id] = spec
        self._dependents = self._depths = None

    @property
    def artifacts(self) -> Mapping[str, ArtifactSpec]:
        """All artifacts by id, in plan order."""
        return self._artifacts

    def __getitem__(self, artifact_id: str) -> ArtifactSpec:
        return self._artifacts[artifact_id]

    def __contains__(self, artifact_id: object) -> bool:
        return artifact_id in self._artifacts

    def __iter__(self) -> Iterator[str]:
        return iter(self._artifacts)

    def __len__(self) -> int:
        return len(self._artifacts)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ArtifactGraph) and list(self._artifacts.items()) == list(other._artifacts.items())

    __hash__ = None  # type: ignore[assignment]  # mutable until built, so equal but not hashable

    def __repr__(self) -> str:
        return f"ArtifactGraph({len(self)} artifacts)"

    def dependents(self, artifact_id: str) -> list[str]:
        """What requires it directly, in plan order."""
        if self._dependents is None:
            edges: dict[str, list[str]] = defaultdict(list)
            for spec in self._artifacts.values():
                for required in spec.requires:
                    edges[required].append(spec.id)
            self._dependents = edges
        return self._dependents.get(artifact_id, [])

    def get_dependents(self, artifact_id: str) -> set[str]:
        """The same as a set of its own; an unknown id has none."""
        return set(self.dependents(artifact_id))

    def leaves(self) -> list[str]:
        """Artifacts that require nothing."""
        return [spec.id for spec in self._artifacts.values() if not spec.requires]

    def roots(self) -> list[str]:
        """Artifacts that nothing requires."""
        return [artifact_id for artifact_id in self._artifacts if not self.dependents(artifact_id)]

    def missing(self) -> dict[str, list[str]]:
        """Per artifact, the requirements that the graph does not have."""
        known = self._artifacts
        gaps = ((s.id, [r for r in s.requires if r not in known]) for s in known.values())
        return {artifact_id: names for artifact_id, names in gaps if names}

    def depths(self) -> dict[str, int]:
        """Depth by id: 0 for leaves, else one more than the deepest requirement.

        In an order in which requirements come first. Artifacts on or behind a cycle have no depth.
        """
        if self._depths is None:
            placed = self._in_one_pass()
            self._depths = self._by_waiting() if placed is None else dict(sorted(placed.items(), key=itemgetter(1)))
        return self._depths

    def _in_one_pass(self) -> dict[str, int] | None:
        """The depths where requirements stand before what requires them, as in most plans; None for any other."""
        known, placed = self._artifacts, dict[str, int]()
        depth_of = placed.__getitem__
        for artifact_id, spec in known.items():
            try:
                placed[artifact_id] = max(map(depth_of, spec.requires)) + 1 if spec.requires else 0
            except KeyError:  # it is not in the graph, or comes later
                if any(required in known and required not in placed for required in spec.requires):
                    return None
                placed[artifact_id] = max((placed[r] for r in spec.requires if r in placed), default=-1) + 1
        return placed

    def _by_waiting(self) -> dict[str, int]:
        """The depths in any plan: each when the last that it requires has got its own."""
        ids = list(self._artifacts)
        place = {artifact_id: n for n, artifact_id in enumerate(ids)}
        waiting, depth = [0] * len(ids), [0] * len(ids)
        followers: list[list[int]] = [[] for _ in ids]  # numbers: a large graph is walked faster by them than by names
        for n, spec in enumerate(self._artifacts.values()):
            for required in spec.requires:
                if (needed := place.get(required)) is not None:
                    waiting[n] += 1
                    followers[needed].append(n)
        queue = [n for n, count in enumerate(waiting) if count == 0]
        for n in queue:
            below = depth[n] + 1
            for follower in followers[n]:
                waiting[follower] -= 1
                if waiting[follower] == 0:
                    depth[follower] = below
                    queue.append(follower)
        return {ids[n]: depth[n] for n in queue}

    def depth(self, artifact_id: str) -> int:
        """Its depth; -1 for an id that has none."""
        return self.depths().get(artifact_id, -1)

    def topological_sort(self) -> list[str]:
        """Ids with requirements first; a cycle is an error."""
        order = list(self.depths())
        self._refuse_cycle(len(order))
        return order

    def execution_waves(self) -> list[list[str]]:
        """Ids by depth, each wave in plan order; a cycle is an error."""
        waves = self.waves()
        self._refuse_cycle(sum(map(len, waves)))
        return waves

    def waves(self) -> list[list[str]]:
        """As `execution_waves`, leaving out whatever is on or behind a cycle: for drafts."""
        depth = self._depths or self._in_one_pass() or self.depths()  # their order is of no interest here
        waves: list[list[str]] = [[] for _ in range(max(depth.values(), default=-1) + 1)]
        for artifact_id in self._artifacts:
            if (place := depth.get(artifact_id)) is not None:
                waves[place].append(artifact_id)
        return waves

    def _refuse_cycle(self, ordered: int) -> None:
        if ordered < len(self):
            cycle = self.cycle()
            raise UsageError(
                "The plan has a cycle",
                facts={"cycle": " → ".join((*cycle, cycle[0]))},
                hint="remove one of these requirements, or merge the artifacts that need each other",
                code="plan.cycle",
            )

    def cycles(self) -> list[list[str]]:
        """One cycle of each knot of artifacts that need each other, as a path: what is required comes first."""
        known, placed = self._artifacts, self.depths()
        if len(placed) == len(known):
            return []
        stuck = {artifact_id for artifact_id in known if artifact_id not in placed}
        needs = {a: [r for r in known[a].requires if r in stuck] for a in known if a in stuck}
        return [self._around(knot, needs) for knot in _knots(needs)]

    def _around(self, knot: list[str], needs: Mapping[str, list[str]]) -> list[str]:
        """Walk within a knot until an artifact comes up again."""
        members = set(knot)
        current = next(a for a in self._artifacts if a in members)
        path: list[str] = []
        position: dict[str, int] = {}
        while current not in position:
            position[current] = len(path)
            path.append(current)
            current = next(r for r in needs[current] if r in members)
        return path[position[current] :][::-1]

    def cycle(self) -> list[str]:
        """One cycle as a path, or nothing."""
        return next(iter(self.cycles()), [])

    def subgraph(self, ids: Collection[str]) -> ArtifactGraph:
        """Only these artifacts; requirements outside the set are dropped."""
        kept = set(ids)
        return ArtifactGraph(
            spec
            if all(r in kept for r in spec.requires)
            else msgspec.structs.replace(spec, requires=tuple(r for r in spec.requires if r in kept))
            for spec in self._artifacts.values()
            if spec.id in kept
        )

    def below(self, ids: Iterable[str]) -> list[str]:
        """These and everything that they require, directly or not, in plan order."""
        seen = self.closure(ids)
        return [artifact_id for artifact_id in self._artifacts if artifact_id in seen]

    def closure(self, ids: Iterable[str], also: Callable[[str], Iterable[str]] = lambda _: ()) -> set[str]:
        """These and everything that they require, or need besides by what `also` says of each, directly or not."""
        seen = {artifact_id for artifact_id in ids if artifact_id in self._artifacts}
        queue = list(seen)
        for artifact_id in queue:
            for needed in (*self._artifacts[artifact_id].requires, *also(artifact_id)):
                if needed in self._artifacts and needed not in seen:
                    seen.add(needed)
                    queue.append(needed)
        return seen

    def above(self, ids: Iterable[str]) -> list[str]:
        """These and everything that requires them, directly or not, in plan order."""
        seen = {artifact_id for artifact_id in ids if artifact_id in self._artifacts}
        if seen and (self._dependents is not None or not self._reach_in_one_pass(seen)):
            queue = list(seen)
            for artifact_id in queue:
                for dependent in self.dependents(artifact_id):
                    if dependent not in seen:
                        seen.add(dependent)
                        queue.append(dependent)
        return [artifact_id for artifact_id in self._artifacts if artifact_id in seen]

    def _reach_in_one_pass(self, seen: set[str]) -> bool:
        """Add to these whatever requires one of them; False, and not all of it, if requirements stand anywhere."""
        placed: set[str] = set()
        for artifact_id, spec in self._artifacts.items():
            requires = spec.requires
            if requires:
                if not placed.issuperset(requires):
                    return False
                if not seen.isdisjoint(requires):
                    seen.add(artifact_id)
            placed.add(artifact_id)
        return True

    def tier(self, artifact_id: str) -> Tier:
        """The model tier that RFC-036's code gives: leaves small, up to two requirements medium, else large."""
        spec = self._artifacts[artifact_id]
        if not spec.requires:
            return "small"
        return "medium" if len(spec.requires) <= 2 else "large"

    def to_dict(self) -> dict[str, Any]:
        """RFC-040's shape: artifacts by id and their waves."""
        return {
            "artifacts": {spec.id: artifact_to_dict(spec) for spec in self._artifacts.values()},
            "waves": self.waves(),
        }

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> ArtifactGraph:
        """Read back what `to_dict` wrote; waves are derived and not read."""
        return cls(artifact_from_dict(item) for item in data.get("artifacts", {}).values())

    def to_mermaid(self) -> str:
        """A Mermaid flow chart."""
        number = {artifact_id: f"n{i}" for i, artifact_id in enumerate(self._artifacts)}
        label = {a: a.replace('"', "#quot;") for a in self._artifacts}
        lines = ["graph TD", *(f'    {number[a]}["{label[a]}"]' for a in self._artifacts)]
        for spec in self._artifacts.values():
            lines += [f"    {number[r]} --> {number[spec.id]}" for r in spec.requires if r in number]
        return "\n".join(lines)


def is_in_order(artifacts: Collection[ArtifactSpec]) -> bool:
    """Whether no id is given twice and each requires only what stands before it: none is missing, and none circles."""
    seen: set[str] = set()
    for spec in artifacts:
        if not seen.issuperset(spec.requires):
            return False
        seen.add(spec.id)
    return len(seen) == len(artifacts)


def _knots(needs: Mapping[str, list[str]]) -> list[list[str]]:
    """Strongly connected groups that hold a cycle, by Tarjan's walk without recursion."""
    index: dict[str, int] = {}
    low: dict[str, int] = {}
    open_: dict[str, None] = {}
    knots: list[list[str]] = []
    for start in needs:
        if start in index:
            continue
        index[start] = low[start] = len(index)
        open_[start] = None
        walk = [(start, iter(needs[start]))]
        while walk:
            current, rest = walk[-1]
            following = next(rest, None)
            if following is None:
                walk.pop()
                if walk:
                    low[walk[-1][0]] = min(low[walk[-1][0]], low[current])
                if low[current] == index[current]:
                    knot = _unwind(open_, current)
                    if len(knot) > 1 or current in needs[current]:
                        knots.append(knot)
            elif following not in index:
                index[following] = low[following] = len(index)
                open_[following] = None
                walk.append((following, iter(needs[following])))
            elif following in open_:
                low[current] = min(low[current], index[following])
    return knots


def _unwind(open_: dict[str, None], until: str) -> list[str]:
    knot = []
    while True:
        last, _ = open_.popitem()
        knot.append(last)
        if last == until:
            return knot


def artifact_to_dict(spec: ArtifactSpec) -> dict[str, Any]:
    """All that the spec says, plus RFC-040's keys, which are always present."""
    data: dict[str, Any] = {
        "id": spec.id,
        "description": spec.description,
        "contract": spec.contract,
        "requires": list(spec.requires),
        "produces_file": spec.produces_file,
        "domain_type": spec.domain_type or None,
    }
    rest: dict[str, Any] = msgspec.to_builtins(spec)
    return data | {k: v for k, v in rest.items() if k not in data}


def artifact_from_dict(data: Mapping[str, Any]) -> ArtifactSpec:
    """Read `artifact_to_dict`'s shape, or RFC-040's own with `produces_file` alone."""
    item = {k: v for k, v in data.items() if v is not None}
    path = item.pop("produces_file", None)
    if path and not item.get("produces"):
        item["produces"] = [path]
    item["requires"] = sorted(set(item.get("requires", ())))
    spec: ArtifactSpec = msgspec.convert(item, ArtifactSpec)
    return spec


def find_invalidated(graph: ArtifactGraph, changed_ids: Iterable[str]) -> set[str]:
    """The changed artifacts and everything that depends on them, directly or not."""
    changed = set(changed_ids)
    return changed | set(graph.above(changed))
