"""The naive oracle: docs/incremental.md, word by word, over a handful of values. Slow, plain, and without files.

> An artifact is fresh if it has completed and (1) its spec, (2) its recipe, (3) the content of everything it requires
> and of its sources, and (4) the content of its outputs on disk are all what they were when it completed.

Everything is compared by value: there are no digests, no caches, no events and no clocks here. Each artifact has one
output, `out/<id>.txt`; its recipe is a pure function of what it is made from.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterable
from typing import Literal, NamedTuple

EDITS = ("output_modified", "untracked_output", "adopted_edit")
PUT_BACK = ("output_missing", "output_replaced")

Policy = Literal["ask", "accept", "discard"]


class Spec(NamedTuple):
    """What is asked for, and how it is made."""

    requires: tuple[str, ...] = ()
    sources: tuple[str, ...] = ()
    contract: str = ""
    version: str = "1"


class Made(NamedTuple):
    """A completion: what it was made from, and what came out."""

    spec: Spec
    inputs: dict[str, str | None]
    sources: dict[str, str | None]
    output: str
    adopted: bool = False

    def matches(self, other: Made) -> bool:
        """Made from the same things in the same way."""
        return (self.spec, self.inputs, self.sources) == (other.spec, other.inputs, other.sources)


def recipe(artifact: str, version: str, parts: Iterable[str]) -> str:
    """What an artifact's function makes of its inputs: few values, so that changes often come out the same."""
    return f"{artifact}{zlib.crc32(':'.join((version, *parts)).encode()) % 3}"


def path_of(artifact: str) -> str:
    return f"out/{artifact}.txt"


class Model:
    """A plan, the files of its project, and what the ledger knows, as plain values."""

    def __init__(self) -> None:
        self.artifacts: dict[str, Spec] = {}
        self.files: dict[str, str] = {}
        self.done: dict[str, Made] = {}
        self.failed: set[str] = set()
        self.history: list[tuple[str, Made]] = []
        self.named: set[str] = set()
        self.accepted: set[str] = set()
        self.crafted: set[tuple[str, str]] = set()
        """What the recipe of an artifact came to."""
        self.begun: set[str] = set()
        self.unfinished: set[str] = set()
        self.announced: set[str] = set()
        self.boot = 0
        self.killed_in: int | None = None
        """The boot in which a run was killed, until another one begins."""
        self.asked: set[str] = set()

    # Judging: the definition.

    def order(self) -> list[str]:
        """Requirements first."""
        placed: list[str] = []
        while len(placed) < len(self.artifacts):
            placed += [a for a, s in self.artifacts.items() if a not in placed and all(r in placed for r in s.requires)]
        return placed

    def judge(self, forced: set[str]) -> dict[str, str]:
        """The code of every artifact's reason; `fresh` if nothing differs."""
        reasons: dict[str, str] = {}
        for artifact in self.order():
            reasons[artifact] = self.judge_one(artifact, reasons, forced)
        return reasons

    def judge_one(self, artifact: str, reasons: dict[str, str], forced: set[str]) -> str:
        """The first thing that differs."""
        done = self.done.get(artifact)
        found = self.files.get(path_of(artifact))
        recorded = done.output if done else None
        if found is not None and found != recorded and not self.is_ours(artifact, found):
            return "output_modified" if done else "untracked_output"
        if done is None:
            if artifact in self.failed:
                return "failed"
            return "interrupted" if artifact in self.begun else "never_made"
        changed = self.what_changed(artifact, done, reasons, forced)
        if changed:
            asked = done.adopted and changed != "requirement_stale" and found == recorded
            return "adopted_edit" if asked else changed
        if found != recorded:
            return "output_missing" if found is None else "output_replaced"
        return "fresh"

    def what_changed(self, artifact: str, done: Made, reasons: dict[str, str], forced: set[str]) -> str:
        now = self.made_now(artifact)
        if artifact in forced or artifact in self.asked - self.failed:
            return "forced"
        if artifact in self.failed:
            return "failed"
        if done.spec._replace(version="") != now.spec._replace(version=""):
            return "spec_changed"
        if done.spec.version != now.spec.version:
            return "recipe_changed"
        if any(reasons[r] not in ("fresh", *PUT_BACK) for r in now.spec.requires):
            return "requirement_stale"
        if done.inputs != now.inputs:
            return "input_changed"
        return "source_changed" if done.sources != now.sources else ""

    def made_now(self, artifact: str) -> Made:
        """What it would be made from now."""
        spec = self.artifacts[artifact]
        inputs = {r: self.done[r].output if r in self.done else None for r in spec.requires}
        sources = {s: self.files.get(s) for s in spec.sources}
        parts = [str(v) for v in (*inputs.values(), *sources.values())]
        return Made(spec, inputs, sources, recipe(artifact, spec.version, parts))

    def is_ours(self, artifact: str, content: str) -> bool:
        """Named by the ledger, other than by somebody's word alone, or an attempt that has no end can have left it."""
        theirs = content in self.accepted and (artifact, content) not in self.crafted
        named = content in self.named and not theirs
        return named or artifact in self.unfinished or artifact in self.in_doubt()

    def in_doubt(self) -> set[str]:
        """What a dead run had announced: that it had begun is on record, unless a power cut took that back."""
        return self.announced if self.killed_in not in (None, self.boot) else set()

    # Changes.

    def remove(self, artifact: str) -> None:
        """It leaves the plan; what an attempt that has no end can have left at its path is put on record before."""
        if artifact in self.unfinished | self.in_doubt() and path_of(artifact) in self.files:
            self.named.add(self.files[path_of(artifact)])
        del self.artifacts[artifact]
        self.done.pop(artifact, None)
        for aspect in (self.failed, self.begun, self.unfinished, self.asked):
            aspect.discard(artifact)

    def accept(self, artifact: str) -> None:
        """What is on disk counts as the output; of what is up to date, it does anyway."""
        if self.judge(set())[artifact] == "fresh":
            return
        content = self.files[path_of(artifact)]
        self.named.add(content)
        self.accepted.add(content)
        self.done[artifact] = self.made_now(artifact)._replace(output=content, adopted=True)
        self.asked.discard(artifact)
        self.end(artifact)

    def reset(self) -> None:
        """All progress is withdrawn; what was made is still no edit."""
        self.done, self.failed, self.history = {}, set(), []
        self.begun, self.announced, self.asked = set(), set(), set()

    def end(self, artifact: str) -> None:
        """An attempt has an end."""
        for aspect in (self.failed, self.begun, self.unfinished, self.announced):
            aspect.discard(artifact)

    def scratch(self) -> dict[str, str]:
        """Every output as a run in an empty folder would make it."""
        twin = Model()
        twin.artifacts = self.artifacts
        twin.files = {path: text for path, text in self.files.items() if not path.startswith("out/")}
        for artifact in twin.order():
            twin.done[artifact] = twin.made_now(artifact)
        return {path_of(a): made.output for a, made in twin.done.items()}


class Run:
    """One run of the model. It is told in which order things were done, and says what must have been done."""

    def __init__(
        self,
        model: Model,
        *,
        targets: Iterable[str] = (),
        rerun: Iterable[str] = (),
        limit: int | None = None,
        policy: Policy = "ask",
    ) -> None:
        self.model = model
        self.limit = limit
        self.policy = policy
        self.selected = self._below(targets) if targets else set(model.artifacts)
        self.forced = set(rerun) & self.selected
        self.reasons = model.judge(self.forced)
        self.todo = {a: code for a, code in self.reasons.items() if code != "fresh" and a in self.selected}
        self.outcomes: dict[str, str] = {}
        self.started = 0
        if self.todo or model.killed_in is not None:
            model.unfinished |= {a for a in model.in_doubt() if a in model.artifacts}
            model.announced, model.killed_in = set(), None
        model.asked |= {a for a, code in self.todo.items() if code == "forced"}

    def _below(self, targets: Iterable[str]) -> set[str]:
        found = set(targets)
        while more := {r for a in found for r in self.model.artifacts[a].requires} - found:
            found |= more
        return found

    def step(self, artifact: str, *, fails: bool = False, left: str = "") -> str:
        """What becomes of an artifact now, all that it requires being settled."""
        model = self.model
        stuck = [r for r in model.artifacts[artifact].requires if r in self.todo and not self._settled(r)]
        if stuck and self.todo[artifact] not in EDITS:
            return f"waits for {stuck[0]}"
        reasons = dict.fromkeys(model.artifacts[artifact].requires, "fresh")
        outcome = self._decide(artifact, reasons, fails, left)
        self.outcomes[artifact] = outcome
        return outcome

    def _settled(self, artifact: str) -> bool:
        return self.outcomes.get(artifact) in ("kept", "made", "restored", "reused", "accepted")

    def _decide(self, artifact: str, reasons: dict[str, str], fails: bool, left: str) -> str:
        model, path = self.model, path_of(artifact)
        code = model.judge_one(artifact, reasons, self.forced)
        if code == "fresh":
            return "kept"
        if code in EDITS:
            if self.policy == "ask":
                return "held"
            if self.policy == "accept":
                model.accept(artifact)
                return "accepted"
            model.named.add(model.files.pop(path))
            code = model.judge_one(artifact, reasons, self.forced)
        self._keep_what_is_there(path)
        if code in PUT_BACK:
            model.files[path] = model.done[artifact].output
            return "restored"
        now = model.made_now(artifact)
        earlier = [made for a, made in model.history if a == artifact and made.matches(now)]
        if earlier and artifact not in self.forced | model.asked:
            self._complete(artifact, now._replace(output=earlier[-1].output))
            return "reused"
        if self.limit is not None and self.started >= self.limit:
            return "left"
        self.started += 1
        if fails:
            return self._fail(artifact, left)
        self._complete(artifact, now)
        return "made"

    def _keep_what_is_there(self, path: str) -> None:
        """Before anything may touch an output path, the bytes there are named."""
        if path in self.model.files:
            self.model.named.add(self.model.files[path])

    def _complete(self, artifact: str, made: Made) -> None:
        self.model.files[path_of(artifact)] = made.output
        self.model.named.add(made.output)
        self.model.crafted.add((artifact, made.output))
        self.model.done[artifact] = made
        self.model.history.append((artifact, made))
        self.model.asked.discard(artifact)
        self.model.end(artifact)

    def _fail(self, artifact: str, left: str) -> str:
        self.model.files[path_of(artifact)] = left
        self.model.named.add(left)
        self.model.end(artifact)
        self.model.failed.add(artifact)
        return "failed"

    def crash(self, artifact: str, left: str, begun: set[str]) -> None:
        """The process is killed while it makes an artifact, and perhaps others that had begun beside it."""
        model = self.model
        self._keep_what_is_there(path_of(artifact))
        model.files[path_of(artifact)] = left
        model.begun.add(artifact)
        model.unfinished |= {artifact, *begun}
        model.killed_in = model.boot
        ended = {a for a, outcome in self.outcomes.items() if outcome in ("made", "reused", "failed", "accepted")}
        model.announced = {a for a, code in self.todo.items() if code not in EDITS and a not in ended}

    def left_over(self) -> set[str]:
        """What has no outcome although nothing before it failed, was held or was left."""
        blocked: set[str] = set()
        for artifact in self.model.order():
            requires = self.model.artifacts[artifact].requires
            if any(r in blocked or self.outcomes.get(r) in ("failed", "held", "left") for r in requires):
                blocked.add(artifact)
        return {a for a in self.todo if a not in self.outcomes and a not in blocked}
