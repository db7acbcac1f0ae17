"""Files that several artifacts change in place: each is judged by what the one before left; none is applied twice."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Any

import pytest

from headway.core.commands import ResetPlan, SkipArtifacts, StartArtifacts, StartRun
from headway.core.events import ArtifactCompleted, EditPreserved
from headway.engine.gc import free_space
from headway.engine.recipes.function import Context
from headway.files.outputs import Outputs
from headway.work import Work
from tests.bench import Bench, Recipe, after
from tests.workshop import Workshop


def append(text: str) -> Recipe:
    """A recipe that adds a line to the shared file."""

    def make(ctx: Context) -> None:
        path = ctx.root / "shared.txt"
        path.write_text((path.read_text() if path.exists() else "") + text)

    return make


def half(ctx: Context) -> None:
    """A recipe that does not get to its end."""
    append("half")(ctx)
    raise RuntimeError("no")


def modifier(bench: Bench, name: str, *requires: str, text: str = "") -> dict[str, object]:
    bench.makes(name, append(text or name))
    return {"produces": [], "modifies": ["shared.txt"], "requires": list(requires)}


@pytest.fixture
def shared(bench: Bench) -> Bench:
    """p produces the file; m1 and m2 change it; r reads what m1 left."""
    bench.makes("p", "p")
    bench.plan(
        p={"produces": ["shared.txt"]},
        m1=modifier(bench, "m1", "p", text="1"),
        m2=modifier(bench, "m2", "p", text="2"),
        r={"requires": ["m1"]},
    )
    bench.makes("r", lambda ctx: (ctx.root / "shared.txt").read_text())
    return bench


def test_who_changes_a_file_comes_after_its_producer_whether_it_says_so_or_not(bench: Bench) -> None:
    """And is judged after it: what the producer made anew is changed anew."""
    bench.plan(
        a={"run": "echo more >> x.txt", "modifies": ["x.txt"], "produces": []},
        b={"run": "cat src.txt > {output}", "sources": ["src.txt"], "produces": ["x.txt"]},
    )
    bench.write("src.txt", "one\n")
    assert bench.run().log == ["made b", "made a"]
    for text in ("two\n", "three\n"):
        bench.write("src.txt", text)
        assert bench.run().log == ["made b", "made a"]
        assert bench.read("x.txt") == f"{text}more\n"
        assert bench.stale() == {}


def test_modifiers_follow_their_producer_in_the_order_of_the_plan(shared: Bench) -> None:
    """A reader of a stage sees that stage, however many run at once."""
    ran = shared.run(jobs=8)
    assert [line for line in ran.log if line != "made r"] == ["made p", "made m1", "made m2"]
    assert (shared.read("shared.txt"), shared.out("r")) == ("p12", "p1")
    assert (shared.stale(), shared.run().log) == ({}, [])


def test_to_make_the_first_again_the_file_is_put_back(shared: Bench) -> None:
    """Nothing is applied twice: the later ones are made on what comes out."""
    shared.run()
    shared.makes("m1", append("one"))
    shared.change("m1", version="2")
    ran = shared.run()
    assert ran.result.made == ["m1", "r", "m2"]
    assert (shared.read("shared.txt"), shared.out("r")) == ("pone2", "pone")


def test_to_make_the_last_again_the_file_is_put_back(shared: Bench) -> None:
    """To what the stage before it left."""
    shared.run()
    shared.makes("m2", append("two"))
    shared.change("m2", version="2")
    assert shared.run().log == ["made m2"]
    assert shared.read("shared.txt") == "p1two"


def test_made_again_with_the_same_bytes_cuts_off_the_rest(shared: Bench) -> None:
    """And the file ends as the last one left it."""
    shared.run()
    shared.change("m1", version="2")
    assert shared.run().log == ["made m1", "kept r", "kept m2"]
    assert shared.read("shared.txt") == "p12"


def test_a_reader_between_two_is_made_from_its_stage(shared: Bench) -> None:
    """The file is put back for it, and ends as the last one left it."""
    shared.run()
    shared.change("r", version="2")
    assert shared.run().log == ["made r"]
    assert (shared.out("r"), shared.read("shared.txt")) == ("p1", "p12")


def test_readers_of_different_stages_never_overlap(shared: Bench) -> None:
    """Each sees its own bytes though all could run at once."""
    shared.run()
    for name, stage in (("r0", "p"), ("r2", "m2"), ("r3", "m1")):
        shared.makes(name, lambda ctx: (ctx.root / "shared.txt").read_text())
        shared.add(name, stage)
    shared.change("r", version="2")
    assert shared.run(jobs=8).did == {"made r", "made r0", "made r2", "made r3"}
    assert [shared.out(name) for name in ("r0", "r", "r2", "r3")] == ["p", "p1", "p12", "p1"]
    assert shared.read("shared.txt") == "p12"


def test_an_edit_of_the_file_is_asked_about_once(shared: Bench) -> None:
    """It is the last stage's to answer for, and nothing is made from it."""
    shared.run()
    shared.write("shared.txt", "mine")
    ran = shared.run()
    assert (ran.log, ran.code, shared.read("shared.txt")) == (["held m2"], 3, "mine")
    assert shared.run(on_edit="discard").log == ["restored m2"]
    assert shared.read("shared.txt") == "p12"


def test_an_accepted_edit_of_the_file_stays(shared: Bench) -> None:
    """It is what the last stage left; made again, an earlier one raises the question anew."""
    shared.run()
    shared.write("shared.txt", "mine")
    assert shared.run(on_edit="accept").log == ["accepted m2"]
    assert shared.stale() == {}
    shared.makes("m1", append("one"))
    shared.change("m1", version="2")
    ran = shared.run()
    assert ran.log[-1] == "held m2"
    assert shared.read("shared.txt") == "mine"
    assert shared.run(on_edit="discard").log[-1] == "made m2"
    assert shared.read("shared.txt") == "pone2"


@pytest.fixture
def accepted_early(shared: Bench) -> Bench:
    """What p made was edited and accepted, and the others went on from there; since then p has another recipe."""
    shared.run("p")
    shared.write("shared.txt", "mine")
    shared.accept("p")
    shared.run()
    assert shared.read("shared.txt") == "mine12"
    shared.change("p", version="2")
    return shared


@pytest.mark.parametrize("options", [{}, {"rerun": "p"}, {"rerun_all": True}])
def test_an_accepted_edit_that_others_went_on_from_is_asked_about_again(
    accepted_early: Bench, options: dict[str, Any]
) -> None:
    """It stands in what they made of it, though the disk does not show it as it was."""
    bench = accepted_early
    assert bench.reason("p").text == "it was accepted as it is, and since then recipe changed (version: 1 → 2)"
    ran = bench.run(**options)
    assert ("held p" in ran.log, ran.code, bench.read("shared.txt")) == (True, 3, "mine12")
    assert (ran.result.decisions[0].code, ran.result.made) == ("adopted_edit", [])


def test_an_accepted_edit_that_others_went_on_from_is_accepted_again_as_it_was(accepted_early: Bench) -> None:
    """Not as what the others made of it; and it is what its check is asked about."""
    bench = accepted_early
    bench.change("p", verify="grep -qx mine shared.txt")
    assert bench.run(on_edit="accept").log == ["accepted p", "kept m1", "kept r", "kept m2"]
    assert (bench.read("shared.txt"), bench.stale()) == ("mine12", {})
    bench.change("p", version="3")
    assert bench.accept("p") == ["p"]
    assert (bench.read("shared.txt"), bench.stale()) == ("mine12", {})


def test_an_edit_of_what_others_made_of_an_accepted_one_is_accepted_with_it(accepted_early: Bench) -> None:
    """Each counts for its own stage."""
    accepted_early.write("shared.txt", "mine12, and more")
    assert sorted(accepted_early.accept(everything=True)) == ["m2", "p"]
    assert (accepted_early.read("shared.txt"), accepted_early.run().log) == ("mine12, and more", [])
    assert accepted_early.out("r") == "mine1"


def test_an_accepted_edit_that_others_went_on_from_is_given_up_and_brought_back(accepted_early: Bench) -> None:
    """The run says how; then the others go on from there once more."""
    bench = accepted_early
    ran = bench.run(on_edit="discard")
    assert (ran.result.made, bench.read("shared.txt")) == (["p", "m1", "r", "m2"], "p12")
    (kept,) = ran.result.preserved
    assert (kept.artifact, kept.paths) == ("p", ["shared.txt"])
    Work(bench.project).restore("plan", "p", at=kept.seq)
    assert bench.run().did == {"reused m1", "reused r", "reused m2"}
    assert (bench.read("shared.txt"), bench.stale()) == ("mine12", {})


@pytest.mark.parametrize("target", ["p", "m1", "r"])
def test_an_edit_of_the_file_is_asked_about_whatever_the_run_is_about(shared: Bench, target: str) -> None:
    """Who answers for the file is not among the targets, and yet it would be put back for them."""
    shared.run()
    shared.write("shared.txt", "mine")
    shared.change(target, version="2")
    ran = shared.run(target)
    assert (ran.log, ran.code, shared.read("shared.txt")) == (["held m2"], 3, "mine")
    ran = shared.run(target, on_edit="accept")
    assert (ran.log[0], ran.code, shared.read("shared.txt")) == ("accepted m2", 0, "mine")


def test_a_target_that_leaves_an_edited_file_alone_asks_nothing(shared: Bench) -> None:
    """The question is in nobody's way."""
    shared.add("other")
    shared.run()
    shared.write("shared.txt", "mine")
    shared.change("other", version="2")
    assert shared.run("other").log == ["made other"]
    assert shared.read("shared.txt") == "mine"


@pytest.mark.parametrize("again", ["reused", "made"])
@pytest.mark.parametrize("targets", [(), ("p",)])
def test_a_discarded_edit_is_gone_though_it_is_another_stage_that_has_to_be_brought_up_to_date(
    shared: Bench, again: str, targets: tuple[str, ...]
) -> None:
    """Made again or taken over: the file ends as the last one left it, and the edit is kept."""
    shared.run()
    shared.change("p", contract="another")
    if again == "reused":
        shared.run()
        shared.change("p", contract="")
    shared.write("shared.txt", "mine")
    assert shared.run(*targets, on_edit="discard").log[0] == f"{again} p"
    assert shared.read("shared.txt") == "p12"
    assert shared.run().log == []
    (kept,) = (record.event for record in shared.events("edit_preserved"))
    assert isinstance(kept, EditPreserved)
    assert shared.project.blobs.get(kept.outputs[0].digest) == b"mine"


@pytest.mark.parametrize("before", [False, True])
def test_an_edit_is_accepted_though_earlier_stages_are_made_again(shared: Bench, before: bool) -> None:
    """It is what the last stage left, not what stands there when its turn comes; accepted before, it is so again."""
    shared.run()
    shared.write("shared.txt", "mine")
    if before:
        shared.run(on_edit="accept")
    shared.makes("p", "q")
    shared.change("p", version="2")
    ran = shared.run(on_edit="accept")
    assert (ran.result.made, ran.result.accepted) == (["p", "m1", "r"], ["m2"])
    assert (shared.read("shared.txt"), shared.out("r"), shared.run().log) == ("mine", "q1", [])


def test_a_deleted_file_is_put_back(shared: Bench) -> None:
    """As the last one left it."""
    shared.run()
    shared.delete("shared.txt")
    assert shared.run().log == ["restored m2"]
    assert shared.read("shared.txt") == "p12"


def test_a_new_modifier_goes_on_where_the_last_one_ended(shared: Bench) -> None:
    """And an edit made before its first run is asked about, not built upon."""
    shared.run()
    shared.makes("m3", append("3"))
    shared.add("m3", "p", produces=[], modifies=["shared.txt"])
    shared.write("shared.txt", "mine")
    ran = shared.run()
    assert ran.log == ["held m2"]
    assert shared.run(on_edit="discard").log == ["restored m2", "made m3"]
    assert shared.read("shared.txt") == "p123"


def test_a_change_taken_back_is_taken_over_stage_by_stage(shared: Bench) -> None:
    """The bytes before are an input, the bytes after an output."""
    shared.run()
    first = shared.read("shared.txt")
    shared.makes("m1", append("one"))
    shared.change("m1", version="2")
    shared.run()
    shared.change("m1", version="1")
    assert shared.run().log == ["reused m1", "reused r", "reused m2"]
    assert shared.read("shared.txt") == first


def test_a_target_brings_the_stages_before_it(shared: Bench) -> None:
    """A modifier builds on them although it does not require them."""
    assert shared.run("m2").log == ["made p", "made m1", "made m2"]


def test_a_failed_stage_blocks_the_later_ones(shared: Bench) -> None:
    """And the next attempt begins with the bytes before it."""

    def half(ctx: Context) -> None:
        append("half")(ctx)
        raise RuntimeError("no")

    shared.makes("m1", half)
    ran = shared.run()
    assert (ran.log, ran.result.blocked) == (["made p", "failed m1"], {"r": "m1", "m2": "m1"})
    assert shared.read("shared.txt") == "phalf"
    shared.makes("m1", append("1"))
    assert shared.run().log == ["made m1", "made r", "made m2"]
    assert shared.read("shared.txt") == "p12"


def test_a_failed_reader_does_not_hold_up_the_next_stage(shared: Bench) -> None:
    """Letting it go first was a courtesy."""
    shared.makes("r", lambda: 1 / 0)
    ran = shared.run()
    assert ran.log == ["made p", "made m1", "failed r", "made m2"]
    assert ran.result.blocked == {}


def test_a_retry_begins_with_the_bytes_before_it(bench: Bench) -> None:
    """What the first attempt did to the file is undone."""
    bench.write("shared.txt", "base\n")
    bench.plan(
        m={
            "produces": [],
            "modifies": ["shared.txt"],
            "run": "echo m >> shared.txt; echo x >> tries; test $(wc -l < tries) = 2",
            "retry": {"attempts": 2, "backoff": 0.001},
        }
    )
    assert bench.run().log == ["made m"]
    assert bench.read("shared.txt") == "base\nm\n"


@pytest.fixture
def base(bench: Bench) -> Bench:
    """A file that nobody produces, changed by two artifacts."""
    bench.write("shared.txt", "base")
    bench.plan(m1=modifier(bench, "m1", text="1"), m2=modifier(bench, "m2", text="2"))
    return bench


def test_a_file_that_nobody_produces_is_changed_in_place(base: Bench) -> None:
    """That it was there before is no question: it is what they change."""
    assert base.run().log == ["made m1", "made m2"]
    assert (base.read("shared.txt"), base.stale()) == ("base12", {})


def test_its_first_modifier_begins_with_what_it_once_was(base: Bench) -> None:
    """Made again, nothing is applied twice."""
    base.run()
    base.makes("m1", append("one"))
    base.change("m1", version="2")
    assert base.run().log == ["made m1", "made m2"]
    assert base.read("shared.txt") == "baseone2"


def test_its_first_modifier_begins_there_after_a_failure(base: Bench) -> None:
    """What a failed attempt left is not what it is applied to."""
    base.makes("m1", half)
    base.run()
    assert base.read("shared.txt") == "basehalf"
    base.makes("m1", append("1"))
    assert base.run().log == ["made m1", "made m2"]
    assert base.read("shared.txt") == "base12"


def test_its_first_modifier_begins_there_after_an_interruption(bench: Bench) -> None:
    """Nor is what an interrupted one left."""
    bench.write("shared.txt", "base\n")
    keys: dict[str, object] = {"produces": [], "modifies": ["shared.txt"]}
    bench.plan(m={**keys, "run": "echo half >> shared.txt; sleep 60"})
    ran = bench.run(stop=lambda: "interrupted" if "half" in bench.read("shared.txt") else "")
    assert ran.code == 130
    bench.change("m", run="echo m >> shared.txt")
    assert bench.run().log == ["made m"]
    assert bench.read("shared.txt") == "base\nm\n"


def test_the_first_modifier_of_a_file_that_was_not_there_begins_with_none_after_a_failure(base: Bench) -> None:
    """And after a reset."""
    base.path("shared.txt").unlink()
    base.makes("m1", half)
    base.run()
    assert base.read("shared.txt") == "half"
    base.makes("m1", append("1"))
    base.run()
    assert base.read("shared.txt") == "12"
    base.do(ResetPlan(ids=("m1", "m2")))
    base.run()
    assert base.read("shared.txt") == "12"


def test_a_file_that_a_failed_modifier_took_away_is_put_back_for_the_next_attempt(base: Bench) -> None:
    """Nobody else was there."""

    def take_away(ctx: Context) -> None:
        (ctx.root / "shared.txt").unlink()
        raise RuntimeError("no")

    base.makes("m1", take_away)
    base.run()
    base.makes("m1", append("1"))
    base.run()
    assert base.read("shared.txt") == "base12"


def test_a_new_first_modifier_begins_with_what_the_file_was_before_all(base: Bench) -> None:
    """The others follow it, and none of them is applied twice."""
    base.run()
    base.plan(m0=modifier(base, "m0", text="0"), m1=modifier(base, "m1", text="1"), m2=modifier(base, "m2", text="2"))
    base.run()
    assert base.read("shared.txt") == "base012"
    base.remove("m0")
    base.run()
    assert (base.read("shared.txt"), base.stale()) == ("base12", {})


def test_what_a_person_made_of_it_after_a_failure_is_the_new_beginning(base: Bench) -> None:
    """It is not what the attempt left, so somebody wrote it."""
    base.makes("m1", lambda: 1 / 0)
    base.run()
    base.write("shared.txt", "better")
    base.makes("m1", append("1"))
    base.run()
    assert base.read("shared.txt") == "better12"


def test_a_skipped_stage_is_passed_over(base: Bench) -> None:
    """The next one changes what was there before it."""
    base.do(SkipArtifacts(ids=("m1",), reason="not needed"))
    assert base.run().log == ["made m2"]
    assert base.read("shared.txt") == "base2"


def test_a_reader_by_source_sees_the_file_in_the_end(base: Bench) -> None:
    """Who names the file as a source comes after all that change it."""
    base.makes("r", lambda ctx: ctx.sources[0].read_text())
    base.add("r", sources=["shared.txt"])
    assert base.run(jobs=8).log == ["made m1", "made m2", "made r"]
    assert base.out("r") == "base12"
    assert base.stale() == {}
    base.makes("m2", append("two"))
    base.change("m2", version="2")
    assert base.stale() == {"m2": "recipe_changed", "r": "requirement_stale"}
    assert base.run().log == ["made m2", "made r"]


# Folders and links.


ADD = "echo 2 >> d/x; echo 3 > d/y"


def files(bench: Bench) -> dict[str, str]:
    return {path.name: path.read_text() for path in sorted(bench.path("d").iterdir())}


def test_a_folder_is_produced_and_changed_in_place(bench: Bench) -> None:
    """Its producer begins with an empty one each time; to make a later stage again it is put back whole."""
    change: dict[str, object] = {"produces": [], "modifies": ["d/"], "requires": ["a"]}
    bench.plan(a={"run": "echo 1 > d/x", "produces": ["d/"]}, b={**change, "run": ADD})
    assert bench.run().log == ["made a", "made b"]
    assert files(bench) == {"x": "1\n2\n", "y": "3\n"}
    bench.change("a", run="echo one > d/x")
    assert bench.run().log == ["made a", "made b"]
    bench.change("b", run="ls d > d/list")
    assert bench.run().log == ["made b"]
    assert (files(bench), bench.stale()) == ({"x": "one\n", "list": "list\nx\n"}, {})


def test_a_folder_that_nobody_produces_is_changed_in_place(bench: Bench) -> None:
    """It stays a folder, and every attempt begins with all that was in it, also after space was freed."""
    bench.write("d/x", "1\n")
    bench.plan(b={"produces": [], "modifies": ["d/"], "run": f"rm d/z; {ADD}"})
    assert bench.run().log == ["failed b"]
    bench.change("b", run=f"{ADD}; exit 1")
    assert bench.run().log == ["failed b"]
    free_space(bench.project.store, keep_days=0)
    bench.change("b", run=ADD)
    assert bench.run().log == ["made b"]
    assert files(bench) == {"x": "1\n2\n", "y": "3\n"}
    free_space(bench.project.store, keep_days=0)
    assert bench.run(rerun="b").log == ["made b"]
    assert (files(bench), bench.stale()) == ({"x": "1\n2\n", "y": "3\n"}, {})


def test_a_link_that_is_changed_in_place_is_put_back_as_a_link(bench: Bench) -> None:
    """Also after an attempt that left a file there."""
    bench.write("one", "1")
    bench.path("link").symlink_to("one")
    bench.plan(a={"produces": [], "modifies": ["link"], "run": "rm link; echo 2 > link; exit 1"})
    assert bench.run().log == ["failed a"]
    bench.change("a", run="readlink link; ln -sf two link")
    assert bench.run().log == ["made a"]
    assert bench.path("link").readlink().name == "two"


def test_a_link_is_put_back_as_a_link_when_it_is_made_again(bench: Bench) -> None:
    """What it was is not on record any more; what became of it is."""
    bench.write("one", "1")
    bench.path("link").symlink_to("one")
    bench.plan(a={"produces": [], "modifies": ["link"], "run": "readlink link; ln -sfn two link"})
    bench.run()
    assert bench.run(rerun="a").log == ["made a"]
    assert bench.path("link").readlink().name == "two"


def test_bytes_of_a_file_are_never_put_back_as_where_a_link_leads(base: Bench) -> None:
    """Somebody put a link in its place: what it was before was a file all the same."""
    base.run()
    base.write("mine.txt", "my own")
    base.path("shared.txt").unlink()
    base.path("shared.txt").symlink_to("mine.txt")
    base.change("m1", version="2")
    assert base.run(on_edit="discard").log == ["made m1", "kept m2"]
    assert (base.read("shared.txt"), base.path("shared.txt").is_symlink()) == ("base12", False)
    assert base.read("mine.txt") == "my own"


def test_a_file_that_may_be_executed_is_put_back_as_one(base: Bench) -> None:
    """Though it is gone, and nobody noted what it was."""
    base.path("shared.txt").chmod(0o755)
    base.run()
    base.path("shared.txt").unlink()
    base.change("m1", version="2")
    base.run()
    assert (base.read("shared.txt"), os.access(base.path("shared.txt"), os.X_OK)) == ("base12", True)


# What stands where a file is produced that others change.


@pytest.fixture
def appending(bench: Bench) -> Bench:
    """p writes to the end of what there is, and so does m."""
    bench.write("s.txt", "1\n")
    bench.plan(
        p={"produces": ["shared.txt"], "sources": ["s.txt"], "run": "cat s.txt >> {output}"},
        m={"produces": [], "modifies": ["shared.txt"], "requires": ["p"], "run": "echo m >> shared.txt"},
    )
    bench.run()
    bench.write("s.txt", "2\n")
    return bench


def test_its_producer_begins_with_nothing_that_others_left(appending: Bench) -> None:
    """As it does where nobody changes the file after it."""
    assert appending.run().log == ["made p", "made m"]
    assert appending.read("shared.txt") == "2\nm\n"


@pytest.mark.parametrize("where", ["inside.txt", "../outside.txt"])
def test_nothing_is_written_through_a_link_that_somebody_put_there(appending: Bench, where: str) -> None:
    """The link is set aside; what it leads to is not the project's to change."""
    mine = appending.path(where)
    mine.write_text("my diary")
    appending.path("shared.txt").unlink()
    appending.path("shared.txt").symlink_to(where)
    assert appending.run(on_edit="discard").log == ["made p", "made m"]
    assert (appending.read("shared.txt"), mine.read_text()) == ("2\nm\n", "my diary")


def test_a_folder_that_somebody_put_there_is_kept_and_taken_away(appending: Bench) -> None:
    """Otherwise no run would get past it."""
    appending.path("shared.txt").unlink()
    appending.path("shared.txt").mkdir()
    appending.write("shared.txt/mine", "mine")
    assert appending.run(on_edit="discard").log == ["made p", "made m"]
    assert appending.read("shared.txt") == "2\nm\n"
    kept = [r.event for r in appending.events("edit_preserved") if isinstance(r.event, EditPreserved)]
    assert [output.kind for event in kept for output in event.outputs] == ["tree"]


def test_a_folder_that_cannot_be_accepted_is_held_and_the_rest_is_made(appending: Bench) -> None:
    """It is said why; nobody else has to wait."""
    appending.add("r", requires=["m"])
    appending.add("z")
    appending.path("shared.txt").unlink()
    appending.path("shared.txt").mkdir()
    appending.write("shared.txt/mine", "mine")
    ran = appending.run(on_edit="accept")
    assert ("made z" in ran.log, "held m" in ran.log, ran.code) == (True, True, 3)
    assert appending.read("shared.txt/mine") == "mine"


def test_an_edit_that_nobody_came_to_replace_is_asked_about_in_the_end(bench: Bench) -> None:
    """It was written after the run had looked, and all its stages were taken over: exit 0 would not be true."""
    bench.write("s.txt", "1")
    bench.makes("s", lambda ctx: ctx.sources[0].read_text())
    bench.makes("p", lambda ctx: ctx.inputs["s"].text())
    bench.plan(
        s={"sources": ["s.txt"]},
        p={"produces": ["shared.txt"], "requires": ["s"]},
        m=modifier(bench, "m", "p"),
    )
    bench.run()
    bench.write("s.txt", "2")
    bench.run()
    bench.write("s.txt", "1")

    def make(ctx: Context) -> str:
        bench.write("shared.txt", "mine")
        return ctx.sources[0].read_text()

    bench.makes("s", make)
    ran = bench.run(rerun="s")
    assert (ran.log, ran.code) == (["made s", "reused p", "reused m"], 3)
    assert [(d.code, d.artifacts) for d in ran.result.decisions] == [("output_modified", ["m"])]
    assert bench.read("shared.txt") == "mine"
    bench.makes("s", lambda ctx: ctx.sources[0].read_text())
    assert bench.run(on_edit="discard").log == ["restored m"]
    assert bench.read("shared.txt") == "1m"


def test_a_producer_that_fails_before_it_writes_leaves_the_file_as_it_was(appending: Bench) -> None:
    """What was taken away for it is put back."""
    appending.change("p", run="exit 1")
    assert appending.run().log == ["failed p"]
    assert appending.read("shared.txt") == "1\nm\n"


@pytest.fixture
def large(bench: Bench) -> Bench:
    """p -> m in one file that is larger than what is stored of others."""
    bench.write("s.txt", "one and more\n")
    bench.write("x", "m")
    bench.plan(
        p={"produces": ["shared.txt"], "sources": ["s.txt"], "run": "cat s.txt > {output}"},
        m={
            "modifies": ["shared.txt"],
            "produces": [],
            "requires": ["p"],
            "sources": ["x"],
            "run": "cat x >> shared.txt",
        },
    )
    bench.settings(store_up_to=10)
    bench.run()
    return bench


def test_a_file_that_is_changed_in_place_is_stored_however_large_it_is(large: Bench) -> None:
    """Else no stage could begin again with what it was before."""
    large.write("x", "n")
    assert large.run().log == ["made m"]
    assert large.read("shared.txt") == "one and more\nn"
    large.change("p", run="exit 1")
    large.run()
    assert large.read("shared.txt") == "one and more\nn"


def test_what_an_older_version_did_not_store_is_not_taken_away(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is at its path alone."""
    bench.write("s.txt", "one and more\n")
    bench.plan(
        p={"produces": ["shared.txt"], "sources": ["s.txt"], "run": "cat s.txt > {output}"},
        m={"produces": [], "modifies": ["shared.txt"], "requires": ["p"], "run": "echo m >> shared.txt"},
    )
    bench.settings(store_up_to=10)
    with monkeypatch.context() as patch:
        patch.setattr(Outputs, "limit", lambda self, path: self.largest)
        bench.run()
    bench.change("p", run="exit 1")
    bench.run()
    assert bench.read("shared.txt") == "one and more\nm\n"


def test_an_accepted_edit_is_there_for_those_who_read_the_file_by_its_path(bench: Bench) -> None:
    """Before they are looked at, and not only when the run is over."""
    bench.write("s.txt", "1\n")
    bench.plan(
        p={"produces": ["shared.txt"], "sources": ["s.txt"], "run": "cat s.txt > {output}"},
        m={"produces": [], "modifies": ["shared.txt"], "requires": ["p"], "run": "echo m >> shared.txt"},
        copy={"sources": ["shared.txt"], "requires": ["m"], "run": "cat shared.txt > {output}"},
    )
    bench.run()
    bench.write("shared.txt", "mine\n")
    assert bench.run(on_edit="accept").log == ["accepted m", "made copy"]
    bench.write("s.txt", "2\n")
    ran = bench.run(on_edit="accept")
    assert (ran.code, ran.log) == (0, ["made p", "accepted m", "kept copy"])
    assert bench.out("copy") == bench.read("shared.txt") == "mine\n"


def test_an_accepted_edit_of_a_large_file_outlives_its_producer(large: Bench) -> None:
    """What somebody wrote is stored, too."""
    large.write("shared.txt", "one and more\nmine\n")
    large.write("s.txt", "two and more\n")
    assert large.run(on_edit="accept").log == ["made p", "accepted m"]
    assert large.read("shared.txt") == "one and more\nmine\n"
    assert large.run().log == []


def test_what_somebody_writes_while_its_producer_works_is_kept(shared: Bench) -> None:
    """As at any other path."""
    shared.run()
    shared.change("p", version="2")
    shared.makes("p", after(lambda: shared.write("shared.txt", "mine"), "new"))
    shared.run()
    kept = [r.event for r in shared.events("edit_preserved") if isinstance(r.event, EditPreserved)]
    assert [shared.blob(o.digest) for event in kept for o in event.outputs] == [b"mine"]
    assert shared.read("shared.txt") == "new12"


def test_what_a_killed_producer_left_is_put_right_though_nothing_else_has_changed(appending: Bench) -> None:
    """Its source is as it was again, but the file is not."""
    appending.do(StartRun(run="dead", now="2026-01-01T00:00:00.000Z", stale={"p": "source_changed"}, jobs=1))
    appending.do(StartArtifacts(ids=("p",), run="dead"))
    appending.write("shared.txt", "2\n")
    appending.write("s.txt", "1\n")
    assert appending.run().code == 0
    assert appending.read("shared.txt") == "1\nm\n"
    assert appending.run().log == []


@pytest.mark.parametrize(("before", "run"), [("link", "rm f; echo text > f"), ("file", "ln -sfn one f")])
def test_what_changed_its_kind_begins_as_what_it_was(bench: Bench, before: str, run: str) -> None:
    """A link that became a file, and a file that became a link."""
    bench.write("one", "1")
    if before == "link":
        bench.path("f").symlink_to("one")
    else:
        bench.write("f", "my text\n")
    look = "if [ -L f ]; then readlink f; else cat f; fi > seen"
    bench.plan(a={"produces": ["seen"], "modifies": ["f"], "run": f"{look}; {run}"})
    bench.run()
    first = bench.read("seen")
    assert bench.run(rerun="a").log == ["made a"]
    assert bench.read("seen") == first


def test_what_an_attempt_that_was_cut_off_left_in_one_file_is_put_right_with_what_it_left_in_another(
    bench: Bench,
) -> None:
    """Back to what all was made from: the file that others change in place is no exception."""
    both = "cat in.txt > prose.txt; cat in.txt > patch.txt; test ! -f nap || sleep 60"
    bench.plan(
        write={"run": both, "sources": ["in.txt"], "produces": ["prose.txt", "patch.txt"]},
        repair={"run": "echo repaired >> prose.txt", "modifies": ["prose.txt"], "requires": ["write"], "produces": []},
    )
    bench.write("in.txt", "one\n")
    bench.run()
    bench.write("in.txt", "two\n")
    bench.write("nap", "")
    bench.run(stop=lambda: "interrupted" if bench.read("patch.txt") == "two\n" else "")
    assert bench.read("prose.txt") == "two\n"
    bench.write("in.txt", "one\n")
    bench.delete("nap")
    assert bench.run().log == ["reused write", "kept repair"]
    assert (bench.read("prose.txt"), bench.read("patch.txt"), bench.stale()) == ("one\nrepaired\n", "one\n", {})


@pytest.mark.parametrize("jobs", [1, 4])
def test_who_reads_a_file_by_its_path_finds_it_as_the_last_left_it_though_others_had_it_put_back(
    bench: Bench, jobs: int
) -> None:
    """An early stage of one file is wanted by somebody who waits for the last stage of another."""
    bench.write("t.txt", "t\n")
    both = "echo both >> s.txt; echo both >> t.txt"
    bench.plan(
        base={"run": "echo base > {output}", "produces": ["s.txt"]},
        early={"run": "cat t.txt > {output}", "requires": ["base"], "sources": ["t.txt"]},
        last={"run": "cat s.txt > {output}", "sources": ["s.txt"]},
        both={"run": both, "requires": ["base"], "modifies": ["s.txt", "t.txt"], "produces": []},
        behind={"run": "cat {inputs.last} > {output}", "requires": ["last"]},
    )
    ran = bench.run(jobs=jobs)
    assert (ran.code, sorted(ran.result.made)) == (0, ["base", "behind", "both", "early", "last"])
    assert [bench.out(name) for name in ("early", "last", "behind")] == ["t\nboth\n", "base\nboth\n", "base\nboth\n"]
    assert bench.stale() == {}


# Going back to what one of them left.


@pytest.fixture
def staged(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Workshop:
    """first adds what a source says, and last goes on from there; both were made twice."""
    shop = Workshop(tmp_path / "p")
    shop.file.write_text(
        "id: p\ngoal: g\nartifacts:\n"
        "  first: {modifies: x.txt, run: 'cat s.txt >> x.txt', verify: 'test $(wc -l < x.txt) = 2'}\n"
        "  last: {modifies: x.txt, requires: [first], run: 'echo last >> x.txt'}\n"
    )
    (shop.root / "x.txt").write_text("was\n")
    for text in ("one", "two"):
        (shop.root / "s.txt").write_text(f"{text}\n")
        assert shop.run(capsys, "run").code == 0
    return shop


def test_what_one_of_them_left_is_brought_back_under_those_who_changed_it_since(
    staged: Workshop, capsys: pytest.CaptureFixture[str]
) -> None:
    """It is accepted, and checked as it was then; the file stays as the last one left it until a run judges that."""
    said = staged.run(capsys, "restore", "first").out
    seq = next(r.seq for r in staged.history("p") if isinstance(r.event, ArtifactCompleted) and r.event.id == "first")
    left = "On disk stays what last left, until a run judges that anew"
    assert said.startswith(f"Accepted first as of event {seq}: x.txt. {left}. Next: headway run")
    assert staged.events("p")[-1] == "output_accepted"
    assert (staged.root / "x.txt").read_text() == "was\ntwo\nlast\n"
    ran = staged.run(capsys, "run", "--json").json
    assert (ran["status"], ran["made"], ran["reused"]) == ("completed", [], ["last"])
    assert (staged.root / "x.txt").read_text() == "was\none\nlast\n"
    staged.edit("echo last", "echo end")
    assert staged.run(capsys, "run", "--json").json["made"] == ["last"]
    assert (staged.root / "x.txt").read_text() == "was\none\nend\n"


def test_an_edit_of_the_file_is_decided_about_before_an_earlier_stage_is_brought_back(
    staged: Workshop, capsys: pytest.CaptureFixture[str]
) -> None:
    """It is the last one's, and stays where it is."""
    (staged.root / "x.txt").write_text("mine\n")
    refused = staged.run(capsys, "restore", "first")
    assert (refused.code, "x.txt was edited, after last left it" in refused.err) == (2, True)
    assert staged.run(capsys, "run").code == 3
    assert (staged.root / "x.txt").read_text() == "mine\n"


def test_what_does_not_stand_its_check_is_not_brought_back_under_others(
    staged: Workshop, capsys: pytest.CaptureFixture[str]
) -> None:
    """And the file is as it was."""
    staged.edit("= 2'", "= 3'")
    assert staged.run(capsys, "restore", "first").code == 2
    assert (staged.root / "x.txt").read_text() == "was\ntwo\nlast\n"
    assert "output_accepted" not in staged.events("p")


def test_accepting_an_early_stage_accepts_what_it_left_and_nothing_that_others_added(
    staged: Workshop, capsys: pytest.CaptureFixture[str]
) -> None:
    """Those would add it once more."""
    staged.edit(", verify: 'test $(wc -l < x.txt) = 2'", "")
    (staged.root / "s.txt").write_text("three\n")
    assert staged.run(capsys, "accept", "first").code == 0
    assert staged.run(capsys, "run").code == 0
    assert (staged.root / "x.txt").read_text() == "was\ntwo\nlast\n"


@pytest.mark.parametrize("is_checked", [False, True])
def test_accepting_an_early_stage_decides_nothing_about_an_edit_of_the_file(
    staged: Workshop, capsys: pytest.CaptureFixture[str], is_checked: bool
) -> None:
    """That is the last one's. Where a check would have to look at the early stage, the edit is decided about first."""
    if not is_checked:
        staged.edit(", verify: 'test $(wc -l < x.txt) = 2'", "")
    (staged.root / "x.txt").write_text("mine\n")
    (staged.root / "s.txt").write_text("three\n")
    said = staged.run(capsys, "accept", "first")
    assert (said.code, "x.txt was edited, after others went on" in said.err) == (
        (2, True) if is_checked else (0, False)
    )
    assert staged.run(capsys, "run").code == 3
    assert (staged.root / "x.txt").read_text() == "mine\n"


def test_what_was_accepted_of_an_early_stage_is_named_when_its_artifact_leaves_the_plan(
    staged: Workshop, capsys: pytest.CaptureFixture[str]
) -> None:
    """Renamed, it is made anew, and what others went on from is not what it was: nobody has to search for it."""
    staged.edit(", verify: 'test $(wc -l < x.txt) = 2'", "")
    staged.run(capsys, "restore", "first")
    staged.edit("first", "begin")
    told = staged.run(capsys, "run").err
    found = re.search(r"What somebody accepted of first is on record: headway (show first --at \d+)", told)
    assert found is not None, told
    assert "\nwas\none\n" in staged.run(capsys, *found[1].split()).out


def test_diff_says_whether_it_is_about_the_disk_or_about_what_an_early_stage_left(
    staged: Workshop, capsys: pytest.CaptureFixture[str]
) -> None:
    """Also where that one is newer than those behind it."""
    said = staged.run(capsys, "diff", "first").out
    assert "→ what it left (last changed that since)" in said.splitlines()[0]
    assert said.endswith("-one\n+two\n")
    assert staged.run(capsys, "diff", "first", "--json").json["later"] == ["last"]
    assert "→ what is on disk" in staged.run(capsys, "diff", "last").out
    staged.run(capsys, "restore", "first")
    assert staged.run(capsys, "diff", "first").out.endswith("-two\n+one\n")
