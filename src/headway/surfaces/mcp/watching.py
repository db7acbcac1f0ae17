"""Who subscribed to resources, and when they are told: by the protocol's stream, or, before 2026-07-28, one by one."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import anyio
from mcp import MCPError
from mcp.server.context import ServerRequestContext
from mcp.server.lowlevel.server import Server
from mcp.server.subscriptions import InMemorySubscriptionBus, ResourceUpdated
from mcp_types import INVALID_PARAMS, EmptyResult, SubscribeRequestParams, UnsubscribeRequestParams

from headway.project import Project
from headway.surfaces.mcp import resources
from headway.surfaces.mcp.room import Room, Seat

EVERY = 0.5
"""How often, in seconds, plans are looked at for those who subscribed."""
PATIENCE = 5.0
"""How long, in seconds, a client may take to be told; one that does not read is told nothing any more."""
MOST = 1000
"""How many resources one connection may subscribe to."""


class Watch(InMemorySubscriptionBus):
    """The plans of a project as they were last seen, and who listens; nobody looks while there is nobody."""

    def __init__(self, root: str) -> None:
        super().__init__()
        self._root = root
        self._seen: dict[str, object] | None = None
        self._listeners_now = 0

    def subscribe(self, listener: Callable[[Any], None]) -> Callable[[], None]:
        """As the protocol's library, and counted."""
        end = super().subscribe(listener)
        self.begin()
        self._listeners_now += 1

        def ended() -> None:
            self._listeners_now -= 1
            end()

        return ended

    def begin(self) -> None:
        """Somebody listens from here on: what happens after this is news."""
        if self._seen is None:
            self._seen = self._stamps()

    async def go_on(self, room: Room) -> None:
        """Tell whoever subscribed to a resource of a plan when its ledger grew; none of them waits for another."""
        async with anyio.create_task_group() as group:
            while True:
                await anyio.sleep(EVERY)
                seats = [seat for seat in room.seats() if seat.subscribed]
                if not self._listeners_now and not seats:
                    self._seen = None
                    continue
                grown = list(dict.fromkeys(uri for plan_id in self._grown() for uri in resources.changed(plan_id)))
                for uri in grown:
                    await self.publish(ResourceUpdated(uri=uri))
                for seat in seats if grown else ():
                    group.start_soon(_tell, seat, grown)

    def _grown(self) -> list[str]:
        before, self._seen = self._seen or {}, self._stamps()
        return [plan_id for plan_id, stamp in self._seen.items() if before.get(plan_id) != stamp]

    def _stamps(self) -> dict[str, object]:
        project = Project(self._root)
        return {plan_id: project.store.folder(plan_id).ledger().stamp() for plan_id in project.plan_ids()}


async def _tell(seat: Seat, uris: Sequence[str]) -> None:
    try:
        with anyio.fail_after(PATIENCE):
            for uri in uris:
                session = seat.subscribed.get(uri)
                if session is not None:
                    await session.send_resource_updated(uri)
    except (TimeoutError, anyio.BrokenResourceError, anyio.ClosedResourceError):  # nobody is there to be told
        seat.subscribed.clear()


def serve(server: Server[Room], watch: Watch) -> None:
    """Let clients of the protocol before 2026-07-28 subscribe: each resource by a call of its own."""

    def seat_of(ctx: ServerRequestContext[Room, Any]) -> Seat:
        headers = getattr(ctx.request, "headers", None) or {}
        client = ctx.session.client_params
        name = client.client_info.name if client is not None else ""
        return ctx.lifespan_context.seat(headers.get("mcp-session-id"), name)

    async def subscribe(ctx: ServerRequestContext[Room, Any], params: SubscribeRequestParams) -> EmptyResult:
        seat = seat_of(ctx)
        if len(seat.subscribed) >= MOST:
            raise MCPError(INVALID_PARAMS, f"One connection subscribes to {MOST} resources at most")
        watch.begin()
        seat.subscribed[str(params.uri)] = ctx.session
        return EmptyResult()

    async def unsubscribe(ctx: ServerRequestContext[Room, Any], params: UnsubscribeRequestParams) -> EmptyResult:
        seat_of(ctx).subscribed.pop(str(params.uri), None)
        return EmptyResult()

    server.add_request_handler("resources/subscribe", SubscribeRequestParams, subscribe)
    server.add_request_handler("resources/unsubscribe", UnsubscribeRequestParams, unsubscribe)
