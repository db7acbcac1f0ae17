"""What can be made now, by whom and why: stale, unclaimed, and with all that it requires up to date."""

from __future__ import annotations

import argparse
from typing import Any

from headway.life import Life
from headway.surfaces.cli.meant import work_of
from headway.surfaces.cli.options import add_at, add_json, add_plan, add_take, project_of, same_plan
from headway.surfaces.cli.screen import Screen


def configure(parser: argparse.ArgumentParser) -> None:
    add_plan(parser)
    add_take(parser)
    add_at(parser)
    add_json(parser)


def run(args: Any, screen: Screen) -> int:
    work, meant = work_of(args, project_of(args))
    offers = Life(work, by="cli").next(meant, at=args.at, take=args.take or "")
    screen.answer({"plan_id": meant.plan_id, "next": [offer.to_dict() for offer in offers]})
    for offer in offers:
        how = "headway run" if offer.spec.has_recipe else "headway claim"
        whom = f" (for {offer.spec.agent})" if offer.spec.agent else ""
        screen.say(f"{how} {offer.spec.id}{same_plan(args)}{whom}  {screen.style(offer.reason.text, 'dim')}")
    if not offers:
        screen.say(
            f"Nothing can be made now. headway status{same_plan(args)} says what is done, blocked or in progress."
        )
    return 0
