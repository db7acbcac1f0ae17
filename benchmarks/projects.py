"""Folders in which the layered graph has been made, by Headway and by other tools, ready to be measured."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

from benchmarks import peers
from benchmarks.layers import Layers
from benchmarks.measure import Row, Setting, Spent, child

HEADWAY = str(Path(sys.executable).with_name("headway"))
RUN = (HEADWAY, "run")
PYTHON_RUN = (sys.executable, "plan.py")
FORMS: dict[str, Callable[[Layers, Path], None]] = {
    "headway.json": Layers.headway_json,
    "headway.yaml": Layers.headway_yaml,
    "plan.py": Layers.headway_python,
}


class Peer(NamedTuple):
    """Another tool: how its graph is written, what makes all of it, and what says that nothing is to be done."""

    name: str
    write: Callable[[Layers, Path], None]
    words: tuple[str, ...] = ()
    first: bool = True
    """Whether it has to run once before it knows that all is up to date."""
    asks: tuple[str, ...] = ()
    """Words that make it say, by its exit code, whether anything is left to do."""
    says: str = ""
    """Or what it then prints."""


PEERS = {
    "make": Peer("make", Layers.makefile, first=False, asks=("-q",)),
    "ninja": Peer("ninja", Layers.ninja, asks=("-n",), says="no work to do"),
    "doit": Peer("doit", Layers.dodo, words=("--reporter", "zero")),
}


def words_for(form: str) -> tuple[str, ...]:
    """The command that runs a plan of this form."""
    return PYTHON_RUN if form == "plan.py" else RUN


def written(setting: Setting, form: str, count: int) -> Path:
    """A project with that plan, of which nothing is made."""
    folder = setting.fresh(form.replace(".", "-"))
    FORMS[form](Layers(count), folder)
    return folder


def made(setting: Setting, form: str, count: int) -> Path:
    """A project of which all is made, and which is known to have nothing to do."""
    folder = written(setting, form, count)
    for _ in range(3):  # make it; leave a stamp as soon as the files have come to rest; be quick
        child(words_for(form), folder)
    return folder


class Ready(NamedTuple):
    """A peer in a folder where all is up to date."""

    name: str
    folder: Path
    words: tuple[str, ...]

    def run(self) -> Spent:
        """Let it find that out, or make what has changed."""
        return child(self.words, self.folder)


def ready(setting: Setting, name: str, count: int) -> Ready | Row:
    """A peer that has made it all, or a row that says why there is none."""
    peer = PEERS[name]
    command = peers.find(name, setting.peers)
    if command is None:
        return Row(name, None, note="skipped: not installed")
    folder = setting.fresh(name)
    peer.write(Layers(count), folder)
    found = Ready(name, folder, (command, *peer.words))
    if peer.first:
        found.run()
    if peer.asks:
        _assert_nothing_to_do((command, *peer.asks), folder, peer.says)
    return found


def _assert_nothing_to_do(words: Sequence[str], folder: Path, says: str) -> None:
    """Asked before anything is measured, in a way that makes nothing: no figure of ours counts a tool's real work."""
    answer = subprocess.run(words, cwd=folder, capture_output=True, text=True, check=False)
    if answer.returncode or says not in answer.stdout:
        raise AssertionError(f"{words[0]} finds something to do: {answer.stdout[:200]}{answer.stderr[:200]}")


def state(folder: Path) -> int:
    """Bytes under .headway."""
    return sum(path.stat().st_size for path in (folder / ".headway").rglob("*") if path.is_file())
