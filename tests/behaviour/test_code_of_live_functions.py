"""Lambdas, closures, methods of instances and partials: made again when what they use changes, and only then."""

from __future__ import annotations

import json
import subprocess
import sys
from functools import partial
from pathlib import Path

import pytest

from headway.core import fingerprint
from headway.engine import live
from headway.engine.code import Code
from tests.workshop import Workshop

HELPER = "def helper():\n    return 'old'\n"
USES: dict[str, dict[str, str]] = {
    "a lambda with an imported function": {
        "plan.py": "from h import helper\nplan.add('x', make=lambda: helper(), produces='x.txt')\n",
        "h.py": HELPER,
    },
    "a lambda with a module": {
        "plan.py": "import h\nplan.add('x', make=lambda: h.helper(), produces='x.txt')\n",
        "h.py": HELPER,
    },
    "a closure with an imported function": {
        "plan.py": "from h import helper\ndef outer(n):\n    def inner():\n        return helper() * n\n"
        "    return inner\nplan.add('x', make=outer(1), produces='x.txt')\n",
        "h.py": HELPER,
    },
    "a lambda over several lines": {
        "plan.py": "from h import helper\nK = 'k'\n"
        "plan.add('x',\n    make=lambda: K + helper(),\n    produces='x.txt')\n",
        "h.py": HELPER,
    },
    "a constant of a lambda over several lines": {
        "plan.py": "K = 'old'\nplan.add('x',\n    make=lambda: K,\n    produces='x.txt')\n",
    },
    "a lambda with a generator": {
        "plan.py": "from h import helper\nplan.add('x',\n    make=lambda: ''.join(helper() for _ in 'ab'),\n"
        "    produces='x.txt')\n",
        "h.py": HELPER,
    },
    "a partial": {
        "plan.py": "import functools\ndef f(word):\n    return word\n"
        "plan.add('x', make=functools.partial(f, word='old'), produces='x.txt')\n",
    },
    "a default value": {
        "plan.py": "for word in ['old', 'last']:\n"
        "    plan.add(word[0], make=lambda w=word: w, produces=word[0] + '.txt')\n",
    },
    "a closure over an instance": {
        "plan.py": "class C:\n    def __init__(self, word):\n        self.word = word\n        self.more = object()\n"
        "def outer(c):\n    return lambda: c.word\nplan.add('x', make=outer(C('old')), produces='x.txt')\n",
    },
    "a closure over an instance of an imported class": {
        "plan.py": "from h import C\ndef outer(c):\n    return lambda: c.word()\n"
        "plan.add('x', make=outer(C()), produces='x.txt')\n",
        "h.py": "class C:\n    def word(self):\n        return 'old'\n",
    },
    "a method of an instance with state": {
        "plan.py": "class C:\n    def __init__(self, word):\n        self.word = word\n    def make(self):\n"
        "        return self.word\nplan.add('x', make=C('old').make, produces='x.txt')\n",
    },
    "a method of a dataclass": {
        "plan.py": "from dataclasses import dataclass\n@dataclass\nclass C:\n    word: str\n    def make(self):\n"
        "        return self.word\nplan.add('x', make=C('old').make, produces='x.txt')\n",
    },
    "functions in a table": {
        "plan.py": "from h import helper\nT = {'a': helper}\nplan.add('x', make=lambda: T['a'](), produces='x.txt')\n",
        "h.py": HELPER,
    },
}


@pytest.mark.parametrize("case", USES)
def test_an_edit_of_what_a_live_function_uses_makes_it_again(tmp_path: Path, case: str) -> None:
    """Nothing is made while nothing changes, also in another process; and the output is that of the newest code."""
    (tmp_path / "headway.toml").write_text("")
    for name, text in USES[case].items():
        (tmp_path / name).write_text(text)
    script = tmp_path / "plan.py"
    script.write_text(
        "from headway import Plan\nplan = Plan('Live functions', id='live')\n" + script.read_text() + "r = plan.run()\n"
        "print(len(r.made))\n"
    )
    assert run(tmp_path) in ("1", "2")
    assert run(tmp_path) == "0"
    for path in tmp_path.glob("*.py"):
        path.write_text("# a comment\n" + path.read_text().replace("'old'", "'oh, new'"))
    assert run(tmp_path) == "1"
    assert any("oh, new" in path.read_text() for path in tmp_path.glob("*.txt"))


HELPERS = {
    "a function": HELPER,
    "a constant": "WORD = 'old'\ndef helper():\n    return WORD\n",
    "a constant with its type": "WORD: str = 'old'\ndef helper():\n    return WORD\n",
    "a method": "class C:\n    def word(self):\n        return 'old'\ndef helper():\n    return C().word()\n",
    "a static method": "class C:\n    @staticmethod\n    def word():\n        return 'old'\ndef helper():\n"
    "    return C.word()\n",
    "a table": "T = {'a': 'old'}\ndef helper():\n    return T['a']\n",
    "a field": "class C:\n    word = 'old'\ndef helper():\n    return C.word\n",
    "a default": "def helper(word='old'):\n    return word\n",
    "a default of a method": "class C:\n    def word(self, word='old'):\n        return word\ndef helper():\n"
    "    return C().word()\n",
    "a property": "class C:\n    @property\n    def word(self):\n        return 'old'\ndef helper():\n"
    "    return C().word\n",
}


@pytest.mark.parametrize("helper", HELPERS)
@pytest.mark.parametrize("edited", ["plan.py", "h.py"])
def test_a_file_that_is_edited_after_it_was_loaded_is_made_again_by_the_next_process(
    tmp_path: Path, edited: str, helper: str
) -> None:
    """The old function ran, so the new one is still due."""
    (tmp_path / "headway.toml").write_text("")
    (tmp_path / "h.py").write_text(HELPERS[helper])
    (tmp_path / "plan.py").write_text(
        "import pathlib, h\nfrom headway import Plan\nplan = Plan('Live', id='live')\n"
        "@plan.artifact(produces='x.txt')\ndef x():\n    return 'old' + h.helper()\n"
        f"file = pathlib.Path('{edited}')\nfile.write_text(file.read_text().replace(\"'old'\", \"'oh, new'\"))\n"
        "print(len(plan.run().made))\n"
    )
    assert run(tmp_path) == "1"
    assert (tmp_path / "x.txt").read_text() == "oldold"
    assert run(tmp_path) == "1"
    assert "oh, new" in (tmp_path / "x.txt").read_text()
    assert run(tmp_path) == "0"


@pytest.mark.parametrize("helper", HELPERS)
def test_a_module_that_a_closure_uses_counts_as_it_was_loaded(tmp_path: Path, helper: str) -> None:
    """Edited and not loaded again, the old code runs; loaded again, or in the next process, the new one is due."""
    (tmp_path / "headway.toml").write_text("")
    (tmp_path / "h.py").write_text(HELPERS[helper])
    (tmp_path / "plan.py").write_text(
        "import importlib, pathlib, h\nfrom headway import Plan\nplan = Plan('Live', id='live')\n"
        "def made(word):\n    return lambda: h.helper() + word\nplan.add('x', make=made('!'), produces='x.txt')\n"
        "plan.run()\nfile, x = pathlib.Path('h.py'), pathlib.Path('x.txt')\n"
        "file.write_text(file.read_text().replace(\"'old'\", \"'oh, new'\"))\n"
        "said = [plan.run() and x.read_text()]\nimportlib.reload(h)\n"
        "print(*said, plan.run() and x.read_text())\n"
    )
    assert run(tmp_path) == "old! oh, new!"
    assert run(tmp_path) == "oh, new! oh, new!"


def test_a_plan_that_is_run_by_python_and_by_headway_in_turn_is_one_plan(tmp_path: Path) -> None:
    """What instances are, and what they hold, does not depend on who runs the file; an edit is seen by both."""
    (tmp_path / "headway.toml").write_text("")
    (tmp_path / "plan.py").write_text(
        "import dataclasses, functools\nfrom headway import Plan\n"
        "class Bare:\n    word = 'old'\n"
        "class C:\n    def __init__(self):\n        self.bare = Bare()\n    def make(self):\n"
        "        return self.bare.word\n    def __call__(self):\n        return self.make()\n"
        "@dataclasses.dataclass\nclass D:\n    n: int\n"
        "plan = Plan('Live', id='live')\n"
        "plan.add('method', make=C().make)\nplan.add('object', make=C())\n"
        "plan.add('partial', make=functools.partial(C().make))\n"
        "plan.add('value', make=lambda d: str(d), args={'d': D(1)})\n"
        "if __name__ == '__main__':\n    print(len(plan.run().made))\n"
    )
    assert run(tmp_path) == "4"
    for made, edit in ((0, ""), (3, "'new'"), (0, "")):
        text = (tmp_path / "plan.py").read_text()
        (tmp_path / "plan.py").write_text(text.replace("'old'", edit) if edit else text)
        result = json.loads(run(tmp_path, "-m", "headway", "run", "--plan", "plan.py", "--json"))
        assert (len(result["made"]), result["reused"]) == (made, [])
        assert run(tmp_path) == "0"


RAN = """\
import dataclasses, functools
from headway import Plan

class C:
    def __init__(self, word):
        self.word = word
    def make(self):
        return self.word

@dataclasses.dataclass
class D:
    n: int

def over(c, d):
    return lambda: f"{c.word} {d}"

plan = Plan("Ran", id="ran")
plan.add("value", make=lambda d, pair: str(d), args={"d": D(1), "pair": (1, 2)})
plan.add("settled", make=lambda d: str(d), args={"d": D(2)}, version="1")
plan.add("method", make=C("old").make)
plan.add("partial", make=functools.partial(C("old").make))
plan.add("closure", make=over(C("old"), D(3)))
"""


def test_what_a_plan_made_that_had_a_name_of_its_own_while_headway_ran_it_is_kept(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A better way of telling things apart is no reason to make them again; an edit is."""
    shop = Workshop(tmp_path)
    shop.file.unlink()
    plan = tmp_path / "plan.py"
    plan.write_text(RAN)

    def made() -> list[str]:
        found: list[str] = shop.run(capsys, "run", "--plan", str(plan), "--json").json["made"]
        return sorted(found)

    with monkeypatch.context() as earlier:
        earlier.setattr("headway.core.fingerprint.digest", partial(fingerprint.digest, ran_as=fingerprint.RUN_AS))
        earlier.setattr("headway.engine.live.of_function", lambda *given: live.as_once_named(*given)[0])
        assert made() == ["closure", "method", "partial", "settled", "value"]
    assert made() == []
    plan.write_text(RAN.replace('"old"', '"new"').replace("D(2)", "D(9)"))
    assert made() == ["closure", "method", "partial", "settled"]


GROWS = """\
import {} as h
from headway import Plan

plan = Plan("Grows", id="grows")

def summarise(name: str) -> str:
    return name

for name in ("a", "b"):
    plan.add(name, make=summarise, args={{"name": name}}, produces=f"out/{{name}}.txt")
plan.add("by_module", make=lambda: h.helper())
plan.add("by_reference", make="{}:reads")
"""
MORE = HELPER + "name = 'top'\ndef reads():\n    name = 1\n    return str(name)\n"


class Grows:
    """A plan in Python and the module that it uses, by a name that no other test has."""

    def __init__(self, root: Path, capsys: pytest.CaptureFixture[str], module: str) -> None:
        self.shop, self.plan, self.module, self.capsys = Workshop(root), root / "plan.py", root / f"{module}.py", capsys
        self.shop.file.unlink()
        self.plan.write_text(GROWS.format(module, module))
        self.module.write_text(MORE)

    def made(self) -> list[str]:
        found: list[str] = self.shop.run(self.capsys, "run", "--plan", str(self.plan), "--json").json["made"]
        return sorted(found)


def edit(file: Path, old: str, new: str) -> None:
    file.write_text(file.read_text().replace(old, new))


def test_a_plan_that_grows_by_a_loop_makes_only_what_is_new(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Its variable is called like a parameter, and of a module only what is used counts."""
    grows = Grows(tmp_path, capsys, "grown")
    assert grows.made() == ["a", "b", "by_module", "by_reference"]
    edit(grows.plan, '("a", "b")', '("a", "b", "c")')
    edit(grows.module, "'top'", "'new'")
    assert grows.made() == ["c"]
    edit(grows.module, "'old'", "'new'")
    assert grows.made() == ["by_module"]


def test_what_was_made_when_names_alone_counted_is_kept(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A better way of telling code apart is no reason to make it again; an edit of what counted then still is."""
    grows = Grows(tmp_path, capsys, "grown_before")
    with monkeypatch.context() as earlier:
        earlier.setattr("headway.engine.judge.Code", partial(Code, former=True))
        assert grows.made() == ["a", "b", "by_module", "by_reference"]
    edit(grows.plan, "plan = ", "# a comment\nplan = ")
    assert grows.made() == []
    edit(grows.module, "'top'", "'new'")
    assert grows.made() == ["by_module", "by_reference"]


def run(root: Path, *words: str) -> str:
    """The script as a process of its own."""
    words = words or ("plan.py",)
    done = subprocess.run([sys.executable, *words], capture_output=True, text=True, check=False, cwd=root)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()
