"""What a run wants only for what it hands on, and leaves as it was made: units before those whose prompt is tried.

Not only what has that prompt: what it was made from and what was made from it belongs to it (decision 0082).
"""

from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING

from headway.core.freshness import EDITS
from headway.core.plan import ArtifactSpec
from headway.core.state import Completion

if TYPE_CHECKING:
    from headway.engine.judge import Judge


class Left:
    """The artifacts that are left, and which of them stand as they were made, by what a judge knows of them."""

    def __init__(self, judge: Judge) -> None:
        self._judge = judge
        self.ids: frozenset[str] = frozenset()
        self._stood: set[str] = set()

    def leave(self, ids: Collection[str]) -> None:
        """From here on these stand as they were made, whatever has changed since."""
        self.ids = frozenset(ids)
        self._stood.intersection_update(self.ids)

    def judge_again(self) -> None:
        """Judge once more what was judged; the others were known to be fresh, and so they stand."""
        self._stood.update(self.ids.difference(self._judge.order))
        for artifact_id in self._judge.order:
            self._judge.again(artifact_id)

    def __bool__(self) -> bool:
        """Whether anything stands, so that the plan as a whole is not known to be fresh."""
        return bool(self._stood)

    def __contains__(self, artifact_id: str) -> bool:
        """Whether it stands as it was made, or would but for somebody's edit, or for a gate that it waits at."""
        waits = artifact_id in self.ids and self._judge.reasons[artifact_id].code in ("gates_open", *EDITS)
        return waits or artifact_id in self._stood

    def stand(self, artifact_id: str) -> None:
        """It is as it was made."""
        self._stood.add(artifact_id)

    def can_stand(self, spec: ArtifactSpec, done: Completion) -> bool:
        """Whether it has all that it is to have, and nothing of its own unit that it was made from is made now.

        A round of a loop that was never made is.
        """
        self._stood.discard(spec.id)
        judge, specs, unit = self._judge, self._judge.state.artifacts, (spec.pipeline, spec.unit)
        if spec.id not in self.ids or judge.is_forced(spec.id) or spec.id in judge.state.failed:
            return False
        recorded = {*spec.optional, *(output.path for output in done.outputs)}
        if not recorded.issuperset(spec.produces):
            return False
        earlier = (specs[r] for r in (*spec.requires, *judge.shared.after(spec.id)) if r in specs)
        return all(r.id in self._stood for r in earlier if (r.pipeline, r.unit) == unit)

    @property
    def undecided(self) -> list[str]:
        """What stands although its prompt has changed, in order."""
        judge = self._judge
        known = [a for a in judge.order if a in self._stood and a in judge.state.artifacts] if self._stood else []
        return [a for a in known if judge.has_another_prompt(a)]
