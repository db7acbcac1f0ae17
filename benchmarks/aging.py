"""Age: what the same commands cost in a project that was changed and run many times since."""

from __future__ import annotations

from functools import partial
from itertools import count as counting
from pathlib import Path

from benchmarks import projects
from benchmarks.layers import Layers, change
from benchmarks.measure import Row, Setting, child, median
from benchmarks.projects import HEADWAY, RUN

COUNT, CHANGES = 2_000, 120
WITHIN = 2.0
TELLS_OF_THE_PAST = "show"
"""It names every attempt there ever was: so it has no bar."""


def aging(setting: Setting) -> list[Row]:
    """Processor time of everyday commands, against what they took when everything had been made once."""
    layers = Layers(setting.count(COUNT, least=60))
    folder = projects.made(setting, "headway.json", layers.total)
    last, versions = f"a{layers.total - 1}", counting(1)

    def changed() -> None:
        version = next(versions)
        change(folder, version * 7 % layers.width, version)

    verbs = {
        "a change": RUN,
        "status": (HEADWAY, "status"),
        "why": (HEADWAY, "why", last),
        "show": (HEADWAY, "show", last),
        "preview": (*RUN, "-n"),
    }

    def spent(words: tuple[str, ...]) -> float:
        changed()
        return child(words, folder).cpu

    young = {verb: median(setting.repeat, partial(spent, words)) for verb, words in verbs.items()}
    times = setting.count(CHANGES, least=2)
    for _ in range(times):
        changed()
        child(RUN, folder)
    rows = []
    for verb, words in verbs.items():
        old = median(setting.repeat, partial(spent, words))
        ratio = old / young[verb]
        bar = f"≤ {WITHIN:g} ×" if verb != TELLS_OF_THE_PAST else ""
        ok = ratio <= WITHIN if bar and times >= CHANGES else None
        name = f"age: {verb}, {layers.total:,}, after {times} changes"
        rows.append(Row(name, old * 1e3, "ms CPU", ratio, "after none", bar, ok))
    return [*rows, Row("age: events in the ledger", float(_events(folder)), "")]


def _events(folder: Path) -> int:
    """The number of the newest event."""
    with open(folder / ".headway" / "plans" / "bench" / "ledger.jsonl", "rb") as ledger:
        return int(ledger.readlines()[-1].split(b'"seq":', 1)[1].split(b",", 1)[0])
