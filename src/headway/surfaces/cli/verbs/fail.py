"""Say that an artifact you claimed did not work out; what depends on it is blocked."""

from __future__ import annotations

import argparse
from typing import Any

from headway.core.ids import as_word
from headway.life import Life
from headway.surfaces.cli.meant import work_of
from headway.surfaces.cli.options import add_by, add_json, add_plan, project_of
from headway.surfaces.cli.screen import Screen


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("artifact", metavar="ID", help="an artifact, or the path of its output")
    parser.add_argument("--error", required=True, metavar="TEXT", help="what went wrong")
    parser.add_argument("--token", type=int, metavar="N", help="the claim's token (default: your own claim)")
    add_by(parser)
    add_plan(parser)
    add_json(parser)


def run(args: Any, screen: Screen) -> int:
    work, meant = work_of(args, project_of(args, screen))
    Life(work, by=args.by).fail(meant.plan_id, args.artifact, token=args.token, error=args.error)
    screen.answer({"plan_id": meant.plan_id, "artifact": args.artifact, "error": args.error})
    screen.say(f"{args.artifact} failed: {args.error}. Next: headway claim {as_word(args.artifact)} tries again")
    return 0
