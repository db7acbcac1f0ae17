"""Commands that are told how a run ended. They decide nothing: one that fails or hangs is reported and left."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Iterable, Mapping
from contextlib import suppress

import msgspec

from headway.core.state import State

PATIENCE = 30.0
"""How long, in seconds, one command may take."""


def notify(root: str, commands: Iterable[str], state: State, environ: Mapping[str, str]) -> list[str]:
    """Run each command with what the ledger says of the newest run; what went wrong."""
    run = state.run
    if run is None:
        return []
    told = {
        "type": f"RUN_{run.status.upper()}",
        "plan_id": state.plan_id,
        "run": run.id,
        "status": run.status,
        "reason": run.reason,
    }
    env = {
        **environ,
        "HEADWAY_EVENT": msgspec.json.encode(told).decode(),
        "HEADWAY_PLAN": state.plan_id,
        "HEADWAY_STATUS": run.status,
    }
    return [problem for command in commands if (problem := _tell(root, command, env))]


def _tell(root: str, command: str, env: Mapping[str, str]) -> str:
    process = subprocess.Popen(
        ["/bin/sh", "-c", command],
        cwd=root,
        env=dict(env),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    try:
        code = process.wait(timeout=PATIENCE)
    except subprocess.TimeoutExpired:
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        return f"notify: {command} took longer than {PATIENCE:.0f} s and was ended"
    return f"notify: {command} failed with exit code {code}" if code else ""
