"""What people have said about a workspace or about their machine: its events, who may say what, and what follows.

A workspace is a folder with many projects; the environment is the user's machine. Each has a ledger of its own, in the
same format as a plan's, with these events. What can be found out by looking is never recorded here. Pure.
"""

from __future__ import annotations

from typing import Literal

import msgspec

from headway.core.codec import know
from headway.core.decide.base import Rejection
from headway.core.events import Event, First, Record
from headway.core.plan import Value

FORMAT = 1
LONGEST = 2000
Relationship = Literal["dependency", "documentation", "source_code", "sibling"]
RELATIONSHIPS: tuple[Relationship, ...] = ("dependency", "documentation", "source_code", "sibling")


# Events.


class WorkspaceCreated(First):
    """The first line of a workspace's ledger. The id is random and made once: it survives a move."""

    type = "workspace_created"
    workspace_id: str


class LinkSaid(Event, kw_only=True):
    """What is said of two projects, each by its path and, where it has one, by its id, which a move leaves as it is."""

    source: str
    target: str
    source_id: str = ""
    target_id: str = ""
    reason: str = ""


class LinkConfirmed(LinkSaid, kw_only=True):
    """Somebody says that a relation that was found is one."""

    type = "link_confirmed"
    relationship: Relationship


class LinkAdded(LinkSaid, kw_only=True):
    """Somebody says how two projects are related, whatever can be found."""

    type = "link_added"
    relationship: Relationship


class LinkRemoved(LinkSaid, kw_only=True):
    """Somebody says that two projects are not related like that: it is not found again either."""

    type = "link_removed"


class WorkspaceGoalSet(Event):
    """A goal of the whole workspace, made of goals of its projects (`api:users`)."""

    type = "workspace_goal_set"
    id: str
    title: str
    parts: tuple[str, ...] = ()


class WorkspaceGoalDropped(Event):
    """A goal of the workspace was given up."""

    type = "workspace_goal_dropped"
    id: str
    reason: str = ""


class EnvironmentCreated(First):
    """The first line of the environment's ledger."""

    type = "environment_created"
    user_id: str


class WorkspaceRegistered(Event):
    """This folder is a workspace of this machine."""

    type = "workspace_registered"
    path: str


class WorkspaceForgotten(Event):
    """This folder is none any more."""

    type = "workspace_forgotten"
    path: str
    reason: str = ""


class RootAdded(Event):
    """In this folder workspaces are looked for."""

    type = "root_added"
    path: str


class RootRemoved(Event):
    """There they are looked for no more."""

    type = "root_removed"
    path: str
    reason: str = ""


WORKSPACE = (WorkspaceCreated, LinkConfirmed, LinkAdded, LinkRemoved, WorkspaceGoalSet, WorkspaceGoalDropped)
ENVIRONMENT = (EnvironmentCreated, WorkspaceRegistered, WorkspaceForgotten, RootAdded, RootRemoved)
know((*WORKSPACE, *ENVIRONMENT))


# What follows from them.


class Said(Value):
    """What somebody said about two projects. `confirmed`: it was found before; `removed`: they are not related.

    A project is named by its path and, where it has one, by its id, which a move leaves as it is.
    """

    source: str
    target: str
    source_id: str = ""
    target_id: str = ""
    relationship: Relationship = "dependency"
    confirmed: bool = False
    removed: bool = False
    reason: str = ""
    by: str = ""
    at: str = ""


class WorkspaceGoal(Value):
    """A goal of the whole workspace."""

    id: str
    title: str
    parts: tuple[str, ...] = ()
    at: str = ""
    by: str = ""


class Places(msgspec.Struct, kw_only=True):
    """All that was said in one such ledger."""

    id: str = ""
    said: dict[tuple[str, ...], Said] = {}
    """The newest word about two projects, by path and id: one that moved has the same id, and so has a copy of it."""
    goals: dict[str, WorkspaceGoal] = {}
    workspaces: dict[str, str] = {}
    """Registered folders, with the time."""
    roots: dict[str, str] = {}


def fold(places: Places, record: Record) -> None:
    """What is known after one more event."""
    event, ts, by = record.event, record.ts, record.by
    match event:
        case WorkspaceCreated():
            places.id = event.workspace_id
        case EnvironmentCreated():
            places.id = event.user_id
        case LinkSaid():
            key = (event.source, event.target, event.source_id, event.target_id)
            places.said.pop(key, None)  # the newest stands last
            places.said[key] = msgspec.structs.replace(_said(event), by=by, at=ts)
        case WorkspaceGoalSet():
            places.goals[event.id] = WorkspaceGoal(id=event.id, title=event.title, parts=event.parts, at=ts, by=by)
        case WorkspaceGoalDropped():
            places.goals.pop(event.id, None)
        case WorkspaceRegistered():
            places.workspaces[event.path] = ts
        case WorkspaceForgotten():
            places.workspaces.pop(event.path, None)
        case RootAdded():
            places.roots[event.path] = ts
        case RootRemoved():
            places.roots.pop(event.path, None)


def allow(places: Places, event: Event) -> Event | Rejection | None:
    """What is to be recorded, why it may not be, or None where it is already so."""
    texts = [getattr(event, name, "") for name in ("reason", "title", "path", "source", "target")]
    if any(len(text) > LONGEST for text in texts):
        message = f"A text of more than {LONGEST} characters"
        return Rejection(kind="usage", code="place.long", message=message, hint="say it shorter")
    match event:
        case LinkSaid() if event.source == event.target:
            message = f"{event.source} cannot be related to itself"
            return Rejection(kind="usage", code="link.itself", message=message, hint="name two projects")
        case LinkSaid():
            known = next((word for word in reversed(places.said.values()) if _pair(word) == _pair(event)), None)
            return None if known is not None and msgspec.structs.replace(known, by="", at="") == _said(event) else event
        case WorkspaceGoalSet():
            return _goal(places, event)
        case WorkspaceGoalDropped() if event.id not in places.goals:
            return _unknown(f"The workspace has no goal {event.id}", "headway dag workspace lists them")
        case WorkspaceRegistered() if event.path in places.workspaces:
            return None
        case RootAdded() if event.path in places.roots:
            return None
        case WorkspaceForgotten() if event.path not in places.workspaces:
            return _unknown(f"{event.path} is not registered", "headway dag environment lists what is")
        case RootRemoved() if event.path not in places.roots:
            return _unknown(f"{event.path} is no root", "headway dag environment lists them")
    return event


def _goal(places: Places, event: WorkspaceGoalSet) -> Event | Rejection | None:
    if not event.title.strip() or not event.id.strip():
        return Rejection(kind="usage", code="goal.empty", message="A goal is not empty", hint="say it in words")
    known = places.goals.get(event.id)
    return None if known is not None and (known.title, known.parts) == (event.title, event.parts) else event


def _pair(word: LinkSaid | Said) -> tuple[str, str]:
    return word.source_id or word.source, word.target_id or word.target


def _said(event: LinkSaid) -> Said:
    return Said(
        source=event.source,
        target=event.target,
        source_id=event.source_id,
        target_id=event.target_id,
        relationship=event.relationship if isinstance(event, LinkConfirmed | LinkAdded) else "dependency",
        confirmed=isinstance(event, LinkConfirmed),
        removed=isinstance(event, LinkRemoved),
        reason=event.reason,
    )


def _unknown(message: str, hint: str) -> Rejection:
    return Rejection(kind="usage", code="place.unknown", message=message, hint=hint)
