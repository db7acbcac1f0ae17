"""What is asked of a run, and what came of it. The same value serves Python, `--json` and the lines on a screen."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Annotated, Any, Literal, NamedTuple, Protocol

import msgspec

from headway.core.freshness import Reason
from headway.core.ids import as_word
from headway.core.state import Output
from headway.errors import HeadwayError, UsageError

Status = Literal["completed", "failed", "paused", "refused", "interrupted"]
STATUS: Mapping[int, Status] = {0: "completed", 1: "failed", 3: "refused", 75: "paused", 130: "interrupted"}
INTERRUPTIONS = frozenset({"interrupted", "terminated"})


class Options(msgspec.Struct, frozen=True, kw_only=True):
    """What a run is to do. The defaults make whatever is stale."""

    targets: tuple[str, ...] = ()
    until: tuple[str, ...] = ()
    limit: Annotated[int, msgspec.Meta(ge=1)] | None = None
    jobs: Annotated[int, msgspec.Meta(ge=1)] | None = None
    rerun: tuple[str, ...] = ()
    rerun_from: tuple[str, ...] = ()
    rerun_all: bool = False
    fail_fast: bool = False
    on_edit: Literal["ask", "accept", "discard"] | None = None
    reason: str = ""
    max_time: Annotated[float, msgspec.Meta(ge=0)] | None = None
    prompt_change: str = ""
    force_resume: bool = False
    yes: bool = False

    @property
    def part(self) -> tuple[str, ...]:
        """The part of the plan that is wanted, as somebody would type it."""
        until = ("--until", *self.until) if self.until else ()
        return (*self.targets, *until, *(("--limit", str(self.limit)) if self.limit is not None else ()))

    @property
    def partial(self) -> bool:
        """Only a part of the plan is wanted, so the plan's own end is not this run's to declare."""
        return bool(self.targets or self.until or self.limit is not None)


def options_of(targets: Iterable[Any], jobs: int | None, options: Mapping[str, Any]) -> Options:
    """Options as they are kept: of one name, too, a tuple is made, and names may come in lists. What is none is refused
    here: an event that says so would be in the ledger for good.
    """
    known = [name for name in Options.__struct_fields__ if name != "targets"]
    unknown = next((name for name in options if name not in known), "")
    if unknown:
        from headway.core.nearest import Nearest

        near = Nearest(known).of(unknown)
        raise UsageError(
            f"run has no option {unknown}",
            facts={"did you mean": near} if near else {"known": ", ".join(known)},
            hint="docs/python.md lists them",
            code="usage.option",
        )
    found: dict[str, Any] = {
        key: tuple(value) if isinstance(value, (list, set)) else value
        for key, value in options.items()
        if value is not None
    }
    named = {key: (found[key],) for key in ("until", "rerun", "rerun_from") if isinstance(found.get(key), str)}
    words = [word for given in targets for word in (given if isinstance(given, (list, tuple, set)) else (given,))]
    if strange := [word for word in words if not isinstance(word, str)]:
        raise UsageError(
            f"{strange[0]!r} names no artifact",
            hint='plan.run("report"): ids, patterns and paths',
            code="artifact.unknown",
        )
    try:
        return msgspec.convert({"targets": tuple(words), "jobs": jobs} | found | named, Options)
    except msgspec.ValidationError as error:
        what, _, where = str(error).partition(" - at `$.")
        raise UsageError(
            f"Option {where.rstrip('`') or 'given'} of run cannot be that",
            facts={"reason": what},
            hint="docs/python.md lists them",
            code="usage.option",
        ) from error


class Decision(NamedTuple):
    """Something that only the user can decide, and the flags that do."""

    code: str
    artifacts: list[str]
    flags: list[str]


_WORDS: Mapping[str, str] = {"approval": "headway approve ", "gates": "headway gate "}
"""Words that a run waits for, each with how the command that gives it begins."""

CLAIMED = "claimed by "
"""How it is told that somebody has an artifact in hand; their name follows."""

NEXT_GATE = "; gate "
"""What stands between the gates that one artifact waits at."""


class Pause(NamedTuple):
    """Why a run stopped before its end, and what resumes it."""

    code: str
    until: str = ""
    resume: str = "headway run"
    artifact: str = ""


class Preserved(NamedTuple):
    """What stood at paths of an artifact and was replaced: the event from which it can be restored."""

    artifact: str
    paths: list[str]
    seq: int


class RunResult(msgspec.Struct, kw_only=True):
    """What a run made, kept and could not do."""

    plan_id: str
    run_id: str = ""
    targets: tuple[str, ...] = ()
    """The part of the plan that was asked for, as somebody typed it."""
    made: list[str] = []
    kept: list[str] = []
    restored: list[str] = []
    reused: list[str] = []
    accepted: list[str] = []
    failed: dict[str, str] = {}
    blocked: dict[str, str] = {}
    elsewhere: dict[str, str] = {}
    """What other plans have to make first, each with the command that does."""
    waiting: dict[str, str] = {}
    reasons: dict[str, Reason] = {}
    decisions: list[Decision] = []
    paused: Pause | None = None
    moved: dict[str, str] = {}
    beyond: list[str] = []
    """What is left because as many as were wanted were begun."""
    preserved: list[Preserved] = []
    """Where something stood that no ledger named: kept, and then replaced."""
    unstable: list[str] = []
    code_unknown: list[str] = []
    """What was kept, though only the program that defines its function knows whether its code has changed."""
    gone: list[str] = []
    left: list[str] = []
    """Files of units that are gone: they are there, and nothing in the plan makes them."""
    prompts: list[Any] = []
    """Changed templates that are to be decided about."""
    undecided: list[str] = []
    """What was kept with the prompt that it was made with: its unit only hands on its state to the targets."""
    duration_ms: int = 0
    tokens: int = 0
    cost_usd: float = 0.0
    saved_ms: int = 0
    listed: dict[str, tuple[Output, ...]] = {}
    root: str = ""
    read: Any = None
    recall: Any = None
    """What lists the outputs and gives what reads them; nobody needs them until one is asked for."""
    ended: Any = None
    """The plan's state at the end of the run, where somebody wants to be told of it."""

    @property
    def outputs(self) -> dict[str, tuple[Output, ...]]:
        """What each artifact came to, by id: listed when somebody asks."""
        if not self.listed and self.recall is not None:
            self.listed, self.read = self.recall()
        return self.listed

    @property
    def arrived(self) -> list[str]:
        """Whatever stands at its paths since this run."""
        return [*self.made, *self.restored, *self.reused, *self.accepted]

    @property
    def ok(self) -> bool:
        """All that was asked for is done."""
        return self.status == "completed"

    @property
    def exit_code(self) -> int:
        """When several things happened, the first of 130, 3, 1, 75 counts."""
        if self.paused is not None and self.paused.code in INTERRUPTIONS:
            return 130
        if self.decisions:
            return 3
        if self.failed or self.blocked or self.moved:
            return 1
        return 75 if self.paused is not None or self.waiting else 0

    @property
    def status(self) -> Status:
        """How it ended, in a word; follows the exit code."""
        return STATUS[self.exit_code]

    def decide(self, code: str, artifact_id: str, flags: list[str]) -> None:
        """One more artifact about which only the user can decide."""
        known = next((d for d in self.decisions if (d.code, d.flags) == (code, flags)), None)
        if known is None:
            self.decisions.append(Decision(code, [artifact_id], flags))
        else:
            known.artifacts.append(artifact_id)

    def after(self, earlier: Sequence[RunResult]) -> RunResult:
        """This result, with what earlier runs did on the way to it: one call, several versions of the plan."""
        kept = set(self.kept)
        for before in reversed(earlier):
            for name in ("made", "restored", "reused", "accepted"):
                now = getattr(self, name)
                now[:0] = [a for a in getattr(before, name) if a in kept]
                kept.difference_update(now)
            self.duration_ms += before.duration_ms
        self.kept = [a for a in self.kept if a in kept]
        return self

    def __str__(self) -> str:
        held = [a for decision in self.decisions for a in decision.artifacts]
        counts = {"made": self.made, "restored": self.restored, "reused": self.reused, "accepted": self.accepted}
        more = {
            "kept": self.kept,
            "failed": self.failed,
            "blocked": self.blocked,
            "held": held,
            "waiting": self.waiting,
        }
        parts = [f"{len(found)} {name}" for name, found in (counts | more).items() if found]
        said = ", ".join(parts) or ("nothing to do" if self.ok else "nothing made")
        if self.paused is not None:
            from headway.projections.story import moment  # few print a pause

            until = f" until {moment(self.paused.until)}" if self.paused.until else ""
            said += f" ({self.paused.code}{until})"
        return f"{self.plan_id} {self.status}: {said}"

    def __repr__(self) -> str:
        return f"<RunResult {self}>"

    def __getitem__(self, artifact_id: str) -> Product:
        outputs = self.outputs[artifact_id]
        return Product(artifact_id, outputs, self.read)

    @property
    def resume(self) -> str:
        """The one command that goes on after a pause: where words are waited for, the one that gives the first."""
        if self.paused is None or self.paused.code not in _WORDS:
            return self.paused.resume if self.paused is not None else ""
        begins = _WORDS[self.paused.code]
        how = next((how for how in self.waiting.values() if begins in how), "")
        if self.paused.code == "approval":  # it stands last, behind whatever was said against the plan
            return f"{begins}{how.rpartition(begins)[2]}" if how else self.paused.resume
        return f"{begins}{how.partition(begins)[2].partition(NEXT_GATE)[0]}" if how else self.paused.resume

    def to_dict(self) -> dict[str, Any]:
        """The document of `run --json`."""
        return {
            "plan_id": self.plan_id,
            "run_id": self.run_id,
            "status": self.status,
            "made": self.made,
            "kept": self.kept,
            "restored": self.restored,
            "reused": self.reused,
            "accepted": self.accepted,
            "failed": self.failed,
            "blocked": self.blocked,
            "elsewhere": self.elsewhere,
            "waiting": self.waiting,
            "reasons": {a: r.to_dict() for a, r in self.reasons.items()},
            "decisions": [d._asdict() for d in self.decisions],
            "paused": {**self.paused._asdict(), "resume": self.resume} if self.paused else None,
            "changed_meanwhile": self.moved,
            "preserved": [kept._asdict() for kept in self.preserved],
            "unstable": self.unstable,
            "code_unknown": self.code_unknown,
            "removed": self.gone,
            "left": self.left,
            "prompts": [question.to_dict() for question in self.prompts],
            "undecided": self.undecided,
            "duration_ms": self.duration_ms,
            "tokens": self.tokens,
            "cost_usd": self.cost_usd,
        }


class Product(NamedTuple):
    """What one artifact came to."""

    id: str
    outputs: tuple[Output, ...]
    read: Any

    def bytes(self) -> bytes:
        """Its first output."""
        data: bytes = self.read(self.outputs[0])
        return data

    def text(self, encoding: str = "utf-8") -> str:
        """Its first output as text."""
        return self.bytes().decode(encoding)

    def json(self, kind: Any = None) -> Any:
        """Its first output as JSON, checked against a type if one is given."""
        from headway.engine.recipes.base import from_json  # for whoever asks

        return from_json(self.bytes(), kind)

    @property
    def paths(self) -> list[str]:
        """Where its outputs are."""
        return [output.path for output in self.outputs if output.path]


_OPTIONS = {
    "--accept-edits": 'on_edit="accept"',
    "--discard-edits": 'on_edit="discard"',
    "--rerun-all": "rerun_all=True",
    "--force-resume": "force_resume=True",
    "--yes": "yes=True",
    "--resume-allow-prompt-change": "prompt_change",
}
"""Where an option of `plan.run` is not called as the flag is, or needs no value there."""


def _as_option(typed: str) -> str:
    """What somebody would type who decides, as a program says it to `plan.run`."""
    import shlex

    flags: dict[str, list[str]] = {}
    for word in shlex.split(typed):
        if word.startswith("--"):
            values = flags.setdefault(word, [])
        elif flags:
            values.append(word)
    options = []
    for flag, given in flags.items():
        name = _OPTIONS.get(flag) or flag[2:].replace("-", "_")
        value = msgspec.json.encode(given[0] if len(given) == 1 else given).decode()
        options.append(f"{name}={value}" if given else name)
    return ", ".join(options) or typed


class RunFailed(HeadwayError):
    """A run that did not do all that was asked; `result` says what it did."""

    code = "run.failed"

    def __init__(self, result: RunResult) -> None:
        self.result = result
        what: dict[str, object] = dict(result.failed)
        for decision in result.decisions:
            options = " or ".join(map(_as_option, decision.flags))
            what.update(dict.fromkeys(decision.artifacts, f"{decision.code}: {options}"))
        what.update({a: f"waits: {how}" for a, how in result.waiting.items()})
        what.update({a: f"blocked by {by}" for a, by in result.blocked.items() if a not in what})
        if result.paused is not None:
            where = f" at {result.paused.artifact}" if result.paused.artifact else ""
            until = f" until {result.paused.until}" if result.paused.until else ""
            what["paused"] = f"{result.paused.code}{where}{until}"
        first = next((a for a in what if a != "paused"), "")
        super().__init__(
            f"The run of {result.plan_id} {result.status}",
            facts=dict(list(what.items())[:10]),
            hint=f"headway why {as_word(first)} --plan-id {result.plan_id}"
            if first
            else f"headway run --plan-id {result.plan_id}",
        )


Made = tuple[str, Reason, int]
"""An artifact that was made: why, and in how many ms."""


class Reporter(Protocol):
    """Whoever wants to know what a run does, as it does it. `printed` comes from the threads that run commands."""

    def begun(self, result: RunResult, stale: Mapping[str, Reason], jobs: int) -> None: ...
    def started(self, artifact_id: str, reason: Reason) -> None: ...
    def printed(self, artifact_id: str, data: bytes) -> None: ...
    def finished(self, artifact_id: str, outcome: str, reason: Reason, ms: int, note: str) -> None: ...
    def ended(self, result: RunResult) -> None: ...

    def made(self, done: Sequence[Made]) -> None:
        """What ended together, and well: as `finished` of one after the other, for whoever tells of many at once."""
        for artifact_id, reason, ms in done:
            self.finished(artifact_id, "made", reason, ms, "")

    def released(self, artifact_id: str) -> None:
        """It had begun, or was about to, and is given back: the run stops, or looks at it anew."""
        return


class Silent(Reporter):
    """Nobody wants to know."""

    def begun(self, result: RunResult, stale: Mapping[str, Reason], jobs: int) -> None:
        pass

    def started(self, artifact_id: str, reason: Reason) -> None:
        pass

    def printed(self, artifact_id: str, data: bytes) -> None:
        pass

    def finished(self, artifact_id: str, outcome: str, reason: Reason, ms: int, note: str) -> None:
        pass

    def made(self, done: Sequence[Made]) -> None:
        pass

    def ended(self, result: RunResult) -> None:
        pass
