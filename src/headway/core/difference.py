"""How two plans differ, artifact by artifact and key by key. Knows structure; never progress, files or who asks."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

import msgspec

from headway.core.plan import ArtifactSpec, PlanSpec, Value


class Changed(NamedTuple):
    """One key: what it was and what it is."""

    key: str
    was: Any
    now: Any


class PlanDifference(NamedTuple):
    """What one plan has that another has not. `settings` are keys of the plan itself."""

    added: list[str]
    removed: list[str]
    modified: dict[str, list[Changed]]
    settings: list[Changed]
    reordered: bool = False

    def __bool__(self) -> bool:
        return bool(self.added or self.removed or self.modified or self.settings or self.reordered)

    def to_dict(self) -> dict[str, Any]:
        """The same for machines."""
        return {
            "added": self.added,
            "removed": self.removed,
            "modified": {a: [c._asdict() for c in changes] for a, changes in self.modified.items()},
            "settings": [c._asdict() for c in self.settings],
            "reordered": self.reordered,
        }


def compare_plans(before: PlanSpec, after: PlanSpec) -> PlanDifference:
    """From one plan to another."""
    was, now = _by_id(before), _by_id(after)
    common = [a for a in now if a in was]
    modified = {a: list(_changes(was[a], now[a])) for a in common if was[a] != now[a]}
    settings = [*_changes(_Head.of(before), _Head.of(after)), *_changes(before.settings, after.settings)]
    return PlanDifference(
        added=[a for a in now if a not in was],
        removed=[a for a in was if a not in now],
        modified=modified,
        settings=settings,
        reordered=common != [a for a in was if a in now],
    )


class _Head(Value):
    """What a plan says of itself beside its settings. Its id is its name, not a change."""

    goal: str
    profile: Any

    @classmethod
    def of(cls, plan: PlanSpec) -> _Head:
        return cls(goal=plan.goal, profile=plan.profile)


def _by_id(plan: PlanSpec) -> Mapping[str, ArtifactSpec]:
    return {spec.id: spec for spec in plan.artifacts}


def _changes(was: Value, now: Value) -> Iterator[Changed]:
    old, new = msgspec.structs.asdict(was), msgspec.structs.asdict(now)
    for key in old:
        if old[key] == new[key]:
            continue
        if isinstance(old[key], dict) and isinstance(new[key], dict):
            for name in {**new[key], **old[key]}:
                if old[key].get(name) != new[key].get(name):
                    yield Changed(f"{key}.{name}", old[key].get(name), new[key].get(name))
        else:
            yield Changed(key, old[key], new[key])
