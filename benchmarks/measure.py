"""Clocks, rows and tables of the benchmarks. Knows nothing of what is measured."""

from __future__ import annotations

import gc
import os
import statistics
import subprocess
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple


class Row(NamedTuple):
    """One figure. `ratio` is how many times what `against` names it is; `bar` is what we promise, if we do.

    Without a value the row says in `note` why there is none.
    """

    name: str
    value: float | None
    unit: str = ""
    ratio: float | None = None
    against: str = ""
    bar: str = ""
    ok: bool | None = None
    note: str = ""


class Setting(NamedTuple):
    """Where and how much: `size` scales every count, so that a test can try all of it in a moment."""

    folder: Path
    size: float = 1.0
    repeat: int = 5
    peers: Path | None = None
    """Where other tools are installed; None measures without them."""
    large: bool = False
    """Whether to measure what takes minutes."""

    def count(self, number: int, least: int = 4) -> int:
        """A count at this size."""
        return max(least, round(number * self.size))

    def fresh(self, name: str) -> Path:
        """A folder that nobody used before."""
        path = self.folder / f"{name}-{len(list(self.folder.iterdir()))}"
        path.mkdir()
        return path


Benchmark = Callable[[Setting], list[Row]]


SLOWING = ("PYTHONDONTWRITEBYTECODE", "PYTHONUNBUFFERED", "PYTHONDEVMODE", "PYTHONPROFILEIMPORTTIME")
"""Variables of whoever measures that make every Python slower than it is for whoever uses it."""


def plain_environment() -> dict[str, str]:
    """The environment without what would compile every module anew, or write every line alone."""
    return {name: value for name, value in os.environ.items() if name not in SLOWING}


class Spent(NamedTuple):
    """What a process cost: seconds by the clock and of the processor, its children included."""

    wall: float
    cpu: float


def child(words: Sequence[str], folder: Path) -> Spent:
    """Run a command to its end and say what it cost; it must succeed."""
    begin = time.perf_counter()
    process = subprocess.Popen(words, cwd=folder, stdout=subprocess.DEVNULL, env=plain_environment())
    _, status, usage = os.wait4(process.pid, 0)
    wall = time.perf_counter() - begin
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise subprocess.CalledProcessError(process.returncode, words)
    return Spent(wall, usage.ru_utime + usage.ru_stime)


def seconds(action: Callable[[], object]) -> float:
    """How long one call takes, with what came before swept away."""
    gc.collect()
    begin = time.perf_counter()
    action()
    return time.perf_counter() - begin


def median(repeat: int, action: Callable[[], float]) -> float:
    """The median of several measurements."""
    return statistics.median(action() for _ in range(repeat))


def medians(repeat: int, *actions: Callable[[], float]) -> list[float]:
    """Medians of several things measured in turn, so that what slows the machine slows all of them."""
    rounds = [[action() for action in actions] for _ in range(repeat)]
    return [statistics.median(column) for column in zip(*rounds, strict=True)]


def table(rows: Sequence[Row]) -> str:
    """The rows for people."""
    lines = [("", "value", "ratio", "against", "bar", "")]
    for row in rows:
        value = row.note if row.value is None else f"{row.value:,.4g} {row.unit}"
        ratio = "" if row.ratio is None else f"{row.ratio:.3g} ×"
        verdict = "" if row.ok is None else "ok" if row.ok else "MISSED"
        lines.append((row.name, value, ratio, row.against, row.bar, verdict))
    widths = [max(len(line[i]) for line in lines) for i in range(6)]
    return "\n".join(_line(line, widths) for line in lines)


def _line(cells: Sequence[str], widths: Sequence[int]) -> str:
    numbers = {1, 2}
    padded = [c.rjust(w) if i in numbers else c.ljust(w) for i, (c, w) in enumerate(zip(cells, widths, strict=True))]
    return "  ".join(padded).rstrip()
