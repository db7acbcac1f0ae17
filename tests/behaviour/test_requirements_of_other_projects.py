"""`requires: [../api:UserModel]`: what another project of the workspace made is read, never run."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from headway.core.plan import ArtifactSpec, PlanSpec
from headway.engine.result import RunResult
from headway.errors import PlanInvalid
from headway.history.workspace import Workspace
from headway.life import Life
from headway.work import Meant, Work
from tests.places import Land
from tests.workshop import tree


@pytest.fixture
def land(tmp_path: Path) -> Land:
    """Project `api` with a model made from a schema, and `web` with a page that requires it."""
    land = Land(tmp_path / "land")
    land.write("api/schema.sql", "v1\n")
    land.plan("api", "users", UserModel={"sources": ["schema.sql"], "run": "cat schema.sql > {output}"})
    page = {"requires": ["../api:UserModel"], "run": "cat {inputs.UserModel} > {output}"}
    land.plan("web", page=page, site={"requires": ["page"]})
    return land


def text(land: Land, path: str) -> str:
    return (land.root / path).read_text(encoding="utf-8")


def ran(land: Land, path: str = "web") -> RunResult:
    result: RunResult = land.run(path)
    return result


def test_what_another_project_made_is_an_input_like_any_other(land: Land) -> None:
    """By its plain name in commands; recorded in full, so that later plans over there change nothing about it."""
    land.run("api", "users")
    before = tree(land.root / "api")
    assert ran(land).made == ["page", "site"]
    assert text(land, "web/out/page.txt") == "v1\n"
    assert tree(land.root / "api") == before
    state = land.project("web").show("main").state
    assert state.artifacts["page"].requires == ("../api:users:UserModel",)
    assert list(state.completed["page"].fp.inputs) == ["../api:users:UserModel"]
    assert ran(land).made == []


def test_what_was_made_before_the_plan_over_there_had_a_name_is_not_made_again_for_it(land: Land) -> None:
    """It was asked for by the way alone, and is; what was not made yet is recorded in full."""
    assert ran(land).blocked == {"page": "../api:UserModel", "site": "page"}
    land.run("api", "users")
    assert ran(land).made == ["page", "site"]
    page = {"requires": ["../api:UserModel"], "run": "cat {inputs.UserModel} > {output}"}
    land.plan("web", page=page, site={"requires": ["page"]}, more=page)
    assert ran(land).made == ["more"]
    artifacts = land.project("web").show("main").state.artifacts
    assert artifacts["page"].requires == ("../api:UserModel",)
    assert artifacts["more"].requires == ("../api:users:UserModel",)


def test_a_name_stays_what_it_was_recorded_as_when_others_come_to_have_it_too(land: Land) -> None:
    """Whoever asks for it anew has to say which."""
    land.run("api", "users")
    assert ran(land).made == ["page", "site"]
    land.plan("api", "people", UserModel={"produces": "out/other.txt"})
    land.run("api", "people")
    page = {"requires": ["../api:UserModel"], "run": "cat {inputs.UserModel} > {output}"}
    land.plan("web", page=page, site={"requires": ["page"], "run": "echo changed > {output}"})
    assert ran(land).made == ["site"]
    land.plan("web", page=page, more=page)
    with pytest.raises(PlanInvalid, match=r"artifact more requires \.\./api:UserModel, which plans \S+ and \S+ have"):
        ran(land)


def test_a_change_over_there_makes_stale_here_what_it_touched(land: Land, monkeypatch: pytest.MonkeyPatch) -> None:
    """Once it was made again there; the same bytes make nothing here."""
    monkeypatch.chdir(land.root)
    land.run("api", "users")
    ran(land)
    land.write("api/schema.sql", "v2\n")
    blocked = ran(land)
    assert blocked.blocked == {"page": "../api:users:UserModel", "site": "page"}
    command = "headway run UserModel --plan-id users --project api"
    assert blocked.elsewhere == {"../api:users:UserModel": command}
    land.run("api", "users")
    assert ran(land).made == ["page", "site"]
    assert text(land, "web/out/page.txt") == "v2\n"
    land.plan("api", "users", UserModel={"sources": ["schema.sql"], "run": "cat <schema.sql > {output}"})
    land.run("api", "users")
    assert ran(land).made == []


def test_what_is_not_there_blocks_and_says_what_helps(land: Land, monkeypatch: pytest.MonkeyPatch) -> None:
    """No project, nothing made yet, no such artifact, several plans with it: each in words, and nothing is written."""
    monkeypatch.chdir(land.root)
    said = []

    def note() -> str:
        work = Work(land.project("web"))
        found = work.why(work.meant(None, None), "site")["elsewhere"]
        ((name, entry),) = found.items()
        said.append(entry["command"])
        return f"{name} {entry['problem']}"

    before = tree(land.root / "api")
    assert note() == "../api:UserModel is missing: nothing was made in ../api yet"
    assert tree(land.root / "api") == before
    os.rename(land.root / "api", land.root / "away")
    assert note() == "../api:UserModel is missing: there is no project ../api"
    os.rename(land.root / "away", land.root / "api")
    land.plan("api", "other", Another={})
    land.run("api", "other")
    assert note() == "../api:UserModel is missing: no plan of ../api has it"
    land.project("web").save_plan(str(land.root / "web/headway.json"))
    land.run("api", "users")
    assert ran(land).made == ["page", "site"]
    assert said == ["headway run --project api", "headway dag workspace", "headway plans list --project api"]


def test_a_name_that_several_plans_over_there_have_is_a_plan_problem(land: Land) -> None:
    """The problem names them, and how to say which."""
    land.run("api", "users")
    land.plan("api", "people", UserModel={"produces": "out/other.txt"})
    land.run("api", "people")
    with pytest.raises(PlanInvalid) as found:
        ran(land)
    assert "../api:people and ../api:users have" in str(found.value)
    assert "say which: ../api:people:UserModel" in str(found.value)


def test_the_command_that_helps_can_be_typed_where_one_is(land: Land, monkeypatch: pytest.MonkeyPatch) -> None:
    """The other project is named from the folder that one stands in."""
    for place, way in ((".", "api"), ("web", "../api"), ("web/out", "../../api")):
        (land.root / place).mkdir(exist_ok=True)
        monkeypatch.chdir(land.root / place)
        assert list(ran(land).elsewhere.values()) == [f"headway run --project {way}"]


def test_texts_of_another_project_are_read_from_its_blobs(land: Land) -> None:
    """An artifact without a file is an input as well."""
    land.plan("api", "users", UserModel={"produces": [], "run": "echo a text"})
    land.run("api", "users")
    ran(land)
    assert text(land, "web/out/page.txt") == "a text\n"


def test_chains_of_projects_are_judged_to_their_end(land: Land) -> None:
    """app requires web requires api: a stale source at the far end blocks at this one, and names the place."""
    land.plan("app", screen={"requires": ["../web:main:site"], "run": "cat {inputs.site} > {output}"})
    land.run("api", "users")
    ran(land)
    assert ran(land, "app").made == ["screen"]
    land.write("api/schema.sql", "v2\n")
    found = ran(land, "app")
    assert found.blocked == {"screen": "../web:main:site"}
    land.run("api", "users")
    ran(land)
    assert ran(land, "app").made == []


def test_a_circle_over_several_projects_is_a_plan_problem(land: Land) -> None:
    """It names the whole of it."""
    land.run("api", "users")
    ran(land)
    back = {"requires": ["../web:main:page"], "run": "cat {inputs.page} > {output}"}
    land.plan("api", "users", UserModel=back)
    with pytest.raises(PlanInvalid) as found:
        land.run("api", "users")
    assert "../web:main:page → users:UserModel → ../web:main:page" in str(found.value)


@pytest.mark.parametrize(
    ("required", "code"),
    [("../../outside:x:Y", "plan.outside"), ("../web:main:page", "plan.outside"), ("../link:x:Y", "plan.outside")],
)
def test_a_way_may_lead_neither_out_of_the_workspace_nor_back(land: Land, required: str, code: str) -> None:
    """Also by a link; a wider workspace that somebody made reaches as far as it reaches."""
    (land.root.parent / "outside").mkdir()
    (land.root / "link").symlink_to(land.root.parent / "outside")
    spec = PlanSpec(goal="g", id="main", artifacts=(ArtifactSpec(id="page", requires=(required,)),))
    assert [p.code for p in land.project("web").check(spec)] == [code]
    Workspace(land.root.parent).set_goal("wide", "A wider workspace")
    assert [p.code for p in land.project("web").check(spec)] == ([code] if "web" in required else [])


def test_who_claims_is_told_as_well(land: Land, monkeypatch: pytest.MonkeyPatch) -> None:
    """`next` says what an artifact waits for in another project."""
    monkeypatch.chdir(land.root)
    land.plan("web", page={"requires": ["../api:users:UserModel"], "run": ""})
    work = Work(land.project("web"))
    found = Life(work, by="test").next(work.meant(None, None))
    assert found.offers == []
    assert "headway run --project api" in found.waiting["page"]


def test_the_workspace_shows_who_requires_what_of_whom(land: Land) -> None:
    """An edge from artifact to artifact, and a relation that is certain."""
    land.run("api", "users")
    ran(land)
    dag = land.workspace.dag()
    (link,) = dag.links
    assert (link.source, link.target, link.confidence) == ("web", "api", 1.0)
    assert link.evidence == ["plan main requires ../api:users:UserModel"]
    edge = dag.cross_project_edges[0]
    assert (edge.source, edge.target, edge.kind) == ("api:users:UserModel", "web:main:page", "requires")


def test_no_nothing_to_do_stamp_hides_a_change_in_another_project(
    land: Land, capsys: pytest.CaptureFixture[str]
) -> None:
    """As people type it: a run with nothing to do, and the next one after a change over there."""
    api, web = str(land.root / "api"), str(land.root / "web")
    users = str(land.root / "api/users.json")
    assert land.cli(capsys, "run", "--project", api, "--plan", users).code == 0
    assert land.cli(capsys, "run", "--project", web).code == 0
    assert land.cli(capsys, "run", "--project", web, "--json").json["made"] == []
    land.write("api/schema.sql", "v2\n")
    assert land.cli(capsys, "run", "--project", web).code == 1
    land.cli(capsys, "run", "--project", api, "--plan", users)
    assert land.cli(capsys, "run", "--project", web, "--json").json["made"] == ["page", "site"]


def test_whoever_stays_sees_another_project_begin(land: Land) -> None:
    """A project in which nothing was made when it was first asked for is asked for again."""
    work = Work(land.project("web"))
    saved = Meant(work.take_in(work.meant(None, None)))
    with Life(work, by="ann") as life:
        assert "page" in life.next(saved).waiting
        land.run("api", "users")
        assert [offer.spec.id for offer in life.next(saved).offers] == ["page"]
