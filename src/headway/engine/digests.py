"""What is asked for and how it is made, as digests: taken once, and as they were told before, too.

Looks at code and at the environment; lets core/fingerprint.py put the digests together.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress
from operator import attrgetter
from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

from headway.core.fingerprint import (
    RUN_AS,
    NotEncodable,
    digest,
    plain_function_digests,
    recipe_digest,
    spec_digest,
    spec_digests,
)
from headway.core.plan import ArtifactSpec
from headway.core.state import MOVED, Completion, Fingerprint
from headway.engine.code import READS_VARS
from headway.engine.functions import LIVE, function_of
from headway.errors import UsageError

if TYPE_CHECKING:
    from headway.engine.judge import Judge

_maker = attrgetter("make")
_counts_besides = attrgetter("args", "env", "version", "templates", "outputs", "phase")
"""What counts for a function besides its code, where an artifact has it."""


class Digests:
    """The specs and recipes of the artifacts that a judge judges."""

    def __init__(self, judge: Judge, environ: Mapping[str, str]) -> None:
        self._judge = judge
        self._environ = environ
        self._specs: dict[str, tuple[ArtifactSpec, str]] = {}
        self._recipes: dict[str, tuple[ArtifactSpec, str]] = {}
        self._codes: dict[tuple[Callable[..., Any], bool], str] = {}
        self._once: dict[Callable[..., Any], tuple[str, str]] = {}
        self._loaded: dict[str, bool] = {}
        self._plain: dict[str | Callable[..., Any], str] = {}

    def look_again(self) -> None:
        """Code may have changed; what a plan says of itself has not."""
        self._codes, self._once, self._recipes, self._loaded, self._plain = {}, {}, {}, {}, {}

    def forget(self, artifact_id: str) -> None:
        """It is not in the plan any more."""
        self._specs.pop(artifact_id, None)
        self._recipes.pop(artifact_id, None)

    def spec(self, spec: ArtifactSpec) -> str:
        """What is asked for."""
        known = self._specs.get(spec.id)
        if known is None or (known[0] is not spec and known[0] != spec):
            known = self._specs[spec.id] = spec, spec_digest(spec)
        return known[1]

    def of_functions(self, specs: Sequence[ArtifactSpec]) -> tuple[list[str], list[str]]:
        """What is asked for and how it is made, of many whose turn has come: told in one go, and seldom asked again."""
        codes = self._plain_codes(specs)
        if not codes:
            return spec_digests(specs), [self.recipe(spec) for spec in specs]
        return spec_digests(specs), plain_function_digests(codes, [spec.id for spec in specs])

    def recipe(self, spec: ArtifactSpec) -> str:
        """How it is made, as it is told today."""
        if spec.templates and self._judge.state.settings.vars:  # which of them count, the templates say that stand now
            return self._digest_recipe(spec)
        known = self._recipes.get(spec.id)
        if known is None or (known[0] is not spec and known[0] != spec):
            codes = self._plain_codes((spec,))
            told = plain_function_digests(codes, (spec.id,))[0] if codes else self._digest_recipe(spec)
            known = self._recipes[spec.id] = spec, told
        return known[1]

    def _plain_codes(self, specs: Sequence[ArtifactSpec]) -> list[str]:
        """The code of the function of each, if for all of them that and the artifact are all that counts: such code is
        told apart once, however many artifacts it makes.
        """
        if any(map(any, map(_counts_besides, specs))) or not all(map(_maker, specs)):
            return []
        functions, plain = self._judge.functions, self._plain
        makers = [functions.get(spec.id) or spec.make for spec in specs] if functions else [spec.make for spec in specs]
        if not plain.keys() >= set(makers):
            for maker, spec in dict(zip(makers, specs, strict=True)).items():
                plain[maker] = self._told_by_code(spec, functions.get(spec.id))
        codes = [plain[maker] for maker in makers]
        return codes if all(codes) else []

    def _told_by_code(self, spec: ArtifactSpec, function: Callable[..., Any] | None) -> str:
        """The code of a function, if nothing of the plan's settings counts for it."""
        settings = self._judge.state.settings
        if settings.env or (function is None and spec.make.startswith(LIVE)):
            return ""
        try:
            code = self._code(spec)
        except (NotEncodable, UsageError):
            return ""
        return "" if settings.vars and code.endswith(READS_VARS) else code

    def is_out_of_sight(self, spec: ArtifactSpec) -> bool:
        """Whether only the program that defines its function can tell whether its code has changed."""
        return spec.make.startswith(LIVE) and not spec.version and function_of(self._judge.functions, spec) is None

    def _digest_recipe(self, spec: ArtifactSpec) -> str:
        """A recipe that cannot be read is its artifact's problem, and no other's."""
        make = spec.make
        if make.startswith(LIVE) and self.is_out_of_sight(spec):
            done = self._judge.known(spec.id)
            return done.fp.recipe if done is not None else ""  # only the program that defines it can tell
        settings, env = self._judge.state.settings, self._env(spec)
        try:
            code = self._code(spec) if make and not spec.version else ""
            reads_vars = bool(spec.version) or code.endswith(READS_VARS)
            return recipe_digest(
                spec, settings, code=code, env=env, reads_vars=reads_vars, prompted=self._prompted(spec)
            )
        except NotEncodable as error:
            self._judge.problems[spec.id] = UsageError(
                f"The arguments of {spec.id} cannot be compared",
                facts={"reason": error},
                hint="pass plain values (text, numbers, lists, dataclasses), or a path that the function opens",
                code="recipe.args",
            )
        except UsageError as error:
            self._judge.problems[spec.id] = error
        return "unknown"

    def as_loaded(self, spec: ArtifactSpec, fp: Fingerprint) -> Fingerprint:
        """What an artifact is made from by a function that was just loaded; marked, if it counts by other code.

        Then a file was edited between the two, and whatever it holds from now on, it is not known what has run.
        """
        return fp if self.is_loaded(spec) else replace(fp, recipe=MOVED)

    def is_loaded(self, spec: ArtifactSpec) -> bool:
        """Whether its function, as it was loaded, is of the code that it counts by."""
        if spec.version or function_of(self._judge.functions, spec) is not None:
            return True
        known = self._loaded.get(spec.make)
        if known is None:
            known = self._loaded[spec.make] = self._is_loaded(spec.make)
        return known

    def _is_loaded(self, reference: str) -> bool:
        from headway.engine.loaded import were_surely

        module, _, name = reference.partition(":")
        code, name = self._judge.code, name.split(".", maxsplit=1)[0]
        path = code.find(module)
        if path is None:
            return True
        files = code.reached.get((path, name), {path})
        if were_surely(code.root, {file: code.files.get(file, "") for file in files}):
            return True
        from headway.engine.live import is_loaded  # which compares what was compiled: seldom needed

        return is_loaded(code, path, name)

    def as_told_now(self, spec: ArtifactSpec, done: Completion, now: Fingerprint) -> Completion:
        """What was made, with its recipe as it is told today: a better way of telling is no reason to make it again."""
        if done.fp.recipe == now.recipe or done.fp.recipe not in self.told_formerly(spec, done.at):
            return done
        return replace(done, fp=replace(done.fp, recipe=now.recipe))

    def told_formerly(self, spec: ArtifactSpec, since: str = "") -> list[str]:
        """A recipe as it was told before: of a command, when it did not count what the command is for; of units, when
        it did not count how they are found; of a function, when names of its own counted as those of its module, and
        when a plan's own file that Headway ran had a name of its own; and of either, when variables that its templates
        read did not count.
        """
        settings, env = self._judge.state.settings, self._env(spec)
        prompted = self._prompted(spec)
        if spec.run:
            ways = [(False, prompted), (False, None), (True, None)] if prompted else [(False, None)]
            return [
                recipe_digest(spec, settings, code="", env=env, names_itself=own, prompted=shown) for own, shown in ways
            ]
        if spec.gathers == "units":
            return [recipe_digest(spec, settings, code="", env=env, names_itself=False)]
        if not spec.make or spec.id in self._judge.problems:
            return []
        function = function_of(self._judge.functions, spec) if self._judge.functions else None
        told = [(spec, self._code(spec, former=True))] if not spec.version else []
        if function is not None:
            told.append(self._as_once_named(spec, function, since))
        if prompted:
            told.append((spec, self._code(spec) if not spec.version else ""))
        found = []
        for named, code in told:
            reads_vars = bool(spec.version) or code.endswith(READS_VARS)
            found.append(recipe_digest(named, settings, code=code, env=env, reads_vars=reads_vars))
        return found

    def variables_of(self, spec: ArtifactSpec) -> Collection[str] | None:
        """The variables that count for how an artifact is made, besides those that its command names; None for all of
        them, as where a function reads any: which, cannot be told.
        """
        with suppress(NotEncodable, UsageError):  # whose code cannot be read is made by nobody
            if spec.make and (spec.version or self._code(spec).endswith(READS_VARS)):
                return None
        return self._prompted(spec) or ()

    def _prompted(self, spec: ArtifactSpec) -> dict[str, Any] | None:
        """The variables that count because the artifact's prompt shows them."""
        variables = self._judge.state.settings.vars
        return self._judge.templates.variables(spec, variables) if variables and spec.templates else None

    def _env(self, spec: ArtifactSpec) -> dict[str, str | None]:
        """The variables of the environment that count for a recipe."""
        shared, own = self._judge.state.settings.env, spec.env
        return {name: self._environ.get(name) for name in (*shared, *own)} if shared or own else {}

    def _code(self, spec: ArtifactSpec, *, former: bool = False) -> str:
        function = function_of(self._judge.functions, spec) if self._judge.functions else None
        code = self._judge.code.formerly if former else self._judge.code
        if function is None:
            return code.of_reference(spec.make) if not spec.make.startswith(LIVE) else ""
        known = self._codes.get((function, former))
        if known is None:
            from headway.engine.live import of_function

            known = self._codes[function, former] = of_function(code, function)
        return known

    def _as_once_named(self, spec: ArtifactSpec, function: Callable[..., Any], since: str) -> tuple[ArtifactSpec, str]:
        """Arguments and code as they were told when the file of a plan that Headway ran had a name of its own."""
        from datetime import datetime

        from headway.engine.live import as_once_named
        from headway.engine.loaded import was_touched

        args = {
            name: {"digest": digest(value, ran_as=RUN_AS)}
            for name, value in getattr(function, "given", {}).items()
            if isinstance(told := spec.args.get(name), dict) and told.keys() == {"digest"}
        }
        named = replace(spec, args={**spec.args, **args}) if args else spec
        if spec.version:
            return named, ""
        if function not in self._once:
            self._once[function] = as_once_named(self._judge.code, function)
        code, file = self._once[function]
        if file and was_touched(file, datetime.fromisoformat(since).timestamp()):
            code = ""
        return named, code
