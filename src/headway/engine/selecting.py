"""What of a plan is meant: by ids, patterns, units and paths; what a run is about, and what it is to make anew."""

from __future__ import annotations

import fnmatch
import os
from collections.abc import Collection, Sequence

import msgspec

from headway.core.graph import ArtifactGraph
from headway.core.ids import as_word
from headway.core.lifecycle import last_made
from headway.core.nearest import Nearest
from headway.core.plan import ArtifactSpec
from headway.core.state import State
from headway.engine.result import Options
from headway.engine.shared import Shared
from headway.errors import UsageError

LISTED = "headway status lists them"
PLANS = (".py", ".yaml", ".yml", ".json")
"""What plans are often written in, and artifacts are seldom called."""


def selected_by(state: State, options: Options, shared: Shared | None = None) -> set[str]:
    """The artifacts that this run is about: all, or targets and whatever they build on."""
    words = (*options.targets, *options.until)
    if not words:
        return set(state.artifacts)
    graph = ArtifactGraph.over(state.artifacts)
    chains = shared or Shared(graph)
    return graph.closure(_named(state, words), lambda a: (*chains.after(a), *_decided_by(graph[a])))


def _unit(spec: ArtifactSpec) -> tuple[str, str]:
    """The unit that it belongs to; ("", "") if to none."""
    return (spec.pipeline, spec.unit) if spec.unit else ("", "")


def only_before(state: State, options: Options, selected: Collection[str]) -> set[str]:
    """Of these, those of units that no target names or requires: all that is wanted of them is the state that they
    hand on."""
    if not options.targets or not state.units:
        return set()
    specs = state.artifacts
    asked = set(ArtifactGraph.over(specs).below(_named(state, options.targets)))
    if options.until:
        asked |= selected_by(state, msgspec.structs.replace(options, targets=()))
    units = {_unit(specs[a]) for a in asked} | {("", "")}
    return {a for a in selected if _unit(specs[a]) not in units}


def _decided_by(spec: ArtifactSpec) -> tuple[str, ...]:
    """What says whether a round was the last, so that something can stand for it; or that there still is a unit."""
    if spec.gathers == "last":
        return spec.after
    if not spec.pipeline:
        return ()
    from headway.core.pipelines import units_id

    return tuple(other for other in spec.after if other == units_id(spec.pipeline))


def _named(state: State, words: Sequence[str]) -> list[str]:
    """What words name. While it is open which units there are, a word may name one that is yet to come."""
    sources = [p.name for p in state.settings.pipelines if p.units.source]
    unknown = [name for name in sources if name not in state.units or not state.units[name].units]
    if not unknown:
        return resolve(state, words, last=True, hint=f"{LISTED}; a goal is several words in quotes")
    from headway.core.pipelines import units_id

    open_ = [units_id(name) for name in unknown]
    found: list[str] = []
    for word in words:
        try:
            found += resolve(state, [word], last=True)
        except UsageError:
            found += [a for a in open_ if a in state.artifacts]
    return found


def forced_by(state: State, options: Options, selected: set[str]) -> set[str]:
    """The artifacts that are to be made anew whatever there is.

    What names several, as a pattern does, means those that the run is about; what names one is not passed over.
    """
    if options.rerun_all:
        units = {_unit(state.artifacts[a]) for a in _named(state, options.targets)}
        if units and ("", "") not in units:  # what units are made from is not theirs
            return {a for a in selected if _unit(state.artifacts[a]) in units}
        return selected - only_before(state, options, selected)
    named = {word: set(_with_rounds(state, resolve(state, [word]))) & selected for word in options.rerun}
    forced = set().union(*named.values())
    if beside := [word for word, found in named.items() if not found and (word in state.artifacts or not forced)]:
        word = as_word(beside[0])
        raise UsageError(
            f"{word} is to be made anew, and this run is not about it",
            facts={"its targets": ", ".join((*options.targets, *options.until))},
            hint=f"name {word} among the targets, too, or give none",
            code="rerun.beside",
        )
    wanted = set(_named(state, options.targets)) if options.targets else selected
    for word in options.rerun_from:
        phase = _phase(state, word)
        meant = resolve(state, [word], phases=True) if phase is None else phase
        start = [a for a in meant if a in wanted] or (meant if phase is None else [])
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


def made_as(state: State, ids: Sequence[str]) -> list[str]:
    """These, and instead of what stands for a phase what is made: its last round, or that of every unit.

    What stands for the units themselves is left out beside others.
    """
    found: list[str] = []
    for artifact_id in ids:
        spec = state.artifacts[artifact_id]
        if spec.gathers in ("last", "all"):
            found += made_as(state, spec.requires)
        elif not spec.gathers or len(ids) == 1:
            found.append(artifact_id)
    return found


def tells_where(state: State, phase: str) -> bool:
    """Whether the name of a phase is enough to say where to begin anew."""
    return phase not in state.artifacts and sum(p.phase(phase) is not None for p in state.settings.pipelines) == 1


def answers_to_state(artifact_id: str) -> list[str]:
    """What decides about an artifact that was made from another state than there is: begin there anew, or go on."""
    return [f"--rerun-from {as_word(artifact_id)}", "--force-resume"]


def _phase(state: State, word: str) -> list[str] | None:
    """The artifacts of a phase that a word names, None if it names none; an id of that name counts first.

    There are none while it is open which units there are.
    """
    named = [p.name for p in state.settings.pipelines if p.phase(word) is not None]
    if word in state.artifacts or not named:
        return None
    if len(named) > 1:
        raise UsageError(
            f"{word} is a phase of several pipelines",
            facts={"pipelines": ", ".join(named)},
            hint=f"headway run {named[0]} --rerun-from '*/{word}'",
            code="phase.which",
        )
    return [a for a, spec in state.artifacts.items() if spec.phase == word and spec.unit]


def resolve(
    state: State, words: Sequence[str], *, phases: bool = False, last: bool = False, hint: str = LISTED
) -> list[str]:
    """Artifacts that words name: ids, patterns of ids, or output paths. `phases`: a phase could have been meant.

    A path that several artifacts change in place names the one whose bytes are there; `last`: the last one.
    """
    found: list[str] = []
    for word in words:
        if word in state.artifacts:
            found.append(word)
            continue
        of_unit = [a for a, s in state.artifacts.items() if word in (s.unit, s.pipeline)] if state.units else []
        if of_unit and word:
            found += of_unit
            continue
        matches = [a for a in state.artifacts if fnmatch.fnmatchcase(a, word)] if set(word) & set("*?[") else []
        matches = matches or _writers(state, os.path.normpath(word), last=last)
        if not matches:
            named = [phase.id for p in state.settings.pipelines for phase in p.phases] if phases else []
            near = _of_unit_named_with_pipeline(state, word) or Nearest([*named, *state.artifacts]).of(word)
            raise UsageError(
                f"Plan {state.plan_id} has no artifact {'or phase ' if named else ''}{word}",
                facts={"did you mean": near} if near else {},
                hint=f"{LISTED}; a plan file is named by --plan {as_word(word)}" if word.endswith(PLANS) else hint,
                code="artifact.unknown",
            )
        found += matches
    return found


def _of_unit_named_with_pipeline(state: State, word: str) -> str:
    """`p03/html`, where `post:p03/html` was asked for: only what stands for all units begins with the pipeline."""
    pipeline, _, rest = word.partition(":")
    own = [a for a, spec in state.artifacts.items() if spec.unit and spec.pipeline == pipeline]
    return Nearest(own).of(rest) if not rest.startswith("*") else ""


def _writers(state: State, path: str, *, last: bool) -> list[str]:
    """Who writes a path. Of several that do so in turn, the newest that was made, else the first; or the very last."""
    written = {
        a: given
        for a, spec in state.artifacts.items()
        for given in (*spec.produces, *spec.modifies)
        if os.path.normpath(given) == path
    }
    if len(written) < 2:
        return list(written)
    stages = Shared(ArtifactGraph.over(state.artifacts)).chains.get(next(iter(written.values())), list(written))
    if last:
        return stages[-1:]
    return [a for a in stages if last_made(state, a) is not None][-1:] or stages[:1]
