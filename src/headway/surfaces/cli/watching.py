"""Who watches a run for the command line: a view on a terminal, lines elsewhere, annotations on GitHub."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from io import TextIOWrapper

from headway.engine.result import Reporter
from headway.surfaces.cli.lines import HEARTBEAT, Lines
from headway.surfaces.cli.screen import Screen

NO = frozenset({"", "0", "false"})


def watching(
    screen: Screen, *, verbose: bool, where: str = "", stopping: Callable[[], str] = lambda: ""
) -> AbstractContextManager[Reporter]:
    """The reporter that suits this process; leaving it leaves the screen tidy, whatever happened."""
    environ = os.environ
    seconds = _seconds(environ.get("HEADWAY_HEARTBEAT"))
    stream = sys.stderr if screen.as_json else sys.stdout
    if isinstance(stream, TextIOWrapper):
        stream.reconfigure(line_buffering=True)  # whoever reads the log wants to read it now
    if is_on_github(environ):
        from headway.surfaces.cli.github import Annotated

        return Annotated(screen, heartbeat=seconds or HEARTBEAT, where=where)
    if stream.isatty() and not is_plain(environ):
        from headway.surfaces.cli.live import SILENCE, View

        return View(screen, stream, stopping=stopping, silence=seconds or SILENCE, where=where, verbose=verbose)
    return Lines(screen, heartbeat=seconds or HEARTBEAT, where=where)


def is_on_github(environ: Mapping[str, str]) -> bool:
    """Whether GitHub runs this, and shows what it is told."""
    return environ.get("GITHUB_ACTIONS", "") not in NO


def is_plain(environ: Mapping[str, str]) -> bool:
    """Whether nobody looks at this terminal, or it cannot draw."""
    return environ.get("CI", "") not in NO or environ.get("TERM", "") in ("dumb", "")


def _seconds(text: str | None) -> float:
    try:
        return max(float(text or 0), 0)
    except ValueError:
        return 0.0
