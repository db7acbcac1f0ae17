"""Workspace and environment in one call each, by the names of RFC-105. Each begins anew from what is on disk.

Whoever asks again and again keeps a `Workspace` or an `Environment`, which look only at what has changed.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from headway.history.upper_shapes import EnvironmentDag, WorkspaceDag


def environment_home() -> str:
    """Where this machine's own ledger is: `$HEADWAY_HOME`, else `~/.headway`."""
    return os.environ.get("HEADWAY_HOME") or os.path.join(os.path.expanduser("~"), ".headway")


def get_workspace_dag(path: str | os.PathLike[str]) -> WorkspaceDag:
    """The projects below a folder: their goals, relations, what they share. Writes nothing."""
    from headway.history.workspace import Workspace

    return Workspace(path).dag()


def refresh_workspace_index(path: str | os.PathLike[str]) -> WorkspaceDag:
    """Look at the projects below a folder, and keep what was seen in `.headway/dag/workspace-index.json`."""
    from headway.history.workspace import Workspace

    workspace = Workspace(path)
    workspace.refresh()
    return workspace.dag()


def get_environment_overview(home: str | os.PathLike[str] | None = None) -> EnvironmentDag:
    """All workspaces of this machine that its user has named. Writes nothing."""
    from headway.history.environment import Environment

    return Environment(home if home is not None else environment_home()).overview()
