"""Options that several verbs share, and the project and plan that they name."""

from __future__ import annotations

import argparse
import os
from typing import Any

from headway.project import Project


def add_project(parser: argparse.ArgumentParser) -> None:
    """--project: every verb takes it."""
    parser.add_argument("--project", metavar="PATH", help="the project's folder (default: found from here upwards)")


def add_plan(parser: argparse.ArgumentParser) -> None:
    """--project, --plan and --plan-id: every verb about one plan takes them."""
    add_project(parser)
    parser.add_argument("--plan", metavar="FILE", help="the plan file (default: headway.yaml, else the latest plan)")
    parser.add_argument("--plan-id", metavar="ID", help="a saved plan by its id")


def add_json(parser: argparse.ArgumentParser) -> None:
    """--json: every reading verb takes it."""
    parser.add_argument("--json", action="store_true", help="one JSON document on stdout")


def add_at(parser: argparse.ArgumentParser) -> None:
    """--at: every reading verb takes it."""
    parser.add_argument("--at", type=int, metavar="SEQ", help="as of an earlier event (headway log shows the numbers)")


def project_of(args: Any) -> Project:
    """The project that the arguments name."""
    home = os.path.expanduser("~")
    if args.project is not None:
        if not os.path.isdir(args.project):
            from headway.errors import NotFound

            raise NotFound(f"There is no folder {args.project}", hint="check --project", code="project.none")
        return Project(args.project, by="cli")
    return Project.locate(os.getcwd(), home=home, by="cli")


def plan_of(args: Any, project: Project) -> str:
    """The id of the plan that the arguments name."""
    return project.select(args.plan_id, args.plan)
