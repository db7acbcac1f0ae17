"""The gates of an artifact, and words at them.

headway gate ID                         its gates, what was said, and what is missing
headway gate ID NAME approve --by ANN   a word: approve, reject or concerns
headway gate ID NAME --run              run a gate that is a command
"""

from __future__ import annotations

import argparse
from typing import Any

from headway.core.ids import as_word
from headway.errors import UsageError
from headway.files.given import read_given
from headway.life import Life
from headway.surfaces.cli.hands import give
from headway.surfaces.cli.meant import work_of
from headway.surfaces.cli.options import add_at, add_json, add_plan, person, project_of, same_plan
from headway.surfaces.cli.screen import Screen
from headway.surfaces.cli.verbs.complete import show

WORDS = ("approve", "reject", "concerns")


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("artifact", metavar="ID", help="an artifact, or the path of its output")
    parser.add_argument("gate", metavar="NAME", nargs="?", help="one of its gates")
    parser.add_argument("verdict", metavar="VERDICT", nargs="?", choices=WORDS, help="approve, reject or concerns")
    parser.add_argument("--by", type=person, default="", metavar="NAME", help="whose word it is")
    parser.add_argument("--note", default="", metavar="TEXT", help="the evidence, for the record")
    parser.add_argument("--file", metavar="FILE", help="the same, from a file")
    parser.add_argument("--content", default="", metavar="HASH", help="refuse unless it still has this content")
    parser.add_argument("--run", action="store_true", help="run a gate that is a command")
    add_plan(parser)
    add_at(parser)
    add_json(parser)


def run(args: Any, screen: Screen) -> int:
    work, meant = work_of(args, project_of(args, screen))
    life = Life(work, by=args.by or ("cli" if args.run else ""))
    if args.at is not None and args.gate is not None:
        raise UsageError(
            "Nothing is said in the past", hint=f"headway gate {as_word(args.artifact)} --at {args.at}", code="gate.at"
        )
    if args.gate is not None and (args.run or args.verdict):
        if args.run:
            done = life.check(meant.plan_id, args.artifact, args.gate)
        else:
            text = read_given(args.file).decode("utf-8", "replace") if args.file else args.note
            word = args.verdict.upper()
            done = life.verdict(meant.plan_id, args.artifact, args.gate, word, text=text, content=args.content)
        screen.answer({"plan_id": meant.plan_id, **done.to_dict()})
        show(done, screen)
        return 0
    if args.gate is not None:
        hint = f"headway gate {as_word(args.artifact)} {args.gate} approve --by NAME"
        raise UsageError("Say what to do at the gate", hint=f"{hint}, or --run", code="gate.what")
    found = life.gates(meant.plan_id, args.artifact, at=args.at)
    screen.answer(found)
    screen.say(f"{found['artifact']}: {found['status'].replace('_', ' ')}, content {found['content'] or 'none yet'}")
    if not found["gates"]:
        screen.say("  It has no gates.")
    for name, gate in found["gates"].items():
        screen.say(f"  {name} ({gate['kind']}): {gate['status']}")
        for said in gate["verdicts"]:
            whose = f"its command, run by {said['by']}" if gate["kind"] == "check" else said["by"]
            screen.say(f"    {said['verdict']} by {whose}: {' '.join(said['text'].split())[:100]}".rstrip(": "))
    for number, lack in enumerate(found["missing"]):
        screen.say(f"{'  and' if number else 'Next'}: {give(lack, same_plan(args))}")
    return 0
