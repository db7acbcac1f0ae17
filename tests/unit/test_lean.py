"""A start without what nobody needs: msgspec is loaded without typing_extensions, and nothing is broken by it."""

from __future__ import annotations

import subprocess
import sys

import pytest

NEEDS = "import sys, headway; headway.Plan; import msgspec; "


def lines_of(code: str) -> list[str]:
    """What a program prints, line by line."""
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.splitlines()


def test_msgspec_is_loaded_alone_and_others_still_find_what_they_import() -> None:
    """typing_extensions is not loaded with a plan, and can be imported later."""
    pytest.importorskip("typing_extensions")
    code = NEEDS + "print('typing_extensions' in sys.modules); import typing_extensions; print('imported')"
    assert lines_of(code) == ["False", "imported"]


def test_where_another_thread_runs_nothing_is_hidden_from_it() -> None:
    """Its imports must not fail for the sake of ours."""
    pytest.importorskip("typing_extensions")
    code = "import threading; stop = threading.Event(); threading.Thread(target=stop.wait).start(); "
    assert lines_of(f"{code}{NEEDS}print('typing_extensions' in sys.modules); stop.set()") == ["True"]
