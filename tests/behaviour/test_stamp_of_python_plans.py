"""A plan in Python is executed every time; what it built is then known to have nothing to do, or judged in full."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

SCRIPT = """\
import os
import sys
from headway import Plan
import helper

plan = Plan("Try to fool the stamp", id="stamped", env=["STYLE"])

@plan.artifact(produces="out/word.txt")
def word():
    return helper.word()

@plan.artifact(produces="out/list.txt", sources=["data/*.txt"], requires=["word"])
def listing(ctx):
    return " ".join(sorted(p.name for p in ctx.sources)) + ctx.inputs["word"].text()

plan.add("sum", make=helper.add, args={"n": int(os.environ.get("N", "1"))}, produces="out/sum.txt")
result = plan.run(check=False)
at_rest = "headway.engine.judge" not in sys.modules
print(len(result.made), "made;", result["word"].text(), result.status, at_rest)
"""


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A project whose script has run once: the next run has nothing to do."""
    (tmp_path / "data").mkdir()
    (tmp_path / "data/a.txt").write_text("a")
    (tmp_path / "headway.toml").write_text("")
    (tmp_path / "helper.py").write_text(
        "LETTERS = 'word'\ndef word():\n    return LETTERS\ndef add(n):\n    return n + 1\n"
    )
    (tmp_path / "plan.py").write_text(SCRIPT)
    assert run(tmp_path) == "3 made; word completed False"
    return tmp_path


def run(root: Path, **environ: str) -> str:
    """The script as a process of its own. Compiled files, which Python tells apart by seconds, would hide edits."""
    env = {**os.environ, "STYLE": "plain", "PYTHONDONTWRITEBYTECODE": "1", **environ}
    done = subprocess.run([sys.executable, "plan.py"], capture_output=True, text=True, check=True, cwd=root, env=env)
    return done.stdout.strip()


def test_what_is_known_to_have_nothing_to_do_is_not_judged_again(project: Path) -> None:
    """The ledger is read only when somebody asks for an output."""
    assert run(project) == "0 made; word completed True"
    shutil.rmtree(project / ".headway/stamps")
    assert run(project) == "0 made; word completed False"


CHANGES: dict[str, tuple[Callable[[Path], object], str]] = {
    "a constant of a module": (lambda p: edit(p / "helper.py", "'word'", "'other'"), "2 made; other"),
    "a function": (lambda p: edit(p / "helper.py", "n + 1", "n + 2"), "1 made; word"),
    "a file under a pattern": (lambda p: (p / "data/b.txt").write_text("b"), "1 made; word"),
    "a source": (lambda p: (p / "data/a.txt").write_text("b"), "1 made; word"),
    "a missing output": (lambda p: (p / "out/list.txt").unlink(), "0 made; word completed False"),
    "an edited output": (lambda p: (p / "out/list.txt").write_text("mine"), "0 made; word refused"),
}


@pytest.mark.parametrize("name", CHANGES)
def test_whatever_changed_is_seen(project: Path, name: str) -> None:
    """Each of them is judged in full, and what it reaches is made."""
    change, said = CHANGES[name]
    change(project)
    assert run(project).startswith(said)


@pytest.mark.parametrize(
    ("environ", "said"),
    [({"STYLE": "bold"}, "3 made"), ({"N": "5"}, "1 made")],
    ids=["a declared variable", "an argument"],
)
def test_what_the_script_builds_otherwise_is_seen(project: Path, environ: dict[str, str], said: str) -> None:
    """The file is the same; what it comes to is not."""
    assert run(project, **environ).startswith(said)
    assert run(project, **environ).startswith("0 made")


def test_another_function_of_the_same_name_is_seen(project: Path) -> None:
    """Which of two definitions counts is decided while the script runs; the file alone does not tell."""
    loud = "if os.environ.get('LOUD'):\n    def word():\n        return helper.word().upper()\n"
    quiet = "else:\n    def word():\n        return helper.word()\nplan.artifact(produces='out/word.txt')(word)\n"
    start, end = SCRIPT.index("@plan.artifact"), SCRIPT.index('@plan.artifact(produces="out/list')
    (project / "plan.py").write_text(SCRIPT[:start] + loud + quiet + SCRIPT[end:])
    run(project)
    assert run(project).startswith("0 made; word")
    assert run(project, LOUD="1").startswith("2 made; WORD")
    assert run(project, LOUD="1").startswith("0 made; WORD")


def edit(path: Path, old: str, new: str) -> None:
    """Replace a part of a file."""
    path.write_text(path.read_text().replace(old, new))


def test_it_makes_no_difference_who_runs_the_code(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As a program or by the command line, in turns: one proposal, one stamp, no event."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "tasks.py").write_text("def make():\n    return 'made'\n")
    (tmp_path / "plan.py").write_text(
        "import tasks\nfrom headway import Plan\nplan = Plan('Turns', id='turns')\n"
        "plan.add('a', make=tasks.make, produces='a.txt')\n"
        "if __name__ == '__main__':\n    plan.run()\n"
    )
    ways = ([sys.executable, "plan.py"], [sys.executable, "-m", "headway", "run", "--plan", "plan.py"])
    subprocess.run(ways[0], check=True, capture_output=True)
    ledger = tmp_path / ".headway/plans/turns/ledger.jsonl"
    before = ledger.read_bytes()
    for way in (*ways, *ways):
        subprocess.run(way, check=True, capture_output=True)
    assert ledger.read_bytes() == before
    assert len(os.listdir(tmp_path / ".headway/stamps")) == 1


LOGGED = """\
import os
from headway import Plan

with open("executed.txt", "a") as log:
    log.write("once\\n")
plan = Plan("Know it", id="known", env=["STYLE"], environ={"STYLE": "plain"})

@plan.artifact(produces="out.txt", sources=["data.txt"])
def out(ctx):
    return "made"
"""


@pytest.fixture
def logged(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project whose plan keeps count of its executions, and which is known to have nothing to do."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("STYLE", "plain")
    monkeypatch.delenv("GITHUB_ACTIONS", raising=False)
    (tmp_path / "headway.toml").touch()
    (tmp_path / "data.txt").touch()
    (tmp_path / "plan.py").write_text(LOGGED)
    assert "1 made" in command().stdout
    assert command().stdout == "Nothing to do: 1 artifact is up to date.\n"
    return tmp_path


def command(*words: str) -> subprocess.CompletedProcess[str]:
    """`headway run --plan plan.py` as a process of its own."""
    return subprocess.run(
        [sys.executable, "-m", "headway", "run", "--plan", "plan.py", *words],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "PYTHONDONTWRITEBYTECODE": "1"},
    )


def takes_the_engine(*words: str) -> bool:
    """Whether the command line loads what makes plans."""
    asked = ["run", "--plan", "plan.py", *words]
    code = (
        f"import sys; from headway.surfaces.cli.main import main; main({asked}); print('headway.work' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return done.stdout.splitlines()[-1] == "True"


def test_the_command_line_says_by_the_stamp_what_the_full_judgement_says(logged: Path) -> None:
    """Text and JSON, on both streams; then the engine is not even loaded."""
    for words in ((), ("--json",), ("-j", "2", "--yes", "--fail-fast")):
        assert not takes_the_engine(*words)
        by_stamp = command(*words)
        shutil.rmtree(logged / ".headway/stamps")
        assert takes_the_engine(*words)
        shutil.rmtree(logged / ".headway/stamps")
        in_full = command(*words)
        assert (by_stamp.returncode, by_stamp.stdout, by_stamp.stderr) == (0, in_full.stdout, in_full.stderr)


@pytest.mark.parametrize("words", [("-n",), ("-v",), ("--fresh",), ("--limit", "1"), ("--set", "a=b"), ("out",)])
def test_whoever_asks_for_more_is_answered_in_full(logged: Path, words: tuple[str, ...]) -> None:
    """What else there may be to say, only the ledger knows."""
    assert takes_the_engine(*words)


def test_a_plan_is_executed_once_whether_or_not_it_is_at_rest(logged: Path) -> None:
    """What it does besides, it does once a run."""

    def executed() -> int:
        return len((logged / "executed.txt").read_text().splitlines())

    before = executed()
    assert "Nothing to do" in command().stdout
    assert executed() == before + 1
    (logged / "data.txt").write_text("other")
    assert "1 made" in command().stdout
    assert executed() == before + 2
    assert "1 made" in command("--force").stdout
    assert executed() == before + 3


def test_the_command_line_goes_by_its_own_variables(logged: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Those that a program gives its plan are that program's."""
    monkeypatch.setenv("STYLE", "bold")
    assert "1 made" in command().stdout


def test_a_step_summary_is_written_also_where_nothing_is_to_do(logged: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """On GitHub it is what people look at."""
    monkeypatch.setenv("GITHUB_ACTIONS", "true")
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(logged / "summary.md"))
    assert "Nothing to do" in command().stdout
    assert "Nothing to do: 1 artifact is up to date." in (logged / "summary.md").read_text()
