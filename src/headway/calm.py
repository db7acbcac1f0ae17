"""Fewer looks for cyclic garbage while a plan is in hand: many objects, no cycles, and each look visits them all."""

import gc
import os
from _thread import allocate_lock  # what threading offers, without the time to import it
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import TracebackType
from typing import Any

YOUNG = 50_000
"""So many new objects are let pass before the collector looks; Python's own is 700."""


class _Together:
    """What the first who comes in changes, and the last who goes puts back: threads come and go as they like."""

    def __init__(self, change: Callable[[], Any], put_back: Callable[[Any], None]) -> None:
        self._change = change
        self._put_back = put_back
        self._before: Any = None
        self._inside = 0
        self._lock = allocate_lock()
        if hasattr(os, "register_at_fork"):
            os.register_at_fork(after_in_child=self._begin_anew)

    def __enter__(self) -> None:
        with self._lock:
            if not self._inside:
                self._before = self._change()
            self._inside += 1

    def __exit__(
        self, _kind: type[BaseException] | None, _error: BaseException | None, _at: TracebackType | None
    ) -> None:
        with self._lock:
            self._inside -= 1
            if not self._inside:
                self._put_back(self._before)

    def _begin_anew(self) -> None:
        """In a forked child, which has one thread: whoever held the lock is not there."""
        self._lock = allocate_lock()


def calmly() -> _Together:
    """Within, the collector looks rarely; a program that has chosen to have it look more rarely still is followed."""
    return _CALM


def look_rarely() -> tuple[int, int, int]:
    """From now on, for a process that is there for nothing else; what was before."""
    before = gc.get_threshold()
    if 0 < before[0] < YOUNG:
        gc.set_threshold(YOUNG, *before[1:])
    return before


def paused() -> _Together:
    """Within, the collector does not look at all: for what is over in a moment, and leaves little behind."""
    return _PAUSED


def _switch_off() -> bool:
    was_on = gc.isenabled()
    gc.disable()
    return was_on


def _switch_on(was_on: bool) -> None:
    if was_on:
        gc.enable()


_CALM = _Together(look_rarely, lambda before: gc.set_threshold(*before))
_PAUSED = _Together(_switch_off, _switch_on)


@contextmanager
def still() -> Iterator[None]:
    """Within, the collector does not look at all, and what came meanwhile is passed over until the command ends.

    For a command that reads a plan before anything is made; `main` lets the collector see all of it again.
    """
    with paused():
        try:
            yield
        finally:
            gc.freeze()
