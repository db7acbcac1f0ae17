"""What is made in a moment is begun as it was judged when the run began, unless something has happened since."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from headway import Plan
from headway.core.events import ArtifactCompleted
from headway.engine import workers
from headway.engine.judge import Judge
from headway.engine.recipes.function import Context
from headway.store import PlanStore

HEADWAY = str(Path(sys.executable).with_name("headway"))
MANY = 300
LAST = MANY - 1


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project of its own, in which quick is quick, however busy this machine is, and not all are begun at once."""
    (tmp_path / "headway.toml").write_text("")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(workers, "LIGHT_AT_ONCE", MANY - 50)
    for limit in ("LIGHT_MS", "LIGHT_LATE"):
        monkeypatch.setattr(workers, limit, 10_000)
    return tmp_path


def many(version: int, meanwhile: Callable[[], Any] = lambda: None) -> Plan:
    """Files that hold a version; `meanwhile`: what happens while the first of them is made."""

    def make(n: int, version: int) -> str:
        if n == 0:
            meanwhile()
        return f"{n}: {version}"

    plan = Plan("Many", id="many")
    for n in range(MANY):
        args, said = {"n": n, "version": version}, f"version {version}"
        plan.add(f"n{n}", make=make, args=args, contract=said, produces=f"out/{n}.txt")
    return plan


def contents(here: Path) -> dict[str, str]:
    return {path.stem: path.read_text() for path in (here / "out").iterdir()}


def of(version: int) -> dict[str, str]:
    return {str(n): f"{n}: {version}" for n in range(MANY)}


def test_what_is_to_be_made_again_is_judged_once(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """But for the first few, of which it is not known yet how long they take."""
    many(1).run(jobs=1)
    judged, again = list[str](), Judge.again

    def counted(judge: Judge, artifact_id: str, **how: Any) -> Any:
        judged.append(artifact_id)
        return again(judge, artifact_id, **how)

    monkeypatch.setattr(Judge, "again", counted)
    assert len(many(2).run(jobs=1).made) == MANY
    assert MANY <= len(judged) < MANY + 10
    assert contents(here) == of(2)


@pytest.mark.parametrize("n", [5, 100, LAST])
def test_an_edit_that_comes_after_it_was_judged_is_asked_about(here: Path, n: int) -> None:
    """Whether its turn comes in the same row or in a later one."""
    many(1).run(jobs=1)
    result = many(2, lambda: (here / f"out/{n}.txt").write_text("mine")).run(jobs=1, check=False)
    assert [(d.code, d.artifacts) for d in result.decisions] == [("output_modified", [f"n{n}"])]
    assert contents(here) == of(2) | {str(n): "mine"}


@pytest.mark.parametrize("mine", ["mine", f"{LAST}: 1"], ids=["edited", "as it was"])
def test_what_somebody_accepts_after_it_was_judged_stays(here: Path, mine: str) -> None:
    """It is theirs: that it is stale by now is for them to decide about."""
    path = here / f"out/{LAST}.txt"  # of which nothing is begun while the first is made

    def accept() -> None:
        if path.read_text() != mine:
            path.write_text(mine)
        said = subprocess.run([HEADWAY, "accept", f"n{LAST}"], capture_output=True, text=True, check=False)
        assert said.stdout.startswith("Accepted 1"), said

    many(1).run(jobs=1)
    result = many(2, accept).run(jobs=1, check=False)
    assert [(d.code, d.artifacts) for d in result.decisions] == [("adopted_edit", [f"n{LAST}"])]
    assert contents(here) == of(2) | {str(LAST): mine}


@pytest.mark.parametrize("n", [5, 100, LAST])
def test_an_output_that_goes_after_it_was_judged_is_made_all_the_same(here: Path, n: int) -> None:
    many(1).run(jobs=1)
    many(2, (here / f"out/{n}.txt").unlink).run(jobs=1)
    assert contents(here) == of(2)


def test_the_other_name_of_an_output_keeps_what_it_held(here: Path) -> None:
    """Whoever copied it by a hard link has the bytes of then, also where the function writes the file itself."""

    def make(n: int, version: int, ctx: Context) -> None:
        ctx.output.write_text(f"{n}: {version}")

    def plan(version: int) -> Plan:
        found = Plan("Many", id="many")
        for n in range(MANY):
            found.add(f"n{n}", make=make, args={"n": n, "version": version}, produces=f"out/{n}.txt")
        return found

    plan(1).run(jobs=1)
    os.link(here / f"out/{LAST}.txt", here / "mine.txt")
    plan(2).run(jobs=1)
    assert ((here / "mine.txt").read_text(), contents(here)) == (f"{LAST}: 1", of(2))


def test_going_back_takes_over_what_was_made(here: Path) -> None:
    """All of it: nothing is begun that need not be made."""
    for version in (1, 2):
        many(version).run(jobs=1)
    result = many(1).run(jobs=1)
    assert (len(result.reused), result.made) == (MANY, [])
    assert contents(here) == of(1)


def prompted(make: Callable[..., Any]) -> Plan:
    plan = Plan("Many", id="many")
    for n in range(MANY):
        plan.add(f"n{n}", make=make, templates={"ask": "ask.md"}, produces=f"out/{n}.txt")
    return plan


def test_a_prompt_that_changes_meanwhile_counts_from_then_on(here: Path) -> None:
    """Those that were made with the old one are made again, and so are those that were about to be."""
    ask = here / "ask.md"
    (here / "next.md").write_text("third")

    def make(ctx: Context) -> str:
        if ctx.id == "n20" and ctx.prompt == "second\n":  # so early that others are yet to be begun
            os.rename("next.md", "ask.md")
        return ctx.prompt

    ask.write_text("first")
    prompted(make).run(jobs=1)
    ask.write_text("second")
    first = prompted(make).run(jobs=1, check=False)
    assert {*contents(here).values()} == {"second\n", "third\n"}
    old = {f"n{n}" for n, text in contents(here).items() if text == "second\n"}
    assert set(prompted(make).run(jobs=1, prompt_change="meant").made) == old | set(first.moved)
    assert {*contents(here).values()} == {"third\n"}
    history = PlanStore(str(here / ".headway/plans")).folder("many").history()
    newest = {r.event.id: r.event.fp.templates for r in history if isinstance(r.event, ArtifactCompleted)}
    assert len({str(templates) for templates in newest.values()}) == 1


def test_a_prompt_that_is_changed_back_meanwhile_needs_no_making(here: Path) -> None:
    """What was to be made is as it should be."""
    ask = here / "ask.md"

    def make(ctx: Context) -> str:
        if ctx.id == "n0" and ctx.prompt == "second\n":
            ask.write_text("first")
        return ctx.prompt

    ask.write_text("first")
    prompted(make).run(jobs=1)
    ask.write_text("second")
    result = prompted(make).run(jobs=1, check=False)
    assert 0 < len(result.made) < MANY
    assert len(result.made) + len(result.kept) + len(result.restored) == MANY


def test_of_what_requires_something_that_was_made_anew_it_is_judged_by_that(here: Path) -> None:
    """Made from the new bytes, and where these came out the same, not at all."""

    def top(n: int, version: int) -> str:
        return f"{n}: {version if n % 2 else 0}"

    def below(n: int, ctx: Context) -> str:
        return f"from {ctx.inputs[f'top{n}'].text()}"

    def plan(version: int) -> Plan:
        found = Plan("Two", id="two")
        for n in range(100):
            found.add(f"top{n}", make=top, args={"n": n, "version": version}, produces=f"top/{n}.txt")
        for n in range(100):
            found.add(f"n{n}", make=below, args={"n": n}, requires=[f"top{n}"], produces=f"out/{n}.txt")
        return found

    plan(1).run(jobs=1)
    result = plan(2).run(jobs=1)
    assert {a for a in result.made if a.startswith("n")} == {f"n{n}" for n in range(1, 100, 2)}
    assert contents(here) == {str(n): f"from {n}: {2 if n % 2 else 0}" for n in range(100)}
