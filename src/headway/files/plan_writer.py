"""A plan as a plan file: what plan_reader would read back as the same plan. Knows keys; never where the file goes."""

from __future__ import annotations

from typing import Any

import msgspec

from headway.core.plan import Pipeline, PlanSpec

SEQUENCE = "tag:yaml.org,2002:seq"
LIVE = "live:"
"""Marks a recipe that only a Python program has."""


def write_plan(plan: PlanSpec, *, goal: str, plan_id: str = "") -> str:
    """The plan as YAML, under another id and goal. A function that only a program has is left out, and said so."""
    head: dict[str, Any] = {"id": plan_id} if plan_id else {}
    head["goal"] = goal
    head |= _plain(plan.settings)
    if plan.settings.pipelines:
        head["pipelines"] = {pipeline.name: _pipeline(pipeline) for pipeline in plan.settings.pipelines}
    if plan.profile is not None:
        head["profile"] = {key: value for key, value in _plain(plan.profile).items() if key != "locked"}
    phases = [(f"{p.name}:{phase.id}", phase) for p in plan.settings.pipelines for phase in p.phases]
    made = [*((spec.id, spec) for spec in plan.artifacts), *phases]
    lost = [name for name, spec in made if spec.make.startswith(LIVE)]
    head["artifacts"] = {spec.id: _artifact(_plain(spec)) for spec in plan.artifacts}
    text = _dump(head)
    note = f"# Made by functions of a program, so without a recipe here: {', '.join(lost)}\n" if lost else ""
    return note + text


def _dump(document: dict[str, Any]) -> str:
    """Mappings one key a line, lists in one line, texts of several lines as they must be."""
    import yaml

    class Dumper(yaml.SafeDumper):
        pass

    for kind in (list, tuple):
        Dumper.add_representer(kind, lambda d, items: d.represent_sequence(SEQUENCE, items, flow_style=True))
    text: str = yaml.dump(document, Dumper=Dumper, sort_keys=False, allow_unicode=True, width=110)
    return text


def _plain(value: Any) -> dict[str, Any]:
    """What differs from its default, in the types of YAML."""
    found: dict[str, Any] = msgspec.to_builtins(value)
    return found


def _pipeline(pipeline: Pipeline) -> dict[str, Any]:
    """Under its name, as is each of its phases; units that are only named are a list."""
    keys = {key: value for key, value in _plain(pipeline).items() if key != "name"}
    if list(keys.get("units", ())) == ["names"]:
        keys["units"] = keys["units"]["names"]
    keys["phases"] = {phase.id: _artifact(_plain(phase)) or {} for phase in pipeline.phases}
    return keys


def _artifact(spec: dict[str, Any]) -> dict[str, Any] | None:
    keys = {key: value for key, value in spec.items() if key != "id"}
    if str(keys.get("make", "")).startswith(LIVE):
        keys.pop("make")
        keys.pop("args", None)
    for key in ("produces", "requires", "sources"):
        if key in keys and len(keys[key]) == 1:
            keys[key] = keys[key][0]
    if "gates" in keys:
        keys["gates"] = {gate["name"]: _gate(gate) for gate in keys["gates"]}
    return keys or None


def _gate(gate: dict[str, Any]) -> dict[str, Any]:
    """Under its name; with a command it would be read as a check, whatever it is."""
    said = {"kind": "review", **gate} if "run" in gate else gate
    return {key: value for key, value in said.items() if key != "name"}
