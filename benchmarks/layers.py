"""One graph of files, written down for Headway and for every tool that it is measured against.

20 layers, each artifact reads three of the layer before; the first layer reads three sources each. So one changed
source reaches 3 artifacts of the first layer, 5 of the second, and so on: 440 in all where layers are wide enough.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

LAYERS, FAN_IN = 20, 3
SECOND_NS = 1_000_000_000
HOUR_NS = 3600 * SECOND_NS
GOAL = "Join all the parts"
TASKS = '''"""What makes an artifact: digest what it reads. Used by Headway, by doit and by the bare loop alike."""

import hashlib
import os


def digest(paths):
    found = hashlib.sha256()
    for path in sorted(map(os.fspath, paths)):
        with open(path, "rb") as file:
            found.update(file.read())
    return found.hexdigest() + "\\n"


def join(ctx):
    return digest((*ctx.sources, *ctx.inputs.values()))


def write(paths, output):
    with open(output, "w") as file:
        file.write(digest(paths))
'''
GRAPH = """import sys

import tasks

LAYERS, FAN_IN, WIDTH = {layers}, {fan_in}, {width}


def graph():
    for layer in range(LAYERS):
        for place in range(WIDTH):
            near = [(place + step) % WIDTH for step in range(FAN_IN)]
            below = [f"a{{(layer - 1) * WIDTH + n}}" for n in near] if layer else []
            number = layer * WIDTH + place
            if layer:
                reads = [f"out/{{layer - 1}}/{{name}}.txt" for name in below]
            else:
                reads = [f"src/s{{n}}.txt" for n in near]
            yield f"a{{number}}", below, reads, f"out/{{layer}}/a{{number}}.txt"
"""
BARE = """

for _, _, reads, output in graph():
    tasks.write(reads, output)
"""
PYTHON = """
from headway import Plan

plan = Plan("{goal}", id="bench-python")
for name, below, reads, output in graph():
    plan.add(name, make=tasks.join, requires=below, sources=[] if below else reads, produces=output)

if __name__ == "__main__":
    plan.run(jobs=int(sys.argv[1]) if len(sys.argv) > 1 else None)
"""
DOIT = """

def task_join():
    for name, _, reads, output in graph():
        yield {{"name": name, "file_dep": reads, "targets": [output], "actions": [(tasks.write, [reads, output])]}}
"""


class Artifact(NamedTuple):
    """An artifact of the graph: what it requires by id, what it reads and what it writes."""

    id: str
    layer: int
    requires: list[str]
    reads: list[str]
    output: str


class Layers(NamedTuple):
    """The graph of so many artifacts, in a folder of its own for each tool."""

    asked: int

    @property
    def width(self) -> int:
        """How many artifacts a layer has."""
        return max(FAN_IN, self.asked // LAYERS)

    @property
    def total(self) -> int:
        """How many artifacts there are."""
        return LAYERS * self.width

    @property
    def cone(self) -> int:
        """How many artifacts one source reaches."""
        return sum(min(self.width, FAN_IN + (FAN_IN - 1) * layer) for layer in range(LAYERS))

    def artifacts(self) -> Iterator[Artifact]:
        """All of them, in dependency order."""
        width = self.width
        for layer in range(LAYERS):
            for place in range(width):
                near = [(place + step) % width for step in range(FAN_IN)]
                below = [f"a{(layer - 1) * width + n}" for n in near] if layer else []
                reads = [f"out/{layer - 1}/{name}.txt" for name in below] or [f"src/s{n}.txt" for n in near]
                number = layer * width + place
                yield Artifact(f"a{number}", layer, below, reads, f"out/{layer}/a{number}.txt")

    def sources(self, folder: Path) -> None:
        """Write the sources, the code and the folders of the outputs."""
        (folder / "src").mkdir()
        for layer in range(LAYERS):
            (folder / "out" / str(layer)).mkdir(parents=True)
        for number in range(self.width):
            change(folder, number, 0)
        (folder / "tasks.py").write_text(TASKS, encoding="utf-8")

    def headway_json(self, folder: Path) -> None:
        """The graph as headway.json."""
        plan = {"id": "bench", "goal": GOAL, "artifacts": {a.id: _keys(a) for a in self.artifacts()}}
        (folder / "headway.json").write_text(json.dumps(plan, indent=1), encoding="utf-8")
        self._headway(folder)

    def headway_yaml(self, folder: Path) -> None:
        """The graph as headway.yaml, as people write it."""
        lines = ["id: bench", f"goal: {GOAL}", "artifacts:"]
        for artifact in self.artifacts():
            lines.append(f"  {artifact.id}:")
            for key, value in _keys(artifact).items():
                lines.append(f"    {key}: [{', '.join(value)}]" if isinstance(value, list) else f"    {key}: {value}")
        (folder / "headway.yaml").write_text("\n".join(lines) + "\n", encoding="utf-8")
        self._headway(folder)

    def headway_python(self, folder: Path) -> None:
        """The graph as a plan in Python."""
        (folder / "plan.py").write_text(self._script(PYTHON), encoding="utf-8")
        self._headway(folder)

    def bare(self, folder: Path) -> None:
        """The graph as a loop that makes it all, and keeps nothing in mind."""
        self.sources(folder)
        (folder / "loop.py").write_text(self._script(BARE), encoding="utf-8")

    def makefile(self, folder: Path) -> None:
        """The graph as a Makefile, with outputs that make takes for up to date.

        The command writes a line per input at most: one that copied its inputs would write three times as much in
        every layer, should it ever run, and fill any disk.
        """
        artifacts = list(self.artifacts())
        rules = [f"{a.output}: {' '.join(a.reads)}\n\tcksum $^ > $@\n" for a in artifacts]
        last = " ".join(a.output for a in artifacts)
        text = f".SUFFIXES:\n.PHONY: all\nall: {last}\n\n" + "\n".join(rules)
        (folder / "Makefile").write_text(text, encoding="utf-8")
        self.sources(folder)
        self._outputs(folder)

    def ninja(self, folder: Path) -> None:
        """The graph as build.ninja. Running it is cheap: the command only creates its output."""
        rules = [f"build {a.output}: join {' '.join(a.reads)}" for a in self.artifacts()]
        text = "rule join\n  command = : $in > $out\n\n" + "\n".join(rules) + "\n"
        (folder / "build.ninja").write_text(text, encoding="utf-8")
        self.sources(folder)

    def dodo(self, folder: Path) -> None:
        """The graph as dodo.py."""
        (folder / "dodo.py").write_text(self._script(DOIT), encoding="utf-8")
        self.sources(folder)

    def _script(self, tail: str) -> str:
        return (GRAPH + tail).format(layers=LAYERS, fan_in=FAN_IN, width=self.width, goal=GOAL)

    def _headway(self, folder: Path) -> None:
        self.sources(folder)
        (folder / "headway.toml").write_text("", encoding="utf-8")  # this is the project, not what lies around it

    def _outputs(self, folder: Path) -> None:
        """All outputs, each layer younger than the one before, and sources older than all: what make looks at."""
        begin = time.time_ns() - HOUR_NS
        for source in (folder / "src").iterdir():
            os.utime(source, ns=(begin, begin))
        for artifact in self.artifacts():
            path = folder / artifact.output
            path.write_text(f"{artifact.id}\n" * 10, encoding="utf-8")
            at = begin + (artifact.layer + 1) * SECOND_NS
            os.utime(path, ns=(at, at))


def change(folder: Path, number: int, version: int) -> None:
    """Write a source anew."""
    (folder / "src" / f"s{number}.txt").write_text(f"source {number}, version {version}\n" * 4, encoding="utf-8")


def _keys(artifact: Artifact) -> dict[str, object]:
    reads: dict[str, object] = {"requires": artifact.requires} if artifact.requires else {"sources": artifact.reads}
    return {**reads, "produces": artifact.output, "make": "tasks:join"}
