"""The history of a workspace: which projects there are, how they are related, what they share, what people said."""

from __future__ import annotations

import json
import os
import shutil
import sys
import threading
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest

from headway.core.ids import name_elsewhere
from headway.errors import DamageError, FormatTooNew, NotFound, TryLater, UsageError
from headway.files.identity import find_workspace
from headway.history.upper_shapes import WorkspaceDag
from headway.history.workspace import Workspace
from headway.ledger.lock import FileLock
from tests.places import Land
from tests.workshop import tree

MODEL = {"contract": "Protocol with fields: id, email", "produces": "out/model.txt", "run": "echo user > {output}"}


@pytest.fixture
def land(tmp_path: Path) -> Land:
    """Three projects: web needs api, docs documents api; api and web have run goals, docs none."""
    land = Land(tmp_path / "land")
    land.python("api", "flask", name="Shop_API")
    land.python("web", "flask", "shop-api>=1")
    land.write("docs/mkdocs.yml", "site_name: Docs\nplugins:\n  - mkdocstrings: {paths: [../api/src]}\n")
    land.plan("api", UserModel=MODEL, broken={"run": "exit 3", "produces": []})
    land.plan("web", UserModel=MODEL, page={"requires": ["UserModel"]})
    land.run("api")
    land.run("web")
    return land


def related(dag: WorkspaceDag) -> set[tuple[str, str, str, float]]:
    return {(link.source, link.target, link.relationship, link.confidence) for link in dag.links}


# What is there.


def test_every_project_has_a_card(land: Land) -> None:
    """Goals, artifacts, tech stack, health and how sure it is that this is a project; the id is the project's own."""
    cards = land.workspace.dag().projects
    assert list(cards) == ["api", "docs", "web"]
    assert (cards["web"].summary.goals, cards["web"].summary.completed, cards["web"].summary.artifacts) == (1, 1, 2)
    assert cards["api"].summary.failed == 1
    assert cards["web"].tech_stack == ["python", "flask"]
    assert cards["api"].id == land.project("api").project_id
    assert cards["docs"].summary.goals == 0
    assert cards["docs"].health_score is None
    assert cards["web"].health_score == 1.0
    assert cards["api"].health_score == round(0.3 / 2 + 0.2, 2)
    assert cards["web"].confidence == 1.0
    assert cards["docs"].confidence == 0.72
    assert cards["docs"].evidence == ["mkdocs.yml"]


def test_relations_are_found_with_confidence_and_evidence(land: Land) -> None:
    """Declared dependencies by name, and documentation that points to code; directions as they are declared."""
    dag = land.workspace.dag()
    assert related(dag) == {("web", "api", "dependency", 0.9), ("docs", "api", "documentation", 0.9)}
    assert {link.source: link.evidence for link in dag.links} == {
        "web": ["pyproject.toml needs shop-api"],
        "docs": ["documentation points to ../api/src"],
    }


@pytest.mark.parametrize(
    ("file", "text", "relation"),
    [
        ("a/package.json", '{"name": "a", "dependencies": {"b": "file:../b"}}', ("a", "b", "dependency", 0.95)),
        ("a/package.json", '{"name": "a", "dependencies": {"@x/b": "^1"}}', ("a", "b", "dependency", 0.9)),
        ("a/Cargo.toml", '[package]\nname="a"\n[dependencies]\nb={path="../b"}', ("a", "b", "dependency", 0.95)),
        ("a/go.mod", "module x.io/a\nreplace x.io/b => ../b\n", ("a", "b", "dependency", 0.95)),
        ("a/requirements.txt", "-e ../b\n", ("a", "b", "dependency", 0.95)),
        ("a/pyproject.toml", '[tool.uv.sources]\nb = {path = "../b"}', ("a", "b", "dependency", 0.95)),
        ("a/conf.py", 'sys.path.insert(0, os.path.abspath("../b/src"))', ("a", "b", "documentation", 0.95)),
        ("a/docs/conf.py", 'autoapi_dirs = ["../../b/src"]', ("a", "b", "documentation", 0.9)),
        ("a/.git/config", '[remote "origin"]\n\turl = git@x.io:acme/a.git\n', ("a", "b", "sibling", 0.85)),
    ],
)
def test_what_relates_two_projects(tmp_path: Path, file: str, text: str, relation: tuple[object, ...]) -> None:
    """Each kind of file that says so, with the confidence that it deserves."""
    land = Land(tmp_path / "land")
    land.write("a/pyproject.toml")
    land.write("a/src/x")
    land.write("b/package.json", '{"name": "@x/b"}')
    land.write("b/.git/config", '[remote "origin"]\n\turl = https://x.io/acme/b\n')
    land.write(file, text)
    assert related(land.workspace.dag()) == {relation}


def test_names_that_begin_alike_are_a_hint_and_no_more(tmp_path: Path) -> None:
    """Siblings by name, documentation by name; more than a few of a name say nothing about any two."""
    land = Land(tmp_path / "land")
    for name in ("shop", "shop-web", "shop-docs"):
        land.write(f"{name}/Makefile")
        land.write(f"{name}/go.mod", f"module {name}")
    assert related(land.workspace.dag()) == {
        ("shop-docs", "shop", "documentation", 0.7),
        ("shop-docs", "shop-web", "documentation", 0.7),
        ("shop", "shop-web", "sibling", 0.7),
    }
    for number in range(20):
        land.write(f"part-{number}/go.mod", f"module part{number}")
    assert len(land.workspace.dag().links) == 3


def test_files_that_cannot_be_understood_say_nothing(tmp_path: Path) -> None:
    """A project stays a project; that its file made no sense is part of the evidence."""
    land = Land(tmp_path / "land")
    land.write("a/pyproject.toml", "[project\nname=")
    land.write("b/package.json", '["not", "a", "mapping"]')
    cards = land.workspace.dag().projects
    assert "pyproject.toml (cannot be understood)" in cards["a"].evidence
    assert "package.json (cannot be understood)" in cards["b"].evidence


def test_projects_are_found_two_levels_deep_and_never_in_what_tools_made(tmp_path: Path) -> None:
    """Groups of projects, yes; node_modules, .git, venv and build, no; nor projects inside of projects."""
    land = Land(tmp_path / "land")
    for path in ("one", "group/two", "a/b/too-deep", "node_modules/no", ".hidden/no", "venv/no", "one/inner"):
        land.write(f"{path}/go.mod", "module x")
    assert list(land.workspace.dag().projects) == ["group/two", "one"]


def test_what_several_projects_share(land: Land) -> None:
    """The same bytes, the same contract; tools that two projects use are a pattern, and so is a shared contract."""
    dag = land.workspace.dag()
    assert {(s.kind, s.id, tuple(s.projects)) for s in dag.shared_artifacts} == {
        ("content", "UserModel", ("api", "web")),
        ("contract", "UserModel", ("api", "web")),
    }
    assert dag.shared_artifacts[0].nodes == ["api:main:UserModel", "web:main:UserModel"]
    assert dag.shared_patterns == ["flask-app", "UserModel contract"]
    assert dag.patterns[0].examples == ["api", "web"]
    assert dag.patterns[0].confidence == 0.67


def test_edges_between_projects_point_from_what_is_needed_to_who_needs_it(land: Land) -> None:
    """As everywhere: the target depends on the source."""
    edges = land.workspace.dag().cross_project_edges
    assert {(e.type, e.source_project, e.target_project, e.kind) for e in edges} == {
        ("cross_project", "api", "web", "dependency"),
        ("cross_project", "api", "docs", "documentation"),
    }


# What people say.


def test_link_confirm_and_unlink_are_events_in_the_workspaces_own_ledger(land: Land) -> None:
    """Chained as any ledger; said once, however often; what is said counts over what is found, and is kept."""
    workspace = land.workspace
    workspace.confirm("web", "api")
    workspace.confirm("web", "api")
    workspace.link("docs", "web", relationship="source_code", reason="it has the pages")
    workspace.unlink("docs", "api", reason="not any more")
    lines = (land.root / ".headway/workspace/ledger.jsonl").read_text(encoding="utf-8").splitlines()
    types = [json.loads(line)["type"] for line in lines]
    assert types == ["workspace_created", "link_confirmed", "link_added", "link_removed"]
    assert [json.loads(line)["prev"] for line in lines[1:]] == [json.loads(line)["hash"] for line in lines[:-1]]
    links = {(link.source, link.target): link for link in Workspace(land.root).dag().links}
    assert links.keys() == {("web", "api"), ("docs", "web")}
    assert links["web", "api"].confirmed
    assert links["web", "api"].evidence == ["pyproject.toml needs shop-api", "confirmed by test"]
    assert links["docs", "web"].confidence == 1.0
    assert links["docs", "web"].evidence == ["it has the pages"]


def test_confirming_what_somebody_denied_says_who_and_what_brings_it_back(land: Land) -> None:
    """It was found, and is not said to have never been."""
    workspace = land.workspace
    workspace.unlink("docs", "api", reason="not any more")
    with pytest.raises(NotFound, match="Somebody said that docs and api are not related") as refused:
        workspace.confirm("docs", "api")
    assert refused.value.facts == {"said by": "test", "why": "not any more"}
    assert refused.value.hint.startswith("headway workspace link docs api")
    with pytest.raises(NotFound, match="No relation of docs to web was found"):
        workspace.confirm("docs", "web")


def test_words_about_a_project_follow_it_when_it_moves(land: Land) -> None:
    """It is known by its id; the card says where it was."""
    workspace = land.workspace
    workspace.link("web", "docs", relationship="dependency")
    os.rename(land.root / "web", land.root / "shop-front")
    heard: list[str] = []
    dag = Workspace(land.root, notice=heard.append).dag()
    assert ("shop-front", "docs", "dependency", 1.0) in related(dag)
    assert dag.projects["shop-front"].moved_from == "web"
    assert dag.gone == []
    assert heard == ["web has moved to shop-front"]


def test_words_about_a_project_stay_with_it_when_it_is_copied(land: Land) -> None:
    """A copy has the same id: each is spoken of by its path. When one is deleted, its copy is no return."""
    shutil.copytree(land.root / "web", land.root / "zweb")
    shutil.copytree(land.root / "web", land.root / "aweb")
    workspace = land.workspace
    for name in ("web", "zweb", "aweb"):
        assert workspace.link(name, "docs").source == name
    workspace.unlink("zweb", "docs")
    kept = {source for source, target, *_ in related(land.workspace.dag()) if target == "docs"}
    assert kept == {"web", "aweb"}
    shutil.rmtree(land.root / "web")
    heard: list[str] = []
    dag = Workspace(land.root, notice=heard.append).dag()
    assert heard == ["web is not there any more; it comes back when it returns"]
    assert [entry.path for entry in dag.gone] == ["web"]


def test_the_newest_word_counts_wherever_the_project_stood_when_it_was_said(land: Land) -> None:
    """Said again at the path where it was first said, it is not taken for said already."""
    web, away = land.root / "web", land.root / "shop-front"
    land.workspace.link("web", "docs")
    os.rename(web, away)
    land.workspace.unlink("shop-front", "docs")
    os.rename(away, web)
    assert not any(link.target == "docs" for link in land.workspace.dag().links)
    assert land.workspace.link("web", "docs").source == "web"


def test_a_goal_of_the_workspace_is_made_of_goals_of_its_projects(land: Land) -> None:
    """Its status follows theirs; plans of the workspace's own folder are goals of it as well."""
    workspace = land.workspace
    goal = workspace.set_goal("ship", "Ship the shop", ["api:main", "web:main"])
    assert (goal.status, goal.done, goal.total) == ("failed", 1, 2)
    land.plan("api", UserModel=MODEL, broken={"run": "true", "produces": []})
    land.run("api")
    (goal,) = workspace.dag().goals
    assert (goal.status, goal.parts) == ("complete", {"api:main": "complete", "web:main": "complete"})
    land.plan(".", release={})
    land.run(".")
    assert [(g.id, g.status, g.own) for g in workspace.dag().goals] == [
        ("ship", "complete", False),
        ("main", "complete", True),
    ]
    workspace.drop_goal("ship")
    assert [g.id for g in workspace.dag().goals] == ["main"]


@pytest.mark.parametrize(
    "ask",
    [
        lambda w: w.link("api", "api"),
        lambda w: w.link("api", "apo"),
        lambda w: w.link("api", "web", relationship="marriage"),
        lambda w: w.confirm("api", "docs"),
        lambda w: w.set_goal("x", " "),
        lambda w: w.set_goal("x", "X", ["api:nothing"]),
        lambda w: w.set_goal("x", "X", ["nothing:main"]),
        lambda w: w.drop_goal("x"),
        lambda w: w.link("api", "web", reason="x" * 3000),
    ],
)
def test_what_makes_no_sense_is_refused_and_writes_nothing(land: Land, ask: object) -> None:
    """Not even a folder."""
    before = tree(land.root)
    with pytest.raises(UsageError) as found:
        ask(land.workspace)  # type: ignore[operator]  # a function
    assert found.value.hint
    assert tree(land.root) == before


# Never behind, never in the way.


def test_reading_creates_nothing(land: Land) -> None:
    """Neither in the workspace nor in a project without history."""
    before = tree(land.root)
    land.workspace.dag()
    assert tree(land.root) == before


def test_refresh_keeps_what_was_seen_and_looks_again_only_at_what_changed(land: Land) -> None:
    """The index has RFC-105's keys, a project a line; a change in one project leaves the cards of others as read."""
    land.workspace.refresh()
    file = land.root / ".headway/dag/workspace-index.json"
    document = json.loads(file.read_text(encoding="utf-8"))
    assert {"workspaceId", "lastUpdated", "projects", "crossProjectDependencies", "sharedPatterns"} <= document.keys()
    assert {"id", "name", "path", "summary", "techStack", "lastActivity"} <= document["projects"][0].keys()
    assert {"goals": 1, "completed": 0, "artifacts": 1}.items() <= document["projects"][0]["summary"].items()
    assert file.read_text(encoding="utf-8").count("\n") == len(document["projects"]) + 2
    assert (land.root / ".headway/.gitignore").read_text(encoding="utf-8") == "*\n"
    # A mark that nobody could have found out shows which cards were not looked at again.
    file.write_text(file.read_text(encoding="utf-8").replace('"techStack":["python","flask"]', '"techStack":["mark"]'))
    land.plan("api", "second", extra={})
    land.run("api", "second")
    cards = land.workspace.dag().projects
    assert cards["web"].tech_stack == ["mark"]
    assert cards["api"].tech_stack == ["python", "flask"]
    assert cards["api"].summary.goals == 2
    untouched = file.stat().st_mtime_ns
    land.workspace.refresh()
    again = file.stat().st_mtime_ns
    land.workspace.refresh()
    assert untouched != again == file.stat().st_mtime_ns


def test_a_kept_object_is_never_behind(land: Land) -> None:
    """Runs, edits of build files, new, deleted and returning projects show with the next look."""
    workspace = land.workspace
    workspace.refresh()
    first = workspace.dag()
    assert workspace.dag().last_updated == first.last_updated
    land.plan("docs", pages={})
    land.run("docs")
    assert workspace.dag().projects["docs"].summary.completed == 1
    land.python("web", "django")
    dag = workspace.dag()
    assert "django" in dag.projects["web"].tech_stack
    assert ("web", "api") not in {(link.source, link.target) for link in dag.links}
    land.write("new/go.mod", "module new")
    assert "new" in workspace.dag().projects
    land.write("group/deep/notes.txt")
    workspace.dag()
    land.write("group/deep/go.mod", "module deep")
    assert "group/deep" in workspace.dag().projects


@pytest.mark.parametrize("refreshed", [True, False])
def test_shared_artifacts_come_and_go_with_changes(land: Land, refreshed: bool) -> None:
    """The same answer whether the cache knows the others or everything is looked at anew."""
    if refreshed:
        land.workspace.refresh()
    land.plan("web", UserModel={**MODEL, "run": "echo other > {output}", "contract": "Something else"})
    land.run("web")
    assert land.workspace.dag().shared_artifacts == []
    land.plan("docs", UserModel=MODEL)
    land.run("docs")
    for _ in range(2):
        found = land.workspace.dag().shared_artifacts
        assert [(s.kind, s.projects) for s in found] == [("content", ["api", "docs"]), ("contract", ["api", "docs"])]
        land.workspace.refresh()
    shutil.rmtree(land.root / "docs")
    assert land.workspace.dag().shared_artifacts == []


def test_without_its_cache_the_index_is_made_again(land: Land) -> None:
    """A cache that is gone, foreign or of another index is never believed."""
    wanted = msgspec.to_builtins(land.workspace.dag().shared_artifacts)
    land.workspace.refresh()
    cache = land.root / ".headway/cache.sqlite"
    for harm in (cache.unlink, lambda: cache.write_bytes(b"no database"), lambda: None):
        harm()
        land.plan("docs", pages={"run": f"echo {os.urandom(4).hex()} > {{output}}"})
        land.run("docs")
        assert msgspec.to_builtins(land.workspace.dag().shared_artifacts) == wanted
        land.workspace.refresh()


def test_a_deleted_project_drops_out_with_a_note_and_comes_back(land: Land) -> None:
    """Said once, kept in the index, gone from it when the project returns, wherever."""
    land.workspace.refresh()
    shutil.move(land.root / "web", land.root.parent / "away")
    heard: list[str] = []
    workspace = Workspace(land.root, notice=heard.append)
    dag = workspace.refresh()
    assert heard == ["web is not there any more; it comes back when it returns"]
    assert [(g.path, g.note) for g in dag.gone] == [("web", heard[0])]
    assert [(g.path, g.note) for g in Workspace(land.root).dag().gone] == [("web", heard[0])]
    assert {link.source for link in dag.links} == {"docs"}
    shutil.move(land.root.parent / "away", land.root / "elsewhere")
    dag = Workspace(land.root).refresh()
    assert dag.gone == []
    assert [c.path for c in dag.projects] == ["api", "docs", "elsewhere"]


# Bad input.


def test_an_index_of_a_newer_version_is_refused_untouched_and_a_damaged_one_made_again(land: Land) -> None:
    """As everywhere."""
    land.workspace.refresh()
    file = land.root / ".headway/dag/workspace-index.json"
    text = file.read_text(encoding="utf-8")
    file.write_text(text.replace('"version":1', '"version":9', 1), encoding="utf-8")
    before = tree(land.root)
    with pytest.raises(FormatTooNew, match="newer Headway"):
        land.workspace.dag()
    with pytest.raises(FormatTooNew):
        land.workspace.refresh()
    assert {p: e[3] for p, e in tree(land.root).items()} == {p: e[3] for p, e in before.items()}
    file.write_text(text[:100], encoding="utf-8")
    heard: list[str] = []
    assert len(Workspace(land.root, notice=heard.append).dag().projects) == 3
    assert heard == ["dag/workspace-index.json cannot be read: the workspace is looked at anew"]


def test_a_ledger_of_a_newer_version_or_with_a_flipped_byte_is_refused_untouched(land: Land) -> None:
    """Never believed, never replaced; a torn end is set aside by the next writer."""
    workspace = land.workspace
    workspace.link("web", "docs")
    ledger = land.root / ".headway/workspace/ledger.jsonl"
    data = ledger.read_bytes()
    ledger.write_bytes(data.replace(b"link_added", b"link_addeD"))
    with pytest.raises(DamageError) as found:
        Workspace(land.root).dag()
    assert found.value.hint.startswith("put a backup back, or move ")
    ledger.write_bytes(data + b'{"v":1,"seq":3,"half')
    Workspace(land.root).link("docs", "web")
    assert ("docs", "web", "dependency", 1.0) in related(Workspace(land.root).dag())
    assert b"ledger_recovered" in ledger.read_bytes()


@pytest.mark.skipif(sys.platform == "win32", reason="no fork")
def test_a_folder_that_may_not_be_read_is_said_and_the_rest_is_shown(land: Land) -> None:
    """By somebody who is not root, so in a process of its own."""
    secret = land.root / "secret"
    (secret / "inner").mkdir(parents=True)
    for folder in (land.root, *land.root.parents):
        if folder.stat().st_uid == os.getuid() and folder.stat().st_mode & 0o005 != 0o005:
            folder.chmod(folder.stat().st_mode | 0o055)
    secret.chmod(0)
    reading, writing = os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            if os.getuid() == 0:
                os.setgid(65534)
                os.setuid(65534)
            dag = Workspace(land.root).dag()
            os.write(writing, "\n".join([*dag.projects, *dag.notes]).encode())
        except Exception as error:  # noqa: BLE001  # told to the parent, whatever it is
            os.write(writing, repr(error).encode())
        finally:
            os._exit(0)
    os.close(writing)
    with os.fdopen(reading, encoding="utf-8") as pipe:
        said = pipe.read()
    os.waitpid(pid, 0)
    secret.chmod(0o755)
    assert said.splitlines() == ["api", "docs", "web", "secret cannot be read: Permission denied"]


def test_a_circle_of_links_ends_and_a_linked_project_counts_once(land: Land) -> None:
    """A folder is known by its own path where it has one here."""
    (land.root / "loop").symlink_to(land.root)
    (land.root / "aaa").symlink_to(land.root / "web")
    (land.root / "group").mkdir()
    (land.root / "group" / "again").symlink_to("../group")
    (land.root / "nowhere").symlink_to("nothing")
    assert list(land.workspace.dag().projects) == ["api", "docs", "web"]


def test_a_project_that_vanishes_while_it_is_looked_at_does_no_harm(land: Land) -> None:
    """Whatever the moment: it is there or it is not."""
    stop = threading.Event()

    def come_and_go() -> None:
        for _ in range(200):
            if stop.is_set():
                return
            land.python("fleeting")
            shutil.copytree(land.root / "api/.headway", land.root / "fleeting/.headway")
            shutil.rmtree(land.root / "fleeting")

    thread = threading.Thread(target=come_and_go)
    thread.start()
    try:
        for _ in range(30):
            found = set(Workspace(land.root).dag().projects)
            assert {"api", "docs", "web"} <= found <= {"api", "docs", "web", "fleeting"}
    finally:
        stop.set()
        thread.join(30)
    assert set(land.workspace.dag().projects) == {"api", "docs", "web"}


def test_a_thousand_projects(tmp_path: Path) -> None:
    """All of one organisation, each needing the one before: no relation for every two of them."""
    land = Land(tmp_path / "land")
    for n in range(1000):
        land.write(f"p{n:04d}/go.mod", f"module x.io/p{n:04d}\nrequire x.io/p{n - 1:04d} v1.0.0\n")
        land.write(f"p{n:04d}/.git/config", '[remote "origin"]\n\turl = https://x.io/acme/p\n')
    dag = land.workspace.dag()
    assert len(dag.projects) == 1000
    assert len(dag.links) == 999
    land.workspace.refresh()
    assert len(land.workspace.dag().projects) == 1000


def test_workspaces_may_overlap(land: Land) -> None:
    """One inside of another: each has its own view and its own ledger."""
    land.python("group/one")
    land.python("group/two", "one")
    inner = Workspace(land.root / "group")
    inner.link("one", "two")
    outer = land.workspace.dag()
    assert {"group/one", "group/two", "api"} <= outer.projects.keys()
    assert ("group/two", "group/one", "dependency", 0.9) in related(outer)
    assert ("group/one", "group/two", "dependency", 1.0) not in related(outer)
    assert ("one", "two", "dependency", 1.0) in related(Workspace(land.root / "group").dag())


def test_a_project_whose_history_cannot_be_read_is_shown_with_its_problem(land: Land) -> None:
    """It is there, and the others are as ever."""
    (land.root / "api/.headway/project.json").write_text('{"format": 9, "id": "x"}', encoding="utf-8")
    cards = land.workspace.dag().projects
    assert "newer Headway" in cards["api"].problem
    assert cards["web"].summary.goals == 1


def test_two_refreshes_at_once_take_turns(land: Land, monkeypatch: pytest.MonkeyPatch) -> None:
    """The second waits, and is told after a while; then it finds what the first has written."""
    land.workspace.refresh()
    lock = FileLock(str(land.root / ".headway/dag/workspace.lock"))
    monkeypatch.setattr("headway.history.workspace.PATIENCE", 0.05)
    assert lock.acquire(wait=1)
    with pytest.raises(TryLater):
        land.workspace.refresh()
    lock.release()
    one, other = land.workspace, land.workspace
    one.dag()
    other.dag()
    land.plan("docs", UserModel=MODEL)
    land.run("docs")
    one.refresh()
    assert [s.projects for s in other.refresh().shared_artifacts] == [["api", "docs", "web"]] * 2


def test_what_somebody_takes_back_in_the_same_moment_is_said(land: Land, monkeypatch: pytest.MonkeyPatch) -> None:
    """It was kept, and the other word came after it: no bug, and nothing to repair."""
    workspace, other = land.workspace, land.workspace

    def after(word: Callable[[], object]) -> None:
        refresh = Workspace.refresh
        monkeypatch.setattr(workspace, "refresh", lambda: (word(), refresh(workspace)))

    after(lambda: other.unlink("docs", "web"))
    with pytest.raises(TryLater, match="taken back by somebody else at once") as told:
        workspace.link("docs", "web")
    assert told.value.hint == "headway dag workspace shows what stands"
    after(lambda: other.unlink("web", "api"))
    with pytest.raises(TryLater):
        workspace.confirm("web", "api")
    after(lambda: other.drop_goal("ship"))
    with pytest.raises(TryLater):
        workspace.set_goal("ship", "Ship it")


def test_which_workspace_a_project_belongs_to(tmp_path: Path) -> None:
    """The nearest that somebody made one, else the folder around it; never the home folder by itself."""
    land = Land(tmp_path / "home/land")
    land.python("api")
    home = str(tmp_path / "home")
    (tmp_path / "home/.git").mkdir()
    api = str(land.root / "api")
    assert find_workspace(api, home=home) == str(land.root)
    assert find_workspace(str(land.root), home=home) == ""
    Workspace(tmp_path / "home").set_goal("all", "All of it")
    assert find_workspace(api, home=home) == home
    Workspace(land.root).set_goal("mine", "Mine")
    assert find_workspace(api, home=home) == str(land.root)


def test_a_folder_that_is_not_there_is_no_workspace(tmp_path: Path) -> None:
    """And is not created."""
    with pytest.raises(NotFound):
        Workspace(tmp_path / "nothing")
    assert list(tmp_path.iterdir()) == []


def test_names_of_other_projects() -> None:
    """The way, the plan if it is named, and the artifact."""
    assert name_elsewhere("../api:users:UserModel") == ("../api:users", "UserModel")
    assert name_elsewhere("../../x/api:UserModel") == ("../../x/api", "UserModel")
    assert name_elsewhere("../api:") is None
    assert name_elsewhere("../api") is None
