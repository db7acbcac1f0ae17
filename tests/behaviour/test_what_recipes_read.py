"""What a recipe reads counts, whoever changes it and whenever; what it leaves behind does not."""

from __future__ import annotations

import errno
import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from headway import Context, Plan
from headway.core.commands import ChangePlan, CompleteArtifact, StartArtifacts
from headway.core.graph import ArtifactGraph
from headway.core.paths import beginning_as
from headway.core.plan import ArtifactSpec
from headway.core.state import Fingerprint, Output
from headway.engine.order import warnings_of_order
from headway.engine.shared import Shared
from headway.files.observe import Observer
from headway.surfaces.cli.main import main
from tests.bench import Bench


@pytest.fixture(autouse=True)
def in_a_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every project here is a folder of its own."""
    monkeypatch.chdir(tmp_path)


def plan_with(**variables: Any) -> Plan:
    """One function that reads a variable, and one that reads none."""
    plan = Plan("Variables", id="variables", vars=variables)

    @plan.artifact(produces="reads.txt")
    def reads(ctx: Context) -> str:
        return str(ctx.vars["title"])

    @plan.artifact(produces="does_not.txt")
    def does_not(ctx: Context) -> str:
        return ctx.id

    return plan


def test_a_variable_that_a_function_reads_counts() -> None:
    """A changed variable makes functions that read any of them again, and no others."""
    plan_with(title="One").run()
    assert plan_with(title="Two").run().made == ["reads"]
    assert Path("reads.txt").read_text() == "Two"
    assert plan_with(title="One").run().reused == ["reads"]
    assert plan_with(title="One", other="too").run().made == ["reads"]


def test_a_variable_that_a_recipe_does_not_read_is_not_why_it_changed(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """What was kept when the variable changed is not made for it later, and nobody is told so."""
    Path("lib.py").write_text("def h(): return 'h'\ndef r(ctx): return str(ctx.vars['x'])\n")
    Path("ask.md").write_text("{{ vars.y }}")
    Path("say.py").write_text("def say(ctx): return ctx.prompt\n")
    Path("headway.yaml").write_text(
        "id: named\ngoal: g\nvars: {x: 1, y: 1}\nartifacts:\n"
        "  h: {produces: h.txt, make: 'lib:h'}\n"
        "  r: {produces: r.txt, make: 'lib:r'}\n"
        "  c: {produces: c.txt, run: 'echo {vars.y} $FOO > {output}', env: [FOO]}\n"
        "  p: {produces: p.txt, make: 'say:say', templates: ask.md}\n"
    )

    def told(*words: str) -> dict[str, str]:
        capsys.readouterr()
        main([*words, "--json"])
        reasons = json.loads(capsys.readouterr().out)["reasons"]
        return {a: re.sub(r": [0-9a-f]{8} → [0-9a-f]{8}", "", reason["text"]) for a, reason in reasons.items()}

    main(["run"])
    assert told("run", "--set", "x=2") == {"r": "recipe changed (vars.x: 1 → 2)"}
    Path("lib.py").write_text("def h(): return 'H'\ndef r(ctx): return str(ctx.vars['x'])\n")
    Path("say.py").write_text("def say(ctx): return ctx.prompt + '!'\n")
    monkeypatch.setenv("FOO", "foo")
    assert told("run") == {
        "h": "recipe changed (code)",
        "c": "recipe changed (FOO in env)",
        "p": "recipe changed (code)",
    }
    assert told("run", "--set", "y=2") == {
        "r": "recipe changed (vars.y: 1 → 2)",  # which of them a function reads cannot be told
        "c": "recipe changed (vars.y: 1 → 2)",
        "p": "recipe changed (vars.y: 1 → 2)",
    }


def test_a_script_that_a_command_names_is_a_source_and_what_it_imports_has_to_be_named(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """As the documentation says: nobody can tell what a script imports without running it."""
    Path("part.py").write_text("TEXT = 'a'\n")
    Path("gen.py").write_text("import part, sys\nopen(sys.argv[1], 'w').write(part.TEXT)\n")
    run = f"{sys.executable} -B gen.py {{output}}"
    plan = f"id: gen\ngoal: g\nartifacts:\n  a: {{produces: a.txt, run: '{run}'SOURCES}}\n"
    for sources, word in (("", "Nothing to do"), (", sources: [part.py]", "made     a")):
        Path("headway.yaml").write_text(plan.replace("SOURCES", sources))
        main(["run"])
        Path("part.py").write_text(Path("part.py").read_text() + "TEXT += 'b'\n")
        capsys.readouterr()
        main(["run"])
        assert capsys.readouterr().out.startswith(word)


def test_a_script_that_is_edited_while_it_runs_is_not_taken_for_written() -> None:
    """Somebody's edit during the run makes it stale at once, and later edits still count."""
    Path("gen.py").write_text("import pathlib, sys, time\npathlib.Path(sys.argv[1]).write_text('1')\n")
    Path("headway.yaml").write_text(
        "id: gen\ngoal: g\nartifacts:\n  a:\n    produces: a.txt\n"
        f"    run: \"{sys.executable} gen.py {{output}}; test -e once || (touch once; echo '# x' | tee -a gen.py)\"\n"
    )
    assert main(["run"]) == 1
    assert main(["run"]) == 0
    Path("gen.py").write_text("import pathlib, sys\npathlib.Path(sys.argv[1]).write_text('2')\n")
    assert main(["run"]) == 0
    assert Path("a.txt").read_text() == "2"


def test_an_edit_that_was_set_aside_can_be_brought_back() -> None:
    """What a person wrote is never lost: restore finds it, by its event or as the newest that differs."""
    assert main(["init"]) == 0
    assert main(["run"]) == 0
    Path("build/report.md").write_text("my hand work\n")
    assert main(["run", "--discard-edits"]) == 0
    assert Path("build/report.md").read_text() != "my hand work\n"
    assert main(["restore", "report"]) == 0
    assert Path("build/report.md").read_text() == "my hand work\n"


def test_an_older_output_that_is_brought_back_is_accepted(capsys: pytest.CaptureFixture[str]) -> None:
    """It counts as what somebody wants: the next run keeps it, and what it is made from being newer is no reason."""
    Path("headway.yaml").write_text(
        "id: older\ngoal: g\nartifacts:\n  a:\n    produces: a.txt\n    sources: [in.txt]\n    run: cp in.txt a.txt\n"
    )
    for text in ("one", "two"):
        Path("in.txt").write_text(text)
        assert main(["run"]) == 0
    assert main(["restore", "a"]) == 0
    assert Path("a.txt").read_text() == "one"
    assert main(["run"]) == 0
    assert main(["log"]) == 0
    assert "accepted a (restored from event" in capsys.readouterr().out
    assert Path("a.txt").read_text() == "one"


@pytest.mark.parametrize("path", ["n.txt", "d/"])
def test_a_retry_begins_with_nothing_of_the_attempt_before(path: str) -> None:
    """Appending to an output does not pile up over attempts."""
    target = "{output}" if path == "n.txt" else "{output}/n"
    plan = Plan("Retry", id="retry")
    plan.add("a", produces=path, retry=2, run=f"echo x >> {target}; test -e seen || (touch seen; exit 1)")
    plan.run()
    assert Path("n.txt" if path == "n.txt" else "d/n").read_text() == "x\n"


def test_a_folder_does_not_keep_files_of_earlier_runs() -> None:
    """A folder output is what its recipe writes now."""
    Path("in").mkdir()
    for name in ("a", "b"):
        Path(f"in/{name}.txt").write_text(name)
    plan = Plan("Folder", id="folder")
    plan.add("split", sources=["in/*.txt"], produces="out/", run="cp in/*.txt {output}")
    plan.run()
    Path("in/b.txt").unlink()
    plan.run()
    assert sorted(p.name for p in Path("out").iterdir()) == ["a.txt"]


def test_a_folder_that_something_is_mounted_on_is_emptied_and_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    """A volume of a container cannot be removed: that it is empty is enough to begin with, and to put things back."""
    remove = os.rmdir

    def rmdir(path: str, *, dir_fd: int | None = None) -> None:
        if os.path.basename(path) == "out":
            raise OSError(errno.EBUSY, "Device or resource busy", path)
        remove(path, dir_fd=dir_fd)

    monkeypatch.setattr(os, "rmdir", rmdir)
    Path("in.txt").write_text("1")
    Path("out").mkdir()
    plan = Plan("Volume", id="volume")
    plan.add("split", sources=["in.txt"], produces="out/", run="mkdir {output}$(cat in.txt); cp in.txt {output}")
    assert plan.run().made == ["split"]
    Path("in.txt").write_text("2")
    assert plan.run().made == ["split"]
    Path("out/mine").write_text("by hand")
    assert plan.run(on_edit="discard").restored == ["split"]
    assert sorted(p.name for p in Path("out").iterdir()) == ["in.txt"]


def test_a_folder_is_written_the_same_as_output_and_as_input() -> None:
    """It ends in a slash in commands, checks and gates alike, so `{inputs.parts}p-*` names what `{output}p-` wrote."""
    plan = Plan("Parts", id="parts")
    plan.add("parts", produces="all parts/", run="seq 6 | split -l 2 - {output}p-")
    reads = "test $(cat {inputs.parts}p-* | wc -l) = 6"
    gate = {"name": "six", "kind": "check", "run": reads}
    plan.add("all", requires="parts", run='cat {inputs.parts}p-* "{inputs.parts}p-aa"', verify=reads, gates=[gate])
    assert plan.run()["all"].text().split() == [*"123456", *"12"]


def test_of_very_many_readers_and_files_only_a_few_are_looked_into() -> None:
    """The rest is a number; what is told of each is as it would be among few."""
    few, many = ([*_warnings(readers, 300)] for readers in (6, 1000))
    assert few == many
    assert len(many) == 6


def _warnings(readers: int, files: int) -> list[str]:
    made = [ArtifactSpec(id=f"g{n}", make="m:f", produces=(f"gen/{n}.json",)) for n in range(files)]
    reading = [
        ArtifactSpec(id=f"r{n}", make="m:f", sources=("gen/*.json",), produces=(f"{n}",)) for n in range(readers)
    ]
    graph = ArtifactGraph([*made, *reading])
    return warnings_of_order(graph, list(graph), Shared(graph), {})


def test_whoever_reads_what_the_plan_makes_without_waiting_for_it_is_told(capsys: pytest.CaptureFixture[str]) -> None:
    """By its path or a pattern, while it is about to be made; not where others that it requires come after it."""
    plan = (
        "id: p\ngoal: g\nartifacts:\n"
        "  last: {sources: [u], REQUIRES produces: v, run: 'cat u > {output}'}\n"
        "  between: {requires: [first], run: 'echo'}\n"
        "  first: {sources: [x], produces: u, run: 'cat x > {output}'}\n"
    )
    Path("x").write_text("1")
    Path("headway.yaml").write_text(plan.replace("REQUIRES ", ""))
    told = "last reads u and does not wait for first, which makes it: requires: [first] would.\n"
    assert main(["run"]) == 1
    said = capsys.readouterr()
    assert told in said.err
    assert "Its source u does not exist, and it does not require what makes it" in said.out
    assert main(["run"]) == 0
    assert capsys.readouterr().err == "", "nothing is made that it would have to wait for"
    changed = plan.replace("REQUIRES", "requires: [between],")
    Path("headway.yaml").write_text(changed)
    Path("x").write_text("2")
    assert main(["run"]) == 0
    assert capsys.readouterr().err == ""
    Path("headway.yaml").write_text(plan.replace("[u], REQUIRES", "['[u]'],"))
    Path("x").write_text("3")
    main(["run"])
    assert capsys.readouterr().err == told


NAMINGS = {
    "as a word": (
        "  g: {produces: v, run: 'cat o/a > {output}'}\n",
        "g names o/a and does not wait for a, which makes it",
    ),
    "in a check": ("  g: {run: 'echo', verify: 'cmp \"./o/a\" o/a'}\n", "g names o/a and does not wait for a"),
    "by a variable": ("  g: {run: 'cat {vars.dir}/a'}\n", "g names o/a and does not wait for a"),
    "in a folder": ("  g: {run: 'cat o/f/x | sort'}\n", "g names o/f/x and does not wait for f, which makes it"),
    "the folder": ("  g: {run: 'ls o/f'}\n", "g names o/f and does not wait for f"),
    "a path with a blank": ("  g: {run: 'cat \"o/b c\"'}\n", "g names o/b c and does not wait for b"),
    "two, of two": (
        "  g: {requires: [s], run: 'cat o/a o/b\\ c o/s'}\n",
        "g names o/a and o/b c and does not wait for a and b, which make them: requires: [a, b] would",
    ),
    "also as a source": (
        "  g: {sources: [o/a], run: 'cat o/a \"o/b c\"'}\n",
        "g reads o/a and o/b c and does not wait for a and b, which make them: requires: [a, b] would",
    ),
    "what is changed in place": (
        "  g: {run: 'cat ./m'}\n",
        "g names m and does not wait for m2, which makes it: requires: [m2] would",
    ),
    "what is made from it": (
        "  g: {produces: v, run: 'cat x ./w > {output} || :'}\n  h: {requires: [g], produces: w, run: 'echo > w'}\n",
        "g names w, which h makes from it: one of them is always behind",
    ),
    "more than a few": (
        "".join(f"  g{n}: {{run: 'cat o/a #{n}'}}\n" for n in range(9)),
        "g5 does not wait for all that it reads, either, and others may not",
    ),
}
WAITING = {
    "required": "  g: {requires: [a], run: 'cat o/a'}\n",
    "required by another": "  h: {requires: [a], run: 'cat o/a'}\n  g: {requires: [h], run: 'cat o/a'}\n",
    "its own": "  g: {produces: [o/g, o/h], run: 'echo > o/g; echo > o/h', verify: 'cat o/g o/h'}\n",
    "changed in place by itself": "  g: {modifies: [m], run: 'echo 3 > m'}\n",
    "between who changes it": "  g: {requires: [m1], run: 'cat m'}\n",
    "changed in place, as a source": "  g: {sources: [m], run: 'cat m'}\n",
    "in a text": "  g: {run: 'echo \"see o/a and o/f/x\"'}\n",
    "a word that is one of the shell's": "  g: {run: 'for i in 1; do echo; done'}\n",
    "a word that need be no path": "  g: {run: 'echo all is done'}\n",
    "changed in place by its bare name": "  g: {requires: [m1], run: 'cat ./m'}\n",
    "a folder's name in another sense": "  g: {run: 'echo site'}\n",
    "by a phase behind it": (
        "pipelines:\n  p:\n    units: [u]\n    phases:\n      one: {outputs: {x: 'p/{unit}'}, run: 'echo > {output}'}\n"
        "      two: {inputs: [], run: 'cat p/u'}\n"
    ),
}


def plan_that_makes(artifacts: str) -> str:
    """A few outputs of every sort, and these artifacts beside them."""
    return (
        "id: p\ngoal: g\nvars: {dir: o}\nartifacts:\n"
        "  a: {produces: o/a, run: 'cat x > {output}', sources: [x]}\n"
        "  b: {produces: o/b c, run: 'cat x > {output}', sources: [x]}\n"
        "  s: {produces: o/s, run: 'cat x > {output}', sources: [x]}\n"
        "  done: {produces: done, run: 'cat x > {output}', sources: [x]}\n"
        "  site: {produces: site/, run: 'cat x > {output}x', sources: [x]}\n"
        "  f: {produces: o/f/, run: 'cat x > {output}x', sources: [x]}\n"
        "  m1: {produces: m, run: 'cat x > {output}', sources: [x]}\n"
        "  m2: {requires: [m1], modifies: [m], run: 'echo 2 >> m'}\n"
        f"{artifacts}"
    )


@pytest.mark.parametrize("case", NAMINGS)
def test_whoever_names_in_a_command_what_the_plan_makes_without_waiting_for_it_is_told(
    case: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """With all that it names, and by each run that makes some of it, also where nothing else is stale."""
    artifacts, told = NAMINGS[case]
    Path("headway.yaml").write_text(plan_that_makes(artifacts))
    Path("x").write_text("1")
    main(["run", "-j1"])
    assert told in capsys.readouterr().err
    main(["run"])
    capsys.readouterr()
    assert main(["run"]) == 0
    assert capsys.readouterr().err == "", "nothing is made that anybody would have to wait for"
    Path("x").write_text("2")
    main(["run"])
    assert told in capsys.readouterr().err


@pytest.mark.parametrize("case", WAITING)
def test_whoever_waits_for_what_its_command_names_is_told_nothing(
    case: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """Itself, by way of others or in its turn; nor is whoever means something else."""
    Path("headway.yaml").write_text(plan_that_makes(WAITING[case]))
    Path("x").write_text("1")
    assert main(["run"]) == 0
    assert capsys.readouterr().err == ""


def test_all_that_one_reads_without_waiting_is_told_at_once(capsys: pytest.CaptureFixture[str]) -> None:
    """The first few of many by name."""
    made = "".join(f"  a{n}: {{produces: o/{n}, run: 'echo > {{output}}'}}\n" for n in range(7))
    Path("headway.yaml").write_text(f"id: p\ngoal: g\nartifacts:\n  g: {{sources: ['o/*'], run: 'cat o/*'}}\n{made}")
    main(["run"])
    assert capsys.readouterr().err.startswith(
        "g reads o/0, o/1, o/2, o/3, o/4 and 2 more and does not wait for a0, a1, a2, a3, a4 and 2 more, which make "
        "them: requires: [a0, a1, a2, a3, a4, …] would.\n"
    )


@pytest.mark.parametrize("source", ["out/sub/f", "out/", "out/sub/*", "out/**/*"])
def test_whoever_read_a_folder_or_in_it_before_the_run_made_it_anew_is_stale(source: str) -> None:
    """By the path of a file in it, as a part of what it reads, or by a pattern."""
    Path("headway.yaml").write_text(
        "id: p\ngoal: g\nartifacts:\n"
        f"  two: {{sources: ['{source}'], produces: v, run: 'cat out/sub/f > {{output}}'}}\n"
        "  one: {sources: [x], produces: out/sub/, run: 'cat x > {output}f'}\n"
    )
    Path("x").write_text("1")
    main(["run"])
    assert main(["run"]) == 0
    Path("x").write_text("2")
    assert [main(["run"]), main(["run"]), main(["run"])] == [1, 0, 0]
    assert Path("v").read_text() == "2"


@pytest.mark.parametrize("source", ["u", "[u]"])
def test_whoever_read_a_file_before_the_run_made_it_anew_is_stale_at_its_end(
    source: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """It is said, the run does not end well, and no stamp hides it."""
    plan = (
        "id: p\ngoal: g\nartifacts:\n"
        f"  last: {{sources: ['{source}'], produces: v, run: 'cat u > {{output}}'}}\n"
        "  first: {produces: u, run: 'cat x > {output}', sources: [x]}\n"
    )
    Path("headway.yaml").write_text(plan)
    Path("x").write_text("1")
    main(["run"])
    assert main(["run"]) == 0
    assert main(["run"]) == 0
    for words in (["run", "--rerun", "first"], ["run"]):
        Path("x").write_text(f"1{words}")
        capsys.readouterr()
        assert main(words) == 1
        assert "last: u changed after it was read. Next: headway run\n" in capsys.readouterr().out
        main(["status"])
        assert "↻ last   u changed" in capsys.readouterr().out
        assert main(["run"]) == 0
        assert Path("v").read_text() == Path("x").read_text()


def test_a_file_that_the_run_added_under_a_pattern_leaves_its_reader_stale() -> None:
    """Unless it is the reader's own."""
    Path("headway.yaml").write_text(
        "id: p\ngoal: g\nartifacts:\n"
        "  all: {sources: ['*.txt'], produces: all.txt, run: 'cat a.txt > {output}'}\n"
        "  slow: {produces: b.txt, run: 'sleep 0.3; echo b > {output}'}\n"
    )
    Path("a.txt").write_text("a")
    assert [main(["run"]) for _ in range(3)] == [1, 0, 0]


ALARMS = {
    "a folder under a pattern of who waits for it": (
        "  one: {sources: [x], produces: out/sub/, run: 'cat x > {output}f'}\n"
        "  two: {requires: [one], sources: ['out/**/*'], produces: v, run: 'cat {sources} > {output}'}\n"
    ),
    "a folder beside files under a pattern": (
        "  one: {sources: [x], produces: site/, run: 'cat x > {output}f'}\n"
        "  two: {sources: ['[x]*'], produces: v, run: 'cat {sources} > {output}'}\n"
    ),
    "a link, which is read by what it leads to": (
        "  one: {sources: [x], produces: latest, run: 'ln -sfn x latest'}\n"
        "  two: {requires: [one], sources: [latest], produces: v, run: 'cat latest > {output}'}\n"
    ),
    "a file that came out the same": (
        "  two: {sources: [u], produces: v, run: 'cat u > {output}'}\n"
        "  one: {sources: [x], produces: u, run: 'echo same > {output}'}\n"
    ),
}


@pytest.mark.parametrize("case", ALARMS)
def test_whoever_reads_what_is_as_it_read_it_is_not_stale(case: str) -> None:
    """Though what makes it was made anew."""
    Path("headway.yaml").write_text(f"id: p\ngoal: g\nartifacts:\n{ALARMS[case]}")
    Path("x").write_text("1")
    main(["run"])
    for words in (["run"], ["run", "--rerun", "one"], ["run"]):
        Path("x").write_text(f"1{words}" if len(words) == 1 else Path("x").read_text())
        assert main(words) == 0, words
        assert main(["status", "--check"]) == 0, words


@pytest.mark.parametrize("words", [["run", "one"], ["run", "--max-time", "0.05"]])
def test_what_was_not_asked_for_or_not_come_to_is_no_failure(words: list[str]) -> None:
    """Whoever reads too early is told of at the end of a run of all."""
    Path("headway.yaml").write_text(
        "id: p\ngoal: g\nartifacts:\n"
        "  two: {sources: [u], produces: v, run: 'cat u > {output}'}\n"
        "  one: {sources: [x], produces: u, run: 'sleep 0.2; cat x > {output}'}\n"
        "  three: {requires: [one], produces: w, run: 'cat {inputs.one} > {output}'}\n"
    )
    Path("x").write_text("1")
    main(["run"])
    assert main(["run"]) == 0
    Path("x").write_text("2")
    assert main(words) == (75 if "--max-time" in words else 0)
    assert main(["run"]) == 0
    assert Path("v").read_text() == "2"


def test_what_comes_into_the_plan_while_it_runs_is_not_looked_at(bench: Bench) -> None:
    """It was never judged by this run."""
    bench.write("in.txt", "1")
    bench.plan("a -> b")

    def make() -> str:
        new = ArtifactSpec(id="n", produces=("n.txt",), sources=("in.txt", "out/*"), make="bench:recipe")
        token = bench.do(ChangePlan(add=(new,)), StartArtifacts(ids=("n",))).claims["n"].seq
        left = (Output("n.txt", "0" * 64, 1),)
        bench.do(CompleteArtifact(id="n", token=token, outputs=left, fp=Fingerprint(sources={"in.txt": "0" * 32})))
        return "a"

    bench.makes("b", make)
    ran = bench.run()
    assert (ran.log, ran.result.moved) == (["made a", "made b"], {})


def test_many_patterns_and_many_outputs_are_not_all_held_against_one_another() -> None:
    """Only what begins as a pattern does can be found by it."""
    seen: list[str] = []
    paths = sorted(f"build/o{n}.o" for n in range(1000))
    for number in range(1000):
        seen += beginning_as(f"src/u{number}/*.c", paths)
    assert seen == []
    assert list(beginning_as("build/o99?.o", paths)) == ["build/o99.o", *(f"build/o99{n}.o" for n in range(10))]


def test_a_circle_by_way_of_a_pattern_is_told(capsys: pytest.CaptureFixture[str]) -> None:
    """What makes the file builds on whoever reads it: no order would help."""
    Path("headway.yaml").write_text(
        "id: p\ngoal: g\nartifacts:\n"
        "  all: {sources: ['*.txt'], produces: all.out, run: 'cat {sources} > {output}'}\n"
        "  up: {requires: [all], produces: up.txt, run: 'tr a-z A-Z < {inputs.all} > {output}'}\n"
    )
    Path("a.txt").write_text("a")
    main(["run"])
    assert "all reads up.txt, which up makes from it: one of them is always behind.\n" in capsys.readouterr().err


def test_a_step_gives_the_same_before_a_crash_and_after_it() -> None:
    """Bytes stay bytes; anything else is what its JSON form is, the first time, too."""
    seen: list[Any] = []
    tries: list[int] = []
    plan = Plan("Steps", id="steps")

    def make(ctx: Context) -> str:
        seen.append(
            (
                ctx.step("raw", lambda: b"\x00\xff"),
                ctx.step("pair", lambda: (1, 2)),
                ctx.step("big", lambda: "x" * 9000),
            )
        )
        tries.append(1)
        if len(tries) == 1:
            raise RuntimeError("crash")
        return "done"

    plan.add("it", make=make, version="1", retry=2)
    plan.run()
    assert seen == [(b"\x00\xff", [1, 2], "x" * 9000)] * 2


def test_arguments_without_a_json_form_are_only_called_by_their_program() -> None:
    """The command line calls no function with a stand-in for its argument: it waits for its program."""
    Path("odd.py").write_text(
        "from headway import Plan\nplan = Plan('Odd', id='odd')\n"
        "def make(names):\n    return repr(sorted(names))\n"
        "plan.add('it', make=make, args={'names': {'b', 'a'}}, produces='it.txt')\n"
        "if __name__ == '__main__':\n    plan.run()\n"
    )
    subprocess.run([sys.executable, "odd.py"], check=True)
    assert Path("it.txt").read_text() == "['a', 'b']"
    assert main(["run", "--plan-id", "odd", "--rerun", "it"]) == 75
    assert Path("it.txt").read_text() == "['a', 'b']"


def test_a_plan_file_below_the_root_is_found_from_where_one_stands(monkeypatch: pytest.MonkeyPatch) -> None:
    """Looking for a stamp leaves the current folder alone."""
    Path("headway.yaml").write_text("id: top\ngoal: g\nartifacts:\n  a: {produces: a.txt, run: 'echo a > {output}'}\n")
    Path("sub").mkdir()
    Path("sub/p.yaml").write_text("id: sub\ngoal: g\nartifacts:\n  b: {produces: b.txt, run: 'echo b > {output}'}\n")
    monkeypatch.chdir("sub")
    command = [sys.executable, "-m", "headway", "run", "--plan", "p.yaml"]
    for _ in range(3):
        assert subprocess.run(command, capture_output=True, check=False).returncode == 0
    Path("p.yaml").write_text(Path("p.yaml").read_text().replace("echo b", "echo c"))
    assert b"made     b" in subprocess.run(command, capture_output=True, check=False).stdout


def test_a_pattern_that_many_artifacts_have_is_looked_for_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """To say where the plan stands, what it names is asked once; a file that a recipe adds counts for the next one."""
    Path("data").mkdir()
    Path("data/1.txt").write_text("1")
    plan = "id: many\ngoal: g\nartifacts:\n"
    for n in range(5):
        before = f"requires: [a{n - 1}], " if n else ""
        run = f"touch data/{n + 2}.txt; ls data > {{output}}"
        plan += f"  a{n}: {{{before}produces: out/{n}.txt, sources: ['data/*.txt'], run: '{run}'}}\n"
    Path("headway.yaml").write_text(plan)
    for _ in range(7):
        main(["run", "-j", "1"])
    assert [len(Path(f"out/{n}.txt").read_text().split()) for n in range(5)] == [6] * 5
    asked: list[str] = []
    glob = Observer._glob

    def count(observer: Observer, pattern: str) -> list[str]:
        asked.append(pattern)
        return glob(observer, pattern)

    monkeypatch.setattr(Observer, "_glob", count)
    shutil.rmtree(".headway/stamps")
    assert main(["status", "--check"]) == 0
    assert asked == ["data/*.txt"]
