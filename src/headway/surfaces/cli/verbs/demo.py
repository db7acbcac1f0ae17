"""Watch Headway work: plan, run, kill -9, resume, edit, why, run.

Each command is really run, in a temporary folder, and each thing said about it is checked: exit 0 means all is true.

headway demo            the story
headway demo ledger     what a ledger survives: a killed writer, a flipped byte
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
import time
from typing import Any

from headway.surfaces.cli.screen import Screen
from headway.surfaces.cli.stage import PLAN, Stage, Step

FILE = """\
id: demo
goal: A report on a few lines of text
jobs: 2
artifacts:
  words:
    sources: [text/*.txt]
    produces: build/words.txt
    run: "sleep 0.5; cat {sources} | tr -cs '[:alpha:]' '\\\\n' | sort > {output}"
  top:
    requires: [words]
    produces: build/top.txt
    run: "sleep 0.5; uniq -c {inputs.words} | sort -rn | head -n 3 > {output}"
  title:
    produces: build/title.txt
    run: "sleep 2.5; echo '# What they say' > {output}"
  report:
    requires: [title, top]
    produces: report.md
    run: "cat {inputs.title} {inputs.top} > {output}"
"""
TEXTS = {"one.txt": "the sea and the wind\n", "two.txt": "the wind and the sea and the sky\n"}


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("story", nargs="?", choices=("run", "ledger"), default="run", help="which one (default: run)")
    parser.add_argument("--keep", action="store_true", help="leave the folder behind, to look around in it")
    parser.add_argument("--project", help=argparse.SUPPRESS)


def run(args: Any, screen: Screen) -> int:
    began, home = time.monotonic(), os.path.realpath(tempfile.mkdtemp(prefix="headway-demo-"))
    stage = Stage(os.path.join(home, PLAN), screen)
    try:
        for step in _steps(args.story):
            stage.play(step)
    finally:
        if not args.keep:
            shutil.rmtree(home, ignore_errors=True)
    screen.say()
    screen.say(f"All of this was true, in {time.monotonic() - began:.1f} s. Next: headway init")
    if args.keep:
        screen.say(f"Look around in {stage.folder}")
    return 0


def _steps(story: str) -> tuple[Step, ...]:
    if story == "ledger":
        from headway.surfaces.cli import damage

        return damage.STEPS
    return STEPS


def begin(stage: Stage) -> None:
    """Two texts, and a plan of four artifacts."""
    for name, text in {"headway.yaml": FILE, **{f"text/{name}": text for name, text in TEXTS.items()}}.items():
        path = os.path.join(stage.folder, name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
    stage.shell("cat headway.yaml")


def run_and_kill(stage: Stage) -> None:
    """Kill a run without warning, as soon as two artifacts are made and a third is being made."""
    stage.screen.say(stage.screen.style("$ headway run", "blue"))
    command = [sys.executable, "-m", "headway", "run"]
    running = subprocess.Popen(command, cwd=stage.folder, env=stage.environment(), stdout=subprocess.PIPE, text=True)
    assert running.stdout is not None, "it is a pipe"
    with running:
        for line in iter(running.stdout.readline, ""):
            stage.screen.say(line.rstrip("\n"))
            if line.split()[:2] == ["made", "top"]:
                break
        running.kill()
    stage.check(running.returncode == -9, "the run was killed in the middle")
    stage.act(f"kill -9 {running.pid}, while title was being made")


def remember(stage: Stage) -> None:
    """What is made, to see later that it was not made again."""
    stage.notes["seqs"] = stage.completions()


def was_kept(stage: Stage) -> None:
    """Nothing that was complete before the kill was made again after it."""
    now, before = stage.completions(), stage.notes["seqs"]
    stage.check(set(before) == {"words", "top"}, "two artifacts were complete when the run was killed")
    stage.check(all(now[a] == seq for a, seq in before.items()), "what was complete was not made again")


def edit(stage: Stage) -> None:
    """A source changes."""
    stage.shell("echo 'the sky and the rain' >> text/two.txt")


def edit_blanks(stage: Stage) -> None:
    """A source changes in a way that does not matter."""
    stage.shell("echo >> text/one.txt")


def edit_by_hand(stage: Stage) -> None:
    """A person writes into an output."""
    stage.shell("echo 'Checked by me.' >> report.md")


STEPS = (
    Step("A plan says what should exist: four artifacts, made by commands from two texts.", begin),
    Step("What would be made, and why? Asking changes nothing.", "run -n", "report"),
    Step("A run makes it. Kill it without warning.", run_and_kill),
    Step("", remember),
    Step("Everything that was complete is on record.", "status", "words"),
    Step("The same command goes on. What is complete is not made again.", "run", r"made +title[\s\S]*2 made, 2 kept"),
    Step("", was_kept),
    Step("Edit a source, and ask why.", edit),
    Step("", "why report", r"two\.txt"),
    Step("Only what it touched is made again: the title is kept.", "run", "3 made, 1 kept"),
    Step("A change that does not matter stops where the bytes are the same.", edit_blanks),
    Step("", "run", "1 made, 3 kept"),
    Step("What a person wrote is never overwritten; you are asked.", edit_by_hand),
    Step("", "run", "--accept-edits", 3),
    Step("", "run --accept-edits", "1 accepted"),
    Step("", "run", "Nothing to do: 4 artifacts are up to date"),
)
