"""Reads what waits for the editor, and says what is to be said. Nothing here knows how it was made."""

import sys

from headway import Project
from headway.life import Life
from headway.work import Meant, Work

hands = Life(Work(Project(".")), by="editor")
changes = {line for line in open("out/changes.txt").read().splitlines() if line}
notes = open("out/notes.md").read()
forgotten = sorted(change for change in changes if change not in notes)
if "review" not in hands.gates("release", "draft")["gates"] or not hands.next(Meant("release")).waiting.get("draft"):
    sys.exit("Nothing waits for the editor.")
if forgotten:
    found = hands.verdict("release", "draft", "review", "REJECT", text=f"Not a word about: {', '.join(forgotten)}")
else:
    found = hands.verdict("release", "draft", "review", "APPROVE", text="Every change is named")
print(f"draft: {found.status}")
