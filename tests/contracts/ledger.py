"""What every ledger must do, whatever it is kept in. A subclass per implementation says how to open one."""

from __future__ import annotations

import threading
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence

import msgspec
import pytest

from headway.core import codec
from headway.core.events import Event, GoalChanged, PlanCreated, Record, Snapshot
from headway.core.evolve import fold
from headway.core.plan import ArtifactSpec, PlanSpec
from headway.core.state import Position, State
from headway.errors import BugError, TryLater
from headway.ledger.base import Ledger
from headway.ledger.scan import START

TS = "2026-11-15T18:04:05.123456Z"


def created(goal: str = "a goal") -> PlanCreated:
    """The event that most ledgers begin with."""
    plan = PlanSpec(goal=goal, artifacts=(ArtifactSpec(id="a"), ArtifactSpec(id="b", requires=("a",))))
    return PlanCreated(format=1, plan_id="plan", project_id="project", plan=plan)


def goal(text: str) -> GoalChanged:
    """A small event."""
    return GoalChanged(goal=text)


def snapshot(records: Sequence[Record]) -> Snapshot:
    """The state after these events, as an event."""
    state = fold(None, records)
    assert state is not None
    encoded = codec.encode_state(state)
    return Snapshot(state=msgspec.Raw(encoded), digest=codec.digest(encoded))


def write(ledger: Ledger, *events: Event, known: Position | None = None) -> list[Record]:
    """One batch with these events."""
    ledger.begin(known)
    try:
        records = ledger.stage(events, by="test", ts=TS)
        ledger.write()
        ledger.sync()
    finally:
        ledger.end()
    return records


class LedgerContract(ABC):
    """The contract. `open` gives another object for the same ledger each time."""

    @abstractmethod
    def open(self) -> Ledger: ...

    @pytest.fixture
    def ledger(self) -> Iterator[Ledger]:
        """A ledger without events."""
        ledger = self.open()
        yield ledger
        ledger.close()

    def test_nothing_can_be_staged(self, ledger: Ledger) -> None:
        """A batch without events changes nothing."""
        records = write(ledger, created())
        assert write(ledger, known=records[-1].position) == []
        assert list(ledger.history()) == records

    def test_where_nothing_was_written_there_is_no_ledger(self, ledger: Ledger) -> None:
        """Loading what does not exist gives nothing, and history is empty."""
        assert ledger.load() is None
        assert list(ledger.history()) == []
        assert ledger.begin(None).end is None
        ledger.end()
        assert ledger.load() is None

    def test_what_was_written_is_read_back(self, ledger: Ledger) -> None:
        """Events come back as they were, in order, numbered from one, each linked to the one before."""
        records = write(ledger, created(), goal("other"))

        loaded = self.open().load()

        assert loaded is not None
        assert list(loaded.records) == records
        assert loaded.whole
        assert loaded.end == records[-1].position
        assert [r.seq for r in records] == [1, 2]
        assert [r.prev for r in records] == [START.hash, records[0].hash]
        assert [r.event for r in records] == [created(), goal("other")]

    def test_numbers_and_links_go_on_in_the_next_batch(self, ledger: Ledger) -> None:
        """A batch continues where the last one ended, whoever writes it."""
        first = write(ledger, created())
        second = write(self.open(), goal("two"))
        third = write(ledger, goal("three"), known=first[-1].position)

        assert [r.seq for r in ledger.history()] == [1, 2, 3]
        assert second[0].prev == first[0].hash
        assert third[0].prev == second[0].hash

    def test_loading_begins_with_the_newest_snapshot(self, ledger: Ledger) -> None:
        """A snapshot and what follows it are enough for the state; history still has everything."""
        records = write(ledger, created(), goal("two"))
        write(ledger, snapshot(records), goal("four"), known=records[-1].position)

        loaded = self.open().load()

        assert loaded is not None
        assert [r.seq for r in loaded.records] == [3, 4]
        assert fold(None, loaded.records) == fold(None, ledger.history())
        assert [r.seq for r in ledger.history()] == [1, 2, 3, 4]

    def test_history_can_be_of_what_is_named(self, ledger: Ledger) -> None:
        """By a type, or by an id or any other text that an event has; a part of a text is not it."""
        records = write(ledger, created(), goal("two"), goal('say "two"'), goal("four"))

        assert list(ledger.history(naming=("four",))) == records[3:]
        assert list(ledger.history(naming=("two", "goal_changed"))) == records[1:]
        assert list(ledger.history(naming=('say "two"',))) == [records[2]]
        assert list(ledger.history(naming=("fou", "nobody"))) == []
        assert list(ledger.history(3, naming=("two", "four"))) == records[3:]

    def test_a_batch_begins_with_what_others_wrote(self, ledger: Ledger) -> None:
        """Whoever knows some events is told the later ones; whoever knows none is told all."""
        mine = write(ledger, created())
        theirs = write(self.open(), goal("two"), goal("three"))

        news = ledger.begin(mine[-1].position)
        ledger.end()
        everything = self.open()
        whole = everything.begin(None)
        everything.end()

        assert not news.whole
        assert list(news.records) == theirs
        assert whole.whole
        assert list(whole.records) == [*mine, *theirs]

    def test_loading_can_go_on_from_what_is_known(self, ledger: Ledger) -> None:
        """A reader that knows some events is given the later ones, and nothing when there are none."""
        records = write(ledger, created(), goal("two"), goal("three"))

        later = ledger.load(records[0].position)
        none = ledger.load(records[-1].position)

        assert later is not None
        assert (later.whole, list(later.records)) == (False, records[1:])
        assert none is not None
        assert (none.whole, list(none.records)) == (False, [])

    def test_somebody_who_knows_another_history_is_told_everything(self, ledger: Ledger) -> None:
        """A position that this ledger never had is no ground to build on."""
        records = write(ledger, created(), goal("two"))
        news = ledger.begin(Position(1, "f" * 32))
        ledger.end()
        assert (news.whole, list(news.records)) == (True, records)

    def test_history_can_be_asked_about_some_types_of_events(self, ledger: Ledger) -> None:
        """The others keep their places in the chain, and are not taken apart."""
        write(ledger, created(), goal("two"), goal("three"))

        found = list(ledger.history(about={"goal_changed"}))

        assert [(r.seq, r.hash) for r in found] == [(r.seq, r.hash) for r in ledger.history()]
        assert [r.event.type for r in found] == ["unknown", "goal_changed", "goal_changed"]

    def test_history_can_be_asked_for_in_part(self, ledger: Ledger) -> None:
        """First and last are numbers of events, both included."""
        write(ledger, created(), *(goal(str(n)) for n in range(2, 8)))
        assert [r.seq for r in ledger.history(3, 5)] == [3, 4, 5]
        assert [r.seq for r in ledger.history(6)] == [6, 7]
        assert list(ledger.history(9)) == []

    def test_only_one_batch_is_open_at_a_time(self, ledger: Ledger) -> None:
        """Whoever begins a batch waits until the other one has ended, or is told to try later."""
        ledger.begin(None)
        other = self.open()
        with pytest.raises(TryLater):
            other.begin(None, patience=0.01)
        begun = threading.Event()

        def wait() -> None:
            other.begin(None)
            begun.set()
            other.end()

        thread = threading.Thread(target=wait)
        thread.start()
        assert not begun.wait(0.05)
        ledger.end()
        assert begun.wait(5)
        thread.join()

    def test_nothing_is_written_outside_of_a_batch(self, ledger: Ledger) -> None:
        """An append without the lock is a bug, and changes nothing."""
        write(ledger, created())
        with pytest.raises(BugError):
            ledger.stage([goal("two")], by="test", ts=TS)
        assert [r.seq for r in self.open().history()] == [1]

    def test_after_a_rotation_everything_is_still_there(self, ledger: Ledger) -> None:
        """Seq and chain go on, the state loads from the new start, and history is continuous."""
        records = write(ledger, created(), goal("two"))
        ledger.begin(records[-1].position)
        rotated = ledger.rotate(snapshot(records), by="test", ts=TS, plan_id="plan", project_id="project")
        ledger.sync()
        ledger.end()
        last = write(ledger, goal("five"), known=rotated[-1].position)

        history = list(self.open().history())
        loaded = self.open().load()

        assert [r.seq for r in history] == [1, 2, 3, 4, 5]
        assert [r.prev for r in history[1:]] == [r.hash for r in history[:-1]]
        assert history[2].event.type == "ledger_rotated"
        assert loaded is not None
        assert loaded.end == last[-1].position
        assert _state(loaded.records) == _state(history)

    def test_who_knew_the_ledger_before_a_rotation_goes_on_after_it(self, ledger: Ledger) -> None:
        """Writers in other places notice that the ledger goes on elsewhere."""
        other = self.open()
        records = write(ledger, created())
        other.begin(None)
        other.end()
        ledger.begin(records[-1].position)
        rotated = ledger.rotate(snapshot(records), by="test", ts=TS, plan_id="plan", project_id="project")
        ledger.sync()
        ledger.end()

        mine = write(other, goal("four"), known=records[-1].position)

        assert mine[0].prev == rotated[-1].hash
        assert [r.seq for r in ledger.history()] == [1, 2, 3, 4]

    def test_a_closed_ledger_can_be_loaded_again(self, ledger: Ledger) -> None:
        """Closing lets go; what was written stays."""
        records = write(ledger, created())
        ledger.close()
        loaded = ledger.load()
        assert loaded is not None
        assert list(loaded.records) == records

    def test_size_grows_by_what_is_written(self, ledger: Ledger) -> None:
        """How far a snapshot is behind can be measured."""
        records = write(ledger, created())
        before = ledger.size()
        write(ledger, goal("x" * 1000), known=records[-1].position)
        assert before > 0
        assert ledger.size() >= before + 1000


def _state(records: Sequence[Record]) -> State:
    state = fold(None, records)
    assert state is not None
    return state
