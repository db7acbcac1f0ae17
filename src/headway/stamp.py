"""The nothing-to-do case: read one compact file, stat what it names, stop. Imports next to nothing, on purpose.

A stamp is written when everything of a plan file's plan was fresh and nothing was open. It names all that the verdict
depended on: the ledger, the plan file, sources, outputs, code, folders behind patterns, paths that must be no file,
declared variables, versions, and the boot. Whatever differs, however little, the full judgement decides.
"""

import marshal
import os
import sys
import zlib

from headway.bulk import changed, known_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
    from typing import Any

    from headway.bulk import Known

FORMAT = 7
LOT = 100
"""So many files are compared at a time: few enough that the memory for one lot is used again for the next."""
MANY = 20_000
"""With so many files, looking at them by two is worth a process, also where the other core is busy."""

HOME = ".headway"
MARKERS = (f"{HOME}/project.json", "headway.toml", "headway.yaml")
DEFAULTS = ("headway.yaml", "headway.json")
PLAIN = frozenset({"-i", "--incremental", "-y", "--yes", "-k", "--keep-going", "--resume", "--fail-fast"})
WITH_VALUE = frozenset({"-j", "--jobs"})


def nothing_to_do(words: "list[str]", version: str) -> "tuple[str, str] | None":
    """What `headway run` with these words prints, on stdout and stderr, when it has nothing to do; None if that is not
    known.
    """
    asked = _asked(words)
    if asked is None:
        return None
    plan, as_json = asked
    root = _root(os.getcwd())
    if root is None:
        return None
    here, known = os.getcwd(), None
    try:
        file = os.path.relpath(plan, root) if plan else next((n for n in DEFAULTS if os.path.exists(f"{root}/{n}")), "")
        known = _holds(root, file, version, as_json) if file else None
    except (OSError, ValueError, EOFError, TypeError):
        known = None
    if known is None:
        os.chdir(here)
    return known


def _asked(words: "list[str]") -> "tuple[str, bool] | None":
    """The plan file and whether JSON is wanted, if these words ask for nothing else."""
    plan, as_json, rest = "", False, list(words)
    while rest:
        word = rest.pop(0)
        if word in WITH_VALUE and rest:
            number = rest.pop(0)
            if not (number.isascii() and number.isdigit() and int(number)):
                return None  # the full parser complains
        elif word == "--plan" and rest:
            plan = rest.pop(0)
        elif word == "--json":
            as_json = True
        elif word not in PLAIN:
            return None
    return plan, as_json


def _root(folder: str) -> "str | None":
    """The project's root, where it is plain to see; the full search handles the rest."""
    home = os.path.expanduser("~")
    while True:
        if folder == home or _might_be_configured(folder):
            return None
        if any(os.path.exists(f"{folder}/{mark}") for mark in MARKERS):
            return folder
        parent = os.path.dirname(folder)
        if parent == folder:
            return None
        folder = parent


def _might_be_configured(folder: str) -> bool:
    """Whether pyproject.toml may make this folder a project: the full search reads it properly."""
    try:
        with open(f"{folder}/pyproject.toml", "rb") as file:
            return b"headway" in file.read()
    except OSError:
        return False


def _holds(root: str, plan: str, version: str, as_json: bool) -> "tuple[str, str] | None":
    stamp = _read(f"{root}/{HOME}", plan, _head(version), os.environ)
    if stamp is None:
        return None
    text, document, world, _ = stamp
    os.chdir(root)
    if not _stands(world):
        return None
    return (f"{document}\n", f"{text}\n") if as_json else (f"{text}\n", "")


def is_left(root: str, plan_id: str) -> bool:
    """Whether a plan that Python code builds has a stamp at all, before it is asked what it says."""
    return os.path.exists(path_of(f"{root}/{HOME}", name_of(plan_id)))


def at_rest(
    root: str, plan_id: str, version: str, environ: "Mapping[str, str]", *, built: str
) -> "tuple[str, str] | None":
    """What a run of a plan says, in words and as JSON, if Python code has built just what is known to have nothing to
    do; None if that is not known.
    """
    if not built:
        return None
    try:
        stamp = _read(f"{root}/{HOME}", name_of(plan_id), _head(version, built), environ)
        return stamp[:2] if stamp is not None and _stands(stamp[2], root) else None
    except (OSError, ValueError, EOFError, TypeError):
        return None


def name_of(plan_id: str) -> str:
    """The name of the stamp for a plan that Python code builds, whoever runs that code."""
    return f"python#{plan_id}"


def built(source: str, specs: "Iterable[Any]", functions: "Mapping[str, Callable[..., Any]]") -> str:
    """What Python code has built: the plan, and its functions by their code; "" if that cannot be told."""
    if any(make.startswith("live:") for make in {spec.make for spec in specs if not spec.version}):
        return ""
    codes = {getattr(function, "__code__", None) for function in set(functions.values())}
    if None in codes:
        return ""
    from hashlib import sha256  # whoever builds a plan in Python has it

    parts = sorted((code.co_filename, code.co_firstlineno, marshal.dumps(code)) for code in codes if code is not None)
    return sha256(repr((source, parts)).encode()).hexdigest()


def changes(
    root: str, plan: str, version: str, environ: "Mapping[str, str]", *, built: str = ""
) -> "tuple[frozenset[str], dict[str, Any]] | None":
    """The files that are no longer what a stamp names, and what it was written with; None if more has changed."""
    try:
        stamp = _read(f"{root}/{HOME}", plan, _head(version, built), environ)
        if stamp is None or not _surroundings_stand(stamp[2], f"{root}/"):
            return None
    except (OSError, ValueError, EOFError, TypeError):
        return None
    ledgers, lots, folders, folder_stats, absent, apart = stamp[2]
    files = {path: found for lot in lots for path, found in _opened(lot)}
    paths = list(files)
    touched = frozenset([paths[number] for number in changed(f"{root}/", paths, list(files.values()))])
    if touched.intersection(apart):
        return None
    return touched, {
        "ledgers": ledgers,
        "files": files,
        "folders": dict(zip(folders, folder_stats, strict=True)),
        "absent": absent,
        "env": dict(stamp[3]),
        "apart": apart,
    }


def stat_at(path: str) -> "Known | None":
    """What tells that a file was not touched; None if there is none."""
    try:
        return known_of(os.lstat(path))
    except OSError:
        return None


def _read(
    home: str, plan: str, head: "tuple[object, ...]", environ: "Mapping[str, str]"
) -> "tuple[str, str, tuple[Any, ...], tuple[Any, ...]] | None":
    """A stamp: what is said, in words and as JSON, the world in which it is true, and the variables there. None if it
    is another's.
    """
    with open(path_of(home, plan), "rb", opener=_at_once) as file:
        data = memoryview(file.read())
    if zlib.crc32(data[4:]).to_bytes(4, "big") != data[:4]:
        return None
    about, text, document, env, world = marshal.loads(data[4:])  # noqa: S302  # ours, by its checksum
    if about != head or any(environ.get(name) != value for name, value in env):
        return None
    return text, document, world, env


def _at_once(path: str, flags: int) -> int:
    """Open what is there without waiting: a pipe in the place of a file has no end, and cannot be sought in."""
    return os.open(path, flags | os.O_NONBLOCK)


def _stands(world: "tuple[Any, ...]", root: str = "") -> bool:
    """Whether files, folders and ledgers are what they were, below `root` or else below the current folder."""
    if not _surroundings_stand(world, f"{root}/" if root else ""):
        return False
    lots = world[1]
    if not root and len(lots) * LOT >= MANY:
        return _same_by_two(lots)
    return _same(lots, f"{root}/" if root else "")


def _surroundings_stand(world: "tuple[Any, ...]", prefix: str) -> bool:
    """Whether all but the files is what it was: ledgers, folders, and what must not exist."""
    ledgers, _, folders, folder_stats, absent, _ = world
    for path, size, tail in ledgers:
        with open(prefix + path, "rb", opener=_at_once) as file:
            if file.seek(0, 2) != size:
                return False
            file.seek(size - len(tail))
            if file.read() != tail:
                return False
    for path, known in zip(folders, folder_stats, strict=True):
        found = os.stat(prefix + path)
        if (found.st_mtime_ns, found.st_ctime_ns, found.st_ino) != known:
            return False
    return not any(is_there(prefix + path) for path in absent)


def is_there(path: str) -> bool:
    """Whether there is a file by now, or a folder where the path ends in a slash."""
    return os.path.isdir(path) if path[-1:] == "/" else os.path.isfile(path)


def _lots(files: "Mapping[str, tuple[int, int, int, int]]") -> "Iterator[tuple[bytes, bytes]]":
    """Files as they are looked at: paths as the system takes them, and stats as they are compared, all in one."""
    known = list(files.items())
    for start in range(0, len(known), LOT):
        paths, stats = zip(*known[start : start + LOT], strict=True)
        yield os.fsencode("\0".join(paths)), marshal.dumps(list(stats))


def _opened(lot: "tuple[bytes, bytes]") -> "Iterator[tuple[str, tuple[int, int, int, int]]]":
    """The files of a lot, one by one."""
    paths, stats = lot
    return zip(os.fsdecode(paths).split("\0"), marshal.loads(stats), strict=True)  # noqa: S302  # as above


def _same(lots: "Sequence[tuple[bytes, bytes]]", prefix: str = "") -> bool:
    """Whether these files have these stats."""
    return not any(
        changed(prefix, os.fsdecode(paths).split("\0"), marshal.loads(stats))  # noqa: S302  # as above
        for paths, stats in lots
    )


def _same_by_two(lots: "Sequence[tuple[bytes, bytes]]") -> bool:
    """The same for many files: a child looks at every other lot. For a process without threads."""
    child = os.fork()
    if not child:
        same = False
        try:
            same = _same(lots[1::2])
        finally:
            os._exit(0 if same else 1)
    same = False
    try:
        same = _same(lots[::2])
    finally:
        _, status = os.waitpid(child, 0)
    return same and status == 0


def _head(version: str, built: str = "") -> "tuple[object, ...]":
    try:
        with open("/proc/sys/kernel/random/boot_id", "rb") as file:
            boot = file.read()
    except OSError:
        boot = b""
    return (FORMAT, version, sys.version, boot, built)


def path_of(home: str, plan: str) -> str:
    """Where the stamp of a plan file is."""
    return f"{home}/stamps/{plan.replace('%', '%25').replace('/', '%2F')}"


def write(
    home: str,
    plan: str,
    version: str,
    *,
    text: str,
    document: str,
    ledgers: "Iterable[tuple[str, int, bytes]]",
    env: "Mapping[str, str | None]",
    files: "Mapping[str, tuple[int, int, int, int]]",
    folders: "Mapping[str, tuple[int, int, int]]",
    absent: "Iterable[str]",
    apart: "Iterable[str]" = (),
    built: str = "",
) -> None:
    """Leave a stamp. It is derived: a disk that refuses it refuses nothing that matters.

    `apart` are the files that are nobody's source or output: when one of them changes, it may concern any artifact.
    `built` tells what Python code has built, where the plan is not a file that can be looked at.
    """
    world = (
        tuple(ledgers),
        tuple(_lots(files)),
        tuple(folders),
        tuple(folders.values()),
        tuple(absent),
        tuple(apart),
    )
    content = (_head(version, built), text, document, tuple(sorted(env.items())), world)
    data = marshal.dumps(content)  # type: ignore[arg-type]  # tuples, texts, numbers and bytes only
    target = path_of(home, plan)
    temporary = f"{target}.{os.getpid()}.tmp"
    try:
        os.makedirs(os.path.dirname(target), exist_ok=True)
        with open(temporary, "wb") as file:
            file.write(zlib.crc32(data).to_bytes(4, "big") + data)
        os.replace(temporary, target)
    except OSError:
        _remove(temporary)


def forget(home: str, plan: str) -> None:
    """No stamp from here on."""
    _remove(path_of(home, plan))


def _remove(path: str) -> None:
    try:
        os.unlink(path)
    except OSError:
        return
