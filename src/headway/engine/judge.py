"""Which artifacts are stale, and why: looks at files and code, and lets core/freshness.py compare.

One pass in dependency order. After an artifact was made, only its dependents are judged again.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from itertools import repeat
from operator import attrgetter
from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

from headway.core.fingerprint import content_digest, content_of, precedent_key
from headway.core.freshness import FRESH, RESTORABLE, Disk, Reason, compare_outputs, compare_parts, find_edit, judge
from headway.core.gates import missing
from headway.core.graph import ArtifactGraph
from headway.core.lifecycle import last_made, last_whole, unfinished, unseen
from headway.core.paths import folders
from headway.core.plan import ArtifactSpec
from headway.core.state import Completion, Fingerprint, Output, State
from headway.engine.code import Code
from headway.engine.digests import Digests
from headway.engine.formerly import NAMEABLE, Formerly
from headway.engine.left import Left
from headway.engine.precedents import Earlier, Precedents
from headway.engine.shared import Shared
from headway.engine.sources import Moment, Sources, only_written
from headway.engine.stages import Stages
from headway.engine.templates import Templates
from headway.errors import HeadwayError
from headway.files.observe import ABSENT, EMPTY_TREE, Seen
from headway.files.outputs import Outputs

if TYPE_CHECKING:
    from headway.engine.elsewhere import Elsewhere, Found
    from headway.engine.stamping import Standing

told_of = attrgetter("failed", "claims", "uncertain")
"""What tells of an artifact that was never made that somebody has been at it."""

_maker = attrgetter("make")
_read_besides = attrgetter("verify", "modifies", "reads", "templates")
"""What a function may be made from besides its requirements and its sources."""

UNTOUCHED = judge(None, None, None, stale=(), outputs=())
"""The reason of an artifact of which nothing is recorded and at whose paths nothing stands."""


class Judge:
    """Judges the artifacts of one plan against the files of its project."""

    def __init__(
        self,
        state: State,
        *,
        root: str,
        outputs: Outputs,
        precedents: Precedents,
        environ: Mapping[str, str],
        boot: str = "",
        forced: Collection[str] = (),
        functions: Mapping[str, Callable[..., Any]] | None = None,
        elsewhere: Elsewhere | None = None,
        formerly: Formerly | None = None,
    ) -> None:
        self.state = state
        self.elsewhere = elsewhere
        self.graph = ArtifactGraph.over(state.artifacts)
        self.shared = Shared(self.graph)
        self.outputs = outputs
        self.outputs.always = self.shared.chains
        self.observer = outputs.observer
        self.precedents = precedents
        self.code = Code(root)
        self.reasons: dict[str, Reason] = {}
        self._sources: dict[str, list[str]] = {}
        self.now: dict[str, Fingerprint] = {}
        self.problems: dict[str, HeadwayError] = {}
        self.forced = set(forced)
        self.displaced: set[str] = set()
        self.aside: dict[str, Reason] = {}
        self.left = Left(self)
        made = [path for spec in state.artifacts.values() for path in spec.produces]
        made += [path for spec in state.artifacts.values() if spec.modifies for path in spec.modifies]
        self.files = Sources(root, self.observer, made)
        self.templates = Templates(root, self.files)
        self._formerly = formerly
        self.functions = functions or {}
        self._boot = boot
        self._unfinished = unfinished(state, boot) | unseen(state)
        self._rebooted = last_whole(state.run) not in ("", boot)
        self._newest_key: tuple[Fingerprint, bytes] | None = None
        self._at_paths: dict[str, Seen] = {}
        self.digests = Digests(self, environ)
        self.stages = Stages(self)
        self.standing: Standing | None = None
        self.order: list[str] = []
        """What was judged, in this order; the others were known to be fresh."""

    def follow(self, state: State) -> None:
        """From here on this is the plan's state: equal to the one that was judged, or what became of it."""
        self.state = state
        if state.artifacts is not self.graph.artifacts and state.artifacts != self.graph.artifacts:
            self.graph = ArtifactGraph.over(state.artifacts)

    def look_again(self, state: State) -> None:
        """As `follow`, for whoever asks anew after a while: what was learned of files, code and others is forgotten.

        What a plan says of itself stays known; so does the digest of a file that was not touched.
        """
        self.follow(state)
        self.files.forget_all()
        self.code = Code(self.code.root)
        self.digests.look_again()
        self.stages.forget()
        self.problems.clear()
        self._unfinished = unfinished(state, self._boot) | unseen(state)
        self.precedents.look_again()
        self.standing = None
        if self.elsewhere is not None:
            self.elsewhere.look_again()

    def grow(self, state: State, added: Sequence[ArtifactSpec], removed: Sequence[str], unit: Sequence[str]) -> None:
        """Take in artifacts that came, changed or went. `unit`: only its loop went on, so only it is looked at."""
        self.state = state
        self.graph = ArtifactGraph.over(state.artifacts)
        if unit and self.shared.are_of_one_unit(added, removed):
            self.shared.follow(self.graph)
            self.shared.go_on(added, removed, unit)
        else:
            self.shared = Shared(self.graph)
            self.outputs.always = self.shared.chains
            self.stages.forget()
        self.files.add_made(path for spec in added for path in (*spec.produces, *spec.modifies))
        for artifact_id in removed:
            for table in (self.reasons, self.now, self._sources, self.problems):
                table.pop(artifact_id, None)
            self.digests.forget(artifact_id)
        for spec in added:
            self.again(spec.id)
        gone = {*removed, *(spec.id for spec in added)}
        self.order = [a for a in self.order if a not in gone] + [spec.id for spec in added]

    def all(self, just: Collection[str] = ()) -> dict[str, Reason]:
        """The reason of every artifact, in dependency order; with `just`, of these and of what they build on."""
        self.order = self.order_of(just) if just else list(self.shared.order())
        untouched = self._untouched()
        if len(untouched) == len(self.order) and not self.now:
            self.reasons.update(dict.fromkeys(self.order, UNTOUCHED))
            return self.reasons
        for artifact_id in self.order:
            if artifact_id in untouched:
                self.now.pop(artifact_id, None)
                self.reasons[artifact_id] = UNTOUCHED
            else:
                self.again(artifact_id)
        return self.reasons

    def _untouched(self) -> set[str]:
        """Those of which nothing is recorded and at whose paths nothing stands, as in a plan that is new.

        Where nothing can stand is told by whole folders: they are not there yet, or empty.
        """
        state = self.state
        told = (state.completed, state.made, state.failed, state.skipped, state.claims, state.uncertain)
        known = set().union(*told)
        if len(known) >= len(state.artifacts):
            return set()
        specs = [state.artifacts[a] for a in self.order if a not in known]
        taken = {f for f in folders(p for spec in specs for p in spec.produces) if not self.observer.is_bare(f)}
        if not taken:
            return {spec.id for spec in specs}
        return {spec.id for spec in specs if taken.isdisjoint(folders(spec.produces))}

    def behind(self, concerned: Collection[str]) -> set[str]:
        """Only these, and what builds on them, is going to be judged: every path that this looks at.

        And those whose text is nowhere any more: no file could have told.
        """
        texts = {a: o for a, done in self.state.completed.items() for o in done.outputs if not o.path}
        lost = [a for a, output in texts.items() if not self.outputs.is_stored(output)]
        self.order = self.order_behind((*concerned, *lost))
        artifacts, found = self.graph.artifacts, set[str]()
        for artifact_id in self.order:
            done = self.known(artifact_id)
            found.update(
                *(artifacts[a].produces for a in (artifact_id, *artifacts[artifact_id].requires) if a in artifacts)
            )
            found.update(artifacts[artifact_id].modifies, done.fp.sources if done is not None else ())
        return found

    def only(self, standing: Standing) -> dict[str, Reason]:
        """As `all`, where all else is known to be fresh by what still stands of a stamp."""
        self.standing = standing
        self.reasons.update(dict.fromkeys(self.graph, FRESH))
        for artifact_id in self.order:
            del self.reasons[artifact_id]
        for artifact_id in self.order:
            self.again(artifact_id)
        return self.reasons

    def order_behind(self, concerned: Collection[str]) -> list[str]:
        """These and all that build on them or come after them at a shared file, in dependency order.

        What stands for the last round of a loop builds on the phase that may ask for another one.
        """
        artifacts = self.graph.artifacts
        if not self.shared.ordered:
            return ArtifactGraph.over({a: artifacts[a] for a in self.graph.above(concerned)}).topological_sort()
        later: dict[str, list[str]] = {}
        for artifact_id, spec in artifacts.items():
            for stage in spec.after if spec.gathers == "last" else self.shared.after(artifact_id):
                later.setdefault(stage, []).append(artifact_id)
        found = dict.fromkeys(concerned)
        queue = list(found)
        for artifact_id in queue:
            for dependent in (*self.graph.dependents(artifact_id), *later.get(artifact_id, ())):
                if dependent not in found:
                    found[dependent] = None
                    queue.append(dependent)
        return [a for a in self.shared.order() if a in found]

    def order_of(self, just: Collection[str]) -> list[str]:
        """These and what they build on, in dependency order."""
        if not self.shared.chains:
            return ArtifactGraph.over({a: self.graph[a] for a in self.graph.below(just)}).topological_sort()
        wanted = self.graph.closure(just, self.shared.after)
        return [a for a in self.shared.order() if a in wanted]

    def again(self, artifact_id: str, *, anew: Moment | None = None) -> Reason:
        """Judge one artifact by what is known of its requirements now; `anew`: look at its sources in this moment."""
        state = self.state
        spec = state.artifacts[artifact_id]
        self._at_paths = {}
        if anew is not None:
            self.forget(spec, anew)
        skip = state.skipped.get(artifact_id) if state.skipped else None
        if skip is not None and not self.is_forced(artifact_id):
            disk = self._outputs(spec, skip.last) if skip.last is not None else []
            reason = find_edit(disk) or compare_outputs(disk)
            if artifact_id in self.left.ids and (skip.last is None or self.left.can_stand(spec, skip.last)):
                self.left.stand(artifact_id)
        else:
            done = last_made(state, artifact_id)
            self.now.pop(artifact_id, None)
            if done is not None and self.left.ids and self.left.can_stand(spec, done):
                reason = self._as_made(spec, done)
            elif done is not None:
                reason = self._made(spec, done)
            else:
                reason = UNTOUCHED if self._is_untouched(spec) else self._unmade(spec)
        if reason.code == "output_missing":
            reason = self.aside.get(artifact_id, reason)
        self.reasons[artifact_id] = reason
        return reason

    def _as_made(self, spec: ArtifactSpec, done: Completion) -> Reason:
        """The verdict on what stands as it was made: by its outputs alone."""
        disk = self._outputs(spec, done)
        reason = self._behind_gates(spec, find_edit(disk) or compare_outputs(disk))
        if reason.fresh or reason.code in RESTORABLE:
            self.left.stand(spec.id)
        return reason

    def _behind_gates(self, spec: ArtifactSpec, reason: Reason) -> Reason:
        """What was made and would be fresh may wait for its gates."""
        if reason.fresh and spec.id in self.state.made:
            return Reason("gates_open", ", ".join(lack.text for lack in missing(self.state, spec.id)))
        return reason

    def has_another_prompt(self, artifact_id: str) -> bool:
        """Whether the templates that it was last made with are not what they are now."""
        spec, done = self.state.artifacts[artifact_id], last_made(self.state, artifact_id)
        return bool(spec.templates) and done is not None and done.fp.templates != self.prompt(artifact_id)

    def forget(self, spec: ArtifactSpec, anew: Moment) -> None:
        """What it would be made from is told anew; what it reads is looked at, if nobody has in this moment."""
        self.now.pop(spec.id, None)
        if spec.make and not (spec.sources or spec.templates or spec.verify):
            return
        known = self._sources.get(spec.id)
        self.files.forget(anew.first(spec.sources))
        self.files.forget(anew.first(self.files.of(spec, self.state.settings.vars, ()) if known is None else known))
        if spec.templates:
            self.files.forget(anew.first(self.templates.files(spec)))

    def _is_untouched(self, spec: ArtifactSpec) -> bool:
        """Whether nothing is recorded of what was never made, and nothing stands at its paths."""
        artifact_id, is_free = spec.id, self.observer.is_free
        if any(artifact_id in told for told in told_of(self.state)):
            return False
        for path in spec.produces:
            if not is_free(path.rstrip("/")):
                return False
            self._at_paths[path] = ABSENT
        return True

    def _unmade(self, spec: ArtifactSpec) -> Reason:
        """The verdict on what was never made: whatever it would be made from, it has to be."""
        state, artifact_id = self.state, spec.id
        interrupted = artifact_id in state.claims or state.uncertain.get(artifact_id, 0) > 0
        return judge(
            None,
            state.failed.get(artifact_id),
            None,
            stale=(),
            outputs=self._outputs(spec, None),
            interrupted=interrupted,
        )

    def _made(self, spec: ArtifactSpec, done: Completion) -> Reason:
        """The verdict on what was made before, by what it would be made from now."""
        state, artifact_id, reasons = self.state, spec.id, self.reasons
        earlier = (*spec.requires, *self.shared.after(artifact_id)) if self.shared.chains else spec.requires
        now = self.fingerprint(artifact_id)
        reason = judge(
            self.digests.as_told_now(spec, done, now),
            state.failed.get(artifact_id),
            now,
            stale=[r for r in earlier if reasons.get(r) is not FRESH and not self._is_known(r)],
            outputs=self._outputs(spec, done),
            forced=artifact_id in self.forced or (artifact_id in state.asked and artifact_id not in state.failed),
        )
        if spec.reads and reason.code == "input_changed" and self._is_pre_state(spec, reason):
            reason = Reason("pre_state_changed", reason.subject, reason.was, reason.now)
        reason = self._behind_gates(spec, reason)
        is_due = (reason.fresh or reason.code in RESTORABLE) and artifact_id in self._unfinished
        if is_due and self._shares(spec) and self.has_earlier(artifact_id):
            reason = Reason("interrupted")  # what an attempt left in the file is to be put right, and it on record
        if reason.code in NAMEABLE or reason.code == "adopted_edit":
            reason = self._named(spec, reason, earlier)
        return reason

    def _shares(self, spec: ArtifactSpec) -> bool:
        """Whether it writes to a file that is changed in place."""
        return bool(spec.modifies) or any(path in self.shared.chains for path in spec.produces)

    def is_forced(self, artifact_id: str) -> bool:
        """It is to be made anew whatever there is: by this run's word, or by one before it that did not get there."""
        return artifact_id in self.forced or artifact_id in self.state.asked

    def _is_pre_state(self, spec: ArtifactSpec, reason: Reason) -> bool:
        """Whether a file that it reads was changed by no artifact, so that nobody knows by whom."""
        path, stages = reason.subject, self.stages
        return (
            path in spec.reads
            and stages.before(spec.id, path) is None
            and not stages.is_as_it_began(spec.id, path, reason.now)
        )

    def known(self, artifact_id: str) -> Completion | None:
        """What its paths were last seen to hold: completed, or made and waiting for its gates."""
        return last_made(self.state, artifact_id)

    def _named(self, spec: ArtifactSpec, reason: Reason, earlier: Iterable[str]) -> Reason:
        """A change of the plan, by the key that changed: the words that `run`, `status` and `why` all use."""
        done = self.known(spec.id)
        if self._formerly is None or done is None:
            return reason
        settings, counts = self.state.settings, self.digests.variables_of
        if reason.code != "adopted_edit":
            return self._formerly.name(reason, spec, settings, counts)
        stale = [r for r in earlier if not self._is_known(r)]
        changed = compare_parts(done.fp, self.now[spec.id], stale)
        if changed.code not in NAMEABLE:
            return reason
        return reason._replace(subject=self._formerly.name(changed, spec, settings, counts).text)

    def made_from(self, artifact_id: str) -> Fingerprint:
        """What the artifact would be made from, as of when it was judged; taken now if nobody asked so far."""
        return self.now.get(artifact_id) or self.fingerprint(artifact_id)

    def prompt(self, artifact_id: str) -> dict[str, str]:
        """Of that, the digests of its templates: told without looking at anything else."""
        fp = self.now.get(artifact_id)
        return fp.templates if fp is not None else self.templates.digests(self.state.artifacts[artifact_id])

    def key(self, artifact_id: str) -> bytes:
        """What tells whether something was made before from the same things in the same way."""
        fp = self.made_from(artifact_id)
        if self._newest_key is None or self._newest_key[0] is not fp:  # whoever asks, often asks twice
            self._newest_key = (fp, precedent_key(fp))
        return self._newest_key[1]

    def earlier(self, artifact_id: str, fp: Fingerprint | None = None) -> Iterator[Earlier]:
        """Completions made from the same things in the same way, newest first, that no gate has turned down; `fp`: from
        these things.
        """
        said = self.state.evidence.get(artifact_id, ())
        turned_down = {verdict.content for verdict in said if verdict.verdict == "REJECT"}
        found = self._made_alike(artifact_id, fp)
        return (e for e in found if content_digest(e.outputs) not in turned_down) if turned_down else found

    def _made_alike(self, artifact_id: str, fp: Fingerprint | None) -> Iterator[Earlier]:
        """Of the command of a phase also its own, from before it counted what a command is for."""
        spec, is_any = self.state.artifacts[artifact_id], False
        for found in self.precedents.earlier(self.key(artifact_id) if fp is None else precedent_key(fp)):
            is_any = True
            yield found
        if not is_any and spec.run and spec.phase and artifact_id not in self.problems:
            key = precedent_key(replace(fp or self.made_from(artifact_id), recipe=self.digests.told_formerly(spec)[0]))
            yield from (found for found in self.precedents.earlier(key) if found.id == artifact_id)

    def has_earlier(self, artifact_id: str) -> bool:
        """Whether there is any."""
        return next(self.earlier(artifact_id), None) is not None

    def sources_of(self, artifact_id: str) -> list[str]:
        """The files that the artifact reads and that the plan does not make."""
        self.made_from(artifact_id)
        return self._sources.get(artifact_id, [])

    def sources_now(self, spec: ArtifactSpec) -> list[str]:
        """The same as things stand, of one that is fresh: some may have appeared since it was judged."""
        done = last_made(self.state, spec.id)
        recipe = done.fp.recipe if done is not None else ""
        return self.files.of(spec, self.state.settings.vars, _wrote(spec, done, recipe))

    def fingerprint(self, artifact_id: str, *, by_hand: bool = False) -> Fingerprint:
        """What the artifact would be made from now; `by_hand`: no recipe was seen to write what it names."""
        state = self.state
        spec, done = state.artifacts[artifact_id], last_made(state, artifact_id)
        recipe = self.digests.recipe(spec)
        wrote = _wrote(spec, done, recipe, by_hand=by_hand)
        sources = (
            self.files.of(spec, state.settings.vars, wrote) if spec.sources or not spec.make or spec.verify else []
        )
        self._sources[artifact_id] = sources
        inputs = self._inputs(spec.requires) if spec.requires else {}
        if by_hand:  # what stands for the last round of a loop comes to be what was accepted for that round
            loops = [
                state.artifacts[r] for r in inputs if r in state.artifacts and state.artifacts[r].gathers == "last"
            ]
            inputs |= {loop.id: self.content(loop.requires[0]) for loop in loops}
        self.now[artifact_id] = found = Fingerprint(
            spec=self.digests.spec(spec),
            recipe=recipe,
            inputs=inputs,
            sources={path: self.files.look(path) for path in sources} if sources else {},
            before={p: self.stages.bytes_before(spec, p) for p in (*spec.modifies, *spec.reads)}
            if spec.modifies or spec.reads
            else {},
            templates=self.templates.digests(spec) if spec.templates else {},
        )
        return found

    def fingerprints(self, specs: Sequence[ArtifactSpec]) -> None:
        """The same of many at once, none of which was made so far: what several of them require is told once."""
        plain = specs
        if any(map(any, map(_read_besides, specs))) or not all(map(_maker, specs)):
            plain = [spec for spec in specs if spec.make and not any(_read_besides(spec))]
        required = self._inputs({r for spec in plain for r in spec.requires})
        inputs = [{r: required[r] for r in spec.requires if r in required} for spec in plain]
        read = self._read_by(plain)
        told = zip(plain, *self.digests.of_functions(plain), inputs, read, strict=True)
        found = {spec.id: Fingerprint(spec=s, recipe=how, inputs=i, sources=r) for spec, s, how, i, r in told}
        self.now.update(found)
        if len(plain) < len(specs):
            others = [spec for spec in specs if spec.id not in found]
            self.files.look_ahead(others)
            for spec in others:
                self.fingerprint(spec.id)

    def _read_by(self, specs: Sequence[ArtifactSpec]) -> Iterable[dict[str, str]]:
        """The digests of what each of these declares to read, of functions that nobody checks."""
        reading = [spec for spec in specs if spec.sources]
        if not reading:
            return repeat({}, len(specs))
        self.files.look_ahead(reading)
        self._sources.update({spec.id: self.files.declared(spec) for spec in reading})
        look, declared = self.files.look, self._sources
        return [{path: look(path) for path in declared[spec.id]} if spec.sources else {} for spec in specs]

    def _inputs(self, requires: Iterable[str]) -> dict[str, str]:
        """What an artifact sees of all that it requires."""
        state, found = self.state, dict[str, str]()
        completed = state.completed if not state.skipped else {}
        for required in requires:
            done = completed.get(required)
            if done is not None:
                found[required] = content_of(done)
            elif required in state.artifacts or self.found_elsewhere(required):
                found[required] = self.content(required)
        return found

    def content(self, artifact_id: str) -> str:
        """What dependents see of an artifact: of one that was skipped, its last output or nothing."""
        state = self.state
        if artifact_id not in state.artifacts and (found := self.found_elsewhere(artifact_id)) is not None:
            return found.content
        skip = state.skipped.get(artifact_id)
        return content_of(state.completed.get(artifact_id) if skip is None else skip.last)

    def recorded(self, artifact_id: str) -> tuple[Output, ...]:
        """The outputs that stand at its paths, or should: also those that wait for their gates."""
        state = self.state
        done = state.completed.get(artifact_id)
        if done is not None and not state.made and not state.skipped:
            return done.outputs
        if artifact_id in state.made:
            return state.made[artifact_id].outputs
        if artifact_id not in state.artifacts and (found := self.found_elsewhere(artifact_id)) is not None:
            return found.outputs
        skip = state.skipped.get(artifact_id)
        done = done if skip is None else skip.last
        return done.outputs if done is not None else ()

    def recorded_all(self, ids: Sequence[str]) -> list[tuple[Output, ...]]:
        """The same of many."""
        state = self.state
        if state.made or state.skipped:
            return [self.recorded(artifact_id) for artifact_id in ids]
        found = map(state.completed.get, ids)
        return [done.outputs if done else self.recorded(i) for i, done in zip(ids, found, strict=True)]

    def problem(self, artifact_id: str) -> str:
        """Why the artifact cannot be made although everything before it is done, or ""."""
        found = self.made_from(artifact_id)
        error = self.problems.get(artifact_id) if self.problems else None
        if error is not None:
            return error.in_one_line
        spec = self.state.artifacts[artifact_id]
        problem = self.files.problem(spec, found.sources) if spec.sources or found.sources else ""
        return problem or (self.templates.problem(spec) if spec.templates else "")

    def absent_words(self) -> list[str]:
        """Words of commands that would be sources if files of that name appeared."""
        return self.files.absent_words()

    def _is_known(self, required: str) -> bool:
        """Whether the content of a requirement is what is recorded: it is fresh, or only has to be put back."""
        reason = self.reasons.get(required)
        if reason is None:
            found = self.found_elsewhere(required) if required not in self.state.artifacts else None
            return found is None or not found.problem
        return reason.fresh or reason.code in RESTORABLE

    def found_elsewhere(self, required: str) -> Found | None:
        """What another plan has for a requirement; None if it is none of another plan's."""
        return self.elsewhere.get(required) if self.elsewhere is not None and ":" in required else None

    def unusable(self, artifact_id: str) -> Found | None:
        """The first requirement of another plan that cannot be used as it is."""
        for required in self.state.artifacts[artifact_id].requires:
            if required not in self.state.artifacts:
                found = self.found_elsewhere(required)
                if found is not None and found.problem:
                    return found
        return None

    # Outputs.

    def is_ours(self, artifact_id: str, path: str, digest: str) -> bool:
        """Whether bytes at an output path are no edit: named by a ledger, or left by an attempt of ours."""
        stages = self.shared.chains.get(path) or (artifact_id,)
        if not self._unfinished.isdisjoint(stages) or self.is_replaceable(artifact_id, path, digest):
            return True
        return self.at_path(path).kind == "tree" and not path.endswith("/") and self._holds_only_ours(path)

    def is_replaceable(self, artifact_id: str, path: str, digest: str) -> bool:
        """Whether a ledger names bytes at an output path, so that they can be had again, and nobody has to be asked.

        What somebody accepted and nobody made is theirs, unless it is recorded as what should stand there: its artifact
        may have left the plan, or come back to it.
        """
        if not self.precedents.names(digest):
            return False
        if not self.precedents.is_only_accepted(self.state.plan_id, path, digest):
            return True
        stages = self.shared.chains.get(path) or (artifact_id,)
        return any(o.path == path and o.digest == digest for stage in stages for o in self.recorded(stage))

    def _holds_only_ours(self, path: str) -> bool:
        """Whether a folder, where a file belongs, has nothing in it but what ledgers name."""
        return all(self.precedents.names(seen.digest) for _, seen in self.observer.tree(path))

    def left_by_attempts(self, spec: ArtifactSpec) -> tuple[Output, ...]:
        """What the newest attempt at an artifact has left at its paths, if it failed or has no end."""
        failure = self.state.failed.get(spec.id)
        if failure is not None:
            return failure.left
        return self.outputs.left((*spec.produces, *spec.modifies)) if spec.id in self._unfinished else ()

    def _outputs(self, spec: ArtifactSpec, done: Completion | None) -> list[Disk]:
        paths = (*spec.produces, *spec.modifies) if spec.modifies else spec.produces
        if done is None:
            return [disk for path in paths if (disk := self._unrecorded(spec, path)) is not None]
        recorded = {output.path: output for output in done.outputs}
        found = []
        for path in paths:
            output = recorded.get(path)
            if output is None:
                disk = self._unrecorded(spec, path)
            elif not self.shared.chains or path not in self.shared.chains:
                disk = self._compared(spec, output)
            else:
                disk = self._compared_shared(spec, output)
            if disk is not None:
                found.append(disk)
        text = recorded.get("")
        if text is not None:
            stored = self.outputs.is_stored(text)
            found.append(Disk("", text.digest, text.digest if stored else "", stored=stored))
        return found

    def at_path(self, path: str) -> Seen:
        """What stands at an output path; of the artifact that was judged last, as of then."""
        seen = self._at_paths.get(path)
        if seen is None:
            seen = self._at_paths[path] = self.observer.look(path.rstrip("/"))
        return seen

    def _compared(self, spec: ArtifactSpec, output: Output) -> Disk:
        now = self.at_path(output.path)
        if now.digest == output.digest and now.kind == output.kind:
            return Disk(output.path, output.digest, output.digest)
        stored = self.outputs.is_stored(output)
        if now.digest == output.digest:
            return Disk(output.path, output.digest, f"{now.kind}:{now.digest}", stored=stored)
        if now.kind == "tree" and output.kind == "tree" and (lacks := self.outputs.lacks(output)):
            if lacks == "modes":
                return Disk(output.path, output.digest, f"modes:{now.digest}", stored=stored)
            return Disk(output.path, output.digest, "", stored=stored, partly=now.digest != EMPTY_TREE)
        ours = not now.digest or self.is_ours(spec.id, output.path, now.digest)
        ours = ours or (self._rebooted and self.outputs.is_torn(output))
        return Disk(output.path, output.digest, now.digest, ours, stored)

    def _compared_shared(self, spec: ArtifactSpec, output: Output) -> Disk:
        """As above, for the stage that the disk shows; while we are changing the file, the disk shows nothing.

        What an earlier stage left stands in what the later ones made of it.
        """
        standing = Disk(output.path, output.digest, output.digest)
        if output.path in self.displaced or not self.stages.answers_for(spec.id, output.path):
            return standing
        disk = self._compared(spec, output)
        broken = any(s in self.state.failed or s in self._unfinished for s in self.shared.chains[output.path])
        return standing if disk.found and disk.ours and broken else disk

    def _unrecorded(self, spec: ArtifactSpec, path: str) -> Disk | None:
        """A path at which the artifact never left anything: whatever stands there was there before."""
        stages = self.shared.chains.get(path) if self.shared.chains else None
        if path in spec.modifies or (stages and any(self.known(stage) is not None for stage in stages)):
            return None
        now = self.at_path(path)
        if not now.digest or now.digest == EMPTY_TREE or self.is_ours(spec.id, path, now.digest):
            return None
        return Disk(path, "", now.digest, ours=False)


def _wrote(spec: ArtifactSpec, done: Completion | None, recipe: str, *, by_hand: bool = False) -> Collection[str]:
    """What a command names and does not read: it was seen to write it; or, where it never ran, it says so itself."""
    if by_hand or (done is not None and done.how == "accepted"):
        known: Collection[str] = done.fp.sources if done is not None else ()
        return [path for path in only_written(spec) if path not in known] if spec.run else ()
    return done.wrote if done is not None and done.fp.recipe == recipe else ()
