"""What is refused before a tool is asked: strange tools, strange arguments, too much text, too many calls at once."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from mcp.server.context import CallNext, HandlerResult, ServerRequestContext
from mcp_types import CallToolResult

from headway.core.nearest import Nearest
from headway.errors import HeadwayError, UsageError
from headway.surfaces.mcp.answers import refusal, unknown_tool, wrong_arguments
from headway.surfaces.mcp.room import Room

LARGEST = 1024 * 1024
"""The most characters of a call's arguments; more belongs in a file."""
DEEPEST = 50


class Guard:
    """Stands before every tool call. `tools`: the names of their arguments."""

    def __init__(self, tools: Mapping[str, frozenset[str]]) -> None:
        self._tools = tools
        self._names = frozenset(tools)

    async def __call__(self, ctx: ServerRequestContext[Any, Any], call_next: CallNext) -> HandlerResult:
        """One message."""
        if ctx.method != "tools/call" or not isinstance(ctx.params, Mapping):
            return await call_next(ctx)
        room: Room = ctx.lifespan_context
        try:
            self._check(ctx.params)
            headers = getattr(ctx.request, "headers", None) or {}
            client = ctx.session.client_params
            seat = room.seat(headers.get("mcp-session-id"), client.client_info.name if client is not None else "")
            with room.call(seat):
                result = await call_next(ctx)
        except HeadwayError as error:
            return refusal(error, self._names)
        said = _bare_error(result)
        return result if said is None else refusal(_as_error(str(ctx.params.get("name")), said), self._names)

    def _check(self, params: Mapping[str, Any]) -> None:
        name, given = params.get("name"), params.get("arguments")
        if not isinstance(name, str) or name not in self._tools:
            raise unknown_tool(str(name), list(self._tools))
        if given is None:
            return
        if not isinstance(given, Mapping):
            raise wrong_arguments(name, "Arguments are a mapping of names to values")
        strange = [str(key) for key in given if key not in self._tools[name]]
        if strange:
            near = Nearest(self._tools[name]).of(strange[0])
            facts: dict[str, object] = {"did you mean": near} if near else {"known": ", ".join(self._tools[name])}
            raise wrong_arguments(name, f"{name} has no argument {strange[0][:80]}", facts)
        if _size(given) > LARGEST:
            raise UsageError(
                "The arguments are too large",
                facts={"at most, in characters": LARGEST},
                hint="write it to a file of the project, and name the file",
                code="mcp.large",
            )


def _size(value: Any) -> int:
    """How many characters there are in it, without following it for ever; too deep counts as too large."""
    total, queue = 0, [(value, 0)]
    while queue:
        item, depth = queue.pop()
        if isinstance(item, str):
            total += len(item)
        elif isinstance(item, Mapping):
            queue += ((part, depth + 1) for pair in item.items() for part in pair)
        elif isinstance(item, list):
            queue += ((part, depth + 1) for part in item)
        total += 1
        if total > LARGEST or depth > DEEPEST:
            return LARGEST + 1
    return total


def _bare_error(result: HandlerResult) -> str | None:
    """What an error says that the protocol's library made by itself; None of everything else."""
    if isinstance(result, CallToolResult):
        result = result.model_dump(mode="json", by_alias=True, exclude_none=True)
    if not isinstance(result, dict) or not result.get("isError") or result.get("structuredContent") is not None:
        return None
    content = result.get("content") or [{}]
    return str(content[0].get("text", ""))


def _as_error(tool: str, said: str) -> HeadwayError:
    """What the protocol's library has to say about a call, in our shape."""
    lines = [line.strip() for line in said.splitlines() if "errors.pydantic.dev" not in line]
    if "validation error" in said:
        told = [line.partition(" [type=")[0][:200] for line in lines[1:9]]
        found = [f"{name}: {problem}" for name, problem in zip(told[::2], told[1::2], strict=False)]
        return wrong_arguments(tool, f"{tool} was called with arguments of the wrong kind", {"problems": found})
    return UsageError(f"{tool} could not be called", facts={"reason": " ".join(lines)[:300]}, code="mcp.call")
