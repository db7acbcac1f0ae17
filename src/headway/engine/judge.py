"""Which artifacts are stale, and why: looks at files and code, and lets core/freshness.py compare.

One pass in dependency order. After an artifact was made, only its dependents are judged again.
"""

from __future__ import annotations

import os
import shlex
from collections.abc import Callable, Collection, Mapping
from typing import Any

from headway.core.fingerprint import NOTHING, NotEncodable, content_of, recipe_digest, spec_digest
from headway.core.freshness import Disk, Reason, judge
from headway.core.graph import ArtifactGraph
from headway.core.plan import ArtifactSpec
from headway.core.state import Completion, Fingerprint, State
from headway.engine.code import Code
from headway.engine.history import History
from headway.engine.shared import Shared
from headway.errors import UsageError
from headway.files.observe import Observer

_WORD_BREAKS = str.maketrans(dict.fromkeys("|&;<>()`", " "))


class Judge:
    """Judges the artifacts of one plan against the files of its project."""

    def __init__(
        self,
        state: State,
        *,
        root: str,
        observer: Observer,
        history: History,
        environ: Mapping[str, str],
        forced: Collection[str] = (),
        functions: Mapping[str, Callable[..., Any]] | None = None,
    ) -> None:
        self.state = state
        self.graph = ArtifactGraph.over(state.artifacts)
        self.shared = Shared(self.graph)
        self.observer = observer
        self.history = history
        self.code = Code(root)
        self.reasons: dict[str, Reason] = {}
        self.sources: dict[str, list[str]] = {}
        self.now: dict[str, Fingerprint] = {}
        self.forced = set(forced)
        self._root = root
        self._environ = environ
        self._functions = functions or {}
        self._specs: dict[str, tuple[ArtifactSpec, str]] = {}
        self._recipes: dict[str, tuple[ArtifactSpec, str]] = {}
        self._digests: dict[str, str] = {}
        self._words: dict[str, bool] = {}
        self._owned = {p.rstrip("/") for s in state.artifacts.values() for p in (*s.produces, *s.modifies)}
        self._pending = set(state.run.pending) if state.run is not None else set()

    def all(self) -> dict[str, Reason]:
        """The reason of every artifact, in dependency order."""
        for artifact_id in self.shared.order():
            self.again(artifact_id)
        return self.reasons

    def again(self, artifact_id: str) -> Reason:
        """Judge one artifact by what is known of its requirements now."""
        spec, state = self.state.artifacts[artifact_id], self.state
        if artifact_id in state.skipped and artifact_id not in self.forced:
            reason = Reason("fresh")
        else:
            done = state.completed.get(artifact_id)
            stale = [r for r in (*spec.requires, *self._earlier_stages(spec)) if not self._settled(r)]
            reason = judge(
                done,
                state.failed.get(artifact_id),
                self.fingerprint(artifact_id, wrote=done.wrote if done else ()),
                stale=stale,
                outputs=self._outputs(spec, done),
                forced=artifact_id in self.forced,
                interrupted=self.was_interrupted(artifact_id),
            )
        self.reasons[artifact_id] = reason
        return reason

    def fingerprint(self, artifact_id: str, *, wrote: Collection[str] = ()) -> Fingerprint:
        """What the artifact would be made from now."""
        spec = self.state.artifacts[artifact_id]
        sources = self._sources(spec, wrote)
        self.sources[artifact_id] = sources
        self.now[artifact_id] = found = Fingerprint(
            spec=self._spec(spec),
            recipe=self._recipe(spec),
            inputs={r: self.content(r) for r in spec.requires if r in self.state.artifacts},
            sources={path: self._look(path) for path in sources},
            before={path: self._before(artifact_id, path) for path in spec.modifies} if spec.modifies else {},
        )
        return found

    def _earlier_stages(self, spec: ArtifactSpec) -> list[str]:
        stages = (self.shared.previous(spec.id, path) for path in spec.modifies)
        return [stage for stage in stages if stage is not None]

    def _before(self, artifact_id: str, path: str) -> str:
        """The bytes that an artifact changes in place: as the stage before it left them, or as they are."""
        stage = self.shared.previous(artifact_id, path)
        if stage is not None:
            done = self.state.completed.get(stage)
            return next((o.digest[:32] for o in done.outputs if o.path == path), NOTHING) if done else NOTHING
        done = self.state.completed.get(artifact_id)
        if done is not None and path in done.fp.before:
            return done.fp.before[path]
        return self.observer.look(path).digest[:32]

    def content(self, artifact_id: str) -> str:
        """What dependents see of an artifact."""
        skip = self.state.skipped.get(artifact_id)
        if skip is not None:
            return f"skipped:{content_of(skip.last)}" if skip.last else NOTHING
        return content_of(self.state.completed.get(artifact_id))

    def was_interrupted(self, artifact_id: str) -> bool:
        """An attempt of ours began and has no end, so it can have left anything at its output paths."""
        return artifact_id in self.state.claims or artifact_id in self._pending or artifact_id in self.state.uncertain

    def is_ours(self, artifact_id: str, digest: str) -> bool:
        """Whether bytes at an output path are no edit: named by a ledger, or left by an attempt of ours."""
        return self.was_interrupted(artifact_id) or self.history.names(digest)

    def _settled(self, required: str) -> bool:
        reason = self.reasons.get(required)
        return reason is None or reason.fresh

    def _spec(self, spec: ArtifactSpec) -> str:
        known = self._specs.get(spec.id)
        if known is None or known[0] is not spec:
            known = self._specs[spec.id] = (spec, spec_digest(spec))
        return known[1]

    def _recipe(self, spec: ArtifactSpec) -> str:
        known = self._recipes.get(spec.id)
        if known is None or known[0] is not spec:
            known = self._recipes[spec.id] = (spec, self._digest_recipe(spec))
        return known[1]

    def _digest_recipe(self, spec: ArtifactSpec) -> str:
        if spec.make.startswith("live:") and not spec.version and spec.id not in self._functions:
            done = self.state.completed.get(spec.id)
            return done.fp.recipe if done is not None else ""  # only the program that defines it can tell
        names = (*self.state.settings.env, *spec.env)
        env = {name: self._environ.get(name) for name in names}
        code = ""
        if spec.make and not spec.version:
            code = self._code(spec)
        try:
            return recipe_digest(spec, self.state.settings, code=code, env=env)
        except NotEncodable as error:
            raise UsageError(
                f"The arguments of {spec.id} cannot be compared",
                facts={"reason": error},
                hint="pass plain values (text, numbers, lists, dataclasses), or a path that the function opens",
                code="recipe.args",
            ) from error

    def _code(self, spec: ArtifactSpec) -> str:
        function = self._functions.get(spec.id)
        if function is None:
            return self.code.of_reference(spec.make)
        from headway.engine.code import of_function

        return of_function(self.code, function)

    def _sources(self, spec: ArtifactSpec, wrote: Collection[str]) -> list[str]:
        """Declared sources, and words of the command that name project files which the plan does not make."""
        named = self.observer.expand(spec.sources) if spec.sources else []
        words = [w for w in self._file_words(spec.run) if w not in wrote] if spec.run else []
        words += [w for w in self._file_words(spec.verify) if w not in wrote] if spec.verify else []
        return sorted({*named, *words}) if words else named

    def _file_words(self, command: str) -> list[str]:
        try:
            words = shlex.split(command.translate(_WORD_BREAKS), comments=False) if _quoted(command) else None
        except ValueError:
            words = None
        found = words if words is not None else command.translate(_WORD_BREAKS).split()
        return [path for word in found if (path := self._project_file(word))]

    def _project_file(self, word: str) -> str:
        word = word.removeprefix("./")
        if not word or word.startswith(("/", "-", "{", "~", "..", ".headway")) or word in self._owned:
            return ""
        if word not in self._words:
            self._words[word] = os.path.isfile(os.path.join(self._root, word))
        return word if self._words[word] else ""

    def absent_words(self) -> list[str]:
        """Words of commands that would be sources if files of that name appeared."""
        return [word for word, there in self._words.items() if not there]

    def _look(self, path: str) -> str:
        """A source's digest, taken once in a pass and again only when asked to forget."""
        if path not in self._digests:
            self._digests[path] = self.observer.look(path).digest[:32]
        return self._digests[path]

    def forget(self, paths: Collection[str]) -> None:
        """Look at these files anew when they are next asked about."""
        for path in paths:
            self._digests.pop(path, None)

    def _outputs(self, spec: ArtifactSpec, done: Completion | None) -> list[Disk]:
        if done is None:
            return self._untracked(spec)
        found = []
        for output in done.outputs:
            if output.kind != "text" and self.shared.is_last(spec.id, output.path):
                now = self.observer.look(output.path.rstrip("/"))
                same = now.digest == output.digest and now.kind == output.kind
                named = same or not now.digest or self.is_ours(spec.id, now.digest)
                found.append(Disk(output.path, output.digest, output.digest if same else now.digest or "", named))
                if not same and now.digest == output.digest:
                    found[-1] = Disk(output.path, output.digest, f"{now.kind}:{now.digest}", True)
        return found

    def _untracked(self, spec: ArtifactSpec) -> list[Disk]:
        found = []
        for path in spec.produces:
            now = self.observer.look(path.rstrip("/"))
            if now.digest:
                found.append(Disk(path, "", now.digest, self.is_ours(spec.id, now.digest)))
        return found


def _quoted(command: str) -> bool:
    return "'" in command or '"' in command or "\\" in command
