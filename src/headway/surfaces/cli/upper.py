"""What is above a project, in words: a workspace as cards with bars, relations and what is shared; a machine."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from headway.core.clipping import clip
from headway.errors import NotFound
from headway.projections.story import count, seconds
from headway.surfaces.cli.screen import Screen

if TYPE_CHECKING:
    from headway.history.environment import Environment
    from headway.history.upper_shapes import Card, EnvironmentDag, WorkspaceDag
    from headway.history.workspace import Workspace

WIDTH, COLUMNS = 22, 3
"""Of a card, inside; and how many stand side by side in 80 columns."""
BAR = 10
FEW = 12
"""So much of each list is shown, unless all is asked for."""
SIGN = {"complete": "✓", "failed": "✗", "running": "◐", "blocked": "▫", "ready": "·", "planned": "·"}


def workspace_of(args: Any, screen: Screen) -> Workspace:
    """The workspace that the arguments name, or that this project is in."""
    from headway.files.identity import find_root, find_workspace
    from headway.history.workspace import Workspace
    from headway.surfaces.cli.options import refuse_missing_folder

    by = getattr(args, "by", "cli")
    if getattr(args, "path", None) is not None:
        refuse_missing_folder(args.path)
        return Workspace(args.path, by=by, notice=screen.note)
    home = os.path.expanduser("~")
    here = os.getcwd()
    if args.project is None and _holds_projects(here):
        return Workspace(here, by=by, notice=screen.note)
    start = os.path.abspath(args.project) if args.project is not None else find_root(here, home=home)
    found = find_workspace(start, home=home)
    if not found:
        raise NotFound(
            "There is no workspace around this folder",
            facts={"folder": start, "because": "the home folder is one only for those who say so"},
            hint="headway dag workspace PATH",
            code="workspace.none",
        )
    return Workspace(found, by=by, notice=screen.note)


def _holds_projects(folder: str) -> bool:
    """Whether a folder is no project itself, or the root of a repository at most, and holds some."""
    from headway.history.survey import MARKS, survey

    if os.path.realpath(folder) == os.path.realpath(os.path.expanduser("~")):
        return False
    own = any(os.path.exists(os.path.join(folder, mark)) for mark in MARKS if mark != ".git")
    return not own and bool(survey(folder).projects)


def environment_of(screen: Screen, *, by: str = "cli") -> Environment:
    """This machine."""
    from headway.history.environment import Environment
    from headway.overview import environment_home

    return Environment(environment_home(), by=by, notice=screen.note)


# A workspace.


def show_workspace(dag: WorkspaceDag, screen: Screen, *, everything: bool = False) -> None:
    """Cards, goals of the whole, relations, what is shared, and what is not there any more."""
    most = None if everything else FEW
    screen.say(f"Workspace: {screen.style(_home(dag.workspace_path), 'bold')}  {dag.topology}\n")
    cards = list(dag.projects.values())
    for line in _grid([_card(card) for card in cards[:most]]):
        screen.say(line)
    if not cards:
        screen.say("No projects here.")
    _rest(cards, most, screen)
    if dag.goals:
        screen.say(f"\n{screen.style('Goals', 'bold')}")
        for goal in dag.goals[:most]:
            parts = ", ".join(f"{name} {status}" for name, status in goal.parts.items())
            screen.say(
                f"  {SIGN[goal.status]} {goal.title}  {goal.done}/{goal.total}  {screen.style(parts, 'dim')}".rstrip()
            )
        _rest(dag.goals, most, screen)
    if dag.links:
        screen.say(f"\n{screen.style('Relations', 'bold')}")
        for link in dag.links[:most]:
            arrow = "↔" if link.relationship == "sibling" else "→"
            sure = "confirmed" if link.confirmed else f"{link.confidence:.2f}"
            more = f" and {len(link.evidence) - 2} more" if len(link.evidence) > 2 and not everything else ""
            why = screen.style("; ".join(link.evidence if everything else link.evidence[:2]) + more, "dim")
            screen.say(f"  {link.source} {arrow} {link.target}  {link.relationship}  {sure}  {why}")
        _rest(dag.links, most, screen)
    if dag.shared_artifacts or dag.shared_patterns:
        screen.say(f"\n{screen.style('Shared', 'bold')}")
        for shared in dag.shared_artifacts[:most]:
            what = "the same bytes" if shared.kind == "content" else "the same contract"
            screen.say(f"  {shared.id}  {what} in {', '.join(shared.projects[:8])}")
        if dag.shared_patterns:
            screen.say(f"  patterns: {', '.join(dag.shared_patterns)}")
    for note in (*(gone.note for gone in dag.gone), *dag.notes):
        screen.say(f"\n{screen.style(note, 'yellow')}")
    goals = sum(card.summary.goals for card in cards)
    done = sum(card.summary.completed for card in cards)
    projects, links = count(len(cards), "project"), count(len(dag.links), "relation")
    screen.say(f"\n{projects}, {count(goals, 'goal')}, {done} complete; {links}.")


def _card(card: Card) -> list[str]:
    total, done = card.summary.goals, card.summary.completed
    part = done / total if total else 0.0
    goals = f"{done}/{total} goals" if total else "No goals yet"
    if card.summary.failed:
        goals += f", {card.summary.failed} failed"
    stack = "/".join(card.tech_stack)
    return [card.path, f"{_bar(part)} {part:.0%}", card.problem or goals, stack]


def _grid(cards: Sequence[list[str]]) -> Iterable[str]:
    for start in range(0, len(cards), COLUMNS):
        row = cards[start : start + COLUMNS]
        yield "  ".join(f"┌{'─' * (WIDTH + 2)}┐" for _ in row)
        for line in range(len(row[0])):
            yield "  ".join(f"│ {clip(card[line], WIDTH):<{WIDTH}} │" for card in row)
        yield "  ".join(f"└{'─' * (WIDTH + 2)}┘" for _ in row)


def _bar(part: float) -> str:
    return "█" * round(part * BAR) + "░" * (BAR - round(part * BAR))


def _rest(items: Sequence[object], most: int | None, screen: Screen) -> None:
    if most is not None and len(items) > most:
        screen.say(screen.style(f"  … {len(items) - most} more; --all shows them", "dim"))


def _home(path: str) -> str:
    home = os.path.expanduser("~")
    return f"~{path[len(home) :]}" if path == home or path.startswith(os.path.join(home, "")) else path


# A machine.


def show_environment(dag: EnvironmentDag, screen: Screen, *, everything: bool = False) -> None:
    """Workspaces with bars, what their projects are written in, and what is worth knowing."""
    most = None if everything else FEW
    if not dag.workspaces:
        screen.say("No workspace is registered. Next: headway environment register PATH")
        return
    width = max(len(_home(w.path)) for w in dag.workspaces)
    for workspace in dag.workspaces:
        part = workspace.completion_rate
        said = (
            workspace.problem
            or f"{count(workspace.project_count, 'project')}, {workspace.completed_goals}/{workspace.total_goals} goals"
        )
        screen.say(f"{screen.style(f'{_home(workspace.path):<{width}}', 'bold')}  {_bar(part)} {part:>4.0%}  {said}")
    for root in dag.roots:
        screen.say(f"root {_home(root.path)}: {root.problem or count(len(root.workspaces), 'workspace')}")
    for name, found in (("Languages", dag.tech_stack.languages), ("Tools", dag.tech_stack.tools)):
        if found:
            screen.say(f"{name}: {', '.join(f'{word} {number}' for word, number in list(found.items())[:most])}")
    scored = [project for project in dag.projects if project.health_score is not None]
    if scored:
        screen.say(f"\n{screen.style('Health', 'bold')}")
        for project in sorted(scored, key=lambda p: (p.health_score or 0.0, p.path))[:most]:
            screen.say(f"  {project.health_score:.2f}  {project.name}  {project.completed}/{project.goals} goals")
        _rest(scored, most, screen)
    if dag.insights:
        screen.say(f"\n{screen.style('Insights', 'bold')}")
        for insight in dag.insights:
            screen.say(f"  {insight.text}")
    if everything and dag.costs:
        screen.say(f"\n{screen.style('Time by project and month', 'bold')}")
        for cost in dag.costs:
            screen.say(f"  {cost.month}  {_home(cost.project)}  {count(cost.goals, 'goal')}, {seconds(cost.ms)}")
