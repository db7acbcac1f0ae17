"""A ledger in a file: `ledger.jsonl`, its lock, its `head`, and its sealed segments.

Reading opens, reads and closes: no lock, no write. Writing happens in batches under `append.lock`; within a batch the
file is extended by whole lines, and cut back to the last good one when the disk refuses. A new file is put in place
by one rename with its first events whole, so a ledger that does not begin with an event is damaged.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Collection, Container, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import NamedTuple

from headway.core import codec
from headway.core.events import FORMAT, Event, LedgerRotated, Record, Snapshot
from headway.core.state import Position
from headway.disk import REAL, Disk, file_kind, file_of, make_folders, still_is, sync_folders, write_chunks, write_file
from headway.errors import BugError, DamageError, LedgerDamaged, StorageFailed, TryLater, closed_by_recipe
from headway.ledger import head as heads
from headway.ledger import recovery, segments
from headway.ledger.base import Loaded
from headway.ledger.head import Head
from headway.ledger.lock import FileLock
from headway.ledger.scan import (
    NEAR,
    START,
    Mark,
    Scan,
    before,
    check_format,
    continues,
    follows,
    line_after,
    lines,
    pieces,
    place_of,
    scan,
    snapshot_before,
)
from headway.ledger.segments import Page, Segment
from headway.ledger.tail import Tail

NAME = "ledger.jsonl"
LOCK = "append.lock"
PATIENCE = 60.0
HEAD_EVERY = 1.0
TRIES, QUIET = 5, 0.002
"""How often a reader that finds damage looks again while the file changes, and how long it waits to see that."""

RECENT = 8 << 20
"""So many bytes are looked through by whoever wants to know how things went lately."""

PROJECT_ABOVE = 3
"""How many folders a plan's folder is below the project: `.headway/plans/<plan_id>`."""

Witnesses = Callable[[], "list[tuple[str, Position]]"]
"""Files that name a position of this ledger: whoever they are, the ledger must reach it."""


def ends_with(folder: str, hash_: str) -> bool:
    """Whether the last line of the ledger there says that it is this event, so that nothing was appended since.

    Verifies nothing, and asks nothing else: for whoever looks at many.
    """
    try:
        fd = os.open(f"{folder}/{NAME}", os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return False
    try:
        length = codec.SEAL_LENGTH + 1
        tail = os.pread(fd, length, max(os.lseek(fd, 0, os.SEEK_END) - length, 0))
    except OSError:  # a folder, a pipe
        return False
    finally:
        os.close(fd)
    return tail.endswith(b"\n") and codec.claim(tail[:-1]) == hash_


def _stamp(found: os.stat_result) -> tuple[int, ...]:
    return found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns


class Verified(NamedTuple):
    """A file that was read and found to be in order, as long as it is still that file."""

    stamp: tuple[int, ...]
    end: Mark
    snapshot: Mark | None
    news: Loaded
    """For somebody who knows the newest event: nothing."""


class FileLedger:
    """The ledger of one plan, in the plan's folder.

    `verified` is shared by those who read and write in turn: what one of them has just verified, and nobody has touched
    since, the next need not verify again.
    """

    def __init__(
        self,
        folder: str,
        *,
        disk: Disk = REAL,
        witnesses: Witnesses = list,
        verified: dict[str, Verified] | None = None,
    ) -> None:
        self.folder = folder
        self.path = os.path.join(folder, NAME)
        self._disk = disk
        self._witnesses = witnesses
        self._lock = FileLock(os.path.join(folder, LOCK))
        self._fd = -1
        self._opened: tuple[int, int] | None = None
        """Which file it is, whatever it is called."""
        self._is_closed = False
        """A recipe has closed it within this batch: what is on disk is known again with the next one."""
        self._end = Mark(0, START)
        self._acked = Mark(0, START)
        self._snapshot: Mark | None = None
        self._verified = verified if verified is not None else {}
        self._pages: dict[str, list[Page]] = {}
        """By the path of a sealed segment: where one may begin in it."""
        self._staged: list[bytes | memoryview] = []
        """Lines with what ends them, those of one call in one piece; that of a snapshot is in several."""
        self._ahead = Mark(0, START)
        """Where the file will end when they are written."""
        self._snapshot_ahead: Mark | None = None
        self._stopped = ""
        self._head_at = 0.0
        self._head_end = Mark(0, START)

    # Reading.

    def load(self, known: Position | None = None, *, thorough: bool = False) -> Loaded | None:
        """From the newest snapshot on, or what came after `known`. `thorough` verifies the whole file first."""
        for _ in range(TRIES):
            before = self.stamp()
            try:
                return self._load(known, thorough=thorough)
            except LedgerDamaged:
                time.sleep(QUIET)
                if self.stamp() == before:
                    raise
        return self._load(known, thorough=thorough)

    def stamp(self) -> tuple[int, ...]:
        """Changes whenever the file does. Nobody is locked out: what looks damaged may be somebody's work."""
        try:
            return _stamp(os.stat(self.path))
        except OSError:
            return ()

    def history(
        self,
        first: int = 1,
        last: int | None = None,
        *,
        about: Container[str] | None = None,
        naming: Collection[str] = (),
    ) -> Iterator[Record]:
        """Events by number, sealed segments included."""
        newest, names = 0, codec.names(naming)
        for data in self._all_lines(first):
            if (naming and not names(data)) or (first > 1 and before(data, first)):
                continue
            if codec.seal(data) is None or (line := codec.opened(data)).seq <= newest:
                continue
            newest = line.seq
            if last is not None and newest > last:
                return
            if newest >= first:
                yield codec.decode(line, about)

    def base(self, number: int) -> int:
        """An event from which on the state as of this one can be told: a snapshot before it, or a first event."""
        with self.opened() as fd:
            size = os.fstat(fd).st_size if fd is not None else 0
            begins = self._first_number(fd, size) if fd is not None else None
            if fd is not None and begins is not None and begins <= number:
                return snapshot_before(fd, min(place_of(fd, size, number) + NEAR, size), number) or begins
        return max((segment.first for segment in segments.sealed(self.folder) if segment.first <= number), default=1)

    def recent(self) -> Iterator[Record]:
        """The newest events, as far as they can be looked through in a moment; none from sealed segments."""
        with self.opened() as fd:
            size = os.fstat(fd).st_size if fd is not None else 0
            if fd is not None:
                found = lines(fd, line_after(fd, size - RECENT, size) if size > RECENT else 0, size)
                yield from (codec.decode(line.data) for line in found if line.stands())

    def segments(self) -> list[tuple[int, str]]:
        """Sealed segments, oldest first: the number of their first event, and their path."""
        return [(segment.first, segment.path) for segment in segments.sealed(self.folder)]

    def scan(self) -> Scan | None:
        """The whole current file, looked at line by line; None where there is none."""
        with self.opened() as fd:
            return None if fd is None else scan(fd, os.fstat(fd).st_size)

    def named(self) -> recovery.Named:
        """Positions that this ledger must have: named by `head`, by files, or acknowledged by this object."""
        head = heads.read(self.folder)
        return self._all_named(head)

    @contextmanager
    def opened(self) -> Iterator[int | None]:
        """The current file for reading; None where there is none."""
        kind = file_kind(self.path)
        if kind not in ("", "file"):
            raise recovery.not_a_file(self.path, kind)
        try:
            fd = os.open(self.path, os.O_RDONLY | os.O_CLOEXEC) if kind else None
        except OSError as error:
            raise DamageError(
                "The ledger cannot be read",
                facts={"file": self.path, "error": error.strerror},
                hint="give this user permission to read it",
                code="ledger.unreadable",
            ) from error
        try:
            yield fd
        finally:
            if fd is not None:
                os.close(fd)

    def size(self) -> int:
        """Bytes up to the last event, those that are staged included."""
        return self._ahead.offset if self._staged else self._end.offset

    # Writing.

    def begin(self, known: Position | None, *, patience: float = PATIENCE) -> Loaded:
        """Take the lock and learn what others appended; mend what a dead writer left."""
        self._refuse_if_stopped()
        try:
            taken = self._take_lock(patience)
        except OSError as error:
            raise self._refused(error) from error
        if not taken:
            raise TryLater(
                "Another process is writing to this ledger",
                facts={"waited": f"{patience:g} s", "lock": self._lock.path},
                hint="try again when it is done; a process that died holds no lock",
                code="ledger.busy",
            )
        self._is_closed = False
        try:
            return self._catch_up(known)
        except BaseException as error:
            self._let_go()
            self._lock.release()
            if isinstance(error, OSError):
                raise self._refused(error) from error
            raise

    def _take_lock(self, patience: float) -> bool:
        if self._fd >= 0:
            with suppress(FileNotFoundError):  # somebody took the folder away under an open file
                return self._lock.acquire(wait=patience)
        make_folders(self._disk, self.folder)
        return self._lock.acquire(wait=patience)

    def stage(self, events: Sequence[Event], *, by: str, ts: str) -> list[Record]:
        """Chain events to the end, in memory."""
        if not self._lock.held:
            raise BugError("events outside of a batch")
        staged, records = self._staged, list[Record]()
        offset, end = self._ahead if staged else self._end
        is_plain = Snapshot not in map(type, events)
        for some in ([events] if events else ()) if is_plain else [[event] for event in events]:
            if not is_plain and isinstance(some[0], Snapshot):
                found, pieces = codec.chain_snapshot(some[0], end, ts, by)
                self._snapshot_ahead = Mark(offset, found[0].position)
                staged += pieces
                offset += sum(map(len, pieces))
            else:
                found, lines = codec.chain(some, end, ts, by)
                staged.append(lines)
                offset += len(lines)
            end = found[-1].position
            records += found
        self._ahead = Mark(offset, end)
        return records

    def write(self) -> None:
        """Put what is staged at the end, as whole lines; if the disk refuses, the file is as it was."""
        staged, ahead, snapshot = self._staged, self._ahead, self._snapshot_ahead
        self._staged, self._snapshot_ahead = [], None
        self._refuse_if_stopped()
        if staged:
            self._is_closed = self._is_closed or self._is_lost() or not self._lock.stands
            if self._is_closed:
                raise closed_by_recipe(self.path)
            self._write(staged, self._end)
            self._end, self._snapshot = ahead, snapshot or self._snapshot

    def sync(self) -> None:
        """Make the file durable."""
        if self._is_closed or self._is_lost():  # what it wrote before that is not confirmed by anybody
            self._is_closed, self._stopped = True, "a recipe has closed it"
            raise closed_by_recipe(self.path)
        if self._fd < 0:
            return
        end = self._end
        try:
            self._disk.sync(self._fd)
        except OSError as error:
            raise self._unconfirmed(error) from error
        self._acked = end

    def end(self) -> None:
        """Give the lock back; what was staged and not written never happened. `head` follows about once a second."""
        self._staged, self._snapshot_ahead = [], None
        if self._lock.held:
            try:
                if time.monotonic() - self._head_at >= HEAD_EVERY:
                    self._write_head()
            finally:
                self._lock.release()

    def close(self) -> None:
        """Leave a current `head` behind and let go of the file."""
        try:
            due = self._fd >= 0 and self._head_end != self._acked and (self._lock.held or self._lock.acquire(wait=0))
            if due and (found := self._same_file()) is not None and found.st_size == self._end.offset:
                self._write_head()
        except OSError:
            pass  # whoever comes next looks at more of it
        finally:
            self._lock.release()
            self._let_go()

    def rotate(self, snapshot: Snapshot, *, by: str, ts: str, plan_id: str, project_id: str) -> list[Record]:
        """Seal the file and go on in a new one that begins with a snapshot. Inside a batch, after a sync.

        If the disk refuses before the new file is in place, nothing has happened.
        """
        if not self._lock.held or self._acked != self._end:
            raise BugError("rotation outside of a batch, or before its sync")
        last = self._end.position
        try:
            name, packed = self._seal()
            event = LedgerRotated(
                format=FORMAT, plan_id=plan_id, project_id=project_id, sealed=last, segment=name, digest=packed
            )
            (lead,), line = codec.chain([event], last, ts, by)
            (first,), pieces = codec.chain_snapshot(snapshot, lead.position, ts, by)
            size = self._put_in_place([line, *pieces])
        except OSError as error:
            raise self._refused(error) from error
        self._snapshot = Mark(len(line), first.position)
        self._end = self._acked = Mark(size, first.position)
        self._write_head()
        return [lead, first]

    # What reading is made of.

    def _load(self, known: Position | None, *, thorough: bool) -> Loaded | None:
        head = heads.read(self.folder)
        named = self._all_named(head)  # before the file is looked at: it only ever grows
        with self.opened() as fd:
            if fd is None:
                self._refuse_missing(named)
                return None
            found = os.fstat(fd)
            tail = self._look(fd, found.st_size, None if thorough else head, named)
            loaded = tail.loaded(known, found.st_size)
            news = loaded._replace(records=[], whole=False)
            self._verified[self.path] = Verified(_stamp(found), tail.end, tail.snapshot, news)
            return loaded

    def _all_named(self, head: Head | None) -> list[tuple[str, Position]]:
        ours = [("head", head.end.position)] if head is not None else []
        ours += [("this process", self._acked.position)] if self._acked.position.seq else []
        return ours + list(self._witnesses())

    def _refuse_missing(self, named: recovery.Named) -> None:
        """There may be no ledger only where there never was one."""
        recovery.refuse_loss(self.path, START, {}, [*named, *recovery.traces(self.folder)])

    def _look(self, fd: int, size: int, head: Head | None, named: recovery.Named) -> Tail:
        """Verify from the snapshot that `head` names, or, without a `head` that is right, everything."""
        check_format(fd, size)
        tail = self._from(fd, size, head.snapshot) if head is not None else None
        if tail is None:
            found = scan(fd, size)
            recovery.refuse(self.path, fd, found)
            tail = self._from(fd, found.end.offset, found.snapshot)
        if tail is None:
            raise recovery.headless(self.path, size)
        hashes = tail.hashes({position.seq for _, position in named})
        recovery.refuse_loss(self.path, tail.end.position, hashes, named)
        return tail

    def _from(self, fd: int, size: int, base: Mark | None) -> Tail | None:
        """Events from this snapshot (or the first event) on; None if it does not stand there."""
        offset = base.offset if base else 0
        line = next(lines(fd, offset, size), None)
        if line is None or not line.stands():
            return None
        event = codec.opened(line.data)
        if base is None:
            return self._after(fd, size, Mark(0, follows(event)))
        if Position(event.seq, event.hash) != base.position or event.type != Snapshot.type:
            return None
        return self._after(fd, size, Mark(line.end, base.position), event, base.offset)

    def _after(
        self, fd: int, size: int, start: Mark, first: codec.Envelope | None = None, offset: int | None = None
    ) -> Tail:
        """Events that follow this one, to the first line that does not belong; worse than debris is refused.

        `first`: the snapshot that they follow, and its `offset`, if it is to be among them.
        """
        end, (seq, hash_) = start
        found, ends, newest = ([], [], None) if first is None else ([first], [end], 0)
        broken, snapshot = False, Snapshot.type
        for _, data, line_end, verified in lines(fd, end, size):
            if not verified and codec.seal(data) is None:
                broken = True
                continue
            line = codec.opened(data)
            if broken or not continues(line, seq, hash_):
                raise recovery.damaged(self.path, Mark(end, Position(seq, hash_)), size)
            if line.type == snapshot:
                newest = len(found)
            found.append(line)
            ends.append(line_end)
            end, seq, hash_ = line_end, line.seq, line.hash
        return Tail(found, ends, start.offset if offset is None else offset, Mark(end, Position(seq, hash_)), newest)

    def _all_lines(self, first: int) -> Iterator[bytes]:
        with self.opened() as fd:
            size, sealed = os.fstat(fd).st_size if fd is not None else 0, segments.sealed(self.folder)
            is_asked = first > 1 or sealed  # else all there is to read begins with the file
            begins = self._first_number(fd, size) if fd is not None and is_asked else None
            sealed = [s for s in sealed if begins is None or s.first < begins]
            for segment, following in zip(sealed, [*(s.first for s in sealed[1:]), begins], strict=False):
                if following is None or following > first:
                    yield from segments.unpack(segment.path, self._page(segment, first))
            if fd is not None:
                start = place_of(fd, size, first) if begins is not None and begins < first else 0
                yield from (line.data for line in lines(fd, start, size))

    def _page(self, segment: Segment, first: int) -> Page | None:
        """Where to begin in a segment. Its pages are found once, by whoever does not begin with its first event."""
        if first <= segment.first:
            return None
        if segment.path not in self._pages:
            self._pages[segment.path] = segments.pages(segment.path)
        return segments.page_of(self._pages[segment.path], first)

    def _first_number(self, fd: int, size: int) -> int | None:
        found = (line.data for line in lines(fd, 0, size, near=True) if line.stands())
        return next((codec.peek(data)[0] for data in found), None)

    # What writing is made of.

    def _catch_up(self, known: Position | None) -> Loaded:
        """Under the lock: what came after `known`, with the file mended and this object at its end."""
        found = self._same_file()
        if found is None:
            self._let_go()
            return self._first_look(known)
        size = found.st_size
        if size >= self._end.offset and self._last_line_stands():
            if size == self._end.offset and known == self._end.position:
                return Loaded([], known, whole=False, size=size)
            tail = self._after(self._fd, size, self._end)
            news = tail.loaded(known, size, start=self._end.position)
            if not news.whole:
                return self._take(tail, news, size)
        self._let_go()
        return self._first_look(known)

    def _first_look(self, known: Position | None) -> Loaded:
        """Verify from the newest snapshot, or everything if the last writer left no clean end."""
        head = heads.read(self.folder)
        named = self._all_named(head)
        kind = file_kind(self.path)
        if kind not in ("", "file"):
            raise recovery.not_a_file(self.path, kind)
        if not kind:
            self._refuse_missing(named)
            self._end, self._snapshot = Mark(0, START), None
            return Loaded([], None)
        self._open(self._disk.open(self.path, os.O_RDWR))
        found = os.fstat(self._fd)
        size = found.st_size
        clean = head if head is not None and head.end.offset == size else None
        seen = self._verified.get(self.path)
        untouched = seen is not None and seen.stamp == _stamp(found) and known == seen.end.position
        if seen is not None and untouched and clean is not None and seen.end == clean.end:
            self._end, self._snapshot = seen.end, seen.snapshot
            return seen.news
        tail = self._look(self._fd, size, clean, named)
        news = tail.loaded(known, size)
        self._snapshot = None
        return self._take(tail, news, size)

    def _take(self, tail: Tail, news: Loaded, size: int) -> Loaded:
        """Stand at the end of the events. Under the lock nobody else writes, so what follows them is debris."""
        self._snapshot = tail.snapshot or self._snapshot
        self._end = tail.end
        if tail.end.offset < size:
            records = list(news.records)  # if they are of a newer version, nothing is touched
            self._end, added = recovery.set_debris_aside(self._disk, self._fd, self.folder, tail.end, size)
            self._acked = self._end
            grown = self._end.offset - tail.end.offset
            news = news._replace(records=[*records, *added], end=self._end.position, debris=False)
            news = news._replace(tail=news.tail + grown, size=self._end.offset)
        return news

    def _write(self, chunks: Iterable[bytes | memoryview], at: Mark) -> None:
        try:
            if self._fd < 0 and at.offset:
                raise BugError("a ledger that is not open is written to behind its beginning")
            if self._fd < 0:
                self._put_in_place(chunks)
            else:
                write_chunks(self._disk, self._fd, chunks, at.offset)
        except OSError as error:
            if self._fd >= 0:
                self._cut_back(at, error)
            raise self._refused(error) from error

    def _put_in_place(self, chunks: Iterable[bytes | memoryview]) -> int:
        """Make this the ledger by one rename; its size. Before the rename a failure changes nothing."""
        temporary = f"{self.path}.new"
        fd = self._disk.open(temporary, os.O_RDWR | os.O_CREAT | os.O_TRUNC)
        try:
            size = write_chunks(self._disk, fd, chunks)
            self._disk.sync(fd)
            self._disk.replace(temporary, self.path)
        except BaseException:
            self._disk.close(fd)
            with suppress(OSError):
                self._disk.remove(temporary)
            raise
        self._let_go()
        self._open(fd)
        try:
            sync_folders(self._disk, self.folder, above=PROJECT_ABOVE)
        except OSError as error:
            raise self._unconfirmed(error) from error
        return size

    def _seal(self) -> tuple[str, str]:
        """Keep the current file compressed: the name and the digest of what it is kept in."""
        first = self._first_number(self._fd, self._end.offset)
        name = segments.name(first or self._end.position.seq)
        path = os.path.join(self.folder, name)
        if os.path.lexists(path):  # of a rotation that did not come to its end; or somebody put an old ledger back
            recovery.move_aside(self._disk, self.folder, path, name)
        running = codec.Running()
        packed = segments.pack(pieces(self._fd, 0, self._end.offset), running)
        write_file(self._disk, path, packed, durable=True, temporary=f"{path}.new")
        return name, running.digest()

    def _open(self, fd: int) -> None:
        self._fd, self._opened = fd, file_of(fd)

    def _is_lost(self) -> bool:
        """Whether a recipe that closed all files has closed this one, too: its number may be another's by now."""
        if self._fd >= 0 and not still_is(self._fd, self._opened, self.path):
            self._fd = -1
            return True
        return False

    def _let_go(self) -> None:
        if self._fd >= 0 and not self._is_lost():
            fd, self._fd = self._fd, -1
            self._disk.close(fd)

    def _same_file(self) -> os.stat_result | None:
        """The open file as it is now, if there is one, and it is still the one at its path."""
        if self._is_lost() or self._fd < 0:
            return None
        found = os.fstat(self._fd)
        try:
            return found if os.path.samestat(os.lstat(self.path), found) else None
        except FileNotFoundError:
            return None

    def _last_line_stands(self) -> bool:
        """The last event we know is still where we left it."""
        seal = b'"%s"}\n' % self._end.position.hash.encode()
        return os.pread(self._fd, len(seal), self._end.offset - len(seal)) == seal

    def _cut_back(self, at: Mark, error: OSError) -> None:
        try:
            self._disk.truncate(self._fd, at.offset)
        except OSError as again:
            self._stopped = f"{error}; then {again}"

    def _write_head(self) -> None:
        """Neither synced nor needed: a disk that refuses it refuses nothing that matters."""
        if self._fd >= 0 and not self._stopped and self._head_end != self._acked == self._end:
            with suppress(OSError):
                heads.write(self._disk, self.folder, Head(self._snapshot, self._acked))
                self._head_end = self._acked
        self._head_at = time.monotonic()

    # Refusals.

    def _refuse_if_stopped(self) -> None:
        if self._stopped:
            raise StorageFailed(
                "This ledger takes no more events", facts={"since": self._stopped}, hint="headway doctor"
            )

    def _unconfirmed(self, error: OSError) -> StorageFailed:
        self._stopped = str(error)
        return StorageFailed(
            "The disk did not confirm an event",
            facts={"error": error.strerror or error, "last confirmed event": self._acked.position.seq},
            hint="nothing more is written to this ledger by this process; check the disk, then headway doctor",
        )

    def _refused(self, error: OSError) -> StorageFailed:
        return StorageFailed(
            "The disk refused an event",
            facts={"error": error.strerror or error, "file": self.path, "events lost": "none that was acknowledged"},
            hint="make room, give this user permission or mend the disk, then run the command again",
        )
