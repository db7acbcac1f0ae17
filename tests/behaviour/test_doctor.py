"""doctor: finds what is wrong with a project, says what it costs and what mends it, and mends without deleting."""

from __future__ import annotations

import hashlib
import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from headway.core import codec
from headway.doctor import Diagnosis, Doctor
from headway.errors import HeadwayError, NotFound, PlanConflict
from headway.project import Project
from tests.bench import Bench
from tests.workshop import Workshop


@pytest.fixture
def shop(tmp_path: Path) -> Workshop:
    """A project with a plan of which one artifact is done."""
    shop = Workshop(tmp_path / "project")
    shop.save()
    shop.complete("model")
    return shop


def examine(shop: Workshop) -> list[Diagnosis]:
    """All findings; each of them says what it costs and what mends it."""
    found = Doctor(shop.project).examine()
    for diagnosis in found:
        assert all(diagnosis.finding), diagnosis
    return found


def codes(shop: Workshop) -> list[str]:
    """The findings by code."""
    return [diagnosis.finding.code for diagnosis in examine(shop)]


def flip(path: Path, offset: int) -> None:
    """Change one bit."""
    data = bytearray(path.read_bytes())
    data[offset] ^= 1
    path.write_bytes(data)


def test_all_is_well_with_a_plan_that_nobody_harmed(shop: Workshop) -> None:
    """No finding, and not a byte is written by looking."""
    before = shop.tree()
    assert examine(shop) == []
    assert shop.tree() == before


def test_a_project_without_plans_is_well(tmp_path: Path) -> None:
    """Where nothing is, nothing is wrong, and nothing is created."""
    assert Doctor(Project(tmp_path)).examine() == []
    assert list(tmp_path.iterdir()) == []


def torn(shop: Workshop) -> None:
    with shop.ledger().open("ab") as file:
        file.write(b'{"v":1,"seq":99')


def hole(shop: Workshop) -> None:
    with shop.project.folder("api").writing() as writer:
        writer.snapshot()
    flip(shop.ledger(), 300)


def cut(shop: Workshop) -> None:
    lines = shop.ledger().read_bytes().splitlines(keepends=True)
    flip(shop.ledger(), sum(map(len, lines[:2])) + 40)


def gone(shop: Workshop) -> None:
    shop.ledger().unlink()


def empty(shop: Workshop) -> None:
    shop.ledger().write_bytes(b"")


def short(shop: Workshop) -> None:
    lines = shop.ledger().read_bytes().splitlines(keepends=True)
    shop.ledger().write_bytes(b"".join(lines[:-1]))


def folder(shop: Workshop) -> None:
    shop.ledger().unlink()
    shop.ledger().mkdir()


def drift(shop: Workshop) -> None:
    path = shop.folder() / "plan.json"
    path.write_bytes(path.read_bytes().replace(b"The routes", b"My routes "))


def identity(shop: Workshop) -> None:
    (shop.root / ".headway" / "project.json").write_bytes(b"{")


def blob(shop: Workshop) -> None:
    (pack,) = [p for p in (shop.root / ".headway" / "blobs").glob("*.pack") if b"bytes of model" in p.read_bytes()]
    flip(pack, pack.read_bytes().index(b"bytes of model"))


def no_blobs(shop: Workshop) -> None:
    shutil.rmtree(shop.root / ".headway" / "blobs")


def torn_pack(shop: Workshop) -> None:
    pack = next((shop.root / ".headway" / "blobs").glob("*.pack"))
    pack.write_bytes(pack.read_bytes() + b"0" * 64 + b" 99\nhalf")


HARM = [torn, hole, cut, gone, empty, short, folder, drift, identity, blob, no_blobs, torn_pack]
MENDED = [torn, hole, cut, gone, empty, short, folder, identity, torn_pack]


@pytest.mark.parametrize("harm", HARM)
def test_harm_is_found_and_told(
    shop: Workshop, harm: Callable[[Workshop], None], capsys: pytest.CaptureFixture[str]
) -> None:
    """Whatever was done to the project, doctor ends with 4, says what it costs and what to do, and writes nothing."""
    harm(shop)
    before = shop.tree()
    assert examine(shop)
    done = shop.run(capsys, "doctor")
    assert done.code == 4
    assert "\n  costs: " in done.out
    assert "\n  next: " in done.out
    report = shop.run(capsys, "doctor", "--json").json
    assert report["ok"] is False
    assert set(report["findings"][0]) == {"plan_id", "code", "message", "cost", "repair"}
    assert shop.tree() == before


@pytest.mark.parametrize("harm", MENDED)
def test_harm_is_mended(shop: Workshop, harm: Callable[[Workshop], None], capsys: pytest.CaptureFixture[str]) -> None:
    """--repair says what it did, and afterwards all is well: the plan can be read, worked on and examined."""
    harm(shop)
    done = shop.run(capsys, "doctor", "--repair")
    assert (done.code, done.out.startswith("mended  ")) == (0, True), done
    assert examine(shop) == []
    assert set(shop.load().state.artifacts) == {"model", "routes"}
    shop.complete("routes")
    assert examine(shop) == []


@pytest.mark.parametrize("harm", MENDED)
def test_a_second_repair_has_nothing_to_do(shop: Workshop, harm: Callable[[Workshop], None]) -> None:
    """What is mended stays mended."""
    harm(shop)
    Doctor(shop.project).repair()
    before = shop.tree()
    assert Doctor(shop.project).repair() == []
    assert shop.tree() == before


def test_a_lost_ledger_is_rebuilt_from_plan_json_and_says_so(shop: Workshop) -> None:
    """The plan and its progress come back, marked unverified; nothing pretends that the history is still there."""
    before = shop.load().state
    shop.ledger().unlink()
    Doctor(shop.project).repair()
    after = shop.load().state
    assert after.artifacts == before.artifacts
    assert after.completed == before.completed
    assert after.unverified == "plan.json"
    assert shop.events()[0] == "plan_rebuilt"


def test_repair_keeps_every_byte_it_replaces(shop: Workshop) -> None:
    """Bytes that a repair takes out of the ledger are in quarantine."""
    cut(shop)
    damaged = shop.ledger().read_bytes()
    Doctor(shop.project).repair()
    kept = b"".join(path.read_bytes() for path in (shop.folder() / "quarantine").iterdir())
    for line in damaged.splitlines():
        assert line in kept or line in shop.ledger().read_bytes()


def test_a_projection_that_outlives_its_events_is_set_aside(shop: Workshop) -> None:
    """After a cut, files that reflect lost events are kept as evidence and written again."""
    ahead = (shop.folder() / "plan.md").read_bytes()
    for name in ("plan.json", "export/PLAN.json", "head"):
        (shop.folder() / name).unlink()
    short(shop)
    torn(shop)
    Doctor(shop.project).repair()
    kept = [path.read_bytes() for path in (shop.folder() / "quarantine").iterdir()]
    assert ahead in kept
    assert examine(shop) == []


def test_drift_stays_until_somebody_decides(shop: Workshop, capsys: pytest.CaptureFixture[str]) -> None:
    """A plain --repair does not touch what somebody wrote, and still ends with 4."""
    drift(shop)
    before = shop.tree()
    assert shop.run(capsys, "doctor", "--repair").code == 4
    assert shop.tree() == before
    assert shop.run(capsys, "doctor", "--repair", "--drift", "discard").code == 0


def test_one_plan_can_be_looked_at_alone(shop: Workshop) -> None:
    """What is wrong with another plan is not told, and a plan that does not exist is said not to."""
    shop.project.import_plan(str(shop.folder() / "export"), plan_id="other")
    flip(shop.ledger("other"), 40)
    assert Doctor(shop.project).examine("api") == []
    assert {d.plan_id for d in Doctor(shop.project).examine()} == {"other"}
    with pytest.raises(NotFound):
        Doctor(shop.project).examine("nothing")


def test_a_damaged_plan_does_not_hide_what_is_wrong_with_the_next(shop: Workshop) -> None:
    """Every plan is examined, and every one that can be mended is."""
    shop.project.import_plan(str(shop.folder() / "export"), plan_id="other")
    cut(shop)
    torn_other = shop.ledger("other")
    torn_other.write_bytes(torn_other.read_bytes() + b"{")
    assert {d.plan_id for d in examine(shop)} == {"api", "other"}
    Doctor(shop.project).repair()
    assert examine(shop) == []


def test_a_ledger_of_a_newer_format_is_a_finding_and_left_untouched(shop: Workshop) -> None:
    """It is not damage: it is said to need a newer Headway, and a repair does not touch it."""
    last = shop.history()[-1]
    body = b'{"v":1,"seq":%d,"ts":"%s","type":"plan_cloned","by":"x","data":{},"prev":"%s"' % (
        last.seq + 1,
        last.ts.encode(),
        last.hash.encode(),
    )
    with shop.ledger().open("ab") as file:
        file.write(body + b',"hash":"%s"}\n' % codec.digest(body).encode())
    before = shop.tree()
    assert codes(shop) == ["format.too_new"]
    assert Doctor(shop.project).repair() == []
    assert shop.tree() == before


# The project's own file.


def test_a_damaged_project_json_hinders_no_reader(shop: Workshop) -> None:
    """Plans can be read without it; what would write a new project id is refused."""
    before = shop.load()
    identity(shop)
    assert shop.load() == before
    assert codes(shop) == ["project.damaged"]
    with pytest.raises(HeadwayError, match=r"project\.json cannot be read"):
        shop.project.import_plan(str(shop.folder() / "export"), plan_id="copy")


@pytest.mark.parametrize(
    "content", [b"", b"{", b"[]", b'{"format": 1}', b'{"id": ""}', b'{"id": 5}', b'{"id": "../x"}']
)
def test_the_project_id_is_taken_from_the_ledgers(shop: Workshop, content: bytes) -> None:
    """The repaired file has the id that every ledger names, and the damaged one is kept."""
    project_id = shop.project.project_id
    path = shop.root / ".headway" / "project.json"
    path.write_bytes(content)
    assert codes(shop) == ["project.damaged"]
    Doctor(shop.project).repair()
    assert shop.project.project_id == project_id
    assert [p.read_bytes() for p in (shop.root / ".headway" / "quarantine").iterdir()] == [content]


def test_a_deleted_project_json_is_written_again_with_the_same_id(shop: Workshop) -> None:
    """It is derived, too: the next plan gets the project's old id."""
    project_id = shop.project.project_id
    (shop.root / ".headway" / "project.json").unlink()
    assert codes(shop) == []
    shop.project.import_plan(str(shop.folder() / "export"), plan_id="copy")
    assert shop.project.project_id == project_id == shop.load("copy").state.project_id


def test_a_project_of_a_newer_format_is_refused_untouched(shop: Workshop, capsys: pytest.CaptureFixture[str]) -> None:
    """Readers, writers and doctor alike say so, and change nothing."""
    path = shop.root / ".headway" / "project.json"
    path.write_text(json.dumps({"format": 2, "id": {"new": "shape"}}), encoding="utf-8")
    before = shop.tree()
    for words in (["plans", "list"], ["plans", "new"], ["doctor", "--repair"], ["log"]):
        done = shop.run(capsys, *words)
        assert (done.code, done.out) == (2, "")
        assert "newer Headway" in done.err
    assert shop.tree() == before


# Blobs.


def test_an_imported_plan_misses_no_blobs(shop: Workshop, tmp_path: Path) -> None:
    """The bytes of an imported plan stayed where it came from, and that is no damage."""
    there = Workshop(tmp_path / "there")
    there.project.import_plan(str(shop.folder() / "export"))
    assert codes(there) == []


def test_what_lost_blobs_cost_is_named(shop: Workshop) -> None:
    """The proposal and the outputs that cannot be restored any more are named, each with what to do."""
    no_blobs(shop)
    proposal, outputs = (d.finding for d in examine(shop))
    assert "headway.yaml" in proposal.message
    assert "--take" in proposal.repair
    assert "The outputs of model are not among the blobs" in outputs.message
    assert "headway run --rerun model" in outputs.repair


@pytest.mark.parametrize("harm", ["lost", "damaged"])
@pytest.mark.parametrize("produces", ["out/a.txt", "out/"])
def test_blobs_are_taken_from_outputs_that_stand(tmp_path: Path, produces: str, harm: str) -> None:
    """They have the digests that were recorded, so nothing is lost; what was edited gives nothing back."""
    bench = Bench(tmp_path / "project")
    bench.plan(a={"run": "echo all of it > out/a.txt", "produces": produces}, b={"run": "echo b > {output}"})
    bench.change("b", produces=["b.txt"])
    bench.run()
    if harm == "damaged":
        bench.ruin(b"all of it")
        bench.ruin(b"b\n")
    else:
        for pack in (tmp_path / "project/.headway/blobs").glob("*.pack"):
            pack.unlink()
    bench.write("b.txt", "mine")
    (done,) = [line for line in Doctor(bench.project).repair() if "blobs" in line]
    assert done == f"plan: blobs taken from {produces}: what stands there is what was recorded."
    bench.delete("out")
    assert bench.run("a").log == ["restored a"]
    assert bench.read("out/a.txt") == "all of it\n"
    told = [d.finding.message for d in Doctor(bench.project).examine() if "output" in d.finding.message]
    assert told == ["The outputs of b are not among the blobs"]


def test_a_damaged_blob_whose_bytes_are_nowhere_is_given_up(tmp_path: Path) -> None:
    """What it was is kept aside; what lacks it is named with the command that makes it anew, and then all is well."""
    bench = Bench(tmp_path / "project")
    bench.plan(a={"run": "echo all of it > {output}"}, b={"run": "echo b > {output}"})
    bench.run()
    bench.ruin(b"all of it\n")
    bench.delete("out/a.txt")
    (damaged,) = [d.finding for d in Doctor(bench.project).examine()]
    assert damaged.repair.endswith("while nothing runs, give it up: headway doctor --repair")
    (done,) = Doctor(bench.project).repair()
    assert "with nothing that has the bytes, so given up; as it was: " in done
    (kept,) = (tmp_path / "project/.headway/blobs").glob("*.damaged")
    assert kept.name in done
    (lost,) = [d.finding for d in Doctor(bench.project).examine()]
    assert lost.repair.endswith("headway run --rerun a")
    assert bench.run(rerun=("a",)).log == ["made a"]
    assert Doctor(bench.project).examine() == []
    assert bench.project.blobs.get(hashlib.sha256(b"b\n").hexdigest()), "its neighbours are still there"


@pytest.mark.parametrize("harm", ["lost", "damaged"])
@pytest.mark.parametrize("edited", [False, True])
def test_what_a_plan_file_said_is_read_from_it_again_if_it_still_says_so(
    shop: Workshop, harm: str, edited: bool
) -> None:
    """Of a file that says something else by now, only its owner can tell which of the two counts."""
    proposal = shop.load().state.proposal
    assert proposal is not None
    said = shop.project.blobs.get(proposal.blob)
    for pack in (shop.root / ".headway/blobs").glob("*.pack"):
        pack.write_bytes(pack.read_bytes().replace(said, b"?" * len(said)))
    if harm == "lost":
        no_blobs(shop)
    if edited:
        shop.edit("goal: ", "goal: another ")
    Doctor(shop.project).repair()
    assert shop.project.blobs.has(proposal.blob) is not edited
    told = [d.finding for d in examine(shop) if "headway.yaml" in d.finding.message]
    assert [("--take file" in finding.repair) for finding in told] == ([True] if edited else [])


def test_what_was_too_large_to_store_is_not_missed(tmp_path: Path) -> None:
    """By the plan's own word; a person's edit is stored however large it is, and missed."""
    bench = Bench(tmp_path / "project")
    bench.plan(a={"run": "echo more than ten bytes > {output}"})
    bench.settings(store_up_to=10)
    bench.run()
    assert Doctor(bench.project).examine() == []
    bench.edit("a", "an edit of more than ten bytes")
    bench.run(on_edit="discard")
    bench.ruin(b"an edit of more than ten bytes")
    assert [d.finding.code for d in Doctor(bench.project).examine()] == ["blob.damaged"]


def test_drift_is_decided_with_a_repair_only(shop: Workshop, capsys: pytest.CaptureFixture[str]) -> None:
    """--drift without --repair is refused rather than ignored."""
    done = shop.run(capsys, "doctor", "--drift", "adopt")
    assert done.code == 2
    assert "headway doctor --repair --drift adopt" in done.err


def test_one_plan_that_cannot_be_mended_keeps_no_other_from_it(shop: Workshop) -> None:
    """The second plan's ledger is mended although the first plan's edit collides, and that is said at the end."""
    shop.project.import_plan(str(shop.folder() / "export"), plan_id="second")
    path = shop.folder() / "plan.json"
    path.write_bytes(path.read_bytes().replace(b"Build an API", b"Build my API"))
    shop.change(goal="Build our API")
    shop.ledger("second").write_bytes(shop.ledger("second").read_bytes() + b"{")
    with pytest.raises(PlanConflict):
        Doctor(shop.project).repair(drift="adopt")
    assert Doctor(shop.project).examine("second") == []


@pytest.mark.parametrize(
    ("name", "data"),
    [
        ("index.json", "{"),
        ("index.json", '{"version": 0}'),
        ("goals/api.json", "not json"),
        ("artifacts/manifest.json", "[]"),
        ("edges.jsonl", "no edge\n"),
    ],
)
def test_a_history_that_cannot_be_read_is_found_and_made_again(shop: Workshop, name: str, data: str) -> None:
    """It is derived: it costs nothing, and is the same again."""
    shop.project.dag.rebuild()
    assert codes(shop) == []
    path = shop.root / ".headway/dag" / name
    before = path.read_bytes()
    path.write_text(data)
    found = examine(shop)
    assert [(d.plan_id, d.finding.code, d.finding.repair) for d in found] == [
        ("", "dag.damaged", "headway doctor --repair")
    ]
    assert f"dag/{name} cannot be read" in found[0].finding.message
    assert Doctor(shop.project).repair() == ["dag/ was made again: 1 goal, 1 of them from ledgers."]
    assert codes(shop) == []
    assert len(path.read_bytes()) == len(before)


def test_a_newer_history_is_told_and_left_alone(shop: Workshop) -> None:
    """Whoever wrote it can read it."""
    shop.project.dag.rebuild()
    path = shop.root / ".headway/dag/index.json"
    path.write_text('{"version": 99}')
    assert codes(shop) == ["dag.too_new"]
    assert Doctor(shop.project).repair() == []
    assert path.read_text() == '{"version": 99}'


def test_resume_says_why_the_only_plan_cannot_be_read(shop: Workshop, capsys: pytest.CaptureFixture[str]) -> None:
    """It is not that there is none."""
    shop.ledger().write_bytes(b"")
    shop.ledger().with_name("head").unlink(missing_ok=True)
    said = shop.run(capsys, "resume")
    assert said.code == 4
    assert "headway doctor" in said.err
