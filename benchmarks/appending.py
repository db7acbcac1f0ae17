"""What it costs to record that something was done: time against bare writes and syncs, and bytes."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import count
from pathlib import Path
from typing import Any

from benchmarks import samples
from benchmarks.measure import Row, Setting, medians
from headway.core.commands import CompleteArtifact, StartArtifacts
from headway.core.plan import ArtifactSpec
from headway.disk import RealDisk
from headway.ledger.file import FileLedger
from headway.ledger.writer import Writer

AT_ONCE = 64
AGAINST = "bare pwrite + fdatasync"
LINE = 600
"""Bytes of a line in the bare loop: about what a completion is."""


class CountingDisk(RealDisk):
    """The real disk, counting syncs."""

    def __init__(self) -> None:
        self.syncs = 0

    def sync(self, fd: int) -> None:
        self.syncs += 1
        super().sync(fd)


class Bench:
    """A ledger in which every artifact is claimed, so that completions can be recorded one after the other."""

    def __init__(self, folder: Path, artifacts: int) -> None:
        self.disk = CountingDisk()
        self.writer = Writer(FileLedger(str(folder), disk=self.disk))
        specs = samples.flat(artifacts)
        self.writer.execute(samples.create(specs), by="bench")
        first, rest = specs[: samples.FAN_IN], specs[samples.FAN_IN :]
        for command in self._claim(first):
            self.record(command)
        self._waiting = iter(self._claim(rest))

    def next(self, number: int) -> list[CompleteArtifact]:
        """The next completions to record."""
        return [next(self._waiting) for _ in range(number)]

    def record(self, command: CompleteArtifact) -> None:
        """Record one, and come back when that is durable."""
        self.writer.execute(command, by="bench")

    async def record_together(self, commands: list[CompleteArtifact]) -> None:
        """Record many, awaited at once."""
        await asyncio.gather(*(self.writer.aexecute(command, by="bench") for command in commands))

    def _claim(self, specs: Sequence[ArtifactSpec]) -> list[CompleteArtifact]:
        started = self.writer.execute(StartArtifacts(ids=tuple(s.id for s in specs), run="r"), by="bench")
        return [samples.complete(spec, started[-1].seq) for spec in specs]


def append(setting: Setting) -> list[Row]:
    """Completions recorded alone, and 64 awaited at once, against bare pwrite and fdatasync on the same disk."""
    alone, rounds = setting.count(200), setting.count(20, least=1)
    bench = Bench(setting.fresh("append"), setting.repeat * (alone + 2 * AT_ONCE * rounds))
    raw = _bare(setting.fresh("raw") / "file")
    loop = asyncio.new_event_loop()
    syncs: list[float] = []

    def one_by_one() -> float:
        before = bench.disk.syncs
        spent = _each(bench.record, bench.next(alone))
        syncs.append((bench.disk.syncs - before) / alone)
        return spent

    def in_a_loop() -> float:
        work = [bench.next(AT_ONCE) for _ in range(rounds)]
        return _each(lambda items: loop.run_until_complete(bench.record_together(items)), work) / AT_ONCE

    def in_threads() -> float:
        work = [bench.next(AT_ONCE) for _ in range(rounds)]
        return _each(lambda items: list(pool.map(bench.record, items)), work) / AT_ONCE

    with ThreadPoolExecutor(AT_ONCE) as pool:
        bare, single, tasks, threads = medians(
            setting.repeat, lambda: _each(raw, range(alone)), one_by_one, in_a_loop, in_threads
        )
    loop.close()
    bench.writer.close()
    return [
        Row("append: bare pwrite + fdatasync", bare * 1e6, "µs"),
        Row("append: alone", single * 1e6, "µs", single / bare, AGAINST),
        Row("append: syncs, alone", max(syncs), "each", bar="1 sync", ok=max(syncs) <= 1.01),
        Row(
            "append: 64 awaited in one event loop", tasks * 1e6, "µs", tasks / bare, AGAINST, "≤ 30 µs", tasks <= 30e-6
        ),
        Row("append: 64 threads waiting", threads * 1e6, "µs", threads / bare, AGAINST),
    ]


def _bare(path: Path) -> Callable[[object], None]:
    fd = os.open(path, os.O_RDWR | os.O_CREAT)
    sync = getattr(os, "fdatasync", os.fsync)
    data = b"x" * (LINE - 1) + b"\n"
    offsets = count(0, LINE)

    def write(_: object) -> None:
        os.pwrite(fd, data, next(offsets))
        sync(fd)

    return write


def _each(action: Callable[[Any], object], items: Sequence[Any]) -> float:
    begin = time.perf_counter()
    for item in items:
        action(item)
    return (time.perf_counter() - begin) / len(items)


def size(setting: Setting) -> list[Row]:
    """Bytes in the ledger of a plan that was made once, wave by wave, eight at a time."""
    artifacts = setting.count(10_000, least=40)
    folder = setting.fresh("size")
    writer = Writer(FileLedger(str(folder)))
    specs = samples.specs(artifacts)
    writer.execute(samples.create(specs), by="bench")
    for batch in samples.batches(specs, 8):
        token = writer.execute(StartArtifacts(ids=tuple(s.id for s in batch), run="r"), by="bench", wait=False)[-1].seq
        for spec in batch:
            writer.execute(samples.complete(spec, token), by="bench", wait=False)
    writer.close()
    by_type: dict[bytes, list[int]] = {}
    for line in (folder / "ledger.jsonl").read_bytes().splitlines(keepends=True):
        by_type.setdefault(line.split(b'"type":"', 1)[1].split(b'"', 1)[0], []).append(len(line))
    work = [n for kind in (b"artifact_started", b"artifact_completed") for n in by_type[kind]]
    total = sum(map(sum, by_type.values()))
    snapshots, structure = sum(by_type.get(b"snapshot", [])), sum(by_type[b"plan_created"])
    made, whole = sum(work) / artifacts, total / artifacts
    return [
        Row("size: a completion", sum(by_type[b"artifact_completed"]) / artifacts, "bytes"),
        Row("size: an event of the run", sum(work) / len(work), "bytes"),
        Row("size: an artifact made", made, "bytes", bar="≤ 600", ok=made <= 600),
        Row("size: its place in the plan", structure / artifacts, "bytes"),
        Row("size: its share of snapshots", snapshots / artifacts, "bytes"),
        Row("size: all of it, per artifact", whole, "bytes", bar="≤ 1,500", ok=whole <= 1500),
    ]
