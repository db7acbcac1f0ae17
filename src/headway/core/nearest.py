"""The known word that a wrong one most likely meant. Knows words only, and stops looking before it gets slow."""

from __future__ import annotations

from collections.abc import Iterable

COMPARISONS = 50_000
LONGEST = 200


class Nearest:
    """Suggests among known words: any number of look-ups costs at most `comparisons` comparisons in total."""

    def __init__(self, known: Iterable[str], *, comparisons: int = COMPARISONS) -> None:
        self._known = list(known)
        self._left = comparisons
        self._answers: dict[str, str] = {}
        self._folded: dict[str, str] | None = None

    def of(self, word: str) -> str:
        """The nearest known word, or "" when none is near or the budget is spent."""
        if word not in self._answers:
            self._answers[word] = self._same_but_for_case(word) or self._closest(word)
        return self._answers[word]

    def hint(self, word: str) -> str:
        """The same as a question, for the end of a message."""
        found = self.of(word)
        return f"did you mean {found}?" if found else ""

    def _same_but_for_case(self, word: str) -> str:
        if self._folded is None:
            self._folded = {known.casefold(): known for known in reversed(self._known)}
        return self._folded.get(word.casefold(), "")

    def _closest(self, word: str) -> str:
        if len(word) > LONGEST or self._left < len(self._known):
            return ""
        import difflib  # for those who mistype

        self._left -= len(self._known)
        return next(iter(difflib.get_close_matches(word, self._known, n=1)), "")
