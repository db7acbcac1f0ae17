"""Why a run stops before its end, what it comes to, and the event that says so."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterable
from datetime import UTC, datetime, timedelta

from headway.core import commands as cmd
from headway.core.freshness import Reason
from headway.core.state import State
from headway.engine.recipes.base import TO
from headway.engine.result import INTERRUPTIONS, Pause, RunResult
from headway.engine.tally import Tally

EQUAL_ERRORS = 5
"""So many equal errors in a row would strike every artifact: nothing more is started."""

EVERYBODYS = tuple(map(os.strerror, (errno.ENOSPC, errno.EDQUOT, errno.EMFILE, errno.ENFILE, errno.ENOMEM)))
"""Errors of the system itself, whatever file it names with them."""

STRIKING_ALL = frozenset({"same_error", "command_missing"})
"""Halts that are told even if nothing is left to do."""


class Halt:
    """Whether a run goes on; if not, why, and whether what runs now is told to give up."""

    def __init__(self) -> None:
        self.why = ""
        self.cancelling = False
        self._until: datetime | None = None
        self._at = ""
        self._errors: list[str] = []

    def __bool__(self) -> bool:
        return bool(self.why)

    def now(self, why: str) -> None:
        """Somebody wants the run to stop: whatever else stopped it counts no more."""
        self.why, self.cancelling = why, True

    def later(self, why: str) -> None:
        """Nothing more is begun; what runs may end. The first reason counts."""
        self.why = self.why or why

    def at_once(self, why: str) -> None:
        """Nothing more is begun, and what runs is told to give up. The first reason counts."""
        self.later(why)
        self.cancelling = True

    def quota(self, artifact_id: str, retry_after: float | None) -> None:
        """Somebody else's limit is reached, and may be gone after so many seconds.

        Of several, the one that is to wait longest is told, with its time: a run before that would pause there again.
        """
        self.later("quota")
        self._at = self._at or artifact_id
        until = datetime.now(UTC) + timedelta(seconds=retry_after) if retry_after is not None else None
        if until is not None and (self._until is None or until > self._until):
            self._until, self._at = until, artifact_id

    def succeeded(self) -> None:
        """One was made: errors before it were not everybody's."""
        self._errors.clear()

    def is_same_error(self, error: str) -> bool:
        """One more error; whether it has come so often in a row that it would strike every artifact."""
        said = error.rpartition(TO)[2]  # what is said first may name the artifact
        self._errors.append(next((words for words in EVERYBODYS if words in said), said))
        newest = self._errors[-EQUAL_ERRORS:]
        return len(newest) == EQUAL_ERRORS and len(set(newest)) == 1

    def pause(self) -> Pause:
        """The pause that this comes to."""
        if self.why in INTERRUPTIONS:
            return Pause(self.why)
        until = self._until.isoformat(timespec="seconds") if self._until is not None else ""
        return Pause(self.why, until, artifact=self._at)


def pause_of(halt: Halt, tally: Tally, state: State, *, partial: bool) -> Pause | None:
    """Why a run that has nothing more to do is not over, if it is not."""
    if halt.why in INTERRUPTIONS or halt.why in STRIKING_ALL or (halt and tally.queue.open):
        return halt.pause()
    if _plan_changed(tally, state, partial):
        return Pause("plan_changed")
    if tally.words:
        return Pause("approval" if "approval" in tally.words else "gates")
    return None


def _plan_changed(tally: Tally, state: State, partial: bool) -> bool:
    """Whether somebody changed the plan since it was judged, so that this run cannot answer for all of it."""
    if partial:
        return any(state.artifacts.get(a) != tally.judged[a] for a in tally.selected)
    return state.artifacts != tally.judged


def sum_up(result: RunResult, state: State, selected: Iterable[str]) -> None:
    """What was made, what it saved, and who is blocked by something that is not merely held.

    What came out otherwise, and read something that changed meanwhile, need not be so by itself.
    """
    completed = state.completed
    result.recall = lambda: ({a: completed[a].outputs for a in selected if a in completed}, result.read)
    held = {a for decision in result.decisions for a in decision.artifacts}
    result.blocked = {a: by for a, by in result.blocked.items() if a not in held}
    result.unstable = [a for a in result.unstable if a not in result.moved]
    spared = (*result.kept, *result.restored, *result.reused)
    result.saved_ms = sum(state.completed[a].ms for a in spared if a in state.completed)
    if result.gone:
        result.left = left_by_units(state, result.root)


def left_by_units(state: State, root: str) -> list[str]:
    """Files that units made which are gone, as far as they are there and nothing makes them any more."""
    made = {path for spec in state.artifacts.values() for path in (*spec.produces, *spec.modifies)}
    return sorted(p for p in state.left if p not in made and os.path.lexists(os.path.join(root, p)))


def end_of(result: RunResult, todo: dict[str, Reason]) -> cmd.EndRun:
    """The command that ends a run in its plan's ledger."""
    code = result.paused.code if result.paused else result.status
    return cmd.EndRun(
        run=result.run_id,
        status={"completed": "completed", "failed": "failed"}.get(result.status, "paused"),  # type: ignore[arg-type]  # two of the words
        reason=code,
        code=code,
        until=result.paused.until if result.paused else "",
        artifact=result.paused.artifact if result.paused else "",
        failed=tuple(result.failed),
        kept=tuple(a for a in result.kept if a in todo),
        restored=tuple(result.restored),
    )
