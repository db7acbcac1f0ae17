"""Words on a plan as a whole, or on the work of some artifacts: what `approve` and `reject` share."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import Any

from headway.core.state import Word
from headway.life import Finished, Life
from headway.planning import Planning
from headway.surfaces.cli.meant import work_of
from headway.surfaces.cli.options import add_by, add_json, add_plan, project_of
from headway.surfaces.cli.screen import Screen


def add_judged(parser: argparse.ArgumentParser, judged: str) -> None:
    """What is judged, in whose name."""
    parser.add_argument("artifacts", metavar="ID", nargs="*", help=f"artifacts whose work is {judged}, not the plan")
    add_by(parser)
    add_plan(parser)
    add_json(parser)


def judge(
    args: Any,
    screen: Screen,
    verdict: Word,
    text: str,
    *,
    work: Callable[[Finished], None],
    plan: Callable[[Planning, str], None],
) -> int:
    """Say a word on the work of the artifacts that are named, each shown by `work`; without any, `plan` says it."""
    project = project_of(args, screen)
    found, meant = work_of(args, project)
    plan_id = found.take_in(meant)
    if not args.artifacts:
        plan(Planning(project, by=args.by), plan_id)
        return 0
    done = Life(found, by=args.by).judge_work(plan_id, args.artifacts, verdict, text=text)
    screen.answer({"plan_id": plan_id, "artifacts": [one.to_dict() for one in done]})
    for one in done:
        work(one)
    return 0
