"""Writes the 200 documents that are to be labelled: letters about four things."""

import pathlib

THINGS = ["the garden", "a bicycle", "the boiler", "an invoice"]

pathlib.Path("docs").mkdir(exist_ok=True)
for n in range(1, 201):
    pathlib.Path(f"docs/letter{n:03}.txt").write_text(f"Dear all, this is about {THINGS[n % 4]}. Letter {n}.\n")
