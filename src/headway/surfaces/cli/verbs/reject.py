"""Say that a plan is not to be made as it is, or that the work of artifacts is not good enough.

headway reject --reason TEXT            the plan: nothing of it is made until it is approved
headway reject ID… --reason TEXT        the work, at the artifacts' approval gates: it is to be made again
"""

from __future__ import annotations

import argparse
from typing import Any

from headway.core.ids import as_word
from headway.life import Finished
from headway.planning import Planning
from headway.surfaces.cli.judging import add_judged, judge
from headway.surfaces.cli.screen import Screen


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--reason", required=True, metavar="TEXT", help="why, for the record")
    add_judged(parser, "rejected")


def run(args: Any, screen: Screen) -> int:
    def tell(done: Finished) -> None:
        screen.say(f"{done.artifact} is rejected: {args.reason}. Next: headway why {as_word(done.artifact)}")

    def reject(planning: Planning, plan_id: str) -> None:
        planning.reject(plan_id, reason=args.reason)
        screen.answer({"plan_id": plan_id, "rejected": args.reason})
        screen.say(
            f"Plan {plan_id} is rejected: nothing of it is made. Next: headway plans edit …, then headway approve"
        )

    return judge(args, screen, "REJECT", args.reason, work=tell, plan=reject)
