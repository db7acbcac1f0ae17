"""What every ledger offers, whatever it is kept in. tests/contracts/ledger.py is the contract, run against each.

A ledger is read without a lock and written in batches. A batch is: `begin` (take the lock, learn what others
appended), any number of `stage` and `write`, then `sync` and `end`. What was written is durable when `sync` has
returned, and only then may anybody be told.
"""

from __future__ import annotations

from collections.abc import Collection, Container, Iterator, Sequence
from typing import NamedTuple, Protocol

from headway.core.events import Event, Record, Snapshot
from headway.core.state import Position


class Loaded(NamedTuple):
    """Events, and what they are to be added to.

    `whole`: they begin with the newest snapshot or the first event, so the state is folded from them alone;
    otherwise they follow what the caller knows. `base` is the size in bytes of that snapshot or first event, as far as
    it was looked at, `tail` of all that follows it, `events` the number of both; `size` is that of the ledger.
    `debris`: bytes that nobody was told about follow the last event; the next writer sets them aside.
    """

    records: Sequence[Record]
    end: Position | None
    whole: bool = True
    base: int = 0
    tail: int = 0
    events: int = 0
    size: int = 0
    debris: bool = False


class Finding(NamedTuple):
    """Something that is not as it should be: what, where, what it costs, and whether a repair exists."""

    code: str
    message: str
    cost: str = ""
    repair: str = ""


class Ledger(Protocol):
    """One chain of events."""

    def load(self, known: Position | None = None) -> Loaded | None:
        """Everything from the newest snapshot on, or what came after `known`; None where there is no ledger.

        Never writes.
        """
        ...

    def history(
        self,
        first: int = 1,
        last: int | None = None,
        *,
        about: Container[str] | None = None,
        naming: Collection[str] = (),
    ) -> Iterator[Record]:
        """Events by number, from the very first one that is still kept. Never writes.

        `about`: only events of these types are taken apart, the others come as unknown ones. `naming`: only those that
        name one of these anywhere, ids or types; the others are passed over.
        """
        ...

    def begin(self, known: Position | None, *, patience: float = 60.0) -> Loaded:
        """Take the write lock and learn what others appended after `known`, or all that makes up the state.

        Who does not get the lock within `patience` seconds is told to try later.
        """
        ...

    def stage(self, events: Sequence[Event], *, by: str, ts: str) -> list[Record]:
        """Chain events to the end, inside a batch: numbered and linked, and not yet to be seen by anybody."""
        ...

    def write(self) -> None:
        """Write all that is staged. All of it or nothing; either way nothing is staged any more."""
        ...

    def sync(self) -> None:
        """Make everything written durable. A failed sync is never tried again: the ledger takes no more."""
        ...

    def end(self) -> None:
        """Give the write lock back."""
        ...

    def rotate(self, snapshot: Snapshot, *, by: str, ts: str, plan_id: str, project_id: str) -> list[Record]:
        """Seal what is there, where a ledger is kept in pieces, and go on with a snapshot. In a batch, after `sync`."""
        ...

    def size(self) -> int:
        """Bytes so far, staged ones included: how far a snapshot is behind is measured in them."""
        ...

    def close(self) -> None:
        """Let go of everything; the ledger can be loaded again."""
        ...
