"""Output paths: one spelling each, and a reason for each that is refused."""

from __future__ import annotations

import glob
import posixpath
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from headway.core.ids import artifact_id_problem
from headway.core.paths import are_normal, are_plain, is_folder, is_glob, normalise, output_problem, parents, would_find
from headway.files.observe import Observer

PATHS = st.lists(st.sampled_from(["a", "b", ".c", ".", "..", ""]), min_size=1, max_size=7).map("/".join)


@pytest.mark.parametrize(
    ("written", "normal"),
    [
        ("a/b", "a/b"),
        ("./a//b", "a/b"),
        ("a/./b", "a/b"),
        ("dist/", "dist/"),
        ("./dist//", "dist/"),
        ("dist/.", "dist/"),
        ("a/../b", "b"),
        ("a/..", "./"),
        (".", "./"),
        ("../x", "../x"),
        ("a/../../x", "../x"),
        ("/etc//x", "/etc/x"),
        (".github/x", ".github/x"),
        ("back\\slash", "back\\slash"),
        ("", ""),
    ],
)
def test_a_path_has_one_spelling(written: str, normal: str) -> None:
    """Dots and doubled slashes go, a trailing slash stays, and what leaves the project is not hidden."""
    assert normalise(written) == normal


@given(PATHS)
def test_normalising_twice_changes_nothing_more(path: str) -> None:
    """The normal form is its own normal form."""
    assert normalise(normalise(path)) == normalise(path)


@given(PATHS.filter(lambda path: not path.startswith("/") and path != ""))
def test_the_normal_form_names_the_same_path_as_posix_does(path: str) -> None:
    """Trailing slashes apart, the standard library agrees."""
    assert posixpath.normpath(normalise(path)) == posixpath.normpath(path)


@pytest.mark.parametrize(
    ("path", "reason"),
    [
        ("", "empty"),
        ("   ", "empty"),
        ("/etc/passwd", "absolute"),
        ("~/x", "'~'"),
        ("../x", "outside the project"),
        ("a/../../x", "outside the project"),
        ("..", "outside the project"),
        (".", "the project itself"),
        ("a/..", "the project itself"),
        (".headway/plans/x", "inside .headway/"),
        ("./a/../.git/hooks/x", "inside .git/"),
        (".GIT/config", "inside .GIT/"),
        (".headway", "inside .headway/"),
        ("a\0b", "control characters"),
        ("a\nb", "control characters"),
        ("a\ud800b", "control characters"),
        ("a/" * 600, "longer than 1024 bytes"),
        ("ä" * 128, "a name longer than 255 bytes"),
    ],
)
def test_a_path_that_cannot_be_an_output_is_refused_with_its_reason(path: str, reason: str) -> None:
    """Whatever is outside, protected, unprintable or too long is named as such."""
    assert reason in output_problem(path)


@pytest.mark.parametrize(
    "path", ["a", "a/b.txt", "dist/", "ä/ö", ".github/x", "a b", "pages/[id].tsx", "x\\y", "..a/b"]
)
def test_an_ordinary_path_can_be_an_output(path: str) -> None:
    """Hidden files, blanks, brackets and backslashes are ordinary."""
    assert output_problem(path) == ""


@pytest.mark.parametrize(
    ("path", "expected"),
    [("*.sql", True), ("a/**/b", True), ("a?", True), ("[ab].c", True), ("a/b.c", False), ("a[", False), ("[]", False)],
)
def test_a_pattern_is_told_from_a_path(path: str, expected: bool) -> None:
    """Stars, question marks and bracketed sets make a pattern."""
    assert is_glob(path) is expected


def test_a_folder_is_named_by_its_trailing_slash() -> None:
    """`dist/` is a folder, `dist` is a file."""
    assert is_folder("dist/")
    assert not is_folder("dist")


def test_parents_are_the_folders_above_a_path() -> None:
    """From the outermost to the nearest, for files and folders alike."""
    assert parents("a/b/c") == ["a", "a/b"]
    assert parents("a/b/") == ["a"]
    assert parents("a") == []


PART = st.sampled_from(["a", "b", "ab", ".h", "a.x", "b.x"])
PATTERN = st.sampled_from(["*", "**", "a*", "?", "[ab]", "[!a]*", "*.x", ".*", "a", "b.x"])


@given(
    names=st.lists(st.lists(PART, min_size=1, max_size=4).map("/".join), max_size=6),
    parts=st.lists(PATTERN, min_size=1, max_size=4),
)
@example(names=["a/a"], parts=["*", "a", "**"])
def test_a_pattern_would_find_by_spelling_what_it_finds_on_disk(
    names: list[str], parts: list[str], tmp_path_factory: pytest.TempPathFactory
) -> None:
    """As `glob` does, for files; and as they are looked for."""
    root = tmp_path_factory.mktemp("found")
    there: list[str] = []
    for name in names:
        path = root / name
        if not path.exists() and not any(parent.is_file() for parent in path.parents):
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text("")
            there.append(name)
    pattern = "/".join(parts)
    found = glob.glob(pattern, root_dir=root, recursive=True)
    files = {match for match in found if (Path(root) / match).is_file() and not match.endswith("/")}
    assert {name for name in there if would_find(pattern, name)} == files
    assert not is_glob(pattern) or set(Observer(str(root)).expand([pattern])) == files


SPELLINGS = st.text(alphabet="aZ0_-./~*\n é", max_size=6) | PATHS


@given(names=st.lists(SPELLINGS, max_size=4))
def test_of_plain_names_nothing_is_to_be_asked(names: list[str]) -> None:
    """What is told of all together holds of each: as an output, as an id, and in its one spelling."""
    if are_plain(names):
        for name in names:
            assert output_problem(name) == ""
            assert artifact_id_problem(name) == ""
            assert normalise(name) == name
            assert not is_folder(name)


@given(names=st.lists(SPELLINGS, max_size=4))
def test_of_paths_that_are_normal_each_is_its_one_spelling(names: list[str]) -> None:
    """They are looked at together, so that one with another spelling makes all of them be looked at by themselves."""
    if are_normal(names):
        assert [*map(normalise, names)] == names


def test_the_usual_paths_are_normal() -> None:
    """Names with dots in them are; whatever goes up, or is spelled with more than it takes, is not."""
    assert are_normal(["a.txt", "out/b-1/c.txt", "out/"])
    assert not any(are_normal(["a", odd]) for odd in (".", "./a", "a//b", "a/../b", "../a", "a/."))


def test_plain_names_are_told_as_such() -> None:
    """The usual ones are plain; one that is not spoils them all, and signs have to be allowed."""
    assert are_plain([])
    assert are_plain(["a", "out/b-1/c.txt", "x_y.z"])
    assert not any(are_plain(["a", odd]) for odd in ("", ".", "a//b", "a/", "-a", "a/../b", "a\nb", "é", "x" * 201))
    assert not are_plain(["src/*.txt"])
    assert are_plain(["src/*.txt"], signs=b"*")
