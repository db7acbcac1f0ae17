"""What a history is asked: what a change touches, where something comes from, what is there, where a word stands."""

from __future__ import annotations

import shutil
from typing import Any

import pytest

from headway.core.plan import ArtifactSpec, PlanSpec
from headway.errors import NotFound
from headway.history.graph import to_graphviz, to_mermaid
from headway.history.planning import plan_goal
from headway.history.queries import impact, provenance
from headway.history.search import Search
from headway.work import Meant, Work
from tests.bench import Bench

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
