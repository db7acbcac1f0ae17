"""Which plan the arguments of a verb mean, whatever it is written in."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Any, TypeGuard

from headway.errors import HeadwayError

if TYPE_CHECKING:  # the engine, which whoever finds nothing to do does without
    from headway.authoring import Plan
    from headway.project import Project
    from headway.work import Meant, Work


def is_python(file: str | None) -> TypeGuard[str]:
    """Whether this names a plan in Python: `plan.py`, or `plan.py:name`."""
    return file is not None and file.partition(":")[0].endswith(".py")


def work_of(args: Any, project: Project, plan: Plan | None = None) -> tuple[Work, Meant]:
    """The work on the plan that the arguments name: by goal, by file (YAML, JSON or Python), by id, or by default.

    A target with a blank in it is a goal, unless the plan that is meant otherwise has something of this name.
    `plan`: what the file has built, if it is in Python and was executed already.
    """
    from headway.work import Meant, Work

    work = Work(project)
    words: list[str] = getattr(args, "targets", [])
    if len(words) == 1 and len(words[0].split()) > 1:
        with suppress(HeadwayError):  # a goal needs no plan here, and none that can be read
            meant = _named(args, work, plan)
            if work.has(meant, words[0]):
                return work, meant
        args.targets = []
        args.plan_id = project.plan_of_goal(words[0])
        return work, Meant(args.plan_id)
    return work, _named(args, work, plan)


def _named(args: Any, work: Work, plan: Plan | None) -> Meant:
    """The plan that is named by file or id, or by default."""
    project, fresh = work.project, getattr(args, "fresh", False)
    file = args.plan or (None if args.plan_id else project.find_default_file())
    if is_python(file):
        from headway.authoring import load_plan

        known = None if fresh else project
        plan = plan or load_plan(file, project.root)
        return plan.meant(args.plan_id, project=known, check=project.check)
    return work.meant(args.plan, args.plan_id, fresh=fresh)
