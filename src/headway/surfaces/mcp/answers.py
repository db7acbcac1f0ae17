"""Answers and errors on the wire: compact, the same in words and as data, and never above the budget."""

from __future__ import annotations

import re
from typing import Any

import msgspec
from mcp_types import CallToolResult, TextContent

from headway.briefing import fit
from headway.core.nearest import Nearest
from headway.errors import BugError, DamageError, HeadwayError, PlanInvalid, UsageError

PROBLEMS = 20
_COMMAND = re.compile(r"headway ([a-z]+)")


def answer(document: dict[str, Any]) -> CallToolResult:
    """What a tool found."""
    plain = msgspec.to_builtins(document)
    text = msgspec.json.encode(plain).decode()
    return CallToolResult(content=[TextContent(type="text", text=text)], structured_content=plain)


def refusal(error: Exception, tools: frozenset[str] = frozenset()) -> CallToolResult:
    """What went wrong: code, message, facts, and what to do next, which names tools where there are such."""
    known = error if isinstance(error, HeadwayError) else _foreign(error)
    document = known.to_dict()
    if isinstance(known, PlanInvalid) and len(known.problems) > PROBLEMS:
        document["problems"] = document["problems"][:PROBLEMS]  # type: ignore[index]  # a list, by PlanInvalid
        document["more_problems"] = len(known.problems) - PROBLEMS
    hint = str(document["hint"])
    document["hint"] = _COMMAND.sub(lambda found: found[1] if found[1] in tools else found[0], hint)
    plain = msgspec.to_builtins(fit(document))
    text = msgspec.json.encode(plain).decode()
    return CallToolResult(content=[TextContent(type="text", text=text)], structured_content=plain, is_error=True)


def _foreign(error: Exception) -> HeadwayError:
    if isinstance(error, OSError):
        return DamageError(
            "The operating system refused",
            facts={"error": error.strerror or type(error).__name__},
            hint="check permissions and free space, then call again",
            code="os",
        )
    return BugError(
        "Headway has a bug; nothing that was acknowledged is lost",
        facts={"error": type(error).__name__},
        hint="please report it; the server's stderr says where",
    )


def wrong_arguments(tool: str, message: str, facts: dict[str, object] | None = None) -> UsageError:
    """A call that does not fit the tool."""
    return UsageError(message, facts=facts, hint=f"call {tool} with the arguments of its schema", code="mcp.arguments")


def unknown_tool(name: str, known: list[str]) -> UsageError:
    """A tool that is not there."""
    near = Nearest(known).of(name)
    return UsageError(
        f"There is no tool {name[:80]}",
        facts={"did you mean": near} if near else {"tools": ", ".join(known)},
        hint="tools/list has them; headway mcp --tools all offers more",
        code="mcp.tool",
    )
