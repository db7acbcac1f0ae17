"""The files that recipes read and that the plan does not make: declared ones, and words of commands that name files.

Looks at files and digests them; decides nothing.
"""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Collection, Iterable, Mapping
from typing import TYPE_CHECKING, Any

from headway.core.paths import is_glob, is_text
from headway.core.plan import ArtifactSpec
from headway.files.observe import UNREADABLE, Observer

if TYPE_CHECKING:
    from headway.core.placeholders import Placeholder

_WORD_BREAKS = str.maketrans(dict.fromkeys("|&;<>()`", " "))
_ELSEWHERE = ("/", "-", "{", "~", "..", ".headway")


_REDIRECTED = r">>?\s*([^\s;|&<>()]+)"  # compiled when a plan has commands


class Moment:
    """What was looked at just now: artifacts that begin or end together have many files in common.

    It lasts from one wait for outcomes to the next. What ended is looked at in it before what begins, and closely: so
    whoever begins may rely on all of it, and nobody who ends on what somebody who began took on trust.
    """

    def __init__(self) -> None:
        self.held: set[str] = set()
        """Artifacts whose outputs stood."""
        self._files: set[str] = set()

    def over(self) -> None:
        """Whatever is asked about from now on is looked at anew."""
        self.held.clear()
        self._files.clear()

    def first(self, paths: Iterable[str]) -> list[str]:
        """Those of these files that nobody has looked at so far; from now on somebody has."""
        new = [path for path in paths if path not in self._files]
        self._files.update(new)
        return new


class Sources:
    """The sources of one plan's artifacts."""

    def __init__(self, root: str, observer: Observer, made: Collection[str]) -> None:
        self._root = root
        self._observer = observer
        self._folders = tuple([path for path in made if path[-1:] == "/"])
        self._made = {path.rstrip("/") for path in made} if self._folders else set(made)
        self._digests: dict[str, str] = {}
        self._matches: dict[str, list[str]] = {}
        self._named: dict[tuple[str, ...], list[str]] = {}
        """What plain paths name; nothing, where there is a pattern among them."""
        self.forgotten = 0
        """How often anything had to be looked at anew: as long as this stays, so does what `look` says."""
        self._words: dict[str, list[str]] = {}
        self._there: dict[str, bool] = {}

    def makes(self, path: str) -> bool:
        """Whether the plan makes this file, or changes it."""
        return path in self._made

    def not_made(self, paths: Iterable[str]) -> list[str]:
        """Those of these files that the plan neither makes nor changes."""
        return [path for path in paths if path not in self._made]

    def add_made(self, paths: Iterable[str]) -> None:
        """The plan makes these, too."""
        for path in paths:
            self._made.add(path.rstrip("/"))
            if path.endswith("/"):
                self._folders = (*self._folders, path)

    def of(self, spec: ArtifactSpec, variables: Mapping[str, Any], wrote: Collection[str]) -> list[str]:
        """What the artifact reads: declared sources, and words that name files which it was not seen to write."""
        named = self.declared(spec)
        words = self.words(spec, variables) if spec.run or spec.verify else ()
        words = [word for word in words if word not in wrote] if wrote else words
        return sorted({*named, *words}) if words else named

    def declared(self, spec: ArtifactSpec) -> list[str]:
        """The files that `sources` names. What the artifact itself writes is none, whatever pattern matches it."""
        if not spec.sources:
            return []
        named = self._named.get(spec.sources)
        if named is None:
            is_plain = not any(map(is_glob, spec.sources))
            named = self._named[spec.sources] = self._observer.expand(spec.sources) if is_plain else []
        if named:
            return named
        found = sorted({path for pattern in spec.sources for path in self._matching(pattern)})
        own = tuple(f"{path.rstrip('/')}/" for path in (*spec.produces, *spec.modifies))
        return [path for path in found if path in spec.sources or not f"{path}/".startswith(own)]

    def _matching(self, pattern: str) -> list[str]:
        """What a pattern names, or a path: many artifacts may have the same, so it is asked once, as `look` does."""
        found = self._matches.get(pattern)
        if found is None:
            found = self._matches[pattern] = self._observer.expand([pattern])
        return found

    def words(self, spec: ArtifactSpec, variables: Mapping[str, Any]) -> list[str]:
        """Words of its commands that name files of the project which the plan does not make."""
        found: list[str] = []
        for command in _commands(spec, variables):
            if command and command not in self._words:
                self._words[command] = [w for word in _split(command) if (w := self._candidate(word))]
            found += [word for word in self._words.get(command, ()) if self._is_file(word)]
        return found

    def look_ahead(self, specs: Iterable[ArtifactSpec]) -> None:
        """These are about to be looked at: what is known of what they declare is asked for at once."""
        self._observer.recall({path for spec in specs for path in self.declared(spec)})

    def look(self, path: str) -> str:
        """A file's digest, taken once and again only after `forget`."""
        known = self._digests.get(path)
        if known is None:
            try:
                seen = self._observer.read(path)
                known = seen.digest[:32] if seen.kind != "special" else f"{UNREADABLE}it is no file"
            except OSError as error:
                known = f"{UNREADABLE}{error.strerror}"
            self._digests[path] = known
        return known

    def forget(self, paths: Iterable[str]) -> None:
        """Look at these files anew, and at what these patterns name, when they are next asked about."""
        for path in paths:
            self._there.pop(path, None)
            self._matches.pop(path, None)
            if self._digests.pop(path, None) is not None:
                self.forgotten += 1

    def forget_all(self) -> None:
        """Look at everything anew."""
        self._digests.clear()
        self.forgotten += 1
        self._there.clear()
        self._matches.clear()

    def forget_matches(self) -> None:
        """Files may have appeared that patterns name."""
        self._matches.clear()

    def forget_words(self) -> None:
        """Files may have appeared where words name them."""
        self._there.clear()

    def problem(self, spec: ArtifactSpec, digests: Mapping[str, str]) -> str:
        """Why the artifact cannot be made from its sources as they are, or ""."""
        for path, digest in digests.items():
            if not is_text(path):
                return f"The name of its source {path.encode('utf-8', 'backslashreplace').decode()} is not UTF-8"
            if digest.startswith(UNREADABLE):
                return f"Its source {path} cannot be read ({digest.removeprefix(UNREADABLE)})"
        for pattern in spec.sources:
            if is_glob(pattern):
                if not self._matching(pattern):
                    return f"No file matches its source {pattern}"
            elif not digests.get(pattern.rstrip("/")):
                made = ", and it does not require what makes it" if self.makes(pattern.rstrip("/")) else ""
                return f"Its source {pattern} does not exist{made}"
        return ""

    def absent_words(self) -> list[str]:
        """Words of commands that would be sources if files of that name appeared."""
        words = dict.fromkeys(word for found in self._words.values() for word in found)
        return [word for word in words if not word.endswith("/") and not self._is_file(word)]

    def _candidate(self, word: str) -> str:
        word = word.removeprefix("./")
        if not word or word.startswith(_ELSEWHERE) or word in self._made or word.startswith(self._folders):
            return ""
        return word

    def _is_file(self, word: str) -> bool:
        there = self._there.get(word)
        if there is None:
            there = self._there[word] = os.path.isfile(os.path.join(self._root, word))
        return there


def words_of(spec: ArtifactSpec, variables: Mapping[str, Any]) -> list[str]:
    """All words of its commands."""
    return [word for command in _commands(spec, variables) for word in _split(command)]


def _commands(spec: ArtifactSpec, variables: Mapping[str, Any]) -> list[str]:
    """What is run to make it and to check it, with the plan's variables in place."""
    commands = [spec.run, spec.verify]
    if "{vars." in spec.run or "{vars." in spec.verify:
        from headway.core.placeholders import substitute  # many plans have functions only

        commands = [substitute(command, lambda p: _plain(p, variables)) for command in commands]
    return commands


def _split(command: str) -> list[str]:
    """The words of a command, as far as they can be told without running it."""
    plain = command.translate(_WORD_BREAKS)
    if "'" in command or '"' in command or "\\" in command:
        try:
            return shlex.split(plain, comments=False)
        except ValueError:
            pass
    return plain.split()


def _plain(placeholder: Placeholder, variables: Mapping[str, Any]) -> str:
    return str(variables.get(placeholder.key, "")) if placeholder.name == "vars" else placeholder.text


def redirects_to(spec: ArtifactSpec, path: str) -> bool:
    """Whether the command says itself that it writes this file: `> file` or `>> file`."""
    return path in _targets(f"{spec.run}\n{spec.verify}")


def only_written(spec: ArtifactSpec) -> set[str]:
    """The files that a command says it writes, and names nowhere else."""
    text = f"{spec.run}\n{spec.verify}"
    return _targets(text).difference(word.removeprefix("./") for word in _split(re.sub(_REDIRECTED, " ", text)))


def _targets(text: str) -> set[str]:
    return {target.strip("\"'").removeprefix("./") for target in re.findall(_REDIRECTED, text)}
