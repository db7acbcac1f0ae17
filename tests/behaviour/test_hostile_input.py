"""Input that is out to do harm, and surroundings that are odd: refused or harmless, never silently wrong."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from headway import Plan, RunFailed
from headway.surfaces.cli.main import main

HEADWAY = [sys.executable, "-m", "headway"]


@pytest.fixture(autouse=True)
def in_a_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every project here is a folder of its own."""
    monkeypatch.chdir(tmp_path)


@pytest.mark.parametrize("place", ["{vars.x}", '"{vars.x}"', "'{vars.x}'", '"<{vars.x}>"', "'<'{vars.x}'>'"])
@pytest.mark.parametrize(
    "value", ["a b", "'; touch INJECTED; '", '"; touch INJECTED; "', "$(touch INJECTED)", "`touch INJECTED`"]
)
def test_a_value_is_a_word_wherever_its_placeholder_stands(place: str, value: str) -> None:
    """Bare, in single or in double quotes: what is substituted is text and never shell."""
    plan = Plan("Quote", id="quote", vars={"x": value})
    plan.add("a", produces="a.txt", run=f"printf %s {place} > {{output}}")
    plan.run()
    assert value in Path("a.txt").read_text()
    assert not Path("INJECTED").exists()


def test_a_text_that_was_tampered_with_is_not_believed() -> None:
    """What dependents read of a text artifact is what was recorded."""
    plan = Plan("Text", id="text")
    plan.add("t", run="echo good")
    plan.add("u", requires="t", produces="u.txt", run="cat {inputs.t} > {output}")
    plan.run()
    for text in Path(".headway/texts").iterdir():
        text.chmod(0o644)
        text.write_text("EVIL")
    plan.run(rerun=["u"])
    assert Path("u.txt").read_text() == "good\n"


def test_a_text_beyond_all_bounds_fails_its_artifact() -> None:
    """An artifact without files is kept in memory, so it has a limit, and the error says what to do."""
    plan = Plan("Long", id="long")
    plan.add("a", run="head -c 80000000 /dev/zero")
    with pytest.raises(RunFailed, match="produces:"):
        plan.run()


def test_a_function_that_ends_the_process_does_not_look_like_success() -> None:
    """os._exit(0) is told on stderr, by artifact, and the exit code is not 0."""
    Path("tasks.py").write_text("import os\ndef leave():\n    os._exit(0)\n")
    Path("headway.yaml").write_text("id: e\ngoal: g\nartifacts:\n  gone: {produces: x.txt, make: 'tasks:leave'}\n")
    done = subprocess.run([*HEADWAY, "run"], capture_output=True, text=True, check=False)
    assert done.returncode != 0
    assert "gone" in done.stderr
    assert "headway run" in done.stderr


def test_a_reader_that_leaves_does_not_stop_the_run() -> None:
    """`headway run | head -1` makes everything all the same."""
    artifacts = "".join(f"  a{i}: {{produces: a{i}.txt, run: 'echo {i} > {{output}}'}}\n" for i in range(40))
    Path("headway.yaml").write_text(f"id: pipe\ngoal: g\nartifacts:\n{artifacts}")
    command = " ".join([*HEADWAY, "run"])
    subprocess.run(["/bin/sh", "-c", f"{command} | head -n 1"], check=True, capture_output=True)
    assert len(list(Path().glob("a*.txt"))) == 40


def test_exit_codes_are_seen_when_the_caller_ignores_its_children() -> None:
    """With SIGCHLD ignored, a failing command still fails."""
    Path("headway.yaml").write_text(
        "id: c\ngoal: g\nartifacts:\n  a: {produces: a.txt, run: 'echo x > {output}; exit 3'}\n"
    )
    program = (
        "import os,signal,sys; signal.signal(signal.SIGCHLD, signal.SIG_IGN); os.execv(sys.executable, sys.argv[1:])"
    )
    done = subprocess.run([sys.executable, "-c", program, *HEADWAY, "run"], capture_output=True, text=True, check=False)
    assert (done.returncode, "exit code 3" in done.stdout) == (1, True)


def test_names_that_are_not_text_are_the_problem_of_one_artifact() -> None:
    """A source whose name is not UTF-8 is named and refused; the rest is made."""
    Path("in").mkdir()
    (Path("in") / "bad\udcff.txt").write_text("x")
    plan = Plan("Bytes", id="bytes")
    plan.add("a", sources=["in/*"], produces="a.txt", run="echo a > {output}")
    plan.add("b", produces="b.txt", run="echo b > {output}")
    result = plan.run(check=False)
    assert (result.made, "not UTF-8" in result.failed["a"]) == (["b"], True)


def test_the_ledger_of_another_plan_is_not_taken_for_ones_own() -> None:
    """A copied plan folder is refused, by reading verbs and by doctor."""
    assert main(["init"]) == 0
    assert main(["plans", "new"]) == 0
    plans = Path(".headway/plans")
    shutil.copytree(next(plans.iterdir()), plans / "copy")
    assert main(["plans", "show", "copy"]) == 4
    assert main(["doctor", "--plan-id", "copy"]) == 4


@pytest.mark.parametrize(
    "words", [["-j", "0"], ["-j", "-1"], ["--limit", "0"], ["--max-time", "nan"], ["--max-time", "-1"]]
)
def test_numbers_that_make_no_sense_are_refused(words: list[str]) -> None:
    """Exit 2, before anything is done."""
    assert main(["init"]) == 0
    assert main(["run", *words]) == 2
    assert not Path("build").exists()


def test_one_word_about_edits_is_enough() -> None:
    """Accepting and discarding at once is refused."""
    assert main(["init"]) == 0
    assert main(["run", "--accept-edits", "--discard-edits"]) == 2
