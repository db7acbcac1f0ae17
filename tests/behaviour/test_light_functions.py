"""Functions that take no time are made many in a row and recorded together; nobody sees a difference but the clock."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from headway import Plan
from headway.errors import HeadwayError
from headway.store import PlanStore

MANY = 200


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project of its own."""
    (tmp_path / "headway.toml").write_text("")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_they_are_recorded_several_in_a_line_and_all_of_them(here: Path) -> None:
    """Starts share lines; every completion has its own."""
    plan = Plan("Many", id="many")
    for n in range(MANY):
        plan.add(f"n{n}", make=lambda n=n: str(n), produces=f"out/{n}.txt")
    assert len(plan.run(jobs=2).made) == MANY
    kinds = [record.event.type for record in PlanStore(str(here / ".headway/plans")).folder("many").history()]
    assert kinds.count("artifact_completed") == MANY
    assert kinds.count("artifact_started") < MANY / 2
    assert {p.read_text() for p in (here / "out").iterdir()} == {str(n) for n in range(MANY)}


def test_what_was_quick_the_last_time_is_taken_for_quick(here: Path) -> None:
    """Nobody has to find out again: what is asked for anew is begun in one line."""
    plan = Plan("Many", id="many")
    for n in range(40):
        plan.add(f"n{n}", make=lambda n=n: str(n), produces=f"out/{n}.txt")
    plan.run(jobs=1)
    folder = PlanStore(str(here / ".headway/plans")).folder("many")
    before = len(list(folder.history()))
    assert len(plan.run(jobs=1, rerun_all=True).made) == 40
    kinds = [record.event.type for record in folder.history(before + 1)]
    assert kinds.count("artifact_completed") == 40
    assert kinds.count("artifact_started") == 1


def test_one_at_a_time_is_one_at_a_time() -> None:
    """However many wait, `-j 1` never runs two."""
    running: list[int] = []
    most: list[int] = []

    def make(n: int) -> str:
        running.append(n)
        most.append(len(running))
        time.sleep(0.001 if n % 40 else 0.03)
        running.remove(n)
        return str(n)

    plan = Plan("One by one", id="one")
    for n in range(120):
        plan.add(f"n{n}", make=make, args={"n": n})
    assert len(plan.run(jobs=1).made) == 120
    assert max(most) == 1


def test_one_that_turns_slow_holds_up_nobody_else() -> None:
    """The others that were taken with it are made by another worker."""
    ended: dict[int, float] = {}

    def make(n: int) -> str:
        if n == 50:
            time.sleep(1.5)
        ended[n] = time.monotonic()
        return str(n)

    plan = Plan("One is slow", id="slow")
    for n in range(MANY):
        plan.add(f"n{n}", make=make, args={"n": n})
    assert len(plan.run(jobs=2).made) == MANY
    assert all(at < ended[50] for n, at in ended.items() if n != 50)


def test_an_error_of_any_length_is_that_artifacts_failure() -> None:
    """What it says is cut; the rest of the run goes on."""
    plan = Plan("Words", id="words")
    for n in range(30):
        plan.add(f"n{n}", make=lambda n=n: str(n))

    @plan.artifact
    def wordy() -> str:
        raise ValueError("x" * 300_000)

    result = plan.run(check=False)
    assert len(result.made) == 30
    assert result.failed["wordy"].startswith("ValueError: xxx")
    assert len(result.failed["wordy"]) < 5000


SCRIPT = """\
import sys, time
from headway import Plan
plan = Plan("Killed at any time", id="killed")
def make(n, ctx):
    with open("calls", "a") as calls:
        calls.write(f"{n}\\n")
    return f"{n}:" + "".join(i.text() for i in ctx.inputs.values())[:40]
for n in range(600):
    plan.add(f"n{n}", make=make, args={"n": n}, requires=[f"n{n - 60}"] if n >= 60 else [], produces=f"out/{n}.txt")
plan.run(jobs=2)
"""


@pytest.mark.parametrize("after", [0.4, 0.6, 0.9])
def test_killed_at_any_moment_the_next_run_goes_on(here: Path, after: float) -> None:
    """What was recorded is not made again, and the outputs are those of a run that nobody disturbed."""
    (here / "plan.py").write_text(SCRIPT)
    process = subprocess.Popen([sys.executable, "plan.py"], cwd=here)
    time.sleep(after)
    os.kill(process.pid, signal.SIGKILL)
    process.wait()
    recorded: set[str] = set()
    folder = PlanStore(str(here / ".headway/plans")).folder("killed")
    try:
        recorded = {r.event.id for r in folder.history() if r.event.type == "artifact_completed"}  # type: ignore[attr-defined]  # by its type
    except HeadwayError:
        pass
    (here / "calls").write_text("")
    subprocess.run([sys.executable, "plan.py"], cwd=here, check=True)
    again = {f"n{line}" for line in (here / "calls").read_text().split()}
    assert again.isdisjoint(recorded)
    outputs = {p.name: p.read_text() for p in (here / "out").iterdir()}
    assert len(outputs) == 600
    assert all(text.startswith(f"{name[:-4]}:") for name, text in outputs.items())
