"""The plans of this project.

headway plans new FILE      save a plan file, or take in what changed in it
headway plans list          all plans, newest first
headway plans show          one plan: its artifacts, their order, how far it is
headway plans edit          add, set, move or remove artifacts, with a reason
headway plans diff          what changed in a plan, from one version to another, or between two plans
headway plans template      a saved plan as a plan file, to begin another with
headway plans clean         delete plans that are finished, old and nobody's file any more
headway plans close         put a plan away
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import Any

from headway.core.difference import compare_plans
from headway.core.lifecycle import progress, statuses
from headway.core.plan import ArtifactSpec
from headway.core.state import State
from headway.errors import NotFound
from headway.project import Project, Saved
from headway.projections.saved_execution import SavedExecution
from headway.projections.story import count, moment, sentence
from headway.store import Listed
from headway.surfaces.cli import edits
from headway.surfaces.cli.options import add_at, add_json, add_plan, add_project, at_least, plan_of, project_of
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
    show.add_argument("--approved", action="store_true", help="what was approved, and how the plan differs from it now")
    edits.configure(verbs.add_parser("edit", help="add, set, move or remove artifacts, with a reason"))
    _configure_more(verbs)
    close = verbs.add_parser("close", help="put a plan away; headway reset --all opens it again")
    close.add_argument("id", metavar="ID", nargs="?", help="a plan id")
    close.add_argument("--reason", metavar="TEXT", default="", help="why, for the record")
    add_plan(close)
    add_json(close)


def _configure_more(verbs: Any) -> None:
    diff = verbs.add_parser("diff", help="what changed in a plan: its newest version against the one before")
    diff.add_argument("id", metavar="ID", nargs="?", help="a plan id")
    diff.add_argument("other", metavar="OTHER", nargs="?", help="another plan to compare it with")
    diff.add_argument("--from", dest="since", type=at_least(1), metavar="N", help="from this version")
    diff.add_argument("--to", type=at_least(1), metavar="N", help="to this version (default: as it is now)")
    add_plan(diff)
    add_at(diff)
    add_json(diff)
    template = verbs.add_parser("template", help="a saved plan as a plan file")
    template.add_argument("id", metavar="ID", nargs="?", help="a plan id")
    template.add_argument("--goal", metavar="TEXT", help="the goal of the new plan")
    template.add_argument(
        "--id", dest="new_id", metavar="NEW", default="", help="the id of the new plan (default: none)"
    )
    add_plan(template)
    add_at(template)
    add_json(template)
    clean = verbs.add_parser("clean", help="delete plans that are complete or closed, old, and in no plan file")
    clean.add_argument("--days", type=at_least(0, float), default=7.0, metavar="N", help="not touched for N days (7)")
    clean.add_argument("-n", "--dry-run", action="store_true", help="only say which")
    add_project(clean)
    add_json(clean)


def run(args: Any, screen: Screen) -> int:
    actions = {
        "new": _new,
        "list": _list,
        "show": _show,
        "edit": edits.run,
        "diff": _diff,
        "template": _template,
        "clean": _clean,
        "close": _close,
    }
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
    again = f"headway plans new {args.file or ''}".rstrip()
    screen.note(f"It is saved as a draft and does not run. Correct the file, then: {again}")
    return 2


def _taken_in(path: str, args: Any, project: Project) -> Saved:
    take = args.take or ""
    if not path.partition(":")[0].endswith(".py"):
        return project.save_plan(path, plan_id=args.plan_id, take=take)
    from headway.authoring import load_plan

    meant = load_plan(path, project.root).meant(args.plan_id, check=project.check)
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
    when = moment(entry.execution.updated_at)
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
    if args.approved:
        return _approved(project, plan_of(args, project), screen)
    execution = project.show(plan_of(args, project), at=args.at)
    problems = project.problems(execution)
    if screen.as_json:
        screen.answer({**execution.to_dict(), "problems": [problem.to_dict() for problem in problems]})
        return 0
    _describe(execution, screen)
    _warn(problems, screen)
    return 0


def _approved(project: Project, plan_id: str, screen: Screen) -> int:
    """What was approved, next to what is; exit 75 while an approval is awaited."""
    from headway.planning import Planning

    found = Planning(project).approved(plan_id)
    screen.answer(found)
    approval, changes = found["approval"], found["changes"]
    if approval is None:
        screen.say(f"Plan {plan_id} was never approved. Its hash is {found['hash']}.")
    else:
        screen.say(f"Approved by {approval['by']} at {approval['at']}: {approval['payload_hash']}")
        screen.say(f"Now:      {found['hash']}" + ("" if found["drift_detected"] else ", the same"))
    if found["rejected"]:
        screen.say(f"Rejected by {found['rejected']['by']}: {found['rejected']['reason']}")
    for word in ("added", "removed"):
        for artifact_id in changes[word] if changes else ():
            screen.say(f"  {word} {artifact_id}")
    for artifact_id, fields in {**changes["modified"], "the plan": changes["settings"]}.items() if changes else ():
        for field in fields:
            was, now = (_short(str(field[word])) or "nothing" for word in ("was", "now"))
            screen.say(f"  {artifact_id}: {field['key']} was {was}, is {now}")
    if found["drift_detected"] is True and changes is None:
        screen.say("What was approved is not in this ledger, so what changed is unknown.")
    if found["awaits_approval"]:
        screen.say(f"Next: headway approve --hash {found['hash'][:16]} --plan-id {plan_id}")
    return 75 if found["awaits_approval"] else 0


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


# Diff.


def _diff(args: Any, screen: Screen) -> int:
    from headway.surfaces.cli.preview import say_difference

    project = project_of(args, screen)
    plan_id = plan_of(args, project)
    if args.other:
        before, after = project.show(plan_id, at=args.at), project.show(args.other)
        names = plan_id, args.other
    else:
        before, after, names = _versions(project, plan_id, args)
    if names[0] == names[1]:
        screen.answer({"plan_id": plan_id, "from": None, "to": names[1]})
        screen.say(f"Plan {plan_id} has one version only: nothing to compare it with.")
        return 0
    found = compare_plans(before.proposal, after.proposal)
    screen.answer({"plan_id": plan_id, "from": names[0], "to": names[1], **found.to_dict()})
    if not found:
        screen.say(f"{names[0]} and {names[1]} are the same plan.")
        return 0
    screen.say(screen.style(f"{names[0]} → {names[1]}", "bold"))
    say_difference(found, screen)
    return 0


def _versions(project: Project, plan_id: str, args: Any) -> tuple[SavedExecution, SavedExecution, tuple[str, str]]:
    """The two versions of a plan that are meant: the newest and the one before, unless the arguments say otherwise."""
    versions = {version.version: version for version in project.versions(plan_id)}
    newest = max(versions)
    to = args.to or newest
    since = args.since or max(to - 1, 1)
    for number in (since, to):
        if number not in versions:
            raise NotFound(
                f"Plan {plan_id} has no version {number}",
                facts={"versions": f"1 to {newest}"},
                hint=f"headway plans diff {plan_id} --from {max(newest - 1, 1)}",
                code="version.none",
            )
    after = project.show(plan_id, at=versions[to].seq) if args.to else project.show(plan_id)
    if args.at is not None:
        return project.show(plan_id, at=args.at), after, (f"event {args.at}", f"version {to}")
    before = project.show(plan_id, at=versions[since].seq)
    return before, after, (f"version {since}", f"version {to}")


# Template.


def _template(args: Any, screen: Screen) -> int:
    from headway.files.plan_writer import write_plan

    project = project_of(args, screen)
    plan = project.show(plan_of(args, project), at=args.at).proposal
    text = write_plan(plan, goal=args.goal or plan.goal, plan_id=args.new_id)
    screen.answer({"plan_id": plan.id, "template": text})
    screen.say(text.rstrip("\n"))
    return 0


# Clean.


def _clean(args: Any, screen: Screen) -> int:
    found = project_of(args, screen).clean(days=args.days, dry_run=args.dry_run)
    screen.answer({"deleted" if not args.dry_run else "would_delete": found})
    verb = "Would delete" if args.dry_run else "Deleted"
    names = ", ".join(found)
    screen.say(f"{verb} {count(len(found), 'plan')}: {names}" if found else "No plan is finished, old and in no file.")
    if found and args.dry_run:
        screen.say(f"Next: headway plans clean --days {args.days:g}. Their ledgers go; files and blobs stay until gc.")
    return 0


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
