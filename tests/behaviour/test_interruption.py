"""Ctrl-C, SIGTERM, kill -9: the same command goes on. Nothing completed is made again; the bytes come out the same."""

from __future__ import annotations

import json
import os
import random
import shutil
import signal
import subprocess
import sys
import threading
import time
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from headway import bulk
from headway.core.freshness import Reason
from headway.engine import run, workers
from headway.engine.recipes.function import Context
from headway.engine.result import Options
from headway.engine.row import Outcome
from headway.ledger.lock import FileLock
from headway.project import Project
from headway.surfaces.cli import entry
from headway.surfaces.cli.main import main
from tests.bench import Bench, Log
from tests.processes import finish, processes, soon, start

NAMES = [f"{chain}{number}" for number in range(5) for chain in "ab"]


def long_plan(root: Path) -> None:
    """Two chains of five commands that take a moment, count how often they began, and write in two steps."""
    root.mkdir(exist_ok=True)
    lines = ["id: p", "goal: g", "artifacts:"]
    for name in NAMES:
        before = f"{name[0]}{int(name[1]) - 1}" if name[1] != "0" else ""
        given = f"cat {{inputs.{before}}}" if before else "echo start"
        steps = ["mkdir -p began", f"echo x >> began/{name}", f"echo {name} > {{output}}", "sleep 0.06"]
        command = "; ".join([*steps, f"{given} >> {{output}}"])
        keys = [f"requires: [{before}]", f"produces: out/{name}.txt", f'run: "{command}"']
        lines += [f"  {name}:", *(f"    {key}" for key in keys)]
    (root / "headway.yaml").write_text("\n".join(lines) + "\n")


def outputs(root: Path) -> dict[str, str]:
    return {path.name: path.read_text() for path in sorted((root / "out").iterdir())}


def began(root: Path) -> dict[str, int]:
    """How often each of them was begun."""
    found = {path.name: len(path.read_text().split()) for path in (root / "began").glob("*")}
    return {name: found.get(name, 0) for name in NAMES}


def over_or_far_enough(process: subprocess.Popen[str], root: Path, starts: int) -> bool:
    return process.poll() is not None or sum(began(root).values()) >= starts


def completed(root: Path) -> set[str]:
    found = Project(root).store.folder("p").load()
    return set(found.state.completed) if found is not None else set()


@pytest.fixture(scope="module")
def expected(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """What an uninterrupted run makes."""
    root = tmp_path_factory.mktemp("whole") / "p"
    long_plan(root)
    assert finish(start(root, "-j2"))[0] == 0
    return outputs(root)


@pytest.mark.parametrize(
    ("number", "code"), [(signal.SIGKILL, -9), (signal.SIGTERM, 130), (signal.SIGINT, 130)], ids=["kill", "term", "int"]
)
def test_a_run_that_is_stopped_again_and_again_gets_done(
    tmp_path: Path, expected: dict[str, str], number: signal.Signals, code: int
) -> None:
    """At whatever moment: what was completed is not made again, and the bytes are those of an uninterrupted run."""
    root, chance = tmp_path / "p", random.Random(number)
    long_plan(root)
    for _ in range(20):
        done = completed(root)
        before = began(root)
        process = start(root, "-j2")
        until = sum(before.values()) + chance.randrange(1, 4)
        assert soon(partial(over_or_far_enough, process, root, until))
        process.send_signal(number)
        ended, _, err = finish(process)
        assert ended in (code, 0), err
        assert all(began(root)[name] == before[name] for name in done)
        if ended == 0:
            break
    assert finish(start(root, "-j2"))[0] == 0
    assert outputs(root) == expected
    assert finish(start(root))[1] == "Nothing to do: 10 artifacts are up to date.\n"


HALF = "echo half >> s.txt; test -f go || { touch began; sleep 60; }; echo whole >> s.txt"
BASE = "  base: {produces: s.txt, run: 'echo base > s.txt'}\n"


@pytest.mark.parametrize(
    ("before", "after", "text"),
    [
        (f"{BASE}  more: {{requires: [base], modifies: [s.txt], run: '{HALF}'}}\n", BASE, "base\n"),
        (f"  a: {{produces: s.txt, run: '{HALF}'}}\n", f"  b: {{produces: s.txt, run: '{HALF}'}}\n", "half\nwhole\n"),
    ],
    ids=["removed", "renamed"],
)
def test_what_a_killed_attempt_left_is_no_edit_though_its_artifact_has_left_the_plan(
    tmp_path: Path, before: str, after: str, text: str
) -> None:
    """It is kept, replaced without a question, and the rest goes on."""
    (tmp_path / "headway.yaml").write_text(f"id: p\ngoal: g\nartifacts:\n{before}")
    process = start(tmp_path)
    assert soon((tmp_path / "began").exists)
    process.kill()
    finish(process)
    assert "half" in (tmp_path / "s.txt").read_text()
    (tmp_path / "headway.yaml").write_text(f"id: p\ngoal: g\nartifacts:\n{after}")
    (tmp_path / "go").touch()
    code, _, err = finish(start(tmp_path))
    assert (code, (tmp_path / "s.txt").read_text()) == (0, text), err


@pytest.mark.parametrize(
    "words",
    [
        ["plans", "edit", "remove", "a", "--unfinished"],
        ["plans", "edit", "set", "a", "produces=other.txt"],
        ["replan", "--plan", "other.yaml", "--plan-id", "p"],
    ],
    ids=["removed", "elsewhere", "replanned"],
)
def test_what_a_killed_attempt_left_is_no_edit_however_the_plan_loses_its_path(
    tmp_path: Path, words: list[str]
) -> None:
    """By whichever command; whoever writes to that path next does so without a question."""

    def headway(*words: str) -> str:
        done = subprocess.run(
            [sys.executable, "-m", "headway", *words], cwd=tmp_path, capture_output=True, text=True, check=True
        )
        return done.stdout

    other = "  b: {produces: s.txt, run: 'echo b > s.txt'}\n"
    (tmp_path / "headway.yaml").write_text(f"id: p\ngoal: g\nartifacts:\n  a: {{produces: s.txt, run: '{HALF}'}}\n")
    (tmp_path / "other.yaml").write_text(f"id: p\ngoal: g\nartifacts:\n{other}")
    process = start(tmp_path)
    assert soon((tmp_path / "began").exists)
    process.kill()
    finish(process)
    (tmp_path / "go").touch()
    headway(*words, "--reason", "another way")
    if words[0] == "plans":
        headway("plans", "edit", "add", "b", "produces=s.txt", "run=echo b > s.txt", "--reason", "another way")
    assert "made     b " in headway("run", "b", "--plan-id", "p")
    assert (tmp_path / "s.txt").read_text() == "b\n"


def test_what_a_dead_scheduler_left_running_is_ended(tmp_path: Path) -> None:
    """The commands of a run that was killed are orphans; the next run ends them before it begins."""
    mark = f"8{os.getpid()}.5"
    (tmp_path / "headway.yaml").write_text(
        "id: p\ngoal: g\nartifacts:\n"
        f"  a: {{produces: a.txt, run: 'test -f go || {{ touch began; sleep {mark}; }}; echo a > {{output}}'}}\n"
    )
    process = start(tmp_path)
    assert soon(lambda: (tmp_path / "began").exists() and processes(f"sleep\0{mark}"))
    process.kill()
    finish(process)
    assert processes(mark)
    (tmp_path / "go").write_text("")
    assert finish(start(tmp_path))[0] == 0
    assert soon(lambda: not processes(mark))


def test_what_is_left_of_a_command_that_itself_has_ended_is_ended_too(tmp_path: Path) -> None:
    """A child in the background outlives its shell; it belongs to the same attempt."""
    mark = f"8{os.getpid()}.6"
    (tmp_path / "headway.yaml").write_text(
        "id: p\ngoal: g\nartifacts:\n"
        f"  a: {{produces: a.txt, run: 'sleep {mark} & test -f go || {{ touch began; sleep {mark}; }};"
        " echo a > {output}'}\n"
    )
    process = start(tmp_path)
    assert soon(lambda: (tmp_path / "began").exists() and len(processes(f"sleep\0{mark}")) == 2)
    lock = FileLock(str(tmp_path / ".headway/plans/p/run.lock"))
    assert soon(lambda: lock.signature().get("groups"))
    process.kill()
    finish(process)
    shell = next(pid for pid in processes(mark) if b"/bin/sh" in Path(f"/proc/{pid}/cmdline").read_bytes())
    os.kill(shell, signal.SIGKILL)
    (tmp_path / "go").write_text("")
    assert finish(start(tmp_path))[0] == 0
    assert soon(lambda: not processes(mark))


def test_ctrl_c_says_that_nothing_is_lost(tmp_path: Path) -> None:
    """What is in flight is ended, and the exit code is 130."""
    mark = f"8{os.getpid()}.7"
    (tmp_path / "headway.yaml").write_text(
        "id: p\ngoal: g\nartifacts:\n"
        "  a: {produces: a.txt, run: 'echo a > {output}'}\n"
        f"  b: {{requires: [a], produces: b.txt, run: 'touch began; sleep {mark}'}}\n"
    )
    process = start(tmp_path, "--json")
    assert soon((tmp_path / "began").exists)
    process.send_signal(signal.SIGINT)
    code, out, _ = finish(process)
    document = json.loads(out)
    assert (code, document["status"], document["made"]) == (130, "interrupted", ["a"])
    assert document["paused"]["resume"] == "headway run"
    assert soon(lambda: not processes(mark))


def test_without_a_terminal_it_says_that_it_waits_for_a_function(tmp_path: Path) -> None:
    """A log that says nothing looks as if it had not heard; what the function made counts."""
    (tmp_path / "tasks.py").write_text(
        "import os, time\n\n\ndef slow():\n    open('began', 'w').close()\n"
        "    while not os.path.exists('go'):\n        time.sleep(0.01)\n    return 'slow'\n"
    )
    (tmp_path / "headway.yaml").write_text("id: p\ngoal: g\nartifacts:\n  a: {produces: a.txt, make: 'tasks:slow'}\n")
    process = start(tmp_path)
    assert soon((tmp_path / "began").exists)
    process.send_signal(signal.SIGINT)
    assert process.stderr is not None
    assert process.stderr.readline() == "Stopping; what runs in Python is waited for. Once more does not wait.\n"
    (tmp_path / "go").touch()
    code, out, _ = finish(process)
    assert (code, (tmp_path / "a.txt").read_text()) == (130, "slow")
    assert "Interrupted; nothing is lost. Next: headway run" in out


PATIENT_RUN = """from headway.engine import run
from headway.surfaces.cli.main import main

run.DRAIN = 600
raise SystemExit(main(["run"]))
"""
"""`headway run` that waits for ever for what it has told to stop."""


@pytest.mark.parametrize(
    "recipe",
    ["make: 'tasks:slow'", "run: 'trap \"\" TERM; touch began; sleep MARK & sleep MARK'"],
    ids=["a function", "a command that will not hear of it"],
)
def test_who_asks_twice_does_not_wait(tmp_path: Path, recipe: str) -> None:
    """Whatever is at work is ended, and the next run makes it."""
    mark = f"8{os.getpid()}.8"
    (tmp_path / "tasks.py").write_text(
        "import os, time\n\n\ndef slow():\n    open('began', 'w').close()\n"
        "    while not os.path.exists('go'):\n        time.sleep(0.01)\n    return 'slow'\n"
    )
    plan = f"id: p\ngoal: g\nartifacts:\n  a: {{produces: a.txt, {recipe.replace('MARK', mark)}}}\n"
    (tmp_path / "headway.yaml").write_text(plan)
    command = [sys.executable, "-c", PATIENT_RUN]
    process = subprocess.Popen(command, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert soon((tmp_path / "began").exists)
    process.send_signal(signal.SIGINT)
    assert process.stderr is not None
    assert process.stderr.readline().endswith("Once more does not wait.\n")
    process.send_signal(signal.SIGINT)
    code, _, err = finish(process)
    assert (code, err) == (130, "Interrupted. Nothing is lost.\n")
    assert soon(lambda: not processes(mark))
    (tmp_path / "go").touch()
    (tmp_path / "headway.yaml").write_text(plan.replace(recipe.replace("MARK", mark), "run: 'echo a > {output}'"))
    assert finish(start(tmp_path))[0] == 0


@pytest.mark.parametrize(
    "others", ["", "  b: {requires: [a], make: 'tasks:later'}\n"], ids=["no function", "a later one"]
)
def test_without_a_terminal_it_does_not_speak_of_python_where_a_command_runs(tmp_path: Path, others: str) -> None:
    """A command is ended at once, so there is nothing to wait for."""
    (tmp_path / "headway.yaml").write_text(
        f"id: p\ngoal: g\nartifacts:\n  a: {{produces: a.txt, run: 'touch began; sleep 600'}}\n{others}"
    )
    process = start(tmp_path)
    assert soon((tmp_path / "began").exists)
    process.send_signal(signal.SIGINT)
    code, _, err = finish(process)
    assert (code, err) == (130, "Stopping. Once more does not wait.\n")


def test_where_nobody_hears_it_nothing_else_is_written_to(tmp_path: Path) -> None:
    """With stderr closed, its number may be that of any file that was opened since."""
    (tmp_path / "tasks.py").write_text(
        "import os, time\n\n\ndef slow():\n    open('began', 'w').close()\n"
        "    while not os.path.exists('go'):\n        time.sleep(0.01)\n    return 'slow'\n"
    )
    (tmp_path / "headway.yaml").write_text("id: p\ngoal: g\nartifacts:\n  a: {produces: a.txt, make: 'tasks:slow'}\n")
    command = f"exec {sys.executable} -m headway run 2>&-"
    process = subprocess.Popen(["/bin/sh", "-c", command], cwd=tmp_path, stdout=subprocess.DEVNULL)
    assert soon((tmp_path / "began").exists)
    process.send_signal(signal.SIGTERM)
    (tmp_path / "go").touch()
    assert process.wait(60) == 130
    kept = [path for path in (tmp_path / ".headway").rglob("*") if path.is_file()]
    assert not [path for path in kept if b"Stopping;" in path.read_bytes()]


def test_ctrl_c_says_so_before_everything_is_there_that_says_it(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The first moments go into imports."""

    def pressed(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(sys, "argv", ["headway", "run"])
    monkeypatch.setattr("headway.stamp.nothing_to_do", pressed)
    assert (entry.main(), capsys.readouterr().err) == (130, "Interrupted. Nothing is lost.\n")


def test_a_second_run_is_told_who_is_at_it(tmp_path: Path) -> None:
    """Exit 75, naming the process; nothing is made twice."""
    (tmp_path / "headway.yaml").write_text(
        "id: p\ngoal: g\nartifacts:\n"
        "  a: {produces: a.txt, run: 'echo x >> began; "
        "for n in $(seq 600); do test -f go && break; sleep 0.05; done; echo a > {output}'}\n"
    )
    first = start(tmp_path)
    assert soon((tmp_path / "began").exists)
    code, _, err = finish(start(tmp_path))
    assert code == 75
    assert f"pid: {first.pid}" in err
    (tmp_path / "go").write_text("")
    assert finish(first)[0] == 0
    assert (tmp_path / "began").read_text() == "x\n"


def test_status_can_be_asked_while_a_run_is_on(tmp_path: Path) -> None:
    """Reading takes no lock; the last run's plan can be changed meanwhile, except what is being made."""
    plan = (
        "id: p\ngoal: g\nartifacts:\n"
        "  a: {produces: a.txt, run: 'touch began; "
        "for n in $(seq 600); do test -f go && break; sleep 0.05; done; echo a > {output}'}\n"
        "  b: {requires: [a], produces: b.txt, run: 'echo b > {output}'}\n"
    )
    (tmp_path / "headway.yaml").write_text(plan)
    first = start(tmp_path)
    assert soon((tmp_path / "began").exists)
    status = subprocess.run(
        [*first.args[:3], "status", "--json"],  # type: ignore[index]  # a list
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=True,
    )
    artifacts = json.loads(status.stdout)["artifacts"]
    assert [artifacts[a]["status"] for a in "ab"] == ["in_progress", "pending"]
    (tmp_path / "go").write_text("")
    assert finish(first)[0] == 0


# What was asked for again.

PATIENT = (
    "id: p\ngoal: g\nartifacts:\n"
    "  a: {produces: a.txt, run: 'echo x >> began; : > {output}; "
    "for n in $(seq 600); do test -f [g]o && break; sleep 0.05; done; echo a > {output}'}\n"
    "  b: {requires: [a], produces: b.txt, run: 'echo x >> began_b; echo b > {output}'}\n"
)


def asked_again(root: Path, *words: str) -> subprocess.Popen[str]:
    """A run that makes anew what was made before, in the middle of it."""
    (root / "headway.yaml").write_text(PATIENT)
    (root / "go").write_text("")
    assert finish(start(root))[0] == 0
    (root / "go").unlink()
    process = start(root, *words)
    assert soon(lambda: (root / "began").read_text() == "x\nx\n")
    return process


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGINT], ids=["kill", "int"])
def test_what_was_asked_for_again_stays_asked_for_until_it_is_made(
    tmp_path: Path, number: signal.Signals, capsys: pytest.CaptureFixture[str]
) -> None:
    """Also what the run that was asked had not begun; status, why, next and run agree, and nothing old is put back."""
    process = asked_again(tmp_path, "--rerun-all")
    process.send_signal(number)
    finish(process)
    place = ["--project", str(tmp_path)]
    for words in (["status"], ["why", "a"], ["next"]):
        assert main([*words, *place]) == 0
        said = capsys.readouterr().out
        assert "asked for" in said
        assert "p to date" not in said
        assert "is done" not in said
    (tmp_path / "go").write_text("")
    assert json.loads(finish(start(tmp_path, "--json"))[1])["made"] == ["a", "b"]
    assert ((tmp_path / "began").read_text(), (tmp_path / "began_b").read_text()) == ("x\n" * 3, "x\n" * 2)
    assert finish(start(tmp_path))[1] == "Nothing to do: 2 artifacts are up to date.\n"


def test_a_second_run_is_told_who_is_at_what_was_asked_for_again(tmp_path: Path) -> None:
    """That all of it was made before makes no difference."""
    first = asked_again(tmp_path, "--rerun", "a")
    (tmp_path / "a.txt").write_text("a\n")
    code, _, err = finish(start(tmp_path))
    assert (code, f"pid: {first.pid}" in err) == (75, True)
    (tmp_path / "go").write_text("")
    assert finish(first)[0] == 0


def no_way() -> str:
    """A recipe that fails."""
    raise OSError("no")


def test_what_failed_when_it_was_asked_for_again_is_not_taken_from_before(bench: Bench) -> None:
    """It was to be made anew, and was not."""
    bench.plan("a -> b")
    bench.run()
    bench.makes("a", no_way)
    bench.run(rerun_from="a")
    assert bench.stale() == {"a": "failed", "b": "forced"}
    del bench.recipes["a"]
    assert bench.run().log == ["made a", "made b"]


def test_an_accepted_output_is_no_longer_asked_for(bench: Bench) -> None:
    """Somebody thought better of it."""
    bench.plan("a")
    bench.run()
    bench.makes("a", no_way)
    bench.run(rerun="a")
    bench.edit("a", "mine")
    bench.accept("a")
    assert bench.run().log == []


# Effects elsewhere.


OTHER = "  other: {produces: other.txt, run: 'echo o > {output}'}\n"


def external(root: Path, command: str, other: str = OTHER) -> None:
    (root / "headway.yaml").write_text(
        f"id: p\ngoal: g\nartifacts:\n  mail: {{produces: sent.txt, effects: external, run: '{command}'}}\n{other}"
    )


SEND = "echo x >> sent.log; test -f go || { touch began; sleep 60; }; echo sent > {output}"


def killed_while_sending(root: Path, command: str, other: str = OTHER) -> None:
    external(root, command, other)
    process = start(root, "-j1")
    assert soon((root / "began").exists)
    process.kill()
    finish(process)
    (root / "go").write_text("")


def test_what_has_effects_elsewhere_is_not_silently_done_again(tmp_path: Path) -> None:
    """Nobody knows whether the mail went out: the user decides, and the rest is made."""
    killed_while_sending(tmp_path, SEND)
    code, out, _ = finish(start(tmp_path, "--json"))
    document = json.loads(out)
    assert (code, document["made"], document["decisions"][0]["code"]) == (3, ["other"], "effects_uncertain")
    assert (tmp_path / "sent.log").read_text() == "x\n"
    assert "--rerun mail" in document["decisions"][0]["flags"]
    assert finish(start(tmp_path, "--rerun", "mail"))[0] == 0
    assert (tmp_path / "sent.log").read_text() == "x\nx\n"


def test_status_and_why_ask_about_an_effect_before_the_next_run_does(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The dead run has not given its claim back; what they lead to is what helps."""
    killed_while_sending(tmp_path, SEND, other="")
    where = ["--project", str(tmp_path)]
    assert main(["status", "--json", *where]) == 0
    assert json.loads(capsys.readouterr().out)["next"] == f"headway why mail --project {tmp_path}"
    assert main(["why", "mail", "--json", *where]) == 0
    assert json.loads(capsys.readouterr().out)["decide"]["code"] == "effects_uncertain"
    assert finish(start(tmp_path))[0] == 3


def test_the_users_word_to_do_an_effect_again_is_good_for_once(tmp_path: Path) -> None:
    """Killed again, it is asked about again: nobody knows whether that mail went out either."""
    killed_while_sending(tmp_path, SEND)
    (tmp_path / "began").unlink()
    (tmp_path / "go").unlink()
    process = start(tmp_path, "--rerun", "mail")
    assert soon((tmp_path / "began").exists)
    process.kill()
    finish(process)
    (tmp_path / "go").write_text("")
    assert finish(start(tmp_path))[0] == 3
    assert (tmp_path / "sent.log").read_text() == "x\nx\n"


def test_the_users_word_settles_an_effect_without_files(tmp_path: Path) -> None:
    """Somebody saw that the mail went out: it is accepted, as the question offers, and not sent again."""
    killed_while_sending(tmp_path, SEND.replace(" > {output}", "").replace("echo sent", "true"))
    plan = tmp_path / "headway.yaml"
    plan.write_text(plan.read_text().replace("produces: sent.txt, ", ""))
    flags = json.loads(finish(start(tmp_path, "--json"))[1])["decisions"][0]["flags"]
    assert "headway accept mail" in flags
    assert main(["accept", "mail", "--project", str(tmp_path)]) == 0
    assert finish(start(tmp_path))[0] == 0
    assert (tmp_path / "sent.log").read_text() == "x\n"


def test_what_uses_its_key_is_done_again(tmp_path: Path) -> None:
    """The same attempt has the same key, so whoever gets it twice does it once."""
    killed_while_sending(tmp_path, SEND.replace("echo x", "echo $HEADWAY_IDEMPOTENCY_KEY"))
    assert finish(start(tmp_path))[0] == 0
    first, second = (tmp_path / "sent.log").read_text().split()
    assert first == second


def test_its_key_stays_whatever_it_does_to_its_sources(bench: Bench) -> None:
    """From attempt to attempt, and from run to run: what was sent is sent on by none of them under another key."""
    send = "echo $HEADWAY_IDEMPOTENCY_KEY >> sent.log; rm mails/a.txt; exit 1"
    keys = {"effects": "external", "run": send, "sources": ["mails/*.txt"], "produces": []}
    bench.plan(mail={**keys, "retry": {"attempts": 2, "backoff": 0}})
    for _ in range(2):
        bench.write("mails/a.txt", "hello")
        bench.run()
    first, *others = bench.read("sent.log").split()
    assert others == [first] * 3


def test_what_has_effects_elsewhere_is_never_taken_over(bench: Bench) -> None:
    """It was done for something else then."""
    bench.plan(a={"effects": "external", "contract": "1"})
    bench.run()
    bench.change("a", contract="2")
    bench.run()
    bench.change("a", contract="1")
    assert bench.run().log == ["made a"]


# What a kill leaves, step by step.


def killed(bench: Bench, during: str, *, half: str = "half") -> None:
    """Kill a run while it makes an artifact: the files are as they are at that moment."""
    copy = bench.root.with_name("killed")

    def make(ctx: object) -> str:
        bench.edit(during, half)
        shutil.copytree(bench.root, copy, symlinks=True)
        raise RuntimeError("too late")

    own = bench.recipes.get(during)
    bench.makes(during, make)
    bench.run()
    shutil.rmtree(bench.root)
    copy.rename(bench.root)
    bench.recipes.pop(during)
    if own is not None:
        bench.makes(during, own)


def test_after_a_kill_the_next_run_goes_on(bench: Bench) -> None:
    """What the attempt left is replaced without a question, after it was kept."""
    bench.plan("a -> b -> c")
    killed(bench, "b")
    assert bench.stale() == {"b": "interrupted", "c": "never_made"}
    assert bench.run().log == ["made b", "made c"]
    assert bench.blob(bench.events("edit_preserved")[0].event.outputs[0].digest) == b"half"  # type: ignore[attr-defined]  # its type was asked for


def test_after_a_kill_the_plan_can_be_changed(bench: Bench) -> None:
    """The claims of a scheduler that died hold up nobody."""
    bench.plan("a -> b")
    killed(bench, "a")
    bench.change("a", version="2")
    assert bench.run().log == ["made a", "made b"]


def test_a_question_is_not_forgotten_by_a_kill(bench: Bench) -> None:
    """An edit that was held when the run was killed is still an edit."""
    bench.plan("a; b")
    bench.run()
    bench.edit("b", "mine")
    bench.change("a", version="2")
    killed(bench, "a")
    assert bench.run().did == {"made a", "held b"}
    assert bench.out("b") == "mine"


def test_what_was_completed_before_a_kill_is_not_in_doubt(bench: Bench) -> None:
    """Somebody who edits it afterwards is asked."""
    bench.plan("a -> b")
    killed(bench, "b")
    bench.edit("a", "mine")
    assert bench.run().log == ["held a"]


def test_a_part_run_after_a_power_cut_does_not_forget_the_rest(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    """What the dead run had announced may hold its bytes, however much later it is looked at: that it had begun may be
    lost."""
    bench.plan("a; b; c")
    killed(bench, "a")
    bench.edit("b", "torn")
    monkeypatch.setattr("headway.disk.boot_id", lambda: "another")
    assert bench.run("c").log == ["made c"]
    assert bench.run().log == ["made a", "made b"]


def test_what_a_killed_run_had_only_announced_holds_nothing_of_its_own(bench: Bench) -> None:
    """What had begun is on record, whoever was killed: bytes elsewhere are somebody's."""
    bench.plan("a; b; c")
    killed(bench, "a")
    bench.edit("b", "mine")
    assert bench.run("c").log == ["made c"]
    assert bench.run().log == ["held b", "made a"]
    assert bench.out("b") == "mine"


def test_a_run_that_was_killed_at_its_very_end_is_closed_by_the_next(bench: Bench) -> None:
    """With nothing to make, somebody still has to say that it is over."""
    bench.plan("a")
    bench.run()
    ledger = bench.path(".headway/plans/plan/ledger.jsonl")
    lines = ledger.read_bytes().splitlines(keepends=True)
    cut = next(i for i, line in enumerate(lines) if b'"run_completed"' in line)
    ledger.write_bytes(b"".join(lines[:cut]))
    for name in ("head", "plan.json", "plan.md"):
        bench.path(f".headway/plans/plan/{name}").unlink()
    shutil.rmtree(bench.path(".headway/plans/plan/export"))
    assert bench.status()["status"] == "in_progress"
    assert bench.run().log == []
    assert bench.status()["status"] == "complete"
    size = ledger.stat().st_size
    bench.run()
    assert ledger.stat().st_size == size


def test_what_was_about_to_be_written_is_not_written_after_a_second_ctrl_c(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    """When the run is over, nothing more comes to stand anywhere: somebody may write there from then on."""
    monkeypatch.setattr(workers, "PROCESSORS", 2)
    for limit in ("LIGHT_MS", "LIGHT_LATE"):
        monkeypatch.setattr(workers, limit, 10_000)
    real, late, stopping = bulk.write, threading.Event(), list[str]()

    def write(orders: list[bulk.Order]) -> list[bulk.Answer]:
        if late.is_set():
            time.sleep(0.3)
        return real(orders)

    def make(ctx: Context) -> str:
        if int(ctx.id[1:]) == 300:
            late.set()
        return ctx.id

    def stop() -> str:
        if late.is_set():
            stopping.append("interrupted")
        if len(stopping) > 2:
            raise KeyboardInterrupt
        return "interrupted" if stopping else ""

    monkeypatch.setattr(bulk, "write", write)
    names = [f"n{n}" for n in range(460)]
    bench.plan(" ".join(names))
    for name in names:
        bench.makes(name, make)
    with pytest.raises(KeyboardInterrupt):
        bench.run(stop=stop)
    there = {path.name for path in bench.path("out").iterdir()}
    time.sleep(1.0)
    assert {path.name for path in bench.path("out").iterdir()} == there
    monkeypatch.setattr(bulk, "write", real)
    late.clear()
    stopping.clear()
    assert bench.run().result.ok


def test_what_nobody_can_bring_any_more_is_not_waited_for(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    """Ctrl-C may strike while outcomes are in hand that are not yet on record."""
    monkeypatch.setattr(run, "DRAIN", 60.0)
    real, calls = run.Run._take, list[int]()

    def take(own: run.Run, outcomes: list[Outcome]) -> None:
        calls.append(1)
        if len(calls) == 1:
            raise KeyboardInterrupt
        real(own, outcomes)

    monkeypatch.setattr(run.Run, "_take", take)
    bench.plan("a b")
    began = time.monotonic()
    with pytest.raises(KeyboardInterrupt):
        bench.run()
    assert time.monotonic() - began < 30
    monkeypatch.setattr(run.Run, "_take", real)
    assert bench.run().result.ok


def test_what_is_stopped_or_never_begun_is_told_to_be_over(bench: Bench) -> None:
    """Whoever shows what runs shows nothing else: of many that were handed over, one is at work."""
    halted, over = list[int](), threading.Event()

    class Hears(Log):
        at_work: set[str] = set()

        def started(self, artifact_id: str, reason: Reason) -> None:
            self.at_work.add(artifact_id)

        def released(self, artifact_id: str) -> None:
            self.at_work.discard(artifact_id)
            if self.at_work == {"slow"}:
                over.set()

        def finished(self, artifact_id: str, *rest: Any) -> None:
            self.at_work.discard(artifact_id)

    def slow() -> str:
        halted.append(1)
        assert over.wait(30), hears.at_work
        return "slow"

    hears = Hears()
    bench.plan("slow", stuck={"run": "sleep 60"})
    bench.makes("slow", slow)
    stop = lambda: "interrupted" if halted else ""  # noqa: E731  # as short as what it says
    functions = bench.functions("plan")
    result = bench.session.run("plan", Options(jobs=2), reporter=hears, functions=functions, stop=stop)
    assert (result.made, hears.at_work) == (["slow"], set())
