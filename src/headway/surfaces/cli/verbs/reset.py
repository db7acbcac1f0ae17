"""Withdraw a plan's progress: every artifact is to be made again, and a locked profile is unlocked.

The history stays in the ledger, and files stay where they are.
"""

from __future__ import annotations

import argparse
from typing import Any

from headway.errors import UsageError
from headway.projections.story import count
from headway.surfaces.cli.options import add_json, add_plan, plan_of, project_of
from headway.surfaces.cli.screen import Screen


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--all", action="store_true", help="the whole plan: say so")
    parser.add_argument("--reason", metavar="TEXT", default="", help="why, for the record")
    add_plan(parser)
    add_json(parser)


def run(args: Any, screen: Screen) -> int:
    project = project_of(args, screen)
    plan_id = plan_of(args, project)
    if not args.all:
        raise UsageError("Say what to reset", hint=f"headway reset --all --plan-id {plan_id}", code="reset.what")
    execution = project.reset(plan_id, reason=args.reason)
    screen.answer({"plan_id": plan_id, "status": execution.status})
    total = count(len(execution.state.artifacts), "artifact")
    screen.say(f"Plan {plan_id} reset: {total} to make. What happened before stays in headway log.")
    return 0
