"""Does the same work over and over, in a process that is killed one step later each time. Run by test_crash.py.

One process forks all the others, so that a hundred kills cost one start of Python.
"""

from __future__ import annotations

import os
import shutil
import signal
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path

from headway.disk import RealDisk
from headway.files.blobs import Blobs
from headway.ledger.repair import repair
from tests.behaviour.plans import CREATE, RESCUED, completions, goal, writer

Acknowledge = Callable[[str], None]


class KillingDisk(RealDisk):
    """Kills its process at the n-th operation: before it, or, for a write, in the middle of it."""

    def __init__(self, at: int) -> None:
        self.left = at

    def _step(self) -> None:
        self.left -= 1
        if self.left == 0:
            os.kill(os.getpid(), signal.SIGKILL)

    def open(self, path: str, flags: int) -> int:
        self._step()
        return super().open(path, flags)

    def write(self, fd: int, data: bytes | memoryview, offset: int) -> int:
        self._step()
        if self.left == 1:
            super().write(fd, data[: len(data) // 2], offset)
            self._step()
        return super().write(fd, data, offset)

    def sync(self, fd: int) -> None:
        self._step()
        super().sync(fd)

    def sync_folder(self, path: str) -> None:
        self._step()
        super().sync_folder(path)

    def truncate(self, fd: int, size: int) -> None:
        self._step()
        super().truncate(fd, size)

    def replace(self, source: str, target: str) -> None:
        self._step()
        super().replace(source, target)

    def make_folder(self, path: str) -> None:
        self._step()
        super().make_folder(path)


def create(folder: Path, disk: RealDisk, acknowledge: Acknowledge) -> None:
    """Begin a plan and change its goal."""
    w = writer(folder, disk=disk)
    for command in (CREATE, goal("one"), goal("two")):
        acknowledge(str(w.execute(command, by="test")[-1].seq))
    w.close()


def commit(folder: Path, disk: RealDisk, acknowledge: Acknowledge) -> None:
    """Go on with a plan: three commits (the first after whatever recovery it needs), and a snapshot."""
    w = writer(folder, disk=disk)
    for text in ("one", "two", "three"):
        acknowledge(str(w.execute(goal(text), by="test")[-1].seq))
    w.snapshot()
    acknowledge(str(w.execute(goal("four"), by="test")[-1].seq))
    w.close()


def rotate(folder: Path, disk: RealDisk, acknowledge: Acknowledge) -> None:
    """Seal the ledger between two commits, twice."""
    w = writer(folder, disk=disk)
    for text in ("one", "two"):
        acknowledge(str(w.execute(goal(text), by="test")[-1].seq))
        w.rotate()
    acknowledge(str(w.execute(goal("three"), by="test")[-1].seq))
    w.close()


def complete(folder: Path, disk: RealDisk, acknowledge: Acknowledge) -> None:
    """Make artifacts: the whole order of a commit, pack and ledger."""
    completions(folder, disk, lambda seq: acknowledge(str(seq)))


def mend(folder: Path, disk: RealDisk, acknowledge: Acknowledge) -> None:
    """Repair a ledger, with a state to be had elsewhere."""
    rescue = ("plan.json", RESCUED, None)
    repair(str(folder), rescue=lambda: rescue, plan_id="plan", project_id="project", disk=disk)


def keep(folder: Path, disk: RealDisk, acknowledge: Acknowledge) -> None:
    """Store blobs, small and large."""
    blobs = Blobs(str(folder / "blobs"), disk=disk)
    for data in (b"small", b"another", b"L" * (300 * 1024), b"", b"last"):
        name = blobs.put(data)
        blobs.sync()
        acknowledge(name)
    blobs.close()


SCENARIOS = {work.__name__: work for work in (create, commit, rotate, complete, mend, keep)}


def main(scenario: str, template: str, out: str) -> None:
    """Kill the work at its first step, then at its second, and so on until it comes to its end."""
    step = 0
    while True:
        step += 1
        folder = Path(out) / str(step) / "plans" / "plan"
        folder.parent.mkdir(parents=True)
        shutil.copytree(template, folder)
        told = os.open(Path(out) / str(step) / "told", os.O_WRONLY | os.O_CREAT | os.O_APPEND)
        child = os.fork()
        if child == 0:
            SCENARIOS[scenario](folder, KillingDisk(step), partial(_write, told))
            os._exit(0)
        _, status = os.waitpid(child, 0)
        os.close(told)
        if os.WIFEXITED(status):
            sys.exit(os.WEXITSTATUS(status))


def _write(fd: int, text: str) -> None:
    os.write(fd, f"{text}\n".encode())


if __name__ == "__main__":
    main(*sys.argv[1:])
