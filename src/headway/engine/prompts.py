"""Prompts change on purpose: which templates of completed artifacts changed, and whether that is to be asked about.

If the plan's last whole run left nothing stale, a changed template is an ordinary change. If it did not, going on is
resuming, and work of two prompts would be mixed without a word: so it is asked about first. Looks; makes nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import msgspec

from headway.core.events import Came, PlanReset, Record
from headway.core.fingerprint import content_digest
from headway.core.ids import as_word
from headway.core.state import Output, PromptChange, State
from headway.engine.judge import Judge
from headway.engine.result import Decision, Options
from headway.engine.selecting import forced_by, tells_where

History = Callable[[Collection[str]], Iterable[Record]]
"""The completions in a plan's ledger, and what withdrew them: of some artifacts, or, given none, of all."""

FEW = 3
"""So many ids are named one by one where something is to be typed."""


class Question(NamedTuple):
    """A changed template that is to be decided about: what was made with it, and what making it again may cost.

    With all that was made from it since, by way of a state that is handed on, too. `formerly`: the file in whose place
    another one is named now, if that is what changed; `gone`: that there is none, in words; `problem`: why no prompt
    can be made with it as it is.
    """

    template: str
    formerly: str
    gone: str
    was: str
    now: str
    artifacts: tuple[str, ...]
    phases: tuple[str, ...]
    units: tuple[str, ...]
    at_most: int
    ms: int
    problem: str = ""

    def to_dict(self) -> dict[str, Any]:
        """The same for machines."""
        return {**self._asdict(), "artifacts": list(self.artifacts), "phases": list(self.phases)} | {
            "units": list(self.units)
        }

    @property
    def text(self) -> str:
        """The same in words."""
        became = f"takes the place of {self.formerly}" if self.formerly else "changed" if self.was else "was added"
        became = f"{became} ({self.was[:8] or 'nothing'} → {self.now[:8]})" if self.now else self.gone
        maker = f"{self.formerly or 'It'} made" if self.was else "Made without it:"
        phases = f"phase{'s' * (len(self.phases) > 1)} {', '.join(self.phases)}" if self.phases else ""
        shown = ", ".join(self.units[:3]) + (f" and {len(self.units) - 3} more" if len(self.units) > 3 else "")
        units = f" of {len(self.units)} unit{'s' * (len(self.units) > 1)} ({shown})" if self.units else ""
        what = f"{phases}{units}" or ", ".join(self.artifacts[:5])
        again = f"{self.at_most} artifact{'s' * (self.at_most != 1)} at most, {self.ms / 1000:.1f} s when last made"
        return f"{self.template} {became}. {maker} {what}. Making again: {again}{self.problem and f'. {self.problem}'}"


def answers(state: State, questions: Sequence[Question], options: Options, selected: set[str]) -> list[str]:
    """What decides about them. Making anew begins with the first of their phases, if they are of all units that have
    come so far, or else with what they are about: nobody is to make again what no prompt has changed.
    """
    made = list(dict.fromkeys(a for question in questions for a in question.artifacts))
    first = state.artifacts[made[0]]
    alike = all(state.artifacts[a].pipeline == first.pipeline for a in made)
    if first.phase and alike and tells_where(state, first.phase) and _is_of_all(state, made, first.phase, selected):
        begin = [first.phase]
    else:
        units = {state.artifacts[a].unit or a: a for a in reversed(made)}  # the first of each
        begin = [a for a in made if units[state.artifacts[a].unit or a] == a]
    anew = [" ".join(f"--rerun-from {as_word(a)}" for a in begin)] if len(begin) <= FEW else []
    if forced_by(state, msgspec.structs.replace(options, rerun_all=True), selected).issuperset(made):
        anew.append("--rerun-all")
    return ["--resume-allow-prompt-change REASON", *anew]


def _is_of_all(state: State, made: Sequence[str], phase: str, selected: Collection[str]) -> bool:
    """Whether these are of every unit of which a phase was made."""
    units = {state.artifacts[a].unit for a in made}
    return all(
        spec.unit in units
        for a, spec in state.artifacts.items()
        if spec.phase == phase and spec.unit and a in state.completed and a in selected
    )


def asked_about(judge: Judge, selected: Collection[str], options: Options) -> list[Question]:
    """Changed templates that the user has to decide about before anything is made."""
    state = judge.state
    policy = state.settings.prompt_changes
    if options.prompt_change or policy == "follow":
        return []
    if policy == "ask" and (state.whole or state.run is None):
        return []
    former = changed(judge, selected)
    unused = _tried_in_vain(judge) if former else frozenset()
    open_ = [a for a in former if not _is_gone_on_with(judge, a, unused)]
    undecided = _undecided(judge, open_)
    return [_question(judge, change, selected) for change in _by_template(judge, undecided)]


def decision(judge: Judge, selected: set[str], options: Options) -> Decision | None:
    """The same for whoever only looks at these: what a run would be refused for, and what decides it. A command that
    names no targets is about the whole plan, however little of it was looked at."""
    meant = selected if options.partial else set(judge.state.artifacts)
    questions = [q for q in asked_about(judge, meant, options) if not selected.isdisjoint(q.artifacts)]
    asked = [*dict.fromkeys(a for question in questions for a in question.artifacts if a in selected)]
    return Decision("prompt_changed", asked, answers(judge.state, questions, options, meant)) if asked else None


def _question(judge: Judge, change: PromptChange, selected: Collection[str]) -> Question:
    artifacts = judge.state.artifacts
    specs = [artifacts[a] for a in change.artifacts]
    behind = [a for a in judge.order_behind(change.artifacts) if a in selected and not artifacts[a].gathers]
    again = [done for a in behind if (done := judge.known(a)) is not None]
    done = judge.known(change.artifacts[0])
    now = judge.prompt(change.artifacts[0])
    before = _paired(done.fp.templates if done is not None else {}, now)
    return Question(
        change.template,
        _file(before.get(change.template, "")),
        "is missing" if change.template in now else "is not used any more",
        change.was,
        change.now,
        change.artifacts,
        tuple(dict.fromkeys(spec.phase for spec in specs if spec.phase)),
        tuple(dict.fromkeys(spec.unit for spec in specs if spec.unit)),
        len(again),
        sum(done.ms for done in again),
        judge.templates.problem(specs[0]),
    )


def permitted(judge: Judge, selected: Collection[str]) -> list[PromptChange]:
    """All changed templates of completed artifacts, for the record."""
    return _by_template(judge, changed(judge, selected))


def changed(judge: Judge, selected: Collection[str]) -> list[str]:
    """Completed artifacts whose templates are not what they were, in order.

    Without those that are made anew anyway, and those of units that nobody asked for.
    """
    wanted = (a for a in judge.state.artifacts if a in selected and not (a in judge.left or judge.is_forced(a)))
    return [a for a in wanted if judge.has_another_prompt(a)]


def are_tried_elsewhere(judge: Judge, before: Collection[str], history: History) -> bool:
    """Whether a prompt of these, which nobody asked for, has changed, and not back to what they were once made with.

    What goes on behind a loop cannot be foreseen where it was gone round more or less often: then history tells.
    """
    specs, failed = judge.state.artifacts, judge.state.failed
    first = [
        a for a in changed(judge, before) if a not in failed and specs[a].iteration < 2
    ]  # which ask for the others
    open_ = _undecided(judge, first)
    return bool(open_) and not (_were_made_so(judge, open_[:1], history) and _were_made_so(judge, open_, history))


def _were_made_so(judge: Judge, ids: Collection[str], history: History) -> bool:
    """Whether all of these were once made with the templates that they have now, in the way that they would be."""
    wanted, found = {a: judge.made_from(a) for a in ids}, set[str]()
    for record in history(ids if len(ids) == 1 else ()):
        event = record.event
        if isinstance(event, PlanReset):
            found.difference_update(event.ids or ids)
        elif isinstance(event, Came) and (now := wanted.get(event.id)) is not None:
            was = event.fp
            if (was.templates, was.recipe, was.spec) == (now.templates, now.recipe, now.spec):
                found.add(event.id)
    return found.issuperset(ids)


def gone_on_with(judge: Judge, stale: Collection[str]) -> dict[str, str]:
    """Templates that have changed since some of these were made with them, as they are now."""
    found: dict[str, str] = {}
    artifacts = judge.state.artifacts
    for artifact_id in [a for a in stale if artifacts[a].templates]:
        if (done := judge.known(artifact_id)) is not None:
            found |= judge.prompt(artifact_id).items() - done.fp.templates.items()
    return found


def _tried_in_vain(judge: Judge) -> frozenset[str]:
    """The labels of changed templates with which runs have set out since the plan was whole, and made nothing: of one
    that did not parse, say. Whatever they are now, nothing is mixed."""
    state = judge.state
    tried = set(state.run.templates.items()) if state.run is not None else set()
    if tried:
        last = (skip.last for skip in state.skipped.values() if skip.last is not None)
        for done in (*state.completed.values(), *state.made.values(), *last):
            tried -= done.fp.templates.items()
    return frozenset(label for label, _ in tried)


def _is_gone_on_with(judge: Judge, artifact_id: str, unused: Collection[str]) -> bool:
    """Whether a run has set out already to make it with its templates as they are, or somebody has said why it may, or
    what it set out with was of no use: going on changes nothing."""
    run, done, now = judge.state.run, judge.known(artifact_id), judge.prompt(artifact_id)
    if run is None or done is None:
        return False
    note = judge.state.prompts.get(artifact_id)
    since = note.changes if note is not None and note.seq > done.seq else ()
    said = {change.template: change.now for change in since}
    roles = set(map(_role, now))
    if any(said.get(label) != "" for label in done.fp.templates if _role(label) not in roles):
        return False
    changed = now.items() - done.fp.templates.items()
    may_gain = any(label in unused for label, _ in changed)  # a part, by way of one that was of no use
    return all(
        label in unused
        or (may_gain and label not in done.fp.templates)
        or digest in (run.templates.get(label), said.get(label))
        for label, digest in changed
    )


def _by_template(judge: Judge, artifacts: Collection[str]) -> list[PromptChange]:
    found: dict[tuple[str, str, str], list[str]] = {}
    for artifact_id in artifacts:
        done = judge.known(artifact_id)
        was: Mapping[str, str] = done.fp.templates if done is not None else {}
        now = judge.prompt(artifact_id)
        replaced = _paired(was, now)
        for label in {**was, **now}:
            before = was.get(replaced.get(label, label))
            if before != now.get(label) and label not in replaced.values():
                found.setdefault((label, before or "", now.get(label, "")), []).append(artifact_id)
    return [PromptChange(template=t, was=w, now=n, artifacts=tuple(ids)) for (t, w, n), ids in found.items()]


def _paired(was: Mapping[str, str], now: Mapping[str, str]) -> dict[str, str]:
    """Templates that are new in their roles, and those whose places they take."""
    gone = {_role(label): label for label in was if label not in now}
    return {label: gone[_role(label)] for label in now if label not in was and _role(label) in gone}


def _role(label: str) -> str:
    return label.partition(": ")[0]


def _file(label: str) -> str:
    return label.partition(": ")[2]


def _undecided(judge: Judge, candidates: list[str]) -> list[str]:
    """Those that would have to be made: where an earlier completion with the template as it is can be taken over,
    there is nothing to decide, and what follows from it is looked at in turn."""
    if not candidates or not judge.precedents.any():
        return candidates
    wanted = set(candidates)
    foreseen: dict[str, tuple[Output, ...] | None] = {}
    undecided = []
    for artifact_id in judge.shared.order():
        if judge.reasons[artifact_id].fresh:
            continue
        foreseen[artifact_id] = outputs = _foresee(judge, artifact_id, foreseen)
        if outputs is None and artifact_id in wanted:
            undecided.append(artifact_id)
    return undecided


def _foresee(
    judge: Judge, artifact_id: str, foreseen: Mapping[str, tuple[Output, ...] | None]
) -> tuple[Output, ...] | None:
    """What a stale artifact will come to without being made, or None if it has to be made."""
    spec = judge.state.artifacts[artifact_id]
    if any(foreseen.get(r, ()) is None for r in spec.requires) or judge.is_forced(artifact_id):
        return None
    if spec.gathers:
        return foreseen.get(spec.requires[0], judge.recorded(spec.requires[0])) if spec.gathers == "last" else None
    fp = judge.made_from(artifact_id)
    inputs = {r: content_digest(foreseen[r] or ()) if r in foreseen else d for r, d in fp.inputs.items()}
    before = dict(fp.before)
    for path in before:
        stage = judge.stages.before(artifact_id, path)
        outputs = foreseen.get(stage or "", ())
        if outputs is None:
            return None
        before.update({output.path: output.digest for output in outputs if output.path == path})
    for earlier in judge.earlier(artifact_id, msgspec.structs.replace(fp, inputs=inputs, before=before)):
        if all(map(judge.outputs.readable, earlier.outputs)):
            return earlier.outputs
    return None
