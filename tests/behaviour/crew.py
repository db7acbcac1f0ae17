"""A plan in several pairs of hands. Every call begins anew from what is on disk, as another process would."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from headway.core.state import State, Word
from headway.engine.result import RunResult
from headway.life import Finished, Life
from headway.offers import Next
from headway.planning import Planning
from headway.project import Project
from headway.work import Meant, Work


class Crew:
    """One project with one plan, `p`, in headway.yaml."""

    def __init__(self, root: Path, plan: str = "") -> None:
        self.root = root
        root.mkdir(parents=True, exist_ok=True)
        if plan:
            self.propose(plan)

    def propose(self, plan: str) -> None:
        """Write the plan file, and take it in."""
        (self.root / "headway.yaml").write_text(plan, encoding="utf-8")
        self.work.take_in(self.work.meant(str(self.root / "headway.yaml"), None))

    @property
    def work(self) -> Work:
        return Work(Project(self.root))

    def life(self, by: str = "ann") -> Life:
        return Life(self.work, by=by)

    def planning(self, by: str = "ann") -> Planning:
        return Planning(Project(self.root), by=by)

    @property
    def state(self) -> State:
        return Project(self.root).show("p").state

    def status(self) -> str:
        return self.state.status

    @property
    def seq(self) -> int:
        return Project(self.root).show("p").position.seq

    def events(self) -> list[str]:
        return [record.event.type for record in Project(self.root).log("p")]

    def run(self, **options: Any) -> RunResult:
        return self.work.run("p", **options)

    def next(self, agent: str = "") -> Next:
        return self.life().next(Meant("p"), agent=agent)

    def offered(self) -> list[str]:
        return [offer.spec.id for offer in self.next().offers]

    def write(self, name: str, text: str) -> None:
        (self.root / name).write_text(text, encoding="utf-8")

    def read(self, name: str) -> str:
        return (self.root / name).read_text(encoding="utf-8")

    def make(self, artifact_id: str, text: str = "done", by: str = "ann") -> Finished:
        """Claim an artifact, make it, and finish it."""
        spec = self.state.artifacts[artifact_id]
        token = self.life(by).claim("p", artifact_id)["token"]
        for path in spec.produces:
            self.write(path, text)
        return self.life(by).complete("p", artifact_id, token=token, text=text.encode())

    def say(self, artifact_id: str, gate: str, verdict: Word, by: str, text: str = "") -> Finished:
        return self.life(by).verdict("p", artifact_id, gate, verdict, text=text)
