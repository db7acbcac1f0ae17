"""Making what a plan asks for, seen from outside: take in its file, judge it, run it, say why.

`Project` keeps plans, `Work` makes them, `Doctor` mends them.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec

from headway.core.codec import digest
from headway.core.commands import AcceptOutput, ChangePlan, PreserveEdit
from headway.core.events import ArtifactCompleted, ArtifactReleased, ArtifactRemoved, EditPreserved, OutputAccepted
from headway.core.ids import as_word
from headway.core.plan import ArtifactSpec, PlanSpec, Replanning, Settings
from headway.core.state import Completion, Failure, Output, State
from headway.engine import prompts
from headway.engine.asking import Question, clock
from headway.engine.judge import Judge
from headway.engine.judged import Judged
from headway.engine.keeping import is_ours_beside
from headway.engine.result import Options, Reporter, RunResult
from headway.engine.selecting import made_as
from headway.engine.session import Session
from headway.engine.stamping import PLAN_FILES
from headway.errors import BlobDamaged, HeadwayError, NotFound, PlanInvalid, Rejected, UsageError
from headway.files.blobs import Freed
from headway.files.outputs import Outputs
from headway.project import Project
from headway.projections.saved_execution import SavedExecution
from headway.proposals import base_of

if TYPE_CHECKING:
    from headway.core.difference import PlanDifference
    from headway.engine.gc import LeftFile
    from headway.engine.planners import Planner  # only named in annotations
    from headway.engine.preview import PlanPreview  # loaded when somebody wants to see one
    from headway.engine.prompts import Question as PromptQuestion

RECALLED = 600
"""How many tokens of what is known from before a preview holds."""

LISTED = 5
"""So many events are named where more of them would do."""


class Meant(NamedTuple):
    """The plan that somebody means: saved, and perhaps proposed anew by a file or by Python code."""

    plan_id: str
    plan: PlanSpec | None = None
    name: str = ""
    source: str = ""
    fresh: bool = False
    functions: Mapping[str, Callable[..., Any]] | None = None
    execution: SavedExecution | None = None
    removed: tuple[ArtifactSpec, ...] = ()
    """What the proposal took out of the plan, once it was taken in."""
    given_up: Mapping[str, int] = {}
    """What somebody had accepted of that, by the event that recorded it."""


class Work:
    """Runs the plans of one project."""

    def __init__(self, project: Project, *, environ: Mapping[str, str] | None = None) -> None:
        self.project = project
        self.session = Session(
            project.root,
            project.home,
            project.store,
            environ=environ if environ is not None else dict(os.environ),
            by=project.by,
        )

    def meant(self, file: str | None, plan_id: str | None, *, fresh: bool = False) -> Meant:
        """The plan that is meant, with what its file proposes if that changed. A file with problems is refused.

        `fresh`: the plan is to become what its file says, whatever others have made of it since.
        """
        path = file or (None if plan_id else self.project.find_default_file())
        chosen = self.project.select(plan_id, file)
        if path is None:
            return Meant(chosen, execution=self.project.store.folder(chosen).load())
        data, name = self.project.read_plan_file(path)
        source = digest(data)
        saved = self.project.store.folder(chosen).load()
        known = saved.state.proposal if saved is not None else None
        is_known = known is not None and (known.path, known.source) == (name, source) and not known.problems
        if is_known and not fresh:
            return Meant(chosen, execution=saved)
        parsed = self.project.parse(data, name, source)
        if parsed.plan is None or parsed.problems:
            raise PlanInvalid(parsed.problems, where=name)
        return Meant(chosen, parsed.plan, name, source, fresh)

    def has(self, meant: Meant, word: str) -> bool:
        """Whether a word names something of a plan: an artifact, a unit or an output."""
        saved = meant.execution or self.project.store.folder(meant.plan_id).load()
        known = saved.state.artifacts.values() if saved is not None else ()
        proposed = meant.plan.artifacts if meant.plan is not None else ()
        return any(word in (spec.id, spec.unit, *spec.produces) for spec in (*known, *proposed))

    def behind(self, meant: Meant) -> str:
        """Why a plan may not be what whoever wrote it means by now, where nobody was asked; or ""."""
        taken = meant.execution.state.proposal if meant.execution is not None else None
        if taken is None or meant.functions is not None:
            return ""
        if not taken.path.endswith(PLAN_FILES):  # what it would build is known once it has run
            return "The program that builds this plan was not run: the plan is as it was last built."
        with suppress(HeadwayError, OSError):
            data, _ = self.project.read_plan_file(os.path.join(self.project.root, taken.path))
            if digest(data) != taken.source:
                return f"{taken.path} has changed since it was taken in. Next: headway run --plan {as_word(taken.path)}"
        return ""

    def take_in(self, meant: Meant, *, take: str = "", variables: Mapping[str, str] | None = None) -> str:
        """Take in what is proposed, and set variables; the plan's id."""
        return self.taken_in(meant, take=take, variables=variables, show=True).plan_id

    def taken_in(
        self, meant: Meant, *, take: str = "", variables: Mapping[str, str] | None = None, show: bool = False
    ) -> Meant:
        """Take in what is proposed, and set variables; the plan that is then meant, ready to be run."""
        if meant.plan is not None:
            given: dict[str, Any] = {"name": meant.name, "source": meant.source, "plan_id": meant.plan_id, "take": take}
            given |= {"fresh": meant.fresh, "checked": True, "show": show}
            try:
                saved = self.project.take_in(meant.plan, **given)
            except Rejected as refusal:  # somebody else created it a moment ago: then it is looked at once more
                if refusal.error_code != "plan.exists":
                    raise
                saved = self.project.take_in(meant.plan, **given)
            meant = Meant(saved.execution.plan_id, functions=meant.functions, execution=saved.execution)
            if removed := [a for r in saved.events if isinstance(r.event, ArtifactRemoved) for a in r.event.ids]:
                with suppress(HeadwayError):  # what a repair set aside cannot be told any more
                    before = self.project.show(meant.plan_id, at=saved.events[0].seq - 1).state
                    known = [a for a in removed if a in before.artifacts]
                    done = {a: before.completed[a] for a in known if a in before.completed}
                    meant = meant._replace(
                        removed=tuple(before.artifacts[a] for a in known),
                        given_up={a: found.seq for a, found in done.items() if found.how == "accepted"},
                    )
        if variables:
            settings = self._with_variables(self.project.show(meant.plan_id), variables)
            self.project.change(meant.plan_id, ChangePlan(settings=settings, reason="--set"))
            meant = meant._replace(execution=None)
        return meant

    def run(
        self,
        plan_id: str,
        options: Options | None = None,
        *,
        reporter: Reporter | None = None,
        functions: Mapping[str, Callable[..., Any]] | None = None,
        loop: Any = None,
        stop: Callable[[], str] = lambda: "",
        execution: SavedExecution | None = None,
        agree: Callable[[Question], bool] | None = None,
        warn: Callable[[str], None] = lambda _: None,
        explain: Callable[[Sequence[PromptQuestion]], str | None] = lambda _: None,
        replan: Planner | None = None,
    ) -> RunResult:
        """Make what is stale. If artifacts fail for good and a planner may be asked, go on with its better plan."""
        earlier: list[RunResult] = []
        while True:
            result = self.session.run(
                plan_id,
                options or Options(),
                reporter=reporter,
                functions=functions,
                loop=loop,
                stop=stop,
                execution=None if earlier else execution,
                agree=agree,
                warn=warn,
                explain=explain,
            )
            if result.status != "failed" or not result.failed or not self._replan(plan_id, result, replan):
                return result.after(earlier)
            earlier.append(result)

    def _replan(self, plan_id: str, result: RunResult, replan: Planner | None) -> bool:
        """Ask the planner that was given, or that the plan names; whether there is a new version to make."""
        policy = self.project.show(plan_id).state.settings.replan or Replanning()
        planner = replan
        if planner is None and policy.planner:
            from headway.engine.recipes.function import load_function

            planner = load_function(self.project.root, policy.planner)
        if planner is None:
            return False
        from headway.planning import Planning  # most runs fail nothing for good

        return Planning(self.project).ask(plan_id, planner, result.failed, most=policy.most)

    def judge(
        self,
        meant: Meant,
        options: Options | None = None,
        *,
        at: int | None = None,
        take: str = "",
        variables: Mapping[str, str] | None = None,
    ) -> Judged:
        """Judge a plan as it would be run now: with what its file proposes, and variables set. Writes nothing."""
        execution = None
        if meant.plan is not None and at is None:
            execution = self.foreseen(meant, take)
        if variables:
            execution = execution or self.project.show(meant.plan_id)
            settings = self._with_variables(execution, variables)
            state = msgspec.structs.replace(execution.state, settings=settings)
            execution = SavedExecution(state, execution.position)
        return self.session.judge(meant.plan_id, options=options, functions=meant.functions, at=at, execution=execution)

    def foreseen(self, meant: Meant, take: str = "") -> SavedExecution:
        """The plan as it would be once its file is taken in."""
        assert meant.plan is not None, "something is proposed"
        return self.project.foresee(
            meant.plan, name=meant.name, source=meant.source, plan_id=meant.plan_id, take=take, fresh=meant.fresh
        )

    def preview(
        self,
        meant: Meant,
        options: Options | None = None,
        *,
        at: int | None = None,
        take: str = "",
        variables: Mapping[str, str] | None = None,
    ) -> PlanPreview:
        """What `run` with these options would do, and what that would take."""
        judged = self.judge(meant, options, at=at, take=take, variables=variables)
        found = self._preview(meant, judged, options or Options())
        return (
            msgspec.structs.replace(found, known=self._known(judged.execution.state, found.items))
            if found.items
            else found
        )

    def made_before(self, meant: Meant) -> dict[str, str]:
        """Stale artifacts that need not be made: which goal once made them, from the same things in the same way."""
        judged = self.judge(meant)
        judge, found = judged.judge, {}
        for artifact_id, reason in judged.reasons.items():
            spec = judge.state.artifacts[artifact_id]
            waits = any(r in judged.reasons and not judged.reasons[r].fresh for r in spec.requires)
            if reason.fresh or waits or not spec.has_recipe or spec.effects or judge.unusable(artifact_id) is not None:
                continue
            for earlier in judge.earlier(artifact_id):
                if all(map(judge.outputs.readable, earlier.outputs)):
                    found[artifact_id] = f"made before by goal {earlier.plan} (event {earlier.seq})"
                    break
        return found

    def _preview(self, meant: Meant, judged: Judged, options: Options) -> PlanPreview:
        from headway.engine.estimates import Durations
        from headway.engine.preview import foresee

        state = judged.execution.state
        previous = judged.execution if meant.plan is None else self.project.store.folder(meant.plan_id).load()
        jobs = self.session.jobs(state, options)
        durations = Durations(self.project.store, state)
        found = foresee(judged, durations, jobs=jobs, previous=previous, now=clock())
        decide = prompts.decision(judged.judge, judged.selected, options)
        return msgspec.structs.replace(found, decide=decide) if decide else found

    def _known(self, state: State, items: Collection[str]) -> tuple[dict[str, Any], ...]:
        """What is known from before that bears on what is to be made. Nothing depends on it.

        What runs learned about artifacts that are not to be made is left out; what people wrote down is not.
        """
        from headway.engine import lessons

        others = {
            f"{state.plan_id}:{known.artifact}, {known.by}, {known.at[:10]}"
            for known in state.learnings
            if known.by == lessons.BY and known.artifact not in items
        }
        with suppress(HeadwayError, OSError):
            lines = self.project.get_context_for_goal(state.goal, RECALLED, plan_id=state.plan_id).lines
            return tuple(line._asdict() for line in lines if line.source not in others)
        return ()

    def diff_plan(self, meant: Meant, *, take: str = "") -> tuple[PlanDifference, int] | None:
        """How the plan differs from what it was when it was last run (or saved), as of which event; None: no such."""
        from headway.core.difference import compare_plans

        saved = self.project.store.folder(meant.plan_id).load()
        if saved is None:
            return None
        now = self.foreseen(meant, take) if meant.plan is not None else saved
        run = saved.state.run
        before = self.project.show(meant.plan_id, at=run.seq) if run is not None else saved
        return compare_plans(before.proposal, now.proposal), before.position.seq

    def status(self, meant: Meant, *, at: int | None = None, take: str = "") -> dict[str, Any]:
        """Where a plan stands."""
        from headway.engine.status import nobody_gone, status_document  # for those who look, as the next
        from headway.holding import gone

        return status_document(self.judge(meant, at=at, take=take), gone if at is None else nobody_gone)

    def why(self, meant: Meant, word: str, *, at: int | None = None, take: str = "") -> dict[str, Any]:
        """Why an artifact is fresh or stale, and what it would take to make it and what is behind it.

        Of several, as of a unit, all are `named`, and the rest is about the first of them that is stale for its own.
        """
        from headway.engine.status import first_cause, named_reasons, nobody_gone, why_document
        from headway.holding import gone

        judged = self.judge(meant, at=at, take=take)
        named = self.session.resolve(judged.execution.state, [word])
        artifact_id = first_cause(judged.reasons, named)
        document = why_document(judged, artifact_id, gone if at is None else nobody_gone)
        document["named"] = named_reasons(judged, named) if len(named) > 1 else {}
        document["cost"] = self._cost(meant, judged, artifact_id)
        if document["error"]:
            document["error"]["output"] = self._printed(judged.execution.state.failed[artifact_id])
        cut_off = document["reason"]["code"] == "interrupted"
        document["released"] = self._released(meant.plan_id, artifact_id, at) if cut_off else None
        return document

    def _cost(self, meant: Meant, judged: Judged, artifact_id: str) -> dict[str, Any] | None:
        """What making it takes, alone and with everything before and behind it that is stale: at most."""
        judge = judged.judge
        if judged.reasons[artifact_id].fresh or judge.graph[artifact_id].gathers:  # it follows from what it gathers
            return None
        around = {*judge.order_of([artifact_id]), *judge.order_behind([artifact_id])}
        preview = self._preview(meant, judged._replace(selected=around), Options())
        return {
            "own": preview.items[artifact_id].to_dict()["estimate"],
            "action": preview.items[artifact_id].action,
            "artifacts": len(preview.items),
            "coming": preview.coming.at_most,
            **preview.total._asdict(),
            "ms": preview.total.ms._asdict(),
        }

    def _released(self, plan_id: str, artifact_id: str, at: int | None) -> str | None:
        """Why it was last given back without an end: it asked to be tried later, say."""
        for record in reversed(list(self.project.log(plan_id, last=at, naming=(artifact_id,)))):
            if isinstance(record.event, ArtifactReleased) and artifact_id in record.event.ids:
                return record.event.reason
        return None

    def _printed(self, failure: Failure) -> str:
        """The last lines that a failed attempt printed."""
        for name in (failure.stderr, failure.stdout):
            with suppress(BlobDamaged):
                text = self.project.blobs.get(name).decode("utf-8", "replace") if name else ""
                lines = list(_without_own_frames(text.rstrip().splitlines()))
                if lines:
                    return "\n".join(lines[-20:])
        return ""

    def accept(self, plan_id: str, words: Sequence[str], *, everything: bool = False, reason: str = "") -> list[str]:
        """What is on disk counts as the output of these artifacts, also where they were never made."""
        return self.session.accept(plan_id, words, everything=everything, reason=reason)

    def free_space(self, *, keep_days: float, dry_run: bool = False) -> Freed:
        """Free the space of blobs that nothing needs any more, and of files that killed processes left half-written."""
        from headway.engine.gc import free_space, sweep

        if not dry_run:
            sweep(self.project.store, self.project.root, self.project.home)
        return free_space(self.project.store, keep_days=keep_days, dry_run=dry_run)

    def left_files(self, plan_id: str = "") -> list[LeftFile]:
        """Files that this plan, or any, made and that no plan makes any more."""
        from headway.engine.gc import left_files

        return [left for left in left_files(self.project.store, self.project.root) if plan_id in ("", left.plan)]

    def variables(self, meant: Meant) -> list[str]:
        """The names of the plan's variables, as its file would have them."""
        saved = None if meant.plan is not None else meant.execution or self.project.store.folder(meant.plan_id).load()
        settings = (
            meant.plan.settings if meant.plan is not None else saved.state.settings if saved is not None else None
        )
        return list(settings.vars) if settings is not None else []

    def files_of(self, meant: Meant) -> list[str]:
        """Files of what a proposal took out of the plan: those that are there and that nothing else makes."""
        artifacts = meant.execution.state.artifacts.values() if meant.execution is not None else ()
        made = {path for spec in artifacts for path in (*spec.produces, *spec.modifies)}
        found = (path for spec in meant.removed for path in spec.produces if path not in made)
        return [path for path in found if os.path.lexists(os.path.join(self.project.root, path))]

    def remove_left_files(self, paths: Iterable[str]) -> None:
        """Delete files that nothing makes any more."""
        for path in paths:
            with suppress(FileNotFoundError):
                os.remove(os.path.join(self.project.root, path))

    def reset(
        self, plan_id: str, words: Sequence[str], *, reason: str = "", archived: bool = False
    ) -> tuple[list[str], str]:
        """Withdraw progress of artifacts, units or pipelines (all, if none are named); what is to be made, and where
        it was put.

        `archived`: what they made and their phase ledgers are put away first, and then removed.
        """
        state = self.project.show(plan_id).state
        ids = self.session.resolve(state, words) if words else list(state.artifacts)
        to_make = [a for a in ids if not state.artifacts[a].gathers] or ids
        if not archived:
            self.project.reset(plan_id, ids=ids if words else (), reason=reason)
            return to_make, ""
        from headway.engine.archive import archive, own_files  # few ask for it
        from headway.projections.phases import unit_document

        units = dict.fromkeys(state.artifacts[a].unit for a in ids if state.artifacts[a].unit)
        documents = {
            f".headway/phases/{unit}.json": msgspec.json.format(msgspec.json.encode(unit_document(state, unit)))
            for unit in units
        }
        name = "".join(c if c.isalnum() or c in "-_" else "-" for c in (words[0] if words else plan_id))[:40]
        kept = archive(self.project.root, self.project.home, name, state, ids, documents)
        own = own_files(self.project.root, state, ids)
        why = f"{reason}; archived in {kept.path}".removeprefix("; ")
        self.project.reset(plan_id, ids=ids if words else (), reason=why)
        self.remove_left_files(own)
        return to_make, kept.path

    def phases(self, plan_id: str, unit: str, *, at: int | None = None) -> dict[str, Any]:
        """The phase ledger of a unit."""
        from headway.core.nearest import Nearest
        from headway.projections.phases import pipelines_of, unit_document

        execution = self.project.show(plan_id, at=at)
        if not pipelines_of(execution.state, unit):
            units = [name for expansion in execution.state.units.values() for name in expansion.units]
            of_phase = unit.rpartition("/")[0]
            near = of_phase if of_phase in units else Nearest(units).of(unit)
            raise NotFound(
                f"Plan {plan_id} has no unit {unit}",
                facts={"did you mean": near} if near else {},
                hint=f"headway phases {as_word(near)}" if near else "headway status shows units and phases",
                code="unit.unknown",
            )
        return unit_document(execution.state, unit, seq=execution.position.seq)

    def restore(self, plan_id: str, word: str, *, at: int | None = None, reason: str = "") -> dict[str, Any]:
        """Bring the output of an earlier completion back; recorded as an acceptance. What was there is kept.

        A file that others have changed after it stays as they left it: the next run judges them by what was accepted.
        What somebody wrote that can be no output, a folder in the place of a file, or at a path that is no output's any
        more, or that does not stand its check, is brought back and not accepted.
        """
        judged = self.session.judge(plan_id, writable=True)
        state, judge = judged.execution.state, judged.judge
        artifact_id = made_as(state, self.session.resolve(state, [word]))[0]
        outputs = judge.outputs
        earlier, is_edit = self._earlier(plan_id, artifact_id, at, judge)
        if not all(outputs.readable(output) for output in earlier.outputs):
            raise NotFound(
                f"The bytes of {artifact_id} at event {earlier.seq} are not here any more",
                facts={"freed": "by gc, if they were older than it keeps; else headway doctor tells"},
                hint=f"headway restore {as_word(artifact_id)} --at SEQ brings another one back; headway log names them",
                code="restore.freed",
            )
        spec = state.artifacts[artifact_id]
        paths = {*spec.produces, *spec.modifies}
        is_own = any(output.path in (paths or {""}) for output in earlier.outputs)
        later = {o.path: stages for o in earlier.outputs if (stages := judge.stages.later(artifact_id, o.path))}
        found = {"artifact": artifact_id, "seq": earlier.seq, "paths": [o.path for o in earlier.outputs if o.path]}
        found["later"] = list(dict.fromkeys(stage for stages in later.values() for stage in stages))
        with self.project.folder(plan_id).writing() as writer:
            own = [o.path for o in earlier.outputs if o.path]
            outputs.sweep(own, lambda path, digest: is_ours_beside(judge, artifact_id, path, digest))
            kept = outputs.set_aside(o.path for o in earlier.outputs if o.path)
            unnamed = tuple(o for o in kept if not judge.is_replaceable(artifact_id, o.path, o.digest))
            edited = next((o.path for o in unnamed if o.path in later), "")
            if edited:  # which would count as decided about
                raise UsageError(
                    f"{edited} was edited, after {later[edited][-1]} left it",
                    hint="headway run --accept-edits, or --discard-edits, decides about that first",
                    code="restore.edited",
                )
            if unnamed:
                writer.execute(PreserveEdit(id=artifact_id, outputs=unnamed), by=self.project.by)
            outputs.restore(earlier.outputs)
            why = reason or f"restored from event {earlier.seq}"
            if is_own and not paths:
                fp = judge.fingerprint(artifact_id)
                command = AcceptOutput(id=artifact_id, outputs=earlier.outputs, fp=fp, reason=why)
                writer.execute(command, by=self.project.by)
        if is_own and paths:
            try:
                brought = [o for o in earlier.outputs if o.path in later]
                self.session.accept(plan_id, [artifact_id], reason=why, brought=brought)
            except HeadwayError as refusal:
                misfits = any((o.kind == "tree") != o.path.endswith("/") for o in earlier.outputs)
                if is_edit and (misfits or refusal.error_code in ("output.outside", "accept.verify")):
                    return found | {"accepted": False}
                is_back = self._put_back(outputs, [o.path for o in earlier.outputs], kept)
                back = "all is as it was" if is_back else "what stood there is kept (headway log)"
                refusal.hint = f"{back}; headway restore {as_word(artifact_id)} --at SEQ brings another one back"
                raise
            self._put_back(outputs, later, kept)
        return found | {"accepted": is_own}

    def _put_back(self, outputs: Outputs, paths: Iterable[str], kept: Iterable[Output]) -> bool:
        """These paths are again what they were when it was kept, or nothing; whether that could be done."""
        paths = set(paths)
        for path in paths:
            outputs.remove(path)
        return outputs.restore([output for output in kept if output.path in paths])

    def _earlier(self, plan_id: str, artifact_id: str, at: int | None, judge: Judge) -> tuple[Completion, bool]:
        """What to go back to: the newest bytes as of an event, or the newest that differ from what is on disk; where
        others have changed a file since, from what it left.

        Made, accepted, or written by somebody and set aside (an edit, which is told as well): whatever was once
        recorded at its paths counts; of an edit, what stood at a path that is nobody's now counts, too.
        """
        if at is not None:
            self.project.log(plan_id, first=at, last=at)  # refused where there is no such event
        specs = judge.state.artifacts
        own = {*specs[artifact_id].produces, *specs[artifact_id].modifies} or {""}
        others = {path for a, spec in specs.items() if a != artifact_id for path in (*spec.produces, *spec.modifies)}
        known: list[tuple[Completion, bool]] = []
        for record in self.project.log(plan_id):
            event, is_edit = record.event, isinstance(record.event, EditPreserved)
            if isinstance(event, (ArtifactCompleted, OutputAccepted, EditPreserved)) and event.id == artifact_id:
                left = (o for o in event.outputs if is_edit and o.path and o.path not in others)
                outputs = tuple(o for o in event.outputs if o.path in own) or tuple(left)
                if outputs:
                    known.append((Completion(seq=record.seq, at=record.ts, outputs=outputs), is_edit))
        for found in reversed([done for done in known if at is None or done[0].seq <= at]):
            outputs = found[0].outputs
            if at is not None or any(o.path and _standing(judge, artifact_id, o.path) != o.digest for o in outputs):
                return found
        raise NotFound(
            f"There is no earlier output of {artifact_id}" + (f" as of event {at}" if at else " that differs"),
            facts={"recorded at": named_events([done.seq for done, _ in known]) or "no event so far"},
            hint="headway log shows what was made, accepted or set aside, and when",
            code="restore.none",
        )

    def _with_variables(self, plan: SavedExecution, variables: Mapping[str, str]) -> Settings:
        """A plan's settings with variables as somebody typed them: text where its file has text."""
        state = plan.state
        unknown = [name for name in variables if name not in state.settings.vars]
        if unknown:
            raise UsageError(
                f"The plan has no variable {unknown[0]}",
                facts={"its variables": ", ".join(state.settings.vars) or "none"},
                hint="declare it under vars: in the plan file",
                code="vars.unknown",
            )
        like = state.settings.vars | base_of(plan, plan.proposal, "file", self.project.blobs).settings.vars
        typed = {name: text if isinstance(like[name], str) else _read(text) for name, text in variables.items()}
        changed: Settings = msgspec.structs.replace(state.settings, vars={**state.settings.vars, **typed})
        return changed


def _standing(judge: Judge, artifact_id: str, path: str) -> str:
    """The digest of what stands for an artifact at a path: what is on disk, or what it left if others went on there."""
    if not judge.stages.later(artifact_id, path):
        return judge.observer.look(path.rstrip("/")).digest
    output = judge.stages.output_of(artifact_id, path)
    return output.digest if output is not None else ""


def named_events(seqs: Sequence[int]) -> str:
    """The newest of some events, and whether there are more."""
    return f"{'…, ' if len(seqs) > LISTED else ''}{', '.join(f'event {seq}' for seq in seqs[-LISTED:])}"


def _read(text: str) -> Any:
    """What a plan file would make of a value: a number, say; what it could make nothing of is text."""
    from headway.files.planfile import parse_plan

    document = f"goal: g\nvars:\n  value: {text}\nartifacts: {{a: {{}}}}\n"
    plan, problems = parse_plan(document.encode("utf-8", "surrogateescape"), name="set.yaml", check=lambda _: [])
    found = plan.settings.vars if plan is not None and not problems else {}
    return text if found.get("value") is None or len(found) > 1 else found["value"]


_HERE = f'  File "{os.path.dirname(os.path.abspath(__file__))}{os.sep}'


def _without_own_frames(lines: Iterable[str]) -> Iterator[str]:
    """A traceback without Headway's part in it: whoever wrote the function looks for theirs."""
    inside = False
    for line in lines:
        inside = line.startswith(_HERE) or (inside and line.startswith("    "))
        if not inside:
            yield line
