"""When a writer takes snapshots, seals the ledger and forgets; and what it does not do."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import msgspec
import pytest

from headway.core import codec
from headway.core.commands import ChangePlan, CompleteArtifact, CreatePlan, EndRun, SetProfile, StartArtifacts, StartRun
from headway.core.decide import Rejection
from headway.core.events import Record, Snapshot
from headway.core.evolve import fold
from headway.core.plan import ArtifactSpec, PlanSpec, Profile
from headway.core.state import State
from headway.errors import BugError, FormatTooNew, LedgerDamaged, PlanConflict, Rejected, TryLater, UsageError
from headway.ledger import writer as writer_module
from headway.ledger.file import FileLedger
from headway.ledger.memory import MemoryLedger
from headway.ledger.repair import examine
from headway.ledger.writer import LONG_TAIL, SMALL_STATE, SNAPSHOT_EVERY, Pace, Writer, rejected


def create(count: int = 1, size: int = 0) -> CreatePlan:
    """A plan with so many artifacts, each with so much text."""
    artifacts = tuple(ArtifactSpec(id=f"a{n}", description="x" * size, milestone="m") for n in range(count))
    return CreatePlan(plan_id="p", project_id="q", plan=PlanSpec(goal="g", artifacts=artifacts))


def types(ledger: MemoryLedger | FileLedger) -> list[str]:
    """What happened, by type."""
    return [record.event.type for record in ledger.history()]


def snapshots(ledger: MemoryLedger | FileLedger) -> list[int]:
    """The numbers of the snapshots."""
    return [record.seq for record in ledger.history() if record.event.type == "snapshot"]


def test_a_small_plan_has_a_snapshot_every_fifty_events() -> None:
    """Fifty events have passed, and they weigh more than the state."""
    ledger = MemoryLedger()
    w = Writer(ledger)
    w.execute(create(), by="t")
    for number in range(3 * SNAPSHOT_EVERY):
        w.execute(ChangePlan(goal=f"{number:50}"), by="t")
    first, *rest = snapshots(ledger)
    assert first == SNAPSHOT_EVERY + 2
    assert [b - a for a, b in zip([first, *rest], rest, strict=False)] == [SNAPSHOT_EVERY + 1] * len(rest)
    assert len(rest) == 2


def test_a_large_plan_has_a_snapshot_when_its_events_weigh_as_much() -> None:
    """Snapshots at most double the ledger, however large the state is."""
    ledger = MemoryLedger()
    w = Writer(ledger)
    w.execute(create(100, 2000), by="t")
    for number in range(400):
        w.execute(ChangePlan(goal=f"{number:1000}"), by="t")
    lines = [(r.event.type, len(repr(r.event))) for r in ledger.history()]
    written = sum(size for name, size in lines if name not in ("snapshot", "plan_created"))
    kept = sum(size for name, size in lines if name == "snapshot")
    assert 1 <= len(snapshots(ledger)) <= 5
    assert kept <= 1.1 * written


@pytest.mark.parametrize(("size", "taken"), [(10, True), (SMALL_STATE // 10, False)], ids=["small", "large"])
def test_the_end_of_a_run_takes_a_snapshot_only_of_a_small_state(size: int, taken: bool) -> None:
    """Endings are good places to start from, as long as they cost little."""
    ledger = MemoryLedger()
    w = Writer(ledger)
    w.execute(create(10, size), by="t")
    w.execute(StartRun(run="r"), by="t")
    w.execute(EndRun(run="r", status="completed"), by="t")
    assert types(ledger)[-1] == ("snapshot" if taken else "run_completed")


def test_a_completed_milestone_takes_a_snapshot() -> None:
    """It is an ending, too; the snapshot has its effect in it."""
    ledger = MemoryLedger()
    w = Writer(ledger)
    w.execute(create(), by="t")
    token = w.execute(StartArtifacts(ids=("a0",)), by="t")[0].seq
    w.execute(CompleteArtifact(id="a0", token=token), by="t")
    assert types(ledger)[-2:] == ["milestone_completed", "snapshot"]
    loaded = ledger.load()
    assert loaded is not None
    assert len(loaded.records) == 1
    assert fold(None, loaded.records) == w.state


def test_pace_waits_for_a_state_that_has_grown() -> None:
    """If the state turns out larger than the events since, it is not written yet."""
    pace = Pace(base=0, cost=100, events=60)
    assert pace.might_be_due(150, ending=False)
    assert not pace.is_due(150, 1000, ending=False)
    assert not pace.might_be_due(900, ending=False)
    assert pace.is_due(1000, 1000, ending=False)
    pace.done(1000)
    assert not pace.might_be_due(5000, ending=False)


def test_pace_asks_for_half_where_many_events_would_have_to_be_read() -> None:
    """At the end of a run, however long it was to wait; in the middle, and after few events, for all of it."""
    cost = 2 * SMALL_STATE
    pace = Pace(cost=cost, events=LONG_TAIL)
    pace.patience = 2 * cost
    assert pace.is_due(cost // 2, cost, ending=True)
    assert not pace.is_due(cost // 2 - 1, cost, ending=True)
    assert not pace.is_due(cost - 1, cost, ending=False)
    pace.events -= 1
    assert not pace.is_due(cost - 1, cost, ending=True)


def test_a_ledger_that_has_grown_large_is_sealed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """At a snapshot, when the file is large and much larger than the state; everything stays readable."""
    monkeypatch.setattr(writer_module, "ROTATE_ABOVE", 40_000)
    ledger = FileLedger(str(tmp_path))
    w = Writer(ledger)
    w.execute(create(), by="t")
    for number in range(800):
        w.execute(ChangePlan(goal=f"{number}"), by="t", wait=number % 3 == 0)
    w.close()
    assert len(ledger.segments()) >= 2
    assert (tmp_path / "ledger.jsonl").stat().st_size < 60_000
    records = list(ledger.history())
    assert [r.seq for r in records] == list(range(1, len(records) + 1))
    loaded = ledger.load()
    assert loaded is not None
    assert fold(None, loaded.records) == fold(None, records) == w.state
    assert examine(ledger) == []


def test_a_large_state_is_no_reason_to_seal(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file that is mostly one state would only be replaced by another of the same size."""
    monkeypatch.setattr(writer_module, "ROTATE_ABOVE", 1000)
    ledger = FileLedger(str(tmp_path))
    w = Writer(ledger)
    w.execute(create(20, 1000), by="t")
    w.snapshot()
    w.snapshot()
    w.close()
    assert ledger.segments() == []


def test_a_writer_that_failed_to_seal_goes_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The old file is as good as it was."""
    monkeypatch.setattr(writer_module, "ROTATE_ABOVE", 1000)
    (tmp_path / "ledger.1.jsonl.gz.new").mkdir()
    w = Writer(FileLedger(str(tmp_path)))
    w.execute(create(), by="t")
    for number in range(120):
        w.execute(ChangePlan(goal=f"{number}"), by="t")
    w.close()
    assert w.state is not None
    assert w.state.goal == "119"
    assert FileLedger(str(tmp_path)).segments() == []
    assert examine(FileLedger(str(tmp_path))) == []


def test_a_command_that_changes_nothing_appends_nothing_and_keeps_no_lock() -> None:
    """Nor does a rejected one."""
    ledger = MemoryLedger()
    w = Writer(ledger)
    w.execute(create(), by="t")
    before = ledger.size()
    assert w.execute(ChangePlan(goal="g"), by="t") == []
    with pytest.raises(Rejected):
        w.execute(create(), by="t")
    assert ledger.size() == before
    MemoryLedger(ledger._shelf).begin(None, patience=0)


def test_whoever_listens_hears_of_each_event_once() -> None:
    """Those of this writer, and those of others that it learns of before it writes."""
    ledger = MemoryLedger()
    heard: list[int] = []

    def listen(_: State, records: Sequence[Record]) -> None:
        heard.extend(record.seq for record in records)

    w = Writer(ledger, notify=listen)
    w.execute(create(), by="t")
    other = Writer(MemoryLedger(ledger._shelf))
    other.execute(ChangePlan(goal="other"), by="t")
    w.execute(ChangePlan(goal="mine"), by="t")
    assert heard == [1, 2, 3]


def test_what_events_name_is_synced_before_them() -> None:
    """The order of a commit, whoever asks for it."""
    order: list[str] = []

    class Told(MemoryLedger):
        def sync(self) -> None:
            order.append("ledger")

    w = Writer(Told(), sync_first=(lambda: order.append("pack"), lambda: order.append("other pack")))
    w.execute(create(), by="t")
    assert order == ["pack", "other pack", "ledger"]


def test_a_closed_writer_takes_nothing_more() -> None:
    """It says that it was closed; closing twice is harmless."""
    w = Writer(MemoryLedger())
    w.execute(create(), by="t")
    w.close()
    w.close()
    with pytest.raises(BugError):
        w.execute(ChangePlan(goal="x"), by="t")


def test_a_writer_notices_that_its_ledger_was_taken_away(tmp_path: Path) -> None:
    """What it acknowledged itself must still be there: an empty place is no new plan."""
    w = Writer(FileLedger(str(tmp_path)))
    w.execute(create(), by="t")
    (tmp_path / "ledger.jsonl").unlink()
    (tmp_path / "head").unlink()
    with pytest.raises(LedgerDamaged):
        w.execute(ChangePlan(goal="x"), by="t")
    assert not (tmp_path / "ledger.jsonl").exists()


@pytest.mark.parametrize(
    ("rejection", "error"),
    [
        (Rejection(code="x", message="m", kind="usage"), UsageError),
        (Rejection(code="x", message="m", kind="later"), TryLater),
        (Rejection(code="x", message="m"), Rejected),
        (Rejection(code="plan.conflict", message="m"), PlanConflict),
    ],
)
def test_a_rejection_becomes_the_error_of_its_kind(rejection: Rejection, error: type[Exception]) -> None:
    """With its code, facts and hint."""
    raised = rejected(rejection)
    assert type(raised) is error
    assert raised.error_code == rejection.code


def test_refreshing_learns_what_others_did_without_writing(tmp_path: Path) -> None:
    """Step by step where it can, from the newest snapshot where it must."""
    one, two = Writer(FileLedger(str(tmp_path))), Writer(FileLedger(str(tmp_path)))
    assert two.refresh() is None
    one.execute(create(), by="t")
    assert two.refresh() == one.state
    one.execute(SetProfile(profile=Profile(max_concurrent_tasks=7)), by="t")
    before = (tmp_path / "ledger.jsonl").stat().st_mtime_ns
    assert two.refresh() == one.state
    assert two.position == one.position
    assert (tmp_path / "ledger.jsonl").stat().st_mtime_ns == before
    one.close()
    two.close()


def test_a_writer_that_meets_a_newer_version_stays_as_it_was(tmp_path: Path) -> None:
    """Its state is that of its position, however much it could read before what it does not know."""
    one, two = Writer(FileLedger(str(tmp_path))), Writer(FileLedger(str(tmp_path)))
    one.execute(create(), by="t")
    two.refresh()
    before, position = two.plan.copy(), two.position
    one.execute(SetProfile(profile=Profile(max_concurrent_tasks=7)), by="t")
    one.snapshot()
    one.close()
    newest = one.position
    assert newest is not None
    line, _ = codec.encode(Snapshot(state=msgspec.Raw(b"{}"), digest=""), newest.seq + 1, "", "t", newest.hash)
    body = line.replace(b'"snapshot"', b'"of_the_future"').rpartition(b',"hash"')[0]
    with (tmp_path / "ledger.jsonl").open("ab") as file:
        file.write(b'%s,"hash":"%s"}\n' % (body, codec.digest(body).encode()))
    for ask in (two.refresh, two.refresh, lambda: two.execute(SetProfile(profile=Profile()), by="t")):
        with pytest.raises(FormatTooNew):
            ask()
        assert (two.state, two.position) == (before, position)
    two.close()
