"""What an artifact is made from, as digests that can be compared part by part. Knows values; never files.

Values are encoded canonically before they are hashed: each with its type and its length, so that no two different
values share an encoding and no two runs encode one value differently.
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Iterable, Mapping, Sequence
from hashlib import sha256
from operator import attrgetter
from typing import Any, TypeVar

import msgspec

from headway.core.plan import ArtifactSpec, Settings
from headway.core.state import Completion, Fingerprint, Output

VERSION = 1
LENGTH = 32
NOTHING = "none"
"""Stands for the content of a requirement that was skipped and never made."""

SPEC_FIELDS = (
    "description",
    "contract",
    "instructions",
    "acceptance",
    "produces",
    "modifies",
    "requires",
    "verify",
)


T = TypeVar("T")
_Size = Callable[[str], int]
"""Counts the bytes of a text; `len`, where these are its letters."""
_spec_values = attrgetter(*SPEC_FIELDS)
_encoder = msgspec.json.Encoder(order="deterministic")
_in_order, _lines_in_order = _encoder.encode, _encoder.encode_lines
_said = attrgetter(*[field for field in SPEC_FIELDS if field not in ("produces", "requires")], "phase", "gathers")
"""What an artifact may say besides where it goes and what it needs."""


RUN_AS = "__headway__"
"""What the file of a plan is called while Headway runs it; Python calls it `__main__`, and both mean the same."""
MAIN = "__main__"


class NotEncodable(TypeError):
    """A value that has no canonical form: an open file, a connection, an object of unknown content."""


def encode(value: Any, *, ran_as: str = MAIN) -> bytes:
    """The canonical bytes of a value. `ran_as`: what stands for the file of a plan that Headway ran."""
    parts: list[bytes] = []
    _encode(value, parts, 0, ran_as)
    return b"".join(parts)


def _encode(value: Any, parts: list[bytes], depth: int, ran_as: str) -> None:
    if depth > 200:
        raise NotEncodable("it is nested too deeply")
    match value:
        case None:
            parts.append(b"n;")
        case bool():
            parts.append(b"b1;" if value else b"b0;")
        case int():
            parts.append(b"i%d;" % value)
        case float():
            parts.append(b"f%s;" % repr(value).encode())
        case str():
            data = value.encode("utf-8", "surrogatepass")
            parts.append(b"s%d:%s" % (len(data), data))
        case bytes() | bytearray():
            parts.append(b"y%d:%s" % (len(value), bytes(value)))
        case list() | tuple():
            parts.append(b"l%d:" % len(value))
            for item in value:
                _encode(item, parts, depth + 1, ran_as)
        case Mapping():
            _encode_pairs(b"m", value.items(), parts, depth, ran_as)
        case set() | frozenset():
            parts.append(b"e%d:" % len(value))
            parts.extend(sorted(encode(item, ran_as=ran_as) for item in value))
        case _:
            _encode_object(value, parts, depth, ran_as)


def _encode_pairs(tag: bytes, pairs: Iterable[tuple[Any, Any]], parts: list[bytes], depth: int, ran_as: str) -> None:
    entries = []
    for key, item in pairs:
        own: list[bytes] = []
        _encode(key, own, depth + 1, ran_as)
        _encode(item, own, depth + 1, ran_as)
        entries.append(b"".join(own))
    parts.append(b"%s%d:" % (tag, len(entries)))
    parts.extend(sorted(entries))


def _encode_object(value: Any, parts: list[bytes], depth: int, ran_as: str) -> None:
    module = type(value).__module__
    name = f"{ran_as if module == RUN_AS else module}.{type(value).__qualname__}"
    if isinstance(value, msgspec.Struct):
        fields = msgspec.structs.asdict(value)
    elif hasattr(type(value), "__dataclass_fields__"):
        import dataclasses  # whoever has such a value has imported it

        fields = {f.name: getattr(value, f.name) for f in dataclasses.fields(value)}
    elif hasattr(value, "model_dump") and not isinstance(value, type):
        fields = value.model_dump()
    elif isinstance(value, enum.Enum):
        fields = {"name": value.name, "value": value.value}
    elif hasattr(value, "__fspath__"):
        fields = {"path": str(value)}
    elif hasattr(value, "isoformat") or hasattr(value, "as_tuple") or hasattr(value, "hex"):
        fields = {"text": str(value)}
    else:
        raise NotEncodable(f"a {name} has no canonical form")
    _encode(name, parts, depth, ran_as)
    _encode_pairs(b"o", fields.items(), parts, depth, ran_as)


def digest(value: Any, *, ran_as: str = MAIN) -> str:
    """The digest of a value's canonical bytes."""
    return sha256(encode(value, ran_as=ran_as)).hexdigest()[:LENGTH]


def _digest(tell: Callable[[T, _Size], str], of: T, rest: bytes = b"") -> str:
    """The digest of what is told as one text; where all of it is ASCII, it has as many bytes as letters."""
    text = tell(of, len)
    data = text.encode() if text.isascii() else tell(of, _in_bytes).encode("utf-8", "surrogatepass")
    return sha256(data + rest).hexdigest()[:LENGTH]


def _digests(texts: Sequence[str]) -> list[str]:
    """The digests of what was told by its letters; none at all, if these are not ASCII."""
    return [sha256(text.encode()).hexdigest()[:LENGTH] for text in texts] if "".join(texts).isascii() else []


def _in_bytes(text: str) -> int:
    return len(text.encode("utf-8", "surrogatepass"))


def _texts(values: Iterable[str], size: _Size) -> str:
    found = "["
    for value in values:
        found += f"s{size(value)}:{value}"
    return found + "]"


def _pairs(values: Mapping[str, str], size: _Size) -> str:
    if not values:
        return "[]"
    found = "["
    for name in sorted(values):
        text = values[name]
        found += f"s{size(name)}:{name}s{size(text)}:{text}"
    return found + "]"


def spec_digest(spec: ArtifactSpec) -> str:
    """What is asked for: what it is, what it needs, where it goes, how it is checked."""
    return _digest(_asked, spec)


def spec_digests(specs: Sequence[ArtifactSpec]) -> list[str]:
    """The same of many."""
    if any(map(any, map(_said, specs))):
        texts = [_asked(spec, len) for spec in specs]
    else:  # none says more than where it goes and what it needs, as in plans that programs write
        texts = [f"s0:s0:s0:[]{_texts(spec.produces, len)}[]{_texts(spec.requires, len)}s0:" for spec in specs]
    return _digests(texts) or [spec_digest(spec) for spec in specs]


def _asked(spec: ArtifactSpec, size: _Size) -> str:
    said, contract, told, acceptance, produces, modifies, requires, verify = _spec_values(spec)
    text = (
        f"s{size(said)}:{said}s{size(contract)}:{contract}s{size(told)}:{told}{_texts(acceptance, size)}"
        f"{_texts(produces, size)}{_texts(modifies, size)}{_texts(requires, size)}s{size(verify)}:{verify}"
    )
    if spec.phase or spec.gathers:
        text += f"phase{_texts((*spec.reads, '', *spec.optional), size)}"
    return text


def recipe_digest(
    spec: ArtifactSpec,
    settings: Settings,
    *,
    code: str,
    env: Mapping[str, str | None],
    reads_vars: bool = True,
    names_itself: bool = True,
    prompted: Mapping[str, Any] | None = None,
) -> str:
    """How it is made: command or function, its code, its arguments, and the variables that it uses.

    Which variables a function reads cannot be told, only whether it reads any: then all of them count. `names_itself`:
    what a command is for, also which unit and round, its environment tells it, and which units there may be the plan
    says; what was made before that counted lacks it. `prompted`: the variables that its templates read.
    """
    named: tuple[str, ...] = ()
    values: dict[str, Any] = {}
    if spec.make:
        how, named = "function", (spec.version or code, spec.id)
        values = {"args": spec.args, "vars": settings.vars} if reads_vars and settings.vars else spec.args
    elif spec.run:
        own = (spec.id,) if names_itself and (spec.phase or "HEADWAY_ARTIFACT" in spec.run) else ()
        how, named = "command", (spec.run, spec.version, *own)
        values = command_values(spec, settings)
    else:
        how = "gathers" if spec.gathers else "hand"
        units = settings.pipeline(spec.pipeline) if spec.gathers == "units" and names_itself else None
        values = {"items": units.units.items, "max": units.units.max} if units is not None else {}
    if spec.item is not None:
        values = {"values": values, "item": spec.item}
    if prompted:
        values = {"values": values, "prompted": prompted}
    return _digest(_how, (spec, how, named), encode((values, env)) if values or env else b"")


def plain_function_digests(codes: Sequence[str], ids: Sequence[str]) -> list[str]:
    """As `recipe_digest`, of functions that are given nothing but their artifacts, as most are; by their code."""
    told = {code: f"recipe{VERSION}:function[s{len(code)}:{code}" for code in set(codes)}
    found = _digests([f"{told[code]}s{len(name)}:{name}]" for code, name in zip(codes, ids, strict=True)])
    pairs = zip(codes, ids, strict=True)
    return found or [_digest(_how, (ArtifactSpec(id=pair[1]), "function", pair)) for pair in pairs]


def _how(recipe: tuple[ArtifactSpec, str, tuple[str, ...]], size: _Size) -> str:
    spec, how, named = recipe
    text = f"recipe{VERSION}:{how}{_texts(named, size) if named else ''}"
    if spec.templates or (spec.make and spec.outputs):
        text += f"unit{_texts((spec.unit,), size)}{_pairs(spec.outputs, size)}"
    return text


def command_values(spec: ArtifactSpec, settings: Settings) -> dict[str, Any]:
    """The values that stand in a command for `{vars.x}` and `{id}`; whatever else it names is in the spec."""
    values: dict[str, Any] = {}
    if "{" not in spec.run:
        return values
    from headway.core.placeholders import find  # many plans have functions only

    for placeholder in find(spec.run):
        if placeholder.name == "vars":
            values[f"vars.{placeholder.key}"] = settings.vars.get(placeholder.key)
        elif placeholder.name == "id":
            values["id"] = spec.id
        elif spec.phase and placeholder.name == "unit":
            values["unit"] = spec.unit
        elif placeholder.name == "outputs" and placeholder.key in spec.outputs:
            values[f"outputs.{placeholder.key}"] = spec.outputs[placeholder.key]
    return values


def content_digest(outputs: tuple[Output, ...]) -> str:
    """What dependents see of an artifact: the bytes of its one output, or all of them with their paths."""
    if len(outputs) == 1:
        return outputs[0].digest[:LENGTH]
    return digest([(o.path, o.digest) for o in outputs])


def reuse_key(fp: Fingerprint) -> str:
    """Two artifacts with equal keys are made from the same things in the same way."""
    return _digest(_key, fp)


def precedent_key(fp: Fingerprint) -> bytes:
    """The same as a text, which is sooner told: for comparing, and for nobody else to keep."""
    try:
        return _in_order(fp)
    except UnicodeEncodeError:  # a name that is no text
        return reuse_key(fp).encode()


def precedent_keys(fps: Sequence[Fingerprint]) -> list[bytes]:
    """The same of many."""
    try:
        return _lines_in_order(fps).splitlines()
    except UnicodeEncodeError:
        return [precedent_key(fp) for fp in fps]


def _key(fp: Fingerprint, size: _Size) -> str:
    text = f"key{fp.v}:{_texts((fp.spec, fp.recipe), size)}"
    text += f"{_pairs(fp.inputs, size)}{_pairs(fp.sources, size)}{_pairs(fp.before, size)}"
    return f"{text}templates{_pairs(fp.templates, size)}" if fp.templates else text


def content_of(done: Completion | None) -> str:
    """The content of a requirement, by its newest completion.

    Through a link one reads what it leads to, and of that only what the link was made from can tell.
    """
    if done is None:
        return NOTHING
    outputs = done.outputs
    if len(outputs) == 1 and outputs[0].kind != "link":
        return outputs[0].digest[:LENGTH]
    if any(output.kind == "link" for output in outputs):
        return digest([content_digest(outputs), done.fp.inputs, done.fp.sources, done.fp.before])
    return content_digest(outputs)
