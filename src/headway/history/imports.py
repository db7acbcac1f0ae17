"""Which files of the project a Python source imports. Reads text, and asks whether files exist; runs nothing.

Import statements are found by their form, strings and comments apart: a file with a syntax error, or of another version
of Python, is read like any other, and thousands of files are read at the end of a run without anybody waiting.
"""

from __future__ import annotations

import os
import posixpath
import re
import sys
from collections.abc import Callable, Iterator

LARGEST = 1024 * 1024
"""Larger sources are generated, and not looked at."""

_QUOTED = r'(?s)("""|\'\'\')(?:\\.|.)*?\1|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\'|#[^\n]*'
_CONTINUED = r"\\\r?\n"
_IMPORT = (  # compiled when there are sources to look at, as the two above
    r"(?m)^[ \t]*(?:from[ \t]+(?P<base>\.+[\w.]*|[\w.]+)[ \t]+import[ \t]*(?P<names>\([^)]*\)|[^\n;]*)"
    r"|import[ \t]+(?P<plain>[\w., \t]+))"
)


def imported_files(path: str, text: str, exists: Callable[[str], bool]) -> list[str]:
    """The project's own files that the source at `path` imports, each once and sorted."""
    found: set[str] = set()
    for level, module, names in _imports(text):
        found.update(_files(path, level, module, names, exists))
    return sorted(found - {path})


def _imports(text: str) -> Iterator[tuple[int, str, list[str]]]:
    """Dots before the module, the module, and names that may be modules in it."""
    if "import" not in text:
        return
    code = re.sub(_CONTINUED, " ", re.sub(_QUOTED, lambda found: "" if found[0][0] == "#" else "''", text))
    for match in re.finditer(_IMPORT, code):
        if match["plain"] is not None:
            for part in match["plain"].split(","):
                words = part.split()
                if words:
                    yield 0, words[0], []
        else:
            base = match["base"]
            module = base.lstrip(".")
            names = [part.split()[0] for part in match["names"].strip("() \t\n").split(",") if part.split()]
            yield len(base) - len(module), module, names


def _files(path: str, level: int, module: str, names: list[str], exists: Callable[[str], bool]) -> Iterator[str]:
    folder = posixpath.dirname(path)
    place = module.replace(".", "/")
    if level:
        for _ in range(level - 1):
            folder = posixpath.dirname(folder)
        bases = [folder]
    elif module.partition(".")[0] in sys.stdlib_module_names:
        return
    else:
        bases = _roots(folder)
    for base in bases:
        found = [f for name in names for f in _module(posixpath.join(base, place, name), exists)]
        found += _module(posixpath.join(base, place).rstrip("/"), exists) if place else []
        if found:
            yield from found
            return


def _roots(folder: str) -> list[str]:
    """Folders from which a module may be imported: the source's own and those above it, and src/."""
    roots = [folder]
    while folder:
        folder = posixpath.dirname(folder)
        roots.append(folder)
    return [*roots, "src"]


def _module(place: str, exists: Callable[[str], bool]) -> list[str]:
    return [path for path in (f"{place}.py", f"{place}/__init__.py") if exists(path)]


class Files:
    """Which files exist, asked once each: those on disk, and those that a plan makes."""

    def __init__(self, root: str, made: set[str]) -> None:
        self._root = root
        self._made = made
        self._known: dict[str, bool] = {}

    def exists(self, path: str) -> bool:
        """Whether there is, or will be, a file of the project at this path."""
        known = self._known.get(path)
        if known is None:
            known = path in self._made or os.path.isfile(os.path.join(self._root, path))
            self._known[path] = known
        return known
