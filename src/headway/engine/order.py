"""Who reads what the plan makes and does not wait for it: by `sources`, or by a word of a command. Only tells of it.

A word that names an output is no source: it is not waited for, and nothing is made again when it changes. `requires`
says both. Knows the plan and its words; never files.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import Any

from headway.core.graph import ArtifactGraph
from headway.core.paths import beginning_as, is_glob, parents, would_find
from headway.core.plan import ArtifactSpec
from headway.engine.shared import Shared
from headway.engine.sources import words_of

WALKED = 200_000
"""So many steps are gone to find out who waits by way of others."""

READINGS = 2_000_000
"""So many times somebody reads something: then whoever reads it has been told of often enough."""

SEARCHED = 10_000
"""So many paths are held against patterns."""

TOLD = 5
"""So many readers are told one by one, and so many names of each."""

_BREAKS = str.maketrans(dict.fromkeys("'\"\\|&;<>()`", " "))

Stages = Sequence[str]
"""Who makes a path: one artifact, or all that change it in place, in order. Who waits for one of them has its turn."""

Reading = tuple[str, str, Stages]
"""Who reads which path, and who makes that."""


def warnings_of_order(
    graph: ArtifactGraph, making: Collection[str], shared: Shared, variables: Mapping[str, Any]
) -> list[str]:
    """That artifacts read what is about to be made, and do not wait for it: a text for each, with all that it reads.

    Who has among its sources what others change in place (`shared`) has its turn.
    """
    artifacts, chains = graph.artifacts, shared.chains
    reading = [spec for spec in artifacts.values() if spec.sources or spec.run or spec.verify]
    if not reading:
        return []
    readers: dict[str, list[str]] = {}
    for spec in reading:
        for source in spec.sources:
            readers.setdefault(source.rstrip("/"), []).append(spec.id)
    speaking = [spec for spec in reading if spec.run or spec.verify]
    makers: dict[str, Stages] = {path: (a,) for a in making for path in artifacts[a].produces if path not in chains}
    readings = ((reader, path, makers[path]) for reader, path in islice(_readings(readers, makers), READINGS))
    read = _apart(graph, readings, shared, whole=True)
    if speaking and chains:
        specs = [artifacts[a] for a in making]
        makers |= {path: chains[path] for s in specs for path in (*s.produces, *s.modifies) if path in chains}
    namings = _namings(speaking, makers, variables) if speaking and makers else ()
    named = _apart(graph, namings, shared)
    return [*_texts(graph, read, named)]


def _readings(readers: Mapping[str, list[str]], made: Collection[str]) -> Iterator[tuple[str, str]]:
    """Who reads which of these paths: those that are named, then files that patterns would find, as far as it takes no
    long search."""
    for path in [path for path in made if path.rstrip("/") in readers]:
        for reader in readers[path.rstrip("/")]:
            yield reader, path
    patterns = [pattern for pattern in readers if is_glob(pattern)]
    files = sorted(path for path in made if not path.endswith("/")) if patterns else []
    likely = ((pattern, path) for pattern in patterns for path in beginning_as(pattern, files))
    for pattern, path in islice(likely, SEARCHED):
        if would_find(pattern, path):
            yield from ((reader, path) for reader in readers[pattern])


def _namings(
    specs: Sequence[ArtifactSpec], makers: Mapping[str, Stages], variables: Mapping[str, Any]
) -> Iterator[Reading]:
    """Whose commands name which of these paths, or what is in such a folder.

    Of all commands together, or of each, it is mostly seen at a glance that they do not, or that what they name is
    required: only those of the others are taken apart as a shell would.
    """
    find = _finder(makers)
    glance = {part: stages for path, stages in makers.items() for part in _parts(path, {})}
    is_plain = glance.keys() == makers.keys()  # none has a blank
    has_folders = any(path.endswith("/") for path in makers)
    commands = {spec.id: f"{spec.run}\n{spec.verify}" for spec in specs}
    if not has_folders and glance.keys().isdisjoint(_parts("\n".join(commands.values()), variables)):
        return
    for spec in specs:
        parts = _parts(commands[spec.id], variables)
        if not has_folders and glance.keys().isdisjoint(parts):
            continue
        waits = {spec.id, *spec.requires}
        likely = (glance.get(part) or find(part)[1] for part in parts)
        if any(stages and not (is_plain and not waits.isdisjoint(stages)) for stages in likely):
            found = map(find, words_of(spec, variables))
            yield from ((spec.id, path, stages) for path, stages in found if stages)


def _parts(text: str, variables: Mapping[str, Any]) -> list[str]:
    """What may be words of commands, or parts of words, at a glance."""
    if "{vars." in text:
        for name, value in variables.items():
            text = text.replace(f"{{vars.{name}}}", str(value))
    return text.replace("./", "").translate(_BREAKS).split()


def _finder(makers: Mapping[str, Stages]) -> Callable[[str], tuple[str, Stages]]:
    """Tells of a word which path it names, and who makes that.

    A word without a slash or a point may be anything: `test`, the `report` that `echo` speaks of. A folder of the
    project itself is named by `folder/` and by what is in it: `npm run build` names none.
    """
    folders = {path[:-1]: stages for path, stages in makers.items() if path.endswith("/")}

    def find(word: str) -> tuple[str, Stages]:
        looks_like_a_path = "/" in word or "." in word
        word = word.removeprefix("./")
        if (stages := makers.get(word)) is not None:
            return word, stages if looks_like_a_path else ()
        if folders and "/" in word:
            for folder in (*parents(word), word):
                if folder in folders:
                    return word, folders[folder]
        return word, ()

    return find


def _apart(
    graph: ArtifactGraph, readings: Iterable[Reading], shared: Shared, *, whole: bool = False
) -> dict[str, dict[str, str]]:
    """By reader, what it reads without waiting for it, each path with who makes it; of as many readers as are told.
    `whole`: of each of them all, for which the rest is gone through, too.
    """
    artifacts, found = graph.artifacts, dict[str, dict[str, str]]()
    direct: dict[str, set[str]] = {}
    below: dict[str, set[str]] = {}
    walked = 0
    for reader, path, stages in readings:
        if reader not in direct:
            direct[reader] = {reader, *artifacts[reader].requires}
        if not direct[reader].isdisjoint(stages):
            continue
        if reader not in below:
            is_full = len(found) > TOLD
            if is_full and whole:
                continue
            if is_full or walked > WALKED:
                break
            below[reader] = graph.closure([reader], lambda a: (*artifacts[a].after, *shared.after(a)))
            walked += len(below[reader])
        if below[reader].isdisjoint(stages):
            found.setdefault(reader, {})[path] = stages[-1]
    return found


def _texts(
    graph: ArtifactGraph, read: Mapping[str, Mapping[str, str]], named: Mapping[str, Mapping[str, str]]
) -> Iterator[str]:
    readers = [*dict.fromkeys((*read, *named))]
    for reader in readers[:TOLD]:
        made = {**read.get(reader, {}), **named.get(reader, {})}
        above = {*graph.above([reader])}
        circle = next((path for path, maker in made.items() if maker in above), "")
        verb = "reads" if reader in read else "names"
        if circle:
            yield f"{reader} {verb} {circle}, which {made[circle]} makes from it: one of them is always behind"
        paths = [path for path, maker in made.items() if maker not in above]
        makers = [*dict.fromkeys(made[path] for path in paths)]
        if paths:
            make = f"{'makes' if len(makers) == 1 else 'make'} {'it' if len(paths) == 1 else 'them'}"
            wanted = ", ".join(makers[:TOLD]) + (", …" if len(makers) > TOLD else "")
            waits = f"does not wait for {_listed(makers)}, which {make}: requires: [{wanted}] would"
            yield f"{reader} {verb} {_listed(paths)} and {waits}"
    if len(readers) > TOLD:
        yield f"{readers[TOLD]} does not wait for all that it reads, either, and others may not"


def _listed(names: Sequence[str]) -> str:
    """These names in words, the first few of many."""
    if len(names) > TOLD:
        return f"{', '.join(names[:TOLD])} and {len(names) - TOLD} more"
    return " and ".join(filter(None, [", ".join(names[:-1]), names[-1]]))
