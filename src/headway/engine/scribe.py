"""A thread that writes files, while those that come after them are made."""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable
from contextlib import suppress

Work = tuple[Callable[[], object], Callable[[], object]]
"""What is to be done, and who is told of it when it is."""

BEHIND = 4
"""So much may wait for it: whoever comes with more waits as well, and is no further ahead than that. To write beside it
would help nobody: a folder takes one new name at a time, and whoever waits for that keeps a processor busy.
"""


class Scribe:
    """Does what it is given, one after the other. Its thread begins with the first of it, and ends with the process."""

    def __init__(self) -> None:
        self._given: queue.SimpleQueue[Work | None] = queue.SimpleQueue()
        self._room = threading.Semaphore(BEHIND)
        self._thread: threading.Thread | None = None
        self._lock = threading.Lock()
        self._is_closed = False

    def take(self, write: Callable[[], object]) -> bool:
        """Write soon; False if others have to: the system allows no more threads, or nobody waits any more."""
        return self.take_last(write, lambda: None)

    def take_last(self, write: Callable[[], object], written: Callable[[], object]) -> bool:
        """The same when all that came before is written, with a word when it is."""
        if not self._is_there():
            return False
        self._room.acquire()
        with self._lock:
            if not self._is_closed:
                self._given.put((write, written))
                return True
        self._room.release()
        return False

    def finish(self, write: Callable[[], object]) -> None:
        """Return when this, and all that came before, is written."""
        done = threading.Event()
        if self.take_last(write, done.set):
            done.wait()
        else:
            write()

    def close(self, *, wait: float = 0.0) -> None:
        """Nothing more comes; wait so many seconds at most until what is being written is."""
        with self._lock:
            self._is_closed = True
            self._given.put(None)
        if wait and self._thread is not None:
            self._thread.join(wait)

    def _is_there(self) -> bool:
        with self._lock:
            if self._is_closed:
                return False
            if self._thread is None:
                thread = threading.Thread(target=self._write, name="headway-files", daemon=True)
                try:
                    thread.start()
                except RuntimeError:
                    return False
                self._thread = thread
            return True

    def _write(self) -> None:
        while (given := self._given.get()) is not None:
            self._room.release()
            write, written = given
            with suppress(Exception):  # which a row sees to itself: other rows do not depend on that
                write()
            written()
