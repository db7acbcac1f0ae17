"""Fakes for tests, ours and yours: disks that fail, stop or lose what was not synced.

Each is a `headway.disk.Disk` and works on real files, so that everything else can read them as usual.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Callable
from typing import Literal

from headway.disk import REAL, Disk

Unsynced = Literal["lost", "zeroed", "half", "names"]
"""What a power cut leaves of bytes and names that were not synced.

`lost`: nothing. `zeroed`: their length, as zeros. `half`: the first half of them. `names`: all names, but no bytes.
"""


class WatchedDisk:
    """A disk that counts its operations; `before` is called with the number and name of each one to come."""

    def __init__(self, before: Callable[[int, str], None] | None = None, *, inner: Disk = REAL) -> None:
        self.steps = 0
        self.inner = inner
        self._before = before

    def step(self, operation: str) -> None:
        """One more operation is about to happen."""
        self.steps += 1
        if self._before is not None:
            self._before(self.steps, operation)

    def open(self, path: str, flags: int) -> int:
        self.step("open")
        return self.inner.open(path, flags)

    def close(self, fd: int) -> None:
        self.inner.close(fd)

    def write(self, fd: int, data: bytes | memoryview, offset: int) -> int:
        self.step("write")
        return self.inner.write(fd, data, offset)

    def sync(self, fd: int) -> None:
        self.step("sync")
        self.inner.sync(fd)

    def sync_folder(self, path: str) -> None:
        self.step("sync_folder")
        self.inner.sync_folder(path)

    def truncate(self, fd: int, size: int) -> None:
        self.step("truncate")
        self.inner.truncate(fd, size)

    def replace(self, source: str, target: str) -> None:
        self.step("replace")
        self.inner.replace(source, target)

    def make_folder(self, path: str) -> None:
        self.step("make_folder")
        self.inner.make_folder(path)

    def remove(self, path: str) -> None:
        self.step("remove")
        self.inner.remove(path)


class FailingDisk(WatchedDisk):
    """A disk that refuses its n-th operation; with `lasting`, every later one of that kind too.

    With `short`, a write that is refused has taken half of its bytes first.
    """

    def __init__(
        self, at: int, error: int = errno.ENOSPC, *, lasting: bool = False, short: bool = False, inner: Disk = REAL
    ) -> None:
        super().__init__(inner=inner)
        self.at = at
        self.error = error
        self.lasting = lasting
        self.short = short
        self.failed = ""

    def step(self, operation: str) -> None:
        super().step(operation)
        again = self.lasting and operation == self.failed
        if self.steps == self.at or again:
            self.failed = self.failed or operation
            raise OSError(self.error, os.strerror(self.error))

    def write(self, fd: int, data: bytes | memoryview, offset: int) -> int:
        try:
            return super().write(fd, data, offset)
        except OSError:
            if self.short and len(data) > 1:
                return self.inner.write(fd, data[: len(data) // 2], offset)
            raise


class _File:
    """What is in a file, and what of it is durable."""

    def __init__(self, data: bytes = b"") -> None:
        self.now = bytearray(data)
        self.durable = data

    def left(self, unsynced: Unsynced) -> bytes:
        """The bytes after a power cut."""
        now, durable = bytes(self.now), self.durable
        if unsynced == "zeroed":
            return durable + bytes(max(0, len(now) - len(durable)))
        if unsynced == "half":
            same = next((i for i, (a, b) in enumerate(zip(now, durable, strict=False)) if a != b), len(durable))
            same = min(same, len(now))
            middle = same + (len(now) - same) // 2
            return now[:middle] + durable[middle:]
        return durable


class _Folder:
    """The names in a folder, and which of them are durable."""

    def __init__(self) -> None:
        self.now: dict[str, _File | _Folder] = {}
        self.durable: dict[str, _File | _Folder] = {}


class PowerCutDisk(WatchedDisk):
    """A disk that knows what would be left of a folder if the power went now: what was synced, and no more."""

    def __init__(self, root: str, before: Callable[[int, str], None] | None = None, *, inner: Disk = REAL) -> None:
        super().__init__(before, inner=inner)
        self.root = os.path.abspath(root)
        self._tree = _read(self.root)
        self._open: dict[int, _File] = {}

    def left(self, into: str, unsynced: Unsynced = "lost") -> None:
        """Write what a power cut now would leave into a new folder."""
        _write(self._tree, into, unsynced)

    def open(self, path: str, flags: int) -> int:
        fd = super().open(path, flags)
        folder, name = self._place(path)
        if folder is not None:
            file = folder.now.get(name)
            if not isinstance(file, _File):
                file = _File(b"" if flags & os.O_CREAT else _bytes(path))
                folder.now[name] = file
            if flags & os.O_TRUNC:
                file.now.clear()
            self._open[fd] = file
        return fd

    def close(self, fd: int) -> None:
        self._open.pop(fd, None)
        super().close(fd)

    def write(self, fd: int, data: bytes | memoryview, offset: int) -> int:
        count = super().write(fd, data, offset)
        file = self._open.get(fd)
        if file is not None:
            file.now.extend(bytes(max(0, offset - len(file.now))))
            file.now[offset : offset + count] = bytes(data[:count])
        return count

    def sync(self, fd: int) -> None:
        super().sync(fd)
        if fd in self._open:
            self._open[fd].durable = bytes(self._open[fd].now)

    def sync_folder(self, path: str) -> None:
        super().sync_folder(path)
        folder = self._folder(os.path.abspath(path))
        if folder is not None:
            folder.durable = dict(folder.now)

    def truncate(self, fd: int, size: int) -> None:
        super().truncate(fd, size)
        if fd in self._open:
            del self._open[fd].now[size:]

    def replace(self, source: str, target: str) -> None:
        super().replace(source, target)
        (old, name), (new, become) = self._place(source), self._place(target)
        if old is not None and new is not None:
            new.now[become] = old.now.pop(name)

    def make_folder(self, path: str) -> None:
        super().make_folder(path)
        folder, name = self._place(path)
        if folder is not None:
            folder.now[name] = _Folder()

    def remove(self, path: str) -> None:
        super().remove(path)
        folder, name = self._place(path)
        if folder is not None:
            folder.now.pop(name, None)

    def _place(self, path: str) -> tuple[_Folder | None, str]:
        path = os.path.abspath(path)
        return self._folder(os.path.dirname(path)), os.path.basename(path)

    def _folder(self, path: str) -> _Folder | None:
        if path != self.root and not path.startswith(self.root + os.sep):
            return None
        folder = self._tree
        for part in os.path.relpath(path, self.root).split(os.sep):
            if part != ".":
                inner = folder.now.setdefault(part, _Folder())
                if not isinstance(inner, _Folder):
                    return None
                folder = inner
        return folder


def _bytes(path: str) -> bytes:
    with open(path, "rb") as file:
        return file.read()


def _read(path: str) -> _Folder:
    """A folder as it is, all of it durable."""
    folder = _Folder()
    for entry in os.scandir(path):
        if entry.is_dir(follow_symlinks=False):
            folder.now[entry.name] = _read(entry.path)
        elif entry.is_file(follow_symlinks=False):
            folder.now[entry.name] = _File(_bytes(entry.path))
    folder.durable = dict(folder.now)
    return folder


def _write(folder: _Folder, path: str, unsynced: Unsynced) -> None:
    os.makedirs(path)
    for name, node in (folder.now if unsynced == "names" else folder.durable).items():
        inner = os.path.join(path, name)
        if isinstance(node, _Folder):
            _write(node, inner, unsynced)
        else:
            with open(inner, "wb") as file:
                file.write(node.left(unsynced))
