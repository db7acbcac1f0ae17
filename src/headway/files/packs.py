"""The format of a pack: entries of `<sha256> <size>\\n`, the bytes, and a line feed, one after the other."""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Iterator
from typing import BinaryIO

import msgspec

WINDOW = 1 << 20
"""So much of a pack is read at once."""

_HEADER = re.compile(rb"([0-9a-f]{64}) (\d{1,15})\n")
_HEADER_MAX = 64 + 1 + 15 + 1
_LINE_FEED = ord("\n")


class Place(msgspec.Struct, frozen=True, order=True, gc=False):
    """Where a blob's bytes are."""

    pack: str
    offset: int
    size: int


def entry_of(name: str, data: bytes) -> bytes:
    """A blob as it stands in a pack."""
    return b"%s %d\n%s\n" % (name.encode(), len(data), data)


def entries(file: BinaryIO, pack: str, start: int) -> Iterator[tuple[str, Place]]:
    """The entries of a pack from an offset on; behind bytes that are none, those whose digest is right."""
    size = os.fstat(file.fileno()).st_size
    certain = True
    window, base = b"", start
    while start < size:
        if start + _HEADER_MAX > base + len(window) < size:
            file.seek(start)
            window, base = file.read(WINDOW), start
        header = _HEADER.match(window, start - base)
        if header is not None:
            name, length, body = header[1].decode(), int(header[2]), base + header.end()
            if _ends_well(file, body + length, window, base) and (certain or _has_digest(file, body, length, name)):
                yield name, Place(pack, body, length)
                start, certain = body + length + 1, True
                continue
        certain = False
        start = _next_header(file, start + 1, size)


def _ends_well(file: BinaryIO, end: int, window: bytes, base: int) -> bool:
    """Whether a line feed stands there: in the window, or else in the file."""
    if end < base + len(window):
        return window[end - base] == _LINE_FEED
    file.seek(end)
    return file.read(1) == b"\n"


def _has_digest(file: BinaryIO, body: int, length: int, name: str) -> bool:
    file.seek(body)
    return hashlib.sha256(file.read(length)).hexdigest() == name


def _next_header(file: BinaryIO, start: int, size: int) -> int:
    """Where the next bytes are that look like a header; the end if there are none."""
    while start < size:
        file.seek(start)
        found = _HEADER.search(file.read(WINDOW + _HEADER_MAX))
        if found is not None and found.start() < WINDOW:
            return start + found.start()
        start += WINDOW
    return size
