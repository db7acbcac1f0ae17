"""Documentation that can be wrong is executed: generated parts, links, transcripts, snippets, plans, examples."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import pytest

import headway
from headway.core import codec
from headway.files.plan_keys import plan_schema
from headway.files.planfile import parse_plan
from headway.surfaces.cli.main import VERBS
from tools import docs

ROOT = Path(__file__).parents[1]
PAGES = sorted(ROOT.glob("*.md")) + sorted((ROOT / "docs").rglob("*.md"))
FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"(?<!!)\[[^]]+\]\(([^)\s]+)\)")
BOUNDARY = "\x1e"
BIN = Path(sys.executable).parent


class Snippet(NamedTuple):
    """A fenced block of a page."""

    page: Path
    line: int
    text: str

    def __str__(self) -> str:
        return f"{self.page.relative_to(ROOT)}:{self.line}"


def snippets(language: str) -> list[Snippet]:
    """All fenced blocks of one language."""
    found: list[Snippet] = []
    for page in PAGES:
        text = page.read_text(encoding="utf-8")
        blocks = (match for match in FENCE.finditer(text) if match[1] == language)
        found += [Snippet(page, text.count("\n", 0, match.start()) + 2, match[2]) for match in blocks]
    return found


class Step(NamedTuple):
    """One command of a transcript and the output that follows it there."""

    command: str
    expected: list[str]


def steps(transcript: str) -> list[Step]:
    """The commands of a transcript: lines that start with `$ `, and with `> ` where one goes on."""
    found: list[Step] = []
    for line in transcript.splitlines():
        if line.startswith("$ "):
            found.append(Step(line[2:], []))
        elif line.startswith("> ") and found and not found[-1].expected:
            found[-1] = Step(f"{found[-1].command}\n{line[2:]}", [])
        else:
            found[-1].expected.append(line)
    return found


def play(transcript: str, folder: Path, bin: Path = BIN) -> Iterator[tuple[Step, str]]:
    """Each command with what it really printed, all in one shell that starts in the folder."""
    todo = steps(transcript)
    script = "".join(f"{step.command}\n__code=$?; printf '{BOUNDARY}'; (exit $__code)\n" for step in todo)
    (folder / ".transcript").write_text(f"exec 2>&1\n{script}", encoding="utf-8")
    beside = f"{bin}{os.pathsep}{os.environ['PATH']}"
    done = subprocess.run(
        ["bash", ".transcript"],
        cwd=folder,
        env={**os.environ, "PATH": beside, "HOME": str(folder.parent), "NO_COLOR": "1"},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    yield from zip(todo, done.stdout.split(BOUNDARY), strict=False)


def pattern(expected: list[str]) -> re.Pattern[str]:
    """What the output has to match: `…` is anything within a line, and a line of its own any number of lines."""
    while expected and not expected[-1].strip():
        expected = expected[:-1]
    parts = [
        r"(?:.*\n)*?" if line.strip() == "…" else ".*".join(map(re.escape, line.rstrip().split("…"))) + r"[ \t]*\n"
        for line in expected
    ]
    return re.compile("".join(parts))


def shortfalls(transcript: str, folder: Path, bin: Path = BIN) -> list[str]:
    """Commands that printed something else than the transcript says."""
    return [
        f"$ {step.command}\n{output}"
        for step, output in play(transcript, folder, bin)
        if not pattern(step.expected).fullmatch(output)
    ]


def anchors(page: Path) -> set[str]:
    """The names by which the headings of a page can be linked to."""
    text = FENCE.sub("", page.read_text(encoding="utf-8"))
    titles = re.findall(r"^#+ (.+)$", text, re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in titles}


def dead_links(page: Path) -> list[str]:
    """Links of a page to files or headings that do not exist. Other sites are not asked."""
    faults = []
    for target in LINK.findall(FENCE.sub("", page.read_text(encoding="utf-8"))):
        if re.match(r"[a-z]+:", target):
            continue
        name, _, anchor = target.partition("#")
        path = (page.parent / name).resolve() if name else page
        if not path.exists() or (anchor and anchor not in anchors(path)):
            faults.append(target)
    return faults


@pytest.mark.parametrize("name", docs.PAGES)
def test_generated_pages_are_current(name: str) -> None:
    """What the code says and what docs/ says are the same; tools/docs.py makes them so."""
    text = (docs.DOCS / name).read_text(encoding="utf-8")
    assert docs.page(name, text) == text


def test_a_page_that_is_out_of_date_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """--check changes nothing and exits with 1; without it the part is written and the prose around it stays."""
    page = tmp_path / "states.md"
    page.write_text("before\n\n<!-- generated: plans -->\nold\n<!-- end -->\nafter\n", encoding="utf-8")
    monkeypatch.setattr(docs, "DOCS", tmp_path)
    monkeypatch.setattr(docs, "PAGES", ("states.md",))
    assert docs.main(["--check"]) == 1
    assert "docs/states.md is out of date" in capsys.readouterr().out
    assert "old" in page.read_text(encoding="utf-8")
    assert docs.main([]) == 0
    written = page.read_text(encoding="utf-8")
    assert "stateDiagram" in written
    assert (written.startswith("before\n"), written.endswith("after\n")) == (True, True)
    assert docs.main(["--check"]) == 0


def test_every_verb_is_described() -> None:
    """docs/cli.md has a heading for each verb that exists, and for no other."""
    text = (ROOT / "docs" / "cli.md").read_text(encoding="utf-8")
    assert re.findall(r"^## (.+)$", text, re.MULTILINE) == [verb.name for verb in VERBS]


def test_a_new_verb_gets_its_place() -> None:
    """A verb that cli.md does not know is written into it, so that checking it fails first."""
    assert "<!-- generated: verb log -->" in docs.page("cli.md", "# The command line\n")


def keys_of(schema: object) -> Iterator[tuple[str, list[str]]]:
    """Every key that a schema knows, however deep it stands, with the values that it may have if they are few."""
    if isinstance(schema, list):
        for item in schema:
            yield from keys_of(item)
    elif isinstance(schema, dict):
        for name, about in schema.get("properties", {}).items():
            yield name, about.get("enum", [])
        for inner in schema.values():
            yield from keys_of(inner)


def test_every_key_of_a_plan_file_is_described_with_its_values() -> None:
    """Those of what a key holds as well; whoever adds a choice, or a table of keys, finds it here."""
    page = (ROOT / "docs" / "plan-file.md").read_text(encoding="utf-8")
    rows = [line for line in page.splitlines() if line.startswith("| `")]
    found = dict(keys_of(plan_schema()))
    assert {"effects", "quorum", "tokens", "until", "backoff"} <= found.keys()
    missing = [
        f"{key}: {value}" if value else key
        for key, values in found.items()
        for value in (values or [""])
        if not any(row.startswith(f"| `{key}` |") and (not value or f"`{value}`" in row) for row in rows)
    ]
    assert missing == []


def test_every_code_in_the_source_is_described() -> None:
    """Each literal error code has a row in docs/errors.md."""
    text = (ROOT / "docs" / "errors.md").read_text(encoding="utf-8")
    source = "".join(path.read_text(encoding="utf-8") for path in docs.SOURCE.rglob("*.py"))
    codes = set(re.findall(r'\bcode="([a-z_]+\.[a-z_.]+)"', source))  # one word alone is the reason in an event
    assert [code for code in sorted(codes) if f"| `{code}` |" not in text] == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_between_pages_resolve(page: Path) -> None:
    """Every relative link leads to a file, and to a heading if it names one."""
    assert dead_links(page) == []


def test_a_dead_link_is_found(tmp_path: Path) -> None:
    """The link guard sees missing files and missing headings, and leaves code and other sites alone."""
    page = tmp_path / "a.md"
    page.write_text("# One, two\n[x](b.md) [y](#one-two) [z](#three) [w](https://x.y/z)\n```\n[c](d)\n```\n")
    assert dead_links(page) == ["b.md", "#three"]


def sessions() -> list[Snippet]:
    """The console blocks of each page, joined: a page is one session, in one folder."""
    found: dict[Path, list[Snippet]] = {}
    for snippet in snippets("console"):
        found.setdefault(snippet.page, []).append(snippet)
    return [Snippet(page, parts[0].line, "".join(part.text for part in parts)) for page, parts in found.items()]


@pytest.mark.parametrize("session", sessions(), ids=str)
def test_transcripts_are_real(session: Snippet, tmp_path: Path) -> None:
    """Each command in the console blocks of a page prints what the block says."""
    folder = tmp_path / "work"
    folder.mkdir()
    assert shortfalls(session.text, folder) == []


def test_the_readme_has_a_transcript() -> None:
    """The first thing that a reader sees is the product at work."""
    assert [snippet.page.name for snippet in snippets("console")][:1] == ["README.md"]


@pytest.mark.parametrize(
    ("transcript", "wrong"),
    [
        ("$ echo one\none\n", 0),
        ("$ echo one\ntwo\n", 1),
        ("$ echo one; echo two\none\n", 1),
        ("$ echo one two three\none … three\n", 0),
        ("$ seq 5\n1\n…\n5\n\n$ cd / && pwd\n/\n$ pwd\n/\n", 0),
        ("$ (exit 4)\n$ echo $?\n4\n", 0),
        ("$ cat <<E\n> x\n> E\nx\n", 0),
        ("$ echo oops >&2\n", 1),
    ],
)
def test_a_transcript_that_is_not_real_is_found(transcript: str, wrong: int, tmp_path: Path) -> None:
    """The transcript guard compares whole output, knows `…`, and keeps folder and exit code between commands."""
    assert len(shortfalls(transcript, tmp_path)) == wrong


@pytest.mark.parametrize("snippet", snippets("python"), ids=str)
def test_python_snippets_run(snippet: Snippet, tmp_path: Path) -> None:
    """Whatever the documentation shows in Python runs as it stands, as a script in an empty folder."""
    (tmp_path / "snippet.py").write_text(snippet.text, encoding="utf-8")
    words = [sys.executable, "snippet.py"]
    done = subprocess.run(words, cwd=tmp_path, capture_output=True, text=True, check=False, timeout=60)
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize("snippet", snippets("make"), ids=str)
def test_makefiles_in_the_documentation_work(snippet: Snippet, tmp_path: Path) -> None:
    """What is compared with really does what is said of it: make makes it, and then has nothing to do."""
    (tmp_path / "Makefile").write_text(snippet.text, encoding="utf-8")
    (tmp_path / "names.txt").write_text("b\na\n", encoding="utf-8")
    for expected in ("sort names.txt", "is up to date"):
        words = ["make", "build/count.txt"]
        done = subprocess.run(words, cwd=tmp_path, capture_output=True, text=True, check=True)
        assert expected in done.stdout
    assert (tmp_path / "build" / "count.txt").read_text().strip() == "2"


def test_every_block_is_executed_or_a_picture() -> None:
    """A fenced block is of a kind that a test runs; what cannot run says that it is text."""
    kinds = {match[1] for page in PAGES for match in FENCE.finditer(page.read_text(encoding="utf-8"))}
    assert kinds <= {"console", "python", "yaml", "json", "make", "mermaid", "text", ""}


@pytest.mark.parametrize("snippet", snippets("yaml"), ids=str)
def test_plans_in_the_documentation_have_no_problems(snippet: Snippet) -> None:
    """Each plan file that the documentation shows can be saved and run."""
    if "artifacts:" in snippet.text:
        parsed = parse_plan(snippet.text.encode(), name="headway.yaml")
        assert (parsed.problems, parsed.plan is not None) == ([], True)


def example() -> bytes:
    """The worked example of docs/ledger.md."""
    return next(s.text for s in snippets("json") if s.page.name == "ledger.md").encode()


def test_the_worked_example_of_a_ledger_is_right() -> None:
    """The lines in docs/ledger.md are what Headway writes: decoded and encoded again they are the same bytes."""
    prev = codec.START
    for line in example().splitlines():
        record = codec.decode(line)
        again, digest = codec.encode(record.event, seq=record.seq, ts=record.ts, by=record.by, prev=prev)
        assert (again, digest) == (line, record.hash)
        prev = digest


def test_the_documented_verification_finds_a_change() -> None:
    """The function in docs/ledger.md accepts the worked example and no other."""
    scope: dict[str, Any] = {}
    exec(next(s.text for s in snippets("python") if s.page.name == "ledger.md"), scope)
    assert scope["verify"](example()) == len(example().splitlines())
    with pytest.raises(AssertionError, match="event 2 was changed"):
        scope["verify"](example().replace(b'tasks":4', b'tasks":5'))
    with pytest.raises(AssertionError, match="event 1 does not follow"):
        scope["verify"](example().splitlines()[1])


def test_the_picture_of_the_layers_is_whole() -> None:
    """docs/architecture.md places every part of the package, before the list that is made from the modules."""
    text = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8").partition("## The modules")[0]
    assert headway.__file__ is not None
    entries = (path for path in Path(headway.__file__).parent.iterdir() if not path.name.startswith("__"))
    parts = [f"{path.name}{'/' if path.is_dir() else ''}" for path in entries if path.is_dir() or path.suffix == ".py"]
    assert [part for part in sorted(parts) if part not in text] == []


def test_the_documents_of_json_blocks_are_json() -> None:
    """Blocks marked as JSON hold one document a line, or one altogether."""
    for snippet in snippets("json"):
        documents = snippet.text.splitlines() if snippet.text.startswith('{"v"') else [snippet.text]
        assert all(isinstance(json.loads(document), Mapping) for document in documents), str(snippet)
