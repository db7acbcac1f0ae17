"""Files that others were put in the place of: let go of many at a time, behind everybody's back.

When the last who holds a replaced file lets go of it, the file system gives back the room that it took, which can take
longer than writing the new one did; on some disks ten times as long. Nobody has to wait for that. A thread could close
file after file, but would have to wait for the interpreter each time; so all of them are put into a message that nobody
reads, and the thread takes away the message: the system does the rest in one call, beside whatever Python does.
"""

from __future__ import annotations

import os
import sys
from _thread import start_new_thread  # what threading offers, without the time to import it
from array import array
from collections import deque

MOST = 64
"""So many are held at once at most: they take up as many places among the files that a process may have open."""

FEW = 8
"""So few are let go of at once."""

_HOLD = getattr(os, "O_PATH", 0) | getattr(os, "O_NOFOLLOW", 0) | os.O_CLOEXEC


class Replaced:
    """What was replaced and is still held. Safe in any thread."""

    def __init__(self) -> None:
        self._held: deque[int] = deque()
        self._highest: int | None = None

    def hold(self, path: str) -> None:
        """Keep what stands there, which is about to be replaced. Where that cannot be done, it goes with that."""
        if not hasattr(os, "O_PATH"):  # to open it in any other way might wait for somebody, or change something
            return
        try:
            fd = os.open(path, _HOLD)
        except OSError:
            return
        if self._highest is None:
            self._highest = _half_of_all()
        if fd > self._highest:  # it is crowded, and others need the rest
            os.close(fd)
            return
        self._held.append(fd)
        if len(self._held) >= MOST:
            self.let_go()

    def let_go(self) -> None:
        """Of all that is held."""
        held: list[int] = []
        while self._held:
            try:
                held.append(self._held.popleft())
            except IndexError:  # somebody else was quicker
                break
        try:
            if len(held) >= FEW:
                _hand_over(held)
        finally:
            for fd in held:
                os.close(fd)


def _half_of_all() -> int:
    """The number of a file above which half of those that this process may have open are taken: each has the lowest
    that is free."""
    from resource import RLIM_INFINITY, RLIMIT_NOFILE, getrlimit

    most, _ = getrlimit(RLIMIT_NOFILE)
    return sys.maxsize if most == RLIM_INFINITY else most // 2


def _hand_over(held: list[int]) -> None:
    """Have a thread let go of them, too; if that cannot be done, only we hold them."""
    from _socket import AF_UNIX, SCM_RIGHTS, SOCK_DGRAM, SOL_SOCKET, socketpair  # `socket` takes ten times as long

    try:
        ours, theirs = socketpair(AF_UNIX, SOCK_DGRAM)
    except OSError:
        return
    try:
        ours.sendmsg([b"\0"], [(SOL_SOCKET, SCM_RIGHTS, array("i", held))])
        start_new_thread(theirs.close, ())
    except (OSError, RuntimeError):  # there may be no room for it, or for another thread
        theirs.close()
    finally:
        ours.close()
