"""Functions that take no time are made many in a row and recorded together; nobody sees a difference but the clock."""

from __future__ import annotations

import ctypes
import hashlib
import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, cast

import msgspec
import pytest

from headway import Plan, Project, bulk
from headway.core.events import EditPreserved
from headway.engine import row, scribe, workers
from headway.engine.recipes.function import Context
from headway.engine.run import Run
from headway.errors import HeadwayError
from headway.store import PlanStore
from headway.surfaces.cli.main import main

MANY = 200
LIGHT_RUN = """from headway.engine import workers
from headway.surfaces.cli.main import main

workers.LIGHT_MS = workers.LIGHT_LATE = 10_000
raise SystemExit(main(["run", "-j", "1"]))
"""
"""`headway run -j 1`, to which functions stay light however busy this machine is."""


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project of its own."""
    (tmp_path / "headway.toml").write_text("")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_they_are_recorded_several_in_a_line_and_all_of_them(here: Path) -> None:
    """Starts share lines; every completion has its own."""
    plan = Plan("Many", id="many")
    for n in range(MANY):
        plan.add(f"n{n}", make=lambda n=n: str(n), produces=f"out/{n}.txt")
    assert len(plan.run(jobs=2).made) == MANY
    kinds = [record.event.type for record in PlanStore(str(here / ".headway/plans")).folder("many").history()]
    assert kinds.count("artifact_completed") == MANY
    assert kinds.count("artifact_started") < MANY / 2
    assert {p.read_text() for p in (here / "out").iterdir()} == {str(n) for n in range(MANY)}


def test_whoever_is_told_of_each_alone_is_told_of_all(here: Path) -> None:
    """A reporter need not know that several may be told of at once."""
    told: list[str] = []

    class Mine:
        def begun(self, *_: object) -> None: ...
        def started(self, *_: object) -> None: ...
        def printed(self, *_: object) -> None: ...
        def finished(self, artifact_id: str, outcome: str, *_: object) -> None:
            told.append(f"{outcome} {artifact_id}")

        def ended(self, *_: object) -> None: ...

    plan = Plan("Many", id="many")
    for n in range(MANY):
        plan.add(f"n{n}", make=lambda n=n: str(n), produces=f"out/{n}.txt")
    plan.run(jobs=1, reporter=cast(Any, Mine()))
    assert sorted(told) == sorted(f"made n{n}" for n in range(MANY))


def test_what_was_quick_the_last_time_is_taken_for_quick(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody has to find out again: what is asked for anew is begun in one line."""
    for limit in ("LIGHT_MS", "LIGHT_FOR", "LIGHT_LATE"):  # quick is quick, however busy this machine is
        monkeypatch.setattr(workers, limit, 10_000)
    plan = Plan("Many", id="many")
    for n in range(40):
        plan.add(f"n{n}", make=lambda n=n: str(n), produces=f"out/{n}.txt")
    plan.run(jobs=1)
    folder = PlanStore(str(here / ".headway/plans")).folder("many")
    before = len(list(folder.history()))
    assert len(plan.run(jobs=1, rerun_all=True).made) == 40
    kinds = [record.event.type for record in folder.history(before + 1)]
    assert kinds.count("artifact_completed") == 40
    assert kinds.count("artifact_started") == 1


def test_one_at_a_time_is_one_at_a_time() -> None:
    """However many wait, `-j 1` never runs two."""
    running: list[int] = []
    most: list[int] = []

    def make(n: int) -> str:
        running.append(n)
        most.append(len(running))
        time.sleep(0.001 if n % 40 else 0.03)
        running.remove(n)
        return str(n)

    plan = Plan("One by one", id="one")
    for n in range(120):
        plan.add(f"n{n}", make=make, args={"n": n})
    assert len(plan.run(jobs=1).made) == 120
    assert max(most) == 1


def test_one_that_turns_slow_holds_up_nobody_else() -> None:
    """The others that were taken with it are made by another worker."""
    ended: dict[int, float] = {}

    def make(n: int) -> str:
        if n == 50:
            time.sleep(1.5)
        ended[n] = time.monotonic()
        return str(n)

    plan = Plan("One is slow", id="slow")
    for n in range(MANY):
        plan.add(f"n{n}", make=make, args={"n": n})
    assert len(plan.run(jobs=2).made) == MANY
    assert all(at < ended[50] for n, at in ended.items() if n != 50)


def followed() -> tuple[Plan, list[str]]:
    """Quick ones of which the last waits for those that build on the others; and who has ended, in order."""
    ended: list[str] = []

    def make(n: int) -> str:
        deadline = time.monotonic() + 20
        while n == 50 and len(ended) < 40 and time.monotonic() < deadline:
            time.sleep(0.01)
        if n == 50:
            ended.append("slow")
        return str(n)

    def follow(n: int) -> str:
        ended.append(str(n))
        return str(n)

    plan = Plan("One is slow", id="slow")
    for n in range(51):
        plan.add(f"n{n}", make=make, args={"n": n})
    for n in range(40):
        plan.add(f"f{n}", make=follow, args={"n": n}, requires=[f"n{n}"])
    return plan, ended


def test_what_was_made_before_one_that_turns_slow_is_told_of_while_it_goes_on() -> None:
    """What builds on it is made meanwhile, although one thread had taken all of them."""
    plan, ended = followed()
    assert len(plan.run(jobs=2).made) == 91
    assert ended[-1] == "slow"


def test_what_was_made_before_one_that_turns_slow_is_told_of_while_others_are_told_of() -> None:
    """However much there is to hear of others meanwhile."""
    plan, ended = followed()

    def talk(n: int) -> str:
        time.sleep(0.05 if ended[-1:] != ["slow"] else 0)
        return str(n)

    for n in range(600):  # for longer than the slow one waits
        plan.add(f"t{n}", make=talk, args={"n": n}, requires=[f"t{n - 1}"] if n else [])
    plan.run(jobs=3)
    assert ended[-1] == "slow"


def test_a_kill_while_one_is_slow_takes_nothing_of_what_was_made_before_it(here: Path) -> None:
    """It is on record, although one thread had taken all of them, and is not made again."""
    (here / "plan.py").write_text(
        "import time\n"
        "from headway import Plan\n"
        "plan = Plan('One is slow', id='slow')\n"
        "def make(n, ctx):\n"
        "    with open(ctx.root / 'log', 'a') as log:\n"
        "        log.write(f'{n}\\n')\n"
        "    if n == 50 and not (ctx.root / 'again').exists():\n"
        "        time.sleep(60)\n"
        "    return str(n)\n"
        "for n in range(60):\n"
        "    plan.add(f'n{n}', make=make, args={'n': n})\n"
        "plan.run(jobs=1)\n"
    )
    running = subprocess.Popen([sys.executable, "plan.py"], cwd=here)
    folder = PlanStore(str(here / ".headway/plans")).folder("slow")
    deadline = time.monotonic() + 30
    while time.monotonic() < deadline:
        found = folder.load()
        if found is not None and len(found.state.completed) >= 50:
            break
        time.sleep(0.05)
    running.kill()
    running.wait()
    (here / "again").touch()
    subprocess.run([sys.executable, "plan.py"], cwd=here, check=True)
    made = (here / "log").read_text().split()
    assert [n for n in set(made) if made.count(n) > 1] == ["50"]


def test_an_error_of_any_length_is_that_artifacts_failure() -> None:
    """What it says is cut; the rest of the run goes on."""
    plan = Plan("Words", id="words")
    for n in range(30):
        plan.add(f"n{n}", make=lambda n=n: str(n))

    @plan.artifact
    def wordy() -> str:
        raise ValueError("x" * 300_000)

    result = plan.run(check=False)
    assert len(result.made) == 30
    assert result.failed["wordy"].startswith("ValueError: xxx")
    assert len(result.failed["wordy"]) < 5000


SCRIPT = """\
import sys, time
from headway import Plan, Project
from headway.core.events import EditPreserved
plan = Plan("Killed at any time", id="killed")
def make(n, ctx):
    with open("calls", "a") as calls:
        calls.write(f"{n}\\n")
    return f"{n}:" + "".join(i.text() for i in ctx.inputs.values())[:40]
for n in range(600):
    plan.add(f"n{n}", make=make, args={"n": n}, requires=[f"n{n - 60}"] if n >= 60 else [], produces=f"out/{n}.txt")
plan.run(jobs=2)
"""


@pytest.mark.parametrize("after", [0.4, 0.6, 0.9])
def test_killed_at_any_moment_the_next_run_goes_on(here: Path, after: float) -> None:
    """What was recorded is not made again, and the outputs are those of a run that nobody disturbed."""
    (here / "plan.py").write_text(SCRIPT)
    process = subprocess.Popen([sys.executable, "plan.py"], cwd=here)
    time.sleep(after)
    os.kill(process.pid, signal.SIGKILL)
    process.wait()
    recorded: set[str] = set()
    folder = PlanStore(str(here / ".headway/plans")).folder("killed")
    try:
        recorded = {r.event.id for r in folder.history() if r.event.type == "artifact_completed"}  # type: ignore[attr-defined]  # by its type
    except HeadwayError:
        pass
    (here / "calls").write_text("")
    subprocess.run([sys.executable, "plan.py"], cwd=here, check=True)
    again = {f"n{line}" for line in (here / "calls").read_text().split()}
    assert again.isdisjoint(recorded)
    outputs = {p.name: p.read_text() for p in (here / "out").iterdir()}
    assert len(outputs) == 600
    assert all(text.startswith(f"{name[:-4]}:") for name, text in outputs.items())


def given_back() -> None:
    """Take so long that those behind it are given back."""
    for _ in range(400):
        if "artifact_released" in Path(".headway/plans/slow/ledger.jsonl").read_text():
            return
        time.sleep(0.05)


def with_a_slow_one(meanwhile: Callable[[], object], **keys: Any) -> Plan:
    """Ten artifacts of a function that was quick; the next time, the first of them takes its time."""
    calls: list[int] = []

    def make(n: int, ctx: Context) -> str:
        calls.append(n)
        if n == 0 and calls.count(0) == 2:
            given_back()
            meanwhile()
        return "".join([str(n), *(path.read_text() for path in ctx.sources)])

    plan = Plan("One is slow", id="slow")
    for n in range(10):
        plan.add(f"n{n}", make=make, args={"n": n}, produces=f"out/{n}.txt", **(keys if n else {}))
    plan.run(jobs=1)
    return plan


def test_who_edits_the_output_of_one_that_waits_for_a_slow_one_is_asked(here: Path) -> None:
    """What was quick the last time may take long this time: whatever waits is looked at anew when its turn comes."""
    edited = here / "out/7.txt"
    plan = with_a_slow_one(lambda: edited.write_text("mine"))
    result = plan.run(jobs=1, rerun_all=True, check=False)
    assert [(d.code, d.artifacts) for d in result.decisions] == [("output_modified", ["n7"])]
    assert len(result.made) == 9
    again = plan.run(check=False)
    assert [(d.code, d.artifacts) for d in again.decisions] == [("output_modified", ["n7"])]
    assert edited.read_text() == "mine"


@pytest.mark.parametrize("made_before", [False, True], ids=["for the first time", "once more"])
def test_what_somebody_writes_to_the_path_of_one_that_waits_in_a_row_is_not_overwritten(
    here: Path, made_before: bool
) -> None:
    """Between being handed over and being made, its paths are somebody's to write to: that is asked about."""
    somebody_writes: list[bool] = [not made_before]

    def make(n: int) -> str:
        if n == 30 and somebody_writes[0]:
            (here / "out/40.txt").write_text("mine")
        return str(n)

    plan = Plan("In a row", id="row")
    for n in range(80):
        plan.add(f"n{n}", make=make, args={"n": n}, produces=f"out/{n}.txt")
    if made_before:
        plan.run(jobs=1)
        somebody_writes[0] = True
    result = plan.run(jobs=1, rerun_all=made_before, check=False)
    (decision,) = result.decisions
    assert (decision.code, decision.artifacts) == ("output_modified" if made_before else "untracked_output", ["n40"])
    assert (here / "out/40.txt").read_text() == "mine"
    assert len(result.made) == 79


@pytest.mark.parametrize("fork", [os.fork, ctypes.CDLL(None).fork], ids=["by Python", "behind its back"])
def test_a_child_that_a_function_forks_does_not_go_on_with_the_run(here: Path, fork: Callable[[], int]) -> None:
    """Whether it returns or raises: each is called once, and no process is left behind."""
    children: list[int] = []

    def make(n: int) -> str:
        with Path("calls").open("a") as file:
            file.write(f"{n}\n")
        if n in (20, 30):
            child = fork()
            if not child and n == 30:
                sys.exit(0)
            children.append(child)
        return str(n)

    plan = Plan("Many", id="many")
    for n in range(60):
        plan.add(f"n{n}", make=make, args={"n": n}, produces=f"out/{n}.txt")
    assert len(plan.run(jobs=1).made) == 60
    deadline = time.monotonic() + 10
    for child in children:
        while os.waitpid(child, os.WNOHANG)[0] != child:
            assert time.monotonic() < deadline
            time.sleep(0.01)
    assert sorted(map(int, Path("calls").read_text().split())) == list(range(60))


def test_a_process_that_was_forked_behind_pythons_back_runs_its_plans(here: Path) -> None:
    """It is the child of nobody's function: what it runs is its own."""
    plan = _many(_number, 20)
    child = ctypes.CDLL(None).fork()
    if not child:
        os._exit(0 if len(plan.run(jobs=1, check=False).made) == 20 else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert len(list((here / "out").iterdir())) == 20


def test_whoever_listens_may_call_anything_else_made(here: Path) -> None:
    """A listener that hears of each alone is asked for no more than that, however many end together."""

    class Mine:
        def __init__(self) -> None:
            self.made: list[str] = ["before"]

        def begun(self, *_: object) -> None: ...
        def started(self, *_: object) -> None: ...
        def printed(self, *_: object) -> None: ...
        def ended(self, *_: object) -> None: ...
        def finished(self, artifact_id: str, outcome: str, *_: object) -> None:
            self.made.append(artifact_id)

    mine: Any = Mine()
    assert _many(_number, 40).run(jobs=1, reporter=mine).ok
    assert sorted(mine.made) == sorted(["before", *(f"n{n}" for n in range(40))])


def test_one_that_takes_the_folder_away_is_in_nobodys_way() -> None:
    """Whoever is made after it in the same row finds the folder of its output all the same."""

    def make(n: int, ctx: Context) -> str | None:
        if n % 2:
            shutil.rmtree("out", ignore_errors=True)
            return "cleaned"
        ctx.output.write_text(str(n))
        return None

    plan = Plan("Many", id="many")
    for n in range(MANY):
        plan.add(f"n{n}", make=make, args={"n": n}, produces=() if n % 2 else f"out/{n}.txt")
    assert plan.run(jobs=1, check=False).failed == {}


@pytest.mark.parametrize("waits", [0, 30])
def test_what_somebody_writes_in_the_moment_before_it_is_made_is_kept(here: Path, waits: int) -> None:
    """It was looked at, and its function has begun: nobody can be asked any more, but nothing is lost."""

    def make(n: int) -> str:
        if n == waits:
            Path(f"out/{n}.txt").write_text("mine")
        return str(n)

    plan = Plan("Many", id="many")
    for n in range(40):
        plan.add(f"n{n}", make=make, args={"n": n}, produces=f"out/{n}.txt")
    assert len(plan.run(jobs=1).made) == 40
    folder = PlanStore(str(here / ".headway/plans")).folder("many")
    (kept,) = [record.event for record in folder.history() if isinstance(record.event, EditPreserved)]
    assert Path(f"out/{waits}.txt").read_text() == str(waits)
    assert [Project(here).blobs.get(output.digest) for output in kept.outputs] == [b"mine"]


def odd_one(how: str, ctx: Context) -> Any:
    """What a function may come to, besides text."""
    text = f"{ctx.id}\n"
    if how in ("its own file", "its own file, and text"):
        ctx.output.write_text("its own")
    if how == "words, and text":
        sys.stdout.write(f"at {ctx.id}")
    if how == "a path":
        (ctx.root / "beside.txt").write_text(text)
    if how == "an error":
        raise ValueError(text)
    values: dict[str, Any] = {
        "bytes": text.encode(),
        "a value": {"id": ctx.id},
        "a path": Path("beside.txt"),
        "a text of its own kind": type("Text", (str,), {})(text),
        "its own file": None,
        "nothing": None,
        "no text": f"\ud800{text}",
    }
    return values.get(how, text)


ODD = (
    "bytes",
    "a value",
    "a path",
    "a text of its own kind",
    "its own file",
    "its own file, and text",
    "words, and text",
)


@pytest.mark.parametrize("odd", [*ODD, "no text", "nothing", "an error"])
def test_whatever_a_light_one_returns_it_comes_to_the_same(
    here: Path, monkeypatch: pytest.MonkeyPatch, odd: str
) -> None:
    """In a row with others or by itself: the same file, the same events, the same words, the same failure."""
    told, calls = list[dict[str, Any]](), list[int]()
    for light in (True, False):
        for limit in ("LIGHT_MS", "LIGHT_LATE"):
            monkeypatch.setattr(workers, limit, 10_000 if light else -1)
        root = here / str(light)
        root.mkdir()
        monkeypatch.chdir(root)

        def make(n: int, ctx: Context) -> Any:
            calls.append(n)
            return odd_one(odd if n == 30 else "text", ctx)

        plan = Plan("In a row", id="row", project=root)
        for n in range(40):
            plan.add(f"n{n}", make=make, args={"n": n}, produces=f"out/{n}.txt")
        result = plan.run(jobs=1, check=False)
        assert len(result.made) + len(result.failed) == 40
        history = [record.event for record in PlanStore(str(root / ".headway/plans")).folder("row").history()]
        ends = [event for event in history if event.type in ("artifact_completed", "artifact_failed")]
        (end,) = [event for event in ends if event.id == "n30"]  # type: ignore[attr-defined]  # both have one
        fields = msgspec.structs.asdict(end)
        words = Project(root).blobs.get(fields["stdout"]) if fields.get("stdout") else b""
        path = root / "out/30.txt"
        told.append(
            {
                "file": path.read_bytes() if path.exists() else None,
                "kept": [event for event in history if isinstance(event, EditPreserved)],
                "words": words,
                "what": {key: fields.get(key) for key in ("type", "outputs", "left", "code", "error")},
                "others": {p.read_text() for p in (root / "out").iterdir() if p != path},
            }
        )
    assert told[0] == told[1]
    assert (told[0]["kept"], len(told[0]["others"])) == ([], 39)
    assert told[0]["words"] == (b"at n30" if odd == "words, and text" else b"")
    assert sorted(calls) == sorted([*range(40), *range(40)])


@pytest.mark.parametrize("asks", ["a gate", "a time", "another attempt"])
def test_a_light_one_of_which_more_is_asked_than_a_file_is_asked_for_it(
    here: Path, monkeypatch: pytest.MonkeyPatch, asks: str
) -> None:
    """In a row with others it passes its gates, ends in time and is tried again, as by itself."""
    for limit in ("LIGHT_MS", "LIGHT_LATE"):
        monkeypatch.setattr(workers, limit, 10_000)
    calls: list[int] = []

    def make(n: int) -> str:
        calls.append(n)
        if n == 30 and asks == "a time":
            time.sleep(20)
        if n == 30 and asks == "another attempt" and calls.count(30) == 1:
            raise ValueError("not yet")
        return str(n)

    settings: dict[str, dict[str, Any]] = {"a time": {"timeout": 1}, "another attempt": {"retry": 2}}
    plan = Plan("In a row", id="row", **settings.get(asks, {}))
    for n in range(40):
        gates: dict[str, Any] = {"gates": {"seen": {"run": f"touch seen-{n}"}}} if asks == "a gate" else {}
        plan.add(f"n{n}", make=make, args={"n": n}, produces=f"out/{n}.txt", **gates)
    result = plan.run(jobs=1, check=False)
    assert sorted(result.failed) == (["n30"] if asks == "a time" else [])
    assert len(list(here.glob("seen-*"))) == (40 if asks == "a gate" else 0)
    assert calls.count(30) == (2 if asks == "another attempt" else 1)


def test_what_waits_for_a_slow_one_is_made_from_what_is_there_when_its_turn_comes(here: Path) -> None:
    """Nobody has to run again because a source was edited while it was not even begun."""
    (here / "source.txt").write_text("old")
    plan = with_a_slow_one(lambda: (here / "source.txt").write_text("new"), sources="source.txt")
    assert len(plan.run(jobs=1, rerun_all=True).made) == 10
    assert (here / "out/9.txt").read_text() == "9new"


def test_what_a_stopped_run_has_not_begun_was_not_touched_by_it(here: Path) -> None:
    """Whoever edits its output afterwards is asked, as ever."""
    plan = with_a_slow_one(lambda: None)
    begun = time.monotonic()
    plan.run(jobs=1, rerun_all=True, check=False, stop=lambda: "interrupted" if time.monotonic() > begun + 0.1 else "")
    (here / "out/7.txt").write_text("mine")
    assert [d.artifacts for d in plan.run(rerun_all=True, check=False).decisions] == [["n7"]]


def test_what_a_light_one_was_made_from_and_somebody_changed_before_it_is_stale_and_told_of(here: Path) -> None:
    """It is looked at once, when it has ended: nothing that was made from somebody's edit passes for up to date."""

    def copy(ctx: Context, n: int) -> str:
        if n == 30:
            (here / "out/50.txt").write_text("mine")
        return ctx.inputs[f"n{n}"].text() + "!"

    plan = Plan("From others", id="others")
    for n in range(80):
        others = [f"n{m}" for m in range(79)] if n == 79 else []  # so all of them are made before any copy
        plan.add(f"n{n}", make=lambda n=n: str(n), requires=others, produces=f"out/{n}.txt")
        plan.add(f"c{n}", make=copy, args={"n": n}, requires=sorted({f"n{n}", "n79"}), produces=f"copies/{n}.txt")
    result = plan.run(jobs=1, check=False)
    assert not result.ok
    assert result.moved == {"c50": "out/50.txt"}
    assert (here / "out/50.txt").read_text() == "mine"
    again = plan.run(jobs=1, check=False)
    assert [(d.code, d.artifacts) for d in again.decisions] == [("output_modified", ["n50"])]
    assert "c50" in again.blocked
    assert plan.run(jobs=1, on_edit="discard").made == ["c50"]
    assert (here / "copies/50.txt").read_text() == "50!"


def test_what_would_have_to_be_asked_about_is_asked_about_in_a_row_too(here: Path) -> None:
    """A source that is not there is its artifact's failure, and everybody else is made in one row."""
    for n in range(40):
        (here / f"{n}.txt").write_text(str(n))
    (here / "33.txt").unlink()
    plan = Plan("Sources", id="sources")
    for n in range(40):
        plan.add(f"n{n}", make=lambda ctx: ctx.sources[0].read_text(), sources=[f"{n}.txt"], produces=f"out/{n}.txt")
        plan.add(f"m{n}", make=lambda n=n: str(n), requires=[f"n{n}"], produces=f"more/{n}.txt")
    result = plan.run(jobs=1, check=False)
    assert {*result.failed} == {"n33"}
    assert "33.txt" in result.failed["n33"]
    assert result.blocked == {"m33": "n33"}
    assert len(result.made) == 78


def test_a_missing_input_of_a_light_one_is_no_failure_of_its_own(here: Path) -> None:
    """It is not begun; the run says which file is not what it was."""

    def copy(ctx: Context, n: int) -> str:
        if n == 30:
            (here / "out/50.txt").unlink()
            (here / "out/51.txt").write_text("mine")
            time.sleep(0.02)  # then these are told of before the others are begun
        return ctx.inputs[f"n{n}"].text() + "!"

    plan = Plan("From others", id="others")
    for n in range(80):
        after = [f"n{n}"] if n < 40 else [f"n{n}", "c30"]
        plan.add(f"n{n}", make=lambda n=n: str(n), produces=f"out/{n}.txt")
        plan.add(f"c{n}", make=copy, args={"n": n}, requires=after, produces=f"copies/{n}.txt")
    result = plan.run(jobs=1, check=False)
    assert result.failed == {}
    assert result.moved == {"c50": "out/50.txt", "c51": "out/51.txt"}
    assert not (here / "copies/50.txt").exists(), "nothing was made from it"


def without_sources(source: str) -> Plan:
    """Sixty that are made in a moment, and forty of the same function whose sources are not there."""
    plan = Plan("Some cannot be made", id="some")

    def make() -> str:
        return "made"

    for n in range(60):
        plan.add(f"n{n}", make=make, produces=f"out/{n}.txt")
    for n in range(40):
        plan.add(f"m{n}", make=make, requires=["n59"], sources=[source.format(n)], produces=f"more/{n}.txt")
    return plan


def test_the_first_failure_in_a_row_ends_a_run_that_is_to_fail_fast(here: Path) -> None:
    """Nothing is begun after it: no other light one, and no command."""
    plan = without_sources("gone/{}.txt")
    plan.add("last", run="echo deployed > {output}", requires=["n59"], produces="last.txt")
    result = plan.run(jobs=1, fail_fast=True, check=False)
    assert len(result.failed) == 1
    assert not (here / "last.txt").exists()


def test_what_would_fail_all_alike_is_not_tried_to_the_end_in_a_row(here: Path) -> None:
    """After a few equal failures nothing more is begun."""
    result = without_sources("gone.txt").run(jobs=1, check=False)
    assert len(result.failed) < 10
    assert result.paused is not None
    assert result.paused.code == "same_error"


def test_many_paths_that_were_taken_meanwhile_are_asked_about_without_beginning_each(here: Path) -> None:
    """The first of them tells: from there on, all are looked at before they are begun."""

    def generate() -> str:
        (here / "out").mkdir(exist_ok=True)
        for n in range(300):
            (here / f"out/{n}.txt").write_text("mine")
        return "done"

    plan = Plan("Taken", id="taken")
    for n in range(40):
        plan.add(f"q{n}", make=lambda n=n: str(n), produces=f"quick/{n}.txt")
    plan.add("gen", make=generate, requires=["q39"], produces="gen.txt")
    for n in range(300):
        plan.add(f"n{n}", make=lambda n=n: str(n), requires=["gen"], produces=f"out/{n}.txt")
    result = plan.run(jobs=1, check=False)
    assert [(d.code, len(d.artifacts)) for d in result.decisions] == [("untracked_output", 300)]
    assert {path.read_text() for path in (here / "out").iterdir()} == {"mine"}
    kinds = [record.event.type for record in PlanStore(str(here / ".headway/plans")).folder("taken").history()]
    assert kinds.count("artifact_released") <= workers.LIGHT_AT_ONCE + 1


@pytest.mark.parametrize("path", ["out/{1}.txt", "out/{0}/{1}.txt"])
def test_a_folder_that_a_recipe_turned_into_a_link_out_of_the_project_is_noticed(here: Path, path: str) -> None:
    """Nothing is written there, not even of what was made in the same row before, and the run says why."""
    outside = here.parent / f"{here.name}-outside"

    def make(n: int) -> str:
        if n == 20:
            (here / "out").rename(here / "moved")
            outside.mkdir()
            (here / "out").symlink_to(outside)
        return str(n)

    plan = Plan("Astray", id="astray")
    for n in range(600):
        after = [f"n{n - 200}"] if n >= 200 else []
        plan.add(f"n{n}", make=make, args={"n": n}, requires=after, produces=path.format(n // 20, n))
    result = plan.run(jobs=1, check=False)
    assert not result.ok
    assert any("outside the project" in error for error in result.failed.values())
    assert [p for p in outside.rglob("*") if p.is_file()] == []


@pytest.mark.parametrize("opened", [0, 1, 3, 8])
@pytest.mark.parametrize("jobs", ["1", "2"])
def test_a_function_that_closes_all_files_ends_the_run_with_a_word(here: Path, opened: int, jobs: str) -> None:
    """As daemons do when they begin: ledger, blobs and locks are among them. Nothing that was told of is lost, and into
    files that it opens under their numbers nothing is written later on.
    """
    (here / "tasks.py").write_text(
        "import os\nimport time\n\nkept = []\n\n\ndef make(n):\n    if n == 150 and not os.path.exists('closed'):\n"
        "        open('closed', 'w').close()\n"
        "        time.sleep(0.5)  # nobody is just about to write to what was opened a moment ago\n"
        "        os.closerange(3, 256)\n"
        f"        kept.extend(open(f'mine/{{i}}', 'r+b') for i in range({opened}))\n    return str(n)\n"
    )
    (here / "mine").mkdir()
    for number in range(opened):
        (here / f"mine/{number}").write_bytes(b"precious" * 3000)
    artifacts = {f"n{n}": {"make": "tasks:make", "args": {"n": n}, "produces": f"out/{n}.txt"} for n in range(300)}
    (here / "headway.json").write_bytes(msgspec.json.encode({"id": "p", "goal": "g", "artifacts": artifacts}))
    words = [sys.executable, "-m", "headway", "run", "-j", jobs]
    first = subprocess.run(words, capture_output=True, text=True, timeout=200, check=False)
    assert {path.read_bytes() for path in (here / "mine").iterdir()} <= {b"precious" * 3000}
    assert first.returncode == 4, first.stdout + first.stderr
    assert "headway: A recipe has closed files that are this run's" in first.stderr
    assert "Traceback" not in first.stderr
    again = subprocess.run(words, capture_output=True, text=True, timeout=200, check=False)
    assert again.returncode == 0, again.stderr
    assert {p.read_text() for p in (here / "out").iterdir()} == {str(n) for n in range(300)}
    doctor = subprocess.run([*words[:3], "doctor"], capture_output=True, text=True, timeout=200, check=False)
    assert doctor.returncode == 0, doctor.stdout


@pytest.mark.parametrize("jobs", [1, 2])
@pytest.mark.parametrize("processors", [1, 2])
@pytest.mark.parametrize("written", [True, False])
def test_what_goes_wrong_with_writing_is_told_of_all_that_were_to_be_written(
    here: Path, monkeypatch: pytest.MonkeyPatch, jobs: int, processors: int, written: bool
) -> None:
    """Whatever it is, and whether they are written or not: they have failed, and nobody waits for them in vain."""
    monkeypatch.setattr(workers, "PROCESSORS", processors)
    real, calls = row.Row._write_plain, list[int]()

    def write(own: row.Row, due: Any) -> Any:
        calls.append(1)
        found = real(own, due) if written or len(calls) != 3 else None
        if len(calls) == 3:
            raise MemoryError
        return found

    monkeypatch.setattr(row.Row, "_write_plain", write)

    def make(n: int) -> str:
        return str(n)

    result = _many(make, 600).run(jobs=jobs, check=False)
    assert 0 < len(result.failed) <= row.TOGETHER
    assert {*result.failed.values()} == {"MemoryError: "}
    assert len(result.made) + len(_many(make, 600).run(jobs=jobs).made) == 600
    assert (here / "out/599/it.txt").read_text() == "599"


def test_outputs_whose_folder_was_moved_out_of_the_project_are_not_made_anew_there(here: Path) -> None:
    """They stand, through the link that was left in its place: what is theirs to replace is still not the project's."""
    outside = here.parent / f"{here.name}-moved"
    word = ["old"]
    plan = Plan("Moved", id="moved")
    for n in range(40):
        plan.add(f"n{n}", make=lambda n=n: f"{word[0]} {n}", produces=f"out/{n}.txt", version="1")
    plan.run(jobs=1)
    (here / "out").rename(outside)
    (here / "out").symlink_to(outside)
    word[0] = "new"
    result = plan.run(jobs=1, rerun_all=True, check=False)
    assert result.made == []
    assert "outside the project" in next(iter(result.failed.values()))
    assert {path.read_text() for path in outside.iterdir()} == {f"old {n}" for n in range(40)}


def test_the_file_with_its_prompt_is_there_for_whoever_asks_where_it_is(here: Path) -> None:
    """Light functions get theirs many at a time, later; one that reads it from there finds it at once."""
    (here / "prompt.md").write_text("Say {{ unit }}\n")
    (here / "tasks.py").write_text(
        "import os\n\n\ndef say(ctx):\n    if int(ctx.unit[1:]) % 2:\n        return ctx.prompt\n"
        "    with open(ctx.env['HEADWAY_PROMPT']) as file:\n        return file.read()\n"
    )
    phase = {"make": "tasks:say", "templates": {"phase": "prompt.md"}, "outputs": {"text": "out/{unit}.txt"}}
    units = [f"u{n}" for n in range(MANY)]
    plan = {"id": "p", "goal": "g", "pipelines": {"all": {"units": units, "phases": {"say": phase}}}}
    (here / "headway.json").write_bytes(msgspec.json.encode(plan))
    subprocess.run([sys.executable, "-m", "headway", "run"], cwd=here, check=True, capture_output=True, timeout=60)
    for unit in units:
        said = (here / f"out/{unit}.txt").read_text()
        told = msgspec.json.decode((here / f".headway/phases/{unit}.json").read_bytes())["phases"]["say"]["artifacts"]
        assert said == (here / told["prompt"]).read_text() == f"Say {unit}\n"


def test_a_file_that_comes_to_stand_where_many_are_written_is_kept(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is in nobody's way but its own artifact's, and its bytes can be had back."""
    monkeypatch.setattr(workers, "LIGHT_FOR", 10)  # so that all of a row are written when the last was made
    monkeypatch.setattr(row, "TOGETHER", 10_000)

    def make(n: int) -> str:
        if n == 150:
            (here / "out/149.txt").write_text("mine")
        return str(n)

    plan = Plan("Many", id="many")
    for n in range(MANY):
        plan.add(f"n{n}", make=make, args={"n": n}, produces=f"out/{n}.txt")
    result = plan.run(jobs=1)
    assert len(result.made) == MANY
    assert [kept.paths for kept in result.preserved] == [["out/149.txt"]]
    assert {p.read_text() for p in (here / "out").iterdir()} == {str(n) for n in range(MANY)}
    history = PlanStore(str(here / ".headway/plans")).folder("many").history()
    kept = [record.event for record in history if isinstance(record.event, EditPreserved)]
    assert [(e.id, o.digest) for e in kept for o in e.outputs] == [("n149", hashlib.sha256(b"mine").hexdigest())]


def two_each(here: Path, make: Callable[..., Any]) -> Plan:
    """Many light ones, each with two outputs in folders of their own."""
    plan = Plan("Two each", id="two")
    for n in range(60):
        plan.add(f"n{n}", make=make, args={"n": n}, produces=[f"a/{n}.txt", f"b/{n}.txt"])
    return plan


def test_what_was_written_of_one_that_failed_is_known_again(here: Path) -> None:
    """One of its files could not be written, the other one was: whatever it left is no edit of somebody's."""

    def make(n: int) -> dict[str, str]:
        if n == 30 and not (here / "turned").exists():
            (here / "turned").write_text("")
            (here / "b").rename(here / "moved")
            (here / "b").symlink_to(here.parent)
        return {f"a/{n}.txt": f"a{n}", f"b/{n}.txt": f"b{n}"}

    plan = two_each(here, make)
    first = plan.run(jobs=1, check=False)
    assert any("outside the project" in error for error in first.failed.values())
    (here / "b").unlink()
    (here / "moved").rename(here / "b")
    assert plan.run(jobs=1).ok
    assert list(here.parent.glob("*.txt")) == []
    assert {p.read_text() for p in (here / "b").iterdir()} == {f"b{n}" for n in range(60)}


def test_what_was_put_off_of_one_that_failed_is_not_written(here: Path) -> None:
    """It is known what it left; nothing comes to stand there afterwards."""
    mend = here / "mended"

    def make(n: int) -> dict[str, Any]:
        if n == 30 and not mend.exists():
            return {f"a/{n}.txt": "half", f"b/{n}.txt": {1, 2, object()}}
        return {f"a/{n}.txt": f"a{n}", f"b/{n}.txt": f"b{n}"}

    plan = two_each(here, make)
    assert set(plan.run(jobs=1, check=False).failed) == {"n30"}
    assert not (here / "a/30.txt").exists()
    mend.write_text("")
    assert plan.run(jobs=1).ok
    assert (here / "a/30.txt").read_text() == "a30"


def test_a_system_that_gives_up_on_many_is_asked_for_each(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The run goes on, and does not wait for ever."""
    real = bulk.write

    def write(orders: list[bulk.Order]) -> list[bulk.Answer]:
        if len(orders) > 1:
            raise MemoryError
        return real(orders)

    monkeypatch.setattr(bulk, "write", write)
    plan = Plan("Many", id="many")
    for n in range(MANY):
        plan.add(f"n{n}", make=lambda n=n: str(n), produces=f"out/{n}.txt")
    assert len(plan.run(jobs=2).made) == MANY
    assert {p.read_text() for p in (here / "out").iterdir()} == {str(n) for n in range(MANY)}


@pytest.mark.parametrize("jobs", [1, 2])
@pytest.mark.parametrize("processors", [1, 2])
def test_others_are_made_while_those_before_are_written_and_recorded(
    here: Path, monkeypatch: pytest.MonkeyPatch, jobs: int, processors: int
) -> None:
    """Where there is a processor for it; never more at once than are allowed, and what is required is in its place."""
    monkeypatch.setattr(workers, "PROCESSORS", processors)
    for limit in ("LIGHT_MS", "LIGHT_LATE"):  # quick is quick, however busy this machine is
        monkeypatch.setattr(workers, limit, 10_000)
    monkeypatch.setattr(workers, "LIGHT_FOR", 0.002)  # so there are several rows, however fast it is
    outcomes = workers.Workers.outcomes
    monkeypatch.setattr(workers.Workers, "outcomes", lambda own, wait: outcomes(own, 60))
    real, take, lots = bulk.write, Run._take, list[int]()
    running, most, ahead, writers = list[int](), list[int](), list[int](), set[str]()
    recording = threading.Event()

    def write(orders: list[bulk.Order]) -> list[bulk.Answer]:
        lots.append(len(orders))
        writers.add(threading.current_thread().name)
        return real(orders)

    def slowly(run: Run, outcomes: list[row.Outcome]) -> None:
        recording.set()
        time.sleep(0.005)
        take(run, outcomes)
        recording.clear()

    def make(n: int) -> str:
        running.append(n)
        most.append(len(running))
        if n > 300 and recording.is_set():  # the first ones are not known to be light, and beside others
            ahead.append(n)
        assert n < 300 or (here / f"out/{n - 300}.txt").read_text() == str(n - 300)
        running.remove(n)
        return str(n)

    monkeypatch.setattr(bulk, "write", write)
    monkeypatch.setattr(Run, "_take", slowly)
    plan = Plan("Many", id="many")
    for n in range(600):
        after = [f"n{n - 300}"] if n >= 300 else []
        plan.add(f"n{n}", make=make, args={"n": n}, requires=after, produces=f"out/{n}.txt")
    assert len(plan.run(jobs=jobs).made) == 600
    assert (bool(ahead), "headway-files" in writers, max(most) <= jobs) == (processors > 1, processors > 1, True)
    assert 1 < max(lots) <= row.TOGETHER


def _number(n: int) -> str:
    return str(n)


def _many(make: Callable[[int], str], number: int) -> Plan:
    plan = Plan("Many", id="many")
    for n in range(number):
        plan.add(f"n{n}", make=make, args={"n": n}, produces=f"out/{n}/it.txt")
    return plan


@pytest.fixture
def two_processors(monkeypatch: pytest.MonkeyPatch) -> None:
    """Files are written beside whoever goes on; and quick is quick, however busy the machine."""
    monkeypatch.setattr(workers, "PROCESSORS", 2)
    for limit in ("LIGHT_MS", "LIGHT_LATE"):
        monkeypatch.setattr(workers, limit, 10_000)


@pytest.mark.usefixtures("two_processors")
def test_while_files_are_written_others_are_made_but_not_too_many(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """By one thread, as was asked for: what is made and not yet written would be lost with the process."""
    real, begun, written, waiting = bulk.write, list[int](), list[int](), list[int]()
    beside = threading.Event()

    def write(orders: list[bulk.Order]) -> list[bulk.Answer]:
        if threading.current_thread().name == "headway-files":
            before, began = len(begun), time.monotonic()
            while time.monotonic() < began + (0.02 if beside.is_set() else 30):
                waiting.append(len(begun) - len(written))
                if len(begun) > before:
                    beside.set()
                time.sleep(0.001)
        written.extend(range(len(orders)))
        return real(orders)

    def make(n: int) -> str:
        begun.append(n)
        return str(n)

    monkeypatch.setattr(bulk, "write", write)
    assert len(_many(make, 1500).run(jobs=1).made) == 1500
    assert (here / "out/1499/it.txt").read_text() == "1499"
    assert beside.is_set()
    assert max(waiting) <= (scribe.BEHIND + workers.LIGHT_UNWRITTEN + 1) * row.TOGETHER


@pytest.mark.usefixtures("two_processors")
def test_where_no_thread_can_be_had_for_files_they_are_written_nevertheless(
    here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By whoever made them."""
    start = threading.Thread.start

    def refused(thread: threading.Thread) -> None:
        if thread.name == "headway-files":
            raise RuntimeError("can't start new thread")
        start(thread)

    monkeypatch.setattr(threading.Thread, "start", refused)
    assert len(_many(lambda n: f"{n}", 300).run(jobs=1).made) == 300
    assert (here / "out/299/it.txt").read_text() == "299"


@pytest.mark.usefixtures("two_processors")
def test_what_cannot_be_written_beside_others_fails_alone(here: Path) -> None:
    """Its folder has become a file when its turn comes; those before and behind it are made."""

    def make(n: int) -> str:
        if n == 200:
            shutil.rmtree(here / "out/200")
            (here / "out/200").write_text("in the way")
        return str(n)

    result = _many(make, 400).run(jobs=1, check=False)
    assert (list(result.failed), len(result.made)) == (["n200"], 399)


def test_a_failure_lets_no_other_row_begin(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With --fail-fast, what was not begun is not."""
    monkeypatch.setattr(workers, "PROCESSORS", 2)
    monkeypatch.setattr(workers, "LIGHT_FOR", 0.001)
    begun: list[int] = []

    def make(n: int) -> str:
        begun.append(n)
        if n == 100:
            raise ValueError("no")
        return str(n)

    plan = Plan("Many", id="many")
    for n in range(2000):
        plan.add(f"n{n}", make=make, args={"n": n}, produces=f"out/{n}.txt")
    assert not plan.run(jobs=2, fail_fast=True, check=False).ok
    assert len(begun) < 600


def test_what_failed_behind_another_of_its_files_leaves_nothing_unknown(here: Path) -> None:
    """The first of its files is put off, the second cannot be written at once: the first is not written after all."""
    (here / "tasks.py").write_text(
        "import os, shutil\n\n\ndef make(n, k):\n    if n == 30 and k and not os.path.exists('fixed'):\n"
        "        shutil.rmtree('b30')\n        open('b30', 'w').write('in the way')\n"
        "    return {f'a{n}/1.txt': f'one {n} {k}', f'b{n}/2.txt': f'two {n}'}\n"
    )

    def run(k: int) -> int:
        keys = {"make": "tasks:make"}
        artifacts = {
            f"n{n}": {**keys, "args": {"n": n, "k": k}, "produces": [f"a{n}/1.txt", f"b{n}/2.txt"]} for n in range(60)
        }
        (here / "headway.json").write_bytes(msgspec.json.encode({"id": "p", "goal": "g", "artifacts": artifacts}))
        words = [sys.executable, "-m", "headway", "run", "-j", "1"]
        return subprocess.run(words, cwd=here, check=False, capture_output=True, timeout=60).returncode

    assert (run(0), run(1)) == (0, 1)
    (here / "fixed").write_text("")
    (here / "b30").unlink()
    assert run(1) == 0
    assert (here / "a30/1.txt").read_text() == "one 30 1"


def test_a_function_that_takes_the_folder_away_leaves_one_to_the_next(here: Path) -> None:
    """Which writes its own file there."""

    def make(n: int, ctx: Context) -> str | None:
        if n == 30:
            shutil.rmtree(here / "out")
        if n == 31:
            ctx.output.write_text("own")
            return None
        return str(n)

    plan = Plan("Many", id="many")
    for n in range(60):
        plan.add(f"n{n}", make=make, args={"n": n}, produces=f"out/{n}.txt")
    assert len(plan.run(jobs=1).made) == 60


@pytest.mark.parametrize("outputs", [{"text": "out/{unit}.txt"}, {}], ids=["a file each", "texts"])
def test_prompts_that_find_no_room_as_files_stop_nothing(here: Path, outputs: dict[str, str]) -> None:
    """They are kept as blobs; it is said that phase ledgers name what is not there, and the next run puts it there."""
    (here / "prompt.md").write_text("Say {{ unit }}\n")
    (here / "tasks.py").write_text(
        "import shutil\n\n\ndef say(ctx):\n    if ctx.unit == 'u100':\n"
        "        shutil.rmtree('.headway/texts')\n        open('.headway/texts', 'w').close()\n    return ctx.prompt\n"
    )
    phase = {"make": "tasks:say", "templates": {"phase": "prompt.md"}, "outputs": outputs}
    units = [f"u{n}" for n in range(800)]
    plan = {"id": "p", "goal": "g", "pipelines": {"all": {"units": units, "phases": {"say": phase}}}}
    (here / "headway.json").write_bytes(msgspec.json.encode(plan))
    words = [sys.executable, "-c", LIGHT_RUN]
    first = subprocess.run(words, cwd=here, check=False, capture_output=True, text=True, timeout=60)
    assert (first.returncode, "phases/ could not be written" in first.stdout + first.stderr) == (0, True)
    assert (here / ".headway/phases/u799.json").exists()
    (here / ".headway/texts").unlink()
    second = subprocess.run(words, cwd=here, check=False, capture_output=True, text=True, timeout=60)
    assert (second.returncode, "could not be" in second.stdout + second.stderr) == (0, False)
    for unit in units:
        named = msgspec.json.decode((here / f".headway/phases/{unit}.json").read_bytes())["phases"]["say"]
        assert {(here / path).read_text() for path in named["artifacts"].values()} == {f"Say {unit}\n"}


def test_prompts_of_a_plan_that_begins_anew_are_there(here: Path) -> None:
    """Its ledger was deleted, and its phase ledgers reflect more events than it has now."""
    phase = {"make": "tasks:say", "templates": {"phase": "prompt.md"}, "outputs": {"text": "out/{unit}.txt"}}
    units = [f"u{n}" for n in range(120)]
    plan = {"id": "p", "goal": "g", "pipelines": {"all": {"units": units, "phases": {"say": phase}}}}
    (here / "headway.json").write_bytes(msgspec.json.encode(plan))
    (here / "tasks.py").write_text("def say(ctx):\n    return ctx.prompt\n")
    for number in range(4):
        (here / "prompt.md").write_text(f"Say {number} {{{{ unit }}}}\n")
        if number == 3:
            shutil.rmtree(here / ".headway/plans/p")
            shutil.rmtree(here / "out")
        words = [sys.executable, "-m", "headway", "run", "-j", "1"]
        assert subprocess.run(words, cwd=here, check=False, capture_output=True, timeout=60).returncode == 0
    for unit in units:
        named = msgspec.json.decode((here / f".headway/phases/{unit}.json").read_bytes())["phases"]["say"]
        assert (here / named["artifacts"]["prompt"]).read_text() == f"Say 3 {unit}\n"


def test_the_prompt_of_one_that_failed_is_there_to_be_read(here: Path) -> None:
    """Whoever asks why it failed may want to see it."""
    (here / "prompt.md").write_text("Say {{ unit }}\n")
    (here / "tasks.py").write_text(
        "def say(ctx):\n    if ctx.unit == 'u50':\n        raise ValueError('no')\n    return ctx.prompt\n"
    )
    phase = {"make": "tasks:say", "templates": {"phase": "prompt.md"}, "outputs": {"text": "out/{unit}.txt"}}
    plan = {
        "id": "p",
        "goal": "g",
        "pipelines": {"all": {"units": [f"u{n}" for n in range(99)], "phases": {"say": phase}}},
    }
    (here / "headway.json").write_bytes(msgspec.json.encode(plan))
    words = [sys.executable, "-m", "headway", "run", "-j", "1"]
    assert subprocess.run(words, cwd=here, check=False, capture_output=True, timeout=60).returncode == 1
    told = msgspec.json.decode((here / ".headway/phases/u50.json").read_bytes())["phases"]["say"]
    assert (told["status"], (here / told["artifacts"]["prompt"]).read_text()) == ("fail", "Say u50\n")


def test_a_worker_that_has_told_of_all_it_did_and_is_not_back_yet_ends_no_run(monkeypatch: pytest.MonkeyPatch) -> None:
    """What comes next waits for it, and not for somebody else's place."""
    write = row.Row.write

    def slowly(self: row.Row) -> bool:
        answer = write(self)
        if threading.current_thread().name.startswith("headway"):
            time.sleep(0.5)  # long enough for what it did to be told and recorded meanwhile
        return answer

    monkeypatch.setattr(row.Row, "write", slowly)
    plan = Plan("Chain", id="chain")
    plan.add("a", make=lambda: "a", produces="a.txt")
    plan.add("b", make=lambda: "b", requires=["a"], produces="b.txt")
    assert plan.run(jobs=1).made == ["a", "b"]


def test_what_a_function_does_to_what_it_is_given_stays_with_it(here: Path) -> None:
    """Arguments and variables are the plan's: neither the next attempt nor the next artifact finds them changed."""
    (here / "tasks.py").write_text(
        "def grow(ctx, xs):\n"
        "    xs.append(len(xs))\n"
        "    ctx.vars['a'].append(ctx.id)\n"
        "    ctx.vars['b'] = ctx.id\n"
        "    return repr((xs, ctx.vars))\n"
    )
    lines = [f"  n{n}: {{make: 'tasks:grow', args: {{xs: [1]}}, produces: out/{n}.txt}}" for n in range(20)]
    plan = "id: p\ngoal: g\nvars: {a: [0], b: 0}\nartifacts:\n" + "\n".join(lines) + "\n"
    (here / "headway.yaml").write_text(plan)
    for _ in range(2):
        assert main(["run", "--force"]) == 0
        texts = [(here / f"out/{n}.txt").read_text() for n in range(20)]
        assert texts == [repr(([1, 1], {"a": [0, f"n{n}"], "b": f"n{n}"})) for n in range(20)]
    state = PlanStore(str(here / ".headway/plans")).folder("p").load()
    assert state is not None
    assert state.state.settings.vars == {"a": [0], "b": 0}
    assert state.state.artifacts["n3"].args == {"xs": [1]}
    assert main(["doctor"]) == 0, "a snapshot is what the events add up to"
