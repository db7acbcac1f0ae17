"""A preview in words: the plan in waves, the estimates, the savings, and what changed. Nothing here decides."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import takewhile
from typing import Any

from headway.core.difference import Changed, PlanDifference
from headway.core.freshness import ChangeReport, Reason
from headway.engine.coming import Coming
from headway.engine.estimates import Estimate, Span
from headway.engine.formerly import words
from headway.engine.preview import Item, PlanPreview, Total
from headway.projections.story import count, seconds
from headway.surfaces.cli.receipt import still_undecided
from headway.surfaces.cli.screen import Screen

FEW = 20
"""So many artifacts of a wave are listed, and of more waves the first half of that; -v lists all of them."""

WIDEST = 60
"""So many characters of a value are shown; of a longer one, where it differs."""

AROUND = 20
"""So many of those before that."""

MANY = 8
"""So many members of a list that came or went are named."""

_ACTIONS = {"make": "", "restore": "put back", "reuse": "reused", "ask": "asks", "claim": "by claim", "wait": "waits"}


BASIS = {
    "history": "from their own history",
    "similar": "from similar ones here",
    "default": "by default",
    "unknown": "not known",
    "nothing": "",
}
"""Where an estimate comes from."""


def show_waves(preview: PlanPreview, screen: Screen, *, verbose: bool = False) -> None:
    """Wave by wave what would be made, how, and why."""
    goal = " ".join(preview.goal.split())
    screen.say(f"Plan {preview.plan_id}: {screen.style(_short(goal, 70), 'bold')}\n")
    width = min(max((len(a) for a in preview.items), default=1), 40)
    waves = [[preview.items[a] for a in wave if a in preview.items] for wave in preview.waves]
    waves = [items for items in waves if items]
    shown = waves if verbose or len(waves) <= FEW else waves[: FEW // 2]
    for items in shown:
        screen.say(screen.style(f"Wave {items[0].wave} {'⚡' if len(items) > 1 else '→'}", "bold"))
        for item in items if verbose else items[:FEW]:
            screen.say(_line(item, width, screen))
            about = " ".join(preview.graph[item.id].description.split())
            if about:
                screen.say(screen.style(f"             {_short(about, 70)}", "dim"))
        if len(items) > FEW and not verbose:
            screen.say(screen.style(f"  and {len(items) - FEW:,} more (-v lists them)", "dim"))
        screen.say()
    if len(shown) < len(waves):
        rest = sum(map(len, waves[len(shown) :]))
        more = f"and {len(waves) - len(shown):,} more waves with {count(rest, 'artifact')} (-v lists them)\n"
        screen.say(screen.style(more, "dim"))


def _line(item: Item, width: int, screen: Screen) -> str:
    how = _ACTIONS[item.action] or item.kind
    took = estimated(item.estimate)
    text = f"  {f'[{item.tier}]':<9} {item.id:<{width}}  {how:<8}  {item.reason.text}"
    return text + (screen.style(f"  {took}", "dim") if took else "")


def show_estimates(preview: PlanPreview, screen: Screen) -> None:
    """What it takes, what it saves, and what is not stored."""
    total, mix = preview.total, preview.model_distribution
    waves = len({item.wave for item in preview.items.values()})
    makes = any(item.estimate.basis != "nothing" for item in preview.items.values())
    screen.say(screen.style("Estimates", "bold"))
    rows = {
        "Artifacts": _artifacts(preview),
        "Undecided": still_undecided(preview.undecided) if preview.undecided else "",
        "May come": may_come(preview.coming),
        "Waves": f"{waves}, {preview.parallelization_factor:.1f}x parallel" if waves else "",
        "Tiers": ", ".join(f"{number} {tier}" for tier, number in mix.items() if number),
        "Tokens": f"~{total.tokens:,}" if total.tokens else "none: commands and functions use none",
        "Cost": f"~${total.cost_usd:.3f}" if total.cost_usd else "$0",
        "Time": f"{spanned(total.ms)} with {preview.jobs} at once; {_basis(preview)}" if makes else "",
        "Savings": _savings(preview),
    }
    if not makes:
        rows = {name: rows[name] for name in ("Artifacts", "Undecided", "May come", "Savings")}
    for name, text in rows.items():
        if text:
            screen.say(f"  {name:<10} {text}")
    for large in preview.too_large:
        size, limit = sized(large.size), sized(preview.limit)
        screen.say(f"  Not stored: {large.path} of {large.artifact} ({size}, above store_up_to {limit})")


def show_known(preview: PlanPreview, screen: Screen) -> None:
    """What was learned before, each with its source."""
    learned = [line for line in preview.known if line["kind"] == "learning"]
    if learned:
        screen.say(f"\n{screen.style('Learned before', 'bold')}")
    for line in learned[:5]:
        screen.say(f"  {line['text']}  {screen.style(line['source'], 'dim')}")


def _artifacts(preview: PlanPreview) -> str:
    """How many come to what, as far as that can be told."""
    words_ = {
        "make": "to make so far" if preview.coming else "to make at most",
        "restore": "to put back",
        "reuse": "to reuse",
        "ask": "to decide about",
        "claim": "for whoever claims them",
        "wait": "waiting",
    }
    actions = [item.action for item in preview.items.values()]
    counts = {text: actions.count(action) for action, text in words_.items()}  # type: ignore[arg-type]  # its words
    parts = [f"{number} {text}" for text, number in counts.items() if number] or ["nothing to make"]
    return ", ".join([*parts, f"{len(preview.kept)} up to date"])


def may_come(coming: Coming) -> str:
    """What may be made besides what is in the plan, and how much that can be; nothing where nothing can come."""
    if not coming:
        return ""
    parts = [
        f"units of {name}, how many is not known (units: {{max: N}} bounds them)"
        if number is None
        else f"{number:,} with units of {name}"
        for name, number in coming.units.items()
    ]
    parts += [f"{coming.rounds:,} in further rounds"] if coming.rounds else []
    most = f"{coming.at_most:,} more at most: " if coming.at_most is not None else ""
    return f"{most}{', '.join(parts)}; the estimates are without them"


def _savings(preview: PlanPreview) -> str:
    all_of = len(preview.items) + len(preview.kept)
    time = f", {seconds(preview.saved_ms)} of {seconds(preview.full.ms.typical)}" if preview.saved_ms else ""
    return f"{preview.savings_percent:g}% of a full rebuild ({len(preview.kept)} of {all_of} artifacts{time})"


def _basis(preview: PlanPreview) -> str:
    """Where the times come from."""
    counts: dict[str, int] = {}
    for item in preview.items.values():
        if item.estimate.basis != "nothing":
            counts[item.estimate.basis] = counts.get(item.estimate.basis, 0) + 1
    if len(counts) == 1:
        return BASIS[next(iter(counts))]
    return ", ".join(f"{counts[basis]} {text}" for basis, text in BASIS.items() if basis in counts)


def show_changes(changes: ChangeReport, preview: PlanPreview, screen: Screen) -> None:
    """RFC-040's "Changes vs Previous", with names."""
    before = preview.previous.state if preview.previous is not None else None
    unmade = {a for a in preview.items if before and a in before.artifacts and a not in before.completed}
    own = changes.all_changed | unmade
    outputs = changes.output_modified | changes.missing_output
    follow = [a for a in preview.items if a not in own]
    rows = {
        "New": changes.added - unmade,
        "Modified": changes.all_changed - changes.added - outputs - unmade,
        "Not made": unmade,
        "Outputs": outputs - unmade,
        "Removed": changes.removed,
    }
    screen.say(screen.style("\nChanges vs previous", "bold"))
    for name, ids in rows.items():
        if ids or name in ("New", "Modified"):
            order = [a for a in preview.graph if a in ids] + sorted(a for a in ids if a not in preview.graph)
            screen.say(f"  {name:<10} {len(ids)}{_names(order)}")
    unchanged = sum(1 for a in (*preview.kept, *preview.items) if a not in own)
    why = "may follow from the above" if any(rows.values()) else "are to be made all the same"
    screen.say(f"  {'Unchanged':<10} {unchanged}" + (f", of which {len(follow)} {why}" if follow else ""))


def show_analysis(preview: PlanPreview, screen: Screen, *, verbose: bool = False) -> None:
    """RFC-040's change analysis: what is unchanged, with its hash; what changed, with its reason; what follows."""
    screen.say(screen.style("Change analysis", "bold"))
    width = min(max((len(a) for a in preview.graph), default=1), 40)
    shown = list(_analysed(preview, width))
    for sign, line in shown if verbose else shown[: 5 * FEW]:
        screen.say("  " + screen.style(f"{sign} {line}", "dim" if sign == "✓" else "yellow"))
    if len(shown) > 5 * FEW and not verbose:
        screen.say(screen.style(f"  and {len(shown) - 5 * FEW:,} more (--verbose lists them)", "dim"))
    screen.say(screen.style("\nRebuild plan", "bold"))
    screen.say(f"  Skip   {_few(preview.kept)} ({count(len(preview.kept), 'artifact')})")
    bound = "so far" if preview.coming else "at most"
    screen.say(f"  Build  {_few(list(preview.items), ' → ')} ({count(len(preview.items), 'artifact')}, {bound})")
    if preview.coming:
        screen.say(f"  May come  {may_come(preview.coming)}")
    screen.say(f"  Savings  {_savings(preview)}")


def _analysed(preview: PlanPreview, width: int) -> Iterator[tuple[str, str]]:
    for artifact_id in (*preview.kept, *preview.items):
        item = preview.items.get(artifact_id)
        if item is None:
            hash_ = preview.hashes.get(artifact_id, "")
            word = "undecided" if artifact_id in preview.undecided else "unchanged"
            yield "✓", f"{artifact_id:<{width}}  {word}" + (f" (hash: {hash_})" if hash_ else "")
        else:
            yield "⚡", f"{artifact_id:<{width}}  {_cause(item.reason)}"


def _cause(reason: Reason) -> str:
    """A reason in the words of a change: what only follows names the artifact that it follows from."""
    return f"dependency ({reason.subject}) changed" if reason.code == "requirement_stale" else reason.text


def show_difference(difference: PlanDifference | None, seq: int, screen: Screen) -> None:
    """How a plan's structure differs from what it was."""
    if difference is None:
        screen.say("No previous plan to compare with.")
        return
    if not difference:
        screen.say(f"The plan is what it was as of event {seq}.")
        return
    screen.say(screen.style(f"Changes since event {seq}", "bold"))
    say_difference(difference, screen)


def say_difference(difference: PlanDifference, screen: Screen) -> None:
    """Line by line: settings, then artifacts."""
    for changed in difference.settings:
        screen.say(screen.style(f"  ~ {_changed(changed)}", "yellow"))
    for artifact_id in difference.added:
        screen.say(screen.style(f"  + {artifact_id}", "green"))
    for artifact_id in difference.removed:
        screen.say(screen.style(f"  - {artifact_id}", "red"))
    for artifact_id, changes in difference.modified.items():
        screen.say(screen.style(f"  ~ {artifact_id}", "yellow"))
        for changed in changes:
            screen.say(f"      {_changed(changed)}")
    if difference.reordered:
        screen.say("  the order of artifacts changed")


def _value(value: Any) -> str:
    return _short(" ".join(words(value).split()), WIDEST)


def _changed(changed: Changed) -> str:
    was, now = (" ".join(words(value).split()) for value in (changed.was, changed.now))
    if max(len(was), len(now)) > WIDEST:
        if isinstance(changed.was, (tuple, list)) and isinstance(changed.now, (tuple, list)):
            signs = [f"- {_value(one)}" for one in changed.was if one not in changed.now]
            signs += [f"+ {_value(one)}" for one in changed.now if one not in changed.was]
            if signs:
                more = f" and {len(signs) - MANY} more" if len(signs) > MANY else ""
                return f"{changed.key}: {', '.join(signs[:MANY])}{more}"
        same = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(was, now, strict=False)))
        if same > WIDEST // 2:  # what differs is what is to be seen
            was, now = (f"…{text[same - AROUND :]}" for text in (was, now))
    return f"{changed.key}: {_short(was, WIDEST)} → {_short(now, WIDEST)}"


# Figures.


def estimated(estimate: Estimate) -> str:
    """One artifact's time, for people."""
    if estimate.ms is None:
        return ""
    return "" if estimate.basis == "nothing" else spanned(estimate.ms)


def spanned(ms: Span) -> str:
    """A time and the range around it, where there is one worth telling."""
    typical, low, high = (seconds(part) for part in ms)
    return f"~{typical}" if low == high or ms.high - ms.low < 100 else f"~{typical} ({low} to {high})"


def totalled(total: Total) -> str:
    """Time, tokens and money together."""
    parts = [spanned(total.ms)]
    if total.tokens:
        parts += [f"~{total.tokens:,} tokens", f"~${total.cost_usd:.3f}"]
    return ", ".join(parts)


def sized(number: int) -> str:
    """A size for people."""
    size = float(number)
    for unit in ("B", "KiB", "MiB", "GiB"):
        if size < 1024:
            return f"{size:.0f} {unit}" if unit == "B" or size == int(size) else f"{size:.1f} {unit}"
        size /= 1024
    return f"{size:.1f} TiB"


def _names(ids: list[str]) -> str:
    return f"  {_few(ids)}" if ids else ""


def _few(ids: list[str], link: str = ", ") -> str:
    if not ids:
        return "nothing"
    return link.join(ids[:5]) + (f" and {len(ids) - 5:,} more" if len(ids) > 5 else "")


def _short(text: str, longest: int) -> str:
    return text if len(text) <= longest else text[: longest - 1] + "…"
