"""Ctrl-C where the process goes on: a Python session or a notebook. The next run finds nothing in its way."""

from __future__ import annotations

import sqlite3
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from headway import Plan
from headway.engine import run, scheduler_lock
from headway.files import cache
from headway.files.cache import Cache
from headway.ledger import writer
from headway.ledger.file import FileLedger


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project of its own, in which nobody waits for long."""
    (tmp_path / "headway.toml").write_text("")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(writer.Writer._begin, "__defaults__", (0.5,))
    monkeypatch.setattr(cache, "PATIENCE", 0.5)
    monkeypatch.setattr(run, "DRAIN", 0.2)
    return tmp_path


def plan_of(text: str, make: Callable[..., Any] | None = None) -> Plan:
    """One artifact with that text."""
    plan = Plan("Say it", id="say")
    plan.add("a", make=make or (lambda: text), args={} if make is None else {"text": text}, produces="out/a.txt")
    return plan


@pytest.mark.parametrize(
    ("owner", "name"),
    [(scheduler_lock, "end_leftovers"), (FileLedger, "_write_head"), (FileLedger, "end"), (Cache, "indexed")],
    ids=["as its scheduler begins", "as a ledger is closed", "as a batch ends", "as it asks the cache"],
)
def test_wherever_it_strikes_nothing_stays_locked(monkeypatch: pytest.MonkeyPatch, owner: Any, name: str) -> None:
    """Locks are given back, whatever was being done."""
    plan_of("1").run()

    def struck(*_: Any, **__: Any) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as now:
        now.setattr(owner, name, struck)
        with pytest.raises(KeyboardInterrupt):
            plan_of("2").run()
    assert plan_of("3").run()["a"].text() == "3"


def test_half_of_what_was_being_kept_is_taken_back(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The cache is free for others."""
    plan_of("1").run()
    index = Cache.index

    def struck(self: Cache, plan: str, position: Any, _made: Any, named: Any, **more: Any) -> None:
        def half() -> Any:
            yield ("k", 1)
            raise KeyboardInterrupt

        index(self, plan, position, half(), named, **more)

    with monkeypatch.context() as now:
        now.setattr(Cache, "index", struck)
        with pytest.raises(KeyboardInterrupt):
            plan_of("2").run()
    other = sqlite3.connect(here / ".headway/cache.sqlite", timeout=0, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    other.execute("ROLLBACK")
    other.close()
    assert plan_of("3").run()["a"].text() == "3"


@pytest.mark.parametrize("writes", [False, True], ids=["returned", "written by itself"])
def test_what_a_function_comes_to_after_its_run_was_given_up_is_not_written(here: Path, writes: bool) -> None:
    """It is ended where it next gets back to Python code, and nobody's work is touched."""
    begun, go_on, over = threading.Event(), threading.Event(), list[str]()

    def late(text: str) -> str | None:
        begun.set()
        try:
            while not go_on.wait(0.01):
                pass
            time.sleep(0.05)
            if writes:
                (here / "out/a.txt").write_text(text)
                return None
            return text
        finally:
            over.append(text)

    def stop() -> str:
        if begun.is_set():
            raise KeyboardInterrupt
        return ""

    with pytest.raises(KeyboardInterrupt):
        plan_of("old", late).run(stop=stop)
    go_on.set()
    assert plan_of("new").run()["a"].text() == "new"
    deadline = time.monotonic() + 30
    while not over and time.monotonic() < deadline:
        time.sleep(0.01)
    time.sleep(0.1)
    assert (over, (here / "out/a.txt").read_text()) == (["old"], "new")
    assert plan_of("new").run().made == []
