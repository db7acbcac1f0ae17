"""The history after crashes, with damaged, newer or missing files, and beside other writers: nothing starts empty."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from headway.core.commands import StartArtifacts, StartRun
from headway.core.plan import ArtifactSpec, PlanSpec
from headway.errors import FormatTooNew, NotFound
from headway.history.queries import impact, provenance
from headway.history.search import Search
from headway.history.shapes import to_dict
from headway.project import Project
from tests.behaviour.histories import edges, files, goal, index, without_times
from tests.bench import Bench

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


def _plan_file(bench: Bench, plan_id: str) -> Path:
    path = bench.path(f"{plan_id}.yaml")
    path.write_text(f"id: {plan_id}\ngoal: other\nartifacts: {{n: {{run: 'true'}}}}\n", encoding="utf-8")
    return path
