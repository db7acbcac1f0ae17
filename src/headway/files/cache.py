"""cache.sqlite: what saves work and can be deleted at any time: the stat cache, and an index of earlier completions.

Derived from files and ledgers. A cache that cannot be read or written is as good as none, and nobody is told.
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Collection, Iterable, Iterator
from contextlib import contextmanager, suppress
from operator import itemgetter
from typing import Any, NamedTuple

import msgspec

from headway.core.paths import is_text
from headway.files.observe import Entry, Stat

SCHEMA = 4
TABLES = """
CREATE TABLE IF NOT EXISTS stats (
  path TEXT PRIMARY KEY, size INT, mtime INT, ctime INT, inode INT, digest TEXT, kind TEXT, at INT) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS made (key TEXT, plan TEXT, seq INT, PRIMARY KEY (key, seq, plan)) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS named (digest TEXT, plan TEXT, PRIMARY KEY (digest, plan)) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS ledgers (plan TEXT PRIMARY KEY, seq INT, hash TEXT) WITHOUT ROWID;
"""


COLUMNS = "path, size, mtime, ctime, inode, digest, kind, at"
ROW = 640
"""A cache of fewer bytes for each path that is asked for is read as a whole: looking them up would take longer."""

PATIENCE = 5.0
"""So many seconds are waited for others who write to it."""

UNUSABLE = (sqlite3.Error, UnicodeDecodeError)
"""What a file that is no cache any more ends in: what is wrong with it may be told in bytes that are no text."""


class Made(NamedTuple):
    """An earlier completion: which plan's ledger names it, as which event."""

    key: str
    plan: str
    seq: int


class Cache:
    """One project's cache."""

    def __init__(self, path: str) -> None:
        self.path = path
        self._db: sqlite3.Connection | None = None
        self._broken = False
        self._was_held = False

    def stats(self, paths: Collection[str] | None = None) -> dict[str, Entry]:
        """The stat cache: what it has of these paths, and perhaps others: where they are most of it, all is read."""
        if paths is None or len(paths) * ROW > self.size():
            rows = self._rows(f"SELECT {COLUMNS} FROM stats")
        else:
            wanted = msgspec.json.encode([path for path in paths if is_text(path)]).decode()
            rows = self._rows(f"SELECT {COLUMNS} FROM stats WHERE path IN (SELECT value FROM json_each(?))", wanted)
        return {path: Entry(Stat(s, m, c, i), digest, kind, at) for path, s, m, c, i, digest, kind, at in rows}

    def stat(self, path: str) -> Entry | None:
        """What it has of one path."""
        rows = self._rows(f"SELECT {COLUMNS} FROM stats WHERE path = ?", path) if is_text(path) else []
        return next((Entry(Stat(s, m, c, i), digest, kind, at) for _, s, m, c, i, digest, kind, at in rows), None)

    def size(self) -> int:
        """How many bytes it has; 0 where there is none."""
        try:
            return os.path.getsize(self.path)
        except OSError:
            return 0

    def keep_stats(self, entries: Iterable[tuple[str, Entry]]) -> None:
        """Add to the stat cache: in the order of its pages, so that each is touched once."""
        rows = sorted(
            [(path, *e.stat, e.digest, e.kind, e.at) for path, e in entries if path.isascii() or is_text(path)],
            key=itemgetter(0),
        )
        put = "INSERT OR REPLACE INTO stats VALUES (?,?,?,?,?,?,?,?)"
        with self._writing() as db:
            if db is None or not rows:
                return
            try:
                db.executemany(put, rows)
            except OverflowError:  # of files of another century, which are hashed each time, there is no row
                db.executemany(put, [row for row in rows if all(abs(n) < 1 << 63 for n in (*row[1:5], row[7]))])

    def indexed(self) -> dict[str, tuple[int, str]]:
        """How far each plan's ledger has been indexed."""
        return {plan: (seq, hash_) for plan, seq, hash_ in self._rows("SELECT plan, seq, hash FROM ledgers")}

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
            left = [(key, plan, seq) for key, seq in gone]
            db.executemany("DELETE FROM made WHERE key = ? AND plan = ? AND seq = ?", left)
            rows = [(key, plan, seq) for key, seq in sorted(made)]  # in the table's order: its pages are met once
            db.executemany("INSERT OR REPLACE INTO made VALUES (?,?,?)", rows)
            db.executemany("INSERT OR IGNORE INTO named VALUES (?,?)", [(digest, plan) for digest in sorted(named)])
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

    def made(self, key: str) -> list[Made]:
        """Earlier completions with this key, newest first."""
        return [
            Made(*row) for row in self._rows("SELECT key, plan, seq FROM made WHERE key = ? ORDER BY seq DESC", key)
        ]

    def keys(self) -> set[str]:
        """The keys of all earlier completions: as one text, for a row each takes three times as long."""
        ((keys,),) = self._rows("SELECT group_concat(key, ' ') FROM made") or [("",)]
        return set((keys or "").split())

    def any_made(self) -> bool:
        """Whether there is any earlier completion."""
        return bool(self._rows("SELECT 1 FROM made LIMIT 1"))

    def is_named(self, digest: str) -> bool:
        """Whether some ledger names these bytes."""
        return bool(self._rows("SELECT 1 FROM named WHERE digest = ? LIMIT 1", digest))

    def close(self) -> None:
        """Let go of the file."""
        if self._db is not None:
            self._db.close()
            self._db = None

    def _open(self, *, create: bool) -> sqlite3.Connection | None:
        if self._db is not None or self._broken or not (create or os.path.exists(self.path)):
            return self._db
        try:
            self._db = self._connect(create=create)
        except UNUSABLE:
            if create:
                with suppress(OSError):
                    os.replace(self.path, f"{self.path}.bad")
                with suppress(*UNUSABLE):
                    self._db = self._connect(create=True)
        self._broken = self._db is None
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

    def _rows(self, query: str, *values: str) -> list[tuple[Any, ...]]:
        db = self._open(create=False)
        if db is None:
            return []
        try:
            return db.execute(query, values).fetchall()
        except UNUSABLE:
            return []

    @contextmanager
    def _writing(self) -> Iterator[sqlite3.Connection | None]:
        """All that is written within, or nothing of it; None where nothing can be."""
        db = self._open(create=True)
        try:
            has_begun = db is not None and self._begin(db)
            yield db if has_begun else None
            if db is not None and has_begun:
                db.execute("COMMIT")
        except UNUSABLE:
            pass
        finally:
            if db is not None and db.in_transaction:
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
