"""One artifact, made once: prepare its inputs, run its recipe with retries, verify, take its outputs into blobs.

Runs in a worker's thread. Knows nothing of ledgers and schedules: what it returns is recorded by the run.
"""

from __future__ import annotations

import hashlib
import os
import time
from collections.abc import Callable, Collection, Iterable, Mapping
from functools import cache
from pathlib import Path
from typing import Any

import msgspec
from msgspec.structs import replace

from headway.core.gates import Check, checks, question
from headway.core.plan import ArtifactSpec, Retry
from headway.core.state import Fingerprint, Output
from headway.engine.recipes.base import Attempt, Input, Inputs, Job
from headway.engine.row import Outcome, Plain, Row, failure_of, left_by
from headway.engine.templates import Rendered
from headway.errors import HeadwayError
from headway.files.outputs import Outputs, Placed
from headway.files.texts import Texts

EVIDENCE = 4096
"""How much of what a check prints is recorded: this much of its end."""


SHOWN = 60
"""So many characters of the command that verifies name it."""


TOUCHED = "touched"
"""The code of what was not begun: at its paths, somebody has left something in the last moment."""


class Task(msgspec.Struct):
    """What a worker needs to make an artifact. `before`: shared files, as they have to be when an attempt begins;
    `left`: what stands at its own paths until then; `light`: it takes but a moment, by all that is known.
    """

    job: Job
    fp: Fingerprint
    retry: Retry
    token: int = 0
    loop: Any = None
    before: tuple[Output, ...] = ()
    replaces: bool = False
    left: Mapping[str, str] = {}
    light: bool = False


class Workshop:
    """Makes artifacts in one project."""

    def __init__(self, root: str, outputs: Outputs, home: str, render: Callable[[Job], Rendered] | None = None) -> None:
        self.root = root
        self._render = render
        self.outputs = outputs
        self._prefix = os.path.join(root, "")
        self._texts = Texts(root, home, outputs.text)

    def row(self) -> Row:
        """For what one thread makes from here on: recipes before it may have done anything to the folders."""
        self.outputs.folders.forget()
        return Row(self.outputs)

    def make_all(self, tasks: Iterable[Task], row: Row) -> bool:
        """Make artifacts one after the other, up to the first that is seen to fail, and say whether none was; the row
        tells what came of each once it is written.

        Never raises: an engine's own error is the artifact's failure, said so.
        """
        for task in tasks:
            made: Outcome | Plain
            try:
                made = self._make_plainly(task, row) if _is_plain(task) else self.make(task, row)
            except BaseException as error:  # noqa: BLE001  # a worker that died would hang the run
                spec = task.job.spec
                left = left_by(self.outputs, (*spec.produces, *spec.modifies))
                made = Outcome(spec.id, False, left, *failure_of(error))
            if not (row.end(made) if isinstance(made, Outcome) else row.end_with(made)):
                return False
        return True

    def _make_plainly(self, task: Task, row: Row) -> Outcome | Plain:
        """As `make`, in few steps, as long as nothing comes of it but bytes for a file that was not there."""
        job = task.job
        spec = job.spec
        path = spec.produces[0]
        if not row.is_clear(path):
            return self.make(task, row)
        began = time.monotonic()
        came = _functions()[0](job, task.loop)
        if isinstance(came, str):
            try:
                came = came.encode()
            except UnicodeEncodeError:  # which is told as whatever cannot be written is
                came = Attempt(True, value=came)
        if isinstance(came, Attempt):
            return self._make(task, row, began, came)
        return Outcome(spec.id, True, ms=round((time.monotonic() - began) * 1000)), path, came

    def make(self, task: Task, row: Row) -> Outcome:
        """All attempts of one artifact, unless somebody has been at its paths since they were looked at."""
        began = time.monotonic()
        if task.left and self._is_touched(task):
            return Outcome(task.job.spec.id, False, (), TOUCHED, "Somebody has been at its paths")
        return self._make(task, row, began)

    def _make(self, task: Task, row: Row, began: float, first: Attempt | None = None) -> Outcome:
        """All attempts of one artifact. `first`: what its function came to, where it was called already."""
        attempt, stood = 0, tuple[Output, ...]()
        while True:
            attempt += 1
            outcome, first = self._attempt(task, row, first), None
            attempts = task.retry.attempts
            if attempts > 1:
                row.keep()  # if that fails, it is tried again as well
            if attempt >= attempts or _is_final(outcome):
                break
            stood += (*outcome.stood, *self._wait(task, task.retry.backoff * 2 ** (attempt - 1)))
            outcome.stood = ()
            if task.job.around.cancelled():
                outcome.fail("cancelled", f"The run stopped before it was tried again: {outcome.error}")
                break
            for path in task.job.spec.produces:  # an attempt begins with nothing of the one that failed
                self.outputs.clear(path)
        outcome.attempts, outcome.ms = attempt, round((time.monotonic() - began) * 1000)
        if stood:
            outcome.stood = (*stood, *outcome.stood)
        if not outcome.ok:
            spec = task.job.spec
            outcome.outputs = left_by(self.outputs, (*spec.produces, *spec.modifies))
        return outcome

    def _wait(self, task: Task, seconds: float) -> tuple[Output, ...]:
        """Wait before it is tried again; what somebody has left at its paths meanwhile is kept."""
        spec, look = task.job.spec, self.outputs.observer.look
        paths = (*spec.produces, *spec.modifies)
        left = {path: look(path.rstrip("/")).digest for path in paths}
        _wait(seconds, task.job.around.cancelled)
        return self.outputs.set_aside(path for path in paths if look(path.rstrip("/")).digest not in ("", left[path]))

    def _is_touched(self, task: Task) -> bool:
        observer = self.outputs.observer
        try:
            for path, digest in task.left.items():
                if not (observer.holds(path, digest, cheaply=True) if digest else observer.is_free(path)):
                    return True
        except OSError:  # whoever looks at it anew finds out what is the matter
            return True
        return False

    def _attempt(self, task: Task, row: Row, came: Attempt | None = None) -> Outcome:
        job = task.job
        spec = job.spec
        paths = (*spec.produces, *spec.modifies) if spec.modifies else spec.produces
        said = Outcome(spec.id, True)
        try:
            if came is not None:
                attempt = came
            else:
                row.make_parents(paths)
                if task.before and not self.put_back(task.before):
                    return said.fail("unstored", "What a shared file was before is not stored any more")
                if spec.templates and self._render is not None:
                    job = self._with_prompt(task, said, row)
                if job.function is not None:
                    attempt = _functions()[1](job, task.loop)
                else:
                    attempt = _command(job, spec.run, collect=not paths)
            if job.responses:
                attempt.stdout = "\n".join(job.responses).encode()
            if attempt.stdout or attempt.stderr:
                said.stdout, said.stderr = self._keep(attempt.stdout), self._keep(attempt.stderr)
            if spec.templates and said.stdout:
                self._texts.put(said.stdout)
            if not attempt.ok:
                said.retry_after = attempt.retry_after
                return said.fail(attempt.code, attempt.error)
            text, known = self._write(attempt.value, job, said, row, {} if attempt.wrote else task.left, task.light)
            others = [path for path in paths if path not in known] if len(known) != len(paths) else ()
            if others and (missing := self._missing(spec, others)):
                return said.fail("output_missing", f"It did not write {', '.join(missing)}")
            checked = self.verify(job) if spec.verify else None
            if checked is not None and checked.code == "cancelled":
                return said.fail("cancelled", checked.error)
            if checked is not None and not checked.ok:
                said.stdout, said.stderr = self._keep(checked.stdout), self._keep(checked.stderr)
                return said.fail("verify_failed", told(spec, checked))
            if checked is not None and (missing := self._missing(spec, paths)):
                return said.fail("output_missing", f"Its verify took {', '.join(missing)} away")
            placed: list[Placed] = []
            if checked is not None or len(known) != len(spec.produces) or spec.modifies:
                said.outputs = self.outputs.capture(paths) or (self.outputs.keep_text(text),)
            else:
                placed = [known[path] for path in spec.produces] or [Placed("", text)]
            said.verified = checked is not None
            said.checks = self.checks(job) if spec.gates else ()
            if said.checks and job.around.cancelled():
                return said.fail("cancelled", "The run stopped")
            if placed:
                row.add(said, placed)
            return said
        except HeadwayError as error:
            if not error.error_code.startswith("template."):
                return said.fail(*failure_of(error))
            said.stderr = self._keep(error.hint.encode())  # the names that a template has are many: `why` lists them
            return said.fail(error.error_code, error.message)
        except OSError as error:
            return said.fail(*failure_of(error))
        except (ValueError, TypeError, msgspec.MsgspecError) as error:
            return said.fail("return_value", f"What it returned cannot be written: {error}")

    def _with_prompt(self, task: Task, said: Outcome, row: Row) -> Job:
        """The job with its prompt: rendered now that its inputs are in place, kept as a blob, and put into a file.

        Before anything is asked with it, unless the answer is there in a moment: then the file is for those who ask.
        """
        assert self._render is not None, "whoever has templates can render them"
        rendered = self._render(task.job)
        data = rendered.text.encode()
        if rendered.digests != task.fp.templates:  # and may be what it was when somebody looks again
            said.other = tuple(sorted({n for n, _ in rendered.digests.items() ^ task.fp.templates.items()}))
        if task.light:
            said.prompt = digest = hashlib.sha256(data).hexdigest()
            row.add_text(said, digest, data)
        else:
            said.prompt = digest = self._keep(data)
            self._texts.put(digest, data)
        return replace(
            task.job,
            prompt=rendered.text,
            prompts=rendered.parts,
            prompt_path=self._texts.path(digest),
            show_prompt=(lambda: self._texts.put(digest, data)) if task.light else None,
            responses=[],
        )

    def _missing(self, spec: ArtifactSpec, paths: Iterable[str]) -> list[str]:
        missing = [path for path in paths if not self._exists(path)]
        return [path for path in missing if path not in spec.optional] if missing else missing

    def _exists(self, path: str) -> bool:
        """Whether something was written there; a folder that is still empty is nothing."""
        full = os.path.join(self.root, path)
        return bool(os.listdir(full)) if path.endswith("/") and os.path.isdir(full) else os.path.lexists(full)

    def _write(
        self, value: Any, job: Job, said: Outcome, row: Row, left: Mapping[str, str], light: bool
    ) -> tuple[bytes, dict[str, Placed]]:
        """Put what a function returned where it belongs: the text of one without files, and what was written.

        `left`: what was at its paths before, where the function has nothing to do with what stands there now. What is
        light, and has nothing but what it returned, is written together with others of the row.
        """
        spec = job.spec
        if job.function is None:
            return (value if isinstance(value, bytes) and not spec.produces else b""), {}
        _, _, written = _functions()
        text, known = b"", dict[str, Placed]()
        returned = written(value, job)
        later = light and len(returned) == len(spec.produces) and not (spec.modifies or spec.gates)
        later = later and not any(isinstance(data, Path) for data in returned.values())
        for path, data in returned.items():
            if not path:
                text = data if isinstance(data, bytes) else self._found(data).read_bytes()
            elif isinstance(data, Path):
                self._copy(data, path, left.get(path), said)
            else:
                known[path] = row.place(said, path, data, left.get(path), later=later)
        return text, known

    def _copy(self, source: Path, path: str, left: str | None, said: Outcome) -> None:
        """Copy a file or folder that a function returned."""
        target, found = os.path.join(self.root, path), self._found(source)
        if found.resolve() == Path(target).resolve():
            return
        if found.is_dir():
            import shutil

            self.outputs.refuse_late()
            self.outputs.folders.look_again(path)
            shutil.copytree(found, target, dirs_exist_ok=True, symlinks=True)
            return
        data = found.read_bytes()
        if (stood := self.outputs.newcomer(path, left, data)) is not None:
            said.stood += (stood,)
        self.outputs.write(path, data, executable=bool(found.stat().st_mode & 0o100))

    def _found(self, path: Path) -> Path:
        """A path that a function returned: from the project's folder, wherever the run was started."""
        return Path(self.root) / path

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
            inputs = Inputs()
            for r in spec.requires:
                required = artifacts.get(r)
                if required is None:
                    inputs[r] = self.input(recorded(r))
                else:
                    name = required.phase if required.phase and required.unit == spec.unit else r
                    inputs[name] = self.input(recorded(r), required.outputs)
            return inputs
        inputs, prefix = Inputs(), self._prefix
        for r in spec.requires:
            outputs = recorded(r)
            inputs[r] = Input(prefix, outputs) if outputs and outputs[0].path else self.input(outputs)
        return inputs

    def input(self, outputs: tuple[Output, ...], names: Mapping[str, str] | None = None) -> Input:
        """What a recipe gets of a requirement. Text without a file is put into one."""
        if not outputs or outputs[0].path:
            return Input(self._prefix, outputs, names)
        text, digest = self.outputs.text, outputs[0].digest
        return Input(self._prefix, (Output(self._texts.put(digest), digest),), read=lambda: text(digest))


@cache
def _functions() -> tuple[
    Callable[[Job, Any], str | bytes | Attempt],
    Callable[[Job, Any], Attempt],
    Callable[[Any, Job], dict[str, bytes | Path]],
]:
    """How a function is called, how it is run, and how what it returned is written: imported with the first one, not
    asked for each time.
    """
    from headway.engine.recipes.function import call_function, run_function, written

    return call_function, run_function, written


def _is_plain(task: Task) -> bool:
    """Whether there is but a moment's work for a function, whose one output is a file that is not there yet."""
    job = task.job
    spec = job.spec
    produces = spec.produces
    if not task.light or len(produces) != 1 or job.function is None or job.timeout is not None:
        return False
    if task.before or task.retry.attempts > 1 or task.left.get(produces[0]) != "" or len(task.left) != 1:
        return False
    more = spec.outputs or spec.modifies or spec.templates or spec.verify or spec.gates
    return not more and not produces[0].endswith("/")


def _command(job: Job, line: str, *, collect: bool = False) -> Attempt:
    from headway.engine.recipes.command import run_command  # processes: many plans have only functions

    return run_command(job, line, collect=collect)


def told(spec: ArtifactSpec, checked: Attempt) -> str:
    """What `verify` says against it, and which command says so."""
    first, *more = spec.verify.strip().splitlines()
    return f"verify ({first[:SHOWN]}{'…' if more or len(first) > SHOWN else ''}): {checked.error}"


def _is_final(outcome: Outcome) -> bool:
    """Whether there is nothing to be gained by another attempt."""
    if outcome.ok:
        return not any(check.verdict == "REJECT" for check in outcome.checks)
    return outcome.code in ("quota", "cancelled", "command_missing", "usage")


def _wait(seconds: float, cancelled: Callable[[], bool]) -> None:
    end = time.monotonic() + seconds
    while time.monotonic() < end and not cancelled():
        time.sleep(min(0.05, max(end - time.monotonic(), 0)))
