"""What it costs to know everything that was ever done: a history of 1,000 goals of 20 artifacts each.

Against reading all plan files, which is what RFC-105 had before there was an index.
"""

from __future__ import annotations

from pathlib import Path

from benchmarks import samples
from headway.core import codec
from headway.core.commands import CompleteArtifact, CreatePlan, StartArtifacts
from headway.core.decide import decide
from headway.core.events import Event, Record
from headway.core.evolve import apply
from headway.core.plan import ArtifactSpec, PlanSpec
from headway.core.state import Fingerprint, Output, State
from headway.projections import saved_execution
from headway.projections.saved_execution import SavedExecution

WORDS = ("forum", "wiki", "billing", "search", "mail", "calendar", "reports", "auth")


def write_history(root: Path, *, goals: int, artifacts: int, first: int = 0, plan_files: bool = False) -> None:
    """Ledgers of so many completed goals, as a writer would leave them, without waiting for the disk."""
    home = root / ".headway"
    (home / "plans").mkdir(parents=True, exist_ok=True)
    (home / "project.json").write_text('{"format":1,"id":"0123456789abcdef"}\n', encoding="utf-8")
    for number in range(first, first + goals):
        folder = home / "plans" / f"goal-{number:05d}"
        folder.mkdir()
        lines, execution = _ledger(folder.name, number, artifacts)
        (folder / "ledger.jsonl").write_bytes(b"".join(lines))
        if plan_files:
            (folder / "plan.json").write_bytes(saved_execution.render(execution))


def _ledger(plan_id: str, number: int, artifacts: int) -> tuple[list[bytes], SavedExecution]:
    specs = tuple(_spec(plan_id, number, n) for n in range(artifacts))
    goal = f"Build part {number} of the {WORDS[number % len(WORDS)]} application"
    plan = PlanSpec(goal=goal, id=plan_id, artifacts=specs)
    commands = [CreatePlan(plan_id=plan_id, project_id="0123456789abcdef", plan=plan)]
    ts = f"2026-{1 + number // 1000 % 12:02d}-01T{number // 60 % 24:02d}:{number % 60:02d}:00.{number:06d}Z"
    state: State | None = None
    lines: list[bytes] = []
    seq, prev = 0, codec.START

    def take(events: list[Event]) -> int:
        nonlocal state, seq, prev
        for event in events:
            seq += 1
            line, hash_ = codec.encode(event, seq=seq, ts=ts, by="bench", prev=prev)
            state = apply(state, Record(seq, ts, "bench", event, prev, hash_))
            prev = hash_
            lines.append(line + b"\n")
        return seq

    for command in commands:
        take(_allowed(state, command))
    for spec in specs:
        token = take(_allowed(state, StartArtifacts(ids=(spec.id,))))
        done = CompleteArtifact(
            id=spec.id,
            token=token,
            outputs=(Output(spec.produces[0], samples.TIME[:1] * 64, 100),),
            fp=Fingerprint(),
            ms=40,
        )
        take(_allowed(state, done))
    assert state is not None, "a plan was created"
    return lines, SavedExecution(state, Record(seq, ts, "", Event(), prev, prev).position)


def _allowed(state: State | None, command: object) -> list[Event]:
    events = decide(state, command)  # type: ignore[arg-type]  # commands, all of them
    assert isinstance(events, list), events
    return events


def _spec(plan_id: str, number: int, n: int) -> ArtifactSpec:
    return ArtifactSpec(
        id=f"Part{n}",
        description=f"Part {n} of number {number}",
        contract=f"Protocol {number % 97} with fields a, b and c{n}",
        requires=tuple(f"Part{m}" for m in (n - 1, n - 2) if m >= 0),
        produces=(f"src/{plan_id}/part{n}.py",),
        run="true",
    )
