"""Which folder is a project, and which project it is: the marks of a root, and `.headway/project.json`.

Looks at folders and reads two kinds of file; knows no plan. A reader never creates anything here.
"""

from __future__ import annotations

import os
import re
from contextlib import suppress

import msgspec

from headway.disk import Disk, make_folders, write_file
from headway.errors import DamageError, FormatTooNew

FORMAT = 1
HOME = ".headway"
NAME = "project.json"
WORKSPACE = "workspace"
"""Below HOME: the folder of a workspace's ledger."""
WORKSPACE_INDEX = "dag/workspace-index.json"
"""Below HOME: what was last seen of a workspace."""
MARKERS = (f"{HOME}/{NAME}", "headway.toml", "headway.yaml")

_ID = r"[A-Za-z0-9_-]{1,64}"


def find_root(start: str, *, home: str = "") -> str:
    """The nearest marked folder above `start`, else the Git root, else `start` itself.

    The home folder is passed over, marked or not: it would swallow everything below it.
    """
    avoided = os.path.realpath(home) if home else ""
    git = ""
    folder = start
    while True:
        if not avoided or os.path.realpath(folder) != avoided:
            if any(os.path.exists(os.path.join(folder, mark)) for mark in MARKERS) or _has_tool_table(folder):
                return folder
            if not git and os.path.exists(os.path.join(folder, ".git")):
                git = folder
        parent = os.path.dirname(folder)
        if parent == folder:
            return git or start
        folder = parent


def find_workspace(start: str, *, home: str = "") -> str:
    """The workspace of a project's folder: the nearest one above that somebody made one, else the folder that it is in.

    "" where that would be the home folder or the root of the disk, which are workspaces only for those who say so.
    """
    folder = start
    while True:
        if os.path.exists(os.path.join(folder, HOME, WORKSPACE, "ledger.jsonl")):
            return folder
        parent = os.path.dirname(folder)
        if parent == folder:
            break
        folder = parent
    above = os.path.dirname(start)
    avoided = {os.path.realpath(home) if home else "", os.sep}
    return "" if os.path.realpath(above) in avoided else above


def _has_tool_table(folder: str) -> bool:
    """Whether pyproject.toml has a table [tool.headway]."""
    try:
        with open(os.path.join(folder, "pyproject.toml"), "rb") as file:
            data = file.read()
    except OSError:
        return False
    if b"headway" not in data:
        return False
    import tomllib

    try:
        tools = tomllib.loads(data.decode()).get("tool", {})
    except (tomllib.TOMLDecodeError, UnicodeDecodeError, RecursionError):
        return False
    return isinstance(tools, dict) and "headway" in tools


def read_identity(home: str) -> str:
    """The project's id; "" where there is none yet. Written by a newer Headway, it is refused untouched."""
    try:
        with open(os.path.join(home, NAME), "rb") as file:
            data = file.read(65536)
    except (FileNotFoundError, NotADirectoryError):
        return ""
    except OSError as error:
        raise _damaged(error.strerror or str(error)) from error
    try:
        found = msgspec.json.decode(data)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise _damaged(str(error)) from error
    if not isinstance(found, dict):
        raise _damaged("it is not a mapping")
    version, name = found.get("format", FORMAT), found.get("id")
    if isinstance(version, int) and version > FORMAT:
        raise FormatTooNew(
            "This project was written by a newer Headway",
            facts={"format": version, "known here": FORMAT},
            hint="use that version; nothing was touched",
        )
    if not isinstance(version, int) or not isinstance(name, str) or not re.fullmatch(_ID, name):
        raise _damaged("it has no id")
    return name


def make_home(disk: Disk, home: str) -> None:
    """Make sure that a `.headway` folder is there, and that Git ignores all of it."""
    make_folders(disk, home)
    ignore = os.path.join(home, ".gitignore")
    if not os.path.exists(ignore):
        write_file(disk, ignore, [b"*\n"], durable=False)


def write_identity(disk: Disk, home: str, wanted: str) -> str:
    """Give the project an id, unless somebody else just did; the id that counts."""
    make_home(disk, home)
    path = os.path.join(home, NAME)
    draft = f"{path}.{os.getpid()}.{os.urandom(4).hex()}.tmp"
    write_file(disk, draft, [msgspec.json.encode({"format": FORMAT, "id": wanted}) + b"\n"], durable=True)
    try:
        os.link(draft, path)
    except FileExistsError:
        pass
    except OSError:  # a file system without hard links: the rename is as whole, only not the first to win
        disk.replace(draft, path)
    with suppress(FileNotFoundError):
        disk.remove(draft)
    disk.sync_folder(home)
    return read_identity(home)


def _damaged(reason: str) -> DamageError:
    return DamageError(
        "project.json cannot be read",
        facts={"reason": reason, "cost": "nothing: the ledgers know the project's id"},
        hint="headway doctor --repair",
        code="project.damaged",
    )
