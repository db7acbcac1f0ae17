"""What a history has on disk, as tests look at it."""

from __future__ import annotations

import json
from typing import Any

from headway.history.folder import DagFolder
from tests.bench import Bench


def files(bench: Bench) -> dict[str, bytes]:
    """The history on disk, without its lock."""
    folder = bench.path(".headway/dag")
    found = {str(p.relative_to(folder)): p.read_bytes() for p in sorted(folder.rglob("*")) if p.is_file()}
    return {name: data for name, data in found.items() if name != "lock"}


def index(bench: Bench) -> Any:
    return json.loads(bench.read(".headway/dag/index.json"))


def goal(bench: Bench, name: str = "plan") -> Any:
    return json.loads(bench.read(f".headway/dag/goals/{name}.json"))


def edges(bench: Bench, kind: str = "") -> set[tuple[str, str]]:
    found = DagFolder(str(bench.path(".headway"))).read_edges().values()
    return {(e.source, e.target) for e in found if not kind or e.type == kind}


def without_times(documents: dict[str, bytes]) -> dict[str, Any]:
    """What the files say, apart from when they were written and the order of the edge log."""
    found: dict[str, Any] = {}
    for name, data in documents.items():
        if name == "edges.jsonl":
            live: dict[str, Any] = {}
            for edge in map(json.loads, data.splitlines()):
                edge.pop("ts")
                live.pop(edge["id"], None) if edge.get("gone") else live.update({edge["id"]: edge})
            found[name] = live
            continue
        document = json.loads(data)
        for key in ("lastUpdated", "edgesSize", "manifestSize", "behind"):
            document.pop(key, None)
        for entry in document["artifacts"].values() if "artifacts" in document else ():
            entry.pop("standing", None)
        found[name] = document
    return found
