"""The files of `dag/`: read, written whole by one rename, or appended. Knows their formats; never what they mean.

All of it is derived. Nothing here is synced: what a power cut takes, the next writer makes again from the ledgers.
Whatever cannot be believed is an error that says so; nothing silently starts empty.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from typing import TypeVar

import msgspec

from headway.disk import REAL, is_running, write_file
from headway.errors import DamageError, FormatTooNew, TryLater
from headway.history.open_index import OpenIndex
from headway.history.shapes import VERSION, DagIndex, Edge, GoalDetail, Manifest
from headway.ledger.lock import FileLock

PATIENCE = 30.0
"""How long, in seconds, a writer waits for others that write to the same history."""

_encoder = msgspec.json.Encoder()
_encode, _encode_lines = _encoder.encode, _encoder.encode_lines
_FIRST = rb'\{"version":(\d{1,9}),'

T = TypeVar("T")


def _as(kind: type[T]) -> Callable[[bytes], T]:
    """What reads such a document. What that takes is looked up when one is read: it takes longer than reading most."""
    return partial(msgspec.json.decode, type=kind)


class _Versioned(msgspec.Struct):
    version: int = 0


class EdgeLogDamaged(Exception):
    """The edge log is not what was written: it is made again from the goals."""


class DagFolder:
    """One project's `dag/`."""

    def __init__(self, home: str) -> None:
        self.path = os.path.join(home, "dag")
        self.index_path = os.path.join(self.path, "index.json")
        self.edges_path = os.path.join(self.path, "edges.jsonl")
        self.manifest_path = os.path.join(self.path, "artifacts", "manifest.json")
        self.goals_path = os.path.join(self.path, "goals")
        self.open_path = os.path.join(self.path, "open")

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Keep other writers out meanwhile. Readers need no lock: each file is replaced whole."""
        os.makedirs(self.goals_path, exist_ok=True)
        lock = FileLock(os.path.join(self.path, "lock"))
        if not lock.acquire(wait=PATIENCE):
            raise TryLater("Somebody else is writing the history", facts=lock.signature(), hint="headway dag rebuild")
        try:
            yield
        finally:
            lock.release()

    # The index.

    def read_index(self) -> DagIndex | None:
        """All goals; None where there is no history yet."""
        data = _read(self.index_path)
        if data is None:
            return None
        return self._decode(data, _as(DagIndex), "index.json")

    def open_index(self) -> OpenIndex | None:
        """The same for whoever changes it."""
        data = _read(self.index_path)
        if data is None:
            return None
        return self._decode(data, OpenIndex.read, "index.json")

    def write_index(self, index: OpenIndex) -> None:
        """All of it anew, by one rename."""
        self._write(self.index_path, index.data())

    # Goals.

    def goal_path(self, goal_id: str) -> str:
        """Where a goal's file is."""
        return os.path.join(self.goals_path, f"{goal_id}.json")

    def goal_ids(self) -> list[str]:
        """Goals that have a file."""
        try:
            names = os.listdir(self.goals_path)
        except (FileNotFoundError, NotADirectoryError):
            return []
        return sorted(name.removesuffix(".json") for name in names if name.endswith(".json"))

    def read_goal(self, goal_id: str) -> GoalDetail | None:
        """A goal with its tasks; None if it has no file."""
        data = _read(self.goal_path(goal_id))
        if data is None:
            return None
        return self._decode(data, _as(GoalDetail), f"goals/{goal_id}.json")

    def has_newer_goal(self, goal_id: str) -> bool:
        """Whether a goal's file was written by a newer Headway, so that it is nobody's to change here."""
        try:
            self.read_goal(goal_id)
        except FormatTooNew:
            return True
        except DamageError:
            return False
        return False

    def write_goal(self, goal: GoalDetail) -> None:
        """One task a line."""
        self._write(self.goal_path(goal.id), in_lines(goal, "tasks", goal.tasks))

    # Edges.

    def append_edges(self, known: int, edges: Sequence[Edge | bytes]) -> int:
        """Add to the edge log, of which so many bytes are known; its new size. Some may be given as their lines.

        What a writer left that died before it said so is looked at: none of it is written twice, and half a line of it
        is cut off. A log that is shorter than it was is damaged.
        """
        fd = os.open(self.edges_path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        try:
            end, there = self._tail(fd, known)
            if there:
                edges = [edge for edge in _as_values(edges) if there.get(edge.id) is not edge.gone]
            data = _in_lines(edges)
            written = 0
            while written < len(data):
                written += os.pwrite(fd, data[written:], end + written)
            return end + len(data)
        finally:
            os.close(fd)

    def _tail(self, fd: int, known: int) -> tuple[int, dict[str, bool]]:
        """Where complete lines end, and the edges behind what is known: whether each is gone."""
        size = os.fstat(fd).st_size
        if size < known or (known and os.pread(fd, 1, known - 1) != b"\n"):
            raise EdgeLogDamaged
        tail = os.pread(fd, size - known, known) if size > known else b""
        whole = tail.rfind(b"\n") + 1
        if whole < len(tail):
            os.ftruncate(fd, known + whole)
        there = {}
        for line in tail[:whole].splitlines():
            edge = _parsed(line)
            there[edge.id] = edge.gone
        return known + whole, there

    def read_edges(self) -> dict[str, Edge]:
        """The edges that stand, by id: what came, less what went. Half a last line is not there yet."""
        data = _read(self.edges_path) or b""
        found: dict[str, Edge] = {}
        for line in data[: data.rfind(b"\n") + 1].splitlines():
            edge = _parsed(line)
            if edge.gone:
                found.pop(edge.id, None)
            else:
                found[edge.id] = edge
        return found

    def write_edges(self, edges: Iterable[Edge]) -> int:
        """The whole log anew; its size."""
        data = _encode_lines(edges)
        self._write(self.edges_path, data)
        return len(data)

    # The manifest.

    def read_manifest(self) -> Manifest | None:
        """What was made; None if that is not written down."""
        data = _read(self.manifest_path)
        if data is None:
            return None
        return self._decode(data, _as(Manifest), "artifacts/manifest.json")

    def write_manifest(self, manifest: Manifest) -> int:
        """One artifact a line; its size."""
        names, entries = manifest.artifacts.keys(), manifest.artifacts.values()
        pairs = zip(_encode_lines(list(names)).splitlines(), _encode_lines(list(entries)).splitlines(), strict=True)
        return self._write_manifest(manifest, b",\n".join([b"%s:%s" % pair for pair in pairs]))

    def write_first_manifest(self, last_updated: str, lines: bytes) -> int:
        """The same of a manifest whose artifacts are given as they are written."""
        return self._write_manifest(Manifest(version=VERSION, last_updated=last_updated, artifacts={}), lines)

    def _write_manifest(self, manifest: Manifest, lines: bytes) -> int:
        head = _encode({"version": manifest.version, "lastUpdated": manifest.last_updated})[:-1]
        data = b'%s,"artifacts":{\n%s\n}}\n' % (head, lines)
        os.makedirs(os.path.dirname(self.manifest_path), exist_ok=True)
        self._write(self.manifest_path, data)
        return len(data)

    # Plans whose ledgers are ahead of the history.

    def mark(self, plan_id: str) -> None:
        """This process writes to this plan, and the history does not know yet."""
        path = os.path.join(self.open_path, f"{plan_id}@{os.getpid()}")
        try:
            os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o644))
        except FileNotFoundError:
            os.makedirs(self.open_path, exist_ok=True)
            self.mark(plan_id)

    def unmark(self, plan_id: str) -> None:
        """The history knows what this process wrote, and what the dead did; others have yet to say."""
        for name, marked, pid in self._marks():
            if marked == plan_id and (pid == os.getpid() or not is_running(pid)):
                with suppress(FileNotFoundError):
                    os.unlink(os.path.join(self.open_path, name))

    def marked(self) -> list[str]:
        """Plans that somebody writes to, or wrote to and died."""
        return sorted({plan_id for _, plan_id, _ in self._marks()})

    def _marks(self) -> Iterator[tuple[str, str, int]]:
        """Name, plan and process; 0 where an older Headway named none."""
        try:
            names = os.listdir(self.open_path)
        except (FileNotFoundError, NotADirectoryError):
            return
        for name in names:
            plan_id, _, pid = name.rpartition("@")
            yield (name, plan_id, int(pid)) if plan_id and pid.isdecimal() else (name, name, 0)

    def damage(self) -> Iterator[DamageError | FormatTooNew]:
        """Every file that cannot be believed. Half a last edge line is not there yet, and no damage."""
        reads: dict[str, Callable[[], object]] = {"index": self.read_index, "manifest": self.read_manifest}
        reads |= {goal_id: partial(self.read_goal, goal_id) for goal_id in self.goal_ids()}
        for read in reads.values():
            try:
                read()
            except (DamageError, FormatTooNew) as error:
                yield error
        try:
            self.read_edges()
        except EdgeLogDamaged:
            yield _damaged("edges.jsonl", "a line of it is no edge")

    # What the above have in common.

    def _decode(self, data: bytes, decode: Callable[[bytes], T], name: str) -> T:
        try:
            version = _version(data)
            if version > VERSION:
                raise FormatTooNew(
                    "This history was written by a newer Headway",
                    facts={"file": f"dag/{name}", "version": version, "known here": VERSION},
                    hint="use that version; nothing was touched",
                    code="dag.too_new",
                )
            if version < VERSION:
                raise _damaged(name, f"it has version {version}")
            return decode(data)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            raise _damaged(name, str(error)) from error

    def _write(self, path: str, data: bytes) -> None:
        write_file(REAL, path, [data], durable=False)


def _version(data: bytes) -> int:
    """The version that a file says it has: at its beginning, where it was written here, else wherever it stands."""
    found = re.match(_FIRST, data)
    return int(found[1]) if found else msgspec.json.decode(data, type=_Versioned).version


def in_lines(value: msgspec.Struct, field: str, items: Sequence[msgspec.Struct]) -> bytes:
    """A document whose one long list stands last, an item a line."""
    head = msgspec.structs.replace(value, **{field: []})
    plain = {key: item for key, item in msgspec.to_builtins(head).items() if key != field}
    lines = _encode_lines(items)[:-1].replace(b"\n", b",\n")
    return b'%s,"%s":[\n%s\n]}\n' % (_encode(plain)[:-1], field.encode(), lines)


def _in_lines(edges: Iterable[Edge | bytes]) -> bytes:
    """Values and lines, in this order: those that are given as values are written together."""
    found, values = list[bytes](), list[Edge]()
    for given in edges:
        if isinstance(given, bytes):
            found += (_encode_lines(values), given)
            values = []
        else:
            values.append(given)
    return b"".join((*found, _encode_lines(values)))


def _as_values(edges: Iterable[Edge | bytes]) -> Iterator[Edge]:
    for given in edges:
        if isinstance(given, bytes):
            yield from map(_parsed, given.splitlines())
        else:
            yield given


def _parsed(line: bytes) -> Edge:
    try:
        return msgspec.json.decode(line, type=Edge)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise EdgeLogDamaged from error


def _read(path: str) -> bytes | None:
    try:
        with open(path, "rb") as file:
            return file.read()
    except (FileNotFoundError, NotADirectoryError):
        return None


def _damaged(name: str, reason: str) -> DamageError:
    return DamageError(
        f"dag/{name} cannot be read",
        facts={"reason": reason, "cost": "nothing: it is made again from the ledgers"},
        hint="headway dag rebuild",
        code="dag.damaged",
    )
