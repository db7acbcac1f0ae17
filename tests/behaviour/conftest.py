"""The workbench, for every test of behaviour."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.bench import Bench


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    """A project in a folder of its own."""
    return Bench(tmp_path / "project")
