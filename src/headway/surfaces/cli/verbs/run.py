"""Make what is stale. Words name artifacts, patterns of them ('*/write') or output paths, as the plan writes them;
without any, all of the plan.

headway run                 make what is stale; after an interruption, the same command goes on
headway run report          only this artifact and what it requires
headway run -n              say what would be made, and why
"""

from __future__ import annotations

import argparse
import os
import shlex
import signal
import sys
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any

from headway.calm import still
from headway.core.ids import as_word
from headway.engine.result import Options
from headway.surfaces.cli.lines import Lines
from headway.surfaces.cli.meant import is_python, work_of
from headway.surfaces.cli.options import add_json, add_plan, add_take, at_least, project_of, root_of, same_plan
from headway.surfaces.cli.screen import Screen
from headway.surfaces.cli.watching import is_on_github, watching
from headway.surfaces.cli.where import throughout, within

if TYPE_CHECKING:
    from headway.authoring import Plan
    from headway.engine.asking import Question
    from headway.engine.preview import PlanPreview
    from headway.engine.prompts import Question as PromptQuestion
    from headway.work import Meant, Work


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "targets", metavar="ID", nargs="*", help="artifacts, patterns or output paths; or a goal, as one word"
    )
    parser.add_argument("-i", "--incremental", action="store_true", help="only what is stale: the default")
    parser.add_argument("--force", "--rerun-all", dest="rerun_all", action="store_true", help="make everything anew")
    parser.add_argument(
        "-n",
        "--show-plan",
        "--dry-run",
        dest="preview",
        action="store_true",
        help="say what would be made, why, and what it takes",
    )
    parser.add_argument(
        "--diff-plan", action="store_true", help="say what would be made, and how the plan differs from its last run"
    )
    parser.add_argument("-j", "--jobs", type=at_least(1), metavar="N", help="how many at once (default: cores)")
    parser.add_argument("--limit", type=at_least(1), metavar="N", help="make at most N artifacts")
    parser.add_argument(
        "--until", action="extend", nargs="+", default=[], metavar="ID", help="this artifact and what it requires"
    )
    parser.add_argument("--rerun", action="extend", nargs="+", default=[], metavar="ID", help="make this one anew")
    parser.add_argument(
        "--rerun-from", action="append", default=[], metavar="ID", help="this one and all after it; or a phase"
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
        type=_reason,
        metavar="REASON",
        help="prompts were changed on purpose: go on with the new ones",
    )
    parser.add_argument("--reason", default="", help="why, for the record")
    parser.add_argument("-k", "--keep-going", action="store_true", help="go on after a failure: the default")
    parser.add_argument("--fail-fast", action="store_true", help="stop at the first failure")
    parser.add_argument(
        "--set",
        action="append",
        default=[],
        metavar="K=V",
        help="a variable of the plan, for this run and all after it, until the next --set or until the file changes it",
    )
    add_take(parser)
    parser.add_argument(
        "--max-time", type=at_least(0, float), metavar="S", help="start nothing after this many seconds"
    )
    parser.add_argument(
        "--fresh", action="store_true", help="the plan becomes what its file says, whatever it has become since"
    )
    parser.add_argument("--resume", action="store_true", help="go on after an interruption: what run does anyway")
    parser.add_argument("-y", "--yes", action="store_true", help="do not ask before spending")
    parser.add_argument(
        "-v", "--verbose", action="store_true", help="first the change analysis: unchanged, changed and why"
    )
    add_plan(parser)
    add_json(parser)


def _reason(text: str) -> str:
    """Why, in words: without any there is nothing to record."""
    if not text.strip():
        raise argparse.ArgumentTypeError("say why, for the record")
    return text


def run(args: Any, screen: Screen) -> int:
    plan = _in_python(args)
    if plan is not None and (known := plan.at_rest(os.environ)) is not None:
        return _say(*known, screen)
    with still():
        work, meant = work_of(args, project_of(args, screen), plan)
    variables = _variables(args.set, lambda: work.variables(meant))
    if args.preview or args.diff_plan:
        return _preview(work, meant, variables, args, screen)
    with still():
        meant = work.taken_in(meant, take=args.take or "", variables=variables)
    if variables:
        screen.note(f"Set {', '.join(args.set)}. It stays so until the next --set or a change of the file.")
    if meant.removed:
        from headway.surfaces.cli.receipt import left_behind, names

        gone, left = [spec.id for spec in meant.removed], work.files_of(meant)
        stay = f" {left_behind(left, 'Their files stay', same_plan(args))}." if left else ""
        screen.note(f"No longer in the plan: {names(gone)}.{stay}")
        for artifact_id, seq in meant.given_up.items():
            command = f"headway show {as_word(artifact_id)} --at {seq}{same_plan(args)}"
            screen.note(f"What somebody accepted of {artifact_id} is on record: {command}")
    if args.verbose and not screen.as_json:
        _analyse(work, meant, args, screen)
    asked = _Signals()
    watch = watching(screen, verbose=args.verbose, where=same_plan(args), stopping=asked.why)
    asked.aloud = isinstance(watch, Lines) and sys.__stderr__ is not None  # a view shows it; else 2 is another file
    if isinstance(watch, Lines):
        asked.waits = _waits_for_functions(meant, watch)
    with asked, watch as reporter:
        result = work.run(
            meant.plan_id,
            _options(args),
            reporter=reporter,
            functions=meant.functions,
            stop=asked.why,
            execution=meant.execution,
            agree=_ask(screen, args, asked),
            explain=_ask_why(screen, asked),
            warn=lambda text: screen.note(screen.style(f"{within(text, same_plan(args))}.", "yellow", err=True)),
        )
    result.gone[:0] = [spec.id for spec in meant.removed]
    if screen.as_json:
        screen.answer(throughout(result.to_dict(), same_plan(args)))
    if not args.plan and (behind := work.behind(meant)):
        screen.note(behind)
    return result.exit_code


def _in_python(args: Any) -> Plan | None:
    """The plan, if it is in Python and all of it is wanted: then it may be known that there is nothing to do."""
    asked = Options(jobs=args.jobs, fail_fast=args.fail_fast, yes=args.yes)
    more = (args.plan_id, args.set, args.take, args.fresh, args.preview, args.diff_plan, args.verbose)
    if not is_python(args.plan) or any(more) or _options(args) != asked or is_on_github(os.environ):
        return None
    root = root_of(args)
    from headway.authoring import load_plan

    return load_plan(args.plan, root)


def _say(text: str, document: str, screen: Screen) -> int:
    """What a run that looked at everything would say."""
    if screen.as_json:
        import msgspec

        screen.answer(msgspec.json.decode(document))
        screen.note(text)
    screen.say(text)
    return 0


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
        prompt_change=args.prompt_change or "",
        force_resume=args.force_resume,
        yes=args.yes,
    )


def _variables(pairs: list[str], known: Callable[[], Collection[str]]) -> dict[str, str]:
    """What --set sets. `known`: the plan's variables, for whoever forgot a value."""
    from headway.core.nearest import Nearest
    from headway.errors import UsageError

    wrong = [pair for pair in pairs if "=" not in pair]
    if wrong:
        names = known()
        name = wrong[0] if wrong[0] in names else Nearest(names).of(wrong[0]) or "NAME"
        facts = {"the plan's variables": ", ".join(names) or "none: vars: {NAME: VALUE} in the plan gives it one"}
        hint = f"headway run --set {name}=VALUE"
        raise UsageError(f"--set takes NAME=VALUE, not {wrong[0]}", facts=facts, hint=hint, code="usage.set")
    return dict(pair.split("=", 1) for pair in pairs)


def _analyse(work: Work, meant: Meant, args: Any, screen: Screen) -> None:
    """What changed and what that comes to, before it is done."""
    from headway.surfaces.cli.preview import show_analysis

    show_analysis(work.preview(meant, _options(args)), screen, verbose=True)
    screen.say()
    screen.flush()


def _preview(work: Work, meant: Meant, variables: dict[str, str], args: Any, screen: Screen) -> int:
    from headway.surfaces.cli import preview as view

    take = args.take or ""
    preview = work.preview(meant, _options(args), take=take, variables=variables)
    changed = work.diff_plan(meant, take=take) if args.diff_plan else None
    difference, seq = changed if changed is not None else (None, 0)
    document = preview.to_dict()
    if args.diff_plan:
        document["diff"] = difference.to_dict() if difference is not None else None
    screen.answer(document)
    if args.verbose:
        view.show_analysis(preview, screen, verbose=True)
        screen.say()
    view.show_waves(preview, screen, verbose=args.verbose)
    view.show_estimates(preview, screen)
    view.show_known(preview, screen)
    if preview.changes is not None:
        view.show_changes(preview.changes, preview, screen)
    if args.diff_plan:
        screen.say()
        view.show_difference(difference, seq, screen)
    if preview.warning:
        screen.note(screen.style(f"{preview.warning}.", "yellow", err=True))
    from headway.surfaces.cli.hands import leads_on

    if preview.decide is not None:
        from headway.surfaces.cli.receipt import question

        leads = question(preview.decide, same_plan(args), _options(args).part)
    else:
        leads = _next(preview, args) or leads_on(work.status(meant, take=take), same_plan(args))
    screen.say(f"\n{leads}")
    return 0


def _next(preview: PlanPreview, args: Any) -> str:
    """What to type next; nothing where a run would make nothing."""
    if not preview.items:
        return "Nothing to do."
    if not preview.can_go_on:
        return ""
    first = f"Before it starts, run asks: {preview.question.text}. " if preview.question else ""
    given = {"--until": args.until, "--rerun": args.rerun, "--rerun-from": args.rerun_from, "--set": args.set}
    once = {"--take": args.take, "--limit": args.limit, "--prompt-change": args.prompt_change, "--reason": args.reason}
    given |= {flag: [str(value)] for flag, value in once.items() if value}
    switches = {"--rerun-all": args.rerun_all, "--fresh": args.fresh, "--force-resume": args.force_resume}
    switches |= {"--accept-edits": args.accept_edits, "--discard-edits": args.discard_edits}
    words = [*args.targets, *(word for flag, values in given.items() for value in values for word in (flag, value))]
    words += [flag for flag, is_on in switches.items() if is_on]
    return f"{first}Next: {shlex.join(['headway', 'run', *words])}{same_plan(args)}"


def _ask(screen: Screen, args: Any, signals: _Signals) -> Callable[[Question], bool]:
    """Ask whoever sits there; where nobody does, say what would agree."""

    def agree(question: Question) -> bool:
        text = f"{question.text[:1].upper()}{question.text[1:]}."
        if not screen.can_ask:
            screen.note(f"{text} Nothing was started. headway run -n{same_plan(args)} shows it; --yes agrees.")
            return False
        with signals.at_once():
            agreed = screen.ask(f"{text} Make it now? [y/N] ")
        if not agreed:
            screen.note(f"Nothing was started. headway run -n{same_plan(args)} shows it.")
        return agreed

    return agree


def _ask_why(screen: Screen, signals: _Signals) -> Callable[[Sequence[PromptQuestion]], str | None]:
    """Ask whoever sits there why prompts were changed: with a reason it goes on, and the reason is recorded."""

    def explain(changes: Sequence[PromptQuestion]) -> str | None:
        if not screen.can_ask:
            return None
        for changed in changes:
            screen.note(screen.style(f"{changed.text}.", "yellow", err=True))
        with signals.at_once():
            return screen.answer_to("Why was it changed? With a reason it goes on; Enter leaves all as it is: ")

    return explain


def _waits_for_functions(meant: Meant, lines: Lines) -> Callable[[], bool]:
    """Tells whether something that is being made may be a function: these are waited for, and commands are ended."""
    if meant.execution is None or meant.functions:
        return lambda: True
    state = meant.execution.state
    phases = (phase for pipeline in state.settings.pipelines for phase in pipeline.phases)
    if not any(spec.make for spec in (*state.artifacts.values(), *phases)):
        return lambda: False
    commands = {a for a, spec in state.artifacts.items() if spec.run}
    return lambda: not (lines.running and commands.issuperset(lines.running))


class _Signals:
    """Ctrl-C and SIGTERM ask the run to stop; a second one does not ask."""

    def __init__(self) -> None:
        self.aloud = False
        """Whether to say at once that it was heard: a function that is at work is waited for, however long."""
        self.waits: Callable[[], bool] = lambda: True
        """Whether there may be such a function."""
        self._why = ""
        self._patient = True
        self._before: dict[int, Any] = {}

    def why(self) -> str:
        return self._why

    @contextmanager
    def at_once(self) -> Iterator[None]:
        """While somebody is asked there is nothing to finish first."""
        self._patient = False
        try:
            yield
        finally:
            self._patient = True

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
        if self._why or not self._patient:
            raise KeyboardInterrupt
        self._why = why
        if self.aloud:
            with suppress(OSError):  # past the streams, in which the signal may have struck
                waits = b"; what runs in Python is waited for" if self.waits() else b""
                os.write(2, b"Stopping%s. Once more does not wait.\n" % waits)
