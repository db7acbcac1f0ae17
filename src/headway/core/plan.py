"""What should exist: artifacts and the plan that holds them. Immutable values, one shape everywhere.

The keys of a plan file, of the ledger's events and of plan.json are the field names below.
"""

# No annotations from __future__: msgspec would have to parse all of these texts before it reads the first value.

from typing import Any, Literal, dataclass_transform

import msgspec

OnEdit = Literal["ask", "accept", "discard"]
MOST_AT_ONCE = 64
Effects = Literal["", "external"]
GateKind = Literal["check", "review", "council", "approval"]
Gathers = Literal["", "last", "all", "units"]
Order = Literal["sequential", "independent"]
PromptChanges = Literal["ask", "follow", "refuse"]
MOST_REPLANS = 2
"""How often a plan is replanned before it counts as failed, unless it says otherwise."""


@dataclass_transform(frozen_default=True, kw_only_default=True, field_specifiers=(msgspec.field,))
class Value(msgspec.Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True, gc=False, kw_only=True):
    """Base of every immutable value: equal by content, defaults left out of JSON, unknown keys refused."""


class Retry(Value):
    """How often a failing recipe is tried, and how long to wait in between (doubling each time)."""

    attempts: int = 1
    backoff: float = 1.0


class Profile(Value):
    """The lockable record of a plan's concurrency. Fail-closed: without a word, one at a time."""

    parallelization_enabled: bool = False
    max_concurrent_tasks: int = 1
    council_parallel: bool = False
    locked: bool = False

    @property
    def is_possible(self) -> bool:
        """Its numbers are in range."""
        return 1 <= self.max_concurrent_tasks <= MOST_AT_ONCE

    @property
    def limit(self) -> int:
        """How many artifacts may be in progress at once."""
        return self.max_concurrent_tasks if self.parallelization_enabled else 1


class Gate(Value):
    """A named check that an artifact must pass before it counts as complete.

    `by` are those whose word counts (anybody's, where nobody is named), `quorum` how many of them must approve.
    """

    name: str
    kind: GateKind = "review"
    run: str = ""
    by: tuple[str, ...] = ()
    quorum: int | None = None

    @property
    def needed(self) -> int:
        """How many must approve: of a council the majority, otherwise one."""
        if self.quorum is not None:
            return self.quorum
        return len(self.by) // 2 + 1 if self.kind == "council" else 1


class Limits(Value):
    """How much an agent may do at one artifact: attempts, seconds, tokens; nothing said, no limit."""

    iterations: int | None = None
    time: float | None = None
    tokens: int | None = None


class Transitions(Value):
    """Who is next when an agent has succeeded, failed, or reached a limit; `complete` for nobody."""

    success: str = ""
    failure: str = ""
    limit: str = ""


class Role(Value):
    """An agent as a role: when to use it, what it is told, what it may use, who is next, and where it stops."""

    when: str = ""
    instructions: str = ""
    tools: tuple[str, ...] = ()
    commands: tuple[str, ...] = ()
    next: Transitions = Transitions()
    limits: Limits = Limits()


class Replanning(Value):
    """When artifacts fail for good: the function that proposes a better plan, and how often it is asked."""

    planner: str = ""
    most: int = MOST_REPLANS


class ArtifactSpec(Value):
    """One artifact: what it is, what it needs, and how it is made.

    The last fields are those of a unit's phase. `outputs` are names of its paths, `optional` those that it need not
    write, `reads` files that are changed in place and that it reads as whoever changed them before it left them.
    `after` only says who comes first. What `gathers` is made by nobody: it stands for the last iteration of a loop, for
    a phase of all units, or for the units themselves.
    """

    id: str
    description: str = ""
    contract: str = ""
    requires: tuple[str, ...] = ()
    produces: tuple[str, ...] = ()
    modifies: tuple[str, ...] = ()
    sources: tuple[str, ...] = ()
    run: str = ""
    make: str = ""
    args: dict[str, Any] = {}
    env: tuple[str, ...] = ()
    version: str = ""
    verify: str = ""
    instructions: str = ""
    acceptance: tuple[str, ...] = ()
    milestone: str = ""
    agent: str = ""
    retry: Retry | None = None
    timeout: float | None = None
    effects: Effects = ""
    on_edit: OnEdit | None = None
    integrates: dict[str, tuple[str, ...]] = {}
    domain_type: str = ""
    complexity: int | None = None
    tags: tuple[str, ...] = ()
    constraints: tuple[str, ...] = ()
    files: tuple[str, ...] = ()
    gates: tuple[Gate, ...] = ()
    metadata: dict[str, Any] = {}
    templates: dict[str, str] = {}
    outputs: dict[str, str] = {}
    optional: tuple[str, ...] = ()
    reads: tuple[str, ...] = ()
    after: tuple[str, ...] = ()
    pipeline: str = ""
    unit: str = ""
    phase: str = ""
    iteration: int = 0
    file: str = ""
    item: Any = None
    gathers: Gathers = ""

    @property
    def produces_file(self) -> str | None:
        """The first path it produces: RFC-040's single output."""
        return self.produces[0] if self.produces else None

    @property
    def is_leaf(self) -> bool:
        """Nothing is required to make it."""
        return not self.requires

    @property
    def has_recipe(self) -> bool:
        """It is made by a recipe; otherwise by whoever claims it."""
        return bool(self.run or self.make or self.gathers)


class Phase(ArtifactSpec):
    """One phase of a pipeline; its id is its name, and what it says may hold `{unit}`, `{file}` and `{phase}`.

    `inputs` are the phases that it reads (all before it, where none are named), `requires` artifacts besides them.
    With `repeat`, it ends a loop: these phases, of which it is the last, are made again until `until` is true of what
    it wrote, `times` times at most.
    """

    inputs: tuple[str, ...] | None = None
    requires_outputs: tuple[str, ...] | None = None
    pre_state: bool = False
    repeat: tuple[str, ...] = ()
    until: str = ""
    times: int = 3


class Units(Value):
    """Where units come from: names, files that a pattern matches, or items in what an artifact makes."""

    names: tuple[str, ...] = ()
    files: str = ""
    source: str = msgspec.field(default="", name="from")
    items: str = ""
    max: int | None = None


class Pipeline(Value):
    """A named chain of phases, and the units that go through it.

    `state` is a file that phases change in place, unit after unit. `templates` hold for every phase that has
    templates, `overrides` for some: by unit (`*` for all), by phase (`*` for all), by role.
    """

    name: str
    units: Units = Units()
    order: Order = "independent"
    state: str = ""
    phases: tuple[Phase, ...] = ()
    templates: dict[str, str] = {}
    overrides: dict[str, dict[str, dict[str, str]]] = {}

    def phase(self, name: str) -> Phase | None:
        """The phase of that name."""
        return next((phase for phase in self.phases if phase.id == name), None)

    def loop_around(self, name: str) -> Phase | None:
        """The phase that ends the loop which this phase is part of."""
        return next((phase for phase in self.phases if name in phase.repeat), None)


class Settings(Value):
    """What a plan says besides its goal and its artifacts."""

    vars: dict[str, Any] = {}
    env: tuple[str, ...] = ()
    jobs: int | None = None
    retry: Retry | None = None
    timeout: float | None = None
    on_edit: OnEdit = "ask"
    complexity: int | None = None
    tags: tuple[str, ...] = ()
    constraints: tuple[str, ...] = ()
    informed_by: tuple[str, ...] = ()
    approval: Literal["", "required"] = ""
    replan: Replanning | None = None
    agents: dict[str, Role] = {}
    notify: tuple[str, ...] = ()
    metadata: dict[str, Any] = {}
    planned_by: str = ""
    confirm_above: float = 1.0
    store_up_to: int | None = None
    pipelines: tuple[Pipeline, ...] = ()
    prompt_changes: PromptChanges = "ask"

    def pipeline(self, name: str) -> Pipeline | None:
        """The pipeline of that name."""
        return next((pipeline for pipeline in self.pipelines if pipeline.name == name), None)


class PlanSpec(Value):
    """A plan as proposed: by a file, by Python, by an agent."""

    goal: str
    id: str = ""
    settings: Settings = Settings()
    profile: Profile | None = None
    artifacts: tuple[ArtifactSpec, ...] = ()
