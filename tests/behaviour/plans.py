"""Small plans whose ledgers tests may ruin."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from headway.core.commands import ChangePlan, Command, CompleteArtifact, CreatePlan, EndRun, StartArtifacts, StartRun
from headway.core.evolve import fold
from headway.core.plan import ArtifactSpec, PlanSpec
from headway.core.state import Output, Position, State
from headway.disk import REAL, Disk
from headway.files.blobs import Blobs
from headway.ledger.base import Loaded
from headway.ledger.file import FileLedger, Witnesses
from headway.ledger.writer import Writer

CREATE = CreatePlan(
    plan_id="plan",
    project_id="project",
    plan=PlanSpec(goal="g", artifacts=(ArtifactSpec(id="a", produces=("a.txt",)), ArtifactSpec(id="b"))),
)

RESCUED = State(plan_id="plan", project_id="project", goal="rescued", created_at="2026-11-15T18:04:05.123456Z")


def goal(text: str) -> Command:
    """A command that is always allowed and becomes one event."""
    return ChangePlan(goal=text)


def writer(folder: Path, *, disk: Disk = REAL, witnesses: Witnesses = list) -> Writer:
    """A writer on a plan's ledger."""
    return Writer(FileLedger(str(folder), disk=disk, witnesses=witnesses))


def small_plan(folder: Path) -> None:
    """A plan with a run: seven events, a snapshot at its end, and three events after that."""
    w = writer(folder)
    w.execute(CREATE, by="test")
    w.execute(StartRun(run="r1", stale={"a": "never made"}), by="test")
    token = w.execute(StartArtifacts(ids=("a",), run="r1"), by="test")[0].seq
    w.execute(CompleteArtifact(id="a", token=token, outputs=(Output("a.txt", "d" * 64, 3),)), by="test")
    w.execute(EndRun(run="r1", status="completed"), by="test")
    for text in ("x", "y", "z"):
        w.execute(goal(text), by="test")
    w.close()


SMALL_PLAN_END = 9
"""The number of its last event."""


def blobs_of(folder: Path) -> Path:
    """Where the blobs of a plan's project are."""
    return folder.parent.parent / "blobs"


def completions(folder: Path, disk: Disk, tell: Callable[[int], None]) -> None:
    """Make both artifacts of a small plan, pack and ledger on one disk: each completion names a blob just put."""
    blobs = Blobs(str(blobs_of(folder)), disk=disk)
    w = Writer(FileLedger(str(folder), disk=disk), sync_first=(blobs.sync,))
    for artifact_id in ("a", "b"):
        token = w.execute(StartArtifacts(ids=(artifact_id,)), by="test", wait=False)[0].seq
        data = f"made at {token}".encode()
        output = Output(f"{artifact_id}.txt", blobs.put(data), len(data))
        done = CompleteArtifact(id=artifact_id, token=token, outputs=(output,))
        tell(w.execute(done, by="test")[-1].seq)
    w.close()
    blobs.close()


def load(folder: Path, *, witnesses: Witnesses = list) -> Loaded | None:
    """What a reader gets."""
    loaded = FileLedger(str(folder), witnesses=witnesses).load()
    return loaded._replace(records=list(loaded.records)) if loaded is not None else None


def state_of(folder: Path) -> State:
    """The plan's state, as a reader sees it."""
    loaded = load(folder)
    assert loaded is not None
    state = fold(None, loaded.records)
    assert state is not None
    return state


def prefixes(folder: Path) -> dict[int, State]:
    """The state after each event."""
    found: dict[int, State] = {}
    records = list(FileLedger(str(folder)).history())
    for count in range(1, len(records) + 1):
        state = fold(None, records[:count])
        assert state is not None
        found[records[count - 1].seq] = state
    return found


def end_of(folder: Path) -> Position:
    """The newest event."""
    loaded = load(folder)
    assert loaded is not None
    assert loaded.end is not None
    return loaded.end
