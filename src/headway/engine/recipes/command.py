"""Commands: run by `/bin/sh -e` in the project root, in a process group of their own. Knows processes, not plans."""

from __future__ import annotations

import os
import re
import selectors
import signal
import subprocess
import time
from contextlib import suppress
from typing import IO

from msgspec.structs import replace

from headway.core.placeholders import OWN, Placeholder, find, substitute
from headway.engine.recipes import shell
from headway.engine.recipes.base import KEPT_OUTPUT, TO, Attempt, Job, Kept, wait_of

GRACE = 2.0
LONGEST_TEXT = 32 * 1024 * 1024
"""A text artifact is kept whole up to twice this; more belongs in a file."""

LONGEST_WORD = 30_000
"""A longer command is given to the shell as a file: the system limits how long one word of a call may be."""

PATHS = frozenset({"output", "outputs", "inputs", "sources", "file"})
"""Placeholders that stand for paths: none of them is taken for an option, whatever it begins with."""

QUOTA_EXIT = 75
"""A command that ends with this exit code asks to be tried again later."""

_RETRY_AFTER = re.compile(
    r"retry[ -]after\s*[:=]?\s*(\d{4}-\d\d-\d\dT[\d:.]+(?:Z|[+-]\d\d:?\d\d)?|\d+(?:\.\d+)?|\w{3}, [\w :]+GMT)",
    re.IGNORECASE,
)
"""In what such a command prints to stderr: in how many seconds."""


def command_line(job: Job, template: str) -> str:
    """The command with its placeholders replaced, each quoted for the place in the shell's text where it stands."""
    places = shell.places(template, ((p.start, p.end) for p in find(template)))

    def put(placeholder: Placeholder) -> str:
        if placeholder.name in OWN and not (job.spec.phase or (placeholder.name == "prompt" and job.prompt_path)):
            return placeholder.text
        values = _values(job, placeholder)
        if placeholder.name in PATHS:
            values = [f"./{path}" if path.startswith("-") else path for path in values]
        return " ".join(shell.quoted(text, places[placeholder.start], placeholder.text) for text in values)

    return substitute(template, put)


def _values(job: Job, placeholder: Placeholder) -> list[str]:
    spec = job.spec
    match placeholder.name:
        case "output":
            return [(*spec.outputs.values(), *spec.produces)[0]]
        case "outputs":
            paths = list(spec.outputs.values()) or list(spec.produces)
            if placeholder.key in spec.outputs:
                return [spec.outputs[placeholder.key]]
            return [paths[int(placeholder.key)]] if placeholder.key else paths
        case "inputs":
            given = job.inputs[placeholder.key]
            return [_from_root(os.fspath(given), job.root) if given.paths else os.devnull]
        case "sources":
            return list(job.sources)
        case "id":
            return [spec.id]
        case "contract":
            return [spec.contract]
        case "unit":
            return [spec.unit]
        case "file":
            return [spec.file]
        case "state":
            return [job.state]
        case "prompt":
            return [job.prompt_path]
        case _:
            return [_plain(job.variables.get(placeholder.key, ""))]


def _from_root(path: str, root: str) -> str:
    """A path as the project names it; a folder ends in a slash, as it does where it is an output."""
    return os.path.relpath(path, root) + ("/" if path.endswith("/") else "")


def _plain(value: object) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return value if isinstance(value, str) else str(value)


def run_command(job: Job, template: str, *, collect: bool = False) -> Attempt:
    """One attempt. `collect`: stdout is the output of an artifact without files, so all of it is wanted."""
    line = command_line(job, template)
    if len(line) < LONGEST_WORD:
        return _run_shell(job, ["-c", line], collect=collect)
    import tempfile  # for the few who need it

    with tempfile.NamedTemporaryFile("w", suffix=".sh", encoding="utf-8", errors="surrogateescape") as script:
        script.write(line)
        script.flush()
        return _run_shell(job, [script.name], collect=collect)


def _run_shell(job: Job, words: list[str], *, collect: bool) -> Attempt:
    try:
        process = subprocess.Popen(
            ["/bin/sh", "-e", *words],
            cwd=job.root,
            env=job.environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,
        )
    except (OSError, ValueError) as error:
        why = error.strerror if isinstance(error, OSError) else error
        return Attempt(False, "command_failed", f"The command could not be started: {why}")
    job.around.began(job, process.pid)
    out, err = Kept(LONGEST_TEXT if collect else KEPT_OUTPUT), Kept()
    try:
        ended = _read(process, job, out, err)
        code = _end_group(process, gently=bool(ended))
    except BaseException:  # nobody waits for it any more
        _end_group(process, gently=False)
        raise
    said = Attempt(True, stdout=out.bytes(), stderr=err.bytes())
    if ended == "timeout":
        return replace(said, ok=False, code="timeout", error=f"No end after {job.timeout:g} s")
    if ended == "cancelled":
        return replace(said, ok=False, code="cancelled", error="Cancelled")
    if code == 0 and collect and out.lost:
        longest = f"It prints more than {LONGEST_TEXT >> 20} MiB; give it a file: produces:"
        return Attempt(False, "text_too_long", longest)
    if code == 0:
        return replace(said, value=said.stdout)
    if code == QUOTA_EXIT:
        last = _last_line(said.stderr) or "The command asked to be tried later"
        when = _RETRY_AFTER.search(said.stderr.decode("utf-8", "replace"))
        return replace(said, ok=False, code="quota", error=last, retry_after=wait_of(when[1]) if when else None)
    kind = "command_missing" if code == 127 else "command_failed"
    return replace(said, ok=False, code=kind, error=_explain(code, said.stderr))


def _read(process: subprocess.Popen[bytes], job: Job, out: Kept, err: Kept) -> str:
    """Read what is printed until the command ends; why it was given up, or ""."""
    deadline = time.monotonic() + job.timeout if job.timeout else None
    with selectors.DefaultSelector() as selector:
        for stream, kept in ((process.stdout, out), (process.stderr, err)):
            assert stream is not None, "both are pipes"
            os.set_blocking(stream.fileno(), False)
            selector.register(stream, selectors.EVENT_READ, kept)
        gone_since: float | None = None
        while selector.get_map():
            for key, _ in selector.select(timeout=0.1):
                stream_: IO[bytes] = key.fileobj  # type: ignore[assignment]  # the pipes registered above
                data = stream_.read(1 << 16)
                if data:
                    key.data.add(data)
                    job.printed(data)
                elif data == b"":
                    selector.unregister(stream_)
            if job.around.cancelled():
                return "cancelled"
            if deadline is not None and time.monotonic() > deadline:
                return "timeout"
            if process.poll() is not None:
                gone_since = gone_since or time.monotonic()
                if time.monotonic() - gone_since > 0.3:
                    break  # only a child that was left behind still holds the pipes
    while process.poll() is None:
        if job.around.cancelled():
            return "cancelled"
        if deadline is not None and time.monotonic() > deadline:
            return "timeout"
        time.sleep(0.005)
    return ""


def _end_group(process: subprocess.Popen[bytes], *, gently: bool) -> int:
    """End whatever is left of the command's process group, and wait for the command itself."""
    if gently:
        _signal_group(process.pid, signal.SIGTERM)
        with suppress(subprocess.TimeoutExpired):
            process.wait(GRACE)
    _signal_group(process.pid, signal.SIGKILL)
    code = process.wait()
    for stream in (process.stdout, process.stderr):
        if stream is not None:
            stream.close()
    return code


def _signal_group(group: int, number: int) -> None:
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(group, number)


def _explain(code: int, stderr: bytes) -> str:
    what = f"exit code {code}" if code >= 0 else f"killed by {_signal_name(-code)}"
    lines = _lines(stderr)
    first, last = (_printable(lines[0]), _printable(lines[-1])) if lines else ("", "")
    if first.startswith("Traceback") or first == last:
        first = ""  # Python says it at the end
    said = f"{first}{TO}{last}" if first else last
    return f"{what}: {said}" if said else what


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:  # one of those for real time, which have none
        return f"signal {number}"


def _lines(data: bytes) -> list[str]:
    return [line for line in data.decode("utf-8", "replace").splitlines() if line.strip()]


def _printable(line: str) -> str:
    return "".join(c for c in line.strip()[:500] if c.isprintable())


def _last_line(data: bytes) -> str:
    return _printable(lines[-1]) if (lines := _lines(data)) else ""
