"""How many artifacts of a plan may be made at once. Without options, show it.

A plan whose profile was never set is not bound by one. A locked profile stands until the plan is reset.
"""

from __future__ import annotations

import argparse
from typing import Any

import msgspec

from headway.core.plan import Profile
from headway.surfaces.cli.options import add_at, add_json, add_plan, plan_of, project_of
from headway.surfaces.cli.screen import Screen


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("action", choices=("show", "set", "lock"), nargs="?", default="show")
    parser.add_argument("--parallel", action=argparse.BooleanOptionalAction, help="several artifacts at once")
    parser.add_argument("--max-concurrent-tasks", type=int, metavar="N", help="how many, 1 to 64")
    parser.add_argument("--council-parallel", action=argparse.BooleanOptionalAction, help="reviews side by side")
    add_plan(parser)
    add_at(parser)
    add_json(parser)


def run(args: Any, screen: Screen) -> int:
    project = project_of(args)
    plan_id = plan_of(args, project)
    if args.action == "show":
        profile = project.show(plan_id, at=args.at).state.profile
    else:
        wanted = _wanted(args, project.show(plan_id).state.profile or Profile())
        profile = project.set_profile(plan_id, wanted).state.profile
    screen.answer({"plan_id": plan_id, "execution_profile": msgspec.structs.asdict(profile) if profile else None})
    if profile is None:
        screen.say(f"Plan {plan_id} has no profile: it is not bound by one.")
        return 0
    for name, value in msgspec.structs.asdict(profile).items():
        screen.say(f"{name:<24}{str(value).lower()}")
    return 0


def _wanted(args: Any, profile: Profile) -> Profile:
    changes: dict[str, Any] = {}
    if args.max_concurrent_tasks is not None:
        changes["max_concurrent_tasks"] = args.max_concurrent_tasks
        changes["parallelization_enabled"] = args.max_concurrent_tasks > 1
    if args.parallel is not None:
        changes["parallelization_enabled"] = args.parallel
    if args.council_parallel is not None:
        changes["council_parallel"] = args.council_parallel
    if args.action == "lock":
        changes["locked"] = True
    wanted: Profile = msgspec.structs.replace(profile, **changes)
    return wanted
