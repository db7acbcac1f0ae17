"""Is everything as it should be? Looks at every ledger, snapshot, projection and blob, and mends what can be mended.

Examining never writes. Mending deletes nothing: whatever cannot be believed is set aside first.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable, Iterator
from contextlib import suppress
from typing import Literal, NamedTuple

import msgspec

from headway.core.codec import digest
from headway.core.events import Came, EditPreserved, OutputAccepted
from headway.core.ids import as_word
from headway.core.state import Completion, Output, Position, State
from headway.disk import REAL, Disk
from headway.engine.gc import blobs_of
from headway.errors import BlobDamaged, DamageError, FormatTooNew, HeadwayError, TryLater
from headway.files.identity import NAME as PROJECT_FILE
from headway.files.identity import read_identity
from headway.files.observe import Observer
from headway.files.outputs import LARGEST, Outputs
from headway.ledger import repair
from headway.ledger.base import Finding
from headway.ledger.recovery import move_aside, now
from headway.plan_folder import PlanFolder
from headway.project import Project
from headway.projections.drift import adoption
from headway.projections.plan_files import Drift, Kind
from headway.projections.saved_execution import SavedExecution
from headway.projections.story import count
from headway.proposals import in_full, storable

Answer = Literal["adopt", "discard"]
REPAIR = "headway doctor --repair"
SHOWN = 20
"""How many differences of one file a finding spells out."""


class Diagnosis(NamedTuple):
    """One thing that is wrong, and with which plan; "" for what belongs to the whole project."""

    plan_id: str
    finding: Finding

    def to_dict(self) -> dict[str, str]:
        """The same for machines."""
        return {"plan_id": self.plan_id, **self.finding._asdict()}


class Doctor:
    """Examines and mends one project."""

    def __init__(self, project: Project, *, disk: Disk = REAL) -> None:
        self.project = project
        self._disk = disk

    def examine(self, plan_id: str | None = None) -> list[Diagnosis]:
        """Everything that is not as it should be: with one plan, or with the whole project."""
        if plan_id is not None:
            return [Diagnosis(plan_id, finding) for finding in self._plan(self.project.folder(plan_id))]
        found = [Diagnosis("", finding) for finding in self._identity()]
        for name in self.project.plan_ids():
            found += [Diagnosis(name, finding) for finding in self._plan(self.project.folder(name))]
        found += [Diagnosis("", finding) for finding in self._history()]
        return found + [Diagnosis("", finding) for finding in self._blobs()]

    def repair(self, plan_id: str | None = None, *, drift: Answer | None = None) -> list[str]:
        """Mend what can be mended; a sentence for each thing done, naming what it cost.

        A plan that cannot be mended keeps no other from being mended; what was wrong with it is raised at the end.
        """
        done = self._mend_identity() + ([] if plan_id else self.project.blobs.repair())
        failures: list[HeadwayError] = []
        for name in [plan_id] if plan_id else self.project.plan_ids():
            try:
                done += [f"{name}: {line}" for line in self._mend(self.project.folder(name), drift)]
            except HeadwayError as error:
                failures.append(error)
        done += [] if plan_id else self._mend_history()
        with suppress(TryLater):  # whoever writes blobs may be putting the same bytes there now: it is found again
            done += [] if plan_id else self._give_up_blobs()
        if failures:
            raise failures[0]
        return done

    # The project.

    def _identity(self) -> Iterator[Finding]:
        try:
            read_identity(self.project.home)
        except DamageError as error:
            message = f"{error.message}: {error.facts['reason']}"
            yield Finding(error.error_code, message, "nothing: the ledgers know the project's id", REPAIR)

    def _mend_identity(self) -> list[str]:
        if not list(self._identity()):
            return []
        path = os.path.join(self.project.home, PROJECT_FILE)
        kept = move_aside(self._disk, self.project.home, path, _label(PROJECT_FILE))
        return [f"{PROJECT_FILE} written again, with id {self.project.identify()}; the damaged one is {kept}."]

    def _history(self) -> Iterator[Finding]:
        for error in self.project.dag.folder.damage():
            if isinstance(error, FormatTooNew):
                yield _from(error, "nothing: it was not touched", error.hint)
            else:
                what = f"{error.message}: {error.facts['reason']}"
                yield Finding(error.error_code, what, "nothing: it is made again from the ledgers", REPAIR)

    def _mend_history(self) -> list[str]:
        if not any(isinstance(error, DamageError) for error in self.project.dag.folder.damage()):
            return []
        rebuilt = self.project.dag.rebuild()
        return [f"dag/ was made again: {count(rebuilt.goals, 'goal')}, {rebuilt.from_ledgers} of them from ledgers."]

    def _blobs(self) -> Iterator[Finding]:
        for name, what in self.project.blobs.verify():
            if name.endswith(".pack"):
                yield Finding("blob.debris", f"{name}: {what}", "nothing that was acknowledged", REPAIR)
                continue
            yield Finding(
                "blob.damaged",
                f"Blob {name[:16]} is not what it was (in {os.path.basename(what)})",
                "it cannot be restored from here; what is on disk with this digest still counts",
                f"put .headway/blobs back from a backup, or, while nothing runs, give it up: {REPAIR}",
            )

    def _give_up_blobs(self) -> list[str]:
        """What is damaged still, after all that stands somewhere was taken from there; what lacks it is told next."""
        damaged = [name for name, _ in self.project.blobs.verify() if not name.endswith(".pack")]
        given_up, kept = self.project.blobs.give_up(damaged) if damaged else ([], [])
        if not given_up:
            return []
        shown = ", ".join(name[:16] for name in given_up[:SHOWN])
        more = f" and {len(given_up) - SHOWN} more" if len(given_up) > SHOWN else ""
        return [
            f"Blob {shown}{more}: damaged, with nothing that has the bytes, so given up; as it was: {', '.join(kept)}."
        ]

    # One plan.

    def _plan(self, folder: PlanFolder) -> list[Finding]:
        try:
            found = repair.examine(folder.ledger())
            execution = folder.load()
        except FormatTooNew as error:
            return [_from(error, "nothing: it was not touched", error.hint)]
        except HeadwayError as error:
            found = repair.examine(folder.ledger()) if isinstance(error, DamageError) else []
            return found or [_from(error, "the plan, until it can be read again", error.hint or REPAIR)]
        except OSError as error:
            message = f"{error.filename or folder.path}: {error.strerror or error}"
            cost, mend = "the plan, until it can be read again", "give this user permission to read it"
            return [Finding("plan.unreadable", message, cost, mend)]
        if execution is None:
            return found
        return [*found, *self._projections(folder, execution), *self._missing_blobs(folder, execution)]

    def _projections(self, folder: PlanFolder, execution: SavedExecution) -> Iterator[Finding]:
        for kind, drift in folder.files.drift(execution).items():
            lines = [str(difference) for difference in drift.differences[:SHOWN]]
            more = len(drift.differences) - SHOWN
            yield Finding(
                "projection.drift",
                "\n".join([f"{kind.name} was edited by hand", *lines, *([f"and {more} more"] if more > 0 else [])]),
                "nothing: the ledger counts, and the file is left alone until you decide",
                f"{REPAIR} --plan-id {folder.plan_id} --drift discard" + (" (or adopt)" if kind.is_json else ""),
            )
        if cut := [kind.name for kind in folder.files.cut_short(execution)]:
            yield Finding("projection.cut", f"{', '.join(cut)}: not all there", "nothing: the ledger counts", REPAIR)
        edited = [unit for unit, is_there in folder.phases_amiss(execution).items() if is_there]
        if edited:
            names = ", ".join(f"phases/{unit}.json" for unit in edited[:SHOWN])
            rest = f" and {len(edited) - SHOWN} more" if len(edited) > SHOWN else ""
            message = f"{names}{rest}: not what the ledger says of the unit"
            yield Finding("phases.drift", message, "nothing: the ledger counts", REPAIR)

    def _lacks(self, outputs: Iterable[Output]) -> bool:
        """Whether the blobs lack any of these bytes; of a folder also of anything in it."""
        return any(not self.project.blobs.has(name) for name in blobs_of(outputs, self.project.blobs))

    def _lost_edits(self, edits: list[str]) -> Iterator[Finding]:
        if edits:
            yield Finding(
                "blob.missing",
                f"What somebody wrote is not among the blobs: {'; '.join(edits[:SHOWN])}",
                "those bytes, unless they are elsewhere: nothing else has them",
                "put .headway/blobs back from a backup",
            )

    def _missing_blobs(self, folder: PlanFolder, execution: SavedExecution) -> Iterator[Finding]:
        """What this ledger recorded and the blobs should have; an imported plan's bytes stayed where it came from."""
        state, blobs = execution.state, self.project.blobs
        if state.proposal is not None and not blobs.has(state.proposal.blob):
            yield Finding(
                "blob.missing",
                f"What {state.proposal.path} said when it was last taken in is gone",
                "the next change of the file cannot be told from a change of the ledger",
                f"{REPAIR} reads it from the file if that is as it was; else "
                "{0} --take file, or {0} --take ledger".format(f"headway plans new {as_word(state.proposal.path)}"),
            )
        own: dict[str, int] = {}
        edits: list[str] = []
        for record in folder.history():
            event = record.event
            if isinstance(event, Came | OutputAccepted):
                own[event.id] = record.seq
            elif isinstance(event, EditPreserved) and self._lacks(event.outputs):
                edits.append(f"event {record.seq} ({', '.join(output.path for output in event.outputs)})")
        yield from self._lost_edits(edits)
        current = {**state.completed, **state.made}
        lost = [a for a, done in current.items() if own.get(a) == done.seq and self._lacks(_stored(done, state))]
        if lost:
            shown, anew = ", ".join(lost[:SHOWN]), " ".join(map(as_word, lost[:SHOWN]))
            more = f" and {len(lost) - SHOWN} more" if len(lost) > SHOWN else ""
            yield Finding(
                "blob.missing",
                f"The outputs of {shown}{more} are not among the blobs",
                "they cannot be restored from here; what is on disk with their digest still counts",
                f"put .headway/blobs back from a backup, or headway run --rerun {anew}",
            )

    def _mend(self, folder: PlanFolder, answer: Answer | None) -> list[str]:
        found = {finding.code for finding in repair.examine(folder.ledger())}
        done = self._mend_ledger(folder) if found - {FormatTooNew.code} else []
        try:
            execution = folder.load()
        except HeadwayError:
            return done  # what could not be mended is found again, and said, by the next look
        if execution is None:
            return done
        done += [*self._mend_proposal(folder.plan_id, execution.state), *self._mend_blobs(execution.state)]
        if amiss := folder.phases_amiss(execution):
            folder.write_phases(execution, amiss)
            done.append(f"{count(len(amiss), 'phase ledger')} written from the ledger again.")
        if cut := folder.files.cut_short(execution):
            folder.files.refresh(execution, tuple(cut))
            done.append(f"{', '.join(kind.name for kind in cut)} written from the ledger again.")
        if answer is not None:
            done += self._mend_projections(folder, execution, answer)
        return done

    def _mend_proposal(self, plan_id: str, state: State) -> list[str]:
        """What the plan's file said when it was taken in is read from it once more, if it still says that."""
        taken, project = state.proposal, self.project
        if taken is None:
            return []
        with suppress(BlobDamaged):
            project.blobs.get(taken.blob)
            return []
        with suppress(HeadwayError, OSError):
            data, name = project.read_plan_file(os.path.join(project.root, taken.path))
            parsed = project.parse(data, name) if digest(data) == taken.source else None
            if parsed is not None and parsed.plan is not None:
                said = msgspec.json.encode(storable(in_full(parsed.plan, plan_id, project.store)))
                if hashlib.sha256(said).hexdigest() == taken.blob:
                    project.blobs.put(said)
                    project.blobs.sync()
                    return [f"what {taken.path} said when it was last taken in is read from it again."]
        return []

    def _mend_blobs(self, state: State) -> list[str]:
        """What the blobs lack and what still stands at its path as it was recorded is taken into them once more."""
        blobs, root = self.project.blobs, self.project.root
        outputs = Outputs(root, blobs, Observer(root))
        current = (o for done in (*state.completed.values(), *state.made.values()) for o in _stored(done, state))
        lost = [o.path for o in current if o.path and not outputs.readable(o) and outputs.stands(o)]
        if not lost:
            return []
        outputs.set_aside(lost)
        blobs.sync()
        more = f" and {len(lost) - SHOWN} more" if len(lost) > SHOWN else ""
        return [f"blobs taken from {', '.join(lost[:SHOWN])}{more}: what stands there is what was recorded."]

    def _mend_ledger(self, folder: PlanFolder) -> list[str]:
        def rescue() -> tuple[str, State, Position | None] | None:
            found = folder.files.rescue()
            return (found[0], found[1].state, found[1].position) if found else None

        done = repair.repair(
            folder.path,
            rescue=rescue,
            plan_id=folder.plan_id,
            project_id=self.project.identify(),
            witnesses=folder.files.witnesses,
            disk=self._disk,
        )
        execution = folder.load()
        if execution is not None:
            for kind in folder.files.strangers():
                kept = self._set_aside(folder, kind)
                done.append(f"{kind.name} names an event that the ledger does not have; it is {kept} now.")
            folder.files.refresh(execution)
        return done

    def _mend_projections(self, folder: PlanFolder, execution: SavedExecution, answer: Answer) -> list[str]:
        done = []
        for kind, drift in folder.files.drift(execution).items():
            if answer == "adopt" and kind.is_json:
                done += self._adopt(folder, kind, drift)
            done.append(
                f"{kind.name} written from the ledger again; the edited one is {self._set_aside(folder, kind)}."
            )
        current = folder.load()
        if current is not None and done:
            folder.files.refresh(current)
        return done

    def _adopt(self, folder: PlanFolder, kind: Kind, drift: Drift) -> list[str]:
        with open(folder.files.path(kind), "rb") as file:
            data = file.read()
        current = self.project.show(folder.plan_id)
        merged, refused = adoption(data, drift.written, current)
        change = msgspec.structs.replace(merged.change, reason=f"adopted from {kind.name}")
        profile = merged.profile if merged.profile != current.state.profile else None
        self.project.change(folder.plan_id, change, profile)
        done = [f"{kind.name} adopted: its goal, artifacts, settings and profile are events now."]
        return done + [f"not adopted, because it is no plan but progress or derived: {r}." for r in refused]

    def _set_aside(self, folder: PlanFolder, kind: Kind) -> str:
        return move_aside(self._disk, folder.path, folder.files.path(kind), _label(kind.name))


def _stored(done: Completion, state: State) -> Iterator[Output]:
    """Of what was made, what the blobs should have: larger outputs are hashed only."""
    limit = LARGEST if state.settings.store_up_to is None else state.settings.store_up_to
    return (output for output in done.outputs if not output.path or output.size <= limit)


def _label(name: str) -> str:
    return f"{now().replace(':', '')}-{name.replace('/', '-')}"


def _from(error: HeadwayError, cost: str, mend: str) -> Finding:
    facts = ", ".join(f"{name} {value}" for name, value in error.facts.items())
    return Finding(error.error_code, f"{error.message} ({facts})" if facts else error.message, cost, mend)
