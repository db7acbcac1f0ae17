"""Give back what nobody holds any more: claims whose lease ran out, and those of a run that is gone."""

from __future__ import annotations

import argparse
from typing import Any

from headway.life import Life
from headway.surfaces.cli.meant import work_of
from headway.surfaces.cli.options import add_by, add_json, add_plan, project_of
from headway.surfaces.cli.screen import Screen


def configure(parser: argparse.ArgumentParser) -> None:
    add_by(parser)
    add_plan(parser)
    add_json(parser)


def run(args: Any, screen: Screen) -> int:
    work, meant = work_of(args, project_of(args, screen))
    swept = Life(work, by=args.by).sweep(meant.plan_id)
    screen.answer({"plan_id": meant.plan_id, "swept": swept})
    screen.say(f"Free again: {', '.join(swept)}" if swept else "Every claim is held by somebody.")
    return 0
