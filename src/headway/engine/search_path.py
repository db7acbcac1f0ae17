"""Where the project's own modules may be: folders that Python looks in by itself, and those that code adds to them.

Knows `sys.path`, PYTHONPATH, installations, and what is written where code adds a folder; asks the disk what is there.
Never imports or runs anything, and never takes a folder from what a function does.
"""

from __future__ import annotations

import ast
import os
import re
import sys
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from typing import NamedTuple

LONGEST_PATH = 200
MOST_PATHS = 100
"""Nobody adds more folders than these: whoever seems to has named a table."""

DEFINITIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
GROWS = frozenset({"add", "append", "extend", "insert", "update"})

_BEFORE = r"^(?:%s|\{\w*\})?/+"
"""What stands in a text before a path that is put behind something else."""

Nodes = Mapping[str, Sequence[ast.AST]]
"""By the names that they say something about."""


class Added(NamedTuple):
    """Folders that code adds, as far as they are written there: below the project's root, or below the file's folder.

    `around`: or below one around that; which of them cannot be told.
    """

    paths: tuple[str, ...]
    around: bool


class SearchPath:
    """The folders in which one project's modules are looked for, and what was found there, and what was not."""

    def __init__(self, root: str) -> None:
        self.root = root
        self.absent: set[str] = set()
        """What would count if it appeared: files, and folders with a slash at the end."""

        self._besides = named_folders(root)
        """Folders besides those in which modules are always looked for."""

        self._found: dict[tuple[str, str, tuple[str, ...]], list[str]] = {}
        self._added: dict[tuple[str, Added], list[str]] = {}

    @contextmanager
    def as_it_is(self) -> Iterator[None]:
        """What is added meanwhile is added for whoever asks now, and not for the next one."""
        before = self._besides
        try:
            yield
        finally:
            self._besides = before

    def add(self, added: Iterable[tuple[str, Added]]) -> bool:
        """Look as well where these files do; whether that is anywhere else."""
        found = {folder for one in set(added) for folder in self._folders(*one)}
        more = tuple(sorted(found.difference((self.root, os.path.join(self.root, "src")), self._besides)))
        self._besides += more
        return bool(more)

    def _folders(self, file: str, added: Added) -> list[str]:
        """The folders that are meant and that there are; the others are noted, each by itself."""
        if (file, added) not in self._added:
            base = os.path.dirname(file)
            bases = [base, self.root]
            while added.around and is_below(base := os.path.dirname(base), self.root):
                bases.append(base)
            meant = {os.path.normpath(os.path.join(base, path)) for base in bases for path in added.paths}
            meant = {folder for folder in meant if may_hold_code(folder, self.root)}
            there = self._added[file, added] = [folder for folder in meant if os.path.isdir(folder)]
            self.absent.update(os.path.relpath(folder, self.root) + "/" for folder in meant.difference(there))
        return self._added[file, added]

    def find_all(self, module: str, relative_to: str = "") -> list[str]:
        """The project files that a module may be: which of them Python takes depends on how it was started."""
        if module.endswith(".py"):
            path = os.path.join(self.root, module)
            return [path] if os.path.isfile(path) else []
        key = (module, os.path.dirname(relative_to), self._besides)
        if key not in self._found:
            self._found[key] = self._look_for(module, relative_to)
        return self._found[key]

    def _look_for(self, module: str, relative_to: str) -> list[str]:
        level = len(module) - len(module.lstrip("."))
        base = self.root
        if level:
            base = os.path.dirname(relative_to)
            for _ in range(level - 1):
                base = os.path.dirname(base)
        parts = [p for p in module.lstrip(".").split(".") if p]
        folders = [base]
        if not level:
            folders += [os.path.join(self.root, "src"), os.path.dirname(relative_to), *self._besides]
        found: list[str] = []
        for folder in folders:
            stem = os.path.join(folder, *parts)
            # Python takes the package where both are there.
            for path in (os.path.join(stem, "__init__.py"), *([f"{stem}.py"] if parts else [])):
                if os.path.isfile(path) and os.path.realpath(path).startswith(self.root + os.sep):
                    found.append(path)
                    break
                self.absent.add(os.path.relpath(path, self.root))
        return list(dict.fromkeys(found))


def is_below(path: str, root: str) -> bool:
    return path == root or path.startswith(root + os.sep)


def may_hold_code(folder: str, root: str) -> bool:
    """Whether modules of a project may be in this folder of it: not what is installed there, and nothing hidden."""
    parts = folder[len(root) + 1 :].split(os.sep)
    return is_below(folder, root) and not any(part == "site-packages" or part.startswith(".") for part in parts)


def named_folders(root: str) -> tuple[str, ...]:
    """Folders of a project in which this Python looks for modules, whoever starts it: by PYTHONPATH, or as installed.

    What a program adds depends on which program it is: that is read where it is written. So is its own folder.
    """
    known = (root, os.path.join(root, "src"))
    paths = dict.fromkeys(os.path.realpath(path) for path in sys.path if path)
    found = [path for path in paths if path not in known and may_hold_code(path, root)]
    if not found:
        return ()
    named = [os.path.normpath(path) for path in os.environ.get("PYTHONPATH", "").split(os.pathsep) if path]
    installed = _installed_folders()
    return tuple(
        path
        for path in found
        if path in installed
        or any(os.path.realpath(n) == path if os.path.isabs(n) else path.endswith(os.sep + n) for n in named)
    )


def _installed_folders() -> set[str]:
    """Folders that the `.pth` files beside installed packages name: of what is installed where it is worked at."""
    found = set[str]()
    for place in sys.path:
        if os.path.basename(place) in ("site-packages", "dist-packages"):
            with suppress(OSError, ValueError):
                for name in (name for name in os.listdir(place) if name.endswith(".pth")):
                    with open(os.path.join(place, name), encoding="utf-8") as file:
                        found |= {os.path.realpath(os.path.join(place, line.strip())) for line in file}
    return found


def may_add(source: bytes) -> bool:
    """Whether a file can add folders at all, as most cannot: asked before its tree is walked through."""
    return re.search(rb"\bsys[\s\\]*(?:\.[\s\\]*path|as|import)\b|addsitedir", source) is not None


def added_in(body: Sequence[ast.stmt], start: Sequence[ast.stmt]) -> dict[str, Added]:
    """What a module adds, by the names of functions that only its start calls; by "", whatever else does.

    `start` is what is executed only where the file is started, and no part of `body`: nothing counts that it adds.
    """
    search_path = _search_path_in([*body, *start])
    adding = [node for node in body if any(_added(inner, search_path) for inner in ast.walk(node))]
    if not adding:
        return {}
    defined = {node.name: [node] for node in body if isinstance(node, DEFINITIONS)}
    started = _names(_followed(start, defined)) & defined.keys()
    if started:
        started -= _names(_followed([n for n in body if getattr(n, "name", "") not in started], defined))
    found: dict[str, list[ast.stmt]] = {}
    for node in adding:
        name = getattr(node, "name", "")
        found.setdefault(name if name in started else "", []).append(node)
    values = _values(_at_once(body))
    return {name: _added_by(nodes, values, defined, search_path) for name, nodes in found.items()}


def _search_path_in(body: Iterable[ast.stmt]) -> set[str]:
    """What a module calls `sys.path`."""
    found = {"sys.path"}
    for node in (inner for statement in body for inner in ast.walk(statement)):
        if isinstance(node, ast.Import):
            found |= {f"{name.asname}.path" for name in node.names if name.name == "sys" and name.asname}
        elif isinstance(node, ast.ImportFrom) and node.module == "sys":
            found |= {name.asname or name.name for name in node.names if name.name == "path"}
    return found


def _added_by(nodes: Iterable[ast.stmt], values: Nodes, defined: Nodes, search_path: Container[str]) -> Added:
    """By these statements: what is written where they add it, and in plain assignments that are named there."""
    paths, around = dict[str, None](), False
    for node in nodes:
        own = _values(ast.walk(node))
        known = {**values, **own} if isinstance(node, DEFINITIONS) else {**own, **values}
        given = [value for inner in ast.walk(node) for value in _added(inner, search_path)]
        around = around or "__file__" in _names(_followed(given, {**defined, **known}))
        for path in (path for value in _followed(given, known) for path in _paths_in(value)):
            if len(paths) == MOST_PATHS:
                break
            paths[path] = None
    return Added(("", *paths) if around else tuple(paths), around)


def _followed(nodes: Iterable[ast.AST], by_name: Nodes) -> list[ast.AST]:
    """These, what is said about the names in them, and so on."""
    found, seen = list(nodes), set[str]()
    for node in found:
        new = _names([node]) - seen
        seen |= new
        found += [other for name in sorted(new) for other in by_name.get(name, ())]
    return found


def _names(nodes: Iterable[ast.AST]) -> set[str]:
    return {inner.id for node in nodes for inner in ast.walk(node) if isinstance(inner, ast.Name)}


def _at_once(body: Iterable[ast.stmt]) -> Iterator[ast.AST]:
    """All that is executed with these statements: not what functions and classes hold that they define."""
    found = list[ast.AST](body)
    for node in found:
        if not isinstance(node, DEFINITIONS):
            yield node
            found += ast.iter_child_nodes(node)


def _values(nodes: Iterable[ast.AST]) -> dict[str, list[ast.AST]]:
    """What names stand for by plain assignments, loops and defaults, and what is added to it in place."""
    found: dict[str, list[ast.AST]] = {}
    for node in nodes:
        for name, value in _assigned(node):
            if value is not None:
                found.setdefault(name, []).append(value)
    return found


def _assigned(node: ast.AST) -> Iterator[tuple[str, ast.AST | None]]:
    if isinstance(node, (ast.Assign, ast.AnnAssign, ast.AugAssign, ast.NamedExpr, ast.For, ast.comprehension)):
        value = node.iter if isinstance(node, (ast.For, ast.comprehension)) else node.value
        for target in node.targets if isinstance(node, ast.Assign) else [node.target]:
            for inner in ast.walk(target):
                if isinstance(inner, ast.Name) and isinstance(inner.ctx, ast.Store):
                    yield inner.id, value
    elif isinstance(node, ast.arguments):
        given = zip(reversed([*node.posonlyargs, *node.args]), reversed(node.defaults), strict=False)
        for argument, default in (*given, *zip(node.kwonlyargs, node.kw_defaults, strict=True)):
            yield argument.arg, default
    elif isinstance(node, ast.Call) and isinstance(grown := node.func, ast.Attribute) and grown.attr in GROWS:
        yield from ((grown.value.id, more) for more in node.args if isinstance(grown.value, ast.Name))


def _added(node: ast.AST, search_path: Container[str]) -> list[ast.expr]:
    """`sys.path.insert(0, "lib")`, `sys.path += ["lib"]`, `sys.path[:0] = ["lib"]`, `site.addsitedir("lib")`."""
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
        adds = node.func.attr in ("insert", "append", "extend") and _called(node.func.value) in search_path
        adds = adds or node.func.attr == "addsitedir"
        return [*node.args, *(keyword.value for keyword in node.keywords)] if adds else []
    if isinstance(node, (ast.Assign, ast.AugAssign)):
        targets = node.targets if isinstance(node, ast.Assign) else [node.target]
        if any(_called(t.value if isinstance(t, ast.Subscript) else t) in search_path for t in targets):
            return [node.value]
    return []


def _called(node: ast.AST) -> str:
    """A name, or a name in another one; "" of anything else."""
    if isinstance(node, ast.Attribute):
        return f"{getattr(node.value, 'id', '')}.{node.attr}"
    return node.id if isinstance(node, ast.Name) else ""


def _paths_in(node: ast.AST) -> Iterator[str]:
    """The paths that code may put together of what is written in it: `os.path.join(here, "lib", "more")`, or behind
    something else, as in `here + "/lib"` and `f"{here}/lib"`.
    """
    for inner in ast.walk(node):
        if isinstance(inner, (ast.Call, ast.BinOp, ast.Constant)):
            texts = [n for n in ast.walk(inner) if isinstance(n, ast.Constant) and isinstance(n.value, str)]
            texts.sort(key=lambda n: (n.lineno, n.col_offset))
            written = [str(n.value) for n in texts]
            behind = [re.sub(_BEFORE, "", text) for text in written]
            for path in dict.fromkeys((os.path.join("", *written), os.path.join("", *behind))):
                if 0 < len(path) < LONGEST_PATH and path.isprintable():
                    yield path
