"""Serve this project to agents, over the Model Context Protocol.

headway mcp                          over stdin and stdout: what a client starts by itself
headway mcp --http                   over HTTP on loopback, with a token
headway mcp --config claude-code     print what to write into a client's settings
"""

from __future__ import annotations

import argparse
import os
import sys
from typing import Any

from headway.errors import UsageError
from headway.surfaces.cli.options import add_project, at_least, project_of
from headway.surfaces.cli.screen import Screen

CLIENTS = ("claude-code", "opencode", "opencode-2", "codex", "cursor", "vscode")
PORT = 7717
SHORTEST = 16


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--tools", choices=("lean", "all"), default="lean", help="twelve tools, or all (default: lean)")
    parser.add_argument(
        "--by", default="", metavar="NAME", help="who acts, for the record (default: the client's own name)"
    )
    parser.add_argument("--plan-id", metavar="ID", help="the plan that is meant when a call names none")
    parser.add_argument("--http", action="store_true", help="streamable HTTP on 127.0.0.1 instead of stdin and stdout")
    parser.add_argument(
        "--port",
        type=at_least(0, highest=65535),
        default=PORT,
        metavar="N",
        help=f"with --http; 0: any (default: {PORT})",
    )
    parser.add_argument("--config", choices=CLIENTS, help="print the settings of a client, and end")
    add_project(parser)


def run(args: Any, screen: Screen) -> int:
    project = project_of(args)
    if args.config:
        return _show_config(args, screen)
    try:
        import mcp  # noqa: F401  # heavy, and an extra: asked for here and nowhere else
    except ImportError as error:
        raise UsageError(
            "The MCP server is an extra",
            hint="pip install 'headway[mcp]' (in a clone: pip install '.[mcp]')",
            code="mcp.missing",
        ) from error
    import anyio

    from headway.surfaces.mcp.server import build

    if not args.http:
        server = build(project.root, tools=args.tools, by=args.by, plan_id=args.plan_id)
        anyio.run(server.run_stdio_async)
        return 0
    return _serve_http(args, project.root)


def _serve_http(args: Any, root: str) -> int:
    import secrets

    import anyio

    from headway.surfaces.mcp import http
    from headway.surfaces.mcp.config import TOKEN
    from headway.surfaces.mcp.room import Room
    from headway.surfaces.mcp.server import build

    token = os.environ.get(TOKEN, "")
    if token and len(token) < SHORTEST:
        raise UsageError(
            f"{TOKEN} is too short to be a secret", hint=f"at least {SHORTEST} characters, or none", code="mcp.token"
        )
    known, token = bool(token), token or secrets.token_urlsafe(24)
    sock = http.listen(args.port)
    port = sock.getsockname()[1]
    rooms: list[Room] = []
    server = build(root, tools=args.tools, by=args.by, plan_id=args.plan_id, rooms=rooms)
    said = f"the one in {TOKEN}" if known else token
    print(f"headway mcp: http://{http.HOST}:{port}{http.PATH}\ntoken: {said}", file=sys.stderr, flush=True)
    anyio.run(http.serve, http.application(server, rooms, token=token, port=port), sock)
    return 0


def _show_config(args: Any, screen: Screen) -> int:
    from headway.surfaces.mcp.config import settings

    words = ["headway", "mcp"]
    if args.project:
        words += ["--project", args.project]
    words += [
        word for flag, value in (("--by", args.by), ("--plan-id", args.plan_id)) if value for word in (flag, value)
    ]
    if args.tools != "lean":
        words += ["--tools", args.tools]
    url = f"http://127.0.0.1:{args.port}/mcp" if args.http else ""
    file, text = settings(args.config, words, url)
    screen.note(f"For {file}:")
    screen.say(text)
    return 0
