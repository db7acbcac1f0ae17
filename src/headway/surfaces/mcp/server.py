"""The server: tools, resources and prompts of one project, for whoever is connected."""

from __future__ import annotations

import functools
import inspect
import os
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any, Literal

import anyio
import anyio.to_thread
from mcp.server.mcpserver import Context, MCPServer
from mcp.server.mcpserver.tools import Tool
from mcp_types import CallToolResult, ToolAnnotations

from headway.desk import Desk
from headway.errors import HeadwayError
from headway.surfaces.mcp import prompts, resources
from headway.surfaces.mcp.answers import answer, refusal
from headway.surfaces.mcp.guard import Guard
from headway.surfaces.mcp.room import Room, Seat
from headway.surfaces.mcp.tickets import PATIENCE, Progress, Tickets
from headway.surfaces.mcp.tools import LEAN, REST, Spec, Ticket
from headway.surfaces.mcp.watching import Watch, serve
from headway.version import VERSION

INSTRUCTIONS = (
    "Headway keeps this project's plan: artifacts, what each requires, who is at it, what is done. Call status first. "
    "Then claim what is next, make it, complete it; repeat until status says done. With no plan, save_plan. "
    "Leave a note when something is worth knowing: conversations end, plans stay."
)


def build(
    root: str,
    *,
    tools: Literal["lean", "all"] = "lean",
    by: str = "",
    plan_id: str | None = None,
    patience: float = PATIENCE,
    environ: Mapping[str, str] | None = None,
    rooms: list[Room] | None = None,
) -> MCPServer[Room]:
    """A server for one project whose life is that of one connection: over stdio, or in memory.

    `rooms`: it is for many connections, over HTTP, and its room is in there while it is open.
    """
    open_rooms: list[Room] = [] if rooms is None else rooms
    specs = LEAN if tools == "lean" else LEAN + REST
    env = dict(os.environ if environ is None else environ)

    def desk(connection: str, name: str) -> Desk:
        return Desk(root, by=by or _safe(name) or "agent", connection=connection, plan_id=plan_id, environ=env)

    watch = Watch(root)

    @asynccontextmanager
    async def lifespan(_: MCPServer[Room]) -> AsyncIterator[Room]:
        with Room(desk, Tickets(patience=patience), shared=rooms is not None) as room:
            open_rooms.append(room)
            async with anyio.create_task_group() as group:
                group.start_soon(watch.go_on, room)
                try:
                    yield room
                finally:
                    open_rooms.remove(room)
                    room.tickets.close()
                    group.cancel_scope.cancel()

    made = [_tool(spec, frozenset(s.name for s in specs)) for spec in specs]
    server: MCPServer[Room] = MCPServer(
        "headway",
        title="Headway",
        instructions=INSTRUCTIONS,
        version=VERSION,
        tools=made,
        lifespan=lifespan,
        log_level="ERROR",
        subscriptions=watch,
        middleware=[Guard({tool.name: frozenset(tool.parameters.get("properties", {})) for tool in made})],
    )
    serve(server._lowlevel_server, watch)  # the protocol's library leaves these calls to whoever is below it
    resources.register(server, lambda: Desk(root, by="reader", plan_id=plan_id, environ=env))
    prompts.register(server, lambda: Desk(root, by="reader", plan_id=plan_id, environ=env))
    return server


def _tool(spec: Spec, names: frozenset[str]) -> Tool:
    """A tool of the protocol: the signature without the desk, and with whoever calls."""
    signature = inspect.signature(spec.call, eval_str=True)
    parameters = list(signature.parameters.values())[1:]
    if spec.long:
        ticket = inspect.Parameter("ticket", inspect.Parameter.KEYWORD_ONLY, default="", annotation=Ticket)
        parameters.append(ticket)
    context = inspect.Parameter("ctx", inspect.Parameter.KEYWORD_ONLY, annotation=Context)

    async def call(ctx: Context[Room, Any], **given: Any) -> CallToolResult:
        room: Room = ctx.request_context.lifespan_context
        seat = _seat_of(room, ctx)
        try:
            if spec.long:
                return answer(await _long(spec, room.tickets, seat, ctx, given), names)
            found = await anyio.to_thread.run_sync(functools.partial(spec.call, seat.desk, **given))
            return answer(found, names)
        except HeadwayError as error:
            return refusal(error, names)
        except Exception as error:  # noqa: BLE001  # the one place where a bug becomes an answer
            _report(spec.name, error)
            return refusal(error, names)

    kept = [p.replace(kind=inspect.Parameter.KEYWORD_ONLY) for p in parameters]
    call.__signature__ = signature.replace(parameters=[*kept, context])  # type: ignore[attr-defined]
    call.__annotations__ = {p.name: p.annotation for p in [*kept, context]} | {"return": signature.return_annotation}
    call.__name__ = spec.name
    tool = Tool.from_function(
        call,
        name=spec.name,
        description=" ".join((spec.call.__doc__ or "").split()),
        annotations=ToolAnnotations(read_only_hint=spec.reads, open_world_hint=False),
        structured_output=True,
    )
    tool.parameters = _plain(tool.parameters)
    tool.fn_metadata.output_schema = _plain(tool.fn_metadata.output_schema or {})
    return tool


async def _long(
    spec: Spec, tickets: Tickets, seat: Seat, ctx: Context[Room, Any], given: dict[str, Any]
) -> dict[str, Any]:
    """A call that may take longer than somebody wants to wait."""
    ticket = given.pop("ticket", "")
    if ticket:
        job = tickets.find(ticket)
    elif spec.name == "run":
        targets, plan_id = given.get("targets") or (), given.get("plan_id", "")
        job = tickets.start(lambda p: seat.desk.run(targets, plan_id, reporter=p, stop=tickets.closing))
    else:
        job = tickets.start(functools.partial(_call, spec, seat.desk, given))
    return await tickets.wait(job, ctx.report_progress)


def _call(spec: Spec, desk: Desk, given: dict[str, Any], progress: Progress) -> dict[str, Any]:
    progress.words = f"{spec.name} {given.get('artifact', '')}".strip()
    found: dict[str, Any] = spec.call(desk, **given)
    return found


def _seat_of(room: Room, ctx: Context[Room, Any]) -> Seat:
    client = ctx.session.client_params
    session = (ctx.headers or {}).get("mcp-session-id")
    return room.seat(session, client.client_info.name if client is not None else "")


def _plain(schema: Any) -> Any:
    """A schema without titles, which repeat the names, and with references resolved by nobody left out."""
    if isinstance(schema, dict):
        return {key: _plain(value) for key, value in schema.items() if not (key == "title" and isinstance(value, str))}
    return [_plain(item) for item in schema] if isinstance(schema, list) else schema


def _safe(name: str) -> str:
    """A client's name, as it is recorded."""
    return "".join(c for c in name if c.isprintable() and c not in "\"'\\")[:64].strip()


def _report(tool: str, error: Exception) -> None:
    """A bug goes to the server's stderr, whole; the client is told that there is one."""
    import sys
    import traceback

    print(f"headway mcp: {tool} failed", file=sys.stderr)
    traceback.print_exception(error, file=sys.stderr)
