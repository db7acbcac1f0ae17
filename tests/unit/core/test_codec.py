"""Events as lines and back: the exact bytes, what verifies, and what only a newer Headway understands."""

from __future__ import annotations

import hashlib
import json

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from headway.core import codec
from headway.core.events import EVENTS, GoalChanged, PlanCreated, Record, Snapshot, Unknown
from headway.core.plan import ArtifactSpec, PlanSpec
from headway.core.state import Position, State
from headway.errors import FormatTooNew
from tests.unit.core.lives import Intent, lived, lives

LINE, HASH = codec.encode(GoalChanged(goal="g"), seq=7, ts="2026-01-01T00:00:00.000000Z", by="cli", prev="a" * 32)


def sealed(body: bytes) -> bytes:
    """A line over these bytes."""
    return body + b',"hash":"' + hashlib.sha256(body).hexdigest()[:32].encode() + b'"}'


def test_a_line_has_the_documented_bytes() -> None:
    """Key order, no blanks, the link and the hash at the end."""
    body = (
        b'{"v":1,"seq":7,"ts":"2026-01-01T00:00:00.000000Z","type":"goal_changed","by":"cli","data":{"goal":"g"},'
        b'"prev":"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"'
    )
    assert sealed(body) == LINE
    assert codec.seal(LINE) == HASH
    assert codec.opened(LINE).prev == "a" * 32
    assert json.loads(LINE)["hash"] == HASH


def test_an_event_that_nobody_asks_about_takes_no_decoder(monkeypatch: pytest.MonkeyPatch) -> None:
    """To make one takes longer than most commands do; what is said is kept as it stands."""
    monkeypatch.setattr(codec, "_decoders", {})
    assert codec.decode(LINE, about=("plan_created",)).event == Unknown(
        name="goal_changed", data=msgspec.Raw(b'{"goal":"g"}')
    )
    assert codec._decoders == {}
    assert codec.decode(LINE, about=("goal_changed",)).event == GoalChanged(goal="g")


@given(lives)
def test_every_event_and_every_state_comes_back_as_it_was(intents: list[Intent]) -> None:
    """Encoding and decoding lose nothing, whatever the commands put into them."""
    life = lived(intents)
    for record in life.records:
        line, digest = codec.encode(record.event, seq=record.seq, ts=record.ts, by=record.by, prev=record.prev)
        assert b"\n" not in line
        assert digest == record.hash
        assert codec.decode(line) == record
        assert codec.peek(line) == (record.seq, record.event.type)
    if life.state is not None:
        assert codec.decode_state(codec.encode_state(life.state)) == life.state


@given(lives)
def test_events_that_are_chained_together_have_the_lines_of_one_after_the_other(intents: list[Intent]) -> None:
    """Whether they are of one kind or of many: the same bytes, and each record follows the one before it."""
    events = [record.event for record in lived(intents).records]
    of_one_kind = [event for event in events if type(event) is type(events[-1])]
    unknown = Unknown(name="cheered", data=msgspec.Raw(b"{}"))
    for some in (events, of_one_kind, [unknown, Unknown(name="booed", data=msgspec.Raw(b"[]"))]):
        records, text = codec.chain(some, Position(6, "a" * 32), "t", "somebody else")
        prev, lines = "a" * 32, b""
        for seq, event in enumerate(some, 7):
            line, digest = codec.encode(event, seq, "t", "somebody else", prev)
            assert records[seq - 7] == Record(seq, "t", "somebody else", event, prev, digest)
            lines, prev = lines + line + b"\n", digest
        assert (text, len(records)) == (lines, len(some))


@given(st.text(), st.text(), st.text())
def test_any_text_survives(goal: str, by: str, plan: str) -> None:
    """Line feeds, quotes, NULs and hash-like text inside an event do not disturb the framing."""
    event = PlanCreated(format=1, plan_id=plan, project_id='"}', plan=PlanSpec(goal=goal))
    line, digest = codec.encode(event, seq=1, ts="t", by=by, prev=codec.START)
    assert b"\n" not in line
    assert codec.seal(line) == digest
    record = codec.decode(line)
    assert (record.event, record.by) == (event, by)


@given(st.integers(0, len(LINE) - 1), st.integers(1, 255))
def test_no_changed_byte_verifies(index: int, mask: int) -> None:
    """The hash covers every byte before it, and its own framing is strict."""
    assert codec.seal(LINE[:index] + bytes([LINE[index] ^ mask]) + LINE[index + 1 :]) is None


@given(st.binary(max_size=200))
def test_other_bytes_never_verify(data: bytes) -> None:
    """Arbitrary bytes are not a line, and looking at them never fails."""
    assert codec.seal(data) is None
    assert codec.seal(data + LINE) is None or not data
    assert codec.seal(LINE + data) is None or not data


@pytest.mark.parametrize(
    "change",
    [
        (b'"v":1', b'"v":2'),
        (b'"type":"goal_changed"', b'"type":"goal_sold"'),
        (b'"goal":"g"', b'"goal":7'),
        (b'"goal":"g"', b'"goal":"g","more":1'),
        (b'"by":"cli"', b'"by":"cli","mood":"fine"'),
        (b'"seq":7', b'"seq":"seven"'),
        (b'"data":{"goal":"g"}', b'"data":' + b"[" * 5000 + b"]" * 5000),
    ],
)
def test_what_verifies_and_is_not_understood_is_a_version_error(change: tuple[bytes, bytes]) -> None:
    """Unknown version, type or shape: written by a newer Headway, and said so."""
    body = LINE[: -codec.SEAL_LENGTH].replace(*change)
    line = sealed(body)
    assert codec.seal(line) is not None
    with pytest.raises(FormatTooNew):
        codec.decode(line)


SNAPSHOT = b'{"state":{"plan_id":"p","project_id":"q"},"digest":"%s"}' % (b"d" * 32)


def snapshot(data: bytes) -> bytes:
    """The line of a snapshot with this data."""
    body = LINE[: -codec.SEAL_LENGTH].replace(b"goal_changed", b"snapshot").replace(b'{"goal":"g"}', data)
    return sealed(body)


@pytest.mark.parametrize(
    "data",
    [
        SNAPSHOT,
        SNAPSHOT.replace(b":", b": "),
        b'{"digest":"%s","state":{"plan_id":"p","project_id":"q"}}' % (b"d" * 32),
        SNAPSHOT.replace(b'{"plan_id"', b'{"goal":",\\"digest\\":\\"","plan_id"'),
    ],
    ids=["as written", "with blanks", "in another order", "with a text like it"],
)
def test_a_snapshot_is_the_same_however_it_was_written(data: bytes) -> None:
    """Where its parts stand as they are written, they are not looked for."""
    event = codec.decode(snapshot(data)).event
    assert isinstance(event, Snapshot)
    assert event.digest == "d" * 32
    assert codec.decode_state(event.state).plan_id == "p"
    assert json.loads(bytes(event.state)) == json.loads(data)["state"]


@pytest.mark.parametrize(
    "change",
    [(b',"digest"', b',"more":1,"digest"'), (b'"}', b'","more":1}'), (b'{"state"', b'{"more":1,"state"')],
    ids=["between", "behind", "before"],
)
def test_a_snapshot_that_says_more_is_a_version_error(change: tuple[bytes, bytes]) -> None:
    """At the latest when its state is read."""
    with pytest.raises(FormatTooNew):
        codec.decode_state(codec.decode(snapshot(SNAPSHOT.replace(*change))).event.state)  # type: ignore[attr-defined]  # it is one


@given(st.text(), st.text())
def test_a_snapshot_in_pieces_is_the_line_that_any_event_would_be(by: str, digest: str) -> None:
    """Its state is not copied on the way; bytes and hash are the same."""
    event = Snapshot(state=msgspec.Raw(b'{"plan_id":"p","project_id":"q"}'), digest=digest)
    records, pieces = codec.chain_snapshot(event, Position(6, codec.START), "2026-01-01T00:00:00Z", by)
    assert (records, b"".join(pieces)) == codec.chain([event], Position(6, codec.START), "2026-01-01T00:00:00Z", by)
    assert pieces[1] == event.state


def test_a_first_line_of_a_newer_format_is_a_version_error() -> None:
    """The format's number is in the first line's data."""
    event = PlanCreated(format=2, plan_id="p", project_id="q", plan=PlanSpec(goal="g"))
    line, _ = codec.encode(event, seq=1, ts="t", by="b", prev=codec.START)
    with pytest.raises(FormatTooNew):
        codec.decode(line)


def test_an_optional_event_of_a_newer_version_is_kept_as_it_is() -> None:
    """It can be skipped, and written again with the same bytes."""
    body = LINE[: -codec.SEAL_LENGTH].replace(b'"goal_changed","by":"cli"', b'"cheered","by":"cli","opt":true')
    record = codec.decode(sealed(body))
    assert isinstance(record.event, Unknown)
    assert record.event.name == "cheered"
    again, _ = codec.encode(record.event, seq=7, ts=record.ts, by="cli", prev=record.prev)
    assert again == sealed(body)


def test_a_state_of_a_newer_shape_is_a_version_error() -> None:
    """A snapshot with fields that are not known here is not read in part."""
    encoded = codec.encode_state(State(plan_id="p", project_id="q"))
    with pytest.raises(FormatTooNew):
        codec.decode_state(encoded[:-1] + b',"mood":"fine"}')


def test_the_size_of_a_state_is_told_from_some_of_its_rows() -> None:
    """To the byte where it is small, and about where it is large."""
    for count, about in ((3, 0.0), (5_000, 0.05)):
        specs = {f"a{n}": ArtifactSpec(id=f"a{n}", description="x" * (n % 50)) for n in range(count)}
        state = State(plan_id="p", project_id="x", artifacts=specs)
        size = len(codec.encode_state(state))
        assert abs(codec.size_of_state(state) - size) <= about * size


@pytest.mark.parametrize("by", ["x" * 1_000_000, 'a "name"\\' * 1_000])
def test_however_long_and_odd_a_name_is_the_number_of_a_line_is_told(by: str) -> None:
    """By the beginning of the line, which ends behind the name."""
    line, _ = codec.encode(GoalChanged(goal="it"), 7, "2026-01-01T00:00:00Z", by, codec.START)
    assert (codec.number(line), codec.peek(line)) == (7, (7, "goal_changed"))
    assert codec.decode(line).by == by


def test_every_event_has_a_name_of_its_own() -> None:
    """Types are in the past tense, lower case, and none is used twice."""
    assert all(name == cls.type and name.replace("_", "").isalpha() and name.islower() for name, cls in EVENTS.items())
    assert len(set(EVENTS.values())) == len(EVENTS)
