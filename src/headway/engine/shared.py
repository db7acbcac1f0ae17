"""Files that several artifacts change in place: who comes after whom, and whose bytes are to be seen by whom.

A path that artifacts name in `modifies` is a chain of stages: its producer, if it has one, then its modifiers in
dependency order, then plan order. Whoever requires a stage reads the bytes as that stage left them; whoever names the
path as a source reads what the last one left. Knows the plan; never files.
"""

from __future__ import annotations

from itertools import pairwise
from typing import NamedTuple

from headway.core.graph import ArtifactGraph


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
        self.chains: dict[str, list[str]] = {}
        self._graph = graph
        self._readers: dict[str, dict[str, str]] = {}
        self._after: dict[str, list[str]] = {}
        self._courtesy: dict[str, list[str]] = {}
        modified = dict.fromkeys(path for spec in graph.artifacts.values() for path in spec.modifies)
        if modified:
            self._build(modified)

    def _build(self, modified: dict[str, None]) -> None:
        order = list(self._graph.depths())
        self.chains = {path: [] for path in modified}
        for artifact_id in order:
            for path in self._graph[artifact_id].produces:
                if path in self.chains:
                    self.chains[path].insert(0, artifact_id)
        for artifact_id in order:
            for path in self._graph[artifact_id].modifies:
                self.chains[path].append(artifact_id)
        for path, stages in self.chains.items():
            self._find_readers(path, stages)
        self._link()

    def _find_readers(self, path: str, stages: list[str]) -> None:
        """Who reads the path without changing it, each as of the newest stage that it requires."""
        needed = set(self._graph.below(stages))
        for artifact_id, spec in self._graph.artifacts.items():
            if artifact_id in stages:
                continue
            required = [stage for stage in stages if stage in spec.requires]
            if required:
                self._readers.setdefault(artifact_id, {})[path] = required[-1]
            elif path in spec.sources and artifact_id not in needed:
                self._readers.setdefault(artifact_id, {})[path] = stages[-1]

    def _link(self) -> None:
        """Stages follow each other; readers of a stage come before the next one, where that is possible."""
        for path, stages in self.chains.items():
            for before, after in pairwise(stages):
                self._after.setdefault(after, []).append(before)
                readers = [r for r, uses in self._readers.items() if uses.get(path) == before]
                self._courtesy.setdefault(after, []).extend(readers)
        for reader, uses in self._readers.items():
            sources = self._graph[reader].sources
            self._after.setdefault(reader, []).extend(stage for path, stage in uses.items() if path in sources)
        for stuck in self._stuck():
            self._courtesy.pop(stuck, None)

    def _stuck(self) -> set[str]:
        """What could never start if every reader had to come first: those readers read the file put back."""
        needs = {
            a: {*(r for r in spec.requires if r in self._graph), *self.after(a), *self.courtesy(a)}
            for a, spec in self._graph.artifacts.items()
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

    def after(self, artifact_id: str) -> list[str]:
        """Stages that an artifact builds on, besides what it requires: without them it cannot be made."""
        return self._after.get(artifact_id, [])

    def courtesy(self, artifact_id: str) -> list[str]:
        """Readers that an artifact lets go first, so that the file need not be put back for them."""
        return self._courtesy.get(artifact_id, [])

    def order(self) -> list[str]:
        """All artifacts, with requirements and earlier stages first."""
        if not self.chains:
            return self._graph.topological_sort()
        placed: dict[str, None] = {}
        for start in self._graph.topological_sort():
            stack = [start]
            while stack:
                current = stack[-1]
                missing = [a for a in (*self._graph[current].requires, *self.after(current)) if a not in placed]
                missing = [a for a in missing if a in self._graph and a not in stack]
                if missing:
                    stack.append(missing[0])
                else:
                    placed[stack.pop()] = None
        return list(placed)

    def earlier(self, artifact_id: str, path: str) -> list[str]:
        """The stages before this one, the nearest first."""
        stages = self.chains[path]
        return stages[: stages.index(artifact_id)][::-1]

    def is_last(self, artifact_id: str, path: str) -> bool:
        """Whether nobody changes the path after this artifact."""
        stages = self.chains.get(path)
        return stages is None or stages[-1] == artifact_id

    def uses(self, artifact_id: str) -> list[Use]:
        """The shared paths that an artifact sees, each as of one stage."""
        if not self.chains:
            return []
        spec = self._graph[artifact_id]
        reads = [Use(path, stage, False) for path, stage in self._readers.get(artifact_id, {}).items()]
        return reads + [Use(path, None, True) for path in (*spec.produces, *spec.modifies) if path in self.chains]
