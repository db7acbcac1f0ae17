"""An index that is changed line by line is the one that would be written whole."""

from __future__ import annotations

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from headway.history.entries import place
from headway.history.open_index import OpenIndex
from headway.history.shapes import DagIndex, Edge, GoalEntry, Summary

EMPTY = DagIndex(
    version=1, project_id="p", last_updated="", summary=Summary(), goals=[], recent_artifacts=[], behind=["x,\n"]
)
ENTRIES = st.builds(
    GoalEntry,
    id=st.sampled_from(["a", "b", "c", 'd"', "e,\n{", "ab", "é"]),
    title=st.text(max_size=5),
    status=st.sampled_from(["complete", "failed"]),
    created_at=st.sampled_from(["", "2026-01", "2026-02", "2026-03"]),
    completed_at=st.none(),
    artifacts=st.integers(0, 3),
    edges=st.integers(0, 3),
)


def naive(goals: list[GoalEntry], entry: GoalEntry) -> list[Edge]:
    """The same on a list that is decoded as a whole."""
    at = next((i for i, known in enumerate(goals) if known.id == entry.id), None)
    if at is None:
        return place(goals, entry)
    if goals[at].created_at or not entry.created_at:
        goals[at] = entry
        return []
    del goals[at]
    return place(goals, entry)


@given(st.lists(ENTRIES, max_size=12))
def test_goals_are_put_where_they_belong_and_figures_follow(entries: list[GoalEntry]) -> None:
    """Whatever comes in whatever order, read back from its bytes after every step."""
    index, goals = OpenIndex.of(EMPTY), list[GoalEntry]()
    standing: set[str] = set()
    for entry in entries:
        began = next((known.created_at for known in goals if known.id == entry.id), "")
        entry.created_at = began or entry.created_at  # what once began never began at another time
        edges = naive(goals, entry)
        assert index.put(entry) == edges
        standing = (standing | {e.id for e in edges if not e.gone}) - {e.id for e in edges if e.gone}
        index = OpenIndex.read(index.data())
        assert index.whole().goals == goals
        assert index.entry(entry.id) == entry
        assert index.head.summary == Summary(
            total_goals=len(goals),
            completed_goals=sum(g.status == "complete" for g in goals),
            total_artifacts=sum(g.artifacts for g in goals),
            total_edges=sum(g.edges for g in goals) + len(standing),
        )
        assert index.head.behind == ["x,\n"]
    assert index.entry("nobody") is None


@given(st.lists(ENTRIES, max_size=4, unique_by=lambda entry: entry.id))
def test_an_index_laid_out_by_hand_is_the_same(entries: list[GoalEntry]) -> None:
    """Indented or on one line: JSON is JSON."""
    index = OpenIndex.of(EMPTY)
    for entry in entries:
        index.put(entry)
    for data in (msgspec.json.format(index.data()), msgspec.json.format(index.data(), indent=0)):
        assert OpenIndex.read(data).data() == index.data()


@pytest.mark.parametrize("data", [b"", b"{", b'{"version":1}', b'{"version":1,"goals":[\n{]}'])
def test_what_is_no_index_is_an_error(data: bytes) -> None:
    """Also where only the goals are spoilt."""
    with pytest.raises(msgspec.DecodeError):
        OpenIndex.read(data)
