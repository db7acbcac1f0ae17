"""A stage for demonstrations: commands that are really run, shown with what they print, and claims that are checked."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from collections.abc import Callable
from typing import Any, NamedTuple

import msgspec

from headway.errors import BugError
from headway.project import Project
from headway.surfaces.cli.screen import Screen

PLAN = "demo"


class Stage:
    """Where the demo happens: one project, and what was noted on the way."""

    def __init__(self, folder: str, screen: Screen) -> None:
        self.folder = folder
        self.screen = screen
        self.notes: dict[str, Any] = {}
        os.mkdir(folder)

    def play(self, step: Step) -> None:
        """Say what is to be seen, do it, and check it."""
        if step.say:
            self.screen.say()
            self.screen.say(self.screen.style(step.say, "bold"))
        if isinstance(step.do, str):
            self.headway(step.do, code=step.code, shows=step.shows)
        else:
            step.do(self)

    def headway(self, words: str, *, code: int = 0, shows: str = "") -> None:
        """Run a command and show it with its output."""
        self.screen.say(self.screen.style(f"$ headway {words}", "blue"))
        done = self.call(*shlex.split(words))
        self.screen.say((done.stdout + done.stderr).rstrip("\n"))
        if code:
            self.screen.say(self.screen.style(f"(exit {done.returncode})", "dim"))
        self.check(done.returncode == code, f"headway {words} ends with exit {code}, not {done.returncode}")
        self.check(not shows or re.search(shows, done.stdout), f"headway {words} says “{shows}”")

    def shell(self, line: str) -> None:
        """Run something else and show it with its output."""
        self.screen.say(self.screen.style(f"$ {line}", "blue"))
        done = subprocess.run(["/bin/sh", "-c", line], cwd=self.folder, capture_output=True, text=True, check=False)
        if done.stdout:
            self.screen.say(done.stdout.rstrip("\n"))
        self.check(done.returncode == 0, f"{line} works")

    def completions(self) -> dict[str, int]:
        """What is complete, each with the event that says so."""
        project = Project(self.folder)
        return {a: done.seq for a, done in project.show(PLAN).state.completed.items()}

    def call(self, *words: str) -> subprocess.CompletedProcess[str]:
        """Run a command in a process of its own."""
        return subprocess.run(
            [sys.executable, "-m", "headway", *words],
            cwd=self.folder,
            env=self.environment(),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
        )

    def document(self, *words: str) -> dict[str, Any]:
        """What a command answers to machines."""
        found: dict[str, Any] = msgspec.json.decode(self.call(*words, "--json").stdout)
        return found

    def environment(self) -> dict[str, str]:
        """The user's, without settings of Headway's own."""
        return {name: value for name, value in os.environ.items() if not name.startswith("HEADWAY_")}

    def path(self, *parts: str) -> str:
        """A path in the plan's own folder."""
        return os.path.join(self.folder, ".headway", "plans", PLAN, *parts)

    def act(self, what: str) -> None:
        """Show something that is done without a command."""
        self.screen.say(self.screen.style(f"# {what}", "yellow"))

    def check(self, truth: object, claim: str) -> None:
        """Stop at the first thing that is not as it was said."""
        if not truth:
            raise BugError(
                "The demo showed something that is not true", facts={"claim": claim}, hint="please report it"
            )


class Step(NamedTuple):
    """What to say, what to do (a command of headway, or a function), and what must come of it."""

    say: str
    do: str | Callable[[Stage], None]
    shows: str = ""
    code: int = 0
