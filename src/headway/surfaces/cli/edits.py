"""`headway plans edit`: one change of a plan's structure, with a reason. Parses and renders; no rules."""

from __future__ import annotations

import argparse
from typing import Any

from headway.errors import UsageError
from headway.surfaces.cli.options import add_by, add_json, add_plan, plan_of, project_of
from headway.surfaces.cli.screen import Screen


def configure(parser: argparse.ArgumentParser) -> None:
    """add, set, move and remove."""
    parser.add_argument("what", choices=("add", "set", "move", "remove"), help="what to do")
    parser.add_argument("words", metavar="ID", nargs="+", help="an artifact and KEY=VALUE…, or several artifacts")
    parser.add_argument("--after", metavar="ID", help="add or move it behind this one (moved without: to the front)")
    parser.add_argument("--unfinished", action="store_true", help="remove it although it is not done")
    parser.add_argument("--reason", required=True, metavar="TEXT", help="why, for the record")
    add_by(parser)
    add_plan(parser)
    add_json(parser)


def run(args: Any, screen: Screen) -> int:
    """Make the change."""
    from headway.core.plan import ArtifactSpec
    from headway.planning import Planning, read_fields

    project = project_of(args, screen)
    plan_id = plan_of(args, project)
    planning = Planning(project, by=args.by)
    if args.what in ("add", "set"):
        artifact_id, pairs = args.words[0], _pairs(args.words[1:])
        fields = read_fields(artifact_id, pairs)
        if args.what == "add":
            spec = ArtifactSpec(id=artifact_id, **fields)
            execution = planning.add(plan_id, spec, after=args.after, reason=args.reason)
        else:
            execution = planning.edit(plan_id, artifact_id, fields, reason=args.reason)
    elif args.what == "move":
        execution = planning.move(plan_id, args.words, after=args.after, reason=args.reason)
    else:
        execution = planning.remove(plan_id, args.words, unfinished=args.unfinished, reason=args.reason)
    state = execution.state
    screen.answer({"plan_id": plan_id, "version": state.version, "seq": execution.position.seq})
    screen.say(f"Plan {plan_id} is version {state.version} now. Next: headway run")
    return 0


def _pairs(words: list[str]) -> dict[str, str]:
    wrong = [word for word in words if "=" not in word]
    if wrong:
        raise UsageError(f"{wrong[0]} is no KEY=VALUE", hint="headway plans edit set ID agent=ann", code="edit.value")
    return dict(word.split("=", 1) for word in words)
