"""A small book: an outline, scenes that go through eight phases, and a book. Its recipes depend on their prompts."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.workshop import Done, Workshop

PLAN = """\
id: book
goal: Write a small book
artifacts:
  outline:
    produces: outline.json
    sources: [idea.json]
    make: tasks.py:outline
  book:
    requires: ['scene:*/apply']
    produces: book.md
    make: tasks.py:book
pipelines:
  scene:
    units: {from: outline, items: 'scenes[*].id', max: 50}
    order: ORDER
    state: state.json
    templates: {system: prompts/system.md}
    phases:
      plan:
        make: tasks.py:plan
        templates: {phase: prompts/plan.md}
        outputs: {scene_card: 'work/{unit}/card.json'}
      preflight:
        make: tasks.py:preflight
        outputs: {patch: 'work/{unit}/preflight.json', snapshot: 'work/{unit}/snapshot.json'}
        requires_outputs: [patch]
        pre_state: true
      continuity_pack:
        make: tasks.py:continuity_pack
        templates: {phase: prompts/continuity_pack.md}
        outputs: {pack: 'work/{unit}/pack.md'}
        pre_state: true
      write:
        make: tasks.py:write
        templates: {phase: prompts/write.md}
        outputs: {prose: 'work/{unit}/prose.md', state_patch: 'work/{unit}/patch.json'}
        pre_state: true
      repair:
        make: tasks.py:repair
        templates: {phase: prompts/repair.md}
        outputs: {prose: 'work/{unit}/prose.md', state_patch: 'work/{unit}/patch.json'}
        pre_state: true
      state_repair:
        make: tasks.py:state_repair
        templates: {phase: prompts/state_repair.md}
        outputs: {state_patch: 'work/{unit}/patch.json'}
        pre_state: true
      lint:
        make: tasks.py:lint
        outputs: {report: 'work/{unit}/report.json'}
        pre_state: true
        repeat: [repair, state_repair, lint]
        until: 'report.status == "pass"'
        times: 3
      apply:
        make: tasks.py:apply
        outputs: {post_state: state.json, registry: registry.json}
"""
TASKS = """\
import json, os, pathlib


def note(ctx):
    with open(ctx.root / "calls.txt", "a") as file:
        file.write(f"{ctx.id}\\n")
    stop = ctx.root / "stop.txt"
    if stop.exists() and stop.read_text().strip() in (ctx.id, ctx.phase):
        raise RuntimeError("stopped here")


def outline(ctx):
    return json.loads((ctx.root / "idea.json").read_text())


def plan(ctx):
    note(ctx)
    return {"title": ctx.item["title"], "prompt": ctx.respond(ctx.prompt)}


def preflight(ctx):
    note(ctx)
    return {"patch": {}}


def continuity_pack(ctx):
    note(ctx)
    return f"before: {ctx.state.read_text()}\\n"


def write(ctx):
    note(ctx)
    card = ctx.inputs["plan"].json()
    return {"prose": f"{card['title']}: {ctx.prompt}", "state_patch": {"unit": ctx.unit, "by": ctx.prompts["phase"]}}


def repair(ctx):
    note(ctx)
    return {"prose": ctx.inputs["write"]["prose"] + ctx.prompts["phase"] * ctx.iteration,
            "state_patch": json.loads(ctx.inputs["write"]["state_patch"])}


def state_repair(ctx):
    note(ctx)
    patch = json.loads(ctx.paths["state_patch"].read_text())
    return {"state_patch": {**patch, "words": len(ctx.inputs["repair"]["prose"].split())}}


def lint(ctx):
    note(ctx)
    needed = json.loads((ctx.root / "needed.json").read_text()).get(ctx.unit, 1)
    fine = ctx.iteration >= needed
    return {"status": "pass" if fine else "fail", "words": len(ctx.inputs["repair"]["prose"].split()),
            "patch": json.loads(ctx.inputs["state_repair"]["state_patch"])}


def apply(ctx):
    note(ctx)
    state = json.loads(ctx.state.read_text())
    patch = json.loads(ctx.inputs["state_repair"]["state_patch"])
    state["applied"].append(ctx.unit)
    state["words"] += patch["words"]
    return {"post_state": state, "registry": {"last": ctx.unit}}


def book(ctx):
    units = ctx.inputs["scene:*/apply"].json()
    return "".join((ctx.root / f"work/{unit}/prose.md").read_text() for unit in units)
"""


class Book(Workshop):
    """The book's project; `run` is a command line in this process."""

    def __init__(
        self, root: Path, capsys: pytest.CaptureFixture[str], units: int = 2, order: str = "sequential"
    ) -> None:
        super().__init__(root)
        self._capsys = capsys
        self.file.write_text(PLAN.replace("ORDER", order), encoding="utf-8")
        (root / "tasks.py").write_text(TASKS)
        (root / "prompts").mkdir()
        for name in ("plan", "continuity_pack", "write", "repair", "state_repair"):
            self.prompt(name, f"{name} {{{{ unit }}}}")
        self.prompt("system", "You write.")
        self.outline(units)
        self.needs()
        (root / "state.json").write_text('{"applied": [], "words": 0}')

    def prompt(self, name: str, text: str) -> None:
        (self.root / f"prompts/{name}.md").write_text(f"{text}\n")

    def outline(self, units: int | list[Any]) -> None:
        """What the outline will say."""
        names = [f"s{n}" for n in range(1, units + 1)] if isinstance(units, int) else units
        scenes = [n if isinstance(n, dict) else {"id": n, "title": f"Scene {n}"} for n in names]
        (self.root / "idea.json").write_text(json.dumps({"scenes": scenes}))

    def needs(self, **rounds: int) -> None:
        """How often each unit's loop has to be gone round."""
        (self.root / "needed.json").write_text(json.dumps(rounds))

    def stop_at(self, where: str) -> None:
        """From here on this artifact or phase fails; "" for none."""
        (self.root / "stop.txt").write_text(where)

    def do(self, *words: str) -> Done:  # type: ignore[override]  # here a verb, and not a command of the core
        """A command line."""
        return super().run(self._capsys, *words)

    def go(self, *words: str) -> dict[str, Any]:
        """`headway run`, as its document."""
        found: dict[str, Any] = self.do("run", "--json", *words).json
        return found

    def calls(self) -> list[str]:
        """What recipes were called since this was last asked."""
        path = self.root / "calls.txt"
        found = path.read_text().splitlines() if path.exists() else []
        path.unlink(missing_ok=True)
        return found

    def read(self, path: str) -> str:
        return (self.root / path).read_text()

    def json(self, path: str) -> Any:
        return json.loads(self.read(path))
