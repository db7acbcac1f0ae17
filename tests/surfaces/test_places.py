"""`headway dag workspace|environment` and the verbs beside them: what people see, and what machines get."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

import headway
from tests.places import Land
from tests.workshop import tree

MODEL = {"contract": "Fields: id, email", "produces": "out/model.txt", "run": "echo user > {output}"}


@pytest.fixture
def land(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Land:
    """A home with a workspace of three projects; one has goals that all went well, one a failure, one no goal yet."""
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.delenv("HEADWAY_HOME", raising=False)
    land = Land(tmp_path / "home/land")
    land.python("forum", "flask")
    land.python("gateway", "flask", "forum")
    land.write("docs/mkdocs.yml", "nav: [../forum/src]\n")
    for n in range(5):
        land.plan("forum", f"goal{n}", UserModel=MODEL if n == 0 else {"run": "exit 3" if n == 4 else "true #{output}"})
        land.run("forum", f"goal{n}")
    land.plan("gateway", UserModel=MODEL)
    land.run("gateway")
    return land


def test_a_workspace_is_drawn_as_cards(land: Land, capsys: pytest.CaptureFixture[str]) -> None:
    """Progress bars, goals, tech stack, "No goals yet", relations with their evidence, and what is shared."""
    said = land.cli(capsys, "dag", "workspace", str(land.root)).out
    assert said == (
        "Workspace: ~/land  polyrepo\n"
        "\n"
        "┌────────────────────────┐  ┌────────────────────────┐  ┌────────────────────────┐\n"
        "│ docs                   │  │ forum                  │  │ gateway                │\n"
        "│ ░░░░░░░░░░ 0%          │  │ ██░░░░░░░░ 20%         │  │ ██████████ 100%        │\n"
        "│ No goals yet           │  │ 1/5 goals, 4 failed    │  │ 1/1 goals              │\n"
        "│ mkdocs                 │  │ python/flask           │  │ python/flask           │\n"
        "└────────────────────────┘  └────────────────────────┘  └────────────────────────┘\n"
        "\n"
        "Relations\n"
        "  docs → forum  documentation  0.90  documentation points to ../forum/src\n"
        "  gateway → forum  dependency  0.90  pyproject.toml needs forum\n"
        "\n"
        "Shared\n"
        "  UserModel  the same bytes in forum, gateway\n"
        "  UserModel  the same contract in forum, gateway\n"
        "  patterns: flask-app, UserModel contract\n"
        "\n"
        "3 projects, 6 goals, 2 complete; 2 relations.\n"
    )


def test_the_workspace_is_found_from_a_project_or_from_within(
    land: Land, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """From a project's folder, by --project, or standing in the folder that holds the projects; never the home."""
    for place in ("forum/src", "."):
        monkeypatch.chdir(land.root / place)
        assert list(land.cli(capsys, "dag", "workspace", "--json").json["projects"]) == ["docs", "forum", "gateway"]
    monkeypatch.chdir("/")
    found = land.cli(capsys, "dag", "workspace", "--project", str(land.root / "docs"), "--json").json
    assert found["workspacePath"] == str(land.root)
    done = land.cli(capsys, "dag", "workspace", "--project", str(land.root))
    assert done.code == 2
    assert "next: headway dag workspace PATH" in done.err
    assert land.cli(capsys, "dag", "workspace", str(land.root / "nothing")).code == 2


def test_looking_at_a_workspace_that_nobody_made_one_writes_nothing(
    land: Land, capsys: pytest.CaptureFixture[str]
) -> None:
    """One that somebody did is kept up to date by whoever looks."""
    before = tree(land.root)
    land.cli(capsys, "dag", "workspace", str(land.root))
    assert tree(land.root) == before
    land.cli(capsys, "workspace", "goal", "all", "All of it", "--workspace", str(land.root))
    file = land.root / ".headway/dag/workspace-index.json"
    was = file.read_bytes()
    land.plan("docs", pages={})
    land.run("docs")
    land.cli(capsys, "dag", "workspace", str(land.root))
    assert file.read_bytes() != was


def test_people_say_how_projects_are_related(
    land: Land, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """link, confirm, unlink, goal, drop, refresh; each says what it did."""
    monkeypatch.chdir(land.root / "forum")

    def ask(*words: str) -> str:
        return land.cli(capsys, "workspace", *words).out

    assert ask("confirm", "gateway", "forum", "--by", "ann") == "gateway → forum  dependency, by your word.\n"
    assert ask("link", "docs", "gateway", "--as", "documentation") == "docs → gateway  documentation, by your word.\n"
    assert ask("unlink", "docs", "forum", "--reason", "old") == "docs and forum are not related.\n"
    assert ask("goal", "ship", "Ship it", "gateway:main", "forum:goal4") == "✗ Ship it  1/2\n"
    assert ask("refresh") == "3 projects, 2 relations: kept.\n"
    said = land.cli(capsys, "dag", "workspace").out
    assert "  gateway → forum  dependency  confirmed  pyproject.toml needs forum; confirmed by ann\n" in said
    assert "Goals\n  ✗ Ship it  1/2  gateway:main complete, forum:goal4 failed\n" in said
    assert ask("drop", "ship") == "ship is given up.\n"
    wrong = land.cli(capsys, "workspace", "link", "docs", "formu")
    assert (wrong.code, "did you mean: forum" in wrong.err) == (2, True)


def test_a_machine_is_described_and_shown(land: Land, capsys: pytest.CaptureFixture[str]) -> None:
    """Registered, shown with bars, languages, health and insights; everything below $HEADWAY_HOME."""
    assert land.cli(capsys, "dag", "environment").out.startswith("No workspace is registered.")
    assert not (land.root.parent / ".headway").exists()
    assert land.cli(capsys, "environment", "register", str(land.root)).out == "1 workspace, 3 projects.\n"
    said = land.cli(capsys, "dag", "environment").out
    assert said.startswith("~/land  ███░░░░░░░  33%  3 projects, 2/6 goals\n")
    assert "Languages: python 2, docs 1\n" in said
    assert "  1.00  gateway  1/1 goals\n" in said
    assert "“exit code 3”" not in said
    assert "times in 1 project\n" in said
    found = land.cli(capsys, "dag", "environment", "--json").json
    assert found["workspaces"][0]["completionRate"] == 0.33
    assert "Time by project and month" in land.cli(capsys, "dag", "environment", "--all").out
    assert (land.root.parent / ".headway/environment.json").exists()
    assert land.cli(capsys, "environment", "forget", str(land.root)).out == "0 workspaces, 0 projects.\n"
    assert land.cli(capsys, "environment", "root", str(land.root)).out == "1 workspace, 3 projects.\n"


def test_the_same_in_python(land: Land, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """By RFC-105's names; `$HEADWAY_HOME` says where the machine's own ledger is."""
    assert list(headway.get_workspace_dag(land.root).projects) == ["docs", "forum", "gateway"]
    assert not (land.root / ".headway").exists()
    headway.refresh_workspace_index(land.root)
    assert (land.root / ".headway/dag/workspace-index.json").exists()
    monkeypatch.setenv("HEADWAY_HOME", str(tmp_path / "elsewhere"))
    headway.Environment(tmp_path / "elsewhere").register(str(land.root))
    assert [w.name for w in headway.get_environment_overview().workspaces] == ["land"]


def test_nothing_of_this_is_loaded_by_a_run() -> None:
    """Start-up stays lean."""
    code = (
        "import sys; from headway.surfaces.cli.main import main; main(['--version']); import headway.work;"
        "print([m for m in sys.modules if 'places' in m or 'survey' in m or 'workspace' in m or 'memory' in m])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "[]"
