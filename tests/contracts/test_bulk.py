"""Many small files at once: what is true of each, whoever looks or writes."""

from __future__ import annotations

import ctypes
import errno
import os
import resource
import shutil
import stat
import sysconfig
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from headway import bulk
from headway.bulk import (
    OTHER,
    Answer,
    Known,
    Order,
    Over,
    changed_one_by_one,
    is_clear_by_steps,
    known_of,
    write_one_by_one,
    write_over_one_by_one,
)

Write = Callable[[list[Order]], list[Answer]]
WriteOver = Callable[[list[Over]], list[int]]
Changed = Callable[[str, list[str], Sequence[Known]], list[int]]
IsClear = Callable[[str, str], bool]

PURE = bool(os.environ.get("HEADWAY_PURE"))
BY_ONE = pytest.param(write_one_by_one, id="python")
only_in_c = pytest.mark.skipif(bulk.write is write_one_by_one, reason="there was no compiler, so there is only Python")
IN_C = pytest.param(bulk.write, id="c", marks=only_in_c)


@pytest.fixture(params=[BY_ONE, IN_C])
def write(request: pytest.FixtureRequest) -> Write:
    found: Write = request.param
    return found


@pytest.fixture
def changed(write: Write) -> Changed:
    return changed_one_by_one if write is write_one_by_one else bulk.changed


@pytest.fixture
def write_over(write: Write) -> WriteOver:
    return write_over_one_by_one if write is write_one_by_one else bulk.write_over


@pytest.fixture
def is_clear(write: Write) -> IsClear:
    return is_clear_by_steps if write is write_one_by_one else bulk.is_clear


@pytest.fixture(autouse=True)
def mask() -> Iterator[None]:
    """As most people have it."""
    before = os.umask(0o022)
    yield
    os.umask(before)


def known(path: Path) -> Known:
    return known_of(path.lstat())


def new(path: Path, data: bytes = b"new") -> Order:
    return str(path), data, 0o666, None, None


def instead(path: Path, other: Known | None, data: bytes = b"new") -> Order:
    return str(path), data, 0o644, f"{path}.aside", other


def test_it_is_built_in_c_where_there_is_a_compiler() -> None:
    """So nobody takes the slow one for it without noticing."""
    compiler = (sysconfig.get_config_var("CC") or "cc").split()[0]
    headers = os.path.exists(os.path.join(sysconfig.get_path("include"), "Python.h"))
    if shutil.which(compiler) is None or not headers or PURE:
        pytest.skip("there is none")
    assert bulk.write is not write_one_by_one
    assert bulk.changed is not changed_one_by_one
    assert bulk.write_over is not write_over_one_by_one
    assert bulk.is_clear is not is_clear_by_steps


# Asking.


@pytest.mark.parametrize("there", ["file", "folder", "link", "link to nowhere"])
def test_only_where_nothing_stands_is_it_clear(is_clear: IsClear, tmp_path: Path, there: str) -> None:
    """A link that leads nowhere stands there, too."""
    folder, path = str(tmp_path), tmp_path / "it"
    assert is_clear(folder, str(path))
    if there == "file":
        path.write_text("theirs")
    elif there == "folder":
        path.mkdir()
    else:
        path.symlink_to(tmp_path / "nowhere" if there == "link to nowhere" else tmp_path)
    assert not is_clear(folder, str(path))
    path.rename(tmp_path / "away")
    assert is_clear(folder, str(path))


def test_a_folder_that_is_not_there_or_is_none_has_nothing_clear_in_it(is_clear: IsClear, tmp_path: Path) -> None:
    """Whoever asks has to look more closely: it may have to be made, or lead elsewhere."""
    (tmp_path / "file").write_text("no folder")
    (tmp_path / "link").symlink_to(tmp_path)
    (tmp_path / "folder").mkdir()
    found = {
        name: is_clear(str(tmp_path / name), str(tmp_path / name / "it")) for name in (*os.listdir(tmp_path), "no")
    }
    assert found == {"file": False, "link": False, "folder": True, "no": False}


def test_what_cannot_be_asked_about_is_not_clear(is_clear: IsClear, tmp_path: Path) -> None:
    """A name that is too long, or below a file: whoever writes there is told what is the matter."""
    (tmp_path / "file").write_text("no folder")
    assert not is_clear(str(tmp_path), str(tmp_path / ("long" * 100)))
    assert not is_clear(str(tmp_path), str(tmp_path / "file/it"))
    with pytest.raises(ValueError, match="null"):
        is_clear(str(tmp_path), "a\0b")


# Writing.


def test_new_files_are_as_they_were_told_of(write: Write, tmp_path: Path) -> None:
    """Bytes, mode, and the very time that they were given."""
    files = {tmp_path / f"{n}.txt": str(n).encode() * n for n in range(100)}
    before = time.time_ns()
    answers = write([new(path, data) for path, data in files.items()])
    for (path, data), (error, found, marked) in zip(files.items(), answers, strict=True):
        assert (error, path.read_bytes(), stat.S_IMODE(path.stat().st_mode)) == (0, data, 0o644)
        assert (found, found[1]) == (known(path), marked)
        assert before <= marked <= time.time_ns()


@pytest.mark.parametrize("there", ["file", "folder", "link", "link to nowhere", "pipe"])
def test_what_stands_where_nothing_should_stays(write: Write, tmp_path: Path, there: str) -> None:
    path, elsewhere = tmp_path / "it", tmp_path / "elsewhere"
    elsewhere.write_text("theirs")
    makes: dict[str, Callable[[], Any]] = {
        "file": lambda: path.write_text("theirs"),
        "folder": path.mkdir,
        "link": lambda: path.symlink_to(elsewhere),
        "link to nowhere": lambda: path.symlink_to(tmp_path / "nowhere"),
        "pipe": lambda: os.mkfifo(path),
    }
    makes[there]()
    before = known(path)
    beside = tmp_path / "beside"
    assert [answer[0] for answer in write([new(path), new(beside)])] == [errno.EEXIST, 0]
    assert (known(path), elsewhere.read_text(), beside.read_text()) == (before, "theirs", "new")
    assert not (tmp_path / "nowhere").exists()


def test_a_file_takes_the_place_of_another_that_is_what_it_has_to_be(write: Write, tmp_path: Path) -> None:
    """Whoever has the old one open goes on reading it."""
    path = tmp_path / "it"
    path.write_text("old")
    with path.open() as held:
        [(error, found, marked)] = write([instead(path, known(path))])
        assert (error, path.read_text(), held.read()) == (0, "new", "old")
    assert (found, found[1]) == (known(path), marked)
    assert os.listdir(tmp_path) == ["it"]


@pytest.mark.parametrize("how", ["written", "touched", "replaced by its like", "a link", "gone", "a folder"])
def test_whoever_was_there_meanwhile_stays(write: Write, tmp_path: Path, how: str) -> None:
    """Nothing of it is lost, and nothing of ours is left behind."""
    path = tmp_path / "it"
    path.write_text("old")
    was = known(path)
    if how == "written":
        path.write_text("mine")
    elif how == "touched":
        os.utime(path, ns=(1, 1))
    else:
        path.rename(tmp_path / "away") if how == "a link" else path.unlink()
    if how == "replaced by its like":
        path.write_text("old")
        os.utime(path, ns=(was[1], was[1]))
    elif how == "a link":
        path.symlink_to(tmp_path / "away")
    elif how == "a folder":
        path.mkdir()
    before = sorted(os.listdir(tmp_path))
    [(error, found, _)] = write([instead(path, was)])
    assert error == (errno.ENOENT if how == "gone" else OTHER)
    assert (found, sorted(os.listdir(tmp_path))) == (bulk.NOTHING, before)
    if path.is_file():
        assert path.read_text() == ("mine" if how == "written" else "old")


def can_change_places(folder: Path) -> bool:
    """Whether two files can, on this system and on this disk."""
    for name in ("a", "b"):
        (folder / name).write_text(name)
    swap = getattr(ctypes.CDLL(None), "renameat2", None)
    names = [os.fsencode(folder / name) for name in ("a", "b")]
    done = swap is not None and swap(-100, names[0], -100, names[1], 2) == 0
    for name in ("a", "b"):
        (folder / name).unlink()
    return done


@only_in_c
def test_no_moment_is_too_short_for_an_edit_to_be_noticed(tmp_path: Path) -> None:
    """Between the last look and the change, too: what somebody puts there is read before anything replaces it."""
    if not can_change_places(tmp_path):
        pytest.skip("files cannot change places here")
    path, seen, is_over = tmp_path / "it", threading.Semaphore(0), threading.Event()
    path.write_text("ours")
    wanted = b""

    def replace_for_ever() -> None:
        while not is_over.is_set():
            with path.open("rb") as file:
                was, text = known_of(os.fstat(file.fileno())), file.read()
            if text == wanted:
                seen.release()
            bulk.write([instead(path, was, b"ours")])

    thread = threading.Thread(target=replace_for_ever)
    thread.start()
    try:
        for n in range(1000):
            wanted = str(n).encode()
            (tmp_path / "edit").write_bytes(wanted)
            os.rename(tmp_path / "edit", path)
            assert seen.acquire(timeout=20), f"edit {n} is lost"
            while seen.acquire(blocking=False):  # it may be seen again before it is replaced
                pass
    finally:
        is_over.set()
        thread.join()
    assert os.listdir(tmp_path) == ["it"]


def test_whatever_stands_there_gives_way_where_nobody_asks(write: Write, tmp_path: Path) -> None:
    """A link goes itself, and not what it leads to; a folder stays."""
    file, link, folder = tmp_path / "file", tmp_path / "link", tmp_path / "folder"
    file.write_text("old")
    link.symlink_to(file)
    folder.mkdir()
    orders = [instead(link, None), instead(tmp_path / "none", None), instead(folder, None), instead(file, None, b"own")]
    assert [answer[0] for answer in write(orders)] == [0, 0, errno.EISDIR, 0]
    assert (link.is_symlink(), link.read_text(), file.read_text()) == (False, "new", "own")
    assert sorted(os.listdir(tmp_path)) == ["file", "folder", "link", "none"]


def test_each_order_is_told_of_on_its_own(write: Write, tmp_path: Path) -> None:
    """One that fails is in nobody's way; the same path is written once."""
    a, b = tmp_path / "a", tmp_path / "b"
    answers = write([new(a), new(tmp_path / "none" / "x"), new(a, b"again"), new(tmp_path / ("n" * 300)), new(b)])
    assert [error for error, *_ in answers] == [0, errno.ENOENT, errno.EEXIST, errno.ENAMETOOLONG, 0]
    assert (a.read_text(), b.read_text()) == ("new", "new")
    assert write([]) == []


def test_each_file_comes_into_its_own_folder(write: Write, tmp_path: Path) -> None:
    """However they are mixed, whatever is the matter with a folder beside it, and however alike their names are."""
    folders = [tmp_path / name for name in ("aa", "ab", "aba", "gone", "file", "link")]
    for folder in folders[:3]:
        folder.mkdir()
    (tmp_path / "file").write_text("no folder")
    (tmp_path / "link").symlink_to(tmp_path / "aa")
    numbers = [0, 0, 0, 1, 1, 2, 1, 0, 2, 2, 3, 3, 0, 4, 4, 1, 5, 5, 2, 0]
    paths = [folders[number] / f"{n}" for n, number in enumerate(numbers)]
    bad = {3: errno.ENOENT, 4: errno.ENOTDIR}
    answers = write([new(path, str(path).encode()) for path in paths])
    assert [error for error, _, _ in answers] == [bad.get(number, 0) for number in numbers]
    for path, number, (_, found, _) in zip(paths, numbers, answers, strict=True):
        if number not in bad:
            assert (path.read_bytes(), known(path)) == (str(path).encode(), found)
    assert sum(len(os.listdir(folder)) for folder in folders[:3]) == len(numbers) - 4


def test_among_new_files_others_are_replaced(write: Write, tmp_path: Path) -> None:
    """New ones and old ones of the same folder, in one call."""
    paths = [tmp_path / str(n) for n in range(12)]
    for path in paths[::3]:
        path.write_text("old")
    orders = [instead(path, known(path)) if n % 3 == 0 else new(path) for n, path in enumerate(paths)]
    assert [error for error, _, _ in write(orders)] == [0] * 12
    assert {path.read_text() for path in paths} == {"new"}
    assert sorted(os.listdir(tmp_path)) == sorted(path.name for path in paths)


def test_a_path_that_is_too_long_is_told_of(write: Write, tmp_path: Path) -> None:
    """Also where its folder could be opened: nobody would find what is in it."""
    most, folder = os.pathconf("/", "PC_PATH_MAX"), tmp_path
    while len(str(folder)) < most - 200:
        folder /= "d" * 90
    folder.mkdir(parents=True)
    short, long = folder / "it", [folder / f"{n}".zfill(220) for n in range(3)]
    assert [error for error, _, _ in write(list(map(new, (short, *long))))] == [0, *[errno.ENAMETOOLONG] * 3]
    assert os.listdir(folder) == ["it"]


def test_half_of_a_file_is_not_left(write: Write, tmp_path: Path) -> None:
    """What there is no room for is not there at all, and what it was to replace still is."""
    path = tmp_path / "old"
    path.write_text("old")
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (4096, before[1]))
    try:
        answers = write([new(tmp_path / "it", b"x" * 10_000), instead(path, known(path), b"x" * 10_000)])
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert [error for error, *_ in answers] == [errno.EFBIG, errno.EFBIG]
    assert (os.listdir(tmp_path), path.read_text()) == (["old"], "old")


def test_names_are_bytes_to_the_system(write: Write, changed: Changed, tmp_path: Path) -> None:
    """Not all of them are UTF-8."""
    names = ["ä ö.txt", "日本", os.fsdecode(b"\xff\xfe"), "a\nb", "%s %n"]
    assert [answer[0] for answer in write([new(tmp_path / name) for name in names])] == [0] * len(names)
    assert changed(f"{tmp_path}/", names, [known(tmp_path / name) for name in names]) == []


def test_no_path_has_a_zero_in_it(write: Write, changed: Changed, tmp_path: Path) -> None:
    """It would be another path to the system."""
    (tmp_path / "a").write_text("theirs")
    with pytest.raises(ValueError, match="null"):
        write([new(tmp_path / "b"), new(tmp_path / "a\0b")])
    with pytest.raises(ValueError, match="null"):
        changed(f"{tmp_path}/", ["a\0b"], [known(tmp_path / "a")])


@only_in_c
def test_what_is_no_order_is_refused(tmp_path: Path) -> None:
    """C has to look for itself, where Python would find out."""
    path = str(tmp_path / "a")
    orders = [None, 1, (), (path,), (path, "text", 1, None, None), (path, b"", 1, "x", (1, 2)), (path, b"", "", 1, 2)]
    for wrong in orders:
        with pytest.raises((TypeError, ValueError)):
            bulk.write([wrong])  # type: ignore[list-item]
    for order in (None, (), (path,), (path, b""), (path, "text", 0), (path, b"", "0"), (path, b"", 0, 0), (1, b"", 0)):
        with pytest.raises((TypeError, ValueError)):
            bulk.write_over([order])  # type: ignore[list-item]
    for stat_ in (None, (), (1, 2, 3), (1, 2, 3, "4")):
        with pytest.raises((TypeError, ValueError)):
            bulk.changed("/", ["a"], [stat_])  # type: ignore[list-item]
    with pytest.raises(ValueError, match=r"stat|zip"):
        bulk.changed("/", ["a"], [])
    assert os.listdir(tmp_path) == []


def test_others_go_on_meanwhile(write: Write, tmp_path: Path) -> None:
    """Several threads write at once, and each is told of its own."""
    told: dict[int, list[Answer]] = {}

    def work(n: int) -> None:
        told[n] = write([new(tmp_path / f"{n}-{k}", f"{n}-{k}".encode()) for k in range(200)])

    threads = [threading.Thread(target=work, args=(n,)) for n in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for n, answers in told.items():
        for k, (error, found, _) in enumerate(answers):
            path = tmp_path / f"{n}-{k}"
            assert (error, found, path.read_text()) == (0, known(path), f"{n}-{k}")


# Writing over.


@pytest.mark.parametrize("data", [b"", b"ours", b"ours: longer than before", b"ours: " + bytes(100_000)])
def test_a_file_is_written_over_where_it_stands(write_over: WriteOver, tmp_path: Path, data: bytes) -> None:
    """Shorter or longer, it is all that is there then, in the very same file and with the mode that it had."""
    path = tmp_path / "it"
    path.write_bytes(b"ours: before")
    path.chmod(0o600)
    inode = path.stat().st_ino
    assert write_over([(str(path), data, min(4, len(data)))]) == [0]
    assert (path.read_bytes(), path.stat().st_ino, stat.S_IMODE(path.stat().st_mode)) == (data, inode, 0o600)


@pytest.mark.parametrize("size", [1, 4095, 4096, 4097, 20_000])
def test_only_what_begins_as_it_has_to_is_written_over(write_over: WriteOver, tmp_path: Path, size: int) -> None:
    """To the last of so many bytes; nothing of another is touched, and one that is too short is another."""
    begin = os.urandom(size)
    there = {
        "ours": begin,
        "theirs": begin[:-1] + bytes([begin[-1] ^ 1]),
        "short": begin[:-1],
        "empty": b"",
        "more": begin + b"before",
    }
    for name, data in there.items():
        (tmp_path / name).write_bytes(data)
    told = write_over([(str(tmp_path / name), begin + b"new", size) for name in there])
    assert told == [0, OTHER, OTHER, OTHER, 0]
    assert {name: (tmp_path / name).read_bytes() for name in there} == there | {
        "ours": begin + b"new",
        "more": begin + b"new",
    }


def test_nothing_is_written_through_or_waited_for(write_over: WriteOver, tmp_path: Path) -> None:
    """Nor made where nothing is; who has a file under another name as well keeps what it was."""
    file, link, name, pipe, folder = (tmp_path / name for name in ("file", "link", "name", "pipe", "folder"))
    file.write_text("theirs")
    link.symlink_to(file)
    os.mkfifo(pipe)
    folder.mkdir()
    (tmp_path / "one").write_text("theirs")
    name.hardlink_to(tmp_path / "one")
    paths = [link, name, pipe, folder, tmp_path / "none", tmp_path / "no" / "folder", tmp_path / ("n" * 300)]
    told = write_over([(str(path), b"new", 0) for path in [*paths, file]])
    assert told[:2] == [errno.ELOOP, OTHER]
    assert told[2] in (OTHER, errno.ENXIO)
    assert told[3:] == [errno.EISDIR, errno.ENOENT, errno.ENOENT, errno.ENAMETOOLONG, 0]
    assert (file.read_text(), name.read_text()) == ("new", "theirs")
    assert sorted(os.listdir(tmp_path)) == ["file", "folder", "link", "name", "one", "pipe"]
    assert write_over([]) == []


def test_what_there_is_no_room_for_is_told(write_over: WriteOver, tmp_path: Path) -> None:
    """What is left of it then is for whoever asked to write again."""
    path, beside = tmp_path / "it", tmp_path / "beside"
    path.write_text("old")
    beside.write_text("old")
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (4096, before[1]))
    try:
        told = write_over([(str(path), b"x" * 10_000, 0), (str(beside), b"new", 0)])
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert told == [errno.EFBIG, 0]
    assert beside.read_text() == "new"


def test_an_order_that_cannot_be_is_refused_before_anything_is_written(write_over: WriteOver, tmp_path: Path) -> None:
    """A file cannot begin with more bytes than there will be."""
    path = tmp_path / "it"
    path.write_text("old")
    for wrong in ((str(path), b"new", 4), (str(path), b"new", -1)):
        with pytest.raises(ValueError, match="begins"):
            write_over([(str(path), b"new", 0), wrong])
    assert path.read_text() == "old"
    with pytest.raises(ValueError, match="null"):
        write_over([(str(tmp_path / "a\0b"), b"", 0)])


# Looking.


def test_only_what_is_not_as_known_is_told_of(changed: Changed, tmp_path: Path) -> None:
    """By size, times and inode: of a file, and of a link itself."""
    paths = [tmp_path / f"{n}" for n in range(10)]
    for path in paths:
        path.write_text(path.name)
    (tmp_path / "link").symlink_to(paths[0])
    paths.append(tmp_path / "link")
    was = [known(path) for path in paths]
    names = [path.name for path in paths]
    assert changed(f"{tmp_path}/", names, was) == []
    paths[1].write_text("longer")
    paths[2].unlink()
    os.utime(paths[3], ns=(1, 1))
    paths[4].rename(tmp_path / "aside")
    shutil.copy2(tmp_path / "aside", paths[4])
    paths[5].chmod(0o600)
    assert changed(f"{tmp_path}/", names, was) == [1, 2, 3, 4, 5]
    assert changed(f"{tmp_path}/", [], []) == []


@pytest.mark.parametrize("copies", [1, 20])
@pytest.mark.parametrize("prefix", ["{}/", "{}/below/../", "{}//", "{}", ""])
def test_a_path_means_the_same_among_few_and_among_many(
    changed: Changed, tmp_path: Path, prefix: str, copies: int
) -> None:
    """Whatever it looks like, it is what follows the folder; whether that is there or not."""
    (tmp_path / "below").mkdir()
    (tmp_path / "below/it").write_text("")
    prefix = prefix.format(tmp_path)
    paths = ["", ".", "below", "below/", "below/it", "./below//it", "below/../below/it", f"{tmp_path}/below/it", "/tmp"]
    was = [known_of(os.lstat(path)) if os.path.lexists(path := prefix + name) else bulk.NOTHING for name in paths]
    absent = [number for number, stat in enumerate(was) if stat == bulk.NOTHING]
    wanted = [number + len(paths) * copy for copy in range(copies) for number in absent]
    assert changed(prefix, paths * copies, was * copies) == wanted


@pytest.mark.parametrize("year", [1900, 1969, 2300, 2400])
def test_files_of_another_century_are_looked_at_like_any_other(changed: Changed, tmp_path: Path, year: int) -> None:
    """Their times do not fit into 63 bits."""
    path = tmp_path / "it"
    path.write_text("")
    when = (year - 1970) * 31_556_952
    os.utime(path, (when, when))
    if int(path.stat().st_mtime) != when:
        pytest.skip("this file system has no such times")
    was = known(path)
    assert changed(f"{tmp_path}/", ["it"], [was]) == []
    os.utime(path, (when + 1, when + 1))
    assert changed(f"{tmp_path}/", ["it"], [was]) == [0]


def test_a_path_that_is_too_long_is_not_as_known(changed: Changed, tmp_path: Path) -> None:
    """Nor is anything below what is no folder."""
    (tmp_path / "file").write_text("")
    long = "/".join(["n" * 200] * 30)
    assert changed(f"{tmp_path}/", [long, "file/x", "file"], [known(tmp_path / "file")] * 3) == [0, 1]
    assert changed(f"/{long}/", ["file"], [known(tmp_path / "file")]) == [0]
