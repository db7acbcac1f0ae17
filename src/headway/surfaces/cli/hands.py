"""Who has what in hand and what waits for whose word, in words: each with the one command that goes on.

Knows documents; not where the words go.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from headway.core.freshness import EDITS, RESTORABLE
from headway.core.ids import as_word
from headway.engine.result import Decision
from headway.projections.story import moment
from headway.surfaces.cli.receipt import out_of_sight, question
from headway.surfaces.cli.where import about


def held(claim: Mapping[str, Any]) -> str:
    """Who holds it, and for how long."""
    if claim["gone"]:
        return f"claimed by {claim['by']}, who is gone ({claim['gone']}); whoever claims it goes on"
    until = f" until {moment(claim['until'])}" if claim["until"] else ""
    return f"claimed by {claim['by']}{until}{', which is over' if claim['over'] else ''}"


def finish(artifact_id: str, claim: Mapping[str, Any], where: str) -> str:
    """What goes on with something that is in somebody's hand: they finish it; another, if they are gone or too late."""
    from shlex import quote

    if claim.get("over") or claim.get("gone"):
        return f"headway claim {as_word(artifact_id)}{where}"
    return f"headway complete {as_word(artifact_id)} --by {quote(claim['by'])}{where}"


def give(lack: Mapping[str, str], where: str) -> str:
    """The command that gives a word."""
    return about(lack["command"], where)


def still_open(document: Mapping[str, Any]) -> list[str]:
    """What is not up to date, of a document of `status`; what only gathers others counts where that failed."""
    stale = {a: found for a, found in document["artifacts"].items() if found["freshness"] == "stale"}
    return [a for a, found in stale.items() if found["error"] or not found.get("gathers")]


def leads_on(document: Mapping[str, Any], where: str) -> str:
    """What is to be done about a plan, in a line that ends with the one command for it. `document`: of `status`."""
    open_ = still_open(document)
    artifacts, command = document["artifacts"], document["next"]
    edited = [a for a in open_ if artifacts[a]["reason"]["code"] in EDITS]
    if edited:
        first, more = edited[0], len(edited) - 1
        whose, it = (f"{first} and {more:,} more are", "the first") if more else (f"{first} is", "it")
        shows = f"headway diff {as_word(first)}{where} shows {it}"
        return f"{whose} yours to decide: {shows}. {decisions('' if more else first, where)}"
    if document["decide"]:
        return question(Decision(**document["decide"]), where)
    grows = any(a["freshness"] == "stale" and a.get("gathers") in ("units", "last") for a in artifacts.values())
    back = sum(artifacts[a]["reason"]["code"] in RESTORABLE for a in open_)
    number = f"{len(open_) - back} to make {'so far' if grows else 'at most'}" if len(open_) > back else ""
    number = ", ".join(part for part in (number, f"{back} to put back" if back else "") if part)
    claimed = [a for a in open_ if artifacts[a]["reason"]["code"] == "in_progress"]
    if any(not in_hand(artifacts[a]) for a in claimed):
        return f"{number}. A run is under way: headway log --follow{where}"
    waiting = [a for a in open_ if artifacts[a]["missing"] and not artifacts[a]["error"]]
    others = {*claimed, *waiting, *(a for a in open_ if artifacts[a]["reason"]["code"] == "requirement_stale")}
    if waiting and others.issuperset(open_):
        return f"{number}. Next: {give(artifacts[waiting[0]]['missing'][0], where)}"
    if claimed and others.issuperset(open_):
        first = claimed[0]
        claim = artifacts[first]["claim"]
        return f"{number}. {first} is {held(claim)}. Next: {finish(first, claim, where)}"
    if not open_ and not command:
        unknown = document["code_unknown"]
        return f"Everything is up to date. {out_of_sight(unknown)}" if unknown else "Everything is up to date."
    return f"{number + '. ' if open_ else ''}Next: {about(command, where)}"


def decisions(artifact_id: str, where: str) -> str:
    """The two ways to decide about what stands at the path of an output: of one artifact, or of all (`""`)."""
    word = f" {as_word(artifact_id)}" if artifact_id else ""
    return f"Decide: headway accept{word or ' --all'}{where}  or  headway run{word} --discard-edits{where}"


def in_hand(found: Mapping[str, Any]) -> bool:
    """Somebody has it in hand, and no run."""
    return found["reason"]["code"] == "in_progress" and found["claim"] is not None and not found["claim"]["run"]
