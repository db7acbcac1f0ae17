"""What changed while a recipe ran, or behind it: its sources and requirements, by somebody's hand or by others of the
run, or files that it wrote itself.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

import msgspec

from headway.core.paths import beginning_as, folders, is_glob, parents
from headway.core.plan import ArtifactSpec
from headway.core.state import MOVED, Completion, Fingerprint, Output
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
    for path in moved_inputs(judge, spec.requires, moment, cheaply=False):
        owner = next(r for r in spec.requires if any(o.path == path for o in judge.recorded(r)))
        moved[owner] = path
    return dict(sorted(moved.items())) if moved else moved, sorted(wrote) if wrote else wrote


def read_too_early(judge: Judge, selected: Collection[str], arrived: Iterable[str]) -> dict[str, str]:
    """Of what was asked for: what was kept or made before something that it reads, and does not wait for, was made
    anew; with the path. Only what may have changed so is looked at once more.
    """
    files, state, chains = judge.files, judge.state, judge.shared.chains
    readers = [a for a, spec in state.artifacts.items() if spec.sources and a in selected]
    recorded = judge.recorded_all(list(arrived)) if readers else ()
    outputs = [o for found in recorded for o in found if o.path and o.path not in chains]
    outputs += _left_in_place(judge) if readers and judge.displaced else ()
    if not outputs:
        return {}
    has_patterns = any(map(is_glob, {source for a in readers for source in state.artifacts[a].sources}))
    made = [output.path.rstrip("/") for output in outputs]
    if has_patterns:
        made.sort()
    above = folders(made)  # few, however many files are in them
    touched = {*made, *above, *[folder for path in above for folder in parents(path)]} - {""}
    trees = {output.path.rstrip("/") for output in outputs if output.kind == "tree"}
    files.forget_matches()
    found: dict[str, str] = {}
    for artifact_id in readers:
        spec, done = state.artifacts[artifact_id], state.completed.get(artifact_id)
        reason = judge.reasons.get(artifact_id)  # of what came into the plan meanwhile there is none
        if done is None or reason is None or not reason.fresh:
            continue
        read = done.fp.sources
        perhaps = [path for path in read if path in touched or _is_inside(path, trees)]
        files.forget(perhaps)
        path = next((path for path in perhaps if files.look(path) != read[path]), "")
        if not path and has_patterns and any(_may_find_more(source, made, trees) for source in spec.sources):
            path = next((path for path in files.declared(spec) if path not in read), "")
        if path:
            found[artifact_id] = path
    return found


def _left_in_place(judge: Judge) -> Iterator[Output]:
    """Files that were changed in place, as far as all who change them are done: who that is may have become known only
    after somebody read them."""
    chains, reasons, stages = judge.shared.chains, judge.reasons, judge.stages
    for path in sorted(path for path in judge.displaced if path in chains):
        newest = stages.newest(path)
        output = stages.output_of(newest, path) if newest is not None else None
        if output is not None and all(a in reasons and reasons[a].fresh for a in chains[path]):
            yield output


def _may_find_more(source: str, made: Sequence[str], trees: set[str]) -> bool:
    """Whether a pattern may find what was made, or something in it."""
    return is_glob(source) and (bool(next(beginning_as(source, made), "")) or _is_inside(source, trees))


def _is_inside(path: str, trees: set[str]) -> bool:
    return bool(trees) and not trees.isdisjoint(parents(path))


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


def moved_inputs(judge: Judge, requires: Iterable[str], moment: Moment, *, cheaply: bool) -> list[str]:
    """Outputs of requirements that are not what was recorded; `cheaply` trusts what the file system tells.

    Those that are will not be looked at again in this moment: what many artifacts require is best asked for at once.
    """
    held, chains = moment.held, judge.shared.chains
    asked = [required for required in requires if required not in held]
    if not asked:
        return []
    outputs = [o for found in judge.recorded_all(asked) for o in found if o.path and o.path not in chains]
    found = judge.observer.gone(outputs, cheaply=cheaply)
    moved = set(found)
    held.update(asked if not moved else [r for r in asked if moved.isdisjoint(o.path for o in judge.recorded(r))])
    return found


def _changed_before(before: Completion | None, path: str) -> bool:
    """The last attempt saw the same file change: then it is the recipe that writes it, and nobody else."""
    return before is not None and (path in before.wrote or before.fp.sources.get(path) == MOVED)
