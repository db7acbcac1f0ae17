"""A plan that failed is followed by a better one: bounded, versioned, and silent about nothing."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from headway.core.events import ReplanFailed
from headway.core.plan import ArtifactSpec, PlanSpec
from headway.engine.planners import PlanFailure
from headway.errors import HeadwayError, UsageError
from headway.files.planfile import parse_plan
from headway.project import Project
from tests.behaviour.crew import Crew
from tests.workshop import Workshop, spec

PLAN = """\
id: p
goal: Build it
artifacts:
  base: {produces: base.txt, run: "echo base > {output}; echo made >> base.log"}
  part: {requires: [base], produces: part.txt, run: "exit 1"}
  whole: {requires: [part], produces: whole.txt, run: "cat {inputs.part} > {output}"}
"""
MENDED = PLAN.replace("exit 1", "cat {inputs.base} > {output}")


@pytest.fixture
def crew(tmp_path: Path) -> Crew:
    """A plan whose middle cannot be made."""
    made = Crew(tmp_path / "project", PLAN)
    assert made.run().exit_code == 1
    return made


def plan(text: str) -> PlanSpec:
    parsed = parse_plan(text.encode(), name="plan.yaml").plan
    assert parsed is not None
    return parsed


def test_a_better_plan_is_a_new_version_with_its_parent_and_completed_work_is_kept(crew: Crew) -> None:
    """What failed is tried in its new shape; the base is not made again; the old version can still be read."""
    assert crew.status() == "failed"
    seq = crew.seq
    execution = crew.planning("ann").replan("p", plan(MENDED), reason="use the base")
    (version,) = execution.state.replans
    assert (version.version, version.parent, version.updated, version.failed) == (2, 1, ("part",), ("part",))
    assert (version.by, version.reason, execution.state.status) == ("ann", "use the base", "in_progress")
    result = crew.run()
    assert (result.made, result.kept) == (["part", "whole"], ["base"])
    assert crew.read("base.log") == "made\n"
    assert Project(crew.root).show("p", at=seq).state.artifacts["part"].run == "exit 1"
    assert [(v.version, v.parent, v.modified) for v in Project(crew.root).versions("p")] == [
        (1, 0, []),
        (2, 1, ["part"]),
    ]


def test_a_run_asks_its_planner_and_goes_on_with_the_better_plan(crew: Crew) -> None:
    """One call: fail, replan, make the rest."""
    asked: list[PlanFailure] = []

    def replan(plan: PlanSpec, failure: PlanFailure) -> dict[str, Any]:
        asked.append(failure)
        assert [s.id for s in plan.artifacts] == ["base", "part", "whole"]
        fix = {"id": "fix", "produces": ["fix.txt"], "run": "echo fix > {output}"}
        part = {"id": "part", "requires": ["base", "fix"], "produces": ["part.txt"], "run": "cat fix.txt > part.txt"}
        return {"add": [fix], "update": [part], "reason": "fix first"}

    result = crew.run(replan=replan)
    assert (result.exit_code, sorted(result.made)) == (0, ["fix", "part", "whole"])
    assert (asked[0].failed, asked[0].left) == ({"part": "exit code 1"}, 1)
    assert crew.events().count("replan_began") == crew.events().count("plan_replanned") == 1
    assert (crew.status(), crew.state.version, crew.state.replanned) == ("complete", 2, 0)


def test_a_plan_names_its_planner_itself(tmp_path: Path) -> None:
    """A function of the project, by its name in the plan file."""
    crew = Crew(tmp_path / "project")
    crew.write(
        "planners.py",
        "def better(plan, failure):\n"
        "    return {'update': [{'id': 'part', 'requires': ['base'], 'produces': ['part.txt'],\n"
        "                        'run': 'echo better > part.txt'}]}\n",
    )
    crew.propose(PLAN + "replan: {planner: 'planners.py:better', most: 1}\n")
    assert crew.run().exit_code == 0
    assert crew.state.replans[0].reason == "failed: part"


def test_after_so_many_versions_the_plan_is_failed(crew: Crew) -> None:
    """Two by default: then nobody is asked any more, and by hand it is refused with the way out."""
    count = 0

    def useless(plan: PlanSpec, failure: PlanFailure) -> dict[str, Any]:
        nonlocal count
        count += 1
        return {"update": [spec("part", "base", produces=("part.txt",), run=f"exit {count + 1}")]}

    assert crew.run(replan=useless).exit_code == 1
    assert (count, crew.status(), crew.state.version) == (2, "failed", 3)
    with pytest.raises(HeadwayError, match="replanned 2 times") as spent:
        crew.planning().replan("p", plan(MENDED), reason="once more")
    assert (spent.value.error_code, "plans edit" in spent.value.hint) == ("replan.spent", True)
    crew.planning().edit("p", "part", {"run": "echo x > {output}"}, reason="by hand, then")
    assert crew.run().exit_code == 0


@pytest.mark.parametrize("answer", [None, 3, {"ad": []}, RuntimeError("no idea"), SystemExit(0)])
def test_a_planner_without_a_plan_leaves_the_plan_failed(crew: Crew, answer: object) -> None:
    """Whatever it does: nothing to offer, nonsense, or an exception; it is on record."""

    def planner(plan: PlanSpec, failure: PlanFailure) -> object:
        if isinstance(answer, BaseException):
            raise answer
        return answer

    assert crew.run(replan=planner).exit_code == 1
    assert (crew.status(), crew.events()[-1]) == ("failed", "replan_failed")


def test_a_planner_whose_module_ends_the_program_is_an_error(tmp_path: Path) -> None:
    """With the module's name, and never with its exit code."""
    crew = Crew(tmp_path / "project")
    crew.write("leaving.py", "raise SystemExit(0)\ndef better(plan, failure): ...\n")
    crew.propose(PLAN + "replan: {planner: 'leaving.py:better', most: 1}\n")
    with pytest.raises(UsageError, match=r"leaving\.py cannot be imported") as told:
        crew.run()
    assert (told.value.facts["error"], crew.status()) == ("SystemExit: 0", "failed")


def test_completed_work_is_not_dropped_silently(crew: Crew) -> None:
    """Neither removed nor changed, unless it is named."""
    lines = MENDED.replace("requires: [base], ", "").replace("cat {inputs.base}", "echo x").splitlines(keepends=True)
    without = plan("".join(line for line in lines if not line.startswith("  base:")))
    other = plan(MENDED.replace("echo base", "echo foundation"))
    before = crew.seq
    for wanted in (without, other):
        with pytest.raises(HeadwayError, match="would drop base, which is complete") as refused:
            crew.planning().replan("p", wanted, reason="simpler")
        assert (refused.value.error_code, crew.seq) == ("replan.drops", before)
    crew.planning().replan("p", without, reason="simpler", drop=["base"])
    assert (crew.run().exit_code, list(crew.state.artifacts)) == (0, ["part", "whole"])
    assert crew.state.replans[0].removed == ("base",)


def test_what_is_behind_a_failure_may_change_although_it_was_complete(tmp_path: Path) -> None:
    """It is affected: it has to be made again in any case."""
    crew = Crew(tmp_path / "project", MENDED)
    assert crew.run().exit_code == 0
    crew.propose(PLAN)
    assert crew.run().exit_code == 1
    wanted = plan(MENDED.replace("cat {inputs.part}", "cat {inputs.part} {inputs.part}"))
    crew.planning().replan("p", wanted, reason="twice")
    assert crew.run().exit_code == 0


@pytest.mark.parametrize(
    ("change", "code"),
    [
        ({"update": (spec("part", "whole", run="true"),)}, "plan.cycle"),
        ({"update": (spec("part", "part", run="true"),)}, "plan.self"),
        ({"update": (spec("part", "nowhere", run="true"),)}, "plan.missing"),
        ({"update": (spec("nowhere"),)}, "artifact.unknown"),
        ({"remove": ("nowhere",)}, "artifact.unknown"),
        ({"add": (spec("base"),)}, "plan.duplicate"),
        ({"add": (spec("x", description="x" * 10_000_000),)}, "text.long"),
        ({}, "replan.same"),
    ],
)
def test_a_plan_that_does_not_hold_is_no_next_version(crew: Crew, change: dict[str, Any], code: str) -> None:
    """A cycle, a requirement of oneself, a stranger, nothing new: refused, and nothing changes."""
    before = crew.seq
    with pytest.raises(HeadwayError) as refused:
        crew.planning().replan("p", change, reason="better")
    assert (refused.value.error_code, bool(refused.value.hint), crew.seq) == (code, True, before)


def test_a_patch_for_an_older_version_is_refused(crew: Crew) -> None:
    """Whoever planned while somebody else changed the plan begins again."""

    def slow(plan: PlanSpec, failure: PlanFailure) -> dict[str, Any]:
        crew.planning("eve").add("p", ArtifactSpec(id="new", run="true"), reason="meanwhile")
        return {"update": [spec("part", "base", produces=("part.txt",), run="echo x > part.txt")]}

    from headway.core import commands as cmd
    from headway.engine.planners import as_patch, change_of

    state = crew.state
    patch = as_patch(slow(PlanSpec(goal="g"), PlanFailure({}, "", 1, [], 1)), state)
    assert patch is not None
    with pytest.raises(HeadwayError, match="has changed since this was drawn up"):
        crew.work.project.execute("p", cmd.Replan(change=change_of(patch, "r"), parent=state.version, reason="r"))


def test_a_failure_by_hand_asks_for_a_better_plan(tmp_path: Path) -> None:
    """The plan is replanning; after the last version it is failed; trying again goes on."""
    crew = Crew(tmp_path / "project", "id: p\ngoal: g\nreplan: {most: 1}\nartifacts:\n  a: {}\n  b: {requires: [a]}\n")
    crew.life().claim("p", "a")
    crew.life().fail("p", "a", token=None, error="no idea")
    assert crew.status() == "replanning"
    found = crew.next()
    assert (found.status, found.failed, found.blocked) == ("blocked", {"a": "no idea"}, {"b": "a"})
    crew.planning().replan("p", {"update": [spec("a", instructions="ask ann")]}, reason="help")
    assert (crew.status(), crew.offered()) == ("in_progress", ["a"])
    crew.life().claim("p", "a")
    crew.life().fail("p", "a", token=None, error="still none")
    assert crew.status() == "failed"
    crew.make("a")
    crew.make("b")
    assert crew.status() == "complete"


def test_replanning_by_file_from_the_command_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The file is the new plan; what it changed is said, and versions travel with an export."""
    shop = Workshop(tmp_path)
    shop.file.write_text(PLAN, encoding="utf-8")
    assert shop.run(capsys, "run").code == 1
    (tmp_path / "better.yaml").write_text(MENDED, encoding="utf-8")
    done = shop.run(capsys, "replan", "--plan", str(tmp_path / "better.yaml"), "--reason", "better", "--json")
    assert (done.code, done.json["version"], done.json["updated"]) == (0, 2, ["part"])
    assert shop.run(capsys, "run").code == 0
    shop.run(capsys, "export", str(tmp_path / "out"))
    assert shop.run(capsys, "import", str(tmp_path / "out"), "--plan-id", "q").code == 0
    assert shop.load("q").state.replans == shop.load("p").state.replans
    assert "Version 2 replaced version 1: better" in (tmp_path / "out" / "PLAN.md").read_text(encoding="utf-8")


def test_a_patch_drawn_up_for_a_plan_that_has_changed_since_is_refused(crew: Crew) -> None:
    """Somebody edits the plan while the planner thinks: their edit stands, and the run says what happened."""

    def replan(plan: PlanSpec, failure: PlanFailure) -> dict[str, Any]:
        crew.planning("bob").add("p", spec("notes"), reason="meanwhile")
        return {"update": [spec("part", "base", produces=("part.txt",), run="cp base.txt part.txt")], "reason": "late"}

    assert crew.run(replan=replan).exit_code == 1
    assert (crew.state.artifacts["part"].run, "notes" in crew.state.artifacts) == ("exit 1", True)
    (ended,) = [r.event for r in Project(crew.root).log("p") if isinstance(r.event, ReplanFailed)]
    assert "has changed since this was drawn up" in ended.reason


def test_the_settings_of_the_new_plan_become_the_plans(crew: Crew) -> None:
    """A recipe that needs a new variable has it; a plan that says nothing of settings leaves them."""
    mended = plan(PLAN.replace("exit 1", "echo {vars.word} > {output}") + "vars: {word: hello}\n")
    crew.planning().replan("p", mended, reason="say hello")
    assert crew.state.settings.vars == {"word": "hello"}
    assert (crew.run().exit_code, crew.read("part.txt")) == (0, "hello\n")
    crew.planning().replan("p", plan(MENDED), reason="plainly", drop=["part", "whole"])
    assert crew.state.settings.vars == {"word": "hello"}


def test_a_new_plan_with_another_profile_is_refused_and_not_half_taken_in(crew: Crew) -> None:
    """Concurrency is not replanned; the same profile is no difference."""
    profile = "profile: {parallelization_enabled: true, max_concurrent_tasks: 4}\n"
    before = crew.seq
    with pytest.raises(HeadwayError, match="another profile") as refused:
        crew.planning().replan("p", plan(MENDED + profile), reason="faster")
    assert (refused.value.error_code, crew.seq) == ("replan.profile", before)
    assert "headway profile" in refused.value.hint
    crew.planning().replan("p", plan(MENDED + "profile: {max_concurrent_tasks: 1}\n"), reason="as it was")


def test_a_planner_does_not_decide_how_often_it_is_asked(crew: Crew) -> None:
    """Its answer is refused as a whole."""

    def replan(given: PlanSpec, failure: PlanFailure) -> PlanSpec:
        return plan(MENDED + "replan: {most: 99}\n")

    assert crew.run(replan=replan).exit_code == 1
    assert (crew.state.settings.replan, crew.state.version) == (None, 1)
