"""Other projects of the same workspace, for plans that require something of theirs: `../api:users:UserModel`.

Read with the rules of their own plans and files; never run, and nothing of theirs is written. A way that leads out of
the workspace leads nowhere.
"""

from __future__ import annotations

import os
import shlex
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, NamedTuple

from headway.core.ids import name_elsewhere, place_name
from headway.core.lifecycle import files_of
from headway.errors import HeadwayError
from headway.files.blobs import Blobs
from headway.files.identity import HOME, find_workspace, read_identity
from headway.store import PlanStore

if TYPE_CHECKING:
    from headway.core.state import State
    from headway.engine.elsewhere import Elsewhere
    from headway.engine.judge import Judge


class Neighbour(NamedTuple):
    """Another project: its folder and plans, or why nothing of it can be used and what helps."""

    way: str
    root: str
    store: PlanStore
    problem: str = ""
    command: str = ""


def root_of(store: PlanStore) -> str:
    """The project that a store belongs to."""
    return os.path.dirname(os.path.dirname(store.base_path))


def neighbour(root: str, way: str) -> Neighbour:
    """The project that a way leads to from a project's folder."""
    there = os.path.normpath(os.path.join(root, way))
    store = PlanStore(os.path.join(there, HOME, "plans"), blobs=Blobs(os.path.join(there, HOME, "blobs")))
    found = Neighbour(way, there, store)
    workspace = os.path.realpath(find_workspace(os.path.realpath(root)) or os.path.dirname(root))
    if not os.path.join(os.path.realpath(there), "").startswith(os.path.join(workspace, "")):
        return found._replace(problem="leads out of the workspace", command="headway dag workspace")
    if not os.path.isdir(there):
        return found._replace(problem=f"is missing: there is no project {way}", command="headway dag workspace")
    try:
        read_identity(os.path.join(there, HOME))
    except HeadwayError as error:
        return found._replace(problem=f"cannot be read: {error.message}", command=f"headway doctor{at(root, way)}")
    if not os.path.isdir(store.base_path):
        return found._replace(
            problem=f"is missing: nothing was made in {way} yet", command=f"headway run{at(root, way)}"
        )
    return found


def at(root: str, way: str) -> str:
    """The option that names a project on a command line, typed where we are; nothing for one's own."""
    if not way:
        return ""
    full = os.path.normpath(os.path.join(root, way))
    return f" --project {shlex.quote(min(os.path.relpath(full), full, key=len))}"


def seen_from(root: str, way: str, name: str) -> str:
    """A requirement of the project at the end of a way, as one's own project would name it."""
    found = name_elsewhere(name)
    if not way or found is None:
        return name
    onward, plan = place_name(found[0])
    if not onward:
        return f"{way}:{name}"
    new = os.path.relpath(os.path.join(root, way, onward), root)
    if new == ".":
        return f"{plan}:{found[1]}"
    if not new.startswith("../"):  # inside of one's own folder: named from outside, as all others are
        new = os.path.join("..", os.path.basename(root), new)
    return f"{new}:{plan}:{found[1]}" if plan else f"{new}:{found[1]}"


def owners(store: PlanStore, artifact: str) -> list[str]:
    """The plans of a project that have an artifact of this name."""
    return sorted(e.plan_id for e in store.list_recent(None) if artifact in e.state.artifacts)


def judge_of(
    there: Neighbour, state: State, environ: Mapping[str, str], boot: str, beyond: Callable[[str], Elsewhere]
) -> Judge:
    """The judge of a plan of another project, by the files and the code of that project."""
    from headway.engine.formerly import Formerly
    from headway.engine.judge import Judge
    from headway.engine.precedents import Precedents
    from headway.files.cache import Cache
    from headway.files.observe import Observer
    from headway.files.outputs import Outputs

    path = os.path.join(there.root, HOME, "cache.sqlite")
    cache = Cache(path if os.path.exists(path) else os.devnull + "/none")
    observer = Observer(there.root, cache.stats(files_of(state)), recall=cache.stats)
    return Judge(
        state,
        root=there.root,
        outputs=Outputs(there.root, there.store.blobs, observer),
        precedents=Precedents(there.store, cache, writable=False),
        environ=environ,
        boot=boot,
        formerly=Formerly(there.store.folder(state.plan_id), state),
        elsewhere=beyond(there.way),
    )
