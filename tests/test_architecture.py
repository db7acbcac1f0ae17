"""The shape of the code: layers, purity, silence, exports. Reads source text; each guard is shown to bite."""

from __future__ import annotations

import ast
import graphlib
from collections.abc import Callable, Iterator, Mapping
from importlib.util import resolve_name
from pathlib import Path
from typing import NamedTuple

import pytest

import headway

SRC = Path(__file__).parents[1] / "src" / "headway"

# From the bottom up. Parts that share a row do not import one another.
LAYERS = (
    {"_bulk"},
    {"bulk", "calm", "errors", "version"},
    {"core", "disk", "stamp"},
    {"ledger", "files", "given"},
    {"projections"},
    {"plan_folder"},
    {"store"},
    {"engine", "interop"},
    {"choosing", "history", "proposals"},
    {"project"},
    {"doctor", "planning", "overview"},
    {"holding"},
    {"work"},
    {"offers"},
    {"authoring", "incremental", "life", "reading"},
    {"briefing"},
    {"desk"},
    {"surfaces", "testing"},
    {"headway"},  # the public face itself
)
EXEMPT = {"headway", "headway.__main__"}

IMPURE = {
    "asyncio", "concurrent", "fcntl", "glob", "io", "logging", "mmap", "multiprocessing", "os", "pathlib",
    "random", "secrets", "select", "selectors", "shutil", "signal", "socket", "sqlite3", "ssl", "subprocess",
    "tempfile", "threading", "time", "urllib", "uuid",
}  # fmt: skip
IMPURE_CALLS = {"open", "print", "input"}
CLOCKS = (".now", ".utcnow", ".today")


class Module(NamedTuple):
    """A parsed file, and the package that its relative imports start from."""

    tree: ast.Module
    package: str


Modules = Mapping[str, Module]  # by dotted name; a package's __init__ under the package's name
Sketch = Callable[[Mapping[str, str]], Modules]


class Import(NamedTuple):
    """What is imported, and whether that happens as soon as the module itself is imported."""

    target: str
    line: int
    at_once: bool


def read(root: Path) -> Modules:
    """Every module below the package folder `root`."""
    found = {}
    for path in sorted(root.rglob("*.py")):
        package = ".".join(path.relative_to(root.parent).parts[:-1])
        name = package if path.stem == "__init__" else f"{package}.{path.stem}"
        found[name] = Module(ast.parse(path.read_text(encoding="utf-8")), package)
    return found


def imports(modules: Modules, name: str) -> Iterator[Import]:
    """All imports of a module, wherever they stand."""
    tree, package = modules[name]

    def walk(node: ast.AST, at_once: bool) -> Iterator[Import]:
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield Import(alias.name, node.lineno, at_once)
        elif isinstance(node, ast.ImportFrom):
            base = resolve_name("." * node.level + (node.module or ""), package)
            for alias in node.names:
                inner = f"{base}.{alias.name}"
                yield Import(inner if inner in modules else base, node.lineno, at_once)
        for_types = isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test)
        deferred = for_types or isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        for child in ast.iter_child_nodes(node):
            yield from walk(child, at_once and not deferred)

    yield from walk(tree, at_once=True)


def part_of(name: str) -> str:
    """The folder or file directly below the package that a module belongs to."""
    return name.split(".")[1] if "." in name else name


def layer(name: str) -> int:
    """How high a module stands; -1 if nobody said."""
    return next((height for height, row in enumerate(LAYERS) if part_of(name) in row), -1)


def upward_imports(modules: Modules) -> list[str]:
    """Imports that do not point downwards, and modules that no layer knows."""
    faults = [f"{name} is in no layer" for name in modules if name not in EXEMPT and layer(name) < 0]
    for name in modules.keys() - EXEMPT:
        for target, line, _ in imports(modules, name):
            ours = target.split(".")[0] == "headway"
            if ours and part_of(target) != part_of(name) and layer(target) >= layer(name):
                faults.append(f"{name}:{line} imports {target}")
    return sorted(faults)


def import_cycle(modules: Modules) -> list[str]:
    """One circle of modules that need each other in order to be imported, if there is any."""
    graph = {
        name: {i.target for i in imports(modules, name) if i.at_once and i.target in modules} - {name}
        for name in modules
    }
    try:
        graphlib.TopologicalSorter(graph).prepare()
    except graphlib.CycleError as error:
        return list(error.args[1])
    return []


def calls(module: Module) -> Iterator[tuple[str, int]]:
    """Every call as it is written, without its arguments: `print`, `sys.stdout.write`, `datetime.now`."""
    for node in ast.walk(module.tree):
        if isinstance(node, ast.Call):
            yield ast.unparse(node.func), node.lineno


def impurities(modules: Modules) -> list[str]:
    """What in the core could touch the world."""
    faults = []
    for name in (name for name in modules if part_of(name) == "core"):
        for target, line, _ in imports(modules, name):
            if target.split(".")[0] in IMPURE:
                faults.append(f"{name}:{line} imports {target}")
        for call, line in calls(modules[name]):
            if call in IMPURE_CALLS or call.endswith(CLOCKS):
                faults.append(f"{name}:{line} calls {call}")
    return faults


def voices(modules: Modules) -> list[str]:
    """What prints although it is no surface."""
    loud = {"print", "input", "sys.stdout.write", "sys.stderr.write"}
    faults = []
    for name in (name for name in modules if part_of(name) != "surfaces" and name not in EXEMPT):
        faults += [f"{name}:{line} calls {call}" for call, line in calls(modules[name]) if call in loud]
    return faults


def undocumented(modules: Modules) -> list[str]:
    """Modules that do not say what they are for."""
    return [name for name, module in modules.items() if not ast.get_docstring(module.tree)]


def public_names(face: Module) -> set[str]:
    """What the face offers: names taken from its own modules, or defined there, without an underscore."""
    names: set[str] = set()
    for node in ast.walk(face.tree):
        if isinstance(node, ast.ImportFrom) and (node.level or (node.module or "").startswith("headway")):
            names |= {alias.asname or alias.name for alias in node.names}
    for node in face.tree.body:
        if isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            names.add(node.name)
        elif isinstance(node, ast.Assign | ast.AnnAssign):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            names |= {target.id for target in targets if isinstance(target, ast.Name)}
    return {name for name in names if not name.startswith("_")}


@pytest.fixture(scope="module")
def code() -> Modules:
    """The package as it is."""
    return read(SRC)


@pytest.fixture
def sketch(tmp_path: Path) -> Sketch:
    """A small package made of the given files, by path below headway/."""

    def write(files: Mapping[str, str]) -> Modules:
        for path, text in files.items():
            file = tmp_path / "headway" / path
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(text, encoding="utf-8")
        return read(tmp_path / "headway")

    return write


def test_the_guards_look_at_the_real_package(code: Modules) -> None:
    """The modules under guard are those that are imported."""
    assert headway.__file__ is not None
    assert Path(headway.__file__).parent == SRC
    assert {"headway", "headway.errors", "headway.core.plan"} <= code.keys()


def test_imports_point_downwards_only(code: Modules) -> None:
    """No module knows a layer above its own, nor its neighbour in the same row."""
    assert upward_imports(code) == []


@pytest.mark.parametrize(
    ("path", "text", "line", "target"),
    [
        ("core/plan.py", "import headway.ledger.file", 1, "headway.ledger.file"),
        ("core/plan.py", "from ..engine.run import f", 1, "headway.engine.run"),
        ("core/__init__.py", "from .. import project", 1, "headway.project"),
        ("ledger/file.py", "from headway import blob", 1, "headway"),
        ("files/blobs.py", "def f():\n    import headway.ledger", 2, "headway.ledger"),
        ("interop/make.py", "from headway.engine import run", 1, "headway.engine"),
        ("engine/run.py", "if TYPE_CHECKING:\n    import headway.history", 2, "headway.history"),
        ("project.py", "from headway.surfaces import cli", 1, "headway.surfaces"),
        ("testing.py", "import headway.surfaces", 1, "headway.surfaces"),
    ],
)
def test_an_upward_import_is_found(sketch: Sketch, path: str, text: str, line: int, target: str) -> None:
    """The layer guard sees absolute and relative imports, in functions too, and those for types alone."""
    name = "headway." + path.removesuffix(".py").removesuffix("/__init__").replace("/", ".")
    assert upward_imports(sketch({"project.py": "", path: text})) == [f"{name}:{line} imports {target}"]


def test_a_module_that_belongs_to_no_layer_is_found(sketch: Sketch) -> None:
    """A new part of the package must first be given its place."""
    assert upward_imports(sketch({"utils.py": ""})) == ["headway.utils is in no layer"]


def test_downward_imports_are_let_through(sketch: Sketch) -> None:
    """Lower layers, siblings, the public face and the entry point are no offence."""
    modules = sketch(
        {
            "__init__.py": "from headway.project import Project",
            "__main__.py": "from headway.surfaces.cli.main import main",
            "surfaces/cli/main.py": "import headway.project\nfrom headway.surfaces.cli import text",
            "testing.py": "from headway.engine import run",
            "engine/run.py": "from ..core import plan\nfrom .preview import show\nimport json",
        }
    )
    assert upward_imports(modules) == []


def test_no_modules_import_each_other_in_a_circle(code: Modules) -> None:
    """Any module can be imported first."""
    assert import_cycle(code) == []


def test_a_circle_of_imports_is_found(sketch: Sketch) -> None:
    """The cycle guard names the modules of the circle, through packages and relative imports alike."""
    a, b = "from headway.core import b", "from .a import thing"
    assert set(import_cycle(sketch({"core/a.py": a, "core/b.py": b}))) == {"headway.core.a", "headway.core.b"}


def test_an_import_that_waits_for_a_call_makes_no_circle(sketch: Sketch) -> None:
    """The cycle guard counts only what happens while a module is being imported."""
    a, b = "import headway.core.b", "def f():\n    import headway.core.a"
    assert import_cycle(sketch({"core/a.py": a, "core/b.py": b})) == []


def test_the_core_is_pure(code: Modules) -> None:
    """Nothing under core/ imports or calls what can touch the world: files, clocks, chance, the terminal."""
    assert impurities(code) == []


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("import os.path", "imports os.path"),
        ("from time import time", "imports time"),
        ("def f(): import random", "imports random"),
        ("open('x')", "calls open"),
        ("print('x')", "calls print"),
        ("datetime.now(UTC)", "calls datetime.now"),
    ],
)
def test_an_impure_core_is_found(sketch: Sketch, text: str, fault: str) -> None:
    """The purity guard sees imports anywhere in a core module, and calls that need no import."""
    modules = sketch({"core/plan.py": text, "engine/run.py": text})
    assert impurities(modules) == [f"headway.core.plan:1 {fault}"]


def test_only_surfaces_print(code: Modules) -> None:
    """The library returns values and reports through protocols; what is shown is up to its caller."""
    assert voices(code) == []


@pytest.mark.parametrize("call", ["print", "sys.stderr.write"])
def test_a_library_that_prints_is_found(sketch: Sketch, call: str) -> None:
    """The silence guard hears a print in any layer but the surfaces."""
    text = f"def f():\n    {call}('x')"
    modules = sketch({"engine/run.py": text, "surfaces/cli/main.py": text})
    assert voices(modules) == [f"headway.engine.run:2 calls {call}"]


def test_every_module_says_what_it_is_for(code: Modules) -> None:
    """Each module and package opens with a docstring."""
    assert undocumented(code) == []


def test_a_module_without_a_docstring_is_found(sketch: Sketch) -> None:
    """The docstring guard is not content with a comment or an empty file."""
    modules = sketch({"errors.py": '"""Said."""', "core/__init__.py": "", "core/plan.py": "# a comment"})
    assert undocumented(modules) == ["headway.core", "headway.core.plan"]


def test_the_public_api_is_the_sorted_list_in_all(code: Modules) -> None:
    """`headway.__all__` is in order, names all that the face offers, and every name can be had."""
    listed = list(headway.__all__)
    assert listed == sorted(listed)
    assert {name for name in listed if not name.startswith("_")} == public_names(code["headway"]) - {"TYPE_CHECKING"}
    assert [name for name in listed if not hasattr(headway, name)] == []


def test_a_name_that_the_face_offers_is_found(sketch: Sketch) -> None:
    """Names count whether imported at once, imported for types alone, or defined; foreign imports do not."""
    face = """
from typing import TYPE_CHECKING
from headway.core.plan import Plan as Plan
if TYPE_CHECKING:
    from .project import Project
VERSION: str = "1"
_hidden = 1
def make(): ...
"""
    assert public_names(sketch({"__init__.py": face})["headway"]) == {"Plan", "Project", "VERSION", "make"}
