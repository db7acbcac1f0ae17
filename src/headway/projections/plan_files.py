"""The projections of one plan on disk: plan.json, plan.md, and the checkpoint in export/.

Written whole, by one rename, when they are due. A file that somebody edited is left alone until the user says
whether to adopt or discard it. Whatever the disk says to a projection, no event depends on it.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING, NamedTuple

from headway.core.state import Position
from headway.disk import LEFTOVER, REAL, Disk, make_folders, write_file
from headway.projections import markdown, saved_execution
from headway.projections.saved_execution import OPENING_BYTES, SavedExecution

if TYPE_CHECKING:
    from headway.projections.drift import Difference  # files seldom differ from what they show

LEFTOVER_AGE = 3600.0

Render = Callable[[SavedExecution], bytes]
Recall = Callable[[Position], "SavedExecution | None"]
"""The plan as of an earlier event, or None if the ledger has no such event."""


class Kind(NamedTuple):
    """One projected file: its name in the plan's folder, and how it is written and checked."""

    name: str
    render: Render
    is_intact: Callable[[bytes], bool]

    @property
    def is_json(self) -> bool:
        return self.name.endswith(".json")


VIEWS = (
    Kind("plan.json", saved_execution.render, saved_execution.is_intact),
    Kind("plan.md", markdown.render, markdown.is_intact),
)
CHECKPOINT = (
    Kind("export/PLAN.json", saved_execution.render, saved_execution.is_intact),
    Kind("export/PLAN.md", markdown.render, markdown.is_intact),
)
ALL = VIEWS + CHECKPOINT
_WITNESSES = (VIEWS[0], CHECKPOINT[0])


class Left(NamedTuple):
    """A file that was not written, and why."""

    name: str
    why: str


class Drift(NamedTuple):
    """An edited file: what it reflects, and every field that somebody changed."""

    written: SavedExecution
    differences: list[Difference]


class PlanFiles:
    """The projected files in one plan's folder."""

    def __init__(self, folder: str, *, recall: Recall, disk: Disk = REAL) -> None:
        self.folder = folder
        self._recall = recall
        self._disk = disk

    def path(self, kind: Kind) -> str:
        """Where a file is."""
        return os.path.join(self.folder, kind.name)

    def missing(self) -> bool:
        """Whether one of them is not there."""
        return any(not os.path.lexists(self.path(kind)) for kind in ALL)

    # Writing.

    def refresh(self, execution: SavedExecution, kinds: tuple[Kind, ...] = ALL) -> list[Left]:
        """Write these files; those that were left alone because somebody edited them, or that the disk refused."""
        left: list[Left] = []
        rendered: dict[Render, bytes] = {}
        for kind in kinds:
            try:
                if self._find_drift(kind, execution) is not None:
                    left.append(
                        Left(kind.name, "was edited by hand and is left alone: headway doctor shows the difference")
                    )
                    continue
                if kind.render not in rendered:
                    rendered[kind.render] = kind.render(execution)
                make_folders(self._disk, os.path.dirname(self.path(kind)))
                write_file(self._disk, self.path(kind), [rendered[kind.render]], durable=False)
            except OSError as error:
                left.append(Left(kind.name, f"cannot be written ({error.strerror or error}); no event depends on it"))
        self._remove_leftovers()
        return left

    def _remove_leftovers(self) -> None:
        """Remove what killed writers left half-written an hour ago or longer: copies of what is derived anyway."""
        for folder in {os.path.dirname(self.path(kind)) for kind in ALL}:
            with suppress(OSError), os.scandir(folder) as entries:
                for entry in entries:
                    if LEFTOVER.fullmatch(entry.name) and time.time() - entry.stat().st_mtime > LEFTOVER_AGE:
                        self._disk.remove(entry.path)

    # Looking.

    def drift(self, current: SavedExecution) -> dict[Kind, Drift]:
        """Files that somebody edited, with what they changed."""
        found = {}
        for kind in ALL:
            try:
                drift = self._find_drift(kind, current)
            except OSError as error:
                from headway.projections.drift import WHOLE, Difference

                problem = Difference(WHOLE, error.strerror or str(error), "a plan")
                drift = Drift(current, [problem])
            if drift is not None:
                found[kind] = drift
        return found

    def cut_short(self, current: SavedExecution) -> list[Kind]:
        """Files of which only a part is there, or nothing but their name."""
        found = []
        for kind in ALL:
            with suppress(OSError):
                data = _read(self.path(kind))
                if data is not None and not kind.is_intact(data):
                    whole = kind.render(self._written(kind, data, current)).rstrip()
                    part = data.rstrip(b"\0 \r\n")
                    if whole.startswith(part) and (len(part) < len(whole) or data.endswith(b"\0")):
                        found.append(kind)
        return found

    def witnesses(self) -> list[tuple[str, Position]]:
        """Ledger positions that files of this plan name: whoever wrote them had been told of those events."""
        found = []
        for kind in _WITNESSES:
            try:
                with open(self.path(kind), "rb") as file:
                    opening = saved_execution.opening_of(file.read(OPENING_BYTES))
            except OSError:
                continue
            if opening is not None and opening.plan_id == os.path.basename(self.folder) and opening.position.seq:
                found.append((kind.name, opening.position))
        return found

    def strangers(self) -> list[Kind]:
        """Files that name an event which the ledger does not have: it was cut back, or they are another plan's."""
        found = []
        for kind in ALL:
            with suppress(OSError):
                data = _read(self.path(kind))
                position = _position_of(kind, data) if data else None
                if position is not None and self._recall(position) is None:
                    found.append(kind)
        return found

    def rescue(self) -> tuple[str, SavedExecution] | None:
        """The newest intact file from which a lost ledger can be rebuilt."""
        best: tuple[str, SavedExecution] | None = None
        for kind in _WITNESSES:
            with suppress(OSError):
                data = _read(self.path(kind))
                if data is not None and kind.is_intact(data):
                    execution = saved_execution.parse(data)
                    if best is None or execution.position.seq > best[1].position.seq:
                        best = (kind.name, execution)
        return best

    def _find_drift(self, kind: Kind, current: SavedExecution) -> Drift | None:
        """What somebody changed in a file; None if nothing: missing, old, reformatted or cut short is no edit."""
        data = _read(self.path(kind))
        if data is None or kind.is_intact(data) or not data.strip(b"\0 \r\n"):
            return None
        written = self._written(kind, data, current)
        expected = kind.render(written)
        if expected.startswith(data.rstrip(b"\0")):
            return None
        from headway.projections.drift import differences, line_differences

        found = differences(data, written) if kind.is_json else line_differences(data, expected)
        return Drift(written, found) if found else None

    def _written(self, kind: Kind, data: bytes, current: SavedExecution) -> SavedExecution:
        """The plan as of the event that a file names, or as it is."""
        position = _position_of(kind, data)
        return (self._recall(position) if position is not None else None) or current


def _position_of(kind: Kind, data: bytes) -> Position | None:
    if not kind.is_json:
        return markdown.position_of(data)
    opening = saved_execution.opening_of(data)
    return opening.position if opening is not None else None


def _read(path: str) -> bytes | None:
    """The bytes of a file, or None if there is none; anything else in its place is an OSError."""
    try:
        with open(path, "rb") as file:
            return file.read()
    except FileNotFoundError:
        return None
