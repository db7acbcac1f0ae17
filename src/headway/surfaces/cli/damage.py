"""The demonstration `headway demo ledger`: a killed writer, a flipped byte, and everything back."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time

import msgspec

from headway.core.commands import SetProfile
from headway.core.plan import Profile
from headway.disk import RealDisk
from headway.project import Project
from headway.surfaces.cli.stage import PLAN, Stage, Step

EVENTS = 60
PATIENCE = 30


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
