"""What check_plan says about plans that are wrong, and that it says all of it."""

from __future__ import annotations

import time
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headway.core import check, paths
from headway.core.check import Problem, check_plan
from headway.core.nearest import Nearest
from headway.core.plan import ArtifactSpec, Phase, Pipeline, PlanSpec, Profile, Retry, Settings, Units


def plan(*artifacts: ArtifactSpec, **fields: Any) -> PlanSpec:
    """A plan with a goal."""
    return PlanSpec(**({"goal": "Build it", "artifacts": artifacts} | fields))


def spec(name: str, *requires: str, **fields: Any) -> ArtifactSpec:
    """An artifact that requires others."""
    return ArtifactSpec(id=name, requires=requires, **fields)


def said(*artifacts: ArtifactSpec, **fields: Any) -> list[str]:
    """What is said about a plan of these artifacts."""
    return [str(problem) for problem in check_plan(plan(*artifacts, **fields))]


def codes(*artifacts: ArtifactSpec, **fields: Any) -> list[str]:
    """The codes of the problems of a plan of these artifacts."""
    return [problem.code for problem in check_plan(plan(*artifacts, **fields))]


def test_a_plan_in_order_has_no_problems() -> None:
    """Recipes, outputs, requirements and settings that fit are not remarked upon."""
    user = spec("User", produces=("a.py",), run="make {output} {vars.style}", retry=Retry(attempts=3))
    model = spec("Model", "User", produces=("dist/",), make="tasks:user.model", args={"x": 1}, timeout=2.5)
    file = spec("File", "User", make="tools/make.py:main", modifies=("a.py",), env=("API_BASE",), complexity=10)

    assert (
        said(user, model, file, id="rest-api", settings=Settings(vars={"style": "x"}, jobs=1), profile=Profile()) == []
    )


def test_a_problem_reads_as_a_sentence_with_its_line_and_hint() -> None:
    """Line, message and hint make one line of text; machines get the parts."""
    problem = Problem(
        code="plan.missing",
        message="artifact UserModel requires Usr, which is not in the plan",
        artifact="UserModel",
        key="requires",
        hint="did you mean User?",
        line=12,
    )

    assert str(problem) == "line 12: artifact UserModel requires Usr, which is not in the plan (did you mean User?)"
    assert problem.to_dict() == {
        "code": "plan.missing",
        "message": "artifact UserModel requires Usr, which is not in the plan",
        "artifact": "UserModel",
        "key": "requires",
        "hint": "did you mean User?",
        "line": 12,
    }


def test_a_missing_requirement_names_the_nearest_id() -> None:
    """A slip in an id is answered with the id that was meant."""
    assert said(spec("User"), spec("Model", "Usr"), spec("Other", "USER"), spec("Far", "zzz")) == [
        "artifact Model requires Usr, which is not in the plan (did you mean User?)",
        "artifact Other requires USER, which is not in the plan (did you mean User?)",
        "artifact Far requires zzz, which is not in the plan",
    ]


SITE = Settings(
    pipelines=(
        Pipeline(name="post", units=Units(files="posts/*.md"), phases=(Phase(id="html", run="true"),)),
        Pipeline(name="photo", units=Units(files="photos/*.jpg"), phases=(Phase(id="small", run="true"),)),
    )
)


@pytest.mark.parametrize(
    ("required", "meant"),
    [
        ("posts:*/html", "post:*/html"),
        ("photos:*/html", "post:*/html"),
        ("zebras:*/small", "photo:*/small"),
        ("post:*/htlm", "post:*/html"),
        ("p*/html", "post:*/html"),
        ("small", "photo:*/small"),
    ],
)
def test_all_units_of_a_pipeline_that_there_is_not_are_a_missing_requirement(required: str, meant: str) -> None:
    """Although units are yet to come, none can be called so; the nearest phase of all units is named."""
    assert said(spec("index", required), settings=SITE) == [
        f"artifact index requires {required}, which is not in the plan (did you mean {meant}?)"
    ]


def test_units_yet_to_come_and_what_is_elsewhere_can_be_required() -> None:
    """Another plan's phase of all units is named with that plan, another project's with the way there."""
    required = ("post:*/html", "2024/a/html", "site:post:*/html", "site:a/html", "../api:site:model", "../api:a/html")
    assert said(spec("index", *required), settings=SITE) == []


def test_what_cannot_be_required_is_suggested_to_no_placeholder() -> None:
    """The requirement is told to be wrong; a placeholder that has it right is not told to be as wrong."""
    index = spec("index", "posts:*/html", run="cat {inputs[post:*/html]} {inputs[posts:*/html]}")
    wrong, placeholder = check_plan(plan(index, settings=SITE))
    assert (wrong.code, wrong.hint) == ("plan.missing", "did you mean post:*/html?")
    assert (placeholder.value, placeholder.hint) == ("{inputs[post:*/html]}", "add post:*/html to requires")


def test_an_id_given_twice_is_a_problem_once() -> None:
    """The repetition is reported, and not also everything that follows from it."""
    assert codes(spec("A", produces=("x",)), spec("A", produces=("x",))) == ["plan.duplicate"]


@pytest.mark.parametrize("name", ["", " a", "a\nb", "a//b", "../x", "x" * 201])
def test_a_bad_id_is_a_problem(name: str) -> None:
    """Ids that could not be shown or stored are refused."""
    assert "plan.id" in codes(spec(name))


def test_requiring_oneself_is_a_problem_of_its_own() -> None:
    """It is not also reported as a cycle, and it does not hide a cycle."""
    assert codes(spec("A", "A")) == ["plan.self"]
    assert codes(spec("A", "A", "B"), spec("B", "A")) == ["plan.self", "plan.cycle"]


def test_a_cycle_is_shown_as_a_path() -> None:
    """What is required stands before what requires it, and the first comes again at the end."""
    (message,) = said(spec("A", "C"), spec("B", "A"), spec("C", "B"), spec("D", "C"))

    assert message.startswith("artifacts require each other in a cycle: ")
    assert "A → B → C → A" in message or "B → C → A → B" in message or "C → A → B → C" in message


def test_who_produces_a_file_cannot_wait_for_who_modifies_it() -> None:
    """A modifier comes after the producer, whether it says so or not."""
    modifier, producer = spec("B", modifies=("f",)), spec("A", "B", produces=("f",))
    assert codes(modifier, producer) == ["plan.cycle"]
    assert codes(spec("B", "B", modifies=("f",)), producer) == ["plan.self", "plan.cycle"]
    assert codes(modifier, spec("A", produces=("f",))) == []


def test_a_long_cycle_is_shown_in_part() -> None:
    """A cycle through a thousand artifacts does not fill the screen."""
    ring = [spec(f"n{i}", f"n{(i + 1) % 1000}") for i in range(1000)]

    (message,) = said(*ring)

    assert "988 more" in message
    assert len(message) < 250


def test_two_artifacts_cannot_produce_one_path() -> None:
    """However the path is spelled."""
    assert said(spec("A", produces=("out/x",)), spec("B", produces=("./out//x",))) == [
        "artifacts A and B both produce out/x (one path has one producer; others may list it under modifies)"
    ]
    assert codes(spec("A", produces=("a",)), spec("B", produces=("a",))) == ["plan.producers"]


@pytest.mark.parametrize(
    ("first", "second"),
    [("dist/", "dist/x"), ("dist/x/y", "dist/"), ("dist/", "dist/sub/"), ("dist", "dist/"), ("dist", "dist/x")],
)
def test_outputs_of_two_artifacts_cannot_overlap(first: str, second: str) -> None:
    """A folder is everything in it, and a file has nothing in it."""
    (problem,) = check_plan(plan(spec("A", produces=(first,)), spec("B", produces=(second,))))

    assert problem.code == "plan.producers"
    assert "overlaps" in problem.message


def test_neighbouring_outputs_do_not_overlap() -> None:
    """A common beginning of two names is not a common folder."""
    assert said(spec("A", produces=("dist/", "a/b")), spec("B", produces=("dist2/x", "dist.txt", "a/c"))) == []


def test_one_artifact_names_a_path_once() -> None:
    """The same path twice is a slip; a file inside its own folder is not."""
    assert said(spec("A", produces=("x", "./x"))) == ["artifact A produces x twice (name it once)"]
    assert said(spec("A", produces=("dist/", "dist/x"))) == []
    assert codes(spec("A", produces=("dist", "dist/x"))) == ["plan.producers"]


def test_a_path_is_produced_or_modified_but_not_both_by_one_artifact() -> None:
    """Others may modify what one produces."""
    assert codes(spec("A", produces=("x",), modifies=("./x",))) == ["plan.output"]
    assert codes(spec("A", produces=("d/",), modifies=("d/x",))) == ["plan.output"]
    assert codes(spec("A", produces=("x",)), spec("B", "A", modifies=("x",)), spec("C", "A", modifies=("x",))) == []


def test_a_part_of_a_folder_that_another_produces_is_not_modified_by_itself() -> None:
    """The folder is one output: whoever changes something in it changes the folder."""
    assert said(spec("A", produces=("d/",)), spec("B", "A", modifies=("d/x",))) == [
        "artifact B modifies d/x, which is a part of d/ of artifact A (a folder is one output: modifies d/)"
    ]
    assert said(spec("A", produces=("d/",)), spec("B", "A", modifies=("d/",))) == []


@pytest.mark.parametrize("path", ["/etc/x", "../x", "~/x", "", ".", ".git/x", ".headway/x", "a\0b", "out/*.txt"])
def test_outputs_stay_inside_the_project(path: str) -> None:
    """Produced and modified paths alike."""
    assert "plan.path" in codes(spec("A", produces=(path,)))
    assert "plan.path" in codes(spec("A", modifies=(path,)))


@pytest.mark.parametrize(
    ("path", "why"),
    [
        ("", "is empty"),
        (".", "is the project itself"),
        ("a/..", "is the project itself"),
        ("/etc/x", "is absolute"),
        (".headway/plans/*", "is inside .headway/"),
    ],
)
def test_what_no_artifact_can_be_judged_by_is_no_source(path: str, why: str) -> None:
    """The project as a whole changes with every run; and nothing of it is at an absolute path."""
    (problem,) = said(spec("A", sources=(path,)))
    assert f"artifact A reads {path!r}, which {why}" in problem


def test_sources_may_lie_beside_the_project() -> None:
    """They are read, never written."""
    assert said(spec("A", sources=("../data/x.txt", "src", "**/*.py", "./a"))) == []


def test_a_recipe_is_a_command_or_a_function() -> None:
    """Not both, and arguments need a function."""
    assert codes(spec("A", run="x", make="m:f")) == ["plan.recipe"]
    assert codes(spec("A", run="x", args={"a": 1})) == ["plan.args"]
    assert codes(spec("A", args={"a": 1})) == ["plan.args"]


@pytest.mark.parametrize("make", ["m:f", "pkg.mod:f", "pkg.mod:Class.method", "tools/a.py:f", "a.py:f"])
def test_a_function_is_named_by_its_module_or_file(make: str) -> None:
    """Dotted modules, dotted names and paths to files of the project."""
    assert said(spec("A", make=make)) == []


@pytest.mark.parametrize("make", ["f", "m:", ":f", "m f:g", "m:f()", "a/b:f", "m..n:f", "../a.py:f", "m:f:g", "1m:f"])
def test_what_does_not_name_a_function_is_a_problem(make: str) -> None:
    """Anything else is refused with the two forms."""
    assert codes(spec("A", make=make)) == ["plan.make"]


def test_placeholders_are_checked_in_run_and_verify() -> None:
    """A near miss, a missing input, a missing variable and a missing output each say so, with the key."""
    problems = check_plan(plan(spec("A", run="{ouput} {inputs.X} {vars.q}", verify="test -f {output}")))

    assert [(p.key, p.value) for p in problems] == [
        ("run", "{ouput}"), ("run", "{inputs.X}"), ("run", "{vars.q}"), ("verify", "{output}"),
    ]  # fmt: skip
    assert {p.code for p in problems} == {"plan.placeholder"}


def pipeline(phase: Phase, **fields: Any) -> Settings:
    """The settings of a plan whose one pipeline has this phase."""
    fields = {"units": Units(names=("a", "b"))} | fields
    return Settings(pipelines=(Pipeline(name="p", phases=(phase,), **fields),))


def test_placeholders_are_checked_in_the_commands_and_paths_of_a_phase() -> None:
    """What a phase alone has, too; and a path that keeps its braces would be that of every unit."""
    phase = Phase(id="w", run="{unitt} {promt} {stat}", outputs={"o": "o/{unti}.txt"}, templates={"phase": "{x}.md"})
    assert said(settings=pipeline(phase)) == [
        "pipeline p, phase w: in the template {x}.md, {x} is not replaced (a path may have {unit}, {file} and {phase})",
        "pipeline p, phase w: in its output o, {unti} is not replaced (did you mean {unit}?)",
        "pipeline p, phase w: in run, {unitt} is not a placeholder (did you mean {unit}?)",
        "pipeline p, phase w: in run, {promt} is not a placeholder (did you mean {prompt}?)",
        "pipeline p, phase w: in run, {stat} is not a placeholder (did you mean {state}?)",
    ]


def test_one_problem_of_a_pipeline_hides_none_of_its_phases() -> None:
    """Nor is anything said twice: who mends an input that is no phase mends the placeholder that names it."""
    read = Phase(id="r", run="{inputs.nope} {inputs.w} {inputs.x} {ouput}", inputs=("w", "nope"))
    settings = Settings(
        pipelines=(
            Pipeline(
                name="p",
                units=Units(names=("a", "a")),
                state="/s",
                phases=(Phase(id="w", run="{unitt}", outputs={"s": "/s", "o": "/o"}), read),
            ),
        )
    )
    assert said(settings=settings) == [
        "pipeline p: its state '/s' is absolute; outputs are given relative to the project",
        "pipeline p: unit a is given twice",
        "pipeline p, phase r reads nope, which is no phase before it",
        "pipeline p, phase w modifies '/o', which is absolute; outputs are given relative to the project",
        "pipeline p, phase w: in run, {unitt} is not a placeholder (did you mean {unit}?)",
        "pipeline p, phase r: in run, {inputs.x} is used, but x is not required (add x to inputs)",
        "pipeline p, phase r: in run, {ouput} is not a placeholder (did you mean {output}?)",
    ]


@given(st.data())
def test_whatever_a_pipeline_says_it_is_looked_at_to_its_end(data: st.DataObject) -> None:
    """Phases that are there twice, loops that lead nowhere: each is a problem, and what else is wrong is found."""
    names = st.sampled_from(["a", "b", "c", "1 x"])
    few = st.lists(names, max_size=3).map(tuple)
    phase = st.builds(
        Phase,
        id=names,
        run=st.just("{unitt}"),
        inputs=st.none() | few,
        repeat=few,
        requires=few,
        pre_state=st.booleans(),
    )
    phases = tuple(data.draw(st.lists(phase, min_size=1, max_size=4)))
    settings = Settings(pipelines=(Pipeline(name="p", phases=phases, units=Units(names=("u",))),))
    found = [text for text in said(settings=settings) if "{unitt} is not a placeholder" in text]
    assert len(found) == len(phases)


def test_everyday_words_in_braces_are_no_placeholders_of_a_phase() -> None:
    """They belong to jq, to f-strings and the like, and there is no other way to write them."""
    phase = Phase(id="w", run="jq '{stage} {stats} {files} {units}' > {output}", outputs={"o": "{unit}.txt"})
    assert said(settings=pipeline(phase)) == []
    assert said(settings=pipeline(phase, state="state.json")) == []


def test_overrides_are_of_units_that_there_are() -> None:
    """Where the plan names them; units that come of files or an outline may be yet to come."""
    phase = Phase(id="w", run="true", outputs={"o": "{unit}.txt"})
    overrides = {"bb": {"w": {"phase": "x.md"}}, "*": {"w": {"phase": "y.md"}}}
    assert said(settings=pipeline(phase, overrides=overrides)) == ["pipeline p has no unit bb (did you mean b?)"]
    assert said(settings=pipeline(phase, overrides=overrides, units=Units(files="*.md"))) == []


def test_an_override_of_a_template_that_is_nearly_there_is_a_slip_and_any_other_is_one_more() -> None:
    """It would add a prompt without a word, beside the one that it was to replace."""
    phase = Phase(id="w", run="true", templates={"phase": "w.md"})
    settings = pipeline(phase, overrides={"*": {"*": {"phse": "x.md"}, "w": {"Phase": "x.md", "notes": "y.md"}}})
    wrong = ["phse", "Phase"]
    assert said(settings=settings) == [
        f"pipeline p has no template {role} to override (did you mean phase?)" for role in wrong
    ]


def test_templates_of_a_pipeline_that_no_phase_takes_are_a_slip() -> None:
    """Every prompt would be empty, without a word."""
    common = {"templates": {"system": "s.md"}}
    message = "pipeline p has templates, and none of its phases has any to go with them"
    assert said(settings=pipeline(Phase(id="w", run="true"), **common)) == [
        f"{message} (give a phase templates: {{phase: FILE}})"
    ]
    assert said(settings=pipeline(Phase(id="w", run="true", templates={"phase": "w.md"}), **common)) == []
    assert said(settings=pipeline(Phase(id="w", run="true"), overrides={"a": {"w": {"phase": "x.md"}}}, **common)) == []


def test_units_cannot_produce_one_path() -> None:
    """Unless they take turns: in their order, or where a state is handed on, whichever file it is.

    How many there are of files or of an outline is open, and a chain of such units may be meant.
    """
    phase = Phase(id="w", run="true", outputs={"o": "o.txt", "s": "state.json"})
    assert said(settings=pipeline(phase)) == [
        f"pipeline p, phase w: every unit produces {path} (put {{unit}} into it; if units change one file in turn, "
        "order: sequential says so)"
        for path in ("o.txt", "state.json")
    ]
    turns = ({"order": "sequential"}, {"state": "state.json"}, {"state": "other.json"})
    for fields in (*turns, {"units": Units(names=("a",))}, {"units": Units(files="*.md")}):
        assert said(settings=pipeline(phase, **fields)) == []


@pytest.mark.parametrize(
    ("fields", "key"),
    [
        ({"settings": Settings(jobs=0)}, "jobs"),
        ({"settings": Settings(timeout=0)}, "timeout"),
        ({"settings": Settings(timeout=float("inf"))}, "timeout"),
        ({"settings": Settings(complexity=11)}, "complexity"),
        ({"settings": Settings(retry=Retry(attempts=0))}, "retry.attempts"),
        ({"settings": Settings(retry=Retry(attempts=101))}, "retry.attempts"),
        ({"settings": Settings(retry=Retry(backoff=-0.1))}, "retry.backoff"),
        ({"settings": Settings(retry=Retry(backoff=float("nan")))}, "retry.backoff"),
        ({"profile": Profile(max_concurrent_tasks=0)}, "profile.max_concurrent_tasks"),
        ({"profile": Profile(max_concurrent_tasks=65)}, "profile.max_concurrent_tasks"),
        ({"artifacts": (spec("A", complexity=0),)}, "complexity"),
        ({"artifacts": (spec("A", timeout=-1),)}, "timeout"),
        ({"artifacts": (spec("A", retry=Retry(attempts=1000)),)}, "retry.attempts"),
    ],
)
def test_numbers_have_their_ranges(fields: dict[str, Any], key: str) -> None:
    """Of the plan and of its artifacts."""
    (problem,) = check_plan(plan(**fields))

    assert (problem.code, problem.key) == ("plan.range", key)


@pytest.mark.parametrize(
    "fields",
    [
        {"settings": Settings(retry=Retry(attempts=1, backoff=0)), "profile": Profile(max_concurrent_tasks=1)},
        {"settings": Settings(retry=Retry(attempts=100), complexity=1), "profile": Profile(max_concurrent_tasks=64)},
    ],
)
def test_the_ends_of_a_range_belong_to_it(fields: dict[str, Any]) -> None:
    """One attempt, a hundred attempts, 64 tasks: all allowed."""
    assert said(**fields) == []


def test_a_plan_needs_a_goal_and_a_sound_id() -> None:
    """Blanks are no goal; no id at all is fine."""
    assert codes(goal="  ") == ["plan.goal"]
    assert codes(id="../x") == ["plan.id"]
    assert codes(id="") == []


@pytest.mark.parametrize("name", ["A=B", "1A", "", "A B", "$A"])
def test_environment_variables_are_given_by_name(name: str) -> None:
    """In the plan and in an artifact."""
    assert codes(settings=Settings(env=(name,))) == ["plan.env"]
    assert codes(spec("A", env=(name,))) == ["plan.env"]


def test_all_problems_are_reported_at_once() -> None:
    """One wrong thing does not hide another."""
    found = codes(
        spec("A", "A", "Z", produces=("../x",), run="{ouput}", make="x", args={"a": 1}),
        spec("A"),
        spec("B", "C", produces=("y",)),
        spec("C", "B", produces=("y",), timeout=0),
        goal="",
        settings=Settings(jobs=0, env=("A=B",)),
    )

    assert sorted(found) == [
        "plan.cycle", "plan.duplicate", "plan.env", "plan.goal", "plan.make", "plan.missing", "plan.path",
        "plan.placeholder", "plan.producers", "plan.range", "plan.range", "plan.recipe", "plan.self",
    ]  # fmt: skip


@pytest.mark.parametrize("shape", ["chain", "missing", "nested"])
def test_a_hundred_thousand_artifacts_are_checked_in_one_go(shape: str) -> None:
    """No recursion, and nothing that grows with the square: a generous bound that a quadratic check would miss."""
    count = 100_000
    if shape == "chain":
        artifacts = [spec(f"n{i}", *([f"n{i - 1}"] if i else [])) for i in range(count)]
    elif shape == "missing":
        artifacts = [spec(f"n{i}", f"gone{i}") for i in range(count)]
    else:
        artifacts = [spec(f"n{i}", produces=(f"out/{i % 100}/{i}.txt",)) for i in range(count)]
    start = time.perf_counter()

    found = check_plan(plan(*artifacts))

    assert len(found) == (count if shape == "missing" else 0)
    assert time.perf_counter() - start < 60


def test_looking_for_near_words_stops_when_its_budget_is_spent() -> None:
    """Equal but for case is always found; other likenesses only while comparisons are left."""
    nearest = Nearest(["User", "Model"], comparisons=2)

    assert nearest.of("Usr") == "User"
    assert nearest.of("Modle") == ""
    assert nearest.of("MODEL") == "Model"
    assert nearest.of("Usr") == "User"


NAMES = st.sampled_from(["a", "b", "c", "a/b", " a", "", "other:x"])
PATHS = st.lists(st.sampled_from(["o/a", "o/a/b", "o", "x.txt", "./o/a", "dist/", "/x", "*.c", ""]), max_size=2)
SPECS = st.builds(
    lambda name, requires, produces, sources, modifies: spec(
        name, *sorted(requires), produces=tuple(produces), sources=tuple(sources), modifies=tuple(modifies)
    ),
    NAMES,
    st.sets(NAMES, max_size=2),
    PATHS,
    PATHS,
    st.just([]) | PATHS,
)


@given(artifacts=st.lists(SPECS, max_size=4))
def test_a_look_at_all_together_overlooks_nothing(artifacts: list[ArtifactSpec]) -> None:
    """What is found when all are looked at together first is what is found when they are looked at one by one."""
    found = check_plan(plan(*artifacts))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(paths, "are_plain", lambda *_, **__: False)
        patch.setattr(check, "is_in_order", lambda _: False)
        assert found == check_plan(plan(*artifacts))
