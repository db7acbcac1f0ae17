"""What happens to a plan, told to whoever wants to know: a subscription, and commands at the end of a run."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import pytest

from headway.projections.signals import Signal
from tests.behaviour.crew import Crew

PLAN = """\
id: p
goal: Say hello
artifacts:
  hello: {produces: hello.txt, run: "echo hello > {output}"}
  review: {requires: [hello]}
  broken: {run: "exit 3"}
"""


async def listen(crew: Crew, until: str, since: int = 1) -> list[Signal]:
    found: list[Signal] = []
    async for signal in crew.work.project.events("p", since=since):
        found.append(signal)
        if signal.type == until:
            break
    return found


def test_what_happened_is_told_by_the_seeds_names(tmp_path: Path) -> None:
    """One signal per artifact, in order, with what the seed's events carry; the ledger's own affairs are not told."""
    crew = Crew(tmp_path, PLAN)
    crew.run()
    found = asyncio.run(listen(crew, "RUN_FAILED"))
    told = [(signal.type, signal.artifact) for signal in found]
    assert told[0] == ("PLAN_CREATED", "")
    assert {("STEP_STARTED", "hello"), ("STEP_COMPLETED", "hello"), ("STEP_STARTED", "broken")} <= set(told)
    failed = next(signal for signal in found if signal.type == "STEP_FAILED")
    assert (failed.artifact, "3" in failed.data["error"]) == ("broken", True)
    assert "SNAPSHOT" not in dict(told)
    json.dumps([signal.to_dict() for signal in found])


def test_a_subscription_goes_on_where_another_stopped_and_hears_what_happens_next(tmp_path: Path) -> None:
    """`since` skips what is known; work that is done while somebody listens is heard, whoever does it."""
    crew = Crew(tmp_path, PLAN)
    crew.run()
    known = crew.seq

    async def both() -> list[Signal]:
        heard = asyncio.create_task(listen(crew, "STEP_COMPLETED", since=known + 1))
        await asyncio.sleep(0)
        await asyncio.to_thread(crew.make, "review", "fine", "bob")
        return await asyncio.wait_for(heard, 30)

    found = asyncio.run(both())
    assert [(signal.type, signal.artifact, signal.by) for signal in found] == [
        ("STEP_STARTED", "review", "bob"),
        ("STEP_COMPLETED", "review", "bob"),
    ]


def test_replanning_and_approval_are_told(tmp_path: Path) -> None:
    """The plan's own turns have their names too."""
    crew = Crew(tmp_path, PLAN)
    before = crew.seq
    crew.planning().approve("p")
    crew.planning().replan("p", {"remove": ["broken"]}, reason="not needed")
    types = [signal.type for signal in asyncio.run(listen(crew, "PLAN_REPLANNED", since=before + 1))]
    assert types[0] == "PLAN_APPROVED"
    assert "STEP_REMOVED" in types


@pytest.mark.parametrize(("plan", "said"), [(PLAN, "failed"), (PLAN.replace("exit 3", "true"), "paused")])
def test_commands_are_told_how_a_run_ended(tmp_path: Path, plan: str, said: str) -> None:
    """Each gets the event as JSON; one that fails is reported and changes nothing; no news is no news."""
    told = 'notify: ["exit 9", "echo \\"$HEADWAY_STATUS $HEADWAY_EVENT\\" >> told.txt"]\n'
    crew = Crew(tmp_path, told + plan)
    notices: list[str] = []
    work = crew.work
    work.project.store.notice = notices.append
    result = work.run("p")
    status, _, event = (tmp_path / "told.txt").read_text().partition(" ")
    assert (status, json.loads(event)["run"]) == (said, result.run_id)
    assert notices == ["notify: exit 9 failed with exit code 9"]


def test_the_log_can_be_followed_as_json_lines(tmp_path: Path) -> None:
    """One line per event, as it happens, until somebody stops it."""
    import subprocess
    import sys

    crew = Crew(tmp_path, PLAN)
    crew.run()
    words = [sys.executable, "-m", "headway", "log", "--follow", "--json", "--project", str(tmp_path), "--plan-id", "p"]
    process = subprocess.Popen(words, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    try:
        first = json.loads(process.stdout.readline())
        assert (first["type"], first["plan_id"], first["seq"]) == ("PLAN_CREATED", "p", 1)
        crew.make("review", "fine", "bob")
        while (line := json.loads(process.stdout.readline()))["by"] != "bob":
            pass
        assert (line["type"], line["artifact"]) == ("STEP_STARTED", "review")
    finally:
        process.kill()
        process.wait()
        process.stdout.close()
