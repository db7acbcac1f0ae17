"""What is wrong with a plan file, each problem with its line: with the tree, and with the plan that it describes.

Knows trees that remember their lines, or do not; never syntax.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import msgspec

from headway.core.check import Problem
from headway.core.paths import normalise
from headway.core.plan import PlanSpec
from headway.files.plan_reader import Notes, Place, kind_of, on_lines, read_plan
from headway.files.tree import START, Map, Seq, Unreadable, by_line, key_line, syntax_problem

PLACES_TRIED = 10


def read_tree(root: object, check: Callable[[PlanSpec], list[Problem]]) -> tuple[PlanSpec | None, list[Problem]]:
    """The plan that a tree describes, as far as it does, and all its problems in the order of their lines."""
    if root is None:
        raise Unreadable("the file is empty", 1, START)
    if not isinstance(root, dict):
        return None, [syntax_problem(f"a plan file is a mapping, but this is {kind_of(root)}", 1, START)]
    notes = Notes()
    plan = read_plan(root, notes)
    checked = [p for p in check(plan) if (p.artifact, p.key) not in notes.broken]
    lines = _Lines(root, notes.places)
    return plan, by_line([*notes.problems, *map(lines.locate, checked)])


class _Lines:
    """Finds the line of a problem that was found in the plan and not in the file."""

    def __init__(self, root: object, places: Mapping[str, list[Place]]) -> None:
        self._root = Place(root, 1)
        self._places = places
        self._repeats: dict[str, int] = {}
        self._items: dict[int, dict[str, int]] = {}

    def locate(self, problem: Problem) -> Problem:
        """The same problem with its line."""
        places = self._places.get(problem.artifact, [self._root]) if problem.artifact else [self._root]
        if problem.code == "plan.duplicate":
            return self._locate_repeat(problem, places)
        tried = places[:PLACES_TRIED]
        exact = (self._item_line(place.given, problem) for place in tried)
        keyed = (self._key_line(place.given, problem) for place in tried)
        line = next(filter(None, (*exact, *keyed)), places[0].line)
        return msgspec.structs.replace(problem, line=line or 1)

    def _locate_repeat(self, problem: Problem, places: list[Place]) -> Problem:
        """An id that a list gives again: this time, and the first time."""
        count = self._repeats[problem.artifact] = self._repeats.get(problem.artifact, 0) + 1
        first, again = places[0].line, places[min(count, len(places) - 1)].line
        message = f"{problem.message}, {on_lines(first, again)}"
        return msgspec.structs.replace(problem, message=message, line=again)

    def _key_line(self, given: object, problem: Problem) -> int | None:
        """The line of a key, or of the key it is nested in."""
        head, _, rest = problem.key.partition(".")
        inner = given.get(head) if isinstance(given, Map) else None
        return key_line(inner, rest) or key_line(given, head) or key_line(given, f"{head}_file")

    def _item_line(self, given: object, problem: Problem) -> int | None:
        """The line of one item of a list."""
        items = given.get(problem.key) if isinstance(given, Map) else None
        return self._lines_of(items).get(problem.value) if isinstance(items, Seq) else None

    def _lines_of(self, items: Seq) -> dict[str, int]:
        """Lines by item, and by the normal form of the path that an item may be; made once for each list."""
        found = self._items.get(id(items))
        if found is None:
            texts = [(item, line) for item, line in zip(items, items.lines, strict=True) if isinstance(item, str)]
            found = {normalise(item): line for item, line in texts} | dict(texts)
            self._items[id(items)] = found
        return found
