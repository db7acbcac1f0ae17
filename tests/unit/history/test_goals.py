"""The edges that a goal brings: in one loop, and each as if it were made alone. And both, and what it made, as text."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from headway.core.plan import ArtifactSpec
from headway.core.state import Completion, Output, State
from headway.history import goals
from headway.history.folder import DagFolder
from headway.history.goals import _edge, _integration, _outcomes, _task, edge_lines, edges_of
from headway.history.manifest import first_lines, merge_manifest
from headway.history.shapes import VERSION, Edge, GoalDetail, Manifest, Metrics, Task

AT, DONE = "2026-01-01T00:00:00Z", "2026-01-02T00:00:00Z"


def goal(*tasks: Task) -> GoalDetail:
    """A goal with these tasks."""
    return GoalDetail(
        version=1,
        id="g",
        title="",
        description="",
        status="complete",
        created_at=AT,
        updated_at=DONE,
        completed_at=None,
        learnings=[],
        metrics=Metrics(),
        tasks=list(tasks),
    )


def task(name: str, **keys: object) -> Task:
    """A task that was completed."""
    return Task(id=name, status="complete", content_hash=None, completed_at=DONE, **keys)  # type: ignore[arg-type]


def test_an_edge_of_many_is_the_edge_that_it_is_alone() -> None:
    """Also where a name is no text."""
    for odd in ("é", "\udcff"):
        tasks = (
            task("a", produces=["out/a.py", f"out/{odd}"], sources=["src/s.txt"]),
            task(
                "b", produces=["out/b.py"], requires=["a", "other:x"], imports=["out/a.py"], integrates={"use": ["a"]}
            ),
        )
        alone: list[Edge] = [
            _edge("dependency", "src/s.txt", "g:a", AT, "g"),
            _edge("produces", "g:a", "out/a.py", DONE, "g"),
            _edge("produces", "g:a", f"out/{odd}", DONE, "g"),
            _edge("dependency", "g:a", "g:b", AT, "g"),
            _edge("dependency", "other:x", "g:b", AT, "g"),
            _edge("produces", "g:b", "out/b.py", DONE, "g"),
            _integration("import", "out/a.py", "out/b.py", DONE, "g", verified=True),
            _integration("use", "g:a", "g:b", DONE, "g", verified=False),
        ]
        assert edges_of(goal(*tasks)) == {edge.id: edge for edge in alone}
        assert edges_of(goal(*tasks), tasks[1:]) == {edge.id: edge for edge in alone[3:]}


ODD = ("a", "b", "c d", 'e"', "f\\", "g\n", "\x7f", "é", "\u2028", "g:a", "\udcff")
names = st.sampled_from(ODD)
tasks = st.builds(
    Task,
    id=names,
    status=st.just("complete"),
    produces=st.lists(names | st.just("g:a#text"), max_size=2),
    content_hash=st.none() | st.sampled_from(["ab", 'c"']),
    hashes=st.just([]) | st.just(["12", "34"]),
    requires=st.lists(names | st.just("other:x"), max_size=3),
    sources=st.lists(names, max_size=2) | st.just([]),
    integrates=st.just({}) | st.just({"use": ["a"]}),
    imports=st.none() | st.just([]) | st.just(["b"]),
    completed_at=st.sampled_from(["", AT, DONE]),
    type=st.sampled_from(["", "txt", 'x"']),
)
plain = st.builds(
    Task,
    id=st.sampled_from(("a", "b", "c d", "é")),
    status=st.just("complete"),
    produces=st.sampled_from((["1"], ["2"], ["g:a#text"], ["3", "4"], [])),
    content_hash=st.just("ab"),
    hashes=st.just([]) | st.just(["12", "34"]),
    requires=st.sampled_from(([], ["b", "a"], ["c d", "other:x"])),
    sources=st.sampled_from(([], ["src"])),
    completed_at=st.sampled_from(["", AT, DONE]),
    type=st.sampled_from(["", "txt"]),
)
some = st.lists(tasks, max_size=5, unique_by=lambda task: task.id) | st.lists(
    plain, max_size=5, unique_by=lambda task: task.id
)


def written(given: GoalDetail) -> bytes:
    """The edges of a goal as values are written."""
    return msgspec.json.Encoder().encode_lines(edges_of(given).values())


@given(some)
def test_edges_that_are_written_as_text_are_those_that_are_written_as_values(given: list[Task]) -> None:
    """Or they are left to those."""
    lines = edge_lines(goal(*given))
    if lines is not None:
        assert lines == written(goal(*given))


def test_edges_of_plain_names_are_written_as_text(monkeypatch: pytest.MonkeyPatch) -> None:
    """Some tasks at a time, and of others' artifacts as well."""
    monkeypatch.setattr(goals, "AT_ONCE", 2)
    given = [task(f"t{n}", produces=[f"out/é {n}"], requires=[f"t{n - 1}", "other:x"], sources=["s"]) for n in range(5)]
    assert edge_lines(goal(*given)) == written(goal(*given))
    for odd in (
        task("o", produces=["x", "x"]),
        task("o", produces=["x"], requires=["t1", "t1"]),
        task("o", produces=["x"], imports=["y"]),
        task("o", produces=['"']),
        task("o", produces=["x"], requires=["\n"]),
    ):
        assert edge_lines(goal(*given, odd)) is None


@given(given=some)
def test_a_first_manifest_that_is_written_as_text_is_the_one_that_is_written_as_values(
    tmp_path_factory: pytest.TempPathFactory, given: list[Task]
) -> None:
    """Or it is left to those."""
    lines, folder = first_lines(goal(*given)), DagFolder(str(tmp_path_factory.mktemp("home")))
    if lines is None:
        return
    Path(folder.path).mkdir()
    nothing = Manifest(version=VERSION, last_updated="", artifacts={})
    size = folder.write_manifest(merge_manifest(nothing, [goal(*given)], {"g"}, last_updated=DONE))
    whole = Path(folder.manifest_path).read_bytes()
    assert folder.write_first_manifest(DONE, lines) == size
    assert Path(folder.manifest_path).read_bytes() == whole


def test_a_first_manifest_of_plain_names_is_written_as_text() -> None:
    """What is made twice, integrated, or used by its path takes more."""
    given = [task("a", produces=["x"]), task("b", produces=["y"], requires=["a", "other:x"], sources=["s"])]
    assert first_lines(goal(*given)) is not None
    for odd in (
        task("o", produces=["x"]),
        task("o", produces=["z"], sources=["y"]),
        task("o", produces=["z"], requires=["y"]),
        task("o", produces=["z"], requires=["a", "a"]),
        task("o", produces=["z"], integrates={"use": ["a"]}),
        task("o", produces=['"']),
    ):
        assert first_lines(goal(*given, odd)) is None


def test_artifacts_that_are_told_in_one_go_are_those_that_are_told_one_by_one() -> None:
    """One file, a text, several files, a folder; with sources, a type of its own, or integrated."""
    outs = [(Output("a.py", "12" * 32),), (Output("", "34" * 32),), (Output("x", "1"), Output("y", "2")), ()]
    outs += [(Output("dir/", "56" * 32, 0, "tree"),), (Output("no/suffix", "7"),)]
    specs = [ArtifactSpec(id=f"a{n}", requires=("a0",), milestone="m") for n in range(len(outs))]
    specs += [ArtifactSpec(id="s", sources=("s", ".headway/x")), ArtifactSpec(id="d", domain_type="doc")]
    state = State(plan_id="p", project_id="", goal="g", created_at=AT, updated_at=AT)
    state.artifacts = {spec.id: spec for spec in specs}
    for number, spec in enumerate(specs):
        made = outs[number % len(outs)]
        state.completed[spec.id] = Completion(seq=1, at=DONE, outputs=made, ms=number, note="n", verified=True)
    state.completed["a5"] = Completion(seq=1, at=DONE, outputs=outs[0], integrates={"use": ("a0",)})
    assert _outcomes(state) == [_task(state, spec, "complete", crashed=False) for spec in specs]
