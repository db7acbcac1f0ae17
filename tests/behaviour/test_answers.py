"""What agents are told fits, whatever a plan holds: ten thousand artifacts whose every text is as bad as can be."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from headway.briefing import ANSWER, BRIEFING, tokens
from headway.core.plan import ArtifactSpec, PlanSpec, Settings
from headway.desk import Desk
from headway.project import Project

COUNT = 10_000
BAD = 'ä“”\\ "\n\u2028\x01'
IDS = [f"a{n:05d}-{'x' * 60}" for n in range(COUNT)]


def spec(number: int) -> ArtifactSpec:
    return ArtifactSpec(
        id=IDS[number],
        description=BAD * 40,
        contract=BAD * 10,
        acceptance=(BAD * 5, BAD * 5),
        agent="developer" * 5,
        milestone=f"m{number // 10}",
        requires=(IDS[number - 500],) if number >= 500 else (),
    )


@pytest.fixture(scope="module")
def desk(tmp_path_factory: pytest.TempPathFactory) -> Desk:
    """A plan in the middle of everything: failed, in hand with long notes, with more constraints than anybody reads."""
    root = tmp_path_factory.mktemp("large")
    settings = Settings(constraints=(BAD * 3000,) * 30)
    plan = PlanSpec(goal=BAD * 20_000, id="p", settings=settings, artifacts=tuple(map(spec, range(COUNT))))
    Project(root).take_in(plan, name="x", source="x", checked=True)
    made = Desk(str(root), by="w" * 60, connection="c", plan_id="p")
    for number in range(4):
        made.claim(IDS[number])
    for number in range(2):
        made.fail(IDS[number], BAD * 5000)
        made.note(IDS[number + 2], BAD * 5000)
    return made


def test_the_briefing_fits(desk: Desk) -> None:
    """In words and as data together, with everything that it must say."""
    told = desk.status()
    assert 2 * tokens(told) <= BRIEFING
    assert (told["counts"]["failed"], told["counts"]["in_hand"], told["progress"]["total"]) == (2, 2, COUNT)
    assert {"goal", "next", "failed", "blocked", "in_hand", "know", "do"} <= told.keys()


CALLS: dict[str, Callable[[Desk], Any]] = {
    "plan": lambda d: d.plan(),
    "artifact": lambda d: d.plan(artifact=IDS[2]),
    "next": lambda d: d.next(),
    "why": lambda d: d.why(IDS[0]),
    "log": lambda d: d.log(),
    "milestones": lambda d: d.milestones(),
    "search": lambda d: d.search("x"),
    "plans": lambda d: d.plans(),
    "who": lambda d: d.who(),
    "approved": lambda d: d.approved(),
    "output": lambda d: d.output(IDS[9]),
}


@pytest.mark.parametrize("name", CALLS)
def test_every_answer_fits(desk: Desk, name: str) -> None:
    """One page of a list, or as much of a thing as there is room for."""
    assert 2 * tokens(CALLS[name](desk)) <= ANSWER
