"""What can be begun without further questions: nothing of what an artifact may say is forgotten there."""

from __future__ import annotations

from headway.core.plan import ArtifactSpec
from headway.engine.as_judged import ASKED

LIGHT = {"run", "make", "effects", "verify", "retry", "timeout"}
"""What `Workers.is_light` asks."""

LOOKED_AT = {"requires", "produces", "sources", "templates", "optional"}
"""What is looked at whenever one is begun."""

RECORDED = {"id", "description", "contract", "instructions", "acceptance", "args", "env", "version", "integrates"}
"""What it is made from, or is on record with it."""

FOR_OTHERS = {"milestone", "agent", "domain_type", "complexity", "tags", "constraints", "files", "metadata", "on_edit"}
"""What means nothing to a function where nothing stands at its paths, or what it made itself."""

OF_PHASES = {"outputs", "pipeline", "unit", "phase", "file", "item"}
"""What a phase's function is given, or its worker asks when it has ended."""


def test_whatever_an_artifact_may_say_is_asked_about_or_needs_no_question() -> None:
    """Whoever gives artifacts another key has to say which."""
    groups = [set(ASKED), LIGHT, LOOKED_AT, RECORDED, FOR_OTHERS, OF_PHASES]
    assert set().union(*groups) == set(ArtifactSpec.__struct_fields__)
    assert sum(map(len, groups)) == len(ArtifactSpec.__struct_fields__), "and says it once"
