"""Before it runs: what would be made and why, what that takes, what it saves, and what is asked first."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from headway import ArtifactGraph, ArtifactSpec, IncrementalExecutor, Plan, PlanPreview
from headway.core.plan import PlanSpec, Settings
from headway.engine import session as session_module
from headway.engine.estimates import DEFAULTS, Durations
from headway.engine.result import Options
from headway.errors import UsageError
from headway.files.outputs import LARGEST
from headway.work import Meant, Work
from tests.bench import Bench
from tests.workshop import Done, Workshop, tree

REST = """\
id: rest-api
goal: Build a REST API with authentication
artifacts:
  UserProtocol: {description: Protocol defining User entity, produces: src/user.py, run: "echo user > {output}"}
  AuthInterface: {description: Interface for authentication, produces: src/auth.py, run: "echo auth > {output}"}
  UserModel:
    description: SQLAlchemy model implementing UserProtocol
    contract: Class User(Base) implementing UserProtocol
    requires: [UserProtocol]
    produces: src/model.py
    run: "cat {inputs.UserProtocol} > {output}"
  AuthService:
    description: JWT-based authentication
    requires: [UserModel]
    produces: src/service.py
    run: "cat {inputs.UserModel} > {output}"
  App:
    description: Flask application factory
    requires: [AuthService]
    produces: src/app.py
    run: "cat {inputs.AuthService} > {output}"
"""
Cli = Callable[..., Done]


@pytest.fixture
def shop(tmp_path: Path) -> Workshop:
    """A project with RFC-040's plan, not yet saved."""
    shop = Workshop(tmp_path / "project")
    shop.file.write_text(REST)
    return shop


@pytest.fixture
def cli(shop: Workshop, capsys: pytest.CaptureFixture[str]) -> Cli:
    """Its command line, in this process."""
    return lambda *words: shop.run(capsys, *words)


def preview(bench: Bench, plan: str = "plan", **options: Any) -> PlanPreview:
    """What a run of a bench's plan would do."""
    work = Work(bench.project, environ=bench.environ)
    return work.preview(Meant(plan, functions=bench.functions(plan)), Options(**options))


# Estimates.


def test_times_are_the_median_of_an_artifacts_own_history(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    """With the range around it; as many completions as are remembered."""
    bench.plan("a -> b")
    from headway.engine import making
    from headway.engine.row import Outcome, Row

    real = making.Workshop.make
    for ms in (30, 10, 50):

        def timed(shop: making.Workshop, task: making.Task, row: Row, ms: int = ms) -> Outcome:
            outcome = real(shop, task, row)
            outcome.ms = ms
            return outcome

        monkeypatch.setattr(making.Workshop, "make", timed)
        bench.run(rerun_all=True)
        monkeypatch.undo()
    found = preview(bench, rerun_all=True)
    assert found.items["a"].estimate.ms == (30, 10, 50)
    assert (found.items["a"].estimate.basis, found.items["a"].estimate.runs) == ("history", 3)
    assert found.total.ms == (60, 20, 100)
    assert found.estimated_duration_seconds == 0.06


def test_of_what_was_made_too_long_ago_the_last_time_counts(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    """However long a ledger has grown, only its end is looked through."""
    bench.plan("a", b={"run": "sleep 0.02; echo x > {output}"})
    for _ in range(3):
        bench.run(rerun_all=True)
    for number in range(6):
        bench.write("s.txt", str(number))
        bench.plan("a", b={"run": "sleep 0.02; echo x > {output}"}, c={"run": "cat s.txt > {output}"})
        bench.run()
    monkeypatch.setattr("headway.ledger.file.RECENT", 8_000)
    found = preview(bench, rerun_all=True).items
    assert (found["b"].estimate.basis, found["b"].estimate.runs) == ("history", 1)
    assert found["b"].estimate.ms == (bench.state().completed["b"].ms,) * 3
    assert 1 < found["c"].estimate.runs < 6


def test_what_was_never_made_takes_what_similar_ones_took_and_else_a_default(bench: Bench) -> None:
    """Similar: the same kind of recipe, in any plan of this project."""
    bench.plan(c={"run": "echo x > {output}"})
    (alone,) = preview(bench).items.values()
    assert (alone.kind, alone.estimate.basis) == ("command", "default")
    assert alone.estimate.ms == (DEFAULTS["command"].ms,) * 3
    bench.plan(id="other", o={"run": "echo y > {output}"})
    bench.run(plan="other")
    taken = bench.state("other").completed["o"].ms
    similar = preview(bench).items["c"].estimate
    assert (similar.basis, similar.ms) == ("similar", (taken, taken, taken))


def test_what_people_make_is_timed_from_claim_to_completion(bench: Bench) -> None:
    """By the ledger's own times; without any, nobody can tell, and that is said."""
    from headway.life import Life

    bench.plan(h={"by_hand": True}, j={"by_hand": True, "agent": "coder"})
    found = preview(bench)
    assert found.items["h"].estimate == (None, None, None, "unknown", 0)
    assert found.total.unknown == 1
    assert found.items["j"].estimate.tokens == 1000, "RFC-040's figure for a small one"
    life = Life(Work(bench.project, environ=bench.environ), by="me")
    life.claim("plan", "h")
    bench.write("out/h.txt", "x")
    life.complete("plan", "h", token=None)
    bench.change("h", description="again")
    assert preview(bench).items["h"].estimate.runs == 1


def test_a_damaged_ledger_of_another_plan_spoils_no_estimate(bench: Bench) -> None:
    """What cannot be read has no say."""
    bench.plan("a")
    bench.plan("x", id="other")
    ledger = bench.path(".headway/plans/other/ledger.jsonl")
    ledger.write_bytes(b"rubbish\n")
    state = bench.state()
    estimate = Durations(bench.project.store, state).estimate(state.artifacts["a"], "small")
    assert estimate.basis == "default"


def test_jobs_and_profile_decide_how_much_overlaps(bench: Bench) -> None:
    """Four independent ones: one at a time four times as long."""
    bench.plan("a b c d")
    one, four = preview(bench, jobs=1), preview(bench, jobs=4)
    assert one.total.ms.typical == 4 * four.total.ms.typical
    from headway.core.plan import Profile

    bench.settings(profile=Profile())
    assert preview(bench, jobs=4).total.ms == one.total.ms


# Pipelines.

UNITS = """\
id: units
goal: Go through the units
artifacts:
  outline: {produces: outline.json, run: "echo '[\\"a\\", \\"b\\"]' > {output}"}
pipelines:
  scene:
    units: WHICH
    order: ORDER
    phases:
      fix: {run: "echo {unit} > {output}", outputs: {text: 'out/{unit}.txt'}}
      check:
        run: "echo '{\\"ok\\": false}' > {output}"
        outputs: {report: 'out/{unit}.json'}
        repeat: [fix, check]
        until: report.ok
        times: 3
      end: {run: "true", outputs: {}}
"""


def units(shop: Workshop, which: str, order: str = "independent") -> None:
    """A plan with a loop of two phases and a phase behind it, for these units."""
    shop.file.write_text(UNITS.replace("WHICH", which).replace("ORDER", order), encoding="utf-8")


def test_units_that_wait_for_each_other_are_no_wave_and_take_their_time_one_by_one(shop: Workshop, cli: Cli) -> None:
    """Whatever may be made at once; independent ones share waves and time."""
    waves, time = {}, {}
    for order in ("sequential", "independent"):
        units(shop, "[a, b, c, d]", order)
        document = cli("run", "-n", "--json", "-j", "4", "*/end").json
        waves[order], time[order] = len(document["waves"]), document["estimates"]["ms"]["typical"]
    assert waves == {"sequential": 12, "independent": 3}
    assert time["sequential"] == 12_000
    assert time["independent"] < time["sequential"]


def test_rounds_that_a_loop_may_still_need_are_counted(shop: Workshop, cli: Cli) -> None:
    """The bound holds whatever the loop comes to; once it has come to its end, nothing is left that may come."""
    units(shop, "[a, b]")
    document = cli("run", "-n", "--json").json
    assert document["coming"] == {"at_most": 8, "rounds": 8, "units": {}}
    shown = cli("run", "-n").out
    assert "7 to make so far, 0 up to date" in shown
    assert "May come   8 more at most: 8 in further rounds; the estimates are without them" in shown
    assert "7 to make so far" in cli("status").out
    assert "With all that is stale before and behind it, 3 so far: " in cli("why", "a/fix~1").out
    made = cli("run", "--json").json["made"]
    assert len(made) == 13, "all rounds; the phases behind the loops are blocked"
    assert cli("run", "-n", "--json").json["coming"]["at_most"] == 0
    assert "Next: headway why a/check" in cli("status").out


@pytest.mark.parametrize(
    ("most", "bound", "said"),
    [
        (", max: 5", 35, "35 more at most: 35 with units of scene"),
        ("", None, "units of scene, how many is not known (units: {max: N} bounds them)"),
    ],
)
def test_units_that_are_yet_to_be_named_are_told_of(
    shop: Workshop, cli: Cli, most: str, bound: int | None, said: str
) -> None:
    """As many as `max` allows, each with all rounds; without it nobody can tell, and that is said."""
    units(shop, f"{{from: outline, items: '[*]'{most}}}")
    document = cli("run", "-n", "--json").json
    assert (list(document["stale"]), document["coming"]["at_most"]) == (["outline"], bound)
    shown = cli("run", "-n").out
    assert "1 to make so far" in shown
    assert f"May come   {said}; the estimates are without them" in shown


# Savings.


def test_savings_are_none_at_first_and_all_at_the_end(bench: Bench) -> None:
    """Nothing to make saves a full rebuild, not none of it."""
    bench.plan("a -> b -> c; d e")
    assert (preview(bench).savings_percent, preview(bench).skip_count) == (0.0, 0)
    bench.run()
    after = preview(bench)
    assert (after.savings_percent, after.items, after.saved_ms) == (100.0, {}, after.full.ms.typical)
    bench.change("a", description="x")
    assert preview(bench).savings_percent == 40.0
    assert preview(bench).to_rebuild == {"a", "b", "c"}


def test_what_is_put_back_or_reused_costs_nothing(bench: Bench) -> None:
    """The preview tells them apart from what is made."""
    bench.plan("a b c")
    bench.run()
    bench.change("b", version="2")
    bench.run()
    bench.change("b", version="1")
    bench.change("c", version="2")
    bench.delete("out/a.txt")
    bench.edit("c", "mine")
    found = preview(bench)
    assert {a: item.action for a, item in found.items.items()} == {"a": "restore", "b": "reuse", "c": "ask"}
    assert [found.items[a].estimate.basis for a in "ab"] == ["nothing", "nothing"]
    ran = bench.run()
    assert ran.did == {"restored a", "reused b", "held c"}, "and so it is"


# What changed.


def test_changes_against_the_previous_run_are_told_by_kind(shop: Workshop, cli: Cli) -> None:
    """What only follows from a change is no change."""
    assert cli("run", "-n", "--json").json["changes"] is None, "there is no previous run"
    cli("run")
    shop.edit("Class User(Base)", "Class User(Model)")
    shop.edit("echo auth", "echo more")
    shop.edit("  App:\n", "  Docs: {requires: [AuthService], run: echo docs}\n  App:\n")
    (shop.root / "src/service.py").unlink()
    found = cli("run", "-n", "--json").json
    assert {kind: ids for kind, ids in found["changes"].items() if ids} == {
        "added": ["Docs"],
        "contract_changed": ["UserModel"],
        "recipe_changed": ["AuthInterface"],
    }
    shown = cli("run", "-n").out
    assert "New        1  Docs" in shown
    assert "Modified   2  AuthInterface, UserModel" in shown
    assert "Unchanged  3, of which 2 may follow from the above" in shown


def test_a_changed_prompt_is_a_change(shop: Workshop, cli: Cli) -> None:
    """And what is only asked for follows from nothing."""
    (shop.root / "ask.md").write_text("Say hello", encoding="utf-8")
    shop.file.write_text(
        "id: p\ngoal: g\npipelines:\n  p:\n    units: [a, b]\n    phases:\n"
        "      d: {run: 'cp {prompt} {outputs.d}', outputs: {d: 'o/{unit}.d'}, templates: {phase: ask.md}}\n"
        "      f: {run: 'echo f > {outputs.f}', outputs: {f: 'o/{unit}.f'}}\n",
        encoding="utf-8",
    )
    cli("run")
    (shop.root / "ask.md").write_text("Say goodbye", encoding="utf-8")
    assert cli("run", "-n", "--json").json["changes"]["recipe_changed"] == ["a/d", "b/d"]
    shown = cli("run", "-n").out
    assert "  New        0\n  Modified   2  a/d, b/d\n  Unchanged  2, of which 2 may follow from the above\n" in shown
    cli("run")
    assert "Unchanged  4, of which 4 are to be made all the same\n" in cli("run", "-n", "--force").out


def test_what_a_failed_run_did_not_get_to_is_neither_new_nor_changed(shop: Workshop, cli: Cli) -> None:
    """It was there before, and is still to be made."""
    shop.edit("cat {inputs.UserProtocol}", "exit 1; cat {inputs.UserProtocol}")
    cli("run")
    shown = cli("run", "-n").out
    assert "New        0\n  Modified   0\n  Not made   3  UserModel, AuthService, App\n  Unchanged  2\n" in shown


def test_diff_plan_says_how_the_plan_differs_from_its_last_run(shop: Workshop, cli: Cli) -> None:
    """Field by field; and plainly that there is nothing to compare with."""
    assert "No previous plan to compare with." in cli("run", "--diff-plan").out
    assert cli("run", "--diff-plan", "--json").json["diff"] is None
    cli("run")
    assert "The plan is what it was as of event 3." in cli("run", "--diff-plan").out
    shop.edit("Class User(Base)", "Class User(Model)")
    cli("plans", "new")
    shop.edit("  AuthInterface: {", "  Extra: {run: echo x}\n  AuthInterface: {")
    shown = cli("run", "--diff-plan").out
    assert "  + Extra" in shown
    assert "contract: Class User(Base) implementing UserProtocol → Class User(Model)" in shown, "taken in, never run"
    assert cli("run", "--diff-plan", "--json").json["diff"]["added"] == ["Extra"]


def test_a_preview_changes_nothing(shop: Workshop, cli: Cli) -> None:
    """Neither of a plan that is not saved yet, nor of one that is."""
    before = tree(shop.root)
    cli("run", "-n")
    assert tree(shop.root) == before
    cli("run")
    shop.edit("echo auth", "echo more")
    before = tree(shop.root)
    for words in (["run", "-n", "-v"], ["run", "--diff-plan"], ["why"], ["why", "App", "-v"]):
        assert cli(*words).code == 0
    assert tree(shop.root) == before


def test_a_conflict_can_be_previewed_either_way(shop: Workshop, cli: Cli) -> None:
    """run -n, status, why and next take --take like run does."""
    cli("run")
    from tests.workshop import spec

    known = shop.load("rest-api").state.artifacts["UserProtocol"]
    changed = spec("UserProtocol", produces=known.produces, run=known.run, description="by somebody else")
    shop.change(changed, plan_id="rest-api")
    shop.edit("Protocol defining User entity", "By the file")
    for words in (["run", "-n"], ["status"], ["why", "UserProtocol"], ["next"]):
        refused = cli(*words)
        assert (refused.code, "--take file" in refused.err) == (3, True)
        assert cli(*words, "--take", "file").code == 0
    by_file = cli("why", "UserProtocol", "--take", "file", "--json").json["reason"]
    assert by_file["now"] == "By the file"
    assert cli("why", "UserProtocol", "--take", "ledger", "--json").json["reason"]["now"] == "by somebody else"


# Words.


def test_run_status_and_why_use_the_same_words(bench: Bench) -> None:
    """Whatever changed: the text of the reason is one."""
    bench.write("s.txt", "1")
    bench.plan(
        "a b c",
        d={"run": "cat s.txt > {output}"},
        e={"run": "echo e > {output}"},
        f={"run": "echo {vars.x} > {output}"},
        g={"run": "echo 1 > {output}"},
    )
    bench.settings(vars={"x": 1})
    bench.run()
    bench.change("a", description="another")
    bench.change("b", version="2")
    bench.change("c", requires=["a"])
    bench.write("s.txt", "2")
    bench.delete("out/e.txt")
    bench.settings(vars={"x": 2})
    bench.change("g", run="echo a longer command that nobody wants to see in a line twice > {output}")
    said = {a: found["reason"]["text"] for a, found in bench.status()["artifacts"].items()}
    assert said == {
        "a": "description changed (nothing → another)",
        "b": "recipe changed (version: 1 → 2)",
        "c": "requires changed (nothing → a)",
        "d": "s.txt changed (6b86b273 → d4735e3a)",
        "e": "out/e.txt is missing",
        "f": "recipe changed (vars.x: 1 → 2)",
        "g": "recipe changed (run)",
    }
    assert {a: bench.why(a)["reason"]["text"] for a in said} == said
    assert {a: reason.text for a, reason in preview(bench).stale.items()} == said
    assert bench.run().why == said


def test_a_source_that_came_or_went_is_said_to_have_and_all_that_changed_are_counted(shop: Workshop, cli: Cli) -> None:
    """The first is named with what it was and is; `why --json` names the others, too."""
    shop.file.write_text("id: s\ngoal: g\nartifacts:\n  a: {sources: ['*.src'], run: 'cat *.src'}\n")
    for name in ("1", "2", "3"):
        (shop.root / f"{name}.src").write_text(name)
    cli("run")
    (shop.root / "1.src").write_text("one")
    (shop.root / "3.src").write_text("three")
    assert "↻ a  1.src changed (6b86b273 → 7692c3ad), and 1 more\n" in cli("status").out
    (root,) = cli("why", "a", "--json").json["root_causes"]
    assert (root["subject"], root["others"]) == ("1.src", ["3.src"])
    cli("run")
    (shop.root / "0.src").write_text("zero")
    assert "↻ a  0.src was added\n" in cli("status").out
    cli("run")
    (shop.root / "0.src").unlink()
    assert "↻ a  0.src was removed\n" in cli("status").out


def test_status_says_what_of_a_complete_plan_is_stale_and_what_changed_under_it(shop: Workshop, cli: Cli) -> None:
    """A plan stays complete; that it has to be run again is said in the same line."""
    (shop.root / "s.txt").write_text("1")
    shop.file.write_text(
        "id: s\ngoal: g\nartifacts:\n  a: {run: 'echo a'}\n  c: {sources: [s.txt], run: 'echo more >> s.txt'}\n"
    )
    cli("run")
    shown = cli("status").out
    assert "Plan s: complete, 2 of 2 done, 1 of them stale\n" in shown
    assert "↻ c  s.txt changed while it was being made\n" in shown


def test_a_changed_function_and_a_changed_variable_are_named(tmp_path: Path) -> None:
    """What the plan does not say itself: code, arguments, values of the environment."""
    bench = Bench(tmp_path, environ={"PATH": os.environ["PATH"], "STYLE": "1"})
    bench.write("tasks.py", "def f(x):\n    return str(x)\n")
    bench.plans["plan"] = PlanSpec(
        goal="g",
        id="plan",
        artifacts=(
            ArtifactSpec(id="f", make="tasks:f", args={"x": 1}),
            ArtifactSpec(id="g", make="tasks:f", args={"x": 1}),
            ArtifactSpec(id="e", run="echo $STYLE", env=("STYLE",)),
            ArtifactSpec(id="h", make="tasks:f", args={"x": 1}, env=("STYLE", "MOOD")),
        ),
    )
    bench.save()
    bench.run()
    bench.write("tasks.py", "def f(x):\n    return str(x + 1)\n")
    bench.environ["STYLE"] = "2"
    bench.change("g", args={"x": 2})
    assert bench.reason("f").subject == "code"
    assert bench.reason("g").text == "recipe changed (args.x: 1 → 2)"
    assert bench.reason("e").subject == "STYLE in env"
    assert bench.reason("h").subject == "code, or STYLE or MOOD in env", "neither code nor values are in the ledger"


def test_why_tells_root_causes_from_what_follows_and_what_it_costs(shop: Workshop, cli: Cli) -> None:
    """Old and new values, the way from the cause to it, and the time."""
    cli("run")
    shop.edit("echo user >", "echo the user >")
    shown = cli("why", "App").out
    assert shown.startswith("App is complete and stale: AuthService is to be made.")
    assert "began with UserProtocol: recipe changed (run: echo user > {output} → echo the user > {output})" in shown
    assert "by way of AuthService, UserModel" in shown
    assert "4 at most: ~" in shown
    assert shown.endswith(f"Next: headway run App --project {shop.root}\n")
    document = cli("why", "App", "--json").json
    assert [root["artifact"] for root in document["root_causes"]] == ["UserProtocol"]
    assert document["cost"]["artifacts"] == 4
    assert document["cost"]["own"]["basis"] == "history"


def test_the_change_analysis_is_the_seeds(shop: Workshop, cli: Cli) -> None:
    """Unchanged with its hash, changed with its reason, dependency of X changed; skip, build, savings."""
    cli("run")
    shop.edit("Class User(Base)", "Class User(Model)")
    analysis = cli("why", "--verbose").out.splitlines()
    hashes = {a: found["content_hash"] for a, found in cli("status", "--json").json["artifacts"].items()}
    assert analysis[:6] == [
        "Change analysis",
        f"  ✓ UserProtocol   unchanged (hash: {hashes['UserProtocol']})",
        f"  ✓ AuthInterface  unchanged (hash: {hashes['AuthInterface']})",
        "  ⚡ UserModel      contract changed",
        "  ⚡ AuthService    dependency (UserModel) changed",
        "  ⚡ App            dependency (AuthService) changed",
    ]
    assert analysis[7:10] == [
        "Rebuild plan",
        "  Skip   UserProtocol, AuthInterface (2 artifacts)",
        "  Build  UserModel → AuthService → App (3 artifacts, at most)",
    ]
    assert analysis[10].startswith("  Savings  40% of a full rebuild (2 of 5 artifacts")
    assert analysis.pop() == f"Next: headway run --project {shop.root}"
    assert cli("why", "App", "--verbose").out.splitlines()[-len(analysis) :] == analysis, "below the one artifact"
    assert cli("run", "-n", "--verbose").out.splitlines()[: len(analysis)] == analysis
    told = cli("run", "--verbose", "--json")
    assert "Change analysis" not in told.out + told.err, "a document has the reasons in its own form"
    shop.edit("Class User(Model)", "Class User(Base)")
    ran = cli("run", "--verbose").out.splitlines()
    assert ran[3:6] == analysis[3:6], "before a run the same is said"
    assert ran[11] == "", "and then what is done"
    assert ran[12].startswith("reused   UserModel")


def test_a_large_plan_is_shown_in_part(bench: Bench, capsys: pytest.CaptureFixture[str]) -> None:
    """Readable at 5,000 artifacts: so many of each wave, and a number for the rest; -v shows all."""
    from headway.surfaces.cli.main import main

    lines = "\n".join(f"  n{n:03}: {{run: 'echo x', produces: out/{n}}}" for n in range(300))
    bench.write("headway.yaml", f"id: plan\ngoal: g\nartifacts:\n{lines}\n")
    main(["run", "-n", "--project", str(bench.root)])
    few = capsys.readouterr().out
    assert "and 280 more (-v lists them)" in few
    assert len(few.splitlines()) < 40
    main(["run", "-n", "-v", "--project", str(bench.root)])
    assert "n299" in capsys.readouterr().out
    main(["status", "--project", str(bench.root)])
    status = capsys.readouterr().out
    assert "and 250 more to make, 0 up to date (-v lists them)" in status


def test_a_long_chain_is_shown_by_its_first_waves(bench: Bench, capsys: pytest.CaptureFixture[str]) -> None:
    """And a number for the rest; -v shows all."""
    from headway.surfaces.cli.main import main

    chain = (f"requires: [n{n - 1:03}], " if n else "" for n in range(60))
    lines = "\n".join(f"  n{n:03}: {{{needs}run: 'echo x', produces: out/{n}}}" for n, needs in enumerate(chain))
    bench.write("headway.yaml", f"id: plan\ngoal: g\nartifacts:\n{lines}\n")
    main(["run", "-n", "--project", str(bench.root)])
    few = capsys.readouterr().out
    assert "and 50 more waves with 50 artifacts (-v lists them)" in few
    assert len(few.splitlines()) < 50
    main(["run", "-n", "-v", "--project", str(bench.root)])
    assert "Wave 60" in capsys.readouterr().out


# Storing.


def test_outputs_above_the_limit_are_named_and_the_limit_is_the_plans(tmp_path: Path) -> None:
    """`store_up_to` decides what is stored; the preview says what is not."""
    shop = Workshop(tmp_path / "p")
    shop.file.write_text(
        "id: p\ngoal: g\nstore_up_to: 1KiB\nartifacts:\n"
        "  big: {produces: big.bin, run: 'head -c 2000 /dev/zero > {output}'}\n"
        "  small: {produces: small.bin, run: 'head -c 100 /dev/zero > {output}'}\n"
    )
    headway("run", cwd=shop.root)
    shown = json.loads(headway("run", "-n", "--json", cwd=shop.root).stdout)
    assert shown["too_large"] == [{"artifact": "big", "path": "big.bin", "size": 2000}]
    assert shown["store_up_to"] == 1024
    text = headway("run", "-n", cwd=shop.root).stdout
    assert "Not stored: big.bin of big (2.0 KiB, above store_up_to 1 KiB)" in text
    for name in ("big.bin", "small.bin"):
        (shop.root / name).unlink()
    made = json.loads(headway("run", "--json", cwd=shop.root).stdout)
    assert (made["made"], made["restored"]) == (["big"], ["small"])


@pytest.mark.parametrize(("given", "bytes_"), [("256MiB", LARGEST), ("1 GB", 10**9), ("1.5KiB", 1536), (10, 10)])
def test_a_size_is_written_as_people_do(tmp_path: Path, given: str | int, bytes_: int) -> None:
    """Or as a number of bytes."""
    shop = Workshop(tmp_path)
    shop.file.write_text(f"id: api\ngoal: g\nstore_up_to: {given}\n")
    assert shop.save().execution.state.settings.store_up_to == bytes_


def test_a_plan_in_python_says_the_same(tmp_path: Path) -> None:
    """With the same words for a size."""
    plan = Plan("g", id="p", project=tmp_path, store_up_to="1KiB", planned_by="m", confirm_above=0.5)
    assert plan.spec.settings == Settings(store_up_to=1024, planned_by="m", confirm_above=0.5)
    with pytest.raises(UsageError, match="'lots' is no size"):
        Plan("g", store_up_to="lots")


@pytest.mark.parametrize("given", ["lots", "-1", "1.5", "12 parsecs", "[]"])
def test_what_is_no_size_is_a_problem_with_a_line(tmp_path: Path, given: str) -> None:
    """It says what a size looks like."""
    shop = Workshop(tmp_path)
    shop.file.write_text(f"id: api\ngoal: g\nstore_up_to: {given}\n")
    (problem,) = shop.save().problems
    assert "store_up_to must be" in str(problem)
    assert str(problem).startswith("line 3")


# Asking.

PLANNED = "id: p\ngoal: g\nplanned_by: some-model\nartifacts:\n  a: {run: 'echo a > {output}', produces: a.txt}\n"


def headway(*words: str, cwd: Path, **options: Any) -> subprocess.CompletedProcess[str]:
    """The real command, in a process of its own, without a terminal."""
    command = [str(Path(sys.executable).with_name("headway")), *words]
    return subprocess.run(
        command, cwd=cwd, capture_output=True, text=True, check=False, timeout=60, stdin=subprocess.DEVNULL, **options
    )


def test_what_a_model_planned_is_asked_about_before_it_is_first_made(tmp_path: Path) -> None:
    """Without a terminal that is exit 3, naming --yes; nothing is made. Once it has been run, nobody asks again."""
    (tmp_path / "headway.yaml").write_text(PLANNED)
    refused = headway("run", cwd=tmp_path)
    assert refused.returncode == 3
    assert "Some-model made this plan, and nobody has run it yet. Nothing was started." in refused.stderr
    assert (refused.stdout, refused.stderr.count("\n")) == ("", 1), "one line, and nothing of a run that never was"
    assert not (tmp_path / "a.txt").exists()
    document = json.loads(headway("run", "--json", cwd=tmp_path).stdout)
    assert (document["status"], document["decisions"]) == (
        "refused",
        [{"code": "planned", "artifacts": ["a"], "flags": ["--yes"]}],
    )
    assert "Before it starts, run asks: some-model made this plan" in headway("run", "-n", cwd=tmp_path).stdout
    assert headway("run", "--yes", cwd=tmp_path).returncode == 0
    (tmp_path / "a.txt").write_text("")
    (tmp_path / "a.txt").unlink()
    assert headway("run", "--force", cwd=tmp_path).returncode == 0, "it was agreed to"
    (tmp_path / "headway.yaml").write_text(PLANNED.replace("echo a", "echo b"))
    assert headway("run", cwd=tmp_path).returncode == 3, "a new plan is a new question"


def test_whoever_sits_there_is_asked(tmp_path: Path) -> None:
    """A terminal: no is no, yes is yes, and Enter is no."""
    (tmp_path / "headway.yaml").write_text(PLANNED)
    for answer, code, made in (("\n", 3, False), ("n\n", 3, False), ("y\n", 0, True)):
        assert (on_terminal("run", cwd=tmp_path, typed=answer)[0], (tmp_path / "a.txt").exists()) == (code, made)


def test_whoever_is_asked_may_leave(tmp_path: Path) -> None:
    """One Ctrl-C at the question ends it: nothing was started, so there is nothing to finish first."""
    import pty
    import signal

    (tmp_path / "headway.yaml").write_text(PLANNED)
    ours, theirs = pty.openpty()
    command = [str(Path(sys.executable).with_name("headway")), "run"]
    process = subprocess.Popen(
        command, cwd=tmp_path, stdin=theirs, stdout=theirs, stderr=theirs, start_new_session=True
    )
    os.close(theirs)
    seen = b""
    while b"[y/N]" not in seen:
        seen += os.read(ours, 4096)
    process.send_signal(signal.SIGINT)
    assert process.wait(60) == 130
    os.close(ours)
    assert not (tmp_path / "a.txt").exists()


def on_terminal(*words: str, cwd: Path, typed: str = "", **environ: str) -> tuple[int, str]:
    """The real command on a pty; its exit code, and what was to be seen."""
    import pty

    ours, theirs = pty.openpty()
    command = [str(Path(sys.executable).with_name("headway")), *words]
    known = {name: value for name, value in os.environ.items() if name not in ("NO_COLOR", "TERM")}
    env = {**known, "TERM": "xterm", **environ}
    process = subprocess.Popen(
        command, cwd=cwd, stdin=theirs, stdout=theirs, stderr=theirs, env=env, start_new_session=True
    )
    os.close(theirs)
    os.write(ours, typed.encode())
    seen = b""
    while True:
        try:
            data = os.read(ours, 4096)
        except OSError:
            break
        if not data:
            break
        seen += data
    os.close(ours)
    return process.wait(60), seen.decode()


EXPECTED = """\
Plan rest-api: Build a REST API with authentication

Wave 1 ⚡
  [small]   UserProtocol   command   never made  ~1.0 s
             Protocol defining User entity
  [small]   AuthInterface  command   never made  ~1.0 s
             Interface for authentication

Wave 2 →
  [medium]  UserModel      command   never made  ~1.0 s
             SQLAlchemy model implementing UserProtocol

Wave 3 →
  [medium]  AuthService    command   never made  ~1.0 s
             JWT-based authentication

Wave 4 →
  [medium]  App            command   never made  ~1.0 s
             Flask application factory

Estimates
  Artifacts  5 to make at most, 0 up to date
  Waves      4, 1.2x parallel
  Tiers      2 small, 3 medium
  Tokens     none: commands and functions use none
  Cost       $0
  Time       ~4.0 s with 2 at once; by default
  Savings    0% of a full rebuild (0 of 5 artifacts)

Next: headway run
"""


@pytest.mark.parametrize("columns", ["60", "200"])
def test_the_preview_on_a_terminal_is_the_same_with_and_without_colour(shop: Workshop, columns: str) -> None:
    """Whatever the width; colour only adds to it."""
    plain = on_terminal("run", "-n", "-j", "2", cwd=shop.root, COLUMNS=columns, NO_COLOR="1")
    assert plain == (0, EXPECTED.replace("\n", "\r\n"))
    coloured = on_terminal("run", "-n", "-j", "2", cwd=shop.root, COLUMNS=columns)[1]
    assert "\x1b[1mEstimates\x1b[0m" in coloured
    assert re.sub(r"\x1b\[[0-9;]*m", "", coloured) == plain[1]


def test_an_old_plan_of_a_model_is_warned_of_once(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    """By the first run after a day; the next one has nothing to add."""
    bench.plan("a")
    bench.settings(planned_by="some-model")
    heard: list[str] = []

    def run(days: float) -> None:
        later = datetime.now(UTC) + timedelta(days=days)
        monkeypatch.setattr(session_module, "clock", lambda: later)
        bench.session.run("plan", Options(yes=True, rerun_all=True), functions=bench.functions(), warn=heard.append)

    run(0.5)
    assert heard == []
    run(2)
    assert len(heard) == 1
    assert "some-model made this plan 48 h ago" in heard[0]


def test_a_plan_of_a_person_is_never_asked_about(tmp_path: Path) -> None:
    """Commands and functions never ask."""
    (tmp_path / "headway.yaml").write_text(PLANNED.replace("planned_by: some-model\n", "confirm_above: 0\n"))
    assert headway("run", cwd=tmp_path).returncode == 0


# RFC-040's names.


def test_rfc_040_names_a_preview(tmp_path: Path) -> None:
    """Its fields, over a graph that is not saved; correct where the RFC's own example is not."""
    needs = {
        "UserProtocol": (),
        "AuthInterface": (),
        "UserModel": ("UserProtocol",),
        "AuthService": ("AuthInterface",),
        "App": ("AuthService", "UserModel", "UserProtocol"),
    }
    graph = ArtifactGraph(ArtifactSpec(id=name, requires=requires) for name, requires in needs.items())
    executor = IncrementalExecutor(project=tmp_path)
    found = executor.preview(graph, "Build REST API")
    assert isinstance(found, PlanPreview)
    assert found.waves == [["UserProtocol", "AuthInterface"], ["UserModel", "AuthService"], ["App"]]
    assert found.model_distribution == {"small": 2, "medium": 2, "large": 1}
    assert found.parallelization_factor == 1.7
    assert (found.previous, found.changes) == (None, None)
    assert (found.estimated_tokens, found.estimated_cost_usd) == (0, 0.0)
    assert list(tmp_path.iterdir()) == [], "looking creates nothing"


def test_what_is_not_made_before_somebody_decides_takes_no_time(shop: Workshop, cli: Cli) -> None:
    """It is counted apart, and neither as work that goes on side by side nor as saved."""
    old = "".join(f"  o{n}: {{produces: o{n}.txt, run: 'echo {n} > {{output}}'}}\n" for n in range(20))
    shop.file.write_text(f"id: old\ngoal: g\njobs: 1\nartifacts:\n{old}  new: {{requires: [o0], run: 'true'}}\n")
    alone = cli("run", "-n", "o0", "--json").json["estimates"]["ms"]["typical"]
    for n in range(1, 20):
        (shop.root / f"o{n}.txt").write_text("old")
    found = cli("run", "-n", "--json").json
    assert [item["action"] for item in found["artifacts"].values()].count("ask") == 19
    assert found["estimates"]["ms"]["typical"] == 2 * alone
    assert found["estimates"]["parallelization_factor"] == 1.0
    assert found["savings"]["ms"] == 0
    shown = cli("run", "-n").out
    assert "  Artifacts  2 to make at most, 19 to decide about, 0 up to date\n" in shown
    assert "  Waves      2, 1.0x parallel\n" in shown
    assert "at once; by default\n" in shown


def test_waves_of_a_preview_are_numbered_as_they_are_made(shop: Workshop, cli: Cli) -> None:
    """Where all of a depth is kept, no number is left out."""
    shop.file.write_text(
        "id: deep\ngoal: g\nartifacts:\n  a: {run: 'echo a'}\n  b: {requires: [a], run: 'echo b'}\n"
        "  c: {requires: [b], run: 'echo c'}\n  beside: {run: 'echo beside'}\n"
    )
    cli("run")
    shop.edit("'echo c'", "'echo cc'")
    shop.edit("'echo beside'", "'echo aside'")
    found = cli("run", "-n", "--json").json
    assert {a: item["wave"] for a, item in found["artifacts"].items()} == {"beside": 1, "c": 2}
    assert re.findall(r"^Wave \d|^  Waves +\d", cli("run", "-n").out, re.MULTILINE) == [
        "Wave 1",
        "Wave 2",
        "  Waves      2",
    ]


def test_settings_of_a_preview_survive_a_round_trip(tmp_path: Path) -> None:
    """What a plan says of asking and storing is in the ledger."""
    shop = Workshop(tmp_path)
    shop.file.write_text("id: api\ngoal: g\nplanned_by: m\nconfirm_above: 2.5\nstore_up_to: 1MiB\n")
    expected = Settings(planned_by="m", confirm_above=2.5, store_up_to=1024**2)
    state = shop.save().execution.state
    assert state.settings == expected
    assert state.planned_at == state.created_at
    assert shop.load().state == state


def test_why_says_where_a_time_comes_from_that_is_not_its_own(
    shop: Workshop, capsys: pytest.CaptureFixture[str]
) -> None:
    """A guess is not told as if it were known; what was made here before needs no such word."""
    assert ", by default." in shop.run(capsys, "why", "App").out
    shop.run(capsys, "run", "UserProtocol")
    assert ", from similar ones here." in shop.run(capsys, "why", "App").out
    shop.file.write_text(REST.replace("echo user", "echo users"))
    assert "from" not in next(
        line for line in shop.run(capsys, "why", "UserProtocol").out.splitlines() if "takes" in line
    )


def test_of_long_values_what_differs_is_shown(shop: Workshop, cli: Cli) -> None:
    """Of a list what came and went, of a text where it begins to differ: cut to one length, both would look alike."""
    parts = [f"part/number-{number:02}" for number in range(24)]
    long = "echo " + "x" * 80

    def plan(requires: list[str], run: str) -> str:
        made = "".join(f"  {part}: {{run: 'true'}}\n" for part in parts)
        return f"id: api\ngoal: g\nartifacts:\n{made}  all: {{requires: {json.dumps(requires)}, run: '{run}'}}\n"

    shop.file.write_text(plan(parts, f"{long} one"))
    cli("run")
    shop.file.write_text(plan([*parts[:20], *parts[21:]], f"{long} two"))
    told = cli("run", "-n", "--diff-plan").out
    assert "requires: - part/number-20\n" in told
    assert "xxx one → …" in told
    assert "xxx two\n" in told
