"""The history of a machine: named workspaces and roots, what their projects are made with, how they are doing."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path

import pytest

from headway.errors import FormatTooNew, LedgerDamaged, UsageError
from headway.history.cards import health
from headway.history.environment import Environment
from headway.history.workspace import Workspace
from headway.history.workspace_cache import GoalFacts
from tests.places import Land
from tests.workshop import tree


@pytest.fixture
def land(tmp_path: Path) -> Land:
    """Two projects; the same failure in both, and a file that goal after goal makes."""
    land = Land(tmp_path / "land")
    land.python("api", "flask")
    land.python("web", "flask", "api")
    for plan in ("main", "second", "third"):
        land.plan("api", plan, page={"produces": "out/page.txt", "run": f"echo {plan} > {{output}}"})
        land.run("api", plan)
        (land.root / "api/out/page.txt").unlink()
    land.plan("api", "main", bad={"run": "exit 3"})
    land.plan("web", "main", bad={"run": "exit 3"})
    land.run("api")
    land.run("web")
    return land


@pytest.fixture
def machine(tmp_path: Path) -> Environment:
    return Environment(tmp_path / "home/.headway", by="test")


def test_workspaces_are_registered_and_forgotten_as_events(land: Land, machine: Environment) -> None:
    """In the environment's own ledger; said twice, recorded once; nothing in a forgotten workspace is touched."""
    machine.register(str(land.root))
    machine.register(str(land.root))
    assert [w.path for w in Environment(machine.home).overview().workspaces] == [str(land.root)]
    machine.forget(str(land.root), reason="done with it")
    assert machine.overview().workspaces == []
    assert (land.root / ".headway/dag/workspace-index.json").exists()
    lines = (Path(machine.home) / "environment/ledger.jsonl").read_text(encoding="utf-8").splitlines()
    types = [json.loads(line)["type"] for line in lines]
    assert types == ["environment_created", "workspace_registered", "workspace_forgotten"]
    with pytest.raises(UsageError):
        machine.forget(str(land.root))
    with pytest.raises(UsageError):
        machine.register(str(land.root / "nothing"))


def test_the_overview(land: Land, machine: Environment) -> None:
    """Workspaces with their figures, projects with their health, what they are made with, patterns."""
    found = machine.register(str(land.root))
    (summary,) = found.workspaces
    assert (summary.project_count, summary.total_goals, summary.completed_goals) == (2, 4, 2)
    assert summary.completion_rate == 0.5
    assert found.tech_stack.languages == {"python": 2}
    assert found.tech_stack.tools == {"flask": 2}
    assert [p.name for p in found.patterns] == ["flask-app"]
    assert {p.name: p.project_type for p in found.projects} == {"api": "python", "web": "python"}
    assert {p.name: p.health_score for p in found.projects} == {
        "api": round(0.5 * 2 / 3 + 0.3 * 2 / 3 + 0.2, 2),
        "web": 0.2,
    }


def test_insights(land: Land, machine: Environment) -> None:
    """Repeated failures over projects, files made again and again, and who is not doing well."""
    found = machine.register(str(land.root))
    texts = {kind: [i.text for i in found.insights if i.kind == kind] for kind in ("repeated_failure", "made_again")}
    assert texts == {"repeated_failure": ["“exit code 3” 2 times in 2 projects"], "made_again": []}
    land.plan("api", "main", page={"produces": "out/page.txt", "run": "echo main > {output}"})
    (land.root / "api/out/page.txt").unlink(missing_ok=True)
    land.run("api")
    found = machine.overview()
    assert [i.text for i in found.insights if i.kind == "made_again"] == ["out/page.txt of api was made by 3 goals"]
    assert [i.projects for i in found.insights if i.kind == "health"] == [[str(land.root / "web")]]


def test_what_goals_took_counts_in_the_month_in_which_they_ended(
    tmp_path: Path, machine: Environment, monkeypatch: pytest.MonkeyPatch
) -> None:
    """However near its end, and whatever month it is today."""
    land = Land(tmp_path / "land")
    land.python("api")
    for plan, second in (
        ("one", "2026-01-31T23:59:59"),
        ("two", "2026-02-01T00:00:00"),
        ("three", "2026-02-01T00:00:01"),
    ):
        monkeypatch.setattr("headway.ledger.recovery._second", lambda _, second=second: second)
        land.plan("api", plan, page={"produces": f"out/{plan}.txt"})
        land.run("api", plan)
    found = machine.register(str(land.root))
    assert [(cost.month, cost.goals) for cost in found.costs] == [("2026-01", 1), ("2026-02", 2)]


def test_the_formula_of_health() -> None:
    """As documented: half by goals completed, three tenths by artifacts made, two tenths by goals that ended well."""

    def goal(status: str, done: int, failed: int, troubled: bool = False) -> GoalFacts:
        return GoalFacts(status, "", 0, done, failed, troubled, [], [], [], [])

    assert health([]) is None
    assert health([goal("planned", 0, 0)]) is None
    assert health([goal("complete", 5, 0)]) == 1.0
    assert health([goal("complete", 3, 0), goal("failed", 0, 1)]) == round(0.25 + 0.3 * 0.75 + 0.2, 2)
    assert health([goal("failed", 0, 0, troubled=True)]) == 0.3


def test_a_kept_object_is_never_behind(land: Land, machine: Environment) -> None:
    """A run anywhere shows with the next look; without a change, the same answer is given again."""
    machine.register(str(land.root))
    first = machine.overview()
    assert machine.overview() is first
    land.plan("web", "main", bad={"run": "echo good > {output}"})
    land.run("web")
    assert machine.overview().workspaces[0].completed_goals == 3


def test_in_roots_workspaces_are_looked_for(land: Land, machine: Environment) -> None:
    """Folders that somebody made workspaces; where there are none, the root itself is one."""
    found = machine.add_root(str(land.root.parent))
    assert [w.path for w in found.workspaces] == [str(land.root.parent)]
    Workspace(land.root).refresh()
    found = machine.overview()
    assert [(w.path, w.registered) for w in found.workspaces] == [(str(land.root), False)]
    assert [root.workspaces for root in found.roots] == [[str(land.root)]]
    assert machine.forget(str(land.root.parent)).workspaces == []


def test_a_project_in_two_workspaces_counts_once(land: Land, machine: Environment) -> None:
    """Workspaces that overlap show it both; the machine has it once."""
    machine.register(str(land.root))
    found = machine.register(str(land.root.parent))
    assert [w.project_count for w in found.workspaces] == [2, 2]
    assert len(found.projects) == 2
    assert found.tech_stack.languages == {"python": 2}


def test_a_workspace_that_is_gone_is_said_and_comes_back(land: Land, machine: Environment) -> None:
    """Nothing fails for it."""
    machine.register(str(land.root))
    shutil.move(land.root, land.root.parent / "away")
    found = machine.refresh()
    assert found.notes == [f"{land.root} is not there; it comes back when it returns"]
    assert found.projects == []
    shutil.move(land.root.parent / "away", land.root)
    assert len(machine.overview().projects) == 2


def test_a_workspace_that_cannot_be_refreshed_spoils_no_other(land: Land, tmp_path: Path) -> None:
    """It is said, and the rest is refreshed: what was registered is never answered with the trouble of another."""
    heard: list[str] = []
    machine = Environment(tmp_path / "home/.headway", by="test", notice=heard.append)
    spoiled = Land(tmp_path / "spoiled")
    spoiled.python("lib")
    spoiled.workspace.set_goal("one", "One")
    machine.register(str(spoiled.root))
    (spoiled.root / ".headway/workspace/ledger.jsonl").write_bytes(b"")
    foreign = Land(tmp_path / "foreign")
    foreign.python("lib")
    foreign.write(".headway", "a file stands where its home would be")
    machine.register(str(foreign.root))
    found = machine.register(str(land.root))
    assert [w.project_count for w in found.workspaces] == [0, 1, 2]
    assert found.notes == [f"{spoiled.root} The ledger has lost its beginning"]
    assert f"{spoiled.root} was not refreshed: The ledger has lost its beginning" in heard
    assert any(line.startswith(f"{foreign.root} was not refreshed: ") for line in heard)
    assert (land.root / ".headway/dag/workspace-index.json").exists()
    assert len(json.loads((Path(machine.home) / "environment.json").read_bytes())["workspaces"]) == 3


def test_reading_creates_nothing(tmp_path: Path) -> None:
    """Not even the home."""
    found = Environment(tmp_path / "home/.headway").overview()
    assert (found.workspaces, found.user_id) == ([], "")
    assert list(tmp_path.iterdir()) == []


def test_files_of_a_newer_version_are_refused_untouched(land: Land, machine: Environment) -> None:
    """environment.json, whoever asks; a damaged copy is made again."""
    machine.register(str(land.root))
    file = Path(machine.home) / "environment.json"
    text = file.read_text(encoding="utf-8")
    file.write_text(text.replace('"version": 1', '"version": 9', 1), encoding="utf-8")
    before = tree(Path(machine.home))
    for ask in (Environment.overview, Environment.refresh, lambda e: e.register(str(land.root.parent))):
        with pytest.raises(FormatTooNew, match="newer Headway"):
            ask(Environment(machine.home))
    assert tree(Path(machine.home)) == before
    file.write_text("{", encoding="utf-8")
    heard: list[str] = []
    assert len(Environment(machine.home, notice=heard.append).refresh().projects) == 2
    assert heard == ["environment.json cannot be read: the workspaces are looked at anew"]


def test_a_ledger_of_a_newer_format_is_refused_untouched(tmp_path: Path) -> None:
    """Written whole by a newer Headway, so that its chain is right."""
    from headway.core import codec
    from headway.core.places import EnvironmentCreated

    folder = tmp_path / "environment"
    folder.mkdir()
    line, _ = codec.encode(
        EnvironmentCreated(format=9, user_id="x"), 1, "2030-01-01T00:00:00.000000Z", "x", codec.START
    )
    (folder / "ledger.jsonl").write_bytes(line + b"\n")
    before = tree(tmp_path)
    for ask in (Environment.overview, Environment.refresh, lambda e: e.register(str(tmp_path))):
        with pytest.raises(FormatTooNew):
            ask(Environment(tmp_path))
    assert tree(tmp_path) == before


def test_a_ledger_whose_first_line_somebody_changed_is_damaged(land: Land, machine: Environment) -> None:
    """Not taken for one of a newer Headway; the way out is named, and nothing is touched."""
    machine.register(str(land.root))
    ledger = Path(machine.home) / "environment/ledger.jsonl"
    ledger.write_bytes(ledger.read_bytes().replace(b'"format":1', b'"format":9'))
    before = tree(Path(machine.home))
    with pytest.raises(LedgerDamaged, match="lost its beginning") as told:
        Environment(machine.home).overview()
    assert told.value.hint == f"put a backup back, or move {ledger.parent} away and say it again"
    assert tree(Path(machine.home)) == before


def test_a_home_folder_that_is_itself_a_repository_is_one_more_folder(land: Land) -> None:
    """Its .headway may be the machine's and a workspace's at once; neither disturbs the other."""
    home = land.root
    (home / ".git").mkdir()
    machine = Environment(home / ".headway")
    found = machine.register(str(home))
    assert found.workspaces[0].project_count == 2
    assert Workspace(home).dag().topology == "monorepo"
    Workspace(home).link("api", "web")
    assert len(machine.overview().projects) == 2
    assert sorted(p for p in os.listdir(home / ".headway") if p != "cache.sqlite") == [
        ".gitignore", "dag", "environment", "environment.json", "workspace",
    ]  # fmt: skip
