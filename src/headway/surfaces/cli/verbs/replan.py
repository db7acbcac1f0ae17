"""Make another plan the next version of a plan: after a failure, or because you know better now.

Only what was not started, has failed or is behind something that changes may change. Completed work stays; whoever
wants to give some of it up names it with --drop. Superseded work stays in the history.
"""

from __future__ import annotations

import argparse
from typing import Any

from headway.errors import PlanInvalid, UsageError
from headway.planning import Planning
from headway.surfaces.cli.options import add_by, add_json, add_plan, project_of
from headway.surfaces.cli.screen import Screen


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--reason", required=True, metavar="TEXT", help="why, for the record")
    parser.add_argument(
        "--drop", action="extend", nargs="+", default=[], metavar="ID", help="completed work that is given up"
    )
    add_by(parser)
    add_plan(parser)
    add_json(parser)


def run(args: Any, screen: Screen) -> int:
    project = project_of(args, screen)
    file = args.plan or (None if args.plan_id else project.find_default_file())
    if file is None:
        raise UsageError("Say what the new plan is", hint="headway replan --plan FILE --reason …", code="replan.what")
    plan_id = args.plan_id or project.select(None, file)
    data, name = project.read_plan_file(file)
    parsed = project.parse(data, name)
    if parsed.plan is None or parsed.problems:
        raise PlanInvalid(parsed.problems, where=name)
    execution = Planning(project, by=args.by).replan(plan_id, parsed.plan, reason=args.reason, drop=args.drop)
    version = execution.state.replans[-1]
    changed = {"added": version.added, "updated": version.updated, "removed": version.removed}
    screen.answer(
        {"plan_id": plan_id, "version": version.version, "parent": version.parent, "reason": version.reason, **changed}
    )
    what = "; ".join(f"{name} {', '.join(ids)}" for name, ids in changed.items() if ids)
    screen.say(f"Plan {plan_id} is version {version.version} now ({what or 'settings'}). Next: headway run")
    return 0
