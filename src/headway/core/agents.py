"""Agents as roles: the built-in examples, how a plan's own add to them, and what can be wrong with them.

Knows names and texts; never a model, a process or a file.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from headway.core.check import Problem, Range
from headway.core.nearest import Nearest
from headway.core.plan import Limits, Role, Transitions

COMPLETE = "complete"
"""What stands for nobody: after this, there is nothing to do."""

LIMITS = {"iterations": Range(1, 1000), "time": Range(0, open=True), "tokens": Range(1)}

BUILT_IN: Mapping[str, Role] = {
    "planner": Role(
        when="There is no plan yet, or it has to change.",
        instructions=(
            "Break the goal into artifacts that can each be made and checked alone. Say what each requires, what it "
            "produces and when it is good enough. Change nothing but the plan."
        ),
        tools=("status", "plan", "why"),
        next=Transitions(success="developer", failure="planner"),
        limits=Limits(iterations=5),
    ),
    "developer": Role(
        when="An artifact has to be made.",
        instructions="Make the artifact that you claimed, and nothing else. Keep to its contract and its acceptance.",
        next=Transitions(success="tester", failure="developer", limit="planner"),
        limits=Limits(iterations=20),
    ),
    "tester": Role(
        when="What was made has to be tried.",
        instructions="Write and run tests for what was made. A test that cannot fail is worth nothing.",
        next=Transitions(success="reviewer", failure="developer", limit="planner"),
        limits=Limits(iterations=10),
    ),
    "reviewer": Role(
        when="What was made and tested has to be judged.",
        instructions="Compare what there is with the contract and the acceptance. Approve it, or say what is missing.",
        next=Transitions(success=COMPLETE, failure="developer"),
        limits=Limits(iterations=3),
    ),
}

_NAME = re.compile(r"[a-z][a-z0-9_-]{0,63}")


def roles(*layers: Mapping[str, Role]) -> dict[str, Role]:
    """The built-in roles, with each layer's own in place of, or beside, those before it."""
    found = dict(BUILT_IN)
    for layer in layers:
        found |= layer
    return found


def check_roles(given: Mapping[str, Role], known: Mapping[str, Role] = BUILT_IN) -> Iterator[Problem]:
    """What is wrong with these roles; `known`: those that they may name besides one another."""
    names = [*given, *(name for name in known if name not in given), COMPLETE]
    near = Nearest(names)
    for name, role in given.items():
        key = f"agents.{name}"
        if not _NAME.fullmatch(name) or name == COMPLETE:
            message = f"{name!r} cannot be the name of an agent"
            yield Problem(code="plan.agent", message=message, key=key, hint="small letters, digits, - and _")
        for word in ("success", "failure", "limit"):
            target = getattr(role.next, word)
            if target and target not in names:
                message = f"agent {name} goes on with {target!r}, which is no agent"
                yield Problem(code="plan.agent", message=message, key=f"{key}.next.{word}", hint=near.hint(target))
        for word, limits in LIMITS.items():
            number = getattr(role.limits, word)
            if number is not None and (why := limits.problem(number)):
                yield Problem(code="plan.range", message=f"{key}.limits.{word} {why}", key=f"{key}.limits.{word}")
