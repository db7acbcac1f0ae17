"""Putting away what artifacts made: files and phase ledgers in one archive, verified before anything is removed."""

from __future__ import annotations

import hashlib
import io
import os
import tarfile
import time
import zlib
from collections.abc import Collection, Mapping
from contextlib import suppress
from typing import IO, NamedTuple

import msgspec

from headway.core.lifecycle import last_made
from headway.core.state import State
from headway.disk import REAL, make_folders
from headway.errors import DamageError

CHUNK = 1 << 20


class Archived(NamedTuple):
    """An archive: where it is, and the files in it by path, each with its sha256."""

    path: str
    files: dict[str, str]


def archive(
    root: str, home: str, name: str, state: State, ids: Collection[str], documents: Mapping[str, bytes]
) -> Archived:
    """Write and verify an archive of the outputs of these artifacts, and of documents by name."""
    folder = os.path.join(home, "archive")
    make_folders(REAL, folder)
    path = os.path.join(folder, f"{time.strftime('%Y%m%dT%H%M%S', time.gmtime())}-{os.urandom(2).hex()}-{name}.tar.gz")
    files: dict[str, str] = {}
    partial = f"{path}.{os.getpid()}.tmp"
    with tarfile.open(partial, "x:gz") as tar:
        for output in _files(root, state, ids):
            files[output] = _sha256(os.path.join(root, output))
            tar.add(os.path.join(root, output), arcname=output, recursive=False)
        for document, data in documents.items():
            files[document] = hashlib.sha256(data).hexdigest()
            _add(tar, document, data)
        _add(tar, "MANIFEST.json", msgspec.json.encode(files))
    _verify(partial, files)
    with open(partial, "rb") as file:
        os.fsync(file.fileno())
    os.replace(partial, path)
    REAL.sync_folder(folder)
    return Archived(os.path.relpath(path, root), files)


def own_files(root: str, state: State, ids: Collection[str]) -> list[str]:
    """Recorded outputs of these artifacts that stand as they were recorded, and that no other artifact writes. A file
    that they only change in place was there before them, and stays."""
    wanted = set(ids)
    own = {path for artifact_id in wanted for path in state.artifacts[artifact_id].produces}
    others = {p for a, spec in state.artifacts.items() if a not in wanted for p in (*spec.produces, *spec.modifies)}
    digests: dict[str, set[str]] = {}
    for artifact_id in wanted:
        done = last_made(state, artifact_id)
        for output in done.outputs if done is not None else ():
            if output.path in own and output.path not in others and output.kind in ("file", "exec"):
                digests.setdefault(output.path, set()).add(output.digest)
    found = []
    for path, known in sorted(digests.items()):
        full = os.path.join(root, path)
        if os.path.isfile(full) and not os.path.islink(full) and _sha256(full) in known:
            found.append(path)
    return found


def _files(root: str, state: State, ids: Collection[str]) -> list[str]:
    """Every file that stands at an output path of these artifacts, edited ones too."""
    found: dict[str, None] = {}
    for artifact_id in ids:
        spec = state.artifacts[artifact_id]
        for path in (*spec.produces, *spec.modifies):
            full = os.path.join(root, path)
            if os.path.isdir(full) and not os.path.islink(full):
                inner = (os.path.join(base, name) for base, _, names in os.walk(full) for name in sorted(names))
                found.update(dict.fromkeys(os.path.relpath(name, root) for name in inner if os.path.isfile(name)))
            elif os.path.isfile(full):
                found[path] = None
    return list(found)


def _add(tar: tarfile.TarFile, name: str, data: bytes) -> None:
    info = tarfile.TarInfo(name)
    info.size = len(data)
    tar.addfile(info, io.BytesIO(data))


def _verify(path: str, files: Mapping[str, str]) -> None:
    """Read it back: every file is in it, byte for byte."""
    found: dict[str, str] = {}
    with suppress(tarfile.TarError, zlib.error, EOFError, OSError), tarfile.open(path, "r:gz") as tar:
        for member in tar:
            stream = tar.extractfile(member)
            if stream is not None:
                found[member.name] = _digest(stream)
    wrong = [name for name, digest in files.items() if found.get(name) != digest]
    if wrong:
        raise DamageError(
            "The archive does not hold what was put into it; nothing was removed",
            facts={"archive": path, "differs": ", ".join(wrong[:5])},
            hint="check the disk, and try again",
            code="archive.differs",
        )


def _sha256(path: str) -> str:
    with open(path, "rb") as file:
        return _digest(file)


def _digest(stream: IO[bytes]) -> str:
    digest = hashlib.sha256()
    while data := stream.read(CHUNK):
        digest.update(data)
    return digest.hexdigest()
