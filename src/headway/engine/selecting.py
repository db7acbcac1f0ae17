"""What of a plan is meant: by ids, patterns, units and paths; what a run is about, and what it is to make anew."""

from __future__ import annotations

import fnmatch
import os
from collections.abc import Sequence

from headway.core.graph import ArtifactGraph
from headway.core.nearest import Nearest
from headway.core.pipelines import units_id
from headway.core.state import State
from headway.engine.result import Options
from headway.engine.shared import Shared
from headway.errors import UsageError

LISTED = "headway status lists them"


def selected_by(state: State, options: Options, shared: Shared | None = None) -> set[str]:
    """The artifacts that this run is about: all, or targets and whatever they build on."""
    words = (*options.targets, *options.until)
    if not words:
        return set(state.artifacts)
    graph = ArtifactGraph.over(state.artifacts)
    chains = shared or Shared(graph)
    found = set(graph.below(_named(state, words)))
    while more := {stage for a in found for stage in chains.after(a)} - found:
        found |= set(graph.below(more))
    return found


def _named(state: State, words: Sequence[str]) -> list[str]:
    """What words name. While it is open which units there are, a word may name one that is yet to come."""
    sources = [p.name for p in state.settings.pipelines if p.units.source]
    open_ = [units_id(name) for name in sources if name not in state.units or not state.units[name].units]
    if not open_:
        return resolve(state, words, hint=f"{LISTED}; a goal has a blank in it")
    found: list[str] = []
    for word in words:
        try:
            found += resolve(state, [word])
        except UsageError:
            found += [a for a in open_ if a in state.artifacts]
    return found


def forced_by(state: State, options: Options, selected: set[str]) -> set[str]:
    """The artifacts that are to be made anew whatever there is."""
    wanted = set(resolve(state, options.targets)) if options.targets else selected
    if options.rerun_all:
        return set(selected)
    forced = set(_with_rounds(state, resolve(state, options.rerun)))
    for word in options.rerun_from:
        phase = _phase(state, word)
        start = [a for a in phase if a in wanted] if phase else resolve(state, [word], phases=True)
        forced |= set(ArtifactGraph.over(state.artifacts).above(_with_rounds(state, start)))
    return {a for a in forced & selected if not state.artifacts[a].gathers}


def _with_rounds(state: State, ids: Sequence[str]) -> list[str]:
    """These, and with what only stands for a phase of a loop, or of all units, every round of it."""
    specs = (state.artifacts[a] for a in ids)
    stand = {(spec.pipeline, spec.phase, spec.unit) for spec in specs if spec.gathers in ("last", "all")}
    if not stand:
        return [*ids]
    phases = {a: (spec.pipeline, spec.phase, spec.unit) for a, spec in state.artifacts.items() if spec.phase}
    return [*ids, *(a for a, phase in phases.items() if phase in stand or (*phase[:2], "") in stand)]


def _phase(state: State, word: str) -> list[str]:
    """The artifacts of a phase that a word names; an id of that name counts first."""
    named = [p.name for p in state.settings.pipelines if p.phase(word) is not None]
    if word in state.artifacts or not named:
        return []
    if len(named) > 1:
        raise UsageError(
            f"{word} is a phase of several pipelines",
            facts={"pipelines": ", ".join(named)},
            hint=f"name artifacts: --rerun-from '*/{word}' with targets of one of them",
            code="phase.which",
        )
    return [a for a, spec in state.artifacts.items() if spec.phase == word and spec.unit]


def resolve(state: State, words: Sequence[str], *, phases: bool = False, hint: str = LISTED) -> list[str]:
    """Artifacts that words name: ids, patterns of ids, or output paths. `phases`: a phase could have been meant."""
    found: list[str] = []
    for word in words:
        if word in state.artifacts:
            found.append(word)
            continue
        of_unit = [a for a, s in state.artifacts.items() if word in (s.unit, s.pipeline)] if state.units else []
        if of_unit and word:
            found += of_unit
            continue
        path = os.path.normpath(word)
        matches = [a for a in state.artifacts if fnmatch.fnmatchcase(a, word)] if set(word) & set("*?[") else []
        matches = matches or [
            a for a, s in state.artifacts.items() if path in (os.path.normpath(p) for p in s.produces)
        ]
        if not matches:
            named = [phase.id for p in state.settings.pipelines for phase in p.phases] if phases else []
            near = Nearest([*named, *state.artifacts]).of(word)
            raise UsageError(
                f"Plan {state.plan_id} has no artifact {'or phase ' if named else ''}{word}",
                facts={"did you mean": near} if near else {},
                hint=hint,
                code="artifact.unknown",
            )
        found += matches
    return found
