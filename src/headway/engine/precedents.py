"""What the project's ledgers name: earlier completions that can be reused, and bytes that are no edits.

An index of the ledgers in cache.sqlite, brought up to date when it is first asked; a run tells it what it records, so
that the next one need not read it all again. It names completions by marks, which are soon told and which others may
share: what was made from the same things the ledger tells. Where the cache cannot be written, the same is kept in
memory. What a reset withdrew is not reused, and what a deleted ledger named is not named any more.
"""

from __future__ import annotations

import threading
import zlib
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import suppress
from heapq import merge
from itertools import chain
from typing import NamedTuple

from headway.core import events as ev
from headway.core.codec import START, decode_state
from headway.core.fingerprint import precedent_key, precedent_keys
from headway.core.state import Completion, Fingerprint, Output
from headway.errors import HeadwayError
from headway.files.cache import Cache
from headway.ledger.file import FileLedger
from headway.store import PlanStore

NAMING = (ev.ArtifactCompleted, ev.ArtifactMade, ev.OutputAccepted, ev.EditPreserved)
WHOLE = (ev.PlanImported, ev.PlanRebuilt)
TELLING = frozenset(kind.type for kind in (*NAMING, *WHOLE, ev.ArtifactFailed, ev.PlanReset))
"""Events that name bytes or completions, or withdraw them."""

COMPLETING = frozenset(kind.type for kind in (ev.ArtifactCompleted, *WHOLE))
"""Events that name completions which can be reused."""

COMING = frozenset(kind.type for kind in (ev.ArtifactCompleted, ev.ArtifactMade, *WHOLE))
"""Events that tell what was made."""

REUSABLE = frozenset({"made", "reused"})
"""How a completion that can be reused came about."""

ACCEPTED, KNOWN = "+", "-"
"""Before a digest: somebody accepted these bytes; or they are known, though nothing here says that they were made."""

SIGNS = {"accepted": ACCEPTED, "gathered": KNOWN}
"""By how a completion came about; before bytes that were made, there is none."""

QUERY = 40_000
"""So many bytes of a cache are about as many as its marks can be read of in the time of one query: whoever asks often
is answered from the marks of all."""

AHEAD = 8, 1024
"""With an event that is looked up come so many behind it, at first and at most: whoever goes back to what many
artifacts were once made as asks for them in about the order in which they were recorded."""

AT_ONCE = 500
"""The marks of so many completions are told at one time."""

FEW = 20
"""If more artifacts than this were reset, a ledger is indexed anew: to look for each in every line takes longer."""


class Earlier(NamedTuple):
    """A completion that can stand in for making an artifact again, wherever in a ledger it stands."""

    plan: str
    id: str
    seq: int
    at: str
    fp: Fingerprint
    outputs: tuple[Output, ...]
    verified: bool
    wrote: tuple[str, ...] = ()
    ms: int = 0
    prompt: str = ""
    stdout: str = ""


class _Gained:
    """What the events of a ledger say that come after those which are indexed."""

    __slots__ = ("last", "made", "named", "withdraw")

    def __init__(self) -> None:
        self.made: list[tuple[Fingerprint, int, str]] = []
        """What each was made from, its event, and its id: their marks are told when somebody wants them."""
        self.named: set[str] = set()
        """Digests, with their signs."""
        self.withdraw = False
        self.last: ev.Record | None = None

    def take_all(self, plan: str, records: Sequence[ev.Record]) -> None:
        """Take events in that follow each other: if all are completions, of which there are many, in one go."""
        done = [r.event for r in records if isinstance(r.event, ev.ArtifactCompleted)]
        if len(done) < len(records) or any(event.how in SIGNS for event in done):
            for record in records:
                self.take(plan, record)
            return
        numbered = enumerate(done, records[0].seq)
        self.made += [(event.fp, seq, event.id) for seq, event in numbered if _may_be_reused(event)]
        self.named.update([output.digest for event in done for output in event.outputs])
        self.last = records[-1]

    def take(self, plan: str, record: ev.Record) -> None:
        self.last, event = record, record.event
        if isinstance(event, ev.ArtifactCompleted):
            if _may_be_reused(event):
                self.made.append((event.fp, record.seq, event.id))
            self.named.update(_signed(event.outputs, SIGNS.get(event.how, "")))
            return
        if isinstance(event, ev.PlanReset):
            gone = set(event.ids)
            self.made = [entry for entry in self.made if gone and entry[2] not in gone]
            self.withdraw = self.withdraw or not gone
        else:
            self.made += ((done.fp, record.seq, done.id) for done in _completions(plan, record))
        self.named.update(named_by(record))


class _Window:
    """Some events of a ledger, one behind the other: a look at one shows what is next to it.

    The ledger knows its way around sealed segments once it was asked about one of them.
    """

    def __init__(self, ledger: FileLedger) -> None:
        self._ledger = ledger
        self._records: dict[int, ev.Record] = {}
        self._last = 0
        self._ahead = AHEAD[0]

    def at(self, seq: int) -> ev.Record | None:
        """The event of this number, if it names completions."""
        if seq not in self._records:
            is_next = self._last < seq <= self._last + self._ahead
            self._ahead = min(2 * self._ahead, AHEAD[1]) if is_next else AHEAD[0]
            self._last = seq + self._ahead
            records = self._ledger.history(seq, self._last, about=COMPLETING)
            self._records = {r.seq: r for r in records if not isinstance(r.event, ev.Unknown)}
        return self._records.get(seq)


class Precedents:
    """The completions and digests of all ledgers of a project."""

    def __init__(self, store: PlanStore, cache: Cache, *, writable: bool) -> None:
        self._store = store
        self._cache = cache
        self._writable = writable
        self._current = False
        self._made: dict[str, list[tuple[int, str]]] = {}
        self._named: dict[str, set[str]] = {}
        """By plan: what its ledger has gained, as far as it was taken in."""
        self._places: set[tuple[str, str]] | None = None
        """Paths, each with the digest of what was made there, once somebody wants to know."""
        self._any = False
        self._asked = 0
        self._marks: set[str] | None = None
        self._ends: dict[str, str] = {}
        """By plan: the hash of the newest event of its ledger that was taken in."""
        self._read: dict[str, _Window] = {}
        """By plan: the events of its ledger that were looked up last."""
        self._kept: dict[str, tuple[int, str] | None] = {}
        """By plan: how far the cache knows its ledger, if all could be kept so far."""
        self._resets: dict[str, set[tuple[int, frozenset[str]]]] = {}
        """By plan: what was withdrawn since its ledger was last indexed, as which event; of whom, or all of it."""
        self._heard: dict[str, _Gained] = {}
        self._lock = threading.RLock()
        """Other threads record steps, and so are heard, while this one learns."""

    def look_again(self) -> None:
        """Others may have gone on: their ledgers are read on when they are next asked about."""
        self._current = False

    def names(self, digest: str) -> bool:
        """Whether some ledger of this project names these bytes."""
        self._learn()
        return any(self._is_named(sign + digest) for sign in ("", ACCEPTED, KNOWN))

    def is_only_accepted(self, plan: str, path: str, digest: str) -> bool:
        """Whether somebody accepted these bytes in a plan, and none was ever seen to make them at this path: elsewhere,
        a recipe may have copied them.
        """
        self._learn()
        if not self._is_named(ACCEPTED + digest, plan):
            return False
        if not self._is_named(digest):
            return True
        if self._places is None:  # few are asked about: accepted, made somewhere, and not what should stand there
            self._places = set()
            for one in self._store.ids():
                with suppress(HeadwayError):  # what a damaged ledger says is nobody else's trouble
                    records = self._store.folder(one).history(1, about=COMING)
                    self._places.update(place for record in records for place in _places(record))
        return (path, digest) not in self._places

    def _is_named(self, word: str, plan: str = "") -> bool:
        """Whether a digest is named with this sign, or none; by any ledger, or by that of a plan."""
        heard = any(word in gained.named for of, gained in list(self._heard.items()) if plan in ("", of))
        found = heard or any(word in named for of, named in list(self._named.items()) if plan in ("", of))
        return found or self._cache.is_named(word, plan)

    def any(self) -> bool:
        """Whether anything was ever completed before this run."""
        if not self._current:
            self._learn()
        return self._any or bool(self._made)

    def earlier(self, key: bytes) -> Iterator[Earlier]:
        """Completions made from the same things in the same way, newest first; each is read when it is asked for."""
        self._learn()
        mark = _mark(key)
        if not self._may_be_made(mark):
            return
        places: dict[str, set[int]] = {}
        cached = ((made.seq, made.plan) for made in self._cache.made(mark))
        for seq, plan in chain(cached, self._made.get(mark, ())):
            places.setdefault(plan, set()).add(seq)
        ledgers = [self._of(plan, sorted(seqs, reverse=True), key) for plan, seqs in places.items()]
        yield from merge(*ledgers, key=lambda e: (e.at, e.seq), reverse=True) if len(ledgers) > 1 else chain(*ledgers)

    def _of(self, plan: str, seqs: Iterable[int], key: bytes) -> Iterator[Earlier]:
        """Those that events of one ledger name and that still count."""
        for seq in seqs:
            for earlier in sorted(self._at(plan, seq, key), key=lambda e: e.at, reverse=True):
                if not self._resets or not self._is_withdrawn(earlier):
                    yield earlier

    def _is_withdrawn(self, earlier: Earlier) -> bool:
        """Whether it was reset, which the index may not know yet: who only looks, or finds it busy, leaves it as it
        is."""
        resets = self._resets.get(earlier.plan, ())
        return any(earlier.seq < seq and (not ids or earlier.id in ids) for seq, ids in resets)

    def _may_be_made(self, mark: str) -> bool:
        self._asked += 1
        if self._marks is None and self._asked * QUERY > self._cache.size():
            self._marks = self._cache.marks()
        return self._marks is None or mark in self._marks or mark in self._made

    def hear(self, plan: str, records: Sequence[ev.Record]) -> None:
        """Take in what was recorded just now, so that the bytes it names count at once."""
        with self._lock:
            if self._ends.get(plan) != records[0].prev:  # nobody has asked yet, or others came first: the ledger knows
                self.look_again()
                return
            if len(records) == 1 and records[0].event.type not in TELLING:  # as most that are recorded alone
                self._heard.setdefault(plan, _Gained()).last = records[0]
                self._ends[plan] = records[0].hash
                return
            resets = [number for number, record in enumerate(records) if isinstance(record.event, ev.PlanReset)]
            if resets:  # what was withdrawn, the ledger tells
                self.look_again()
                records = records[: resets[0]]
            if records and self._places is not None:
                self._places.update(place for record in records for place in _places(record))
            if records:
                self._heard.setdefault(plan, _Gained()).take_all(plan, records)
                self._ends[plan] = records[-1].hash

    def settle(self) -> None:
        """Keep what was heard for those who come after."""
        with self._lock:
            for plan, gained in self._heard.items():
                self._keep(plan, gained)
            self._heard = {}

    def _at(self, plan: str, seq: int, key: bytes) -> list[Earlier]:
        try:
            if plan not in self._read:
                self._read[plan] = _Window(self._store.folder(plan).ledger())
            record = self._read[plan].at(seq)
        except HeadwayError:
            return []
        found = _completions(plan, record) if record is not None else ()
        return [done for done in found if precedent_key(done.fp) == key]

    def _learn(self) -> None:
        if self._current:
            return
        with self._lock:
            self.settle()
            self._current = True
            self._asked, self._marks, self._read, self._places = 0, None, {}, None
            indexed = self._cache.indexed()
            plans = self._store.ids()
            for plan in indexed.keys() - set(plans) if self._writable else ():
                self._cache.forget(plan)
            for plan in plans:
                try:
                    self._index(plan, indexed.get(plan))
                except HeadwayError:
                    continue
            self._any = self._cache.any_made()

    def _index(self, plan: str, known: tuple[int, str] | None, *, anew: bool = False) -> None:
        """Read what a ledger has gained since it was last read; all of it if it is another than it was."""
        self._ends[plan] = known[1] if known is not None else START
        self._kept[plan] = known
        if known is not None and self._store.ends_with(plan, known[1]):
            return  # most have gained nothing: a short look each, however many there are
        records = self._store.folder(plan).history(known[0] if known is not None else 1, about=TELLING)
        if known is not None:
            there = next(records, None)
            if there is None or there.hash != known[1]:
                self._index_anew(plan)
                return
        gained, gone, withdrawn = _Gained(), set[str](), list[tuple[str, int]]()
        for record in records:
            if isinstance(record.event, ev.PlanReset):
                gone.update(record.event.ids)
                self._resets.setdefault(plan, set()).add((record.seq, frozenset(record.event.ids)))
            gained.take(plan, record)
        if known is not None and gone and self._writable:  # which of those that are known were theirs, the ledger says
            if len(gone) > FEW:
                self._index_anew(plan)
                return
            withdrawn = self._made_as(plan, known[0], gone)
        for mark, seq in self._keep(plan, gained, withdrawn, anew=anew):
            self._made.setdefault(mark, []).append((seq, plan))

    def _made_as(self, plan: str, last: int, ids: Collection[str]) -> list[tuple[str, int]]:
        """What these artifacts came to up to an event: the marks, each with its event."""
        named = self._store.folder(plan).history(1, last, naming=ids)
        made = (done for record in named for done in _completions(plan, record) if done.id in ids)
        return [(_mark(precedent_key(done.fp)), done.seq) for done in made]

    def _keep(
        self, plan: str, gained: _Gained, gone: Collection[tuple[str, int]] = (), *, anew: bool = False
    ) -> list[tuple[str, int]]:
        """Keep what was gained for those who come after, and that some is `gone`; the marks of what was made, each
        with its event. `anew`: of this ledger, whatever was kept before is another's."""
        if gained.last is None:
            if anew and self._writable:
                self._cache.forget(plan)
            return []
        marks = _marks([fp for fp, _, _ in gained.made])
        made = [(mark, seq) for mark, (_, seq, _) in zip(marks, gained.made, strict=True)]
        self._ends[plan] = gained.last.hash
        if self._writable:
            since, last = self._kept.get(plan), (gained.last.seq, gained.last.hash)
            self._cache.index(plan, since, last, made, gained.named, anew=anew, withdraw=gained.withdraw, gone=gone)
            self._kept[plan] = last
        if plan in self._named:
            self._named[plan] |= gained.named
        else:
            self._named[plan] = gained.named  # nobody adds to it any more
        return made

    def _index_anew(self, plan: str) -> None:
        self._made = {
            mark: left for mark, found in self._made.items() if (left := [one for one in found if one[1] != plan])
        }
        self._resets.pop(plan, None)
        self._index(plan, None, anew=True)


def _completions(plan: str, record: ev.Record) -> Iterator[Earlier]:
    """The completions that an event names and that may be reused: made by a recipe, without effects elsewhere."""
    event = record.event
    if isinstance(event, ev.ArtifactCompleted):
        if _may_be_reused(event):
            yield _earlier(plan, event.id, record.seq, record.ts, event)
    elif isinstance(event, WHOLE):
        state = decode_state(event.state)
        for artifact_id, done in state.completed.items():
            spec = state.artifacts.get(artifact_id)
            if done.how in REUSABLE and done.fp.recipe and spec is not None and not spec.effects:
                yield _earlier(plan, artifact_id, record.seq, done.at, done)


def _mark(key: bytes) -> str:
    return f"{zlib.crc32(key):08x}"


def _marks(fps: Sequence[Fingerprint]) -> list[str]:
    """Of many, some at a time: of more, the first would be out of reach before it is used."""
    crc, some = zlib.crc32, (fps[start : start + AT_ONCE] for start in range(0, len(fps), AT_ONCE))
    return [f"{crc(key):08x}" for found in some for key in precedent_keys(found)]


def _may_be_reused(event: ev.ArtifactCompleted) -> bool:
    return event.how in REUSABLE and bool(event.fp.recipe) and not event.external


def _earlier(plan: str, artifact_id: str, seq: int, at: str, done: ev.ArtifactCompleted | Completion) -> Earlier:
    parts = (done.fp, done.outputs, done.verified, done.wrote, done.ms, done.prompt, done.stdout)
    return Earlier(plan, artifact_id, seq, at, *parts)


def named_by(record: ev.Record) -> list[str]:
    """Digests of output bytes that an event names, each with its sign."""
    event = record.event
    if isinstance(event, ev.Came):
        return _signed(event.outputs, SIGNS.get(event.how, ""))
    if isinstance(event, ev.OutputAccepted):
        return _signed(event.outputs, ACCEPTED)
    if isinstance(event, ev.EditPreserved):
        return _signed(event.outputs, KNOWN)
    if isinstance(event, ev.ArtifactFailed):
        return _signed(event.left, KNOWN)  # which may be what it found there
    if isinstance(event, WHOLE):
        return [word for done in _recorded(event) for word in _signed(done.outputs, SIGNS.get(done.how, ""))]
    return []


def _places(record: ev.Record) -> list[tuple[str, str]]:
    """What an event says was made, and where."""
    event = record.event
    done = [event] if isinstance(event, ev.Came) else _recorded(event) if isinstance(event, WHOLE) else []
    return [(output.path, output.digest) for came in done if came.how not in SIGNS for output in came.outputs]


def _recorded(event: ev.PlanImported | ev.PlanRebuilt) -> list[Completion]:
    """What was there when a plan was taken over as a whole."""
    state = decode_state(event.state)
    skipped = (skip.last for skip in state.skipped.values() if skip.last)
    return [*state.completed.values(), *state.made.values(), *skipped]


def _signed(outputs: Sequence[Output], sign: str) -> list[str]:
    return [sign + output.digest for output in outputs]
