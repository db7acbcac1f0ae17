"""Finding the projects of a folder, and what their own files say about them: names, needs, tools, where docs point.

One listing of each folder, two levels deep, and a few small files of each project; never into what tools have made
(node_modules, .git, venv, build). What cannot be read is said, and everything else goes on. Never writes.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple

import msgspec

from headway.history.shapes import Shape

DEPTH = 2
LARGEST = 256 * 1024
"""Of a marker file, so much is read."""

SKIPPED = frozenset(
    ("node_modules", "venv", "env", "__pycache__", "dist", "build", "target", "vendor", "site-packages")
)  # fmt: skip
MARKS: dict[str, tuple[str, float]] = {
    "headway.yaml": ("", 1.0),
    "headway.json": ("", 1.0),
    "headway.py": ("", 1.0),
    "headway.toml": ("", 1.0),
    "pyproject.toml": ("python", 0.95),
    "Cargo.toml": ("rust", 0.95),
    "go.mod": ("go", 0.95),
    "setup.py": ("python", 0.9),
    "setup.cfg": ("python", 0.9),
    "package.json": ("javascript", 0.9),
    "pom.xml": ("java", 0.9),
    "mix.exs": ("elixir", 0.9),
    "composer.json": ("php", 0.9),
    "mkdocs.yml": ("docs", 0.9),
    "build.gradle": ("java", 0.85),
    "build.gradle.kts": ("kotlin", 0.85),
    "Gemfile": ("ruby", 0.85),
    "CMakeLists.txt": ("c++", 0.85),
    "conf.py": ("docs", 0.8),
    ".git": ("", 0.8),
}
"""What makes a folder a project, in which language, and how sure that is."""
SOURCES = frozenset(("src", "lib", "app", "source", "packages", "cmd", "internal", "pkg", "docs", "tests", "test"))
WITHOUT_SOURCES = 0.8
READ = (
    "pyproject.toml", "setup.cfg", "requirements.txt", "package.json", "Cargo.toml", "go.mod", "Gemfile", "mkdocs.yml",
    "conf.py", "docs/conf.py", "docs/source/conf.py", ".git/config",
)  # fmt: skip
FRAMEWORKS = {
    "py:flask": "flask", "py:fastapi": "fastapi", "py:django": "django", "py:sqlalchemy": "sqlalchemy",
    "py:pytest": "pytest", "py:pandas": "pandas", "py:numpy": "numpy", "py:torch": "torch", "py:click": "click",
    "py:typer": "typer", "py:pydantic": "pydantic", "py:aiohttp": "aiohttp", "py:celery": "celery",
    "npm:react": "react", "npm:vue": "vue", "npm:svelte": "svelte", "npm:next": "next", "npm:express": "express",
    "npm:typescript": "typescript",
    "npm:vite": "vite", "npm:jest": "jest", "npm:vitest": "vitest", "crate:tokio": "tokio", "crate:axum": "axum",
    "crate:serde": "serde", "gem:rails": "rails", "py:psycopg": "postgresql", "py:psycopg2": "postgresql",
    "py:asyncpg": "postgresql", "npm:pg": "postgresql", "py:redis": "redis", "npm:redis": "redis",
    "py:aiosqlite": "sqlite", "npm:sqlite3": "sqlite", "npm:better-sqlite3": "sqlite",
}  # fmt: skip
FILES = {
    "Dockerfile": "docker", "docker-compose.yml": "docker", "compose.yaml": "docker", "tsconfig.json": "typescript",
    "mkdocs.yml": "mkdocs", ".github": "github-actions", ".gitlab-ci.yml": "gitlab-ci", "Makefile": "make",
}  # fmt: skip


class Facts(Shape, kw_only=True):
    """What a project's own files say. `seen` tells whether they still say it: each file looked at, and its stat."""

    name: str
    confidence: float = 0.0
    evidence: list[str] = msgspec.field(default_factory=list)
    languages: list[str] = msgspec.field(default_factory=list)
    tools: list[str] = msgspec.field(default_factory=list)
    offers: list[str] = msgspec.field(default_factory=list)
    """Names under which others can depend on it: `py:shop-api`, `npm:@shop/web`."""
    needs: dict[str, str] = msgspec.field(default_factory=dict)
    """What it depends on, and the file that says so: a name as above, or a path beginning with `../`."""
    documents: dict[str, float] = msgspec.field(default_factory=dict)
    """Paths that its documentation is about, and how sure that is."""
    organisation: str = ""
    seen: dict[str, list[int]] = msgspec.field(default_factory=dict)


class Survey(NamedTuple):
    """The projects of a folder, by relative path; folders that were listed, with their stat; what could not be read."""

    projects: dict[str, Facts]
    folders: dict[str, list[int]]
    denied: dict[str, str]


def stat_of(path: str) -> list[int] | None:
    """What changes whenever a file, or the listing of a folder, does."""
    try:
        found = os.stat(path)
    except OSError:
        return None
    return [found.st_mtime_ns, found.st_size, found.st_ino]


def survey(root: str, known: Mapping[str, Facts] | None = None) -> Survey:
    """Find the projects in a folder. What is `known` and has not changed is not read again."""
    projects: dict[str, Facts] = {}
    folders: dict[str, list[int]] = {}
    denied: dict[str, str] = {}
    seen: set[tuple[int, int]] = set()
    waiting = [("", 0)]
    for path, depth in waiting:
        full = os.path.join(root, path) if path else root
        try:
            at = os.stat(full)
            if (at.st_dev, at.st_ino) in seen:  # a link that leads back, or a second way to the same
                continue
            seen.add((at.st_dev, at.st_ino))
            names, inner, links = _listing(full)
        except OSError as error:
            if not isinstance(error, FileNotFoundError | NotADirectoryError):  # it went away meanwhile
                denied[path] = error.strerror or str(error)
            continue
        stat = [at.st_mtime_ns, at.st_size, at.st_ino]
        if path and _is_project(full, names):
            projects[path] = _facts(full, path, names, stat, (known or {}).get(path))
            continue
        folders[path] = stat
        if depth < DEPTH:
            below = [*sorted(inner), *sorted(links)]
            waiting += [(f"{path}/{name}" if path else name, depth + 1) for name in below]
    return Survey(dict(sorted(projects.items())), folders, denied)


def revisit(root: str, known: Mapping[str, Facts], folders: Mapping[str, list[int]]) -> Survey | None:
    """The same projects as before, those read again whose files changed; None if there may be others now."""
    if any(stat_of(f"{root}/{path}" if path else root) != stat for path, stat in folders.items()):
        return None
    projects: dict[str, Facts] = {}
    for path, facts in known.items():
        full = f"{root}/{path}"
        projects[path] = facts
        if not is_unchanged(full, facts):
            try:
                at = os.stat(full)
                names, _, _ = _listing(full)
            except OSError:
                return None
            if not _is_project(full, names):
                return None
            projects[path] = _facts(full, path, names, [at.st_mtime_ns, at.st_size, at.st_ino], None)
    return Survey(projects, dict(folders), {})


def _listing(folder: str) -> tuple[set[str], list[str], list[str]]:
    """All names, the folders that may hold projects, and links to such: links come last, so that a folder is known by
    its own path where it has one here."""
    names: set[str] = set()
    inner: list[str] = []
    links: list[str] = []
    with os.scandir(folder) as listing:
        for entry in listing:
            name = entry.name
            names.add(name)
            if name.startswith(".") or name in SKIPPED:
                continue
            try:
                if entry.is_symlink():
                    if entry.is_dir():
                        links.append(name)
                elif entry.is_dir():
                    inner.append(name)
            except OSError:  # gone, or a link that leads nowhere
                continue
    return names, inner, links


def _is_project(full: str, names: set[str]) -> bool:
    if not names.isdisjoint(MARKS):
        return True
    return ".headway" in names and any(os.path.exists(f"{full}/.headway/{n}") for n in ("project.json", "plans"))


def is_unchanged(full: str, facts: Facts) -> bool:
    """Whether a project's files are those that were read: one stat each."""
    return all(stat_of(f"{full}/{name}" if name else full) == (stat or None) for name, stat in facts.seen.items())


def _facts(full: str, path: str, names: set[str], stat: list[int], known: Facts | None) -> Facts:
    if known is not None and known.seen.get("") == stat and is_unchanged(full, known):
        return known
    marks = [name for name in MARKS if name in names]
    confidence = max((MARKS[name][1] for name in marks), default=1.0)
    if confidence < 1.0 and names.isdisjoint(SOURCES):
        confidence = round(confidence * WITHOUT_SOURCES, 2)
    facts = Facts(name=os.path.basename(path), confidence=confidence, seen={"": stat})
    facts.evidence = marks or [".headway"]
    facts.languages = list(dict.fromkeys(MARKS[name][0] for name in marks if MARKS[name][0]))
    for name in READ:
        if name.partition("/")[0] in names:
            found = stat_of(f"{full}/{name}")
            if found is None and "/" in name:
                continue
            facts.seen[name] = found or []
            data = _read(f"{full}/{name}")
            if data:
                with _Forgiving(facts, name):
                    _READERS.get(name, _conf_py)(data, facts)
    needed = {FRAMEWORKS[need] for need in facts.needs if need in FRAMEWORKS}
    facts.tools = sorted(needed | {FILES[name] for name in names if name in FILES})
    if "docs" in facts.languages and "mkdocs" not in facts.tools and "conf.py" in names:
        facts.tools = sorted({*facts.tools, "sphinx"})
    return facts


class _Forgiving:
    """A file of a project may be anything: what cannot be understood says nothing, and that is kept as evidence."""

    def __init__(self, facts: Facts, name: str) -> None:
        self._facts, self._name = facts, name

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: object) -> bool:
        if kind is None or not issubclass(kind, ValueError | TypeError | AttributeError | KeyError | RecursionError):
            return False
        self._facts.evidence.append(f"{self._name} (cannot be understood)")
        return True


def _read(path: str) -> str:
    try:
        with open(path, "rb") as file:
            return file.read(LARGEST).decode("utf-8", "replace")
    except OSError:
        return ""


# What each kind of file says.

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")


def python_name(name: str) -> str:
    """A distribution's name as all its spellings have it in common."""
    return "py:" + re.sub(r"[-_.]+", "-", name).lower()


def _needs_python(requirements: Iterable[Any], facts: Facts, file: str) -> None:
    for text in requirements:
        if isinstance(text, str) and (found := _NAME.match(text.strip())):
            facts.needs.setdefault(python_name(found.group()), file)
            if (path := re.search(r"@\s*(?:file:)?(\.\./[^\s;]+)", text)) is not None:
                facts.needs.setdefault(path.group(1), file)


def _pyproject(data: str, facts: Facts) -> None:
    import tomllib

    document = tomllib.loads(data)
    project, tools = document.get("project", {}), document.get("tool", {})
    poetry = tools.get("poetry", {})
    if name := project.get("name") or poetry.get("name"):
        facts.offers.append(python_name(name))
    _needs_python(project.get("dependencies", ()), facts, "pyproject.toml")
    for group in (*project.get("optional-dependencies", {}).values(), *document.get("dependency-groups", {}).values()):
        _needs_python(group, facts, "pyproject.toml")
    _needs_python((name for name in poetry.get("dependencies", {}) if name != "python"), facts, "pyproject.toml")
    sources = (*poetry.get("dependencies", {}).values(), *tools.get("uv", {}).get("sources", {}).values())
    _needs_paths((s.get("path") for s in sources if isinstance(s, dict)), facts, "pyproject.toml")


def _needs_paths(paths: Iterable[Any], facts: Facts, file: str) -> None:
    for path in paths:
        if isinstance(path, str) and path.startswith("../"):
            facts.needs.setdefault(path, file)


def _setup_cfg(data: str, facts: Facts) -> None:
    if name := re.search(r"(?m)^name\s*=\s*(\S+)", data):
        facts.offers.append(python_name(name.group(1)))
    if block := re.search(r"(?m)^install_requires\s*=\s*((?:\n?[ \t]+.*)+)", data):
        _needs_python(block.group(1).splitlines(), facts, "setup.cfg")


def _requirements(data: str, facts: Facts) -> None:
    lines = [line.strip() for line in data.splitlines()]
    _needs_python((line for line in lines if line and line[0] not in "#-."), facts, "requirements.txt")
    _needs_paths((re.sub(r"^(-e|--editable)[ =]+", "", line) for line in lines), facts, "requirements.txt")


def _package_json(data: str, facts: Facts) -> None:
    document = msgspec.json.decode(data)
    if isinstance(document.get("name"), str):
        facts.offers.append(f"npm:{document['name']}")
    for key in ("dependencies", "devDependencies", "peerDependencies", "optionalDependencies"):
        for name, version in document.get(key, {}).items():
            facts.needs.setdefault(f"npm:{name}", "package.json")
            if isinstance(version, str) and version.startswith(("file:", "link:")):
                _needs_paths([version.partition(":")[2]], facts, "package.json")


def _cargo(data: str, facts: Facts) -> None:
    import tomllib

    document = tomllib.loads(data)
    if name := document.get("package", {}).get("name"):
        facts.offers.append(f"crate:{name}")
    for key in ("dependencies", "dev-dependencies", "build-dependencies"):
        for name, value in document.get(key, {}).items():
            facts.needs.setdefault(f"crate:{name}", "Cargo.toml")
            if isinstance(value, dict):
                _needs_paths([value.get("path")], facts, "Cargo.toml")


def _go_mod(data: str, facts: Facts) -> None:
    if module := re.search(r"(?m)^module\s+(\S+)", data):
        facts.offers.append(f"go:{module.group(1)}")
    for name in re.findall(r"(?m)^\s*(?:require\s+)?([\w.-]+\.[\w-]+/\S+)\s+v\S+", data):
        facts.needs.setdefault(f"go:{name}", "go.mod")
    _needs_paths(re.findall(r"=>\s*(\.\./\S+)", data), facts, "go.mod")


def _gemfile(data: str, facts: Facts) -> None:
    for name in re.findall(r"""(?m)^\s*gem\s+["']([\w-]+)["']""", data):
        facts.needs.setdefault(f"gem:{name}", "Gemfile")
    _needs_paths(re.findall(r"""path:\s*["'](\.\./[^"']+)["']""", data), facts, "Gemfile")


def _mkdocs(data: str, facts: Facts) -> None:
    for path in re.findall(r"(?<![\w/])(\.\./[\w./-]+)", data):
        facts.documents[path] = max(facts.documents.get(path, 0.0), 0.9)


def _conf_py(data: str, facts: Facts) -> None:
    """Sphinx: paths are relative to the folder that holds it, which for `docs/conf.py` is one further down."""
    for path in re.findall(r"""sys\.path\.(?:insert|append)\([^\n]*?["']((?:\.\./)+[\w./-]*|\.\.)["']""", data):
        facts.documents[path] = max(facts.documents.get(path, 0.0), 0.95)
    for block in re.findall(r"autoapi_dirs\s*=\s*\[([^\]]*)\]", data):
        for path in re.findall(r"""["']((?:\.\./)+[\w./-]*)["']""", block):
            facts.documents[path] = max(facts.documents.get(path, 0.0), 0.9)


def _git_config(data: str, facts: Facts) -> None:
    found = re.search(r'\[remote "origin"\][^\[]*?url\s*=\s*(\S+)', data)
    if found is None:
        return
    url = re.sub(r"^(?:\w+://)?(?:[^@/]*@)?", "", found.group(1)).replace(":", "/", 1)
    parts = [part for part in url.split("/") if part]
    if len(parts) >= 3:
        facts.organisation = f"{parts[0]}/{parts[-2]}"


_READERS: dict[str, Callable[[str, Facts], None]] = {
    "pyproject.toml": _pyproject,
    "setup.cfg": _setup_cfg,
    "requirements.txt": _requirements,
    "package.json": _package_json,
    "Cargo.toml": _cargo,
    "go.mod": _go_mod,
    "Gemfile": _gemfile,
    "mkdocs.yml": _mkdocs,
    ".git/config": _git_config,
}
