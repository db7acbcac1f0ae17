"""A plan handed on in the middle of its life: what was decided, said and begun is there for whoever goes on."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from headway.core.plan import ArtifactSpec, Profile
from headway.errors import HeadwayError
from tests.behaviour.crew import Crew

PLAN = """\
id: p
goal: Write a page
replan: {most: 5}
artifacts:
  outline: {produces: outline.txt, milestone: first}
  page:
    requires: [outline]
    produces: page.txt
    gates: {style: {kind: council, by: [ann, bob, eve], quorum: 2}, size: {run: "test -s {output}"}}
  index: {requires: [page]}
  extra: {}
  odd: {}
  late: {}
"""


@pytest.fixture
def here(tmp_path: Path) -> Crew:
    """Approved, replanned, half-judged, failed, skipped and in somebody's hands, all at once."""
    crew = Crew(tmp_path / "here", PLAN)
    crew.work.project.set_profile("p", Profile(parallelization_enabled=True, max_concurrent_tasks=4, locked=True))
    crew.planning("ann").approve("p", note="go")
    crew.make("outline")
    crew.make("page")
    crew.say("page", "style", "APPROVE", "ann", "fine")
    crew.say("page", "style", "CONCERNS", "eve", "long")
    crew.life("cy").claim("p", "odd")
    crew.life("cy").fail("p", "odd", token=None, error="cannot be done")
    crew.planning("bob").replan("p", {"add": [ArtifactSpec(id="even")], "remove": ["odd"]}, reason="odd failed")
    crew.planning("ann").approve("p")
    crew.life("bob").skip("p", ["extra"], reason="nobody wants it")
    token = crew.life("dee").claim("p", "late")["token"]
    crew.life("dee").heartbeat("p", "late", token=token, note="half of it is there")
    return crew


def test_an_export_carries_profile_approvals_evidence_versions_claims_and_notes(here: Crew, tmp_path: Path) -> None:
    """Field by field the same state; only the project is another, and the file it came from stays behind."""
    here.work.project.export_plan("p", str(tmp_path / "out"))
    there = Crew(tmp_path / "there")
    there.work.project.import_plan(str(tmp_path / "out"))
    was, now = (msgspec.to_builtins(crew.state) for crew in (here, there))
    assert now["claims"]["late"].pop("left"), "its holder stayed behind"
    assert was["claims"]["late"].pop("left", "") == ""
    other = {name for name in was if was[name] != now.get(name)}
    assert other <= {"project_id", "proposal", "updated_at", "exported", "sound"}, other
    for name in ("profile", "approval", "evidence", "made", "replans", "claims", "notes", "skipped", "milestones"):
        assert now[name], f"{name} is part of what was handed on"
    assert there.planning().approved("p")["drift_detected"] is False


def test_whoever_takes_it_over_goes_on_where_it_stood(here: Crew, tmp_path: Path) -> None:
    """The claim stands under its token, the words at the gate count, and the locked profile is still locked."""
    here.work.project.export_plan("p", str(tmp_path / "out"))
    there = Crew(tmp_path / "there")
    there.work.project.import_plan(str(tmp_path / "out"))
    for name in ("outline.txt", "page.txt"):
        there.write(name, here.read(name))
    token = here.state.claims["late"].seq
    assert there.life("dee").complete("p", "late", token=token, text=b"all of it").status == "complete"
    assert there.say("page", "style", "APPROVE", "bob").status == "complete"
    assert there.offered() == ["index", "even"]
    with pytest.raises(HeadwayError, match="is locked"):
        there.work.project.set_profile("p", Profile())


def test_work_in_hand_can_be_taken_over_where_the_plan_was_handed_to(here: Crew, tmp_path: Path) -> None:
    """Nobody waits for a lease of somebody who is elsewhere; their note says how far it is, and their token is void."""
    here.work.project.export_plan("p", str(tmp_path / "out"))
    there = Crew(tmp_path / "there")
    there.work.project.import_plan(str(tmp_path / "out"))
    claimed = there.life("eve").claim("p", "late")
    assert (claimed["continues"]["by"], claimed["continues"]["note"]) == ("dee", "half of it is there")
    with pytest.raises(HeadwayError) as refused:
        there.life("dee").complete("p", "late", token=here.state.claims["late"].seq, text=b"mine")
    assert refused.value.error_code == "claim.lost"
