"""What one connection has claimed, and by which tokens. Used from several threads."""

from __future__ import annotations

import threading


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
