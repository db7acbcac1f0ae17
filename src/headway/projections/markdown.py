"""plan.md: the plan for people. Written from the ledger; nothing reads it back."""

from __future__ import annotations

import re
from collections.abc import Iterator

from headway.core import codec
from headway.core.approval import is_open
from headway.core.gates import missing
from headway.core.lifecycle import progress, statuses
from headway.core.plan import ArtifactSpec
from headway.core.state import ArtifactStatus, Position, State
from headway.projections.saved_execution import SavedExecution

MARK: dict[ArtifactStatus, str] = {
    "complete": "x",
    "skipped": "-",
    "failed": "!",
    "in_progress": "~",
    "blocked": " ",
    "pending": " ",
}
_PLAIN = ("complete", "pending")
"""There is no more to say about it."""

_HEADER = rb"<!-- headway: event (\d+) ([0-9a-f]{32}), digest ([0-9a-f]{32})\."


def render(execution: SavedExecution) -> bytes:
    """The bytes of plan.md, led by the position that it reflects and its own digest."""
    body = _body(execution.state).encode()
    seq, hash_ = execution.position
    note = "Written from the ledger; edits are not read."
    return f"<!-- headway: event {seq} {hash_}, digest {codec.digest(body)}. {note} -->\n".encode() + body


def position_of(opening: bytes) -> Position | None:
    """The ledger position that a plan.md names."""
    found = re.match(_HEADER, opening)
    return Position(int(found.group(1)), found.group(2).decode()) if found else None


def is_intact(data: bytes) -> bool:
    """Whether the bytes still have the digest that they were written with."""
    found = re.match(_HEADER, data)
    body = data.partition(b"\n")[2]
    return found is not None and codec.digest(body) == found.group(3).decode()


def _body(state: State) -> str:
    status = statuses(state)
    done, total = progress(state)
    title = " ".join(state.goal.split())
    lines = [
        f"\n# {title}\n",
        f"Plan `{state.plan_id}`, version {state.version}: {state.status.replace('_', ' ')}, {done} of {total} done.\n",
    ]
    if state.profile is not None:
        locked = ", locked" if state.profile.locked else ""
        lines.append(f"At most {state.profile.limit} at once{locked}.\n")
    lines += _standing(state)
    groups: dict[str, list[ArtifactSpec]] = {}
    for spec in state.artifacts.values():
        groups.setdefault(spec.milestone, []).append(spec)
    for milestone, specs in groups.items():
        if milestone or len(groups) > 1:
            lines.append(f"## {milestone or 'Other'}\n")
        lines += [
            f"- [{MARK[status[a]]}] **{a}** (needs {', '.join(spec.requires)}; `{'`, `'.join(spec.produces)}`)"
            if spec.requires
            and spec.produces
            and not spec.description
            and status[a := spec.id] in _PLAIN
            and a not in state.evidence
            else _artifact(state, spec, status[spec.id])
            for spec in specs
        ]
        lines.append("")
    return "\n".join(lines)


def _standing(state: State) -> list[str]:
    """Who approved the plan, and how it came to be what it is."""
    lines = []
    if state.refused is not None:
        lines.append(f"Rejected by {state.refused.by}: {_line(state.refused.reason)}\n")
    elif state.approval is not None:
        note = " It has changed since." if is_open(state) else ""
        lines.append(f"Approved by {state.approval.by} at {state.approval.at} (`{state.approval.hash[:16]}`).{note}\n")
    return lines + [f"Version {v.version} replaced version {v.parent}: {_line(v.reason)}\n" for v in state.replans]


def _line(text: str) -> str:
    return " ".join(text.split())[:200]


def _artifact(state: State, spec: ArtifactSpec, status: ArtifactStatus) -> str:
    artifact_id = spec.id
    about = f": {' '.join(spec.description.split())}" if spec.description else ""
    notes = [] if status in _PLAIN else [status.replace("_", " "), *_in_question(state, artifact_id)]
    if artifact_id in state.evidence:
        notes.append(", ".join(f"{v.gate}: {v.verdict} by {v.by}" for v in state.evidence[artifact_id][-5:]))
    if spec.requires:
        notes.append(f"needs {', '.join(spec.requires)}")
    if spec.produces:
        notes.append(f"`{'`, `'.join(spec.produces)}`")
    return f"- [{MARK[status]}] **{artifact_id}**{about}" + (f" ({'; '.join(filter(None, notes))})" if notes else "")


def _in_question(state: State, artifact_id: str) -> Iterator[str]:
    """What went wrong with an artifact, who is at it, what it waits for."""
    if artifact_id in state.failed:
        yield state.failed[artifact_id].error.splitlines()[0] if state.failed[artifact_id].error else ""
    if artifact_id in state.claims:
        claim = state.claims[artifact_id]
        yield f"claimed by {claim.by or 'somebody'}" + (f" until {claim.lease}" if claim.lease else "")
    elif artifact_id in state.made:
        yield "waits for " + ", ".join(lack.text for lack in missing(state, artifact_id))
