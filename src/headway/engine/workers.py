"""Makes artifacts side by side: in threads, or, where a function is known to take no time, right here.

Knows tasks and outcomes, not order. Handing a task to a thread and waiting for it takes longer than many functions
take; those that were quick often enough are made by whoever asks for outcomes, several in a row.
"""

from __future__ import annotations

import queue
import threading
import time
from collections import deque
from collections.abc import Callable

from headway.core.plan import ArtifactSpec
from headway.engine.making import Outcome, Task

LIGHT_AT_ONCE = 64
"""So many light tasks are taken at once at most: what comes of them is recorded together."""

LIGHT_MS, LIGHT_AFTER = 2, 8
"""A function is light after so many times in a row in which it took no longer than this."""

LIGHT_FOR = 0.02
"""How long, in seconds, light tasks are made in a row before anything else is looked at."""


class Workers:
    """Takes tasks, gives outcomes. Threads are started as they are needed and end with the process."""

    def __init__(self, count: int, make: Callable[[Task], Outcome]) -> None:
        self._count = count
        self._make = make
        self._busy = 0
        self._tasks: queue.SimpleQueue[Task | None] = queue.SimpleQueue()
        self._outcomes: queue.SimpleQueue[Outcome] = queue.SimpleQueue()
        self._threads: list[threading.Thread] = []
        self._light: deque[Task] = deque()
        self._quick: dict[str, int] = {}

    @property
    def free(self) -> int:
        """How many more tasks can run in threads at once."""
        return self._count - self._busy

    @property
    def room(self) -> int:
        """How many more can be taken, light ones included."""
        return self.free + LIGHT_AT_ONCE - len(self._light)

    def is_light(self, spec: ArtifactSpec) -> bool:
        """Whether an artifact can be made at once, without a thread: its function was quick so far."""
        return (
            self._quick.get(spec.make, 0) >= LIGHT_AFTER and not (spec.effects or spec.gates) and spec.timeout is None
        )

    def start(self, task: Task) -> None:
        """Hand over a task."""
        if self.is_light(task.job.spec) and task.job.timeout is None:
            self._light.append(task)
            return
        self._busy += 1
        if len(self._threads) < min(self._count, self._busy):
            thread = threading.Thread(target=self._work, name=f"headway-{len(self._threads)}", daemon=True)
            self._threads.append(thread)
            thread.start()
        self._tasks.put(task)

    def outcomes(self, wait: float) -> list[Outcome]:
        """What has come of tasks since the last call; waits for at least one, up to a limit."""
        found = self._make_light()
        try:
            if not found:
                found.append(self._outcomes.get(timeout=wait))
                self._busy -= 1
            while True:
                found.append(self._outcomes.get_nowait())
                self._busy -= 1
        except queue.Empty:
            return found

    def learn(self, spec: ArtifactSpec, outcome: Outcome) -> None:
        """Take note of how long a function took."""
        if spec.make:
            quick = outcome.ok and outcome.ms <= LIGHT_MS
            self._quick[spec.make] = self._quick.get(spec.make, 0) + 1 if quick else 0

    def recall(self) -> list[Task]:
        """Take back the tasks that nobody has begun."""
        found, self._light = list(self._light), deque()
        return found

    def close(self) -> None:
        """No more tasks."""
        for _ in self._threads:
            self._tasks.put(None)

    def _make_light(self) -> list[Outcome]:
        found: list[Outcome] = []
        end = time.monotonic() + LIGHT_FOR if self._light else 0.0
        while self._light and time.monotonic() < end:
            found.append(self._make(self._light.popleft()))
        return found

    def _work(self) -> None:
        while (task := self._tasks.get()) is not None:
            try:
                outcome = self._make(task)
            except BaseException as error:  # noqa: BLE001  # a worker that died would hang the run
                outcome = Outcome(task.job.spec.id, False, (), "bug", f"{type(error).__name__}: {error}")
            self._outcomes.put(outcome)
