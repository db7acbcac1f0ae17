"""The tools: names, arguments, descriptions. Each is one call at an agent's desk.

The first twelve are what an agent needs to make a plan, work it off and go on with somebody else's; `--tools all` has
the rest. Descriptions are read by models with every conversation: each word of them is paid for again and again.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Any, NamedTuple

from pydantic import Field

from headway.desk import Desk
from headway.surfaces.mcp.shapes import Briefing, Claimed, Done, Page, Planned, Ran, Told

Cursor = Annotated[str, Field(description="next_cursor of the page before")]
PlanId = Annotated[str, Field(description="default: the project's plan")]
Token = Annotated[int | None, Field(description="from claim; not needed on the same connection")]
Drop = Annotated[list[str] | None, Field(description="completed work to give up")]
Reason = Annotated[str, Field(description="why, for the record")]
Ticket = Annotated[str, Field(description="ask again for what took long")]
Ids = Annotated[list[str], Field(description="artifact ids")]
Format = Annotated[str, Field(description="checkpoint or rawko")]
History = Annotated[list[dict[str, Any]] | None, Field(description="agent, status, artifact, error: what was done")]
FieldsOf = Annotated[dict[str, Any], Field(description="keys of an artifact in a plan")]


def status(desk: Desk, plan_id: PlanId = "") -> Briefing:
    """Briefing: goal, progress, what is next, in hand, failed or blocked, and what to do. Start here."""
    return desk.status(plan_id)  # type: ignore[return-value]  # the desk answers with plain documents, here and below


def get_plan(desk: Desk, artifact: str = "", plan_id: PlanId = "", cursor: Cursor = "") -> Page:
    """The plan's artifacts with their status; with `artifact`, all about that one."""
    return desk.plan(plan_id, artifact, cursor)  # type: ignore[return-value]


def save_plan(
    desk: Desk,
    plan: Annotated[
        dict[str, Any] | str,
        Field(
            description="goal, id?, constraints?, artifacts: {id: {description, contract?, requires?: [ids], "
            "produces?: [paths], instructions?, acceptance?: [texts], verify?: shell command, run?: shell command "
            "that makes it, agent?, milestone?}}. Object or YAML. Without produces the result is text."
        ),
    ],
    drop: Drop = None,
    plan_id: str = "",
) -> Planned:
    """Create a plan, or change one saved here before by what is different now. All problems are reported at once."""
    return desk.save_plan(plan, drop or (), plan_id)  # type: ignore[return-value]


def next_(desk: Desk, agent: str = "", plan_id: PlanId = "", cursor: Cursor = "") -> Page:
    """What can be made now (for `agent` or anybody), in full; and what the rest waits for."""
    return desk.next(plan_id, agent, cursor)  # type: ignore[return-value]


def claim(desk: Desk, artifact: str = "", agent: str = "", plan_id: PlanId = "") -> Claimed:
    """Take an artifact in hand: `artifact`, or the next that `run` does not make. Takes over from a holder who is gone;
    `continues` says whose work and their notes. Then write what it `produces` and call complete."""
    return desk.claim(artifact, plan_id, agent)  # type: ignore[return-value]


def note(desk: Desk, artifact: str, note: str, token: Token = None, plan_id: PlanId = "") -> Claimed:
    """Keep a claim, and leave a note on how far it is: whoever goes on will read it."""
    return desk.note(artifact, note, token, plan_id)  # type: ignore[return-value]


def complete(
    desk: Desk,
    artifact: str = "",
    text: Annotated[str | None, Field(description="the result, if it produces no file")] = None,
    note: str = "",
    token: Token = None,
    plan_id: PlanId = "",
) -> Done:
    """Finish a claimed artifact: its files are read, verify and gates are run. May return a ticket."""
    return desk.complete(artifact, text, note, token, plan_id)  # type: ignore[return-value]


def fail(desk: Desk, artifact: str, error: str, token: Token = None, plan_id: PlanId = "") -> Done:
    """Say that a claimed artifact did not work out, and why."""
    return desk.fail(artifact, error, token, plan_id)  # type: ignore[return-value]


def release(desk: Desk, artifact: str, reason: Reason, token: Token = None, plan_id: PlanId = "") -> Done:
    """Give a claim back: nothing is wrong. The reason is kept as a note."""
    return desk.release(artifact, reason, token, plan_id)  # type: ignore[return-value]


def why(desk: Desk, artifact: str, plan_id: PlanId = "") -> Told:
    """Why an artifact is fresh, stale, failed or blocked: root causes, last error, what is missing."""
    return desk.why(artifact, plan_id)  # type: ignore[return-value]


def run(
    desk: Desk, targets: Annotated[list[str] | None, Field(description="ids; default all")] = None, plan_id: PlanId = ""
) -> Ran:
    """Make what is stale and has a recipe (run, make). May return a ticket."""
    return desk.run(targets or (), plan_id)  # type: ignore[return-value]


def replan(
    desk: Desk,
    reason: Reason,
    changes: Annotated[
        dict[str, Any],
        Field(description="add: {id: fields}, update: {id: fields}, remove: [ids], goal; fields as in save_plan"),
    ],
    drop: Drop = None,
    plan_id: PlanId = "",
) -> Planned:
    """Make a change the plan's next version, keeping completed work that still fits."""
    return desk.replan(reason, changes, drop or (), plan_id)  # type: ignore[return-value]


# The rest.


def skip(desk: Desk, artifacts: Ids, reason: Reason, plan_id: PlanId = "") -> Told:
    """Decide that artifacts are not made; what requires them goes on."""
    return desk.skip(artifacts, reason, plan_id)  # type: ignore[return-value]


def add_artifact(
    desk: Desk, artifact: str, fields: FieldsOf, reason: Reason, after: str = "", plan_id: PlanId = ""
) -> Planned:
    """Add an artifact, behind `after` or at the end."""
    return desk.add(artifact, fields, reason, after, plan_id)  # type: ignore[return-value]


def update_artifact(desk: Desk, artifact: str, fields: FieldsOf, reason: Reason, plan_id: PlanId = "") -> Planned:
    """Change fields of an artifact."""
    return desk.update(artifact, fields, reason, plan_id)  # type: ignore[return-value]


def remove_artifacts(
    desk: Desk,
    artifacts: Ids,
    reason: Reason,
    unfinished: Annotated[bool, Field(description="also what is not done")] = False,
    plan_id: PlanId = "",
) -> Planned:
    """Remove artifacts from the plan; what they made stays on disk."""
    return desk.remove(artifacts, reason, unfinished, plan_id)  # type: ignore[return-value]


def reorder_artifacts(desk: Desk, artifacts: Ids, reason: Reason, after: str = "", plan_id: PlanId = "") -> Planned:
    """Put artifacts behind `after`, or first."""
    return desk.reorder(artifacts, reason, after, plan_id)  # type: ignore[return-value]


def gate(
    desk: Desk,
    artifact: str,
    gate: str = "",
    verdict: Annotated[str, Field(description="approve, reject, concerns; none runs a check")] = "",
    text: str = "",
    plan_id: PlanId = "",
) -> Done:
    """The gates of an artifact; with `gate`, say a word at it or run its check."""
    return desk.gate(artifact, gate, verdict, text, plan_id)  # type: ignore[return-value]


def approve(
    desk: Desk,
    plan_hash: Annotated[str, Field(description="only if the plan still has this hash")] = "",
    note: str = "",
    plan_id: PlanId = "",
) -> Told:
    """Approve the plan as it is."""
    return desk.approve(plan_hash, note, plan_id)  # type: ignore[return-value]


def reject(desk: Desk, reason: Reason, plan_id: PlanId = "") -> Told:
    """Reject the plan as it is: nothing of it is made until it is approved."""
    return desk.reject(reason, plan_id)  # type: ignore[return-value]


def get_approved_plan(desk: Desk, plan_id: PlanId = "") -> Told:
    """What was approved, by whom, and how the plan differs from it now."""
    return desk.approved(plan_id)  # type: ignore[return-value]


def milestones(desk: Desk, plan_id: PlanId = "", cursor: Cursor = "") -> Page:
    """Groups of artifacts, and how far each is."""
    return desk.milestones(plan_id, cursor)  # type: ignore[return-value]


def phases(desk: Desk, unit: str, plan_id: PlanId = "") -> Told:
    """The phase ledger of a unit: what each phase came to, and the attempts before."""
    return desk.phases(unit, plan_id)  # type: ignore[return-value]


def preview(desk: Desk, targets: list[str] | None = None, plan_id: PlanId = "", cursor: Cursor = "") -> Page:
    """What run would make, and why: an upper bound."""
    return desk.preview(targets or (), plan_id, cursor)  # type: ignore[return-value]


def log(desk: Desk, since: int = 1, plan_id: PlanId = "", cursor: Cursor = "") -> Page:
    """What happened, from event `since` on."""
    return desk.log(plan_id, since, cursor)  # type: ignore[return-value]


def search(desk: Desk, words: str, cursor: Cursor = "") -> Page:
    """Find artifacts of all plans by words."""
    return desk.search(words, cursor)  # type: ignore[return-value]


def list_plans(desk: Desk, cursor: Cursor = "") -> Page:
    """The plans of this project."""
    return desk.plans(cursor)  # type: ignore[return-value]


def who(desk: Desk, last: History = None, plan_id: PlanId = "") -> Told:
    """Which agent goes on with what is next, by rule."""
    return desk.who(last or (), plan_id)  # type: ignore[return-value]


def learn(desk: Desk, text: str, artifact: str = "", plan_id: PlanId = "") -> Told:
    """Write down what is worth knowing the next time; about `artifact`, if named."""
    return desk.learn(text, artifact, plan_id)  # type: ignore[return-value]


def recall(desk: Desk, goal: str = "", budget: int = 0, plan_id: PlanId = "") -> Told:
    """Learnings, related goals and artifacts that bear on `goal` (default: the plan's), within `budget` tokens."""
    return desk.recall(goal, budget, plan_id)  # type: ignore[return-value]


def export(
    desk: Desk,
    path: str,
    format: Format = "checkpoint",
    plan_id: PlanId = "",
) -> Told:
    """Write a checkpoint of the plan inside the project."""
    return desk.export(path, format, plan_id)  # type: ignore[return-value]


def import_(
    desk: Desk,
    path: str,
    format: Format = "checkpoint",
    plan_id: str = "",
    replace: bool = False,
) -> Planned:
    """Take in a checkpoint from inside the project."""
    return desk.import_(path, format, plan_id, replace)  # type: ignore[return-value]


class Spec(NamedTuple):
    """One tool: what it does, whether it only reads, and whether it can take long."""

    call: Callable[..., Any]
    reads: bool = False
    long: bool = False

    @property
    def name(self) -> str:
        return str(self.call.__name__).rstrip("_")


LEAN = (
    Spec(status, reads=True),
    Spec(get_plan, reads=True),
    Spec(save_plan),
    Spec(next_, reads=True),
    Spec(claim),
    Spec(note),
    Spec(complete, long=True),
    Spec(fail),
    Spec(release),
    Spec(why, reads=True),
    Spec(run, long=True),
    Spec(replan),
)
REST = (
    Spec(skip),
    Spec(add_artifact),
    Spec(update_artifact),
    Spec(remove_artifacts),
    Spec(reorder_artifacts),
    Spec(gate, long=True),
    Spec(approve),
    Spec(reject),
    Spec(get_approved_plan, reads=True),
    Spec(milestones, reads=True),
    Spec(phases, reads=True),
    Spec(preview, reads=True),
    Spec(log, reads=True),
    Spec(search, reads=True),
    Spec(list_plans, reads=True),
    Spec(who, reads=True),
    Spec(learn),
    Spec(recall, reads=True),
    Spec(export),
    Spec(import_),
)
