"""The benchmarks run. What they measure is no test's business."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from benchmarks.__main__ import BENCHMARKS, main
from benchmarks.measure import Row, table


@pytest.mark.parametrize("name", BENCHMARKS)
def test_a_benchmark_runs_at_a_tiny_size(name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Each benchmark gives rows, which are printed and kept as JSON, and leaves nothing else behind."""
    assert main([name, "--size", "0.0001", "--repeat", "1", "--folder", str(tmp_path)]) == 0
    rows = json.loads((tmp_path / "bench.json").read_text(encoding="utf-8"))["rows"]
    assert rows
    assert all(row["value"] > 0 and row["name"].startswith(f"{name}: ") for row in rows)
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
