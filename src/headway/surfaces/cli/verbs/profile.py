"""How many artifacts of a plan may be made at once. Without a word, show it.

A plan whose profile was never set is not bound by one. A locked profile stands until the plan is reset.
"""

from __future__ import annotations

import argparse
from typing import Any

import msgspec

from headway.core.plan import Profile
from headway.errors import UsageError
from headway.projections.saved_execution import profile_to_dict
from headway.surfaces.cli.options import add_at, add_json, add_plan, plan_of, project_of
from headway.surfaces.cli.screen import Screen


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "action", choices=("show", "set", "lock"), nargs="?", default="show", help="show (the default), set or lock it"
    )
    parser.add_argument("--parallel", action=argparse.BooleanOptionalAction, help="several artifacts at once, or one")
    parser.add_argument("--max-concurrent-tasks", type=int, metavar="N", help="how many, 1 to 64; implies --parallel")
    parser.add_argument(
        "--council-parallel", action=argparse.BooleanOptionalAction, help="reviews side by side, or in turn"
    )
    add_plan(parser)
    add_at(parser)
    add_json(parser)


def run(args: Any, screen: Screen) -> int:
    changes = _changes(args)
    _refuse_nonsense(args, changes)
    project = project_of(args, screen)
    plan_id = plan_of(args, project)
    profile = project.show(plan_id, at=args.at).state.profile
    if args.action != "show":
        wanted: Profile = msgspec.structs.replace(profile or Profile(), **changes)
        profile = project.set_profile(plan_id, wanted).state.profile
    fields = profile_to_dict(profile)
    screen.answer({"plan_id": plan_id, "execution_profile": fields})
    if fields is None:
        screen.say(f"Plan {plan_id} has no profile: it is not bound by one.")
    for name, value in (fields or {}).items():
        screen.say(f"{name:<24}{str(value).lower()}")
    return 0


def _changes(args: Any) -> dict[str, Any]:
    changes: dict[str, Any] = {}
    if args.max_concurrent_tasks is not None:
        changes["max_concurrent_tasks"] = args.max_concurrent_tasks
        changes["parallelization_enabled"] = args.max_concurrent_tasks > 1
    if args.parallel is not None:
        changes["parallelization_enabled"] = args.parallel
    if args.council_parallel is not None:
        changes["council_parallel"] = args.council_parallel
    return {**changes, "locked": True} if args.action == "lock" else changes


def _refuse_nonsense(args: Any, changes: dict[str, Any]) -> None:
    if args.action == "show" and changes:
        raise UsageError("Showing a profile changes nothing", hint="headway profile set …", code="profile.show")
    if args.action == "set" and not changes:
        raise UsageError(
            "Say what to set", hint="headway profile set --max-concurrent-tasks N, or --no-parallel", code="profile.set"
        )
    if args.action != "show" and args.at is not None:
        raise UsageError("The past cannot be changed", hint=f"headway profile {args.action} without --at", code="at")
