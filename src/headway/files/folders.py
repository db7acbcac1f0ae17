"""The folders above output paths: there, inside the project, and no links out of it."""

from __future__ import annotations

import os
import stat

from headway import bulk
from headway.errors import UsageError


class Folders:
    """Of one project. Each folder is looked at once, until somebody may have done anything to it."""

    def __init__(self, root: str) -> None:
        self._root = root
        self._prefix = os.path.join(root, "")
        self._sound: set[str] = set()

    def make_parents(self, path: str) -> None:
        """The folders above a path; they must be inside the project."""
        parent = path.rstrip("/").rpartition("/")[0]
        above, _, name = parent.rpartition("/")
        if name and (not above or above in self._sound):
            full = self._prefix + parent
            try:
                if not _is_folder(full):
                    os.mkdir(full)
            except OSError:
                pass  # whatever is the matter is found out below
            else:
                self._sound.add(parent)
                return
        if not os.path.isdir(self._full(parent)):
            if file := self.in_the_way(path):
                raise UsageError(
                    f"{file} is no folder, and {path} belongs into one of that name",
                    hint=f"move {file} away, or produce another path",
                    code="output.parent",
                )
            self.refuse_outside(path)  # before anything is made there
            os.makedirs(self._full(parent), exist_ok=True)
        self._sound.discard(parent)  # whatever it was: it is a link, or had to be made again
        self.refuse_outside(path)

    def is_clear(self, path: str) -> bool:
        """Whether nothing stands at a path, and the folder above it is there and was looked at: as `is_free` and
        `make_parents` tell, in one question. Where it says no, they tell what is the matter, or there is nothing.
        """
        parent = path.rpartition("/")[0]
        return parent in self._sound and bulk.is_clear(self._prefix + parent, self._prefix + path)

    def look_ahead(self, paths: list[str]) -> None:
        """Have the system find out what stands at these, while others use the interpreter: whoever is about to look at
        one of them need not wait until nobody puts a file beside it.
        """
        if bulk.changed is not bulk.changed_one_by_one:
            bulk.changed(self._prefix, paths, [bulk.NOTHING] * len(paths))

    def look_again(self, path: str) -> None:
        """The same once more, right before something is put there: recipes, or others, may have done anything since."""
        self.forget()
        self.make_parents(path)

    def forget(self) -> None:
        """Look at every folder once more before something is put into it: it may lead elsewhere by now."""
        self._sound.clear()

    def in_the_way(self, path: str) -> str:
        """What stands where a folder above a path belongs and is none, or ""."""
        parent = os.path.dirname(path.rstrip("/"))
        while parent and not os.path.isdir(self._full(parent)):
            if os.path.lexists(self._full(parent)) and not os.path.isdir(self._full(parent)):  # nobody made it just now
                return parent
            parent = os.path.dirname(parent)
        return ""

    def refuse_outside(self, path: str) -> None:
        """An output whose folder is a link out of the project is not the project's. Each folder is looked at once."""
        parent, sound = os.path.dirname(path.rstrip("/")), list[str]()
        while parent and parent not in self._sound:
            if os.path.islink(self._full(parent)):
                real = os.path.realpath(self._full(parent))
                if not real.startswith(os.path.join(os.path.realpath(self._root), "")):
                    raise UsageError(
                        f"{path} is outside the project",
                        facts={"link": parent, "leads to": real},
                        hint="write to a path inside the project",
                        code="output.outside",
                    )
            sound.append(parent)
            parent = os.path.dirname(parent)
        self._sound.update(sound)

    def refuse_link_out(self, path: str) -> None:
        """An output may be a link, but not one that leads out of the project."""
        full = self._full(path.rstrip("/"))
        if not os.path.islink(full):
            return
        real = os.path.realpath(full)
        if not real.startswith(os.path.join(os.path.realpath(self._root), "")):
            raise UsageError(
                f"{path} is a link out of the project",
                facts={"leads to": os.readlink(full)},
                hint="write a file, or link to something inside the project",
                code="output.outside",
            )

    def _full(self, path: str) -> str:
        return self._prefix + path


def _is_folder(path: str) -> bool:
    """Whether a folder is there, and no link to one."""
    try:
        return stat.S_ISDIR(os.lstat(path).st_mode)
    except OSError:
        return False
