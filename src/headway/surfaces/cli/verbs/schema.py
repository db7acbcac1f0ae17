"""Print the JSON Schema of plan files, for editors.

headway schema > headway.schema.json
# yaml-language-server: $schema=headway.schema.json
"""

from __future__ import annotations

import argparse
from typing import Any

from headway.files.plan_keys import plan_schema
from headway.surfaces.cli.options import add_json, add_project
from headway.surfaces.cli.screen import Screen


def configure(parser: argparse.ArgumentParser) -> None:
    add_project(parser)
    add_json(parser)


def run(args: Any, screen: Screen) -> int:
    screen.as_json = True  # it is JSON, whether that was said or not
    screen.answer(plan_schema())
    return 0
