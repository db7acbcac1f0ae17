"""Processes that append to a ledger, for test_concurrency.py: `python -m tests.behaviour.appending WORK FOLDER …`."""

from __future__ import annotations

import os
import signal
import sys
import time
from pathlib import Path

from headway.errors import BugError
from tests.behaviour.plans import goal, writer


def append(folder: str, name: str, count: str, rotate_every: str = "0") -> None:
    """Change the goal many times, syncing as events come; seal the ledger now and then."""
    w = writer(Path(folder))
    every = int(rotate_every)
    for number in range(int(count)):
        w.execute(goal(f"{name} {number}"), by=name, wait=False)
        if every and number % every == every - 1:
            w.rotate()
    w.close()


def die(folder: str) -> None:
    """Be killed in the middle of a batch, holding the lock."""
    w = writer(Path(folder))
    w.execute(goal("written by somebody who died"), by="test", wait=False)
    os.kill(os.getpid(), signal.SIGKILL)


def fork(folder: str) -> None:
    """Fork in the middle of a batch; say what the child is allowed to do, and leave it behind."""
    w = writer(Path(folder))
    w.execute(goal("before the fork"), by="test", wait=False)
    child = os.fork()
    if child == 0:
        try:
            w.execute(goal("by the child"), by="test")
        except BugError:
            os.write(1, b"refused\n")
        w.close()
        os.write(1, f"{os.getpid()}\n".encode())
        os.close(1)
        time.sleep(60)
        os._exit(0)
    w.execute(goal("by the parent"), by="test")
    os._exit(0)  # without closing anything: the kernel does


if __name__ == "__main__":
    {work.__name__: work for work in (append, die, fork)}[sys.argv[1]](*sys.argv[2:])
