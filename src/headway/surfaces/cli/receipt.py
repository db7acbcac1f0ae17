"""How a run ended, in words: what is left to decide, what stands in the way, one receipt, and the next command.

Knows results; not where the words go.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TypeVar

from headway.core.ids import as_word
from headway.engine.result import CLAIMED, NEXT_GATE, Decision, RunResult
from headway.projections.story import moment, seconds
from headway.surfaces.cli.where import about

T = TypeVar("T")
MOST = 10
"""So many lines of one sort at most; the rest is a number."""

PARTS = ("--until", "--limit")
"""Flags among the words that say which part of a plan is wanted."""

WORTH_SAYING = 1000
"""Milliseconds of work that were saved, below which nobody wants to hear of it."""

_QUESTIONS = {
    "output_modified": ("was edited since it was made", "were edited since they were made"),
    "untracked_output": ("was there before it was made", "were there before they were made"),
    "effects_uncertain": ("has effects elsewhere and was interrupted", "have effects elsewhere and were interrupted"),
    "adopted_edit": (
        "is what somebody accepted, and would be made anew",
        "are what somebody accepted, and would be made anew",
    ),
    "prompt_changed": (
        "was made with another prompt than there is now",
        "were made with another prompt than there is now",
    ),
    "pre_state_changed": (
        "was made from another state than there is now",
        "were made from another state than there is now",
    ),
    "edit_not_verified": ("was edited, and cannot be accepted so", "were edited, and cannot be accepted so"),
}


_STOPPED = {
    "same_error": "Stopped: the rest would fail the same way",
    "command_missing": "Stopped: the rest needs the same command",
    "fail_fast": "Stopped at the first failure",
    "max_time": "Stopped: its time is up",
    "plan_changed": "Stopped: the plan was changed meanwhile",
}
"""Why a run stopped before its end, where a word is not enough."""

FAILURES = ("same_error", "command_missing")
"""Of these, those after which the same command would only fail again."""


def counts(result: RunResult) -> dict[str, int]:
    """How many artifacts came to what, each counted once; only what happened is named."""
    waiting, at_their_gates, found = result.waiting, 0, dict[str, int]()
    for name in ("made", "restored", "reused", "accepted"):
        came: list[str] = getattr(result, name)
        at_gates = sum(a in waiting for a in came) if waiting else 0
        at_their_gates += at_gates
        found |= {name: len(came) - at_gates, f"{name} and waiting": at_gates}
    found |= {
        "kept": len(result.kept),
        "failed": len(result.failed),
        "blocked": len(result.blocked),
        "held": sum(len(decision.artifacts) for decision in result.decisions),
        "waiting": len(waiting) - at_their_gates,
        "left by --limit": len(result.beyond),
    }
    return {name: number for name, number in found.items() if number}


def receipt(result: RunResult, where: str = "") -> str:
    """The last line of a run. `where`: the options that name this plan, for the next command."""
    if result.status == "completed" and not (result.made or result.restored or result.reused or result.accepted):
        number = len(result.kept)
        return f"Nothing to do: {'1 artifact is' if number == 1 else f'{number} artifacts are'} up to date."
    parts = ", ".join(f"{number} {name}" for name, number in counts(result).items()) or "Nothing made"
    end = ". ".join(text for text in (_stopped(result), f"Next: {next_command(result, where)}") if text)
    return f"{parts} in {seconds(result.duration_ms)}{_saved(result)}{_spent(result)}. {end}"


def next_command(result: RunResult, where: str = "") -> str:
    """What to type next."""
    if result.paused is not None and result.paused.code in ("approval", "gates"):
        return about(result.resume, where)
    if result.status == "interrupted" or (result.paused is not None and result.paused.code not in FAILURES):
        command = "run"
    elif result.failed or result.decisions:
        held = (a for decision in result.decisions for a in decision.artifacts)
        command = f"why {as_word(next(iter((*result.failed, *held))))}"
    elif result.elsewhere:
        return next(iter(result.elsewhere.values()))
    elif result.moved or result.beyond:
        command = "run"
    elif result.waiting:
        free_first = sorted(result.waiting.items(), key=lambda one: one[1].startswith(CLAIMED))
        ways = (_way(artifact_id, how) for artifact_id, how in free_first)
        command = next((way for way in ways if way), "headway status").removeprefix("headway ")
    else:
        command = "status"
    return f"headway {command}{where}"


def _way(artifact_id: str, how: str) -> str:
    """The command that goes on with something that waits, if there is one: it is to be claimed, or finished."""
    if how.startswith(CLAIMED):
        return f"headway complete {as_word(artifact_id)} --by {as_word(how.removeprefix(CLAIMED))}"
    return how if how.startswith("headway ") else ""


def closing(result: RunResult, where: str = "") -> Iterator[tuple[str, str]]:
    """What there is to say before the receipt: (style, line)."""
    for changed in result.prompts:
        yield "yellow", f"{changed.text}."
    for decision in result.decisions:
        yield "yellow", question(decision, where, result.targets)
    for artifact_id, path in _few(result.moved.items()):
        yield "yellow", f"{artifact_id}: {path} changed after it was read. Next: headway run{where}"
    for kept in _few(result.preserved):
        back = f"headway restore {as_word(kept.artifact)} --at {kept.seq}{where}"
        yield "yellow", f"What stood at {names(kept.paths)} is kept: {back} brings it back"
    yield from (("yellow", line) for line in _blockers(result))
    for artifact_id, how in _few(result.waiting.items()):
        if how.startswith(CLAIMED):
            finish = _way(artifact_id, how)
            back = finish.replace(" complete ", " release ", 1)
            yield "", f"{artifact_id} waits: {how}. {finish}{where} finishes it, {back}{where} gives it back"
            continue
        first, *more = how.split(NEXT_GATE)
        told = first if first.startswith("waits ") else f"waits: {first}"
        yield "", f"{artifact_id} {about(told, where)}"
        yield from (("", f"  and: gate {about(gate, where)}") for gate in more)
    if len(result.waiting) > MOST:
        yield "", f"and {len(result.waiting) - MOST} more wait"
    if result.left:
        yield "", left_behind(result.left, "Units that are gone leave their files", where)
    if result.undecided:
        yield "", still_undecided(result.undecided)
    if result.code_unknown:
        yield "", out_of_sight(result.code_unknown)
    if result.unstable:
        yield "", f"Not the same twice, though nothing they read changed: {names(result.unstable)}"


def still_undecided(ids: Sequence[str]) -> str:
    """What is said of artifacts of units before the targets, whose prompt has changed."""
    stand = "stands as it was" if len(ids) == 1 else "stand as they were"
    return f"{names(ids)} {stand} made with the prompt before"


def out_of_sight(ids: Sequence[str]) -> str:
    """What is said of artifacts whose code cannot be looked at from here."""
    whose = "its code is" if len(ids) == 1 else "their code is"
    return f"{names(ids)}: {whose} in a Python program or session; only a run there sees whether it has changed"


def question(decision: Decision, where: str = "", targets: Sequence[str] = ()) -> str:
    """Something that only the user can decide, and what decides it: of no more than was asked for."""
    one = len(decision.artifacts) == 1
    what = _QUESTIONS.get(decision.code, (decision.code, decision.code))[0 if one else 1]
    run = " ".join(("headway run", *(word if word in PARTS else as_word(word) for word in targets)))
    ways = [about(f"{run} {flag}" if flag.startswith("-") else flag, where) for flag in decision.flags]
    ways += ["change it back"] if decision.code == "prompt_changed" else []
    left = "It was not touched" if one else "They were not touched"
    return f"{names(decision.artifacts)} {what}. {left}. Decide: {'  or  '.join(ways)}"


def names(ids: Sequence[str]) -> str:
    """A few names, and how many more there are."""
    return ", ".join(ids[:5]) + (f" and {len(ids) - 5} more" if len(ids) > 5 else "")


def left_behind(paths: Sequence[str], said: str, where: str) -> str:
    """What nothing makes any more, and how it goes. Folders are left to people: anybody's files may be in them."""
    files, folders = [p for p in paths if not p.endswith("/")], [p for p in paths if p.endswith("/")]
    list_them = f"headway gc --outputs --dry-run{where} lists those that can go"
    told = [f"{said}: {names(files)}. {list_them}"] if files else []
    told += [f"Folders stay, and are yours to delete: {names(folders)}"] if folders else []
    return ". ".join(told)


def _blockers(result: RunResult) -> Iterator[str]:
    behind: dict[str, list[str]] = {}
    for artifact_id, by in result.blocked.items():
        behind.setdefault(by, []).append(artifact_id)
    for by, blocked in _few(behind.items()):
        yield f"{by} blocks {names(blocked)}"


def _few(items: Iterable[T]) -> list[T]:
    return list(items)[:MOST]


def _stopped(result: RunResult) -> str:
    if result.status == "interrupted":
        return "Interrupted; nothing is lost"
    if result.paused is None:
        return ""
    if result.paused.code in _STOPPED:
        return _STOPPED[result.paused.code]
    where = f" at {result.paused.artifact}" if result.paused.artifact else ""
    return f"Paused ({result.paused.code}){where}" + (
        f" until {moment(result.paused.until)}" if result.paused.until else ""
    )


def _saved(result: RunResult) -> str:
    return f"; {seconds(result.saved_ms)} of work saved" if result.saved_ms >= WORTH_SAYING else ""


def _spent(result: RunResult) -> str:
    return f"; {spent(result)} spent" if result.cost_usd or result.tokens else ""


def spent(result: RunResult) -> str:
    """What the run has cost so far, for people."""
    if result.cost_usd:
        return f"${result.cost_usd:.2f}" if result.cost_usd >= 0.01 else f"${result.cost_usd:.4f}"
    return f"{result.tokens} tokens" if result.tokens else ""
