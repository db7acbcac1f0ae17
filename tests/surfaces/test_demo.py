"""The demo: everything that it shows is true, and it says so when something is not."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from headway.errors import BugError
from headway.surfaces.cli.screen import Screen
from headway.surfaces.cli.verbs import demo


def test_the_demo_shows_what_it_says(tmp_path: Path) -> None:
    """`headway demo` runs to its end in a folder of its own, which it removes, and leaves the current one alone."""
    here, temporary = tmp_path / "here", tmp_path / "tmp"
    here.mkdir()
    temporary.mkdir()
    done = subprocess.run(
        [Path(sys.executable).with_name("headway"), "demo"],
        cwd=here,
        env={**os.environ, "TMPDIR": str(temporary)},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert (done.stderr, done.returncode) == ("", 0)
    assert [line for line in done.stdout.splitlines() if line.startswith("$ ")] == [
        f"$ headway {step.do}" for step in demo.STEPS if isinstance(step.do, str)
    ]
    assert done.stdout.splitlines()[-1].startswith("All of this was true")
    assert [*here.iterdir(), *temporary.iterdir()] == []


@pytest.mark.parametrize(
    "step",
    [
        demo.Step("", "plans list", shows="thirteen plans"),
        demo.Step("", "plans list", code=4),
        demo.Step("", "plans show"),
        demo.Step("", demo.flip_a_byte),
    ],
)
def test_a_step_that_is_not_true_is_found(step: demo.Step, tmp_path: Path) -> None:
    """Other words, another exit code or a failing command stop the demo."""
    stage = demo.Stage(str(tmp_path / "demo"), Screen())
    with pytest.raises((BugError, FileNotFoundError)):
        stage.play(step)
