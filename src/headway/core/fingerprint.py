"""What an artifact is made from, as digests that can be compared part by part. Knows values; never files.

Values are encoded canonically before they are hashed: each with its type and its length, so that no two different
values share an encoding and no two runs encode one value differently.
"""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Iterable, Mapping
from operator import attrgetter
from typing import Any

import msgspec

from headway.core.placeholders import find
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


_spec_values = attrgetter(*SPEC_FIELDS)


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
    return hashlib.sha256(encode(value, ran_as=ran_as)).hexdigest()[:LENGTH]


def _text(value: str) -> bytes:
    data = value.encode("utf-8", "surrogatepass")
    return b"s%d:%s" % (len(data), data)


def _texts(values: Collection[str]) -> bytes:
    plain = _plain(values)
    return plain.encode() if plain.isascii() else b"[%s]" % b"".join(map(_text, values))


def _plain(values: Collection[str]) -> str:
    """Texts in their canonical form if all of them are ASCII: then they have as many bytes as letters."""
    return f"[{''.join([f's{len(value)}:{value}' for value in values])}]"


def _pairs(values: Mapping[str, str]) -> bytes:
    plain = _plain_pairs(values) if values else "[]"
    return plain.encode() if plain.isascii() else _texts([text for pair in sorted(values.items()) for text in pair])


def _plain_pairs(values: Mapping[str, str]) -> str:
    """As `_plain`."""
    return f"[{''.join([f's{len(name)}:{name}s{len(text)}:{text}' for name, text in sorted(values.items())])}]"


def _hash(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()[:LENGTH]


def spec_digest(spec: ArtifactSpec) -> str:
    """What is asked for: what it is, what it needs, where it goes, how it is checked."""
    values = _spec_values(spec)
    said, contract, told, acceptance, produces, modifies, requires, verify = values
    plain = (
        f"s{len(said)}:{said}s{len(contract)}:{contract}s{len(told)}:{told}{_plain(acceptance) if acceptance else '[]'}"
        f"{_plain(produces) if produces else '[]'}{_plain(modifies) if modifies else '[]'}"
        f"{_plain(requires) if requires else '[]'}s{len(verify)}:{verify}"
    )
    if plain.isascii():
        data = plain.encode()
    else:
        data = b"".join([_text(v) if type(v) is str else _texts(v) for v in values])
    if spec.phase or spec.gathers:
        data += b"phase" + _texts((*spec.reads, "", *spec.optional))
    return _hash(data)


def recipe_digest(
    spec: ArtifactSpec,
    settings: Settings,
    *,
    code: str,
    env: Mapping[str, str | None],
    reads_vars: bool = True,
    names_itself: bool = True,
) -> str:
    """How it is made: command or function, its code, its arguments, and the variables that it uses.

    Which variables a function reads cannot be told, only whether it reads any: then all of them count. `names_itself`:
    what a command is for, also which unit and round, its environment tells it; what was made before that counted lacks
    it.
    """
    values: dict[str, Any]
    if spec.make:
        how = b"function" + _texts((spec.version or code, spec.id))
        values = {"args": spec.args, "vars": settings.vars} if reads_vars and settings.vars else spec.args
    elif spec.run:
        own = (spec.id,) if names_itself and (spec.phase or "HEADWAY_ARTIFACT" in spec.run) else ()
        how = b"command" + _texts((spec.run, spec.version, *own))
        values = command_values(spec, settings)
    else:
        how, values = b"gathers" if spec.gathers else b"hand", {}
    if spec.templates or (spec.make and spec.outputs):
        how += b"unit" + _texts((spec.unit,)) + _pairs(spec.outputs)
    if spec.item is not None:
        values = {"values": values, "item": spec.item}
    rest = encode((values, env)) if values or env else b""
    return _hash(b"recipe%d:%s%s" % (VERSION, how, rest))


def command_values(spec: ArtifactSpec, settings: Settings) -> dict[str, Any]:
    """The values that stand in a command for `{vars.x}` and `{id}`; whatever else it names is in the spec."""
    values: dict[str, Any] = {}
    for placeholder in find(spec.run) if "{" in spec.run else ():
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
    spec, recipe, inputs, sources, before = fp.spec, fp.recipe, fp.inputs, fp.sources, fp.before
    plain = (
        f"key{fp.v}:[s{len(spec)}:{spec}s{len(recipe)}:{recipe}]{_plain_pairs(inputs) if inputs else '[]'}"
        f"{_plain_pairs(sources) if sources else '[]'}{_plain_pairs(before) if before else '[]'}"
        f"{f'templates{_plain_pairs(fp.templates)}' if fp.templates else ''}"
    )
    if plain.isascii():
        return _hash(plain.encode())
    start = b"key%d:" % fp.v + _texts((spec, recipe))
    prompts = b"templates" + _pairs(fp.templates) if fp.templates else b""
    return _hash(start + _pairs(inputs) + _pairs(sources) + _pairs(before) + prompts)


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
