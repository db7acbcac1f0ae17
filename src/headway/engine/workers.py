"""A few threads that make artifacts side by side. Knows tasks and outcomes, not order."""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable

from headway.engine.making import Outcome, Task


class Workers:
    """Takes tasks, gives outcomes. Threads are started as they are needed and end with the process."""

    def __init__(self, count: int, make: Callable[[Task], Outcome]) -> None:
        self._count = count
        self._make = make
        self._tasks: queue.SimpleQueue[Task | None] = queue.SimpleQueue()
        self._outcomes: queue.SimpleQueue[Outcome] = queue.SimpleQueue()
        self._threads: list[threading.Thread] = []
        self.busy = 0

    @property
    def free(self) -> int:
        """How many more tasks can run at once."""
        return self._count - self.busy

    def start(self, task: Task) -> None:
        """Hand over a task."""
        self.busy += 1
        if len(self._threads) < min(self._count, self.busy):
            thread = threading.Thread(target=self._work, name=f"headway-{len(self._threads)}", daemon=True)
            self._threads.append(thread)
            thread.start()
        self._tasks.put(task)

    def outcomes(self, wait: float) -> list[Outcome]:
        """What has come of tasks since the last call; waits for at least one, up to a limit."""
        found: list[Outcome] = []
        try:
            found.append(self._outcomes.get(timeout=wait) if wait else self._outcomes.get_nowait())
            while True:
                found.append(self._outcomes.get_nowait())
        except queue.Empty:
            pass
        self.busy -= len(found)
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
            self._outcomes.put(outcome)
