"""A power cut in the middle of a run: what was not synced is gone or torn, outputs too, and the next run goes on."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from headway.core.lifecycle import unfinished
from headway.engine.recipes.function import Context
from headway.testing import PowerCutDisk, Unsynced
from tests.bench import Bench, joined

PLAN = "a -> b -> c; a -> d"
WHOLE = {"a": "a()", "b": "b(a())", "c": "c(b(a()))", "d": "d(a())"}


def tear(text: bytes, unsynced: Unsynced) -> bytes:
    """What is left of an output, which nobody synced."""
    return {"lost": b"", "zeroed": bytes(len(text)), "half": text[: len(text) // 2], "names": b""}[unsynced]


def cut(bench: Bench, disk: PowerCutDisk, during: str, unsynced: Unsynced) -> Bench:
    """Run, and take what a power cut leaves while an artifact is being made; outputs are torn, too."""
    left = bench.root.with_name("left")

    def make(ctx: Context) -> str:
        if not left.exists():
            ctx.output.parent.mkdir(exist_ok=True)
            ctx.output.write_text("half of it")
            disk.left(str(left), unsynced)
            shutil.rmtree(left / "out", ignore_errors=True)
            for path in sorted((bench.root / "out").iterdir()):
                (left / "out").mkdir(exist_ok=True)
                (left / "out" / path.name).write_bytes(tear(path.read_bytes(), unsynced))
        return joined(ctx)

    bench.makes(during, make)
    bench.run()
    after = Bench(left)
    after.plans = bench.plans
    return after


@pytest.mark.parametrize("unsynced", ["lost", "zeroed", "half", "names"])
@pytest.mark.parametrize("during", list(WHOLE))
def test_after_a_power_cut_the_next_run_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, during: str, unsynced: Unsynced
) -> None:
    """No question is asked, what is on record with its bytes is not made again, and the outputs come out the same."""
    root = tmp_path / "project"
    root.mkdir()
    disk = PowerCutDisk(str(root))
    bench = Bench(root, disk=disk)
    bench.plan(PLAN)
    after = cut(bench, disk, during, unsynced)
    monkeypatch.setattr("headway.disk.boot_id", lambda: "another")
    blobs = after.project.blobs
    done = {a for a, done in after.state().completed.items() if all(blobs.has(o.digest) for o in done.outputs)}
    ran = after.run()
    assert (ran.code, ran.result.decisions) == (0, [])
    assert not done & set(ran.result.made)
    assert {name: after.out(name) for name in WHOLE} == WHOLE
    assert after.stale() == {}


@pytest.mark.parametrize("unsynced", ["lost", "zeroed", "half"])
def test_after_a_power_cut_an_artifact_that_was_being_replaced_is_whole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, unsynced: Unsynced
) -> None:
    """A recipe that replaces a file begins only when it is on record that it may: its run has announced it."""
    root = tmp_path / "project"
    root.mkdir()
    disk = PowerCutDisk(str(root))
    bench = Bench(root, disk=disk)
    bench.plan(PLAN)
    bench.run()
    bench.change("b", contract="new")
    after = cut(bench, disk, "b", unsynced)
    assert "b" in unfinished(after.state())
    monkeypatch.setattr("headway.disk.boot_id", lambda: "another")
    assert after.run().code == 0
    assert {name: after.out(name) for name in WHOLE} == WHOLE
