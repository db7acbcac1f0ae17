"""A workspace in a folder of its own: small projects with plans, and short ways to do what people do to them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from headway.history.workspace import Workspace
from headway.project import Project
from headway.surfaces.cli.main import main
from headway.work import Work
from tests.workshop import Done


class Land:
    """A folder with projects. Paths are below it."""

    def __init__(self, root: Path) -> None:
        self.root = root
        root.mkdir(parents=True, exist_ok=True)

    def write(self, path: str, text: str = "") -> Path:
        file = self.root / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")
        return file

    def python(self, path: str, *needs: str, name: str = "") -> None:
        """A Python project that needs others."""
        self.write(f"{path}/src/__init__.py")
        named = name or path.rpartition("/")[2]
        self.write(f"{path}/pyproject.toml", f'[project]\nname = "{named}"\ndependencies = {json.dumps(needs)}\n')

    def plan(self, path: str, plan_id: str = "main", goal: str = "", **artifacts: dict[str, Any]) -> None:
        """A plan file of a project; each artifact writes its name unless it says otherwise."""
        specs = {
            name: {"produces": f"out/{name}.txt", "run": f"echo {name} > {{output}}", **fields}
            for name, fields in artifacts.items()
        }
        document = {"id": plan_id, "goal": goal or f"Goal {plan_id} of {path}", "artifacts": specs}
        self.write(f"{path}/{'headway' if plan_id == 'main' else plan_id}.json", json.dumps(document))

    def project(self, path: str) -> Project:
        return Project(self.root / path, by="test")

    def run(self, path: str, plan_id: str = "main") -> Any:
        """Run a plan file of a project."""
        work = Work(self.project(path))
        file = self.root / path / f"{'headway' if plan_id == 'main' else plan_id}.json"
        return work.run(work.take_in(work.meant(str(file), None)))

    @property
    def workspace(self) -> Workspace:
        return Workspace(self.root, by="test")

    def cli(self, capsys: pytest.CaptureFixture[str], *words: str) -> Done:
        """A command line in this process."""
        capsys.readouterr()
        code = main(list(words))
        out, err = capsys.readouterr()
        return Done(code, out, err)
