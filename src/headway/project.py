"""The façade: one method per thing a user can ask of a project. Every surface calls this and nothing below it."""

from __future__ import annotations

import hashlib
import os
from collections.abc import AsyncIterator, Callable, Collection, Iterator, Sequence
from contextlib import ExitStack, suppress
from datetime import timedelta
from typing import TYPE_CHECKING, Literal, NamedTuple, cast

import msgspec

from headway.choosing import Chooser
from headway.core.codec import START, digest
from headway.core.commands import (
    ChangePlan,
    ClosePlan,
    Command,
    CreatePlan,
    ImportPlan,
    RecordExport,
    RecordLearning,
    ReleaseArtifacts,
    Replan,
    ResetPlan,
    SetProfile,
    SweepClaims,
    TakeProposal,
)
from headway.core.decide import Rejection, decide
from headway.core.events import ArtifactReleased, PlanImported, Record
from headway.core.evolve import apply, evolve
from headway.core.ids import hash_goal
from headway.core.plan import PlanSpec, Profile
from headway.core.state import Export, Position, Proposal, State
from headway.disk import REAL, Disk, boot_id
from headway.errors import DamageError, HeadwayError, NotFound, PlanInvalid, TryLater
from headway.files.blobs import Blobs
from headway.files.given import read_given
from headway.files.identity import HOME, find_root, read_identity, write_identity
from headway.files.observe import Observer
from headway.files.outputs import Outputs
from headway.ledger.recovery import now
from headway.ledger.writer import Writer, rejected
from headway.plan_folder import Notice, PlanFolder, keep_quiet
from headway.projections.saved_execution import SavedExecution
from headway.proposals import base_of, in_full, lost_problems, storable
from headway.store import PlanStore, PlanVersion

if TYPE_CHECKING:
    from headway.core.check import Problem  # what checks a plan is loaded when a plan is checked
    from headway.files.planfile import ParsedPlan  # the parser is loaded only where a file is parsed
    from headway.history.dag import Dag  # the history is loaded by whoever changes or asks for it
    from headway.history.memory import GoalContext
    from headway.history.planning import GoalPlan
    from headway.history.shapes import DagIndex, DagUpdated, GoalDetail, ProjectDag
    from headway.projections.signals import Signal

RESTRUCTURING = (ChangePlan, CreatePlan, Replan, TakeProposal)
"""What may take artifacts, or paths of theirs, out of a plan."""

FOLLOW = 0.1
"""How often, in seconds, somebody who follows a plan looks for more."""
DEAD = "its run ended without a word"


class Saved(NamedTuple):
    """What became of a plan that was handed in."""

    execution: SavedExecution
    outcome: Literal["created", "updated", "unchanged"]
    events: list[Record]
    problems: list[Problem]


class Project:
    """One repository: its plans, their ledgers, its blobs."""

    def __init__(
        self, root: str | os.PathLike[str], *, by: str = "api", disk: Disk = REAL, notice: Notice = keep_quiet
    ) -> None:
        self.root = os.path.abspath(os.fspath(root))
        self.home = os.path.join(self.root, HOME)
        self.by = by
        self._disk = disk
        self.blobs = Blobs(os.path.join(self.home, "blobs"), disk=disk)
        self._notice = notice
        self._dag: Dag | None = None
        plans = os.path.join(self.home, "plans")
        self.store = PlanStore(plans, blobs=self.blobs, disk=disk, notice=notice, watcher=_Watching(self))
        self._chooser = Chooser(self.root, self.store, self.check)
        with suppress(DamageError):  # the ledgers stand without it; a newer format is refused before anything is read
            read_identity(self.home)

    @classmethod
    def locate(
        cls, start: str | os.PathLike[str], *, home: str = "", by: str = "api", notice: Notice = keep_quiet
    ) -> Project:
        """The project that a folder belongs to: the nearest marked one above, else the Git root, else itself."""
        return cls(find_root(os.path.abspath(os.fspath(start)), home=home), by=by, notice=notice)

    # Which plan.

    def plan_ids(self) -> list[str]:
        """The ids of all plans."""
        return self.store.ids()

    def select(self, plan_id: str | None = None, plan_file: str | None = None) -> str:
        """Which plan is meant: by id, by file, by the default file, or the one touched last."""
        return self._chooser.select(plan_id, plan_file)

    def plan_of_goal(self, goal: str) -> str:
        """The saved plan of a goal."""
        return self._chooser.plan_of_goal(goal)

    def unfinished(self) -> str:
        """The plan touched last among those that are not complete or closed."""
        return self._chooser.unfinished()

    def folder(self, plan_id: str) -> PlanFolder:
        """A plan's folder; the plan must exist."""
        folder = self.store.folder(plan_id)
        if not os.path.isdir(folder.path):
            raise self._chooser.no_plan(plan_id)
        return folder

    def default_file(self) -> str:
        """The plan file that is meant when none is named."""
        return self._chooser.default_file()

    def find_default_file(self) -> str | None:
        """The same, or None."""
        return self._chooser.find_default_file()

    def parse(self, data: bytes, name: str, source: str = "") -> ParsedPlan:
        """A plan file, read once however often it is asked about. `source`: the digest of its bytes, if it is known."""
        return self._chooser.parse(data, name, source)

    def read_plan_file(self, path: str) -> tuple[bytes, str]:
        """The bytes of a plan file, and how it is recorded."""
        return read_given(path), self._chooser.shown(path)

    # Looking.

    def show(self, plan_id: str, *, at: int | None = None, thorough: bool = False) -> SavedExecution:
        """A plan now, or as of an earlier event. `thorough`: its ledger is verified from the first line on."""
        folder = self.folder(plan_id)
        found = folder.at(at) if at is not None else folder.load(thorough=thorough)
        if found is None:
            raise self._chooser.no_plan(plan_id)
        return found

    def problems(self, execution: SavedExecution) -> list[Problem]:
        """What keeps a saved plan from being run: what it shows, and what its file said that could not be kept."""
        proposal = execution.state.proposal
        from headway.core.check import Problem

        lost = [Problem(code="plan.draft", message=text) for text in (proposal.problems if proposal else ())]
        return [*lost, *self.check(execution.proposal)]

    def check(self, plan: PlanSpec) -> list[Problem]:
        """Everything that is wrong with a plan, by itself and beside the others of this project."""
        from headway.engine.elsewhere import check_beside_others

        return check_beside_others(plan, plan.id or hash_goal(plan.goal), self.store)

    def log(
        self, plan_id: str, *, first: int = 1, last: int | None = None, naming: Collection[str] = ()
    ) -> Iterator[Record]:
        """What happened to a plan. A damaged ledger is refused before the first event.

        `naming`: only what names one of these ids or types.
        """
        newest = self.show(plan_id, thorough=first == 1).position.seq
        if last is not None and not 0 < last <= newest:
            raise NotFound(
                f"Plan {plan_id} has no event {last}",
                facts={"newest": newest},
                hint=f"headway log --plan-id {plan_id}",
                code="event.none",
            )
        return self.folder(plan_id).history(first, last, naming=naming)

    async def events(self, plan_id: str | None = None, *, since: int = 1) -> AsyncIterator[Signal]:
        """What happened to a plan from an event on, and then what happens, as it happens: `async for`."""
        import asyncio

        from headway.projections.signals import signals

        chosen = plan_id or self.select()
        ledger = self.folder(chosen).ledger()
        seen: object = None
        while True:
            stamp = await asyncio.to_thread(ledger.stamp)
            if stamp == seen:
                await asyncio.sleep(FOLLOW)
                continue
            seen = stamp
            for record in await asyncio.to_thread(list, ledger.history(since)):
                since = record.seq + 1
                for signal in signals(chosen, record):
                    yield signal

    def follow(self, plan_id: str) -> Iterator[Record]:
        """What happened to a plan, and what happens from here on, as it happens."""
        self.show(plan_id, thorough=True)
        return self.folder(plan_id).follow()

    def states(self, plan_id: str, *, last: int | None = None, follow: bool = False) -> Iterator[tuple[State, Record]]:
        """The plan after each event, which is changed in place; with `follow`, of those to come as well."""
        self.log(plan_id, last=last)
        folder = self.folder(plan_id)
        return folder.fold(folder.follow() if follow else folder.history(1, last))

    def versions(self, plan_id: str) -> list[PlanVersion]:
        """Every structure that the plan ever had."""
        self.show(plan_id)
        return self.store.versions(plan_id)

    # Changing.

    def save_plan(self, path: str, *, plan_id: str | None = None, take: str = "", draft: bool = True) -> Saved:
        """Take in a plan file: create its plan, or change the plan by what changed in the file.

        With `draft`, problems are reported and do not prevent saving; without, they refuse it.
        """
        data, name = self.read_plan_file(path)
        parsed = self.parse(data, name)
        if parsed.plan is None or (parsed.problems and not draft):
            raise PlanInvalid(parsed.problems, where=name)
        return self.take_in(
            parsed.plan,
            name=name,
            source=digest(data),
            problems=parsed.problems,
            plan_id=plan_id,
            take=take,
            checked=not parsed.problems,
        )

    def take_in(
        self,
        plan: PlanSpec,
        *,
        name: str,
        source: str,
        problems: Sequence[Problem] = (),
        plan_id: str | None = None,
        take: str = "",
        fresh: bool = False,
        checked: bool = False,
        show: bool = True,
        drop: Sequence[str] | None = None,
    ) -> Saved:
        """Take in a proposal: what changed in it since it was last taken in becomes events, and nothing else does.

        `fresh`: the plan becomes what is proposed, whatever others have made of it since. `checked`: it is known to
        have no problem. `drop`: it leaves out no completed work but this. Without `show`, plan.json and its like are
        left to what follows at once: a run.
        """
        folder, existing, command, blob = self._proposed(plan, name, source, problems, plan_id, take, fresh)
        if command is None:
            return Saved(cast("SavedExecution", existing), "unchanged", [], list(problems))
        if isinstance(command, CreatePlan):
            command = msgspec.structs.replace(command, project_id=self.identify(), sound=checked)
        elif drop is not None:
            command = msgspec.structs.replace(command, drop=tuple(drop))
        self.blobs.put_all((), blob)
        with folder.writing(show=show) as writer:
            self._release_over(folder, writer)
            self._keep_before(writer, [command])
            records = writer.execute(command, by=self.by)
            execution = SavedExecution(writer.state, writer.position)  # type: ignore[arg-type]  # just written
        return Saved(execution, "updated" if existing else "created", records, list(problems))

    def foresee(
        self,
        plan: PlanSpec,
        *,
        name: str,
        source: str,
        problems: Sequence[Problem] = (),
        plan_id: str | None = None,
        take: str = "",
        fresh: bool = False,
    ) -> SavedExecution:
        """The plan as it would be if the proposal were taken in now. Writes nothing."""
        _, existing, command, _ = self._proposed(plan, name, source, problems, plan_id, take, fresh)
        if command is None:
            return cast("SavedExecution", existing)
        events = decide(existing.state if existing else None, command)
        state = existing.state.copy() if existing else None
        end = existing.position if existing else Position(0, START)
        for event in events if isinstance(events, list) else ():
            state = apply(state, Record(end.seq, now(), self.by, event, end.hash, end.hash))
        return SavedExecution(cast("State", state), end)

    def _proposed(
        self,
        plan: PlanSpec,
        name: str,
        source: str,
        problems: Sequence[Problem],
        plan_id: str | None,
        take: str,
        fresh: bool,
    ) -> tuple[PlanFolder, SavedExecution | None, CreatePlan | TakeProposal | None, dict[str, bytes]]:
        """The command that a proposal asks for, allowed by the plan as it is; None where it asks for nothing.

        And the bytes of the proposal, by their name.
        """
        chosen = self._chooser.id_of(plan, plan_id, name, problems)
        plan = storable(in_full(plan, chosen, self.store))
        folder = self.store.folder(chosen)
        existing = self._without_dead(folder, folder.load())
        data = msgspec.json.encode(plan)
        blob = hashlib.sha256(data).hexdigest()
        lost = lost_problems(plan, problems, self.check)
        proposal = Proposal(
            path=name,
            source=source,
            blob=blob,
            problems=tuple(str(p)[:500] for p in lost),
            about=tuple((p.artifact, p.key.partition(".")[0]) for p in lost),
        )
        before = existing.state.proposal if existing else None
        if before and not fresh and msgspec.structs.replace(before, source=source) == proposal:
            return folder, existing, None, {}
        command: CreatePlan | TakeProposal
        if existing is None:
            command = CreatePlan(plan_id=chosen, project_id="", plan=plan, proposal=proposal)
            _refuse(None, command)
        else:
            base = existing.proposal if fresh else base_of(existing, plan, take, self.blobs)
            command = TakeProposal(base=base, plan=plan, proposal=proposal, take=take)
            _refuse(existing.state, command)
        return folder, existing, command, {blob: data}

    def change(self, plan_id: str, change: ChangePlan, profile: Profile | None = None) -> SavedExecution:
        """Change a plan's structure, and its profile if one is given; both are allowed before either is written."""
        commands: list[Command] = [change] if profile is None else [SetProfile(profile=profile), change]
        alive = self._without_dead(self.folder(plan_id), self.show(plan_id))
        for command in commands:
            _refuse(alive.state if alive else None, command)
        return self._execute(plan_id, *commands)

    def set_profile(self, plan_id: str, profile: Profile) -> SavedExecution:
        """Decide (and lock) the plan's concurrency."""
        return self._execute(plan_id, SetProfile(profile=profile))

    def reset(self, plan_id: str, *, ids: Sequence[str] = (), reason: str = "") -> SavedExecution:
        """Withdraw all progress of a plan, or that of some artifacts; structure and history stay."""
        return self._execute(plan_id, ResetPlan(ids=tuple(ids), reason=reason))

    def close_plan(self, plan_id: str, *, reason: str = "") -> SavedExecution:
        """Put a plan away."""
        return self._execute(plan_id, ClosePlan(reason=reason))

    def clean(self, *, days: float, dry_run: bool = False) -> list[str]:
        """Delete plans that are complete or closed, not touched for so long, and proposed by no file; their ids.

        A plan whose file is still there is kept: its next run would take its outputs for somebody else's.
        """
        deleted = []
        for plan_id in self.store.clean(timedelta(days=days), dry_run=True):
            proposal = self.show(plan_id).state.proposal
            if proposal is not None and os.path.exists(os.path.join(self.root, proposal.path.partition(":")[0])):
                continue
            if not dry_run:
                try:
                    self.store.delete(plan_id)
                except TryLater:  # somebody runs it after all
                    continue
            deleted.append(plan_id)
        return deleted

    # Checkpoints.

    def export_plan(self, plan_id: str, path: str, *, format: str = "checkpoint") -> list[str]:
        """Write a checkpoint, or another system's files, for somebody else. The whole ledger is verified first."""
        execution = self.folder(plan_id).load(thorough=True)
        if execution is None:
            raise self._chooser.no_plan(plan_id)
        if format == "rawko":
            from headway.interop import rawko

            others = [self.show(other) for other in self.plan_ids() if other != plan_id]
            written = rawko.write(self._disk, path, [execution, *others], plan_id)
        else:
            from headway.projections import checkpoint

            written = checkpoint.write(self._disk, path, execution)
        seq, hash_ = execution.position
        self._execute(
            plan_id, RecordExport(export=Export(path=self._chooser.shown(written[0]), at=now(), seq=seq, hash=hash_))
        )
        return written

    def import_plan(
        self, path: str, *, plan_id: str | None = None, replace: bool = False, format: str = "checkpoint"
    ) -> Saved:
        """Make a checkpoint, or another system's file, a plan here. Nothing is taken in unless all of it is valid."""
        if format == "rawko":
            from headway.interop import rawko

            given = rawko.read(path)
        else:
            from headway.projections import checkpoint

            given = checkpoint.read(path)
        chosen = plan_id or given.plan_id
        folder = self.store.folder(chosen)
        current = folder.load()
        if current is not None and not replace and self._is_here(folder, current, given):
            return Saved(current, "unchanged", [], [])
        state = given.state
        if state.proposal is not None and not self.blobs.has(state.proposal.blob):
            state = msgspec.structs.replace(state, proposal=self._rebased(given))
        command = ImportPlan(
            plan_id=chosen,
            project_id="",
            source=self._chooser.shown(path),
            state=state,
            origin=state.project_id,
            at=given.position if given.position.seq else None,
            replace=replace,
        )
        _refuse(current.state if current else None, command)
        command = msgspec.structs.replace(command, project_id=self.identify())
        with ExitStack() as stack:
            if current is not None:
                stack.enter_context(folder.idle())
            writer = stack.enter_context(folder.writing())
            records = writer.execute(command, by=self.by)
            execution = SavedExecution(writer.state, writer.position)  # type: ignore[arg-type]  # just written
        return Saved(execution, "updated" if current else "created", records, self.problems(execution))

    def _rebased(self, given: SavedExecution) -> Proposal | None:
        """The proposal of a plan that comes from elsewhere: its bytes stayed there, and what was wrong with it did not.

        Without problems none is needed: a plan file is then compared with nothing, as with a plan that never had one.
        """
        proposal = given.state.proposal
        if proposal is None or not proposal.problems:
            return None
        blob = self.blobs.put(msgspec.json.encode(storable(given.proposal)))
        return msgspec.structs.replace(proposal, source="", blob=blob)

    def _is_here(self, folder: PlanFolder, current: SavedExecution, given: SavedExecution) -> bool:
        """Whether a checkpoint is what this plan is, or was taken in before: there is nothing to take in again."""
        if current.position == given.position:
            return True
        return any(
            isinstance(record.event, PlanImported)
            and (record.event.origin, record.event.at) == (given.state.project_id, given.position)
            and given.position.seq
            for record in folder.history(naming=(PlanImported.type,))
        )

    # History.

    @property
    def dag(self) -> Dag:
        """The history of this project: every goal ever run, and what it made."""
        if self._dag is None:
            from headway.history.dag import Dag

            self._dag = Dag(self.root, self.home, self.store, notice=self._notice)
        return self._dag

    def get_project_dag_index(self) -> DagIndex:
        """All goals ever run, in a line each."""
        return self.dag.index()

    def get_project_dag_full(self) -> ProjectDag:
        """Everything at once: goals, tasks, artifacts, what is outside, and all edges."""
        from headway.history.graph import full_dag

        return full_dag(self.dag)

    def get_goal_details(self, goal_id: str) -> GoalDetail:
        """One goal with its tasks."""
        return self.dag.goal(goal_id)

    def append_goal_to_dag(self, plan_id: str, *, learnings: Sequence[str] = ()) -> GoalDetail:
        """Take a plan into the history now, with what was learned from it. Runs do so by themselves when they end."""
        folder = self.folder(plan_id)
        if learnings:
            self._execute(plan_id, *(RecordLearning(text=text) for text in learnings))
        execution = folder.load()
        if execution is None:
            raise self._chooser.no_plan(plan_id)
        self.dag.append(execution)
        return self.dag.goal(plan_id)

    def plan_goal(self, goal: str | PlanSpec) -> GoalPlan:
        """What exists already, and what of a proposed plan need not be made, for whoever plans a goal."""
        from headway.files.observe import Observer
        from headway.history.planning import Known, plan_goal

        observer = Observer(self.root, {})

        def stands(known: Known) -> bool:
            return not known.path or observer.look(known.path.rstrip("/")).digest.startswith(known.file_hash)

        return plan_goal(goal, self.get_project_dag_full(), stands=stands)

    def get_context_for_goal(
        self, goal: str, budget: int = 1000, *, plan_id: str = "", learnings_only: bool = False
    ) -> GoalContext:
        """What is known that bears on a goal, within so many tokens: learnings, related goals, what exists; each line
        with its source. `plan_id`: the plan that is worked on, whose own learnings come first."""
        from headway.history.memory import recall

        return recall(self.dag, goal, budget, plan_id=plan_id, learnings_only=learnings_only)

    def learn(self, plan_id: str, text: str, *, artifact: str = "") -> SavedExecution:
        """Write down what is worth knowing the next time."""
        return self._execute(plan_id, RecordLearning(text=text, artifact=artifact))

    def on_dag_updated(self, listener: Callable[[DagUpdated], None]) -> Callable[[], None]:
        """Call this whenever this object has brought the history up to date; what is returned ends it."""
        return self.dag.listen(listener)

    # Identity.

    @property
    def project_id(self) -> str:
        """The project's id, or "" before anything was written."""
        return read_identity(self.home)

    def identify(self) -> str:
        """The project's id, made once: it survives a move, and is in the first line of every ledger."""
        return self.project_id or write_identity(
            self._disk, self.home, self.store.recorded_project() or os.urandom(8).hex()
        )

    def execute(self, plan_id: str, *commands: Command, by: str = "", writer: Writer | None = None) -> list[Record]:
        """Carry out commands, in order and in one write; what they caused. The first that is refused is raised.

        `writer`: of somebody who keeps one open, because they have more to do.
        """
        folder = self.folder(plan_id)
        if writer is None:
            with folder.writing() as own:
                return self.execute(plan_id, *commands, by=by, writer=own)
        self._release_dead(folder, writer, writer.state)
        self._keep_before(writer, commands)
        records: list[Record] = []
        for outcome in writer.execute_all(commands, by=by or self.by):
            if isinstance(outcome, HeadwayError):
                raise outcome
            records += outcome
        return records

    # What the above have in common.

    def _execute(self, plan_id: str, *commands: Command) -> SavedExecution:
        folder = self.folder(plan_id)
        with folder.writing() as writer:
            self._release_over(folder, writer)
            self._keep_before(writer, commands)
            for command in commands:
                writer.execute(command, by=self.by)
            return SavedExecution(writer.state, writer.position)  # type: ignore[arg-type]  # it exists

    def _release_dead(self, folder: PlanFolder, writer: Writer, known: State | None = None) -> None:
        """Claims of a run that was killed hold nobody up: whoever finds it gone gives them back."""
        state = known or writer.catch_up()
        dead = folder.dead_claims(state) if state is not None else ()
        if dead and state is not None:  # each by its token: what somebody has claimed since then stays theirs
            gone = [ReleaseArtifacts(ids=(a,), reason=DEAD, token=state.claims[a].seq) for a in dead]
            writer.execute_all(gone, by=self.by)

    def _release_over(self, folder: PlanFolder, writer: Writer) -> None:
        """As above, and claims whose lease ran out: whoever changes the plan need not wait for their holders."""
        self._release_dead(folder, writer)
        if writer.state is not None and writer.state.claims:
            writer.execute(SweepClaims(now=now()), by=self.by)

    def _keep_before(self, writer: Writer, commands: Sequence[Command]) -> None:
        """What attempts without an end have left at paths that the plan is about to lose is on record first."""
        state, changing = writer.state, [command for command in commands if isinstance(command, RESTRUCTURING)]
        is_cut_off = state is not None and (
            state.uncertain or (state.run is not None and state.run.status == "running")
        )
        if state is None or not changing or not is_cut_off:
            return
        from headway.engine.parting import kept_before  # for the few that change a plan behind a run that was cut off

        def outputs() -> Outputs:
            return Outputs(self.root, self.blobs, Observer(self.root))

        for command in changing:
            for preserve in kept_before(state, command, boot_id(), outputs):
                writer.execute(preserve, by=self.by)

    def _without_dead(self, folder: PlanFolder, found: SavedExecution | None) -> SavedExecution | None:
        """A plan as it is once claims of a dead run, or whose lease ran out, are given back. Writes nothing."""
        if found is None or not found.state.claims:
            return found
        moment = now()
        over = (a for a, claim in found.state.claims.items() if claim.lease and claim.lease < moment)
        dead = tuple(dict.fromkeys((*folder.dead_claims(found.state), *over)))
        if not dead:
            return found
        event = ArtifactReleased(ids=dead, reason=DEAD)
        seq, hash_ = found.position
        return SavedExecution(evolve(found.state, Record(seq, now(), self.by, event, hash_, hash_)), found.position)


class _Watching:
    """Brings the history up to date after a write, and loads what does so only then."""

    def __init__(self, project: Project) -> None:
        self._project = project

    def began(self, plan_id: str) -> None:
        self._project.dag.began(plan_id)

    def projected(self, execution: SavedExecution) -> None:
        self._project.dag.projected(execution)


def _refuse(state: State | None, command: Command) -> None:
    """Raise what forbids this command, before anything is written for it. It is decided again under the lock."""
    outcome = decide(state, command)
    if isinstance(outcome, Rejection):
        raise rejected(outcome)
