"""From a command line to a verb. Knows the list of verbs and how errors leave; what a verb does is its own module."""

from __future__ import annotations

import gc
import sys
from contextlib import nullcontext
from importlib import import_module
from typing import TYPE_CHECKING, Any, NamedTuple

from headway.version import VERSION

if TYPE_CHECKING:
    from headway.surfaces.cli.parser import Parser


class Verb(NamedTuple):
    """A verb's place in the overview."""

    name: str
    help: str
    group: str


VERBS = (
    Verb("init", "start a project with a plan of a few lines", "Start"),
    Verb("demo", "watch it work, in a temporary folder, in seconds", "Start"),
    Verb("run", "make what is stale; after an interruption, go on", "Work"),
    Verb("resume", "go on with the latest unfinished plan", "Work"),
    Verb("accept", "what is on disk counts", "Work"),
    Verb("restore", "bring an earlier output back", "Work"),
    Verb("next", "what can be made now, by whom and why", "Hands"),
    Verb("claim", "take an artifact in hand", "Hands"),
    Verb("heartbeat", "say that you are still at it", "Hands"),
    Verb("complete", "finish what you claimed", "Hands"),
    Verb("fail", "say that it did not work out", "Hands"),
    Verb("release", "give a claim back", "Hands"),
    Verb("sweep", "give back what nobody holds any more", "Hands"),
    Verb("skip", "decide that artifacts are not made", "Hands"),
    Verb("gate", "the gates of an artifact, and words at them", "Words"),
    Verb("approve", "stand in for a plan, or for the work of artifacts", "Words"),
    Verb("reject", "say that a plan, or work, is not good enough", "Words"),
    Verb("replan", "make another plan the next version", "Words"),
    Verb("status", "where a plan stands", "Look"),
    Verb("why", "why an artifact is stale, fresh or failed", "Look"),
    Verb("phases", "the phase ledger of a unit", "Look"),
    Verb("log", "what happened", "Look"),
    Verb("show", "what an attempt left and printed", "Look"),
    Verb("diff", "how an output differs from an earlier one", "Look"),
    Verb("dag", "every goal ever run, what it made, what depends on it: show, search, impact, workspace", "Look"),
    Verb("learn", "write down what is worth knowing the next time; without words, show it", "Look"),
    Verb("workspace", "say how projects are related: link, unlink, confirm, goal, refresh", "Look"),
    Verb("environment", "the workspaces of this machine: register, forget, refresh", "Look"),
    Verb("plans", "new, list, show, edit, diff, template, clean, close: the plans of this project", "Plans"),
    Verb("profile", "how many artifacts may be made at once: show, set, lock", "Plans"),
    Verb("reset", "withdraw a plan's progress; its history stays", "Plans"),
    Verb("mcp", "serve this project to agents", "Share"),
    Verb("export", "write a plan's checkpoint", "Share"),
    Verb("import", "take in a checkpoint", "Share"),
    Verb("gc", "free space: blobs that nothing needs any more", "Care"),
    Verb("doctor", "verify ledgers, blobs and projections, and mend them", "Care"),
    Verb("schema", "print the JSON Schema of plan files", "Care"),
    Verb("completion", "print shell completion", "Care"),
)


def main(argv: list[str] | None = None) -> int:
    """Run one command; the exit code. Errors are shown here and nowhere else."""
    words = sys.argv[1:] if argv is None else argv
    from headway.surfaces.cli.screen import Screen

    screen = Screen(as_json="--json" in words)
    try:
        code = _dispatch(words, screen)
        if sys.stdout is not None:
            sys.stdout.flush()  # here, where somebody who no longer reads is no error
        return code
    except BrokenPipeError:
        screen.let_go()
        return 0
    except KeyboardInterrupt:
        screen.note("Interrupted. Nothing is lost.")
        return 130
    except Exception as error:  # noqa: BLE001  # the one place where any error becomes words and an exit code
        from headway.surfaces.cli.exit import leave

        code = leave(error, screen)
        screen.let_go()
        return code
    finally:
        gc.unfreeze()


def _dispatch(words: list[str], screen: Any) -> int:
    if words[:1] == ["help"]:
        words = [*words[1:], "--help"]
    if not words or words[0] in ("-h", "--help"):
        screen.say(overview())
        return 0
    if words[0] in ("-V", "--version"):
        screen.say(f"headway {VERSION}")
        return 0
    name, rest = words[0], words[1:]
    if name not in {verb.name for verb in VERBS}:
        from headway.surfaces.cli.exit import unknown_verb

        raise unknown_verb(name, [verb.name for verb in VERBS])
    module = load_verb(name)
    try:
        args = parser_of(name, module).parse_args(rest)
    except SystemExit:  # --help has been shown
        return 0
    screen.told_of(args)
    with screen.undisturbed() if screen.as_json else nullcontext():
        code: int = module.run(args, screen)
    return code


def load_verb(name: str) -> Any:
    """The verb's module; `import` is a keyword, so modules end in an underscore where they must."""
    _import_msgspec()
    return import_module(f"headway.surfaces.cli.verbs.{name + '_' if name == 'import' else name}")


def _import_msgspec() -> None:
    """Without `typing_extensions`: where that is installed, msgspec imports it for what `typing` itself has by now, and
    it takes a tenth of what most commands take. Whoever wants it later gets it.
    """
    name = "typing_extensions"
    if name not in sys.modules:
        sys.modules[name] = None  # type: ignore[assignment]  # as Python marks what cannot be imported
        try:
            import_module("msgspec")
        finally:
            del sys.modules[name]


def parser_of(name: str, module: Any) -> Parser:
    """The verb's own parser; options that every verb takes come last."""
    from headway.surfaces.cli.parser import Parser

    help_line = next(verb.help for verb in VERBS if verb.name == name)
    parser = Parser(prog=f"headway {name}", description=(module.__doc__ or help_line).strip())
    module.configure(parser)
    return parser


def overview() -> str:
    """All verbs, by what one wants to do."""
    lines = ["headway: make for agent work. Only what changed runs again.", "", "usage: headway VERB [options]"]
    group = ""
    for verb in VERBS:
        if verb.group != group:
            group = verb.group
            lines += ["", f"{group}:"]
        lines.append(f"  {verb.name:<12}{verb.help}")
    lines += ["", "headway VERB --help says more. Every verb takes --project PATH."]
    return "\n".join(lines)
