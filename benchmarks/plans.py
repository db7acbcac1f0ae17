"""What it costs to know a plan: reading its ledger, folding its events, laying out its graph."""

from __future__ import annotations

import json
from pathlib import Path

from benchmarks import samples
from benchmarks.measure import Row, Setting, medians, seconds
from headway.calm import calmly
from headway.core.commands import StartArtifacts
from headway.core.evolve import fold
from headway.core.graph import ArtifactGraph
from headway.core.state import State
from headway.ledger.file import FileLedger
from headway.ledger.writer import Writer

GROWTH = 12
"""What ten times as much may cost, in times: linear, and some for memory being further away."""


def load(setting: Setting) -> list[Row]:
    """A plan of 10,000 artifacts, new and all made, against json.loads of the bytes that have to be read."""
    artifacts = setting.count(10_000, least=40)
    rows = []
    for name, made in (("new", False), ("all made", True)):
        folder = _ledger(setting.fresh("load"), artifacts, made=made)
        data = _from_snapshot(folder)

        def read(folder: Path = folder) -> State | None:
            loaded = FileLedger(str(folder)).load()
            return fold(None, loaded.records) if loaded else None

        def plain(data: list[bytes] = data) -> list[object]:
            return [json.loads(line) for line in data]

        state = read()
        assert state is not None, "the ledger was just written"
        assert len(state.artifacts) == artifacts, "nothing is lost on the way"
        ours, theirs = medians(setting.repeat, lambda read=read: seconds(read), lambda plain=plain: seconds(plain))  # type: ignore[misc]  # bound now
        rows += [
            Row(f"load: {artifacts:,} artifacts, {name}: json.loads", theirs * 1e3, "ms"),
            Row(
                f"load: {artifacts:,} artifacts, {name}",
                ours * 1e3,
                "ms",
                ours / theirs,
                "json.loads of the same bytes",
                "< 100 ms",
                ours < 0.1,
            ),
        ]
    return rows


def _ledger(folder: Path, artifacts: int, *, made: bool) -> Path:
    writer = Writer(FileLedger(str(folder)))
    specs = samples.specs(artifacts)
    writer.execute(samples.create(specs), by="bench")
    for spec in specs if made else ():
        token = writer.execute(StartArtifacts(ids=(spec.id,), run="r"), by="bench", wait=False)[-1].seq
        writer.execute(samples.complete(spec, token), by="bench", wait=False)
    if made:
        writer.snapshot()
    writer.close()
    return folder


def _from_snapshot(folder: Path) -> list[bytes]:
    lines = (folder / "ledger.jsonl").read_bytes().splitlines()
    newest = max((n for n, line in enumerate(lines) if b'"type":"snapshot"' in line[:200]), default=0)
    return lines[newest:]


def folding(setting: Setting) -> list[Row]:
    """30,000 events of a plan of 10,000 artifacts, and ten times both: an event costs the same."""
    few, many = setting.count(10_000, least=40), setting.count(100_000, least=400)
    small, large = list(samples.records(few)), list(samples.records(many))
    one, ten = medians(
        setting.repeat, lambda: seconds(lambda: fold(None, small)), lambda: seconds(lambda: fold(None, large))
    )
    return [
        Row(f"fold: {len(small):,} events", one / len(small) * 1e6, "µs/event"),
        _grown(f"fold: {len(large):,} events", ten / len(large) * 1e6, "µs/event", ten / one, len(large) / len(small)),
    ]


def graph(setting: Setting) -> list[Row]:
    """Graph and waves of 10,000 and 100,000 artifacts, as commands and runs build them: calmly."""
    few, many = setting.count(10_000, least=40), setting.count(100_000, least=400)
    small, large = samples.specs(few), samples.specs(many)
    with calmly():
        one, ten = medians(
            setting.repeat,
            lambda: seconds(lambda: ArtifactGraph(small).execution_waves()),
            lambda: seconds(lambda: ArtifactGraph(large).execution_waves()),
        )
    return [
        Row(f"graph: build and waves, {few:,}", one * 1e3, "ms"),
        _grown(f"graph: build and waves, {many:,}", ten * 1e3, "ms", ten / one, many / few),
    ]


def _grown(name: str, value: float, unit: str, ratio: float, times: float) -> Row:
    return Row(name, value, unit, ratio, "a tenth of it", f"≤ {GROWTH} ×", ratio <= GROWTH * times / 10)
