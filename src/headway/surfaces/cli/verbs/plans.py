"""The plans of this project.

headway plans new FILE      save a plan file, or take in what changed in it
headway plans list          all plans, newest first
headway plans show          one plan: its artifacts, their order, how far it is
headway plans close         put a plan away
"""

from __future__ import annotations

import argparse
from typing import Any

from headway.core.lifecycle import progress, statuses
from headway.core.plan import ArtifactSpec
from headway.core.state import State
from headway.projections.saved_execution import SavedExecution
from headway.surfaces.cli.options import add_at, add_json, add_plan, add_project, plan_of, project_of
from headway.surfaces.cli.screen import Screen

SIGN = {"complete": "✓", "failed": "✗", "in_progress": "◐", "skipped": "–", "blocked": "▫", "pending": "·"}


def configure(parser: argparse.ArgumentParser) -> None:
    verbs = parser.add_subparsers(dest="action", required=True, metavar="ACTION")
    new = verbs.add_parser("new", help="save a plan file, or take in what changed in it", allow_abbrev=False)
    new.add_argument("file", metavar="FILE", nargs="?", help="a plan file (default: headway.yaml)")
    new.add_argument("--plan-id", metavar="ID", help="the plan's id, where the file has none")
    new.add_argument("--take", choices=("file", "ledger"), help="who wins where both changed the same thing")
    add_project(new)
    add_json(new)
    listed = verbs.add_parser("list", help="all plans, newest first", allow_abbrev=False)
    add_project(listed)
    add_json(listed)
    show = verbs.add_parser("show", help="one plan", allow_abbrev=False)
    show.add_argument("id", metavar="ID", nargs="?", help="a plan id")
    add_plan(show)
    add_at(show)
    add_json(show)
    close = verbs.add_parser("close", help="put a plan away; headway reset --all opens it again", allow_abbrev=False)
    close.add_argument("id", metavar="ID", nargs="?", help="a plan id")
    close.add_argument("--reason", default="", help="why, for the record")
    add_plan(close)
    add_json(close)


def run(args: Any, screen: Screen) -> int:
    actions = {"new": _new, "list": _list, "show": _show, "close": _close}
    return actions[args.action](args, screen)


def _new(args: Any, screen: Screen) -> int:
    project = project_of(args)
    path = args.file or project.default_file()
    saved = project.save_plan(path, plan_id=args.plan_id, take=args.take or "")
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
    for problem in saved.problems:
        screen.note(screen.style(f"  {problem}", "yellow", err=True))
    if saved.problems:
        screen.note("  Saved as a draft. Correct the file and save it again; until then it does not run.")
        return 2
    return 0


def _list(args: Any, screen: Screen) -> int:
    entries = project_of(args).store.list_all()
    screen.answer({"plans": [_entry(e.execution, e.plan_id, e.error) for e in entries]})
    if not entries:
        screen.say("No plans yet. Next: headway init, or headway plans new FILE")
    width = max((len(e.plan_id) for e in entries), default=0)
    for e in entries:
        if e.execution is None:
            screen.say(
                f"{e.plan_id:<{width}}  {screen.style('damaged', 'red')}      {e.error.message if e.error else ''}"
            )
            continue
        done, total = progress(e.execution.state)
        goal = " ".join(e.execution.goal.split())
        screen.say(
            f"{e.plan_id:<{width}}  {e.execution.status:<11} {done:>4}/{total:<5} {e.execution.updated_at[:16]}  {goal[:60]}"
        )
    return 0


def _entry(execution: SavedExecution | None, plan_id: str, error: Any) -> dict[str, Any]:
    if execution is None:
        return {"plan_id": plan_id, "status": "damaged", "error": error.to_dict() if error else None}
    done, total = progress(execution.state)
    return {
        "plan_id": plan_id,
        "goal": execution.goal,
        "status": execution.status,
        "version": execution.state.version,
        "created_at": execution.created_at,
        "updated_at": execution.updated_at,
        "progress": {"done": done, "total": total},
    }


def _show(args: Any, screen: Screen) -> int:
    project = project_of(args)
    execution = project.show(args.id or plan_of(args, project), at=args.at)
    problems = project.problems(execution)
    screen.answer({**execution.to_dict(), "problems": [problem.to_dict() for problem in problems]})
    state = execution.state
    done, total = progress(state)
    screen.say(screen.style(" ".join(state.goal.split()), "bold"))
    screen.say(
        f"Plan {state.plan_id}, version {state.version}: {state.status}, {done} of {total} done, event {execution.position.seq}"
    )
    if state.unverified:
        screen.say(screen.style(f"Rebuilt from {state.unverified}, unverified", "yellow"))
    if state.profile:
        screen.say(f"Profile: {state.profile.limit} at once{', locked' if state.profile.locked else ''}")
    status = statuses(state)
    for number, wave in enumerate(execution.graph.waves(), 1):
        screen.say(f"\nWave {number}")
        for artifact_id in wave:
            screen.say(_line(state.artifacts[artifact_id], SIGN[status[artifact_id]], screen))
    for problem in problems:
        screen.note(screen.style(f"  {problem}", "yellow", err=True))
    return 0


def _line(spec: ArtifactSpec, sign: str, screen: Screen) -> str:
    about = " ".join((spec.description or spec.contract).split())
    needs = f"  needs {', '.join(spec.requires)}" if spec.requires else ""
    return f"  {sign} {spec.id}  {screen.style(about[:70], 'dim')}{needs}"


def _close(args: Any, screen: Screen) -> int:
    project = project_of(args)
    execution = project.close_plan(args.id or plan_of(args, project), reason=args.reason)
    screen.answer({"plan_id": execution.plan_id, "status": execution.status})
    screen.say(f"Plan {execution.plan_id} closed: {_count(execution.state)}. Its ledger and checkpoint stay.")
    return 0


def _count(state: State) -> str:
    done, total = progress(state)
    noun = "artifact" if total == 1 else "artifacts"
    return f"{total} {noun}, {done} done" if done else f"{total} {noun}"
