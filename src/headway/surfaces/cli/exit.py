"""Errors become words and an exit code here, and nowhere else."""

from __future__ import annotations

import os
import traceback
from typing import Any

from headway.core.nearest import Nearest
from headway.errors import BugError, DamageError, DecisionNeeded, HeadwayError, TryLater, UsageError

CODES: tuple[tuple[type[HeadwayError], int], ...] = (
    (UsageError, 2),
    (DecisionNeeded, 3),
    (DamageError, 4),
    (TryLater, 75),
    (BugError, 70),
)


AROUND = 30
"""So many characters around one that cannot be written show where it stands."""

MEANT = {
    "history": "dag show",
    "explain": "why",
    "list": "plans list",
    "build": "run",
    "make": "run",
    "discard": "run --discard-edits",
}
"""Words that others use for a verb."""


def exit_code(error: HeadwayError) -> int:
    """The exit code of an error, by who can do something about it."""
    return next((code for kind, code in CODES if isinstance(error, kind)), 70)


def leave(error: Exception, screen: Any) -> int:
    """Show any error; the exit code to leave with."""
    if isinstance(error, HeadwayError):
        screen.error(error)
        return exit_code(error)
    if isinstance(error, OSError):
        screen.error(
            DamageError(
                "The operating system refused",
                facts={"error": error.strerror or error, "path": error.filename or "?"},
                hint="check permissions and free space, then run the command again",
                code="os",
            )
        )
        return 4
    if isinstance(error, UnicodeEncodeError):
        screen.error(_unwritable(error))
        return 2
    screen.error(
        BugError(
            "Headway has a bug; nothing that was acknowledged is lost",
            facts={"error": f"{type(error).__name__}: {error}"},
            hint="HEADWAY_DEBUG=1 shows where; please report it",
        )
    )
    if os.environ.get("HEADWAY_DEBUG"):
        traceback.print_exception(error)
    return 70


def _unwritable(error: UnicodeEncodeError) -> UsageError:
    """A name or a word that is not text: bytes of a command line, or too much for the locale."""
    way_out = "export PYTHONUTF8=1, or set a locale with UTF-8" if error.encoding != "utf-8" else "give it in UTF-8"
    return UsageError(
        f"There is a text that cannot be written as {error.encoding}",
        facts={"text": ascii(error.object[max(error.start - AROUND, 0) : error.end + AROUND])},
        hint=f"{way_out}, then run the command again",
        code="usage.encoding",
    )


def unknown_verb(name: str, known: list[str]) -> UsageError:
    """The error of a verb that does not exist."""
    if name.startswith("-"):
        return UsageError(
            f"The verb comes first, then {name}", hint=f"headway VERB {name} …; headway --help", code="usage.verb"
        )
    near = MEANT.get(name) or Nearest(known).of(name)
    return UsageError(
        f"headway has no verb {name!r}",
        facts={"did you mean": f"headway {near}"} if near else {},
        hint="headway --help lists them",
        code="usage.verb",
    )
