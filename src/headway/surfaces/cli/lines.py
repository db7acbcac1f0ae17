"""A run as lines: one for each artifact that was not simply kept, and a receipt. Plain enough for a log file."""

from __future__ import annotations

from collections.abc import Mapping

from headway.core.freshness import Reason
from headway.engine.result import RunResult
from headway.projections.story import seconds
from headway.surfaces.cli.screen import Screen

STYLE = {"made": "green", "failed": "red", "held": "yellow", "restored": "blue", "reused": "blue", "kept": "dim"}


class Lines:
    """Says what a run does, on stderr where stdout is for JSON."""

    def __init__(self, screen: Screen, *, verbose: bool = False) -> None:
        self._screen = screen
        self._say = screen.note if screen.as_json else screen.say
        self._verbose = verbose
        self._width = 8

    def begun(self, result: RunResult, stale: Mapping[str, Reason], jobs: int) -> None:
        self._width = min(max((len(a) for a in stale), default=8), 40)
        if self._verbose:
            for artifact_id in result.kept:
                self._line("kept", artifact_id, "", "up to date")

    def started(self, artifact_id: str, reason: Reason) -> None:
        pass

    def finished(self, artifact_id: str, outcome: str, reason: Reason, ms: int, note: str) -> None:
        took = seconds(ms) if outcome in ("made", "failed") else ""
        text = (
            note
            if outcome == "failed"
            else f"{reason.text}; {note}"
            if note and not reason.fresh
            else note or reason.text
        )
        if outcome == "kept":
            text = "inputs came out the same"
        self._line(outcome, artifact_id, took, text)

    def ended(self, result: RunResult) -> None:
        for question in result.prompts:
            self._say(self._screen.style(f"{question.text}.", "yellow"))
        for decision in result.decisions:
            self._decide(decision.code, decision.artifacts, decision.flags)
        for artifact_id, path in result.moved.items():
            self._say(f"{artifact_id}: {path} changed while it was being made. Next: headway run")
        for artifact_id, how in result.waiting.items():
            self._say(f"{artifact_id} waits: {how}")
        if result.gone:
            self._say(f"Units that are gone leave their files: {_some(result.gone)}. Next: headway gc --outputs")
        if result.unstable:
            self._say(f"Not the same twice, though nothing they read changed: {', '.join(result.unstable)}")
        self._say(self._receipt(result))

    def _decide(self, code: str, artifacts: list[str], flags: list[str]) -> None:
        names = ", ".join(artifacts[:5]) + (f" and {len(artifacts) - 5} more" if len(artifacts) > 5 else "")
        what = {
            "output_modified": "was edited since it was made",
            "untracked_output": "was there before it was ever made",
            "effects_uncertain": "has effects elsewhere and was interrupted",
            "adopted_edit": "is what somebody accepted, and out of date now",
            "prompt_changed": "was made with another prompt, and the plan is not finished",
            "pre_state_changed": "was made from another state than there is now",
            "edit_not_verified": "was edited, and verify does not agree with the edit",
        }.get(code, code)
        self._say(
            self._screen.style(
                f"{names}: {what}. It was not touched. Decide: {'  or  '.join(map(_command, flags))}", "yellow"
            )
        )

    def _receipt(self, result: RunResult) -> str:
        if result.status == "completed" and not (result.made or result.restored or result.reused or result.accepted):
            return f"Nothing to do: {_count(len(result.kept))} up to date."
        counts = {
            "made": len(result.made),
            "restored": len(result.restored),
            "reused": len(result.reused),
            "accepted": len(result.accepted),
            "kept": len(result.kept),
            "failed": len(result.failed),
            "blocked": len(result.blocked),
            "held": sum(len(decision.artifacts) for decision in result.decisions),
            "waiting": len(result.waiting),
        }
        parts = [f"{n} {name}" for name, n in counts.items() if n]
        end = f" in {seconds(result.duration_ms)}"
        return f"{', '.join(parts) or 'Nothing made'}{end}.{self._next(result)}"

    def _next(self, result: RunResult) -> str:
        if result.status == "interrupted":
            return " Interrupted; nothing is lost. Next: headway run"
        if result.paused is not None:
            until = f" until {result.paused.until}" if result.paused.until else ""
            where = f" at {result.paused.artifact}" if result.paused.artifact else ""
            return f" Paused ({result.paused.code}){where}{until}. Next: {result.paused.resume}"
        if result.failed:
            return f" Next: headway why {next(iter(result.failed))}"
        return ""

    def _line(self, outcome: str, artifact_id: str, took: str, text: str) -> None:
        word = self._screen.style(f"{outcome:<8}", STYLE.get(outcome, "dim"))
        self._say(f"{word} {artifact_id:<{self._width}}  {took:>8}  {text}".rstrip())


def _some(names: list[str]) -> str:
    return ", ".join(names[:5]) + (f" and {len(names) - 5} more" if len(names) > 5 else "")


def _command(flag: str) -> str:
    return f"headway run {flag}" if flag.startswith("-") else flag


def _count(number: int) -> str:
    return "1 artifact is" if number == 1 else f"{number} artifacts are"
