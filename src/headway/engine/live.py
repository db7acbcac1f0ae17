"""The code behind a function object: through its project file where that tells, else from the object itself.

Lambdas, closures, methods of instances, partials and functions of a notebook have no name to ask a file for. They count
by their source or their compiled code, and by whatever they use: the project's own functions, classes and modules by
their files, everything else by its value.
"""

from __future__ import annotations

import ast
import dis
import functools
import inspect
import os
import sys
import textwrap
import time
import types
from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any

from headway.core.fingerprint import MAIN, RUN_AS, NotEncodable, digest
from headway.engine.code import Code, digest_of, is_defined_once, names_used, registers
from headway.errors import UsageError

DEPTH = 40


def of_function(code: Code, function: Any) -> str:
    """The digest of a function object."""
    return _digest(_Walk(code), function)


def as_once_named(code: Code, function: Any) -> tuple[str, str]:
    """The same as it once was, when the file of a plan that Headway ran had a name of its own.

    And that file, if objects of it counted by their names alone: once it was touched, nobody knows what they were.
    """
    walk = _Walk(code, ran_as=RUN_AS)
    found = _digest(walk, function)
    return found, walk.ran if walk.blind else ""


def _digest(walk: _Walk, function: Any) -> str:
    plain = inspect.unwrap(function)
    return walk.in_file(plain) or digest_of(walk.of(plain, 0))


class _Walk:
    """One way through objects that use each other: each is told once, so that circles end."""

    def __init__(self, code: Code, ran_as: str = MAIN) -> None:
        self.code = code
        self.ran_as = ran_as
        self.ran = ""
        self.blind = False
        self.seen: dict[int, tuple[int, Any]] = {}

    def in_file(self, function: Any) -> str:
        """The digest of a function by its project file; "" if that does not tell which function it is."""
        if not inspect.isfunction(function) or function.__closure__ or "<" in function.__qualname__:
            return ""
        path = os.path.realpath(function.__code__.co_filename)
        if not self.code.owns(path):
            return ""
        try:
            found = self.code.of_name(path, function.__qualname__)
            once = is_defined_once(path, function.__qualname__)
        except (UsageError, OSError):
            return ""
        reached = self.code.reached.get((path, function.__qualname__.split(".", maxsplit=1)[0]), {path})
        if not all(self._is_loaded(file, function.__globals__ if file == path else None) for file in reached):
            return ""
        return found if once else digest_of(f"{found}\n{self.of_code(function, 0)}")

    def _is_loaded(self, path: str, scope: dict[str, Any] | None) -> bool:
        """Whether the functions and plain constants that were loaded from a file are those that it holds now."""
        if not was_touched(path):
            return True
        if path not in self.code.loaded:
            self.code.loaded[path] = self._compare(path, scope)
        return self.code.loaded[path]

    @staticmethod
    def _compare(path: str, scope: dict[str, Any] | None) -> bool:
        if scope is None:
            modules = (getattr(m, "__dict__", {}) for m in list(sys.modules.values()))
            scope = next((names for names in modules if names.get("__file__") == path), {})
        own = [code for code in _codes_in(scope) if os.path.realpath(code.co_filename) == path]
        constants = _constants(path, *_times(path))
        same = all(name not in scope or repr(scope[name]) == value for name, value in constants.items())
        return same and {plain_code(code) for code in own} <= _compiled(path, *_times(path))

    def of(self, value: Any, depth: int) -> str:
        """What stands for a value: the same in every process while nothing of it changes."""
        known = self.seen.get(id(value))
        if known is not None:
            return f"again {known[0]}"
        if depth > DEPTH:
            return f"a {type(value).__qualname__}"
        if isinstance(value, types.ModuleType):
            path = _file_of(value)
            return self._of_module(value, path, depth) if self.code.owns(path) else f"module {value.__name__}"
        if inspect.isfunction(value):
            self._note(value)
            return self.in_file(value) or self._once(value, depth, self.of_code)
        if isinstance(value, type):
            return self._once(value, depth, self._of_class)
        if inspect.ismethod(value):
            return f"{self.of(value.__func__, depth + 1)} of {self.of(value.__self__, depth + 1)}"
        if isinstance(value, functools.partial):
            parts = (value.func, list(value.args), value.keywords)
            return f"partial {[self.of(part, depth + 1) for part in parts]}"
        if inspect.isbuiltin(value):
            return f"builtin {value.__module__}.{value.__qualname__}"
        return self._once(value, depth, self._of_value)

    def _of_module(self, module: types.ModuleType, path: str, depth: int) -> str:
        """A module by its file; by what was loaded of it, if the file holds something else by now."""
        found = self.code.of_module(path)
        if all(self._is_loaded(file, None) for file in self.code.reached.get((path, "*"), {path})):
            return found
        return self._once(module, depth, self._of_loaded)

    def _of_loaded(self, module: types.ModuleType, depth: int) -> str:
        names = sorted(name for name in vars(module) if not name.startswith("__"))
        return f"module {module.__name__} {[(name, self.of(vars(module)[name], depth + 1)) for name in names]}"

    def _once(self, value: Any, depth: int, tell: Any) -> str:
        if not isinstance(value, (str, bytes, int, float, type(None))):
            self.seen[id(value)] = (len(self.seen), value)
        return str(tell(value, depth))

    def _of_value(self, value: Any, depth: int) -> str:
        own = not isinstance(value, (list, tuple, dict)) and self._is_own(type(value))
        kind = self.of(type(value), depth + 1) if own else type(value).__qualname__
        try:
            return f"{kind} {digest(value, ran_as=self.ran_as)}"
        except (NotEncodable, RecursionError):
            pass
        if isinstance(value, (list, tuple)):
            return f"{kind} {[self.of(item, depth + 1) for item in value]}"
        if isinstance(value, dict) or own:
            pairs = value.items() if isinstance(value, dict) else getattr(value, "__dict__", {}).items()
            return f"{kind} {[(self.of(k, depth + 1), self.of(v, depth + 1)) for k, v in pairs]}"
        return kind

    def _is_own(self, kind: type) -> bool:
        if kind.__module__ == self.ran_as == RUN_AS:
            self.blind = True
            return False
        return kind.__module__ in (MAIN, RUN_AS) or self.code.owns(self._home(kind))

    def _home(self, kind: type) -> str:
        """The file of a class; one that was only run is no module any more, so its functions have to tell."""
        module = sys.modules.get(kind.__module__)
        if module is not None:
            return _file_of(module)
        for item in vars(kind).values():
            self._note(item)
        return self.ran

    def _note(self, function: Any) -> None:
        """Remember the file of a plan that Headway ran."""
        scope = getattr(function, "__globals__", {})
        if scope.get("__name__") == RUN_AS:
            self.ran = os.path.realpath(scope.get("__file__", ""))

    def _of_class(self, kind: type, depth: int) -> str:
        name = f"{kind.__module__}.{kind.__qualname__}"
        if not self._is_own(kind):
            return f"class {name}"
        path = self._home(kind)
        if self.code.owns(path) and "<" not in kind.__qualname__:
            try:
                return self.code.of_name(path, kind.__qualname__)
            except UsageError:
                pass
        parts = [self.of(base, depth + 1) for base in kind.__bases__]
        for key, item in vars(kind).items():
            item = getattr(item, "__func__", item)
            if inspect.isfunction(item) or not key.startswith("__"):
                parts.append(f"{key}={self.of(item, depth + 1)}")
        return f"class {kind.__qualname__} {parts}"

    def of_code(self, function: types.FunctionType, depth: int) -> str:
        """A function by its source, or compiled where that does not stand alone, and by all that it uses."""
        code = function.__code__
        names = _names(code)
        text = plain_code(code)
        file = os.path.realpath(code.co_filename)
        outdated = os.path.isfile(file) and was_touched(file) and text not in _compiled(file, *_times(file))
        if function.__name__ != "<lambda>" and not outdated:
            try:
                tree = ast.parse(textwrap.dedent(inspect.getsource(function)))
                for node in tree.body:
                    if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
                        node.decorator_list = [d for d in node.decorator_list if not registers(d)]
                text = ast.dump(tree)
                names |= {name for name, _ in names_used(tree)}
            except (OSError, TypeError, SyntaxError):
                pass
        parts = [text]
        for name, cell in zip(code.co_freevars, function.__closure__ or (), strict=True):
            try:
                parts.append(f"{name}={self.of(cell.cell_contents, depth + 1)}")
            except ValueError:
                continue  # not bound yet
        scope = function.__globals__
        found = [name for name in sorted(names - set(code.co_freevars)) if scope.get(name) is not None]
        parts += [f"{name}={self.of(scope[name], depth + 1)}" for name in found]
        if function.__defaults__ or function.__kwdefaults__:
            parts.append(self.of([function.__defaults__, function.__kwdefaults__], depth + 1))
        return "\n".join(parts)


def _times(path: str) -> tuple[int, int, int]:
    found = os.stat(path)
    return found.st_mtime_ns, found.st_ctime_ns, found.st_size


def was_touched(path: str, since: float | None = None) -> bool:
    """Whether a file may have changed since then; or since this process began, and so since it was loaded."""
    try:
        return max(_times(path)[:2]) / 1e9 > (_began() - 2 if since is None else since)
    except OSError:
        return True


@functools.cache
def _began() -> float:
    """When this process began; 0 where the system does not tell."""
    try:
        with open("/proc/self/stat", "rb") as file:
            ticks = int(file.read().rpartition(b")")[2].split()[19])
        return time.time() - time.clock_gettime(time.CLOCK_BOOTTIME) + ticks / os.sysconf("SC_CLK_TCK")
    except (OSError, ValueError, IndexError, AttributeError):
        return 0.0


@functools.lru_cache(maxsize=256)
def _compiled(path: str, *_times: int) -> frozenset[str]:
    """All functions of a file as it is now, compiled."""
    try:
        with open(path, "rb") as file:
            waiting = [compile(file.read(), path, "exec", dont_inherit=True)]
    except (OSError, SyntaxError, ValueError):
        return frozenset()
    found = set()
    while waiting:
        code = waiting.pop()
        found.add(plain_code(code))
        waiting += [const for const in code.co_consts if isinstance(const, types.CodeType)]
    return frozenset(found)


def _codes_in(scope: Mapping[str, Any]) -> Iterator[types.CodeType]:
    """The functions of a module, and of the classes that it defines, compiled as they were loaded."""
    waiting = list(scope.values())
    for value in waiting:
        if isinstance(value, type) and value.__module__ == scope.get("__name__"):
            waiting += [item for item in vars(value).values() if item is not value]
        if isinstance(value, (staticmethod, classmethod)):
            value = value.__func__
        elif isinstance(value, property):
            value = value.fget
        if inspect.isfunction(value) and inspect.isfunction(plain := inspect.unwrap(value)):
            yield plain.__code__


@functools.lru_cache(maxsize=256)
def _constants(path: str, *_times: int) -> dict[str, str]:
    """Names that a file as it is now gives a plain value, once and for all."""
    try:
        with open(path, "rb") as file:
            tree = ast.parse(file.read())
    except (OSError, SyntaxError, ValueError):
        return {}
    stored = Counter(n.id for n in ast.walk(tree) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store))
    found = {}
    for node in tree.body:
        target = node.targets[0] if isinstance(node, ast.Assign) else getattr(node, "target", None)
        value = getattr(node, "value", None)
        if isinstance(target, ast.Name) and isinstance(value, ast.Constant) and stored[target.id] == 1:
            found[target.id] = repr(value.value)
    return found


def _file_of(module: types.ModuleType) -> str:
    file = getattr(module, "__file__", None)
    return os.path.realpath(file) if isinstance(file, str) else ""


def _names(code: types.CodeType) -> set[str]:
    """Names that compiled code looks up in its module."""
    found = {str(step.argval) for step in dis.get_instructions(code) if step.opname in ("LOAD_GLOBAL", "LOAD_NAME")}
    for const in code.co_consts:
        if isinstance(const, types.CodeType):
            found |= _names(const)
    return found


def plain_code(value: Any) -> str:
    """Compiled code, or a constant of it, without lines and addresses: the same in every process."""
    if isinstance(value, types.CodeType):
        reads = "attr='vars'" if "vars" in value.co_names else ""
        head = (value.co_code, value.co_exceptiontable, value.co_names, value.co_varnames, value.co_freevars)
        counts = (value.co_argcount, value.co_posonlyargcount, value.co_kwonlyargcount, value.co_flags)
        return f"code {head} {counts} {[plain_code(const) for const in value.co_consts]} {reads}"
    if isinstance(value, tuple):
        return f"({', '.join(map(plain_code, value))})"
    if isinstance(value, frozenset):
        return f"{{{', '.join(sorted(map(plain_code, value)))}}}"
    return repr(value)
