"""A program's file is imported for its plan, or for its functions; while it is, its own plan does not run.

Whatever it raises is an error of that file, in words; and the process does not end in silence, whoever ends it.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import NoReturn

from headway.errors import UsageError

UNGUARDED = "plan.guard"
"""The code of the error that a program meets which runs its plan all the same."""

STARTED = 'put what it does when it is started under  if __name__ == "__main__":'

_READ: ContextVar[tuple[str, str]] = ContextVar("read", default=("", ""))
"""The file that is being read, and for which artifact: then nothing is run, whoever only wants to look."""

at_work = threading.local()
"""`id`: the artifact whose function was last called in this thread."""

exit_at_once = os._exit


@contextmanager
def reading(path: str, artifact_id: str = "") -> Iterator[None]:
    """While a file is read, a plan that it runs is refused."""
    guard_exit()
    before = _READ.set((path, artifact_id))
    try:
        yield
    finally:
        _READ.reset(before)


def refuse_while_read() -> None:
    """Whoever runs a plan asks this first."""
    path, _ = _READ.get()
    if path:
        raise UsageError(
            f"{path} runs its plan as soon as it is read",
            facts={"reason": "headway reads it to see the plan, or for its functions, and must not run it then"},
            hint='put run() under  if __name__ == "__main__":',
            code=UNGUARDED,
        )


def told(error: BaseException) -> str:
    """What a file raised when it was read."""
    said = words_of(error)
    return f"{type(error).__name__}: {said}" if said else type(error).__name__


def way_out(error: BaseException, command: str) -> str:
    """What to do about it: a command shows where it was raised, but not where a program ended itself."""
    return STARTED if isinstance(error, SystemExit) else f"{command} shows where"


def words_of(error: BaseException | None) -> str:
    """What an error says, if it can say anything."""
    try:
        return str(error)
    except Exception as other:  # noqa: BLE001  # whatever it raises, the first one counts
        return f"(no words: {type(other).__name__})"


def guard_exit() -> None:
    """Neither a function nor a file that is read ends the whole process in silence, and never as if all were done."""
    if os._exit is not exit_at_once:
        return
    owner = os.getpid()

    def leave(code: int) -> NoReturn:
        path, artifact_id = _READ.get()
        artifact_id = artifact_id if path else getattr(at_work, "id", "")
        if (path or artifact_id) and os.getpid() == owner:
            who = f"artifact {artifact_id}" if artifact_id else path
            when = f" when {path if artifact_id else 'it'} was imported" if path else ""
            what = f"headway: {who} ended the process by os._exit({code}){when}; nothing that was recorded is lost"
            then = STARTED if path else "headway run"
            os.write(2, f"{what}\n  next: {then}\n".encode("utf-8", "backslashreplace"))
            code = code or 70
        exit_at_once(code)

    os._exit = leave  # type: ignore[assignment]  # as the real one, with a word first
