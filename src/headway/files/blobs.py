"""Bytes by the sha256 that names them. Small ones in packs, large ones as files of their own. Knows nothing else.

A pack is self-describing: entries of `<sha256> <size>\\n`, the bytes, and a line feed, one after the other; one pack per
writing process. `index.jsonl` says where blobs are and can be deleted: it is rebuilt by reading the packs. A blob is
verified each time it is read.
"""

from __future__ import annotations

import hashlib
import os
import re
import threading
from collections.abc import Iterator
from contextlib import suppress
from typing import NamedTuple

from headway.disk import REAL, Disk, make_folders, write_all, write_file
from headway.errors import BlobDamaged, StorageFailed

LARGE = 256 * 1024
"""From this size on a blob is a file of its own: copying it into a pack would gain nothing."""

_HEADER = re.compile(rb"([0-9a-f]{64}) (\d{1,15})\n")
_HEADER_MAX = 64 + 1 + 15 + 1


class Place(NamedTuple):
    """Where a blob's bytes are."""

    pack: str
    offset: int
    size: int


class Blobs:
    """The blobs of one project."""

    def __init__(self, folder: str, *, disk: Disk = REAL) -> None:
        self.folder = folder
        self._disk = disk
        self._places: dict[str, Place] = {}
        self._read_to: dict[str, int] = {}
        self._pack = ""
        self._fd = -1
        self._end = 0
        self._dirty = False
        self._fresh: list[str] = []
        self._stopped = ""
        self._mutex = threading.RLock()

    # Writing.

    def put(self, data: bytes) -> str:
        """Keep these bytes; their name. Durable after `sync`."""
        name = hashlib.sha256(data).hexdigest()
        with self._mutex:
            if not self.has(name):
                self._write_large(name, data) if len(data) >= LARGE else self._write_packed(name, data)
        return name

    def sync(self) -> None:
        """Make everything put so far durable. A failed sync is never tried again."""
        with self._mutex:
            fd, dirty, fresh = self._fd, self._dirty, self._fresh
            self._dirty, self._fresh = False, []
        try:
            if dirty:
                self._disk.sync(fd)
            for folder in dict.fromkeys(fresh):
                self._disk.sync_folder(folder)
        except OSError as error:
            self._stopped = str(error)
            raise StorageFailed(
                "The disk did not confirm a blob",
                facts={"error": error.strerror or error},
                hint="check the disk, then headway doctor",
            ) from error

    def close(self) -> None:
        """Let go of the pack; the next writer begins one of its own."""
        with self._mutex:
            if self._fd >= 0:
                self._disk.close(self._fd)
                self._fd = -1

    def _write_packed(self, name: str, data: bytes) -> None:
        self._check()
        if self._fd < 0:
            self._open_pack()
        entry = b"%s %d\n%s\n" % (name.encode(), len(data), data)
        try:
            write_all(self._disk, self._fd, entry, self._end)
        except OSError as error:
            with suppress(OSError):
                self._disk.truncate(self._fd, self._end)
            raise _refused(error) from error
        start = self._end + len(entry) - len(data) - 1
        self._end += len(entry)
        self._places[name] = Place(self._pack, start, len(data))
        self._read_to[self._pack] = self._end
        self._dirty = True

    def _write_large(self, name: str, data: bytes) -> None:
        self._check()
        path = self._large(name)
        try:
            make_folders(self._disk, os.path.dirname(path))
            write_file(self._disk, path, [data], durable=True)
        except OSError as error:
            raise _refused(error) from error

    def _open_pack(self) -> None:
        try:
            make_folders(self._disk, self.folder)
            self._pack = f"{os.getpid()}-{os.urandom(6).hex()}.pack"
            self._fd = self._disk.open(os.path.join(self.folder, self._pack), os.O_RDWR | os.O_CREAT | os.O_EXCL)
        except OSError as error:
            raise _refused(error) from error
        self._end = 0
        self._fresh.append(self.folder)

    def _check(self) -> None:
        if self._stopped:
            raise StorageFailed(
                "The blob store takes no more bytes", facts={"since": self._stopped}, hint="headway doctor"
            )

    # Reading.

    def has(self, name: str) -> bool:
        """Whether the bytes are here."""
        return self._find(name) is not None or os.path.exists(self._large(name))

    def get(self, name: str) -> bytes:
        """The bytes, verified."""
        place = self._find(name)
        path = os.path.join(self.folder, place.pack) if place else self._large(name)
        try:
            with open(path, "rb") as file:
                if place:
                    file.seek(place.offset)
                data = file.read(place.size) if place else file.read()
        except FileNotFoundError as error:
            raise _missing(name) from error
        if hashlib.sha256(data).hexdigest() != name:
            raise BlobDamaged(
                f"Blob {name[:16]} is damaged",
                facts={"file": path},
                hint="headway doctor says what names it; put the file back from a backup",
            )
        return data

    def names(self) -> Iterator[tuple[str, int]]:
        """Every blob that is here, with its size."""
        self._learn()
        yield from ((name, place.size) for name, place in sorted(self._places.items()))
        for name, path in self._large_files():
            if name not in self._places:
                yield name, os.path.getsize(path)

    def verify(self) -> Iterator[tuple[str, str]]:
        """Read everything: (name or file, what is wrong) for whatever is not as it should be."""
        self._learn()
        for name in sorted({*self._places, *(name for name, _ in self._large_files())}):
            try:
                self.get(name)
            except BlobDamaged as error:
                yield name, str(error.facts.get("file", "missing"))
        for pack in self._packs():
            size = os.path.getsize(os.path.join(self.folder, pack))
            if self._read_to.get(pack, 0) < size:
                yield pack, f"{size - self._read_to.get(pack, 0)} bytes at its end belong to no blob"

    def _find(self, name: str) -> Place | None:
        if name not in self._places:
            self._learn()
        return self._places.get(name)

    def _learn(self) -> None:
        """Read the entries that packs have gained since the last look."""
        with self._mutex:
            for pack in self._packs():
                path = os.path.join(self.folder, pack)
                start = self._read_to.get(pack, 0)
                with suppress(FileNotFoundError):
                    if os.path.getsize(path) > start:
                        self._read_to[pack] = self._read_pack(path, pack, start)

    def _read_pack(self, path: str, pack: str, start: int) -> int:
        size = os.path.getsize(path)
        with open(path, "rb") as file:
            while start < size:
                file.seek(start)
                header = _HEADER.match(file.read(_HEADER_MAX))
                if header is None:
                    break
                length = int(header.group(2))
                body = start + header.end()
                file.seek(body + length)
                if file.read(1) != b"\n":
                    break
                self._places[header.group(1).decode()] = Place(pack, body, length)
                start = body + length + 1
        return start

    def _packs(self) -> list[str]:
        try:
            return sorted(name for name in os.listdir(self.folder) if name.endswith(".pack"))
        except FileNotFoundError:
            return []

    def _large(self, name: str) -> str:
        return os.path.join(self.folder, name[:2], name)

    def _large_files(self) -> Iterator[tuple[str, str]]:
        with suppress(FileNotFoundError):
            for part in sorted(os.listdir(self.folder)):
                if len(part) == 2 and os.path.isdir(os.path.join(self.folder, part)):
                    for name in sorted(os.listdir(os.path.join(self.folder, part))):
                        if len(name) == 64:
                            yield name, os.path.join(self.folder, part, name)


def _refused(error: OSError) -> StorageFailed:
    return StorageFailed(
        "The disk refused a blob",
        facts={"error": error.strerror or error},
        hint="make room or mend the disk, then run the command again",
    )


def _missing(name: str) -> BlobDamaged:
    return BlobDamaged(
        f"Blob {name[:16]} is not here",
        facts={"blob": name},
        hint="headway doctor says what names it",
        code="blob.missing",
    )
