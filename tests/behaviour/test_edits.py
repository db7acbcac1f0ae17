"""What a person wrote is never lost: when bytes are an edit, who is asked, what is adopted, and what is set aside."""

from __future__ import annotations

import os
import runpy
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from headway import bulk
from headway.bulk import Answer, Order
from headway.core.commands import ResetPlan
from headway.core.events import ArtifactFailed, EditPreserved, OutputAccepted
from headway.doctor import Doctor
from headway.engine import workers
from headway.engine.gc import free_space
from headway.engine.recipes.function import Context
from headway.errors import HeadwayError, NotFound, TryLater, UsageError
from headway.files import observe
from headway.files.observe import Observer
from headway.files.outputs import Outputs
from headway.plan_folder import PlanFolder
from headway.surfaces.cli.main import main
from headway.work import Work
from tests.bench import Bench, after
from tests.workshop import Workshop

POLISHED = """\
id: p
goal: g
pipelines:
  essay:
    units: [a, b]
    state: state.txt
    phases:
      write: {run: "echo draft > {outputs.o}", outputs: {o: 'o/{unit}.txt'}}
      polish: {run: "echo polished >> {outputs.o}", outputs: {o: 'o/{unit}.txt'}}
      apply: {run: "echo {unit} >> {state}", outputs: {s: state.txt}}
"""


@pytest.fixture
def made(bench: Bench) -> Bench:
    """a -> b -> c, and d beside them, made."""
    bench.plan("a -> b -> c; d")
    bench.run()
    return bench


def preserved(bench: Bench) -> list[bytes]:
    """The bytes that were kept before something could touch them."""
    events = [record.event for record in bench.events("edit_preserved")]
    return [bench.blob(o.digest) for event in events if isinstance(event, EditPreserved) for o in event.outputs]


def test_what_somebody_writes_between_two_tries_is_kept(bench: Bench) -> None:
    """The next try begins with nothing of the one that failed; what is not of that one is somebody's."""
    bench.plan(a={"retry": {"attempts": 3, "backoff": 0.5}})

    def make(ctx: Context) -> str:
        if len(bench.calls) == 1:
            ctx.output.write_text("half")
            threading.Timer(0.1, lambda: bench.edit("a", "mine")).start()
            raise ConnectionError
        return "done"

    bench.makes("a", make)
    assert bench.run().log == ["made a"]
    assert (bench.out("a"), preserved(bench)) == ("done", [b"mine"])


@pytest.mark.parametrize("meanwhile", ["mine", "a much longer edit of mine"])
def test_what_somebody_writes_while_it_is_made_anew_is_kept(made: Bench, meanwhile: str) -> None:
    """What stood there is replaced, as it was meant to be; what has come in its place since is somebody's."""
    made.change("b", version="2")
    made.makes("b", after(lambda: made.edit("b", meanwhile), "new"))
    ran = made.run()
    assert (made.out("b"), preserved(made)) == ("new", [meanwhile.encode()])
    assert [(one.artifact, one.paths) for one in ran.result.preserved] == [("b", ["out/b.txt"])]


def test_what_somebody_writes_while_a_file_is_made_for_its_place_is_kept(made: Bench) -> None:
    """A function may return a path: that file is copied, and what has come to stand there meanwhile is somebody's."""

    def make() -> Path:
        made.edit("b", "mine")
        made.write("elsewhere.txt", "new")
        return Path("elsewhere.txt")

    made.change("b", version="2")
    made.makes("b", make)
    made.run()
    assert (made.out("b"), preserved(made)) == ("new", [b"mine"])


@pytest.mark.parametrize("light", [True, False], ids=["light", "not light"])
@pytest.mark.parametrize(
    ("away", "edit"),
    [(False, "mine"), (True, "mine"), (False, ""), (True, "")],
    ids=["replaced", "removed and written anew", "removed", "removed twice"],
)
def test_what_somebody_writes_between_the_last_look_and_the_rename_is_kept(
    made: Bench, monkeypatch: pytest.MonkeyPatch, away: bool, edit: str, light: bool
) -> None:
    """However long a slow disk takes for the file that is to take its place; and what is gone is in nobody's way."""
    write, edits = bulk.write, [edit]

    def slowly(orders: list[Order]) -> list[Answer]:
        if edits and any(order[0].endswith("out/b.txt") for order in orders):
            if text := edits.pop():
                made.write("aside.txt", text)
                os.replace("aside.txt", "out/b.txt")
            elif os.path.exists("out/b.txt"):
                os.remove("out/b.txt")
        return write(orders)

    monkeypatch.chdir(made.root)
    monkeypatch.setattr(workers, "LIGHT_MS", 10_000 if light else -1)
    made.change("b", version="2")
    made.makes("b", after(lambda: os.remove("out/b.txt") if away else None, "new"))
    monkeypatch.setattr(bulk, "write", slowly)
    made.run()
    assert (made.out("b"), preserved(made)) == ("new", [b"mine"] if edit else [])


def test_what_comes_after_a_run_is_over_is_not_written(tmp_path: Path, made: Bench) -> None:
    """Whoever brings it is told."""
    outputs = made.session.judge("plan").judge.outputs
    outputs.close()
    for write in (outputs.place, outputs.write):
        with pytest.raises(TryLater, match="The run is over"):
            write("out/b.txt", b"late")
    assert made.out("b") == "b(a())"


@pytest.mark.parametrize("meanwhile", ["b(a())", "new"])
def test_what_is_known_anyway_is_not_kept_once_more(made: Bench, meanwhile: str) -> None:
    """Somebody writes the same again, or what comes out of it."""
    made.change("b", version="2")
    made.makes("b", after(lambda: made.edit("b", meanwhile), "new"))
    made.run()
    assert (made.out("b"), preserved(made)) == ("new", [])


# Asking.


def test_an_edit_holds_back_itself_and_what_is_behind_it(made: Bench) -> None:
    """The rest is made; the run ends with exit 3 and has touched nothing."""
    made.edit("b", "mine")
    made.change("d", version="2")
    ran = made.run()
    assert ran.did == {"held b", "made d"}
    assert (ran.code, ran.result.blocked, made.out("b")) == (3, {"c": "b"}, "mine")
    assert preserved(made) == []


def test_all_edits_are_asked_about_at_once(made: Bench) -> None:
    """Also those behind another one."""
    made.edit("a", "mine")
    made.edit("c", "mine, too")
    ran = made.run()
    assert ran.result.decisions == [("output_modified", ["a", "c"], ["--accept-edits", "--discard-edits"])]
    assert ran.result.blocked == {"b": "a"}


def test_a_file_that_was_there_first_is_asked_about(bench: Bench) -> None:
    """Before the first run, nothing at an output path is ours."""
    bench.edit("b", "mine")
    bench.plan("a -> b; c")
    ran = bench.run()
    assert ran.did == {"made a", "made c", "held b"}
    assert (ran.code, ran.result.decisions[0].code, bench.out("b")) == (3, "untracked_output", "mine")


def test_what_was_there_first_is_found_in_whatever_folder(bench: Bench) -> None:
    """Beside something else, through a link or as a link to nothing; what is not there yet, or empty, has nothing."""
    bench.write("full/other.txt", "somebody's")
    bench.write("full/b.txt", "mine")
    bench.path("linked").symlink_to("full")
    bench.path("empty").mkdir()
    bench.path("broken").mkdir()
    bench.path("broken/e.txt").symlink_to("nowhere")
    where = {"a": "full/a.txt", "b": "linked/b.txt", "c": "empty/c.txt", "d": "new/d.txt", "e": "broken/e.txt"}
    keys: dict[str, Any] = {name: {"produces": [path], "run": f"echo x > {path}"} for name, path in where.items()}
    bench.plan(**keys)
    assert bench.stale() == {name: "untracked_output" if name in "be" else "never_made" for name in where}


def test_where_the_system_may_not_be_asked_a_file_is_found_all_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Some containers forbid the question whether a path is there, and the answer to it is always no."""

    def forbidden(path: str, mode: int, *, follow_symlinks: bool = True) -> bool:
        return False

    monkeypatch.setattr(os, "access", forbidden)
    monkeypatch.setattr(os, "supports_follow_symlinks", {forbidden})
    (tmp_path / "mine.txt").write_text("mine")
    look = runpy.run_path(observe.__file__)["Observer"](str(tmp_path))
    assert (look.is_free("mine.txt"), look.is_free("other.txt")) == (False, True)


def test_a_chain_of_files_that_were_there_first_is_adopted_whole(bench: Bench) -> None:
    """None of it is made, though each is adopted only after what it requires."""
    for name in "abc":
        bench.edit(name, f"my {name}")
    bench.plan("a -> b -> c")
    assert bench.run().did == {"held a", "held b", "held c"}
    assert bench.run(on_edit="accept").did == {"accepted a", "accepted b", "accepted c"}
    assert [bench.out(name) for name in "abc"] == ["my a", "my b", "my c"]


def test_what_was_there_first_is_adopted_behind_what_is_made(bench: Bench) -> None:
    """Also in the very first run, where what it requires is not there yet."""
    bench.edit("c", "mine")
    bench.plan("a -> b -> c")
    assert bench.run(on_edit="accept").did == {"made a", "made b", "accepted c"}
    assert (bench.out("c"), bench.run().did) == ("mine", set())


def test_an_empty_folder_is_nothing_that_anybody_wrote(bench: Bench) -> None:
    """A folder without files can be used without a question."""
    bench.path("dist").mkdir(parents=True)
    bench.plan(a={"produces": ["dist/"], "run": "mkdir -p dist; echo x > dist/x.txt"})
    assert bench.run().log == ["made a"]


@pytest.mark.parametrize("options", [{"rerun": "b"}, {"rerun_from": "a"}, {"rerun_all": True}])
def test_asking_for_it_to_be_made_is_no_answer(made: Bench, options: dict[str, object]) -> None:
    """`--force` and `--rerun` never decide about an edit."""
    made.edit("b", "mine")
    ran = made.run(**options)  # type: ignore[arg-type]  # options of a run
    assert "held b" in ran.log
    assert (ran.code, made.out("b")) == (3, "mine")


def test_a_changed_spec_is_no_answer(made: Bench) -> None:
    """However stale it is, an edit comes first."""
    made.edit("b", "mine")
    made.change("b", contract="new")
    assert made.stale()["b"] == "output_modified"
    assert made.run().log == ["held b"]


# Adopting.


def test_accepted_bytes_are_the_output(made: Bench) -> None:
    """Nothing is made; what is behind it is made from them."""
    made.edit("b", "mine")
    ran = made.run(on_edit="accept")
    assert ran.log == ["accepted b", "made c"]
    assert made.out("c") == "c(mine)"
    assert made.stale() == {}
    made.delete("out/b.txt")
    assert made.run().log == ["restored b"]
    assert made.out("b") == "mine"


def test_accepting_by_name_is_the_same(made: Bench) -> None:
    """`accept ID` adopts now; the next run makes what is behind it."""
    made.edit("b", "mine")
    assert made.accept("b") == ["b"]
    assert made.stale() == {"c": "input_changed"}
    assert made.run().log == ["made c"]


def rename(bench: Bench) -> str:
    """Another artifact makes the file from here on."""
    bench.remove("d")
    bench.add("e", produces=["out/d.txt"])
    return "e"


def leave_and_return(bench: Bench) -> str:
    """The artifact leaves the plan, which is run without it, and comes back."""
    bench.remove("d")
    bench.run()
    bench.add("d")
    return "d"


def reset(bench: Bench) -> str:
    """All progress is withdrawn."""
    bench.do(ResetPlan())
    return "d"


def go_on_and_put_back(bench: Bench) -> str:
    """It was given up, and its author puts it back by hand."""
    bench.change("d", contract="new")
    bench.run(on_edit="discard")
    bench.edit("d", "mine")
    return "d"


@pytest.mark.parametrize("change", [rename, leave_and_return, reset, go_on_and_put_back])
def test_what_somebody_accepted_is_asked_about_where_it_is_nobodys_output_any_more(
    made: Bench, change: Callable[[Bench], str]
) -> None:
    """It is what a person wrote, accepted or not; given up, it can be brought back."""
    made.edit("d", "mine")
    made.accept("d")
    made.run()
    name = change(made)
    assert made.reason(name).code in ("untracked_output", "output_modified")
    ran = made.run(name, rerun=name)
    assert (ran.log, ran.code, made.read("out/d.txt")) == ([f"held {name}"], 3, "mine")
    ran = made.run(on_edit="discard")
    assert made.read("out/d.txt") == f"{name}()"
    (kept,) = ran.result.preserved
    Work(made.project).restore("plan", kept.artifact, at=kept.seq)
    assert (kept.artifact, made.read("out/d.txt"), made.stale()) == (name, "mine", {})


@pytest.mark.parametrize("change", [rename, leave_and_return, reset, go_on_and_put_back])
def test_what_was_accepted_and_is_nobodys_output_any_more_is_accepted_again(
    made: Bench, change: Callable[[Bench], str]
) -> None:
    """Or without a question, where edits are."""
    made.edit("d", "mine")
    made.accept("d")
    made.run()
    name = change(made)
    made.change(name, on_edit="accept")
    assert f"accepted {name}" in made.run().log
    assert (made.read("out/d.txt"), made.stale()) == ("mine", {})


def test_what_was_accepted_and_also_made_is_nobodys_edit(made: Bench) -> None:
    """Whoever restores an older output, or writes what a recipe wrote, has written nothing of their own."""
    first = made.out("d")
    made.makes("d", "second")
    made.change("d", version="2")
    made.run()
    Work(made.project).restore("plan", "d")
    assert (made.out("d"), made.events("output_accepted") != []) == (first, True)
    made.remove("d")
    made.add("e", produces=["out/d.txt"])
    assert made.run().log == ["made e"]
    assert preserved(made) == []


def test_what_was_accepted_is_asked_about_though_a_recipe_has_copied_it(made: Bench) -> None:
    """The copy is made, and what it was copied from is not."""
    made.makes("c", lambda ctx: (ctx.root / "out/b.txt").read_text())
    made.change("c", version="2")
    made.edit("b", "mine")
    made.run(on_edit="accept")
    assert made.out("c") == "mine"
    made.do(ResetPlan())
    assert made.stale()["b"] == "untracked_output"
    assert made.run().did == {"held b", "made a", "made d"}
    assert (made.out("b"), made.out("c")) == ("mine", "mine")


def test_damage_to_another_plan_is_no_trouble_when_it_is_asked_who_made_what_was_accepted(bench: Bench) -> None:
    """What that plan says is not to be had; nothing else is lost with it."""
    for name in ("one", "two"):
        bench.plan("a -> c", id=name, a={"contract": name})
    bench.makes("a", lambda ctx: ctx.contract)
    bench.makes("c", "mine")
    bench.run(plan="one")
    bench.run(plan="two")
    bench.edit("a", "mine")
    bench.accept("a", plan="one")
    bench.run(plan="one", rerun=("a",), on_edit="discard")
    bench.edit("a", "mine")
    ledger = bench.root / ".headway/plans/two/ledger.jsonl"
    ledger.unlink()
    ledger.mkdir()
    assert bench.run(plan="one").did == {"held a"}


def test_what_another_plan_accepted_is_that_plans_output(bench: Bench) -> None:
    """It puts it back, as it does with what it made."""
    for name in ("one", "two"):
        bench.plan("a", id=name, a={"contract": name})
    bench.makes("a", lambda ctx: ctx.contract)
    bench.run(plan="one")
    bench.edit("a", "mine")
    bench.accept("a", plan="one")
    assert bench.run(plan="two").log == ["made a"]
    assert bench.run(plan="one").log == ["restored a"]
    assert (bench.out("a"), preserved(bench)) == ("mine", [])
    assert bench.run(plan="two").log == ["restored a"]


def test_whether_outputs_that_changed_places_were_accepted_is_asked_of_no_ledger(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An index tells, however many there are."""
    bench.plan(" ".join(f"n{number}" for number in range(100)))
    bench.run()
    bench.edit("n0", "mine")
    bench.run(on_edit="accept")
    texts = [bench.out(f"n{number}") for number in range(100)]
    for number, text in enumerate(texts):
        bench.edit(f"n{number - 1 if number else 99}", text)
    monkeypatch.setattr(PlanFolder, "history", lambda *_, **__: pytest.fail("a ledger was read"))
    reasons = bench.stale()
    assert (reasons.pop("n99"), set(reasons.values()), len(reasons)) == ("output_modified", {"output_replaced"}, 99)


def test_three_hundred_existing_outputs_are_adopted_in_one_go(bench: Bench) -> None:
    """A script's outputs become a plan's, and the next run makes none."""
    names = [f"n{number:03}" for number in range(300)]
    for name in names:
        bench.edit(name, name)
    bench.plan("; ".join(f"n000 -> {name}" for name in names[1:]))
    assert len(bench.accept(everything=True)) == 300
    assert (bench.stale(), bench.run().log) == ({}, [])


def test_only_what_is_there_can_be_accepted(bench: Bench) -> None:
    """A missing output is refused by name, and nothing is recorded."""
    bench.plan("a")
    with pytest.raises(UsageError) as refused:
        bench.accept("a")
    assert refused.value.facts == {"reason": "out/a.txt is missing"}
    assert bench.events("output_accepted") == []
    with pytest.raises(UsageError):
        bench.accept()


def test_of_all_what_can_be_accepted_is_and_of_the_rest_it_is_said_why_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """What is half there, or a folder where a file belongs, can only be set aside, as it is told."""
    monkeypatch.chdir(tmp_path)
    Path("headway.yaml").write_text(
        "id: adopt\ngoal: g\nartifacts:\n"
        "  pair: {produces: [1.txt, 2.txt], run: 'echo 1 > 1.txt; echo 2 > 2.txt'}\n"
        "  site: {produces: site.txt, run: 'echo site > {output}'}\n"
        "  dir: {produces: dir.txt, run: 'echo dir > {output}'}\n"
    )
    for path in ("1.txt", "site.txt", "dir.txt/it"):
        Path(path).parent.mkdir(exist_ok=True)
        Path(path).write_text("mine")

    def run(*words: str, code: int) -> tuple[str, str]:
        assert main([*words]) == code
        said = capsys.readouterr()
        return said.out, said.err

    unfit = ("2.txt is missing", "dir.txt is a folder, and a file belongs there")
    out, _ = run("run", code=3)
    assert all(f"cannot be accepted: {why}\n" in out for why in unfit)
    assert (
        "pair, dir were there before they were made. They were not touched. Decide: headway run --discard-edits\n"
        in out
    )
    out, err = run("accept", "--all", code=0)
    assert out == "Accepted 1: site. Next: headway run\n"
    assert all(f"is left as it is: {why}. headway run " in err for why in unfit)
    _, err = run("accept", "--all", code=2)
    assert (unfit[0] in err, "next: headway run pair --discard-edits" in err) == (True, True)
    out, _ = run("run", "pair", "dir", "--discard-edits", code=0)
    assert (Path("1.txt").read_text(), Path("dir.txt").read_text()) == ("1\n", "dir\n")
    assert out.count(" brings it back") == 2


def test_a_path_that_several_change_names_whoever_left_it_as_it_is(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """An edit is asked about there, set aside there, and brought back from there; a run makes the file to its end."""
    shop = Workshop(tmp_path)
    shop.file.write_text(POLISHED)
    shop.run(capsys, "run", "o/a.txt")
    file = tmp_path / "o/a.txt"
    assert file.read_text() == "draft\npolished\n"
    shop.run(capsys, "run")
    file.write_text("mine\n")
    assert shop.run(capsys, "why", "o/a.txt").out.startswith("a/polish is complete and stale: o/a.txt was edited")
    shop.run(capsys, "run", "--discard-edits")
    assert file.read_text() == "draft\npolished\n"
    assert "Restored and accepted a/polish" in shop.run(capsys, "restore", "o/a.txt").out
    assert file.read_text() == "mine\n"
    assert shop.run(capsys, "why", "state.txt").out.startswith("b/apply is complete")


def test_a_path_of_which_only_the_first_stage_was_made_names_that_stage(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """What is there is its work."""
    shop = Workshop(tmp_path)
    shop.file.write_text(POLISHED)
    shop.run(capsys, "run", "a/write")
    assert shop.run(capsys, "why", "o/a.txt").out == "a/write is complete and up to date.\n"


def test_an_accepted_edit_of_a_state_is_asked_about_though_later_units_went_on_from_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """It is what the unit left that it was accepted for, and stays that."""
    shop = Workshop(tmp_path)
    shop.file.write_text(POLISHED)
    shop.run(capsys, "run", "a/apply")
    state = tmp_path / "state.txt"
    state.write_text("a, as I want it\n")
    shop.run(capsys, "accept", "a/apply")
    shop.run(capsys, "run")
    assert state.read_text() == "a, as I want it\nb\n"
    shop.edit("echo {unit} >> {state}", "echo  {unit} >> {state}")
    ran = shop.run(capsys, "run", "--rerun-all", "--yes")
    assert ("held     a/apply" in ran.out, ran.code) == (True, 3)
    assert state.read_text() == "a, as I want it\nb\n"
    shop.run(capsys, "run", "--accept-edits")
    assert state.read_text() == "a, as I want it\nb\n"


def test_an_accepted_edit_of_a_unit_that_vanished_is_asked_about_when_the_unit_is_back(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """What stands at its path is what somebody wrote, as before."""
    shop = Workshop(tmp_path)
    shop.file.write_text(POLISHED)
    shop.run(capsys, "run")
    (tmp_path / "o/b.txt").write_text("mine\n")
    shop.run(capsys, "accept", "b/polish")
    shop.edit("[a, b]", "[a]")
    shop.run(capsys, "run")
    shop.edit("[a]", "[a, b]")
    assert "o/b.txt was there before it was made" in shop.run(capsys, "why", "b/write").out
    ran = shop.run(capsys, "run")
    assert ("held     b/write" in ran.out, ran.code, (tmp_path / "o/b.txt").read_text()) == (True, 3, "mine\n")
    assert "headway restore b/write --at" in shop.run(capsys, "run", "--discard-edits").out
    assert (tmp_path / "o/b.txt").read_text() == "draft\npolished\n"


def test_of_several_all_are_accepted_or_none(made: Bench) -> None:
    """Whoever reads that one of them cannot be accepted would not know of the others."""
    for name in "ab":
        made.edit(name, "mine")
    (made.root / "out/d.txt").unlink()
    with pytest.raises(UsageError) as refused:
        made.accept("a", "b", "d")
    assert refused.value.facts == {"reason": "out/d.txt is missing"}
    assert made.events("output_accepted") == []


def test_what_was_accepted_before_a_check_refused_is_told(made: Bench) -> None:
    """A check may read what was accepted before it, so they are accepted in turn; the way out is named."""
    made.change("d", verify="grep -q good {output}")
    made.makes("d", "good")
    made.run()
    made.edit("a", "mine")
    made.edit("d", "bad")
    with pytest.raises(UsageError) as refused:
        made.accept("a", "d")
    assert refused.value.facts["accepted before it"] == "a"
    assert refused.value.hint.endswith("headway run d --discard-edits")
    assert "restored d" in made.run(on_edit="discard").log


def test_adopted_bytes_are_verified(made: Bench) -> None:
    """`verify` applies to them as to any others: what it refuses stays a question."""
    made.change("d", verify="grep -q good {output}")
    made.makes("d", "good")
    made.run()
    made.edit("d", "bad")
    ran = made.run(on_edit="accept")
    assert (ran.log, ran.code, ran.result.decisions[0].code) == (["held d"], 3, "edit_not_verified")
    with pytest.raises(UsageError):
        made.accept("d")
    assert made.out("d") == "bad"
    made.edit("d", "good, too")
    assert made.run(on_edit="accept").log == ["accepted d"]


def test_an_adopted_edit_that_becomes_stale_is_asked_about_again(made: Bench) -> None:
    """Making it again would replace what somebody wrote."""
    made.edit("b", "mine")
    made.accept("b")
    made.run()
    made.change("b", contract="new")
    ran = made.run()
    assert (ran.log, ran.code, made.out("b")) == (["held b"], 3, "mine")
    assert ran.result.decisions[0].code == "adopted_edit"
    assert ran.why["b"] == "it was accepted as it is, and since then contract changed (nothing → new)"
    assert made.run(rerun="b").log == ["held b"]


def test_an_adopted_edit_can_be_adopted_again(made: Bench) -> None:
    """It then counts for what is asked now."""
    made.edit("b", "mine")
    made.accept("b")
    made.run()
    made.change("b", contract="new")
    assert made.run(on_edit="accept").log == ["accepted b", "kept c"]
    assert made.stale() == {}


def test_an_adopted_edit_can_be_given_up(made: Bench) -> None:
    """Then it is made as if its output were missing."""
    made.edit("b", "mine")
    made.accept("b")
    made.run()
    made.change("b", contract="new")
    assert made.run(on_edit="discard").log == ["made b", "reused c"]
    assert made.out("b") == "b(a())"


def test_what_was_asked_for_anew_is_made_anew_by_the_command_that_gives_up_the_edit(made: Bench) -> None:
    """Whether the edit was accepted before or not; what nobody asked for is only put back."""
    made.edit("b", "mine")
    made.accept("b")
    made.run()
    made.edit("d", "mine, too")
    ran = made.run(rerun=("b", "d"))
    assert {a: d.flags for d in ran.result.decisions for a in d.artifacts} == {
        "b": ["--accept-edits", "--rerun d b --discard-edits"],
        "d": ["--accept-edits", "--rerun d b --discard-edits"],
    }
    assert made.run(rerun=("b", "d"), on_edit="discard").did == {"made b", "made d", "reused c"}
    made.edit("d", "once more")
    assert made.run().result.decisions[0].flags == ["--accept-edits", "--discard-edits"]


def test_an_adopted_edit_that_is_given_up_is_told_how_to_have_back(made: Bench) -> None:
    """As one that nobody had accepted is."""
    made.edit("b", "mine")
    made.accept("b")
    made.change("b", contract="new")
    ((artifact, paths, seq),) = made.run(on_edit="discard").result.preserved
    assert (artifact, paths) == ("b", ["out/b.txt"])
    Work(made.project).restore("plan", artifact, at=seq)
    assert made.out("b") == "mine"


def test_an_adopted_edit_is_not_asked_about_while_it_may_be_spared(made: Bench) -> None:
    """If what it requires comes out the same, there is no question."""
    made.edit("b", "mine")
    made.accept("b")
    made.run()
    made.change("a", version="2")
    assert made.stale()["b"] == "requirement_stale"
    assert made.run().log == ["made a", "kept b", "kept c"]


def test_an_adopted_edit_is_never_reused(made: Bench) -> None:
    """It was not made in the way that is asked for."""
    made.edit("b", "mine")
    made.accept("b")
    made.change("b", contract="new")
    made.run(on_edit="discard")
    made.change("b", contract="")
    assert made.run().log == ["reused b", "kept c"]
    assert made.out("b") == "b(a())"


# Setting aside.


def test_a_discarded_edit_is_kept_as_a_blob(made: Bench) -> None:
    """It goes on as if the output were missing: the recorded one is put back."""
    made.edit("b", "mine")
    ran = made.run(on_edit="discard")
    assert ran.log == ["restored b", "kept c"]
    assert (made.out("b"), preserved(made)) == ("b(a())", [b"mine"])
    assert ran.why["b"] == "the edit of out/b.txt was set aside; headway restore b brings it back"
    made.path("out/b.txt").unlink()
    assert made.run().why["b"] == "out/b.txt is missing"


def test_an_accepted_edit_is_stored_however_large_it_is(bench: Bench) -> None:
    """So it can be had back after it was given up."""
    bench.plan("a")
    bench.settings(store_up_to=10)
    bench.run()
    bench.edit("a", "what I have written myself")
    bench.accept("a")
    bench.run(rerun=["a"], on_edit="discard")
    [accepted] = [r.event for r in bench.events("output_accepted") if isinstance(r.event, OutputAccepted)]
    assert [bench.blob(o.digest) for o in accepted.outputs] == [b"what I have written myself"]


@pytest.mark.parametrize("link", ["ln -s ../src.txt {output}", "ln src.txt {output}"])
@pytest.mark.parametrize("how", ["run", "make"])
def test_what_an_output_led_to_is_not_written_by_the_recipe_after_it(bench: Bench, link: str, how: str) -> None:
    """A link, or another name of the same file: the source stays what it was."""
    bench.write("src.txt", "precious")
    bench.plan(a={"run": link})
    assert bench.run().code == 0
    if how == "run":
        bench.change("a", run="echo new > {output}")
    else:
        bench.plan("a")
        bench.makes("a", lambda ctx: ctx.output.write_text("new\n") and None)
    assert bench.run().log == ["made a"]
    assert (bench.read("src.txt"), bench.out("a")) == ("precious", "new\n")
    assert not bench.path("out/a.txt").is_symlink()


def test_a_discarded_edit_of_a_stale_artifact_makes_it(made: Bench) -> None:
    """What is to be put back is not what is asked for any more."""
    made.edit("b", "mine")
    made.change("b", version="2")
    assert made.run(on_edit="discard").log == ["made b", "kept c"]
    assert preserved(made) == [b"mine"]


def test_a_discarded_file_that_was_there_first(bench: Bench) -> None:
    """It is kept, and the artifact is made."""
    bench.edit("a", "mine")
    bench.plan("a")
    assert bench.run(on_edit="discard").log == ["made a"]
    assert (bench.out("a"), preserved(bench)) == ("a()", [b"mine"])


@pytest.mark.parametrize("produces", ["out/a", "out/a/"])
def test_a_discarded_pipe_is_nothing_that_blobs_could_lack(bench: Bench, produces: str) -> None:
    """It has no bytes; what stands beside it in a folder is kept all the same, and can be had again."""
    pipe = bench.path(f"{produces}pipe" if produces.endswith("/") else produces)
    os.makedirs(os.path.dirname(pipe))
    os.mkfifo(pipe)
    if produces.endswith("/"):
        bench.path("out/a/words").write_text("mine")
    command = "echo made > {output}x" if produces.endswith("/") else "echo made > {output}"
    bench.plan(a={"run": command, "produces": produces})
    assert bench.run().code == 3
    assert bench.run(on_edit="discard").did == {"made a"}
    assert Doctor(bench.project).examine() == []
    if produces.endswith("/"):
        Work(bench.project).restore("plan", "a")
        assert bench.path("out/a/words").read_text() == "mine"


@pytest.mark.parametrize(("produces", "edit"), [("t/", "file"), ("t/", "link"), ("t", "folder"), ("t", "link out")])
def test_what_cannot_be_an_output_is_brought_back_as_it_was(bench: Bench, produces: str, edit: str) -> None:
    """Until the next run: it is not accepted."""
    bench.plan(a={"run": f"echo a > {produces}{'x' if produces.endswith('/') else ''}", "produces": [produces]})
    bench.run()
    bench.delete("t")
    if edit == "file":
        bench.write("t", "mine")
    elif edit == "folder":
        bench.write("t/y", "mine")
    else:
        bench.path("t").symlink_to("/" if edit == "link out" else "out")
    bench.run(on_edit="discard")
    restored = Work(bench.project).restore("plan", "a")
    assert restored["accepted"] is False
    there = bench.path("t")
    if edit in ("file", "folder"):
        assert bench.read("t" if edit == "file" else "t/y") == "mine"
    else:
        assert os.readlink(there) == ("/" if edit == "link out" else "out")
    assert bench.run().log == ["restored a"], "it is kept, so nobody need be asked"
    assert bench.read("t/x" if produces == "t/" else "t") == "a\n"


def test_what_an_artifact_produces_still_is_restored_without_what_it_does_not(bench: Bench) -> None:
    """Of several outputs."""
    bench.plan(a={"run": "echo one > x.txt; echo y > y.txt", "produces": ["x.txt", "y.txt"]})
    bench.run()
    bench.plan(a={"run": "echo two > x.txt", "produces": ["x.txt"]})
    bench.run()
    assert Work(bench.project).restore("plan", "a")["paths"] == ["x.txt"]
    assert bench.read("x.txt") == "one\n"


def test_an_edit_at_a_path_that_is_nobodys_any_more_is_brought_back_there(bench: Bench) -> None:
    """It is no output, and is not taken for one."""
    bench.plan(a={"run": "echo a > {output}", "produces": ["old.txt"]})
    bench.run()
    bench.write("old.txt", "mine")
    bench.run(on_edit="discard")
    seq = bench.events("edit_preserved")[-1].seq
    bench.plan(a={"run": "echo a > {output}", "produces": ["new.txt"]})
    bench.run()
    assert Work(bench.project).restore("plan", "a", at=seq)["accepted"] is False
    assert (bench.read("old.txt"), bench.read("new.txt"), bench.run().log) == ("mine", "a\n", [])


def test_an_edit_that_is_fit_is_not_left_there_unaccepted(bench: Bench) -> None:
    """What else is missing is told, and all is as it was."""
    bench.plan(a={"run": "echo x > x.txt; echo y > y.txt", "produces": ["x.txt", "y.txt"]})
    bench.run()
    bench.write("x.txt", "mine")
    bench.run(on_edit="discard")
    bench.delete("y.txt")
    with pytest.raises(UsageError, match="cannot be accepted"):
        Work(bench.project).restore("plan", "a")
    assert bench.read("x.txt") == "x\n"


def test_what_stood_at_a_path_that_is_another_artifacts_now_is_not_restored_there(bench: Bench) -> None:
    """Nor is what stands at the new path taken for it."""
    bench.plan(a={"run": "echo one > {output}"}, b={"run": "echo bee > {output}"})
    bench.run()
    bench.change("a", run="echo two > {output}")
    bench.run()
    bench.plan(
        a={"run": "echo two > {output}", "produces": ["out/b.txt"]},
        b={"run": "echo bee > {output}", "produces": ["out/a.txt"]},
    )
    with pytest.raises(NotFound, match="no earlier output of a"):
        Work(bench.project).restore("plan", "a")
    assert bench.texts() == {"out/a.txt": "two\n", "out/b.txt": "bee\n"}
    bench.run(on_edit="discard")
    assert bench.texts() == {"out/a.txt": "bee\n", "out/b.txt": "two\n"}


def test_an_output_that_does_not_stand_its_verify_is_not_half_restored(bench: Bench) -> None:
    """What is there stays there."""
    bench.plan("a")
    bench.makes("a", "old")
    bench.run()
    bench.makes("a", "new")
    bench.change("a", version="2", verify="grep -q new {output}")
    bench.run()
    with pytest.raises(UsageError, match="cannot be accepted") as refused:
        Work(bench.project).restore("plan", "a")
    assert refused.value.hint.startswith("all is as it was")
    assert (bench.out("a"), bench.stale()) == ("new", {})


@pytest.mark.parametrize("produces", ["site/", "page.html"])
def test_an_edit_that_does_not_stand_its_verify_is_brought_back_and_not_accepted(bench: Bench, produces: str) -> None:
    """It was set aside with the word that this brings it back; whoever wrote it wants it, accepted or not."""
    there = f"{produces}a" if produces == "site/" else produces
    make = {"run": f"echo whole > {there}", "verify": f"grep -q whole {there}", "produces": [produces]}
    bench.plan(a=make)
    bench.run()
    bench.write(there, "hours of work")
    assert bench.run(on_edit="discard").log == ["restored a"]
    assert Work(bench.project).restore("plan", "a")["accepted"] is False
    assert bench.read(there) == "hours of work"
    assert bench.run().log == ["restored a"], "it is kept, so nobody need be asked"


def test_a_link_out_of_the_project_gives_way_to_what_is_restored(bench: Bench, tmp_path: Path) -> None:
    """It is kept, and what it leads to is not touched."""
    bench.plan("a")
    bench.run()
    (tmp_path / "theirs").write_text("theirs")
    bench.delete("out/a.txt")
    bench.path("out/a.txt").symlink_to(tmp_path / "theirs")
    Work(bench.project).restore("plan", "a")
    assert (bench.out("a"), bench.stale()) == ("a()", {})
    assert (tmp_path / "theirs").read_text() == "theirs"


def test_bytes_that_were_once_preserved_are_named(made: Bench) -> None:
    """Put back by hand they are known, so they are replaced without a question, and not lost."""
    made.edit("b", "mine")
    made.run(on_edit="discard")
    made.edit("b", "mine")
    assert made.run().log == ["restored b"]


# Policies.


def test_an_artifact_can_say_what_becomes_of_edits(made: Bench) -> None:
    """`on_edit` of the artifact wins over the plan's; the command line wins over both."""
    made.settings(on_edit="discard")
    made.change("b", on_edit="accept")
    made.edit("a", "mine")
    made.edit("b", "yours")
    assert made.run().log == ["restored a", "accepted b", "made c"]
    assert (made.out("a"), made.out("b")) == ("a()", "yours")
    made.edit("b", "again")
    assert made.run(on_edit="ask").log == ["held b"]


# What is no edit.


def test_what_a_failed_attempt_left_is_no_edit(bench: Bench) -> None:
    """Its digests are on record, so the next attempt replaces it without a question."""
    bench.plan(a={"run": "echo half > {output}; exit 1"})
    assert bench.run().log == ["failed a"]
    (event,) = (record.event for record in bench.events("artifact_failed"))
    assert isinstance(event, ArtifactFailed)
    assert bench.blob(event.left[0].digest) == b"half\n"
    bench.change("a", run="echo whole > {output}")
    assert bench.run().log == ["made a"]


def test_what_a_person_made_of_a_failed_attempt_is_an_edit(bench: Bench) -> None:
    """Only the bytes that it left are ours."""
    bench.plan(a={"run": "echo half > {output}; exit 1"})
    bench.run()
    bench.edit("a", "mended")
    assert bench.run().log == ["held a"]


def test_what_an_interrupted_attempt_left_is_no_edit(bench: Bench) -> None:
    """It was started and has no end: whatever stands there can be its work, and is kept before it is replaced."""
    bench.plan(a={"run": "echo half > {output}; sleep 60"})
    half = bench.path("out/a.txt")
    ran = bench.run(stop=lambda: "interrupted" if half.exists() and half.read_text() else "")
    assert (ran.code, ran.result.status, bench.out("a")) == (130, "interrupted", "half\n")
    bench.change("a", run="echo whole > {output}")
    assert bench.stale() == {"a": "interrupted"}
    assert bench.run().log == ["made a"]
    assert (bench.out("a"), preserved(bench)) == ("whole\n", [b"half\n"])


def test_after_its_end_an_interrupted_artifact_is_like_any_other(bench: Bench) -> None:
    """Once it was made, an edit is an edit again."""
    test_what_an_interrupted_attempt_left_is_no_edit(bench)
    bench.edit("a", "mine")
    assert bench.run().log == ["held a"]


def test_what_another_plan_recorded_is_no_edit(bench: Bench) -> None:
    """It is that plan's output, and can be made again by it."""
    bench.plan("a", id="one", a={"contract": "1"})
    bench.plan("a", id="two", a={"contract": "2"})
    bench.makes("a", lambda ctx: ctx.contract)
    assert bench.run(plan="one").log == ["made a"]
    assert bench.run(plan="two").log == ["made a"]
    assert bench.run(plan="one").log == ["restored a"]
    assert (bench.out("a"), preserved(bench)) == ("1", [])


def test_an_older_output_is_no_edit(bench: Bench) -> None:
    """Somebody who checks out an old version gets the new one back."""
    bench.plan("a", a={"version": "1"})
    bench.makes("a", "old")
    bench.run()
    bench.makes("a", "new")
    bench.change("a", version="2")
    bench.run()
    bench.edit("a", "old")
    assert bench.stale() == {"a": "output_replaced"}
    assert bench.run().log == ["restored a"]
    assert bench.out("a") == "new"


@pytest.mark.parametrize("torn", [b"", b"\0\0\0", b"alp", b"al\0\0\0"])
def test_after_a_reboot_an_output_cut_short_is_no_edit(
    bench: Bench, monkeypatch: pytest.MonkeyPatch, torn: bytes
) -> None:
    """Outputs are not synced: what a power cut leaves of one is put back without a question."""
    bench.plan("a -> b")
    bench.makes("a", "alpha")
    bench.run()
    bench.write("out/a.txt", torn)
    assert bench.stale()["a"] == "output_modified"
    monkeypatch.setattr("headway.disk.boot_id", lambda: "another")
    assert bench.stale() == {"a": "output_replaced"}
    assert bench.run().log == ["restored a"]


def test_after_a_reboot_an_edit_is_still_an_edit(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    """Only what a power cut can leave is no edit."""
    bench.plan("a")
    bench.makes("a", "alpha")
    bench.run()
    monkeypatch.setattr("headway.disk.boot_id", lambda: "another")
    bench.edit("a", "alps")
    assert bench.run().log == ["held a"]


def test_a_partial_run_after_a_reboot_does_not_hide_what_was_torn(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Outputs count as whole only when a run of the whole plan has completed."""
    bench.plan("a; b")
    bench.run()
    bench.write("out/a.txt", b"")
    monkeypatch.setattr("headway.disk.boot_id", lambda: "another")
    bench.change("b", version="2")
    assert bench.run("b").log == ["made b"]
    assert bench.run().log == ["restored a"]
    bench.write("out/a.txt", b"a(")
    assert bench.run().log == ["held a"]


def test_several_outputs_of_which_one_was_edited(bench: Bench) -> None:
    """Discarding touches only the one that was edited."""
    bench.plan(a={"produces": ["out/x.txt", "out/y.txt"]})
    bench.makes("a", lambda: {"x": "1", "y": "2"})
    bench.run()
    inode = bench.path("out/y.txt").stat().st_ino
    bench.write("out/x.txt", "mine")
    assert bench.run(on_edit="discard").log == ["restored a"]
    assert (bench.texts(), bench.path("out/y.txt").stat().st_ino) == ({"out/x.txt": "1", "out/y.txt": "2"}, inode)


@pytest.mark.parametrize("how", ["written", "replaced"])
def test_whoever_writes_right_after_an_output_was_put_in_place_is_noticed(
    bench: Bench, monkeypatch: pytest.MonkeyPatch, how: str
) -> None:
    """What is remembered of a file is told of the one that was written, whatever stands at its path by then."""
    bench.plan("a")
    bench.run()
    bench.makes("a", lambda: "new")
    target, real = bench.path("out/a.txt"), bulk.write

    def meanwhile(orders: list[Order]) -> list[Answer]:
        answers = real(orders)
        theirs = target.with_name("theirs") if how == "replaced" else target
        theirs.write_text("?" * target.stat().st_size)
        theirs.rename(target)
        return answers

    with monkeypatch.context() as patch:
        patch.setattr(bulk, "write", meanwhile)
        bench.run(rerun=["a"])
    assert set(bench.out("a")) == {"?"}
    assert bench.run().log == ["held a"]


def test_an_output_that_came_out_the_same_is_left_as_it_stands(bench: Bench) -> None:
    """Only that: one that was edited, replaced by a link or is another by a single byte is written."""
    bench.plan("a; b; c; d")
    bench.run()
    before = {name: bench.path(f"out/{name}.txt").stat() for name in "abcd"}
    texts = bench.texts()
    bench.write("out/b.txt", "?" * len(bench.out("b")))
    bench.path("out/c.txt").rename(bench.path("real.txt"))
    bench.path("out/c.txt").symlink_to("../real.txt")
    bench.makes("d", lambda: texts["out/d.txt"][:-1] + "!")
    bench.run(rerun=["a", "b", "c", "d"], on_edit="discard")
    after = {name: bench.path(f"out/{name}.txt").lstat() for name in "abcd"}
    assert [name for name in "abcd" if after[name].st_mtime_ns == before[name].st_mtime_ns] == ["a"]
    assert {path: text[:-1] for path, text in bench.texts().items()} == {
        path: text[:-1] for path, text in texts.items()
    }
    assert (bench.out("a"), bench.out("d")[-1]) == (texts["out/a.txt"], "!")
    assert bench.run().log == []


def test_an_output_of_which_somebody_has_a_link_is_replaced(bench: Bench) -> None:
    """A copy that was made by linking to it stays what it was."""
    bench.plan("a")
    bench.run()
    os.link(bench.path("out/a.txt"), bench.path("copy.txt"))
    before = bench.path("copy.txt").read_text()
    bench.makes("a", lambda: "new")
    bench.run(rerun=["a"])
    assert (bench.out("a"), bench.path("copy.txt").read_text()) == ("new", before)


def test_a_folder_that_becomes_a_link_out_of_the_project_is_noticed(bench: Bench, tmp_path: Path) -> None:
    """However often something was put into it before."""
    outputs = Outputs(str(bench.root), bench.project.blobs, Observer(str(bench.root)))
    outputs.write("deep/down/a.txt", b"1")
    outputs.write("deep/down/a.txt", b"2")
    outside = tmp_path / "outside"
    bench.path("deep/down").rename(outside)
    bench.path("deep/down").symlink_to(outside)
    with pytest.raises(UsageError, match="outside the project"):
        outputs.write("deep/down/b.txt", b"3")
    assert [path.name for path in outside.iterdir()] == ["a.txt"]


def test_bytes_at_the_path_of_a_new_artifact_in_an_old_plan(made: Bench, tmp_path: Path) -> None:
    """A run that was never cut off leaves no excuse: what stands there is somebody's."""
    made.edit("e", "mine")
    made.add("e", "d")
    assert made.run().log == ["held e"]


def test_an_output_that_cannot_be_looked_at_holds_back_its_artifact_alone(bench: Bench) -> None:
    """Whatever stands there is nobody's of ours; the rest is made, and once it is gone, so is the question."""
    bench.plan("a; b", a={"produces": ["round/a.txt"]})
    bench.run()
    bench.delete("round")
    bench.path("round").symlink_to("round")
    bench.delete("out/b.txt")
    ran = bench.run()
    assert (ran.log, ran.code) == (["held a", "restored b"], 3)
    bench.path("round").unlink()
    assert bench.run().log == ["restored a"]


def test_a_text_of_before_it_had_files_is_no_output_to_go_back_to(bench: Bench) -> None:
    """It has no path; nothing is restored, and nothing is taken away."""
    bench.plan(a={"produces": [], "run": "echo text"})
    bench.run()
    at = bench.events("artifact_completed")[0].seq
    bench.change("a", produces=["out/a.txt"], run="echo file > {output}", verify="test -e {output}")
    bench.run()
    bench.write("mine.txt", "mine")
    bench.delete("out/a.txt")
    with pytest.raises(NotFound):
        Work(bench.project).restore("plan", "a", at=at)
    assert bench.read("mine.txt") == "mine"


@pytest.mark.parametrize(
    ("run", "produces", "mode", "why"),
    [
        ("echo a > {output}", "t", 0o755, "t was made executable by somebody"),
        ("echo a > {output}; chmod +x {output}", "t", 0o644, "t is not executable any more"),
        ("echo a > {output}x", "t/", 0o755, "files in t/ have other modes than they were made with"),
    ],
)
def test_another_mode_is_put_right_and_told_for_what_it_is(
    bench: Bench, run: str, produces: str, mode: int, why: str
) -> None:
    """The bytes are the same, so nobody need be asked."""
    bench.plan(a={"run": run, "produces": [produces]})
    bench.run()
    path = bench.path("t/x" if produces == "t/" else "t")
    before = path.stat().st_mode
    path.chmod(mode)
    ran = bench.run()
    assert (ran.log, ran.why["a"], path.stat().st_mode) == (["restored a"], why, before)


@pytest.mark.parametrize("path", ["", ".", "./", "out/..", ".headway/plans", "../x"])
def test_what_is_no_output_is_never_taken_away(bench: Bench, path: str) -> None:
    """Whoever asks for it."""
    with pytest.raises(HeadwayError):
        Outputs(str(bench.root), bench.project.blobs, Observer(str(bench.root))).remove(path)
    assert bench.root.exists()


def test_an_output_that_was_a_file_gives_way_to_a_folder_of_its_name(bench: Bench) -> None:
    """What the plan itself once left is in nobody's way; what a person wrote there stays, and is named."""
    bench.plan(a={"produces": "out"})
    bench.run()
    bench.change("a", produces=("out/deep/a.txt",))
    assert bench.run().did == {"made a"}
    bench.change("a", produces=("out",))
    assert bench.run().did == {"reused a"}
    bench.change("a", produces=("out/deep/a.txt",))
    assert bench.run().did == {"reused a"}
    bench.write("mine", "by hand")
    bench.change("a", produces=("mine/a.txt",))
    error = "mine is no folder, and mine/a.txt belongs into one of that name"
    assert bench.run().result.failed["a"].startswith(error)
    assert bench.read("mine") == "by hand"
    bench.write("out/deep/mine", "by hand")
    bench.change("a", produces=("out",))
    assert bench.run().did == {"held a"}


def test_what_is_up_to_date_is_not_accepted(made: Bench) -> None:
    """It would count as somebody's from then on, and be asked about when it is to be made anew."""
    work = Work(made.project, environ=made.environ)
    assert work.accept("plan", ["b"]) == []
    made.change("b", version="2")
    assert made.run().log == ["made b", "kept c"]


def test_an_output_that_gc_has_freed_cannot_be_restored_and_is_no_damage(made: Bench) -> None:
    """Whoever frees it has asked for that."""
    was = next(record.seq for record in made.events("artifact_completed"))
    made.change("a", version="2")
    made.makes("a", "another")
    made.run()
    free_space(made.project.store, keep_days=0)
    with pytest.raises(NotFound, match="are not here any more"):
        Work(made.project, environ=made.environ).restore("plan", "a", at=was)
    assert made.out("a") == "another"


def test_an_edit_is_kept_though_what_was_to_replace_it_fails_after_that(made: Bench) -> None:
    """Of several outputs the first is written, and the second cannot be."""
    made.add("two", produces=["out/x.txt", "out/y.txt"])
    made.makes("two", lambda: {"out/x.txt": "x", "out/y.txt": "y"})
    made.run()

    def make() -> dict[str, object]:
        made.write("out/x.txt", "mine")
        return {"out/x.txt": "new", "out/y.txt": Path("nowhere.txt")}

    made.change("two", version="2")
    made.makes("two", make)
    assert made.run().log == ["failed two"]
    assert preserved(made) == [b"mine"]


def test_a_log_that_commands_only_add_to_is_nothing_that_an_adopted_output_was_made_from(bench: Bench) -> None:
    """Its own command never ran, so it was never seen to write there; but it says so. What it reads counts."""
    bench.write("in.txt", "1\n")
    bench.plan(
        old={"sources": ["in.txt"], "run": "echo old >> ran.log; cat in.txt > {output}"},
        new={"sources": ["s.txt"], "run": "echo new >> ran.log; cat s.txt > {output}"},
        reads={"run": "echo reads >> ran.log; wc -l < ran.log > {output}; cat ran.log > /dev/null"},
    )
    bench.write("s.txt", "1\n")
    for name in ("old", "reads"):
        bench.write(f"out/{name}.txt", "mine\n")
        bench.accept(name)
    for text in ("1\n", "2\n"):
        bench.write("s.txt", text)
        bench.run()
        assert "old" not in bench.stale()
        assert "ran.log was added" in bench.reason("reads").text
    bench.write("in.txt", "2\n")
    assert bench.reason("old").code == "adopted_edit"
