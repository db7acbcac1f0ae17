"""Who writes files while others are made: in order, never far behind, and with a word when all of it is done."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import pytest

from headway.engine.scribe import BEHIND, Scribe
from tests.processes import soon


@pytest.fixture
def scribe() -> Iterator[Scribe]:
    """One with nothing to do yet."""
    found = Scribe()
    yield found
    found.close()


def test_whoever_is_too_far_ahead_waits_and_does_not_write_beside_it(scribe: Scribe) -> None:
    """Of what is given, one is being written, and so many wait; the next is taken when there is room."""
    gate, written, given = threading.Event(), list[tuple[int, str]](), list[int]()

    def write(number: int) -> None:
        assert gate.wait(30)
        written.append((number, threading.current_thread().name))

    def give() -> None:
        for number in range(BEHIND + 3):
            assert scribe.take(lambda number=number: write(number))  # type: ignore[misc]  # a default binds it
            given.append(number)

    giver = threading.Thread(target=give, daemon=True)
    giver.start()
    assert soon(lambda: len(given) == BEHIND + 1)
    giver.join(0.05)
    assert (giver.is_alive(), written) == (True, []), "it waits, and nothing is written by anybody else"
    gate.set()
    giver.join(30)
    scribe.finish(lambda: None)
    assert written == [(number, "headway-files") for number in range(BEHIND + 3)]


def test_what_cannot_be_written_keeps_nobody_waiting(scribe: Scribe) -> None:
    """What raises is its row's to tell; those behind it are written, and whoever waits for all of it goes on."""
    written, told = list[str](), threading.Event()

    def fail() -> None:
        raise OSError("no space left")

    assert scribe.take_last(fail, told.set)
    scribe.finish(lambda: written.append("the next"))
    assert (told.is_set(), written) == (True, ["the next"])


def test_where_no_thread_can_be_had_whoever_waits_writes_it(scribe: Scribe, monkeypatch: pytest.MonkeyPatch) -> None:
    """It says so to others, who write for themselves."""

    def refuse(_: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(threading.Thread, "start", refuse)
    written = list[str]()
    assert not scribe.take(lambda: written.append("lost"))
    scribe.finish(lambda: written.append(threading.current_thread().name))
    assert written == [threading.current_thread().name]
