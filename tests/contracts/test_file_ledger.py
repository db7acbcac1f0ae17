"""The file ledger keeps the contract, and what is special about files."""

from __future__ import annotations

import gzip
import json
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from headway import disk
from headway.core.state import Position
from headway.errors import FormatTooNew, LedgerDamaged, StorageFailed
from headway.ledger import file, scan, segments
from headway.ledger import head as heads
from headway.ledger.base import Loaded
from headway.ledger.file import FileLedger, ends_with
from headway.ledger.lock import FileLock
from headway.ledger.repair import examine
from tests.contracts.ledger import TS, LedgerContract, created, goal, snapshot, write


class TestFileLedger(LedgerContract):
    """The contract, in files."""

    @pytest.fixture(autouse=True)
    def folder(self, tmp_path: Path) -> None:
        """The plan's folder; nobody has made it yet."""
        self._folder = tmp_path / "plans" / "plan"

    def open(self) -> FileLedger:
        return FileLedger(str(self._folder))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A plan's folder with a ledger of four events, one of them a snapshot."""
    ledger = FileLedger(str(tmp_path / "plan"))
    records = write(ledger, created(), goal("two"))
    write(ledger, snapshot(records), goal("four"), known=records[-1].position)
    ledger.close()
    return tmp_path / "plan"


def test_a_line_is_as_documented(folder: Path) -> None:
    """The keys, their order, and a hash over the exact bytes before it."""
    import hashlib

    line = (folder / "ledger.jsonl").read_bytes().splitlines()[1]
    body, _, rest = line.partition(b',"hash":"')
    assert rest == hashlib.sha256(body).hexdigest()[:32].encode() + b'"}'
    assert list(json.loads(line)) == ["v", "seq", "ts", "type", "by", "data", "prev", "hash"]
    first = json.loads((folder / "ledger.jsonl").read_bytes().splitlines()[0])
    assert [first["data"][key] for key in ("format", "plan_id", "project_id")] == [1, "plan", "project"]


def test_what_is_written_piece_by_piece_has_the_same_bytes(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Large snapshots are not joined with what is around them; a ledger that begins with one is no other either."""
    monkeypatch.setattr(disk, "LARGE", 0)
    for known in (True, False):
        ledger = FileLedger(str(tmp_path / f"pieces{known}"))
        if known:
            records = write(ledger, created(), goal("two"))
            write(ledger, snapshot(records), goal("four"), known=records[-1].position)
        else:
            ledger.begin(None)
            records = ledger.stage([created(), goal("two")], by="test", ts=TS)
            ledger.stage([snapshot(records), goal("four")], by="test", ts=TS)
            ledger.write()
            ledger.end()
        ledger.close()
        assert Path(ledger.path).read_bytes() == (folder / "ledger.jsonl").read_bytes()
        loaded = FileLedger(ledger.folder).load()
        assert loaded is not None
        assert [record.seq for record in loaded.records] == [3, 4]


def test_reading_writes_nothing(folder: Path) -> None:
    """Loading and history leave every file as it was, and create none; not even a lock."""
    (folder / "append.lock").unlink()
    before = {path.name: (path.read_bytes(), path.stat().st_mtime_ns) for path in folder.iterdir()}
    ledger = FileLedger(str(folder))
    ledger.load()
    list(ledger.history())
    examine(ledger)
    assert {path.name: (path.read_bytes(), path.stat().st_mtime_ns) for path in folder.iterdir()} == before


def test_whether_anything_was_appended_is_told_by_the_last_line(folder: Path, tmp_path: Path) -> None:
    """Whoever knows an event need not read a ledger that still ends with it; half a line is something new."""
    ledger = FileLedger(str(folder))
    *_, before, last = [record.hash for record in ledger.history()]
    assert ends_with(ledger.folder, last)
    assert not ends_with(ledger.folder, before)
    with (folder / "ledger.jsonl").open("ab") as file:
        file.write(b'{"v":1,')
    assert not ends_with(ledger.folder, last)
    assert not ends_with(str(tmp_path / "nowhere"), last)


def test_reading_needs_no_lock(folder: Path) -> None:
    """While somebody writes, others read what is complete."""
    writer = FileLedger(str(folder))
    writer.begin(None)
    writer.stage([goal("five")], by="test", ts=TS)
    writer.write()
    loaded = FileLedger(str(folder)).load()
    assert loaded is not None
    assert loaded.records[-1].seq == 5
    writer.end()
    writer.close()


def _read(folder: Path, *, thorough: bool = False) -> Loaded:
    loaded = FileLedger(str(folder)).load(thorough=thorough)
    assert loaded is not None
    return loaded._replace(records=list(loaded.records))


def is_open(fd: int, path: Path) -> bool:
    """Whether a descriptor of this process stands for a file."""
    try:
        return os.path.samestat(os.fstat(fd), path.stat())
    except OSError:
        return False


def test_a_file_that_somebody_closed_under_the_ledger_is_opened_again(folder: Path) -> None:
    """As functions that close all files do; whatever gets its number next is not written to."""
    ledger = FileLedger(str(folder))
    records = write(ledger, goal("five"))
    [held] = [fd for fd in map(int, os.listdir("/dev/fd")) if is_open(fd, folder / "ledger.jsonl")]
    other = folder.parent / "other"
    other.write_text("mine")
    number = os.open(other, os.O_RDWR)
    os.dup2(number, held)
    os.close(number)
    more = write(ledger, goal("six"), known=records[-1].position)
    ledger.close()
    assert other.read_text() == "mine"
    os.close(held)
    assert [record.seq for record in FileLedger(str(folder)).history()][-1] == more[-1].seq == records[-1].seq + 1


@pytest.mark.parametrize("what", ["ledger.jsonl", "append.lock"])
def test_what_somebody_closed_within_a_batch_is_not_written_to(folder: Path, what: str) -> None:
    """The event is refused, so nobody takes it for recorded; the next batch goes on from what is on disk."""
    ledger = FileLedger(str(folder))
    known = write(ledger, goal("five"))[-1].position
    ledger.begin(known)
    [held] = [fd for fd in map(int, os.listdir("/dev/fd")) if is_open(fd, folder / what)]
    other = folder.parent / "other"
    other.write_text("mine")
    number = os.open(other, os.O_RDWR)
    os.dup2(number, held)
    os.close(number)
    ledger.stage([goal("six")], by="cli", ts=TS)
    for _ in range(2):  # whoever tries again within the batch is refused again
        with pytest.raises(StorageFailed, match="closed files"):
            ledger.write()
        ledger.stage([goal("six")], by="cli", ts=TS)
    ledger.end()
    assert (other.read_text(), os.fstat(held).st_size) == ("mine", 4)
    more = write(ledger, goal("seven"), known=known)
    ledger.close()
    os.close(held)
    assert other.read_text() == "mine"
    assert [record.seq for record in FileLedger(str(folder)).history()][-1] == more[-1].seq == known.seq + 1


def test_what_somebody_closed_before_it_was_synced_is_not_confirmed(folder: Path) -> None:
    """And never tried again by this object."""
    ledger = FileLedger(str(folder))
    known = write(ledger, goal("five"))[-1].position
    ledger.begin(known)
    ledger.stage([goal("six")], by="cli", ts=TS)
    ledger.write()
    [held] = [fd for fd in map(int, os.listdir("/dev/fd")) if is_open(fd, folder / "ledger.jsonl")]
    os.close(held)
    ledger.stage([goal("seven")], by="cli", ts=TS)
    with pytest.raises(StorageFailed, match="closed files"):
        ledger.write()
    for _ in range(2):
        with pytest.raises(StorageFailed, match="closed files"):
            ledger.sync()
    ledger.end()
    with pytest.raises(StorageFailed, match="takes no more events"):
        ledger.begin(known)
    ledger.close()
    assert [record.seq for record in FileLedger(str(folder)).history()][-1] == known.seq + 1


def test_a_lock_that_somebody_closed_is_neither_signed_nor_closed_again(tmp_path: Path) -> None:
    """Its number may be another file's by then."""
    lock = FileLock(str(tmp_path / "lock"))
    assert lock.acquire(wait=0)
    held = next(fd for fd in map(int, os.listdir("/dev/fd")) if is_open(fd, tmp_path / "lock"))
    other = tmp_path / "other"
    other.write_text("mine")
    number = os.open(other, os.O_RDWR)
    os.dup2(number, held)
    os.close(number)
    assert (lock.held, lock.stands) == (True, False)
    lock.sign({"pid": 1})
    lock.release()
    assert (lock.held, os.fstat(held).st_size) == (False, 4)
    os.close(held)
    assert lock.acquire(wait=0)
    assert lock.stands
    lock.release()


def test_head_is_not_needed(folder: Path) -> None:
    """Without `head`, or with a damaged one, the state is the same."""
    expected = _read(folder)
    head = folder / "head"
    for content in (b"", b"{}", b"\0" * 50, head.read_bytes().replace(b'"head"', b'"tail"')):
        head.write_bytes(content)
        assert _read(folder) == expected
    head.unlink()
    assert _read(folder) == expected


def test_a_flipped_byte_in_head_is_no_loss_of_events(folder: Path) -> None:
    """A derived file that is damaged is found by doctor, and says nothing about the ledger."""
    expected = _read(folder)
    head = folder / "head"
    good = head.read_bytes()
    for index in range(len(good) - 1):
        head.write_bytes(good[:index] + bytes([good[index] ^ 1]) + good[index + 1 :])
        assert _read(folder) == expected
        assert [f.code for f in examine(FileLedger(str(folder)))] == ["ledger.head"] or index > 1


def test_head_names_the_newest_snapshot_whoever_took_it(folder: Path) -> None:
    """A writer that takes none leaves a `head` from which loading is as short as before."""
    later = FileLedger(str(folder))
    write(later, goal("five"))
    later.close()
    head = heads.read(str(folder))
    assert head is not None
    assert head.snapshot is not None
    assert head.snapshot.position.seq == 3
    assert head.end.position.seq == 5


def test_loading_reads_only_from_the_snapshot_that_head_names(folder: Path) -> None:
    """Damage before the newest snapshot is not looked at by an ordinary load; a thorough one finds it."""
    path = folder / "ledger.jsonl"
    data = path.read_bytes()
    path.write_bytes(data.replace(b'"goal":"two"', b'"goal":"TWO"', 1))
    ledger = FileLedger(str(folder))
    loaded = ledger.load()
    assert loaded is not None
    assert [r.seq for r in loaded.records] == [3, 4]
    with pytest.raises(LedgerDamaged):
        ledger.load(thorough=True)


def test_the_first_writer_after_an_unclean_end_verifies_everything(folder: Path) -> None:
    """Where `head` does not reach the end of the file, damage before the snapshot is found by whoever writes."""
    path = folder / "ledger.jsonl"
    writer = FileLedger(str(folder))
    writer.begin(None)
    writer.stage([goal("five")], by="test", ts=TS)
    writer.write()
    writer.sync()
    writer._lock.release()  # as a killed process would
    data = path.read_bytes()
    path.write_bytes(data.replace(b'"goal":"two"', b'"goal":"TWO"', 1))
    with pytest.raises(LedgerDamaged):
        FileLedger(str(folder)).begin(None)


@pytest.mark.parametrize("name", ["head", "plan.json", "an export"])
def test_a_ledger_that_is_shorter_than_somebody_was_told_has_lost_events(folder: Path, name: str) -> None:
    """Whoever names an event was told about it: its absence is damage, not debris."""
    path = folder / "ledger.jsonl"
    data = path.read_bytes()
    last = FileLedger(str(folder)).load()
    assert last is not None
    assert last.end is not None
    end = last.end
    if name != "head":
        (folder / "head").unlink()
    path.write_bytes(data[: data.rindex(b"\n", 0, -1) + 1])
    ledger = FileLedger(str(folder), witnesses=lambda: [(name, end)] if name != "head" else [])
    for touch in (ledger.load, lambda: ledger.begin(None)):
        with pytest.raises(LedgerDamaged) as raised:
            touch()
        assert raised.value.error_code == "ledger.lost"
        assert f"{name} names event" in str(raised.value)
    assert path.read_bytes() == data[: data.rindex(b"\n", 0, -1) + 1]


def test_a_witness_of_another_history_is_a_loss(folder: Path) -> None:
    """The number alone is not enough: the hash must be the one that was acknowledged."""
    ledger = FileLedger(str(folder), witnesses=lambda: [("plan.json", Position(4, "0" * 32))])
    with pytest.raises(LedgerDamaged):
        ledger.load()


@pytest.mark.parametrize(
    "change",
    [
        (b'"format":1', b'"format":2'),
        (b'{"v":1,"seq":2', b'{"v":2,"seq":2'),
        (b'"type":"goal_changed"', b'"type":"goal_sold"'),
        (b'"data":{"goal":"four"}', b'"data":{"goal":"four","tax":7}'),
    ],
    ids=["format", "line version", "type", "shape"],
)
def test_a_newer_format_is_refused_untouched(folder: Path, change: tuple[bytes, bytes]) -> None:
    """What verifies and is not understood was written by a newer Headway: no damage, no repair, no byte changed."""
    from tests.behaviour.damage import resealed

    path = folder / "ledger.jsonl"
    (folder / "head").unlink()
    path.write_bytes(resealed(path.read_bytes().replace(*change)) + b"a torn")
    before = path.read_bytes()
    ledger = FileLedger(str(folder))
    touches: list[Callable[[], object]] = [
        lambda: _read(folder),
        lambda: ledger.begin(None),
        lambda: _read(folder, thorough=True),
    ]
    for touch in touches:
        with pytest.raises(FormatTooNew):
            touch()
    assert [finding.code for finding in examine(ledger)] == ["format.too_new"]
    assert path.read_bytes() == before


def test_an_event_marked_optional_is_skipped_by_an_older_reader(folder: Path) -> None:
    """`opt` says that not knowing the event does no harm."""
    from tests.behaviour.damage import resealed

    path = folder / "ledger.jsonl"
    (folder / "head").unlink()
    line = b'"type":"cheered","by":"test","opt":true,"data":{"loudly":true}'
    path.write_bytes(
        resealed(path.read_bytes().replace(b'"type":"goal_changed","by":"test","data":{"goal":"two"}', line))
    )
    records = list(FileLedger(str(folder)).history())
    assert [r.event.type for r in records] == ["plan_created", "unknown", "snapshot", "goal_changed"]


def test_a_sealed_segment_holds_the_exact_bytes(folder: Path) -> None:
    """What was in the file is in the segment, compressed; the new first line says which one, and its last event."""
    before = (folder / "ledger.jsonl").read_bytes()
    ledger = FileLedger(str(folder))
    news = ledger.begin(None)
    ledger.sync()
    records = list(ledger.history())
    ledger.rotate(snapshot(records), by="test", ts=TS, plan_id="plan", project_id="project")
    ledger.end()
    ledger.close()
    assert gzip.decompress((folder / "ledger.1.jsonl.gz").read_bytes()) == before
    first = json.loads((folder / "ledger.jsonl").read_bytes().splitlines()[0])
    assert first["data"]["segment"] == "ledger.1.jsonl.gz"
    assert news.end is not None
    assert first["data"]["sealed"] == list(news.end)
    assert examine(FileLedger(str(folder))) == []


def test_an_event_of_a_sealed_segment_is_looked_up_without_unpacking_it_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Wherever it is asked to begin, history is the same; whoever asks again begins close to what is asked for."""
    monkeypatch.setattr(segments, "PIECE", 512)
    ledger = FileLedger(str(tmp_path / "plan"))
    records = write(ledger, created(), *(goal(f"{n:x}" * (1 + n % 50)) for n in range(300)))
    ledger.begin(records[-1].position)
    ledger.rotate(snapshot(records), by="test", ts=TS, plan_id="plan", project_id="project")
    ledger.sync()
    ledger.end()
    whole = list(FileLedger(ledger.folder).history())
    looked = FileLedger(ledger.folder)
    assert all(list(looked.history(n)) == whole[n - 1 :] for n in range(1, len(whole) + 1, 7))
    passed: list[int] = []

    def before(data: bytes, number: int) -> bool:
        passed.append(number)
        return scan.before(data, number)

    monkeypatch.setattr(file, "before", before)
    assert [r for n in range(1, len(whole) + 1) for r in looked.history(n, n)] == whole
    assert max(passed.count(n) for n in range(2, 302)) < 50, "of 301 lines"
    ledger.close()


def test_where_the_state_as_of_an_event_can_be_told_from(folder: Path) -> None:
    """From the snapshot before it; before that, and in a sealed segment, from the first event."""
    ledger = FileLedger(str(folder))
    assert [ledger.base(seq) for seq in (1, 2, 3, 4)] == [1, 1, 3, 3]
    known = ledger.begin(None).end
    ledger.sync()
    ledger.rotate(snapshot(list(ledger.history())), by="test", ts=TS, plan_id="plan", project_id="project")
    ledger.end()
    assert known is not None
    ledger.close()
    assert [FileLedger(str(folder)).base(seq) for seq in range(1, 8)] == [1, 1, 1, 1, 5, 6, 6]
