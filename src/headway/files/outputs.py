"""Output files: taken into blobs, put back from them, and never overwritten before what was there is safe.

Knows paths, bytes and blobs; never why something is written.
"""

from __future__ import annotations

import errno
import hashlib
import os
import stat
import sys
from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from contextlib import suppress
from typing import Literal

import msgspec

from headway import bulk
from headway.bulk import Known, Order
from headway.core.paths import PROTECTED
from headway.core.state import Output
from headway.disk import LEFTOVER, is_running, temporary_for, with_room
from headway.errors import BlobDamaged, BugError, StorageFailed, TryLater, UsageError
from headway.files.blobs import Blobs
from headway.files.folders import Folders
from headway.files.observe import ABSENT, UNREADABLE, Observer, Seen, manifest_of, unescape

LARGEST = 256 * 1024 * 1024
"""Larger outputs are hashed and not stored."""
EVERYTHING = sys.maxsize


class Placed(msgspec.Struct):
    """Bytes that were just written to a path, or are about to be; or the text of an artifact without files, which has
    none.

    `found` is the file as it was left, and `marked` the time that it was given (see `Observer.remember_written`).
    `stood`: what had come to stand there before, kept as blobs.
    """

    path: str
    data: bytes
    found: Known | None = None
    marked: int = 0
    stood: Output | None = None


LOOKS = 3
"""So often somebody may be quicker; then the file system itself never says the same twice."""


class Replaced(Exception):
    """Something else stands at a path than a moment ago; it still does."""


class Outputs:
    """The output paths of one project."""

    def __init__(self, root: str, blobs: Blobs, observer: Observer, *, largest: int = LARGEST) -> None:
        self.root = root
        self.blobs = blobs
        self.observer = observer
        self.largest = largest
        self.always: Container[str] = ()
        """Paths whose bytes are stored however many they are: files that are changed in place, stage by stage."""

        self.borrowed: dict[str, Blobs] = {}
        """Blobs of other projects, by the digest of a text that is read from them."""
        self._prefix = os.path.join(root, "")
        self.folders = Folders(root)
        self.is_closed = False
        """Nobody waits for what is still being made: whoever comes with it now writes into the work of others."""

    def capture(self, paths: Iterable[str], *, whole: bool = False) -> tuple[Output, ...]:
        """What stands at these paths, its bytes kept as blobs, unless they are too many: `whole` keeps them anyway.
        Nothing at a path gives no output for it.
        """
        found = []
        for path in paths:
            self.folders.refuse_link_out(path)
            self._refuse_folder(path)
            self._refuse_special(path)
            output = self._capture(path, EVERYTHING if whole else self.limit(path))
            if output is not None:
                found.append(output)
        return tuple(found)

    def limit(self, path: str) -> int:
        """How large what stands at a path may be to be stored."""
        return EVERYTHING if path in self.always else self.largest

    def set_aside(self, paths: Iterable[str]) -> tuple[Output, ...]:
        """What stands at these paths, however large: kept as blobs before it is overwritten, as far as it has bytes."""
        return tuple(output for path in paths if (output := self._capture(path, None)) is not None)

    def left(self, paths: Iterable[str]) -> tuple[Output, ...]:
        """What an attempt left at these paths, so that it is known again; kept as blobs where there is room.

        What cannot be looked at is there without a digest.
        """
        found = []
        for path in paths:
            try:
                output = self._capture(path, self.limit(path))
            except (StorageFailed, OSError):
                output = self._seen(path)
            if output is not None:
                found.append(output)
        return tuple(found)

    def _seen(self, path: str) -> Output:
        seen = self.observer.look(path.rstrip("/"))
        return Output(path, seen.digest if not seen.digest.startswith(UNREADABLE) else "", seen.size)

    def keep_text(self, text: bytes) -> Output:
        """The output of an artifact without files."""
        return Output("", self.blobs.put(text), len(text), "text")

    def text(self, digest: str) -> bytes:
        """A text without a file, of this project or of one that it is borrowed from."""
        return self.borrowed.get(digest, self.blobs).get(digest)

    def bytes_of(self, output: Output) -> bytes:
        """What was recorded: from its blob, or, where it was too large for one, from its path."""
        if self.blobs.has(output.digest) or not output.path or not self.stands(output):
            return self.blobs.get(output.digest)
        with open(self._full(output.path), "rb") as file:
            return file.read()

    def restore(self, outputs: Iterable[Output]) -> bool:
        """Put recorded bytes back at their paths, all of them or, if some cannot be read, none; whether it was done."""
        wanted = [o for o in outputs if o.kind == "text" or not self.stands(o)]
        if not all(map(self.readable, wanted)):
            return False
        for output in wanted:
            path = output.path.rstrip("/")  # where a folder belongs, somebody may have left a file or a link
            if output.kind == "tree":
                self._restore_tree(output)
            elif output.kind == "link":
                self._restore_link(path, self.blobs.get(output.digest))
            elif output.kind != "text":
                self.write(path, self.blobs.get(output.digest), executable=output.kind == "exec")
                self.observer.remember(path, output.digest, output.kind)
        return True

    def stands(self, output: Output) -> bool:
        """Whether what was recorded is at its path."""
        seen = self.observer.look(output.path.rstrip("/"))
        return (seen.digest, seen.kind) == (output.digest, output.kind)

    def readable(self, output: Output) -> bool:
        """Whether its bytes can be read from the blobs."""
        try:
            data = self.blobs.get(output.digest)
            if output.kind == "tree":
                for _, digest, _ in members(data):
                    self.blobs.get(digest)
        except BlobDamaged:
            return False
        return True

    def is_stored(self, output: Output) -> bool:
        """As `readable`, believing the index of the blobs: cheap enough to be asked about every artifact."""
        if output.kind != "tree":
            return self.blobs.has(output.digest)
        try:
            return all(self.blobs.has(digest) for _, digest, _ in members(self.blobs.get(output.digest)))
        except BlobDamaged:
            return False

    def lacks(self, output: Output) -> Literal["files", "modes", ""]:
        """What is the matter with a folder in which nobody wrote: files of it are missing, or only modes differ.
        "" if it holds anything else than was recorded.

        What a killed process left of a file that it was putting back is nobody's edit either.
        """
        try:
            recorded = {name: digest for _, digest, name in members(self.blobs.get(output.digest))}
        except BlobDamaged:
            return ""
        found = {name: seen.digest for name, seen in self.observer.tree(output.path.rstrip("/"))}
        if found == recorded:
            return "modes"
        is_ours = all(recorded.get(name) == digest or _was_to_be(name) in recorded for name, digest in found.items())
        return "files" if is_ours else ""

    def is_part_of(self, output: Output) -> bool:
        """Whether nothing is in a folder but what was recorded to be there, and as it was."""
        try:
            recorded = {(name, kind, digest) for kind, digest, name in members(self.blobs.get(output.digest))}
        except BlobDamaged:
            return False
        return all((name, seen.kind, seen.digest) in recorded for name, seen in self.observer.tree(output.path[:-1]))

    def is_torn(self, output: Output) -> bool:
        """Whether what stands at its path is what a power cut leaves of it: less of it, or zeros instead."""
        try:
            if output.kind != "tree":
                return self._is_torn(output.path, output.digest, output.size)
            base, wanted = output.path.rstrip("/"), members(self.blobs.get(output.digest))
            digests = {name: digest for _, digest, name in wanted}
            return all(
                name in digests and (seen.digest == digests[name] or self._is_torn(f"{base}/{name}", digests[name]))
                for name, seen in self.observer.tree(base)
            )
        except (BlobDamaged, OSError):
            return False

    def _is_torn(self, path: str, digest: str, size: int | None = None) -> bool:
        """Compared with its bytes where they are stored; the power cut may have taken those, too."""
        full = self._full(path)
        if os.path.islink(full):
            return False
        with open(full, "rb") as file:
            rest = file.read().rstrip(b"\0")
            length = file.tell()
        try:
            whole = self.blobs.get(digest)
        except BlobDamaged:
            return not rest or (size is not None and length < size)
        return length <= len(whole) and whole.startswith(rest)

    def write(self, path: str, data: bytes, *, executable: bool = False) -> None:
        """Write a file: over an existing one in one step, so that nobody sees half of it."""
        self.refuse_late()
        self.folders.look_again(path)
        self._place(path, data)
        if executable:
            os.chmod(self._full(path), 0o755)

    def place(self, path: str, data: bytes, *, left: str | None = None) -> Placed:
        """Write bytes that are at hand; `keep` makes an output of them, without reading them back.

        `left`: the digest of what stood there, "" for nothing. What else does by now, somebody has written. Without
        it, whatever stands there goes.
        """
        self.refuse_late()
        self.folders.look_again(path)
        return self._place(path, data, left)

    def close(self) -> None:
        """What is written from now on comes too late."""
        self.is_closed = True

    def refuse_late(self) -> None:
        """Before anything is put there."""
        if self.is_closed:
            raise TryLater("The run is over", hint="headway run", code="run.over")

    def keep(self, placed: Sequence[Placed], texts: Mapping[str, bytes] | None = None) -> list[Output]:
        """Take what was placed into blobs, all of it in one write, and with it texts that belong to it, by name."""
        paths, data = [one.path for one in placed], [one.data for one in placed]
        return self.keep_all(paths, data, [one.found for one in placed], [one.marked for one in placed], texts)

    def keep_all(
        self,
        paths: Sequence[str],
        data: Sequence[bytes],
        found: Sequence[Known | None],
        marked: Sequence[int],
        texts: Mapping[str, bytes] | None = None,
    ) -> list[Output]:
        """The same, column by column (see `Placed`)."""
        sizes = list(map(len, data))
        if max(sizes, default=0) > self.largest:
            is_large = [bool(path) and size > self.limit(path) for path, size in zip(paths, sizes, strict=True)]
            names = iter(
                self.blobs.put_all([one for one, large in zip(data, is_large, strict=True) if not large], texts)
            )
            digests = [
                hashlib.sha256(one).hexdigest() if large else next(names)
                for one, large in zip(data, is_large, strict=True)
            ]
            found = [None if large else one for one, large in zip(found, is_large, strict=True)]
        else:
            digests = self.blobs.put_all(data, texts)
        self.observer.remember_written(paths, digests, found, marked)
        if all(paths):
            return list(map(Output, paths, digests, sizes))
        return [
            Output(path, digest, size, "file" if path else "text")
            for path, digest, size in zip(paths, digests, sizes, strict=True)
        ]

    def order(self, path: str, data: bytes, left: str) -> Order | None:
        """How to write bytes in the place of what was `left` there, or of nothing: whoever carries it out may have
        others to carry out with it. None where there is more to be looked at.
        """
        if not left:
            return self.order_new(path, data)
        seen = self.observer.entries.get(path)
        if seen is None or seen.kind != "file" or seen.digest != left:
            return None
        if seen.size == len(data) and hashlib.sha256(data).hexdigest() == left:
            return None  # what came out the same is left as it stands
        return self._instead(path, data, seen.stat)

    def order_new(self, path: str, data: bytes) -> Order:
        """How to write bytes where nothing stands."""
        return self._prefix + path, data, 0o666, None, None

    def order_all(self, paths: Sequence[str], data: Sequence[bytes]) -> list[Order]:
        """The same of many."""
        prefix = self._prefix
        return [(prefix + path, one, 0o666, None, None) for path, one in zip(paths, data, strict=True)]

    def _instead(self, path: str, data: bytes, other: Known | None = None) -> Order:
        """How to write bytes in the place of a file, be it whatever it is."""
        full = self._prefix + path
        return full, data, 0o644, temporary_for(full), other

    def _place(self, path: str, data: bytes, left: str | None = None) -> Placed:
        """Write a file into a folder that is there."""
        if left != "" and (seen := self.observer.entries.get(path)) is not None:
            if seen.kind == "file" and seen.size == len(data) and self._holds(path, seen.digest, data):
                return Placed(path, data)
            return self._replace(path, data, left)
        try:
            return _placed(path, data, self.order_new(path, data))
        except (FileExistsError, IsADirectoryError):
            return self._replace(path, data, left)

    def _replace(self, path: str, data: bytes, left: str | None) -> Placed:
        """Put a file in the place of whatever stands there, in one step; nothing of it is lost.

        What somebody puts there after the look is looked at, too.
        """
        stood, patience, is_cleared = None, LOOKS, False
        while True:
            stood = self.newcomer(path, left, data) or stood
            is_known = left is not None and patience > 0
            try:
                placed = _placed(path, data, self._over(path, data) if is_known else self._instead(path, data))
            except IsADirectoryError:
                if is_cleared:
                    raise
                _remove_folder(self._prefix + path)
                is_cleared = True
            except (Replaced, FileExistsError):
                patience -= 1
            except FileNotFoundError:  # it is gone, or its folder is
                if not patience:
                    raise
                patience -= 1
                self.folders.look_again(path)
            else:
                placed.stood = stood
                return placed

    def _over(self, path: str, data: bytes) -> Order:
        """How to write bytes in the place of what was just looked at, and of nothing else."""
        try:
            is_file = stat.S_ISREG(os.lstat(self._prefix + path).st_mode)
        except FileNotFoundError:
            return self.order_new(path, data)
        seen = self.observer.entries.get(path) if is_file else None
        return self._instead(path, data, seen.stat if seen is not None else None)

    def newcomer(self, path: str, left: str | None, data: bytes) -> Output | None:
        """What has come in the place of what was left there, kept as blobs before these bytes replace it; nothing where
        nobody knows what was."""
        if left is None:
            return None
        if left and self.observer.holds(path, left, cheaply=True):
            return None
        stood = self._capture(path, None)
        is_known = stood is None or stood.digest in (left, hashlib.sha256(data).hexdigest())  # nothing is lost with it
        return None if is_known else stood

    def _holds(self, path: str, digest: str, data: bytes) -> bool:
        """Whether these very bytes stand at a path where others of that digest did."""
        return hashlib.sha256(data).hexdigest() == digest and self.observer.holds(path, digest, cheaply=False)

    def leads_elsewhere(self, path: str) -> bool:
        """Whether whoever writes to a path writes to another one, too: it is a link, or a file with several names."""
        try:
            found = os.lstat(self._full(path))
        except OSError:
            return False
        return not stat.S_ISREG(found.st_mode) or found.st_nlink > 1

    def clear(self, path: str) -> None:
        """A path for a recipe to begin with: nothing there, or an empty folder where it produces one."""
        self.remove(path)
        if path.endswith("/"):
            self.folders.make_parents(path)
            os.makedirs(self._full(path), exist_ok=True)

    def sweep(
        self, paths: Iterable[str], is_ours: Callable[[str, str], bool], keep: Callable[[Output], None] | None = None
    ) -> None:
        """Take away what killed processes left beside these paths: files that they were about to put there, or that
        they had taken from there.

        Of what is not ours, by its path and its digest, somebody may have written it: it is given to `keep` before it
        goes, or stays for who can keep it.
        """
        for path, left in self._left_beside(paths):
            try:
                self.folders.refuse_outside(left)
                ours, taken = is_ours(path, self.observer.look(left).digest), None
                if not ours and keep is None:
                    continue
                if not ours:
                    taken = self._capture(left, None)
            except (OSError, UsageError):  # it cannot be looked at: so it stays
                continue
            if keep is not None and taken is not None:
                keep(msgspec.structs.replace(taken, path=path))
            with suppress(OSError):
                self.remove(left)

    def _left_beside(self, paths: Iterable[str]) -> list[tuple[str, str]]:
        """Paths, each with a path beside it at which a killed process left something of it."""
        wanted = {with_room(path.rstrip("/")): path for path in paths}
        found: list[tuple[str, str]] = []
        for folder in {os.path.dirname(path) for path in wanted}:
            with suppress(OSError):
                for name in os.listdir(self._full(folder)):
                    stem = os.path.join(folder, was) if (was := _was_to_be(name)) else ""
                    if stem in wanted:
                        found.append((wanted[stem], os.path.join(folder, name)))
        return found

    def remove(self, path: str) -> None:
        """Take away what stands at an output path, after its bytes were kept. Nothing outside the project is."""
        if os.path.normpath(path).split("/", 1)[0] in (".", "..", *PROTECTED):
            raise BugError(f"{path!r} is no output")
        self.folders.refuse_outside(path)
        full = self._full(path.rstrip("/"))
        with suppress(FileNotFoundError):
            if stat.S_ISDIR(os.lstat(full).st_mode):
                _remove_folder(full)
            else:
                os.unlink(full)

    # One path.

    def _capture(self, path: str, largest: int | None) -> Output | None:
        full = self._full(path.rstrip("/"))
        try:
            found = os.lstat(full)
        except (FileNotFoundError, NotADirectoryError):
            return None
        if stat.S_ISDIR(found.st_mode):
            return self._capture_tree(path, largest)
        if stat.S_ISLNK(found.st_mode):
            target = os.readlink(full)
            return Output(path, self.blobs.put(b"link:" + os.fsencode(target)), len(target), "link")
        kind: Literal["file", "exec"] = "exec" if found.st_mode & 0o100 else "file"
        if largest is None and not stat.S_ISREG(found.st_mode):
            return None  # a pipe or a socket has no bytes that could be kept
        if not stat.S_ISREG(found.st_mode) or (largest is not None and found.st_size > largest):
            seen = self.observer.look(path)
            return Output(path, seen.digest, seen.size, kind)
        with open(full, "rb", buffering=0) as file:
            data = file.read()
        digest = self.blobs.put(data)
        self.observer.remember(path, digest, kind)
        return Output(path, digest, len(data), kind)

    def _capture_tree(self, path: str, largest: int | None) -> Output:
        base = path.rstrip("/")
        manifest, size = self.observer.manifest(base)
        if largest is not None and size > largest:
            return Output(path, hashlib.sha256(manifest).hexdigest(), size, "tree")
        listed = []
        for name, seen in self.observer.tree(base):
            if seen.kind == "special":
                if largest is not None:
                    listed.append((name, seen))
                continue
            inner = self._capture(f"{base}/{name}", largest)
            listed.append((name, Seen(inner.digest, inner.size, inner.kind) if inner else ABSENT))
        manifest = manifest_of((name, seen) for name, seen in listed if seen.digest)
        return Output(path, self.blobs.put(manifest), sum(seen.size for _, seen in listed), "tree")

    def _refuse_folder(self, path: str) -> None:
        """Where a file is asked for, a folder is none."""
        full = self._full(path)
        if not path.endswith("/") and os.path.isdir(full) and not os.path.islink(full):
            raise UsageError(
                f"{path} is a folder, and a file was asked for",
                hint=f"write a file, or say produces: {path}/",
                code="output.folder",
            )

    def _refuse_special(self, path: str) -> None:
        """Pipes, sockets and devices have no bytes that could be kept or compared."""
        full = self._full(path.rstrip("/"))
        inside = (os.path.join(folder, name) for folder, _, names in os.walk(full) for name in names)
        for place in inside if path.endswith("/") else (full,):
            try:
                mode = os.lstat(place).st_mode
            except OSError:
                continue  # nothing there is for others to tell
            if not (stat.S_ISREG(mode) or stat.S_ISLNK(mode) or stat.S_ISDIR(mode)):
                raise UsageError(
                    f"{os.path.relpath(place, self.root)} is neither a file nor a folder",
                    hint="write a file; a pipe or socket belongs outside of what is produced",
                    code="output.special",
                )

    def _restore_tree(self, output: Output) -> None:
        base = output.path.rstrip("/")
        wanted = {name: (kind, digest) for kind, digest, name in members(self.blobs.get(output.digest))}
        if os.path.islink(self._full(base)) or not os.path.isdir(self._full(base)):
            self.remove(base)
        else:
            for name, _ in list(self.observer.tree(base)):
                if name not in wanted:
                    self.remove(f"{base}/{name}")
        os.makedirs(self._full(base), exist_ok=True)
        for name, (kind, digest) in wanted.items():
            path = f"{base}/{name}"
            if self.observer.look(path)[::2] == (digest, kind):
                continue
            data = self.blobs.get(digest)
            if kind == "link":
                self._restore_link(path, data)
            else:
                self.write(path, data, executable=kind == "exec")

    def _restore_link(self, path: str, data: bytes) -> None:
        self.folders.make_parents(path)
        self.remove(path)
        os.symlink(os.fsdecode(data.removeprefix(b"link:")), self._full(path))

    def _full(self, path: str) -> str:
        return self._prefix + path


def members(manifest: bytes) -> list[tuple[str, str, str]]:
    """What a folder holds, by its manifest: kind, digest and name of each file."""
    found = []
    for line in manifest.split(b"\n")[1:-1]:
        kind, digest, name = line.split(b" ", 2)
        found.append((kind.decode(), digest.decode(), unescape(name)))
    return found


def _was_to_be(name: str) -> str:
    """What a file was to be called that a killed process was about to put in place; "" of any other file."""
    left = LEFTOVER.fullmatch(name)
    return left[1] if left and not is_running(int(left[2])) else ""


def _placed(path: str, data: bytes, order: Order) -> Placed:
    """A file that was written as ordered; or what the system says against it."""
    [(error, found, marked)] = bulk.write([order])
    if error == bulk.OTHER:
        raise Replaced
    if error:
        raise OSError(error, os.strerror(error), order[0])
    return Placed(path, data, found, marked)


def _remove_folder(path: str) -> None:
    """Take a folder away with all that is in it; one that something is mounted on stays, and is empty."""
    import shutil  # takes longer to import than most outputs to write

    try:
        shutil.rmtree(path)
    except OSError as error:
        if error.errno == errno.EBUSY and not os.listdir(path):
            return
        if not os.path.isabs(error.filename or ""):  # a name within it says nothing without it
            error.filename = path
        raise
