"""Every goal ever run, what it made, and what depends on it: kept by writers, read by anybody, rebuilt at any time."""

from __future__ import annotations

import json
import shutil
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from headway.core.commands import ChangePlan
from headway.core.plan import ArtifactSpec
from headway.history.folder import DagFolder
from headway.history.queries import provenance
from headway.history.search import Search
from headway.project import Project
from tests.behaviour.histories import edges, files, goal, index, without_times
from tests.bench import Bench
from tests.workshop import tree

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
