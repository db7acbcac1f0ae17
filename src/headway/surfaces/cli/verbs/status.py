"""Where a plan stands: every artifact, whether it is fresh, and why not. --check makes it the exit code.

Of a large plan only what is not up to date is listed; -v lists all.
"""

from __future__ import annotations

import argparse
from typing import Any

from headway.projections.story import count, moment
from headway.surfaces.cli.hands import held, in_hand, leads_on, still_open
from headway.surfaces.cli.meant import work_of
from headway.surfaces.cli.options import add_at, add_json, add_plan, add_take, project_of, same_plan
from headway.surfaces.cli.screen import Screen
from headway.surfaces.cli.where import throughout

ROWS = 40
"""So many units are shown one by one."""

SIGN = {"complete": "✓", "failed": "✗", "in_progress": "◐", "skipped": "–", "blocked": "▫", "pending": "·"}
MANY = 50
"""A plan of more artifacts than this is not listed whole, and not more than this of what is open."""


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--check", action="store_true", help="exit 1 if anything is stale, failed or blocked")
    parser.add_argument("-v", "--verbose", action="store_true", help="list every artifact, however many there are")
    add_plan(parser)
    add_take(parser)
    add_at(parser)
    add_json(parser)


def run(args: Any, screen: Screen) -> int:
    work, meant = work_of(args, project_of(args, screen))
    document = throughout(work.status(meant, at=args.at, take=args.take or ""), same_plan(args))
    screen.answer(document)
    artifacts = document["artifacts"]
    done = document["progress"]
    as_of = f", as of event {document['seq']}" if args.at is not None else ""
    skipped = sum(found["status"] == "skipped" for found in artifacts.values())
    stale = sum(artifacts[a]["status"] == "complete" for a in still_open(document))
    of_them = [f"{number} of them {word}" for word, number in (("skipped", skipped), ("stale", stale)) if number]
    screen.say(screen.style(" ".join(document["goal"].split()), "bold"))
    status = document["status"].replace("_", " ")
    if status == "failed" and done["done"] == done["total"]:  # what failed only stands for others, and does not count
        status = f"failed at {next((a for a, found in artifacts.items() if found['error']), 'its end')}"
    stands = [status, f"{done['done']} of {done['total']} done", *of_them]
    screen.say(f"Plan {document['plan_id']}: {', '.join(stands)}{as_of}")
    open_ = still_open(document)
    plain = {a: found for a, found in artifacts.items() if not found.get("unit") or found["error"] or args.verbose}
    _list(plain, [a for a in open_ if a in plain], screen, everything=args.verbose)
    for name, pipeline in document["pipelines"].items():
        _show_pipeline(screen, name, pipeline)
    if paused := document["paused"]:
        where = f" at {paused['artifact']}" if paused["artifact"] else ""
        screen.say(
            f"Paused{where}: {paused['code']}" + (f", until {moment(paused['until'])}" if paused["until"] else "")
        )
    elif open_ and document["status"] == "complete" and _was_stopped(document["run"]):
        screen.say("The last run was stopped on the way")
    if args.at is None:  # what led on then need not lead on now
        screen.say(leads_on(document, same_plan(args)))
    return 1 if args.check and open_ else 0


def _was_stopped(run: dict[str, Any] | None) -> bool:
    """Whether the last run ended before its time, and did not merely leave something for its user to decide."""
    return run is not None and run["status"] == "paused" and run["reason"] != "refused"


def _list(artifacts: dict[str, Any], open_: list[str], screen: Screen, *, everything: bool) -> None:
    whole = everything or len(artifacts) <= MANY
    listed = list(artifacts) if whole else open_[:MANY]
    width = min(max((len(a) for a in listed), default=1), 40)
    for artifact_id in listed:
        found = artifacts[artifact_id]
        stale = found["freshness"] == "stale"
        sign = "↻" if stale and found["status"] == "complete" else SIGN[found["status"]]
        text = found["error"] or (found["reason"]["text"] if stale else "")
        lacks = found["missing"] if not found["error"] else []
        if found["blocked_by"] and not lacks:
            text = f"blocked by {found['blocked_by']}"
        if found["status"] == "skipped":
            text = f"skipped: {found['skipped']}"
        elif in_hand(found):
            text = held(found["claim"])
        elif lacks:
            text = f"waits: {lacks[0]['text']}: {lacks[0]['command']}"
        style = "red" if found["error"] else "dim"
        screen.say(f"  {sign} {artifact_id:<{width}}  {screen.style(text, style)}".rstrip())
        for lack in lacks[1:]:
            screen.say(f"    {'':<{width}}  {screen.style(_and(lack), 'dim')}")
    if not whole:
        more = [f"{len(open_) - MANY:,} more to make"] if len(open_) > MANY else []
        more += [f"{len(artifacts) - len(open_):,} up to date"]
        screen.say(screen.style(f"  and {', '.join(more)} (-v lists them)", "dim"))


def _show_pipeline(screen: Screen, name: str, pipeline: dict[str, Any]) -> None:
    """Units × phases: a row for each unit that is not done, up to a screenful, and a line for those that are."""
    phases, units = pipeline["phases"], pipeline["units"]
    width = min(max((len(unit) for unit in units), default=4), 40)
    lacks = f": no file matches {pipeline['files']}" if pipeline["files"] and not units else ""
    screen.say(f"{name}: {count(len(units), 'unit')} × {count(len(phases), 'phase')}{lacks}")
    rows = {unit: [_sign(row.get(phase)) for phase in phases] for unit, row in units.items()}
    open_ = {unit: row for unit, row in rows.items() if set(row) - {SIGN["complete"], SIGN["skipped"]}}
    shown = rows if len(rows) <= ROWS else dict(list(open_.items())[:ROWS])
    if shown:
        screen.say(screen.style(f"  {'':<{width}}  {'  '.join(phases)}", "dim"))
    for unit, row in shown.items():
        cells = "  ".join(f"{sign:^{len(phase)}}" for sign, phase in zip(row, phases, strict=True))
        screen.say(f"  {unit:<{width}}  {cells}".rstrip())
    if len(shown) < len(rows):
        more = len(open_) - len(shown)
        screen.say(f"  {len(rows) - len(open_)} units done" + (f", {more} more are not" if more else ""))


def _sign(found: dict[str, str] | None) -> str:
    if found is None:
        return " "
    return "↻" if found["freshness"] == "stale" and found["status"] == "complete" else SIGN[found["status"]]


def _and(lack: dict[str, str]) -> str:
    return f"and: {lack['text']}: {lack['command']}"
