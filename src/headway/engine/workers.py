"""Threads that make artifacts side by side. Knows tasks and outcomes, not order.

Handing a task to a thread and waiting for it takes longer than many functions take. Those that were quick often enough,
or the last time, are light: one thread makes them one after the other, as many as there are, and tells of all of them
at once. Others help only when that takes long: what is over in a moment would rather wait for Python than for a
processor. Their files are written by a thread of their own, which needs no Python for it.
"""

from __future__ import annotations

import os
import queue
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from functools import partial
from typing import NamedTuple

from headway.core.plan import ArtifactSpec
from headway.engine.making import Task
from headway.engine.row import Outcome, Row
from headway.engine.scribe import Scribe
from headway.errors import TryLater

LIGHT_AT_ONCE = 512
"""So many light tasks are taken at once at most: more than a thread makes before it tells of them."""

LIGHT_MS, LIGHT_AFTER = 2, 8
"""A function is light after so many times in which it took no longer than this; a few that took longer are forgiven.

Of one that nobody has met in this run, the last time that the artifact was made counts for all of them."""

LIGHT_MOST = 3 * LIGHT_AFTER
"""More times than this are not counted: whoever becomes slow is found out soon."""

LIGHT_FOR = 0.02
"""How long, in seconds, a thread makes light tasks before it tells of them: whoever kills the run loses that much."""

LIGHT_LATE = 0.04
"""When that takes longer, others help."""

LIGHT_UNWRITTEN = 2
"""So many rows of them are yet to be written at most when the next is begun, unless others have to help: whoever kills
the run loses these, too."""


FINISHING = 2.0
"""How long, in seconds, somebody who gives up waits for files that are being written, many at once."""

PROCESSORS = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
"""How many processors there are. On a single one, whoever writes beside others only takes turns with them."""


class _News(NamedTuple):
    """A thread has made its row, light tasks or another; and the row, once it is written: then, or later where it was
    `left` to whoever writes files.
    """

    made: bool
    light: bool
    row: Row | None
    left: bool = False


Given = queue.SimpleQueue[tuple[bool, Task] | None]
"""What a thread is given to do: a light task and those behind it, or another."""


class Workers:
    """Takes tasks, gives outcomes. Threads are started as they are needed and end with the process.

    Whoever came back last is given the next task: what it needs for that is still at hand.
    """

    def __init__(
        self,
        count: int,
        make: Callable[[Iterable[Task], Row], bool],
        row: Callable[[], Row],
        *,
        light: bool = True,
        took: Callable[[str], int | None] = lambda _: None,
    ) -> None:
        """`make`: makes tasks one after the other, up to the first that is seen to fail, in a `row` of their own, and
        says whether none was.
        `light`: whether there may be light tasks at all; `took`: how many ms an artifact took when last made.
        """
        self._count = count
        self._make = make
        self._row = row
        self._rows: list[Row] = []
        self._busy = 0
        self._ended: queue.SimpleQueue[_News] = queue.SimpleQueue()
        self._scribe = Scribe() if PROCESSORS > 1 else None
        self._threads: list[threading.Thread] = []
        self._given: list[Given] = []
        self._idle: list[Given] = []
        self._handing = threading.Lock()
        self._waiting: deque[tuple[bool, Task]] = deque()
        self._may_be_light = light
        self._took = took
        self._light: deque[Task] = deque()
        self._on_light = 0
        self._unwritten = 0
        self._quick: dict[str, int] = {}
        self._late = False

    @property
    def busy(self) -> bool:
        """Whether some have not come back, though all that they did may have been told."""
        return self._busy > 0

    @property
    def at_work(self) -> bool:
        """Whether anything is yet to be made or told, by them or by who writes their files."""
        return self._busy > 0 or self._unwritten > 0 or bool(self._light)

    @property
    def free(self) -> int:
        """How many more tasks can run at once."""
        return self._count - self._busy

    @property
    def room(self) -> int:
        """How many more can be taken, light ones included."""
        return self.free + LIGHT_AT_ONCE - len(self._light)

    def is_light(self, spec: ArtifactSpec) -> bool:
        """Whether an artifact is made in a moment, by all that is known: its function was quick so far."""
        if not spec.make or not self._may_be_light:
            return False
        score = self._quick.get(spec.make)
        if score is not None and score < LIGHT_AFTER:
            return False
        if spec.effects or spec.verify or spec.retry or spec.timeout is not None:
            return False
        if score is None:
            took = self._took(spec.id)
            score = self._quick[spec.make] = LIGHT_AFTER if took is not None and took <= LIGHT_MS else 0
        return score >= LIGHT_AFTER

    def learn(self, spec: ArtifactSpec, outcome: Outcome) -> None:
        """Take note of how long a function took."""
        if not spec.make:
            return
        score = self._quick.get(spec.make, 0)
        if outcome.ok and outcome.ms <= LIGHT_MS:
            if score < LIGHT_MOST:
                self._quick[spec.make] = score + 1
        elif outcome.ok and outcome.ms <= LIGHT_LATE * 1000:
            self._quick[spec.make] = max(0, score - LIGHT_AFTER // 2)
        else:
            self._quick[spec.make] = 0

    def learn_all(self, tasks: Iterable[Task], outcomes: Iterable[Outcome]) -> None:
        """The same of many that went well: of what is known to be quick, and was, there is nothing to be learned."""
        quick = self._quick
        for task, outcome in zip(tasks, outcomes, strict=True):
            if outcome.ms > LIGHT_MS or quick.get(task.job.spec.make, 0) < LIGHT_MOST:
                self.learn(task.job.spec, outcome)

    def start(self, task: Task) -> None:
        """Hand over a task; a light one waits for the others."""
        if task.light:
            self._light.append(task)
        else:
            self._hand_over(task)

    def outcomes(self, wait: float) -> list[Outcome]:
        """What has come of tasks since the last call; waits up to a limit until something has, or there is room."""
        self._go_on_with_light()
        found = self._news(min(wait, LIGHT_LATE) if self._light else wait)
        if found is None:
            while self._on_light and self._hand_over_light():
                pass  # one of them is not as light as it was: the others do not wait for it
            found = self._news(wait)
        self._late = found is None and self._busy > 0
        found = found or []
        for row in self._rows.copy():  # what a thread has done before one that takes its time is told of meanwhile
            found += row.tell(after=LIGHT_LATE)
        if self._scribe and all(outcome.ok for outcome in found):
            self._go_on_with_light()  # unless one has failed, and others may be about to
        return found

    def _go_on_with_light(self) -> None:
        """Have a thread make light tasks if none does, and not too many wait to be written."""
        if not self._on_light and self._unwritten < LIGHT_UNWRITTEN:
            self._hand_over_light()

    def _hand_over_light(self) -> bool:
        """Have a thread make light tasks; whether there are any, and somebody is free."""
        if self._busy >= self._count or (light := self._next_light()) is None:
            return False
        self._hand_over(light, light=True)
        return True

    def _news(self, wait: float) -> list[Outcome] | None:
        """What there is to tell, if there is anything within that time."""
        found: list[Outcome] | None = None
        try:
            found = self._told(self._ended.get(timeout=wait))
            while True:
                found += self._told(self._ended.get_nowait())
        except queue.Empty:
            return found

    def overdue(self) -> list[Task]:
        """Take back the light tasks that nobody has begun, if they wait for what is not light any more."""
        if not self._late and all(self._quick.values()):
            return []
        waiting = {task.job.spec.make for task in self._light.copy()}
        if self._late:  # whichever it is that takes so long
            self._quick.update(dict.fromkeys(waiting, 0))
        return self.recall() if any(not self._quick.get(make) for make in waiting) else []

    def recall(self) -> list[Task]:
        """Take back the light tasks that nobody has begun."""
        found = []
        while (task := self._next_light()) is not None:
            found.append(task)
        return found

    def close(self) -> None:
        """No more tasks."""
        for given in self._given:
            given.put(None)
        if self._scribe is not None:
            self._scribe.close()

    def abandon(self) -> None:
        """Nobody waits any more: what is still at work ends where it next gets back to Python code.

        Files that are being written are: nothing comes to stand anywhere after that.
        """
        from headway.engine.recipes.function import end_thread

        for thread in self._threads:
            end_thread(thread)
        if self._scribe is not None:
            self._scribe.close(wait=FINISHING)

    def _hand_over(self, task: Task, *, light: bool = False) -> None:
        self._busy += 1
        self._on_light += light
        if len(self._threads) < min(self._count, self._busy):
            self._add_thread()
        with self._handing:
            if self._idle:
                self._idle.pop().put((light, task))
            else:
                self._waiting.append((light, task))

    def _add_thread(self) -> None:
        given: Given = queue.SimpleQueue()
        name = f"headway-{len(self._threads)}"
        thread = threading.Thread(target=self._work, args=(given,), name=name, daemon=True)
        try:
            thread.start()
        except RuntimeError as error:  # the system allows no more; those that there are make everything
            if not self._threads:
                raise TryLater(
                    "The system lets no thread begin, and artifacts are made in threads",
                    facts={"error": error},
                    hint="end other processes, or raise the limit of this user (ulimit -u, ulimit -v)",
                    code="run.threads",
                ) from error
            self._count = len(self._threads)
        else:
            self._threads.append(thread)
            self._given.append(given)
            self._idle.append(given)

    def _told(self, news: _News) -> list[Outcome]:
        row = news.row
        if news.made:
            self._busy -= 1
            self._on_light -= news.light
        self._unwritten += news.left - (not news.made)
        if row is None:
            return []
        self._rows.remove(row)
        return row.tell()

    def _work(self, given: Given) -> None:
        with suppress(SystemExit):  # by which it is ended
            while (one := given.get()) is not None:
                with suppress(Exception):  # whoever waits for what it had finds out that nobody brings it
                    self._make_row(*one, given)

    def _make_row(self, is_light: bool, task: Task, given: Given) -> None:
        row: Row | None = None
        is_left = False
        try:
            row = self._row()
            scribe = row.scribe = self._scribe if is_light else None
            self._rows.append(row)
            is_well = self._make(self._with_others(task) if is_light else (task,), row)
            is_left = is_well and scribe is not None and scribe.take_last(row.write, partial(self._tell_of, row))
            if scribe is None:
                row.write()
            elif not is_left:  # behind one that failed nothing is begun before that is told
                scribe.finish(row.write)
        finally:
            with self._handing:
                if self._waiting:
                    given.put(self._waiting.popleft())
                else:
                    self._idle.append(given)
            self._ended.put(_News(True, is_light, None if is_left else row, is_left))

    def _tell_of(self, row: Row) -> None:
        self._ended.put(_News(False, True, row))

    def _with_others(self, task: Task | None) -> Iterator[Task]:
        """A light task and those behind it, until it is time to tell of them."""
        end = time.monotonic() + LIGHT_FOR
        while task is not None:
            yield task
            task = self._next_light() if time.monotonic() < end else None

    def _next_light(self) -> Task | None:
        try:
            return self._light.popleft()
        except IndexError:
            return None
