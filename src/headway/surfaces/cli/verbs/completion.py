"""Print shell completion.

bash:  headway completion bash > ~/.local/share/bash-completion/completions/headway
zsh:   headway completion zsh > a file named _headway on your fpath
fish:  headway completion fish > ~/.config/fish/completions/headway.fish
"""

from __future__ import annotations

import argparse
from typing import Any

from headway.surfaces.cli.screen import Screen

SHELLS = ("bash", "zsh", "fish")


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("shell", choices=SHELLS)
    parser.add_argument("--project", help=argparse.SUPPRESS)


def run(args: Any, screen: Screen) -> int:
    words = {name: _words(parser) for name, parser in _parsers().items()}
    screen.say({"bash": _bash, "zsh": _zsh, "fish": _fish}[args.shell](words))
    return 0


def _parsers() -> dict[str, argparse.ArgumentParser]:
    from headway.surfaces.cli.main import VERBS, load_verb, parser_of

    return {verb.name: parser_of(verb.name, load_verb(verb.name)) for verb in VERBS}


def _words(parser: argparse.ArgumentParser) -> list[str]:
    """What can follow a verb: its actions, its choices and its options."""
    found: list[str] = []
    for action in parser._actions:  # argparse has no public way to list them
        if isinstance(action, argparse._SubParsersAction):
            for name, sub in action.choices.items():
                found += [name, *_words(sub)]
        elif action.option_strings and action.help != argparse.SUPPRESS:
            found += action.option_strings
        elif action.choices:
            found += [str(choice) for choice in action.choices]
    return list(dict.fromkeys(found))


def _bash(words: dict[str, list[str]]) -> str:
    cases = "\n".join(f'    {name}) words="{" ".join(options)}" ;;' for name, options in words.items())
    return f"""\
_headway() {{
  local current="${{COMP_WORDS[COMP_CWORD]}}" words="{" ".join(words)}"
  if [ "$COMP_CWORD" -gt 1 ]; then
    case "${{COMP_WORDS[1]}}" in
{cases}
    esac
  fi
  COMPREPLY=($(compgen -W "$words" -- "$current"))
}}
complete -o default -F _headway headway"""


def _zsh(words: dict[str, list[str]]) -> str:
    cases = "\n".join(f"    {name}) compadd -- {' '.join(options)}; _files ;;" for name, options in words.items())
    return f"""\
#compdef headway
if (( CURRENT == 2 )); then
  compadd -- {" ".join(words)}
else
  case "$words[2]" in
{cases}
  esac
fi"""


def _fish(words: dict[str, list[str]]) -> str:
    lines = [f"complete -c headway -n __fish_use_subcommand -f -a '{' '.join(words)}'"]
    for name, options in words.items():
        seen = f"-n '__fish_seen_subcommand_from {name}'"
        for option in options:
            if option.startswith("--"):
                lines.append(f"complete -c headway {seen} -l {option[2:]}")
            elif option.startswith("-"):
                lines.append(f"complete -c headway {seen} -s {option[1:]}")
            else:
                lines.append(f"complete -c headway {seen} -a {option}")
    return "\n".join(lines)
