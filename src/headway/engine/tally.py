"""Where every artifact of a run stands: still to do, done, lost, held for the user, or somebody else's to make.

Each of these ends an artifact's turn: its dependents may go on, or are given up with it. Makes nothing, writes nothing.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from collections.abc import Set as AbstractSet
from functools import partial

from headway.core.freshness import FRESH, Reason
from headway.core.gates import missing
from headway.core.plan import ArtifactSpec
from headway.core.state import MOVED
from headway.engine.judge import Judge
from headway.engine.queue import Line, Queue
from headway.engine.recording import Recorder
from headway.engine.result import Reporter, RunResult


class Tally:
    """The artifacts that a run was asked for, and what became of each so far."""

    def __init__(
        self, judge: Judge, record: Recorder, reporter: Reporter, result: RunResult, selected: set[str]
    ) -> None:
        self._judge = judge
        self._record = record
        self._reporter = reporter
        made = getattr(reporter, "made", None)  # who hears of each alone may call anything else so
        self._tell_made = made if callable(made) else partial(Reporter.made, reporter)
        self.result = result
        self.selected = selected
        self.todo: dict[str, Reason] = {}
        self.queue = Queue((), self._lines)
        self.judged = dict(judge.state.artifacts)
        """The plan's artifacts as they were when they were judged."""
        self.words: set[str] = set()
        """What kinds of word are waited for: approval, gates."""

    # Before anything is made.

    def begin(self) -> None:
        """What is to be done, and what waits for what."""
        reasons, artifacts, result = self._judge.reasons, self._record.state.artifacts, self.result
        selected = self.selected
        chosen = {a: reason for a, reason in reasons.items() if a in selected}
        self.todo = {a: reason for a, reason in chosen.items() if reason.code != "fresh"}
        result.reasons = dict(self.todo)
        if len(self.todo) < len(chosen):
            result.kept = [a for a in chosen if a not in self.todo and not artifacts[a].gathers]
        self.queue = Queue(self._affected(chosen), self._lines)

    def _affected(self, chosen: Collection[str]) -> Collection[str]:
        """What is to be done and what builds on it, of what was chosen, in dependency order."""
        todo, found = self.todo, dict[str, None]()
        if len(todo) == len(chosen):
            return chosen
        if not self._judge.shared.ordered:
            behind = set(self._judge.graph.above(todo))
            return [a for a in chosen if a in behind]
        for artifact_id in chosen:
            if artifact_id in todo or not found.keys().isdisjoint(self.builds_on(artifact_id)):
                found[artifact_id] = None
        return found

    def builds_on(self, artifact_id: str) -> Iterable[str]:
        """What an artifact cannot be made without: what it requires, and earlier stages of what it changes.

        What stands for the last round of a loop builds on the phase that may ask for another one.
        """
        spec, shared = self._record.state.artifacts[artifact_id], self._judge.shared
        if spec.gathers == "last":
            return (*spec.requires, *spec.after)
        return (*spec.requires, *shared.after(artifact_id)) if shared.chains else spec.requires

    def _lines(self, members: Collection[str]) -> Iterator[Line]:
        """What each of these waits for, and whom it lets go first, by the plan as it has grown so far."""
        artifacts, shared = self._record.state.artifacts, self._judge.shared
        if not shared.ordered:
            for artifact_id in members:
                yield artifact_id, artifacts[artifact_id].requires, ()
            return
        for artifact_id in members:
            spec = artifacts[artifact_id]
            needs = (*spec.requires, *shared.after(artifact_id), *spec.after)
            yield artifact_id, needs, shared.courtesy(artifact_id)

    def to_make(self) -> dict[str, Reason]:
        """What is to be done, without what only gathers others: nobody makes that."""
        if not self._record.state.settings.pipelines:
            return self.todo
        return {a: reason for a, reason in self.todo.items() if self._is_made(a)}

    def _is_made(self, artifact_id: str) -> bool:
        """Whether anybody makes it: it does not only gather others, and is still in the plan, whoever changed that."""
        spec = self._record.state.artifacts.get(artifact_id)
        return spec is not None and not spec.gathers

    def notice(self, artifact_id: str, reason: Reason) -> None:
        """It was thought to be fresh, and what it requires has changed since."""
        if artifact_id not in self.todo:
            self.todo[artifact_id] = self.result.reasons[artifact_id] = reason
            self._unkeep(artifact_id)

    # It is as it should be.

    def arrive(self, spec: ArtifactSpec, how: str, reason: Reason, *, ms: int = 0, note: str = "") -> None:
        """Its bytes are there and recorded: it is as it should be, unless a gate is in the way."""
        artifact_id = spec.id
        if not spec.gates:
            self.settle(artifact_id, how, reason, ms=ms, note=note)
            return
        state = self._record.state
        if artifact_id not in state.made and artifact_id not in state.failed:
            self.settle(artifact_id, how, reason, ms=ms, note=note)
        elif artifact_id in state.failed:
            self.lose(artifact_id, state.failed[artifact_id].error, reason, ms)
        else:
            lacking = "; ".join(map(str, missing(state, artifact_id)))
            if how != "kept":
                getattr(self.result, how).append(artifact_id)
                self._reporter.finished(artifact_id, how, reason, ms, "waits for its gates")
            self._judge.reasons[artifact_id] = Reason("gates_open", lacking)
            self.wait(artifact_id, lacking, "gates")

    def settle(self, artifact_id: str, how: str, reason: Reason, *, ms: int = 0, note: str = "") -> None:
        """It is as it should be: its dependents may go on."""
        self._judge.reasons[artifact_id] = FRESH
        self.queue.settle(artifact_id)
        judged = self.todo.get(artifact_id)
        if judged is None or self._judge.state.artifacts[artifact_id].gathers:
            return
        getattr(self.result, how).append(artifact_id)
        self._reporter.finished(artifact_id, how, judged if reason.fresh else reason, ms, note)

    def settle_made(self, made: Mapping[str, int]) -> None:
        """They were made, each in so many ms, and no gate is in the way: their dependents may go on."""
        reasons, todo = self._judge.reasons, self.todo
        judged = [reasons[artifact_id] for artifact_id in made]
        reasons.update(dict.fromkeys(made, FRESH))
        self.queue.settle_all(made)
        done = [
            (artifact_id, reason if reason.code != "fresh" else todo[artifact_id], ms)
            for (artifact_id, ms), reason in zip(made.items(), judged, strict=True)
            if artifact_id in todo
        ]
        self.result.made += [artifact_id for artifact_id, _, _ in done]
        if done:
            self._tell_made(done)

    # It is not, and what needs it is given up with it.

    def lose(self, artifact_id: str, error: str, reason: Reason, ms: int = 0, tried: str = "") -> None:
        """It failed."""
        self.result.failed[artifact_id] = error
        self._judge.reasons[artifact_id] = Reason("failed")
        self._reporter.finished(artifact_id, "failed", reason, ms, error + tried)
        self._block_behind(artifact_id)

    def move(self, artifact_id: str, path: str) -> None:
        """What it is made from changed under it, or behind it: it is stale at once, and not made twice in one run."""
        self.result.moved[artifact_id] = path
        self._judge.reasons[artifact_id] = Reason("source_changed", path, MOVED)
        self._block_behind(artifact_id)

    def hold(self, artifact_id: str, code: str, flags: list[str], reason: Reason, note: str = "") -> None:
        """Only the user can decide about this one; the rest goes on."""
        self.result.decide(code, artifact_id, flags)
        self._reporter.finished(artifact_id, "held", reason, 0, note)
        self._block_behind(artifact_id)
        if reason.code == "output_modified" and reason.subject in self._judge.shared.chains:
            self._block_users(reason.subject, artifact_id)

    def wait(self, artifact_id: str, why: str, code: str = "") -> None:
        """It is somebody else's to make, now or at all; the rest goes on. `code`: it is a word that is waited for."""
        self.result.waiting[artifact_id] = why
        if code:
            self.words.add(code)
        for dependent in self.queue.give_up(artifact_id):
            if dependent in self.todo and self._is_made(dependent):
                self.result.waiting.setdefault(dependent, f"waits for {artifact_id}")

    def wait_for_others(self) -> None:
        """Nothing runs and yet something could start: the profile's places are taken by others."""
        while (artifact_id := self.queue.pop()) is not None:
            names = ", ".join(f"{a} ({claim.by})" for a, claim in self._record.state.claims.items())
            self.wait(artifact_id, f"the profile leaves no place beside {names}")

    def is_blocked_elsewhere(self, artifact_id: str, reason: Reason) -> bool:
        """Whether something of another plan has to be made first: it is read, never run."""
        found = self._judge.unusable(artifact_id)
        if found is None:
            return False
        self.result.elsewhere[found.name] = found.command
        self.result.blocked[artifact_id] = found.name
        note = f"{found.name} {found.problem}. Next: {found.command}"
        self._reporter.finished(artifact_id, "blocked", reason, 0, note)
        self._block_behind(artifact_id)
        return True

    def all_use_command_of(self, spec: ArtifactSpec) -> bool:
        """A command that is not there strikes every artifact that is left."""
        left = [self._record.state.artifacts[a].run for a in self.queue.open if a in self.todo and self._is_made(a)]
        return bool(left) and all(run.split()[:1] == spec.run.split()[:1] for run in left)

    def is_wrong_with_all(self, problem: str) -> bool:
        """A template that does not parse, say, strikes everything that could be begun now."""
        left = set(self.queue.open) & self.todo.keys()
        first = [a for a in left if left.isdisjoint(self.builds_on(a))]
        return bool(first) and all(self._judge.problem(a) == problem for a in first)

    def _block_behind(self, artifact_id: str) -> None:
        """Whatever needs it cannot be made now; nothing else is touched."""
        for dependent in self.queue.give_up(artifact_id):
            self._block(dependent, artifact_id)

    def _block(self, artifact_id: str, by: str) -> None:
        """What nobody makes, nobody waits for."""
        if artifact_id in self.todo and self._is_made(artifact_id):
            self.result.blocked.setdefault(artifact_id, by)

    def _block_users(self, path: str, by: str) -> None:
        """A shared file with somebody's bytes in it is not to be touched by anybody."""
        for artifact_id in self.queue.open:
            if any(use.path == path for use in self._judge.shared.uses(artifact_id)):
                self._block(artifact_id, by)
                self._block_behind(artifact_id)

    # The plan grows and shrinks.

    def forget(self, removed: Collection[str]) -> None:
        """Nothing has to be done or decided about what is gone."""
        for artifact_id in removed:
            self.judged.pop(artifact_id, None)
            self.selected.discard(artifact_id)
            self.todo.pop(artifact_id, None)
            self.result.reasons.pop(artifact_id, None)
            self._unkeep(artifact_id)
            self.queue.settle(artifact_id)
        self._forget_questions(set(removed))

    def _forget_questions(self, removed: AbstractSet[str]) -> None:
        result = self.result
        for decision in result.decisions:
            decision.artifacts[:] = [a for a in decision.artifacts if a not in removed]
        result.decisions = [decision for decision in result.decisions if decision.artifacts]
        for table in (result.blocked, result.waiting, result.failed):
            for artifact_id in removed & table.keys():
                del table[artifact_id]

    def extend(self, more: Collection[str], new: Collection[str], *, elsewhere: bool) -> None:
        """These have to be gone through, too; those of them that are new and fresh are kept.

        `elsewhere`: what is neither may need others than before, too.
        """
        reasons, artifacts = self._judge.reasons, self._record.state.artifacts
        for artifact_id in more:
            reason, gathers = reasons[artifact_id], artifacts[artifact_id].gathers
            if not reason.fresh:
                self.todo[artifact_id] = reason
                if not gathers:
                    self.result.reasons[artifact_id] = reason
                    self._unkeep(artifact_id)
            elif artifact_id in new and not gathers:
                self.result.kept.append(artifact_id)
        self.queue.add(more)
        if elsewhere:
            self.queue.line_up_anew()
        else:
            for artifact_id in new:
                self.queue.wait_more(artifact_id)

    def _unkeep(self, artifact_id: str) -> None:
        if artifact_id in self.result.kept:
            self.result.kept.remove(artifact_id)
