"""The benchmarks run. What they measure is no test's business."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path

import pytest

from benchmarks.__main__ import BENCHMARKS, main
from benchmarks.layers import Layers
from benchmarks.measure import Row, table


@pytest.mark.parametrize("name", BENCHMARKS)
def test_a_benchmark_runs_at_a_tiny_size(name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Each benchmark gives rows, which are printed and kept as JSON, and leaves nothing else behind."""
    words = [name, "--size", "0.0001", "--repeat", "1", "--no-peers", "--large", "--folder", str(tmp_path)]
    assert main(words) == 0
    rows = json.loads((tmp_path / "bench.json").read_text(encoding="utf-8"))["rows"]
    assert rows
    assert all(row["name"].startswith(f"{name}: ") for row in rows)
    assert all(row["note"] if row["value"] is None else row["value"] >= 0 or "own CPU" in row["name"] for row in rows)
    assert all(row["name"] in capsys.readouterr().out for row in rows[:1])
    assert [path.name for path in tmp_path.iterdir()] == ["bench.json"]


def test_an_unknown_benchmark_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A name that does not exist is a usage error that lists those that do, and nothing is measured."""
    with pytest.raises(SystemExit, match="2"):
        main(["apend", "--folder", str(tmp_path)])
    assert "append" in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


def test_a_missed_bar_is_shown_and_no_failure() -> None:
    """A figure behind its bar stands out in the table; deciding what to do about it is for people."""
    shown = table([Row("a: x", 3.0, "ms", 1.5, "bare", "≤ 2 ms", False), Row("a: y", 1.0, "ms", bar="≤ 2 ms", ok=True)])
    assert [line.split()[-1] for line in shown.splitlines()[1:]] == ["MISSED", "ok"]


def test_what_cannot_be_measured_says_why() -> None:
    """A row of a tool that is not there has no figure, and its reason in its place."""
    shown = table([Row("noop: make, 60", None, note="skipped: not installed")])
    assert shown.splitlines()[1].split("  ", 1)[1].strip() == "skipped: not installed"


@pytest.mark.parametrize("count", [60, 820, 10_000])
def test_the_layered_graph_reaches_what_it_says(count: int) -> None:
    """The number of artifacts that one source reaches is that of a walk over the graph: 440 where layers are wide."""
    layers = Layers(count)
    reached = {"src/s0.txt"}
    for artifact in layers.artifacts():
        if reached.intersection(artifact.reads):
            reached.add(artifact.output)
    assert len(reached) - 1 == layers.cone
    assert layers.cone == 440 or count < 820


@pytest.mark.skipif(shutil.which("make") is None, reason="no make here")
def test_make_finds_nothing_to_do_in_what_was_written_for_it(tmp_path: Path) -> None:
    """The files written for make are up to date for it, so a measured no-op runs no command."""
    Layers(60).makefile(tmp_path)
    assert subprocess.run(["make", "-q"], cwd=tmp_path, check=False).returncode == 0
