"""Pipelines: many units through eight phases, of which one prompt changes. Against doit with the same files."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Iterator
from itertools import count as counting
from pathlib import Path
from statistics import median

from benchmarks import peers, projects, resting
from benchmarks.measure import Row, Setting, child, medians

UNITS = 5_000
MANY = 100_000
SHARE = 0.044
"""The part of a plan that one change reaches where its bar was set: 440 of 10,000."""

PHASES = ("plan", "preflight", "continuity_pack", "write", "repair", "state_repair", "lint", "apply")
FUNCTION = "def phase(ctx):\n    return ctx.prompt\n"
DODO = """from pathlib import Path

UNITS, PHASES, SPECIAL, SOME = {units!r}, {phases!r}, {special!r}, {some!r}


def make(unit, paths, target):
    texts = [Path(path).read_text().replace("{{{{ unit }}}}", unit).rstrip("\\n") for path in paths]
    Path(target).parent.mkdir(parents=True, exist_ok=True)
    Path(target).write_text("\\n\\n".join(texts) + "\\n")


def task_phase():
    for unit in UNITS:
        before = []
        for phase in PHASES:
            own = "special" if unit == SPECIAL and phase == "write" else phase
            prompts = ["prompts/system.md", f"prompts/{{own}}.md"]
            if phase == PHASES[-1]:
                prompts.append("prompts/some.md" if unit in SOME else "prompts/notes.md")
            target = f"out/{{unit}}/{{phase}}.txt"
            yield {{
                "name": f"{{unit}}/{{phase}}",
                "actions": [(make, [unit, prompts, target])],
                "file_dep": [*prompts, *before],
                "targets": [target],
            }}
            before = [*before, target]
"""


def pipelines(setting: Setting) -> list[Row]:
    """Nothing to do; the prompt of one unit changed, which touches that unit alone; a prompt of some and of all."""
    units = [f"u{number:06}" for number in range(setting.count(UNITS, least=3))]
    total = len(units) * len(PHASES)
    ours = _headway(setting, units, PHASES)
    cold = child(projects.RUN, ours)
    for _ in range(2):  # leave a stamp as soon as the files have come to rest
        child(projects.RUN, ours)
    folders: dict[str, tuple[Path, tuple[str, ...]]] = {"headway": (ours, projects.RUN)}
    doit = peers.find("doit", setting.peers)
    if doit is not None:
        folders["doit"] = (_doit(setting, units), (doit, "--reporter", "zero"))
        child(folders["doit"][1], folders["doit"][0])
    versions = counting(1)
    rows = [Row(f"pipelines: all made, {total:,}", cold.cpu / total * 1e6, "µs CPU each")]
    if doit is None:
        rows.append(Row("pipelines: doit", None, note="skipped: not installed"))
    unit, some = units[len(units) // 2], _some(units)
    for what, prompt, reached, most in (
        ("nothing to do", "", set[str](), None),
        ("one unit's prompt changed", "special", {f"{unit}/{phase}.txt" for phase in PHASES[3:4]}, 0.5),
        (f"a prompt of {len(some):,} units changed", "some", {f"{u}/{PHASES[-1]}.txt" for u in some}, 0.5),
        ("a prompt of all units changed", PHASES[-1], {f"{u}/{PHASES[-1]}.txt" for u in units}, 0.5),
    ):

        def measured(where: str, prompt: str = prompt, reached: set[str] = reached) -> Callable[[], float]:
            folder, words = folders[where]
            return lambda: _changed(folder, words, prompt, next(versions), reached)

        spent = dict(zip(folders, medians(min(setting.repeat, 3), *map(measured, folders)), strict=True))
        ratio = spent["headway"] / spent["doit"] if doit else None
        ok = None if ratio is None or most is None or setting.size < 1 else ratio <= most
        if doit:
            rows.append(Row(f"pipelines: {what}: doit, {total:,}", spent["doit"] * 1e3, "ms"))
        bar = f"≤ {most:g} × doit" if most else ""
        name = f"pipelines: {what}, {total:,}"
        rows.append(Row(name, spent["headway"] * 1e3, "ms", ratio, "doit" if doit else "", bar, ok))
    rows.append(_gone_back(setting, ours, versions, {f"{u}/{PHASES[-1]}.txt" for u in units}))
    if not setting.large:
        return [*rows, Row("pipelines: 100,000 units", None, note="skipped: --large measures it")]
    return rows + _many(setting)


def _gone_back(setting: Setting, folder: Path, versions: Iterator[int], reached: set[str]) -> Row:
    """A prompt of all units changed back: what was made with it is taken over, against making it in a moment."""

    def spent(version: int) -> float:
        return _changed(folder, projects.RUN, PHASES[-1], version, reached)

    before, after = next(versions), next(versions)
    made = max(spent(before), spent(after))
    back = median([spent((before, after)[n % 2]) for n in range(min(setting.repeat, 3))])
    name = "pipelines: that prompt changed back"
    return Row(
        name, back * 1e3, "ms", back / made, "made anew", "≤ 2 ×", back <= 2 * made if setting.size >= 1 else None
    )


def _many(setting: Setting) -> list[Row]:
    """A hundred thousand units: what expanding and making them takes, against a tenth of them."""
    few, many = setting.count(MANY // 10, least=30), setting.count(MANY, least=300)
    spent, peaks = [], []
    for number in (few, many):
        folder = _headway(setting, [f"u{n:06}" for n in range(number)], PHASES[:1])
        peaks.append(resting.peak_of(folder))
        shutil.rmtree(folder / ".headway" / "stamps", ignore_errors=True)
        spent.append(child(projects.RUN, folder).cpu)
    ratio = spent[1] / spent[0]
    name = f"pipelines: judging {many:,} units"
    return [
        resting.memory(f"pipelines: memory, cold run of {many:,} units", peaks[1], many >= MANY),
        Row(name, spent[1] * 1e3, "ms CPU", ratio, "a tenth of it", "≤ 12 ×", ratio <= resting.GROWTH),
    ]


def _changed(folder: Path, words: tuple[str, ...], prompt: str, version: int, reached: set[str]) -> float:
    """Change a prompt; how long the run takes; what it was to reach has changed, and nothing else."""
    before = _outputs(folder)
    if prompt:
        (folder / f"prompts/{prompt}.md").write_text(f"{prompt} {version} {{{{ unit }}}}\n", encoding="utf-8")
    spent = child(words, folder).wall
    after = _outputs(folder)
    assert {name for name in after if before[name] != after[name]} == reached, "it touches what it reaches, and no more"
    return spent


def _outputs(folder: Path) -> dict[str, bytes]:
    out = folder / "out"
    return {str(path.relative_to(out)): path.read_bytes() for path in out.rglob("*.txt")}


def _some(units: list[str]) -> list[str]:
    """Units that share a prompt of their own in the last phase: one artifact each, the share that the bar is about."""
    wanted = max(1, round(len(units) * len(PHASES) * SHARE))
    return units[:: max(1, len(units) // wanted)][:wanted]


def _headway(setting: Setting, units: list[str], phases: tuple[str, ...]) -> Path:
    folder = _prompts(setting, "headway")
    overrides: dict[str, dict[str, dict[str, str]]] = {}
    if len(phases) == len(PHASES):
        overrides = {unit: {phases[-1]: {"notes": "prompts/some.md"}} for unit in _some(units)}
        overrides.setdefault(units[len(units) // 2], {})["write"] = {"phase": "prompts/special.md"}
    pipeline = {
        "units": units,
        "templates": {"system": "prompts/system.md"},
        "overrides": overrides,
        "phases": {
            phase: {
                "make": "tasks.py:phase",
                "templates": {"phase": f"prompts/{phase}.md"}
                | ({"notes": "prompts/notes.md"} if phase == PHASES[-1] else {}),
                "outputs": {"text": f"out/{{unit}}/{phase}.txt"},
            }
            for phase in phases
        },
    }
    plan = {"id": "units", "goal": "Many units", "pipelines": {"scene": pipeline}}
    (folder / "headway.toml").write_text("", encoding="utf-8")
    (folder / "headway.json").write_text(json.dumps(plan), encoding="utf-8")
    (folder / "tasks.py").write_text(FUNCTION, encoding="utf-8")
    return folder


def _doit(setting: Setting, units: list[str]) -> Path:
    folder = _prompts(setting, "doit")
    text = DODO.format(units=units, phases=PHASES, special=units[len(units) // 2], some=set(_some(units)))
    (folder / "dodo.py").write_text(text, encoding="utf-8")
    return folder


def _prompts(setting: Setting, name: str) -> Path:
    folder = setting.fresh(name)
    (folder / "prompts").mkdir()
    for prompt in (*PHASES, "system", "special", "notes", "some"):
        (folder / f"prompts/{prompt}.md").write_text(f"{prompt} {{{{ unit }}}}\n", encoding="utf-8")
    return folder
