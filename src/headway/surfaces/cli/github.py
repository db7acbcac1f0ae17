"""A run on GitHub Actions: lines for its log, failures as annotations, the receipt as a step summary."""

from __future__ import annotations

import os
from collections.abc import Iterator

from headway.core.freshness import Reason
from headway.engine.result import RunResult
from headway.projections.story import seconds
from headway.surfaces.cli.lines import Lines
from headway.surfaces.cli.receipt import MOST, closing, receipt


class Annotated(Lines):
    """Lines, and what GitHub shows beside a change."""

    def finished(self, artifact_id: str, outcome: str, reason: Reason, ms: int, note: str) -> None:
        super().finished(artifact_id, outcome, reason, ms, note)
        if outcome in ("failed", "held"):
            kind = "error" if outcome == "failed" else "warning"
            title = _escaped(f"{artifact_id} {outcome}").replace(":", "%3A").replace(",", "%2C")
            self._say(f"::{kind} title={title}::{_escaped(note or reason.text)}")

    def ended(self, result: RunResult) -> None:
        super().ended(result)
        path = os.environ.get("GITHUB_STEP_SUMMARY")
        if path:
            try:
                with open(path, "a", encoding="utf-8") as file:
                    file.write("\n".join(summary(result, self._where)) + "\n")
            except OSError as error:  # the run is what counts
                self._screen.note(f"The step summary could not be written: {error.strerror}")


def summary(result: RunResult, where: str = "") -> Iterator[str]:
    """The receipt in Markdown: the line itself, what failed, and what is to be decided."""
    yield f"### headway: {result.plan_id} {result.status}"
    yield ""
    yield receipt(result, where)
    if result.failed:
        yield ""
        yield "| failed | why |"
        yield "| --- | --- |"
        for artifact_id, error in list(result.failed.items())[:MOST]:
            yield f"| `{artifact_id}` | {_cell(error)} |"
        if len(result.failed) > MOST:
            yield f"| {len(result.failed) - MOST} more | headway status{where} |"
    said = [line for _, line in closing(result, where)]
    if said:
        yield ""
        yield from (f"- {_cell(line)}" for line in said)
    if result.saved_ms:
        yield ""
        yield f"Work saved: {seconds(result.saved_ms)}, by what these artifacts took when they were made."
    yield ""


def _escaped(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _cell(text: str) -> str:
    return " ".join(text.replace("|", "\\|").replace("<", "&lt;").split())
