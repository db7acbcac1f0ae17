"""Every goal ever run, what it made, and what depends on it: kept by writers, read by anybody, rebuilt at any time."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from headway.core.commands import ChangePlan, StartArtifacts, StartRun
from headway.core.plan import ArtifactSpec, PlanSpec
from headway.errors import FormatTooNew, NotFound
from headway.history.folder import DagFolder
from headway.history.graph import to_graphviz, to_mermaid
from headway.history.planning import plan_goal
from headway.history.queries import impact, provenance
from headway.history.search import Search
from headway.history.shapes import to_dict
from headway.project import Project
from headway.work import Meant, Work
from tests.bench import Bench
from tests.workshop import tree


def files(bench: Bench) -> dict[str, bytes]:
    """The history on disk, without its lock."""
    folder = bench.path(".headway/dag")
    found = {str(p.relative_to(folder)): p.read_bytes() for p in sorted(folder.rglob("*")) if p.is_file()}
    return {name: data for name, data in found.items() if name != "lock"}


def index(bench: Bench) -> Any:
    return json.loads(bench.read(".headway/dag/index.json"))


def goal(bench: Bench, name: str = "plan") -> Any:
    return json.loads(bench.read(f".headway/dag/goals/{name}.json"))


def edges(bench: Bench, kind: str = "") -> set[tuple[str, str]]:
    found = DagFolder(str(bench.path(".headway"))).read_edges().values()
    return {(e.source, e.target) for e in found if not kind or e.type == kind}


def without_times(documents: dict[str, bytes]) -> dict[str, Any]:
    """What the files say, apart from when they were written and the order of the edge log."""
    found: dict[str, Any] = {}
    for name, data in documents.items():
        if name == "edges.jsonl":
            live: dict[str, Any] = {}
            for edge in map(json.loads, data.splitlines()):
                edge.pop("ts")
                live.pop(edge["id"], None) if edge.get("gone") else live.update({edge["id"]: edge})
            found[name] = live
            continue
        document = json.loads(data)
        for key in ("lastUpdated", "edgesSize", "manifestSize", "behind"):
            document.pop(key, None)
        for entry in document["artifacts"].values() if "artifacts" in document else ():
            entry.pop("standing", None)
        found[name] = document
    return found


# What is written.


def test_every_goal_ever_run_stays_in_the_index_in_the_order_of_their_beginnings(bench: Bench) -> None:
    """A later goal hides no earlier one, and each says how it stands, what it made and when."""
    bench.plan("a -> b", id="models")
    bench.run(plan="models")
    bench.plan("c", id="auth")
    bench.run(plan="auth")
    found = index(bench)
    assert [(g["id"], g["title"], g["status"]) for g in found["goals"]] == [
        ("models", "test models", "complete"),
        ("auth", "test auth", "complete"),
    ]
    assert found["version"] == 1
    assert found["projectId"] == bench.project.project_id
    assert found["summary"]["totalGoals"] == found["summary"]["completedGoals"] == 2
    assert found["summary"]["totalArtifacts"] == 3
    assert found["recentArtifacts"][0]["id"] == "c"
    assert found["recentArtifacts"][0]["path"] == "out/c.txt"
    assert found["recentArtifacts"][0]["goalId"] == "auth"


def test_a_goal_file_has_the_shape_of_the_rfc(bench: Bench) -> None:
    """Goal, tasks with status, outputs and content hash, learnings, metrics: by RFC-105's keys."""
    bench.plan("a -> b")
    bench.run()
    found = goal(bench)
    assert found["id"] == "plan"
    assert found["description"] == "test plan"
    assert found["status"] == "complete"
    assert found["completedAt"] >= found["createdAt"]
    assert found["learnings"] == []
    assert found["metrics"]["tasks_completed"] == 2
    assert found["metrics"]["tasks_skipped"] == 0
    assert "duration_seconds" in found["metrics"]
    assert [(t["id"], t["status"], t["produces"]) for t in found["tasks"]] == [
        ("a", "complete", ["out/a.txt"]),
        ("b", "complete", ["out/b.txt"]),
    ]
    assert found["tasks"][1]["contentHash"] == bench.status()["artifacts"]["b"]["content_hash"]


def test_edges_say_what_depends_on_what_what_was_produced_and_what_came_before(bench: Bench) -> None:
    """Of a dependency the target depends on the source; tasks produce files; goals follow each other."""
    bench.write("data.txt", "x")
    bench.plan("a -> b", id="one", a={"sources": ["data.txt"]})
    bench.run(plan="one")
    bench.plan("c", id="two")
    bench.run(plan="two")
    assert edges(bench, "dependency") == {("one:a", "one:b"), ("data.txt", "one:a")}
    assert edges(bench, "produces") == {
        ("one:a", "out/a.txt"),
        ("one:b", "out/b.txt"),
        ("two:c", "out/c.txt"),
    }
    assert edges(bench, "temporal") == {("one", "two")}
    assert index(bench)["summary"]["totalEdges"] == 6


def test_the_edge_log_only_grows_and_holds_no_edge_twice(bench: Bench) -> None:
    """Running again appends what is new; what a plan no longer says is taken back by a line, not by rewriting."""
    bench.plan("a -> b -> c")
    bench.run()
    first = bench.read(".headway/dag/edges.jsonl")
    bench.run(rerun_all=True)
    assert bench.read(".headway/dag/edges.jsonl") == first
    bench.change("c", requires=["a"])
    bench.run()
    second = bench.read(".headway/dag/edges.jsonl")
    assert second.startswith(first)
    assert ("plan:a", "plan:c") in edges(bench, "dependency")
    assert ("plan:b", "plan:c") not in edges(bench, "dependency")
    lines = [json.loads(line) for line in second.splitlines()]
    came = [line["id"] for line in lines if not line.get("gone")]
    assert len(came) == len(set(came))


def test_a_run_with_nothing_to_do_writes_nothing_to_the_history(bench: Bench) -> None:
    """A no-op leaves every file of dag/ as it was."""
    bench.plan("a -> b")
    bench.run()
    before = tree(bench.path(".headway/dag"))
    assert bench.run().result.made == []
    assert tree(bench.path(".headway/dag")) == before


def test_imports_of_python_sources_are_edges(bench: Bench) -> None:
    """A file that imports another one of the project is integrated with it, whoever made that one."""
    bench.write("src/app/settings.py", "DEBUG = True\n")
    bench.plan(
        "model routes",
        model={"produces": "src/app/model.py"},
        routes={"produces": "src/app/routes.py"},
    )
    bench.makes("model", "import os\nfrom app import settings\n")
    bench.makes("routes", "from .model import User\n# import app.nothing\ntext = 'import app.settings'\n")
    bench.run()
    found = [e for e in DagFolder(str(bench.path(".headway"))).read_edges().values() if e.type == "integrates"]
    assert {(e.source, e.target) for e in found} == {
        ("src/app/settings.py", "src/app/model.py"),
        ("src/app/model.py", "src/app/routes.py"),
    }
    assert {(e.kind, e.verified) for e in found} == {("import", True)}


def test_declared_integrations_are_recorded_with_the_completion(bench: Bench) -> None:
    """Calls, routes and configuration are edges once the artifact that declares them is complete, not before."""
    bench.plan("a b", b={"integrates": {"call": ["a"], "config": ["settings.toml"]}})
    assert not edges(bench, "integrates")
    bench.run()
    assert edges(bench, "integrates") == {("plan:a", "plan:b"), ("settings.toml", "plan:b")}
    bench.change("b", integrates={})
    assert ("plan:a", "plan:b") in edges(bench, "integrates")
    bench.run(rerun="b")
    assert edges(bench, "integrates") == set()


def test_the_manifest_names_who_made_a_file_and_who_uses_it(bench: Bench) -> None:
    """Each file with its goal, hash and users; one that two goals made names both, and the last one counts."""
    bench.plan("a -> b", id="one")
    bench.run(plan="one")
    bench.plan("a", id="two")
    bench.makes("a", "other")
    bench.run(plan="two", on_edit="discard")
    found = json.loads(bench.read(".headway/dag/artifacts/manifest.json"))["artifacts"]
    assert found["out/a.txt"]["goals"] == ["one", "two"]
    assert found["out/a.txt"]["createdBy"] == "two"
    assert found["out/a.txt"]["usedBy"] == ["one:b"]
    assert found["out/b.txt"]["createdBy"] == "one"
    assert found["out/b.txt"]["contentHash"]
    assert found["out/b.txt"]["lastModified"]


def test_rebuilding_from_the_ledgers_gives_what_the_writers_wrote(bench: Bench) -> None:
    """After any mixture of runs, failures, changes and skips, deleting dag/ loses nothing."""
    bench.plan("a -> b -> c; a -> d", id="one")
    bench.makes("c", lambda: 1 / 0)
    bench.run(plan="one")
    bench.plan("x -> y", id="two", y={"by_hand": True})
    bench.run(plan="two")
    bench.remove("d", plan="one")
    bench.makes("c", "better")
    bench.run(plan="one")
    bench.do(ChangePlan(goal="something else"), plan="two")
    before = without_times(files(bench))
    shutil.rmtree(bench.path(".headway/dag"))
    bench.project.dag.rebuild()
    assert without_times(files(bench)) == before


def test_a_project_from_before_gets_its_history_on_the_first_write(bench: Bench) -> None:
    """Whoever writes first builds dag/ for all plans; until then readers see the same without it."""
    bench.plan("a", id="one")
    bench.run(plan="one")
    bench.plan("b", id="two")
    bench.run(plan="two")
    shutil.rmtree(bench.path(".headway/dag"))
    assert [e.id for e in bench.project.get_project_dag_index().goals] == ["one", "two"]
    assert not bench.path(".headway/dag").exists()
    bench.run(plan="two", rerun_all=True)
    assert [g["id"] for g in index(bench)["goals"]] == ["one", "two"]
    assert goal(bench, "one")["tasks"][0]["id"] == "a"


def test_a_reader_is_never_behind_a_ledger(bench: Bench) -> None:
    """What a killed writer did not get to project is shown all the same: the ledger counts."""
    bench.plan("a b")
    bench.run()
    project = bench.project
    warm = project.get_project_dag_index()
    assert warm.goals[0].task_count == 2
    store = Project(bench.root).store
    store._watcher = None
    with store.folder("plan").writing() as writer:
        writer.execute(ChangePlan(add=(ArtifactSpec(id="z"),)), by="somebody")
    assert Project(bench.root).get_project_dag_index().goals[0].task_count == 3
    assert project.get_goal_details("plan").tasks[-1].id == "z"


def test_listeners_hear_of_every_update(bench: Bench) -> None:
    """`dag_updated` names the project, the goal and how it stands; who stops listening hears no more."""
    bench.plan("a")
    project = bench.project
    heard: list[Any] = []
    stop = project.on_dag_updated(heard.append)
    project.append_goal_to_dag("plan", learnings=["small steps"])
    assert heard[-1].type == "dag_updated"
    assert heard[-1].goal_id == "plan"
    assert heard[-1].status == "planned"
    count = len(heard)
    stop()
    project.append_goal_to_dag("plan")
    assert len(heard) == count


def test_learnings_are_events_and_stay_with_the_goal(bench: Bench) -> None:
    """What was learned is in the ledger, in the goal's file, once, and found by searching."""
    bench.plan("a")
    bench.run()
    bench.project.append_goal_to_dag("plan", learnings=["Protocols before models"])
    detail = bench.project.append_goal_to_dag("plan", learnings=["Protocols before models"])
    assert detail.learnings == ["Protocols before models"]
    assert len(bench.events("learning_recorded")) == 1
    hits = Search(bench.project.dag).find("protocols")
    assert [(h.kind, h.goal) for h in hits] == [("learning", "plan")]


# Crashes.

CRASHING = """
import os, signal, sys
from headway import Plan
plan = Plan("crash", id="crash", project=sys.argv[1])

@plan.artifact(produces="out/first.txt")
def first():
    return "one"

@plan.artifact(requires=["first"], produces="out/second.txt")
def second():
    os.kill(os.getpid(), signal.SIGKILL)

plan.run(jobs=1)
"""


def crash(root: Path) -> None:
    script = root / "crashing.py"
    root.mkdir(parents=True, exist_ok=True)
    script.write_text(CRASHING, encoding="utf-8")
    done = subprocess.run([sys.executable, str(script), str(root)], check=False, capture_output=True)
    assert done.returncode == -signal.SIGKILL


def test_a_run_without_an_end_and_without_a_holder_is_shown_as_crashed(bench: Bench) -> None:
    """Readers see it at once, though nobody has written it down; what was completed is complete."""
    crash(bench.root)
    found = bench.project.get_project_dag_index().goals[0]
    assert (found.status, found.crash_recovery) == ("failed", True)
    detail = bench.project.get_goal_details("crash")
    assert [(t.id, t.status) for t in detail.tasks] == [("first", "complete"), ("second", "ready")]


def test_the_next_writer_records_a_crash_and_the_goal_can_be_resumed(bench: Bench) -> None:
    """Another goal's run writes the crash down; running the crashed one again makes only what is left."""
    bench.plan("z", id="early")
    bench.run(plan="early")
    crash(bench.root)
    assert "crash" not in {g["id"] for g in index(bench)["goals"] if g.get("crashRecovery")}
    bench.plan("a", id="other")
    bench.run(plan="other")
    written = goal(bench, "crash")
    assert (written["status"], written["crashRecovery"]) == ("failed", True)
    entry = next(g for g in index(bench)["goals"] if g["id"] == "crash")
    assert (entry["status"], entry["crashRecovery"]) == ("failed", True)
    script = (bench.root / "crashing.py").read_text(encoding="utf-8")
    (bench.root / "crashing.py").write_text(
        script.replace("os.kill(os.getpid(), signal.SIGKILL)", "return 'two'"), encoding="utf-8"
    )
    subprocess.run([sys.executable, "crashing.py", "."], cwd=bench.root, check=True, capture_output=True)
    written = goal(bench, "crash")
    assert (written["status"], written.get("crashRecovery")) == ("complete", None)
    made = [r.event.id for r in bench.events("artifact_completed", plan="crash")]  # type: ignore[attr-defined]
    assert made == ["first", "second"]


def test_a_run_that_is_under_way_is_running_and_not_crashed(bench: Bench) -> None:
    """While its lock is held, a goal is shown as running, also where it was already indexed."""
    bench.plan("a b")
    seen: list[tuple[str, bool]] = []

    def look() -> str:
        entry = bench.project.get_project_dag_index().goals[0]
        seen.append((entry.status, entry.crash_recovery))
        return "x"

    bench.makes("a", look)
    bench.run()
    assert seen == [("running", False)]
    assert bench.project.get_project_dag_index().goals[0].status == "complete"


def test_a_crash_after_somebody_else_wrote_to_the_plan_is_seen(bench: Bench) -> None:
    """A goal that was projected in the middle of a run is looked at again once nobody holds it."""
    bench.plan("a b")
    bench.do(StartRun(run="r", stale={"a": "never_made"}), StartArtifacts(ids=("a",), run="r"))
    entry = bench.project.get_project_dag_index().goals[0]
    assert (entry.status, entry.crash_recovery) == ("failed", True)


# Bad input.


def test_a_corrupt_index_is_said_and_made_again_never_started_empty(bench: Bench) -> None:
    """Readers show the goals from the ledgers and say so; the next writer makes the index anew, with every goal."""
    bench.plan("a", id="one")
    bench.run(plan="one")
    bench.plan("b", id="two")
    bench.run(plan="two")
    for damage in (b"", b"{", b"[]", b'{"version": 1}', b"\0" * 100):
        bench.write(".headway/dag/index.json", damage)
        said: list[str] = []
        found = Project(bench.root, notice=said.append).get_project_dag_index()
        assert [e.id for e in found.goals] == ["one", "two"], damage
        assert "index.json cannot be read" in said[0]
        assert bench.path(".headway/dag/index.json").read_bytes() == damage
        bench.run(plan="one", rerun_all=True)
        assert [g["id"] for g in index(bench)["goals"]] == ["one", "two"]


def test_half_an_edge_line_is_not_there_for_readers_and_is_mended_by_the_next_writer(bench: Bench) -> None:
    """A torn last line is cut off; whole lines that a dead writer left are not written twice."""
    bench.plan("a -> b")
    bench.run()
    log = bench.path(".headway/dag/edges.jsonl")
    whole = log.read_bytes()
    before = edges(bench)
    log.write_bytes(whole + whole.splitlines(keepends=True)[0][:40])
    assert edges(bench) == before
    bench.add("c", "b")
    bench.run()
    lines = [json.loads(line) for line in log.read_bytes().splitlines()]
    assert log.read_bytes().startswith(whole)
    assert len({line["id"] for line in lines}) == len(lines)
    assert ("plan:b", "plan:c") in edges(bench)


def test_edges_of_a_writer_that_died_before_the_index_are_not_written_twice(bench: Bench) -> None:
    """The log is ahead of the index after a crash between the two: the next writer finds what is there."""
    bench.plan("a -> b")
    bench.run()
    saved = {name: bench.path(f".headway/dag/{name}").read_bytes() for name in ("index.json", "goals/plan.json")}
    bench.add("c", "b")
    bench.run()
    for name, data in saved.items():
        bench.write(f".headway/dag/{name}", data)
    bench.run(rerun_all=True)
    came = [json.loads(line)["id"] for line in bench.path(".headway/dag/edges.jsonl").read_bytes().splitlines()]
    assert len(came) == len(set(came))
    assert ("plan:b", "plan:c") in edges(bench)


def test_an_edge_log_that_was_cut_or_spoiled_is_made_again(bench: Bench) -> None:
    """A shorter log, a lost log, or garbage behind its end: after the next write it holds every edge."""
    bench.plan("a -> b")
    bench.run()
    log = bench.path(".headway/dag/edges.jsonl")
    before, whole = edges(bench), log.read_bytes()
    for damage in (whole[: len(whole) // 2], None, whole + b"nonsense\n", b"x" * len(whole)):
        log.unlink() if damage is None else log.write_bytes(damage)
        bench.run(rerun_all=True)
        assert edges(bench) == before, damage


def test_a_lost_goal_file_costs_nothing(bench: Bench) -> None:
    """It is shown from the ledger, and written again by the next writer, without an edge too many."""
    bench.plan("a -> b")
    bench.run()
    before, log = edges(bench), bench.read(".headway/dag/edges.jsonl")
    for damage in (None, b"{"):
        path = bench.path(".headway/dag/goals/plan.json")
        path.unlink() if damage is None else path.write_bytes(damage)
        assert [t.id for t in bench.project.get_goal_details("plan").tasks] == ["a", "b"]
        bench.run(rerun_all=True)
        assert [t["id"] for t in goal(bench)["tasks"]] == ["a", "b"]
        assert (edges(bench), bench.read(".headway/dag/edges.jsonl")) == (before, log)


def test_a_goal_file_of_a_newer_version_is_refused_untouched(bench: Bench) -> None:
    """Neither reader nor writer touches it; the run itself is not held up, and the rest of the history stands."""
    bench.plan("a", id="one")
    bench.run(plan="one")
    bench.plan("b", id="two")
    bench.run(plan="two")
    newer = b'{"version": 99, "id": "one", "something": "else"}'
    bench.write(".headway/dag/goals/one.json", newer)
    said: list[str] = []
    assert [t.id for t in bench.project.get_goal_details("one").tasks] == ["a"]
    assert [e.id for e in bench.project.get_project_dag_index().goals] == ["one", "two"]
    project = Project(bench.root, notice=said.append, disk=bench.disk)
    project.save_plan(str(_plan_file(bench, "one")))
    assert "newer Headway" in said[-1]
    bench.project.dag.rebuild()
    assert bench.path(".headway/dag/goals/one.json").read_bytes() == newer
    assert next(g for g in index(bench)["goals"] if g["id"] == "one")["title"] == "other"
    bench.project.store.delete("one")
    with pytest.raises(FormatTooNew):
        bench.project.get_goal_details("one")
    assert list(bench.project.dag.rebuild().unreadable) == ["one"]
    assert bench.path(".headway/dag/goals/one.json").read_bytes() == newer


def test_an_index_of_a_newer_version_is_refused_untouched(bench: Bench) -> None:
    """A newer index is nobody's to change; runs go on without it."""
    bench.plan("a")
    newer = b'{"version": 2}'
    bench.write(".headway/dag/index.json", newer)
    assert bench.run().result.made == ["a"]
    with pytest.raises(FormatTooNew):
        bench.project.get_project_dag_index()
    assert bench.path(".headway/dag/index.json").read_bytes() == newer


def test_a_goal_file_of_an_older_version_is_made_again_from_the_ledger(bench: Bench) -> None:
    """Whatever an earlier version wrote, the ledger knows better."""
    bench.plan("a -> b")
    bench.run()
    bench.write(".headway/dag/goals/plan.json", b'{"id": "plan", "title": "old", "tasks": []}')
    assert [t.id for t in bench.project.get_goal_details("plan").tasks] == ["a", "b"]


COMPLETING = """
import sys
from headway import Plan
root, name = sys.argv[1:]
for number in range(5):
    plan = Plan(f"goal {name} {number}", id=f"{name}-{number}", project=root)
    plan.add("x", make=lambda: name, version="1", produces=f"out/{name}-{number}.txt")
    plan.run()
"""


def test_processes_that_complete_goals_at_once_lose_nothing(bench: Bench) -> None:
    """Four processes with five goals each: all twenty are in the index, every edge once."""
    script = bench.path("completing.py")
    script.write_text(COMPLETING, encoding="utf-8")
    running = [
        subprocess.Popen([sys.executable, str(script), str(bench.root), name], stdout=subprocess.DEVNULL)
        for name in ("p", "q", "r", "s")
    ]
    assert [process.wait() for process in running] == [0, 0, 0, 0]
    found = index(bench)
    assert len(found["goals"]) == 20
    assert {g["status"] for g in found["goals"]} == {"complete"}
    lines = [json.loads(line) for line in bench.read(".headway/dag/edges.jsonl").splitlines()]
    assert len({(line["id"], line.get("gone", False)) for line in lines}) == len(lines)
    assert found["summary"]["totalEdges"] == len(edges(bench)) == 20 + 19
    assert [g["createdAt"] for g in found["goals"]] == sorted(g["createdAt"] for g in found["goals"])
    before = without_times(files(bench))
    bench.project.dag.rebuild()
    assert without_times(files(bench)) == before


def test_a_mark_is_taken_away_only_by_whoever_made_it_or_when_they_are_dead(bench: Bench) -> None:
    """One process that is done does not speak for another that still writes to the same plan."""
    bench.plan("a")
    marks = bench.path(".headway/dag/open")
    marks.mkdir(exist_ok=True)
    dead = subprocess.Popen(["true"])
    dead.wait()
    alive = subprocess.Popen(["sleep", "60"])
    try:
        for name in (f"plan@{alive.pid}", f"plan@{dead.pid}", "plan"):
            (marks / name).touch()
        bench.run()
        assert sorted(os.listdir(marks)) == [f"plan@{alive.pid}"]
        assert bench.project.dag.folder.marked() == ["plan"]
    finally:
        alive.kill()
        alive.wait()


def test_whatever_is_wrong_with_the_history_a_run_is_completed(bench: Bench) -> None:
    """It is derived: an error in it that nobody thought of is said, and no more."""
    bench.plan("a")
    said: list[str] = []
    project = Project(bench.root, by="test", disk=bench.disk, notice=said.append)

    def stumble(_: object) -> None:
        raise ZeroDivisionError("not thought of")

    project.dag.listen(stumble)
    project.dag.projected(project.show("plan"))
    assert said == [
        "The history (dag/) was not brought up to date: ZeroDivisionError('not thought of'); no event depends on it"
    ]


def test_a_plan_that_is_deleted_while_the_history_is_made_anew_is_said(bench: Bench) -> None:
    """The writer's own plan may be gone when it gets its turn."""
    bench.plan("a")
    bench.plan("b", id="other")
    project = bench.project
    execution = project.show("plan")
    shutil.rmtree(bench.root / ".headway/plans/plan")
    shutil.rmtree(bench.root / ".headway/dag")
    with pytest.raises(NotFound, match="plan was deleted meanwhile"):
        project.dag.append(execution)
    assert [g["id"] for g in index(bench)["goals"]] == ["other"]


def test_a_project_inside_a_project_has_a_history_of_its_own(bench: Bench, tmp_path: Path) -> None:
    """Neither shows the other's goals."""
    inner = Bench(bench.root / "inner")
    bench.plan("a", id="outer")
    bench.run(plan="outer")
    inner.plan("b", id="inner")
    inner.run(plan="inner")
    assert [e.id for e in bench.project.get_project_dag_index().goals] == ["outer"]
    assert [e.id for e in inner.project.get_project_dag_index().goals] == ["inner"]
    bench.project.dag.rebuild()
    assert [g["id"] for g in index(bench)["goals"]] == ["outer"]


def test_a_renamed_project_folder_keeps_its_history(bench: Bench, tmp_path: Path) -> None:
    """The id and every goal are as they were, and nothing on disk names the folder."""
    bench.plan("a -> b")
    bench.run()
    before = to_dict(bench.project.get_project_dag_index())
    for data in files(bench).values():
        assert str(bench.root).encode() not in data
    moved = tmp_path / "elsewhere"
    os.rename(bench.root, moved)
    project = Project(moved)
    assert to_dict(project.get_project_dag_index()) == before
    assert project.get_project_dag_full().project_path == str(moved)


def test_goals_with_the_same_first_words_stay_two(bench: Bench) -> None:
    """Titles are cut for people; goals are told apart by their ids."""
    same = "Create the core data models for the forum application, with users, posts, threads and "
    for number in (1, 2):
        spec = PlanSpec(goal=f"{same}{number}", artifacts=(ArtifactSpec(id="a", run="true"),))
        bench.project.take_in(spec, name="bench", source=str(number))
    found = bench.project.get_project_dag_index()
    assert len(found.goals) == 2
    assert found.goals[0].title == found.goals[1].title
    assert {bench.project.get_goal_details(e.id).description[-1] for e in found.goals} == {"1", "2"}


def test_a_plan_whose_ledger_is_damaged_is_shown_as_it_was_last_known(bench: Bench) -> None:
    """It neither disappears nor spoils the others, and a rebuild says which it is."""
    bench.plan("a", id="one")
    bench.run(plan="one")
    bench.plan("b", id="two")
    bench.run(plan="two")
    ledger = bench.path(".headway/plans/one/ledger.jsonl")
    data = bytearray(ledger.read_bytes())
    data[-60] ^= 1
    ledger.write_bytes(data)
    bench.path(".headway/dag/index.json").unlink()
    found = bench.project.get_project_dag_index()
    assert [e.id for e in found.goals] == ["one", "two"]
    assert found.goals[0].title == "test one"
    assert found.goals[0].problem
    rebuilt = bench.project.dag.rebuild()
    assert list(rebuilt.unreadable) == ["one"]
    assert [t["id"] for t in goal(bench, "one")["tasks"]] == ["a"]
    assert bench.project.get_project_dag_full().tasks.keys() >= {"two:b"}


def test_a_ledger_that_lost_a_line_spoils_no_question(bench: Bench) -> None:
    """Also where it is shorter than it was: what was last known is shown, with its problem."""
    bench.plan("a -> b", id="one")
    bench.run(plan="one")
    ledger = bench.path(".headway/plans/one/ledger.jsonl")
    lines = ledger.read_bytes().splitlines(keepends=True)
    ledger.write_bytes(b"".join(lines[:2] + lines[3:]))
    dag = bench.project.dag
    known = bench.project.get_goal_details("one")
    assert ([task.id for task in known.tasks], known.problem) == (["a", "b"], "The ledger is damaged")
    assert [hit.node for hit in Search(dag).find("b") if hit.kind == "artifact"] == ["one:b"]
    assert impact(dag, "a")["cost"]["artifacts"] == 1
    (made,) = provenance(dag, "out/b.txt")["made_by"]
    assert (made["problem"], made["outputs"][0]["standing"]) == ("The ledger is damaged", "stands")


# Deleted plans.


def test_a_deleted_plan_stays_in_the_history(bench: Bench) -> None:
    """Its goal is known from its file; a rebuild keeps it; what depends on nothing of it may be compacted."""
    bench.plan("a -> b", id="old")
    bench.run(plan="old")
    bench.plan("c", id="new")
    bench.run(plan="new")
    bench.project.store.delete("old")
    found = bench.project.get_project_dag_index()
    assert [(e.id, e.gone) for e in found.goals] == [("old", True), ("new", False)]
    rebuilt = bench.project.dag.rebuild()
    assert rebuilt.from_goal_files == ["old"]
    assert [t.id for t in bench.project.get_goal_details("old").tasks] == ["a", "b"]


def test_compaction_keeps_every_fact_that_something_still_names(bench: Bench) -> None:
    """Of an old goal without a ledger stays what another reuses, imports or rests on, and what still stands."""
    bench.plan("a b t", id="old", a={"produces": "lib/a.py"}, b={"produces": "lib/b.py"}, t={"produces": []})
    bench.run(plan="old")
    bench.plan("b m", id="new", b={"produces": "lib/b.py", "version": "2"}, m={"produces": "lib/m.py"})
    bench.makes("b", "new b")
    bench.makes("m", "import a\n")
    bench.run(plan="new", on_edit="discard")
    bench.project.store.delete("old")
    kept = bench.project.dag.rebuild(compact_before="1999")
    assert kept.dropped == 0
    rebuilt = bench.project.dag.rebuild(compact_before="9999")
    detail = bench.project.get_goal_details("old")
    assert rebuilt.dropped == 2
    assert [t.id for t in detail.tasks] == ["a"]
    assert detail.compacted
    assert detail.metrics.tasks_total == 3
    assert ("lib/a.py", "lib/m.py") in edges(bench, "integrates")
    assert bench.project.get_project_dag_index().summary.total_edges == len(edges(bench))


def test_compaction_keeps_what_is_named_by_what_is_kept(bench: Bench) -> None:
    """A file that stands keeps everything that it rests on, and its provenance stays whole; so does what was reused."""
    bench.plan("z -> y -> a; w -> x", id="old", z={"produces": []}, y={"produces": []}, x={"produces": []})
    bench.run(plan="old")
    bench.plan("w", id="new")
    assert bench.run(plan="new").did == {"reused w"}
    before = provenance(bench.project.dag, "out/a.txt")["up"]
    bench.project.store.delete("old")
    rebuilt = bench.project.dag.rebuild(compact_before="9999")
    assert [t.id for t in bench.project.get_goal_details("old").tasks] == ["z", "y", "a", "w"]
    assert rebuilt.dropped == 1, "x is a text that nobody names"
    assert provenance(bench.project.dag, "out/a.txt")["up"] == before == ["old:y", "old:z"]
    assert provenance(bench.project.dag, "new:w")["made_by"][0]["note"].endswith("of old")


# Questions.


def test_impact_names_what_would_be_touched_in_all_goals(bench: Bench) -> None:
    """Directly or not, within the goal and beyond it, with what it took to make."""
    bench.plan("a -> b -> c; x", id="one")
    bench.run(plan="one")
    bench.plan(id="two", d={"requires": ["one:c"]})
    bench.run(plan="two")
    found = impact(bench.project.dag, "b")
    assert [t["node"] for t in found["touched"]] == ["one:c", "two:d"]
    assert found["goals"] == ["one", "two"]
    assert found["files"] == ["out/c.txt", "out/d.txt"]
    assert found["cost"]["artifacts"] == 2
    assert impact(bench.project.dag, "out/x.txt")["touched"] == []


def test_impact_and_provenance_of_a_source_and_of_a_file_in_a_folder(bench: Bench) -> None:
    """A source is made by nobody and read by those whose fingerprints name it; a file in a folder is its maker's."""
    bench.path("posts").mkdir()
    bench.path("posts/a.md").write_text("hello", encoding="utf-8")
    bench.plan("site -> feed; x", site={"sources": "posts/*.md", "produces": "www/", "run": "cp posts/a.md {output}/"})
    bench.run()
    dag = bench.project.dag
    touched = impact(dag, "posts/a.md")
    assert (touched["of"], [t["node"] for t in touched["touched"]]) == (["posts/a.md"], ["plan:site", "plan:feed"])
    origin = provenance(dag, "./posts/a.md")
    assert (origin["made_by"], origin["up"], origin["down"]) == ([], [], ["plan:site", "plan:feed"])
    assert impact(dag, "www/a.md")["of"] == ["plan:site"]
    assert provenance(dag, "www/a.md")["current"] == "plan:site"
    with pytest.raises(NotFound):
        impact(dag, "posts/b.md")


def test_provenance_tells_goal_run_recipe_inputs_and_edits(bench: Bench) -> None:
    """Of a file: who made it in which run, how and from what; whether it was edited since; up and down."""
    bench.write("data.txt", "x")
    bench.plan("a -> b -> c", b={"sources": ["data.txt"]})
    bench.run()
    dag = bench.project.dag
    found = provenance(dag, "out/b.txt")
    (made,) = found["made_by"]
    assert made["goal"]["id"] == "plan"
    assert made["run"] == bench.events("run_started")[0].event.run  # type: ignore[attr-defined]
    assert made["recipe"]["kind"] == "function"
    assert set(made["inputs"]) == {"a"}
    assert set(made["sources"]) == {"data.txt"}
    assert made["outputs"][0]["standing"] == "stands"
    assert found["up"] == ["plan:a", "data.txt"]
    assert found["down"] == ["plan:c"]
    bench.edit("b", "mine")
    assert provenance(dag, "b")["made_by"][0]["outputs"][0]["standing"] == "changed"
    bench.delete("out/b.txt")
    assert provenance(dag, "plan:b", direction="up")["made_by"][0]["outputs"][0]["standing"] == "missing"
    assert "down" not in provenance(dag, "plan:b", direction="up")


def test_provenance_of_a_file_that_two_goals_touched_names_both(bench: Bench) -> None:
    """In the order in which they did; the last one is the current one."""
    bench.plan("a", id="one")
    bench.run(plan="one")
    bench.plan(id="two", a={"version": "2"})
    bench.makes("a", "other")
    bench.run(plan="two", on_edit="discard")
    found = provenance(bench.project.dag, "out/a.txt")
    assert [m["node"] for m in found["made_by"]] == ["one:a", "two:a"]
    assert found["current"] == "two:a"
    assert [m["outputs"][0]["standing"] for m in found["made_by"]] == ["changed", "stands"]


def test_what_no_goal_made_is_an_error_with_the_nearest_name(bench: Bench) -> None:
    """A slip of the finger is answered with what was meant."""
    bench.plan("report")
    bench.run()
    with pytest.raises(NotFound) as refused:
        provenance(bench.project.dag, "reprot")
    assert refused.value.facts["did you mean"] == "report"
    with pytest.raises(NotFound):
        bench.project.get_goal_details("nothing")


def test_the_full_graph_has_every_kind_of_node_and_can_be_drawn(bench: Bench) -> None:
    """Goals, tasks, artifacts and what is outside; Mermaid and Graphviz name each, whatever it is called."""
    bench.write("data.txt", "x")
    named: Any = {'say "hi"': {"sources": ["data.txt"], "produces": ["out/hi.txt"]}}
    bench.plan(id="one", **named)
    bench.run(plan="one")
    dag = bench.project.get_project_dag_full()
    assert set(dag.goals) == {"one"}
    assert set(dag.tasks) == {'one:say "hi"'}
    assert set(dag.artifacts) == {"out/hi.txt"}
    assert set(dag.externals) == {"data.txt"}
    assert dag.tasks['one:say "hi"'].progress == 100
    assert (dag.total_goals, dag.completed_goals) == (1, 1)
    assert "say #quot;hi#quot;" in to_mermaid(dag)
    assert '\\"hi\\"' in to_graphviz(dag)
    assert to_graphviz(dag).count("->") == len(dag.edges) == 2


def test_a_planner_is_told_what_exists_and_what_can_be_skipped(bench: Bench) -> None:
    """By file and contract, or by contract alone, as long as it still stands; with the goal that made it."""
    bench.plan(id="models", UserModel={"contract": "a user", "produces": ["src/user.py"]})
    bench.run(plan="models")
    project = bench.project
    assert list(project.plan_goal("Add authentication").available) == ["models:UserModel"]
    proposal = PlanSpec(
        goal="Add authentication",
        artifacts=(
            ArtifactSpec(id="User", contract="a  user", produces=("src/user.py",)),
            ArtifactSpec(id="Account", contract="a user", produces=("src/account.py",)),
            ArtifactSpec(id="Other", contract="another", produces=("src/user.py",)),
            ArtifactSpec(id="Auth", contract="auth", produces=("src/auth.py",)),
        ),
    )
    found = project.plan_goal(proposal)
    assert [(t.id, t.can_skip, t.made_by) for t in found.tasks] == [
        ("User", True, "models"),
        ("Account", True, "models"),
        ("Other", False, "models"),
        ("Auth", False, ""),
    ]
    assert found.reuses == 2
    assert "made before by goal models" in found.tasks[0].why
    bench.write("src/user.py", "edited")
    assert not project.plan_goal(proposal).tasks[0].can_skip
    assert plan_goal(proposal, project.get_project_dag_full()).reuses == 2


def test_what_another_goal_made_from_the_same_things_is_named_before_it_is_reused(bench: Bench) -> None:
    """A planner or a preview says "made before by goal X"; the run then takes it over."""
    bench.plan("a -> b", id="first")
    bench.run(plan="first")
    bench.plan("a -> b", id="second")
    work = Work(bench.project, environ=bench.environ)
    said = work.made_before(Meant("second", functions=bench.functions("second")))
    assert list(said) == ["a"]
    assert "made before by goal first" in said["a"]
    assert bench.run(plan="second").log == ["reused a", "reused b"]
    assert bench.project.get_goal_details("second").tasks[0].note.endswith("of first")


# Search.


def test_search_finds_goals_artifacts_contracts_and_failures(bench: Bench) -> None:
    """By words and beginnings of words, in names by their parts, too; the newest state only."""
    bench.plan(id="forum", UserModel={"contract": "Protocol with fields id and email"}, Broken={})
    bench.makes("Broken", lambda: 1 / 0)
    bench.run(plan="forum")
    search = Search(bench.project.dag)
    assert [(h.kind, h.node) for h in search.find("user")] == [
        ("artifact", "forum:UserModel"),
        ("contract", "forum:UserModel"),
    ]
    assert [h.kind for h in search.find("prot email")] == ["contract"]
    assert [h.kind for h in search.find("test forum", kind="goal")] == ["goal"]
    assert [h.node for h in search.find("division", kind="failure")] == ["forum:Broken"]
    bench.makes("Broken", "mended")
    bench.run(plan="forum")
    assert Search(bench.project.dag).find("division", kind="failure") == []
    assert [(h.kind, h.node) for h in search.find("division")] == [("learning", "forum")]  # that it was mended
    assert Search(bench.project.dag).find('"; DROP TABLE -- *') == []


def test_the_search_index_is_rebuilt_whatever_happened_to_it(bench: Bench) -> None:
    """Deleted, spoiled or read-only: the answer is the same, from the ledgers."""
    bench.plan(id="forum", UserModel={})
    bench.run(plan="forum")
    expected = Search(bench.project.dag).find("user")
    cache = bench.path(".headway/cache.sqlite")
    cache.unlink()
    assert Search(bench.project.dag).find("user") == expected
    cache.write_bytes(b"not a database" * 100)
    assert Search(bench.project.dag).find("user") == expected
    cache.unlink()
    cache.mkdir()
    assert Search(bench.project.dag).find("user") == expected
    cache.rmdir()
    shutil.rmtree(bench.path(".headway/dag"))
    assert Search(bench.project.dag).find("user") == expected


def test_a_search_index_that_is_spoiled_where_only_the_question_comes_upon_it(bench: Bench) -> None:
    """Page by page, as a disk does it: found all the same, related all the same, counted all the same."""
    bench.plan(id="forum", UserModel={})
    bench.run(plan="forum")
    search = Search(bench.project.dag)
    expected, totals = search.find("user"), search.totals()
    cache = bench.path(".headway/cache.sqlite")
    whole = cache.read_bytes()
    for page in range(1, len(whole) // 4096):
        for size in (4096, 64):
            cache.write_bytes(whole[: page * 4096] + b"\0" * size + whole[page * 4096 + size :])
            assert search.find("user") == expected
            assert Search(bench.project.dag, aside=True).related("user") == {"forum": expected}
            assert search.totals() == totals


def test_totals_count_goals_and_repeated_failures(bench: Bench) -> None:
    """Aggregates over all goals come from the same index."""
    for name in ("one", "two"):
        bench.plan("a", id=name)
        bench.makes("a", lambda: 1 / 0)
        bench.run(plan=name)
    totals = Search(bench.project.dag).totals()
    assert totals["goals"] == {"failed": 2}
    assert totals["failures"][0]["goals"] == 2
    assert sum(month["goals"] for month in totals["months"]) == 2


# Switching.


def test_switching_among_twenty_projects_never_shows_anothers_data(tmp_path: Path) -> None:
    """Twenty projects, read and written by eight threads at once: each sees its own goals and nothing else."""
    benches = [Bench(tmp_path / f"p{number}") for number in range(20)]
    for number, bench in enumerate(benches):
        bench.plan("a", id=f"goal-{number}")
        bench.run(plan=f"goal-{number}")
    projects = [bench.project for bench in benches]
    wrong: list[object] = []
    barrier = threading.Barrier(8)

    def switch(worker: int) -> None:
        barrier.wait()
        for step in range(60):
            number = (worker * 7 + step * 3) % 20
            project = projects[number] if step % 2 else Project(benches[number].root)
            ids = {e.id for e in project.get_project_dag_index().goals}
            full = project.get_project_dag_full()
            if ids != {f"goal-{number}"} or set(full.tasks) != {f"goal-{number}:a"}:
                wrong.append((number, ids))
            hits = Search(project.dag).find("goal")
            if {h.goal for h in hits} != ids:
                wrong.append((number, hits))
            if step % 6 == worker % 6:
                written = project.append_goal_to_dag(f"goal-{number}", learnings=[f"of {number}"])
                if {*written.learnings} != {f"of {number}"}:
                    wrong.append((number, written.learnings))

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(switch, range(8)))
    assert wrong == []


def test_ten_thousand_goals_are_shown_and_grow_by_one(tmp_path: Path) -> None:
    """A long history is read, searched and appended to like a short one."""
    from benchmarks.histories import write_history

    root = tmp_path / "project"
    write_history(root, goals=10_000, artifacts=1)
    project = Project(root)
    assert project.dag.rebuild().goals == 10_000
    assert len(Project(root).get_project_dag_index().goals) == 10_000
    before = (root / ".headway/dag/edges.jsonl").stat().st_size
    project.append_goal_to_dag("goal-05000", learnings=["once"])
    assert (root / ".headway/dag/edges.jsonl").stat().st_size == before
    assert Project(root).get_goal_details("goal-05000").learnings == ["once"]


def test_reading_a_history_creates_nothing(tmp_path: Path) -> None:
    """An empty folder has no goals, and stays empty."""
    project = Project(tmp_path)
    assert project.get_project_dag_index().goals == []
    assert project.get_project_dag_full().edges == []
    assert Search(project.dag).find("anything") == []
    assert list(tmp_path.iterdir()) == []


def _plan_file(bench: Bench, plan_id: str) -> Path:
    path = bench.path(f"{plan_id}.yaml")
    path.write_text(f"id: {plan_id}\ngoal: other\nartifacts: {{n: {{run: 'true'}}}}\n", encoding="utf-8")
    return path
