"""The phase ledger of a unit: what each phase came to, with which prompt, from which state, and the attempts before."""

from __future__ import annotations

import argparse
from typing import Any

from headway.projections.story import moment
from headway.surfaces.cli.options import add_at, add_json, add_plan, plan_of, project_of
from headway.surfaces.cli.screen import Screen
from headway.work import Work


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("unit", metavar="UNIT", help="the unit, as headway status shows it")
    add_plan(parser)
    add_at(parser)
    add_json(parser)


def run(args: Any, screen: Screen) -> int:
    project = project_of(args, screen)
    document = Work(project).phases(plan_of(args, project), args.unit, at=args.at)
    screen.answer(document)
    screen.say(screen.style(f"{args.unit} of plan {document['plan_id']}", "bold"))
    phases = document["phases"]
    width = max((len(name) for name in phases), default=1)
    for name, entry in phases.items():
        sign = screen.style("✓", "green") if entry["status"] == "success" else screen.style("✗", "red")
        screen.say(f"  {sign} {name:<{width}}  {moment(entry['timestamp'])}  {_words(entry)}".rstrip())
        if entry["error"]:
            screen.say(f"      {screen.style(entry['error'], 'red')}")
        if update := entry.get("prompt_update"):
            was, new = update["prompt_hash_prev"] or "?", update["prompt_hash_new"]
            became = f"{was[:8]} → {new[:8] if new else 'not made yet'}"
            screen.say(
                screen.style(f"      prompt changed on purpose, {became}: {update['prompt_update_reason']}", "dim")
            )
    if not phases:
        screen.say("  Nothing was tried yet. Next: headway run")
    return 0


def _words(entry: dict[str, Any]) -> str:
    parts = [entry["ran"] or "did not run"] if entry["ran"] != "made" else []
    parts += [f"round {entry['iteration']}"] if entry["iteration"] > 1 else []
    parts += [f"prompt {entry['prompt_hash'][:8]}"] if entry["prompt_hash"] else []
    parts += [f"from state {entry['pre_state_hash'][:8] or 'none'}"] if "pre_state_hash" in entry else []
    parts += [f"verdict {entry['verdict']['word']}"] if entry["verdict"] else []
    parts += [f"applied {entry['applied']['idempotency_key'][:8]}"] if entry["applied"] else []
    parts += [f"{len(entry['attempts'])} earlier"] if entry["attempts"] else []
    return ", ".join(parts)
