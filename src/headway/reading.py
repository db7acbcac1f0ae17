"""Reading back what was made: an attempt with what it left and printed, and how two of them differ. Writes nothing."""

from __future__ import annotations

import os
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any, Literal, NamedTuple

from headway.core.events import ArtifactCompleted, ArtifactFailed, EditPreserved, OutputAccepted, Record
from headway.core.graph import ArtifactGraph
from headway.core.ids import as_word
from headway.core.lifecycle import last_made
from headway.core.plan import ArtifactSpec
from headway.core.state import Output, State
from headway.engine.shared import Shared
from headway.errors import BlobDamaged, NotFound, UsageError
from headway.files.blobs import Blobs
from headway.files.observe import Observer
from headway.files.outputs import members
from headway.work import Meant, Work, named_events

LONGEST = 2 * 1024 * 1024
"""Texts above this size are compared as a whole, not line by line."""

NO_END = "\\ No newline at end of file"
"""Stands behind a last line that differs, or may, by that."""

ASIDE = "set aside"
"""No attempt: what somebody wrote at an output path, kept before it was overwritten."""

ENDS = (ArtifactCompleted, ArtifactFailed, OutputAccepted)


class Attempt(NamedTuple):
    """One attempt at an artifact, by the event that ended it."""

    artifact: str
    seq: int
    at: str
    by: str
    how: str
    outputs: tuple[Output, ...]
    ms: int = 0
    attempts: int = 1
    error: str = ""
    note: str = ""
    stdout: str = ""
    stderr: str = ""
    prompt: str = ""


class Piece(NamedTuple):
    """Some bytes to look at: where they stood, what they are, and whether they can still be read."""

    path: str
    digest: str
    size: int
    kind: str
    data: bytes | None
    files: tuple[Output, ...] = ()
    """What is in it, if it is a folder."""

    @property
    def text(self) -> str | None:
        """The same as text, or None: it is binary, a folder, or gone."""
        if self.data is None or self.kind == "tree" or b"\0" in self.data[:8192]:
            return None
        try:
            return self.data.decode("utf-8")
        except UnicodeDecodeError:
            return None

    @property
    def what(self) -> str:
        """Why it is not shown as text."""
        if self.kind == "special":
            return "no file"
        if self.data is None:
            return "its bytes are not stored any more"
        return "a folder" if self.kind == "tree" else "binary"

    def to_dict(self) -> dict[str, Any]:
        """The same for machines: text where it is text."""
        return {
            "path": self.path,
            "digest": self.digest,
            "size": self.size,
            "kind": self.kind,
            "stored": self.data is not None,
            "text": self.text,
            **({"files": [_listed(file) for file in self.files]} if self.kind == "tree" else {}),
        }


def _listed(file: Output) -> dict[str, Any]:
    return {"path": file.path, "digest": file.digest, "size": file.size, "kind": file.kind}


class Shown(NamedTuple):
    """An attempt, and all that is left to see of it."""

    attempt: Attempt
    outputs: list[Piece]
    stdout: Piece | None
    stderr: Piece | None
    others: list[int]
    prompt: Piece | None = None

    def to_dict(self) -> dict[str, Any]:
        """The document of `show --json`."""
        found = self.attempt._asdict()
        return {
            **found,
            "outputs": [piece.to_dict() for piece in self.outputs],
            "stdout": self.stdout.to_dict() if self.stdout else None,
            "stderr": self.stderr.to_dict() if self.stderr else None,
            "prompt": self.prompt.to_dict() if self.prompt else None,
            "other_attempts": self.others,
        }


class Delta(NamedTuple):
    """How one path differs: lines of a unified diff, or a sentence where lines make no sense."""

    path: str
    change: Literal["added", "removed", "changed"]
    lines: list[str]
    note: str = ""


class Compared(NamedTuple):
    """An artifact against an earlier completion of it, if there is one. `to` is 0 for what is on disk; where those who
    are `later` have changed its files since, for what it left.
    """

    artifact: str
    since: int | None
    to: int
    deltas: list[Delta]
    later: Sequence[str] = ()

    def to_dict(self) -> dict[str, Any]:
        """The document of `diff --json`."""
        found = [{**delta._asdict(), "diff": "\n".join(delta.lines)} for delta in self.deltas]
        for delta in found:
            del delta["lines"]
        return {"artifact": self.artifact, "since": self.since, "to": self.to, "later": [*self.later], "changes": found}


class Reading:
    """Reads back the attempts of one project's plans."""

    def __init__(self, work: Work) -> None:
        self._work = work
        self._project = work.project
        self._session = work.session
        self._root = work.project.root
        self._blobs: Blobs = work.project.blobs

    def show(self, meant: Meant, word: str, *, at: int | None = None) -> Shown:
        """The newest attempt at an artifact, or the newest as of an event."""
        spec, attempts = self._attempts(meant, word, at)
        artifact_id = spec.id
        attempts = [a for a in attempts if a.how != ASIDE or a.seq == at]
        if not attempts:
            raise NotFound(
                f"Nothing was ever made of {artifact_id}" + (f" up to event {at}" if at else ""),
                hint=f"headway why {as_word(artifact_id)}",
                code="attempt.none",
            )
        attempt = attempts[-1]
        return Shown(
            attempt,
            [self._piece(output) for output in attempt.outputs],
            self._printed("stdout", attempt.stdout),
            self._printed("stderr", attempt.stderr),
            [other.seq for other in attempts[:-1]],
            self._printed("prompt", attempt.prompt),
        )

    def diff(self, meant: Meant, word: str, *, at: int | None = None, to: int | None = None) -> Compared:
        """What is on disk (or was made by event `to`) against an earlier completion: as of `at`, else one that differs.

        Where the disk holds something else than was last recorded, that is the difference: somebody edited it; but not
        in a file that others have changed in place since. What was never made is compared with nothing.
        """
        spec, attempts = self._attempts(meant, word, None if to is None else max(to, at or to))
        if at is not None:
            self._project.log(meant.plan_id, first=at, last=at)  # refused where there is no such event
        artifact_id = spec.id
        ever = [a for a in attempts if a.how != "failed" and a.outputs]
        known = [a for a in ever if to is None or a.seq <= to]
        if not known:
            stands = [] if at or to else list(self._deltas((), self._on_disk(Output(p, "", 0) for p in spec.produces)))
            if stands:
                return Compared(artifact_id, None, 0, stands)
            verb = "show" if attempts else "run" if spec.has_recipe else "claim"
            raise NotFound(
                f"There is no earlier output of {artifact_id}",
                hint=f"headway {verb} {as_word(artifact_id)}",
                code="diff.none",
            )
        newest = next((a for a in reversed(known) if a.how != ASIDE), known[-1]).outputs
        later = self._later(meant, artifact_id, newest) if to is None else {}
        now = newest if to is not None else self._standing(newest, later)
        earlier = self._earlier(artifact_id, ever if at is not None else known, now, at)
        seq = known[-1].seq if to is not None else 0
        others = list(dict.fromkeys(stage for stages in later.values() for stage in stages))
        return Compared(artifact_id, earlier.seq, seq, list(self._deltas(earlier.outputs, now)), others)

    def _later(self, meant: Meant, artifact_id: str, outputs: Iterable[Output]) -> dict[str, list[str]]:
        """By path, those who have changed it in place after an artifact."""
        state = self._project.show(meant.plan_id).state
        shared = Shared(ArtifactGraph.over(state.artifacts))
        stages = {output.path: shared.later(artifact_id, output.path) for output in outputs}
        made = {path: [a for a in later if last_made(state, a) is not None] for path, later in stages.items()}
        return {path: later for path, later in made.items() if later}

    def _standing(self, outputs: Sequence[Output], later: Collection[str]) -> list[Output]:
        """Outputs as they are on disk; as they were recorded, where the file is what a later artifact made of it."""
        on_disk = {output.path: output for output in self._on_disk(o for o in outputs if o.path not in later)}
        return [output if output.path in later else on_disk[output.path] for output in outputs]

    def _earlier(self, artifact_id: str, known: Sequence[Attempt], now: Sequence[Output], at: int | None) -> Attempt:
        if at is not None:
            found = [attempt for attempt in known if attempt.seq <= at]
        else:
            digests = [output.digest for output in now]
            found = [
                attempt for attempt in known if attempt.how != ASIDE and [o.digest for o in attempt.outputs] != digests
            ]
        if found:
            return found[-1]
        if at is None:
            return known[-1]
        raise NotFound(
            f"There is no output of {artifact_id} as of event {at}",
            facts={"recorded at": named_events([attempt.seq for attempt in known])},
            hint=f"headway log shows what was made, and when; headway diff {as_word(artifact_id)} --at SEQ",
            code="diff.none",
        )

    # Attempts.

    def _attempts(self, meant: Meant, word: str, at: int | None) -> tuple[ArtifactSpec, list[Attempt]]:
        """The artifact that is meant, and all that came of it."""
        try:
            state = self._project.show(meant.plan_id, at=at).state
            spec = self._named(state, word)
        except UsageError:
            if meant.plan is None or at is not None:
                raise
            return self._named(self._work.foreseen(meant).state, word), []  # the file has it, and nobody ran that yet
        records = self._project.log(meant.plan_id, last=at, naming=(spec.id,))
        attempts = [attempt for record in records for attempt in _attempt(record, spec.id)]
        done = state.completed.get(spec.id)
        if done is not None and not attempts:
            attempts = [  # an imported plan: the completion came along, its event did not
                Attempt(spec.id, 0, done.at, done.by, done.how, done.outputs, done.ms, done.attempts)
            ]
        return spec, attempts

    def _named(self, state: State, word: str) -> ArtifactSpec:
        found = self._session.resolve(state, [word])
        if len(found) > 1:
            raise UsageError(
                f"{word} names {len(found)} artifacts",
                facts={"they are": f"{', '.join(found[:8])}{f' and {len(found) - 8} more' if len(found) > 8 else ''}"},
                hint="name one of them",
                code="artifact.several",
            )
        spec = state.artifacts[found[0]]
        if spec.gathers == "last":  # a phase of a loop: its last round
            return state.artifacts[spec.requires[0]]
        return spec

    def _piece(self, output: Output) -> Piece:
        """Bytes that an event names: from their blob, else from the disk if they are still there."""
        try:
            data: bytes | None = self._blobs.get(output.digest)
        except BlobDamaged:
            data = self._from_disk(output)
        files = self._listing(output) if output.kind == "tree" else ()
        return Piece(output.path, output.digest, output.size, output.kind, data, files)

    def _listing(self, folder: Output) -> tuple[Output, ...]:
        """The files of a folder, named as in it, with their sizes where these are known; nothing, if it is gone."""
        try:
            listed = self._members(folder)
        except BlobDamaged:
            return ()
        sized = ((kind, digest, name, self._blobs.size(digest)) for kind, digest, name in listed)
        return tuple(Output(name, digest, size or 0, kind) for kind, digest, name, size in sized)  # type: ignore[arg-type]  # one of its words

    def _from_disk(self, output: Output) -> bytes | None:
        if not output.path or output.kind not in ("file", "exec"):
            return None
        seen = Observer(self._root).look(output.path)
        if seen.digest != output.digest or seen.kind == "special":  # who reads from a pipe waits for whoever writes
            return None
        with open(os.path.join(self._root, output.path), "rb") as file:
            return file.read()

    def _printed(self, name: str, digest: str) -> Piece | None:
        if not digest:
            return None
        piece = self._piece(Output("", digest, 0, "text"))
        return piece._replace(path=name, size=len(piece.data or b""))

    def _on_disk(self, recorded: Iterable[Output]) -> tuple[Output, ...]:
        """What stands at these paths now; a text has no path, so it is what was recorded."""
        observer = Observer(self._root)
        found = []
        for output in recorded:
            if not output.path:
                found.append(output)
                continue
            seen = observer.look(output.path.rstrip("/"))
            kind = seen.kind if seen.kind in ("file", "exec", "tree", "link", "special") else "file"
            found.append(Output(output.path, seen.digest, seen.size, kind))  # type: ignore[arg-type]  # one of these
        return tuple(found)

    # Differences.

    def _deltas(self, was: Sequence[Output], now: Sequence[Output]) -> Iterable[Delta]:
        before, after = self._files(was), self._files(now)
        for path in sorted({**before, **after}):
            old, new = before.get(path), after.get(path)
            if old is None or new is None or old.digest != new.digest:
                yield self._delta(path, old, new)

    def _files(self, outputs: Iterable[Output]) -> Mapping[str, Output]:
        """Every file, those inside folders included, by path; what is not there is left out."""
        found: dict[str, Output] = {}
        for output in outputs:
            if not output.digest:
                continue
            if output.kind != "tree":
                found[output.path] = output
                continue
            base = output.path.rstrip("/")
            for kind, digest, name in self._members(output):
                found[f"{base}/{name}"] = Output(f"{base}/{name}", digest, 0, kind)  # type: ignore[arg-type]  # one of its words
        return found

    def _members(self, output: Output) -> Iterable[tuple[str, str, str]]:
        try:
            return members(self._blobs.get(output.digest))
        except BlobDamaged:
            observer = Observer(self._root)
            base = output.path.rstrip("/")
            if observer.look(base).digest == output.digest:
                return [(seen.kind, seen.digest, name) for name, seen in observer.tree(base)]
            raise

    def _delta(self, path: str, old: Output | None, new: Output | None) -> Delta:
        change: Literal["added", "removed", "changed"] = (
            "added" if old is None else "removed" if new is None else "changed"
        )
        was = self._piece(old) if old is not None else None
        now = self._piece(new) if new is not None else None
        note = _why_not_lines(was) or _why_not_lines(now)
        if note:
            return Delta(path, change, [], f"{note}: {_sized(was)} → {_sized(now)}")
        from difflib import unified_diff

        lines = unified_diff(_lines(was), _lines(now), f"a/{path}", f"b/{path}")
        return Delta(path, change, [shown for line in lines for shown in _shown(line)])


def _attempt(record: Record, artifact_id: str) -> list[Attempt]:
    event = record.event
    if isinstance(event, EditPreserved) and event.id == artifact_id:
        return [Attempt(artifact_id, record.seq, record.ts, record.by, ASIDE, event.outputs)]
    if not isinstance(event, ENDS) or event.id != artifact_id:
        return []
    if isinstance(event, OutputAccepted):
        return [Attempt(artifact_id, record.seq, record.ts, record.by, "accepted", event.outputs, note=event.reason)]
    if isinstance(event, ArtifactFailed):
        how, outputs, note, error = "failed", event.left, "", event.error
    else:
        how, outputs, note, error = event.how, event.outputs, event.note, ""
    return [
        Attempt(
            artifact=artifact_id,
            seq=record.seq,
            at=record.ts,
            by=record.by,
            how=how,
            outputs=outputs,
            ms=event.ms,
            attempts=event.attempts,
            error=error,
            note=note,
            stdout=event.stdout,
            stderr=event.stderr,
            prompt=event.prompt,
        )
    ]


def _why_not_lines(piece: Piece | None) -> str:
    """Why this is not compared line by line, or ""."""
    if piece is None:
        return ""
    if piece.text is None:
        return piece.what
    return "too large for a line by line comparison" if len(piece.text) > LONGEST else ""


def _lines(piece: Piece | None) -> list[str]:
    """Line by line, each with its end, but for a last one that has none."""
    text = (piece.text or "") if piece is not None else ""
    return re.findall(r"[^\n]*\n|[^\n]+", text)


def _shown(line: str) -> list[str]:
    """A line of a difference, as one reads it."""
    return [line[:-1]] if line.endswith("\n") else [line, NO_END]


def _sized(piece: Piece | None) -> str:
    if piece is None:
        return "nothing"
    size = len(piece.data) if piece.data is not None else piece.size
    return f"{size} bytes ({piece.digest[:8]})"
