"""Fewer looks for cyclic garbage while a plan is in hand: many objects, no cycles, and each look visits them all."""

import gc
from collections.abc import Iterator
from contextlib import contextmanager

YOUNG = 50_000
"""So many new objects are let pass before the collector looks; Python's own is 700."""


@contextmanager
def calmly() -> Iterator[None]:
    """Within, the collector looks rarely; a program that has chosen to have it look more rarely still is followed."""
    before = gc.get_threshold()
    look_rarely()
    try:
        yield
    finally:
        gc.set_threshold(*before)


def look_rarely() -> None:
    """From now on, for a process that is there for nothing else."""
    before = gc.get_threshold()
    if 0 < before[0] < YOUNG:
        gc.set_threshold(YOUNG, *before[1:])


@contextmanager
def paused() -> Iterator[None]:
    """Within, the collector does not look at all: for what is over in a moment, and leaves little behind."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()


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
