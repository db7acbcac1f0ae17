"""The view of a run on a terminal, as a person sees it: real processes in a pty, read by a small emulator."""

from __future__ import annotations

import io
import json
import os
import re
import signal
import subprocess
import sys
import threading
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from headway.core.freshness import Reason
from headway.engine.result import RunResult
from headway.surfaces.cli import live
from headway.surfaces.cli.lines import Heart, Lines
from headway.surfaces.cli.screen import Screen
from tests.terminal import Terminal

WAIT = "n=0; while [ ! -e go ] && [ $n -lt 1200 ]; do sleep 0.05; n=$((n + 1)); done"  # not for ever, whatever fails
PLAN = """\
id: book
goal: A book
jobs: 4
artifacts:
  words: {produces: out/words.txt, run: "echo words > {output}"}
  index:
    produces: out/index.txt
    sources: [pages.txt]
    run: |
      printf 'page 1 of 9\\n\\033[31mpage 3 of 9\\033[0m'
      WAIT
      echo index > {output}
  chapter-with-a-long-name:
    produces: out/chapter.txt
    sources: [pages.txt]
    run: |
      WAIT
      echo chapter > {output}
  cover:
    produces: out/cover.txt
    sources: [pages.txt]
    run: "echo there is no ink left >&2; exit 2"
  print: {requires: [cover], produces: out/print.txt, run: "echo print > {output}"}
  book:
    requires: [index, words, chapter-with-a-long-name]
    produces: out/book.txt
    run: "cat {inputs.index} > {output}"
"""
DURING = {
    40: """\
failed   cover                 T  exit c
ode 2: there is no ink left
━━╌╌╌╌╌╌╌╌╌╌╌╌  1 of 5   N s   1 failed
  index              N s  page 3 of 9
  chapter-with…      N s
  kept words up to date""",
    80: """\
failed   cover                            T  exit code 2: there is no ink left
━━━━━━━━╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌  1 of 5   N s   1 failed
  index                         N s  page 3 of 9
  chapter-with-a-long-name      N s
  kept words up to date""",
    120: """\
failed   cover                            T  exit code 2: there is no ink left
━━━━━━━━╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌  1 of 5   N s   1 failed
  index                         N s  page 3 of 9
  chapter-with-a-long-name      N s
  kept words up to date""",
}
AFTER = """\
failed   cover                            T  exit code 2: there is no ink left
made     index                            T  never made
made     chapter-with-a-long-name         T  never made
made     book                             T  never made
cover blocks print
3 made, 1 kept, 1 failed, 1 blocked in T. Next: headway why cover"""
COLOURED = """\
<31>failed  <0> cover                            T  exit code 2: there is no ink left
<32>made    <0> index                            T  never made
<32>made    <0> chapter-with-a-long-name         T  never made
<32>made    <0> book                             T  never made
<33>cover blocks print<0>
3 made, 1 kept, 1 failed, 1 blocked in T. Next: headway why cover"""


@pytest.fixture
def book(tmp_path: Path) -> Path:
    """A project in which one artifact is up to date, two wait for a file `go`, one fails, one is blocked."""
    folder = tmp_path / "book"
    folder.mkdir()
    (folder / "headway.yaml").write_text(PLAN.replace("WAIT", WAIT), encoding="utf-8")
    (folder / "pages.txt").write_text("nine", encoding="utf-8")
    subprocess.run([headway(), "run", "words"], cwd=folder, check=True, capture_output=True)
    return folder


def headway() -> str:
    return str(Path(sys.executable).with_name("headway"))


def timeless(screen: str) -> str:
    """What is on the screen, with every duration the same, in as many columns."""
    screen = re.sub(r" \d+(?:\.\d+)? (?:ms|s)(?= {2})", lambda m: "T".rjust(len(m[0])), screen)
    return re.sub(r"in \d+(?:\.\d+)? m?s\b", "in T", screen)


def moving(screen: str) -> str:
    """The same for lines that are drawn again: the seconds that pass are N."""
    stays, _, drawn = screen.partition("━")
    return timeless(stays) + re.sub(r"\d+ s\b", "N s", "━" + drawn)


def in_order(text: str) -> str:
    """Without the order in which the two that waited for the same file were done."""
    index, chapter = (next(i for i, line in enumerate(text.splitlines()) if name in line) for name in ("index", "chap"))
    lines = text.splitlines()
    if chapter < index:
        lines[chapter], lines[index] = lines[index], lines[chapter]
    return "\n".join(lines)


def both_running(screen: str) -> bool:
    return all(words in screen for words in ("page 3 of 9", "1 failed", "chapter-with", "kept words up to date"))


@pytest.mark.parametrize("columns", [40, 80, 120])
@pytest.mark.parametrize("env", [{"NO_COLOR": ""}, {"NO_COLOR": "1"}], ids=["colour", "no colour"])
def test_a_running_plan_is_shown(book: Path, columns: int, env: dict[str, str]) -> None:
    """What runs, since when, its last line; what was kept and why; what failed stays above. Nothing drawn wraps."""
    with Terminal("headway", "run", cwd=book, columns=columns, env={**env, "HEADWAY_HEARTBEAT": "999"}) as terminal:
        during = terminal.until(both_running)
        assert moving(during) == DURING[columns]
        assert max(map(len, during[during.index("━") :].splitlines())) <= columns
        (book / "go").touch()
        assert terminal.wait() == 1
    assert bool(terminal.screen.styles) == (not env["NO_COLOR"])
    if columns > 40:
        assert in_order(timeless(terminal.screen.text)) == AFTER


def test_the_picture_in_the_documentation_is_this_one() -> None:
    """docs/watching.md shows what is seen here."""
    page = Path(__file__).parents[2] / "docs" / "watching.md"
    shown = re.search(r"```text\n(.*?)```", page.read_text(encoding="utf-8"), re.DOTALL)
    assert shown is not None
    assert moving(shown[1].rstrip("\n")) == DURING[80]


def test_what_is_left_is_coloured(book: Path) -> None:
    """One colour for each outcome."""
    with Terminal("headway", "run", cwd=book) as terminal:
        terminal.until(both_running)
        (book / "go").touch()
        terminal.wait()
    lines = [x for x in re.split(r"[\r\n]+|\x1b\[J", terminal.raw) if re.match(r"\x1b\[3\dm\w|\d made", x)]
    shown = re.sub(r"\x1b\[(\d+)m", r"<\1>", "\n".join(lines))
    assert in_order(timeless(shown)) == COLOURED


@pytest.mark.parametrize("env", [{"CI": "true"}, {"TERM": "dumb"}, {"TERM": ""}], ids=str)
def test_nothing_is_drawn_where_nobody_looks(book: Path, env: dict[str, str]) -> None:
    """In CI, and on a terminal that cannot draw, a run is lines; each is said when it happens."""
    with Terminal("headway", "run", cwd=book, env={**env, "NO_COLOR": "1"}) as terminal:
        assert timeless(terminal.until(lambda screen: "no ink" in screen)) == AFTER.splitlines()[0]
        (book / "go").touch()
        assert terminal.wait() == 1
    assert "\x1b" not in terminal.raw
    assert in_order(timeless(terminal.screen.text)) == AFTER


def test_silence_is_said(book: Path) -> None:
    """An artifact that prints nothing for a while is called silent, with its last line beside it."""
    with Terminal("headway", "run", cwd=book, env={"HEADWAY_HEARTBEAT": "0.3"}) as terminal:
        terminal.until(lambda screen: re.search(r"index +\d+ s  silent for \d+ s  page 3 of 9", screen))
        terminal.until(lambda screen: re.search(r"chapter-with-a-long-name +\d+ s  silent for \d+ s\n", screen))


def test_a_log_is_told_what_still_runs(book: Path) -> None:
    """Without a terminal, silence ends with a line that names what runs, and since when."""
    command = subprocess.Popen(
        [headway(), "run"],
        cwd=book,
        env={**os.environ, "HEADWAY_HEARTBEAT": "0.05"},
        stdout=subprocess.PIPE,
        text=True,
    )
    with command:
        assert command.stdout is not None
        both = re.compile(r"running  index \([\d.]+ m?s\), chapter-with-a-long-name \([\d.]+ m?s\)\n")
        assert next(line for line in command.stdout if both.fullmatch(line))
        (book / "go").touch()
        assert command.stdout.read().splitlines()[-1].startswith("3 made")


def test_ctrl_c_stops_and_leaves_the_screen_tidy(book: Path) -> None:
    """What runs is ended, the receipt says how to go on, and nothing of the picture is left."""
    with Terminal("headway", "run", cwd=book, columns=120) as terminal:
        terminal.until(both_running)
        terminal.signal(signal.SIGINT)
        assert terminal.wait() == 130
    end = timeless(terminal.screen.text).replace("\n", "")
    assert end.endswith("1 kept, 1 failed, 1 blocked in T. Interrupted; nothing is lost. Next: headway run")
    assert "━" not in end


def test_json_has_stdout_for_itself(book: Path) -> None:
    """The view is on stderr then, and the document is whole."""
    script = f"{headway()} run --json > out.json; echo exit $?"
    with Terminal("/bin/sh", "-c", script, cwd=book) as terminal:
        terminal.until(both_running)
        (book / "go").touch()
        terminal.wait()
    assert terminal.screen.text.splitlines()[-1] == "exit 1"
    assert sorted(json.loads((book / "out.json").read_text())["made"]) == ["book", "chapter-with-a-long-name", "index"]


FUNCTIONS = """import os, threading, time
from headway import Plan

plan = Plan("functions that print", id="functions")

@plan.artifact
def talker():
    print("page 1", end="", flush=True)
    threading.Thread(target=print, args=("a thread's word",)).start()
    while not os.path.exists("go"):
        time.sleep(0.02)
    return "done"

@plan.artifact
def parent():
    if os.fork() == 0:
        print("a child's word", flush=True)
        os._exit(0)
    os.wait()
"""


def test_what_functions_print_is_their_last_line(tmp_path: Path) -> None:
    """It belongs to their attempt; what others in the process print meanwhile stays above the picture."""
    (tmp_path / "headway.py").write_text(FUNCTIONS, encoding="utf-8")
    with Terminal("headway", "run", "-j", "2", cwd=tmp_path, env={"NO_COLOR": "1"}) as terminal:
        terminal.until(lambda screen: re.search(r"^  talker +\d+ s  page 1$", screen, re.MULTILINE))
        (tmp_path / "go").touch()
        assert terminal.wait() == 0
    assert "page 1" not in terminal.screen.text
    assert "a thread's word" in terminal.screen.text.splitlines()
    assert "a child's word" in terminal.raw


MANY = """from headway import Plan

plan = Plan("very many", id="many")

def number(n):
    if n % 40 == 39:
        raise ValueError(f"not {n}")
    return str(n)

for n in range(1200):
    plan.add(f"n{n:04}", make=number, args={"n": n})
"""


def test_thousands_of_artifacts_fit_on_a_screen(tmp_path: Path) -> None:
    """The picture is never higher than the window and is not drawn per event; failures stay, but not all of them."""
    (tmp_path / "headway.py").write_text(MANY, encoding="utf-8")
    with Terminal("headway", "run", cwd=tmp_path, rows=14, env={"NO_COLOR": "1"}) as terminal:
        assert terminal.wait() == 1
    lines = terminal.screen.text.splitlines()
    assert len([x for x in lines if x.startswith("failed ")]) == live.COMPLAINTS
    assert len(lines) == live.COMPLAINTS + 2
    assert lines[-2] == "After these 20 the others are only counted: headway status names them"
    assert lines[-1].startswith("1170 made, 30 failed in ")
    assert terminal.raw.count("\x1b[J") < 1200 / 4


def test_rich_is_not_imported_where_nothing_is_drawn(book: Path) -> None:
    """Nothing to do on a terminal, and something to do without one: neither pays for a view."""
    code = (
        "import sys; from headway.surfaces.cli.main import main; main(['run', 'words']); print('rich' in sys.modules)"
    )
    with Terminal("python", "-c", code, cwd=book) as terminal:
        assert terminal.wait() == 0
    assert terminal.screen.text == "Nothing to do: 1 artifact is up to date.\nFalse"
    (book / "go").touch()
    done = subprocess.run(
        [sys.executable, "-c", code.replace(", 'words'", "")], cwd=book, capture_output=True, text=True, check=True
    )
    assert done.stdout.splitlines()[-1] == "False"


# What is hard to bring about in a pty: the view over a stream that is none, drawn by hand.


def view(**options: Any) -> tuple[live.View, io.StringIO]:
    stream = io.StringIO()
    return live.View(Screen(), stream, **options), stream


def picture(shown: live.View, width: int = 80, height: int = 24) -> list[str]:
    return [row.plain for row in shown._picture(width, height)]


STALE = Reason("never_made")


def test_the_picture_fits_a_low_window() -> None:
    """Of many that run the oldest are shown, and how many more there are."""
    shown, _ = view()
    result = RunResult(plan_id="x", kept=["k1", "k2", "k3", "k4"])
    with shown:
        shown.begun(result, {f"a{n}": STALE for n in range(100)}, 100)
        for n in range(100):
            shown.started(f"a{n}", STALE)
        for height in (5, 8, 24, 60):
            rows = picture(shown, height=height)
            assert len(rows) <= max(height - 1, 4)
            assert rows[1].startswith("  a0 ")
            shown_count = sum(row.startswith("  a") and "more" not in row for row in rows)
            assert f"  and {100 - shown_count} more" in rows
            assert rows[-1] == "  kept 4 up to date"


def test_cost_so_far_and_what_came_out_the_same_are_shown() -> None:
    """As soon as they are known."""
    shown, _ = view()
    result = RunResult(plan_id="x", kept=["early"])
    with shown:
        shown.begun(result, {"a": STALE, "b": STALE}, 2)
        result.cost_usd, result.tokens = 0.4211, 1200
        shown.finished("b", "kept", STALE, 0, "")
        rows = picture(shown)
    assert rows[0].endswith("1 of 2   0 s   $0.42")
    assert rows[-1] == "  kept early up to date; b with the same inputs"


@pytest.mark.parametrize("count", [live.LISTED, live.LISTED + 1])
def test_what_ended_together_is_shown_as_one_after_the_other(count: int) -> None:
    """The same lines, or the newest of them, and the same figures; whoever has not ended is still shown."""
    pictures = []
    for together in (True, False):
        shown, stream = view()
        done = [(f"a{n}", STALE, n) for n in range(count - 2)]
        with shown:
            shown.begun(RunResult(plan_id="x"), {f"a{n}": STALE for n in range(count)}, 1)
            for artifact_id, _, _ in done:
                shown.started(artifact_id, STALE)
            if together:
                shown.made(done)
            else:
                for artifact_id, reason, ms in done:
                    shown.finished(artifact_id, "made", reason, ms, "")
            shown.started("late", STALE)
            rows = picture(shown)
        pictures.append((rows, stream.getvalue()))
    assert pictures[0] == pictures[1]
    assert f"{count - 2} of {count}" in pictures[0][0][0]
    assert pictures[0][0][1].startswith("  late ")


def test_lines_of_what_ended_together_are_written_at_once() -> None:
    """The same lines in the same order, whoever is named at greater length than those that were announced."""
    changed = Reason("source_changed", "x.txt", "1", "2")
    done = [("a", STALE, 0), ("b", STALE, 0), ("b" * 12, changed, 1200), ("c" * 80, changed, 0), ("d", STALE, 0)]
    said: list[list[str]] = []
    for together in (True, False):
        said.append([])
        lines = Lines(Screen(), say=said[-1].append)
        with lines:
            lines.begun(RunResult(plan_id="x"), {"a": STALE, "b": STALE}, 1)
            if together:
                lines.made(done)
            else:
                for artifact_id, reason, ms in done:
                    lines.finished(artifact_id, "made", reason, ms, "")
    assert len(said[0]) == 1
    assert said[0][0].split("\n") == said[1]
    assert said[1][0] == "made     a      0 ms  never made"


def test_several_lines_are_harmless_each(capsys: pytest.CaptureFixture[str]) -> None:
    """Between them is what ends a line, and nothing else that a terminal would heed."""
    Screen().say("one\ntwo \x1b[2J\nthree")
    assert capsys.readouterr().out == "one\ntwo \N{REPLACEMENT CHARACTER}[2J\nthree\n"


def test_a_second_run_of_the_same_view_begins_anew() -> None:
    """After a better plan the next run is drawn like the first, and counts from nothing."""
    shown, _ = view()
    drawn = threading.Event()
    with shown:
        shown.begun(RunResult(plan_id="x"), {"a": STALE, "b": STALE, "c": STALE}, 2)
        shown.started("c", STALE)
        shown.finished("a", "failed", STALE, 5, "no")
        shown.finished("b", "kept", STALE, 5, "")
        shown.ended(RunResult(plan_id="x"))
        shown.begun(RunResult(plan_id="x"), {"d": STALE}, 2)
        assert picture(shown)[1:] == []
        assert picture(shown)[0].endswith("0 of 1   0 s")
        shown._pen.draw = lambda _: drawn.set()  # type: ignore[method-assign, assignment]  # to hear of it
        assert drawn.wait(30)


def test_where_no_thread_may_begin_the_lines_go_without_a_heart(monkeypatch: pytest.MonkeyPatch) -> None:
    """The system sets a limit, and what artifacts are made in comes first."""

    def start(thread: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(threading.Thread, "start", start)
    heart = Heart(print, 0.0)
    heart.start()
    heart.stop()


def test_a_log_is_told_again_in_a_second_run() -> None:
    """What beats can be stopped and started."""
    beaten = threading.Event()
    heart = Heart(beaten.set, 0.0)
    heart.start()
    heart.stop()
    beaten.clear()
    heart.start()
    assert beaten.wait(30)
    heart.stop()


def test_complaints_are_counted_once_for_failed_and_held() -> None:
    """So many stay on the screen, whichever they are; one line says that there are more."""
    shown, stream = view()
    with shown:
        shown.begun(RunResult(plan_id="x"), {f"a{n}": STALE for n in range(100)}, 1)
        for n in range(100):
            shown.finished(f"a{n}", "failed" if n < live.COMPLAINTS else "held", STALE, 5, "no")
    lines = [
        line for line in re.split(r"\n|\x1b\[J", stream.getvalue()) if line.startswith(("failed", "held", "After"))
    ]
    assert len([line for line in lines if not line.startswith("After")]) == live.COMPLAINTS
    assert [line for line in lines if line.startswith("After")] == [
        "After these 20 the others are only counted: headway status names them"
    ]


def test_a_run_that_is_stopping_says_so() -> None:
    """Somebody pressed Ctrl-C: what is waited for, and how not to."""
    shown, _ = view(stopping=lambda: "interrupted")
    with shown:
        shown.begun(RunResult(plan_id="x"), {"a": STALE}, 1)
        for name in "ab":
            shown.started(name, STALE)
        assert picture(shown)[-1] == "  Stopping; 2 still run. Ctrl-C again does not wait."
        shown.released("b")  # a command is ended at once, and a function is waited for
        assert picture(shown)[-1] == "  Stopping; 1 still run. Ctrl-C again does not wait."


def test_an_error_of_the_engine_leaves_the_streams_as_they_were() -> None:
    """Whatever ends the run, the next line is printed where it belongs, and what was said before is there."""
    before = sys.stdout
    shown, stream = view()
    shown._stream = before
    with suppress(RuntimeError), shown:
        shown.begun(RunResult(plan_id="x"), {"a": STALE}, 1)
        sys.stdout.write("said\n")
        raise RuntimeError
    assert sys.stdout is before
    assert stream.getvalue() == "said\n"


def test_a_narrower_window_is_wiped_whole() -> None:
    """Lines that a smaller window wrapped are taken away with the rest."""
    pen = live.Pen(io.StringIO(), colour=False)
    pen._drawn = [80, 10, 0]
    assert pen._wipe(40) == "\r\x1b[4A\x1b[J"
    assert pen._wipe(80) == "\r\x1b[3A\x1b[J"


@pytest.mark.parametrize(
    ("tail", "line"),
    [
        (b"", ""),
        (b"one\ntwo", "two"),
        (b"one\n\n  \n", "one"),
        (b"10%\r50%\r", "50%"),
        (b"\x1b[31mred\x1b[0m\x1b[K\n\x1b]0;title\x07", "red"),
        (b"a\tb\x00c", "a bc"),
        ("fünf\xff".encode("latin-1"), "f\ufffdnf\ufffd"),
    ],
)
def test_the_last_line_is_what_would_stand_there(tail: bytes, line: str) -> None:
    """Without colours, titles and what a carriage return has overwritten."""
    assert live.last_line(tail) == line


@pytest.mark.parametrize(("seconds", "text"), [(0.9, "0 s"), (59.9, "59 s"), (61, "1:01"), (3723, "1:02:03")])
def test_time_passes_in_few_letters(seconds: float, text: str) -> None:
    """A duration that one looks at."""
    assert live.clock(seconds) == text
