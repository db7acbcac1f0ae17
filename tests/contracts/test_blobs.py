"""Bytes by their digest: kept once, verified on every read, and found again whatever happens to the index."""

from __future__ import annotations

import hashlib
import os
import time
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headway.disk import Disk, write_file
from headway.errors import BlobDamaged, StorageFailed, TryLater
from headway.files import blobs as blobs_module
from headway.files import packs as packs_module
from headway.files.blobs import LARGE, Blobs
from headway.files.packs import Index, index_of
from headway.testing import FailingDisk


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Where the blobs are; nobody has made it yet."""
    return tmp_path / ".headway" / "blobs"


def digest(data: bytes) -> str:
    """The name of these bytes."""
    return hashlib.sha256(data).hexdigest()


def packs(folder: Path) -> list[Path]:
    """The packs, by name."""
    return sorted(folder.glob("*.pack"))


@given(st.lists(st.binary(max_size=300), max_size=20))
def test_what_was_put_can_be_had(tmp_path_factory: pytest.TempPathFactory, contents: list[bytes]) -> None:
    """By whoever looks: the same object, another one, and one that knows no index. Every name is the sha256."""
    folder = tmp_path_factory.mktemp("blobs")
    blobs = Blobs(str(folder))
    names = [blobs.put(data) for data in contents]
    blobs.sync()
    assert names == [digest(data) for data in contents]
    for reader in (blobs, Blobs(str(folder))):
        assert [reader.get(name) for name in names] == contents
        assert dict(reader.names()) == {digest(data): len(data) for data in contents}
        assert list(reader.verify()) == []
    blobs.close()


@pytest.mark.parametrize("size", [0, 1, LARGE - 1, LARGE, LARGE + 1])
def test_size_decides_only_where_bytes_are_kept(folder: Path, size: int) -> None:
    """Small ones share a pack, large ones are files of their own."""
    blobs = Blobs(str(folder))
    data = os.urandom(size)
    name = blobs.put(data)
    blobs.sync()
    assert Blobs(str(folder)).get(name) == data
    assert (folder / name[:2] / name).exists() == (size >= LARGE)
    assert Blobs(str(folder)).has(name)
    assert not blobs.has(digest(b"something else"))


def test_the_same_bytes_are_kept_once(folder: Path) -> None:
    """Within a process and by the next one."""
    blobs = Blobs(str(folder))
    for _ in range(3):
        blobs.put(b"same")
    blobs.close()
    again = Blobs(str(folder))
    again.put(b"same")
    again.put(b"S" * LARGE)
    again.put(b"S" * LARGE)
    again.close()
    assert sum(path.stat().st_size for path in packs(folder)) == len(digest(b"")) + len(" 4\nsame\n")


def test_two_writers_have_packs_of_their_own(folder: Path) -> None:
    """Neither waits for the other, and each finds what the other put."""
    one, two = Blobs(str(folder)), Blobs(str(folder))
    a, b = one.put(b"one"), two.put(b"two")
    one.sync()
    two.sync()
    assert len(packs(folder)) == 2
    assert (one.get(b), two.get(a)) == (b"two", b"one")


def test_a_pack_describes_itself(folder: Path) -> None:
    """Name, size, bytes: readable without anything else."""
    blobs = Blobs(str(folder))
    name = blobs.put(b"a\nb")
    blobs.close()
    assert packs(folder)[0].read_bytes() == f"{name} 3\na\nb\n".encode()


@pytest.mark.parametrize(
    "index", ["deleted", "empty", "damaged", "of before", "wrong places", "of another pack", "too long"]
)
def test_an_index_can_be_wrong_or_missing(folder: Path, monkeypatch: pytest.MonkeyPatch, index: str) -> None:
    """It costs time and nothing else."""
    monkeypatch.setattr(blobs_module, "INDEX_FROM", 3)
    blobs = Blobs(str(folder))
    names = {blobs.put(b"%d" % n): b"%d" % n for n in range(10, 30)}
    blobs.close()
    path = next(folder.glob("*.index"))
    text = path.read_bytes()
    if index == "deleted":
        path.unlink()
    else:
        places = Index(text, path.stem).all()
        last = max(places, key=lambda name: places[name])
        changed = {
            "empty": b"",
            "damaged": text[:-1] + bytes([text[-1] ^ 1]),
            "of before": b'{"read_to":3,"places":{}}',
            "wrong places": index_of({n: (start + 1, size - 1) for n, (start, size) in places.items()}, path.stem),
            "of another pack": index_of(dict(list(places.items())[:3]) | {last: places[last]}, "another.pack"),
            "too long": index_of(places | {last: (9_000, 2)}, path.stem),
        }
        path.write_bytes(changed[index])
        assert path.read_bytes() != text
    reader = Blobs(str(folder))
    assert {name: reader.get(name) for name in names} == names
    assert list(reader.verify()) == []


NAMES = st.binary(min_size=32, max_size=32).map(bytes.hex)


@given(st.dictionaries(NAMES, st.tuples(st.integers(0, 1 << 40), st.integers(0, 1 << 40))), NAMES, st.data())
def test_an_index_says_what_it_was_made_of_or_nothing(
    places: dict[str, tuple[int, int]], other: str, data: st.DataObject
) -> None:
    """By name or all at once; a name that is not in it is not found, and one flipped byte is noticed."""
    close = dict(list(places.items())[:1])
    places |= {name[:16] + "0" * 48: place for name, place in close.items()}  # as alike as the search can tell
    written = index_of(places, "pack")
    index = Index(written, "pack")
    assert index.all() == dict(index) == places
    assert len(index) == len(places)
    assert (other in index) == (other in places)
    assert "no name" not in index
    at = data.draw(st.integers(0, len(written) - 1))
    with pytest.raises(ValueError, match="index"):
        Index(written[:at] + bytes([written[at] ^ 0x40]) + written[at + 1 :], "pack")


@pytest.mark.parametrize("many", [1, 1_000], ids=["looked up in place", "read in"])
def test_an_index_spares_reading_the_pack(folder: Path, monkeypatch: pytest.MonkeyPatch, many: int) -> None:
    """With it, places are known without looking at a single entry; what came after it is read from the pack."""
    monkeypatch.setattr(blobs_module, "INDEX_FROM", 4)
    monkeypatch.setattr(blobs_module, "MANY_BLOBS", many)
    blobs = Blobs(str(folder))
    names = [blobs.put(b"%d" % n) for n in range(7)]
    blobs.sync()
    read: list[int] = []
    entries = packs_module.entries

    def counted(*arguments: object) -> object:
        for entry in entries(*arguments):  # type: ignore[arg-type]  # as they came
            read.append(1)
            yield entry

    monkeypatch.setattr(blobs_module, "entries", counted)
    assert [Blobs(str(folder)).get(name) for name in names] == [b"%d" % n for n in range(7)]
    assert 0 < len(read) < 7 * 7
    blobs.close()
    read.clear()
    reader = Blobs(str(folder))
    assert [reader.get(name) for name in names] == [b"%d" % n for n in range(7)]
    assert read == []


@pytest.mark.parametrize("many", [1, 100])
def test_of_many_only_those_are_written_that_are_not_here(
    folder: Path, monkeypatch: pytest.MonkeyPatch, many: int
) -> None:
    """Whether they are found in an index or in what was read of it; one that is damaged is written again."""
    monkeypatch.setattr(blobs_module, "INDEX_FROM", 4)
    monkeypatch.setattr(blobs_module, "MANY_BLOBS", many)
    blobs = Blobs(str(folder))
    blobs.put_all([b"<%d>" % n for n in range(40)])
    blobs.close()
    (pack,) = packs(folder)
    pack.write_bytes(pack.read_bytes().replace(b"<7>", b"<8>"))
    blobs = Blobs(str(folder))
    data = [b"<%d>" % n for n in (7, 8, 50, 9, 50)]
    assert blobs.put_all(data, {digest(b"<3>"): b"<3>", digest(b"<60>"): b"<60>"}) == list(map(digest, data))
    blobs.close()
    (other,) = set(packs(folder)) - {pack}
    assert sorted(line for line in other.read_bytes().split(b"\n") if b"<" in line) == [b"<50>", b"<60>", b"<7>"]
    assert [Blobs(str(folder)).get(digest(one)) for one in data] == data


@given(st.sets(st.binary(max_size=2), max_size=60), st.sets(st.binary(max_size=2), max_size=60))
def test_an_index_knows_which_of_many_are_in_its_pack(here: set[bytes], asked: set[bytes]) -> None:
    """As it does of each of them."""
    index = Index(index_of({digest(one): (n, 1) for n, one in enumerate(here)}, "p"), "p")
    assert index.among(set(map(digest, asked))) == {name for name in map(digest, asked) if name in index}


@pytest.mark.parametrize("how", ["freed", "killed"])
def test_a_pack_without_an_index_gets_one(folder: Path, monkeypatch: pytest.MonkeyPatch, how: str) -> None:
    """Space is freed into a pack that has one; that of a writer who was killed gets it from the next one."""
    monkeypatch.setattr(blobs_module, "INDEX_FROM", 4)
    blobs = Blobs(str(folder))
    names = [blobs.put(b"%d" % n) for n in range(20)]
    blobs.close()
    if how == "freed":
        blobs.free(lambda: set(names[1:]), dry_run=False)
    else:
        next(folder.glob("*.index")).unlink()
        writer = Blobs(str(folder))
        writer.put(b"19")
        writer.close()
    monkeypatch.setattr(blobs_module, "entries", lambda *_: pytest.fail("a pack was read"))
    assert [Blobs(str(folder)).get(name) for name in names[1:]] == [b"%d" % n for n in range(1, 20)]


@pytest.mark.parametrize("size", [5, LARGE])
def test_a_damaged_blob_is_never_given_out(folder: Path, size: int) -> None:
    """It is refused and reported; putting the bytes again mends it."""
    data = b"x" * size
    blobs = Blobs(str(folder))
    name = blobs.put(data)
    blobs.close()
    path = packs(folder)[0] if size < LARGE else folder / name[:2] / name
    content = path.read_bytes()
    path.write_bytes(content.replace(b"xxxxx", b"xyxxx", 1))
    with pytest.raises(BlobDamaged):
        Blobs(str(folder)).get(name)
    assert [found for found, _ in Blobs(str(folder)).verify()] == [name]
    mended = Blobs(str(folder))
    assert mended.put(data) == name
    mended.close()
    assert Blobs(str(folder)).get(name) == data
    assert list(Blobs(str(folder)).verify()) == []


@pytest.mark.parametrize("size", [5, LARGE])
@pytest.mark.parametrize("mended", [False, True])
def test_what_is_given_up_is_damaged_still(folder: Path, size: int, mended: bool) -> None:
    """Of what somebody has put again meanwhile nothing is lost; nor of its neighbours."""
    data = b"x" * size
    blobs = Blobs(str(folder))
    name, other = blobs.put(data), blobs.put(b"other")
    blobs.close()
    path = packs(folder)[0] if size < LARGE else folder / name[:2] / name
    path.write_bytes(path.read_bytes().replace(b"xxxxx", b"xyxxx", 1))
    found = [found for found, _ in Blobs(str(folder)).verify()]
    if mended:
        again = Blobs(str(folder))
        again.put(data)
        again.close()
    given_up, kept = Blobs(str(folder)).give_up(found)
    assert given_up == ([] if mended else [name])
    assert kept == ([] if mended else [f"{path.name}.damaged"])
    reader = Blobs(str(folder))
    assert reader.get(other) == b"other"
    assert reader.has(name) is mended
    assert list(reader.verify()) == []


def test_any_flipped_byte_in_a_pack_is_found_and_spoils_one_blob(folder: Path) -> None:
    """Entries behind a damaged one are found again; nothing wrong is ever given out."""
    contents = [b"first", b"second \n blob", b"", b"last one"]
    blobs = Blobs(str(folder))
    names = [blobs.put(data) for data in contents]
    blobs.close()
    (pack,) = packs(folder)
    good = pack.read_bytes()
    for offset in range(len(good)):
        pack.write_bytes(good[:offset] + bytes([good[offset] ^ 1]) + good[offset + 1 :])
        reader = Blobs(str(folder))
        assert list(reader.verify()), offset
        spoiled = 0
        for name, data in zip(names, contents, strict=True):
            try:
                assert reader.get(name) == data
            except BlobDamaged:
                spoiled += 1
        assert spoiled <= 2, offset


def test_of_many_those_that_are_here_are_given_and_no_damaged_one(folder: Path) -> None:
    """From several packs, large ones, and one that has another copy."""
    contents = [b"first", b"second", b"x" * LARGE, b"twice", b"spoiled"]
    for some in (contents[:2], contents[2:]):
        blobs = Blobs(str(folder))
        blobs.put_all(some)
        blobs.close()
    for pack in packs(folder):
        pack.write_bytes(pack.read_bytes().replace(b"twice", b"twixe").replace(b"spoiled", b"spoilt!"))
    mended = Blobs(str(folder))
    mended.put(b"twice")
    mended.close()
    for path in folder.glob("*.index"):
        path.unlink()
    names = [digest(data) for data in contents]
    reader = Blobs(str(folder))
    assert dict(reader.each([*names, digest(b"nowhere")])) == {digest(d): d for d in contents[:4]}
    assert [reader.size(name) for name in (*names[:3], digest(b"nowhere"))] == [5, 6, LARGE, None]


def test_a_blob_that_is_not_here_says_so(folder: Path) -> None:
    """Missing is told apart from damaged."""
    with pytest.raises(BlobDamaged) as raised:
        Blobs(str(folder)).get(digest(b"x"))
    assert raised.value.error_code == "blob.missing"
    assert not folder.exists()


def test_a_torn_end_is_set_aside_by_a_repair(folder: Path) -> None:
    """What a killed writer left belongs to no blob: it is kept beside the pack, and looked at no more."""
    blobs = Blobs(str(folder))
    name = blobs.put(b"whole")
    blobs.close()
    (pack,) = packs(folder)
    torn = pack.read_bytes() + digest(b"torn").encode() + b" 4\nto"
    pack.write_bytes(torn)
    assert [what for what, _ in Blobs(str(folder)).verify()] == [pack.name]
    said = Blobs(str(folder)).repair()
    assert len(said) == 1
    assert "No blob was lost" in said[0]
    assert list(Blobs(str(folder)).verify()) == []
    assert Blobs(str(folder)).get(name) == b"whole"
    assert (folder / f"{pack.name}.damaged").read_bytes() == torn


def test_a_pack_that_is_being_written_is_left_alone(folder: Path) -> None:
    """Its writer lives: an entry may be under way."""
    writing = Blobs(str(folder))
    writing.put(b"whole")
    (pack,) = packs(folder)
    with pack.open("ab") as file:
        file.write(b"somewhere in the middle")
    assert list(Blobs(str(folder)).verify()) == []
    assert Blobs(str(folder)).repair() == []
    writing.close()
    assert len(list(Blobs(str(folder)).verify())) == 1


def test_threads_of_one_process_write_sync_and_put_packs_together(folder: Path) -> None:
    """Nobody waits for somebody who waits for them, and what one closes another one need not sync any more."""
    blobs, until = Blobs(str(folder)), time.monotonic() + 0.5
    blobs.put(b"first")

    def write() -> list[str]:
        names = []
        while time.monotonic() < until:
            names.append(blobs.put(os.urandom(40)))
            blobs.sync()
        return names

    def gather() -> None:
        while time.monotonic() < until:
            with suppress(TryLater):
                blobs.gather()

    workers = ThreadPoolExecutor()
    gathering, writing = workers.submit(gather), [workers.submit(write) for _ in range(2)]
    names = [name for written in writing for name in written.result(timeout=20)]
    gathering.result(timeout=20)
    blobs.close()
    assert set(dict(Blobs(str(folder)).names())) >= set(names)


def test_a_forked_child_reads_what_its_parent_writes_and_writes_a_pack_of_its_own(folder: Path) -> None:
    """What it inherited is not its own: neither the pack, which grows without it, nor the share of the lock."""
    blobs = Blobs(str(folder))
    blobs.put(b"before")
    ready, done = os.pipe()
    child = os.fork()
    if child == 0:
        os.read(ready, 1)
        fds = len(os.listdir("/dev/fd"))
        sound = blobs.get(digest(b"after")) == b"after"
        for _ in range(5):
            blobs.put(b"before")
        sound = sound and len(os.listdir("/dev/fd")) <= fds
        blobs.put(b"by the child")
        blobs.close()
        os._exit(0 if sound else 1)
    blobs.put(b"after")
    blobs.sync()
    os.write(done, b"!")
    assert os.waitpid(child, 0)[1] == 0
    blobs.close()
    assert len(packs(folder)) == 2
    assert {data for name, _ in blobs.names() if (data := blobs.get(name))} == {b"before", b"after", b"by the child"}


@pytest.mark.parametrize("asks", ["anew", "again"])
def test_a_blob_is_found_while_packs_are_put_together(folder: Path, monkeypatch: pytest.MonkeyPatch, asks: str) -> None:
    """A reader that comes upon a pack which has just gone looks where its blobs went."""
    for data in (b"one", b"two", b"three"):
        writer = Blobs(str(folder))
        writer.put(data)
        writer.close()
    reader, listed = Blobs(str(folder)), Blobs._packs
    if asks == "again":
        assert reader.get(digest(b"one")) == b"one"
        Blobs(str(folder)).free(lambda: {digest(b"one"), digest(b"two")}, dry_run=False)

    def gathered(blobs: Blobs) -> list[str]:
        found = listed(blobs)
        monkeypatch.setattr(Blobs, "_packs", listed)
        Blobs(str(folder)).free(lambda: {digest(b"one")}, dry_run=False)
        return found

    monkeypatch.setattr(Blobs, "_packs", gathered)
    if asks == "anew":
        assert reader.has(digest(b"one"))
    assert reader.get(digest(b"one")) == b"one"


def test_a_damaged_blob_does_not_keep_packs_from_being_put_together(folder: Path) -> None:
    """Its pack stays as it is; all others become one."""
    names = []
    for number in range(10):
        blobs = Blobs(str(folder))
        names.append(blobs.put(b"%d" % number))
        blobs.close()
    damaged = Path(blobs.file_of(names[3]))
    damaged.write_bytes(damaged.read_bytes().replace(b"\n3\n", b"\n?\n"))
    was = damaged.read_bytes()
    Blobs(str(folder)).gather()
    assert len(packs(folder)) == 2
    assert damaged.read_bytes() == was
    reader = Blobs(str(folder))
    assert [reader.get(name) for name in names if name != names[3]] == [b"%d" % n for n in range(10) if n != 3]


def test_what_a_killed_process_left_of_packs_goes_when_they_are_put_together(folder: Path) -> None:
    """It can be as large as all of them."""
    blobs = Blobs(str(folder))
    blobs.put(b"one")
    blobs.close()
    (folder / "1-2.pack.4194305.0123abcd.tmp").write_bytes(b"half of it")
    blobs.gather()
    assert not list(folder.glob("*.tmp"))


def test_a_repair_that_is_cut_short_leaves_no_index_of_what_was_there_before(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Behind the bytes that were set aside all others moved: an index that does not know would hide some of them."""
    monkeypatch.setattr(blobs_module, "INDEX_FROM", 4)
    for step in range(1, 20):
        blobs = Blobs(str(folder / str(step)))
        names = [blobs.put(b"%d" % n * 30) for n in range(10)]
        (pack,), (index,) = packs(folder / str(step)), (folder / str(step)).glob("*.index")
        of_the_first_few = index.read_bytes()
        blobs.close()
        index.write_bytes(of_the_first_few)
        pack.write_bytes(b"?" + pack.read_bytes()[1:])
        with suppress(OSError):
            Blobs(blobs.folder, disk=FailingDisk(step)).repair()
        reader = Blobs(blobs.folder)
        assert [name for name in names[1:] if not reader.has(name)] == []


def test_a_pack_is_let_go_of_only_when_its_index_stands(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever puts packs together before that would leave the index behind, for good."""
    monkeypatch.setattr(blobs_module, "INDEX_FROM", 4)
    blobs = Blobs(str(folder))
    blobs.put_all([b"%d" % n for n in range(9)])
    blobs.sync()

    def meanwhile(disk: Disk, path: str, chunks: Iterable[bytes], *, durable: bool) -> None:
        with suppress(TryLater):
            Blobs(str(folder)).free(set, dry_run=False)
        write_file(disk, path, chunks, durable=durable)

    monkeypatch.setattr(blobs_module, "write_file", meanwhile)
    blobs.close()
    assert [path.stem for path in folder.glob("*.index")] == [pack.name for pack in packs(folder)]


@pytest.mark.parametrize("short", [False, True])
def test_a_full_disk_loses_no_blob(folder: Path, short: bool) -> None:
    """Every operation may be refused: what was put before is there, and what comes after finds its place."""
    contents = [b"one", b"two" * 100, b"L" * LARGE, b"four"]
    for step in range(1, 30):
        home = folder / str(step)
        blobs = Blobs(str(home), disk=FailingDisk(step, short=short, lasting=short))
        kept = []
        for data in contents:
            try:
                kept.append(blobs.put(data))
                blobs.sync()
            except StorageFailed:
                continue
        reader = Blobs(str(home))
        assert all(digest(reader.get(name)) == name for name in kept), step
        blobs.close() if not blobs._stopped else None
        fresh = Blobs(str(home))
        assert [fresh.get(fresh.put(data)) for data in contents] == contents, step


def test_after_a_failed_sync_nothing_more_is_taken(folder: Path) -> None:
    """What the disk did not confirm once is never believed to be confirmed later."""
    disk = FailingDisk(0)
    blobs = Blobs(str(folder), disk=disk)
    blobs.put(b"one")
    blobs.sync()
    blobs.put(b"two")
    disk.at = disk.steps + 1
    for _ in range(2):
        with pytest.raises(StorageFailed):
            blobs.sync()
    with pytest.raises(StorageFailed):
        blobs.put(b"three")
