"""plan.json as a format: what is written is read back, and whatever was changed is noticed."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headway.core import commands as cmd
from headway.core import events as ev
from headway.core.decide import Rejection, decide
from headway.core.evolve import apply
from headway.core.plan import ArtifactSpec, PlanSpec, Profile, Retry, Settings
from headway.core.state import Attempt, Completion, Output, Position, State, Step
from headway.errors import FormatTooNew, UsageError
from headway.projections import saved_execution
from headway.projections.saved_execution import SavedExecution, content_hash

IDS = ("a", "b", "c/write", "d é", "e")
texts = st.text(max_size=12)
paths = st.lists(st.sampled_from(["x.py", "src/y", "z/"]), max_size=2, unique=True).map(tuple)
values: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.floats(allow_nan=False, allow_infinity=False) | texts,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3),
    max_leaves=3,
)
mappings = st.dictionaries(texts, values, max_size=2)
profiles = st.builds(
    Profile,
    parallelization_enabled=st.booleans(),
    max_concurrent_tasks=st.integers(1, 64),
    council_parallel=st.booleans(),
)


def artifacts(artifact_id: str) -> st.SearchStrategy[ArtifactSpec]:
    """Any spec with this id, whether it makes sense or not."""
    return st.builds(
        ArtifactSpec,
        id=st.just(artifact_id),
        description=texts,
        contract=texts,
        requires=st.lists(st.sampled_from([*IDS, "gone"]), max_size=3).map(tuple),
        produces=paths,
        run=texts,
        args=mappings,
        milestone=st.sampled_from(["", "m1", "m2"]),
        retry=st.none() | st.builds(Retry, attempts=st.integers(1, 9)),
        timeout=st.none() | st.floats(0.1, 100),
        on_edit=st.none() | st.sampled_from(["ask", "accept", "discard"]),
        domain_type=texts,
        metadata=mappings,
    )


plans = st.builds(
    PlanSpec,
    goal=texts,
    settings=st.builds(Settings, vars=mappings, jobs=st.none() | st.integers(1, 9)),
    profile=st.none() | profiles,
    artifacts=st.permutations(IDS[:4]).flatmap(lambda ids: st.tuples(*map(artifacts, ids))),
)
ids = st.sampled_from(IDS)
outputs = st.lists(st.builds(Output, texts, texts, st.integers(0, 99)), max_size=2).map(tuple)


def command(state: State, draw: st.DrawFn) -> cmd.Command:
    """Something that somebody might do next."""
    artifact_id = draw(ids)
    token = state.claims[artifact_id].seq if artifact_id in state.claims else 0
    return draw(
        st.one_of(
            st.builds(cmd.StartArtifacts, ids=st.just((artifact_id,))),
            st.builds(cmd.CompleteArtifact, id=st.just(artifact_id), token=st.just(token), outputs=outputs, note=texts),
            st.builds(cmd.FailArtifact, id=st.just(artifact_id), token=st.just(token), error=texts, left=outputs),
            st.builds(cmd.SkipArtifacts, ids=st.just((artifact_id,)), reason=st.just("why not")),
            st.builds(cmd.ReleaseArtifacts, ids=st.just((artifact_id,)), reason=texts),
            st.builds(cmd.SetProfile, profile=profiles),
            st.builds(cmd.ChangePlan, goal=texts, remove=st.just((artifact_id,))),
            st.builds(cmd.ChangePlan, add=artifacts("e").map(lambda spec: (spec,))),
            st.builds(cmd.ChangePlan, update=artifacts(artifact_id).map(lambda spec: (spec,))),
            st.just(cmd.ResetPlan()),
            st.just(cmd.ClosePlan()),
        )
    )


@st.composite
def executions(draw: st.DrawFn) -> SavedExecution:
    """A plan after any allowed sequence of commands."""
    state: State | None = None
    seq = 0
    create = cmd.CreatePlan(plan_id="plan", project_id="project", plan=draw(plans))
    for number in range(draw(st.integers(1, 12))):
        outcome = decide(state, create if state is None else command(state, draw))
        if isinstance(outcome, Rejection):
            continue
        for event in outcome:
            seq += 1
            state = apply(
                state, ev.Record(seq, f"2026-01-01T00:00:{number:02}.000000Z", "me", event, "", f"{seq:032x}")
            )
    assert state is not None
    return SavedExecution(state, Position(seq, f"{seq:032x}"))


@settings(max_examples=60)
@given(executions())
def test_what_is_written_is_read_back(execution: SavedExecution) -> None:
    """load(save(x)) = x: the file holds all of the state, in order, and its position, as does the dictionary."""
    data = saved_execution.render(execution)
    again = saved_execution.parse(data)
    assert again == execution
    assert list(again.state.artifacts) == list(execution.state.artifacts)
    assert saved_execution.is_intact(data)
    assert saved_execution.render(again) == data
    document = json.loads(data)
    del document["digest"]
    assert document == execution.to_dict()


EXAMPLE = SavedExecution(
    State(
        plan_id="p",
        project_id="q",
        goal="g",
        artifacts={
            "b": ArtifactSpec(id="b", requires=("z", "a")),
            "a": ArtifactSpec(id="a", produces=("a.txt", "b.txt"), milestone="m"),
        },
        completed={"a": Completion(seq=3, at="t", outputs=(Output("a.txt", "ab" * 32), Output("b.txt", "cd" * 32)))},
        open={"m": 0},
    ),
    Position(7, "f" * 32),
)


@given(st.integers(0, len(saved_execution.render(EXAMPLE)) - 1), st.integers(1, 255))
def test_any_changed_byte_is_noticed(offset: int, mask: int) -> None:
    """Whichever byte of the file changes, it no longer has its digest."""
    data = bytearray(saved_execution.render(EXAMPLE))
    data[offset] ^= mask
    assert not saved_execution.is_intact(bytes(data))


def test_earlier_attempts_take_a_line_for_each_artifact() -> None:
    """Wherever else something is called as they are; and as Headway wrote them before, spread out, they are read."""
    tried = tuple(Attempt(seq=seq, at="t", ok=False, error='"past": {}') for seq in (1, 2))
    steps = {"b": {"one": Step(key="k", value={"past": {}})}}
    past = {"a": tried, "b": tried[:1]}
    state = msgspec.structs.replace(EXAMPLE.state, goal='"past": {}', steps=steps, past=past, left={"past": ""})
    execution = SavedExecution(state, EXAMPLE.position)
    data = saved_execution.render(execution)
    assert saved_execution.is_intact(data)
    assert saved_execution.parse(data) == execution
    lines = [line.strip().rstrip(b",") for line in data.splitlines()]
    assert b'"b": %s' % msgspec.json.encode(tried[:1]) in lines
    spread_out = msgspec.json.format(data, indent=2)
    assert spread_out.count(b"\n") > data.count(b"\n") + 6
    assert saved_execution.parse(spread_out) == execution


@given(st.binary(max_size=300))
def test_any_bytes_can_be_asked(data: bytes) -> None:
    """Rubbish is neither intact nor a plan, and nothing else happens."""
    assert not saved_execution.is_intact(data)
    assert saved_execution.opening_of(data) is None
    with pytest.raises(UsageError):
        saved_execution.parse(data)


def test_the_position_is_believed_only_as_it_was_written() -> None:
    """The opening has a seal of its own, over plan, number and hash."""
    data = saved_execution.render(EXAMPLE)[: saved_execution.OPENING_BYTES]
    opening = saved_execution.opening_of(data)
    assert opening == ("p", (7, "f" * 32))
    for before, after in ((b'"seq": 7', b'"seq": 8'), (b"ffff", b"fffe"), (b'"p"', b'"q"')):
        assert saved_execution.opening_of(data.replace(before, after, 1)) is None


def test_the_longest_opening_fits() -> None:
    """The position can be read from the first bytes alone, however long the plan's id and large its number."""
    state = msgspec.structs.replace(EXAMPLE.state, plan_id="x" * 64)
    data = saved_execution.render(SavedExecution(state, Position(10**17, "f" * 32)))
    assert saved_execution.opening_of(data[: saved_execution.OPENING_BYTES]) is not None


def test_a_newer_version_is_refused() -> None:
    """1.x is read, 2.0 is for a newer Headway."""
    document = EXAMPLE.to_dict()
    assert SavedExecution.from_dict({**document, "version": "1.7"}) == EXAMPLE
    with pytest.raises(FormatTooNew):
        SavedExecution.from_dict({**document, "version": "2.0"})


def test_open_counts_are_counted_and_not_believed() -> None:
    """A file cannot make a milestone complete, nor break one, by a number."""
    document = EXAMPLE.to_dict()
    document["plan"]["open"] = {"m": 17}
    assert SavedExecution.from_dict(document).state.open == {"m": 0}


def test_the_content_hash_is_that_of_the_output() -> None:
    """16 hex digits of the one output, or of all of them together; nothing for none."""
    one = Completion(seq=1, at="", outputs=(Output("a", "ab" * 32),))
    assert content_hash(one) == "ab" * 8
    assert len(content_hash(EXAMPLE.state.completed["a"])) == 16
    assert content_hash(Completion(seq=1, at="")) == ""


def test_a_saved_execution_has_the_names_of_the_rfc() -> None:
    """goal_hash, graph, completed, content_hashes, model_distribution and the rest can be asked for."""
    assert len(EXAMPLE.goal_hash) == 16
    assert list(EXAMPLE.graph) == ["b", "a"]
    assert list(EXAMPLE.completed) == list(EXAMPLE.content_hashes) == ["a"]
    assert EXAMPLE.model_distribution == {"small": 1, "medium": 1, "large": 0}
    assert (EXAMPLE.failed, EXAMPLE.skipped, EXAMPLE.status) == ({}, [], "draft")


@pytest.mark.parametrize(("word", "expected"), [("completed", "complete"), (None, "complete"), ("paused", "paused")])
def test_rfc_040_has_other_words_for_a_status(word: str | None, expected: str) -> None:
    """`completed` is our `complete`; without a word the progress tells."""
    document: dict[str, Any] = {
        "goal": "g",
        "graph": {"artifacts": {"a": {"id": "a"}}},
        "execution": {"completed": {"a": {}}, "status": word},
    }
    assert SavedExecution.from_dict(document).status == expected


def test_a_file_is_the_same_however_many_artifacts_are_written_at_one_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """The seams do not show."""
    whole = saved_execution.render(EXAMPLE)
    for count in (1, 2):
        monkeypatch.setattr(saved_execution, "AT_ONCE", count)
        assert saved_execution.render(EXAMPLE) == whole
