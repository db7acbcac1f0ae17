"""Effects elsewhere: whether one that was interrupted may be done again. Knows states, not how anything is made."""

from __future__ import annotations

from collections.abc import Collection

from headway.core.ids import as_word
from headway.core.plan import ArtifactSpec
from headway.core.state import State
from headway.engine.result import Decision


def effect_question(state: State, spec: ArtifactSpec, dead: Collection[str] = ()) -> Decision | None:
    """An attempt with effects elsewhere was interrupted: nobody but the user knows whether it is to be done again.

    `dead`: claims of a run that is gone, which the next one will give back.
    """
    if not spec.effects or is_idempotent(spec) or not (spec.id in dead or state.uncertain.get(spec.id, 0)):
        return None
    name = as_word(spec.id)
    flags = [f"--rerun {name}", f"headway accept {name}", f"headway skip {name} --reason …"]
    return Decision("effects_uncertain", [spec.id], flags)


def is_idempotent(spec: ArtifactSpec) -> bool:
    """It uses the key that it is given, so doing it twice does it once."""
    return "HEADWAY_IDEMPOTENCY_KEY" in spec.run or bool(spec.metadata.get("idempotent"))
