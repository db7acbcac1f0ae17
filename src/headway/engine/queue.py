"""Who may start, and who waits for whom. Knows ids and their order; never why anything is made."""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Callable, Collection, Iterable, Iterator
from itertools import chain, islice
from typing import TypeVar

T = TypeVar("T")
Line = tuple[str, Iterable[str], Iterable[str]]
"""An artifact, what it needs of others, and whom it only lets go first."""


class Queue:
    """Some artifacts, and what each of them needs of the others.

    An artifact is ready when all that it needs is settled. What needs something that was given up is given up with it.
    Of those that it only lets go first, it does not mind how they end. `lines` tells both, in the order of the members.
    """

    def __init__(self, members: Collection[str], lines: Callable[[Collection[str]], Iterator[Line]]) -> None:
        self._lines = lines
        self._followers: dict[str, list[str]] = defaultdict(list)
        self._patient: dict[str, list[str]] = defaultdict(list)
        self._waiting: dict[str, int] = {}
        self._ended: set[str] = set()
        self._ready: deque[str] = deque()
        self._aside: deque[str] = deque()
        self._taken: set[str] = set()
        self.add(members)

    def add(self, members: Collection[str]) -> None:
        """More artifacts: what they need of those that are there already and not settled, they wait for."""
        there, ended, followers = self._waiting, self._ended, self._followers
        there.update(dict.fromkeys(members, 0))
        for artifact_id, needs, courtesy in self._lines(members):
            count = 0
            for other in needs:  # twice if it is named twice: then it lets go twice, too
                if other in there and other not in ended:
                    followers[other].append(artifact_id)
                    count += 1
            if courtesy:
                hard = set(needs)
                count += self._line_up(artifact_id, [r for r in courtesy if r not in hard], self._patient)
            there[artifact_id] = count
            if not count and artifact_id not in self._taken:
                self._ready.append(artifact_id)

    def line_up_anew(self) -> None:
        """What is needed, and by whom, has changed: all that is open waits for what it needs now, and nothing else."""
        for lines in (self._followers, self._patient, self._ready, self._aside):
            lines.clear()
        self.add(self.open)

    def _line_up(self, artifact_id: str, behind: Iterable[str], lines: dict[str, list[str]]) -> int:
        """Let it wait for each of these that is open; how many there are."""
        there, ended, count = self._waiting, self._ended, 0
        for other in dict.fromkeys(behind):
            if other in there and other not in ended:
                lines[other].append(artifact_id)
                count += 1
        return count

    def wait_more(self, artifact_id: str) -> None:
        """What it needs has changed: whatever of that is open and new to it, it waits for, too."""
        if artifact_id not in self:
            return
        ((_, needs, _),) = self._lines((artifact_id,))
        for required in dict.fromkeys(needs):
            if required in self and artifact_id not in self._followers.get(required, ()):
                self._followers[required].append(artifact_id)
                self._waiting[artifact_id] += 1
                self._taken.discard(artifact_id)

    def has_ended(self, artifact_id: str) -> bool:
        """It was settled or given up."""
        return artifact_id in self._ended

    def __contains__(self, artifact_id: str) -> bool:
        return artifact_id in self._waiting and artifact_id not in self._ended

    def pop(self, fits: Callable[[str], bool] | None = None) -> str | None:
        """The next that may start; of those that fit, if somebody asks for such. The others keep their place."""
        while self._ready or (fits is None and self._aside):
            artifact_id = (self._aside if fits is None and self._aside else self._ready).popleft()
            if artifact_id in self._ended or self._waiting[artifact_id]:
                continue
            if fits is None or fits(artifact_id):
                self._taken.add(artifact_id)
                return artifact_id
            self._aside.append(artifact_id)
        return None

    def pop_while(
        self, wanted: Callable[[str], T | None], count: int, fits: Callable[[str], bool] | None = None
    ) -> list[T]:
        """So many of those that `pop` would give at most, up to one that is not wanted; each as `wanted` has it, which
        wants only such as fit.
        """
        ready, aside, ended, waiting, found = self._ready, self._aside, self._ended, self._waiting, list[T]()
        while len(found) < count and (line := aside if fits is None and aside else ready):
            artifact_id = line[0]
            if artifact_id not in ended and not waiting[artifact_id]:
                one = wanted(artifact_id)
                if one is not None:
                    self._taken.add(artifact_id)
                    found.append(one)
                elif fits is None or fits(artifact_id):
                    break
                else:
                    aside.append(artifact_id)
            line.popleft()
        return found

    def next(self, count: int, *, aside: bool) -> list[str]:
        """So many of those that may start next, or of which that is not certain yet; with those that were put aside, if
        whoever asks takes any.
        """
        return list(islice(chain(self._aside, self._ready) if aside else self._ready, count))

    def put_back(self, ids: Iterable[str]) -> None:
        """They may start, but not yet."""
        back = list(ids)
        self._taken.difference_update(back)
        self._ready.extendleft(reversed(back))

    @property
    def open(self) -> list[str]:
        """What is neither settled nor given up."""
        return [a for a in self._waiting if a not in self._ended]

    def settle(self, artifact_id: str) -> None:
        """It is as it should be: whoever waits for it may go on."""
        self.settle_all((artifact_id,))

    def settle_all(self, ids: Iterable[str]) -> None:
        """They are as they should be, each that is still open: whoever waits for one may go on."""
        followers, patient, ended = self._followers, self._patient, self._ended
        for artifact_id in ids:
            if artifact_id in ended:
                continue
            ended.add(artifact_id)
            if artifact_id in followers:
                self._release(followers[artifact_id])
            if patient and artifact_id in patient:
                self._release(patient[artifact_id])

    def give_up(self, artifact_id: str) -> list[str]:
        """It will not be done now; what is given up with it, nearest first."""
        lost: list[str] = []
        queue = [artifact_id]
        for current in queue:
            if current not in self._ended:
                self._ended.add(current)
                lost.append(current)
                self._release(self._patient.get(current, ()))
                queue += self._followers.get(current, ())
        return [a for a in lost if a != artifact_id]

    def _release(self, ids: Iterable[str]) -> None:
        waiting, ended, taken = self._waiting, self._ended, self._taken
        for artifact_id in ids:
            waiting[artifact_id] = left = waiting[artifact_id] - 1
            if not left and artifact_id not in ended and artifact_id not in taken:
                self._ready.append(artifact_id)
