"""A project as its workspace sees it: a card, drawn from its history and from what its own files say."""

from __future__ import annotations

import hashlib
import os
from collections import Counter
from collections.abc import Mapping

from headway.core.ids import name_elsewhere
from headway.errors import DamageError, HeadwayError
from headway.files.blobs import Blobs
from headway.files.identity import HOME, read_identity
from headway.history.dag import Dag
from headway.history.shapes import DagIndex, GoalDetail, GoalEntry
from headway.history.survey import Facts, stat_of
from headway.history.upper_shapes import Card, Counts, Needed, Repeated, Spent
from headway.history.workspace_cache import GoalFacts, Key
from headway.store import PlanStore

REPEATED = 3
"""So many goals have to make a file again before it is worth a word."""
SHOWN = 5
TEXT = 200
"""So much is kept of an error or a contract."""
EMPTY = hashlib.sha256(b"").hexdigest()[:16]

Goals = Mapping[str, "tuple[str, GoalFacts]"]


def dag_of(root: str) -> Dag:
    """The history of a project."""
    home = os.path.join(root, HOME)
    blobs = Blobs(os.path.join(home, "blobs"))
    return Dag(root, home, PlanStore(os.path.join(home, "plans"), blobs=blobs))


def stamp_of(root: str) -> list[list[int]]:
    """What changes whenever the history of a project does: a few stats."""
    home = f"{root}/{HOME}"
    return [stat_of(f"{home}/{name}") or [] for name in ("dag/index.json", "plans", "dag/open")]


def draw(root: str, path: str, facts: Facts, known: Goals) -> tuple[Card, dict[str, tuple[str, GoalFacts]]]:
    """The card of a project, and what was seen of its goals; of those that are `known` and the same nothing is read."""
    stamp = stamp_of(root)
    card = Card(
        id=path,
        name=facts.name,
        path=path,
        summary=Counts(),
        tech_stack=[language for language in facts.languages if language != "docs"] + facts.tools,
        confidence=facts.confidence,
        evidence=facts.evidence,
        facts=facts,
        stamp=stamp,
    )
    if not any(stamp):
        return card, {}
    dag = dag_of(root)
    try:
        card.id = read_identity(dag.home) or path
        index = dag.index()
    except (HeadwayError, OSError) as error:
        card.problem = error.message if isinstance(error, HeadwayError) else error.strerror or str(error)
        if isinstance(error, DamageError):
            card.id = path
        return card, {}
    goals = {entry.id: _seen(dag, entry, known.get(entry.id)) for entry in index.goals}
    card.unsettled = bool(dag.folder.marked())
    _fill(card, index, goals)
    return card, goals


def _seen(dag: Dag, entry: GoalEntry, known: tuple[str, GoalFacts] | None) -> tuple[str, GoalFacts]:
    position = f"{entry.seq}:{entry.size}:{entry.status}"
    if known is not None and known[0] == position:
        return known
    try:
        return position, facts_of(dag.goal(entry.id), entry)
    except HeadwayError:
        return position, GoalFacts(entry.status, entry.created_at, entry.ms, entry.done, 0, True, [], [], [], [])


def facts_of(goal: GoalDetail, entry: GoalEntry) -> GoalFacts:
    """What a workspace wants to know of a goal."""
    made = [
        (task.id, path, found)
        for task in goal.tasks
        for path, found in zip(task.produces, task.hashes or [task.content_hash or ""], strict=False)
    ]
    return GoalFacts(
        status=entry.status,
        at=goal.completed_at or goal.updated_at or goal.created_at,
        ms=entry.ms,
        done=entry.done,
        failed=sum(1 for task in goal.tasks if task.error),
        troubled=entry.crash_recovery or bool(entry.problem),
        made=made,
        contracts=[(task.id, *_contract(task.contract)) for task in goal.tasks if task.contract],
        failures=[(task.id, task.error[:TEXT]) for task in goal.tasks if task.error],
        needed=[(task.id, r) for task in goal.tasks for r in task.requires if is_of_another_project(r)],
    )


def is_of_another_project(required: str) -> bool:
    """Whether a requirement leads out of its project."""
    return required.startswith("../") and name_elsewhere(required) is not None


def _fill(card: Card, index: DagIndex, goals: Goals) -> None:
    total = index.summary
    statuses = [entry.status for entry in index.goals]
    card.summary = Counts(
        goals=total.total_goals,
        completed=total.completed_goals,
        artifacts=total.total_artifacts,
        failed=statuses.count("failed"),
        running=statuses.count("running"),
    )
    card.last_activity = max((e.updated_at or e.created_at for e in index.goals), default="")
    card.goal_status = {entry.id: entry.status for entry in index.goals}
    facts = {goal: found for goal, (_, found) in goals.items()}
    card.health_score = health(list(facts.values()))
    for found in facts.values():
        month = card.months.setdefault(found.at[:7], Spent())
        month.goals += 1
        month.ms += found.ms
    errors = Counter(error for found in facts.values() for _, error in found.failures)
    card.failures = [
        Repeated(what=error, count=n, where=[g for g, f in facts.items() if any(e == error for _, e in f.failures)])
        for error, n in errors.most_common(SHOWN)
    ]
    makers: dict[str, list[str]] = {}
    for goal, found in facts.items():
        for path in dict.fromkeys(path for _, path, _ in found.made if not path.endswith("#text")):
            makers.setdefault(path, []).append(goal)
    often = sorted((p for p, by in makers.items() if len(by) >= REPEATED), key=lambda p: (-len(makers[p]), p))
    card.remade = [Repeated(what=p, count=len(makers[p]), where=makers[p][:SHOWN]) for p in often[:SHOWN]]
    card.needed = [
        Needed(goal=goal, artifact=artifact, required=required)
        for goal, found in facts.items()
        for artifact, required in found.needed
    ]


def health(goals: list[GoalFacts]) -> float | None:
    """How a project is doing, from 0 to 1: half by goals completed of those begun, three tenths by artifacts that are
    done of those done or failed, two tenths by goals that neither crashed nor became unreadable. None without a goal.
    """
    begun = [goal for goal in goals if goal.status != "planned"]
    if not begun:
        return None
    done, failed = sum(goal.done for goal in begun), sum(goal.failed for goal in begun)
    completed = sum(goal.status == "complete" for goal in begun) / len(begun)
    sound = done / (done + failed) if done + failed else 1.0
    steady = 1 - sum(goal.troubled for goal in begun) / len(begun)
    return round(0.5 * completed + 0.3 * sound + 0.2 * steady, 2)


def keys_of(goals: Goals) -> dict[str, Key]:
    """By what an artifact of this project is known again in others: its bytes, and its contract."""
    found: dict[str, Key] = {}
    for goal, (_, facts) in goals.items():
        for artifact, path, digest in facts.made:
            if digest and digest != EMPTY:
                found.setdefault(f"content:{digest}", Key(f"{goal}:{artifact}", path))
        for artifact, name, text in facts.contracts:
            found.setdefault(name, Key(f"{goal}:{artifact}", text))
    return found


def _contract(contract: str) -> tuple[str, str]:
    """By what a contract is known again, however it is spaced and capitalised; and what to show of it."""
    text = " ".join(contract.split())
    name = hashlib.blake2b(text.lower().encode("utf-8", "surrogatepass"), digest_size=8).hexdigest()
    return f"contract:{name}", text[:TEXT]
