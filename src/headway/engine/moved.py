"""What changed while a recipe ran: its sources and requirements, by somebody's hand, or files that it wrote itself."""

from __future__ import annotations

from collections.abc import Collection, Mapping

import msgspec

from headway.core.fingerprint import LENGTH
from headway.core.paths import is_glob, would_find
from headway.core.plan import ArtifactSpec
from headway.core.state import MOVED, Completion, Fingerprint
from headway.engine.judge import Judge
from headway.engine.making import Task
from headway.engine.sources import Moment, redirects_to


def changed_meanwhile(
    judge: Judge, task: Task, before: Completion | None, moment: Moment
) -> tuple[dict[str, str], list[str]]:
    """Sources and requirements that changed while the recipe ran, each with its file; and what it itself wrote.

    `moment`: what was looked at since it ended.
    """
    spec, files = task.job.spec, judge.files
    moved: dict[str, str] = {}
    wrote: list[str] = []
    if spec.sources or spec.run or spec.verify:
        files.forget(moment.first(spec.sources))
        declared = set(files.declared(spec))
        files.forget(moment.first(task.fp.sources))
        for path in {*task.fp.sources, *declared}:
            if files.look(path) != task.fp.sources.get(path, ""):
                if path in declared or not (_changed_before(before, path) or redirects_to(spec, path)):
                    moved[path] = path
                else:
                    wrote.append(path)
    if spec.run or spec.verify:
        files.forget_words()
        wrote += [w for w in files.words(spec, task.job.variables) if w not in task.fp.sources and w not in wrote]
    if spec.templates:
        files.forget(moment.first(judge.templates.files(spec)))
        now = judge.templates.digests(spec)
        moved |= {label: label for label, digest in task.fp.templates.items() if now.get(label) != digest}
    for path in spec.reads:
        if judge.observer.look(path).digest != task.fp.before[path]:
            moved[path] = path
    for path in moved_inputs(judge, spec, moment, cheaply=False):
        owner = next(r for r in spec.requires if any(o.path == path for o in judge.recorded(r)))
        moved[owner] = path
    return dict(sorted(moved.items())) if moved else moved, sorted(wrote) if wrote else wrote


def read_too_early(judge: Judge, made: Collection[str]) -> dict[str, str]:
    """What was kept or made before others made anew what it reads by its path, which it does not wait for."""
    state, chains = judge.state, judge.shared.chains
    paths = {o.path.rstrip("/"): o.digest for a in made for o in judge.recorded(a) if o.path and o.path not in chains}
    found: dict[str, str] = {}
    for artifact_id, spec in state.artifacts.items():
        done = state.completed.get(artifact_id) if spec.sources else None
        if done is not None and judge.reasons[artifact_id].fresh and (path := _newer(spec, done.fp.sources, paths)):
            found[artifact_id] = path
    return found


def _newer(spec: ArtifactSpec, read: Mapping[str, str], paths: Mapping[str, str]) -> str:
    """The first of these paths that it reads and that is not what was read, or was not there; or ""."""
    if not paths.keys().isdisjoint(read):
        for path in read.keys() & paths.keys():
            if read[path][:LENGTH] != paths[path][:LENGTH]:
                return path
    patterns = [source for source in spec.sources if is_glob(source)]
    others = (path for path in paths if path not in read and path not in spec.produces) if patterns else ()
    return next((path for path in others if any(would_find(pattern, path) for pattern in patterns)), "")


def with_moves(fp: Fingerprint, spec: ArtifactSpec, moved: Mapping[str, str], wrote: Collection[str]) -> Fingerprint:
    """What an artifact was made from, with what changed meanwhile marked: whatever it is now, it is not that."""
    if not moved and not wrote:
        return fp
    return msgspec.structs.replace(
        fp,
        sources={p: MOVED if p in moved else d for p, d in fp.sources.items() if p not in wrote},
        inputs={r: MOVED if moved.get(r) else d for r, d in fp.inputs.items()},
        templates={t: MOVED if moved.get(t) else d for t, d in fp.templates.items()},
        before={p: MOVED if p in spec.reads and moved.get(p) else d for p, d in fp.before.items()},
    )


def moved_inputs(judge: Judge, spec: ArtifactSpec, moment: Moment, *, cheaply: bool) -> list[str]:
    """Outputs of requirements that are not what was recorded; `cheaply` trusts what the file system tells."""
    held, found = moment.held, list[str]()
    if held.issuperset(spec.requires):
        return found
    chains, holds = judge.shared.chains, judge.observer.holds
    for required in spec.requires:
        if required in held:
            continue
        moved = False
        for output in judge.recorded(required):
            path = output.path
            if not path or path in chains or (cheaply and output.kind == "tree"):
                continue
            if not holds(path.rstrip("/"), output.digest, cheaply=cheaply):
                moved = True
                found.append(path)
        if not moved:
            held.add(required)
    return found


def _changed_before(before: Completion | None, path: str) -> bool:
    """The last attempt saw the same file change: then it is the recipe that writes it, and nobody else."""
    return before is not None and (path in before.wrote or before.fp.sources.get(path) == MOVED)
