"""A plan written as a plan file is the same plan when it is read back."""

from __future__ import annotations

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from headway.core.plan import (
    ArtifactSpec,
    Gate,
    Limits,
    Phase,
    Pipeline,
    PlanSpec,
    Profile,
    Replanning,
    Retry,
    Role,
    Settings,
    Transitions,
    Units,
)
from headway.files.plan_keys import ARTIFACT_KEYS, PHASE_KEYS, PIPELINE_KEYS, SETTINGS_KEYS, UNITS_KEYS
from headway.files.plan_writer import write_plan
from headway.files.planfile import parse_plan

TEXT = st.text(st.characters(codec="utf-8", exclude_categories=("Cc", "Cs")), max_size=30) | st.sampled_from(
    ["yes", "1", "1.0", "null", "~", "a: b", "# no", "- x", "'", '"', "two\nlines\n", "2026-01-01", "{output}"]
)
VALUES = st.none() | st.booleans() | st.integers(-9, 9) | TEXT
SPECS = st.builds(
    ArtifactSpec,
    id=st.just("a"),
    description=TEXT,
    contract=TEXT,
    run=TEXT,
    version=TEXT,
    sources=st.lists(TEXT, max_size=2).map(tuple),
    acceptance=st.lists(TEXT, max_size=2).map(tuple),
    produces=st.sampled_from([(), ("out/x",), ("out/x", "out/y"), ("dist/",)]),
    metadata=st.dictionaries(TEXT, VALUES, max_size=2),
    retry=st.none() | st.just(Retry(attempts=3)),
    timeout=st.none() | st.just(2.5),
    complexity=st.none() | st.integers(1, 10),
)
PLANS = st.builds(
    PlanSpec,
    goal=TEXT.filter(str.strip),
    id=st.just("p"),
    settings=st.builds(
        Settings,
        vars=st.dictionaries(TEXT, VALUES, max_size=2),
        tags=st.lists(TEXT, max_size=2).map(tuple),
        store_up_to=st.none() | st.integers(0, 10**9),
        planned_by=TEXT,
    ),
    profile=st.none() | st.just(Profile(parallelization_enabled=True, max_concurrent_tasks=3)),
    artifacts=st.lists(SPECS, max_size=1).map(tuple),
)


@given(PLANS)
def test_what_is_written_is_read_back(plan: PlanSpec) -> None:
    """Every key, whatever its text looks like to YAML."""
    text = write_plan(plan, goal=plan.goal, plan_id=plan.id)
    assert parse_plan(text.encode(), name="headway.yaml").plan == plan


def test_a_function_that_only_a_program_has_is_left_out_and_said_so() -> None:
    """A plan file cannot call it."""
    spec = ArtifactSpec(id="a", make="live:f", args={"x": 1}, produces=("a.txt",))
    text = write_plan(PlanSpec(goal="g", artifacts=(spec,)), goal="g")
    assert text.startswith("# Made by functions of a program, so without a recipe here: a\n")
    read = parse_plan(text.encode(), name="headway.yaml").plan
    assert read is not None
    assert read.artifacts == (ArtifactSpec(id="a", produces=("a.txt",)),)


def test_so_is_one_of_a_phase() -> None:
    """It is named with its pipeline."""
    pipeline = Pipeline(name="scene", units=Units(names=("u",)), phases=(Phase(id="write", make="live:f"),))
    text = write_plan(PlanSpec(goal="g", settings=Settings(pipelines=(pipeline,))), goal="g")
    assert text.startswith("# Made by functions of a program, so without a recipe here: scene:write\n")
    read = parse_plan(text.encode(), name="headway.yaml").plan
    assert read is not None
    assert read.settings.pipelines[0].phases == (Phase(id="write"),)


def test_it_is_written_as_people_would() -> None:
    """One key a line, lists in one."""
    spec = ArtifactSpec(id="b", requires=("a", "c"), produces=("b.txt",), run="cat x > {output}")
    assert write_plan(PlanSpec(goal="g", artifacts=(spec,)), goal="g", plan_id="p").splitlines() == [
        "id: p",
        "goal: g",
        "artifacts:",
        "  b:",
        "    requires: [a, c]",
        "    produces: b.txt",
        "    run: cat x > {output}",
    ]


FULL = PlanSpec(
    goal="g",
    id="p",
    settings=Settings(
        vars={"x": 1},
        env=("HOME",),
        jobs=2,
        retry=Retry(attempts=2, backoff=0.5),
        timeout=9.0,
        on_edit="accept",
        complexity=3,
        tags=("t",),
        constraints=("c",),
        informed_by=("i",),
        approval="required",
        replan=Replanning(planner="m:f", most=3),
        planned_by="model",
        confirm_above=2.5,
        store_up_to=1024,
        prompt_changes="follow",
        agents={
            "writer": Role(
                when="w",
                instructions="i",
                tools=("status",),
                commands=("git diff",),
                next=Transitions(success="reviewer", failure="writer", limit="complete"),
                limits=Limits(iterations=2, time=1.5, tokens=100),
            ),
            "bare": Role(),
        },
        notify=("./tell.sh",),
        metadata={"k": 1},
        pipelines=(
            Pipeline(
                name="scene",
                units=Units(source="a", items="scenes[*].id", max=3),
                order="sequential",
                state="state.json",
                templates={"system": "s.md"},
                overrides={"*": {"*": {"system": "t.md"}}, "s1": {"lint": {"phase": "u.md"}}},
                phases=(
                    Phase(
                        id="write",
                        make="m:f",
                        args={"x": 1},
                        requires=("b",),
                        templates={"phase": "w.md"},
                        outputs={"prose": "out/{unit}.md", "patch": "out/{unit}.json"},
                        requires_outputs=("prose",),
                        pre_state=True,
                    ),
                    Phase(
                        id="lint",
                        run="true {inputs.write}",
                        inputs=("write",),
                        outputs={"report": "out/{unit}.lint"},
                        gates=(Gate(name="board", by=("ann",)),),
                        repeat=("lint",),
                        until='report == "pass"',
                        times=2,
                    ),
                ),
            ),
            Pipeline(name="names", units=Units(names=("u", "v")), phases=(Phase(id="only"),)),
            Pipeline(name="few", units=Units(names=("u",), max=2), phases=(Phase(id="sole", requires=("a",)),)),
            Pipeline(name="files", units=Units(files="docs/*.md"), phases=(Phase(id="read", run="true {file}"),)),
        ),
    ),
    profile=Profile(parallelization_enabled=True, max_concurrent_tasks=3, council_parallel=True),
    artifacts=(
        ArtifactSpec(
            id="a",
            description="d",
            contract="c",
            produces=("a.txt",),
            modifies=("m.txt",),
            sources=("s.txt", "t.txt"),
            run="cat s.txt > {output}",
            env=("LANG",),
            version="1.10",
            verify="true",
            instructions="i",
            acceptance=("ok",),
            milestone="m",
            agent="ann",
            retry=Retry(),
            timeout=1.5,
            effects="external",
            on_edit="discard",
            integrates={"call": ("b",), "import": ("os",)},
            domain_type="model",
            complexity=4,
            tags=("x", "y"),
            constraints=("z",),
            files=("f",),
            gates=(
                Gate(name="lint", kind="check", run="true"),
                Gate(name="review", by=("ann",)),
                Gate(name="board", kind="council", by=("ann", "bob", "eve"), quorum=2),
                Gate(name="odd", run="true"),
                Gate(name="word", kind="approval"),
            ),
            metadata={"k": [1, {"n": None}]},
            templates={"system": "s.md"},
        ),
        ArtifactSpec(id="b", requires=("a",), make="m:f", args={"x": 1}),
    ),
)


def test_every_key_of_a_plan_is_written_so_that_it_is_read_back() -> None:
    """A key that is new must be given a value above: all of them differ from their defaults."""
    specs = [msgspec.to_builtins(spec) for spec in FULL.artifacts]
    assert {key for spec in specs for key in spec} == {"id", *ARTIFACT_KEYS} - {"produces_file"}
    assert set(msgspec.to_builtins(FULL.settings)) == set(SETTINGS_KEYS)
    pipelines = [msgspec.to_builtins(pipeline) for pipeline in FULL.settings.pipelines]
    assert {key for pipeline in pipelines for key in pipeline} == {"name", *PIPELINE_KEYS}
    assert {key for pipeline in pipelines for key in pipeline["units"]} == set(UNITS_KEYS)
    own = PHASE_KEYS.keys() - ARTIFACT_KEYS.keys()
    assert {key for pipeline in pipelines for phase in pipeline["phases"] for key in phase} >= own
    text = write_plan(FULL, goal="g", plan_id="p")
    assert parse_plan(text.encode(), name="headway.yaml").plan == FULL
    assert "gates:\n      lint:" in text
