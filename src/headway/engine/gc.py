"""Freeing space: which blobs something still needs, and deleting the rest; files that no plan makes any more.

Kept always: what every artifact's current completion names, whatever a person wrote (preserved or accepted), what plan
files proposed, and unfinished steps. Older attempts are kept for a while, with all that they said: until then, going
back to what one of them made is free.
"""

from __future__ import annotations

import os
import re
import time
from collections.abc import Container, Iterable, Iterator
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from typing import NamedTuple

from headway.core import events as ev
from headway.core.paths import parents
from headway.core.state import BEFORE, Output, State
from headway.disk import is_running
from headway.errors import BlobDamaged
from headway.files.blobs import Blobs, Freed
from headway.files.observe import Observer
from headway.files.outputs import Outputs, members
from headway.store import PlanStore

KEEP_DAYS = 30.0
DAY = 24 * 60 * 60

_HALF = r".+\.(\d+)(?:\.[0-9a-f]{8})?\.tmp"  # compiled when somebody sweeps
"""What files of Headway's own are called until they are in place: with the process that writes them."""


def free_space(store: PlanStore, *, keep_days: float = KEEP_DAYS, dry_run: bool = False) -> Freed:
    """Delete blobs that nothing needs, and the files that prompts and texts among them were put into.

    A ledger that cannot be read refuses: nobody knows what it names.
    """
    since = (datetime.now(UTC) - timedelta(days=keep_days)).isoformat()
    live: set[str] = set()

    def needed() -> set[str]:
        live.update(_needed(store, since))
        return live

    freed = store.blobs.free(needed, dry_run=dry_run)
    if live and not dry_run:
        _free_texts(os.path.join(os.path.dirname(store.base_path), "texts"), live)
    return freed


def _free_texts(folder: str, live: Container[str]) -> None:
    """Those of the last day stay: an attempt may be at work with one that no event names yet."""
    with suppress(OSError), os.scandir(folder) as entries:
        for entry in entries:
            with suppress(OSError):
                if entry.name not in live and entry.stat(follow_symlinks=False).st_mtime < time.time() - DAY:
                    os.unlink(entry.path)


def tidy(store: PlanStore) -> None:
    """What a run does of its own accord: many packs become few, and space is freed once that is worth the look.

    That look goes through all that ever happened; so there has to be twice as much as was needed the last time.
    """
    if store.blobs.doubled:
        free_space(store)
    else:
        store.blobs.gather()


def sweep(store: PlanStore, root: str, home: str) -> None:
    """Take away what killed processes left of files that they were about to put in place: in a project's own folder,
    and beside what its plans make, where that stands."""
    states = [state for _, state, _ in _plans(store)]
    outputs = Outputs(root, store.blobs, Observer(root))

    def stands(path: str, _: str) -> bool:
        """Whether what was recorded does: then nothing was taken from there. Anything else is for the next run."""
        recorded = (o for state in states for o in _outputs_of(state) if o.path == path)
        return any(map(outputs.stands, recorded))

    outputs.sweep(
        {p for s in states for spec in s.artifacts.values() for p in (*spec.produces, *spec.modifies)}, stands
    )
    for folder, _, names in os.walk(home):
        for name in names:
            left = re.fullmatch(_HALF, name)
            if left and not is_running(int(left[1])):
                with suppress(OSError):
                    os.unlink(os.path.join(folder, name))


def _outputs_of(state: State) -> Iterator[Output]:
    for done in (*state.completed.values(), *state.made.values()):
        yield from done.outputs


def _needed(store: PlanStore, since: str) -> set[str]:
    live: set[str] = set()
    for _, state, records in _plans(store):
        live.update(_named_by_state(state, store.blobs))
        for record in records:
            live.update(_named_by_event(record, since, store.blobs))
    return live


def _plans(store: PlanStore) -> Iterator[tuple[str, State, Iterable[ev.Record]]]:
    """Every plan by its id, as it is and as it came about."""
    for plan_id in store.ids():
        folder = store.folder(plan_id)
        execution = folder.load()
        if execution is not None:
            yield plan_id, execution.state, folder.history()


def _named_by_state(state: State, blobs: Blobs) -> Iterator[str]:
    for done in (*state.completed.values(), *state.made.values()):
        yield from blobs_of(done.outputs, blobs)
        yield from (done.stdout, done.stderr, done.prompt)
        yield from blobs_of((_before(path, digest) for path, digest in done.fp.before.items()), blobs)
    for skip in state.skipped.values():
        yield from blobs_of(skip.last.outputs if skip.last else (), blobs)
    for failure in state.failed.values():
        yield from blobs_of(failure.left, blobs)
        yield from (failure.stdout, failure.stderr, failure.prompt)
    for steps in state.steps.values():
        yield from (step.blob for step in steps.values())
        begun = ((name, step) for name, step in steps.items() if name.startswith(BEFORE))
        yield from blobs_of((_before(name, step.blob) for name, step in begun), blobs)
    yield from blobs_of((_before(path, digest) for path, digest in state.origins.items()), blobs)
    if state.proposal is not None:
        yield state.proposal.blob


def _before(path: str, digest: str) -> Output:
    """What a path held before it was changed in place."""
    return Output(path, digest, 0, "tree" if path.endswith("/") else "file")


def _named_by_event(record: ev.Record, since: str, blobs: Blobs) -> Iterator[str]:
    event = record.event
    recent = record.ts >= since
    if isinstance(event, ev.EditPreserved | ev.OutputAccepted) or (
        isinstance(event, ev.Came) and (recent or event.how == "accepted")
    ):
        yield from blobs_of(event.outputs, blobs)
        yield getattr(event, "prompt", "")
        if recent and isinstance(event, ev.Came):
            yield from (event.stdout, event.stderr)
    elif recent and isinstance(event, ev.ArtifactFailed):
        yield from blobs_of(event.left, blobs)
        yield from (event.stdout, event.stderr, event.prompt)
    elif recent and isinstance(event, ev.ProposalTaken):
        yield event.proposal.blob


class LeftFile(NamedTuple):
    """A file that a plan made and that no plan makes or reads any more; `edited`: it is not as it was made last."""

    path: str
    plan: str
    edited: bool


def left_files(store: PlanStore, root: str) -> list[LeftFile]:
    """All of them, by path."""
    found: dict[str, tuple[Output, str]] = {}
    needed: set[str] = set()
    for plan_id, state, records in _plans(store):
        for spec in state.artifacts.values():
            needed.update(path.rstrip("/") for path in (*spec.produces, *spec.modifies, *spec.sources))
        for done in state.completed.values():
            needed.update(done.fp.sources)
        found.update((path, (output, plan_id)) for path, output in _made(records).items())
    outputs = Outputs(root, store.blobs, Observer(root))
    left = {path: named for path, named in found.items() if needed.isdisjoint((path, *parents(path)))}
    return [
        LeftFile(path, plan_id, edited=not outputs.stands(output))
        for path, (output, plan_id) in sorted(left.items())
        if os.path.lexists(os.path.join(root, path))
    ]


def _made(history: Iterable[ev.Record]) -> dict[str, Output]:
    """The files that a plan has made, by path, as it made them last. What it only changed in place, or what somebody's
    word made an output of it, is not its own."""
    found: dict[str, Output] = {}
    for record in history:
        event = record.event
        if not isinstance(event, ev.Came | ev.OutputAccepted):
            continue
        accepted = isinstance(event, ev.OutputAccepted) or event.how in ("accepted", "imported")
        for output in event.outputs:
            if accepted or output.kind not in ("file", "exec"):
                found.pop(output.path, None)
            elif output.path in found or output.path not in event.fp.before:
                found[output.path] = output
    return found


def blobs_of(outputs: Iterable[Output], blobs: Blobs) -> Iterator[str]:
    """The blobs of outputs; of a folder also everything in it."""
    for output in outputs:
        yield output.digest
        if output.kind == "tree" and output.digest:
            try:
                yield from (digest for _, digest, _ in members(blobs.get(output.digest)))
            except BlobDamaged:
                continue
