"""How an artifact's output differs from an earlier completion: as a unified diff, for each file of it.

headway diff report             what is on disk against the newest completion that differs from it
headway diff report --at 12     against what it was as of event 12

What was never made is compared with nothing: what stands at its path is shown. Of a file that others changed in
place after it, what the artifact left counts, and not what is on disk.
"""

from __future__ import annotations

import argparse
from typing import Any

from headway.reading import Reading
from headway.surfaces.cli.hands import decisions
from headway.surfaces.cli.meant import work_of
from headway.surfaces.cli.options import add_json, add_plan, project_of, same_plan
from headway.surfaces.cli.receipt import names
from headway.surfaces.cli.screen import Screen

COLOUR = {"+": "green", "-": "red", "@": "blue"}


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("artifact", metavar="ID", help="an artifact, or the path of its output")
    parser.add_argument("--at", type=int, metavar="SEQ", help="against what it was as of this event")
    parser.add_argument("--to", type=int, metavar="SEQ", help="not what is on disk, but what it was as of this event")
    add_plan(parser)
    add_json(parser)


def run(args: Any, screen: Screen) -> int:
    work, meant = work_of(args, project_of(args, screen))
    found = Reading(work).diff(meant, args.artifact, at=args.at, to=args.to)
    screen.answer({"plan_id": meant.plan_id, **found.to_dict()})
    now = f"event {found.to}" if found.to else "what is on disk"
    if found.later:
        now = f"what it left ({names(found.later)} changed that since)"
    if not found.deltas:
        screen.say(f"{found.artifact}: {now} is what it was as of event {found.since}.")
        return 0
    never = f"{found.artifact} was never made; at its path stands what nobody has decided about:"
    said = f"{found.artifact}: event {found.since} → {now}" if found.since is not None else never
    screen.say(screen.style(said, "bold"))
    for delta in found.deltas:
        if delta.note:
            screen.say(f"{delta.change} {delta.path or 'its text'}: {delta.note}")
        elif not delta.lines:
            screen.say(f"{delta.change} {delta.path or 'its text'}: no line differs (line ends, or empty)")
        for line in delta.lines:
            screen.say(screen.style(line, COLOUR[line[0]]) if line[:1] in COLOUR else line)
    if found.since is None:
        screen.say(decisions(found.artifact, same_plan(args)))
    return 0
