"""What a ledger tells of who was at an artifact: how often, how long, and how it ended."""

from __future__ import annotations

from headway.core import events as ev
from headway.core.arbiter import Used
from headway.core.attempts import Attempts
from headway.core.plan import ArtifactSpec


def at(second: int) -> str:
    return f"2026-01-01T00:{second // 60:02d}:{second % 60:02d}.000000Z"


def heard(*said: tuple[int, str, ev.Event]) -> Attempts:
    records = [ev.Record(n, at(second), by, event, "", "") for n, (second, by, event) in enumerate(said, 1)]
    return Attempts(lambda name, _: "developer" if name == "some-client" else name).hear(records)


def start(*ids: str, run: str = "") -> ev.Event:
    return ev.ArtifactStarted(starts=tuple(ev.Start(id=a) for a in ids), run=run)


def test_claims_are_counted_and_their_time_is_added_up_however_they_ended() -> None:
    """Failed, given back or still in hand; whoever acts under another name acts in their role."""
    found = heard(
        (0, "developer", start("a")),
        (10, "developer", ev.ArtifactFailed(id="a", error="no")),
        (20, "some-client", start("a")),
        (50, "sweeper", ev.ArtifactReleased(ids=("a",), reason="its lease ran out")),
        (60, "developer", start("a", "b")),
    )
    assert found.used("a", at(65)) == {"developer": Used(iterations=3, seconds=45)}
    assert found.used("b", at(65)) == {"developer": Used(iterations=1, seconds=5)}
    assert [(entry.agent, entry.status, entry.error) for entry in found.entries] == [("developer", "failure", "no")]


def test_what_is_complete_changed_reset_or_replanned_begins_anew() -> None:
    """A limit is about one attempt to make a thing, not about a life."""
    begun = [(0, "developer", start("a", "b"))]
    endings: list[ev.Event] = [
        ev.ArtifactCompleted(id="a"),
        ev.ArtifactUpdated(artifacts=(ArtifactSpec(id="a"),)),
        ev.PlanReset(reason="r", ids=("a",)),
        ev.PlanReset(reason="r"),
        ev.PlanReplanned(version=2, parent=1, reason="r"),
    ]
    for ending in endings:
        found = heard(*begun, (5, "x", ending))
        assert found.used("a", at(9)) == {}, ending
    assert heard(*begun, (5, "x", endings[0])).used("b", at(9))["developer"].iterations == 1


def test_what_a_run_makes_is_no_attempt_of_an_agent() -> None:
    """Recipes have retries of their own."""
    assert heard((0, "run", start("a", run="r1"))).used("a", at(9)) == {}
