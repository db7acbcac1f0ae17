"""Real processes: runs of `headway` to be interrupted, and what they leave behind."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

PATIENCE = 30.0


def start(root: Path, *words: str) -> subprocess.Popen[str]:
    """`headway run` in a process of its own."""
    command = [sys.executable, "-m", "headway", "run", *words]
    return subprocess.Popen(command, cwd=root, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def finish(process: subprocess.Popen[str]) -> tuple[int, str, str]:
    """Its exit code, and what it said."""
    out, err = process.communicate(timeout=PATIENCE)
    return process.returncode, out, err


def soon(condition: Callable[[], object]) -> bool:
    """Whether something becomes true, given time enough."""
    deadline = time.monotonic() + PATIENCE
    while not condition():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.01)
    return True


def processes(mark: str) -> list[int]:
    """Processes whose command line holds a mark."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit() and int(entry.name) != os.getpid():
            try:
                if mark.encode() in (entry / "cmdline").read_bytes():
                    found.append(int(entry.name))
            except OSError:
                continue
    return found


def zombies() -> list[int]:
    """Children of this process that nobody has waited for."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                fields = (entry / "stat").read_text().rpartition(")")[2].split()
            except OSError:
                continue
            if fields[0] == "Z" and int(fields[1]) == os.getpid():
                found.append(int(entry.name))
    return found
