"""Command lines that are wrong are errors like any other: what, and what to do. Nothing here prints or exits."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import Any, NoReturn

from headway.errors import UsageError


class Parser(argparse.ArgumentParser):
    """argparse, except that it raises, suggests the nearest word, and never guesses from a beginning."""

    def __init__(self, **options: Any) -> None:
        options.setdefault("formatter_class", _plain)
        super().__init__(allow_abbrev=False, **options)

    @property
    def verb(self) -> str:
        """What was asked for, without the command's own name."""
        return self.prog.removeprefix("headway ")

    def error(self, message: str) -> NoReturn:
        """Whatever argparse has to say."""
        missing = message.removeprefix("the following arguments are required: ")
        if missing == message:
            raise self._wrong(f"{self.verb}: {message}")
        known = [str(c) for a in self._actions if a.required and a.choices for c in a.choices if a.metavar == missing]
        raise self._wrong(f"{self.verb} needs {missing}", known=known)

    def parse_args(self, args: Sequence[str] | None = None, namespace: Any = None) -> Any:  # type: ignore[override]  # no overloads needed
        """As argparse, naming each word that nobody knows."""
        found, unknown = self.parse_known_args(args, namespace)
        if unknown:
            reader = getattr(found, "reader", self)
            raise reader._unknown(unknown[0])
        for name, value in vars(found).items():
            setattr(found, name, [_meant(v) for v in value] if isinstance(value, list) else _meant(value))
        return found

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> Any:
        """As argparse, remembering which (sub)parser was asked last."""
        found, unknown = super().parse_known_args(args, namespace)
        if not hasattr(found, "reader"):
            found.reader = self
        return found, unknown

    def _check_value(self, action: argparse.Action, value: Any) -> None:
        if action.choices is None or value in action.choices:
            return
        known = [str(choice) for choice in action.choices]
        where = action.option_strings[-1] if action.option_strings else f"{action.metavar or action.dest}".lower()
        raise self._wrong(f"{self.verb} has no {where} {value!r}", _near(str(value), known), known)

    def _unknown(self, word: str) -> UsageError:
        if not word.startswith("-"):
            return self._wrong(f"{self.verb} does not know what to do with {word!r}")
        option = word.partition("=")[0]
        return self._wrong(f"{self.verb} has no option {option}", _near(option, self.options()))

    def options(self) -> list[str]:
        """Every option, in its long and short forms."""
        return [name for action in self._actions for name in action.option_strings]

    def _wrong(self, message: str, near: str = "", known: Sequence[str] = ()) -> UsageError:
        facts = {"did you mean": near} if near else {"known": ", ".join(known)} if known else {}
        return UsageError(message, facts=facts, hint=f"{self.prog} --help", code="usage.option")


def _meant(value: Any) -> Any:
    """`./-x` is how a word that begins like an option is given, be it a file or an artifact."""
    return value[2:] if isinstance(value, str) and value.startswith("./-") else value


def _near(word: str, known: Sequence[str]) -> str:
    from headway.core.nearest import Nearest

    return Nearest(known).of(word)


def _plain(prog: str) -> argparse.HelpFormatter:
    """Help of one width everywhere, so that asking for it does not ask the terminal."""
    return argparse.RawDescriptionHelpFormatter(prog, width=100, max_help_position=32)
