"""What a recipe is given, and what comes of an attempt."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import msgspec

from headway.core.plan import ArtifactSpec
from headway.core.state import Output

KEPT_OUTPUT = 64 * 1024
"""How much of a command's stdout and stderr is kept: this much of its beginning, and of its end."""

TO = " … "
"""Between the first and the last line of what a failed command says: either may be the one that helps."""


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
        self._names = names or {}
        self._read = read

    def __fspath__(self) -> str:
        if not self._outputs:
            raise TypeError("this requirement has no file; use .text()")
        return self._prefix + self._outputs[0].path

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
        data = self.bytes()
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
            raise KeyError(name)
        return found[0]


class Surroundings(Mapping[str, str]):
    """The environment of an attempt, put together when somebody looks: most functions never do."""

    __slots__ = ("_found", "_look")

    def __init__(self, look: Callable[[], Mapping[str, str]]) -> None:
        self._look = look
        self._found: Mapping[str, str] | None = None

    def _all(self) -> Mapping[str, str]:
        if self._found is None:
            self._found = self._look()
        return self._found

    def __getitem__(self, name: str) -> str:
        return self._all()[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._all())

    def __len__(self) -> int:
        return len(self._all())


class Job(msgspec.Struct, frozen=True):
    """One attempt: everything that a recipe may use."""

    spec: ArtifactSpec
    root: str
    inputs: Mapping[str, Input]
    sources: Sequence[str]
    variables: Mapping[str, Any]
    environment: Mapping[str, str]
    timeout: float | None
    function: Callable[..., Any] | None = None
    steps: Callable[[], Callable[[str, Callable[[], Any]], Any]] | None = None
    started: Callable[[int], None] | None = None
    printed: Callable[[bytes], None] | None = None
    cancelled: Callable[[], bool] = lambda: False
    state: str = ""
    prompt: str = ""
    prompts: Mapping[str, str] = {}
    prompt_path: str = ""
    responses: list[str] | None = None


class Attempt(msgspec.Struct):
    """What came of it: nothing wrong, or an error; what a function returned; what was printed."""

    ok: bool
    code: str = ""
    error: str = ""
    value: Any = None
    stdout: bytes = b""
    stderr: bytes = b""
    retry_after: float | None = None


class QuotaExhausted(Exception):
    """Raised by a recipe when a quota or rate limit is used up: the run pauses, and nothing has failed."""

    def __init__(self, message: str = "quota exhausted", *, retry_after: float | None = None) -> None:
        super().__init__(message)
        self.retry_after = retry_after
