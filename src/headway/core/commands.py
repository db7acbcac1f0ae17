"""What somebody wants to happen to a plan. `decide` turns a command into events, or says why not."""

from __future__ import annotations

from headway.core.plan import ArtifactSpec, PlanSpec, Profile, Settings, Value
from headway.core.state import Export, Fingerprint, How, Output, Position, Proposal, RunStatus, State, Step


class Command(Value):
    """Base of all commands."""


class CreatePlan(Command):
    """Begin a ledger."""

    plan_id: str
    project_id: str
    plan: PlanSpec
    proposal: Proposal | None = None
    sound: bool = False


class TakeProposal(Command):
    """Take in a plan file that may have changed. `base` is what it proposed when it was last taken in."""

    base: PlanSpec
    plan: PlanSpec
    proposal: Proposal
    take: str = ""


class ChangePlan(Command):
    """Add, update, remove or reorder artifacts, or change the goal or the settings."""

    goal: str | None = None
    settings: Settings | None = None
    remove: tuple[str, ...] = ()
    add: tuple[ArtifactSpec, ...] = ()
    update: tuple[ArtifactSpec, ...] = ()
    order: tuple[str, ...] = ()
    reason: str = ""


class SetProfile(Command):
    """Decide the plan's concurrency, and lock it if the profile says so."""

    profile: Profile


class StartRun(Command):
    """Begin a run. Claims of a run that ended without a word are released."""

    run: str
    stale: dict[str, str] = {}
    jobs: int = 1
    partial: bool = False
    boot: str = ""


class EndRun(Command):
    """End the run: completed, failed or paused."""

    run: str
    status: RunStatus
    reason: str = ""
    code: str = "interrupted"
    until: str = ""
    failed: tuple[str, ...] = ()
    kept: tuple[str, ...] = ()
    restored: tuple[str, ...] = ()


class StartArtifacts(Command):
    """Claim artifacts, to make them now. `reasons` explains those that the run did not announce."""

    ids: tuple[str, ...]
    run: str = ""
    lease: str = ""
    reasons: dict[str, str] = {}


class CompleteArtifact(Command):
    """Record what an attempt made."""

    id: str
    token: int
    outputs: tuple[Output, ...] = ()
    fp: Fingerprint = Fingerprint()
    how: How = "made"
    ms: int = 0
    verified: bool = False
    external: bool = False
    tier: str = ""
    note: str = ""
    wrote: tuple[str, ...] = ()
    stdout: str = ""
    stderr: str = ""
    attempts: int = 1


class FailArtifact(Command):
    """Record that an attempt failed."""

    id: str
    token: int
    error: str
    code: str = "failed"
    attempts: int = 1
    left: tuple[Output, ...] = ()
    ms: int = 0
    stdout: str = ""
    stderr: str = ""


class RecordStep(Command):
    """A part of a function returned."""

    id: str
    token: int
    name: str
    step: Step


class SkipArtifacts(Command):
    """Decide that artifacts are not made."""

    ids: tuple[str, ...]
    reason: str


class ReleaseArtifacts(Command):
    """Give claims up. With a token, only the claim that has it."""

    ids: tuple[str, ...]
    reason: str
    token: int = 0


class AcceptOutput(Command):
    """What is on disk counts."""

    id: str
    outputs: tuple[Output, ...]
    fp: Fingerprint = Fingerprint()
    reason: str = ""


class PreserveEdit(Command):
    """Bytes at output paths were kept as blobs."""

    id: str
    outputs: tuple[Output, ...]


class RecordLearning(Command):
    """Write down what is worth knowing the next time; about one artifact, if it is named."""

    text: str
    artifact: str = ""


class ResetPlan(Command):
    """Withdraw all progress and unlock the profile."""

    reason: str = ""


class ClosePlan(Command):
    """Put the plan away."""

    reason: str = ""


class ImportPlan(Command):
    """Make a checkpoint the plan's state: of a new plan, or, with `replace`, of one that exists."""

    plan_id: str
    project_id: str
    source: str
    state: State
    origin: str = ""
    at: Position | None = None
    replace: bool = False
    reason: str = ""


class RecordExport(Command):
    """A checkpoint was written for somebody else."""

    export: Export
