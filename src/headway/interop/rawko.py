"""Plans as SPEC-0010 keeps them: `current-task.yaml` and `plans/<id>.yaml`, read and written without loss.

What that form has no place for stands under `headway:`; what Headway has no place for is kept as metadata, and written
again as long as the step is what it was. A file that somebody changed counts as it is now.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple, cast

import msgspec
import yaml

from headway.core.check import check_plan
from headway.core.codec import START
from headway.core.fingerprint import content_of, recipe_digest, spec_digest
from headway.core.ids import plan_id_problem
from headway.core.lifecycle import recorded_status
from headway.core.plan import ArtifactSpec, Settings
from headway.core.state import Completion, Failure, Fingerprint, PlanStatus, Position, Skip, State
from headway.disk import Disk, make_folders, write_file
from headway.errors import DecisionNeeded, UsageError
from headway.files.given import read_given
from headway.projections.saved_execution import SavedExecution

NAME = "rawko"
TASK = "current-task.yaml"
PLANS = "plans"
LARGEST = 64 * 1024 * 1024

_PLAN_STATUS = {"draft", "in_progress", "complete", "failed", "replanning"}
_STEP_STATUS = {"pending", "in_progress", "complete", "failed", "skipped"}
_METADATA = {
    "complexity": "complexity",
    "tags": "tags",
    "constraints": "constraints",
    "informedByMemories": "informed_by",
}
_CLOCK = ("updatedAt",)
"""What follows from the clock alone, and so does not tell whether somebody changed a plan."""


class Task(NamedTuple):
    """What is being worked on."""

    task: str
    plan_id: str
    status: str


# Writing.


def write(disk: Disk, folder: str, executions: Sequence[SavedExecution], current: str) -> list[str]:
    """Write the plans, and which of them is the current task. The files written."""
    plans = os.path.join(folder, PLANS)
    files = {os.path.join(plans, f"{e.plan_id}.yaml"): document(e) for e in executions}
    task = next(e for e in executions if e.plan_id == current)
    files[os.path.join(folder, TASK)] = _task(task.state)
    for file in files:
        if os.path.lexists(file) and not _is_ours(file):
            raise DecisionNeeded(
                "Something else is there already",
                facts={"file": file},
                hint="choose another path, or move that file away",
                code="export.exists",
            )
    make_folders(disk, plans)
    for file, content in files.items():
        data = yaml.safe_dump(content, sort_keys=False, allow_unicode=True, width=100).encode()
        write_file(disk, file, [data], durable=True)
    return list(files)


def _task(state: State) -> dict[str, Any]:
    """The current task: its plan's, and what its own file said besides, as long as the plan is about the same."""
    found = {"task": state.goal, "planId": state.plan_id, "status": _plan_status(state)}
    kept = state.settings.metadata.get(NAME)
    said = kept.get(TASK) if isinstance(kept, dict) else None
    if not isinstance(said, dict) or not isinstance(said.get("given"), dict):
        return found
    of = said.get("of")
    return found | {
        name: v
        for name, v in said["given"].items()
        if not isinstance(of, dict) or name not in of or of[name] == found[name]
    }


def document(execution: SavedExecution) -> dict[str, Any]:
    """A plan in the shape of SPEC-0010, and under `headway` whatever that shape alone would lose."""
    state = execution.state
    plain = _plan(state)
    if _comparable(_state(plain)) != _comparable(state):
        plain["headway"] = {"order": list(state.artifacts), "state": msgspec.to_builtins(_portable(state))}
    return plain


def _plan(state: State) -> dict[str, Any]:
    numbers = {artifact_id: index for index, artifact_id in enumerate(state.artifacts)}
    return _with_leftover(_derived(state, numbers), state.settings.metadata)


def _derived(state: State, numbers: Mapping[str, int]) -> dict[str, Any]:
    """The plan as its state has it."""
    steps = [_step(state, spec, numbers) for spec in state.artifacts.values()]
    return {
        "id": state.plan_id,
        "task": state.goal,
        "status": _plan_status(state),
        "version": state.version,
        "currentStepIndex": _current(steps),
        "createdAt": state.created_at,
        "updatedAt": state.updated_at,
        "createdBy": state.created_by,
        "previousPlanId": _previous(state),
        "steps": steps,
        "metadata": _without_nothing({a: _listed(getattr(state.settings, b)) for a, b in _METADATA.items()}),
    }


def _step(state: State, spec: ArtifactSpec, numbers: Mapping[str, int]) -> dict[str, Any]:
    status = recorded_status(state, spec.id)
    done, failure = state.completed.get(spec.id), state.failed.get(spec.id)
    claim, skip = state.claims.get(spec.id), state.skipped.get(spec.id)
    paths = [o.path for o in done.outputs if o.path] if done is not None else []
    found: dict[str, Any] = {
        "index": numbers[spec.id],
        "description": spec.description or spec.id,
        "status": status,
        "suggestedAgent": spec.agent,
        "executedBy": claim.by if claim else done.by if done else failure.by if failure else "",
        "startedAt": claim.at if claim else "",
        "completedAt": done.at if done else failure.at if failure else "",
        "output": done.note if done else skip.reason if skip else "",
        "error": failure.error if failure else "",
        "affectedFiles": paths or list(spec.files),
        "dependsOn": sorted(numbers[r] for r in spec.requires if r in numbers),
        "instructions": spec.instructions,
        "acceptanceCriteria": list(spec.acceptance),
    }
    return _with_leftover(found, spec.metadata)


def _current(steps: Sequence[Mapping[str, Any]]) -> int:
    """Under way, else the first that can be made, else the first that is open, else behind the last."""
    done = {step["index"] for step in steps if step["status"] in ("complete", "skipped")}
    ready = (s["index"] for s in steps if s["status"] == "pending" and done.issuperset(s.get("dependsOn", ())))
    under_way = (s["index"] for s in steps if s["status"] == "in_progress")
    is_open = (s["index"] for s in steps if s["index"] not in done)
    return next(under_way, next(ready, next(is_open, len(steps))))


def _plan_status(state: State) -> str:
    """SPEC-0010 has no word for a pause or for what is put away."""
    if state.status == "paused":
        return "in_progress"
    return state.status if state.status in _PLAN_STATUS else "failed"


def _previous(state: State) -> str:
    """SPEC-0010 names versions `<id>-v<N>`, by the first id and not by the last."""
    return f"{state.plan_id}-v{state.replans[-1].parent}" if state.replans else ""


# Reading.


def read(path: str) -> SavedExecution:
    """A plan file of this form, or the folder whose current task names one. All of it is valid, or none is read."""
    task = _load(os.path.join(path, TASK)) if os.path.isdir(path) else {}
    file = _named(path) if task else path
    given = _load(file)
    embedded = given.pop("headway", None)
    state = _state(given)
    if isinstance(embedded, dict) and "state" in embedded:
        state = _with_ours(state, given, _ours(embedded, file))
    problems = check_plan(SavedExecution(state, Position(0, START)).proposal)
    serious = [p for p in problems if p.code in ("plan.cycle", "plan.self", "plan.id")]
    if serious:
        raise _wrong(file, str(serious[0]))
    return SavedExecution(_with_task(state, task), Position(0, START))


def _with_task(state: State, task: Mapping[str, Any]) -> State:
    """What the current task's file says otherwise than its plan: it need not be the same in words."""
    derived = {"task": state.goal, "planId": state.plan_id, "status": _plan_status(state)}
    rest = {name: value for name, value in task.items() if derived.get(name, _NONE) != value}
    if not rest:
        return state
    metadata = dict(state.settings.metadata)
    kept = metadata.get(NAME)
    of = {name: derived[name] for name in rest if name in derived}
    metadata[NAME] = {**(kept if isinstance(kept, dict) else {}), TASK: {"of": of, "given": rest}}
    state.settings = msgspec.structs.replace(state.settings, metadata=metadata)
    return state


def read_task(folder: str) -> Task:
    """Which plan is the current task."""
    file = os.path.join(folder, TASK)
    given = _load(file)
    if not isinstance(given.get("planId"), str) or plan_id_problem(given["planId"]):
        raise _wrong(file, "planId must be the id of a plan")
    return Task(str(given.get("task", "")), given["planId"], str(given.get("status", "")))


def _named(folder: str) -> str:
    return os.path.join(folder, PLANS, f"{read_task(folder).plan_id}.yaml")


def _load(file: str) -> dict[str, Any]:
    data = read_given(file)
    if len(data) > LARGEST:
        raise _wrong(file, "it is too large to be a plan")
    try:
        given = yaml.load(data, Loader=_Plain)  # noqa: S506  # a SafeLoader that leaves times as they are written
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        raise _wrong(file, str(error).splitlines()[0]) from error
    if not isinstance(given, dict):
        raise _wrong(file, "it is not a mapping")
    return given


class _Plain(yaml.SafeLoader):
    """YAML whose times are texts, as SPEC-0010 has them."""


_Plain.yaml_implicit_resolvers = {
    first: [(tag, pattern) for tag, pattern in resolvers if tag != "tag:yaml.org,2002:timestamp"]
    for first, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
}


def _state(given: Mapping[str, Any]) -> State:
    """The state that a file of this form describes; what has no place in it is kept as metadata."""
    reader = _Reader(given)
    steps = reader.steps()
    ids = {step["index"]: f"step-{step['index']}" for step in steps}
    metadata = reader.mapping("metadata")
    settings = Settings(
        **{ours: _tupled(metadata[theirs]) for theirs, ours in _METADATA.items() if metadata.get(theirs) is not None}
    )
    state = State(
        plan_id=reader.text("id"),
        project_id="",
        goal=reader.text("task"),
        status=cast("PlanStatus", reader.choice("status", _PLAN_STATUS, "draft")),
        version=reader.number("version", 1),
        created_at=reader.text("createdAt", ""),
        updated_at=reader.text("updatedAt", ""),
        created_by=reader.text("createdBy", ""),
        settings=settings,
    )
    for step in steps:
        _take_step(state, step, ids)
    if plan_id_problem(state.plan_id):
        raise reader.wrong(f"id {state.plan_id!r}: {plan_id_problem(state.plan_id)}")
    _believe(state, state.completed)
    kept = _leftover(_derived(state, {ids[s["index"]]: s["index"] for s in steps}), given)
    if kept:
        state.settings = msgspec.structs.replace(settings, metadata={NAME: kept})
    return state


def _take_step(state: State, step: Mapping[str, Any], ids: Mapping[int, str]) -> None:
    """One step becomes an artifact, and what is recorded of it."""
    reader = _Reader(step, f"step {step['index']}: ")
    artifact_id, status = ids[step["index"]], reader.choice("status", _STEP_STATUS, "pending")
    spec = ArtifactSpec(
        id=artifact_id,
        description=reader.text("description", ""),
        agent=reader.text("suggestedAgent", ""),
        requires=tuple(ids[index] for index in reader.numbers("dependsOn", ids)),
        instructions=reader.text("instructions", ""),
        acceptance=reader.texts("acceptanceCriteria"),
        files=reader.texts("affectedFiles"),
    )
    by, at = reader.text("executedBy", ""), reader.text("completedAt", "")
    if status == "complete":
        note = reader.text("output", "")
        state.completed[artifact_id] = Completion(seq=0, at=at, by=by, how="imported", note=note)
    elif status == "failed":
        state.failed[artifact_id] = Failure(seq=0, at=at, by=by, error=reader.text("error", "") or "failed")
    elif status == "skipped":
        state.skipped[artifact_id] = Skip(seq=0, at=at, by=by, reason=reader.text("output", "") or "skipped")
    state.artifacts[artifact_id] = spec
    numbers = {name: index for index, name in ids.items()}
    kept = _leftover(_step(state, spec, numbers), step)
    if kept:
        state.artifacts[artifact_id] = msgspec.structs.replace(spec, metadata={NAME: kept})


def _believe(state: State, ids: Iterable[str]) -> None:
    """What a file says is done was made from what the plan says now: nobody is asked to do it again."""
    for artifact_id in ids:
        done = state.completed.get(artifact_id)
        if done is None:
            continue
        spec = state.artifacts[artifact_id]
        fp = Fingerprint(
            spec=spec_digest(spec),
            recipe=recipe_digest(spec, state.settings, code="", env={}),
            inputs={r: content_of(state.completed.get(r)) for r in spec.requires},
        )
        state.completed[artifact_id] = msgspec.structs.replace(done, fp=fp)


def _leftover(derived: Mapping[str, Any], given: Mapping[str, Any]) -> dict[str, Any]:
    """What the file says and our state does not, and of which state that is true."""
    mine = _without_nothing(dict(derived))
    for name in _CLOCK:
        mine.pop(name, None)
    rest = {name: value for name, value in given.items() if name != "steps" and mine.get(name, _NONE) != value}
    return {"of": _digest(derived), "given": rest} if rest else {}


def _with_leftover(derived: dict[str, Any], metadata: Mapping[str, Any]) -> dict[str, Any]:
    """What our state says, and what the file said besides, as long as it is about the same state."""
    found, kept = _without_nothing(derived), metadata.get(NAME, {})
    if isinstance(kept, dict) and kept.get("of") == _digest(derived):
        found |= kept.get("given", {})
    return found


_NONE: Any = object()


def _with_ours(state: State, given: Mapping[str, Any], ours: State) -> State:
    """Our own state where the file still says what we wrote; where somebody changed a step, that counts."""
    before = {step["index"]: step for step in _plan(ours)["steps"]} if ours.artifacts else {}
    known = dict(enumerate(ours.artifacts))
    if set(before) != {step["index"] for step in given["steps"]}:
        return state
    if all(before[step["index"]] == step for step in given["steps"]) and _head(given) == _head(_plan(ours)):
        return ours
    taken = ours.copy()
    taken.goal, taken.status = state.goal, state.status
    for step in given["steps"]:
        artifact_id = known[step["index"]]
        if before[step["index"]] != step:
            _overwrite(taken, artifact_id, state, f"step-{step['index']}", known)
    _believe(taken, [known[i] for i, step in enumerate(given["steps"]) if before[i] != step])
    return taken


def _overwrite(taken: State, artifact_id: str, state: State, theirs: str, known: Mapping[int, str]) -> None:
    """What somebody wrote about a step, in place of what was recorded; its recipe stays."""
    spec, before = state.artifacts[theirs], taken.artifacts[artifact_id]
    described = before.description if spec.description in (before.description, artifact_id) else spec.description
    requires = tuple(sorted(known[int(r.removeprefix("step-"))] for r in spec.requires))
    taken.artifacts[artifact_id] = msgspec.structs.replace(
        before,
        description=described,
        agent=spec.agent,
        requires=requires,
        instructions=spec.instructions,
        acceptance=spec.acceptance,
    )
    for aspect in ("completed", "failed", "skipped", "made"):
        getattr(taken, aspect).pop(artifact_id, None)
        found = getattr(state, aspect).get(theirs)
        if found is not None:
            getattr(taken, aspect)[artifact_id] = found


def _head(given: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in given.items() if name not in ("steps", "headway")}


def _ours(given: dict[str, Any], file: str) -> State:
    """Our own state; other tools may write the keys of a mapping in another order, so that is said apart."""
    try:
        state = msgspec.convert(given["state"], type=State)
        state.artifacts = {artifact_id: state.artifacts[artifact_id] for artifact_id in given["order"]}
    except (msgspec.ValidationError, LookupError, TypeError) as error:
        raise _wrong(file, f"headway: {error}") from error
    return state


def _portable(state: State) -> State:
    """A state without what belongs to one project alone: who is at it, its runs, and the file it came from."""
    copy: State = msgspec.structs.replace(
        state, project_id="", proposal=None, run=None, exported=None, claims={}, open={}, sound=False, unverified=""
    )
    return copy


def _comparable(state: State) -> dict[str, Any]:
    """What must survive: structure and progress."""
    plain: dict[str, Any] = msgspec.to_builtins(_portable(state))
    for name in ("updated_at", "uncertain", "asked", "milestones"):
        plain.pop(name, None)
    metadata = plain["settings"].get("metadata", {})
    if isinstance(metadata.get(NAME), dict):  # the current task has a file of its own
        metadata[NAME].pop(TASK, None)
        if not metadata[NAME]:
            del metadata[NAME]
    for done in plain.get("completed", {}).values():
        done.pop("seq", None)
    for aspect in ("failed", "skipped"):
        for found in plain.get(aspect, {}).values():
            found.pop("seq", None)
    return plain


class _Reader:
    """The values of a mapping, each of its kind or refused."""

    def __init__(self, given: Mapping[str, Any], where: str = "") -> None:
        self._given = given
        self._where = where

    def wrong(self, why: str) -> UsageError:
        return _wrong("the plan", f"{self._where}{why}")

    def text(self, name: str, default: str | None = None) -> str:
        value = self._given.get(name, default)
        if value is None and default is not None:
            return default
        if not isinstance(value, str):
            raise self.wrong(f"{name} must be text")
        return value

    def number(self, name: str, default: int) -> int:
        value = self._given.get(name, default)
        if not isinstance(value, int) or isinstance(value, bool) or value < 0:
            raise self.wrong(f"{name} must be a whole number")
        return value

    def choice(self, name: str, known: set[str], default: str) -> str:
        value = self.text(name, default)
        if value not in known:
            raise self.wrong(f"{name} must be one of {', '.join(sorted(known))}, not {value!r}")
        return value

    def texts(self, name: str) -> tuple[str, ...]:
        value = self._given.get(name) or []
        if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
            raise self.wrong(f"{name} must be a list of texts")
        return tuple(value)

    def numbers(self, name: str, known: Mapping[int, str]) -> list[int]:
        value = self._given.get(name) or []
        if not isinstance(value, list) or any(item not in known or isinstance(item, bool) for item in value):
            raise self.wrong(f"{name} must be a list of the indexes of steps")
        return sorted(set(value))

    def mapping(self, name: str) -> dict[str, Any]:
        value = self._given.get(name) or {}
        if not isinstance(value, dict):
            raise self.wrong(f"{name} must be a mapping")
        return value

    def steps(self) -> list[dict[str, Any]]:
        value = self._given.get("steps")
        if not isinstance(value, list) or not all(isinstance(step, dict) for step in value):
            raise self.wrong("steps must be a list of steps")
        indexes = [step.get("index") for step in value]
        if indexes != list(range(len(value))):
            raise self.wrong("the steps must be numbered 0, 1, 2 … by their index")
        return value


def _wrong(file: str, why: str) -> UsageError:
    return UsageError(
        f"{file} cannot be read as a plan of SPEC-0010",
        facts={"reason": why},
        hint="nothing was taken in; correct the file and import it again",
        code="import.rawko",
    )


def _is_ours(file: str) -> bool:
    """Whether a file is of this form, so that a newer one may take its place."""
    try:
        given = _load(file)
    except UsageError:
        return False
    return {"task", "status"} <= given.keys() and bool({"planId", "steps"} & given.keys())


def _digest(value: Mapping[str, Any]) -> str:
    import hashlib

    stable = {name: item for name, item in value.items() if name not in _CLOCK}
    return hashlib.sha256(msgspec.json.encode(_without_nothing(stable), order="sorted")).hexdigest()[:16]


def _without_nothing(given: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in given.items() if value not in ("", None, [], {})}


def _listed(value: Any) -> Any:
    return list(value) if isinstance(value, tuple) else value


def _tupled(value: Any) -> Any:
    return tuple(value) if isinstance(value, list) else value
