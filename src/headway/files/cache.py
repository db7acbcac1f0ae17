"""cache.sqlite: what saves work and can be deleted at any time: the stat cache, and an index of earlier completions.

Derived from files and ledgers. A cache that cannot be read or written is as good as none, and nobody is told.
"""

from __future__ import annotations

import os
import sqlite3
import zlib
from bisect import bisect, bisect_left
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from itertools import groupby
from operator import itemgetter
from typing import Any, NamedTuple

import msgspec

from headway.core.fingerprint import LENGTH
from headway.core.paths import is_text
from headway.files.observe import Entry

SCHEMA = 7
TABLES = """
CREATE TABLE IF NOT EXISTS stats (first TEXT PRIMARY KEY, entries BLOB);
CREATE TABLE IF NOT EXISTS made (bucket TEXT, plan TEXT, words TEXT);
CREATE TABLE IF NOT EXISTS named (bucket TEXT, plan TEXT, words TEXT);
CREATE INDEX IF NOT EXISTS made_in ON made (bucket);
CREATE INDEX IF NOT EXISTS named_in ON named (bucket);
CREATE TABLE IF NOT EXISTS ledgers (plan TEXT PRIMARY KEY, seq INT, hash TEXT) WITHOUT ROWID;
"""
"""A row holds many: what a run has made is written in hundreds of rows, not in tens of thousands.

`stats` are pages of entries, each from its first path up to the next page's, behind a checksum; the first page is that
of "". In `made` and `named` stands in one row what begins alike of all that a ledger gained at a time: `mark:seq`, or
what digests begin with, each with a space before and behind it.
"""

PAGE = 64
"""So many entries are written to a new page; one that has come to twice as many is divided."""

CHECK = 4
"""So many bytes before a page tell that it is as it was written."""

BUCKET = 2
"""So many letters tell in which bucket a mark or digest is."""

PATIENCE = 5.0
"""So many seconds are waited for others who write to it."""

PAGES = "SELECT first FROM stats ORDER BY first"
PAGES_BY_FIRST = "SELECT entries FROM stats WHERE first IN (SELECT value FROM json_each(?))"
PAGE_OF = "SELECT entries FROM stats WHERE first <= ? ORDER BY first DESC LIMIT 1"
Page = tuple[list[str], list[Entry]]

UNUSABLE = (sqlite3.Error, UnicodeDecodeError)
"""What a file that is no cache any more ends in: what is wrong with it may be told in bytes that are no text."""


class Made(NamedTuple):
    """An earlier completion: which plan's ledger names it, as which event."""

    plan: str
    seq: int


class Cache:
    """One project's cache."""

    def __init__(self, path: str) -> None:
        self.path = path
        self._db: sqlite3.Connection | None = None
        self._broken = False
        self._unreadable = False
        self._was_held = False

    def stats(self, paths: Iterable[str] | None = None) -> dict[str, Entry]:
        """The stat cache: what it has of these paths, and of those next to them; or all of it."""
        if paths is None:
            return _entries(self._rows("SELECT entries FROM stats", of=(bytes,)))
        paths = [path for path in paths if is_text(path)]
        if len(paths) == 1:
            return _entries(self._rows(PAGE_OF, *paths, of=(bytes,)))
        firsts = [first for (first,) in self._rows(PAGES)]
        pages = {firsts[bisect(firsts, path) - 1] for path in paths} if firsts else ()
        wanted = msgspec.json.encode(list(pages)).decode()
        return _entries(self._rows(PAGES_BY_FIRST, wanted, of=(bytes,)))

    def size(self) -> int:
        """How many bytes it has; 0 where there is none."""
        try:
            return os.path.getsize(self.path)
        except OSError:
            return 0

    def keep_stats(self, entries: Mapping[str, Entry], changed: Iterable[str]) -> None:
        """Add those that have changed to the stat cache: page by page, so that each is read and written once."""
        paths = sorted([path for path in changed if path in entries and (path.isascii() or is_text(path))])
        with self._writing() as db:
            if db is None or not paths:
                return
            firsts = [first for (first,) in _fitting(db.execute(PAGES), (str,))] or [""]
            bounds = [bisect_left(paths, first) for first in firsts[1:]]
            for first, start, end in zip(firsts, [0, *bounds], [*bounds, len(paths)], strict=True):
                if start < end:
                    page = db.execute("SELECT entries FROM stats WHERE first = ?", (first,)).fetchall()
                    rows = _pages(first, page, entries, paths[start:end])
                    db.executemany("INSERT OR REPLACE INTO stats VALUES (?,?)", rows)

    def indexed(self) -> dict[str, tuple[int, str]]:
        """How far each plan's ledger has been indexed."""
        rows = self._rows("SELECT plan, seq, hash FROM ledgers", of=(str, int, str))
        return {plan: (seq, hash_) for plan, seq, hash_ in rows}

    def index(
        self,
        plan: str,
        since: tuple[int, str] | None,
        position: tuple[int, str],
        made: Iterable[tuple[str, int]],
        named: Iterable[str],
        *,
        anew: bool = False,
        withdraw: bool = False,
        gone: Iterable[tuple[str, int]] = (),
    ) -> None:
        """Take in completions and digests of a ledger from one position up to another, if it is known up to there;
        `withdraw` those that were known before, or of these the ones that are `gone`; `anew`: nothing was known.
        """
        with self._writing() as db:
            if db is None:
                return
            if anew:
                self._forget(db, plan)
            elif db.execute("SELECT seq, hash FROM ledgers WHERE plan = ?", (plan,)).fetchone() != since:
                return  # something before it could not be kept, or somebody else was here
            if withdraw:
                db.execute("DELETE FROM made WHERE plan = ?", (plan,))
            if left := [(f" {mark}:{seq} ", mark[:BUCKET], plan) for mark, seq in gone]:
                db.executemany("UPDATE made SET words = replace(words, ?, ' ') WHERE bucket = ? AND plan = ?", left)
                db.execute("DELETE FROM made WHERE words = ' '")
            digests = [digest[:LENGTH] for digest in named]
            for table, words in (("made", [f"{mark}:{seq}" for mark, seq in made]), ("named", digests)):
                alike = groupby(sorted(words), key=itemgetter(slice(BUCKET)))
                rows = [(bucket, plan, f" {' '.join(found)} ") for bucket, found in alike]
                db.executemany(f"INSERT INTO {table} VALUES (?,?,?)", rows)
            db.execute("INSERT OR REPLACE INTO ledgers VALUES (?,?,?)", (plan, *position))

    def forget(self, plan: str) -> None:
        """A ledger that is gone names nothing any more."""
        with self._writing() as db:
            if db is not None:
                self._forget(db, plan)

    @staticmethod
    def _forget(db: sqlite3.Connection, plan: str) -> None:
        for table in ("made", "named", "ledgers"):
            db.execute(f"DELETE FROM {table} WHERE plan = ?", (plan,))

    def made(self, mark: str) -> list[Made]:
        """Earlier completions with this mark."""
        query, begin = "SELECT plan, words FROM made WHERE bucket = ? AND instr(words, ?)", f"{mark}:"
        rows = self._rows(query, mark[:BUCKET], f" {begin}", of=(str, str))
        found = [(plan, word.removeprefix(begin)) for plan, words in rows for word in words.split() if begin in word]
        return [Made(plan, int(seq)) for plan, seq in found if seq.isdecimal()]

    def marks(self) -> set[str]:
        """The marks of all earlier completions."""
        return {word.partition(":")[0] for (words,) in self._rows("SELECT words FROM made") for word in words.split()}

    def any_made(self) -> bool:
        """Whether there is any earlier completion."""
        return bool(self._rows("SELECT 1 FROM made LIMIT 1", of=(int,)))

    def is_named(self, digest: str, plan: str = "") -> bool:
        """Whether some ledger names these bytes, or that of a plan."""
        query = f"SELECT 1 FROM named WHERE bucket = ? AND instr(words, ?) {'AND plan = ?' if plan else ''} LIMIT 1"
        return bool(self._rows(query, digest[:BUCKET], f" {digest[:LENGTH]} ", *([plan] if plan else ()), of=(int,)))

    def close(self) -> None:
        """Let go of the file."""
        if self._db is not None:
            self._db.close()
            self._db = None

    def _open(self, *, create: bool) -> sqlite3.Connection | None:
        tried = self._broken if create else self._broken or self._unreadable
        if self._db is not None or tried or not (create or os.path.exists(self.path)):
            return self._db
        try:
            self._db = self._connect(create=create)
        except UNUSABLE:
            if create:
                with suppress(OSError):
                    os.replace(self.path, f"{self.path}.bad")
                with suppress(*UNUSABLE):
                    self._db = self._connect(create=True)
        if create:
            self._broken = self._db is None
        else:
            self._unreadable = self._db is None  # whoever writes to it makes it anew
        return self._db

    def _connect(self, *, create: bool) -> sqlite3.Connection | None:
        db = sqlite3.connect(self.path, timeout=PATIENCE, isolation_level=None, check_same_thread=False)
        db.execute("PRAGMA synchronous=OFF")
        if db.execute("PRAGMA user_version").fetchone()[0] != SCHEMA:
            if not create:
                db.close()
                return None
            for table in ("stats", "made", "named", "ledgers"):
                db.execute(f"DROP TABLE IF EXISTS {table}")
            db.executescript(TABLES)
            db.execute(f"PRAGMA user_version={SCHEMA}")
        return db

    def _rows(self, query: str, *values: str, of: tuple[type, ...] = (str,)) -> list[tuple[Any, ...]]:
        db = self._open(create=False)
        if db is None:
            return []
        try:
            return _fitting(db.execute(query, values), of)
        except UNUSABLE:
            return []

    @contextmanager
    def _writing(self) -> Iterator[sqlite3.Connection | None]:
        """All that is written within, or nothing of it; None where nothing can be."""
        db = self._open(create=True)
        has_begun = db is not None and self._begin(db)
        try:
            yield db if has_begun else None
            if db is not None and has_begun:
                db.execute("COMMIT")
        except UNUSABLE:
            pass
        finally:
            if db is not None and has_begun and db.in_transaction:
                with suppress(*UNUSABLE):
                    db.execute("ROLLBACK")

    def _begin(self, db: sqlite3.Connection) -> bool:
        """Begin to write, unless it cannot be or others have it: nobody waits for that twice."""
        try:
            if self._was_held:
                db.execute("PRAGMA busy_timeout=0")
            db.execute("BEGIN IMMEDIATE")
        except UNUSABLE:
            self._was_held = True
            return False
        finally:
            with suppress(*UNUSABLE):
                db.execute(f"PRAGMA busy_timeout={round(PATIENCE * 1000)}")
        return True


def _fitting(rows: Iterable[tuple[Any, ...]], kinds: tuple[type, ...]) -> list[tuple[Any, ...]]:
    """The rows that have what they have to have: in a damaged file, anything may stand anywhere."""
    return [row for row in rows if tuple(map(type, row)) == kinds]


def _entries(pages: Iterable[tuple[bytes]]) -> dict[str, Entry]:
    """The entries of some pages; of one that cannot be read, none."""
    found: dict[str, Entry] = {}
    for (data,) in pages:
        with suppress(msgspec.DecodeError, ValueError, TypeError):
            page = memoryview(data)[CHECK:]
            if data[:CHECK] == _check(page):
                found.update(dict(zip(*msgspec.msgpack.decode(page, type=Page), strict=True)))
    return found


def _check(page: bytes | memoryview) -> bytes:
    """What tells that a page is as it was written: a digest that only looks like one would be taken for a fact."""
    return zlib.crc32(page).to_bytes(CHECK)


def _pages(
    first: str, page: list[tuple[bytes]], entries: Mapping[str, Entry], paths: list[str]
) -> Iterator[tuple[str, bytes]]:
    """What a page comes to with the entries of more paths, which are in order: the same one, or several if they are too
    many.
    """
    if known := _entries(page):
        known.update([(path, entries[path]) for path in paths])
        entries, paths = known, sorted(known)
    size = PAGE if len(paths) > 2 * PAGE else len(paths)
    for start in range(0, len(paths), size):
        some = paths[start : start + size]
        yield some[0] if start else first, _encoded(some, [entries[path] for path in some])


def _encoded(paths: list[str], entries: list[Entry]) -> bytes:
    try:
        page = msgspec.msgpack.encode((paths, entries))
    except OverflowError:  # of files of another century, which are hashed each time, nothing is kept
        kept = [(p, e) for p, e in zip(paths, entries, strict=True) if all(abs(n) < 1 << 63 for n in (*e.stat, e.at))]
        page = msgspec.msgpack.encode(([path for path, _ in kept], [entry for _, entry in kept]))
    return _check(page) + page
