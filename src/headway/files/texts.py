"""Texts as files that nobody changes: prompts, responses and outputs without a path, for whoever reads them by path.

Each is called by its digest. They are derived: their bytes are blobs. Whoever is about to read one has it put there;
those that only a phase ledger names are put there with it.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable

from headway import bulk
from headway.bulk import Order
from headway.disk import REAL, temporary_for, write_file

MODE = 0o444


class Texts:
    """The folder with the texts of one project."""

    def __init__(self, root: str, home: str, read: Callable[[str], bytes]) -> None:
        """`read`: a text's bytes by its digest."""
        self._folder = os.path.join(home, "texts")
        self._below = os.path.relpath(self._folder, root)
        self._read = read

    def path(self, digest: str) -> str:
        """Where a text is, or will be: from the project."""
        return f"{self._below}/{digest}"

    def put(self, digest: str, data: bytes | None = None) -> str:
        """Have a text, whose bytes may be at hand, in its place; where that is, from the project."""
        full = f"{self._folder}/{digest}"
        # Whoever finds half of it will see by its digest.
        is_new = data is not None and not bulk.write([(full, data, MODE, None, None)])[0][0]
        if not is_new and not _has_digest(full, digest):
            try:
                os.makedirs(self._folder, exist_ok=True)
                write_file(REAL, full, [self._read(digest) if data is None else data], durable=False)
                os.chmod(full, MODE)
            except OSError as error:  # whichever text it is, others will not fare better
                raise OSError(error.errno, error.strerror, self._folder) from error
        return self.path(digest)

    def size(self, digest: str) -> int:
        """How many bytes there are of a text; -1 where there is none."""
        full = f"{self._folder}/{digest}"
        try:
            return os.lstat(full).st_size if os.access(full, os.F_OK) else -1
        except OSError:
            return -1

    def order(self, digest: str, data: bytes) -> Order:
        """To write a text, in the place of half of it, if need be."""
        full = f"{self._folder}/{digest}"
        return full, data, MODE, temporary_for(full), None


def _has_digest(path: str, digest: str) -> bool:
    """Whether a text is where it was put, and still what it was."""
    try:
        with open(path, "rb") as file:
            return hashlib.sha256(file.read()).hexdigest() == digest
    except OSError:
        return False
