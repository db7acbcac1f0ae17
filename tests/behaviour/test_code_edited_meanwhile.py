"""Code that is edited while a process lives: what counts is the code that ran, so what it made is still due."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.workshop import Workshop

HELPER = "def up(s):\n    return s.upper()\n"
EDIT = "import pathlib\npathlib.Path('other.py').write_text('def up(s):\\n    return s.lower()\\n\\n')\n"
"""Of another length: Python itself takes an edit of as many bytes within a second for none."""

TASKS = f"import other\ndef edit():\n    exec({EDIT!r})\n    return 'x'\ndef main():\n    return other.up('Hello')\n"
RUN = ("-m", "headway", "run", "--json")


def start(root: Path, *words: str, text: str = "") -> str:
    """A process of its own, which lives as long as its words say."""
    done = subprocess.run([sys.executable, *words], capture_output=True, text=True, check=False, cwd=root, input=text)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.fixture
def project(tmp_path: Path) -> Path:
    (tmp_path / "headway.toml").write_text("")
    (tmp_path / "other.py").write_text(HELPER)
    return tmp_path


@pytest.mark.parametrize("used_before", [False, True], ids=["used later", "used before, too"])
def test_a_module_that_is_edited_during_a_run_is_not_taken_for_what_ran(project: Path, used_before: bool) -> None:
    """Made by the new code at once, or by the next run; then there is nothing to do."""
    text = TASKS.replace("    exec", "    other.up('x')\n    exec") if used_before else TASKS
    (project / "tasks.py").write_text(text)
    (project / "headway.yaml").write_text(
        "goal: g\nartifacts:\n  edit: {produces: s.txt, make: 'tasks:edit'}\n"
        "  main: {requires: [edit], produces: out.txt, make: 'tasks:main'}\n"
    )
    start(project, *RUN)
    start(project, *RUN)
    assert (project / "out.txt").read_text() == "hello"
    assert '"made": []' in start(project, *RUN)


def test_code_that_is_edited_between_verdict_and_loading_is_not_taken_for_what_was_judged(project: Path) -> None:
    """Also of what is begun together as it was judged: put back as it was, the code has made none of it."""
    (project / "tasks.py").write_text("import other\ndef main(ctx):\n    return other.up('Hello ' + ctx.id)\n")
    (project / "edit.sh").write_text("echo 'def up(s): return s.lower()' > other.py\n")

    def plan(version: str, command: str) -> None:
        keys = f"requires: [first], make: 'tasks:main', description: {version}"
        (project / "headway.yaml").write_text(
            "goal: g\nid: p\nartifacts:\n"
            f"  first: {{produces: first.txt, run: '{command}; echo x > {{output}}'}}\n"
            f"  a: {{produces: a.txt, {keys}}}\n  b: {{produces: b.txt, {keys}}}\n"
        )

    plan("one", "true")
    start(project, *RUN)
    plan("two", "sh edit.sh")
    start(project, *RUN)
    assert (project / "a.txt").read_text() == "hello a"
    (project / "other.py").write_text(HELPER)
    plan("two", "true")
    start(project, *RUN)
    assert [(project / f"{a}.txt").read_text() for a in "ab"] == ["HELLO A", "HELLO B"]


@pytest.mark.parametrize("words", [("plan.py",), (*RUN, "--plan", "plan.py")], ids=["python", "headway"])
def test_a_module_that_a_plan_in_python_has_loaded_may_be_edited_during_its_run(
    project: Path, words: tuple[str, ...]
) -> None:
    """What the old code made is stale at once, whatever the stamp of the run could say."""
    (project / "plan.py").write_text(
        "from headway import Plan\n" + TASKS + "plan = Plan('Live', id='live')\n"
        "plan.add('edit', make=edit, produces='s.txt')\n"
        "plan.add('main', make=main, requires=['edit'], produces='out.txt')\n"
        "if __name__ == '__main__':\n    plan.run()\n"
    )
    start(project, *words)
    start(project, *words)
    assert (project / "out.txt").read_text() == "hello"
    assert '"made": []' in start(project, *RUN, "--plan", "plan.py")


def test_an_edit_that_python_does_not_see_is_seen_in_the_end(project: Path) -> None:
    """Of as many bytes, within the same second: it loads what it had compiled, which is put out of its way then."""
    (project / "plan.py").write_text(
        "from headway import Plan\nimport other\ndef main():\n    return other.up('Hello')\n"
        "plan = Plan('Live', id='live')\nplan.add('main', make=main, produces='out.txt')\n"
        "if __name__ == '__main__':\n    plan.run()\n"
    )
    environ = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}

    def run() -> None:
        subprocess.run([sys.executable, "plan.py"], check=True, capture_output=True, cwd=project, env=environ)

    second = time.time_ns() // 1_000_000_000 * 1_000_000_000
    os.utime(project / "other.py", ns=(second, second))
    run()
    (compiled,) = (project / "__pycache__").glob("other.*.pyc")
    os.utime(compiled, ns=(second, second + 1))
    (project / "other.py").write_text(HELPER.replace("upper", "lower"))
    os.utime(project / "other.py", ns=(second, second + 2))
    run()
    run()
    assert (project / "out.txt").read_text() == "hello"


SESSION = f"""
import importlib, os, other
from headway import Plan
plan = Plan('Live', id='live')
def main():
    return other.up('Hello')

plan.add('main', make=main, produces='out.txt')
plan.run().made
exec({EDIT!r})
print(plan.run().made and open('out.txt').read())
print(plan.run().made)
_ = importlib.reload(other)
print(plan.run().made, open('out.txt').read())
print(plan.run().made)
"""


def test_a_module_that_is_edited_in_a_session_counts_once_it_is_loaded_again(project: Path) -> None:
    """Until then the code that is loaded runs; afterwards nothing that it made is taken for the new code's."""
    lines = start(project, "-i", text=SESSION).splitlines()
    assert lines[-3:] == ["[]", "['main'] hello", "[]"]


@pytest.mark.parametrize("again", ["", "from other import up"], ids=["still the old", "the new"])
def test_a_function_that_was_imported_before_its_module_was_loaded_again_is_the_old_one(
    project: Path, again: str
) -> None:
    """Its module is new, but it is not what runs."""
    session = SESSION.replace("os, other", "os, other; from other import up").replace("other.up(", "up(")
    lines = start(project, "-i", text=session.replace("importlib.reload(other)", f"importlib.reload(other)\n{again}"))
    made = "['main'] hello" if again else "[] HELLO"
    assert lines.splitlines()[-2:] == [made, "[]"]


ODD = """\
import dataclasses, enum, functools
class E(enum.Enum):
    A = 1
@dataclasses.dataclass
class D:
    word: str = 'w'
    more: list = dataclasses.field(default_factory=list)
class S:
    __slots__ = ('word',)
SEEN = ['first']
CACHE = {}
TABLE = {'a': 1}
def fill(table, kind):
    table['b'] = kind.word = 2
class K:
    word = 1
fill(TABLE, K)
@functools.lru_cache
def cached(x=1):
    return x
def up(s, case='upper'):
    SEEN.append(s)
    CACHE[s] = D(s)
    return getattr(s, case)() + str(cached())
"""


def test_a_module_that_nobody_edits_is_what_it_was_however_young_it_is(project: Path) -> None:
    """Whatever its classes make of their fields, and however its tables fill."""
    (project / "other.py").write_text(ODD)
    session = SESSION.replace(f"exec({EDIT!r})", "").replace("_ = importlib.reload(other)", "")
    lines = start(project, "-i", text=session).splitlines()
    assert lines[-4:] == ["[]", "[]", "[] HELLO1", "[]"]


def test_a_module_that_is_touched_during_a_run_is_what_it_was(project: Path) -> None:
    """Only its content counts."""
    (project / "other.py").write_text(f"{HELPER}\n")
    (project / "tasks.py").write_text(TASKS.replace("lower", "upper"))
    (project / "headway.yaml").write_text(
        "goal: g\nartifacts:\n  edit: {produces: s.txt, make: 'tasks:edit'}\n"
        "  main: {requires: [edit], produces: out.txt, make: 'tasks:main'}\n"
    )
    start(project, *RUN)
    assert '"made": []' in start(project, *RUN)


def test_a_process_that_stays_runs_the_newest_code_of_a_plan_in_python(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """It loads what its files hold now, each time it is asked."""
    shop = Workshop(tmp_path)
    shop.file.unlink()
    (tmp_path / "aside.py").write_text(HELPER)
    (tmp_path / "plan.py").write_text(
        "import aside\nfrom headway import Plan\nplan = Plan('Live', id='live')\n"
        "plan.add('main', make=lambda: aside.up('Hello'), produces='out.txt')\n"
    )
    assert shop.run(capsys, "run", "--plan", str(tmp_path / "plan.py")).code == 0
    (tmp_path / "aside.py").write_text(HELPER.replace("upper", "lower"))
    for made in (["main"], []):
        assert shop.run(capsys, "run", "--plan", str(tmp_path / "plan.py"), "--json").json["made"] == made
    assert (tmp_path / "out.txt").read_text() == "hello"


def test_a_module_that_is_edited_within_a_second_is_not_taken_from_what_was_compiled_before(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Python itself would: the size is the same, and so is the second."""
    monkeypatch.delenv("PYTHONDONTWRITEBYTECODE", raising=False)
    (project / "plan.py").write_text(
        "import other\nfrom headway import Plan\nplan = Plan('Live', id='live')\n"
        "plan.add('main', make=lambda: other.up('Hello'), produces='out.txt')\n"
    )
    second = time.time_ns() // 10**9 * 10**9
    for tenth, case in ((1, "upper"), (3, "lower")):
        (project / "other.py").write_text(HELPER.replace("upper", case))
        os.utime(project / "other.py", ns=(second, second + tenth * 10**8))
        start(project, *RUN, "--plan", "plan.py")
        (compiled,) = (project / "__pycache__").glob("other.*.pyc")
        os.utime(compiled, ns=(second, second + (tenth + 1) * 10**8))
    assert (project / "out.txt").read_text() == "hello"
