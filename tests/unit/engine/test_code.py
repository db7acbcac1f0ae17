"""Which edits change the digest of a function's code: of whatever it uses in the project, however it gets there."""

from __future__ import annotations

import os
from pathlib import Path
from typing import NoReturn

import pytest

from headway.engine.code import Code, is_defined_once

USED: dict[str, tuple[dict[str, str], str]] = {
    "a module below packages": (
        {"p.py": "import a.b.c\ndef f():\n    return a.b.c.f()\n", "a/b/c.py": "def f():\n    return 'old'\n"},
        "a/b/c.py",
    ),
    "the second choice of an import": (
        {
            "p.py": "try:\n    from fast import g\nexcept ImportError:\n    from slow import g\n"
            "def f():\n    return g()\n",
            "slow.py": "def g():\n    return 'old'\n",
        },
        "slow.py",
    ),
    "an import inside, of a name that others import elsewhere": (
        {
            "p.py": "def e():\n    from a import h\n    return h()\ndef f():\n    from b import h\n    return h()\n",
            "a.py": "def h():\n    return 1\n",
            "b.py": "def h():\n    return 'old'\n",
        },
        "b.py",
    ),
    "an item that is set later": ({"p.py": "T = {}\nT['k'] = 'old'\ndef f():\n    return T\n"}, "p.py"),
    "an item that is appended later": ({"p.py": "L = []\nL.append('old')\ndef f():\n    return L\n"}, "p.py"),
    "an attribute that is set in a loop": (
        {"p.py": "class O: pass\nfor n in range(3):\n    O.x = 'old'\ndef f():\n    return O.x\n"},
        "p.py",
    ),
    "the condition of an import": (
        {"p.py": "if 'old':\n    from a import h\ndef f():\n    return h()\n", "a.py": "def h():\n    return 1\n"},
        "p.py",
    ),
    "a module at the root with a namesake beside the file": (
        {"tools/p.py": "import utils\ndef f():\n    return utils.g()\n", "utils.py": "def g():\n    return 'old'\n"}
        | {"tools/utils.py": "def g():\n    return 1\n"},
        "utils.py",
    ),
    "a module beside the file with a namesake at the root": (
        {"tools/p.py": "import utils\ndef f():\n    return utils.g()\n"}
        | {"tools/utils.py": "def g():\n    return 'old'\n"}
        | {"utils.py": "def g():\n    return 1\n"},
        "tools/utils.py",
    ),
    "a package with a module of its name": (
        {"p.py": "import h\ndef f():\n    return h.g()\n", "h/__init__.py": "def g():\n    return 'old'\n"}
        | {"h.py": "def g():\n    return 1\n"},
        "h/__init__.py",
    ),
    "a constant of the package around": (
        {"k/p.py": "from . import C\ndef f():\n    return C\n", "k/__init__.py": "C = 'old'\n"},
        "k/__init__.py",
    ),
    "a module that a package imports by its own name": (
        {
            "p.py": "from k import m\ndef f():\n    return m.g()\n",
            "k/__init__.py": "from k import m\n",
            "k/m.py": "def g():\n    return 'old'\n",
        },
        "k/m.py",
    ),
    "what a decorator enters into a table": (
        {
            "p.py": "T = {}\ndef enter(v):\n    T[v.__name__] = v\n    return v\n"
            "@enter\ndef g():\n    return 'old'\ndef f():\n    return T['g']()\n"
        },
        "p.py",
    ),
    "what is entered by one function through another": (
        {
            "p.py": "T = []\ndef inner(v):\n    T.append(v)\ndef outer(v):\n    inner(v)\n"
            "outer('old')\ndef f():\n    return T\n"
        },
        "p.py",
    ),
    "what an instance of a class of the file collects": (
        {
            "p.py": "class Table(dict):\n    def enter(self, v):\n        self[v.__name__] = v\n        return v\n"
            "T = Table()\n@T.enter\ndef g():\n    return 'old'\ndef f():\n    return T['g']()\n"
        },
        "p.py",
    ),
    "one case of a function with many": (
        {
            "p.py": "from functools import singledispatch\n@singledispatch\ndef g(x):\n    return 1\n"
            "@g.register\ndef _(x: int):\n    return 'old'\ndef f():\n    return g(1)\n"
        },
        "p.py",
    ),
    "what a function sets for its module": (
        {"p.py": "K = 1\ndef begin():\n    global K\n    K = 'old'\nbegin()\ndef f():\n    return K\n"},
        "p.py",
    ),
    "what a call makes of what it is given": (
        {
            "p.py": "import h\nclass C: pass\nh.fill(C)\ndef f():\n    return C.x\n",
            "h.py": "def fill(c):\n    c.x = 'old'\n",
        },
        "h.py",
    ),
    "a table that the program fills when it is started": (
        {"p.py": "T = {}\ndef f():\n    return T\nif __name__ == '__main__':\n    T['k'] = 'old'\n"},
        "p.py",
    ),
    "what is done where the file is not started": (
        {
            "p.py": "import h\nif __name__ == '__main__':\n    print(1)\nelse:\n    h.K = 'old'\n"
            "def f():\n    return h.K\n",
            "h.py": "K = 1\n",
        },
        "p.py",
    ),
    "the same, said the other way round": (
        {
            "p.py": "import h\nif __name__ != '__main__':\n    h.K = 'old'\ndef f():\n    return h.K\n",
            "h.py": "K = 1\n",
        },
        "p.py",
    ),
    "a call on somebody else's module at the top": (
        {"p.py": "import random\nrandom.seed('old')\ndef f():\n    return random.random()\n"},
        "p.py",
    ),
    "a name that is only looked up": ({"p.py": "K = 'old'\ndef f():\n    return globals()['K']\n"}, "p.py"),
    "a name in a text that is evaluated": ({"p.py": "K = 'old'\ndef f():\n    return eval('K')\n"}, "p.py"),
    "a module that is imported by a call": (
        {
            "p.py": "import importlib\ndef f():\n    return importlib.import_module('h').K\n",
            "h.py": "K = 'old'\n",
        },
        "h.py",
    ),
    "a module that is imported by a call under another name": (
        {
            "p.py": "from importlib import import_module as im\ndef f():\n    return im('h').K\n",
            "h.py": "K = 'old'\n",
        },
        "h.py",
    ),
    "a name that a pattern binds": (
        {"p.py": "match ['old', 1]:\n    case [X, *rest]:\n        pass\ndef f():\n    return X\n"},
        "p.py",
    ),
    "a name that is bound as an item": ({"p.py": "globals()['X'] = 'old'\ndef f():\n    return X\n"}, "p.py"),
    "a table that is filled under another name": (
        {"p.py": "D = {}\nE = D\nF = E\nF['x'] = 'old'\ndef f():\n    return D\n"},
        "p.py",
    ),
    "what the file says of itself": ({"p.py": "'''old'''\ndef f():\n    return __doc__\n"}, "p.py"),
    "a module in a folder that the file adds": (
        {
            "p.py": "import sys\nsys.path.insert(0, 'lib')\nimport h\ndef f():\n    return h.K\n",
            "lib/h.py": "K = 'old'\n",
        },
        "lib/h.py",
    ),
    "a module in a folder that the file puts together": (
        {
            "a/b/p.py": "import os, sys\nHERE = os.path.dirname(__file__)\n"
            "LIB = os.path.join(HERE, '..', 'lib', 'py')\nif LIB not in sys.path:\n    sys.path += [LIB]\n"
            "from h import K\ndef f():\n    return K\n",
            "a/lib/py/h.py": "K = 'old'\n",
        },
        "a/lib/py/h.py",
    ),
    "a module in one of several folders that are added": (
        {
            "p.py": "import sys\nfrom pathlib import Path\nfor name in ('one', 'two'):\n"
            "    sys.path.append(str(Path(__file__).parent / name))\nimport h\ndef f():\n    return h.K\n",
            "two/h.py": "K = 'old'\n",
        },
        "two/h.py",
    ),
    "a module in a folder around the file, which the file adds": (
        {
            "a/b/p.py": "import sys\nfrom pathlib import Path\nsys.path.append(str(Path(__file__).parents[1]))\n"
            "import h\ndef f():\n    return h.K\n",
            "a/h.py": "K = 'old'\n",
        },
        "a/h.py",
    ),
    "what such a module uses in another such folder": (
        {
            "p.py": "import sys\nsys.path[:0] = ['lib', 'more']\nimport h\ndef f():\n    return h.g()\n",
            "lib/h.py": "from k import K\ndef g():\n    return K\n",
            "more/k.py": "K = 'old'\n",
        },
        "more/k.py",
    ),
    "a module in a folder that a function adds when it is called": (
        {
            "p.py": "import os, sys\ndef set_up(name='lib'):\n    here = os.path.dirname(__file__)\n"
            "    sys.path.insert(0, os.path.join(here, name))\nset_up()\nimport h\ndef f():\n    return h.K\n",
            "lib/h.py": "K = 'old'\n",
        },
        "lib/h.py",
    ),
    "a module in a folder that a function adds which is defined under a condition": (
        {
            "p.py": "import sys\nif not hasattr(sys, 'frozen'):\n    def set_up():\n        where = 'lib'\n"
            "        sys.path.insert(0, where)\n    set_up()\nimport h\ndef f():\n    return h.K\n",
            "lib/h.py": "K = 'old'\n",
        },
        "lib/h.py",
    ),
    "a module in a folder that the function adds by itself, which the start calls, too": (
        {
            "p.py": "import sys\ndef f():\n    sys.path.insert(0, 'lib')\n    import h\n    return h.K\n"
            "if __name__ == '__main__':\n    f()\n",
            "lib/h.py": "K = 'old'\n",
        },
        "lib/h.py",
    ),
    "a module in a folder around the file, which a function finds": (
        {
            "a/b/p.py": "import sys\nfrom pathlib import Path\nHERE = Path(__file__)\n"
            "def around():\n    return HERE.parents[1]\nsys.path.append(str(around() / 'lib'))\n"
            "import h\ndef f():\n    return h.K\n",
            "a/lib/h.py": "K = 'old'\n",
        },
        "a/lib/h.py",
    ),
    "a module in a folder of a list that is added to": (
        {
            "p.py": "import sys\nMORE = []\nMORE.append('lib')\nsys.path.extend(MORE)\nimport h\n"
            "def f():\n    return h.K\n",
            "lib/h.py": "K = 'old'\n",
        },
        "lib/h.py",
    ),
    **{
        f"a module in a folder that is added {how}": (
            {
                "p.py": f"import os, sys\nHERE = os.path.dirname(__file__)\n{adds}\n"
                "import h\ndef f():\n    return h.K\n",
                "lib/h.py": "K = 'old'\n",
            },
            "lib/h.py",
        )
        for how, adds in {
            "behind another": "sys.path.insert(0, HERE + '/lib')",
            "in a text": "sys.path.insert(0, f'{HERE}/lib')",
            "by percent": "sys.path.insert(0, '%s/lib' % HERE)",
            "by format": "sys.path.insert(0, '{}/lib'.format(HERE))",
            "behind the current one": "sys.path.append(os.getcwd() + '/lib')",
            "to path": "from sys import path\npath.insert(0, 'lib')",
            "to path under another name": "from sys import path as places\nplaces += ['lib']",
            "to sys under another name": "import sys as s\ns.path.insert(0, 'lib')",
        }.items()
    },
}


@pytest.mark.parametrize("case", USED)
def test_an_edit_of_what_a_function_uses_is_seen(tmp_path: Path, case: str) -> None:
    """Whichever file or statement it comes from."""
    files, edited = USED[case]
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    reference = next(f"{name}:f" for name in files if name.endswith("p.py"))
    before = Code(str(tmp_path)).of_reference(reference)
    target = tmp_path / edited
    target.write_text("# said otherwise\n\n" + target.read_text())
    assert Code(str(tmp_path)).of_reference(reference) == before
    target.write_text(target.read_text().replace("'old'", "'new'"))
    assert Code(str(tmp_path)).of_reference(reference) != before


def counts(root: Path, text: str, old: str, new: str) -> bool:
    """Whether an edit changes the digest of `f`, which is in this text."""
    digests = set()
    for edited in (text, text.replace(old, new)):
        (root / "p.py").write_text(edited)
        digests.add(Code(str(root)).of_reference("p.py:f"))
    return len(digests) > 1


LOCALS = {
    "a parameter": "def f(name):\n    return name\n",
    "a keyword": "def f(*, name=1, **more):\n    return name, more\n",
    "a variable": "def f():\n    name = 1\n    return name\n",
    "the variable of a loop": "def f():\n    for name in range(3):\n        print(name.x)\n",
    "what with binds": "def f():\n    with open('x') as name:\n        return name.read()\n",
    "an error": "def f():\n    try:\n        pass\n    except ValueError as name:\n        print(name)\n",
    "a walrus": "def f():\n    if (name := 1):\n        return name\n",
    "a comprehension": "def f():\n    return [name for name in range(3)], {name: 1 for name in 'ab'}\n",
    "a generator": "def f():\n    return sum(name for name in range(3))\n",
    "a lambda": "def f():\n    return lambda name: name + 1\n",
    "a function inside": "def f():\n    def g(name):\n        return name\n    return g(1)\n",
    "a variable of the function around": "def f(name):\n    def g():\n        return name\n    return g()\n",
    "a case": "def f(x):\n    match x:\n        case [name, *_]:\n            return name\n",
    "a field of a class": "class f:\n    name: str = ''\n    def g(self, name):\n        return self.name, name\n",
    "an attribute": "def f(x):\n    return x.name\n",
    "a keyword of a call": "def f(x):\n    return x(name=1)\n",
}


@pytest.mark.parametrize("case", LOCALS)
def test_what_is_only_called_like_something_of_the_module_does_not_count(tmp_path: Path, case: str) -> None:
    """A loop at the top of a program and a parameter may have one name."""
    text = LOCALS[case] + "for name in ('a', 'b'):\n    print(name)\n"
    assert not counts(tmp_path, text, "('a', 'b')", "('a', 'b', 'c')")


GLOBALS = {
    "a name": "def f():\n    return name\n",
    "a default": "def f(x=name):\n    return x\n",
    "an annotation": "from __future__ import annotations\ndef f(x: name):\n    return x\n",
    "a decorator": "@name\ndef f():\n    return 1\n",
    "a name of a function inside": "def f():\n    def g():\n        return name\n    return g()\n",
    "what a comprehension goes through": "def f():\n    return [name for name in name]\n",
    "a variable elsewhere": "def f():\n    def g(name):\n        return name\n    return g(name)\n",
    "declared": "def f():\n    global name\n    name += 'x'\n    return name\n",
    "a field": "class f:\n    x = name\n",
    "a method": "class f:\n    def g(self):\n        return name.lower()\n",
    "a field of the same name": "class f:\n    name = name\n",
    "a base": "class f(name):\n    pass\n",
    "a constant": "f = name + 'x'\n",
    "a constant made in a loop": "f = []\nfor x in name:\n    f.append(x)\n",
}


@pytest.mark.parametrize("case", GLOBALS)
def test_what_is_read_from_the_module_counts_wherever_it_is_read(tmp_path: Path, case: str) -> None:
    """Also in inner functions, classes, defaults and annotations."""
    first, then = "name = 'old'\n", GLOBALS[case]
    text = f"{then}{first}" if then.startswith("from") else f"{first}{then}"
    assert counts(tmp_path, text, "'old'", "'new'")


@pytest.mark.parametrize("is_absolute", [True, False])
def test_a_module_that_python_finds_by_its_environment_counts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, is_absolute: bool
) -> None:
    """A folder of PYTHONPATH is one of those in which modules are looked for; one that only this program added is not,
    for another that runs the same plan would find something else."""
    (tmp_path / "lib").mkdir()
    (tmp_path / "lib/h.py").write_text("K = 'old'\n")
    (tmp_path / "p.py").write_text("import h\ndef f():\n    return h.K\n")
    alone = Code(str(tmp_path)).of_reference("p:f")
    monkeypatch.syspath_prepend(str(tmp_path / "lib"))
    assert Code(str(tmp_path)).of_reference("p:f") == alone
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(["/elsewhere", str(tmp_path / "lib") if is_absolute else "lib"]))
    before = Code(str(tmp_path)).of_reference("p:f")
    assert before != alone
    (tmp_path / "lib/h.py").write_text("K = 'new'\n")
    assert Code(str(tmp_path)).of_reference("p:f") not in (before, alone)


def test_a_module_of_what_is_installed_where_it_is_worked_at_counts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A `.pth` file beside the installed packages names its folder."""
    for folder in ("project/parts/h", ".venv/site-packages"):
        (tmp_path / folder).mkdir(parents=True)
    root, place = tmp_path / "project", tmp_path / ".venv/site-packages"
    (root / "parts/h/__init__.py").write_text("K = 'old'\n")
    (root / "p.py").write_text("import h\ndef f():\n    return h.K\n")
    alone = Code(str(root)).of_reference("p:f")
    (place / "h.pth").write_text(f"import this_is_no_folder\n{root / 'parts'}\n")
    monkeypatch.setattr("sys.path", [str(place), str(root / "parts")])
    before = Code(str(root)).of_reference("p:f")
    (root / "parts/h/__init__.py").write_text("K = 'new'\n")
    assert len({alone, before, Code(str(root)).of_reference("p:f")}) == 3


@pytest.mark.parametrize("adds", ["print(sys.path)", "sys.path.append('../elsewhere')", "sys.path.append('.venv/lib')"])
def test_folders_outside_of_the_project_or_hidden_in_it_hold_none_of_its_modules(tmp_path: Path, adds: str) -> None:
    """As before, what is installed does not count; nor does looking at where modules are looked for."""
    for folder in ("elsewhere", "project/.venv/lib", "project/lib"):
        (tmp_path / folder).mkdir(parents=True)
        (tmp_path / folder / "h.py").write_text("K = 'old'\n")
    (tmp_path / "project/p.py").write_text(f"import sys\n{adds}\nimport h\ndef f():\n    return h.K\n")
    code = Code(str(tmp_path / "project"))
    code.of_reference("p:f")
    assert [os.path.basename(path) for path in code.files] == ["p.py"]


NOT_ADDED = {
    "a table that only the start looks at": "KINDS = {'unit': 'tests'}\ndef usage():\n    return f'one of {KINDS}'\n"
    "if __name__ == '__main__':\n    sys.path.append(os.getcwd())\n    print(usage())\n",
    "what the start adds": "if __name__ == '__main__':\n    sys.path.append('tests')\n",
    "what a function adds that the start calls": "def set_up():\n    sys.path.append('tests')\n"
    "def main():\n    set_up()\nif __name__ == '__main__':\n    main()\n",
    "what else a function says that adds one": "def main():\n    sys.path.append('lib')\n    print('tests')\n",
    "what a function says that the path is put together by": "def name_of(x):\n    print('tests')\n    return x\n"
    "sys.path.append(name_of('lib'))\n",
    "what is written beside it": "if 'tests' not in sys.argv:\n    sys.path.append('lib')\n",
}


@pytest.mark.parametrize("case", NOT_ADDED)
def test_a_folder_is_looked_in_only_if_it_is_written_where_one_is_added(tmp_path: Path, case: str) -> None:
    """In that very place, or in an assignment that it names; and what only the start of a program does is not done
    where its file is imported."""
    for folder in ("lib", "tests"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "h.py").write_text("K = 'old'\n")
    text = "import os, sys\nsys.path.insert(0, os.path.join(os.path.dirname(__file__), 'lib'))\nimport h\n"
    (tmp_path / "p.py").write_text(f"{text}def f():\n    return h.K\n{NOT_ADDED[case]}")
    code = Code(str(tmp_path))
    code.of_reference("p:f")
    assert [os.path.relpath(path, tmp_path) for path in code.files] == ["p.py", "lib/h.py"]


def test_folders_that_are_not_there_are_noted_by_themselves(tmp_path: Path) -> None:
    """Not once for every module that might be in them."""
    adds = "import sys\nsys.path += ['lib', 'more/deep']\n"
    (tmp_path / "p.py").write_text(f"{adds}import g, h, k\ndef f():\n    return g.A, h.B, k.C\n")
    code = Code(str(tmp_path))
    code.of_reference("p:f")
    assert {path for path in code.absent if path.startswith(("lib", "more"))} == {"lib/", "more/deep/"}


def test_a_table_of_words_is_not_a_table_of_folders(tmp_path: Path) -> None:
    """However many words are named where a folder is added, few are looked for."""
    table = {f"key{number}": f"value {number}" for number in range(3000)}
    adds = f"import sys\nTABLE = {table}\nsys.path.append(TABLE['key1'])\n"
    (tmp_path / "p.py").write_text(f"{adds}import h\ndef f():\n    return h.K\n")
    code = Code(str(tmp_path))
    code.of_reference("p:f")
    assert len(code.absent) < 150


def test_what_one_function_adds_is_not_added_for_the_next_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also if something went wrong meanwhile."""
    (tmp_path / "lib").mkdir()
    (tmp_path / "lib/h.py").write_text("K = 'old'\n")
    (tmp_path / "p.py").write_text("import sys\nsys.path.append('lib')\nimport h\ndef f():\n    return h.K\n")
    (tmp_path / "q.py").write_text("import h\ndef f():\n    return h.K\n")
    alone = Code(str(tmp_path)).of_reference("q:f")
    code = Code(str(tmp_path))

    def interrupted(*_: object) -> NoReturn:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(code, "_led_on", interrupted)
        with pytest.raises(KeyboardInterrupt):
            code.of_reference("p:f")
    assert code.of_reference("q:f") == alone
    assert code.of_reference("p:f") != alone
    assert code.of_reference("q:f") == alone


def test_calls_on_a_plan_do_not_count_for_functions_that_do_not_use_it(tmp_path: Path) -> None:
    """A plan that grows leaves the code of its functions as it was."""
    script = tmp_path / "p.py"
    script.write_text("plan = Plan('x')\ndef f():\n    return 1\nplan.add('a', make=f)\nplan.run()\n")
    before = Code(str(tmp_path)).of_reference("p.py:f")
    script.write_text(script.read_text().replace("plan.run()", "plan.add('b', make=f)\nplan.run(jobs=2)"))
    assert Code(str(tmp_path)).of_reference("p.py:f") == before


UNUSED = {
    "a table that others fill": "T = {}\ndef enter(v):\n    T[v] = 1\n@enter\ndef g():\n    return 'old'\n",
    "a call on somebody else's module when the program is started": (
        "import asyncio\nK = asyncio.sleep\nasync def g():\n    print('old')\n"
        "if __name__ == '__main__':\n    asyncio.run(g())\n"
    ),
    "a local table of the same name": "T = {}\ndef g(v):\n    T = {}\n    T[v] = 1\ng('old')\nK = T\n",
    "a command beside it": "import cli\napp = cli.App()\n@app.command()\ndef g():\n    return 'old'\nK = app\n",
    "a call that is given a function": "def g():\n    return 1\nimport atexit\natexit.register(g, 'old')\nK = g\n",
}


@pytest.mark.parametrize("case", UNUSED)
def test_an_edit_of_what_a_function_does_not_use_is_nothing_to_it(tmp_path: Path, case: str) -> None:
    """What is done at the top of a module counts for whoever uses what it changes, and for nobody else."""
    uses = "    return K\n" if "K = " in UNUSED[case] else "    return 1\n"
    (tmp_path / "p.py").write_text(f"{UNUSED[case]}def f():\n{uses}")
    before = Code(str(tmp_path)).of_reference("p.py:f")
    (tmp_path / "p.py").write_text((tmp_path / "p.py").read_text().replace("'old'", "'new'"))
    assert Code(str(tmp_path)).of_reference("p.py:f") == before


@pytest.mark.parametrize(
    ("text", "once"),
    [
        ("def f(): pass\n", True),
        ("async def f(): pass\n", True),
        ("class C:\n    def f(self): pass\ndef f(): pass\n", True),
        ("def g():\n    def f(): pass\ndef f(): pass\n", True),
        ("def f(): pass\ndef f(): pass\n", False),
        ("def f(): pass\nif X:\n    def f(): pass\n", False),
        ("try:\n    def f(): pass\nexcept E:\n    pass\n", False),
        ("class C:\n    pass\nif X:\n    def f(): pass\ndef f(): pass\n", False),
        ("g = 1\n", False),
    ],
)
def test_a_second_definition_or_one_under_a_condition_leaves_doubt(tmp_path: Path, text: str, once: bool) -> None:
    """Methods and inner functions are others."""
    (tmp_path / "p.py").write_text(text)
    assert is_defined_once(str(tmp_path / "p.py"), "f") is once


def test_an_edited_file_is_looked_through_again(tmp_path: Path) -> None:
    """The memory of a file ends when it changes."""
    path = tmp_path / "p.py"
    path.write_text("def f(): pass\n")
    assert is_defined_once(os.fspath(path), "f")
    path.write_text("def f(): pass\ndef f(): pass\n")
    assert not is_defined_once(os.fspath(path), "f")
