"""The history of a workspace: all projects below a folder, how they are related, what they share, what is going on.

Reading never writes and is never behind: projects whose files or history are not those that were looked at are looked
at anew, and nobody else is. `refresh` keeps what was seen. What people say about it is in a ledger of its own.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable, Sequence
from typing import NoReturn

from headway.core.events import Event
from headway.core.places import (
    FORMAT,
    RELATIONSHIPS,
    LinkAdded,
    LinkConfirmed,
    LinkRemoved,
    Places,
    Relationship,
    Said,
    WorkspaceCreated,
    WorkspaceGoalDropped,
    WorkspaceGoalSet,
)
from headway.disk import REAL, make_folders, write_file
from headway.errors import DamageError, NotFound, TryLater, UsageError
from headway.files.identity import HOME, WORKSPACE, WORKSPACE_INDEX, make_home
from headway.history.cards import Goals, dag_of, draw, keys_of, stamp_of
from headway.history.documents import read_index
from headway.history.folder import in_lines
from headway.history.registry import Registry
from headway.history.relations import Link, overrule, relate
from headway.history.survey import Facts, is_unchanged, revisit, stat_of, survey
from headway.history.together import edges_between, goals_of, patterns_of, resolved, shared_artifact, target_of
from headway.history.upper_shapes import (
    VERSION,
    Card,
    Gone,
    SharedArtifact,
    Topology,
    UpperGoal,
    WorkspaceDag,
    WorkspaceIndex,
)
from headway.history.workspace_cache import Key, WorkspaceCache
from headway.ledger.lock import FileLock
from headway.ledger.recovery import now
from headway.plan_folder import Notice, keep_quiet

PATIENCE = 30.0
"""So many seconds one refresh waits for another."""
SHARED = 100
"""So many shared artifacts are named, those of most projects first; the rest is counted."""


class Workspace:
    """One folder with many projects."""

    def __init__(self, root: str | os.PathLike[str], *, by: str = "api", notice: Notice = keep_quiet) -> None:
        self.root = os.path.abspath(os.fspath(root))
        if not os.path.isdir(self.root):
            raise NotFound("There is no such folder", facts={"path": self.root}, hint="name a folder with projects")
        self.home = os.path.join(self.root, HOME)
        self.by = by
        self.registry = Registry(os.path.join(self.home, WORKSPACE))
        self.index_path = os.path.join(self.home, WORKSPACE_INDEX)
        self._notice = notice
        self._known: WorkspaceIndex | None = None
        self._seen: dict[str, Goals] = {}
        self._keys: dict[str, dict[str, Key]] = {}

    # Reading.

    def dag(self) -> WorkspaceDag:
        """The workspace as it is now."""
        index = self.index()
        given = {field: getattr(index, field) for field in WorkspaceDag.__struct_fields__ if hasattr(index, field)}
        given["projects"] = {card.path: card for card in index.projects}
        return WorkspaceDag(**given, workspace_path=self.root, cross_project_edges=index.cross_project_dependencies)

    def index(self) -> WorkspaceIndex:
        """The same in the form that it has on disk. Not to be changed."""
        base = self._known or self._written()
        if base is None or not self._is_current(base):
            base = self._look(base)
        self._known = base
        return base

    def _written(self) -> WorkspaceIndex | None:
        """The index as it was last written, if that can be believed; one of a newer Headway is refused."""
        try:
            return read_index(self.root)
        except DamageError as error:
            self._notice(f"{error.message}: the workspace is looked at anew")
            return None

    def _is_current(self, index: WorkspaceIndex) -> bool:
        """Whether nothing has changed since: a few stats for each project."""
        root = self.root
        if list(self.registry.stamp()) != index.said or any(c.unsettled for c in index.projects):
            return False
        if index.notes:  # what could not be read may be readable by now, and no time of change would tell
            return False
        if any(stat_of(f"{root}/{path}" if path else root) != stat for path, stat in index.folders.items()):
            return False
        own = index.own.stamp if index.own is not None else []
        if index.own is not None and (index.own.unsettled or stamp_of(root) != own):
            return False
        if index.own is None and os.path.isdir(f"{root}/{HOME}/plans"):
            return False
        return all(
            is_unchanged(f"{root}/{card.path}", card.facts) and stamp_of(f"{root}/{card.path}") == card.stamp
            for card in index.projects
        )

    # Looking.

    def _look(self, base: WorkspaceIndex | None) -> WorkspaceIndex:
        known = {card.path: card for card in base.projects} if base is not None else {}
        were, kept = set(known), base.kept if base is not None else ""
        facts_of = {path: card.facts for path, card in known.items()}
        again = revisit(self.root, facts_of, base.folders) if base is not None and not base.notes else None
        found = again or survey(self.root, facts_of)
        stamp, said = list(self.registry.stamp()), self.registry.read()
        cards: dict[str, Card] = {}
        with WorkspaceCache(self.home) as cache:
            changed: dict[str, dict[str, Key]] = {}
            if base is not None and cache.token() != base.kept:  # it is of another index, or gone
                self._seen, self._keys, known, kept = {}, {}, {}, ""
            for path, facts in found.projects.items():
                card = known.get(path)
                if (
                    card is None
                    or card.unsettled
                    or card.facts is not facts
                    or stamp_of(self._full(path)) != card.stamp
                ):
                    card, goals = draw(self._full(path), path, facts, self._goals(cache, path))
                    self._seen[path] = goals
                    changed[path] = keys_of(goals)
                cards[path] = card
            gone = were - cards.keys()
            shared, total = self._shared(base if known or not were else None, cache, changed, gone)
        self._keys.update(changed)
        for path in gone:
            self._seen.pop(path, None)
            self._keys.pop(path, None)
        own, own_goals = self._own(base)
        return WorkspaceIndex(
            version=VERSION,
            workspace_id=said.id or hashlib.sha256(self.root.encode()).hexdigest()[:16],
            name=os.path.basename(self.root) or self.root,
            last_updated=now(),
            topology=self._topology(cards.values()),
            links=(links := self._links(cards, said)),
            cross_project_dependencies=list(edges_between(cards, links)),
            shared_artifacts=shared,
            shared_total=total,
            patterns=(patterns := list(patterns_of(list(cards.values()), shared))),
            shared_patterns=[pattern.name for pattern in patterns],
            goals=[*goals_of(said, cards), *own_goals],
            gone=self._gone(base, cards),
            notes=[f"{path or '.'} cannot be read: {why}" for path, why in sorted(found.denied.items())],
            folders=found.folders,
            said=stamp,
            kept=kept,
            own=own,
            projects=list(cards.values()),
        )

    def _full(self, path: str) -> str:
        return os.path.join(self.root, path)

    def _goals(self, cache: WorkspaceCache, path: str) -> Goals:
        return self._seen[path] if path in self._seen else cache.goals(path)

    def _own(self, base: WorkspaceIndex | None) -> tuple[Card | None, list[UpperGoal]]:
        """The workspace's own folder, where plans were run in it: their goals are goals of the workspace."""
        if not os.path.isdir(os.path.join(self.home, "plans")):
            return None, []
        own = base.own if base is not None else None
        if base is not None and own is not None and not own.unsettled and stamp_of(self.root) == own.stamp:
            return own, [goal for goal in base.goals if goal.own]
        card, _ = draw(self.root, ".", Facts(name=os.path.basename(self.root), confidence=1.0), {})
        entries = dag_of(self.root).index().goals if not card.problem else []
        return card, [
            UpperGoal(id=e.id, title=e.title, status=e.status, done=e.done, total=e.task_count, own=True)
            for e in entries
        ]

    def _topology(self, cards: Iterable[Card]) -> Topology:
        inner = any(".git" in card.evidence for card in cards)
        if os.path.exists(os.path.join(self.root, ".git")):
            return "hybrid" if inner else "monorepo"
        return "polyrepo"

    def _links(self, cards: dict[str, Card], said: Places) -> list[Link]:
        declared = [
            Link(
                source=card.path,
                target=target,
                relationship="dependency",
                confidence=1.0,
                evidence=[f"plan {needed.goal} requires {needed.required}"],
            )
            for card in cards.values()
            for needed in card.needed
            if (target := target_of(card.path, needed.required)) in cards
        ]
        found = relate({path: card.facts for path, card in cards.items()}, declared)
        return overrule(found, resolved(cards, said.said.values()))

    def _gone(self, base: WorkspaceIndex | None, cards: dict[str, Card]) -> list[Gone]:
        """Projects that were here. What returns, by its path or by its id, is no longer among them."""
        if base is None:
            return []
        were = {card.path for card in base.projects}
        here = {card.id: card for card in cards.values() if card.path not in were}  # a copy from before is no return
        gone = [entry for entry in base.gone if entry.path not in cards and entry.id not in here]
        for card in base.projects:
            if card.path in cards:
                continue
            moved = here.get(card.id)
            if moved is not None:
                moved.moved_from = card.path
                self._notice(f"{card.path} has moved to {moved.path}")
                continue
            note = f"{card.path} is not there any more; it comes back when it returns"
            self._notice(note)
            gone.append(Gone(id=card.id, name=card.name, path=card.path, since=now(), note=note))
        return gone

    def _shared(
        self,
        base: WorkspaceIndex | None,
        cache: WorkspaceCache,
        changed: dict[str, dict[str, Key]],
        gone: Iterable[str],
    ) -> tuple[list[SharedArtifact], int]:
        """What several projects have: only what the changed ones have or had is looked up again."""
        first = base is None
        memory = {**self._keys, **changed}
        was = {path: self._keys.get(path) or cache.keys(path) for path in (*changed, *gone)}
        touched = {key for path, keys in was.items() if path not in changed for key in keys}
        for path, keys in changed.items():
            touched |= {k for k in keys.keys() | was[path].keys() if keys.get(k) != was[path].get(k)}
        away = set(gone)
        if first:
            touched = {key for keys in memory.values() for key in keys}
        kept = [s for s in base.shared_artifacts if s.key not in touched] if base is not None else []
        before = base.shared_total - (len(base.shared_artifacts) - len(kept)) if base is not None else 0
        owners: dict[str, dict[str, Key]] = {key: {} for key in touched}
        if not first:
            for key in touched:
                owners[key] = {p: k for p, k in cache.owners(key).items() if p not in memory and p not in away}
        for path, keys in memory.items():
            if path not in away:
                for key in keys.keys() & touched if len(touched) < len(keys) else [k for k in keys if k in touched]:
                    owners[key][path] = keys[key]
        new = [shared_artifact(key, found) for key, found in owners.items() if len(found) > 1]
        everything = sorted([*kept, *new], key=lambda s: (-len(s.projects), s.kind, s.id, s.key))
        return everything[:SHARED], before + len(new)

    # Writing.

    def refresh(self) -> WorkspaceIndex:
        """Bring the index up to date and keep it; the folder becomes a workspace's by that."""
        make_home(REAL, self.home)
        make_folders(REAL, os.path.dirname(self.index_path))
        lock = FileLock(os.path.join(self.home, "dag", "workspace.lock"))
        if not lock.acquire(wait=PATIENCE):
            raise TryLater("Somebody else refreshes this workspace", facts=lock.signature(), hint="try again")
        try:
            return self._refresh()
        finally:
            lock.release()

    def _refresh(self) -> WorkspaceIndex:
        """The same, while nobody else does it."""
        before = self._written()
        if before is None or self._known is None or self._known.kept != before.kept:  # somebody was faster
            self._known, self._seen, self._keys = before, {}, {}
        index = self.index()
        if index is before:
            return index
        index.kept = os.urandom(8).hex()
        gone = {c.path for c in before.projects} - {c.path for c in index.projects} if before else set()
        if problem := WorkspaceCache(self.home).write(self._seen, self._keys, gone, index.kept):
            self._notice(f"What was seen could not be kept ({problem}): the next look takes longer")
            index.kept = ""
        else:
            self._seen, self._keys = {}, {}
        write_file(REAL, self.index_path, [in_lines(index, "projects", index.projects)], durable=False)
        return index

    def link(self, source: str, target: str, *, relationship: str = "dependency", reason: str = "") -> Link:
        """Say how two projects are related."""
        one, other = self._pair(source, target)
        self._record(LinkAdded(**_named(one, other), relationship=_relationship(relationship), reason=reason))
        return self._link(one, other)

    def confirm(self, source: str, target: str, *, reason: str = "") -> Link:
        """Say that a relation that was found is one."""
        one, other = self._pair(source, target)
        found = self._find(one, other)
        if found is None:
            denied = self._denied(one, other)
            raise NotFound(
                f"Somebody said that {source} and {target} are not related"
                if denied is not None
                else f"No relation of {source} to {target} was found",
                facts={"said by": denied.by, **({"why": denied.reason} if denied.reason else {})} if denied else {},
                hint=f"headway workspace link {source} {target} says that there is one",
                code="link.none",
            )
        one, other = self._card(found.source), self._card(found.target)
        self._record(LinkConfirmed(**_named(one, other), relationship=found.relationship, reason=reason))
        return self._link(one, other)

    def unlink(self, source: str, target: str, *, reason: str = "") -> None:
        """Say that two projects are not related: what was found or said before no longer counts."""
        one, other = self._pair(source, target)
        found = self._find(one, other)
        if found is not None:
            one, other = self._card(found.source), self._card(found.target)
        self._record(LinkRemoved(**_named(one, other), reason=reason))

    def set_goal(self, goal_id: str, title: str, parts: Sequence[str] = ()) -> UpperGoal:
        """A goal of the whole workspace, made of goals of its projects (`api:users`)."""
        for part in parts:
            project, _, goal = part.partition(":")
            card = self._card(project)
            if not goal or goal not in card.goal_status:
                raise NotFound(
                    f"{project} has no goal {goal or '(none named)'}",
                    facts={"goals": ", ".join(list(card.goal_status)[:8]) or "none yet"},
                    hint="name each as PROJECT:GOAL",
                    code="goal.none",
                )
        self._record(WorkspaceGoalSet(id=goal_id, title=title, parts=tuple(parts)))
        found = next((goal for goal in self.index().goals if goal.id == goal_id), None)
        return found if found is not None else self._overtaken(f"the goal {goal_id}")

    def drop_goal(self, goal_id: str, *, reason: str = "") -> None:
        """Give a goal of the workspace up."""
        self._record(WorkspaceGoalDropped(id=goal_id, reason=reason))

    def _record(self, event: Event) -> None:
        first = WorkspaceCreated(format=FORMAT, workspace_id=os.urandom(8).hex())
        self.registry.record(event, first=first, by=self.by)
        self.refresh()

    def _link(self, one: Card, other: Card) -> Link:
        found = self._find(one, other)
        return found if found is not None else self._overtaken(f"{one.path} and {other.path}")

    def _overtaken(self, what: str) -> NoReturn:
        """What was just said no longer shows: somebody took it back, or a project away, in that moment."""
        raise TryLater(
            f"What was said about {what} was kept, and taken back by somebody else at once",
            facts={"workspace": self.root},
            hint="headway dag workspace shows what stands",
            code="workspace.overtaken",
        )

    def _find(self, one: Card, other: Card) -> Link | None:
        links = {(link.source, link.target): link for link in self.index().links}
        there = links.get((one.path, other.path))
        back = links.get((other.path, one.path))
        return there or (back if back is not None and back.relationship == "sibling" else None)

    def _denied(self, one: Card, other: Card) -> Said | None:
        """The word that they are not related, if it still counts."""
        cards = {card.path: card for card in self.index().projects}
        said = resolved(cards, self.registry.read().said.values())
        about = ((one.path, other.path), (other.path, one.path))
        return next((word for source, target, word in said if word.removed and (source, target) in about), None)

    def _pair(self, source: str, target: str) -> tuple[Card, Card]:
        return self._card(source), self._card(target)

    def _card(self, word: str) -> Card:
        """The project that a word means: its path below the workspace, its name, or its id."""
        cards = self.index().projects
        path = os.path.normpath(word)
        full = os.path.relpath(os.path.abspath(word), self.root)
        for found in (
            [c for c in cards if c.path == path],
            [c for c in cards if word in (c.name, c.id)],
            [c for c in cards if c.path == full],
        ):
            if len(found) == 1:
                return found[0]
            if found:
                paths = ", ".join(card.path for card in found)
                raise UsageError(f"Several projects are called {word}", facts={"paths": paths}, hint="give the path")
        from headway.core.nearest import Nearest

        near = Nearest([card.path for card in cards]).of(word)
        raise NotFound(
            f"There is no project {word} in this workspace",
            facts={"did you mean": near} if near else {"workspace": self.root},
            hint="headway dag workspace lists them",
            code="project.none",
        )


def _relationship(word: str) -> Relationship:
    if word not in RELATIONSHIPS:
        raise UsageError(
            f"There is no relationship {word}",
            facts={"known": ", ".join(RELATIONSHIPS)},
            hint="give one of them",
            code="link.kind",
        )
    return word


def _named(one: Card, other: Card) -> dict[str, str]:
    ids = {name: card.id for name, card in (("source_id", one), ("target_id", other)) if card.id != card.path}
    return {"source": one.path, "target": other.path, **ids}
