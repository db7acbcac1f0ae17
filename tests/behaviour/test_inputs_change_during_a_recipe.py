"""What an artifact is made from may change under it: then it is stale at once, and nobody builds on it in this run."""

from __future__ import annotations

from typing import Any

import pytest

from headway.engine.recipes.function import Context
from tests.bench import Bench, after


def test_a_source_that_changes_meanwhile_makes_it_stale_at_once(bench: Bench) -> None:
    """It is made once, its dependents wait, and the run ends with exit 1 naming the file."""
    bench.write("src.txt", "1")
    bench.plan("a -> b; c", a={"sources": ["src.txt"]})

    def make(ctx: Context) -> str:
        text = ctx.sources[0].read_text()
        bench.write("src.txt", "2")
        return text

    bench.makes("a", make)
    ran = bench.run()
    assert ran.did == {"made a", "made c"}
    assert (ran.code, ran.result.moved, ran.result.blocked) == (1, {"a": "src.txt"}, {"b": "a"})
    assert bench.stale() == {"a": "source_changed", "b": "never_made"}
    assert bench.reason("a").was == "moved"
    bench.makes("a", lambda ctx: ctx.sources[0].read_text())
    assert bench.run().log == ["made a", "made b"]
    assert bench.out("a") == "2"


def test_what_read_something_that_changed_meanwhile_is_not_said_to_differ_by_itself(bench: Bench) -> None:
    """It was made anew from what it was made from before, as far as anybody could tell when it began."""
    bench.write("src.txt", "1")
    bench.plan(a={"sources": ["src.txt"]})
    bench.run()
    bench.makes("a", after(lambda: bench.write("src.txt", "2"), "otherwise"))
    ran = bench.run(rerun="a")
    assert (ran.result.moved, ran.result.unstable) == ({"a": "src.txt"}, [])


def test_changing_the_source_back_does_not_hide_it(bench: Bench) -> None:
    """Nobody knows what the recipe has read, so it is never taken for fresh, nor taken over later."""
    bench.write("src.txt", "1")
    bench.plan(a={"sources": ["src.txt"]})
    bench.makes("a", after(lambda: bench.write("src.txt", "2"), "odd"))
    bench.run()
    bench.write("src.txt", "1")
    assert bench.stale() == {"a": "source_changed"}
    bench.makes("a", "even")
    assert bench.run().log == ["made a"]
    assert bench.out("a") == "even"


def test_a_file_that_appears_behind_a_pattern_meanwhile_counts(bench: Bench) -> None:
    """The pattern names more than was read."""
    bench.write("in/1.txt", "1")
    bench.plan(a={"sources": ["in/*.txt"]})
    bench.makes("a", after(lambda: bench.write("in/2.txt", "2"), "x"))
    assert bench.run().result.moved == {"a": "in/2.txt"}
    assert bench.stale() == {"a": "source_changed"}


def test_a_requirement_that_is_edited_meanwhile_counts(bench: Bench) -> None:
    """What was made from the tampered file is not built upon; the edit is the next run's question."""
    bench.plan("a -> b -> c")
    bench.makes("b", after(lambda: bench.edit("a", "mine"), "from who knows what"))
    ran = bench.run()
    assert (ran.log, ran.code, ran.result.moved) == (["made a", "made b"], 1, {"b": "out/a.txt"})
    assert bench.run().log == ["held a"]
    bench.makes("b", lambda ctx: ctx.inputs["a"].text())
    assert bench.run(on_edit="discard").log == ["restored a", "made b", "made c"]
    assert bench.out("b") == "a()"


def test_a_requirement_that_is_edited_before_the_start_is_not_used(bench: Bench) -> None:
    """Between two artifacts of one run, nothing is made from a tampered file."""
    bench.plan("a -> c; b -> c")
    bench.makes("b", after(lambda: bench.edit("a", "mine"), "b"))
    ran = bench.run()
    assert (ran.log, ran.code, ran.result.moved) == (["made a", "made b"], 1, {"c": "out/a.txt"})
    assert bench.run().log == ["held a"]


def test_a_requirement_that_is_deleted_meanwhile_is_put_back_by_the_next_run(bench: Bench) -> None:
    """A missing file is no edit."""
    bench.plan("a -> b")
    bench.makes("b", after(lambda: bench.delete("out/a.txt"), "b"))
    assert bench.run().code == 1
    bench.makes("b", "b")
    assert bench.run().log == ["restored a", "made b"]


def test_a_source_that_changed_before_the_start_is_simply_the_source(bench: Bench) -> None:
    """Digests are taken before the recipe begins, not when the plan was judged."""
    bench.write("src.txt", "1")
    bench.plan("a -> b", b={"sources": ["src.txt"]})
    bench.makes("a", after(lambda: bench.write("src.txt", "2"), "a"))
    ran = bench.run()
    assert (ran.log, ran.code) == (["made a", "made b"], 0)
    assert (bench.out("b"), bench.stale()) == ("b(a,2)", {})


def test_a_source_that_changed_since_another_read_it_is_simply_the_source(bench: Bench) -> None:
    """What was looked at for one artifact is not what the next one is made from."""
    bench.write("src.txt", "1")
    bench.plan("a -> x -> b", a={"sources": ["src.txt"]}, b={"sources": ["src.txt"]})
    bench.makes("x", after(lambda: bench.write("src.txt", "2"), "x"))
    ran = bench.run()
    assert (ran.log, ran.code, ran.result.moved) == (["made a", "made x", "made b"], 0, {})
    assert bench.out("b") == "b(x,2)"
    assert bench.stale() == {"a": "source_changed", "x": "requirement_stale", "b": "requirement_stale"}
    assert bench.run().log == ["made a", "made x", "kept b"]


@pytest.mark.parametrize(
    "check", [{"verify": "echo 2 > src.txt"}, {"gates": [{"name": "g", "kind": "check", "run": "echo 2 > src.txt"}]}]
)
def test_a_source_that_a_check_edits_is_looked_at_again_by_whoever_comes_after_it(
    bench: Bench, check: dict[str, Any]
) -> None:
    """Accepting an edit runs its checks, which may take long: what begins later is made from what is there then."""
    bench.write("src.txt", "1\n")
    bench.plan("a; b", a={"sources": ["src.txt"]}, b={"sources": ["src.txt"]})
    bench.run()
    bench.change("a", **check)
    bench.edit("a", "mine")
    bench.change("b", contract="new")
    bench.makes("b", lambda ctx: ctx.sources[0].read_text())
    ran = bench.run(on_edit="accept")
    assert (ran.log, ran.result.moved) == (["accepted a", "made b"], {})
    assert bench.out("b") == "2\n"
