"""Go on with the plan that was not finished: the latest one, or the one named. The same code as run.

headway resume                      the latest unfinished plan
headway resume -c PLAN.json         take in a checkpoint, then go on with it
"""

from __future__ import annotations

import argparse
from typing import Any

from headway.surfaces.cli.options import project_of
from headway.surfaces.cli.screen import Screen
from headway.surfaces.cli.verbs import run as run_verb


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("-c", "--checkpoint", metavar="FILE", help="a checkpoint to take in first")
    run_verb.configure(parser)


def run(args: Any, screen: Screen) -> int:
    project = project_of(args, screen)
    if args.checkpoint:
        args.plan_id = project.import_plan(args.checkpoint, plan_id=args.plan_id).execution.plan_id
    elif args.plan is None and args.plan_id is None:
        args.plan_id = project.unfinished()
    return run_verb.run(args, screen)
