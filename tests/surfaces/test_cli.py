"""The command line: what is said, on which stream, with which exit code, and that looking changes nothing."""

from __future__ import annotations

import builtins
import gc
import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from headway.surfaces.cli.main import VERBS, load_verb, main, parser_of
from headway.surfaces.cli.parser import Parser
from headway.surfaces.cli.verbs import init
from tests.workshop import PLAN, Workshop, tree

READING = [
    ["plans", "list"],
    ["plans", "show"],
    ["plans", "show", "api"],
    ["plans", "show", "--at", "1"],
    ["log"],
    ["log", "--last", "2", "--since", "2", "--at", "3"],
    ["profile"],
    ["profile", "show", "--at", "2"],
    ["doctor"],
    ["doctor", "--plan-id", "api"],
    ["schema"],
    ["status"],
    ["status", "--at", "3"],
    ["why", "model"],
    ["why", "model", "--at", "2", "--verbose"],
    ["why"],
    ["next", "--at", "2"],
    ["show", "model"],
    ["diff", "model", "--to", "5"],
    ["log", "--trace"],
    ["plans", "diff"],
    ["plans", "diff", "--at", "1"],
    ["plans", "template"],
    ["run", "-n"],
    ["run", "--diff-plan"],
    ["gc", "--dry-run"],
    ["gc", "--outputs", "--dry-run"],
]
Run = Callable[..., Any]


@pytest.fixture
def shop(tmp_path: Path) -> Workshop:
    """A project with a saved plan of which one artifact is done."""
    shop = Workshop(tmp_path / "project")
    shop.save()
    shop.complete("model")
    return shop


@pytest.fixture
def run(shop: Workshop, capsys: pytest.CaptureFixture[str]) -> Run:
    """A command line for that project, in this process."""
    return lambda *words: shop.run(capsys, *words)


def headway(*words: str, cwd: Path, **options: Any) -> subprocess.CompletedProcess[str]:
    """The real command, in a process of its own."""
    command = [str(Path(sys.executable).with_name("headway")), *words]
    return subprocess.run(command, cwd=cwd, capture_output=True, text=True, check=False, timeout=60, **options)


# Looking.


@pytest.mark.parametrize("words", READING, ids=" ".join)
def test_looking_changes_nothing(shop: Workshop, run: Run, words: list[str]) -> None:
    """No reading verb creates, writes or touches a file, with --json or without."""
    before = shop.tree()
    for extra in ([], ["--json"]):
        done = run(*words, *extra)
        assert (done.code, done.err) == (0, "")
    assert shop.tree() == before


@pytest.mark.parametrize("words", READING, ids=" ".join)
def test_json_is_one_document_on_stdout(run: Run, words: list[str]) -> None:
    """Every reading verb answers machines with a mapping, and people with something else on the same stream."""
    assert isinstance(run(*words, "--json").json, dict)
    assert run(*words).out.strip()


@pytest.mark.parametrize("words", [words for words in READING if words[0] != "schema"], ids=" ".join)
def test_a_project_that_cannot_be_written_can_be_read(
    run: Run, words: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """On a read-only disk every reading verb says what it says elsewhere."""
    expected = run(*words)
    really_open, really_os_open = builtins.open, os.open

    def open_to_read(file: Any, mode: str = "r", *args: Any, **options: Any) -> Any:
        if set(mode) & set("wax+"):
            raise OSError(30, "Read-only file system", file)
        return really_open(file, mode, *args, **options)

    def os_open_to_read(path: Any, flags: int, *args: Any, **options: Any) -> int:
        if flags & (os.O_WRONLY | os.O_RDWR | os.O_CREAT):
            raise OSError(30, "Read-only file system", path)
        return really_os_open(path, flags, *args, **options)

    def refuse(path: Any, *args: Any, **options: Any) -> None:
        raise OSError(30, "Read-only file system", path)

    monkeypatch.setattr(builtins, "open", open_to_read)
    monkeypatch.setattr(os, "open", os_open_to_read)
    for name in ("mkdir", "rename", "replace", "unlink", "remove", "rmdir", "link", "symlink", "truncate"):
        monkeypatch.setattr(os, name, refuse)
    assert run(*words) == expected


@pytest.mark.parametrize("words", [["plans", "list"], ["doctor"]], ids=" ".join)
def test_an_empty_folder_can_be_looked_at(tmp_path: Path, capsys: pytest.CaptureFixture[str], words: list[str]) -> None:
    """Where there is no project yet, looking creates none."""
    assert main([*words, "--project", str(tmp_path)]) == 0
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    "words", [["log"], ["plans", "show"], ["profile"], ["reset", "--all"], ["export", "x"]], ids=" ".join
)
def test_verbs_about_a_plan_need_one(tmp_path: Path, capsys: pytest.CaptureFixture[str], words: list[str]) -> None:
    """Without any plan they end with 2, say how to begin, and create nothing."""
    assert main([*words, "--project", str(tmp_path)]) == 2
    assert "headway init" in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


def test_a_run_leaves_the_collector_as_it_was_and_recipes_are_looked_after(tmp_path: Path) -> None:
    """A plan is passed over while it is in hand; what recipes leave behind is not, and afterwards nothing is."""
    (tmp_path / "headway.yaml").write_text("id: p\ngoal: g\nartifacts: {a: {make: 'tasks:look', produces: a.txt}}\n")
    (tmp_path / "tasks.py").write_text(
        "import gc\ndef look():\n    return f'{gc.isenabled()} {gc.get_freeze_count() > 0}'\n"
    )
    before = (gc.isenabled(), gc.get_threshold(), gc.get_freeze_count())

    assert main(["run", "--project", str(tmp_path)]) == 0

    assert (tmp_path / "a.txt").read_text() == "True True"
    assert (gc.isenabled(), gc.get_threshold(), gc.get_freeze_count()) == before


def test_the_list_shows_damaged_plans_too(shop: Workshop, run: Run) -> None:
    """One plan that cannot be read does not keep the others from being shown."""
    run("import", str(shop.folder() / "export"), "--plan-id", "other")
    shop.ledger("other").write_bytes(b"")
    done = run("plans", "list")
    assert done.code == 0
    first, second = done.out.splitlines()
    assert first.startswith("api    in_progress  1/2  20")
    assert second.startswith("other  unreadable")
    listed = run("plans", "list", "--json").json["plans"]
    assert [entry["status"] for entry in listed] == ["in_progress", "unreadable"]
    assert listed[1]["error"]["code"].startswith("ledger.")


def test_a_plan_is_shown_by_waves(run: Run) -> None:
    """Goal, state, and each artifact with its sign, what it is and what it needs."""
    assert run("plans", "show").out.splitlines() == [
        "Build an API",
        "Plan api, version 1: in progress, 1 of 2 done, as of event 6",
        "",
        "Wave 1",
        "  ✓ model  The user model",
        "",
        "Wave 2",
        "  · routes  The routes  needs model",
    ]


def test_what_is_on_a_cycle_is_shown_apart(shop: Workshop, run: Run) -> None:
    """An artifact that belongs to no wave is not lost from sight."""
    shop.edit("  model:\n", "  model:\n    requires: [routes]\n")
    run("plans", "new")
    done = run("plans", "show")
    assert "On or behind a cycle\n  ✓ model" in done.out
    assert "in a cycle" in done.err


def test_the_log_tells_what_happened(run: Run) -> None:
    """One line an event, with number, time and author; the last ones only, or those up to an earlier one."""
    lines = run("log").out.splitlines()
    assert [line.split("  ", 3)[3].strip() for line in lines][:4] == [
        "plan created: 2 artifacts for “Build an API”",
        "took in headway.yaml",
        "started model",
        "made model in 7 ms",
    ]
    assert run("log", "-n", "1").out.splitlines() == [lines[-1]]
    assert [line[0] for line in run("log", "--at", "2").out.splitlines()] == ["1", "2"]
    events = run("log", "--json").json["events"]
    assert [event["type"] for event in events][:2] == ["plan_created", "proposal_taken"]
    assert (events[-1]["type"], list(events[-1]["data"])) == ("snapshot", ["digest"])
    assert "snapshot" not in "".join(lines)
    assert run("log", "--all", "-n", "1").out.rstrip().endswith("snapshot")
    assert set(events[0]) == {"seq", "ts", "type", "by", "data", "hash"}


def test_times_for_people_are_one_form_and_say_their_zone(shop: Workshop, run: Run) -> None:
    """To the second, in UTC, wherever they are told; machines get what was recorded."""
    shop.file.write_text(
        "id: times\ngoal: g\nartifacts: {hand: {produces: hand.txt}}\n"
        "pipelines:\n  p:\n    units: [a]\n    phases:\n      d: {run: 'echo d'}\n      q: {run: 'exit 75'}\n",
        encoding="utf-8",
    )
    run("run")
    claim = run("claim", "hand")
    verbs = (["log"], ["show", "a/d"], ["phases", "a"], ["plans", "list"], ["status"], ["next"], ["why", "hand"])
    for done in (claim, run("heartbeat", "hand"), *(run(*words) for words in verbs)):
        assert re.search(r"\b\d{4}-\d\d-\d\d \d\d:\d\d:\d\dZ(?!\S*\d)", done.out)
        assert not re.search(r"\d\dT\d\d:", done.out)
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d+Z", run("log", "--json").json["events"][0]["ts"])


@pytest.mark.parametrize("words", [["log"], ["plans", "show"], ["profile"]], ids=" ".join)
@pytest.mark.parametrize("at", ["0", "99", "-1"])
def test_an_event_that_is_not_there_is_said_not_to_be(run: Run, words: list[str], at: str) -> None:
    """--at names an event of the ledger; any other number is exit 2."""
    done = run(*words, f"--at={at}")
    assert (done.code, done.out) == (2, "")
    assert f"has no event {at}" in done.err


# Errors.


def test_an_error_has_its_parts(run: Run) -> None:
    """What happened, the facts, and what to do next; on stderr, and for machines on stdout as well."""
    done = run("plans", "show", "apu")
    assert (done.code, done.out) == (2, "")
    assert done.err == "headway: There is no plan apu\n  did you mean: api\n  next: headway plans list\n"
    found = run("plans", "show", "apu", "--json")
    assert found.json == {
        "error": {
            "code": "plan.none",
            "message": "There is no plan apu",
            "facts": {"did you mean": "api"},
            "hint": "headway plans list",
        }
    }


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["plns"], ["headway has no verb 'plns'", "did you mean: headway plans"]),
        (["--project", "x"], ["The verb comes first", "headway VERB --project"]),
        (["plans"], ["plans needs ACTION", "headway plans --help"]),
        (["plans", "lst"], ["plans has no action 'lst'", "did you mean: list"]),
        (
            ["plans", "xyzzy"],
            ["plans has no action 'xyzzy'", "known: new, list, show, edit, diff, template, clean, close"],
        ),
        (["plans", "show", "--jsn"], ["plans show has no option --jsn", "did you mean: --json"]),
        (["plans", "new", "--tak=file"], ["plans new has no option --tak", "did you mean: --take"]),
        (["plans", "new", "--take", "fil"], ["plans new has no --take 'fil'", "did you mean: file"]),
        (["history"], ["headway has no verb 'history'", "did you mean: headway dag show"]),
        (["explain", "model"], ["headway has no verb 'explain'", "did you mean: headway why"]),
        (["log", "what"], ["log does not know what to do with 'what'", "next: headway show --project "]),
        (["log", "--wat"], ["log has no option --wat"]),
        (["log", "--at", "x"], ["log: argument --at: invalid int value: 'x'"]),
        (["profile", "lok"], ["profile has no action 'lok'", "did you mean: lock"]),
        (["completion", "tcsh"], ["completion has no shell 'tcsh'", "headway completion --help"]),
        (["export", "sausage", "x"], ["export has no format 'sausage'"]),
        (["import"], ["import needs PATH"]),
        (["profile", "set"], ["Say what to set"]),
        (["profile", "--max-concurrent-tasks", "3"], ["Showing a profile changes nothing"]),
        (["profile", "set", "--no-parallel", "--at", "1"], ["The past cannot be changed"]),
        (["profile", "set", "--max-concurrent-tasks", "99"], ["1 to 64", "given: 99"]),
        (["reset"], ["Say what to reset", " --all --plan-id api for all"]),
        (["plans", "show", "api", "--plan-id", "other"], ["different plans"]),
        (["plans", "show", "../x"], ["cannot name a plan"]),
        (["plans", "new", "nowhere.yaml"], ["There is no file"]),
        (["doctor", "--drift", "adopt"], ["headway doctor --repair --drift adopt"]),
    ],
)
def test_a_wrong_command_line_is_explained(shop: Workshop, run: Run, words: list[str], said: list[str]) -> None:
    """Exit 2, nothing on stdout, nothing changed, and a line that helps."""
    before = shop.tree()
    done = run(*words) if words not in (["plans"], ["--project", "x"]) else run(*words, "--project")
    assert (done.code, done.out) == (2, "")
    for line in said:
        assert line in done.err
    assert done.err.startswith("headway: ")
    assert "\n  next: " in done.err
    assert shop.tree() == before


def test_a_folder_that_is_not_there_is_no_project(run: Run, tmp_path: Path) -> None:
    """--project does not create what it names."""
    done = run("plans", "list", "--project", str(tmp_path / "nowhere"))
    assert done.code == 2
    assert not (tmp_path / "nowhere").exists()


def test_the_home_folder_is_never_a_project(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Neither by being there nor by being named: nothing is written to it."""
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    for words in (["init"], ["plans", "list"], ["plans", "list", "--project", str(tmp_path)]):
        assert main(words) == 2
        assert "home folder is never a project" in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


def test_a_bug_is_called_a_bug(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever else goes wrong ends with 70, in the same shape."""
    import headway.store

    def broken(self: Any) -> None:
        raise ZeroDivisionError("oops")

    monkeypatch.setattr(headway.store.PlanStore, "list_all", broken)
    done = run("plans", "list")
    assert (done.code, done.out) == (70, "")
    assert "ZeroDivisionError: oops" in done.err
    assert "please report" in done.err


# Verbs and their options.


def parsers(parser: Parser) -> list[Parser]:
    """A parser and those of its actions."""
    found = [parser]
    for action in parser._actions:
        if isinstance(action.choices, dict):
            found += [inner for choice in action.choices.values() for inner in parsers(choice)]
    return found


@pytest.mark.parametrize("name", [verb.name for verb in VERBS])
def test_every_verb_can_be_asked_for_help(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    """--help and `help VERB` say the same and end with 0."""
    assert main([name, "--help"]) == 0
    shown = capsys.readouterr().out
    assert shown.startswith(f"usage: headway {name}")
    assert main(["help", name]) == 0
    assert capsys.readouterr().out == shown


@pytest.mark.parametrize("name", [verb.name for verb in VERBS])
def test_every_verb_takes_a_project(name: str) -> None:
    """--project, on the verb or on each of its actions."""
    whole, *inner = parsers(parser_of(name, load_verb(name)))
    for parser in inner or [whole]:
        assert "--project" in parser.options(), parser.prog


def test_the_overview_lists_every_verb(capsys: pytest.CaptureFixture[str]) -> None:
    """headway, headway help and headway --help show all verbs, each with what it is for."""
    assert main([]) == 0
    shown = capsys.readouterr().out
    for verb in VERBS:
        assert f"  {verb.name:<12}{verb.help}" in shown
    for words in (["--help"], ["-h"], ["help"]):
        assert main(words) == 0
        assert capsys.readouterr().out == shown


def test_the_version_is_told(capsys: pytest.CaptureFixture[str]) -> None:
    """headway --version names itself and a number."""
    assert main(["--version"]) == 0
    assert capsys.readouterr().out.startswith("headway 0.")


# What each verb does.


def test_init_writes_a_plan_that_can_be_saved(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """At most twenty lines, three commands to go on with, and no problem in it."""
    shop = tmp_path / "my project"
    assert main(["init", "--project", str(shop)]) == 0
    assert len([line for line in capsys.readouterr().out.splitlines() if line.startswith("  headway ")]) == 3
    text = (shop / "headway.yaml").read_text(encoding="utf-8")
    assert text.startswith("id: my-project\n")
    assert len(text.splitlines()) <= 20
    assert main(["plans", "new", "--project", str(shop)]) == 0


def test_init_overwrites_nothing(shop: Workshop, run: Run) -> None:
    """A plan file that is there stays as it is: exit 3."""
    before = shop.tree()
    done = run("init")
    assert done.code == 3
    assert "There is a headway.yaml already" in done.err
    assert shop.tree() == before


@pytest.mark.parametrize("name", ["headway.json", "headway.py"])
def test_init_hides_no_other_plan(tmp_path: Path, capsys: pytest.CaptureFixture[str], name: str) -> None:
    """A plan file of another kind is the project's plan: a new one would take its place."""
    (tmp_path / name).write_text("{}", encoding="utf-8")
    assert main(["init", "--project", str(tmp_path)]) == 3
    assert f"There is a {name} already" in capsys.readouterr().err
    assert [path.name for path in tmp_path.iterdir()] == [name]


@pytest.mark.parametrize(
    "name", ["123", "true", "No", "2024-01-01", "1e5", "...", "日本", "-x-", "0x1F", "a" * 80, "x y"]
)
def test_init_finds_an_id_for_any_folder(tmp_path: Path, capsys: pytest.CaptureFixture[str], name: str) -> None:
    """Whatever the folder is called, the plan file has no problem."""
    folder = tmp_path / "in" / name
    folder.mkdir(parents=True)
    assert main(["init", "--project", str(folder)]) == 0
    assert main(["plans", "new", "--project", str(folder), "--json"]) == 0
    assert main(["log", "--project", str(folder)]) == 0
    assert capsys.readouterr().err == ""
    assert init.NAME == "headway.yaml"


def test_saving_says_what_changed(shop: Workshop, run: Run) -> None:
    """Created, updated with the changes, or unchanged."""
    assert run("plans", "new").out == "Plan api unchanged: 2 artifacts, 1 done.\n"
    shop.edit("The routes", "All routes")
    shop.edit("artifacts:", "artifacts:\n  docs: {}")
    done = run("plans", "new")
    assert done.code == 0
    assert done.out.splitlines()[:3] == ["Plan api updated: 3 artifacts, 1 done.", "  added docs", "  updated routes"]


def test_a_draft_is_saved_and_ends_with_two(shop: Workshop, run: Run) -> None:
    """Every problem is told on stderr with its line; the plan is saved all the same."""
    shop.edit("[model]", "[modl]")
    done = run("plans", "new")
    assert done.code == 2
    assert "Plan api updated" in done.out
    assert "line 11: artifact routes requires modl, which is not in the plan (did you mean model?)" in done.err
    assert "saved as a draft" in done.err
    document = run("plans", "new", "--json")
    assert (document.code, document.json["outcome"]) == (2, "unchanged")
    assert document.json["problems"][0]["code"] == "plan.missing"


def test_text_that_does_not_parse_is_not_saved(shop: Workshop, run: Run) -> None:
    """Exit 2, with the line, and nothing has changed."""
    shop.file.write_text("goal: [", encoding="utf-8")
    before = shop.tree()
    done = run("plans", "new")
    assert (done.code, done.out) == (2, "")
    assert "line 2: this is not YAML" in done.err
    assert shop.tree() == before


def test_a_conflict_ends_with_three_until_the_user_takes_a_side(shop: Workshop, run: Run) -> None:
    """Both ways out are named, and either works."""
    from tests.workshop import spec

    shop.change(spec("routes", "model", description="Theirs"))
    shop.edit("The routes", "Mine")
    done = run("plans", "new")
    assert (done.code, done.out) == (3, "")
    assert "changed on both sides: routes" in done.err
    assert run("plans", "new", "--take", "ledger").code == 0
    assert shop.load().state.artifacts["routes"].description == "Theirs"


def test_a_python_plan_is_saved_like_any_other(shop: Workshop, run: Run) -> None:
    """headway.py is the default where there is no headway.yaml, and its plan can be looked at without running it."""
    shop.file.unlink()
    (shop.root / "headway.py").write_text(
        "from headway import Plan\nplan = Plan('Count', id='count')\nplan.add('n', run='echo 1', produces='n.txt')\n",
        encoding="utf-8",
    )
    assert run("plans", "new").out == "Plan count created: 1 artifact.\n"
    (shop.root / "headway.py").write_text("raise SystemExit('executed')", encoding="utf-8")
    assert run("plans", "show").out.splitlines()[0] == "Count"


def test_closing_and_resetting(shop: Workshop, run: Run) -> None:
    """A closed plan refuses work with 3 until it is reset; both are told."""
    assert run("plans", "close", "--reason", "done with it").out == (
        "Plan api closed: 2 artifacts, 1 done. Its ledger and checkpoint stay.\n"
    )
    assert run("plans", "close").code == 3
    assert run("profile", "set", "--no-parallel").code == 3
    assert "plan closed (done with it)" in run("log").out
    reset = run("reset", "--all").out
    assert reset.startswith("Plan api reset: 2 artifacts to make.")
    assert "Next: headway run" in reset
    assert run("plans", "show", "--json").json["execution"]["status"] == "draft"


def test_a_profile_is_set_and_locked(run: Run) -> None:
    """A number implies parallel; a locked profile refuses with 3 and takes the same again with 0."""
    assert run("profile").out == "Plan api has no profile: it is not bound by one.\n"
    assert run("profile", "--json").json == {"plan_id": "api", "execution_profile": None}
    assert run("profile", "set", "--max-concurrent-tasks", "4").out.split() == [
        *("parallelization_enabled", "true", "max_concurrent_tasks", "4"),
        *("council_parallel", "false", "locked", "false"),
    ]
    assert run("profile", "lock").code == 0
    assert run("profile", "set", "--max-concurrent-tasks", "5").code == 3
    assert run("profile", "set", "--max-concurrent-tasks", "4").code == 0
    assert run("profile", "show", "--at", "6").out.startswith("Plan api has no profile")


def test_a_checkpoint_goes_to_another_project(shop: Workshop, run: Run, tmp_path: Path) -> None:
    """Exported here and imported there, the plan is the same; a second import changes nothing."""
    out, there = tmp_path / "out", tmp_path / "there"
    there.mkdir()
    done = run("export", str(out))
    assert done.out == f"Plan api exported to {out}/PLAN.json and {out}/PLAN.md\n"
    imported = run("import", "checkpoint", str(out), "--project", str(there))
    assert imported.out == f"Plan api created: 2 artifacts from {out}\n"
    ours = run("plans", "show", "--json").json
    theirs = run("plans", "show", "--json", "--project", str(there)).json
    for key in ("goal", "graph", "execution", "metrics", "execution_profile", "created_at"):
        assert ours[key] == theirs[key], key
    before = tree(there)
    shutil.rmtree(there / ".headway" / "plans" / "api" / "quarantine", ignore_errors=True)
    again = run("import", str(out), "--project", str(there))
    assert (again.code, again.out.split(":")[0]) == (0, "Plan api has this checkpoint already")
    assert tree(there) == before
    assert run("import", str(out), "--project", str(there), "--replace").code == 0


def test_what_was_edited_is_told_on_the_side(shop: Workshop, run: Run) -> None:
    """The command succeeds; the answer stays on stdout and the note on stderr."""
    path = shop.folder() / "plan.json"
    path.write_bytes(path.read_bytes().replace(b"The routes", b"My routes "))
    done = run("profile", "set", "--no-parallel", "--json")
    assert done.code == 0
    assert done.json["execution_profile"]["parallelization_enabled"] is False
    assert done.err == "plan.json was edited by hand and is left alone: headway doctor shows the difference\n"


def test_the_schema_is_json(run: Run) -> None:
    """With --json or without."""
    assert run("schema").json["title"] == "Headway plan"
    assert run("schema").out == run("schema", "--json").out


def test_no_command_pays_for_types_of_later_pythons_and_a_function_may_use_them(tmp_path: Path) -> None:
    """Importing them takes a tenth of a look at the status; whoever asks for them gets them, and they count."""
    (tmp_path / "headway.yaml").write_text(
        "id: p\ngoal: g\nartifacts:\n  a: {make: tasks:a, produces: a.json}\n"
        "  b: {make: tasks:b, requires: [a], produces: b.txt}\n  c: {make: tasks:c, requires: [a], produces: c.txt}\n"
    )
    (tmp_path / "tasks.py").write_text(
        "from typing_extensions import NotRequired, TypedDict\n"
        "class Told(TypedDict):\n    size: int\n    name: NotRequired[str]\n"
        "class Other(TypedDict):\n    size: str\n"
        "def a(): return {'size': 3}\n"
        "def b(ctx): return str(ctx.inputs['a'].json(Told))\n"
        "def c(ctx): return str(ctx.inputs['a'].json(Other))\n"
    )
    ran = headway("run", cwd=tmp_path)
    assert ran.returncode == 1, "what c reads is not of its type"
    assert "Expected `str`, got `int`" in ran.stdout + ran.stderr
    assert (tmp_path / "b.txt").read_text() == "{'size': 3}"
    code = "import sys; from headway.surfaces.cli.main import main; main(['status'])"
    code += "; print('typing_extensions' in sys.modules)"
    looked = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=True)
    assert looked.stdout.endswith("False\n")


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_knows_every_verb_and_option(run: Run, shell: str) -> None:
    """Verbs, actions and options are offered, in words that the shell accepts."""
    script = run("completion", shell).out
    for verb in VERBS:
        assert verb.name in script
    assert "max-concurrent-tasks" in script
    found = shutil.which(shell)
    if found:
        subprocess.run([found, "-n", "/dev/stdin"], input=script, text=True, check=True)


def test_bash_completes(run: Run, tmp_path: Path) -> None:
    """After `headway plans` the actions are offered, and those of its actions."""
    bash = shutil.which("bash")
    if bash is None:
        pytest.skip("no bash here")
    script = run("completion", "bash").out
    words = 'COMP_WORDS=(headway plans s); COMP_CWORD=2; _headway; echo "${COMPREPLY[@]}"'
    done = subprocess.run([bash, "-c", f"{script}\n{words}"], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["show", "set"]


def test_the_plan_file_of_another_project_is_refused_unless_that_is_meant(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Its paths are the other project's: nothing is made or written here, and what is named goes on."""
    (tmp_path / "big").mkdir()
    (tmp_path / "here").mkdir()
    (tmp_path / "big/headway.yaml").write_text(
        "id: big\ngoal: g\nartifacts:\n  a: {produces: a.txt, run: 'echo a > {output}'}\n"
    )
    monkeypatch.chdir(tmp_path / "here")
    assert main(["run", "--plan", "../big/headway.yaml", "--project", "../big"]) == 0
    capsys.readouterr()
    for verb in ("run", "status"):
        assert main([verb, "--plan", "../big/headway.yaml"]) == 2
        assert "next: add --project ../big, or --project . if it is meant for this folder" in capsys.readouterr().err
    assert [*(tmp_path / "here").iterdir()] == []
    assert main(["run", "--plan", "../big/headway.yaml", "--project", "."]) == 0
    assert (tmp_path / "here/a.txt").exists()
    (tmp_path / "big/sub").mkdir()  # a project of its own within another one, in which nothing was run so far
    shutil.copy(tmp_path / "big/headway.yaml", tmp_path / "big/sub")
    monkeypatch.chdir(tmp_path / "big/sub")
    assert main(["run", "--plan", "headway.yaml"]) == 0
    assert (tmp_path / "big/sub/a.txt").exists()


@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.binary(max_size=60) | st.text(max_size=60).map(lambda text: ("id: x\ngoal: " + text).encode("utf-8")))
def test_any_plan_file_ends_in_an_answer(tmp_path: Path, data: bytes) -> None:
    """Whatever is in the file, the command ends with 0 or 2: never with a bug."""
    path = tmp_path / "plan.yaml"
    path.write_bytes(data)
    assert main(["plans", "new", str(path), "--project", str(tmp_path)]) in (0, 2)


@pytest.mark.parametrize(
    "value", ["1" * 400, "-1" + "0" * 30, ".nan", "1e999", "2024-01-01", "!!binary eA==", "{1: 2}"]
)
def test_values_that_json_does_not_have_end_in_an_answer(shop: Workshop, run: Run, value: str) -> None:
    """Numbers without end, dates and the like are problems or text, and never a bug."""
    shop.file.write_text(PLAN + f"vars: {{x: {value}}}\n", encoding="utf-8")
    assert run("plans", "new").code in (0, 2)
    assert run("plans", "show").code == 0
    assert run("doctor").code == 0


# The real command.


def test_the_real_command_from_start_to_end(tmp_path: Path) -> None:
    """init, save, show, export, import and doctor, each in a process of its own, below the project's root."""
    root, inner = tmp_path / "project", tmp_path / "project" / "src"
    inner.mkdir(parents=True)
    assert headway("init", cwd=root).returncode == 0
    assert "created: 3 artifacts" in headway("plans", "new", cwd=inner).stdout
    shown = headway("plans", "show", "--json", cwd=inner)
    assert (shown.returncode, shown.stderr) == (0, "")
    assert json.loads(shown.stdout)["plan_id"] == "project"
    assert headway("export", "../out", cwd=inner).returncode == 0
    assert (root / "out" / "PLAN.json").is_file()
    assert headway("doctor", cwd=root).stdout == "All is well: 1 plan verified.\n"
    assert not (inner / ".headway").exists()


def test_python_m_headway_is_headway(tmp_path: Path) -> None:
    """The module can be run where the command is not on the path."""
    done = subprocess.run(
        [sys.executable, "-m", "headway", "plans", "lst"], check=False, capture_output=True, text=True, cwd=tmp_path
    )
    assert done.returncode == 2
    assert "did you mean: list" in done.stderr


def test_a_reader_that_stops_listening_is_no_error(shop: Workshop) -> None:
    """`headway schema | head -1` ends quietly."""
    command = Path(sys.executable).with_name("headway")
    done = subprocess.run(
        f"{command} schema | head -1", shell=True, cwd=shop.root, capture_output=True, text=True, check=False
    )
    assert done.stdout == "{\n"
    assert done.stderr == ""


def test_a_terminal_without_unicode_is_no_error(shop: Workshop) -> None:
    """Signs that cannot be shown are escaped."""
    done = headway("plans", "show", cwd=shop.root, env={**os.environ, "PYTHONIOENCODING": "ascii"})
    assert (done.returncode, done.stderr) == (0, "")
    assert "\\u2713 model" in done.stdout


def test_listing_plans_loads_no_more_than_it_needs(shop: Workshop) -> None:
    """Start-up is a feature: no YAML, no SQLite, no asyncio, no rich, no engine."""
    code = (
        "import sys; from headway.surfaces.cli.main import main; code = main(['plans', 'list']); "
        "print(code, sorted({'yaml', 'sqlite3', 'asyncio', 'rich', 'tomllib', 'difflib', 'headway.engine', "
        "'headway.work', 'headway.doctor'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=shop.root, capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "0 []"


HEAVY = {
    "asyncio", "dataclasses", "difflib", "gzip", "headway.core.check_pipelines", "headway.core.pipelines",
    "headway.core.placeholders", "headway.engine.archive", "headway.engine.expansion", "headway.engine.growth",
    "headway.engine.live", "headway.engine.planners", "headway.engine.preview", "headway.files.plan_reader",
    "headway.projections.phases", "jinja2", "json", "logging", "multiprocessing", "random", "rich", "shutil",
    "subprocess", "tempfile", "tomllib", "yaml",
}  # fmt: skip
MAKES = {"headway.engine.making", "headway.engine.run", "headway.engine.workers", "pathlib", "urllib"}


@pytest.mark.parametrize(
    ("words", "heavy"),
    [(["run"], HEAVY), (["status"], HEAVY | MAKES), (["why", "all"], HEAVY | MAKES)],
    ids=lambda given: given[0] if isinstance(given, list) else "",
)
def test_a_plain_plan_loads_no_more_than_it_needs(tmp_path: Path, words: list[str], heavy: set[str]) -> None:
    """Start-up is a feature: what plain plans have no use for is not loaded, and what makes only where something is."""
    (tmp_path / "tasks.py").write_text("def join(ctx):\n    return str(len(ctx.sources) + len(ctx.inputs))\n")
    (tmp_path / "a.txt").write_text("a\n")
    one = {"sources": ["a.txt"], "produces": "out/one.txt", "make": "tasks:join"}
    both = {"requires": ["one"], "produces": "out/all.txt", "make": "tasks:join"}
    plan = {"id": "plain", "goal": "Join", "artifacts": {"one": one, "all": both}}
    (tmp_path / "headway.json").write_text(json.dumps(plan))
    if words != ["run"]:
        assert headway("run", cwd=tmp_path).returncode == 0
    code = (
        f"import sys; from headway.surfaces.cli.main import main; code = main({words}); "
        f"print(code, sorted({heavy} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "0 []"


@pytest.mark.parametrize("words", [["run"], ["accept", "one", "--reason", "mine"]], ids=lambda words: words[0])
def test_files_of_a_project_are_not_taken_for_modules_of_python(tmp_path: Path, words: list[str]) -> None:
    """What a run needs of Python is loaded before functions are looked for: a project may have a queue.py."""
    for name in ("queue", "pathlib", "traceback"):
        (tmp_path / f"{name}.py").write_text("raise SystemExit('not this one')\n")
    (tmp_path / "tasks.py").write_text("def make():\n    return 'a'\n")
    plan = {"id": "plain", "goal": "Make", "artifacts": {"one": {"produces": "one.txt", "make": "tasks:make"}}}
    (tmp_path / "headway.json").write_text(json.dumps(plan))
    if words != ["run"]:
        assert headway("run", cwd=tmp_path).returncode == 0
        (tmp_path / "one.txt").write_text("b")
    done = headway(*words, cwd=tmp_path)
    assert (done.returncode, done.stderr) == (0, "")


def test_a_run_says_what_it_could_not_do_on_the_side(shop: Workshop, capsys: pytest.CaptureFixture[str]) -> None:
    """No event depends on it, and yet somebody should know: here a page that somebody has written into."""
    assert shop.run(capsys, "run").code == 0
    page = shop.root / ".headway/plans/api/plan.md"
    page.write_text(f"{page.read_text()}\nmine\n")
    shop.file.write_text(shop.file.read_text().replace("echo model", "echo other"))
    ran = shop.run(capsys, "run")
    assert ran.code == 0
    assert "plan.md was edited by hand and is left alone" in ran.err
    assert page.read_text().endswith("mine\n")
