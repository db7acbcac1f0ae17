"""What one thread makes one after the other, and what came of each: files and blobs are written many at a time, before
anybody is told of them.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterable, Sequence
from contextlib import suppress
from itertools import chain, zip_longest
from typing import NamedTuple

import msgspec

from headway import bulk
from headway.bulk import Answer, Known, Order
from headway.core.gates import Check
from headway.core.state import Output
from headway.engine.scribe import Scribe
from headway.errors import HeadwayError
from headway.files.blobs import LARGE
from headway.files.outputs import Outputs, Placed

TOGETHER = 64
"""So many files are written together at most."""


class Outcome(msgspec.Struct):
    """What came of it. `stood`: what had come to stand at its paths since they were looked at, kept as blobs; `other`:
    its templates that had become something else by then.
    """

    id: str
    ok: bool
    outputs: tuple[Output, ...] = ()
    code: str = ""
    error: str = ""
    attempts: int = 1
    ms: int = 0
    stdout: str = ""
    stderr: str = ""
    verified: bool = False
    retry_after: float | None = None
    checks: tuple[Check, ...] = ()
    prompt: str = ""
    stood: tuple[Output, ...] = ()
    other: tuple[str, ...] = ()

    def fail(self, code: str, error: str) -> Outcome:
        """It failed after all."""
        self.ok, self.code, self.error = False, code, error
        return self


Plain = tuple[Outcome, str, bytes]
"""An artifact from which nothing came but bytes for a new file, and the path of that."""

Made = tuple[Outcome, Sequence[Placed]]
"""What came of an artifact, and all that it left."""


class File(msgspec.Struct):
    """An output that is yet to be written, and the digest of what was left there."""

    order: Order
    outcome: Outcome
    placed: Placed
    left: str


class _Due:
    """Files that are yet to be written, together, and what waits for them. `plain`: those of which there is nothing
    else to know; all of them are in `ended`.
    """

    __slots__ = ("added", "ended", "files", "plain", "size")

    def __init__(self) -> None:
        self.plain: list[Plain] = []
        self.files: list[File] = []
        self.size = 0
        self.added: list[Made] = []
        self.ended: list[Outcome] = []


class _Written(NamedTuple):
    """Plain files that were written together, column by column: as they were left, and the time that each was given."""

    outcomes: Sequence[Outcome]
    paths: Sequence[str]
    data: Sequence[bytes]
    found: Sequence[Known]
    marked: Sequence[int]

    def one_by_one(self) -> list[Made]:
        """The same as what is known of any other."""
        columns = zip(self.paths, self.data, self.found, self.marked, strict=True)
        return [(outcome, (Placed(*one),)) for outcome, one in zip(self.outcomes, columns, strict=True)]


class Row:
    """Blobs are written once for all of it, the files of light ones a few times, and folders are not looked at again
    where something was just put.

    Whoever waits for it may ask in between for what is done so far: the one at hand may take its time.
    """

    def __init__(self, outputs: Outputs) -> None:
        self._outputs = outputs
        self.scribe: Scribe | None = None
        """Who writes its files while more of it is made, and is done with them before whoever waits for the row."""
        self._folder: str | None = None
        self._lock = threading.RLock()
        self._is_well = True
        self._due = _Due()
        self._ended: list[Outcome] = []
        self._since = 0.0
        self._written: list[_Written] = []
        self._made: list[Made] = []
        self._said: list[tuple[Outcome, str, bytes]] = []
        self._size = 0

    def make_parents(self, paths: Iterable[str]) -> None:
        """The folders above outputs are there: whatever is made next may rely on it, and may take them away."""
        for path in paths:
            if self._folder != path[: path.rfind("/", 0, -1) + 1]:
                self._outputs.folders.make_parents(path)
        self._folder = None

    def is_clear(self, path: str) -> bool:
        """Whether there is nothing to do or to be told before something is made for an output path (see `Outputs`)."""
        self._folder = None
        is_clear = self._outputs.folders.is_clear
        return is_clear(path) or (self._is_there(path) and is_clear(path))

    # Files.

    def place(self, outcome: Outcome, path: str, data: bytes, left: str | None, *, later: bool) -> Placed:
        """Put bytes at an output path, `later` together with others; `left` as for `Outputs.place`."""
        order = self._outputs.order(path, data, left) if later and left is not None else None
        if order is None or left is None:
            placed = self._outputs.place(path, data, left=left)
            if placed.stood is not None:
                with self._lock:
                    outcome.stood += (placed.stood,)
        else:
            placed = Placed(path, data)
            with self._lock:
                self._due.files.append(File(order, outcome, placed, left))
                self._due.size += len(data)
        return placed

    def write(self) -> bool:
        """Write what was put off, and let those go on who waited for it; whether none has failed for it so far."""
        return self._write(self._taken())

    def _write_beside(self) -> bool:
        """The same, while more is made, if there is somebody for it."""
        due, is_taken = self._taken(), False
        with suppress(Exception):  # short of memory, say: whatever it is, these are written
            is_taken = self.scribe is not None and self.scribe.take(lambda: self._write(due))
        return self._is_well if is_taken else self._write(due)

    def _taken(self) -> _Due:
        with self._lock:
            due, self._due = self._due, _Due()
        return due

    def _write(self, due: _Due) -> bool:
        try:
            self._put_down(due)
        except Exception as error:  # noqa: BLE001  # whatever it is, nobody waits for these in vain
            self._give_up(due, error)
        return self._is_well

    def _give_up(self, due: _Due, error: Exception) -> None:
        """What was due has failed, as far as nobody was told of it yet."""
        with self._lock:
            told, self._is_well = set(map(id, self._ended)), False
            paths = [(outcome, path) for outcome, path, _ in due.plain]
            paths += [(file.outcome, file.placed.path) for file in due.files]
            for outcome in due.ended:
                if id(outcome) not in told and outcome.ok:
                    outcome.fail(*failure_of(error))
                    outcome.outputs = left_by(self._outputs, [path for of, path in paths if of is outcome])
            self._ended += [outcome for outcome in due.ended if id(outcome) not in told]

    def _put_down(self, due: _Due) -> None:
        written = self._write_plain(due) if due.plain else None
        files = [file for file in due.files if file.outcome.ok]  # what has failed since has left what it had by then
        ready, alone, answers = self._write_together(files) if files else ([], [], [])
        with self._lock:
            for file, (error, found, marked) in zip(ready, answers, strict=True):
                if error:
                    alone.append(file)
                else:
                    placed = file.placed
                    placed.found, placed.marked = found, marked
            for file in alone:
                self._write_alone(file)
            failed = [added for added in due.added if not added[0].ok]
            for outcome, made in failed:
                outcome.outputs = left_by(self._outputs, [one.path for one in made if one.path])
            self._add([added for added in due.added if added[0].ok] if failed else due.added, written)
            self._ended += due.ended
            self._is_well = self._is_well and all(file.outcome.ok for file in files)

    def _write_plain(self, due: _Due) -> _Written | None:
        """All that is plain, if it can be written just like that; what cannot becomes a file like any other."""
        outcomes, paths, data = zip(*due.plain, strict=True)
        answers = list[Answer]()
        with suppress(Exception):  # whatever it is, it is told of each
            answers = bulk.write(self._outputs.order_all(paths, data)) if not self._lost(paths) else []
        errors, found, marked = zip(*answers, strict=True) if answers else ((True,), (), ())
        if not any(errors):
            return _Written(outcomes, paths, data, found, marked)
        for (outcome, path, text), answer in zip_longest(due.plain, answers):
            placed = Placed(path, text)
            if answer is not None and not answer[0]:
                _, placed.found, placed.marked = answer
            else:
                due.files.append(File(self._outputs.order_new(path, text), outcome, placed, ""))
            due.added.append((outcome, (placed,)))
        return None

    def _write_together(self, files: list[File]) -> tuple[list[File], list[File], list[Answer]]:
        """Files that were written together, those that have to be looked at alone, and what became of the first."""
        try:
            lost = self._lost([file.placed.path for file in files])
            ready, alone = list[File](), list[File]()
            for file in files:
                (alone if file.placed.path.rpartition("/")[0] in lost else ready).append(file)
            return ready, alone, bulk.write([file.order for file in ready])
        except Exception:  # noqa: BLE001  # whatever it is, it is told of each
            return [], files, []

    def _lost(self, paths: Sequence[str]) -> set[str]:
        """The folders that are not what they were: recipes may have done anything to them since they were looked at."""
        self._outputs.refuse_late()
        self._outputs.folders.forget()
        folders = {path.rpartition("/")[0]: path for path in paths}
        return {folder for folder, path in folders.items() if not self._is_there(path)}

    def _is_there(self, path: str) -> bool:
        """Whether the folder of an output is there, or could be made."""
        try:
            if "/" in path:
                self._outputs.folders.make_parents(path)
        except (HeadwayError, OSError):
            return False
        return True

    def _write_alone(self, file: File) -> None:
        """What could not be written like that is looked at more closely; if it cannot be written at all, it failed."""
        outcome, placed = file.outcome, file.placed
        if not outcome.ok:
            return
        try:
            closely = self._outputs.place(placed.path, placed.data, left=file.left)
            placed.found, placed.marked = closely.found, closely.marked
            if closely.stood is not None:
                outcome.stood += (closely.stood,)
        except Exception as error:  # noqa: BLE001  # said so with the artifact
            if outcome.ok:
                outcome.fail(*failure_of(error))

    # Blobs.

    def add(self, outcome: Outcome, placed: list[Placed]) -> None:
        """These are its outputs once they are in blobs; many bytes are taken there at once.

        The folder that the last of them was just put into is there until something else is done.
        """
        with self._lock:
            if self._due.files or self._due.plain:
                self._due.added.append((outcome, placed))
                return
            if outcome.ok:  # else it could not be written
                self._add([(outcome, placed)])
        path = placed[-1].path
        if path and not outcome.checks:
            self._folder = path[: path.rfind("/", 0, -1) + 1]

    def _add(self, made: list[Made], written: _Written | None = None) -> None:
        self._made += made
        self._size += sum([len(one.data) for _, placed in made for one in placed])
        if written is not None:
            self._written.append(written)
            self._size += sum(map(len, written.data))
        if self._size >= LARGE:
            self.keep()

    def add_text(self, outcome: Outcome, name: str, text: bytes) -> None:
        """What belongs to it besides, and its name among the blobs."""
        with self._lock:
            self._said.append((outcome, name, text))
            self._size += len(text)

    def keep(self) -> None:
        """Take all that was added into blobs. What cannot be kept has failed: only that, and not what is beside it."""
        with self._lock:
            made, texts, written = self._made, self._said, self._written
            self._made, self._said, self._written, self._size = [], [], [], 0
            if written and not (made or texts) and self._keep_written(written):
                return
            made += [one for many in written for one in many.one_by_one()]
            try:
                data = [one for _, placed in made for one in placed]
                kept = self._outputs.keep(data, {name: text for _, name, text in texts})
                end = 0
                for outcome, placed in made:
                    outcome.outputs = tuple(kept[end : (end := end + len(placed))])
            except Exception:  # noqa: BLE001  # whatever it is, it is told below
                self._folder = None  # it may be tried again, after a while
                alone: dict[str, tuple[Outcome, list[Placed], dict[str, bytes]]] = {}
                for outcome, placed in made:
                    alone.setdefault(outcome.id, (outcome, [], {}))[1].extend(placed)
                for outcome, name, text in texts:
                    alone.setdefault(outcome.id, (outcome, [], {}))[2][name] = text
                for outcome, placed, own in alone.values():
                    self._keep_alone(outcome, placed, own)

    def _keep_written(self, written: list[_Written]) -> bool:
        """Take plain files into blobs, all of them at once; whether that could be done."""
        outcomes, paths, data, found, marked = [list(chain.from_iterable(c)) for c in zip(*written, strict=True)]
        try:
            kept = self._outputs.keep_all(paths, data, found, marked)
        except Exception:  # noqa: BLE001  # whoever looks at each of them finds out
            return False
        for outcome, output in zip(outcomes, kept, strict=True):
            outcome.outputs = (output,)
        return True

    def _keep_alone(self, outcome: Outcome, placed: list[Placed], texts: dict[str, bytes]) -> None:
        try:
            outputs = self._outputs.keep(placed, texts)
        except Exception as error:  # noqa: BLE001  # said so with the artifact
            outcome.prompt = "" if texts else outcome.prompt  # an event names no bytes that are not there
            if outcome.ok:
                outcome.fail(*failure_of(error))
                outcome.outputs = left_by(self._outputs, [one.path for one in placed if one.path])
        else:
            outcome.outputs = tuple(outputs) if placed else outcome.outputs

    # Outcomes.

    def end(self, outcome: Outcome) -> bool:
        """This is what came of it; whether it is worth going on, by all that is known."""
        with self._lock:
            due = self._due
            if not self._ended and not due.ended:
                self._since = time.monotonic()
            (due.ended if due.files or due.plain else self._ended).append(outcome)
            is_much = len(due.files) >= TOGETHER or due.size >= LARGE
        return (not is_much or self._write_beside()) and outcome.ok

    def end_with(self, made: Plain) -> bool:
        """As `place`, `add` and `end`, of an artifact from which nothing came but a file that is written later."""
        outcome, _, data = made
        with self._lock:
            due = self._due
            if not due.ended and not self._ended:
                self._since = time.monotonic()
            due.plain.append(made)
            due.ended.append(outcome)
            due.size += len(data)
            is_much = len(due.plain) >= TOGETHER or due.size >= LARGE
        return not is_much or self._write_beside()

    def tell(self, *, after: float = 0.0) -> list[Outcome]:
        """What has come of tasks since this was last asked, all of it in blobs; if the first of them waits so long."""
        with self._lock:
            if not (self._ended or self._due.ended) or time.monotonic() - self._since < after:
                return []
            self.write()
            self.keep()
            told, self._ended = self._ended, []
            return told


def failure_of(error: BaseException) -> tuple[str, str]:
    """The code and the words of a failure that is not the recipe's own."""
    if isinstance(error, HeadwayError):
        return error.error_code, error.in_one_line
    if isinstance(error, OSError):
        return "os", f"{error.strerror}: {error.filename}" if error.filename else str(error.strerror or error)
    return "bug", f"{type(error).__name__}: {error}"


def left_by(outputs: Outputs, paths: Sequence[str]) -> tuple[Output, ...]:
    """What a failed attempt left at its output paths, so that it is never taken for an edit."""
    try:
        return outputs.left(paths)
    except Exception:  # noqa: BLE001  # whatever is the matter, something may be there
        return tuple(Output(path, "", 0) for path in paths)
