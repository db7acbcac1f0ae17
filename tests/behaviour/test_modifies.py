"""Files that several artifacts change in place: each is judged by what the one before left; none is applied twice."""

from __future__ import annotations

import os

import pytest

from headway.core.commands import ResetPlan, SkipArtifacts, StartArtifacts, StartRun
from headway.core.events import EditPreserved
from headway.engine.gc import free_space
from headway.engine.recipes.function import Context
from headway.files.outputs import Outputs
from tests.bench import Bench, Recipe, after


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
