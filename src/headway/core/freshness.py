"""Fresh or stale, and why: one comparison gives both, so an explanation cannot differ from the decision.

> An artifact is fresh if it has completed and (1) its spec, (2) its recipe, (3) the content of everything it requires
> and of its sources, and (4) the content of its outputs on disk are all what they were when it completed.

Knows digests and completions; never files, clocks or runners. tests/model.py is the slow definition of the same.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal, NamedTuple

from headway.core.graph import ArtifactGraph
from headway.core.state import MOVED, REORDERED, Completion, Failure, Fingerprint

Code = Literal[
    "fresh",
    "never_made",
    "failed",
    "interrupted",
    "in_progress",
    "gates_open",
    "spec_changed",
    "recipe_changed",
    "prompt_changed",
    "input_changed",
    "pre_state_changed",
    "source_changed",
    "requirement_stale",
    "output_missing",
    "output_replaced",
    "output_modified",
    "untracked_output",
    "adopted_edit",
    "forced",
    "unstored",
]

EDITS: frozenset[Code] = frozenset({"output_modified", "untracked_output", "adopted_edit"})
"""What a person wrote stands at an output path: only they can say what becomes of it."""

RESTORABLE: frozenset[Code] = frozenset({"output_missing", "output_replaced"})
"""What was made is known and kept; it only has to be put back, so dependents see no change."""

IN_PART = "in part"
"""What is left of a folder that lacks files."""

ROOTLESS: frozenset[Code] = frozenset({"requirement_stale", "input_changed"})


BRIEF = 48
"""Values longer than this, both together, are left to whoever wants to see them."""

_HEX = frozenset("0123456789abcdef")
_CHANGES: frozenset[Code] = frozenset({"spec_changed", "recipe_changed"})
_READ: frozenset[Code] = frozenset({"prompt_changed", "input_changed", "source_changed"})


class Reason(NamedTuple):
    """Why an artifact is fresh or stale: the first thing that differs, with its old and its new value."""

    code: Code
    subject: str = ""
    was: str = ""
    now: str = ""
    others: tuple[str, ...] = ()
    """What else of the same kind differs, by name."""

    @property
    def fresh(self) -> bool:
        """Nothing differs."""
        return self.code == "fresh"

    @property
    def text(self) -> str:
        """The reason in words."""
        if self.code in _CHANGES:
            return self._changed()
        if self.code in _READ:
            return self._read() + (f", and {len(self.others):,} more" if self.others else "")
        partly = self.code == "output_missing" and self.now == IN_PART
        how = _MODES.get(self.now.partition(":")[0]) if self.code == "output_replaced" else None
        template = how or _WORDS[self.code] + (f" {IN_PART}" if partly else "")
        return template.format(subject=self.subject, was=_short(self.was), now=_short(self.now))

    def _changed(self) -> str:
        """A changed spec or recipe, by the key that changed where it is known; values only where they are short."""
        was, now = _short(self.was), _short(self.now)
        known = bool(self.was or self.now)
        values = f"{was} → {now}" if known and len(was) + len(now) <= BRIEF and "\n" not in was + now else ""
        if self.code == "recipe_changed":
            return f"recipe changed ({': '.join(part for part in (self.subject, values) if part)})"
        return f"{self.subject} changed" + (f" ({values})" if values and self.subject != "spec" else "")

    def _read(self) -> str:
        """Something that it is made from: what became of it since, or while it was being made."""
        subject = f"prompt {self.subject}" if self.code == "prompt_changed" else self.subject
        if self.was == MOVED:
            return f"{subject} changed while it was being made"
        if self.code != "input_changed" and not (self.was and self.now):
            return f"{subject} was {'removed' if self.was else 'added'}"
        return f"{subject} changed ({_short(self.was)} → {_short(self.now)})"

    def to_dict(self) -> dict[str, str]:
        """The reason for machines."""
        found = {"code": self.code, "text": self.text}
        for name in ("subject", "was", "now"):
            if value := getattr(self, name):
                found[name] = value
        return found


_WORDS: dict[Code, str] = {
    "fresh": "up to date",
    "never_made": "never made",
    "failed": "failed before",
    "interrupted": "interrupted before",
    "in_progress": "being made now",
    "gates_open": "made; waits for {subject}",
    "pre_state_changed": "{subject} is not what it was made from ({was} → {now})",
    "requirement_stale": "{subject} is to be made",
    "output_missing": "{subject} is missing",
    "output_replaced": "{subject} is not its newest output",
    "output_modified": "{subject} was edited",
    "untracked_output": "{subject} was there before it was made",
    "adopted_edit": "it was accepted as it is, and since then {subject}",
    "forced": "asked for",
    "unstored": "{subject} is gone and its bytes are not stored",
}

_MODES = {
    "exec": "{subject} was made executable by somebody",
    "file": "{subject} is not executable any more",
    "modes": "files in {subject} have other modes than they were made with",
}
"""The same bytes under another mode, by what stands there now."""

FRESH = Reason("fresh")


def _short(value: str) -> str:
    """A digest by its beginning, anything else as it is."""
    return value[:8] if _is_digest(value) else value or "nothing"


def _is_digest(value: str) -> bool:
    return len(value) > 12 and not set(value) - _HEX


def without_digests(text: str, was: str, now: str) -> str:
    """The words of a reason without its values where they are digests, which tell nobody anything: what is left is the
    same for all that is stale alike."""
    if {_is_digest(value) for value in (was, now) if value} != {True}:
        return text
    values = f"{_short(was)} → {_short(now)}"
    return text.replace(f": {values}", "").replace(f" ({values})", "")


class Disk(NamedTuple):
    """What stands at an output path now, next to what was recorded there.

    `ours`: some ledger of this project names these bytes, or an attempt of ours can have left them, so they are no
    edit. `stored`: what was recorded can be put back. `partly`: of a folder that lacks files, others are there.
    """

    path: str
    recorded: str
    found: str
    ours: bool = True
    stored: bool = True
    partly: bool = False


def compare_parts(was: Fingerprint, now: Fingerprint, stale: Sequence[str]) -> Reason:
    """Spec, recipe, inputs, sources: the first that differs. `stale`: requirements whose content is not known yet."""
    if was.spec == REORDERED:
        return Reason("spec_changed", "the order of its units")
    if was.spec != now.spec:
        return Reason("spec_changed", "spec", was.spec, now.spec)
    if was.templates != now.templates:  # which also say what variables count for the recipe
        return _first_difference("prompt_changed", was.templates, now.templates)
    if was.recipe != now.recipe:
        return Reason("recipe_changed", "", was.recipe, now.recipe)
    if stale:
        return Reason("requirement_stale", stale[0])
    if was.inputs != now.inputs:
        return _first_difference("input_changed", was.inputs, now.inputs)
    if was.before != now.before:
        return _first_difference("input_changed", was.before, now.before)
    if was.sources != now.sources:
        return _first_difference("source_changed", was.sources, now.sources)
    return FRESH


def _first_difference(code: Code, was: Mapping[str, str], now: Mapping[str, str]) -> Reason:
    first, *others = [name for name in {**now, **was} if was.get(name) != now.get(name)] or [""]
    return Reason(code, first, was.get(first, ""), now.get(first, ""), tuple(others)) if first else FRESH


def compare_outputs(outputs: Sequence[Disk]) -> Reason:
    """Recorded against found, where nothing found is an edit: a missing file weighs more than an old one."""
    differing = [o for o in outputs if o.found != o.recorded]
    if not differing:
        return FRESH
    output = next((o for o in differing if not o.found), differing[0])
    code: Code = "unstored" if not output.stored else "output_replaced" if output.found else "output_missing"
    return Reason(code, output.path or "its text", output.recorded, IN_PART if output.partly else output.found)


def find_edit(outputs: Sequence[Disk]) -> Reason | None:
    """The first output path at which a person's bytes stand."""
    for output in outputs:
        if output.found != output.recorded and output.found and not output.ours:
            code: Code = "output_modified" if output.recorded else "untracked_output"
            return Reason(code, output.path, output.recorded, output.found)
    return None


def judge(
    done: Completion | None,
    failure: Failure | None,
    now: Fingerprint | None,
    *,
    stale: Sequence[str],
    outputs: Sequence[Disk],
    forced: bool = False,
    interrupted: bool = False,
) -> Reason:
    """The verdict on one artifact and its reason, in one go. An edit comes first: it is asked about in any case.

    `now` is what it would be made from; of what was never completed, nobody needs to know it.
    """
    edit = find_edit(outputs) if outputs else None
    if edit is not None:
        return edit
    if done is None or now is None:
        return Reason("failed" if failure else "interrupted" if interrupted else "never_made")
    changed = Reason("forced") if forced else Reason("failed") if failure else compare_parts(done.fp, now, stale)
    if changed.fresh:
        return compare_outputs(outputs)
    if done.how == "accepted" and changed.code != "requirement_stale" and _stands(outputs):
        return Reason("adopted_edit", "failed" if changed.code == "failed" else changed.text)
    return changed


def _stands(outputs: Sequence[Disk]) -> bool:
    """Something of what was recorded is still at its path."""
    return any(o.recorded and o.path and o.found == o.recorded for o in outputs)


def root_causes(reasons: Mapping[str, Reason], graph: ArtifactGraph, artifact_id: str) -> tuple[list[str], list[str]]:
    """Why an artifact is stale in the end: the artifacts where it began, and those in between that only follow."""
    roots: list[str] = []
    cascade: list[str] = []
    seen = {artifact_id}
    queue = [artifact_id]
    for current in queue:
        reason = reasons[current]
        stage = (reason.subject,) if reason.code == "requirement_stale" else ()  # of a file that both change
        builds_on = dict.fromkeys((*graph[current].requires, *stage))
        upstream = [r for r in builds_on if r in reasons and not reasons[r].fresh]
        follows = reason.code in ROOTLESS and upstream
        (cascade if follows else roots).append(current)
        for required in upstream if follows else ():
            if required not in seen:
                seen.add(required)
                queue.append(required)
    return roots, [a for a in cascade if a != artifact_id]


class ChangeReport(NamedTuple):
    """What changed since the plan was last made, by kind: RFC-040's report and what it could not see."""

    added: set[str]
    removed: set[str]
    contract_changed: set[str]
    deps_changed: set[str]
    output_modified: set[str]
    recipe_changed: set[str]
    source_changed: set[str]
    input_changed: set[str]
    missing_output: set[str]

    @property
    def all_changed(self) -> set[str]:
        """Everything that has to be made again on its own account."""
        kinds = [set(kind) for name, kind in self._asdict().items() if name != "removed"]
        return set().union(*kinds)

    @property
    def has_changes(self) -> bool:
        """Whether anything differs at all."""
        return bool(self.all_changed or self.removed)

    @classmethod
    def empty(cls) -> ChangeReport:
        """Nothing changed."""
        return cls(set(), set(), set(), set(), set(), set(), set(), set(), set())


def compute_rebuild_set(graph: ArtifactGraph, changes: ChangeReport) -> set[str]:
    """What may have to be made: what changed, and everything behind it. An upper bound: early cut-off spares some."""
    changed = changes.all_changed
    return changed | set(graph.above(changed))
