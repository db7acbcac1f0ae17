"""What is true of a plan after some events: the state that `evolve` builds and snapshots embed.

One mapping per aspect, keyed by artifact id, so that an event costs what it names and not what the plan holds.
The state is data only. What follows from it (status, blocked, progress) is in lifecycle.py.
"""

# No annotations from __future__: msgspec would have to parse all of these texts before it reads the first value.

from typing import Any, Literal, NamedTuple, Self

import msgspec

from headway.core.plan import ArtifactSpec, Profile, Settings, Value

PlanStatus = Literal["draft", "in_progress", "paused", "replanning", "complete", "failed", "closed"]
ArtifactStatus = Literal["pending", "in_progress", "complete", "failed", "skipped", "blocked"]
RunStatus = Literal["running", "paused", "completed", "failed"]
How = Literal["made", "reused", "accepted", "imported", "gathered"]
Word = Literal["APPROVE", "REJECT", "CONCERNS"]


class Position(NamedTuple):
    """A point in a ledger: the newest event that is reflected, by number and hash."""

    seq: int
    hash: str


class Output(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """Bytes at a path: what an attempt left there. The path of a text artifact is empty."""

    path: str
    digest: str
    size: int = 0
    kind: Literal["file", "exec", "tree", "link", "text"] = "file"


MOVED = "moved"
"""Stands for what changed while an artifact was being made from it: equal to nothing, so the artifact is stale."""
REORDERED = "reordered"
"""Stands for what was asked of an artifact that lists units, when these were in another order."""


class Fingerprint(Value):
    """What an artifact was made from, part by part, so that a change can be named.

    `before` names blobs: files that are changed in place are put back to them before they are changed once more.
    `templates` are prompts, by role and path.
    """

    v: int = 1
    spec: str = ""
    recipe: str = ""
    inputs: dict[str, str] = {}
    sources: dict[str, str] = {}
    before: dict[str, str] = {}
    templates: dict[str, str] = {}


class Completion(Value, kw_only=False):
    """An artifact that was completed: when, by whom, what came out, and what it was made from."""

    seq: int
    at: str
    by: str = ""
    outputs: tuple[Output, ...] = ()
    fp: Fingerprint = Fingerprint()
    how: How = "made"
    ms: int = 0
    verified: bool = False
    tier: str = ""
    note: str = ""
    wrote: tuple[str, ...] = ()
    stdout: str = ""
    stderr: str = ""
    prompt: str = ""
    """The blob of the prompt that it was made with."""
    attempts: int = 1
    integrates: dict[str, tuple[str, ...]] = {}


class Failure(Value):
    """The newest failed attempt of an artifact, until one succeeds."""

    seq: int
    at: str
    error: str
    code: str = "failed"
    by: str = ""
    attempts: int = 1
    left: tuple[Output, ...] = ()
    stdout: str = ""
    stderr: str = ""
    prompt: str = ""


class Attempt(Value):
    """An attempt at a phase that a newer one has replaced."""

    seq: int
    at: str
    ok: bool
    how: How = "made"
    outputs: tuple[Output, ...] = ()
    prompt: str = ""
    error: str = ""
    stdout: str = ""
    templates: dict[str, str] = {}


class Expansion(Value):
    """The units of a pipeline as last expanded, and the digest of what caused it."""

    cause: str
    units: tuple[str, ...] = ()


class PromptChange(Value):
    """A template that changed on purpose: its digests, and the artifacts that were made with the old one."""

    template: str
    was: str = ""
    now: str = ""
    artifacts: tuple[str, ...] = ()


class PromptNote(Value):
    """Why an artifact may be made with another prompt than before."""

    seq: int
    at: str
    by: str
    reason: str
    changes: tuple[PromptChange, ...] = ()


class Skip(Value):
    """Somebody decided that this artifact is not made; its dependents go on with its last output, or without."""

    seq: int
    at: str
    reason: str
    by: str = ""
    last: Completion | None = None


class Claim(Value):
    """Who is making an artifact now. `seq`, the number of the event that started it, is the fencing token.

    `holder` is the connection that keeps it, `left` when that ended: from then on anybody may take it over.
    """

    seq: int
    at: str
    by: str = ""
    run: str = ""
    lease: str = ""
    holder: str = ""
    left: str = ""


class Note(Value):
    """What whoever is, or was, at an artifact wants the next one to know; until it is complete."""

    seq: int
    at: str
    by: str
    text: str


class Verdict(Value):
    """What somebody said at a gate about these bytes under this contract. `asked`: the digest of a check's command."""

    gate: str
    verdict: Word
    by: str
    seq: int
    at: str
    contract: str = ""
    content: str = ""
    asked: str = ""
    text: str = ""


class Approval(Value):
    """Somebody's word for a plan: its hash, its profile, and the digest of what is not an artifact of it."""

    seq: int
    at: str
    by: str
    hash: str
    head: str
    profile: Profile | None = None
    note: str = ""


class Refusal(Value):
    """Somebody's word against a plan."""

    seq: int
    at: str
    by: str
    reason: str


class Replanned(Value):
    """One version of a plan that replaced another: which, why, and what it changed."""

    version: int
    parent: int
    seq: int
    at: str
    by: str
    reason: str
    failed: tuple[str, ...] = ()
    added: tuple[str, ...] = ()
    updated: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()


BEFORE = "before "
"""Begins the names of steps that keep what a file was before it was first changed in place."""


class Step(Value):
    """A part of a function that has returned: what it was asked with, and what it gave (inline, or as a blob)."""

    key: str
    value: Any = None
    blob: str = ""


class Run(Value):
    """The newest run of the plan. `pending`, while it is under way: what it set out to make.

    `boot` is the machine's boot that it ran in, `since` the one in which all outputs were last seen whole. Of a paused
    one, `code` says why, `artifact` where, and `until` when it is worth trying again. `templates` are those that
    changed, and their digests with which the plan is being made since it was last whole.
    """

    id: str
    seq: int
    at: str
    status: RunStatus = "running"
    reason: str = ""
    partial: bool = False
    boot: str = ""
    since: str = ""
    pending: tuple[str, ...] = ()
    code: str = ""
    until: str = ""
    artifact: str = ""
    templates: dict[str, str] = {}


class Learning(Value):
    """Something worth knowing the next time, about the goal or one of its artifacts."""

    text: str
    at: str = ""
    by: str = ""
    artifact: str = ""


class Proposal(Value):
    """The plan file as last taken in: where it is, the digest of its bytes, and the blob of what it proposed.

    `problems`: what it said that could not be kept. Of that the plan shows nothing, so it must not run. `about`: the
    artifact ("" for the plan itself) and the key of each, so that saying them anew mends it.
    """

    path: str
    source: str
    blob: str
    problems: tuple[str, ...] = ()
    about: tuple[tuple[str, str], ...] = ()


class Export(Value):
    """A checkpoint that was written for somebody else, and the position it reflects."""

    path: str
    at: str
    seq: int
    hash: str


class State(msgspec.Struct, omit_defaults=True, forbid_unknown_fields=True, kw_only=True):
    """A plan as of one event. Owned by one fold, which may change it in place.

    An artifact is in at most one of `completed` and `skipped`. `uncertain` are artifacts whose attempt
    has no end, by the event that started it (0: only announced): anything can stand at their paths. `steps` are
    finished parts of unfinished attempts. `open` counts per milestone what is not done.

    `made` are artifacts whose bytes are recorded and whose gates have not all been passed; like `claims` and `failed`
    it hides what was completed before. `evidence` is what was said at gates, by artifact. `changed` are artifacts that
    are not what was approved, with the digest of what was ("" for new ones). `replanned` counts versions by replanning
    since the plan was last complete. `notes` are what was said of work under way, by artifact.

    `asked` are artifacts that a run was asked to make anew and that were not made since, by the event that says so.
    `units` are the expansions of pipelines, `past` attempts at phases that newer ones replaced, `left` files of
    artifacts that are gone, by path. `whole`: the last run of all of the plan left nothing stale. `origins` are files
    as they were before they were first changed in place, by path; "" for none.
    """

    plan_id: str
    project_id: str
    goal: str = ""
    status: PlanStatus = "draft"
    version: int = 1
    sound: bool = False
    """A run found no problem in the structure, and it has not changed since."""
    created_at: str = ""
    created_by: str = ""
    updated_at: str = ""
    planned_at: str = ""
    """When the structure was last changed; known only of plans that say who planned them."""
    settings: Settings = Settings()
    profile: Profile | None = None
    proposal: Proposal | None = None
    run: Run | None = None
    closed: str = ""
    unverified: str = ""
    exported: Export | None = None
    learnings: tuple[Learning, ...] = ()
    artifacts: dict[str, ArtifactSpec] = {}
    completed: dict[str, Completion] = {}
    failed: dict[str, Failure] = {}
    skipped: dict[str, Skip] = {}
    claims: dict[str, Claim] = {}
    uncertain: dict[str, int] = {}
    steps: dict[str, dict[str, Step]] = {}
    milestones: dict[str, str] = {}
    open: dict[str, int] = {}
    made: dict[str, Completion] = {}
    evidence: dict[str, tuple[Verdict, ...]] = {}
    approval: Approval | None = None
    refused: Refusal | None = None
    changed: dict[str, str] = {}
    replans: tuple[Replanned, ...] = ()
    replanned: int = 0
    units: dict[str, Expansion] = {}
    past: dict[str, tuple[Attempt, ...]] = {}
    left: dict[str, str] = {}
    prompts: dict[str, PromptNote] = {}
    whole: bool = False
    notes: dict[str, Note] = {}
    asked: dict[str, int] = {}
    origins: dict[str, str] = {}

    def copy(self) -> Self:
        """A state of its own: the mappings are copied, the values in them are immutable and shared."""
        return msgspec.structs.replace(
            self,
            artifacts=self.artifacts.copy(),
            completed=self.completed.copy(),
            failed=self.failed.copy(),
            skipped=self.skipped.copy(),
            claims=self.claims.copy(),
            uncertain=self.uncertain.copy(),
            steps={artifact_id: steps.copy() for artifact_id, steps in self.steps.items()},
            milestones=self.milestones.copy(),
            open=self.open.copy(),
            made=self.made.copy(),
            evidence=self.evidence.copy(),
            changed=self.changed.copy(),
            units=self.units.copy(),
            past=self.past.copy(),
            left=self.left.copy(),
            prompts=self.prompts.copy(),
            notes=self.notes.copy(),
            asked=self.asked.copy(),
            origins=self.origins.copy(),
        )
