"""What a function prints belongs to its attempt, not to the screen of whoever runs it.

While functions run, sys.stdout and sys.stderr tell by their context who writes: a function's words are kept, up to a
limit, and everybody else's go where they always went. Context is carried into a function's tasks and its timeout
thread. Threads that it starts itself, and what it writes past Python, are not its words any more.
"""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, TypeVar, TypeVarTuple

import msgspec

from headway.engine.recipes.base import Kept


class Prints(msgspec.Struct, eq=False):
    """What one attempt wrote, by stream: most write nothing. `heard` is told at once."""

    heard: Callable[[bytes], None] | None = None
    kept: dict[str, Kept] | None = None

    def add(self, name: str, text: str) -> None:
        """Keep it, as far as there is room."""
        streams = self.kept if self.kept is not None else self._begun()
        kept = streams.get(name)
        if kept is None:
            kept = streams[name] = Kept()
        data = text.encode("utf-8", "replace")
        kept.add(data)
        if self.heard is not None:
            self.heard(data)

    def _begun(self) -> dict[str, Kept]:
        with _lock:  # it may have threads of its own that begin to write at once
            if self.kept is None:
                self.kept = {}
            return self.kept

    def bytes(self, name: str) -> bytes:
        """What was written to this stream."""
        kept = self.kept.get(name) if self.kept is not None else None
        return kept.bytes() if kept is not None else b""


Result = TypeVar("Result")
Given = TypeVarTuple("Given")
_writer: ContextVar[Prints | None] = ContextVar("headway_prints", default=None)
_lock = threading.Lock()
_listeners: list[object] = []
_running: set[Prints] = set()


class _Stream:
    """A stream that knows who writes. What was put there while functions ran may be theirs: to them it is as it was."""

    def __init__(self, real: Any, name: str, theirs: frozenset[Prints]) -> None:
        self._real = real
        self._name = name
        self._theirs = theirs
        self._process = os.getpid()

    def write(self, text: str) -> int:
        prints = _writer.get()
        in_a_fork = os.getpid() != self._process  # where nobody would read what is kept
        if prints is None or prints in self._theirs or in_a_fork:
            written: int = self._real.write(text)
            return written
        prints.add(self._name, text)
        return len(text)

    def writelines(self, lines: Any) -> None:
        for line in lines:
            self.write(line)

    def close(self) -> None:
        """Who is listened to has no stream of its own to close; nobody else is to lose theirs."""
        prints = _writer.get()
        if prints is None or prints in self._theirs:
            self._real.close()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._real, name)


def kept_prints(
    heard: Callable[[bytes], None] | None, call: Callable[[*Given], Result], *args: *Given
) -> tuple[Result, Prints]:
    """What a call returns, and what it printed meanwhile, told to `heard` at once. Cheap while all is in place."""
    prints = Prints(heard)
    token = _writer.set(prints)
    try:
        if not _listeners:
            with listening():
                return call(*args), prints
        if type(sys.stdout) is not _Stream or type(sys.stderr) is not _Stream:
            _put_in_place()  # somebody has put a stream of their own before ours since
        _running.add(prints)
        return call(*args), prints
    finally:
        _running.discard(prints)
        _writer.reset(token)


@contextmanager
def listening() -> Iterator[None]:
    """Have the streams tell who writes: put in place for the first who asks, and taken away after the last."""
    me = object()
    with _lock:
        _listeners.append(me)
    _put_in_place()
    try:
        yield
    finally:
        with _lock:
            _listeners.remove(me)
            for name in ("stdout", "stderr") if not _listeners else ():
                stream = getattr(sys, name)
                if isinstance(stream, _Stream):
                    setattr(sys, name, stream._real)


def _put_in_place() -> None:
    with _lock:
        for name in ("stdout", "stderr"):
            stream = getattr(sys, name)
            if stream is not None and not isinstance(stream, _Stream):
                setattr(sys, name, _Stream(stream, name, frozenset(_running)))
