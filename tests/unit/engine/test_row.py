"""What one thread makes one after the other: files from which nothing else came are written and kept in columns."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from headway import bulk
from headway.engine.row import TOGETHER, Outcome, Row
from headway.engine.scribe import Scribe
from headway.errors import StorageFailed
from headway.files.blobs import Blobs
from headway.files.observe import Observer
from headway.files.outputs import Outputs

MANY = TOGETHER + 20
FILES = {f"out/{n % 3}/{n}.txt": f"number {n}\n".encode() for n in range(MANY)}


@pytest.fixture
def outputs(tmp_path: Path) -> Outputs:
    return begun(tmp_path)


def begun(root: Path) -> Outputs:
    """The outputs of a project that has none."""
    root.mkdir(exist_ok=True)
    return Outputs(str(root), Blobs(str(root / ".headway/blobs")), Observer(str(root)))


def plainly(row: Row) -> list[Outcome]:
    """All files, each of an artifact from which nothing else came."""
    for path, data in FILES.items():
        row.end_with((Outcome(path, True), path, data))
    return row.tell()


def like_any_other(row: Row) -> list[Outcome]:
    """The same, as of artifacts of which more may have to be told."""
    for path, data in FILES.items():
        outcome = Outcome(path, True)
        row.add(outcome, [row.place(outcome, path, data, "", later=True)])
        row.end(outcome)
    return row.tell()


def test_a_plain_file_comes_to_the_same_as_any_other(tmp_path: Path) -> None:
    """The same files, blobs, outcomes in the same order, and the same that is known of each afterwards."""
    one, other = begun(tmp_path / "one"), begun(tmp_path / "other")
    told = plainly(Row(one))
    assert told == like_any_other(Row(other))
    assert [(outcome.id, outcome.ok) for outcome in told] == [(path, True) for path in FILES]
    for outputs in (one, other):
        files = {path: (Path(outputs.root) / path).read_bytes() for path in FILES}
        assert (files, sorted(outputs.observer.changed)) == (FILES, sorted(FILES))
        assert all(outputs.observer.entries[output.path].rest() > 0 for outcome in told for output in outcome.outputs)
        assert {outputs.blobs.get(output.digest) for outcome in told for output in outcome.outputs} == {*FILES.values()}


class Slow(Scribe):
    """Does nothing of what it is given until it is asked to."""

    def __init__(self) -> None:
        super().__init__()
        self.given: list[Callable[[], object]] = []

    def take(self, write: Callable[[], object]) -> bool:
        self.given.append(write)
        return True


@pytest.mark.parametrize("make", [plainly, like_any_other])
def test_files_are_handed_over_while_more_of_their_row_is_made(
    outputs: Outputs, make: Callable[[Row], list[Outcome]]
) -> None:
    """As soon as there are so many of them; what is left is told with the row, and all of it in the end."""
    row = Row(outputs)
    row.scribe = scribe = Slow()
    told = make(row)
    assert (len(scribe.given), len(told)) == (1, MANY - TOGETHER)
    assert not (Path(outputs.root) / next(iter(FILES))).exists()
    scribe.given[0]()
    assert {outcome.id for outcome in (*told, *row.tell())} == {*FILES}


def test_behind_files_that_could_not_be_written_nothing_is_worth_going_on(
    outputs: Outputs, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever makes more of the row is told with the next lot, or at its end."""
    row = Row(outputs)

    def fail(*_: object, **__: object) -> None:
        raise OSError("no space left")

    monkeypatch.setattr(bulk, "write", fail)
    monkeypatch.setattr(outputs, "place", fail)
    ended = [row.end_with((Outcome(path, True), path, data)) for path, data in FILES.items()]
    assert ended == [True] * (TOGETHER - 1) + [False] + [True] * (MANY - TOGETHER)
    assert row.write() is False


def test_plain_files_among_others_are_told_of_in_their_order(outputs: Outputs) -> None:
    """Whoever is told first was made first, whatever else is to be told of it."""
    row = Row(outputs)
    for n, (path, data) in enumerate(FILES.items()):
        outcome = Outcome(path, True)
        if n % 5 == 3:
            row.add(outcome, [row.place(outcome, path, data, "", later=n % 2 == 0)])
            row.end(outcome)
        else:
            row.end_with((outcome, path, data))
    told = row.tell()
    assert [outcome.id for outcome in told] == list(FILES)
    assert [[output.path for output in outcome.outputs] for outcome in told] == [[path] for path in FILES]
    assert {path: (Path(outputs.root) / path).read_bytes() for path in FILES} == FILES


def test_what_stands_where_a_plain_file_belongs_is_kept(outputs: Outputs) -> None:
    """And is in nobody's way but that one's."""
    theirs = Path(outputs.root) / "out/1/4.txt"
    theirs.parent.mkdir(parents=True)
    theirs.write_text("theirs")
    told = plainly(Row(outputs))
    assert [outcome.id for outcome in told if outcome.stood] == ["out/1/4.txt"]
    assert [outputs.blobs.get(kept.digest) for outcome in told for kept in outcome.stood] == [b"theirs"]
    assert {path: (Path(outputs.root) / path).read_bytes() for path in FILES} == FILES
    assert all(outcome.ok and len(outcome.outputs) == 1 for outcome in told)


def test_a_plain_file_whose_folder_cannot_be_had_fails_alone(outputs: Outputs) -> None:
    """Nothing of the others is lost with it."""
    (Path(outputs.root) / "out").mkdir()
    (Path(outputs.root) / "out/2").write_text("no folder")
    told = plainly(Row(outputs))
    assert {outcome.id.split("/")[1] for outcome in told if not outcome.ok} == {"2"}
    assert {outcome.id.split("/")[1] for outcome in told if outcome.ok} == {"0", "1"}
    assert all(outcome.code == "output.parent" for outcome in told if not outcome.ok)


def test_a_plain_file_that_cannot_be_kept_fails_alone(outputs: Outputs, monkeypatch: pytest.MonkeyPatch) -> None:
    """Once all of them at once could not be."""
    put_all = outputs.blobs.put_all

    def refuse(many: Any, named: Any = None) -> list[str]:
        if FILES["out/1/7.txt"] in many:
            raise StorageFailed("No room", hint="make room")
        return put_all(many, named)

    monkeypatch.setattr(outputs.blobs, "put_all", refuse)
    told = plainly(Row(outputs))
    assert [outcome.id for outcome in told if not outcome.ok] == ["out/1/7.txt"]
    assert all(len(outcome.outputs) == 1 for outcome in told)


def test_plain_files_go_into_the_pack_in_one_write(outputs: Outputs, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where they were written to their paths in several, and some are not plain."""
    puts: list[int] = []
    put_all = outputs.blobs.put_all

    def count(many: Any, named: Any = None) -> list[str]:
        puts.append(len(many))
        return put_all(many, named)

    monkeypatch.setattr(outputs.blobs, "put_all", count)
    plainly(Row(outputs))
    row, text = Row(outputs), Outcome("text", True)
    row.end_with((Outcome("plain", True), "out/plain.txt", b"plain"))
    row.add(text, [row.place(text, "out/text.txt", b"text", "", later=True)])
    row.end(text)
    row.tell()
    assert puts == [MANY, 2]


def test_what_a_system_gives_up_on_is_kept_nevertheless(outputs: Outputs, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever it says of many, each of them is asked for."""
    write = bulk.write

    def give_up(orders: list[bulk.Order]) -> list[bulk.Answer]:
        if len(orders) > 1:
            raise MemoryError
        return write(orders)

    monkeypatch.setattr(bulk, "write", give_up)
    assert all(outcome.ok and len(outcome.outputs) == 1 for outcome in plainly(Row(outputs)))
    assert {path: (Path(outputs.root) / path).read_bytes() for path in FILES} == FILES
