"""The keys of a plan file: one table from which the parser reads and the JSON Schema is made.

Knows names, kinds and descriptions; never a file. Numbers have their ranges from core/check.py.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Literal, NamedTuple, get_args

from headway.core import paths
from headway.core.check import RANGES
from headway.core.plan import GateKind, OnEdit, Order, PromptChanges

SIZE = r"^[0-9]+(\.[0-9]+)? ?([KMGT]i?B|B)?$"
Kind = Literal[
    "text",
    "version",
    "list",
    "mapping",
    "integer",
    "number",
    "size",
    "flag",
    "choice",
    "section",
    "gates",
    "artifacts",
    "texts",
    "templates",
    "units",
    "overrides",
    "phases",
    "pipelines",
    "roles",
]


def in_order(items: Iterable[str]) -> tuple[str, ...]:
    """As written."""
    return tuple(items)


def sorted_once(items: Iterable[str]) -> tuple[str, ...]:
    """Each once, in alphabetical order."""
    return tuple(sorted(set(items)))


def normalised(items: Iterable[str]) -> tuple[str, ...]:
    """Paths in their one spelling."""
    return tuple(map(paths.normalise, items))


class Key(NamedTuple):
    """One key: the kind of its value, what it means, and what it is called in the plan if not the same."""

    kind: Kind
    description: str
    items: str = "texts"
    tidy: Callable[[Iterable[str]], tuple[str, ...]] = in_order
    choices: tuple[str, ...] = ()
    keys: Mapping[str, Key] = {}
    field: str = ""

    @property
    def expects(self) -> str:
        """What a value must be, for messages."""
        words = {
            "list": f"a list of {self.items}",
            "mapping": "a mapping",
            "integer": "a whole number",
            "number": "a number",
            "size": "a size such as 256MiB, or a number of bytes",
            "flag": "true or false",
            "choice": " or ".join(self.choices),
            "section": f"a mapping of {', '.join(self.keys)}",
            "gates": "a mapping of names to gates",
            "roles": "a mapping of names to agents",
            "artifacts": "a mapping of ids to artifacts, or a list of artifacts with ids",
            "texts": f"a mapping of names to {self.items}",
            "templates": "the path of a template, or a mapping of roles to paths",
            "units": "a list of names, or a mapping of files, or of from, items and max",
            "overrides": "a mapping of units (or *) to phases (or *) to roles to paths",
            "phases": "a mapping of names to phases",
            "pipelines": "a mapping of names to pipelines",
        }
        return words.get(self.kind, "text")


Table = Mapping[str, Key]

RETRY_KEYS: Table = {
    "attempts": Key("integer", "How often the recipe is tried in all (1)."),
    "backoff": Key("number", "Seconds to wait before the second attempt (1); doubled after each."),
}
PROFILE_KEYS: Table = {
    "parallelization_enabled": Key(
        "flag", "Whether artifacts may be made at the same time; false (the default) means one."
    ),
    "max_concurrent_tasks": Key("integer", "How many artifacts may be made at the same time, if enabled (1)."),
    "council_parallel": Key("flag", "Whether reviewers may work at the same time."),
    "locked": Key("flag", "Whether the profile can no longer be changed."),
}
REPLAN_KEYS: Table = {
    "planner": Key("text", "The Python function that is asked for a better plan: module:function or file.py:function."),
    "most": Key("integer", "How many new versions there may be before the plan counts as failed (2)."),
}
GATE_KEYS: Table = {
    "kind": Key(
        "choice",
        "What passes it: a command (the default where there is a run), the word of one (the default), of a quorum, or "
        "headway approve.",
        choices=get_args(GateKind),
    ),
    "run": Key("text", "The command of a check; placeholders as in verify."),
    "by": Key("list", "Whose word counts; without any, anybody's.", "names"),
    "quorum": Key("integer", "How many of them must approve; of a council the majority, otherwise one."),
}
LIMIT_KEYS: Table = {
    "iterations": Key("integer", "How many attempts at one artifact."),
    "time": Key("number", "How many seconds at one artifact."),
    "tokens": Key("integer", "How many tokens at one artifact."),
}
NEXT_KEYS: Table = {
    "success": Key("text", "Who goes on when it worked; complete for nobody."),
    "failure": Key("text", "Who goes on when it did not; without it, the agent itself."),
    "limit": Key("text", "Who goes on when a limit is reached."),
}
ROLE_KEYS: Table = {
    "when": Key("text", "When to use it."),
    "instructions": Key("text", "What it is told."),
    "tools": Key("list", "The tools it may use; without any, all.", "names"),
    "commands": Key("list", "Beginnings of the commands it may run; without any, all."),
    "next": Key("section", "Who goes on after it.", keys=NEXT_KEYS),
    "limits": Key("section", "Where it stops.", keys=LIMIT_KEYS),
}
_RETRY = Key("section", "How often a failing recipe is tried, and how long to wait in between.", keys=RETRY_KEYS)
_TIMEOUT = Key("number", "Seconds after which an attempt is ended; without it, never.")
_ENV = Key("list", "Names of environment variables whose values belong to the recipe.", "names of variables")
_ON_EDIT = Key(
    "choice",
    "What happens to an output that a person changed: it is held back and asked about (the default), counts as the "
    "output, or is set aside.",
    choices=get_args(OnEdit),
)
_COMPLEXITY = Key("integer", "How hard it is; it decides nothing.")
_TAGS = Key("list", "Words to find it by.")
_CONSTRAINTS = Key("list", "What must hold whatever is done.")

INTEGRATES_KEYS: Table = {
    "call": Key("list", "What it calls: artifacts, or names of things outside.", "names"),
    "route": Key("list", "What it sends requests to, or takes them from.", "names"),
    "config": Key("list", "What it takes its configuration from.", "names"),
    "import": Key("list", "What it imports, where that cannot be read from Python sources.", "names"),
}

ARTIFACT_KEYS: Table = {
    "description": Key("text", "What it is, in a sentence."),
    "contract": Key("text", "What it promises to those that require it."),
    "requires": Key(
        "list",
        "Ids of artifacts that must be complete before it; another plan's as plan:id, a project's as ../way:plan:id.",
        "ids",
        sorted_once,
    ),
    "produces": Key(
        "list", "Paths it makes: files, or a folder/; without any, its output is text.", "paths", normalised
    ),
    "produces_file": Key("list", "RFC-040's name for produces.", "paths", normalised, field="produces"),
    "modifies": Key("list", "Paths it changes in place, besides others that may do so too.", "paths", normalised),
    "sources": Key("list", "Files outside the plan that it reads, as paths or patterns.", "paths"),
    "run": Key("text", "The command that makes it, run by /bin/sh -e in the project."),
    "make": Key("text", "The Python function that makes it: module:function or path/to/file.py:function."),
    "args": Key("mapping", "Arguments of that function, by name."),
    "env": _ENV,
    "version": Key("version", "Stands in for the code of the function: change it to have the artifact made again."),
    "verify": Key("text", "A command that must succeed before the artifact counts as complete."),
    "instructions": Key("text", "What whoever makes it should know."),
    "acceptance": Key("list", "What must be true of the result."),
    "milestone": Key("text", "The group of artifacts it belongs to."),
    "agent": Key("text", "Who should make it."),
    "retry": _RETRY,
    "timeout": _TIMEOUT,
    "effects": Key(
        "choice",
        "It changes the world outside the project: it is never reused and, once interrupted, made again only with its "
        "idempotency key or by somebody's word.",
        choices=("external",),
    ),
    "on_edit": _ON_EDIT,
    "integrates": Key(
        "section", "How it is tied to others, besides what it requires: for the history.", keys=INTEGRATES_KEYS
    ),
    "domain_type": Key("text", "What sort of thing it is, such as protocol, model or service."),
    "complexity": _COMPLEXITY,
    "tags": _TAGS,
    "constraints": _CONSTRAINTS,
    "files": Key("list", "Files that it is about.", "paths"),
    "gates": Key("gates", "Named checks that it must pass before it counts as complete.", keys=GATE_KEYS),
    "metadata": Key("mapping", "Anything else worth keeping; it decides nothing."),
    "templates": Key("templates", "Templates of its prompt, by role: {system: path, phase: path}."),
}
ID = Key("text", "What it is called.")
LISTED_ARTIFACT_KEYS: Table = {"id": ID, **ARTIFACT_KEYS}
PHASE_KEYS: Table = {
    **{name: key for name, key in ARTIFACT_KEYS.items() if name not in ("produces", "produces_file", "modifies")},
    "outputs": Key("texts", "What it writes, by name; {unit} stands for the unit.", "paths"),
    "requires": Key("list", "Ids of artifacts that it needs besides the phases before it.", "ids", sorted_once),
    "requires_outputs": Key("list", "Names of the outputs that it must write; without this, all of them.", "names"),
    "inputs": Key("list", "Names of the phases that it reads; without this, all before it.", "names"),
    "pre_state": Key("flag", "Whether it reads the state as the unit before left it."),
    "repeat": Key("list", "Phases that are made again, this one last, until it is satisfied.", "names"),
    "until": Key("text", 'When it is satisfied with what it wrote, such as report.status == "pass".'),
    "times": Key("integer", "How often the loop is gone round at most (3)."),
}
UNITS_KEYS: Table = {
    "names": Key("list", "The units by name.", "names"),
    "files": Key("text", "A pattern: every file that it matches is a unit."),
    "from": Key("text", "The artifact whose JSON names the units.", field="source"),
    "items": Key("text", "Where in it the names are, such as scenes[*].id."),
    "max": Key("integer", "How many units there may be at most."),
}
PIPELINE_KEYS: Table = {
    "units": Key("units", "What goes through it: names, files, or items of an artifact.", keys=UNITS_KEYS),
    "order": Key(
        "choice", "Whether a unit waits for the one before it, or not (the default).", choices=get_args(Order)
    ),
    "state": Key("text", "A file that phases change in place, unit after unit."),
    "templates": Key("templates", "Templates of every phase that has templates, by role."),
    "overrides": Key("overrides", "Other templates for some units or phases: {unit: {phase: {role: path}}}."),
    "phases": Key("phases", "What happens to each unit, in order.", keys=PHASE_KEYS),
}
SETTINGS_KEYS: Table = {
    "vars": Key(
        "mapping", "Values for {vars.x} in commands; --set x=…, read as here, replaces one until the file changes it."
    ),
    "env": _ENV,
    "jobs": Key("integer", "How many artifacts are made at the same time unless -j says otherwise (one per core)."),
    "retry": _RETRY,
    "timeout": _TIMEOUT,
    "on_edit": _ON_EDIT,
    "complexity": _COMPLEXITY,
    "tags": _TAGS,
    "constraints": _CONSTRAINTS,
    "approval": Key("choice", "Somebody must approve the plan before it is made.", choices=("required",)),
    "replan": Key("section", "What happens when artifacts fail for good.", keys=REPLAN_KEYS),
    "pipelines": Key("pipelines", "Chains of phases that many units go through.", keys=PIPELINE_KEYS),
    "prompt_changes": Key(
        "choice",
        "A prompt that changed before all was made: it is asked about (the default), taken as any other change, or "
        "refused until an option answers, also when all was made.",
        choices=get_args(PromptChanges),
    ),
    "agents": Key("roles", "Agents as roles: when to use them, what they may do, who is next.", keys=ROLE_KEYS),
    "notify": Key("list", "Commands that are run when a run ends or pauses.", "commands"),
    "metadata": Key("mapping", "Anything else worth keeping; it decides nothing."),
    "informed_by": Key("list", "What the plan was drawn from: memories, documents, earlier plans."),
    "planned_by": Key("text", "The model that made this plan; run asks before it makes it for the first time."),
    "confirm_above": Key("number", "US dollars: run asks before it starts what is estimated to cost more (1)."),
    "store_up_to": Key(
        "size",
        "Outputs above this size are hashed, not stored (256MiB): once lost, they are made. What is changed in place "
        "or accepted is stored.",
    ),
}
PLAN_KEYS: Table = {
    "id": Key("text", "What the plan is called; without it, the goal names the plan."),
    "goal": Key("text", "What should exist, in words."),
    "profile": Key("section", "The lockable record of the plan's concurrency.", keys=PROFILE_KEYS),
    "artifacts": Key("artifacts", "What should exist, each artifact under its id."),
    **SETTINGS_KEYS,
}

_TYPES: Mapping[Kind, dict[str, Any]] = {
    "text": {"type": "string"},
    "version": {"type": ["string", "number"]},
    "list": {"type": ["string", "array"], "items": {"type": "string"}},
    "mapping": {"type": "object"},
    "integer": {"type": "integer"},
    "number": {"type": "number"},
    "size": {"type": ["string", "integer"], "pattern": SIZE},
    "flag": {"type": "boolean"},
    "texts": {"type": "object", "additionalProperties": {"type": "string"}},
    "templates": {"type": ["string", "object"], "additionalProperties": {"type": "string"}},
    "overrides": {
        "type": "object",
        "additionalProperties": {
            "type": "object",
            "additionalProperties": {"type": "object", "additionalProperties": {"type": "string"}},
        },
    },
}


def plan_schema() -> dict[str, Any]:
    """The JSON Schema (2020-12) of a plan file, for editors."""
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "Headway plan",
        "description": "What should exist for a goal: a graph of artifacts.",
        **_object(PLAN_KEYS, required=["goal"]),
        "$defs": {
            "artifact": {
                "description": "One artifact: what it is, what it requires, and how it is made.",
                **_object(ARTIFACT_KEYS),
                "type": ["object", "null"],
            },
            "listed_artifact": {
                "description": "One artifact of a list, with its id.",
                **_object(LISTED_ARTIFACT_KEYS, required=["id"]),
            },
            "phase": {
                "description": "One phase of a pipeline: how it is made for each unit.",
                **_object(PHASE_KEYS, within="phases."),
            },
        },
    }


def _object(table: Table, *, required: Iterable[str] = (), within: str = "") -> dict[str, Any]:
    needed = {"required": list(required)} if required else {}
    properties = {name: _property(key, within + name) for name, key in table.items()}
    return {"type": "object", "properties": properties, **needed, "additionalProperties": False}


def _property(key: Key, name: str) -> dict[str, Any]:
    described = {"description": key.description}
    if key.kind == "section":
        return described | _object(key.keys, within=f"{name}.")
    if key.kind == "gates":
        return described | {"type": "object", "additionalProperties": _object(key.keys, within="gates.")}
    if key.kind == "phases":
        return described | {"type": "object", "additionalProperties": {"$ref": "#/$defs/phase"}}
    if key.kind == "pipelines":
        return described | {"type": "object", "additionalProperties": _object(key.keys, required=["phases", "units"])}
    if key.kind == "units":
        listed = {"type": "array", "items": {"type": "string"}}
        return described | {"anyOf": [listed, _object(key.keys, within="units.")]}
    if key.kind == "roles":
        return described | {"type": "object", "additionalProperties": _object(key.keys, within="agents.")}
    if key.kind == "choice":
        return described | {"enum": list(key.choices)}
    if key.kind == "artifacts":
        return described | _artifacts()
    return described | _TYPES[key.kind] | _limits(name)


def _artifacts() -> dict[str, Any]:
    by_id = {"type": "object", "additionalProperties": {"$ref": "#/$defs/artifact"}}
    listed = {"type": "array", "items": {"$ref": "#/$defs/listed_artifact"}}
    return {"anyOf": [by_id, listed]}


def _limits(name: str) -> dict[str, Any]:
    limits = RANGES.get(name)
    if limits is None:
        return {}
    low = {"exclusiveMinimum" if limits.open else "minimum": limits.low}
    return low if limits.high is None else low | {"maximum": limits.high}
