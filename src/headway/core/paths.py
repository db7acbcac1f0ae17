"""Project-relative POSIX paths as text: their normal form, and why one cannot be an output.

Knows spelling only: never looks at a disk, so links are not followed and nothing need exist.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Collection, Iterable, Iterator, Sequence

PATH_BYTES = 1024
PART_BYTES = 255
PROTECTED = (".headway", ".git")

_UNPRINTABLE = "[\x00-\x1f\x7f\ud800-\udfff]"  # compiled when a path is not plain
PLAIN = re.compile(r"[a-zA-Z0-9_][\w.-]{,99}(/[a-zA-Z0-9_][\w.-]{,99}){,8}/?", re.ASCII)
"""What most paths look like: about them there is nothing to ask."""

_PLAIN_BYTES = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-./"
_PLAIN_LENGTH = 200
_NOT_PLAIN = ("\n\n", "\n.", "\n-", "\n/", "/.", "/-", "//", "/\n")

_GLOB = re.compile(r"[*?]|\[[^\]/]+\]")


def normalise(path: str) -> str:
    """One spelling per path: `./a//b` is `a/b`, `a/../b` is `b`; a trailing slash stays and means a folder.

    The project root is `./`. A path that leaves the project keeps its leading `..` or `/`.
    """
    if "//" not in path and "/." not in path and path[:1] != ".":
        return path
    parts: list[str] = []
    for part in path.split("/"):
        if part == ".." and parts and parts[-1] != "..":
            parts.pop()
        elif part not in {"", "."}:
            parts.append(part)
    start = "/" if path.startswith("/") else ""
    end = "/" if is_folder(path) and parts else ""
    return start + "/".join(parts) + end or "./"


def are_normal(paths: Iterable[str]) -> bool:
    """Whether none of these has another spelling by `normalise`; looked at together, so some that have none count."""
    text = "\n".join(("", *paths))
    return not any(odd in text for odd in ("//", "/.", "\n."))


def are_plain(names: Collection[str], *, signs: bytes = b"") -> bool:
    """Whether all of these are spelled as most paths and ids are, or with these signs: there is nothing to ask.

    They are looked at together, at a fraction of the cost; none of them is a folder by its spelling.
    """
    text = "\n".join(("", *names, ""))
    if not text.isascii() or len(text.encode().translate(None, _PLAIN_BYTES + signs)) != len(names) + 1:
        return False
    return max(map(len, names), default=0) <= _PLAIN_LENGTH and not any(odd in text for odd in _NOT_PLAIN)


def is_folder(path: str) -> bool:
    """It names a folder: by a trailing slash, or by ending in `.` or `..`."""
    return path.endswith("/") or path.rsplit("/", 1)[-1] in {".", ".."}


def is_glob(path: str) -> bool:
    """It is a pattern that may match several files: it has `*`, `?` or `[…]`."""
    return _GLOB.search(path) is not None


def would_find(pattern: str, path: str) -> bool:
    """Whether a pattern finds a file, by spelling alone: `**` crosses folders, and what is hidden has to be named."""
    return _finds(pattern.split("/"), path.split("/"))


def beginning_as(pattern: str, paths: Sequence[str]) -> Iterator[str]:
    """Of sorted paths those that begin as a pattern does, up to its first sign: no others can be found by it."""
    start = _GLOB.split(pattern, maxsplit=1)[0]
    for number in range(bisect_left(paths, start), len(paths)):
        if not paths[number].startswith(start):
            return
        yield paths[number]


def _finds(pattern: list[str], path: list[str]) -> bool:
    import fnmatch  # for the few who ask

    if not pattern or not path:
        return pattern == path
    part, *rest = pattern
    if part == "**":
        starts = range(next((i for i, name in enumerate(path) if name[:1] == "."), len(path)) + 1)
        return any(_finds(rest or ["*"], path[i:]) for i in starts)
    if path[0][:1] == "." and part[:1] != ".":
        return False
    return fnmatch.fnmatchcase(path[0], part) and _finds(rest, path[1:])


def is_text(path: str) -> bool:
    """It is a name that can be written down: valid UTF-8."""
    try:
        path.encode()
    except UnicodeEncodeError:
        return False
    return True


def parents(path: str) -> list[str]:
    """The folders that contain a normalised path, nearest last, without trailing slashes."""
    parts = path.rstrip("/").split("/")
    return ["/".join(parts[:count]) for count in range(1, len(parts))]


def folders(paths: Iterable[str]) -> set[str]:
    """The folders that these normalised paths are in; "" is the project itself."""
    return {path.rstrip("/").rpartition("/")[0] for path in paths}


def output_problem(path: str) -> str:
    """Why this cannot be an output of an artifact, or "" if it can."""
    if PLAIN.fullmatch(path):
        return ""
    if not path.strip():
        return "is empty"
    if re.search(_UNPRINTABLE, path):
        return "has control characters"
    return _place_problem(path) or _size_problem(path)


def _place_problem(path: str) -> str:
    clean = normalise(path)
    first = clean.split("/", 1)[0]
    if clean.startswith("/"):
        return "is absolute; outputs are given relative to the project"
    if clean.startswith("~"):
        return "starts with '~', which is not expanded; outputs are given relative to the project"
    if first == "..":
        return "is outside the project"
    if clean == "./":
        return "is the project itself"
    if first.casefold() in PROTECTED:
        return f"is inside {first}/, which no artifact may write"
    return ""


def _size_problem(path: str) -> str:
    if len(path.encode()) > PATH_BYTES:
        return f"is longer than {PATH_BYTES} bytes"
    if any(len(part.encode()) > PART_BYTES for part in path.split("/")):
        return f"has a name longer than {PART_BYTES} bytes"
    return ""
