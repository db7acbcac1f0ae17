"""Events as lines and back. Knows the exact bytes of the format; never files.

A line is `{"v":1,"seq":…,"ts":…,"type":…,"by":…,"data":{…},"prev":"…","hash":"…"}` and a line feed. `hash` is the
last key: 32 hex digits of the sha256 over the line's bytes before `,"hash"`, of which `prev` is a part.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable
from typing import Any, get_args

import msgspec

from headway.core.events import EVENTS, FORMAT, Event, First, Genesis, Record, Unknown
from headway.core.state import State
from headway.errors import FormatTooNew

LINE_VERSION = 1
HASH_LENGTH = 32
START = "0" * HASH_LENGTH
"""`prev` of the very first event."""

_SEAL = b',"hash":"'
SEAL_LENGTH = len(_SEAL) + HASH_LENGTH + len(b'"}')
"""The last bytes of a line: the hash and what frames it."""

_HASH_AT = len(_SEAL)
_LINK = b',"prev":"'
_LINK_LENGTH = len(_LINK) + HASH_LENGTH + len(b'"')


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
_state = msgspec.json.Decoder(State).decode

_known: dict[str, type[Event]] = dict(EVENTS)
_formats: dict[str, int] = {kind.type: FORMAT for kind in get_args(Genesis)}
_decoders: dict[str, Callable[[msgspec.Raw], Any]] = {}
"""Made when the first event of a kind is read: few ledgers hold all kinds."""


def know(events: Iterable[type[Event]]) -> None:
    """Learn events of ledgers that are no plan's: whoever keeps such a ledger says so before it is read."""
    for event in events:
        _known.setdefault(event.type, event)
        if issubclass(event, First):
            _formats[event.type] = event.known


def encode(event: Event, seq: int, ts: str, by: str, prev: str) -> tuple[bytes, str]:
    """The event's line, without the line feed, and its hash."""
    if event.opt:
        name = event.name if isinstance(event, Unknown) else event.type
        data, mark = bytes(event.data) if isinstance(event, Unknown) else _encode(event), '"opt":true,'
    else:
        name, data, mark = event.type, _encode(event), ""
    author = f'"{by}"' if by.isidentifier() and by.isascii() else _encode(by).decode()
    head = f'{{"v":{LINE_VERSION},"seq":{seq},"ts":"{ts}","type":"{name}","by":{author},{mark}"data":'
    body = b'%s%s,"prev":"%s"' % (head.encode(), data, prev.encode())
    digest = _sha256(body).hexdigest()[:HASH_LENGTH]
    return b'%s,"hash":"%s"}' % (body, digest.encode()), digest


def seal(line: bytes) -> str | None:
    """The hash of a line that verifies; None for any other bytes."""
    claimed = claim(line[-SEAL_LENGTH:])
    if claimed is None or _sha256(memoryview(line)[:-SEAL_LENGTH]).hexdigest()[:HASH_LENGTH] != claimed:
        return None
    return claimed


def claim(end: bytes) -> str | None:
    """The hash that the last bytes of a line claim, if they are framed as they must be."""
    if len(end) != SEAL_LENGTH or end[:_HASH_AT] != _SEAL or end[-2:] != b'"}':
        return None
    return end[_HASH_AT:-2].decode("ascii", "replace")


def link(line: bytes) -> str:
    """The hash that a verified line names as the one before it."""
    end = len(line) - SEAL_LENGTH
    if line[end - _LINK_LENGTH : end - _LINK_LENGTH + len(_LINK)] == _LINK:
        return line[end - 1 - HASH_LENGTH : end - 1].decode("ascii", "replace")
    return _open(line).prev


def decode(line: bytes) -> Record:
    """A verified line as a record. Whatever this version does not know is a version error, never damage."""
    envelope = _open(line)
    name = envelope.type
    try:
        event = (_decoders.get(name) or _decoder(envelope))(envelope.data)
    except (msgspec.DecodeError, RecursionError) as error:
        raise _too_new(envelope.seq, f"shape of {name}: {error}") from error
    if name in _formats and event.format > _formats[name]:
        raise _too_new(envelope.seq, f"format {event.format}")
    return Record(envelope.seq, envelope.ts, envelope.by, event, envelope.prev, envelope.hash)


def _decoder(envelope: Envelope) -> Callable[[msgspec.Raw], Any]:
    """What reads the data of a line; of an unknown kind that may be passed over, it is kept as it is."""
    name = envelope.type
    if name in _known:
        _decoders[name] = msgspec.json.Decoder(_known[name]).decode
        return _decoders[name]
    if not envelope.opt:
        raise _too_new(envelope.seq, f"event type {name}")
    return lambda data: Unknown(name=name, data=data)


def peek(line: bytes) -> tuple[int, str]:
    """Number and type of a verified line, without looking at its data."""
    envelope = _open(line)
    return envelope.seq, envelope.type


def _open(line: bytes) -> Envelope:
    try:
        envelope = _envelope(line)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise _too_new(0, f"shape of a line: {error}") from error
    if envelope.v != LINE_VERSION:
        raise _too_new(envelope.seq, f"line version {envelope.v}")
    return envelope


def _too_new(seq: int, what: str) -> FormatTooNew:
    return FormatTooNew(
        "The ledger was written by a newer Headway",
        facts={"event": seq or "?", "unknown": what},
        hint="use the version of Headway that wrote it, or a newer one; nothing was touched",
    )


def encode_state(state: State) -> bytes:
    """The state as snapshots embed it."""
    return _encode(state)


def decode_state(data: bytes | msgspec.Raw) -> State:
    """Read back what `encode_state` wrote."""
    try:
        return _state(data)
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
