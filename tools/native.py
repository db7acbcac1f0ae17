"""Builds the part of Headway that is written in C, where there is a compiler. Where there is none, Python does that.

Built for all versions of Python from 3.11 on. `HEADWAY_PURE=1` leaves it out.
"""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
import sysconfig
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

SOURCE = Path("src/headway/_bulk.c")
BUILT = Path("src/headway/_bulk.abi3.so")


class Native(BuildHookInterface[Any]):
    """Compiles before a wheel is put together, or the project is installed as it stands."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        if self.target_name == "wheel" and _compiled(Path(self.root)):
            build_data["artifacts"].append(BUILT.as_posix())
            build_data["pure_python"] = False
            platform = sysconfig.get_platform().replace("-", "_").replace(".", "_")
            build_data["tag"] = f"cp311-abi3-{platform}"


def _compiled(root: Path) -> bool:
    """Whether it could be; a compiler that is not there, or not able to, is no reason not to install the rest."""
    link = shlex.split(sysconfig.get_config_var("LDSHARED") or "cc -shared")
    words = [*link, "-O2", "-fPIC", f"-I{sysconfig.get_path('include')}", str(root / SOURCE), "-o", str(root / BUILT)]
    try:
        (root / BUILT).unlink(missing_ok=True)
        if os.environ.get("HEADWAY_PURE"):
            return False
        done = subprocess.run(words, capture_output=True, text=True, check=False)
    except OSError as error:
        sys.stderr.write(f"headway: built without C: {error}\n")
        return False
    if done.returncode:
        sys.stderr.write(f"headway: built without C:\n{done.stderr}")
    return done.returncode == 0
