"""What it costs to see many projects at once: 50 projects of 100 goals, one workspace, one machine."""

from __future__ import annotations

from itertools import count
from pathlib import Path

from benchmarks.histories import write_history
from benchmarks.measure import Row, Setting, median, medians, seconds
from headway.history.environment import Environment
from headway.history.survey import survey
from headway.history.workspace import Workspace
from headway.project import Project

ARTIFACTS = 5


def workspace(setting: Setting) -> list[Row]:
    """Workspace and environment from what was kept, warm, after one change; detection; and looking at all of it."""
    projects, goals = setting.count(50, least=3), setting.count(100, least=2)
    root = setting.fresh("workspace")
    for number in range(projects):
        _project(root, number, goals)
    machine = Environment(setting.fresh("home"))
    detected = median(setting.repeat, lambda: seconds(lambda: survey(str(root))))
    anew = median(1, lambda: seconds(lambda: Workspace(root).dag()))
    machine.register(str(root))
    kept, warm_machine = Workspace(root), Environment(machine.home)
    kept.dag()
    warm_machine.overview()
    cold, cold_machine, warm, overview = medians(
        setting.repeat,
        lambda: seconds(lambda: Workspace(root).dag()),
        lambda: seconds(lambda: Environment(machine.home).overview()),
        lambda: seconds(kept.dag),
        lambda: seconds(warm_machine.overview),
    )
    numbers = count(goals)
    changed = median(setting.repeat, lambda: _after_a_change(root, next(numbers)))
    of = f"{projects} projects of {goals} goals"

    def row(name: str, value: float, bar: float) -> Row:
        ms = value * 1e3
        return Row(f"workspace: {name}, {of}", ms, "ms", value / anew, "all of it anew", f"< {bar:g} ms", ms < bar)

    return [
        Row(f"workspace: all of it anew, {of}", anew * 1e3, "ms"),
        row("detection", detected, 500),
        row("workspace", cold, 50),
        row("workspace, warm", warm, 1),
        row("environment", cold_machine, 50),
        row("environment, warm", overview, 1),
        row("refresh after one change", changed, 20),
    ]


def _project(root: Path, number: int, goals: int) -> None:
    folder = root / f"project-{number:03d}"
    (folder / "src").mkdir(parents=True)
    before = f"project-{max(number - 1, 0):03d}"
    manifest = f'[project]\nname = "{folder.name}"\ndependencies = ["flask", "pytest>=8", "{before}"]\n'
    (folder / "pyproject.toml").write_text(manifest, encoding="utf-8")
    write_history(folder, goals=goals, artifacts=ARTIFACTS)
    (folder / ".headway" / "project.json").write_text(f'{{"format":1,"id":"{number:016x}"}}\n', encoding="utf-8")
    Project(folder).dag.rebuild()


def _after_a_change(root: Path, number: int) -> float:
    """One more goal in one project; the time of somebody new who refreshes the workspace then."""
    folder = root / "project-001"
    write_history(folder, goals=1, artifacts=ARTIFACTS, first=number)
    project = Project(folder)
    project.dag.append(project.show(f"goal-{number:05d}"))
    return seconds(Workspace(root).refresh)
