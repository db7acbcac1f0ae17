"""Phase ledgers as files: many at a time, beside those of other plans, and through kills and power cuts."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from headway.core.plan import ArtifactSpec, Phase, Pipeline, Settings
from headway.core.state import Completion, Expansion, Output, State
from headway.disk import REAL, ROOM
from headway.projections import phases
from headway.testing import WatchedDisk

MANY = 2 * ROOM + 5
UNITS = [f"u{i:03}" for i in range(MANY)]


def _state(plan_id: str = "book", seq: int = 1, units: list[str] = UNITS) -> State:
    """A plan all of whose units were made by this event."""
    text = "y" * (1 + seq % 7) * 9
    return State(
        plan_id=plan_id,
        project_id="p",
        goal="A book",
        settings=Settings(pipelines=(Pipeline(name="scene", phases=(Phase(id="write"),)),)),
        units={"scene": Expansion(cause="", units=tuple(units))},
        artifacts={f"{u}/write": ArtifactSpec(id=f"{u}/write", unit=u, phase="write") for u in units},
        completed={f"{u}/write": Completion(seq=seq, at=text, outputs=(Output(f"{u}.txt", text),)) for u in units},
    )


def _write(home: Path, state: State, seq: int, disk: WatchedDisk | None = None) -> None:
    phases.write(disk or REAL, str(home), state, UNITS, seq)


def _files(home: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in home.iterdir() if not path.name.startswith(".")}


def test_many_are_written_as_few_are(tmp_path: Path) -> None:
    """In place of what was there, in the layout of an indented document, and nothing else is left in the folder."""
    for seq in (1, 2, 3):
        _write(tmp_path / "many", _state(seq=seq), seq)
    for unit in UNITS:
        phases.write(REAL, str(tmp_path / "few"), _state(seq=3), [unit], 3)
    assert _files(tmp_path / "many") == _files(tmp_path / "few")
    assert len(list((tmp_path / "many").iterdir())) == MANY + 1
    text = (tmp_path / "many/u007.json").read_text()
    assert text == json.dumps(json.loads(text), indent=2) + "\n"


def test_a_writer_that_is_killed_leaves_whole_files(tmp_path: Path) -> None:
    """After whichever step: each file is the old one, the new one or none, and who comes next writes them all."""

    class Killed(BaseException):
        pass

    class Dead(WatchedDisk):
        """A disk on which nothing happens any more after a step, not even tidying up."""

        def step(self, operation: str) -> None:
            if self.steps > at:
                raise Killed
            super().step(operation)
            if self.steps > at:
                raise Killed

    old, new = tmp_path / "old", tmp_path / "new"
    _write(old, _state(seq=1), 1)
    _write(new, _state(seq=2), 2)
    before, after = _files(old), _files(new)
    for at in (*range(1, 6), 200, *range(ROOM * 4 + 1, ROOM * 4 + 6), ROOM * 6, ROOM * 7):
        home = tmp_path / f"at{at}"
        _write(home, _state(seq=1), 1)
        with pytest.raises(Killed):
            _write(home, _state(seq=2), 2, Dead())
        found = _files(home)
        assert all(data in (before[name], after[name]) for name, data in found.items())
        assert len(found) >= MANY - 1
        assert phases.reflected(str(home), "book") == 1
        _write(home, _state(seq=2), 2)
        assert _files(home) == after
        for path in home.iterdir():  # they were this process's, which is alive: another would have removed them
            if path.suffix == ".tmp":
                os.utime(path.rename(str(path).replace(f".{os.getpid()}.", ".999999999.")), (0, 0))
        _write(home, _state(seq=2), 2)
        assert len(list(home.iterdir())) == MANY + 1


def test_what_others_hold_is_not_written_into(tmp_path: Path) -> None:
    """A copy by a hard link stays what it was; in place of a link there is a file of ours, and nothing behind it."""
    home, elsewhere = tmp_path / "phases", tmp_path / "elsewhere"
    _write(home, _state(seq=1), 1)
    was = (home / "u001.json").read_bytes()
    os.link(home / "u001.json", tmp_path / "copy")
    elsewhere.write_text("mine")
    (home / "u002.json").unlink()
    (home / "u002.json").symlink_to(elsewhere)
    (home / "u003.json").chmod(0o400)
    _write(home, _state(seq=2), 2)
    assert (tmp_path / "copy").read_bytes() == was
    assert elsewhere.read_text() == "mine"
    assert not (home / "u002.json").is_symlink()
    assert {json.loads(data)["seq"] for data in _files(home).values()} == {2}


def test_many_units_of_two_plans_stand_beside_each_other(tmp_path: Path) -> None:
    """Whichever plan came first keeps the plain names."""
    _write(tmp_path, _state("book"), 1)
    _write(tmp_path, _state("film"), 1)
    _write(tmp_path, _state("book", seq=2), 2)
    plans = {name: json.loads(data)["plan_id"] for name, data in _files(tmp_path).items()}
    assert plans == {**{f"{u}.json": "book" for u in UNITS}, **{f"{u}@film.json": "film" for u in UNITS}}


def test_what_was_written_in_an_earlier_boot_is_not_relied_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The power may have gone before it was on the disk."""
    _write(tmp_path, _state(), 7)
    assert phases.reflected(str(tmp_path), "book") == 7
    monkeypatch.setattr("headway.projections.phases.boot_id", lambda: "another")
    assert phases.reflected(str(tmp_path), "book") is None
