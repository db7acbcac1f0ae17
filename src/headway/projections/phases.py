"""The phase ledger of a unit, `phases/<unit>.json`: for each phase what its newest attempt came to, and those before.

*Ran*, *verdict* and *applied* are three things: that a recipe did its work, what was said of it, and that the file that
units hand on was changed by it. Derived from the plan's ledger; it can be deleted.
"""

from __future__ import annotations

import os
import re
import threading
from collections.abc import Callable, Collection, Generator, Iterable, Iterator
from contextlib import closing, suppress
from functools import cache, partial
from itertools import chain, islice
from typing import Any, NamedTuple

import msgspec
from msgspec import UNSET, UnsetType

from headway import bulk
from headway.bulk import Order
from headway.core import events as ev
from headway.core.fingerprint import reuse_key
from headway.core.gates import open_gates, rejecting
from headway.core.lifecycle import last_made
from headway.core.plan import ArtifactSpec, Phase, Pipeline
from headway.core.state import Attempt, Completion, Failure, PromptNote, State
from headway.disk import LARGE, Disk, boot_id, make_folders, write_file
from headway.ledger.lock import FileLock

FORMAT = 1
TEXTS = ".headway/texts"
"""Where prompts and responses are as files; their names are their sha256."""

UNTRIED = frozenset({"unmakeable", "gather", "unstored"})
"""Failures of what could not even be tried. So is one without the prompt that comes first."""

PATIENCE = 30.0
"""So many seconds are waited for others who write theirs."""

MANY = 100
"""More files than this are written over where they stand: whoever is cut off meanwhile, or loses power before they are
on disk, leaves it to the next run to write them again."""

HEADING = 512
"""So many bytes at the beginning of a file say whose it is, unless its unit has a very long name."""

LOT = 256
"""So many are written over together."""

TextOrders = Callable[[Collection[str]], Iterable[Order]]
"""What has to be written for texts of these digests to be where phase ledgers say that they are, one by one."""


class _File(NamedTuple):
    """A unit, what is to be in its file, and the texts that it names for the first time."""

    unit: str
    data: bytes
    texts: list[str]


_encode = msgspec.json.Encoder().encode
_OWNER = rb'\{\s*"format": \d+,\s*"scene_id": "[^"\\]*",\s*"plan_id": "([^"\\]*)",'
_AFTER_OWNER = b'\n  "pipelines": '


class Tried(msgspec.Struct, gc=False):
    """An attempt at a phase; of the newest one also what was said of it, and the attempts before it."""

    artifact: str
    iteration: int
    status: str
    timestamp: str
    seq: int
    ran: str | None
    error: str | None
    artifacts: dict[str, str]
    hashes: dict[str, str]
    prompt_hash: str | None
    template_set: dict[str, str] | UnsetType = UNSET
    template_hashes: dict[str, str] | UnsetType = UNSET
    pre_state_path: str | UnsetType = UNSET
    pre_state_hash: str | UnsetType = UNSET
    verdict: dict[str, Any] | UnsetType | None = UNSET
    applied: dict[str, Any] | UnsetType | None = UNSET
    prompt_update: dict[str, Any] | UnsetType = UNSET
    attempts: list[Tried] | UnsetType = UNSET


def pipelines_of(state: State, unit: str) -> list[Pipeline]:
    """The pipelines that a unit goes through."""
    return [p for p in state.settings.pipelines if p.phases and f"{unit}/{p.phases[0].id}" in state.artifacts]


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
    found: dict[str, Any] = msgspec.to_builtins(_document(state, unit, pipelines_of(state, unit), seq))
    return found


def _document(state: State, unit: str, pipelines: list[Pipeline], seq: int) -> dict[str, Any]:
    phases = {
        phase.id: entry
        for pipeline in pipelines
        for phase in pipeline.phases
        if (entry := _phase(state, pipeline, phase, unit)) is not None
    }
    return {
        "format": FORMAT,
        "scene_id": unit,
        "plan_id": state.plan_id,
        "pipelines": [pipeline.name for pipeline in pipelines],
        "seq": seq,
        "phases": phases,
    }


def _phase(state: State, pipeline: Pipeline, phase: Phase, unit: str) -> Tried | None:
    attempts: list[Tried] = []
    spec, latest = None, None
    for instance in instances(state, unit, phase):
        if instance.id in state.past:
            attempts += [_tried(instance, attempt) for attempt in state.past[instance.id]]
        newest = last_made(state, instance.id)
        failure = state.failed.get(instance.id) if state.failed else None
        if failure is not None and (newest is None or failure.seq > newest.seq):
            attempts.append(_tried(instance, failure))
            spec, latest = instance, None
        elif newest is not None:
            attempts.append(_tried(instance, newest))
            spec, latest = instance, newest
    if spec is None:
        return None
    entry = attempts.pop()
    entry.template_set, entry.attempts = spec.templates, attempts
    entry.applied = None
    if latest is not None:  # what it was made from, as far as the next attempt is held against it
        before, entry.template_hashes = latest.fp.before, latest.fp.templates
        if before and pipeline.state in before:
            entry.pre_state_path, entry.pre_state_hash = pipeline.state, before[pipeline.state]
        if spec.modifies or spec.effects:
            entry.applied = _applied(pipeline, spec, latest)
    entry.verdict = _verdict(state, phase, unit, spec, latest)
    if state.prompts and (note := state.prompts.get(spec.id)) is not None:
        _note(note, [a for a in (*attempts, entry) if a.artifact == spec.id])
    return entry


def _note(note: PromptNote, own: list[Tried]) -> None:
    """Why its prompt was changed: at the first attempt that was made with the new one, if there is one."""
    after = next((number for number, a in enumerate(own) if a.seq > note.seq), None)
    if after == 0:
        return
    own[-1 if after is None else after].prompt_update = {
        "prompt_hash_prev": own[-1 if after is None else after - 1].prompt_hash,
        "prompt_hash_new": None if after is None else own[after].prompt_hash,
        "prompt_update_reason": note.reason,
        "templates": [msgspec.to_builtins(change) for change in note.changes],
        "at": note.at,
        "by": note.by,
    }


def _tried(spec: ArtifactSpec, attempt: Attempt | Completion | Failure) -> Tried:
    """An attempt at an artifact."""
    prompt, error, has_run = attempt.prompt, "", True
    if isinstance(attempt, Completion):
        status, ran, outputs = "success", attempt.how, attempt.outputs
    else:
        error, code = attempt.error, ""
        if isinstance(attempt, Failure):
            ok, ran, outputs, code = False, "made", attempt.left, attempt.code
        else:
            ok, ran, outputs = attempt.ok, attempt.how, attempt.outputs
        status = "success" if ok else "fail"
        has_run = ok or not (code in UNTRIED or (spec.templates and spec.has_recipe and not prompt))
    artifacts: dict[str, str] = {}
    hashes: dict[str, str] = {}
    if prompt:
        artifacts["prompt"], hashes["prompt"] = f"{TEXTS}/{prompt}", prompt
    if attempt.stdout and spec.templates:
        artifacts["response"], hashes["response"] = f"{TEXTS}/{attempt.stdout}", attempt.stdout
    for output in outputs:
        if path := output.path:
            name = path
            for called, named in spec.outputs.items():
                if named == path:
                    name = called
            artifacts[name], hashes[name] = path, output.digest
        elif "text" not in hashes:
            artifacts["text"], hashes["text"] = f"{TEXTS}/{output.digest}", output.digest
    return Tried(
        spec.id,
        spec.iteration or 1,
        status,
        attempt.at,
        attempt.seq,
        ran if has_run else None,
        error or None,
        artifacts,
        hashes,
        prompt or None,
    )


def _verdict(
    state: State, phase: Phase, unit: str, spec: ArtifactSpec, latest: Completion | None
) -> dict[str, Any] | None:
    """What was said of it: by the loop that it ends, by its gates, or of its newest attempt by `verify`."""
    if phase.repeat:
        whole = f"{unit}/{phase.id}"
        if whole in state.completed and whole not in state.failed:
            return {"word": "pass", "by": phase.until}
        return {"word": "fail", "by": phase.until} if whole in state.failed else None
    if spec.gates and (done := last_made(state, spec.id)) is not None:
        evidence = state.evidence.get(spec.id, ())
        word = "fail" if rejecting(spec, evidence, done) else "open" if open_gates(spec, evidence, done) else "pass"
        return {"word": word, "by": ", ".join(gate.name for gate in spec.gates)}
    return {"word": "pass", "by": "verify"} if latest is not None and latest.verified else None


def _applied(pipeline: Pipeline, spec: ArtifactSpec, done: Completion) -> dict[str, Any] | None:
    """That it changed what units hand on, and the key by which doing it twice does it once."""
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
    expanded: set[str] = set()
    for record in records:
        event: Any = record.event
        naming = _naming(event.__class__)
        if "id" in naming:
            found.add(event.id.rpartition("/")[0])
        if "ids" in naming:
            found.update([a.rpartition("/")[0] for a in event.ids])
        if "artifacts" in naming:
            into = expanded if getattr(event, "units", None) is not None else found
            into.update([spec.id.rpartition("/")[0] for spec in event.artifacts])
        if "removed" in naming:
            found.update([a.rpartition("/")[0] for a in event.removed])
        if "failed" in naming:
            found.update([a.rpartition("/")[0] for a in event.failed])
        if "changes" in naming:
            found.update([a.rpartition("/")[0] for change in event.changes for a in change.artifacts])
        if isinstance(event, _ABOUT_ALL) and not getattr(event, "ids", ()):
            found.update(unit for expansion in state.units.values() for unit in expansion.units)
    if expanded:  # all units of a pipeline, most often: those that nobody has come to yet have no file
        found |= expanded & _begun(state)
    return {unit for unit in found if unit and not unit.endswith(":*")}


_ABOUT_ALL = (ev.PlanReset, ev.PlanImported, ev.PlanRebuilt)
"""Events after which nothing is known to be as it was, unless they name artifacts."""


def _begun(state: State) -> set[str]:
    """Units of which something was tried."""
    known = (state.completed, state.made, state.failed, state.skipped, state.past)
    return {a.rpartition("/")[0] for aspect in known for a in aspect}


@cache
def _naming(kind: type[ev.Event]) -> frozenset[str]:
    """The fields by which events of a kind name artifacts."""
    names = {"id", "ids", "artifacts", "removed", "failed", "changes"}
    return frozenset(names.intersection(getattr(kind, "__struct_fields__", ())))


def write(
    disk: Disk, home: str, state: State, units: Collection[str], seq: int, *, texts: TextOrders, since: int = 0
) -> None:
    """Bring the files of these units up to date; of one that is gone, or was never tried, there is none.

    The `texts` that are named by what has happened `since` are put where they are said to be.
    """
    make_folders(disk, home)
    lock = FileLock(os.path.join(home, ".lock"))  # other plans may have units of the same names
    lock.acquire(wait=PATIENCE)
    try:
        _write(disk, home, state, units, seq, _Texts(texts), since)
    finally:
        lock.release()


def _write(disk: Disk, home: str, state: State, units: Collection[str], seq: int, texts: _Texts, since: int) -> None:
    boot = boot_id()
    ready, over = {home}, bool(boot) and len(units) > MANY
    files = _files(home, state, units, seq, since)
    with closing(_left_by_writing_over(home, state.plan_id, files, texts) if over else files) as left:
        for file in left:
            path = _path(home, state.plan_id, file.unit)
            folder = os.path.dirname(path)
            if folder not in ready:
                make_folders(disk, folder)
                ready.add(folder)
            texts.put(texts.due(file.texts))
            write_file(disk, path, [file.data], durable=False)
    if texts.problems:  # all of it is written once more by whoever comes next
        raise texts.problems[0]
    head, mark = _head(home, state.plan_id), f" {boot}"
    is_marked = over or (boot and _read(head).endswith(mark))
    write_file(disk, head, [f"{seq}{mark if is_marked else ''}".encode()], durable=False)


class _Texts:
    """Puts texts where they are said to be, and knows what was in the way of some."""

    def __init__(self, orders: TextOrders) -> None:
        self._orders = orders
        self.problems: list[OSError] = []

    def due(self, digests: Collection[str]) -> list[Order]:
        """The last of what has to be put for these, as much as may be in memory; what comes before is put at once."""
        last: list[Order] = []
        size = 0
        for order in self._orders(digests):
            if size + len(order[1]) > LARGE:
                self.put(last)
                last, size = [], 0
            last.append(order)
            size += len(order[1])
        return last

    def put(self, orders: list[Order]) -> None:
        """Write these."""
        if orders:
            with suppress(OSError):  # told below
                os.makedirs(os.path.dirname(orders[0][0]), exist_ok=True)
        for order, (error, _, _) in zip(orders, bulk.write(orders), strict=True):
            if error:
                self.problems.append(OSError(error, os.strerror(error), order[0]))


def _files(home: str, state: State, units: Collection[str], seq: int, since: int) -> Generator[_File, None, None]:
    """What is to be in the files of these units; one that is to be gone is removed."""
    for unit in units:
        pipelines = pipelines_of(state, unit)
        document = _document(state, unit, pipelines, seq) if pipelines else {"phases": {}}
        if phases := document["phases"]:
            tried = (tried for newest in phases.values() for tried in (newest, *(newest.attempts or ())))
            texts = _texts_of(attempt for attempt in tried if attempt.seq > since)
            yield _File(unit, msgspec.json.format(_encode(document), indent=2) + b"\n", texts)
        else:
            with suppress(FileNotFoundError):
                os.remove(_path(home, state.plan_id, unit))


def _texts_of(attempts: Iterable[Tried]) -> list[str]:
    """The digests of texts that attempts name."""
    return [a.hashes[name] for a in attempts for name, path in a.artifacts.items() if path.startswith(TEXTS)]


def _left_by_writing_over(
    home: str, plan_id: str, files: Iterator[_File], texts: _Texts
) -> Generator[_File, None, None]:
    """Write files over where they stand, each lot while the next one is worked out; those that could not be."""
    writing = _WritingOver(home, [], lambda: None)
    try:
        for lot in chain(iter(lambda: list(islice(files, LOT)), []), [[]]):
            due = texts.due([text for file in lot for text in file.texts])
            left = writing.left()
            writing = _WritingOver(home, lot, partial(texts.put, due))
            for file in left:  # it is not there, or another plan's is
                if bulk.write_over([(_path(home, plan_id, file.unit), file.data, 0)])[0]:
                    yield file
    finally:
        writing.join()


class _WritingOver:
    """A lot of files that is written over, beside whoever works out the next, where they are of the same plan; `first`
    something else is done.
    """

    def __init__(self, home: str, lot: list[_File], first: Callable[[], None]) -> None:
        self._lot, self._errors = lot, [bulk.OTHER] * len(lot)
        self._orders = [(f"{home}/{unit}.json", data, data.index(_AFTER_OWNER)) for unit, data, _ in lot]
        self._first = first
        self._thread = threading.Thread(target=self._write, name="headway-phases")
        try:
            self._thread.start()
        except RuntimeError:  # the system allows no more of them
            self._write()

    def _write(self) -> None:
        self._first()
        self._errors = bulk.write_over(self._orders)

    def join(self) -> None:
        """Wait until it is done."""
        if self._thread.ident is not None:
            self._thread.join()

    def left(self) -> list[_File]:
        """Those that could not be written over."""
        self.join()
        return [file for file, error in zip(self._lot, self._errors, strict=True) if error]


def amiss(home: str, state: State, units: Iterable[str], texts: TextOrders) -> dict[str, bool]:
    """Units of whose file the plan's ledger says something else, and whether there is one at all; those that name a
    text of their newest attempts that is not there count as if they had none.
    """
    found: dict[str, bool] = {}
    for unit in units:
        path = _path(home, state.plan_id, unit)
        pipelines = pipelines_of(state, unit)
        wanted = _document(state, unit, pipelines, 0) if pipelines else {"phases": {}}
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
        elif any(True for _ in texts(_texts_of(wanted["phases"].values()))):
            found[unit] = False
    return found


def _path(home: str, plan_id: str, unit: str) -> str:
    """The file of a unit, beside that of another plan's unit of the same name."""
    path = f"{home}/{unit}.json"
    return f"{home}/{unit}@{plan_id}.json" if _is_anothers(home, path, plan_id) else path


def reflected(home: str, plan_id: str) -> int | None:
    """The newest event of a plan that the files reflect; None if nobody knows: of files that were written over before
    the machine was last started, power may have been cut in between."""
    seq, _, boot = _read(_head(home, plan_id)).partition(" ")
    try:
        return int(seq) if not boot or boot == boot_id() else None
    except ValueError:
        return None


def _read(head: str) -> str:
    try:
        with open(head, encoding="ascii") as file:
            return file.read()
    except (OSError, ValueError):
        return ""


def _head(home: str, plan_id: str) -> str:
    return os.path.join(home, f".{plan_id}.seq")


def _is_anothers(home: str, path: str, plan_id: str) -> bool:
    """Whether a file is about a unit of another plan. Of one that was written here the first lines tell; half of one
    belongs to a plan that has written here to the end before."""
    try:
        fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return False
    found = None
    try:
        data = os.read(fd, HEADING)
        found = re.match(_OWNER, data)
        if found is not None and found[1] == plan_id.encode():
            return False
        while more := os.read(fd, 1 << 20):
            data += more
        return str(msgspec.json.decode(data).get("plan_id", "")) not in ("", plan_id)
    except (OSError, msgspec.DecodeError, AttributeError):
        return found is not None and os.path.exists(_head(home, os.fsdecode(found[1])))
    finally:
        os.close(fd)
