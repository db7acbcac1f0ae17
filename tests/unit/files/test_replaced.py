"""Files that others were put in the place of: let go of in the end, however that goes."""

from __future__ import annotations

import os
import resource
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from headway import Plan
from headway.files import replaced
from headway.files.replaced import FEW, MOST, Replaced

OPEN = Path("/proc/self/fd")
pytestmark = pytest.mark.skipif(not OPEN.exists(), reason="only here can it be told which files are held")


def numbers(folder: Path) -> dict[int, str]:
    """Files below a folder that this process holds, be they replaced or not, by the numbers that they have here."""
    found: dict[int, str] = {}
    for fd in OPEN.iterdir():
        try:
            found[int(fd.name)] = os.readlink(fd)
        except OSError:
            continue
    return {number: path for number, path in found.items() if path.startswith(f"{folder}/")}


def held(folder: Path) -> list[str]:
    """The same without their numbers."""
    return list(numbers(folder).values())


def files(folder: Path, count: int) -> list[Path]:
    """So many files."""
    found = [folder / f"{n}.txt" for n in range(count)]
    for path in found:
        path.write_text("old")
    return found


def until(true: Callable[[], bool]) -> None:
    """What a thread does takes a moment."""
    for _ in range(1000):
        if true():
            return
        time.sleep(0.01)
    raise AssertionError("it did not come to that")


@pytest.mark.parametrize("count", [1, FEW - 1, FEW, MOST - 1])
def test_what_is_held_is_there_until_it_is_let_go_of(tmp_path: Path, count: int) -> None:
    """Whatever stands in its place by then."""
    many = Replaced()
    for path in files(tmp_path, count):
        many.hold(str(path))
        path.unlink()
    assert len(held(tmp_path)) == count
    many.let_go()
    assert held(tmp_path) == []


def test_never_more_than_so_many_are_held(tmp_path: Path) -> None:
    """A process may have only so many files open, and others need some of them."""
    many = Replaced()
    most = 0
    for path in files(tmp_path, 5 * MOST + 1):
        many.hold(str(path))
        most = max(most, len(held(tmp_path)))
    assert most < MOST
    many.let_go()
    assert held(tmp_path) == []


def test_what_is_not_there_is_not_held(tmp_path: Path) -> None:
    """Nor is that anybody's problem; of a link, it is the link that is held."""
    (tmp_path / "link").symlink_to("nowhere")
    many = Replaced()
    many.hold(str(tmp_path / "nothing"))
    assert held(tmp_path) == []
    many.hold(str(tmp_path / "link"))
    assert held(tmp_path) == [str(tmp_path / "link")]
    many.let_go()
    assert held(tmp_path) == []


@pytest.mark.parametrize("refused", ["socketpair", "start_new_thread", "O_PATH"])
def test_where_the_system_refuses_they_are_let_go_of_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, refused: str
) -> None:
    """No sockets, no more threads, no way to hold anything: nothing is held for good."""

    def refuse(*_: Any) -> Any:
        raise (RuntimeError if refused == "start_new_thread" else OSError)("not here")

    if refused == "O_PATH":
        monkeypatch.delattr(os, "O_PATH")
    else:
        import _socket

        monkeypatch.setattr(_socket if refused == "socketpair" else replaced, refused, refuse)
    many = Replaced()
    for path in files(tmp_path, FEW + 1):
        many.hold(str(path))
    many.let_go()
    assert held(tmp_path) == []


def test_a_run_that_replaces_many_outputs_holds_none_of_them_when_it_is_over(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And all of them are the new ones."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "headway.toml").write_text("")
    word = ["old"]
    plan = Plan("Twice", id="twice")
    for n in range(3 * MOST):
        plan.add(f"n{n}", make=lambda n=n: f"{word[0]} {n}", produces=f"out/{n}.txt", version="1")
    plan.run()
    before = {path.name: path.stat().st_ino for path in (tmp_path / "out").iterdir()}
    word[0] = "new"
    assert len(plan.run(rerun_all=True).made) == 3 * MOST
    until(lambda: held(tmp_path / "out") == [])
    assert [(tmp_path / f"out/{n}.txt").read_text() for n in range(3 * MOST)] == [f"new {n}" for n in range(3 * MOST)]
    assert all(path.stat().st_ino != before[path.name] for path in (tmp_path / "out").iterdir())


def test_where_few_files_may_be_open_others_have_half_of_them(tmp_path: Path) -> None:
    """Each file has the lowest number that is free: what is held is never beyond half of what a process may have."""
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    most = 2 * max(int(fd.name) for fd in OPEN.iterdir()) + 20
    many, paths = Replaced(), files(tmp_path, 3 * MOST)
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, before[1]))
        for path in paths:
            many.hold(str(path))
            assert max(numbers(tmp_path), default=0) <= most // 2
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, before)
        many.let_go()
    assert held(tmp_path) == []


def test_where_it_is_crowded_nothing_is_held(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever replaces files goes on without."""
    monkeypatch.setattr(replaced, "_half_of_all", lambda: 2)
    many = Replaced()
    for path in files(tmp_path, FEW):
        many.hold(str(path))
    assert held(tmp_path) == []
