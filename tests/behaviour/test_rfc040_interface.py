"""RFC-040's own names over the engine: IncrementalExecutor, ChangeDetector, ChangeReport, find_invalidated."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest

from headway import (
    ArtifactGraph,
    ArtifactSpec,
    ChangeDetector,
    ChangeReport,
    IncrementalExecutor,
    PlanStore,
    compute_rebuild_set,
    find_invalidated,
)
from headway.incremental import ExecutionResult

GOAL = "Build a REST API with authentication"


def graph(**changes: str) -> ArtifactGraph:
    """UserProtocol and AuthInterface, what implements them, and the app."""
    needs = {
        "UserProtocol": (),
        "AuthInterface": (),
        "UserModel": ("UserProtocol",),
        "AuthService": ("AuthInterface", "UserModel"),
        "App": ("AuthService",),
    }
    return ArtifactGraph(
        ArtifactSpec(id=name, contract=changes.get(name, name), requires=requires, produces=(f"src/{name}.py",))
        for name, requires in needs.items()
    )


class Creator:
    """Creates artifacts and remembers which."""

    def __init__(self, content: Callable[[ArtifactSpec], str] = lambda spec: spec.contract) -> None:
        self.created: list[str] = []
        self._content = content

    async def __call__(self, spec: ArtifactSpec) -> Any:
        self.created.append(spec.id)
        return self._content(spec)


def execute(root: Path, artifacts: ArtifactGraph, creator: Any, **options: Any) -> ExecutionResult:
    """One execution in its own loop."""
    return asyncio.run(IncrementalExecutor(project=root).execute(artifacts, creator, GOAL, **options))


def test_a_preview_takes_lists_and_sets_for_tuples(tmp_path: Path) -> None:
    """As whoever writes Python gives them, filled or empty."""
    execute(tmp_path, graph(), Creator())
    given = ArtifactGraph(
        msgspec.structs.replace(
            spec, requires=[*spec.requires], produces=[*spec.produces], modifies=[], acceptance=set()
        )
        for spec in graph(App="changed").artifacts.values()
    )
    found = IncrementalExecutor(project=tmp_path).preview(given, GOAL)
    assert len(found.kept) == 4


def test_only_what_changed_and_what_depends_on_it_is_created_again(tmp_path: Path) -> None:
    """A changed contract reaches its dependents, and nothing else."""
    first = Creator()
    assert sorted(execute(tmp_path, graph(), first).completed) == sorted(graph())
    again = Creator()
    execute(tmp_path, graph(UserModel="changed"), again)
    assert again.created == ["UserModel", "AuthService"]


def test_force_rebuild_creates_everything(tmp_path: Path) -> None:
    """No cut-off and no reuse when forced."""
    execute(tmp_path, graph(), Creator())
    again = Creator()
    execute(tmp_path, graph(), again, force_rebuild=True)
    assert sorted(again.created) == sorted(graph())


def test_a_failed_artifact_blocks_its_dependents_and_its_success_clears_it(tmp_path: Path) -> None:
    """What failed is tried again next time, and what does not need it is made all the same."""

    async def create(spec: ArtifactSpec) -> str:
        if spec.id == "UserModel":
            raise RuntimeError("no model")
        return spec.id

    failed = execute(tmp_path, graph(), create)
    assert sorted(failed.completed) == ["AuthInterface", "UserProtocol"]
    assert list(failed.failed) == ["UserModel"]
    creator = Creator()
    done = execute(tmp_path, graph(), creator)
    assert creator.created == ["UserModel", "AuthService", "App"]
    assert done.failed == {}
    assert done.success_rate == 1.0


def test_the_saved_execution_is_found_by_its_goal(tmp_path: Path) -> None:
    """PlanStore sees what the executor saved, hashes included."""
    execute(tmp_path, graph(), Creator())
    saved = PlanStore(tmp_path / ".headway/plans").find_by_goal(GOAL)
    assert saved is not None
    assert saved.status == "complete"
    assert set(saved.content_hashes) == set(graph())
    assert all(len(value) == 16 for value in saved.content_hashes.values())


@pytest.mark.parametrize(
    ("change", "kind"),
    [
        (lambda root: (root / "src/UserModel.py").write_text("by hand"), "output_modified"),
        (lambda root: (root / "src/UserModel.py").unlink(), "missing_output"),
    ],
    ids=["edited", "deleted"],
)
def test_changes_on_disk_are_told_by_kind(tmp_path: Path, change: Callable[[Path], Any], kind: str) -> None:
    """An edited output and a deleted one are different changes."""
    execute(tmp_path, graph(), Creator())
    saved = PlanStore(tmp_path / ".headway/plans").find_by_goal(GOAL)
    assert saved is not None
    change(tmp_path)
    report = ChangeDetector(tmp_path).detect(saved.graph, saved)
    assert getattr(report, kind) == {"UserModel"}
    assert report.all_changed == {"UserModel"}


def test_changes_of_the_graph_are_told_by_kind(tmp_path: Path) -> None:
    """Added, removed, contract and dependencies, as RFC-040 lists them."""
    execute(tmp_path, graph(), Creator())
    saved = PlanStore(tmp_path / ".headway/plans").find_by_goal(GOAL)
    assert saved is not None
    now = [spec for spec in saved.graph.artifacts.values() if spec.id != "App"]
    now += [ArtifactSpec(id="New", produces=("new.py",))]
    changed: dict[str, dict[str, Any]] = {
        "UserModel": {"contract": "other"},
        "AuthService": {"requires": ("AuthInterface",)},
    }
    specs = [msgspec.structs.replace(spec, **changed.get(spec.id, {})) for spec in now]
    report = ChangeDetector(tmp_path).detect(ArtifactGraph(specs), saved)
    assert (report.added, report.removed) == ({"New"}, {"App"})
    assert (report.contract_changed, report.deps_changed) == ({"UserModel"}, {"AuthService"})
    assert report.has_changes


def test_the_rebuild_set_is_what_changed_and_all_behind_it() -> None:
    """compute_rebuild_set and find_invalidated agree on the cascade."""
    report = ChangeReport.empty()
    report.contract_changed.add("UserModel")
    expected = {"UserModel", "AuthService", "App"}
    assert compute_rebuild_set(graph(), report) == expected
    assert find_invalidated(graph(), {"UserModel"}) == expected
