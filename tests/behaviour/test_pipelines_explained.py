"""Units and phases by name: what `why` says of them, and what `accept` takes."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.behaviour.scenes import Book
from tests.workshop import Workshop


def test_why_of_a_unit_tells_of_every_phase_and_explains_the_first_that_is_stale(book: Book) -> None:
    """What only stands for others has no line of its own."""
    book.go()
    told = book.do("why", "s1").out.splitlines()
    assert [line.split(maxsplit=2)[::2] for line in told] == [["✓", "up to date"]] * 8
    (book.root / "work/s1/card.json").unlink()
    book.prompt("write", "write anew {{ unit }}")
    told = book.do("why", "s1", "--json").json
    assert (told["artifact"], told["reason"]["code"]) == ("s1/plan", "output_missing")
    assert told["named"]["s1/write"]["code"] == "prompt_changed"
    assert "s1/lint" not in told["named"]


def test_why_leads_across_the_state_to_where_it_began(book: Book) -> None:
    """And what it takes counts the units before it."""
    book.go()
    book.prompt("write", "write anew {{ unit }}")
    book.prompt("continuity_pack", "pack anew {{ unit }}")
    told = book.do("why", "s2/apply", "--json").json
    assert {root["artifact"] for root in told["root_causes"]} >= {"s1/write", "s2/write"}
    assert "s1/apply" in told["cascade"]
    assert told["cost"]["artifacts"] == len(book.do("run", "-n", "book", "--json").json["stale"])


def test_a_unit_or_a_phase_of_its_loop_is_accepted_by_name(book: Book) -> None:
    """What stands for a loop means its last round; what is as it was made is not accepted once more."""
    book.go()
    assert "Nothing to accept" in book.do("accept", "s2").out
    report = book.root / "work/s1/report.json"
    report.write_text(report.read_text().replace('"pass"', '"pass", "by": "me"'))
    assert book.do("accept", "s1/lint", "--json").json["accepted"] == ["s1/lint~1"]
    accepted = book.do("accept", "s2", "--reason", "it is fine", "--json").json["accepted"]
    assert "s2/preflight" in accepted, "it need not have left a snapshot"
    report.write_text(report.read_text().replace("me", "us"))
    assert "s1/lint~1" in book.do("accept", "s1", "--json").json["accepted"]
    assert book.go("s1")["decisions"] == []


def test_what_leads_to_a_prompt_of_another_unit_is_not_sent_to_a_run_that_leaves_it_alone(book: Book) -> None:
    """Whoever follows the command has it made."""
    book.go()
    book.prompt("write", "write anew {{ unit }}")
    assert "Next: headway run s1/write" in book.do("why", "s1/write").out
    book.go("s2")
    assert "Next: headway run --project" in book.do("why", "s2/apply").out
    assert "s2/apply" in book.go()["made"]


def test_why_names_all_templates_that_changed(book: Book) -> None:
    """Not only the first of them."""
    book.go()
    book.prompt("write", "write anew {{ unit }}")
    book.prompt("system", "You write well.")
    told = book.do("why", "s1/write").out
    assert "prompts/write.md" in told
    assert "prompts/system.md" in told


def test_a_unit_behind_one_that_failed_is_blocked_whoever_asks(book: Book) -> None:
    """By way of the state, in `status` and in `why`; and `why` counts what is behind across units."""
    book.stop_at("s1/write")
    assert "s2/apply" in book.go()["blocked"]
    status = book.do("status", "--json").json
    assert status["artifacts"]["s2/preflight"]["status"] == "blocked"
    assert status["pipelines"]["scene"]["units"]["s2"]["preflight"]["status"] == "blocked"
    told = book.do("why", "s2/preflight", "--json").json
    assert (told["status"], list(told["blocked_by"])) == ("blocked", ["s1/write"])
    assert "s2/apply" in book.do("why", "s1/write", "--json").json["dependents"]


def test_a_preview_leads_to_what_was_previewed(book: Book) -> None:
    """With its targets and its flags; and what is to be decided first is asked of these alone."""
    book.stop_at("s2/apply")
    book.go()
    book.stop_at("")
    book.prompt("write", "write anew {{ unit }}")
    asked = book.do("run", "-n", "s1").out
    assert f"Decide: headway run s1 --resume-allow-prompt-change REASON --project {book.root}" in asked
    part = book.do("run", "-n", "--until", "s1/write", "--limit", "1").out
    assert "Decide: headway run --until s1/write --limit 1 --resume-allow-prompt-change REASON" in part
    given = ("s1", "--prompt-change", "a try", "--rerun-from", "write")
    leads = book.do("run", "-n", *given).out.splitlines()[-1]
    assert leads == f"Next: headway run s1 --rerun-from write --prompt-change 'a try' --project {book.root}"


def test_changes_of_a_preview_are_those_of_its_targets(book: Book) -> None:
    """What is not asked for is neither new nor modified."""
    book.stop_at("s2/write")
    book.go()
    book.stop_at("")
    (book.root / "work/s1/prose.md").unlink()
    told = book.do("run", "-n", "s1").out
    assert "New        0" in told
    assert "Not made" not in told


def test_a_template_in_the_place_of_another_is_one_change(book: Book) -> None:
    """Neither is the old one missing, nor has the new one made anything."""
    book.stop_at("s1/apply")
    book.go()
    book.stop_at("")
    (book.root / "prompts/other.md").write_text("another way to write {{ unit }}\n")
    book.edit("phase: prompts/write.md", "phase: prompts/other.md")
    asked = book.do("run")
    assert (asked.code, "1 held" in asked.out) == (3, True)
    assert "phase: prompts/other.md takes the place of prompts/write.md (" in asked.out
    assert "prompts/write.md made phase write of 1 unit (s1)" in asked.out
    assert "missing" not in asked.out
    assert book.go("--prompt-change", "better")["status"] == "completed"


def test_files_that_are_not_there_are_told_where_they_are_units(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Every time: nothing would come of a pipeline whose pattern was mistyped."""
    shop = Workshop(tmp_path)
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs/d1.md").write_text("one")
    plan = "id: fl\ngoal: g\npipelines:\n  doc:\n    units: {files: 'docs/*.md'}\n    phases:\n"
    plan += "      label: {run: 'wc -c < {file} > {output}', outputs: {o: 'lab/{unit}.txt'}}\n"
    shop.file.write_text(plan)
    assert shop.run(capsys, "run").err == ""
    shop.file.write_text(plan.replace("docs/", "dosc/"))
    for _ in range(3):
        assert "No file matches dosc/*.md, so pipeline doc has no units." in shop.run(capsys, "run").err
        assert "No file matches dosc/*.md, so pipeline doc has no units." in shop.run(capsys, "run", "-n").err
        assert "doc: 0 units × 1 phase: no file matches dosc/*.md" in shop.run(capsys, "status").out
    shop.file.write_text(plan)
    back = shop.run(capsys, "run")
    assert (back.err, "made before; event" in back.out) == ("", True)


def test_a_part_of_a_template_in_the_place_of_another_is_told_for_what_it_is(book: Book) -> None:
    """One is not used any more, the other was added; each artifact is held once, and a permitted change is not asked
    about again."""
    for name in ("tone", "other"):
        (book.root / f"prompts/{name}.md").write_text(name)
    book.prompt("write", "write {{ unit }} {% include 'prompts/tone.md' %}")
    book.stop_at("s2/apply")
    book.go()
    book.prompt("write", "write {{ unit }} {% include 'prompts/other.md' %}")
    asked = book.do("run")
    assert (asked.code, "2 held" in asked.out) == (3, True)
    assert "prompts/tone.md is not used any more" in asked.out
    assert "prompts/other.md was added (nothing → " in asked.out
    assert "missing" not in asked.out
    book.stop_at("s1/write")
    book.go("--prompt-change", "another tone")
    book.stop_at("")
    assert book.go()["status"] == "completed"


PROMPTED = """\
id: own
goal: Units may have a prompt of their own
pipelines:
  p:
    units: [a, b, c]
    overrides: OVERRIDES
    phases:
      draft:
        run: "cat {prompt} > {outputs.o}; test {unit} != c"
        templates: {phase: all.md}
        outputs: {o: '{unit}.txt'}
"""


@pytest.mark.parametrize(
    ("overrides", "changed", "decides"),
    [("{b: {draft: {phase: other.md}}}", "other.md", "b/draft"), ("{}", "all.md", "draft")],
    ids=["of one unit", "of all"],
)
def test_what_decides_about_a_prompt_is_the_same_whoever_is_asked(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], overrides: str, changed: str, decides: str
) -> None:
    """`why` looks at one artifact, but the command that it names is about all."""
    shop = Workshop(tmp_path)
    shop.file.write_text(PROMPTED.replace("OVERRIDES", overrides))
    for name in ("all.md", "other.md"):
        (tmp_path / name).write_text("v1\n")
    assert shop.run(capsys, "run").code == 1
    (tmp_path / changed).write_text("v2\n")
    [asked] = shop.run(capsys, "run", "--json").json["decisions"]
    assert f"--rerun-from {decides}" in asked["flags"]
    told = shop.run(capsys, "why", "b/draft", "--json").json["decide"]
    assert (told["flags"], told["artifacts"]) == (asked["flags"], ["b/draft"])


def test_a_phase_of_a_loop_is_at_work_while_one_of_its_rounds_is(book: Book) -> None:
    """Among units and phases one sees the loop, and not its rounds."""
    book.stop_at("s1/repair~1")
    book.go()
    assert book.do("claim", "s1/repair~1", "--by", "me").code == 0
    found = book.do("status", "--json").json
    units = found["pipelines"]["scene"]["units"]
    assert (units["s1"]["repair"]["status"], units["s1"]["lint"]["status"]) == ("in_progress", "blocked")
    assert found["artifacts"]["s1/repair"]["status"] == "in_progress"
