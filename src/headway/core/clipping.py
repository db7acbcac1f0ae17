"""Texts that have to fit: one line of so many characters, so many tokens. Pure."""

from __future__ import annotations

BYTES_PER_TOKEN = 3
"""Less than it usually is, so that a budget is never exceeded."""


def clip(text: str, most: int) -> str:
    """A text in one line of so many characters."""
    line = " ".join(text[: most * 4].split())
    return line if len(line) <= most else f"{line[: most - 1]}…"
