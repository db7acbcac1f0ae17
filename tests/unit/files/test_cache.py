"""The stat cache: what it has is asked for before a file is hashed, and never believed of one that was touched."""

from __future__ import annotations

import os
import sqlite3
import threading
from collections.abc import Collection
from hashlib import sha256
from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from headway.files import cache as cache_module
from headway.files.cache import Cache, _check, _encoded, _entries
from headway.files.observe import ABSENT, SMALL, Entry, Observer, _digest


@pytest.fixture
def cache(tmp_path: Path) -> Cache:
    """The cache of a project with many files, each of which has been looked at."""
    observer = Observer(str(tmp_path))
    for number in range(50):
        (tmp_path / f"{number}.txt").write_text(str(number))
        os.utime(tmp_path / f"{number}.txt", (1, 1))
        observer.look(f"{number}.txt")
    kept = Cache(str(tmp_path / "cache.sqlite"))
    at_rest = {path: Entry(e.stat, e.digest, e.kind, e.at + 10**9) for path, e in observer.entries.items()}
    kept.keep_stats(at_rest, at_rest)
    return kept


@pytest.mark.parametrize("size", [1, 3, 10**9], ids=["a page each", "few on a page", "all on one page"])
def test_what_is_asked_for_is_found_wherever_it_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, size: int) -> None:
    """Paths that it does not know, or that are no text, are simply not there; what was kept last counts."""
    monkeypatch.setattr(cache_module, "PAGE", size)
    cache = Cache(str(tmp_path / "cache.sqlite"))
    known: dict[str, Entry] = {}
    for lot in (range(0, 40, 2), range(0, 40, 5), range(40), range(13, 14)):
        new = {f"{n}.txt": Entry((n, lot.step, len(known), 1), "d" * 64, "file", lot.start) for n in lot}
        known |= new
        cache.keep_stats(known | {"\udcff": known["0.txt"]}, {*new, "\udcff", "never seen"})
        assert cache.stats() == known
        assert cache.stats(["3.txt", "7.txt", "none.txt", "\udcff"]).items() <= known.items()
        assert {path: cache.stats([path])[path] for path in known} == known
        assert {path: cache.stats([path, "none.txt"])[path] for path in known} == known
        assert cache.stats([*known, "0", "~"]) == known
    assert cache.stats([]) == {}


def test_of_a_file_of_another_century_nothing_is_kept(tmp_path: Path) -> None:
    """Its times are too large for it; the others on its page are kept."""
    cache = Cache(str(tmp_path / "cache.sqlite"))
    late, plain = (Entry((1, time, time, 1), "d" * 64, "file", 1) for time in (1 << 70, 1))
    cache.keep_stats({"a": plain, "b": late, "c": plain}, "abc")
    assert cache.stats() == {"a": plain, "c": plain}


@pytest.mark.parametrize("data", [b"\xc1", msgspec.msgpack.encode((["3.txt"], [])), b"\x92\x91\xa1\xff\x90", None])
def test_a_page_that_cannot_be_read_is_written_anew(cache: Cache, data: bytes | None) -> None:
    """What was on it is not known any more; what is kept from then on is."""
    entry = cache.stats()["3.txt"]
    with sqlite3.connect(cache.path) as db:
        db.execute("UPDATE stats SET entries = ?", (_check(data) + data if data else data,))
    db.close()
    assert (cache.stats(), cache.stats(["3.txt"])) == ({}, {})
    cache.keep_stats({"3.txt": entry}, ["3.txt"])
    assert cache.stats() == {"3.txt": entry}


@given(st.integers(0), st.integers(0, 7))
def test_of_a_page_in_which_a_bit_was_flipped_nothing_is_believed(place: int, bit: int) -> None:
    """A digest that is off by one bit would say that somebody edited the file."""
    entries = {f"{n}.txt": Entry((n, 1, 1, 1), f"{n:064x}", "file", 1) for n in range(3)}
    page = bytearray(_encoded(list(entries), list(entries.values())))
    assert _entries([(bytes(page),)]) == entries
    page[place % len(page)] ^= 1 << bit
    assert _entries([(bytes(page),)]) == {}


CELLS = [f"{table}.{name}" for table, names in {
    "stats": ("first", "entries"), "made": ("bucket", "plan", "words"), "named": ("plan", "words"),
    "ledgers": ("plan", "seq", "hash"),
}.items() for name in names]  # fmt: skip


@pytest.mark.parametrize("value", ["5", "x'9291a16190'", "' z:z '", "NULL"])
@pytest.mark.parametrize("cell", CELLS)
def test_a_cell_with_something_else_in_it_is_as_good_as_none(cache: Cache, cell: str, value: str) -> None:
    """Whatever it is, whoever asks and whoever writes goes on without it."""
    cache.index("plan", None, (1, "hash"), [("aab", 1)], ["d" * 64])
    table, name = cell.split(".")
    with sqlite3.connect(cache.path) as db:
        db.execute(f"UPDATE OR IGNORE {table} SET {name} = {value}")
    db.close()
    entry = Entry((1, 2, 3, 4), "d" * 64, "file", 5)
    assert cache.stats(["3.txt"]).keys() <= cache.stats(["3.txt", "4.txt"]).keys() <= cache.stats().keys()
    assert len(cache.made("aab")) <= 1
    assert cache.marks() <= {"aab", "z", "5"}
    assert cache.any_made() >= bool(cache.made("aab"))
    assert cache.is_named("d" * 64) or table == "named"
    assert cache.indexed() == {"plan": (1, "hash")} or table == "ledgers"
    cache.keep_stats({"3.txt": entry}, ["3.txt"])
    cache.index("plan", None, (2, "next"), [("aac", 2)], ["e" * 64], anew=True)
    assert cache.made("aac") == [("plan", 2)]


def test_what_was_taken_back_is_found_no_more(tmp_path: Path) -> None:
    """Of those that share a mark, or a row, only the one that is meant goes."""
    cache = Cache(str(tmp_path / "cache.sqlite"))
    cache.index("one", None, (3, "c"), [("aab", 1), ("aab", 2), ("aac", 3), ("bb", 3)], ["d" * 64, "e" * 64])
    cache.index("two", None, (2, "b"), [("aab", 2)], [])
    assert sorted(cache.made("aab")) == [("one", 1), ("one", 2), ("two", 2)]
    cache.index("one", (3, "c"), (4, "d"), [], [], gone=[("aab", 2), ("bb", 3)])
    assert sorted(cache.made("aab")) == [("one", 1), ("two", 2)]
    assert (cache.made("aa"), cache.made("bb"), cache.marks()) == ([], [], {"aab", "aac"})
    cache.index("one", (4, "d"), (5, "e"), [("aad", 5)], [], withdraw=True)
    assert (cache.marks(), cache.is_named("d" * 64), cache.is_named("d" * 40)) == ({"aab", "aad"}, True, True)
    cache.forget("one")
    assert (cache.marks(), cache.is_named("d" * 64), cache.indexed()) == ({"aab"}, False, {"two": (2, "b")})
    with sqlite3.connect(cache.path) as db:
        db.execute("UPDATE made SET words = ' aab:two '")
    db.close()
    assert cache.made("aab") == []


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

    assert [Telling(str(tmp_path), {}, recall=cache.stats).look(name) for name in names] == expected
    assert hashed == ["4.txt", "new.txt"]


@pytest.mark.parametrize("size", [0, 1, SMALL - 1, SMALL, 3 * SMALL])
@pytest.mark.parametrize("grown", [0, 1, SMALL], ids=["as it was", "a byte longer", "much longer"])
def test_a_file_has_the_digest_of_all_its_bytes(tmp_path: Path, size: int, grown: int) -> None:
    """However many these are, also if it has grown since it was looked at."""
    path = tmp_path / "file"
    path.write_bytes(b"x" * size)
    found = os.lstat(path)
    path.write_bytes(b"x" * (size + grown))
    digest, now = Observer(str(tmp_path))._hash("file", found)
    assert (digest, now.st_size) == (sha256(b"x" * (size + grown)).hexdigest(), size + grown)


def test_a_file_of_which_nobody_knows_the_size_is_read_to_its_end(tmp_path: Path) -> None:
    """Of some files the system tells none, and they do not change when they are looked at again."""
    (tmp_path / "file").write_bytes(b"more than was told")
    with (tmp_path / "file").open("rb") as file:
        assert _digest(file.fileno(), 0) == _digest(file.fileno(), 7) == sha256(b"more than was told").hexdigest()


def test_many_files_are_recalled_at_once_and_none_that_is_known_by_now(cache: Cache, tmp_path: Path) -> None:
    """What the cache has of old takes nobody's place; what it has beside them need not be asked for again."""
    asked: list[list[str]] = []

    def recall(paths: Collection[str]) -> dict[str, Entry]:
        asked.append(list(paths))
        return cache.stats()

    (tmp_path / "3.txt").write_text("anew")
    observer = Observer(str(tmp_path), recall=recall)
    now = observer.look("3.txt")
    seen = observer.entries["3.txt"]
    observer.recall(["3.txt", "none.txt"])
    assert (observer.entries["3.txt"], observer.entries["4.txt"]) == (seen, cache.stats()["4.txt"])
    assert [observer.look(name) for name in ("3.txt", "4.txt", "none.txt")] == [
        now,
        Observer(str(tmp_path)).look("4.txt"),
        ABSENT,
    ]
    assert asked == [["3.txt"], ["none.txt"]]


def test_a_cache_whose_own_words_are_garbled_is_as_good_as_none(cache: Cache) -> None:
    """SQLite then says what is wrong in bytes that are no text."""
    cache.close()
    path = Path(cache.path)
    garbled_bytes = path.read_bytes().replace(b"tablestats", b"table\xd2tats").replace(b"CREATE TABLE", b"CREATE ?ABLE")
    path.write_bytes(garbled_bytes)
    garbled = Cache(cache.path)
    assert (garbled.stats(), garbled.stats(["3.txt"]), garbled.made("key"), garbled.marks()) == ({}, {}, [], set())
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
    assert (other.indexed(), other.stats(["3.txt"])) == ({}, cache.stats(["3.txt"]))
    holder.execute("ROLLBACK")
    other.index("plan", None, (1, "hash"), [("key", 1)], ["digest"])
    other.index("plan", (7, "else"), (9, "late"), [("late", 9)], [])  # what comes between was not kept
    other.index("plan", (1, "hash"), (2, "next"), [("more", 2)], [], gone=[("key", 1)])
    assert (other.indexed(), other.marks(), other.is_named("digest")) == ({"plan": (2, "next")}, {"more"}, True)
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
    assert "3.txt" in cache.stats(["3.txt"])
    over.join()
    holder.close()


def test_a_cache_of_another_version_is_made_anew_by_whoever_writes_to_it(tmp_path: Path) -> None:
    """Also where the same object has looked into it before."""
    path = str(tmp_path / "cache.sqlite")
    with sqlite3.connect(path) as db:
        db.execute("PRAGMA user_version=4")
    db.close()
    cache = Cache(path)
    assert cache.indexed() == {}
    cache.index("p", None, (5, "h"), [("abcd1234", 3)], ["ff" * 32])
    assert (cache.indexed(), cache.is_named("ff" * 32)) == ({"p": (5, "h")}, True)
