# ruff: noqa: T201  # this page is about print
"""What functions print: it belongs to their attempt, and to nobody's screen."""

from __future__ import annotations

import asyncio
import contextlib
import io
import json
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from headway import Plan
from headway.engine.recipes.prints import kept_prints
from headway.engine.result import Options
from tests.bench import Bench, Log


def test_what_a_function_prints_is_kept_with_its_attempt(bench: Bench, capsys: pytest.CaptureFixture[str]) -> None:
    """Both streams, word by word, and nothing of it on the screen."""

    def talk() -> str:
        print("to stdout")
        print("to stderr", file=sys.stderr)
        return "done"

    bench.plan("a")
    bench.makes("a", talk)
    bench.run()
    done = bench.state().completed["a"]
    assert (bench.blob(done.stdout), bench.blob(done.stderr)) == (b"to stdout\n", b"to stderr\n")
    assert capsys.readouterr() == ("", "")


def test_functions_that_run_side_by_side_keep_their_words_apart(bench: Bench) -> None:
    """Each attempt has its own, whoever else prints at the same moment."""
    meet = threading.Barrier(2)

    def talk(name: str) -> str:
        for _ in range(20):
            meet.wait(10)
            print(name)
        return name

    bench.plan("a b")
    bench.makes("a", lambda: talk("a"))
    bench.makes("b", lambda: talk("b"))
    bench.run(jobs=2)
    done = bench.state().completed
    assert bench.blob(done["a"].stdout) == b"a\n" * 20
    assert bench.blob(done["b"].stdout) == b"b\n" * 20


def test_an_async_function_in_another_loop_keeps_its_words(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Words follow the function into the loop that runs it; others' words in that loop are not taken."""
    plan = Plan("talk", id="talk", project=tmp_path)

    async def talk() -> str:
        await asyncio.sleep(0)
        print("inside")
        return "text"

    plan.add("a", make=talk, version="1")

    async def main() -> None:
        running = asyncio.ensure_future(plan.arun())
        await asyncio.sleep(0)
        print("outside")
        await running

    asyncio.run(main())
    assert capsys.readouterr().out == "outside\n"
    bench = Bench(tmp_path)
    assert bench.blob(bench.state("talk").completed["a"].stdout) == b"inside\n"


def test_a_function_that_closes_its_streams_closes_nobody_elses(
    bench: Bench, capsys: pytest.CaptureFixture[str]
) -> None:
    """As programs do that someone has made a function of."""

    def close() -> str:
        print("words")
        sys.stdout.close()
        sys.stderr.close()
        return "done"

    bench.plan("a")
    bench.makes("a", close)
    assert bench.run().log == ["made a"]
    assert bench.blob(bench.state().completed["a"].stdout) == b"words\n"
    print("still there")
    assert capsys.readouterr().out == "still there\n"


def test_a_function_with_a_timeout_keeps_its_words(bench: Bench) -> None:
    """Its own thread changes nothing."""
    bench.plan(a={"timeout": 30})
    bench.makes("a", lambda: str(print("from its thread")))
    bench.run()
    assert bench.blob(bench.state().completed["a"].stdout) == b"from its thread\n"


def test_the_words_of_a_failed_function_come_before_its_traceback(bench: Bench) -> None:
    """Whoever looks for the cause sees both."""

    def fail() -> str:
        print("about to fail", file=sys.stderr)
        raise ValueError("no")

    bench.plan("a")
    bench.makes("a", fail)
    bench.run()
    said = bench.blob(bench.state().failed["a"].stderr)
    assert said.startswith(b"about to fail\nTraceback")


def test_the_streams_are_as_they_were_when_all_is_done(bench: Bench) -> None:
    """Nothing of ours stays behind in the caller's process."""
    before = sys.stdout, sys.stderr
    bench.plan("a b")
    bench.run(jobs=2)
    assert (sys.stdout, sys.stderr) == before


def test_a_stream_that_somebody_puts_before_ours_changes_nothing(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    """A view that draws redirects what is printed; a function's words are still its attempt's."""
    shown = io.StringIO()

    class Redirecting(Log):
        def begun(self, *_: object) -> None:
            monkeypatch.setattr(sys, "stdout", shown)

    bench.plan("a")
    bench.makes("a", lambda: str(print("inside")))
    session = bench.session
    session.run("plan", Options(), reporter=Redirecting(), functions=bench.functions())
    session.store.blobs.close()
    monkeypatch.undo()
    assert shown.getvalue() == ""
    assert bench.blob(bench.state().completed["a"].stdout) == b"inside\n"


def test_what_a_function_redirects_stays_where_it_redirects_it(bench: Bench) -> None:
    """Also while others begin beside it, whose words are still their own."""
    redirected, begun = threading.Event(), threading.Event()
    caught = io.StringIO()

    def redirects() -> str:
        with contextlib.redirect_stdout(caught):
            redirected.set()
            begun.wait(10)
            print("caught")
        print("kept")
        return "a"

    def beside() -> str:
        print("beside")
        begun.set()
        return "b"

    bench.plan("a b")
    bench.makes("a", redirects)
    bench.makes("b", lambda: str(redirected.wait(10)) and kept_prints(None, beside)[1].bytes("stdout"))
    bench.run(jobs=2)
    assert caught.getvalue() == "caught\n"
    assert bench.blob(bench.state().completed["a"].stdout) == b"kept\n"
    assert bench.read("out/b.txt") == "beside\n"


def test_what_is_printed_can_be_heard_at_once() -> None:
    """By whoever shows the last line of what runs."""
    heard: list[bytes] = []
    _, prints = kept_prints(heard.append, print, "one")
    assert b"".join(heard) == prints.bytes("stdout") == b"one\n"


def test_nothing_pollutes_the_json_of_a_run(tmp_path: Path) -> None:
    """print, a thread's print, os.write and a child process: stdout holds one JSON document."""
    (tmp_path / "tasks.py").write_text(
        "import os, subprocess, threading\n"
        "def noisy():\n"
        "    print('printed')\n"
        "    thread = threading.Thread(target=print, args=('from a thread',))\n"
        "    thread.start(); thread.join()\n"
        "    os.write(1, b'past Python\\n')\n"
        "    subprocess.run(['echo', 'by a child'])\n"
        "    return 'x'\n"
    )
    (tmp_path / "headway.yaml").write_text("id: p\ngoal: g\nartifacts:\n  a: {make: 'tasks:noisy', produces: a.txt}\n")
    command = [str(Path(sys.executable).with_name("headway")), "run", "--json"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False, timeout=60)
    assert json.loads(done.stdout)["made"] == ["a"]
    assert "by a child" in done.stderr


def test_a_plan_that_prints_while_it_is_built_pollutes_no_json(tmp_path: Path) -> None:
    """A Python plan file may say what it likes: every verb's document is alone on stdout."""
    (tmp_path / "headway.py").write_text(
        "from headway import Plan\nprint('building')\nplan = Plan('g', id='p')\nplan.add('a', run='echo x')\n"
    )
    for words in (["run", "--json"], ["status", "--json"]):
        command = [str(Path(sys.executable).with_name("headway")), *words]
        done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False, timeout=60)
        assert json.loads(done.stdout)["plan_id"] == "p"
        assert "building" in done.stderr


def test_what_a_function_redirects_is_its_own(tmp_path: Path) -> None:
    """Lines of the run are not among it, and are not lost with it."""
    (tmp_path / "tasks.py").write_text(
        "import contextlib, io, sys, time\n\n\ndef make(ctx):\n"
        "    with contextlib.redirect_stdout(io.StringIO()) as said:\n        time.sleep(0.01)\n"
        "    if ctx.id == 'n39':\n        sys.stdout = None\n    return said.getvalue() + ctx.id\n"
    )
    artifacts = {f"n{n}": {"make": "tasks.py:make", "produces": f"out/{n}.txt"} for n in range(40)}
    (tmp_path / "headway.json").write_bytes(json.dumps({"id": "p", "goal": "g", "artifacts": artifacts}).encode())
    words = [sys.executable, "-m", "headway", "run", "-j", "4"]
    done = subprocess.run(words, cwd=tmp_path, check=False, capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stderr) == (0, "")
    assert len([line for line in done.stdout.splitlines() if line.startswith("made")]) == 40
    assert {(tmp_path / f"out/{n}.txt").read_text() for n in range(40)} == {f"n{n}" for n in range(40)}
