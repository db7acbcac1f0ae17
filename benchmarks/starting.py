"""How long it takes until a command has done something."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from pathlib import Path

from benchmarks.measure import Row, Setting, child, medians


def start(setting: Setting) -> list[Row]:
    """The smallest commands against a Python that does nothing."""
    folder = setting.fresh("start")
    headway = str(Path(sys.executable).with_name("headway"))

    def call(words: Sequence[str]) -> Callable[[], float]:
        return lambda: child(words, folder).wall

    call([headway, "init"])()
    call([headway, "plans", "new"])()
    words = ([headway, "--version"], [headway, "plans", "list"])
    bare, *found = medians(setting.repeat * 4, call([sys.executable, "-c", "pass"]), *map(call, words))
    rows = [Row("start: python -c pass", bare * 1e3, "ms")]
    for line, spent in zip(words, found, strict=True):
        name = " ".join(["headway", *line[1:]])
        rows.append(Row(f"start: {name}", spent * 1e3, "ms", spent / bare, "python -c pass"))
    return rows
