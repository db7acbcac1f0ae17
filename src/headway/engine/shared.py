"""Files that several artifacts change in place: who comes after whom, and whose bytes are to be seen by whom.

A path that artifacts name in `modifies` is a chain of stages: its producer, if it has one, then its modifiers in
dependency order, then plan order. Whoever requires a stage reads the bytes as that stage left them; whoever names the
path in `reads`, as the stage before it in that order; whoever names it as a source, what the last one left.
`after` is order without bytes. Knows the plan; never files.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from typing import NamedTuple

from headway.core.graph import ArtifactGraph
from headway.core.plan import ArtifactSpec


class Use(NamedTuple):
    """An artifact's use of a shared path: it reads what one stage left, or it is a stage itself."""

    path: str
    stage: str | None
    changes: bool

    def suits(self, other: Use) -> bool:
        """Whether both can use the path at the same time: only to read the same bytes."""
        return not self.changes and not other.changes and self.stage == other.stage


class Shared:
    """The chains of one plan. Most plans have none."""

    def __init__(self, graph: ArtifactGraph) -> None:
        self._graph = graph
        self.chains: dict[str, list[str]] = {}
        self._place: dict[str, dict[str, int]] = {}
        self._paths: dict[str, list[str]] = {}
        self._readers: dict[str, dict[str, str | None]] = {}
        self._strangers: list[str] = []
        self._after: dict[str, list[str]] = {}
        self._courtesy: dict[str, list[str]] = {}
        self._order: list[str] = []
        modified: dict[str, None] = {}
        read: set[str] = set()
        self.ordered = False
        """Whether anything has its place by more than what it requires."""
        for spec in graph.artifacts.values():
            if spec.modifies or spec.after or spec.iteration or spec.reads:
                modified.update(dict.fromkeys(spec.modifies))
                modified.update(dict.fromkeys(spec.produces if spec.iteration else ()))
                read.update(spec.reads)
                self.ordered = True
        if self.ordered:
            makers = self._makers({*modified, *read})
            modified.update(dict.fromkeys(path for path in makers if path in read))
            self._order = _sorted(graph.artifacts, lambda a: self._asked_with(a, makers), _is_about_files)
        if modified:
            self._build(modified)

    def _makers(self, paths: Collection[str]) -> dict[str, str]:
        """Who produces each of these paths, as far as somebody does."""
        specs = self._graph.artifacts.values()
        return {path: spec.id for spec in specs if not spec.gathers for path in spec.produces if path in paths}

    def _asked_with(self, artifact_id: str, makers: Mapping[str, str]) -> Iterable[str]:
        """What comes before an artifact, with whoever produces what it changes or reads in place."""
        spec = self._graph[artifact_id]
        own = [makers[path] for path in (*spec.modifies, *spec.reads) if path in makers]
        return (*self._asked(artifact_id), *own) if own else self._asked(artifact_id)

    def _asked(self, artifact_id: str) -> Iterable[str]:
        spec = self._graph[artifact_id]
        return (*spec.requires, *spec.after) if spec.after else spec.requires

    def _build(self, modified: Collection[str]) -> None:
        self._find_stages(self._order, modified)
        sources = self._source_readers(modified)
        self._find_readers(self._order, {})
        for artifact_id, path in sources:
            self._readers.setdefault(artifact_id, {})[path] = self.chains[path][-1]
        self._link(self.chains)
        for artifact_id, path in sources:
            self._after.setdefault(artifact_id, []).append(self.chains[path][-1])
        for stuck in self._stuck():
            self._courtesy.pop(stuck, None)
        if sources:
            self._order = _sorted(self._graph.artifacts, lambda a: (*self._asked(a), *self.after(a)), _is_about_files)

    def _find_stages(self, order: Iterable[str], modified: Collection[str]) -> None:
        """The stages of these paths, in order, each with its place."""
        self.chains.update({path: [] for path in modified})
        stages = [a for a in order if not self._graph[a].gathers]
        for listed in ("produces", "modifies"):
            for artifact_id in stages:
                for path in getattr(self._graph[artifact_id], listed):
                    if path in modified:
                        self.chains[path].append(artifact_id)
                        self._paths.setdefault(artifact_id, []).append(path)
        for path in modified:
            self._place[path] = {stage: place for place, stage in enumerate(self.chains[path])}

    def _find_readers(self, order: Iterable[str], latest: dict[str, str | None]) -> None:
        """Who reads a path without changing it: as of the newest stage that it requires, or that comes before it."""
        for artifact_id in order:
            spec = self._graph[artifact_id]
            if spec.gathers:
                continue
            reads = {path: latest.get(path) for path in spec.reads if path in self.chains}
            for stage in self._standing_for(spec.requires):
                for path in self._paths.get(stage, ()):
                    place = self._place[path]
                    known = reads.get(path)
                    if artifact_id not in place and (known is None or place[known] < place[stage]):
                        reads[path] = stage
            if reads:
                self._readers[artifact_id] = reads
                if any(
                    s is not None and self._graph[s].iteration and self._graph[s].unit != spec.unit
                    for s in reads.values()
                ):
                    self._strangers.append(artifact_id)
            latest.update(dict.fromkeys(self._paths.get(artifact_id, ()), artifact_id))

    def _standing_for(self, required: Iterable[str]) -> Iterator[str]:
        """Artifacts, and instead of those that stand for others, these."""
        stack = list(required)
        while stack:
            artifact_id = stack.pop()
            spec = self._graph.artifacts.get(artifact_id)
            if spec is not None and spec.gathers in ("last", "all"):
                stack.extend(spec.requires)
            elif spec is not None:
                yield artifact_id

    def _source_readers(self, modified: Collection[str]) -> list[tuple[str, str]]:
        """Artifacts that name a shared path as a source, unless the file is made with their help."""
        found = [
            (artifact_id, path)
            for artifact_id, spec in self._graph.artifacts.items()
            for path in spec.sources
            if path in modified and artifact_id not in self._place[path]
        ]
        needed = {path: set(self._graph.below(self.chains[path])) for path in {path for _, path in found}}
        return [(artifact_id, path) for artifact_id, path in found if artifact_id not in needed[path]]

    def _link(self, paths: Iterable[str]) -> None:
        """Stages follow each other; readers of a stage come before the next one, where that is possible."""
        readers: dict[tuple[str, str | None], list[str]] = {}
        wanted = set(paths)
        for reader, uses in self._readers.items():
            for path, stage in uses.items():
                if path in wanted:
                    self._link_to(reader, stage if path in self._graph[reader].reads else None)
                    readers.setdefault((path, stage), []).append(reader)
        for path in wanted:
            before: str | None = None
            for stage in self.chains[path]:
                self._link_to(stage, before)
                if (path, before) in readers:
                    self._courtesy.setdefault(stage, []).extend(readers[path, before])
                before = stage

    def _link_to(self, follower: str, stage: str | None) -> None:
        """One comes after the other; after a loop of another unit when that has come to its end."""
        if stage is not None:
            spec = self._graph[stage]
            whole = [f"{spec.unit}/{spec.phase}"] if spec.iteration and self._graph[follower].unit != spec.unit else []
            self._after.setdefault(follower, []).extend([stage, *whole])

    def _stuck(self) -> set[str]:
        """What could never start if every reader had to come first: those readers read the file put back."""
        if not self._courtesy:
            return set()
        needs = {
            a: {r for r in (*self._asked(a), *self.after(a), *self.courtesy(a)) if r in self._graph}
            for a in self._graph.artifacts
        }
        waiting = {a: len(required) for a, required in needs.items()}
        followers: dict[str, list[str]] = {}
        for a, required in needs.items():
            for r in required:
                followers.setdefault(r, []).append(a)
        queue = [a for a, count in waiting.items() if count == 0]
        for a in queue:
            for follower in followers.get(a, ()):
                waiting[follower] -= 1
                if waiting[follower] == 0:
                    queue.append(follower)
        return set(waiting) - set(queue)

    # One unit, whose loop goes on or is cut short.

    def are_of_one_unit(self, added: Iterable[ArtifactSpec], removed: Iterable[str]) -> bool:
        """Whether nobody of another unit changes the files that these rounds of a loop change."""
        paths = {path for spec in added for path in spec.modifies}
        paths.update(path for artifact_id in removed for path in self._paths.get(artifact_id, ()))
        chains = [self.chains[path] for path in paths if path in self.chains]
        return all(chain[0].rpartition("/")[0] == chain[-1].rpartition("/")[0] for chain in chains)

    def follow(self, graph: ArtifactGraph) -> None:
        """From here on this is the plan; what changed in it is told by `go_on`."""
        self._graph = graph

    def go_on(self, added: Iterable[ArtifactSpec], removed: Iterable[str], others: Iterable[str]) -> None:
        """Take in the next iteration of a loop, or what is left of it. `others`: the rest of the unit's artifacts.

        Costs what the unit has, as far as its files are its own.
        """
        for artifact_id in removed:
            self._take_out(artifact_id)
        for spec in added:
            if not spec.gathers:
                self._put_in(spec)
        for artifact_id in others:
            spec = self._graph[artifact_id]
            if not spec.gathers and not spec.iteration:
                self._read_again(spec)
        for artifact_id in self._strangers:
            self._read_last(artifact_id, added)

    def _read_last(self, artifact_id: str, added: Iterable[ArtifactSpec]) -> None:
        """Whoever reads a round of another unit's loop reads the one that is its last now."""
        reads = self._readers.get(artifact_id, {})
        for whole in added:
            for path in whole.outputs.values() if whole.gathers == "last" else ():
                stage = reads.get(path)
                if stage is not None and stage.rpartition("~")[0] == whole.id:
                    reads[path] = whole.requires[0]

    def _put_in(self, spec: ArtifactSpec) -> None:
        required = list(self._standing_for(spec.requires))
        twin = f"{spec.unit}/{spec.phase}~{spec.iteration - 1}"
        for path in spec.modifies:
            chain, place = self.chains.setdefault(path, []), self._place.setdefault(path, {})
            position = max((place[r] for r in (twin, *required) if r in place), default=len(chain) - 1) + 1
            chain.insert(position, spec.id)
            self._place[path] = {stage: number for number, stage in enumerate(chain)}
            self._paths.setdefault(spec.id, []).append(path)
            self._relink(path, position)
            self._relink(path, position + 1)
        known = self._readers.get(twin, {})
        reads = {path: known.get(path) for path in spec.reads if path in self.chains}
        for path, stage in reads.items():
            self._link_to(spec.id, stage)
            self._readers.setdefault(spec.id, {})[path] = stage
        self._read_again(spec)

    def _take_out(self, artifact_id: str) -> None:
        for path in self._paths.pop(artifact_id, ()):
            chain = self.chains[path]
            position = self._place[path][artifact_id]
            del chain[position]
            self._place[path] = {stage: number for number, stage in enumerate(chain)}
            self._relink(path, position, artifact_id)
        for table in (self._readers, self._after, self._courtesy):
            table.pop(artifact_id, None)

    def _relink(self, path: str, position: int, gone: str = "") -> None:
        """The stage at a position follows the one before it, and nobody else of its chain."""
        chain = self.chains[path]
        if position >= len(chain):
            return
        stage, place = chain[position], self._place[path]
        kept = [a for a in self._after.get(stage, ()) if a not in place and a != gone]
        self._after[stage] = [*kept, chain[position - 1]] if position else kept

    def _read_again(self, spec: ArtifactSpec) -> None:
        """Of what it requires, the newest stages are what it reads."""
        reads = {p: s for p, s in self._readers.get(spec.id, {}).items() if p in spec.reads or p in spec.sources}
        for stage in self._standing_for(spec.requires):
            for path in self._paths.get(stage, ()):
                place = self._place[path]
                known = reads.get(path)
                if spec.id not in place and (known not in place or place[known] < place[stage]):
                    reads[path] = stage
        if reads:
            self._readers[spec.id] = reads

    # Questions.

    def after(self, artifact_id: str) -> list[str]:
        """Stages that an artifact builds on, besides what it requires: without them it cannot be made."""
        return self._after.get(artifact_id, [])

    def courtesy(self, artifact_id: str) -> list[str]:
        """Readers that an artifact lets go first, so that the file need not be put back for them."""
        return self._courtesy.get(artifact_id, [])

    def order(self) -> list[str]:
        """All artifacts, with requirements and earlier stages first."""
        return self._order if self.ordered else self._graph.topological_sort()

    def earlier(self, artifact_id: str, path: str) -> Iterator[str]:
        """The stages before this one, or up to the one that it reads; the nearest first."""
        place, stages = self._place.get(path, {}), self.chains.get(path, [])
        if artifact_id in place:
            start = place[artifact_id]
        else:
            stage = self._readers.get(artifact_id, {}).get(path)
            start = place[stage] + 1 if stage is not None else 0
        return (stages[number] for number in range(start - 1, -1, -1))

    def later(self, artifact_id: str, path: str) -> list[str]:
        """The stages after this one."""
        place = self._place.get(path, {})
        return self.chains[path][place[artifact_id] + 1 :] if artifact_id in place else []

    def is_last(self, artifact_id: str, path: str) -> bool:
        """Whether nobody changes the path after this artifact."""
        stages = self.chains.get(path)
        return stages is None or stages[-1] == artifact_id

    def uses(self, artifact_id: str) -> list[Use]:
        """The shared paths that an artifact sees, each as of one stage."""
        if not self.chains:
            return []
        reads = [Use(path, stage, False) for path, stage in self._readers.get(artifact_id, {}).items()]
        return reads + [Use(path, None, True) for path in self._paths.get(artifact_id, ())]


def _is_about_files(spec: ArtifactSpec) -> bool:
    """Whether its place among others can matter to a shared file: those who only require such others come later."""
    return bool(spec.unit or spec.modifies or spec.reads)


def _sorted(
    artifacts: Mapping[str, ArtifactSpec], needs: Callable[[str], Iterable[str]], first: Callable[[ArtifactSpec], bool]
) -> list[str]:
    """In the order given, `first` those of which this is true, with what each needs before it, in the same order.

    What is on a cycle comes as it is met.
    """
    place = {artifact_id: number for number, artifact_id in enumerate(artifacts)}
    starts = sorted(artifacts, key=lambda a: not first(artifacts[a]))
    placed: dict[str, None] = {}
    open_: set[str] = set()

    def needed(artifact_id: str) -> Iterator[str]:
        return iter(sorted((r for r in needs(artifact_id) if r in place), key=place.__getitem__))

    for start in starts:
        if start in placed:
            continue
        stack = [(start, needed(start))]
        open_.add(start)
        while stack:
            current, rest = stack[-1]
            following = next((r for r in rest if r not in placed and r not in open_), None)
            if following is None:
                stack.pop()
                placed[current] = None
            else:
                open_.add(following)
                stack.append((following, needed(following)))
    return list(placed)
