"""What is on disk counts as the output, by your word: edited outputs, and files older than the plan."""

from __future__ import annotations

import argparse
from typing import Any

from headway.surfaces.cli.meant import work_of
from headway.surfaces.cli.options import add_json, add_plan, add_take, project_of, same_plan
from headway.surfaces.cli.screen import Screen


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("artifacts", metavar="ID", nargs="*", help="artifacts, patterns or output paths")
    parser.add_argument("--all", action="store_true", help="every artifact whose outputs are all there and not its own")
    parser.add_argument("--reason", default="", help="why, for the record")
    add_plan(parser)
    add_take(parser)
    add_json(parser)


def run(args: Any, screen: Screen) -> int:
    work, meant = work_of(args, project_of(args, screen))
    plan_id = work.take_in(meant, take=args.take or "")
    accepted = work.accept(plan_id, args.artifacts, everything=args.all, reason=args.reason)
    screen.answer({"plan_id": plan_id, "accepted": accepted})
    if not accepted:
        are = "is" if len(args.artifacts) == 1 else "are"
        named = f": {', '.join(args.artifacts)} {are} up to date" if args.artifacts else ""
        screen.say(f"Nothing to accept{named}.")
        return 0
    names = f"{', '.join(accepted[:8])}{' …' if len(accepted) > 8 else ''}"
    screen.say(f"Accepted {len(accepted)}: {names}. Next: headway run{same_plan(args)}")
    return 0
