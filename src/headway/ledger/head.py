"""`head`: where the newest snapshot is, and how far the ledger reached. Derived, not needed, not trusted unchecked."""

from __future__ import annotations

import os

import msgspec

from headway.core import codec
from headway.disk import Disk, write_file
from headway.ledger.scan import Mark

NAME = "head"


class Head(msgspec.Struct, frozen=True):
    """The newest snapshot, and the end of what was durable when this was written."""

    snapshot: Mark | None
    end: Mark


class _Sealed(msgspec.Struct, frozen=True):
    head: msgspec.Raw
    digest: str


def read(folder: str) -> Head | None:
    """What `head` says, or None where there is none or its bytes are not what somebody wrote."""
    try:
        with open(os.path.join(folder, NAME), "rb") as file:
            sealed = msgspec.json.decode(file.read(4096), type=_Sealed)
        if codec.digest(bytes(sealed.head)) != sealed.digest:
            return None
        return msgspec.json.decode(sealed.head, type=Head)
    except (OSError, msgspec.DecodeError, UnicodeDecodeError):
        return None


def is_damaged(folder: str) -> bool:
    """There is a `head`, and it says nothing that can be used."""
    return os.path.lexists(os.path.join(folder, NAME)) and read(folder) is None


def write(disk: Disk, folder: str, head: Head) -> None:
    """Put it in place; whoever calls holds the ledger's lock."""
    body = msgspec.json.encode(head)
    data = msgspec.json.encode(_Sealed(msgspec.Raw(body), codec.digest(body))) + b"\n"
    path = os.path.join(folder, NAME)
    write_file(disk, path, [data], durable=False, temporary=f"{path}.new")
