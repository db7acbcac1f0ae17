"""Decide that artifacts are not made. What depends on them goes on with their last output, or without."""

from __future__ import annotations

import argparse
from typing import Any

from headway.life import Life
from headway.surfaces.cli.meant import work_of
from headway.surfaces.cli.options import add_by, add_json, add_plan, add_take, project_of
from headway.surfaces.cli.screen import Screen


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("artifacts", metavar="ID", nargs="+", help="artifacts, patterns or output paths")
    parser.add_argument("--reason", required=True, help="why, for the record")
    add_by(parser)
    add_plan(parser)
    add_take(parser)
    add_json(parser)


def run(args: Any, screen: Screen) -> int:
    work, meant = work_of(args, project_of(args, screen))
    skipped = Life(work, by=args.by).skip(work.take_in(meant, take=args.take or ""), args.artifacts, reason=args.reason)
    screen.answer({"plan_id": meant.plan_id, "skipped": skipped})
    screen.say(f"Skipped {', '.join(skipped[:8])}. Next: headway run")
    return 0
