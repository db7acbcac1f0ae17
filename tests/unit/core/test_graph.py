"""The graph of artifacts: its edges, waves and cycles, and that its order is always the plan's."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headway.core.graph import ArtifactGraph, find_invalidated
from headway.core.plan import ArtifactSpec
from headway.errors import UsageError
from tests.unit.core.lines import lines_run

SRC = Path(__file__).parents[3] / "src"
MANY = 100_000

Edges = dict[str, list[str]]


def graph(edges: Edges) -> ArtifactGraph:
    """A graph given as requirements by id."""
    return ArtifactGraph(ArtifactSpec(id=name, requires=tuple(requires)) for name, requires in edges.items())


WORKED: Edges = {"A": [], "B": [], "C": [], "D": ["A"], "E": ["B", "C"], "F": ["D", "E"]}


@st.composite
def dags(draw: st.DrawFn) -> Edges:
    """Acyclic requirements, listed in an order that is not that of the edges."""
    count = draw(st.integers(1, 12))
    edges = {
        f"n{i}": sorted(draw(st.sets(st.sampled_from([f"n{j}" for j in range(i)])))) if i else [] for i in range(count)
    }
    return {name: edges[name] for name in draw(st.permutations(list(edges)))}


@st.composite
def any_graphs(draw: st.DrawFn) -> Edges:
    """Requirements of any shape, with cycles, requirements of oneself and ids that are missing."""
    names = [f"n{i}" for i in range(draw(st.integers(1, 8)))]
    return {name: sorted(draw(st.sets(st.sampled_from([*names, "gone"]), max_size=3))) for name in names}


def reaches_itself(edges: Edges, start: str) -> bool:
    """Naively: following requirements from it leads back to it."""
    reached: set[str] = set()
    ahead = list(edges[start])
    while ahead:
        name = ahead.pop()
        if name in edges and name not in reached:
            reached.add(name)
            ahead += edges[name]
    return start in reached


def test_waves_of_the_worked_example() -> None:
    """Each artifact stands one wave after the last of its requirements, in plan order."""
    assert graph(WORKED).execution_waves() == [["A", "B", "C"], ["D", "E"], ["F"]]


def test_edges_run_from_leaves_to_roots() -> None:
    """Leaves require nothing; nothing requires roots."""
    assert graph(WORKED).leaves() == ["A", "B", "C"]
    assert graph(WORKED).roots() == ["F"]
    assert graph(WORKED).dependents("A") == ["D"]


def test_depth_counts_from_the_leaves() -> None:
    """A leaf has depth 0; an id that is not there has -1."""
    assert [graph(WORKED).depth(name) for name in ("A", "D", "F", "nobody")] == [0, 1, 2, -1]


def test_an_id_cannot_be_added_twice() -> None:
    """The second is refused and the first stays."""
    it = graph({"A": ["B"]})

    with pytest.raises(UsageError, match="A is there already"):
        it.add(ArtifactSpec(id="A"))
    assert it["A"].requires == ("B",)


def test_a_requirement_may_come_later() -> None:
    """What is required can be added after what requires it, and the edges follow."""
    it = graph({"B": ["A"]})
    assert it.missing() == {"B": ["A"]}

    it.add(ArtifactSpec(id="A"))

    assert it.missing() == {}
    assert it.execution_waves() == [["A"], ["B"]]
    assert it.get_dependents("A") == {"B"}


def test_every_walk_ignores_a_missing_requirement_alike() -> None:
    """Waves, depths and sorting agree, so a draft with a gap can still be shown."""
    it = graph({"A": ["gone"], "B": ["A"]})

    assert it.execution_waves() == [["A"], ["B"]]
    assert it.topological_sort() == ["A", "B"]
    assert it.depth("A") == 0
    assert it.leaves() == []


def test_get_dependents_gives_a_set_of_its_own() -> None:
    """Changing the answer does not change the graph."""
    it = graph(WORKED)

    it.get_dependents("A").add("X")

    assert it.get_dependents("A") == {"D"}


def test_an_unknown_id_has_no_dependents() -> None:
    """It is not an error to ask."""
    assert graph(WORKED).get_dependents("nobody") == set()


def test_a_subgraph_drops_requirements_outside_it() -> None:
    """What is kept can be made by itself, and the whole graph is as it was."""
    whole = graph(WORKED)

    part = whole.subgraph({"F", "D", "nobody"})

    assert [(name, part[name].requires) for name in part] == [("D", ()), ("F", ("D",))]
    assert whole["F"].requires == ("D", "E")


def test_what_is_below_and_above_is_in_plan_order() -> None:
    """Closures include the ids asked for and skip those that are not there."""
    assert graph(WORKED).below(["E", "nobody"]) == ["B", "C", "E"]
    assert graph(WORKED).above(["B"]) == ["B", "E", "F"]


@pytest.mark.parametrize("start", WORKED)
def test_what_is_above_is_the_same_wherever_requirements_stand(start: str) -> None:
    """Before what requires them, as in most plans, or after it; and whether or not anybody has asked before."""
    found = graph(WORKED).above([start])
    turned = graph(dict(reversed(WORKED.items())))
    assert turned.above([start]) == turned.above([start]) == found[::-1]
    asked = graph(WORKED)
    assert asked.roots() == ["F"]
    assert asked.above([start]) == found


def test_invalidation_includes_the_changed_ids_and_all_that_depends_on_them() -> None:
    """Directly or not; a removed id stays in the answer."""
    assert find_invalidated(graph(WORKED), ["B", "removed"]) == {"B", "E", "F", "removed"}


def test_a_cycle_is_an_error_that_shows_its_path() -> None:
    """Waves and sorting refuse it; what is behind the cycle is not part of the path."""
    it = graph({"A": ["C"], "B": ["A"], "C": ["B"], "D": ["C"]})

    with pytest.raises(UsageError) as refused:
        it.execution_waves()
    with pytest.raises(UsageError):
        it.topological_sort()

    assert sorted(it.cycle()) == ["A", "B", "C"]
    assert refused.value.error_code == "plan.cycle"
    assert str(refused.value.facts["cycle"]).count("→") == 3


def test_a_graph_with_a_cycle_can_still_be_saved() -> None:
    """Waves leave out what is on or behind the cycle; the artifacts are all there."""
    it = graph({"A": ["B"], "B": ["A"], "C": []})

    assert it.to_dict()["waves"] == [["C"]]
    assert ArtifactGraph.from_dict(it.to_dict()) == it


def test_the_saved_shape_is_that_of_rfc_040() -> None:
    """Its keys are always present; what else the spec says is beside them."""
    spec = ArtifactSpec(id="A", description="d", contract="c", requires=("B",), produces=("x", "y"), tags=("t",))

    saved = json.loads(json.dumps(ArtifactGraph([spec]).to_dict()))

    assert saved["artifacts"]["A"] == {
        "id": "A", "description": "d", "contract": "c", "requires": ["B"], "produces_file": "x", "domain_type": None,
        "produces": ["x", "y"], "tags": ["t"],
    }  # fmt: skip


def test_a_saved_graph_is_read_back_as_it_was() -> None:
    """Through JSON, with every field and in the same order."""
    first = ArtifactSpec(id="Z", produces=("x", "d/"), run="echo", metadata={"k": [1, None]}, timeout=1.5)
    it = ArtifactGraph([first, ArtifactSpec(id="A", requires=("B", "Z")), ArtifactSpec(id="B")])

    assert ArtifactGraph.from_dict(json.loads(json.dumps(it.to_dict()))) == it


def test_rfc_040s_own_file_is_read() -> None:
    """`produces_file` alone, nulls, and requirements in any order."""
    data = {"artifacts": {"A": {"id": "A", "requires": ["c", "b"], "produces_file": "x.py", "domain_type": None}}}

    it = ArtifactGraph.from_dict(data)

    assert (it["A"].produces, it["A"].requires) == (("x.py",), ("b", "c"))


def test_model_tiers_follow_the_number_of_requirements() -> None:
    """None is small, one or two are medium, more are large."""
    it = graph({"a": [], "b": [], "c": [], "one": ["a"], "two": ["a", "b"], "three": ["a", "b", "c"]})

    assert [it.tier(name) for name in ("a", "one", "two", "three")] == ["small", "medium", "medium", "large"]


def test_the_order_does_not_depend_on_the_hash_seed() -> None:
    """Four processes with different seeds print the same graph, byte for byte."""
    code = (
        "import json\n"
        "from headway.core.graph import ArtifactGraph as G\n"
        "from headway.core.plan import ArtifactSpec as A\n"
        "g = G(A(id=f'n{i}', requires=tuple(f'n{j}' for j in range(i % 7, i, 5))) for i in range(60))\n"
        "print(json.dumps([g.to_dict(), g.roots(), g.topological_sort(), g.above(['n3', 'n1']),"
        " g.below(['n59', 'n58']), g.subgraph({f'n{i}' for i in range(30)}).to_dict(), g.to_mermaid()]))"
    )

    def printed(seed: int) -> str:
        env = {**os.environ, "PYTHONHASHSEED": str(seed), "PYTHONPATH": str(SRC)}
        return subprocess.run([sys.executable, "-c", code], env=env, capture_output=True, text=True, check=True).stdout

    assert len({printed(seed) for seed in range(4)}) == 1


def test_a_chain_of_a_hundred_thousand_is_walked_without_recursion() -> None:
    """Depth is bounded by memory and not by the interpreter's stack."""
    it = graph({f"n{i}": [f"n{i - 1}"] if i else [] for i in range(MANY)})

    assert len(it.execution_waves()) == MANY
    assert it.depth(f"n{MANY - 1}") == MANY - 1
    assert len(it.above(["n0"])) == len(it.below([f"n{MANY - 1}"])) == MANY
    assert it.cycles() == []


def test_a_wide_graph_of_a_hundred_thousand_is_two_waves() -> None:
    """One artifact that everything else requires."""
    it = graph({"hub": [], **{f"n{i}": ["hub"] for i in range(MANY)}})

    assert [len(wave) for wave in it.execution_waves()] == [1, MANY]
    assert len(it.get_dependents("hub")) == MANY


def test_a_ring_of_a_hundred_thousand_is_one_cycle() -> None:
    """Finding it is a loop, too."""
    it = graph({f"n{i}": [f"n{(i + 1) % MANY}"] for i in range(MANY)})

    assert [len(cycle) for cycle in it.cycles()] == [MANY]


@given(dags())
def test_waves_partition_the_artifacts_and_respect_requirements(edges: Edges) -> None:
    """Every artifact is in exactly one wave, the earliest that its requirements allow, in plan order."""
    waves = graph(edges).execution_waves()
    wave_of = {name: number for number, wave in enumerate(waves) for name in wave}

    assert sorted(name for wave in waves for name in wave) == sorted(edges)
    assert all(wave_of[name] == max((wave_of[r] + 1 for r in edges[name]), default=0) for name in edges)
    assert all(wave == [name for name in edges if name in wave] for wave in waves)


@given(dags())
def test_sorting_puts_requirements_first(edges: Edges) -> None:
    """And leaves nothing out."""
    position = {name: index for index, name in enumerate(graph(edges).topological_sort())}

    assert position.keys() == edges.keys()
    assert all(position[required] < position[name] for name in edges for required in edges[name])


@given(dags(), st.data())
def test_above_and_below_are_each_others_mirror(edges: Edges, data: st.DataObject) -> None:
    """One artifact is below another exactly if that one is above it."""
    it = graph(edges)
    one, other = (data.draw(st.sampled_from(list(edges))) for _ in range(2))

    assert (one in it.below([other])) == (other in it.above([one]))


@given(any_graphs())
def test_cycles_are_found_exactly_when_there_are_any(edges: Edges) -> None:
    """As a naive search says; each path that is shown is a real cycle, and no two share an artifact."""
    cycles = graph(edges).cycles()

    assert bool(cycles) == any(reaches_itself(edges, name) for name in edges)
    for cycle in cycles:
        assert all(before in edges[after] for before, after in zip(cycle, [*cycle[1:], cycle[0]], strict=True))
    listed = [name for cycle in cycles for name in cycle]
    assert len(listed) == len(set(listed))


@given(any_graphs())
def test_any_graph_survives_being_saved(edges: Edges) -> None:
    """Cycles and gaps included."""
    it = graph(edges)

    assert ArtifactGraph.from_dict(json.loads(json.dumps(it.to_dict()))) == it


def test_ten_times_the_artifacts_take_ten_times_the_work() -> None:
    """Building, sorting, waves, what is above and below: nothing is looked at once for every other artifact."""

    def work(count: int) -> float:
        edges = {f"a{n}": [f"a{n - back}" for back in (1, 7, 50) if n >= back] for n in range(count)}

        def walk() -> None:
            found = graph(edges)
            found.execution_waves()
            found.topological_sort()
            found.above(["a0"])
            found.below([f"a{count - 1}"])

        return lines_run(walk, of="core/graph.py")[0] / (count + sum(map(len, edges.values())))

    assert work(5000) <= 1.02 * work(500)
