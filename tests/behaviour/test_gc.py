"""Freeing space: what is needed stays, whoever needs it."""

from __future__ import annotations

import errno
import os
import re
import shlex
from pathlib import Path

import pytest

from headway import Plan, Project
from headway.core.events import ArtifactFailed, Came
from headway.engine import gc
from headway.engine.gc import free_space
from headway.errors import DamageError, TryLater
from headway.files.blobs import LARGE, Blobs, Freed
from headway.store import PlanStore
from headway.surfaces.cli.main import main
from headway.work import Work
from tests.workshop import Workshop


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty project folder."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


def made(word: str, *, produces: str = "out.txt") -> None:
    """Make one artifact whose bytes depend on the word."""
    plan = Plan("Words", id="words")
    plan.add("it", make=lambda: word * 100, produces=produces, version=word)
    plan.run()


def test_the_current_completion_is_always_kept(root: Path) -> None:
    """Even with no history at all, a deleted output comes back."""
    for word in ("a", "b", "c"):
        made(word)
    freed = free_space(Project(root).store, keep_days=0)
    assert freed.freed >= 2
    os.remove("out.txt")
    result = Work(Project(root)).run("words")
    assert result.restored == ["it"]
    assert Path("out.txt").read_text() == "c" * 100


def test_older_completions_are_kept_for_a_while(root: Path) -> None:
    """Within the configured history, going back still costs nothing."""
    made("a")
    made("b")
    free_space(Project(root).store, keep_days=1)
    plan = Plan("Words", id="words")
    plan.add("it", make=lambda: "never called", produces="out.txt", version="a")
    assert plan.run().reused == ["it"]


def test_what_older_attempts_said_is_kept_as_long_as_what_they_made(root: Path) -> None:
    """Also those that failed; and no longer."""
    plan = root / "headway.yaml"
    for word, ends in (("one", ""), ("two", "; false"), ("three", "")):
        what = f"echo said {word}; echo erred {word} >&2; echo {word} > {{output}}{ends}"
        plan.write_text(f"id: words\ngoal: g\nartifacts:\n  it: {{run: '{what}', produces: out.txt}}\n")
        main(["run"])
    project = Project(root)
    attempts = [r.event for r in project.folder("words").history() if isinstance(r.event, (Came, ArtifactFailed))]
    blobs = [digest for event in attempts for digest in (event.stdout, event.stderr)]
    free_space(project.store, keep_days=1)
    said = [project.store.blobs.get(digest) for digest in blobs]
    assert said == [f"{how} {word}\n".encode() for word in ("one", "two", "three") for how in ("said", "erred")]
    free_space(project.store, keep_days=0)
    assert [project.store.blobs.has(digest) for digest in blobs] == [False] * 4 + [True] * 2


def test_what_a_person_wrote_is_never_freed(root: Path) -> None:
    """Bytes that were preserved before a recipe replaced them stay for good."""
    made("a")
    Path("out.txt").write_text("by hand")
    plan = Plan("Words", id="words")
    plan.add("it", make=lambda: "x", produces="out.txt", version="b")
    plan.run(on_edit="discard")
    free_space(Project(root).store, keep_days=0)
    contents = [Project(root).blobs.get(name) for name, _ in Project(root).blobs.names()]
    assert b"by hand" in contents


@pytest.mark.parametrize("gates", [[], [{"name": "look", "kind": "check", "run": "true"}]])
def test_what_a_person_wrote_and_accepted_is_never_freed_either(root: Path, gates: list[dict[str, str]]) -> None:
    """Not even when something else has taken its place since: no recipe makes it again."""
    for version, on_edit in (("a", "accept"), ("b", "discard")):
        Path("out.txt").write_text("by hand")
        plan = Plan("Words", id="words")
        plan.add("it", make=lambda: "made", produces="out.txt", version=version, gates=gates)
        plan.run(on_edit=on_edit)
    assert Path("out.txt").read_text() == "made"
    free_space(Project(root).store, keep_days=0)
    contents = [Project(root).blobs.get(name) for name, _ in Project(root).blobs.names()]
    assert b"by hand" in contents


def test_a_dry_run_frees_nothing(root: Path) -> None:
    """It says what it would do."""
    made("a")
    made("b")
    before = sorted(p.name for p in (root / ".headway/blobs").iterdir())
    assert free_space(Project(root).store, keep_days=0, dry_run=True).freed >= 1
    assert sorted(p.name for p in (root / ".headway/blobs").iterdir()) == before


def test_nothing_is_freed_while_somebody_writes(root: Path) -> None:
    """A writer may rely on a blob that no event names yet."""
    made("a")
    writer = Blobs(str(root / ".headway/blobs"))
    writer.put(b"not named yet")
    with pytest.raises(TryLater):
        free_space(Project(root).store)
    assert free_space(Project(root).store, dry_run=True).kept >= 1, "whoever only looks is in nobody's way"
    writer.close()
    free_space(Project(root).store)


def test_nothing_is_freed_while_another_thread_of_the_same_process_writes(root: Path) -> None:
    """Whoever is done first with a plan of its own lets go of nothing that others rely on."""
    made("a")
    store = Project(root).store
    with store.folder("words").writing():
        name = store.blobs.put(b"not named yet")
        with store.folder("others").writing():
            pass
        for whose in (store, Project(root).store):
            with pytest.raises(TryLater):
                free_space(whose)
        assert store.blobs.get(name) == b"not named yet"
    assert free_space(store).freed == 1


def test_what_a_killed_writer_left_half_written_goes(root: Path) -> None:
    """A large blob is a file of its own, put in place by a rename that a killed process did not get to."""
    plan = Plan("Words", id="words")
    plan.add("it", make=lambda: "large" * LARGE, produces="out.txt")
    plan.run()
    (large,) = Path(".headway/blobs").glob("??/*")
    half = large.with_name(f"{large.name}.4194305.0123abcd.tmp")
    half.write_bytes(b"half of it")
    free_space(Project(root).store, keep_days=0, dry_run=True)
    assert half.exists()
    free_space(Project(root).store, keep_days=0)
    assert [path.name for path in large.parent.iterdir()] == [large.name]


@pytest.mark.parametrize(
    "name",
    [
        "texts/0123.{}.0123abcd.tmp",
        "stamps/words.{}.tmp",
        "project.json.{}.0123abcd.tmp",
        "archive/20261116T100000-0123-words.tar.gz.{}.tmp",
        "../out.txt.{}.0123abcd.tmp",
    ],
)
def test_what_a_killed_process_did_not_put_in_place_goes(root: Path, name: str) -> None:
    """Wherever among the project's own files, or beside outputs; not what a process that is alive is about to."""
    made("a")
    home = (root / ".headway" / name).parent.resolve()
    name = Path(name).name
    half, whole = home / name.format(4194305), home / name.format(os.getpid())
    for path in (half, whole):
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(b"half of it")
    before = {*home.rglob("*")}
    Work(Project(root)).free_space(keep_days=30, dry_run=True)
    assert {*home.rglob("*")} == before
    Work(Project(root)).free_space(keep_days=30)
    assert before - {*home.rglob("*")} == {half}


def test_a_damaged_ledger_stops_it(root: Path) -> None:
    """Nobody knows what an unreadable ledger names."""
    made("a")
    ledger = root / ".headway/plans/words/ledger.jsonl"
    data = ledger.read_bytes()
    ledger.write_bytes(data[:50] + b"X" + data[51:])
    (root / ".headway/plans/words/head").unlink()
    with pytest.raises(DamageError):
        free_space(Project(root).store, keep_days=0)


def test_the_file_of_a_text_goes_with_its_blob(root: Path) -> None:
    """What is still needed stays, and so does what is so new that an attempt may be at work with it."""
    texts = root / ".headway/texts"

    def say(word: str) -> None:
        plan = Plan("Words", id="words")
        plan.add("text", make=lambda: word, version=word)
        plan.add("it", make=lambda ctx: Path(ctx.inputs["text"]).read_text(), produces="out.txt", requires=["text"])
        plan.run()

    for word in ("first", "second", "third"):
        say(word)
    assert len(list(texts.iterdir())) == 3
    for path in texts.iterdir():
        if path.read_text() != "second":
            os.utime(path, (1, 1))
    free_space(Project(root).store, keep_days=0, dry_run=True)
    assert len(list(texts.iterdir())) == 3
    free_space(Project(root).store, keep_days=0)
    assert {path.read_text() for path in texts.iterdir()} == {"second", "third"}
    say("first")
    assert Path("out.txt").read_text() == "first"


def test_folders_are_kept_whole(root: Path) -> None:
    """Everything in a folder output is needed, not only its listing."""
    plan = Plan("Tree", id="tree")
    plan.add("it", run="mkdir -p dist && echo one > dist/a && echo two > dist/b", produces="dist/")
    plan.run()
    free_space(Project(root).store, keep_days=0)
    os.remove("dist/b")
    plan.run()
    assert Path("dist/b").read_text() == "two\n"


def test_a_folder_that_was_not_there_before_it_was_changed_in_place_needs_nothing(root: Path) -> None:
    """There is no blob of nothing."""
    plan = Plan("Words", id="words")
    plan.add("it", run="mkdir -p out; echo a > out/a.txt", modifies="out/")
    plan.run()
    free_space(Project(root).store, keep_days=0)
    assert plan.run().made == []


def test_packs_do_not_pile_up(root: Path) -> None:
    """After many runs the blobs are gathered into a few packs by themselves."""
    for number in range(45):
        made(str(number))
    packs = [p for p in (root / ".headway/blobs").iterdir() if p.suffix == ".pack"]
    assert len(packs) < 40


def test_a_run_looks_for_what_nothing_needs_only_when_there_is_twice_as_much(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """That look goes through all of history: in between, packs are put together and every blob is kept."""
    monkeypatch.setattr("headway.files.blobs.MANY_PACKS", 8)
    monkeypatch.setattr("headway.files.blobs.WORTH", 4_000)
    looked: list[str] = []

    def freed(store: PlanStore) -> Freed:
        looked.append("once more")
        found = free_space(store, keep_days=0)
        assert not store.blobs.doubled
        return found

    monkeypatch.setattr(gc, "free_space", freed)
    for number in range(40):
        made(f"{number:02}")
        assert len([p for p in (root / ".headway/blobs").iterdir() if p.suffix == ".pack"]) < 8
    assert 2 <= len(looked) <= 4
    blobs = Project(root).blobs
    assert {blobs.get(name) for name, _ in blobs.names()} >= {f"{number:02}".encode() * 100 for number in (38, 39)}
    assert list(blobs.verify()) == []


def refused(*_: object, **__: object) -> None:
    """A disk that has no room."""
    raise OSError(errno.ENOSPC, "No space left on device")


@pytest.mark.parametrize("trouble", ["a full disk", "a pack that went meanwhile"])
def test_a_run_that_did_its_work_does_not_fail_for_packs(
    root: Path, monkeypatch: pytest.MonkeyPatch, trouble: str
) -> None:
    """Putting them together is a convenience: what stands in its way puts it off."""
    monkeypatch.setattr("headway.files.blobs.MANY_PACKS", 3)
    made("a")
    made("b")
    if trouble == "a full disk":
        monkeypatch.setattr("headway.files.blobs.write_file", refused)
    else:
        (root / ".headway/blobs/0-0.pack").symlink_to("gone")
    made("c")
    assert Path("out.txt").read_text() == "c" * 100


def test_a_full_disk_gets_room_by_what_takes_no_writing(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Packs of which nothing is needed go before others are written anew, and so do large blobs."""
    folder = root / "blobs"
    large, live = b"l" * (LARGE + 1), b"live"
    for several in ((b"dead", b"gone"), (large,), (live, b"beside it")):
        blobs = Blobs(str(folder))
        for data in several:
            blobs.put(data)
        blobs.close()
    names = {data: name for name, _ in blobs.names() if (data := blobs.get(name))}
    monkeypatch.setattr("headway.files.blobs.write_file", refused)
    with pytest.raises(OSError, match="No space"):
        Blobs(str(folder)).free(lambda: {names[live]}, dry_run=False)
    left = Blobs(str(folder))
    assert {left.get(name) for name, _ in left.names()} == {live, b"beside it"}


def test_only_packs_that_hold_what_nobody_needs_are_written_anew(root: Path) -> None:
    """Whatever else is freed: those that are needed whole stay as they are."""
    folder = root / "blobs"
    for several in ((b"needed", b"also"), (b"live", b"dead")):
        blobs = Blobs(str(folder))
        for data in several:
            blobs.put(data)
        blobs.close()
    needed = {name for name, _ in blobs.names() if blobs.get(name) != b"dead"}
    before = {path.name: b"dead" in path.read_bytes() for path in folder.glob("*.pack")}
    assert Blobs(str(folder)).free(lambda: needed, dry_run=False).freed == 1
    after = {path.name for path in folder.glob("*.pack")}
    assert after & before.keys() == {name for name, holds_dead in before.items() if not holds_dead}
    assert {name for name, _ in Blobs(str(folder)).names()} == needed


def test_a_look_after_a_full_disk_tells_what_is_there(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What went before the disk refused the rest is not taken for something that is still there."""
    folder = root / "blobs"
    for several in ((b"dead",), (b"live", b"gone")):
        blobs = Blobs(str(folder))
        for data in several:
            blobs.put(data)
        blobs.close()
    names = {blobs.get(name): name for name, _ in blobs.names()}
    monkeypatch.setattr("headway.files.blobs.write_file", refused)
    with pytest.raises(OSError, match="No space"):
        blobs.free(lambda: {names[b"live"]}, dry_run=False)
    assert (blobs.has(names[b"dead"]), blobs.has(names[b"live"])) == (False, True)


def test_packs_that_hold_much_are_not_copied_for_the_sake_of_small_ones(root: Path) -> None:
    """Putting packs together costs what the small ones hold."""
    folder = root / "blobs"
    for data in (b"x" * 200_000, *(b"%d" % number for number in range(30))):
        blobs = Blobs(str(folder))
        blobs.put(data)
        blobs.close()
    before = max(folder.glob("*.pack"), key=lambda pack: pack.stat().st_size)
    Blobs(str(folder)).gather()
    assert len(list(folder.glob("*.pack"))) == 2
    assert before.exists()
    kept = Blobs(str(folder))
    assert {kept.get(name) for name, _ in kept.names()} == {b"x" * 200_000, *(b"%d" % n for n in range(30))}


# Files that no plan makes any more.

A = "  a: {produces: a.txt, run: 'echo a > {output}'}\n"
B = "  b: {produces: b.txt, run: 'echo b > {output}'}\n"


def plan_file(shop: Workshop, *artifacts: str, name: str = "headway") -> str:
    """A plan with these artifacts; what to give as --plan."""
    file = shop.root / f"{name}.yaml"
    file.write_text(f"id: {name}\ngoal: g\nartifacts:\n{''.join(artifacts)}", encoding="utf-8")
    return str(file)


@pytest.fixture
def shop(tmp_path: Path) -> Workshop:
    return Workshop(tmp_path / "shop")


def test_files_of_artifacts_that_were_taken_out_of_the_plan_can_go(
    shop: Workshop, capsys: pytest.CaptureFixture[str]
) -> None:
    """Taken out, or given another path; listed first, deleted when somebody says so, and not offered again."""
    plan_file(shop, A, B)
    shop.run(capsys, "run")
    assert shop.run(capsys, "gc", "--json").json["outputs"] == []
    plan_file(shop, A.replace("a.txt", "new.txt"))
    shop.run(capsys, "run")
    assert "2 files belong to nothing any more" in shop.run(capsys, "gc").out
    listed = shop.run(capsys, "gc", "--outputs", "--dry-run").out
    assert listed.startswith("Would delete a.txt\nWould delete b.txt\n")
    assert (shop.root / "b.txt").exists()
    assert shop.run(capsys, "gc", "--outputs").out.startswith("Deleted a.txt\nDeleted b.txt\n")
    assert sorted(path.name for path in shop.root.glob("*.txt")) == ["new.txt"]
    assert shop.run(capsys, "gc", "--json").json["outputs"] == []


def test_what_somebody_wrote_accepted_or_still_needs_is_not_offered(
    shop: Workshop, capsys: pytest.CaptureFixture[str]
) -> None:
    """Edited since, adopted, made by another plan now, read as a source, or part of a folder that is made."""
    paths = ("edited", "adopted", "elsewhere", "read", "site/page")
    made = [f"  {name[:4]}: {{produces: {name}.txt, run: 'echo {name} > {{output}}'}}\n" for name in paths]
    plan_file(shop, *made)
    shop.run(capsys, "run")
    (shop.root / "adopted.txt").write_text("by hand")
    shop.run(capsys, "run", "--accept-edits")
    plan_file(
        shop,
        "  reader: {produces: copy.txt, run: 'cat read.txt > {output}'}\n",
        "  site: {produces: site/, run: 'echo site/page > site/page.txt'}\n",
    )
    other = plan_file(shop, made[2], name="other")
    shop.run(capsys, "run", "--discard-edits")
    shop.run(capsys, "run", "--plan", other)
    (shop.root / "edited.txt").write_text("by hand")
    assert shop.run(capsys, "gc", "--json").json["outputs"] == []


def test_a_file_that_was_only_changed_in_place_is_nobodys_to_delete(
    shop: Workshop, capsys: pytest.CaptureFixture[str]
) -> None:
    """It was there before the plan was; what a plan made and then changed is its own."""
    (shop.root / "README.txt").write_text("mine\n")
    change = "  {0}: {{modifies: {1}, run: 'echo more >> {1}'}}\n"
    plan_file(shop, A, B, change.format("readme", "README.txt"), change.format("more", "b.txt"))
    shop.run(capsys, "run")
    assert (shop.root / "b.txt").read_text() == "b\nmore\n"
    plan_file(shop, A)
    shop.run(capsys, "run")
    assert shop.run(capsys, "gc", "--json").json["outputs"] == ["b.txt"]


def test_the_command_that_a_run_names_works_as_typed(shop: Workshop, capsys: pytest.CaptureFixture[str]) -> None:
    """With the plan that was run, and about its files only; whatever form it is written in."""
    plan_file(shop, A)
    shop.run(capsys, "run")
    other = plan_file(shop, B, "  c: {produces: c.txt, run: 'echo c > {output}'}\n", name="other")
    shop.run(capsys, "run", "--plan", other)
    plan_file(shop, A.replace("a.txt", "new.txt"))
    shop.run(capsys, "run")
    plan_file(shop, B, name="other")
    ran = shop.run(capsys, "run", "--plan", other)
    found = re.search(r"headway (gc --outputs --dry-run .*) lists those that can go", ran.err)
    assert found is not None
    listed = shop.run(capsys, *shlex.split(found[1]))
    assert listed.code == 0
    assert "Would delete c.txt" in listed.out
    assert "a.txt" not in listed.out
    assert shop.run(capsys, "gc", "--json").json["outputs"] == ["a.txt", "c.txt"]
    assert "--plan-id other" in shop.run(capsys, "gc", "--plan-id", "other").out
    assert shop.run(capsys, "gc", "--json", "--plan-id", "headway").json["outputs"] == ["a.txt"]
