"""PlanStore: plans by id, by goal and by age; saved, versioned, deleted and cleaned."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings

from headway.core.commands import ChangePlan, ClosePlan, CreatePlan, StartArtifacts, StartRun
from headway.core.events import ArtifactRemoved
from headway.core.ids import hash_goal
from headway.core.lifecycle import is_done
from headway.core.plan import PlanSpec
from headway.core.state import Position, State
from headway.errors import HeadwayError, LedgerDamaged, NotFound, TryLater, UsageError
from headway.ledger.repair import examine
from headway.plan_folder import PlanFolder
from headway.projections.saved_execution import SavedExecution
from headway.store import PlanStore
from tests.unit.projections.test_saved_execution import executions
from tests.workshop import spec, tree

ZERO = Position(0, "0" * 32)


def execution(plan_id: str = "p", goal: str = "g", **fields: Any) -> SavedExecution:
    """A plan that nobody has saved yet."""
    fields.setdefault("artifacts", {"a": spec("a")})
    return SavedExecution(State(plan_id=plan_id, project_id="q", goal=goal, **fields), ZERO)


@pytest.fixture
def store(tmp_path: Path) -> PlanStore:
    """An empty store."""
    return PlanStore(tmp_path / ".headway" / "plans")


def do(store: PlanStore, plan_id: str, *commands: Any) -> None:
    """Write to a plan."""
    with store.folder(plan_id).writing() as writer:
        for command in commands:
            writer.execute(command, by="test")


def test_a_saved_plan_is_loaded_as_it_was(store: PlanStore) -> None:
    """What was saved comes back; the time of saving is that of the event."""
    saved = execution()
    path = store.save(saved)
    loaded = store.load("p")
    assert loaded is not None
    assert msgspec.structs.replace(loaded.state, updated_at="") == saved.state
    assert os.path.isfile(os.path.join(path, "ledger.jsonl"))


def test_whoever_loads_a_plan_has_it_for_himself(store: PlanStore) -> None:
    """Commands ask more than once, and the ledger is read once; what one of them does with it, no other sees."""
    store.save(execution())
    first = store.load("p")
    assert first is not None
    first.state.artifacts.clear()
    first.state.goal = "spoilt"
    again = store.load("p")
    assert again is not None
    assert (again.state.goal, list(again.state.artifacts)) == ("g", ["a"])
    again.state.claims.clear()
    do(PlanStore(store.base_path), "p", StartArtifacts(ids=("a",), run=""))
    newest = store.load("p")
    assert newest is not None
    assert list(newest.state.claims) == ["a"]
    os.truncate(os.path.join(store.base_path, "p", "ledger.jsonl"), 100)
    with pytest.raises(LedgerDamaged):
        store.load("p")


def test_those_that_were_written_to_last_come_first(store: PlanStore) -> None:
    """As many as are asked for."""
    for plan_id, at in (("old", 20), ("new", 30), ("older", 10)):
        store.save(execution(plan_id))
        os.utime(os.path.join(store.base_path, plan_id, "ledger.jsonl"), (at, at))
    assert store.latest(2) == ["new", "old"]


def settled(state: State) -> State:
    """A state of which nobody holds a part any more, without the time it was touched and without empty counts."""
    given_up = {artifact_id: claim.seq for artifact_id, claim in state.claims.items()}
    counts = {milestone: number for milestone, number in settled_counts(state).items() if number}
    uncertain = {**state.uncertain, **given_up}
    return msgspec.structs.replace(state, claims={}, uncertain=uncertain, updated_at="", open=counts)


def settled_counts(state: State) -> dict[str, int]:
    """What is open per milestone once nobody holds a claim."""
    free = msgspec.structs.replace(state, claims={})
    counts: dict[str, int] = {}
    for artifact in state.artifacts.values():
        if artifact.milestone and not is_done(free, artifact.id):
            counts[artifact.milestone] = counts.get(artifact.milestone, 0) + 1
    return counts


@settings(max_examples=25)
@given(executions())
def test_load_of_save_is_the_same(saved: SavedExecution) -> None:
    """load(save(x)) = x for any plan that can come about; saving it once more adds nothing."""
    with TemporaryDirectory() as folder:
        store = PlanStore(os.path.join(folder, "plans"))
        store.save(saved)
        loaded = store.load("plan")
        assert loaded is not None
        assert settled(loaded.state) == settled(saved.state)
        assert list(loaded.state.artifacts) == list(saved.state.artifacts)
        store.save(loaded)
        again = store.load("plan")
        assert again is not None
        assert again.position == loaded.position


def test_loading_what_is_not_there_gives_nothing_and_creates_nothing(store: PlanStore, tmp_path: Path) -> None:
    """Readers leave no trace."""
    assert store.load("nothing") is None
    assert store.find_by_goal("nothing") is None
    assert (store.list_all(), store.list_recent(), store.ids()) == ([], [], [])
    assert list(tmp_path.iterdir()) == []


def test_a_plan_is_found_by_its_goal(store: PlanStore) -> None:
    """By the goal's hash, or under an id of its own; blanks around the goal do not matter."""
    store.save(execution(hash_goal("one"), "one"))
    store.save(execution("two", "two"))
    for goal, plan_id in (("one", hash_goal("one")), (" two\n", "two")):
        found = store.find_by_goal(goal)
        assert found is not None
        assert found.plan_id == plan_id


def test_a_plan_whose_goal_has_changed_is_not_found_by_the_old_one(store: PlanStore) -> None:
    """The id still is the hash of the first goal, and that proves nothing."""
    store.save(execution(hash_goal("one"), "one"))
    do(store, hash_goal("one"), ChangePlan(goal="another"))
    assert store.find_by_goal("one") is None
    found = store.find_by_goal("another")
    assert found is not None
    assert found.plan_id == hash_goal("one")


def test_recent_plans_come_newest_first(store: PlanStore) -> None:
    """Ordered by their newest event, up to a limit."""
    for name in ("b", "a", "c"):
        store.save(execution(name))
        time.sleep(0.002)  # events are told apart by milliseconds
    do(store, "b", ChangePlan(goal="touched"))
    assert [e.plan_id for e in store.list_recent()] == ["b", "c", "a"]
    assert [e.plan_id for e in store.list_recent(2)] == ["b", "c"]
    assert [e.plan_id for e in store.list_recent(0)] == []


@pytest.mark.parametrize(
    "ruin",
    [
        lambda path: path.write_bytes(b"rubbish\n" + path.read_bytes()),
        lambda path: path.unlink(),
        lambda path: (path.unlink(), path.mkdir()),
        lambda path: path.write_bytes(path.read_bytes().replace(b'"v":1', b'"v":9')),
        lambda path: path.write_bytes(b""),
    ],
)
def test_one_damaged_plan_never_breaks_the_list(store: PlanStore, ruin: Any) -> None:
    """The others are listed; the damaged one says what is wrong with it."""
    for name in ("good", "bad", "fine"):
        store.save(execution(name))
    ruin(Path(store.base_path) / "bad" / "ledger.jsonl")
    entries = store.list_all()
    assert [entry.plan_id for entry in entries] == ["fine", "good", "bad"]
    assert isinstance(entries[-1].error, HeadwayError)
    assert [e.plan_id for e in store.list_recent()] == ["fine", "good"]
    assert store.find_by_goal("g") is not None


def test_a_plan_that_may_not_be_read_breaks_no_list(store: PlanStore, monkeypatch: pytest.MonkeyPatch) -> None:
    """What the operating system refuses is told for that plan, and the others are listed."""
    for name in ("good", "bad"):
        store.save(execution(name))
    load = PlanFolder.load

    def refuse(folder: PlanFolder, **options: Any) -> SavedExecution | None:
        if folder.plan_id == "bad":
            raise PermissionError(13, "Permission denied", folder.path)
        return load(folder, **options)

    monkeypatch.setattr(PlanFolder, "load", refuse)
    good, bad = store.list_all()
    assert good.plan_id == "good"
    assert bad.error is not None
    assert "Permission denied" in str(bad.error)


def test_what_is_no_plan_is_not_listed(store: PlanStore) -> None:
    """Stray files, foreign folders and folders without a ledger are passed over."""
    store.save(execution())
    base = Path(store.base_path)
    (base / "file").write_text("x", encoding="utf-8")
    (base / ".hidden").mkdir()
    (base / "with blank").mkdir()
    (base / "empty").mkdir()
    assert [entry.plan_id for entry in store.list_all()] == ["p"]


def test_events_that_do_not_fit_together_are_damage(store: PlanStore) -> None:
    """Lines that verify but make no sense are refused by name, and do not break the list."""
    store.save(execution())
    ledger = store.folder("p").ledger()
    ledger.begin(None)
    ledger.stage([ArtifactRemoved(ids=("ghost",))], by="test", ts="2026-11-15T18:04:05.123456Z")
    ledger.write()
    ledger.sync()
    ledger.close()
    with pytest.raises(LedgerDamaged, match="do not fit together"):
        store.load("p")
    assert isinstance(store.list_all()[0].error, LedgerDamaged)
    (finding,) = examine(store.folder("p").ledger())
    assert finding.message == (
        "The events of this ledger verify, but do not fit together (after event 1: KeyError: 'ghost')"
    )


# Earlier states.


def test_every_earlier_state_can_be_loaded(store: PlanStore) -> None:
    """The plan as of each event, and no event that is not there."""
    store.save(execution())
    do(store, "p", ChangePlan(goal="h"), ChangePlan(goal="i"))
    assert [store.folder("p").at(seq).goal for seq in (1, 2, 3)] == ["g", "h", "i"]
    for seq in (0, -1, 4):
        with pytest.raises(NotFound, match=f"no event {seq}"):
            store.folder("p").at(seq)


def test_an_earlier_state_is_told_from_the_snapshot_before_it(store: PlanStore) -> None:
    """Whatever came before that snapshot is not read, and the stretch ends before the next one."""
    store.save(execution())
    for goal in ("h", "i"):
        with store.folder("p").writing() as writer:
            writer.execute(ChangePlan(goal=goal), by="test")
            writer.snapshot()
    do(store, "p", ChangePlan(goal="j"), ChangePlan(goal="k"))
    folder = store.folder("p")
    told = {seq: [(record.seq, state.goal) for state, record in folder.stretch(seq)] for seq in (2, 4, 6, 7)}
    assert told[2] == [(1, "g"), (2, "h")]
    assert told[4] == [(3, "h"), (4, "i")]
    assert told[6] == told[7] == [(5, "i"), (6, "j"), (7, "k")]
    assert [folder.at(seq).goal for seq in range(1, 8)] == ["g", "h", "h", "i", "i", "j", "k"]


def test_behind_a_hole_states_begin_again_with_a_snapshot(store: PlanStore) -> None:
    """Nothing is built on events that are not there any more."""
    store.save(execution())
    do(store, "p", ChangePlan(goal="h"), ChangePlan(goal="i"))
    with store.folder("p").writing() as writer:
        writer.snapshot()
    do(store, "p", ChangePlan(goal="j"))
    path = Path(store.base_path) / "p" / "ledger.jsonl"
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join([lines[0], lines[1][:-9] + b"?" * 8 + b"\n", *lines[2:]]))
    assert [(record.seq, state.goal) for state, record in store.folder("p").states()] == [(1, "g"), (4, "i"), (5, "j")]


def test_versions_tell_what_changed_when(store: PlanStore) -> None:
    """Each change of the structure is a version, with what it added, removed and modified, and why."""
    create = CreatePlan(plan_id="p", project_id="q", plan=PlanSpec(goal="g", artifacts=(spec("a"), spec("b"))))
    change = ChangePlan(
        goal="h", remove=("b",), add=(spec("c"),), update=(spec("a", description="x"),), order=("c", "a"), reason="why"
    )
    do(store, "p", create, change, ChangePlan(goal="i"))
    first, second, third = store.versions("p")
    assert (first.version, first.added, first.removed, first.modified) == (1, ["a", "b"], [], [])
    assert (second.version, second.added, second.removed, second.modified) == (2, ["c"], ["b"], ["a"])
    assert (second.reason, second.by, second.artifacts, second.goal) == ("why", "test", 2, "h")
    assert (third.version, third.goal, third.added, third.modified) == (3, "i", [], [])


# Ids, deleting, cleaning.


@pytest.mark.parametrize("plan_id", ["../x", "", ".", "..", "a/b", "a\0b", "x" * 65])
def test_no_id_leads_out_of_the_store(store: PlanStore, tmp_path: Path, plan_id: str) -> None:
    """Every way in refuses an id that is no plain name, before anything is touched."""
    before = tree(tmp_path)
    for use in (store.load, store.delete, store.versions, lambda i: store.save(execution(i))):
        with pytest.raises(UsageError):
            use(plan_id)
    assert tree(tmp_path) == before


def test_a_deleted_plan_is_gone(store: PlanStore) -> None:
    """With everything in its folder; the others stay."""
    for name in ("a", "b"):
        store.save(execution(name))
    store.delete("a")
    assert os.listdir(store.base_path) == ["b"]
    with pytest.raises(NotFound):
        store.delete("a")
    store.save(execution("a", "anew"))
    loaded = store.load("a")
    assert loaded is not None
    assert loaded.goal == "anew"


@pytest.fixture
def running(store: PlanStore) -> Iterator[str]:
    """A closed plan that somebody holds as its scheduler."""
    store.save(execution("held"))
    do(store, "held", ClosePlan())
    lock = store.folder("held").run_lock()
    assert lock.acquire(wait=0)
    yield "held"
    lock.release()


def test_a_running_plan_is_neither_deleted_nor_cleaned(store: PlanStore, running: str) -> None:
    """Whoever runs it keeps it; cleaning goes on with the next."""
    store.save(execution("done"))
    do(store, "done", ClosePlan())
    with pytest.raises(TryLater, match="running"):
        store.delete(running)
    assert store.clean(timedelta(0)) == ["done"]
    assert store.ids() == [running]


def test_cleaning_takes_old_and_finished_plans_only(store: PlanStore) -> None:
    """A dry run names them and deletes nothing; young ones, open ones and damaged ones stay."""
    for name in ("closed", "open", "bad"):
        store.save(execution(name))
    do(store, "closed", ClosePlan())
    (Path(store.base_path) / "bad" / "ledger.jsonl").write_bytes(b"")
    assert store.clean(timedelta(days=1)) == []
    assert store.clean(timedelta(0), dry_run=True) == ["closed"]
    assert store.ids() == ["bad", "closed", "open"]
    assert store.clean(timedelta(0)) == ["closed"]
    assert store.ids() == ["bad", "open"]


def test_asking_whether_a_plan_is_running_creates_nothing_and_is_in_nobodys_way(store: PlanStore) -> None:
    """A look is no holder; a scheduler is; where nobody can tell, somebody is there."""
    store.save(execution())
    folder = store.folder("p")
    lock = folder.run_lock()
    assert not folder.is_running()
    assert not os.path.exists(lock.path)
    assert lock.acquire(wait=0, shared=True)
    assert not folder.is_running()
    lock.release()
    assert lock.acquire(wait=0)
    assert folder.is_running()
    lock.release()
    assert not folder.is_running()
    os.unlink(lock.path)
    os.symlink(lock.path, lock.path)
    assert folder.is_running()


def test_whose_claims_are_dead_is_told_without_taking_the_run_lock(store: PlanStore) -> None:
    """Reading a plan whose run was killed leaves no lock file behind."""
    store.save(execution())
    do(store, "p", StartRun(run="r", stale={"a": "never made"}), StartArtifacts(ids=("a",), run="r"))
    folder = store.folder("p")
    loaded = folder.load()
    assert loaded is not None
    assert folder.dead_claims(loaded.state) == ("a",)
    assert not os.path.exists(folder.run_lock().path)
