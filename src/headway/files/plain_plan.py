"""A plan file in JSON whose artifacts say common things in the common way, read by a parser that expects just that.

Cannot say what is wrong with a file: whatever is wrong or unusual is left to those who read with care.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import chain

import msgspec

from headway.core.paths import are_normal, normalise
from headway.core.plan import ArtifactSpec, PlanSpec, Settings

_BLANKS = b" \t\r\n"


class _Artifact(msgspec.Struct, omit_defaults=True, forbid_unknown_fields=True, gc=False):
    """What most artifacts say; None is what they do not say."""

    description: str | None = None
    contract: str | None = None
    requires: str | tuple[str, ...] | None = None
    sources: str | tuple[str, ...] | None = None
    produces: str | tuple[str, ...] | None = None
    run: str | None = None
    make: str | None = None


class _Head(msgspec.Struct, forbid_unknown_fields=True):
    """What most plans say besides."""

    goal: str = ""
    id: str = ""


_Root = dict[str, msgspec.Raw]
_Artifacts = dict[str, _Artifact]


def read_plain(data: bytes) -> PlanSpec | None:
    """The plan that a file describes, if its artifacts are plain and nothing got lost on the way."""
    if b"\\u" in data or b"\0" in data or not _is_text(data):  # it may be a character that nothing can hold
        return None
    try:
        root = msgspec.json.decode(data, type=_Root)
        given = msgspec.json.decode(root.pop("artifacts"), type=_Artifacts)
    except (msgspec.DecodeError, KeyError, RecursionError):
        return None
    kept = msgspec.json.encode({**root, "artifacts": given})
    if _size(kept) < _size(data):  # a key was given twice, or a character was not written as itself
        return None
    plan = _read_others(root)
    return None if plan is None else msgspec.structs.replace(plan, artifacts=_specs(given))


def _read_others(given: Mapping[str, msgspec.Raw]) -> PlanSpec | None:
    """The plan but for its artifacts; None if there is anything to say about it."""
    text = msgspec.json.encode(given)
    try:
        head = msgspec.json.decode(text, type=_Head)
    except msgspec.DecodeError:
        return _read_settings(text.decode())
    return PlanSpec(goal=head.goal, id=head.id, settings=Settings())  # written down, as by those who read with care


def _read_settings(text: str) -> PlanSpec | None:
    from headway.files.json_tree import NotJson, read_json  # few plans say more of themselves than a name and a goal
    from headway.files.plan_reader import Notes, read_plan

    try:
        document = read_json(text)
    except NotJson:
        return None
    if not document.plain or not isinstance(document.root, dict) or '"version"' in text:
        return None
    notes = Notes()
    plan = read_plan(document.root, notes)
    return None if notes.problems or notes.broken else plan


def _is_text(data: bytes) -> bool:
    """Whether these bytes are UTF-8, which nobody checks of what is only passed over."""
    try:
        return data.isascii() or bool(data.decode())
    except UnicodeDecodeError:
        return False


def _size(data: bytes) -> int:
    """How much is written, whatever the layout."""
    return len(data.translate(None, _BLANKS))


def _specs(given: Mapping[str, _Artifact]) -> tuple[ArtifactSpec, ...]:
    known = {name: name for name in given}  # one text for each, wherever it is named: it is looked up many times
    name_of = known.get
    makes = {said.make: said.make or "" for said in given.values()}  # the same function makes many of them
    produced = _column([said.produces for said in given.values()])
    required = _column([said.requires for said in given.values()])
    sources = _column([said.sources for said in given.values()])
    if not are_normal(chain.from_iterable(produced)):
        produced = [tuple(map(normalise, paths)) for paths in produced]
    return tuple(
        [
            ArtifactSpec(
                id=name,
                description=said.description or "",
                contract=said.contract or "",
                requires=tuple(sorted({*map(name_of, requires, requires)})) if requires else (),
                produces=produces,
                sources=reads,
                run=said.run or "",
                make=makes[said.make],
            )
            for (name, said), requires, produces, reads in zip(given.items(), required, produced, sources, strict=True)
        ]
    )


def _column(said: Iterable[str | tuple[str, ...] | None]) -> list[tuple[str, ...]]:
    """What each says of a key that takes one or many, as many."""
    return [(one,) if isinstance(one, str) else one or () for one in said]
