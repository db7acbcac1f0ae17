"""A plan with the verdict on each of its artifacts: what a run sets out from, and what previews and `why` tell of."""

from __future__ import annotations

from typing import NamedTuple

from headway.core.commands import ExpandUnits
from headway.core.freshness import Reason
from headway.engine.functions import LIVE
from headway.engine.judge import Judge
from headway.projections.saved_execution import SavedExecution


class Judged(NamedTuple):
    """A plan, the verdict on each of its artifacts, and those that are wanted."""

    execution: SavedExecution
    judge: Judge
    selected: set[str]
    due: tuple[ExpandUnits, ...] = ()
    """Its pipelines are to be expanded like this: it was judged as if they had been."""
    saved: SavedExecution | None = None
    """Then, the plan as it was loaded."""
    dead: tuple[str, ...] = ()
    """What a run has claimed that is not there any more."""

    @property
    def reasons(self) -> dict[str, Reason]:
        """Why each artifact is fresh or stale."""
        return self.judge.reasons

    @property
    def all_fresh(self) -> bool:
        """Nothing that is wanted has to be made."""
        selected = self.selected
        return not any(reason.code != "fresh" and a in selected for a, reason in self.reasons.items())

    @property
    def stale(self) -> list[str]:
        """What is wanted and has to be made."""
        selected = self.selected
        return [a for a, reason in self.reasons.items() if reason.code != "fresh" and a in selected]

    @property
    def out_of_sight(self) -> list[str]:
        """Those that are as fresh as can be told from here: whether their code has changed, only a program knows."""
        specs, reasons, is_it = self.execution.state.artifacts, self.reasons, self.judge.digests.is_out_of_sight
        live = {a for a, spec in specs.items() if spec.make.startswith(LIVE)}
        return [a for a in reasons if a in live and reasons[a].fresh and is_it(specs[a])] if live else []

    @property
    def was_cut_off(self) -> bool:
        """The last run ended without a word, so somebody has to say it instead."""
        run = self.execution.state.run
        return run is not None and run.status == "running"
