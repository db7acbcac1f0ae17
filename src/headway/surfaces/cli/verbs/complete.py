"""Finish an artifact that you claimed: its files are read, verified, held against its gates, and recorded."""

from __future__ import annotations

import argparse
from typing import Any

from headway.core.ids import as_word
from headway.files.given import read_given
from headway.life import Finished, Life
from headway.surfaces.cli.meant import work_of
from headway.surfaces.cli.options import add_by, add_json, add_plan, project_of
from headway.surfaces.cli.screen import Screen


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("artifact", metavar="ID", help="an artifact, or the path of its output")
    parser.add_argument("--token", type=int, metavar="N", help="the claim's token (default: your own claim)")
    parser.add_argument("--text", metavar="TEXT", help="the output of an artifact without files")
    parser.add_argument("--file", metavar="FILE", help="the same, from a file")
    parser.add_argument("--note", default="", help="a word for the record")
    add_by(parser)
    add_plan(parser)
    add_json(parser)


def run(args: Any, screen: Screen) -> int:
    work, meant = work_of(args, project_of(args, screen))
    text = read_given(args.file) if args.file else args.text.encode() if args.text is not None else None
    done = Life(work, by=args.by).complete(meant.plan_id, args.artifact, token=args.token, text=text, note=args.note)
    screen.answer({"plan_id": meant.plan_id, **done.to_dict()})
    show(done, screen)
    return 0


def show(done: Finished, screen: Screen) -> None:
    """What became of an artifact, and what is next."""
    if done.status == "complete":
        screen.say(f"{done.artifact} is complete (event {done.completion.seq}). Next: headway next")
    elif done.status == "failed":
        screen.say(f"{done.artifact} is rejected. Next: headway why {as_word(done.artifact)}")
    else:
        screen.say(f"{done.artifact} is made (event {done.completion.seq}) and waits:")
    for number, lack in enumerate(done.missing):
        screen.say(f"  {lack.text}{': ' if number else '  Next: '}{lack.command}")
