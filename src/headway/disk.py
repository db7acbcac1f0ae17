"""The few file operations that durability depends on, behind one object, so that a test can make each of them fail.

Knows file descriptors and folders; never what is written. Ledgers and blobs write through this and nothing else.
"""

from __future__ import annotations

import fcntl
import os
import re
import stat
import zlib
from collections.abc import Iterable, Iterator
from contextlib import suppress
from itertools import count
from typing import Protocol


class Disk(Protocol):
    """What a write path needs of an operating system."""

    def open(self, path: str, flags: int) -> int: ...
    def close(self, fd: int) -> None: ...
    def write(self, fd: int, data: bytes | memoryview, offset: int) -> int: ...
    def sync(self, fd: int) -> None: ...
    def sync_folder(self, path: str) -> None: ...
    def truncate(self, fd: int, size: int) -> None: ...
    def replace(self, source: str, target: str) -> None: ...
    def make_folder(self, path: str) -> None: ...
    def remove(self, path: str) -> None: ...


class RealDisk:
    """The operating system itself."""

    def open(self, path: str, flags: int) -> int:
        return os.open(path, flags | os.O_CLOEXEC, 0o644)

    def close(self, fd: int) -> None:
        os.close(fd)

    def write(self, fd: int, data: bytes | memoryview, offset: int) -> int:
        return os.pwrite(fd, data, offset)

    def sync(self, fd: int) -> None:
        _fdatasync(fd)

    def sync_folder(self, path: str) -> None:
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_DIRECTORY)
        try:
            os.fsync(fd)
        finally:
            os.close(fd)

    def truncate(self, fd: int, size: int) -> None:
        os.ftruncate(fd, size)

    def replace(self, source: str, target: str) -> None:
        os.replace(source, target)

    def make_folder(self, path: str) -> None:
        os.mkdir(path)

    def remove(self, path: str) -> None:
        os.unlink(path)


def _flush_drive(fd: int) -> None:
    """macOS: fsync leaves bytes in the drive's cache; this does not."""
    fcntl.fcntl(fd, fcntl.F_FULLFSYNC)  # type: ignore[attr-defined, unused-ignore]  # macOS only


_fdatasync = _flush_drive if hasattr(fcntl, "F_FULLFSYNC") else os.fdatasync
REAL = RealDisk()

LARGE = 1 << 20
"""What has more bytes than these is written alone: to join it with others takes as long as writing it."""


def write_all(disk: Disk, fd: int, data: bytes | memoryview, offset: int) -> None:
    """Write all of it; a disk that takes nothing more raises what it says, or that it is full."""
    done = disk.write(fd, data, offset) if data else 0
    if done == len(data):
        return
    if done <= 0:
        raise OSError(28, "No space left on device")
    view = memoryview(data)
    while done < len(view):
        count = disk.write(fd, view[done:], offset + done)
        if count <= 0:
            raise OSError(28, "No space left on device")
        done += count


def write_chunks(disk: Disk, fd: int, chunks: Iterable[bytes | memoryview], offset: int = 0) -> int:
    """Write all of them, one after the other, small ones together; where the last one ends."""
    for data in _together(chunks):
        write_all(disk, fd, data, offset)
        offset += len(data)
    return offset


def _together(chunks: Iterable[bytes | memoryview]) -> Iterator[bytes | memoryview]:
    small: list[bytes | memoryview] = []
    size = 0
    for chunk in chunks:
        if size + len(chunk) > LARGE:
            yield b"".join(small)
            small, size = [], 0
        if len(chunk) > LARGE:
            yield chunk
        else:
            small.append(chunk)
            size += len(chunk)
    yield b"".join(small)


def make_folders(disk: Disk, path: str) -> None:
    """Create a folder and its parents, durably: each new name is synced into the folder that holds it."""
    missing = []
    while not os.path.isdir(path):
        missing.append(path)
        path = os.path.dirname(path) or "."
    for folder in reversed(missing):
        try:
            disk.make_folder(folder)
        except FileExistsError:
            if not os.path.isdir(folder):
                raise
        disk.sync_folder(os.path.dirname(folder) or ".")


def sync_folders(disk: Disk, path: str, *, above: int) -> None:
    """Sync a folder and some above it: whoever made them may have died before it did so."""
    disk.sync_folder(path)
    for _ in range(above):
        path = os.path.dirname(os.path.abspath(path))
        with suppress(PermissionError):
            disk.sync_folder(path)


LEFTOVER = re.compile(r"(.+)\.(\d+)\.[0-9a-f]{8}\.tmp")
"""What `write_file` calls a file that is not in place yet: which it will be, and whose process writes it."""


LONGEST_NAME = 255 - len(".4194304.01234567.tmp")
"""Of names longer than this, in bytes, no such file could be made."""


def write_file(
    disk: Disk, path: str, chunks: Iterable[bytes | memoryview], *, durable: bool, temporary: str = ""
) -> None:
    """Put a whole file in place by one rename: a reader sees the old file or the new one, never half of either.

    Who holds a lock may name the `temporary` file, so that a killed process leaves at most one behind.
    """
    flags = os.O_WRONLY | os.O_CREAT | (os.O_TRUNC if temporary else os.O_EXCL)
    temporary = temporary or temporary_for(path)
    fd = disk.open(temporary, flags)
    try:
        try:
            write_chunks(disk, fd, chunks)
            if durable:
                disk.sync(fd)
        finally:
            disk.close(fd)
        disk.replace(temporary, path)
    except BaseException as error:
        if isinstance(error, OSError) and error.filename is None:
            error.filename = path
        with suppress(OSError):
            disk.remove(temporary)
        raise
    if durable:
        disk.sync_folder(os.path.dirname(path) or ".")


_serial = count(int.from_bytes(os.urandom(4)))
"""Where they begin is by chance: the number of a process that was killed may be ours by now."""


def temporary_for(path: str) -> str:
    """What a file is called until it is in place: a name that nobody else gives."""
    return f"{with_room(path)}.{os.getpid()}.{next(_serial) & 0xFFFFFFFF:08x}.tmp"


def with_room(path: str) -> str:
    """A path whose name can be made longer: the name itself, or what stands for it where it is nearly too long."""
    folder, slash, name = path.rpartition("/")
    if 4 * len(name) <= LONGEST_NAME:  # no character takes more
        return path
    written = os.fsencode(name)
    return path if len(written) <= LONGEST_NAME else f"{folder}{slash}{zlib.crc32(written):08x}"


def is_running(pid: int) -> bool:
    """Whether there is a process of this number."""
    try:
        os.kill(pid, 0)
    except (ProcessLookupError, OverflowError):
        return False
    except PermissionError:  # somebody else's
        return True
    return pid > 0


def boot_id() -> str:
    """Which boot of this machine this is; "" where the system does not tell."""
    try:
        with open("/proc/sys/kernel/random/boot_id", "rb") as file:
            return file.read().decode().strip()
    except OSError:
        return ""


def file_of(fd: int) -> tuple[int, int] | None:
    """Which file a descriptor stands for, whatever it is called: its device and inode; None if it stands for none.

    A recipe may close all files of its process, and open others under the same numbers.
    """
    try:
        found = os.fstat(fd)
    except OSError:
        return None
    return found.st_dev, found.st_ino


def still_is(fd: int, known: tuple[int, int] | None, path: str) -> bool:
    """Whether a descriptor stands for the file that it stood for. Some file systems give files other inodes later."""
    now = file_of(fd)
    if now is None or now == known:
        return now is not None
    try:
        found = os.stat(path)
    except OSError:
        return False
    return now == (found.st_dev, found.st_ino)


def file_kind(path: str) -> str:
    """What stands at a path: "file", "folder", "link", "pipe", "special file" or "" for nothing."""
    try:
        mode = os.lstat(path).st_mode
    except (FileNotFoundError, NotADirectoryError):
        return ""
    if stat.S_ISREG(mode):
        return "file"
    if stat.S_ISDIR(mode):
        return "folder"
    if stat.S_ISFIFO(mode):
        return "pipe"
    return "link" if stat.S_ISLNK(mode) else "special file"
