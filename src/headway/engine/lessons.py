"""What a run learned: an artifact that had failed was made after all, and what was different then.

Only what the ledger can tell: the plan's own words, what it requires, a note. Reads; whoever ran writes it down.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import suppress

from headway.core.clipping import clip
from headway.core.commands import RecordLearning
from headway.core.plan import ArtifactSpec
from headway.core.state import Failure, State
from headway.errors import HeadwayError
from headway.plan_folder import PlanFolder

MOST = 5
LONGEST = 120
BY = "run"
"""Who is said to have learned it."""

_CAME = {"made": "was made again", "reused": "was reused", "accepted": "was accepted as it is"}
"""What became of a requirement, by how it was completed."""


def lessons(folder: PlanFolder, failed: Mapping[str, Failure], state: State) -> Iterator[RecordLearning]:
    """Of what had failed before and is complete now: how it failed, and what fixed it. What failed alike is one."""
    alike: dict[str, list[str]] = {}
    for artifact_id, failure in failed.items():
        done = state.completed.get(artifact_id)
        if done is not None and artifact_id not in state.failed and done.seq > failure.seq:
            alike.setdefault(failure.error, []).append(artifact_id)
    for error, (artifact_id, *others) in list(alike.items())[:MOST]:
        done = state.completed[artifact_id]
        said = done.note if done.how != "reused" else ""  # of what is reused, the note says only where it comes from
        fix = said or _fix(folder, failed[artifact_id], state, artifact_id)
        who = f"{artifact_id} and {len(others)} more" if others else artifact_id
        text = f"{who} failed: {clip(error, LONGEST).rstrip('.')}. What fixed it: {clip(fix, 3 * LONGEST)}"
        yield RecordLearning(text=text, artifact=artifact_id)


def _fix(folder: PlanFolder, failure: Failure, state: State, artifact_id: str) -> str:
    spec = state.artifacts[artifact_id]
    with suppress(HeadwayError):
        then = folder.at(failure.seq).state
        if artifact_id in then.artifacts and (changed := _changed(then.artifacts[artifact_id], spec)):
            return "; ".join(changed)
        if then.settings.vars != state.settings.vars:
            return "the plan's variables changed"
    renewed: dict[str, list[str]] = {}
    for required in spec.requires:
        done = state.completed.get(required)
        if done is not None and done.seq > failure.seq:
            renewed.setdefault(_CAME.get(done.how, "was renewed"), []).append(required)
    if renewed:
        return "; ".join(f"{', '.join(ids)} {came}" for came, ids in renewed.items())
    return "nothing of the plan changed: its sources or its code did, or trying again was enough"


def _changed(before: ArtifactSpec, now: ArtifactSpec) -> list[str]:
    """The keys that differ; texts with their old and their new value."""
    found = []
    for name in ArtifactSpec.__struct_fields__:
        old, new = getattr(before, name), getattr(now, name)
        if old == new:
            continue
        told = isinstance(old, str) and isinstance(new, str)
        found.append(
            f"{name} changed from “{clip(old, LONGEST)}” to “{clip(new, LONGEST)}”" if told else f"{name} changed"
        )
    return found
