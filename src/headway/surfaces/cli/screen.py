"""What is shown: text or one JSON document on stdout, messages on stderr, colour only where it can be seen."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from io import TextIOWrapper
from typing import Any

from headway.errors import HeadwayError

_STYLES = {"bold": "1", "dim": "2", "red": "31", "green": "32", "yellow": "33", "blue": "34"}


_HARMFUL = r"\x1b(?!\[[0-9;]*m)|[\x00-\x08\x0b-\x1a\x1c-\x1f\x7f-\x9f]"


class Screen:
    """The one voice of the command line."""

    def __init__(self, *, as_json: bool = False) -> None:
        self.as_json = as_json
        self._held: list[str] | None = None
        self._out = 1
        self._args: Any = None
        if sys.stdout is None:  # closed by the caller: there is nobody to talk to
            sys.stdout = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115  # for as long as the process lives
        if sys.stderr is None:
            sys.stderr = sys.stdout
        for stream in (sys.stdout, sys.stderr):
            if isinstance(stream, TextIOWrapper):
                stream.reconfigure(errors="backslashreplace")  # a name that cannot be shown is no reason to stop
        self._stdout = sys.stdout  # whatever functions put in its place meanwhile is theirs
        plain = bool(os.environ.get("NO_COLOR")) or os.environ.get("TERM") == "dumb"
        self._colour_out = sys.stdout.isatty() and not plain
        self._colour_err = sys.stderr.isatty() and not plain

    def told_of(self, args: Any) -> None:
        """What was typed: what errors say to type next is about the same plan."""
        self._args = args

    def say(self, text: str = "") -> None:
        """A line for people, or several, on stdout; silent when a JSON document is wanted."""
        if not self.as_json:
            self._print(text)

    def answer(self, document: Any) -> None:
        """The JSON document, when one is wanted."""
        if self.as_json:
            import msgspec

            text = msgspec.json.format(msgspec.json.encode(document), indent=2).decode()
            if self._held is None:
                self._stdout.write(f"{text}\n")
            else:
                self._held.append(text)

    def flush(self) -> None:
        """What was said so far is to be seen now."""
        self._stdout.flush()

    def let_go(self) -> None:
        """What could not be said so far is given up: Python would try once more at its end, and complain."""
        for stream in (self._stdout, sys.stderr):
            try:
                stream.flush()
            except OSError:
                os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())

    def raw(self, data: bytes) -> None:
        """Bytes as they are, on stdout."""
        self._stdout.flush()
        self._stdout.buffer.write(data)
        self._stdout.flush()

    def line(self, document: Any) -> None:
        """One JSON line, to be seen now: where what is asked for has no end, there is no document to wait for."""
        import msgspec

        self._stdout.flush()
        data = memoryview(msgspec.json.encode(document) + b"\n")
        while data:
            data = data[os.write(self._out, data) :]

    def _print(self, text: str) -> None:
        """Whoever reads may have gone; what is being done goes on."""
        try:
            self._stdout.write(f"{harmless(text)}\n")
        except BrokenPipeError:
            os.dup2(os.open(os.devnull, os.O_WRONLY), self._stdout.fileno())

    @contextmanager
    def undisturbed(self) -> Iterator[None]:
        """Keep stdout for the JSON document: what plans and recipes write past us meanwhile goes to stderr."""
        sys.stdout.flush()
        try:
            kept = os.dup(1)
            os.dup2(2, 1)
        except OSError:  # closed by the caller
            yield
            return
        before, sys.stdout = sys.stdout, sys.stderr
        self._held, self._out = [], kept
        try:
            yield
        finally:
            sys.stdout = before
            os.dup2(kept, 1)
            os.close(kept)
            held, self._held, self._out = self._held, None, 1
            for text in held:
                self._stdout.write(f"{text}\n")

    @property
    def is_terminal(self) -> bool:
        """Whether somebody reads along, rather than a file or another program."""
        return self._stdout.isatty()

    @property
    def can_ask(self) -> bool:
        """Whether somebody sits there: both ways are a terminal, and no script wants JSON."""
        return not self.as_json and sys.stdin is not None and sys.stdin.isatty() and sys.stderr.isatty()

    def ask(self, question: str) -> bool:
        """Whether they agree; silence is no agreement."""
        return self.answer_to(question).lower() in ("y", "yes")

    def answer_to(self, question: str) -> str:
        """What they say; "" for nothing."""
        sys.stderr.write(question)
        sys.stderr.flush()
        return sys.stdin.readline().strip()

    def note(self, text: str) -> None:
        """A message beside the answer, on stderr."""
        print(harmless(text), file=sys.stderr)

    def error(self, error: HeadwayError) -> None:
        """An error in its one shape: what happened, the facts, what to do."""
        if self._args is not None:
            from headway.surfaces.cli.options import same_plan
            from headway.surfaces.cli.where import within

            error.hint = within(error.hint, same_plan(self._args))
        if self.as_json:
            with suppress(OSError):  # it may be stdout itself that cannot be written to
                self.answer({"error": error.to_dict()})
        first, *rest = harmless(str(error)).splitlines()
        with suppress(OSError):  # nobody can hear it; the exit code says it
            print(self.style(f"headway: {first}", "red", err=True), *rest, sep="\n", file=sys.stderr)

    def colours(self, stream: Any) -> bool:
        """Whether colour can be seen on one of the two streams."""
        return self._colour_err if stream is sys.stderr else self._colour_out

    def style(self, text: str, *names: str, err: bool = False) -> str:
        """Text with colour, where colour can be seen."""
        if not (self._colour_err if err else self._colour_out):
            return text
        return "".join(f"\x1b[{_STYLES[name]}m" for name in names) + text + "\x1b[0m"


def harmless(text: str) -> str:
    """Without what would do something to a terminal: goals, notes and names come from anybody. Colours may stay."""
    plain = text.replace("\n", "").isprintable()
    return text if plain else re.sub(_HARMFUL, "\N{REPLACEMENT CHARACTER}", text)
