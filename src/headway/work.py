"""Making what a plan asks for, seen from outside: take in its file, judge it, run it, say why. Reads and runs; no rules.

`Project` keeps plans, `Work` makes them, `Doctor` mends them.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import msgspec

from headway.core.commands import AcceptOutput, ChangePlan
from headway.core.freshness import Reason
from headway.core.graph import ArtifactGraph
from headway.core.plan import ArtifactSpec
from headway.engine.result import Options, Reporter, RunResult
from headway.engine.session import Judged, Session
from headway.engine.status import status_document, why_document
from headway.errors import UsageError
from headway.files.outputs import Outputs
from headway.project import Project


class Preview(NamedTuple):
    """What a run would do: an upper bound, since early cut-off may spare some of it."""

    judged: Judged
    selected: set[str]

    @property
    def stale(self) -> dict[str, Reason]:
        """What would be made, and why."""
        return {a: r for a, r in self.judged.reasons.items() if a in self.selected and not r.fresh}


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

    def take_in(
        self, file: str | None, plan_id: str | None, *, take: str = "", variables: Mapping[str, str] | None = None
    ) -> str:
        """The plan that is meant, its file taken in if it changed, with variables set. A plan with problems is refused."""
        path = file or (None if plan_id else self.project.find_default_file())
        chosen = self.project.select(plan_id, file)
        if path is not None:
            chosen = self.project.save_plan(path, plan_id=plan_id, take=take, draft=False).execution.plan_id
        if variables:
            self._set(chosen, variables)
        return chosen

    def run(
        self,
        plan_id: str,
        options: Options = Options(),
        *,
        reporter: Reporter | None = None,
        functions: Mapping[str, Callable[..., Any]] | None = None,
        loop: Any = None,
        stop: Callable[[], str] = lambda: "",
    ) -> RunResult:
        """Make what is stale."""
        return self.session.run(plan_id, options, reporter=reporter, functions=functions, loop=loop, stop=stop)

    def preview(self, plan_id: str, options: Options = Options()) -> Preview:
        """What `run` with these options would do."""
        judged = self.session.judge(plan_id)
        selected = self.session.selected(judged.execution.state, options)
        forced = self.session.forced(judged, options, selected)
        if forced:
            judged.judge.forced = forced
            judged.judge.all()
        return Preview(judged, selected)

    def status(self, plan_id: str, *, at: int | None = None) -> dict[str, Any]:
        """Where a plan stands."""
        return status_document(self.session.judge(plan_id, at=at))

    def why(self, plan_id: str, word: str) -> dict[str, Any]:
        """Why an artifact is fresh or stale."""
        judged = self.session.judge(plan_id)
        artifact_id = self.session.resolve(judged.execution.state, [word])[0]
        before = None
        if judged.reasons[artifact_id].code == "spec_changed":
            before = self._spec_when_made(judged, artifact_id)
        return why_document(judged, artifact_id, before)

    def accept(self, plan_id: str, words: Sequence[str], *, everything: bool = False, reason: str = "") -> list[str]:
        """What is on disk counts as the output of these artifacts, also where they were never made."""
        judged = self.session.judge(plan_id)
        state, judge = judged.execution.state, judged.judge
        if everything:
            wanted = [a for a in state.artifacts if not judged.reasons[a].fresh and self._all_there(state.artifacts[a])]
        else:
            wanted = self.session.resolve(state, words)
        if not wanted:
            raise UsageError("Say what to accept", hint="headway accept ID…, or --all", code="accept.what")
        outputs = Outputs(self.project.root, self.project.blobs, judge.observer)
        order = [a for a in ArtifactGraph.over(state.artifacts).topological_sort() if a in set(wanted)]
        with self.project.folder(plan_id).writing() as writer:
            for artifact_id in order:
                spec = state.artifacts[artifact_id]
                found = outputs.capture((*spec.produces, *spec.modifies))
                missing = [p for p in spec.produces if p not in {o.path for o in found}]
                if missing or not spec.produces:
                    raise UsageError(
                        f"There is nothing to accept for {artifact_id}",
                        facts={"missing": ", ".join(missing) or "it has no files"},
                        hint=f"headway run {artifact_id}",
                        code="accept.missing",
                    )
                if writer.state is not None:
                    judge.state = writer.state
                fp = judge.fingerprint(artifact_id)
                command = AcceptOutput(id=artifact_id, outputs=found, fp=fp, reason=reason)
                writer.execute(command, by=self.project.by, wait=False)
        return order

    def _all_there(self, spec: ArtifactSpec) -> bool:
        return bool(spec.produces) and all(os.path.lexists(os.path.join(self.project.root, p)) for p in spec.produces)

    def _set(self, plan_id: str, variables: Mapping[str, str]) -> None:
        state = self.project.show(plan_id).state
        unknown = [name for name in variables if name not in state.settings.vars]
        if unknown:
            raise UsageError(
                f"The plan has no variable {unknown[0]}",
                facts={"its variables": ", ".join(state.settings.vars) or "none"},
                hint="declare it under vars: in the plan file",
                code="vars.unknown",
            )
        settings = msgspec.structs.replace(state.settings, vars={**state.settings.vars, **variables})
        self.project.change(plan_id, ChangePlan(settings=settings, reason="--set"))

    def _spec_when_made(self, judged: Judged, artifact_id: str) -> ArtifactSpec | None:
        done = judged.execution.state.completed.get(artifact_id)
        if done is None or not done.seq:
            return None
        return self.project.show(judged.execution.plan_id, at=done.seq).state.artifacts.get(artifact_id)
