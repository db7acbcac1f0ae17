"""Options that several verbs share, and the project and plan that they name."""

from __future__ import annotations

import argparse
import os
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from headway.errors import NotFound, UsageError

if TYPE_CHECKING:
    from headway.project import Project
    from headway.surfaces.cli.screen import Screen


def add_project(parser: argparse.ArgumentParser) -> None:
    """--project: every verb takes it."""
    parser.add_argument("--project", metavar="PATH", help="the project's folder (default: found from here upwards)")


def add_plan(parser: argparse.ArgumentParser) -> None:
    """--project, --plan and --plan-id: every verb about one plan takes them."""
    add_project(parser)
    parser.add_argument("--plan", metavar="FILE", help="the plan file (default: headway.yaml, else the latest plan)")
    parser.add_argument("--plan-id", metavar="ID", help="a saved plan by its id")


def at_least(lowest: int, kind: type = int, *, highest: int | None = None) -> Callable[[str], Any]:
    """A number that is not smaller than this, and not above the highest if there is one."""

    def number(text: str) -> Any:
        value = kind(text)
        if not lowest <= value < 1e9 or (highest is not None and value > highest):
            upto = f"to {highest}" if highest is not None else "on"
            raise argparse.ArgumentTypeError(f"{text} is not a number from {lowest} {upto}")
        return value

    return number


def span(text: str) -> float:
    """A time in words: 90, 90s, 30m, 2h, 1d; in seconds."""
    unit = {"s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}.get(text[-1:].lower())
    try:
        seconds = float(text[:-1] if unit is not None else text) * (unit or 1.0)
    except ValueError:
        seconds = 0.0
    if not 0 < seconds <= 366 * 86400:
        raise argparse.ArgumentTypeError(f"{text} is not a time such as 90s, 30m, 2h or 1d")
    return seconds


def add_by(parser: argparse.ArgumentParser) -> None:
    """--by: every verb that somebody puts their name to takes it."""
    parser.add_argument(
        "--by", type=person, default="cli", metavar="NAME", help="who does it, for the record (default: cli)"
    )


def add_json(parser: argparse.ArgumentParser) -> None:
    """--json: every reading verb takes it."""
    parser.add_argument("--json", action="store_true", help="one JSON document on stdout")


def add_at(parser: argparse.ArgumentParser) -> None:
    """--at: every reading verb takes it."""
    parser.add_argument("--at", type=int, metavar="SEQ", help="as of an earlier event (headway log shows the numbers)")


def project_of(args: Any, screen: Screen | None = None) -> Project:
    """The project that the arguments name; what it has to say on the side goes to the screen."""
    from headway.plan_folder import keep_quiet
    from headway.project import Project

    project = Project(_folder(args), by="cli", notice=screen.note if screen is not None else keep_quiet)
    refuse_home(project.root)
    return project


def root_of(args: Any) -> str:
    """The root of that project, before anything of it is loaded: refused as the project itself would be."""
    from contextlib import suppress

    from headway.errors import DamageError
    from headway.files.identity import HOME, read_identity

    root = _folder(args)
    with suppress(DamageError):
        read_identity(os.path.join(root, HOME))
    refuse_home(root)
    return root


def _folder(args: Any) -> str:
    """Where the project is that the arguments name: there, or found from here upwards."""
    from headway.files.identity import find_root

    if args.project is None:
        root = find_root(os.getcwd(), home=os.path.expanduser("~"))
        refuse_another_project(getattr(args, "plan", None), root)
        return root
    refuse_missing_folder(args.project)
    return str(os.path.abspath(args.project))


def refuse_another_project(plan: str | None, root: str) -> None:
    """The plan file of another project makes nothing here, unless --project says so: its paths are that project's."""
    from headway.core.ids import as_word
    from headway.files.identity import HOME, NAME, find_root

    if plan is None:
        return
    other = find_root(os.path.dirname(os.path.abspath(plan.partition(".py:")[0])), home=os.path.expanduser("~"))
    if os.path.realpath(other) != os.path.realpath(root) and os.path.exists(os.path.join(other, HOME, NAME)):
        raise UsageError(
            f"{plan} is another project's",
            facts={"its project": other, "the project here": root},
            hint=f"add --project {as_word(os.path.relpath(other))}, or --project . if it is meant for this folder",
            code="project.other",
        )


def refuse_missing_folder(path: str) -> None:
    """--project names a folder that exists."""
    if not os.path.isdir(path):
        raise NotFound(f"There is no folder {path}", hint="check --project", code="project.none")


def refuse_home(root: str) -> None:
    """The home folder is never a project: its .headway belongs to the machine, and it would swallow all others."""
    if os.path.realpath(root) == os.path.realpath(os.path.expanduser("~")):
        raise UsageError(
            "The home folder is never a project",
            facts={"folder": root},
            hint="cd into the project's folder, or name it with --project PATH",
            code="project.home",
        )


def person(text: str) -> str:
    """Somebody's name: one line that can be read."""
    if text and not text.isprintable():
        raise argparse.ArgumentTypeError("a name is one line of printable text")
    return text


def same_plan(args: Any) -> str:
    """The options that name the plan and the project of this command, for the next one."""
    from headway.core.ids import as_word

    given = {f"--{name.replace('_', '-')}": getattr(args, name, None) for name in ("plan", "plan_id", "project")}
    return "".join(f" {name} {as_word(value)}" for name, value in given.items() if value)


def add_take(parser: argparse.ArgumentParser) -> None:
    """--take: every verb that looks at a plan as its file would have it."""
    parser.add_argument("--take", choices=("file", "ledger"), help="who wins where both changed the same thing")


def plan_of(args: Any, project: Project) -> str:
    """The id of the plan that the arguments name."""
    named, positional = args.plan_id, getattr(args, "id", None)
    if named and positional and named != positional:
        raise UsageError(
            f"{positional} and --plan-id {named} are different plans", hint="give one of them", code="plan.which"
        )
    return project.select(positional or named, args.plan)
