"""What this process has loaded of a project's files: once a file is edited, it is not what runs.

Notes how a file was before it was loaded, wherever Headway loads it; of what others loaded, how it was when it was
first seen, and whether it may have changed between the two. Compares no code.
"""

from __future__ import annotations

import functools
import hashlib
import os
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from importlib import invalidate_caches
from importlib.machinery import ModuleSpec, PathFinder
from importlib.util import cache_from_source
from types import ModuleType
from typing import Any, NamedTuple

Times = tuple[int, int, int]
"""When a file was last changed, and its size."""


class Note(NamedTuple):
    """A file, as it was when it was loaded. `by` tells this loading from any other; `sure`: nothing can have changed
    between the loading and the look at the file.
    """

    path: str
    by: object
    times: Times
    digest: str
    sure: bool

    @property
    def is_outdated(self) -> bool:
        """Whether the file holds something else by now."""
        try:
            return times_of(self.path) != self.times and _digest(self.path) != self.digest
        except OSError:
            return True


_notes: dict[str, Note] = {}
"""By the names of modules; of a plan's file that was only run, by its path."""


def note(name: str, path: str, by: object = None) -> None:
    """A file is going to be loaded."""
    try:
        forget_compiled(path)
        _notes[name] = _noted(os.path.realpath(path), by, sure=True)
    except OSError:
        _notes.pop(name, None)


def forget_compiled(path: str) -> None:
    """Python tells by whole seconds whether a compiled file is of this source: one that is older may hide an edit."""
    with suppress(OSError, NotImplementedError):
        compiled = cache_from_source(path)
        if os.stat(compiled).st_mtime_ns < os.stat(path).st_mtime_ns:
            os.unlink(compiled)


def _noted(path: str, by: object, *, sure: bool) -> Note:
    return Note(path, by, times_of(path), _digest(path), sure)


def _digest(path: str) -> str:
    with open(path, "rb") as file:
        return hashlib.sha256(file.read()).hexdigest()


@contextmanager
def noting(root: str) -> Iterator[None]:
    """While a project's code is loaded, every file of it is noted first."""
    finder: Any = _Noting(root)
    at = sys.meta_path.index(PathFinder) if PathFinder in sys.meta_path else len(sys.meta_path)
    sys.meta_path.insert(at, finder)
    try:
        yield
    finally:
        sys.meta_path.remove(finder)


class _Noting:
    """Finds what Python itself would find at this place."""

    def __init__(self, root: str) -> None:
        self._inside = _below(root)

    def find_spec(self, name: str, path: Any = None, target: ModuleType | None = None) -> ModuleSpec | None:
        found = PathFinder.find_spec(name, path, target)
        if found is not None and found.has_location and _is_own(found.origin, self._inside):
            note(name, str(found.origin), found)
        return found


def modules(root: str) -> dict[str, Note]:
    """The modules that are loaded from a project's files; those that nobody noted are, from now on."""
    inside, found = _below(root), dict[str, Note]()
    for name, module in list(sys.modules.items()):
        file = getattr(module, "__file__", None)
        if not _is_own(file, inside) or name.partition(".")[0] == "headway":
            continue
        by, path, known = getattr(module, "__spec__", None), os.path.realpath(str(file)), _notes.get(name)
        if known is None or known.by is not by or known.path != path:
            try:
                known = _notes[name] = _noted(path, by, sure=not was_touched(path))
            except OSError:
                continue
        found[name] = known
    return found


def confirm(known: Note) -> None:
    """What was loaded was compared with what its file holds, and is the same."""
    for name, other in _notes.items():
        if other is known:
            _notes[name] = known._replace(sure=True)


def notes(root: str) -> dict[str, list[Note]]:
    """What was loaded from each file of a project, as modules or by running it as a plan."""
    found: dict[str, list[Note]] = {}
    for known in modules(root).values():
        found.setdefault(known.path, []).append(known)
    for name, known in _notes.items():
        if name == known.path:
            found.setdefault(name, []).append(known)
    return found


def were_surely(root: str, digests: Mapping[str, str]) -> bool:
    """Whether these files of a project, as far as they were loaded, had these digests then, without any doubt."""
    known = notes(root)
    return all(
        n.sure and n.digest == digest for p, digest in digests.items() for n in known.get(os.path.realpath(p), ())
    )


def forget_changed(root: str) -> None:
    """Once a file of the project has changed, none of its modules is what it was: whoever imports one gets it anew."""
    found = modules(root)
    found.pop("__main__", None)
    if any(known.is_outdated for known in found.values()):
        for name in found:
            sys.modules.pop(name, None)
            _notes.pop(name, None)
        invalidate_caches()


def _below(root: str) -> tuple[str, ...]:
    return tuple({os.path.join(root, ""), os.path.join(os.path.realpath(root), "")})


def _is_own(file: object, inside: tuple[str, ...]) -> bool:
    return isinstance(file, str) and file.startswith(inside) and file.endswith(".py") and "site-packages" not in file


def times_of(path: str) -> Times:
    """What tells whether a file was touched."""
    found = os.stat(path)
    return found.st_mtime_ns, found.st_ctime_ns, found.st_size


def was_touched(path: str, since: float | None = None) -> bool:
    """Whether a file may have changed since then; or since this process began, and so since it was loaded."""
    try:
        return max(times_of(path)[:2]) / 1e9 > (_began() - 2 if since is None else since)
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
