"""Changing a plan on purpose: add, edit, move and remove artifacts, replan, approve, reject; who did it, and why.

Rules are core/decide's. What a planner is asked, and how its answer is read, is engine/planners.py's.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from headway.core import commands as cmd
from headway.core.approval import is_open, plan_hash
from headway.core.decide import decide
from headway.core.difference import compare_plans
from headway.core.events import Record
from headway.core.evolve import apply
from headway.core.ids import name_elsewhere
from headway.core.plan import ArtifactSpec, PlanSpec
from headway.core.state import Approval, State
from headway.engine.growth import foresee
from headway.engine.imports import words_of
from headway.engine.planners import Patch, PlanFailure, Planner, as_patch, change_of
from headway.errors import HeadwayError, NotFound, PlanInvalid, UsageError
from headway.files.observe import Observer
from headway.files.outputs import Outputs
from headway.files.plan_keys import ARTIFACT_KEYS
from headway.project import Project
from headway.projections.saved_execution import SavedExecution, profile_to_dict

ELSEWHERE = frozenset({"plan.missing", "plan.self", "plan.cycle", "plan.placeholder", "plan.producers", "plan.output"})
"""Problems that only the plan as a whole can have, or not have: whoever takes the change in looks for them."""


class Planning:
    """Changes to the plans of one project, by somebody."""

    def __init__(self, project: Project, *, by: str = "") -> None:
        self._project = project
        self._by = by or project.by

    # Editing.

    def add(self, plan_id: str, spec: ArtifactSpec, *, after: str | None = None, reason: str) -> SavedExecution:
        """One more artifact."""
        return self._change(plan_id, cmd.ChangePlan(add=(spec,), after=after, reason=reason))

    def edit(self, plan_id: str, artifact_id: str, fields: Mapping[str, Any], *, reason: str) -> SavedExecution:
        """An artifact is to be something else, in these fields."""
        spec = self._spec(plan_id, artifact_id)
        changed: ArtifactSpec = msgspec.structs.replace(spec, **dict(fields))
        return self._change(plan_id, cmd.ChangePlan(update=(changed,), reason=reason))

    def move(self, plan_id: str, ids: Sequence[str], *, after: str | None = None, reason: str) -> SavedExecution:
        """These artifacts now stand behind another one, or first."""
        return self._change(plan_id, cmd.ChangePlan(move=tuple(ids), after=after, reason=reason))

    def remove(self, plan_id: str, ids: Sequence[str], *, unfinished: bool = False, reason: str) -> SavedExecution:
        """These artifacts leave the plan; `unfinished`: also if they are not done."""
        return self._change(plan_id, cmd.ChangePlan(remove=tuple(ids), unfinished=unfinished, reason=reason))

    def _change(self, plan_id: str, change: cmd.ChangePlan) -> SavedExecution:
        if not change.reason.strip():
            raise UsageError("A change of the plan needs a reason", hint="--reason TEXT", code="edit.reason")
        command = msgspec.structs.replace(change, strict=True)
        self._refuse_across(plan_id, command)
        self._project.execute(plan_id, command, by=self._by)
        return self._project.show(plan_id)

    def _refuse_across(self, plan_id: str, command: cmd.Command) -> None:
        """A change after which this plan and others would require each other in a circle, or it itself.

        Rules know one plan at a time: so this is looked at before, and by every run once more.
        """
        now = self._project.show(plan_id)
        events = decide(now.state, command)
        if not isinstance(events, list):
            return  # a rule forbids it, and says so
        state, (seq, hash_) = now.state.copy(), now.position
        for event in events:
            state = apply(state, Record(seq, state.updated_at, self._by, event, hash_, hash_))
        after = SavedExecution(state, now.position).proposal
        if not any(name_elsewhere(required) for spec in after.artifacts for required in spec.requires):
            return
        known = {(p.code, p.artifact, p.value) for p in self._project.check(now.proposal)}
        for problem in self._project.check(after):
            if (problem.code, problem.artifact, problem.value) not in known:
                raise UsageError(f"The plan would not hold: {problem.message}", hint=problem.hint, code=problem.code)

    def _spec(self, plan_id: str, artifact_id: str) -> ArtifactSpec:
        artifacts = self._project.show(plan_id).state.artifacts
        if artifact_id not in artifacts:
            from headway.core.nearest import Nearest

            near = Nearest(list(artifacts)).of(artifact_id)
            raise NotFound(
                f"Plan {plan_id} has no artifact {artifact_id}",
                facts={"did you mean": near} if near else {},
                hint=f"headway plans show {plan_id} lists them",
                code="artifact.unknown",
            )
        return artifacts[artifact_id]

    # Replanning.

    def replan(
        self, plan_id: str, answer: Any, *, reason: str, drop: Sequence[str] = (), parent: int | None = None
    ) -> SavedExecution:
        """Make a whole plan, or a patch, the next version. `parent`: the one it was drawn up for, if not the newest."""
        state = self._project.show(plan_id).state
        patch = as_patch(answer, state)
        if patch is None:
            raise UsageError("There is nothing to replan with", hint="--plan FILE", code="replan.shape")
        command = cmd.Replan(
            change=change_of(patch, reason),
            parent=state.version if parent is None else parent,
            reason=reason or patch.reason,
            drop=(*patch.drop, *drop),
        )
        self._refuse_across(plan_id, command)
        self._project.execute(plan_id, command, by=self._by)
        return self._project.show(plan_id)

    def ask(self, plan_id: str, planner: Planner, failed: Mapping[str, str], *, most: int) -> bool:
        """Ask a planner for a better plan and take its answer in; whether there is a new version."""
        state = self._project.show(plan_id).state
        why = "; ".join(f"{a}: {error}" for a, error in failed.items())[:2000]
        left = most - state.replanned
        if left <= 0:
            return False
        self._project.execute(plan_id, cmd.BeginReplan(failed=tuple(failed), reason=why), by=self._by)
        earlier = [version.reason for version in state.replans]
        plan = SavedExecution(state, self._project.show(plan_id).position).proposal
        try:
            answer = planner(plan, PlanFailure(dict(failed), why, state.version, earlier, left - 1))
            patch = as_patch(answer, state)
            if patch is not None:
                said = patch.reason or f"failed: {', '.join(failed)}"
                _refuse_bounds(patch, state)
                self.replan(plan_id, patch, reason=said, parent=state.version)
                return True
            problem = "the planner had nothing to offer"
        except HeadwayError as error:
            problem = error.message
        except KeyboardInterrupt:
            raise
        except BaseException as error:  # noqa: BLE001  # a planner is anybody's code; its failure is the plan's, and recorded
            problem = f"{type(error).__name__}: {words_of(error)}"
        self._project.execute(plan_id, cmd.EndReplan(reason=problem), by=self._by)
        return False

    # Approval.

    def approve(self, plan_id: str, *, hash: str = "", note: str = "") -> Approval:
        """Stand in for the plan: as it is now, or only if it still has this hash (its first digits are enough)."""
        execution, due = self._foreseen(plan_id)
        now = plan_hash(execution.state)
        meant = now if not hash or (len(hash) >= 8 and now.startswith(hash)) else hash
        self._project.execute(
            plan_id, *(due if meant == now else ()), cmd.ApprovePlan(hash=meant, note=note), by=self._by
        )
        approval = self._project.show(plan_id).state.approval
        assert approval is not None, "it was approved a moment ago"
        return approval

    def reject(self, plan_id: str, *, reason: str) -> None:
        """Say that the plan is not to be made as it is."""
        self._project.execute(plan_id, cmd.RejectPlan(reason=reason), by=self._by)

    def approved(self, plan_id: str) -> dict[str, Any]:
        """What was approved, and how the plan differs from it now; what cannot be told is said to be unknown."""
        execution, _ = self._foreseen(plan_id)
        state = execution.state
        approval, now = state.approval, plan_hash(state)
        found: dict[str, Any] = {
            "plan_id": plan_id,
            "approved": approval is not None and state.refused is None,
            "hash": now,
            "awaits_approval": is_open(state),
            "rejected": {"by": state.refused.by, "at": state.refused.at, "reason": state.refused.reason}
            if state.refused
            else None,
            "approval": None,
            "drift_detected": "unknown" if approval is None else approval.hash != now,
            "changes": None,
        }
        if approval is None:
            return found
        found["approval"] = {
            "by": approval.by,
            "at": approval.at,
            "snapshot_seq": approval.seq,
            "payload_hash": approval.hash,
            "execution_profile": profile_to_dict(approval.profile),
            "note": approval.note,
        }
        was = self._as_approved(plan_id, approval)
        if was is not None:
            found["changes"] = changes = compare_plans(was, execution.proposal).to_dict()
            changes["added"] += [a for a in state.changed if a in state.artifacts and state.artifacts[a].pipeline]
        return found

    def _foreseen(self, plan_id: str) -> tuple[SavedExecution, list[cmd.ExpandUnits]]:
        """The plan with the units that its pipelines have now: whoever approves it approves them."""
        project = self._project
        return foresee(project.show(plan_id), Outputs(project.root, project.blobs, Observer(project.root)), by=self._by)

    def _as_approved(self, plan_id: str, approval: Approval) -> PlanSpec | None:
        """The plan that was approved, if the ledger still has it: an approval may have come along by import."""
        try:
            then = self._project.show(plan_id, at=approval.seq)
        except HeadwayError:
            return None
        return then.proposal if plan_hash(then.state) == approval.hash else None


def _refuse_bounds(patch: Patch, state: State) -> None:
    """A planner that runs ask does not decide how often it is asked, nor that nobody need approve."""
    wanted, now = patch.settings, state.settings
    if wanted is not None and (wanted.replan, wanted.approval) != (now.replan, now.approval):
        raise UsageError(
            "A planner may not change replan or approval",
            hint="keep both as they were in the plan it was given",
            code="replan.bounds",
        )


def read_fields(artifact_id: str, pairs: Mapping[str, str]) -> dict[str, Any]:
    """Fields of an artifact from words, each value in YAML: `requires=[a, b]`, `agent=ann`, `agent=` for none."""
    import yaml

    given: dict[str, Any] = {}
    for name, text in pairs.items():
        try:
            given[name] = yaml.safe_load(text)
        except yaml.YAMLError as error:
            raise UsageError(
                f"{name} cannot be read",
                facts={"given": text[:200], "reason": str(error).splitlines()[0]},
                hint=f"values are YAML: {name}=word, {name}='[a, b]', {name}='{{a: 1}}'",
                code="edit.value",
            ) from error
        if name in ARTIFACT_KEYS and ARTIFACT_KEYS[name].kind == "text" and given[name] is not None:
            given[name] = text  # a text is what was typed, whatever it looks like
    return fields_of(artifact_id, given)


def fields_of(artifact_id: str, given: Mapping[str, Any]) -> dict[str, Any]:
    """Fields of an artifact from values as a plan file has them; refused if one of them is not what it must be."""
    from headway.files.planfile import parse_plan

    document = {"goal": "-", "artifacts": {artifact_id: given}}
    try:
        data = msgspec.json.encode(document)
    except (TypeError, ValueError) as error:
        raise UsageError(
            "A value has no JSON form", facts={"reason": error}, hint="put it in quotes", code="edit.value"
        ) from error
    parsed = parse_plan(data, name="edit.json")
    wrong = [problem for problem in parsed.problems if problem.code not in ELSEWHERE]
    if wrong or parsed.plan is None:
        raise PlanInvalid(
            [msgspec.structs.replace(problem, line=None) for problem in wrong], where=f"Artifact {artifact_id}"
        )
    spec = parsed.plan.artifacts[0]
    return {field: getattr(spec, field) for field in (ARTIFACT_KEYS[name].field or name for name in given)}
