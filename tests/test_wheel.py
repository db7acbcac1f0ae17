"""The first two minutes of a stranger: the wheel, an empty folder, no network, and the commands of the first screen."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import sysconfig
import zipfile
from importlib.metadata import distribution
from pathlib import Path

import pytest

from headway import bulk
from tests.test_docs import ROOT, shortfalls, snippets

pytestmark = pytest.mark.slow
OFFLINE = {"PIP_NO_INDEX": "1", "PIP_DISABLE_PIP_VERSION_CHECK": "1", "http_proxy": "http://127.0.0.1:9"}


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel, built from what is under version control or would be."""
    source, out = tmp_path_factory.mktemp("source"), tmp_path_factory.mktemp("wheel")
    for name in ("pyproject.toml", "README.md", "LICENSE", "CHANGELOG.md"):
        shutil.copy(ROOT / name, source)
    for name in ("src", "tools"):
        shutil.copytree(ROOT / name, source / name, ignore=shutil.ignore_patterns("__pycache__", "*.so"))
    run([sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(out)], cwd=source)
    return next(out.glob("*.whl"))


@pytest.fixture(scope="module")
def installed(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The `bin` of an environment with the wheel in it; what it depends on is taken from this one.

    Its path has a blank in it, as paths have: not every kind of start script bears that.
    """
    home = tmp_path_factory.mktemp("an environment")
    (install(wheel, home) / "dependencies.pth").write_text(sysconfig.get_path("purelib") + "\n", encoding="utf-8")
    return home / "bin"


@pytest.fixture(scope="module")
def plain(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The same with what the wheel depends on and nothing else: no extras."""
    home = tmp_path_factory.mktemp("plain")
    site = install(wheel, home)
    for name in ("msgspec", "PyYAML", "rich", "markdown-it-py", "mdurl", "Pygments"):
        found = distribution(name)
        for top in {file.parts[0] for file in found.files or () if file.parts[0] != ".."}:
            (site / top).symlink_to(str(found.locate_file(top)))
    return home / "bin"


def install(wheel: Path, home: Path) -> Path:
    """A new environment with the wheel alone; where its packages are."""
    run([sys.executable, "-m", "venv", "--without-pip", str(home)], cwd=home)
    python = str(home / "bin" / "python")
    pip = [sys.executable, "-m", "pip", "--python", python, "install", "-q", "--no-deps", "--no-index", str(wheel)]
    run(pip, cwd=home)
    return next((home / "lib").glob("python*/site-packages"))


def run(words: list[str], *, cwd: Path) -> str:
    done = told(words, cwd=cwd)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def told(words: list[str], *, cwd: Path) -> subprocess.CompletedProcess[str]:
    known = {
        name: value for name, value in os.environ.items() if name != "PYTHONPATH"
    }  # else this source is found first
    return subprocess.run(
        words, cwd=cwd, env={**known, **OFFLINE}, capture_output=True, text=True, check=False, timeout=120
    )


def test_the_wheel_holds_the_package_and_nothing_else(wheel: Path) -> None:
    """Code, its type marker and its metadata: no tests, no caches."""
    names = zipfile.ZipFile(wheel).namelist()
    assert "headway/py.typed" in names
    assert {name.split("/")[0] for name in names} == {"headway", "-".join(wheel.name.split("-")[:2]) + ".dist-info"}
    assert [name for name in names if "__pycache__" in name] == []
    is_built = "headway/_bulk.abi3.so" in names
    assert is_built == (bulk.write is not bulk.write_one_by_one), "the part in C is there if it is here"
    assert ("-cp311-abi3-" in wheel.name) == is_built


def test_the_first_screen_works_from_the_wheel(installed: Path, tmp_path: Path) -> None:
    """Every command of the README's first screen prints what stands there, from the wheel, in an empty folder."""
    where = run([str(installed / "python"), "-c", "import headway; print(headway.__file__)"], cwd=tmp_path)
    assert where.startswith(str(installed.parent))
    first = next(snippet for snippet in snippets("console") if snippet.page.name == "README.md")
    folder = tmp_path / "empty"
    folder.mkdir()
    assert shortfalls(first.text, folder, bin=installed) == []


def test_the_demo_works_from_the_wheel(installed: Path, tmp_path: Path) -> None:
    """`headway demo` needs nothing but what is installed."""
    assert "All of this was true" in run([str(installed / "headway"), "demo"], cwd=tmp_path)


def test_without_extras_a_plan_with_templates_names_the_extra(plain: Path, tmp_path: Path) -> None:
    """Before anything is started, in the shape of every error; a look at the plan needs no extra."""
    folder = tmp_path / "labels"
    shutil.copytree(ROOT / "examples/labels", folder, ignore=shutil.ignore_patterns(".headway", "docs", "out"))
    headway = str(plain / "headway")
    run([str(plain / "python"), "write_docs.py"], cwd=folder)
    refused = told([headway, "run"], cwd=folder)
    assert (refused.returncode, refused.stdout) == (2, "")
    assert "Templates are an extra\n" in refused.stderr
    assert "next: pip install 'headway[templates]'" in refused.stderr
    assert "401 to make" in run([headway, "status"], cwd=folder)
    assert "headway[mcp]" in told([headway, "mcp"], cwd=folder).stderr
