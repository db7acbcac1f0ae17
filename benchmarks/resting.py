"""Nothing to do: what people meet most. Against make, ninja and doit on the same graph, and as plans grow."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path

from benchmarks import projects
from benchmarks.measure import Row, Setting, Spent, child, medians, plain_environment
from benchmarks.projects import RUN, Ready

FULL = 10_000
GROWTH = 12
GIGABYTE = 1 << 30
PEAK = """
import json, resource, subprocess, sys
subprocess.run(sys.argv[1:], check=True, stdout=subprocess.DEVNULL)
used = resource.getrusage(resource.RUSAGE_CHILDREN)
print(json.dumps(used.ru_maxrss * (1 if sys.platform == "darwin" else 1024)))
"""
"""Runs a command and prints its peak of memory. A process of its own, since a peak is inherited from who starts it."""


def noop(setting: Setting) -> list[Row]:
    """A plan of which everything is fresh: as JSON, as YAML, as Python, and judged in full."""
    count = setting.count(FULL, least=60)
    found = {form: projects.made(setting, form, count) for form in projects.FORMS}
    others = {name: projects.ready(setting, name, count) for name in projects.PEERS}
    there = {name: other for name, other in others.items() if isinstance(other, Ready)}

    def judged() -> float:
        shutil.rmtree(found["headway.json"] / ".headway" / "stamps", ignore_errors=True)
        return child(RUN, found["headway.json"]).wall

    peers = {name: partial(_wall, peer) for name, peer in there.items()}
    ours = {form: partial(_run, projects.words_for(form), folder) for form, folder in found.items()}
    python = ("plan.py", "plan.py from the command line")
    quick = {name: action for name, action in {**peers, **ours}.items() if name not in ("doit", *python)}
    slow: dict[str, Callable[[], float]] = {
        **{name: action for name, action in {**peers, **ours}.items() if name not in quick},
        python[1]: partial(_run, (*RUN, "--plan", "plan.py"), found["plan.py"]),
        "judged in full": judged,
    }
    spent = _medians(setting.repeat, quick) | _medians(min(setting.repeat, 3), slow)
    rows = []
    for name, other in others.items():
        if isinstance(other, Ready):
            rows.append(Row(f"noop: {name}, {count:,}", spent[name] * 1e3, "ms"))
        else:
            rows.append(other._replace(name=f"noop: {name}, {count:,}"))
    for name, against, most in (
        ("headway.json", "make", 1.0),
        ("headway.json", "ninja", None),
        ("headway.yaml", "make", 1.0),
        ("headway.yaml", "ninja", None),
        ("judged in full", "doit", None),
        (python[0], "doit", 0.25),
        (python[1], "doit", 0.25),
    ):
        ratio = spent[name] / spent[against] if against in spent else None
        ok = None if ratio is None or most is None or count < FULL else ratio <= most
        bar = f"≤ {most:g} × {against}" if most else ""
        shown = against if ratio is not None else ""
        rows.append(Row(f"noop: {name}, {count:,}", spent[name] * 1e3, "ms", ratio, shown, bar, ok))
    return rows


def _medians(repeat: int, actions: Mapping[str, Callable[[], float]]) -> dict[str, float]:
    return dict(zip(actions, medians(repeat, *actions.values()), strict=True))


def growth(setting: Setting) -> list[Row]:
    """Ten times the artifacts, what that takes of memory, and many no-ops that leave nothing behind."""
    times = setting.count(1_000)
    small = projects.made(setting, "headway.json", setting.count(1_000, least=60))
    before = _contents(small)
    for _ in range(times):
        child(RUN, small)
    added = projects.state(small) - sum(map(len, before.values()))
    same = _contents(small) == before
    rows = [Row(f"growth: bytes added by {times:,} no-ops", added, "bytes", bar="none", ok=added == 0 and same)]
    if not setting.large:
        return [*rows, Row("growth: 100,000 artifacts", None, note="skipped: --large measures it")]
    return rows + _tenfold(setting)


def _tenfold(setting: Setting) -> list[Row]:
    few, many = setting.count(FULL, least=60), setting.count(10 * FULL, least=600)
    less = projects.made(setting, "headway.json", few)
    more = projects.written(setting, "headway.json", many)
    peak = peak_of(more)
    for _ in range(2):
        child(RUN, more)

    def judged(folder: Path) -> float:
        shutil.rmtree(folder / ".headway" / "stamps", ignore_errors=True)
        return child(RUN, folder).wall

    one, ten, slow_one, slow_ten = medians(
        setting.repeat,
        partial(_run, RUN, less),
        partial(_run, RUN, more),
        partial(judged, less),
        partial(judged, more),
    )
    shutil.rmtree(more / ".headway" / "stamps")
    judging = peak_of(more)
    judge_bar = many >= 10 * FULL
    return [
        Row(f"growth: no-op, {few:,}", one * 1e3, "ms"),
        Row(f"growth: no-op, {many:,}", ten * 1e3, "ms", ten / one, "a tenth of it", "≤ 12 ×", ten / one <= GROWTH),
        Row(
            f"growth: judged in full, {many:,}",
            slow_ten * 1e3,
            "ms",
            slow_ten / slow_one,
            "a tenth of it",
            "≤ 12 ×",
            slow_ten / slow_one <= GROWTH,
        ),
        memory(f"growth: memory, cold run of {many:,}", peak, judge_bar),
        memory(f"growth: memory, judging {many:,} in full", judging, judge_bar),
    ]


def memory(name: str, peak: int, full: bool) -> Row:
    """A peak against what we promise, which is about the full size."""
    return Row(name, peak / (1 << 20), "MiB", bar="< 1 GiB", ok=peak < GIGABYTE if full else None)


def peak_of(folder: Path) -> int:
    """The most memory that a run there takes."""
    words = [sys.executable, "-c", PEAK, *RUN]
    found = subprocess.run(words, cwd=folder, check=True, capture_output=True, text=True, env=plain_environment())
    return int(json.loads(found.stdout))


def _wall(peer: Ready) -> float:
    return peer.run().wall


def _run(words: tuple[str, ...], folder: Path) -> float:
    spent: Spent = child(words, folder)
    return spent.wall


def _contents(folder: Path) -> dict[str, bytes]:
    return {str(path): path.read_bytes() for path in (folder / ".headway").rglob("*") if path.is_file()}
