"""Say that you are still at an artifact that you claimed: nobody may take it over before the new time."""

from __future__ import annotations

import argparse
from typing import Any

from headway.life import LEASE, Life
from headway.projections.story import moment
from headway.surfaces.cli.meant import work_of
from headway.surfaces.cli.options import add_by, add_json, add_plan, project_of, span
from headway.surfaces.cli.screen import Screen


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("artifact", metavar="ID", help="an artifact, or the path of its output")
    parser.add_argument("--token", type=int, metavar="N", help="the claim's token (default: your own claim)")
    parser.add_argument("--lease", type=span, default=LEASE, metavar="TIME", help="how much longer: 90s, 30m, 2h, 1d")
    parser.add_argument("--note", default="", metavar="TEXT", help="how far it is, for whoever goes on with it")
    add_by(parser)
    add_plan(parser)
    add_json(parser)


def run(args: Any, screen: Screen) -> int:
    work, meant = work_of(args, project_of(args, screen))
    life = Life(work, by=args.by)
    until = life.heartbeat(meant.plan_id, args.artifact, token=args.token, lease=args.lease, note=args.note)
    screen.answer({"plan_id": meant.plan_id, "artifact": args.artifact, "until": until})
    screen.say(f"{args.artifact} is yours until {moment(until)}.")
    return 0
