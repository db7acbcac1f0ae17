"""Work by hand follows the same order as a run's: files that are changed in place, units one after another."""

from __future__ import annotations

from pathlib import Path

import pytest

from headway.errors import HeadwayError
from headway.life import Life
from headway.work import Meant
from tests.behaviour.crew import Crew

SHARED = """\
id: p
goal: Write a log
artifacts:
  first: {modifies: [log.txt]}
  reader: {requires: [first]}
  second: {modifies: [log.txt]}
"""
UNITS = """\
id: p
goal: Write a book
artifacts:
  outline: {produces: outline.json}
pipelines:
  scene:
    order: sequential
    units: {from: outline, items: 'scenes[*]', max: 5}
    phases:
      write: {outputs: {text: 'out/{unit}.txt'}}
      check: {}
"""


def waits_for(crew: Crew, artifact_id: str) -> str:
    with pytest.raises(HeadwayError) as refused:
        crew.life("bob").claim("p", artifact_id)
    assert refused.value.error_code == "artifact.waiting"
    return str(refused.value.facts["waits for"])


def test_a_file_is_changed_in_place_by_one_after_another(tmp_path: Path) -> None:
    """In the order of the plan, and by nobody while somebody else reads or changes it."""
    crew = Crew(tmp_path / "project", SHARED)
    crew.write("log.txt", "0")
    assert crew.offered() == ["first"]
    assert crew.next().waiting["second"] == "waits for first"
    assert waits_for(crew, "second") == "first"
    token = crew.life("ann").claim("p", "first")["token"]
    assert waits_for(crew, "second") == "first"
    crew.write("log.txt", "1")
    crew.life("ann").complete("p", "first", token=token)
    crew.life("ann").claim("p", "reader")
    assert waits_for(crew, "second") == "reader"
    crew.life("ann").complete("p", "reader", token=None, text=b"read")
    assert crew.make("second", "never looked at").status == "complete"
    assert crew.next().status == "done"


@pytest.mark.parametrize("kept", [False, True])
def test_units_are_worked_off_by_hand_one_after_another(tmp_path: Path, kept: bool) -> None:
    """They appear when what names them is done, without a run; the next begins when the one before it has ended."""
    crew = Crew(tmp_path / "project", UNITS)
    hands = Life(crew.work, by="ann")
    if kept:
        hands.__enter__()
    try:
        hands.claim("p", "outline")
        crew.write("outline.json", '{"scenes": ["a", "b"]}')
        hands.complete("p", "outline", token=None)
        (crew.root / "out").mkdir()
        done = []
        for _ in range(4):
            claimed = hands.claim_next(Meant("p"))
            assert len(hands.next(Meant("p")).offers) == 0, "one after another"
            for path in claimed["produces"]:
                crew.write(path, "text")
            hands.complete("p", claimed["artifact"], token=claimed["token"], text=b"done")
            done.append(claimed["artifact"])
        assert done == ["a/write", "a/check", "b/write", "b/check"]
        with pytest.raises(HeadwayError) as nothing:
            hands.claim_next(Meant("p"))
        assert nothing.value.error_code in ("next.done", "next.waiting")
    finally:
        hands.__exit__()
    assert crew.run().exit_code == 0
    assert crew.status() == "complete"
