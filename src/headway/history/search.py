"""Finding things again: full-text search over goals, artifacts, contracts, failures and learnings.

An index in cache.sqlite (FTS5), brought up to date by whoever searches, goal by goal; deleted, it is made again. Where
the cache cannot be written, the same is done in memory. What counts is always the goals, and behind them the ledgers.
"""

from __future__ import annotations

import os
import re
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing, suppress
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

from headway.errors import HeadwayError, UsageError
from headway.history.dag import Dag
from headway.history.goals import path_of
from headway.history.shapes import GoalDetail, task_id

SCHEMA = "2"
TABLES = (
    "CREATE TABLE dag_meta (name TEXT PRIMARY KEY, value TEXT) WITHOUT ROWID",
    "CREATE TABLE dag_goals (goal TEXT PRIMARY KEY, seq INT, size INT, state TEXT) WITHOUT ROWID",
    "CREATE TABLE dag_rows (id INTEGER PRIMARY KEY, goal, kind, node, path, status, at, ms INT, text)",
    "CREATE INDEX dag_rows_goal ON dag_rows (goal)",
    "CREATE VIRTUAL TABLE dag_text USING fts5 (name, text, tokenize='unicode61 remove_diacritics 2')",
    f"INSERT INTO dag_meta VALUES ('schema', '{SCHEMA}')",
)
RANKED = 4000
"""More matches than this are not put in order of how well they match: a word that is everywhere tells nothing."""

NEWEST = 50
WORDS, BEST = 24, 3
"""So many words of a text are looked for; so many matches of a goal count."""
EMPTY = frozenset(
    ("the", "and", "for", "with", "from", "that", "this", "into", "not", "are", "was", "has", "have", "its", "our",
     "all", "any", "each", "can", "will", "should", "make", "made", "add", "build", "create", "use", "using", "new")
)  # fmt: skip
"""Words that goals have in common whatever they are about."""

T = TypeVar("T")

_WORD = re.compile(r"\w+")
_HUMP = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|[_\-./:]+")


class Hit(NamedTuple):
    """Something that was found: what kind of thing, of which goal, and the words that matched."""

    kind: str
    goal: str
    node: str
    path: str
    status: str
    at: str
    text: str

    def to_dict(self) -> dict[str, str]:
        """The same for machines."""
        return self._asdict()


class Search:
    """Searches the history of one project.

    `aside`: for somebody who only looks, and is in a hurry. Nothing is written; what the index lacks is taken in for
    this once, as far as `NEWEST` goals go.
    """

    def __init__(self, dag: Dag, *, aside: bool = False) -> None:
        self._dag = dag
        self._aside = aside

    def find(self, text: str, *, kind: str = "", limit: int = 20) -> list[Hit]:
        """What matches all of these words, or beginnings of words; the best first, or the newest of very many."""
        query = _query(text)
        if not query:
            raise UsageError("There is nothing to search for", hint="headway dag search WORD…", code="search.empty")

        def look(db: sqlite3.Connection) -> list[Any]:
            (count,) = db.execute("SELECT count(*) FROM dag_text WHERE dag_text MATCH ?", (query,)).fetchone()
            order = "bm25(dag_text, 4.0, 1.0), r.at DESC, r.id" if count <= RANKED else "t.rowid DESC"
            return db.execute(
                "SELECT r.kind, r.goal, r.node, r.path, r.status, r.at, r.text FROM dag_text t JOIN dag_rows r"
                " ON r.id = t.rowid WHERE dag_text MATCH ? AND (? = '' OR r.kind = ?)"
                f" ORDER BY {order} LIMIT ?",
                (query, kind, kind, limit),
            ).fetchall()

        return [Hit(*row) for row in self._ask(look)]

    def related(self, text: str, *, limit: int = 5) -> dict[str, list[Hit]]:
        """Goals that have to do with a text, the nearest first, each with what of it matched.

        Any word may match; a goal counts by its best matches, rare words more than common ones.
        """
        words = [word for word in dict.fromkeys(_WORD.findall(text.lower())) if len(word) > 2 and word not in EMPTY]
        if not words:
            return {}
        query = " OR ".join(f'"{word}"' if len(word) < 5 else f'"{word}"*' for word in words[:WORDS])

        def look(db: sqlite3.Connection) -> list[Any]:
            (count,) = db.execute("SELECT count(*) FROM dag_text WHERE dag_text MATCH ?", (query,)).fetchone()
            rank = "bm25(dag_text, 4.0, 1.0)" if count <= RANKED else "-1.0"
            return db.execute(
                f"SELECT r.kind, r.goal, r.node, r.path, r.status, r.at, r.text, {rank} FROM dag_text t JOIN dag_rows r"
                " ON r.id = t.rowid WHERE dag_text MATCH ? ORDER BY 8, r.at DESC LIMIT 200",
                (query,),
            ).fetchall()

        found: dict[str, list[Hit]] = {}
        scores: dict[str, float] = {}
        for *hit, score in self._ask(look):
            known = found.setdefault(hit[1], [])
            if len(known) < BEST:
                scores[hit[1]] = scores.get(hit[1], 0.0) + score
            known.append(Hit(*hit))
        nearest = sorted(found, key=lambda goal: scores[goal])[:limit]
        return {goal: found[goal] for goal in nearest}

    def totals(self) -> dict[str, Any]:
        """Figures over all goals: how many of which status, what they took, by month, and what failed most."""

        def look(db: sqlite3.Connection) -> dict[str, Any]:
            by_status = db.execute("SELECT status, count(*) FROM dag_rows WHERE kind='goal' GROUP BY 1 ORDER BY 1")
            months = db.execute(
                "SELECT substr(at, 1, 7), count(*), sum(ms) FROM dag_rows WHERE kind='goal' GROUP BY 1 ORDER BY 1"
            )
            artifacts = db.execute("SELECT status, count(*), sum(ms) FROM dag_rows WHERE kind='artifact' GROUP BY 1")
            failures = db.execute(
                "SELECT text, count(*), count(DISTINCT goal) FROM dag_rows WHERE kind='failure'"
                " GROUP BY 1 ORDER BY 2 DESC, 1 LIMIT 10"
            )
            return {
                "goals": dict(by_status.fetchall()),
                "months": [{"month": m, "goals": n, "ms": ms or 0} for m, n, ms in months],
                "artifacts": {status: {"count": n, "ms": ms or 0} for status, n, ms in artifacts},
                "failures": [{"error": text, "count": n, "goals": g} for text, n, g in failures],
            }

        return self._ask(look)

    def _ask(self, look: Callable[[sqlite3.Connection], T]) -> T:
        """Look into the index, with every goal in it as it is now. Where it is locked by others, read-only or spoiled,
        also where only the question comes upon it, one in memory does as well."""
        most = NEWEST if self._aside else None
        with suppress(sqlite3.Error), closing(self._copy() if self._aside else self._open()) as db:
            self._bring_up_to_date(_prepared(db), most)
            return look(db)
        with closing(_prepared(_in_memory())) as db:
            self._bring_up_to_date(db, most)
            return look(db)

    def _copy(self) -> sqlite3.Connection:
        """The index as it was left, in memory."""
        path = os.path.join(self._dag.home, "cache.sqlite")
        copy = _in_memory()
        with suppress(sqlite3.Error), closing(sqlite3.connect(f"{Path(path).as_uri()}?mode=ro", uri=True)) as db:
            if _is_ours(db):
                db.backup(copy)
        return copy

    def _open(self) -> sqlite3.Connection:
        if not os.path.isdir(self._dag.home):
            return _in_memory()
        return sqlite3.connect(os.path.join(self._dag.home, "cache.sqlite"), timeout=5, isolation_level=None)

    def _bring_up_to_date(self, db: sqlite3.Connection, most: int | None = None) -> None:
        wanted = {e.id: (e.seq, e.size, _state(e.status, e.gone)) for e in self._dag.index().goals}
        rows = db.execute("SELECT goal, seq, size, state FROM dag_goals").fetchall()
        known = {goal: (seq, size, state) for goal, seq, size, state in rows}
        changed = [goal for goal, position in wanted.items() if known.get(goal) != position]
        changed = changed[-most:] if most is not None else changed
        gone = [goal for goal in known if goal not in wanted]
        if not changed and not gone:
            return
        db.execute("BEGIN IMMEDIATE")
        try:
            for goal in (*changed, *gone):
                _forget(db, goal)
            for goal in changed:
                self._take_in(db, goal, wanted[goal])
            db.execute("COMMIT")
        except BaseException:
            with suppress(sqlite3.Error):  # SQLite has done so itself where the file is spoiled
                db.execute("ROLLBACK")
            raise

    def _take_in(self, db: sqlite3.Connection, goal_id: str, position: tuple[int, int, str]) -> None:
        try:
            goal = self._dag.goal(goal_id)
        except HeadwayError:
            return
        (newest,) = db.execute("SELECT coalesce(max(id), 0) FROM dag_rows").fetchone()
        rows = [(number, *row) for number, row in enumerate(_rows(goal), newest + 1)]
        db.executemany("INSERT INTO dag_rows VALUES (?,?,?,?,?,?,?,?,?)", rows)
        names = [(row[0], _words(f"{row[3]} {row[4]}"), row[8]) for row in rows]
        db.executemany("INSERT INTO dag_text (rowid, name, text) VALUES (?,?,?)", names)
        db.execute("INSERT OR REPLACE INTO dag_goals VALUES (?,?,?,?)", (goal_id, *position))


def _state(status: str, gone: bool) -> str:
    return f"{status} gone" if gone else status


def _in_memory() -> sqlite3.Connection:
    return sqlite3.connect(":memory:", isolation_level=None)


def _prepared(db: sqlite3.Connection) -> sqlite3.Connection:
    db.execute("PRAGMA synchronous=OFF")
    if not _is_ours(db):
        db.execute("BEGIN IMMEDIATE")
        if not _is_ours(db):  # nobody else was faster
            for table in ("dag_text", "dag_rows", "dag_goals", "dag_meta"):
                db.execute(f"DROP TABLE IF EXISTS {table}")
            for statement in TABLES:
                db.execute(statement)
        db.execute("COMMIT")
    return db


def _is_ours(db: sqlite3.Connection) -> bool:
    there = db.execute("SELECT 1 FROM sqlite_master WHERE name='dag_meta'").fetchone()
    return there is not None and db.execute("SELECT value FROM dag_meta WHERE name='schema'").fetchone() == (SCHEMA,)


def _forget(db: sqlite3.Connection, goal: str) -> None:
    db.execute("DELETE FROM dag_text WHERE rowid IN (SELECT id FROM dag_rows WHERE goal = ?)", (goal,))
    db.execute("DELETE FROM dag_rows WHERE goal = ?", (goal,))
    db.execute("DELETE FROM dag_goals WHERE goal = ?", (goal,))


def _rows(goal: GoalDetail) -> Iterator[tuple[str, str, str, str, str, str, int, str]]:
    ms = round(goal.metrics.duration_seconds * 1000)
    for text in (goal.description, *goal.earlier_goals):
        yield goal.id, "goal", goal.id, "", goal.status, goal.created_at, ms, text
    for text in goal.learnings:
        yield goal.id, "learning", goal.id, "", goal.status, goal.updated_at, 0, text
    for task in goal.tasks:
        node, path, at = task_id(goal.id, task.id), path_of(task) or "", task.completed_at or goal.created_at
        yield goal.id, "artifact", node, path, "skipped" if task.skipped else task.status, at, task.ms, task.description
        if task.contract:
            yield goal.id, "contract", node, path, task.status, at, 0, task.contract
        if task.error:
            yield goal.id, "failure", node, path, task.status, goal.updated_at, 0, task.error


def _words(name: str) -> str:
    """A name and its parts: `UserModel` is found by `user`, too."""
    return f"{name} {' '.join(_HUMP.split(name))}"


def _query(text: str) -> str:
    """Every word as a beginning, all of them wanted: what people type is never read as a language."""
    return " ".join(f'"{word}"*' for word in _WORD.findall(text.replace("_", " ")))
