"""Units go on although something is in the way: files that change meanwhile, runs that die, outlines that shrink."""

from __future__ import annotations

import json
import shlex
import sys
import tarfile
from pathlib import Path
from typing import Any

import pytest

from headway import Plan
from headway.core.evolve import fold
from headway.core.pipelines import Unit, expand
from headway.core.plan import Phase, Pipeline
from headway.core.state import MOVED
from headway.engine import archive
from headway.engine.recipes.function import Context
from headway.errors import PlanInvalid
from headway.files.planfile import parse_plan
from headway.project import Project
from tests.behaviour.scenes import Book
from tests.processes import finish, soon, start
from tests.workshop import Workshop

ECHO = """\
id: p
goal: g
pipelines:
  essay:
    units: UNITS
    phases:
      write: {make: 'tasks.py:echo', templates: prompts/write.md, outputs: {prose: 'work/{unit}/prose.md'}}
"""


HANDED_ON = """\
id: p
goal: g
pipelines:
  scene:
    units: [s1, s2]
    state: state.txt
    phases:
      write: {run: 'cat {prompt} > {outputs.prose}', templates: prompts/write.md, outputs: {prose: 'work/{unit}.md'}}
      apply: {run: 'cat {inputs.write} >> {state}', outputs: {state: state.txt}}
"""

OUTLINE = """\
artifacts:
  outline: {produces: outline.json, run: "echo 'not json' > {output}"}
pipelines:"""


def add_task(book: Book, before: str, text: str) -> None:
    """Put something into the recipes."""
    tasks = book.read("tasks.py")
    assert before in tasks
    (book.root / "tasks.py").write_text(tasks.replace(before, text))


def prompt_changes(book: Book) -> list[dict[str, Any]]:
    """All changes of prompts that were permitted, with what they were permitted for."""
    events = book.do("log", "--json").json["events"]
    return [change for e in events if e["type"] == "recipe_changed" for change in e["data"]["changes"]]


def test_a_state_that_another_process_changes_while_a_phase_reads_it_leaves_that_phase_stale(book: Book) -> None:
    """The run ends with exit 1 and names the file; whoever changed it keeps the change."""
    changed = '{"applied": ["ghost"], "words": 7}'
    add_task(
        book,
        "def write(ctx):\n    note(ctx)\n",
        f"def write(ctx):\n    note(ctx)\n    if ctx.unit == 's1': (ctx.root / 'state.json').write_text('{changed}')\n",
    )
    ran = book.do("run")
    assert ran.code == 1
    assert "s1/write: state.json changed after it was read" in ran.out
    assert book.read("state.json") == changed
    assert "s1/apply" not in book.calls()


def test_an_apply_that_dies_after_it_changed_the_state_is_applied_once(book: Book) -> None:
    """The state is put back to what the apply before it recorded, and the key is on record."""
    died = "    if ctx.unit == 's2' and not (ctx.root / 'died.txt').exists():\n"
    died += "        (ctx.root / 'died.txt').write_text('')\n        ctx.state.write_text(json.dumps(state))\n"
    died += "        os.kill(os.getpid(), 9)\n"
    add_task(book, '    return {"post_state"', f'{died}    return {{"post_state"')
    assert finish(start(book.root))[0] == -9
    assert book.json("state.json")["applied"] == ["s1", "s2"]
    assert book.go()["status"] == "completed"
    assert book.json("state.json")["applied"] == ["s1", "s2"]
    first, second = (book.json(f".headway/phases/{u}.json")["phases"]["apply"]["applied"] for u in ("s1", "s2"))
    assert first["idempotency_key"] != second["idempotency_key"]
    assert second["files"]["state.json"]["before"] == first["files"]["state.json"]["after"]


def test_what_a_killed_attempt_left_is_still_known_after_one_that_could_not_even_begin(book: Book) -> None:
    """Nobody is asked about it, and nothing is applied to it."""
    for phase, code in (("write", 'ctx.paths["prose"].write_text("half")'), ("apply", 'ctx.state.write_text("half")')):
        died = f"    if not (ctx.root / '{phase}.txt').exists():\n        (ctx.root / '{phase}.txt').write_text('')\n"
        died += f"        {code}\n        os.kill(os.getpid(), 9)\n"
        add_task(book, f"def {phase}(ctx):\n    note(ctx)\n", f"def {phase}(ctx):\n    note(ctx)\n{died}")
    book.edit(
        "        make: tasks.py:apply\n", "        make: tasks.py:apply\n        templates: {phase: prompts/apply.md}\n"
    )
    book.prompt("apply", "apply")
    for phase in ("write", "apply"):
        assert finish(start(book.root))[0] == -9
        prompt = book.root / f"prompts/{phase}.md"
        text = prompt.read_text()
        prompt.unlink()
        for _ in range(2):
            assert "does not exist" in book.go()["failed"][f"s1/{phase}"]
        prompt.write_text(text)
    assert book.go()["status"] == "completed"
    assert book.json("state.json")["applied"] == ["s1", "s2"]


def test_an_outline_that_shrinks_while_its_units_run_takes_them_away_with_the_next_run(book: Book) -> None:
    """What is in hand is finished, and nobody makes more of a unit that is gone."""
    book.outline(3)
    fewer = json.dumps({"scenes": [{"id": "s1", "title": "Scene s1"}]})
    add_task(
        book,
        "def write(ctx):\n    note(ctx)\n",
        f"def write(ctx):\n    note(ctx)\n    (ctx.root / 'idea.json').write_text('{fewer}')\n",
    )
    book.go()
    book.calls()
    ran = book.go()
    assert ran["status"] == "completed"
    assert {a.partition("/")[0] for a in book.load("book").state.artifacts} >= {"s1"}
    assert not [a for a in book.load("book").state.artifacts if a.startswith(("s2/", "s3/"))]
    assert not [a for a in book.calls() if a.startswith(("s2/", "s3/"))]
    assert book.go()["made"] == []


def test_a_unit_that_somebody_has_in_hand_stays_until_they_are_done(book: Book) -> None:
    """An outline that shrinks takes nothing out of anybody's hands."""
    book.outline(3)
    book.stop_at("s3/plan")
    book.go()
    assert book.do("claim", "s3/plan", "--by", "ann").code == 0
    book.stop_at("")
    book.outline(2)
    book.go()
    assert "s3/plan" in book.load("book").state.artifacts
    assert book.do("fail", "s3/plan", "--error", "no time", "--by", "ann").code == 0
    assert book.go()["status"] == "completed"
    assert "s3/plan" not in book.load("book").state.artifacts


def test_replaying_an_expansion_asks_no_file(book: Book) -> None:
    """All artifacts are in the event, with the digest of what caused it."""
    book.go()
    before = book.load("book").state
    for name in ("idea.json", "outline.json", "tasks.py", "headway.yaml"):
        (book.root / name).unlink()
    replayed = fold(None, book.history("book"))
    assert replayed is not None
    assert (replayed.artifacts, replayed.units) == (before.artifacts, before.units)
    assert replayed.units["scene"].cause


def test_the_prompt_of_an_attempt_is_kept_and_its_hash_is_that_of_its_bytes(book: Book) -> None:
    """`show --prompt` is what the recipe was given; the phase ledger names it, its templates and their hashes."""
    book.go()
    prompt = book.do("show", "s1/write", "--prompt").out
    assert prompt.rstrip("\n") == "You write.\n\nwrite s1"
    write = book.json(".headway/phases/s1.json")["phases"]["write"]
    kept = (book.root / write["artifacts"]["prompt"]).read_bytes()
    assert kept.decode().rstrip("\n") == prompt.rstrip("\n")
    assert write["artifacts"]["prompt"].endswith(write["prompt_hash"])
    assert write["template_set"] == {"system": "prompts/system.md", "phase": "prompts/write.md"}
    assert set(write["template_hashes"]) == {"system: prompts/system.md", "phase: prompts/write.md"}
    plan = book.do("show", "s1/plan", "--response").out
    assert plan.rstrip("\n") == "You write.\n\nplan s1"


def test_trying_a_prompt_on_3_of_60_units_and_going_back_makes_nothing(book: Book) -> None:
    """The other 57 stay as they are and undecided; the three old outputs are back byte for byte."""
    names = [f"s{n:02}" for n in range(60)]
    book.file.write_text(ECHO.replace("UNITS", f"[{', '.join(names)}]"))
    (book.root / "tasks.py").write_text(
        f"{book.read('tasks.py')}\ndef echo(ctx):\n    note(ctx)\n    return ctx.prompt\n"
    )
    book.stop_at("s59/write")
    book.go()
    book.stop_at("")
    old = {name: book.read(f"work/{name}/prose.md") for name in names[:59]}
    book.calls()
    book.prompt("write", "write anew {{ unit }}")
    tried = book.go("s00", "s01", "s02", "--prompt-change", "a try")
    assert sorted(tried["made"]) == ["s00/write", "s01/write", "s02/write"]
    assert book.go()["decisions"][0]["artifacts"] == [f"{name}/write" for name in names[3:59]]
    book.prompt("write", "write {{ unit }}")
    book.calls()
    back = book.go(*names[:59])
    assert (back["made"], sorted(back["reused"])) == ([], ["s00/write", "s01/write", "s02/write"])
    assert book.calls() == []
    assert {name: book.read(f"work/{name}/prose.md") for name in names[:59]} == old


def test_with_a_state_handed_on_a_prompt_is_tried_on_the_units_asked_for_alone(book: Book) -> None:
    """The units before them stand as they were made, and so does the state that they hand on; going back is free."""
    names = [f"s{n}" for n in range(1, 61)]
    book.edit("max: 50", "max: 60")
    book.outline(len(names))
    book.stop_at("s59/write")
    book.go()
    book.stop_at("")
    tried = [book.json(f".headway/phases/{name}.json")["phases"] for name in names[29:32]]
    files = [path for path in sorted((book.root / "work").rglob("*")) if path.is_file()]
    old = {path: path.read_bytes() for path in (*files, book.root / "state.json")}
    book.calls()
    book.prompt("write", "write anew {{ unit }}")
    asked = book.go("s30", "s31", "s32")["decisions"]
    assert [question["artifacts"] for question in asked] == [["s30/write", "s31/write", "s32/write"]]
    ran = book.go("s30", "s31", "s32", "--prompt-change", "a try")
    assert ran["status"] == "completed"
    assert {a.partition("/")[0] for a in (*ran["made"], *book.calls())} == {"s30", "s31", "s32"}
    assert ran["undecided"] == [f"{name}/write" for name in names[:29]]
    assert "anew" in book.read("work/s31/prose.md")
    assert [change["artifacts"] for change in prompt_changes(book)] == [["s30/write", "s31/write", "s32/write"]]
    first = book.json(".headway/phases/s30.json")["phases"]["continuity_pack"]
    assert first["pre_state_hash"] == tried[0]["continuity_pack"]["pre_state_hash"]
    assert book.go()["decisions"][0]["artifacts"] == [f"{n}/write" for n in names[:58] if n not in names[29:32]]
    book.prompt("write", "write {{ unit }}")
    back = book.go(*names[:58])
    assert (back["made"], book.calls()) == ([], [])
    assert {path: path.read_bytes() for path in old} == old


def test_units_before_the_targets_are_made_where_more_than_their_prompt_is_missing(book: Book) -> None:
    """What was never made, and what failed with the new prompt, has no bytes to stand with."""
    book.stop_at("s1/apply")
    book.go()
    book.stop_at("")
    book.calls()
    book.prompt("write", "write anew {{ unit }}")
    ran = book.go("s2")
    assert (ran["status"], ran["undecided"]) == ("completed", ["s1/write"])
    assert [a for a in book.calls() if a.startswith("s1/")] == ["s1/apply"]
    assert "anew" not in book.read("work/s1/prose.md")
    assert "anew" in book.read("work/s2/prose.md")
    assert "s1/write stands as it was made with the prompt before" in book.do("run", "s2").out


def test_units_before_the_targets_stand_whatever_else_has_changed(book: Book) -> None:
    """Or a draft made anew would be paired with what was repaired from the old one. A whole run makes all of it."""
    book.go()
    before = {path: path.read_bytes() for path in (book.root / "work/s1").iterdir()}
    book.calls()
    add_task(book, 'return {"title": ctx.item["title"],', 'return {"title": ctx.item["title"].upper(),')
    book.prompt("write", "write anew {{ unit }}")
    book.go("s2")
    assert {a.partition("/")[0] for a in book.calls()} == {"s2"}
    assert {path: path.read_bytes() for path in before} == before
    assert {"s1/plan", "s1/write", "s1/apply", "s2/apply"} <= set(book.go()["made"])
    assert book.go()["made"] == []


def test_what_follows_from_a_failed_phase_of_a_unit_before_is_made_with_it(book: Book) -> None:
    """It has nothing else to be made from."""
    book.go()
    book.prompt("write", "write anew {{ unit }}")
    book.stop_at("s1/write")
    book.go()
    book.stop_at("")
    book.calls()
    ran = book.go("s2", "--prompt-change", "a try")
    assert (ran["status"], ran["undecided"]) == ("completed", [])
    assert {"s1/write", "s1/repair~1", "s1/apply"} <= set(book.calls())


def test_a_prompt_that_was_tried_on_a_unit_before_and_changed_back_costs_nothing(book: Book) -> None:
    """That unit is taken from its blobs, not left with the try."""
    book.outline(3)
    book.go()
    state = book.read("state.json")
    book.prompt("write", "write anew {{ unit }}")
    book.go("s2")
    book.prompt("write", "write {{ unit }}")
    book.calls()
    back = book.go("s3")
    assert (back["made"], book.calls(), back["undecided"]) == ([], [], [])
    assert "s2/write" in back["reused"]
    assert book.read("state.json") == state


def test_changing_back_costs_nothing_though_a_loop_was_gone_round_less_often_in_between(book: Book) -> None:
    """What is behind a loop of a unit before cannot be foreseen then, and was made with this very prompt before."""
    book.outline(3)
    book.needs(s1=2)
    book.go()
    book.prompt("write", "write anew {{ unit }}")
    book.needs(s1=1)
    book.go("s1", "s2")
    assert "s1/lint~2" not in book.load("book").state.artifacts
    book.prompt("write", "write {{ unit }}")
    book.needs(s1=2)
    book.calls()
    back = book.go("s3")
    assert (back["made"], book.calls()) == ([], [])
    assert "s1/lint~2" in back["reused"]


def test_a_phase_that_was_skipped_stands_like_the_others_of_its_unit(book: Book) -> None:
    """So do those after it, and the units between."""
    book.go()
    book.do("skip", "s1/plan", "--reason", "none needed")
    book.prompt("write", "write anew {{ unit }}")
    book.calls()
    assert book.go("s2")["undecided"] == ["s1/write"]
    assert {a.partition("/")[0] for a in book.calls()} == {"s2"}


def test_what_somebody_edited_in_a_unit_before_is_followed_once_it_is_accepted(book: Book) -> None:
    """Or what was made from it would be paired with other bytes."""
    book.go()
    (book.root / "work/s1/card.json").write_text('{"title": "Mine", "prompt": "-"}')
    book.prompt("write", "write anew {{ unit }}")
    held = book.go("s2")
    assert [d["code"] for d in held["decisions"]] == ["output_modified"]
    book.calls()
    ran = book.go("s2", "--accept-edits")
    assert {"s1/write", "s1/apply", "s2/apply"} <= set(ran["made"])
    assert "Mine" in book.read("work/s1/prose.md")


@pytest.mark.parametrize("signal", [2, 9])
def test_after_an_apply_that_was_cut_off_and_a_prompt_changed_back_the_state_is_as_it_was(
    book: Book, signal: int
) -> None:
    """Though nothing has to be made; what the dead apply left is kept, and edits are asked about as ever."""
    died = (
        f"    if (ctx.root / 'die').exists():\n        ctx.state.write_text('half'); os.kill(os.getpid(), {signal})\n"
    )
    add_task(
        book,
        "    patch = json.loads(ctx.inputs[",
        f"{died}        import time; time.sleep(2)\n    patch = json.loads(ctx.inputs[",
    )
    book.outline(3)
    book.go()
    state = book.read("state.json")
    book.prompt("write", "write anew {{ unit }}")
    (book.root / "die").write_text("")
    assert finish(start(book.root, "s2"))[0] == (130 if signal == 2 else -9)
    (book.root / "die").unlink()
    assert book.read("state.json") == "half" or signal == 2
    book.prompt("write", "write {{ unit }}")
    back = book.go()
    assert (back["status"], back["made"]) == ("completed", [])
    assert book.read("state.json") == state
    (book.root / "state.json").write_text("mine")
    assert [d["code"] for d in book.go()["decisions"]] == ["output_modified"]
    assert book.read("state.json") == "mine"


def test_a_unit_before_the_targets_that_is_moved_behind_them_meanwhile_is_left_alone(book: Book) -> None:
    """The outline that says so is made in that very run."""
    book.outline(["s1", "s2", "s3"])
    book.go()
    book.outline(["s3", "s1", "s2"])
    book.prompt("write", "write anew {{ unit }}")
    book.calls()
    ran = book.go("s3")
    assert {a.partition("/")[0] for a in book.calls()} == {"s3"}
    assert ran["undecided"] == ["s1/write", "s2/write"]


def test_a_unit_before_the_targets_is_no_unit_of_its_neighbours(book: Book) -> None:
    """One that was reset has no other made with the new prompt; one whose phase has a new output is made after all."""
    book.outline(3)
    book.go()
    book.do("reset", "s1")
    book.prompt("write", "write anew {{ unit }}")
    book.calls()
    book.go("s3")
    assert {a.partition("/")[0] for a in book.calls()} == {"s1", "s3"}
    book.edit(
        "outputs: {pack: 'work/{unit}/pack.md'}", "outputs: {pack: 'work/{unit}/pack.md', log: 'work/{unit}/pack.log'}"
    )
    add_task(book, 'return f"before: {ctx.state.read_text()}\\n"', 'return {"pack": "p", "log": ctx.unit}')
    assert book.go("s3")["status"] == "completed"
    assert book.read("work/s2/pack.log") == "s2"


def test_a_state_that_is_a_link_out_of_the_project_is_refused_before_anything_is_applied(
    book: Book, tmp_path: Path
) -> None:
    """Or each attempt would apply to the file outside once more."""
    outside = tmp_path / "outside.json"
    outside.write_text('{"applied": [], "words": 0}')
    (book.root / "state.json").unlink()
    (book.root / "state.json").symlink_to(outside)
    for _ in range(2):
        assert "state.json is a link out of the project" in book.go()["failed"]["s1/apply"]
    assert "s1/apply" not in book.calls()
    assert outside.read_text() == '{"applied": [], "words": 0}'


def test_a_loop_of_a_unit_before_that_has_to_go_on_is_gone_round(book: Book) -> None:
    """What only stands for it does not stand on rounds that were not made then."""
    book.go()
    add_task(book, "def lint(ctx):\n", "def lint(ctx):\n    (ctx.root / 'fail').exists() and 1 / 0\n")
    (book.root / "fail").write_text("")
    book.go("s1")
    (book.root / "fail").unlink()
    book.needs(s1=2)
    book.prompt("write", "write anew {{ unit }}")
    book.calls()
    ran = book.go("s2", "--prompt-change", "a try")
    assert ran["status"] == "completed"
    assert {"s1/lint~1", "s1/repair~2", "s1/lint~2", "s1/apply"} <= set(book.calls())
    assert "s1/write" not in ran["made"]


def test_a_unit_before_that_waits_at_a_gate_says_so(book: Book) -> None:
    """It stands no more than anybody else's that nobody has let pass."""
    book.edit("      plan:\n        make:", "      plan:\n        gates: {editor: {by: [ann]}}\n        make:")
    book.go()
    book.prompt("plan", "plan anew {{ unit }}")
    told = book.go("s2")
    assert "s1/plan" in told["waiting"]


def test_a_gate_that_is_added_to_a_phase_is_asked_about_units_that_are_done(book: Book) -> None:
    """As it is of any artifact; nothing is made again for it."""
    book.go()
    book.calls()
    book.edit("      plan:\n        make:", "      plan:\n        gates: {editor: {by: [ann]}}\n        make:")
    assert set(book.go()["waiting"]) >= {"s1/plan"}
    for unit in ("s1", "s2"):
        assert book.do("gate", f"{unit}/plan", "editor", "approve", "--by", "ann").code == 0
    assert book.go()["status"] == "completed"
    assert book.calls() == []


def test_making_all_of_a_unit_anew_is_no_answer_for_what_it_requires(book: Book) -> None:
    """Its prompt is asked about all the same, and what would not decide is not offered."""
    book.edit("    make: tasks.py:outline\n", "    make: tasks.py:outline\n    templates: prompts/outline.md\n")
    book.prompt("outline", "outline")
    book.stop_at("s2/apply")
    book.go()
    book.stop_at("")
    book.prompt("outline", "outline anew")
    for words in (("s1",), ("s1", "--rerun-all")):
        (decision,) = book.go(*words)["decisions"]
        assert decision["artifacts"] == ["outline"]
        assert decision["flags"] == ["--resume-allow-prompt-change REASON", "--rerun-from outline"]


def test_a_prompt_of_one_unit_is_answered_by_making_that_unit_anew_and_no_other(book: Book) -> None:
    """A phase is named only where every unit was made with the prompt: what is priced is what is offered."""
    book.edit("    phases:\n", "    overrides: {s2: {write: {phase: prompts/special.md}}}\n    phases:\n")
    book.prompt("special", "special")
    book.stop_at("s2/apply")
    book.go()
    book.stop_at("")
    book.prompt("special", "more special")
    (decision,) = book.go()["decisions"]
    assert (decision["artifacts"], decision["flags"][1]) == (["s2/write"], "--rerun-from s2/write")
    book.prompt("special", "special")
    book.prompt("write", "written anew")
    (decision,) = book.go()["decisions"]
    assert (decision["artifacts"], decision["flags"][1]) == (["s1/write"], "--rerun-from s1/write")
    book.calls()
    assert book.go("--rerun-from", "s1/write")["status"] == "completed"
    assert not {"s2/plan", "s1/plan"} & set(book.calls())


def test_all_of_a_unit_anew_leaves_what_units_come_from(book: Book) -> None:
    """And the units before it; an artifact outside of the pipeline has all that it is made from made anew."""
    book.go()
    ran = book.go("s2", "--rerun-all")
    assert {a.partition("/")[0] for a in ran["made"]} == {"s2"}
    assert {"outline", "book", "s1/apply", "s2/apply"} <= set(book.go("book", "--rerun-all")["made"])
    book.edit(
        "  book:\n",
        "  blurb: {requires: [s2/write], produces: blurb.md, run: 'cp work/s2/prose.md blurb.md'}\n  book:\n",
    )
    book.go()
    made = {a.partition("/")[0] for a in book.go("blurb", "--rerun-all")["made"]}
    assert made == {"outline", "s2", "blurb"}, "a unit of which only the state is wanted is not made anew"


def test_a_try_that_was_permitted_and_cut_off_is_not_asked_about_again(book: Book) -> None:
    """The reason is on record for these units and this very prompt; for no other."""
    book.stop_at("s2/apply")
    book.go()
    book.stop_at("")
    book.prompt("write", "write anew {{ unit }}")
    add_task(
        book, "def write(ctx):\n", "def write(ctx):\n    if (ctx.root / 'late').exists(): raise QuotaExhausted()\n"
    )
    add_task(book, "import json", "from headway import QuotaExhausted\nimport json")
    (book.root / "late").write_text("")
    assert book.go("s1", "--prompt-change", "a try")["status"] == "paused"
    (book.root / "late").unlink()
    assert book.go("s1")["status"] == "completed"
    book.prompt("write", "write once more {{ unit }}")
    assert book.go("s1")["decisions"]


def test_a_prompt_change_needs_a_reason(book: Book) -> None:
    """Without one nothing could be recorded."""
    assert "say why, for the record" in book.do("run", "--prompt-change", " ").err


def test_what_was_complete_and_is_being_made_again_is_resumed(book: Book) -> None:
    """After an interruption `headway resume` finds it, and `status` says what happened."""
    book.go()
    book.prompt("write", "write anew {{ unit }}")
    add_task(book, "def lint(ctx):\n", "def lint(ctx):\n    if (ctx.root / 'kill').exists(): os.kill(os.getpid(), 2)\n")
    (book.root / "kill").write_text("")
    assert finish(start(book.root))[0] == 130
    (book.root / "kill").unlink()
    assert "The last run was stopped on the way" in book.do("status").out
    assert book.do("resume").code == 0
    assert book.do("status", "--check").code == 0


def test_what_is_asked_for_by_until_or_by_what_requires_all_units_is_made_with_the_new_prompt(book: Book) -> None:
    """Only a state that is handed on leaves units as they are."""
    book.go()
    for words, units in ((("--until", "s2/apply"), {"s1", "s2"}), (("book",), {"s1", "s2"}), (("s2",), {"s2"})):
        book.calls()
        book.prompt("write", f"write {{{{ unit }}}} for {words}")
        book.go(*words)
        assert {a.partition("/")[0] for a in book.calls() if a.endswith("/write")} == units


def test_a_run_of_the_last_unit_leaves_nothing_that_says_all_were_up_to_date(book: Book) -> None:
    """It is about every artifact of the plan, and those before it are undecided."""
    book.file.write_text(HANDED_ON)
    book.go()
    book.prompt("write", "write anew {{ unit }}")
    for _ in range(2):
        book.go("s2")
        assert book.do("status", "--check").code == 1
    assert book.read("state.txt") == "write s1\nwrite anew s2\n"
    assert book.go()["made"] == ["s1/write", "s1/apply", "s2/apply"]


def test_rerun_from_a_phase_of_several_pipelines_has_to_say_which(book: Book) -> None:
    """Exit 2, and nothing is made."""
    book.edit("pipelines:\n", "pipelines:\n  note:\n    units: [n1]\n    phases:\n      plan: {run: 'true'}\n")
    book.go()
    book.calls()
    refused = book.do("run", "--rerun-from", "plan")
    assert refused.code == 2
    assert book.calls() == []
    assert f"next: headway run --project {book.root} note --rerun-from '*/plan'" in refused.err
    assert book.go("note", "--rerun-from", "*/plan")["made"] == ["n1/plan"]


def test_a_pattern_after_rerun_from_means_those_of_the_targets(book: Book) -> None:
    """As a phase does: the unit before it, whose state it goes on from, stays as it is."""
    book.go()
    book.calls()
    assert book.go("s2", "--rerun-from", "*/apply")["made"] == ["s2/apply"]


def test_what_stands_for_all_units_is_made_anew_in_those_of_the_targets(book: Book) -> None:
    """Whether a pattern finds it, a unit or a pipeline is named, or it is asked for itself."""
    book.go()
    for words in ("*/apply", "scene:*/apply"):
        assert book.go("s1/apply", "--rerun", words)["made"] == ["s1/apply"]
    assert "s1/apply" in book.go("s1", "--rerun", "scene")["made"]
    refused = book.do("run", "s1/plan", "--rerun", "scene:*/apply")
    assert (refused.code, "'scene:*/apply' is to be made anew" in refused.err) == (2, True)


def test_resuming_and_rerunning_by_every_flag(book: Book) -> None:
    """`--resume` is what run does anyway; `--rerun-from` with a target is about that unit alone."""
    book.stop_at("s2/write")
    book.go()
    book.stop_at("")
    book.calls()
    assert book.go("--resume")["status"] == "completed"
    assert book.calls()[0] == "s2/write"
    book.go("s1", "--rerun-from", "lint")
    assert set(book.calls()) >= {"s1/lint~1", "s1/apply"}
    book.go("--rerun-from", "apply")
    assert {"s1/apply", "s2/apply"} <= set(book.calls())


def test_a_loop_that_came_to_no_end_is_made_anew_by_the_name_of_a_phase_of_a_unit(book: Book) -> None:
    """What stands for a phase of a loop stands for all its rounds; `why` says where to begin anew."""
    book.needs(s1=9)
    assert list(book.go()["failed"]) == ["s1/lint"]
    book.calls()
    assert "or make it anew: headway run --rerun-from s1/repair" in book.do("why", "s1/lint").out
    rounds = [f"s1/{phase}~{n}" for n in (1, 2, 3) for phase in ("repair", "state_repair", "lint")]
    book.go("--rerun-from", "s1/repair")
    assert book.calls() == rounds
    book.go("--rerun", "s1/lint")
    assert set(book.calls()) == {"s1/lint~1", "s1/lint~2", "s1/lint~3"}
    book.needs(s1=1)
    assert book.go("--rerun-from", "s1/repair")["status"] == "completed"
    assert book.calls()[:4] == [*rounds[:3], "s1/apply"]
    book.go("--rerun", "scene:*/apply")
    assert set(book.calls()) == {"s1/apply", "s2/apply"}


@pytest.mark.parametrize("words", [("scene",), ("s1",), ("--all",), ("--all", "--archive"), ("scene", "--archive")])
def test_after_a_reset_units_begin_from_the_state_that_was_there_before_the_first_of_them(
    book: Book, words: tuple[str, ...]
) -> None:
    """Nothing is applied to what the run before it left; nothing goes on from there."""
    book.go()
    state = book.json("state.json")
    assert state["applied"] == ["s1", "s2"]
    assert book.do("reset", *words).code == 0
    assert book.go()["status"] == "completed"
    assert book.json("state.json") == state
    assert '"applied": []' in book.read("work/s1/pack.md")


def test_after_a_reset_a_state_that_somebody_wrote_counts(book: Book) -> None:
    """It is no artifact's doing, so it is where the units begin."""
    book.go()
    book.do("reset", "scene")
    (book.root / "state.json").write_text('{"applied": ["mine"], "words": 100}')
    assert book.go()["status"] == "completed"
    assert book.json("state.json")["applied"] == ["mine", "s1", "s2"]


def test_reset_of_everything_with_an_archive_resumes_from_nothing(book: Book) -> None:
    """Clears the phase ledgers of all units, after an archive of all of it was read back."""
    book.go()
    book.calls()
    done = book.do("reset", "--all", "--archive", "--json").json
    with tarfile.open(book.root / done["archive"]) as tar:
        held = set(tar.getnames())
    assert {"work/s1/prose.md", "work/s2/prose.md", "book.md", ".headway/phases/s1.json"} <= held
    assert not list((book.root / ".headway/phases").glob("*.json"))
    ran = book.go()
    assert (ran["status"], ran["reused"], ran["kept"]) == ("completed", [], [])


@pytest.mark.parametrize("part", [0.0, 0.1, 0.25, 0.5, 0.75, 0.9])
def test_an_archive_that_does_not_hold_what_was_put_into_it_removes_nothing(
    book: Book, monkeypatch: pytest.MonkeyPatch, part: float
) -> None:
    """Whatever the disk did to it in between, wherever: it may not even be an archive any more."""
    book.go()
    verify = archive._verify

    def damaged(path: str, files: dict[str, str]) -> None:
        data = bytearray(Path(path).read_bytes())
        data[int(len(data) * part)] ^= 0xFF
        Path(path).write_bytes(data)
        verify(path, files)

    monkeypatch.setattr(archive, "_verify", damaged)
    assert book.do("reset", "s2", "--archive").code == 4
    assert (book.root / "work/s2/prose.md").exists()
    assert "s2/apply" in book.load("book").state.completed
    assert book.go()["made"] == []


@pytest.mark.parametrize(
    ("data", "problem"),
    [(b"\xff\xfe", "is not UTF-8 text"), (None, "is not a file"), (b"x" * (4 << 20) + b"y", "is larger than")],
)
def test_a_template_that_is_no_text_fails_its_artifact_and_nobody_waits(
    book: Book, data: bytes | None, problem: str
) -> None:
    """A pipe would never end; half a text is no prompt."""
    import os

    path = book.root / "prompts/write.md"
    path.unlink()
    if data is None:
        os.mkfifo(path)
    else:
        path.write_bytes(data)
    ran = book.go()
    assert problem in ran["failed"]["s1/write"]
    assert "s1/write" not in book.calls()


def test_a_plan_with_pipelines_can_begin_another(book: Book) -> None:
    """`plans template` writes it as somebody would have written it: without its units' artifacts."""
    book.go()
    text = book.do("plans", "template", "book", "--id", "book").out
    read, was = (parse_plan(t.encode(), name="headway.yaml").plan for t in (text, book.read("headway.yaml")))
    assert read == was
    book.file.write_text(text)
    assert book.go()["made"] == []


def test_a_pipeline_in_python_is_the_same_pipeline(book: Book) -> None:
    """Both ways to say it come to the same plan."""
    plan = Plan("Many", id="p", project=book.root)
    scene = plan.pipeline("essay", units=["a", "b"])
    scene.add("write", make="tasks.py:echo", templates="prompts/write.md", outputs={"prose": "work/{unit}/prose.md"})
    read = parse_plan(ECHO.replace("UNITS", "[a, b]").encode(), name="headway.yaml").plan
    assert read is not None
    assert plan.spec.settings.pipelines == read.settings.pipelines


def test_a_hundred_thousand_units_are_expanded_one_by_one() -> None:
    """Each costs what it costs, whatever their number: nothing is looked up among the others."""
    phases = (Phase(id="write", run="true", outputs={"x": "out/{unit}.txt"}),)
    pipeline = Pipeline(name="many", phases=phases, order="sequential")
    seen = 0
    for spec in expand(pipeline, (Unit(f"u{n}") for n in range(100_000))):
        seen += 1
        assert len(spec.requires) + len(spec.after) <= 1
    assert seen == 100_000


STATEFUL = """\
id: stateful
goal: g
pipelines:
  p:
    units: [a]
    state: state.json
    phases:
      w: {run: "cat {prompt} > {output}", outputs: {o: 'o/{unit}.txt'}, templates: {phase: p.md}, pre_state: true}
"""

LABELS = """\
id: p
goal: g
pipelines:
  doc:
    units: {files: 'docs/*.md'}
    phases:
      label: {run: 'cat {prompt} > {outputs.label}', templates: prompts/label.md, outputs: {label: 'out/{unit}'}}
      check: {run: 'cp {inputs.label} {outputs.check}', outputs: {check: 'out/{unit}.check'}}
"""


@pytest.fixture
def labels(tmp_path: Path) -> Workshop:
    """Eight documents, labelled by one template."""
    shop = Workshop(tmp_path)
    (tmp_path / "headway.yaml").write_text(LABELS)
    for name in ("docs", "prompts"):
        (tmp_path / name).mkdir()
    for n in range(8):
        (tmp_path / f"docs/d{n}.md").write_text(f"{n}\n")
    (tmp_path / "prompts/label.md").write_text("label {{ unit }}")
    return shop


def test_a_template_that_does_not_parse_is_told_once(labels: Workshop, capsys: pytest.CaptureFixture[str]) -> None:
    """All that is left would fail the same way: one line names the file, and the next command is not the same again."""
    (labels.root / "prompts/label.md").write_text("label {{ unit")
    ran = labels.run(capsys, "run")
    failed, *_, last = ran.out.splitlines()
    assert ran.code == 1
    assert failed.startswith("failed   d0/label ")
    assert failed.endswith("; mend prompts/label.md")
    assert ran.out.count("failed   ") == 1
    assert "Stopped: the rest would fail the same way. Next: headway why d0/label" in last


def test_what_cannot_even_be_tried_counts_towards_the_limit(
    labels: Workshop, capsys: pytest.CaptureFixture[str]
) -> None:
    """A template that does not exist for one of the units: with --limit 1 nothing else is begun."""
    (labels.root / "headway.yaml").write_text(LABELS + "    overrides: {d0: {label: {phase: prompts/none.md}}}\n")
    ran = labels.run(capsys, "run", "--limit", "1", "--json").json
    assert (list(ran["failed"]), ran["made"]) == (["d0/label"], [])


def test_a_name_that_a_template_does_not_have_is_a_short_line(
    labels: Workshop, capsys: pytest.CaptureFixture[str]
) -> None:
    """The run names the template and the name; `why` lists the names that there are."""
    (labels.root / "prompts/label.md").write_text("label {{ unti }}")
    line = labels.run(capsys, "run", "--limit", "1").out.splitlines()[0]
    assert line.endswith("Its prompt cannot be made: prompts/label.md, line 1: 'unti' is undefined")
    assert "| mend prompts/label.md: it has acceptance, contract" in labels.run(capsys, "why", "d0/label").out


def test_a_state_is_read_already_and_what_is_no_json_is_said_so(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """`fromjson` leaves as it is what is no text."""
    shop = Workshop(tmp_path)
    shop.file.write_text(STATEFUL)
    (tmp_path / "state.json").write_text('{"seen": [1, 2]}')
    (tmp_path / "p.md").write_text("{{ state.seen }} {{ (state|fromjson).seen }}")
    assert shop.run(capsys, "run").code == 0
    assert "[1, 2] [1, 2]" in shop.run(capsys, "show", "a/w", "--prompt").out
    (tmp_path / "p.md").write_text("{{ unit|fromjson }}")
    assert "p.md: fromjson was given what is no JSON: Expecting value" in shop.run(capsys, "run").out


@pytest.mark.parametrize("state", [b"\xff\xfe\x00", None])
def test_a_state_that_is_no_text_is_nothing_to_templates_that_do_not_show_it(
    labels: Workshop, capsys: pytest.CaptureFixture[str], state: bytes | None
) -> None:
    """A database, say, or a folder."""
    path = "world.db" if state else "world/"
    text = LABELS.replace("    phases:", f"    state: {path}\n    phases:", 1)
    labels.file.write_text(text.replace("      label: {", "      label: {pre_state: true, ", 1))
    if state:
        (labels.root / path).write_bytes(state)
    else:
        (labels.root / path).mkdir()
    assert labels.run(capsys, "run").code == 0


def test_without_jinja_a_run_that_needs_it_does_not_start(
    labels: Workshop, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Templates are an extra: exit 2 names it, nothing is recorded, and looking needs nothing."""
    monkeypatch.setitem(sys.modules, "jinja2", None)
    ran = labels.run(capsys, "run")
    assert (ran.code, ran.out) == (2, "")
    assert "Templates are an extra\n  needed by: d0/label\n  next: pip install 'headway[templates]'" in ran.err
    assert "run_started" not in labels.events("p")
    for words in (("status",), ("why", "d0/label"), ("run", "-n")):
        assert labels.run(capsys, *words).code == 0


def test_without_jinja_a_run_does_not_start_for_units_that_are_yet_to_be_listed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """What lists them may have been paid for by then."""
    shop = Workshop(tmp_path)
    (tmp_path / "p.md").write_text("hi")
    shop.file.write_text(
        "id: p\ngoal: g\nartifacts:\n  o: {run: 'echo [1,2] > {output}', produces: o.json}\n"
        "pipelines:\n  u:\n    units: {from: o, items: '[*]', max: 4}\n"
        "    phases: {w: {run: echo, templates: {phase: p.md}}}\n"
    )
    monkeypatch.setitem(sys.modules, "jinja2", None)
    ran = shop.run(capsys, "run")
    assert (ran.code, ran.out) == (2, "")
    assert "Templates are an extra\n  needed by: w\n" in ran.err
    assert shop.run(capsys, "run", "o").code == 0


def test_without_jinja_what_was_made_is_kept_and_put_back(
    labels: Workshop, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Only what has to be rendered needs it."""
    labels.run(capsys, "run")
    (labels.root / "out/d0").unlink()
    monkeypatch.setitem(sys.modules, "jinja2", None)
    assert labels.run(capsys, "run").out.startswith("restored d0/label")
    assert labels.run(capsys, "run").code == 0


def test_whoever_only_looks_is_told_what_the_run_would_ask(
    labels: Workshop, capsys: pytest.CaptureFixture[str]
) -> None:
    """A prompt that changed half way: status, why and the preview name the same ways to decide as the run."""
    labels.run(capsys, "run", "d0/label", "d1/label")
    (labels.root / "prompts/label.md").write_text("name {{ unit }}")
    ways = "headway run --resume-allow-prompt-change REASON"
    ran = labels.run(capsys, "run")
    assert (ran.code, ways in ran.out) == (3, True)
    for words in (("status",), ("why",), ("why", "d0/check"), ("run", "-n")):
        last = labels.run(capsys, *words).out.splitlines()[-1]
        assert (ways in last, "Next: headway run" in last) == (True, False)
        assert last.endswith("  or  change it back")
    assert "Next: headway run d5/check" in labels.run(capsys, "why", "d5/check").out
    assert labels.run(capsys, "run", "-n", "--prompt-change", "better").out.splitlines()[-1].startswith("Next: ")
    assert labels.run(capsys, "status", "--json").json["next"] == f"{ways} --project {labels.root}"


def test_every_way_to_decide_about_a_changed_prompt_can_be_typed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Where the name of a phase does not tell which pipeline is meant, or there is none, ids do."""
    book = Book(tmp_path / "two", capsys)
    book.prompt("write", "write")
    phase = "{run: 'cp {prompt} {output}', templates: prompts/write.md, outputs: {o: '%s/{unit}.txt'}}"
    book.file.write_text(
        f"id: two\ngoal: g\nprompt_changes: refuse\npipelines:\n  p: {{units: [a], phases: {{write: {phase % 'p'}}}}}\n"
        f"  q: {{units: [b], phases: {{write: {phase % 'q'}}}}}\n"
        "artifacts:\n  last(one): {run: 'cp {prompt} {output}', templates: prompts/write.md, produces: last.txt}\n"
    )
    book.go()
    for words, named in ((("p", "q"), ["a/write", "b/write"]), (("last(one)",), ["last(one)"])):
        book.prompt("write", f"write {named}")
        (decision,) = book.go(*words)["decisions"]
        assert decision["flags"][1:] == [" ".join(f"--rerun-from {shlex.quote(a)}" for a in named), "--rerun-all"]
        assert sorted(book.go(*words, *shlex.split(decision["flags"][1]))["made"]) == named


def test_what_only_gathers_is_nobodys_work(labels: Workshop, capsys: pytest.CaptureFixture[str]) -> None:
    """`doc:*/check` is in no preview as if it had to be claimed, and every count is of what is really made."""
    table = "artifacts:\n  table: {requires: ['doc:*/check'], produces: table.txt, run: 'echo x > {output}'}\n"
    (labels.root / "headway.yaml").write_text(LABELS.replace("pipelines:", table + "pipelines:"))
    shown = labels.run(capsys, "run", "-n").out
    assert "17 to make at most, 0 up to date" in shown
    assert "doc:*/check  hand" not in shown
    assert "not known" not in shown
    labels.run(capsys, "run", "d0", "d1", "d2")
    status = labels.run(capsys, "status").out
    assert "6 of 17 done" in status
    assert "11 to make at most" in status
    assert "11 to make at most, 6 up to date" in labels.run(capsys, "run", "-n").out
    assert "doc:*/check is pending and stale" in (why := labels.run(capsys, "why", "doc:*/check").out)
    assert "nobody makes it. Next: headway run" in why
    labels.run(capsys, "run")
    assert labels.run(capsys, "status", "--json").json["progress"] == {"done": 17, "total": 17}
    assert labels.run(capsys, "run").out == "Nothing to do: 17 artifacts are up to date.\n"


def test_nobody_can_claim_or_skip_what_says_which_units_there_are(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Else units would be done with that nobody has named; what leads on is what they are read from."""
    shop = Workshop(tmp_path)
    shop.file.write_text(ECHO.replace("UNITS", "{from: outline, items: 'essays[*].id'}").replace("pipelines:", OUTLINE))
    shop.run(capsys, "run")
    assert f"Next: headway why 'essay:*' --project {tmp_path}\n" in shop.run(capsys, "next").out
    for words in (("claim", "essay:*"), ("skip", "essay:*", "--reason", "why not")):
        refused = shop.run(capsys, *words)
        assert refused.code == 2
        assert "essay:* follows from what it gathers: nobody makes it" in refused.err
        assert f"next: headway why --project {tmp_path} 'essay:*'" in refused.err
    said = shop.run(capsys, "why", "essay:*").out
    assert f"headway run --rerun-from outline --project {tmp_path}. Next: headway show outline" in said


def test_units_that_cannot_be_read_leave_the_plan_open(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Everything that somebody makes is made, and yet nothing is up to date: `status` and the preview say so."""
    shop = Workshop(tmp_path)
    shop.file.write_text(ECHO.replace("UNITS", "{from: outline, items: 'essays[*].id'}").replace("pipelines:", OUTLINE))
    assert shop.run(capsys, "run").out.splitlines()[-1].endswith(f"Next: headway why 'essay:*' --project {tmp_path}")
    status = shop.run(capsys, "status", "--check")
    assert (status.code, status.out.splitlines()[-1]) == (
        1,
        f"1 to make so far. Next: headway why 'essay:*' --project {tmp_path}",
    )
    preview = shop.run(capsys, "run", "-n").out
    assert "essay:*  waits     failed before" in preview
    assert preview.splitlines()[-1] == status.out.splitlines()[-1]
    assert "what outline made is not JSON" in shop.run(capsys, "why", "essay:*").out


def test_what_is_there_of_units_that_no_run_has_come_to_yet_can_be_accepted(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """And what is not there is said to be missing."""
    shop = Workshop(tmp_path)
    shop.file.write_text(ECHO.replace("UNITS", "[s1, s2]").replace("templates: prompts/write.md, ", ""))
    (tmp_path / "tasks.py").write_text("def echo(ctx):\n    return ctx.unit\n")
    (tmp_path / "work/s1").mkdir(parents=True)
    (tmp_path / "work/s1/prose.md").write_text("mine")
    refused = shop.run(capsys, "accept", "s2/write")
    assert (refused.code, "work/s2/prose.md is missing" in refused.err) == (2, True)
    assert shop.run(capsys, "accept", "s1/write", "--json").json["accepted"] == ["s1/write"]
    assert shop.run(capsys, "run", "--json").json["made"] == ["s2/write"]
    assert (tmp_path / "work/s1/prose.md").read_text() == "mine"


def test_a_unit_that_no_run_has_come_to_yet_can_be_skipped(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """`status` lists it, so it can be named."""
    shop = Workshop(tmp_path)
    shop.file.write_text(ECHO.replace("UNITS", "[s1, s2]").replace("templates: prompts/write.md, ", ""))
    (tmp_path / "tasks.py").write_text("def echo(ctx):\n    return ctx.unit\n")
    assert shop.run(capsys, "skip", "s1/write", "--reason", "not now").code == 0
    assert shop.run(capsys, "run", "--json").json["made"] == ["s2/write"]


def test_a_prompt_that_was_of_no_use_may_be_mended_without_a_word(
    labels: Workshop, capsys: pytest.CaptureFixture[str]
) -> None:
    """Nothing was made with it, so nothing is mixed; with one that something was made with, it is asked."""
    prompt = labels.root / "prompts/label.md"
    labels.run(capsys, "run")
    prompt.write_text("say\n{% include 'prompts/part.md' %}")
    (labels.root / "prompts/part.md").write_text("one\n{{ unti }}")
    broken = labels.run(capsys, "run")
    assert (broken.code, "prompts/part.md, line 2: 'unti' is undefined" in broken.out) == (1, True)
    prompt.write_text("tell\n{% include 'prompts/part.md' %}{% include 'prompts/more.md' %}")
    (labels.root / "prompts/part.md").write_text("one\n{{ unit }}")
    (labels.root / "prompts/more.md").write_text("more")
    made = labels.run(capsys, "run", "--limit", "1", "--json").json["made"]
    assert len(made) == 1
    prompt.write_text("shout {{ unit }}")
    assert labels.run(capsys, "run").code == 3


def test_a_prompt_that_is_changed_and_changed_back_while_it_is_used_is_noticed(tmp_path: Path) -> None:
    """What was made with the other one is stale at once, whatever stands there when somebody looks again."""
    (tmp_path / "headway.toml").write_text("")
    prompt, ledger = tmp_path / "prompt.md", tmp_path / ".headway/plans/p/ledger.jsonl"
    prompt.write_text("one {{ unit }}")
    plan = Plan("g", id="p", project=tmp_path)
    essay = plan.pipeline("essay", units=["s1", "s2"])
    tried: list[str] = []

    @essay.phase(templates={"phase": "prompt.md"}, outputs={"prose": "{unit}.md"}, retry={"attempts": 2, "backoff": 0})
    def write(ctx: Context) -> str:
        if ctx.unit == "s2":
            assert soon(lambda: tried)
        elif not tried:
            prompt.write_text("two {{ unit }}")
            tried.append("once")
            assert soon(lambda: b'"artifact_completed"' in ledger.read_bytes())
            raise ValueError("again")
        else:
            prompt.write_text("one {{ unit }}")
        return ctx.prompt

    plan.run(jobs=2, check=False)
    assert (tmp_path / "s1.md").read_text() == "two s1\n"
    found = Project(tmp_path).store.folder("p").load()
    assert found is not None
    assert [*found.state.completed["s1/write"].fp.templates.values()] == [MOVED]


def test_a_prompt_that_was_of_no_use_speaks_for_no_other(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """What another template has made, or what was skipped since, would still be mixed."""
    shop = Workshop(tmp_path)
    (tmp_path / "prompts").mkdir()
    shop.file.write_text(
        "id: p\ngoal: g\nartifacts:\n"
        + "".join(
            f"  {name}: {{templates: {{phase: prompts/w.md, system: prompts/s.md}}, produces: {name}.txt, "
            f"run: 'test ! -e no-{name} && cp {{prompt}} {{output}}'}}\n"
            for name in "abc"
        )
    )
    write, system = tmp_path / "prompts/w.md", tmp_path / "prompts/s.md"
    write.write_text("w1")
    system.write_text("s1")
    shop.run(capsys, "run")
    write.write_text("w2")
    (tmp_path / "no-b").touch()
    assert shop.run(capsys, "run").code == 1
    system.write_text("{{ nobody }}")
    assert shop.run(capsys, "run", "--prompt-change", "s2").code == 1
    system.write_text("s3")
    write.write_text("w3")
    asked = shop.run(capsys, "run")
    assert (asked.code, "prompts/w.md changed" in asked.out) == (3, True)
    system.write_text("s1")
    write.write_text("w2")
    assert shop.run(capsys, "run").code == 1
    for name in "ac":
        shop.run(capsys, "skip", name, "--reason", "enough")
    write.write_text("w3")
    assert shop.run(capsys, "run").code == 3


def test_a_word_that_names_nothing_is_told_in_terms_of_what_could_stand_there(
    labels: Workshop, capsys: pytest.CaptureFixture[str]
) -> None:
    """A goal only where one can be named; a phase where a phase can."""
    labels.run(capsys, "run")
    for words, goals in ((("run", "nosuch"), True), (("why", "nosuch"), False), (("run", "--rerun", "nosuch"), False)):
        said = labels.run(capsys, *words)
        assert (said.code, "has no artifact nosuch" in said.err, "goal" in said.err) == (2, True, goals)
    mistyped = labels.run(capsys, "run", "--rerun-from", "lable").err
    assert "has no artifact or phase lable\n  did you mean: label\n" in mistyped
    assert "a plan file is named by --plan other.yaml" in labels.run(capsys, "run", "other.yaml").err


@pytest.mark.parametrize(
    ("word", "meant"), [("d3/label", "d3/label"), ("d3/lable", "d3/label"), ("*/lable", "doc:*/label")]
)
def test_a_phase_of_a_unit_that_is_named_with_its_pipeline_is_told_its_name(
    labels: Workshop, capsys: pytest.CaptureFixture[str], word: str, meant: str
) -> None:
    """Only what stands for all units begins with the pipeline, and is what a star could mean."""
    everything = "artifacts:\n  all: {requires: ['doc:*/label'], produces: all, run: 'date > {output}'}\n"
    labels.file.write_text(LABELS + everything)
    labels.run(capsys, "run")
    said = labels.run(capsys, "why", f"doc:{word}")
    assert (said.code, f"did you mean: {meant}\n" in said.err) == (2, True)


def test_all_units_of_a_pipeline_that_python_does_not_have_are_refused(tmp_path: Path) -> None:
    """As in a plan file: before anything is made, and with the nearest."""
    plan = Plan("Site", id="site", project=tmp_path)
    plan.pipeline("post", units={"files": "posts/*.md"}).add("html", run="true", outputs={"page": "{unit}.html"})
    plan.add("index", requires=["posts:*/html"], produces="index.html", run="date > {output}")
    with pytest.raises(PlanInvalid) as refused:
        plan.run()
    assert "requires posts:*/html, which is not in the plan (did you mean post:*/html?)" in str(refused.value)
    assert not (tmp_path / "index.html").exists()


@pytest.mark.parametrize("indent", [None, 2])
def test_a_unit_of_another_plan_with_the_same_name_keeps_its_phase_ledger(book: Book, indent: int | None) -> None:
    """Whoever comes second writes beside it, however the first one is laid out."""
    book.go()
    first = book.root / ".headway/phases/s1.json"
    before = json.dumps(book.json(".headway/phases/s1.json") | {"plan_id": "bookends"}, indent=indent)
    first.write_text(before)
    book.go("s1", "--rerun-from", "apply")
    assert first.read_text() == before
    assert book.json(".headway/phases/s1@book.json")["plan_id"] == "book"


def test_a_phase_ledger_that_nobody_can_read_is_written_anew(book: Book) -> None:
    """Half a file is nobody's, if the plan that its first lines name has never written here."""
    book.go()
    file = book.root / ".headway/phases/s1.json"
    whole = json.dumps(book.json(".headway/phases/s1.json") | {"plan_id": "bookends"}, indent=2)
    file.write_text(whole[: len(whole) // 2])
    book.go("s1", "--rerun-from", "apply")
    assert book.json(".headway/phases/s1.json")["plan_id"] == "book"


@pytest.mark.parametrize("how", ["another recipe", "a reset"])
def test_a_prompt_changed_back_makes_no_unit_that_nobody_asked_for(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], how: str
) -> None:
    """They were made with it once, but not in the way that they would be now, or that was withdrawn: they stand."""
    plan = """
id: p
goal: g
pipelines:
  scene:
    units: [a, b, c]
    state: state.txt
    phases:
      write: {run: "cat {prompt} > {outputs.o}", templates: {phase: w.md}, outputs: {o: 'work/{unit}.md'}}
      apply: {run: "cat {inputs.write} >> {state}", outputs: {post: state.txt}}
"""
    shop = Workshop(tmp_path)
    shop.file.write_text(plan)
    (tmp_path / "w.md").write_text("first {{ unit }}")
    shop.run(capsys, "run")
    (tmp_path / "w.md").write_text("second {{ unit }}")
    if how == "another recipe":
        shop.file.write_text(plan.replace("cat {prompt} >", "cat - {prompt} < /dev/null >"))
    shop.run(capsys, "run")
    if how == "a reset":
        shop.run(capsys, "reset", "b")
        shop.run(capsys, "run")
    (tmp_path / "w.md").write_text("first {{ unit }}")
    ran = shop.run(capsys, "run", "c", "--prompt-change", "a try", "--json").json
    assert {a for a in ran["made"] if not a.startswith("c/")} == set()
    assert ran["undecided"] == ["a/write", "b/write"]
    assert (tmp_path / "state.txt").read_text().split() == ["second", "a", "second", "b", "first", "c"]
