"""How projects are related, by what their own files say: each relation with how sure it is, and the evidence. Pure."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Mapping

import msgspec

from headway.core.places import Relationship, Said
from headway.history.shapes import Shape
from headway.history.survey import Facts

BY_PATH, BY_NAME, SAME_ORGANISATION, SIMILAR_NAME = 0.95, 0.9, 0.85, 0.7
MANY = 8
"""More projects than this in one organisation, or of one name, say nothing about any two of them."""

_PART = re.compile(r"[-_.]")
_DOCS = frozenset(("docs", "doc", "documentation", "site", "website"))


class Link(Shape, kw_only=True):
    """Two projects, by path: the source depends on, documents, or goes with the target."""

    source: str
    target: str
    relationship: Relationship
    confidence: float
    evidence: list[str]
    confirmed: bool = False
    by: str = ""
    at: str = ""


def relate(projects: Mapping[str, Facts], known: Iterable[Link] = ()) -> list[Link]:
    """All relations that files declare or names suggest, and those `known` otherwise, the surest first."""
    found: dict[tuple[str, str], Link] = {}
    for link in (*known, *_declared(projects), *_siblings(projects)):
        _add(found, link)
    return _surest_first(found.values())


def overrule(links: list[Link], said: Iterable[tuple[str, str, Said]]) -> list[Link]:
    """The same with what people said, each of two projects by their paths of today: that counts over what was found."""
    found = {(link.source, link.target): link for link in links}
    for source, target, word in said:
        if word.removed:
            found.pop((source, target), None)
            if (other := found.get((target, source))) is not None and other.relationship == "sibling":
                found.pop((target, source))
            continue
        link = found.get((source, target))
        evidence = [word.reason or f"{'confirmed' if word.confirmed else 'linked'} by {word.by}"]
        if word.confirmed and link is not None:
            evidence = [*link.evidence, *evidence]
        found[source, target] = Link(
            source=source,
            target=target,
            relationship=word.relationship,
            confidence=1.0,
            evidence=evidence,
            confirmed=True,
            by=word.by,
            at=word.at,
        )
    return _surest_first(found.values())


def _surest_first(links: Iterable[Link]) -> list[Link]:
    return sorted(links, key=lambda link: (-link.confidence, link.source, link.target))


def _add(found: dict[tuple[str, str], Link], link: Link) -> None:
    """One relation for two projects: the surest counts, the evidence of the others stands behind it."""
    key = (link.source, link.target)
    if link.relationship == "sibling" and ((link.target, link.source) in found or key in found):
        key = (link.target, link.source) if key not in found else key
    known = found.get(key)
    if known is None:
        found[key] = link
        return
    first, second = (known, link) if known.confidence >= link.confidence else (link, known)
    evidence = list(dict.fromkeys([*first.evidence, *second.evidence]))
    found[key] = msgspec.structs.replace(first, source=key[0], target=key[1], evidence=evidence)


def _declared(projects: Mapping[str, Facts]) -> Iterator[Link]:
    """What build files and documentation name: other projects by their packages' names, or by path."""
    owners: dict[str, str] = {}
    for path, facts in projects.items():
        for name in facts.offers:
            owners.setdefault(name, path)
    for path, facts in projects.items():
        for need, file in facts.needs.items():
            by_path = need.startswith("../")
            target = _owner(projects, path, need) if by_path else owners.get(need, "")
            if target and target != path:
                how = f"{file}: {need}" if by_path else f"{file} needs {need.partition(':')[2]}"
                yield _link(path, target, "dependency", BY_PATH if by_path else BY_NAME, how)
        for pointed, confidence in facts.documents.items():
            target = _owner(projects, path, pointed) or _owner(projects, f"{path}/docs", pointed)
            if target and target != path:
                yield _link(path, target, "documentation", confidence, f"documentation points to {pointed}")


def _owner(projects: Mapping[str, Facts], path: str, relative: str) -> str:
    """The project that a path, seen from a project, leads into; "" if none."""
    found = os.path.normpath(os.path.join(path, relative))
    while found and found not in (".", "..") and not found.startswith("../"):
        if found in projects:
            return found
        found = os.path.dirname(found)
    return ""


def _siblings(projects: Mapping[str, Facts]) -> Iterator[Link]:
    organisations: dict[str, list[str]] = {}
    names: dict[str, list[str]] = {}
    for path, facts in projects.items():
        if facts.organisation:
            organisations.setdefault(facts.organisation, []).append(path)
        stem = _PART.split(facts.name)[0].lower()
        if len(stem) > 2:
            names.setdefault(stem, []).append(path)
    for organisation, paths in organisations.items():
        for one, other in _pairs(paths):
            yield _link(one, other, "sibling", SAME_ORGANISATION, f"both are of {organisation}")
    for stem, paths in names.items():
        for one, other in _pairs(paths):
            yield _named_alike(projects, one, other, stem)


def _named_alike(projects: Mapping[str, Facts], one: str, other: str, stem: str) -> Link:
    """`shop` and `shop-web` go together; `shop-docs` documents `shop`."""
    for docs, code in ((one, other), (other, one)):
        parts = set(_PART.split(projects[docs].name.lower())[1:])
        if parts & _DOCS and not set(_PART.split(projects[code].name.lower())[1:]) & _DOCS:
            return _link(docs, code, "documentation", SIMILAR_NAME, f"their names begin with {stem}")
    return _link(one, other, "sibling", SIMILAR_NAME, f"their names begin with {stem}")


def _pairs(paths: list[str]) -> Iterator[tuple[str, str]]:
    if len(paths) <= MANY:
        for n, one in enumerate(paths):
            for other in paths[n + 1 :]:
                yield one, other


def _link(source: str, target: str, relationship: Relationship, confidence: float, evidence: str) -> Link:
    return Link(source=source, target=target, relationship=relationship, confidence=confidence, evidence=[evidence])
