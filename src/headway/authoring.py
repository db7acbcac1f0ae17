"""Plans written in Python, for those whose artifacts are made by code.

    plan = Plan("Summarise the corpus", id="corpus")

    @plan.artifact(produces="out/index.txt", sources=["corpus/*.txt"])
    def index(ctx):
        return "\\n".join(sorted(p.name for p in ctx.sources))

    result = plan.run()

The plan is what the Python code builds, each time it runs; it is saved and judged like any plan file.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from types import MethodType
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar, overload

import msgspec

from headway import stamp
from headway.calm import calmly, paused
from headway.core.codec import digest
from headway.core.ids import PROGRAM, hash_goal
from headway.core.paths import normalise
from headway.core.plan import ArtifactSpec, Phase, Pipeline, PlanSpec, Profile, Retry, Settings
from headway.engine.code import is_defined_once, is_typed_again, unwrapped
from headway.engine.functions import LIVE
from headway.engine.imports import reading, refuse_while_read, told, way_out
from headway.engine.result import Options, Reporter, RunFailed, RunResult, options_of
from headway.errors import HeadwayError, NotFound, PlanConflict, PlanInvalid, UsageError
from headway.files.identity import find_root
from headway.given import (
    Paths,
    Templates,
    bytes_of,
    converted,
    encodable,
    is_plain,
    paths_of,
    plain_artifact,
    retry_of,
    roles_of,
    said_of,
    units_of,
    with_values,
)
from headway.version import VERSION

if TYPE_CHECKING:  # what is imported where something is done: often there is nothing to do
    from headway.core.check import Problem
    from headway.engine.planners import Planner
    from headway.engine.preview import PlanPreview
    from headway.project import Project
    from headway.work import Meant, Work

    Check = Callable[[PlanSpec], list[Problem]]

F = TypeVar("F", bound=Callable[..., Any])
ANOTHER = "give it another {}; in a notebook, execute the cell of its Plan again"


class Built(NamedTuple):
    """What Python code has built, and the digest of it."""

    spec: PlanSpec
    source: str


class Plan:
    """A plan that grows as Python code adds to it."""

    def __init__(
        self,
        goal: str,
        *,
        id: str = "",
        vars: Mapping[str, Any] | None = None,
        env: str | Iterable[str] = (),
        jobs: int | None = None,
        retry: Retry | int | None = None,
        timeout: float | None = None,
        on_edit: Any = "ask",
        prompt_changes: Any = "ask",
        profile: Profile | None = None,
        planned_by: str = "",
        confirm_above: float = 1.0,
        store_up_to: int | str | None = None,
        project: str | os.PathLike[str] | None = None,
        environ: Mapping[str, str] | None = None,
        **keys: Any,
    ) -> None:
        """A plan; `keys` are those of a plan file: `approval`, `notify`, `agents`, `metadata` and the rest."""
        self.goal = goal
        self.id = id
        self.vars = dict(vars or {})
        self.profile = profile
        settings = {
            "env": env if isinstance(env, str) else tuple(env),
            "jobs": jobs,
            "timeout": timeout,
            "on_edit": on_edit,
            "prompt_changes": prompt_changes,
            "retry": retry_of(retry),
            "planned_by": planned_by,
            "confirm_above": confirm_above,
            "store_up_to": bytes_of(store_up_to),
            **keys,
        }
        self._settings = said_of("plan", id or goal, settings)
        converted("plan", id or goal, self._settings, Settings)  # so that it is refused where it was written
        self._artifacts: dict[str, ArtifactSpec] = {}
        self._pipelines: dict[str, PipelineBuilder] = {}
        self._functions: dict[str, Callable[..., Any]] = {}
        self._where = project
        self._environ = environ
        self._name = PROGRAM
        self._root = ""
        self._references: dict[tuple[Callable[..., Any], bool], str] = {}

    # Adding.

    @overload
    def artifact(self, function: F, /) -> F: ...
    @overload
    def artifact(self, /, *, id: str = "", **keys: Any) -> Callable[[F], F]: ...
    def artifact(self, function: F | None = None, /, *, id: str = "", **keys: Any) -> Any:
        """Decorate a function: it makes the artifact of its name."""
        return _decorated(self.add, function, id, keys)

    def add(
        self,
        id: str,
        *,
        make: Callable[..., Any] | str = "",
        run: str = "",
        args: Mapping[str, Any] | None = None,
        requires: str | Iterable[str] = (),
        produces: Paths = (),
        modifies: Paths = (),
        sources: Paths = (),
        templates: Templates = None,
        retry: Retry | int | None = None,
        **keys: Any,
    ) -> str:
        """Add an artifact; its id."""
        if id in self._artifacts and not is_typed_again(self._functions.get(id), make):
            raise UsageError(f"Artifact {id} is there already", hint=ANOTHER.format("id"), code="plan.duplicate")
        function = make if callable(make) else None
        reference: Any = make
        if function is not None and args:
            reference = self._reference(function, odd=not is_plain(dict(args)))
            function = with_values(function, dict(args))
        elif function is not None:
            reference = self._references.get((function, False)) or self._reference(function)
        says_more = keys or args or run != "" or modifies != () or templates is not None or retry is not None
        spec = None if says_more else plain_artifact(id, reference, requires, produces, sources)
        if spec is None:
            given = {
                "id": id,
                "run": run,
                "make": reference,
                "args": encodable(id, args) if args else {},
                "requires": (requires,) if isinstance(requires, str) else tuple(sorted(set(requires))),
                "produces": paths_of(produces),
                "modifies": paths_of(modifies),
                "sources": paths_of(sources),
                "templates": roles_of(templates),
                "retry": retry_of(retry),
                **(said_of("artifact", id, keys) if keys else {}),
            }
            spec = converted("artifact", id, given, ArtifactSpec)
        self._artifacts[id] = spec
        if function is not None:
            self._functions[id] = function
        return id

    def pipeline(
        self,
        name: str,
        *,
        units: str | Iterable[str] | Mapping[str, Any],
        order: Any = "independent",
        state: str | os.PathLike[str] = "",
        templates: Templates = None,
        overrides: Mapping[str, Mapping[str, Templates]] | None = None,
    ) -> PipelineBuilder:
        """Add a chain of phases that units go through: names, `{"files": …}` or `{"from": …, "items": …}`."""
        if name in self._pipelines:
            raise UsageError(f"Pipeline {name} is there already", hint=ANOTHER.format("name"), code="plan.duplicate")
        given = {
            "name": name,
            "units": units_of(units),
            "order": order,
            "state": normalise(os.fspath(state)) if state else "",
            "templates": roles_of(templates),
            "overrides": {u: {p: roles_of(r) for p, r in phases.items()} for u, phases in (overrides or {}).items()},
        }
        self._pipelines[name] = PipelineBuilder(self, converted("pipeline", name, given, Pipeline))
        return self._pipelines[name]

    @property
    def spec(self) -> PlanSpec:
        """What has been built so far."""
        built = tuple(builder.built for builder in self._pipelines.values())
        said = said_of("plan", self.id or self.goal, {"vars": self.vars})
        given = {
            "goal": self.goal,
            "id": self.id,
            "settings": {**self._settings, **said, "pipelines": built},
            "profile": self.profile,
            "artifacts": tuple(self._artifacts.values()),
        }
        return converted("plan", self.id or self.goal, given, PlanSpec)

    def _built(self, plan_id: str = "") -> Built:
        """What has been built so far, perhaps under another id."""
        spec = msgspec.structs.replace(self.spec, id=plan_id) if plan_id else self.spec
        return Built(spec, _source(spec))

    # Running.

    def meant(
        self,
        plan_id: str | None = None,
        *,
        name: str = "",
        project: Project | None = None,
        check: Check | None = None,
        built: Built | None = None,
    ) -> Meant:
        """The plan as a proposal, refused if it has problems; as it is saved in a project that has just this one.

        `check` finds problems: of the plan alone, unless there is a project, whose other plans count. `built`: what has
        been built so far, if it was asked for a moment ago.
        """
        from headway.work import Meant

        spec, source = built or self._built("" if self.id else plan_id or "")
        chosen, name = spec.id or hash_goal(spec.goal), name or self._name
        saved = project.store.folder(chosen).load() if project is not None else None
        known = saved.state.proposal if saved is not None else None
        if known is not None and known.source == source and _is_python(known.path) and _is_python(name):
            return Meant(chosen, functions=self._functions, execution=saved)
        problems = (project.check if project is not None else check or _check)(spec)
        if problems:
            raise PlanInvalid(problems, where=f"Plan {self.id or self.goal}")
        return Meant(chosen, spec, name, source, functions=self._functions)

    def _work(self) -> Work:
        from headway.project import Project
        from headway.work import Work

        return Work(Project(self._folder(), by="python"), environ=self._environ)

    def _folder(self) -> str:
        """The project's root."""
        return os.path.abspath(self._where) if self._where is not None else find_root(os.getcwd())

    def at_rest(self, environ: Mapping[str, str], *, built: Built | None = None) -> tuple[str, str] | None:
        """What a run of all of it says, in words and as JSON, if it is known to have nothing to do; else None.

        Not even the ledger is read for it. `built`: as for `meant`.
        """
        if self._pipelines:  # which artifacts the units of a pipeline are, only the ledger knows
            return None
        root, plan_id = self._folder(), self.id or hash_goal(self.goal)
        if not stamp.is_left(root, plan_id):
            return None
        spec, source = built or self._built()
        made = stamp.built(source, spec.artifacts, self._functions)
        return stamp.at_rest(root, plan_id, VERSION, environ, built=made)

    def _resting(self, asked: Options, reporter: Reporter | None, built: Built) -> RunResult | None:
        """What the run comes to if it is known to have nothing to do."""
        if asked != Options(jobs=asked.jobs, fail_fast=asked.fail_fast):
            return None
        if self.at_rest(self._environ if self._environ is not None else os.environ, built=built) is None:
            return None
        plan_id = self.id or hash_goal(self.goal)
        recall = lambda: self._work().session.recall(plan_id)  # noqa: E731  # for those who look at the outputs
        result = RunResult(plan_id=plan_id, kept=list(self._artifacts), root=self._folder(), recall=recall)
        if reporter is not None:
            reporter.begun(result, {}, 0)
            reporter.ended(result)
        return result

    def run(
        self,
        *targets: str,
        check: bool = True,
        jobs: int | None = None,
        reporter: Reporter | None = None,
        stop: Callable[[], str] = lambda: "",
        replan: Planner | None = None,
        take: str = "",
        **options: Any,
    ) -> RunResult:
        """Make what is stale. Raises RunFailed with the result unless all is done, or `check` is false.

        `replan(plan, failure)` is asked for a better plan when artifacts fail for good. `take`: who wins where program
        and ledger changed the same thing, "file" (the program) or "ledger".
        """
        refuse_while_read()
        _refuse_take(take)
        asked = options_of(targets, jobs, options)
        built = self._built()
        result = self._resting(asked, reporter, built)
        if result is None:
            with calmly(), _staying():
                with paused():  # all that is imported and read until here stays for as long as the run
                    work = self._work()
                    meant = self._taken_in(work, take, built)
                result = work.run(
                    meant.plan_id,
                    asked,
                    reporter=reporter,
                    functions=self._functions,
                    stop=stop,
                    execution=meant.execution,
                    replan=replan,
                )
        if check and not result.ok:
            raise RunFailed(result)
        return result

    def status(self) -> dict[str, Any]:
        """Where the plan stands, as `headway status --json` tells it. Writes nothing."""
        return self._work().status(self.meant())

    def why(self, artifact_id: str) -> dict[str, Any]:
        """Why an artifact is fresh or stale, as `headway why --json` tells it. Writes nothing."""
        return self._work().why(self.meant(), artifact_id)

    def __repr__(self) -> str:
        return f"<Plan {self.id or self.goal}: {len(self._artifacts)} artifacts, {len(self._pipelines)} pipelines>"

    def preview(self, *targets: str, jobs: int | None = None, **options: Any) -> PlanPreview:
        """What `run` would make and why, what that would take, and what it saves. Writes nothing."""
        asked = options_of(targets, jobs, options)
        return self._work().preview(self.meant(), asked)

    def _taken_in(self, work: Work, take: str, built: Built | None = None) -> Meant:
        """The plan, with whatever of it is new on record."""
        try:
            return work.taken_in(self.meant(project=work.project, built=built), take=take)
        except PlanConflict as conflict:
            if self._name == PROGRAM:
                conflict.hint = 'take="file" lets the program win, take="ledger" what the ledger has: plan.run(take=…)'
            raise

    async def arun(self, *targets: str, check: bool = True, take: str = "", **options: Any) -> RunResult:
        """As `run`, beside other tasks: async functions run in this loop; cancelling it pauses the run."""
        import asyncio

        refuse_while_read()
        _refuse_take(take)
        loop = asyncio.get_running_loop()
        asked: list[str] = []
        work = self._work()
        jobs = options.pop("jobs", None)
        reporter = options.pop("reporter", None)
        chosen = options_of(targets, jobs, options)

        def go() -> RunResult:
            meant = self._taken_in(work, take)
            return work.run(
                meant.plan_id,
                chosen,
                reporter=reporter,
                functions=self._functions,
                loop=loop,
                stop=lambda: asked[0] if asked else "",
                execution=meant.execution,
            )

        running = asyncio.ensure_future(asyncio.to_thread(go))
        try:
            result = await asyncio.shield(running)
        except asyncio.CancelledError:
            asked.append("interrupted")
            await running
            raise
        if check and not result.ok:
            raise RunFailed(result)
        return result

    @property
    def functions(self) -> Mapping[str, Callable[..., Any]]:
        """The functions that make artifacts, by id."""
        return self._functions

    def _reference(self, function: Callable[..., Any], *, odd: bool = False) -> str:
        """How a function is recorded: by its file where it has one in the project, so that others can judge it, too.

        With arguments that have no JSON form (`odd`), only the program that holds them can call it.
        """
        known = self._references.get((function, odd))
        if known is None:
            known = self._references[function, odd] = self._reference_of(function, odd)
        return known

    def _reference_of(self, function: Callable[..., Any], odd: bool) -> str:
        plain = unwrapped(function)
        name = getattr(plain, "__qualname__", "") or type(function).__name__
        file = getattr(getattr(plain, "__code__", None), "co_filename", "")
        if not self._root:
            where = self._where if self._where is not None else find_root(os.getcwd())
            self._root = os.path.realpath(os.fspath(where))
        root = self._root
        real = os.path.realpath(file) if file else ""
        plain_name = name.replace(".", "").isidentifier() and not getattr(plain, "__closure__", None)
        own = real.startswith(root + os.sep) and os.path.isfile(real)
        bound = isinstance(plain, MethodType) and not isinstance(plain.__self__, type)  # its instance is nowhere else
        if own and plain_name and not odd and not bound and is_defined_once(real, name):
            return f"{os.path.relpath(real, root)}:{name}"
        return f"{LIVE}{''.join(c if c.isidentifier() or c.isdigit() else '_' for c in name.rsplit('.', 1)[-1])}"


@contextmanager
def _staying() -> Iterator[None]:
    """Functions may go to another folder; whoever ran them stays where they were, and so does the project."""
    try:
        here = os.getcwd()
    except OSError:  # it is gone already
        here = ""
    try:
        yield
    finally:
        if here:
            with suppress(OSError):
                os.chdir(here)


class PipelineBuilder:
    """A pipeline that grows phase by phase."""

    def __init__(self, plan: Plan, start: Pipeline) -> None:
        self._plan = plan
        self._start = start
        self._phases: dict[str, Phase] = {}

    @property
    def built(self) -> Pipeline:
        """The pipeline so far."""
        found: Pipeline = msgspec.structs.replace(self._start, phases=tuple(self._phases.values()))
        return found

    @overload
    def phase(self, function: F, /) -> F: ...
    @overload
    def phase(self, /, *, id: str = "", **keys: Any) -> Callable[[F], F]: ...
    def phase(self, function: F | None = None, /, *, id: str = "", **keys: Any) -> Any:
        """Decorate a function: it makes the phase of its name, for every unit."""
        return _decorated(self.add, function, id, keys)

    def add(
        self,
        id: str,
        *,
        make: Callable[..., Any] | str = "",
        args: Mapping[str, Any] | None = None,
        templates: Templates = None,
        retry: Retry | int | None = None,
        **keys: Any,
    ) -> str:
        """Add a phase; its name."""
        place = f"{self._start.name}:{id}"
        if id in self._phases:
            raise UsageError(f"Phase {place} is there already", hint=ANOTHER.format("name"), code="plan.duplicate")
        if callable(make):
            self._plan._functions[place] = with_values(make, dict(args or {}))
        plain = is_plain(dict(args or {}))
        given = {
            "id": id,
            "make": self._plan._reference(make, odd=not plain) if callable(make) else make,
            "args": encodable(place, args or {}),
            "templates": roles_of(templates),
            "retry": retry_of(retry),
            **said_of("phase", place, keys),
        }
        if isinstance(given.get("outputs"), Mapping):
            given["outputs"] = {name: os.fspath(path) for name, path in given["outputs"].items()}
        if isinstance(given.get("requires"), tuple):
            given["requires"] = tuple(sorted(set(given["requires"])))
        self._phases[id] = converted("phase", place, given, Phase)
        return id


def _check(spec: PlanSpec) -> list[Problem]:
    from headway.core.check import check_plan

    return check_plan(spec)


def _source(spec: PlanSpec) -> str:
    try:
        return digest(msgspec.json.encode(spec))
    except UnicodeEncodeError as error:
        raise _unwritable(spec, error) from error


def _unwritable(spec: PlanSpec, error: UnicodeEncodeError) -> UsageError:
    """Whose text cannot be written, and what it is."""
    name = next((f"Artifact {a.id!a}" for a in spec.artifacts if not _is_text(a)), "The plan")
    return UsageError(
        f"{name} holds a text that is none",
        facts={"text": ascii(error.object[max(error.start - 20, 0) : error.end + 20])},
        hint="it may be the name of a file that is not UTF-8: rename the file, or leave it out",
        code="plan.text",
    )


def _is_text(spec: ArtifactSpec) -> bool:
    try:
        msgspec.json.encode(spec)
    except UnicodeEncodeError:
        return False
    return True


def _refuse_take(take: str) -> None:
    if take not in ("", "file", "ledger"):
        raise UsageError(f"take cannot be {take!r}", hint='take="file" or take="ledger"', code="take.unknown")


def _is_python(name: str) -> bool:
    """Whether a proposal comes of Python code: whether it was run or read makes no difference to the plan."""
    return name == PROGRAM or name.partition(":")[0].endswith(".py")


def load_plan(reference: str, root: str) -> Plan:
    """The plan that a Python file builds for the project there: `file.py`, or `file.py:name` if it builds several."""
    import runpy
    import sys

    from headway.core.fingerprint import RUN_AS
    from headway.engine import loaded

    path, _, wanted = reference.partition(":")
    full = os.path.abspath(path)
    if not os.path.isfile(full):
        raise NotFound(f"There is no file {path}", hint="check --plan", code="file.none")
    folder = os.path.dirname(full)
    if folder not in sys.path:
        sys.path.insert(0, folder)
    try:
        with reading(path), loaded.noting(root):
            loaded.forget_changed(root)
            loaded.note(os.path.realpath(full), full)
            found = runpy.run_path(full, run_name=RUN_AS)
    except (HeadwayError, KeyboardInterrupt):
        raise
    except BaseException as error:  # whatever a program raises is its own error, and no end of ours
        raise UsageError(
            f"{path} cannot be run",
            facts={"error": told(error)},
            hint=way_out(error, f"python {path}"),
            code="plan.python",
        ) from error
    plans = {name: value for name, value in found.items() if isinstance(value, Plan)}
    plan = plans.get(wanted or "plan") or (next(iter(plans.values())) if len(plans) == 1 and not wanted else None)
    if plan is None:
        raise UsageError(
            f"{path} builds no plan{f' named {wanted}' if wanted else ''}",
            facts={"it has": ", ".join(plans) or "none"},
            hint="name one: --plan file.py:name" if plans else "keep it where it can be seen: plan = Plan(…)",
            code="plan.python",
        )
    plan._where = root
    plan._name = os.path.relpath(full, root) + (f":{wanted}" if wanted else "")
    return plan


def _decorated(add: Callable[..., object], function: F | None, id: str, keys: Mapping[str, Any]) -> Any:
    """Add what a function makes, under its name and with its first line; or whatever does so with the next one."""

    def decorate(made_by: F) -> F:
        add(id or made_by.__name__, make=made_by, **{"description": _first_line(made_by), **keys})
        return made_by

    return decorate(function) if function is not None else decorate


def _first_line(function: Callable[..., Any]) -> str:
    lines = (getattr(function, "__doc__", "") or "").strip().splitlines()
    return lines[0] if lines else ""
