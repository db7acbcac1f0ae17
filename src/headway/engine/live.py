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
import types
from typing import Any

from headway.core.fingerprint import NotEncodable, digest
from headway.engine.code import Code, digest_of, is_defined_once, names_used, registers
from headway.errors import UsageError

DEPTH = 40


def of_function(code: Code, function: Any) -> str:
    """The digest of a function object."""
    walk = _Walk(code)
    plain = inspect.unwrap(function)
    found = walk.in_file(plain)
    return found or digest_of(walk.of(plain, 0))


class _Walk:
    """One way through objects that use each other: each is told once, so that circles end."""

    def __init__(self, code: Code) -> None:
        self.code = code
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
        return found if once else digest_of(f"{found}\n{self.of_code(function, 0)}")

    def of(self, value: Any, depth: int) -> str:
        """What stands for a value: the same in every process while nothing of it changes."""
        known = self.seen.get(id(value))
        if known is not None:
            return f"again {known[0]}"
        if depth > DEPTH:
            return f"a {type(value).__qualname__}"
        if isinstance(value, types.ModuleType):
            path = _file_of(value)
            return self.code.of_module(path) if self.code.owns(path) else f"module {value.__name__}"
        if inspect.isfunction(value):
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

    def _once(self, value: Any, depth: int, tell: Any) -> str:
        if not isinstance(value, (str, bytes, int, float, type(None))):
            self.seen[id(value)] = (len(self.seen), value)
        return str(tell(value, depth))

    def _of_value(self, value: Any, depth: int) -> str:
        own = not isinstance(value, (list, tuple, dict)) and self._is_own(type(value))
        kind = self.of(type(value), depth + 1) if own else type(value).__qualname__
        try:
            return f"{kind} {digest(value)}"
        except (NotEncodable, RecursionError):
            pass
        if isinstance(value, (list, tuple)):
            return f"{kind} {[self.of(item, depth + 1) for item in value]}"
        if isinstance(value, dict) or own:
            pairs = value.items() if isinstance(value, dict) else getattr(value, "__dict__", {}).items()
            return f"{kind} {[(self.of(k, depth + 1), self.of(v, depth + 1)) for k, v in pairs]}"
        return kind

    def _is_own(self, kind: type) -> bool:
        module = sys.modules.get(kind.__module__)
        return module is not None and (kind.__module__ == "__main__" or self.code.owns(_file_of(module)))

    def _of_class(self, kind: type, depth: int) -> str:
        name = f"{kind.__module__}.{kind.__qualname__}"
        if not self._is_own(kind):
            return f"class {name}"
        path = _file_of(sys.modules[kind.__module__])
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
        if function.__name__ != "<lambda>":
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
