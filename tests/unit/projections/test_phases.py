"""Phase ledgers as files: many at a time, and beside those of other plans."""

from __future__ import annotations

import json
from pathlib import Path

from headway.core.plan import ArtifactSpec, Phase, Pipeline, Settings
from headway.core.state import Completion, Expansion, Output, State
from headway.disk import REAL
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
    phases.write(REAL, str(home), state, UNITS, seq)


def _files(home: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in home.iterdir() if not path.name.startswith(".")}


def test_many_are_written_as_few_are(tmp_path: Path) -> None:
    """In place of what was there, in the layout of an indented document, and nothing else is left in the folder."""
    for seq in (1, 2, 3):
        _write(tmp_path / "many", _state(seq=seq), seq)
    for unit in UNITS:
        phases.write(REAL, str(tmp_path / "few"), _state(seq=3), [unit], 3)
    assert _files(tmp_path / "many") == _files(tmp_path / "few")
    assert {path.name for path in (tmp_path / "many").iterdir() if path.name.startswith(".")} == {".lock", ".book.seq"}
    text = (tmp_path / "many/u007.json").read_text()
    assert text == json.dumps(json.loads(text), indent=2) + "\n"


def test_many_units_of_two_plans_stand_beside_each_other(tmp_path: Path) -> None:
    """Whichever plan came first keeps the plain names."""
    _write(tmp_path, _state("book"), 1)
    _write(tmp_path, _state("film"), 1)
    _write(tmp_path, _state("book", seq=2), 2)
    plans = {name: json.loads(data)["plan_id"] for name, data in _files(tmp_path).items()}
    assert plans == {**{f"{u}.json": "book" for u in UNITS}, **{f"{u}@film.json": "film" for u in UNITS}}
