"""Write a plan's checkpoint, PLAN.json and PLAN.md, after verifying its whole ledger.

Its outputs are not in it: whoever imports it has the plan and what was recorded of its progress.

headway export rawko .rawko        the current task and each plan, as SPEC-0010 keeps them
"""

from __future__ import annotations

import argparse
from typing import Any

from headway.surfaces.cli.options import add_json, add_plan, plan_of, project_of
from headway.surfaces.cli.screen import Screen

FORMATS = "checkpoint, or rawko: SPEC-0010's current-task.yaml and plans/ID.yaml for every plan (default: checkpoint)"


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("format", nargs="?", choices=("checkpoint", "rawko"), default="checkpoint", help=FORMATS)
    parser.add_argument("path", metavar="PATH", help="a folder, or a file ending in .json")
    add_plan(parser)
    add_json(parser)


def run(args: Any, screen: Screen) -> int:
    project = project_of(args, screen)
    plan_id = plan_of(args, project)
    written = project.export_plan(plan_id, args.path, format=args.format)
    screen.answer({"plan_id": plan_id, "written": written})
    screen.say(f"Plan {plan_id} exported to {' and '.join(written)}")
    return 0
