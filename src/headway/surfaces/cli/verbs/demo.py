"""Watch Headway work: a plan, a killed writer, a flipped byte, and everything back.

Each command is really run, in a temporary folder, and each thing said about it is checked: exit 0 means all is true.
"""

from __future__ import annotations

import argparse
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from typing import Any, NamedTuple

import msgspec

from headway.core.commands import SetProfile
from headway.core.plan import Profile
from headway.disk import RealDisk
from headway.errors import BugError
from headway.project import Project
from headway.surfaces.cli.screen import Screen

PLAN = "demo"
FOLDER = f".headway/plans/{PLAN}"
EVENTS = 60
PATIENCE = 30


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--keep", action="store_true", help="leave the folder behind, to look around in it")
    parser.add_argument("--project", help=argparse.SUPPRESS)


def run(args: Any, screen: Screen) -> int:
    began, home = time.monotonic(), os.path.realpath(tempfile.mkdtemp(prefix="headway-demo-"))
    stage = Stage(os.path.join(home, PLAN), screen)
    try:
        for step in STEPS:
            stage.play(step)
    finally:
        if not args.keep:
            shutil.rmtree(home)
    screen.say()
    screen.say(f"All of this was true, in {time.monotonic() - began:.1f} s.")
    if args.keep:
        screen.say(f"Look around in {stage.folder}")
    return 0


class Stage:
    """Where the demo happens: one project, and what was noted on the way."""

    def __init__(self, folder: str, screen: Screen) -> None:
        self.folder = folder
        self.screen = screen
        self.notes: dict[str, Any] = {}
        os.mkdir(folder)

    def play(self, step: Step) -> None:
        """Say what is to be seen, do it, and check it."""
        if step.say:
            self.screen.say()
            self.screen.say(self.screen.style(step.say, "bold"))
        if isinstance(step.do, str):
            self.headway(step.do, code=step.code, shows=step.shows)
        else:
            step.do(self)

    def headway(self, words: str, *, code: int = 0, shows: str = "") -> None:
        """Run a command and show it with its output."""
        self.screen.say(self.screen.style(f"$ headway {words}", "blue"))
        done = self.call(*shlex.split(words))
        self.screen.say((done.stdout + done.stderr).rstrip("\n"))
        if code:
            self.screen.say(self.screen.style(f"(exit {done.returncode})", "dim"))
        self.check(done.returncode == code, f"headway {words} ends with exit {code}, not {done.returncode}")
        self.check(not shows or re.search(shows, done.stdout), f"headway {words} says “{shows}”")

    def call(self, *words: str) -> subprocess.CompletedProcess[str]:
        """Run a command in a process of its own."""
        return subprocess.run(
            [sys.executable, "-m", "headway", *words],
            cwd=self.folder,
            env=self.environment(),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
        )

    def document(self, *words: str) -> dict[str, Any]:
        """What a command answers to machines."""
        found: dict[str, Any] = msgspec.json.decode(self.call(*words, "--json").stdout)
        return found

    def environment(self) -> dict[str, str]:
        """The user's, without settings of Headway's own."""
        return {name: value for name, value in os.environ.items() if not name.startswith("HEADWAY_")}

    def path(self, *parts: str) -> str:
        """A path in the plan's own folder."""
        return os.path.join(self.folder, FOLDER, *parts)

    def act(self, what: str) -> None:
        """Show something that is done without a command."""
        self.screen.say(self.screen.style(f"# {what}", "yellow"))

    def check(self, truth: object, claim: str) -> None:
        """Stop at the first thing that is not as it was said."""
        if not truth:
            raise BugError(
                "The demo showed something that is not true", facts={"claim": claim}, hint="please report it"
            )


def kill_a_writer(stage: Stage) -> None:
    """Kill a process with half a line written."""
    words = [sys.executable, "-c", f"from {__name__} import write_until_killed; write_until_killed()"]
    writer = subprocess.Popen(words, cwd=stage.folder, env=stage.environment(), stdout=subprocess.PIPE, text=True)
    assert writer.stdout is not None, "it is a pipe"
    told = [line.split() for line in iter(writer.stdout.readline, "half\n") if line]
    writer.kill()
    stage.check(writer.wait(PATIENCE) == -9, "the writer was killed")
    writer.stdout.close()
    with open(stage.path("ledger.jsonl"), "rb") as file:
        last = file.read().rsplit(b"\n", 1)[1]
    stage.act(
        f"a program was told of {len(told)} events; killed with -9 while writing the next one. The file now ends in:"
    )
    stage.screen.say(last.decode())
    stage.check(len(told) == EVENTS, f"the writer was told of {EVENTS} events")
    stage.check(last and not last.endswith(b"}"), "half a line is left")
    stage.notes["told"] = {int(seq): digest for seq, digest in told}


def nothing_was_lost(stage: Stage) -> None:
    """Every event that the killed program was told of is there."""
    with open(stage.path("ledger.jsonl"), "rb") as file:
        events = [msgspec.json.decode(line) for line in file]
    found, told = {event["seq"]: event["hash"] for event in events}, stage.notes["told"]
    stage.check(all(found.get(seq) == digest for seq, digest in told.items()), "no acknowledged event is lost")
    stage.act(f"all {len(told)} events that the program was told of are there")


def delete_the_derived(stage: Stage) -> None:
    """Delete everything that is not the ledger."""
    stage.notes["plan"] = stage.document("plans", "show")
    for name in ("plan.json", "plan.md", "head"):
        os.remove(stage.path(name))
    shutil.rmtree(stage.path("export"))
    stage.act("plan.json, plan.md, export/ and head are deleted; the plan is the same")
    stage.check(stage.document("plans", "show") == stage.notes["plan"], "the ledger alone gives the same plan")


def flip_a_byte(stage: Stage) -> None:
    """Change one bit of an old event."""
    with open(stage.path("ledger.jsonl"), "r+b") as file:
        lines = file.read().splitlines(keepends=True)
        file.seek(sum(map(len, lines[:4])) + len(lines[4]) // 2)
        byte = file.read(1)
        file.seek(-1, os.SEEK_CUR)
        file.write(bytes([byte[0] ^ 1]))
    stage.act("one bit of event 5 is flipped")


def repaired(stage: Stage) -> None:
    """After the repair the plan is what it was, and the bytes are kept."""
    after = stage.document("plans", "show")
    same = ("goal", "graph", "execution", "plan")
    stage.check(all(after[key] == stage.notes["plan"][key] for key in same), "the repaired plan is the same")
    kept = os.listdir(stage.path("quarantine"))
    stage.act("the plan is what it was; nothing was deleted: quarantine/ holds " + " and ".join(sorted(kept)))
    stage.check(len(kept) >= 2, "the debris and the damaged bytes are kept")


def begin_a_second(stage: Stage) -> None:
    """Another project begins as an empty folder."""
    os.mkdir(os.path.join(stage.folder, "..", "second"))
    stage.act("mkdir ../second")


def compare(stage: Stage) -> None:
    """The imported plan is the exported one."""
    ours, theirs = stage.document("plans", "show"), stage.document("plans", "show", PLAN, "--project", "../second")
    stage.check(all(ours[key] == theirs[key] for key in ("goal", "graph", "execution")), "both plans are the same")
    stage.act("goal, artifacts and progress are the same in both projects")


class Step(NamedTuple):
    """What to say, what to do (a command of headway, or a function), and what must come of it."""

    say: str
    do: str | Callable[[Stage], None]
    shows: str = ""
    code: int = 0


STEPS = (
    Step("A plan file is a proposal; the plan itself is a ledger of events.", "init"),
    Step("", "plans new", "created: 3 artifacts"),
    Step("", "plans show", "0 of 3 done"),
    Step("Kill a writer in the middle of a line.", kill_a_writer),
    Step(
        "The next commands just work. What nobody was told of is set aside, and the log says so.", "plans list", "draft"
    ),
    Step("", "profile set --max-concurrent-tasks 8", r"max_concurrent_tasks +8"),
    Step("", "log --last 2", "ledger recovered: debris of .* set aside in quarantine/"),
    Step("", nothing_was_lost),
    Step("Everything but the ledger can be deleted.", delete_the_derived),
    Step("", "doctor", "All is well"),
    Step("Damage is detected and never believed.", flip_a_byte),
    Step("", "doctor", "costs:", 4),
    Step("", "doctor --repair", "mended"),
    Step("", repaired),
    Step("A checkpoint carries the plan to another project.", "export checkpoint/", "exported"),
    Step("", begin_a_second),
    Step("", "import checkpoint --project ../second", "created"),
    Step("", compare),
)


# What the killed process runs.


class _HalfwayDisk(RealDisk):
    """The real disk, until some event: of that one it writes half a line, says so, and waits for the end."""

    def __init__(self, good: int) -> None:
        self._left = good

    def write(self, fd: int, data: bytes | memoryview, offset: int) -> int:
        if b'"type":"profile_set"' in bytes(data[:100]):
            self._left -= 1
            if self._left < 0:
                super().write(fd, data[: len(data) // 2], offset)
                print("half", flush=True)
                time.sleep(PATIENCE)
        return super().write(fd, data, offset)


def write_until_killed() -> None:
    """Record one event after the other and print what was acknowledged."""
    project = Project(os.getcwd(), by="writer", disk=_HalfwayDisk(EVENTS))
    with project.folder(PLAN).writing() as writer:
        for number in range(EVENTS + 1):
            profile = Profile(parallelization_enabled=True, max_concurrent_tasks=2 + number % 2)
            done = writer.execute(SetProfile(profile=profile), by="writer")[-1]
            print(done.seq, done.hash, flush=True)
