"""The MCP server as a process of its own: over stdio and over HTTP, with clients that die, and with strangers."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Any

import anyio
import httpx2
import pytest
from mcp.shared.exceptions import MCPDeprecationWarning

from headway.project import Project
from headway.surfaces.mcp.watching import EVERY
from tests.surfaces.mcp_clients import (
    PLAN,
    TOKEN,
    Agent,
    Served,
    command,
    in_memory,
    over_http,
    over_stdio,
    play,
    serving,
    until,
)

pytestmark = pytest.mark.slow  # every test starts processes, most of which import the protocol's library

TWO = {"id": "p", "goal": "g", "artifacts": {"one": {"produces": ["one.txt"]}, "two": {}}}

KILLED = """
import asyncio, os, sys
from pathlib import Path
sys.path.insert(0, {tests!r})
from tests.surfaces.mcp_clients import *

async def main():
    async with {connect} as agent:
        await agent.do("claim", artifact="one")
        await agent.do("note", artifact="one", note="the first line is written")
        Path({root!r}, "one.txt").write_text("first line")
        print("claimed", flush=True)
        await asyncio.sleep(600)

asyncio.run(main())
"""


def client_that_dies(root: Path, connect: str) -> None:
    """A client in a process of its own claims `one`, and is killed in the middle of it."""
    tests = str(Path(__file__).parents[2])
    code = KILLED.format(tests=tests, connect=connect, root=str(root))
    process = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True, start_new_session=True)
    assert process.stdout is not None
    try:
        assert process.stdout.readline().strip() == "claimed"
    finally:
        os.kill(process.pid, signal.SIGKILL)
        process.wait()
        process.stdout.close()


def wait_for(condition: Any) -> None:
    """Something that another process does by itself."""
    for _ in range(1200):
        if condition():
            return
        time.sleep(0.05)
    raise AssertionError("it did not happen")


async def save(root: Path, plan: dict[str, Any] = TWO) -> None:
    async with in_memory(root) as agent:
        await agent.do("save_plan", plan=plan)


@pytest.mark.parametrize("mode", ["auto", "legacy"])
def test_a_plan_is_worked_off_over_stdio(tmp_path: Path, mode: str) -> None:
    """The server is a process that its client starts, whichever protocol it speaks."""

    async def story() -> None:
        async with over_stdio(tmp_path, mode=mode) as agent:
            await agent.do("save_plan", plan=PLAN)
            assert (await agent.do("run"))["made"] == ["outline"]
            await agent.do("claim", artifact="page")
            (tmp_path / "page.txt").write_text("hello")
            assert (await agent.do("complete", artifact="page"))["status"] == "complete"
            assert (await agent.do("status"))["progress"]["done"] == 2

    play(story)


@pytest.mark.parametrize("transport", ["memory", "stdio", "http"])
def test_clients_of_the_older_protocol_subscribe_by_calls_and_are_told_of_every_change(
    tmp_path: Path, transport: str
) -> None:
    """Also of one that comes at once; of what they subscribed to, and of nothing after they have had enough."""

    async def story(agent: Agent) -> None:
        resources = agent.client.server_capabilities.resources
        assert resources is not None
        assert resources.subscribe
        with pytest.warns(MCPDeprecationWarning):
            await agent.client.subscribe_resource("headway://plans/p/log")
        await save(tmp_path)
        await until(lambda: bool(agent.heard))
        count = len(agent.heard)
        await anyio.to_thread.run_sync(lambda: Project(tmp_path).learn("p", "something"))
        await until(lambda: len(agent.heard) > count)
        with pytest.warns(MCPDeprecationWarning):
            await agent.client.unsubscribe_resource("headway://plans/p/log")
        count = len(agent.heard)
        await anyio.to_thread.run_sync(lambda: Project(tmp_path).learn("p", "something else"))
        await anyio.sleep(3 * EVERY)
        assert [message.params.uri for message in agent.heard] == ["headway://plans/p/log"] * count

    async def connected(connection: AbstractAsyncContextManager[Agent]) -> None:
        async with connection as agent:
            await story(agent)

    if transport == "http":
        with serving(tmp_path) as served:
            play(lambda: connected(over_http(served, mode="legacy")))
    else:
        over = over_stdio if transport == "stdio" else in_memory
        play(lambda: connected(over(tmp_path, mode="legacy")))


@pytest.mark.parametrize("mode", ["auto", "legacy"])
def test_a_plan_is_worked_off_over_http(tmp_path: Path, mode: str) -> None:
    """The same over HTTP, with the token."""

    async def story(served: Served) -> None:
        async with over_http(served, mode=mode) as agent:
            await agent.do("save_plan", plan=PLAN)
            assert (await agent.do("run"))["made"] == ["outline"]
            token = (await agent.do("claim", artifact="page"))["token"]
            (tmp_path / "page.txt").write_text("hello")
            assert (await agent.do("complete", artifact="page", token=token))["status"] == "complete"

    with serving(tmp_path) as served:
        play(lambda: story(served))


def test_a_client_is_killed_over_stdio_and_another_goes_on_at_once(tmp_path: Path) -> None:
    """Nobody waits for the lease: the briefing names the work, the claim continues it, and the old token is refused."""
    play(lambda: save(tmp_path))
    client_that_dies(tmp_path, f"over_stdio(Path({str(tmp_path)!r}))")
    lost = Project(tmp_path).show("p").state.claims["one"]

    async def story() -> None:
        async with over_stdio(tmp_path, "--by", "second") as agent:
            await agent.do("status")
            claimed = await agent.do("claim", artifact="one")
            assert claimed["continues"]["note"] == "the first line is written"
            (tmp_path / "one.txt").write_text("first line\nsecond line")
            assert (await agent.refused("complete", artifact="one", token=lost.seq))["code"] == "claim.lost"
            assert (await agent.do("complete", artifact="one"))["by"] == "second"

    wait_for(lambda: _can_be_taken_over(tmp_path))
    play(story)


def _can_be_taken_over(root: Path) -> bool:
    from headway.holding import gone

    claim = Project(root).show("p").state.claims["one"]
    return bool(gone(claim))


def test_a_server_is_killed_with_its_client_and_another_goes_on_at_once(tmp_path: Path) -> None:
    """Nobody was left to say that the connection ended: the process is not there any more, and that is proof."""
    play(lambda: save(tmp_path))
    code = (
        "import asyncio, sys\n"
        "from headway.desk import Desk\n"
        f"Desk({str(tmp_path)!r}, by='first', connection='c').claim('one')\n"
        "print('claimed', flush=True)\n"
        "import time; time.sleep(600)\n"
    )
    process = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    assert process.stdout.readline().strip() == "claimed"

    async def story() -> None:
        async with in_memory(tmp_path, by="second") as agent:
            assert (await agent.refused("claim", artifact="one"))["code"] == "claim.held"
            process.kill()
            process.wait()
            claimed = await agent.do("claim", artifact="one")
            assert claimed["continues"]["by"] == "first"

    try:
        play(story)
    finally:
        process.kill()
        process.wait()
        process.stdout.close()
    released = [r.event for r in Project(tmp_path).log("p") if r.event.type == "artifact_released"]
    assert "taken over from first" in getattr(released[0], "reason", "")


def test_a_client_is_killed_over_http_and_another_goes_on(tmp_path: Path) -> None:
    """Its stream breaks off, and the server knows that it is gone long before the lease is over."""
    play(lambda: save(tmp_path))

    async def story(served: Served) -> None:
        async with over_http(served) as agent:
            claimed = await agent.do("claim", artifact="one")
            assert claimed["continues"]["by"]

    with serving(tmp_path) as served:
        client_that_dies(tmp_path, f"over_http(Served({served.url!r}, 0), mode='legacy')")
        wait_for(lambda: _can_be_taken_over(tmp_path))
        play(lambda: story(served))


def test_without_a_session_only_the_token_tells_whose_claim_it_is(tmp_path: Path) -> None:
    """Clients of one name are not one client: a call that has neither session nor token finishes nobody's work."""

    async def story(served: Served) -> None:
        await save(tmp_path)
        async with over_http(served) as first, over_http(served) as second:
            token = (await first.do("claim", artifact="one"))["token"]
            (tmp_path / "one.txt").write_text("mine")
            before = Project(tmp_path).show("p").position
            for tool, arguments in (
                ("complete", {}),
                ("fail", {"error": "e"}),
                ("release", {"reason": "r"}),
                ("note", {"note": "n"}),
            ):
                refused = await second.refused(tool, artifact="one", **arguments)
                assert (refused["code"], "token" in refused["hint"]) == ("claim.token", True)
            assert Project(tmp_path).show("p").position == before
            assert (await first.do("note", artifact="one", note="half", token=token))["token"] == token
            assert (await first.do("complete", artifact="one", token=token))["status"] == "complete"

    with serving(tmp_path) as served:
        play(lambda: story(served))


def test_a_client_that_says_goodbye_over_http_leaves_its_claims_to_others(tmp_path: Path) -> None:
    """The end of a session is the end of its connection."""

    async def story(served: Served) -> None:
        await save(tmp_path)
        async with over_http(served, mode="legacy") as first:
            await first.do("claim", artifact="one")
            async with over_http(served, mode="legacy") as second:
                assert (await second.refused("claim", artifact="one"))["code"] == "claim.held"
        async with over_http(served, mode="legacy") as third:
            assert (await third.do("claim", artifact="one"))["continues"]["by"]

    with serving(tmp_path) as served:
        play(lambda: story(served))


def test_four_clients_over_http_make_everything_once(tmp_path: Path) -> None:
    """One server, four sessions, no artifact twice."""
    artifacts: dict[str, Any] = {f"a{n}": {} for n in range(12)}

    async def work(served: Served) -> None:
        async with over_http(served, mode="legacy") as agent:
            while True:
                found = await agent.raw("claim")
                document = found.structured_content or {}
                if found.is_error and document["code"] in ("next.done", "next.waiting"):
                    return
                if not found.is_error:
                    await agent.do("complete", artifact=document["artifact"], text="done")

    async def story(served: Served) -> None:
        await save(tmp_path, {"id": "p", "goal": "g", "artifacts": artifacts})
        async with anyio.create_task_group() as group:
            for _ in range(4):
                group.start_soon(work, served)

    with serving(tmp_path) as served:
        play(lambda: story(served))
    events = [record.event for record in Project(tmp_path).log("p")]
    completed = [getattr(event, "id", "") for event in events if event.type == "artifact_completed"]
    assert sorted(completed) == sorted(artifacts)


def test_strangers_are_refused_over_http_with_the_reason(tmp_path: Path) -> None:
    """No token, a wrong one, a foreign Origin, a foreign Host, too much of everything; the server goes on."""
    request = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "status", "arguments": {}}}
    accept = {"Accept": "application/json, text/event-stream"}
    good = {"Authorization": f"Bearer {TOKEN}", **accept}

    async def story(served: Served) -> None:
        await save(tmp_path)
        async with over_http(served) as agent:
            assert (await agent.do("status"))["plan_id"] == "p"

    with serving(tmp_path) as served, httpx2.Client(timeout=60) as http:

        def ask(headers: dict[str, str], **options: Any) -> tuple[int, str]:
            found = http.post(served.url, headers=headers, **({"json": request} | options))
            return found.status_code, found.text

        status, text = ask(accept)
        assert (status, json.loads(text)["code"]) == (401, "http.token")
        assert ask({**accept, "Authorization": "Bearer nope"})[0] == 401
        assert ask({**accept, "Authorization": f"Basic {TOKEN}"})[0] == 401
        status, text = ask({**good, "Origin": "https://evil.example"})
        assert (status, json.loads(text)["code"]) == (403, "http.origin")
        assert ask({**good, "Origin": "null"})[0] == 403
        status, text = ask({**good, "Host": "evil.example"})
        assert (status, json.loads(text)["code"]) == (421, "http.host")
        assert ask(good, content=b"x" * 10_000_000, json=None)[0] == 413
        assert 400 <= ask({**good, "Content-Type": "application/json"}, content=b"{no json", json=None)[0] < 500
        assert 400 <= ask({**good, "Mcp-Session-Id": "made-up"})[0] < 500
        play(lambda: story(served))
    assert Project(tmp_path).plan_ids() == ["p"]


def test_a_client_that_disconnects_in_the_middle_of_a_call_leaves_nothing_half_done(tmp_path: Path) -> None:
    """Its completion is recorded whole, or not at all; either way somebody else goes on."""
    plan = {
        "id": "p",
        "goal": "g",
        "artifacts": {"one": {"verify": "touch begun; while [ ! -e go ]; do sleep 0.05; done"}},
    }
    play(lambda: save(tmp_path, plan))
    process = subprocess.Popen(
        command("--project", str(tmp_path)), stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    assert process.stdin is not None
    hello = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "raw", "version": "1"}}
    for line in (
        {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": hello},
        {"jsonrpc": "2.0", "method": "notifications/initialized"},
        _call(2, "claim", artifact="one"),
    ):
        process.stdin.write(json.dumps(line).encode() + b"\n")
        process.stdin.flush()
    wait_for(lambda: "one" in Project(tmp_path).show("p").state.claims)
    process.stdin.write(json.dumps(_call(3, "complete", artifact="one", text="done")).encode() + b"\n")
    process.stdin.flush()
    wait_for((tmp_path / "begun").exists)
    process.stdin.close()
    wait_for(lambda: _can_be_taken_over(tmp_path))
    (tmp_path / "go").touch()
    assert process.wait(timeout=60) == 0
    state = Project(tmp_path).show("p").state
    assert state.completed["one"].outputs[0].size == len("done")
    assert "one" not in state.claims


def _call(number: int, tool: str, **arguments: Any) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": number, "method": "tools/call", "params": {"name": tool, "arguments": arguments}}


def test_a_client_that_never_reads_its_answers_holds_up_nobody_else(tmp_path: Path) -> None:
    """Its own server fills up and waits; another client's answers at once."""
    play(lambda: save(tmp_path))
    process = subprocess.Popen(
        command("--project", str(tmp_path)), stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
    )
    assert process.stdin is not None
    assert process.stdout is not None
    hello = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "raw", "version": "1"}}
    lines = [
        {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": hello},
        {"jsonrpc": "2.0", "method": "notifications/initialized"},
        *({"jsonrpc": "2.0", "id": n, "method": "tools/list"} for n in range(2, 200)),
    ]

    def flood() -> None:
        try:
            for line in lines:
                process.stdin.write(json.dumps(line).encode() + b"\n")  # type: ignore[union-attr]
                process.stdin.flush()  # type: ignore[union-attr]
        except (BrokenPipeError, ValueError):
            pass

    writer = threading.Thread(target=flood, daemon=True)
    writer.start()

    async def story() -> None:
        async with over_stdio(tmp_path) as agent:
            assert (await agent.do("claim", artifact="one"))["artifact"] == "one"

    try:
        play(story)
    finally:
        process.kill()
        process.wait()
        writer.join(timeout=30)
        process.stdout.close()
        process.stdin.close()


def test_the_inspectors_command_line_lists_and_calls_the_tools(tmp_path: Path) -> None:
    """A client that others wrote, in another language."""
    npx = shutil.which("npx")
    if npx is None:
        pytest.skip("Node is not here, and with it the MCP inspector")
    play(lambda: save(tmp_path))
    words = [npx, "-y", "@modelcontextprotocol/inspector", "--cli", *command("--project", str(tmp_path))]

    def inspect(*more: str) -> Any:
        try:
            found = subprocess.run([*words, *more], capture_output=True, text=True, timeout=240, check=False)
        except subprocess.TimeoutExpired:
            pytest.skip("the MCP inspector cannot be fetched here: npx did not answer")
        if found.returncode and ("npm error" in found.stderr or "ERR!" in found.stderr):
            pytest.skip(f"the MCP inspector cannot be fetched here: {found.stderr.strip().splitlines()[0]}")
        assert found.returncode == 0, found.stderr
        return json.loads(found.stdout)

    assert {"status", "claim", "complete"} <= {tool["name"] for tool in inspect("--method", "tools/list")["tools"]}
    called = inspect("--method", "tools/call", "--tool-name", "status")
    assert called["structuredContent"]["plan_id"] == "p"
