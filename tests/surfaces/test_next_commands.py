"""What `status` and `why` say to type next: the command that leads on, whatever is in the way."""

from __future__ import annotations

import contextlib
import json
import re
import shlex
from pathlib import Path

import pytest

from headway.core.commands import ReleaseArtifacts, StartArtifacts
from tests.workshop import Workshop

FEED = """\
id: news
goal: A newsletter
artifacts:
  feed: {produces: feed.txt, run: "exit 3"}
  letter: {requires: [feed], produces: letter.txt, run: "cat {inputs.feed} > {output}"}
  mail: {requires: [letter], produces: mail.txt, run: "cat {inputs.letter} > {output}"}
"""


SEQUENCE = """\
id: essays
goal: Essays
pipelines:
  essay:
    units: [a, b]
    order: sequential
    phases:
      write: {run: "exit 1"}
      check: {run: "cat {inputs.write}"}
"""


def project(tmp_path: Path, plan: str) -> Workshop:
    shop = Workshop(tmp_path / "project")
    shop.file.write_text(plan, encoding="utf-8")
    return shop


def last(text: str) -> str:
    return text.splitlines()[-1]


def test_status_names_why_when_only_failed_and_blocked_ones_are_left(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """As the run itself does; what is blocked says by what, however far behind it is."""
    shop = project(tmp_path, FEED)
    assert last(shop.run(capsys, "status").out).endswith(f"Next: headway run --project {shop.root}")
    shop.run(capsys, "run")
    shown = shop.run(capsys, "status").out
    assert last(shown) == f"3 to make at most. Next: headway why feed --project {shop.root}"
    assert [line.split("  ")[-1] for line in shown.splitlines() if "blocked by" in line] == ["blocked by feed"] * 2


def test_status_names_the_run_while_there_is_anything_that_it_can_make(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A failure beside it does not matter."""
    shop = project(tmp_path, FEED)
    shop.run(capsys, "run")
    shop.edit("artifacts:\n", 'artifacts:\n  logo: {produces: logo.txt, run: "echo logo > {output}"}\n')
    assert last(shop.run(capsys, "status").out).endswith(f"Next: headway run --project {shop.root}")


def test_what_only_comes_after_a_failure_is_blocked_by_it_as_well(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The next unit of a sequence requires nothing of the one before it, and waits for it all the same."""
    shop = project(tmp_path, SEQUENCE)
    assert shop.run(capsys, "run").out.splitlines()[-2] == "a/write blocks a/check, b/write, b/check"
    assert last(shop.run(capsys, "status").out).endswith(f"Next: headway why a/write --project {shop.root}")
    assert last(shop.run(capsys, "why", "b/write").out) == f"  Next: headway why a/write --project {shop.root}"


def test_what_was_never_made_says_that_it_waits_for_an_edit_before_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A run would only ask about that, however far before it is."""
    chain = "".join(
        f'  {name}: {{produces: {name}.txt, requires: [{before}], run: "echo {name} > {{output}}"}}\n'
        for name, before in (("a", ""), ("b", "a"), ("c", "b"))
    )
    shop = project(tmp_path, f"id: p\ngoal: g\nartifacts:\n{chain}")
    shop.run(capsys, "run", "a")
    (shop.root / "a.txt").write_text("mine")
    told = shop.run(capsys, "why", "c").out
    assert "\n  waits for a: a.txt was edited\n" in told
    assert last(told) == f"  Next: headway why a --project {shop.root}"
    assert shop.run(capsys, "why", "c", "--json").json["held_by"] == {"a": "a.txt was edited"}


def test_where_many_began_alike_is_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """However many units there are behind what gathers them."""
    pytest.importorskip("jinja2")
    shop = project(
        tmp_path,
        "id: p\ngoal: g\nartifacts:\n  all: {produces: all.txt, requires: ['doc:*/say'], run: 'echo all > {output}'}\n"
        "pipelines:\n  doc:\n    units: [" + ", ".join(f"u{n:02}" for n in range(40)) + "]\n    phases:\n"
        "      say: {run: 'cat {prompt} > {outputs.o}', templates: say.md, outputs: {o: 'out/{unit}.txt'}}\n",
    )
    (shop.root / "say.md").write_text("say {{ unit }}")
    assert shop.run(capsys, "run").code == 0
    (shop.root / "say.md").write_text("tell {{ unit }}")
    began = [line for line in shop.run(capsys, "why", "all").out.splitlines() if "began with" in line]
    assert len(began) == 1
    assert began[0].startswith("  began with u00/say, u01/say, u02/say, u03/say, u04/say and 35 more: prompt")


def many(tmp_path: Path, number: int, **keys: str) -> Workshop:
    """A plan in which `total` requires so many artifacts; in the texts of their keys, N is the number of each."""
    ids = [f"a{n:02}" for n in range(number)]
    told = ", ".join(f"{key}: {text}" for key, text in keys.items())
    each = "".join(f"  {a}: {{produces: {a}.txt, {told.replace('N', a[1:])}}}\n" for a in ids)
    total = f"  total: {{produces: total.txt, requires: [{', '.join(ids)}], run: 'echo > {{output}}'}}\n"
    return project(tmp_path, f"id: p\ngoal: g\nartifacts:\n{each}{total}")


def test_where_many_began_with_other_digests_is_one_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A digest tells nobody anything: the line names what changed, and the document has all of them."""
    shop = many(tmp_path, 40, run="'echo N > {output}'", env="[MOOD]")
    monkeypatch.setenv("MOOD", "dry")
    assert shop.run(capsys, "run").code == 0
    monkeypatch.setenv("MOOD", "warm")
    began = [line for line in shop.run(capsys, "why", "total").out.splitlines() if "began with" in line]
    assert began == ["  began with a00, a01, a02, a03, a04 and 35 more: recipe changed (MOOD in env)"]
    told = shop.run(capsys, "why", "total", "--json").json["root_causes"]
    assert len({root["text"] for root in told}) == 40


def test_of_many_that_began_in_other_ways_why_tells_ten(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """As a receipt does; what is left is counted, with the command that shows it."""
    shop = many(tmp_path, 13, run="'echo N > {output}'")
    assert shop.run(capsys, "run").code == 0
    many(tmp_path, 13, run="'echo new N > {output}'")
    told = shop.run(capsys, "why", "total").out.splitlines()
    assert sum("began with" in line for line in told) == 10
    assert f"  and 3 more: headway why total --json --project {shop.root} shows all" in told
    assert len(shop.run(capsys, "why", "total", "--json").json["root_causes"]) == 13


@pytest.mark.parametrize(("run", "lines", "more"), [("exit 3", 1, 0), ("exit 1N", 10, 3)])
def test_of_many_that_block_it_why_tells_few(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], run: str, lines: int, more: int
) -> None:
    """Those that failed alike share a line, others have ten between them, and the document has all."""
    shop = many(tmp_path, 13, run=f"'{run}'")
    shop.run(capsys, "run", "--keep-going")
    told = shop.run(capsys, "why", "total").out
    assert told.count("  blocked by ") == lines
    assert (f"\n  and {more} more: headway why total --json --project {shop.root} shows all\n" in told) is bool(more)
    found = shop.run(capsys, "status", "--json").json["artifacts"]
    failed = [a for a in found if found[a]["error"]]
    assert list(shop.run(capsys, "why", "total", "--json").json["blocked_by"]) == failed
    assert len(failed) == lines + more or lines == 1 < len(failed)


GATED = """\
id: book
goal: A book
artifacts:
  draft: {produces: draft.txt, run: "echo hi > {output}", gates: {editor: {by: [kim]}}}
  final: {requires: [draft], produces: final.txt, run: "cat {inputs.draft} > {output}"}
  print: {requires: [final], produces: print.txt, run: "cat {inputs.final} > {output}"}
"""


@pytest.mark.parametrize("behind", ["final", "print"])
def test_why_of_something_behind_a_gate_leads_to_the_gate(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], behind: str
) -> None:
    """However far behind it is, it says what it waits for, and the command is that of the gate."""
    shop = project(tmp_path, GATED)
    shop.run(capsys, "run")
    told, command = shop.run(capsys, "why", behind).out, last(shop.run(capsys, "why", "draft").out)
    assert command == f"  Next: headway gate draft editor approve --by kim --project {shop.root}"
    assert "\n  waits for draft: made; waits for gate editor (review; of kim)\n" in told
    assert last(told) == command
    waits = shop.run(capsys, "why", behind, "--json").json["waits_for"]["draft"]
    assert waits["command"] == command.removeprefix("  Next: ")
    assert shop.run(capsys, *shlex.split(waits["command"])[1:]).code == 0
    assert last(shop.run(capsys, "why", behind).out) == f"  Next: headway run {behind} --project {shop.root}"


def test_why_of_something_made_before_leads_to_the_gate_where_it_began(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """It is told once where it began, and then what to type."""
    shop = project(tmp_path, GATED)
    for words in (["run"], ["gate", "draft", "editor", "approve", "--by", "kim"], ["run"]):
        shop.run(capsys, *words)
    shop.file.write_text(GATED.replace("echo hi", "echo ho"))
    shop.run(capsys, "run")
    told = shop.run(capsys, "why", "print").out
    assert "\n  began with draft: made; waits for gate editor (review; of kim)\n" in told
    assert "waits for draft" not in told
    assert last(told) == f"  Next: headway gate draft editor approve --by kim --project {shop.root}"


def test_why_of_something_behind_hands_leads_to_the_first_that_can_be_claimed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """What cannot be claimed yet is not offered; what a run has to make first is left to the run."""
    shop = project(
        tmp_path,
        "id: p\ngoal: g\nartifacts:\n  a: {produces: a.txt, run: 'echo > {output}'}\n"
        "  b: {produces: b.txt, requires: [a]}\n  c: {produces: c.txt, requires: [b]}\n"
        "  d: {produces: d.txt, requires: [c], run: 'echo > {output}'}\n",
    )
    assert last(shop.run(capsys, "why", "d").out) == f"  Next: headway run d --project {shop.root}"
    shop.run(capsys, "run")
    told = shop.run(capsys, "why", "d").out
    assert "\n  waits for b: never made\n" in told
    assert last(told) == f"  Next: headway claim b --project {shop.root}"


def test_why_of_something_that_asked_to_wait_says_so(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Also when something else failed, so that the run did not just pause."""
    asks = 'artifacts:\n  model: {run: "echo quota is used up >&2; exit 75"}\n'
    shop = project(tmp_path, FEED.replace("artifacts:\n", asks))
    assert shop.run(capsys, "run").code == 1
    assert "\n  its last attempt: quota is used up\n" in shop.run(capsys, "why", "model").out


def test_a_preview_names_the_run_that_it_shows(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """With the variables, and whatever else decides what is made."""
    shop = project(tmp_path, FEED.replace("artifacts:", "vars: {n: 1}\nartifacts:"))
    words = ("mail", "--set", "n=3", "--take", "file", "--fresh")
    assert last(shop.run(capsys, "run", "-n", *words).out) == (
        f"Next: headway run {' '.join(words)} --project {shop.root}"
    )


def test_status_of_a_plan_that_nobody_approved_names_the_approval(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Nothing else helps. It names the plan itself, and the project as it was named."""
    shop = project(tmp_path, FEED.replace("artifacts:", "approval: required\nartifacts:"))
    shop.run(capsys, "run")
    assert last(shop.run(capsys, "status").out).endswith(f"Next: headway approve --plan-id news --project {shop.root}")


def test_status_of_what_waits_at_a_gate_names_the_gate(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """What is behind it waits as well."""
    plan = FEED.replace('run: "exit 3"', 'run: "echo x > {output}", gates: {review: {by: [bob]}}')
    shop = project(tmp_path, plan)
    shop.run(capsys, "run")
    said = last(shop.run(capsys, "status").out)
    assert said.endswith(f"Next: headway gate feed review approve --by bob --project {shop.root}")


def test_status_of_a_closed_plan_names_what_opens_it(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A run would be refused."""
    shop = project(tmp_path, FEED)
    shop.run(capsys, "run")
    assert shop.run(capsys, "plans", "close", "news").code == 0
    assert last(shop.run(capsys, "status").out).endswith(
        f"Next: headway reset --all --plan-id news --project {shop.root}"
    )


def test_status_of_what_somebody_has_to_claim_names_the_claim(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """No run makes what has no recipe."""
    shop = project(tmp_path, FEED.replace(', run: "exit 3"', ""))
    shop.run(capsys, "run")
    assert last(shop.run(capsys, "status").out).endswith(f"Next: headway claim feed --project {shop.root}")


@pytest.mark.parametrize("words", [("run", "-n"), ("why",)])
def test_a_preview_of_what_no_run_can_make_names_what_helps(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], words: tuple[str, ...]
) -> None:
    """A claim, an approval, a word at a gate, a decision about an edit; never `run`, which would make nothing."""
    claimed = project(tmp_path / "claim", FEED.replace(', run: "exit 3"', ""))
    assert last(claimed.run(capsys, *words).out).endswith(f"Next: headway claim feed --project {claimed.root}")
    approval = project(tmp_path / "approval", FEED.replace("artifacts:", "approval: required\nartifacts:"))
    approval.run(capsys, "run")
    assert last(approval.run(capsys, *words).out).endswith(
        f"Next: headway approve --plan-id news --project {approval.root}"
    )
    edited = project(tmp_path / "edit", FEED)
    (edited.root / "feed.txt").write_text("mine")
    said = last(edited.run(capsys, *words).out)
    here = f"--project {edited.root}"
    assert said.endswith(f"Decide: headway accept feed {here}  or  headway run feed --discard-edits {here}")
    other = project(tmp_path / "beside", FEED.replace("  mail: {requires: [letter], ", "  mail: {"))
    (other.root / "feed.txt").write_text("mine")
    other.edit("cat {inputs.letter}", "echo")
    assert last(other.run(capsys, *words).out) == f"Next: headway run --project {other.root}", "mail can be made"


def test_status_of_an_earlier_time_names_no_next_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """What led on then need not lead on now."""
    shop = project(tmp_path, FEED)
    shop.run(capsys, "run")
    assert "Next:" not in shop.run(capsys, "status", "--at", "2").out


def test_a_goal_without_a_plan_names_a_command_that_works_here(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """`init` only where there is no plan file yet."""
    shop = project(tmp_path, FEED)
    told = shop.run(capsys, "run", "Write me a poem").err
    assert "plan file here: headway.yaml" in told
    assert last(told) == (
        f"  next: write it down in a plan file of its own: headway run --project {shop.root} --plan FILE"
    )
    shop.file.unlink()
    assert "headway init" in last(shop.run(capsys, "run", "Write me a poem").err)


def test_why_of_something_blocked_leads_to_what_blocks_it(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Running it would fail in the same way."""
    shop = project(tmp_path, FEED)
    shop.run(capsys, "run")
    assert last(shop.run(capsys, "why", "mail").out) == f"  Next: headway why feed --project {shop.root}"
    assert last(shop.run(capsys, "why", "feed").out) == f"  Next: headway run feed --project {shop.root}"


def test_why_of_something_behind_an_edit_leads_to_the_edit(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A run would only ask about it."""
    shop = project(tmp_path, FEED.replace("exit 3", "echo feed > {output}"))
    shop.run(capsys, "run")
    (shop.root / "feed.txt").write_text("mine")
    assert last(shop.run(capsys, "why", "mail").out) == f"  Next: headway why feed --project {shop.root}"


def test_a_name_with_blanks_is_one_word_of_the_next_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Whatever is in it: the command can be typed as it stands, and does no harm."""
    shop = project(tmp_path, FEED.replace("feed: {p", "'the feed$(x)': {p").replace("feed]", "'the feed$(x)']"))
    shop.edit("{inputs.feed}", "{inputs[the feed$(x)]}")
    for verb in ("run", "status"):
        command = shop.run(capsys, verb).out.rpartition("Next: ")[2].strip()
        assert command == f"headway why 'the feed$(x)' --project {shop.root}"
    assert shop.run(capsys, *shlex.split(command)[1:]).out.endswith(
        f"Next: headway run 'the feed$(x)' --project {shop.root}\n"
    )


def test_a_name_that_begins_with_a_dash_is_no_option_of_the_next_command(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Whatever is printed can be typed: `./-x`, as with files."""
    shop = project(tmp_path, 'id: p\ngoal: g\nartifacts:\n  -x: {produces: -out, run: "exit 3"}\n')
    shown = last(shop.run(capsys, "run").out)
    for verb, code in (("why", 0), ("run", 1)):
        words = shlex.split(shown.partition("Next: headway ")[2])
        assert words[:2] == [verb, "./-x"]
        done = shop.run(capsys, *words)
        assert (done.code, done.err) == (code, "")
        shown = last(done.out)
    (shop.root / "-p.yaml").write_text(shop.file.read_text())
    with contextlib.chdir(shop.root):
        assert " --plan ./-p.yaml " in last(shop.run(capsys, "status", "--plan", "./-p.yaml").out)
    for words in (["run", "--rerun-from", "./-x"], ["claim", "./-x", "--by", "me"], ["why", "./-out"]):
        assert "-x" in shop.run(capsys, *words).out


def test_an_effect_that_is_in_doubt_is_asked_about_by_whoever_is_asked(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """`status` leads to `why`, and `why` to what decides it, as the run does: each can be typed as it stands."""
    shop = project(tmp_path, FEED.replace('"exit 3"', '"test -f go && echo a > {output}", effects: external'))
    shop.save()
    start = StartArtifacts(ids=("feed",))
    with shop.project.folder("news").writing() as writer:
        token = writer.execute(start, by="test")[0].seq
        writer.execute(ReleaseArtifacts(ids=("feed",), reason="interrupted", token=token), by="test")
    (shop.root / "go").touch()
    where = f"--project {shop.root}"
    assert last(shop.run(capsys, "status").out) == f"3 to make at most. Next: headway why feed {where}"
    ways = [
        f"headway run --rerun feed {where}",
        f"headway accept feed {where}",
        f"headway skip feed --reason … {where}",
    ]
    question = f"feed has effects elsewhere and was interrupted. It was not touched. Decide: {'  or  '.join(ways)}"
    assert question in shop.run(capsys, "run").out
    assert last(shop.run(capsys, "why", "feed").out) == f"  {question}"
    assert shop.run(capsys, *shlex.split(ways[2])[1:]).code == 0


def test_why_of_a_failed_verify_names_the_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """It is what has to be typed to see for oneself."""
    shop = project(tmp_path, FEED.replace('run: "exit 3"', 'run: "echo x > {output}", verify: "grep -q y feed.txt"'))
    shop.run(capsys, "run")
    assert "\n  verify: grep -q y feed.txt\n" in shop.run(capsys, "why", "feed").out


def test_why_shows_a_functions_own_frames_and_none_of_headways(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Whoever wrote the function looks for their line."""
    shop = project(tmp_path, FEED.replace('run: "exit 3"', "make: feeding:feed"))
    (shop.root / "feeding.py").write_text("def feed():\n    raise KeyError('no feed')\n", encoding="utf-8")
    shop.run(capsys, "run")
    shown = shop.run(capsys, "why", "feed").out
    assert "feeding.py" in shown
    assert "KeyError: 'no feed'" in shown
    assert "headway/engine" not in shown


def test_accepting_all_of_nothing_is_no_mistake(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """There is nothing to accept, and that is said."""
    shop = project(tmp_path, FEED)
    done = shop.run(capsys, "accept", "--all")
    assert (done.code, done.out, done.err) == (0, "Nothing to accept.\n", "")
    assert shop.run(capsys, "accept", "--all", "--json").json["accepted"] == []
    assert shop.run(capsys, "accept").code == 2


def test_a_variable_that_is_set_is_said_to_stay(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """It is what the next run goes by as well."""
    plan = FEED.replace("artifacts:", "vars: {who: ann}\nartifacts:").replace("exit 3", "echo {vars.who} > {output}")
    shop = project(tmp_path, plan)
    done = shop.run(capsys, "run", "--set", "who=bob")
    assert (done.code, done.err) == (0, "Set who=bob. It stays so until the next --set or a change of the file.\n")
    assert shop.run(capsys, "run").out.startswith("Nothing to do")
    assert (shop.root / "feed.txt").read_text(encoding="utf-8") == "bob\n"


@pytest.mark.parametrize(
    ("given", "meant"), [("who", "who=VALUE"), ("wo", "who=VALUE"), ("bar", "NAME=VALUE")], ids=["it", "nearly", "none"]
)
def test_a_variable_without_a_value_is_told_by_one_that_the_plan_has(
    given: str, meant: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """What to type is about this plan, as its file has it, before and after it was taken in."""
    shop = project(tmp_path, "id: p\ngoal: g\nvars: {who: ann, n: 1}\nartifacts: {a: {run: 'echo {vars.who}'}}\n")
    for _ in range(2):
        done = shop.run(capsys, "run", "--set", given)
        assert (done.code, done.err.splitlines()) == (
            2,
            [
                f"headway: --set takes NAME=VALUE, not {given}",
                "  the plan's variables: who, n",
                f"  next: headway run --project {shop.root} --set {meant}",
            ],
        )
        shop.run(capsys, "run")
    shop.file.write_text("id: p\ngoal: g\nartifacts: {a: {run: 'echo'}}\n")
    assert "variables: none: vars: {NAME: VALUE} in the plan gives" in shop.run(capsys, "run", "--set", given).err


def test_too_many_units_lead_to_the_maximum(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """To make the outline anew may bring the same again: whatever else is wrong with it, one looks at it first."""
    plan = (
        "id: p\ngoal: g\nartifacts:\n  o: {produces: o.json, sources: [s.json], run: 'cat s.json > {output}'}\n"
        "pipelines:\n  scene: {units: {from: o, items: 'u[*]', max: 1}, phases: {w: {run: echo}}}\n"
    )
    shop = project(tmp_path, plan)
    (shop.root / "s.json").write_text('{"u": ["a", "b"]}')
    shop.run(capsys, "run")
    said = shop.run(capsys, "why", "scene:*")
    assert last(said.out) == (
        f"  Next: raise units.max of pipeline scene in headway.yaml, then headway run --project {shop.root}; "
        f"or have o name fewer: headway run --rerun-from o --project {shop.root}"
    )
    assert shop.run(capsys, "why", "scene:*", "--json").json["most_units"] == {
        "pipeline": "scene",
        "max": 1,
        "file": "headway.yaml",
    }
    (shop.root / "s.json").write_text("{}")
    shop.run(capsys, "run")
    said = shop.run(capsys, "why", "scene:*")
    assert said.out.splitlines()[-2:] == [
        f"  It follows from o: mend that, or the plan, and headway run --project {shop.root} goes on;",
        (
            f"  or make it anew: headway run --rerun-from o --project {shop.root}. "
            f"Next: headway show o --project {shop.root}"
        ),
    ]
    assert "{}" in shop.run(capsys, "show", "o").out
    (shop.root / "s.json").write_text('{"u": ["a", "b"]}')
    shop.file.write_text(plan.replace("max: 1", "max: 2"))
    assert shop.run(capsys, "run").code == 0


def test_phases_of_a_phase_lead_to_those_of_its_unit(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Whoever names an artifact, as elsewhere, means its unit."""
    shop = project(tmp_path, SEQUENCE)
    shop.run(capsys, "run")
    for given in ("a/check", "A"):
        said = shop.run(capsys, "phases", given)
        assert said.err.splitlines() == [
            f"headway: Plan essays has no unit {given}",
            "  did you mean: a",
            f"  next: headway phases --project {shop.root} a",
        ]
    said = shop.run(capsys, "phases", "nothing-like-it")
    assert last(said.err).strip() == f"next: headway status --project {shop.root} shows units and phases"


@pytest.mark.parametrize(
    ("value", "same", "other"),
    [("7", "7", "8"), ("'7'", "7", "7.0"), ("0.5", "0.5", "half"), ("true", "true", "no"), ("[a, 1]", "[a, 1]", "[a")],
    ids=["number", "text", "fraction", "truth", "list"],
)
def test_a_variable_is_set_to_what_the_file_would_make_of_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], value: str, same: str, other: str
) -> None:
    """Set to what it is, nothing changes, also after it was something else; text stays text."""
    plan = FEED.replace("artifacts:", f"vars: {{n: {value}}}\nartifacts:").replace("exit 3", "echo {vars.n} > {output}")
    shop = project(tmp_path, plan)
    assert shop.run(capsys, "run").code == 0
    assert shop.run(capsys, "run", "--set", f"n={same}").out.startswith("Nothing to do")
    assert shop.run(capsys, "run", "--set", f"n={other}").out.startswith("made ")
    assert shop.run(capsys, "run", "--set", f"n={same}").out.startswith("reused ")
    assert shop.run(capsys, "run").out.startswith("Nothing to do")


def test_what_was_accepted_or_brought_back_says_what_follows(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """What is behind it may be stale now."""
    shop = project(tmp_path, FEED.replace("exit 3", "echo news > {output}"))
    shop.run(capsys, "run")
    (shop.root / "feed.txt").write_text("mine\n", encoding="utf-8")
    here = f"--project {shop.root}"
    assert last(shop.run(capsys, "accept", "feed").out) == f"Accepted 1: feed. Next: headway run {here}"
    here = re.escape(here)
    said = last(shop.run(capsys, "restore", "feed").out)
    assert re.fullmatch(rf"Restored and accepted feed as of event \d+: feed\.txt\. Next: headway run {here}", said)
    said = last(shop.run(capsys, "why", "feed").out)
    anew = f"headway run --rerun feed --discard-edits {here}"
    assert re.fullmatch(rf"  accepted as it is by \w+ \(restored from event \d+\); to make it anew: {anew}", said)
    assert shop.run(capsys, "run", "--rerun", "feed", "--discard-edits", "--json").json["made"][0] == "feed"
    assert last(shop.run(capsys, "why", "feed").out) == "feed is complete and up to date."
    assert shop.run(capsys, "why", "letter", "--json").json["accepted"] is None
    assert re.search(r"recorded at: event \d+, ", shop.run(capsys, "restore", "feed", "--at", "1").err)
    assert last(shop.run(capsys, "gate", "feed").out) == "  It has no gates."


BESIDE = """\
goal: Beside the others
artifacts:
  told: {produces: told.txt}
  seen: {run: "echo seen", gates: {review: {by: [bob]}}}
"""


def beside(tmp_path: Path) -> tuple[Workshop, str]:
    """A project whose own plan is another one, and how this one is named."""
    shop = project(tmp_path, FEED)
    (shop.root / "beside.yaml").write_text(BESIDE, encoding="utf-8")
    return shop, str(shop.root / "beside.yaml")


def test_documents_name_the_plan_that_they_are_about(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Without it their commands would be about another plan: the project's own."""
    shop, file = beside(tmp_path)
    named = f" --plan {file} --project {shop.root}"
    ran = shop.run(capsys, "run", "--plan", file, "--json").json
    word = f"headway gate seen review approve --by bob{named}"
    assert ran["waiting"] == {"told": f"headway claim told{named}", "seen": f"gate review (review; of bob): {word}"}
    assert ran["paused"]["resume"] == word
    status = shop.run(capsys, "status", "--plan", file, "--json").json
    assert status["next"] == status["artifacts"]["seen"]["missing"][0]["command"] == word
    assert shop.run(capsys, "why", "seen", "--plan", file, "--json").json["missing"][0]["command"] == word
    assert shop.run(capsys, "next", "--plan", file, "--json").json["waiting"]["seen"].endswith(word)


@pytest.mark.parametrize("name", ['it\'s, a; "b"', "a,b"])
def test_a_name_with_quotes_and_commas_in_it_is_still_one_word(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], name: str
) -> None:
    """The options that name the plan come after it, and not into it."""
    shop, _ = beside(tmp_path)
    file = shop.root / "odd.yaml"
    file.write_text(json.dumps({"goal": "Odd", "artifacts": {name: {"produces": "odd.txt"}}}), encoding="utf-8")
    said = shop.run(capsys, "status", "--plan", str(file), "--json").json["next"]
    words = ["claim", name, "--plan", str(file), "--project", str(shop.root)]
    assert shlex.split(said) == ["headway", *words]
    assert shop.run(capsys, *words).code == 0


def test_texts_name_the_plan_that_they_are_about(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Wherever a gate is told of, also beside the line that says what is next."""
    shop, file = beside(tmp_path)
    word = f"headway gate seen review approve --by bob --plan {file} --project {shop.root}"
    for verb in ("run", "next", "status"):
        assert f"gate review (review; of bob): {word}\n" in shop.run(capsys, verb, "--plan", file).out


def test_errors_name_the_plan_that_they_are_about(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """In words and for machines."""
    shop, file = beside(tmp_path)
    lists = f"headway status --plan {file} --project {shop.root} lists them"
    assert lists in shop.run(capsys, "run", "nosuch", "--plan", file).err
    assert lists in shop.run(capsys, "run", "nosuch", "--plan", file, "--json").json["error"]["hint"]
    known = shop.run(capsys, "why", "nosuch", "--plan-id", "nosuch")
    assert "next: headway plans list\n" in known.err


def test_a_pause_is_resumed_by_a_command_about_the_same_plan(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Out of quota, say: in the document of the run and in that of the status after it."""
    shop = project(tmp_path, FEED)
    file = shop.root / "quota.yaml"
    file.write_text('goal: q\nartifacts: {q: {run: "exit 75"}}\n', encoding="utf-8")
    resume = f"headway run --plan {file} --project {shop.root}"
    for verb in ("run", "status"):
        assert shop.run(capsys, verb, "--plan", str(file), "--json").json["paused"]["resume"] == resume


def test_what_has_a_blank_in_its_name_can_be_made_as_why_says(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """It is a goal only where the plan has nothing of that name, and its path is as good as its id."""
    blank = 'goal: A goal\nartifacts: {"d d": {run: "echo hi > {output}", produces: "d d.txt"}}\n'
    shop = project(tmp_path, blank)
    said = last(shop.run(capsys, "why", "d d").out).partition("Next: headway ")[2]
    assert shop.run(capsys, *shlex.split(said), "--json").json["made"] == ["d d"]
    assert shop.run(capsys, "run", "d d.txt").out.startswith("Nothing to do")
    assert shop.run(capsys, "run", "A goal").out.startswith("Nothing to do")
    assert "There is no plan for this goal yet" in shop.run(capsys, "run", "d e").err


OLDER = """\
id: older
goal: A file that was there before
artifacts:
  up: {sources: [in.txt], produces: out.txt, run: "tr a-z A-Z < in.txt > {output}"}
"""


def older(tmp_path: Path) -> tuple[Workshop, str]:
    """A project with something at the path of an output that was never made, and how its commands end."""
    shop = project(tmp_path, OLDER)
    (shop.root / "in.txt").write_text("hi\n", encoding="utf-8")
    (shop.root / "out.txt").write_text("other\n", encoding="utf-8")
    return shop, f" --project {shop.root}"


def test_whoever_asks_about_a_file_that_was_there_before_is_told_the_two_decisions(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Before the plan is saved and after; none of the commands on the way leads round in a circle."""
    shop, here = older(tmp_path)
    ways = f"Decide: headway accept up{here}  or  headway run up --discard-edits{here}"
    for _ in ("not saved yet", "saved"):
        assert last(shop.run(capsys, "status").out) == f"up is yours to decide: headway diff up{here} shows it. {ways}"
        assert last(shop.run(capsys, "why", "up").out) == f"  {ways}"
        shown = shop.run(capsys, "diff", "up")
        assert shown.out.splitlines()[0] == "up was never made; at its path stands what nobody has decided about:"
        assert "+other" in shown.out
        assert last(shown.out) == ways
        assert shop.run(capsys, "diff", "up", "--json").json["since"] is None
        shop.run(capsys, "run")
    assert f"next: headway why{here} up\n" in shop.run(capsys, "show", "up").err
    assert shop.run(capsys, "accept", "up").code == 0
    assert (shop.root / "out.txt").read_text(encoding="utf-8") == "other\n"


def test_what_is_discarded_says_how_to_have_it_back(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """By the user's word, too: it is only set aside."""
    shop, here = older(tmp_path)
    said = shop.run(capsys, "run", "up", "--discard-edits").out
    found = re.search(rf"What stood at out\.txt is kept: headway (restore up --at \d+){here} brings it back", said)
    assert found is not None
    assert (shop.root / "out.txt").read_text(encoding="utf-8") == "HI\n"
    assert shop.run(capsys, *found[1].split()).code == 0
    assert (shop.root / "out.txt").read_text(encoding="utf-8") == "other\n"


def test_a_diff_of_what_was_never_made_and_is_not_there_says_what_makes_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """There is nothing to compare, and nothing to show."""
    shop, here = older(tmp_path)
    (shop.root / "out.txt").unlink()
    assert f"next: headway run{here} up\n" in shop.run(capsys, "diff", "up").err


def test_several_that_are_to_be_decided_about_are_counted(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """And one command decides about them all."""
    shop = project(tmp_path, FEED.replace("exit 3", "echo news > {output}"))
    shop.run(capsys, "run")
    for name in ("feed", "letter"):
        (shop.root / f"{name}.txt").write_text("mine\n", encoding="utf-8")
    here = f" --project {shop.root}"
    assert last(shop.run(capsys, "status").out) == (
        f"feed and 1 more are yours to decide: headway diff feed{here} shows the first. "
        f"Decide: headway accept --all{here}  or  headway run --discard-edits{here}"
    )


def test_what_failed_is_made_again_by_whatever_makes_it(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """`next` leads to a run where there is a recipe, and to a claim where there is none."""
    shop = project(tmp_path, FEED.replace("artifacts:\n", "artifacts:\n  hand: {produces: hand.txt}\n"))
    here = f" --project {shop.root}"
    shop.run(capsys, "run")
    shop.run(capsys, "claim", "hand")
    shop.run(capsys, "fail", "hand", "--error", "no pen")
    said = shop.run(capsys, "next").out
    assert f"feed failed: exit code 3. Next: headway run feed{here}, or headway replan --plan FILE\n" in said
    assert f"hand failed: no pen. Next: headway claim hand{here}, or headway replan --plan FILE\n" in said


def test_who_gives_back_what_is_complete_is_told_that_it_is(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A claim would be refused."""
    shop = project(tmp_path, FEED.replace("exit 3", "echo news > {output}"))
    shop.run(capsys, "run")
    for words in (("release", "feed"), ("fail", "feed", "--error", "x"), ("heartbeat", "feed"), ("complete", "feed")):
        refused = shop.run(capsys, *words)
        assert refused.code == 2
        assert f"status: complete\n  next: headway why --project {shop.root} feed\n" in refused.err


def test_status_counts_what_is_only_put_back_apart(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """As a preview does: it costs nothing to have it again."""
    shop = project(tmp_path, "id: p\ngoal: g\nartifacts:\n  a: {run: 'echo a > {output}', produces: a.txt}\n")
    shop.run(capsys, "run")
    (shop.root / "a.txt").unlink()
    assert last(shop.run(capsys, "status").out).startswith("1 to put back. Next: headway run")
    assert "1 to put back" in shop.run(capsys, "run", "-n").out
