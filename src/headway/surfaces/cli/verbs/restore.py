"""Bring an earlier output of an artifact back, from its blob, and accept it: it counts as up to date as it is.

What stands there now is kept first. headway run --rerun ID --discard-edits makes it anew. A file that others change
after it stays as they left it, until the next run judges them by what was accepted.
"""

from __future__ import annotations

import argparse
from typing import Any

from headway.surfaces.cli.meant import work_of
from headway.surfaces.cli.options import add_json, add_plan, add_take, project_of, same_plan
from headway.surfaces.cli.receipt import names
from headway.surfaces.cli.screen import Screen


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("artifact", metavar="ID", help="an artifact, or the path of its output")
    parser.add_argument(
        "--at", type=int, metavar="SEQ", help="as it was at this event (default: the newest that differs)"
    )
    parser.add_argument("--reason", default="", help="why, for the record")
    add_plan(parser)
    add_take(parser)
    add_json(parser)


def run(args: Any, screen: Screen) -> int:
    work, meant = work_of(args, project_of(args, screen))
    plan_id = work.take_in(meant, take=args.take or "")
    restored = work.restore(plan_id, args.artifact, at=args.at, reason=args.reason)
    screen.answer({"plan_id": plan_id, **restored})
    what, done = f"{restored['artifact']} as of event {restored['seq']}", "Restored and accepted"
    then = f"Next: headway run{same_plan(args)}"
    if restored["later"]:
        left = f"On disk stays what {names(restored['later'])} left, until a run judges that anew"
        done, then = "Accepted", f"{left}. {then}"
    if not restored["accepted"]:
        done, then = "Brought back", "It does not count as the output: move it elsewhere before the next run"
    screen.say(f"{done} {what}: {', '.join(restored['paths']) or 'text'}. {then}")
    return 0
