"""The ledger of a workspace or of the environment: what people said, in the machinery that plans have.

Small, so it has no snapshots: every load verifies all of it. Reading never writes, and a ledger that is not there yet
is an empty one; only somebody who says something creates it.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager

from headway.core.decide import Rejection
from headway.core.events import Event, First
from headway.core.places import Places, allow, fold
from headway.disk import REAL, make_folders
from headway.errors import LedgerDamaged
from headway.files.identity import HOME, make_home
from headway.ledger.base import Loaded
from headway.ledger.file import FileLedger
from headway.ledger.recovery import now
from headway.ledger.writer import rejected


class Registry:
    """What was said about one place."""

    def __init__(self, folder: str) -> None:
        self.folder = folder
        self._known: tuple[tuple[int, ...], Places] | None = None

    @property
    def exists(self) -> bool:
        """Whether anybody ever said anything here."""
        return os.path.exists(os.path.join(self.folder, "ledger.jsonl"))

    def stamp(self) -> tuple[int, ...]:
        """Changes whenever the ledger does."""
        return FileLedger(self.folder).stamp()

    def read(self) -> Places:
        """What is known. Not to be changed."""
        ledger = FileLedger(self.folder)
        stamp = ledger.stamp()
        if self._known is None or self._known[0] != stamp or not stamp:
            with _plainly(self.folder):
                self._known = (stamp, _folded(ledger.load()))
        return self._known[1]

    def record(self, event: Event, *, first: First, by: str) -> bool:
        """Write it down, durably, unless it is so already; whether it was written. Refusals are raised."""
        self._refuse(self.read(), event)
        home = os.path.dirname(self.folder)
        if os.path.basename(home) == HOME:
            make_home(REAL, home)
        else:  # the machine's own, wherever its user wants it
            make_folders(REAL, home)
        ledger = FileLedger(self.folder)
        with _plainly(self.folder):
            loaded = ledger.begin(None)
        try:
            wanted = self._refuse(_folded(loaded), event)
            if wanted is None:
                return False
            events = [wanted] if loaded.end is not None else [first, wanted]
            ledger.stage(events, by=by, ts=now())
            ledger.write()
            ledger.sync()
        finally:
            ledger.end()
            ledger.close()
        return True

    def _refuse(self, places: Places, event: Event) -> Event | None:
        decided = allow(places, event)
        if isinstance(decided, Rejection):
            raise rejected(decided)
        return decided


@contextmanager
def _plainly(folder: str) -> Iterator[None]:
    """Damage of these ledgers is for people: nothing else holds what was said in them."""
    try:
        yield
    except LedgerDamaged as error:
        raise LedgerDamaged(
            error.message,
            facts=error.facts,
            hint=f"put a backup back, or move {folder} away and say it again",
            code=error.error_code,
        ) from error


def _folded(loaded: Loaded | None) -> Places:
    places = Places()
    for record in loaded.records if loaded is not None else ():
        fold(places, record)
    return places
