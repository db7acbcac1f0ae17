"""One scheduler per plan. Whoever takes the lock after a scheduler that died ends what is left of its commands."""

from __future__ import annotations

import os
import signal
import threading
from contextlib import suppress
from typing import Any

from headway import disk
from headway.errors import TryLater, closed_by_recipe
from headway.ledger.lock import FileLock, holder
from headway.ledger.recovery import now

PATIENCE = 0.3
SHELL = b"/bin/sh\0-e\0"
"""How the words of every command of ours begin."""


def take(lock: FileLock, plan_id: str) -> None:
    """Become the plan's scheduler, or be told who is."""
    if not lock.acquire(wait=PATIENCE):
        facts = lock.signature()
        raise TryLater(
            f"Plan {plan_id} is being run already",
            facts={name: facts[name] for name in ("pid", "host", "since") if name in facts},
            hint="wait for it, or stop it (Ctrl-C there); headway status shows how far it is",
            code="run.busy",
        )
    settle_in(lock)


def settle_in(lock: FileLock) -> None:
    """Whoever has the lock now ends what its last holder left behind, and signs."""
    end_leftovers(lock.signature())
    lock.sign(signature("", []))


def signature(run: str, groups: list[tuple[int, str]]) -> dict[str, Any]:
    """Who runs the plan, and the process groups of its commands, each with the time when it began."""
    return {**holder(now()), "run": run, "boot": disk.boot_id(), "groups": groups}


class Groups:
    """The process groups of a run's commands, by artifact, as its lock names them: whoever finds it dead ends them."""

    def __init__(self, lock: FileLock, run: str) -> None:
        self._lock = lock
        self._run = run
        self._by_artifact: dict[str, tuple[int, str]] = {}
        self._mutex = threading.Lock()
        self._sign()

    def refuse_lost(self) -> None:
        """Without its lock, somebody else may have become the plan's scheduler."""
        if self._lock.held and not self._lock.stands:
            raise closed_by_recipe(self._lock.path)

    def began(self, artifact_id: str, group: int) -> None:
        """A command is running."""
        with self._mutex:
            self._by_artifact[artifact_id] = group, started_at(group)
            self._sign()

    def ended(self, *ids: str) -> None:
        """What was running for these artifacts, if anything, is over."""
        for artifact_id in ids if self._by_artifact else ():
            if artifact_id in self._by_artifact:
                with self._mutex:
                    del self._by_artifact[artifact_id]
                    self._sign()

    def end_all(self) -> None:
        """Nobody waits for them any more; whoever did finds out by itself."""
        with self._mutex:
            for group, began in self._by_artifact.values():
                with suppress(ProcessLookupError, PermissionError):
                    if started_at(group) in (began, ""):  # else it has ended, and its number is another's
                        os.killpg(group, signal.SIGKILL)

    def _sign(self) -> None:
        if self._lock.held:
            self._lock.sign(signature(self._run, list(self._by_artifact.values())))


def end_leftovers(facts: dict[str, Any]) -> None:
    """End the commands of a scheduler that is gone: a group counts only if its leader is the very process."""
    if facts.get("boot") != disk.boot_id() or facts.get("host") != os.uname().nodename:
        return
    for group, began in facts.get("groups", ()):
        leader = started_at(group)
        if began and (leader == began or (not leader and _members(group, str(facts.get("run", ""))))):
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(group, signal.SIGKILL)
    for group in _unsigned(str(facts.get("run", ""))):
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(group, signal.SIGKILL)


def _unsigned(run: str) -> list[int]:
    """Commands of a run that was killed between starting them and signing for them: shells of ours by their words and
    by their environment.
    """
    mark, found = f"\0HEADWAY_RUN={run}\0".encode(), []
    for name in os.listdir("/proc") if run and os.path.isdir("/proc") else ():
        with suppress(OSError, ValueError):
            if not name.isdigit() or os.getpgid(int(name)) != int(name):
                continue
            with open(f"/proc/{name}/cmdline", "rb") as file:
                if not file.read(12).startswith(SHELL):
                    continue
            with open(f"/proc/{name}/environ", "rb") as file:
                if mark in b"\0" + file.read() + b"\0":
                    found.append(int(name))
    return found


def _members(group: int, run: str) -> bool:
    """Whether what is left of a group without its leader belongs to that run: its environment says so."""
    mark = f"\0HEADWAY_RUN={run}\0".encode()
    for name in os.listdir("/proc") if run and os.path.isdir("/proc") else ():
        with suppress(OSError, ValueError):
            if name.isdigit() and os.getpgid(int(name)) == group:
                with open(f"/proc/{name}/environ", "rb") as file:
                    if mark in b"\0" + file.read() + b"\0":
                        return True
    return False


def started_at(pid: int) -> str:
    """When a process began, as the kernel counts; "" if it is gone or the system does not tell."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            return file.read().rpartition(b")")[2].split()[19].decode()
    except (OSError, IndexError):
        return ""
