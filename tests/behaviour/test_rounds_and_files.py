"""Units that come to be what they once were: rounds of loops, and files that phases change in place."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from headway.core.lifecycle import progress
from headway.work import Work
from tests.workshop import Done, Workshop

PLAN = """\
id: p
goal: g
artifacts:
  book: {requires: ['scene:*/apply'], produces: book.txt, run: "cat out/*.md > {output}"}
pipelines:
  scene:
    units: [a, b]
    order: sequential
    phases:
      write: {run: "cat {prompt} > {outputs.prose}", templates: prompts/write.md, outputs: {prose: 'out/{unit}.md'}}
      repair:
        run: "cat {prompt} >> {outputs.prose}; echo {id} >> calls.txt"
        templates: prompts/repair.md
        outputs: {prose: 'out/{unit}.md'}
      lint:
        run: "python3 lint.py {unit} > {outputs.report}"
        sources: ['needs/{unit}', lint.py]
        outputs: {report: 'out/{unit}.json'}
        repeat: [repair, lint]
        until: 'report.rounds >= report.needed'
        times: 3
      polish: {run: "cat {inputs.repair} > {outputs.o}; echo {id} >> calls.txt", outputs: {o: 'out/{unit}.txt'}}
      apply: {run: "wc -c {inputs.polish} > {outputs.count}", outputs: {count: 'out/{unit}.count'}}
"""
BOUND = """\
artifacts:
  bound: {requires: ['scene:*/repair'], produces: bound.txt, run: "cat out/*.md > {output}"}
  one: {requires: [a/repair], produces: one.txt, run: "cat {inputs[a/repair]} > {output}"}
"""
LINT = """\
import json, sys
rounds = open(f"out/{sys.argv[1]}.md").read().count("repair")
print(json.dumps({"rounds": rounds, "needed": int(open(f"needs/{sys.argv[1]}").read())}))
"""


class Scenes(Workshop):
    """The plan above; how often a unit's loop has to be gone round is in files."""

    def __init__(self, root: Path, capsys: pytest.CaptureFixture[str]) -> None:
        super().__init__(root)
        self._capsys = capsys
        self.file.write_text(PLAN)
        (root / "lint.py").write_text(LINT)
        (root / "prompts").mkdir()
        (root / "needs").mkdir()
        self.prompt("write", "write {{ unit }}")
        self.prompt("repair", "repair {{ iteration }}")
        self.needs(a=1, b=1)

    def prompt(self, name: str, text: str) -> None:
        (self.root / f"prompts/{name}.md").write_text(f"{text}\n")

    def needs(self, **rounds: int) -> None:
        for unit, count in rounds.items():
            (self.root / f"needs/{unit}").write_text(str(count))

    def go(self, *words: str) -> Done:
        """`headway run`."""
        return self.run(self._capsys, "run", *words)

    def calls(self) -> list[str]:
        """What was made of some phases since this was last asked."""
        path = self.root / "calls.txt"
        found = path.read_text().splitlines() if path.exists() else []
        path.unlink(missing_ok=True)
        return found


@pytest.fixture
def scenes(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Scenes:
    return Scenes(tmp_path / "p", capsys)


def test_a_loop_that_is_gone_round_once_more_is_waited_for_by_who_reads_its_last_round(scenes: Scenes) -> None:
    """Whatever the run before has left known: what follows is made once, and from the last round."""
    assert scenes.go().code == 0
    assert scenes.go().out.startswith("Nothing to do")
    scenes.calls()
    scenes.needs(a=2)
    assert scenes.go().code == 0
    assert scenes.calls() == ["a/repair~2", "a/polish"]
    assert (scenes.root / "out/a.txt").read_text() == "write a\nrepair 1\nrepair 2\n"
    assert "Nothing to do" in scenes.go().out


def test_whoever_requires_a_phase_of_all_units_reads_their_last_rounds(scenes: Scenes) -> None:
    """However many there turn out to be, and whether there are more of them, or fewer, by the next time."""
    scenes.edit("artifacts:\n", BOUND)
    for rounds, first in ((2, "repair 2\n"), (3, "repair 3\n"), (1, "repair 1\n")):
        scenes.needs(a=rounds)
        assert scenes.go().code == 0
        prose = [(scenes.root / f"out/{unit}.md").read_text() for unit in "ab"]
        assert prose[0].endswith(first)
        assert (scenes.root / "bound.txt").read_text() == "".join(prose)
        assert (scenes.root / "one.txt").read_text() == prose[0]
        assert "Nothing to do" in scenes.go().out


def test_what_a_limit_leaves_is_what_is_still_to_be_made(scenes: Scenes) -> None:
    """What only stands for others is not counted: nobody makes it."""
    ran = scenes.go("--limit", "3")
    assert "3 made, 8 left by --limit" in ran.out
    assert progress(scenes.load("p").state) == (3, 11)


def test_a_loop_that_asks_for_less_than_before_ends_with_the_first_round_that_is_enough(scenes: Scenes) -> None:
    """As if it had never been gone round again; and what was made then is there when it asks for more."""
    less, more = "'report.rounds >= report.needed'", "'report.rounds > report.needed'"
    scenes.edit(less, more)
    assert scenes.go().code == 0
    two = (scenes.root / "out/a.txt").read_text()
    scenes.calls()
    scenes.edit(more, less)
    assert scenes.go().code == 0
    assert sorted(scenes.calls()) == ["a/polish", "b/polish"]
    assert [(scenes.root / f"out/a.{end}").read_text() for end in ("md", "txt")] == ["write a\nrepair 1\n"] * 2
    assert "a/repair~2" not in scenes.load("p").state.artifacts
    assert "Nothing to do" in scenes.go().out
    scenes.edit(less, more)
    assert scenes.go().code == 0
    assert scenes.calls() == []
    assert [(scenes.root / f"out/a.{end}").read_text() for end in ("md", "txt")] == [two] * 2


LOOP = """\
id: p
goal: g
vars: {needs: 2}
pipelines:
  scene:
    units: [a]
    phases:
      write: {run: "echo write > {outputs.prose}", outputs: {prose: '{unit}.md'}}
      repair: {run: "echo repair >> {outputs.prose}", outputs: {prose: '{unit}.md'}}
      lint:
        run: "test $(wc -l < {unit}.md) -gt {vars.needs} && echo true > {outputs.o} || echo false > {outputs.o}"
        outputs: {o: '{unit}.json'}
        repeat: [repair, lint]
        until: 'o == true'
        times: 3
"""


@pytest.fixture
def shrinking(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Workshop:
    """A loop that has been gone round twice, and then three times."""
    shop = Workshop(tmp_path / "p")
    shop.file.write_text(LOOP)
    for needs in ("2", "3"):
        assert shop.run(capsys, "run", "--set", f"needs={needs}").code == 0
    assert (shop.root / "a.md").read_text() == "write\n" + "repair\n" * 3
    return shop


def test_a_loop_that_needs_fewer_rounds_leaves_the_file_as_the_last_of_them_did(
    shrinking: Workshop, capsys: pytest.CaptureFixture[str]
) -> None:
    """In the same run, though nothing is made of what is left, as all of it was there before."""
    ran = shrinking.run(capsys, "run", "--set", "needs=2", "--json").json
    assert (ran["status"], ran["made"]) == ("completed", [])
    assert (shrinking.root / "a.md").read_text() == "write\n" + "repair\n" * 2
    assert "Everything is up to date" in shrinking.run(capsys, "status").out


def test_what_somebody_made_of_a_file_does_not_go_with_the_rounds_that_are_gone(
    shrinking: Workshop, capsys: pytest.CaptureFixture[str]
) -> None:
    """It is asked about, and stays until then."""
    (shrinking.root / "a.md").write_text("mine\n")
    assert shrinking.run(capsys, "run", "--set", "needs=2").code == 3
    assert (shrinking.root / "a.md").read_text() == "mine\n"


def test_a_round_that_has_to_be_put_back_is_seen_among_units_and_phases(
    scenes: Scenes, capsys: pytest.CaptureFixture[str]
) -> None:
    """What stands for it is not made again, and yet not all is as it should be."""
    scenes.needs(a=2)
    scenes.go()
    (scenes.root / "out/a.md").unlink()
    cells = scenes.run(capsys, "status", "--json").json["pipelines"]["scene"]["units"]["a"]
    assert [phase for phase, cell in cells.items() if cell["freshness"] == "stale"] == ["repair"]


SHARED = """\
id: p
goal: g
artifacts:
  list: {produces: list.json, run: "cat names > {output}"}
  first: {produces: log.txt, run: "echo first > {output}"}
pipelines:
  note:
    units: {from: list, items: '[*]'}
    order: sequential
    phases:
      add: {run: "echo {unit} >> {outputs.log}", outputs: {log: log.txt}}
"""


@pytest.mark.parametrize("skipped", [False, True], ids=["made", "skipped"])
def test_a_file_that_units_share_is_left_as_those_did_that_are_still_there(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], skipped: bool
) -> None:
    """Others vanish while the run is on, and those that stay are kept: also one that leaves it to whoever is before."""
    shop = Workshop(tmp_path / "p")
    shop.file.write_text(SHARED)
    (shop.root / "names").write_text('["a"]')
    assert shop.run(capsys, "run", "first").code == 0
    if skipped:
        assert shop.run(capsys, "run", "list").code == 0
        assert shop.run(capsys, "skip", "a/add", "--reason", "not needed").code == 0
    (shop.root / "names").write_text('["a", "b"]')
    assert shop.run(capsys, "run").code == 0
    there = "first\n" if skipped else "first\na\n"
    assert (shop.root / "log.txt").read_text() == f"{there}b\n"
    (shop.root / "names").write_text('["a"]')
    assert shop.run(capsys, "run").code == 0
    assert (shop.root / "log.txt").read_text() == there
    assert "Nothing to do" in shop.run(capsys, "run").out


@pytest.mark.parametrize(("before", "after"), [('["a"]', '["a", "b"]'), ('["a", "b"]', '["a"]')], ids=["come", "go"])
def test_whoever_reads_a_file_by_its_path_before_the_units_are_known_that_change_it_is_told_so(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], before: str, after: str
) -> None:
    """It waits for those that there were: the run ends with 1, and the next one makes it from what the others left."""
    shop = Workshop(tmp_path / "p")
    shop.file.write_text(SHARED)
    shop.edit(
        "pipelines:", "  copy: {sources: [log.txt], produces: copy.txt, run: 'cat log.txt > {output}'}\npipelines:"
    )
    (shop.root / "names").write_text(before)
    while shop.run(capsys, "run").code:
        pass
    (shop.root / "names").write_text(after)
    shop.edit("cat log.txt", "tac log.txt")
    ran = shop.run(capsys, "run", "--json")
    assert (ran.code, ran.json["changed_meanwhile"]) == (1, {"copy": "log.txt"})
    assert shop.run(capsys, "run", "--json").json["made"] == ["copy"]
    assert (shop.root / "copy.txt").read_text().splitlines()[::-1] == (shop.root / "log.txt").read_text().splitlines()
    assert "Nothing to do" in shop.run(capsys, "run").out


def test_an_edit_that_was_accepted_in_a_round_is_asked_about_when_the_loop_is_gone_round_anew(scenes: Scenes) -> None:
    """Though it was not the last round, so that the file is not as it was then."""
    scenes.needs(a=2)
    assert scenes.go().code == 0
    prose = scenes.root / "out/a.md"
    prose.write_text("write a\nrepair 1\nrepair 2\nmine\n")
    scenes.needs(a=3)
    assert scenes.go("--accept-edits").code == 0
    assert prose.read_text() == (mine := "write a\nrepair 1\nrepair 2\nmine\nrepair 3\n")
    ran = scenes.go("--rerun-from", "a/repair")
    assert (ran.code, prose.read_text()) == (3, mine)
    assert "held     a/repair~2            it was accepted as it is, and since then asked for" in ran.out
    assert (scenes.go("--accept-edits").code, prose.read_text()) == (0, mine)


@pytest.mark.parametrize("answer", ["--accept-edits", "--discard-edits"])
def test_an_edit_that_was_accepted_in_a_round_is_asked_about_when_the_loop_ends_before_it(
    scenes: Scenes, answer: str
) -> None:
    """The round stays until its author gives it up; then the loop ends with the first round that is enough."""
    scenes.edit("; echo {id} >> calls.txt", "")
    scenes.needs(a=2)
    assert scenes.go().code == 0
    prose = scenes.root / "out/a.md"
    prose.write_text(mine := "write a\nrepair 1\nrepair 2\nmine\n")
    assert scenes.go("--accept-edits").code == 0
    scenes.needs(a=1)
    ran = scenes.go()
    assert (ran.code, "held     a/repair~2" in ran.out, prose.read_text()) == (3, True, mine)
    ran = scenes.go(answer)
    is_kept = answer == "--accept-edits"
    assert (ran.code, prose.read_text()) == (0, mine if is_kept else "write a\nrepair 1\n")
    assert ("a/repair~2" in scenes.load("p").state.artifacts) == is_kept
    if not is_kept:
        found = re.search("headway restore 'a/repair~1' --at ([0-9]+)", ran.out)
        assert found
        Work(scenes.project).restore("p", "a/repair~1", at=int(found[1]))
        assert prose.read_text() == mine


def test_an_edit_that_was_accepted_in_a_round_stands_though_the_loop_would_ask_for_less(scenes: Scenes) -> None:
    """Nothing that it was made from has changed."""
    scenes.edit("; echo {id} >> calls.txt", "")
    less, more = "'report.rounds >= report.needed'", "'report.rounds > report.needed'"
    scenes.edit(less, more)
    assert scenes.go().code == 0
    prose = scenes.root / "out/a.md"
    prose.write_text(mine := "write a\nrepair 1\nrepair 2\nmine\n")
    assert scenes.go("--accept-edits").code == 0
    scenes.edit(more, less)
    assert (scenes.go().code, prose.read_text()) == (0, mine)


def test_a_file_whose_stages_are_taken_over_stands_as_the_last_left_it_before_others_look(scenes: Scenes) -> None:
    """A prompt is tried and taken back, another unit changes meanwhile: what is bound is what will be there."""
    assert scenes.go().code == 0
    scenes.prompt("repair", "repair better {{ iteration }}")
    assert scenes.go("a/*", "--prompt-change", "trying").code == 0
    scenes.prompt("repair", "repair {{ iteration }}")
    scenes.needs(b=2)
    assert scenes.go().code == 0
    prose = [(scenes.root / f"out/{unit}.md").read_text() for unit in "ab"]
    assert prose == ["write a\nrepair 1\n", "write b\nrepair 1\nrepair 2\n"]
    assert (scenes.root / "book.txt").read_text() == "".join(prose)


@pytest.mark.parametrize("units", ["[a, b]", "{from: list, items: '[*]'}"])
def test_a_phase_takes_a_phase_of_all_units_of_another_pipeline(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], units: str
) -> None:
    """Though no artifact outside of pipelines asks for it; in whatever order they stand."""
    shop = Workshop(tmp_path / "p")
    shop.file.write_text(
        'id: p\ngoal: g\nartifacts:\n  list: {produces: list.json, run: \'echo [\\"a\\", \\"b\\"] > {output}\'}\n'
        "pipelines:\n"
        "  note:\n    units: [n]\n    phases:\n      draft: {requires: ['scene:*/write'],"
        " run: 'cat {inputs[scene:*/write]} > {outputs.o}', outputs: {o: 'note.md'}}\n"
        f"  scene:\n    units: {units}\n    phases:\n"
        "      write: {run: 'echo {unit} > {outputs.o}', outputs: {o: 'out/{unit}.md'}}\n"
    )
    ran = shop.run(capsys, "run", "--json").json
    assert (ran["status"], sorted(ran["made"])) == ("completed", ["a/write", "b/write", "list", "n/draft"])
    assert '"path": "out/b.md"' in (shop.root / "note.md").read_text()
    assert "Nothing to do" in shop.run(capsys, "run").out


def test_an_outline_that_names_a_unit_that_cannot_be_is_mended_by_another(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Nothing refuses to look at the plan meanwhile, and what is in the way is named."""
    shop = Workshop(tmp_path / "p")
    shop.file.write_text(
        "id: p\ngoal: g\nartifacts:\n  list: {produces: list.json, sources: [names], run: 'cp names {output}'}\n"
        "  sum: {produces: out/sum.md, run: 'echo s > {output}'}\n"
        "pipelines:\n  scene:\n    units: {from: list, items: '[*]'}\n    phases:\n"
        "      write: {run: 'echo {unit} > {outputs.o}', outputs: {o: 'out/{unit}.md'}}\n"
    )
    (shop.root / "names").write_text('["a", "sum"]')
    failed = shop.run(capsys, "run")
    assert (failed.code, "both produce out/sum.md" in failed.out) == (1, True)
    assert shop.run(capsys, "status").code == 0
    (shop.root / "names").write_text('["a", "b"]')
    ran = shop.run(capsys, "run", "--json").json
    assert (ran["status"], sorted(ran["made"])) == ("completed", ["a/write", "b/write", "list"])


@pytest.mark.parametrize("units", ["b", "b, a"])
def test_a_state_that_was_accepted_is_applied_to_once_when_units_move(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], units: str
) -> None:
    """Made anew, the unit that is the first now begins where the first one began."""
    plan = (
        "id: p\ngoal: g\npipelines:\n  scene:\n    units: [UNITS]\n    state: state.txt\n    phases:\n"
        "      apply: {run: 'echo {unit} >> {state}', outputs: {state: state.txt}}\n"
    )
    shop = Workshop(tmp_path / "p")
    shop.file.write_text(plan.replace("UNITS", "a, b"))
    shop.run(capsys, "run")
    state = shop.root / "state.txt"
    state.write_text("a\nb, by hand\n")
    shop.run(capsys, "accept", "b/apply")
    assert shop.run(capsys, "status", "--check").code == 0
    shop.file.write_text(plan.replace("UNITS", units))
    shop.run(capsys, "run", "--rerun", "b/apply", "--discard-edits")
    assert state.read_text().split() == units.split(", ")
