"""Which plan is meant: by its id, its file, its goal, or because it was touched last. And what to say if none is.

Looking at a plan runs nobody's code, and loads no parser where a line of the file says enough.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING

import msgspec

from headway.core.codec import digest
from headway.core.ids import PROGRAM, as_word, hash_goal, plan_id_problem
from headway.core.plan import PlanSpec
from headway.errors import NotFound, PlanInvalid, UsageError
from headway.files.given import read_given
from headway.projections.saved_execution import SavedExecution
from headway.store import PlanStore

if TYPE_CHECKING:
    from headway.core.check import Problem  # what checks a plan is loaded when a plan is checked
    from headway.files.planfile import ParsedPlan  # the parser is loaded only where a file is parsed

PLAN_FILES = ("headway.yaml", "headway.json", "headway.py")
NEARLY = "headway.yml"
_ID_LINE = rb"""(?m)^id:[ \t]*(["']?)([A-Za-z0-9][A-Za-z0-9._-]{0,63})\1[ \t]*(?:#.*)?\r?$"""


class _Named(msgspec.Struct):
    """What names a plan in a JSON file: the rest is passed over."""

    id: str = ""


class Chooser:
    """Finds plans of one project. `check` says what is wrong with a plan that is read from a file."""

    def __init__(self, root: str, store: PlanStore, check: Callable[[PlanSpec], list[Problem]]) -> None:
        self.root = root
        self.store = store
        self._check = check
        self._parsed: tuple[tuple[str, str], ParsedPlan] | None = None

    def select(self, plan_id: str | None = None, plan_file: str | None = None) -> str:
        """Which plan is meant: by id, by file, by the default file, or the one touched last."""
        path = plan_file or (None if plan_id else self.find_default_file())
        named = self._id_in_file(path) if path else None
        if plan_id and named and named != plan_id:
            raise UsageError(
                f"--plan-id {plan_id} and {plan_file} name different plans",
                facts={"the file's plan": named},
                hint="give one of them",
                code="plan.which",
            )
        chosen = plan_id or named
        if chosen:
            return chosen
        recent = self.store.list_recent(1)
        if not recent:
            raise NotFound(
                "There is no plan here yet",
                facts={"project": self.root},
                hint=self._overlooked() or "headway init writes a plan file; headway plans new FILE saves one",
                code="plan.none",
            )
        return recent[0].plan_id

    def plan_of_goal(self, goal: str) -> str:
        """The saved plan of a goal."""
        found = self.store.find_by_goal(goal)
        if found is None:
            default = self.find_default_file()
            other = "write it down in a plan file of its own: headway run --plan FILE"
            raise NotFound(
                "There is no plan for this goal yet",
                facts={"goal": goal} | ({"plan file here": self.shown(default)} if default else {}),
                hint=other if default else "write it down in a plan file: headway init, then headway run",
                code="plan.none",
            )
        return found.plan_id

    def unfinished(self) -> str:
        """The plan touched last among those that are neither complete nor closed, or whose last run was cut short."""
        known = self.store.list_recent(None)
        if not known:
            for plan_id in self.store.ids():
                self.store.folder(plan_id).load()  # which says why it cannot be read
            raise NotFound(
                "There is no plan here yet",
                facts={"project": self.root},
                hint="headway init writes a plan file",
                code="plan.none",
            )
        open_ = [e for e in known if e.status not in ("complete", "closed") or _was_cut_short(e)]
        if not open_:
            raise NotFound(
                "Every plan is finished", hint="headway run checks whether anything is stale", code="plan.finished"
            )
        return open_[0].plan_id

    # Files.

    def default_file(self) -> str:
        """The plan file that is meant when none is named."""
        found = self.find_default_file()
        if found is None:
            raise NotFound(
                "There is no headway.yaml here",
                facts={"project": self.root},
                hint=self._overlooked() or "headway init writes one",
                code="file.none",
            )
        return found

    def find_default_file(self) -> str | None:
        """The same, or None."""
        names = (os.path.join(self.root, name) for name in PLAN_FILES)
        return next((path for path in names if os.path.isfile(path)), None)

    def _overlooked(self) -> str:
        """What to type where the plan file has nearly the name that it should have; or ""."""
        is_there = os.path.isfile(os.path.join(self.root, NEARLY))
        return f"rename {NEARLY} to {PLAN_FILES[0]}, or name it: --plan {NEARLY}" if is_there else ""

    def parse(self, data: bytes, name: str, source: str = "") -> ParsedPlan:
        """A plan file, read once however often it is asked about. `source`: the digest of its bytes, if it is known."""
        from headway.files.planfile import parse_plan

        key = (name, source or digest(data))
        if self._parsed is None or self._parsed[0] != key:
            self._parsed = (key, parse_plan(data, name=name, check=self._check))
        return self._parsed[1]

    def shown(self, path: str) -> str:
        """A path as it is recorded: relative to the project where it is inside, and by its name where it is not."""
        relative = os.path.relpath(os.path.abspath(path), self.root)
        return os.path.basename(os.path.abspath(path)) if relative.split(os.sep)[0] == ".." else relative

    def id_of(self, plan: PlanSpec, plan_id: str | None, name: str, problems: Sequence[Problem]) -> str:
        """The id of a proposed plan: its own, the one asked for, or the one that follows from its goal."""
        if plan_id and plan.id and plan_id != plan.id:
            raise UsageError(
                f"--plan-id {plan_id} differs from the id in {name}",
                facts={"the file's id": plan.id},
                hint="give one of them",
                code="plan.which",
            )
        named = plan.id or plan_id
        if plan.id and plan_id_problem(plan.id) and problems:
            raise PlanInvalid(problems, where=name)
        if not named and not plan.goal.strip():
            from headway.core.check import check_plan

            raise PlanInvalid(problems or check_plan(plan), where=name)
        return named or hash_goal(plan.goal)

    def _id_in_file(self, path: str) -> str:
        """The id of a file's plan: from the line that says so where that is plain, so that no parser need be loaded."""
        if path.partition(":")[0].endswith(".py"):
            return self._id_of_python(path)
        data = read_given(path)
        if path.endswith(".json"):
            with suppress(msgspec.DecodeError, UnicodeDecodeError, RecursionError):
                named = msgspec.json.decode(data, type=_Named).id
                if named and not plan_id_problem(named):
                    return named
        elif plain := re.search(_ID_LINE, data):
            return plain.group(2).decode()
        name = self.shown(path)
        parsed = self.parse(data, name)
        if parsed.plan is None:
            raise PlanInvalid(parsed.problems, where=name)
        return self.id_of(parsed.plan, None, name, parsed.problems)

    def _id_of_python(self, reference: str) -> str:
        """The plan that was last taken in from this file, or saved by it with functions of its own: looking at a plan
        runs nobody's code.
        """
        name = self.shown(reference)
        known = [(p.path, e.state) for e in self.store.list_recent(None) if (p := e.state.proposal) is not None]
        for path, state in known:
            if path == name:
                return state.plan_id
        programs = [state for path, state in known if path == PROGRAM]
        own = [s.plan_id for s in programs if any(a.make.startswith(f"{name}:") for a in s.artifacts.values())]
        if len(own) > 1:
            hint = f"--plan-id {own[0]}, or another one of them"
            raise UsageError(f"{name} has saved {len(own)} plans", facts={"plans": own}, hint=hint, code="plan.which")
        if own:
            return own[0]
        hint = f"headway plans new {as_word(reference)} saves it"
        raise NotFound(f"The plan of {name} is not saved yet", hint=hint, code="plan.none")

    # None.

    def no_plan(self, plan_id: str) -> NotFound:
        """There is no such plan; what is meant instead, perhaps."""
        from headway.core.nearest import Nearest

        default = self.find_default_file()
        if default is not None and self._is_plan_of(default, plan_id):
            return NotFound(
                f"Plan {plan_id} is not saved yet",
                facts={"file": self.shown(default)},
                hint="headway plans new saves it",
                code="plan.none",
            )
        near = Nearest(self.store.ids()).of(plan_id)
        return NotFound(
            f"There is no plan {plan_id}",
            facts={"did you mean": near} if near else {},
            hint="headway plans list",
            code="plan.none",
        )

    def _is_plan_of(self, path: str, plan_id: str) -> bool:
        try:
            return self._id_in_file(path) == plan_id
        except UsageError:
            return False


def _was_cut_short(execution: SavedExecution) -> bool:
    """Whether a run that made again what had been complete was stopped, or died, on the way."""
    run = execution.state.run
    return execution.status == "complete" and run is not None and run.status in ("running", "paused")
