"""Give a claim back: nothing is known to be wrong, and somebody else may take it."""

from __future__ import annotations

import argparse
from typing import Any

from headway.life import Life
from headway.surfaces.cli.meant import work_of
from headway.surfaces.cli.options import add_by, add_json, add_plan, project_of
from headway.surfaces.cli.screen import Screen


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("artifact", metavar="ID", help="an artifact, or the path of its output")
    parser.add_argument("--token", type=int, metavar="N", help="the claim's token (default: your own claim)")
    parser.add_argument("--reason", default="", help="why, for the record")
    add_by(parser)
    add_plan(parser)
    add_json(parser)


def run(args: Any, screen: Screen) -> int:
    work, meant = work_of(args, project_of(args, screen))
    Life(work, by=args.by).release(meant.plan_id, args.artifact, token=args.token, reason=args.reason)
    screen.answer({"plan_id": meant.plan_id, "artifact": args.artifact})
    screen.say(f"{args.artifact} is free again.")
    return 0
