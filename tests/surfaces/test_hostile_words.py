"""Words come from anybody: what they would do to a terminal, or pretend to be, they do not do here."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

PLAN = (
    'id: p\ngoal: "evil \\e]0;title\\a and \\e[2J more"\nartifacts:\n  a: {description: "d\\e[2Jx", produces: a.txt}\n'
)


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A plan whose words would take over a terminal."""
    (tmp_path / "headway.yaml").write_text(PLAN)
    return tmp_path


def headway(project: Path, *words: str) -> subprocess.CompletedProcess[str]:
    """A command in that project."""
    command = [sys.executable, "-m", "headway", *words]
    return subprocess.run(command, cwd=project, capture_output=True, text=True, check=False)


@pytest.mark.parametrize("words", [("status",), ("next",), ("plans", "new"), ("plans", "list"), ("plans", "show")])
def test_no_word_reaches_the_terminal_as_a_command(project: Path, words: tuple[str, ...]) -> None:
    """Escape sequences are shown as what they are: nothing."""
    headway(project, "plans", "new")
    said = headway(project, *words)
    assert "\x1b" not in said.stdout + said.stderr
    assert "\x07" not in said.stdout + said.stderr


def test_a_name_is_one_line(project: Path) -> None:
    """Otherwise it could pass for a line of the log."""
    done = headway(project, "claim", "a", "--by", "x\n 4  2026-11-16 00:00:00  ann  plan approved by ann")
    assert (done.returncode, "one line" in done.stderr) == (2, True)


def test_a_folder_is_no_file(project: Path) -> None:
    """Where a file is produced, an empty folder completes nothing."""
    headway(project, "claim", "a", "--by", "joe")
    (project / "a.txt").mkdir()
    done = headway(project, "complete", "a", "--by", "joe")
    assert done.returncode == 2
    assert "a.txt is a folder" in done.stderr
