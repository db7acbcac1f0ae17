"""What tools answer, as schemas: the keys that an agent can count on. Others may stand beside them."""

from __future__ import annotations

from typing import Any

from pydantic import ConfigDict
from typing_extensions import TypedDict  # pydantic asks for this one before Python 3.12

Open = ConfigDict(extra="allow")


class Briefing(TypedDict, total=False):
    """Where a plan stands."""

    __pydantic_config__ = Open  # type: ignore[misc]  # pydantic reads it from the class
    plan_id: str
    status: str
    progress: dict[str, int]
    next: list[dict[str, Any]]
    do: str


class Page(TypedDict, total=False):
    """A part of a list."""

    __pydantic_config__ = Open  # type: ignore[misc]  # as above
    plan_id: str
    total: int
    next_cursor: str


class Claimed(TypedDict, total=False):
    """An artifact in one's hands."""

    __pydantic_config__ = Open  # type: ignore[misc]  # as above
    plan_id: str
    artifact: str
    token: int
    until: str
    continues: dict[str, Any] | None


class Done(TypedDict, total=False):
    """What is true of an artifact now; a ticket while that is still being found out."""

    __pydantic_config__ = Open  # type: ignore[misc]  # as above
    plan_id: str
    artifact: str
    status: str
    missing: list[dict[str, str]]
    ticket: str


class Ran(TypedDict, total=False):
    """What a run made; a ticket while it is under way."""

    __pydantic_config__ = Open  # type: ignore[misc]  # as above
    plan_id: str
    status: str
    made: list[str]
    failed: dict[str, str]
    ticket: str


class Planned(TypedDict, total=False):
    """A plan after a change."""

    __pydantic_config__ = Open  # type: ignore[misc]  # as above
    plan_id: str
    version: int


class Told(TypedDict, total=False):
    """Anything else about an artifact or a plan."""

    __pydantic_config__ = Open  # type: ignore[misc]  # as above
    plan_id: str
