"""Withdraw progress. --all: every artifact is to be made again, and a locked profile is unlocked. ID…: only these.

The history stays in the ledger, and files stay where they are.
"""

from __future__ import annotations

import argparse
from typing import Any

from headway.errors import UsageError
from headway.projections.story import count
from headway.surfaces.cli.options import add_json, add_plan, plan_of, project_of
from headway.surfaces.cli.screen import Screen
from headway.work import Work


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("artifacts", metavar="ID", nargs="*", help="artifacts, patterns or output paths")
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
    ids = Work(project).session.resolve(project.show(plan_id).state, args.artifacts)
    execution = project.reset(plan_id, ids=ids, reason=args.reason)
    screen.answer({"plan_id": plan_id, "status": execution.status, "reset": ids or list(execution.state.artifacts)})
    total = count(len(ids or execution.state.artifacts), "artifact")
    screen.say(f"Plan {plan_id} reset: {total} to make. What happened before stays in headway log.")
    return 0
