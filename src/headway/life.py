"""Artifacts in people's and agents' hands: what is next, claim it, finish it, fail it, skip it, give it back.

A claim is an event, and its number the token that finishing it needs. It has a lease, which its holder extends; when it
has run out, anybody may sweep it, and only that event ends it. Rules are core/decide's; nothing is run here but an
artifact's own `verify` and its gates that are commands.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from contextlib import ExitStack
from datetime import UTC, datetime, timedelta
from shlex import quote
from typing import Any, NamedTuple

from headway.core import commands as cmd
from headway.core.events import ArtifactReleased, ArtifactStarted
from headway.core.fingerprint import content_digest
from headway.core.freshness import EDITS, Reason
from headway.core.gates import Missing, checks, missing, outcome, standing
from headway.core.ids import as_word
from headway.core.lifecycle import last_made, recorded_status
from headway.core.plan import ArtifactSpec, Gate
from headway.core.state import Completion, Failure, Output, State, Word
from headway.engine.judged import Judged
from headway.engine.lessons import lessons
from headway.engine.making import Workshop
from headway.engine.recipes.base import Job, Surroundings
from headway.errors import NotFound, Rejected, TryLater, UsageError
from headway.holding import gone
from headway.ledger.recovery import now
from headway.ledger.writer import Writer
from headway.offers import Next, Offer, is_over, late_requirements, newest_completion, offers_of
from headway.projections.saved_execution import SavedExecution
from headway.work import Meant, Work

LEASE = 3600.0
"""How long, in seconds, a claim stands without a word from its holder, unless they say otherwise."""


class Finished(NamedTuple):
    """What came of an artifact that somebody finished, as it is on disk: complete, or waiting for what is missing."""

    artifact: str
    status: str
    completion: Completion
    missing: list[Missing]

    @property
    def verified(self) -> bool:
        """Whether its `verify` was asked, and agreed."""
        return self.completion.verified

    def to_dict(self) -> dict[str, Any]:
        """`complete --json`."""
        done = self.completion
        return {
            "artifact": self.artifact,
            "status": self.status,
            "seq": done.seq,
            "by": done.by,
            "outputs": list(done.outputs),
            "content": content_digest(done.outputs),
            "missing": [lack.to_dict() for lack in self.missing],
        }


class Life:
    """Hands on the artifacts of one project.

    As a context (`with Life(work, by="ann") as hands:`) it keeps the ledger open, so that each call costs what it does
    and not what the plan holds; without, every call begins anew from what is on disk.
    """

    def __init__(self, work: Work, *, by: str, holder: str = "") -> None:
        self._work = work
        self._project = work.project
        self._by = by
        self._holder = holder
        self._kept: ExitStack | None = None
        self._writers: dict[str, Writer] = {}
        self._offers: dict[str, list[Offer]] = {}
        self._judges: dict[str, tuple[int, Judged]] = {}

    def __enter__(self) -> Life:
        self._kept = ExitStack()
        return self

    def __exit__(self, *reason: object) -> None:
        kept, self._kept = self._kept, None
        self._writers, self._offers, self._judges = {}, {}, {}
        if kept is not None:
            kept.close()

    # What is next.

    def next(self, meant: Meant, *, agent: str = "", at: int | None = None, take: str = "") -> Next:
        """What can be made now, over all artifacts of the plan as it is. `agent`: what is for them, or for anybody."""
        judged = self._work.judge(meant, at=at, take=take) if at is not None or take else self._judged(meant)
        state = judged.execution.state
        dead = set(self._project.folder(meant.plan_id).dead_claims(state)) if state.claims else set()
        return offers_of(judged, dead=dead, agent=agent)

    # Claims.

    def claim(self, plan_id: str, word: str, *, lease: float = LEASE) -> dict[str, Any]:
        """Take an artifact in hand; the token that finishing it needs. What others no longer hold is swept first."""
        judged, artifact_id = self._find(plan_id, word)
        reason = judged.reasons[artifact_id]
        if reason.fresh:
            raise UsageError(
                f"Artifact {artifact_id} is up to date",
                hint=f"headway reset {as_word(artifact_id)} --reason … has it made again",
                code="claim.fresh",
            )
        elsewhere = judged.judge.unusable(artifact_id)
        if elsewhere is not None:
            raise TryLater(
                f"Artifact {artifact_id} requires what another plan has to make first",
                facts={elsewhere.name: elsewhere.problem},
                hint=elsewhere.command,
                code="artifact.waiting",
            )
        late = late_requirements(judged, artifact_id)
        if late:
            raise TryLater(
                f"Artifact {artifact_id} requires what is not up to date",
                facts={"waits for": ", ".join(late)},
                hint=_making(judged.execution.state, late[0]),
                code="artifact.waiting",
            )
        state = judged.execution.state
        return self._start(
            plan_id, Offer(state.artifacts[artifact_id], reason, newest_completion(state, artifact_id)), lease
        )

    def _start(self, plan_id: str, offer: Offer, lease: float) -> dict[str, Any]:
        artifact_id, until = offer.spec.id, _until(lease)
        reasons: dict[str, str] = {artifact_id: offer.reason.code}
        seen = {artifact_id: offer.seen}
        start = cmd.StartArtifacts(ids=(artifact_id,), lease=until, reasons=reasons, seen=seen, holder=self._holder)
        state = self._show(plan_id, newest=True).state
        claim, note = state.claims.get(artifact_id), state.notes.get(artifact_id)
        commands: list[cmd.Command] = [cmd.SweepClaims(now=now())]
        if claim is not None and (why := gone(claim)):
            taken = f"taken over from {claim.by}: {why}"
            commands.append(cmd.ReleaseArtifacts(ids=(artifact_id,), reason=taken, token=claim.seq))
        records = self._execute(plan_id, *commands, start)
        continues = None
        if claim is not None or note is not None:
            continues = {
                "by": claim.by if claim is not None else note.by if note is not None else "",
                "since": claim.at if claim is not None else None,
                "note": note.text if note is not None else "",
            }
        token = records[-1].seq
        return {**offer.to_dict(), "token": token, "by": self._by, "until": until, "continues": continues}

    def claim_next(
        self, meant: Meant, *, agent: str = "", lease: float = LEASE, by_hand: bool = False
    ) -> dict[str, Any]:
        """Take the first artifact in hand that can be made now; others may be at it at the same time.

        `by_hand`: none that a run makes.
        """
        earlier = self._offers.pop(meant.plan_id, [])
        wanted = agent or self._by
        self._grown(meant.plan_id)
        claimed = self._claim_one(meant.plan_id, earlier, lease, again=wanted)
        if claimed is not None:
            return claimed
        found = self.next(meant, agent=wanted)
        offers = [offer for offer in found.offers if not (by_hand and offer.by_run)]
        claimed = self._claim_one(meant.plan_id, offers, lease)
        if claimed is not None:
            return claimed
        if found.offers and not offers:
            raise TryLater(
                f"What is next of plan {meant.plan_id} has a recipe: a run makes it",
                facts={"next": ", ".join(offer.spec.id for offer in found.offers[:10])},
                hint="headway run; or name the artifact, to make it by hand",
                code="next.run",
            )
        if found.follows:
            raise TryLater(
                f"What is next of plan {meant.plan_id} follows from what was made: a run sees to it",
                facts={"next": ", ".join(found.follows[:10])},
                hint="headway run",
                code="next.run",
            )
        raise TryLater(
            f"Nothing of plan {meant.plan_id} can be claimed now",
            facts={"it is": found.status, "done": f"{found.done} of {found.total}"},
            hint="headway next says what is done, waiting or blocked",
            code=f"next.{found.status}",
        )

    def _claim_one(self, plan_id: str, offers: list[Offer], lease: float, again: str = "") -> dict[str, Any] | None:
        """The first of these that is still to be had; the rest is kept in mind, where the ledger is kept open.

        `again`: they were offered a while ago, so each is looked at anew, for this agent.
        """
        for number, offer in enumerate(offers):
            state = self._show(plan_id, newest=bool(again)).state
            claim = state.claims.get(offer.spec.id)
            if newest_completion(state, offer.spec.id) != offer.seen or (
                claim is not None and not is_over(claim, now()) and not gone(claim)
            ):
                continue
            found = self._offered_now(plan_id, offer, again) if again else offer
            if found is None:
                continue
            try:
                claimed = self._start(plan_id, found, lease)
            except (TryLater, Rejected, UsageError):  # somebody was quicker, or it is no longer what it was
                continue
            if self._kept is not None:
                self._offers[plan_id] = offers[number + 1 :]
            return claimed
        return None

    def _offered_now(self, plan_id: str, offer: Offer, agent: str) -> Offer | None:
        """An offer of a while ago by the plan, the files and the others' work of now; None if it stands no more."""
        execution, artifact_id = self._show(plan_id), offer.spec.id
        if artifact_id not in execution.state.artifacts:
            return None
        judged = self._judge(plan_id, execution, _with_earlier(execution.state, artifact_id))
        spec, reason = judged.execution.state.artifacts[artifact_id], judged.reasons[artifact_id]
        held_back = reason.fresh or reason.code in EDITS or artifact_id in execution.state.failed
        if held_back or spec.agent not in ("", agent) or late_requirements(judged, artifact_id):
            return None
        return Offer(spec, reason, offer.seen) if judged.judge.unusable(artifact_id) is None else None

    def heartbeat(
        self, plan_id: str, word: str, *, token: int | None = None, lease: float = LEASE, note: str = ""
    ) -> str:
        """Say that one is still at it, and how far; until when the claim stands now."""
        state, artifact_id = self._named(plan_id, word)
        until = _until(lease)
        held = self._token(state, artifact_id, token)
        self._execute(plan_id, cmd.ExtendLease(id=artifact_id, token=held, lease=until, holder=self._holder, note=note))
        return until

    def leave(self, plan_id: str, tokens: Mapping[str, int], *, grace: float) -> None:
        """The connection is over: what it kept stands for a while under the same tokens, for it or for others."""
        self._execute(plan_id, cmd.LeaveClaims(tokens=dict(tokens), lease=_until(grace)))

    def sweep(self, plan_id: str) -> list[str]:
        """Give back what nobody holds any more: claims whose lease ran out, and those of a run that is gone."""
        before = dict(self._show(plan_id, newest=True).state.claims)
        self._execute(plan_id, cmd.SweepClaims(now=now()))
        after = self._show(plan_id).state.claims
        return [a for a, claim in before.items() if after.get(a) != claim]

    def complete(
        self, plan_id: str, word: str, *, token: int | None, text: bytes | None = None, note: str = ""
    ) -> Finished:
        """Finish what was claimed: its files are read, verified, held against its gates, and recorded."""
        judged, artifact_id = self._find(plan_id, word)
        state = judged.execution.state
        spec = state.artifacts[artifact_id]
        held = self._token(state, artifact_id, token)
        if text is not None and not note and (spec.produces or spec.modifies):
            note = text.decode("utf-8", "replace")  # its files are its result, so this is a word about them
        outputs = self._outputs(judged, spec, text)
        workshop, job = self._workshop(judged, spec)
        verified = self._verify(workshop, job)
        said = workshop.checks(job) if spec.gates else ()
        against = next((check for check in said if check.verdict == "REJECT"), None)
        if against is not None:
            raise UsageError(
                f"Gate {against.gate} does not let {artifact_id} pass",
                facts={"it says": against.text},
                hint=self._mended(artifact_id),
                code="gate.failed",
            )
        command = cmd.CompleteArtifact(
            id=artifact_id,
            token=held,
            outputs=outputs,
            fp=judged.judge.fingerprint(artifact_id),
            verified=verified,
            external=bool(spec.effects),
            note=note,
            checks=said,
        )
        self._execute(plan_id, command)
        if artifact_id in state.failed:
            self._learn(plan_id, artifact_id, state.failed[artifact_id])
        return self._finished(plan_id, artifact_id)

    def _learn(self, plan_id: str, artifact_id: str, failure: Failure) -> None:
        """It had failed, and did not this time: that is worth knowing the next time."""
        folder = self._project.folder(plan_id)
        execution = folder.load()
        for lesson in lessons(folder, {artifact_id: failure}, execution.state) if execution is not None else ():
            self._execute(plan_id, lesson)

    def fail(self, plan_id: str, word: str, *, token: int | None, error: str) -> None:
        """Say that it did not work out."""
        state, artifact_id = self._named(plan_id, word)
        held = self._token(state, artifact_id, token)
        self._execute(plan_id, cmd.FailArtifact(id=artifact_id, token=held, error=error))

    def release(self, plan_id: str, word: str, *, token: int | None = None, reason: str) -> None:
        """Give a claim back: nothing is known to be wrong."""
        state, artifact_id = self._named(plan_id, word)
        held = self._token(state, artifact_id, token)
        self._execute(plan_id, cmd.ReleaseArtifacts(ids=(artifact_id,), reason=reason or "given back", token=held))

    def skip(self, plan_id: str, words: list[str], *, reason: str) -> list[str]:
        """Decide that artifacts are not made; their dependents go on without them."""
        ids = self._work.session.resolve(self._grown(plan_id).state, words)
        self._execute(plan_id, cmd.SkipArtifacts(ids=tuple(ids), reason=reason))
        return ids

    # Gates.

    def gates(self, plan_id: str, word: str, *, at: int | None = None) -> dict[str, Any]:
        """An artifact's gates, what was said at each about what there is (or was, then), and what is missing."""
        state = (self._show(plan_id) if at is None else self._project.show(plan_id, at=at)).state
        artifact_id = self._work.session.resolve(state, [word])[0]
        spec, evidence = state.artifacts[artifact_id], state.evidence.get(artifact_id, ())
        made = last_made(state, artifact_id)

        def described(gate: Gate) -> dict[str, Any]:
            said = standing(evidence, gate, made) if made is not None else []
            return {
                "kind": gate.kind,
                "by": list(gate.by),
                "quorum": gate.needed,
                "run": gate.run,
                "status": outcome(gate, said),
                "verdicts": [{"by": v.by, "verdict": v.verdict, "at": v.at, "text": v.text} for v in said],
            }

        return {
            "plan_id": plan_id,
            "artifact": artifact_id,
            "status": recorded_status(state, artifact_id),
            "content": content_digest(made.outputs) if made is not None else None,
            "gates": {gate.name: described(gate) for gate in spec.gates},
            "missing": [lack.to_dict() for lack in missing(state, artifact_id)],
        }

    def verdict(
        self, plan_id: str, word: str, gate: str, verdict: Word, *, text: str = "", content: str = ""
    ) -> Finished:
        """Say a word at a gate, about the bytes that there are (`content`: those that one looked at)."""
        _, artifact_id = self._named(plan_id, word)
        command = cmd.RecordVerdict(id=artifact_id, gate=gate, verdict=verdict, by=self._by, text=text, content=content)
        self._execute(plan_id, command)
        return self._finished(plan_id, artifact_id)

    def check(self, plan_id: str, word: str, gate: str) -> Finished:
        """Run a gate that is a command, on the bytes that there are."""
        judged, artifact_id = self._find(plan_id, word)
        spec = judged.execution.state.artifacts[artifact_id]
        if gate not in {known.name for known in checks(spec)}:
            raise UsageError(
                f"Artifact {artifact_id} has no check {gate}",
                facts={"its gates": ", ".join(f"{known.name} ({known.kind})" for known in spec.gates) or "none"},
                hint=f"headway gate {as_word(artifact_id)} lists them",
                code="gate.unknown",
            )
        self._refuse_strange_bytes(judged, artifact_id)
        workshop, job = self._workshop(judged, spec)
        self._execute(plan_id, cmd.RecordChecks(id=artifact_id, checks=workshop.checks(job, {gate})))
        return self._finished(plan_id, artifact_id)

    def judge_work(self, plan_id: str, words: Iterable[str], verdict: Word, *, text: str = "") -> list[Finished]:
        """Approve or reject artifacts where a person is asked: at their approval gate, or the one gate they have."""
        state = self._show(plan_id).state
        found = []
        for artifact_id in self._work.session.resolve(state, list(words)):
            asked = [gate for gate in state.artifacts[artifact_id].gates if gate.kind != "check"]
            gates = [gate for gate in asked if gate.kind == "approval"] or (asked if len(asked) == 1 else [])
            if not gates:
                raise UsageError(
                    f"Artifact {artifact_id} has no approval gate",
                    facts={"its gates": ", ".join(gate.name for gate in state.artifacts[artifact_id].gates) or "none"},
                    hint=f"headway gate {as_word(artifact_id)} NAME {verdict.lower()} --by NAME",
                    code="gate.unknown",
                )
            found += [self.verdict(plan_id, artifact_id, gate.name, verdict, text=text) for gate in gates]
        return found

    # What the above have in common.

    def _named(self, plan_id: str, word: str) -> tuple[State, str]:
        state = self._show(plan_id).state
        return state, self._work.session.resolve(state, [word])[0]

    def _find(self, plan_id: str, word: str) -> tuple[Judged, str]:
        """An artifact, judged with what it requires and nothing else."""
        execution = self._grown(plan_id)
        artifact_id = self._work.session.resolve(execution.state, [word])[0]
        return self._judge(plan_id, execution, _with_earlier(execution.state, artifact_id)), artifact_id

    def _grown(self, plan_id: str) -> SavedExecution:
        """The plan as it is, with the units that its pipelines have by now: whoever works by hand waits for no run."""
        execution, due = self._work.session.foreseen(self._show(plan_id, newest=True))
        if not due:
            return execution
        self._execute(plan_id, *due)
        return self._show(plan_id, newest=True)

    def _judge(self, plan_id: str, execution: SavedExecution, just: Sequence[str] = ()) -> Judged:
        """Judge artifacts; where the ledger is kept open, with what the same version of the plan said of itself."""
        version, judged = self._judges.get(plan_id, (0, None))
        if judged is None or version != execution.state.version:
            judged = self._work.session.judge(plan_id, execution=execution, just=just)
            state = execution.state
            if self._kept is not None and not state.settings.pipelines and not state.units:  # these grow unasked
                self._judges[plan_id] = execution.state.version, judged
            return judged
        judged.judge.look_again(execution.state)
        judged.judge.all(just)
        judged.reasons.update({a: Reason("in_progress") for a in execution.state.claims if a in judged.reasons})
        return judged._replace(execution=execution)

    def _token(self, state: State, artifact_id: str, token: int | None) -> int:
        if token is not None:
            return token
        claim = state.claims.get(artifact_id)
        if claim is not None and claim.by == self._by and not claim.run and self._holder in ("", claim.holder):
            return claim.seq
        ended = self._ended(state.plan_id, artifact_id)
        until = f" until {claim.lease}" if claim is not None and claim.lease else ""
        status = recorded_status(state, artifact_id)
        if claim is None and status == "complete":
            hint = f"headway why {as_word(artifact_id)}"
        elif claim is None:
            hint = f"headway claim {as_word(artifact_id)}{self._as_me}"
        elif ended:
            hint = "it is theirs now: headway next has other work"
        else:
            hint = "give the token that the claim printed: --token N"
        raise UsageError(
            f"Artifact {artifact_id} is not claimed by {self._by}",
            facts={
                **({"your claim": ended} if ended else {}),
                "its holder": f"{claim.by}{until}" if claim else "nobody",
                "status": status,
            },
            hint=hint,
            code="claim.none",
        )

    def _ended(self, plan_id: str, artifact_id: str) -> str:
        """How one's own last claim of it ended, if not by finishing it."""
        mine, ended = False, ""
        for record in self._project.log(plan_id):
            event = record.event
            if isinstance(event, ArtifactStarted) and any(start.id == artifact_id for start in event.starts):
                mine = record.by == self._by
                ended = "" if mine else ended
            elif isinstance(event, ArtifactReleased) and mine and artifact_id in event.ids:
                mine, ended = False, event.reason
        return ended

    @property
    def _as_me(self) -> str:
        """The option that makes a command one's own."""
        return f" --by {quote(self._by)}"

    def _mended(self, artifact_id: str) -> str:
        return (
            f"mend it, then headway complete {as_word(artifact_id)}{self._as_me}; "
            f"or headway fail {as_word(artifact_id)}{self._as_me} --error TEXT"
        )

    def _finished(self, plan_id: str, artifact_id: str) -> Finished:
        """What is on disk now."""
        state = self._show(plan_id).state
        done = last_made(state, artifact_id)
        if done is None:
            raise NotFound(
                f"Artifact {artifact_id} was taken back meanwhile",
                hint=f"headway why {as_word(artifact_id)}",
                code="artifact.gone",
            )
        return Finished(artifact_id, recorded_status(state, artifact_id), done, missing(state, artifact_id))

    def _outputs(self, judged: Judged, spec: ArtifactSpec, text: bytes | None) -> tuple[Output, ...]:
        outputs = judged.judge.outputs
        if not spec.produces and not spec.modifies:
            return (outputs.keep_text(text or b""),)
        paths = (*spec.produces, *spec.modifies)
        wanted = [path for path in paths if path not in spec.optional]
        absent = [path for path in wanted if not os.path.lexists(os.path.join(self._project.root, path))]
        if absent:
            raise UsageError(
                f"Artifact {spec.id} is not all there",
                facts={"missing": ", ".join(absent)},
                hint=f"write it, then headway complete {as_word(spec.id)}{self._as_me}",
                code="output.missing",
            )
        return outputs.capture(paths)

    def _workshop(self, judged: Judged, spec: ArtifactSpec) -> tuple[Workshop, Job]:
        state, root = judged.execution.state, self._project.root
        workshop = Workshop(root, judged.judge.outputs, self._project.home)
        job = Job(
            spec=spec,
            root=root,
            inputs=workshop.inputs(spec, judged.judge.recorded),
            sources=judged.judge.sources_of(spec.id),
            variables=state.settings.vars,
            around=Surroundings(self._work.session.environ, state.plan_id),
            timeout=spec.timeout or state.settings.timeout,
        )
        return workshop, job

    def _verify(self, workshop: Workshop, job: Job) -> bool:
        """Whether its `verify` was run and agreed; one that does not agree refuses the completion."""
        checked = workshop.verify(job)
        if checked is not None and not checked.ok:
            raise UsageError(
                f"verify does not agree with {job.spec.id}",
                facts={"verify": job.spec.verify, "error": checked.error},
                hint=self._mended(job.spec.id),
                code="verify.failed",
            )
        return checked is not None

    def _refuse_strange_bytes(self, judged: Judged, artifact_id: str) -> None:
        """A check looks at files; what it says is recorded about the bytes that were recorded."""
        for output in judged.judge.recorded(artifact_id):
            if output.path and judged.judge.observer.look(output.path.rstrip("/")).digest != output.digest:
                raise UsageError(
                    f"{output.path} is not what was recorded of {artifact_id}",
                    hint=f"headway why {as_word(artifact_id)}",
                    code="gate.bytes",
                )

    def _writer(self, plan_id: str) -> Writer | None:
        """The plan's writer, where it is kept open."""
        if self._kept is not None and plan_id not in self._writers:
            folder = self._project.folder(plan_id)
            self._writers[plan_id] = self._kept.enter_context(folder.writing())
        return self._writers.get(plan_id)

    def _show(self, plan_id: str, *, newest: bool = False) -> SavedExecution:
        """The plan as it is on disk now; where the ledger is kept open, as of one's own last look: every write is one.

        Rules are decided on the newest state in any case: an old look costs at most a refusal.
        """
        writer = self._writer(plan_id)
        if writer is None:
            return self._project.show(plan_id)
        state = writer.catch_up() if newest or writer.state is None else writer.state
        if state is None or writer.position is None:
            return self._project.show(plan_id)
        return SavedExecution(state, writer.position)

    def _judged(self, meant: Meant) -> Judged:
        if self._kept is None or meant.plan is not None:
            return self._work.judge(meant)
        return self._judge(meant.plan_id, self._show(meant.plan_id, newest=True))

    def _execute(self, plan_id: str, *commands: cmd.Command) -> Sequence[Any]:
        return self._project.execute(plan_id, *commands, by=self._by, writer=self._writer(plan_id))


def _with_earlier(state: State, artifact_id: str) -> list[str]:
    """An artifact, and those that only come before it."""
    return [artifact_id, *(a for a in state.artifacts[artifact_id].after if a in state.artifacts)]


def _making(state: State, artifact_id: str) -> str:
    """The command that gets an artifact made, or tells when somebody has made it."""
    if artifact_id in state.claims:
        return f"headway status: {artifact_id} is in the hands of {state.claims[artifact_id].by}"
    return f"headway {'run' if state.artifacts[artifact_id].has_recipe else 'claim'} {artifact_id}"


def _until(seconds: float) -> str:
    """When a lease of so many seconds ends, as events have it."""
    if not 0 < seconds <= 366 * 86400:
        raise UsageError("A lease is more than nothing and at most a year", hint="--lease 30m", code="claim.lease")
    end = datetime.now(UTC) + timedelta(seconds=seconds)
    return f"{end.replace(tzinfo=None).isoformat(timespec='microseconds')}Z"
