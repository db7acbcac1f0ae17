"""Clients of the MCP server, for tests: in memory, over stdio, over HTTP; each call's answer as it is on the wire."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import threading
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import anyio
import httpx2
from mcp import Client, StdioServerParameters
from mcp.client.session import MessageHandlerFnT
from mcp.client.streamable_http import streamable_http_client
from mcp_types import CallToolResult

from headway.surfaces.mcp.server import build

T = TypeVar("T")
TOKEN = "a-token-that-is-long-enough"
PLAN: dict[str, Any] = {
    "id": "p",
    "goal": "Say hello to everybody",
    "constraints": ["be polite"],
    "artifacts": {
        "outline": {"description": "What to say", "produces": ["outline.txt"], "run": "echo hello > {output}"},
        "page": {
            "description": "The page",
            "requires": ["outline"],
            "produces": ["page.txt"],
            "verify": "test -s {output}",
        },
        "review": {"description": "Whether it is polite", "requires": ["page"]},
    },
}


class Agent:
    """A client, its calls, and what it is told without having asked."""

    def __init__(self, client: Client, heard: list[Any]) -> None:
        self.client = client
        self.heard = heard

    async def raw(self, tool: str, **arguments: Any) -> CallToolResult:
        found = await self.client.call_tool(tool, arguments)
        assert isinstance(found, CallToolResult)
        return found

    async def do(self, tool: str, **arguments: Any) -> dict[str, Any]:
        """A call that is answered."""
        found = await self.raw(tool, **arguments)
        assert not found.is_error, found.content
        assert found.structured_content is not None
        return found.structured_content

    async def refused(self, tool: str, **arguments: Any) -> dict[str, Any]:
        """A call that is refused: code, message, facts, hint."""
        found = await self.raw(tool, **arguments)
        assert found.is_error, found.content
        assert found.structured_content is not None
        return found.structured_content


def play(story: Callable[[], Awaitable[T]]) -> T:
    """Run a story to its end, or fail when it hangs."""

    async def bounded() -> T:
        with anyio.fail_after(120):
            return await story()

    return anyio.run(bounded)


async def until(condition: Callable[[], bool]) -> None:
    """Wait for what somebody else does by themselves."""
    for _ in range(6000):
        if condition():
            return
        await anyio.sleep(0.02)
    raise AssertionError("it did not happen")


@asynccontextmanager
async def in_memory(root: Path, *, mode: str = "auto", **options: Any) -> AsyncIterator[Agent]:
    """The server in this process, for one client."""
    heard, hear = _ear()
    async with Client(build(str(root), **options), mode=mode, message_handler=hear) as client:
        yield Agent(client, heard)


def _ear() -> tuple[list[Any], MessageHandlerFnT]:
    """Where messages of the server go, and who puts them there."""
    heard: list[Any] = []

    async def hear(message: Any) -> None:
        heard.append(message)

    return heard, hear


def command(*words: str) -> list[str]:
    return [sys.executable, "-m", "headway", "mcp", *words]


@asynccontextmanager
async def over_stdio(root: Path, *words: str, mode: str = "auto") -> AsyncIterator[Agent]:
    """The server as a process of its own, on its pipes."""
    found = command("--project", str(root), *words)
    server = StdioServerParameters(command=found[0], args=found[1:], env={**os.environ, "PYTHONWARNINGS": "default"})
    heard, hear = _ear()
    async with Client(server, mode=mode, message_handler=hear) as client:
        yield Agent(client, heard)


class Served(NamedTuple):
    """A server over HTTP."""

    url: str
    pid: int

    @property
    def host(self) -> str:
        return self.url.removeprefix("http://").partition("/")[0]


@contextmanager
def serving(root: Path, *words: str) -> Iterator[Served]:
    """The server over HTTP, on a port of its own."""
    process = subprocess.Popen(
        command("--project", str(root), "--http", "--port", "0", *words),
        stderr=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        env={**os.environ, "HEADWAY_MCP_TOKEN": TOKEN},
        text=True,
    )
    assert process.stderr is not None
    try:
        said = process.stderr.readline()
        found = re.search(r"http://\S+", said)
        assert found, said + process.stderr.read()
        drain = threading.Thread(target=process.stderr.read, daemon=True)
        drain.start()
        _wait_until_up(found[0])
        yield Served(found[0], process.pid)
    finally:
        process.send_signal(signal.SIGINT)
        process.wait(timeout=30)
        drain.join(timeout=30)
        process.stderr.close()


def _wait_until_up(url: str) -> None:
    for _ in range(600):
        try:
            httpx2.get(url, headers={"Authorization": "Bearer wrong"})
        except httpx2.TransportError:
            threading.Event().wait(0.05)
        else:
            return
    raise AssertionError("the server does not answer")


@asynccontextmanager
async def over_http(served: Served, *, mode: str = "auto") -> AsyncIterator[Agent]:
    """A client of it, with the token."""
    heard, hear = _ear()
    async with (
        httpx2.AsyncClient(headers={"Authorization": f"Bearer {TOKEN}"}, timeout=60) as http,
        Client(streamable_http_client(served.url, http_client=http), mode=mode, message_handler=hear) as client,
    ):
        yield Agent(client, heard)
