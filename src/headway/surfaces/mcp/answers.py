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


def answer(document: dict[str, Any], tools: frozenset[str] = frozenset()) -> CallToolResult:
    """What a tool found; what is waited for names tools where there are such."""
    plain = msgspec.to_builtins(document)
    if isinstance(plain.get("waiting"), dict):
        plain["waiting"] = {name: _as_call(why, tools) for name, why in plain["waiting"].items()}
    text = msgspec.json.encode(plain).decode()
    return CallToolResult(content=[TextContent(type="text", text=text)], structured_content=plain)


def refusal(error: Exception, tools: frozenset[str] = frozenset()) -> CallToolResult:
    """What went wrong: code, message, facts, and what to do next, which names tools where there are such."""
    known = error if isinstance(error, HeadwayError) else _foreign(error)
    document = known.to_dict()
    if isinstance(known, PlanInvalid) and len(known.problems) > PROBLEMS:
        document["problems"] = document["problems"][:PROBLEMS]  # type: ignore[index]  # a list, by PlanInvalid
        document["more_problems"] = len(known.problems) - PROBLEMS
    document["hint"] = _as_call(str(document["hint"]), tools)
    plain = msgspec.to_builtins(fit(document))
    text = msgspec.json.encode(plain).decode()
    return CallToolResult(content=[TextContent(type="text", text=text)], structured_content=plain, is_error=True)


def _as_call(hint: str, tools: frozenset[str]) -> str:
    """A hint for whoever calls tools: who they are is known, options are arguments. Other commands stay as they are."""
    found = _COMMAND.sub(lambda command: command[1] if command[1] in tools else command[0], hint)
    found = found.replace("run the command again", "call again")
    if "headway " in found:
        return found
    found = re.sub(r" --by [^\s;,]+", "", found)
    found = re.sub(r"(?<!:) --([a-z-]+) (?:[A-Z]+\b|…)", r" with \1", found)
    found = re.sub(r"^--([a-z-]+) [A-Z]+\b", r"give \1", found)
    return re.sub(r"--([a-z-]+)(?: [A-Z]+\b| …)?", r"\1", found)


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
