"""Work by hand follows the same order as a run's: files that are changed in place, units one after another."""

from __future__ import annotations

from pathlib import Path

import pytest

from headway.briefing import Own, briefing
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

LOOP = """\
id: p
goal: Write until it is good
artifacts:
  book: {requires: ['scene:*/apply']}
pipelines:
  scene:
    units: [a]
    phases:
      repair: {outputs: {text: 'a.txt', notes: 'notes.txt'}, requires_outputs: [text]}
      lint: {outputs: {report: '{unit}.json'}, repeat: [repair, lint], until: 'report.status == "pass"'}
      apply: {}
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
        assert nothing.value.error_code == "next.run", "what stands for all units follows from them"
    finally:
        hands.__exit__()
    assert crew.run().exit_code == 0
    assert crew.status() == "complete"


def test_where_a_loop_made_by_hand_goes_on_everybody_is_sent_to_a_run(tmp_path: Path) -> None:
    """Whether there is another round follows from what was made: nobody waits, or is told to claim what is refused."""
    crew = Crew(tmp_path / "project", LOOP)
    crew.run()

    def sent_to() -> tuple[str, str, str]:
        with pytest.raises(HeadwayError) as nothing:
            crew.life("bob").claim_next(Meant("p"))
        told = briefing(crew.state, crew.next(), seq=crew.seq, own=Own())["do"]
        return nothing.value.hint, crew.work.status(Meant("p"))["next"], told.partition(":")[0]

    for n, verdict in ((1, "fail"), (2, "pass")):
        for phase, path, text in (("repair", "a.txt", f"text {n}"), ("lint", "a.json", f'{{"status": "{verdict}"}}')):
            crew.life().claim("p", f"a/{phase}~{n}")
            crew.write(path, text)
            crew.life().complete("p", f"a/{phase}~{n}", token=None)
        assert crew.offered() == []
        assert sent_to() == ("headway run", "headway run", "run")
        crew.run()
    crew.make("a/apply")
    assert sent_to() == ("headway run", "headway run", "run"), "book requires what stands for all units"
    crew.run()
    crew.make("book")
    assert crew.status() == "complete"


def test_what_is_changed_in_place_has_to_be_there_and_what_need_not_be_written_does_not(tmp_path: Path) -> None:
    """As for a run: a phase by hand is complete with the outputs that it must have, whoever else writes to them."""
    crew = Crew(tmp_path / "project", LOOP)
    crew.run()
    crew.life().claim("p", "a/repair~1")
    with pytest.raises(HeadwayError, match=r"not all there\n  missing: a\.txt\n"):
        crew.life().complete("p", "a/repair~1", token=None)
    crew.write("a.txt", "text")
    assert crew.life().complete("p", "a/repair~1", token=None).status == "complete"
