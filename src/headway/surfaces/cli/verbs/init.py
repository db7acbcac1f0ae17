"""Start a project: write a small plan file, overwrite nothing, say what to do next."""

from __future__ import annotations

import argparse
import os
import re
from typing import Any

from headway.errors import DecisionNeeded
from headway.surfaces.cli.options import add_project
from headway.surfaces.cli.screen import Screen

PLAN = """\
id: {id}
goal: Write a short report about the files in this folder
artifacts:
  listing:
    description: The names of all files here, sorted
    produces: build/listing.txt
    run: "ls -p | grep -v / | sort > {{output}}"
  count:
    description: How many there are
    requires: [listing]
    produces: build/count.txt
    run: "wc -l < {{inputs.listing}} > {{output}}"
  report:
    description: Both, as one page
    requires: [listing, count]
    produces: build/report.md
    run: "(echo '# Files'; cat {{inputs.count}} {{inputs.listing}}) > {{output}}"
"""


def configure(parser: argparse.ArgumentParser) -> None:
    add_project(parser)


def run(args: Any, screen: Screen) -> int:
    folder = args.project or os.getcwd()
    path = os.path.join(folder, "headway.yaml")
    if os.path.exists(path):
        raise DecisionNeeded(
            "There is a headway.yaml already",
            facts={"file": path},
            hint="headway plans new headway.yaml",
            code="init.exists",
        )
    os.makedirs(folder, exist_ok=True)
    with open(path, "x", encoding="utf-8") as file:
        file.write(PLAN.format(id=_id_for(folder)))
    screen.say("Wrote headway.yaml: 3 artifacts.")
    screen.say("Next:")
    screen.say("  headway plans new headway.yaml   save the plan")
    screen.say("  headway plans show               look at it")
    screen.say("  headway log                      see what was recorded")
    return 0


def _id_for(folder: str) -> str:
    name = re.sub(r"[^A-Za-z0-9._-]+", "-", os.path.basename(os.path.abspath(folder))).strip("-._")
    return name[:64] or "plan"
