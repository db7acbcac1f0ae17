"""Hands that keep the ledger open answer by the world of now, as those do that begin anew with every call."""

from __future__ import annotations

from pathlib import Path

import pytest

from headway.errors import HeadwayError
from headway.life import Life
from headway.work import Meant
from tests.behaviour.crew import Crew

OPEN = """\
id: p
goal: Write
artifacts:
  notes: {produces: notes.txt, sources: [raw.txt]}
  draft: {requires: [notes], produces: draft.txt}
  a: {}
  b: {instructions: as ever}
  c: {requires: ['q:x']}
"""


def test_hands_kept_open_see_the_files_as_they_are(tmp_path: Path) -> None:
    """A source that changes between two calls counts: for what is offered, and for what is recorded as made from it."""
    crew = Crew(tmp_path / "project", OPEN.replace("  c: {requires: ['q:x']}\n", ""))
    crew.write("raw.txt", "one")
    with Life(crew.work, by="ann") as hands:
        token = hands.claim("p", "notes")["token"]
        crew.write("raw.txt", "two")
        crew.write("notes.txt", "of two")
        hands.complete("p", "notes", token=token)
        assert crew.next().done == 1, "it was made from what there was when it was finished"
        assert hands.claim_next(Meant("p"))["artifact"] == "draft"
        hands.release("p", "draft", reason="later")
        crew.write("raw.txt", "three")
        with pytest.raises(HeadwayError, match="requires what is not up to date"):
            hands.claim("p", "draft")
        assert hands.claim_next(Meant("p"))["artifact"] == "a"
        assert [offer.spec.id for offer in hands.next(Meant("p")).offers] == ["notes", "b"]


def test_hands_kept_open_offer_what_the_plan_says_now(tmp_path: Path) -> None:
    """Others edit, finish and skip meanwhile: an offer from before is looked at anew."""
    crew = Crew(tmp_path / "project", OPEN.replace("  c: {requires: ['q:x']}\n", ""))
    crew.write("raw.txt", "one")
    with Life(crew.work, by="ann") as hands:
        assert hands.claim_next(Meant("p"))["artifact"] == "notes"
        crew.planning("bob").edit("p", "b", {"instructions": "otherwise"}, reason="r")
        crew.make("a", by="bob")
        claimed = hands.claim_next(Meant("p"))
        assert (claimed["artifact"], claimed["instructions"]) == ("b", "otherwise")


def test_hands_kept_open_see_what_other_plans_have_made(tmp_path: Path) -> None:
    """What another plan has to make first is waited for only until it has."""
    crew = Crew(tmp_path / "project")
    crew.write("q.yaml", "{id: q, goal: Q, artifacts: {x: {produces: x.txt, run: 'echo x > {output}'}}}")
    crew.work.project.save_plan(str(crew.root / "q.yaml"))
    crew.propose(OPEN)
    crew.write("raw.txt", "one")
    with Life(crew.work, by="ann") as hands:
        with pytest.raises(HeadwayError, match="another plan has to make first"):
            hands.claim("p", "c")
        crew.work.run("q")
        token = hands.claim("p", "c")["token"]
        (crew.root / "x.txt").write_text("x\n", encoding="utf-8")
        assert hands.complete("p", "c", token=token, text=b"c").status == "complete"
