"""The façade: one method per thing a user can ask of a project. Every surface calls this and nothing below it."""

from __future__ import annotations

import os
import re
import tomllib
from collections.abc import Iterator
from contextlib import suppress
from typing import Literal, NamedTuple

import msgspec

from headway.core.check import Problem, check_plan
from headway.core.codec import digest
from headway.core.commands import (
    ChangePlan,
    ClosePlan,
    Command,
    CreatePlan,
    ImportPlan,
    RecordExport,
    ResetPlan,
    SetProfile,
    TakeProposal,
)
from headway.core.events import Record
from headway.core.ids import hash_goal
from headway.core.plan import PlanSpec, Profile
from headway.core.state import Export, Proposal
from headway.disk import REAL, Disk, make_folders, write_file
from headway.errors import FormatTooNew, NotFound, PlanInvalid, UsageError
from headway.files.blobs import Blobs
from headway.files.planfile import ParsedPlan, parse_plan
from headway.ledger.recovery import now
from headway.projections import markdown, saved_execution
from headway.projections.saved_execution import SavedExecution
from headway.store import PlanFolder, PlanStore, PlanVersion

FORMAT = 1
HOME = ".headway"
PLAN_FILES = ("headway.yaml", "headway.json")
_ID_LINE = re.compile(rb"""(?m)^id:[ \t]*["']?([A-Za-z0-9][A-Za-z0-9._-]{0,63})["']?[ \t]*(?:#.*)?\r?$""")
MARKERS = (f"{HOME}/project.json", "headway.toml", "headway.yaml")


class Saved(NamedTuple):
    """What became of a plan file that was handed in."""

    execution: SavedExecution
    outcome: Literal["created", "updated", "unchanged"]
    events: list[Record]
    problems: list[Problem]


class Project:
    """One repository: its plans, their ledgers, its blobs."""

    def __init__(self, root: str | os.PathLike[str], *, by: str = "api", disk: Disk = REAL) -> None:
        self.root = os.path.abspath(os.fspath(root))
        self.home = os.path.join(self.root, HOME)
        self.by = by
        self._disk = disk
        self.blobs = Blobs(os.path.join(self.home, "blobs"), disk=disk)
        self.store = PlanStore(os.path.join(self.home, "plans"), blobs=self.blobs, disk=disk)

    @classmethod
    def locate(cls, start: str | os.PathLike[str], *, home: str = "", by: str = "api") -> Project:
        """The project that a folder belongs to: the nearest marked folder, else the Git root, else the folder itself."""
        return cls(find_root(os.path.abspath(os.fspath(start)), home=home), by=by)

    @property
    def project_id(self) -> str:
        """The project's id, or "" before anything was written."""
        return self._identity() or ""

    # Plans.

    def plan_ids(self) -> list[str]:
        """The ids of all plans."""
        return self.store.ids()

    def select(self, plan_id: str | None = None, plan_file: str | None = None) -> str:
        """Which plan is meant: by id, by file, by the default file, or the one touched last."""
        path = plan_file or self._default_file()
        named = self._id_in_file(path) if path and (plan_file or not plan_id) else None
        if plan_id and plan_file and named and named != plan_id:
            raise UsageError(
                f"--plan-id {plan_id} and {plan_file} name different plans",
                facts={"the file's id": named},
                hint="give one of them",
            )
        chosen = plan_id or named
        if chosen:
            return chosen
        recent = self.store.list_recent(1)
        if not recent:
            raise NotFound(
                "There is no plan here yet",
                facts={"project": self.root},
                hint="headway plans new FILE",
                code="plan.none",
            )
        return recent[0].plan_id

    def folder(self, plan_id: str) -> PlanFolder:
        """A plan's folder; the plan must exist."""
        folder = self.store.folder(plan_id)
        if not os.path.isdir(folder.path):
            raise self._no_plan(plan_id)
        return folder

    def show(self, plan_id: str, *, at: int | None = None) -> SavedExecution:
        """A plan now, or as of an earlier event."""
        folder = self.folder(plan_id)
        found = folder.at(at) if at is not None else folder.load()
        if found is None:
            raise self._no_plan(plan_id)
        return found

    def problems(self, execution: SavedExecution) -> list[Problem]:
        """What keeps a saved plan from being run."""
        state = execution.state
        spec = PlanSpec(
            goal=state.goal,
            id=state.plan_id,
            settings=state.settings,
            profile=state.profile,
            artifacts=tuple(state.artifacts.values()),
        )
        return check_plan(spec)

    def log(self, plan_id: str, *, first: int = 1, last: int | None = None) -> Iterator[Record]:
        """What happened to a plan. A damaged ledger is refused before the first event."""
        self.show(plan_id)
        return self.folder(plan_id).history(first, last)

    def versions(self, plan_id: str) -> list[PlanVersion]:
        """Every structure that the plan ever had."""
        self.show(plan_id)
        return self.store.versions(plan_id)

    def save_plan(self, path: str, *, plan_id: str | None = None, take: str = "", draft: bool = True) -> Saved:
        """Take in a plan file: create its plan, or change the plan by what changed in the file.

        With `draft`, problems are reported and do not prevent saving; without, they refuse it.
        """
        data, name = self._read_plan_file(path)
        parsed = parse_plan(data, name=name)
        if parsed.plan is None or (parsed.problems and not draft):
            raise PlanInvalid(parsed.problems, where=name)
        chosen = self._plan_id(parsed.plan, plan_id, name)
        folder = self.store.folder(chosen)
        existing = folder.load() if os.path.isdir(folder.path) else None
        source = digest(data)
        if existing and existing.state.proposal and existing.state.proposal.source == source and not take:
            return Saved(existing, "unchanged", [], parsed.problems)
        proposal = Proposal(path=name, source=source, blob=self.blobs.put(msgspec.json.encode(parsed.plan)))
        command = self._proposal_command(existing, parsed, proposal, chosen, take)
        with folder.writing() as writer:
            records = writer.execute(command, by=self.by)
            execution = SavedExecution(writer.state, writer.position)  # type: ignore[arg-type]  # just written
        return Saved(execution, "updated" if existing else "created", records, parsed.problems)

    def change(self, plan_id: str, change: ChangePlan, profile: Profile | None = None) -> SavedExecution:
        """Change a plan's structure, and its profile if one is given: all of it or nothing."""
        with self.folder(plan_id).writing() as writer:
            if profile is not None:
                writer.execute(SetProfile(profile=profile), by=self.by)
            writer.execute(change, by=self.by)
            return SavedExecution(writer.state, writer.position)  # type: ignore[arg-type]  # it exists

    def set_profile(self, plan_id: str, profile: Profile) -> SavedExecution:
        """Decide (and lock) the plan's concurrency."""
        return self._command(plan_id, SetProfile(profile=profile))

    def reset(self, plan_id: str, *, reason: str = "") -> SavedExecution:
        """Withdraw all progress of a plan; structure and history stay."""
        return self._command(plan_id, ResetPlan(reason=reason))

    def close_plan(self, plan_id: str, *, reason: str = "") -> SavedExecution:
        """Put a plan away."""
        return self._command(plan_id, ClosePlan(reason=reason))

    # Checkpoints.

    def export_plan(self, plan_id: str, path: str) -> list[str]:
        """Write a checkpoint for somebody else, after verifying the whole ledger. The files written."""
        folder = self.folder(plan_id)
        loaded = folder.ledger().load(thorough=True)
        execution = folder.load()
        if loaded is None or execution is None:
            raise self._no_plan(plan_id)
        target = os.path.join(path, "PLAN.json") if os.path.isdir(path) or path.endswith("/") else path
        stem = target.removesuffix(".json")
        make_folders(self._disk, os.path.dirname(os.path.abspath(target)))
        write_file(self._disk, target, [saved_execution.render(execution)], durable=True)
        write_file(self._disk, f"{stem}.md", [markdown.render(execution)], durable=True)
        export = Export(path=self._shown(target), at=now(), seq=execution.position.seq, hash=execution.position.hash)
        self._command(plan_id, RecordExport(export=export))
        return [target, f"{stem}.md"]

    def import_plan(self, path: str, *, plan_id: str | None = None, replace: bool = False) -> Saved:
        """Make a checkpoint a plan of this project. Nothing is taken in unless all of it is valid."""
        source = os.path.join(path, "PLAN.json") if os.path.isdir(path) else path
        data = _read(source)
        execution = saved_execution.parse(data)
        if b'"digest"' in data[:200] and not saved_execution.is_intact(data):
            raise UsageError(
                "The checkpoint was changed after it was written",
                facts={"file": self._shown(source)},
                hint="export it again; to take in a changed plan on purpose, save it as a plan file",
                code="checkpoint.changed",
            )
        chosen = plan_id or execution.plan_id
        folder = self.store.folder(chosen)
        current = folder.load() if os.path.isdir(folder.path) else None
        if current is not None and current.position == execution.position:
            return Saved(current, "unchanged", [], [])
        command = ImportPlan(
            plan_id=chosen,
            project_id=self.identify(),
            source=self._shown(source),
            state=execution.state,
            origin=execution.state.project_id,
            at=execution.position if execution.position.seq else None,
            replace=replace,
        )
        with folder.writing() as writer:
            records = writer.execute(command, by=self.by)
            saved = SavedExecution(writer.state, writer.position)  # type: ignore[arg-type]  # just written
        return Saved(saved, "updated" if current else "created", records, self.problems(saved))

    # Identity.

    def identify(self) -> str:
        """The project's id, made once: it survives a move and is never taken from a path."""
        found = self._identity()
        if found:
            return found
        make_folders(self._disk, self.home)
        fresh = os.urandom(8).hex()
        ignore = os.path.join(self.home, ".gitignore")
        if not os.path.exists(ignore):
            write_file(self._disk, ignore, [b"*\n"], durable=False)
        path = os.path.join(self.home, "project.json")
        draft = f"{path}.{os.getpid()}.{fresh}.tmp"
        write_file(self._disk, draft, [msgspec.json.encode({"format": FORMAT, "id": fresh}) + b"\n"], durable=True)
        with suppress(FileExistsError):
            os.link(draft, path)
        self._disk.remove(draft)
        self._disk.sync_folder(self.home)
        return self._identity() or fresh

    def _identity(self) -> str | None:
        try:
            data = _read(os.path.join(self.home, "project.json"))
        except NotFound:
            return None
        try:
            found = msgspec.json.decode(data, type=dict[str, str | int])
        except msgspec.DecodeError as error:
            raise UsageError(
                "project.json cannot be read",
                facts={"reason": error},
                hint="headway doctor --repair",
                code="project.damaged",
            ) from error
        if int(found.get("format", FORMAT)) > FORMAT:
            raise FormatTooNew(
                "This project was written by a newer Headway", hint="use that version; nothing was touched"
            )
        return str(found.get("id", "")) or None

    # Helpers of the above.

    def _command(self, plan_id: str, command: Command) -> SavedExecution:
        with self.folder(plan_id).writing() as writer:
            writer.execute(command, by=self.by)
            return SavedExecution(writer.state, writer.position)  # type: ignore[arg-type]  # it exists

    def _proposal_command(
        self, existing: SavedExecution | None, parsed: ParsedPlan, proposal: Proposal, plan_id: str, take: str
    ) -> Command:
        plan = parsed.plan
        assert plan is not None, "checked by the caller"
        if existing is None:
            return CreatePlan(plan_id=plan_id, project_id=self.identify(), plan=plan, proposal=proposal)
        base = existing.state.proposal
        before = msgspec.json.decode(self.blobs.get(base.blob), type=PlanSpec) if base else PlanSpec(goal=existing.goal)
        return TakeProposal(base=before, plan=plan, proposal=proposal, take=take)

    def _plan_id(self, plan: PlanSpec, plan_id: str | None, name: str) -> str:
        if plan_id and plan.id and plan_id != plan.id:
            raise UsageError(
                f"--plan-id {plan_id} differs from the id in {name}", facts={"id": plan.id}, hint="give one of them"
            )
        return plan.id or plan_id or hash_goal(plan.goal)

    def _read_plan_file(self, path: str) -> tuple[bytes, str]:
        full = path if os.path.isabs(path) else os.path.join(os.getcwd(), path)
        return _read(full), self._shown(full)

    def _default_file(self) -> str | None:
        names = (os.path.join(self.root, name) for name in PLAN_FILES)
        return next((path for path in names if os.path.isfile(path)), None)

    def default_file(self) -> str:
        """The plan file that is meant when none is named."""
        found = self._default_file()
        if found is None:
            raise NotFound(
                "There is no headway.yaml here",
                facts={"project": self.root},
                hint="headway init writes one",
                code="file.none",
            )
        return found

    def _id_in_file(self, path: str) -> str | None:
        data, name = self._read_plan_file(path)
        plain = _ID_LINE.search(data)
        if plain:
            return plain.group(1).decode()
        parsed = parse_plan(data, name=name)
        return self._plan_id(parsed.plan, None, name) if parsed.plan else None

    def _shown(self, path: str) -> str:
        """A path as it is recorded: relative to the project where it is inside, and by its name where it is not."""
        relative = os.path.relpath(os.path.abspath(path), self.root)
        return os.path.basename(path) if relative.startswith("..") else relative

    def _no_plan(self, plan_id: str) -> NotFound:
        import difflib

        near = difflib.get_close_matches(plan_id, self.plan_ids(), n=1)
        return NotFound(
            f"There is no plan {plan_id}",
            facts={"did you mean": near[0]} if near else {},
            hint="headway plans list",
            code="plan.none",
        )


def find_root(start: str, *, home: str = "") -> str:
    """The project root above a folder. The home folder is never one: it would swallow everything below it."""
    git = ""
    folder = start
    while True:
        if folder != home:
            if any(os.path.exists(os.path.join(folder, marker)) for marker in MARKERS) or _has_tool_table(folder):
                return folder
            if not git and os.path.exists(os.path.join(folder, ".git")):
                git = folder
        parent = os.path.dirname(folder)
        if parent == folder:
            return git or start
        folder = parent


def _has_tool_table(folder: str) -> bool:
    try:
        data = _read(os.path.join(folder, "pyproject.toml"))
    except UsageError:
        return False
    try:
        return b"tool.headway" in data and "headway" in tomllib.loads(data.decode()).get("tool", {})
    except (tomllib.TOMLDecodeError, UnicodeDecodeError):
        return False


def _read(path: str) -> bytes:
    try:
        with open(path, "rb") as file:
            return file.read()
    except FileNotFoundError as error:
        raise NotFound(f"There is no file {path}", hint="check the path", code="file.none") from error
    except OSError as error:
        raise UsageError(
            f"{path} cannot be read",
            facts={"reason": error.strerror},
            hint="check its permissions",
            code="file.unreadable",
        ) from error
