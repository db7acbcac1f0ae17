"""The code behind a function object: through its project file where that tells, else from the object itself.

Lambdas, closures, methods of instances, partials and functions of a notebook have no name to ask a file for. They count
by their source or their compiled code, and by whatever they use: the project's own functions, classes and modules by
their files, everything else by its value.
"""

from __future__ import annotations

import ast
import functools
import inspect
import os
import sys
import textwrap
import types
from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any

from headway.core.fingerprint import MAIN, RUN_AS, NotEncodable, digest
from headway.engine.code import Code, called_at_the_top, changed_in, digest_of, is_defined_once, looked_up, registers
from headway.engine.loaded import Note, confirm, forget_compiled, notes, times_of, was_touched
from headway.errors import UsageError

DEPTH = 40


def of_function(code: Code, function: Any) -> str:
    """The digest of a function object."""
    return _digest(_Walk(code), function)


def as_once_named(code: Code, function: Any) -> tuple[str, str]:
    """The same as it once was, when the file of a plan that Headway ran had a name of its own.

    And that file, if objects of it counted by their names alone: once it was touched, nobody knows what they were.
    """
    walk = _Walk(code.formerly, ran_as=RUN_AS)
    found = _digest(walk, function)
    return found, walk.ran if walk.blind else ""


def is_loaded(code: Code, path: str, name: str) -> bool:
    """Whether what this process has loaded, as of now, is what the digest of a name was taken of."""
    walk = _Walk(code)
    outdated = [file for file in code.reached.get((path, name), {path}) if not walk.holds(file)]
    code.outdated.update(outdated)
    return not outdated


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
        self.loadings: dict[str, list[Note]] | None = None

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
        is_there = self._are_loaded(path, function.__qualname__.split(".", maxsplit=1)[0], function)
        if not is_there or not _is_newest(function, path):
            return ""
        return found if once else digest_of(f"{found}\n{self.of_code(function, 0)}")

    def _are_loaded(self, path: str, name: str, function: Any = None) -> bool:
        """Whether all files that the code of a name was found in hold what was loaded from them."""
        reached = self.code.reached.get((path, name), {path})
        scope = function.__globals__ if function is not None else None
        return all(self._is_loaded(file, scope if file == path else None) for file in reached)

    def _is_loaded(self, path: str, scope: dict[str, Any] | None) -> bool:
        """Whether what was loaded from a file is what was read of it."""
        known = self.code.loaded.get(path)
        if known is None:
            known = self.code.loaded[path] = self.holds(path, scope)
            if not known:
                self.code.outdated.add(path)
        return known

    def holds(self, path: str, scope: dict[str, Any] | None = None) -> bool:
        """The same, looked at anew."""
        if self.loadings is None:
            self.loadings = notes(self.code.root)
        found, text = self.loadings.get(os.path.realpath(path), []), self.code.files.get(path, "")
        if found:
            return all(note.digest == text and (note.sure or _is_confirmed(note)) for note in found)
        return scope is None or not was_touched(path) or _compare(path, scope)

    def of(self, value: Any, depth: int) -> str:
        """What stands for a value: the same in every process while nothing of it changes."""
        known = self.seen.get(id(value))
        if known is not None:
            return f"again {known[0]}"
        if depth > DEPTH:
            return f"a {type(value).__qualname__}"
        if isinstance(value, types.ModuleType):
            return self._of_module(value)
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

    def _of_global(self, value: Any, taken: set[str], depth: int) -> str:
        """What a function finds in its module: of another module, only what it takes of it, where that can be told."""
        path = _file_of(value) if isinstance(value, types.ModuleType) and not self.code.former else ""
        if not path or not self.code.owns(path) or not all(self.code.defines(path, name) for name in taken):
            return self.of(value, depth)
        found = {name: self.code.of_name(path, name) for name in sorted(taken)}
        return str(found) if all(self._are_loaded(path, name) for name in taken) else self._of_module(value)

    def _of_module(self, module: types.ModuleType) -> str:
        """A module by its file; if that was edited since, by the functions and constants that were loaded from it."""
        path = _file_of(module)
        if not self.code.owns(path):
            return f"module {module.__name__}"
        found = self.code.of_module(path)
        if self._are_loaded(path, "*"):
            return found
        reached = sorted(self.code.reached[path, "*"])
        return f"module {module.__name__} as it was loaded: {[_in_memory(file) for file in reached]}"

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
                found = self.code.of_name(path, kind.__qualname__)
                if self._are_loaded(path, kind.__qualname__.split(".", maxsplit=1)[0]):
                    return found
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
        used = looked_up(code)
        text = plain_code(code)
        file = os.path.realpath(code.co_filename)
        outdated = os.path.isfile(file) and was_touched(file) and text not in _compiled(file, *times_of(file))
        if function.__name__ != "<lambda>" and not outdated:
            try:
                tree = ast.parse(textwrap.dedent(inspect.getsource(function)))
                for node in tree.body:
                    if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
                        node.decorator_list = [d for d in node.decorator_list if not registers(d)]
                text = ast.dump(tree)
                used |= self.code.names_in(tree)
            except (OSError, TypeError, SyntaxError):
                pass
        parts = [text]
        for name, cell in zip(code.co_freevars, function.__closure__ or (), strict=True):
            try:
                parts.append(f"{name}={self.of(cell.cell_contents, depth + 1)}")
            except ValueError:
                continue  # not bound yet
        scope = function.__globals__
        names = {name for name, _ in used}
        for name in sorted(names - set(code.co_freevars)):
            if scope.get(name) is not None:
                taken = {attribute for of, attribute in used if of == name}
                parts.append(f"{name}={self._of_global(scope[name], taken, depth + 1)}")
        if function.__defaults__ or function.__kwdefaults__:
            parts.append(self.of([function.__defaults__, function.__kwdefaults__], depth + 1))
        return "\n".join(parts)


def _scopes(path: str) -> list[dict[str, Any]]:
    """The modules that a file is loaded as."""
    return [module.__dict__ for module in list(sys.modules.values()) if _file_of(module) == path]


def _names_of(note: Note) -> dict[str, Any]:
    """What a file that was noted is loaded as."""
    return next((scope for scope in _scopes(note.path) if scope.get("__spec__") is note.by), {})


def _is_confirmed(note: Note) -> bool:
    """Whether a file that may have changed between being loaded and being looked at did not."""
    same = _compare(note.path, _names_of(note))
    if same:
        confirm(note)
    else:
        forget_compiled(note.path)  # it may be Python itself that did not see the edit, and would not next time
    return same


def _is_newest(function: types.FunctionType, path: str) -> bool:
    """Whether a function is what its file holds, and was not loaded once more after somebody had got hold of it."""
    found = _found_at(function.__qualname__, function.__globals__)
    return (
        found is function or not was_touched(path) or plain_code(function.__code__) in _compiled(path, *times_of(path))
    )


def _found_at(name: str, scope: Mapping[str, Any]) -> Any:
    """What a dotted name stands for in a module, below its decorators."""
    first, *rest = name.split(".")
    found = scope.get(first)
    for part in rest:
        found = vars(found).get(part) if isinstance(found, type) else None
    if isinstance(found, (staticmethod, classmethod)):
        found = found.__func__
    return inspect.unwrap(found) if inspect.isfunction(found) else found


def _in_memory(path: str) -> list[str]:
    """What was loaded from a file, as far as that can be told: its functions, and values that have a form in text."""
    plain = (str, bytes, int, float, bool, type(None))
    found: set[str] = set()
    for scope in _scopes(path):
        found |= {plain_code(code) for code in _codes_in(scope)}
        found |= {f"{k}={v!r}" for k, v in scope.items() if isinstance(v, plain) and not k.startswith("__")}
    return sorted(found)


def _compare(path: str, scope: Mapping[str, Any]) -> bool:
    """Whether the functions, their defaults, and plain values that were loaded from a file are those it holds now."""
    own = [code for code in _codes_in(scope) if os.path.realpath(code.co_filename) == path]
    if not {plain_code(code) for code in own} <= _compiled(path, *times_of(path)):
        return False
    for name, value in _constants(path, *times_of(path)).items():
        found = _found_at(name.removesuffix("()"), scope)
        if name.endswith("()"):
            found = found.__defaults__ if inspect.isfunction(found) else None
        elif "." in name and not isinstance(found, (str, bytes, int, float, tuple, list, dict)):
            continue  # classes make something of their fields
        if found is not None and repr(found) != value:
            return False
    return True


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
    """Names that a file as it is now gives a plain value, once and for all; also of classes, and defaults as `f()`."""
    try:
        with open(path, "rb") as file:
            tree = ast.parse(file.read())
    except (OSError, SyntaxError, ValueError):
        return {}
    return dict(_plain_values(tree.body, ""))


def _plain_values(body: list[ast.stmt], prefix: str) -> Iterator[tuple[str, str]]:
    stored = Counter(
        n.id for s in body for n in ast.walk(s) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)
    )
    stored.update(name for statement in body for name in (*changed_in(statement), *called_at_the_top(statement)[1]))
    stored.update(s.name for s in body if isinstance(s, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)))
    for node in body:
        if isinstance(node, ast.ClassDef) and stored[node.name] == 1 and not node.decorator_list:
            yield from _plain_values(node.body, f"{prefix}{node.name}.")
        elif isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)) and stored[node.name] == 1:
            if node.args.defaults and all(isinstance(value, ast.Constant) for value in node.args.defaults):
                yield f"{prefix}{node.name}()", repr(tuple(ast.literal_eval(value) for value in node.args.defaults))
        elif isinstance(node, (ast.Assign, ast.AnnAssign)) and node.value is not None:
            target = node.targets[0] if isinstance(node, ast.Assign) else node.target
            if isinstance(target, ast.Name) and stored[target.id] == 1:
                yield from (
                    (f"{prefix}{target.id}", repr(value)) for value in _literal(node.value) if value is not None
                )


def _literal(node: ast.expr) -> list[Any]:
    """The value of an expression that needs no looking up; nothing for one that does, or that begins empty."""
    try:
        value = ast.literal_eval(node)
    except (ValueError, TypeError, SyntaxError, MemoryError, RecursionError):
        return []
    return [] if isinstance(value, (set, list, dict)) and (not value or isinstance(value, set)) else [value]


def _file_of(module: types.ModuleType) -> str:
    file = getattr(module, "__file__", None)
    return os.path.realpath(file) if isinstance(file, str) else ""


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
