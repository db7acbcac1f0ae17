"""Whose turn it is: what was done lately, by the ledger and by what an agent says, put to the arbiter."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import msgspec

from headway.core.arbiter import ArbiterContext, Entry, arbitrate, build_arbiter_prompt
from headway.core.events import ArtifactCompleted, ArtifactFailed, Record
from headway.core.plan import Role
from headway.core.state import State
from headway.errors import DecisionNeeded, UsageError

LOOKED_BACK = 200
"""How many of the newest events are looked at."""

LATELY = 20
"""How much of what was done in them is told."""


def as_said(last: Sequence[Mapping[str, Any]]) -> tuple[Entry, ...]:
    """What an agent says was done last."""
    try:
        return tuple(msgspec.convert(dict(entry), Entry) for entry in last)
    except (msgspec.ValidationError, TypeError, ValueError) as error:
        raise UsageError(
            "What was done last cannot be read",
            facts={"reason": error},
            hint="agent, status (success, failure, limit), artifact, output, error",
            code="arbiter.history",
        ) from error


def done_lately(records: Iterable[Record]) -> list[Entry]:
    """What was done lately, as the ledger has it."""
    found = []
    for record in records:
        event = record.event
        if isinstance(event, ArtifactCompleted):
            found.append(Entry(agent=event.by or record.by, status="success", artifact=event.id, output=event.note))
        elif isinstance(event, ArtifactFailed):
            found.append(Entry(agent=record.by, status="failure", artifact=event.id, error=event.error))
    return found[-LATELY:]


def who_goes_on(state: State, history: tuple[Entry, ...], roles: Mapping[str, Role]) -> dict[str, Any]:
    """Who goes on with what is next: by rule; where no rule decides, the question to put to somebody who can."""
    failures = [entry.error for entry in history if entry.error]
    context = ArbiterContext(task=state.goal, plan=state, history=history, last_error=failures[-1] if failures else "")
    try:
        decision: dict[str, Any] = msgspec.to_builtins(arbitrate(context, roles))
    except DecisionNeeded as error:
        return {"what": "ask", "reason": error.message, "prompt": build_arbiter_prompt(context, roles)}
    return decision
