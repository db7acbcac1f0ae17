"""Calls that take long: they go on in the background, and whoever has the ticket asks for the end."""

from __future__ import annotations

import os
import threading
from collections.abc import Awaitable, Callable, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

import anyio

from headway.core.freshness import Reason
from headway.engine.result import Reporter, RunResult
from headway.errors import NotFound, TryLater

PATIENCE = 30.0
"""How long, in seconds, a call waits before it answers with a ticket."""
MOST = 8
KEPT = 100

Tell = Callable[[float, float | None, str], Awaitable[None]]


class Progress(Reporter):
    """How far a run is, as its reporter is told: read from another thread."""

    def __init__(self) -> None:
        self.done = 0
        self.total = 0
        self.words = ""

    def begun(self, result: RunResult, stale: Mapping[str, Reason], jobs: int) -> None:
        self.total = len(stale)

    def started(self, artifact_id: str, reason: Reason) -> None:
        self.words = f"making {artifact_id}"

    def printed(self, artifact_id: str, data: bytes) -> None:
        """What recipes print is kept, not told."""

    def finished(self, artifact_id: str, outcome: str, reason: Reason, ms: int, note: str) -> None:
        self.done += 1
        self.words = f"{outcome} {artifact_id}"

    def ended(self, result: RunResult) -> None:
        self.words = result.status


class Job:
    """One call under way."""

    def __init__(self, work: Callable[[], dict[str, Any]], pool: ThreadPoolExecutor, progress: Progress) -> None:
        self.id = os.urandom(6).hex()
        self.progress = progress
        self.future: Future[dict[str, Any]] = pool.submit(work)


class Tickets:
    """The calls of a server that may outlast their answers."""

    def __init__(self, *, patience: float = PATIENCE) -> None:
        self.patience = patience
        self._pool = ThreadPoolExecutor(MOST, thread_name_prefix="headway-mcp")
        self._jobs: dict[str, Job] = {}
        self._mutex = threading.Lock()
        self._closing = ""

    def start(self, work: Callable[[Progress], dict[str, Any]]) -> Job:
        """Begin a call; more at once than there are hands for are refused, so that none waits unseen."""
        with self._mutex:
            busy = sum(not job.future.done() for job in self._jobs.values())
            if busy >= MOST:
                raise TryLater(
                    f"{busy} calls are under way already", hint="ask for their tickets first", code="mcp.busy"
                )
            progress = Progress()
            job = Job(lambda: work(progress), self._pool, progress)
            self._jobs[job.id] = job
            for old in list(self._jobs)[:-KEPT]:
                if self._jobs[old].future.done():
                    del self._jobs[old]
            return job

    def find(self, ticket: str) -> Job:
        """The call behind a ticket."""
        job = self._jobs.get(ticket)
        if job is None:
            raise NotFound(
                "There is no such ticket",
                facts={"ticket": ticket[:40]},
                hint="a ticket ends with its server; status and get_plan say what came of the call",
                code="mcp.ticket",
            )
        return job

    async def wait(self, job: Job, tell: Tell) -> dict[str, Any]:
        """The end of a call, or after a while its ticket; progress is told meanwhile."""
        said: tuple[int, str] = (-1, "")
        pause = 0.01
        with anyio.move_on_after(self.patience):
            while not job.future.done():
                now = (job.progress.done, job.progress.words)
                if now != said and job.progress.words:
                    said = now
                    await tell(float(now[0]), float(job.progress.total) or None, now[1])
                await anyio.sleep(pause)
                pause = min(pause * 1.5, 0.25)
        if not job.future.done():
            return {"ticket": job.id, "status": "running", "done": job.progress.done, "total": job.progress.total}
        return job.future.result()

    def close(self) -> None:
        """Runs are asked to pause; a completion that is being recorded is let finish."""
        self._closing = "interrupted"
        self._pool.shutdown(wait=False)

    def closing(self) -> str:
        """Why runs are to pause, or "" while they are not."""
        return self._closing
