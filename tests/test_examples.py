"""The examples: each README is played in a copy of its folder, offline, and prints what it says."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest
import yaml

from tests.test_docs import FENCE, ROOT, dead_links, play, shortfalls

EXAMPLES = ROOT / "examples"
NAMES = sorted(path.name for path in EXAMPLES.iterdir() if path.is_dir())
LEFT = shutil.ignore_patterns(
    ".headway", "__pycache__", "build", "dist", "out", "outside", "src", "report.md", "*.old", "draft", "docs"
)


def copied(name: str, folder: Path) -> Path:
    """An example as it is checked out, in a place of its own."""
    return Path(shutil.copytree(EXAMPLES / name, folder / name, ignore=LEFT))


def transcript(name: str) -> str:
    """All console blocks of an example's README: they are one session."""
    text = (EXAMPLES / name / "README.md").read_text(encoding="utf-8")
    return "".join(match[2] for match in FENCE.finditer(text) if match[1] == "console")


def test_every_example_is_listed() -> None:
    """The page that lists them names each, and each has a page."""
    page = EXAMPLES / "README.md"
    assert [name for name in NAMES if f"({name}/README.md)" not in page.read_text(encoding="utf-8")] == []
    assert [fault for path in (page, *EXAMPLES.glob("*/README.md")) for fault in dead_links(path)] == []


@pytest.mark.parametrize("name", NAMES)
def test_an_example_does_what_its_page_says(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Played from the first command to the last in a fresh copy, without network."""
    for variable in ("CI", "GITHUB_ACTIONS", "GITHUB_STEP_SUMMARY"):
        monkeypatch.delenv(variable, raising=False)
    assert shortfalls(transcript(name), copied(name, tmp_path)) == []


def test_the_workflow_runs_what_its_page_shows(tmp_path: Path) -> None:
    """Its own steps, as GitHub would run them: they succeed, and only `.headway` has to outlive the job."""
    folder = copied("ci", tmp_path)
    workflow = yaml.safe_load((folder / ".github/workflows/headway.yml").read_text(encoding="utf-8"))
    steps = workflow["jobs"]["notes"]["steps"]
    commands = [step["run"] for step in steps if step.get("run", "").startswith("headway ")]
    assert commands == ["headway run", "headway status --check"]
    assert [step["with"]["path"] for step in steps if "actions/cache" in step.get("uses", "")] == [".headway"]
    session = "".join(f"$ {command}\n$ echo $?\n0\n" for command in commands)
    outcomes = [output for step, output in play(session, folder) if step.command == "echo $?"]
    assert outcomes == ["0\n", "0\n"]
    made = (folder / "dist" / "notes.md").read_bytes()
    clean = tmp_path / "next job"
    shutil.copytree(EXAMPLES / "ci", clean, ignore=LEFT)
    os.rename(folder / ".headway", clean / ".headway")
    said = next(output for _, output in play("$ headway run\n", clean))
    assert "2 restored, 1 kept" in said
    assert (clean / "dist" / "notes.md").read_bytes() == made


def test_the_plan_makes_what_the_script_made(tmp_path: Path) -> None:
    """The migrated site, made anew by the plan, is byte for byte what is checked in, and what build.sh makes."""
    folder = copied("migration", tmp_path)
    before = {path.name: path.read_bytes() for path in (folder / "site").iterdir()}
    for session in ("$ sh build.sh\n", "$ headway run --discard-edits\n"):
        said = [output for _, output in play(session, folder)]
        assert {path.name: path.read_bytes() for path in (folder / "site").iterdir()} == before
    assert "4 made" in said[0]
