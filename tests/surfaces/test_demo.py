"""The demonstrations: everything that they show is true, and they say so when something is not."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from headway.errors import BugError
from headway.surfaces.cli import damage
from headway.surfaces.cli.screen import Screen
from headway.surfaces.cli.stage import Stage, Step
from headway.surfaces.cli.verbs import demo

HEADWAY = Path(sys.executable).with_name("headway")


STORIES = {"run": demo.STEPS, "ledger": damage.STEPS}


@pytest.mark.parametrize("story", STORIES)
def test_a_demo_shows_what_it_says(tmp_path: Path, story: str) -> None:
    """It runs to its end in a folder of its own, which it removes, and leaves the current one alone."""
    steps = STORIES[story]
    here, temporary = tmp_path / "here", tmp_path / "tmp"
    here.mkdir()
    temporary.mkdir()
    env = {**os.environ, "TMPDIR": str(temporary)}
    done = subprocess.run(
        [HEADWAY, "demo", story], cwd=here, env=env, capture_output=True, text=True, timeout=120, check=False
    )
    assert (done.stderr, done.returncode) == ("", 0)
    shown = [line for line in done.stdout.splitlines() if line.startswith("$ headway ")]
    told = [f"$ headway {step.do}" if isinstance(step.do, str) else "" for step in steps]
    killed = ["$ headway run" if step.do is demo.run_and_kill else "" for step in steps]
    assert shown == [line or other for line, other in zip(told, killed, strict=True) if line or other]
    assert done.stdout.splitlines()[-1].startswith("All of this was true")
    assert [*here.iterdir(), *temporary.iterdir()] == []
    if story == "run":
        turns = ("kill -9", "interrupted before", "2 made, 2 kept", "3 made, 1 kept", "1 made, 3 kept", "1 accepted")
        places = [done.stdout.index(words) for words in turns]
        assert places == sorted(places)


@pytest.mark.parametrize(
    "step",
    [
        Step("", "plans list", shows="thirteen plans"),
        Step("", "plans list", code=4),
        Step("", "plans show"),
        Step("", damage.flip_a_byte),
        Step("", lambda stage: stage.shell("false")),
        Step("", lambda stage: stage.check(False, "water is dry")),
    ],
)
def test_a_step_that_is_not_true_is_found(step: Step, tmp_path: Path) -> None:
    """Other words, another exit code or a failing command stop a demonstration."""
    stage = Stage(str(tmp_path / "demo"), Screen())
    with pytest.raises((BugError, FileNotFoundError)):
        stage.play(step)
