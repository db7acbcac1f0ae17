"""Take an artifact in hand, to make it yourself. Finish with headway complete, fail or release."""

from __future__ import annotations

import argparse
from typing import Any

from headway.life import Life
from headway.surfaces.cli.meant import work_of
from headway.surfaces.cli.options import add_by, add_json, add_plan, add_take, project_of
from headway.surfaces.cli.screen import Screen


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("artifact", metavar="ID", help="an artifact, or the path of its output")
    add_by(parser)
    add_plan(parser)
    add_take(parser)
    add_json(parser)


def run(args: Any, screen: Screen) -> int:
    work, meant = work_of(args, project_of(args))
    claimed = Life(work, by=args.by).claim(work.take_in(meant, take=args.take or ""), args.artifact)
    screen.answer(claimed)
    screen.say(f"{claimed['artifact']} is yours, token {claimed['token']}.")
    for key in ("description", "contract", "instructions"):
        if claimed[key]:
            screen.say(f"  {key}: {claimed[key]}")
    for criterion in claimed["acceptance"]:
        screen.say(f"  - {criterion}")
    where = f"write {', '.join(claimed['produces'])}, then " if claimed["produces"] else ""
    screen.say(f"Next: {where}headway complete {claimed['artifact']}")
    return 0
