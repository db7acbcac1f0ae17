"""A run on a terminal: lines that stay, and below them a few that are drawn again, whatever the size of the plan.

    made     words       0.1 s  never made
    ━━━━━━━━━━━━╌╌╌╌╌╌╌╌╌╌╌╌  12 of 40   0:08   1 failed
      report      7 s  page 3 of 9
      index      31 s  silent for 28 s
      kept 28: up to date

Events only take notes; one thread draws, eight times a second at most. rich is imported by that thread, when a run has
lasted long enough for anybody to look.
"""

from __future__ import annotations

import io
import os
import re
import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from itertools import islice
from typing import TYPE_CHECKING, Any, NamedTuple, Self, TextIO

from headway.core.freshness import Reason
from headway.engine.result import Made, Reporter, RunResult
from headway.surfaces.cli.lines import STYLE, Lines, explained
from headway.surfaces.cli.receipt import spent
from headway.surfaces.cli.screen import Screen

if TYPE_CHECKING:
    from rich.console import Console
    from rich.text import Text

PATIENCE = 0.2
"""Seconds before anything is drawn: what is over sooner needs no view."""

PERIOD = 0.125
"""Seconds between two pictures."""

LISTED = 50
"""With more to make than this, what went well is not listed line by line: the newest few are shown instead."""

ROWS = 8
"""So many running artifacts are shown at most."""

NEWEST = 3
"""So many of those that are done are shown in a run that does not list them."""

COMPLAINTS = 20
"""So many that failed or are held stay on the screen in a run that does not list what it makes."""

SILENCE = 10.0
"""Seconds without output after which a running artifact is called silent."""

TAIL = 2048
"""So many bytes of a running command's output are kept to find its last line in."""

_SEQUENCES = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)|[@-_])")


class Running(NamedTuple):
    """A running artifact: since when, the end of what it printed, and when it did."""

    since: float
    tail: bytes = b""
    spoke: float = 0.0


class Done(NamedTuple):
    """Something that is not running any more."""

    outcome: str
    id: str
    text: str


class View(Reporter):
    """Shows a run as it goes, and leaves its lines and its receipt behind."""

    def __init__(
        self,
        screen: Screen,
        stream: TextIO,
        *,
        verbose: bool = False,
        where: str = "",
        stopping: Callable[[], str] = lambda: "",
        silence: float = SILENCE,
    ) -> None:
        self._screen = screen
        self._stream = stream
        self._stopping = stopping
        self._silence = silence
        self._pen = Pen(stream, colour=screen.colours(stream))
        self._lines = Lines(
            screen,
            where=where,
            say=self._pen.say,
            heartbeat=threading.TIMEOUT_MAX,
            widest=max(min(self._pen.size()[0] // 3, 40), 8),
        )
        self._result = RunResult(plan_id="")
        self._began = time.monotonic()
        self._to_make = 0
        self._settled = 0
        self._kept: list[str] = []
        self._same: list[str] = []
        self._failed = 0
        self._complaints = 0
        self._list_all = True
        self._running: dict[str, Running] = {}
        self._newest: deque[Done] = deque(maxlen=NEWEST)
        self._verbose = verbose
        self._over = threading.Event()
        self._thread: threading.Thread | None = None
        self._streams: list[tuple[str, Any, Above]] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._stop()

    # What the run tells. Cheap: the run waits meanwhile.

    def begun(self, result: RunResult, stale: Mapping[str, Reason], jobs: int) -> None:
        self._stop()
        self._over.clear()  # one view shows several runs: after a better plan, the next one
        self._settled = self._failed = self._complaints = 0
        self._same = []
        self._running.clear()
        self._newest.clear()
        self._result = result
        self._began = time.monotonic()
        self._to_make = len(stale)
        self._kept = result.kept[:]
        self._list_all = self._verbose or len(stale) <= LISTED
        self._lines.begun(result, stale, jobs)
        if stale:
            self._redirect()
            thread = threading.Thread(target=self._draw, name="headway-view", daemon=True)
            with suppress(RuntimeError):  # the system allows no more threads: the lines that stay need none
                thread.start()
                self._thread = thread

    def started(self, artifact_id: str, reason: Reason) -> None:
        self._running[artifact_id] = Running(time.monotonic())

    def printed(self, artifact_id: str, data: bytes) -> None:
        known = self._running.get(artifact_id)
        if known is not None:
            tail = data[-TAIL:] if len(data) >= TAIL else (known.tail + data)[-TAIL:]
            self._running[artifact_id] = Running(known.since, tail, time.monotonic())

    def finished(self, artifact_id: str, outcome: str, reason: Reason, ms: int, note: str) -> None:
        self._running.pop(artifact_id, None)
        self._settled += 1
        complaint = outcome in ("failed", "held")
        self._failed += outcome == "failed"
        if outcome == "kept":
            self._same.append(artifact_id)
        if self._list_all or (complaint and self._complain()):
            self._lines.finished(artifact_id, outcome, reason, ms, note)
        else:
            self._newest.append(Done(outcome, artifact_id, explained(outcome, reason, note)))

    def released(self, artifact_id: str) -> None:
        self._running.pop(artifact_id, None)

    def made(self, done: Sequence[Made]) -> None:
        if self._list_all:
            super().made(done)
            return
        for artifact_id, _, _ in done:
            self._running.pop(artifact_id, None)
        self._settled += len(done)
        self._newest.extend([Done("made", a, explained("made", reason, "")) for a, reason, _ in done[-NEWEST:]])

    def _complain(self) -> bool:
        """Whether one more that failed or is held may stay on the screen; the first that may not says who tells."""
        self._complaints += 1
        if self._complaints == COMPLAINTS + 1:
            self._pen.say(f"After these {COMPLAINTS} the others are only counted: headway status names them")
        return self._complaints <= COMPLAINTS

    def ended(self, result: RunResult) -> None:
        self._stop()
        self._lines.ended(result)
        self._pen.draw([])

    # Drawing.

    def _draw(self) -> None:
        wait = PATIENCE
        while not self._over.wait(wait):
            size = self._pen.size()
            self._pen.draw(list(self._picture(*size)))
            wait = PERIOD

    def _stop(self) -> None:
        """Leave the lines, take the picture away. Also when the run ended in an error."""
        self._over.set()
        if self._thread is not None:
            self._thread.join()
            self._thread = None
        for name, stream, above in self._streams:
            above.finish()
            setattr(sys, name, stream)
        self._streams.clear()
        self._pen.draw([])

    def _redirect(self) -> None:
        """What anybody else in this process prints meanwhile goes above the picture."""
        for name in ("stdout", "stderr"):
            stream = getattr(sys, name)
            if stream is self._stream or (stream.isatty() and self._stream.isatty()):
                above = Above(stream, self._pen.say)
                self._streams.append((name, stream, above))
                setattr(sys, name, above)

    def _picture(self, width: int, height: int) -> Iterator[Text]:
        now = time.monotonic()
        room = max(min(ROWS, height - 6), 1)
        yield self._bar(width, now)
        running = list(self._running.items())
        shown = running[:room]
        name_width = min(max((len(a) for a, _ in shown), default=0), max(width // 3, 8))
        for artifact_id, what in shown:
            yield self._row(artifact_id, what, name_width, now)
        if len(running) > room:
            yield self._pen.text(f"  and {len(running) - room} more", "dim")
        for done in list(self._newest) if height > ROWS + NEWEST + 4 else ():
            line = self._pen.text("  ")
            line.append(f"{done.outcome:<8} ", STYLE.get(done.outcome, "dim"))
            line.append(done.id)
            line.append(f"  {done.text}", "dim")
            yield line
        yield from self._kept_row(width)
        if self._stopping():
            yield self._pen.text(f"  Stopping; {len(running)} still run. Ctrl-C again does not wait.", "yellow")

    def _bar(self, width: int, now: float) -> Text:
        total = max(self._to_make, self._settled)
        facts = [f"{self._settled} of {total}", clock(now - self._began)]
        if self._failed:
            facts.append(f"{self._failed} failed")
        cost = spent(self._result)
        facts += [cost] if cost else []
        text = "   ".join(facts)
        length = min(width - len(text) - 3, 40)
        full = length * self._settled // max(total, 1)
        line = self._pen.text("")
        if length >= 5:
            done, left = ("━", "╌") if self._pen.unicode else ("#", "-")
            line.append(done * full, "red" if self._failed else "green")
            line.append(f"{left * (length - full)}  ", "dim")
        line.append(text, "bold")
        return line

    def _row(self, artifact_id: str, what: Running, name_width: int, now: float) -> Text:
        name = artifact_id if len(artifact_id) <= name_width else artifact_id[: name_width - 1] + "…"
        line = self._pen.text(f"  {name:<{name_width}}  {clock(now - what.since):>7}  ")
        quiet = now - max(what.spoke, what.since)
        if quiet >= self._silence:
            line.append(f"silent for {clock(quiet)}  ", "yellow")
        line.append(last_line(what.tail), "dim")
        return line

    def _kept_row(self, width: int) -> Iterator[Text]:
        """What was kept, and why: up to date from the start, or because what it reads came out the same."""
        parts = [f"{_named(self._kept, width // 2)} up to date"] if self._kept else []
        parts += [f"{_named(self._same, width // 3)} with the same inputs"] if self._same else []
        if parts:
            yield self._pen.text(f"  kept {'; '.join(parts)}", "dim")


class Pen:
    """Writes lines that stay, and below them a picture that the next one replaces: one write for all of it."""

    def __init__(self, stream: TextIO, *, colour: bool) -> None:
        self._stream = stream
        self._colour = colour
        self._said: deque[str] = deque()
        self._drawn: list[int] = []
        self._console: Console | None = None
        self._writing = threading.Lock()
        self.unicode = (stream.encoding or "").lower().replace("-", "").startswith("utf")

    def say(self, line: str) -> None:
        """A line that stays, with the next picture."""
        self._said.append(line)

    def size(self) -> tuple[int, int]:
        """Columns and rows."""
        try:
            width, height = os.get_terminal_size(self._stream.fileno())
        except (OSError, ValueError):
            width, height = 0, 0
        return width or 80, height or 24

    def text(self, text: str, style: str = "") -> Text:
        """A line of a picture."""
        from rich.text import Text

        return Text(text, style, no_wrap=True, overflow="ellipsis")

    def draw(self, picture: list[Text]) -> None:
        """Replace the picture; what was said since the last one goes above it."""
        with self._writing:
            width, height = self.size()
            parts = [self._wipe(width)]
            parts += [f"{self._said.popleft()}\n" for _ in range(len(self._said))]
            rows = picture[: max(height - 1, 1)]
            self._drawn = [min(row.cell_len, width) for row in rows]
            parts += [self._rendered(rows, width)] if rows else []
            self._write("".join(parts))

    def _wipe(self, width: int) -> str:
        """Go to where the picture begins, and forget it. A narrower window has wrapped its lines."""
        rows = sum(max(-(-cells // width), 1) for cells in self._drawn)
        return f"\r\x1b[{rows}A\x1b[J" if rows else ""

    def _rendered(self, rows: list[Text], width: int) -> str:
        if self._console is None:
            from rich.console import Console

            self._console = Console(
                file=io.StringIO(),
                force_terminal=True,
                color_system="standard" if self._colour else None,
                legacy_windows=False,
                markup=False,
                highlight=False,
            )
        with self._console.capture() as captured:
            for row in rows:
                row.truncate(width, overflow="ellipsis")
                self._console.print(row, width=width)
        return captured.get()

    def _write(self, text: str) -> None:
        if not text:
            return
        try:
            self._stream.write(text)
            self._stream.flush()
        except (OSError, ValueError):  # the terminal is gone; what is being done goes on
            self._said.clear()


class Above(io.TextIOBase):
    """Stands in for a stream while there is a picture below: whole lines are said, above it."""

    def __init__(self, stream: Any, say: Callable[[str], None]) -> None:
        self._stream = stream
        self._say_line = say
        self._rest = ""
        self._lock = threading.Lock()
        self._process = os.getpid()

    @property
    def encoding(self) -> str:  # type: ignore[override]  # read-only here
        encoding: str = self._stream.encoding
        return encoding

    @property
    def buffer(self) -> Any:
        return self._stream.buffer

    def fileno(self) -> int:
        number: int = self._stream.fileno()
        return number

    def isatty(self) -> bool:
        return True

    def writable(self) -> bool:
        return True

    def flush(self) -> None:
        if os.getpid() != self._process:
            self._stream.flush()

    def write(self, text: str) -> int:
        if os.getpid() != self._process:  # a process that a function forked: nobody draws there
            written: int = self._stream.write(text)
            return written
        with self._lock:
            *lines, self._rest = (self._rest + text).split("\n")
            for line in lines:
                self._say_line(line)
        return len(text)

    def finish(self) -> None:
        """A line that nobody ended."""
        with self._lock:
            if self._rest:
                self._say_line(self._rest)
            self._rest = ""


def last_line(tail: bytes) -> str:
    """The last line of what was printed, as it would stand there: without sequences, after the last return."""
    text = _SEQUENCES.sub("", tail.decode("utf-8", "replace")).replace("\t", " ")
    for line in reversed(re.split(r"[\r\n]+", text)):
        shown = "".join(c for c in line.strip() if c.isprintable())
        if shown:
            return shown
    return ""


def clock(seconds: float) -> str:
    """A duration that changes while one looks at it."""
    whole = int(seconds)
    if whole < 60:
        return f"{whole} s"
    minutes, rest = divmod(whole, 60)
    return f"{minutes}:{rest:02}" if minutes < 60 else f"{minutes // 60}:{minutes % 60:02}:{rest:02}"


def _named(ids: list[str], width: int) -> str:
    """Names where they fit, else how many there are."""
    text = ", ".join(islice(ids, 4))
    return text if len(ids) <= 3 and len(text) <= width else f"{len(ids)}"
