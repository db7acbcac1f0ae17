"""A run as lines: one for each artifact that was not simply kept, and a receipt. Plain enough for a log file."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import lru_cache
from typing import Self

from headway.core.freshness import FRESH, Reason
from headway.engine.result import Made, Reporter, RunResult
from headway.projections.story import seconds
from headway.surfaces.cli.receipt import closing, names, receipt
from headway.surfaces.cli.screen import Screen

STYLE = {"made": "green", "failed": "red", "held": "yellow", "restored": "blue", "reused": "blue", "kept": "dim"}
KEPT = 8
"""So many are named that are kept after all, though what they require was made again; of the others, how many."""

HEARTBEAT = 60.0
"""Seconds without a line after which a log is told what is still running."""


class Lines(Reporter):
    """Says what a run does, on stderr where stdout is for JSON."""

    def __init__(
        self,
        screen: Screen,
        *,
        where: str = "",
        say: Callable[[str], None] | None = None,
        heartbeat: float = HEARTBEAT,
        widest: int = 40,
    ) -> None:
        self._screen = screen
        self._say = say or (screen.note if screen.as_json else screen.say)
        self._where = where
        self._widest = widest
        self._width = 8
        self._kept = 0
        self._left_out: set[str] = set()
        """What is to be said of those that are kept and not named, each once."""
        self._running: dict[str, float] = {}
        self._heart = Heart(self._beat, heartbeat)
        self._words = {outcome: self._style(f"{outcome:<8}", style) for outcome, style in STYLE.items()}

    @property
    def running(self) -> tuple[str, ...]:
        """What is being made, as far as anybody said."""
        return tuple(self._running)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._heart.stop()

    def begun(self, result: RunResult, stale: Mapping[str, Reason], jobs: int) -> None:
        self._running.clear()
        self._left_out.clear()
        self._kept = 0
        self._width = min(max((len(a) for a in stale), default=8), self._widest)
        if stale:
            self._heart.start()

    def started(self, artifact_id: str, reason: Reason) -> None:
        self._running[artifact_id] = time.monotonic()

    def released(self, artifact_id: str) -> None:
        self._running.pop(artifact_id, None)

    def printed(self, artifact_id: str, data: bytes) -> None:
        pass

    def finished(self, artifact_id: str, outcome: str, reason: Reason, ms: int, note: str) -> None:
        self._running.pop(artifact_id, None)
        self._kept += outcome == "kept"
        told = _told(outcome, reason, ms, note)
        if outcome != "kept" or self._kept <= KEPT:
            self._line(artifact_id, outcome, told)
        else:
            self._left_out.add(told)

    def _line(self, name: str, outcome: str, told: str) -> None:
        word = self._words.get(outcome) or self._style(f"{outcome:<8}", "dim")
        self._say(f"{word} {name:<{self._widened(name)}}  {told}".rstrip())
        self._heart.rest()

    def made(self, done: Sequence[Made]) -> None:
        """A line for each, and one write for all of them: nobody could read them one by one."""
        running, word, lines = self._running, self._words["made"], list[str]()
        width, why, took, told = self._width, FRESH, -1, ""
        for artifact_id, reason, ms in done:
            running.pop(artifact_id, None)
            if len(artifact_id) > width:
                width = self._widened(artifact_id)
            if reason is not why or ms != took:  # of most, the same is to be told as of the last
                why, took, told = reason, ms, _told("made", reason, ms, "").rstrip()
            lines.append(f"{word} {artifact_id.ljust(width)}  {told}")
        self._say("\n".join(lines))
        self._heart.rest()

    def _widened(self, artifact_id: str) -> int:
        """The width of names, with room for this one: units may come while it runs."""
        self._width = max(self._width, min(len(artifact_id), self._widest))
        return self._width

    def ended(self, result: RunResult) -> None:
        self._heart.stop()
        if self._kept > KEPT:
            told = min(self._left_out) if len(self._left_out) == 1 else ""
            self._line(f"and {self._kept - KEPT} more", "kept", told)
        for style, line in closing(result, self._where):
            self._say(self._style(line, style) if style else line)
        self._say(receipt(result, self._where))

    def _style(self, text: str, name: str) -> str:
        return self._screen.style(text, name, err=self._screen.as_json)

    def _beat(self) -> None:
        """Something is still being made, and a log that says nothing looks dead."""
        if self._running:
            now = time.monotonic()
            found = [f"{a} ({seconds(int((now - since) * 1000))})" for a, since in list(self._running.items())]
            self._say(f"running  {names(found)}")


class Heart:
    """Calls from a thread of its own whenever there was no rest for so many seconds."""

    def __init__(self, beat: Callable[[], None], every: float) -> None:
        self._beat = beat
        self._every = every
        self._last = 0.0
        self._stopped = threading.Event()
        self._thread: threading.Thread | None = None

    def start(self) -> None:
        """Begin to count, also again."""
        self.stop()
        self._stopped.clear()
        self._last = time.monotonic()
        thread = threading.Thread(target=self._live, name="headway-heart", daemon=True)
        with suppress(RuntimeError):  # the system allows no more threads: the lines themselves need none
            thread.start()
            self._thread = thread

    def rest(self) -> None:
        """Something was said just now."""
        self._last = time.monotonic()

    def stop(self) -> None:
        """No more."""
        self._stopped.set()
        if self._thread is not None:
            self._thread.join()
            self._thread = None

    def _live(self) -> None:
        while not self._stopped.wait(max(self._last + self._every - time.monotonic(), 0.01)):
            if time.monotonic() >= self._last + self._every:
                self._beat()
                self.rest()


@lru_cache(maxsize=256, typed=True)  # a reason that explains itself otherwise is of another type
def _told(outcome: str, reason: Reason, ms: int, note: str) -> str:
    """How long it took, and why."""
    took = seconds(ms) if outcome in ("made", "failed") else ""
    return f"{took:>8}  {explained(outcome, reason, note)}"


@lru_cache(maxsize=256, typed=True)
def explained(outcome: str, reason: Reason, note: str) -> str:
    """Why an artifact came to what it did."""
    if outcome == "failed":
        return note
    if outcome == "kept":
        return note or "inputs came out the same"
    if outcome == "reused" and reason.code == "never_made":  # nor is it on record, where it left the plan and came back
        return f"made before; {note}"
    return f"{reason.text}; {note}" if note and not reason.fresh else note or reason.text
