"""Files that several artifacts change in place: who comes after whom, and whose bytes are to be seen by whom.

A path that artifacts name in `modifies` is a chain: its producer, if it has one, then its modifiers in dependency
order, then plan order. Whoever requires a stage of the chain reads the bytes as that stage left them.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import pairwise

from headway.core.graph import ArtifactGraph


class Shared:
    """The chains of one plan. Most plans have none."""

    def __init__(self, graph: ArtifactGraph) -> None:
        self.chains: dict[str, list[str]] = {}
        self.after: dict[str, list[str]] = {}
        self._graph = graph
        modified = dict.fromkeys(path for spec in graph.artifacts.values() for path in spec.modifies)
        if not modified:
            return
        order = list(graph.depths())
        for path in modified:
            self.chains[path] = []
        for artifact_id in order:
            for path in graph[artifact_id].produces:
                if path in self.chains:
                    self.chains[path].insert(0, artifact_id)
        for artifact_id in order:
            for path in graph[artifact_id].modifies:
                self.chains[path].append(artifact_id)
        self._link()

    def _link(self) -> None:
        """Stages follow each other; readers of a stage come before the next one, where that is possible."""
        hard: dict[str, list[str]] = {}
        soft: dict[str, list[str]] = {}
        for stages in self.chains.values():
            later = set(stages)
            for before, after in pairwise(stages):
                hard.setdefault(after, []).append(before)
                readers = [r for r in self._graph.dependents(before) if r not in later]
                soft.setdefault(after, []).extend(r for r in readers if after not in self._graph[r].requires)
        stuck = self._stuck(hard, soft)
        self.after = {a: list(dict.fromkeys(hard.get(a, []))) for a in hard}
        for after, readers in soft.items():
            if after not in stuck:
                self.after[after] += [r for r in readers if r not in self.after[after]]

    def _stuck(self, hard: dict[str, list[str]], soft: dict[str, list[str]]) -> set[str]:
        """What could never start if every reader had to come first: those readers read a later stage."""
        needs = {
            a: {*(r for r in spec.requires if r in self._graph), *hard.get(a, ()), *soft.get(a, ())}
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

    def order(self) -> list[str]:
        """All artifacts, with requirements and earlier stages first."""
        if not self.chains:
            return self._graph.topological_sort()
        placed: dict[str, None] = {}
        for start in self._graph.topological_sort():
            stack = [start]
            while stack:
                current = stack[-1]
                missing = [a for a in (*self._graph[current].requires, *self.after.get(current, ())) if a not in placed]
                missing = [a for a in missing if a in self._graph and a not in stack]
                if missing:
                    stack.append(missing[0])
                else:
                    placed[stack.pop()] = None
        return list(placed)

    def previous(self, artifact_id: str, path: str) -> str | None:
        """The stage before this one, if there is one."""
        stages = self.chains[path]
        at = stages.index(artifact_id)
        return stages[at - 1] if at else None

    def is_last(self, artifact_id: str, path: str) -> bool:
        """Whether what is on disk is this artifact's to answer for."""
        stages = self.chains.get(path)
        return stages is None or stages[-1] == artifact_id

    def stages_read(self, artifact_id: str) -> Iterable[tuple[str, str]]:
        """The shared paths that an artifact sees, each as of the newest stage that it requires or follows."""
        if not self.chains:
            return
        spec = self._graph[artifact_id]
        for path, stages in self.chains.items():
            if artifact_id in stages:
                before = self.previous(artifact_id, path)
                if before is not None and path in spec.modifies:
                    yield path, before
            else:
                seen = [stage for stage in stages if stage in spec.requires]
                if seen:
                    yield path, seen[-1]
