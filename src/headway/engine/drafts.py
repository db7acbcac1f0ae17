"""Plans that cannot be run as they are: what keeps them from it, with its lines while their file is as it was."""

from __future__ import annotations

import os
from collections.abc import Sequence

from headway.core.check import Problem
from headway.core.codec import digest
from headway.core.plan import PlanSpec
from headway.core.state import State
from headway.engine.elsewhere import check_beside_others
from headway.errors import PlanInvalid
from headway.store import PlanStore


def refuse_drafts(state: State, root: str, store: PlanStore) -> None:
    """A plan with problems is not run. One that was sound when it was taken in, and has not changed, is not asked."""
    if state.proposal is not None and state.proposal.problems:
        path = state.proposal.path
        raise PlanInvalid(
            state.proposal.problems,
            where=f"Plan {state.plan_id} is a draft: {path}",
            hint=f"correct {path}, then: headway plans new {path}",
        )
    if state.sound:
        return
    spec = PlanSpec(
        goal=state.goal,
        id=state.plan_id,
        settings=state.settings,
        profile=state.profile,
        artifacts=tuple(state.artifacts.values()),
    )
    problems = check_beside_others(spec, state.plan_id, store)
    if problems:
        raise invalid(state, problems, root, store)


def invalid(state: State, problems: Sequence[Problem], root: str, store: PlanStore) -> PlanInvalid:
    """What is wrong with a plan that was taken in, as it was told when that was its file's."""
    found = _located(state, _once(state, problems), root, store)
    path = state.proposal.path if state.proposal is not None and all(problem.line for problem in found) else ""
    return PlanInvalid(found, where=path or f"Plan {state.plan_id}")


def _once(state: State, problems: Sequence[Problem]) -> Sequence[Problem]:
    """Without those of units, where their pipelines have some: whoever mends these mends them for every unit."""
    plain = {a for a, spec in state.artifacts.items() if not spec.pipeline}
    rest = [p for p in problems if ":" in p.artifact or not p.artifact or p.artifact in plain]
    return rest if any(":" in p.artifact for p in rest) else problems


def _located(state: State, problems: Sequence[Problem], root: str, store: PlanStore) -> Sequence[Problem]:
    """These problems with their lines, as far as the file from which the plan was taken in is as it was."""
    from headway.files.planfile import parse_plan  # for those who have problems

    if state.proposal is None or not state.proposal.source:
        return problems
    try:
        with open(os.path.join(root, state.proposal.path), "rb") as file:
            data = file.read()
    except OSError:
        return problems
    if digest(data) != state.proposal.source:
        return problems
    parsed = parse_plan(
        data, name=state.proposal.path, check=lambda plan: check_beside_others(plan, state.plan_id, store)
    )
    lines = {_what(problem): problem for problem in parsed.problems}
    found = [lines.get(_what(problem), problem) for problem in problems]
    return sorted(found, key=lambda problem: problem.line or 0)


def _what(problem: Problem) -> tuple[str, ...]:
    return (problem.code, problem.artifact, problem.key, problem.value, problem.message)
