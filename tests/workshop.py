"""A project in a folder of its own, and short ways to do to it what people do."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from headway.core.commands import ChangePlan, Command, CompleteArtifact, FailArtifact, StartArtifacts
from headway.core.events import Record
from headway.core.plan import ArtifactSpec
from headway.core.state import Fingerprint, Output
from headway.project import Project, Saved
from headway.projections.saved_execution import SavedExecution
from headway.surfaces.cli.main import main

PLAN = """\
id: api
goal: Build an API
artifacts:
  model:
    description: The user model
    produces: src/model.py
    run: "echo model > {output}"
    milestone: base
  routes:
    description: The routes
    requires: [model]
    produces: src/routes.py
    run: "cat {inputs.model} > {output}"
"""


class Done(NamedTuple):
    """What a command line came to."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)


class Workshop:
    """One project, by default with the plan above."""

    def __init__(self, root: Path) -> None:
        self.root = root
        root.mkdir(parents=True, exist_ok=True)
        self.file = root / "headway.yaml"
        self.file.write_text(PLAN, encoding="utf-8")

    @property
    def project(self) -> Project:
        return Project(self.root, by="test")

    def folder(self, plan_id: str = "api") -> Path:
        return self.root / ".headway" / "plans" / plan_id

    def ledger(self, plan_id: str = "api") -> Path:
        return self.folder(plan_id) / "ledger.jsonl"

    def events(self, plan_id: str = "api") -> list[str]:
        return [record.event.type for record in self.history(plan_id)]

    def history(self, plan_id: str = "api") -> list[Record]:
        return list(self.project.store.folder(plan_id).history())

    def edit(self, before: str, after: str) -> None:
        text = self.file.read_text(encoding="utf-8")
        assert before in text
        self.file.write_text(text.replace(before, after), encoding="utf-8")

    def save(self, **options: Any) -> Saved:
        return self.project.save_plan(str(self.file), **options)

    def load(self, plan_id: str = "api") -> SavedExecution:
        return self.project.show(plan_id)

    def do(self, *commands: Command, plan_id: str = "api", by: str = "test") -> SavedExecution:
        folder = self.project.folder(plan_id)
        with folder.writing() as writer:
            for command in commands:
                writer.execute(command, by=by)
        found = folder.load()
        assert found is not None
        return found

    def change(self, *specs: ArtifactSpec, plan_id: str = "api", **fields: Any) -> SavedExecution:
        """As if somebody else had changed the plan in the ledger."""
        return self.do(ChangePlan(update=specs, **fields), plan_id=plan_id)

    def complete(self, *ids: str, plan_id: str = "api") -> SavedExecution:
        """Record these as made, and keep their bytes."""
        project = self.project
        for artifact_id in ids:
            digest = project.blobs.put(f"bytes of {artifact_id}".encode())
            outputs = (Output(f"src/{artifact_id}.py", digest, 10),)
            with project.folder(plan_id).writing() as writer:
                token = writer.execute(StartArtifacts(ids=(artifact_id,)), by="test")[0].seq
                done = CompleteArtifact(id=artifact_id, token=token, outputs=outputs, fp=Fingerprint(spec="s"), ms=7)
                writer.execute(done, by="test")
        return self.load(plan_id)

    def fail(self, artifact_id: str, error: str = "no luck", plan_id: str = "api") -> SavedExecution:
        with self.project.folder(plan_id).writing() as writer:
            token = writer.execute(StartArtifacts(ids=(artifact_id,)), by="test")[0].seq
            writer.execute(FailArtifact(id=artifact_id, token=token, error=error), by="test")
        return self.load(plan_id)

    def run(self, capsys: pytest.CaptureFixture[str], *words: str) -> Done:
        """A command line in this process, with this project."""
        capsys.readouterr()
        place = [] if "--project" in words else ["--project", str(self.root)]
        code = main([*words, *place])
        out, err = capsys.readouterr()
        return Done(code, out, err)

    def tree(self) -> dict[str, Any]:
        """Every file and folder below the root, with what tells whether it was written."""
        return tree(self.root)


def tree(root: Path) -> dict[str, Any]:
    """Every file and folder, with its inode, time of change and bytes."""
    found: dict[str, Any] = {}
    for folder, folders, files in os.walk(root):
        for name in sorted([*folders, *files]):
            path = Path(folder) / name
            stat = path.lstat()
            content = path.read_bytes() if path.is_file() else b""
            found[str(path.relative_to(root))] = (stat.st_mode, stat.st_ino, stat.st_mtime_ns, content)
    return found


def spec(artifact_id: str, *requires: str, **fields: Any) -> ArtifactSpec:
    """An artifact in a few words."""
    return ArtifactSpec(id=artifact_id, requires=tuple(requires), **fields)


def fields(differences: Sequence[Any]) -> list[str]:
    """The names of the fields that differ."""
    return [difference.field for difference in differences]
