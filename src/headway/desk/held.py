"""What one connection has claimed, and by which tokens; and what it is told of claims in its way.

Used from several threads.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager

from headway.errors import TryLater
from headway.holding import gone
from headway.project import Project


class Held:
    """Claims, by plan and artifact."""

    def __init__(self) -> None:
        self._tokens: dict[tuple[str, str], int] = {}
        self._mutex = threading.Lock()

    def keep(self, plan_id: str, artifact_id: str, token: int) -> None:
        """This is ours now."""
        with self._mutex:
            self._tokens[plan_id, artifact_id] = token

    def drop(self, plan_id: str, artifact_id: str) -> None:
        """This is not ours any more."""
        with self._mutex:
            self._tokens.pop((plan_id, artifact_id), None)

    def token(self, plan_id: str, artifact_id: str) -> int | None:
        """By which token it is ours, if it is."""
        with self._mutex:
            return self._tokens.get((plan_id, artifact_id))

    def all(self) -> list[tuple[str, str, int]]:
        """Plan, artifact and token of all that is ours."""
        with self._mutex:
            return [(plan_id, artifact_id, token) for (plan_id, artifact_id), token in self._tokens.items()]

    def by_plan(self) -> dict[str, dict[str, int]]:
        """The same, as tokens by artifact, by plan."""
        found: dict[str, dict[str, int]] = {}
        for plan_id, artifact_id, token in self.all():
            found.setdefault(plan_id, {})[artifact_id] = token
        return found


@contextmanager
def who_is_gone(project: Project, plan_id: str) -> Iterator[None]:
    """Whoever is refused because an artifact is in somebody's hands is told if these are gone, and what helps."""
    try:
        yield
    except TryLater as error:
        if error.error_code != "claim.held":
            raise
        artifact_id = str(error.facts.get("artifact", ""))
        claim = project.show(plan_id).state.claims.get(artifact_id)
        if claim is None or not (why := gone(claim)):
            raise
        raise TryLater(
            f"Artifact {artifact_id} is in the hands of {claim.by}, who is gone",
            facts={"artifact": artifact_id, "why": why, "until": claim.lease},
            hint=f"claim {artifact_id}, then release it, and call again",
            code=error.error_code,
        ) from error
