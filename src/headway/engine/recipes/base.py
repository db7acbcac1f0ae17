"""What a recipe is given, and what comes of an attempt."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import msgspec

from headway.core.plan import ArtifactSpec
from headway.core.state import Fingerprint, Output

KEPT_OUTPUT = 64 * 1024
"""How much of a command's stdout and stderr is kept: this much of its beginning, and of its end."""

LONGEST_WAIT = 366 * 24 * 3600
"""The most seconds after which it can be worth trying again."""

TO = " … "
"""Between the first and the last line of what a failed command says: either may be the one that helps."""


class Stopped(BaseException):
    """The run stops, and so does the function that was about to begin another step: its own handlers are no answer."""


class Kept:
    """The beginning and the end of what a command prints, however much that is."""

    def __init__(self, limit: int = KEPT_OUTPUT) -> None:
        self._limit = limit
        self._start = bytearray()
        self._end = bytearray()
        self._lost = 0

    def add(self, data: bytes) -> None:
        room = self._limit - len(self._start)
        self._start += data[:room]
        self._end += data[room:] if room < len(data) else b""
        if len(self._end) > 2 * self._limit:
            self._lost += len(self._end) - self._limit
            del self._end[: -self._limit]

    @property
    def lost(self) -> int:
        """How many bytes were left out."""
        return self._lost + max(len(self._end) - self._limit, 0)

    def bytes(self) -> bytes:
        lost = self.lost
        gap = b"\n[... %d bytes left out ...]\n" % lost if lost else b""
        return bytes(self._start) + gap + bytes(self._end[-self._limit :])


NO_NAMES: Mapping[str, str] = {}
"""Of outputs that have none."""


class Input:
    """What a recipe gets of a requirement: path-like, and readable."""

    __slots__ = ("_names", "_outputs", "_prefix", "_read")

    def __init__(
        self,
        prefix: str,
        outputs: tuple[Output, ...],
        names: Mapping[str, str] | None = None,
        read: Callable[[], bytes] | None = None,
    ) -> None:
        """`prefix`: what makes full paths of theirs. `read`: how to get at its bytes, where they are not what its first
        path holds.
        """
        self._prefix = prefix
        self._outputs = outputs
        self._names = names if names is not None else NO_NAMES
        self._read = read

    def __fspath__(self) -> str:
        try:
            return self._prefix + self._outputs[0].path
        except IndexError:
            raise TypeError("this requirement has no file; use .text()") from None

    def __str__(self) -> str:
        return self.__fspath__() if self._outputs else self.text()

    @property
    def paths(self) -> list[str]:
        """All files that the requirement produces."""
        return [self._prefix + output.path for output in self._outputs]

    @property
    def relative(self) -> tuple[str, ...]:
        """The same, as the project names them."""
        return tuple([output.path for output in self._outputs])

    def has(self, name: str) -> bool:
        """Whether an output has this name."""
        return name in self._names

    def named(self, name: str) -> str:
        """The text of the output that has this name."""
        path = self._names[name]
        if path not in self.relative:
            raise KeyError(name)
        with open(self._prefix + path, encoding="utf-8") as file:
            return file.read()

    def __getitem__(self, name: str) -> str:
        return self.named(name)

    def bytes(self) -> bytes:
        """Its first output, or its text."""
        if self._read is not None:
            return self._read()
        if not self._outputs:
            return b""
        with open(self, "rb") as file:
            return file.read()

    def text(self, encoding: str = "utf-8") -> str:
        """The same as text."""
        return self.bytes().decode(encoding)

    def json(self, kind: Any = None) -> Any:
        """The same as JSON, checked against a type if one is given."""
        return from_json(self.bytes(), kind)


def from_json(data: bytes, kind: Any = None) -> Any:
    """A value from JSON, checked against a type if one is given: a dataclass, a pydantic model, or any other."""
    if kind is None:
        return msgspec.json.decode(data)
    if hasattr(kind, "model_validate_json"):
        return kind.model_validate_json(data)
    return msgspec.json.decode(data, type=kind)


class Inputs(dict[str, Input]):
    """Requirements by name; one of another plan, `users:UserModel`, also as `UserModel` where that is the only one."""

    def __missing__(self, name: str) -> Input:
        found = [given for full, given in self.items() if name in (full.partition(":")[2], full.rpartition(":")[2])]
        if len(found) != 1:
            raise KeyError(f"{name} is not among what it requires ({', '.join(self) or 'nothing'}): add it to requires")
        return found[0]


Stepper = Callable[[str, Callable[[], Any], bool], Any]
"""Makes a part of an attempt durable: its name, what is to be done, and whether that has to be awaited."""


class Surroundings:
    """What is around attempts: their environment, who keeps their steps, who hears of them, and whether they are to
    stop. These are for one that is only checked: nobody hears of it, and it ends by itself.
    """

    def __init__(self, environ: Mapping[str, str], plan_id: str, run_id: str = "") -> None:
        self._environ = environ
        self._plan_id = plan_id
        self._run_id = run_id

    def environment(self, job: Job) -> dict[str, str]:
        """The caller's environment, and what names this attempt: put together when somebody looks, as few do."""
        spec = job.spec
        phase = {"HEADWAY_UNIT": spec.unit, "HEADWAY_PHASE": spec.phase} if spec.phase else {}
        prompt = {"HEADWAY_PROMPT": os.path.join(job.root, job.prompt_path)} if job.prompt_path else {}
        return {
            **self._environ,
            **phase,
            **prompt,
            "HEADWAY_PLAN": self._plan_id,
            "HEADWAY_RUN": self._run_id,
            "HEADWAY_ARTIFACT": spec.id,
            "HEADWAY_IDEMPOTENCY_KEY": self.key(job),
        }

    def key(self, job: Job) -> str:
        """The same for every attempt that is made from the same things."""
        return ""

    def stepper(self, job: Job) -> Stepper | None:
        """What makes a part of it durable."""
        return None

    def began(self, job: Job, pid: int) -> None:
        """A process was started for it."""

    def printed(self, job: Job, data: bytes) -> None:
        """It printed something."""

    def cancelled(self) -> bool:
        """Whether it is to stop."""
        return False


class Job(msgspec.Struct, frozen=True):
    """One attempt: everything that a recipe may use. `fp`: what it is made from; none where it is only checked.
    `effect_key`: the key that an earlier attempt at the same thing was given, where there was one. `show_prompt`: has
    the prompt at its path, for whoever may read it there.
    """

    spec: ArtifactSpec
    root: str
    inputs: Mapping[str, Input]
    sources: Sequence[str]
    variables: Mapping[str, Any]
    around: Surroundings
    timeout: float | None = None
    function: Callable[..., Any] | None = None
    fp: Fingerprint | None = None
    effect_key: str = ""
    state: str = ""
    prompt: str = ""
    prompts: Mapping[str, str] = {}
    prompt_path: str = ""
    show_prompt: Callable[[], object] | None = None
    responses: list[str] | None = None

    @property
    def environment(self) -> dict[str, str]:
        """The environment of this attempt."""
        if self.show_prompt is not None:
            self.show_prompt()
        return self.around.environment(self)

    def printed(self, data: bytes) -> None:
        """Let it be known what the recipe prints."""
        self.around.printed(self, data)


class Attempt(msgspec.Struct):
    """What came of it: nothing wrong, or an error; what a function returned; what was printed.

    `wrote`: it asked for the paths of its outputs, so that what stands there may be its own.
    """

    ok: bool
    code: str = ""
    error: str = ""
    value: Any = None
    stdout: bytes = b""
    stderr: bytes = b""
    retry_after: float | None = None
    wrote: bool = False


def wait_of(said: object) -> float | None:
    """After how many seconds it is worth trying again: a number, or a date as HTTP or ISO 8601 has it; else None."""
    try:
        seconds = _until(said) if isinstance(said, str) else float(said)  # type: ignore[arg-type]
    except (TypeError, ValueError, OverflowError):
        return None
    return seconds if 0 <= seconds <= LONGEST_WAIT else None


def _until(said: str) -> float:
    from datetime import UTC, datetime

    text = said.strip()
    if text.replace(".", "", 1).isdecimal():
        return float(text)
    if "," in text:
        from email.utils import parsedate_to_datetime

        when = parsedate_to_datetime(text)
    else:
        when = datetime.fromisoformat(text)
    return (when.replace(tzinfo=when.tzinfo or UTC) - datetime.now(UTC)).total_seconds()


class QuotaExhausted(Exception):
    """Raised by a recipe when a quota or rate limit is used up: the run pauses, and nothing has failed."""

    def __init__(self, message: str = "quota exhausted", *, retry_after: float | None = None) -> None:
        super().__init__(message)
        self.retry_after = retry_after
