"""How bytes get to a file: in few writes, whatever pieces they come in."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from headway import disk
from headway.disk import RealDisk, write_chunks


class Counting(RealDisk):
    """A disk that keeps in mind how much each write took."""

    def __init__(self) -> None:
        self.sizes: list[int] = []

    def write(self, fd: int, data: bytes | memoryview, offset: int) -> int:
        self.sizes.append(len(data))
        return super().write(fd, data, offset)


@pytest.mark.parametrize(
    ("chunks", "writes"),
    [
        ([], []),
        ([3, 3], [6]),
        ([10, 1], [10, 1]),
        ([11], [11]),
        ([2, 11, 2, 3], [2, 11, 5]),
        ([11, 12], [11, 12]),
        ([4] * 6, [8, 8, 8]),
    ],
    ids=str,
)
def test_small_chunks_are_written_together_and_large_ones_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, chunks: list[int], writes: list[int]
) -> None:
    """Up to a limit, so that nobody who hands on many has them all in memory; each where the one before it ended."""
    monkeypatch.setattr(disk, "LARGE", 10)
    counting, given = Counting(), [bytes([65 + number]) * size for number, size in enumerate(chunks)]
    fd = counting.open(str(tmp_path / "file"), os.O_RDWR | os.O_CREAT)
    try:
        end = write_chunks(counting, fd, iter(given), 5)
    finally:
        counting.close(fd)
    assert counting.sizes == writes
    assert end == 5 + sum(chunks)
    assert (tmp_path / "file").read_bytes()[5:] == b"".join(given)
