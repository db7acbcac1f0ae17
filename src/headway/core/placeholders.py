"""The placeholders of a command: `{output}`, `{inputs.X}`, `{vars.x}` and the rest of the table below.

One parse serves checking and substituting. Every other brace stays as written: so do the shell's own
`${name}` and templates' `{{name}}`. What nearly is a placeholder is an error rather than a literal.
Knows text only; quoting for a shell is the caller's.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator
from typing import Literal, NamedTuple

from headway.core.nearest import Nearest

Name = Literal["output", "outputs", "inputs", "sources", "id", "contract", "vars", "unit", "file", "state", "prompt"]

DOCUMENTED: dict[Name, str] = {
    "output": "{output}",
    "outputs": "{outputs} or {outputs.0}",
    "inputs": "{inputs.X} or {inputs[X]}",
    "sources": "{sources}",
    "id": "{id}",
    "contract": "{contract}",
    "vars": "{vars.x}",
    "unit": "{unit}",
    "file": "{file}",
    "state": "{state}",
    "prompt": "{prompt}",
}
OWN: frozenset[str] = frozenset({"unit", "file", "state", "prompt"})
"""What only artifacts that have one can name: phases of pipelines and, of a prompt, whatever has templates."""

OF_PATHS = ("unit", "file", "phase")
"""What is put into the paths of a phase, as `{unit}`."""

ALIASES: dict[str, Name] = {"var": "vars", "variable": "vars", "variables": "vars", "out": "output", "src": "sources"}
SHORTEST_TYPO = 5

_GROUP = r"""(?x)
    \{ (?P<before>\s*)
    (?P<name>[A-Za-z_]\w*)
    (?: \.(?P<dotted>[^\s{}\[\]]*) | \[(?P<bracketed>[^\[\]{}\n]*)\] )?
    (?P<more>[.\[][^\s{}]*)?
    (?P<after>\s*) \}
    """


class Placeholder(NamedTuple):
    """One placeholder as it stands in a command: `{inputs.X}` has the name `inputs` and the key `X`."""

    text: str
    name: Name
    key: str
    start: int
    end: int


class Fault(NamedTuple):
    """A placeholder, or nearly one, that cannot be replaced, and why."""

    text: str
    message: str
    hint: str = ""


class Offer(NamedTuple):
    """What an artifact has for its placeholders: how many outputs, which inputs and variables.

    `named` are its outputs by name, `own` what only it has, `phase` whether it is that of a unit; `unknown` what its
    plan requires and cannot have, which is nothing to suggest.
    """

    outputs: int
    inputs: Collection[str]
    variables: Collection[str]
    named: Collection[str] = ()
    own: Collection[str] = ()
    phase: bool = False
    unknown: Collection[str] = ()


def find(command: str) -> list[Placeholder]:
    """The documented placeholders of a command, in order."""
    return [p for match in _groups(command) if (p := _placeholder(match)) is not None]


def substitute(command: str, lookup: Callable[[Placeholder], str]) -> str:
    """The command with every documented placeholder replaced by what `lookup` says."""
    pieces: list[str] = []
    position = 0
    for placeholder in find(command):
        pieces += [command[position : placeholder.start], lookup(placeholder)]
        position = placeholder.end
    return "".join([*pieces, command[position:]])


def faults(command: str, offer: Offer) -> list[Fault]:
    """Everything in a command that looks like a placeholder and cannot be replaced, each once."""
    found: dict[Fault, None] = {}
    for match in _groups(command):
        placeholder = _placeholder(match)
        fault = _near_miss(match, offer) if placeholder is None else _unmet(placeholder, offer)
        if fault is not None:
            found[fault] = None
    return [*found]


def path_faults(path: str) -> list[Fault]:
    """Everything in a path of a phase that looks like a placeholder and stays as written."""
    found: list[Fault] = []
    for match in _groups(path):
        if match[0][1:-1] not in OF_PATHS:
            meant = next((name for name in OF_PATHS if _one_slip(match["name"].lower(), name)), "")
            hint = f"did you mean {{{meant}}}?" if meant else "a path may have {unit}, {file} and {phase}"
            found.append(Fault(match[0], f"{match[0]} is not replaced", hint))
    return found


def _groups(command: str) -> Iterator[re.Match[str]]:
    """Brace groups that could be ours: not `{{name}}`, which belongs to a template."""
    if "{" not in command:
        return
    for match in re.finditer(_GROUP, command):
        start, end = match.span()
        if not (command[start - 1 : start] == "{" and command[end : end + 1] == "}"):
            yield match


def _placeholder(match: re.Match[str]) -> Placeholder | None:
    """The documented placeholder that a brace group is, if it is one."""
    before, name, dotted, bracketed, more, after = match.groups()
    if name not in DOCUMENTED or before or more or after or _is_shells(match):
        return None
    if name == "outputs":
        fits = bracketed is None and (dotted is None or _is_index(dotted) or dotted.isidentifier())
    elif name in {"inputs", "vars"}:
        fits = bool(dotted or (bracketed and name == "inputs"))
    else:
        fits = dotted is None and bracketed is None
    return Placeholder(match[0], name, dotted or bracketed or "", *match.span()) if fits else None


def _is_shells(match: re.Match[str]) -> bool:
    """It follows a `$`, so it is a parameter of the shell."""
    return match.string[match.start() - 1 : match.start()] == "$"


def _is_index(text: str) -> bool:
    return text.isascii() and text.isdigit() and len(text) <= 6


def _near_miss(match: re.Match[str], offer: Offer) -> Fault | None:
    """What this brace group was meant to be, if it nearly is a documented placeholder."""
    name = _meant(match["name"], offer)
    plain = match["dotted"] is None and match["bracketed"] is None
    if name is None or (_is_shells(match) and plain):
        return None
    return Fault(match[0], f"{match[0]} is not a placeholder", f"did you mean {_spelling(match, name)}?")


def _spelling(match: re.Match[str], name: Name) -> str:
    """The documented spelling that is nearest to what was written."""
    key = match["dotted"] or match["bracketed"] or ""
    if name in {"output", "outputs"} and _is_index(key):
        return f"{{outputs.{key}}}"
    if name == "vars" and key:
        return f"{{vars.{key}}}"
    if name == "inputs" and key:
        return f"{{inputs[{key}]}}" if match["bracketed"] else f"{{inputs.{key}}}"
    return DOCUMENTED[name]


def _meant(word: str, offer: Offer) -> Name | None:
    """The documented name that a word is, up to case, a singular or one slip of the finger."""
    lower = word.lower()
    names = [name for name in DOCUMENTED if name not in OWN or name in offer.own]
    exact = next((name for name in names if name == lower), ALIASES.get(lower))
    return exact or next((name for name in names if _is_typo(lower, name)), None)


def _is_typo(word: str, name: str) -> bool:
    """One slip away. Of a short name, or one that is an everyday word, only what makes no other word of it.

    `{tile}`, `{stage}` and `{units}` mean something to others; `{unti}`, `{unitt}` and `{promt}` to nobody.
    """
    if len(name) >= SHORTEST_TYPO and name not in OWN:
        return _one_slip(word, name)
    return len(name) >= SHORTEST_TYPO - 1 and word in _stumbles(name)


def _stumbles(name: str) -> Iterator[str]:
    """The name with two neighbours swapped, a letter doubled or a letter missing."""
    for i, letter in enumerate(name):
        yield name[:i] + name[i + 1 : i + 2] + letter + name[i + 2 :]
        yield name[:i] + letter + name[i:]
        yield name[:i] + name[i + 1 :]


def _one_slip(word: str, name: str) -> bool:
    """One letter missing, extra or wrong, or two neighbours swapped."""
    if abs(len(word) - len(name)) > 1:
        return False
    start = next((i for i, (a, b) in enumerate(zip(word, name, strict=False)) if a != b), min(len(word), len(name)))
    rest, meant = word[start:], name[start:]
    return (
        rest[1:] == meant
        or rest == meant[1:]
        or rest[1:] == meant[1:]
        or (rest[2:] == meant[2:] and rest[:2] == meant[:2][::-1])
    )


def _unmet(placeholder: Placeholder, offer: Offer) -> Fault | None:
    """Why a documented placeholder has no value here."""
    text, name, key = placeholder.text, placeholder.name, placeholder.key
    if name in OWN:
        return None if name in offer.own else _not_its_own(text, name, offer)
    if name == "outputs" and key and not _is_index(key):
        known = key in offer.named
        hint = "name it under outputs" if offer.phase else f"did you mean {DOCUMENTED['outputs']}?"
        return None if known else Fault(text, f"{text} is used, but no output is named {key}", hint)
    if name in {"output", "outputs"} and offer.outputs <= int(key or 0):
        hint = f"name the path under {'outputs' if offer.phase else 'produces'}"
        return Fault(text, f"{text} is used, but {_outputs(offer.outputs)}", hint)
    if name == "inputs" and key not in offer.inputs:
        return _not_required(text, key, offer)
    if name == "vars" and key not in offer.variables:
        return Fault(text, f"{text} is used, but there is no variable {key}", f"add {key} to vars")
    return None


def _not_its_own(text: str, name: Name, offer: Offer) -> Fault:
    """What this artifact has none of, though another might."""
    if offer.phase or name == "prompt":
        return Fault(text, f"{text} is used, but there is no {name} here", _OWN_HINT[name])
    hint = f"where these braces mean something else, write {{ {name} }}"
    return Fault(text, f"{text} is used, but only phases of pipelines have a {name}", hint)


def _not_required(text: str, key: str, offer: Offer) -> Fault:
    """An input that is none: mistyped, one of several outputs, or really not required."""
    whole = key.rpartition(".")[0]
    if whole in offer.inputs:
        first = f"{{inputs.{whole}}} is the first output of {whole}"
        return Fault(text, f"{text} is used, but {first}", "write the path of another one as the plan has it")
    if near := Nearest(name for name in offer.inputs if name not in offer.unknown).of(key):
        return Fault(text, f"{text} is used, but {key} is not required", f"did you mean {{inputs.{near}}}?")
    key_of = "inputs" if offer.phase else "requires"
    hint = f"add the artifact {key} to {key_of}; the path of an output is written as it is: {key}"
    hint = hint if "/" in key and "." in key else f"add {key} to {key_of}"
    return Fault(text, f"{text} is used, but {key} is not required", hint)


_OWN_HINT = {
    "file": "units: {files: PATTERN} gives each unit a file",
    "state": "name the file under state",
    "prompt": "name templates",
}


def _outputs(count: int) -> str:
    if count == 0:
        return "nothing is produced"
    return "only {outputs.0} is produced" if count == 1 else f"outputs end with {{outputs.{count - 1}}}"
