"""A few threads that make artifacts side by side. Knows tasks and outcomes, not order.

While tasks come to a good end within moments, some more are handed over than can run at once, and outcomes are told
of several at a time: threads that wait for each other after every task would take longer than the tasks.
"""

from __future__ import annotations

import queue
import threading
import time
from collections import deque
from collections.abc import Callable

from headway.engine.making import Outcome, Task

AHEAD = 64
"""So many tasks more than can run at once are handed over at most."""

QUICK_MS, QUICK_ONES = 2, 8
"""Only while tasks take no longer than this, and after so many that did."""

TELL_EVERY = 0.003
"""An outcome waits at most so long, in seconds, for others to be told together with it."""


class Workers:
    """Takes tasks, gives outcomes. Threads are started as they are needed and end with the process."""

    def __init__(self, count: int, make: Callable[[Task], Outcome]) -> None:
        self.count = count
        self.busy = 0
        self._make = make
        self._tasks: queue.SimpleQueue[Task | None] = queue.SimpleQueue()
        self._outcomes: deque[Outcome] = deque()
        self._news: queue.SimpleQueue[None] = queue.SimpleQueue()
        self._told = 0.0
        self._threads: list[threading.Thread] = []
        self._quick = 0

    @property
    def free(self) -> int:
        """How many more tasks may be handed over."""
        return self.count + max(self._quick - QUICK_ONES, 0) - self.busy

    def start(self, task: Task) -> None:
        """Hand over a task."""
        self.busy += 1
        if len(self._threads) < min(self.count, self.busy):
            thread = threading.Thread(target=self._work, name=f"headway-{len(self._threads)}", daemon=True)
            self._threads.append(thread)
            thread.start()
        self._tasks.put(task)

    def outcomes(self, wait: float) -> list[Outcome]:
        """What has come of tasks since the last call; waits for at least one, up to a limit."""
        found: list[Outcome] = []
        try:
            self._news.get(timeout=wait)
            while True:
                self._news.get_nowait()
        except queue.Empty:
            pass
        while self._outcomes:
            found.append(self._outcomes.popleft())
        self.busy -= len(found)
        for outcome in found:
            quick = outcome.ok and outcome.ms <= QUICK_MS
            self._quick = min(self._quick + 1, QUICK_ONES + AHEAD) if quick else 0
        return found

    def recall(self) -> list[Task]:
        """Take back the tasks that no worker has begun."""
        found: list[Task] = []
        try:
            while (task := self._tasks.get_nowait()) is not None:
                found.append(task)
        except queue.Empty:
            pass
        self.busy -= len(found)
        self._quick = 0
        return found

    def close(self) -> None:
        """No more tasks."""
        for _ in self._threads:
            self._tasks.put(None)

    def _work(self) -> None:
        while (task := self._tasks.get()) is not None:
            try:
                outcome = self._make(task)
            except BaseException as error:  # noqa: BLE001  # a worker that died would hang the run
                outcome = Outcome(task.job.spec.id, False, (), "bug", f"{type(error).__name__}: {error}")
            self._outcomes.append(outcome)
            now = time.monotonic()
            if self._tasks.empty() or not outcome.ok or now - self._told > TELL_EVERY:
                self._told = now
                self._news.put(None)
