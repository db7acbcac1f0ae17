"""Take in a checkpoint: as a new plan, or, with --replace, as the state of one that exists.

A checkpoint that was changed after it was written is refused. Plan files are for headway plans new.
"""

from __future__ import annotations

import argparse
from typing import Any

from headway.projections.story import count
from headway.surfaces.cli.options import add_json, add_project, project_of
from headway.surfaces.cli.screen import Screen

FORMATS = "checkpoint, or rawko: a plan file of SPEC-0010, or the folder of its current task (default: checkpoint)"


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("format", nargs="?", choices=("checkpoint", "rawko"), default="checkpoint", help=FORMATS)
    parser.add_argument("path", metavar="PATH", help="a checkpoint file, or the folder that holds PLAN.json")
    parser.add_argument("--plan-id", metavar="ID", help="import it under another id")
    parser.add_argument("--replace", action="store_true", help="replace the state of the plan that has this id")
    add_project(parser)
    add_json(parser)


def run(args: Any, screen: Screen) -> int:
    project = project_of(args, screen)
    saved = project.import_plan(args.path, plan_id=args.plan_id, replace=args.replace, format=args.format)
    state = saved.execution.state
    problems = [problem.to_dict() for problem in saved.problems]
    total = len(state.artifacts)
    screen.answer({"plan_id": state.plan_id, "outcome": saved.outcome, "artifacts": total, "problems": problems})
    if saved.outcome == "unchanged":
        screen.say(f"Plan {state.plan_id} has this checkpoint already: nothing was changed. --replace goes back to it.")
    else:
        screen.say(f"Plan {state.plan_id} {saved.outcome}: {count(total, 'artifact')} from {args.path}")
    for problem in saved.problems:
        screen.note(screen.style(f"  {problem}", "yellow", err=True))
    return 0
