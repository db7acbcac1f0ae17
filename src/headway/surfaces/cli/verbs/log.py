"""What happened to a plan, event by event. A run that goes on where another stopped says so.

headway log --follow        what happens, as it happens, until you press Ctrl-C
headway log --follow --json one JSON line per event, by SPEC-0010's names: PLAN_CREATED, STEP_COMPLETED …
headway log --trace         the same as JSON lines: plans, waves, artifacts (RFC-040's trace)
"""

from __future__ import annotations

import argparse
from collections import deque
from collections.abc import Iterable, Iterator
from typing import Any

from headway.core.events import Record, Snapshot, Unknown
from headway.errors import UsageError
from headway.project import Project
from headway.projections.story import Story, moment
from headway.surfaces.cli.options import add_at, add_json, add_plan, plan_of, project_of
from headway.surfaces.cli.screen import Screen


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("word", nargs="?", help=argparse.SUPPRESS)
    parser.add_argument("-n", "--last", type=int, metavar="N", help="only the last N events; snapshots are none")
    parser.add_argument("--since", type=int, default=1, metavar="SEQ", help="from this event on")
    parser.add_argument("--all", action="store_true", help="also the snapshots, in which nothing happens")
    parser.add_argument("-f", "--follow", action="store_true", help="go on with what happens from here on")
    parser.add_argument("--trace", action="store_true", help="JSON lines: waves, artifacts and how long they took")
    add_plan(parser)
    add_at(parser)
    add_json(parser)


def run(args: Any, screen: Screen) -> int:
    if args.word is not None:
        raise UsageError(
            f"log does not know what to do with {args.word!r}",
            facts={"reason": "it tells of the whole plan"},
            hint="headway show ID and headway why ID tell of one artifact",
            code="usage.log",
        )
    if args.follow and args.at is not None:
        raise UsageError(
            "What is followed goes on, and --at ends with an event",
            hint="headway log --follow --since SEQ",
            code="usage.follow",
        )
    project = project_of(args, screen)
    plan_id = plan_of(args, project)
    first = _first(args, project, plan_id)
    shown = _trace(args, project, plan_id, first) if args.trace else _told(args, project, plan_id, first, screen)
    if args.follow:
        if screen.as_json and not args.trace:
            shown = _signals(project, plan_id, first)
        return _follow(shown, screen)
    kept = list(shown if args.last is None else deque(shown, maxlen=max(args.last, 0)))
    name = "trace" if args.trace else "events"
    screen.answer({"plan_id": plan_id, name: [item.document for item in kept]})
    for item in kept:
        screen.say(item.line)
    return 0


class _Item:
    """One line, in words and for machines."""

    __slots__ = ("document", "line")

    def __init__(self, line: str, document: Any) -> None:
        self.line = line
        self.document = document


def _follow(shown: Iterator[_Item], screen: Screen) -> int:
    try:
        for item in shown:
            if screen.as_json:
                screen.line(item.document)
            else:
                screen.say(item.line)
                screen.flush()
    except KeyboardInterrupt:
        return 130
    return 0


def _first(args: Any, project: Project, plan_id: str) -> int:
    """Where to begin when following: --last counts from the end that there is now."""
    if not args.follow or args.last is None:
        return int(args.since)
    newest = 0
    told: deque[int] = deque(maxlen=max(args.last, 0))
    for record in project.log(plan_id):
        newest = record.seq
        if args.all or not isinstance(record.event, Snapshot):
            told.append(newest)
    return max(int(args.since), told[0] if told else newest + 1)


def _told(args: Any, project: Project, plan_id: str, first: int, screen: Screen) -> Iterator[_Item]:
    """The whole story is read, so that any part of it knows what came before."""
    records: Iterable[Record] = project.follow(plan_id) if args.follow else project.log(plan_id, last=args.at)
    story, width, by = Story(), len(str(args.at or project.show(plan_id).position.seq)), 6
    every = args.all or (screen.as_json and args.last is None)
    for record in records:
        gone = story.gap(record)
        said = story.tell(record)
        by = max(by, len(record.by))
        if gone and record.seq > first and not screen.as_json:
            yield _Item(screen.style(f"{record.seq - 1:>{width}}  {gone}", "yellow"), None)
        if record.seq >= first and (every or not isinstance(record.event, Snapshot)):
            when = screen.style(moment(record.ts), "dim")
            yield _Item(f"{record.seq:>{width}}  {when}  {record.by:<{by}}  {said}", _document(record))


def _signals(project: Project, plan_id: str, first: int) -> Iterator[_Item]:
    """What subscribers are told, one JSON line each."""
    from headway.projections.signals import signals

    for record in project.follow(plan_id):
        if record.seq >= first:
            yield from (_Item("", signal.to_dict()) for signal in signals(plan_id, record))


def _trace(args: Any, project: Project, plan_id: str, first: int) -> Iterator[_Item]:
    import json

    from headway.projections.trace import Tracer

    tracer = Tracer()
    for state, record in project.states(plan_id, last=args.at, follow=args.follow):
        for found in tracer.follow(state, record):
            if record.seq >= first:
                yield _Item(json.dumps(found, ensure_ascii=False), found)


def _document(record: Record) -> dict[str, Any]:
    event = record.event
    data: Any
    name, data = (event.name, event.data) if isinstance(event, Unknown) else (event.type, event)
    if isinstance(event, Snapshot):
        data = {"digest": event.digest}  # the state itself is what `plans show` shows, and is large
    return {"seq": record.seq, "ts": record.ts, "type": name, "by": record.by, "data": data, "hash": record.hash}
