"""Which function makes an artifact: one that a program has for it, or one that is imported from the project."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from headway.core.plan import ArtifactSpec
from headway.errors import UsageError

Function = Callable[..., Any]

LIVE = "live:"
"""Marks a function that has no file of the project: only the program that defines it can run it."""

WHERE = "python FILE, headway run --plan FILE, or plan.run() in the session"
"""How to run a plan where its functions are."""


def is_live(spec: ArtifactSpec) -> bool:
    """Whether it is made by a function that no file of the project names: of a session, a notebook, or a lambda."""
    return spec.make.startswith(LIVE)


def function_of(functions: Mapping[str, Function], spec: ArtifactSpec) -> Function | None:
    """The function that a program has for an artifact: its own, or that of its pipeline's phase."""
    found = functions.get(spec.id)
    return found if found is not None or not spec.phase else functions.get(f"{spec.pipeline}:{spec.phase}")


def loader(root: str, functions: Mapping[str, Function] | None) -> Callable[[ArtifactSpec], Function]:
    """What finds the functions of artifacts: those of a program, or else the project's, each imported once."""
    given = functions or {}
    loaded: dict[str, Function] = {}

    def load(spec: ArtifactSpec) -> Function:
        own = function_of(given, spec)
        if own is not None:
            return own
        if is_live(spec):
            raise _elsewhere(spec)
        if spec.make not in loaded:
            from headway.engine.recipes.function import load_function

            loaded[spec.make] = load_function(root, spec.make, spec.id)
        return loaded[spec.make]

    return load


def _elsewhere(spec: ArtifactSpec) -> UsageError:
    return UsageError(
        f"{spec.id} is made by a function of a Python program or session, and no file says how",
        facts={"function": spec.make.partition(":")[2]},
        hint=f"run the plan where the function is: {WHERE}",
        code="recipe.elsewhere",
    )
