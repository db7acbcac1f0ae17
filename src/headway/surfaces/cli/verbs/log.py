"""What happened to a plan, event by event."""

from __future__ import annotations

import argparse
from collections import deque
from typing import Any

from headway.core.events import Record, Unknown
from headway.projections.story import sentence
from headway.surfaces.cli.options import add_at, add_json, add_plan, plan_of, project_of
from headway.surfaces.cli.screen import Screen


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("-n", "--last", type=int, metavar="N", help="only the last N events")
    parser.add_argument("--since", type=int, default=1, metavar="SEQ", help="from this event on")
    add_plan(parser)
    add_at(parser)
    add_json(parser)


def run(args: Any, screen: Screen) -> int:
    project = project_of(args, screen)
    plan_id = plan_of(args, project)
    history = project.log(plan_id, first=args.since, last=args.at)
    records = list(history) if args.last is None else list(deque(history, maxlen=max(args.last, 0)))
    if screen.as_json:
        screen.answer({"plan_id": plan_id, "events": [_document(record) for record in records]})
        return 0
    width = len(str(records[-1].seq)) if records else 1
    authors = max((len(record.by) for record in records), default=0)
    for record in records:
        when = screen.style(record.ts[:19].replace("T", " "), "dim")
        screen.say(f"{record.seq:>{width}}  {when}  {record.by:<{authors}}  {sentence(record)}")
    return 0


def _document(record: Record) -> dict[str, Any]:
    event = record.event
    name, data = (event.name, event.data) if isinstance(event, Unknown) else (event.type, event)
    return {"seq": record.seq, "ts": record.ts, "type": name, "by": record.by, "data": data, "hash": record.hash}
