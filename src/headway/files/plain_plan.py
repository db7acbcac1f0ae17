"""A plan file in JSON whose artifacts say common things in the common way, read by a parser that expects just that.

Cannot say what is wrong with a file: whatever is wrong or unusual is left to those who read with care.
"""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from headway.core.paths import normalise
from headway.core.plan import ArtifactSpec, PlanSpec, Settings

_BLANKS = b" \t\r\n"


class _Artifact(msgspec.Struct, omit_defaults=True, forbid_unknown_fields=True, gc=False):
    """What most artifacts say; None is what they do not say."""

    description: str | None = None
    contract: str | None = None
    requires: str | list[str] | None = None
    sources: str | list[str] | None = None
    produces: str | list[str] | None = None
    run: str | None = None
    make: str | None = None


class _Head(msgspec.Struct, forbid_unknown_fields=True):
    """What most plans say besides."""

    goal: str = ""
    id: str = ""


_Root = dict[str, msgspec.Raw]
_Artifacts = dict[str, _Artifact]


def read_plain(text: str) -> PlanSpec | None:
    """The plan that a file describes, if its artifacts are plain and nothing got lost on the way."""
    if "\\u" in text:  # it may be a character that nothing can hold
        return None
    data = text.encode()
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


def _size(data: bytes) -> int:
    """How much is written, whatever the layout."""
    return len(data.translate(None, _BLANKS))


def _specs(given: Mapping[str, _Artifact]) -> tuple[ArtifactSpec, ...]:
    specs = []
    known = {name: name for name in given}  # one text for each, wherever it is named: it is looked up many times
    name_of = known.get
    for name, said in given.items():
        requires, produces, sources = said.requires, said.produces, said.sources
        specs.append(
            ArtifactSpec(
                id=name,
                description=said.description or "",
                contract=said.contract or "",
                requires=(requires,)
                if isinstance(requires, str)
                else tuple(sorted({name_of(needed, needed) for needed in requires}))
                if requires
                else (),
                produces=(normalise(produces),) if isinstance(produces, str) else tuple(map(normalise, produces or ())),
                sources=(sources,) if isinstance(sources, str) else tuple(sources or ()),
                run=said.run or "",
                make=said.make or "",
            )
        )
    return tuple(specs)
