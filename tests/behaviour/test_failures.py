"""What goes wrong: one artifact fails, what is behind it waits, everything else goes on, and nothing is lost."""

from __future__ import annotations

import errno
import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import msgspec
import pytest

from headway import bulk
from headway.core.plan import Profile
from headway.disk import RealDisk
from headway.engine import row, workers
from headway.engine.making import Workshop
from headway.engine.recipes import function
from headway.engine.recipes.base import QuotaExhausted
from headway.engine.recipes.function import Context
from headway.errors import BugError, StorageFailed
from headway.files import observe, outputs
from tests.bench import Bench, Hasty
from tests.processes import processes, soon, zombies


def gone(mark: str) -> bool:
    """Whether no process with this mark is left, soon."""
    return soon(lambda: not processes(mark))


# One fails.


def test_a_failure_blocks_what_is_behind_it_and_nothing_else(bench: Bench) -> None:
    """Other branches are made; the run ends with exit 1 and names both."""
    bench.plan("a -> b -> c; d -> e", a={"run": "echo no >&2; exit 7"})
    ran = bench.run()
    assert ran.did == {"failed a", "made d", "made e"}
    assert (ran.code, ran.result.status) == (1, "failed")
    assert (ran.result.failed, ran.result.blocked) == ({"a": "exit code 7: no"}, {"b": "a", "c": "a"})
    document = bench.status()["artifacts"]
    assert [document[a]["status"] for a in "abcde"] == ["failed", "blocked", "blocked", "complete", "complete"]


def test_a_success_clears_the_failure(bench: Bench) -> None:
    """The next run goes on from there."""
    bench.plan("a -> b", a={"run": "test -f go && echo a > {output}"})
    bench.run()
    bench.write("go", "")
    assert bench.run().log == ["made a", "made b"]
    assert (bench.state().failed, bench.status()["status"]) == ({}, "complete")


def test_a_failed_artifact_that_once_succeeded_the_same_way_is_taken_over(bench: Bench) -> None:
    """A change that failed, taken back, costs nothing."""
    bench.plan("a -> b", a={"run": "echo a > {output}"})
    bench.run()
    bench.change("a", run="echo b > {output}; exit 1")
    assert bench.run().log == ["failed a"]
    bench.change("a", run="echo a > {output}")
    assert bench.stale() == {"a": "failed", "b": "requirement_stale"}
    assert bench.run().log == ["reused a", "kept b"]
    assert bench.out("a") == "a\n"


def test_it_is_tried_as_often_as_it_says(bench: Bench) -> None:
    """Retries end with the first success; what counts is on record."""
    bench.plan(a={"run": "echo x >> tries; test $(wc -l < tries) = 3 && echo a > {output}"})
    bench.settings(retry={"attempts": 3, "backoff": 0.001})
    assert bench.run().log == ["made a"]
    assert bench.read("tries") == "x\nx\nx\n"


def test_a_run_that_is_stopped_between_two_tries_begins_no_other(bench: Bench) -> None:
    """One try that failed says nothing against what was to be tried again: it is told, and that is all."""
    bench.plan("a -> b", a={"retry": {"attempts": 3, "backoff": 60}})

    def fail() -> str:
        raise ConnectionError("the server did not answer")

    bench.makes("a", fail)
    ran = bench.run(stop=lambda: "interrupted" if bench.calls else "")
    assert (bench.calls, ran.result.failed, ran.result.blocked, ran.code) == (["a"], {}, {}, 130)
    (released,) = bench.events("artifact_released")
    assert "the server did not answer" in getattr(released.event, "reason", "")
    assert bench.status()["artifacts"]["a"]["status"] == "pending"
    bench.makes("a", "a")
    assert bench.run().log == ["made a", "made b"]


def test_when_all_tries_fail_the_last_error_counts(bench: Bench) -> None:
    """And how many there were."""
    bench.plan(a={"run": "echo x >> tries; wc -l < tries >&2; exit 1", "retry": {"attempts": 2, "backoff": 0.001}})
    ran = bench.run()
    assert ran.result.failed == {"a": "exit code 1: 2"}
    assert bench.state().failed["a"].attempts == 2


def test_a_command_that_hangs_is_ended_with_all_it_started(bench: Bench) -> None:
    """A timeout kills the whole process group, children in the background included."""
    mark = f"7{os.getpid()}.25"
    bench.plan(a={"run": f"sleep {mark} & sleep {mark}; wait", "timeout": 0.3})
    ran = bench.run()
    assert ran.result.failed == {"a": "No end after 0.3 s"}
    assert bench.state().failed["a"].code == "timeout"
    assert gone(mark)
    assert zombies() == []


def test_a_command_that_ignores_being_told_to_end_is_killed(bench: Bench) -> None:
    """First it is asked, then it is not."""
    mark = f"7{os.getpid()}.26"
    bench.plan(a={"run": f"trap '' TERM; sleep {mark}; sleep {mark}", "timeout": 0.2})
    bench.run()
    assert gone(mark)


def test_a_command_that_leaves_children_behind_does_not_hang_the_run(bench: Bench) -> None:
    """What it left in the background, holding its output open, is ended."""
    mark = f"7{os.getpid()}.27"
    bench.plan(a={"run": f"sleep {mark} & echo a > {{output}}"})
    assert bench.run().log == ["made a"]
    assert gone(mark)


def test_a_function_that_does_not_return_is_given_up(bench: Bench) -> None:
    """Nothing can kill its thread, but nobody waits for it."""
    release: list[bool] = []

    def hang() -> str:
        while not release:
            time.sleep(0.01)
        return "late"

    bench.plan("a -> b; c", a={"timeout": 0.2})
    bench.makes("a", hang)
    ran = bench.run()
    release.append(True)
    assert ran.did == {"failed a", "made c"}
    assert ran.result.failed == {"a": "No end after 0.2 s"}


def test_an_async_function_that_does_not_return_is_cancelled(bench: Bench) -> None:
    """It learns of it."""
    import asyncio

    learned: list[str] = []

    async def hang(ctx: Context) -> str:
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            learned.append("cancelled")
            raise
        return ""

    bench.plan(a={"timeout": 0.2})
    bench.makes("a", hang)
    assert bench.run().result.failed == {"a": "No end after 0.2 s"}
    assert learned == ["cancelled"]


def test_a_function_whose_time_is_up_writes_nothing_into_the_next_attempt(bench: Bench) -> None:
    """A thread cannot be killed, but it takes no further step in Python."""
    ends: list[threading.Event] = []

    def make(ctx: Context) -> None:
        mine = threading.Event()
        ends.append(mine)
        try:
            if len(ends) == 1:
                time.sleep(1.8)  # longer than it may
            with ctx.output.open("a") as file:
                file.write(f"attempt {len(ends)}\n")
            if len(ends) > 1:
                ends[0].wait(10)
        finally:
            mine.set()

    bench.plan(a={"timeout": 1.5, "retry": {"attempts": 2, "backoff": 0}})
    bench.makes("a", make)
    assert bench.run().log == ["made a"]
    assert ends[0].wait(10)
    assert bench.out("a") == "attempt 2\n"


def test_a_timeout_of_the_functions_own_is_told_apart(bench: Bench) -> None:
    """It is an error like any other."""

    def give_up() -> str:
        raise TimeoutError("the server did not answer")

    bench.plan(a={"timeout": 60})
    bench.makes("a", give_up)
    assert bench.run().result.failed["a"].startswith("TimeoutError: the server did not answer")


def test_verify_has_the_last_word(bench: Bench) -> None:
    """What it refuses is not complete; what it said is kept."""
    bench.plan("a -> b", a={"run": "echo bad > {output}", "verify": "echo checked; grep -q good {output}"})
    ran = bench.run()
    assert ran.result.failed == {"a": "verify (echo checked; grep -q good {output}): exit code 1"}
    failure = bench.state().failed["a"]
    assert (failure.code, bench.blob(failure.stdout)) == ("verify_failed", b"checked\n")
    bench.change("a", run="echo good > {output}")
    assert bench.run().result.made == ["a", "b"]
    assert bench.state().completed["a"].verified


@pytest.mark.parametrize("produces", ["out/a.txt", "out/"])
def test_a_verify_that_takes_the_output_away_fails_it(bench: Bench, produces: str) -> None:
    """What is not there was not made."""
    bench.plan(a={"run": "echo a > out/a.txt", "produces": produces, "verify": "rm out/a.txt"})
    ran = bench.run()
    assert ran.result.failed == {"a": f"Its verify took {produces} away"}


@pytest.mark.parametrize(
    ("said", "shown"),
    [
        ("wc: unrecognized option\nTry 'wc --help'", "exit code 1: wc: unrecognized option … Try 'wc --help'"),
        ("only this", "exit code 1: only this"),
        ("Traceback (most recent call last):\n  File x\nValueError: no", "exit code 1: ValueError: no"),
        ("", "exit code 1"),
    ],
)
def test_a_failed_command_is_told_by_its_first_and_its_last_line(bench: Bench, said: str, shown: str) -> None:
    """Many tools say what is wrong first, and how to ask for help last; Python the other way round."""
    bench.write("said.txt", said)
    bench.plan("a", a={"run": "cat said.txt >&2; exit 1"})
    assert bench.run().result.failed == {"a": shown}


def test_a_failed_verify_names_its_command(bench: Bench) -> None:
    """In a line of the run; all of it is in `why`."""
    bench.plan("a; b", a={"verify": "grep -q good {output}"}, b={"verify": f"true {'x' * 99}; false"})
    failed = bench.run().result.failed
    assert failed["a"] == "verify (grep -q good {output}): exit code 1"
    assert failed["b"] == f"verify (true {'x' * 55}…): exit code 1"


# Stopping early.


def test_fail_fast_stops_at_the_first_failure(bench: Bench) -> None:
    """What has not begun is not begun."""
    bench.plan("a; b; c", a={"run": "exit 1"})
    ran = bench.run(fail_fast=True)
    assert (ran.log, ran.code) == (["failed a"], 1)


def test_five_equal_errors_in_a_row_stop_new_starts(bench: Bench) -> None:
    """What strikes every artifact is not tried on every artifact."""
    keys: dict[str, Any] = {f"n{i}": {"run": "echo no key >&2; exit 1"} for i in range(9)}
    bench.plan(**keys)
    ran = bench.run()
    assert ran.log == [f"failed n{i}" for i in range(5)]
    assert (ran.code, ran.result.status) == (1, "failed")
    assert ran.result.paused is not None
    assert ran.result.paused.code == "same_error"


@pytest.mark.parametrize(("code", "many"), [(errno.ENOSPC, 5), (errno.EMFILE, 5), (errno.EACCES, 9)])
def test_a_disk_that_is_full_stops_new_starts_whichever_file_it_is(bench: Bench, code: int, many: int) -> None:
    """What the system says of itself strikes all; what it says of a file, that file."""

    def make(ctx: Context) -> str:
        raise OSError(code, os.strerror(code), f"{ctx.id}.txt")

    bench.plan(" ".join(f"n{i}" for i in range(9)))
    for i in range(9):
        bench.makes(f"n{i}", make)
    assert bench.run().log == [f"failed n{i}" for i in range(many)]


def test_different_errors_stop_nothing(bench: Bench) -> None:
    """Keep going is the default."""
    keys: dict[str, Any] = {f"n{i}": {"run": f"echo {i} >&2; exit 1"} for i in range(7)}
    bench.plan(**keys)
    assert len(bench.run().result.failed) == 7


def test_a_missing_command_stops_what_would_need_it_too(bench: Bench) -> None:
    """If all that is left begins with the same word, there is no point in trying."""
    keys: dict[str, Any] = {f"n{i}": {"run": "no-such-command > {output}"} for i in range(4)}
    bench.plan(**keys)
    ran = bench.run()
    assert ran.log == ["failed n0"]
    assert ran.result.failed["n0"].startswith("exit code 127:")


def test_a_missing_command_stops_nothing_that_does_not_need_it(bench: Bench) -> None:
    """Other artifacts are made."""
    bench.plan("a; b; c", a={"run": "no-such-command > {output}"})
    assert bench.run().did == {"failed a", "made b", "made c"}


@pytest.mark.parametrize(("left", "told"), [("", []), ("half of it", ["a"])])
def test_of_what_an_attempt_left_only_bytes_are_worth_a_word(bench: Bench, left: str, told: list[str]) -> None:
    """A shell makes an empty file before its command says that it cannot: nobody wants that back."""
    bench.plan(a={"run": f"printf '{left}' > {{output}}; [ -e ready ] || exit 75; echo done > {{output}}"})
    assert bench.run().result.status == "paused"
    bench.write("ready", "")
    assert [kept.artifact for kept in bench.run().result.preserved] == told


def test_an_exhausted_quota_pauses(bench: Bench) -> None:
    """Nothing has failed; the run says when to come back."""

    def exhausted() -> str:
        raise QuotaExhausted("come back later", retry_after=60)

    bench.plan("a; b")
    bench.makes("a", exhausted)
    ran = bench.run()
    assert (ran.code, ran.result.failed, ran.result.status) == (75, {}, "paused")
    assert ran.result.paused is not None
    assert ran.result.paused.until
    bench.makes("a", "a")
    assert bench.run().did >= {"made a"}


def test_an_error_wins_over_a_pause(bench: Bench) -> None:
    """When several things happen, the first of 130, 3, 1, 75 is the exit code, and the status follows it."""
    bench.plan("a; b; c", b={"by_hand": True}, a={"run": "exit 1"})
    assert (bench.run().code, bench.run().result.status) == (1, "failed")
    bench.edit("c", "mine")
    assert (bench.run().code, bench.run().result.status) == (3, "refused")


# Bad input.


def test_a_command_that_writes_nothing_is_told_so(bench: Bench) -> None:
    """Ending well is not enough."""
    bench.plan("a -> b", a={"run": "true"})
    assert bench.run().result.failed == {"a": "It did not write out/a.txt"}


def test_a_command_that_writes_elsewhere_is_told_so(bench: Bench) -> None:
    """And what it wrote there stays."""
    bench.plan(a={"run": "mkdir -p elsewhere; echo a > elsewhere/a.txt"})
    assert bench.run().result.failed == {"a": "It did not write out/a.txt"}
    assert bench.read("elsewhere/a.txt") == "a\n"


def test_a_command_that_prints_without_end_is_bounded(bench: Bench) -> None:
    """The beginning and the end of what it prints are kept, however much that is."""
    bench.plan(a={"run": "yes $(printf '%01000d' 0) | head -c 20000000; echo end; echo a > {output}"})
    assert bench.run().log == ["made a"]
    kept = bench.blob(bench.state().completed["a"].stdout)
    assert len(kept) < 200_000
    assert kept.endswith(b"end\n")
    assert b"bytes left out" in kept


def test_what_a_command_prints_is_kept(bench: Bench) -> None:
    """With the completion, or with the failure."""
    bench.plan("a; b", a={"run": "echo out; echo err >&2; echo a > {output}"}, b={"run": "echo out; exit 1"})
    bench.run()
    done, failure = bench.state().completed["a"], bench.state().failed["b"]
    assert (bench.blob(done.stdout), bench.blob(done.stderr)) == (b"out\n", b"err\n")
    assert bench.blob(failure.stdout) == b"out\n"


@pytest.mark.parametrize("error", [SystemExit(3), KeyboardInterrupt("k"), GeneratorExit("g"), BaseException("b")])
def test_whatever_a_function_raises_is_its_failure(bench: Bench, error: BaseException) -> None:
    """Not even what ends programs ends the run; the traceback is kept."""

    def make() -> str:
        raise error

    bench.plan("a -> b; c")
    bench.makes("a", make)
    ran = bench.run()
    assert ran.did == {"failed a", "made c"}
    assert ran.result.failed["a"].startswith(f"{type(error).__name__}: {error} (line ")
    assert b"Traceback" in bench.blob(bench.state().failed["a"].stderr)


def test_an_error_that_cannot_be_told_is_its_failure_all_the_same(bench: Bench) -> None:
    """By its name."""

    class Speechless(Exception):
        def __str__(self) -> str:
            raise ValueError

    def fail() -> None:
        raise Speechless

    bench.plan("a")
    bench.makes("a", fail)
    assert bench.run().result.failed["a"].startswith("Speechless: (no words: ValueError)")


def test_a_function_that_ends_the_process_loses_nothing_else(tmp_path: Path) -> None:
    """What was made before stays made, and the next run goes on."""
    (tmp_path / "tasks.py").write_text(
        "import os\n"
        "def good(): return 'good'\n"
        "def bad():\n"
        "    if not os.path.exists('go'): os._exit(9)\n"
        "    return 'well'\n"
    )
    (tmp_path / "headway.yaml").write_text(
        "id: p\ngoal: g\nartifacts:\n"
        "  a: {make: 'tasks:good', produces: a.txt}\n"
        "  b: {make: 'tasks:bad', produces: b.txt, requires: [a]}\n"
    )
    command = [sys.executable, "-m", "headway", "run", "--json"]
    assert subprocess.run(command, cwd=tmp_path, capture_output=True, check=False).returncode == 9
    (tmp_path / "go").write_text("")
    again = subprocess.run(command, cwd=tmp_path, capture_output=True, check=False, text=True)
    assert (again.returncode, '"made":["b"]' in again.stdout.replace(" ", "").replace("\n", "")) == (0, True)


def test_an_output_that_is_a_link_out_of_the_project_is_refused(bench: Bench, tmp_path: Path) -> None:
    """And what it leads to is not touched; the link is no edit afterwards."""
    (tmp_path / "outside.txt").write_text("theirs")
    bench.plan(a={"run": f"ln -sf {tmp_path}/outside.txt {{output}}"})
    ran = bench.run()
    assert ran.result.failed["a"].startswith("out/a.txt is a link out of the project")
    assert (tmp_path / "outside.txt").read_text() == "theirs"
    bench.change("a", run="rm -f {output}; echo a > {output}")
    assert bench.run().log == ["made a"]


@pytest.mark.parametrize(("produces", "pipe"), [("out/a", "out/a"), ("out/a/", "out/a/deep/pipe")])
def test_an_output_that_is_a_pipe_is_refused(bench: Bench, produces: str, pipe: str) -> None:
    """It has no bytes to keep, and nobody waits for what it may say."""
    bench.plan(a={"run": f"mkdir -p {os.path.dirname(pipe)}; mkfifo {pipe}", "produces": produces})
    assert bench.run().result.failed["a"].startswith(f"{pipe} is neither a file nor a folder")
    bench.change("a", run=f"mkdir -p {os.path.dirname(pipe)}; echo a > {pipe}")
    assert bench.run().log == ["made a"]
    assert bench.run().log == []


def test_a_command_that_is_longer_than_the_system_takes_is_run(bench: Bench) -> None:
    """Thousands of sources are named in one."""
    names = [f"in/{'x' * 200}{number:04}.txt" for number in range(1000)]
    for name in names:
        bench.write(name, ".")
    bench.plan(a={"sources": ["in/*.txt"], "run": "cat {sources} > {output}"})
    assert bench.run().log == ["made a"]
    assert bench.read("out/a.txt") == "." * len(names)


def test_an_output_below_a_link_out_of_the_project_is_refused(bench: Bench, tmp_path: Path) -> None:
    """Nothing is written there."""
    (tmp_path / "outside").mkdir()
    bench.path("out").symlink_to(tmp_path / "outside")
    bench.plan("a")
    assert bench.run().result.failed["a"].startswith("out/a.txt is outside the project")
    assert list((tmp_path / "outside").iterdir()) == []


def test_a_folder_below_a_link_out_of_the_project_fails_its_artifact_alone(bench: Bench, tmp_path: Path) -> None:
    """It cannot even be emptied; the others are made."""
    (tmp_path / "outside").mkdir()
    bench.plan("a; b", a={"produces": ["link/t/"]})
    bench.path("link").symlink_to(tmp_path / "outside")
    ran = bench.run()
    assert ran.result.failed["a"].startswith("link/t/ is outside the project")
    assert ran.result.made == ["b"]
    assert list((tmp_path / "outside").iterdir()) == []


def test_nothing_below_a_link_out_of_the_project_is_taken_away(bench: Bench, tmp_path: Path) -> None:
    """What stands there is somebody else's, whatever is said about edits and whatever is to be made."""
    bench.plan("a; b")
    bench.run()
    bench.path("out").rename(tmp_path / "outside")
    bench.path("out").symlink_to(tmp_path / "outside")
    bench.edit("a", "theirs")
    bench.delete("out/b.txt")
    ran = bench.run(on_edit="discard")
    assert {name: error.partition(";")[0] for name, error in ran.result.failed.items()} == {
        "a": "out/a.txt is outside the project",
        "b": "out/b.txt is outside the project",
    }
    assert {path.name: path.read_text() for path in (tmp_path / "outside").iterdir()} == {"a.txt": "theirs"}


def test_what_cannot_be_put_back_fails_alone(bench: Bench) -> None:
    """The others are made, and once there is room for it again it is put back; nothing runs for it."""
    bench.plan("a -> b; c", a={"produces": ["deep/a.txt"]})
    bench.run()
    bench.delete("deep")
    bench.write("deep", "a file where a folder was")
    bench.change("c", version="2")
    ran = bench.run()
    assert (ran.did, ran.code) == ({"failed a", "made c"}, 1)
    assert ran.result.failed["a"].startswith("deep is no folder")
    assert bench.read("deep") == "a file where a folder was"
    bench.delete("deep")
    assert bench.run().log == ["restored a"]


def test_what_cannot_be_cleared_away_fails_its_artifact_alone(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    """A folder that may not be emptied, say."""
    bench.plan("a; b", a={"run": "echo a > {output}a", "produces": ["t/"]})
    bench.run()
    bench.change("a", run="echo b > {output}b")
    bench.change("b", version="2")

    def refuse(path: str) -> None:
        raise PermissionError(errno.EPERM, "Operation not permitted", path)

    monkeypatch.setattr(shutil, "rmtree", refuse)
    ran = bench.run()
    assert ran.did == {"failed a", "made b"}
    assert ran.result.failed["a"].startswith("Operation not permitted: ")


def test_a_source_that_cannot_be_read_fails_its_artifact(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    """By name; the rest is made."""
    from headway.files.observe import Observer, Seen

    whole = Observer.read

    def read(self: Observer, path: str) -> Seen:
        if path == "secret.txt":
            raise PermissionError(errno.EACCES, "Permission denied")
        return whole(self, path)

    bench.write("secret.txt", "x")
    bench.plan("a -> b; c", a={"sources": ["secret.txt"]})
    monkeypatch.setattr(Observer, "read", read)
    ran = bench.run()
    assert ran.did == {"failed a", "made c"}
    assert ran.result.failed == {"a": "Its source secret.txt cannot be read (Permission denied)"}


def test_a_source_that_is_a_pipe_fails_its_artifact(bench: Bench) -> None:
    """Nobody waits for what it may say: neither Headway nor the recipe."""
    os.mkfifo(bench.path("pipe"))
    bench.plan(a={"sources": ["pipe"], "run": "cat pipe > {output}"})
    assert bench.run().result.failed == {"a": "Its source pipe cannot be read (it is no file)"}


@pytest.mark.parametrize(
    ("source", "error"),
    [("in/*.txt", "No file matches its source in/*.txt"), ("in/x.txt", "Its source in/x.txt does not exist")],
)
def test_a_source_that_is_not_there_fails_its_artifact(bench: Bench, source: str, error: str) -> None:
    """A pattern that matches nothing, or a path at which nothing is."""
    bench.plan("a -> b; c", a={"sources": [source]})
    ran = bench.run()
    assert (ran.did, ran.result.failed) == ({"failed a", "made c"}, {"a": error})
    bench.write("in/x.txt", "1")
    assert bench.run().log == ["made a", "made b"]


@pytest.mark.parametrize(
    "name", ["a b", "ch 1/write", "ünïcödé ✓", "x" * 200, "-dash", "it's", 'say "so"', "$HOME", "a;b", "{id}"]
)
def test_odd_ids_are_just_ids(bench: Bench, name: str) -> None:
    """Blanks, slashes, quotes and other scripts: in commands, as requirements, as targets."""
    keys: dict[str, Any] = {name: {"produces": ["out/odd.txt"], "run": "printf '%s' {id} > {output}"}}
    bench.plan(**keys)
    bench.add(
        "after", name, run=f"cat {{inputs[{name}]}} > {{output}}" if not set(name) & set("[]{}") else "true > {output}"
    )
    assert bench.run().result.made == [name, "after"]
    assert bench.read("out/odd.txt") == name
    assert bench.run(rerun=name, jobs=1).result.made[0] == name
    assert bench.state().completed.keys() == {name, "after"}


def test_arguments_that_cannot_be_compared_fail_their_artifact(bench: Bench) -> None:
    """By name, with what to do; the rest is made."""
    from headway.engine.judge import Judge

    bench.plan("a -> b; c")
    unusual = bench.session.judge("plan", functions=bench.functions()).judge
    assert isinstance(unusual, Judge)
    unusual.state.artifacts["a"] = msgspec.structs.replace(bench.spec("a"), args={"file": object()})
    unusual.all()
    assert unusual.problem("a").startswith("The arguments of a cannot be compared")
    assert unusual.reasons["c"].code == "never_made"


def test_a_function_that_cannot_be_found_fails_its_artifact(bench: Bench) -> None:
    """Status and run both say so; other artifacts are made."""
    bench.plan("b", a={"make": "nowhere:f", "version": ""})
    assert bench.stale() == {"a": "never_made", "b": "never_made"}
    ran = bench.run()
    assert ran.did == {"failed a", "made b"}
    assert ran.result.failed["a"].startswith("The function nowhere:f cannot be found")


def test_a_module_that_cannot_be_imported_fails_its_artifact(bench: Bench) -> None:
    """With the error that importing it raised."""
    bench.write("broken_tasks.py", "raise RuntimeError('not today')\ndef f(): return ''\n")
    bench.plan("b", a={"make": "broken_tasks:f", "version": ""})
    ran = bench.run()
    assert ran.did == {"failed a", "made b"}
    assert "not today" in ran.result.failed["a"]


@pytest.mark.parametrize(
    ("does", "error", "then"),
    [
        ("sys.exit()", "error: SystemExit; next: put what", "__main__"),
        ("sys.exit(7)", "error: SystemExit: 7; next: put what", "__main__"),
        ("raise GeneratorExit('g')", "error: GeneratorExit: g", "python"),
        ("class Own(BaseException): __str__ = None\nraise Own", "error: Own: (no words: TypeError)", "python"),
        ("sys.nothing", "error: AttributeError: ", "python"),
    ],
)
@pytest.mark.parametrize("module", ["leaving_tasks", "leaving_tasks.py"])
def test_whatever_a_module_raises_when_it_is_imported_fails_its_artifacts(
    bench: Bench, module: str, does: str, error: str, then: str
) -> None:
    """A module that ends the program as well: other branches go on, and nobody takes its exit code for ours."""
    bench.write("leaving_tasks.py", f"import sys\n{does}\ndef f(): return ''\n")
    bench.plan("b", a={"make": f"{module}:f", "version": ""}, c={"requires": ["a"]})
    ran = bench.run()
    assert (ran.did, ran.result.exit_code) == ({"failed a", "made b"}, 1)
    assert ran.result.failed["a"].startswith(f"{module} cannot be imported; {error}")
    assert then in ran.result.failed["a"].partition("next: ")[2]


def test_ctrl_c_while_a_module_is_imported_is_no_failure_of_it(bench: Bench) -> None:
    """It is for the run."""
    bench.write("slow_tasks.py", "raise KeyboardInterrupt\ndef f(): return ''\n")
    bench.plan(a={"make": "slow_tasks:f", "version": ""})
    with pytest.raises(KeyboardInterrupt):
        function.load_function(str(bench.root), "slow_tasks:f")


@pytest.mark.parametrize(
    ("words", "who"),
    [
        (["run"], "artifact a ended the process by os._exit(0) when tasks was imported;"),
        (["run", "--plan", "plan.py"], "plan.py ended the process by os._exit(0) when it was imported;"),
    ],
)
def test_a_module_that_ends_the_process_when_it_is_imported_is_named(
    tmp_path: Path, words: list[str], who: str
) -> None:
    """Nobody takes that for a run in which all was done."""
    (tmp_path / "tasks.py").write_text("import os\nos._exit(0)\ndef f(): return ''\n")
    (tmp_path / "plan.py").write_text("import tasks\n")
    (tmp_path / "headway.yaml").write_text("id: p\ngoal: g\nartifacts:\n  a: {make: 'tasks:f', produces: a.txt}\n")
    command = [sys.executable, "-m", "headway", *words]
    ended = subprocess.run(command, cwd=tmp_path, capture_output=True, check=False, text=True)
    assert (ended.returncode, ended.stdout) == (70, "")
    assert ended.stderr.startswith(f"headway: {who} nothing that was recorded is lost\n  next: put what")


@pytest.mark.parametrize("value", [object(), {"x": 1, "z": 2}, ["one", "two"]])
def test_a_value_that_fits_no_output_fails_its_artifact(bench: Bench, value: object) -> None:
    """With several outputs, a value for each of them is wanted."""
    bench.plan(a={"produces": ["out/x.txt", "out/y.txt"]})
    bench.makes("a", lambda: value)
    ran = bench.run()
    assert ran.log == ["failed a"]
    assert bench.state().failed["a"].code == "return_value"


def test_a_plan_that_changes_while_it_runs_is_run_again(bench: Bench) -> None:
    """What was begun is finished, what was removed is left alone, and the run says that there is more."""
    from headway.core.commands import ChangePlan

    bench.plan("a -> b; a -> c")

    def meddle() -> str:
        bench.do(ChangePlan(remove=("c",), add=(bench.spec("b").__class__(id="d", run="true"),)))
        return "a"

    bench.makes("a", meddle)
    ran = bench.run()
    assert ran.log == ["made a", "made b"]
    assert (ran.code, ran.result.paused and ran.result.paused.code) == (75, "plan_changed")


# Disks.


class FullDisk(Hasty):
    """A disk on which blobs find no room."""

    full = False

    def write(self, fd: int, data: bytes | memoryview, offset: int) -> int:
        if self.full and os.readlink(f"/proc/self/fd/{fd}").endswith(".pack"):
            raise OSError(errno.ENOSPC, "No space left on device")
        return super().write(fd, data, offset)


def test_a_disk_without_room_for_blobs_fails_the_artifact(tmp_path: Path) -> None:
    """Nothing is recorded as made; once there is room, the run goes on."""
    disk = FullDisk()
    bench = Bench(tmp_path / "p", disk=disk)
    bench.plan("a -> b; c")
    disk.full = True
    ran = bench.run()
    assert ran.did == {"failed a", "failed c"}
    assert "No space left on device" in ran.result.failed["a"]
    disk.full = False
    assert bench.run().did == {"made a", "made b", "made c"}


def test_what_an_attempt_left_that_cannot_be_looked_at_is_nobodys_edit(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Too many files are open: what it wrote cannot even be hashed. The next run asks nobody about it."""
    refused: list[str] = []

    def write(ctx: Context) -> None:
        Path(ctx.output).write_text("whole\n")
        refused.append("a.txt")

    def refusing(path: Any, *args: Any, **options: Any) -> Any:
        if refused and str(path).endswith(refused[-1]):
            raise OSError(errno.EMFILE, "Too many open files", path)
        return open(path, *args, **options)

    bench.plan(a={"produces": "a.txt"})
    bench.makes("a", write)
    for module in (observe, outputs):
        monkeypatch.setattr(module, "open", refusing, raising=False)
    assert bench.run().result.failed["a"].startswith("Too many open files")
    refused.append("elsewhere")
    bench.makes("a", "whole\n")
    assert bench.run().did == {"made a"}


def test_what_an_attempt_left_before_memory_ran_out_is_nobodys_edit(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever ends an attempt, what stands at its paths afterwards may be its own."""

    def write(ctx: Context) -> None:
        Path(ctx.output).write_text("half")

    def exhausted(*_: Any) -> None:
        raise MemoryError

    bench.plan(a={"produces": "a.txt"})
    bench.makes("a", write)
    with monkeypatch.context() as patch:
        patch.setattr(outputs.Outputs, "_capture", exhausted)
        assert bench.run().result.failed["a"].startswith("MemoryError")
    bench.makes("a", "whole\n")
    assert bench.run().did == {"made a"}


class CrampedDisk(FullDisk):
    """A disk on which only small blobs find room, whatever is written with them."""

    def write(self, fd: int, data: bytes | memoryview, offset: int) -> int:
        self.full = len(data) > 10_000
        return super().write(fd, data, offset)


def test_what_was_made_beside_what_finds_no_room_is_kept(tmp_path: Path) -> None:
    """Artifacts that are made in a row are written together, and yet each fails or is made by itself."""
    bench = Bench(tmp_path / "p", disk=CrampedDisk())
    names = [f"n{n}" for n in range(40)]
    bench.plan("; ".join(names))
    for name in names:
        bench.makes(name, lambda ctx: ctx.id * (10_000 if ctx.id == "n30" else 3))
    ran = bench.run(jobs=1)
    assert list(ran.result.failed) == ["n30"]
    assert set(ran.result.made) == set(names) - {"n30"}
    done = bench.state().completed
    assert {bench.blob(done[name].outputs[0].digest).decode() for name in done} == {name * 3 for name in done}


def no_way() -> str:
    """A recipe that fails."""
    raise ValueError("no")


@pytest.mark.parametrize("light", [True, False], ids=["in a row", "by itself"])
def test_a_prompt_that_finds_no_room_is_not_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, light: bool) -> None:
    """Nobody is sent to look for bytes that are not there; and nothing that takes its time is asked in vain."""
    monkeypatch.setattr(workers, "LIGHT_AFTER", 0 if light else 8)
    bench = Bench(tmp_path / "p", disk=CrampedDisk())
    bench.write("long.md", "x" * 20_000)
    bench.plan(a={"templates": {"phase": "long.md"}}, b={"templates": {"phase": "long.md"}})
    bench.makes("a", no_way)
    bench.run(jobs=1)
    failed = bench.state().failed
    assert {name: failure.prompt for name, failure in failed.items()} == {"a": "", "b": ""}
    assert failed["a"].error.startswith("ValueError: no") is light


class FullLedger(RealDisk):
    """A disk on which the ledger finds no room after some writes."""

    left = 1_000_000

    def write(self, fd: int, data: bytes | memoryview, offset: int) -> int:
        if os.readlink(f"/proc/self/fd/{fd}").endswith("ledger.jsonl"):
            self.left -= 1
            if self.left < 0:
                raise OSError(errno.ENOSPC, "No space left on device")
        return super().write(fd, data, offset)


@pytest.mark.parametrize("writes", range(8))
def test_a_disk_without_room_for_the_ledger_ends_the_run(tmp_path: Path, writes: int) -> None:
    """What was acknowledged stays; with room again the run goes on, and nothing that was completed is made again."""
    disk = FullLedger()
    bench = Bench(tmp_path / "p", disk=disk)
    bench.plan("a -> b -> c")
    disk.left = writes
    try:
        bench.run()
    except StorageFailed:
        pass
    done = set(bench.state().completed)
    disk.left = 1_000_000
    ran = bench.run()
    assert set(ran.result.made) == {"a", "b", "c"} - done
    assert bench.stale() == {}


def test_a_disk_without_room_for_an_output_fails_the_artifact(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    """The error names the path, whether there was something in its place or not."""
    bench.plan("a -> b")
    for again in ([], ["a"]):
        bench.makes("a", (lambda: "new") if again else (lambda: "old"))
        with monkeypatch.context() as patched:
            patched.setattr(bulk, "write", lambda orders: [(errno.ENOSPC, bulk.NOTHING, 0) for _ in orders])
            ran = bench.run(rerun=again)
        assert ran.result.failed == {"a": f"No space left on device: {bench.path('out/a.txt')}"}
        assert "a" in bench.run().result.made


@pytest.mark.parametrize("name", ["n" * 255, "ä" * 127])
def test_an_output_of_the_longest_name_is_replaced_and_put_back(bench: Bench, name: str) -> None:
    """Although there is no longer name for what is put in its place."""
    bench.plan(a={"produces": [name]})
    bench.run()
    bench.change("a", version="2")
    bench.makes("a", "new")
    assert bench.run().log == ["made a"]
    bench.write(name, "mine")
    assert bench.run(on_edit="discard").log == ["restored a"]
    assert (bench.read(name), len(list(bench.root.glob("*.tmp")))) == ("new", 0)


def test_commands_get_no_terminal_and_a_clean_environment(bench: Bench) -> None:
    """Standard input is empty; the attempt is named by variables; the project's root is where they run."""
    bench.environ["MINE"] = "1"
    bench.plan(a={"run": "cat; echo $HEADWAY_PLAN $HEADWAY_ARTIFACT $MINE > {output}; pwd >> {output}"})
    bench.run()
    assert bench.out("a") == f"plan a 1\n{bench.root}\n"


def test_a_command_killed_by_a_signal_says_so(bench: Bench) -> None:
    """By the signal's name."""
    bench.plan(a={"run": "kill -SEGV $$"})
    assert bench.run().result.failed == {"a": f"killed by {signal.Signals.SIGSEGV.name}"}


def test_a_profile_for_one_makes_one_at_a_time_after_failures(bench: Bench) -> None:
    """A failed attempt gives its place back."""
    bench.plan("a; b; c", a={"run": "exit 1"})
    bench.settings(profile=Profile())
    assert bench.run(jobs=4).did == {"failed a", "made b", "made c"}


def test_only_the_thread_whose_time_is_up_is_ended(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    """It may be done in the very moment: another one that is given its number is not ended for it."""
    end, alive = function.end_thread, list[bool]()

    def end_late(thread: threading.Thread) -> None:
        done.wait(10)
        time.sleep(0.1)
        alive.append(thread.is_alive())
        end(thread)

    done = threading.Event()
    monkeypatch.setattr(function, "end_thread", end_late)
    bench.plan(a={"timeout": 0.1})

    def make() -> str:
        time.sleep(0.2)
        done.set()
        return "late"

    bench.makes("a", make)
    assert bench.run().result.failed == {"a": "No end after 0.1 s"}
    assert alive == [True]


@pytest.mark.parametrize(("where", "when"), [("row", 3), ("row", 9), ("end_with", 12)])
def test_what_nobody_brings_ends_the_run_and_is_not_waited_for(
    bench: Bench, monkeypatch: pytest.MonkeyPatch, where: str, when: int
) -> None:
    """Memory may run out where nobody can tell what came of an artifact any more; the next run goes on."""
    monkeypatch.setattr(workers, "LIGHT_MS", 10_000)
    owner, calls = (Workshop, list[int]()) if where == "row" else (row.Row, list[int]())
    real = getattr(owner, where)

    def fail(*given: Any) -> Any:
        calls.append(1)
        if len(calls) == when:
            raise MemoryError
        return real(*given)

    monkeypatch.setattr(owner, where, fail)
    names = [f"n{n}" for n in range(60)]
    bench.plan(" ".join(names))
    for name in names:
        bench.makes(name, name)
    with pytest.raises(BugError, match="nobody brings what came of"):
        bench.run()
    monkeypatch.setattr(owner, where, real)
    assert bench.run().result.ok
    assert bench.out("n59") == "n59"
