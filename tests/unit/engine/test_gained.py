"""What the events of a ledger name: taken in many at a time, as if they came one by one."""

from __future__ import annotations

from headway.core import events as ev
from headway.core.state import Fingerprint, Output
from headway.engine.precedents import _Gained


def completed(name: str, **keys: object) -> ev.ArtifactCompleted:
    """One that was made from something of its own."""
    fp = Fingerprint(spec=name, recipe="r")
    given = {"fp": fp, "outputs": (Output(f"{name}.txt", f"digest of {name}"),), **keys}
    return ev.ArtifactCompleted(id=name, **given)  # type: ignore[arg-type]


EVENTS: list[ev.Event] = [
    ev.ArtifactStarted(starts=()),
    completed("a"),
    completed("adopted", how="accepted"),
    completed("outside", external=True),
    completed("several", outputs=(Output("x", "dx"), Output("y", "dy"))),
    completed("none", outputs=(), fp=Fingerprint()),
    ev.ArtifactFailed(id="b", error="no", left=(Output("b.txt", "left"),)),
]
RECORDS = [ev.Record(n, "", "", event, f"h{n - 1}", f"h{n}") for n, event in enumerate(EVENTS, 1)]


def test_events_taken_in_together_say_what_they_say_one_by_one() -> None:
    """What was made, the bytes that are named, and how far it goes."""
    for records in (RECORDS, RECORDS[1:5], RECORDS[-1:]):
        one_by_one, together = _Gained(), _Gained()
        for record in records:
            one_by_one.take("plan", record)
        together.take_all("plan", records)
        for slot in _Gained.__slots__:
            assert getattr(together, slot) == getattr(one_by_one, slot)
        assert together.last is records[-1]
    assert [made[2] for made in one_by_one.made] == []
    assert one_by_one.named == {"-left"}
