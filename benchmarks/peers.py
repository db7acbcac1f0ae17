"""Other tools that do the same work, in an environment of their own; what is not here is left out, and said."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from functools import cache
from pathlib import Path

PATIENCE = 120


@cache
def find(name: str, folder: Path | None) -> str | None:
    """The command of a tool: from the system, or installed for us. None where there is none."""
    if folder is None:
        return None
    if name == "make":
        return shutil.which("gmake") or shutil.which("make")
    _install(folder)
    own = folder / "bin" / name
    return str(own) if own.exists() else shutil.which(name)


@cache
def version(command: str) -> str:
    """What a tool says it is."""
    said = subprocess.run([command, "--version"], capture_output=True, text=True, check=False, timeout=PATIENCE)
    return said.stdout.splitlines()[0].strip() if said.stdout else "unknown"


@cache
def _install(folder: Path) -> None:
    if (folder / ".installed").exists():
        return
    try:
        if not (folder / "bin" / "python").exists():
            subprocess.run([sys.executable, "-m", "venv", folder], check=True, capture_output=True, timeout=PATIENCE)
        for package in ("doit", "ninja"):  # one by one: each may be missing alone
            words = [str(folder / "bin" / "python"), "-m", "pip", "install", "-q", package]
            environment = {**os.environ, "PIP_DISABLE_PIP_VERSION_CHECK": "1"}
            done = subprocess.run(words, check=False, capture_output=True, env=environment, timeout=PATIENCE)
            if done.returncode:
                print(f"  {package} cannot be installed", file=sys.stderr)
    except (OSError, subprocess.SubprocessError) as error:
        print(f"  no environment for other tools: {error}", file=sys.stderr)
        return
    (folder / ".installed").touch()
