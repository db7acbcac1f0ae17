"""The projections of one plan on disk: plan.json, plan.md, and the checkpoint in export/.

Written whole, by one rename, when they are due. A file that somebody edited is left alone until the user says
whether to adopt or discard it.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import NamedTuple

from headway.core.state import Position
from headway.disk import REAL, Disk, make_folders, write_file
from headway.projections import markdown, saved_execution
from headway.projections.drift import Difference, differences
from headway.projections.saved_execution import SavedExecution


class Kind(NamedTuple):
    """One projected file: its name in the plan's folder, and how it is written and checked."""

    name: str
    render: Callable[[SavedExecution], bytes]
    is_intact: Callable[[bytes], bool]
    position_of: Callable[[bytes], Position | None]


_JSON = (saved_execution.render, saved_execution.is_intact, saved_execution.position_of)
_MARKDOWN = (markdown.render, markdown.is_intact, markdown.position_of)
VIEWS = (Kind("plan.json", *_JSON), Kind("plan.md", *_MARKDOWN))
CHECKPOINT = (Kind("export/PLAN.json", *_JSON), Kind("export/PLAN.md", *_MARKDOWN))


class PlanFiles:
    """The projected files in one plan's folder."""

    def __init__(self, folder: str, *, disk: Disk = REAL) -> None:
        self.folder = folder
        self._disk = disk

    def refresh(self, execution: SavedExecution, kinds: tuple[Kind, ...] = VIEWS) -> list[str]:
        """Write these files; the names of those left alone because somebody edited them."""
        edited = []
        for kind in kinds:
            path = os.path.join(self.folder, kind.name)
            data = _read(path)
            if data is not None and self.is_edited(kind, data, execution):
                edited.append(kind.name)
                continue
            make_folders(self._disk, os.path.dirname(path))
            write_file(self._disk, path, [kind.render(execution)], durable=False)
        return edited

    def is_edited(self, kind: Kind, data: bytes, execution: SavedExecution) -> bool:
        """Whether a file holds something that somebody wrote there: not merely old, empty or cut short."""
        if kind.is_intact(data) or not data.strip(b"\0 \r\n"):
            return False
        if not kind.name.endswith(".json"):
            return True
        found = differences(data, execution)
        return bool(found) and found[0].field != "(whole file)"

    def drift(self, execution: SavedExecution) -> dict[str, list[Difference]]:
        """Edited files by name, with every field in which they differ from the ledger."""
        found: dict[str, list[Difference]] = {}
        for kind in (*VIEWS, *CHECKPOINT):
            data = _read(os.path.join(self.folder, kind.name))
            if data is None or not self.is_edited(kind, data, execution):
                continue
            if kind.name.endswith(".json"):
                found[kind.name] = differences(data, execution)
            else:
                found[kind.name] = _line_differences(data, kind.render(execution))
        return found

    def witnesses(self) -> list[tuple[str, Position]]:
        """Ledger positions that intact files name: whoever wrote them had been told of those events."""
        found = []
        for kind in (VIEWS[0], CHECKPOINT[0]):
            position = self._named(kind)
            if position is not None and position.seq:
                found.append((kind.name, position))
        return found

    def rescue(self) -> tuple[str, SavedExecution] | None:
        """The newest intact file from which a lost ledger can be rebuilt."""
        best: tuple[str, SavedExecution] | None = None
        for kind in (VIEWS[0], CHECKPOINT[0]):
            data = _read(os.path.join(self.folder, kind.name))
            if data is not None and kind.is_intact(data):
                execution = saved_execution.parse(data)
                if best is None or execution.position.seq > best[1].position.seq:
                    best = (kind.name, execution)
        return best

    def _named(self, kind: Kind) -> Position | None:
        try:
            with open(os.path.join(self.folder, kind.name), "rb") as file:
                return kind.position_of(file.read(512))
        except OSError:
            return None


def _read(path: str) -> bytes | None:
    try:
        with open(path, "rb") as file:
            return file.read()
    except OSError:
        return None


def _line_differences(file: bytes, ledger: bytes) -> list[Difference]:
    ours, theirs = ledger.decode().splitlines()[1:], file.decode("utf-8", "replace").splitlines()[1:]
    known_ours, known_theirs = set(ours), set(theirs)
    gone = [Difference("line", None, line) for line in ours if line not in known_theirs]
    return [Difference("line", line, None) for line in theirs if line not in known_ours] + gone
