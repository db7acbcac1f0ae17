"""Bytes by the sha256 that names them. Small ones in packs, large ones as files of their own. Knows nothing else.

A pack is self-describing (packs.py), and one writing process's own. Beside it, `<pack>.index` says where its blobs are
and can be deleted: packs are then read entry by entry. A blob is verified each time it is read, so an index that is
wrong costs time and nothing else.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import threading
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext, suppress
from itertools import accumulate, chain, repeat
from typing import NamedTuple

from headway.disk import LEFTOVER, REAL, Disk, file_of, make_folders, still_is, sync_folders, write_all, write_file
from headway.errors import BlobDamaged, StorageFailed, TryLater, closed_by_recipe
from headway.files.packs import (
    ENDED,
    Index,
    Place,
    copy_aside,
    entries,
    entry_of,
    gaps_in,
    header_of,
    index_of,
    is_being_written,
    whole_entries,
)

MANY_PACKS = 40
"""So many writers later it is time to put packs together: each of them left one."""

SMALL_SHARE = 4
"""A pack that holds no more than one in so many bytes is put together with others like it."""

WORTH = 16 << 20
"""Fewer bytes than this are not worth a look at what is needed of them."""

NEEDED = "needed"
"""A file that says how many bytes there were when space had last been freed."""

LOCK = "lock"
"""Writers share it; whoever frees space has it alone."""

LARGE = 256 * 1024
"""From this size on a blob is a file of its own: copying it into a pack would gain nothing."""

INDEX_FROM = 128
"""A pack with fewer entries is read as quickly as an index."""

MANY_BLOBS = 4096
"""An index of more is looked up in place: few packs are that large, and reading all of it in takes longer."""

PROJECT_ABOVE = 2
"""How many folders the blobs are below the project: `.headway/blobs`."""


class Freed(NamedTuple):
    """What was kept and what was freed."""

    kept: int
    freed: int
    bytes: int


class Blobs:
    """The blobs of one project."""

    def __init__(self, folder: str, *, disk: Disk = REAL) -> None:
        self.folder = folder
        self._disk = disk
        self._packed: dict[str, Mapping[str, tuple[int, int]]] = {}
        """By pack: where the bytes of each of its blobs begin, and how many they are."""
        self._elsewhere: dict[str, Place] = {}
        """Blobs that were not where they were first looked for."""
        self._read_to: dict[str, int] = {}
        self._sound: set[str] = set()
        self._learned = False
        self._pack = ""
        self._fd = -1
        self._end = 0
        self._written: dict[str, tuple[int, int]] = {}
        self._indexed = 0
        self._dirty = False
        self._fresh = False
        self._stopped = ""
        self._is_lost = False
        self._pid = os.getpid()
        self._share = -1
        self._opened: dict[int, tuple[int, int] | None] = {}
        """Which files these two are: a recipe may close all files of its process."""
        self._users = 0
        self._mutex = threading.RLock()
        self._syncing = threading.Lock()

    # Writing.

    def put(self, data: bytes) -> str:
        """Keep these bytes; their name. Durable after `sync`."""
        return self.put_all((data,))[0]

    def put_all(self, many: Sequence[bytes], named: Mapping[str, bytes] | None = None) -> list[str]:
        """Keep all of these, in one write, and those whose names are known; the names of the others.

        If that fails, some of them may be kept.
        """
        sha256 = hashlib.sha256
        names = [sha256(data).hexdigest() for data in many]
        with self._mutex:
            self._disown()
            self._refuse_lost()
            if self._share < 0:
                self._take_share()
            new = dict(zip(names, many, strict=True))
            if named:
                new = {**named, **new}
            has_large = max(map(len, new.values()), default=0) >= LARGE
            large = [name for name, data in new.items() if len(data) >= LARGE] if has_large else []
            for name in self._sound_among(new, large):
                del new[name]
            for name in large:
                if name in new:
                    self._write_large(name, new.pop(name))
                    self._sound.add(name)
            if new:
                self._write_packed(new)
                self._sound.update(new)
        return names

    def sync(self) -> None:
        """Make everything put so far durable. A failed sync is never tried again."""
        with self._syncing:  # whoever comes second waits: it may be its bytes that are being synced
            self._sync()

    def _sync(self) -> None:
        with self._mutex:
            self._disown()
            self._check()
            self._refuse_lost()
            fd, dirty, fresh = self._fd, self._dirty, self._fresh
            self._dirty = self._fresh = False
        try:
            if dirty:
                self._disk.sync(fd)
            if fresh:
                sync_folders(self._disk, self.folder, above=PROJECT_ABOVE)
        except OSError as error:
            self._stopped = str(error)
            raise StorageFailed(
                "The disk did not confirm a blob",
                facts={"error": error.strerror or error},
                hint="check the disk, then headway doctor",
            ) from error

    @property
    def crowded(self) -> bool:
        """Whether there are so many packs that putting them together is due."""
        return len(self._packs()) >= MANY_PACKS

    @property
    def doubled(self) -> bool:
        """Whether there is twice as much as when space had last been freed, so that it is worth looking again."""
        needed = 0
        with suppress(OSError, ValueError), open(os.path.join(self.folder, NEEDED), encoding="ascii") as file:
            needed = int(file.read())
        return self._total() >= max(2 * needed, WORTH)

    def gather(self) -> None:
        """Put small packs together, whether their blobs are needed or not. Not while anybody writes.

        One that holds a damaged blob stays as it is: the others need not wait for it.
        """
        self.close()
        with self._alone():
            self._sweep()
            self._forget()
            self._learn()
            sizes = self._sizes()
            small = [pack for pack, size in sizes.items() if size * SMALL_SHARE <= sum(sizes.values())]
            self._repack([pack for pack in small if self._is_whole(pack)])
            self._forget()

    def free(self, needed: Callable[[], set[str]], *, dry_run: bool) -> Freed:
        """Delete every blob that is not needed. Not while anybody writes: what they found here must stay.

        A dry run only looks, and needs no leave to write: what is written meanwhile may be counted or not.
        """
        self.close()
        if not os.path.isdir(self.folder):
            return Freed(0, 0, 0)
        with nullcontext() if dry_run else self._alone():
            if not dry_run:
                self._sweep()
            live = needed()
            self._forget()
            self._learn()
            dead = {name: size for name, size in self.names() if name not in live}
            if (dead or len(self._packs()) >= MANY_PACKS) and not dry_run:
                try:
                    self._drop(dead.keys())
                finally:  # a full disk may have refused some of it
                    self._forget()
            self._sound.clear()
            total = sum(1 for _ in self.names()) - (len(dead) if dry_run else 0)
            with suppress(OSError):
                if not dry_run:
                    path = os.path.join(self.folder, NEEDED)
                    write_file(self._disk, path, [b"%d" % self._total()], durable=False)
        return Freed(total, len(dead), sum(dead.values()))

    def _drop(self, dead: Collection[str]) -> None:
        """Let go of blobs: first of what takes no writing, for the disk may be full."""
        for name, path in list(self._large_files()):
            if name in dead:
                self._disk.remove(path)
        names = {pack: self._listed(pack).keys() for pack in self._packs()}
        empty = [pack for pack, held in names.items() if all(map(dead.__contains__, held))]
        self._remove(empty)
        left = [pack for pack in names if pack not in empty]
        is_crowded = len(left) >= MANY_PACKS
        self._repack([pack for pack in left if is_crowded or not names[pack].isdisjoint(dead)], dead)

    def _remove(self, packs: Sequence[str]) -> None:
        for pack in packs:
            for path in (f"{pack}.index", pack):
                with suppress(FileNotFoundError):
                    self._disk.remove(os.path.join(self.folder, path))

    def _sweep(self) -> None:
        """Take away what killed processes left half-written: nobody writes now, so nobody needs it."""
        for folder, _, names in os.walk(self.folder):
            for name in names:
                if LEFTOVER.fullmatch(name):
                    with suppress(FileNotFoundError):
                        self._disk.remove(os.path.join(folder, name))

    def _is_whole(self, pack: str) -> bool:
        """Whether all blobs of a pack are as they should be."""
        return all(self._sound_at(Place(pack, *place), name) is not None for name, place in self._listed(pack).items())

    def _repack(self, packs: Sequence[str], dead: Collection[str] = ()) -> None:
        """Write what is kept of packs into one, durably, before they go."""
        found = ((pack, self._listed(pack)) for pack in packs)
        live = {n: Place(pack, *place) for pack, places in found for n, place in places.items() if n not in dead}
        if live:
            pack, copied = f"{os.getpid()}-{os.urandom(6).hex()}.pack", dict[str, tuple[int, int]]()
            write_file(self._disk, os.path.join(self.folder, pack), self._copies(live, copied), durable=True)
            self._leave_index(pack, copied)
        self._remove(packs)

    def _copies(self, live: Mapping[str, Place], copied: dict[str, tuple[int, int]]) -> Iterator[bytes]:
        """Entries of a new pack; `copied` comes to say where they are in it."""
        end = 0
        for name in sorted(live, key=lambda name: live[name]):
            data = self._sound_at(live[name], name)
            data = data if data is not None else self.get(name)
            entry = entry_of(name, data)
            end += len(entry)
            copied[name] = (end - len(data) - 1, len(data))
            yield entry

    @contextmanager
    def _alone(self) -> Iterator[None]:
        """Nobody writes meanwhile: other processes do not get the lock, and other threads of this one wait."""
        with self._mutex:
            fd = os.open(os.path.join(self.folder, LOCK), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
            try:
                fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
                yield
            except BlockingIOError as error:
                raise TryLater(
                    "Somebody is writing blobs", hint="try again when no run is under way", code="blob.busy"
                ) from error
            finally:
                os.close(fd)

    def _take_share(self) -> None:
        """As long as this process writes, nobody frees space."""
        try:
            make_folders(self._disk, self.folder)
            fd = os.open(os.path.join(self.folder, LOCK), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        except OSError as error:
            raise _refused(error) from error
        with suppress(OSError):  # a file system without locks: then freeing space is the user's own risk
            fcntl.flock(fd, fcntl.LOCK_SH)
        self._share, self._opened[fd] = fd, file_of(fd)
        self._forget()
        self._sound.clear()

    def _disown(self) -> None:
        """In a child that was forked: what its parent holds and writes is not its own."""
        if self._pid == os.getpid():
            return
        self._drop_lost()
        for fd in (self._fd, self._share):
            if fd >= 0:
                os.close(fd)
        self._fd = self._share = -1
        self._users = 0
        self._pid, self._dirty, self._fresh, self._is_lost = os.getpid(), False, False, False
        self._forget()

    def _drop_lost(self) -> bool:
        """Let go of what a recipe has closed: its number may be another file's by now. Whether there was any."""
        held = ((self._fd, self._pack), (self._share, LOCK))
        lost = [
            fd for fd, name in held if fd >= 0 and not still_is(fd, self._opened[fd], os.path.join(self.folder, name))
        ]
        self._fd = -1 if self._fd in lost else self._fd
        self._share = -1 if self._share in lost else self._share
        return bool(lost)

    def _refuse_lost(self) -> None:
        """Whoever frees space may have come in since, and what was written last cannot be synced any more."""
        self._is_lost = self._drop_lost() or self._is_lost
        if self._is_lost:
            raise closed_by_recipe(self.folder)

    @contextmanager
    def used(self) -> Iterator[None]:
        """For whoever puts blobs and then records what names them; the last to leave closes."""
        with self._mutex:
            self._users += 1
        try:
            yield
        finally:
            with self._mutex:
                self._users = max(self._users - 1, 0)
            self.close()

    def close(self) -> None:
        """Sync, leave an index behind and let go of the pack; the next writer begins one of its own.

        Not while another thread uses it: nobody may free what no event names yet.
        """
        with self._syncing, self._mutex:  # another thread may be syncing that very pack
            self._disown()
            if self._users:
                return
            if self._drop_lost() or self._is_lost:
                self._dirty = self._fresh = self._is_lost = False
            try:
                if self._dirty and not self._stopped:
                    self._sync()
                if self._fd >= 0:
                    self._write_index()
            finally:
                fd, self._fd = self._fd, -1
                share, self._share = self._share, -1  # last: until then nobody takes the pack away
                if fd >= 0:
                    self._disk.close(fd)
                if share >= 0:
                    os.close(share)

    def _sound_among(self, many: Mapping[str, bytes], large: Sequence[str]) -> set[str]:
        """Those that are here already as they should be: each is looked at once, so that damage does not last.

        `large`: the names of those that are files of their own.
        """
        sound = self._sound.intersection(many)
        if len(sound) == len(many):
            return sound
        if not self._learned:
            self._learn()
        listed = self._elsewhere.keys() & many.keys()
        for places in list(self._packed.values()):
            listed |= places.among(many) if isinstance(places, Index) else places.keys() & many.keys()
        listed.update([name for name in large if os.path.exists(self._large(name))])
        for name in listed - sound:
            with suppress(BlobDamaged):
                self.get(name)
                self._sound.add(name)
                sound.add(name)
        return sound

    def _write_packed(self, many: Mapping[str, bytes]) -> None:
        self._check()
        if self._fd < 0:
            self._open_pack()
        data, sizes = many.values(), list(map(len, many.values()))
        heads = [header_of(name, size) for name, size in zip(many, sizes, strict=True)]
        written = list(chain.from_iterable(zip(heads, data, repeat(ENDED))))
        *starts, end = accumulate(map(len, written), initial=self._end)
        try:
            write_all(self._disk, self._fd, b"".join(written), self._end)
        except OSError as error:
            with suppress(OSError):
                self._disk.truncate(self._fd, self._end)
            raise _refused(error) from error
        self._written.update(zip(many, zip(starts[1::3], sizes, strict=True), strict=True))
        self._end = self._read_to[self._pack] = end
        self._dirty = True
        if len(self._written) >= max(INDEX_FROM, 4 * self._indexed):
            self._write_index()

    def _write_large(self, name: str, data: bytes) -> None:
        self._check()
        path = self._large(name)
        try:
            make_folders(self._disk, os.path.dirname(path))
            write_file(self._disk, path, [data], durable=True)
        except OSError as error:
            raise _refused(error) from error

    def _open_pack(self) -> None:
        """A pack is this process's own, and held as long as it lives: who finds it free knows that it is finished."""
        try:
            make_folders(self._disk, self.folder)
            pack = f"{os.getpid()}-{os.urandom(6).hex()}.pack"
            fd = self._disk.open(os.path.join(self.folder, pack), os.O_RDWR | os.O_CREAT | os.O_EXCL)
        except OSError as error:
            raise _refused(error) from error
        with suppress(OSError):  # a file system without locks: then nobody can tell, and repairs leave it alone
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        self._pack, self._fd, self._end = pack, fd, 0
        self._opened[fd] = file_of(fd)
        self._written, self._indexed, self._fresh = {}, 0, True
        self._packed = {pack: self._written, **self._packed}  # whatever stands elsewhere may be damaged

    def _write_index(self) -> None:
        self._indexed = len(self._written)
        if not self._stopped:
            self._leave_index(self._pack, self._written)

    def _leave_index(self, pack: str, places: dict[str, tuple[int, int]]) -> None:
        """Derived: a disk that refuses it refuses nothing that matters."""
        if len(places) >= INDEX_FROM:
            path = os.path.join(self.folder, f"{pack}.index")
            with suppress(OSError):
                write_file(self._disk, path, [index_of(places, pack)], durable=False)

    def _check(self) -> None:
        if self._stopped:
            raise StorageFailed(
                "The blob store takes no more bytes", facts={"since": self._stopped}, hint="headway doctor"
            )

    # Reading.

    def has(self, name: str) -> bool:
        """Whether the bytes are here."""
        return self._find(name) is not None or os.path.exists(self._large(name))

    def file_of(self, name: str) -> str:
        """The file that holds the bytes, or would."""
        place = self._find(name)
        return os.path.join(self.folder, place.pack) if place is not None else self._large(name)

    def get(self, name: str) -> bytes:
        """The bytes, verified."""
        place = self._find(name)
        if place is None:
            return self._get_large(name)
        data = self._sound_at(place, name)
        return data if data is not None else self._get_elsewhere(name, place)

    def size(self, name: str) -> int | None:
        """How many bytes they are; None where they are not here."""
        if (place := self._find(name)) is not None:
            return place.size
        with suppress(OSError):
            return os.stat(self._large(name)).st_size
        return None

    def each(self, names: Collection[str]) -> Iterator[tuple[str, bytes]]:
        """Those of these blobs that are here, verified; a pack is opened once for all of its own."""
        packed: dict[str, list[tuple[str, Place]]] = {}
        left = []
        for name in names:
            if (place := self._find(name)) is not None:
                packed.setdefault(place.pack, []).append((name, place))
            else:
                left.append(name)
        for pack, wanted in packed.items():
            with suppress(OSError), open(os.path.join(self.folder, pack), "rb") as file:
                while wanted:
                    name, place = wanted.pop()
                    data = os.pread(file.fileno(), place.size, place.offset)
                    if hashlib.sha256(data).hexdigest() == name:
                        yield name, data
                    else:
                        left.append(name)
            left += [name for name, _ in wanted]
        for name in left:
            with suppress(BlobDamaged, OSError):
                yield name, self.get(name)

    def names(self) -> Iterator[tuple[str, int]]:
        """Every blob that is here, with its size."""
        self._learn()
        places = self._places()
        yield from ((name, place.size) for name, place in sorted(places.items()))
        for name, path in self._large_files():
            if name not in places:
                yield name, os.path.getsize(path)

    def verify(self) -> Iterator[tuple[str, str]]:
        """Read everything: (name or file, what is wrong) for whatever is not as it should be."""
        self._learn()
        for name in sorted({*self._places(), *(name for name, _ in self._large_files())}):
            try:
                self.get(name)
            except BlobDamaged as error:
                yield name, str(error.facts.get("file", "missing"))
        for pack in self._packs():
            path = os.path.join(self.folder, pack)
            for start, end in gaps_in(path):
                if not is_being_written(path):
                    yield pack, f"bytes {start} to {end} belong to no blob"

    def repair(self) -> list[str]:
        """Set aside what belongs to no blob, so that it is not looked at again. Deletes nothing."""
        done = []
        for pack in self._packs():
            path = os.path.join(self.folder, pack)
            gaps = gaps_in(path)
            if not gaps or is_being_written(path):
                continue
            kept = copy_aside(self._disk, path)
            with suppress(FileNotFoundError):  # before what it tells of moves
                self._disk.remove(f"{path}.index")
            write_file(self._disk, path, whole_entries(path), durable=True)
            size = sum(end - start for start, end in gaps)
            done.append(f"{pack}: {size} bytes belong to no blob; as it was, it is {kept}. No blob was lost.")
        self._forget()
        return done

    def give_up(self, names: Collection[str]) -> tuple[list[str], list[str]]:
        """Let go of those that are not what they were, of which nobody has put a sound copy meanwhile.

        Which they are, and the files that held them, kept aside.
        """
        self.close()
        with self._alone():
            self._forget()
            self._learn(indexed=False)
            damaged = [name for name in names if not self._is_sound(name)]
            packs = [pack for pack in self._packs() if not self._listed(pack).keys().isdisjoint(damaged)]
            large = [path for name, path in self._large_files() if name in damaged]
            kept = [copy_aside(self._disk, path) for path in (*(os.path.join(self.folder, p) for p in packs), *large)]
            self._repack(packs, damaged)
            for path in large:
                self._disk.remove(path)
            self._forget()
            self._sound.clear()
        return damaged, kept

    def _is_sound(self, name: str) -> bool:
        try:
            self.get(name)
        except BlobDamaged:
            return False
        return True

    def _find(self, name: str) -> Place | None:
        place = self._place(name)
        if place is None:
            self._learn()
            place = self._place(name)
        return place

    def _place(self, name: str) -> Place | None:
        """Where the bytes are, by what was learned so far."""
        if (place := self._elsewhere.get(name)) is not None:
            return place
        for pack, places in list(self._packed.items()):  # another thread may be learning
            if name in places:
                return Place(pack, *places[name])
        return None

    def _places(self) -> dict[str, Place]:
        """Where all blobs are that were learned of."""
        found: dict[str, Place] = {}
        for pack in reversed(list(self._packed)):
            found |= {name: Place(pack, *place) for name, place in self._listed(pack).items()}
        return found | self._elsewhere

    def _listed(self, pack: str) -> dict[str, tuple[int, int]]:
        """What is known of a pack, as a table of one's own."""
        places = self._packed.get(pack, {})
        return places.all() if isinstance(places, Index) else dict(places)

    def _sound_at(self, place: Place, name: str) -> bytes | None:
        """The bytes there, if they are those that have this name."""
        data = b""
        with suppress(OSError), open(os.path.join(self.folder, place.pack), "rb") as file:
            file.seek(place.offset)
            data = file.read(place.size)
        return data if hashlib.sha256(data).hexdigest() == name else None

    def _get_large(self, name: str) -> bytes:
        path = self._large(name)
        try:
            with open(path, "rb") as file:
                data = file.read()
        except FileNotFoundError as error:
            raise _missing(name) from error
        if hashlib.sha256(data).hexdigest() != name:
            raise _damaged(name, path)
        return data

    def _get_elsewhere(self, name: str, place: Place) -> bytes:
        """An index may be wrong, and there may be another copy."""
        with self._mutex:  # nobody else learns from that index again
            self._forget()
            self._learn(indexed=False)
        for pack, places in list(self._packed.items()):
            other = Place(pack, *places.get(name, (0, 0)))
            data = self._sound_at(other, name)
            if data is not None:
                self._elsewhere[name] = other
                return data
        if os.path.exists(self._large(name)):
            return self._get_large(name)
        raise _damaged(name, os.path.join(self.folder, place.pack))

    def _forget(self) -> None:
        with self._mutex:
            self._packed = {self._pack: self._written} if self._fd >= 0 else {}
            self._elsewhere, self._read_to, self._learned = {}, {}, False

    def _learn(self, *, indexed: bool = True) -> None:
        """Read the entries that packs have gained since the last look."""
        with self._mutex:
            self._disown()
            self._learned = True
            packs, gone = list[str](), ["?"]
            while gone and packs != (packs := self._packs()):  # put together meanwhile: their blobs are in another one
                gone = [pack for pack in packs if not self._learn_of(pack, indexed=indexed)]

    def _learn_of(self, pack: str, *, indexed: bool) -> bool:
        """Whether a pack is still there."""
        if self._packed.get(pack) is self._written:  # nobody knows it better
            return True
        path = os.path.join(self.folder, pack)
        try:
            if pack not in self._read_to and indexed:
                self._read_index(path, pack)
            start = self._read_to.get(pack, 0)
            if os.path.getsize(path) > start:
                self._read_to[pack] = self._read_pack(path, pack, start)
        except FileNotFoundError:
            return False
        return True

    def _read_index(self, path: str, pack: str) -> None:
        with suppress(OSError, ValueError), open(f"{path}.index", "rb") as file:
            index = Index(file.read(), pack)
            if index.read_to <= os.path.getsize(path):
                self._packed[pack] = index if len(index) >= MANY_BLOBS else index.all()
                self._read_to[pack] = index.read_to

    def _read_pack(self, path: str, pack: str, start: int) -> int:
        """Read the entries of a pack from an offset on: where they end. Whoever writes spares the next one that."""
        places = self._listed(pack)
        known = len(places)
        with open(path, "rb") as file:
            for name, place in entries(file, pack, start):
                places[name] = (place.offset, place.size)
                start = place.offset + place.size + 1
        self._packed[pack] = places
        if len(places) - known >= INDEX_FROM and self._share >= 0 and not is_being_written(path):
            self._leave_index(pack, places)
        return start

    def _packs(self) -> list[str]:
        try:
            return sorted(name for name in os.listdir(self.folder) if name.endswith(".pack"))
        except FileNotFoundError:
            return []

    def _sizes(self) -> dict[str, int]:
        """The sizes of all packs."""
        return {pack: os.path.getsize(os.path.join(self.folder, pack)) for pack in self._packs()}

    def _total(self) -> int:
        """All bytes that blobs take on disk."""
        return sum((*self._sizes().values(), *(os.path.getsize(path) for _, path in self._large_files())))

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


def _damaged(name: str, path: str) -> BlobDamaged:
    return BlobDamaged(
        f"Blob {name[:16]} is damaged",
        facts={"file": path},
        hint="headway doctor says what names it; put the file back from a backup",
    )


def _missing(name: str) -> BlobDamaged:
    return BlobDamaged(
        f"Blob {name[:16]} is not here",
        facts={"blob": name},
        hint="headway doctor says what names it",
        code="blob.missing",
    )
