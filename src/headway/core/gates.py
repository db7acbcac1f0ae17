"""What an artifact still lacks before it counts as complete: the one place that says so.

Status, run, complete and repair all ask `missing`. Evidence is bound to the contract and to the content that it was
given about: made again with the same bytes under the same contract it stands, otherwise it is asked for again. Nobody's
word completes anything by itself: gates are asked about bytes that were made, verified and recorded.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import Literal, NamedTuple

from headway.core.approval import awaits_approval
from headway.core.fingerprint import content_digest, digest
from headway.core.ids import as_word
from headway.core.plan import ArtifactSpec, Gate
from headway.core.state import Completion, State, Verdict, Word

REJECTED = "rejected"
"""The code of the failure of an artifact that a gate turned down."""

Outcome = Literal["passed", "rejected", "open"]


class Missing(NamedTuple):
    """One thing that an artifact waits for, and the command that gives it."""

    kind: Literal["approval", "draft", "gate"]
    name: str
    text: str
    command: str

    def __str__(self) -> str:
        return f"{self.text}: {self.command}"

    def to_dict(self) -> dict[str, str]:
        """The same for machines."""
        return self._asdict()


class Check(NamedTuple):
    """What a check said when it was run."""

    gate: str
    verdict: Word
    text: str = ""
    asked: str = ""


def missing(state: State, artifact_id: str) -> list[Missing]:
    """All that this artifact still needs from somebody; nothing of what a recipe can do."""
    found = []
    if awaits_approval(state, artifact_id):
        no = f" (rejected by {state.refused.by}: {state.refused.reason})" if state.refused is not None else ""
        found.append(Missing("approval", "", f"the plan's approval{no}", f"headway approve --plan-id {state.plan_id}"))
    if state.proposal is not None and state.proposal.problems:
        path = state.proposal.path
        found.append(Missing("draft", "", f"{path} to be corrected", f"headway plans new {path}"))
    made = state.made.get(artifact_id) if state.made else None
    if made is not None:
        evidence = state.evidence.get(artifact_id, ())
        gates = open_gates(state.artifacts[artifact_id], evidence, made)
        found += [_lacking(artifact_id, gate, standing(evidence, gate, made)) for gate in gates]
    return found


def open_gates(spec: ArtifactSpec, evidence: Sequence[Verdict], made: Completion) -> list[Gate]:
    """The gates that these bytes have not passed."""
    return [gate for gate in spec.gates if outcome(gate, standing(evidence, gate, made)) != "passed"]


def rejecting(spec: ArtifactSpec, evidence: Sequence[Verdict], made: Completion) -> list[Verdict]:
    """The verdicts by which gates have turned these bytes down."""
    found = []
    for gate in spec.gates:
        said = standing(evidence, gate, made)
        if outcome(gate, said) == "rejected":
            found += [verdict for verdict in said if verdict.verdict == "REJECT"]
    return found


def outcome(gate: Gate, said: Iterable[Verdict]) -> Outcome:
    """Passed with enough approvals; rejected when so many are against it that enough cannot come together."""
    words = [verdict.verdict for verdict in said]
    bearable = len(gate.by) - gate.needed if gate.by else gate.needed - 1
    if words.count("REJECT") > bearable:
        return "rejected"
    return "passed" if words.count("APPROVE") >= gate.needed else "open"


def standing(evidence: Sequence[Verdict], gate: Gate, made: Completion) -> list[Verdict]:
    """What was said at this gate about these bytes under this contract, by those who count; each one's last word."""
    about = (gate.name, made.fp.spec, content_digest(made.outputs), question(gate))
    last: dict[str, Verdict] = {}
    for verdict in evidence:
        is_meant = (verdict.gate, verdict.contract, verdict.content, verdict.asked) == about
        if is_meant and (gate.kind == "check" or not gate.by or verdict.by in gate.by):
            last["" if gate.kind == "check" else verdict.by] = verdict
    return list(last.values())


def question(gate: Gate) -> str:
    """What a check asks, as a digest: a changed command asks again. People's words are about the bytes alone."""
    return digest(gate.run) if gate.kind == "check" else ""


def replaced(verdict: Verdict, by: Verdict) -> bool:
    """Whether a newer word at a gate takes the place of an older one: the same mouth, on the same bytes. A check can be
    run again at any time, so only its newest word is kept."""
    if verdict.gate != by.gate:
        return False
    if by.asked:
        return True
    return (verdict.by, verdict.contract, verdict.content) == (by.by, by.contract, by.content)


def checks(spec: ArtifactSpec, names: Collection[str] | None = None) -> Iterator[Gate]:
    """Its gates that are commands, or those with these names: they can answer at once."""
    return (gate for gate in spec.gates if gate.kind == "check" and (names is None or gate.name in names))


def _lacking(artifact_id: str, gate: Gate, said: Sequence[Verdict]) -> Missing:
    if gate.kind == "check":
        return Missing("gate", gate.name, f"gate {gate.name}", f"headway gate {as_word(artifact_id)} {gate.name} --run")
    approved = [verdict.by for verdict in said if verdict.verdict == "APPROVE"]
    about: list[str] = [gate.kind]
    if gate.by:
        about.append(f"of {', '.join(gate.by)}")
    if gate.needed > 1:
        about.append(f"{len(approved)} of {gate.needed} so far")
    about += [f"{verdict.by}: {verdict.verdict}" for verdict in said if verdict.verdict != "APPROVE"]
    heard = {verdict.by for verdict in said}  # whoever has not spoken yet is asked first
    who = next((name for name in sorted(gate.by, key=heard.__contains__) if name not in approved), "NAME")
    return Missing(
        "gate",
        gate.name,
        f"gate {gate.name} ({'; '.join(about)})",
        f"headway gate {as_word(artifact_id)} {gate.name} approve --by {who}",
    )
