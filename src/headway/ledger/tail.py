"""Events at the end of a ledger, verified and in order, and what they are to somebody who knows some of them."""

from __future__ import annotations

from collections.abc import Container, Iterator, Sequence
from typing import NamedTuple, overload

from headway.core import codec
from headway.core.events import Record
from headway.core.state import Position
from headway.ledger.base import Loaded
from headway.ledger.scan import SETTLING, Mark


class Entry(NamedTuple):
    """A line that verifies and continues the chain."""

    line: codec.Envelope
    offset: int
    end: int

    @property
    def position(self) -> Position:
        return Position(self.line.seq, self.line.hash)


class Records(Sequence[Record]):
    """Events that are taken apart one by one, as somebody goes through them: together they need far more room."""

    def __init__(self, lines: list[codec.Envelope]) -> None:
        self._lines = lines

    def __len__(self) -> int:
        return len(self._lines)

    def __iter__(self) -> Iterator[Record]:
        return map(codec.decode, self._lines)

    @overload
    def __getitem__(self, index: int) -> Record: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[Record]: ...
    def __getitem__(self, index: int | slice) -> Record | Sequence[Record]:
        return Records(self._lines[index]) if isinstance(index, slice) else codec.decode(self._lines[index])


class Tail(NamedTuple):
    """Events from some offset to the last one that belongs."""

    entries: list[Entry]
    end: Mark
    base: int | None = None
    """Where among them the newest snapshot is."""

    @property
    def snapshot(self) -> Mark | None:
        """The newest snapshot among them."""
        found = self.entries[self.base] if self.base is not None else None
        return Mark(found.offset, found.position) if found is not None else None

    def hashes(self, named: Container[int]) -> dict[int, str]:
        """What has to agree with those who name these events: a recovery settles all that was named before it."""
        found: dict[int, str] = {}
        for line, _, _ in self.entries:
            if line.type in SETTLING:
                found.clear()
            if line.seq in named:
                found[line.seq] = line.hash
        return found

    def loaded(self, known: Position | None, size: int, *, start: Position | None = None) -> Loaded:
        """What is new to somebody who knows the state at `known`, or all that makes up the state.

        `start` is the event before the first of them.
        """
        after = 0 if known is not None and known == start else None
        if after is None and known is not None:
            after = next((i + 1 for i, e in enumerate(self.entries) if e.position == known), None)
        newest = self.base or 0
        records = Records([entry.line for entry in self.entries[newest if after is None else after :]])
        first = self.entries[newest] if self.entries else None
        return Loaded(
            records,
            self.end.position if self.end.position.seq else None,
            whole=after is None,
            base=first.end - first.offset if first else 0,
            tail=self.end.offset - first.end if first else 0,
            events=len(self.entries) - newest,
            size=self.end.offset,
            debris=self.end.offset < size,
        )
