"""What should exist: artifacts and the plan that holds them. Immutable values, one shape everywhere.

The keys of a plan file, of the ledger's events and of plan.json are the field names below.
"""

from __future__ import annotations

from typing import Any, Literal, dataclass_transform

import msgspec

OnEdit = Literal["ask", "accept", "discard"]
MOST_AT_ONCE = 64
Effects = Literal["", "external"]
GateKind = Literal["check", "review", "council", "approval"]
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


class Replanning(Value):
    """When artifacts fail for good: the function that proposes a better plan, and how often it is asked."""

    planner: str = ""
    most: int = MOST_REPLANS


class ArtifactSpec(Value):
    """One artifact: what it is, what it needs, and how it is made."""

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
        return bool(self.run or self.make)


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
    planned_by: str = ""
    confirm_above: float = 1.0
    store_up_to: int | None = None


class PlanSpec(Value):
    """A plan as proposed: by a file, by Python, by an agent."""

    goal: str
    id: str = ""
    settings: Settings = Settings()
    profile: Profile | None = None
    artifacts: tuple[ArtifactSpec, ...] = ()
