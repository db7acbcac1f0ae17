"""Events at the end of a ledger, verified and in order, and what they are to somebody who knows some of them."""

from __future__ import annotations

from collections.abc import Container, Iterator, Sequence
from typing import NamedTuple, overload

from headway.core import codec
from headway.core.events import Record
from headway.core.state import Position
from headway.ledger.base import Loaded
from headway.ledger.scan import SETTLING, Mark


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
    """Events from some offset to the last one that belongs: lines that verify, each of which continues the chain."""

    lines: list[codec.Envelope]
    ends: list[int]
    """How far each of them reaches."""
    start: int
    end: Mark
    base: int | None = None
    """Where among them the newest snapshot is."""

    @property
    def snapshot(self) -> Mark | None:
        """The newest snapshot among them."""
        if self.base is None:
            return None
        return Mark(self._offset(self.base), _position(self.lines[self.base]))

    def hashes(self, named: Container[int]) -> dict[int, str]:
        """What has to agree with those who name these events: a recovery settles all that was named before it."""
        found: dict[int, str] = {}
        for line in reversed(self.lines):
            if line.seq in named:
                found[line.seq] = line.hash
            if line.type in SETTLING:
                break
        return found

    def loaded(self, known: Position | None, size: int, *, start: Position | None = None) -> Loaded:
        """What is new to somebody who knows the state at `known`, or all that makes up the state.

        `start` is the event before the first of them.
        """
        after = 0 if known is not None and known == start else None
        if after is None and known is not None:
            after = next((i + 1 for i, line in enumerate(self.lines) if _position(line) == known), None)
        newest = self.base or 0
        begins, ends = (self._offset(newest), self.ends[newest]) if self.lines else (self.end.offset, self.end.offset)
        return Loaded(
            Records(self.lines[newest if after is None else after :]),
            self.end.position if self.end.position.seq else None,
            whole=after is None,
            base=ends - begins,
            tail=self.end.offset - ends,
            events=len(self.lines) - newest,
            size=self.end.offset,
            debris=self.end.offset < size,
        )

    def _offset(self, index: int) -> int:
        """Where one of them begins."""
        return self.ends[index - 1] if index else self.start


def _position(line: codec.Envelope) -> Position:
    return Position(line.seq, line.hash)
