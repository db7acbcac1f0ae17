"""What a workspace remembers of every goal of its projects, so that a change of one costs one: in cache.sqlite.

Derived: deleted, or where it cannot be written, everything is looked at anew. Knows facts of goals and keys of
artifacts (their bytes, their contracts); what they mean is for others.
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterable, Mapping
from contextlib import closing
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

SCHEMA = "2"
TABLES = (
    "CREATE TABLE ws_meta (name TEXT PRIMARY KEY, value TEXT) WITHOUT ROWID",
    "CREATE TABLE ws_goals (project TEXT, goal TEXT, position TEXT, facts BLOB, PRIMARY KEY (project, goal))",
    "CREATE TABLE ws_keys (key TEXT, project TEXT, node TEXT, text TEXT, PRIMARY KEY (key, project)) WITHOUT ROWID",
    "CREATE INDEX ws_keys_project ON ws_keys (project)",
    f"INSERT INTO ws_meta VALUES ('schema', '{SCHEMA}')",
)


class GoalFacts(msgspec.Struct, array_like=True, gc=False):
    """What a workspace wants to know of a goal."""

    status: str
    at: str
    ms: int
    done: int
    failed: int
    troubled: bool
    made: list[tuple[str, str, str]]
    """Artifact, path and content hash of each output."""
    contracts: list[tuple[str, str, str]]
    """Artifact, key and text of each contract."""
    failures: list[tuple[str, str]]
    needed: list[tuple[str, str]]


class Key(NamedTuple):
    """An artifact of a project that has this key: its node, and what to show of it."""

    node: str
    text: str


_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(GoalFacts).decode


class WorkspaceCache:
    """The cache of one workspace; without a folder for it, an empty one that forgets."""

    def __init__(self, home: str) -> None:
        self._path = os.path.join(home, "cache.sqlite")
        self._db: sqlite3.Connection | None = None

    def __enter__(self) -> WorkspaceCache:
        if os.path.exists(self._path):
            try:
                self._db = sqlite3.connect(f"{Path(self._path).as_uri()}?mode=ro", uri=True, isolation_level=None)
                if not _is_ours(self._db):
                    self._close()
            except sqlite3.Error:
                self._close()
        return self

    def __exit__(self, *_: object) -> None:
        self._close()

    def _close(self) -> None:
        if self._db is not None:
            self._db.close()
            self._db = None

    # Reading. What cannot be read is not known.

    def token(self) -> str:
        """Names the index that it goes with; "" without one."""
        rows = self._rows("SELECT value FROM ws_meta WHERE name = 'token'", ())
        return str(rows[0][0]) if rows else ""

    def goals(self, project: str) -> dict[str, tuple[str, GoalFacts]]:
        """The goals of a project: the position that each was looked at, and what was seen."""
        rows = self._rows("SELECT goal, position, facts FROM ws_goals WHERE project = ?", (project,))
        try:
            return {goal: (position, _decode(facts)) for goal, position, facts in rows}
        except msgspec.DecodeError:
            return {}

    def keys(self, project: str) -> dict[str, Key]:
        """What is known of the artifacts of a project."""
        rows = self._rows("SELECT key, node, text FROM ws_keys WHERE project = ?", (project,))
        return {key: Key(node, text) for key, node, text in rows}

    def owners(self, key: str) -> dict[str, Key]:
        """The projects that have an artifact with this key."""
        rows = self._rows("SELECT project, node, text FROM ws_keys WHERE key = ? ORDER BY project", (key,))
        return {project: Key(node, text) for project, node, text in rows}

    def _rows(self, query: str, values: tuple[str, ...]) -> list[tuple[Any, ...]]:
        if self._db is None:
            return []
        try:
            return self._db.execute(query, values).fetchall()
        except sqlite3.Error:
            return []

    # Writing, by whoever refreshes.

    def write(
        self,
        goals: Mapping[str, Mapping[str, tuple[str, GoalFacts]]],
        keys: Mapping[str, Mapping[str, Key]],
        gone: Iterable[str],
        token: str,
    ) -> str:
        """Keep what was seen of these projects, and forget those that are gone; "" or why that could not be done."""
        try:
            with closing(sqlite3.connect(self._path, timeout=5, isolation_level=None)) as db:
                self._write(db, goals, keys, gone, token)
        except sqlite3.Error as error:
            return str(error)
        return ""

    def _write(
        self,
        db: sqlite3.Connection,
        goals: Mapping[str, Mapping[str, tuple[str, GoalFacts]]],
        keys: Mapping[str, Mapping[str, Key]],
        gone: Iterable[str],
        token: str,
    ) -> None:
        _prepare(db)
        db.execute("BEGIN IMMEDIATE")
        for project in gone:
            db.execute("DELETE FROM ws_goals WHERE project = ?", (project,))
            db.execute("DELETE FROM ws_keys WHERE project = ?", (project,))
        for project, found in goals.items():
            self._write_goals(db, project, found)
        for project, now in keys.items():
            self._write_keys(db, project, now)
        db.execute("INSERT OR REPLACE INTO ws_meta VALUES ('token', ?)", (token,))
        db.execute("COMMIT")

    def _write_goals(self, db: sqlite3.Connection, project: str, found: Mapping[str, tuple[str, GoalFacts]]) -> None:
        known = dict(db.execute("SELECT goal, position FROM ws_goals WHERE project = ?", (project,)).fetchall())
        for goal in known.keys() - found.keys():
            db.execute("DELETE FROM ws_goals WHERE project = ? AND goal = ?", (project, goal))
        new = [(project, g, p, _encode(facts)) for g, (p, facts) in found.items() if known.get(g) != p]
        db.executemany("INSERT OR REPLACE INTO ws_goals VALUES (?,?,?,?)", new)

    def _write_keys(self, db: sqlite3.Connection, project: str, now: Mapping[str, Key]) -> None:
        rows = db.execute("SELECT key, node, text FROM ws_keys WHERE project = ?", (project,)).fetchall()
        known = {key: Key(node, text) for key, node, text in rows}
        db.executemany(
            "DELETE FROM ws_keys WHERE key = ? AND project = ?", [(k, project) for k in known.keys() - now.keys()]
        )
        new = [(key, project, *found) for key, found in now.items() if known.get(key) != found]
        db.executemany("INSERT OR REPLACE INTO ws_keys VALUES (?,?,?,?)", new)


def _prepare(db: sqlite3.Connection) -> None:
    db.execute("PRAGMA synchronous=OFF")
    if not _is_ours(db):
        db.execute("BEGIN IMMEDIATE")
        for table in ("ws_meta", "ws_goals", "ws_keys"):
            db.execute(f"DROP TABLE IF EXISTS {table}")
        for statement in TABLES:
            db.execute(statement)
        db.execute("COMMIT")


def _is_ours(db: sqlite3.Connection) -> bool:
    there = db.execute("SELECT 1 FROM sqlite_master WHERE name='ws_meta'").fetchone()
    return there is not None and db.execute("SELECT value FROM ws_meta WHERE name='schema'").fetchone() == (SCHEMA,)
