"""A part of the plan: by name, by pattern, by path, up to a number; and what is to be made anew whatever there is."""

from __future__ import annotations

import re
from typing import Any

import pytest

from headway.errors import UsageError
from tests.bench import Bench


@pytest.fixture
def plan(bench: Bench) -> Bench:
    """Two chapters with two phases each, and a book."""
    names = ("ch1/write", "ch1/edit", "ch2/write", "ch2/edit")
    keys: dict[str, Any] = {name: {"produces": [f"out/{name}.txt"]} for name in names}
    bench.plan("ch1/write -> ch1/edit -> book; ch2/write -> ch2/edit -> book", **keys)
    return bench


def test_a_target_is_made_with_what_it_requires(plan: Bench) -> None:
    """The run is done when its part is."""
    ran = plan.run("ch1/edit")
    assert (ran.log, ran.code, ran.result.status) == (["made ch1/write", "made ch1/edit"], 0, "completed")
    assert plan.status()["status"] != "complete"
    assert plan.run("ch1/edit").log == []


def test_a_pattern_names_several(plan: Bench) -> None:
    """As a shell would match it, over ids."""
    assert plan.run("*/write").log == ["made ch1/write", "made ch2/write"]


def test_a_path_names_its_artifact(plan: Bench) -> None:
    """However it is spelled."""
    assert plan.run("./out/ch2/write.txt").log == ["made ch2/write"]


def test_until_is_a_target_by_another_name(plan: Bench) -> None:
    """`--until` stops after what it names."""
    assert plan.run(until="ch1/write").log == ["made ch1/write"]


def test_an_unknown_word_is_refused_with_the_nearest(plan: Bench) -> None:
    """Nothing is made."""
    with pytest.raises(UsageError) as refused:
        plan.run("ch1/wrte", "book")
    assert refused.value.facts == {"did you mean": "ch1/write"}
    assert plan.events("run_started") == []


def test_a_failure_outside_the_part_does_not_count(plan: Bench) -> None:
    """Exit 0 says that the part is done."""
    plan.makes("ch2/write", lambda: 1 / 0)
    assert plan.run().code == 1
    assert plan.run("ch1/edit").code == 0


def test_only_so_many_are_made(plan: Bench) -> None:
    """`--limit N` starts at most N, and the run is done."""
    ran = plan.run(limit=2)
    assert (len(ran.result.made), ran.code, ran.result.status) == (2, 0, "completed")
    assert len(plan.run(limit=2).result.made) == 2
    assert len(plan.run(limit=2).result.made) == 1
    assert plan.stale() == {}


def test_what_a_limit_leaves_is_told_and_made_by_the_next_run(bench: Bench) -> None:
    """Also what builds on it, and what was only asked for again."""
    bench.plan("a -> b -> c")
    assert bench.run(limit=1).result.beyond == ["b", "c"]
    bench.run()
    assert bench.run(limit=1, rerun_all=True).result.beyond == ["b", "c"]
    assert bench.run().log == ["made b", "made c"]


def test_what_needs_no_making_does_not_count(bench: Bench) -> None:
    """Putting back and taking over cost nothing."""
    bench.plan("a; b; c")
    bench.run()
    bench.delete("out/a.txt")
    bench.delete("out/b.txt")
    bench.change("c", version="2")
    assert bench.run(limit=1).log == ["restored a", "restored b", "made c"]


def test_what_fails_counts(bench: Bench) -> None:
    """A limit is about what is tried."""
    bench.plan("a; b; c")
    bench.makes("a", lambda: 1 / 0)
    assert bench.run(limit=2).log == ["failed a", "made b"]


@pytest.mark.parametrize("jobs", [1, 4])
def test_a_limit_holds_however_many_run_at_once(bench: Bench, jobs: int) -> None:
    """Starts are counted, not ends."""
    bench.plan("; ".join("abcdefgh"))
    assert len(bench.run(limit=3, jobs=jobs).result.made) == 3


def test_asked_for_by_name_it_is_made_anew(plan: Bench) -> None:
    """What is behind it is spared if it comes out the same."""
    plan.run()
    ran = plan.run(rerun="ch1/write")
    assert ran.result.made == ["ch1/write"]
    assert ran.why["ch1/write"] == "asked for"


def test_asked_for_from_there_on_all_is_made_anew(plan: Bench) -> None:
    """It and everything behind it, with no cut-off."""
    plan.run()
    assert plan.run(rerun_from="ch1/write").result.made == ["ch1/write", "ch1/edit", "book"]


def test_asked_for_everything_all_is_made_anew(plan: Bench) -> None:
    """Nothing is reused."""
    plan.run()
    assert len(plan.run(rerun_all=True).result.made) == 5


def test_a_preview_is_an_upper_bound(plan: Bench) -> None:
    """What it does not name is not made."""
    plan.run()
    plan.change("ch1/write", version="2")
    named = plan.stale()
    assert set(named) == {"ch1/write", "ch1/edit", "book"}
    assert set(plan.run().result.made) == {"ch1/write"}


def test_a_run_of_a_part_does_not_end_the_plan(plan: Bench) -> None:
    """Only a run of the whole plan declares it done."""
    plan.run("book")
    assert plan.status()["status"] == "complete"
    plan.run(limit=1, rerun="book")
    run = plan.state().run
    assert run is not None
    assert run.partial


def test_what_is_to_be_made_anew_belongs_to_what_the_run_is_about(plan: Bench) -> None:
    """Asked for beside the targets, it would be passed over in silence."""
    plan.run()
    with pytest.raises(UsageError) as refused:
        plan.run("ch1/edit", rerun="ch2/edit")
    assert refused.value.error_code == "rerun.beside"
    assert plan.run("ch1/edit", "ch2/edit", rerun="ch2/edit").log == ["made ch2/edit"]


def test_what_names_several_is_made_anew_as_far_as_the_run_is_about_it(plan: Bench) -> None:
    """A pattern means those of the targets; beside a name that is none of theirs, or with none left, it is refused."""
    plan.run()
    assert plan.run("ch1/edit", rerun="*/edit").log == ["made ch1/edit"]
    for words, named in ((["*/edit", "ch2/write"], "ch2/write"), (["ch2/*", "b*k"], "'ch2/*'")):
        with pytest.raises(UsageError, match=rf"^{re.escape(named)} is to be made anew") as refused:
            plan.run("ch1/edit", rerun=words)
        assert refused.value.hint == f"name {named} among the targets, too, or give none"
