"""What `headway mcp --config` prints: each client's own form, as its documentation has it, and one that works."""

from __future__ import annotations

import json
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest
from mcp import Client, StdioServerParameters

from headway.surfaces.cli.main import main
from headway.surfaces.cli.verbs.mcp import CLIENTS
from headway.surfaces.mcp import config
from tests.surfaces.mcp_clients import play

URL = "http://127.0.0.1:7717/mcp"
BEARER = "HEADWAY_MCP_TOKEN"
COMMANDS: dict[str, Any] = {
    "claude-code": {"mcpServers": {"headway": {"type": "stdio", "command": "headway", "args": ["mcp"]}}},
    "opencode": {"mcp": {"headway": {"type": "local", "command": ["headway", "mcp"], "enabled": True}}},
    "opencode-2": {"mcp": {"servers": {"headway": {"type": "local", "command": ["headway", "mcp"]}}}},
    "codex": {"mcp_servers": {"headway": {"command": "headway", "args": ["mcp"]}}},
    "cursor": {
        "mcpServers": {"headway": {"command": "headway", "args": ["mcp", "--project", "${workspaceFolder}"]}},
    },
    "vscode": {"servers": {"headway": {"type": "stdio", "command": "headway", "args": ["mcp"]}}},
}


def headers(variable: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {variable}"}


ADDRESSES: dict[str, Any] = {
    "claude-code": {"mcpServers": {"headway": {"type": "http", "url": URL, "headers": headers(f"${{{BEARER}}}")}}},
    "opencode": {
        "mcp": {"headway": {"type": "remote", "url": URL, "enabled": True, "headers": headers(f"{{env:{BEARER}}}")}}
    },
    "opencode-2": {
        "mcp": {"servers": {"headway": {"type": "remote", "url": URL, "headers": headers(f"{{env:{BEARER}}}")}}}
    },
    "codex": {"mcp_servers": {"headway": {"url": URL, "bearer_token_env_var": BEARER}}},
    "cursor": {"mcpServers": {"headway": {"url": URL, "headers": headers(f"${{env:{BEARER}}}")}}},
    "vscode": {
        "inputs": [{"type": "promptString", "id": BEARER, "description": "Headway's token", "password": True}],
        "servers": {"headway": {"type": "http", "url": URL, "headers": headers(f"${{input:{BEARER}}}")}},
    },
}


def printed(root: Path, *words: str) -> str:
    command = [sys.executable, "-m", "headway", "mcp", *words]
    return subprocess.run(command, cwd=root, check=True, capture_output=True, text=True).stdout


def read(client: str, text: str) -> dict[str, Any]:
    found: dict[str, Any] = tomllib.loads(text) if client == "codex" else json.loads(text)
    schema = found.pop("$schema", None)
    assert (schema is not None) == client.startswith("opencode")
    return found


@pytest.mark.parametrize("client", CLIENTS)
def test_each_client_is_given_its_own_form(client: str) -> None:
    """A command that it starts, or an address with the token from where that client keeps it: never in the file."""
    assert read(client, config.settings(client, ["headway", "mcp"])[1]) == COMMANDS[client]
    assert read(client, config.settings(client, ["headway", "mcp"], URL)[1]) == ADDRESSES[client]


def test_every_client_that_is_offered_is_known() -> None:
    """The words of the command line are the forms that there are."""
    assert set(CLIENTS) == set(config.CLIENTS) == set(COMMANDS) == set(ADDRESSES)


def test_what_is_printed_is_settings_and_nothing_else_and_starts_a_server(tmp_path: Path) -> None:
    """It can be written straight into the file, options included; what it names is started and answers."""
    said = printed(tmp_path, "--config", "claude-code", "--tools", "all", "--by", "ann", "--project", str(tmp_path))
    server = json.loads(said)["mcpServers"]["headway"]
    assert server["args"] == ["mcp", "--project", str(tmp_path), "--by", "ann", "--tools", "all"]
    assert json.loads(printed(tmp_path, "--http", "--port", "1234", "--config", "vscode"))["servers"]["headway"][
        "url"
    ].endswith(":1234/mcp")

    async def story() -> int:
        given = StdioServerParameters(command=sys.executable, args=["-m", "headway", *server["args"]])
        async with Client(given) as client:
            return len((await client.list_tools()).tools)

    assert play(story) > 12


def test_a_port_that_cannot_be_is_a_mistake_in_the_command_line(capsys: pytest.CaptureFixture[str]) -> None:
    """Ports end at 65535."""
    assert main(["mcp", "--http", "--port", "99999"]) == 2
    assert "99999 is not a number from 0 to 65535" in capsys.readouterr().err
