"""A projection that somebody edited: where it differs from the ledger, and what of that can be adopted."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import msgspec

from headway.core.commands import ChangePlan
from headway.core.plan import Profile
from headway.core.state import State
from headway.errors import UsageError
from headway.projections.saved_execution import SavedExecution, parse

_DERIVED = ("digest", "position", "updated_at", "metrics", "graph.waves")


class Difference(NamedTuple):
    """One field: what the file says, and what the ledger says."""

    field: str
    file: Any
    ledger: Any

    def __str__(self) -> str:
        return f"{self.field}: {_short(self.file)} in the file, {_short(self.ledger)} in the ledger"


class Adoption(NamedTuple):
    """What a hand-edited plan.json asks for, as a change of the plan; `refused` cannot be adopted."""

    change: ChangePlan
    profile: Profile | None
    refused: list[Difference]


def differences(data: bytes, current: SavedExecution) -> list[Difference]:
    """Field by field, what differs between a plan.json on disk and the ledger."""
    try:
        found = msgspec.json.decode(data)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return [Difference("(whole file)", "not JSON", "a plan")]
    return [d for d in _compare("", found, current.to_dict()) if not d.field.startswith(_DERIVED)]


def adoption(data: bytes, current: SavedExecution) -> Adoption:
    """Goal, structure and profile can be adopted; progress cannot: that is what `accept`, `skip` and `reset` are for."""
    wanted, state = parse(data).state, current.state
    change = ChangePlan(
        goal=wanted.goal,
        settings=wanted.settings,
        remove=tuple(a for a in state.artifacts if a not in wanted.artifacts),
        add=tuple(spec for a, spec in wanted.artifacts.items() if a not in state.artifacts),
        update=tuple(spec for a, spec in wanted.artifacts.items() if state.artifacts.get(a, spec) != spec),
        order=_order(wanted, state),
        reason="adopted from plan.json",
    )
    adoptable = ("goal", "graph.artifacts", "plan.settings", "plan.profile", "goal_hash", "plan.open")
    refused = [d for d in differences(data, current) if not d.field.startswith(adoptable)]
    if wanted.plan_id != state.plan_id:
        raise UsageError(
            "plan.json names another plan", facts={"file": wanted.plan_id, "ledger": state.plan_id}, hint="discard it"
        )
    return Adoption(change, wanted.profile if wanted.profile != state.profile else None, refused)


def _order(wanted: State, state: State) -> tuple[str, ...]:
    after = [a for a in state.artifacts if a in wanted.artifacts] + [
        a for a in wanted.artifacts if a not in state.artifacts
    ]
    return () if after == list(wanted.artifacts) else tuple(wanted.artifacts)


def _compare(field: str, file: Any, ledger: Any) -> Iterator[Difference]:
    if isinstance(file, dict) and isinstance(ledger, dict):
        for key in {**ledger, **file}:
            name = f"{field}.{key}" if field else str(key)
            yield from _compare(name, file.get(key), ledger.get(key))
    elif isinstance(file, list) and isinstance(ledger, list) and len(file) == len(ledger):
        for index, (one, other) in enumerate(zip(file, ledger, strict=True)):
            yield from _compare(f"{field}[{index}]", one, other)
    elif msgspec.to_builtins(file) != msgspec.to_builtins(ledger) and _json(file) != _json(ledger):
        yield Difference(field, file, ledger)


def _json(value: Any) -> bytes:
    return msgspec.json.encode(value)


def _short(value: Any) -> str:
    text = "nothing" if value is None else msgspec.json.encode(value).decode()
    return text if len(text) <= 60 else text[:57] + "…"
