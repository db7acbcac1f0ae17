"""Phase ledgers as files: many at a time, and beside those of other plans."""

from __future__ import annotations

import json
import os
import threading
import time
from collections.abc import Collection
from errno import ENOSPC
from pathlib import Path

import msgspec
import pytest

from headway import bulk
from headway.bulk import Order, Over, write_over_one_by_one
from headway.core.events import Event, PlanImported, PlanReplanned, Record, UnitExpanded
from headway.core.plan import ArtifactSpec, Phase, Pipeline, Settings
from headway.core.state import Attempt, Completion, Expansion, Failure, Output, State
from headway.disk import REAL, RealDisk
from headway.projections import phases

MANY = 133
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


def _write(home: Path, state: State, seq: int) -> None:
    phases.write(REAL, str(home), state, UNITS, seq, texts=lambda _: [])


def _files(home: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in home.iterdir() if path.suffix == ".json"}


@pytest.mark.parametrize(
    ("event", "units"),
    [
        (PlanReplanned(version=2, parent=1, reason="r", failed=("u001/write",), removed=("u002/write",)), UNITS[1:3]),
        (UnitExpanded(pipeline="scene", artifacts=(ArtifactSpec(id="u003/write~2"),)), UNITS[3:4]),
        (PlanImported(format=1, plan_id="book", project_id="p", source="s", state=msgspec.Raw(b"{}")), UNITS),
        (
            UnitExpanded(
                pipeline="scene",
                units=("u004", "new"),
                artifacts=tuple(ArtifactSpec(id=f"{u}/x") for u in ("u004", "new")),
            ),
            UNITS[4:5],
        ),
    ],
)
def test_whatever_an_event_says_of_phases_their_unit_is_told_anew(event: Event, units: list[str]) -> None:
    """What is tried in a new place, is to be something else, or comes from elsewhere; not units nobody has come to."""
    assert sorted(phases.touched(_state(), [Record(1, "", "", event, "", "")])) == units


def test_many_are_written_as_few_are(tmp_path: Path) -> None:
    """In place of what was there, in the layout of an indented document, and nothing else is left in the folder."""
    for seq in (1, 2, 3):
        _write(tmp_path / "many", _state(seq=seq), seq)
    for unit in UNITS:
        phases.write(REAL, str(tmp_path / "few"), _state(seq=3), [unit], 3, texts=lambda _: [])
    assert _files(tmp_path / "many") == _files(tmp_path / "few")
    assert {path.name for path in (tmp_path / "many").iterdir() if path.name.startswith(".")} == {".lock", ".book.seq"}
    text = (tmp_path / "many/u007.json").read_text()
    assert text == json.dumps(json.loads(text), indent=2) + "\n"


@pytest.mark.parametrize("units", [UNITS, UNITS[:3]], ids=["many", "few"])
def test_texts_that_are_named_for_the_first_time_are_there_before_they_are_named(
    tmp_path: Path, units: list[str]
) -> None:
    """Those of attempts since the last time, whichever round they belong to; what is in the way is said at the end."""
    state = _state(seq=6, units=units)
    for artifact_id, done in state.completed.items():
        state.completed[artifact_id] = msgspec.structs.replace(done, prompt=f"p{artifact_id[:4]}")
        old = Attempt(seq=3, at="", ok=True, prompt=f"o{artifact_id[:4]}")
        state.past[artifact_id] = (old, msgspec.structs.replace(old, seq=5, prompt=f"q{artifact_id[:4]}"))
    home, folder = tmp_path / "phases", tmp_path / "texts"

    def texts(digests: Collection[str]) -> list[Order]:
        absent = [digest for digest in digests if not (folder / digest).exists()]
        assert all(f"/texts/{d}" not in data.decode() for d in absent for data in _files(home).values())
        return [(str(folder / digest), digest.encode(), 0o444, None, None) for digest in absent]

    folder.write_text("in the way")
    with pytest.raises(NotADirectoryError):
        phases.write(REAL, str(home), state, units, 6, texts=texts, since=4)
    assert (len(_files(home)), phases.reflected(str(home), "book")) == (len(units), None)
    for path in home.iterdir():
        path.unlink()
    folder.unlink()
    phases.write(REAL, str(home), state, units, 6, texts=texts, since=4)
    assert {path.name for path in folder.iterdir()} == {f"{new}{u}" for new in "pq" for u in units}
    assert phases.amiss(str(home), state, units, texts) == {}
    (folder / f"p{units[0]}").unlink()
    (folder / f"q{units[1]}").unlink()

    def absent(digests: Collection[str]) -> list[Order]:
        return [(digest, b"", 0o444, None, None) for digest in digests if not (folder / digest).exists()]

    assert phases.amiss(str(home), state, units, absent) == {units[0]: False}, "not of what newer attempts replaced"


def test_many_units_of_two_plans_stand_beside_each_other(tmp_path: Path) -> None:
    """Whichever plan came first keeps the plain names."""
    _write(tmp_path, _state("book"), 1)
    _write(tmp_path, _state("film"), 1)
    _write(tmp_path, _state("book", seq=2), 2)
    plans = {name: json.loads(data)["plan_id"] for name, data in _files(tmp_path).items()}
    assert plans == {**{f"{u}.json": "book" for u in UNITS}, **{f"{u}@film.json": "film" for u in UNITS}}


def test_many_are_written_over_where_they_stand_but_not_through_links(tmp_path: Path) -> None:
    """Shorter or longer; who linked to one has what it was, and what stands there as a link leads nowhere else."""
    _write(tmp_path / "home", _state(seq=6), 6)
    inode = (tmp_path / "home/u001.json").stat().st_ino
    (tmp_path / "copy").hardlink_to(tmp_path / "home/u002.json")
    (tmp_path / "home/u003.json").rename(tmp_path / "elsewhere")
    (tmp_path / "home/u003.json").symlink_to(tmp_path / "elsewhere")
    before = (tmp_path / "copy").read_bytes()
    _write(tmp_path / "home", _state(seq=7), 7)
    _write(tmp_path / "new", _state(seq=7), 7)
    assert _files(tmp_path / "home") == _files(tmp_path / "new")
    assert (tmp_path / "home/u001.json").stat().st_ino == inode
    assert (tmp_path / "copy").read_bytes() == before
    assert not (tmp_path / "home/u003.json").is_symlink()


def test_until_all_are_written_it_is_known_that_they_are_not(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever is cut off half-way leaves it to others to write them all."""
    _write(tmp_path, _state(seq=6), 6)
    room = iter(range(49))

    def write_over(orders: list[Over]) -> list[int]:
        return [
            0 if next(room, None) is not None and write_over_one_by_one([order]) == [0] else ENOSPC for order in orders
        ]

    class Full(RealDisk):
        def write(self, _fd: int, _data: bytes | memoryview, _offset: int) -> int:
            return 0

    monkeypatch.setattr(bulk, "write_over", write_over)
    with pytest.raises(OSError, match="No space left"):
        phases.write(Full(), str(tmp_path), _state(seq=7), UNITS, 7, texts=lambda _: [])
    monkeypatch.undo()
    assert phases.reflected(str(tmp_path), "book") == 6
    assert phases.amiss(str(tmp_path), _state(seq=7), UNITS, lambda _: []).keys() == set(UNITS[49:])
    _write(tmp_path, _state(seq=7), 7)
    assert not phases.amiss(str(tmp_path), _state(seq=7), UNITS, lambda _: [])


@pytest.mark.parametrize("lot", [1, 20, MANY, 1000])
def test_each_lot_is_written_whatever_stands_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, lot: int) -> None:
    """Files that are not there, another plan's, edited ones, and those of units that are gone."""
    monkeypatch.setattr(phases, "LOT", lot)
    _write(tmp_path, _state("film", units=UNITS[10:20]), 1)
    _write(tmp_path, _state(seq=6), 6)
    for unit in UNITS[30:40]:
        (tmp_path / f"{unit}.json").unlink()
    (tmp_path / "u050.json").write_bytes((tmp_path / "u050.json").read_bytes().replace(b"success", b"edited!"))
    (tmp_path / "u051.json").write_text(json.dumps(json.loads((tmp_path / "u051.json").read_text())))
    film = (tmp_path / "u010.json").read_bytes()
    state = _state(seq=7, units=UNITS[:-9])
    _write(tmp_path, state, 7)
    _write(tmp_path / "new", state, 7)
    expected = _files(tmp_path / "new")
    beside = {f"{u}@book.json": expected.pop(f"{u}.json") for u in UNITS[10:20]}
    found = _files(tmp_path)
    assert {name: found.pop(f"{name}.json") for name in UNITS[10:20]}["u010"] == film
    assert found == expected | beside


def test_nothing_is_written_any_more_when_another_plan_may_come_in(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Not even a lot that was being written when something went wrong with the one before."""
    monkeypatch.setattr(phases, "LOT", 50)
    _write(tmp_path, _state(seq=6), 6)
    (tmp_path / "u000.json").unlink()
    (tmp_path / "u000.json").mkdir()

    def write_over(orders: list[Over]) -> list[int]:
        time.sleep(0.2 if len(orders) > 1 else 0)
        return write_over_one_by_one(orders)

    monkeypatch.setattr(bulk, "write_over", write_over)
    with pytest.raises(OSError, match="u000"):
        _write(tmp_path, _state(seq=7), 7)
    assert not [thread for thread in threading.enumerate() if thread.name == "headway-phases"]
    assert phases.reflected(str(tmp_path), "book") == 6


def test_what_was_written_over_before_the_machine_was_started_is_written_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Power may have been cut before the system had written it out, whatever was written of few units since."""
    _write(tmp_path, _state(seq=6), 6)
    phases.write(REAL, str(tmp_path), _state(seq=7), UNITS[:1], 7, texts=lambda _: [])
    assert phases.reflected(str(tmp_path), "book") == 7
    monkeypatch.setattr(phases, "boot_id", lambda: "another")
    assert phases.reflected(str(tmp_path), "book") is None
    monkeypatch.undo()
    phases.write(REAL, str(tmp_path / "few"), _state(seq=7), UNITS[:1], 7, texts=lambda _: [])
    monkeypatch.setattr(phases, "boot_id", lambda: "another")
    assert phases.reflected(str(tmp_path / "few"), "book") == 7


def test_many_are_not_written_over_where_no_boot_is_known(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody could tell afterwards whether power was cut."""
    monkeypatch.setattr(phases, "boot_id", lambda: "")
    _write(tmp_path, _state(seq=6), 6)
    inode = (tmp_path / "u001.json").stat().st_ino
    _write(tmp_path, _state(seq=7), 7)
    assert (tmp_path / "u001.json").stat().st_ino != inode
    assert phases.reflected(str(tmp_path), "book") == 7


def test_half_a_file_belongs_to_the_plan_that_its_first_lines_name(tmp_path: Path) -> None:
    """Whoever else has a unit of that name writes beside it."""
    _write(tmp_path, _state("book"), 1)
    torn = tmp_path / "u001.json"
    torn.write_bytes(torn.read_bytes()[:150] + bytes(20))
    _write(tmp_path, _state("film"), 1)
    _write(tmp_path, _state("book", seq=2), 2)
    plans = {name: json.loads(data)["plan_id"] for name, data in _files(tmp_path).items()}
    assert plans == {**{f"{u}.json": "book" for u in UNITS}, **{f"{u}@film.json": "film" for u in UNITS}}


def test_what_is_no_file_is_replaced_by_one(tmp_path: Path) -> None:
    """Without waiting for somebody at the other end of a pipe."""
    _write(tmp_path, _state(), 1)
    (tmp_path / "u002.json").unlink()
    os.mkfifo(tmp_path / "u002.json")
    _write(tmp_path, _state(seq=2), 2)
    assert not phases.amiss(str(tmp_path), _state(seq=2), UNITS, lambda _: [])


def test_what_verify_said_is_said_of_that_attempt_alone() -> None:
    """A newer one that failed has not passed."""
    made, failed = Completion(seq=1, at="then", verified=True), Failure(seq=2, at="now", error="no", code="exit")
    state = msgspec.structs.replace(_state(units=["u"]), completed={"u/write": made})
    assert phases.unit_document(state, "u")["phases"]["write"]["verdict"] == {"word": "pass", "by": "verify"}
    state = msgspec.structs.replace(state, failed={"u/write": failed})
    assert phases.unit_document(state, "u")["phases"]["write"]["verdict"] is None
