"""plan.json: a plan, its execution and its metrics in RFC-040's shape, and nothing lost on the way.

The file opens with its own digest, the plan's id and the ledger position that it reflects; the position has a seal
of its own, so that it can be believed without reading the rest. `plan` holds whatever RFC-040 has no place for.
Read back, the file gives the same state.
"""

from __future__ import annotations

import itertools
import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from itertools import islice
from typing import Any, NamedTuple, TypeVar, get_args

import msgspec

from headway.core import codec
from headway.core.graph import ArtifactGraph
from headway.core.ids import hash_goal
from headway.core.lifecycle import all_done, is_done
from headway.core.plan import ArtifactSpec, PlanSpec, Profile
from headway.core.state import Attempt, Completion, PlanStatus, Position, State
from headway.errors import FormatTooNew, UsageError

VERSION = "1.0"
OPENING_BYTES = 512
"""The opening of a file fits into this many bytes."""

AT_ONCE = 500
"""So many artifacts are written down at one time."""

T = TypeVar("T")

_BLANK = b"0" * codec.HASH_LENGTH
_OPENING = (
    rb'\{\s*"digest":\s*"(?P<digest>[0-9a-f]{32})",\s*"plan_id":\s*"(?P<plan_id>[A-Za-z0-9._-]{1,64})",'
    rb'\s*"position":\s*\{\s*"seq":\s*(?P<seq>\d{1,18}),\s*"hash":\s*"(?P<hash>[0-9a-f]{32})",'
    rb'\s*"seal":\s*"(?P<seal>[0-9a-f]{16})"'
)
_PAST = b'"past": {}'
_STATUSES = get_args(PlanStatus)
_ELSEWHERE = ("plan_id", "status")
"""Fields of the state that RFC-040's part of the file holds; of the others only what differs from its default."""


class Opening(NamedTuple):
    """What the first bytes of a file say: whose it is, and the event that it reflects."""

    plan_id: str
    position: Position


class SavedExecution(msgspec.Struct, frozen=True):
    """Plan, progress and trace of one goal, as of one event."""

    state: State
    position: Position

    @property
    def plan_id(self) -> str:
        return self.state.plan_id

    @property
    def goal(self) -> str:
        return self.state.goal

    @property
    def goal_hash(self) -> str:
        return hash_goal(self.state.goal)

    @property
    def status(self) -> str:
        return self.state.status

    @property
    def graph(self) -> ArtifactGraph:
        return ArtifactGraph.over(self.state.artifacts)

    @property
    def completed(self) -> dict[str, Completion]:
        return self.state.completed

    @property
    def failed(self) -> dict[str, str]:
        return {artifact_id: failure.error for artifact_id, failure in self.state.failed.items()}

    @property
    def skipped(self) -> list[str]:
        return list(self.state.skipped)

    @property
    def content_hashes(self) -> dict[str, str]:
        return {artifact_id: content_hash(done) for artifact_id, done in self.state.completed.items()}

    @property
    def created_at(self) -> str:
        return self.state.created_at

    @property
    def updated_at(self) -> str:
        return self.state.updated_at

    @property
    def model_distribution(self) -> dict[str, int]:
        return _distribution(self.state.artifacts.values())

    @property
    def proposal(self) -> PlanSpec:
        """The structure as somebody could have proposed it."""
        state = self.state
        return PlanSpec(
            goal=state.goal,
            id=state.plan_id,
            settings=state.settings,
            profile=state.profile,
            artifacts=tuple(spec for spec in state.artifacts.values() if not spec.pipeline),
        )

    def to_dict(self) -> dict[str, Any]:
        """RFC-040's keys, and `plan` for the rest; in the types that a JSON file gives back."""
        document: dict[str, Any] = msgspec.json.decode(render(self))
        del document["digest"]
        return document

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> SavedExecution:
        """Read back `to_dict`'s shape, or RFC-040's own without `plan`. Whatever does not fit together is refused."""
        version = str(data.get("version", VERSION))
        if version.split(".", maxsplit=1)[0] != VERSION.split(".", maxsplit=1)[0]:
            raise FormatTooNew(
                "This plan was saved by a newer Headway", facts={"version": version}, hint="use that version"
            )
        try:
            return cls(_state(data), _position(data.get("position")))
        except (msgspec.ValidationError, LookupError, TypeError, AttributeError, ValueError) as error:
            reason = f"{error} is missing" if isinstance(error, KeyError) else error
            raise _not_a_plan(reason) from error


# Writing.


def render(execution: SavedExecution) -> bytes:
    """The bytes of plan.json: the document, led by its own digest. What there is of each artifact takes a line."""
    state, waves = execution.state, execution.graph.waves()
    frame = msgspec.json.format(_encode(_frame(execution, waves)), indent=2) + b"\n"
    pieces: list[bytes] = []
    for opening, closing, lines in (
        (b'"artifacts": {', b"}", _spread(_artifact_lines, state.artifacts.values())),
        (b'"waves": [', b"]", _spread(_each, waves)),
        (b'"completed": {', b"}", _spread(_completed_lines, state.completed.items())),
    ):  # what opens cannot stand in a text before it: a quotation mark is escaped there
        before, _, frame = frame.partition(opening + closing)
        pieces += [before, opening, *lines, closing]
    if state.past:  # the last key of all
        before, opening, frame = frame.rpartition(_PAST)
        pieces += [before, opening[:-1], *_spread(_past_lines, state.past.items()), b"}"]
    pieces.append(frame)
    pieces[0] = pieces[0].replace(_BLANK, _digest_of(pieces).encode(), 1)
    return b"".join(pieces)


def _spread(lines_of: Callable[[list[T]], Iterable[str]], items: Iterable[T]) -> list[bytes]:
    """What stands between brackets, an item a line; nothing if there is none.

    Not of all items at once: what is made for the first would be out of reach before it is used.
    """
    rest, found = iter(items), list[bytes]()
    while some := list(islice(rest, AT_ONCE)):
        found += (b",\n      " if found else b"\n      ", ",\n      ".join(lines_of(some)).encode())
    return [*found, b"\n    "] if found else []


def _each(items: Iterable[Any], end: str = "\n") -> list[str]:
    """Each as JSON, in one go; without what all of them end in."""
    return _encode_lines(items).decode().split(end)[:-1]


def _past_lines(items: list[tuple[str, tuple[Attempt, ...]]]) -> Iterable[str]:
    ids, attempts = zip(*items, strict=True)
    return map("{}: {}".format, _each(ids), _each(attempts))


def _digest_of(pieces: Iterable[bytes | memoryview]) -> str:
    running = codec.Running()
    for piece in pieces:
        running.add(piece)
    return running.digest()


def _frame(execution: SavedExecution, waves: list[list[str]]) -> dict[str, Any]:
    """The document but for its artifacts, their waves, their completions and earlier attempts at them."""
    state, (seq, hash_) = execution.state, execution.position
    return {
        "digest": _BLANK.decode(),
        "plan_id": state.plan_id,
        "position": {"seq": seq, "hash": hash_, "seal": _seal(state.plan_id, execution.position)},
        "version": VERSION,
        "goal": state.goal,
        "goal_hash": execution.goal_hash,
        "created_at": state.created_at,
        "updated_at": state.updated_at,
        "graph": {"artifacts": {}, "waves": []},
        "execution": {
            "status": state.status,
            "completed": {},
            "failed": execution.failed,
            "skipped": execution.skipped,
        },
        "metrics": _metrics(state, waves),
        "execution_profile": profile_to_dict(state.profile),
        "plan": _rest(state),
    }


def _artifact_lines(specs: list[ArtifactSpec]) -> Iterable[str]:
    """All that each spec says, plus RFC-040's keys, which are always present."""
    ids = _each([spec.id for spec in specs])
    paths = _each([spec.produces[0] if spec.produces else None for spec in specs])
    return [
        f'{name}: {said},"produces_file":{path}'
        f"{_BLANKS[not spec.description, not spec.contract, not spec.requires, not spec.domain_type]}}}"
        for spec, name, said, path in zip(specs, ids, _each(specs, "}\n"), paths, strict=True)
    ]


def _completed_lines(items: list[tuple[str, Completion]]) -> Iterable[str]:
    """Completions, with RFC-040's names for what has one there."""
    ids = _each([artifact_id for artifact_id, _ in items])
    hashes, tiers = _each([content_hash(done) for _, done in items]), _each([done.tier for _, done in items])
    others = [
        msgspec.structs.replace(done, tier="", ms=0, verified=False) if done.tier or done.ms or done.verified else done
        for _, done in items
    ]
    return [
        f'{name}: {{"content_hash":{found},"model_tier":{tier},"duration_ms":{done.ms},'
        f'"verified":{"true" if done.verified else "false"},{rest[1:]}'
        for (_, done), name, found, tier, rest in zip(items, ids, hashes, tiers, _each(others), strict=True)
    ]


_encoder = msgspec.json.Encoder()
_encode, _encode_lines = _encoder.encode, _encoder.encode_lines
_RFC = (',"description":""', ',"contract":""', ',"requires":[]', ',"domain_type":null')
_BLANKS = {
    lacks: "".join(text for lack, text in zip(lacks, _RFC, strict=True) if lack)
    for lacks in itertools.product((False, True), repeat=len(_RFC))
}
"""RFC-040's keys by whether a spec lacks them."""


def profile_to_dict(profile: Profile | None) -> dict[str, Any] | None:
    """All four fields, whether they differ from their defaults or not; None for a plan that is not bound by one."""
    return msgspec.structs.asdict(profile) if profile is not None else None


def content_hash(done: Completion) -> str:
    """16 hex digits for what came out: of its one output, or of all of them together."""
    if len(done.outputs) == 1:
        return done.outputs[0].digest[:16]
    return codec.digest(msgspec.json.encode(done.outputs))[:16] if done.outputs else ""


def _rest(state: State) -> dict[str, Any]:
    lean = msgspec.structs.replace(
        state, artifacts={}, completed={}, past={}, goal="", created_at="", updated_at="", profile=None
    )
    rest = {key: value for key, value in msgspec.to_builtins(lean).items() if key not in _ELSEWHERE}
    return rest | {"past": {}} if state.past else rest


def _distribution(artifacts: Iterable[ArtifactSpec]) -> dict[str, int]:
    """RFC-036's tiers: without requirements small, up to two medium, else large."""
    mix = {"small": 0, "medium": 0, "large": 0}
    for count, artifacts_with in Counter([len(spec.requires) for spec in artifacts]).items():
        mix["small" if not count else "medium" if count <= 2 else "large"] += artifacts_with
    return mix


def _metrics(state: State, waves: list[list[str]]) -> dict[str, Any]:
    durations = {artifact_id: done.ms for artifact_id, done in state.completed.items() if done.ms}
    total = len(state.artifacts)
    longest = [max((durations.get(a, 0) for a in wave), default=0) for wave in waves] if durations else []
    return {
        "total_duration_ms": sum(longest),
        "model_distribution": _distribution(state.artifacts.values()),
        "parallelization_factor": round(total / len(waves), 2) if waves else 0.0,
        "estimated_sequential_ms": sum(durations.values()),
        "total_artifacts": total,
        "completed_count": len(state.completed),
        "failed_count": len(state.failed),
    }


# Reading.


def opening_of(data: bytes) -> Opening | None:
    """Whose file it is and what it reflects, from its first bytes; None if these are not as they were written."""
    found = re.match(_OPENING, data)
    if found is None:
        return None
    plan_id, position = found["plan_id"].decode(), Position(int(found["seq"]), found["hash"].decode())
    return Opening(plan_id, position) if found["seal"].decode() == _seal(plan_id, position) else None


def is_intact(data: bytes) -> bool:
    """Whether the bytes still have the digest that they were written with."""
    found = re.match(_OPENING, data)
    if found is None:
        return False
    begin, end = found.span("digest")
    whole = memoryview(data)
    return _digest_of((whole[:begin], _BLANK, whole[end:])).encode() == found["digest"]


def parse(data: bytes) -> SavedExecution:
    """A plan.json or checkpoint, read back. Its digest is the caller's to ask for."""
    try:
        document = msgspec.json.decode(data)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise _not_a_plan(error) from error
    if not isinstance(document, dict) or not isinstance(document.get("graph"), dict):
        raise _not_a_plan("it has no graph")
    return SavedExecution.from_dict(document)


def _not_a_plan(reason: object) -> UsageError:
    return UsageError(
        "This is not a saved plan",
        facts={"reason": reason},
        hint="give a plan.json or a checkpoint; a plan file is for headway plans new",
        code="plan.shape",
    )


def _seal(plan_id: str, position: Position) -> str:
    return codec.digest(f"{plan_id} {position.seq} {position.hash}".encode())[:16]


def _position(given: Any) -> Position:
    if given is None:
        return Position(0, codec.START)
    found: Position = msgspec.convert((given["seq"], given["hash"]), Position)
    return found


def _state(data: Mapping[str, Any]) -> State:
    execution, ours = data.get("execution", {}), data.get("plan")
    rest = dict(ours if ours is not None else _plain_rest(execution))
    state: State = msgspec.convert(
        {
            "project_id": "",
            **rest,
            "plan_id": data.get("plan_id") or hash_goal(data["goal"]),
            "goal": data["goal"],
            "created_at": data.get("created_at", ""),
            "updated_at": data.get("updated_at", ""),
            "profile": data.get("execution_profile"),
            "artifacts": _artifacts_from_dict(data["graph"]["artifacts"], is_ours=ours is not None),
            "completed": {a: _completion_from_dict(item) for a, item in execution.get("completed", {}).items()},
        },
        State,
    )
    _refuse_strays(state)
    state.open = _open_counts(state, is_ours=ours is not None)
    state.status = _status(execution.get("status"), state)
    return state


def _plain_rest(execution: Mapping[str, Any]) -> dict[str, Any]:
    """What a file of RFC-040's own shape says of failures and skips."""
    failed = {a: {"seq": 0, "at": "", "error": str(error)} for a, error in execution.get("failed", {}).items()}
    skipped = {a: {"seq": 0, "at": "", "reason": "skipped"} for a in execution.get("skipped", ())}
    return {"failed": failed, "skipped": skipped}


def _artifacts_from_dict(given: Mapping[str, Any], *, is_ours: bool) -> dict[str, Any]:
    """Undo `_artifact_lines`. A foreign file lists requirements in the order of a set; they are sorted."""
    found = {}
    for artifact_id, item in given.items():
        plain = {key: value for key, value in item.items() if value is not None}
        path = plain.pop("produces_file", None)
        if path and not plain.get("produces"):
            plain["produces"] = [path]
        if not is_ours:
            plain["requires"] = sorted(set(plain.get("requires", ())))
        if plain.setdefault("id", artifact_id) != artifact_id:
            raise ValueError(f"artifact {artifact_id} says that it is {plain['id']}")
        found[artifact_id] = plain
    return found


def _completion_from_dict(item: Mapping[str, Any]) -> dict[str, Any]:
    """Undo `_completed_lines`; of a foreign file, what we have a place for."""
    known = {key: value for key, value in item.items() if key in _COMPLETION}
    return {
        "seq": 0,
        "at": item.get("completed_at", ""),
        "tier": item.get("model_tier") or "",
        "ms": item.get("duration_ms", 0),
        **known,
    }


_COMPLETION = frozenset(Completion.__struct_fields__)


def _refuse_strays(state: State) -> None:
    """Progress is about artifacts of the plan, and the profile is one that could have been set."""
    for aspect in (
        "completed",
        "failed",
        "skipped",
        "claims",
        "uncertain",
        "steps",
        "made",
        "evidence",
        "notes",
        "asked",
    ):
        for artifact_id in getattr(state, aspect):
            if artifact_id not in state.artifacts:
                raise ValueError(f"{aspect} names {artifact_id}, which is not among the artifacts")
    for artifact_id in state.completed:
        if artifact_id in state.skipped:
            raise ValueError(f"{artifact_id} is both completed and skipped")
    if state.profile is not None and not 1 <= state.profile.max_concurrent_tasks <= 64:
        raise ValueError("max_concurrent_tasks is a number from 1 to 64")


def _open_counts(state: State, *, is_ours: bool) -> dict[str, int]:
    """How many artifacts of each milestone are not done: counted, whatever the file says."""
    counts = dict.fromkeys(state.open, 0)
    for spec in state.artifacts.values():
        is_open = not is_done(state, spec.id)
        if spec.milestone and (is_open or not is_ours):
            counts[spec.milestone] = counts.get(spec.milestone, 0) + is_open
    return counts


def _status(given: Any, state: State) -> PlanStatus:
    """The plan's status; RFC-040 has other words for some."""
    if given in _STATUSES:
        status: PlanStatus = given
        return status
    if given in (None, "", "completed", "pending"):
        return "complete" if all_done(state) else "draft"
    raise ValueError(f"a plan is not {given!r}")
