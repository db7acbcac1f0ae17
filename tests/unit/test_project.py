"""Which folder is a project, which plan is meant, and how a project is told apart from others."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from headway.core.commands import ChangePlan, SetProfile
from headway.core.plan import Profile
from headway.errors import NotFound, PlanInvalid, Rejected, UsageError
from headway.files.identity import find_root
from headway.project import Project
from tests.workshop import PLAN, Workshop, spec


@pytest.fixture
def shop(tmp_path: Path) -> Workshop:
    """A project with a saved plan."""
    shop = Workshop(tmp_path / "project")
    shop.save()
    return shop


def mark(path: str, text: str = "") -> Callable[[Path], None]:
    """Put a file into a folder."""

    def put(folder: Path) -> None:
        file = folder / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")

    return put


MARKS = [
    mark(".headway/project.json", '{"format": 1, "id": "x"}'),
    mark("headway.toml"),
    mark("headway.yaml"),
    mark("pyproject.toml", "[tool.headway]\n"),
    mark("pyproject.toml", "[ tool . headway ]\n"),
    mark("pyproject.toml", "[tool]\nheadway = {}\n"),
]
NO_MARKS = [
    mark(".headway/other"),
    mark("pyproject.toml", "[project]\nname = 'headway'\n"),
    mark("pyproject.toml", "not toml, though it says tool.headway = ["),
    mark("pyproject.toml", 'x = "[tool.headway]"\n'),
    mark("README.md"),
]


@pytest.fixture
def deep(tmp_path: Path) -> Path:
    """A folder below others, none of which is marked."""
    folder = tmp_path / "a" / "b" / "c"
    folder.mkdir(parents=True)
    return folder


def test_a_project_is_located_from_any_folder_in_it(shop: Workshop) -> None:
    """By its mark; `locate` takes whatever names a folder."""
    (shop.root / "src/deep").mkdir(parents=True)
    assert Project.locate(shop.root / "src/deep").root == str(shop.root)


@pytest.mark.parametrize("put", MARKS)
def test_the_nearest_marked_folder_is_the_root(deep: Path, put: Callable[[Path], None]) -> None:
    """Any of the marks counts, even inside a Git repository, and the nearest one wins."""
    (deep / ".git").mkdir()
    put(deep.parents[0])
    put(deep.parents[1])
    assert find_root(str(deep)) == str(deep.parents[0])


@pytest.mark.parametrize("put", NO_MARKS)
def test_other_files_are_no_marks(deep: Path, put: Callable[[Path], None]) -> None:
    """What merely resembles a mark makes no root."""
    put(deep.parents[0])
    assert find_root(str(deep)) == str(deep)


@pytest.mark.parametrize("as_file", [False, True])
def test_without_a_mark_the_git_root_counts(deep: Path, as_file: bool) -> None:
    """Of a repository or of a worktree, whose .git is a file; the nearest one."""
    for folder in deep.parents[:2]:
        (folder / ".git").write_text("gitdir: x", encoding="utf-8") if as_file else (folder / ".git").mkdir()
    assert find_root(str(deep)) == str(deep.parents[0])


def test_without_anything_the_folder_itself_counts(deep: Path) -> None:
    """And nothing is created by finding out."""
    assert find_root(str(deep)) == str(deep)
    assert list(deep.iterdir()) == []


@pytest.mark.parametrize("put", [*MARKS, mark(".git/config")])
def test_the_home_folder_is_never_the_root_of_what_is_below(deep: Path, put: Callable[[Path], None]) -> None:
    """Marked or not, under its own name or through a link, it is passed over."""
    home = deep.parents[0]
    put(home)
    link = deep.parents[2] / "link"
    link.symlink_to(home)
    assert find_root(str(deep), home=str(home)) == str(deep)
    assert find_root(str(deep), home=str(link)) == str(deep)


def test_a_root_above_home_still_counts(deep: Path) -> None:
    """Only the home folder itself is passed over."""
    mark("headway.yaml")(deep.parents[1])
    assert find_root(str(deep), home=str(deep.parents[0])) == str(deep.parents[1])


# Identity.


def test_the_project_id_is_made_once_and_ignores_git(shop: Workshop) -> None:
    """The first write gives the project its id and keeps all of it out of Git."""
    project_id = shop.project.project_id
    assert len(project_id) == 16
    assert shop.project.identify() == project_id
    assert (shop.root / ".headway" / ".gitignore").read_text(encoding="utf-8") == "*\n"


def test_a_moved_or_copied_project_is_the_same_project(shop: Workshop, tmp_path: Path) -> None:
    """Nothing on disk names the place it was in."""
    shutil.copytree(shop.root, tmp_path / "copy")
    copy = Project(tmp_path / "copy")
    assert copy.project_id == shop.project.project_id
    assert copy.show("api") == shop.load()
    moved = shop.root.rename(tmp_path / "moved")
    assert Project(moved).show("api") == copy.show("api")
    for file in moved.rglob("*"):
        assert not file.is_file() or str(tmp_path).encode() not in file.read_bytes(), file


def test_many_at_once_agree_on_one_id(tmp_path: Path) -> None:
    """Whoever is first decides, and everybody is told the same."""
    from concurrent.futures import ThreadPoolExecutor

    with ThreadPoolExecutor(8) as pool:
        ids = set(pool.map(lambda _: Project(tmp_path).identify(), range(32)))
    assert len(ids) == 1
    assert sorted(path.name for path in (tmp_path / ".headway").iterdir()) == [".gitignore", "project.json"]


def test_a_disk_without_hard_links_is_enough(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The id is written by a rename where it cannot be linked."""

    def refuse(*_: Any) -> None:
        raise PermissionError(1, "Operation not permitted")

    monkeypatch.setattr(os, "link", refuse)
    assert Project(tmp_path).identify() == Project(tmp_path).project_id


# Which plan.


def test_the_default_file_names_the_plan(shop: Workshop) -> None:
    """Without a word the plan of headway.yaml is meant, however many others were touched later."""
    shop.project.import_plan(str(shop.folder() / "export"), plan_id="later")
    assert shop.project.select() == "api"
    shop.file.unlink()
    assert shop.project.select() == "later"


def test_an_id_selects_a_saved_plan_beside_the_default_file(shop: Workshop) -> None:
    """The default file is only a default."""
    assert shop.project.select("other") == "other"


def test_an_id_beside_another_file_is_refused(shop: Workshop) -> None:
    """A file that was named on purpose must agree."""
    assert shop.project.select("api", str(shop.file)) == "api"
    with pytest.raises(UsageError, match="different plans"):
        shop.project.select("other", str(shop.file))


@pytest.mark.parametrize(
    "line",
    [
        "id: x-1",
        "id:   'x-1'",
        'id: "x-1"  # it is',
        "id: x-1\r",
        "# id: no\nid: x-1",
        "{id: x-1, goal: g}",
        "id: &i x-1",
    ],
)
def test_an_id_is_found_however_it_is_written(shop: Workshop, line: str) -> None:
    """Plain lines are read without a parser, the rest with one, and both say the same."""
    text = line if line.startswith("{") else f"{line}\ngoal: g\n"
    shop.file.write_bytes(text.encode())
    assert shop.project.select() == "x-1"


def test_a_broken_file_is_told_and_not_passed_over(shop: Workshop) -> None:
    """A file that cannot be read must not make another plan the one that is meant."""
    shop.file.write_text("goal: [", encoding="utf-8")
    with pytest.raises(PlanInvalid):
        shop.project.select()
    assert shop.project.select("api") == "api"


def test_a_project_without_plans_says_how_to_begin(tmp_path: Path) -> None:
    """Nothing is there yet, and nothing is created by asking."""
    with pytest.raises(NotFound, match="no plan here yet") as error:
        Project(tmp_path).select()
    assert "headway init" in error.value.hint
    assert list(tmp_path.iterdir()) == []


def test_a_plan_file_with_nearly_the_right_name_is_not_passed_over_in_silence(tmp_path: Path) -> None:
    """Whoever wrote it should not have to write another."""
    shop = Workshop(tmp_path)
    shop.file.rename(shop.root / "headway.yml")
    for asked in (shop.project.select, shop.project.default_file):
        with pytest.raises(NotFound) as error:
            asked()
        assert error.value.hint == "rename headway.yml to headway.yaml, or name it: --plan headway.yml"


def test_a_plan_that_is_not_saved_yet_is_told_apart_from_a_wrong_name(shop: Workshop) -> None:
    """One needs saving, the other was a slip of the keyboard."""
    shop.edit("id: api", "id: fresh")
    with pytest.raises(NotFound, match="fresh is not saved yet"):
        shop.project.show("fresh")
    with pytest.raises(NotFound, match="There is no plan apu") as error:
        shop.project.show("apu")
    assert error.value.facts == {"did you mean": "api"}


def test_the_plan_of_a_python_file_is_found_without_running_it(shop: Workshop) -> None:
    """Looking at a plan runs nobody's code."""
    shop.file.rename(shop.root / "old.yaml")
    (shop.root / "headway.py").write_text("raise SystemExit('executed')", encoding="utf-8")
    with pytest.raises(NotFound, match=r"The plan of headway.py is not saved yet"):
        shop.project.select()
    from headway.files.planfile import parse_plan

    plan = parse_plan(PLAN.replace("id: api", "id: py").encode(), name="x").plan
    assert plan is not None
    shop.project.take_in(plan, name="headway.py", source="0")
    assert shop.project.select() == "py"


# Changing.


def test_a_change_and_a_profile_are_allowed_together_or_not_at_all(shop: Workshop) -> None:
    """Whichever of the two is refused, the other is not written either."""
    before = shop.events()
    with pytest.raises(UsageError):
        shop.project.change("api", ChangePlan(remove=("ghost",)), Profile())
    shop.do(SetProfile(profile=Profile(locked=True)))
    with pytest.raises(Rejected):
        shop.project.change("api", ChangePlan(goal="other"), Profile())
    assert shop.events() == [*before, "profile_set", "profile_locked"]
    assert shop.load().goal == "Build an API"


def test_the_log_is_what_happened(shop: Workshop) -> None:
    """In order, from one event to another, and not beyond the end."""
    shop.change(spec("model", description="x"))
    assert [r.seq for r in shop.project.log("api", first=2, last=3)] == [2, 3]
    with pytest.raises(NotFound, match="no event 99"):
        shop.project.log("api", last=99)


def test_problems_of_a_saved_plan_can_be_asked_for(shop: Workshop) -> None:
    """A draft says what keeps it from running."""
    assert shop.project.problems(shop.load()) == []
    shop.change(spec("routes", "ghost"))
    assert [p.code for p in shop.project.problems(shop.load())] == ["plan.missing"]
    assert [v.modified for v in shop.project.versions("api")][-1] == ["routes"]
