"""Sealed segments: the older events of a ledger, compressed, each file named after the number of its first event."""

from __future__ import annotations

import os
import re
import zlib
from bisect import bisect_right
from collections.abc import Iterable, Iterator
from contextlib import suppress
from typing import NamedTuple

from headway.core import codec
from headway.errors import LedgerDamaged

_NAME = re.compile(r"ledger\.(\d{1,18})\.jsonl\.gz")
LEVEL = 1
PIECE = 1 << 16
"""So much of a segment is unpacked at once: it grows to some four times as much, and to a thousand times at most."""


class Segment(NamedTuple):
    """A sealed segment: the number of its first event, and where it is."""

    first: int
    path: str

    @property
    def name(self) -> str:
        """Its file name."""
        return os.path.basename(self.path)


def name(first: int) -> str:
    """What the segment that begins with this event is called."""
    return f"ledger.{first}.jsonl.gz"


def first_of(name: str) -> int:
    """The number in a segment's name."""
    match = _NAME.fullmatch(name)
    return int(match.group(1)) if match else 0


def sealed(folder: str) -> list[Segment]:
    """The sealed segments in a folder, oldest first."""
    with suppress(FileNotFoundError, NotADirectoryError):
        names = ((_NAME.fullmatch(entry), entry) for entry in os.listdir(folder))
        return sorted(Segment(int(match.group(1)), os.path.join(folder, entry)) for match, entry in names if match)
    return []


def pack(chunks: Iterable[bytes], running: codec.Running) -> Iterator[bytes]:
    """Compress piece by piece; `running` comes to know the digest of the result. Same bytes in, same bytes out."""
    packer = zlib.compressobj(LEVEL, zlib.DEFLATED, zlib.MAX_WBITS | 16)
    for chunk in chunks:
        if packed := packer.compress(chunk):
            running.add(packed)
            yield packed
    rest = packer.flush()
    running.add(rest)
    yield rest


class Page(NamedTuple):
    """A place to begin in a sealed segment: a number that no line before it claims, and how to unpack from there."""

    number: int
    offset: int
    unpacker: zlib._Decompress


def pages(path: str) -> list[Page]:
    """Places to begin in a sealed segment, for whoever looks up many of its events; none if it cannot be read."""
    unpacker, found = zlib.decompressobj(zlib.MAX_WBITS | 16), list[Page]()
    with suppress(OSError, zlib.error), open(path, "rb") as file:
        while piece := file.read(PIECE):
            page = Page(0, file.tell() - len(piece), unpacker.copy())
            _, _, line = unpacker.decompress(piece).partition(b"\n")
            number = codec.number(line)
            if number is not None:
                found.append(page._replace(number=number))
        return found
    return []


def page_of(pages: list[Page], number: int) -> Page | None:
    """The last place to begin before an event of this number; None for the beginning."""
    place = bisect_right(pages, number, key=lambda page: page.number)
    return pages[place - 1] if place else None


def unpack(path: str, page: Page | None = None) -> Iterator[bytes]:
    """The lines of a sealed segment; from a page on, those that begin behind it."""
    unpacker = page.unpacker.copy() if page is not None else zlib.decompressobj(zlib.MAX_WBITS | 16)
    begun, is_whole = list[bytes](), page is None
    try:
        with open(path, "rb") as file:
            file.seek(page.offset if page is not None else 0)
            while not unpacker.unused_data and (piece := file.read(PIECE)):
                end, *lines = unpacker.decompress(piece).split(b"\n")
                begun.append(end)
                if lines:
                    if is_whole:
                        yield b"".join(begun)
                    is_whole, begun = True, [lines.pop()]
                    yield from lines
        if not unpacker.eof or unpacker.unused_data:
            raise EOFError("it does not end as it should")
        if rest := b"".join(begun):
            yield rest
    except (OSError, EOFError, zlib.error) as error:
        raise LedgerDamaged(
            "A sealed segment of the ledger cannot be read",
            facts={
                "file": path,
                "error": error,
                "cost": "its events; the state of the plan does not need them",
            },
            hint="put it back from a backup, or headway doctor --repair sets it aside",
            code="ledger.segment",
        ) from error


def digest(path: str) -> str:
    """The digest of a segment's file."""
    running = codec.Running()
    with open(path, "rb") as file:
        while piece := file.read(1 << 20):
            running.add(piece)
    return running.digest()
