"""A projection that somebody edited: field by field, what they changed, and what of that can become events.

An edited file is compared with what the ledger says as of the event that the file reflects. So only edits are shown,
however old the file is, and adopting them takes nothing back that has happened since.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import msgspec

from headway.core.merge import Merged, merge
from headway.errors import PlanConflict, UsageError
from headway.projections.saved_execution import SavedExecution, parse

WHOLE = "the whole file"
_ADOPTABLE = ("goal", "graph.artifacts", "execution_profile", "plan.settings")
_FOLLOWS = ("goal_hash", "graph.waves", "metrics", "updated_at", "plan.open")
"""Fields that follow from others: what an edit says there is neither taken in nor missed."""


class Difference(NamedTuple):
    """One field: what the file says, and what the ledger says."""

    field: str
    file: Any
    ledger: Any

    def __str__(self) -> str:
        return f"{self.field}: {_short(self.file)} in the file, {_short(self.ledger)} in the ledger"


class Adoption(NamedTuple):
    """What a hand-edited file asks for, on top of the plan as it is now; `refused` cannot be adopted."""

    merged: Merged
    refused: list[Difference]


def differences(data: bytes, written: SavedExecution) -> list[Difference]:
    """Field by field, how the file differs from what was written."""
    try:
        found = msgspec.json.decode(data)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return [Difference(WHOLE, "no longer JSON", "a plan")]
    if not isinstance(found, dict):
        return [Difference(WHOLE, "no longer a plan", "a plan")]
    return [d for d in _compare("", found, written.to_dict()) if d.field != "digest"]


def line_differences(data: bytes, written: bytes) -> list[Difference]:
    """Line by line, how the text differs from what was written; its first line is ours and does not count."""
    ours, theirs = written.decode().splitlines()[1:], data.decode("utf-8", "replace").splitlines()[1:]
    known_ours, known_theirs = set(ours), set(theirs)
    added = [Difference("line", line, None) for line in theirs if line not in known_ours]
    return added + [Difference("line", None, line) for line in ours if line not in known_theirs]


def adoption(data: bytes, written: SavedExecution, current: SavedExecution) -> Adoption:
    """Goal, structure and profile can be adopted; progress cannot: `accept`, `skip` and `reset` are for that."""
    wanted = parse(data)
    if wanted.plan_id != current.plan_id:
        raise UsageError(
            "The edited file names another plan",
            facts={"file": wanted.plan_id, "ledger": current.plan_id},
            hint=f"headway doctor --repair --drift discard --plan-id {current.plan_id} keeps a copy of it",
            code="drift.plan",
        )
    merged = merge(written.proposal, wanted.proposal, current.state)
    if merged.conflicts:
        raise PlanConflict(
            "The edited file and the ledger changed the same thing",
            facts={"changed on both sides": ", ".join(merged.conflicts)},
            hint=f"headway doctor --repair --drift discard --plan-id {current.plan_id} keeps a copy of the file",
        )
    found = differences(data, written)
    return Adoption(merged, [d for d in found if not d.field.startswith((*_ADOPTABLE, *_FOLLOWS))])


def _compare(field: str, file: Any, ledger: Any) -> Iterator[Difference]:
    if isinstance(file, dict) and isinstance(ledger, dict):
        for key in {**ledger, **file}:
            name = f"{field}.{key}" if field else str(key)
            yield from _compare(name, file.get(key), ledger.get(key))
        if field == "graph.artifacts" and file.keys() == ledger.keys() and list(file) != list(ledger):
            yield Difference("graph.artifacts, their order", list(file), list(ledger))
    elif isinstance(file, list) and isinstance(ledger, list) and len(file) == len(ledger):
        for index, (one, other) in enumerate(zip(file, ledger, strict=True)):
            yield from _compare(f"{field}[{index}]", one, other)
    elif type(file) is not type(ledger) or file != ledger:
        yield Difference(field, file, ledger)


def _short(value: Any) -> str:
    text = "nothing" if value is None else msgspec.json.encode(value).decode()
    return text if len(text) <= 60 else text[:57] + "…"
