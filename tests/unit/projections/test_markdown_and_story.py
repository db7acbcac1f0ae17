"""What people read: plan.md, and events as sentences."""

from __future__ import annotations

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from headway.core import events as ev
from headway.core.plan import ArtifactSpec, PlanSpec, Profile
from headway.core.state import Claim, Completion, Export, Failure, Output, Position, Proposal, Skip, State
from headway.projections import markdown
from headway.projections.saved_execution import SavedExecution
from headway.projections.story import Story, count, moment, seconds, sentence

STATE = State(
    plan_id="p",
    project_id="q",
    goal="Build\n it",
    profile=Profile(),
    artifacts={
        "a": ArtifactSpec(id="a", description="first\nline"),
        "b": ArtifactSpec(id="b", requires=("a",), milestone="m"),
        "c": ArtifactSpec(id="c", requires=("b",), milestone="m", produces=("c.txt",)),
        "d": ArtifactSpec(id="d"),
        "e": ArtifactSpec(id="e"),
    },
    completed={"a": Completion(seq=1, at="")},
    failed={"b": Failure(seq=2, at="", error="broke\ntrace")},
    skipped={"d": Skip(seq=3, at="", reason="no")},
    claims={"e": Claim(seq=4, at="")},
)
EXECUTION = SavedExecution(STATE, Position(4, "f" * 32))


def test_every_status_has_its_mark() -> None:
    """Done, skipped, failed, in progress and blocked can be told apart, by milestone."""
    lines = markdown.render(EXECUTION).decode().splitlines()
    assert lines[2:] == [
        "# Build it",
        "",
        "Plan `p`, version 1: draft, 2 of 5 done.",
        "",
        "At most 1 at once.",
        "",
        "## Other",
        "",
        "- [x] **a**: first line",
        "- [-] **d** (skipped)",
        "- [~] **e** (in progress; claimed by somebody)",
        "",
        "## m",
        "",
        "- [!] **b** (failed; broke; needs a)",
        "- [ ] **c** (blocked; needs b; `c.txt`)",
    ]


def test_the_first_line_tells_position_and_digest() -> None:
    """Any change below it is noticed."""
    data = markdown.render(EXECUTION)
    assert markdown.position_of(data) == EXECUTION.position
    assert markdown.is_intact(data)
    assert not markdown.is_intact(data.replace(b"Build", b"build"))


@given(st.binary(max_size=200))
def test_any_bytes_can_be_asked(data: bytes) -> None:
    """Rubbish is no plan.md, and nothing else happens."""
    assert not markdown.is_intact(data)
    assert markdown.position_of(data) is None


OUT = (Output("x.txt", "d" * 64),)
EVENTS: list[tuple[ev.Event, str]] = [
    (
        ev.PlanCreated(
            format=1, plan_id="p", project_id="q", plan=PlanSpec(goal="g", artifacts=(ArtifactSpec(id="a"),))
        ),
        "plan created: 1 artifact for “g”",
    ),
    (ev.GoalChanged(goal="h " * 100), "goal changed to “" + ("h " * 100)[:99] + "…”"),
    (ev.ProposalTaken(proposal=Proposal(path="f.yaml", source="", blob="")), "took in f.yaml"),
    (ev.ArtifactAdded(artifacts=(ArtifactSpec(id="a"),), reason="why"), "added a (why)"),
    (ev.ArtifactRemoved(ids=("a", "b", "c", "d", "e", "f")), "removed a, b, c, d and 2 more"),
    (ev.ProfileSet(profile=Profile()), "profile set: 1 at once"),
    (ev.ProfileLocked(), "profile locked"),
    (ev.RunStarted(run="r", because={"new": ("a",)}, jobs=4), "run r started: 1 stale, 4 at once"),
    (ev.ArtifactStarted(starts=(ev.Start(id="a"),)), "started a"),
    (ev.ArtifactCompleted(id="a", ms=1500), "made a in 1.5 s"),
    (ev.ArtifactFailed(id="a", error="x\ny"), "failed a: x y"),
    (ev.ArtifactSkipped(ids=("a",), reason="no"), "skipped a (no)"),
    (ev.OutputAccepted(id="a", outputs=OUT), "accepted a"),
    (ev.EditPreserved(id="a", outputs=OUT), "kept what stood at x.txt"),
    (ev.MilestoneCompleted(milestone="m"), "milestone m completed"),
    (ev.RunPaused(run="r", reason="Ctrl-C"), "run r paused: Ctrl-C"),
    (ev.RunPaused(run="r", reason="refused", code="refused"), "run r paused: somebody has to decide"),
    (ev.RunCompleted(run="r"), "run r completed"),
    (ev.Snapshot(state=msgspec.Raw(b"{}"), digest=""), "snapshot"),
    (ev.PlanExported(export=Export(path="out", at="", seq=1, hash="")), "exported to out"),
    (ev.PlanReset(reason="again"), "plan reset (again)"),
    (ev.PlanClosed(), "plan closed"),
]


@pytest.mark.parametrize(("event", "expected"), EVENTS, ids=[event.type for event, _ in EVENTS])
def test_an_event_is_a_sentence(event: ev.Event, expected: str) -> None:
    """What happened fits on one line."""
    assert sentence(ev.Record(1, "", "", event, "", "")) == expected


def test_what_is_not_known_is_not_said() -> None:
    """No time where nobody took it, no reason that is none, no count of nothing."""
    events: list[ev.Event] = [
        ev.RunStarted(run="r", because={"new": ("a",)}, jobs=1),
        ev.RunPaused(run="r", reason="paused", code="paused"),
        ev.RunStarted(run="s", because={"new": ("a",)}, jobs=1),
        ev.RunCompleted(run="s"),
        ev.ArtifactCompleted(id="draft"),
    ]
    story = Story()
    assert [story.tell(ev.Record(n, "", "", event, "", "")) for n, event in enumerate(events)] == [
        "run r started: 1 stale, 1 at once",
        "run r paused",
        "run s goes on after run r was paused: 1 stale, 1 at once",
        "run s completed in 2 runs",
        "made draft",
    ]


def test_a_run_is_credited_with_its_own_work_and_with_how_it_ended() -> None:
    """Not with what somebody made by hand before it, nor with a failure that was mended."""
    events: list[ev.Event] = [
        ev.ArtifactStarted(starts=(ev.Start(id="a"),)),
        ev.ArtifactCompleted(id="a"),
        ev.RunStarted(run="r", because={"new": ("b", "c")}, jobs=1),
        ev.ArtifactStarted(starts=(ev.Start(id="b"),), run="r"),
        ev.ArtifactFailed(id="b", error="no", code="x"),
        ev.RunFailed(run="r", failed=("b",)),
        ev.RunStarted(run="s", because={"new": ("b", "c")}, jobs=1),
        ev.ArtifactStarted(starts=(ev.Start(id="b"),), run="s"),
        ev.ArtifactCompleted(id="b", how="reused"),
        ev.RunCompleted(run="s", kept=("c",)),
    ]
    story = Story()
    told = [story.tell(ev.Record(n, "", "", event, "", "")) for n, event in enumerate(events)]
    assert (told[5], told[9]) == ("run r failed: 1 failed", "run s completed: 1 reused, 1 kept in 2 runs")


def test_an_event_of_a_newer_headway_is_told_by_its_name() -> None:
    """What may be skipped is still shown."""
    unknown = ev.Unknown(name="plan_admired", data=msgspec.Raw(b"{}"))
    assert sentence(ev.Record(1, "", "", unknown, "", "")) == "plan admired"


@pytest.mark.parametrize(("ms", "expected"), [(0, "0 ms"), (999, "999 ms"), (1000, "1.0 s"), (61_000, "1 min 1 s")])
def test_durations_are_for_people(ms: int, expected: str) -> None:
    """Short ones in milliseconds, long ones in minutes."""
    assert seconds(ms) == expected


def test_one_is_not_plural() -> None:
    """A number goes with its noun."""
    assert [count(n, "plan") for n in (0, 1, 2)] == ["0 plans", "1 plan", "2 plans"]


@pytest.mark.parametrize(
    ("recorded", "told"),
    [
        ("2026-11-16T14:38:50.123456Z", "2026-11-16 14:38:50Z"),
        ("2026-11-16T14:38:50+00:00", "2026-11-16 14:38:50Z"),
        ("2026-11-16T14:38:50+02:00", "2026-11-16T14:38:50+02:00"),
        ("claimed by BRITZ", "claimed by BRITZ"),
        ("", ""),
    ],
)
def test_times_for_people_are_to_the_second_and_say_that_they_are_utc(recorded: str, told: str) -> None:
    """What is no such time stays as it is."""
    assert moment(recorded) == told
