"""Events as sentences, for `log` and for whoever reads over an agent's shoulder."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from headway.core import events as ev


def sentence(record: ev.Record) -> str:
    """What happened, in one line."""
    event = record.event
    match event:
        case ev.PlanCreated():
            return f"plan created: {count(len(event.plan.artifacts), 'artifact')} for “{_short(event.plan.goal)}”"
        case ev.GoalChanged():
            return f"goal changed to “{_short(event.goal)}”"
        case ev.ProposalTaken():
            return f"took in {event.proposal.path}"
        case ev.ArtifactAdded() | ev.ArtifactUpdated():
            return (
                f"{event.type.removeprefix('artifact_')} {_names([s.id for s in event.artifacts])}{_why(event.reason)}"
            )
        case ev.UnitExpanded():
            return _grown(event)
        case ev.RecipeChanged():
            templates = _names(list(dict.fromkeys(change.template for change in event.changes)))
            return f"prompts changed on purpose: {templates}{_why(event.reason)}"
        case ev.ArtifactRemoved() | ev.ArtifactReordered() | ev.ArtifactSkipped() | ev.ArtifactReleased():
            return f"{event.type.removeprefix('artifact_')} {_names(event.ids)}{_why(event.reason)}"
        case ev.ProfileSet():
            return f"profile set: {event.profile.limit} at once"
        case ev.RunStarted():
            return f"run {event.run} started: {len(event.reasons)} stale, {event.jobs} at once"
        case ev.ArtifactStarted():
            return f"started {_names([s.id for s in event.starts])}"
        case ev.ArtifactCompleted():
            took = f" in {seconds(event.ms)}" if event.how == "made" and event.ms else ""
            origin = f" from {event.note}" if event.how == "reused" and event.note else ""
            return f"{event.how} {event.id}{took}{origin}{_tried(event.attempts)}"
        case ev.ArtifactMade():
            return f"{event.how} {event.id}, which waits for its gates"
        case ev.GateRecorded():
            return f"gate {event.gate} of {event.id}: {event.verdict}{_why(event.text)}"
        case ev.LeaseExtended():
            return f"{event.id} is held until {moment(event.lease)}{_why(event.note)}"
        case ev.HolderLeft():
            return f"whoever held {_names(list(event.tokens))} has left; held until {moment(event.lease)} or taken over"
        case ev.PlanApproved():
            return f"plan approved: {event.hash[:16]}{_why(event.note)}"
        case ev.PlanRejected():
            return f"plan rejected{_why(event.reason)}"
        case ev.ReplanBegan():
            return f"replanning because of {_names(event.failed)}{_why(event.reason)}"
        case ev.ReplanFailed():
            return f"replanning came to nothing{_why(event.reason)}"
        case ev.PlanReplanned():
            return f"version {event.version} replaces version {event.parent}{_why(event.reason)}"
        case ev.OutputAccepted():
            return f"accepted {event.id}{_why(event.reason)}"
        case ev.ArtifactFailed():
            return f"failed {event.id}{_tried(event.attempts)}: {_short(event.error)}"
        case ev.EditPreserved():
            return f"kept what stood at {_names([o.path for o in event.outputs])}"
        case ev.LearningRecorded():
            about = f" about {event.artifact}" if event.artifact else ""
            return f"learned{about}: {_short(event.text)}"
        case ev.MilestoneCompleted():
            return f"milestone {event.milestone} completed"
        case ev.RunPaused():
            where = f" at {event.artifact}" if event.artifact else ""
            until = f", until {moment(event.until)}" if event.until else ""
            said = "somebody has to decide" if event.reason == "refused" else _short(event.reason)
            why = f": {said}" if event.reason not in ("", "paused") else ""
            return f"run {event.run} paused{where}{why}{until}"
        case ev.RunCompleted() | ev.RunFailed():
            return f"run {event.run} {event.type.removeprefix('run_')}"
        case ev.Snapshot():
            return "snapshot"
        case ev.PlanRebuilt():
            return f"plan rebuilt from {event.source}, unverified{_why(event.reason)}"
        case ev.PlanImported():
            return f"plan imported from {event.source}{_why(event.reason)}"
        case ev.PlanExported():
            return f"exported to {event.export.path}"
        case ev.PlanReset() | ev.PlanClosed():
            return f"plan {event.type.removeprefix('plan_')}{_why(event.reason)}"
        case ev.LedgerRecovered():
            return f"ledger recovered: {_recovered(event)}"
        case ev.LedgerRotated():
            return f"ledger rotated: events up to {event.sealed.seq} are in {event.segment}"
        case _:
            return (event.name if isinstance(event, ev.Unknown) else event.type).replace("_", " ")


def _grown(event: ev.UnitExpanded) -> str:
    parts = [f"{len(event.artifacts)} artifacts new or changed"] if event.artifacts else []
    parts += [f"{len(event.removed)} removed"] if event.removed else []
    units = f" into {count(len(event.units), 'unit')}" if event.units is not None else ""
    return f"pipeline {event.pipeline} expanded{units}: {', '.join(parts) or 'nothing changed'}{_why(event.reason)}"


class Story:
    """Tells events one after the other, and remembers: a run that goes on where another stopped says so.

    What several runs did until everything was done is one story, and its last sentence sums it up.
    """

    def __init__(self) -> None:
        self._runs: list[str] = []
        self._how = ""
        self._done: dict[str, str] = {}
        self._by_hand: set[str] = set()
        self._newest = 0

    def gap(self, record: ev.Record) -> str:
        """What is missing between the event that was told last and this one, in words; "" where nothing is."""
        first, last = self._newest + 1, record.seq - 1
        if not self._newest or first > last:
            return ""
        return f"event {last} is gone" if first == last else f"events {first} to {last} are gone"

    def tell(self, record: ev.Record) -> str:
        """The next event, in one line."""
        event, said = record.event, sentence(record)
        self._newest = record.seq
        match event:
            case ev.RunStarted():
                return self._begin(event, said)
            case ev.ArtifactStarted():
                ids = {start.id for start in event.starts}
                self._by_hand = self._by_hand - ids if event.run else self._by_hand | ids
            case ev.ArtifactCompleted():
                self._count(event.id, event.how)
            case ev.ArtifactFailed():
                self._count(event.id, "failed")
            case ev.RunPaused():
                self._how = "was paused" if event.code not in ("interrupted", "terminated") else f"was {event.code}"
            case ev.RunFailed():
                self._how = "failed"
                return said + self._sum(event)
            case ev.RunCompleted():
                said += self._sum(event)
                self._forget()
            case ev.PlanReset():
                self._forget()
        return said

    def _begin(self, event: ev.RunStarted, said: str) -> str:
        before = self._runs[-1] if self._runs else ""
        how = self._how or "ended without a word"
        self._runs.append(event.run)
        self._how = ""
        if not before:
            return said
        return said.replace(f"run {event.run} started", f"run {event.run} goes on after run {before} {how}", 1)

    def _count(self, artifact_id: str, how: str) -> None:
        """What it came to in the end: a failure that was mended is none. What somebody made is not the run's doing."""
        self._done.pop(artifact_id, None)
        if artifact_id not in self._by_hand:
            self._done[artifact_id] = how

    def _sum(self, event: ev.RunCompleted | ev.RunFailed) -> str:
        for how, ids in (("restored", event.restored), ("kept", event.kept)):
            for artifact_id in ids:
                self._done.setdefault(artifact_id, how)
        parts = ", ".join(f"{number} {how}" for how, number in Counter(self._done.values()).items())
        runs = f" in {len(self._runs)} runs" if len(self._runs) > 1 else ""
        return f": {parts}{runs}" if parts else runs

    def _forget(self) -> None:
        self._runs.clear()
        self._done.clear()
        self._how = ""


def _tried(attempts: int) -> str:
    return f" ({attempts} attempts)" if attempts > 1 else ""


def count(number: int, noun: str) -> str:
    """So many of something."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def _recovered(event: ev.LedgerRecovered) -> str:
    if event.kind == "loss":
        known = f" (somebody was told of event {event.named.seq})" if event.named else ""
        return f"events after {event.after} are gone{known}"
    if event.kind == "segment":
        return f"{event.segment} could not be read and was set aside in {event.quarantine}"
    held = ", ".join(f"{n} {name}" for name, n in event.lost.items()) or "no event"
    return f"{event.kind} of {event.length} bytes set aside in {event.quarantine}, holding {held}"


def moment(ts: str) -> str:
    """A time for people, to the second; recorded times are UTC, and it says so. Anything else stays as it is."""
    if ts[10:11] != "T" or not ts.endswith(("Z", "+00:00")):
        return ts
    return f"{ts[:10]} {ts[11:19]}Z"


def seconds(ms: int) -> str:
    """A duration for people."""
    if ms < 1000:
        return f"{ms} ms"
    if ms < 60_000:
        return f"{ms / 1000:.1f} s"
    minutes, rest = divmod(ms // 1000, 60)
    return f"{minutes} min {rest} s"


def _names(ids: Sequence[str]) -> str:
    return ", ".join(ids[:4]) + (f" and {len(ids) - 4} more" if len(ids) > 4 else "")


def _why(reason: str) -> str:
    return f" ({_short(reason)})" if reason else ""


def _short(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= 100 else line[:99] + "…"
