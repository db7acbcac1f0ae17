"""The stat cache: what it has is asked for before a file is hashed, and never believed of one that was touched."""

from __future__ import annotations

import os
import sqlite3
import threading
from pathlib import Path

import pytest

from headway.files import cache as cache_module
from headway.files.cache import Cache
from headway.files.observe import Entry, Observer


@pytest.fixture
def cache(tmp_path: Path) -> Cache:
    """The cache of a project with many files, each of which has been looked at."""
    observer = Observer(str(tmp_path))
    for number in range(50):
        (tmp_path / f"{number}.txt").write_text(str(number))
        os.utime(tmp_path / f"{number}.txt", (1, 1))
        observer.look(f"{number}.txt")
    kept = Cache(str(tmp_path / "cache.sqlite"))
    at_rest = ((path, Entry(e.stat, e.digest, e.kind, e.at + 10**9)) for path, e in observer.entries.items())
    kept.keep_stats(at_rest)
    return kept


@pytest.mark.parametrize("row", [0, 10**9], ids=["looked up", "read as a whole"])
def test_what_is_asked_for_is_found_whatever_is_sooner(cache: Cache, monkeypatch: pytest.MonkeyPatch, row: int) -> None:
    """Paths that it does not know, or that are no text, are simply not there."""
    monkeypatch.setattr(cache_module, "ROW", row)
    found = cache.stats(["3.txt", "7.txt", "none.txt", "\udcff"])
    assert {"3.txt", "7.txt"} <= found.keys() <= {f"{number}.txt" for number in range(50)}
    assert found["3.txt"] == cache.stat("3.txt")
    assert cache.stat("none.txt") is cache.stat("\udcff") is None


def test_a_file_that_is_not_at_hand_is_recalled_before_it_is_hashed(cache: Cache, tmp_path: Path) -> None:
    """One that was touched since is hashed all the same."""
    names = ["3.txt", "4.txt", "new.txt", "gone.txt"]
    (tmp_path / "4.txt").write_text("anew")
    (tmp_path / "new.txt").write_text("new")
    expected = [Observer(str(tmp_path)).look(name) for name in names]
    hashed: list[str] = []

    class Telling(Observer):
        def _hash(self, path: str, found: os.stat_result) -> tuple[str, os.stat_result]:
            hashed.append(path)
            return super()._hash(path, found)

    assert [Telling(str(tmp_path), {}, recall=cache.stat).look(name) for name in names] == expected
    assert hashed == ["4.txt", "new.txt"]


def test_a_cache_whose_own_words_are_garbled_is_as_good_as_none(cache: Cache) -> None:
    """SQLite then says what is wrong in bytes that are no text."""
    cache.close()
    path = Path(cache.path)
    garbled_bytes = path.read_bytes().replace(b"tablestats", b"table\xd2tats").replace(b"CREATE TABLE", b"CREATE ?ABLE")
    path.write_bytes(garbled_bytes)
    garbled = Cache(cache.path)
    assert (garbled.stats(), garbled.stat("3.txt"), garbled.made("key"), garbled.keys()) == ({}, None, [], set())
    anew = Cache(cache.path)
    anew.index("plan", None, (1, "hash"), [("key", 1)], ["digest"])
    assert anew.is_named("digest")


def test_a_cache_that_others_hold_is_as_good_as_none(
    cache: Cache, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What it has can be read, what is to be kept is not, nobody is told; and it is waited for once."""
    monkeypatch.setattr(cache_module, "PATIENCE", 0.1)
    holder = sqlite3.connect(tmp_path / "cache.sqlite", isolation_level=None)
    holder.execute("BEGIN IMMEDIATE")
    other = Cache(str(tmp_path / "cache.sqlite"))
    for _ in range(2):
        other.index("plan", None, (1, "hash"), [("key", 1)], ["digest"])
    assert (other.indexed(), other.stat("3.txt")) == ({}, cache.stat("3.txt"))
    holder.execute("ROLLBACK")
    other.index("plan", None, (1, "hash"), [("key", 1)], ["digest"])
    other.index("plan", (7, "else"), (9, "late"), [("late", 9)], [])  # what comes between was not kept
    other.index("plan", (1, "hash"), (2, "next"), [("more", 2)], [], gone=[("key", 1)])
    assert (other.indexed(), other.keys(), other.is_named("digest")) == ({"plan": (2, "next")}, {"more"}, True)
    holder.close()


def test_who_was_refused_to_write_still_waits_for_what_it_reads(cache: Cache, tmp_path: Path) -> None:
    """Somebody else's commit is over in a moment: what there is is not taken for nothing."""
    holder = sqlite3.connect(tmp_path / "cache.sqlite", isolation_level=None, check_same_thread=False)
    holder.execute("BEGIN IMMEDIATE")
    cache._was_held = True  # as after one refusal
    cache.index("plan", None, (1, "hash"), [("key", 1)], ["digest"])
    holder.execute("ROLLBACK")
    holder.execute("BEGIN EXCLUSIVE")
    over = threading.Timer(0.3, lambda: holder.execute("COMMIT"))
    over.start()
    assert cache.stat("3.txt") is not None
    over.join()
    holder.close()
