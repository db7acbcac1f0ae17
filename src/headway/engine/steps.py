"""The results of steps as they are recorded: what a step gives is the same before a crash and after it."""

from __future__ import annotations

from typing import Any

import msgspec

from headway.core.items import beyond_json
from headway.core.state import Step
from headway.files.blobs import Blobs

INLINE = 4096
"""Results up to this size stand in the ledger itself; larger ones are blobs."""

BYTES = "bytes"


def recorded_as(value: Any, key: str, blobs: Blobs) -> Step:
    """A result on record: bytes as a blob, anything else as JSON."""
    if isinstance(value, (bytes, bytearray, memoryview)):
        return Step(key=key, value=BYTES, blob=blobs.put(bytes(value)))
    data = as_json(value)
    if len(data) > INLINE:
        return Step(key=key, blob=blobs.put(data))
    return Step(key=key, value=msgspec.json.decode(data))


def as_json(value: Any) -> bytes:
    """A value in JSON, or an error: nothing in it becomes a `null` that was something else."""
    data = msgspec.json.encode(value)
    if b"null" in data:
        all_told(msgspec.to_builtins(value))
    return data


def all_told(plain: Any) -> None:
    """An error if there is a number in plain values that JSON would lose."""
    if lost := beyond_json(plain):
        raise ValueError(f"JSON has no form for {lost}: None or a text can stand there")


def taken_from(step: Step, blobs: Blobs) -> Any:
    """The result, as every attempt sees it."""
    if not step.blob:
        return step.value
    data = blobs.get(step.blob)
    return data if step.value == BYTES else msgspec.json.decode(data)
