"""YAML text to a tree with lines, from the parser's events in one loop.

Faster than composing nodes and constructing objects, and safe on hostile text: no recursion, bounded depth,
alias expansion counted before it happens. The C parser is used when PyYAML has it.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

import yaml
from yaml.constructor import SafeConstructor
from yaml.reader import Reader
from yaml.resolver import Resolver

from headway.files.tree import DEEPEST, Map, Odd, Seq, Unreadable, refuse_unstorable

LOADER: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
EXPANDED = 5_000_000

_TAG = "tag:yaml.org,2002:"
_CONTAINER_TAGS = {None, "!", f"{_TAG}map", f"{_TAG}seq"}
_TEXT = f"{_TAG}str"
_TEXT_TAGS = {_TEXT, f"{_TAG}value", "!"}
_MERGE = f"{_TAG}merge"
_RESOLVERS = Resolver.yaml_implicit_resolvers
_CONSTRUCTOR = SafeConstructor()
_CONSTRUCT = {
    f"{_TAG}null": _CONSTRUCTOR.construct_yaml_null,
    f"{_TAG}bool": _CONSTRUCTOR.construct_yaml_bool,
    f"{_TAG}int": _CONSTRUCTOR.construct_yaml_int,
    f"{_TAG}float": _CONSTRUCTOR.construct_yaml_float,
}
_DIGITS = 40
_TOO_LARGE = 2**64


class YamlDocument(NamedTuple):
    """The first document of a text, and the line of a second one if there is one."""

    root: object
    second: int | None


def read_yaml(text: str) -> YamlDocument:
    """The tree of a YAML text, or Unreadable."""
    if (match := Reader.NON_PRINTABLE.search(text)) is not None:
        line = text.count("\n", 0, match.start()) + 1
        raise Unreadable(f"the file holds the control character {match[0]!r}", line, "remove it")
    loader = LOADER(text)
    try:
        return _Builder().build(iter(loader.get_event, None))
    except yaml.YAMLError as error:
        raise _syntax_error(error, text) from None
    except (ValueError, OverflowError):  # PyYAML's own scanner on escapes that name no character
        raise Unreadable("an escape in a quoted text names no character", 1) from None
    finally:
        loader.dispose()


def _syntax_error(error: yaml.YAMLError, text: str) -> Unreadable:
    """The parser's own words, on the line where the trouble starts."""
    problem = getattr(error, "problem", None) or str(error)
    mark, context = getattr(error, "problem_mark", None), getattr(error, "context_mark", None)
    if mark is None or (context is not None and ("end of stream" in problem or "stream end" in problem)):
        mark = context
    line = mark.line + 1 if mark else 1
    hint = "indent with blanks, not with tabs" if _is_tabbed(text, line) else ""
    return Unreadable(f"this is not YAML: {problem}", line, hint)


def _is_tabbed(text: str, line: int) -> bool:
    lines = text.split("\n", line)[:line]
    return lines[-1].lstrip(" ").startswith("\t")


class _Frame:
    """A container that is still open."""

    __slots__ = ("anchor", "key", "merges", "node", "size", "tag")

    def __init__(self, node: Map | Seq, anchor: str | None, tag: str | None) -> None:
        self.node = node
        self.anchor = anchor
        self.tag = tag
        self.size = 1
        self.key: tuple[str, int, str] | None = None
        self.merges: list[tuple[object, int]] = []


class _Anchored(NamedTuple):
    value: object
    size: int


class _Builder:
    """Turns events into one tree."""

    def __init__(self) -> None:
        self.stack: list[_Frame] = []
        self.anchors: dict[str, _Anchored | None] = {}
        self.expanded = 0
        self.root: object = None

    def build(self, events: Iterable[Any]) -> YamlDocument:
        documents = 0
        for event in events:
            if type(event) is yaml.ScalarEvent:  # as most are
                self._scalar(event)
            elif isinstance(event, yaml.CollectionStartEvent):
                self._open(event)
            elif isinstance(event, yaml.CollectionEndEvent):
                self._close()
            elif isinstance(event, yaml.AliasEvent):
                self._alias(event)
            elif isinstance(event, yaml.DocumentStartEvent):
                documents += 1
                if documents > 1:
                    return YamlDocument(self.root, _line(event))
        return YamlDocument(self.root, None)

    def _scalar(self, event: Any) -> None:
        line, text, tag = event.start_mark.line + 1, event.value, event.tag
        if event.style == '"':  # only escapes can name what the text as a whole does not hold
            refuse_unstorable(text, line)
        if tag is None and event.implicit[0]:
            tag = _resolve(text) if text[:1] in _RESOLVERS else _TEXT
        elif tag is None or tag == "!":
            tag = _TEXT
        value = text if tag in _TEXT_TAGS else _construct(tag, text)
        if event.anchor is not None:
            self.anchors[event.anchor] = _Anchored(value, 1)
        self._add(value, line, 1, tag, text)

    def _open(self, event: Any) -> None:
        line = _line(event)
        if len(self.stack) >= DEEPEST:
            raise Unreadable(f"nested deeper than {DEEPEST} levels", line)
        node = Map(line) if isinstance(event, yaml.MappingStartEvent) else Seq(line)
        self.stack.append(_Frame(node, event.anchor, event.tag))
        if event.anchor is not None:
            self.anchors[event.anchor] = None

    def _close(self) -> None:
        frame = self.stack.pop()
        value: object = frame.node
        if frame.merges and isinstance(frame.node, Map):
            value = _merge(frame.node, frame.merges)
        if frame.tag not in _CONTAINER_TAGS:
            value = Odd(f"a value with the tag {_short(frame.tag or '')}", "")
        if frame.anchor is not None:
            self.anchors[frame.anchor] = _Anchored(value, frame.size)
        self._add(value, frame.node.line, frame.size, "", "")

    def _alias(self, event: Any) -> None:
        line = _line(event)
        if event.anchor not in self.anchors:
            raise Unreadable(f"the alias *{event.anchor} has no anchor &{event.anchor} before it", line)
        anchored = self.anchors[event.anchor]
        if anchored is None:
            raise Unreadable(f"the alias *{event.anchor} stands inside its own anchor", line, "write it out")
        self.expanded += anchored.size
        if self.expanded > EXPANDED:
            raise Unreadable(f"aliases expand to more than {EXPANDED:,} values", line, "use fewer aliases")
        value = anchored.value
        if isinstance(value, str):
            self._add(value, line, anchored.size, _TEXT, value)
        else:
            self._add(value, line, anchored.size, "", "")

    def _add(self, value: object, line: int, size: int, tag: str, text: str) -> None:
        """Put a finished value where it belongs: the root, an item, a key, or the value of the last key."""
        if not self.stack:
            self.root = value
            return
        frame = self.stack[-1]
        frame.size += size
        node = frame.node
        if isinstance(node, Seq):
            node.put(value, line)
        elif frame.key is None:
            frame.key = (text, line, tag)
        else:
            _put_pair(frame, frame.key, node, value, text)
            frame.key = None


def _put_pair(frame: _Frame, key: tuple[str, int, str], node: Map, value: object, text: str) -> None:
    name, line, kind = key
    if kind in _TEXT_TAGS:
        node.put(name, value, line)
        if text and not isinstance(value, str):
            node.written[name] = text
    elif kind == _MERGE:
        frame.merges.append((value, line))
    else:
        node.odd.append((name, line))


def _merge(node: Map, merges: list[tuple[object, int]]) -> Map:
    """The mapping with what `<<` brings in; its own keys win, then earlier mappings."""
    merged = Map(node.line)
    sources = [source for value, line in merges for source in _merged_maps(value, line)]
    for source in [*sources, node]:
        for key in source:
            if key not in merged:
                owner = node if key in node else source
                merged.put(key, owner[key], owner.lines[key])
                if key in owner.written:
                    merged.written[key] = owner.written[key]
    merged.duplicates, merged.odd = node.duplicates, node.odd
    return merged


def _merged_maps(value: object, line: int) -> list[Map]:
    maps = value if isinstance(value, Seq) else [value]
    if not all(isinstance(item, Map) for item in maps):
        raise Unreadable("<< takes a mapping or a list of mappings", line)
    return [item for item in maps if isinstance(item, Map)]


def _line(event: Any) -> int:
    return int(event.start_mark.line) + 1


def _resolve(text: str) -> str:
    """The tag of a plain scalar."""
    for tag, pattern in _RESOLVERS.get(text[:1], ()):
        if pattern.match(text):
            return str(tag)
    return _TEXT


def _construct(tag: str, text: str) -> object:
    """The value of a scalar that is not text."""
    if tag == _MERGE:
        return text
    if tag == f"{_TAG}timestamp":
        return Odd("a date", text)
    if tag not in _CONSTRUCT:
        return Odd(f"a value with the tag {_short(tag)}", text)
    if tag == f"{_TAG}int" and len(text) > _DIGITS:
        return _TOO_LARGE
    try:
        return _CONSTRUCT[tag](yaml.ScalarNode(tag, text))
    except (ValueError, KeyError, IndexError, OverflowError):
        return Odd(f"a malformed {_short(tag)}", text)


def _short(tag: str) -> str:
    return tag.replace(_TAG, "!!")
