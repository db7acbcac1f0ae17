"""Withdraw progress. --all: every artifact is to be made again, and a locked profile is unlocked. ID…: only these.

An ID may be a unit or a pipeline: all of its artifacts. The history stays in the ledger. Files stay where they are,
unless --archive puts them, and the phase ledgers, into an archive first.
"""

from __future__ import annotations

import argparse
from typing import Any

from headway.errors import UsageError
from headway.projections.story import count
from headway.surfaces.cli.options import add_json, add_plan, plan_of, project_of, same_plan
from headway.surfaces.cli.receipt import names
from headway.surfaces.cli.screen import Screen
from headway.work import Work


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("artifacts", metavar="ID", nargs="*", help="artifacts, units, pipelines, patterns or paths")
    parser.add_argument("--archive", action="store_true", help="put away what they made, verified, and remove it")
    parser.add_argument("--all", action="store_true", help="the whole plan: say so")
    parser.add_argument("--reason", metavar="TEXT", default="", help="why, for the record")
    add_plan(parser)
    add_json(parser)


def run(args: Any, screen: Screen) -> int:
    project = project_of(args, screen)
    plan_id = plan_of(args, project)
    if args.all == bool(args.artifacts):
        raise UsageError(
            "Say what to reset",
            hint=f"headway reset ID… for some of it, headway reset --all --plan-id {plan_id} for all",
            code="reset.what",
        )
    skipped = project.show(plan_id).state.skipped
    ids, archived = Work(project).reset(plan_id, args.artifacts, reason=args.reason, archived=args.archive)
    status = project.show(plan_id).status
    screen.answer({"plan_id": plan_id, "status": status, "reset": ids, "archive": archived or None})
    if archived:
        screen.say(f"Archived in {archived}.")
    withdrawn = [a for a in ids if a in skipped]
    if withdrawn:
        them = "It is" if len(withdrawn) == 1 else "They are"
        screen.say(f"No longer skipped: {names(withdrawn)}. {them} to be made, too.")
    screen.say(
        f"Plan {plan_id} reset: {count(len(ids), 'artifact')} to make. What happened before stays in headway log."
        f" Next: headway run{same_plan(args)}"
    )
    return 0
