"""What brings an artifact up to date without making it: put back, take over, adopt. And what people wrote, kept safe.

Writes files and records events; when to do which of it is the run's to decide.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import NamedTuple

from headway.core import commands as cmd
from headway.core.freshness import Reason
from headway.core.gates import Check
from headway.core.ids import as_word
from headway.core.plan import ArtifactSpec
from headway.core.state import Output
from headway.engine.judge import Judge
from headway.engine.recording import Recorder
from headway.engine.result import Preserved
from headway.errors import UsageError
from headway.files.observe import ABSENT, EMPTY_TREE, Seen


class SetAside(Reason):
    """An output is missing because what somebody wrote in its place was set aside just now."""

    __slots__ = ()

    @property
    def text(self) -> str:
        return f"the edit of {self.subject} was set aside; headway restore {as_word(self.now)} brings it back"


class Way(NamedTuple):
    """The paths of an artifact, ready for its recipe: whether anything stood there, and the digest of what is left at
    each; none where nothing stands. Folders are not among them.
    """

    replaces: bool
    left: dict[str, str]


class Keeper:
    """Works on the outputs of one plan."""

    def __init__(
        self,
        judge: Judge,
        record: Recorder,
        check: Callable[[ArtifactSpec], tuple[Check, ...]],
        preserved: list[Preserved],
    ) -> None:
        """`preserved` takes down where something stood that no ledger named, and that was replaced."""
        self._judge = judge
        self._outputs = judge.outputs
        self._precedents = judge.precedents
        self._record = record
        self._check = check
        self._preserved = preserved
        self._folders: set[str] = set()

    def preserve(self, artifact_id: str, paths: Iterable[str]) -> None:
        """Before anything may touch output paths: bytes there that no ledger names are kept as blobs."""
        paths = tuple(paths)
        self.make_room(paths)
        found = {path: self._judge.observer.look(path.rstrip("/")) for path in paths}
        self._preserve(artifact_id, found, replaced=found)

    def _preserve(self, artifact_id: str, found: Mapping[str, Seen], *, replaced: Collection[str] = ()) -> None:
        """`replaced`: of these paths it is told afterwards how to have back what stood there."""
        recorded = {output.path: output for output in self._judge.recorded(artifact_id)}
        known = {"", EMPTY_TREE, *(output.digest for output in recorded.values())}
        unknown = {path: seen.digest for path, seen in found.items() if seen.digest not in known}
        for path in [path for path in unknown if found[path].kind == "tree"]:
            whole = recorded.get(path)
            if whole is not None and whole.kind == "tree" and self._outputs.is_part_of(whole):
                del unknown[path]
        unnamed = [p for p, digest in unknown.items() if not self._judge.is_replaceable(artifact_id, p, digest)]
        kept = self._outputs.set_aside(unnamed)
        if kept:
            self._note(artifact_id, kept, replaced)

    def _note(self, artifact_id: str, kept: tuple[Output, ...], told: Collection[str]) -> None:
        """Record what was kept as blobs, before it goes."""
        seq = self._record(cmd.PreserveEdit(id=artifact_id, outputs=kept), True)[0].seq
        if paths := [output.path for output in kept if output.path in told and output.size]:
            self._preserved.append(Preserved(artifact_id, paths, seq))

    def sweep(self, specs: Iterable[ArtifactSpec]) -> None:
        """Take away what killed processes left beside the outputs of these. Such a process may have taken an edit from
        its place, and not have come to give it back."""
        owners = {path: spec.id for spec in specs for path in (*spec.produces, *spec.modifies)}
        self._outputs.sweep(
            owners,
            lambda path, digest: is_ours_beside(self._judge, owners[path], path, digest),
            lambda taken: self._note(owners[taken.path], (taken,), owners),
        )

    def make_room(self, paths: Iterable[str]) -> None:
        """Where folders belong now, files that some artifact once left give way; anybody else's stay."""
        for path in paths:
            folder = path[: path.rfind("/", 0, -1) + 1]
            if folder in self._folders:
                continue
            self._folders.add(folder)
            file = self._outputs.folders.in_the_way(path)
            if file and self._judge.is_replaceable("", file, self._judge.observer.look(file).digest):
                self._outputs.remove(file)

    def restore(self, artifact_id: str) -> bool:
        """Put its recorded outputs back; whether that could be done."""
        outputs = [o for o in self._judge.recorded(artifact_id) if self._judge.stages.answers_for(artifact_id, o.path)]
        self.preserve(artifact_id, [o.path for o in outputs if o.path])
        return self._outputs.restore(outputs)

    def make_way(self, spec: ArtifactSpec) -> Way:
        """Before a recipe begins: nothing that it could destroy is lost, and nothing old can be taken for its work."""
        paths = (*spec.produces, *spec.modifies) if spec.modifies else spec.produces
        for path in spec.modifies:  # what is changed in place would be changed there
            self._outputs.folders.refuse_link_out(path)
        found: dict[str, Seen] = {}
        folders = False
        for path in paths:
            seen = self._judge.at_path(path)
            folders = folders or path.endswith("/")
            if seen.digest:
                found[path] = seen
            else:
                self.make_room((path,))
        if found:
            self._preserve(spec.id, found, replaced=spec.produces)
        if found or folders:
            return Way(bool(found), self._clear(spec, found))
        return Way(False, dict.fromkeys(spec.produces, ""))

    def _clear(self, spec: ArtifactSpec, found: Mapping[str, Seen]) -> dict[str, str]:
        """Before a recipe begins: folders are emptied, and what an unfinished attempt, or others who change a file in
        place, left is taken away.

        A file that is its newest output stays where it is until the recipe replaces it, unless it leads to another one,
        which would be written instead. What stands at each path then.
        """
        recorded = {output.path: output for output in self._judge.recorded(spec.id)}
        left: dict[str, str] = {}
        for path in spec.produces:
            seen, known = found.get(path, ABSENT), recorded.get(path)
            stands = known is not None and (seen.digest, seen.kind) == (known.digest, known.kind)
            if stands and self._outputs.leads_elsewhere(path):
                stands = False
                self._outputs.set_aside([path])  # it may be too large to have been stored
            if path.endswith("/") or path in spec.optional or not (stands or self._is_only_here(path, seen)):
                self._outputs.clear(path)
                seen = ABSENT
            if not path.endswith("/"):
                left[path] = seen.digest
        return left

    def _is_only_here(self, path: str, seen: Seen) -> bool:
        """Whether what others made of a file that they change in place was not stored then, as large files once were
        not."""
        is_file = seen.kind in ("file", "exec") and path in self._judge.shared.chains
        return is_file and not self._outputs.blobs.has(seen.digest)

    def reuse(self, artifact_id: str, run: str) -> str:
        """Take over what was once made from the same things in the same way: where it comes from, or ""."""
        if not self._precedents.any():
            return ""
        fp = self._judge.made_from(artifact_id)
        for earlier in self._judge.earlier(artifact_id):
            outputs = [o for o in earlier.outputs if o.path not in self._judge.shared.chains]
            if not all(map(self._outputs.readable, earlier.outputs)):
                continue
            token = self._record(cmd.StartArtifacts(ids=(artifact_id,), run=run), False)[0].seq
            self.preserve(artifact_id, [o.path for o in outputs if o.path])
            self._outputs.restore(outputs)
            self._judge.displaced.update(o.path for o in earlier.outputs if o.path in self._judge.shared.chains)
            note = f"event {earlier.seq} of {earlier.plan}"
            self._record(
                cmd.CompleteArtifact(
                    id=artifact_id,
                    token=token,
                    outputs=earlier.outputs,
                    fp=fp,
                    ms=earlier.ms,
                    how="reused",
                    note=note,
                    verified=earlier.verified,
                    wrote=earlier.wrote,
                    prompt=earlier.prompt,
                    stdout=earlier.stdout if earlier.prompt else "",
                    checks=self._check(self._judge.state.artifacts[artifact_id]),
                ),
                False,
            )
            return note
        return ""

    def adopt(self, artifact_id: str, why: str, brought: Sequence[Output] = ()) -> None:
        """What stands at its paths counts as its output, by somebody's word; if others have a file, or have changed it
        since, what it was, or what was brought back of it."""
        spec = self._judge.state.artifacts[artifact_id]
        was = {output.path: (output,) for output in (*self._in_others_hands(artifact_id), *brought)}
        paths = (*spec.produces, *spec.modifies)
        self._accept(
            spec, tuple(o for path in paths for o in was.get(path) or self._outputs.capture([path], whole=True)), why
        )

    @contextmanager
    def laid_out(self, artifact_id: str) -> Iterator[None]:
        """While somebody looks at what it left, files that others have are as it left them."""
        spec = self._judge.state.artifacts[artifact_id]
        own = self._in_others_hands(artifact_id) if spec.verify or spec.gates else []
        self._refuse_edited(artifact_id, own)
        kept = self._outputs.set_aside([o.path for o in own])
        if not self._outputs.restore(own):
            raise UsageError(
                f"There is nothing to accept for {artifact_id}",
                facts={"reason": f"what it left at {own[0].path} is not stored any more"},
                hint=f"headway run {as_word(artifact_id)} --discard-edits",
                code="accept.missing",
            )
        try:
            yield
        finally:
            for output in own:
                self._outputs.remove(output.path)
            self._outputs.restore(kept)

    def _refuse_edited(self, artifact_id: str, outputs: Iterable[Output]) -> None:
        """What somebody wrote into these files since, and nobody has decided about, is not put aside on the way."""
        judge = self._judge
        for path in [output.path for output in outputs if output.path not in judge.displaced]:
            now = judge.observer.look(path.rstrip("/")).digest
            if now and not judge.is_replaceable(artifact_id, path, now):
                raise UsageError(
                    f"{path} was edited, after others went on from what {artifact_id} left there",
                    hint=f"headway accept {as_word(path)}, or headway run --discard-edits, decides about that first",
                    code="accept.edited",
                )

    def _in_others_hands(self, artifact_id: str) -> list[Output]:
        """What it left in files that are not as it left them: others are at them, or came after it."""
        judge, chains = self._judge, self._judge.shared.chains
        shared = [output for output in judge.recorded(artifact_id) if output.path in chains] if chains else []
        return [o for o in shared if o.path in judge.displaced or not judge.stages.answers_for(artifact_id, o.path)]

    def go_on_with(self, artifact_id: str, why: str) -> None:
        """What it was made as counts, by somebody's word, whatever it would be made from now."""
        self._accept(self._judge.state.artifacts[artifact_id], tuple(self._judge.recorded(artifact_id)), why)

    def _accept(self, spec: ArtifactSpec, outputs: tuple[Output, ...], why: str) -> None:
        fp = self._judge.fingerprint(spec.id, by_hand=True)
        checks = self._check(spec)
        verified = bool(spec.verify)  # whoever adopts bytes has asked it
        self._record(
            cmd.AcceptOutput(id=spec.id, outputs=outputs, fp=fp, reason=why, verified=verified, checks=checks),
            False,
        )

    def discard(self, artifact_id: str, reason: Reason) -> None:
        """Set aside what a person wrote at its paths: kept as blobs, and gone from there."""
        spec = self._judge.state.artifacts[artifact_id]
        recorded = {output.path: output for output in self._judge.recorded(artifact_id)}
        paths = [path for path in (*spec.produces, *spec.modifies) if self._judge.stages.answers_for(artifact_id, path)]
        done = self._judge.known(artifact_id)
        if reason.code != "adopted_edit" or done is None:
            paths = [path for path in paths if path not in recorded or not self._outputs.stands(recorded[path])]
        elif told := [path for path, output in recorded.items() if path and output.size]:
            self._preserved.append(Preserved(artifact_id, told, done.seq))
        self.preserve(artifact_id, paths)
        found = {path: self._judge.observer.look(path.rstrip("/")) for path in paths}
        kept = [path for path, seen in found.items() if seen.digest and seen.kind != "special"]
        for path in paths:
            self._outputs.remove(path)
        if kept:
            self._judge.aside[artifact_id] = SetAside("output_missing", kept[0], now=artifact_id)


def is_ours_beside(judge: Judge, artifact_id: str, path: str, digest: str) -> bool:
    """Whether what a killed process left beside a path is no edit: what is recorded stands there, so nothing was taken
    from it; or a ledger names these bytes."""
    stages = judge.stages
    if path in judge.shared.chains:
        newest = stages.newest(path)
        standing = stages.output_of(newest, path) if newest is not None else None
    else:
        standing = next((output for output in judge.recorded(artifact_id) if output.path == path), None)
    stands = standing is not None and judge.outputs.stands(standing)
    return stands or judge.is_replaceable(artifact_id, path, digest)
