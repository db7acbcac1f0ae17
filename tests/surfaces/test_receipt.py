"""How a run ends, in words: counts, what was saved and spent, the next command; and the same for GitHub."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from headway.engine.result import Decision, Pause, RunResult
from headway.surfaces.cli.github import summary
from headway.surfaces.cli.receipt import closing, receipt
from tests.workshop import Workshop

HEADWAY = str(Path(sys.executable).with_name("headway"))


@pytest.mark.parametrize(
    ("found", "words"),
    [
        ({"kept": ["a"]}, "Nothing to do: 1 artifact is up to date."),
        ({"kept": ["a", "b"]}, "Nothing to do: 2 artifacts are up to date."),
        ({"made": ["a"], "duration_ms": 1500}, "1 made in 1.5 s. Next: headway status"),
        (
            {
                "made": ["a"],
                "kept": ["b"],
                "restored": ["c"],
                "reused": ["d", "e"],
                "duration_ms": 20,
                "saved_ms": 61000,
            },
            "1 made, 1 restored, 2 reused, 1 kept in 20 ms; 1 min 1 s of work saved. Next: headway status",
        ),
        ({"made": ["a"], "saved_ms": 999, "cost_usd": 0.424}, "1 made in 0 ms; $0.42 spent. Next: headway status"),
        ({"made": ["a"], "cost_usd": 0.0012}, "1 made in 0 ms; $0.0012 spent. Next: headway status"),
        ({"made": ["a"], "tokens": 800}, "1 made in 0 ms; 800 tokens spent. Next: headway status"),
        (
            {"failed": {"a": "no"}, "blocked": {"b": "a", "c": "a"}},
            "1 failed, 2 blocked in 0 ms. Next: headway why a",
        ),
        (
            {"decisions": [Decision("output_modified", ["a", "b"], ["--accept-edits"])]},
            "2 held in 0 ms. Next: headway why a",
        ),
        ({"moved": {"a": "x.txt"}, "made": ["a"]}, "1 made in 0 ms. Next: headway run"),
        ({"made": ["a"], "beyond": ["b"]}, "1 made, 1 left by --limit in 0 ms. Next: headway run"),
        ({"waiting": {"a": "headway claim a"}}, "1 waiting in 0 ms. Next: headway claim a"),
        (
            {"made": ["a", "b"], "waiting": {"b": "gate review", "c": "waits for b"}},
            "1 made, 1 made and waiting, 1 waiting in 0 ms. Next: headway status",
        ),
        ({"waiting": {"b": "claimed by eve", "a": "headway claim a"}}, "2 waiting in 0 ms. Next: headway claim a"),
        ({"waiting": {"a": "claimed by eve"}}, "1 waiting in 0 ms. Next: headway complete a --by eve"),
        ({"waiting": {"a": "the profile leaves no place beside b (eve)"}}, "1 waiting in 0 ms. Next: headway status"),
        (
            {"paused": Pause("interrupted"), "made": ["a"]},
            "1 made in 0 ms. Interrupted; nothing is lost. Next: headway run",
        ),
        (
            {"paused": Pause("quota", "2030-01-01T00:00:00+00:00")},
            "Nothing made in 0 ms. Paused (quota) until 2030-01-01 00:00:00Z. Next: headway run",
        ),
    ],
)
def test_the_receipt_says_what_happened_and_what_to_do(found: dict[str, Any], words: str) -> None:
    """One line: counts of whatever happened, time, savings from a second on, and one command."""
    assert receipt(RunResult(plan_id="x", **found)) == words


def test_what_waits_says_for_what_once() -> None:
    """For a command, with the options that name this plan; or for something else, in its own words."""
    result = RunResult(plan_id="x", waiting={"a": "headway claim a", "b": "waits for a", "c": "claimed by eve"})
    finish = "headway complete c --by eve --plan p.yaml"
    assert [line for _, line in closing(result, " --plan p.yaml")] == [
        "a waits: headway claim a --plan p.yaml",
        "b waits for a",
        f"c waits: claimed by eve. {finish} finishes it, {finish.replace('complete', 'release')} gives it back",
    ]


def test_the_next_command_is_about_the_same_plan() -> None:
    """Options that named the plan name it again."""
    result = RunResult(
        plan_id="x", failed={"a": "no"}, decisions=[Decision("output_modified", ["b"], ["--accept-edits"])]
    )
    assert receipt(result, " --plan two.yaml").endswith("Next: headway why a --plan two.yaml")
    assert next(line for _, line in closing(result, " --plan two.yaml")).endswith(
        "Decide: headway run --accept-edits --plan two.yaml"
    )


def test_the_end_of_a_large_run_is_short() -> None:
    """Whatever went wrong a thousand times is said a few times, and counted."""
    many = {f"a{n}": f"b{n}" for n in range(1000)}
    result = RunResult(plan_id="x", moved=many, blocked=many, waiting=many, failed=many, unstable=list(many))
    assert len(list(closing(result))) <= 32
    assert len(list(summary(result))) <= 60


PLAN = """\
id: site
goal: A site
artifacts:
  page: {produces: out/page.txt, run: "echo page > {output}"}
  style: {produces: out/style.txt, run: "printf '100%% wrong: a | b\\n' >&2; exit 3"}
  pack: {requires: [style], run: "cat {inputs.style}"}
"""


def run_on_github(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    env = {**os.environ, "GITHUB_ACTIONS": "true", "GITHUB_STEP_SUMMARY": str(folder / "summary.md")}
    return subprocess.run([HEADWAY, "run", *words], cwd=folder, env=env, capture_output=True, text=True, check=False)


def test_failures_become_annotations(tmp_path: Path) -> None:
    """On GitHub each failure is an error beside the change, escaped as workflow commands must be."""
    (tmp_path / "headway.yaml").write_text(PLAN, encoding="utf-8")
    done = run_on_github(tmp_path)
    lines = done.stdout.splitlines()
    assert done.returncode == 1
    assert "::error title=style failed::exit code 3: 100%25 wrong: a | b" in lines
    assert lines[-1].startswith("1 made, 1 failed, 1 blocked in ")


def test_an_edit_becomes_a_warning(tmp_path: Path) -> None:
    """What is held back for a decision is told beside the change, too."""
    (tmp_path / "headway.yaml").write_text(PLAN.replace("exit 3", "echo s > {output}"), encoding="utf-8")
    run_on_github(tmp_path)
    (tmp_path / "out" / "page.txt").write_text("by hand", encoding="utf-8")
    done = run_on_github(tmp_path)
    assert done.returncode == 3
    assert "::warning title=page held::out/page.txt was edited" in done.stdout


def test_the_receipt_becomes_a_step_summary(tmp_path: Path) -> None:
    """Appended in Markdown to what other steps wrote: the receipt, what failed and why, what it blocks."""
    (tmp_path / "headway.yaml").write_text(PLAN, encoding="utf-8")
    (tmp_path / "summary.md").write_text("another step\n", encoding="utf-8")
    run_on_github(tmp_path)
    first, title, _, line, _, *table = (tmp_path / "summary.md").read_text(encoding="utf-8").splitlines()
    assert (first, title) == ("another step", "### headway: site failed")
    assert line.startswith("1 made, 1 failed, 1 blocked in ")
    assert table == [
        "| failed | why |",
        "| --- | --- |",
        "| `style` | exit code 3: 100% wrong: a \\| b |",
        "",
        "- style blocks pack",
        "",
    ]


def test_json_stays_json_on_github(tmp_path: Path) -> None:
    """Annotations are then on stderr, where GitHub reads them as well."""
    (tmp_path / "headway.yaml").write_text(PLAN, encoding="utf-8")
    done = run_on_github(tmp_path, "--json")
    assert done.stdout.startswith("{\n")
    assert "::error title=style failed::" in done.stderr


def test_a_summary_that_cannot_be_written_is_no_failure(tmp_path: Path) -> None:
    """The run is what counts."""
    (tmp_path / "headway.yaml").write_text(PLAN.replace("exit 3", "echo s > {output}"), encoding="utf-8")
    (tmp_path / "summary.md").mkdir()
    done = run_on_github(tmp_path)
    assert done.returncode == 0
    assert done.stderr == "The step summary could not be written: Is a directory\n"


def test_what_was_saved_is_what_it_took(tmp_path: Path) -> None:
    """What is not made counts with what it took when it was; also when it is reused for the second time."""
    artifact = "{produces: a.txt, run: 'sleep 1.1; echo {vars.v} > {output}'}"
    plan = f"id: p\ngoal: g\nvars: {{v: one}}\nartifacts:\n  a: {artifact}\n"
    (tmp_path / "headway.yaml").write_text(plan, encoding="utf-8")

    def last_line(*words: str) -> str:
        done = subprocess.run([HEADWAY, "run", *words], cwd=tmp_path, capture_output=True, text=True, check=True)
        return done.stdout.splitlines()[-1]

    assert "saved" not in last_line()
    assert "saved" not in last_line("--set", "v=two")
    for value in ("one", "two", "one"):
        assert "1 reused in" in (line := last_line("--set", f"v={value}"))
        assert re.search(r"; [1-9]\d*\.\d s of work saved\.", line)
    (tmp_path / "a.txt").unlink()
    assert re.search(r"1 restored in .*; [1-9]\d*\.\d s of work saved\.", last_line())


def test_an_answer_is_about_no_more_than_was_asked_for(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Whoever runs a part of a plan decides about the edits in that part: others were not even looked at for them."""
    shop = Workshop(tmp_path)
    shop.file.write_text(
        "id: p\ngoal: g\nartifacts:\n"
        "  'a one': {produces: a.txt, run: 'echo a > {output}'}\n  b: {produces: b.txt, run: 'echo b > {output}'}\n"
    )
    assert shop.run(capsys, "run").code == 0
    for name in "ab":
        (tmp_path / f"{name}.txt").write_text(f"my {name}\n")
    out = shop.run(capsys, "run", "a one").out
    assert "Decide: headway run 'a one' --accept-edits" in out
    assert "or  headway run 'a one' --discard-edits" in out
    assert shop.run(capsys, "run", "a one", "--accept-edits").code == 0
    assert "b was edited" in shop.run(capsys, "run").out


@pytest.mark.parametrize("count", [8, 9, 30])
def test_what_is_kept_after_all_is_named_as_far_as_anybody_reads_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], count: int
) -> None:
    """Of more than a few, how many there are; the receipt and the document know all of them."""
    shop = Workshop(tmp_path)
    first = "id: p\ngoal: g\nartifacts:\n  first: {run: \"tr -d ' ' < in.txt > {output}\", sources: [in.txt], "
    first += "produces: a}\n"
    more = [
        f"  b{n}: {{requires: [first], run: 'cp {{inputs.first}} {{output}}', produces: b{n}}}" for n in range(count)
    ]
    shop.file.write_text(first + "\n".join(more) + "\n")
    (tmp_path / "in.txt").write_text("a b")
    shop.run(capsys, "run")
    (tmp_path / "in.txt").write_text("a  b")
    said = shop.run(capsys, "run").out.splitlines()
    named = [line.split()[1] for line in said if line.startswith("kept") and " more " not in line]
    assert named == [f"b{n}" for n in range(min(count, 8))]
    rest = [line.split()[1:] for line in said if line.startswith("kept") and " more " in line]
    assert rest == ([["and", str(count - 8), "more", "inputs", "came", "out", "the", "same"]] if count > 8 else [])
    assert said[-1].startswith(f"1 made, {count} kept in ")
    (tmp_path / "in.txt").write_text("ab")
    assert len(shop.run(capsys, "run", "--json").json["kept"]) == count


def test_what_has_passed_its_gates_is_said_to_have(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """It was made before, and nothing that it requires has to do with that."""
    shop = Workshop(tmp_path)
    plan = "id: p\ngoal: g\nartifacts:\n  a: {run: 'echo hi > {output}', produces: a.txt}\n"
    shop.file.write_text(plan)
    shop.run(capsys, "run")
    shop.file.write_text(plan.replace("a.txt", "a.txt, gates: {ready: {run: 'test -e a.txt'}}"))
    said = shop.run(capsys, "run").out
    assert "through its gates" in said
    assert "inputs came out" not in said


def test_those_that_are_not_named_are_told_by_what_is_true_of_all(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Of eleven that have passed a new gate, the last three have as well."""
    shop = Workshop(tmp_path)
    line = "  b{}: {{run: 'echo hi > {{output}}', produces: b{}{}}}\n"
    plan = "id: p\ngoal: g\nartifacts:\n"
    shop.file.write_text(plan + "".join(line.format(n, n, "") for n in range(11)))
    shop.run(capsys, "run")
    gate = ", gates: {ready: {run: 'test -e b0'}}"
    shop.file.write_text(plan + "".join(line.format(n, n, gate) for n in range(11)))
    kept = [said for said in shop.run(capsys, "run").out.splitlines() if said.startswith("kept")]
    assert (len(kept), kept[-1].split()) == (9, ["kept", "and", "3", "more", "through", "its", "gates"])
