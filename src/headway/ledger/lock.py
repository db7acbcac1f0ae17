"""Kernel locks on files of their own: gone with their holder, never replaced, not inherited by children."""

from __future__ import annotations

import fcntl
import os
import time
import weakref
from contextlib import suppress
from typing import Any

import msgspec

from headway.disk import file_of, still_is

LONGEST_PAUSE = 0.001
"""How long somebody who waits may overlook that a lock was free."""

_known: weakref.WeakSet[FileLock] = weakref.WeakSet()


class FileLock:
    """An exclusive (or shared) lock. Two of them on one path exclude each other within a process, too."""

    def __init__(self, path: str) -> None:
        self.path = path
        self._fd = -1
        self._file: tuple[int, int] | None = None
        _known.add(self)

    @property
    def held(self) -> bool:
        """Whether this object holds the lock now."""
        return self._fd >= 0

    @property
    def stands(self) -> bool:
        """Whether it has not been given back by a recipe that closed all files of this process."""
        return self._fd >= 0 and still_is(self._fd, self._file, self.path)

    def acquire(self, *, wait: float, shared: bool = False) -> bool:
        """Take the lock, waiting up to `wait` seconds. The lock file is created and never removed."""
        mode = (fcntl.LOCK_SH if shared else fcntl.LOCK_EX) | fcntl.LOCK_NB
        deadline = time.monotonic() + wait
        fd = -1
        while fd < 0:
            fd = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
            try:
                taken = _flock(fd, mode, deadline)
                if taken and self._is_in_place(fd):
                    break
            except BaseException:
                os.close(fd)
                raise
            os.close(fd)
            fd = -1
            if not taken:
                return False
        self._fd, self._file = fd, file_of(fd)
        return True

    def _is_in_place(self, fd: int) -> bool:
        """Somebody who deletes a lock file must not leave two holders behind."""
        try:
            return os.path.samestat(os.fstat(fd), os.stat(self.path))
        except FileNotFoundError:
            return False

    def release(self) -> None:
        """Give it back; releasing twice is harmless."""
        stands, fd, self._fd = self.stands, self._fd, -1
        if stands:
            with suppress(OSError):
                os.close(fd)

    def is_taken(self) -> bool:
        """Whether somebody holds it alone now. Looks without creating it; where nobody can tell, somebody does."""
        try:
            fd = os.open(self.path, os.O_RDONLY | os.O_CLOEXEC)
        except FileNotFoundError:
            return False
        except OSError:
            return True
        try:
            fcntl.flock(fd, fcntl.LOCK_SH | fcntl.LOCK_NB)
            fcntl.flock(fd, fcntl.LOCK_UN)
        except OSError:
            return True
        finally:
            os.close(fd)
        return False

    def sign(self, facts: dict[str, Any]) -> None:
        """Write who holds it, for whoever is refused: in one piece, blanks over what is left of a longer one before."""
        if self.stands:
            os.pwrite(self._fd, msgspec.json.encode(facts).ljust(os.fstat(self._fd).st_size), 0)

    def signature(self) -> dict[str, Any]:
        """Who signed it last, or nothing."""
        try:
            with open(self.path, "rb") as file:
                found = msgspec.json.decode(file.read(65536))
        except (OSError, msgspec.DecodeError):
            return {}
        return found if isinstance(found, dict) else {}


def holder(since: str) -> dict[str, Any]:
    """This process, as a signature."""
    return {"pid": os.getpid(), "host": os.uname().nodename, "since": since}


def _flock(fd: int, mode: int, deadline: float) -> bool:
    pause = 0.0001
    while True:
        try:
            fcntl.flock(fd, mode)
        except BlockingIOError:
            if time.monotonic() >= deadline:
                return False
            time.sleep(pause)
            pause = min(pause * 2, LONGEST_PAUSE)
        else:
            return True


def _forget_in_child() -> None:
    """A forked child holds none of its parent's locks: closing its copies leaves the parent's lock alone."""
    for lock in list(_known):
        lock.release()


os.register_at_fork(after_in_child=_forget_in_child)
