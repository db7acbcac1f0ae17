"""The index while it is changed: its head, and the goals as they are written, of which only those in question are read.

What a completion costs must not depend on how many goals there are. Of the others nothing is needed but their bytes,
and that they are sound JSON; whether each is a goal is seen by whoever reads them.
"""

from __future__ import annotations

from bisect import bisect

import msgspec

from headway.history.entries import temporal_edges
from headway.history.shapes import DagIndex, Edge, GoalEntry, Summary

_OPENS, _BETWEEN, _CLOSES = b'"goals":[\n', b",\n", b"\n]}\n"
"""One goal a line, so that people and grep can read it; within a goal there is no line feed."""


class _Goals(msgspec.Struct):
    goals: msgspec.Raw


_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.decode


def _entry(line: bytes) -> GoalEntry:
    return _decode(line, type=GoalEntry)


class OpenIndex:
    """An index that somebody is about to write again. `head` is all of it but the goals."""

    def __init__(self, head: DagIndex, goals: bytes) -> None:
        self.head = head
        self._goals = goals

    @classmethod
    def of(cls, index: DagIndex) -> OpenIndex:
        """An index that is decoded already."""
        return cls(msgspec.structs.replace(index, goals=[]), _BETWEEN.join(map(_encode, index.goals)))

    @classmethod
    def read(cls, data: bytes) -> OpenIndex:
        """An index as it was written; a decoding error if it cannot be read. One laid out by hand is read whole."""
        size = memoryview(_decode(data, type=_Goals).goals).nbytes
        start = data.find(_OPENS)
        end = len(data) - len(_CLOSES)
        if start < 0 or not data.endswith(_CLOSES) or end - start - len(_OPENS) + 4 != size:
            return cls.of(_decode(data, type=DagIndex))
        return cls(_decode(data[:start] + b'"goals":[]}', type=DagIndex), data[start + len(_OPENS) : end])

    def entry(self, goal_id: str) -> GoalEntry | None:
        """A goal, if it is in the index."""
        start, end = self._find(goal_id)
        return _entry(self._goals[start:end]) if start >= 0 else None

    def put(self, entry: GoalEntry) -> list[Edge]:
        """A goal as it is now, in the place of what was known of it, or where it belongs by its beginning; the temporal
        edges that come and go with that."""
        start, end = self._find(entry.id)
        known = _entry(self._goals[start:end]) if start >= 0 else None
        if known is not None and (known.created_at or not entry.created_at):
            self._goals = b"".join((self._goals[:start], _encode(entry), self._goals[end:]))
            self._count(known, entry, [])
            return []
        if known is not None:  # nobody knew when it began: it had no place
            self._goals = _BETWEEN.join(
                part for part in (self._goals[: max(start - 2, 0)], self._goals[end + 2 :]) if part
            )
        before, after = self._insert(entry)
        edges = temporal_edges(before, entry, after)
        self._count(known, entry, edges)
        return edges

    def whole(self) -> DagIndex:
        """The same with all goals."""
        return msgspec.structs.replace(self.head, goals=_decode(b"[%s]" % self._goals, type=list[GoalEntry]))

    def data(self) -> bytes:
        """As it is written."""
        plain = {key: item for key, item in msgspec.to_builtins(self.head).items() if key != "goals"}
        return b"%s,%s%s%s" % (_encode(plain)[:-1], _OPENS, self._goals, _CLOSES)

    def _find(self, goal_id: str) -> tuple[int, int]:
        """Where a goal begins and ends; -1 if it is not there."""
        key = b'{"id":%s,' % _encode(goal_id)
        start = 0 if self._goals.startswith(key) else self._goals.find(_BETWEEN + key)
        if start < 0:
            return -1, -1
        start += len(_BETWEEN) if start else 0
        end = self._goals.find(_BETWEEN, start)
        return start, end if end >= 0 else len(self._goals)

    def _insert(self, entry: GoalEntry) -> tuple[GoalEntry | None, GoalEntry | None]:
        """Give a goal its place; the one before it and the one after. Most are the newest."""
        if not self._goals:
            self._goals = _encode(entry)
            return None, None
        last = _entry(self._goals[self._goals.rfind(b"\n") + 1 :])
        if _beginning(last) < _beginning(entry):
            self._goals = _BETWEEN.join((self._goals, _encode(entry)))
            return last, None
        lines = self._goals.split(_BETWEEN)
        at = bisect(lines, _beginning(entry), key=lambda line: _beginning(_entry(line)))
        before, after = lines[at - 1] if at else b"", lines[at] if at < len(lines) else b""
        lines.insert(at, _encode(entry))
        self._goals = _BETWEEN.join(lines)
        return _entry(before) if before else None, _entry(after) if after else None

    def _count(self, was: GoalEntry | None, now: GoalEntry, temporal: list[Edge]) -> None:
        """Figures change by what changed."""
        known = self.head.summary
        self.head.summary = Summary(
            total_goals=known.total_goals + (was is None),
            completed_goals=known.completed_goals + _done(now) - _done(was),
            total_artifacts=known.total_artifacts + now.artifacts - (was.artifacts if was else 0),
            total_edges=known.total_edges
            + now.edges
            - (was.edges if was else 0)
            + sum(-1 if edge.gone else 1 for edge in temporal),
        )


def _beginning(entry: GoalEntry) -> tuple[str, str]:
    return entry.created_at, entry.id


def _done(entry: GoalEntry | None) -> int:
    return int(entry is not None and entry.status == "complete")
