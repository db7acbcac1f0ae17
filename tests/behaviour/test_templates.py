"""Templates of prompts: which other templates belong to one, and what is no text."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.workshop import Done, Workshop

PLAN = """\
id: p
goal: g
artifacts:
  letter: {templates: prompts/letter.md, run: "cp {prompt} {output}", produces: letter.txt}
  note: {templates: prompts/note.md, run: "cp {prompt} {output}", produces: note.txt}
"""


class Letters(Workshop):
    """Two artifacts that are their prompts."""

    def __init__(self, root: Path, capsys: pytest.CaptureFixture[str]) -> None:
        super().__init__(root)
        self._capsys = capsys
        self.file.write_text(PLAN)
        (root / "prompts").mkdir()
        self.prompt("note", "A note.")

    def prompt(self, name: str, text: str) -> None:
        (self.root / f"prompts/{name}.md").write_text(text)

    def go(self, *words: str) -> Done:
        """`headway run`."""
        return self.run(self._capsys, "run", *words)

    def read(self, path: str) -> str:
        return (self.root / path).read_text()


@pytest.fixture
def letters(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Letters:
    return Letters(tmp_path / "p", capsys)


@pytest.mark.parametrize(
    "text",
    [
        "{# {% include 'prompts/none.md' %} #}Dear",
        "{#- not now:\n{% include 'prompts/none.md' %}\n-#}Dear",
        "{% raw %}{% include 'prompts/none.md' %}{% endraw %}Dear",
        "{{ \"{% include 'prompts/none.md' %}\" }}Dear",
    ],
)
def test_a_template_that_is_only_spoken_of_need_not_be_there(letters: Letters, text: str) -> None:
    letters.prompt("letter", text)
    assert letters.go().code == 0
    assert letters.read("letter.txt").endswith("Dear\n")


@pytest.mark.parametrize("names", ["'prompts/more.md' ignore missing", "['prompts/more.md', 'prompts/note.md']"])
def test_a_template_that_may_be_missing_belongs_to_the_prompt_as_soon_as_it_is_there(
    letters: Letters, names: str
) -> None:
    """And when it goes again, what was made without it is taken from its blobs."""
    letters.prompt("letter", f"Dear {{% include {names} %}}")
    assert letters.go().code == 0
    without = letters.read("letter.txt")
    letters.prompt("more", "all.")
    assert letters.go("--json").json["made"] == ["letter"]
    assert letters.read("letter.txt") == "Dear all.\n"
    (letters.root / "prompts/more.md").unlink()
    assert letters.go("--json").json["reused"] == ["letter"]
    assert letters.read("letter.txt") == without


@pytest.mark.parametrize("tag", ["{% include name %}", "{% include 'prompts/' ~ id ~ '.end.md' %}"])
def test_a_template_that_cannot_be_followed_is_refused_whoever_else_names_it(letters: Letters, tag: str) -> None:
    """Else nobody would notice that it changed, and whether it is found would depend on who was looked at before."""
    letters.prompt("letter", f"{{% set name = 'prompts/letter.end.md' %}}{tag}")
    letters.prompt("letter.end", "Yours")
    letters.prompt("note", "{% include 'prompts/letter.end.md' %}")
    done = letters.go()
    assert done.code == 1
    assert "prompts/letter.md: it names prompts/letter.end.md in a roundabout way" in done.out
    assert letters.read("note.txt") == "Yours\n"


def test_what_has_parts_is_no_text(letters: Letters) -> None:
    """It would be shown as an address in memory, another one in every run."""
    letters.edit("artifacts:", "vars: {tone: plain}\nartifacts:")
    letters.prompt("letter", "Write like {{ vars }}")
    done = letters.go()
    assert done.code == 1
    assert "prompts/letter.md: what has parts is no text: name one of tone" in done.out


def test_a_template_that_names_nothing_is_told_as_it_stands(letters: Letters) -> None:
    """Braces that are no tags belong to it, and lines end as in every other prompt."""
    (letters.root / "prompts/letter.md").write_bytes(b"Say {this} {\r\n\r\nas % JSON: }}\r\n\n")
    letters.prompt("note", "A note of {{ id }}: {this}.")
    assert letters.go().code == 0
    assert (letters.root / "letter.txt").read_bytes() == b"Say {this} {\n\nas % JSON: }}\n"
    assert letters.read("note.txt") == "A note of note: {this}.\n"


def test_what_a_template_sets_is_its_own(letters: Letters) -> None:
    """The parts of a prompt are made one by one: no name of one is there for the next, and none hides what is given."""
    letters.prompt("letter", "{% set id = 'mine' %}{% set other = 1 %}{{ id }} {{ range(2)|list }}")
    letters.file.write_text(PLAN.replace("prompts/note.md", "{system: prompts/letter.md, phase: prompts/note.md}"))
    letters.prompt("note", "{{ id }} {{ other is defined }}")
    assert letters.go().code == 0
    assert letters.read("note.txt") == "mine [0, 1]\n\nnote False\n"


@pytest.mark.parametrize(
    "text",
    [
        "{{ vars.who }}",
        "{{ vars['who'] }}",
        '{% if vars . who %}x{{ vars["who"] }}{% endif %}',
        "{% include 'prompts/who.md' %}",
    ],
)
def test_a_variable_that_a_template_reads_is_part_of_how_its_artifact_is_made(letters: Letters, text: str) -> None:
    """Another value makes it again, and going back costs nothing; one that no template reads concerns nobody."""
    letters.file.write_text(PLAN.replace("goal: g", "goal: g\nvars: {who: ann, other: x}"))
    letters.prompt("who", "{{ vars.who }}")
    letters.prompt("letter", f"Dear {text}")
    assert letters.go().code == 0
    assert letters.go("--set", "other=y", "--json").json["made"] == []
    again = letters.go("--set", "who=bob", "--json").json
    assert again["made"] == ["letter"]
    assert "vars.who: ann → bob" in again["reasons"]["letter"]["text"]
    assert letters.read("letter.txt").endswith("bob\n")
    assert letters.go("--set", "who=ann", "--json").json["reused"] == ["letter"]


def test_a_template_that_may_read_any_variable_reads_all(letters: Letters) -> None:
    """Then whichever changes counts; and a template that reads others than before is a changed template."""
    letters.file.write_text(PLAN.replace("goal: g", "goal: g\nvars: {who: ann, other: x}"))
    letters.prompt("letter", "{% for name in vars %}{{ name }} {{ vars[name] }} {% endfor %}")
    assert letters.go().code == 0
    assert letters.go("--set", "other=y", "--json").json["made"] == ["letter"]
    letters.prompt("letter", "Dear {{ vars.who }}")
    assert letters.go("--json").json["reasons"]["letter"]["code"] == "prompt_changed"
    assert letters.go("--set", "other=z", "--json").json["made"] == []


PARTS = """\
id: p
goal: g
pipelines:
  doc:
    units: {files: 'docs/*.txt'}
    phases:
      read: {run: "cp {file} {outputs.title}; echo body > {outputs.body}", outputs: {title: 'out/t', body: 'out/b'}}
      tell: {templates: prompts/tell.md, run: "cp {prompt} {output}", outputs: {told: 'out/told'}}
"""


@pytest.mark.parametrize(
    ("template", "told"),
    [
        ("{{ text|length }} {{ text[:3] }} {{ 'b' in text }} {{ text is string }}", "8 a b True True"),
        ("{{ text.splitlines()|join('+') }} {{ text.upper().strip() ~ '!' }}", "a b+c d A B\nC D!"),
        (
            "{{ (text + 'e').split()|last }} {{ text|truncate(3, True, '', 0) }} {{ text|indent|trim }}",
            "e a b a b\n    c d",
        ),
        ("{{ inputs.read|length }} {{ inputs.read.startswith('a') }} {{ inputs.read[-3:-1] }}", "8 True  d"),
        ("{{ inputs.read.title|trim }} {{ inputs.read.body|upper|trim }}", "a b\nc d BODY"),
        ("{{ 'none' if not text else 'some' }} {{ text == 'a b\\nc d\\n' }}", "some True"),
        ("{{ '=' * 3 }} {{ 2 * text[:1] }} {{ 2 ** 3 * 1.5 }} {{ 2 ** -1 }}", "=== aa 12.0 0.5"),
    ],
)
def test_texts_of_files_and_inputs_are_texts(letters: Letters, template: str, told: str) -> None:
    """Whatever Jinja2 can do with one; an output that is called like something that texts can do is that output."""
    (letters.root / "docs").mkdir()
    (letters.root / "docs/one.txt").write_text("a b\nc d\n")
    letters.file.write_text(PARTS)
    letters.prompt("tell", template)
    assert letters.go().code == 0
    assert letters.read("out/told") == f"{told}\n"


def test_a_text_is_no_pattern_that_looks_into_what_it_is_given(letters: Letters) -> None:
    """Not even one that somebody else wrote."""
    (letters.root / "docs").mkdir()
    (letters.root / "docs/one.txt").write_text("{0.__class__.__mro__}")
    letters.file.write_text(PARTS)
    for call in ("text.format(unit)", "text.format_map(vars)", "inputs.read.format(unit)"):
        letters.prompt("tell", f"{{{{ {call} }}}}")
        refused = letters.go()
        assert refused.code == 1
        assert "a text is no pattern" in refused.out
