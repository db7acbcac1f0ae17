"""Stand in for a plan: its hash, and its profile. What changes later is asked about again, and nothing else.

headway approve             the plan as it is now
headway approve ID…         the work of artifacts, at their approval gates
"""

from __future__ import annotations

import argparse
from typing import Any

from headway.life import Life
from headway.planning import Planning
from headway.surfaces.cli.meant import work_of
from headway.surfaces.cli.options import add_by, add_json, add_plan, project_of
from headway.surfaces.cli.screen import Screen
from headway.surfaces.cli.verbs.complete import show


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("artifacts", metavar="ID", nargs="*", help="artifacts whose work is approved, not the plan")
    parser.add_argument("--hash", default="", metavar="HASH", help="refuse unless the plan still has this hash")
    parser.add_argument("--note", default="", metavar="TEXT", help="a word for the record")
    add_by(parser)
    add_plan(parser)
    add_json(parser)


def run(args: Any, screen: Screen) -> int:
    project = project_of(args, screen)
    work, meant = work_of(args, project)
    plan_id = work.take_in(meant)
    if args.artifacts:
        done = Life(work, by=args.by).judge_work(plan_id, args.artifacts, "APPROVE", text=args.note)
        screen.answer({"plan_id": plan_id, "artifacts": [one.to_dict() for one in done]})
        for one in done:
            show(one, screen)
        return 0
    approval = Planning(project, by=args.by).approve(plan_id, hash=args.hash, note=args.note)
    screen.answer(
        {"plan_id": plan_id, "hash": approval.hash, "by": approval.by, "at": approval.at, "seq": approval.seq}
    )
    screen.say(f"Plan {plan_id} is approved by {approval.by}: {approval.hash}. Next: headway run")
    return 0
