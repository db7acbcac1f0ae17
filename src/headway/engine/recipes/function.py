"""Functions: called with what their signature asks for; what they return becomes the output. Knows no ledger."""

from __future__ import annotations

import importlib
import importlib.util
import inspect
import os
import queue
import sys
import threading
import time
import traceback
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from contextvars import copy_context
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from headway.engine import loaded
from headway.engine.imports import at_work, exit_at_once, guard_exit, reading, told, way_out, words_of
from headway.engine.recipes.base import Attempt, Input, Job, QuotaExhausted, Stepper, Stopped, wait_of
from headway.engine.recipes.prints import kept_prints
from headway.engine.steps import all_told, as_json
from headway.errors import UsageError

if TYPE_CHECKING:
    import asyncio  # importing these costs more than most functions here take: only async ones pay for it
    from concurrent.futures import Future

LONGEST_ERROR = 2000
SLICE = 0.2
"""So many seconds are waited at a time."""
CALLED = " (a function is called with ctx, if it names it, and its args: ctx.inputs has what it requires)"
TEXT = (str, bytes)
"""What most functions return, and what needs no further questions."""

_loading = threading.Lock()


class Context(msgspec.Struct, eq=False):
    """What a function may know: its artifact, its inputs and sources, and where its output goes."""

    _job: Job
    _asked: bool = False
    _step: Stepper | None = None
    _values: dict[str, Any] | None = None

    def __repr__(self) -> str:
        return f"<Context of {self._job.spec.id}>"

    @property
    def id(self) -> str:
        """The artifact's id."""
        return self._job.spec.id

    @property
    def description(self) -> str:
        """What the artifact is."""
        return self._job.spec.description

    @property
    def contract(self) -> str:
        """What the artifact has to fulfil."""
        return self._job.spec.contract

    @property
    def root(self) -> Path:
        """The project's folder."""
        return Path(self._job.root)

    @property
    def inputs(self) -> Mapping[str, Input]:
        """What it requires, by id."""
        return self._job.inputs

    @property
    def sources(self) -> list[Path]:
        """The files that its sources name."""
        return [Path(self._job.root, path) for path in self._job.sources]

    @property
    def vars(self) -> Mapping[str, Any]:
        """The plan's variables; what is changed in them, nobody else sees."""
        found: Mapping[str, Any] = self._own("vars", self._job.variables)
        return found

    @property
    def env(self) -> Mapping[str, str]:
        """The environment of this attempt."""
        return self._job.environment

    @property
    def idempotency_key(self) -> str:
        """The same for every attempt that is made from the same things: hand it to whatever has effects elsewhere."""
        return self._job.environment.get("HEADWAY_IDEMPOTENCY_KEY", "")

    @property
    def prompt(self) -> str:
        """The prompt that its templates came to."""
        return self._job.prompt

    @property
    def prompts(self) -> Mapping[str, str]:
        """The same part by part, by role."""
        return self._job.prompts

    def respond(self, text: str) -> str:
        """Put on record what was answered to the prompt; the text itself."""
        if self._job.responses is not None:
            self._job.responses.append(text)
        return text

    @property
    def unit(self) -> str:
        """The unit whose phase this is."""
        return self._job.spec.unit

    @property
    def phase(self) -> str:
        """The phase of the unit."""
        return self._job.spec.phase

    @property
    def iteration(self) -> int:
        """How often the loop has been gone round, this time included."""
        return max(self._job.spec.iteration, 1)

    @property
    def item(self) -> Any:
        """What the unit was read from, in the first phase."""
        return self._own("item", self._job.spec.item)

    def _own(self, name: str, value: Any) -> Any:
        """A value of the plan, the same each time, that belongs to this attempt alone."""
        if self._values is None:
            self._values = {}
        if name not in self._values:
            self._values[name] = _copied(value)
        return self._values[name]

    @property
    def file(self) -> Path:
        """The file that the unit is about."""
        return Path(self._job.root, self._job.spec.file)

    @property
    def state(self) -> Path:
        """The state file, as whoever came before left it."""
        return Path(self._job.root, self._job.state)

    @property
    def paths(self) -> Mapping[str, Path]:
        """Where its outputs go, by name."""
        self._asked = True
        return {name: Path(self._job.root, path) for name, path in self._job.spec.outputs.items()}

    @property
    def outputs(self) -> list[Path]:
        """The paths that it writes."""
        self._asked = True
        spec = self._job.spec
        return [Path(self._job.root, path) for path in spec.outputs.values() or spec.produces]

    @property
    def output(self) -> Path:
        """The path of its (first) output."""
        if not self.outputs:
            raise AttributeError(f"artifact {self.id} has no file to write; return its text")
        return self.outputs[0]

    def step(self, name: str, function: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        """Call a function once: its result is on record when it returns; after a crash it is taken from there.

        What an async function returns is awaited: `await ctx.step("ask", ask, "why?")`.
        """
        if self._step is None:
            self._step = self._job.around.stepper(self._job)
        if self._step is None:
            return function(*args, **kwargs)
        return self._step(name, lambda: function(*args, **kwargs), inspect.iscoroutinefunction(function))


def load_function(root: str, reference: str, artifact_id: str = "") -> Callable[..., Any]:
    """The function that `module:function` or `path/file.py:function` names, imported from the project.

    Whatever importing it raises is its failure, and so that of the artifact; but for Ctrl-C.
    """
    module_name, _, qualname = reference.partition(":")
    with _loading, _without_bytecode(), loaded.noting(root), reading(module_name, artifact_id):
        found: Any = None
        try:
            loaded.forget_changed(root)
            found = _load(root, module_name)
            for part in qualname.split("."):
                found = getattr(found, part)
        except (UsageError, KeyboardInterrupt):
            raise
        except BaseException as error:
            if isinstance(error, AttributeError) and found is not None:  # and not within the module
                raise UsageError(
                    f"{reference} does not exist", facts={"reason": error}, hint="check make:", code="recipe.function"
                ) from error
            raise UsageError(
                f"{module_name} cannot be imported",
                facts={"error": told(error)},
                hint=way_out(error, f"{_shown(module_name)} in the project root"),
                code="recipe.import",
            ) from error
    function: Callable[..., Any] = found
    return function


def _shown(module_name: str) -> str:
    """What has to be typed to see how an import fails."""
    from shlex import quote

    return f"python {quote(module_name)}" if module_name.endswith(".py") else f"python -c 'import {module_name}'"


@contextmanager
def _without_bytecode() -> Iterator[None]:
    """Compiled files are told apart by seconds: one that is left behind may hide an edit."""
    before, sys.dont_write_bytecode = sys.dont_write_bytecode, True
    try:
        yield
    finally:
        sys.dont_write_bytecode = before


def _load(root: str, name: str) -> Any:
    for folder in (os.path.join(root, "src"), root):  # so that a file finds its neighbours, too, as a program does
        if os.path.isdir(folder) and folder not in sys.path:
            sys.path.insert(0, folder)
    if name.endswith(".py"):
        path = os.path.join(root, name)
        spec = importlib.util.spec_from_file_location(f"headway_recipe_{name[:-3].replace('/', '_')}", path)
        if spec is None or spec.loader is None:
            raise UsageError(f"{name} is not a Python file", hint="check make:", code="recipe.function")
        module = importlib.util.module_from_spec(spec)
        sys.modules[spec.name] = module
        loaded.note(spec.name, path, spec)
        spec.loader.exec_module(module)
        return module
    file = getattr(sys.modules.get(name), "__file__", None)
    if file and not os.path.realpath(file).startswith(os.path.realpath(root) + os.sep):
        del sys.modules[name]  # another project's module of the same name
    return importlib.import_module(name)


def run_function(job: Job, loop: asyncio.AbstractEventLoop | None = None) -> Attempt:
    """One attempt, in the calling thread; an async function runs in the given loop, or in one of its own.

    With a timeout, a function that is not async gets a thread of its own. When its time is up nobody waits for it, and
    it ends where it next gets back to Python code, so that it writes nothing into the work of those after it.
    """
    came = call_function(job, loop)
    return came if type(came) is Attempt else Attempt(True, value=came)


def call_function(job: Job, loop: asyncio.AbstractEventLoop | None = None) -> str | bytes | Attempt:
    """The same, but of an attempt that came to text or bytes, and of which nothing else is to be told, only these."""
    if os._exit is exit_at_once:
        guard_exit()
    at_work.id = job.spec.id
    process = os.getpid()
    came, prints = kept_prints(job.printed, _attempt, job, loop)
    if os.getpid() != process:  # a child that the function left behind: the run is its parent's, and goes on there
        exit_at_once(type(came) is Attempt and not came.ok)
    if prints.kept is not None:
        if type(came) is not Attempt:
            came = Attempt(True, value=came)
        came.stdout, came.stderr = prints.bytes("stdout"), prints.bytes("stderr") + came.stderr
    return came


def _attempt(job: Job, loop: asyncio.AbstractEventLoop | None) -> str | bytes | Attempt:
    function = job.function
    assert function is not None, "a function recipe has a function"
    try:
        args, context = job.spec.args, None
        given = _copied(args) if args else {}
        if "ctx" not in given and _wants_context(function):
            given["ctx"] = context = Context(job)
        if job.timeout is None or inspect.iscoroutinefunction(function):
            value = function(**given)
        else:
            value = _call_in_time(function, given, job)
        if type(value) in TEXT and (context is None or not context._asked):
            return value  # type: ignore[no-any-return]  # text or bytes, and nothing that is derived from them
        if not isinstance(value, TEXT) and inspect.isawaitable(value):
            value = _await(value, job, loop)
        return Attempt(True, value=value, wrote=context is not None and context._asked)
    except QuotaExhausted as stop:
        return Attempt(False, "quota", str(stop), retry_after=wait_of(stop.retry_after))
    except _TimeIsUp:
        return Attempt(False, "timeout", f"No end after {job.timeout:g} s")
    except BaseException as error:  # noqa: BLE001  # whatever a recipe raises is its failure, not ours
        if _is_stop(error):
            return Attempt(False, "cancelled", "Cancelled")
        return _raised(function)


def _is_stop(error: BaseException) -> bool:
    """Whether it ended because it was told to, and not by itself: also one of many tasks of a group."""
    if isinstance(error, BaseExceptionGroup):
        return any(map(_is_stop, error.exceptions))
    return isinstance(error, Stopped) or type(error).__name__ == "CancelledError"


class _TimeIsUp(Exception):
    """The artifact's own timeout, told apart from any that the function raises."""


def _call_in_time(function: Callable[..., Any], given: dict[str, Any], job: Job) -> Any:
    ended: queue.SimpleQueue[tuple[Any, BaseException | None]] = queue.SimpleQueue()
    heard = threading.Event()

    def call() -> None:
        with suppress(SystemExit):  # by which it is ended
            try:
                ended.put((function(**given), None))
            except BaseException as error:  # noqa: BLE001  # raised again in the thread that waits
                ended.put((None, error))
            heard.wait()  # a thread that is to be ended is still this one, and no other that was given its number

    run = copy_context().run  # what it prints there is still what it prints
    thread = threading.Thread(target=run, args=(call,), name=f"headway-{job.spec.id}", daemon=True)
    thread.start()
    try:
        value, error = _in_time(ended, job.timeout or 0.0)
    except queue.Empty:
        end_thread(thread)
        raise _TimeIsUp from None
    except BaseException:  # nobody waits for it any more
        end_thread(thread)
        raise
    finally:
        heard.set()
    if error is not None:
        raise error
    return value


def _in_time(ended: queue.SimpleQueue[Any], seconds: float) -> Any:
    """What there is within that time; whoever waits can be told in between to wait no more."""
    end = time.monotonic() + seconds
    while True:
        left = end - time.monotonic()
        try:
            return ended.get(timeout=max(min(left, SLICE), 0))
        except queue.Empty:
            if left <= SLICE:
                raise


def end_thread(thread: threading.Thread) -> None:
    """Have a thread end at its next step; while it waits for something outside of Python, it takes none."""
    import ctypes  # for those who run out of time

    if thread.ident is not None:
        ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(thread.ident), ctypes.py_object(SystemExit))


def _raised(function: Callable[..., Any]) -> Attempt:
    kind, error, trace = sys.exc_info()
    frames = traceback.extract_tb(trace)
    own = [f for f in frames if f.filename == getattr(getattr(function, "__code__", None), "co_filename", "")]
    where = f" (line {own[-1].lineno} of {os.path.basename(own[-1].filename)})" if own else ""
    if kind is TypeError and all(frame.filename == __file__ for frame in frames):  # it was never entered
        where = CALLED
    text = "".join(traceback.format_exception(kind, error, trace))
    name = kind.__name__ if kind else "error"
    message = f"{name}: {_cut(words_of(error))}{where}".encode("utf-8", "backslashreplace").decode()
    return Attempt(False, "function_failed", message, stderr=text.encode("utf-8", "replace"))


def _cut(text: str) -> str:
    """What an error says, as far as anybody reads it; the attempt's stderr has all of it."""
    return text if len(text) <= LONGEST_ERROR else f"{text[:LONGEST_ERROR]}…"


def _copied(value: Any) -> Any:
    """A value of the plan for somebody who may change it: the plan stays what it is."""
    if isinstance(value, dict):
        return {name: _copied(one) for name, one in value.items()}
    return [_copied(one) for one in value] if isinstance(value, list) else value


@lru_cache(maxsize=1024)
def _wants_context(function: Callable[..., Any]) -> bool:
    try:
        return "ctx" in inspect.signature(function).parameters
    except (TypeError, ValueError):
        return False


def _await(value: Any, job: Job, loop: asyncio.AbstractEventLoop | None) -> Any:
    import asyncio

    async def wait() -> Any:
        try:
            async with asyncio.timeout(job.timeout) as limit:
                return await value
        except TimeoutError:
            if limit.expired():
                raise _TimeIsUp from None
            raise

    async def watch() -> Any:
        task = asyncio.ensure_future(wait())
        while not task.done():
            await asyncio.wait([task], timeout=0.1)
            if job.around.cancelled():
                task.cancel()
        return task.result()

    if loop is None:
        return asyncio.run(watch())
    future: Future[Any] = asyncio.run_coroutine_threadsafe(wait(), loop)
    while True:
        try:
            return future.result(0.1)
        except TimeoutError:
            if future.done():
                raise
            if job.around.cancelled():
                future.cancel()


def written(value: Any, job: Job) -> dict[str, bytes | Path]:
    """What a function returned, by output path: "" for the text of an artifact without files. Nothing for None."""
    if value is None:
        return {}
    names = job.spec.outputs
    paths = tuple(names.values()) if names else job.spec.produces
    if (
        not isinstance(value, TEXT)
        and isinstance(value, Mapping)
        and (len(paths) > 1 or (names and value.keys() <= names.keys()))
    ):
        named = {names.get(str(key)) or _path_for(str(key), paths): item for key, item in value.items()}
        if all(named) and len(named) == len(value):
            return {path: _bytes(item) for path, item in named.items()}
        raise ValueError(f"it returned {', '.join(map(str, value))}; its outputs are {', '.join(paths)}")
    if paths and paths[0].endswith("/") and not isinstance(value, os.PathLike):
        raise ValueError("its output is a folder: it writes into ctx.output, or returns the path of one")
    if len(paths) > 1:
        raise ValueError(f"it has {len(paths)} outputs, so it returns one value for each: {{path: value}}")
    return {paths[0] if paths else "": _bytes(value)}


def _path_for(key: str, paths: tuple[str, ...]) -> str:
    """The output that a key names: by path, by file name, or by name without ending."""
    for named in (paths, map(os.path.basename, paths), (os.path.splitext(os.path.basename(p))[0] for p in paths)):
        matches = [p for p, name in zip(paths, named, strict=True) if name.rstrip("/") == key.rstrip("/")]
        if len(matches) == 1:
            return matches[0]
    return ""


def _bytes(value: Any) -> bytes | Path:
    if isinstance(value, str):
        return value.encode()
    if isinstance(value, (bytes, bytearray, memoryview)):
        return bytes(value)
    if isinstance(value, os.PathLike):
        return Path(value)
    if hasattr(value, "model_dump_json"):
        text = str(value.model_dump_json(indent=2))
        if "null" in text:
            all_told(value.model_dump(mode="json"))
        return text.encode() + b"\n"
    return msgspec.json.format(as_json(value), indent=2) + b"\n"
