"""Take an artifact in hand, to make it yourself; without an id, the next one.

Finish with headway complete, fail or release. Until then, headway heartbeat keeps it yours.
"""

from __future__ import annotations

import argparse
from typing import Any

from headway.life import LEASE, Life
from headway.projections.story import moment
from headway.surfaces.cli.hands import finish
from headway.surfaces.cli.meant import work_of
from headway.surfaces.cli.options import add_by, add_json, add_plan, add_take, project_of, same_plan, span
from headway.surfaces.cli.screen import Screen


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("artifact", metavar="ID", nargs="?", help="an artifact, or the path of its output")
    parser.add_argument(
        "--lease", type=span, default=LEASE, metavar="TIME", help="how long it stays yours unheard of: 90s, 30m, 2h, 1d"
    )
    parser.add_argument("--agent", default="", metavar="NAME", help="without ID: what is for NAME, or for anybody")
    add_by(parser)
    add_plan(parser)
    add_take(parser)
    add_json(parser)


def run(args: Any, screen: Screen) -> int:
    work, meant = work_of(args, project_of(args, screen))
    life, plan_id = Life(work, by=args.by), work.take_in(meant, take=args.take or "")
    if args.artifact is None:
        claimed = life.claim_next(meant._replace(plan_id=plan_id, plan=None), agent=args.agent, lease=args.lease)
    else:
        claimed = life.claim(plan_id, args.artifact, lease=args.lease)
    screen.answer(claimed)
    screen.say(f"{claimed['artifact']} is yours until {moment(claimed['until'])}, token {claimed['token']}.")
    if claimed["continues"]:
        said = f": {claimed['continues']['note']}" if claimed["continues"]["note"] else ""
        screen.say(f"  it continues the work of {claimed['continues']['by']}{said}")
    for key in ("description", "contract", "instructions"):
        if claimed[key]:
            screen.say(f"  {key}: {claimed[key]}")
    for criterion in (*claimed["acceptance"], *claimed["constraints"]):
        screen.say(f"  - {criterion}")
    if claimed["produces"]:
        screen.say(f"  write: {', '.join(claimed['produces'])}")
    screen.say(f"Next: {finish(claimed['artifact'], claimed, same_plan(args))}")
    return 0
