"""One artifact, made once: prepare its inputs, run its recipe with retries, verify, take its outputs into blobs.

Runs in a worker's thread. Knows nothing of ledgers and schedules: what it returns is recorded by the run.
"""

from __future__ import annotations

import dataclasses
import hashlib
import os
import time
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec

from headway.core.gates import Check, checks, question
from headway.core.plan import ArtifactSpec, Retry
from headway.core.state import Fingerprint, Output
from headway.disk import REAL, write_all, write_file
from headway.engine.recipes.base import Attempt, Input, Inputs, Job, Surroundings
from headway.engine.templates import Rendered
from headway.errors import HeadwayError
from headway.files.outputs import Outputs

EVIDENCE = 4096
"""How much of what a check prints is recorded: this much of its end."""


SHOWN = 60
"""So many characters of the command that verifies name it."""


@dataclass(slots=True)
class Task:
    """What a worker needs to make an artifact. `before`: shared files, as they have to be when an attempt begins."""

    job: Job
    fp: Fingerprint
    retry: Retry
    token: int = 0
    loop: Any = None
    before: tuple[Output, ...] = ()
    replaces: bool = False


@dataclass(slots=True)
class Outcome:
    """What came of it."""

    id: str
    ok: bool
    outputs: tuple[Output, ...] = ()
    code: str = ""
    error: str = ""
    attempts: int = 1
    ms: int = 0
    stdout: str = ""
    stderr: str = ""
    verified: bool = False
    retry_after: float | None = None
    checks: tuple[Check, ...] = ()
    prompt: str = ""


class Workshop:
    """Makes artifacts in one project."""

    def __init__(self, root: str, outputs: Outputs, home: str, render: Callable[[Job], Rendered] | None = None) -> None:
        self.root = root
        self._render = render
        self.outputs = outputs
        self._texts = os.path.join(home, "texts")
        self._below = os.path.relpath(self._texts, root)

    def make(self, task: Task) -> Outcome:
        """All attempts of one artifact. Never raises: an engine's own error is the artifact's failure, said so."""
        began = time.monotonic()
        attempt = 0
        while True:
            attempt += 1
            outcome = self._attempt(task)
            passed = outcome.ok and not (outcome.checks and any(c.verdict == "REJECT" for c in outcome.checks))
            final = passed or outcome.code in ("quota", "cancelled", "command_missing", "usage")
            if final or attempt >= task.retry.attempts or task.job.cancelled():
                break
            _wait(task.retry.backoff * 2 ** (attempt - 1), task.job.cancelled)
            for path in task.job.spec.produces:  # an attempt begins with nothing of the one that failed
                self.outputs.clear(path)
        outcome.attempts, outcome.ms = attempt, round((time.monotonic() - began) * 1000)
        if not outcome.ok:
            outcome.outputs = self._left(task.job.spec)
        return outcome

    def _attempt(self, task: Task) -> Outcome:
        spec = task.job.spec
        try:
            for path in (*spec.produces, *spec.modifies) if spec.produces or spec.modifies else ():
                self.outputs.make_parents(path)
            if not self.put_back(task.before):
                return Outcome(spec.id, False, (), "unstored", "What a shared file was before is not stored any more")
            said = Outcome(spec.id, True)
            if spec.templates and self._render is not None:
                task = dataclasses.replace(task, job=self._with_prompt(task.job))
                said.prompt = os.path.basename(task.job.prompt_path)
            attempt = self._run(task)
            if task.job.responses:
                attempt = attempt._replace(stdout="\n".join(task.job.responses).encode())
            said.stdout, said.stderr = self._keep(attempt.stdout), self._keep(attempt.stderr)
            if spec.templates and said.stdout:
                self._as_file(said.stdout)
            if not attempt.ok:
                said.retry_after = attempt.retry_after
                return _failed(said, attempt.code, attempt.error)
            text, known = self._write(attempt.value, task.job)
            missing = [p for p in (*spec.produces, *spec.modifies) if p not in known and not self._exists(p)]
            if missing and spec.optional:
                missing = [p for p in missing if p not in spec.optional]
            if missing:
                return _failed(said, "output_missing", f"It did not write {', '.join(missing)}")
            checked = self.verify(task.job)
            if checked is not None and checked.code == "cancelled":
                return _failed(said, "cancelled", checked.error)
            if checked is not None and not checked.ok:
                said.stdout, said.stderr = self._keep(checked.stdout), self._keep(checked.stderr)
                return _failed(said, "verify_failed", told(spec, checked))
            if checked is not None or len(known) != len(spec.produces) or spec.modifies:
                outputs = self.outputs.capture((*spec.produces, *spec.modifies))
            else:
                outputs = tuple(known[path] for path in spec.produces)
            said.outputs = outputs or (self.outputs.keep_text(text),)
            said.verified = checked is not None
            said.checks = self.checks(task.job) if spec.gates else ()
            if said.checks and task.job.cancelled():
                return _failed(said, "cancelled", "The run stopped")
            return said
        except HeadwayError as error:
            if not error.error_code.startswith("template."):
                return Outcome(spec.id, False, (), error.error_code, error.in_one_line)
            hint = self._keep(error.hint.encode())  # the names that a template has are many: `why` lists them
            return Outcome(spec.id, False, (), error.error_code, error.message, stderr=hint)
        except OSError as error:
            return Outcome(spec.id, False, (), "os", f"{error.strerror}: {error.filename}")
        except (ValueError, TypeError, msgspec.MsgspecError) as error:
            return Outcome(spec.id, False, (), "return_value", f"What it returned cannot be written: {error}")

    def _with_prompt(self, job: Job) -> Job:
        """The job with its prompt: rendered now that its inputs are in place, kept as a blob, and put into a file."""
        assert self._render is not None, "whoever has templates can render them"
        rendered = self._render(job)
        data = rendered.text.encode()
        digest = self.outputs.blobs.put(data)
        path = self._as_file(digest, data)
        return job._replace(
            prompt=rendered.text,
            prompts=rendered.parts,
            prompt_path=path,
            environment=Surroundings(lambda: {**job.environment, "HEADWAY_PROMPT": os.path.join(self.root, path)}),
            responses=[],
        )

    def _run(self, task: Task) -> Attempt:
        spec = task.job.spec
        if task.job.function is not None:
            from headway.engine.recipes.function import run_function

            return run_function(task.job, task.loop)
        return _command(task.job, spec.run, collect=not spec.produces and not spec.modifies)

    def _exists(self, path: str) -> bool:
        """Whether something was written there; a folder that is still empty is nothing."""
        full = os.path.join(self.root, path)
        return bool(os.listdir(full)) if path.endswith("/") and os.path.isdir(full) else os.path.lexists(full)

    def _write(self, value: Any, job: Job) -> tuple[bytes, dict[str, Output]]:
        """Put what a function returned where it belongs: the text of one without files, and what was written."""
        spec = job.spec
        if job.function is None:
            return (value if isinstance(value, bytes) and not spec.produces else b""), {}
        from headway.engine.recipes.function import written

        text, known = b"", {}
        for path, data in written(value, job).items():
            if not path:
                text = data if isinstance(data, bytes) else data.read_bytes()
            elif isinstance(data, Path):
                self._copy(data, path)
            else:
                known[path] = self.outputs.put(path, data)
        return text, known

    def _copy(self, source: Path, path: str) -> None:
        target = os.path.join(self.root, path)
        found = source if source.is_absolute() else Path(self.root) / source
        if found.resolve() == Path(target).resolve():
            return
        if found.is_dir():
            import shutil

            shutil.copytree(found, target, dirs_exist_ok=True, symlinks=True)
        else:
            self.outputs.write(path, found.read_bytes())

    def put_back(self, before: tuple[Output, ...]) -> bool:
        """Shared files as they have to be; no digest stands for no file. Whether it could be done."""
        for output in before:
            if not output.digest:
                self.outputs.remove(output.path)
        return self.outputs.restore(output for output in before if output.digest)

    def verify(self, job: Job) -> Attempt | None:
        """What the artifact's `verify` says of what is at its paths; None if it has none."""
        return _command(job, job.spec.verify) if job.spec.verify else None

    def checks(self, job: Job, names: Collection[str] | None = None) -> tuple[Check, ...]:
        """What the artifact's gates that are commands (or those with these names) say of what is at its paths."""
        said = []
        for gate in checks(job.spec, names):
            attempt = _command(job, gate.run)
            printed = (attempt.stdout + attempt.stderr)[-EVIDENCE:].decode("utf-8", "replace").strip()
            text = printed if attempt.ok else f"{attempt.error}\n{printed}".strip()
            said.append(Check(gate.name, "APPROVE" if attempt.ok else "REJECT", text, question(gate)))
        return tuple(said)

    def _keep(self, data: bytes) -> str:
        return self.outputs.blobs.put(data) if data else ""

    def _left(self, spec: ArtifactSpec) -> tuple[Output, ...]:
        """What a failed attempt left at the output paths, so that it is never taken for an edit."""
        try:
            return self.outputs.left((*spec.produces, *spec.modifies))
        except (HeadwayError, OSError):
            return ()

    def inputs(
        self,
        spec: ArtifactSpec,
        recorded: Callable[[str], tuple[Output, ...]],
        artifacts: Mapping[str, ArtifactSpec] | None = None,
    ) -> Mapping[str, Input]:
        """What a recipe gets of all its requirements. Those of other plans also answer to their plain names.

        `artifacts` know the names of outputs; a phase calls the phases of its own unit by their names.
        """
        if artifacts and (spec.phase or spec.templates):
            named = {r: artifacts.get(r, spec) for r in spec.requires}
            return Inputs(
                {
                    required.phase
                    if required.phase and required.unit == spec.unit and required is not spec
                    else r: self.input(recorded(r), required.outputs if required is not spec else {})
                    for r, required in named.items()
                }
            )
        found = {required: self.input(recorded(required)) for required in spec.requires}
        return Inputs(found) if any(":" in required for required in spec.requires) else found

    def input(self, outputs: tuple[Output, ...], names: Mapping[str, str] | None = None) -> Input:
        """What a recipe gets of a requirement. Text without a file is put into one."""
        paths = tuple([output.path for output in outputs if output.path])
        if paths or not outputs:
            return Input(self.root, paths, names)
        text, digest = self.outputs.text, outputs[0].digest
        return Input(self.root, (self._as_file(digest),), read=lambda: text(digest))

    def _as_file(self, digest: str, data: bytes | None = None) -> str:
        """A blob, whose bytes may be at hand, as a file that nobody changes: its path from the project."""
        path = os.path.join(self._texts, digest)
        read = self.outputs.text
        if not _write_new(path, lambda: read(digest) if data is None else data) and not _has_digest(path, digest):
            os.makedirs(self._texts, exist_ok=True)
            write_file(REAL, path, [read(digest)], durable=False)
            os.chmod(path, 0o444)
        return os.path.join(self._below, digest)


def _command(job: Job, line: str, *, collect: bool = False) -> Attempt:
    from headway.engine.recipes.command import run_command  # processes: many plans have only functions

    return run_command(job, line, collect=collect)


def _write_new(path: str, data: Callable[[], bytes]) -> bool:
    """Write a file that is not there yet, at once; whoever finds half of it will see by its digest."""
    try:
        fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o444)
    except OSError:
        return False
    try:
        write_all(REAL, fd, data(), 0)
    finally:
        os.close(fd)
    return True


def _has_digest(path: str, digest: str) -> bool:
    """Whether a text is where it was put, and still what it was."""
    try:
        return hashlib.sha256(_read(path)).hexdigest() == digest
    except OSError:
        return False


def told(spec: ArtifactSpec, checked: Attempt) -> str:
    """What `verify` says against it, and which command says so."""
    first, *more = spec.verify.strip().splitlines()
    return f"verify ({first[:SHOWN]}{'…' if more or len(first) > SHOWN else ''}): {checked.error}"


def _failed(said: Outcome, code: str, error: str) -> Outcome:
    said.ok, said.code, said.error = False, code, error
    return said


def _read(path: str) -> bytes:
    with open(path, "rb") as file:
        return file.read()


def _wait(seconds: float, cancelled: Callable[[], bool]) -> None:
    end = time.monotonic() + seconds
    while time.monotonic() < end and not cancelled():
        time.sleep(min(0.05, max(end - time.monotonic(), 0)))


def environment(environ: Mapping[str, str], spec: ArtifactSpec, plan_id: str, run_id: str, key: str) -> dict[str, str]:
    """The environment of a recipe: the caller's, and what names this attempt."""
    phase = {"HEADWAY_UNIT": spec.unit, "HEADWAY_PHASE": spec.phase} if spec.phase else {}
    return {
        **environ,
        **phase,
        "HEADWAY_PLAN": plan_id,
        "HEADWAY_RUN": run_id,
        "HEADWAY_ARTIFACT": spec.id,
        "HEADWAY_IDEMPOTENCY_KEY": key,
    }
