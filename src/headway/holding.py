"""Who keeps a claim: a connection of a process on a host; and whether it can be proven that it is gone.

Knows processes and names of connections; never plans. What follows from it is life.py's, by core's rules.
"""

from __future__ import annotations

import os
from contextlib import suppress

from headway import disk
from headway.core.state import Claim
from headway.engine.scheduler_lock import started_at

_FIELDS = 5


def here(connection: str) -> str:
    """A connection of this process, as claims name it."""
    pid = os.getpid()
    return " ".join((_host(), disk.boot_id() or "-", str(pid), started_at(pid) or "-", connection))


def gone(claim: Claim) -> str:
    """Why the holder of a claim is certainly gone, or "": what is on another host cannot be known from here."""
    if claim.left:
        return f"its connection closed at {claim.left}"
    fields = claim.holder.split(" ", _FIELDS - 1)
    if len(fields) < _FIELDS or fields[0] != _host() or not fields[2].isdigit():
        return ""
    _, boot, pid, started, _ = fields
    if boot != (disk.boot_id() or "-"):
        return "its host was started anew"
    return "" if _is_alive(int(pid), started) else f"its process {pid} is not there any more"


def _is_alive(pid: int, started: str) -> bool:
    """Whether this very process is there: another one may have been given its number since."""
    if started != "-":
        return started_at(pid) == started
    with suppress(PermissionError):
        try:
            os.kill(pid, 0)
        except ProcessLookupError:
            return False
    return True


def _host() -> str:
    """This host, and of what shares its name but not its processes (containers), which."""
    with suppress(OSError):
        return f"{os.uname().nodename}/{os.readlink('/proc/self/ns/pid')}"
    return f"{os.uname().nodename}/-"
