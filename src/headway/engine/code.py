"""The code behind a function, as a digest that formatting and comments do not change.

Follows the project's own functions, classes and constants, by reading files; imports nothing and runs nothing. What
cannot be followed counts by its whole module. Code from outside the project does not count.
"""

from __future__ import annotations

import ast
import builtins
import hashlib
import os
import re
from collections.abc import Collection, Iterator, Mapping
from functools import lru_cache
from types import CodeType
from typing import Any

from headway.engine.search_path import Added, SearchPath, added_in, may_add
from headway.errors import UsageError

READS_VARS = "+vars"

ANY_NAME = frozenset({"eval", "exec", "globals"})
"""Who uses one of these may use any name of its module."""

BINDERS = frozenset({"exec", "globals", "locals", "vars"})
"""A module that calls one of these when it is imported may bind any name."""


class Module:
    """One project file: its top-level names, and the statements that bind them."""

    def __init__(self, path: str, source: bytes) -> None:
        self.path = path
        self.tree = ast.parse(source, filename=os.path.basename(path))
        self.names: dict[str, list[ast.stmt]] = {}
        self.effects: dict[str, list[ast.stmt]] = {}
        """Statements that change what a name stands for by calling something."""

        self.unnamed: dict[str, list[ast.stmt]] = {}
        """Statements that bind or change names, too, but not for others: who asks for one gets the whole module."""

        self.binds_any = False
        """Whether it may bind names that nothing in it binds as a name."""

        self.imports: dict[str, list[tuple[str, str]]] = {}
        self.stars: list[str] = []
        self._read(self.tree.body)
        self._read_unnamed(self.tree.body)
        self._read_effects(self.tree.body)
        self._read_inner_imports()
        self.adds = self._read_adds() if may_add(source) else {}
        """What it adds to the folders that modules are looked for in, by the functions that only its start calls."""

    def _read(self, body: list[ast.stmt]) -> None:
        for node in sorted(body, key=_is_start):
            if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
                node.decorator_list = [d for d in node.decorator_list if not registers(d)]
                self.names.setdefault(node.name, []).append(node)
            elif not isinstance(node, (ast.Import, ast.ImportFrom)):
                changed = changed_in(node)
                if _is_start(node):  # what a program does with others' modules when it is started is no code of theirs
                    changed = [name for name in changed if name in self.names]
                for name in dict.fromkeys([*_bound(node), *changed]):
                    self.names.setdefault(name, []).append(node)

    def _read_unnamed(self, body: list[ast.stmt]) -> None:
        """`match` that captures, `E = D` after which E is filled, the file's own docstring, `globals()["X"] = 1`."""
        if ast.get_docstring(self.tree, clean=False) is not None:
            self.unnamed["__doc__"] = [body[0]]
        same: dict[str, set[str]] = {}
        for node in body:
            if isinstance(node, ast.Assign) and isinstance(node.value, ast.Name):
                names = [node.value.id, *(target.id for target in node.targets if isinstance(target, ast.Name))]
                group = set(names).union(*(same.get(name, ()) for name in names))
                same |= dict.fromkeys(group, group)
        for node in body:
            if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
                continue
            self.binds_any = self.binds_any or not BINDERS.isdisjoint(called_at_the_top(node)[0])
            others = {other for name in changed_in(node) for other in same.get(name, ())}
            others = {other for other in others if other in self.names and node not in self.names[other]}
            for name in sorted(others.union(_captured(node))):
                self.unnamed.setdefault(name, []).append(node)

    def _read_effects(self, body: list[ast.stmt]) -> None:
        """Names whose values calls at the top change: `fill(TABLE)`, `@register`, `@generic.register`."""
        functions = {n.name: n for n in body if isinstance(n, (ast.FunctionDef, ast.AsyncFunctionDef))}
        changes = _changes_by(functions)
        for node in body:
            called, given = called_at_the_top(node)
            changed = {name for function in called for name in changes.get(function, ())}
            changed |= {name for name in given if name in self.names and name not in functions}
            changed |= {base for base in _extended(node) if base in functions or self._is_made_here(base)}
            for name in sorted(changed):
                if node not in self.names.setdefault(name, []):
                    self.effects.setdefault(name, []).append(node)

    def _is_made_here(self, name: str) -> bool:
        """Whether a name stands for an instance of a class of this file."""
        for node in self.names.get(name, ()):
            made = node.value if isinstance(node, (ast.Assign, ast.AnnAssign)) else None
            if isinstance(made, ast.Call) and isinstance(made.func, ast.Name):
                return any(isinstance(n, ast.ClassDef) for n in self.names.get(made.func.id, ()))
        return False

    def _read_inner_imports(self) -> None:
        """Imports wherever they stand: at the top, under a condition, or inside a function; by a call, too."""
        importers = {"import_module", "__import__"}
        for top in self.tree.body:
            if isinstance(top, ast.ImportFrom) and top.module == "importlib":
                importers |= {alias.asname for alias in top.names if alias.name == "import_module" and alias.asname}
        for node in ast.walk(self.tree):
            if isinstance(node, ast.Call) and (by_call := _imported_by_call(node, importers)) is not None:
                self._import(*by_call, "*")
            if isinstance(node, ast.ImportFrom):
                self._read_from(node)
            elif isinstance(node, ast.Import):
                for alias in node.names:
                    first, *rest = alias.name.split(".")
                    if alias.asname or not rest:
                        self._import(alias.asname or first, alias.name, "")
                        continue
                    self._import(first, first, "")
                    for end in range(1, len(rest) + 1):
                        self._import(first, ".".join([first, *rest[:end]]), "*")

    def _read_from(self, node: ast.ImportFrom) -> None:
        module = "." * node.level + (node.module or "")
        for alias in node.names:
            if alias.name == "*":
                self.stars.append(module)
            else:
                self._import(alias.asname or alias.name, module, alias.name)

    def _read_adds(self) -> dict[str, Added]:
        start = [node for node in self.tree.body if _is_start(node)]
        return added_in([node for node in self.tree.body if node not in start], start)

    def _import(self, name: str, module: str, what: str) -> None:
        """One of the places that a name may come from: which import is executed cannot be told."""
        places = self.imports.setdefault(name, [])
        if (module, what) not in places:
            places.append((module, what))


class Code:
    """Digests of the code of functions in one project, each file read once."""

    def __init__(self, root: str, *, former: bool = False) -> None:
        """`former`: by the rule of once: whatever is called as something that a module has counts, and calls that
        change it do not."""
        self.root = os.path.realpath(root)
        self.former = former
        self.files: dict[str, str] = {}
        self._search = SearchPath(self.root)
        self._modules: dict[str, Module | None] = {}
        self._broken: dict[str, Exception] = {}
        self._digests: dict[tuple[str, str], str] = {}
        self._references: dict[str, str] = {}
        self.reached: dict[tuple[str, str], set[str]] = {}
        """The files that the code of a name was found in."""

        self.loaded: dict[str, bool] = {}
        """Whether what this process has loaded from a file is what was read of it here."""

        self.outdated: set[str] = set()
        """Files that something else was loaded from: what runs is not what they hold."""

        self._formerly: Code | None = None

    @property
    def absent(self) -> set[str]:
        """Files and folders that would count if they appeared."""
        return self._search.absent

    @property
    def formerly(self) -> Code:
        """The same files, by the rule by which digests were taken once."""
        if self._formerly is None:
            found = self._formerly = Code(self.root, former=True)
            found.files, found.loaded, found.outdated = self.files, self.loaded, self.outdated
            found._search = self._search
            found._modules, found._broken = self._modules, self._broken
        return self._formerly

    def of_reference(self, reference: str) -> str:
        """The digest of `module:function` or `path/file.py:function`."""
        if reference not in self._references:
            module, _, name = reference.partition(":")
            path = self.find(module)
            if path is None:
                what = "file" if module.endswith(".py") else "module"
                raise _unfound(reference, f"there is no such {what} in the project")
            self._references[reference] = self.of_name(path, name)
        return self._references[reference]

    def of_name(self, path: str, qualname: str) -> str:
        """The digest of a name in a file and of all that it uses."""
        key = (path, qualname)
        if key not in self._digests:
            module = self._module(path)
            first = qualname.split(".", maxsplit=1)[0]
            if module is None:
                raise self._unreadable(path)
            if first not in module.names and first not in module.imports:
                raise _unfound(f"{os.path.basename(path)}:{qualname}", "the file does not define it")
            self._digests[key] = self._closure(path, first)
        return self._digests[key]

    def of_module(self, path: str) -> str:
        """The digest of a whole file and of all that it uses."""
        key = (path, "*")
        if key not in self._digests:
            self._digests[key] = self._closure(path, "*")
        return self._digests[key]

    def owns(self, path: str) -> bool:
        """Whether a file is the project's own: below its root, and not installed there."""
        if not path.startswith(self.root + os.sep) or not path.endswith(".py"):
            return False
        parts = path[len(self.root) + 1 :].split(os.sep)
        return not any(part == "site-packages" or part.startswith(".") for part in parts) and os.path.isfile(path)

    def find(self, module: str, relative_to: str = "") -> str | None:
        """The project file of a module, or None if it is not the project's."""
        return next(iter(self.find_all(module, relative_to)), None)

    def find_all(self, module: str, relative_to: str = "") -> list[str]:
        """The project files that a module may be: which of them Python takes depends on how it was started."""
        return self._search.find_all(module, relative_to)

    def _closure(self, path: str, name: str) -> str:
        """All statements that a name leads to, in a fixed order, hashed."""
        seen: dict[tuple[str, str], set[tuple[str, str]]] = {}
        queue = [(path, name)]
        pieces: list[str] = []
        with self._search.as_it_is():
            while queue:
                for where, what in queue:
                    module = self._module(where) if (where, what) not in seen else None
                    used = seen.setdefault((where, what), set())
                    if module is not None:
                        pieces += self._pieces(module, what, used)
                        if not self.former and any(n in ANY_NAME and n not in module.names for n, _ in used):
                            queue.append((where, "*"))
                        queue += self._lead_on(where, module, used)
                more = self._search.add(self._adds(seen))  # what is found there may add others
                queue = self._led_on(seen) if more else []
        self.reached[path, name] = {where for where, _ in seen}
        return digest_of("\n".join(sorted(pieces)))

    def _pieces(self, module: Module, what: str, used: set[tuple[str, str]]) -> list[str]:
        """What a name of a module is, in words; the names that it uses are added to those."""
        if what == "*":
            used |= names_used(module.tree)
            return [f"*:{ast.dump(module.tree)}"]
        nodes = module.names.get(what, []) + module.unnamed.get(what, [])
        nodes += [] if self.former else module.effects.get(what, [])
        used |= {n for node in nodes for n in self.names_in(node)}
        used |= {(what, "")} if not nodes else set()
        return [f"{what}:{ast.dump(node)}" for node in nodes]

    def _led_on(self, seen: Mapping[tuple[str, str], set[tuple[str, str]]]) -> list[tuple[str, str]]:
        """Where all that was seen leads to, now that there are more folders to look in."""
        modules = {where: self._module(where) for where, _ in seen}
        return [
            place
            for (where, _), used in seen.items()
            if (module := modules[where]) is not None
            for place in self._lead_on(where, module, used)
        ]

    def _adds(self, seen: Collection[tuple[str, str]]) -> Iterator[tuple[str, Added]]:
        """The files of what was seen, with what they add to the folders in which modules are looked for."""
        for where, what in seen:
            module = self._module(where)
            for name, added in module.adds.items() if module is not None else ():
                if name in ("", what) or what == "*":
                    yield where, added

    def names_in(self, node: ast.stmt | ast.Module) -> set[tuple[str, str]]:
        """Names of its module that a piece of code uses, with the attribute that is taken of each."""
        return names_used(node) if self.former else names_read(node)

    def _lead_on(self, where: str, module: Module, used: set[tuple[str, str]]) -> list[tuple[str, str]]:
        """Where the names that a piece of code uses are defined, as far as that is in the project."""
        found: list[tuple[str, str]] = []
        for name, attribute in sorted(used):
            if name in module.names or name in module.unnamed:
                found.append((where, name))
            elif module.binds_any and not self.former and _may_be_bound(name, module):
                found.append((where, "*"))
            for place in module.imports.get(name, ()):
                found += self._imported(where, *place, attribute)
            if name not in module.names and name not in module.imports:
                found += [(target, "*") for star in module.stars for target in self.find_all(star, where)]
        return found

    def _imported(self, where: str, source: str, name: str, attribute: str) -> list[tuple[str, str]]:
        """What a name stands for that `from source import name` binds, or `import source` where there is no name."""
        targets = self.find_all(source, where)
        if name == "*":
            return [(target, "*") for target in targets]
        if not name:
            inner = self.find_all(f"{source}.{attribute}", where) if attribute else []
            if inner:
                return [(path, "*") for path in inner]
            return [(target, attribute if self.defines(target, attribute) else "*") for target in targets]
        found = [(target, name) for target in targets if self._binds(target, name)]
        if len(found) < max(len(targets), 1) or (where, name) in found:
            inner = self.find_all(f"{source}.{name}" if source.strip(".") else f"{source}{name}", where)
            found += [(path, attribute if self.defines(path, attribute) else "*") for path in inner]
        return found or [(target, "*") for target in targets]

    def defines(self, path: str, name: str) -> bool:
        """Whether a file itself says what a name of it stands for."""
        module = self._module(path) if name else None
        return module is not None and name in module.names

    def _binds(self, path: str, name: str) -> bool:
        module = self._module(path)
        return module is not None and (name in module.names or name in module.imports)

    def _module(self, path: str) -> Module | None:
        if path not in self._modules:
            self._modules[path] = None
            try:
                with open(path, "rb") as file:
                    data = file.read()
                self.files[path] = hashlib.sha256(data).hexdigest()
                self._modules[path] = Module(path, data)
            except (OSError, SyntaxError, ValueError) as error:
                self.files.setdefault(path, "")
                self._broken[path] = error
        return self._modules[path]

    def _unreadable(self, path: str) -> UsageError:
        """A file that holds no code that anybody could run: what Python says of it."""
        from shlex import quote

        name, error = os.path.relpath(path, self.root), self._broken.get(path)
        return UsageError(
            f"{name} cannot be imported",
            facts={"error": f"{type(error).__name__}: {getattr(error, 'strerror', None) or error}"},
            hint=f"python {quote(name)} in the project root shows where",
            code="recipe.import",
        )


def _is_start(node: ast.stmt) -> bool:
    """`if __name__ == "__main__":`, without an else: that one is executed where the file is imported."""
    if not isinstance(node, ast.If) or node.orelse or not isinstance(node.test, ast.Compare):
        return False
    sides = {ast.dump(side) for side in (node.test.left, *node.test.comparators)}
    return sides == _START and isinstance(node.test.ops[0], ast.Eq)


_START = {ast.dump(ast.Name("__name__", ast.Load())), ast.dump(ast.Constant("__main__"))}


def registers(decorator: ast.expr) -> bool:
    """`@plan.artifact(…)` says what the artifact is; that is its spec, and not the code that makes it."""
    target = decorator.func if isinstance(decorator, ast.Call) else decorator
    return isinstance(target, ast.Attribute) and target.attr == "artifact"


def names_read(node: ast.stmt | ast.Module) -> set[tuple[str, str]]:
    """As below, of names that are the module's: not of parameters and variables that are only called like them."""
    used = names_used(node)
    tree = node if isinstance(node, ast.Module) else ast.Module([node], [])
    try:
        compiled = compile(tree, "", "exec", dont_inherit=True, optimize=0)
    except (SyntaxError, ValueError, RecursionError):
        return used
    own = {name for name, _ in looked_up(compiled, stored=True)}
    for inner in ast.walk(node):
        if isinstance(inner, (ast.Import, ast.ImportFrom)):
            own |= {name for name, _ in _inner_imports(inner)}
    return {(name, attribute) for name, attribute in used if name in own}


def looked_up(code: CodeType, *, stored: bool = False) -> set[tuple[str, str]]:
    """Names that compiled code looks up in its module, with the attribute that is taken of each; with `stored`, those,
    too, that it binds there.

    A class may look up what it has bound itself: that is not told apart.
    """
    import dis  # for those whose artifacts are made by functions

    found: set[tuple[str, str]] = set()
    before = ""
    for step in dis.get_instructions(code):
        taken = step.opname in ("LOAD_ATTR", "LOAD_METHOD")
        if before:
            found.add((before, str(step.argval) if taken else ""))
        before = str(step.argval) if step.opname in _LOOKS or (stored and step.opname in _BINDS) else ""
    for const in code.co_consts:
        if isinstance(const, CodeType):
            found |= looked_up(const)
    return found


_LOOKS = frozenset({"LOAD_GLOBAL", "LOAD_NAME", "LOAD_FROM_DICT_OR_GLOBALS"})
_BINDS = frozenset({"STORE_NAME", "DELETE_NAME"})


def names_used(node: ast.AST) -> set[tuple[str, str]]:
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
    found = []
    for inner in ast.walk(node):
        if isinstance(inner, ast.Name) and isinstance(inner.ctx, ast.Store):
            found.append(inner.id)
        elif isinstance(inner, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            found.append(inner.name)
        elif isinstance(inner, (ast.Import, ast.ImportFrom)):
            found += [name for name, _ in _inner_imports(inner) if name != "*"]
    return found


def _captured(node: ast.stmt) -> list[str]:
    """Names that the patterns of a `match` bind."""
    found = []
    for inner in ast.walk(node):
        if isinstance(inner, (ast.MatchAs, ast.MatchStar)) and inner.name:
            found.append(inner.name)
        elif isinstance(inner, ast.MatchMapping) and inner.rest:
            found.append(inner.rest)
    return found


def _may_be_bound(name: str, module: Module) -> bool:
    """Whether a name can only be one of the module that nothing in it binds as a name."""
    return name not in module.imports and not hasattr(builtins, name) and not name.startswith("__")


def changed_in(node: ast.stmt) -> list[str]:
    """Names whose values a statement changes in place: `T["k"] = 1`, `o.x = 1`, `L.append(1)`."""
    found = []
    for inner in ast.walk(node):
        target: ast.AST = inner
        if isinstance(inner, ast.Expr) and isinstance(inner.value, ast.Call):
            target = inner.value.func
        elif not isinstance(inner, (ast.Subscript, ast.Attribute)) or isinstance(inner.ctx, ast.Load):
            continue
        if isinstance(target, ast.Name):
            continue
        while isinstance(target, (ast.Attribute, ast.Subscript, ast.Call)):
            target = target.func if isinstance(target, ast.Call) else target.value
        if isinstance(target, ast.Name):
            found.append(target.id)
    return found


Function = ast.FunctionDef | ast.AsyncFunctionDef


def _changes_by(functions: Mapping[str, Function]) -> dict[str, set[str]]:
    """The names of a module that its functions change when they are called, by themselves or by one another."""
    changes = {name: _changed_inside(node) for name, node in functions.items()}
    if not any(changes.values()):
        return {}
    calls = {name: {used for used, _ in names_used(node)} & changes.keys() for name, node in functions.items()}
    growing = True
    while growing:
        growing = False
        for name, others in calls.items():
            more = set().union(*(changes[other] for other in others)) - changes[name]
            changes[name] |= more
            growing = growing or bool(more)
    return changes


def _changed_inside(function: Function) -> set[str]:
    """Names of its module that a function binds or changes in place."""
    given, stored, shared = set[str](), set[str](), set[str]()
    for node in ast.walk(function):
        if isinstance(node, ast.arg):
            given.add(node.arg)
        elif isinstance(node, ast.Global):
            shared.update(node.names)
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            stored.add(node.id)
    changed = {name for statement in function.body for name in changed_in(statement)}
    return (changed - given - stored) | (shared & (stored | changed))


def called_at_the_top(node: ast.stmt) -> tuple[set[str], set[str]]:
    """The functions that a statement of a module calls when it is imported, and the names that it gives to a call."""
    called, given, waiting = set[str](), set[str](), list[ast.AST]([node])
    while waiting:
        inner = waiting.pop()
        if isinstance(inner, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            waiting += inner.decorator_list
            called |= {d.id for d in inner.decorator_list if isinstance(d, ast.Name)}
        elif not isinstance(inner, ast.Lambda):
            waiting += ast.iter_child_nodes(inner)
        if isinstance(inner, ast.Call) and isinstance(inner.func, ast.Name):
            called.add(inner.func.id)
        if isinstance(inner, ast.Expr) and isinstance(inner.value, ast.Call):
            given |= {argument.id for argument in inner.value.args if isinstance(argument, ast.Name)}
    return called, given


def _extended(node: ast.stmt) -> set[str]:
    """Names that a definition is added to by its decorators: `@generic.register`, `@table.add("name")`."""
    found = set[str]()
    for decorator in getattr(node, "decorator_list", ()):
        target = decorator.func if isinstance(decorator, ast.Call) else decorator
        if isinstance(target, ast.Attribute) and isinstance(target.value, ast.Name):
            found.add(target.value.id)
    return found


def _imported_by_call(node: ast.Call, importers: Collection[str]) -> tuple[str, str] | None:
    """The name that is called and the module, of `importlib.import_module("m")` and `__import__("m")`."""
    target, first = node.func, node.args[0] if node.args else None
    if not isinstance(first, ast.Constant) or not isinstance(first.value, str):
        return None
    if isinstance(target, ast.Attribute) and target.attr == "import_module" and isinstance(target.value, ast.Name):
        return target.value.id, first.value
    if isinstance(target, ast.Name) and target.id in importers:
        return target.id, first.value
    return None


def digest_of(text: str) -> str:
    """The digest of code; its ending tells whether the code reads the plan's variables."""
    found = hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:32]
    return found + READS_VARS if "attr='vars'" in text or READS_VARS in text else found


def _unfound(reference: str, why: str) -> UsageError:
    return UsageError(
        f"The function {reference} cannot be found",
        facts={"reason": why},
        hint="make: is module:function or path/file.py:function, below the project's root or its src folder",
        code="recipe.function",
    )


def unwrapped(function: Any) -> Any:
    """The function below its decorators."""
    while hasattr(function, "__wrapped__"):
        function = function.__wrapped__
    return function


def is_typed_again(before: object, now: object) -> bool:
    """Whether this is the same function of the same cell of a notebook, executed again: it replaces the one before.

    A cell is no file. Two functions of one name in one cell are two.
    """
    old, new = (getattr(unwrapped(f), "__code__", None) for f in (before, now))
    if old is None or new is None or old.co_qualname != new.co_qualname or os.path.isfile(new.co_filename):
        return False
    return bool(old.co_filename != new.co_filename or old.co_firstlineno == new.co_firstlineno)


def is_defined_once(path: str, qualname: str) -> bool:
    """Whether a file leaves no doubt which function a name stands for: no conditions, no second definition."""
    if "." in qualname:
        return True
    stat = os.stat(path)
    return _definitions(path, stat.st_mtime_ns, stat.st_size).get(qualname) == 1


@lru_cache(maxsize=256)
def _definitions(path: str, _mtime_ns: int, _size: int) -> dict[str, int]:
    """How often a file defines each function outside of classes and functions; under a condition counts double."""
    found: dict[str, int] = {}
    hidden = -1
    with open(path, "rb") as file:
        for match in re.finditer(_HEADS, file.read()):
            indent, name = len(match[1].expandtabs()), (match[3] or b"").decode("utf-8", "replace")
            if 0 <= hidden < indent:
                continue
            hidden = indent if name else -1
            if match[2] == b"def":
                found[name] = found.get(name, 0) + (2 if indent else 1)
    return found


_BLOCKS = rb"(?:if|elif|else|try|except|finally|with|for|while|match|case)\b"
_HEADS = rb"(?m)^([ \t]*)(?:async +)?(?:(def|class) +([^\s(:\[]+)|%s)" % _BLOCKS
