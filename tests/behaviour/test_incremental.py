"""Only what is stale is made again: what counts as a change, what is spared, put back or taken over, and why."""

from __future__ import annotations

import os
import sqlite3
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from headway.core.commands import ResetPlan, SkipArtifacts
from headway.core.events import ArtifactCompleted, Record
from headway.core.state import Output
from headway.engine import precedents
from headway.engine.recipes.function import Context
from headway.files.cache import Cache
from headway.ledger.file import FileLedger
from tests.bench import Bench, Recipe, joined

CHAIN = [f"n{number:02}" for number in range(20)]


@pytest.fixture
def chain(bench: Bench) -> Bench:
    """Twenty artifacts in a row, made; the first reads src.txt."""
    bench.write("src.txt", "1")
    bench.plan(" -> ".join(CHAIN), n00={"sources": ["src.txt"]})
    bench.run()
    return bench


def test_a_second_run_makes_nothing_and_writes_nothing(bench: Bench) -> None:
    """With nothing to do nothing is appended, and no lock is taken."""
    bench.plan("a -> b -> c")
    assert bench.run().log == ["made a", "made b", "made c"]
    lock = bench.path(".headway/plans/plan/run.lock")
    lock.unlink()
    before = bench.path(".headway/plans/plan/ledger.jsonl").read_bytes()
    again = bench.run()
    assert (again.log, again.result.kept, again.code) == ([], ["a", "b", "c"], 0)
    assert bench.path(".headway/plans/plan/ledger.jsonl").read_bytes() == before
    assert not lock.exists()


# The chain of twenty.


def test_an_upstream_that_comes_out_the_same_costs_one(chain: Bench) -> None:
    """Made again with the same bytes, its dependents stay as they are."""
    chain.change("n00", description="said otherwise")
    ran = chain.run()
    assert (ran.result.made, len(ran.result.kept)) == (["n00"], 19)
    assert ran.why["n00"] == "description changed (nothing → said otherwise)"


def test_a_touch_costs_nothing(chain: Bench) -> None:
    """Clocks never decide: only content does."""
    for path in chain.path("out").iterdir():
        os.utime(path, ns=(1, 1))
    os.utime(chain.path("src.txt"))
    assert (chain.stale(), chain.run().log) == ({}, [])


def test_a_deleted_output_is_put_back(chain: Bench) -> None:
    """It is restored from its blob; nothing is made, and nobody behind it is even suspected."""
    before = chain.texts()
    chain.delete("out/n07.txt")
    assert chain.stale() == {"n07": "output_missing"}
    ran = chain.run()
    assert (ran.log, ran.result.made) == (["restored n07"], [])
    assert chain.texts() == before


def test_a_hand_edited_output_is_a_question(chain: Bench) -> None:
    """Nothing is made from the tampered file, and nothing is overwritten."""
    chain.edit("n07", "mine")
    ran = chain.run()
    assert (ran.log, ran.code, ran.result.status) == (["held n07"], 3, "refused")
    assert chain.out("n07") == "mine"
    assert chain.out("n08").startswith("n08(n07(")
    assert ran.result.decisions[0] == ("output_modified", ["n07"], ["--accept-edits", "--discard-edits"])
    assert list(ran.result.blocked) == CHAIN[8:]


def test_a_changed_source_costs_all_twenty(chain: Bench) -> None:
    """The reason of the first is the file, that of each other is the one before it, with old and new digests."""
    chain.write("src.txt", "2")
    assert chain.reason("n00")[:2] == ("source_changed", "src.txt")
    assert chain.reason("n05")[:2] == ("requirement_stale", "n04")
    ran = chain.run()
    assert ran.result.made == CHAIN
    assert ran.why["n00"].startswith("src.txt changed (6b86b273 → d4735e3a")
    assert ran.why["n05"].startswith("n04 changed (")


# What counts.


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("description", "x"),
        ("contract", "x"),
        ("instructions", "x"),
        ("acceptance", ["x"]),
        ("verify", "true"),
    ],
)
def test_a_changed_spec_makes_it_again(bench: Bench, key: str, value: Any) -> None:
    """Whatever says what is asked for belongs to the spec."""
    bench.plan("a -> b")
    bench.run()
    bench.change("a", **{key: value})
    assert bench.stale() == {"a": "spec_changed", "b": "requirement_stale"}
    ran = bench.run()
    assert (ran.result.made, ran.result.kept) == (["a"], ["b"])


@pytest.mark.parametrize(
    ("key", "value"), [("milestone", "m"), ("retry", {"attempts": 3}), ("timeout", 9.0), ("tags", ["x"])]
)
def test_what_only_says_how_to_go_about_it_is_no_change(bench: Bench, key: str, value: Any) -> None:
    """Milestone, retry and timeout are not what is asked for."""
    bench.plan("a -> b")
    bench.run()
    bench.change("a", **{key: value})
    assert bench.stale() == {}


def test_a_changed_requirement_is_a_changed_spec(bench: Bench) -> None:
    """What it requires belongs to the spec."""
    bench.plan("a -> c; b")
    bench.run()
    bench.change("c", requires=["a", "b"])
    assert bench.run().result.made == ["c"]


def test_a_changed_version_stands_for_changed_code(bench: Bench) -> None:
    """`version` stands in for the function's code."""
    bench.plan("a -> b")
    bench.run()
    bench.change("a", version="2")
    assert bench.reason("a").code == "recipe_changed"
    assert bench.run().result.made == ["a"]


def test_changed_arguments_are_a_changed_recipe(bench: Bench) -> None:
    """Arguments count by value."""
    bench.plan(a={"args": {}})
    bench.makes("a", lambda: "x")
    bench.run()
    bench.change("a", args={"n": 1})
    assert bench.stale() == {"a": "recipe_changed"}


def test_a_declared_variable_of_the_environment_is_part_of_the_recipe(bench: Bench) -> None:
    """`env:` of the artifact or of the plan; nothing else of the environment counts."""
    bench.plan("a; b", a={"env": ["MINE"]})
    bench.environ |= {"MINE": "1", "OTHER": "1"}
    bench.run()
    bench.environ["OTHER"] = "2"
    assert bench.stale() == {}
    bench.environ["MINE"] = "2"
    assert bench.stale() == {"a": "recipe_changed"}
    bench.run()
    bench.settings(env=["OTHER"])
    assert bench.stale() == {"a": "recipe_changed", "b": "recipe_changed"}


def test_only_commands_that_use_a_variable_depend_on_it(bench: Bench) -> None:
    """`{vars.x}` is part of a command by its value."""
    bench.plan(a={"run": "echo a > {output}"})
    bench.settings(vars={"style": "short", "other": "1"})
    bench.change("a", run="echo {vars.style} > {output}")
    bench.run()
    bench.settings(vars={"style": "short", "other": "2"})
    assert bench.stale() == {}
    bench.settings(vars={"style": "long", "other": "2"})
    assert bench.run().result.made == ["a"]
    assert bench.out("a") == "long\n"


def test_a_word_of_a_command_that_names_a_file_is_a_source(bench: Bench) -> None:
    """Nobody has to declare `tools/write.py` twice."""
    bench.write("tools/write.sh", "echo one")
    bench.plan(a={"run": "sh tools/write.sh > {output}"})
    bench.run()
    bench.write("tools/write.sh", "echo two")
    assert bench.reason("a")[:2] == ("source_changed", "tools/write.sh")
    bench.run()
    assert bench.out("a") == "two\n"


def test_a_variable_that_names_a_file_is_such_a_word(bench: Bench) -> None:
    """A word counts as it is run, with its variables replaced."""
    bench.write("conf/a.txt", "one")
    bench.plan(a={"run": "true > {output}"})
    bench.settings(vars={"conf": "conf/a.txt"})
    bench.change("a", run="cat {vars.conf} > {output}")
    bench.run()
    bench.write("conf/a.txt", "two")
    assert bench.stale() == {"a": "source_changed"}


def test_a_file_that_the_command_itself_writes_is_no_source(bench: Bench) -> None:
    """Neither one that it creates, nor one that it rewrites each time."""
    bench.write("notes/log.txt", "old\n")
    bench.plan(a={"run": "echo more >> notes/log.txt; echo new > notes/new.txt; echo a > {output}"})
    bench.run()
    assert bench.stale() == {}
    assert bench.run(rerun="a").result.made == ["a"]
    assert bench.stale() == {}
    assert bench.read("notes/log.txt") == "old\nmore\nmore\n"


def test_what_another_command_writes_becomes_a_source_when_the_command_changes(bench: Bench) -> None:
    """What the old command wrote may be what the new one reads."""
    bench.plan(a={"run": "echo one > log.txt; echo a > {output}"})
    bench.run()
    bench.change("a", run="cat log.txt > {output}")
    bench.run()
    bench.write("log.txt", "two\n")
    assert bench.stale() == {"a": "source_changed"}


def test_a_file_of_the_plan_is_no_source(bench: Bench) -> None:
    """What the plan makes is a requirement or nothing."""
    bench.plan(a={"run": "echo a > {output}"}, b={"requires": ["a"], "run": "cat out/a.txt > {output}"})
    bench.run()
    assert bench.state().completed["b"].fp.sources == {}


def test_a_pattern_that_gains_a_file_is_a_change(bench: Bench) -> None:
    """And so is one that loses a file."""
    bench.write("in/1.txt", "1")
    bench.plan(a={"sources": ["in/*.txt"]})
    bench.run()
    bench.write("in/2.txt", "2")
    assert bench.reason("a")[:3] == ("source_changed", "in/2.txt", "")
    bench.run()
    assert bench.out("a") == "a(1,2)"
    bench.delete("in/1.txt")
    assert bench.stale() == {"a": "source_changed"}


def test_what_an_artifact_writes_is_no_source_of_its_own(bench: Bench) -> None:
    """Whatever pattern matches it; of others it may be one."""
    bench.write("1.txt", "1")
    bench.write("pre/2.txt", "2")
    bench.plan(
        a={
            "sources": ["*.txt", "p*/*.txt"],
            "produces": ["all.txt", "parts/"],
            "run": "echo > all.txt; echo > parts/x.txt",
        },
        b={"sources": ["*.txt"], "requires": ["a"]},
    )
    assert bench.run().log == ["made a", "made b"]
    assert bench.run().log == []
    assert set(bench.state().completed["a"].fp.sources) == {"1.txt", "pre/2.txt"}
    assert set(bench.state().completed["b"].fp.sources) == {"1.txt", "all.txt"}


def test_a_source_behind_a_link_counts_by_what_it_leads_to(bench: Bench, tmp_path: Path) -> None:
    """A link's own text is not what a recipe reads."""
    (tmp_path / "elsewhere.txt").write_text("1")
    bench.plan(a={"sources": ["link.txt"]})
    bench.path("link.txt").symlink_to(tmp_path / "elsewhere.txt")
    bench.run()
    (tmp_path / "elsewhere.txt").write_text("2")
    assert bench.run().result.made == ["a"]
    assert bench.out("a") == "a(2)"


def test_an_edit_within_one_tick_of_the_clock_is_seen(bench: Bench) -> None:
    """A file of the same size and the same times is hashed again when it was touched around its hashing."""
    bench.write("src.txt", "1")
    bench.plan(a={"sources": ["src.txt"]})
    bench.run()
    stat = bench.path("src.txt").stat()
    bench.write("src.txt", "2")
    os.utime(bench.path("src.txt"), ns=(stat.st_atime_ns, stat.st_mtime_ns))
    assert bench.stale() == {"a": "source_changed"}


# Reuse.


@pytest.mark.parametrize("at_once", [0, 1 << 30])
def test_a_change_that_is_taken_back_costs_nothing(bench: Bench, monkeypatch: pytest.MonkeyPatch, at_once: int) -> None:
    """What was once made from the same things in the same way is taken over, with its origin, however much it is."""
    monkeypatch.setattr("headway.engine.precedents.QUERY", at_once)
    bench.write("src.txt", "1")
    bench.plan("a -> b -> c", a={"sources": ["src.txt"]})
    bench.run()
    first = bench.texts()
    bench.write("src.txt", "2")
    bench.run()
    bench.write("src.txt", "1")
    ran = bench.run()
    assert ran.log == ["reused a", "reused b", "reused c"]
    assert ran.notes["a"] == "event 5 of plan"
    assert bench.texts() == first
    assert bench.run().log == []


def test_what_many_were_made_as_is_read_many_at_a_time(chain: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of a ledger as long as you like: also where each of them was made and taken over several times."""
    for text in ("2", "1", "2"):
        chain.write("src.txt", text)
        chain.run()
    reads, history = list[int](), FileLedger.history

    def reading(self: FileLedger, first: int = 1, last: int | None = None, **more: Any) -> Iterator[Record]:
        reads.append(first)
        return history(self, first, last, **more)

    monkeypatch.setattr(FileLedger, "history", reading)
    chain.write("src.txt", "1")
    assert chain.run().log == [f"reused {name}" for name in CHAIN]
    assert len(reads) <= 6, "8 events, then 16, then 32, and not 20 times one"


def test_of_what_several_plans_made_the_newest_is_taken_over(bench: Bench) -> None:
    """Whichever ledger names it."""
    for name in ("one", "two", "three"):
        bench.plan("a", a={"version": "1"}, id=name)
    bench.makes("a", "old")
    bench.run(plan="two")
    bench.makes("a", "new")
    bench.run(plan="one", rerun="a")
    assert bench.run(plan="three").notes["a"].endswith("of one")
    assert bench.out("a") == "new"


@pytest.mark.parametrize("key", ["contract", "version"])
def test_a_spec_or_recipe_changed_and_changed_back_costs_nothing(bench: Bench, key: str) -> None:
    """A prompt changed and changed back is the same prompt."""
    bench.plan("a -> b", a={key: "1"})
    bench.run()
    bench.change("a", **{key: "2"})
    bench.run()
    bench.change("a", **{key: "1"})
    assert bench.run().log == ["reused a", "kept b"]


def test_an_artifact_that_left_the_plan_and_came_back_is_taken_over(bench: Bench) -> None:
    """Its completion is still named by the ledger."""
    bench.plan("a -> b")
    bench.run()
    bench.remove("b")
    bench.run()
    bench.add("b", "a")
    assert bench.run().log == ["reused b"]


def test_a_command_that_asks_for_its_name_is_not_taken_for_another(bench: Bench) -> None:
    """Its environment tells it, so it is part of how it is made."""
    say = {"run": "echo $HEADWAY_ARTIFACT", "produces": []}
    bench.plan(a=say)
    bench.run()
    bench.plan(a=say, b=say)
    ran = bench.run()
    assert [ran.result[name].text() for name in "ab"] == ["a\n", "b\n"]


def test_another_plan_of_the_project_is_a_source_of_reuse(bench: Bench) -> None:
    """What two plans ask for in the same way is made once."""
    bench.plan("a -> b", id="one")
    bench.plan("a -> b", id="two")
    assert bench.run(plan="one").result.made == ["a", "b"]
    ran = bench.run(plan="two")
    assert ran.log == ["reused a", "reused b"]
    assert ran.notes["a"].endswith("of one")


def test_what_shares_a_mark_with_something_else_is_not_taken_for_it(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The index may name too many completions: what each was made from, its ledger tells."""
    monkeypatch.setattr(precedents, "_mark", lambda _: "0" * 8)
    monkeypatch.setattr(precedents, "_marks", lambda fps: ["0" * 8] * len(fps))
    bench.plan("a -> b", a={"sources": ["src.txt"]}, c={})
    for text, log in (("1", ["made a", "made b", "made c"]), ("2", ["made a", "made b"])):
        bench.write("src.txt", text)
        assert sorted(bench.run().log) == log
    bench.write("src.txt", "1")
    assert sorted(bench.run().log) == ["reused a", "reused b"]


def indexed(bench: Bench) -> dict[str, list[Any]]:
    """What the cache knows of the ledgers."""
    db = sqlite3.connect(bench.path(".headway/cache.sqlite"))
    rows = {name: db.execute(f"SELECT plan, words FROM {name}").fetchall() for name in ("made", "named")}
    found = {name: sorted({(plan, word) for plan, words in rows[name] for word in words.split()}) for name in rows}
    ledgers = db.execute("SELECT * FROM ledgers ORDER BY 1").fetchall()
    db.close()
    return {**found, "ledgers": ledgers}


def ask(bench: Bench) -> None:
    """Bring the index up to date."""
    bench.session.judge("plan", functions=bench.functions(), writable=True).judge.precedents.any()


@pytest.mark.parametrize("others", [False, True])
def test_what_a_run_makes_it_indexes_itself(bench: Bench, others: bool) -> None:
    """The next one finds the same as if it had read all ledgers from their first lines, whoever else wrote to them."""

    def make(ctx: Context) -> str:
        if others:
            bench.edit("z", f"by hand, beside {joined(ctx)}")
            bench.accept("z")
        return joined(ctx)

    bench.plan("a -> b -> c", a={"sources": ["src.txt"]}, z={})
    bench.makes("b", make)
    for count, text in enumerate("123", 1):
        bench.write("src.txt", text)
        bench.run()
        if not others:
            assert indexed(bench)["ledgers"] == [("plan", *bench.events()[-1].position)], "nothing is left to read"
        ask(bench)
        known = indexed(bench)
        bench.delete(".headway/cache.sqlite")
        ask(bench)
        assert indexed(bench) == known
        assert len(known["made"]) == 3 * count + 1
        assert len(known["named"]) == (3 + others) * count + 1


def test_what_is_heard_while_the_index_is_written_is_not_lost(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    """Threads record steps while another one asks."""
    bench.plan("a -> b -> c")
    bench.run()
    precedents = bench.session.judge("plan", functions=bench.functions(), writable=True).judge.precedents
    precedents.any()
    tail = [replace(record, prev=bench.events()[-1].hash) for record in bench.events()[-1:]]
    precedents.hear("plan", tail)
    made = next(r for r in bench.events() if isinstance(r.event, ArtifactCompleted))
    event = replace(made.event, outputs=(Output("x", "f" * 64, 1),))
    late = [replace(made, event=event, prev=tail[-1].hash, hash="late")]
    other = threading.Thread(target=precedents.hear, args=("plan", late))
    index = Cache.index

    def slowly(self: Cache, *words: Any, **more: Any) -> None:
        index(self, *words, **more)
        if not other.ident:
            other.start()
            other.join(0.2)

    monkeypatch.setattr(Cache, "index", slowly)
    precedents.settle()
    other.join()
    precedents.settle()
    assert ("plan", "f" * 32) in indexed(bench)["named"]


def test_whoever_did_not_hear_all_reads_the_ledger(bench: Bench) -> None:
    """Events that do not follow on what was heard before say that there were others."""
    bench.plan("a -> b")
    precedents = bench.session.judge("plan", functions=bench.functions(), writable=True).judge.precedents
    assert not precedents.any()
    bench.run()
    precedents.hear("plan", bench.events("artifact_completed")[-1:])
    assert precedents.names(bench.state().completed["a"].outputs[0].digest)
    assert precedents.any()


def test_a_plan_that_was_deleted_is_no_source_of_reuse(bench: Bench) -> None:
    """Only what the project's ledgers still name counts."""
    bench.plan("a", id="one")
    bench.plan("a", id="two")
    bench.run(plan="one")
    bench.stale("two")
    bench.project.store.delete("one")
    bench.delete("out")
    assert bench.run(plan="two").log == ["made a"]


def test_what_a_reset_withdrew_is_made_anew(bench: Bench) -> None:
    """A reset forgets on purpose; what was made before is still no edit."""
    bench.plan("a -> b")
    bench.run()
    bench.do(ResetPlan(reason="afresh"))
    assert bench.run().log == ["made a", "made b"]


@pytest.mark.parametrize("ids", [(), ("a",)])
def test_whoever_only_looks_knows_what_a_reset_withdrew(bench: Bench, ids: tuple[str, ...]) -> None:
    """Before any run has told the index of it: a price that is promised is the one that is paid."""
    bench.plan("a")
    bench.run()
    bench.do(ResetPlan(ids=ids, reason="afresh"))
    judged = bench.session.judge("plan")
    assert not judged.judge.has_earlier("a")
    assert bench.run().log == ["made a"]
    assert len(list(bench.session.judge("plan").judge.earlier("a"))) == 1


@pytest.mark.parametrize("few", [0, 20])
def test_a_reset_of_one_artifact_withdraws_nothing_of_others(
    bench: Bench, few: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """However an index of the ledger is brought up to date: looked through for those that were reset, or made anew."""
    monkeypatch.setattr(precedents, "FEW", few)
    bench.plan("a b", a={"contract": "1"}, b={"contract": "1"})
    bench.run()
    for contract in ("2", "1", "2"):
        bench.change("a", contract=contract)
        bench.change("b", contract=contract)
        bench.run()
    bench.do(ResetPlan(ids=("a",), reason="afresh"))
    bench.change("a", contract="1")
    bench.change("b", contract="1")
    assert sorted(bench.run().log) == ["made a", "reused b"]


def test_asking_for_it_makes_it_anew(bench: Bench) -> None:
    """`--rerun` knows no reuse; what it makes still cuts off what is behind it."""
    bench.plan("a -> b")
    bench.run()
    assert bench.run(rerun="a").log == ["made a", "kept b"]


def test_reuse_needs_readable_blobs(bench: Bench) -> None:
    """A completion whose bytes are gone is no help: the artifact is made."""
    bench.plan("a", a={"contract": "1"})
    bench.run()
    bench.change("a", contract="2")
    bench.makes("a", "other")
    bench.run()
    bench.ruin(b"a()")
    bench.change("a", contract="1")
    assert bench.run().log == ["made a"]


def test_the_newest_completion_is_taken_over(bench: Bench) -> None:
    """Where one thing was made twice with different results, the later one counts."""
    bench.plan("a", a={"version": "1"})
    bench.makes("a", "first")
    bench.run()
    bench.makes("a", "second")
    assert bench.run(rerun="a").result.unstable == ["a"]
    bench.change("a", version="2")
    bench.run()
    bench.change("a", version="1")
    assert bench.run().log == ["reused a"]
    assert bench.out("a") == "second"


def test_an_artifact_that_is_never_the_same_twice_is_reported(bench: Bench) -> None:
    """Nothing that it read changed, and yet its output did."""
    numbers = iter(range(9))
    bench.plan("a -> b")
    bench.makes("a", lambda: str(next(numbers)))
    assert bench.run().result.unstable == []
    ran = bench.run(rerun="a")
    assert (ran.result.unstable, ran.result.made) == (["a"], ["a", "b"])


# Outputs of all kinds.


def test_several_outputs_are_one_artifact(bench: Bench) -> None:
    """One of them missing is put back; all of them are seen by dependents."""
    bench.plan("a -> b", a={"produces": ["out/x.txt", "out/y.txt"]})
    bench.makes("a", lambda: {"x": "1", "y.txt": "2"})
    bench.makes("b", lambda ctx: "".join(Path(p).read_text() for p in ctx.inputs["a"].paths))
    assert bench.run().result.made == ["a", "b"]
    assert bench.out("b") == "12"
    bench.delete("out/y.txt")
    assert bench.run().log == ["restored a"]
    bench.makes("a", lambda: {"x": "1", "y": "3"})
    bench.change("a", version="2")
    assert bench.run().log == ["made a", "made b"]


def folder(text: str) -> Recipe:
    def make(ctx: Context) -> None:
        (ctx.output / "deep").mkdir(parents=True, exist_ok=True)
        (ctx.output / "deep" / "text.txt").write_text(text)
        (ctx.output / "tool").write_text("#!/bin/sh\n")
        (ctx.output / "tool").chmod(0o755)
        if not (ctx.output / "link").is_symlink():
            (ctx.output / "link").symlink_to("deep/text.txt")
            (ctx.output / "out").symlink_to("/etc/hostname")

    return make


@pytest.fixture
def dist(bench: Bench) -> Bench:
    """A folder as output, with a link, a link out of the project, and a program."""
    bench.plan("a -> b", a={"produces": ["dist/"]})
    bench.makes("a", folder("1"))
    bench.makes("b", lambda ctx: (Path(ctx.inputs["a"]) / "deep/text.txt").read_text())
    assert bench.run().result.made == ["a", "b"]
    return bench


def test_a_folder_is_an_output(dist: Bench) -> None:
    """All of it is kept: links as links, and who may run it."""
    assert dist.stale() == {}
    dist.delete("dist")
    assert dist.run().log == ["restored a"]
    assert (dist.path("dist/tool").stat().st_mode & 0o111, dist.read("dist/link")) == (0o111, "1")
    assert os.readlink(dist.path("dist/out")) == "/etc/hostname"


def test_a_file_missing_in_a_folder_is_put_back(dist: Bench) -> None:
    """A folder that only lacks files was not edited: nothing that stood there has to be kept."""
    dist.delete("dist/deep/text.txt")
    ran = dist.run()
    assert (ran.log, ran.result.preserved) == (["restored a"], [])
    assert dist.read("dist/link") == "1"


@pytest.mark.parametrize("change", ["text", "new", "link"])
def test_a_change_in_a_folder_is_an_edit(dist: Bench, change: str) -> None:
    """A file that differs, a file more, a link that leads elsewhere."""
    if change == "text":
        dist.write("dist/deep/text.txt", "mine")
    elif change == "new":
        dist.write("dist/mine.txt", "mine")
    else:
        dist.delete("dist/link")
        dist.path("dist/link").symlink_to("tool")
    assert dist.run().log == ["held a"]
    assert dist.run(on_edit="discard").log == ["restored a", "kept b"]
    assert dist.stale() == {}


def test_who_may_run_a_file_is_part_of_it(bench: Bench) -> None:
    """A bit that was lost is put back, without a question: nobody's bytes are at stake."""
    bench.plan(a={"run": "echo x > {output}; chmod +x {output}"})
    bench.run()
    bench.path("out/a.txt").chmod(0o644)
    assert bench.run().log == ["restored a"]
    assert bench.path("out/a.txt").stat().st_mode & 0o100


def test_a_link_is_an_output(bench: Bench) -> None:
    """It is recorded and put back as a link, and never followed."""
    bench.write("target.txt", "1")
    bench.plan(a={"run": "ln -sf ../target.txt {output}"})
    bench.run()
    bench.write("target.txt", "2")
    assert bench.stale() == {}
    bench.delete("out/a.txt")
    assert bench.run().log == ["restored a"]
    assert os.readlink(bench.path("out/a.txt")) == "../target.txt"


def test_an_artifact_without_files_is_its_text(bench: Bench) -> None:
    """A text is judged by what it was made from, and given to functions and, in a file, to commands."""
    bench.plan(
        "a -> b c",
        a={"produces": []},
        c={"run": "tr a-z A-Z < {inputs.a} > {output}"},
    )
    bench.makes("a", "hello")
    bench.makes("b", lambda ctx: ctx.inputs["a"].text() + "!")
    assert bench.run().did == {"made a", "made b", "made c"}
    assert (bench.out("b"), bench.out("c")) == ("hello!", "HELLO")
    assert bench.stale() == {}
    bench.makes("a", "bye")
    bench.change("a", version="2")
    assert bench.run().did == {"made a", "made b", "made c"}


def test_the_text_of_a_command_is_what_it_prints(bench: Bench) -> None:
    """All of it, to the byte."""
    bench.plan(a={"produces": [], "run": "printf 'one\\ntwo'"})
    assert bench.run().result["a"].text() == "one\ntwo"


def test_a_text_whose_blob_is_gone_is_made_again(bench: Bench) -> None:
    """A completion counts only while its output can be had."""
    bench.plan("a -> b", a={"produces": []})
    bench.run()
    for pack in bench.path(".headway/blobs").iterdir():
        pack.unlink()
    assert bench.stale()["a"] == "unstored"
    assert bench.run().log[0] == "made a"


def test_an_output_whose_blob_is_gone_counts_while_it_stands(bench: Bench) -> None:
    """And once it is gone, too, it is made again, and what is behind it judged by what comes out."""
    bench.plan("a -> b")
    bench.run()
    for pack in bench.path(".headway/blobs").iterdir():
        pack.unlink()
    assert bench.stale() == {}
    bench.delete("out/a.txt")
    assert bench.stale() == {"a": "unstored", "b": "requirement_stale"}
    assert bench.run().log == ["made a", "kept b"]


def test_a_folder_that_lacks_files_is_not_called_missing(bench: Bench) -> None:
    """Some of it is there, as anybody can see; either way it is put back."""
    bench.plan(a={"produces": ["d/"], "run": "echo 1 > d/one; echo 2 > d/two"})
    bench.run()
    bench.delete("d/two")
    assert (bench.reason("a").code, bench.reason("a").text) == ("output_missing", "d/ is missing in part")
    bench.delete("d/one")
    assert bench.reason("a").text == "d/ is missing"
    assert bench.run().log == ["restored a"]


def test_a_blob_that_is_damaged_is_as_good_as_none(bench: Bench) -> None:
    """A missing output is made again, and its dependents are looked at again though nobody had suspected them."""
    bench.plan("a -> b")
    bench.makes("a", "alpha")
    bench.makes("b", lambda ctx: ctx.inputs["a"].text().upper())
    bench.run()
    bench.ruin(b"alpha")
    bench.delete("out/a.txt")
    bench.makes("a", "other")
    assert bench.stale() == {"a": "output_missing"}
    ran = bench.run()
    assert ran.log == ["made a", "made b"]
    assert ran.result.kept == []


def test_large_outputs_are_hashed_and_not_stored(bench: Bench) -> None:
    """They are judged like any other; lost, they have to be made again."""
    bench.largest = 10
    bench.plan("a -> b", a={"produces": ["big/"]})

    def make(ctx: Context) -> None:
        ctx.output.mkdir(exist_ok=True)
        (ctx.output / "one").write_text("x" * 8)
        (ctx.output / "two").write_text("y" * 8)

    bench.makes("a", make)
    bench.makes("b", "z" * 11)
    assert bench.run().result.made == ["a", "b"]
    assert bench.stale() == {}
    bench.delete("out/b.txt")
    assert bench.stale() == {"b": "unstored"}
    assert bench.run().log == ["made b"]
    bench.delete("big")
    assert bench.run().log == ["made a", "kept b"]
    bench.write("out/b.txt", "mine, and larger than the limit")
    assert bench.run().log == ["held b"]
    assert bench.run(on_edit="discard").log == ["made b"]
    (kept,) = (record.event.outputs for record in bench.events("edit_preserved"))  # type: ignore[attr-defined]  # its type was asked for
    assert bench.blob(kept[0].digest) == b"mine, and larger than the limit"


# Others.


def test_a_skipped_requirement_counts_with_its_last_output(bench: Bench) -> None:
    """Skipping what was made changes nothing for those behind it."""
    bench.plan("a -> b")
    bench.run()
    bench.do(SkipArtifacts(ids=("a",), reason="good enough"))
    bench.change("a", contract="new")
    assert bench.stale() == {}
    bench.delete("out/a.txt")
    assert bench.run().log == ["restored a"]


def test_a_skipped_requirement_that_was_never_made_counts_as_none(bench: Bench) -> None:
    """Dependents go on without it, and record that."""
    bench.plan("a -> b c", c={"run": "cat {inputs.a} > {output}; echo c >> {output}"})
    bench.do(SkipArtifacts(ids=("a",), reason="later"))
    assert bench.run().did == {"made b", "made c"}
    assert (bench.out("b"), bench.out("c")) == ("b()", "c\n")
    assert bench.state().completed["b"].fp.inputs == {"a": "none"}
    assert bench.run(rerun="a").log[:1] == ["made a"]


def test_an_artifact_without_a_recipe_is_left_to_whoever_claims_it(bench: Bench) -> None:
    """The rest is made, and the run ends with 75, naming what to type."""
    bench.plan("a -> b; c", a={"by_hand": True})
    ran = bench.run()
    assert (ran.log, ran.code, ran.result.status) == (["made c"], 75, "paused")
    assert ran.result.waiting == {"a": "headway claim a", "b": "waits for a"}


def test_a_new_path_is_not_taken_from_whoever_wrote_there(bench: Bench) -> None:
    """When an artifact moves, a file at its new path is a question like any other."""
    bench.plan("a")
    bench.run()
    bench.write("out/new.txt", "mine")
    bench.change("a", produces=["out/new.txt"])
    assert bench.run().log == ["held a"]
    assert bench.read("out/new.txt") == "mine"


def test_the_status_and_the_reasons_agree_with_the_run(bench: Bench) -> None:
    """One traversal gives both, so `why` never disagrees with `run`."""
    bench.write("src.txt", "1")
    bench.plan("a -> b -> c; d", a={"sources": ["src.txt"]})
    bench.run()
    bench.write("src.txt", "2")
    document = bench.status()["artifacts"]
    assert {a: found["freshness"] for a, found in document.items()} == {
        "a": "stale",
        "b": "stale",
        "c": "stale",
        "d": "fresh",
    }
    why = bench.why("c")
    assert ([root["artifact"] for root in why["root_causes"]], why["cascade"]) == (["a"], ["b"])
    assert why["root_causes"][0]["code"] == "source_changed"


def test_what_reads_through_a_link_is_made_again_with_what_the_link_leads_to(bench: Bench) -> None:
    """The link itself came out the same; its reader has read something else."""
    bench.plan(
        build={"produces": "build.txt", "run": "echo one > {output}"},
        newest={"produces": "newest.txt", "requires": ["build"], "run": "ln -sf build.txt {output}"},
        reader={"produces": "reader.txt", "requires": ["newest"], "run": "cat newest.txt > {output}"},
    )
    bench.run()
    bench.change("build", run="echo two > {output}")
    assert bench.run().log == ["made build", "made newest", "made reader"]
    assert bench.read("reader.txt") == "two\n"
    bench.change("newest", run="ln -s -f build.txt {output}")
    assert bench.run().log == ["made newest", "kept reader"]
