"""What it costs to know everything that was ever done: a history of 1,000 goals of 20 artifacts each.

Against reading all plan files, which is what RFC-105 had before there was an index.
"""

from __future__ import annotations

import json
from pathlib import Path

from benchmarks.measure import Row, Setting, median, medians, seconds
from headway.core import codec
from headway.core.commands import CompleteArtifact, CreatePlan, StartArtifacts
from headway.core.decide import decide
from headway.core.events import Event, Record
from headway.core.evolve import apply
from headway.core.plan import ArtifactSpec, PlanSpec
from headway.core.state import Fingerprint, Output, State
from headway.history.search import Search
from headway.project import Project
from headway.projections import saved_execution
from headway.projections.saved_execution import SavedExecution

WORDS = ("forum", "wiki", "billing", "search", "mail", "calendar", "reports", "auth")


def history(setting: Setting) -> list[Row]:
    """The bars of RFC-105, in process: index, goal, switch, warm, completion, search; rebuild; and plain reading."""
    goals, artifacts = setting.count(1000, least=8), 20
    root = setting.fresh("history")
    write_history(root, goals=goals, artifacts=artifacts, plan_files=True)
    small = setting.fresh("small")
    write_history(small, goals=max(goals // 10, 1), artifacts=artifacts)
    rebuilt, few = medians(
        min(setting.repeat, 3),
        lambda: seconds(Project(root).dag.rebuild),
        lambda: seconds(Project(small).dag.rebuild),
    )
    Search(Project(root).dag).find("forum")
    files = sorted((root / ".headway" / "plans").glob("*/plan.json"))
    warm = Project(root)
    warm.get_project_dag_index()
    other = warm.dag.goal(f"goal-{goals // 2:05d}")
    writing = Project(root)
    everything, index, switch, goal, known, search, vague = medians(
        setting.repeat,
        lambda: seconds(lambda: [json.loads(file.read_bytes()) for file in files]),
        lambda: seconds(writing.dag.folder.read_index),
        lambda: seconds(lambda: Project(root).get_project_dag_index()),
        lambda: seconds(lambda: Project(root).get_goal_details(other.id)),
        lambda: seconds(warm.get_project_dag_index),
        lambda: seconds(lambda: Search(Project(root).dag).find("calendar application")),
        lambda: seconds(lambda: Search(Project(root).dag).find("protocol fields")),
    )
    write_history(root, goals=setting.repeat, artifacts=artifacts, first=goals)
    turns = iter([writing.show(f"goal-{goals + n:05d}") for n in range(setting.repeat)])
    completion = median(setting.repeat, lambda: seconds(lambda: writing.dag.append(next(turns))))
    many = setting.count(10_000, least=8)
    among_many = _completed_among(setting.fresh("many"), many, setting.repeat)
    of = f"{goals:,} goals of {artifacts}"
    against = "reading all plan files"

    def row(name: str, value: float, bar: float) -> Row:
        ms = value * 1e3
        return Row(f"history: {name}, {of}", ms, "ms", value / everything, against, f"< {bar:g} ms", ms < bar)

    return [
        Row(f"history: {against}, {of}", everything * 1e3, "ms"),
        row("index", index, 10),
        row("switch to the project", switch, 15),
        row("one goal", goal, 5),
        row("index, warm", known, 1),
        row("search", search, 20),
        row("search for what every contract says", vague, 20),
        row("a goal completed", completion, 20),
        Row(
            f"history: a goal completed, {many:,} goals of 1",
            among_many * 1e3,
            "ms",
            among_many / completion,
            f"among {goals:,}",
            "< 20 ms",
            among_many < 0.02,
        ),
        Row(
            f"history: rebuild, {of}",
            rebuilt * 1e3,
            "ms",
            rebuilt / few,
            "a tenth of the goals",
            "≤ 12 ×",
            rebuilt / few <= 12,
        ),
    ]


def _completed_among(root: Path, goals: int, repeat: int) -> float:
    """What one more completed goal costs in a long history."""
    write_history(root, goals=goals, artifacts=1)
    project = Project(root)
    project.dag.rebuild()
    write_history(root, goals=repeat, artifacts=1, first=goals)
    turns = iter([project.show(f"goal-{goals + n:05d}") for n in range(repeat)])
    return median(repeat, lambda: seconds(lambda: project.dag.append(next(turns))))


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
            outputs=(Output(spec.produces[0], "2" * 64, 100),),
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
