"""Streamable HTTP on loopback: whoever has the token, from this machine, and from no web page.

Stands before the protocol's own application: refuses strangers with the reason, and tells the room which sessions are
there. A web page cannot pass: its Origin is foreign, and it does not know the token.
"""

from __future__ import annotations

import hmac
import socket
from collections.abc import Mapping
from typing import Any

import msgspec
from mcp.server.mcpserver import MCPServer
from mcp.server.transport_security import TransportSecuritySettings
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from headway.surfaces.mcp.room import IDLE, Room

HOST = "127.0.0.1"
PATH = "/mcp"
LARGEST = 2 * 1024 * 1024
SESSIONS = 256
_STREAM = "GET"


class Door:
    """Lets in who may come in."""

    def __init__(self, app: ASGIApp, rooms: list[Room], *, token: str, port: int) -> None:
        self._app = app
        self._rooms = rooms
        self._token = token.encode()
        self._hosts = {f"127.0.0.1:{port}", f"localhost:{port}", f"[::1]:{port}"}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """One request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        headers = {name.decode("latin-1").lower(): value.decode("latin-1") for name, value in scope["headers"]}
        refused = self._refuse(headers)
        if refused is not None:
            await _answer(send, *refused)
            return
        await self._pass(scope, receive, send, headers.get("mcp-session-id", ""))

    async def _pass(self, scope: Scope, receive: Receive, send: Send, session: str) -> None:
        room, method = self._rooms[-1] if self._rooms else None, str(scope["method"])
        status, opened = 0, ""

        async def watched(message: Message) -> None:
            nonlocal status, opened
            if message["type"] == "http.response.start":
                status = message["status"]
                found = {name.lower(): value for name, value in message.get("headers", ())}
                opened = found.get(b"mcp-session-id", b"").decode("latin-1")
                if room is not None and opened and not session and status < 400:
                    room.opened(opened, "")
            await send(message)

        if room is not None and session:
            room.arrives(session, stream=method == _STREAM)
        try:
            await self._app(scope, receive, watched)
        finally:
            if room is not None and session:
                room.departs(session, closed=method == "DELETE" and status < 400)

    def _refuse(self, headers: Mapping[str, str]) -> tuple[int, str, str, str] | None:
        host, origin = headers.get("host", ""), headers.get("origin")
        if host not in self._hosts:
            return 421, "http.host", "This server answers on loopback only", f"Host is {host[:80] or 'missing'}"
        if origin is not None and origin.removeprefix("http://") not in self._hosts:
            return 403, "http.origin", "Requests of web pages are refused", f"Origin is {origin[:80]}"
        scheme, _, given = headers.get("authorization", "").partition(" ")
        if scheme.lower() != "bearer" or not hmac.compare_digest(given.strip().encode("latin-1"), self._token):
            return (
                401,
                "http.token",
                "The token is missing or wrong",
                "Authorization: Bearer TOKEN, as headway mcp said",
            )
        return None


async def _answer(send: Send, status: int, code: str, message: str, why: str) -> None:
    body = msgspec.json.encode(
        {"code": code, "message": message, "facts": {"reason": why}, "hint": "headway mcp --help"}
    )
    headers = [(b"content-type", b"application/json"), (b"content-length", str(len(body)).encode())]
    if status == 401:
        headers.append((b"www-authenticate", b"Bearer"))
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body})


def listen(port: int) -> socket.socket:
    """A socket on loopback; port 0 is any that is free."""
    made = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    made.bind((HOST, port))
    return made


def application(server: MCPServer[Room], rooms: list[Room], *, token: str, port: int) -> ASGIApp:
    """The whole of it."""
    hosts = [f"127.0.0.1:{port}", f"localhost:{port}", f"[::1]:{port}"]
    inner = server.streamable_http_app(
        streamable_http_path=PATH,
        host=HOST,
        max_request_body_size=LARGEST,
        max_sessions=SESSIONS,
        session_idle_timeout=IDLE,
        transport_security=TransportSecuritySettings(
            enable_dns_rebinding_protection=True, allowed_hosts=hosts, allowed_origins=[f"http://{h}" for h in hosts]
        ),
    )
    return Door(inner, rooms, token=token, port=port)


async def serve(app: ASGIApp, sock: socket.socket) -> None:
    """Answer until somebody ends it."""
    import uvicorn

    config: Any = uvicorn.Config(app, log_level="error", lifespan="on", timeout_graceful_shutdown=3, access_log=False)
    await uvicorn.Server(config).serve(sockets=[sock])
