"""Plans written in Python: in a script, inside a running event loop, in a notebook, and from the command line."""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import enum
import gc
import math
import os
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import Any

import msgspec
import pydantic
import pytest

from headway import Context, Plan, QuotaExhausted, RunFailed
from headway.core.commands import ChangePlan
from headway.desk import Desk
from headway.engine.result import _as_option
from headway.errors import PlanConflict, PlanInvalid, UsageError
from headway.files.planfile import parse_plan
from headway.project import Project
from headway.surfaces.cli.main import main
from tests.workshop import Workshop


@pytest.fixture(autouse=True)
def in_a_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Every plan here lives in an empty folder."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


@dataclasses.dataclass
class Page:
    title: str
    words: int


class Tone(enum.Enum):
    PLAIN = "plain"
    WARM = "warm"


def corpus() -> Plan:
    """The example of the documentation."""
    Path("corpus").mkdir(exist_ok=True)
    for name in ("one", "two"):
        Path(f"corpus/{name}.txt").write_text(name)
    plan = Plan("Summarise the corpus", id="corpus")

    @plan.artifact(produces="out/index.txt", sources=["corpus/*.txt"])
    def index(ctx: Context) -> str:
        return "\n".join(sorted(path.name for path in ctx.sources))

    def summarise(name: str, ctx: Context) -> str:
        return f"{name}: {ctx.inputs['index'].text()}"

    for name in ("a", "b"):
        plan.add(name, make=summarise, args={"name": name}, requires=["index"], produces=f"out/{name}.txt")
    return plan


@pytest.mark.parametrize("is_on", [True, False])
def test_a_program_finds_the_collector_as_it_left_it(is_on: bool) -> None:
    """It rests while a plan is read, and not while recipes are made, unless the program has none look at all."""
    plan = Plan("Look", id="look")
    plan.add("a", make=lambda: str(gc.isenabled()), produces="a.txt")
    before = (gc.isenabled(), gc.get_threshold(), gc.get_freeze_count())
    if not is_on:
        gc.disable()
    try:
        plan.run()
        assert gc.isenabled() == is_on
    finally:
        gc.enable()
    assert Path("a.txt").read_text() == str(is_on)
    assert (gc.isenabled(), gc.get_threshold(), gc.get_freeze_count()) == before


def test_a_plan_in_python_is_made_once_and_then_kept() -> None:
    """The second run of the same program makes nothing."""
    first, second = corpus().run(), corpus().run()
    assert (first.made[0], sorted(first.made)) == ("index", ["a", "b", "index"])
    assert (second.made, second.kept) == ([], ["index", "a", "b"])
    assert first["index"].text() == "one.txt\ntwo.txt"
    assert Path("out/a.txt").read_text() == "a: one.txt\ntwo.txt"


def test_a_new_source_makes_what_reads_it_again() -> None:
    """A file that appears behind a pattern changes the sources of what it names."""
    corpus().run()
    Path("corpus/three.txt").write_text("3")
    assert sorted(corpus().run().made) == ["a", "b", "index"]


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("text", b"text"),
        (b"\x00\xff", b"\x00\xff"),
        ([1, 2], b"[\n  1,\n  2\n]\n"),
        (Page("x", 3), b'{\n  "title": "x",\n  "words": 3\n}\n'),
        (Path("elsewhere"), b"from elsewhere"),
    ],
    ids=["text", "bytes", "json", "dataclass", "path"],
)
def test_what_a_function_returns_is_written(value: Any, expected: bytes) -> None:
    """Text, bytes, JSON values, dataclasses and paths become the output's bytes."""
    Path("elsewhere").write_text("from elsewhere")
    plan = Plan("Return", id="return")
    plan.add("it", make=lambda: value, produces="out/it")
    assert plan.run()["it"].bytes() == expected
    assert Path("out/it").read_bytes() == expected


class Score(pydantic.BaseModel):
    mean: float
    note: str | None = None


@pytest.mark.parametrize(
    ("value", "said"),
    [
        ({"scores": [1.0, {"mean": math.nan}]}, "nan at scores[1].mean"),
        ([1.0, math.inf], "inf at [1]"),
        (-math.inf, "for -inf:"),
        (Score(mean=math.nan), "nan at mean"),
    ],
    ids=["nan", "infinity", "alone", "pydantic"],
)
def test_a_number_that_json_cannot_hold_fails_its_artifact_and_says_where_it_stands(value: Any, said: str) -> None:
    """It would become a null, which is something else; what was there stays as it was."""
    Path("out").mkdir()
    plan = Plan("Return", id="return")
    plan.add("it", make=lambda: value, produces="out/it.json")
    result = plan.run(check=False)
    assert said in result.failed["it"]
    assert not Path("out/it.json").exists()


def test_nothing_is_still_a_null() -> None:
    """None has a form in JSON."""
    plan = Plan("Return", id="return")
    plan.add("it", make=lambda: {"none": None, "text": "null", "number": 1.5}, produces="out/it.json")
    result = plan.run()
    assert result["it"].json() == {"none": None, "text": "null", "number": 1.5}
    assert result["it"].json(dict[str, float | str | None])["number"] == 1.5
    with pytest.raises(msgspec.ValidationError):
        result["it"].json(list[int])


def test_a_path_that_is_returned_is_the_projects(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Wherever the run was started, for a file as for a text; what can be executed there can be executed here."""
    plan = Plan("Return", id="return", project=tmp_path)
    (tmp_path / "tool").write_text("#!/bin/sh")
    (tmp_path / "tool").chmod(0o755)
    plan.add("file", make=lambda: Path("tool"), produces="out/tool")
    plan.add("text", make=lambda: Path("tool"))
    (tmp_path / "else").mkdir()
    monkeypatch.chdir(tmp_path / "else")
    assert plan.run()["text"].text() == "#!/bin/sh"
    assert os.access(tmp_path / "out/tool", os.X_OK)


def test_a_function_with_several_outputs_returns_one_value_for_each() -> None:
    """Outputs are named by path, by file name or by stem."""
    plan = Plan("Several", id="several")
    plan.add("both", make=lambda: {"out/a.txt": "A", "b": "B"}, produces=["out/a.txt", "out/b.txt"])
    plan.run()
    assert (Path("out/a.txt").read_text(), Path("out/b.txt").read_text()) == ("A", "B")


def test_a_function_may_write_its_output_itself() -> None:
    """What stands at ctx.output when the function returns nothing is the output."""
    plan = Plan("Write", id="write")

    @plan.artifact(produces="deep/er/file.txt")
    def it(ctx: Context) -> None:
        ctx.output.write_text("by hand")

    assert plan.run()["it"].text() == "by hand"


def test_what_a_function_wrote_before_it_returned_something_else_is_nobodys_edit() -> None:
    """It asked where its output goes: what stands there is its own draft."""
    plan = Plan("Write", id="write")

    @plan.artifact(produces="out/it")
    def it(ctx: Context) -> str:
        ctx.output.write_text("a draft")
        return "the text"

    plan.run()
    assert Path("out/it").read_text() == "the text"
    assert "edit_preserved" not in Path(".headway/plans/write/ledger.jsonl").read_text()


def test_an_artifact_without_files_is_its_text() -> None:
    """Text artifacts are read by dependents through their inputs, typed if asked."""
    plan = Plan("Text", id="text")
    plan.add("page", make=lambda: Page("t", 7))
    seen: list[Page] = []

    @plan.artifact(requires=["page"])
    def reader(ctx: Context) -> str:
        seen.append(ctx.inputs["page"].json(Page))
        return "read"

    result = plan.run()
    assert seen == [Page("t", 7)]
    assert result["reader"].text() == "read"


def test_async_functions_run_side_by_side_in_the_callers_loop() -> None:
    """arun awaits async recipes in the loop it was called from."""
    plan = Plan("Async", id="async")
    loops: set[asyncio.AbstractEventLoop] = set()

    def adder(name: str) -> None:
        async def make() -> str:
            loops.add(asyncio.get_running_loop())
            await asyncio.sleep(0.01)
            return name

        plan.add(name, make=make, version="1")

    for name in ("a", "b", "c"):
        adder(name)

    async def go() -> asyncio.AbstractEventLoop:
        result = await plan.arun()
        assert sorted(result.made) == ["a", "b", "c"]
        return asyncio.get_running_loop()

    assert loops == {asyncio.run(go())}


def test_run_works_inside_a_running_loop() -> None:
    """plan.run() may be called from a coroutine, async recipes included."""
    plan = Plan("Inside", id="inside")

    async def make() -> str:
        return "made"

    plan.add("it", make=make)

    async def go() -> str:
        return plan.run()["it"].text()

    assert asyncio.run(go()) == "made"


def test_cancelling_a_run_pauses_it() -> None:
    """A cancelled arun leaves a paused plan, and the next run goes on."""
    plan = Plan("Cancel", id="cancel")
    started = asyncio.Event()
    patient = {"wait": 30.0}

    plan.add("quick", make=lambda: "done", version="1")

    async def slow() -> str:
        started.set()
        await asyncio.sleep(patient["wait"])
        return "slow"

    plan.add("slow", make=slow, requires=["quick"], version="1")

    async def go() -> None:
        task = asyncio.create_task(plan.arun())
        await started.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(go())
    patient["wait"] = 0.0
    result = plan.run()
    assert (result.made, result.kept) == (["slow"], ["quick"])


def test_a_function_that_goes_to_another_folder_takes_nobody_along(tmp_path: Path) -> None:
    """Neither what is made after it, nor the next run of the same program."""
    plan = Plan("Wander")
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()

    @plan.artifact(produces="a.txt")
    def a() -> str:
        os.chdir(elsewhere)
        return "a"

    @plan.artifact(produces="b.txt", requires=["a"])
    def b(ctx: Context) -> None:
        Path(ctx.output).write_text(ctx.inputs["a"].text() + "b")

    before = Path.cwd()
    assert plan.run(jobs=1).made == ["a", "b"]
    assert (Path.cwd(), (before / "b.txt").read_text()) == (before, "ab")
    assert plan.run().kept == ["a", "b"]
    assert not list(elsewhere.iterdir())


def test_a_failure_raises_with_the_result_unless_it_is_not_wanted() -> None:
    """RunFailed carries what was made; check=False gives the result instead."""
    plan = Plan("Fail", id="fail")
    plan.add("good", make=lambda: "x")

    @plan.artifact
    def bad() -> str:
        raise ValueError("no")

    with pytest.raises(RunFailed) as failed:
        plan.run()
    assert failed.value.result.made == ["good"]
    assert "ValueError: no" in plan.run(check=False).failed["bad"]


@pytest.mark.parametrize(("requires", "has"), [((), "nothing"), (("a",), "a")])
def test_an_input_that_is_not_required_is_told_by_its_name(requires: tuple[str, ...], has: str) -> None:
    """And what would make it one."""
    plan = Plan("Ask", id="ask")
    plan.add("a", make=lambda: "a", produces="a.txt")
    plan.add("b", make=lambda ctx: ctx.inputs["c"].text(), produces="b.txt", requires=requires)
    said = f"'c is not among what it requires ({has}): add it to requires'"
    assert said in plan.run(check=False).failed["b"]


def test_what_a_program_has_to_decide_is_told_as_options_of_run() -> None:
    """Not as what somebody would type."""
    plan = Plan("Decide", id="decide")
    plan.add("a", make=lambda: "a", produces="a.txt")
    plan.run()
    Path("a.txt").write_text("mine")
    with pytest.raises(RunFailed) as error:
        plan.run()
    assert error.value.facts == {"a": 'output_modified: on_edit="accept" or on_edit="discard"'}
    with pytest.raises(RunFailed) as error:
        plan.run(rerun="a")
    assert 'on_edit="accept" or rerun="a", on_edit="discard"' in str(error.value)
    assert plan.run(on_edit="accept", rerun=None, reason=None, prompt_change=None).accepted == ["a"]


@pytest.mark.parametrize(
    ("typed", "said"),
    [
        ("--rerun-from 'a b'", 'rerun_from="a b"'),
        ("--rerun-from a --rerun-from b", 'rerun_from=["a","b"]'),
        ("--resume-allow-prompt-change REASON", 'prompt_change="REASON"'),
        ("--yes", "yes=True"),
    ],
)
def test_every_flag_has_its_option(typed: str, said: str) -> None:
    """With names as they are, and not as a shell wants them."""
    assert _as_option(typed) == said


@pytest.mark.parametrize("timeout", [None, 5])
def test_a_function_that_asks_for_what_nobody_gives_is_told_what_functions_are_given(timeout: int | None) -> None:
    """Where it was never entered; a call of its own that does not fit is told as any other error is."""

    def asks(a: str) -> str:
        return a

    def slips() -> str:
        return asks()  # type: ignore[call-arg]

    plan = Plan("Ask", id="ask")
    plan.add("x", make=asks, produces="x.txt", timeout=timeout)
    plan.add("y", make=slips, produces="y.txt", timeout=timeout)
    failed = plan.run(check=False).failed
    assert "missing 1 required positional argument: 'a' (a function is called with ctx" in failed["x"]
    assert "ctx" not in failed["y"]


def test_a_quota_pauses_and_says_until_when() -> None:
    """QuotaExhausted is a pause, not a failure."""
    plan = Plan("Quota", id="quota")

    @plan.artifact
    def asks() -> str:
        raise QuotaExhausted(retry_after=60)

    result = plan.run(check=False)
    assert (result.status, result.failed) == ("paused", {})
    assert result.paused is not None
    assert (result.paused.code, bool(result.paused.until)) == ("quota", True)
    assert result.exit_code == 75


def test_a_changed_function_is_noticed_and_a_changed_comment_is_not() -> None:
    """Code counts as a syntax tree: formatting and comments do not, what it uses does."""
    script = Path("plan.py")
    text = textwrap.dedent(
        """
        from headway import Plan
        plan = Plan("Code", id="code")
        FACTOR = 2
        def helper(x):
            return x * FACTOR
        @plan.artifact(produces="out.txt")
        def it():
            return str(helper(3))
        if __name__ == "__main__":
            print(plan.run().made)
        """
    )

    def run(source: str) -> str:
        script.write_text(source)
        done = subprocess.run([sys.executable, "plan.py"], capture_output=True, text=True, check=True)
        return done.stdout.strip()

    assert run(text) == "['it']"
    assert run(text.replace("return x * FACTOR", "return (x  *\n        FACTOR)  # doubled")) == "[]"
    assert run(text.replace("FACTOR = 2", "FACTOR = 5")) == "['it']"
    assert Path("out.txt").read_text() == "15"
    assert run(text.replace("FACTOR = 2", "FACTOR = 5").replace("Code", "Other words")) == "[]"


def test_arguments_that_cannot_be_compared_are_refused_by_name() -> None:
    """An open connection has no canonical form: the error names the argument and what to pass instead."""
    plan = Plan("Args", id="args")
    with pytest.raises(UsageError, match="argument thing of it") as refused:
        plan.add("it", make=lambda thing: "x", args={"thing": object()})
    assert refused.value.hint


def test_arguments_without_a_json_form_reach_the_function_as_they_are() -> None:
    """A dataclass, a set or a member of an enumeration is compared by value and handed over unchanged."""
    seen: list[Any] = []

    def make(page: Page, names: set[str], tone: Tone) -> str:
        seen.append((page, names, tone))
        return "x"

    plan = Plan("Odd", id="odd")
    plan.add("it", make=make, args={"page": Page("t", 1), "names": {"b", "a"}, "tone": Tone.WARM})
    plan.run()
    assert seen == [(Page("t", 1), {"a", "b"}, Tone.WARM)]
    made = []
    for tone in (Tone.PLAIN, Tone.PLAIN, Tone.WARM):
        plan = Plan("Tell", id="tell")
        plan.add("it", make=lambda tone: tone.value, args={"tone": tone})
        made.append(plan.run().made)
    assert made == [["it"], [], ["it"]]


@pytest.mark.parametrize(
    "keys",
    [{"produces": "out/\udcff"}, {"args": {"name": "\udcff"}}, {"sources": ["\udcff"]}, {"contract": "\udcff"}],
    ids=lambda keys: next(iter(keys)),
)
def test_a_text_that_cannot_be_written_is_refused_by_its_artifact(keys: dict[str, Any]) -> None:
    """As the name of a file that is not UTF-8 is, where a program takes it from a folder."""
    plan = Plan("Names", id="names")
    plan.add("good", make=lambda: "x")
    plan.add("bad", make=lambda name="": "x", **keys)
    with pytest.raises(UsageError, match="Artifact 'bad' holds a text that is none") as refused:
        plan.run()
    assert "udcff" in str(refused.value.facts["text"])


@pytest.mark.parametrize("option", ["until", "rerun", "rerun_from"])
def test_one_name_is_as_good_as_a_list_of_one(option: str) -> None:
    """And is not taken for its letters."""
    plan = Plan("Names", id="names")
    for name in ("a", "b", "ab"):
        plan.add(name, make=lambda ctx: ctx.id, produces=f"{name}.txt")
    if option != "until":
        plan.run()
    named: dict[str, Any] = {option: "ab"}
    assert plan.run(**named).made == ["ab"]


VALUES = """\
import enum
from headway import Plan

class Size(enum.IntEnum):
    LARGE = 2

plan = Plan("Values", id="values")
values = {"pair": (1, (2,)), "most": float("inf"), "size": Size.LARGE, "deep": {"a": [float("nan")]}, "list": [1.0]}
plan.add("it", make=lambda **given: repr(given), args=values, produces="out.txt", version="1")
plan.run(rerun="it")
print(plan.run().made)
"""


def test_arguments_are_the_same_in_every_run() -> None:
    """Also those that JSON has a form for, but not quite: the ledger's copy is for comparing."""
    Path("plan.py").write_text(VALUES)
    for _ in range(2):
        done = subprocess.run([sys.executable, "plan.py"], capture_output=True, text=True, check=True)
        assert done.stdout == "[]\n"
        assert Path("out.txt").read_text() == (
            "{'pair': (1, (2,)), 'most': inf, 'size': <Size.LARGE: 2>, 'deep': {'a': [nan]}, 'list': [1.0]}"
        )


def test_problems_of_a_plan_in_python_are_reported_together() -> None:
    """A plan built in code is checked like a file."""
    plan = Plan("Wrong", id="wrong")
    plan.add("a", make=lambda: "x", requires=["b", "c"])
    with pytest.raises(PlanInvalid) as refused:
        plan.run()
    assert len(refused.value.problems) == 2


def test_a_step_that_returned_is_not_repeated_after_a_crash(tmp_path: Path) -> None:
    """Killed in the middle of a function, the next attempt takes finished steps from the record."""
    Path("steps.py").write_text(
        textwrap.dedent(
            """
            import os, sys
            from headway import Plan
            plan = Plan("Steps", id="steps")
            def ask(n):
                with open("asked.txt", "a") as f: f.write(f"{n}\\n")
                return {"n": n}
            @plan.artifact(produces="out.txt")
            def it(ctx):
                one = ctx.step("ask", ask, 1)
                if os.path.exists("die"):
                    os._exit(9)
                two = ctx.step("ask", ask, 2)
                return f"{one['n']}{two['n']}"
            if __name__ == "__main__":
                plan.run()
            """
        )
    )
    Path("die").touch()
    assert subprocess.run([sys.executable, "steps.py"], check=False).returncode == 9
    Path("die").unlink()
    subprocess.run([sys.executable, "steps.py"], check=True)
    assert Path("asked.txt").read_text() == "1\n2\n"
    assert Path("out.txt").read_text() == "12"


def test_a_python_file_can_be_run_from_the_command_line() -> None:
    """`--plan file.py:name` picks one of several plans; headway.py is a default."""
    Path("many.py").write_text(
        "from headway import Plan\n"
        "one = Plan('One', id='one')\none.add('x', run='echo 1 > {output}', produces='x.txt')\n"
        "two = Plan('Two', id='two')\ntwo.add('y', run='echo 2 > {output}', produces='y.txt')\n"
    )
    command = [str(Path(sys.executable).with_name("headway"))]  # `python -m headway` would find headway.py first
    done = subprocess.run([*command, "run", "--plan", "many.py:two"], capture_output=True, text=True, check=True)
    assert "made     y" in done.stdout
    assert not Path("x.txt").exists()
    unclear = subprocess.run([*command, "run", "--plan", "many.py"], capture_output=True, text=True, check=False)
    assert (unclear.returncode, "one, two" in unclear.stderr) == (2, True)
    os.rename("many.py", "headway.py")
    Path("headway.py").write_text(
        "from headway import Plan\nplan = Plan('Three', id='three')\nplan.add('z', run='echo 3')\n"
    )
    assert "made     z" in subprocess.run([*command, "run"], capture_output=True, text=True, check=True).stdout


@pytest.mark.parametrize("words", [("status",), ("run",), ("run", "-n"), ("why", "x")])
@pytest.mark.parametrize("call", ["plan.run()", "import asyncio; asyncio.run(plan.arun())"])
def test_a_file_that_runs_its_plan_when_it_is_read_is_told_so(words: tuple[str, ...], call: str) -> None:
    """Nothing is made by whoever only wants to look; the refusal names the line that is missing."""
    Path("script.py").write_text(
        f"from headway import Plan\nplan = Plan('One', id='one')\nplan.add('x', run='exit 1', produces='x')\n{call}\n"
    )
    command = [str(Path(sys.executable).with_name("headway")), *words, "--plan", "script.py"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, Path(".headway").exists()) == (2, False)
    assert "script.py runs its plan as soon as it is read" in done.stderr
    assert 'if __name__ == "__main__":' in done.stderr


@pytest.mark.parametrize(
    ("does", "error"),
    [("raise SystemExit", "error: SystemExit\n  next: put"), ("raise GeneratorExit('g')", "error: GeneratorExit: g\n")],
)
def test_a_file_that_ends_the_program_when_it_is_read_is_told_so(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], does: str, error: str
) -> None:
    """Its exit code is not the run's, and what it raises is no error of Headway."""
    shop = Workshop(tmp_path)
    (tmp_path / "script.py").write_text(f"from headway import Plan\nplan = Plan('One', id='one')\n{does}\n")
    ran = shop.run(capsys, "run", "--plan", str(tmp_path / "script.py"))
    assert (ran.code, "script.py cannot be run" in ran.err, error in ran.err) == (2, True, True)


def test_a_program_that_runs_its_plan_when_its_functions_are_imported_is_told_so(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Whoever goes on from the command line imports it; that is refused before anything is recorded."""
    shop = Workshop(tmp_path)
    shop.file.unlink()
    script = "from headway import Plan\nplan = Plan('One', id='one')\n\n@plan.artifact\ndef a():\n    return 'x'\n\n"
    (tmp_path / "script.py").write_text(script + "plan.run()\n")
    subprocess.run([sys.executable, "script.py"], cwd=tmp_path, check=True)
    (tmp_path / "script.py").write_text(script.replace("'x'", "'y'") + "plan.run()\n")
    before = shop.events("one")
    ran = shop.run(capsys, "run", "a")
    assert (ran.code, shop.events("one")) == (2, before)
    assert "script.py runs its plan as soon as it is read" in ran.err
    assert 'if __name__ == "__main__":' in ran.err
    (tmp_path / "script.py").write_text(script.replace("'x'", "'z'"))
    assert shop.run(capsys, "run", "a").code == 0


def test_a_file_that_cannot_be_imported_names_a_command_that_shows_where(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A file is run, a module is imported."""
    shop = Workshop(tmp_path)
    shop.file.write_text("id: p\ngoal: g\nartifacts: {a: {make: 'tasks.py:a'}, b: {make: 'tasks:b'}}\n")
    (tmp_path / "tasks.py").write_text("1 / 0\n\ndef a(): ...\n\ndef b(): ...\n")
    failed = shop.run(capsys, "run", "--json").json["failed"]
    assert failed["a"].endswith("next: python tasks.py in the project root shows where")
    shop.edit("tasks.py:a", "nowhere.py:a")
    assert "there is no such file in the project" in shop.run(capsys, "run", "--json").json["failed"]["a"]
    assert failed["b"].endswith("next: python -c 'import tasks' in the project root shows where")


def test_a_file_finds_its_neighbours_whoever_runs_it(tmp_path: Path) -> None:
    """Somebody runs the program, somebody else goes on from the command line; what it imports counts for both."""
    shop = Workshop(tmp_path)
    shop.file.unlink()
    (tmp_path / "neighbour.py").write_text("WORD = 'one'\n")
    script = "import neighbour\nfrom headway import Plan\nplan = Plan('One', id='one')\n"
    script += "\n@plan.artifact(produces='out.txt')\ndef a():\n    return neighbour.WORD\n"
    (tmp_path / "script.py").write_text(script + "\nif __name__ == '__main__':\n    plan.run()\n")
    subprocess.run([sys.executable, "script.py"], cwd=tmp_path, check=True)
    (tmp_path / "neighbour.py").write_text("WORD = 'another'\n")
    command = [sys.executable, "-P", "-m", "headway", "run", "--project", str(tmp_path)]
    subprocess.run(command, cwd="/", check=True)
    assert (tmp_path / "out.txt").read_text().strip() == "another"


@pytest.mark.parametrize("file", ["tasks.py", "src/tasks.py"])
def test_a_file_that_is_no_python_is_told_by_its_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], file: str
) -> None:
    """Whether it defines the function nobody can say; `run` and `why` name the error, the line and what shows it."""
    shop = Workshop(tmp_path)
    shop.file.write_text("id: p\ngoal: g\nartifacts: {a: {make: 'tasks:a'}}\n")
    (tmp_path / "src").mkdir()
    (tmp_path / file).write_text("def a():\n    return '1'\n\ndef other(:\n    pass\n")
    told = shop.run(capsys, "run", "--json").json["failed"]["a"]
    assert told == (
        f"{file} cannot be imported; error: SyntaxError: invalid syntax (tasks.py, line 4); "
        f"next: python {file} in the project root shows where"
    )
    assert told in shop.run(capsys, "why", "a").out


SESSION = """\
import said
from headway import Plan
plan = Plan("Typed", id="typed")
def main(ctx):
    return said.word() + ctx.sources[0].read_text()

plan.add("live", make=main, produces="out.txt", sources=["in.txt"])
plan.run()
"""


def test_what_a_function_of_a_session_makes_is_made_there(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """From the command line nobody can see its code, nor call it: it waits, and the way out is named."""
    shop = Workshop(tmp_path)
    shop.file.unlink()
    (tmp_path / "headway.toml").touch()
    (tmp_path / "in.txt").write_text("1")
    (tmp_path / "said.py").write_text("def word():\n    return 'old'\n")
    subprocess.run([sys.executable, "-i"], input=SESSION, text=True, cwd=tmp_path, check=True, capture_output=True)
    (tmp_path / "said.py").write_text("def word():\n    return 'newer'\n")
    unseen = "live: its code is in a Python program or session; only a run there sees whether it has changed"
    for words in (("run",), ("status",), ("why", "live")):
        done = shop.run(capsys, *words)
        assert (done.code, unseen in done.out) == (0, True), words
    assert shop.run(capsys, "status", "--json").json["code_unknown"] == ["live"]
    (tmp_path / "in.txt").write_text("2")
    assert shop.run(capsys, "why", "live").out.endswith("defines its function makes it. Next: run its plan there\n")
    done = shop.run(capsys, "run", "--json")
    assert (done.code, done.json["code_unknown"], done.json["failed"]) == (75, [], {})
    subprocess.run([sys.executable, "-i"], input=SESSION, text=True, cwd=tmp_path, check=True, capture_output=True)
    assert (tmp_path / "out.txt").read_text() == "newer2"


def test_a_mistyped_key_is_met_with_the_one_that_is_near() -> None:
    """In one error, not in two."""
    plan = Plan("One")
    with pytest.raises(UsageError) as refused:
        plan.artifact(produce="a.txt")(lambda: "x")
    assert (refused.value.hint, refused.value.__suppress_context__) == ("did you mean produces?", True)


@pytest.mark.slow
def test_a_plan_runs_in_a_notebook(tmp_path: Path) -> None:
    """In a notebook, functions defined in cells are followed, and a second cell keeps what the first made."""
    import nbformat
    from nbclient import NotebookClient

    cells = [
        "from headway import Plan\nplan = Plan('Notebook', id='nb')\nFACTOR = 2\ndef twice(x):\n    return x * FACTOR",
        "@plan.artifact\ndef it():\n    return str(twice(4))\nprint(plan.run().made, plan.run().made)",
        "FACTOR = 3\nr = plan.run()\nprint(r.made, r['it'].text())",
        "@plan.artifact\ndef it():\n    return 'anew'\nprint(plan.run())",
        "def two(): pass\nplan.artifact(two)\ndef two(): 1\ntry: plan.artifact(two)\nexcept Exception as e: print(e)",
    ]
    v4: Any = nbformat.v4  # it has no annotations
    book = v4.new_notebook(cells=[v4.new_code_cell(cell) for cell in cells[:3] + cells[1:2] + cells[3:]])
    NotebookClient(book, timeout=120, kernel_name="python3", resources={"metadata": {"path": str(tmp_path)}}).execute()
    texts = ["".join(out.get("text", "") for out in cell.outputs) for cell in book.cells]
    assert texts[1:3] == ["['it'] []\n", "['it'] 12\n"]
    assert texts[3:5] == ["[] []\n", "nb completed: 1 made\n"], "executing the cell again replaces what it defines"
    assert texts[5].startswith("Artifact two is there already"), "but one cell defines a name once"


def test_a_plan_in_python_says_where_it_stands_and_why() -> None:
    """The documents of the command line, before anything was run and after; and objects that are shown in a line."""
    plan = corpus()
    assert repr(plan.preview()) == "<PlanPreview corpus: 3 to make at most, 0 up to date>"
    assert plan.status()["progress"]["done"] == 0
    assert plan.why("index")["reason"]["code"] == "never_made"
    ran = plan.run()
    assert plan.status()["next"] == ""
    assert repr(ran) == f"<RunResult {ran}>"
    assert repr(plan).startswith("<Plan corpus: ")


def test_a_result_in_a_line_says_what_is_in_the_way() -> None:
    """Nothing to do is said only where there is nothing to do."""
    plan = Plan("Quota", id="quota")

    @plan.artifact
    def asks() -> None:
        raise QuotaExhausted(retry_after=60)

    plan.add("told", make=lambda: "told", produces="told.txt")
    ran = plan.run("asks", check=False)
    assert ran.paused is not None
    assert (
        str(ran)
        == f"quota paused: nothing made (quota until {ran.paused.until.replace('T', ' ').replace('+00:00', 'Z')})"
    )
    Path("told.txt").write_text("mine")
    assert str(plan.run("told", check=False)) == "quota refused: 1 held"


def test_one_name_in_a_file_is_still_one_artifact() -> None:
    """Only cells of a notebook may be executed again."""
    plan = Plan("Twice", id="twice")
    for _ in range(2):
        with pytest.raises(UsageError, match="there already") if plan.spec.artifacts else contextlib.nullcontext():

            @plan.artifact
            def a() -> str:
                return "1"


def test_a_result_lists_what_every_artifact_came_to() -> None:
    """After a run, after one with nothing to do, and after one that nobody had to judge."""
    plan = Plan("List", id="listed")
    plan.add("a", make=lambda: "1", produces="out/a.txt")
    plan.add("b", make=lambda: "22", produces="out/b.txt")
    for _ in range(3):
        assert {name: [o.size for o in outputs] for name, outputs in plan.run().outputs.items()} == {"a": [1], "b": [2]}


@pytest.mark.parametrize(
    "wrong",
    [{"on_edit": "sometimes"}, {"prompt_changes": "never"}, {"planned_by": 3}, {"jobs": "2"}, {"approval": "yes"}],
)
def test_what_a_plan_says_of_itself_is_refused_before_it_is_written(wrong: dict[str, Any]) -> None:
    """A ledger that holds it could never be read again."""
    with pytest.raises(UsageError, match="Plan p cannot be read"):
        Plan("Say something wrong", id="p", **wrong)
    plan = Plan("Say it right", id="p")
    plan.add("a", make=lambda: "made")
    assert plan.run().made == ["a"]


@pytest.mark.parametrize("name", ["goal", "id"])
def test_a_plan_without_words_is_refused(name: str) -> None:
    """None is no goal and no id."""
    plan = Plan(**({"goal": "Have a name", "id": "p"} | {name: None}))  # type: ignore[arg-type]
    with pytest.raises(UsageError, match=rf"at `\$\.{name}`"):
        plan.run()
    assert not Path(".headway").exists()


@pytest.mark.parametrize("value", [float("nan"), {1, 2}, Path("x"), {1: "a"}])
def test_values_that_json_has_no_form_for_are_refused_in_vars_and_metadata(value: Any) -> None:
    """They would be something else when they are read, and what uses them would be made again each time."""
    plan = Plan("Count", id="p", vars={"n": value})
    with pytest.raises(UsageError, match="vars that JSON has no form for"):
        plan.run()
    with pytest.raises(UsageError, match="metadata that JSON has no form for"):
        Plan("Count", id="p").add("a", run="true", metadata={"n": value})


def test_keys_of_a_plan_file_are_said_in_python_as_they_are_there(in_a_folder: Path) -> None:
    """One text for a list, a number for a version, gates by name, one template for all: it is the same plan."""
    Path("headway.yaml").write_text(
        textwrap.dedent("""
            id: p
            goal: Say it twice
            env: LANG
            approval: required
            notify: ./tell.sh
            metadata: {team: docs}
            agents: {writer: {when: Always.}}
            artifacts:
              a:
                run: 'true'
                env: HOME
                acceptance: It is good.
                version: 3
                gates: {lint: {run: 'true'}, read: {by: [ann]}}
            pipelines:
              scene:
                units: s1
                state: state.txt
                overrides: {s1: {write: prompts/other.md}}
                phases:
                  write:
                    run: 'true'
                    requires: [b, a]
                    gates: {read: }
                    templates: prompts/write.md
                    outputs: {prose: 'draft/{unit}.md'}
        """)
    )
    given: dict[str, Any] = {"approval": "required", "notify": "./tell.sh", "agents": {"writer": {"when": "Always."}}}
    plan = Plan("Say it twice", id="p", env="LANG", metadata={"team": "docs"}, **given)
    gates = {"lint": {"run": "true"}, "read": {"by": ["ann"]}}
    plan.add("a", run="true", env="HOME", acceptance="It is good.", version=3, gates=gates)
    scene = plan.pipeline(
        "scene", units="s1", state=Path("state.txt"), overrides={"s1": {"write": Path("prompts/other.md")}}
    )
    scene.add(
        "write",
        run="true",
        requires=["b", "a"],
        gates={"read": None},
        templates=Path("prompts/write.md"),
        outputs={"prose": Path("draft/{unit}.md")},
    )
    assert plan.spec == parse_plan(Path("headway.yaml").read_bytes(), name="headway.yaml").plan


def test_an_artifact_has_no_keys_of_what_a_unit_expands_to() -> None:
    """They are for phases, and mean nothing elsewhere."""
    plan = Plan("Stray", id="p")
    with pytest.raises(UsageError, match="keys that are none of its own"):
        plan.add("a", run="true", gathers="units")
    with pytest.raises(UsageError, match="keys that are none of its own"):
        plan.pipeline("scene", units=["s1"]).add("write", run="true", produces="out.txt")


def test_options_of_a_run_are_checked_by_name() -> None:
    """What is mistyped is told with the nearest; names may come in a list."""
    plan = Plan("g", id="options")
    for name in ("a", "b"):
        plan.add(name, run="echo x > {output}", produces=f"{name}.txt")
    with pytest.raises(UsageError, match="no option rerun_form") as error:
        plan.run(rerun_form="a")
    assert error.value.facts == {"did you mean": "rerun_from"}
    with pytest.raises(UsageError, match="7 names no artifact"):
        plan.run(7)  # type: ignore[arg-type]  # that is the point
    assert plan.run(["a"]).made == ["a"]  # type: ignore[arg-type]  # welcome all the same
    assert sorted(plan.run("*", rerun=["a"]).made) == ["a", "b"]


@pytest.mark.parametrize(
    "wrong",
    [
        {"jobs": 2.0},
        {"jobs": "4"},
        {"jobs": True},
        {"jobs": -1},
        {"limit": 0},
        {"limit": "1"},
        {"max_time": "5"},
        {"on_edit": "maybe"},
        {"fail_fast": "no"},
        {"rerun": 5},
        {"until": ["a", 5]},
        {"prompt_change": True},
    ],
)
def test_an_option_that_cannot_be_is_refused_before_anything_is_written(wrong: dict[str, Any]) -> None:
    """What the ledger says of a run is read by all who come later."""
    plan = Plan("g", id="options")
    plan.add("a", run="echo x > {output}", produces="a.txt")
    with pytest.raises(UsageError, match=f"Option {next(iter(wrong))}.* of run cannot be that"):
        plan.run(**wrong)
    with pytest.raises(UsageError, match=f"Option {next(iter(wrong))}.* of run cannot be that"):
        asyncio.run(plan.arun(**wrong))
    assert not Path(".headway").exists()
    assert plan.run(jobs=2, limit=1, max_time=60, until="a").made == ["a"]
    if wrong.keys() <= {"jobs", "limit"}:  # which a desk takes, too
        with pytest.raises(UsageError, match="of run cannot be that"):
            Desk(".", plan_id="options").run(**wrong)


PROGRAM = """
from headway import Plan

plan = Plan("Greet", vars={"who": "a"})


@plan.artifact(produces="o.txt")
def hello(ctx):
    return ctx.vars["who"]


if __name__ == "__main__":
    plan.run()
"""


def of_greet(*words: str) -> subprocess.CompletedProcess[str]:
    """A command line about the program above."""
    command = [sys.executable, "-m", "headway", *words, "--plan", "greet.py"]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def test_verbs_know_the_plan_that_a_program_saved_by_its_file(in_a_folder: Path) -> None:
    """Whoever only looks runs nobody's code: its functions tell that the plan is of that file."""
    (in_a_folder / "headway.toml").touch()
    (in_a_folder / "greet.py").write_text(PROGRAM)

    assert "next: headway plans new greet.py saves it" in of_greet("log").stderr
    subprocess.run([sys.executable, "greet.py"], check=True, capture_output=True)
    assert "made hello" in of_greet("log").stdout
    for words in (["profile", "show"], ["plans", "show"], ["reset", "hello"]):
        assert of_greet(*words).returncode == 0, words


@pytest.mark.parametrize(("take", "expected"), [("file", "c"), ("ledger", "b")])
def test_who_wins_between_program_and_ledger_is_an_option_of_run(in_a_folder: Path, take: str, expected: str) -> None:
    """And the conflict names it."""

    def greeting(who: str) -> Plan:
        plan = Plan("Greet", id="greet")
        plan.add("hello", make=lambda ctx: ctx.contract, contract=who, produces="o.txt")
        return plan

    greeting("a").run()
    project = Project(str(in_a_folder))
    spec = project.show("greet").state.artifacts["hello"]
    project.change("greet", ChangePlan(update=(msgspec.structs.replace(spec, contract="b"),), reason="better"))
    with pytest.raises(PlanConflict, match="changed the same thing") as conflict:
        greeting("c").run()
    assert 'take="file"' in conflict.value.hint
    greeting("c").run(take=take)
    assert Path("o.txt").read_text() == expected
    with pytest.raises(UsageError, match="take cannot be 'mine'"):
        greeting("d").run(take="mine")


def test_what_only_its_program_can_make_waits_for_it(in_a_folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Whoever types `headway run` elsewhere has typed it in the wrong place: nothing fails, and the rest is made."""
    (in_a_folder / "s.txt").write_text("1")
    plan = Plan("Session", id="session")
    plan.add("one", make=lambda ctx: ctx.sources[0].read_text(), sources=["s.txt"], produces="one.txt")
    plan.add("two", make=lambda ctx: ctx.inputs["one"].text(), requires=["one"], produces="two.txt")
    plan.add("cmd", run="cp s.txt {output}", produces="cmd.txt")
    plan.run()
    (in_a_folder / "s.txt").write_text("2")
    assert main(["run"]) == 75
    out = capsys.readouterr().out
    assert (
        "one waits: its program makes it: python FILE, headway run --plan FILE, or plan.run() in the session\n" in out
    )
    assert ("two waits for one\n" in out, "failed" in out) == (True, False)
    assert [(in_a_folder / f"{name}.txt").read_text() for name in ("cmd", "one")] == ["2", "1"]
    assert plan.run().made == ["one", "two"]


def test_the_plan_of_a_file_is_no_program_that_uses_its_functions(in_a_folder: Path) -> None:
    """What was taken in from the file itself counts first; of several programs none is guessed."""
    (in_a_folder / "headway.toml").touch()
    (in_a_folder / "greet.py").write_text(PROGRAM)

    def drive(number: int) -> None:
        text = (
            "from headway import Plan\nimport greet\n"
            f"plan = Plan('Drive {number}', vars={{'who': 'x'}})\n"
            f"plan.add('o{number}', make=greet.hello, produces='o{number}.txt')\n"
            "if __name__ == '__main__':\n    plan.run()\n"
        )
        (in_a_folder / f"drive{number}.py").write_text(text)
        subprocess.run([sys.executable, f"drive{number}.py"], check=True, capture_output=True)

    drive(1)
    drive(2)
    assert "greet.py has saved 2 plans" in of_greet("log").stderr
    assert of_greet("run").returncode == 0
    drive(3)
    assert "Greet" in of_greet("plans", "show").stdout


def test_a_link_where_a_folder_is_produced_is_read_through_and_stays_up_to_date(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is the link that was recorded, whatever slash its path ends with."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "headway.toml").write_text("")
    (tmp_path / "real").mkdir()
    (tmp_path / "real/f").write_text("x")
    plan = Plan("Through a link", id="link")
    plan.add("a", run="rmdir d 2>/dev/null || true; ln -s real d", produces="d/")
    plan.add("b", run="cat {inputs.a}/f > {output}", requires=["a"], produces="b")
    assert plan.run().made == ["a", "b"]
    assert plan.run().made == []
