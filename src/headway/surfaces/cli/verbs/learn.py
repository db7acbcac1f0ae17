"""Write down what is worth knowing the next time, about a plan or one of its artifacts. Without words, recall.

headway learn "Protocols before models" --artifact UserModel
headway learn                         what is known that bears on this plan's goal
headway learn --about "Add billing"   the same for a goal that has no plan yet
"""

from __future__ import annotations

import argparse
from typing import Any

from headway.surfaces.cli.options import add_by, add_json, add_plan, at_least, plan_of, project_of
from headway.surfaces.cli.screen import Screen

BUDGET = 1000


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("text", metavar="TEXT", nargs="?", help="what was learned")
    parser.add_argument("--artifact", default="", metavar="ID", help="about this artifact")
    parser.add_argument("--about", default="", metavar="GOAL", help="recall what bears on this goal instead")
    parser.add_argument(
        "--budget", type=at_least(0), default=BUDGET, metavar="N", help=f"at most so many tokens (default: {BUDGET})"
    )
    add_by(parser)
    add_plan(parser)
    add_json(parser)


def run(args: Any, screen: Screen) -> int:
    project = project_of(args, screen)
    project.by = args.by
    if args.text is not None:
        plan_id = plan_of(args, project)
        execution = project.learn(plan_id, args.text, artifact=args.artifact)
        screen.answer({"plan_id": plan_id, "learnings": [known.text for known in execution.state.learnings]})
        screen.say(f"Kept with plan {plan_id}.")
        return 0
    plan_id = "" if args.about else plan_of(args, project)
    goal = args.about or project.show(plan_id).goal
    found = project.get_context_for_goal(goal, args.budget, plan_id=plan_id)
    screen.answer(found.to_dict())
    for line in found.lines:
        screen.say(f"{line.kind:<9} {line.text}  {screen.style(line.source, 'dim')}")
    if not found.lines:
        screen.say("Nothing is known yet that bears on this goal.")
    elif found.left_out:
        screen.say(screen.style(f"… {found.left_out} more; --budget N shows more", "dim"))
    return 0
