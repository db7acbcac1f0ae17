"""Ctrl-C where the process goes on: a Python session or a notebook. The next run finds nothing in its way."""

from __future__ import annotations

import os
import sqlite3
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from headway import Plan
from headway.engine import beginning, run, scheduler_lock
from headway.engine.recipes import command
from headway.files import cache
from headway.files.cache import Cache
from headway.ledger import file, writer
from headway.ledger.file import FileLedger
from headway.ledger.lock import FileLock
from headway.store import PlanStore
from tests.processes import processes, soon


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project of its own, in which nobody waits for long."""
    (tmp_path / "headway.toml").write_text("")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(writer.Writer._begin, "__defaults__", (0.5,))
    monkeypatch.setattr(cache, "PATIENCE", 0.5)
    monkeypatch.setattr(run, "DRAIN", 0.2)
    return tmp_path


def plan_of(text: str, make: Callable[..., Any] | None = None, **keys: Any) -> Plan:
    """One artifact with that text."""
    plan = Plan("Say it", id="say")
    args = {} if make is None else {"text": text}
    plan.add("a", make=make or (lambda: text), args=args, produces="out/a.txt", **keys)
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


def test_a_ledger_that_is_being_closed_gives_its_lock_back(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever keeps it in hand, as a notebook does."""
    plan_of("1").run()
    ledger = PlanStore(str(here / ".headway/plans")).folder("say").ledger()
    ledger.begin(None)

    def struck(_: FileLedger) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(FileLedger, "_write_head", struck)
    monkeypatch.setattr(file, "HEAD_EVERY", 0.0)
    with pytest.raises(KeyboardInterrupt):
        ledger.end()
    assert not FileLock(str(here / ".headway/plans/say/append.lock")).is_taken()


def test_a_command_that_nobody_waits_for_any_more_is_ended(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """However it came to that."""
    mark = f"7{os.getpid()}.5"

    def struck(*_: Any) -> str:
        raise SystemExit

    monkeypatch.setattr(command, "_read", struck)
    plan = Plan("Wait", id="wait")
    plan.add("a", run=f"trap '' TERM; sleep {mark}", produces="a.txt")
    assert not plan.run(check=False).ok
    assert soon(lambda: not processes(mark))


def test_half_of_what_was_being_kept_is_taken_back(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The cache is free for others."""
    plan_of("1").run()
    index = Cache.index

    def struck(self: Cache, plan: str, since: Any, position: Any, _made: Any, named: Any, **more: Any) -> None:
        def half() -> Any:
            yield ("k", 1)
            raise KeyboardInterrupt

        index(self, plan, since, position, half(), named, **more)

    with monkeypatch.context() as now:
        now.setattr(Cache, "index", struck)
        with pytest.raises(KeyboardInterrupt):
            plan_of("2").run()
    other = sqlite3.connect(here / ".headway/cache.sqlite", timeout=0, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    other.execute("ROLLBACK")
    other.close()
    assert plan_of("3").run()["a"].text() == "3"


@pytest.mark.parametrize("timeout", [None, 60.0], ids=["", "with a timeout"])
@pytest.mark.parametrize("twice", [False, True], ids=["once", "pressed twice"])
@pytest.mark.parametrize("writes", [False, True], ids=["returned", "written by itself"])
def test_what_a_function_comes_to_after_its_run_was_given_up_is_not_written(
    here: Path, monkeypatch: pytest.MonkeyPatch, writes: bool, twice: bool, timeout: float | None
) -> None:
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

    def struck(_: beginning.Beginning) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as now:
        if twice:
            now.setattr(beginning.Beginning, "recall", struck)
        with pytest.raises(KeyboardInterrupt):
            plan_of("old", late, timeout=timeout).run(stop=stop)
    time.sleep(0.3)  # who waits for one with a timeout looks up now and then
    go_on.set()
    assert plan_of("new").run()["a"].text() == "new"
    deadline = time.monotonic() + 30
    while not over and time.monotonic() < deadline:
        time.sleep(0.01)
    time.sleep(0.1)
    assert (over, (here / "out/a.txt").read_text()) == (["old"], "new")
    assert plan_of("new").run().made == []
