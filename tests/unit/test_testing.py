"""The fakes bite: a disk that loses what was not synced, and one that fails when it is told to."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest

from headway.disk import make_folders, write_all, write_file
from headway.testing import FailingDisk, PowerCutDisk, Unsynced


def left(disk: PowerCutDisk, into: Path, unsynced: Unsynced = "lost") -> dict[str, bytes]:
    """The files that a power cut leaves."""
    disk.left(str(into), unsynced)
    return {str(path.relative_to(into)): path.read_bytes() for path in into.rglob("*") if path.is_file()}


def test_what_is_there_already_stays(tmp_path: Path) -> None:
    """The world before the first operation is durable."""
    root = tmp_path / "root"
    (root / "inner").mkdir(parents=True)
    (root / "inner" / "file").write_bytes(b"old")
    assert left(PowerCutDisk(str(root)), tmp_path / "left") == {"inner/file": b"old"}


def test_bytes_and_names_are_lost_until_both_are_synced(tmp_path: Path) -> None:
    """A synced file without a synced name is gone; a synced name without synced bytes is empty."""
    root = tmp_path / "root"
    root.mkdir()
    disk = PowerCutDisk(str(root))
    fd = disk.open(str(root / "file"), os.O_RDWR | os.O_CREAT)
    write_all(disk, fd, b"bytes", 0)
    assert left(disk, tmp_path / "1") == {}
    disk.sync_folder(str(root))
    assert left(disk, tmp_path / "2") == {"file": b""}
    disk.sync(fd)
    assert left(disk, tmp_path / "3") == {"file": b"bytes"}
    write_all(disk, fd, b" and more", 5)
    assert left(disk, tmp_path / "4") == {"file": b"bytes"}
    assert left(disk, tmp_path / "5", "zeroed") == {"file": b"bytes" + bytes(9)}
    assert left(disk, tmp_path / "6", "half") == {"file": b"bytes and"}
    disk.truncate(fd, 2)
    assert left(disk, tmp_path / "7") == {"file": b"bytes"}
    disk.sync(fd)
    assert left(disk, tmp_path / "8") == {"file": b"by"}
    disk.close(fd)
    assert (root / "file").read_bytes() == b"by"


def test_a_rename_counts_when_its_folder_is_synced(tmp_path: Path) -> None:
    """Before that the old name, or the old file, comes back."""
    root = tmp_path / "root"
    root.mkdir()
    (root / "file").write_bytes(b"old")
    disk = PowerCutDisk(str(root))
    write_file(disk, str(root / "file"), [b"new"], durable=False)
    assert left(disk, tmp_path / "1") == {"file": b"old"}
    assert left(disk, tmp_path / "2", "names") == {"file": b""}
    write_file(disk, str(root / "file"), [b"newer"], durable=True)
    assert left(disk, tmp_path / "3") == {"file": b"newer"}


def test_folders_are_made_durably(tmp_path: Path) -> None:
    """Each new folder is a name in the one above it."""
    root = tmp_path / "root"
    root.mkdir()
    disk = PowerCutDisk(str(root))
    disk.make_folder(str(root / "a"))
    disk.left(str(tmp_path / "1"))
    assert not (tmp_path / "1" / "a").exists()
    make_folders(disk, str(root / "b" / "c"))
    disk.left(str(tmp_path / "2"))
    assert (tmp_path / "2" / "b" / "c").is_dir()


def test_a_failing_disk_fails_where_it_is_told_to(tmp_path: Path) -> None:
    """Once or for good, whole or short."""
    disk = FailingDisk(2, errno.EIO)
    fd = disk.open(str(tmp_path / "file"), os.O_RDWR | os.O_CREAT)
    with pytest.raises(OSError, match="Input/output error"):
        disk.write(fd, b"abcd", 0)
    assert disk.write(fd, b"abcd", 0) == 4
    short = FailingDisk(1, short=True, lasting=True)
    assert (short.write(fd, b"wxyz", 0), short.failed) == (2, "write")
    with pytest.raises(OSError, match="No space left"):
        short.write(fd, b"z", 0)
    assert (tmp_path / "file").read_bytes() == b"wxcd"
    disk.close(fd)
