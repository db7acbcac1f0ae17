"""`requires: [users:UserModel]`: what another plan made is read, never run; the same rules, over several plans."""

from __future__ import annotations

import inspect
import os
import subprocess
import sys
from datetime import timedelta
from pathlib import Path
from typing import Any

import msgspec
import pytest

from headway.core.plan import ArtifactSpec, Phase, Pipeline, PlanSpec, Settings, Units
from headway.errors import DecisionNeeded, PlanInvalid, TryLater
from headway.life import Life
from headway.project import Project
from headway.work import Meant, Work
from tests.bench import Bench
from tests.workshop import Workshop


def two(bench: Bench) -> None:
    """Plan `users` with a model, and plan `auth` with a service that requires it."""
    bench.write("schema.sql", "v1")
    bench.plan(id="users", model={"sources": ["schema.sql"]})
    bench.plan("service -> login", id="auth", service={"requires": ["users:model"]})


def test_what_another_plan_made_is_an_input_like_any_other(bench: Bench) -> None:
    """The recipe gets its bytes, by its full and by its plain name, and remembers what they were."""
    two(bench)
    bench.run(plan="users")
    bench.makes("service", lambda ctx: ctx.inputs["users:model"].text() + ctx.inputs["model"].text())
    assert bench.run(plan="auth").log == ["made service", "made login"]
    assert bench.out("service") == bench.out("model") * 2
    assert list(bench.state("auth").completed["service"].fp.inputs) == ["users:model"]


def test_a_change_over_there_makes_stale_here_what_it_touched(bench: Bench) -> None:
    """Once the other plan has made it again, only what depends on it is made here; the same bytes make nothing."""
    two(bench)
    bench.run(plan="users")
    bench.run(plan="auth")
    bench.write("schema.sql", "v2")
    bench.run(plan="users")
    assert bench.reason("service", "auth").code == "input_changed"
    assert bench.run(plan="auth").log == ["made service", "made login"]
    bench.run(plan="users", rerun_all=True)
    assert bench.stale("auth") == {}


@pytest.mark.parametrize(
    ("harm", "word"),
    [
        (lambda bench: None, "never made"),
        (lambda bench: (bench.run(plan="users"), bench.write("schema.sql", "v2")), "is stale"),
        (lambda bench: (bench.makes("model", lambda: 1 / 0), bench.run(plan="users")), "failed"),
        (lambda bench: (bench.run(plan="users"), bench.delete("out/model.txt")), "is missing"),
        (lambda bench: (bench.run(plan="users"), bench.edit("model", "mine")), "was edited"),
        (lambda bench: bench.remove("model", plan="users"), "has no such artifact"),
    ],
)
def test_what_is_not_fresh_over_there_blocks_here_and_names_the_command(bench: Bench, harm: Any, word: str) -> None:
    """Nothing of the other plan is run or put back; the rest of this plan goes on."""
    two(bench)
    bench.add("free", plan="auth")
    harm(bench)
    calls = list(bench.calls)
    before = bench.events(plan="users")
    ran = bench.run(plan="auth")
    assert ran.result.made == ["free"]
    assert ran.result.blocked == {"service": "users:model", "login": "service"}
    assert word in ran.notes["service"]
    (command,) = ran.result.elsewhere.values()
    assert command.startswith("headway ")
    assert "users" in command
    assert ran.code == 1
    assert bench.calls == [*calls, "free"]
    assert bench.events(plan="users") == before


def test_a_plan_that_does_not_exist_blocks_and_says_so(bench: Bench) -> None:
    """A missing plan is no problem of this one: it may come."""
    bench.plan(id="auth", service={"requires": ["users:model"]})
    ran = bench.run(plan="auth")
    assert "there is no plan users" in ran.notes["service"]
    assert ran.result.elsewhere["users:model"] == "headway plans new FILE"
    bench.plan("model", id="users")
    bench.run(plan="users")
    assert bench.run(plan="auth").log == ["made service"]


def test_why_names_what_has_to_be_made_elsewhere(bench: Bench) -> None:
    """From anything behind it, with the reason over there and the command."""
    two(bench)
    found = bench.why("login", "auth")
    assert found["elsewhere"] == {
        "users:model": {"problem": "is stale: never made", "command": "headway run model --plan-id users"}
    }


def test_a_plain_name_that_one_other_plan_has_means_it_and_is_recorded_in_full(bench: Bench) -> None:
    """Later plans with the same name change nothing about it."""
    bench.plan("model", id="users")
    bench.run(plan="users")
    bench.plan(id="auth", service={"requires": ["model"]})
    assert bench.state("auth").artifacts["service"].requires == ("users:model",)
    bench.plan("model", id="third")
    assert bench.run(plan="auth").log == ["made service"]


def test_a_plain_name_that_several_plans_have_is_a_plan_problem(bench: Bench) -> None:
    """The problem names them, and how to say which."""
    for plan in ("users", "people"):
        bench.plan("model", id=plan)
    spec = PlanSpec(goal="auth", id="auth", artifacts=(ArtifactSpec(id="service", requires=("model",)),))
    (problem,) = bench.project.check(spec)
    assert problem.code == "plan.ambiguous"
    assert "plans people and users" in problem.message
    assert problem.hint == "say which: people:model"


@pytest.mark.parametrize("required", ["users:*/write", "users:model", "Users:model"])
def test_a_name_that_is_a_pipeline_here_and_another_plan_is_a_plan_problem(bench: Bench, required: str) -> None:
    """Whichever of the two is meant; of a plan that nobody requires by that name, nothing is said."""
    bench.plan("model", id="users")
    pipeline = Pipeline(name="users", units=Units(names=("u",)), phases=(Phase(id="write", run="true"),))
    spec = PlanSpec(goal="g", id="auth", settings=Settings(pipelines=(pipeline,)))
    assert not bench.project.check(spec)
    service = ArtifactSpec(id="service", requires=(required,))
    (problem,) = bench.project.check(msgspec.structs.replace(spec, artifacts=(service,)))
    assert (problem.code, problem.artifact) == ("plan.ambiguous", "service")
    assert "is a pipeline here, and another plan" in problem.message
    phase = Phase(id="read", run="true", requires=(required,))
    other = Pipeline(name="pages", units=Units(names=("p",)), phases=(phase,))
    (problem,) = bench.project.check(msgspec.structs.replace(spec, settings=Settings(pipelines=(pipeline, other))))
    assert (problem.code, problem.artifact) == ("plan.ambiguous", "pages:read")


def test_an_id_of_this_plan_wins_over_another_plans(bench: Bench) -> None:
    """Also one with a colon in it."""
    bench.plan("model", id="users")
    named: Any = {"users:model": {"produces": ["out/own.txt"]}, "service": {"requires": ["users:model"]}}
    bench.plan(id="auth", **named)
    assert bench.run(plan="auth").log == ["made users:model", "made service"]


def test_a_name_that_nobody_has_is_missing_as_ever(bench: Bench) -> None:
    """The nearest name of this plan is suggested."""
    bench.plan("model", id="users")
    spec = PlanSpec(
        goal="g", id="auth", artifacts=(ArtifactSpec(id="service"), ArtifactSpec(id="x", requires=("servise",)))
    )
    assert [p.code for p in bench.project.check(spec)] == ["plan.missing"]


def test_naming_this_plan_itself_is_a_plan_problem(bench: Bench) -> None:
    """`auth:x` inside of auth: the plain name is meant."""
    spec = PlanSpec(goal="g", id="auth", artifacts=(ArtifactSpec(id="x", requires=("auth:y",)), ArtifactSpec(id="y")))
    assert [p.code for p in bench.project.check(spec)] == ["plan.itself"]


def test_a_cycle_across_plans_is_a_plan_problem_and_a_detour_is_none(bench: Bench) -> None:
    """Plans may require each other both ways, as long as no artifact ends up requiring itself."""
    bench.plan(id="one", a={}, b={"requires": ["two:x"]})
    bench.plan(id="two", x={"requires": ["one:a"]})
    for plan in ("one", "two", "one"):
        bench.run(plan=plan)
    assert bench.stale("one") == bench.stale("two") == {}
    circle = PlanSpec(goal="test two", id="two", artifacts=(ArtifactSpec(id="x", requires=("one:b",), run="true"),))
    (problem,) = bench.project.check(circle)
    assert problem.code == "plan.cycle"
    assert "one:b" in problem.message
    assert "two:x" in problem.message
    bench.project.take_in(circle, name="bench", source="2")
    with pytest.raises(PlanInvalid):
        bench.run(plan="two")


def test_a_long_chain_of_plans_is_judged_without_recursion(bench: Bench) -> None:
    """Each of 300 plans requires the one before."""
    project = bench.project
    for number in range(300):
        requires = (f"p{number - 1}:x",) if number else ()
        spec = ArtifactSpec(id="x", requires=requires, produces=(f"out/{number}.txt",), run="true")
        project.take_in(PlanSpec(goal=f"g{number}", id=f"p{number}", artifacts=(spec,)), name="bench", source="1")
    limit = sys.getrecursionlimit()
    sys.setrecursionlimit(250 + _depth())
    try:
        judged = bench.session.judge("p299")
    finally:
        sys.setrecursionlimit(limit)
    assert judged.judge.unusable("x") is not None


def test_a_plan_that_others_require_is_not_deleted(bench: Bench) -> None:
    """Neither by name nor by age; once nobody requires it, it is."""
    two(bench)
    bench.run(plan="users")
    bench.run(plan="auth")
    store = bench.project.store
    with pytest.raises(DecisionNeeded) as refused:
        store.delete("users")
    assert refused.value.error_code == "plan.required"
    assert "auth" in refused.value.message
    bench.add("open", plan="auth", by_hand=True)
    assert store.clean(timedelta(0)) == []
    bench.remove("open", plan="auth")
    bench.run(plan="auth", rerun="login")
    assert sorted(store.clean(timedelta(0), dry_run=True)) == ["auth", "users"]
    store.delete("auth")
    store.delete("users")
    assert store.ids() == []


def test_by_hand_too_what_another_plan_lacks_has_to_come_first(bench: Bench) -> None:
    """It is not offered and cannot be claimed; the refusal names the command over there."""
    bench.plan("model", id="users")
    bench.plan(id="auth", review={"requires": ["users:model"], "by_hand": True})
    life = Life(Work(bench.project), by="me")
    assert life.next(Meant("auth")).offers == []
    with pytest.raises(TryLater) as refused:
        life.claim("auth", "review")
    assert refused.value.hint == "headway run model --plan-id users"
    bench.run(plan="users")
    assert [offer.spec.id for offer in life.next(Meant("auth")).offers] == ["review"]
    life.claim("auth", "review")
    bench.write("out/review.txt", "fine")
    life.complete("auth", "review", token=None)
    assert bench.run(plan="auth").result.made == []


USERS = """\
id: users
goal: Users
artifacts:
  model:
    sources: [schema.sql]
    produces: model.txt
    run: cat schema.sql > {output}
"""
AUTH = """\
id: auth
goal: Auth
artifacts:
  service:
    requires: [model]
    produces: service.txt
    run: cat {inputs.model} > {output}
"""


def test_the_nothing_to_do_check_covers_the_plans_that_are_required_from(tmp_path: Path) -> None:
    """After a change over there, of its ledger or of its files, the quick answer is not believed."""
    shop = Workshop(tmp_path / "shop")
    (shop.root / "headway.yaml").write_text(AUTH, encoding="utf-8")
    (shop.root / "users.yaml").write_text(USERS, encoding="utf-8")
    (shop.root / "schema.sql").write_text("v1", encoding="utf-8")

    def headway(*words: str) -> str:
        done = subprocess.run(
            [sys.executable, "-m", "headway", "run", *words], cwd=shop.root, capture_output=True, text=True, check=False
        )
        return done.stdout

    headway("--plan", "users.yaml")
    assert "1 made" in headway()
    assert "Nothing to do" in headway()
    assert os.listdir(shop.root / ".headway" / "stamps").count("headway.yaml") == 1
    stamp = (shop.root / ".headway" / "stamps" / "headway.yaml").read_bytes()
    assert b"plans/users/ledger.jsonl" in stamp
    (shop.root / "schema.sql").write_text("v2!", encoding="utf-8")
    assert "users:model is stale" in headway()
    headway("--plan", "users.yaml")
    assert "1 made" in headway()
    assert (shop.root / "service.txt").read_text(encoding="utf-8") == "v2!"
    assert "Nothing to do" in headway()
    headway("--plan", "users.yaml", "--force")
    assert "Nothing to do" in headway()
    (shop.root / "model.txt").unlink()
    assert "model.txt is missing" in headway()


def test_a_plan_file_with_such_a_problem_says_its_line(tmp_path: Path) -> None:
    """Ambiguous names and cycles are found where they stand."""
    shop = Workshop(tmp_path / "shop")
    shop.file.write_text(USERS, encoding="utf-8")
    shop.save()
    (shop.root / "people.yaml").write_text(USERS.replace("id: users", "id: people"), encoding="utf-8")
    shop.project.save_plan(str(shop.root / "people.yaml"))
    auth = shop.root / "auth.yaml"
    auth.write_text(AUTH.replace("[model]", "\n      - model"), encoding="utf-8")
    with pytest.raises(PlanInvalid) as refused:
        Project(shop.root).save_plan(str(auth), draft=False)
    (problem,) = refused.value.problems
    assert (problem.code, problem.line) == ("plan.ambiguous", 6)  # type: ignore[attr-defined]


def _depth() -> int:
    return len(inspect.stack(0))


def test_a_run_of_a_plan_that_a_program_builds_says_that_the_program_was_not_run(tmp_path: Path) -> None:
    """What it would build by now is known once it has run; without that, the plan is what it was."""
    program = "from headway import Plan\nplan = Plan('g', id='p')\nfor name in 'ab':\n    plan.add(name, run='echo')\n"
    (tmp_path / "plan.py").write_text(program)

    def run(*words: str) -> tuple[str, str]:
        done = subprocess.run(
            [sys.executable, "-m", "headway", "run", *words], cwd=tmp_path, capture_output=True, text=True, check=True
        )
        return done.stdout, done.stderr

    assert run("--plan", "plan.py")[1] == ""
    (tmp_path / "plan.py").write_text(program.replace("'ab'", "'abc'"))
    out, err = run()
    assert out == "Nothing to do: 2 artifacts are up to date.\n"
    assert err == "The program that builds this plan was not run: the plan is as it was last built.\n"
    assert "2 kept" in run("--plan", "plan.py")[0]


def test_a_run_by_plan_id_says_that_the_plans_file_has_changed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """It reads no file, so an edit of one is not taken in; but that is said."""
    shop = Workshop(tmp_path)
    plan = "id: base\ngoal: g\nartifacts:\n  thing: {run: 'echo 1 > {output}', produces: thing.txt}\n"
    (tmp_path / "base.yaml").write_text(plan)
    shop.run(capsys, "run", "--plan", str(tmp_path / "base.yaml"))
    assert shop.run(capsys, "run", "thing", "--plan-id", "base").err == ""
    (tmp_path / "base.yaml").write_text(plan.replace("echo 1", "echo 2"))
    ran = shop.run(capsys, "run", "thing", "--plan-id", "base")
    assert ran.out.startswith("Nothing to do")
    assert ran.err == "base.yaml has changed since it was taken in. Next: headway run --plan base.yaml\n"
