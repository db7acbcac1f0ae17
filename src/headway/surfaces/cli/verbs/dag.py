"""The history of this project: every goal ever run, what it made, and what depends on it.

headway dag show                goals in order, with their artifacts
headway dag search WORD…        find goals, artifacts, contracts, failures and learnings
headway dag impact ID           what a change would touch, and at what cost
headway dag provenance ID|PATH  where something comes from, and whether it still stands
headway dag rebuild             make dag/ again, from the ledgers
headway dag workspace [PATH]    all projects around this one, and how they are related
headway dag environment         all workspaces of this machine
"""

from __future__ import annotations

import argparse
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

from headway.core.clipping import clip
from headway.core.ids import as_word
from headway.errors import TryLater
from headway.history.shapes import GoalDetail, GoalEntry, Task, to_dict
from headway.projections.story import count, seconds
from headway.surfaces.cli.options import add_json, add_project, at_least, project_of
from headway.surfaces.cli.screen import Screen
from headway.surfaces.cli.upper import SIGN, environment_of, show_environment, show_workspace, workspace_of

if TYPE_CHECKING:
    from headway.project import Project

SHOWN = 20


def configure(parser: argparse.ArgumentParser) -> None:
    verbs = parser.add_subparsers(dest="action", required=True, metavar="ACTION")
    show = verbs.add_parser("show", help="goals in order, with their artifacts")
    show.add_argument("goal", metavar="GOAL", nargs="?", help="one goal, by its plan's id (default: all)")
    show.add_argument("--limit", type=at_least(0), default=SHOWN, metavar="N", help="so many goals; 0 for all")
    form = show.add_mutually_exclusive_group()
    form.add_argument("--mermaid", action="store_true", help="the graph as Mermaid text")
    form.add_argument("--graphviz", action="store_true", help="the graph as Graphviz text")
    form.add_argument("--full", action="store_true", help="with --json: all nodes and edges")
    form.add_argument("--totals", action="store_true", help="figures over all goals")
    search = verbs.add_parser("search", help="find goals, artifacts, contracts, failures and learnings")
    search.add_argument("text", metavar="WORD", nargs="+", help="words, or beginnings of words; all have to match")
    search.add_argument(
        "--kind", choices=("goal", "artifact", "contract", "failure", "learning"), default="", help="only these"
    )
    search.add_argument("--limit", type=at_least(1), default=SHOWN, metavar="N", help=f"at most N (default: {SHOWN})")
    impact = verbs.add_parser("impact", help="what a change would touch, and at what cost")
    impact.add_argument("node", metavar="ID", help="an artifact (plan:artifact where several have the name) or a file")
    provenance = verbs.add_parser("provenance", help="where something comes from, and whether it still stands")
    provenance.add_argument("node", metavar="ID|PATH", help="an artifact, or a file that some goal made or read")
    direction = provenance.add_mutually_exclusive_group()
    direction.add_argument("--up", action="store_true", help="only what it rests on")
    direction.add_argument("--down", action="store_true", help="only what rests on it")
    rebuild = verbs.add_parser("rebuild", help="make dag/ again: from the ledgers, from goal files where one is gone")
    rebuild.add_argument(
        "--compact",
        type=at_least(0),
        metavar="DAYS",
        help="goals whose plan was deleted and that ended so long ago keep only what something still names",
    )
    workspace = verbs.add_parser("workspace", help="all projects around this one, and how they are related")
    workspace.add_argument("path", metavar="PATH", nargs="?", help="its folder (default: the one around this project)")
    environment = verbs.add_parser("environment", help="all workspaces of this machine")
    for verb in (workspace, environment):
        verb.add_argument("--all", action="store_true", help="all of it, however long")
    for verb in (show, search, impact, provenance, rebuild, workspace, environment):
        add_project(verb)
        add_json(verb)


def run(args: Any, screen: Screen) -> int:
    actions = {
        "show": _show,
        "search": _search,
        "impact": _impact,
        "provenance": _provenance,
        "rebuild": _rebuild,
        "workspace": _workspace,
        "environment": _environment,
    }
    return actions[args.action](args, screen)


# Show.


def _show(args: Any, screen: Screen) -> int:
    project = project_of(args, screen)
    if args.mermaid or args.graphviz:
        return _draw(project, args, screen)
    if args.totals:
        return _totals(project, screen)
    if args.goal:
        goal = project.get_goal_details(args.goal)
        screen.answer(to_dict(goal))
        _say_goal(goal, screen)
        return 0
    if args.full:
        screen.as_json = True
        screen.answer(to_dict(project.get_project_dag_full()))
        return 0
    index = project.get_project_dag_index()
    screen.answer(to_dict(index))
    if screen.as_json:
        return 0
    shown = index.goals[-args.limit :] if args.limit else index.goals
    if len(shown) < len(index.goals):
        screen.say(screen.style(f"… {len(index.goals) - len(shown)} earlier goals; --limit 0 shows all", "dim"))
    for number, entry in enumerate(shown, len(index.goals) - len(shown) + 1):
        _say_goal(project.get_goal_details(entry.id), screen, number=number, gone=entry.gone)
    total = index.summary
    screen.say(
        f"{count(total.total_goals, 'goal')}, {total.completed_goals} complete; "
        f"{count(total.total_artifacts, 'output')}, {count(total.total_edges, 'edge')}."
        if index.goals
        else "No goal has been run here yet. Next: headway run"
    )
    return 0


def _say_goal(goal: GoalDetail, screen: Screen, *, number: int = 0, gone: bool = False) -> None:
    title = f"Goal {number}: {goal.title}" if number else goal.title
    notes = [_when(goal), "its plan was deleted" if gone else ""]
    notes.append(f"{goal.problem}, so this is what was last known: headway doctor" if goal.problem else "")
    if goal.crash_recovery:
        notes.append(f"crashed; headway run --plan-id {goal.id} goes on")
    said = "  ".join(filter(None, (f"[{goal.id}]", *notes)))
    screen.say(f"{screen.style(title, 'bold')} {SIGN[goal.status]} {screen.style(said, 'dim')}")
    for task in goal.tasks[:200]:
        screen.say(_task_line(task, screen))
    if len(goal.tasks) > 200:
        screen.say(f"  … {len(goal.tasks) - 200} more")
    for learning in goal.learnings:
        screen.say(f"  learned: {learning}")
    screen.say()


def _when(goal: GoalDetail | GoalEntry) -> str:
    if goal.completed_at:
        return f"({goal.completed_at[:10]})"
    return f"({goal.status.replace('running', 'in progress')})"


def _task_line(task: Task, screen: Screen) -> str:
    needs = f"needs {', '.join(task.requires)}" if task.requires else ""
    word = "" if task.status in ("complete", "running") else task.status.replace("ready", "pending")
    word = "skipped" if task.skipped else word.replace("planned", "pending")
    text = task.error or needs
    return "  ".join(
        part
        for part in (f"  {'–' if task.skipped else SIGN[task.status]} {task.id}", word, screen.style(text, "dim"))
        if part
    )


def _draw(project: Project, args: Any, screen: Screen) -> int:
    from headway.history.graph import full_dag, graph_of, to_graphviz, to_mermaid

    dag = graph_of([project.get_goal_details(args.goal)]) if args.goal else full_dag(project.dag)
    text = to_mermaid(dag) if args.mermaid else to_graphviz(dag)
    screen.answer({"format": "mermaid" if args.mermaid else "graphviz", "text": text})
    screen.say(text)
    return 0


def _totals(project: Project, screen: Screen) -> int:
    from headway.history.search import Search

    totals = Search(project.dag).totals()
    screen.answer(totals)
    screen.say("Goals: " + (", ".join(f"{n} {status}" for status, n in totals["goals"].items()) or "none yet"))
    for month in totals["months"]:
        screen.say(f"  {month['month']}  {count(month['goals'], 'goal')}, {seconds(month['ms'])}")
    for status, found in totals["artifacts"].items():
        screen.say(f"Artifacts {status}: {found['count']}, {seconds(found['ms'])}")
    for failure in totals["failures"]:
        screen.say(f"Failed {failure['count']} times in {count(failure['goals'], 'goal')}: {failure['error']}")
    return 0


# Questions.


def _search(args: Any, screen: Screen) -> int:
    from headway.history.search import Search

    project = project_of(args, screen)
    hits = Search(project.dag).find(" ".join(args.text), kind=args.kind, limit=args.limit)
    screen.answer({"query": " ".join(args.text), "hits": [hit.to_dict() for hit in hits]})
    for hit in hits:
        said = clip(hit.text, 80)
        screen.say(
            "  ".join(part for part in (f"{hit.kind:<9}", hit.node, hit.path, screen.style(said, "dim")) if part)
        )
    if not hits:
        screen.say("Nothing matches. Next: headway dag show")
    return 0


def _impact(args: Any, screen: Screen) -> int:
    from headway.history.queries import impact

    project = project_of(args, screen)
    found = impact(project.dag, args.node)
    screen.answer(found)
    touched, cost = found["touched"], found["cost"]
    screen.say(f"A change of {', '.join(found['of'])} touches {count(len(touched), 'artifact')}.")
    for item in touched:
        took = seconds(item["ms"]) if item["ms"] else item["how"]
        screen.say(f"  {SIGN[item['status']]} {item['node']}  {screen.style(took, 'dim')}".rstrip())
    if touched:
        screen.say(f"Making them again took {seconds(cost['ms'])} the last time; early cut-off may spare some.")
    return 0


def _provenance(args: Any, screen: Screen) -> int:
    from headway.history.queries import provenance

    project = project_of(args, screen)
    found = provenance(project.dag, args.node, direction="up" if args.up else "down" if args.down else "both")
    screen.answer(found)
    if not found["made_by"]:
        screen.say(f"{screen.style(found['current'], 'bold')}  a source: no goal made it")
    for made in found["made_by"]:
        _say_origin(made, screen)
    if found.get("up"):
        screen.say(f"rests on: {', '.join(found['up'])}")
    if found.get("down"):
        screen.say(f"used by: {', '.join(found['down'])}")
    return 0


def _say_origin(made: dict[str, Any], screen: Screen) -> None:
    goal, recipe = made["goal"], made["recipe"] or {}
    screen.say(f"{screen.style(made['node'], 'bold')}  {made['how'] or made['status']} {made['completedAt'] or ''}")
    screen.say(f"  goal: {goal['title']} [{goal['id']}]")
    if made["run"]:
        screen.say(f"  run: {made['run']}")
    if recipe.get("text"):
        screen.say(f"  {recipe['kind']}: {' '.join(recipe['text'].split())}")
    if made["model"]:
        screen.say(f"  model: {made['model']}")
    if made["prompt"]:
        screen.say(f"  prompt: headway show {as_word(made['artifact'])} --prompt --plan-id {goal['id']}")
    if made["note"]:
        screen.say(f"  note: {made['note']}")
    if made.get("problem"):
        screen.say(screen.style(f"  {made['problem']}, so this is what was last known. Next: headway doctor", "yellow"))
    if made["how"] == "made":
        screen.say(f"  took: {seconds(made['cost']['ms'])}")
    for name, digest in {**made["inputs"], **made["sources"]}.items():
        screen.say(f"  from: {name} ({digest[:8]})")
    for output in made["outputs"]:
        words = {"stands": "as it was made", "changed": "changed since", "missing": "missing"}
        screen.say(f"  {output['path'] or 'text'}: {words[output['standing']]}")


# Rebuilding.


def _rebuild(args: Any, screen: Screen) -> int:
    project = project_of(args, screen)
    before = ""
    if args.compact is not None:
        before = (datetime.now(UTC) - timedelta(days=args.compact)).isoformat(timespec="microseconds")
    found = project.dag.rebuild(compact_before=before)
    screen.answer(found._asdict())
    screen.say(
        f"Rebuilt: {count(found.goals, 'goal')} ({found.from_ledgers} from ledgers), "
        f"{count(found.artifacts, 'output')}, {count(found.edges, 'edge')}."
    )
    for goal_id in found.from_goal_files:
        screen.say(f"  {goal_id}: its ledger is gone; kept as its goal file has it")
    for goal_id, why in found.unreadable.items():
        screen.say(screen.style(f"  {goal_id}: {why}. Next: headway doctor", "red"))
    for path in found.missing[:SHOWN]:
        screen.say(f"  missing: {path}")
    for path in found.changed[:SHOWN]:
        screen.say(f"  changed since it was made: {path}")
    if found.dropped:
        screen.say(f"  {count(found.dropped, 'task')} that nothing names any more dropped")
    return 4 if found.unreadable else 0


# The levels above.


def _workspace(args: Any, screen: Screen) -> int:
    workspace = workspace_of(args, screen)
    if workspace.registry.exists:  # somebody made it one: what is seen is kept for the next look, where it can be
        with suppress(OSError, TryLater):
            workspace.refresh()
    dag = workspace.dag()
    screen.answer(to_dict(dag))
    show_workspace(dag, screen, everything=args.all)
    return 0


def _environment(args: Any, screen: Screen) -> int:
    dag = environment_of(screen).overview()
    screen.answer(to_dict(dag))
    show_environment(dag, screen, everything=args.all)
    return 0
