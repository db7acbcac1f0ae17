"""Verify every ledger, snapshot, projection and blob. --repair mends what can be mended and deletes nothing."""

from __future__ import annotations

import argparse
from typing import Any

from headway.doctor import Doctor
from headway.surfaces.cli.options import add_json, add_project, project_of
from headway.surfaces.cli.screen import Screen


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--repair", action="store_true", help="mend what can be mended; copies of all that is set aside"
    )
    parser.add_argument(
        "--drift", choices=("adopt", "discard"), help="with --repair: what to do with edited projections"
    )
    parser.add_argument("--plan-id", metavar="ID", help="only this plan")
    add_project(parser)
    add_json(parser)


def run(args: Any, screen: Screen) -> int:
    project = project_of(args)
    doctor = Doctor(project)
    done = doctor.repair(args.plan_id, drift=args.drift) if args.repair else []
    found = doctor.examine(args.plan_id)
    plans = [args.plan_id] if args.plan_id else project.plan_ids()
    screen.answer({"ok": not found, "plans": plans, "findings": [d.to_dict() for d in found], "repaired": done})
    for line in done:
        screen.say(f"mended  {line}")
    for plan_id, finding in found:
        screen.say(screen.style(f"{plan_id or 'blobs'}: {finding.message}", "red"))
        if finding.cost:
            screen.say(f"  costs: {finding.cost}")
        if finding.repair:
            screen.say(f"  next: {finding.repair}")
    if not found:
        noun = "plan" if len(plans) == 1 else "plans"
        screen.say(f"All is well: {len(plans)} {noun} verified.")
    return 4 if found else 0
