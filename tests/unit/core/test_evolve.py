"""Facts fold: whatever `decide` allowed can be replayed, from any snapshot, and every derived figure is right."""

from __future__ import annotations

from itertools import groupby

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from headway.core import codec
from headway.core.decide import Rejection
from headway.core.events import (
    ArtifactCompleted,
    ArtifactStarted,
    GoalChanged,
    LedgerRotated,
    MilestoneCompleted,
    PlanCreated,
    Record,
    RunStarted,
    Snapshot,
    Start,
)
from headway.core.evolve import apply, apply_all, evolve, fold, replay
from headway.core.evolve.work import completed_all
from headway.core.lifecycle import all_done, progress, recorded_status, statuses
from headway.core.plan import ArtifactSpec, PlanSpec
from headway.core.state import Completion, Fingerprint, Output, Position, State
from tests.unit.core.lives import Intent, Life, lived, lives


@given(lives)
def test_whatever_decide_allowed_can_be_replayed(intents: list[Intent]) -> None:
    """Folding the events from the first gives the state that the commands led to."""
    life = lived(intents)
    assert fold(None, life.records) == life.state
    assert [record.seq for record in life.records] == list(range(1, len(life.records) + 1))


@given(lives, st.integers(0, 60))
def test_a_snapshot_and_its_tail_equal_the_whole(intents: list[Intent], at: int) -> None:
    """Whoever starts from an encoded state and goes on ends where everybody else does, byte for byte."""
    life = lived(intents)
    at = min(at, len(life.records) - 1)
    early = fold(None, life.records[: at + 1])
    assert early is not None
    late = fold(codec.decode_state(codec.encode_state(early)), life.records[at + 1 :])
    assert late is not None
    assert life.state is not None
    assert codec.encode_state(late) == codec.encode_state(life.state)


@given(lives)
def test_evolve_leaves_its_argument_alone(intents: list[Intent]) -> None:
    """The pure function and the one that works in place agree, and the pure one touches nothing."""
    records = lived(intents).records
    state: State | None = None
    for record in records:
        before = codec.encode_state(state) if state else b""
        after = evolve(state, record)
        assert (codec.encode_state(state) if state else b"") == before
        assert apply(state.copy() if state else None, record) == after
        state = after


@given(lives)
def test_what_happened_together_changes_the_state_as_one_after_the_other(intents: list[Intent]) -> None:
    """Events of one kind in one go, as a command that completes many has them recorded."""
    records = lived(intents).records
    one_by_one: State | None = None
    together: State | None = None
    for _, alike in groupby(records, lambda record: record.event.type):
        some = list(alike)
        together = apply_all(together, some)
        for record in some:
            one_by_one = apply(one_by_one, record)
        assert together == one_by_one
        assert together is None or one_by_one is None or list(together.completed) == list(one_by_one.completed)


def test_what_a_run_made_and_nothing_else_is_known_of_is_complete_in_one_go() -> None:
    """No word of it is left to be forgotten; with another word, each is looked at."""
    born = PlanCreated(
        format=1,
        plan_id="p",
        project_id="q",
        plan=PlanSpec(goal="g", artifacts=(ArtifactSpec(id="a"), ArtifactSpec(id="b"))),
    )
    events = [born, RunStarted(run="r"), ArtifactStarted(starts=(Start("a"), Start("b")), run="r")]
    state = fold(None, [Record(n, "t", "x", event, "", "") for n, event in enumerate(events, 1)])
    assert state is not None
    made = [Record(n, "t", "x", ArtifactCompleted(a, 3, ms=n), "", "") for n, a in enumerate(("b", "a"), 4)]
    noted = state.copy()
    noted.asked["a"] = 1
    assert not completed_all(noted, made)
    assert noted.claims == state.claims
    assert not completed_all(state.copy(), [*made, Record(6, "t", "x", MilestoneCompleted(milestone="m"), "", "")])
    one_by_one = fold(state, made)
    assert completed_all(state, made)
    assert state == one_by_one
    assert not state.claims


@given(
    st.lists(st.sampled_from(["plain", "plain", "milestone", "phase"]), min_size=1, max_size=6),
    st.booleans(),
    st.sampled_from(["", "asked", "notes", "uncertain"]),
)
def test_many_completions_come_to_what_each_of_them_comes_to(kinds: list[str], is_run: bool, known: str) -> None:
    """At a time of its own each, whether a run is under way or not, and whatever else is known: of each or of all."""
    said = {"plain": {}, "milestone": {"milestone": "m"}, "phase": {"pipeline": "p", "unit": "u", "phase": "x"}}
    specs = tuple(msgspec.convert({"id": f"a{n}", **said[kind]}, ArtifactSpec) for n, kind in enumerate(kinds))
    born = PlanCreated(format=1, plan_id="p", project_id="q", plan=PlanSpec(goal="g", artifacts=specs))
    starts = ArtifactStarted(starts=tuple(Start(spec.id) for spec in specs), run="r" if is_run else "")
    first = [born, RunStarted(run="r"), starts] if is_run else [born, starts]
    state = fold(None, [Record(n, f"t{n}", "x", event, "", "") for n, event in enumerate(first, 1)])
    assert state is not None
    if known:
        getattr(state, known)["a0"] = 1
    made = [Record(n, f"t{n}", "x", ArtifactCompleted(spec.id, 3, ms=n), "", "") for n, spec in enumerate(specs, 10)]
    one_by_one: State | None = state.copy()
    for record in made:
        one_by_one = apply(one_by_one, record)
    is_plain = not known and {*kinds} == {"plain"}
    assert completed_all(state.copy(), made) is is_plain
    assert apply_all(state, made) == one_by_one
    assert one_by_one is not None
    assert one_by_one.updated_at == made[-1].ts


@given(lives)
def test_derived_figures_equal_a_naive_count(intents: list[Intent]) -> None:
    """Open artifacts per milestone, progress and completeness are what counting from scratch gives, at every event."""
    life = Life()
    for intent in intents:
        life.do(intent(life.state))
        state = life.state
        if state is None:
            continue
        done = {a for a in state.artifacts if recorded_status(state, a) in ("complete", "skipped")}
        assert progress(state) == (len(done), len(state.artifacts))
        assert all_done(state) == (bool(state.artifacts) and len(done) == len(state.artifacts))
        naive: dict[str, int] = {}
        for spec in state.artifacts.values():
            if spec.milestone and spec.id not in done:
                naive[spec.milestone] = naive.get(spec.milestone, 0) + 1
        assert {m: n for m, n in state.open.items() if n} == naive
        assert not set(state.completed) & set(state.skipped)
        aspects = (state.completed, state.failed, state.skipped, state.claims, state.uncertain, state.steps)
        for aspect in (*aspects, state.made, state.evidence):
            assert set(aspect) <= set(state.artifacts)


@given(lives)
def test_statuses_equal_a_naive_fixpoint(intents: list[Intent]) -> None:
    """Blocked is what is pending behind something failed, missing or blocked."""
    state = lived(intents).state
    if state is None:
        return
    naive = {a: recorded_status(state, a) for a in state.artifacts}
    for _ in state.artifacts:
        for spec in state.artifacts.values():
            behind = [naive.get(r, "failed") for r in spec.requires]
            if naive[spec.id] == "pending" and ("failed" in behind or "blocked" in behind):
                naive[spec.id] = "blocked"
    assert statuses(state) == naive


@given(lives)
def test_a_refused_command_changes_nothing(intents: list[Intent]) -> None:
    """Neither a rejection nor a decision without events leaves a trace in the state."""
    life = Life()
    for intent in intents:
        before = codec.encode_state(life.state) if life.state else b""
        outcome = life.do(intent(life.state))
        if isinstance(outcome, Rejection) or not outcome:
            assert (codec.encode_state(life.state) if life.state else b"") == before
        if isinstance(outcome, Rejection):
            assert outcome.code
            assert outcome.message
            assert outcome.hint


# What a fold does with a ledger that is not whole.


def chain(*events: object) -> list[Record]:
    """Records of these events."""
    records: list[Record] = []
    for event in events:
        last = records[-1].position if records else Position(0, codec.START)
        line, _ = codec.encode(event, seq=last.seq + 1, ts="2026-01-01T00:00:00Z", by="t", prev=last.hash)  # type: ignore[arg-type]  # events
        records.append(codec.decode(line))
    return records


CREATED = PlanCreated(format=1, plan_id="p", project_id="q", plan=PlanSpec(goal="g", artifacts=(ArtifactSpec(id="a"),)))


def snapshot_of(records: list[Record]) -> Snapshot:
    """The state after these records."""
    state = fold(None, records)
    assert state is not None
    encoded = codec.encode_state(state)
    return Snapshot(state=msgspec.Raw(encoded), digest=codec.digest(encoded))


def test_behind_a_hole_there_is_no_state_until_a_snapshot() -> None:
    """Events that follow nothing known are not applied to something else."""
    events = [CREATED, GoalChanged(goal="one"), GoalChanged(goal="two")]
    events += [snapshot_of(chain(*events)), GoalChanged(goal="three")]
    records = chain(*events)
    holed = [records[0], *records[2:]]
    goals = [state.goal if state else None for state, _ in replay(holed)]
    assert goals == ["g", None, "two", "three"]


def test_a_segment_whose_predecessors_were_dropped_folds_from_its_snapshot() -> None:
    """The first line of a rotated ledger carries no state; the snapshot after it does."""
    before = chain(CREATED, GoalChanged(goal="one"))
    rotated = LedgerRotated(
        format=1, plan_id="p", project_id="q", sealed=before[-1].position, segment="ledger.1.jsonl.gz"
    )
    records = chain(CREATED, GoalChanged(goal="one"), rotated, snapshot_of(before), GoalChanged(goal="two"))
    assert fold(None, records[2:]) == fold(None, records)


# What is kept of a single event.


def test_all_that_is_said_of_a_completed_artifact_is_kept_under_its_name() -> None:
    """Every field that a completion shares with the event has the event's value, and none is what it is by default."""
    event = ArtifactCompleted(
        id="a",
        token=2,
        outputs=(Output("a.txt", "d" * 64, 3),),
        fp=Fingerprint(spec="s"),
        how="reused",
        ms=7,
        verified=True,
        tier="tier",
        note="note",
        wrote=("wrote",),
        stdout="stdout",
        stderr="stderr",
        attempts=2,
        integrates={"b": ("c",)},
        by="somebody",
        prompt="prompt",
    )
    records = chain(CREATED, ArtifactStarted(starts=(Start(id="a"),)), event)
    state = fold(None, records)
    assert state is not None
    done = state.completed["a"]
    shared = set(Completion.__struct_fields__) - {"seq", "at"}
    assert shared < set(ArtifactCompleted.__struct_fields__)
    for name in shared:
        assert getattr(done, name) == getattr(event, name) != getattr(Completion(0, ""), name), name
    assert (done.seq, done.at) == (3, records[-1].ts)


def test_claims_that_began_together_have_the_leases_that_were_given_to_each() -> None:
    """Those without one are equal; those with one have their own."""
    both = PlanSpec(goal="g", artifacts=tuple(ArtifactSpec(id=name) for name in "abc"))
    created = PlanCreated(format=1, plan_id="p", project_id="q", plan=both)
    starts = (Start(id="a"), Start(id="b", lease="later", holder="h"), Start(id="c"))
    state = fold(None, chain(created, ArtifactStarted(starts=starts, run="r")))
    assert state is not None
    found = {name: (claim.seq, claim.by, claim.run, claim.lease, claim.holder) for name, claim in state.claims.items()}
    assert found == {"a": (2, "t", "r", "", ""), "b": (2, "t", "r", "later", "h"), "c": (2, "t", "r", "", "")}
