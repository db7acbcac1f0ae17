"""Who may start next: those that can be begun together are taken together, and nobody loses their place by it."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator

from headway.engine.queue import Line, Queue


def queue_of(needs: dict[str, tuple[str, ...]]) -> Queue:
    def lines(members: Collection[str]) -> Iterator[Line]:
        return ((artifact_id, needs[artifact_id], ()) for artifact_id in members)

    return Queue(needs, lines)


def but(*odd: str) -> Callable[[str], str | None]:
    """All but these fit, and are wanted in capitals."""
    return lambda artifact_id: artifact_id.upper() if artifact_id not in odd else None


FREE: dict[str, tuple[str, ...]] = dict.fromkeys("abcdef", ())


def test_those_that_fit_are_taken_up_to_one_that_does_not() -> None:
    """Which is the next, then."""
    queue = queue_of(FREE)
    assert queue.pop_while(but("c"), 9) == ["A", "B"]
    assert queue.pop_while(but("c"), 9) == []
    assert queue.pop() == "c"
    assert queue.pop_while(but("c"), 2) == ["D", "E"], "and no more than there is room for"
    assert (queue.pop(), queue.pop()) == ("f", None)


def test_whoever_does_not_fit_is_put_aside_and_comes_first_where_anybody_is_taken() -> None:
    """What fits and is not wanted is not passed over."""
    queue = queue_of(FREE)
    assert queue.pop_while(but("a", "c", "e"), 9, lambda artifact_id: artifact_id not in "ac") == ["B", "D"]
    assert queue.pop(lambda _: True) == "e"
    assert queue.pop_while(but("c"), 9) == ["A"]
    assert queue.pop_while(but(), 9) == ["C", "F"]


def test_what_has_ended_or_waits_again_is_passed_over() -> None:
    """What was taken can be put back, and is released once only."""
    needs: dict[str, tuple[str, ...]] = {**FREE, "z": ("a", "b")}
    queue = queue_of(needs)
    queue.give_up("c")
    needs["d"] = ("f",)
    queue.wait_more("d")
    assert queue.pop_while(but(), 9) == ["A", "B", "E", "F"]
    queue.put_back(["b"])
    assert queue.pop_while(but(), 9) == ["B"]
    queue.settle_all(["a", "b", "f"])
    assert queue.pop_while(but(), 9) == ["Z", "D"]
