"""Start a project: write a small plan file, overwrite nothing, say what to do next."""

from __future__ import annotations

import argparse
import os
import re
from typing import Any

from headway.choosing import PLAN_FILES
from headway.errors import DecisionNeeded
from headway.surfaces.cli.options import add_json, add_project, refuse_home
from headway.surfaces.cli.screen import Screen

NAME = "headway.yaml"
PLAN = """\
id: {id}
goal: Write a short report
artifacts:
  words:
    description: A few words, one a line
    produces: build/words.txt
    run: "printf 'one\\\\ntwo\\\\nthree\\\\n' > {{output}}"
  count:
    description: How many there are
    requires: [words]
    produces: build/count.txt
    run: "wc -l < {{inputs.words}} > {{output}}"
  report:
    description: Both, as one page
    requires: [words, count]
    produces: build/report.md
    run: "(echo '# Words'; cat {{inputs.count}} {{inputs.words}}) > {{output}}"
"""
NEXT = {
    "headway run": "make what it asks for",
    "headway status": "see where it stands",
    "headway why report": "see why something is made again, or not",
}


def configure(parser: argparse.ArgumentParser) -> None:
    add_project(parser)
    add_json(parser)


def run(args: Any, screen: Screen) -> int:
    folder = os.path.abspath(args.project or os.getcwd())
    refuse_home(folder)
    path = os.path.join(folder, NAME)
    for name in PLAN_FILES:
        if os.path.lexists(os.path.join(folder, name)):
            raise DecisionNeeded(
                f"There is a {name} already",
                facts={"file": os.path.join(folder, name)},
                hint="headway run makes what it asks for; to start over, move it away",
                code="init.exists",
            )
    os.makedirs(folder, exist_ok=True)
    with open(path, "x", encoding="utf-8") as file:
        file.write(PLAN.format(id=_id_for(folder)))
    screen.answer({"written": path, "next": list(NEXT)})
    screen.say(f"Wrote {NAME}: 3 artifacts. Next:")
    for command, purpose in NEXT.items():
        screen.say(f"  {command:<20}{purpose}")
    return 0


def _id_for(folder: str) -> str:
    """The folder's name as a plan id, quoted where YAML would take it for something else than text."""
    name = re.sub(r"[^A-Za-z0-9._-]+", "-", os.path.basename(folder))[:64].strip("-._") or "plan"
    is_word = re.fullmatch(r"[A-Za-z][A-Za-z0-9._-]*", name) and name.lower() not in _NOT_TEXT
    return name if is_word else f'"{name}"'


_NOT_TEXT = {"true", "false", "yes", "no", "on", "off", "null", "y", "n"}
