"""Make what is stale. Words name artifacts, patterns of them ('*/write') or output paths; without any, all of the plan.

headway run                 make what is stale; after an interruption, the same command goes on
headway run report          only this artifact and what it requires
headway run -n              say what would be made, and why
"""

from __future__ import annotations

import argparse
import signal
from typing import Any

from headway.engine.result import Options
from headway.surfaces.cli.lines import Lines
from headway.surfaces.cli.meant import work_of
from headway.surfaces.cli.options import add_json, add_plan, at_least, project_of
from headway.surfaces.cli.screen import Screen
from headway.work import Meant, Work


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "targets", metavar="ID", nargs="*", help="artifacts, patterns or output paths; or a goal, as one word"
    )
    parser.add_argument("-i", "--incremental", action="store_true", help="only what is stale: the default")
    parser.add_argument("--force", "--rerun-all", dest="rerun_all", action="store_true", help="make everything anew")
    parser.add_argument(
        "-n", "--show-plan", "--dry-run", dest="preview", action="store_true", help="say what would be made"
    )
    parser.add_argument("-j", "--jobs", type=at_least(1), metavar="N", help="how many at once (default: cores)")
    parser.add_argument("--limit", type=at_least(1), metavar="N", help="make at most N artifacts")
    parser.add_argument(
        "--until", action="extend", nargs="+", default=[], metavar="ID", help="this artifact and what it requires"
    )
    parser.add_argument("--rerun", action="extend", nargs="+", default=[], metavar="ID", help="make this one anew")
    parser.add_argument(
        "--rerun-from", action="extend", nargs="+", default=[], metavar="ID", help="this one and all after it"
    )
    edits = parser.add_mutually_exclusive_group()
    edits.add_argument("--accept-edits", action="store_true", help="edited outputs count as they are")
    edits.add_argument("--discard-edits", action="store_true", help="set edited outputs aside (they are kept as blobs)")
    edits.add_argument(
        "--force-resume", action="store_true", help="accept edits, and go on from a state that somebody changed"
    )
    parser.add_argument(
        "--resume-allow-prompt-change",
        "--prompt-change",
        dest="prompt_change",
        metavar="REASON",
        default="",
        help="prompts were changed on purpose: go on with the new ones",
    )
    parser.add_argument("--reason", default="", help="why, for the record")
    parser.add_argument("-k", "--keep-going", action="store_true", help="go on after a failure: the default")
    parser.add_argument("--fail-fast", action="store_true", help="stop at the first failure")
    parser.add_argument(
        "--set", action="append", default=[], metavar="K=V", help="a variable of the plan, for this run on"
    )
    parser.add_argument("--take", choices=("file", "ledger"), help="who wins where both changed the same thing")
    parser.add_argument(
        "--max-time", type=at_least(0, float), metavar="S", help="start nothing after this many seconds"
    )
    parser.add_argument(
        "--fresh", action="store_true", help="the plan becomes what its file says, whatever it has become since"
    )
    parser.add_argument("--resume", action="store_true", help="go on after an interruption: what run does anyway")
    parser.add_argument("-y", "--yes", action="store_true", help="do not ask before spending")
    parser.add_argument("-v", "--verbose", action="store_true", help="also list what is kept")
    add_plan(parser)
    add_json(parser)


def run(args: Any, screen: Screen) -> int:
    work, meant = work_of(args, project_of(args))
    variables = _variables(args.set)
    if args.preview:
        return _preview(work, meant, variables, args, screen)
    meant = work.taken_in(meant, take=args.take or "", variables=variables)
    asked = _Signals()
    with asked:
        result = work.run(
            meant.plan_id,
            _options(args),
            reporter=Lines(screen, verbose=args.verbose),
            functions=meant.functions,
            stop=asked.why,
            execution=meant.execution,
        )
    screen.answer(result.to_dict())
    return result.exit_code


def _options(args: Any) -> Options:
    return Options(
        targets=tuple(args.targets),
        until=tuple(args.until),
        limit=args.limit,
        jobs=args.jobs,
        rerun=tuple(args.rerun),
        rerun_from=tuple(args.rerun_from),
        rerun_all=args.rerun_all,
        fail_fast=args.fail_fast,
        on_edit="accept" if args.accept_edits or args.force_resume else "discard" if args.discard_edits else None,
        reason=args.reason,
        max_time=args.max_time,
        prompt_change=args.prompt_change,
        force_resume=args.force_resume,
    )


def _variables(pairs: list[str]) -> dict[str, str]:
    from headway.errors import UsageError

    wrong = [pair for pair in pairs if "=" not in pair]
    if wrong:
        raise UsageError(f"--set takes K=V, not {wrong[0]}", hint="headway run --set style=short", code="usage.set")
    return dict(pair.split("=", 1) for pair in pairs)


def _preview(work: Work, meant: Meant, variables: dict[str, str], args: Any, screen: Screen) -> int:
    preview = work.preview(meant, _options(args), variables=variables)
    stale, kept = preview.stale, len(preview.selected) - len(preview.stale)
    screen.answer({"plan_id": meant.plan_id, "stale": {a: r.to_dict() for a, r in stale.items()}, "kept": kept})
    for number, wave in enumerate(preview.judged.judge.graph.waves(), 1):
        for artifact_id in wave:
            if artifact_id in stale:
                screen.say(f"wave {number}  {artifact_id}  {screen.style(stale[artifact_id].text, 'dim')}")
    screen.say(f"{len(stale)} to make at most, {kept} up to date.")
    return 0


class _Signals:
    """Ctrl-C and SIGTERM ask the run to stop; a second one does not ask."""

    def __init__(self) -> None:
        self._why = ""
        self._before: dict[int, Any] = {}

    def why(self) -> str:
        return self._why

    def __enter__(self) -> None:
        self._before[signal.SIGCHLD] = signal.signal(signal.SIGCHLD, signal.SIG_DFL)  # ignored, no exit code is told
        for number, why in (
            (signal.SIGINT, "interrupted"),
            (signal.SIGTERM, "terminated"),
            (signal.SIGHUP, "terminated"),
        ):
            self._before[number] = signal.signal(number, lambda *_, why=why: self._ask(why))

    def __exit__(self, *_: object) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)

    def _ask(self, why: str) -> None:
        if self._why:
            raise KeyboardInterrupt
        self._why = why
