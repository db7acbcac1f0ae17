"""Units go through phases: they expand, loop, come and go, and what was made with which prompt is on record."""

from __future__ import annotations

import json
import re
import shlex
import shutil
import tarfile
from functools import partial
from pathlib import Path

import pytest

from headway import Plan, QuotaExhausted, RunFailed
from headway.core.events import RecipeChanged, UnitExpanded
from headway.core.fingerprint import recipe_digest
from tests.behaviour.scenes import Book
from tests.terminal import Terminal
from tests.workshop import Workshop

PHASES = ("plan", "preflight", "continuity_pack", "write", "repair~1", "state_repair~1", "lint~1", "apply")


def unit(name: str, *phases: str) -> list[str]:
    return [f"{name}/{phase}" for phase in phases or PHASES]


def test_sbf_37_stop_after_write_and_resume_at_repair(book: Book) -> None:
    """Nothing before the phase that failed is done again, and nothing after it is left out."""
    book.stop_at("s1/repair~1")
    stopped = book.go()
    assert (stopped["status"], list(stopped["failed"])) == ("failed", ["s1/repair~1"])
    assert book.calls()[-2:] == ["s1/write", "s1/repair~1"]
    book.stop_at("")
    assert book.go("--resume")["status"] == "completed"
    assert book.calls() == [*unit("s1", "repair~1", "state_repair~1", "lint~1", "apply"), *unit("s2")]


def test_sbf_37_a_changed_prompt_without_the_flag_refuses_and_with_it_goes_on(book: Book) -> None:
    """The refusal names template, phases, units and cost, and makes nothing; permission is on record."""
    book.stop_at("s2/apply")
    book.go()
    book.calls()
    book.stop_at("")
    book.prompt("write", "write better {{ unit }}")
    refused = book.do("run")
    assert refused.code == 3
    assert "prompts/write.md changed" in refused.out
    assert "phase write of 2 units (s1, s2)" in refused.out
    assert "11 artifacts at most" in refused.out
    assert "--resume-allow-prompt-change" in refused.out
    assert book.calls() == []
    asked = book.go()
    assert [(d["code"], d["artifacts"]) for d in asked["decisions"]] == [("prompt_changed", ["s1/write", "s2/write"])]
    assert asked["prompts"][0]["phases"] == ["write"]

    went_on = book.go("--resume-allow-prompt-change", "the old one was dull")
    assert went_on["status"] == "completed"
    assert "s1/write" in went_on["made"]
    assert "s1/plan" in went_on["kept"]
    (changed,) = [r.event for r in book.history("book") if isinstance(r.event, RecipeChanged)]
    assert (changed.reason, changed.changes[0].template) == ("the old one was dull", "phase: prompts/write.md")
    update = book.json(".headway/phases/s1.json")["phases"]["write"]["prompt_update"]
    was, new = update["prompt_hash_prev"][:8], update["prompt_hash_new"][:8]
    assert f"prompt changed on purpose, {was} → {new}: " in book.do("phases", "s1").out
    assert update["prompt_update_reason"] == "the old one was dull"
    assert update["prompt_hash_prev"] != update["prompt_hash_new"]


def test_a_prompt_that_no_longer_parses_is_told_where_it_is_asked_about(book: Book) -> None:
    """To permit it would only end in its failure."""
    book.stop_at("s2/apply")
    book.go()
    book.prompt("write", "write better\n{{ unit }")
    asked = book.go()
    assert [decision["code"] for decision in asked["decisions"]] == ["prompt_changed"]
    problem = asked["prompts"][0]["problem"]
    assert problem.startswith("Its template prompts/write.md does not parse: line 2: ")
    assert problem in book.do("run").out
    book.prompt("write", "write better {{ unit }}")
    assert book.go()["prompts"][0]["problem"] == ""


def test_what_a_changed_prompt_may_cost_is_what_was_made_from_it_by_way_of_the_state_too(book: Book) -> None:
    """The question counts what would be made again: not what was never made, and not only what requires it."""
    book.edit("    templates: {system: prompts/system.md}", "    overrides: {s1: {write: {phase: prompts/other.md}}}")
    book.prompt("other", "other")
    book.stop_at("s2/apply")
    book.go()
    book.prompt("other", "in more words")
    (question,) = book.go()["prompts"]
    assert (question["units"], question["phases"]) == (["s1"], ["write"])
    again = {*unit("s1", *PHASES[3:]), *unit("s2", *PHASES[1:-1])}
    assert question["at_most"] == len(again)
    book.calls()
    book.go("--resume-allow-prompt-change", "why not")
    assert set(book.calls()) - {"s2/apply"} == again


def test_on_a_terminal_it_asks_why_and_goes_on_with_a_reason(book: Book) -> None:
    """Enter alone leaves everything as it is, and names the flags; a reason is recorded as if it had been a flag."""
    book.stop_at("s2/apply")
    book.go()
    book.calls()
    book.stop_at("")
    book.prompt("write", "write better {{ unit }}")
    for typed, code in (("", 3), ("the old one was dull", 0)):
        with Terminal("headway", "run", cwd=book.root, columns=240) as terminal:
            shown = terminal.until(lambda screen: "Why was it changed?" in screen)
            assert "prompts/write.md changed" in shown
            terminal.type(typed)
            assert terminal.wait() == code, terminal.screen.text
        assert bool(book.calls()) == bool(typed)
        assert ("--resume-allow-prompt-change" in terminal.screen.text) == (not typed)
        assert terminal.screen.text.count("prompts/write.md changed (") == (1 if not typed else 3)
    (changed,) = [r.event for r in book.history("book") if isinstance(r.event, RecipeChanged)]
    assert changed.reason == "the old one was dull"


def test_a_plan_that_refuses_changed_prompts_asks_nobody(book: Book) -> None:
    """`refuse` waits for the flag, on a terminal, too."""
    book.edit("goal: Write", "prompt_changes: refuse\ngoal: Write")
    book.go()
    book.prompt("write", "write better {{ unit }}")
    with Terminal("headway", "run", cwd=book.root) as terminal:
        assert terminal.wait() == 3
    assert "Why was it changed?" not in terminal.screen.text


def test_sbf_37_a_deleted_output_is_restored_and_one_that_cannot_be_is_made_again_with_all_after_it(book: Book) -> None:
    """Recorded hashes decide, not existence."""
    book.go()
    book.calls()
    (book.root / "work/s1/card.json").unlink()
    assert book.go()["restored"] == ["s1/plan"]
    assert book.calls() == []
    (book.root / "work/s1/card.json").unlink()
    for blob in (book.root / ".headway/blobs").rglob("*"):
        if blob.is_file():
            blob.unlink()
    again = book.go()
    assert again["status"] == "completed"
    assert "s1/plan" in again["made"]


def test_sbf_32_what_a_phase_reads_is_what_the_phase_before_it_last_wrote(book: Book) -> None:
    """Repair and state repair succeeded, lint did not: the next round pairs new prose with a new patch."""
    book.needs(s1=2)
    assert book.go()["status"] == "completed"
    report, prose = book.json("work/s1/report.json"), book.read("work/s1/prose.md")
    assert report["words"] == len(prose.split()) == report["patch"]["words"]
    book.prompt("repair", "more words in repair {{ unit }}")
    again = book.go()
    assert again["status"] == "completed"
    report, prose = book.json("work/s1/report.json"), book.read("work/s1/prose.md")
    assert "more words" in prose
    assert report["words"] == len(prose.split()) == report["patch"]["words"]


def test_sbf_33_after_a_prompt_change_every_phase_behind_it_is_judged_again(book: Book) -> None:
    """Made, or kept because its inputs came out the same; none merely because it once succeeded."""
    book.go()
    book.calls()
    book.prompt("write", "write once more {{ unit }}")
    book.go()
    assert book.calls()[:5] == unit("s1", "write", "repair~1", "state_repair~1", "lint~1", "apply")
    book.prompt("plan", "plan {{ unit }}\n{# nobody sees this #}")
    ran = book.go()
    assert {a for a in ran["made"] if a.startswith("s1/")} == {"s1/plan"}
    assert ran["reasons"]["s1/plan"]["code"] == "prompt_changed"


@pytest.mark.parametrize("path", ["work/s1/prose.md", "work/s1/patch.json"])
def test_sbf_34_edited_prose_or_patch_is_detected_and_needs_force_resume(book: Book, path: str) -> None:
    """The edit is neither overwritten nor believed without a word; with it, it is what the next phases read."""
    book.stop_at("s1/lint~1")
    book.go()
    book.stop_at("")
    (book.root / path).write_text('{"unit": "s1", "words": 1}')
    held = book.do("run")
    assert held.code == 3
    assert "edited" in held.out
    assert book.read(path) == '{"unit": "s1", "words": 1}'
    book.calls()
    forced = book.go("--force-resume")
    assert forced["status"] == "completed"
    assert set(forced["accepted"]) <= {"s1/repair~1", "s1/state_repair~1"}
    assert book.calls()[0] == "s1/lint~1" if "patch" in path else "s1/repair~1" not in book.calls()


def test_sbf_35_a_retry_updates_the_phase_in_place_and_keeps_the_attempts_behind_it(book: Book) -> None:
    """One entry per phase; the failed attempt is not lost."""
    book.stop_at("s1/write")
    book.go()
    failed = book.json(".headway/phases/s1.json")["phases"]["write"]
    assert (failed["status"], failed["attempts"]) == ("fail", [])
    book.stop_at("")
    book.go()
    entry = book.json(".headway/phases/s1.json")["phases"]["write"]
    assert (entry["status"], [a["status"] for a in entry["attempts"]]) == ("success", ["fail"])


@pytest.mark.parametrize("text", [None, "{{ nonsense }}"], ids=["missing", "wrong"])
def test_an_attempt_that_could_not_begin_is_not_said_to_have_run(book: Book, text: str | None) -> None:
    """Without its prompt no recipe is called; one that was called and failed did run, also once it is behind others."""
    template = book.root / "prompts/write.md"
    was = template.read_text()
    template.write_text(text) if text is not None else template.unlink()
    book.go()
    assert "did not run" in book.do("phases", "s1").out
    template.write_text(was)
    book.stop_at("s1/write")
    book.go()
    entry = book.json(".headway/phases/s1.json")["phases"]["write"]
    assert (entry["status"], entry["ran"]) == ("fail", "made")
    assert [(a["status"], a["ran"]) for a in entry["attempts"]] == [("fail", None)]


def test_what_was_asked_is_on_record_where_the_answer_could_not_be_written(book: Book) -> None:
    """The recipe ran; its prompt is how anybody finds out why it answered so."""
    tasks = book.root / "tasks.py"
    tasks.write_text(tasks.read_text().replace("def write(ctx):", "def write(ctx):\n    return {'prose': object()}"))
    book.go()
    entry = book.json(".headway/phases/s1.json")["phases"]["write"]
    assert (entry["status"], entry["ran"]) == ("fail", "made")
    assert book.read(entry["artifacts"]["prompt"]) == "You write.\n\nwrite s1\n"


def test_the_phase_ledger_has_the_shape_that_tools_read(book: Book) -> None:
    """Artifacts by name, prompt hash, template set, state before; ran, verdict and applied apart."""
    book.go()
    ledger = book.json(".headway/phases/s1.json")
    assert ledger["scene_id"] == "s1"
    assert list(ledger["phases"]) == [phase.removesuffix("~1") for phase in PHASES]
    write, lint, apply = (ledger["phases"][name] for name in ("write", "lint", "apply"))
    assert write["status"] == "success"
    assert write["artifacts"]["prose"] == "work/s1/prose.md"
    assert set(write["artifacts"]) == {"prompt", "prose", "state_patch"}
    assert write["template_set"] == {"system": "prompts/system.md", "phase": "prompts/write.md"}
    assert book.read(write["artifacts"]["prompt"]) == "You write.\n\nwrite s1\n"
    assert (write["pre_state_path"], len(write["pre_state_hash"])) == ("state.json", 64)
    assert (lint["verdict"]["word"], write["applied"], lint["applied"]) == ("pass", None, None)
    assert apply["applied"]["idempotency_key"]
    assert apply["applied"]["files"]["state.json"]["before"] == write["pre_state_hash"]
    shown = book.do("phases", "s1", "--json").json
    assert shown["phases"] == ledger["phases"]
    assert "verdict pass" in book.do("phases", "s1").out
    assert book.do("phases", "s9").code == 2


def test_the_log_counts_as_stale_what_a_run_has_to_make(book: Book) -> None:
    """What only stands for units or for the last round of a loop is nobody's to make."""
    book.go()
    assert f"started: {len(book.go('--force')['made'])} stale" in book.do("log").out


def test_a_phase_ledger_can_be_deleted(book: Book) -> None:
    """It is a projection: nothing depends on it, and it comes back."""
    book.go()
    for path in (book.root / ".headway/phases").iterdir():
        path.unlink()
    (book.root / ".headway/phases").rmdir()
    assert book.go()["made"] == []
    book.prompt("write", "again {{ unit }}")
    book.go()
    assert list(book.json(".headway/phases/s2.json")["phases"]) == [phase.removesuffix("~1") for phase in PHASES]


def test_phase_ledgers_that_were_deleted_or_edited_are_mended_by_the_doctor(book: Book) -> None:
    """One that is not there is nobody's worry; one that says something else is named. Both come back as they were."""
    book.go()
    first, second = (book.root / f".headway/phases/{name}.json" for name in ("s1", "s2"))
    was = [json.loads(path.read_text()) for path in (first, second)]
    first.unlink()
    assert book.do("doctor").code == 0
    second.write_text(second.read_text().replace('"success"', '"fail"', 1))
    told = book.do("doctor")
    assert told.code == 4
    assert "phases/s2.json: not what the ledger says of the unit" in told.out
    assert "2 phase ledgers written from the ledger again" in book.do("doctor", "--repair").out
    assert [json.loads(path.read_text()) for path in (first, second)] == was
    assert book.do("doctor").code == 0


def test_texts_that_phase_ledgers_name_come_back(book: Book) -> None:
    """Deleted, they are put there again by the doctor, or with the ledgers; nobody made them anew."""
    book.go()
    home = book.root / ".headway"
    named = {
        book.root / path
        for unit in ("s1", "s2")
        for tried in book.json(f".headway/phases/{unit}.json")["phases"].values()
        for path in tried["artifacts"].values()
        if path.startswith(".headway/texts/")
    }
    was = {path: path.read_bytes() for path in named}
    assert was
    shutil.rmtree(home / "texts")
    assert book.do("doctor").code == 0
    assert "phase ledgers written from the ledger again" in book.do("doctor", "--repair").out
    assert {path: path.read_bytes() for path in named} == was
    some = min(named)  # half of it, as a power cut may leave it
    some.chmod(0o644)
    some.write_bytes(was[some][:-3])
    assert "1 phase ledger written from the ledger again" in book.do("doctor", "--repair").out
    assert {path: path.read_bytes() for path in named} == was
    shutil.rmtree(home / "texts")
    shutil.rmtree(home / "phases")
    shutil.rmtree(home / "stamps")
    assert book.go()["made"] == []
    assert {path: path.read_bytes() for path in named} == was


def test_phase_ledgers_of_a_run_that_was_killed_are_caught_up_with(book: Book) -> None:
    """What happened while nobody could write them is read from the ledger."""
    book.go()
    head = book.root / ".headway/phases/.book.seq"
    (book.root / ".headway/phases/s1.json").unlink()
    head.write_text("3")
    book.go("s2", "--rerun-from", "apply")
    assert book.json(".headway/phases/s1.json")["phases"]["apply"]["status"] == "success"


def test_projections_of_a_run_that_was_killed_at_its_very_end_are_written_by_one_that_has_nothing_to_do(
    book: Book,
) -> None:
    """Its last event is on disk, and so there is no other reason to write them; twice it is not done."""
    book.go()
    home = book.root / ".headway"
    ledger, plan = home / "phases/s1.json", home / "plans/book/plan.json"
    was = ledger.read_bytes(), plan.read_bytes()
    book.go("--rerun-all")
    now = ledger.read_bytes(), plan.read_bytes()
    for path, data in zip((ledger, plan), was, strict=True):
        path.write_bytes(data)
    (home / "phases/.book.seq").write_text(str(json.loads(was[0])["seq"]))
    shutil.rmtree(home / "stamps")
    assert book.go()["made"] == []
    assert (ledger.read_bytes(), plan.read_bytes()) == now
    shutil.rmtree(home / "stamps")
    stood = plan.stat()
    assert book.go()["made"] == []
    assert plan.stat() == stood


@pytest.mark.parametrize(
    "more",
    [
        "    overrides: {u1: {write: {phase: special.md}}}\n",
        "  other: {units: [u1], phases: {say: {run: 'echo > {output}', outputs: {o: 'e/{unit}.txt'}}}}\n",
    ],
)
def test_phase_ledgers_follow_a_plan_that_changed_though_nothing_was_made_of_them(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], more: str
) -> None:
    """They tell of other templates, and of another pipeline, also where a run makes something else, or nothing."""
    shop = Workshop(tmp_path)
    plan = """
id: p
goal: g
pipelines:
  s:
    units: [u1, u2]
    phases:
      plan: {run: "echo plan > {outputs.card}", outputs: {card: 'd/{unit}.card'}}
      write: {run: "cat {prompt} > {outputs.prose}", templates: {phase: write.md}, outputs: {prose: 'd/{unit}.txt'}}
"""
    (tmp_path / "write.md").write_text("hello {{ unit }}")
    (tmp_path / "special.md").write_text("special")
    shop.file.write_text(plan)
    assert shop.run(capsys, "run").code == 0
    file = tmp_path / ".headway/phases/u1.json"
    was = json.loads(file.read_text())
    shop.file.write_text(plan + more)
    assert shop.run(capsys, "run", "u2/plan", "--rerun", "u2/plan").code == 0
    now = json.loads(file.read_text())
    assert (now["pipelines"], now["phases"]["write"]["template_set"]) != (["s"], {"phase": "write.md"})
    assert shop.run(capsys, "doctor").code == 0
    shop.file.write_text(plan)
    assert "Nothing to do" in shop.run(capsys, "run").out
    assert json.loads(file.read_text()) | {"seq": 0} == was | {"seq": 0}
    assert shop.run(capsys, "doctor").code == 0


def test_units_come_from_an_artifact_and_the_expansion_is_an_event(book: Book) -> None:
    """With the digest of what caused it; replaying the ledger asks nobody."""
    assert "s1/plan" in book.go()["made"]
    expanded = [r.event for r in book.history("book") if isinstance(r.event, UnitExpanded)]
    assert [event.units for event in expanded] == [(), ("s1", "s2")]
    assert all(event.cause for event in expanded)
    (book.root / "outline.json").unlink()
    (book.root / "idea.json").unlink()
    assert "s2/apply" in book.load("book").state.artifacts


def test_status_shows_units_by_phases(book: Book) -> None:
    """In words and as JSON."""
    book.stop_at("s2/write")
    book.go()
    text = book.do("status").out
    assert "scene: 2 units × 8 phases\n      plan  preflight  continuity_pack  write" in text
    units = book.do("status", "--json").json["pipelines"]["scene"]["units"]
    assert {phase: found["status"] for phase, found in units["s1"].items()} == dict.fromkeys(
        [phase.removesuffix("~1") for phase in PHASES], "complete"
    )
    assert units["s2"]["write"]["status"] == "failed"


def test_next_counts_as_status_does(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """What only stands for all units is nobody's work."""
    shop = Workshop(tmp_path / "two")
    shop.file.write_text(
        "id: two\ngoal: g\npipelines:\n  p:\n    units: [u, v]\n    phases:\n      d: {run: 'echo d'}\n"
        "artifacts:\n  all: {requires: [p:*/d], run: 'echo all'}\n"
    )
    assert shop.run(capsys, "run").code == 0
    assert "3 of 3 done" in shop.run(capsys, "status").out
    assert shop.run(capsys, "next").out == "Everything is done: 3 of 3.\n"


def test_many_units_are_told_in_a_line_when_they_are_done(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """And how many more are not, only where some are not."""
    shop = Workshop(tmp_path / "many")
    units = ", ".join(f"u{n}" for n in range(50))
    plan = f"id: many\ngoal: g\npipelines:\n  p:\n    units: [{units}]\n    phases:\n      d: {{run: 'echo d'}}\n"
    shop.file.write_text(plan, encoding="utf-8")
    assert "\n  0 units done, 10 more are not\n" in shop.run(capsys, "status").out
    shop.run(capsys, "run")
    assert "\n  50 units done\n" in shop.run(capsys, "status").out


def test_a_loop_is_gone_round_until_it_passes(book: Book) -> None:
    """Each round reads what the one before it wrote; what stands for the phase is the last."""
    book.needs(s1=3)
    assert book.go()["status"] == "completed"
    assert [a for a in book.calls() if a.startswith("s1/lint")] == unit("s1", "lint~1", "lint~2", "lint~3")
    state = book.load("book").state
    assert state.artifacts["s1/repair"].requires == ("s1/repair~3",)
    assert state.completed["s1/repair"].outputs == state.completed["s1/repair~3"].outputs
    assert book.go()["made"] == []


def test_a_loop_that_needs_one_more_round_than_before_is_waited_for(book: Book) -> None:
    """By whoever reads any of its phases, also one that was thought to be fresh."""
    book.go()
    book.needs(s1=2)
    book.calls()
    assert book.go("--rerun", "s1/lint~1")["status"] == "completed"
    assert book.calls()[:4] == unit("s1", "lint~1", "repair~2", "state_repair~2", "lint~2")
    assert book.do("why", "s1/apply", "--json").json["freshness"] == "fresh"


def test_whoever_wants_a_phase_of_a_loop_gets_its_last_round(book: Book) -> None:
    """Which one that is, only the end of the loop can tell."""
    book.needs(s1=2)
    assert book.go("s1/repair")["status"] == "completed"
    assert book.calls() == unit("s1", *PHASES[:-1], "repair~2", "state_repair~2", "lint~2")
    assert book.load("book").state.artifacts["s1/repair"].requires == ("s1/repair~2",)


@pytest.mark.parametrize("order", ["sequential", "independent"])
def test_a_loop_that_changes_the_state_ends_before_the_next_unit_goes_on_from_there(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], order: str
) -> None:
    """Nothing of any round is lost, and nothing is made twice."""
    book = Book(tmp_path / "loops", capsys)
    book.needs(a=3, c=2)
    book.file.write_text(
        f"id: p\ngoal: g\npipelines:\n  s:\n    units: [c, a, b]\n    order: {order}\n    state: log.txt\n    phases:\n"
        "      look: {make: 'tasks.py:look', pre_state: true, outputs: {seen: 'work/{unit}.txt'}}\n"
        "      grow: {make: 'tasks.py:grow', outputs: {log: log.txt}}\n"
        "      check: {make: 'tasks.py:check', outputs: {report: 'work/{unit}.json'}, repeat: [grow, check],"
        " until: report.fine, times: 3}\n"
    )
    (book.root / "log.txt").write_text("")
    (book.root / "tasks.py").write_text(
        f"{book.read('tasks.py')}\n"
        "def look(ctx):\n    note(ctx)\n    return ctx.state.read_text()\n\n"
        "def grow(ctx):\n    note(ctx)\n    return ctx.state.read_text() + f'{ctx.unit}{ctx.iteration} '\n\n"
        "def check(ctx):\n    note(ctx)\n"
        "    needed = json.loads((ctx.root / 'needed.json').read_text()).get(ctx.unit, 1)\n"
        "    return {'fine': ctx.iteration >= needed}\n"
    )
    assert book.go("-j", "8")["status"] == "completed"
    assert book.read("log.txt").split() == ["c1", "c2", "a1", "a2", "a3", "b1"]
    assert book.read("work/b.txt").split() == ["c1", "c2", "a1", "a2", "a3"]
    calls = book.calls()
    assert len(calls) == len(set(calls))
    judged = book.do("status", "--json").json["artifacts"]
    assert {a for a, found in judged.items() if found["freshness"] != "fresh"} == set()


def test_a_loop_that_passes_earlier_than_before_is_cut_short(book: Book) -> None:
    """The rounds that are not needed any more are removed, by event, and never made."""
    book.needs(s1=3)
    book.go()
    book.calls()
    book.needs()
    book.prompt("repair", "repair anew {{ unit }}")
    assert book.go()["status"] == "completed"
    assert [a for a in book.calls() if a.startswith("s1/lint")] == ["s1/lint~1"]
    assert "s1/lint~2" not in book.load("book").state.artifacts
    assert book.read("work/s1/prose.md").count("repair anew") == 1
    assert book.go()["made"] == []


def test_a_loop_that_never_passes_fails_after_its_times(book: Book) -> None:
    """It ran, and its verdict is another matter; only its own unit, and what follows, is blocked."""
    book.needs(s1=9)
    ran = book.go()
    assert (ran["status"], list(ran["failed"])) == ("failed", ["s1/lint"])
    assert "was not true after 3 rounds" in ran["failed"]["s1/lint"]
    assert "s1/apply" in ran["blocked"]
    lint = book.json(".headway/phases/s1.json")["phases"]["lint"]
    assert (lint["status"], lint["iteration"], lint["verdict"]["word"]) == ("success", 3, "fail")
    book.needs()
    book.prompt("repair", "repair well {{ unit }}")
    assert book.go("--prompt-change", "it did not pass")["status"] == "completed"


def essays(tmp_path: Path, capsys: pytest.CaptureFixture[str], units: int) -> Book:
    """Independent units with two phases, whose recipes are their prompts."""
    book = Book(tmp_path / "essays", capsys)
    names = ", ".join(f"s{n}" for n in range(1, units + 1))
    book.file.write_text(
        f"id: book\ngoal: g\npipelines:\n  essay:\n    units: [{names}]\n    phases:\n"
        "      write: {make: 'tasks.py:echo', templates: prompts/write.md, outputs: {prose: 'work/{unit}/prose.md'}}\n"
        "      polish:\n"
        "        {make: 'tasks.py:echo', templates: prompts/repair.md, outputs: {prose: 'work/{unit}/prose.md'}}\n"
    )
    echo = "def echo(ctx):\n    note(ctx)\n    return ''.join(i.text() for i in ctx.inputs.values()) + ctx.prompt\n"
    (book.root / "tasks.py").write_text(f"{book.read('tasks.py')}\n\n{echo}")
    return book


def test_trying_a_prompt_on_some_units_and_going_back_costs_nothing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The others stay undecided; the old outputs are back byte for byte, and nothing is made."""
    book = essays(tmp_path, capsys, 5)
    book.stop_at("s5/polish")
    book.go()
    before = {n: book.read(f"work/s{n}/prose.md") for n in range(1, 5)}
    book.prompt("write", "try {{ unit }}")
    tried = book.go("s1", "s3", "--prompt-change", "a try")
    assert sorted(tried["made"]) == ["s1/polish", "s1/write", "s3/polish", "s3/write"]
    assert "try s1" in book.read("work/s1/prose.md")
    assert book.go("s2")["status"] == "refused"
    book.prompt("write", "write {{ unit }}")
    book.stop_at("")
    book.calls()
    back = book.go()
    assert (back["made"], sorted(back["reused"])) == (["s5/polish"], sorted(tried["made"]))
    assert {n: book.read(f"work/s{n}/prose.md") for n in range(1, 5)} == before
    assert book.calls() == ["s5/polish"]


def test_a_run_that_was_cut_short_with_a_changed_prompt_is_gone_on_with_and_asks_nothing(book: Book) -> None:
    """It had set out with that prompt, and nothing has changed since; what changes after that is asked about."""
    assert book.go()["status"] == "completed"
    book.prompt("write", "better {{ unit }}")
    book.stop_at("s2/plan")
    book.prompt("plan", "better, too: {{ unit }}")
    assert book.go()["status"] == "failed"
    book.calls()
    book.prompt("repair", "another {{ unit }}")
    asked = book.go()
    assert [p["template"] for p in asked["prompts"]] == ["phase: prompts/repair.md"]
    book.prompt("repair", "repair {{ unit }}")
    book.stop_at("")
    assert book.go()["status"] == "completed"
    assert book.calls() == unit("s2")


def test_permission_for_a_changed_prompt_is_given_once(book: Book) -> None:
    """A run that has it and is cut short need not be given it again."""
    book.stop_at("s2/apply")
    book.go()
    book.prompt("write", "better {{ unit }}")
    assert book.go("--prompt-change", "the old one was dull")["status"] == "failed"
    book.stop_at("")
    assert book.go()["status"] == "completed"


def test_prompt_changes_can_be_followed_or_refused_by_the_plan(book: Book) -> None:
    """follow never asks; refuse asks even after a run that completed."""
    book.stop_at("s2/apply")
    book.go()
    book.stop_at("")
    book.edit("goal: ", "prompt_changes: follow\ngoal: ")
    book.prompt("write", "follow {{ unit }}")
    assert book.go()["status"] == "completed"
    book.edit("prompt_changes: follow", "prompt_changes: refuse")
    book.prompt("write", "refuse {{ unit }}")
    assert book.go()["status"] == "refused"
    assert book.go("--prompt-change", "on purpose")["status"] == "completed"


def test_a_missing_template_of_finished_work_is_asked_about(book: Book) -> None:
    """It is a change like any other, and never passed over."""
    book.stop_at("s2/apply")
    book.go()
    book.stop_at("")
    (book.root / "prompts/write.md").unlink()
    refused = book.do("run")
    assert (refused.code, "prompts/write.md is missing" in refused.out) == (3, True)
    failed = book.go("--prompt-change", "it is gone")
    assert "prompts/write.md does not exist" in failed["failed"]["s1/write"]


def test_rerun_from_a_phase_makes_it_and_all_after_it_anew(book: Book) -> None:
    """For all units, or for those that are named."""
    book.go()
    book.calls()
    book.go("s2", "--rerun-from", "repair")
    assert book.calls() == unit("s2", "repair~1", "state_repair~1", "lint~1", "apply")
    book.go("--rerun-from", "apply")
    assert [a for a in book.calls() if not a.endswith("/apply")] == []
    book.go("--rerun-all")
    assert set(book.calls()) == {*unit("s1"), *unit("s2")}


def test_rerun_from_a_phase_of_units_that_are_yet_to_come_makes_them(book: Book) -> None:
    """There is nothing of them that would have to be made anew."""
    assert book.go("s1", "--rerun-from", "repair")["status"] == "completed"
    assert book.calls() == unit("s1")


def test_a_changed_item_is_the_reason_of_its_unit(book: Book) -> None:
    """Not its code, which is what it was."""
    book.go()
    book.outline([{"id": "s1", "title": "Other"}, {"id": "s2", "title": "Scene s2"}])
    reason = book.go()["reasons"]["s1/plan"]
    assert reason["code"] == "recipe_changed"
    assert reason["subject"] == "item"
    assert '"title":"Other"' in reason["now"]


def test_an_override_for_a_unit_that_does_not_come_is_told_once(book: Book) -> None:
    """Only what an artifact makes says which units there are; with the unit that was likely meant."""
    book.edit("    phases:\n", "    overrides: {s01: {write: {phase: prompts/write.md}}, '*': {}}\n    phases:\n")
    said = "Overrides of pipeline scene name s01, which is no unit of it (did you mean s1?)."
    assert said in book.do("run").err
    assert "Overrides" not in book.do("run", "--rerun", "s1/write").err
    book.edit("s01:", "s02: {}, sx:")
    assert "name s02, and 1 more, which are no units of it" in book.do("run").err
    book.edit("s02: {}, sx:", "s2:")
    assert "Overrides" not in book.do("run").err


def test_an_override_of_one_unit_touches_that_unit_alone(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Per unit, and for all units alike."""
    book = essays(tmp_path, capsys, 3)
    book.go()
    book.calls()
    book.prompt("special", "special {{ unit }}")
    book.edit("    phases:\n", "    overrides: {s2: {write: {phase: prompts/special.md}}}\n    phases:\n")
    book.go()
    assert book.calls() == ["s2/write", "s2/polish"]
    assert "special s2" in book.read("work/s2/prose.md")
    book.edit("{s2: {write: {phase: prompts/special.md}}}", "{'*': {write: {system: prompts/special.md}}}")
    book.go()
    assert {a for a in book.calls() if a.endswith("/write")} == unit_set("write", 3)


def unit_set(phase: str, count: int) -> set[str]:
    return {f"s{n}/{phase}" for n in range(1, count + 1)}


def test_a_unit_as_a_target_is_what_the_outline_makes_of_it(book: Book) -> None:
    """An outline that is stale is made first: its item may have changed, or there may be no such unit any more."""
    book.go()
    book.calls()
    book.outline([{"id": "s1", "title": "Other"}, "s2", "s3"])
    book.go("s1/write")
    assert book.calls() == unit("s1", "plan", "preflight", "continuity_pack", "write")
    assert "Other" in book.read("work/s1/card.json")
    book.outline(1)
    gone = book.do("run", "s2")
    assert gone.code == 2
    assert "Plan book has no artifact s2" in gone.err


def test_units_that_vanish_are_removed_and_their_files_are_listed(book: Book) -> None:
    """By event; nothing is deleted until somebody says so, and what somebody wrote never is."""
    book.outline(3)
    book.go()
    (book.root / "work/s3/pack.md").write_text("mine")
    book.outline(2)
    ran = book.do("run", "--plan", str(book.file))
    assert ran.code == 0
    assert "leave their files: work/s3/card.json, work/s3/pack.md, work/s3/patch.json," in ran.out
    said = re.search(r"headway (gc --outputs --dry-run .*) lists those that can go", ran.out)
    assert said is not None
    assert "s3/apply" not in book.load("book").state.artifacts
    assert book.read("work/s3/prose.md")
    listed = book.do(*shlex.split(said[1])).out
    assert "work/s3/prose.md" in listed
    assert "Would keep work/s3/pack.md: it is not as it was made" in listed
    done = book.do("gc", "--outputs", "--json")
    assert (done.code, done.json["edited"]) == (0, ["work/s3/pack.md"])
    assert not (book.root / "work/s3/prose.md").exists()
    assert book.read("work/s3/pack.md") == "mine"
    assert not (book.root / ".headway/phases/s3.json").exists()


def test_a_unit_that_comes_in_between_is_made_and_what_follows_it_is_judged_by_its_state(book: Book) -> None:
    """In the order of the outline, whatever order they were made in."""
    book.go()
    book.outline(["s1", "new", "s2"])
    assert book.go()["status"] == "completed"
    assert book.json("state.json")["applied"] == ["s1", "new", "s2"]
    assert book.go()["made"] == []


@pytest.mark.parametrize("reset", [(), ("s1",), ("scene",), ("scene", "--archive")])
@pytest.mark.parametrize("units", [["new", "s1", "s2"], ["s2", "s1"], ["s2"], ["new", "s2"], ["s1"]])
def test_whatever_unit_comes_first_begins_with_the_state_that_was_there_before_all(
    book: Book, units: list[str], reset: tuple[str, ...]
) -> None:
    """What others did that were first before it is not to be found there: nothing is applied twice."""
    book.go()
    if reset:
        assert book.do("reset", *reset).code == 0
    book.outline(units)
    assert book.go()["status"] == "completed"
    assert book.json("state.json")["applied"] == units
    assert '"applied": []' in book.read(f"work/{units[0]}/pack.md")
    assert book.go()["made"] == []


@pytest.mark.parametrize("order", ["sequential", "independent"])
@pytest.mark.parametrize(
    ("first", "units"),
    [
        (["run --until u2/write"], ["u2", "u3"]),
        (["run --until u2/write"], ["u3"]),
        (["run u1"], ["u2", "u3"]),
        (["run u1"], ["new", "u3"]),
        (["run", "reset u3 --archive"], ["u3"]),
    ],
)
def test_units_that_are_left_and_were_not_made_yet_know_nothing_of_one_that_vanished(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], first: list[str], units: list[str], order: str
) -> None:
    """As little as those that have changed the state: what they read of it, or are yet to, is as it was before all."""
    shop = Workshop(tmp_path)
    plan = f"""
id: p
goal: g
pipelines:
  scene:
    units: [u1, u2, u3]
    order: {order}
    state: state.txt
    phases:
      write: {{run: "cp {{state}} {{outputs.o}}", outputs: {{o: 'd/{{unit}}.txt'}}, pre_state: true}}
      apply: {{run: "echo {{unit}} >> {{state}}", outputs: {{post: state.txt}}}}
"""
    shop.file.write_text(plan)
    (tmp_path / "state.txt").write_text("start\n")
    for words in first:
        assert shop.run(capsys, *words.split()).code == 0
    shop.file.write_text(plan.replace("[u1, u2, u3]", f"[{', '.join(units)}]"))
    assert shop.run(capsys, "run").code == 0
    assert (tmp_path / "state.txt").read_text().split() == ["start", *units]
    for place, name in enumerate(units):
        assert (tmp_path / f"d/{name}.txt").read_text().split() == ["start", *units[:place]]
    assert "Nothing to do" in shop.run(capsys, "run").out
    assert shop.run(capsys, "doctor").code == 0


def test_units_that_vanish_name_their_files_where_there_is_nothing_else_to_do(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Paths, and not artifacts: those are in no plan any more."""
    shop = Workshop(tmp_path)
    phases = "phases: {w: {run: 'echo > {output}', outputs: {o: '{unit}.txt'}}}"
    plan = f"id: p\ngoal: g\npipelines:\n  p: {{units: [a, b], {phases}}}\n"
    shop.file.write_text(plan)
    assert shop.run(capsys, "run").code == 0
    shop.file.write_text(plan.replace("[a, b]", "[a]"))
    ran = shop.run(capsys, "run")
    assert "Units that are gone leave their files: b.txt. headway gc --outputs --dry-run" in ran.out
    assert "Nothing to do" in ran.out
    assert "leave" not in shop.run(capsys, "run").out


def test_units_of_which_none_was_there_before_go_on_from_the_state_that_is_there(book: Book) -> None:
    """Nobody is left who could tell what it was before; after a reset they begin there."""
    book.go()
    book.outline(["s3"])
    assert book.go()["status"] == "completed"
    assert book.json("state.json")["applied"] == ["s1", "s2", "s3"]
    assert book.do("reset", "scene").code == 0
    book.outline(["s4"])
    assert book.go()["status"] == "completed"
    assert book.json("state.json")["applied"] == ["s1", "s2", "s4"]


def test_a_state_that_somebody_changed_refuses_until_it_is_decided(book: Book) -> None:
    """Compared with what it was made from; going on over it is on record."""
    book.stop_at("s1/repair~1")
    book.go()
    book.stop_at("")
    (book.root / "state.json").write_text('{"applied": ["ghost"], "words": 5}')
    refused = book.do("run")
    assert refused.code == 3
    assert "another state" in refused.out
    assert "--force-resume" in refused.out
    book.calls()
    assert book.go("--force-resume")["status"] == "completed"
    assert book.calls()[0] == "s1/repair~1"
    assert any("--force-resume" in getattr(r.event, "reason", "") for r in book.history("book"))


def test_beginning_anew_over_another_state_names_what_can_be_typed(book: Book) -> None:
    """What was made, and not its phase: that would be all units."""
    book.stop_at("s1/repair~1")
    book.go()
    book.stop_at("")
    (book.root / "state.json").write_text('{"applied": ["ghost"], "words": 5}')
    (decision,) = book.go()["decisions"]
    (first,) = decision["artifacts"]
    assert decision["flags"][0] == f"--rerun-from {first}"
    assert book.go("--rerun-from", first)["status"] == "completed"


def test_whoever_only_looks_at_another_state_is_told_what_decides_about_it(book: Book) -> None:
    """Every command that is named leads on: none of them to a run that is refused, and from there back."""
    book.stop_at("s1/repair~1")
    book.go()
    book.stop_at("")
    (book.root / "state.json").write_text('{"applied": ["ghost"], "words": 5}')
    (decision,) = book.go()["decisions"]
    (first,) = decision["artifacts"]
    assert book.do("why", first, "--json").json["decide"] == decision
    assert f"Decide: headway run {decision['flags'][0]}" in book.do("why", first).out
    where = f" --project {book.root}"
    assert book.do("status", "--json").json["next"] == f"headway why {first}{where}"
    preview = book.do("run", "-n").out
    assert "1 to decide about" in preview
    assert f"Decide: headway run {decision['flags'][0]}{where}" in preview.splitlines()[-1]
    assert book.do("status", "--json").json["decide"]["artifacts"] == [first]
    offered = book.do("next", "--json").json
    assert first not in [offer["artifact"] for offer in offered["next"]]
    assert offered["waiting"][first].endswith(", or ".join(f"headway run {flag}{where}" for flag in decision["flags"]))


def test_going_on_over_another_state_keeps_what_was_made_and_changes_nothing_twice(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A file that later phases have changed since is not what the phase that read the state has left; a text stays."""
    shop = Workshop(tmp_path)
    shop.file.write_text(HANDED_ON)
    (tmp_path / "state.json").write_text("1")
    assert shop.run(capsys, "run").code == 0
    (tmp_path / "state.json").write_text("2")
    assert shop.run(capsys, "run").code == 3
    went_on = shop.run(capsys, "run", "--force-resume", "--json").json
    assert (went_on["made"], went_on["accepted"]) == ([], ["s1/think", "s1/write"])
    assert (tmp_path / "s1.md").read_text() == "written from 1\nrepaired\n"
    assert shop.run(capsys, "run").out.startswith("Nothing to do")
    assert "thought of 1\n" in shop.run(capsys, "show", "s1/think").out


HANDED_ON = """\
id: p
goal: g
pipelines:
  essay:
    units: [s1]
    state: state.json
    phases:
      think: {run: 'echo thought of $(cat {state})', pre_state: true}
      write: {run: 'echo written from $(cat {state}) > {outputs.prose}', outputs: {prose: '{unit}.md'}, pre_state: true}
      repair: {run: 'echo repaired >> {outputs.prose}', outputs: {prose: '{unit}.md'}}
"""


def test_the_state_after_later_units_is_no_mismatch_of_an_earlier_one(book: Book) -> None:
    """And resuming never applies twice."""
    book.stop_at("s2/apply")
    book.go()
    book.stop_at("")
    assert book.go()["status"] == "completed"
    assert book.json("state.json")["applied"] == ["s1", "s2"]
    book.go("s1", "--rerun-from", "apply")
    assert book.json("state.json")["applied"] == ["s1", "s2"]


def test_an_edited_state_is_asked_about(book: Book) -> None:
    """It is the newest apply's output; nobody touches it meanwhile."""
    book.go()
    (book.root / "state.json").write_text('{"applied": [], "words": 1}')
    held = book.do("run")
    assert (held.code, "s2/apply" in held.out) == (3, True)
    assert book.json("state.json") == {"applied": [], "words": 1}


@pytest.mark.parametrize(("path", "whose"), [("work/s1/prose.md", "s1/repair~1"), ("state.json", "s2/apply")])
def test_an_edit_is_asked_about_as_soon_as_it_is_known_that_its_unit_is_still_there(
    book: Book, path: str, whose: str
) -> None:
    """Before an earlier phase puts the file back: the outline is made first, and says which units there are."""
    book.go()
    (book.root / path).write_text("{}")
    book.outline(3)
    book.prompt("write", "write better {{ unit }}")
    held = book.go()
    assert (held["made"][0], [d["artifacts"] for d in held["decisions"]]) == ("outline", [[whose]])
    assert book.read(path) == "{}"
    assert (book.go("--discard-edits")["status"], book.go()["made"]) == ("completed", [])
    assert book.read(path) != "{}"


def test_reset_of_a_unit_with_an_archive(book: Book) -> None:
    """The archive holds what was made and the phase ledger, verified before anything is removed."""
    book.go()
    prose = book.read("work/s2/prose.md")
    done = book.do("reset", "s2", "--archive", "--json").json
    with tarfile.open(book.root / done["archive"]) as tar:
        member = tar.extractfile("work/s2/prose.md")
        assert member is not None
        assert member.read().decode() == prose
        ledger = tar.extractfile(".headway/phases/s2.json")
        assert ledger is not None
        assert "write" in json.load(ledger)["phases"]
    assert not (book.root / "work/s2/prose.md").exists()
    assert not (book.root / ".headway/phases/s2.json").exists()
    assert (book.root / "work/s1/prose.md").exists()
    book.calls()
    assert book.go()["reused"] == []
    assert book.calls() == unit("s2")
    assert book.json("state.json")["applied"] == ["s1", "s2"]


def test_a_reset_with_an_archive_leaves_files_that_were_only_changed_in_place(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """They were there before the plan was: a copy is put away, and nothing is removed."""
    shop = Workshop(tmp_path / "shop")
    (shop.root / "README.txt").write_text("mine\n")
    note = "  note: {produces: note.txt, run: 'echo note > {output}'}\n"
    shop.file.write_text(
        f"id: p\ngoal: g\nartifacts:\n{note}  readme: {{modifies: README.txt, run: 'echo more >> README.txt'}}\n"
    )
    shop.run(capsys, "run")
    kept = shop.run(capsys, "reset", "note", "readme", "--archive", "--json").json["archive"]
    with tarfile.open(shop.root / kept) as tar:
        assert {"README.txt", "note.txt"} <= set(tar.getnames())
    assert (shop.root / "README.txt").read_text() == "mine\nmore\n"
    assert not (shop.root / "note.txt").exists()


def test_reset_of_a_pipeline_leaves_the_rest(book: Book) -> None:
    """Nothing of its units is resumed from."""
    book.go()
    book.calls()
    assert book.do("reset", "scene").code == 0
    assert not list((book.root / ".headway/phases").glob("*.json"))
    ran = book.go()
    assert "outline" in ran["kept"]
    assert set(book.calls()) == {*unit("s1"), *unit("s2")}


@pytest.mark.parametrize(
    ("outline", "problem"),
    [
        ({"scenes": []}, "matches nothing"),
        ({"chapters": []}, "there is no scenes"),
        ({"scenes": [{"id": 7}]}, "named by text"),
        ({"scenes": [{"id": "../x"}]}, "cannot name a unit"),
        ({"scenes": [{"id": "a"}, {"id": "a"}]}, "twice"),
        ({"scenes": [{"id": f"u{n}"} for n in range(51)]}, "max says 50"),
    ],
)
def test_an_outline_that_names_no_proper_units_fails_where_it_is_read(
    book: Book, outline: object, problem: str
) -> None:
    """The units fail, with the reason; nothing was written outside, and a better outline goes on."""
    (book.root / "idea.json").write_text(json.dumps(outline))
    ran = book.go()
    assert list(ran["failed"]) == ["scene:*"]
    assert problem in ran["failed"]["scene:*"]
    book.outline(1)
    assert book.go()["status"] == "completed"


@pytest.mark.parametrize("outline", [{"scenes": []}, {"scenes": [{"id": "s1"}, {"id": "s1"}]}, {"chapters": []}])
def test_an_outline_that_names_no_proper_units_leaves_those_that_there_are(book: Book, outline: object) -> None:
    """However often it is asked; they are still there when it is better again."""
    book.go()
    book.calls()
    (book.root / "idea.json").write_text(json.dumps(outline))
    for _ in range(2):
        assert list(book.go()["failed"]) == ["scene:*"]
    assert book.load("book").state.units["scene"].units == ("s1", "s2")
    book.outline(2)
    assert book.go()["status"] == "completed"
    assert book.calls() == []


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("{{ unit", "does not parse"),
        ("{{ nobody }}", "'nobody' is undefined"),
        ("{{ inputs.lint }}", "undefined"),
        ("{{ ''.__class__.__mro__ }}", "unsafe"),
        ("{{ state.items }}", "it shows items, which is no value"),
        ("{% include 'prompts/none.md' %}", "does not exist"),
        ("{% include '/etc/passwd' %}", "/etc/passwd"),
        ("{% for n in range(9999999) %}{{ n }}{% endfor %}", "Range too big"),
        ("{{ 'x' * 10**10 }}", "prompts/write.md: * comes to more than 4194304 characters"),
        ("{{ 10**10 * [unit] }}", "* comes to more than"),
        ("{{ inputs.plan * 10**10 }}", "* comes to more than"),
        ("{{ 10**(10**10) }}", "** comes to a number of more than"),
        ("{{ 3**16000000 % 7 }}", "** comes to a number of more than"),
    ],
)
def test_a_template_that_is_wrong_fails_its_artifact_with_the_reason(book: Book, text: str, problem: str) -> None:
    """No recipe is called with half a prompt."""
    book.prompt("write", text)
    ran = book.go()
    assert problem in ran["failed"]["s1/write"]
    assert "s1/write" not in book.calls()


@pytest.mark.parametrize(
    ("units", "problem"),
    [("items: 'nobody[*].id', max: 50", "leads nowhere"), ("items: 'scenes[*].id', max: 1", "max says 1")],
)
def test_units_that_do_not_fit_what_the_plan_says_now_are_a_failure_although_all_was_made(
    book: Book, units: str, problem: str
) -> None:
    """The outline is what it was; how units are found in it is not. What fits again makes nothing anew."""
    book.go()
    book.edit("items: 'scenes[*].id', max: 50", units)
    for _ in range(2):
        ran = book.go()
        assert (ran["status"], list(ran["failed"])) == ("failed", ["scene:*"])
        assert problem in ran["failed"]["scene:*"]
    book.edit(units, "items: 'scenes[*].id', max: 60")
    ran = book.go()
    assert (ran["status"], ran["made"], ran["failed"]) == ("completed", [], {})


def test_a_key_of_json_is_meant_whatever_python_calls_so(book: Book) -> None:
    """Of the state as of an item; what Python has under a name can still be called where no key has it."""
    (book.root / "state.json").write_text('{"applied": [], "words": 0, "items": "seven", "pop": {"keys": 2}}')
    book.prompt("write", "{{ state.items }} {{ state.pop.keys }} {{ state.pop.items()|list }}")
    book.go("s1/write")
    assert book.do("show", "s1/write", "--prompt").out.endswith("seven 2 [('keys', 2)]\n")


def test_an_included_template_belongs_to_the_prompt(book: Book) -> None:
    """Changing it is a change of the prompt."""
    book.prompt("part", "a part")
    book.prompt("write", "write {{ unit }} {% include 'prompts/part.md' %}")
    book.go()
    book.prompt("part", "another part")
    assert book.go()["reasons"]["s1/write"]["subject"] == "prompts/part.md"
    assert "another part" in book.read("work/s1/prose.md")


def test_a_required_output_that_was_not_written_fails_and_an_optional_one_does_not(book: Book) -> None:
    """preflight need not write its snapshot; write must write its patch."""
    (book.root / "tasks.py").write_text(
        book.read("tasks.py").replace(', "state_patch": {"unit"', ', "prose2": {"unit"')
    )
    ran = book.go()
    assert "s1/preflight" in ran["made"]
    assert "s1/write" in ran["failed"]


@pytest.mark.parametrize(
    ("before", "after", "problem"),
    [
        ("[repair, state_repair, lint]", "[repair, lint]", "repeat must name the phases up to it"),
        ("[repair, state_repair, lint]", "[write, lint]", "repeat: [write, repair, state_repair, lint]"),
        ("[repair, state_repair, lint]", "[apply, lint]", "repeat: [lint]"),
        ("until: 'report.status == \"pass\"'", "until: 'import os'", "is not a condition"),
        ("until: 'report.status == \"pass\"'", "until: 'nothing.status'", "none of its outputs"),
        ("      lint:", "      write:", "given twice"),
        ("items: 'scenes[*].id'", "items: 'scenes[id'", "is not a path"),
        ("from: outline", "from: outlin", "did you mean outline?"),
        ("units: {from: outline, items: 'scenes[*].id', max: 50}", "units: ['../x']", "cannot name a unit"),
        ("requires_outputs: [patch]", "requires_outputs: [path]", "did you mean patch?"),
        ("work/{unit}/card.json", "../{unit}/card.json", "outside the project"),
        ("'scene:*/apply'", "'scene:*/appl'", "is not in the plan (did you mean scene:*/apply?)"),
        ("'scene:*/apply'", "'scenes:*/apply'", "is not in the plan (did you mean scene:*/apply?)"),
        ("pre_state: true\n      repair", "requires: ['nope:*/x']\n      repair", "which is no phase of a pipeline"),
        ("pre_state: true\n      repair", "requires: ['scene:*/plan']\n      repair", "of its own pipeline"),
        ("pre_state: true\n      repair", "requires: ['book:outline']\n      repair", "names this plan itself"),
        ("pre_state: true\n      repair", "requires: [s1/plan]\n      repair", "no artifact of the plan"),
        (
            "pre_state: true\n      repair",
            "requires: [plan]\n      repair",
            "(leave it out: a phase reads all phases before it, or those under inputs: [plan])",
        ),
        (
            "outputs: {pack: 'work/{unit}/pack.md'}",
            "produces: 'work/{unit}/pack.md'",
            "(the outputs of a phase have names: outputs: {text: 'out/{unit}.txt'})",
        ),
        ("make: tasks.py:plan", "run: 'date > {outputs.3}'", "name the path under outputs"),
        ("    state: state.json\n", "", "reads a state that nobody names"),
    ],
)
def test_a_pipeline_that_cannot_be_is_refused_with_its_line(book: Book, before: str, after: str, problem: str) -> None:
    """At load, before anything is made."""
    book.edit(before, after)
    done = book.do("run")
    assert done.code == 2
    assert problem in done.err
    assert "line " in done.err
    assert book.calls() == []


@pytest.mark.parametrize("applies", [True, False], ids=["changed by its units", "only read"])
def test_a_state_that_an_artifact_makes_is_made_before_any_unit_reads_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], applies: bool
) -> None:
    """Without a word that units require it; and when it is made anew, so are they."""
    book = Workshop(tmp_path)
    (tmp_path / "seed.txt").write_text("start\n")
    apply = "      apply: {run: 'echo {unit} >> {state}', outputs: {post: state.txt}}\n" if applies else ""
    book.file.write_text(
        "id: p\ngoal: g\nartifacts:\n  init: {produces: state.txt, run: 'cp seed.txt {output}'}\n"
        "pipelines:\n  scene:\n    units: [a, b]\n    state: state.txt\n    phases:\n"
        "      write: {run: 'cp {state} {outputs.text}', outputs: {text: '{unit}.txt'}, pre_state: true}\n" + apply
    )
    for start in ("start\n", "anew\n"):
        (tmp_path / "seed.txt").write_text(start)
        assert book.run(capsys, "run").code == 0
        assert (tmp_path / "a.txt").read_text() == start
        assert (tmp_path / "b.txt").read_text() == (f"{start}a\n" if applies else start)
        assert "Nothing to do" in book.run(capsys, "run").out


def test_an_exhausted_quota_pauses_and_says_where_and_until_when(tmp_path: Path) -> None:
    """Nothing has failed; the next run goes on at the phase that had to stop."""
    plan = Plan("quota", id="quota", project=tmp_path)
    pipeline = plan.pipeline("docs", units=["a", "b"], order="sequential")
    left = [1]

    @pipeline.phase(outputs={"label": "{unit}.txt"})
    def label(ctx: object) -> str:
        if not left:
            raise QuotaExhausted("slow down", retry_after=60)
        left.pop()
        return "fine"

    paused = plan.run(check=False, jobs=1)
    assert (paused.exit_code, paused.failed) == (75, {})
    assert paused.paused is not None
    assert (paused.paused.code, paused.paused.artifact) == ("quota", "b/label")
    assert paused.paused.until
    with pytest.raises(RunFailed, match=r"quota at ./label until 20"):
        plan.run(jobs=1)
    left.append(1)
    assert plan.run().made == ["b/label"]


def test_a_command_that_exits_75_pauses_the_run_and_status_tells(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """With the seconds that it asks for on stderr."""
    book = Book(tmp_path / "cmd", capsys)
    book.file.write_text(
        "id: cmd\ngoal: g\npipelines:\n  p:\n    units: [a]\n    phases:\n      ask:\n"
        "        run: 'echo \"Retry-After: 30\" >&2; exit 75'\n        outputs: {x: '{unit}.txt'}\n"
    )
    assert book.do("run").code == 75
    paused = book.do("status", "--json").json["paused"]
    assert (paused["code"], paused["unit"], paused["phase"]) == ("quota", "a", "ask")
    assert paused["until"]
    assert "Paused at a/ask: quota, until" in book.do("status").out
    assert "the run paused here (quota) until" in book.do("why", "a/ask").out


def test_what_a_command_is_told_by_its_environment_or_prompt_is_part_of_how_it_is_made(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The text of one unit is not taken for that of another, nor a round for the one before it."""
    book = Book(tmp_path / "told", capsys)
    book.prompt("try", "{{ iteration }}")
    book.file.write_text(
        "id: told\ngoal: g\npipelines:\n  p:\n    units: [a]\n    phases:\n      name: {run: 'echo $HEADWAY_UNIT'}\n"
        "      try:\n        run: 'if grep -q 3 {prompt}; then echo pass; else echo fail; fi > {output}'\n"
        "        templates: prompts/try.md\n        inputs: []\n        outputs: {said: '{unit}.txt'}\n"
        "        repeat: [try]\n        until: 'said == \"pass\"'\n        times: 2\n"
    )
    assert "after 2 rounds" in book.go()["failed"]["a/try"]
    book.edit("times: 2", "times: 3")
    book.edit("[a]", "[a, b]")
    assert book.go()["status"] == "completed"
    assert book.do("show", "b/name").out.endswith("\nb\n")
    assert book.read("a.txt") == "pass\n"


def test_what_only_stands_for_others_is_not_counted_among_what_is_blocked(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Nobody makes it, so nobody waits for it; asked about, it names what is in the way."""
    book = Book(tmp_path / "loop", capsys)
    book.file.write_text(
        "id: loop\ngoal: g\npipelines:\n  p:\n    units: [a, b]\n    order: sequential\n    phases:\n"
        "      f: {run: 'echo x > {outputs.o}', outputs: {o: 'o/{unit}.txt'}}\n"
        "      c: {run: 'echo no > {outputs.r}', outputs: {r: 'o/{unit}.r'}, repeat: [f, c], until: 'r == \"yes\"'}\n"
        "      z: {run: 'echo z > {outputs.z}', outputs: {z: 'o/{unit}.z'}}\n"
    )
    ran = book.go()
    assert (list(ran["failed"]), list(ran["blocked"])) == (["a/c"], ["a/z", "b/f~1", "b/c~1", "b/z"])
    assert "Next: headway why a/c" in book.do("why", "b/f").out


def test_what_only_stands_for_others_is_not_counted_among_what_is_to_make(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A loop is its rounds: `reset`, a limit and whoever waits name what somebody makes."""
    shop = Workshop(tmp_path / "loops")
    shop.file.write_text(
        "id: loops\ngoal: Loops\njobs: 1\npipelines:\n  p:\n    units: [a, b, c]\n    phases:\n"
        "      d: {run: 'echo d > {outputs.d}', outputs: {d: 'o/{unit}.d'}}\n"
        "      f: {run: 'echo f > {outputs.f}', outputs: {f: 'o/{unit}.f'}}\n"
        "      c: {run: 'echo yes > {outputs.r}', outputs: {r: 'o/{unit}.r'}, repeat: [f, c], until: 'r == \"yes\"',"
        " times: 2}\n",
        encoding="utf-8",
    )
    assert len(shop.run(capsys, "run", "--json").json["made"]) == 9
    assert "reset: 3 artifacts to make." in shop.run(capsys, "reset", "a").out
    assert shop.run(capsys, "reset", "b", "--json").json["reset"] == ["b/d", "b/f~1", "b/c~1"]
    assert "reset: 9 artifacts to make." in shop.run(capsys, "reset", "--all").out
    assert shop.run(capsys, "run", "--limit", "2").out.splitlines()[-1].startswith("2 made, 7 left by --limit in ")
    shop.edit("{run: 'echo f > {outputs.f}', outputs", "{outputs")
    assert len(shop.run(capsys, "run", "--json").json["waiting"]) == 6


def test_what_commands_made_before_their_unit_counted_is_kept(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A better way of telling things apart is no reason to make them again."""
    book = Book(tmp_path / "told", capsys)
    book.file.write_text(
        "id: told\ngoal: g\npipelines:\n  p:\n    units: [a, b]\n    phases:\n"
        "      w: {run: 'echo $HEADWAY_UNIT > {outputs.o}', outputs: {o: '{unit}.txt'}}\n"
    )
    with monkeypatch.context() as earlier:
        earlier.setattr("headway.engine.digests.recipe_digest", partial(recipe_digest, names_itself=False))
        assert sorted(book.go()["made"]) == ["a/w", "b/w"]
    assert book.go()["made"] == []
    book.edit("echo $HEADWAY_UNIT", "echo the $HEADWAY_UNIT")
    assert sorted(book.go()["made"]) == ["a/w", "b/w"]


def test_what_commands_made_before_their_unit_counted_is_reused_for_their_own_unit(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """However long ago; what another unit made in the same way is not taken for it."""
    book = Book(tmp_path / "told", capsys)
    book.file.write_text(
        "id: told\ngoal: g\nvars: {v: 1}\npipelines:\n  p:\n    units: [a]\n    phases:\n"
        "      w: {run: 'echo $HEADWAY_UNIT {vars.v}'}\n      x: {run: 'echo x > {output}', outputs: {o: '{unit}.x'}}\n"
    )
    with monkeypatch.context() as earlier:
        earlier.setattr("headway.engine.digests.recipe_digest", partial(recipe_digest, names_itself=False))
        for value in ("1", "2"):
            assert "a/w" in book.go("--set", f"v={value}")["made"]
    back = book.go("--set", "v=1")
    assert (back["made"], back["reused"]) == ([], ["a/w", "a/x"])
    book.edit("[a]", "[a, b]")
    assert "b/w" in book.go("--set", "v=1")["made"]
    assert book.do("show", "b/w").out.endswith("\nb 1\n")


def test_files_are_units_and_a_changed_file_touches_its_unit_alone(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The prompt of a command is a file; new files are new units."""
    book = Book(tmp_path / "docs", capsys)
    (book.root / "docs").mkdir()
    for name in ("a", "b"):
        (book.root / f"docs/{name}.md").write_text(f"text of {name}")
    (book.root / "prompts/label.md").write_text("Label {{ unit }}: {{ text }}\n")
    book.file.write_text(
        "id: labels\ngoal: g\nartifacts:\n  all: {requires: ['docs:*/label'], produces: all.json,"
        " run: 'cp {inputs[docs:*/label]} {output}'}\n"
        "pipelines:\n  docs:\n    units: {files: 'docs/*.md'}\n    phases:\n      label:\n"
        "        run: 'cat {prompt} > {output}; test -f \"$HEADWAY_PROMPT\"'\n"
        "        templates: prompts/label.md\n        outputs: {label: 'labels/{unit}.txt'}\n"
    )
    assert set(book.go()["made"]) == {"a/label", "b/label", "all"}
    assert book.read("labels/a.txt") == "Label a: text of a\n"
    assert book.go()["made"] == []
    (book.root / "docs/b.md").write_text("other text")
    (book.root / "docs/c.md").write_text("text of c")
    assert set(book.go()["made"]) == {"b/label", "c/label", "all"}
    (book.root / "docs/a.md").unlink()
    assert book.go()["made"] == ["all"]
    assert book.json("all.json").keys() == {"b", "c"}


def test_what_units_come_to_are_no_units_whatever_the_pattern(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Else every run would go on with what the one before has left. What is changed in its own place stays one."""
    shop = Workshop(tmp_path)
    shop.file.write_text(
        "id: p\ngoal: g\npipelines:\n  t:\n    units: {files: '**/*.md'}\n    phases:\n"
        "      turn: {run: 'tr a-z A-Z < {file} > {outputs.o}', outputs: {o: 'turned/{unit}.md'}}\n"
    )
    (tmp_path / "docs").mkdir()
    for name in ("a.md", "docs/b.md"):
        (tmp_path / name).write_text("text\n")
    assert sorted(shop.run(capsys, "run", "--json").json["made"]) == ["a/turn", "docs/b/turn"]
    assert shop.run(capsys, "run").out.startswith("Nothing to do: 2 artifacts")
    (tmp_path / "c.md").write_text("more\n")
    assert shop.run(capsys, "run", "--json").json["made"] == ["c/turn"]


def test_two_files_of_one_unit_are_both_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    shop = Workshop(tmp_path)
    shop.file.write_text("id: p\ngoal: g\npipelines: {t: {units: {files: 'docs/*'}, phases: {turn: {run: 'true'}}}}\n")
    (tmp_path / "docs").mkdir()
    for name in ("a.md", "a.txt"):
        (tmp_path / f"docs/{name}").write_text("text\n")
    refused = shop.run(capsys, "run")
    assert refused.code == 2
    assert "unit a is there twice: docs/a.md and docs/a.txt" in refused.err


def test_shared_state_is_handed_on_in_order_even_when_units_are_independent(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Whatever runs at once, each unit finds what the one before it left."""
    book = Book(tmp_path / "wide", capsys, units=4, order="independent")
    book.needs(s1=2, s3=3)
    assert book.go("-j", "8")["status"] == "completed"
    assert book.json("state.json")["applied"] == ["s1", "s2", "s3", "s4"]
    assert book.go()["made"] == []


def test_shared_state_is_handed_on_in_the_order_of_the_units_and_not_of_their_names(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Somebody who requires all of them, the book, has no say in it."""
    book = Book(tmp_path / "wide", capsys, order="independent")
    book.outline(["s9", "s10", "s1"])
    assert book.go("-j", "8")["status"] == "completed"
    assert book.json("state.json")["applied"] == ["s9", "s10", "s1"]


@pytest.mark.parametrize("order", ["sequential", "independent"])
def test_units_in_another_order_hand_on_the_state_in_that_order(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], order: str
) -> None:
    """One run does it: whoever requires all units waits for those that are made again, and is made once."""
    book = Book(tmp_path / "order", capsys, units=3, order=order)
    book.go()
    book.outline(["s1", "s3", "s2"])
    made = book.go()["made"]
    assert book.json("state.json")["applied"] == ["s1", "s3", "s2"]
    assert (made.count("book"), made[-1]) == (1, "book")
    assert book.go("--rerun", "outline")["made"] == ["outline"]


@pytest.mark.parametrize("order", ["sequential", "independent"])
def test_listed_units_in_another_order_reach_whoever_gathers_them(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], order: str
) -> None:
    """As where an artifact names them; changed back it is what it was, and nothing of the units is made for it."""
    shop = Workshop(tmp_path)
    plan = f"""
id: p
goal: g
artifacts:
  book: {{requires: ['s:*/write'], produces: book.json, run: "cp {{inputs[s:*/write]}} {{output}}"}}
pipelines:
  s:
    units: [b, a, c]
    order: {order}
    phases: {{write: {{run: "echo {{unit}} > {{output}}", outputs: {{o: '{{unit}}.txt'}}}}}}
"""

    def listed() -> list[str]:
        return list(json.loads((tmp_path / "book.json").read_text()))

    shop.file.write_text(plan)
    assert shop.run(capsys, "run").code == 0
    for units in (["a", "b", "c"], ["c", "b", "a"]):
        shop.file.write_text(plan.replace("[b, a, c]", f"[{', '.join(units)}]"))
        assert "s:*/write: the order of its units changed\n" in shop.run(capsys, "why", "book").out
        assert "Nothing to do" in shop.run(capsys, "run", "a").out
        assert shop.run(capsys, "run", "--json").json["made"] == ["book"]
        assert listed() == units
        assert "Nothing to do" in shop.run(capsys, "run").out
    shop.file.write_text(plan)
    assert shop.run(capsys, "run", "--json").json["reused"] == ["book"]
    assert listed() == ["b", "a", "c"]
    shop.file.write_text(plan.replace("[b, a, c]", "[b, c]"))
    assert shop.run(capsys, "run", "--json").json["made"] == ["book"]
    assert shop.run(capsys, "doctor").code == 0


def test_units_that_failed_can_change_places(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Who waited for whom does not count any more."""
    book = Book(tmp_path / "places", capsys, units=3)
    book.stop_at("apply")
    book.go()
    book.stop_at("")
    book.outline(["s3", "s2", "s1"])
    assert book.go()["status"] == "completed"
    assert book.json("state.json")["applied"] == ["s3", "s2", "s1"]


def test_the_history_knows_the_prompt_that_something_was_made_with(book: Book) -> None:
    """As it was given, and the command that shows it."""
    book.prompt("write", "write {{ unit }} well")
    book.go()
    (made,) = book.do("dag", "provenance", "s1/write", "--json").json["made_by"]
    assert "write s1 well" in made["prompt"]["text"]
    assert "  prompt: headway show s1/write --prompt --plan-id book\n" in book.do("dag", "provenance", "s1/write").out
    assert "write s1 well" in book.do("show", "s1/write", "--prompt", "--plan-id", "book").out
