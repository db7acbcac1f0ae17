"""A program's file is imported for its plan, or for its functions; while it is, its own plan does not run."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from headway.errors import UsageError

UNGUARDED = "plan.guard"
"""The code of the error that a program meets which runs its plan all the same."""

_READ: ContextVar[str] = ContextVar("read", default="")
"""The file that is being read: then nothing is run, whoever only wants to look."""


@contextmanager
def reading(path: str) -> Iterator[None]:
    """While a file is read, a plan that it runs is refused."""
    before = _READ.set(path)
    try:
        yield
    finally:
        _READ.reset(before)


def refuse_while_read() -> None:
    """Whoever runs a plan asks this first."""
    path = _READ.get()
    if path:
        raise UsageError(
            f"{path} runs its plan as soon as it is read",
            facts={"reason": "headway reads it to see the plan, or for its functions, and must not run it then"},
            hint='put run() under  if __name__ == "__main__":',
            code=UNGUARDED,
        )
