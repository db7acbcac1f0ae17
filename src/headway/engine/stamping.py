"""When a stamp may be left, and what it has to name: everything that the verdict "all is fresh" depended on."""

from __future__ import annotations

import hashlib
import marshal
import os
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, NamedTuple

import msgspec

from headway import stamp
from headway.core.approval import is_open
from headway.core.paths import is_glob
from headway.core.plan import ArtifactSpec
from headway.core.state import Position
from headway.engine.judge import Judge
from headway.engine.result import RunResult
from headway.files.observe import RACY_NS
from headway.version import VERSION

TAIL = 36
PLAN_FILES = (".yaml", ".yml", ".json")
CONFIGS = ("headway.toml", "pyproject.toml")


def leave(
    judge: Judge,
    result: RunResult,
    text: str,
    *,
    position: Position,
    root: str,
    home: str,
    ledger: str,
    environ: Mapping[str, str],
) -> bool:
    """Leave a stamp if nothing is open and nothing is in doubt; whether one was left."""
    state = judge.state
    if state.proposal is None or not _all_is_well(judge):
        return False
    made = built(state.proposal.source, state.artifacts.values(), judge.functions) if judge.functions else ""
    is_file = not judge.functions and os.path.splitext(state.proposal.path)[1] in PLAN_FILES
    plan = state.proposal.path if is_file else name_of(state.proposal.path, state.plan_id)
    if not made and not (is_file and os.path.isfile(os.path.join(root, plan))):
        return False
    abroad = judge.abroad
    if abroad is not None and abroad.leaves_the_project:  # too much over there would have to be named
        stamp.forget(home, plan)
        return False
    others = {p: Part(j, abroad.judged.get(p, [])) for p, j in abroad.judges.items() if j} if abroad is not None else {}
    plans = os.path.dirname(os.path.dirname(ledger))
    ends = {path: _end(path) for path in (ledger, *(os.path.join(plans, p, "ledger.jsonl") for p in others))}
    if abroad is not None and [size for size, _ in list(ends.values())[1:]] != [abroad.sizes[p] for p in others]:
        return False  # another plan has moved since it was judged
    parts = [Part(judge, list(state.artifacts)), *others.values()]
    folders = {name: found for part in parts for name, found in _folders(part, root).items()}
    absent = [path for part in parts for path in (*part.judge.absent_words(), *part.judge.code.absent)]
    appeared = any(os.path.lexists(os.path.join(root, path)) for path in absent)
    changed = appeared or any(map(_sources_changed, parts))
    named = {path: digest for part in parts for path, digest in _files(part, root).items()}
    if is_file:
        named[plan] = state.proposal.source
    files = None if changed else _settled(judge, named)
    if files is None or position.hash.encode() not in ends[ledger][1]:
        stamp.forget(home, plan)
        return False
    names = {name for part in parts for name in _variables(part)}
    stamp.write(
        home,
        plan,
        VERSION,
        text=text,
        document=msgspec.json.format(msgspec.json.encode(result.to_dict()), indent=2).decode(),
        ledgers=[(os.path.relpath(path, root), *end) for path, end in ends.items()],
        env={name: environ.get(name) for name in names},
        files=files,
        folders=folders,
        absent=[*absent, *(p for p in CONFIGS if not os.path.lexists(os.path.join(root, p)))],
        built=made,
    )
    return True


class Part(NamedTuple):
    """Artifacts of one plan that the verdict was about: all of the plan's own, and those that it rests on elsewhere."""

    judge: Judge
    ids: list[str]


def _end(ledger: str) -> tuple[int, bytes]:
    """A ledger's size and last bytes."""
    size = os.path.getsize(ledger)
    with open(ledger, "rb") as file:
        file.seek(max(size - TAIL, 0))
        return size, file.read()


def _variables(part: Part) -> Iterator[str]:
    state = part.judge.state
    yield from state.settings.env
    for artifact_id in part.ids:
        yield from state.artifacts[artifact_id].env


def name_of(proposal: str, plan_id: str) -> str:
    """The name of the stamp for a plan that Python code builds."""
    return f"{proposal}#{plan_id}"


def built(source: str, specs: Iterable[ArtifactSpec], functions: Mapping[str, Callable[..., Any]]) -> str:
    """What Python code has built: the plan, and its functions by their code; "" if that cannot be told."""
    if any(spec.make.startswith("live:") and not spec.version for spec in specs):
        return ""
    codes = {getattr(function, "__code__", None) for function in set(functions.values())}
    if None in codes:
        return ""
    parts = sorted((code.co_filename, code.co_firstlineno, marshal.dumps(code)) for code in codes if code is not None)
    return hashlib.sha256(repr((source, parts)).encode()).hexdigest()


def _all_is_well(judge: Judge) -> bool:
    state = judge.state
    unsure = any(state.artifacts[a].effects for a in state.uncertain if a in state.artifacts)
    quiet = not (state.claims or state.failed or state.skipped or state.made or unsure or is_open(state))
    ended = state.run is None or state.run.status == "completed"
    return quiet and ended and all(reason.fresh for reason in judge.reasons.values())


def _sources_changed(part: Part) -> bool:
    """Whether a pattern matches other files now than when it was judged."""
    judge = part.judge
    for pipeline in judge.state.settings.pipelines:
        known = judge.state.units.get(pipeline.name)
        if pipeline.units.files and (
            known is None or len(judge.observer.expand([pipeline.units.files])) != len(known.units)
        ):
            return True
    specs = judge.state.artifacts
    return any(
        not set(judge.observer.expand(specs[a].sources)) <= set(judge.now[a].sources)
        for a in part.ids
        if specs[a].sources and a in judge.now
    )


def _files(part: Part, root: str) -> dict[str, str]:
    """Every file that the verdict depended on, with the digest that it had then ("" for whatever it had)."""
    judge = part.judge
    found = {config: "" for config in CONFIGS if os.path.isfile(os.path.join(root, config))}
    for artifact_id in part.ids:
        for output in judge.recorded(artifact_id):
            if output.kind == "tree":
                found |= {f"{output.path.rstrip('/')}/{name}": "" for name, _ in judge.observer.tree(output.path)}
            elif output.path and judge.shared.is_last(artifact_id, output.path):
                found[output.path] = output.digest
        if artifact_id in judge.now:
            found |= judge.now[artifact_id].sources
        spec = judge.state.artifacts.get(artifact_id)
        if spec is not None and spec.templates:
            found |= {path: judge.files.look(path) for path in judge.templates.files(spec)}
    found |= {os.path.relpath(path, root): digest for path, digest in judge.code.files.items()}
    return found


def _settled(judge: Judge, files: dict[str, str]) -> dict[str, tuple[int, int, int, int]] | None:
    """The stats of these files, if each still is what it was when it was judged and has come to rest since."""
    observer = judge.observer
    rested = False
    found = {}
    for path, digest in files.items():
        seen = observer.look(path)
        if seen.digest[: len(digest)] != digest[: len(seen.digest)] or not seen.digest:
            return None
        entry = observer.entries.get(path)
        if entry is None:
            link = os.lstat(os.path.join(observer.root, path))
            found[path] = (link.st_size, link.st_mtime_ns, link.st_ctime_ns, link.st_ino)
            continue
        if not entry.sure():
            if not rested:
                time.sleep(RACY_NS / 1e9 * 1.5)
                rested = True
            again = observer.look(path)
            entry = observer.entries[path]
            if again.digest != seen.digest or not entry.sure():
                return None
        size, mtime, ctime, inode = entry.stat
        found[path] = (size, mtime, ctime, inode)
    return found


def _folders(part: Part, root: str) -> dict[str, tuple[int, int, int]]:
    """Folders whose listing a pattern or a folder output depends on."""
    names: set[str] = set()
    for pipeline in part.judge.state.settings.pipelines:
        if pipeline.units.files:
            names |= _folders_behind(pipeline.units.files, root)
    for spec in (part.judge.state.artifacts[a] for a in part.ids):
        for pattern in spec.sources:
            if is_glob(pattern):
                names |= _folders_behind(pattern, root)
        for path in spec.produces:
            if path.endswith("/"):
                names |= _below(path.rstrip("/"), root)
    found = {}
    for name in sorted(names):
        there = name
        while not os.path.isdir(os.path.join(root, there)) and there not in (".", "/"):
            there = os.path.dirname(there) or "."  # where it would appear
        try:
            entry = os.stat(os.path.join(root, there))
        except OSError:
            continue
        found[there] = (entry.st_mtime_ns, entry.st_ctime_ns, entry.st_ino)
    return found


def _folders_behind(pattern: str, root: str) -> set[str]:
    """Every folder that expanding a pattern reads."""
    parts = pattern.split("/")
    fixed = []
    for part in parts:
        if is_glob(part):
            break
        fixed.append(part)
    base = "/".join(fixed) or "."
    deep = "**" in parts or sum(is_glob(part) for part in parts[:-1]) > 0
    return _below(base, root) if deep else {base}


def _below(base: str, root: str) -> set[str]:
    """A folder and all folders below it, through links as patterns go; each once, so that circles end."""
    found: set[str] = set()
    seen: set[tuple[int, int]] = set()
    waiting = [base]
    while waiting:
        name = waiting.pop()
        full = os.path.join(root, name)
        try:
            entry = os.stat(full)
            if (entry.st_dev, entry.st_ino) in seen:
                continue
            seen.add((entry.st_dev, entry.st_ino))
            with os.scandir(full) as listing:
                inner = [e.name for e in listing if e.name not in (".headway", ".git") and e.is_dir()]
        except OSError:
            inner = []
        found.add(name)
        waiting += [os.path.normpath(os.path.join(name, n)) for n in inner]
    return found
