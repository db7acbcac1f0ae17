"""Every error a user can meet: one root, one shape (message, facts, hint, code).

* HeadwayError
  x UsageError          the call or the plan is wrong; the user fixes it            exit 2
    + PlanInvalid       the plan has problems; all of them are listed
    + NotFound          no such project, plan, artifact or event
    + FormatTooNew      written by a newer Headway; nothing was touched
  x DecisionNeeded      Headway could go on in several ways; the user chooses       exit 3
    + Rejected          a rule of the plan forbids the command
    + PlanConflict      plan file and ledger changed the same thing
  x DamageError         bytes are not what they were; `headway doctor` says more    exit 4
    + LedgerDamaged     the chain is broken, or acknowledged events are gone
    + BlobDamaged       a blob is missing or does not have the digest of its name
    + StorageFailed     the disk refused a write or a sync
  x TryLater            nothing is wrong; somebody else is at it                    exit 75
  x BugError            this should never happen; please report it                  exit 70

An artifact that fails is not an exception: it is an event (`artifact_failed`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import ClassVar


class HeadwayError(Exception):
    """What happened, the facts of the case, and what to do next."""

    code: ClassVar[str] = "error"

    def __init__(
        self, message: str, *, facts: Mapping[str, object] | None = None, hint: str = "", code: str = ""
    ) -> None:
        super().__init__(message)
        self.message = message
        self.facts: dict[str, object] = dict(facts or {})
        self.hint = hint
        self.error_code = code or self.code

    def __str__(self) -> str:
        lines = [self.message]
        lines += [f"  {name}: {value}" for name, value in self.facts.items()]
        if self.hint:
            lines.append(f"  next: {self.hint}")
        return "\n".join(lines)

    @property
    def in_one_line(self) -> str:
        """The same where there is room for a line only."""
        return "; ".join(line.strip() for line in str(self).splitlines())

    def to_dict(self) -> dict[str, object]:
        """The same content for machines."""
        facts = {k: v if isinstance(v, (int, float, list, dict)) else str(v) for k, v in self.facts.items()}
        return {"code": self.error_code, "message": self.message, "facts": facts, "hint": self.hint}


class UsageError(HeadwayError):
    """The call or the plan is wrong, and the user can mend it."""

    code = "usage"


class NotFound(UsageError):
    """Something was named that does not exist."""

    code = "not_found"


class FormatTooNew(UsageError):
    """Written by a newer Headway than this one. Refused untouched."""

    code = "format.too_new"


class PlanInvalid(UsageError):
    """The plan has problems, all of them listed."""

    code = "plan.invalid"

    def __init__(self, problems: Sequence[object], *, where: str = "", hint: str = "") -> None:
        self.problems = list(problems)
        count = len(self.problems)
        noun = "problem" if count == 1 else "problems"
        super().__init__(
            f"{where or 'The plan'} has {count} {noun}",
            hint=hint or f"correct {'it' if count == 1 else 'them'} and run the command again",
        )

    def __str__(self) -> str:
        return "\n".join([self.message, *(f"  {problem}" for problem in self.problems), f"  next: {self.hint}"])

    def to_dict(self) -> dict[str, object]:
        found = [p.to_dict() if hasattr(p, "to_dict") else str(p) for p in self.problems]
        return {**super().to_dict(), "problems": found}


class DecisionNeeded(HeadwayError):
    """Refused until the user decides."""

    code = "decision"


class Rejected(DecisionNeeded):
    """A rule of the plan forbids the command; state is unchanged."""

    code = "rejected"


class PlanConflict(DecisionNeeded):
    """Plan file and ledger changed the same artifact."""

    code = "plan.conflict"


class DamageError(HeadwayError):
    """Bytes on disk are not what they were."""

    code = "damage"


class LedgerDamaged(DamageError):
    """The ledger's chain is broken, or events that were acknowledged are gone."""

    code = "ledger.damaged"


class BlobDamaged(DamageError):
    """A blob is missing, or its bytes do not have the digest that names them."""

    code = "blob.damaged"


class StorageFailed(DamageError):
    """The disk refused a write or a sync."""

    code = "storage.failed"


def closed_by_recipe(path: str) -> StorageFailed:
    """A recipe that closes all files of its process closes those that a run holds, too."""
    return StorageFailed(
        "A recipe has closed files that are this run's",
        facts={"file": path, "events lost": "none that was acknowledged"},
        hint="headway run goes on; what closes all files belongs into a process of its own: run: instead of make:",
        code="storage.closed",
    )


class TryLater(HeadwayError):
    """Somebody else is at it, or it is not time yet."""

    code = "busy"


class BugError(HeadwayError):
    """This should never happen."""

    code = "bug"
