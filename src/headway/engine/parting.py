"""What leaves a plan before an attempt at it has ended: what that left at its paths is put on record first.

It is nobody's edit. But who it was that left it is told by the plan, and the plan is about to lose that.
"""

from __future__ import annotations

from collections.abc import Callable

from headway.core.commands import Command, PreserveEdit
from headway.core.decide import Rejection, decide
from headway.core.events import Record
from headway.core.evolve import apply
from headway.core.lifecycle import unfinished
from headway.core.plan import ArtifactSpec
from headway.core.state import State
from headway.files.outputs import Outputs


def kept_before(state: State, command: Command, boot: str, outputs: Callable[[], Outputs]) -> list[PreserveEdit]:
    """What has to be recorded before a command that changes the plan; the bytes are kept by then."""
    begun = [a for a in unfinished(state, boot) if a in state.artifacts and a not in state.claims]
    events = decide(state, command) if begun else []
    if not begun or isinstance(events, Rejection):
        return []
    after = state.copy()
    for event in events:
        after = apply(after, Record(0, "", "", event, "", ""))
    lost = {a: _paths(state.artifacts[a]) - _paths(after.artifacts.get(a)) for a in begun}
    kept = {a: outputs().set_aside(sorted(paths)) for a, paths in lost.items() if paths}
    return [PreserveEdit(id=a, outputs=found) for a, found in kept.items() if found]


def _paths(spec: ArtifactSpec | None) -> set[str]:
    return {*spec.produces, *spec.modifies} if spec is not None else set()
