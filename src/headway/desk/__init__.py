"""The desk of one agent: everything that it can ask or do, each in one call, with answers that fit.

A desk belongs to a connection. What is claimed at it is kept while the connection lives; when that ends, the claims
stand a little longer under their tokens, and anybody may go on with the work. Rules are core's, by way of Project,
Work, Life and Planning; every call begins anew from what is on disk.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import Any

import msgspec

from headway.briefing import ANSWER, Own, briefing, fit, page, waits
from headway.core.agents import roles
from headway.core.clipping import clip
from headway.core.codec import digest
from headway.core.events import ArtifactRemoved
from headway.core.ids import hash_goal
from headway.core.lifecycle import last_made, statuses
from headway.core.plan import Role
from headway.core.state import State
from headway.desk.changes import new_artifact, patch_of
from headway.desk.held import Held, who_is_gone
from headway.desk.told import listed, outlined, role_told, word_of
from headway.desk.turns import LOOKED_BACK, as_said, attempts, who_goes_on
from headway.engine.result import Options, Reporter, options_of
from headway.errors import HeadwayError, NotFound, PlanInvalid, Rejected, UsageError
from headway.files.config import project_roles
from headway.holding import here
from headway.ledger.recovery import now
from headway.life import LEASE, Life
from headway.planning import Planning, fields_of
from headway.project import Project, Saved
from headway.projections import markdown
from headway.projections.signals import signals
from headway.projections.story import sentence
from headway.work import Meant, Work

RECALLED = 400
"""How many tokens of what is known from before go into a briefing, or into the arbiter's prompt."""
KEPT = 600.0
"""How long, in seconds, a claim stands that a connection keeps: renewed in time, and short enough if a host dies."""
RENEWED = 200.0
"""How often, in seconds, it is renewed."""
GRACE = 60.0
"""How long, in seconds, a claim outlasts its connection."""


class Desk:
    """What one connection to a project can do. Without a connection, a claim stands for its lease alone."""

    def __init__(
        self,
        root: str,
        *,
        by: str = "agent",
        connection: str = "",
        plan_id: str | None = None,
        environ: Mapping[str, str] | None = None,
    ) -> None:
        self.root = root
        self.by = by
        self._holder = here(connection) if connection else ""
        self._plan_id = plan_id
        self._environ = environ
        self._held = Held()

    # Which plan, and with what.

    @property
    def project(self) -> Project:
        return Project(self.root, by=self.by)

    def _work(self) -> Work:
        return Work(self.project, environ=self._environ)

    def _life(self, work: Work | None = None) -> Life:
        return Life(work or self._work(), by=self.by, holder=self._holder)

    def _meant(self, work: Work, plan_id: str) -> Meant:
        """The plan that is meant, with what its file proposes."""
        chosen, project = plan_id or self._plan_id, work.project
        file = None if chosen else project.find_default_file()
        if file is not None and file.endswith(".py"):
            from headway.authoring import load_plan

            return load_plan(file, project.root).meant(None)
        return work.meant(None, chosen)

    def _taken(self, plan_id: str) -> tuple[Work, str]:
        """For whatever writes: the plan, with what its file proposes taken in."""
        work = self._work()
        return work, work.take_in(self._meant(work, plan_id))

    def _seen(self, plan_id: str) -> tuple[Work, str, State]:
        """For whatever reads: the plan as it would be with what its file proposes. Writes nothing."""
        work = self._work()
        meant = self._meant(work, plan_id)
        if meant.plan is None:
            return work, meant.plan_id, work.project.show(meant.plan_id).state
        proposed = work.project.foresee(
            meant.plan, name=meant.name, source=meant.source, plan_id=meant.plan_id, fresh=meant.fresh
        )
        return work, proposed.plan_id, proposed.state

    # Looking.

    def status(self, plan_id: str = "") -> dict[str, Any]:
        """The briefing."""
        work = self._work()
        try:
            meant = self._meant(work, plan_id)
        except NotFound as error:
            if error.error_code != "plan.none" or plan_id:
                raise
            return {"status": "none", "do": "save_plan: there is no plan here yet", "know": [error.message]}
        found = self._life(work).next(meant)
        execution = found.execution or work.project.show(meant.plan_id)
        known = self._recall(execution.state, RECALLED, others=True)
        own = self._own(execution.state)
        return briefing(execution.state, found, seq=execution.position.seq, known=known, own=own)

    def _own(self, state: State) -> Own:
        """What of a plan is in the hands of whoever asks: by tokens; without a connection, whoever has their name."""
        if not self._holder:
            return Own([a for a, claim in state.claims.items() if claim.by == self.by and not claim.run], sure=False)
        tokens = self._held.by_plan().get(state.plan_id, {})
        return Own([a for a, claim in state.claims.items() if tokens.get(a) == claim.seq])

    def _recall(self, state: State, budget: int, *, others: bool = False) -> list[str]:
        """What is known from before that bears on a plan's goal; `others`: of other plans. Never a reason to fail."""
        with suppress(HeadwayError, OSError):
            found = self.project.get_context_for_goal(state.goal, budget, plan_id=state.plan_id)
            own = {known.text for known in state.learnings} if others else set()
            return [str(line) for line in found.lines if line.text not in own]
        return []

    def recall(self, goal: str = "", budget: int = 0, plan_id: str = "") -> dict[str, Any]:
        """What is known that bears on a goal, or on the plan's."""
        chosen = ""
        if not goal:
            _, chosen, state = self._seen(plan_id)
            goal = state.goal
        most = min(budget or ANSWER // 4, ANSWER // 4)
        return fit(self.project.get_context_for_goal(goal, most, plan_id=chosen).to_dict())

    def learn(self, text: str, artifact: str = "", plan_id: str = "") -> dict[str, Any]:
        """Write down what is worth knowing the next time."""
        work, chosen = self._taken(plan_id)
        execution = work.project.learn(chosen, text, artifact=artifact)
        return {"plan_id": chosen, "learnings": len(execution.state.learnings)}

    def plan(self, plan_id: str = "", artifact: str = "", cursor: str = "") -> dict[str, Any]:
        """The plan, artifact by artifact; or all of one artifact."""
        work, chosen, state = self._seen(plan_id)
        status = statuses(state)
        if artifact:
            found = work.session.resolve(state, [artifact])[0]
            return fit(self._whole(work, chosen, state, found, status[found]))
        head = {
            "plan_id": chosen,
            "goal": clip(state.goal, 2000),
            "status": state.status,
            "version": state.version,
            "constraints": [clip(text, 300) for text in state.settings.constraints[:20]],
        }
        return page("artifacts", list(state.artifacts.values()), cursor, lambda s: listed(s, status[s.id]), head)

    def _whole(self, work: Work, plan_id: str, state: State, artifact_id: str, status: str) -> dict[str, Any]:
        spec, note = state.artifacts[artifact_id], state.notes.get(artifact_id)
        done = state.completed.get(artifact_id)
        return {
            "plan_id": plan_id,
            "artifact": artifact_id,
            "status": status,
            "spec": msgspec.to_builtins(spec),
            "gates": self._life(work).gates(plan_id, artifact_id)["gates"] if spec.gates else {},
            "note": {"by": note.by, "at": note.at, "text": note.text} if note is not None else None,
            "completed": {"at": done.at, "by": done.by, "note": done.note} if done is not None else None,
        }

    def next(self, plan_id: str = "", agent: str = "", cursor: str = "") -> dict[str, Any]:
        """What can be made now, in pages."""
        work = self._work()
        meant = self._meant(work, plan_id)
        found = self._life(work).next(meant, agent=agent)
        head = {
            "plan_id": found.plan_id,
            "status": found.status,
            "progress": {"done": found.done, "total": found.total},
            "failed": {a: clip(why, 200) for a, why in list(found.failed.items())[:10]},
            "blocked": dict(list(found.blocked.items())[:10]),
            "waiting": {a: clip(why, 200) for a, why in list(waits(found).items())[:10]},
        }
        return page("next", found.offers, cursor, lambda offer: fit(offer.to_dict()), head)

    def why(self, artifact: str, plan_id: str = "") -> dict[str, Any]:
        """Why it is fresh, stale, failed or blocked."""
        work = self._work()
        return fit(work.why(self._meant(work, plan_id), artifact))

    def preview(self, targets: Sequence[str] = (), plan_id: str = "", cursor: str = "") -> dict[str, Any]:
        """What a run would make, and why."""
        work = self._work()
        found = work.preview(self._meant(work, plan_id), Options(targets=tuple(targets)))
        stale = list(found.stale.items())
        head = {
            "plan_id": found.plan_id,
            "coming": found.coming.to_dict(),
            "estimated": {
                "tokens": found.estimated_tokens,
                "cost_usd": found.estimated_cost_usd,
                "seconds": found.estimated_duration_seconds,
            },
        }
        return page("stale", stale, cursor, lambda item: {"artifact": item[0], **item[1].to_dict()}, head)

    def milestones(self, plan_id: str = "", cursor: str = "") -> dict[str, Any]:
        """The groups of artifacts, and how far each is."""
        _, chosen, state = self._seen(plan_id)
        counts: dict[str, list[int]] = {}
        for artifact_id, status in statuses(state).items():
            name = state.artifacts[artifact_id].milestone
            if name:
                count = counts.setdefault(name, [0, 0])
                count[0] += status in ("complete", "skipped")
                count[1] += 1
        rows = [
            {"milestone": name, "done": done, "total": total, "completed_at": state.milestones.get(name)}
            for name, (done, total) in counts.items()
        ]
        return page("milestones", rows, cursor, lambda row: row, {"plan_id": chosen})

    def phases(self, unit: str, plan_id: str = "") -> dict[str, Any]:
        """The phase ledger of a unit of a pipeline."""
        work, chosen, _ = self._seen(plan_id)
        return fit(work.phases(chosen, unit))

    def log(self, plan_id: str = "", since: int = 1, cursor: str = "") -> dict[str, Any]:
        """What happened, newest last."""
        _, chosen, _ = self._seen(plan_id)
        records = list(self.project.log(chosen, first=max(since, 1)))

        def entry(record: Any) -> dict[str, Any]:
            types = [signal.type for signal in signals(chosen, record)][:1]
            said = {"seq": record.seq, "ts": record.ts, "by": record.by, "text": clip(sentence(record), 300)}
            return {**said, "type": types[0] if types else record.event.type}

        return page("events", records, cursor, entry, {"plan_id": chosen})

    def search(self, words: str, cursor: str = "") -> dict[str, Any]:
        """Artifacts of every plan here whose id, description, contract or tags hold all these words."""
        wanted = words.lower().split()
        if not wanted:
            raise UsageError("Say what to look for", hint="one or more words", code="search.words")
        found = []
        for execution in self.project.store.list_recent(None):
            for spec in execution.state.artifacts.values():
                text = " ".join((spec.id, spec.description, spec.contract, *spec.tags, *spec.produces)).lower()
                if all(word in text for word in wanted):
                    what = clip(spec.description or spec.contract, 200)
                    found.append({"plan_id": execution.plan_id, "artifact": spec.id, "what": what})
        return page("found", found, cursor, lambda row: row, {"words": clip(words, 200)})

    def approved(self, plan_id: str = "") -> dict[str, Any]:
        """What was approved, and how the plan differs from it now."""
        _, chosen, _ = self._seen(plan_id)
        return fit(self._planning().approved(chosen))

    def markdown(self, plan_id: str = "") -> str:
        """plan.md, as far as it fits."""
        work, chosen, _ = self._seen(plan_id)
        text = markdown.render(work.project.show(chosen)).decode()
        most = 3 * (ANSWER - 100)
        data = text.encode()
        return (
            text if len(data) <= most else f"{data[:most].decode(errors='ignore')}\n\n… cut: get_plan has it in pages\n"
        )

    def newest(self, plan_id: str = "") -> dict[str, Any]:
        """The newest events."""
        _, chosen, _ = self._seen(plan_id)
        last = self.project.show(chosen).position.seq
        return self.log(chosen, since=max(last - 49, 1))

    def output(self, artifact: str, plan_id: str = "") -> dict[str, Any]:
        """An artifact, and what it came to: the text of its recorded outputs, as far as it fits."""
        work, chosen, state = self._seen(plan_id)
        artifact_id = work.session.resolve(state, [artifact])[0]
        whole = self._whole(work, chosen, state, artifact_id, statuses(state)[artifact_id])
        done = last_made(state, artifact_id)
        texts = {}
        for output in done.outputs[:20] if done is not None else ():
            data = work.project.blobs.get(output.digest) if work.project.blobs.has(output.digest) else b""
            texts[output.path or "text"] = (
                data[:20000].decode("utf-8", "replace") if output.kind != "tree" else "a folder"
            )
        return fit({**whole, "outputs": texts})

    def roles(self, plan_id: str = "") -> dict[str, Role]:
        """The agents that there are: built in, of the project, of the plan."""
        own = self._seen(plan_id)[2].settings.agents if plan_id or self.project.plan_ids() else {}
        return roles(project_roles(self.root), own)

    def who(self, last: Sequence[Mapping[str, Any]] = (), plan_id: str = "") -> dict[str, Any]:
        """Who goes on with what is next: by rule; where no rule decides, the question to put to somebody who can."""
        _, chosen, state = self._seen(plan_id)
        project, known = self.project, roles(project_roles(self.root), state.settings.agents)
        newest = project.show(chosen).position.seq
        lately = attempts(project.log(chosen, first=max(newest - LOOKED_BACK + 1, 1)), state, known)
        found = who_goes_on(state, lately, as_said(last), known, now(), recall=lambda: self._recall(state, RECALLED))
        return fit({"plan_id": chosen, **found})

    def plans(self, cursor: str = "") -> dict[str, Any]:
        """The plans of this project."""
        rows = [
            {"plan_id": e.plan_id, "goal": clip(e.goal, 200), "status": e.status, "updated_at": e.updated_at}
            for e in self.project.store.list_recent(None)
        ]
        return page("plans", rows, cursor, lambda row: row, {})

    # Hands.

    def claim(self, artifact: str = "", plan_id: str = "", agent: str = "") -> dict[str, Any]:
        """Take an artifact in hand: the one that is named, or what is next and no run makes; also in place of whoever
        is gone."""
        work, chosen = self._taken(plan_id)
        life, lease = self._life(work), KEPT if self._holder else LEASE
        if artifact:
            claimed = life.claim(chosen, artifact, lease=lease)
        else:
            claimed = life.claim_next(Meant(chosen), agent=agent, lease=lease, by_hand=True)
        self._keep(chosen, claimed["artifact"], claimed["token"])
        acting = agent or claimed["agent"]
        role = self.roles(chosen).get(acting) if acting else None
        told = {"role": {"name": acting, **role_told(role)}} if role is not None else {}
        return fit({"plan_id": chosen, **claimed, **told})

    def note(self, artifact: str, note: str, token: int | None = None, plan_id: str = "") -> dict[str, Any]:
        """Say that one is still at it, and how far: for oneself later, or for whoever goes on with it."""
        work, chosen = self._taken(plan_id)
        lease = KEPT if self._holder else LEASE
        artifact_id, held = self._named(work, chosen, artifact, token)
        until = self._life(work).heartbeat(chosen, artifact_id, token=held, lease=lease, note=note)
        claim = work.project.show(chosen).state.claims[artifact_id]
        self._keep(chosen, artifact_id, claim.seq)
        return {"plan_id": chosen, "artifact": artifact_id, "until": until, "token": claim.seq}

    def complete(
        self, artifact: str, text: str | None = None, note: str = "", token: int | None = None, plan_id: str = ""
    ) -> dict[str, Any]:
        """Finish what was claimed: files are read, verify and gates run, and what is on disk is what is answered."""
        work, chosen = self._taken(plan_id)
        artifact_id, held = self._named(work, chosen, artifact, token)
        data = text.encode("utf-8", "surrogatepass") if text is not None else None
        finished = self._life(work).complete(chosen, artifact_id, token=held, text=data, note=note)
        self._held.drop(chosen, artifact_id)
        found = msgspec.to_builtins(finished.to_dict())
        return fit({"plan_id": chosen, **found})

    def fail(self, artifact: str, error: str, token: int | None = None, plan_id: str = "") -> dict[str, Any]:
        """Say that it did not work out."""
        work, chosen = self._taken(plan_id)
        artifact_id, held = self._named(work, chosen, artifact, token)
        self._life(work).fail(chosen, artifact_id, token=held, error=error)
        self._held.drop(chosen, artifact_id)
        state = work.project.show(chosen).state
        return {"plan_id": chosen, "artifact": artifact_id, "status": "failed", "plan_status": state.status}

    def release(self, artifact: str, reason: str, token: int | None = None, plan_id: str = "") -> dict[str, Any]:
        """Give a claim back, with a word for whoever takes it next."""
        work, chosen = self._taken(plan_id)
        artifact_id, held = self._named(work, chosen, artifact, token)
        life = self._life(work)
        life.heartbeat(chosen, artifact_id, token=held, lease=GRACE, note=reason)
        life.release(chosen, artifact_id, token=held, reason=reason)
        self._held.drop(chosen, artifact_id)
        return {"plan_id": chosen, "artifact": artifact_id, "status": "released"}

    def skip(self, artifacts: Sequence[str], reason: str, plan_id: str = "") -> dict[str, Any]:
        """Decide that artifacts are not made."""
        work, chosen = self._taken(plan_id)
        return fit({"plan_id": chosen, "skipped": self._life(work).skip(chosen, list(artifacts), reason=reason)})

    def run(
        self,
        targets: Sequence[str] = (),
        plan_id: str = "",
        *,
        limit: int | None = None,
        jobs: int | None = None,
        reporter: Reporter | None = None,
        stop: Callable[[], str] = lambda: "",
    ) -> dict[str, Any]:
        """Make what has a recipe and is stale."""
        work = self._work()
        meant = work.taken_in(self._meant(work, plan_id), show=True)
        options = options_of(targets, jobs, {"limit": limit})
        result = work.run(
            meant.plan_id,
            options,
            reporter=reporter,
            functions=meant.functions,
            stop=stop,
            execution=meant.execution,
        )
        found = {name: value for name, value in result.to_dict().items() if value not in ([], {}, None)}
        found.pop("reasons", None)
        return fit(msgspec.to_builtins(found))

    # Words.

    def gate(
        self, artifact: str, gate: str = "", verdict: str = "", text: str = "", plan_id: str = ""
    ) -> dict[str, Any]:
        """The gates of an artifact; or a word at one; or, of a check without a word, run it."""
        work, chosen = self._taken(plan_id)
        life = self._life(work)
        if not gate:
            return fit(life.gates(chosen, artifact))
        if not verdict:
            finished = life.check(chosen, artifact, gate)
        else:
            finished = life.verdict(chosen, artifact, gate, word_of(verdict), text=text)
        return fit({"plan_id": chosen, **msgspec.to_builtins(finished.to_dict())})

    def approve(self, plan_hash: str = "", note: str = "", plan_id: str = "") -> dict[str, Any]:
        """Stand in for the plan."""
        _, chosen = self._taken(plan_id)
        approval = self._planning().approve(chosen, hash=plan_hash, note=note)
        return {"plan_id": chosen, "approved": True, "hash": approval.hash, "by": approval.by, "seq": approval.seq}

    def reject(self, reason: str, plan_id: str = "") -> dict[str, Any]:
        """Say that the plan is not to be made as it is."""
        _, chosen = self._taken(plan_id)
        self._planning().reject(chosen, reason=reason)
        return {"plan_id": chosen, "approved": False, "reason": clip(reason, 500)}

    # The plan itself.

    def save_plan(self, plan: Mapping[str, Any] | str, drop: Sequence[str] = (), plan_id: str = "") -> dict[str, Any]:
        """Save a plan: new, or with what changed since it was last saved from here. `drop`: what it may leave out."""
        data = plan.encode() if isinstance(plan, str) else msgspec.json.encode(dict(plan))
        project = self.project
        parsed = project.parse(data, "plan")
        if parsed.plan is None or parsed.problems:
            raise PlanInvalid(parsed.problems, where="The plan")
        with who_is_gone(self.project, plan_id or parsed.plan.id or hash_goal(parsed.plan.goal)):
            saved: Saved = project.take_in(
                parsed.plan,
                name="a plan from an agent",
                source=digest(data),
                plan_id=plan_id or None,
                checked=True,
                drop=drop,
            )
        removed = [a for record in saved.events if isinstance(record.event, ArtifactRemoved) for a in record.event.ids]
        found = {**outlined(saved.execution.state), "outcome": saved.outcome}
        return fit({**found, "removed": removed} if removed else found)

    def replan(
        self, reason: str, changes: Mapping[str, Any], drop: Sequence[str] = (), plan_id: str = ""
    ) -> dict[str, Any]:
        """Make a change the plan's next version: `add` and `update` (ids to fields), `remove` (ids), `goal`."""
        _, chosen = self._taken(plan_id)
        state = self.project.show(chosen).state
        patch = patch_of(state, chosen, changes)
        with who_is_gone(self.project, chosen):
            execution = self._planning().replan(chosen, patch, reason=reason, drop=drop)
        version = execution.state.replans[-1]
        return fit(
            {
                "plan_id": chosen,
                "version": version.version,
                "parent": version.parent,
                "added": list(version.added),
                "updated": list(version.updated),
                "removed": list(version.removed),
            }
        )

    def add(
        self, artifact: str, fields: Mapping[str, Any], reason: str, after: str = "", plan_id: str = ""
    ) -> dict[str, Any]:
        """One more artifact."""
        _, chosen = self._taken(plan_id)
        return outlined(
            self._planning().add(chosen, new_artifact(artifact, fields), after=after or None, reason=reason).state
        )

    def update(self, artifact: str, fields: Mapping[str, Any], reason: str, plan_id: str = "") -> dict[str, Any]:
        """An artifact is to be something else, in these fields."""
        _, chosen = self._taken(plan_id)
        with who_is_gone(self.project, chosen):
            return outlined(self._planning().edit(chosen, artifact, fields_of(artifact, fields), reason=reason).state)

    def remove(
        self, artifacts: Sequence[str], reason: str, unfinished: bool = False, plan_id: str = ""
    ) -> dict[str, Any]:
        """Artifacts leave the plan."""
        _, chosen = self._taken(plan_id)
        with who_is_gone(self.project, chosen):
            return outlined(self._planning().remove(chosen, artifacts, unfinished=unfinished, reason=reason).state)

    def reorder(self, artifacts: Sequence[str], reason: str, after: str = "", plan_id: str = "") -> dict[str, Any]:
        """Artifacts stand behind another one, or first."""
        _, chosen = self._taken(plan_id)
        return outlined(self._planning().move(chosen, artifacts, after=after or None, reason=reason).state)

    def export(self, path: str, format: str = "checkpoint", plan_id: str = "") -> dict[str, Any]:
        """Write a checkpoint, or SPEC-0010's files, inside the project."""
        _, chosen = self._taken(plan_id)
        written = self.project.export_plan(chosen, self._inside(path), format=format)
        return {"plan_id": chosen, "written": [os.path.relpath(file, self.root) for file in written]}

    def import_(
        self, path: str, format: str = "checkpoint", plan_id: str = "", replace: bool = False
    ) -> dict[str, Any]:
        """Take in a checkpoint, or SPEC-0010's files, from inside the project."""
        saved = self.project.import_plan(self._inside(path), plan_id=plan_id or None, replace=replace, format=format)
        return {**outlined(saved.execution.state), "outcome": saved.outcome}

    # Claims that follow the connection.

    def renew(self) -> None:
        """The connection lives: whatever is claimed at it stays claimed. What is no longer ours is forgotten."""
        for plan_id, artifact_id, token in self._held.all():
            try:
                self._life().heartbeat(plan_id, artifact_id, token=token, lease=KEPT)
            except Rejected:
                self._held.drop(plan_id, artifact_id)
            except HeadwayError:  # it may work next time: the lease is three times as long
                continue

    def leave(self) -> None:
        """The connection has ended: its claims stand for a while under their tokens, for it or for others."""
        for plan_id, tokens in self._held.by_plan().items():
            try:
                self._life().leave(plan_id, tokens, grace=GRACE)
            except HeadwayError:  # whoever comes next finds the process gone
                continue

    def sweep(self) -> None:
        """What was left, and nobody came back for, is given back; its notes stay."""
        for plan_id in self._held.by_plan():
            with suppress(HeadwayError):  # whoever wants it sweeps it then
                self._life().sweep(plan_id)

    def _keep(self, plan_id: str, artifact_id: str, token: int) -> None:
        if self._holder:
            self._held.keep(plan_id, artifact_id, token)

    # What the above have in common.

    def _named(self, work: Work, plan_id: str, word: str, token: int | None) -> tuple[str, int | None]:
        """An artifact by its id or path, and the token it is held by: the one given, else the connection's own."""
        state = work.project.show(plan_id).state
        artifact_id = work.session.resolve(state, [word])[0]
        if token is None and not self._holder and artifact_id in state.claims:
            raise UsageError(
                f"Whose claim of {artifact_id} this is cannot be told without its token",
                facts={"claimed by": state.claims[artifact_id].by, "why": "a call without a session has no connection"},
                hint="give the token that claim answered with",
                code="claim.token",
            )
        return artifact_id, token if token is not None else self._held.token(plan_id, artifact_id)

    def _planning(self) -> Planning:
        return Planning(self.project, by=self.by)

    def _inside(self, path: str) -> str:
        """A path of the project; others are not an agent's to read or write."""
        full = os.path.realpath(os.path.join(self.root, path)) if "\0" not in path else ""
        home = os.path.realpath(self.root)
        if not full.startswith(home + os.sep) or full.startswith(os.path.join(home, ".headway") + os.sep):
            raise UsageError(
                "The path is outside of the project",
                facts={"path": clip(path, 200)},
                hint="give a path relative to the project's folder",
                code="path.outside",
            )
        return full
