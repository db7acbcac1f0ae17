"""Say that a plan is not to be made as it is, or that the work of artifacts is not good enough.

headway reject --reason TEXT            the plan: nothing of it is made until it is approved
headway reject ID… --reason TEXT        the work, at the artifacts' approval gates: it is to be made again
"""

from __future__ import annotations

import argparse
from typing import Any

from headway.life import Life
from headway.planning import Planning
from headway.surfaces.cli.meant import work_of
from headway.surfaces.cli.options import add_by, add_json, add_plan, project_of
from headway.surfaces.cli.screen import Screen


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("artifacts", metavar="ID", nargs="*", help="artifacts whose work is rejected, not the plan")
    parser.add_argument("--reason", required=True, metavar="TEXT", help="why, for the record")
    add_by(parser)
    add_plan(parser)
    add_json(parser)


def run(args: Any, screen: Screen) -> int:
    project = project_of(args, screen)
    work, meant = work_of(args, project)
    plan_id = work.take_in(meant)
    if args.artifacts:
        done = Life(work, by=args.by).judge_work(plan_id, args.artifacts, "REJECT", text=args.reason)
        screen.answer({"plan_id": plan_id, "artifacts": [one.to_dict() for one in done]})
        for one in done:
            screen.say(f"{one.artifact} is rejected: {args.reason}. Next: headway why {one.artifact}")
        return 0
    Planning(project, by=args.by).reject(plan_id, reason=args.reason)
    screen.answer({"plan_id": plan_id, "rejected": args.reason})
    screen.say(f"Plan {plan_id} is rejected: nothing of it is made. Next: headway plans edit …, then headway approve")
    return 0
