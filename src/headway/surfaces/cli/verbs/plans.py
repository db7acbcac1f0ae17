"""The plans of this project.

headway plans new FILE      save a plan file, or take in what changed in it
headway plans list          all plans, newest first
headway plans show          one plan: its artifacts, their order, how far it is
headway plans close         put a plan away
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import Any

from headway.core.lifecycle import progress, statuses
from headway.core.plan import ArtifactSpec
from headway.core.state import State
from headway.project import Project, Saved
from headway.projections.saved_execution import SavedExecution
from headway.projections.story import count, sentence
from headway.store import Listed
from headway.surfaces.cli.options import add_at, add_json, add_plan, add_project, plan_of, project_of
from headway.surfaces.cli.screen import Screen

SIGN = {"complete": "✓", "failed": "✗", "in_progress": "◐", "skipped": "–", "blocked": "▫", "pending": "·"}


def configure(parser: argparse.ArgumentParser) -> None:
    verbs = parser.add_subparsers(dest="action", required=True, metavar="ACTION")
    new = verbs.add_parser("new", help="save a plan file, or take in what changed in it")
    new.add_argument(
        "file", metavar="FILE", nargs="?", help="a plan file, YAML, JSON or Python (default: headway.yaml)"
    )
    new.add_argument("--plan-id", metavar="ID", help="the plan's id, where the file has none")
    new.add_argument("--take", choices=("file", "ledger"), help="who wins where both changed the same thing")
    add_project(new)
    add_json(new)
    listed = verbs.add_parser("list", help="all plans, newest first")
    add_project(listed)
    add_json(listed)
    show = verbs.add_parser("show", help="one plan: its artifacts, their order, how far it is")
    show.add_argument("id", metavar="ID", nargs="?", help="a plan id")
    add_plan(show)
    add_at(show)
    add_json(show)
    close = verbs.add_parser("close", help="put a plan away; headway reset --all opens it again")
    close.add_argument("id", metavar="ID", nargs="?", help="a plan id")
    close.add_argument("--reason", metavar="TEXT", default="", help="why, for the record")
    add_plan(close)
    add_json(close)


def run(args: Any, screen: Screen) -> int:
    actions = {"new": _new, "list": _list, "show": _show, "close": _close}
    return actions[args.action](args, screen)


# New.


def _new(args: Any, screen: Screen) -> int:
    project = project_of(args, screen)
    saved = _taken_in(args.file or project.default_file(), args, project)
    state = saved.execution.state
    screen.answer(
        {
            "plan_id": state.plan_id,
            "outcome": saved.outcome,
            "artifacts": len(state.artifacts),
            "events": [record.event.type for record in saved.events],
            "problems": [problem.to_dict() for problem in saved.problems],
        }
    )
    screen.say(f"Plan {state.plan_id} {saved.outcome}: {_count(state)}.")
    if saved.outcome == "updated":
        changes = [sentence(record) for record in saved.events if record.event.type != "proposal_taken"]
        for line in changes or ["nothing that matters to the plan"]:
            screen.say(f"  {line}")
    if not saved.problems:
        return 0
    _warn(saved.problems, screen)
    screen.note("It is saved as a draft and does not run. Correct the file, then: headway plans new")
    return 2


def _taken_in(path: str, args: Any, project: Project) -> Saved:
    take = args.take or ""
    if not path.partition(":")[0].endswith(".py"):
        return project.save_plan(path, plan_id=args.plan_id, take=take)
    from headway.authoring import load_plan

    meant = load_plan(path, project).meant(args.plan_id, check=project.check)
    assert meant.plan is not None, "Python code proposes a plan"
    return project.take_in(meant.plan, name=meant.name, source=meant.source, plan_id=args.plan_id, take=take)


# List.


def _list(args: Any, screen: Screen) -> int:
    entries = project_of(args, screen).store.list_all()
    screen.answer({"plans": [_entry(entry) for entry in entries]})
    if not entries:
        screen.say("No plans yet. Next: headway init, or headway plans new FILE")
    rows = [_row(entry) for entry in entries]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)] if rows else []
    for row, entry in zip(rows, entries, strict=True):
        plan_id, status, done, when, about = (text.ljust(width) for text, width in zip(row, widths, strict=True))
        shown = screen.style(status, "red") if entry.error else status
        screen.say(f"{plan_id}  {shown}  {done}  {screen.style(when, 'dim')}  {about}".rstrip())
    return 0


def _row(entry: Listed) -> tuple[str, str, str, str, str]:
    if entry.execution is None:
        return entry.plan_id, "unreadable", "", "", f"{entry.error.message if entry.error else ''}: headway doctor"
    done, total = progress(entry.execution.state)
    when = entry.execution.updated_at[:16].replace("T", " ")
    goal = " ".join(entry.execution.goal.split())
    return entry.plan_id, entry.execution.status, f"{done}/{total}", when, _short(goal)


def _entry(entry: Listed) -> dict[str, Any]:
    execution = entry.execution
    if execution is None:
        error = entry.error.to_dict() if entry.error else None
        return {"plan_id": entry.plan_id, "status": "unreadable", "error": error}
    done, total = progress(execution.state)
    return {
        "plan_id": entry.plan_id,
        "goal": execution.goal,
        "status": execution.status,
        "version": execution.state.version,
        "created_at": execution.created_at,
        "updated_at": execution.updated_at,
        "progress": {"done": done, "total": total},
    }


# Show.


def _show(args: Any, screen: Screen) -> int:
    project = project_of(args, screen)
    execution = project.show(plan_of(args, project), at=args.at)
    problems = project.problems(execution)
    if screen.as_json:
        screen.answer({**execution.to_dict(), "problems": [problem.to_dict() for problem in problems]})
        return 0
    _describe(execution, screen)
    _warn(problems, screen)
    return 0


def _describe(execution: SavedExecution, screen: Screen) -> None:
    state = execution.state
    done, total = progress(state)
    screen.say(screen.style(" ".join(state.goal.split()), "bold"))
    screen.say(
        f"Plan {state.plan_id}, version {state.version}: {state.status.replace('_', ' ')}, "
        f"{done} of {total} done, as of event {execution.position.seq}"
    )
    if state.unverified:
        screen.say(screen.style(f"Rebuilt from {state.unverified}, unverified", "yellow"))
    if state.profile:
        screen.say(f"Profile: {state.profile.limit} at once{', locked' if state.profile.locked else ''}")
    status = statuses(state)
    waves = execution.graph.waves()
    placed = {artifact_id for wave in waves for artifact_id in wave}
    stuck = [artifact_id for artifact_id in state.artifacts if artifact_id not in placed]
    groups = [(f"Wave {number}", wave) for number, wave in enumerate(waves, 1)]
    for title, ids in [*groups, ("On or behind a cycle", stuck)] if stuck else groups:
        screen.say(f"\n{title}")
        for artifact_id in ids:
            screen.say(_line(state.artifacts[artifact_id], SIGN[status[artifact_id]], screen))


def _line(spec: ArtifactSpec, sign: str, screen: Screen) -> str:
    about = " ".join((spec.description or spec.contract).split())
    needs = f"needs {', '.join(spec.requires)}" if spec.requires else ""
    return "  ".join(part for part in (f"  {sign} {spec.id}", screen.style(_short(about), "dim"), needs) if part)


# Close.


def _close(args: Any, screen: Screen) -> int:
    project = project_of(args, screen)
    execution = project.close_plan(plan_of(args, project), reason=args.reason)
    screen.answer({"plan_id": execution.plan_id, "status": execution.status})
    screen.say(f"Plan {execution.plan_id} closed: {_count(execution.state)}. Its ledger and checkpoint stay.")
    return 0


def _count(state: State) -> str:
    done, total = progress(state)
    return f"{count(total, 'artifact')}, {done} done" if done else count(total, "artifact")


def _warn(problems: Sequence[object], screen: Screen) -> None:
    for problem in problems:
        screen.note(screen.style(f"  {problem}", "yellow", err=True))


def _short(text: str) -> str:
    return text if len(text) <= 70 else text[:69] + "…"
