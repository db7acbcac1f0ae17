"""`ctx.step`: a part of a function is on record when it returns, and an attempt after a crash takes it from there."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from pathlib import Path

import pytest

from headway.engine.recipes.function import Context
from tests.bench import Bench
from tests.processes import soon


def test_a_step_is_called_once_across_attempts(bench: Bench) -> None:
    """The second attempt takes what the first one recorded."""
    calls: list[str] = []

    def expensive(number: int) -> dict[str, int]:
        calls.append(f"expensive {number}")
        return {"number": number}

    def make(ctx: Context) -> str:
        first = ctx.step("one", expensive, 1)
        second = ctx.step("two", expensive, number=2)
        if len(calls) == 2:
            raise RuntimeError("after the steps")
        return f"{first['number']}{second['number']}"

    bench.plan("a")
    bench.makes("a", make)
    assert bench.run().log == ["failed a"]
    calls.append("between")
    assert bench.run().log == ["made a"]
    assert (calls, bench.out("a")) == (["expensive 1", "expensive 2", "between"], "12")
    assert bench.state().steps == {}


def test_a_step_is_called_once_across_retries(bench: Bench) -> None:
    """Every attempt begins to count anew, so it finds what the one before recorded."""
    paid: list[str] = []

    def make(ctx: Context) -> str:
        ctx.step("pay", lambda: paid.append("once"))
        if len(paid) == 1:
            paid.append("tried")
            raise RuntimeError("after paying")
        return "done"

    bench.plan(a={"retry": {"attempts": 3, "backoff": 0.001}})
    bench.makes("a", make)
    assert bench.run().log == ["made a"]
    assert paid == ["once", "tried"]


def test_a_step_that_is_async_is_awaited_and_called_once(bench: Bench) -> None:
    """Several at once, too: each has its place by when it was begun."""
    calls: list[object] = []

    async def ask(number: int) -> dict[str, int]:
        await asyncio.sleep(0.01 / number)
        calls.append(number)
        return {"number": number}

    async def make(ctx: Context) -> str:
        steps = [ctx.step("ask", ask, number) for number in (1, 2, 3)]
        found = [answer["number"] for answer in await asyncio.gather(*steps)]
        if "between" not in calls:
            raise RuntimeError("after the steps")
        return f"{found} {await ctx.step('last', ask, 4)}"

    bench.plan("a")
    bench.makes("a", make)
    assert bench.run().log == ["failed a"]
    calls.append("between")
    assert bench.run().log == ["made a"]
    assert (set(calls[:3]), calls[3:]) == ({1, 2, 3}, ["between", 4])
    assert bench.out("a") == "[1, 2, 3] {'number': 4}"


def test_a_step_in_a_loop_is_told_apart_by_its_turn(bench: Bench) -> None:
    """The same name twice is two steps."""
    calls: list[int] = []

    def square(number: int) -> int:
        calls.append(number)
        return number * number

    def make(ctx: Context) -> str:
        values = [ctx.step("square", square, number) for number in (1, 2, 3)]
        if len(calls) == 3:
            calls.append(0)
            raise RuntimeError("once")
        return str(values)

    bench.plan("a")
    bench.makes("a", make)
    bench.run()
    bench.run()
    assert (calls, bench.out("a")) == ([1, 2, 3, 0], "[1, 4, 9]")


def test_a_step_of_other_inputs_is_called_again(bench: Bench) -> None:
    """What is on record counts only for the same inputs and code."""
    calls: list[str] = []
    bench.write("src.txt", "1")

    def make(ctx: Context) -> str:
        text = ctx.sources[0].read_text()
        ctx.step("read", lambda: calls.append(text))
        if len(calls) == 1:
            raise RuntimeError("once")
        return text

    bench.plan(a={"sources": ["src.txt"]})
    bench.makes("a", make)
    bench.run()
    bench.write("src.txt", "2")
    bench.run()
    assert calls == ["1", "2"]


def test_a_large_result_is_kept_as_a_blob(bench: Bench) -> None:
    """The ledger stays small."""
    attempts: list[int] = []

    def make(ctx: Context) -> str:
        text = ctx.step("big", lambda: "x" * 100_000)
        attempts.append(len(text))
        if len(attempts) == 1:
            raise RuntimeError("once")
        return str(text)

    bench.plan("a")
    bench.makes("a", make)
    bench.run()
    assert bench.path(".headway/plans/plan/ledger.jsonl").stat().st_size < 20_000
    assert bench.run().log == ["made a"]
    assert attempts == [100_000, 100_000]


def test_a_result_that_cannot_be_recorded_fails_the_artifact(bench: Bench) -> None:
    """By its error."""
    bench.plan("a")
    bench.makes("a", lambda ctx: ctx.step("odd", object))
    assert "object" in bench.run().result.failed["a"]


def test_a_result_that_json_would_change_fails_the_artifact(bench: Bench) -> None:
    """A step that gave infinity would give nothing after a crash, and so would the first attempt."""
    bench.plan("a")
    bench.makes("a", lambda ctx: str(ctx.step("odd", lambda: {"x": [float("inf")]})))
    assert "inf at x[0]" in bench.run().result.failed["a"]


def test_a_step_survives_the_death_of_the_process(tmp_path: Path) -> None:
    """A kill right after the step costs what came after it."""
    (tmp_path / "tasks.py").write_text(
        "import os\n"
        "def once():\n"
        "    open('calls', 'a').write('x')\n"
        "    return 'value'\n"
        "def make(ctx):\n"
        "    value = ctx.step('once', once)\n"
        "    if not os.path.exists('go'): os._exit(9)\n"
        "    return value\n"
    )
    (tmp_path / "headway.yaml").write_text("id: p\ngoal: g\nartifacts:\n  a: {make: 'tasks:make', produces: a.txt}\n")
    command = [sys.executable, "-m", "headway", "run"]
    assert subprocess.run(command, cwd=tmp_path, capture_output=True, check=False).returncode == 9
    (tmp_path / "go").write_text("")
    assert subprocess.run(command, cwd=tmp_path, capture_output=True, check=False).returncode == 0
    assert ((tmp_path / "calls").read_text(), (tmp_path / "a.txt").read_text()) == ("x", "value")


@pytest.mark.parametrize("asynchronous", [False, True])
def test_a_run_that_is_asked_to_stop_begins_no_other_step(bench: Bench, asynchronous: bool) -> None:
    """Whatever the function makes of errors; what it had done by then is on record, and the next run goes on there."""
    done, asked = list[int](), list[str]()

    def part(number: int) -> int:
        done.append(number)
        if number == 1:
            asked.append("interrupted")
            assert soon(lambda: len(halted) > 1)
        return number

    async def later(number: int) -> int:
        return part(number)

    halted: list[str] = []

    def stop() -> str:
        halted.extend(asked)  # whoever has asked was heard when this is asked again
        return asked[0] if asked else ""

    def make(ctx: Context) -> str:
        try:
            return "".join(str(ctx.step("part", part, number)) for number in range(4))
        except Exception:  # noqa: BLE001  # as people write it
            return "caught"

    async def make_later(ctx: Context) -> str:
        return "".join([str(await ctx.step("part", later, number)) for number in range(4)])

    bench.plan("a")
    bench.makes("a", make_later if asynchronous else make)
    paused = bench.run(stop=stop).result.paused
    assert paused is not None
    assert paused.code == "interrupted"
    assert done == [0, 1]
    asked.clear()
    assert bench.run().log == ["made a"]
    assert (done, bench.out("a")) == ([0, 1, 2, 3], "0123")


def test_what_has_effects_is_not_stopped_between_two_steps(bench: Bench) -> None:
    """Half of an effect would have to be asked about."""
    done, asked, halted = list[int](), list[str](), list[str]()

    def part(number: int) -> int:
        done.append(number)
        asked[:] = ["interrupted"]
        assert soon(lambda: len(halted) > 1)
        return number

    def stop() -> str:
        halted.extend(asked)
        return asked[0] if asked else ""

    def make(ctx: Context) -> str:
        return "".join(str(ctx.step("part", part, number)) for number in range(3))

    bench.plan(a={"effects": "external"})
    bench.makes("a", make)
    bench.run(stop=stop)
    assert (done, bench.out("a")) == ([0, 1, 2], "012")


def test_a_group_of_tasks_that_is_asked_to_stop_has_not_failed(bench: Bench) -> None:
    """Python tells of it as of several errors at once."""
    asked, halted = list[str](), list[str]()

    def part() -> int:
        asked[:] = ["interrupted"]
        assert soon(lambda: len(halted) > 1)
        return 1

    def stop() -> str:
        halted.extend(asked)
        return asked[0] if asked else ""

    def make(ctx: Context) -> str:
        async def both() -> None:
            async with asyncio.TaskGroup() as group:
                group.create_task(later())

        async def later() -> None:
            ctx.step("one", part)
            ctx.step("two", part)

        asyncio.run(both())
        return "done"

    bench.plan("a")
    bench.makes("a", make)
    ran = bench.run(stop=stop)
    assert (ran.result.failed, ran.result.paused is not None) == ({}, True)
    asked.clear()
    assert bench.run().log == ["made a"]
