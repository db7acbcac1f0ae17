"""Making things: one source changed, everything for the first time, a durable step, and what that leaves on disk."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from itertools import count as counting
from pathlib import Path
from statistics import median

from benchmarks import projects
from benchmarks.layers import Layers, change
from benchmarks.measure import Row, Setting, Spent, child, medians
from benchmarks.projects import RUN, Ready

FULL = 10_000
STEPS, STEP_BYTES = 800, 300
MEGABYTE = 1_000_000
STEP_PLAN = """import json, os, sys, time
from headway import Plan

STEPS, SIZE = {steps}, {size}
plan = Plan("Take steps", id="steps")


def bare(number):
    begin = time.perf_counter()
    fd = os.open("bare", os.O_RDWR | os.O_CREAT | os.O_TRUNC)
    sync = getattr(os, "fdatasync", os.fsync)
    for n in range(number):
        os.pwrite(fd, b"x" * SIZE, n * SIZE)
        sync(fd)
    os.close(fd)
    return (time.perf_counter() - begin) / number


@plan.artifact(produces="out.json")
def walk(ctx):
    before = bare(STEPS // 2)
    begin = time.perf_counter()
    for number in range(STEPS):
        ctx.step(f"step {{number}}", lambda: f"{{number:06}}" + "x" * (SIZE - 6))
    spent = (time.perf_counter() - begin) / STEPS
    return {{"step": spent, "bare": (before + bare(STEPS // 2)) / 2}}


plan.run()
"""


def one_change(setting: Setting) -> list[Row]:
    """One source changed: what it reaches is made again, against doit with the same Python functions."""
    count = setting.count(FULL, least=60)
    layers = Layers(count)
    versions = counting(1)
    forms = {form: projects.made(setting, form, count) for form in ("headway.json", "plan.py")}
    peer = projects.ready(setting, "doit", count)

    def ours(form: str) -> Callable[[], float]:
        return lambda: _changed(
            forms[form], layers, next(versions), lambda: child(projects.words_for(form), forms[form])
        )

    actions = [ours(form) for form in forms]
    if isinstance(peer, Ready):
        actions.append(lambda: _changed(peer.folder, layers, next(versions), peer.run))
    spent = medians(setting.repeat, *actions)
    what = f"{layers.cone} of {layers.total:,}"
    theirs = spent[-1] if isinstance(peer, Ready) else None
    doit = Row(f"change: doit, {what}", theirs * 1e3 if theirs else None, "ms" if theirs else "", note=_note(peer))
    rows = [doit]
    for form, mine in zip(forms, spent, strict=False):
        ratio = mine / theirs if theirs else None
        ok = None if ratio is None or count < FULL else ratio <= 0.5
        rows.append(
            Row(f"change: {form}, {what}", mine * 1e3, "ms", ratio, "doit" if theirs else "", "≤ 0.5 × doit", ok)
        )
    return rows


def _note(peer: Ready | Row) -> str:
    return peer.note if isinstance(peer, Row) else ""


def _changed(folder: Path, layers: Layers, version: int, run: Callable[[], Spent]) -> float:
    """Change one source; how long the run takes; what it was to reach has changed, and nothing else."""
    number = version * 7 % layers.width
    before = _outputs(folder)
    change(folder, number, version)
    spent = run().wall
    after = _outputs(folder)
    reached = sum(before[path] != text for path, text in after.items())
    assert reached == layers.cone, f"{reached} artifacts were made again, not {layers.cone}"
    return spent


def _outputs(folder: Path) -> dict[Path, bytes]:
    return {path: path.read_bytes() for path in (folder / "out").rglob("*.txt")}


def cold(setting: Setting) -> list[Row]:
    """Everything for the first time, against a bare loop that reads and writes the same files with the same code."""
    count = setting.count(FULL, least=60)
    total = Layers(count).total
    ways = {
        "headway.json, -j 1": ("headway.json", (*RUN, "-j", "1")),
        "headway.json": ("headway.json", RUN),
        "plan.py, -j 1": ("plan.py", (*projects.PYTHON_RUN, "1")),
        "plan.py": ("plan.py", projects.PYTHON_RUN),
    }
    bare: list[Spent] = []
    spent: dict[str, list[Spent]] = {name: [] for name in ways}
    for _ in range(min(setting.repeat, 3) if setting.size >= 1 else 1):
        folder = setting.fresh("bare")
        Layers(count).bare(folder)
        bare.append(child((sys.executable, "loop.py"), folder))
        wanted = _outputs_by_name(folder)
        for name, (form, words) in ways.items():
            folder = projects.written(setting, form, count)
            spent[name].append(child(words, folder))
            assert _outputs_by_name(folder) == wanted, "both made the same"
    loop_wall, loop_cpu = median(s.wall for s in bare), median(s.cpu for s in bare)
    rows = [Row(f"cold: a bare loop, {total:,}", loop_wall / total * 1e6, "µs each")]
    for name, found in spent.items():
        wall, cpu = median(s.wall for s in found), median(s.cpu for s in found)
        ratio, own = wall / loop_wall, (cpu - loop_cpu) / total * 1e6
        rows += [
            Row(f"cold: {name}, {total:,}", wall / total * 1e6, "µs each", ratio, "a bare loop", "≤ 2 ×", ratio <= 2),
            Row(f"cold: {name}, own CPU", own, "µs each", cpu / loop_cpu, "a bare loop's CPU", "≤ 120 µs", own <= 120),
        ]
    return rows


def _outputs_by_name(folder: Path) -> dict[str, bytes]:
    return {path.name: data for path, data in _outputs(folder).items()}


def step(setting: Setting) -> list[Row]:
    """Parts of a function made durable one by one, against a bare write and sync of as many bytes."""
    steps = setting.count(STEPS)
    own, bare, sizes = [], [], []
    for _ in range(setting.repeat):
        folder = setting.fresh("steps")
        (folder / "headway.toml").write_text("", encoding="utf-8")
        (folder / "plan.py").write_text(STEP_PLAN.format(steps=steps, size=STEP_BYTES), encoding="utf-8")
        child([sys.executable, "plan.py"], folder)
        said = json.loads((folder / "out.json").read_bytes())
        own.append(said["step"])
        bare.append(said["bare"])
        sizes.append(projects.state(folder))
    mine, theirs, size = median(own), median(bare), median(sizes)
    bar = f"< {steps * MEGABYTE / STEPS:,.0f}"
    return [
        Row("step: bare pwrite + fdatasync", theirs * 1e6, "µs"),
        Row(
            "step: ctx.step, 300 bytes",
            mine * 1e6,
            "µs",
            mine / theirs,
            "bare pwrite + fdatasync",
            "≤ 2 ×",
            mine <= 2 * theirs,
        ),
        Row(f"step: all state after {steps} of them", size, "bytes", bar=bar, ok=size < steps * MEGABYTE / STEPS),
    ]


def state(setting: Setting) -> list[Row]:
    """Bytes that a real run leaves in its ledger, and what changes add to all of .headway."""
    count = setting.count(FULL, least=60)
    layers = Layers(count)
    folder = projects.made(setting, "headway.json", count)
    kinds: dict[str, int] = {}
    with open(folder / ".headway" / "plans" / "bench" / "ledger.jsonl", "rb") as ledger:
        for line in ledger:
            kind = line.split(b'"type":"', 1)[1].split(b'"', 1)[0].decode()
            kinds[kind] = kinds.get(kind, 0) + len(line)
    apart = sum(kinds.get(kind, 0) for kind in ("plan_created", "snapshot"))
    work, whole = (sum(kinds.values()) - apart) / layers.total, sum(kinds.values()) / layers.total
    rows = [
        Row("state: ledger, an artifact made", work, "bytes", bar="≤ 600", ok=work <= 600),
        Row("state: ledger, with structure and snapshots", whole, "bytes", bar="≤ 1,500", ok=whole <= 1500),
        Row("state: all of .headway, per artifact", projects.state(folder) / layers.total, "bytes"),
    ]
    times = setting.count(100 if setting.large else 12, least=2)
    before = projects.state(folder)
    for version in range(1, times + 1):
        change(folder, version * 7 % layers.width, version)
        child(RUN, folder)
    added = (projects.state(folder) - before) / times * 100
    name = f"state: 100 changes of {layers.cone} of {layers.total:,} add" + ("" if times == 100 else f" (from {times})")
    rows.append(Row(name, added / MEGABYTE, "MB", bar="< 70 MB", ok=added < 70 * MEGABYTE if count >= FULL else None))
    return rows
