"""The edges that a goal brings: in one loop, and each as if it were made alone."""

from __future__ import annotations

from headway.history.goals import _edge, _integration, edges_of
from headway.history.shapes import Edge, GoalDetail, Metrics, Task

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
