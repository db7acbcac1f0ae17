"""Finish an artifact that you claimed: its files are read, verified and recorded."""

from __future__ import annotations

import argparse
from typing import Any

from headway.files.given import read_given
from headway.life import Life
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
    work, meant = work_of(args, project_of(args))
    text = read_given(args.file) if args.file else args.text.encode() if args.text is not None else None
    done = Life(work, by=args.by).complete(meant.plan_id, args.artifact, token=args.token, text=text, note=args.note)
    screen.answer({"plan_id": meant.plan_id, "artifact": args.artifact, "seq": done.seq, "outputs": list(done.outputs)})
    screen.say(f"{args.artifact} completed (event {done.seq}). Next: headway run")
    return 0
