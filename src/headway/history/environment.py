"""The history of a machine: the workspaces and roots that its user has named, and what all their projects come to.

Entirely local, and read from the workspaces each time: nothing here is ever behind. What was registered is in a ledger
of its own below `$HEADWAY_HOME`; environment.json beside it is a copy for others to read.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterable, Iterator
from typing import NamedTuple

import msgspec

from headway.core.events import Event
from headway.core.places import (
    FORMAT,
    EnvironmentCreated,
    RootAdded,
    RootRemoved,
    WorkspaceForgotten,
    WorkspaceRegistered,
)
from headway.disk import REAL, make_folders, write_file
from headway.errors import DamageError, HeadwayError, NotFound
from headway.files.identity import HOME, WORKSPACE, WORKSPACE_INDEX
from headway.history.documents import read_document
from headway.history.registry import Registry
from headway.history.survey import SKIPPED, stat_of
from headway.history.together import patterns_of
from headway.history.upper_shapes import (
    VERSION,
    Card,
    Cost,
    EnvironmentDag,
    Insight,
    ProjectEntry,
    Root,
    TechStack,
    WorkspaceIndex,
    WorkspaceSummary,
)
from headway.history.workspace import Workspace
from headway.ledger.recovery import now
from headway.plan_folder import Notice, keep_quiet

FOLDER = "environment"
"""Below the environment's home: the folder of its ledger."""
SHOWN = 5
TWICE = 2
"""So often the same error has to happen before it is worth a word."""
UNWELL = 0.5
"""Projects whose health is below this are worth a word."""

_decode = msgspec.json.Decoder(EnvironmentDag).decode


class Seen(NamedTuple):
    """A workspace as it was found: its index, or why it could not be read."""

    path: str
    registered: bool
    found: WorkspaceIndex | None = None
    problem: str = ""


class Environment:
    """One machine, as its user has described it."""

    def __init__(self, home: str | os.PathLike[str], *, by: str = "api", notice: Notice = keep_quiet) -> None:
        self.home = os.path.abspath(os.fspath(home))
        self.by = by
        self.registry = Registry(os.path.join(self.home, FOLDER))
        self.path = os.path.join(self.home, "environment.json")
        self._notice = notice
        self._workspaces: dict[str, Workspace] = {}
        self._known: tuple[object, EnvironmentDag] | None = None
        self._checked: object = None

    # Reading.

    def overview(self) -> EnvironmentDag:
        """Everything at once. Reads; creates nothing."""
        self._refuse_newer()
        said = self.registry.read()
        roots = {path: _workspaces_in(path) for path in said.roots}
        named = dict.fromkeys([*said.workspaces, *(p for found in roots.values() for p in found.paths)])
        seen = [self._look(path, registered=path in said.workspaces) for path in named]
        key = (self.registry.stamp(), [(s.path, s.problem, id(s.found)) for s in seen], [*roots.values()])
        if self._known is None or self._known[0] != key:
            listed = [
                Root(path=path, discovered_at=said.roots[path], workspaces=found.paths, problem=found.problem)
                for path, found in roots.items()
            ]
            self._known = (key, _together(said.id, seen, listed))
        return self._known[1]

    def _refuse_newer(self) -> None:
        """An environment.json of a newer Headway means that nothing here is ours to judge; a damaged one is derived."""
        stat = stat_of(self.path)
        if stat is not None and stat != self._checked:
            try:
                read_document(self.path, _decode, "environment.json", hint="headway environment refresh")
            except DamageError as error:
                self._notice(f"{error.message}: the workspaces are looked at anew")
            self._checked = stat

    def _look(self, path: str, *, registered: bool) -> Seen:
        if not os.path.isdir(path):
            self._workspaces.pop(path, None)
            return Seen(path, registered, None, "is not there; it comes back when it returns")
        try:
            workspace = self._workspaces.get(path) or Workspace(path, by=self.by, notice=self._notice)
            self._workspaces[path] = workspace
            return Seen(path, registered, workspace.index())
        except (HeadwayError, OSError) as error:
            return Seen(path, registered, None, _reason(error))

    # Writing.

    def refresh(self) -> EnvironmentDag:
        """Bring every registered workspace's index and environment.json up to date."""
        self._refuse_newer()
        for path in self.registry.read().workspaces:
            if os.path.isdir(path):
                workspace = self._workspaces.setdefault(path, Workspace(path, by=self.by, notice=self._notice))
                try:
                    workspace.refresh()
                except (HeadwayError, OSError) as error:  # one that is spoiled or not ours spoils no other
                    self._notice(f"{path} was not refreshed: {_reason(error)}")
        found = self.overview()
        make_folders(REAL, self.home)
        write_file(REAL, self.path, [msgspec.json.format(msgspec.json.encode(found), indent=1) + b"\n"], durable=False)
        return found

    def register(self, path: str) -> EnvironmentDag:
        """This folder is a workspace of this machine."""
        return self._record(WorkspaceRegistered(path=_folder(path)))

    def forget(self, path: str, *, reason: str = "") -> EnvironmentDag:
        """This folder, or root, is none any more; nothing in it is touched."""
        full = os.path.abspath(path)
        if full in self.registry.read().roots:
            return self._record(RootRemoved(path=full, reason=reason))
        return self._record(WorkspaceForgotten(path=full, reason=reason))

    def add_root(self, path: str) -> EnvironmentDag:
        """In this folder workspaces are looked for."""
        return self._record(RootAdded(path=_folder(path)))

    def _record(self, event: Event) -> EnvironmentDag:
        self._refuse_newer()
        first = EnvironmentCreated(format=FORMAT, user_id=os.urandom(8).hex())
        self.registry.record(event, first=first, by=self.by)
        return self.refresh()


class _Found(NamedTuple):
    """The workspaces of a root."""

    paths: list[str]
    problem: str = ""


def _reason(error: HeadwayError | OSError) -> str:
    return error.message if isinstance(error, HeadwayError) else error.strerror or str(error)


def _folder(path: str) -> str:
    full = os.path.abspath(path)
    if not os.path.isdir(full):
        raise NotFound("There is no such folder", facts={"path": full}, hint="name a folder with projects")
    return full


def _workspaces_in(root: str) -> _Found:
    """Folders of a root that somebody made workspaces; without any, the root is one itself."""
    found = []
    try:
        with os.scandir(root) as listing:
            for entry in listing:
                if entry.name.startswith(".") or entry.name in SKIPPED or not entry.is_dir(follow_symlinks=False):
                    continue
                home = os.path.join(root, entry.name, HOME)
                if any(os.path.exists(f"{home}/{mark}") for mark in (f"{WORKSPACE}/ledger.jsonl", WORKSPACE_INDEX)):
                    found.append(os.path.join(root, entry.name))
    except OSError as error:
        return _Found([], error.strerror or str(error))
    return _Found(sorted(found) or [root])


class _Here(NamedTuple):
    """A project of some workspace, named so that no other is named like it."""

    path: str
    workspace: str
    card: Card


def _together(user_id: str, seen: list[Seen], roots: list[Root]) -> EnvironmentDag:
    here = list(_projects(seen))
    cards = [h.card for h in here]
    shared = [s for entry in seen if entry.found is not None for s in entry.found.shared_artifacts]
    return EnvironmentDag(
        version=VERSION,
        user_id=user_id,
        last_updated=now(),
        workspaces=[_summary(entry) for entry in seen],
        roots=roots,
        projects=[
            ProjectEntry(
                id=h.card.id,
                name=h.card.name,
                path=h.path,
                workspace=h.workspace,
                project_type=next(iter(h.card.facts.languages), "unknown"),
                health_score=h.card.health_score,
                goals=h.card.summary.goals,
                completed=h.card.summary.completed,
                last_activity=h.card.last_activity,
            )
            for h in here
        ],
        tech_stack=TechStack(
            languages=_counted(language for card in cards for language in card.facts.languages),
            tools=_counted(tool for card in cards for tool in card.facts.tools),
        ),
        patterns=list(patterns_of(cards, shared)),
        insights=list(_insights(here)),
        costs=[
            Cost(
                project=h.path,
                month=month,
                goals=spent.goals,
                ms=spent.ms,
                tokens=spent.tokens,
                cost_usd=spent.cost_usd,
            )
            for h in here
            for month, spent in sorted(h.card.months.items())
        ],
        notes=[f"{entry.path} {entry.problem}" for entry in seen if entry.problem],
    )


def _projects(seen: Iterable[Seen]) -> Iterator[_Here]:
    """Every project once, however many workspaces it is in: the first that was registered has it."""
    known: set[str] = set()
    for entry in seen:
        for card in entry.found.projects if entry.found is not None else ():
            path = os.path.join(entry.path, card.path)
            real = os.path.realpath(path)
            if real not in known:
                known.add(real)
                yield _Here(path, entry.path, card)


def _summary(entry: Seen) -> WorkspaceSummary:
    cards = entry.found.projects if entry.found is not None else []
    goals, completed = sum(c.summary.goals for c in cards), sum(c.summary.completed for c in cards)
    return WorkspaceSummary(
        id=entry.found.workspace_id if entry.found is not None else "",
        name=os.path.basename(entry.path) or entry.path,
        path=entry.path,
        project_count=len(cards),
        total_goals=goals,
        completed_goals=completed,
        completion_rate=round(completed / goals, 2) if goals else 0.0,
        last_activity=max((c.last_activity for c in cards), default=""),
        registered=entry.registered,
        problem=entry.problem,
    )


def _counted(names: Iterable[str]) -> dict[str, int]:
    return dict(sorted(Counter(names).items(), key=lambda item: (-item[1], item[0])))


# What is worth knowing.


def _insights(here: list[_Here]) -> Iterator[Insight]:
    yield from _failures(here)
    yield from _made_again(here)
    yield from _costs(here)
    for h in sorted(here, key=lambda h: (h.card.health_score or 0.0, h.path)):
        score = h.card.health_score
        if score is not None and score < UNWELL:
            yield Insight(
                kind="health", text=f"{h.card.name} has a health of {score:.2f}", projects=[h.path],
                figures={"health": score},
            )  # fmt: skip


def _failures(here: list[_Here]) -> Iterator[Insight]:
    """The same error several times, in whatever project."""
    counts: Counter[str] = Counter()
    where: dict[str, list[str]] = {}
    for h in here:
        for failure in h.card.failures:
            counts[failure.what] += failure.count
            where.setdefault(failure.what, []).append(h.path)
    for error, count in counts.most_common(SHOWN):
        if count >= TWICE:
            projects = where[error]
            text = f"“{error}” {count} times in {len(projects)} project{'s' if len(projects) > 1 else ''}"
            yield Insight(kind="repeated_failure", text=text, count=count, projects=projects)


def _made_again(here: list[_Here]) -> Iterator[Insight]:
    """Files that goal after goal makes."""
    often = [(h, r) for h in here for r in h.card.remade]
    for h, remade in sorted(often, key=lambda item: (-item[1].count, item[0].path, item[1].what))[:SHOWN]:
        text = f"{remade.what} of {h.card.name} was made by {remade.count} goals"
        yield Insight(kind="made_again", text=text, count=remade.count, projects=[h.path])


def _costs(here: list[_Here]) -> Iterator[Insight]:
    """What each month took, and where most of it went."""
    months: dict[str, dict[str, int]] = {}
    for h in here:
        for month, spent in h.card.months.items():
            by = months.setdefault(month, {})
            by[h.path] = by.get(h.path, 0) + spent.ms
    names = {h.path: h.card.name for h in here}
    for month in sorted(months, reverse=True)[:SHOWN]:
        by = months[month]
        most = max(sorted(by), key=lambda path: by[path])
        total = sum(by.values())
        if total:
            text = (
                f"{month}: {total / 1000:.1f} s in {len(by)} project{'s' if len(by) > 1 else ''}, most in {names[most]}"
            )
            yield Insight(kind="cost", text=text, projects=[most], figures={"ms": total, "most_ms": by[most]})
