"""Several at once: as many as were asked for, never more than the profile allows, and never in the wrong order."""

from __future__ import annotations

import threading

import pytest

from headway.core.commands import ChangePlan, StartArtifacts
from headway.core.plan import Profile
from headway.errors import TryLater
from tests.bench import Bench, after


class Crowd:
    """Recipes that wait until so many of them are at work, and remember how many that ever were."""

    def __init__(self, wait_for: int) -> None:
        self.most = 0
        self._now = 0
        self._wait_for = wait_for
        self._changed = threading.Condition()

    def make(self) -> str:
        with self._changed:
            self._now += 1
            self.most = max(self.most, self._now)
            self._changed.notify_all()
            self._changed.wait_for(lambda: self.most >= self._wait_for, timeout=20)
            self._now -= 1
        return "made"


def crowd(bench: Bench, wait_for: int, names: str = "abcdef") -> Crowd:
    bench.plan("; ".join(names))
    people = Crowd(wait_for)
    for name in names:
        bench.makes(name, people.make)
    return people


def test_as_many_as_were_asked_for_run_at_once(bench: Bench) -> None:
    """Four at a time: no fewer, and no more."""
    people = crowd(bench, 4)
    assert len(bench.run(jobs=4).result.made) == 6
    assert people.most == 4


def test_the_plan_says_how_many_when_nobody_asks(bench: Bench) -> None:
    """`jobs:` is the default of `-j`."""
    people = crowd(bench, 3)
    bench.settings(jobs=3)
    bench.run(jobs=None)
    assert people.most == 3


@pytest.mark.parametrize(
    ("profile", "most"),
    [(Profile(), 1), (Profile(parallelization_enabled=True, max_concurrent_tasks=2), 2)],
    ids=["one at a time", "two at a time"],
)
def test_a_profile_caps_it(bench: Bench, profile: Profile, most: int) -> None:
    """Whatever was asked for."""
    people = crowd(bench, most)
    bench.settings(profile=profile)
    assert len(bench.run(jobs=8).result.made) == 6
    assert people.most == most


def test_claims_of_others_count_towards_the_profile(bench: Bench) -> None:
    """With one of two places taken, one at a time is made; what they claimed is theirs, and the run ends with 75."""
    people = crowd(bench, 1)
    bench.settings(profile=Profile(parallelization_enabled=True, max_concurrent_tasks=2))
    bench.do(StartArtifacts(ids=("a",)))
    ran = bench.run(jobs=8)
    assert (sorted(ran.result.made), people.most) == (["b", "c", "d", "e", "f"], 1)
    assert (ran.code, ran.result.waiting) == (75, {"a": "claimed by somebody"})


def test_a_profile_that_others_have_used_up_leaves_nothing_to_start(bench: Bench) -> None:
    """The run does not wait for them; it says who they are and ends with 75."""
    crowd(bench, 1)
    bench.settings(profile=Profile())
    bench.do(StartArtifacts(ids=("a",)))
    ran = bench.run()
    assert (ran.log, ran.code, ran.result.status) == ([], 75, "paused")
    assert set(ran.result.waiting) == set("abcdef")


def test_what_others_claimed_holds_up_what_is_behind_it(bench: Bench) -> None:
    """And nothing else."""
    bench.plan("a -> b; c")
    bench.do(StartArtifacts(ids=("a",)))
    ran = bench.run()
    assert (ran.log, ran.code) == (["made c"], 75)
    assert ran.result.waiting == {"a": "claimed by somebody", "b": "waits for a"}


def test_what_others_claim_meanwhile_is_left_to_them(bench: Bench) -> None:
    """Between the judgement and the start, somebody may be faster."""
    bench.plan("a -> b; a -> c")
    claimed: list[str] = []

    def claim() -> str:
        if not claimed:
            claimed.append("c")
            bench.do(StartArtifacts(ids=("c",)))
        return "b"

    bench.makes("b", claim)
    ran = bench.run()
    assert ran.log == ["made a", "made b"]
    assert (ran.code, ran.result.waiting) == (75, {"c": "claimed by somebody"})


@pytest.mark.parametrize("fails", [False, True])
def test_what_others_take_out_of_the_plan_meanwhile_waits_for_nobody(bench: Bench, fails: bool) -> None:
    """Nor is it blocked by what failed."""
    bench.plan("a -> b -> c", b={"by_hand": True})

    def remove() -> str:
        bench.do(ChangePlan(remove=("c",), unfinished=True))
        return str(1 // (not fails))

    bench.makes("a", remove)
    result = bench.run().result
    assert (result.waiting, result.blocked) == (({}, {"b": "a"}) if fails else ({"b": "headway claim b"}, {}))


def test_a_dependent_starts_when_its_own_requirements_are_done(bench: Bench) -> None:
    """Nobody waits for a wave: c is made while b, which it does not require, is still at work."""
    seen = threading.Event()
    bench.plan("a -> c; b")
    bench.makes("b", lambda: str(seen.wait(20)))
    bench.makes("c", after(seen.set, "c"))
    bench.run(jobs=2)
    assert bench.out("b") == "True"


def test_a_hundred_at_once_are_all_recorded(bench: Bench) -> None:
    """However they end."""
    names = [f"n{number:03}" for number in range(100)]
    bench.plan("; ".join(f"root -> {name} -> end" for name in names))
    bench.makes("n050", lambda: 1 / 0)
    ran = bench.run(jobs=16)
    assert (len(ran.result.made), list(ran.result.failed), ran.result.blocked) == (100, ["n050"], {"end": "n050"})
    bench.makes("n050", "well")
    assert bench.run(jobs=16).result.made == ["n050", "end"]


def test_fewer_threads_than_wanted_make_everything_all_the_same(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    """The system sets a limit: those that it allows go on, and without any the run says what to do."""
    begin, allowed = threading.Thread.start, 2

    def start(thread: threading.Thread) -> None:
        name = thread.name.removeprefix("headway-")
        if name == "sync" or (name.isdigit() and int(name) >= allowed):
            raise RuntimeError("can't start new thread")
        begin(thread)

    bench.plan("a -> b; c; d; e; f")
    monkeypatch.setattr(threading.Thread, "start", start)
    assert sorted(bench.run(jobs=8).result.made) == [*"abcdef"]
    allowed = 0
    with pytest.raises(TryLater, match="lets no thread begin"):
        bench.run(jobs=8, rerun_all=True)
    allowed = 8
    assert sorted(bench.run(jobs=8).result.made) == [*"abcdef"]
