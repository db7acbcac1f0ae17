"""Reads what waits for the editor, and says what is to be said. Nothing here knows how it was made."""

import sys
from pathlib import Path

from headway import Life, Project, Work
from headway.work import Meant

hands = Life(Work(Project(".")), by="editor")
changes = {line for line in Path("out/changes.txt").read_text().splitlines() if line}
notes = Path("out/notes.md").read_text()
forgotten = sorted(change for change in changes if change not in notes)
if "draft" not in hands.next(Meant("release")).waiting:
    sys.exit("Nothing waits for the editor.")
if forgotten:
    found = hands.verdict("release", "draft", "review", "REJECT", text=f"Not a word about: {', '.join(forgotten)}")
else:
    found = hands.verdict("release", "draft", "review", "APPROVE", text="Every change is named")
print(f"draft: {found.status}")
