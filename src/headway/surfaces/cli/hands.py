"""Who has what in hand and what waits for whose word, in words: each with the one command that goes on.

Knows documents; not where the words go.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


def held(claim: Mapping[str, Any]) -> str:
    """Who holds it, and for how long."""
    until = f" until {claim['until']}" if claim["until"] else ""
    return f"claimed by {claim['by']}{until}{', which is over' if claim['over'] else ''}"


def finish(artifact_id: str, claim: Mapping[str, Any], where: str) -> str:
    """What goes on with something that is in somebody's hand: they finish it, or, when their lease is over, another."""
    from shlex import quote

    if claim.get("over"):
        return f"headway claim {artifact_id}{where}"
    return f"headway complete {artifact_id} --by {quote(claim['by'])}{where}"


def give(lack: Mapping[str, str], where: str) -> str:
    """The command that gives a word; the plan's approval names its plan already."""
    return f"{lack['command']}{where if lack['kind'] == 'gate' else ''}"
