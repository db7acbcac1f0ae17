"""A ledger in a file: `ledger.jsonl`, its locks, its `head`, and its sealed segments.

Reading opens, reads and closes: no lock, no write. Writing happens in batches under `append.lock`; within a batch
the file is extended by whole lines and cut back to the last acknowledged one when the disk refuses.
"""

from __future__ import annotations

import gzip
import os
import re
import time
import zlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import NamedTuple

import msgspec

from headway.core import codec
from headway.core.events import FORMAT, Event, LedgerRotated, Record, Snapshot
from headway.core.state import Position
from headway.disk import REAL, Disk, file_kind, make_folders, write_all, write_file
from headway.errors import DamageError, LedgerDamaged, StorageFailed, TryLater
from headway.ledger import recovery
from headway.ledger.base import Loaded
from headway.ledger.lock import FileLock
from headway.ledger.scan import START, Chain, Mark, Scan, any_verifies, lines, scan, unknown_breaks

NAME = "ledger.jsonl"
LOCK_PATIENCE = 60.0
HEAD_EVERY = 1.0
SEALED = re.compile(r"ledger\.(\d+)\.jsonl\.gz")

Witnesses = Callable[[], "list[tuple[str, Position]]"]
"""Files that name a position of this ledger: whoever they are, the ledger must reach it."""


class Head(msgspec.Struct, frozen=True):
    """What `head` says: the newest snapshot, and the end when it was written. Derived; never trusted unchecked."""

    snapshot: Mark | None
    end: Mark


def unpacked(path: str) -> Iterator[bytes]:
    """The lines of a sealed segment."""
    try:
        with gzip.open(path, "rb") as file:
            for line in file:
                yield line.rstrip(b"\n")
    except (OSError, EOFError, zlib.error) as error:
        raise LedgerDamaged(
            "A sealed segment of the ledger cannot be read",
            facts={
                "file": path,
                "error": error,
                "cost": "its events; the state of the plan does not need them",
            },
            hint="put it back from a backup",
            code="ledger.segment",
        ) from error


class Tail(NamedTuple):
    """Events from some offset on: where the last one ends, the newest snapshot among them, and their sizes."""

    records: list[Record]
    end: Mark
    snapshot: Mark | None
    start: int
    first: int

    def loaded(self, *, whole: bool, size: int) -> Loaded:
        """What callers of the port get to see."""
        return Loaded(
            self.records,
            self.end.position if self.end.position.seq else None,
            whole=whole,
            base=self.first,
            tail=self.end.offset - self.start - self.first,
            debris=self.end.offset < size,
        )


class FileLedger:
    """The ledger of one plan, in the plan's folder."""

    def __init__(self, folder: str, *, disk: Disk = REAL, witnesses: Witnesses = list) -> None:
        self.folder = folder
        self.path = os.path.join(folder, NAME)
        self._disk = disk
        self._witnesses = witnesses
        self._lock = FileLock(os.path.join(folder, "append.lock"))
        self._fd = -1
        self._inode = 0
        self._end = Mark(0, START)
        self._acked = Mark(0, START)
        self._snapshot: Mark | None = None
        self._fresh = False
        self._stopped = ""
        self._head_at = 0.0
        self._head_end: Mark | None = None

    # Reading.

    def load(self, *, thorough: bool = False) -> Loaded | None:
        """From the newest snapshot on. `thorough` verifies the whole file first."""
        with self._opened() as fd:
            if fd is None:
                return None
            size = os.fstat(fd).st_size
            head = self._read_head()
            base = None if thorough or head is None else self._checked(fd, size, head.snapshot)
            if base is None:
                found = scan(fd, size)
                self._refuse_damage(fd, found)
                base = found.snapshot
            tail = self._tail(fd, base.offset if base else 0, size)
            self._refuse_loss(tail, head)
            return tail.loaded(whole=True, size=size) if tail.records else None

    def history(self, first: int = 1, last: int | None = None) -> Iterator[Record]:
        """Events by number, sealed segments included."""
        for data in self._all_lines(first):
            if codec.seal(data) is None:
                continue
            record = codec.decode(data)
            if last is not None and record.seq > last:
                return
            if record.seq >= first:
                yield record

    def segments(self) -> list[tuple[int, str]]:
        """Sealed segments, oldest first: the number of their first event, and their path."""
        with suppress(FileNotFoundError):
            names = ((SEALED.fullmatch(name), name) for name in os.listdir(self.folder))
            return sorted((int(m.group(1)), os.path.join(self.folder, name)) for m, name in names if m)
        return []

    def scan(self) -> Scan | None:
        """The whole current file, looked at line by line."""
        with self._opened() as fd:
            return None if fd is None else scan(fd, os.fstat(fd).st_size)

    def size(self) -> int:
        """Bytes up to the last event."""
        return self._end.offset

    # Writing.

    def begin(self, known: Position | None) -> Loaded:
        """Take the lock and learn what others appended; mend what a dead writer left."""
        if self._stopped:
            raise StorageFailed(
                "This ledger takes no more events", facts={"since": self._stopped}, hint="headway doctor"
            )
        make_folders(self._disk, self.folder)
        if not self._lock.acquire(wait=LOCK_PATIENCE):
            raise TryLater(
                "Another process has been writing to this ledger for a minute",
                facts={"lock": self._lock.path},
                hint="try again when it is done; a process that died holds no lock",
            )
        try:
            return self._catch_up(known)
        except BaseException:
            self._lock.release()
            raise

    def append(self, events: Sequence[Event], *, by: str, ts: str) -> list[Record]:
        """Write whole lines at the end; if the disk refuses, the file is as it was."""
        at, parts, records = self._end, [], []
        offset, position, snapshot = at.offset, at.position, self._snapshot
        for event in events:
            line, digest = codec.encode(event, seq=position.seq + 1, ts=ts, by=by, prev=position.hash)
            if event.type == Snapshot.type:
                snapshot = Mark(offset, Position(position.seq + 1, digest))
            records.append(Record(position.seq + 1, ts, by, event, position.hash, digest))
            position = Position(position.seq + 1, digest)
            parts.append(line)
            offset += len(line) + 1
        data = b"\n".join(parts) + b"\n"
        try:
            write_all(self._disk, self._fd, data, at.offset)
        except OSError as error:
            self._cut_back(at, error)
            raise StorageFailed(
                "The disk refused an event",
                facts={
                    "error": error.strerror or error,
                    "file": NAME,
                    "events lost": "none that was acknowledged",
                },
                hint="make room or mend the disk, then run the command again",
            ) from error
        self._end, self._snapshot = Mark(offset, position), snapshot
        return records

    def sync(self) -> None:
        """Make the file durable, and its name if it is new."""
        end = self._end
        try:
            self._disk.sync(self._fd)
            if self._fresh:
                self._disk.sync_folder(self.folder)
                self._fresh = False
        except OSError as error:
            self._stopped = str(error)
            raise StorageFailed(
                "The disk did not confirm an event",
                facts={"error": error.strerror or error, "last confirmed event": self._acked.position.seq},
                hint="nothing more is written to this ledger by this process; check the disk, then headway doctor",
            ) from error
        self._acked = end

    def end(self) -> None:
        """Give the lock back. `head` follows about once a second, and on close."""
        if self._lock.held:
            if time.monotonic() - self._head_at >= HEAD_EVERY:
                self._write_head()
            self._lock.release()

    def close(self) -> None:
        """Leave a current `head` behind and let go of the file."""
        if self._fd >= 0 and not self._stopped and self._acked == self._end and self._head_end != self._end:
            self._write_head()
        self._lock.release()
        self._let_go()

    def rotate(self, snapshot: Snapshot, *, by: str, ts: str, plan_id: str, project_id: str) -> list[Record]:
        """Seal the file and go on in a new one that begins with a snapshot. Inside a batch, after a sync."""
        first = self._first_number()
        sealed = os.path.join(self.folder, f"ledger.{first}.jsonl.gz")
        with open(self.path, "rb") as source:
            packed = gzip.compress(source.read(), compresslevel=6, mtime=0)
        write_file(self._disk, sealed, [packed], durable=True)
        last = self._end.position
        event = LedgerRotated(
            format=FORMAT,
            plan_id=plan_id,
            project_id=project_id,
            sealed=last,
            segment=os.path.basename(sealed),
        )
        line, digest = codec.encode(event, seq=last.seq + 1, ts=ts, by=by, prev=last.hash)
        second, digest2 = codec.encode(snapshot, seq=last.seq + 2, ts=ts, by=by, prev=digest)
        write_file(self._disk, self.path, [line, b"\n", second, b"\n"], durable=True)
        self._let_go()
        self._open_for_writing()
        here = Mark(len(line) + 1, Position(last.seq + 2, digest2))
        self._snapshot = here
        self._end = self._acked = Mark(len(line) + len(second) + 2, here.position)
        self._write_head()
        return [
            Record(last.seq + 1, ts, by, event, last.hash, digest),
            Record(last.seq + 2, ts, by, snapshot, digest, digest2),
        ]

    # Opening.

    @contextmanager
    def _opened(self) -> Iterator[int | None]:
        kind = file_kind(self.path)
        if kind not in ("", "file"):
            raise recovery.not_a_file(self.path, kind)
        if not kind:
            self._refuse_loss(Tail([], Mark(0, START), None, 0, 0), self._read_head())
            yield None
            return
        try:
            fd = os.open(self.path, os.O_RDONLY | os.O_CLOEXEC)
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
            os.close(fd)

    def _open_for_writing(self) -> None:
        kind = file_kind(self.path)
        if kind not in ("", "file"):
            raise recovery.not_a_file(self.path, kind)
        self._fresh = not kind
        try:
            self._fd = self._disk.open(self.path, os.O_RDWR | os.O_CREAT)
        except OSError as error:
            raise StorageFailed(
                "The ledger cannot be written",
                facts={"file": self.path, "error": error.strerror},
                hint="give this user permission to write it",
            ) from error
        self._inode = os.fstat(self._fd).st_ino

    def _let_go(self) -> None:
        if self._fd >= 0:
            fd, self._fd = self._fd, -1
            self._disk.close(fd)

    def _catch_up(self, known: Position | None) -> Loaded:
        """Under the lock: what came after `known`, with the file mended and this object at its end."""
        if self._fd >= 0 and not self._same_file():
            self._let_go()
        if self._fd < 0:
            self._open_for_writing()
            return self._first_look()
        size = os.fstat(self._fd).st_size
        if known != self._end.position or size < self._end.offset or not self._last_line_stands():
            return self._first_look()
        if size == self._end.offset:
            return Loaded([], known, whole=False)
        tail = self._tail(self._fd, self._end.offset, size, known)
        return self._take(tail, size).loaded(whole=False, size=0)

    def _first_look(self) -> Loaded:
        """Verify from the newest snapshot, or everything if the last writer left no clean end."""
        size = os.fstat(self._fd).st_size
        head = self._read_head()
        clean = head is not None and head.end.offset == size
        base = self._checked(self._fd, size, head.snapshot) if head is not None and clean else None
        if base is None:
            found = scan(self._fd, size)
            self._refuse_damage(self._fd, found)
            base = found.snapshot
        tail = self._tail(self._fd, base.offset if base else 0, size)
        self._refuse_loss(tail, head)
        self._snapshot = base
        return self._take(tail, size).loaded(whole=True, size=0)

    def _take(self, tail: Tail, size: int) -> Tail:
        """Stand at the end of the events. Under the lock nobody else writes, so what follows them is debris."""
        self._snapshot = tail.snapshot or self._snapshot
        if tail.end.offset < size:
            end, added = recovery.cut(self._disk, self._fd, self.folder, tail.end, size, kind="debris")
            tail = tail._replace(records=tail.records + added, end=end)
        self._end = self._acked = tail.end
        return tail

    def _same_file(self) -> bool:
        try:
            return os.stat(self.path).st_ino == self._inode
        except FileNotFoundError:
            return False

    def _last_line_stands(self) -> bool:
        """The last event we know is still where we left it."""
        if self._end.offset == 0:
            return True
        seal = b'"%s"}\n' % self._end.position.hash.encode()
        return os.pread(self._fd, len(seal), self._end.offset - len(seal)) == seal

    def _cut_back(self, at: Mark, error: OSError) -> None:
        try:
            self._disk.truncate(self._fd, at.offset)
        except OSError as again:
            self._stopped = f"{error}; then {again}"

    # Looking.

    def _checked(self, fd: int, size: int, mark: Mark | None) -> Mark | None:
        """The snapshot that `head` names, if it really stands there."""
        if mark is None or not 0 <= mark.offset < size:
            return None
        line = next(lines(fd, mark.offset, size), None)
        if line is None or codec.seal(line.data) != mark.position.hash:
            return None
        return mark if codec.peek(line.data) == (mark.position.seq, Snapshot.type) else None

    def _tail(self, fd: int, offset: int, size: int, after: Position | None = None) -> Tail:
        """Events from here to the end or to the first line that does not belong; damage is refused."""
        records: list[Record] = []
        chain = Chain(after) if after is not None else None
        end, snapshot, first = Mark(offset, after or START), None, 0
        for line in lines(fd, offset, size):
            if chain is None:
                if codec.seal(line.data) is None:
                    break
                record = codec.decode(line.data)
                chain = Chain(record.position)
            elif chain.takes(line.data):
                record = codec.decode(line.data)
            else:
                break
            records.append(record)
            first = first or line.end - line.offset
            if record.event.type == Snapshot.type:
                snapshot = Mark(line.offset, record.position)
            end = Mark(line.end, record.position)
        if end.offset < size and any_verifies(fd, end.offset, size):
            raise recovery.damaged(self.path, end, size)
        return Tail(records, end, snapshot, offset, first)

    def _refuse_damage(self, fd: int, found: Scan) -> None:
        """Breaks other than debris at the very end are for `doctor --repair`."""
        for gap in unknown_breaks(fd, found):
            if gap.resumes is not None:
                raise recovery.damaged(self.path, Mark(gap.start, gap.after), gap.end)

    def _refuse_loss(self, tail: Tail, head: Head | None) -> None:
        """Whoever names a position of this ledger was told about it: the ledger must have it."""
        end = tail.end.position
        hashes = {record.seq: record.hash for record in tail.records}
        named = [("head", head.end.position)] if head is not None else []
        for name, position in named + list(self._witnesses()):
            if position.seq > end.seq or hashes.get(position.seq, position.hash) != position.hash:
                raise LedgerDamaged(
                    "The ledger has lost events that were acknowledged",
                    facts={
                        "file": self.path,
                        "ledger ends at event": end.seq,
                        f"{name} names event": f"{position.seq} ({position.hash[:8]})",
                    },
                    hint="put the newest backup of ledger.jsonl back, or headway doctor --repair",
                    code="ledger.lost",
                )

    def _first_number(self) -> int:
        line = next(lines(self._fd, 0, self._end.offset))
        return codec.peek(line.data)[0]

    def _all_lines(self, first: int) -> Iterator[bytes]:
        with self._opened() as fd:
            size = os.fstat(fd).st_size if fd is not None else 0
            opening = next(lines(fd, 0, size), None) if fd is not None else None
            begins = codec.peek(opening.data)[0] if opening and codec.seal(opening.data) else None
            sealed = [s for s in self.segments() if begins is None or s[0] < begins]
            for (_, path), following in zip(sealed, [*(s[0] for s in sealed[1:]), begins], strict=False):
                if following is None or following > first:
                    yield from unpacked(path)
            if fd is not None:
                yield from (line.data for line in lines(fd, 0, size))

    # Head.

    def _read_head(self) -> Head | None:
        try:
            with open(os.path.join(self.folder, "head"), "rb") as file:
                return msgspec.json.decode(file.read(4096), type=Head)
        except (OSError, msgspec.DecodeError):
            return None

    def _write_head(self) -> None:
        """Derived, so neither synced nor needed: a disk that refuses it refuses nothing that matters."""
        with suppress(OSError):
            data = msgspec.json.encode(Head(self._snapshot, self._acked)) + b"\n"
            write_file(self._disk, os.path.join(self.folder, "head"), [data], durable=False)
            self._head_end = self._acked
        self._head_at = time.monotonic()
