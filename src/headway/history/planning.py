"""What a planner should know before it plans a goal: what exists, and what need not be made. Knows the graph only."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from headway.core.plan import ArtifactSpec, PlanSpec
from headway.errors import UsageError
from headway.history.shapes import ProjectDag


class Known(NamedTuple):
    """Something that is there already, and may be required instead of being made."""

    node: str
    goal: str
    artifact: str
    path: str
    description: str
    contract: str
    content_hash: str
    file_hash: str


class Planned(NamedTuple):
    """An artifact of a plan to be, and whether it need not be made."""

    id: str
    can_skip: bool
    why: str
    made_by: str = ""
    node: str = ""


class GoalPlan(NamedTuple):
    """What a planner should know before it plans: what exists, what can be skipped and why."""

    goal: str
    available: dict[str, Known]
    tasks: list[Planned]
    reuses: int

    def to_dict(self) -> dict[str, Any]:
        """The same for machines."""
        return {
            "goal": self.goal,
            "available": {node: known._asdict() for node, known in self.available.items()},
            "tasks": [task._asdict() for task in self.tasks],
            "reuses": self.reuses,
        }


def plan_goal(goal: str | PlanSpec, dag: ProjectDag, *, stands: Callable[[Known], bool] | None = None) -> GoalPlan:
    """What exists and is complete, and which artifacts of a proposed plan need not be made, by contract and content.

    `stands` says whether something is still what was made. Whether it may really be skipped is for the run to say,
    which compares everything: this is what to expect.
    """
    available = {
        node.id: Known(
            node=node.id,
            goal=node.goal_id,
            artifact=node.title,
            path=node.path,
            description=node.description,
            contract=node.contract,
            content_hash=node.content_hash,
            file_hash=dag.artifacts[node.path].content_hash if node.path in dag.artifacts else node.content_hash,
        )
        for node in dag.tasks.values()
        if node.status == "complete" and node.content_hash
    }
    text = goal if isinstance(goal, str) else goal.goal
    if not text.strip():
        raise UsageError("There is no goal", hint="say what should exist", code="plan.goal")
    if isinstance(goal, str):
        return GoalPlan(text, available, [], 0)
    by_path: dict[str, list[Known]] = {}
    by_contract: dict[str, list[Known]] = {}
    for known in available.values():
        if known.path:
            by_path.setdefault(known.path, []).append(known)
        if known.contract.strip():
            by_contract.setdefault(" ".join(known.contract.split()), []).append(known)
    found = ((spec, *_made_before(spec, by_path, by_contract)) for spec in goal.artifacts)
    tasks = [_planned(spec, known, why, stands) for spec, known, why in found]
    return GoalPlan(text, available, tasks, sum(task.can_skip for task in tasks))


def _made_before(
    spec: ArtifactSpec, by_path: Mapping[str, list[Known]], by_contract: Mapping[str, list[Known]]
) -> tuple[Known | None, str]:
    """The newest that is what this one is to be, and what they have in common: their file and contract, or a contract
    alone. One that only has the same file is something else ("")."""
    contract = " ".join(spec.contract.split())
    there = [known for path in spec.produces for known in by_path.get(path, ())]
    same = [known for known in there if " ".join(known.contract.split()) == contract]
    if same:
        return same[-1], f"{same[-1].path}, with the same contract"
    if contract and by_contract.get(contract):
        known = by_contract[contract][-1]
        return known, f"{known.node} has the same contract and can be required"
    return (there[-1], "") if there else (None, "")


def _planned(spec: ArtifactSpec, known: Known | None, why: str, stands: Callable[[Known], bool] | None) -> Planned:
    if known is None:
        return Planned(spec.id, False, "nothing like it has been made")
    if not why:
        return Planned(
            spec.id, False, f"goal {known.goal} made {known.path}, with another contract", known.goal, known.node
        )
    if stands is not None and not stands(known):
        changed = f"goal {known.goal} made {known.path or known.node}, which has changed since"
        return Planned(spec.id, False, changed, known.goal, known.node)
    return Planned(spec.id, True, f"made before by goal {known.goal}: {why}", known.goal, known.node)
