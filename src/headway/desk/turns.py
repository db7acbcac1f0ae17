"""Whose turn it is: what was done lately, by the ledger and by what an agent says, put to the arbiter."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import msgspec

from headway.core.arbiter import ArbiterContext, Entry, arbitrate, build_arbiter_prompt, current
from headway.core.attempts import Attempts
from headway.core.events import Record
from headway.core.plan import Role
from headway.core.state import State
from headway.errors import DecisionNeeded, UsageError

LOOKED_BACK = 5000
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


def attempts(records: Iterable[Record], state: State, roles: Mapping[str, Role]) -> Attempts:
    """What agents did, as the ledger has it; whoever is no agent by name acts as the one that the artifact names."""

    def acting(name: str, artifact_id: str) -> str:
        spec = state.artifacts.get(artifact_id)
        return name if name in roles or spec is None else spec.agent or name

    return Attempts(acting).hear(records)


def who_goes_on(
    state: State,
    lately: Attempts,
    said: Sequence[Entry],
    roles: Mapping[str, Role],
    now: str,
    recall: Callable[[], Sequence[str]] = tuple,
) -> dict[str, Any]:
    """Who goes on with what is next: by rule; where no rule decides, the question to put to somebody who can.

    `recall`: what is known from before, for whoever is asked.
    """
    history, step = (*lately.entries[-LATELY:], *said), current(state)
    failures = [entry.error for entry in history if entry.error]
    context = ArbiterContext(
        task=state.goal,
        plan=state,
        history=history,
        last_error=failures[-1] if failures else "",
        used=lately.used(step.id, now) if step is not None else {},
    )
    try:
        decision: dict[str, Any] = msgspec.to_builtins(arbitrate(context, roles))
    except DecisionNeeded as error:
        asked = msgspec.structs.replace(context, known=tuple(recall()))
        return {"what": "ask", "reason": error.message, "prompt": build_arbiter_prompt(asked, roles)}
    return decision
