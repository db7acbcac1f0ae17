"""How one version of a plan differs from another, artifact by artifact, field by field. Knows plans; no ledgers."""

from __future__ import annotations

from typing import Any, NamedTuple

import msgspec

from headway.core.plan import ArtifactSpec, PlanSpec

Fields = dict[str, tuple[Any, Any]]
"""By name of a field: what it was, and what it is."""


class Comparison(NamedTuple):
    """What makes the later of two versions differ from the earlier one."""

    added: list[str]
    removed: list[str]
    changed: dict[str, Fields]
    head: Fields
    reordered: bool

    @property
    def same(self) -> bool:
        """Nothing differs; the order of artifacts does not count."""
        return not (self.added or self.removed or self.changed or self.head)

    def to_dict(self) -> dict[str, Any]:
        """The same for machines."""

        def pairs(fields: Fields) -> dict[str, Any]:
            return {name: {"was": was, "now": now} for name, (was, now) in fields.items()}

        return {
            "added": self.added,
            "removed": self.removed,
            "changed": {a: pairs(fields) for a, fields in self.changed.items()},
            "plan": pairs(self.head),
            "reordered": self.reordered,
        }


def compare(before: PlanSpec, after: PlanSpec) -> Comparison:
    """The difference between two versions."""
    was, now = _by_id(before), _by_id(after)
    head = _differing(before, after, ("goal",))
    head |= _differing(before.settings, after.settings)
    head |= _differing(before, after, ("profile",))
    common = [a for a in now if a in was]
    return Comparison(
        added=[a for a in now if a not in was],
        removed=[a for a in was if a not in now],
        changed={a: _differing(was[a], now[a]) for a in common if was[a] != now[a]},
        head=head,
        reordered=[a for a in was if a in now] != common,
    )


def _by_id(plan: PlanSpec) -> dict[str, ArtifactSpec]:
    return {spec.id: spec for spec in plan.artifacts}


def _differing(one: Any, other: Any, names: tuple[str, ...] = ()) -> Fields:
    """Field by field, in the values that JSON has."""
    names = names or one.__struct_fields__
    pairs = {name: (getattr(one, name), getattr(other, name)) for name in names}
    return {
        name: (msgspec.to_builtins(was), msgspec.to_builtins(now)) for name, (was, now) in pairs.items() if was != now
    }
