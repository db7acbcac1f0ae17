"""A workbench for the engine: a project, a plan drawn in one line, and runs that tell what they did.

    bench.plan("a -> b -> c")           # artifacts that each produce out/<id>.txt from what they require
    bench.run().log == ["made a", "made b", "made c"]

Recipes are functions in this process, so that hundreds of runs are fast; `run=` makes an artifact's recipe a command.
A recipe's code is its version here: `bench.change("b", version="2")` is "somebody changed the function".
"""

from __future__ import annotations

import inspect
import os
import shutil
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from headway.core.codec import digest
from headway.core.commands import Command
from headway.core.events import Record
from headway.core.freshness import Reason
from headway.core.plan import ArtifactSpec, PlanSpec, Profile, Settings
from headway.core.state import State
from headway.disk import Disk, RealDisk
from headway.engine.recipes.function import Context
from headway.engine.result import Options, Reporter, RunResult
from headway.engine.session import Session
from headway.engine.status import status_document, why_document
from headway.project import Project

Recipe = Callable[..., Any]


class Hasty(RealDisk):
    """A disk that is not waited for: nothing here is about what survives a power cut."""

    def sync(self, fd: int) -> None:
        pass

    def sync_folder(self, path: str) -> None:
        pass


class Log(Reporter):
    """Hears what a run does: `made a`, `restored b`, in the order in which it happened."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.started_ids: list[str] = []
        self.texts: dict[str, str] = {}
        self.notes: dict[str, str] = {}

    def begun(self, result: RunResult, stale: Mapping[str, Reason], jobs: int) -> None:
        pass

    def started(self, artifact_id: str, reason: Reason) -> None:
        self.started_ids.append(artifact_id)

    def printed(self, artifact_id: str, data: bytes) -> None:
        pass

    def finished(self, artifact_id: str, outcome: str, reason: Reason, ms: int, note: str) -> None:
        self.lines.append(f"{outcome} {artifact_id}")
        self.texts[artifact_id] = reason.text
        self.notes[artifact_id] = note

    def ended(self, result: RunResult) -> None:
        pass


class Ran(NamedTuple):
    """What a run did: its log, its result, and why."""

    log: list[str]
    result: RunResult
    why: dict[str, str]
    notes: dict[str, str]

    @property
    def code(self) -> int:
        return self.result.exit_code

    @property
    def did(self) -> set[str]:
        """The log without its order, for runs that do several things at once."""
        return set(self.log)


class Bench:
    """One project with one plan (or several, by id)."""

    def __init__(self, root: Path, *, disk: Disk | None = None, environ: Mapping[str, str] | None = None) -> None:
        self.root = root
        root.mkdir(parents=True, exist_ok=True)
        self.disk = disk or Hasty()
        self.environ = dict(environ if environ is not None else {"PATH": os.environ["PATH"]})
        self.recipes: dict[str, Recipe] = {}
        self.calls: list[str] = []
        self.largest: int | None = None
        self.plans: dict[str, PlanSpec] = {}
        self.log: Log | None = None

    # The plan.

    def plan(self, drawing: str = "", *, id: str = "plan", **artifacts: Any) -> None:
        """Save a plan: `a -> b -> c; a -> d`. Keys of an artifact may be given by its name."""
        edges: dict[str, list[str]] = {}
        for chain in drawing.split(";") if drawing else ():
            before: list[str] = []
            for step in chain.split("->"):
                names = step.split()
                for name in names:
                    known = edges.setdefault(name, [])
                    known += [b for b in before if b not in known]
                before = names
        for name in artifacts:
            edges.setdefault(name, [])
        specs = [self._spec(name, edges[name], artifacts.get(name, {})) for name in edges]
        known_plan = self.plans.get(id)
        settings = known_plan.settings if known_plan is not None else Settings()
        self.plans[id] = PlanSpec(goal=f"test {id}", id=id, settings=settings, artifacts=tuple(specs))
        self.save(id)

    def _spec(self, name: str, requires: list[str], keys: dict[str, Any]) -> ArtifactSpec:
        given = {"id": name, "requires": sorted(requires), "produces": [f"out/{name}.txt"], **keys}
        if given.pop("by_hand", False):
            return msgspec.convert(given, ArtifactSpec)
        if "run" not in given:
            given = {"make": "bench:recipe", "version": "1", **given}
        for key in ("produces", "sources", "modifies", "requires", "env"):
            if isinstance(given.get(key), str):
                given[key] = [given[key]]
        return msgspec.convert(given, ArtifactSpec)

    def change(self, name: str, *, plan: str = "plan", **keys: Any) -> None:
        """Change some keys of an artifact."""
        spec = self.spec(name, plan)
        changed = msgspec.convert({**msgspec.to_builtins(spec), **keys}, ArtifactSpec)
        old = self.plans[plan]
        specs = tuple(changed if s.id == name else s for s in old.artifacts)
        self.plans[plan] = msgspec.structs.replace(old, artifacts=specs)
        self.save(plan)

    def settings(self, *, plan: str = "plan", profile: Profile | None = None, **keys: Any) -> None:
        """Change some settings of the plan."""
        old = self.plans[plan]
        settings = msgspec.convert({**msgspec.to_builtins(old.settings), **keys}, Settings)
        self.plans[plan] = msgspec.structs.replace(old, settings=settings, profile=profile or old.profile)
        self.save(plan)

    def remove(self, name: str, *, plan: str = "plan") -> None:
        """Take an artifact out of the plan."""
        old = self.plans[plan]
        specs = tuple(s for s in old.artifacts if s.id != name)
        self.plans[plan] = msgspec.structs.replace(old, artifacts=specs)
        self.save(plan)

    def add(self, name: str, *requires: str, plan: str = "plan", **keys: Any) -> None:
        """Add an artifact to the plan."""
        old = self.plans[plan]
        specs = (*old.artifacts, self._spec(name, list(requires), keys))
        self.plans[plan] = msgspec.structs.replace(old, artifacts=specs)
        self.save(plan)

    def save(self, plan: str = "plan") -> None:
        spec = self.plans[plan]
        project = self.project
        project.take_in(spec, name="bench", source=digest(msgspec.json.encode(spec)))
        project.blobs.close()

    def spec(self, name: str, plan: str = "plan") -> ArtifactSpec:
        return next(s for s in self.plans[plan].artifacts if s.id == name)

    def makes(self, name: str, recipe: Recipe | str) -> None:
        """How an artifact is made from here on. Its version says whether that is a change."""
        self.recipes[name] = (lambda: recipe) if isinstance(recipe, str) else recipe

    def do(self, *commands: Command, plan: str = "plan") -> State:
        """What somebody else does to the plan."""
        folder = self.project.folder(plan)
        with folder.writing() as writer:
            for command in commands:
                writer.execute(command, by="somebody")
            state = writer.refresh()
        assert state is not None
        return state.copy()

    # Running.

    @property
    def project(self) -> Project:
        return Project(self.root, by="test", disk=self.disk)

    @property
    def session(self) -> Session:
        project = self.project
        limit = {} if self.largest is None else {"largest": self.largest}
        return Session(project.root, project.home, project.store, environ=self.environ, by="test", **limit)

    def functions(self, plan: str = "plan") -> dict[str, Recipe]:
        return {s.id: self._function(s) for s in self.plans[plan].artifacts if s.make == "bench:recipe"}

    def _function(self, spec: ArtifactSpec) -> Recipe:
        def recipe(ctx: Context) -> Any:
            self.calls.append(spec.id)
            own = self.recipes.get(spec.id, joined)
            return own(ctx) if inspect.signature(own).parameters else own()

        return recipe

    def run(
        self,
        *targets: str,
        plan: str = "plan",
        stop: Callable[[], str] = lambda: "",
        jobs: int | None = 1,
        **options: Any,
    ) -> Ran:
        """Run the plan; what it did."""
        log = self.log = Log()
        words = ("rerun", "rerun_from", "until")
        given: dict[str, Any] = {k: (v,) if k in words and isinstance(v, str) else v for k, v in options.items()}
        asked = Options(targets=targets, jobs=jobs, **given)
        session = self.session
        result = session.run(plan, asked, reporter=log, functions=self.functions(plan), stop=stop)
        session.store.blobs.close()
        return Ran(log.lines, result, log.texts, log.notes)

    def accept(self, *words: str, plan: str = "plan", everything: bool = False) -> list[str]:
        return self.session.accept(plan, words, everything=everything, reason="test")

    def stale(self, plan: str = "plan", **options: Any) -> dict[str, str]:
        """What is judged stale, each with the code of its reason."""
        judged = self.session.judge(plan, functions=self.functions(plan), options=Options(**options))
        return {a: reason.code for a, reason in judged.reasons.items() if not reason.fresh}

    def reason(self, name: str, plan: str = "plan") -> Reason:
        return self.session.judge(plan, functions=self.functions(plan)).reasons[name]

    def status(self, plan: str = "plan") -> dict[str, Any]:
        return status_document(self.session.judge(plan, functions=self.functions(plan)))

    def why(self, name: str, plan: str = "plan") -> dict[str, Any]:
        return why_document(self.session.judge(plan, functions=self.functions(plan)), name)

    # The world.

    def state(self, plan: str = "plan") -> State:
        found = self.project.store.folder(plan).load()
        assert found is not None
        return found.state

    def events(self, kind: str = "", plan: str = "plan") -> list[Record]:
        """All events, or those of one type."""
        history = self.project.store.folder(plan).history()
        return [record for record in history if not kind or record.event.type == kind]

    def path(self, name: str) -> Path:
        return self.root / name

    def write(self, name: str, text: str | bytes) -> None:
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(text if isinstance(text, bytes) else text.encode())

    def read(self, name: str) -> str:
        return (self.root / name).read_text(encoding="utf-8")

    def out(self, name: str) -> str:
        """The output of an artifact."""
        return self.read(f"out/{name}.txt")

    def edit(self, name: str, text: str) -> None:
        """Somebody writes into the output of an artifact."""
        self.write(f"out/{name}.txt", text)

    def delete(self, name: str) -> None:
        path = self.root / name
        shutil.rmtree(path) if path.is_dir() and not path.is_symlink() else path.unlink()

    def texts(self) -> dict[str, str]:
        """Every output file of the plan, by path."""
        return {
            str(path.relative_to(self.root)): path.read_text(encoding="utf-8")
            for path in sorted((self.root / "out").rglob("*"))
            if path.is_file()
        }

    def ruin(self, data: bytes) -> None:
        """Damage every blob that holds these bytes."""
        for pack in self.path(".headway/blobs").glob("*.pack"):
            pack.write_bytes(pack.read_bytes().replace(data, b"?" * len(data)))

    def blob(self, digest: str) -> bytes:
        return self.project.blobs.get(digest)


def joined(ctx: Context) -> str:
    """The recipe of artifacts that nobody gave one: its name, and what it was made from."""
    parts = [ctx.inputs[name].text() for name in ctx.inputs] + [path.read_text() for path in ctx.sources]
    return f"{ctx.id}({','.join(parts)})"


def after(action: Callable[[], object], text: str) -> Recipe:
    """A recipe during which something happens."""

    def make() -> str:
        action()
        return text

    return make
