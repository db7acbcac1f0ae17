"""What can be made now, by whom and why; and of the rest, what it waits for or is blocked by."""

from __future__ import annotations

import argparse
from typing import Any

from headway.core.ids import as_word
from headway.life import Life
from headway.projections.story import moment
from headway.surfaces.cli.meant import work_of
from headway.surfaces.cli.options import add_at, add_json, add_plan, add_take, project_of, same_plan
from headway.surfaces.cli.screen import Screen
from headway.surfaces.cli.where import about, throughout

SHOWN = 20


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--agent", default="", metavar="NAME", help="only what is for NAME, or for anybody")
    add_plan(parser)
    add_take(parser)
    add_at(parser)
    add_json(parser)


def run(args: Any, screen: Screen) -> int:
    work, meant = work_of(args, project_of(args, screen))
    found = Life(work, by="cli").next(meant, agent=args.agent, at=args.at, take=args.take or "")
    screen.answer(throughout(found.to_dict(), same_plan(args)))
    for offer in found.offers:
        how = "headway run" if offer.spec.has_recipe else "headway claim"
        whom = f" (for {offer.spec.agent})" if offer.spec.agent else ""
        screen.say(f"{how} {as_word(offer.spec.id)}{same_plan(args)}{whom}  {screen.style(offer.reason.text, 'dim')}")
    for artifact_id, error in list(found.failed.items())[:SHOWN]:
        verb = found.helps(artifact_id)
        better = ", or headway replan --plan FILE" if verb != "why" else ""
        leads_on = f"headway {verb} {as_word(artifact_id)}{same_plan(args)}{better}"
        screen.say(f"{artifact_id} failed: {error.rstrip('.')}. Next: {leads_on}")
    for artifact_id, by in list(found.blocked.items())[:SHOWN]:
        screen.say(f"{artifact_id} is blocked by {by}")
    for artifact_id, why in list(found.waiting.items())[:SHOWN]:
        screen.say(f"{artifact_id} {_said(about(why, same_plan(args)))}")
    if found.status == "done":
        screen.say(f"Everything is done: {found.done} of {found.total}.")
    return 0


def _said(why: str) -> str:
    """What it waits for, as the end of a sentence."""
    if why.startswith("claimed"):
        who, until, lease = why.rpartition(" until ")
        return f"is {who}{until}{moment(lease)}"
    return why if why.startswith(("waits", "is ")) else f"waits: {why}"
