"""A thread that writes the files of rows, while those that come after them are made."""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable
from contextlib import suppress

from headway.engine.row import Row


class Scribe:
    """Takes rows, and says of each that it is written. Its thread is started with the first one, and ends with the
    process.
    """

    def __init__(self, written: Callable[[Row], None]) -> None:
        self._written = written
        self._rows: queue.SimpleQueue[Row | None] = queue.SimpleQueue()
        self._thread: threading.Thread | None = None
        self._lock = threading.Lock()

    def is_there(self) -> bool:
        """Whether it can be given rows: the system may allow no more threads."""
        with self._lock:
            if self._thread is None:
                thread = threading.Thread(target=self._write, name="headway-files", daemon=True)
                try:
                    thread.start()
                except RuntimeError:
                    return False
                self._thread = thread
            return True

    def take(self, row: Row) -> None:
        """Write its files as soon as those before are written."""
        self._rows.put(row)

    def close(self) -> None:
        """No more rows."""
        self._rows.put(None)

    def _write(self) -> None:
        while (row := self._rows.get()) is not None:
            with suppress(Exception):  # which a row sees to itself: other rows do not depend on that
                row.write()
            self._written(row)
