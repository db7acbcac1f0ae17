"""The format of a pack: entries of `<sha256> <size>\\n`, the bytes, and a line feed, one after the other.

And of its index, which is derived from it: a checksum of the pack's name and all that follows, how far into the pack it
reaches, how many entries it names, and then a column each: the first eight bytes of their names as numbers, in order,
where their bytes begin, how many they are, and their names. A name is found by halving, so that nothing has to be read
in for it.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import re
import struct
import sys
import zlib
from array import array
from bisect import bisect_left
from collections.abc import Collection, Iterator, Mapping
from operator import add, itemgetter
from typing import BinaryIO

import msgspec

from headway.disk import Disk, write_file

WINDOW = 1 << 20
"""So much of a pack is read at once."""

ONE_IN = 20
"""Taking out the number of a blob takes so much less time than looking for one."""

ENDED = b"\n"
"""What an entry ends with."""

_HEADER = re.compile(rb"([0-9a-f]{64}) (\d{1,15})\n")
_HEADER_MAX = 64 + 1 + 15 + 1
_LINE_FEED = ord("\n")


class Place(msgspec.Struct, frozen=True, order=True, gc=False):
    """Where a blob's bytes are."""

    pack: str
    offset: int
    size: int


class Index(Mapping[str, tuple[int, int]]):
    """Where the bytes of each blob of a pack begin, and how many they are."""

    read_to: int
    _count: int

    def __init__(self, data: bytes, pack: str) -> None:
        """What `index_of` gave for this pack; a ValueError for anything else."""
        if len(data) < _FIXED.size or data[: len(_MARK)] != _MARK:
            raise ValueError("no index of this machine")
        checksum: int
        _, checksum, self.read_to, self._count = _FIXED.unpack_from(data)
        columns = memoryview(data)[_FIXED.size :]
        if len(columns) != 56 * self._count or _checksum(data, pack) != checksum:
            raise ValueError("a damaged index")
        end = 8 * self._count
        self._asked = 0
        self._known: frozenset[int] | None = None
        self._keys, self._starts, self._sizes = (columns[n * end : (n + 1) * end].cast("Q") for n in range(3))
        self._names = columns[3 * end :]

    def all(self) -> dict[str, tuple[int, int]]:
        """All of it, read in."""
        names, places = self._names.hex(), zip(self._starts, self._sizes, strict=True)
        return {names[at : at + 64]: place for at, place in zip(range(0, len(names), 64), places, strict=True)}

    def __len__(self) -> int:
        return self._count

    def __iter__(self) -> Iterator[str]:
        return (self._names[at : at + 32].hex() for at in range(0, 32 * self._count, 32))

    def __getitem__(self, name: str) -> tuple[int, int]:
        try:
            whole = bytes.fromhex(name)
        except ValueError:
            raise KeyError(name) from None
        key = int.from_bytes(whole[:8], "big")
        at = bisect_left(self._keys, key)
        while at < self._count and self._keys[at] == key:
            if self._names[32 * at : 32 * at + 32] == whole:
                return self._starts[at], self._sizes[at]
            at += 1
        raise KeyError(name)

    def among(self, names: Collection[str]) -> set[str]:
        """Those of these blobs that are in the pack: of many, most are in none, and that is seen by their numbers.

        Whoever asks for many of them, or often, has the numbers taken out of their column once.
        """
        self._asked += len(names)
        if self._known is None and self._asked * ONE_IN > self._count:
            self._known = frozenset(self._keys)
        numbers = _numbers(bytes.fromhex("".join(names)))
        if self._known is not None and self._known.isdisjoint(numbers):
            return set()
        keys, last = self._keys, self._count - 1
        found = set()
        for key, name in zip(numbers, names, strict=True):
            at = bisect_left(keys, key)
            if at <= last and keys[at] == key and name in self:
                found.add(name)
        return found


_MARK = b"index 1\n" if sys.byteorder == "little" else b"1 xedni\n"
_FIXED = struct.Struct("=8sQQQ")
_CHECKED = 16
"""From here on, the checksum counts."""


def _checksum(data: bytes, pack: str) -> int:
    """Of an index and the name of its pack: that of another would hide blobs."""
    return zlib.crc32(data[_CHECKED:], zlib.crc32(pack.encode()))


def index_of(places: Mapping[str, tuple[int, int]], pack: str) -> bytes:
    """The index of a pack with these blobs: all of them up to the last."""
    names = sorted(places)
    whole = bytes.fromhex("".join(names))
    keys = array("Q", _numbers(whole))
    found = list(map(places.__getitem__, names))
    starts, sizes = array("Q", map(itemgetter(0), found)), array("Q", map(itemgetter(1), found))
    read_to = max(map(add, starts, sizes), default=-1) + 1
    data = b"".join((_FIXED.pack(_MARK, 0, read_to, len(names)), keys, starts, sizes, whole))
    return data[: len(_MARK)] + struct.pack("=Q", _checksum(data, pack)) + data[_CHECKED:]


def _numbers(names: bytes) -> tuple[int, ...]:
    """What names begin with, as numbers."""
    return struct.unpack(">" + "Q24x" * (len(names) // 32), names)


def header_of(name: str, size: int) -> bytes:
    """What stands before the bytes of a blob in a pack; `ENDED` stands behind them."""
    return f"{name} {size}\n".encode()


def entry_of(name: str, data: bytes) -> bytes:
    """A blob as it stands in a pack."""
    return b"".join((header_of(name, len(data)), data, ENDED))


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


def gaps_in(path: str) -> list[tuple[int, int]]:
    """Stretches of a pack that belong to no entry."""
    gaps, end = [], 0
    with open(path, "rb") as file:
        size = os.fstat(file.fileno()).st_size
        for name, place in entries(file, "", 0):
            start = place.offset - len(f"{name} {place.size}\n")
            gaps += [(end, start)] if start > end else []
            end = place.offset + place.size + 1
    return gaps + ([(end, size)] if end < size else [])


def whole_entries(path: str) -> Iterator[bytes]:
    """The entries of a pack, without what is between them."""
    with open(path, "rb") as file:
        for name, place in entries(file, "", 0):
            file.seek(place.offset)
            yield entry_of(name, file.read(place.size))


def copy_aside(disk: Disk, path: str) -> str:
    """Keep a pack as it is, beside it: the name of the copy."""
    kept, count = f"{path}.damaged", 1
    while os.path.lexists(kept):
        kept, count = f"{path}.damaged-{count + 1}", count + 1
    with open(path, "rb") as file:
        write_file(disk, kept, iter(lambda: file.read(WINDOW), b""), durable=True)
    return os.path.basename(kept)


def is_being_written(path: str) -> bool:
    """Whether the writer of a pack holds it; where that cannot be told, it may be."""
    try:
        fd = os.open(path, os.O_RDWR | os.O_CLOEXEC)
    except OSError:
        return True
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return True
    finally:
        os.close(fd)
    return False
