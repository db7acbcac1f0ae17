"""What somebody wants to happen to a plan. `decide` turns a command into events, or says why not."""

from __future__ import annotations

from headway.core.events import ArtifactCompleted
from headway.core.gates import Check
from headway.core.plan import ArtifactSpec, PlanSpec, Profile, Settings, Value
from headway.core.state import (
    Export,
    Fingerprint,
    How,
    Output,
    Position,
    PromptChange,
    Proposal,
    RunStatus,
    State,
    Step,
    Word,
)


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
    """Take in a plan file that may have changed. `base` is what it proposed when it was last taken in.

    `drop`: completed work that it may leave out. None: whatever it leaves out, as a file that somebody edited.
    """

    base: PlanSpec
    plan: PlanSpec
    proposal: Proposal
    take: str = ""
    drop: tuple[str, ...] | None = None


class ChangePlan(Command):
    """Add, update, remove or reorder artifacts, or change the goal or the settings.

    What is added or moved stands behind `after`: added without, at the end; moved without, first. `strict`: a plan
    without problems stays without. `unfinished`: it was said that work is removed before it was done; a plan file says
    so by lacking it.
    """

    goal: str | None = None
    settings: Settings | None = None
    remove: tuple[str, ...] = ()
    add: tuple[ArtifactSpec, ...] = ()
    update: tuple[ArtifactSpec, ...] = ()
    order: tuple[str, ...] = ()
    move: tuple[str, ...] = ()
    after: str | None = None
    reason: str = ""
    strict: bool = False
    unfinished: bool = True


class ExpandUnits(Command):
    """Bring the artifacts of a pipeline in line with its units; without `units`, of one unit with its loop."""

    pipeline: str
    cause: str = ""
    units: tuple[str, ...] | None = None
    artifacts: tuple[ArtifactSpec, ...] = ()
    removed: tuple[str, ...] = ()
    reason: str = ""


class GatherArtifact(Command):
    """What an artifact stands for is done, and so is it."""

    id: str
    outputs: tuple[Output, ...] = ()
    fp: Fingerprint = Fingerprint()
    note: str = ""


class PermitPromptChange(Command):
    """Say that templates were changed on purpose."""

    reason: str
    changes: tuple[PromptChange, ...] = ()


class BeginReplan(Command):
    """These artifacts failed for good: a planner is asked."""

    failed: tuple[str, ...] = ()
    reason: str = ""


class EndReplan(Command):
    """The planner had nothing to offer."""

    reason: str


class Replan(Command):
    """Make a patch the plan's next version. `parent` is the version that it was drawn up for.

    Only what was not started, has failed or is behind something of the patch may change; what was completed besides
    must be named in `drop`.
    """

    change: ChangePlan
    parent: int
    reason: str
    drop: tuple[str, ...] = ()


class ApprovePlan(Command):
    """Stand in for the plan that has this hash."""

    hash: str
    note: str = ""


class RejectPlan(Command):
    """Say that the plan is not to be made as it is."""

    reason: str


class RecordVerdict(Command):
    """Somebody's word at a gate. `content`: the bytes that they looked at, where they said which."""

    id: str
    gate: str
    verdict: Word
    by: str
    text: str = ""
    content: str = ""


class RecordChecks(Command):
    """What checks said about bytes that are recorded already."""

    id: str
    checks: tuple[Check, ...]


class SetProfile(Command):
    """Decide the plan's concurrency, and lock it if the profile says so."""

    profile: Profile


class StartRun(Command):
    """Begin a run. Claims of a run that ended without a word are released, and those whose lease is over by `now`."""

    run: str
    now: str = ""
    stale: dict[str, str] = {}
    jobs: int = 1
    partial: bool = False
    boot: str = ""
    templates: dict[str, str] = {}


class EndRun(Command):
    """End the run: completed, failed or paused."""

    run: str
    status: RunStatus
    reason: str = ""
    code: str = "interrupted"
    until: str = ""
    artifact: str = ""
    failed: tuple[str, ...] = ()
    kept: tuple[str, ...] = ()
    restored: tuple[str, ...] = ()


class StartArtifacts(Command):
    """Claim artifacts, to make them now. `reasons` explains those that the run did not announce.

    `seen`: the completions that were judged, by number (0: none); what was completed since is not made once more.
    """

    ids: tuple[str, ...]
    run: str = ""
    lease: str = ""
    reasons: dict[str, str] = {}
    holder: str = ""
    seen: dict[str, int] = {}


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
    checks: tuple[Check, ...] = ()
    prompt: str = ""
    attempts: int = 1


class CompleteArtifacts(Command):
    """Record what several attempts made that ended together, as it is told: none of them has gates. All or none."""

    came: tuple[ArtifactCompleted, ...]


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
    prompt: str = ""


class ExtendLease(Command):
    """Say that one is still at it; perhaps from another connection (`holder`), perhaps with a note on how far it is."""

    id: str
    token: int
    lease: str
    holder: str = ""
    note: str = ""


class LeaveClaims(Command):
    """The connection that kept these claims (artifacts with their tokens) has ended: they stand until `lease`."""

    tokens: dict[str, int]
    lease: str


class SweepClaims(Command):
    """Give back the claims whose lease is over by `now`."""

    now: str


class RecordStep(Command):
    """A part of a function returned; or what a shared file was, to begin with."""

    id: str
    token: int
    name: str
    step: Step
    origin: bool = False


class SkipArtifacts(Command):
    """Decide that artifacts are not made."""

    ids: tuple[str, ...]
    reason: str


class ReleaseArtifacts(Command):
    """Give claims up. With a token, only the claim that has it; not `begun`: nothing was done with it."""

    ids: tuple[str, ...]
    reason: str
    token: int = 0
    begun: bool = True


class AcceptOutput(Command):
    """What is on disk counts."""

    id: str
    outputs: tuple[Output, ...]
    fp: Fingerprint = Fingerprint()
    reason: str = ""
    verified: bool = False
    checks: tuple[Check, ...] = ()


class PreserveEdit(Command):
    """Bytes at output paths were kept as blobs."""

    id: str
    outputs: tuple[Output, ...]


class RecordLearning(Command):
    """Write down what is worth knowing the next time; about one artifact, if it is named."""

    text: str
    artifact: str = ""


class ResetPlan(Command):
    """Withdraw all progress and unlock the profile; with `ids`, only the progress of these."""

    reason: str = ""
    ids: tuple[str, ...] = ()


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
