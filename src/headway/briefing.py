"""What an agent is told, within a budget: a briefing at any plan size, and lists in pages.

Knows sizes and sentences; decides nothing. A token is taken to be three bytes, which is less than it usually is.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import islice
from typing import Any, NamedTuple

import msgspec

from headway.core.approval import is_open
from headway.core.clipping import BYTES_PER_TOKEN, clip
from headway.core.lifecycle import progress
from headway.core.state import State
from headway.errors import UsageError
from headway.holding import gone
from headway.offers import Next

ANSWER = 8000
"""The most tokens of an answer, in words and as data together."""
BRIEFING = 1500
"""The same of a briefing."""
SHOWN = 5


def tokens(value: Any) -> int:
    """How many tokens a value takes at most."""
    return -(-len(msgspec.json.encode(value)) // BYTES_PER_TOKEN)


class Own(NamedTuple):
    """What is in the hands of whoever asks. `sure`: by their connection, and not by their name alone."""

    ids: Sequence[str] = ()
    sure: bool = True


def briefing(state: State, found: Next, *, seq: int, known: Sequence[str] = (), own: Own) -> dict[str, Any]:
    """Where a plan stands, for somebody who knows nothing: it fits into the budget whatever the plan holds."""
    for shown, width in ((SHOWN, 160), (3, 120), (3, 80), (2, 60), (1, 40), (0, 40)):
        told = _told(state, found, seq, shown, width, own)
        told |= {"before": [clip(line, 2 * width) for line in known[:shown]]} if known and shown else {}
        if 2 * tokens(told) <= BRIEFING:  # an answer carries it twice: in words and as data
            return told
    return told


def waits(found: Next) -> dict[str, str]:
    """What is not to be had now, and why, for whoever has no shell: they can still claim what they wrote too early."""
    early = {a: f"{reason.text}: if that is it, claim it, then complete it" for a, reason in found.edits.items()}
    return {**found.waiting, **early}


def _told(state: State, found: Next, seq: int, shown: int, width: int, own: Own) -> dict[str, Any]:
    done, total = progress(state)
    told: dict[str, Any] = {
        "plan_id": state.plan_id,
        "goal": clip(state.goal, 2 * width),
        "status": state.status,
        "progress": {"done": found.done, "recorded": done, "total": total},
        "next": [
            {
                "artifact": clip(o.spec.id, 80),
                "what": clip(o.spec.description or o.spec.contract, width),
                "why": clip(o.reason.text, width),
            }
            | ({"for": clip(o.spec.agent, 40)} if o.spec.agent else {})
            | {"tool": "run" if o.by_run else "claim"}
            for o in found.offers[:shown]
        ],
        "in_hand": _in_hand(state, shown, width, own),
        "failed": {clip(a, 80): clip(why, width) for a, why in islice(found.failed.items(), shown)},
        "blocked": {clip(a, 80): f"by {clip(by, 80)}" for a, by in islice(found.blocked.items(), shown)},
        "waiting": {clip(a, 80): clip(why, width) for a, why in islice(waits(found).items(), shown)},
        "counts": {
            "ready": len(found.offers),
            "in_hand": len(state.claims),
            "failed": len(found.failed),
            "blocked": len(found.blocked),
            "waiting": len(found.waiting),
        },
        "know": [clip(line, width) for line in _to_know(state)[: max(shown, 2)]],
        "do": clip(_advice(state, found, own), 160),
        "seq": seq,
    }
    return {name: value for name, value in told.items() if value not in ({}, [], "")}


def _in_hand(state: State, shown: int, width: int, own: Own) -> list[dict[str, Any]]:
    held = []
    for artifact_id, claim in islice(state.claims.items(), shown):
        note = state.notes.get(artifact_id)
        lost = gone(claim)
        held.append(
            {"artifact": clip(artifact_id, 80), "by": clip(claim.by, 40)}
            | (
                {"gone": clip(lost, width), "claim": "continues it"}
                if lost
                else {"until": claim.lease or "its run ends"}
            )
            | ({"yours": True} if own.sure and artifact_id in own.ids else {})
            | ({"note": clip(note.text, width)} if note is not None else {})
        )
    return held


def _to_know(state: State) -> list[str]:
    """What a newcomer must not miss."""
    known = [*state.settings.constraints]
    if state.refused is not None:
        known.insert(0, f"the plan was rejected by {state.refused.by}: {state.refused.reason}")
    elif is_open(state):
        known.insert(0, "the plan waits for approval; what is not approved cannot be claimed")
    if state.replans:
        last = state.replans[-1]
        known.append(f"version {last.version} replaced version {last.parent}: {last.reason}")
    known += (f"learned: {learning.text}" for learning in state.learnings[-2:])
    for artifact_id, note in list(state.notes.items())[-2:]:
        if artifact_id not in state.claims:
            known.append(f"{note.by} on {artifact_id}: {note.text}")
    return known


def _advice(state: State, found: Next, own: Own) -> str:
    """The next call."""
    if own.ids and own.sure:
        return f"complete {own.ids[0]}, which is in your hands; or fail or release it"
    if any(gone(claim) for claim in state.claims.values()):
        return "claim the artifact whose holder is gone, and go on with its work"
    if found.offers:
        first = found.offers[0]
        return f"{'run' if first.by_run else 'claim'} {first.spec.id}"
    if found.failed:
        return "claim what failed to try again, or replan"
    if found.edits:
        return f"claim {next(iter(found.edits))}, then complete it, if what stands at its path is it"
    if found.follows:
        return "run: what comes next follows from what was made"
    if own.ids:
        return f"complete {own.ids[0]} with its token, if the claim is yours; else wait"
    if found.waiting:
        return "wait, or see why: somebody else is at it, or a gate is open"
    return "everything is done" if found.total else "save_plan: there is nothing to make yet"


# Pages.


def page(
    name: str, items: Sequence[Any] | Iterable[Any], cursor: str, show: Callable[[Any], Any], head: Mapping[str, Any]
) -> dict[str, Any]:
    """As many items as fit, after the cursor; `next_cursor` for the rest. One that is too large stands alone, cut."""
    known = items if isinstance(items, Sequence) else list(items)
    start = _position(cursor, len(known))
    head = fit(dict(head), ANSWER // 8)
    shown: list[Any] = []
    room = ANSWER // 2 - tokens(head) - 100
    for item in islice(known, start, None):
        entry = show(item)
        if not shown:
            entry = fit(entry, room)
        room -= tokens(entry) + 1
        if room < 0 and shown:
            break
        shown.append(entry)
    after = start + len(shown)
    rest = {"next_cursor": str(after)} if after < len(known) else {}
    return {**head, name: shown, "total": len(known), **rest}


def _position(cursor: str, total: int) -> int:
    if not cursor:
        return 0
    if not cursor.isascii() or not cursor.isdigit() or len(cursor) > 9 or int(cursor) > total:
        raise UsageError(
            "There is no such page",
            facts={"cursor": cursor[:40]},
            hint="give the next_cursor of the answer before, or none",
            code="page.none",
        )
    return int(cursor)


def fit(document: dict[str, Any], most: int = ANSWER // 2 - 50) -> dict[str, Any]:
    """A document that fits into an answer: its longest texts and lists are cut, and it says so."""
    width = 4000
    told = document
    while tokens(told) > most and width >= 8:
        told = {**_cut(document, width), "cut": "shortened to fit; ask for a part of it"}
        width //= 2
    return told


def _cut(value: Any, width: int) -> Any:
    if isinstance(value, str):
        return value if len(value) <= width else f"{value[: width - 1]}…"
    if isinstance(value, Mapping):
        kept = {key: _cut(item, width) for key, item in islice(value.items(), width)}
        return kept | ({"…": f"{len(value) - width} more"} if len(value) > width else {})
    if isinstance(value, list | tuple):
        return [_cut(item, width) for item in islice(value, width)]
    return value
