"""Artifacts without a recipe: made by whoever claims them."""

from __future__ import annotations

from pathlib import Path

import pytest

from headway.errors import HeadwayError
from headway.life import Life
from headway.project import Project
from headway.work import Work

PLAN = """\
id: team
goal: Write and review a page
artifacts:
  outline:
    produces: outline.txt
    run: "echo outline > {output}"
  page:
    requires: [outline]
    produces: page.txt
    verify: "test -s {output}"
    agent: writer
  review:
    requires: [page]
  site:
    requires: [page, review]
    produces: site.txt
    run: "cat {inputs.page} {inputs.review} > {output}"
"""


class Team:
    """One plan, and several pairs of hands on it."""

    def __init__(self, root: Path) -> None:
        self.root = root
        (root / "headway.yaml").write_text(PLAN)
        self.work = Work(Project(root))
        self.work.take_in(self.work.meant(str(root / "headway.yaml"), None))

    def hands(self, name: str) -> Life:
        return Life(self.work, by=name)

    def next(self) -> list[str]:
        return [offer.spec.id for offer in self.hands("anybody").next(self.work.meant(None, "team")).offers]

    def write(self, text: str) -> None:
        (self.root / "page.txt").write_text(text)


@pytest.fixture
def team(tmp_path: Path) -> Team:
    """A team whose run has made what it could."""
    made = Team(tmp_path)
    result = made.work.run("team")
    assert (result.made, result.exit_code) == (["outline"], 75)
    assert result.waiting["page"] == "headway claim page"
    return made


def test_a_plan_is_worked_off_by_hands_and_by_runs(team: Team) -> None:
    """What is next is offered in order; text and files both count; the run makes the rest."""
    assert team.next() == ["page"]
    team.hands("ann").claim("team", "page")
    assert team.next() == []
    team.write("hello\n")
    team.hands("ann").complete("team", "page", token=None)
    assert team.next() == ["review"]
    team.hands("bob").claim("team", "review")
    team.hands("bob").complete("team", "review", token=None, text=b"fine")
    assert team.work.run("team").made == ["site"]
    assert (team.root / "site.txt").read_text() == "hello\nfine"
    assert team.next() == []


def test_what_becomes_stale_is_offered_again(team: Team) -> None:
    """A changed requirement makes a hand-made artifact stale, and it is asked for once more."""
    team.hands("ann").claim("team", "page")
    team.write("one")
    team.hands("ann").complete("team", "page", token=None)
    (team.root / "outline.txt").write_text("a better outline")
    team.work.accept("team", ["outline"])
    assert team.next() == ["page"]


def test_only_the_holder_finishes_a_claim(team: Team) -> None:
    """Neither somebody else nor an old token completes it, and nothing changes."""
    token = team.hands("ann").claim("team", "page")["token"]
    team.write("x")
    before = team.work.project.show("team").position
    for name, given in (("bob", None), ("bob", token - 1)):
        with pytest.raises(HeadwayError):
            team.hands(name).complete("team", "page", token=given)
    with pytest.raises(HeadwayError, match="being made already"):
        team.hands("bob").claim("team", "page")
    assert team.work.project.show("team").position == before
    team.hands("ann").complete("team", "page", token=token)


def test_a_claim_that_is_given_back_can_be_taken(team: Team) -> None:
    """Release frees it; the old token is worth nothing then."""
    token = team.hands("ann").claim("team", "page")["token"]
    team.hands("ann").release("team", "page", reason="lunch")
    team.hands("bob").claim("team", "page")
    team.write("x")
    with pytest.raises(HeadwayError, match="no longer yours"):
        team.hands("ann").complete("team", "page", token=token)


def test_verify_and_missing_files_refuse_a_completion(team: Team) -> None:
    """What is claimed to be done is looked at first."""
    team.hands("ann").claim("team", "page")
    with pytest.raises(HeadwayError, match="not all there"):
        team.hands("ann").complete("team", "page", token=None)
    team.write("")
    with pytest.raises(HeadwayError, match="verify does not agree"):
        team.hands("ann").complete("team", "page", token=None)
    team.write("x")
    assert team.hands("ann").complete("team", "page", token=None).verified


def test_a_text_about_files_is_a_note_and_never_lost(team: Team) -> None:
    """What makes files has no other text; one that is too long for the record is refused, and nothing is recorded."""
    hands = team.hands("ann")
    hands.claim("team", "page")
    team.write("hello")
    with pytest.raises(HeadwayError, match="too long"):
        hands.complete("team", "page", token=None, text=b"x" * 10_000_000)
    assert hands.complete("team", "page", token=None, text=b"it says hello").completion.note == "it says hello"


def test_a_failure_blocks_and_a_skip_does_not(team: Team) -> None:
    """Failing says why; skipping lets dependents go on without."""
    team.hands("ann").claim("team", "page")
    team.hands("ann").fail("team", "page", token=None, error="no idea")
    assert team.work.project.show("team").failed == {"page": "no idea"}
    team.hands("ann").claim("team", "page")
    team.write("x")
    team.hands("ann").complete("team", "page", token=None)
    with pytest.raises(HeadwayError, match="reason"):
        team.hands("ann").skip("team", ["review"], reason=" ")
    team.hands("ann").skip("team", ["review"], reason="no time")
    assert team.work.run("team").made == ["site"]
    assert (team.root / "site.txt").read_text() == "x"


def test_nothing_is_claimed_before_its_time(team: Team) -> None:
    """An artifact whose requirements are not up to date cannot be claimed."""
    with pytest.raises(HeadwayError, match="not up to date") as refused:
        team.hands("ann").claim("team", "review")
    assert refused.value.hint == "headway claim page"
    team.hands("ann").claim("team", "page")
    with pytest.raises(HeadwayError) as refused:
        team.hands("bob").claim("team", "review")
    assert refused.value.hint == "headway status: page is in the hands of ann"
