"""Why an artifact is stale, fresh, failed or blocked: where it began, and what only follows from that."""

from __future__ import annotations

import argparse
from typing import Any

from headway.surfaces.cli.meant import work_of
from headway.surfaces.cli.options import add_json, add_plan, project_of
from headway.surfaces.cli.screen import Screen


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("artifact", metavar="ID", help="an artifact, or the path of its output")
    add_plan(parser)
    add_json(parser)


def run(args: Any, screen: Screen) -> int:
    work, meant = work_of(args, project_of(args))
    found = work.why(meant, args.artifact)
    screen.answer(found)
    artifact_id, reason = found["artifact"], found["reason"]
    if found["freshness"] == "fresh":
        screen.say(f"{artifact_id} is {found['status']} and up to date.")
        return 0
    screen.say(f"{artifact_id} is {found['status']} and stale: {reason['text']}.")
    for blocker, error in found["blocked_by"].items():
        screen.say(f"  blocked by {blocker}, which failed: {error}")
    for name, there in found["elsewhere"].items():
        screen.say(f"  {name} {there['problem']}. Next: {there['command']}")
    if "was" in reason and reason["code"] == "spec_changed":
        screen.say(f"  was: {reason['was']}")
        screen.say(f"  now: {reason.get('now', '')}")
    if found["error"]:
        screen.say(screen.style(f"  last error: {found['error']['message']}", "red"))
        for line in found["error"]["output"].splitlines():
            screen.say(f"  | {line}")
    for root in found["root_causes"]:
        if root["artifact"] != artifact_id:
            screen.say(f"  began with {root['artifact']}: {root['text']}")
    if found["cascade"]:
        screen.say(f"  by way of {', '.join(found['cascade'])}")
    if found["dependents"]:
        names = found["dependents"]
        more = f" and {len(names) - 5} more" if len(names) > 5 else ""
        screen.say(f"  behind it: {', '.join(names[:5])}{more}")
    return 0
