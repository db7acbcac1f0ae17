"""What stands in the project's files: digests of files, folders and links, and the patterns that name them.

A stat cache saves hashing; it never decides anything. An entry counts only if size, times and inode are what they were
and the file was not touched around the moment it was hashed: everything doubtful is hashed again.
"""

from __future__ import annotations

import hashlib
import os
import re
import stat
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import NamedTuple

import msgspec

from headway import bulk
from headway.bulk import Known, known_of
from headway.core.paths import is_glob
from headway.core.state import Output

RACY_NS = 20_000_000
"""A file touched less than this before it was hashed may change again without its times showing it."""

SMALL = 1 << 16
"""A file of fewer bytes is hashed in one piece: what it takes to hash a large one takes longer than that."""

AS_LEFT = 1
"""The rest of a file that was written here and is known as it was left: it needs none."""

_CAN_ASK = os.access in os.supports_follow_symlinks and os.access("/", os.F_OK, follow_symlinks=False)
"""Whether the system tells of a path itself, be it a link that leads nowhere, if it is there: in some containers it is
forbidden to, and then it would say of everything that it is not."""

SKIPPED = frozenset({".headway", ".git"})


class Entry(msgspec.Struct, frozen=True, gc=False, array_like=True):
    """A digest, the stat that it was taken at, and when."""

    stat: Known
    digest: str
    kind: str
    at: int

    @property
    def size(self) -> int:
        """How many bytes it had."""
        return self.stat[0]

    def rest(self) -> int:
        """How long the file had been at rest when it was hashed, beyond what it takes to be sure: above 0 it is."""
        _, mtime, ctime, _ = self.stat
        return self.at - max(mtime, ctime) - RACY_NS


class Seen(NamedTuple):
    """What stands at a path: nothing has an empty digest."""

    digest: str
    size: int = 0
    kind: str = "file"


ABSENT = Seen("", 0, "")


UNREADABLE = "unreadable: "
"""What the digest of something that cannot be read begins with."""


class Observer:
    """Looks at files below one root."""

    def __init__(
        self,
        root: str,
        entries: dict[str, Entry] | None = None,
        *,
        recall: Callable[[Collection[str]], Mapping[str, Entry]] = lambda _: {},
    ) -> None:
        """`entries` of the stat cache; `recall` tells what it has of others, before they are hashed."""
        self.root = root
        self.entries = entries if entries is not None else {}
        self._recall = recall
        self._recalled: set[str] = set()
        self.changed: set[str] = set()
        self.broken: set[str] = set()
        """Links that patterns came upon and that lead nowhere: once they do, the patterns match them."""

        self._prefix = os.path.join(root, "")

    def look(self, path: str) -> Seen:
        """What stands at a path now. A folder is a tree: paths, modes and content of all that is in it.

        What cannot be read is something nobody knows: no file of ours, and no reason not to look at others.
        """
        try:
            return self._look(path)
        except OSError as error:
            return Seen(f"{UNREADABLE}{error.strerror}", 0, "special")

    def _look(self, path: str) -> Seen:
        try:
            found = os.lstat(self._prefix + path)
        except (FileNotFoundError, NotADirectoryError):
            return ABSENT
        mode = found.st_mode
        if stat.S_ISREG(mode):
            return self._file(path, found)
        if stat.S_ISLNK(mode):
            target = os.readlink(self._prefix + path)
            return Seen(hashlib.sha256(b"link:" + os.fsencode(target)).hexdigest(), len(target), "link")
        if stat.S_ISDIR(mode):
            return self._tree(path)
        return Seen(hashlib.sha256(b"special:%o" % stat.S_IFMT(mode)).hexdigest(), 0, "special")

    def is_free(self, path: str) -> bool:
        """Whether nothing stands at a path: where that is to be expected, it is told sooner than by looking."""
        full = self._prefix + path
        return not (os.access(full, os.F_OK, follow_symlinks=False) if _CAN_ASK else os.path.lexists(full))

    def is_bare(self, folder: str) -> bool:
        """Whether nothing stands at any path in a folder: it is empty, or not there."""
        try:
            with os.scandir(self._prefix + folder) as entries:
                return next(entries, None) is None
        except (FileNotFoundError, NotADirectoryError):
            return True
        except OSError:  # it cannot be listed; what is in it can perhaps be looked at
            return False

    def read(self, path: str) -> Seen:
        """As `look`, for whoever reads the path: through a link, what it leads to counts."""
        try:
            found = os.lstat(self._prefix + path)
            if is_link := stat.S_ISLNK(found.st_mode):
                found = os.stat(self._prefix + path)
        except (FileNotFoundError, NotADirectoryError):
            return ABSENT
        if stat.S_ISREG(found.st_mode):
            return self._file(path, found)
        return self._tree(path) if is_link else self._look(path)

    def holds(self, path: str, digest: str, *, cheaply: bool) -> bool:
        """Whether these bytes still stand at a path; `cheaply` believes a file that nothing shows to be touched."""
        known = self.entries.get(path)
        if known is not None and known.digest == digest:
            try:
                found = os.lstat(self._prefix + path)
            except OSError:
                return False
            size, mtime, ctime, inode = known.stat
            same = found.st_mtime_ns == mtime and found.st_ctime_ns == ctime and found.st_size == size
            if same and found.st_ino == inode and (cheaply or known.rest() > 0):
                return True
        return self.look(path).digest == digest

    def is_alone(self, output: Output) -> bool:
        """Whether a file that was recorded stands where it was, as it was last hashed, and has no other name by which
        somebody else would lose it."""
        known = self.entries.get(output.path)
        if known is None or (known.digest, known.kind) != (output.digest, output.kind) or known.rest() <= 0:
            return False
        try:
            found = os.lstat(self._prefix + output.path)
        except OSError:
            return False
        return found.st_nlink == 1 and known_of(found) == known.stat

    def gone(self, outputs: Iterable[Output], *, cheaply: bool) -> list[str]:
        """The paths of those that do not stand as they were recorded, of many at once: as `holds` tells of one.

        `cheaply` believes a folder to be what it was.
        """
        entries, asked, known, found = self.entries, list[Output](), list[Known](), list[Output]()
        for output in outputs:
            entry = entries.get(output.path)
            if entry is not None and entry.digest == output.digest and (cheaply or entry.rest() > 0):
                asked.append(output)
                known.append(entry.stat)
            elif not (cheaply and output.kind == "tree"):
                found.append(output)
        found += [asked[number] for number in bulk.changed(self._prefix, [output.path for output in asked], known)]
        return [o.path for o in found if not self.holds(o.path.rstrip("/"), o.digest, cheaply=cheaply)]

    def remember(self, path: str, digest: str, kind: str = "file") -> None:
        """Take over a digest that was computed while the bytes were at hand."""
        with suppress(OSError):
            self._keep(path, os.lstat(self._prefix + path), digest, kind)

    def remember_written(
        self, paths: Sequence[str], digests: Sequence[str], left: Sequence[Known | None], marked: Sequence[int]
    ) -> None:
        """The same of many by whoever wrote them, left them like this (or wrote none) and gave each this time, to the
        nanosecond.

        The kernel's own times come in ticks, so whoever writes to one afterwards, be it within the same tick, leaves
        another time.
        """
        known, certain = {}, RACY_NS + AS_LEFT
        for path, digest, found, given in zip(paths, digests, left, marked, strict=True):
            if found is not None:
                _, mtime, ctime, _ = found
                at = max(given, ctime) + certain if mtime == given else given
                known[path] = Entry(found, digest, "file", at)
        self.entries.update(known)
        self.changed.update(known)

    def _file(self, path: str, found: os.stat_result) -> Seen:
        kind = "exec" if found.st_mode & 0o100 else "file"
        if path not in self.entries:
            self.recall((path,))
        known = self.entries.get(path)
        if known is not None and known.kind == kind and known.stat == known_of(found) and known.rest() > 0:
            return Seen(known.digest, found.st_size, kind)
        try:
            digest, found = self._hash(path, found)
        except FileNotFoundError:
            return ABSENT
        self._keep(path, found, digest, kind)
        return Seen(digest, found.st_size, kind)

    def recall(self, paths: Collection[str]) -> None:
        """What the stat cache has of files that are about to be looked at: of many, best asked for at once."""
        new = [path for path in paths if path not in self.entries and path not in self._recalled]
        if new:
            self._recalled.update(new)
            for path, entry in self._recall(new).items():  # and of those next to them, which are often next
                self.entries.setdefault(path, entry)  # not in the place of what somebody has seen meanwhile

    def _hash(self, path: str, found: os.stat_result) -> tuple[str, os.stat_result]:
        """Hash until the file holds still while it is read."""
        for _ in range(5):
            fd = os.open(self._prefix + path, os.O_RDONLY | os.O_CLOEXEC)
            try:
                digest = _digest(fd, found.st_size)
                after = os.fstat(fd)
            finally:
                os.close(fd)
            if known_of(after) == known_of(found):
                break
            found = after
        return digest, found

    def _keep(self, path: str, found: os.stat_result, digest: str, kind: str) -> None:
        self.entries[path] = Entry(known_of(found), digest, kind, time.time_ns())
        self.changed.add(path)

    def _tree(self, path: str) -> Seen:
        manifest, size = self.manifest(path)
        return Seen(hashlib.sha256(manifest).hexdigest(), size, "tree")

    def manifest(self, path: str) -> tuple[bytes, int]:
        """A folder as bytes, one line for each file in it, and the size of all of them. Its digest is the tree's."""
        listed = list(self.tree(path))
        return manifest_of(listed), sum(seen.size for _, seen in listed)

    def tree(self, path: str) -> Iterator[tuple[str, Seen]]:
        """Everything below a folder by its path within it, sorted; links are recorded and never followed."""
        stack = [path.rstrip("/")]
        found: list[str] = []
        while stack:
            folder = stack.pop()
            with os.scandir(self._prefix + folder) as entries:
                names = [(e.name, e.is_dir(follow_symlinks=False)) for e in entries]
            for name, is_folder in names:
                (stack if is_folder else found).append(f"{folder}/{name}")
        start = len(path.rstrip("/")) + 1
        for name in sorted(found):
            yield name[start:], self.look(name)

    def expand(self, patterns: Iterable[str]) -> list[str]:
        """The files that patterns name, sorted. `**` crosses folders; a plain path stands for itself."""
        found: set[str] = set()
        for pattern in patterns:
            if is_glob(pattern):
                found.update(self._glob(pattern))
            else:
                found.add(pattern.rstrip("/"))
        return sorted(found)

    def _glob(self, pattern: str) -> list[str]:
        import glob

        matches = glob.glob(pattern, root_dir=self.root, recursive=True)  # of which `file/**` finds `file/`
        clean = [m for m in matches if m and m[-1] != "/" and m.split("/", 1)[0] not in SKIPPED]
        files = [m for m in clean if os.path.isfile(self._prefix + m)]
        if len(files) < len(clean):
            self.broken.update(m for m in clean if not os.path.exists(self._prefix + m))
        return files


def _digest(fd: int, size: int) -> str:
    """The digest of an open file, which has about this size: a small one is read at once."""
    data = os.read(fd, size + 1) if size < SMALL else b""
    if len(data) == size:
        return hashlib.sha256(data).hexdigest()
    os.lseek(fd, 0, os.SEEK_SET)
    with open(fd, "rb", buffering=0, closefd=False) as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def manifest_of(listed: Iterable[tuple[str, Seen]]) -> bytes:
    """The bytes that stand for a folder with these files."""
    lines = [b"%s %s %s\n" % (seen.kind.encode(), seen.digest.encode(), _escape(name)) for name, seen in listed]
    return b"tree\n" + b"".join(lines)


EMPTY_TREE = hashlib.sha256(manifest_of(())).hexdigest()
"""A folder without files: nothing that anybody could lose."""


def _escape(name: str) -> bytes:
    return os.fsencode(name).replace(b"\\", b"\\\\").replace(b"\n", b"\\n")


def unescape(name: bytes) -> str:
    """The name that a manifest's line holds."""
    return os.fsdecode(re.sub(rb"\\(.)", lambda m: b"\n" if m[1] == b"n" else m[1], name))
