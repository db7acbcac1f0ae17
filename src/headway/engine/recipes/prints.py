"""What a function prints belongs to its attempt, not to the screen of whoever runs it.

While functions run, sys.stdout and sys.stderr tell by their context who writes: a function's words are kept, up to a
limit, and everybody else's go where they always went. Context is carried into a function's tasks and its timeout
thread. Threads that it starts itself, and what it writes past Python, are not its words any more.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, TypeVar

from headway.engine.recipes.command import Kept


class Prints:
    """What one attempt wrote, by stream."""

    __slots__ = ("_kept",)

    def __init__(self) -> None:
        self._kept: dict[str, Kept] = {}

    def __bool__(self) -> bool:
        return bool(self._kept)

    def add(self, name: str, text: str) -> None:
        """Keep it, as far as there is room."""
        kept = self._kept.get(name)
        if kept is None:
            kept = self._kept[name] = Kept()
        kept.add(text.encode("utf-8", "replace"))

    def bytes(self, name: str) -> bytes:
        """What was written to this stream."""
        kept = self._kept.get(name)
        return kept.bytes() if kept is not None else b""


Result = TypeVar("Result")
_writer: ContextVar[Prints | None] = ContextVar("headway_prints", default=None)
_lock = threading.Lock()
_listening = 0


class _Stream:
    """A stream that knows who writes."""

    def __init__(self, real: Any, name: str) -> None:
        self._real = real
        self._name = name

    def write(self, text: str) -> int:
        prints = _writer.get()
        if prints is None:
            written: int = self._real.write(text)
            return written
        prints.add(self._name, text)
        return len(text)

    def writelines(self, lines: Any) -> None:
        for line in lines:
            self.write(line)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._real, name)


def kept_prints(call: Callable[[], Result]) -> tuple[Result, Prints]:
    """What a call returns, and what it printed meanwhile. It must not raise. Cheap while somebody is `listening`."""
    prints = Prints()
    token = _writer.set(prints)
    try:
        if _listening:
            return call(), prints
        with listening():
            return call(), prints
    finally:
        _writer.reset(token)


@contextmanager
def listening() -> Iterator[None]:
    """Have the streams tell who writes: put in place for the first who asks, and taken away after the last."""
    _listen(1)
    try:
        yield
    finally:
        _listen(-1)


def _listen(more: int) -> None:
    global _listening
    with _lock:
        before, _listening = _listening, _listening + more
        for name in ("stdout", "stderr") if 0 in (before, _listening) else ():
            stream = getattr(sys, name)
            if not before and stream is not None:
                setattr(sys, name, _Stream(stream, name))
            elif before and isinstance(stream, _Stream):
                setattr(sys, name, stream._real)
