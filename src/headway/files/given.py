"""A file that somebody named: its bytes, or an error that says what is wrong with the name."""

from __future__ import annotations

from headway.errors import NotFound, UsageError


def read_given(path: str) -> bytes:
    """The bytes of the file."""
    try:
        with open(path, "rb") as file:
            return file.read()
    except FileNotFoundError as error:
        raise NotFound(f"There is no file {path}", hint="check the path", code="file.none") from error
    except (OSError, ValueError) as error:  # ValueError: a NUL in the name
        raise UsageError(
            f"{path!r} cannot be read",
            facts={"reason": getattr(error, "strerror", None) or error},
            hint="check the path and its permissions",
            code="file.unreadable",
        ) from error
