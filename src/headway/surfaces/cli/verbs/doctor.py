"""Verify every ledger, snapshot, projection and blob. --repair mends what can be mended and deletes nothing.

Exit 0 when all is well, 4 when something is not.
"""

from __future__ import annotations

import argparse
from typing import Any

from headway.doctor import Doctor
from headway.errors import UsageError
from headway.projections.story import count
from headway.surfaces.cli.options import add_json, add_project, project_of
from headway.surfaces.cli.screen import Screen


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--repair", action="store_true", help="mend what can be mended; whatever is replaced is kept in quarantine/"
    )
    parser.add_argument(
        "--drift", choices=("adopt", "discard"), help="with --repair: what becomes of projections edited by hand"
    )
    parser.add_argument("--plan-id", metavar="ID", help="only this plan")
    add_project(parser)
    add_json(parser)


def run(args: Any, screen: Screen) -> int:
    if args.drift and not args.repair:
        raise UsageError("--drift changes files", hint=f"headway doctor --repair --drift {args.drift}", code="drift")
    project = project_of(args, screen)
    doctor = Doctor(project)
    done = doctor.repair(args.plan_id, drift=args.drift) if args.repair else []
    found = doctor.examine(args.plan_id)
    plans = [args.plan_id] if args.plan_id else project.plan_ids()
    screen.answer({"ok": not found, "plans": plans, "findings": [d.to_dict() for d in found], "repaired": done})
    for line in done:
        screen.say(f"mended  {line}")
    for plan_id, finding in found:
        what, *details = finding.message.splitlines()
        screen.say(screen.style(f"{plan_id or 'project'}: {what}", "red"))
        for line in details:
            screen.say(f"    {line}")
        screen.say(f"  costs: {finding.cost}")
        screen.say(f"  next: {finding.repair}")
    if found:
        return 4
    screen.say(f"All is well: {count(len(plans), 'plan')} verified.")
    return 0
