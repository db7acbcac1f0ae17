"""Reading back: what attempts left and printed, how outputs differ, and the story of a plan."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from headway.errors import NotFound
from headway.reading import Reading
from headway.surfaces.cli.screen import Screen
from headway.work import Meant, Work
from tests.bench import Bench, after
from tests.workshop import Done, Workshop

Cli = Callable[..., Done]


@pytest.fixture
def shop(tmp_path: Path) -> Workshop:
    """A project whose plan was run."""
    return Workshop(tmp_path / "project")


@pytest.fixture
def cli(shop: Workshop, capsys: pytest.CaptureFixture[str]) -> Cli:
    """Its command line, in this process."""
    return lambda *words: shop.run(capsys, *words)


def reading(bench: Bench) -> Reading:
    return Reading(Work(bench.project, environ=bench.environ))


PLAN = Meant("plan")


# Show.


def test_show_tells_what_an_attempt_left_and_printed(cli: Cli, shop: Workshop) -> None:
    """Outputs, stdout, stderr; and each of them alone, byte for byte."""
    shop.edit('run: "echo model > {output}"', 'run: "echo said; echo warned >&2; echo model > {output}"')
    cli("run")
    shown = cli("show", "model").out
    assert shown.startswith("model: made in ")
    assert "--- src/model.py (6 bytes, " in shown
    assert "--- stdout (5 bytes)\nsaid" in shown
    assert "--- stderr (7 bytes)\nwarned" in shown
    assert [cli("show", "model", f"--{name}").out for name in ("output", "stdout", "stderr")] == [
        "model\n",
        "said\n",
        "warned\n",
    ]
    assert cli("show", "src/model.py", "--json").json["stdout"]["text"] == "said\n"


def test_show_of_what_is_not_there_says_so_beside_the_answer(cli: Cli, shop: Workshop) -> None:
    """A command that writes all it is answered into its output prints nothing: that is where to look."""
    cli("run")
    said = {name: cli("show", "model", f"--{name}") for name in ("response", "stdout", "stderr", "prompt")}
    assert {(done.code, done.out) for done in said.values()} == {(0, "")}
    seq = cli("show", "model", "--json").json["seq"]
    nothing = f"Event {seq} of model printed nothing to"
    there = f"headway show model --output --project {shop.root}"
    assert {name: done.err for name, done in said.items()} == {
        "response": f"{nothing} stdout: {there} is what it wrote.\n",
        "stdout": f"{nothing} stdout.\n",
        "stderr": f"{nothing} stderr.\n",
        "prompt": f"Event {seq} of model left no prompt.\n",
    }


def test_show_of_a_folder_lists_its_files(cli: Cli, shop: Workshop, monkeypatch: pytest.MonkeyPatch) -> None:
    """Names and sizes, of many the first; also of one that is not there any more, and all of them for machines."""
    shop.edit("produces: src/model.py", "produces: out/")
    command = "mkdir {output}sub; seq 9 > {output}sub/n; printf x > {output}x; chmod +x {output}x; ln -s x {output}y"
    shop.edit('run: "echo model > {output}"', f'run: "{command}"')
    cli("run")
    listed = [" " * 9 + "18  sub/n", " " * 10 + "1  x  exec", " " * 11 + "  y  link"]
    assert cli("show", "model").out.splitlines()[2:] == listed
    refused = cli("show", "model", "--output")
    assert (refused.code, "lists its files" in refused.err) == (2, True)
    shutil.rmtree(shop.root / "out")
    assert cli("show", "model").out.splitlines()[2:] == listed
    (document,) = cli("show", "model", "--json").json["outputs"]
    found = {file["path"]: (file["size"], file["kind"]) for file in document["files"]}
    assert (found["sub/n"], found["x"], found["y"][1]) == ((18, "file"), (1, "exec"), "link")
    monkeypatch.setattr("headway.surfaces.cli.verbs.show.FILES", 1)
    assert cli("show", "model").out.splitlines()[2:] == [listed[0], "… and 2 files more: --json lists all of them"]


def test_show_of_a_text_says_it_once_and_on_a_terminal_not_without_end(
    cli: Cli, shop: Workshop, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What a command without files prints is its text; whoever reads along is told how to see all of it."""
    shop.file.write_text("id: api\ngoal: g\nartifacts: {long: {run: 'seq 1 9999'}}\n")
    cli("run")
    assert cli("show", "long").out.count("\n9999\n") == 1
    assert "stdout" not in cli("show", "long").out
    monkeypatch.setattr(Screen, "is_terminal", True)
    shown = cli("show", "long").out
    assert (len(shown) < 21_000, "\n9999\n" in shown) == (True, False)
    assert "characters more: --output shows all of it" in shown
    assert cli("show", "long", "--output").out.endswith("\n9999\n")


def test_show_of_prints_that_are_gone_claims_no_size(cli: Cli, shop: Workshop) -> None:
    """Their size went with them."""
    shop.edit('run: "echo model > {output}"', 'run: "echo warned >&2; echo model > {output}"')
    cli("run")
    shutil.rmtree(shop.root / ".headway/blobs")
    assert "--- stderr\n[its bytes are not stored any more]" in cli("show", "model").out


def test_show_tells_of_a_failed_attempt_and_of_earlier_ones(cli: Cli, shop: Workshop) -> None:
    """The newest first; --at goes back to any of them."""
    cli("run")
    made = cli("show", "model", "--json").json["seq"]
    shop.edit('run: "echo model > {output}"', 'run: "echo half > {output}; echo why >&2; exit 4"')
    cli("run")
    failed = cli("show", "model").out
    assert "error: exit code 4: why" in failed
    assert "half" in failed, "what it left"
    assert f"earlier: {made} (headway show model --at SEQ" in failed
    assert cli("show", "model", "--at", str(made), "--output").out == "model\n"
    assert cli("show", "model", "--at", str(made + 1), "--json").json["seq"] == made, "the newest as of that event"


def test_show_of_what_was_never_made_says_so(cli: Cli, shop: Workshop) -> None:
    """As an error with the next command."""
    shop.save()
    done = cli("show", "routes")
    assert (done.code, "Nothing was ever made of routes" in done.err) == (2, True)
    assert cli("show", "*").code == 2, "one at a time"


def test_bytes_that_are_not_stored_are_read_from_the_disk_while_they_are_there(bench: Bench) -> None:
    """And after that it is said that they are gone."""
    bench.largest = 3
    bench.plan("a")
    bench.run()
    assert reading(bench).show(PLAN, "a").outputs[0].text == "a()"
    bench.settings(store_up_to=1)
    bench.largest = None
    bench.change("a", version="2")
    bench.makes("a", "long text")
    bench.run()
    (piece,) = reading(bench).show(PLAN, "a").outputs
    assert piece.text == "long text"
    bench.delete("out/a.txt")
    (piece,) = reading(bench).show(PLAN, "a").outputs
    assert (piece.text, piece.what) == (None, "its bytes are not stored any more")


# Diff.


def test_diff_is_against_the_newest_completion_that_differs(bench: Bench) -> None:
    """As a unified diff."""
    bench.plan("a")
    bench.makes("a", "one\ntwo\n")
    bench.run()
    first = bench.state().completed["a"].seq
    bench.makes("a", "one\n2\n")
    bench.run(rerun_all=True)
    bench.run(rerun_all=True)
    found = reading(bench).diff(PLAN, "a")
    assert (found.since, found.to) == (first, 0)
    assert found.deltas[0].lines == [
        "--- a/out/a.txt",
        "+++ b/out/a.txt",
        "@@ -1,2 +1,2 @@",
        " one",
        "-two",
        "+2",
    ]


def test_diff_shows_what_somebody_edited(bench: Bench) -> None:
    """The disk against what was recorded; with --at, against any earlier point."""
    bench.plan("a")
    bench.makes("a", "one\n")
    bench.run()
    seq = bench.state().completed["a"].seq
    assert reading(bench).diff(PLAN, "a").deltas == []
    bench.edit("a", "one\nmore\n")
    found = reading(bench).diff(PLAN, "a")
    assert found.since == seq
    assert found.deltas[0].lines[-1] == "+more"
    with pytest.raises(NotFound):
        reading(bench).diff(PLAN, "a", at=seq - 1)


def test_diff_shows_where_a_file_has_no_last_line_end(bench: Bench) -> None:
    """Or nobody could tell what differs."""
    bench.plan("a")
    bench.makes("a", "one\ntwo\n")
    bench.run()
    bench.edit("a", "one\ntwo")
    assert reading(bench).diff(PLAN, "a").deltas[0].lines[-3:] == ["-two", "+two", "\\ No newline at end of file"]


def test_diff_of_a_file_that_others_change_in_place_is_about_what_the_artifact_left(bench: Bench) -> None:
    """What a later one has made of it is that one's; of the last one, what is on disk counts."""
    bench.plan(
        a={"run": "echo one > {output}", "produces": ["x.txt"]},
        b={"run": "echo more >> x.txt", "modifies": ["x.txt"], "requires": ["a"], "produces": []},
    )
    bench.run()
    assert reading(bench).diff(PLAN, "a").deltas == []
    bench.change("a", run="echo two > {output}")
    bench.run()
    assert reading(bench).diff(PLAN, "a").deltas[0].lines[-2:] == ["-one", "+two"]
    assert reading(bench).diff(PLAN, "b").deltas[0].lines[-3:] == ["-one", "+two", " more"]
    bench.write("x.txt", "two\nmore\nmine\n")
    assert reading(bench).diff(PLAN, "b").deltas[0].lines[-1] == "+mine"


def test_diff_goes_from_any_event_to_any_other(bench: Bench) -> None:
    """Without looking at the disk."""
    bench.plan("a")
    seqs = []
    for text in ("1\n", "2\n", "3\n"):
        bench.makes("a", text)
        bench.run(rerun_all=True)
        seqs.append(bench.state().completed["a"].seq)
    found = reading(bench).diff(PLAN, "a", at=seqs[0], to=seqs[1])
    assert (found.since, found.to, found.deltas[0].lines[-2:]) == (seqs[0], seqs[1], ["-1", "+2"])
    back = reading(bench).diff(PLAN, "a", at=seqs[2], to=seqs[0])
    assert (back.since, back.to, back.deltas[0].lines[-2:]) == (seqs[2], seqs[0], ["-3", "+1"])


def test_binary_and_large_outputs_are_compared_as_a_whole(bench: Bench) -> None:
    """Said plainly, with both sizes."""
    bench.plan("a")
    bench.makes("a", lambda: b"\0\1\2")
    bench.run()
    bench.makes("a", lambda: b"\0\1\2\3")
    bench.run(rerun_all=True)
    (delta,) = reading(bench).diff(PLAN, "a").deltas
    assert (delta.lines, delta.note.split(":")[0]) == ([], "binary")
    assert "3 bytes" in delta.note
    assert "4 bytes" in delta.note


def test_folders_are_compared_file_by_file(bench: Bench) -> None:
    """What came, what went, and what changed inside."""
    bench.plan(d={"produces": ["out/d/"], "run": "cp -R src/. {output}"})
    bench.write("src/same", "x\n")
    bench.write("src/old", "x\n")
    bench.write("src/changed", "1\n")
    bench.run()
    bench.delete("src/old")
    bench.write("src/new", "y\n")
    bench.write("src/changed", "2\n")
    bench.run(rerun_all=True)
    deltas = {delta.path: (delta.change, delta.lines[-1]) for delta in reading(bench).diff(PLAN, "d").deltas}
    assert deltas == {
        "out/d/changed": ("changed", "+2"),
        "out/d/new": ("added", "+y"),
        "out/d/old": ("removed", "-x"),
    }
    bench.write("out/d/new", "edited\n")
    assert [d.path for d in reading(bench).diff(PLAN, "d").deltas] == ["out/d/new"], "against the disk"


def test_the_diff_verb_prints_it(cli: Cli, shop: Workshop) -> None:
    """As text and as JSON, and where nothing differs it says so."""
    cli("run")
    assert "is what it was as of event" in cli("diff", "model").out
    (shop.root / "src/model.py").write_text("mine\n")
    assert cli("diff", "model").out.splitlines()[1:] == [
        "--- a/src/model.py",
        "+++ b/src/model.py",
        "@@ -1 +1 @@",
        "-model",
        "+mine",
    ]
    assert cli("diff", "model", "--json").json["changes"][0]["change"] == "changed"
    assert "headway diff model" in cli("status").out, "status leads there"


# Log.


def flaky(succeeds_at: int) -> Callable[[], str]:
    """A recipe that fails until it does not."""
    calls = []

    def make() -> str:
        calls.append(1)
        if len(calls) < succeeds_at:
            raise ValueError("not yet")
        return "done"

    return make


def told(bench: Bench, capsys: pytest.CaptureFixture[str], *words: str) -> list[str]:
    """The log, without numbers, times and authors."""
    from headway.surfaces.cli.main import main

    main(["log", "--plan-id", "plan", "--project", str(bench.root), *words])
    return [line.split("  ", 3)[-1].strip() for line in capsys.readouterr().out.splitlines()]


def test_retries_are_seen_in_the_run_in_the_log_and_in_why(bench: Bench, capsys: pytest.CaptureFixture[str]) -> None:
    """Of what worked in the end, and of what did not."""
    retry = {"retry": {"attempts": 3, "backoff": 0}}
    bench.plan(a=retry, b=retry)
    bench.makes("a", flaky(3))
    bench.makes("b", flaky(9))
    ran = bench.run()
    assert (ran.notes["a"], bench.state().completed["a"].attempts) == ("3 attempts", 3)
    assert ran.notes["b"].startswith("ValueError: not yet")
    assert ran.notes["b"].endswith("(3 attempts)")
    lines = told(bench, capsys)
    assert any(line.startswith("made a in") and line.endswith("(3 attempts)") for line in lines)
    assert any(line.startswith("failed b (3 attempts): ValueError") for line in lines)
    assert bench.why("b")["error"]["attempts"] == 3


def test_a_run_that_was_killed_and_resumed_reads_as_one_story(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A real kill -9: the second run says after which it goes on, and the end sums up both."""
    (tmp_path / "headway.yaml").write_text(
        "id: plan\ngoal: g\njobs: 1\nartifacts:\n"
        "  a: {run: 'echo a > {output}', produces: a.txt}\n"
        "  b: {requires: [a], run: 'test -e go || sleep 60; echo b > {output}', produces: b.txt}\n"
    )
    command = [str(Path(sys.executable).with_name("headway")), "run"]
    process = subprocess.Popen(command, cwd=tmp_path, stdout=subprocess.DEVNULL, start_new_session=True)
    bench = Bench(tmp_path)
    wait_for(lambda: "b" in bench.state().claims, process)
    process.kill()
    process.wait(30)
    (tmp_path / "go").write_text("")
    assert subprocess.run(command, cwd=tmp_path, check=False, timeout=60, capture_output=True).returncode == 0
    lines = told(bench, capsys)
    starts = [line for line in lines if line.startswith("run ") and " stale" in line]
    first = starts[0].split()[1]
    assert starts[0].endswith("started: 2 stale, 1 at once")
    assert f" goes on after run {first} ended without a word: 1 stale" in starts[1]
    assert next(line for line in lines if " completed" in line).endswith(": 2 made in 2 runs")


def wait_for(ready: Callable[[], bool], process: subprocess.Popen[Any]) -> None:
    """Until something is so; a process that ends meanwhile is an error."""
    while True:
        try:
            if ready():
                return
        except (AssertionError, LookupError, NotFound):
            pass
        assert process.poll() is None, "it ended before"
        time.sleep(0.02)


def test_an_interruption_is_named_where_the_story_goes_on(bench: Bench, capsys: pytest.CaptureFixture[str]) -> None:
    """Paused is not the same as gone."""
    bench.plan("a -> b")
    done: list[str] = []
    bench.makes("a", after(lambda: done.append("a"), "x"))
    bench.run(stop=lambda: "interrupted" if done else "")
    bench.run()
    lines = told(bench, capsys)
    assert any(" goes on after run " in line and " was interrupted: " in line for line in lines)


def test_the_log_is_followed_as_it_grows(bench: Bench) -> None:
    """A real process sees what another one appends, line by line, until it is interrupted."""
    bench.plan("a -> b")
    words = ["log", "--follow", "--plan-id", "plan", "--project", str(bench.root)]
    command = [str(Path(sys.executable).with_name("headway")), *words]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    assert "plan created: 2 artifacts" in process.stdout.readline()
    bench.run()
    for line in process.stdout:
        if " completed: 2 made" in line:
            break
    process.send_signal(signal.SIGINT)
    assert process.wait(30) == 130
    process.stdout.close()


def test_what_is_followed_is_not_of_the_past(cli: Cli, shop: Workshop) -> None:
    """To follow is to look ahead: an event to stop at makes no sense."""
    shop.save()
    assert cli("log", "--follow", "--at", "1").code == 2


@pytest.mark.parametrize("words", [("log",), ("log", "--trace"), ("log", "--follow"), ("show", "a"), ("diff", "b")])
def test_a_hole_in_the_story_is_damage_and_is_never_passed_over(
    cli: Cli, shop: Workshop, words: tuple[str, ...]
) -> None:
    """Also before the newest snapshot, where the state does not depend on it; the file is as long as it was."""
    spoil_old_event(cli, shop)
    assert cli("status").code == 0, "the state is known all the same"
    refused = cli(*words)
    assert (refused.code, refused.out) == (4, "")
    assert "The ledger is damaged" in refused.err
    assert "headway doctor" in refused.err.splitlines()[-1]


def test_what_a_repair_set_aside_is_missing_by_name(cli: Cli, shop: Workshop) -> None:
    """The log says which events are gone, and an earlier state that nobody knows any more is said to be that."""
    seq = spoil_old_event(cli, shop)
    assert f"It cost event {seq} of the history" in cli("doctor", "--repair").out
    told = [line.split() for line in cli("log").out.splitlines()]
    assert [str(seq), "event", str(seq), "is", "gone"] in told
    assert [int(words[0]) for words in told] == sorted({int(words[0]) for words in told})
    lost = cli("plans", "show", "--at", str(seq + 1))
    assert lost.code == 2
    assert f"as of event {seq + 1} cannot be told: events before it are gone" in lost.err


def spoil_old_event(cli: Cli, shop: Workshop) -> int:
    """Flip a letter of the first completion, which a later snapshot makes up for; its number."""
    shop.file.write_text(
        "id: api\ngoal: g\nartifacts:\n"
        '  a: {produces: a.txt, run: "echo a > {output}"}\n'
        '  b: {requires: [a], produces: b.txt, run: "cp a.txt b.txt"}\n'
    )
    cli("run")
    lines = shop.ledger().read_bytes().splitlines(keepends=True)
    number = next(n for n, line in enumerate(lines) if b'"type":"artifact_completed"' in line)
    lines[number] = lines[number].replace(b'"by":"cli"', b'"by":"clj"')
    shop.ledger().write_bytes(b"".join(lines))
    return number + 1


def test_the_last_events_are_counted_without_snapshots(cli: Cli, shop: Workshop) -> None:
    """In text, as JSON, and when following: nothing happens in a snapshot."""
    shop.save()
    cli("profile", "set", "--max-concurrent-tasks", "4")
    cli("run")
    plain = [int(line.split()[0]) for line in cli("log").out.splitlines()]
    everything = [event["seq"] for event in cli("log", "--json").json["events"]]
    assert everything == list(range(1, everything[-1] + 1)), "nothing is left out of the whole"
    assert len(plain) < len(everything), "there is a snapshot among them"
    assert [event["seq"] for event in cli("log", "--json", "-n", "3").json["events"]] == plain[-3:]
    assert [event["seq"] for event in cli("log", "--json", "--all", "-n", "3").json["events"]] == everything[-3:]
    words = [sys.executable, "-m", "headway", "log", "--follow", "-n", "3", "--project", str(shop.root)]
    with subprocess.Popen(words, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert [int(process.stdout.readline().split()[0]) for _ in range(3)] == plain[-3:]
        process.send_signal(signal.SIGINT)
        assert process.wait(30) == 130


def test_the_trace_has_the_events_of_the_rfc(bench: Bench, capsys: pytest.CaptureFixture[str]) -> None:
    """Plan, waves from 0, artifacts with their times; from the ledger, one JSON line each."""
    from headway.surfaces.cli.main import main

    bench.plan("a b -> c")
    bench.run()
    main(["log", "--trace", "--plan-id", "plan", "--project", str(bench.root)])
    events = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert all(event.pop("ts").endswith("Z") for event in events)
    for event in events:
        event.pop("duration_ms", None)
        event.pop("run", None)
    assert events == [
        {"event": "plan_created", "artifact_count": 3},
        {"event": "incremental_analysis", "to_build": ["a", "b", "c"], "skip": 0},
        {"event": "wave_start", "wave": 0, "artifacts": ["a", "b"]},
        {"event": "artifact_complete", "id": "a", "how": "made"},
        {"event": "artifact_complete", "id": "b", "how": "made"},
        {"event": "wave_complete", "wave": 0},
        {"event": "wave_start", "wave": 1, "artifacts": ["c"]},
        {"event": "artifact_complete", "id": "c", "how": "made"},
        {"event": "wave_complete", "wave": 1},
        {"event": "execution_complete", "status": "completed"},
    ]


def test_the_trace_tells_failures_and_what_was_cut_off(bench: Bench, capsys: pytest.CaptureFixture[str]) -> None:
    """A wave with a failure is not complete; one that came out the same needs nobody."""
    from headway.surfaces.cli.main import main

    bench.plan("a -> b -> c")
    bench.run()
    bench.change("a", description="x")
    bench.run()
    bench.change("b", version="2")
    bench.makes("b", flaky(9))
    bench.run()
    main(["log", "--trace", "--plan-id", "plan", "--project", str(bench.root), "--json"])
    trace = json.loads(capsys.readouterr().out)["trace"]
    names = [(event["event"], event.get("wave", event.get("id"))) for event in trace]
    assert names[-9:] == [
        ("incremental_analysis", None),
        ("wave_start", 0),
        ("artifact_complete", "a"),
        ("wave_complete", 0),
        ("execution_complete", None),
        ("incremental_analysis", None),
        ("wave_start", 1),
        ("artifact_failed", "b"),
        ("execution_complete", None),
    ]


# Plans.


def test_plans_diff_goes_from_version_to_version(cli: Cli, shop: Workshop) -> None:
    """The newest against the one before, any two, any event, or two plans."""
    shop.save()
    assert "has one version only" in cli("plans", "diff").out
    shop.edit("The user model", "Another model")
    shop.save()
    shop.edit("  routes:", "  more: {run: echo x}\n  routes:")
    shop.save()
    assert cli("plans", "diff").out.splitlines() == ["version 2 → version 3", "  + more"]
    both = cli("plans", "diff", "--from", "1").out
    assert "description: The user model → Another model" in both
    assert cli("plans", "diff", "--from", "1", "--to", "2", "--json").json["added"] == []
    assert cli("plans", "diff", "--at", "1").out.splitlines()[0] == "event 1 → version 3"
    assert cli("plans", "diff", "--from", "9").code == 2
    cli("plans", "new", str(shop.file), "--plan-id", "api")
    (shop.root / "two.yaml").write_text("id: two\ngoal: Build an API\nartifacts: {model: {run: echo}}\n")
    cli("plans", "new", str(shop.root / "two.yaml"))
    assert "  - routes" in cli("plans", "diff", "api", "two").out


def test_a_template_is_the_same_plan_again(cli: Cli, shop: Workshop) -> None:
    """Under another name: read back, nothing differs."""
    shop.save()
    (shop.root / "copy.yaml").write_text(cli("plans", "template", "--id", "copy").out)
    assert cli("plans", "new", str(shop.root / "copy.yaml")).code == 0
    assert cli("plans", "diff", "api", "copy").out == "api and copy are the same plan.\n"
    assert "goal: Another goal" in cli("plans", "template", "--goal", "Another goal").out


def test_clean_deletes_what_is_finished_old_and_nobodys(cli: Cli, shop: Workshop) -> None:
    """A dry run says which; a plan whose file is there stays."""
    cli("run")
    other = shop.root / "other.yaml"
    other.write_text("id: other\ngoal: g\nartifacts: {x: {run: echo x}}\n")
    unfinished = shop.root / "third.yaml"
    unfinished.write_text("id: third\ngoal: g\nartifacts: {x: {run: 'exit 1'}}\n")
    for file in (other, unfinished):
        cli("run", "--plan", str(file))
    other.unlink()
    unfinished.unlink()
    assert cli("plans", "clean", "--json").json == {"deleted": []}, "nothing is a week old"
    assert cli("plans", "clean", "--days", "0", "-n", "--json").json == {"would_delete": ["other"]}
    assert "other" in cli("plans", "list").out
    assert cli("plans", "clean", "--days", "0").out == "Deleted 1 plan: other\n"
    listed = {plan["plan_id"] for plan in cli("plans", "list", "--json").json["plans"]}
    assert listed == {"api", "third"}


# The past, and the next command.


def test_every_read_goes_back_in_time(cli: Cli, shop: Workshop) -> None:
    """--at: status, why, show, log, plans show, next."""
    cli("run")
    seq = cli("status", "--json").json["seq"]
    shop.edit("The user model", "Another model")
    cli("run")
    assert cli("status", "--at", "1", "--json").json["progress"] == {"done": 0, "total": 2}
    assert "as of event 1" in cli("status", "--at", "1").out
    assert cli("why", "model", "--at", "1", "--json").json["status"] == "pending"
    assert cli("why", "model", "--at", str(seq), "--json").json["freshness"] == "fresh", "as the plan was then"
    assert [offer["artifact"] for offer in cli("next", "--at", "1", "--json").json["next"]] == ["model"]


def test_the_next_command_names_the_plan_where_it_must(cli: Cli, shop: Workshop) -> None:
    """Whoever copies it reaches the same plan."""
    shop.save()
    (shop.root / "two.yaml").write_text("id: two\ngoal: g\nartifacts: {x: {run: echo x}}\n")
    cli("plans", "new", str(shop.root / "two.yaml"))
    where = f" --plan-id two --project {shop.root}"
    assert cli("status", "--plan-id", "two").out.endswith(f"Next: headway run{where}\n")
    assert cli("why", "x", "--plan-id", "two").out.endswith(f"Next: headway run x{where}\n")
    assert cli("run", "-n", "--plan-id", "two").out.endswith(f"Next: headway run{where}\n")
    assert cli("next", "--plan-id", "two").out.startswith(f"headway run x{where}")


def test_exit_of_status_check_is_one_where_something_is_open(cli: Cli, shop: Workshop) -> None:
    """For scripts: 1 while stale, 0 when all is up to date."""
    assert cli("status", "--check").code == 1
    cli("run")
    assert cli("status", "--check").code == 0
    os.unlink(shop.root / "src/model.py")
    assert cli("status", "--check").code == 1


@pytest.mark.parametrize("words", [("diff", "model"), ("restore", "model")])
def test_an_event_that_there_is_not_is_refused_whoever_is_asked(cli: Cli, words: tuple[str, ...]) -> None:
    """Not taken for the newest that there is."""
    cli("run")
    refused = cli(*words, "--at", "999")
    assert (refused.code, "has no event 999" in refused.err) == (2, True)


def test_where_more_events_are_known_than_are_named_it_is_said(bench: Bench) -> None:
    """Otherwise the first of them seems to be the first of all."""
    bench.plan("a")
    for number in range(7):
        bench.change("a", version=str(number))
        bench.makes("a", str(number))
        bench.run()
    with pytest.raises(NotFound) as refused:
        reading(bench).diff(PLAN, "a", at=2)
    assert str(refused.value.facts["recorded at"]).startswith("…, event ")


def test_lines_that_end_as_elsewhere_are_shown_as_lines(cli: Cli, shop: Workshop) -> None:
    """What a csv writer leaves is no binary; with --output it is what it is, byte for byte."""
    shop.edit('run: "echo model > {output}"', "run: \"printf 'a,b\\r\\n1,2\\r\\n' > {output}\"")
    cli("run")
    assert "\na,b\n1,2\n" in cli("show", "model").out


def test_a_pipe_at_an_output_is_not_waited_for(bench: Bench) -> None:
    """It has no bytes that could be compared; nor can it be brought back once it was taken away."""
    bench.plan("a")
    bench.run()
    bench.delete("out/a.txt")
    os.mkfifo(bench.path("out/a.txt"))
    compared = reading(bench).diff(PLAN, "a")
    assert [delta.note.startswith("no file: ") for delta in compared.deltas] == [True]
    ran = bench.run(on_edit="discard")
    assert (ran.log, ran.why["a"]) == (["restored a"], "out/a.txt is missing")


def test_a_run_that_leaves_something_to_decide_was_not_stopped(cli: Cli, shop: Workshop) -> None:
    """It has done all that it could."""
    cli("run")
    (shop.root / "src/model.py").write_text("mine")
    assert cli("run").code == 3
    status = cli("status")
    assert "is yours to decide" in status.out
    assert "stopped on the way" not in status.out
