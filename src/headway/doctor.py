"""Is everything as it should be? Looks at every ledger, snapshot, projection and blob, and mends what can be mended.

Examining never writes. Mending deletes nothing: whatever cannot be believed is set aside first.
"""

from __future__ import annotations

import os
from typing import Literal, NamedTuple

from headway.core.state import Position, State
from headway.errors import HeadwayError
from headway.ledger import repair
from headway.ledger.base import Finding
from headway.ledger.recovery import now, quarantine
from headway.project import Project
from headway.projections.drift import adoption
from headway.projections.plan_files import CHECKPOINT, VIEWS
from headway.projections.saved_execution import SavedExecution
from headway.store import PlanFolder

Drift = Literal["adopt", "discard"]


class Diagnosis(NamedTuple):
    """One thing that is wrong, and where."""

    plan_id: str
    finding: Finding

    def to_dict(self) -> dict[str, str]:
        """The same for machines."""
        return {"plan_id": self.plan_id, **self.finding._asdict()}


class Doctor:
    """Examines and mends one project."""

    def __init__(self, project: Project) -> None:
        self.project = project

    def examine(self, plan_id: str | None = None) -> list[Diagnosis]:
        """Everything that is not as it should be."""
        found: list[Diagnosis] = []
        for name in [plan_id] if plan_id else self.project.plan_ids():
            found += [Diagnosis(name, finding) for finding in self._plan(self.project.folder(name))]
        if plan_id is None:
            found += [Diagnosis("", finding) for finding in self._blobs()]
        return found

    def repair(self, plan_id: str | None = None, *, drift: Drift | None = None) -> list[str]:
        """Mend what can be mended; a sentence for each thing done, naming what it cost."""
        done: list[str] = []
        for name in [plan_id] if plan_id else self.project.plan_ids():
            folder = self.project.folder(name)
            if repair.examine(folder.ledger()):
                done += [f"{name}: {line}" for line in self._mend_ledger(folder)]
            execution = folder.load()
            if execution is not None:
                done += [f"{name}: {line}" for line in self._mend_projections(folder, execution, drift)]
        return done

    # One plan.

    def _plan(self, folder: PlanFolder) -> list[Finding]:
        found = repair.examine(folder.ledger())
        try:
            execution = folder.load()
        except HeadwayError as error:
            return found or [Finding(error.error_code, error.message, repair="headway doctor --repair")]
        return found + (self._projections(folder, execution) if execution else [])

    def _projections(self, folder: PlanFolder, execution: SavedExecution) -> list[Finding]:
        found = []
        for name, differences in folder.files.drift(execution).items():
            shown = "; ".join(str(d) for d in differences[:20])
            more = f"; and {len(differences) - 20} more" if len(differences) > 20 else ""
            found.append(
                Finding(
                    "projection.drift",
                    f"{name} was edited by hand: {shown}{more}",
                    cost="nothing: the ledger counts",
                    repair="headway doctor --repair --drift adopt (as events), or --drift discard (a copy is kept)",
                )
            )
        return found

    def _blobs(self) -> list[Finding]:
        return [
            Finding(
                "blob.damaged",
                f"Blob {name}: {what}",
                cost="it cannot be restored from here; what is on disk with this digest still counts",
                repair="put the file back from a backup",
            )
            for name, what in self.project.blobs.verify()
        ]

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
        )
        self._set_projections_aside(folder)
        execution = folder.load()
        if execution is not None:
            folder.files.refresh(execution, VIEWS + CHECKPOINT)
        return done

    def _mend_projections(self, folder: PlanFolder, execution: SavedExecution, drift: Drift | None) -> list[str]:
        edited = folder.files.drift(execution)
        if not edited or drift is None:
            return []
        done = []
        if drift == "adopt" and "plan.json" in edited:
            done += self._adopt(folder, execution)
        for name in edited:
            copy = self._set_aside(folder, name)
            done.append(f"{name} written from the ledger again; the edited one is {copy}")
        current = folder.load()
        if current is not None:
            folder.files.refresh(current, VIEWS + CHECKPOINT)
        return done

    def _adopt(self, folder: PlanFolder, execution: SavedExecution) -> list[str]:
        with open(os.path.join(folder.path, "plan.json"), "rb") as file:
            wanted = adoption(file.read(), execution)
        self.project.change(folder.plan_id, wanted.change, wanted.profile)
        done = ["plan.json adopted: goal, structure and profile are events now"]
        return done + [f"not adopted: {refused}" for refused in wanted.refused]

    def _set_projections_aside(self, folder: PlanFolder) -> None:
        """After a repair the old projections may name events that are gone; copies of them are kept."""
        for kind in VIEWS + CHECKPOINT:
            if os.path.exists(os.path.join(folder.path, kind.name)):
                self._set_aside(folder, kind.name)

    def _set_aside(self, folder: PlanFolder, name: str) -> str:
        path = os.path.join(folder.path, name)
        with open(path, "rb") as file:
            data = file.read()
        label = f"{now().replace(':', '')}-{name.replace('/', '-')}"
        reason: dict[str, object] = {"kind": "projection", "file": name, "set aside": now()}
        kept = quarantine(folder.disk, folder.path, label, reason, [data])
        folder.disk.remove(path)
        return kept
