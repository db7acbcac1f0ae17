"""What every rule uses: how a command is refused, and the refusals that several rules share."""

from __future__ import annotations

from collections.abc import Sequence
from operator import attrgetter
from typing import Any, Literal

from headway.core import events as ev
from headway.core.ids import as_word
from headway.core.plan import ArtifactSpec, Value
from headway.core.state import State

Events = list[ev.Event]

LONGEST = 256 * 1024
"""The most characters of one text in a ledger; more belongs in a file."""


class Rejection(Value):
    """Why a command is refused, and what to do. State is unchanged.

    `usage`: the command is wrong; `decision`: somebody must choose; `later`: it may well be right in a while.
    """

    code: str
    message: str
    facts: dict[str, Any] = {}
    hint: str = ""
    kind: Literal["usage", "decision", "later"] = "decision"


def unknown(state: State, ids: Sequence[str]) -> Rejection:
    """Something is named that the plan does not have."""
    return Rejection(
        kind="usage",
        code="artifact.unknown",
        message=f"There is no artifact {ids[0]} in plan {state.plan_id}",
        facts={"unknown": ", ".join(ids[:10])},
        hint=f"headway plans show {state.plan_id} lists them",
    )


def held(state: State, artifact_id: str, hint: str) -> Rejection:
    """Somebody is making it now: a run, or whoever has it in hand."""
    claim = state.claims[artifact_id]
    if not claim.run:
        hint = (
            f"wait until it is done; or headway release {as_word(artifact_id)} --by {as_word(claim.by)} gives it back"
        )
    return Rejection(
        kind="later",
        code="claim.held",
        message=f"Artifact {artifact_id} is being made now",
        facts={"artifact": artifact_id, "by": claim.by, **({"until": claim.lease} if claim.lease else {})},
        hint=hint,
    )


def too_long(**texts: str) -> Rejection | None:
    """A text that does not belong in a ledger."""
    for name, text in texts.items():
        if len(text) > LONGEST:
            return Rejection(
                kind="usage",
                code="text.long",
                message=f"{name} is too long for the record",
                facts={"characters": len(text), "at most": LONGEST},
                hint="put it into a file, and name the file",
            )
    return None


_words_of = attrgetter("description", "contract", "instructions", "run", "verify")


def overlong(specs: Sequence[ArtifactSpec]) -> Rejection | None:
    """The same for what artifacts say of themselves."""
    for spec in [  # that may: most say too little to be looked at again
        s
        for s in specs
        if len(s.description + s.contract + s.instructions + s.run + s.verify) > LONGEST
        or s.acceptance
        or s.constraints
        or s.tags
    ]:
        words = (*_words_of(spec), *spec.acceptance, *spec.constraints, *spec.tags)
        if sum(map(len, words)) > LONGEST:
            return Rejection(
                kind="usage",
                code="text.long",
                message=f"Artifact {spec.id} says too much for the record",
                facts={"at most, in characters": LONGEST},
                hint="put it into a file, and name the file under sources",
            )
    return None
