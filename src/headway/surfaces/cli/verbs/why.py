"""Why an artifact is stale, fresh, failed or blocked: where it began, what only follows from that, and what it costs.

headway why report          this artifact: root causes apart from the cascade, old and new values
headway why                 the whole plan: what is unchanged, what changed and why, what would be built and saved
"""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, TypeVar

from headway.core.freshness import without_digests
from headway.core.ids import as_word
from headway.engine.result import Decision
from headway.projections.story import moment
from headway.surfaces.cli.hands import decisions, finish, give, held, leads_on
from headway.surfaces.cli.meant import work_of
from headway.surfaces.cli.options import add_at, add_json, add_plan, add_take, project_of, same_plan
from headway.surfaces.cli.receipt import MOST, out_of_sight, question
from headway.surfaces.cli.screen import Screen
from headway.surfaces.cli.where import throughout

T = TypeVar("T")

MANY = 20
"""Of more than these, a line each is too long."""


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("artifact", metavar="ID", nargs="?", help="an artifact, the path of its output, or a unit")
    parser.add_argument("-v", "--verbose", action="store_true", help="the change analysis of the whole plan as well")
    add_plan(parser)
    add_take(parser)
    add_at(parser)
    add_json(parser)


def run(args: Any, screen: Screen) -> int:
    work, meant = work_of(args, project_of(args, screen))
    take = args.take or ""
    found: dict[str, Any] = {}
    if args.artifact is not None:
        found = throughout(work.why(meant, args.artifact, at=args.at, take=take), same_plan(args))
        _say(found, screen, same_plan(args))
    if args.artifact is None or args.verbose:
        from headway.surfaces.cli.preview import show_analysis

        preview = work.preview(meant, at=args.at, take=take)
        if found:
            screen.say()
        found["analysis"] = preview.to_dict()
        show_analysis(preview, screen, verbose=args.verbose)
        if preview.items and args.artifact is None and args.at is None:
            run_it = f"Next: headway run{same_plan(args)}"
            screen.say(run_it if preview.can_go_on else leads_on(work.status(meant, take=take), same_plan(args)))
    screen.answer(found)
    return 0


def _say(found: Mapping[str, Any], screen: Screen, where: str) -> None:
    artifact_id = found["artifact"]
    if named := found["named"]:
        _say_all(named, screen)
        if found["freshness"] == "fresh":
            return
        screen.say()
    if found["freshness"] == "fresh":
        if found["status"] == "skipped":
            screen.say(f"{artifact_id} is skipped ({found['skipped']}): nobody makes it, and what requires it goes on.")
            screen.say(f"  headway reset {as_word(artifact_id)} --reason …{where} has it made after all")
            return
        screen.say(f"{artifact_id} is {found['status']} and up to date.")
        if found["code_unknown"]:
            screen.say(f"  {out_of_sight([artifact_id])}")
        if accepted := found["accepted"]:
            why = f" ({accepted['reason']})" if accepted["reason"] else ""
            anew = f"headway run --rerun {as_word(artifact_id)} --discard-edits{where}"
            screen.say(f"  accepted as it is by {accepted['by']}{why}; to make it anew: {anew}")
        return
    _say_causes(found, screen, where)
    _say_ways(found, screen, where)


def _say_causes(found: Mapping[str, Any], screen: Screen, where: str) -> None:
    """Why it is stale, what became of the last attempt, where it began, and what is behind it."""
    whole = f"headway why {as_word(found['artifact'])} --json{where}"
    artifact_id, reason = found["artifact"], found["reason"]
    failed = reason["code"] == "failed"
    stands = f"is {found['status'].replace('_', ' ')} and stale: {reason['text']}"
    screen.say(f"{artifact_id} {'failed, and is to be made again' if failed else stands}.")
    _say_values(reason, screen)
    own = next((root for root in found["root_causes"] if root["artifact"] == artifact_id), None)
    if own is not None and own["others"]:
        screen.say(f"    and: {_few(own['others'])}")
    if paused := found["paused"]:
        until = f" until {moment(paused['until'])}" if paused["until"] else ""
        screen.say(f"  the run paused here ({paused['code']}){until}")
    if found["released"]:
        screen.say(f"  its last attempt: {found['released']}")
    for error, blockers in _alike(found["blocked_by"].items(), screen, whole):
        screen.say(f"  blocked by {_few(blockers)}, which failed: {error}")
    for (problem, command), names in _alike(
        ((name, (there["problem"], there["command"])) for name, there in found["elsewhere"].items()), screen, whole
    ):
        screen.say(f"  {_few(names)} {problem}. Next: {command}")
    if found["error"]:
        tried = f" ({found['error']['attempts']} attempts)" if found["error"]["attempts"] > 1 else ""
        screen.say(screen.style(f"  last error{tried}: {found['error']['message']}", "red"))
        if found["error"]["verify"]:
            screen.say(f"  verify: {found['error']['verify']}")
        for line in found["error"]["output"].splitlines():
            screen.say(f"  | {line}")
    roots = {root["artifact"]: root for root in found["root_causes"]}
    for _, began in _alike(((a, _sort(root)) for a, root in roots.items() if a != artifact_id), screen, whole):
        texts = {roots[a]["text"] for a in began}
        first = roots[began[0]]
        screen.say(f"  began with {_few(began)}: {first['text'] if len(texts) == 1 else _sort(first)[0]}")
        _say_values(first, screen)
    waits = {**found["held_by"], **{a: before["text"] for a, before in found["waits_for"].items()}}
    for text, names in _alike(((a, text) for a, text in waits.items() if a not in roots), screen, whole):
        screen.say(f"  waits for {_few(names)}: {text}")
    if found["cascade"]:
        screen.say(f"  by way of {_few(found['cascade'])}")
    if found["dependents"]:
        screen.say(f"  behind it: {_few(found['dependents'])}")


def _say_ways(found: Mapping[str, Any], screen: Screen, where: str) -> None:
    """What to do about it."""
    artifact_id, reason = found["artifact"], found["reason"]
    blocker = next(iter(found["blocked_by"]), "")
    leads_there = f"headway why {as_word(blocker)}{where}" if blocker else ""
    if not blocker and found["left_alone"]:
        leads_there = f"headway run{where}"
    if found["held_by"] and not leads_there:  # which a run would only ask about
        leads_there = f"headway why {as_word(next(iter(found['held_by'])))}{where}"
    elif found["waits_for"] and not leads_there:
        leads_there = next(iter(found["waits_for"].values()))["command"]
    if reason["code"] == "in_progress" and found["claim"]:
        _say_holder(found["claim"], artifact_id, screen, where)
    elif lacks := [lack for lack in found["missing"] if not found["error"] or lack["kind"] == "approval"]:
        for lack in lacks:
            screen.say(f"  waits: {lack['text']}: {give(lack, where)}")
        screen.say(f"  Next: {give(lacks[0], where)}")
    elif found["decide"]:
        screen.say(f"  {question(Decision(**found['decide']), where)}")
    elif found["by_program"] and not leads_there:
        screen.say("  Only the program or session that defines its function makes it. Next: run its plan there")
    elif found["rerun_from"]:
        source = as_word(found["rerun_from"])
        anew = f"headway run --rerun-from {source}{where}"
        if most := found["most_units"]:
            place = f"of pipeline {most['pipeline']}" + (f" in {most['file']}" if most["file"] else "")
            fewer = f"or have {found['rerun_from']} name fewer: {anew}"
            screen.say(f"  Next: raise units.max {place}, then headway run{where}; {fewer}")
            return
        screen.say(f"  It follows from {found['rerun_from']}: mend that, or the plan, and headway run{where} goes on;")
        screen.say(f"  or make it anew: {anew}. Next: headway show {source}{where}")
    elif not found["cost"]:
        next_ = leads_there or f"headway run{where}"
        screen.say(f"  It follows from what it gathers: nobody makes it. Next: {next_}")
    else:
        _say_cost(found["cost"], artifact_id, screen, leads_there, where)


def _say_all(named: Mapping[str, Mapping[str, str]], screen: Screen) -> None:
    """What a word names, one line for each; of many, those that are stale."""
    stale = {a: reason for a, reason in named.items() if reason["code"] != "fresh"}
    shown = named if len(named) <= MANY else stale
    width = min(max(map(len, shown), default=1), 40)
    for artifact_id, reason in list(shown.items())[:MANY]:
        sign = "✓" if reason["code"] == "fresh" else "↻"
        screen.say(f"  {sign} {artifact_id:<{width}}  {reason['text']}")
    if len(shown) > MANY:
        screen.say(f"  and {len(shown) - MANY:,} more are stale")
    if shown is stale:
        screen.say(f"  {len(named) - len(stale):,} of {len(named):,} artifacts are up to date")


def _say_holder(claim: Mapping[str, Any], artifact_id: str, screen: Screen, where: str) -> None:
    """Whoever makes it now, and what goes on from there."""
    if claim["run"]:
        screen.say(f"  A run makes it since {moment(claim['since'])}. Next: headway log --follow{where}")
        return
    screen.say(f"  {held(claim)}, token {claim['token']}")
    screen.say(f"  Next: {finish(artifact_id, claim, where)}")


def _say_values(reason: Mapping[str, Any], screen: Screen) -> None:
    """Old and new, where they are words and not digests, and not in the reason already."""
    if reason["code"] not in ("spec_changed", "recipe_changed") or " → " in reason["text"]:
        return
    if "subject" in reason and ("was" in reason or "now" in reason):
        for name in ("was", "now"):
            first, *rest = reason.get(name, "nothing").splitlines() or [""]
            screen.say(f"    {name}: {first}{' …' if rest else ''}")


def _say_cost(cost: Mapping[str, Any], artifact_id: str, screen: Screen, first: str, where: str) -> None:
    """`first`: what to type before anything can be made."""
    from headway.engine.estimates import Span
    from headway.engine.preview import Total
    from headway.surfaces.cli.preview import BASIS, spanned, totalled

    command = f"headway run {as_word(artifact_id)}{where}"
    own, basis = cost["own"]["ms"], cost["own"]["basis"]
    guess = "" if basis == "history" else f", {BASIS[basis]}"  # it was never made here: others were
    known = {
        "restore": "It is put back from its blob: that costs nothing.",
        "reuse": "It was made from the same things before: reusing it costs nothing.",
        "ask": "What stands at its path is yours to decide about: "
        f"headway diff {as_word(artifact_id)}{where} shows it.",
        "claim": "Whoever claims it makes it.",
        "wait": "",
    }.get(cost["action"], f"Making it takes {spanned(Span(**own))}{guess}." if own else "")
    total = Total(Span(**cost["ms"]), cost["tokens"], cost["cost_usd"], cost["unknown"])
    bound = "at most" if cost["coming"] == 0 else "so far"
    more = f" With all that is stale before and behind it, {cost['artifacts']} {bound}: {totalled(total)}."
    said = f"{known}{more if cost['artifacts'] > 1 and cost['action'] != 'wait' else ''}"
    if said:
        screen.say(f"  {said}")
    if first:
        screen.say(f"  Next: {first}")
    elif cost["action"] in ("make", "restore", "reuse"):
        screen.say(f"  Next: {command}")
    elif cost["action"] == "claim":
        screen.say(f"  Next: headway claim {as_word(artifact_id)}{where}")
    elif cost["action"] == "ask":
        screen.say(f"  {decisions(artifact_id, where)}")


def _sort(root: Mapping[str, str]) -> tuple[str, ...]:
    """What is told of where it began in one line with others: the same words, but for digests, and the same values."""
    was, now = root.get("was", ""), root.get("now", "")
    words = without_digests(root["text"], was, now)
    return (words,) if words != root["text"] else (words, was, now)


def _alike(told: Iterable[tuple[str, T]], screen: Screen, whole: str) -> Iterator[tuple[T, list[str]]]:
    """Names of which the same is to be told, in groups: the first few, and then how many more names there are, with the
    command that shows the `whole`."""
    groups: dict[T, list[str]] = {}
    for name, what in told:
        groups.setdefault(what, []).append(name)
    yield from list(groups.items())[:MOST]
    if more := sum(map(len, list(groups.values())[MOST:])):
        screen.say(f"  and {more:,} more: {whole} shows all")


def _few(ids: list[str]) -> str:
    return ", ".join(ids[:5]) + (f" and {len(ids) - 5:,} more" if len(ids) > 5 else "")
