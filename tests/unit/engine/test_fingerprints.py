"""What many are made from is told together as it is of each alone."""

from __future__ import annotations

from pathlib import Path

from headway.core.plan import ArtifactSpec
from headway.core.state import Completion, Output, State
from headway.engine.judge import Judge
from headway.engine.precedents import Precedents
from headway.files.blobs import Blobs
from headway.files.cache import Cache
from headway.files.observe import Observer
from headway.files.outputs import Outputs
from headway.store import PlanStore

MAKE = "tasks:plain"
SPECS = [
    ArtifactSpec(id="bare", make=MAKE),
    ArtifactSpec(id="requires", make=MAKE, requires=("done", "nothing")),
    ArtifactSpec(id="reads", make=MAKE, sources=("in/a.txt", "in/b.txt")),
    ArtifactSpec(id="reads by pattern", make=MAKE, sources=("in/*.txt",), requires=("done",)),
    ArtifactSpec(id="reads its own", make=MAKE, sources=("in/*",), produces=("in/c.md",)),
    ArtifactSpec(id="reads what is not there", make=MAKE, sources=("in/none.txt",)),
    ArtifactSpec(id="reads a folder", make=MAKE, sources=("in",)),
    ArtifactSpec(id="is checked", make=MAKE, sources=("in/a.txt",), verify="test -s in/b.txt"),
    ArtifactSpec(id="is a command", run="cat in/a.txt", sources=("in/b.txt",)),
    ArtifactSpec(id="is nobody's", make="tasks:none", sources=("in/a.txt",)),
]


def judge_of(root: Path) -> Judge:
    outputs = Outputs(str(root), Blobs(str(root / ".headway/blobs")), Observer(str(root)))
    precedents = Precedents(PlanStore(str(root / ".headway/plans")), Cache(str(root / "cache.sqlite")), writable=False)
    state = State(plan_id="p", project_id="x", goal="g")
    done = ArtifactSpec(id="done", make=MAKE, produces=("done.txt",))
    state.artifacts.update({spec.id: spec for spec in (done, *SPECS)})
    state.completed["done"] = Completion(1, "2026-01-01T00:00:00Z", outputs=(Output("done.txt", "d" * 64),))
    return Judge(state, root=str(root), outputs=outputs, precedents=precedents, environ={})


def test_what_many_are_made_from_is_told_as_of_each_alone(tmp_path: Path) -> None:
    """Whatever they read, and whether or not they can be made."""
    (tmp_path / "tasks.py").write_text("def plain():\n    return 'text'\n")
    (tmp_path / "in").mkdir()
    for name in ("a.txt", "b.txt", "c.md"):
        (tmp_path / "in" / name).write_text(name)
    together, alone = judge_of(tmp_path), judge_of(tmp_path)
    together.fingerprints(SPECS)
    ids = [spec.id for spec in SPECS]
    assert {i: together.now[i] for i in ids} == {i: alone.fingerprint(i) for i in ids}
    assert list(map(together.sources_of, ids)) == list(map(alone.sources_of, ids))
    assert list(map(together.problem, ids)) == list(map(alone.problem, ids))
    assert together.now["reads"].sources.keys() == {"in/a.txt", "in/b.txt"}
    assert together.problem("reads what is not there")
