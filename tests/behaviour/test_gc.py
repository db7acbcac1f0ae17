"""Freeing space: what is needed stays, whoever needs it."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from headway import Plan, Project
from headway.engine.gc import free_space
from headway.errors import DamageError, TryLater
from headway.files.blobs import Blobs
from headway.work import Work


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
    writer.close()
    free_space(Project(root).store)


def test_a_damaged_ledger_stops_it(root: Path) -> None:
    """Nobody knows what an unreadable ledger names."""
    made("a")
    ledger = root / ".headway/plans/words/ledger.jsonl"
    data = ledger.read_bytes()
    ledger.write_bytes(data[:50] + b"X" + data[51:])
    (root / ".headway/plans/words/head").unlink()
    with pytest.raises(DamageError):
        free_space(Project(root).store, keep_days=0)


def test_folders_are_kept_whole(root: Path) -> None:
    """Everything in a folder output is needed, not only its listing."""
    plan = Plan("Tree", id="tree")
    plan.add("it", run="mkdir -p dist && echo one > dist/a && echo two > dist/b", produces="dist/")
    plan.run()
    free_space(Project(root).store, keep_days=0)
    os.remove("dist/b")
    plan.run()
    assert Path("dist/b").read_text() == "two\n"


def test_packs_do_not_pile_up(root: Path) -> None:
    """After many runs the blobs are gathered into a few packs by themselves."""
    for number in range(45):
        made(str(number))
    packs = [p for p in (root / ".headway/blobs").iterdir() if p.suffix == ".pack"]
    assert len(packs) < 40
