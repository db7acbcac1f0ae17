"""What projects have in common: edges between them, artifacts, patterns, goals made of theirs. Pure."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable, Iterator

from headway.core.ids import name_elsewhere
from headway.core.places import Places, Said
from headway.history.relations import Link
from headway.history.shapes import NodeStatus
from headway.history.upper_shapes import Card, CrossEdge, Pattern, SharedArtifact, UpperGoal
from headway.history.workspace_cache import Key

EXAMPLES = 5

_PATTERNS = {
    **dict.fromkeys(("flask", "fastapi", "django", "react", "vue", "svelte", "next", "express", "rails"), "app"),
    **dict.fromkeys(("sqlite", "sqlalchemy", "postgresql", "pydantic"), "models"),
    **dict.fromkeys(("pytest", "jest", "vitest"), "tests"),
    **dict.fromkeys(("mkdocs", "sphinx"), "docs"),
    "docker": "image",
}


def resolved(cards: dict[str, Card], said: Iterable[Said]) -> Iterator[tuple[str, str, Said]]:
    """What was said, about the paths of today: a project that moved is known by its id, a copy has it as well."""
    by_id = {card.id: path for path, card in reversed(cards.items())}

    def today(path: str, project_id: str) -> str:
        here = path in cards
        return path if here and cards[path].id == project_id else by_id.get(project_id) or (path if here else "")

    for word in said:
        source, target = today(word.source, word.source_id), today(word.target, word.target_id)
        if source and target:
            yield source, target, word


def target_of(path: str, required: str) -> str:
    """The project, by its path in the workspace, that a requirement of a project leads to."""
    return os.path.normpath(os.path.join(path, required.partition(":")[0]))


def edges_between(cards: dict[str, Card], links: list[Link]) -> Iterator[CrossEdge]:
    """Between projects: artifacts that plans require of each other, and relations as such."""
    for card in cards.values():
        for needed in card.needed:
            target = target_of(card.path, needed.required)
            name = name_elsewhere(needed.required)
            if target in cards and name is not None:
                goal = name[0].partition(":")[2]
                source = f"{target}:{goal}:{name[1]}" if goal else f"{target}:{name[1]}"
                node = f"{card.path}:{needed.goal}:{needed.artifact}"
                yield _edge(source, node, target, card.path, "requires", name[1], needed.artifact)
    for link in links:
        yield _edge(link.target, link.source, link.target, link.source, link.relationship, verified=link.confirmed)


def _edge(
    source: str,
    target: str,
    source_project: str,
    target_project: str,
    kind: str,
    source_artifact: str = "",
    target_artifact: str = "",
    verified: bool = True,
) -> CrossEdge:
    name = f"cross_project\0{kind}\0{source}\0{target}"
    return CrossEdge(
        id=hashlib.blake2b(name.encode("utf-8", "surrogatepass"), digest_size=8).hexdigest(),
        source=source,
        target=target,
        type="cross_project",
        kind=kind,
        verified=verified,
        source_project=source_project,
        target_project=target_project,
        source_artifact=source_artifact,
        target_artifact=target_artifact,
    )


def shared_artifact(key: str, owners: dict[str, Key]) -> SharedArtifact:
    kind, _, _ = key.partition(":")
    projects = sorted(owners)
    first = owners[projects[0]]
    return SharedArtifact(
        key=key,
        kind="content" if kind == "content" else "contract",
        id=first.node.partition(":")[2],
        projects=projects,
        nodes=[f"{project}:{owners[project].node}" for project in projects],
        text=first.text,
    )


def patterns_of(cards: list[Card], shared: Iterable[SharedArtifact]) -> Iterator[Pattern]:
    """What at least two projects do in the same way: the same tools, or artifacts with the same contract."""
    users: dict[str, list[str]] = {}
    for card in cards:
        for tool in card.facts.tools:
            users.setdefault(tool, []).append(card.path)
    total = max(len(cards), 1)
    for tool, paths in sorted(users.items(), key=lambda item: (-len(item[1]), item[0])):
        if len(paths) > 1:
            name = f"{tool}-{_PATTERNS[tool]}" if tool in _PATTERNS else tool
            yield Pattern(
                name=name,
                description=f"{len(paths)} projects use {tool}",
                frequency=len(paths),
                examples=paths[:EXAMPLES],
                confidence=round(len(paths) / total, 2),
            )
    named: set[str] = set()
    for artifact in shared:
        if artifact.kind == "contract" and artifact.id not in named and len(named) < 2 * EXAMPLES:
            named.add(artifact.id)
            yield Pattern(
                name=f"{artifact.id} contract",
                description=artifact.text,
                frequency=len(artifact.projects),
                examples=artifact.projects[:EXAMPLES],
                confidence=round(len(artifact.projects) / total, 2),
            )


def goals_of(said: Places, cards: dict[str, Card]) -> Iterator[UpperGoal]:
    for goal in said.goals.values():
        parts: dict[str, str] = {}
        for part in goal.parts:
            project, _, name = part.partition(":")
            card = cards.get(project)
            parts[part] = card.goal_status.get(name, "unknown") if card is not None else "unknown"
        found = list(parts.values())
        yield UpperGoal(
            id=goal.id,
            title=goal.title,
            status=_together(found),
            done=found.count("complete"),
            total=len(found),
            parts=parts,
        )


def _together(statuses: list[str]) -> NodeStatus:
    """The status of a goal that is made of goals."""
    if statuses and all(status == "complete" for status in statuses):
        return "complete"
    for word in ("failed", "running", "blocked"):
        if word in statuses:
            return word
    return "ready" if "complete" in statuses or "ready" in statuses else "planned"
