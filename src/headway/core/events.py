"""Every fact that a ledger can hold, in the past tense. docs/ledger.md describes each one.

An event says what happened to a plan; who, when and in which place of the chain is the record around it.
To do on the next format change: nothing so far.
"""

# No annotations from __future__: msgspec would have to parse all of these texts before it reads the first value.

from collections.abc import Iterator
from typing import ClassVar, Literal

import msgspec

from headway.core.plan import ArtifactSpec, PlanSpec, Profile, Settings, Value
from headway.core.state import Export, Fingerprint, How, Output, Position, PromptChange, Proposal, Step, Word

FORMAT = 1


class Event(Value):
    """Base of all events. `opt` marks those that an older reader may skip.

    Events that change the structure name the version that it has then: what one command changes is one version.
    """

    type: ClassVar[str] = ""
    opt: ClassVar[bool] = False


class PlanCreated(Event):
    """The first line of most ledgers: what the plan is, as first proposed. `sound`: it was found to have no problem."""

    type = "plan_created"
    format: int
    plan_id: str
    project_id: str
    plan: PlanSpec
    sound: bool = False


class GoalChanged(Event):
    """The plan keeps its id and wants something else."""

    type = "goal_changed"
    goal: str
    was: str = ""
    reason: str = ""
    version: int = 0


class PlanUpdated(Event):
    """Settings of the plan changed: variables, environment, defaults."""

    type = "plan_updated"
    settings: Settings
    reason: str = ""
    version: int = 0


class ProposalTaken(Event):
    """A plan file was taken in; what it changed stands in the events before this one."""

    type = "proposal_taken"
    proposal: Proposal


class ArtifactAdded(Event):
    """Artifacts joined the plan, after the one named (or at its end)."""

    type = "artifact_added"
    artifacts: tuple[ArtifactSpec, ...]
    after: str | None = None
    reason: str = ""
    version: int = 0


class ArtifactUpdated(Event):
    """Artifacts are to be something else; each stands here in full."""

    type = "artifact_updated"
    artifacts: tuple[ArtifactSpec, ...]
    reason: str = ""
    version: int = 0


class ArtifactRemoved(Event):
    """Artifacts left the plan. What they made stays on disk and in the blobs."""

    type = "artifact_removed"
    ids: tuple[str, ...]
    reason: str = ""
    version: int = 0


class ArtifactReordered(Event):
    """These artifacts, in this order, now follow `after` (or stand first)."""

    type = "artifact_reordered"
    ids: tuple[str, ...]
    after: str | None = None
    reason: str = ""
    version: int = 0


class UnitExpanded(Event):
    """Artifacts of a pipeline's units came, changed or went; each that is there now and was not so stands here in full.

    `cause` is the digest of what it follows from, `units` all that there are then. Without units, a loop of one unit
    went on. `reordered`: what lists them, and has them in the order that they had before.
    `shared`: files that units change in place where some are left that were there before: what those did that are gone
    is not to be found there.
    """

    type = "unit_expanded"
    pipeline: str
    cause: str = ""
    units: tuple[str, ...] | None = None
    artifacts: tuple[ArtifactSpec, ...] = ()
    removed: tuple[str, ...] = ()
    reason: str = ""
    reordered: tuple[str, ...] = ()
    shared: tuple[str, ...] = ()


class RecipeChanged(Event):
    """Templates of completed artifacts were changed on purpose, and why."""

    type = "recipe_changed"
    reason: str
    changes: tuple[PromptChange, ...] = ()


class ReplanBegan(Event):
    """These artifacts failed for good, and a planner is asked for a better plan."""

    type = "replan_began"
    failed: tuple[str, ...] = ()
    reason: str = ""


class ReplanFailed(Event):
    """No better plan was found."""

    type = "replan_failed"
    reason: str


class PlanReplanned(Event):
    """What was changed in the same go is a new version of the plan, in place of its parent."""

    type = "plan_replanned"
    version: int
    parent: int
    reason: str
    failed: tuple[str, ...] = ()
    added: tuple[str, ...] = ()
    updated: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()


class PlanApproved(Event):
    """Somebody stands in for the plan as it is: its hash, its profile, and the digest of what is not an artifact."""

    type = "plan_approved"
    hash: str
    head: str
    profile: Profile | None = None
    note: str = ""


class PlanRejected(Event):
    """Somebody does not want the plan as it is: nothing of it is made until it is approved."""

    type = "plan_rejected"
    reason: str


class ProfileSet(Event):
    """The plan's concurrency was decided."""

    type = "profile_set"
    profile: Profile


class ProfileLocked(Event):
    """From here on the profile stands until the plan is reset."""

    type = "profile_locked"


class RunStarted(Event):
    """A run began. `because` names what was judged stale, by reason: an upper bound of what it makes.

    `stale` is how that was written before: the reason of each artifact. `lasting`: what it was asked to make anew stays
    asked for until it is made; runs before that word forgot it when they were cut short. `templates`: those that had
    changed since something was made with them, and the digests with which the run goes on. `sure`: what a dead run of
    the same boot had announced and not begun is untouched; runs before that word took it for begun.
    """

    type = "run_started"
    run: str
    because: dict[str, tuple[str, ...]] = {}
    stale: dict[str, str] = {}
    jobs: int = 1
    partial: bool = False
    boot: str = ""
    lasting: bool = False
    templates: dict[str, str] = {}
    sure: bool = False

    @property
    def reasons(self) -> dict[str, str]:
        """Why each artifact was judged stale."""
        return self.stale | {artifact_id: code for code, ids in self.because.items() for artifact_id in ids}


class Start(Value, kw_only=False):
    """One artifact that somebody began to make."""

    id: str
    reason: str = ""
    lease: str = ""
    holder: str = ""


class ArtifactStarted(Event):
    """Claims. The number of this event is the fencing token of each."""

    type = "artifact_started"
    starts: tuple[Start, ...]
    run: str = ""


class Came(Event, kw_only=False):
    """What is said of an artifact whose bytes are there, whether it is complete or waits for its gates."""

    id: str
    token: int = 0
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
    integrates: dict[str, tuple[str, ...]] = {}
    by: str = ""
    """Who made it, where it was somebody else's word that completed it."""
    prompt: str = ""
    """The blob of the prompt that it was made with."""


class ArtifactCompleted(Came):
    """An artifact was made, restored by reuse, or taken over from elsewhere, and verified."""

    type = "artifact_completed"


class ArtifactMade(Came):
    """An artifact was made, or taken over, and not all of its gates have been passed: its bytes are safe, and it waits.

    It holds no claim. Of an artifact that was complete before: a gate was added.
    """

    type = "artifact_made"


class GateRecorded(Event):
    """A word at a gate: about these bytes (`content`) under this contract, and about no others."""

    type = "gate_recorded"
    id: str
    gate: str
    verdict: Word
    by: str = ""
    contract: str = ""
    content: str = ""
    asked: str = ""
    text: str = ""


class ArtifactFailed(Event):
    """An attempt failed, after its retries. `left` is what it left at the output paths; without a digest, something."""

    type = "artifact_failed"
    id: str
    error: str
    token: int = 0
    code: str = "failed"
    attempts: int = 1
    left: tuple[Output, ...] = ()
    ms: int = 0
    stdout: str = ""
    stderr: str = ""
    prompt: str = ""


class StepRecorded(Event):
    """A part of a function returned; an attempt after a crash takes its result from here.

    `origin`: it keeps what a shared file was before anybody changed it, for whichever artifact will be the first to.
    """

    type = "step_recorded"
    id: str
    name: str
    step: Step
    origin: bool = False


class ArtifactSkipped(Event):
    """Somebody decided that these are not made."""

    type = "artifact_skipped"
    ids: tuple[str, ...]
    reason: str


class LeaseExtended(Event):
    """Whoever holds this claim is still at it; `holder`: the connection that keeps it now; `note`: how far it is."""

    type = "lease_extended"
    id: str
    token: int
    lease: str
    holder: str = ""
    note: str = ""


class HolderLeft(Event):
    """The connection that kept these claims has ended. They stand until `lease`, and anybody may take them over."""

    type = "holder_left"
    tokens: dict[str, int]
    lease: str


class ArtifactReleased(Event):
    """Claims given up, by their holder or by whoever found it gone. `begun`: an attempt may have left something."""

    type = "artifact_released"
    ids: tuple[str, ...]
    reason: str
    begun: bool = True


class MilestoneCompleted(Event):
    """The last open artifact of a milestone was done."""

    type = "milestone_completed"
    milestone: str


class LearningRecorded(Event):
    """Somebody wrote down what is worth knowing the next time."""

    type = "learning_recorded"
    text: str
    artifact: str = ""


class EditPreserved(Event):
    """Bytes at an output path that no ledger names were kept as blobs before a recipe could touch them."""

    type = "edit_preserved"
    id: str
    outputs: tuple[Output, ...]


class OutputAccepted(Event):
    """What is on disk counts as the output, by somebody's word."""

    type = "output_accepted"
    id: str
    outputs: tuple[Output, ...]
    fp: Fingerprint = Fingerprint()
    reason: str = ""
    verified: bool = False


class RunPaused(Event):
    """A run stopped before its end; `run` again goes on. `artifact`: where it was when it had to."""

    type = "run_paused"
    run: str
    reason: str
    code: str = "interrupted"
    until: str = ""
    artifact: str = ""
    kept: tuple[str, ...] = ()
    restored: tuple[str, ...] = ()


class RunCompleted(Event):
    """A run did all that it set out to do. `kept` were named stale and then spared by early cut-off.

    `whole`: it was about all of the plan, and left nothing of it stale.
    """

    type = "run_completed"
    run: str
    kept: tuple[str, ...] = ()
    restored: tuple[str, ...] = ()
    whole: bool = False


class RunFailed(Event):
    """A run did what it could; some artifacts failed or are blocked. `artifact`: where it had to stop as well, with
    what a pause says of that.
    """

    type = "run_failed"
    run: str
    failed: tuple[str, ...] = ()
    kept: tuple[str, ...] = ()
    restored: tuple[str, ...] = ()
    code: str = ""
    until: str = ""
    artifact: str = ""


class Snapshot(Event):
    """The whole state and its digest, so that loading need not begin at the beginning."""

    type = "snapshot"
    state: msgspec.Raw
    digest: str


class PlanRebuilt(Event):
    """The ledger could not be read from its start; the state was taken from elsewhere, unverified."""

    type = "plan_rebuilt"
    format: int
    plan_id: str
    project_id: str
    source: str
    state: msgspec.Raw
    reason: str = ""
    at: Position | None = None


class PlanImported(Event):
    """A checkpoint became this plan's state."""

    type = "plan_imported"
    format: int
    plan_id: str
    project_id: str
    source: str
    state: msgspec.Raw
    origin: str = ""
    at: Position | None = None
    reason: str = ""
    version: int = 0


class PlanExported(Event):
    """A checkpoint was written for somebody else."""

    type = "plan_exported"
    export: Export


class PlanReset(Event):
    """All progress was withdrawn and the profile unlocked; structure and history stay. With `ids`: only theirs."""

    type = "plan_reset"
    reason: str = ""
    ids: tuple[str, ...] = ()


class PlanClosed(Event):
    """The plan was put away."""

    type = "plan_closed"
    reason: str = ""


class LedgerRecovered(Event):
    """Bytes of this ledger could not be believed and were set aside, or events of it are gone.

    A `hole` stays where it is, known by range and digest; `debris` and a `cut` were taken out of the file; a `segment`
    was moved away whole; a `loss` names an event that somebody was told about and that is nowhere any more.
    """

    type = "ledger_recovered"
    kind: Literal["debris", "cut", "hole", "segment", "loss"]
    offset: int = 0
    length: int = 0
    digest: str = ""
    quarantine: str = ""
    after: int = 0
    lost: dict[str, int] = {}
    resumes: Position | None = None
    named: Position | None = None
    segment: str = ""


class LedgerRotated(Event):
    """The first line of a new segment: older events are sealed in files of their own."""

    type = "ledger_rotated"
    format: int
    plan_id: str
    project_id: str
    sealed: Position
    segment: str
    digest: str = ""


class SegmentDropped(Event):
    """A sealed segment was deleted on purpose."""

    type = "segment_dropped"
    segment: str
    first: int
    last: int
    reason: str


class Unknown(Event):
    """An event of a newer Headway that older readers may skip."""

    type = "unknown"
    opt = True
    name: str
    data: msgspec.Raw


class First(Event):
    """The first line of a ledger that is no plan's, with the format that it has: core/places.py has them."""

    known: ClassVar[int] = 1
    format: int


def _kinds(base: type[Event]) -> Iterator[type[Event]]:
    """All events of a kind that have a name."""
    for cls in base.__subclasses__():
        if cls.type and cls is not Unknown:
            yield cls
        yield from _kinds(cls)


EVENTS: dict[str, type[Event]] = {cls.type: cls for cls in _kinds(Event)}
Genesis = PlanCreated | PlanRebuilt | PlanImported | LedgerRotated
"""What the first line of a ledger can be: each carries format version, plan id and project id."""


class Record(msgspec.Struct, frozen=True, gc=False):
    """An event in its place: number, time, author and link to the one before."""

    seq: int
    ts: str
    by: str
    event: Event
    prev: str
    hash: str

    @property
    def position(self) -> Position:
        """Where this record stands in the chain."""
        return Position(self.seq, self.hash)
