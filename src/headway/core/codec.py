"""Events as lines and back. Knows the exact bytes of the format; never files.

A line is `{"v":1,"seq":…,"ts":…,"type":…,"by":…,"data":{…},"prev":"…","hash":"…"}` and a line feed. `hash` is the
last key: 32 hex digits of the sha256 over the line's bytes before `,"hash"`, of which `prev` is a part.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Collection, Container, Iterable, Sequence
from functools import cache, lru_cache
from itertools import count, islice, repeat
from typing import Any, get_args

import msgspec

from headway.core.events import EVENTS, FORMAT, Event, First, Genesis, Record, Snapshot, Unknown
from headway.core.state import Position, State
from headway.errors import FormatTooNew

LINE_VERSION = 1
HASH_LENGTH = 32
START = "0" * HASH_LENGTH
"""`prev` of the very first event."""

_VERSION = b'{"v":%d,"seq":' % LINE_VERSION
_OPTIONAL = '"opt":true,'
_SEAL = b',"hash":"'
SEAL_LENGTH = len(_SEAL) + HASH_LENGTH + len(b'"}')
"""The last bytes of a line: the hash and what frames it."""

SAMPLE = 64
"""How many rows of a large table stand for all of them where its size is asked for."""

_LINK = b',"prev":"'
_LINK_LENGTH = len(_LINK) + HASH_LENGTH + len(b'"')

_START = re.compile(
    rb'\{"v":1,"seq":(\d{1,18}),"ts":"([^"\\]*)","type":"([a-z_]+)",'
    rb'"by":"([^"\\]*(?:\\.[^"\\]*)*)",("opt":true,)?"data":'
)
"""How a line of this version begins."""

_STATE = b'{"state":'
_DIGEST = rb',"digest":"([0-9a-f]{32})"\}'
_DIGEST_LENGTH = len(b',"digest":""}') + HASH_LENGTH
"""How the data of a snapshot begins and ends."""

LONG = 1 << 16
"""The data of a longer line is not read through only to find where it ends."""


class Envelope(msgspec.Struct, frozen=True, forbid_unknown_fields=True, gc=False):
    """A line before its data is looked at."""

    v: int
    seq: int
    ts: str
    type: str
    by: str
    data: msgspec.Raw
    prev: str
    hash: str
    opt: bool = False


_sha256 = hashlib.sha256
_encode = msgspec.json.Encoder().encode
_envelope = msgspec.json.Decoder(Envelope).decode
_known: dict[str, type[Event]] = dict(EVENTS)
_formats: dict[str, int] = {kind.type: FORMAT for kind in get_args(Genesis)}
"""The newest format that is known, by the kind of a first line."""

_decoders: dict[str, Callable[[msgspec.Raw], Any]] = {}
"""Made when an event of the kind is first met: all of them take longer than most commands do."""


def know(events: Iterable[type[Event]]) -> None:
    """Learn events of ledgers that are no plan's: whoever keeps such a ledger says so before it is read."""
    for event in events:
        _known.setdefault(event.type, event)
        if issubclass(event, First):
            _formats[event.type] = event.known


def chain(events: Sequence[Event], after: Position, ts: str, by: str) -> tuple[list[Record], bytes]:
    """Events as the records behind the one at a place, and their lines, each with its line feed, as one text."""
    seq, prev = after
    if len(events) == 1:
        (event,) = events
        line, found = _line(seq + 1, _head_of(event, ts, by), _data(event), prev)
        return [Record(seq + 1, ts, by, event, prev, found)], line
    if len({*map(type, events)}) == 1 and not isinstance(events[0], Unknown):
        parts = zip(repeat(_head_of(events[0], ts, by)), [*map(_encode, events)], strict=False)
    else:
        parts = zip([_head_of(event, ts, by) for event in events], map(_data, events), strict=True)
    lines, links = list[bytes](), [prev]
    for number, (head, data) in enumerate(parts, seq + 1):
        line, prev = _line(number, head, data, prev)
        lines.append(line)
        links.append(prev)
    numbered = zip(count(seq + 1), events, links, links[1:], strict=False)
    return [Record(number, ts, by, event, prev, hash_) for number, event, prev, hash_ in numbered], b"".join(lines)


def _line(number: int, head: bytes, data: bytes, prev: str) -> tuple[bytes, str]:
    """A line, and its hash."""
    body = b'%s%d%s%s,"prev":"%s"' % (_VERSION, number, head, data, prev.encode())
    found = _sha256(body).hexdigest()[:HASH_LENGTH]
    return b'%s,"hash":"%s"}\n' % (body, found.encode()), found


def encode(event: Event, seq: int, ts: str, by: str, prev: str) -> tuple[bytes, str]:
    """The event's line, without the line feed, and its hash."""
    (record,), line = chain([event], Position(seq - 1, prev), ts, by)
    return line[:-1], record.hash


def chain_snapshot(event: Snapshot, after: Position, ts: str, by: str) -> tuple[list[Record], list[bytes | memoryview]]:
    """The same for a snapshot, with its line in pieces: the state is the largest thing there is, and is not copied."""
    seq, prev = after.seq + 1, after.hash
    head = b"%s%d%s%s" % (_VERSION, seq, _head_of(event, ts, by), _STATE)
    rest = b',"digest":%s},"prev":"%s"' % (_encode(event.digest), prev.encode())
    state, running = memoryview(event.state), Running()
    for piece in (head, state, rest):
        running.add(piece)
    digest = running.digest()
    return [Record(seq, ts, by, event, prev, digest)], [head, state, b'%s,"hash":"%s"}\n' % (rest, digest.encode())]


def _data(event: Event) -> bytes:
    return bytes(event.data) if isinstance(event, Unknown) else _encode(event)


def _head_of(event: Event, ts: str, by: str) -> bytes:
    return _head(event.name if isinstance(event, Unknown) else event.type, event.opt, ts, by)


@lru_cache(maxsize=8)
def _head(name: str, opt: bool, ts: str, by: str) -> bytes:
    """A line from behind its number up to its data: the same for what is recorded together."""
    author = f'"{by}"' if by.isidentifier() and by.isascii() else _encode(by).decode()
    return f',"ts":"{ts}","type":"{name}","by":{author},{_OPTIONAL if opt else ""}"data":'.encode()


def seal(line: bytes) -> str | None:
    """The hash of a line that verifies; None for any other bytes."""
    body = memoryview(line)[:-SEAL_LENGTH] if len(line) > LONG else line[:-SEAL_LENGTH]
    digest = _sha256(body).hexdigest()[:HASH_LENGTH]
    return digest if line[-SEAL_LENGTH:] == b'%s%s"}' % (_SEAL, digest.encode()) else None


def claim(end: bytes) -> str | None:
    """The hash that the last bytes of a line claim, if they are framed as they must be."""
    if len(end) != SEAL_LENGTH or not end.startswith(_SEAL) or not end.endswith(b'"}'):
        return None
    return end[len(_SEAL) : -2].decode("ascii", "replace")


def decode(line: bytes | Envelope, about: Container[str] | None = None) -> Record:
    """A verified line as a record. Whatever this version does not know is a version error, never damage.

    `about`: of an event of another type than these, nobody wants to know what it says.
    """
    envelope = opened(line) if isinstance(line, bytes) else line
    kind = _known.get(envelope.type)
    event: Any
    if kind is None and not envelope.opt:
        raise _too_new(envelope.seq, f"event type {envelope.type}")
    if kind is None or (about is not None and envelope.type not in about):
        event = Unknown(name=envelope.type, data=envelope.data)
    else:
        decoder = _decoders.get(envelope.type) or _decoder(envelope.type, kind)
        try:
            event = decoder(envelope.data)
        except (msgspec.DecodeError, RecursionError) as error:
            raise _too_new(envelope.seq, f"shape of {envelope.type}: {error}") from error
        if envelope.type in _formats and event.format > _formats[envelope.type]:
            raise _too_new(envelope.seq, f"format {event.format}")
    return Record(envelope.seq, envelope.ts, envelope.by, event, envelope.prev, envelope.hash)


def _decoder(name: str, kind: type[Event]) -> Callable[[msgspec.Raw], Any]:
    """What reads an event of this kind."""
    return _decoders.setdefault(name, _snapshot if kind is Snapshot else msgspec.json.Decoder(kind).decode)


def _snapshot(raw: msgspec.Raw) -> Snapshot:
    """A snapshot, by where its parts stand if they stand where they do: only who needs its state reads that."""
    data = memoryview(raw)
    end = re.fullmatch(_DIGEST, data[-_DIGEST_LENGTH:])
    if end is None or data[: len(_STATE)] != _STATE:
        return msgspec.json.decode(raw, type=Snapshot)
    return Snapshot(state=msgspec.Raw(data[len(_STATE) : -_DIGEST_LENGTH]), digest=end[1].decode())


def peek(line: bytes) -> tuple[int, str]:
    """Number and type of a verified line, without looking at its data."""
    match = _START.match(line)
    if match is not None:
        return int(match[1]), match[3].decode()
    envelope = opened(line)
    return envelope.seq, envelope.type


def names(words: Collection[str]) -> Callable[[bytes], bool]:
    """Whether a line has one of these words in it, as a text of its own: ids, or types. Nothing of it is verified."""
    texts = [_encode(word) for word in words]
    return (lambda line: texts[0] in line) if len(texts) == 1 else (lambda line: any(text in line for text in texts))


def number(line: bytes) -> int | None:
    """The number that a line claims, if it begins as lines do; nothing of it is verified."""
    match = _START.match(line)
    return int(match[1]) if match is not None else None


def opened(line: bytes) -> Envelope:
    """A verified line before its data is looked at; a version error if it has another shape."""
    try:
        envelope = (_cut(line) if len(line) > LONG else None) or _envelope(line)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise _too_new(0, f"shape of a line: {error}") from error
    if envelope.v != LINE_VERSION:
        raise _too_new(envelope.seq, f"line version {envelope.v}")
    return envelope


def _cut(line: bytes) -> Envelope | None:
    """The same by where the parts of a line stand; None if they stand elsewhere."""
    match, end = _START.match(line), len(line) - SEAL_LENGTH
    data_end = end - _LINK_LENGTH
    sealed = claim(line[end:])
    if match is None or sealed is None or line[data_end : data_end + len(_LINK)] != _LINK:
        return None
    seq, ts, name, by, opt = match.groups()
    if b"\\" in by:  # a name that JSON has to quote
        return None
    return Envelope(
        v=LINE_VERSION,
        seq=int(seq),
        ts=ts.decode(),
        type=name.decode(),
        by=by.decode(),
        data=msgspec.Raw(memoryview(line)[match.end() : data_end]),
        prev=line[data_end + len(_LINK) : end - 1].decode(),
        hash=sealed,
        opt=opt is not None,
    )


def _too_new(seq: int, what: str) -> FormatTooNew:
    return FormatTooNew(
        "The ledger was written by a newer Headway",
        facts={"event": seq or "?", "unknown": what},
        hint="use the version of Headway that wrote it, or a newer one; nothing was touched",
    )


def encode_state(state: State) -> bytes:
    """The state as snapshots embed it."""
    return _encode(state)


@cache
def _state() -> msgspec.json.Decoder[State]:
    return msgspec.json.Decoder(State)


def size_of_state(state: State) -> int:
    """About how many bytes that takes. Of large tables only some rows are encoded, so that asking costs little."""
    total, small = 0, dict[str, Any]()
    for name in state.__struct_fields__:
        table = getattr(state, name)
        if isinstance(table, dict) and len(table) > 2 * SAMPLE:
            rows = dict(islice(table.items(), 0, None, len(table) // SAMPLE))
            total += len(_encode(rows)) * len(table) // len(rows)
            small[name] = {}
    return total + len(_encode(msgspec.structs.replace(state, **small)))


def decode_state(data: bytes | msgspec.Raw) -> State:
    """Read back what `encode_state` wrote."""
    try:
        return _state().decode(data)
    except (msgspec.DecodeError, RecursionError) as error:
        raise _too_new(0, f"shape of a state: {error}") from error


def digest(data: bytes | memoryview) -> str:
    """32 hex digits of the sha256: the digest of states, projections and quarantined bytes."""
    return hashlib.sha256(data).hexdigest()[:HASH_LENGTH]


class Running:
    """The same digest, of bytes that come piece by piece."""

    def __init__(self) -> None:
        self._hash = hashlib.sha256()

    def add(self, piece: bytes | memoryview) -> None:
        self._hash.update(piece)

    def digest(self) -> str:
        return self._hash.hexdigest()[:HASH_LENGTH]
