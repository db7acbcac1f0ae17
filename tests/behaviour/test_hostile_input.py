"""Input that is out to do harm, and surroundings that are odd: refused or harmless, never silently wrong."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from headway import Plan, RunFailed
from headway.surfaces.cli.main import main

HEADWAY = [sys.executable, "-m", "headway"]


@pytest.fixture(autouse=True)
def in_a_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every project here is a folder of its own."""
    monkeypatch.chdir(tmp_path)


PLACES = {
    "bare": "printf %s {vars.x}",
    "double": 'printf %s "{vars.x}"',
    "single": "printf %s '{vars.x}'",
    "within double": 'printf %s "<{vars.x}>"',
    "between single": "printf %s '<'{vars.x}'>'",
    "escaped": "printf %s \\{vars.x}",
    "escaped in double": 'printf %s "\\{vars.x}"',
    "substitution": 'printf %s "$(printf %s {vars.x})"',
    "deep": 'printf %s "$(printf %s "$(printf %s \'{vars.x}\')")"',
    "backticks": 'printf %s "`printf %s {vars.x}`"',
    "quoted in backticks": "printf %s \"`printf %s '{vars.x}'`\"",
    "after a comment": "# it's so\nprintf %s {vars.x}",
    "after a number": "printf '' $((1<<2)) ${#HOME} $#; printf %s {vars.x}",
    "after a here-document": "cat <<END\nit's so\nEND\nprintf %s {vars.x}",
    "here-document": "cat <<END\nit's \\\\ {vars.x}\nEND",
    "quoted here-document": "cat <<'END'\nit's {vars.x}\nEND",
    "second here-document": "cat <<A; cat <<-B\nit's\nA\n\t{vars.x}\n\tB",
    "in a here-document": "cat <<END\n$(printf %s {vars.x})\nEND",
    "in a case": 'printf %s "$(case y in (x) ;; y) case z in z) printf %s "{vars.x}";; esac;; esac)"',
    "after a case": 'printf %s "$(case x in x) echo \\\';; esac)" {vars.x}',
    "default": 'printf %s "${NOT_SET:-{vars.x}}"',
    "after a default": 'printf %s "${HOME%"/x"}${HOME%\'/x\'}"; printf %s {vars.x}',
    "after backticks": 'printf %s "`echo \\"a b\\"`"; printf %s "{vars.x}"',
}


@pytest.mark.parametrize("place", PLACES.values(), ids=PLACES.keys())
@pytest.mark.parametrize(
    "value",
    [
        "a b",
        "'; touch INJECTED; '",
        '"; touch INJECTED; "',
        "$(touch INJECTED)",
        "`touch INJECTED`",
        "\\; touch INJECTED",
        "}; touch INJECTED; {",
    ],
)
def test_a_value_is_a_word_wherever_its_placeholder_stands(place: str, value: str) -> None:
    """Bare, in quotes, in a command within the command, in a here-document: it is text and never shell."""
    plan = Plan("Quote", id="quote", vars={"x": value})
    plan.add("a", produces="a.txt", run=f"{{ {place}\n}} > {{output}}")
    plan.run()
    assert value in Path("a.txt").read_text()
    assert not Path("INJECTED").exists()


@pytest.mark.parametrize(
    "place",
    [
        'printf %s "`printf %s \\"{vars.x}\\"`"',
        "printf %s `printf %s \\`printf %s {vars.x}\\``",
        'printf %s "${NOT_SET:-"{vars.x}"}"',
        "cat <<END\n${NOT_SET:-{vars.x}}\nEND",
        'printf %s "${NOT_SET:-it\'s}" {vars.x}',
        "printf %s $'{vars.x}'",
        "printf %s $(({vars.x} + 1))",
        'printf %s "{vars.x}',
    ],
)
def test_where_a_value_would_not_certainly_stay_text_it_is_refused(place: str) -> None:
    """With the way out, which leads there; nothing was run."""
    plan = Plan("Quote", id="quote", vars={"x": "$(touch INJECTED)"})
    plan.add("a", run=f"touch BEGAN\n{place}")
    with pytest.raises(RunFailed, match=r"put it into a variable first, v=\{vars.x\}"):
        plan.run()
    assert not Path("BEGAN").exists()
    assert not Path("INJECTED").exists()


@pytest.mark.parametrize(
    ("place", "told"),
    [
        ('printf %s "$a{vars.x}"', "5g"),
        ("printf %s $a{vars.x}", "5g"),
        ("printf %s '$a{vars.x}'", "$ag"),
        ('printf %s "\\$a{vars.x}"', "$ag"),
        ('printf %s "$(printf %s $a{vars.x})"', "5g"),
        ("printf %s `printf %s $a{vars.x}`", "5g"),
        ('printf %s "${a}{vars.x}"', "5g"),
        ('printf %s "$?{vars.x}"', "0g"),
    ],
)
def test_a_value_is_no_part_of_the_name_of_a_variable_before_it(place: str, told: str) -> None:
    """What the shell knows of such a name is nothing, and nothing is what it would put there."""
    plan = Plan("Glue", id="glue", vars={"x": "g"})
    plan.add("a", run=f"a=5; true; {place}")
    assert plan.run()["a"].text() == told


def test_where_a_variable_and_a_value_cannot_be_told_apart_braces_are_asked_for() -> None:
    """In a here-document nothing can stand between them; with braces it is said where the name ends."""
    plan = Plan("Glue", id="glue", vars={"x": "g"})
    plan.add("a", run="a=5; cat <<END\n$a{vars.x}\nEND")
    with pytest.raises(RunFailed, match="put the variable into braces"):
        plan.run()
    plan = Plan("Glue", id="glue", vars={"x": "g"})
    plan.add("a", run="a=5; cat <<END\n${a}{vars.x}\nEND")
    assert plan.run()["a"].text() == "5g\n"


def test_a_number_can_be_counted_with() -> None:
    """As it is no text there, and nothing that a shell would do."""
    plan = Plan("Count", id="count", vars={"x": "41"})
    plan.add("a", run="echo $(({vars.x} + 1))")
    assert plan.run()["a"].text() == "42\n"


def test_a_value_in_a_comment_does_not_end_it() -> None:
    """Whatever lines it has."""
    plan = Plan("Quote", id="quote", vars={"x": "one\ntouch INJECTED"})
    plan.add("a", run="echo a # {vars.x}\necho b")
    assert plan.run()["a"].text() == "a\nb\n"
    assert not Path("INJECTED").exists()


def test_a_value_does_not_end_the_here_document_that_it_stands_in() -> None:
    """It cannot be written there otherwise, so this is said."""
    plan = Plan("Quote", id="quote", vars={"x": "one\nEND\ntouch INJECTED"})
    plan.add("a", run="cat <<'END'\n{vars.x}\nEND")
    with pytest.raises(RunFailed, match="end the here-document with another word than END"):
        plan.run()
    assert not Path("INJECTED").exists()


def test_an_id_with_quotes_in_it_quotes_nothing() -> None:
    """What a placeholder names is no part of the shell's text."""
    Path("a b").write_text("text")
    plan = Plan("Quote", id="quote")
    plan.add("it's", produces="it", run="echo it > {output}")
    plan.add("a", requires=["it's"], sources=["a ?"], run="cat {inputs[it's]} {sources}")
    assert plan.run()["a"].text() == "it\ntext"


def test_a_path_is_never_taken_for_an_option() -> None:
    """Whatever a file is called."""
    Path("-n").write_text("text\n")
    plan = Plan("Quote", id="quote")
    plan.add("a", sources=["-*"], produces="-b", run="cat {sources} | tee {output}")
    plan.run()
    assert Path("-b").read_text() == "text\n"


def test_a_command_that_a_nameless_signal_kills_says_which() -> None:
    """Those for real time have numbers only."""
    plan = Plan("Signal", id="signal")
    plan.add("a", run="kill -40 $$")
    with pytest.raises(RunFailed, match="killed by signal 40"):
        plan.run()


def test_a_text_that_was_tampered_with_is_not_believed() -> None:
    """What dependents read of a text artifact is what was recorded."""
    plan = Plan("Text", id="text")
    plan.add("t", run="echo good")
    plan.add("u", requires="t", produces="u.txt", run="cat {inputs.t} > {output}")
    plan.run()
    for text in Path(".headway/texts").iterdir():
        text.chmod(0o644)
        text.write_text("EVIL")
    plan.run(rerun=["u"])
    assert Path("u.txt").read_text() == "good\n"


def test_a_text_beyond_all_bounds_fails_its_artifact() -> None:
    """An artifact without files is kept in memory, so it has a limit, and the error says what to do."""
    plan = Plan("Long", id="long")
    plan.add("a", run="head -c 80000000 /dev/zero")
    with pytest.raises(RunFailed, match="produces:"):
        plan.run()


def test_a_function_that_ends_the_process_does_not_look_like_success() -> None:
    """os._exit(0) is told on stderr, by artifact, and the exit code is not 0."""
    Path("tasks.py").write_text("import os\ndef leave():\n    os._exit(0)\n")
    Path("headway.yaml").write_text("id: e\ngoal: g\nartifacts:\n  gone: {produces: x.txt, make: 'tasks:leave'}\n")
    done = subprocess.run([*HEADWAY, "run"], capture_output=True, text=True, check=False)
    assert done.returncode != 0
    assert "gone" in done.stderr
    assert "headway run" in done.stderr


def test_a_reader_that_leaves_does_not_stop_the_run() -> None:
    """`headway run | head -1` makes everything all the same."""
    artifacts = "".join(f"  a{i}: {{produces: a{i}.txt, run: 'echo {i} > {{output}}'}}\n" for i in range(40))
    Path("headway.yaml").write_text(f"id: pipe\ngoal: g\nartifacts:\n{artifacts}")
    command = " ".join([*HEADWAY, "run"])
    subprocess.run(["/bin/sh", "-c", f"{command} | head -n 1"], check=True, capture_output=True)
    assert len(list(Path().glob("a*.txt"))) == 40


@pytest.mark.parametrize(("where", "code"), [(">&-", 0), (">&- 2>&-", 0), (">/dev/full", 4), (">/dev/full 2>&1", 4)])
@pytest.mark.parametrize("words", ["run", "run --json", "run --rerun-all --json", "status", "status --json"])
def test_where_nothing_can_be_said_the_exit_code_says_it(words: str, where: str, code: int) -> None:
    """Nobody listens: that is no error. What is written to is full: that is one, and no traceback."""
    Path("headway.yaml").write_text("id: f\ngoal: g\nartifacts:\n  a: {produces: a.txt, run: 'echo x > {output}'}\n")
    for _ in range(2):
        subprocess.run([*HEADWAY, "run"], check=True, capture_output=True)
    command = f"{' '.join(HEADWAY)} {words} {where}"
    done = subprocess.run(["/bin/sh", "-c", command], capture_output=True, text=True, check=False)
    assert (done.returncode, "Traceback" in done.stderr) == (code, False)


def test_a_locale_that_cannot_write_a_name_is_told_and_the_way_out_works() -> None:
    """Python itself takes UTF-8 where no locale is set; whoever has forbidden that is not told of a bug."""
    Path("headway.yaml").write_text("id: l\ngoal: g\nartifacts:\n  é: {produces: é.txt, run: 'echo é > {output}'}\n")
    plain = {**os.environ, "LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
    done = subprocess.run([*HEADWAY, "run"], capture_output=True, text=True, check=False, env=plain)
    assert (done.returncode, "PYTHONUTF8=1" in done.stderr) == (2, True)
    subprocess.run([*HEADWAY, "run"], check=True, capture_output=True, env={**plain, "PYTHONUTF8": "1"})
    assert Path("é.txt").read_text(encoding="utf-8") == "é\n"


@pytest.mark.parametrize("words", [["run", "--set"], ["accept", "a", "--reason"], ["learn"]])
def test_words_that_are_not_text_are_refused(words: list[str]) -> None:
    """Bytes that are no UTF-8 are somebody's mistake, and change nothing."""
    Path("headway.yaml").write_text(
        "id: w\ngoal: g\nvars: {v: x}\nartifacts:\n  a: {produces: a.txt, run: 'echo {vars.v} > {output}'}\n"
    )
    subprocess.run([*HEADWAY, "run"], check=True, capture_output=True)
    Path("a.txt").write_text("mine")
    done = subprocess.run([*HEADWAY, *words, b"v=\xff"], capture_output=True, text=True, check=False)
    assert (done.returncode, "\\udcff" in done.stderr) == (2, True)
    Path("a.txt").write_text("x\n")
    assert "Nothing to do" in subprocess.run([*HEADWAY, "run"], check=True, capture_output=True, text=True).stdout


def test_exit_codes_are_seen_when_the_caller_ignores_its_children() -> None:
    """With SIGCHLD ignored, a failing command still fails."""
    Path("headway.yaml").write_text(
        "id: c\ngoal: g\nartifacts:\n  a: {produces: a.txt, run: 'echo x > {output}; exit 3'}\n"
    )
    program = (
        "import os,signal,sys; signal.signal(signal.SIGCHLD, signal.SIG_IGN); os.execv(sys.executable, sys.argv[1:])"
    )
    done = subprocess.run([sys.executable, "-c", program, *HEADWAY, "run"], capture_output=True, text=True, check=False)
    assert (done.returncode, "exit code 3" in done.stdout) == (1, True)


def test_names_that_are_not_text_are_the_problem_of_one_artifact() -> None:
    """A source whose name is not UTF-8 is named and refused; the rest is made."""
    Path("in").mkdir()
    (Path("in") / "bad\udcff.txt").write_text("x")
    plan = Plan("Bytes", id="bytes")
    plan.add("a", sources=["in/*"], produces="a.txt", run="echo a > {output}")
    plan.add("b", produces="b.txt", run="echo b > {output}")
    result = plan.run(check=False)
    assert (result.made, "not UTF-8" in result.failed["a"]) == (["b"], True)


def test_the_ledger_of_another_plan_is_not_taken_for_ones_own() -> None:
    """A copied plan folder is refused, by reading verbs and by doctor."""
    assert main(["init"]) == 0
    assert main(["plans", "new"]) == 0
    plans = Path(".headway/plans")
    shutil.copytree(next(plans.iterdir()), plans / "copy")
    assert main(["plans", "show", "copy"]) == 4
    assert main(["doctor", "--plan-id", "copy"]) == 4


@pytest.mark.parametrize(
    "words", [["-j", "0"], ["-j", "-1"], ["--limit", "0"], ["--max-time", "nan"], ["--max-time", "-1"]]
)
def test_numbers_that_make_no_sense_are_refused(words: list[str]) -> None:
    """Exit 2, before anything is done."""
    assert main(["init"]) == 0
    assert main(["run", *words]) == 2
    assert not Path("build").exists()


def test_one_word_about_edits_is_enough() -> None:
    """Accepting and discarding at once is refused."""
    assert main(["init"]) == 0
    assert main(["run", "--accept-edits", "--discard-edits"]) == 2


@pytest.mark.parametrize("year", [1900, 2300, 2400])
def test_files_of_another_century_are_read_and_made_like_any_other(tmp_path: Path, year: int) -> None:
    """Their times are beyond what 63 bits hold."""
    when = (year - 1970) * 31_556_952
    source = tmp_path / "source.txt"
    source.write_text("old\n")
    os.utime(source, (when, when))
    Path("headway.yaml").write_text(
        "id: p\ngoal: g\nartifacts:\n"
        "  a: {run: 'cp -p source.txt {output}', sources: [source.txt], produces: out/a.txt}\n"
        "  b: {run: 'cp {inputs.a} {output}', requires: [a], produces: out/b.txt}\n"
    )
    told = [subprocess.run([*HEADWAY, "run"], check=False, capture_output=True, text=True) for _ in range(3)]
    assert [done.returncode for done in told] == [0, 0, 0], told[0].stderr
    assert ("2 made" in told[0].stdout, "Nothing to do" in told[2].stdout) == (True, True)
    source.write_text("new\n")
    os.utime(source, (when, when))
    assert "2 made" in subprocess.run([*HEADWAY, "run"], check=False, capture_output=True, text=True).stdout
    assert Path("out/b.txt").read_text() == "new\n"


@pytest.mark.parametrize("gives", ["text", "file", "folder"])
def test_a_folder_that_becomes_a_link_out_of_the_project_while_a_function_runs_leads_nothing_there(
    tmp_path_factory: pytest.TempPathFactory, gives: str
) -> None:
    """However long the function takes, and whatever it gives; nor are folders made behind a link that was there."""
    outside = tmp_path_factory.mktemp("outside")
    (outside / "it").write_text("theirs")
    root = Path.cwd()
    (root / "file").write_text("ours")
    (root / "folder").mkdir()
    (root / "folder/one").write_text("ours")

    def make() -> str | Path:
        (root / "out").rename(root / "moved")
        (root / "out").symlink_to(outside)
        return "ours" if gives == "text" else root / gives

    plan = Plan("Swap", id="swap")
    plan.add("a", make=make, produces="out/new/" if gives == "folder" else "out/it")
    plan.add("b", make=lambda: "ours", produces="other/deep/it")
    (root / "other").symlink_to(outside)
    result = plan.run(check=False)
    assert {a: "outside the project" in failure for a, failure in result.failed.items()} == {"a": True, "b": True}
    assert {path.name: path.read_text() for path in outside.iterdir()} == {"it": "theirs"}
