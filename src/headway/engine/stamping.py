"""When a stamp may be left, and what it has to name: everything that the verdict "all is fresh" depended on."""

from __future__ import annotations

import hashlib
import os
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec

from headway import bulk, stamp
from headway.core.approval import is_open
from headway.core.fingerprint import LENGTH
from headway.core.paths import is_glob
from headway.core.state import Position, State
from headway.engine.result import RunResult
from headway.files.observe import AS_LEFT, RACY_NS, SKIPPED, manifest_of
from headway.version import VERSION

if TYPE_CHECKING:
    from headway.bulk import Known
    from headway.engine.judge import Judge
    from headway.files.observe import Observer

TAIL = 36
"""So much of the end of a ledger tells it from any other: the hash of its newest event."""
PLAN_FILES = (".yaml", ".yml", ".json")
SEARCH_PATH = "PYTHONPATH"
"""Where the project's modules are looked for depends on it."""
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
    state, before = judge.state, judge.standing
    identity = _identity(state, judge.functions, root) if _all_is_well(judge) else None
    if identity is None or state.proposal is None:
        return False
    plan, made = identity
    there = judge.elsewhere
    if there is not None and there.leaves_the_project:  # too much over there would have to be named
        stamp.forget(home, plan)
        return False
    others = {p: Part(j, there.judged.get(p, [])) for p, j in there.judges.items() if j} if there is not None else {}
    plans = os.path.dirname(os.path.dirname(ledger))
    ends = {path: _end(path) for path in (ledger, *(os.path.join(plans, p, "ledger.jsonl") for p in others))}
    if there is not None and [size for size, _ in list(ends.values())[1:]] != [there.sizes[p] for p in others]:
        return False  # another plan has moved since it was judged
    parts = [Part(judge, list(state.artifacts) if before is None else judge.order), *others.values()]
    named = _named(judge, parts, root, environ, {} if made else {plan: state.proposal.source})
    if named is None or position.hash.encode() not in ends[ledger][1]:
        stamp.forget(home, plan)
        return False
    stamp.write(
        home,
        plan,
        VERSION,
        text=text,
        document=msgspec.json.format(msgspec.json.encode(result.to_dict()), indent=2).decode(),
        ledgers=[(os.path.relpath(path, root), *end) for path, end in ends.items()],
        env=named.env,
        files=named.files,
        folders=named.folders,
        absent=sorted(named.absent),
        apart=named.apart,
        built=made,
    )
    return True


class Named(NamedTuple):
    """What a stamp names: files as they are, folders by their listing, what is not there, and variables.

    Files that somebody writes come first: they change most often, and whoever looks stops at the first that did.
    `apart`: those of the files that no artifact reads or leaves.
    """

    files: dict[str, Known]
    folders: dict[str, tuple[int, int, int]]
    absent: set[str]
    apart: dict[str, str]
    env: dict[str, str | None]


def _named(
    judge: Judge, parts: list[Part], root: str, environ: Mapping[str, str], proposal: dict[str, str]
) -> Named | None:
    """All that the verdict depended on; None if any of it is not, or may not be, what it was when it was judged."""
    before = judge.standing
    folders = {name: found for part in parts for name, found in _folders(part, root).items()}
    absent = {path for part in parts for path in (*part.judge.absent_words(), *part.judge.code.absent)}
    absent |= {path for path in CONFIGS if not os.path.lexists(os.path.join(root, path))}
    if before is not None:
        if not _lists_as_before(judge, folders, root):
            return None
        folders, absent = before.folders | folders, absent | before.absent
    changed = any(map(_sources_changed, parts))
    absent |= {path for part in parts for path in part.judge.observer.broken}
    changed = changed or any(stamp.is_there(os.path.join(root, path)) for path in absent)
    apart = {path: digest for part in parts for path, digest in _apart(part, root).items()} | proposal
    read = _files(parts)
    files = None if changed or read is None else _settled(judge, read | apart)
    texts = _texts(parts, root)
    if files is None or texts is None or not _is_all(judge, files):
        return None
    env = {name: environ.get(name) for part in parts for name in _variables(part)}
    if any(part.judge.code.files for part in parts):
        env[SEARCH_PATH] = environ.get(SEARCH_PATH)
    if before is not None:
        files, env = before.untouched | files, before.env | env
        apart |= dict.fromkeys(before.apart, "")
    written = {path: files[path] for path in judge.files.not_made(files)}
    return Named(written | files | texts, folders, absent, apart, env)


class Standing(NamedTuple):
    """A stamp that would hold but for some files: what it names, and these."""

    changed: frozenset[str]
    files: Mapping[str, Known]
    folders: dict[str, tuple[int, int, int]]
    absent: frozenset[str]
    env: dict[str, str | None]
    apart: tuple[str, ...]

    @property
    def untouched(self) -> dict[str, Known]:
        """The files that are what they were."""
        files = dict(self.files)
        for path in self.changed:
            del files[path]
        return files


def standing(
    state: State,
    functions: Mapping[str, Callable[..., Any]],
    *,
    position: Position,
    root: str,
    environ: Mapping[str, str],
) -> Standing | None:
    """What a stamp says of this very state in which some files have changed; None if it says nothing of it."""
    identity = _identity(state, functions, root)
    found = stamp.changes(root, identity[0], VERSION, environ, built=identity[1]) if identity is not None else None
    if found is None:
        return None
    changed, known = found
    if len(known["ledgers"]) > 1 or position.hash.encode() not in known["ledgers"][0][2]:
        return None  # it is about other plans as well, or about another time
    return Standing(changed, known["files"], known["folders"], frozenset(known["absent"]), known["env"], known["apart"])


def concerned(state: State, changed: Collection[str]) -> set[str] | None:
    """The artifacts that look at these files, by what they were made from and left; None if a file is nobody's."""
    found: set[str] = set()
    touched = _with_folders(changed)
    nothing_of = touched.keys().isdisjoint
    known: set[str] = set()
    by_templates: dict[tuple[str, ...], list[str]] = {}
    for artifact_id, done in state.completed.items():
        fp = done.fp
        hit = [output.path for output in done.outputs if output.path in touched]
        if (fp.sources or fp.before) and not (nothing_of(fp.sources) and nothing_of(fp.before)):
            hit += [path for path in (*fp.sources, *fp.before) if path in touched]
        if fp.templates:  # many artifacts have the same
            labels = tuple(fp.templates)
            if labels not in by_templates:
                paths = (path for label in labels for path in (label, label.partition(": ")[2]))
                by_templates[labels] = [path for path in paths if path in touched]
            hit += by_templates[labels]
        if hit:
            found.add(artifact_id)
            known.update(*[touched[path] for path in hit])
    return found if known.issuperset(changed) else None


def _with_folders(paths: Iterable[str]) -> dict[str, set[str]]:
    """Files, and every folder that one of them is in: a folder is touched by what is touched in it.

    As an output, a folder is written with a slash at its end.
    """
    found: dict[str, set[str]] = {}
    for path in paths:
        place = path
        while place:
            if place not in found:
                found[place] = found[f"{place}/"] = set()
            found[place].add(path)
            place = place.rpartition("/")[0].rstrip("/")
    return found


def _is_all(judge: Judge, files: Mapping[str, Known]) -> bool:
    """Whether what has changed by now concerns only artifacts that were judged."""
    before = judge.standing
    if before is None:
        return True
    who = concerned(judge.state, {path for path, found in files.items() if before.files.get(path) != found})
    return who is not None and who.issubset(judge.order)


def _lists_as_before(judge: Judge, folders: Mapping[str, tuple[int, int, int]], root: str) -> bool:
    """Whether what came or went in these folders concerns only artifacts that were judged."""
    before = judge.standing
    moved = {name for name, found in folders.items() if before is not None and before.folders.get(name, found) != found}
    if not moved:
        return True
    judged = set(judge.order)
    return moved.isdisjoint(_folders(Part(judge, [a for a in judge.state.artifacts if a not in judged]), root))


def _identity(state: State, functions: Mapping[str, Callable[..., Any]], root: str) -> tuple[str, str] | None:
    """The name of a plan's stamp, and for one that Python code builds what it built; None if it can have none."""
    if state.proposal is None:
        return None
    source, path = state.proposal.source, state.proposal.path
    if functions:
        made = stamp.built(source, state.artifacts.values(), functions)
        return (stamp.name_of(state.plan_id), made) if made else None
    is_file = os.path.splitext(path)[1] in PLAN_FILES and os.path.isfile(os.path.join(root, path))
    return (path, "") if is_file else None


class Part:
    """Artifacts of one plan that the verdict was about: all of the plan's own, and those that it rests on elsewhere."""

    def __init__(self, judge: Judge, ids: list[str]) -> None:
        self.judge = judge
        self.left = dict(zip(ids, judge.recorded_all(ids), strict=True))
        """What stands at the paths of each."""
        specs = map(judge.state.artifacts.__getitem__, ids)
        self.special = [spec for spec in specs if spec.sources or spec.reads or spec.templates or spec.env]
        """Those that name files which others do not make, or variables: of many plans they are few."""


def _end(ledger: str) -> tuple[int, bytes]:
    """A ledger's size and last bytes."""
    size = os.path.getsize(ledger)
    with open(ledger, "rb") as file:
        file.seek(max(size - TAIL, 0))
        return size, file.read()


def _variables(part: Part) -> Iterator[str]:
    yield from part.judge.state.settings.env
    for spec in part.special:
        yield from spec.env


def _all_is_well(judge: Judge) -> bool:
    state = judge.state
    unsure = any(state.artifacts[a].effects for a in state.uncertain if a in state.artifacts)
    quiet = not (state.claims or state.failed or state.skipped or state.made or unsure or is_open(state))
    ended = state.run is None or state.run.status == "completed"
    return quiet and ended and not judge.code.outdated and {r.code for r in judge.reasons.values()} <= {"fresh"}


def _sources_changed(part: Part) -> bool:
    """Whether a pattern matches files that were not there when it was judged, or a word of a command names one."""
    judge = part.judge
    for pipeline in judge.state.settings.pipelines:
        known = judge.state.units.get(pipeline.name)
        if pipeline.units.files and (
            known is None or len(judge.observer.expand([pipeline.units.files])) != len(known.units)
        ):
            return True
    judge.files.forget_matches()
    by_words = [spec for a in part.left if (spec := judge.state.artifacts[a]).run or spec.verify]
    return any(
        not judge.now[spec.id].sources.keys() >= {*judge.sources_now(spec)}
        for spec in (*(spec for spec in part.special if spec.sources), *by_words)
        if spec.id in judge.now
    )


def _apart(part: Part, root: str) -> dict[str, str]:
    """Files that no artifact reads or leaves, but that say how they are made: code and configuration."""
    found = {config: "" for config in CONFIGS if os.path.isfile(os.path.join(root, config))}
    return found | {os.path.relpath(path, root): digest for path, digest in part.judge.code.files.items()}


def _files(parts: Iterable[Part]) -> dict[str, str] | None:
    """Every file that artifacts read or left, with the digest that it had then ("" for whatever it had).

    None if one was read by somebody before it changed, and by somebody else after that.
    """
    found: dict[str, str] = {}
    for part in parts:
        left, now = _left(part), part.judge.now
        made = dict(left)
        is_plain = len(made) == len(left) and found.keys().isdisjoint(made)
        if not is_plain or any(spec.reads or spec.templates for spec in part.special):
            if not _add_one_by_one(found, part):
                return None
            continue
        found = found | made if found else made
        for fp in [fp for a in part.left if (fp := now.get(a)) is not None and fp.sources]:
            for path, digest in fp.sources.items():
                if found.setdefault(path, digest)[:LENGTH] != digest[:LENGTH]:
                    return None
    return found


def _add_one_by_one(found: dict[str, str], part: Part) -> bool:
    """The same where several may have left a file, or some read prompts, or files that others change in place; whether
    they all agree."""
    judge = part.judge
    made_from, artifacts, chains = judge.now, judge.state.artifacts, judge.shared.chains
    for artifact_id, outputs in part.left.items():
        for output in outputs:
            path, digest = output.path, output.digest
            if path and (path not in chains or judge.shared.is_last(artifact_id, path)):
                path = path.rstrip("/")
                if path in found and found[path][:LENGTH] != digest[:LENGTH]:
                    return False
                found[path] = digest
        now, spec = made_from.get(artifact_id), artifacts.get(artifact_id)
        if now is not None and now.sources:
            for path, digest in now.sources.items():
                if found.setdefault(path, digest)[:LENGTH] != digest[:LENGTH]:
                    return False
        if now is not None and spec is not None and spec.reads:
            found |= {p: now.before[p] for p in spec.reads if p not in judge.shared.chains}
        if spec is not None and spec.templates:
            if now is not None and now.templates != judge.templates.digests(spec):
                return False
            found |= {path: judge.files.look(path) for path in judge.templates.files(spec)}
    return True


def _left(part: Part) -> list[tuple[str, str]]:
    """What artifacts left, each with its digest; of a file that several change in place, what the last one did."""
    chains, is_last = part.judge.shared.chains, part.judge.shared.is_last
    return [
        (output.path.rstrip("/"), output.digest)
        for artifact_id, outputs in part.left.items()
        for output in outputs
        if output.path and (output.path not in chains or is_last(artifact_id, output.path))
    ]


def _texts(parts: Iterable[Part], root: str) -> dict[str, Known] | None:
    """The files that hold the texts of artifacts without files, as they are; None if one is gone."""
    held: set[str] = set()
    for part in parts:
        texts = (output for outputs in part.left.values() for output in outputs if not output.path)
        held |= {part.judge.outputs.blobs.file_of(text.digest) for text in texts}
    found = {os.path.relpath(path, root): stamp.stat_at(path) for path in sorted(held)}
    stats = {path: stat for path, stat in found.items() if stat is not None}
    return stats if len(stats) == len(found) else None


def _settled(judge: Judge, files: dict[str, str]) -> dict[str, Known] | None:
    """The stats of these files, if each still is what it was when it was judged and has come to rest since."""
    observer = judge.observer
    rested = False
    found = _undoubted(observer, files)
    waiting = [one for one in files.items() if one[0] not in found] if len(found) < len(files) else []
    for path, digest in waiting:
        seen = observer.look(path)
        if seen.digest[: len(digest)] != digest[: len(seen.digest)] or not seen.digest:
            return None
        if seen.kind == "tree":
            inside = list(observer.tree(path))
            if hashlib.sha256(manifest_of(inside)).hexdigest() != seen.digest:
                return None
            digests = {f"{path}/{name}": inner.digest for name, inner in inside}
            sure = _undoubted(observer, digests)
            found |= sure
            waiting += [one for one in digests.items() if one[0] not in sure]
            continue
        entry = observer.entries.get(path)
        if entry is None:
            link = stamp.stat_at(os.path.join(observer.root, path))
            if link is None:
                return None
            found[path] = link
            continue
        if entry.rest() <= 0:
            if not rested:
                time.sleep(RACY_NS / 1e9 * 1.5)
                rested = True
            again = observer.look(path)
            entry = observer.entries[path]
            if again.digest != seen.digest or entry.rest() <= 0:
                return None
        found[path] = entry.stat
    return found


def _undoubted(observer: Observer, files: Mapping[str, str]) -> dict[str, Known]:
    """The stats of those files that nothing casts doubt on, as most are; the others have to be looked at.

    What Headway wrote itself is named as it left it: should it be something else by now, the stamp does not hold.
    Others are looked at once more, for what was read may have been read through a link.
    """
    entries = observer.entries
    found: dict[str, Known] = {}
    read: list[str] = []
    for path, digest in files.items():
        entry = entries.get(path)
        if entry is None:
            continue
        _, mtime, ctime, _ = known = entry.stat
        rest = entry.at - RACY_NS - max(mtime, ctime)  # as the entry would say
        if rest > 0 and entry.digest.startswith(digest):
            found[path] = known
            if rest != AS_LEFT:
                read.append(path)
    for number in bulk.changed(os.path.join(observer.root, ""), read, [found[path] for path in read]):
        del found[read[number]]
    return found


def _folders(part: Part, root: str) -> dict[str, tuple[int, int, int]]:
    """Folders whose listing a pattern, or a folder that is read or was made, depends on."""
    names: set[str] = set()
    for pipeline in part.judge.state.settings.pipelines:
        if pipeline.units.files:
            names |= _folders_behind(pipeline.units.files, root)
    for pattern in {pattern for spec in part.special for pattern in spec.sources}:
        if is_glob(pattern):
            names |= _folders_behind(pattern, root)
        elif os.path.isdir(os.path.join(root, pattern)):
            names |= _below(pattern.rstrip("/"), root, all_of_it=True)
    for tree in (output for outputs in part.left.values() for output in outputs if output.kind == "tree"):
        names |= _below(tree.path.rstrip("/"), root, all_of_it=True)
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


def _below(base: str, root: str, *, all_of_it: bool = False) -> set[str]:
    """A folder and all folders below it, each once, so that circles end.

    Patterns go through links and see nothing hidden; a folder is all that is in it, and links are what they are.
    """
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
                folders = (e.name for e in listing if e.is_dir(follow_symlinks=not all_of_it))
                inner = [folder for folder in folders if all_of_it or folder not in SKIPPED]
        except OSError:
            inner = []
        found.add(name)
        waiting += [os.path.normpath(os.path.join(name, n)) for n in inner]
    return found
