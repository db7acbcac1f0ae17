"""The code behind a function, as a digest that formatting and comments do not change.

Follows the project's own functions, classes and constants, by reading files; imports nothing and runs nothing. What
cannot be followed counts by its whole module. Code from outside the project does not count.
"""

from __future__ import annotations

import ast
import hashlib
import os
import re
from collections.abc import Callable, Mapping
from typing import Any

from headway.core.plan import ArtifactSpec
from headway.errors import UsageError

READS_VARS = "+vars"


class Module:
    """One project file: its top-level names, and the statements that bind them."""

    def __init__(self, path: str, source: bytes) -> None:
        self.path = path
        self.tree = ast.parse(source, filename=path)
        self.names: dict[str, list[ast.stmt]] = {}
        self.imports: dict[str, tuple[str, str]] = {}
        self.stars: list[str] = []
        self._read(self.tree.body)
        self._read_inner_imports()

    def _read(self, body: list[ast.stmt]) -> None:
        for node in body:
            if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
                node.decorator_list = [d for d in node.decorator_list if not _registers(d)]
                self.names.setdefault(node.name, []).append(node)
            elif not isinstance(node, (ast.Import, ast.ImportFrom)):
                for name in _bound(node):
                    self.names.setdefault(name, []).append(node)

    def _read_inner_imports(self) -> None:
        """Imports wherever they stand: at the top, under a condition, or inside a function."""
        for node in ast.walk(self.tree):
            if isinstance(node, ast.ImportFrom):
                self._read_from(node)
            elif isinstance(node, ast.Import):
                for alias in node.names:
                    whole = alias.name if alias.asname else alias.name.split(".")[0]
                    self.imports.setdefault(alias.asname or whole, (whole, ""))

    def _read_from(self, node: ast.ImportFrom) -> None:
        module = "." * node.level + (node.module or "")
        for alias in node.names:
            if alias.name == "*":
                self.stars.append(module)
            else:
                self.imports.setdefault(alias.asname or alias.name, (module, alias.name))


class Code:
    """Digests of the code of functions in one project, each file read once."""

    def __init__(self, root: str) -> None:
        self.root = os.path.realpath(root)
        self.files: dict[str, str] = {}
        self.absent: set[str] = set()
        self._modules: dict[str, Module | None] = {}
        self._digests: dict[tuple[str, str], str] = {}
        self._references: dict[str, str] = {}

    def of_reference(self, reference: str) -> str:
        """The digest of `module:function` or `path/file.py:function`."""
        if reference not in self._references:
            module, _, name = reference.partition(":")
            path = self.find(module)
            if path is None:
                raise _unfound(reference, "there is no such module in the project")
            self._references[reference] = self.of_name(path, name)
        return self._references[reference]

    def of_name(self, path: str, qualname: str) -> str:
        """The digest of a name in a file and of all that it uses."""
        key = (path, qualname)
        if key not in self._digests:
            module = self._module(path)
            first = qualname.split(".", maxsplit=1)[0]
            if module is None or (first not in module.names and first not in module.imports):
                raise _unfound(f"{os.path.basename(path)}:{qualname}", "the file does not define it")
            self._digests[key] = self._closure(path, first)
        return self._digests[key]

    def find(self, module: str, relative_to: str = "") -> str | None:
        """The project file of a module, or None if it is not the project's."""
        if module.endswith(".py"):
            path = os.path.join(self.root, module)
            return path if os.path.isfile(path) else None
        level = len(module) - len(module.lstrip("."))
        base = self.root
        if level:
            base = os.path.dirname(relative_to)
            for _ in range(level - 1):
                base = os.path.dirname(base)
        parts = [p for p in module.lstrip(".").split(".") if p]
        folders = [base] if level else [self.root, os.path.join(self.root, "src"), os.path.dirname(relative_to)]
        for folder in folders:
            stem = os.path.join(folder, *parts)
            for path in (f"{stem}.py", os.path.join(stem, "__init__.py")):
                if parts and os.path.isfile(path) and os.path.realpath(path).startswith(self.root + os.sep):
                    return path
                self.absent.add(os.path.relpath(path, self.root))
        return None

    def _closure(self, path: str, name: str) -> str:
        """All statements that a name leads to, in a fixed order, hashed."""
        seen: set[tuple[str, str]] = set()
        queue = [(path, name)]
        pieces: list[str] = []
        for where, what in queue:
            if (where, what) in seen:
                continue
            seen.add((where, what))
            module = self._module(where)
            if module is None:
                continue
            if what == "*":
                pieces.append(f"*:{ast.dump(module.tree)}")
                used = _used(module.tree)
            else:
                nodes = module.names.get(what, [])
                pieces += [f"{what}:{ast.dump(node)}" for node in nodes]
                used = {n for node in nodes for n in _used(node)}
                used |= {(what, "")} if not nodes else set()
            queue += self._lead_on(where, module, used)
        return _digest("\n".join(sorted(pieces)))

    def _lead_on(self, where: str, module: Module, used: set[tuple[str, str]]) -> list[tuple[str, str]]:
        """Where the names that a piece of code uses are defined, as far as that is in the project."""
        found: list[tuple[str, str]] = []
        for name, attribute in sorted(used):
            if name in module.names:
                found.append((where, name))
            elif name in module.imports:
                found += self._imported(where, *module.imports[name], attribute)
            else:
                for star in module.stars:
                    target = self.find(star, where)
                    if target:
                        found.append((target, "*"))
        return found

    def _imported(self, where: str, source: str, name: str, attribute: str) -> list[tuple[str, str]]:
        if name:
            target = self.find(source, where)
            if target is not None:
                known = self._module(target)
                if known is not None and (name in known.names or name in known.imports):
                    return [(target, name)]
            inner = self.find(f"{source}.{name}" if source.strip(".") else f"{source}{name}", where)
            if inner is not None:
                return [(inner, attribute or "*")]
            return [(target, "*")] if target else []
        inner = self.find(f"{source}.{attribute}", where) if attribute else None
        if inner is not None:
            return [(inner, "*")]
        target = self.find(source, where)
        if target is None:
            return []
        known = self._module(target)
        return [(target, attribute if attribute and known and attribute in known.names else "*")]

    def _module(self, path: str) -> Module | None:
        if path not in self._modules:
            self._modules[path] = None
            try:
                with open(path, "rb") as file:
                    data = file.read()
                self.files[path] = hashlib.sha256(data).hexdigest()
                self._modules[path] = Module(path, data)
            except (OSError, SyntaxError, ValueError):
                self.files.setdefault(path, "")
        return self._modules[path]


def _registers(decorator: ast.expr) -> bool:
    """`@plan.artifact(…)` says what the artifact is; that is its spec, and not the code that makes it."""
    target = decorator.func if isinstance(decorator, ast.Call) else decorator
    return isinstance(target, ast.Attribute) and target.attr == "artifact"


def _used(node: ast.AST) -> set[tuple[str, str]]:
    """Names that a piece of code uses, with the attribute that is taken of each, if only one is."""
    found: set[tuple[str, str]] = set()
    taken: set[int] = set()
    for inner in ast.walk(node):
        if isinstance(inner, ast.Attribute) and isinstance(inner.value, ast.Name):
            found.add((inner.value.id, inner.attr))
            taken.add(id(inner.value))
        elif isinstance(inner, (ast.Import, ast.ImportFrom)):
            found |= _inner_imports(inner)
    found |= {(n.id, "") for n in ast.walk(node) if isinstance(n, ast.Name) and id(n) not in taken}
    return found


def _inner_imports(node: ast.Import | ast.ImportFrom) -> set[tuple[str, str]]:
    return {(alias.asname or alias.name.split(".")[0], "") for alias in node.names}


def _bound(node: ast.stmt) -> list[str]:
    """Names that a statement binds at the top of a module."""
    return [n.id for n in ast.walk(node) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)] + [
        n.name for n in ast.walk(node) if isinstance(n, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef))
    ]


def of_live(function: Any, depth: int = 0) -> str:
    """The digest of a function that has no project file: of a notebook or a prompt. Its source, and what it uses."""
    import inspect
    import textwrap

    from headway.core.fingerprint import NotEncodable, digest

    try:
        tree: Any = ast.parse(textwrap.dedent(inspect.getsource(function)))
        for node in tree.body:
            if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
                node.decorator_list = [d for d in node.decorator_list if not _registers(d)]
        text, used = ast.dump(tree), _used(tree)
    except (OSError, TypeError, SyntaxError):
        code = getattr(function, "__code__", None)
        text, used = repr((code.co_code, code.co_consts, code.co_names)) if code else repr(function), set()
    parts = [text]
    scope = dict(getattr(function, "__globals__", {}))
    closure = inspect.getclosurevars(function).nonlocals if hasattr(function, "__code__") else {}
    for name in sorted({name for name, _ in used}):
        value = closure.get(name, scope.get(name))
        if value is function or value is None:
            continue
        if inspect.isfunction(value) or inspect.isclass(value):
            if getattr(value, "__module__", "") == getattr(function, "__module__", "") and depth < 20:
                parts.append(f"{name}={of_live(value, depth + 1)}")
        elif not inspect.ismodule(value):
            try:
                parts.append(f"{name}={digest(value)}")
            except NotEncodable:
                parts.append(f"{name}:{type(value).__qualname__}")
    return _digest("\n".join(parts))


def _digest(text: str) -> str:
    """The digest of code; its ending tells whether the code reads the plan's variables."""
    found = hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:32]
    return found + READS_VARS if "attr='vars'" in text else found


def _unfound(reference: str, why: str) -> UsageError:
    return UsageError(
        f"The function {reference} cannot be found",
        facts={"reason": why},
        hint="make: is module:function or path/file.py:function, below the project's root or its src folder",
        code="recipe.function",
    )


def of_function(code: Code, function: Any) -> str:
    """The digest of a function object: through its project file where it has one, else from the object itself."""
    import inspect

    plain = inspect.unwrap(function)
    file = getattr(getattr(plain, "__code__", None), "co_filename", "")
    real = os.path.realpath(file) if file else ""
    name = getattr(plain, "__qualname__", "")
    if real.startswith(code.root + os.sep) and os.path.isfile(real) and "<" not in name and not plain.__closure__:
        try:
            found = code.of_name(real, name)
            return found if is_defined_once(real, name) else _digest(f"{found}\n{of_live(plain)}")
        except UsageError:
            pass
    return of_live(plain)


def is_defined_once(path: str, qualname: str) -> bool:
    """Whether a file leaves no doubt which function a name stands for: no conditions, no second definition."""
    if "." in qualname:
        return True
    with open(path, "rb") as file:
        found = re.findall(rb"^(?:async +)?def +%s\b" % qualname.encode(), file.read(), re.MULTILINE)
    return len(found) == 1


def function_of(functions: Mapping[str, Callable[..., Any]], spec: ArtifactSpec) -> Callable[..., Any] | None:
    """The function that a program has for an artifact: its own, or that of its pipeline's phase."""
    found = functions.get(spec.id)
    return found if found is not None or not spec.phase else functions.get(f"{spec.pipeline}:{spec.phase}")
