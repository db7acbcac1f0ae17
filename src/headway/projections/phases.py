"""The phase ledger of a unit, `phases/<unit>.json`: for each phase what its newest attempt came to, and those before.

*Ran*, *verdict* and *applied* are three things: that a recipe did its work, what was said of it, and that the file that
units hand on was changed by it. Derived from the plan's ledger; it can be deleted.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from contextlib import suppress
from typing import Any

import msgspec

from headway.core import events as ev
from headway.core.fingerprint import reuse_key
from headway.core.gates import open_gates, rejecting
from headway.core.lifecycle import last_made
from headway.core.plan import ArtifactSpec, Phase, Pipeline
from headway.core.state import Attempt, Completion, Failure, PromptNote, State
from headway.disk import Disk, make_folders, write_file

FORMAT = 1
TEXTS = ".headway/texts"
"""Where prompts and responses are as files; their names are their sha256."""

UNTRIED = frozenset({"unmakeable", "gather", "unstored"})
"""Failures of what could not even be tried. So is one without the prompt that comes first."""

HEADING = 512
"""So many bytes at the beginning of a file say whose it is, unless its unit has a very long name."""

_OWNER = re.compile(rb'\{\s*"format": \d+,\s*"scene_id": "[^"\\]*",\s*"plan_id": "([^"\\]*)",')


def pipelines_of(state: State, unit: str) -> list[Pipeline]:
    """The pipelines that a unit goes through."""
    found = []
    for pipeline in state.settings.pipelines:
        names = [phase.id for phase in pipeline.phases[:1]]
        if any(f"{unit}/{name}" in state.artifacts for name in names):
            found.append(pipeline)
    return found


def instances(state: State, unit: str, phase: Phase) -> list[ArtifactSpec]:
    """What a phase of a unit is made as: once, or once for every round of its loop."""
    single = state.artifacts.get(f"{unit}/{phase.id}")
    if single is not None and not single.gathers:
        return [single]
    found: list[ArtifactSpec] = []
    while (spec := state.artifacts.get(f"{unit}/{phase.id}~{len(found) + 1}")) is not None:
        found.append(spec)
    return found


def unit_document(state: State, unit: str, *, seq: int = 0) -> dict[str, Any]:
    """The phase ledger of a unit: phases that were never tried are not in it."""
    return _document(state, unit, pipelines_of(state, unit), seq)


def _document(state: State, unit: str, pipelines: list[Pipeline], seq: int) -> dict[str, Any]:
    phases: dict[str, Any] = {}
    for pipeline in pipelines:
        for phase in pipeline.phases:
            entry = _phase(state, pipeline, phase, unit)
            if entry is not None:
                phases[phase.id] = entry
    return {
        "format": FORMAT,
        "scene_id": unit,
        "plan_id": state.plan_id,
        "pipelines": [pipeline.name for pipeline in pipelines],
        "seq": seq,
        "phases": phases,
    }


def _phase(state: State, pipeline: Pipeline, phase: Phase, unit: str) -> dict[str, Any] | None:
    attempts: list[dict[str, Any]] = []
    tried: tuple[ArtifactSpec, Completion | Failure] | None = None
    for spec in instances(state, unit, phase):
        names = {path: name for name, path in spec.outputs.items()}
        attempts += [_entry(spec, names, attempt) for attempt in state.past.get(spec.id, ())]
        newest = _newest(state, spec)
        if newest is not None:
            attempts.append(_entry(spec, names, newest))
            tried = spec, newest
    if tried is None:
        return None
    spec, latest = tried
    entry = attempts.pop()
    entry["template_set"] = spec.templates
    if isinstance(latest, Completion):
        entry.update(_integrity(pipeline, latest))
    entry["verdict"] = _verdict(state, phase, unit, spec)
    entry["applied"] = _applied(pipeline, spec, latest) if isinstance(latest, Completion) else None
    note = state.prompts.get(spec.id)
    if note is not None:
        _note(note, [a for a in (*attempts, entry) if a["artifact"] == spec.id])
    entry["attempts"] = attempts
    return entry


def _note(note: PromptNote, own: list[dict[str, Any]]) -> None:
    """Why its prompt was changed: at the first attempt that was made with the new one, if there is one."""
    after = next((number for number, a in enumerate(own) if a["seq"] > note.seq), None)
    if after == 0:
        return
    own[-1 if after is None else after]["prompt_update"] = {
        "prompt_hash_prev": own[-1 if after is None else after - 1]["prompt_hash"],
        "prompt_hash_new": None if after is None else own[after]["prompt_hash"],
        "prompt_update_reason": note.reason,
        "templates": [msgspec.to_builtins(change) for change in note.changes],
        "at": note.at,
        "by": note.by,
    }


def _newest(state: State, spec: ArtifactSpec) -> Completion | Failure | None:
    done = last_made(state, spec.id)
    failure = state.failed.get(spec.id) if state.failed else None
    if done is None or failure is None:
        return done or failure
    return failure if failure.seq > done.seq else done


def _entry(spec: ArtifactSpec, names: dict[str, str], attempt: Attempt | Completion | Failure) -> dict[str, Any]:
    """An attempt. `names`: what the spec calls its outputs, by path."""
    ok, ran, error, prompt = True, "made", "", attempt.prompt
    if isinstance(attempt, Failure):
        ok, error, outputs = False, attempt.error, attempt.left
    else:
        ran, outputs = attempt.how, attempt.outputs
        if isinstance(attempt, Attempt):
            ok, error = attempt.ok, attempt.error
    code = attempt.code if isinstance(attempt, Failure) else ""
    never_ran = not ok and (code in UNTRIED or (spec.templates and spec.has_recipe and not prompt))
    hashes: dict[str, str] = {"prompt": prompt} if prompt else {}
    if attempt.stdout and spec.templates:
        hashes["response"] = attempt.stdout
    for output in outputs:
        if not output.path:
            hashes.setdefault("text", output.digest)
    artifacts = {name: f"{TEXTS}/{digest}" for name, digest in hashes.items()}
    for output in outputs:
        if path := output.path:
            name = names.get(path, path)
            artifacts[name], hashes[name] = path, output.digest
    return {
        "artifact": spec.id,
        "iteration": spec.iteration or 1,
        "status": "success" if ok else "fail",
        "timestamp": attempt.at,
        "seq": attempt.seq,
        "ran": None if never_ran else ran,
        "error": error or None,
        "artifacts": artifacts,
        "hashes": hashes,
        "prompt_hash": prompt or None,
    }


def _integrity(pipeline: Pipeline, done: Completion) -> dict[str, Any]:
    """What a phase was made from, as far as the next attempt is held against it."""
    found: dict[str, Any] = {"template_hashes": done.fp.templates}
    if pipeline.state and pipeline.state in done.fp.before:
        found |= {"pre_state_path": pipeline.state, "pre_state_hash": done.fp.before[pipeline.state]}
    return found


def _verdict(state: State, phase: Phase, unit: str, spec: ArtifactSpec) -> dict[str, Any] | None:
    """What was said of it: by the loop that it ends, by its gates, or by `verify`."""
    if phase.repeat:
        whole = f"{unit}/{phase.id}"
        if whole in state.completed and whole not in state.failed:
            return {"word": "pass", "by": phase.until}
        return {"word": "fail", "by": phase.until} if whole in state.failed else None
    done = last_made(state, spec.id)
    if spec.gates and done is not None:
        evidence = state.evidence.get(spec.id, ())
        word = "fail" if rejecting(spec, evidence, done) else "open" if open_gates(spec, evidence, done) else "pass"
        return {"word": word, "by": ", ".join(gate.name for gate in spec.gates)}
    return {"word": "pass", "by": "verify"} if done is not None and done.verified else None


def _applied(pipeline: Pipeline, spec: ArtifactSpec, done: Completion) -> dict[str, Any] | None:
    """That it changed what units hand on, and the key by which doing it twice does it once."""
    if not spec.modifies and not spec.effects:
        return None
    across = [path for path in spec.modifies if path == pipeline.state or path in done.fp.before]
    common = [path for path in across if path not in spec.produces and _is_common(pipeline, spec, path)]
    if not common and not spec.effects:
        return None
    after = {output.path: output.digest for output in done.outputs}
    return {
        "at": done.at,
        "idempotency_key": reuse_key(done.fp),
        "files": {path: {"before": done.fp.before.get(path, ""), "after": after.get(path, "")} for path in common},
    }


def _is_common(pipeline: Pipeline, spec: ArtifactSpec, path: str) -> bool:
    """Whether a file belongs to all units and not to this one."""
    phase = pipeline.phase(spec.phase)
    return path == pipeline.state or (phase is not None and path in phase.outputs.values())


# Files.


def touched(state: State, records: Iterable[ev.Record]) -> set[str]:
    """Units whose phase ledger these events change."""
    if not state.units:
        return set()
    found: set[str] = set()
    for record in records:
        event: Any = record.event
        if isinstance(event, ev.PlanReset) and not event.ids:
            found.update(unit for expansion in state.units.values() for unit in expansion.units)
        ids = [getattr(event, "id", "")] if isinstance(getattr(event, "id", None), str) else []
        ids += [*getattr(event, "ids", ()), *getattr(event, "removed", ())]
        ids += [a for change in getattr(event, "changes", ()) for a in change.artifacts]
        found.update(a.rpartition("/")[0] for a in ids if "/" in a)
    return {unit for unit in found if unit and not unit.endswith(":*")}


def write(disk: Disk, home: str, state: State, units: Iterable[str], seq: int) -> None:
    """Bring the files of these units up to date; of one that is gone, or was never tried, there is none."""
    make_folders(disk, home)
    ready = {home}
    for unit in units:
        pipelines = pipelines_of(state, unit)
        document = _document(state, unit, pipelines, seq) if pipelines else {"phases": {}}
        path = _path(home, state.plan_id, unit)
        if document["phases"]:
            folder = os.path.dirname(path)
            if folder not in ready:
                make_folders(disk, folder)
                ready.add(folder)
            text = msgspec.json.format(msgspec.json.encode(document), indent=2) + b"\n"
            write_file(disk, path, [text], durable=False)
        else:
            with suppress(FileNotFoundError):
                os.remove(path)
    write_file(disk, _head(home, state.plan_id), [b"%d" % seq], durable=False)


def amiss(home: str, state: State, units: Iterable[str]) -> dict[str, bool]:
    """Units of whose file the plan's ledger says something else, and whether there is one at all."""
    found: dict[str, bool] = {}
    for unit in units:
        path = _path(home, state.plan_id, unit)
        wanted = unit_document(state, unit) if pipelines_of(state, unit) else {"phases": {}}
        try:
            with open(path, "rb") as file:
                written = msgspec.json.decode(file.read())
        except FileNotFoundError:
            if wanted["phases"]:
                found[unit] = False
            continue
        except (OSError, msgspec.DecodeError, RecursionError):
            written = None
        if isinstance(written, dict):  # when it was written is no part of what it says
            written["seq"] = wanted.get("seq")
        if written != msgspec.json.decode(msgspec.json.encode(wanted)):
            found[unit] = True
    return found


def _path(home: str, plan_id: str, unit: str) -> str:
    """The file of a unit, beside that of another plan's unit of the same name."""
    path = f"{home}/{unit}.json"
    return f"{home}/{unit}@{plan_id}.json" if _is_anothers(path, plan_id) else path


def reflected(home: str, plan_id: str) -> int | None:
    """The newest event of a plan that the files reflect; None if nobody knows."""
    try:
        with open(_head(home, plan_id), encoding="ascii") as file:
            return int(file.read())
    except (OSError, ValueError):
        return None


def _head(home: str, plan_id: str) -> str:
    return os.path.join(home, f".{plan_id}.seq")


def _is_anothers(path: str, plan_id: str) -> bool:
    """Whether a file is about a unit of another plan. Of one that was written here the first lines tell."""
    try:
        fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return False
    try:
        data = os.read(fd, HEADING)
        found = _OWNER.match(data)
        if found is not None and found[1] == plan_id.encode():
            return False
        while more := os.read(fd, 1 << 20):
            data += more
        return str(msgspec.json.decode(data).get("plan_id", "")) not in ("", plan_id)
    except (OSError, msgspec.DecodeError, AttributeError):
        return False
    finally:
        os.close(fd)
