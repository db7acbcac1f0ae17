"""What to write into a client's settings so that it starts, or reaches, the server. Knows forms; writes no file."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

TOKEN = "HEADWAY_MCP_TOKEN"  # the name of a variable, not a secret
NAME = "headway"


class Client(NamedTuple):
    """A client: the file that its settings stand in, and how it writes a command, and an address."""

    file: str
    command: Callable[[Sequence[str]], str]
    address: Callable[[str], str]


def _json(document: dict[str, Any]) -> str:
    return json.dumps(document, indent=2)


def _split(words: Sequence[str]) -> dict[str, Any]:
    return {"command": words[0], "args": list(words[1:])}


def _bearer(variable: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {variable}"}


def _opencode(server: dict[str, Any], *, second: bool = False) -> str:
    servers: dict[str, Any] = {NAME: server}
    mcp = {"servers": servers} if second else servers
    return _json({"$schema": "https://opencode.ai/config.json", "mcp": mcp})


def _toml(words: Sequence[str]) -> str:
    args = ", ".join(json.dumps(word) for word in words[1:])
    return f"[mcp_servers.{NAME}]\ncommand = {json.dumps(words[0])}\nargs = [{args}]"


def _at_home(words: Sequence[str]) -> list[str]:
    """For a client that starts servers anywhere, but says where its project is."""
    return [*words] if "--project" in words else [*words, "--project", "${workspaceFolder}"]


CLIENTS: dict[str, Client] = {
    "claude-code": Client(
        ".mcp.json",
        lambda words: _json({"mcpServers": {NAME: {"type": "stdio", **_split(words)}}}),
        lambda url: _json({"mcpServers": {NAME: {"type": "http", "url": url, "headers": _bearer(f"${{{TOKEN}}}")}}}),
    ),
    "opencode": Client(
        "opencode.json",
        lambda words: _opencode({"type": "local", "command": list(words), "enabled": True}),
        lambda url: _opencode({"type": "remote", "url": url, "enabled": True, "headers": _bearer(f"{{env:{TOKEN}}}")}),
    ),
    "opencode-2": Client(
        "opencode.json",
        lambda words: _opencode({"type": "local", "command": list(words)}, second=True),
        lambda url: _opencode({"type": "remote", "url": url, "headers": _bearer(f"{{env:{TOKEN}}}")}, second=True),
    ),
    "codex": Client(
        ".codex/config.toml",
        _toml,
        lambda url: f"[mcp_servers.{NAME}]\nurl = {json.dumps(url)}\nbearer_token_env_var = {json.dumps(TOKEN)}",
    ),
    "cursor": Client(
        ".cursor/mcp.json",
        lambda words: _json({"mcpServers": {NAME: _split(_at_home(words))}}),
        lambda url: _json({"mcpServers": {NAME: {"url": url, "headers": _bearer(f"${{env:{TOKEN}}}")}}}),
    ),
    "vscode": Client(
        ".vscode/mcp.json",
        lambda words: _json({"servers": {NAME: {"type": "stdio", **_split(words)}}}),
        lambda url: _json(
            {
                "inputs": [{"type": "promptString", "id": TOKEN, "description": "Headway's token", "password": True}],
                "servers": {NAME: {"type": "http", "url": url, "headers": _bearer(f"${{input:{TOKEN}}}")}},
            }
        ),
    ),
}


def settings(client: str, words: Sequence[str], url: str = "") -> tuple[str, str]:
    """The file, and what to write into it: for a command, or for an address."""
    known = CLIENTS[client]
    return known.file, known.address(url) if url else known.command(words)
