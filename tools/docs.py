"""Write the generated parts of docs/ from the code, or with --check say which of them are out of date.

A generated part stands between `<!-- generated: NAME -->` and `<!-- end -->`; everything around it is written by hand
and left alone. What is generated depends on the code only: not on the machine, the terminal or the day.
"""

from __future__ import annotations

import argparse
import ast
import inspect
import os
import re
import sys
import textwrap
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any, Literal, NamedTuple, get_args, get_origin

import msgspec

import headway
from headway import errors
from headway.core import events, plan, state
from headway.core.check import RANGES
from headway.core.lifecycle import ARTIFACT_ROWS, PLAN_ROWS, Row
from headway.files.plan_keys import (
    ARTIFACT_KEYS,
    GATE_KEYS,
    INTEGRATES_KEYS,
    LIMIT_KEYS,
    NEXT_KEYS,
    PHASE_KEYS,
    PIPELINE_KEYS,
    PLAN_KEYS,
    PROFILE_KEYS,
    REPLAN_KEYS,
    RETRY_KEYS,
    ROLE_KEYS,
    UNITS_KEYS,
    Key,
    Table,
)
from headway.surfaces.cli.exit import CODES
from headway.surfaces.cli.main import VERBS, load_verb, overview, parser_of

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
SOURCE = ROOT / "src" / "headway"
PAGES = ("states.md", "cli.md", "ledger.md", "errors.md", "plan-file.md", "architecture.md", "python.md")
BLOCK = re.compile(r"(<!-- generated: ([a-z]+)(?: ([a-z_-]+))? -->\n).*?(<!-- end -->)", re.DOTALL)


def main(argv: list[str] | None = None) -> int:
    """Write the pages, or check them; the exit code."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--check", action="store_true", help="write nothing; exit 1 if a page is out of date")
    check = parser.parse_args(argv).check
    stale = []
    for name in PAGES:
        path = DOCS / name
        before = path.read_text(encoding="utf-8")
        after = page(name, before)
        if after == before:
            continue
        stale.append(f"docs/{name}")
        if not check:
            path.write_text(after, encoding="utf-8")
    for name in stale:
        print(f"{name} is out of date; .venv/bin/python tools/docs.py writes it" if check else f"wrote {name}")
    return 1 if check and stale else 0


def page(name: str, text: str) -> str:
    """The text of a page with every generated part made anew. A verb that cli.md does not know gets its place there."""
    if name == "cli.md":
        text = _with_all_verbs(text)

    def fill(match: re.Match[str]) -> str:
        make, argument = PARTS[match[2]], match[3]
        made = make(argument) if argument else make()
        return f"{match[1]}\n{made.strip()}\n\n{match[4]}"

    return BLOCK.sub(fill, text)


def _with_all_verbs(text: str) -> str:
    """Sections of verbs in the order of the overview: before the next one that is there, else at the end."""
    for verb in reversed(VERBS):
        if f"<!-- generated: verb {verb.name} -->" not in text:
            section = f"## {verb.name}\n\n<!-- generated: verb {verb.name} -->\n<!-- end -->\n"
            later = (f"\n## {other.name}\n" for other in VERBS[VERBS.index(verb) + 1 :])
            at = next((text.index(heading) for heading in later if heading in text), len(text))
            text = f"{text[:at]}\n{section}{text[at:]}"
    return text


# States.


def artifact_states() -> str:
    """The life of an artifact: a diagram and a table."""
    return _diagram(ARTIFACT_ROWS, "pending") + "\n\n" + _transitions(ARTIFACT_ROWS)


def plan_states() -> str:
    """The life of a plan: a diagram and a table."""
    return _diagram(PLAN_ROWS, "draft") + "\n\n" + _transitions(PLAN_ROWS)


def _diagram(rows: Iterable[Row], first: str) -> str:
    """Without what leads from a status to itself, and without what is possible from everywhere: that is said below."""
    rows = list(rows)
    everywhere = [row for row in rows if {*row.given, row.then} >= {name for row in rows for name in row.given}]
    edges: dict[tuple[str, str], list[str]] = {}
    for row in (row for row in rows if row not in everywhere):
        for given in row.given:
            if given != row.then:
                edges.setdefault((given, row.then), []).append(row.event)
    lines = ["```mermaid", "stateDiagram-v2"]
    lines += [f'    state "{row.then}" as {row.then.replace(" ", "_")}' for row in rows if " " in row.then]
    lines.append(f"    [*] --> {first}")
    for (given, then), labels in edges.items():
        lines.append(f"    {given} --> {then.replace(' ', '_')}: {', '.join(labels)}")
    said = "; ".join(f"`{row.event}` to *{row.then}*" for row in everywhere)
    return "\n".join([*lines, "```", "", f"Not drawn, because it is possible everywhere: {said}."])


def _transitions(rows: Iterable[Row]) -> str:
    body = ((", ".join(row.given), f"`{row.event}`", row.then, row.meaning) for row in rows)
    return _table(("in status", "this event", "leads to", "meaning"), body)


# Command line.


def cli_overview() -> str:
    """What `headway` alone prints."""
    return _console("headway", overview())


def cli_verb(name: str) -> str:
    """A verb's help, and that of its actions."""
    parser = parser_of(name, load_verb(name))
    shown = [_console(f"headway {name} --help", _help(parser))]
    for action in parser._actions:  # argparse has no public way to list them
        if isinstance(action, argparse._SubParsersAction):
            shown += [_console(f"{sub.prog} --help", _help(sub)) for sub in action.choices.values()]
    return "\n\n".join(shown)


class _Formatter(argparse.RawDescriptionHelpFormatter):
    """The same text whatever the terminal and the version of Python."""

    def __init__(self, prog: str) -> None:
        super().__init__(prog, width=100, max_help_position=32)

    def _format_action_invocation(self, action: argparse.Action) -> str:
        if not action.option_strings or action.nargs == 0:
            return super()._format_action_invocation(action)
        value = self._format_args(action, (action.metavar or action.dest.upper()))  # type: ignore[arg-type]  # a word
        return f"{', '.join(action.option_strings)} {value}"


def _help(parser: argparse.ArgumentParser) -> str:
    parser.formatter_class = _Formatter
    usage, _, rest = parser.format_help().partition("\n\n")
    words = re.findall(r"\[[^]]*\]|\S+", " ".join(usage.split()))
    joined = textwrap.fill(
        " ".join(word.replace(" ", "\0") for word in words),
        width=100,
        subsequent_indent=" " * (len("usage: ") + len(parser.prog) + 1),
        break_long_words=False,
        break_on_hyphens=False,
    )
    return joined.replace("\0", " ") + "\n\n" + rest.rstrip()


def _console(command: str, output: str) -> str:
    return f"```text\n$ {command}\n{output.rstrip()}\n```"


# Events.


def event_table() -> str:
    """Every event: what it says and what it carries."""
    body = ((f"`{name}`", _sentence(cls), _fields(cls)) for name, cls in events.EVENTS.items())
    return _table(("event", "what it says", "data"), body)


def value_table() -> str:
    """The values inside events and snapshots."""
    rows = ((f"`{cls.__name__}`", _sentence(cls), _fields(cls)) for cls in _values())
    return _table(("value", "what it is", "fields"), rows)


def _values() -> list[type]:
    """The classes that events are made of, in the order in which one meets them."""
    known = {
        name: item
        for module in (plan, state, events)
        for name, item in vars(module).items()
        if isinstance(item, type) and (issubclass(item, msgspec.Struct) or item is state.Position)
    }
    found: dict[str, type] = {}
    queue: list[type] = [*events.EVENTS.values(), state.State]
    for cls in queue:
        for annotation in _annotations(cls).values():
            for name in re.findall(r"\w+", annotation):
                if name in known and name not in found:
                    found[name] = known[name]
                    queue.append(known[name])
    return [*found.values(), state.State]


def _annotations(cls: type) -> dict[str, str]:
    """The types of its fields, as they are written."""
    names: tuple[str, ...] = getattr(cls, "__struct_fields__", ()) or getattr(cls, "_fields", ())
    found: dict[str, str] = {}
    for base in reversed(cls.__mro__):
        if base.__module__.startswith("headway."):
            written = ast.parse(textwrap.dedent(inspect.getsource(base))).body[0]
            lines = written.body if isinstance(written, ast.ClassDef) else []
            found |= {ast.unparse(n.target): ast.unparse(n.annotation) for n in lines if isinstance(n, ast.AnnAssign)}
    return {name: found[name] for name in names}


def _fields(cls: type) -> str:
    as_list = issubclass(cls, tuple) or getattr(getattr(cls, "__struct_config__", None), "array_like", False)
    shown = [
        f"`{name}{'?' if _has_default(cls, name) else ''}: {_in_json(text)}`".replace("|", "\\|")
        for name, text in _annotations(cls).items()
    ]
    return ("a list: " if as_list else "") + ("<br>".join(shown) or "nothing")


def _in_json(text: str) -> str:
    """A type as one meets it in JSON: lists in brackets, objects in braces, the words of a choice."""
    text = text.replace(" | None", "").replace("msgspec.Raw", state.State.__name__)
    text = re.sub(r"dict\[(\w+), ([^]]+\]?)\]", r"{\1: \2}", text)
    text = re.sub(r"(?:tuple|list)\[(\w+)(?:, \.\.\.)?\]", r"[\1]", text)
    for module in (plan, state):
        text = re.sub(r"\w+", lambda m: _choice(vars(module).get(m[0])) or m[0], text)  # noqa: B023  # called at once
    return re.sub(r"Literal\[(.*)\]", lambda m: m[1].replace("'", '"').replace(", ", " | "), text)


def _choice(alias: object) -> str:
    words = get_args(alias) if get_origin(alias) is Literal else ()
    return " | ".join(f'"{word}"' for word in words)


def _has_default(cls: type, name: str) -> bool:
    if not issubclass(cls, msgspec.Struct):
        return False
    field = next(f for f in msgspec.structs.fields(cls) if f.name == name)
    return not field.required


def _sentence(cls: type) -> str:
    return " ".join((cls.__doc__ or "").split())


# Errors.


class Coded(NamedTuple):
    """A place in the code that gives something a stable code."""

    maker: str
    code: str
    message: str
    kind: str


def error_table() -> str:
    """Every error by code."""
    classes = {cls.__name__: cls for cls in _classes()}
    rows: dict[str, tuple[dict[str, None], dict[int, None], dict[str, None]]] = {}
    for cls in classes.values():
        if cls is not errors.HeadwayError:
            rows[cls.code] = ({cls.__name__: None}, {_exit(cls): None}, {})
    for found in coded():
        name = _RAISED.get(found.kind, "") if found.maker == "Rejection" else found.maker
        if found.code == errors.PlanConflict.code:
            name = errors.PlanConflict.__name__
        if name not in classes:
            continue
        names, exits, messages = rows.setdefault(found.code or classes[name].code, ({}, {}, {}))
        names[name] = exits[_exit(classes[name])] = None
        messages[found.message] = None
    messages = rows[errors.PlanInvalid.code][2]
    messages["{file} has {n} problems"] = None
    ordered = sorted(rows.items())
    body = (
        (f"`{code}`", "<br>".join(m or "…" for m in messages) or "–", _code_list(names), ", ".join(map(str, exits)))
        for code, (names, exits, messages) in ordered
    )
    return _table(("code", "says", "class", "exit"), body)


def problem_table() -> str:
    """Everything that can be wrong with a plan."""
    return _messages(found for found in coded() if found.maker == "Problem")


def finding_table() -> str:
    """Everything that doctor can find."""
    return _messages(found for found in coded() if found.maker == "Finding")


_RAISED = {"usage": "UsageError", "later": "TryLater", "decision": "Rejected"}
_MAKERS = {"note": "Problem", "_problem": "Problem"}


def _messages(found: Iterable[Coded]) -> str:
    rows: dict[str, dict[str, None]] = {}
    for item in found:
        rows.setdefault(item.code, {})[item.message] = None
    body = ((f"`{code}`", "<br>".join(messages)) for code, messages in sorted(rows.items()))
    return _table(("code", "says"), body)


def _classes() -> list[type[errors.HeadwayError]]:
    found: list[type[errors.HeadwayError]] = [errors.HeadwayError]
    for cls in found:
        found += cls.__subclasses__()
    return found


def _exit(cls: type[errors.HeadwayError]) -> int:
    return next((code for kind, code in CODES if issubclass(cls, kind)), 70)


@cache
def coded() -> list[Coded]:
    """Every place in the source that gives something a code, or raises an error that has one by its class."""
    return list(_coded())


def _coded() -> Iterator[Coded]:
    classes = {cls.__name__ for cls in _classes()}
    trees = {path: ast.parse(path.read_text(encoding="utf-8")) for path in sorted(SOURCE.rglob("*.py"))}
    makers = dict(item for tree in trees.values() for item in _makers(tree)) | {"Rejection": ("code", "message")}
    for tree in trees.values():
        for scope in ast.walk(tree):
            if not isinstance(scope, ast.FunctionDef | ast.AsyncFunctionDef):
                continue
            for node in ast.walk(scope):
                if isinstance(node, ast.Call):
                    yield from _call(node, scope, makers, classes)
                elif isinstance(node, ast.Assign):
                    yield from _assignment(node)


def _makers(tree: ast.Module) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Functions and classes that take a code and a message, with the order of what they take."""
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef):
            names = tuple(a.arg for a in node.args.args if a.arg != "self")
            if names[:1] == ("code",) and "message" in names:
                yield node.name, names
        elif isinstance(node, ast.ClassDef):
            fields = tuple(_name(n.target) for n in node.body if isinstance(n, ast.AnnAssign))
            if fields[:2] == ("code", "message"):
                yield node.name, fields


def _call(
    node: ast.Call, scope: ast.FunctionDef | ast.AsyncFunctionDef, makers: dict[str, tuple[str, ...]], classes: set[str]
) -> Iterator[Coded]:
    name = _name(node.func)
    if name not in makers and name not in classes:
        return
    given = dict(zip(makers.get(name, ("message",)), node.args, strict=False))
    given |= {keyword.arg: keyword.value for keyword in node.keywords if keyword.arg}
    code, kind = given.get("code"), given.get("kind")
    if name == "PlanInvalid" or "message" not in given:
        return
    if name in makers and not isinstance(code, ast.Constant):
        return
    if code is not None and not isinstance(code, ast.Constant):
        return
    yield Coded(
        maker=_MAKERS.get(name, name),
        code=str(code.value) if code is not None else "",
        message=_template(_resolved(given["message"], scope)),
        kind=str(kind.value) if isinstance(kind, ast.Constant) else "decision",
    )


def _assignment(node: ast.Assign) -> Iterator[Coded]:
    """`message, code = "…", "plan.self"`: the only other way in which a problem gets its code."""
    target, value = node.targets[0], node.value
    if isinstance(target, ast.Tuple) and isinstance(value, ast.Tuple):
        given = {_name(one): other for one, other in zip(target.elts, value.elts, strict=False)}
        code = given.get("code")
        if isinstance(code, ast.Constant) and "message" in given:
            yield Coded("Problem", str(code.value), f"artifact {{id}} {_template(given['message'])}", "decision")


def _resolved(node: ast.expr, scope: ast.FunctionDef | ast.AsyncFunctionDef) -> ast.expr:
    """What a name stands for: the nearest thing assigned to it above, in the same function."""
    if not isinstance(node, ast.Name):
        return node
    above = [
        n
        for n in ast.walk(scope)
        if isinstance(n, ast.Assign) and _name(n.targets[0]) == node.id and n.lineno < node.lineno
    ]
    return max(above, key=lambda n: n.lineno).value if above else node


def _template(node: ast.expr) -> str:
    if isinstance(node, ast.Constant):
        return str(node.value)
    if isinstance(node, ast.JoinedStr):
        return "".join(_template(part) for part in node.values)
    if isinstance(node, ast.FormattedValue):
        return _hole(node.value)
    if isinstance(node, ast.BinOp):
        return _template(node.left) + _template(node.right)
    return _hole(node)


def _hole(node: ast.expr) -> str:
    name = _name(node).strip("_")
    return f"{{{name}}}" if name else "{…}"


def _name(node: ast.AST) -> str:
    if isinstance(node, ast.Name):
        return node.id
    return node.attr if isinstance(node, ast.Attribute) else ""


# Markdown.


KEYS: Mapping[str, tuple[Table, str]] = {
    "plan": (PLAN_KEYS, ""),
    "artifact": (ARTIFACT_KEYS, ""),
    "pipeline": (PIPELINE_KEYS, ""),
    "units": (UNITS_KEYS, "units."),
    "phase": ({name: key for name, key in PHASE_KEYS.items() if ARTIFACT_KEYS.get(name) is not key}, "phases."),
    "gate": (GATE_KEYS, "gates."),
    "retry": (RETRY_KEYS, "retry."),
    "profile": (PROFILE_KEYS, "profile."),
    "replan": (REPLAN_KEYS, "replan."),
    "agent": (ROLE_KEYS, "agents."),
    "next": (NEXT_KEYS, "agents.next."),
    "limits": (LIMIT_KEYS, "agents.limits."),
    "integrates": (INTEGRATES_KEYS, "integrates."),
}
"""The tables of keys by name, each with what its keys stand in, as ranges know them."""


def plan_keys(name: str) -> str:
    """The keys of a part of a plan file, with the values that each may have."""
    table, within = KEYS[name]
    rows = ((f"`{key}`", _value(about, within + key), about.description) for key, about in table.items())
    return _table(("key", "value", "is"), rows)


def _value(key: Key, name: str) -> str:
    """What a key may be set to."""
    named = [f"`{each}`" for each in (key.choices or key.keys)]
    if key.kind == "choice":
        return " or ".join(filter(None, [", ".join(named[:-1]), named[-1]]))
    if key.kind == "section":
        return f"a mapping of {', '.join(named)}"
    words = {"list": f"{key.expects}, or one", "version": "text, or a number"}.get(key.kind, key.expects)
    return f"{words}, {RANGES[name]}" if name in RANGES else words


# Modules.


def module_list() -> str:
    """Every module with what it is for, by folder; of verbs, cli.md tells."""
    folders = [SOURCE, *sorted(f for f in SOURCE.rglob("*") if f.is_dir() and f.name != "__pycache__")]
    return "\n\n".join(_folder(folder) for folder in folders if folder.name != "verbs")


def _folder(folder: Path) -> str:
    """A folder: what it is for, and its modules."""
    name = folder.relative_to(SOURCE).as_posix()
    told = {path: _purpose(path) for path in sorted(folder.glob("*.py"))}
    own = told.pop(folder / "__init__.py")
    head = f"**`{name}/`** {own}" if name != "." else f"**`headway`** {own}"
    return "\n".join([head, "", *(f"- `{path.name}`: {purpose}" for path, purpose in told.items())]).strip()


def _purpose(path: Path) -> str:
    """The first sentence of a module's docstring."""
    return _first_sentence(ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))) or "")


def _first_sentence(doc: str) -> str:
    first = " ".join(doc.partition("\n\n")[0].split())
    return re.split(r"(?<=[.!?])\s", first, maxsplit=1)[0]


# Python.


def public_names() -> str:
    """Everything that `headway` offers to importers."""
    found = ((name, inspect.getdoc(getattr(headway, name)) or "") for name in headway.__all__)
    return _table(("name", "what it is"), ((f"`{name}`", _first_sentence(doc)) for name, doc in found))


def _table(header: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> str:
    lines = [header, tuple("---" for _ in header), *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def _code_list(names: Iterable[str]) -> str:
    return ", ".join(f"`{name}`" for name in names)


PARTS: dict[str, Callable[..., Any]] = {
    "keys": plan_keys,
    "artifacts": artifact_states,
    "plans": plan_states,
    "overview": cli_overview,
    "verb": cli_verb,
    "events": event_table,
    "values": value_table,
    "errors": error_table,
    "problems": problem_table,
    "findings": finding_table,
    "modules": module_list,
    "names": public_names,
}

if __name__ == "__main__":
    os.environ["NO_COLOR"] = "1"
    sys.exit(main())
