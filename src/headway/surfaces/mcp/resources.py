"""Resources: the plan, plan.md, the log and artifacts, to be read and subscribed to. Each fits into an answer."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec
from mcp.server.mcpserver import MCPServer
from mcp.server.mcpserver.exceptions import ResourceError, ResourceNotFoundError

from headway.desk import Desk
from headway.errors import HeadwayError, NotFound

JSON = "application/json"
TEXT = "text/markdown"


def changed(plan_id: str) -> list[str]:
    """The addresses of what is different when a plan's ledger grew."""
    own = [f"headway://plans/{plan_id}", f"headway://plans/{plan_id}/plan.md", f"headway://plans/{plan_id}/log"]
    return [*own, "headway://plan", "headway://plan.md", "headway://log", "headway://plans"]


def register(server: MCPServer[Any], desk: Callable[[], Desk]) -> None:
    """Offer them."""

    @server.resource("headway://plans", name="plans", description="The plans of this project", mime_type=JSON)
    def plans() -> str:
        return _told(lambda: desk().plans())

    @server.resource("headway://plan", name="plan", description="The plan, artifact by artifact", mime_type=JSON)
    def plan() -> str:
        return _told(lambda: desk().plan())

    @server.resource("headway://plan.md", name="plan.md", description="The plan for people", mime_type=TEXT)
    def plan_md() -> str:
        return _text(lambda: desk().markdown())

    @server.resource("headway://log", name="log", description="The newest events", mime_type=JSON)
    def log() -> str:
        return _told(lambda: desk().newest())

    @server.resource("headway://plans/{plan_id}", name="one plan", mime_type=JSON)
    def one_plan(plan_id: str) -> str:
        return _told(lambda: desk().plan(plan_id))

    @server.resource("headway://plans/{plan_id}/plan.md", name="one plan.md", mime_type=TEXT)
    def one_plan_md(plan_id: str) -> str:
        return _text(lambda: desk().markdown(plan_id))

    @server.resource("headway://plans/{plan_id}/log", name="one log", mime_type=JSON)
    def one_log(plan_id: str) -> str:
        return _told(lambda: desk().newest(plan_id))

    @server.resource("headway://plans/{plan_id}/artifacts/{+artifact}", name="artifact", mime_type=JSON)
    def artifact(plan_id: str, artifact: str) -> str:
        return _told(lambda: desk().output(artifact, plan_id))


def _told(look: Callable[[], dict[str, Any]]) -> str:
    return _text(lambda: msgspec.json.encode(look()).decode())


def _text(look: Callable[[], str]) -> str:
    try:
        return look()
    except NotFound as error:
        raise ResourceNotFoundError(str(error)) from error
    except HeadwayError as error:
        raise ResourceError(str(error)) from error
