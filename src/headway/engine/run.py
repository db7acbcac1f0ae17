"""The run: start every stale artifact whose requirements are fresh, record what comes of it, go on.

    judge everything; what is not stale is kept
    while something is ready or running:
        judge what is ready once more: kept (cut off early), restored, reused, held for the user, or started
        for each outcome: record it, then look at its dependents

Resuming is running again. Progress is durable artifact by artifact; nothing here needs to end well.
"""

from __future__ import annotations

import os
import time
from collections import deque
from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec

from headway.core import commands as cmd
from headway.core.events import Record
from headway.core.fingerprint import content_digest, reuse_key
from headway.core.freshness import EDITS, Reason
from headway.core.plan import ArtifactSpec, Retry
from headway.core.state import Fingerprint, Output, State, Step
from headway.engine.history import History
from headway.engine.judge import Judge
from headway.engine.making import Outcome, Task, Workshop, environment
from headway.engine.recipes.base import Job
from headway.engine.result import Decision, Options, Pause, Reporter, RunResult
from headway.engine.workers import Workers
from headway.errors import HeadwayError, StorageFailed
from headway.files.outputs import Outputs
from headway.ledger.lock import FileLock
from headway.ledger.writer import Writer

EQUAL_ERRORS = 5
RESTORABLE = frozenset({"output_missing", "output_replaced"})
INLINE_STEP = 4096


class Run:
    """One run of one plan, from its first event to its last."""

    def __init__(
        self,
        writer: Writer,
        judge: Judge,
        outputs: Outputs,
        history: History,
        lock: FileLock,
        *,
        root: str,
        home: str,
        run_id: str,
        by: str,
        jobs: int,
        environ: Mapping[str, str],
        options: Options,
        selected: set[str],
        reporter: Reporter,
        function: Callable[[ArtifactSpec], Callable[..., Any]],
        loop: Any = None,
        stop: Callable[[], str] = lambda: "",
        boot: str = "",
    ) -> None:
        self._writer = writer
        self._judge = judge
        self._outputs = outputs
        self._history = history
        self._lock = lock
        self._root = root
        self._id = run_id
        self._by = by
        self._jobs = jobs
        self._environ = environ
        self._options = options
        self._selected = selected
        self._reporter = reporter
        self._function = function
        self._loop = loop
        self._stop = stop
        self._boot = boot
        self._workshop = Workshop(root, outputs, home)
        self._workers = Workers(jobs, self._workshop.make)
        self._ready: deque[str] = deque()
        self._waiting: dict[str, int] = {}
        self._followers: dict[str, list[str]] = {}
        self._todo: dict[str, Reason] = {}
        self._running: dict[str, Task] = {}
        self._groups: dict[str, int] = {}
        self._made_count = 0
        self._errors: list[str] = []
        self._halted = ""
        self._cancelling = False
        self._retry_after: float | None = None
        self.result = RunResult(plan_id=self._state.plan_id, run_id=run_id, root=root)

    @property
    def _state(self) -> State:
        state = self._writer.state
        assert state is not None, "a run has a plan"
        return state

    # The whole run.

    def go(self) -> RunResult:
        """Make what is stale; what came of it."""
        began = time.monotonic()
        self._plan()
        stale: dict[str, str] = {a: reason.code for a, reason in self._todo.items()}
        if stale:
            self._record(
                cmd.StartRun(
                    run=self._id, stale=stale, jobs=self._jobs, partial=self._options.partial, boot=self._boot
                ),
                wait=True,
            )
            self._judge.state = self._state
        self._reporter.begun(self.result, self._todo, self._jobs)
        try:
            self._loop_until_done(began)
            self._leave_shared_files()
        except BaseException:
            self._cancelling = True
            self._drain()
            self._close("interrupted")
            raise
        finally:
            self._workers.close()
        self.result.duration_ms = round((time.monotonic() - began) * 1000)
        self._finish()
        self._reporter.ended(self.result)
        return self.result

    def _plan(self) -> None:
        """What is to be done, and what each of it waits for."""
        reasons = self._judge.reasons
        chosen = [a for a in reasons if a in self._selected]
        self._todo = {a: reasons[a] for a in chosen if not reasons[a].fresh}
        self.result.reasons = dict(self._todo)
        self.result.kept = [a for a in chosen if a not in self._todo]
        for artifact_id in self._todo:
            needs = {*self._state.artifacts[artifact_id].requires, *self._judge.shared.after.get(artifact_id, ())}
            open_needs = [r for r in needs if r in self._todo]
            self._waiting[artifact_id] = len(open_needs)
            for required in open_needs:
                self._followers.setdefault(required, []).append(artifact_id)
        self._ready.extend(a for a, count in self._waiting.items() if count == 0)

    def _loop_until_done(self, began: float) -> None:
        while self._ready or self._running:
            self._watch(began)
            self._start_ready()
            if not self._running:
                if not self._ready or self._halted:
                    break
                continue
            for outcome in self._workers.outcomes(wait=0.2):
                self._take(outcome)

    def _watch(self, began: float) -> None:
        """Notice that somebody wants the run to stop, or that its time is up."""
        why = self._stop()
        if why and not self._halted:
            self._halted, self._cancelling = why, True
        limit = self._options.max_time
        if limit is not None and not self._halted and time.monotonic() - began > limit:
            self._halted = "max_time"

    # Starting.

    def _start_ready(self) -> None:
        """Start what can be started now, as one event."""
        tasks: list[Task] = []
        replaces = False
        while self._ready and not self._halted and self._room(len(tasks)):
            artifact_id = self._ready.popleft()
            reason = self._judge.again(artifact_id)
            if reason.fresh:
                self._settle(artifact_id, "kept", reason)
            elif reason.code in EDITS and not self._answer_edit(artifact_id, reason):
                continue
            elif not self._without_making(artifact_id, self._judge.reasons[artifact_id]):
                prepared = self._prepare(artifact_id)
                if prepared is not None:
                    task, over_existing = prepared
                    replaces |= over_existing
                    tasks.append(task)
        if tasks:
            self._launch(tasks, replaces)

    def _room(self, preparing: int) -> bool:
        free = self._workers.free - preparing
        profile = self._state.profile
        if profile is not None:
            free = min(free, profile.limit - len(self._state.claims) - preparing)
        if self._options.limit is not None:
            free = min(free, self._options.limit - self._made_count - len(self._running) - preparing)
            if free <= 0 and not self._running and not preparing:
                self._halted = self._halted or "limit"
        return free > 0

    def _launch(self, tasks: list[Task], replaces: bool) -> None:
        ids = tuple(task.job.spec.id for task in tasks)
        external = any(task.job.spec.effects for task in tasks)
        named = self._todo
        reasons: dict[str, str] = {a: self._judge.reasons[a].code for a in ids if a not in named}
        records = self._record(cmd.StartArtifacts(ids=ids, run=self._id, reasons=reasons), wait=external or replaces)
        token = records[0].seq
        for task in tasks:
            artifact_id = task.job.spec.id
            ready = task._replace(token=token, job=task.job._replace(step=self._stepper(artifact_id, task.key, token)))
            self._running[artifact_id] = ready
            self._reporter.started(artifact_id, self._judge.reasons[artifact_id])
            self._workers.start(ready)

    def _without_making(self, artifact_id: str, reason: Reason) -> bool:
        """Whether it could be restored or reused, must be held, or is somebody else's to make."""
        spec = self._state.artifacts[artifact_id]
        done = self._state.completed.get(artifact_id)
        if reason.fresh:
            self._settle(artifact_id, "accepted" if artifact_id in self.result.accepted else "kept", reason)
            return True
        if artifact_id in self._state.uncertain and artifact_id not in self._judge.forced and not _is_idempotent(spec):
            flags = [
                f"--rerun {artifact_id}",
                f"headway accept {artifact_id}",
                f"headway skip {artifact_id} --reason …",
            ]
            self._hold(artifact_id, "effects_uncertain", flags, reason)
            return True
        if reason.code in RESTORABLE and done is not None:
            self._preserve(artifact_id, [o.path for o in done.outputs if o.path])
            if self._restore(done.outputs):
                self._settle(artifact_id, "restored", reason)
                return True
        if not spec.has_recipe:
            holder = self._state.claims.get(artifact_id)
            self.result.waiting[artifact_id] = f"claimed by {holder.by}" if holder else f"headway claim {artifact_id}"
            self._block_behind(artifact_id)
            return True
        if artifact_id in self._state.claims:
            self.result.waiting[artifact_id] = f"claimed by {self._state.claims[artifact_id].by}"
            self._block_behind(artifact_id)
            return True
        return artifact_id not in self._judge.forced and self._reuse(artifact_id, reason)

    def _restore(self, outputs: tuple[Output, ...]) -> bool:
        """Put all of them back; whether every one could be."""
        restored = [self._outputs.restore(output) for output in outputs]
        return all(restored)

    def _reuse(self, artifact_id: str, reason: Reason) -> bool:
        """Take over what was once made from the same things in the same way."""
        spec = self._state.artifacts[artifact_id]
        if spec.effects or reason.code == "failed":
            return False
        if not self._history.any():
            return False
        fp = self._judge.now[artifact_id]
        for earlier in self._history.earlier(reuse_key(fp)):
            outputs = earlier.outputs
            if all(self._outputs.readable(output) for output in outputs):
                self._preserve(artifact_id, [o.path for o in outputs if o.path])
                if not self._restore(outputs):
                    continue
                note = f"event {earlier.seq} of {earlier.plan}"
                token = self._record(cmd.StartArtifacts(ids=(artifact_id,), run=self._id))[0].seq
                self._record(
                    cmd.CompleteArtifact(
                        id=artifact_id, token=token, outputs=outputs, fp=fp, how="reused", note=note, verified=True
                    )
                )
                self._settle(artifact_id, "reused", reason, note=note)
                return True
        return False

    def _prepare(self, artifact_id: str) -> tuple[Task, bool] | None:
        """Everything that a worker needs; digests of inputs are taken before the recipe can begin."""
        state = self._state
        spec = state.artifacts[artifact_id]
        fp = self._judge.now[artifact_id]
        key = reuse_key(fp)
        existing = [p for p in (*spec.produces, *spec.modifies) if os.path.lexists(os.path.join(self._root, p))]
        self._preserve(artifact_id, existing)
        for path, stage in self._judge.shared.stages_read(artifact_id):
            self._put_back(path, stage)
        try:
            function = self._function(spec) if spec.make else None
            inputs = {
                r: self._workshop.input(state.artifacts[r], self._content(r))
                for r in spec.requires
                if r in state.artifacts
            }
        except HeadwayError as error:
            token = self._record(cmd.StartArtifacts(ids=(artifact_id,), run=self._id))[0].seq
            self._running[artifact_id] = Task(_no_job(spec, self._root), fp, key, Retry(), token)
            self._take(Outcome(artifact_id, False, (), "usage", str(error).replace("\n", ";")))
            return None
        settings = state.settings
        job = Job(
            spec=spec,
            root=self._root,
            inputs=inputs,
            sources=self._judge.sources.get(artifact_id, [])
            if not spec.sources
            else self._judge.observer.expand(spec.sources),
            variables=settings.vars,
            environment=environment(self._environ, spec, state.plan_id, key),
            timeout=spec.timeout or settings.timeout,
            function=function,
            started=lambda pid: self._group_began(artifact_id, pid),
            cancelled=lambda: self._cancelling,
        )
        return Task(job, fp, key, spec.retry or settings.retry or Retry(), 0, self._loop), bool(existing)

    def _content(self, artifact_id: str) -> tuple[Output, ...]:
        skip = self._state.skipped.get(artifact_id)
        done = skip.last if skip is not None else self._state.completed.get(artifact_id)
        return done.outputs if done is not None else ()

    def _fingerprint(self, artifact_id: str) -> Fingerprint:
        done = self._state.completed.get(artifact_id)
        return self._judge.fingerprint(artifact_id, wrote=done.wrote if done else ())

    # Edits.

    def _answer_edit(self, artifact_id: str, reason: Reason) -> bool:
        """Bytes that somebody wrote stand at an output: adopt them, set them aside, or ask. Whether to go on."""
        spec = self._state.artifacts[artifact_id]
        answer = self._options.on_edit or spec.on_edit or self._state.settings.on_edit
        if answer == "ask":
            self._hold(artifact_id, reason.code, ["--accept-edits", "--discard-edits"], reason)
            return False
        if answer == "accept":
            self.accept(artifact_id, self._options.reason or "--accept-edits")
            self.result.accepted.append(artifact_id)
            self._settle(artifact_id, "accepted", reason)
            return False
        self._preserve(artifact_id, list(spec.produces))
        for path in spec.produces:
            self._outputs.remove(path)
        self._judge.again(artifact_id)
        return True

    def accept(self, artifact_id: str, why: str) -> None:
        """What is on disk counts as the output."""
        spec = self._state.artifacts[artifact_id]
        outputs = self._outputs.capture((*spec.produces, *spec.modifies))
        self._record(cmd.AcceptOutput(id=artifact_id, outputs=outputs, fp=self._fingerprint(artifact_id), reason=why))

    def _preserve(self, artifact_id: str, paths: list[str]) -> None:
        """Before anything may touch output paths: bytes there that no ledger names are kept as blobs."""
        unnamed = []
        for path in paths:
            seen = self._judge.observer.look(path.rstrip("/"))
            if seen.digest and not self._history.names(seen.digest):
                unnamed.append(path)
        kept = self._outputs.capture(unnamed)
        if kept:
            self._record(cmd.PreserveEdit(id=artifact_id, outputs=kept), wait=True)

    def _put_back(self, path: str, stage: str) -> None:
        """A shared file, as one of its stages left it."""
        output = next((o for o in self._content(stage) if o.path == path), None)
        if output is not None and self._judge.observer.look(path).digest != output.digest:
            self._outputs.restore(output)

    def _leave_shared_files(self) -> None:
        """Shared files end as the last of their stages left them."""
        for path, stages in self._judge.shared.chains.items():
            if all(stage in self._state.completed for stage in stages) and not self._state.claims:
                self._put_back(path, stages[-1])

    # Outcomes.

    def _take(self, outcome: Outcome) -> None:
        """Record what came of an attempt."""
        task = self._running.pop(outcome.id)
        self._group_ended(outcome.id)
        reason = self._judge.reasons[outcome.id]
        if outcome.code in ("cancelled", "quota"):
            self._record(cmd.ReleaseArtifacts(ids=(outcome.id,), reason=outcome.error))
            if outcome.code == "quota":
                self._halted, self._retry_after = self._halted or "quota", outcome.retry_after
            self._waiting[outcome.id] = 0
            return
        if not outcome.ok:
            self._fail(task, outcome, reason)
            return
        self._errors.clear()
        self._complete(task, outcome, reason)

    def _complete(self, task: Task, outcome: Outcome, reason: Reason) -> None:
        before = self._state.completed.get(outcome.id)
        moved, wrote = self._moved(task, outcome)
        self._record(
            cmd.CompleteArtifact(
                id=outcome.id,
                token=task.token,
                outputs=outcome.outputs,
                fp=msgspec.structs.replace(
                    task.fp, sources={p: d for p, d in task.fp.sources.items() if p not in wrote}
                ),
                ms=outcome.ms,
                verified=outcome.verified,
                external=bool(task.job.spec.effects),
                wrote=tuple(wrote),
                stdout=outcome.stdout,
                stderr=outcome.stderr,
            ),
            wait=bool(task.job.spec.effects),
        )
        self._made_count += 1
        same_inputs = before is not None and reuse_key(before.fp) == task.key
        if same_inputs and before and content_digest(before.outputs) != content_digest(outcome.outputs):
            self.result.unstable.append(outcome.id)
        if moved:
            self.result.moved[outcome.id] = moved
            self._judge.reasons[outcome.id] = Reason("source_changed", moved)
            self.result.made.append(outcome.id)
            self._reporter.finished(outcome.id, "made", reason, outcome.ms, f"{moved} changed meanwhile")
            self._block_behind(outcome.id)
            return
        self._settle(outcome.id, "made", reason, ms=outcome.ms)

    def _moved(self, task: Task, outcome: Outcome) -> tuple[str, list[str]]:
        """A source that changed while the recipe ran, and files that the recipe itself was seen to write."""
        spec = task.job.spec
        declared = set(self._judge.observer.expand(spec.sources)) if spec.sources else set()
        moved, wrote = "", []
        for path, digest in task.fp.sources.items():
            if self._judge.observer.look(path).digest[:32] != digest:
                self._judge.forget([path])
                if path in declared:
                    moved = moved or path
                else:
                    wrote.append(path)
        return moved, wrote

    def _fail(self, task: Task, outcome: Outcome, reason: Reason) -> None:
        self._record(
            cmd.FailArtifact(
                id=outcome.id,
                token=task.token,
                error=outcome.error,
                code=outcome.code,
                attempts=outcome.attempts,
                left=outcome.outputs,
                ms=outcome.ms,
                stdout=outcome.stdout,
                stderr=outcome.stderr,
            )
        )
        self.result.failed[outcome.id] = outcome.error
        self._judge.reasons[outcome.id] = Reason("failed")
        self._reporter.finished(outcome.id, "failed", reason, outcome.ms, outcome.error)
        self._block_behind(outcome.id)
        self._errors.append(f"{outcome.code}: {outcome.error}")
        if self._options.fail_fast:
            self._halted, self._cancelling = "fail_fast", True
        elif len(self._errors) >= EQUAL_ERRORS and len(set(self._errors[-EQUAL_ERRORS:])) == 1:
            self._halted = "same_error"
        elif outcome.code == "command_missing" and self._all_use_command_of(task.job.spec):
            self._halted = "command_missing"

    def _all_use_command_of(self, spec: ArtifactSpec) -> bool:
        """A command that is not there strikes every artifact that is left."""
        word = spec.run.split()[0] if spec.run.split() else ""
        left = [self._state.artifacts[a].run for a in self._waiting if a in self._todo and not self._is_settled(a)]
        return bool(left) and all(run.split()[:1] == [word] for run in left)

    def _is_settled(self, artifact_id: str) -> bool:
        return artifact_id in self.result.failed or self._judge.reasons[artifact_id].fresh

    def _settle(self, artifact_id: str, how: str, reason: Reason, *, ms: int = 0, note: str = "") -> None:
        """It is as it should be: its dependents may go on."""
        lists = {"kept": self.result.kept, "made": self.result.made}
        lists |= {"restored": self.result.restored, "reused": self.result.reused}
        if how in lists:
            lists[how].append(artifact_id)
        done = self._state.completed.get(artifact_id)
        if how != "made" and done is not None:
            self.result.saved_ms += done.ms
        shown = self._todo.get(artifact_id, reason)
        self._judge.reasons[artifact_id] = Reason("fresh")
        self._reporter.finished(artifact_id, how, shown if reason.fresh else reason, ms, note)
        for follower in self._followers.get(artifact_id, ()):
            self._waiting[follower] -= 1
            if self._waiting[follower] == 0:
                self._ready.append(follower)

    def _hold(self, artifact_id: str, code: str, flags: list[str], reason: Reason) -> None:
        """Only the user can decide about this one; the rest goes on."""
        known = next((d for d in self.result.decisions if d.code == code and d.flags == flags), None)
        if known is None:
            self.result.decisions.append(Decision(code, [artifact_id], flags))
        else:
            known.artifacts.append(artifact_id)
        self._reporter.finished(artifact_id, "held", reason, 0, "")
        self._block_behind(artifact_id)

    def _block_behind(self, artifact_id: str) -> None:
        """Whatever requires it cannot be made now; nothing else is touched."""
        graph = self._judge.graph
        queue = [artifact_id]
        for current in queue:
            for dependent in graph.dependents(current):
                if dependent in self._todo and dependent not in self.result.blocked:
                    self.result.blocked[dependent] = artifact_id
                    queue.append(dependent)

    # Recording.

    def _record(self, command: cmd.Command, *, wait: bool = False) -> list[Record]:
        records = self._writer.execute(command, by=self._by, wait=wait)
        self._history.add(records)
        return records

    def _stepper(self, artifact_id: str, key: str, token: int) -> Callable[[str, Callable[[], Any]], Any]:
        """Durable parts of a function: by name, and only for the same inputs and code."""
        counts: dict[str, int] = {}

        def step(name: str, call: Callable[[], Any]) -> Any:
            counts[name] = counts.get(name, 0) + 1
            label = name if counts[name] == 1 else f"{name}#{counts[name]}"
            known = self._state.steps.get(artifact_id, {}).get(label)
            blobs = self._outputs.blobs
            if known is not None and known.key == key:
                return msgspec.json.decode(blobs.get(known.blob)) if known.blob else known.value
            value = call()
            data = msgspec.json.encode(value)
            stored = Step(key=key, blob=blobs.put(data)) if len(data) > INLINE_STEP else Step(key=key, value=value)
            self._writer.execute(
                cmd.RecordStep(id=artifact_id, token=token, name=label, step=stored), by=self._by, wait=True
            )
            return value

        return step

    def _group_began(self, artifact_id: str, pid: int) -> None:
        self._groups[artifact_id] = pid
        self._sign()

    def _group_ended(self, artifact_id: str) -> None:
        if self._groups.pop(artifact_id, None) is not None:
            self._sign()

    def _sign(self) -> None:
        """Whoever finds this run dead ends what is left of its commands."""
        from headway.engine.scheduler_lock import signature

        if self._lock.held:
            self._lock.sign(signature(self._id, list(self._groups.values())))

    # Ending.

    def _drain(self) -> None:
        """Wait for what is in flight; it was told to stop."""
        deadline = time.monotonic() + 10
        while self._running and time.monotonic() < deadline:
            for outcome in self._workers.outcomes(wait=0.2):
                self._take(outcome)

    def _finish(self) -> None:
        result = self.result
        done = self._state.completed
        result.outputs = {a: done[a].outputs for a in self._selected if a in done}
        for artifact_id in result.blocked.keys() & result.waiting.keys():
            del result.blocked[artifact_id]
        waiting_behind = {a for a, by in result.blocked.items() if by in result.waiting}
        for artifact_id in waiting_behind:
            result.waiting.setdefault(artifact_id, f"waits for {result.blocked.pop(artifact_id)}")
        held = {a for decision in result.decisions for a in decision.artifacts}
        result.blocked = {a: by for a, by in result.blocked.items() if a not in held}
        if self._halted in ("interrupted", "terminated"):
            result.status, result.paused = "interrupted", Pause(self._halted)
        elif self._halted in ("quota", "max_time"):
            until = ""
            if self._retry_after is not None:
                until = (datetime.now(UTC) + timedelta(seconds=self._retry_after)).isoformat(timespec="seconds")
            result.paused = Pause(self._halted, until)
            result.status = "paused"
        elif result.decisions:
            result.status = "refused"
        elif result.failed or result.blocked or result.moved:
            result.status = "failed"
        elif result.waiting:
            result.status = "paused"
        self._close(self._halted or result.status)

    def _close(self, why: str) -> None:
        """The run's last event."""
        result = self.result
        if self._state.run is None or self._state.run.id != self._id or self._state.run.status != "running":
            return
        spared = tuple(a for a in result.kept if a in self._todo)
        status: Any = {"completed": "completed", "failed": "failed"}.get(result.status, "paused")
        if why == "limit":
            status = "completed"
        try:
            self._record(
                cmd.EndRun(
                    run=self._id,
                    status=status,
                    reason=why,
                    code=why,
                    until=result.paused.until if result.paused else "",
                    failed=tuple(result.failed),
                    kept=spared,
                    restored=tuple(result.restored),
                ),
                wait=True,
            )
        except StorageFailed:
            if result.status != "interrupted":
                raise


def _is_idempotent(spec: ArtifactSpec) -> bool:
    """It uses the key that it is given, so doing it twice does it once."""
    return "HEADWAY_IDEMPOTENCY_KEY" in spec.run or bool(spec.metadata.get("idempotent"))


def _no_job(spec: ArtifactSpec, root: str) -> Job:
    return Job(spec, root, {}, [], {}, {}, None)
