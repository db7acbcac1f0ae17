"""Name the workspaces of this machine: events in its own ledger, below $HEADWAY_HOME (default: ~/.headway).

headway environment register PATH     this folder is a workspace
headway environment root PATH         in this folder workspaces are looked for
headway environment forget PATH       neither any more; nothing in it is touched
headway environment refresh           bring all indexes up to date
headway dag environment               shows all of it
"""

from __future__ import annotations

import argparse
from typing import Any

from headway.history.shapes import to_dict
from headway.projections.story import count
from headway.surfaces.cli.options import add_by, add_json, add_project
from headway.surfaces.cli.screen import Screen
from headway.surfaces.cli.upper import environment_of


def configure(parser: argparse.ArgumentParser) -> None:
    verbs = parser.add_subparsers(dest="action", required=True, metavar="ACTION")
    register = verbs.add_parser("register", help="this folder is a workspace of this machine")
    root = verbs.add_parser("root", help="in this folder workspaces are looked for")
    forget = verbs.add_parser("forget", help="this folder, or root, is none any more")
    forget.add_argument("--reason", default="", metavar="TEXT", help="why, for the record")
    for verb in (register, root, forget):
        verb.add_argument("path", metavar="PATH", help="a folder")
    refresh = verbs.add_parser("refresh", help="bring all indexes up to date")
    for verb in (register, root, forget, refresh):
        add_by(verb)
        add_project(verb)
        add_json(verb)


def run(args: Any, screen: Screen) -> int:
    environment = environment_of(screen, by=args.by)
    if args.action == "register":
        found = environment.register(args.path)
    elif args.action == "root":
        found = environment.add_root(args.path)
    elif args.action == "forget":
        found = environment.forget(args.path, reason=args.reason)
    else:
        found = environment.refresh()
    screen.answer(to_dict(found))
    screen.say(f"{count(len(found.workspaces), 'workspace')}, {count(len(found.projects), 'project')}.")
    return 0
