"""Random lives of a plan: commands of every kind, allowed or not, as Hypothesis draws them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec
from hypothesis import strategies as st

from headway.core import codec
from headway.core import commands as cmd
from headway.core.approval import plan_hash
from headway.core.decide import Rejection, decide
from headway.core.events import ArtifactCompleted, Record
from headway.core.evolve import apply
from headway.core.gates import Check, question
from headway.core.plan import ArtifactSpec, Gate, PlanSpec, Profile, Replanning, Settings
from headway.core.state import Export, Fingerprint, Output, Position, Proposal, State, Step

IDS = ("a", "b", "c", "d", "e")
ids = st.sampled_from(IDS)
some_ids = st.lists(ids, max_size=3).map(tuple)
texts = st.text(max_size=8)
milestones = st.sampled_from(("", "", "m", "n"))
outputs = st.lists(st.builds(Output, path=texts, digest=st.just("d" * 64), size=st.integers(0, 9)), max_size=2).map(
    tuple
)
fingerprints = st.builds(Fingerprint, spec=texts, inputs=st.dictionaries(ids, texts, max_size=2))
profiles = st.builds(
    Profile,
    parallelization_enabled=st.booleans(),
    max_concurrent_tasks=st.integers(1, 64),
    council_parallel=st.booleans(),
    locked=st.booleans(),
)
settings = st.builds(
    Settings,
    vars=st.dictionaries(texts, st.integers() | texts, max_size=2),
    jobs=st.none() | st.integers(1, 9),
    replan=st.none() | st.builds(Replanning, most=st.integers(0, 9)),
)
CHECK = Gate(name="lint", kind="check", run="true")
gates = st.lists(
    st.sampled_from((CHECK, Gate(name="review"), Gate(name="council", kind="council", by=("x", "y", "z")))),
    max_size=2,
    unique_by=lambda gate: gate.name,
).map(tuple)
words = st.sampled_from(("APPROVE", "APPROVE", "REJECT", "CONCERNS"))
checks = st.lists(st.builds(Check, st.just("lint"), words, texts, st.just(question(CHECK))), max_size=1).map(tuple)
specs = st.builds(
    ArtifactSpec,
    gates=gates,
    id=ids,
    description=texts,
    milestone=milestones,
    requires=some_ids,
    effects=st.sampled_from(("", "external")),
)
some_plans = st.builds(
    PlanSpec,
    goal=texts,
    artifacts=st.lists(specs, max_size=5).map(tuple),
    profile=st.none() | profiles,
    settings=settings,
)


@st.composite
def full_plans(draw: st.DrawFn) -> PlanSpec:
    """A plan with an artifact for each id, which requires at most one that stands before it."""
    artifacts = []
    for number, artifact_id in enumerate(IDS):
        before = st.sampled_from(IDS[:number]).map(lambda a: (a,)) if number else st.just(())
        spec = ArtifactSpec(
            id=artifact_id,
            milestone=draw(milestones),
            requires=draw(st.just(()) | before),
            effects=draw(st.sampled_from(("", "", "external"))),
            gates=draw(st.just(()) | gates),
        )
        artifacts.append(spec)
    return PlanSpec(goal=draw(texts), artifacts=tuple(artifacts), profile=draw(st.none() | st.none() | profiles))


proposals = st.builds(Proposal, path=texts, source=texts, blob=texts)
runs = st.sampled_from(("r1", "r2"))

Intent = Callable[[State | None], cmd.Command]
"""A command that depends on the state in which it is given: with the right token, of the run that is under way."""


def token(state: State | None, artifact_id: str, right: bool) -> int:
    """The token of whoever makes this artifact; or, if it is not to be right, some other number."""
    claim = state.claims.get(artifact_id) if state else None
    return claim.seq if claim and right else 9999


def _plain(command: type[cmd.Command], **fields: st.SearchStrategy[Any]) -> st.SearchStrategy[Intent]:
    return st.builds(command, **fields).map(lambda built: lambda state: built)


def _fenced(command: type[cmd.Command], **fields: st.SearchStrategy[Any]) -> st.SearchStrategy[Intent]:
    def intend(built: cmd.Command, right: bool) -> Intent:
        return lambda state: msgspec.structs.replace(built, token=token(state, built.id, right))  # type: ignore[attr-defined]  # fenced commands have one

    right = st.sampled_from((True, True, True, False))
    return st.builds(intend, st.builds(command, id=ids, token=st.just(0), **fields), right)


def _import(state: State | None, replace: bool, goal: str) -> cmd.Command:
    source = state.copy() if state else State(plan_id="p", project_id="q")
    source.goal = goal
    return cmd.ImportPlan(plan_id="p", project_id="q", source="x", state=source, replace=replace)


def _take(state: State | None, plan: PlanSpec, proposal: Proposal, take: str) -> cmd.Command:
    known = tuple(state.artifacts.values()) if state else ()
    base = PlanSpec(goal=state.goal if state else "", artifacts=known[:3])
    return cmd.TakeProposal(base=base, plan=plan, proposal=proposal, take=take)


def _replan(state: State | None, patch: cmd.ChangePlan, drop: bool, current: bool) -> cmd.Command:
    version = state.version if state else 0
    said = tuple(state.artifacts) if state and drop else ()
    return cmd.Replan(change=patch, parent=version if current else version + 1, reason="better", drop=said)


def _approve(state: State | None, right: bool) -> cmd.Command:
    return cmd.ApprovePlan(hash=plan_hash(state) if state and right else "?")


def _order(state: State | None, order: list[str]) -> cmd.Command:
    known = state.artifacts if state else {}
    return cmd.ChangePlan(order=tuple(a for a in order if a in known))


create = _plain(
    cmd.CreatePlan, plan_id=st.just("p"), project_id=st.just("q"), plan=full_plans(), proposal=st.none() | proposals
)
work = st.one_of(
    _plain(cmd.StartArtifacts, ids=some_ids, run=runs | st.just("")),
    _fenced(
        cmd.CompleteArtifact, outputs=outputs, fp=fingerprints, how=st.sampled_from(("made", "reused")), checks=checks
    ),
    _fenced(cmd.ExtendLease, lease=st.just("2026-01-01T00:00:30.000000Z")),
    _plain(cmd.SweepClaims, now=st.sampled_from(("2026-01-01T00:00:10", "2027-01-01T00:00:00"))),
    _plain(
        cmd.RecordVerdict,
        id=ids,
        gate=st.sampled_from(("review", "council", "lint", "no")),
        verdict=words,
        by=st.sampled_from(("x", "y", "z", "")),
        text=texts,
    ),
    _plain(cmd.RecordChecks, id=ids, checks=checks),
    _fenced(cmd.FailArtifact, error=texts, left=outputs),
    _fenced(cmd.RecordStep, name=texts, step=st.builds(Step, key=texts, value=st.integers())),
    _plain(cmd.SkipArtifacts, ids=some_ids, reason=texts),
    _plain(cmd.ReleaseArtifacts, ids=some_ids, reason=texts),
    _plain(cmd.AcceptOutput, id=ids, outputs=outputs, fp=fingerprints, reason=texts),
    _plain(cmd.PreserveEdit, id=ids, outputs=outputs),
    _plain(cmd.StartRun, run=runs, stale=st.dictionaries(ids, texts, max_size=2)),
    _plain(cmd.EndRun, run=runs, status=st.sampled_from(("completed", "failed", "paused"))),
)
structure = st.one_of(
    _plain(cmd.ChangePlan, goal=st.none() | texts, settings=st.none() | settings),
    _plain(cmd.ChangePlan, add=st.lists(specs, max_size=2).map(tuple), remove=some_ids),
    _plain(cmd.ChangePlan, update=st.lists(specs, max_size=2).map(tuple), remove=some_ids),
    st.builds(
        lambda *a: lambda state: _replan(state, *a),
        st.builds(
            cmd.ChangePlan, add=st.lists(specs, max_size=1).map(tuple), update=st.lists(specs, max_size=2).map(tuple)
        )
        | st.builds(cmd.ChangePlan, remove=some_ids),
        st.booleans(),
        st.sampled_from((True, True, False)),
    ),
    st.permutations(IDS).map(lambda order: lambda state: _order(state, order)),
    st.builds(
        lambda *a: lambda state: _take(state, *a), some_plans, proposals, st.sampled_from(("", "file", "ledger"))
    ),
)
rare = st.one_of(
    create,
    _plain(cmd.SetProfile, profile=profiles | st.builds(Profile, max_concurrent_tasks=st.integers(-1, 66))),
    _plain(cmd.ResetPlan, reason=texts),
    _plain(cmd.ResetPlan, reason=texts, ids=some_ids),
    _plain(cmd.BeginReplan, failed=some_ids),
    _plain(cmd.EndReplan, reason=texts),
    _plain(cmd.RejectPlan, reason=texts),
    st.booleans().map(lambda right: lambda state: _approve(state, right)),
    _plain(cmd.ClosePlan, reason=texts),
    _plain(cmd.RecordExport, export=st.builds(Export, path=texts, at=texts, seq=st.just(1), hash=texts)),
    st.builds(lambda replace, goal: lambda state: _import(state, replace, goal), st.booleans(), texts),
)


def _go_on(artifact_id: str, end: str, run: str) -> Intent:
    """Start an artifact that nobody makes, or end the attempt that somebody makes: most of a plan's life is this."""

    def intend(state: State | None) -> cmd.Command:
        if state is None or artifact_id not in state.claims:
            return cmd.StartArtifacts(ids=(artifact_id,), run=run)
        held = state.claims[artifact_id].seq
        if end == "fail":
            return cmd.FailArtifact(id=artifact_id, token=held, error="no")
        if end == "release":
            return cmd.ReleaseArtifacts(ids=(artifact_id,), reason="later")
        if end == "together":
            return cmd.CompleteArtifacts(
                came=tuple(
                    ArtifactCompleted(id=a, token=claim.seq, integrates=state.artifacts[a].integrates)
                    for a, claim in state.claims.items()
                    if not state.artifacts[a].gates or a == artifact_id
                )
            )
        passed = (Check("lint", "APPROVE", "", question(CHECK)),)
        return cmd.CompleteArtifact(
            id=artifact_id, token=held, checks=passed if state.artifacts[artifact_id].gates else ()
        )

    return intend


go_on = st.builds(
    _go_on, ids, st.sampled_from(("complete", "complete", "together", "fail", "release")), runs | st.just("")
)
weighed = [go_on] * 8 + [work] * 4 + [structure] * 2 + [rare]
lives = st.tuples(create, st.lists(st.sampled_from(range(len(weighed))).flatmap(weighed.__getitem__), min_size=8)).map(
    lambda life: [life[0], *life[1]]
)


class Life:
    """A plan that lives through commands; its records are as a ledger would have them."""

    def __init__(self) -> None:
        self.state: State | None = None
        self.records: list[Record] = []

    def do(self, command: cmd.Command) -> list[Record] | Rejection:
        """Decide, and let what was decided happen."""
        outcome = decide(self.state, command)
        if isinstance(outcome, Rejection):
            return outcome
        new = []
        for event in outcome:
            last = self.records[-1] if self.records else None
            seq, prev = (last.seq + 1, last.hash) if last else (1, codec.START)
            ts = f"2026-01-01T00:00:{seq % 60:02d}.000000Z"
            line, _ = codec.encode(event, seq=seq, ts=ts, by="test", prev=prev)
            record = codec.decode(line)
            assert record.event == event
            self.state = apply(self.state, record)
            self.records.append(record)
            new.append(record)
        return new

    @property
    def position(self) -> Position:
        """The newest event."""
        return self.records[-1].position


def lived(intents: list[Intent]) -> Life:
    """A whole life."""
    life = Life()
    for intent in intents:
        life.do(intent(life.state))
    return life
