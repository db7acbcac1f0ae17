"""A checkpoint: a plan as two files for somebody else, PLAN.json for machines and PLAN.md for people.

Each file is written whole or not at all, and never over something that is not a checkpoint. What is read back is
believed only if all of it is as it was written.
"""

from __future__ import annotations

import os

import msgspec

from headway.disk import Disk, make_folders, write_file
from headway.errors import DecisionNeeded, UsageError
from headway.files.given import read_given
from headway.projections import markdown, saved_execution
from headway.projections.saved_execution import SavedExecution

NAME = "PLAN.json"


def write(disk: Disk, path: str, execution: SavedExecution) -> list[str]:
    """Write a checkpoint to a file ending in .json, or into a folder under its usual name. The files written."""
    target = path if path.endswith(".json") and not os.path.isdir(path) else os.path.join(path, NAME)
    text = f"{target.removesuffix('.json')}.md"
    for file, is_intact in ((target, saved_execution.is_intact), (text, markdown.is_intact)):
        data = read_given(file) if os.path.lexists(file) else b""
        if data and not is_intact(data):
            raise DecisionNeeded(
                "Something else is there already",
                facts={"file": file},
                hint="choose another path, or move that file away",
                code="export.exists",
            )
    make_folders(disk, os.path.dirname(os.path.abspath(target)))
    write_file(disk, target, [saved_execution.render(execution)], durable=True)
    write_file(disk, text, [markdown.render(execution)], durable=True)
    return [target, text]


def read(path: str) -> SavedExecution:
    """A checkpoint, or the folder that holds one; also a plan file of RFC-040's own shape, which has no digest."""
    source = os.path.join(path, NAME) if os.path.isdir(path) else path
    data = read_given(source)
    execution = saved_execution.parse(data)
    if "digest" in msgspec.json.decode(data) and not saved_execution.is_intact(data):
        raise UsageError(
            "The checkpoint was changed after it was written",
            facts={"file": source},
            hint="export it again; a plan that is changed on purpose is a plan file, for headway plans new",
            code="checkpoint.changed",
        )
    return execution
