"""The workbench, for every test of behaviour."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.behaviour.scenes import Book
from tests.bench import Bench


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    """A project in a folder of its own."""
    return Bench(tmp_path / "project")


@pytest.fixture
def book(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Book:
    """Two scenes, eight phases, nothing made yet."""
    return Book(tmp_path / "book", capsys)
