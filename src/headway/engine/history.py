"""What the project's ledgers have ever named: earlier completions that can be reused, and bytes that are no edits.

An index of the ledgers in cache.sqlite, brought up to date when it is first asked. Where the cache cannot be written,
the same is kept in memory.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from headway.core import events as ev
from headway.core.fingerprint import reuse_key
from headway.core.state import Output, Position
from headway.errors import HeadwayError
from headway.files.cache import Cache
from headway.store import PlanStore


class Earlier(NamedTuple):
    """A completion that can stand in for making an artifact again."""

    plan: str
    seq: int
    outputs: tuple[Output, ...]
    by: str


class History:
    """The completions and digests of all ledgers of a project."""

    def __init__(self, store: PlanStore, cache: Cache, *, writable: bool) -> None:
        self._store = store
        self._cache = cache
        self._writable = writable
        self._current = False
        self._made: dict[str, list[tuple[int, str]]] = {}
        self._named: set[str] = set()
        self._keys: set[str] = set()
        self._events: dict[tuple[str, int], ev.Record] = {}

    def names(self, digest: str) -> bool:
        """Whether some ledger of this project names these bytes."""
        self._learn()
        return digest in self._named or self._cache.is_named(digest)

    def any(self) -> bool:
        """Whether anything was ever completed before this run."""
        self._learn()
        return bool(self._keys or self._made)

    def earlier(self, key: str) -> list[Earlier]:
        """Completions made from the same things in the same way, newest first."""
        self._learn()
        if key not in self._keys and key not in self._made:
            return []
        places = [(seq, plan) for _, plan, seq in self._cache.made(key)] + self._made.get(key, [])
        found = []
        for seq, plan in sorted(set(places), reverse=True):
            record = self._event(plan, seq)
            if record is not None and isinstance(record.event, ev.ArtifactCompleted):
                found.append(Earlier(plan, seq, record.event.outputs, record.by))
        return found

    def add(self, records: Iterable[ev.Record]) -> None:
        """Take in the bytes that events of this run name, so that they count at once."""
        for record in records:
            self._named.update(named_by(record))

    def _event(self, plan: str, seq: int) -> ev.Record | None:
        if (plan, seq) not in self._events:
            try:
                for record in self._store.folder(plan).history(seq, seq):
                    self._events[plan, seq] = record
            except HeadwayError:
                return None
        return self._events.get((plan, seq))

    def _learn(self) -> None:
        if self._current:
            return
        self._current = True
        self._keys = self._cache.keys()
        indexed = self._cache.indexed()
        for plan in self._store.ids():
            try:
                self._index(plan, indexed.get(plan))
            except HeadwayError:
                continue

    def _index(self, plan: str, known: tuple[int, str] | None) -> None:
        folder = self._store.folder(plan)
        start = 1
        if known is not None:
            there = next(iter(folder.history(known[0], known[0])), None)
            start = known[0] + 1 if there is not None and there.hash == known[1] else 1
        made: list[tuple[str, int]] = []
        named: set[str] = set()
        last: Position | None = None
        anew = start == 1
        for record in folder.history(start):
            if record.event.type == ev.PlanReset.type:
                made.clear()
                anew = True
            made += made_by(record)
            named.update(named_by(record))
            last = record.position
        if last is None:
            return
        if self._writable:
            self._cache.index(plan, last, made, named, anew=anew)
        self._named |= named
        for key, seq in made:
            self._made.setdefault(key, []).append((seq, plan))


def made_by(record: ev.Record) -> list[tuple[str, int]]:
    """Keys of completions that may be reused: made by a recipe, without effects elsewhere."""
    event = record.event
    if isinstance(event, ev.ArtifactCompleted) and event.how == "made" and event.fp.recipe and not event.external:
        return [(reuse_key(event.fp), record.seq)]
    return []


def named_by(record: ev.Record) -> list[str]:
    """Digests of output bytes that an event names."""
    event = record.event
    if isinstance(event, (ev.ArtifactCompleted, ev.OutputAccepted, ev.EditPreserved)):
        return [output.digest for output in event.outputs]
    if isinstance(event, ev.ArtifactFailed):
        return [output.digest for output in event.left]
    return []
