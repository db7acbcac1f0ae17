"""Say how the projects of a workspace are related, and what is wanted of them together: events in its own ledger.

headway workspace link web api        web depends on api (--as documentation, source_code, sibling)
headway workspace confirm web api     what was found is so
headway workspace unlink web api      it is not so, whatever is found
headway workspace goal ship "Ship it" api:users web:shop
headway workspace drop ship           give that goal up
headway workspace refresh             keep what is seen now
headway dag workspace                 shows all of it
"""

from __future__ import annotations

import argparse
from typing import Any

from headway.core.places import RELATIONSHIPS
from headway.history.shapes import to_dict
from headway.projections.story import count
from headway.surfaces.cli.options import add_by, add_json, add_project
from headway.surfaces.cli.screen import Screen
from headway.surfaces.cli.upper import SIGN, workspace_of


def configure(parser: argparse.ArgumentParser) -> None:
    verbs = parser.add_subparsers(dest="action", required=True, metavar="ACTION")
    link = verbs.add_parser("link", help="say how two projects are related")
    confirm = verbs.add_parser("confirm", help="say that a relation that was found is one")
    unlink = verbs.add_parser("unlink", help="say that two projects are not related")
    for verb in (link, confirm, unlink):
        verb.add_argument("source", metavar="PROJECT", help="who depends, or documents: a path below the workspace")
        verb.add_argument("target", metavar="OTHER", help="on what, or what")
        verb.add_argument("--reason", default="", metavar="TEXT", help="why, for the record")
    link.add_argument("--as", dest="relationship", choices=RELATIONSHIPS, default="dependency", help="how")
    goal = verbs.add_parser("goal", help="set a goal of the whole workspace")
    goal.add_argument("id", metavar="ID", help="its name")
    goal.add_argument("title", metavar="TEXT", help="what is wanted")
    goal.add_argument("parts", metavar="PROJECT:GOAL", nargs="*", help="the goals of projects that it is made of")
    drop = verbs.add_parser("drop", help="give a goal of the workspace up")
    drop.add_argument("id", metavar="ID", help="its name")
    drop.add_argument("--reason", default="", metavar="TEXT", help="why, for the record")
    refresh = verbs.add_parser("refresh", help="keep what is seen now, so that the next look is quick")
    for verb in (link, confirm, unlink, goal, drop, refresh):
        verb.add_argument("--workspace", dest="path", metavar="PATH", help="its folder (default: around this project)")
        add_by(verb)
        add_project(verb)
        add_json(verb)


def run(args: Any, screen: Screen) -> int:
    workspace = workspace_of(args, screen)
    if args.action == "refresh":
        index = workspace.refresh()
        screen.answer(to_dict(workspace.dag()))
        screen.say(f"{count(len(index.projects), 'project')}, {count(len(index.links), 'relation')}: kept.")
    elif args.action == "goal":
        goal = workspace.set_goal(args.id, args.title, args.parts)
        screen.answer(to_dict(goal))
        screen.say(f"{SIGN[goal.status]} {goal.title}  {goal.done}/{goal.total}")
    elif args.action == "drop":
        workspace.drop_goal(args.id, reason=args.reason)
        screen.answer({"dropped": args.id})
        screen.say(f"{args.id} is given up.")
    elif args.action == "unlink":
        workspace.unlink(args.source, args.target, reason=args.reason)
        screen.answer({"unlinked": [args.source, args.target]})
        screen.say(f"{args.source} and {args.target} are not related.")
    else:
        if args.action == "link":
            link = workspace.link(args.source, args.target, relationship=args.relationship, reason=args.reason)
        else:
            link = workspace.confirm(args.source, args.target, reason=args.reason)
        screen.answer(to_dict(link))
        arrow = "↔" if link.relationship == "sibling" else "→"
        screen.say(f"{link.source} {arrow} {link.target}  {link.relationship}, by your word.")
    return 0
