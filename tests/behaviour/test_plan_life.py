"""A plan that is worked off by a team and changed while it is: who, why, and what is next."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from headway.core.plan import ArtifactSpec
from headway.errors import HeadwayError
from headway.project import Project
from headway.work import Meant
from tests.behaviour.crew import Crew
from tests.workshop import Workshop

EXAMPLE = """\
id: p
goal: Implement user authentication with JWT
complexity: 5
tags: [auth, jwt, api]
constraints: [Use existing JWT library, Follow Express middleware pattern]
artifacts:
  analyze: {description: Analyze existing codebase structure and auth patterns, agent: planner}
  middleware:
    description: Implement authentication middleware
    agent: developer
    produces: src/auth/middleware.ts
    files: [src/auth/middleware.ts]
    acceptance: [Validates JWT tokens, Attaches user to request, Returns 401 on invalid token]
  login:
    description: Implement login endpoint
    agent: developer
    requires: [middleware]
    instructions: Create POST /auth/login endpoint that validates credentials and returns JWT
    acceptance: [Accepts email/password, Returns JWT on success]
  tests: {description: Write integration tests for auth flow, agent: tester, requires: [middleware, login]}
  review: {description: Review and validate implementation, agent: reviewer, requires: [tests]}
"""
STEPS = ["analyze", "middleware", "login", "tests", "review"]


@pytest.fixture
def crew(tmp_path: Path) -> Crew:
    """SPEC-0010's own example, before its first step."""
    made = Crew(tmp_path / "project", EXAMPLE)
    (made.root / "src/auth").mkdir(parents=True)
    return made


def test_the_example_of_the_specification_runs_to_its_end(crew: Crew) -> None:
    """Step by step, each by the agent that is suggested; who did it, when, and what came of it is on record."""
    assert crew.status() == "draft"
    done = []
    while crew.next().status == "ready":
        offer = crew.next().offers[0]
        crew.make(offer.spec.id, by=offer.spec.agent)
        done.append(offer.spec.id)
    assert (done, crew.next().status, crew.status()) == (STEPS, "done", "complete")
    assert {a: c.by for a, c in crew.state.completed.items()} == {
        "analyze": "planner",
        "middleware": "developer",
        "login": "developer",
        "tests": "tester",
        "review": "reviewer",
    }


def test_an_earlier_step_is_not_forgotten(crew: Crew) -> None:
    """What is next is looked for over all artifacts, not behind the one that was finished last."""
    crew.make("middleware", by="developer")
    assert crew.offered() == ["analyze", "login"]
    assert [offer.spec.id for offer in crew.next(agent="planner").offers] == ["analyze"]
    assert crew.next(agent="planner").waiting["login"] == "is for developer"


def test_done_blocked_and_waiting_are_told_apart(crew: Crew) -> None:
    """Blocked names what failed; waiting names who or what; a skipped step blocks nobody."""
    crew.life("planner").claim("p", "analyze")
    crew.life("developer").claim("p", "middleware")
    found = crew.next()
    assert (found.status, found.waiting["login"]) == ("waiting", "waits for middleware")
    assert found.waiting["analyze"].startswith("claimed by planner until ")
    crew.life("developer").fail("p", "middleware", token=None, error="no JWT library")
    crew.life("planner").complete("p", "analyze", token=None, text=b"found")
    found = crew.next()
    assert (found.status, found.failed) == ("blocked", {"middleware": "no JWT library"})
    assert found.blocked == {"login": "middleware", "tests": "middleware", "review": "middleware"}
    crew.life("planner").skip("p", ["middleware"], reason="there is one already")
    assert crew.offered() == ["login"]
    for artifact_id in ("login", "tests", "review"):
        crew.make(artifact_id)
    assert crew.next().status == "done"


def test_artifacts_are_added_edited_moved_and_removed_at_any_time(crew: Crew) -> None:
    """Each is an event with who and why, and a version of its own; the plan goes on."""
    crew.make("analyze")
    planning = crew.planning("ann")
    planning.add("p", ArtifactSpec(id="docs", requires=("login",), agent="writer"), after="login", reason="asked for")
    planning.edit("p", "review", {"requires": ("docs", "tests"), "complexity": 3}, reason="review them, too")
    planning.move("p", ["tests"], after="middleware", reason="tests first")
    planning.remove("p", ["analyze"], reason="done with it")
    assert list(crew.state.artifacts) == ["middleware", "tests", "login", "docs", "review"]
    assert crew.state.version == 5
    records = [
        r for r in Project(crew.root).log("p") if r.event.type.startswith("artifact_") and hasattr(r.event, "version")
    ]
    assert [(r.by, r.event.reason) for r in records] == [  # type: ignore[attr-defined]  # those events have one
        ("ann", "asked for"),
        ("ann", "review them, too"),
        ("ann", "tests first"),
        ("ann", "done with it"),
    ]
    for artifact_id in ("middleware", "login", "docs", "tests", "review"):
        crew.make(artifact_id)
    assert crew.status() == "complete"
    planning.add("p", ArtifactSpec(id="more"), reason="one more")
    assert crew.status() == "in_progress"


def test_unfinished_work_is_removed_only_if_that_is_said(crew: Crew) -> None:
    """Naming it is not enough."""
    before = crew.seq
    with pytest.raises(HeadwayError, match="review is not done yet") as refused:
        crew.planning().remove("p", ["review"], reason="no time")
    assert (refused.value.error_code, crew.seq) == ("plan.unfinished", before)
    crew.planning().remove("p", ["review"], unfinished=True, reason="no time")
    assert "review" not in crew.state.artifacts


def test_finished_work_is_taken_back_only_by_reset(crew: Crew) -> None:
    """By name, or all of it; what was reset is not taken over from before."""
    crew.make("analyze")
    crew.make("middleware")
    Project(crew.root).reset("p", ids=["middleware"], reason="wrong approach")
    assert (list(crew.state.completed), crew.status()) == (["analyze"], "in_progress")
    Project(crew.root).reset("p", reason="from the start")
    assert (crew.state.completed, crew.status()) == ({}, "draft")


def test_what_was_reset_by_name_is_made_anew_and_the_rest_is_still_reused(tmp_path: Path) -> None:
    """Reuse forgets only what was withdrawn."""
    run = "cat s.txt > {output}; echo {id} >> made.log"
    crew = Crew(tmp_path / "project")
    crew.write("s.txt", "1")
    crew.write("made.log", "")
    crew.propose(
        f'id: p\ngoal: g\nartifacts:\n  a: {{produces: a.txt, run: "{run}"}}\n  b: {{produces: b.txt, run: "{run}"}}\n'
    )
    crew.run()
    crew.write("s.txt", "2")
    crew.run()
    Project(crew.root).reset("p", ids=["a"], reason="again")
    crew.write("s.txt", "1")
    result = crew.run()
    assert (result.made, result.reused) == (["a"], ["b"])


BAD: list[tuple[Callable[[Crew], object], str]] = [
    (lambda c: c.planning().add("p", ArtifactSpec(id="login"), reason="r"), "plan.duplicate"),
    (lambda c: c.planning().add("p", ArtifactSpec(id="x", requires=("x",)), reason="r"), "plan.self"),
    (lambda c: c.planning().add("p", ArtifactSpec(id="x", requires=("nowhere",)), reason="r"), "plan.missing"),
    (lambda c: c.planning().add("p", ArtifactSpec(id="x"), after="nowhere", reason="r"), "artifact.unknown"),
    (lambda c: c.planning().add("p", ArtifactSpec(id="x"), reason=" "), "edit.reason"),
    (lambda c: c.planning().add("p", ArtifactSpec(id="x", instructions="x" * 10_000_000), reason="r"), "text.long"),
    (lambda c: c.planning().add("p", ArtifactSpec(id="x"), reason="x" * 10_000_000), "text.long"),
    (lambda c: c.planning().edit("p", "nowhere", {}, reason="r"), "artifact.unknown"),
    (lambda c: c.planning().edit("p", "middleware", {"requires": ("review",)}, reason="r"), "plan.cycle"),
    (
        lambda c: c.planning().edit("p", "login", {"produces": ("src/auth/middleware.ts",)}, reason="r"),
        "plan.producers",
    ),
    (lambda c: c.planning().move("p", ["login"], after="login", reason="r"), "plan.order"),
    (lambda c: c.planning().move("p", ["99"], reason="r"), "artifact.unknown"),
    (lambda c: c.planning().remove("p", ["middleware"], unfinished=True, reason="r"), "plan.missing"),
    (lambda c: Project(c.root).reset("p", ids=["99"]), "artifact.unknown"),
    (lambda c: c.life().next(Meant("nowhere")), "plan.none"),
]


@pytest.mark.parametrize(("call", "code"), BAD)
def test_a_change_that_does_not_hold_is_refused_and_changes_nothing(
    crew: Crew, call: Callable[[Crew], object], code: str
) -> None:
    """With its reason and the next command."""
    before = crew.seq
    with pytest.raises(HeadwayError) as refused:
        call(crew)
    assert (refused.value.error_code, bool(refused.value.hint), crew.seq) == (code, True, before)


def test_what_somebody_makes_is_not_changed_under_their_hands(crew: Crew) -> None:
    """They are named, and how long they hold it."""
    crew.life("developer").claim("p", "middleware")
    with pytest.raises(HeadwayError, match="being made now") as refused:
        crew.planning().edit("p", "middleware", {"description": "other"}, reason="r")
    assert refused.value.facts["by"] == "developer"


def test_the_life_of_a_plan_on_the_command_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Every verb, in words and in JSON, says what is next."""
    shop = Workshop(tmp_path)
    shop.file.write_text(EXAMPLE, encoding="utf-8")
    (tmp_path / "src/auth").mkdir(parents=True)
    assert shop.run(capsys, "plans", "new").code == 0
    found = shop.run(capsys, "next", "--agent", "planner", "--json").json
    assert (found["status"], found["next"][0]["artifact"], found["progress"]["total"]) == ("ready", "analyze", 5)
    claimed = shop.run(capsys, "claim", "--by", "planner", "--lease", "30m", "--json").json
    assert claimed["artifact"] == "analyze"
    assert shop.run(capsys, "heartbeat", "analyze", "--by", "planner").code == 0
    assert shop.run(capsys, "sweep").out == "Every claim is held by somebody.\n"
    done = shop.run(capsys, "complete", "analyze", "--by", "planner", "--text", "Found utilities", "--json").json
    assert (done["status"], done["missing"]) == ("complete", [])
    words = ("plans", "edit", "add", "docs", "requires=[login]", "agent=writer", "--after", "login", "--reason", "r")
    assert shop.run(capsys, *words).out == "Plan p is version 2 now. Next: headway run\n"
    assert shop.run(capsys, "plans", "edit", "set", "docs", "agnt=ann", "--reason", "r").code == 2
    assert shop.run(capsys, "plans", "edit", "set", "docs", "agent=", "complexity=11", "--reason", "r").code == 2
    assert shop.run(capsys, "plans", "edit", "set", "docs", "gates={review: {by: [ann]}}", "--reason", "r").code == 0
    assert shop.run(capsys, "plans", "edit", "remove", "docs", "--reason", "r").code == 3
    assert shop.run(capsys, "plans", "edit", "remove", "docs", "--unfinished", "--reason", "r").code == 0
    assert shop.run(capsys, "reset", "analyze", "--reason", "again").code == 0
    assert shop.run(capsys, "reset").code == 2
    assert "(for planner)  never made" in shop.run(capsys, "next").out
    assert shop.run(capsys, "plans", "close", "--reason", "enough").code == 0
    assert shop.run(capsys, "claim", "analyze").code == 3


DRAFT = """\
id: p
goal: Write
artifacts:
  a: {produces: a.txt, run: 'echo a > {output}', timeout: soon}
  b: {produces: b.txt, run: 'echo b > {output}', gates: {ok: {kind: nonsense}}}
"""


def draft(tmp_path: Path) -> Crew:
    crew = Crew(tmp_path / "project")
    crew.write("p.yaml", DRAFT)
    crew.work.project.save_plan(str(crew.root / "p.yaml"))
    return crew


def test_a_draft_says_everywhere_that_its_file_is_to_be_corrected(tmp_path: Path) -> None:
    """What could not be kept may have been a gate: nothing is made, claimed or offered past it."""
    crew = draft(tmp_path)
    waiting = crew.next().waiting
    assert (list(waiting), crew.offered()) == (["a", "b"], [])
    assert waiting["a"] == "p.yaml to be corrected: headway plans new p.yaml"
    assert crew.work.status(crew.work.meant(None, "p"))["next"] == "headway plans new p.yaml"
    for refused in (crew.run, lambda: crew.life().claim("p", "a")):
        with pytest.raises(HeadwayError, match="is a draft"):
            refused()
    shown = [problem.message for problem in crew.work.project.problems(crew.work.project.show("p"))]
    assert (len(shown), "timeout must be a number" in shown[0]) == (2, True)


def test_a_draft_is_mended_by_saying_anew_what_could_not_be_kept(tmp_path: Path) -> None:
    """Key by key: other edits mend nothing, and what goes takes its problems along."""
    crew = draft(tmp_path)
    crew.planning().edit("p", "a", {"description": "A"}, reason="r")
    crew.planning().edit("p", "a", {"timeout": 5.0}, reason="r")
    with pytest.raises(HeadwayError, match="is a draft"):
        crew.run()
    crew.planning().remove("p", ["b"], unfinished=True, reason="r")
    assert crew.run().made == ["a"]


def test_a_draft_is_a_draft_wherever_it_is_imported(tmp_path: Path) -> None:
    """Its file stayed behind, its problems did not; and correcting it is possible there, too."""
    crew = draft(tmp_path)
    crew.work.project.export_plan("p", str(tmp_path / "out"))
    other = Crew(tmp_path / "other")
    saved = other.work.project.import_plan(str(tmp_path / "out"))
    assert len(saved.problems) == 2
    with pytest.raises(HeadwayError, match="is a draft"):
        other.run()
    text = DRAFT.replace("soon", "5").replace(", gates: {ok: {kind: nonsense}}", "")
    other.write("p.yaml", text)
    other.work.project.save_plan(str(other.root / "p.yaml"))
    assert sorted(other.run().made) == ["a", "b"]


def test_a_circle_through_other_plans_is_refused_when_a_plan_is_edited(tmp_path: Path) -> None:
    """By an edit as by a new version, and nothing is recorded."""
    crew = Crew(
        tmp_path / "project", "{id: p, goal: P, artifacts: {a: {run: 'true'}, b: {requires: [a], run: 'true'}}}"
    )
    crew.write("q.yaml", "{id: q, goal: Q, artifacts: {x: {requires: ['p:b'], run: 'true'}}}")
    crew.work.project.save_plan(str(crew.root / "q.yaml"))
    before = crew.seq
    with pytest.raises(HeadwayError, match=r"in a cycle: .*q:x") as refused:
        crew.planning().edit("p", "a", {"requires": ("q:x",)}, reason="r")
    assert (refused.value.error_code, crew.seq) == ("plan.cycle", before)
    with pytest.raises(HeadwayError, match="in a cycle"):
        crew.planning().replan(
            "p",
            {"add": [{"id": "c", "requires": ["q:x"]}], "update": [{"id": "a", "requires": ["c"], "run": "true"}]},
            reason="r",
        )
    with pytest.raises(HeadwayError, match="names this plan itself"):
        crew.planning().edit("p", "b", {"requires": ("p:a",)}, reason="r")
    assert crew.seq == before
    crew.planning().edit("q", "x", {"requires": ()}, reason="r")
    crew.planning().edit("p", "a", {"requires": ("q:x",)}, reason="r")
