"""A terminal for tests: real processes in a real pty, and a screen that understands what they write.

with Terminal("headway", "run", cwd=folder, columns=80) as terminal:
    terminal.until(lambda screen: "page 3" in screen)      # what a person would see now
    code = terminal.wait()
terminal.screen.text                                       # what is left when it is over
"""

from __future__ import annotations

import fcntl
import os
import pty
import re
import select
import signal
import struct
import subprocess
import sys
import termios
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from types import TracebackType
from typing import Self

PATIENCE = 60
_TOKEN = re.compile(r"\x1b\[([0-?]*)([@-~])|\x1b.|[\r\n\x08\x07]|[^\x1b\r\n\x08\x07]+", re.DOTALL)


class Emulator:
    """What is on the screen, and what has scrolled off it, as lines. Refuses what it does not understand."""

    def __init__(self, columns: int, rows: int) -> None:
        self.columns = columns
        self.rows = rows
        self.lines = [""]
        self.top = 0
        self.row = 0
        self.column = 0
        self.styles: set[str] = set()
        self._partial = ""

    def feed(self, text: str) -> None:
        text = self._partial + text
        cut = re.search(r"\x1b(?:\[[0-?]*)?$", text)
        self._partial = text[cut.start() :] if cut else ""
        for token in _TOKEN.finditer(text[: cut.start()] if cut else text):
            self._take(token[0], token[1] or "", token[2] or "")

    @property
    def text(self) -> str:
        """Everything, without blanks at the ends of lines."""
        return "\n".join(line.rstrip() for line in self.lines).rstrip("\n")

    def _take(self, token: str, numbers: str, final: str) -> None:
        if final == "m":
            self.styles.add(numbers)
        elif final == "A":
            self.row = max(self.row - int(numbers or 1), self.top)
        elif final == "J" and numbers in ("", "0"):
            self.lines[self.row] = self.lines[self.row][: self.column]
            del self.lines[self.row + 1 :]
        elif token == "\r":
            self.column = 0
        elif token == "\n":
            self._next_line()
        elif token.startswith("\x1b") or token in "\x07\x08":
            raise ValueError(f"a terminal was sent {token!r}")
        else:
            for character in token:
                self._put(character)

    def _put(self, character: str) -> None:
        if self.column == self.columns:
            self._next_line()
            self.column = 0
        line = self.lines[self.row].ljust(self.column)
        self.lines[self.row] = line[: self.column] + character + line[self.column + 1 :]
        self.column += 1

    def _next_line(self) -> None:
        self.row += 1
        if self.row == len(self.lines):
            self.lines.append("")
        self.top = max(self.top, self.row - self.rows + 1)


class Terminal:
    """A process in a pty of some size."""

    def __init__(
        self, *words: str, cwd: Path, columns: int = 80, rows: int = 24, env: Mapping[str, str] | None = None
    ) -> None:
        self.screen = Emulator(columns, rows)
        self.raw = ""
        self._master, slave = pty.openpty()
        self._poll = select.poll()  # which, unlike select, takes a file of any number
        self._poll.register(self._master, select.POLLIN)
        fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
        known = ("CI", "GITHUB_ACTIONS", "GITHUB_STEP_SUMMARY", "NO_COLOR", "COLUMNS", "LINES")
        inherited = {name: value for name, value in os.environ.items() if name not in known}
        self.process = subprocess.Popen(
            [words[0] if "/" in words[0] else str(Path(sys.executable).with_name(words[0])), *words[1:]],
            cwd=cwd,
            env={**inherited, "TERM": "xterm", "LC_ALL": "C.UTF-8", **(env or {})},
            stdin=slave,
            stdout=slave,
            stderr=slave,
            start_new_session=True,
        )
        os.close(slave)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        if self.process.poll() is None:
            self.process.terminate()  # so that it ends what it has started
            try:
                self.process.wait(10)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()
        os.close(self._master)

    def until(self, seen: Callable[[str], object]) -> str:
        """Read until the screen shows it; the screen."""
        deadline = time.monotonic() + PATIENCE
        while not seen(self.screen.text):
            assert time.monotonic() < deadline, f"never seen; the screen shows\n{self.screen.text}"
            assert self._read(0.5) or self.process.poll() is None, f"it ended with\n{self.screen.text}"
        return self.screen.text

    def type(self, text: str) -> None:
        """What somebody types, with Enter at its end."""
        os.write(self._master, f"{text}\n".encode())

    def signal(self, number: signal.Signals) -> None:
        self.process.send_signal(number)

    def wait(self) -> int:
        """Read to the end; the exit code."""
        deadline = time.monotonic() + PATIENCE
        while self._read(0.5) or self.process.poll() is None:
            assert time.monotonic() < deadline, f"it never ends; the screen shows\n{self.screen.text}"
        return self.process.wait()

    def _read(self, wait: float) -> bool:
        """Take in what was written; whether there was anything."""
        if not self._poll.poll(wait * 1000):
            return False
        try:
            data = os.read(self._master, 1 << 16)
        except OSError:  # the other end is closed
            return False
        text = data.decode("utf-8", "replace")
        self.raw += text
        self.screen.feed(text)
        return bool(data)
