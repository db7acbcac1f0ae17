"""The engine agrees with the naive oracle on random plans, after random edits: what is stale, and what is done."""

from __future__ import annotations

import hashlib
import shutil
import tempfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from headway.core.commands import ResetPlan
from headway.engine import workers
from headway.engine.recipes.function import Context
from tests import model as oracle
from tests.bench import Bench

IDS = ["a", "b", "c", "d", "e"]
SOURCES = ["x.txt", "y.txt"]
SMALL = st.sampled_from(["1", "2"])
ID = st.sampled_from(IDS)
SOURCE = st.sampled_from(SOURCES)
POLICY = st.sampled_from(["ask", "ask", "accept", "discard"])


class Killed(Exception):
    """Stands for a kill: the files are taken as they are at this moment, and all that comes later is undone."""


class EngineAndOracle(RuleBasedStateMachine):
    """One project, and the model of it. Each rule does the same to both; then both must agree."""

    def __init__(self) -> None:
        super().__init__()
        self.home = Path(tempfile.mkdtemp(prefix="headway-oracle-"))
        self.bench = Bench(self.home / "project")
        self.model = oracle.Model()
        self.fails = ""
        self.kills = ""
        self.precious: dict[str, str] = {}
        self.lines_before_kill: int | None = None
        self.count = 0
        self.patch = pytest.MonkeyPatch()
        self.patch.setattr("headway.disk.boot_id", lambda: f"boot {self.model.boot}")
        for source in SOURCES:
            self.write_source(source, "1")

    @initialize(edges=st.lists(st.tuples(ID, ID), max_size=6), reads=st.lists(st.tuples(ID, SOURCE), max_size=3))
    def begin(self, edges: list[tuple[str, str]], reads: list[tuple[str, str]]) -> None:
        """Any plan of five artifacts, made once."""
        for name in IDS:
            requires = tuple(sorted({r for a, r in edges if a == name and r < name}))
            sources = tuple(sorted({s for a, s in reads if a == name}))
            self.model.artifacts[name] = oracle.Spec(requires, sources)
        specs: dict[str, Any] = {
            a: {"requires": s.requires, "sources": s.sources} for a, s in self.model.artifacts.items()
        }
        self.bench.plan(**specs)
        self._run()

    def teardown(self) -> None:
        self.patch.undo()
        shutil.rmtree(self.home)

    # The plan changes.

    @rule(name=ID, requires=st.sets(ID), sources=st.sets(SOURCE), contract=SMALL)
    def add_or_remove(self, name: str, requires: set[str], sources: set[str], contract: str) -> None:
        """An artifact leaves the plan if nobody requires it; or one joins, requiring what comes before it."""
        if name in self.model.artifacts:
            needed_by = [a for a, spec in self.model.artifacts.items() if name in spec.requires]
            if not needed_by and len(self.model.artifacts) > 1:
                self.model.remove(name)
                self.bench.remove(name)
            return
        needed = tuple(sorted(r for r in requires if r < name and r in self.model.artifacts))
        read = tuple(sorted(sources))
        self.model.artifacts[name] = oracle.Spec(needed, read, contract)
        self.bench.add(name, *needed, sources=list(read), contract=contract)

    @rule(name=ID, contract=SMALL)
    def change_contract(self, name: str, contract: str) -> None:
        """Somebody asks for something else."""
        self._change(name, contract=contract)

    @rule(name=ID, version=SMALL)
    def change_recipe(self, name: str, version: str) -> None:
        """Somebody changes a function."""
        self._change(name, version=version)

    def _change(self, name: str, **keys: Any) -> None:
        if name in self.model.artifacts:
            self.model.artifacts[name] = self.model.artifacts[name]._replace(**keys)
            self.bench.change(name, **keys)

    # The files change.

    @rule(path=SOURCE, text=SMALL)
    def write_source(self, path: str, text: str) -> None:
        """A source is written: changed, changed back, or only touched."""
        self.model.files[path] = text
        self.bench.write(path, text)

    @rule(name=ID)
    def delete_output(self, name: str) -> None:
        """An output is deleted."""
        if oracle.path_of(name) in self.model.files:
            del self.model.files[oracle.path_of(name)]
            self.precious.pop(oracle.path_of(name), None)
            self.bench.delete(oracle.path_of(name))

    @rule(name=ID, text=st.sampled_from(["mine", "yours"]), old=st.booleans())
    def write_output(self, name: str, text: str, old: bool) -> None:
        """Somebody writes into an output: something of their own, or what it once was."""
        known = [made.output for a, made in self.model.history if a == name]
        content = known[0] if old and known else text
        self.model.files[oracle.path_of(name)] = self.precious[oracle.path_of(name)] = content
        self.bench.write(oracle.path_of(name), content)

    @rule()
    def boot_anew(self) -> None:
        """The machine was switched off: what was written last may be lost, although here it is not."""
        self.model.boot += 1

    # Decisions.

    @rule(name=ID)
    @precondition(lambda self: self.model.killed_in is None)
    def accept(self, name: str) -> None:
        """Somebody says that what is on disk counts."""
        if name in self.model.artifacts and oracle.path_of(name) in self.model.files:
            self.model.accept(name)
            self.bench.accept(name)

    @rule()
    @precondition(lambda self: self.model.killed_in is None)
    def reset(self) -> None:
        """Somebody withdraws all progress, unless a killed run still holds some of it."""
        if self.bench.state().claims:
            return
        self.model.reset()
        self.bench.do(ResetPlan())

    # Running.

    @rule(policy=POLICY)
    def run(self, policy: oracle.Policy) -> None:
        """Make what is stale."""
        self._run(policy=policy)

    @rule(name=ID, version=SMALL, kill=st.booleans(), which=st.integers(0, 4), policy=POLICY)
    def run_into_trouble(self, name: str, version: str, kill: bool, which: int, policy: oracle.Policy) -> None:
        """Something is to be made, and an attempt leaves half of it and fails, or is killed."""
        self._change(name, version=version)
        stale = [a for a, code in self.model.judge(set()).items() if code != "fresh"] or IDS
        chosen = stale[which % len(stale)]
        self.fails, self.kills = ("", chosen) if kill else (chosen, "")
        self._run(policy=policy)

    @rule(name=ID, policy=POLICY)
    def run_target(self, name: str, policy: oracle.Policy) -> None:
        """Make one artifact and what it requires."""
        if name in self.model.artifacts:
            self._run(targets=(name,), policy=policy)

    @rule(name=ID, kill=st.booleans(), policy=POLICY)
    def rerun(self, name: str, kill: bool, policy: oracle.Policy) -> None:
        """Make one artifact anew, or be killed over it."""
        if name in self.model.artifacts:
            self.kills = name if kill else ""
            self._run(rerun=(name,), policy=policy)

    @rule(limit=st.integers(1, 2))
    def run_a_little(self, limit: int) -> None:
        """Make only so many."""
        self._run(limit=limit)

    @rule(name=ID, key=st.sampled_from(["contract", "version"]), text=SMALL)
    def change_and_run(self, name: str, key: str, text: str) -> None:
        """Somebody changes an artifact and runs, as most people do."""
        self._change(name, **{key: text})
        self._run()

    @rule(path=SOURCE, texts=st.permutations(["1", "2"]))
    def change_a_source_and_run(self, path: str, texts: list[str]) -> None:
        """A source changes and changes back, with a run after each."""
        for text in texts:
            self.write_source(path, text)
            self._run()

    def _run(self, **options: Any) -> None:
        expected = oracle.Run(self.model, **options)
        options = dict(options)
        self.count += 1
        self.lines_before_kill = None
        for name in self.model.artifacts:
            self.bench.recipes[name] = self._recipe
        policy = options.pop("policy", "ask")
        with pytest.MonkeyPatch.context() as patch:
            if self.kills:  # one by one, so that the log tells what was over; what is light is told of together
                patch.setattr(workers, "LIGHT_MS", -1)
            ran = self.bench.run(*options.pop("targets", ()), on_edit=policy if policy != "ask" else None, **options)
        lines = ran.log[: self.lines_before_kill]
        for line in lines:
            outcome, name = line.split()
            if name in expected.todo or outcome != "kept":
                assert expected.step(name, fails=outcome == "failed", left=self._half()) == outcome, line
        if (self.home / "killed").exists():
            shutil.rmtree(self.bench.root)
            (self.home / "killed").rename(self.bench.root)
            expected.crash(self.kills, self._half(), set(self.bench.state().claims))
            self.kills = ""
            return
        if options.get("limit") is None:
            assert expected.left_over() == set()
            assert set(ran.result.made) == {a for a, o in expected.outcomes.items() if o == "made"}
        self.fails = self.kills = ""
        self._check_bytes()

    def _recipe(self, ctx: Context) -> str:
        if ctx.id == self.kills:
            ctx.output.write_text(self._half())
            assert self.bench.log is not None
            self.lines_before_kill = len(self.bench.log.lines)
            shutil.copytree(self.bench.root, self.home / "killed", symlinks=True)
            raise Killed
        if ctx.id == self.fails:
            ctx.output.write_text(self._half())
            raise ValueError(ctx.id)
        spec = self.model.artifacts[ctx.id]
        parts = [ctx.inputs[r].text() for r in spec.requires]
        return oracle.recipe(ctx.id, spec.version, parts + [path.read_text() for path in ctx.sources])

    def _half(self) -> str:
        return f"half {self.count}"

    def _check_bytes(self) -> None:
        """After a whole run, the outputs are those of a run from scratch, unless somebody's bytes were adopted."""
        everything = set(self.model.artifacts) == {a for a, c in self.model.judge(set()).items() if c == "fresh"}
        if everything and not any(made.adopted for made in self.model.done.values()):
            paths = [oracle.path_of(a) for a in self.model.artifacts]
            assert {path: self.bench.read(path) for path in paths} == self.model.scratch()

    # Agreeing.

    @invariant()
    def the_same_is_stale_for_the_same_reasons(self) -> None:
        """Status and oracle agree about every artifact."""
        expected = {a: code for a, code in self.model.judge(set()).items() if code != "fresh"}
        assert self.bench.stale() == expected

    @invariant()
    def nothing_that_somebody_wrote_is_lost(self) -> None:
        """It is where they wrote it, or among the blobs."""
        blobs = self.bench.project.blobs
        for path, text in self.precious.items():
            kept = blobs.has(hashlib.sha256(text.encode()).hexdigest())
            assert kept or (self.bench.path(path).exists() and self.bench.read(path) == text), (path, text)

    @invariant()
    def the_same_bytes_are_on_disk(self) -> None:
        """And about every file: nothing is lost, nothing is overwritten that should not be."""
        found = {name: self.bench.read(name) for name in SOURCES}
        if self.bench.path("out").exists():
            found |= self.bench.texts()
        assert found == self.model.files


EngineAndOracle.TestCase.settings = settings(max_examples=40, stateful_step_count=25)
TestEngineAndOracle = EngineAndOracle.TestCase
