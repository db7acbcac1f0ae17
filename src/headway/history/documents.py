"""Derived documents of a workspace or of the environment: read if they are of a known version, else refused."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import TypeVar

import msgspec

from headway.errors import DamageError, FormatTooNew
from headway.files.identity import HOME, WORKSPACE_INDEX
from headway.history.upper_shapes import VERSION, WorkspaceIndex

T = TypeVar("T")


class _Versioned(msgspec.Struct):
    version: int = 0


_index = msgspec.json.Decoder(WorkspaceIndex).decode


def read_index(workspace: str) -> WorkspaceIndex | None:
    """The index of a workspace as it was last written; None where there is none."""
    path = os.path.join(workspace, HOME, WORKSPACE_INDEX)
    return read_document(path, _index, WORKSPACE_INDEX, hint="headway workspace refresh")


def read_document(path: str, decode: Callable[[bytes], T], name: str, *, hint: str) -> T | None:
    """A document of a version that is known here; None where there is none."""
    try:
        with open(path, "rb") as file:
            data = file.read()
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        raise _damaged(name, error.strerror or str(error), hint) from error
    try:
        version = msgspec.json.decode(data, type=_Versioned).version
        if version > VERSION:
            raise FormatTooNew(
                f"{name} was written by a newer Headway",
                facts={"version": version, "known here": VERSION},
                hint="use that version; nothing was touched",
                code="dag.too_new",
            )
        return decode(data)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise _damaged(name, str(error), hint) from error


def _damaged(name: str, reason: str, hint: str) -> DamageError:
    return DamageError(
        f"{name} cannot be read",
        facts={"reason": reason, "cost": "nothing: it is made again from the projects"},
        hint=hint,
        code="dag.damaged",
    )
