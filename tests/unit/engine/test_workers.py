"""Rows of light tasks: who makes them, who writes them, and how many may wait for that."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator
from types import SimpleNamespace
from typing import Any, cast

import pytest

from headway.core.plan import ArtifactSpec
from headway.engine import workers
from headway.engine.making import Task
from headway.engine.row import Outcome, Row
from headway.engine.workers import LIGHT_UNWRITTEN, Workers
from tests.processes import soon

MANY = 50


class Rows:
    """Rows of one task each, whose files take until the gate is open."""

    def __init__(self) -> None:
        self.gate = threading.Event()
        self.begun: list[str] = []
        self.failing: set[str] = set()

    def row(self) -> Row:
        """The next one."""
        told: list[Outcome] = []

        def write() -> None:
            if threading.current_thread().name == "headway-files":
                assert self.gate.wait(30)

        def tell(after: float = 0.0) -> list[Outcome]:
            return [] if after else told

        return cast(Row, SimpleNamespace(scribe=None, told=told, write=write, tell=tell))

    def make(self, tasks: Iterable[Task], row: Any) -> bool:
        """At once, up to the first that fails."""
        for task in tasks:
            artifact_id = task.job.spec.id
            self.begun.append(artifact_id)
            row.told.append(Outcome(artifact_id, artifact_id not in self.failing))
        return not any(not outcome.ok for outcome in row.told)


@pytest.fixture
def rows(monkeypatch: pytest.MonkeyPatch) -> Iterator[Rows]:
    """What a test can do to them; in the end, nobody waits."""
    monkeypatch.setattr(workers, "LIGHT_FOR", 0.0)
    monkeypatch.setattr(workers, "LIGHT_LATE", 30.0)  # a busy machine makes nobody late
    monkeypatch.setattr(workers, "PROCESSORS", 2)
    found = Rows()
    yield found
    found.gate.set()


Started = Callable[[int], Workers]


@pytest.fixture
def started(rows: Rows) -> Started:
    """Workers with many light tasks, whose files are written by a thread of their own."""

    def start(jobs: int) -> Workers:
        found = Workers(jobs, rows.make, rows.row)
        for n in range(MANY):
            job = SimpleNamespace(spec=SimpleNamespace(id=str(n), make="tasks:make"))
            found.start(cast(Task, SimpleNamespace(job=job, light=True)))
        return found

    return start


@pytest.mark.parametrize("jobs", [1, 4])
def test_no_more_is_made_than_may_wait_to_be_written(
    rows: Rows, started: Started, jobs: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """However long the disk takes, and however many threads there are; all of it is told in the end."""
    found, told = started(jobs), list[Outcome]()
    while len(rows.begun) < LIGHT_UNWRITTEN:
        told += found.outcomes(30)
    assert soon(lambda: not found._ended.empty() or not found.busy), "the last of them is made"
    monkeypatch.setattr(workers, "LIGHT_LATE", 0.01)
    told += [outcome for _ in range(9) for outcome in found.outcomes(0.02)]
    assert (told, rows.begun) == ([], [str(n) for n in range(LIGHT_UNWRITTEN)])
    assert not found.overdue(), "it is none of theirs that takes so long"
    rows.gate.set()
    while len(told) < MANY:
        told += found.outcomes(30)
    assert [outcome.id for outcome in told] == [str(n) for n in range(MANY)]


def test_behind_one_that_failed_nothing_begins_until_it_was_told(rows: Rows, started: Started) -> None:
    """Whoever is told may want to stop."""
    rows.failing.add("2")
    rows.gate.set()
    found, told = started(1), list[Outcome]()
    while all(outcome.ok for outcome in told):
        told += found.outcomes(30)
    assert soon(lambda: found._idle), "nobody is at another one"
    assert rows.begun == ["0", "1", "2"]
    for _ in range(3):  # the one before it may have been written last
        found.outcomes(30)
    assert rows.begun[3:]


def test_where_few_threads_can_be_had_all_of_them_work(monkeypatch: pytest.MonkeyPatch) -> None:
    """What waits for one of them waits for whoever is done first, and for nobody while one is idle."""
    real, started, lock = threading.Thread.start, list[str](), threading.Lock()

    def start(thread: threading.Thread) -> None:
        if thread.name.startswith("headway-"):
            if len(started) == 2:
                raise RuntimeError("can't start new thread")
            started.append(thread.name)
        real(thread)

    monkeypatch.setattr(threading.Thread, "start", start)
    working, most = list[str](), list[int]()
    both = threading.Barrier(2, timeout=30)

    def make(tasks: Iterable[Task], row: Any) -> bool:
        for task in tasks:
            with lock:
                working.append(task.job.spec.id)
                most.append(len(working))
            both.wait()
            with lock:
                working.remove(task.job.spec.id)
            row.told.append(Outcome(task.job.spec.id, True))
        return True

    found, told = Workers(4, make, Rows().row), list[Outcome]()
    for _ in range(3):  # rounds
        for n in range(4):
            job = SimpleNamespace(spec=SimpleNamespace(id=str(n), make="m"))
            found.start(cast(Task, SimpleNamespace(job=job, light=False)))
        while len(told) < 4:
            told += found.outcomes(30)
        assert sorted(outcome.id for outcome in told) == ["0", "1", "2", "3"]
        told.clear()
    assert (max(most), found.free) == (2, 2)
    found.close()


def test_who_ends_after_everybody_has_left_waits_for_nobody(rows: Rows) -> None:
    """Its row failed, so it waits until that is written; by then there may be nobody who writes."""
    gate = threading.Event()

    def make(tasks: Iterable[Task], row: Any) -> bool:
        assert gate.wait(30)
        return not [*tasks]

    found = Workers(1, make, rows.row)
    job = SimpleNamespace(spec=SimpleNamespace(id="a", make="m"))
    found.start(cast(Task, SimpleNamespace(job=job, light=True)))
    found.outcomes(0.01)
    found.close()
    gate.set()
    found._threads[0].join(30)
    assert not found._threads[0].is_alive()


def test_what_is_learned_of_many_is_what_is_learned_of_each() -> None:
    """Whether they were quick, late or slow, known or not: who is light from here on is the same."""
    times = [0] * 20 + [5] + [1] * 9 + [500] + [2] * 30
    tasks = [cast(Task, SimpleNamespace(job=SimpleNamespace(spec=ArtifactSpec(id="a", make="f")))) for _ in times]
    outcomes = [Outcome("a", True, ms=ms) for ms in times]
    for count in range(len(times)):
        one_by_one, together = (Workers(1, lambda _, row: True, lambda: cast(Row, None)) for _ in range(2))
        for task, outcome in zip(tasks[:count], outcomes[:count], strict=True):
            one_by_one.learn(task.job.spec, outcome)
        together.learn_all(tasks[:count], outcomes[:count])
        assert together._quick == one_by_one._quick
