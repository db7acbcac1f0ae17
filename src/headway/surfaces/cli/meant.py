"""Which plan the arguments of a verb mean, whatever it is written in."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeGuard

if TYPE_CHECKING:  # the engine, which whoever finds nothing to do does without
    from headway.authoring import Plan
    from headway.project import Project
    from headway.work import Meant, Work


def is_python(file: str | None) -> TypeGuard[str]:
    """Whether this names a plan in Python: `plan.py`, or `plan.py:name`."""
    return file is not None and file.partition(":")[0].endswith(".py")


def work_of(args: Any, project: Project, plan: Plan | None = None) -> tuple[Work, Meant]:
    """The work on the plan that the arguments name: by goal, by file (YAML, JSON or Python), by id, or by default.

    `plan`: what the file has built, if it is in Python and was executed already.
    """
    from headway.work import Meant, Work

    work, fresh = Work(project), getattr(args, "fresh", False)
    words: list[str] = getattr(args, "targets", [])
    if len(words) == 1 and len(words[0].split()) > 1:
        args.targets = []
        args.plan_id = project.plan_of_goal(words[0])
        return work, Meant(args.plan_id)
    file = args.plan or (None if args.plan_id else project.find_default_file())
    if is_python(file):
        from headway.authoring import load_plan

        known = None if fresh else project
        plan = plan or load_plan(file, project.root)
        return work, plan.meant(args.plan_id, project=known, check=project.check)
    return work, work.meant(args.plan, args.plan_id, fresh=fresh)
