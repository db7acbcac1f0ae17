"""The nothing-to-do case: a stamp that is believed only while nothing, however small, has changed."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from headway.stamp import LOT, nothing_to_do
from headway.version import VERSION

PLAN = """\
id: stamped
goal: Try to fool the stamp
env: [STYLE]
artifacts:
  listing:
    sources: ['data/*.txt']
    produces: out/listing.txt
    run: "cat data/*.txt > {output}"
  scripted:
    produces: out/scripted.txt
    run: "sh tool.sh > {output}"
  function:
    produces: out/function.txt
    make: tasks:make
  tree:
    requires: [listing]
    produces: dist/
    run: "mkdir -p dist/deep && cp {inputs.listing} dist/deep/copy.txt"
"""


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project that was run, so that its next run has nothing to do."""
    root = tmp_path / "project"
    (root / "data").mkdir(parents=True)
    (root / "data/a.txt").write_text("a")
    (root / "tool.sh").write_text("echo tool")
    (root / "tasks.py").write_text("import helper\ndef make():\n    return helper.word()\n")
    (root / "helper.py").write_text("def word():\n    return 'word'\n")
    (root / "headway.yaml").write_text(PLAN)
    monkeypatch.chdir(root)
    monkeypatch.setenv("STYLE", "plain")
    assert "4 made" in run()
    assert stamped() is not None
    return root


def run(*words: str) -> str:
    """`headway run` as a process of its own."""
    done = subprocess.run([sys.executable, "-m", "headway", "run", *words], capture_output=True, text=True, check=False)
    return done.stdout + done.stderr


def stamped(*words: str) -> tuple[str, str] | None:
    """What the stamp alone says."""
    here = os.getcwd()
    try:
        return nothing_to_do(list(words), VERSION)
    finally:
        os.chdir(here)


def test_what_a_change_reaches_is_made_in_the_order_of_the_plan(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where a stamp vouches for all else, the same files lead to the same log, whatever order sets have today."""
    names = [f"part-{number}" for number in range(12)]
    parts = {name: {"sources": ["word.txt"], "produces": name, "run": "cat word.txt > {output}"} for name in names}
    other = {"other": {"produces": "other", "run": "echo other > {output}"}}
    (tmp_path / "headway.json").write_text(json.dumps({"id": "parts", "goal": "Parts", "artifacts": parts | other}))
    (tmp_path / "word.txt").write_text("one")
    monkeypatch.chdir(tmp_path)
    run()
    assert stamped() is not None
    (tmp_path / "word.txt").write_text("another")
    assert [line.split()[1] for line in run("-j", "1").splitlines() if line.startswith("made")] == names


def test_a_pipe_in_the_place_of_a_ledger_is_an_error_and_nobody_waits_for_it(project: Path) -> None:
    """Whoever opens a pipe to read waits for a writer, for ever."""
    ledger = project / ".headway/plans/stamped/ledger.jsonl"
    ledger.unlink()
    os.mkfifo(ledger)
    done = subprocess.run(
        [sys.executable, "-m", "headway", "run"], capture_output=True, text=True, check=False, timeout=60
    )
    assert done.returncode == 4
    assert "The ledger is not a file" in done.stderr
    assert "found: pipe" in done.stderr


def test_a_stamp_says_what_the_full_judgement_says(project: Path) -> None:
    """Text and JSON are those of a run that looked at everything."""
    by_stamp, by_stamp_json = run(), run("--json")
    shutil.rmtree(project / ".headway/stamps")
    assert run() == by_stamp
    shutil.rmtree(project / ".headway/stamps")
    assert run("--json") == by_stamp_json


ASKED = "from headway import stamp, version; known = stamp.nothing_to_do([], version.VERSION)"


@pytest.mark.parametrize("way", ["", "from headway import stamp; stamp.MANY = 1; "], ids=["alone", "by two"])
@pytest.mark.parametrize("place", [0, LOT, 2 * LOT])
def test_of_many_files_each_is_looked_at(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, place: int, way: str) -> None:
    """They are compared by the hundred, by one process or by two: a touched one is seen wherever it stands."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "many").mkdir()
    paths = [tmp_path / f"many/{number:05}.txt" for number in range(2 * LOT + 1)]
    for path in paths:
        path.touch()
    plan = (
        "id: many\ngoal: Count\nartifacts:\n  count: {sources: ['many/*'], produces: n, run: 'ls many | wc -l > n'}\n"
    )
    (tmp_path / "headway.yaml").write_text(plan)
    assert "1 made" in run()

    def known() -> str:
        words = [sys.executable, "-c", f"{way}{ASKED}; print(known is not None)"]
        return subprocess.run(words, capture_output=True, text=True, check=True).stdout.strip()

    assert known() == "True"
    os.utime(paths[place], ns=(1, 1))
    assert known() == "False"


def test_what_has_nothing_to_do_loads_no_more_than_it_needs(project: Path) -> None:
    """Start-up is most of it: neither what makes plans nor what most programs import."""
    code = f"import sys; before = set(sys.modules); import headway.surfaces.cli.entry; {ASKED}; assert known"
    beside = "{'zlib', '_operator', 'errno', 'headway._bulk'}"  # a part in C each; the last where it could be built
    words = [sys.executable, "-c", f"{code}; print(*sorted(set(sys.modules) - before - {beside}))"]
    loaded = subprocess.run(words, capture_output=True, text=True, check=True).stdout.split()
    ours = ("bulk", "stamp", "surfaces", "surfaces.cli", "surfaces.cli.entry", "version")
    assert loaded == ["headway", *(f"headway.{name}" for name in ours)]


def add_under_glob(root: Path) -> None:
    (root / "data/b.txt").write_text("b")


def add_and_put_the_time_back(root: Path) -> None:
    before = (root / "data").stat()
    add_under_glob(root)
    os.utime(root / "data", ns=(before.st_atime_ns, before.st_mtime_ns))


def replace_output_same_size(root: Path) -> None:
    path = root / "out/listing.txt"
    before = path.stat()
    path.write_bytes(b"x" * before.st_size)
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))


def add_to_folder_output(root: Path) -> None:
    (root / "dist/deep/extra.txt").write_text("extra")


def replace_source(root: Path) -> None:
    shutil.copy(root / "data/a.txt", root / "data/new")
    (root / "data/new").replace(root / "data/a.txt")


CHANGES: dict[str, Callable[[Path], object]] = {
    "a file is added under a pattern": add_under_glob,
    "a file is added under a pattern, and the folder's time put back": add_and_put_the_time_back,
    "a source is changed": lambda root: (root / "data/a.txt").write_text("A"),
    "an output is replaced by one of equal size and time": replace_output_same_size,
    "an output is deleted": lambda root: (root / "out/scripted.txt").unlink(),
    "a file appears in a folder output": add_to_folder_output,
    "a helper module is changed": lambda root: (root / "helper.py").write_text("def word():\n    return 'other'\n"),
    "a script that a command names is changed": lambda root: (root / "tool.sh").write_text("echo other"),
    "a file appears that a command names": lambda root: (root / "sh").write_text("a file called like a command"),
    "the plan file is changed": lambda root: (root / "headway.yaml").write_text(PLAN.replace("tool.sh", "./tool.sh")),
    "the plan file vanishes": lambda root: (root / "headway.yaml").unlink(),
    "a configuration file appears": lambda root: (root / "headway.toml").write_text(""),
    "the ledger has another event": lambda root: subprocess.run(
        [sys.executable, "-m", "headway", "profile", "set", "--max-concurrent-tasks", "2"],
        check=True,
        capture_output=True,
    ),
    "a source is replaced by another file with the same content": replace_source,
}


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
def test_a_stamp_is_not_fooled(project: Path, change: Callable[[Path], object]) -> None:
    """Whatever changed, the full judgement decides."""
    change(project)
    assert stamped() is None


@pytest.mark.parametrize(("link", "to", "pattern"), [("data", "real", "data/*"), ("data/far", "../real", "data/**/*")])
def test_a_file_that_appears_behind_a_linked_folder_is_seen(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, link: str, to: str, pattern: str
) -> None:
    """Patterns go through links, and so does the stamp."""
    (tmp_path / "real").mkdir()
    (tmp_path / "real/a.txt").write_text("a")
    (tmp_path / link).parent.mkdir(exist_ok=True)
    (tmp_path / link).symlink_to(to)
    (tmp_path / "headway.yaml").write_text(
        f"id: linked\ngoal: Look through links\nartifacts:\n  listing:\n    sources: ['{pattern}.txt']\n"
        "    produces: out.txt\n    run: 'echo listed > {output}'\n"
    )
    monkeypatch.chdir(tmp_path)
    assert "1 made" in run()
    assert stamped() is not None
    (tmp_path / "real/b.txt").write_text("b")
    assert stamped() is None
    assert "1 made" in run()


def test_an_edit_within_one_clock_tick_is_seen(project: Path) -> None:
    """A file changed right after it was judged, in place and with its times put back, is noticed by its ctime."""
    path = project / "data/a.txt"
    for _ in range(5):
        path.write_text("b" if path.read_text() == "a" else "a")
        before = path.stat()
        assert "data/a.txt changed" in run()
        path.write_text("c")
        os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
        assert "data/a.txt changed" in run()


def test_a_changed_variable_is_seen(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The value of a declared variable is part of every recipe."""
    monkeypatch.setenv("STYLE", "fancy")
    assert stamped() is None
    assert "recipe changed" in run()


def test_a_copied_project_is_judged_anew_and_found_fresh(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A copy has other inodes: its stamp does not hold, and nothing is made there."""
    copy = project.parent / "copy"
    shutil.copytree(project, copy, symlinks=True)
    monkeypatch.chdir(copy)
    assert stamped() is None
    assert run().startswith("Nothing to do")
    assert stamped() is not None


@pytest.mark.parametrize("words", [("--rerun-all",), ("--set", "a=b"), ("listing",), ("-n",), ("--fresh",), ("-v",)])
def test_words_that_ask_for_more_pass_it_by(project: Path, words: tuple[str, ...]) -> None:
    """Only a plain run can have nothing to do."""
    assert stamped(*words) is None


@pytest.mark.parametrize("number", ["abc", "0", "-1", "", "²"])
def test_a_number_that_is_none_is_left_to_the_parser(project: Path, number: str) -> None:
    """With nothing to do, a wrong -j is as wrong as ever."""
    assert stamped("-j", "2") is not None
    assert stamped("-j", number) is None
    assert stamped("--jobs", number) is None


def test_an_unfinished_plan_has_no_stamp(project: Path) -> None:
    """Something failed: the next run must try it again."""
    (project / "tool.sh").write_text("exit 3")
    assert "failed" in run()
    assert stamped() is None
    time.sleep(0.05)
    assert "failed" in run()


def test_a_damaged_stamp_is_as_good_as_none(project: Path) -> None:
    """A flipped byte anywhere in the stamp is noticed."""
    path = next((project / ".headway/stamps").iterdir())
    data = path.read_bytes()
    for at in range(0, len(data), 7):
        path.write_bytes(data[:at] + bytes([data[at] ^ 1]) + data[at + 1 :])
        assert stamped() is None
    path.write_bytes(data[:10])
    assert stamped() is None


def test_a_stamp_that_cannot_be_put_in_place_leaves_nothing_behind(project: Path) -> None:
    """A disk that refuses it, half-way or at its end, is not filled any further."""
    path = next((project / ".headway/stamps").iterdir())
    path.unlink()
    path.mkdir()
    (project / "data/a.txt").write_text("b")
    assert "2 made" in run()
    assert list((project / ".headway/stamps").iterdir()) == [path]


def test_a_run_with_nothing_to_do_adds_no_byte(project: Path) -> None:
    """Neither by the stamp nor by the full judgement."""

    def sizes() -> dict[str, int]:
        home = project / ".headway"
        return {str(p): p.stat().st_size for p in home.rglob("*") if p.is_file() and "stamps" not in p.parts}

    run()
    before = sizes()
    for _ in range(3):
        run()
        shutil.rmtree(project / ".headway/stamps")
        run()
    assert sizes() == before


def test_after_a_change_only_what_it_reaches_is_looked_at(project: Path) -> None:
    """The stamp vouches for the rest: also for what only a full judgement would have to open to know."""
    (project / "tool.sh").write_text("echo another tool")
    probe = "import sys; from headway.surfaces.cli.main import main; from headway.engine.judge import Judge\n"
    probe += "again = Judge.again\n"
    probe += "Judge.again = lambda self, a, **k: (print('looked at', a), again(self, a, **k))[1]\n"
    probe += "main(['run'])"
    said = subprocess.run([sys.executable, "-c", probe], capture_output=True, text=True, check=False).stdout
    assert {line.split()[-1] for line in said.splitlines() if line.startswith("looked at")} == {"scripted"}
    assert "1 made, 3 kept" in said
    assert stamped() is not None
    (project / "out/function.txt").unlink()
    (project / "data/a.txt").write_text("b")
    assert "2 made, 1 restored, 1 kept" in run()


def test_a_module_that_is_also_a_source_is_followed_as_both(project: Path) -> None:
    """What one artifact reads may be what another is made by."""
    plan = PLAN + "  copied:\n    sources: [helper.py]\n    produces: out/copied.txt\n    run: cp helper.py {output}\n"
    (project / "headway.yaml").write_text(plan)
    assert "1 made, 4 kept" in run()
    assert stamped() is not None
    (project / "helper.py").write_text("def word():\n    return 'another word'\n")
    assert "2 made, 3 kept" in run()
    assert (project / "out/function.txt").read_text() == "another word"


def test_what_reads_outputs_without_requiring_them_is_found_by_the_run_after(project: Path) -> None:
    """No stamp covers it up: the file changed after its reader had been judged."""
    plan = (
        PLAN + "  summed:\n    sources: ['out/s*ed.txt']\n    produces: sum.txt\n    run: cat out/s*ed.txt > {output}\n"
    )
    (project / "headway.yaml").write_text(plan)
    run()
    run()
    assert stamped() is not None
    (project / "tool.sh").write_text("echo another tool")
    run()
    run()
    assert (project / "sum.txt").read_text() == "another tool\n"


def again_with(project: Path, more: str) -> None:
    """The plan has more artifacts, and they are made."""
    (project / "headway.yaml").write_text(PLAN + more)
    run()
    assert stamped() is not None


def test_a_file_that_appears_while_others_are_made_is_seen_by_those_that_were_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Who is made later in that run has the file; who was kept before it came has not, and is not up to date."""
    (tmp_path / "headway.yaml").write_text(
        "id: appears\ngoal: See what appears\nartifacts:\n"
        "  first: {sources: [name.txt], produces: first.out, make: tasks:first}\n"
        "  all: {sources: ['docs/*.md'], produces: all.out, run: \"cat {sources} > {output}\"}\n"
        "  late: {sources: ['docs/*.md'], requires: [first], produces: late.out, run: \"cat {sources} > {output}\"}\n"
    )
    (tmp_path / "tasks.py").write_text(
        "import pathlib\n\ndef first(ctx):\n    name = ctx.sources[0].read_text()\n"
        "    pathlib.Path(ctx.root, 'docs', f'{name}.md').write_text(name)\n    return name\n"
    )
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs/1.md").write_text("1")
    (tmp_path / "name.txt").write_text("1")
    monkeypatch.chdir(tmp_path)
    run()
    assert "Nothing to do" in run()
    assert stamped() is not None
    (tmp_path / "name.txt").write_text("2")
    run()
    assert (tmp_path / "late.out").read_text() == "12"
    assert stamped() is None
    assert "docs/2.md was added" in run()
    assert (tmp_path / "all.out").read_text() == "12"
    assert "Nothing to do" in run()


def test_a_file_that_a_command_names_and_another_one_leaves_beside_its_output_is_seen(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "headway.yaml").write_text(
        "id: beside\ngoal: Leave something beside\nartifacts:\n"
        '  a: {produces: a.out, run: "cat a.txt > {output}; test ! -e on || echo ran >> ran.log"}\n'
        '  b: {produces: b.out, run: "cat b.txt > {output}; test ! -e ran.log || cat ran.log >> {output}"}\n'
    )
    (tmp_path / "a.txt").write_text("a\n")
    (tmp_path / "b.txt").write_text("b\n")
    monkeypatch.chdir(tmp_path)
    assert "2 made" in run("-j1")
    (tmp_path / "on").touch()
    run("-j1")
    assert stamped() is None
    assert "ran.log was added" in run("-j1")
    assert (tmp_path / "b.out").read_text() == "b\nran\n"
    assert "Nothing to do" in run("-j1")


def test_what_changes_within_a_folder_that_is_read_is_seen(project: Path) -> None:
    """The folder itself looks as it did."""
    (project / "data/deep").mkdir()
    (project / "data/deep/b.txt").write_text("b")
    again_with(
        project, "  read:\n    sources: [data]\n    produces: out/read.txt\n    run: cat data/deep/b.txt > {output}\n"
    )
    (project / "data/deep/b.txt").write_text("c")
    assert stamped() is None
    assert "1 made, 4 kept" in run()
    assert stamped() is not None
    (project / "data/deep/c.txt").write_text("c")
    assert stamped() is None


def test_a_file_of_a_folder_output_that_is_also_a_source_is_an_edit_of_the_folder(project: Path) -> None:
    """Nothing is made from what somebody has edited before they said what it is."""
    again_with(
        project,
        "  part:\n    sources: [dist/deep/copy.txt]\n    requires: [tree]\n    produces: out/part.txt\n"
        "    run: cp dist/deep/copy.txt {output}\n",
    )
    (project / "dist/deep/copy.txt").write_text("edited")
    assert "1 blocked, 1 held" in run()
    assert (project / "out/part.txt").read_text() == "a"


def test_a_recipe_that_writes_into_anothers_folder_leaves_no_stamp(project: Path) -> None:
    """The folder was what it should be when it was made, and is not any more."""
    more = "  meddler:\n    sources: [tool.sh]\n    produces: out/meddler.txt\n"
    more += "    run: sleep 0.3; echo more > dist/deep/more.txt; echo done > {output}\n"
    (project / "headway.yaml").write_text(PLAN + more)
    assert "1 made, 4 kept" in run()
    assert stamped() is None
    assert "tree was edited since it was made" in run()


@pytest.mark.parametrize("first", [True, False])
def test_what_headway_wrote_and_a_recipe_then_changed_is_seen(project: Path, first: bool) -> None:
    """Such a file is named as it was left, in this run or an earlier one, without another look at it."""
    more = "  meddler:\n    requires: [function]\n    produces: out/meddler.txt\n"
    more += "    run: sleep 0.1; echo else > out/function.txt; echo done > {output}\n"
    (project / "headway.yaml").write_text(PLAN + more)
    if first:
        (project / "helper.py").write_text("def word():\n    return 'other'\n")
    assert ("2 made, 3 kept" if first else "1 made, 4 kept") in run()
    assert stamped() is None
    assert "function was edited since it was made" in run()
    assert (project / "out/function.txt").read_text() == "else\n"


def test_a_state_that_is_only_read_is_seen_to_change(project: Path) -> None:
    """No artifact leaves it, so nobody but its readers can tell."""
    (project / "state.json").write_text("1")
    phase = "{run: 'cat {state} > {outputs.copy}', outputs: {copy: 'out/{unit}.md'}, pre_state: true}"
    again_with(
        project, f"pipelines:\n  each:\n    units: [u]\n    state: state.json\n    phases:\n      copy: {phase}\n"
    )
    (project / "state.json").write_text("2")
    assert stamped() is None
    assert "u/copy was made from another state" in run()


def test_a_command_that_names_a_folder_can_have_a_stamp(project: Path) -> None:
    """A word that is no file is no source; once it is a file, it is one."""
    again_with(project, "  listed:\n    produces: out/listed.txt\n    run: ls data > {output}\n")
    shutil.rmtree(project / "data")
    (project / "data").write_text("a file")
    assert stamped() is None


def test_a_text_that_is_lost_with_its_blob_is_made_again(project: Path) -> None:
    """An artifact without files has nothing else to show for itself."""
    again_with(project, "  text:\n    sources: [data/a.txt]\n    run: cat data/a.txt\n")
    shutil.rmtree(project / ".headway/blobs")
    assert stamped() is None
    assert "1 made, 4 kept" in run()
    assert stamped() is not None


def test_a_link_under_a_pattern_that_begins_to_lead_somewhere_is_seen(project: Path) -> None:
    """It was there all the time, so its folder looks as it did."""
    (project / "data/far.txt").symlink_to("../far.txt")
    (project / "tool.sh").write_text("echo another tool")
    run()
    assert stamped() is not None
    (project / "far.txt").write_text("far")
    assert stamped() is None
    run()
    assert (project / "out/listing.txt").read_text() == "afar"


@pytest.mark.parametrize("by_itself", [True, False])
def test_a_module_in_a_folder_of_the_projects_own_counts(
    project: Path, monkeypatch: pytest.MonkeyPatch, by_itself: bool
) -> None:
    """Whoever names the folder, the file or PYTHONPATH: what is judged before it is loaded is what was made after."""
    (project / "lib").mkdir()
    (project / "helper.py").rename(project / "lib/helper.py")
    adds = "import sys\nsys.path.insert(0, 'lib')\n" if by_itself else ""
    (project / "tasks.py").write_text(f"{adds}import helper\ndef make():\n    return helper.word()\n")
    if not by_itself:
        monkeypatch.setenv("PYTHONPATH", "lib")
    run()
    assert "Nothing to do" in run()
    os.utime("tasks.py")
    assert "Nothing to do" in run(), "by looking at all of it"
    (project / "lib/helper.py").write_text("def word():\n    return 'other'\n")
    assert "1 made" in run()
    assert Path("out/function.txt").read_text() == "other"
    assert "Nothing to do" in run()
    (project / "helper.py").write_text("def word():\n    return 'at the root'\n")
    assert "Nothing to do" not in run(), "it may be that one now"


def test_a_folder_that_is_named_for_something_else_holds_none_of_the_modules(project: Path) -> None:
    """A program has many words, and folders may be called like one of them."""
    for folder in ("lib", "tests"):
        (project / folder).mkdir()
        shutil.copy(project / "helper.py", project / folder)
    (project / "helper.py").unlink()
    (project / "tasks.py").write_text(
        "import os, sys\nsys.path.insert(0, os.path.join(os.path.dirname(__file__), 'lib'))\nimport helper\n"
        "def make():\n    return helper.word()\nKINDS = {'unit': 'tests'}\ndef usage():\n    return f'one of {KINDS}'\n"
        "if __name__ == '__main__':\n    sys.path.append(os.getcwd())\n    print(usage())\n"
    )
    run()
    (project / "tests/helper.py").write_text("def word():\n    return 'a test'\n")
    assert stamped() is not None
    os.utime("tasks.py")
    assert "Nothing to do" in run(), "by looking at all of it"


def test_a_folder_that_is_added_and_appears_later_is_noticed(project: Path) -> None:
    """Python may find the module there now."""
    (project / "tasks.py").write_text(
        "import sys\nsys.path.insert(0, 'lib')\nimport helper\ndef make():\n    return helper.word()\n"
    )
    run()
    assert stamped() is not None
    (project / "lib").mkdir()
    assert stamped() is None
    assert "Nothing to do" in run()
    assert stamped() is not None
    (project / "lib/helper.py").write_text("def word():\n    return 'other'\n")
    assert "1 made" in run()


def test_a_word_of_a_command_that_names_a_folder_leaves_the_stamp(project: Path) -> None:
    """It is none of those that must not appear."""
    again_with(
        project, "  words:\n    sources: [data/a.txt]\n    run: ls data/ ./data/ > {output}\n    produces: out/ls\n"
    )
    assert stamped() is not None


def test_another_search_path_is_no_reason_to_believe_a_stamp(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Modules are looked for elsewhere then."""
    (project / "lib").mkdir()
    (project / "lib/helper.py").write_text("def word():\n    return 'other'\n")
    monkeypatch.setenv("PYTHONPATH", "lib")
    assert "Nothing to do" not in run()
