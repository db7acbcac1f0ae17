"""Print the JSON Schema of plan files, for editors.

headway schema > headway.schema.json
# yaml-language-server: $schema=headway.schema.json
"""

from __future__ import annotations

import argparse
from typing import Any

import msgspec

from headway.files.planfile import plan_schema
from headway.surfaces.cli.options import add_project
from headway.surfaces.cli.screen import Screen


def configure(parser: argparse.ArgumentParser) -> None:
    add_project(parser)


def run(args: Any, screen: Screen) -> int:
    screen.say(msgspec.json.format(msgspec.json.encode(plan_schema()), indent=2).decode())
    return 0
