"""Templates of prompts: which files they are, whether they parse, and what they come to.

Jinja2, in its sandbox, strict about undefined names. A template may include others of the project by their plain path;
all of them belong to the recipe. Which they are is read from their text, so that judging needs no Jinja2: it is
imported when something is rendered or about to be, and a run that would come to that without it does not start.
"""

from __future__ import annotations

import os
import re
import stat
import threading
from collections import UserString
from collections.abc import Callable, Iterable, Iterator, Mapping
from collections.abc import Set as AbstractSet
from typing import TYPE_CHECKING, Any, NamedTuple

from headway.core.paths import normalise, output_problem
from headway.core.plan import ArtifactSpec
from headway.engine.recipes.base import Input
from headway.errors import UsageError

if TYPE_CHECKING:
    from jinja2 import Template
    from jinja2.runtime import Context
    from jinja2.sandbox import ImmutableSandboxedEnvironment  # costs more to import than most runs take

    from headway.engine.recipes.base import Job
    from headway.engine.sources import Sources

LONGEST_NUMBER = 1 << 16
"""So many bits has the longest number that a template may come to: some 20,000 digits."""

LARGEST = 4 * 1024 * 1024
"""The most bytes of one prompt."""

_TAGS = (  # compiled when a plan has templates, as all of these
    r"(?s){#.*?#}|{%[-+]?\s*raw\s*[-+]?%}.*?{%[-+]?\s*endraw\s*[-+]?%}|{{.*?}}"
    r"|{%[-+]?\s*(?:include|extends|import|from)\b\s*(.*?)\s*[-+]?%}|{%.*?%}"
)
_MARKS = r"{[{%#]"
"""A template without them says the same to everybody."""

_SHOWN = r"(?s){[{%].*?[%}]}"
_VARS = r"""(?<![\w.])vars\b(?:\s*\.\s*(\w+)|\s*\[\s*(?:'([^']+)'|"([^"]+)")\s*\])?"""
_PLAIN = r"\"[^\"\n]+\"|'[^'\n]+'"
_NAMES = rf"(\[?)\s*((?:{_PLAIN})(?:\s*,\s*(?:{_PLAIN}))*)\s*,?\s*\]?\s*(ignore\s+missing|\w+|$)"

_OBJECT = r"'headway[^']* object' has no (?:attribute|element) '?([^']+)'?"


def refuse_without_jinja(ids: Iterable[str]) -> None:
    """Jinja2 is an extra: who needs it is told before anything is started."""
    needs = next(iter(ids), "")
    if needs and not _has_jinja():
        raise UsageError(
            "Templates are an extra",
            facts={"needed by": needs},
            hint="pip install 'headway[templates]' (in a clone: pip install '.[templates]')",
            code="templates.missing",
        )


def _has_jinja() -> bool:
    from importlib.util import find_spec

    return find_spec("jinja2") is not None


def names_in(text: str) -> dict[str, bool]:
    """The templates that a template names by their plain paths, and whether it can do without.

    A comment names none. What is put together only when a prompt is made is not known before.
    """
    found: dict[str, bool] = {}
    for tag in re.findall(_TAGS, text):
        match = re.match(_NAMES, tag) if tag else None
        if match is not None:
            spare = bool(match[1]) or match[3].startswith("ignore")
            for name in re.findall(_PLAIN, match[2]):
                path = normalise(name[1:-1])
                found[path] = spare and found.get(path, True)
    return found


class Rendered(NamedTuple):
    """A prompt: all of it, and part by part; and the digests of its templates, by their names."""

    text: str
    parts: Mapping[str, str]
    digests: Mapping[str, str]


def _read(path: str) -> tuple[str, str]:
    """The text of a template, and why there is none. Nobody waits for what a pipe or a device may say."""
    try:
        with open(os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC), "rb") as file:
            if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
                return "", "is not a file"
            data = file.read(LARGEST + 1)
    except OSError as error:
        return "", f"cannot be read ({error.strerror})"
    if len(data) > LARGEST:
        return "", f"is larger than {LARGEST} bytes"
    try:
        return data.decode("utf-8"), ""
    except UnicodeDecodeError as error:
        return "", f"is not UTF-8 text (byte {error.start})"


def variables_in(texts: Iterable[str]) -> set[str] | None:
    """The plan's variables that templates read; None if one of them reads them otherwise than by name."""
    found: set[str] = set()
    for text in texts:
        for shown in re.findall(_SHOWN, text) if "vars" in text else ():
            for names in re.findall(_VARS, shown):
                if not any(names):
                    return None
                found.update(filter(None, names))
    return found


class _Set:
    """The templates of artifacts that have the same: their names by path, what the files were, and the same by name.

    What follows from that is found out once: why no prompt can be made of them, and what Jinja2 made of each: text,
    where that is the same for everybody. `spare` are those that there need not be; `variables` those of the plan that
    they read, None for whichever there are.
    """

    __slots__ = ("as_of", "compiled", "digests", "files", "looked", "problem", "spare", "variables")

    def __init__(
        self,
        files: dict[str, str],
        looked: dict[str, str],
        digests: dict[str, str],
        spare: AbstractSet[str],
        variables: AbstractSet[str] | None,
    ) -> None:
        self.files = files
        self.looked = looked
        self.digests = digests
        self.spare = spare
        self.variables = variables
        self.problem: str | None = None
        self.compiled: dict[str, Template | str] = {}
        self.as_of = -1


class Templates:
    """The templates of one project. `sources` know the digests of its files."""

    def __init__(self, root: str, sources: Sources) -> None:
        self._root = root
        self._sources = sources
        self._look = sources.look
        self._texts: dict[tuple[str, str], str] = {}
        self._names: dict[tuple[str, str], dict[str, bool]] = {}
        self._unreadable: dict[tuple[str, str], str] = {}
        self._parsed: dict[tuple[str, str], str] = {}
        self._sets: dict[tuple[tuple[str, str], ...], _Set] = {}
        self._environment: ImmutableSandboxedEnvironment | None = None
        self._lock = threading.Lock()

    def files(self, spec: ArtifactSpec) -> Mapping[str, str]:
        """Every template of an artifact, included ones too: its name for people, by path."""
        return self._set(spec).files

    def digests(self, spec: ArtifactSpec) -> dict[str, str]:
        """What the artifact's prompt is made of: digests of its templates by their names."""
        return self._set(spec).digests

    def _set(self, spec: ArtifactSpec) -> _Set:
        """Walked once for all artifacts that have the same templates, and again when one of the files has changed.

        Nobody looks at the files as long as nothing was forgotten of any.
        """
        now = self._sources.forgotten
        key = tuple(spec.templates.items())
        known = self._sets.get(key)
        if known is None or known.as_of != now:
            if known is None or any(self._look(path) != digest for path, digest in known.looked.items()):
                known = self._sets[key] = self._walk(spec)
            known.as_of = now
        return known

    def _walk(self, spec: ArtifactSpec) -> _Set:
        found = {path: f"{role}: {path}" for role, path in reversed(spec.templates.items())}
        queue, needed = list(found), set(found)
        looked: dict[str, str] = {}
        for path in queue:
            looked[path] = self._look(path)
            for inner, spare in self._names_in(path).items():
                if not spare:
                    needed.add(inner)
                if inner not in found:
                    found[inner] = inner
                    queue.append(inner)
        digests = {label: looked[path] for path, label in sorted(found.items(), key=lambda f: f[1])}
        texts = [self._text(path, digest) for path, digest in looked.items() if digest]
        return _Set(found, looked, digests, looked.keys() - needed, variables_in(texts))

    def variables(self, spec: ArtifactSpec, known: Mapping[str, Any]) -> dict[str, Any]:
        """The plan's variables that the artifact's prompt shows, or that decide about it, as they are known."""
        names = self._set(spec).variables
        return dict(known) if names is None else {name: known[name] for name in sorted(names) if name in known}

    def problem(self, spec: ArtifactSpec) -> str:
        """Why its prompt cannot be made, as far as the templates alone tell; or ""."""
        known = self._set(spec)
        if known.problem is None:
            known.problem = self._problem_of(known)
        return known.problem

    def _problem_of(self, known: _Set) -> str:
        for path, digest in known.looked.items():
            if not digest and path in known.spare:
                continue
            if not digest:
                return f"Its template {path} does not exist"
            if why := output_problem(path):
                return f"Its template {path} {why}"
            self._text(path, digest)
            if why := self._unreadable[path, digest]:
                return f"Its template {path} {why}"
            if (path, digest) not in self._parsed:
                self._parsed[path, digest] = self._syntax(path, digest)
            if self._parsed[path, digest]:
                return self._parsed[path, digest]
        return ""

    def render(self, job: Job) -> Rendered:
        """The prompt of one attempt."""
        known = self._set(job.spec)
        compiled = known.compiled
        context: dict[str, Any] | None = None
        parts: dict[str, str] = {}
        for role, path in job.spec.templates.items():
            try:
                template = compiled.get(path)
                if template is None:
                    template = compiled[path] = self._compiled(path)
                if isinstance(template, str):
                    parts[role] = template
                    continue
                if context is None:
                    context = {**template.globals, **context_of(job)}
                parts[role] = "".join(template.root_render_func(template.new_context(context, True)))
            except Exception as error:
                told = _why(error, path, job)
                if told is None:
                    raise
                raise told from error
        text = "\n\n".join([part.rstrip("\n") for part in parts.values()]) + "\n"
        if len(text) > LARGEST:
            raise _broken(f"the prompt has {len(text)} characters, at most {LARGEST}", "template.long")
        return Rendered(text, parts, known.digests)

    def _compiled(self, path: str) -> Template | str:
        template = self._jinja().get_template(path)
        if not re.search(_MARKS, self._text(path, self._look(path))):
            return template.render()
        template.globals = dict(template.globals)  # asked for every prompt, and a ChainMap takes longer
        return template

    def _text(self, path: str, digest: str) -> str:
        key = (path, digest)
        if key not in self._texts:
            self._texts[key], self._unreadable[key] = _read(os.path.join(self._root, path))
        return self._texts[key]

    def _names_in(self, path: str) -> dict[str, bool]:
        """The templates that the one at this path names."""
        key = (path, self._look(path))
        if key not in self._names:
            self._names[key] = names_in(self._text(*key)) if key[1] else {}
        return self._names[key]

    def _syntax(self, path: str, digest: str) -> str:
        if not _has_jinja():  # the plan grew to it while it ran
            return "Its templates need an extra: pip install 'headway[templates]'"
        from jinja2 import TemplateSyntaxError

        try:
            self._jinja().parse(self._text(path, digest), name=path)
        except TemplateSyntaxError as error:
            return f"Its template {path} does not parse: line {error.lineno}: {error.message}; mend {path}"
        return ""

    def _jinja(self) -> ImmutableSandboxedEnvironment:
        if self._environment is None:
            with self._lock:
                if self._environment is None:
                    self._environment = self._made()
        return self._environment

    def _made(self) -> ImmutableSandboxedEnvironment:
        from jinja2 import FunctionLoader, StrictUndefined
        from jinja2.sandbox import ImmutableSandboxedEnvironment

        def load(name: str) -> tuple[str, str, Callable[[], bool]] | None:
            path = normalise(name)
            digest = self._look(path)
            if not digest or output_problem(path):
                return None
            return self._text(path, digest), path, lambda: self._look(path) == digest

        names_of = self._names_in

        class Environment(ImmutableSandboxedEnvironment):
            intercepted_binops = frozenset({"*", "**"})

            def call_binop(self, context: Context, operator: str, left: Any, right: Any) -> Any:
                _refuse_too_much(operator, left, right)
                return super().call_binop(context, operator, left, right)

            def join_path(self, template: str, parent: str) -> str:
                if normalise(template) not in names_of(normalise(parent)):  # it would be in no fingerprint
                    raise Misread(f"it names {template} in a roundabout way: only a plain path can be followed")
                return template

            def getattr(self, obj: Any, attribute: str) -> Any:
                if isinstance(obj, Part) and obj.has(attribute):
                    return obj[attribute]
                if isinstance(obj, dict) and attribute in obj:  # a key of JSON may be called `items`
                    return obj[attribute]
                return super().getattr(obj, attribute)

        def shown(value: Any) -> Any:
            if callable(value) and not isinstance(value, StrictUndefined):
                name = getattr(value, "__name__", "it")
                raise Misread(f"it shows {name}, which is no value (there is no key of that name)")
            return value

        environment = Environment(
            undefined=StrictUndefined,
            autoescape=False,
            keep_trailing_newline=True,
            loader=FunctionLoader(load),
            finalize=shown,
        )
        environment.filters["fromjson"] = _from_json
        environment.tests["string"] = lambda value: isinstance(value, (str, UserString))
        return environment


class Misread(ValueError):
    """Something that a template takes for what it is not."""


def _refuse_too_much(operator: str, left: Any, right: Any) -> None:
    """What comes of one sign in a template is no longer than a prompt may be, nor a number than anybody reads: nobody
    waits for it.
    """
    if isinstance(left, int) and isinstance(right, int):
        bits = left.bit_length() * max(right, 0) if operator == "**" else left.bit_length() + right.bit_length()
        if bits > LONGEST_NUMBER:
            raise Misread(f"{operator} comes to a number of more than {LONGEST_NUMBER} bits")
        size = 0
    else:
        many, times = (right, left) if isinstance(left, int) else (left, right)
        repeated = (
            operator == "*" and isinstance(times, int) and isinstance(many, (str, UserString, bytes, list, tuple))
        )
        size = len(many) * times if repeated else 0
    if size > LARGEST:
        raise Misread(f"{operator} comes to more than {LARGEST} characters")


def _from_json(value: Any) -> Any:
    """What a text says as JSON; what is read already, such as a state, as it is."""
    import json

    if value is None or isinstance(value, (dict, list, int, float)):
        return value
    try:
        return json.loads(str(value))
    except ValueError as error:
        raise Misread(f"fromjson was given what is no JSON: {error}") from error


class Named:
    """Things by name, and nothing else that a template could stumble over: a phase may be called `items`."""

    __slots__ = ("_seen_as", "_things")

    def __init__(self, things: Mapping[str, Any], seen_as: Callable[[Any], Any] | None = None) -> None:
        self._things = things
        self._seen_as = seen_as

    def __getitem__(self, name: str) -> Any:
        thing = self._things[name]
        return thing if self._seen_as is None else self._seen_as(thing)

    def __str__(self) -> str:
        raise Misread(f"what has parts is no text: name one of {', '.join(map(str, self._things)) or 'them'}")

    def __contains__(self, name: str) -> bool:
        return name in self._things

    def __iter__(self) -> Iterator[str]:
        return iter(self._things)

    def __len__(self) -> int:
        return len(self._things)


class Late(UserString):
    """A text that is read only if a template uses it, and then as any other text."""

    def __init__(self, read: Callable[[], str] | str) -> None:
        self._read = read

    @property
    def data(self) -> str:  # type: ignore[override]  # what is an attribute there is looked up here
        """The text itself."""
        if not isinstance(self._read, str):
            self._read = self._read()
        return self._read

    def format(self, *args: Any, **named: Any) -> str:
        """Not here: a text that somebody wrote could look into whatever it is given."""
        raise Misread("a text is no pattern: put it together with ~")

    def format_map(self, mapping: Any) -> str:
        """Nor this."""
        return self.format(mapping)


class Part(Late):
    """What a template sees of a requirement: its text, or that of an output by name."""

    def __init__(self, given: Any) -> None:
        super().__init__(lambda: str(given.text()) if isinstance(given, Input) else given)
        self._given = given if isinstance(given, Input) else None  # a piece of a text is a text

    def __getitem__(self, key: Any) -> Any:
        if isinstance(key, str) and self._given is not None:
            return str(self._given.named(key))
        return super().__getitem__(key)

    def has(self, name: str) -> bool:
        """Whether an output is called so; then it is meant, whatever texts can do under that name."""
        return self._given is not None and self._given.has(name)

    @property
    def paths(self) -> list[str]:
        """Where its files are."""
        return list(self._given.relative) if self._given is not None else []


def context_of(job: Job) -> dict[str, Any]:
    """The names that a template has."""
    spec = job.spec
    context: dict[str, Any] = {
        "id": spec.id,
        "description": spec.description,
        "contract": spec.contract,
        "instructions": spec.instructions,
        "acceptance": list(spec.acceptance),
        "vars": Named(job.variables),
        "inputs": Named(dict(job.inputs), Part),
        "outputs": Named(dict(spec.outputs) or {str(n): path for n, path in enumerate(spec.produces)}),
        "sources": Named({path: _text(job.root, path) for path in job.sources}),
    }
    if spec.phase:
        context |= {"unit": spec.unit, "phase": spec.phase, "iteration": max(spec.iteration, 1)}
    if spec.item is not None:
        context["item"] = spec.item
    if spec.file:
        context |= {"file": spec.file, "text": _text(job.root, spec.file)}
    if job.state and not os.path.isdir(path := os.path.join(job.root, job.state)):
        context["state"] = _state(path)
    return context


def _text(root: str, path: str) -> Late:
    """What is in a file."""

    def read() -> str:
        with open(os.path.join(root, path), encoding="utf-8", errors="replace") as file:
            return file.read()

    return Late(read)


def _state(path: str) -> Any:
    """The state before, as JSON if it is, or else as text; {} where there is none yet."""
    import json

    try:
        with open(path, encoding="utf-8", errors="replace") as file:  # whoever shows no state need not care
            text = file.read()
    except FileNotFoundError:
        return {}
    try:
        return json.loads(text)
    except ValueError:
        return text


def _why(error: Exception, path: str, job: Job) -> UsageError | None:
    """What an error says of a template; None if it is not about the template."""
    from jinja2 import TemplateError, TemplateNotFound, TemplateSyntaxError
    from jinja2.exceptions import SecurityError

    if isinstance(error, TemplateSyntaxError):
        return _broken(f"{error.name or path}, line {error.lineno}: {error.message}", "template.syntax")
    if isinstance(error, SecurityError):
        return _broken(f"{path}: {error}", "template.unsafe", "a template only reads what it is given")
    if isinstance(error, TemplateNotFound):
        return _broken(f"{path} includes {error.name}, which does not exist", "template.none")
    if isinstance(error, TemplateError):
        names = ", ".join(sorted(context_of(job)))
        hint = f"mend {path}: it has {names}; inputs has {', '.join(sorted(job.inputs)) or 'nothing'}"
        what = re.sub(_OBJECT, r"'\1' is undefined", error.message or str(error))
        return _broken(f"{_where(error, path)}: {what}", "template.undefined", hint)
    if isinstance(error, Misread):
        return _broken(f"{path}: {error}", "template.failed")
    if isinstance(error, (TypeError, ValueError, ArithmeticError, LookupError, RecursionError, MemoryError)):
        return _broken(f"{_where(error, path)}: {type(error).__name__}: {error}", "template.failed")
    return None


def _where(error: Exception, path: str) -> str:
    """The template in which it happened, which may be a part of another one, and the line."""
    trace = error.__traceback__
    while trace is not None:
        template = trace.tb_frame.f_globals.get("__jinja_template__")
        if template is not None:
            path = f"{template.name or path}, line {template.get_corresponding_lineno(trace.tb_lineno)}"
        trace = trace.tb_next
    return path


def _broken(why: str, code: str, hint: str = "mend the template") -> UsageError:
    return UsageError(f"Its prompt cannot be made: {why}", hint=hint, code=code)
