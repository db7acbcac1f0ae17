"""A run that was killed with -9 holds nobody up: not the next run, not an edit of the plan, not a reset."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from headway.disk import with_room
from headway.files.blobs import Blobs
from headway.files.observe import Observer
from headway.files.outputs import Outputs

PLAN = """\
id: killed
goal: Survive
artifacts:
  first:
    produces: first.txt
    run: "echo first >> made.log; echo first > {output}"
  slow:
    requires: [first]
    produces: slow.txt
    run: "echo slow >> made.log; echo half > {output}; sleep 30; echo whole > {output}"
"""
HEADWAY = [sys.executable, "-m", "headway"]


def headway(*words: str) -> subprocess.CompletedProcess[str]:
    """A command line as a process of its own."""
    return subprocess.run([*HEADWAY, *words], capture_output=True, text=True, check=False)


def wait_for(condition: Callable[[], bool]) -> None:
    """Look until it is so; a minute is for machines that are busy."""
    deadline = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < deadline, "it never came to be"
        time.sleep(0.02)


@pytest.fixture
def killed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project whose run was killed while `slow` was being made."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "headway.yaml").write_text(PLAN)
    run = subprocess.Popen([*HEADWAY, "run"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    wait_for((tmp_path / "slow.txt").exists)
    os.kill(run.pid, signal.SIGKILL)
    run.wait()
    return tmp_path


def quick(root: Path) -> None:
    """Make the slow artifact quick."""
    (root / "headway.yaml").write_text(PLAN.replace("sleep 30; ", ""))


def test_the_plan_file_can_be_edited_and_the_run_goes_on(killed: Path) -> None:
    """The claim of the dead run is given back, its command is ended, and nothing complete is made again."""
    quick(killed)
    done = headway("run")
    assert (done.returncode, "made     slow" in done.stdout) == (0, True)
    assert (killed / "slow.txt").read_text() == "whole\n"
    assert (killed / "made.log").read_text().split() == ["first", "slow", "slow"]


@pytest.fixture
def dead() -> str:
    """The number of a process that is gone."""
    return subprocess.check_output([sys.executable, "-c", "import os; print(os.getpid())"], text=True).strip()


def test_an_edit_that_a_killed_run_had_taken_from_its_place_is_kept(killed: Path, dead: str) -> None:
    """It stands under a name of ours, and what should stand in its place does not."""
    (killed / f"slow.txt.{dead}.0123abcd.tmp").write_text("mine")
    quick(killed)
    ran = headway("run")
    back = re.search(r"What stood at slow.txt is kept: headway (restore slow --at \d+)", ran.stdout)
    assert back is not None, ran.stdout
    assert not list(killed.glob("*.tmp"))
    assert headway(*back[1].split()).returncode == 0
    assert (killed / "slow.txt").read_text() == "mine"


def test_a_folder_that_a_killed_run_had_taken_from_its_place_is_kept(killed: Path, dead: str) -> None:
    """And is in the way of nothing else that it left; only looking for what is left takes nothing away."""
    taken = killed / f"slow.txt.{dead}.0123abcd.tmp"
    taken.mkdir()
    (taken / "my.txt").write_text("mine")
    (killed / f"first.txt.{dead}.0123abcd.tmp").write_text("half")
    assert headway("gc").returncode == 0
    assert [path.name for path in killed.glob("*.tmp")] == [taken.name]
    quick(killed)
    assert headway("run").returncode == 0
    assert (not list(killed.glob("*.tmp")), (killed / "slow.txt").read_text()) == (True, "whole\n")
    assert "kept what stood at slow.txt" in headway("log", "--all").stdout


def test_bytes_that_no_ledger_names_are_kept_though_a_blob_has_them(killed: Path, dead: str) -> None:
    """It was put there before anything was recorded: the next to free space would take it away."""
    blobs = Blobs(str(killed / ".headway/blobs"))
    with blobs.used():
        blobs.put(b"mine")
    left = killed / f"slow.txt.{dead}.0123abcd.tmp"
    left.write_text("mine")
    assert headway("gc").returncode == 0
    assert left.read_text() == "mine"
    quick(killed)
    assert "What stood at slow.txt is kept" in headway("run").stdout


def test_what_lies_behind_a_link_out_of_the_project_is_left_alone(killed: Path, dead: str, tmp_path: Path) -> None:
    """It is not looked at, let alone taken away."""
    outside = tmp_path.with_name(f"{tmp_path.name}-outside")
    outside.mkdir()
    left = outside / f"1.txt.{dead}.0123abcd.tmp"
    left.write_text("theirs")
    (killed / "out").symlink_to(outside)
    shop = Outputs(str(killed), Blobs(str(killed / ".headway/blobs")), Observer(str(killed)))
    taken: list[object] = []
    shop.sweep(["out/1.txt"], lambda path, digest: False, taken.append)
    assert (taken, left.read_text()) == ([], "theirs")


def test_what_was_about_to_be_put_under_a_long_name_is_taken_away(tmp_path: Path, dead: str) -> None:
    """Such a name leaves no room to say more: it is told by its checksum."""
    name = "n" * 244
    shop = Outputs(str(tmp_path), Blobs(str(tmp_path / "blobs")), Observer(str(tmp_path)))
    (tmp_path / "out").mkdir()
    left = tmp_path / with_room(f"out/{name}")
    left = left.with_name(f"{left.name}.{dead}.0123abcd.tmp")
    left.write_text("half")
    (tmp_path / "out" / name).write_text("whole")
    [recorded] = shop.capture([f"out/{name}"])
    shop.sweep([recorded.path], lambda path, digest: path == recorded.path)
    assert os.listdir(tmp_path / "out") == [name]


def test_a_file_that_was_about_to_be_put_in_place_is_taken_away(killed: Path, dead: str) -> None:
    """Made, or put back from its blob; neither what a living process writes nor what only looks like it."""
    left = [killed / f"{name}.{dead}.0123abcd.tmp" for name in ("slow.txt", "first.txt")]
    others = [killed / f"slow.txt.{os.getpid()}.0123abcd.tmp", killed / f"mine.txt.{dead}.0123abcd.tmp"]
    for path in (*left, *others):
        path.write_text("half")
    quick(killed)
    assert headway("run").returncode == 0
    assert [path.exists() for path in (*left, *others)] == [False, False, True, True]


def test_status_says_that_it_was_interrupted_and_writes_nothing(killed: Path) -> None:
    """Reading judges the plan as the next run will, with an edited file, too."""
    ledger = killed / ".headway/plans/killed/ledger.jsonl"
    before = ledger.read_bytes()
    assert "interrupted before" in headway("status").stdout
    quick(killed)
    assert headway("status").returncode == 0
    assert ledger.read_bytes() == before


def test_the_plan_can_be_reset(killed: Path) -> None:
    """Nobody has to be stopped who is not there."""
    assert headway("reset", "--all").returncode == 0
    quick(killed)
    assert headway("run").returncode == 0


def test_the_orphan_of_a_dead_run_is_ended(killed: Path) -> None:
    """A command that outlived its scheduler must not write over what the next run makes."""
    quick(killed)
    assert headway("run").returncode == 0
    assert not [entry for entry in Path("/proc").iterdir() if entry.name.isdigit() and works_in(entry, killed)]


def works_in(process: Path, folder: Path) -> bool:
    """Whether a process other than this one has its working directory there."""
    try:
        return (process / "cwd").resolve() == folder.resolve() and process.name != str(os.getpid())
    except OSError:
        return False


def test_somebody_elses_run_is_shown_as_under_way(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """While a run lives, status says so, and a second run is refused, naming its holder."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "headway.yaml").write_text(PLAN)
    run = subprocess.Popen([*HEADWAY, "run"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        wait_for((tmp_path / "slow.txt").exists)
        assert "being made now" in headway("status").stdout
        second = headway("run")
        assert (second.returncode, str(run.pid) in second.stderr) == (75, True)
    finally:
        run.send_signal(signal.SIGTERM)
        assert run.wait(30) == 130
    assert headway("status").returncode == 0


def run_and_kill(root: Path, when: str) -> None:
    """Run the plan in this folder, and kill it as soon as a file is there."""
    run = subprocess.Popen([*HEADWAY, "run"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    wait_for((root / when).exists)
    os.kill(run.pid, signal.SIGKILL)
    run.wait()


IN_PLACE = """\
id: shared
goal: Change in place
artifacts:
  one: {modifies: f.txt, run: "echo one >> f.txt"}
  slow: {requires: [one], produces: slow.txt, run: "cat f.txt > {output}; test -e go || sleep 30"}
  two: {requires: [slow], modifies: f.txt, run: "test -e go || { echo half >> f.txt; sleep 30; }; echo two >> f.txt"}
"""


@pytest.fixture
def shared(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project in which a file is changed in place by two artifacts, and read between them."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "f.txt").write_text("base\n")
    (tmp_path / "headway.yaml").write_text(IN_PLACE)
    return tmp_path


def test_what_somebody_writes_after_it_to_a_file_that_nobody_was_at_is_asked_about(shared: Path) -> None:
    """What the dead run had yet to begin has left nothing anywhere, so these bytes are not its own."""
    run_and_kill(shared, "slow.txt")
    (shared / "f.txt").write_text("MINE\n")
    (shared / "go").touch()
    done = headway("run")
    assert (done.returncode, (shared / "f.txt").read_text()) == (3, "MINE\n")
    assert headway("run", "--discard-edits").returncode == 0
    assert (shared / "f.txt").read_text() == "base\none\ntwo\n"
    assert "On disk stays what two left" in headway("restore", "one").stdout
    assert headway("run").returncode == 0
    assert (shared / "f.txt").read_text() == "MINE\ntwo\n", "as if it had been accepted when it was asked about"


def test_what_stands_in_a_file_that_it_was_changing_is_kept_and_the_run_says_so(shared: Path) -> None:
    """Nobody can tell whose bytes these are: they are not lost, and there is a command that brings them back."""
    (shared / "headway.yaml").write_text(
        IN_PLACE.replace("test -e go || sleep 30;", "")
        .replace("echo half >> f.txt", "echo half >> f.txt; touch at-it")
        .replace("; test -e go || sleep 30", "")
    )
    run_and_kill(shared, "at-it")
    (shared / "f.txt").write_text("MINE\n")
    (shared / "go").touch()
    done = headway("run")
    assert (done.returncode, (shared / "f.txt").read_text()) == (0, "base\none\ntwo\n")
    told = re.search(r"What stood at f.txt is kept: headway (restore two --at \d+) brings it back", done.stdout)
    assert told is not None
    assert headway(*told[1].split()).returncode == 0
    assert (shared / "f.txt").read_text() == "MINE\n"


def test_a_file_that_is_changed_in_place_for_the_first_time_is_replaced_by_nobody(shared: Path) -> None:
    """It is the beginning of what it becomes: there is nothing to tell."""
    (shared / "go").touch()
    done = headway("run")
    assert (done.returncode, "What stood" in done.stdout) == (0, False)


def test_an_output_that_it_had_yet_to_begin_is_as_much_an_edit_as_before(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It was announced as stale, and no more than that: somebody wrote there."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "s.txt").write_text("1")
    (tmp_path / "headway.yaml").write_text(
        "id: two\ngoal: Two\nartifacts:\n"
        '  x: {sources: [s.txt], produces: x.txt, run: "cat s.txt > {output}; test -e go || sleep 30"}\n'
        '  y: {requires: [x], produces: y.txt, run: "cat {inputs.x} > {output}"}\n'
    )
    (tmp_path / "go").touch()
    assert headway("run").returncode == 0
    (tmp_path / "go").unlink()
    (tmp_path / "s.txt").write_text("2")
    run = subprocess.Popen([*HEADWAY, "run"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    wait_for(lambda: (tmp_path / "x.txt").read_text() == "2")
    os.kill(run.pid, signal.SIGKILL)
    run.wait()
    (tmp_path / "y.txt").write_text("MINE")
    (tmp_path / "go").touch()
    assert "y.txt" in headway("status").stdout
    done = headway("run")
    assert (done.returncode, (tmp_path / "y.txt").read_text()) == (3, "MINE")


def test_what_stands_where_it_was_writing_is_kept_and_the_run_says_so(killed: Path) -> None:
    """It may be half of what it wrote, or somebody's: it is put aside, not asked about."""
    (killed / "slow.txt").write_text("MINE")
    quick(killed)
    done = headway("run")
    assert (done.returncode, (killed / "slow.txt").read_text()) == (0, "whole\n")
    assert "What stood at slow.txt is kept: headway restore slow" in done.stdout
    assert headway("restore", "slow").returncode == 0
    assert (killed / "slow.txt").read_text() == "MINE"


@pytest.fixture
def half_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project in which a run was killed while it put the files of a folder back; the process that it was."""
    monkeypatch.chdir(tmp_path)
    command = "for i in 1 2 3; do echo $i > {output}$i; done"
    plan = f"id: p\ngoal: Put back\nartifacts:\n  parts: {{produces: parts/, run: '{command}'}}\n"
    (tmp_path / "headway.yaml").write_text(plan)
    assert headway("run").returncode == 0
    gone = subprocess.Popen(["true"])
    gone.wait()
    for name in ("2", "3"):
        (tmp_path / "parts" / name).unlink()
    left = tmp_path / "parts" / f"2.{gone.pid}.01234567.tmp"
    left.write_text("")
    return left


def test_what_it_left_in_a_folder_that_it_was_putting_back_is_no_edit(half_back: Path) -> None:
    """Half of a file under a name of ours: the folder lacks files, and the next run puts them back."""
    ran = headway("run")
    assert (ran.returncode, ran.stdout.split()[:2]) == (0, ["restored", "parts"])
    assert sorted(path.name for path in half_back.parent.iterdir()) == ["1", "2", "3"]


def test_a_file_beside_it_that_nobody_was_putting_back_is_an_edit(half_back: Path) -> None:
    """A name that looks like ours, for a file that was never there, or of a process that lives: somebody wrote it."""
    half_back.rename(half_back.parent / half_back.name.replace("2.", "notes.", 1))
    assert headway("run").returncode == 3


def test_restoring_again_takes_away_what_it_left(half_back: Path) -> None:
    """`restore` was killed before its file was in place."""
    Path("headway.yaml").write_text(
        "id: p\ngoal: Put back\nartifacts:\n  a: {produces: out.txt, run: 'echo 1 > {output}'}\n"
    )
    headway("run")
    Path("headway.yaml").write_text(Path("headway.yaml").read_text().replace("echo 1", "echo 2"))
    headway("run")
    left = half_back.rename(half_back.name.replace("2.", "out.txt.", 1))
    assert headway("restore", "a").returncode == 0
    assert (Path("out.txt").read_text(), left.exists()) == ("1\n", False)
