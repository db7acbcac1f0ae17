"""A recipe that is told quickly is told as it is by those who take their time."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from headway.core.plan import ArtifactSpec, Settings
from headway.core.state import State
from headway.engine.digests import Digests
from headway.engine.judge import Judge
from headway.engine.precedents import Precedents
from headway.files.blobs import Blobs
from headway.files.cache import Cache
from headway.files.observe import Observer
from headway.files.outputs import Outputs
from headway.store import PlanStore

TASKS = """
def plain():
    return "text"


def reads(ctx):
    return ctx.vars["tone"]
"""
ODD: dict[str, dict[str, Any]] = {
    "plain": {},
    "with arguments": {"args": {"n": 1}},
    "with a variable of the environment": {"env": ("HOME",)},
    "with a version": {"version": "3"},
    "with templates": {"templates": {"phase": "prompt.md"}},
    "with names of outputs": {"outputs": {"text": "out.txt"}},
    "a phase with an item that is nothing": {"phase": "write", "unit": "u", "pipeline": "p", "item": 0},
    "of code that is not there": {"make": "tasks:absent"},
    "of a session that is gone": {"make": "live:gone"},
    "by command": {"make": "", "run": "true"},
    "by nobody": {"make": ""},
}


def digests(root: Path, settings: Settings, functions: dict[str, Any]) -> Digests:
    """What tells the recipes of a plan with these settings."""
    store = PlanStore(str(root / ".headway/plans"))
    outputs = Outputs(str(root), Blobs(str(root / ".headway/blobs")), Observer(str(root)))
    precedents = Precedents(store, Cache(str(root / "cache.sqlite")), writable=False)
    state = State(plan_id="p", project_id="x", goal="g", settings=settings)
    judge = Judge(
        state, root=str(root), outputs=outputs, precedents=precedents, environ={"HOME": "/"}, functions=functions
    )
    return judge.digests


@pytest.mark.parametrize("keys", ODD.values(), ids=ODD)
@pytest.mark.parametrize("artifact_id", ["a", "é", "long" * 100])
@pytest.mark.parametrize("function", ["plain", "reads"])
@pytest.mark.parametrize(
    "settings", [Settings(), Settings(vars={"tone": "dry"}), Settings(env=("HOME",))], ids=["bare", "vars", "env"]
)
@pytest.mark.parametrize("has_own", [False, True], ids=["of the project", "of a program"])
def test_a_recipe_is_told_alike_quickly_and_with_care(
    tmp_path: Path, keys: dict[str, Any], artifact_id: str, function: str, settings: Settings, has_own: bool
) -> None:
    """Whatever counts besides the code is found to count."""
    (tmp_path / "tasks.py").write_text(TASKS)
    spec = replace(ArtifactSpec(id=artifact_id, make=f"tasks:{function}"), **keys)
    functions = {artifact_id: test_a_recipe_is_told_alike_quickly_and_with_care} if has_own and spec.make else {}
    told = digests(tmp_path, settings, functions)
    quickly = told._plain_codes([spec])
    _, (recipe,) = told.of_functions([spec])
    assert recipe == told._digest_recipe(spec)
    if not keys and not settings.env and not settings.vars:
        assert quickly, "and most are told quickly"
