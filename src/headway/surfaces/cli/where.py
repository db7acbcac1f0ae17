"""Commands that are told, in texts and in documents: each is about the plan that this command is about.

`where`: the options that name it. What names a plan itself is told the project alone; what names a project, or is about
no plan, stays as it is.
"""

from __future__ import annotations

import re
from typing import Any

_VERBS = (
    "accept|approve|claim|complete|diff|export|fail|gate|heartbeat|learn|log|next|phases|profile|reject|release|replan"
    "|reset|restore|run|show|skip|status|sweep|why"
)
"""Those that are about one plan, whichever is named."""

_VERB = rf"headway (?:{_VERBS})(?![\w-])"  # compiled where a command lacks something
_COMMAND = rf"""{_VERB}(?:'[^']*'|"[^"]*"|[;,](?=\S)|[^;,'"])*"""
_PLAN = r" --plan(?:-id)? "
_PROJECT = " --project "


def about(text: str, where: str) -> str:
    """A text that commands end: the whole of it, a clause before each `;` and `,`, or what follows a colon."""
    lacking = _lacking(text, where)
    return re.sub(_COMMAND, lambda found: f"{found[0]}{lacking}", text) if lacking else text


def within(text: str, where: str) -> str:
    """A sentence with commands in it. Where one ends and the words go on cannot be told, so its verb is added to."""
    lacking = _lacking(text, where)
    return re.sub(_VERB, lambda found: f"{found[0]}{lacking}", text) if lacking else text


def _lacking(text: str, where: str) -> str:
    """Of the options, those that a text does not name itself; the project stands last."""
    if _PROJECT in text:
        return ""
    return where[len(where.partition(_PROJECT)[0]) :] if re.search(_PLAN, text) else where


def throughout(document: dict[str, Any], where: str) -> dict[str, Any]:
    """A document of `run`, `status`, `why` or `next`, with the commands in it."""
    if not where:
        return document
    if isinstance(document.get("next"), str):
        document["next"] = about(document["next"], where)
    if "waiting" in document:
        document["waiting"] = {a: about(how, where) for a, how in document["waiting"].items()}
    if paused := document.get("paused"):
        paused["resume"] = about(paused["resume"], where)
    for decision in (*document.get("decisions", ()), document.get("decide")):
        if decision:
            decision["flags"] = [about(flag, where) for flag in decision["flags"]]
    for one in (document, *document.get("artifacts", {}).values()):
        for lack in one.get("missing", ()):
            lack["command"] = about(lack["command"], where)
    for before in document.get("waits_for", {}).values():
        before["command"] = about(before["command"], where)
    return document
