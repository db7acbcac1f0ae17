"""Stand in for a plan: its hash, and its profile. What changes later is asked about again, and nothing else.

headway approve             the plan as it is now
headway approve ID…         the work of artifacts, at their approval gates
"""

from __future__ import annotations

import argparse
from typing import Any

from headway.planning import Planning
from headway.surfaces.cli.judging import add_judged, judge
from headway.surfaces.cli.screen import Screen
from headway.surfaces.cli.verbs.complete import show


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--hash", default="", metavar="HASH", help="refuse unless the plan still has this hash")
    parser.add_argument("--note", default="", metavar="TEXT", help="a word for the record")
    add_judged(parser, "approved")


def run(args: Any, screen: Screen) -> int:
    def approve(planning: Planning, plan_id: str) -> None:
        approval = planning.approve(plan_id, hash=args.hash, note=args.note)
        screen.answer(
            {"plan_id": plan_id, "hash": approval.hash, "by": approval.by, "at": approval.at, "seq": approval.seq}
        )
        screen.say(f"Plan {plan_id} is approved by {approval.by}: {approval.hash}. Next: headway run")

    return judge(args, screen, "APPROVE", args.note, work=lambda done: show(done, screen), plan=approve)
