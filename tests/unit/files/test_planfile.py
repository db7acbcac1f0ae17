"""Plan files: what is read, what is said about what is wrong, and that no bytes are too strange."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Mapping
from typing import Any

import msgspec
import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from headway.core.plan import ArtifactSpec, PlanSpec, Profile, Retry, Settings
from headway.files import yaml_tree
from headway.files.plan_keys import (
    ARTIFACT_KEYS,
    PLAN_KEYS,
    PROFILE_KEYS,
    RETRY_KEYS,
    SETTINGS_KEYS,
    Table,
    plan_schema,
)
from headway.files.planfile import ParsedPlan, parse_plan

DESIGN = """\
id: rest-api                                                      # init writes one
goal: Build a REST API with authentication
vars: {style: dataclass}                                          # --set style=pydantic; {vars.style}
artifacts:
  UserProtocol:
    description: Protocol defining the User entity
    contract: "Protocol with fields: id, email, password_hash"
    produces: src/protocols/user.py                               # a path, a list, a folder/; none: the output is text
    run: "python tools/write.py --style {vars.style} --out {output}"
  UserModel:
    requires: [UserProtocol]
    sources: [schema/*.sql]                                       # files outside the plan that it reads
    produces: src/models/user.py
    make: tasks:user_model                                        # a Python function, with args: {…}
    verify: "python -m py_compile {output}"
    milestone: models
jobs: 4
profile: {parallelization_enabled: true, max_concurrent_tasks: 8}
retry: {attempts: 3, backoff: 0.5}
env: [API_BASE]
"""


MEND_CYCLE = "remove one of these requirements, or merge the artifacts"


def parse(text: str | bytes, name: str = "headway.yaml") -> ParsedPlan:
    """Parse text as a file of that name."""
    return parse_plan(text.encode() if isinstance(text, str) else text, name=name)


def said(text: str | bytes, name: str = "headway.yaml") -> list[str]:
    """Everything that is said about a text."""
    return [str(problem) for problem in parse(text, name).problems]


def read(text: str | bytes, name: str = "headway.yaml") -> PlanSpec:
    """The plan of a text that is in order."""
    plan, problems = parse(text, name)
    assert problems == []
    assert plan is not None
    return plan


def draft(text: str | bytes, name: str = "headway.yaml") -> PlanSpec:
    """The plan of a text that may have problems."""
    plan = parse(text, name).plan
    assert plan is not None
    return plan


@pytest.fixture(params=["CSafeLoader", "SafeLoader"])
def loader(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Both of PyYAML's parsers, one after the other."""
    monkeypatch.setattr(yaml_tree, "LOADER", getattr(yaml, request.param, yaml.SafeLoader))


@pytest.mark.usefixtures("loader")
def test_the_designs_example_is_read() -> None:
    """Every key lands where it belongs."""
    assert read(DESIGN) == PlanSpec(
        id="rest-api",
        goal="Build a REST API with authentication",
        settings=Settings(vars={"style": "dataclass"}, env=("API_BASE",), jobs=4, retry=Retry(attempts=3, backoff=0.5)),
        profile=Profile(parallelization_enabled=True, max_concurrent_tasks=8),
        artifacts=(
            ArtifactSpec(
                id="UserProtocol",
                description="Protocol defining the User entity",
                contract="Protocol with fields: id, email, password_hash",
                produces=("src/protocols/user.py",),
                run="python tools/write.py --style {vars.style} --out {output}",
            ),
            ArtifactSpec(
                id="UserModel",
                requires=("UserProtocol",),
                sources=("schema/*.sql",),
                produces=("src/models/user.py",),
                make="tasks:user_model",
                verify="python -m py_compile {output}",
                milestone="models",
            ),
        ),
    )


@pytest.mark.parametrize("indent", [None, 2, "\t"])
@pytest.mark.parametrize("name", ["plan.json", "headway.yaml"])
def test_json_says_the_same_as_yaml(indent: int | str | None, name: str) -> None:
    """By its name or by its first brace, however it is indented."""
    assert read(json.dumps(yaml.safe_load(DESIGN), indent=indent), name) == read(DESIGN)


def test_a_yaml_file_may_begin_with_a_brace() -> None:
    """What is not JSON is read as YAML, unless its name says JSON."""
    assert read("{goal: x, artifacts: {A: }}").artifacts == (ArtifactSpec(id="A"),)
    assert said("{goal: x}", "plan.json")[0].startswith("line 1: this is not JSON")


def test_artifacts_may_be_a_list_with_ids() -> None:
    """The same as a mapping, in the order of the list."""
    text = "goal: x\nartifacts:\n- {id: B, run: echo}\n- {id: A, requires: B}\n"

    assert read(text).artifacts == (ArtifactSpec(id="B", run="echo"), ArtifactSpec(id="A", requires=("B",)))


def test_an_artifact_with_nothing_is_an_artifact() -> None:
    """Neither it nor an empty key is a mistake."""
    assert read("goal: x\nartifacts:\n  A:\n  B:\n    requires:\n").artifacts == (
        ArtifactSpec(id="A"),
        ArtifactSpec(id="B"),
    )


@pytest.mark.parametrize(
    "key", ["produces", "requires", "sources", "modifies", "acceptance", "tags", "constraints", "files", "env"]
)
def test_a_single_text_stands_for_a_list(key: str) -> None:
    """Wherever a list of texts is expected."""
    (spec,) = draft(f"goal: x\nartifacts: {{A: {{{key}: one}}}}").artifacts

    assert getattr(spec, key) == ("one",)


def test_requirements_are_sorted_and_once_each() -> None:
    """Their order in the file means nothing."""
    assert read("goal: x\nartifacts: {C: {requires: [B, A, B]}, A: , B: }").artifacts[0].requires == ("A", "B")


def test_outputs_are_normalised_and_sources_are_not() -> None:
    """One spelling per output; everything else is used as it is."""
    (spec,) = read("goal: x\nartifacts: {A: {produces: [./a//b, d//], modifies: c/./d, sources: ./e}}").artifacts

    assert (spec.produces, spec.modifies, spec.sources) == (("a/b", "d/"), ("c/d",), ("./e",))


def test_rfc_040s_single_output_is_read() -> None:
    """`produces_file` is another name for `produces`; both at once is a mistake."""
    assert read("goal: x\nartifacts: {A: {produces_file: a.py}}").artifacts[0].produces == ("a.py",)
    assert said("goal: x\nartifacts:\n  A:\n    produces: a\n    produces_file: b\n") == [
        "line 5: artifact A: produces_file says produces a second time (keep one of the two)"
    ]


@pytest.mark.parametrize(("written", "version"), [("3", "3"), ("1.10", "1.10"), ('"a"', "a")])
def test_a_version_may_be_a_number_and_is_kept_as_written(written: str, version: str) -> None:
    """In YAML and in JSON: 1.10 is not 1.1."""
    assert read(f"goal: x\nartifacts: {{A: {{version: {written}}}}}").artifacts[0].version == version
    assert read(f'{{"goal": "x", "artifacts": {{"A": {{"version": {written}}}}}}}').artifacts[0].version == version


@pytest.mark.usefixtures("loader")
def test_anchors_and_merge_keys_work() -> None:
    """Own keys win over merged ones, earlier mappings over later ones."""
    text = """\
goal: x
artifacts:
  A: &a {run: echo, tags: [one]}
  B: &b {<<: *a, run: other, milestone: m}
  C: {<<: [*b, *a], description: &text again}
  D: {description: *text}
"""
    assert read(text).artifacts == (
        ArtifactSpec(id="A", run="echo", tags=("one",)),
        ArtifactSpec(id="B", run="other", tags=("one",), milestone="m"),
        ArtifactSpec(id="C", run="other", tags=("one",), milestone="m", description="again"),
        ArtifactSpec(id="D", description="again"),
    )


def test_variables_and_arguments_keep_their_values() -> None:
    """Any JSON value, at any depth, as plain dicts and lists."""
    text = "goal: x\nvars: {a: [1, 2.5, null, true, {b: c}]}\n"
    text += "artifacts: {A: {make: 'm:f', args: {n: 1}, metadata: {k: [v]}}}"

    plan = read(text)

    assert plan.settings.vars == {"a": [1, 2.5, None, True, {"b": "c"}]}
    assert type(plan.settings.vars["a"][4]) is dict
    assert (plan.artifacts[0].args, plan.artifacts[0].metadata) == ({"n": 1}, {"k": ["v"]})


@pytest.mark.usefixtures("loader")
def test_all_problems_are_reported_at_once_each_with_its_line() -> None:
    """Of the file and of the plan alike, in the order of the lines."""
    text = """\
goal: x
jbos: 3
jobs: 0
retry: {attempts: 0, backof: 1}
artifacts:
  User:
    produces:
      - a
      - ../y
    run: "echo {ouput}"
  UserModel:
    requires:
      - User
      - Usr
    requiers: [a]
    description: 5
  C: {requires: [D], produces: b}
  D: {requires: [C], produces: ./b}
  E: 5
  User:
    requires: 7
"""
    assert said(text) == [
        "line 2: the plan has the unknown key jbos (did you mean jobs?)",
        "line 3: jobs must be at least 1, not 0",
        "line 4: the plan has the unknown key retry.backof (did you mean backoff?)",
        "line 4: retry.attempts must be from 1 to 100, not 0",
        "line 9: artifact User produces '../y', which is outside the project",
        "line 10: artifact User: in run, {ouput} is not a placeholder (did you mean {output}?)",
        "line 14: artifact UserModel requires Usr, which is not in the plan (did you mean User?)",
        "line 15: artifact UserModel has the unknown key requiers (did you mean requires?)",
        "line 16: artifact UserModel: description must be text, not a number (write it in quotes)",
        f"line 18: artifacts require each other in a cycle: D → C → D ({MEND_CYCLE})",
        "line 18: artifacts C and D both produce b (one path has one producer; others may list it under modifies)",
        "line 19: artifact E must be a mapping of keys, not a number",
        "line 20: artifact User is given twice, on lines 6 and 20 (keep one of the two)",
    ]


def test_lines_are_the_same_in_json() -> None:
    """The faster way without lines is taken only while there is nothing to say."""
    text = (
        '{"goal": "x",\n "artifacts": {\n  "A": {\n   "requires": [\n    "A",\n    "B"],\n   "A": 1}},\n "goal": "y"}'
    )

    assert [(p.line, p.code) for p in parse(text).problems] == [
        (5, "plan.self"),
        (6, "plan.missing"),
        (7, "plan.key"),
        (8, "plan.duplicate"),
    ]


def test_a_draft_with_problems_is_still_a_plan() -> None:
    """What could be read is there; what could not be read is left out."""
    plan = draft("goal: x\njobs: many\nwat: 1\nartifacts: {A: {run: 5, tags: [a, 1], requires: [gone]}, B: text}")

    assert plan == PlanSpec(
        goal="x", artifacts=(ArtifactSpec(id="A", tags=("a",), requires=("gone",)), ArtifactSpec(id="B"))
    )


@pytest.mark.parametrize(
    ("text", "line", "first"),
    [
        ("goal: x\ngoal: y", 2, 1),
        ("goal: x\nartifacts:\n  A:\n  B:\n  A:", 5, 3),
        ("goal: x\nartifacts:\n  A:\n    run: a\n    run: b", 5, 4),
        ("goal: x\nartifacts:\n  A:\n    retry:\n      attempts: 1\n      attempts: 2", 6, 5),
        ("goal: x\nvars:\n  a:\n    b: 1\n    b: 2", 5, 4),
        ("goal: x\nartifacts:\n- id: A\n- id: B\n- id: A", 5, 3),
        ('{"goal": "x",\n"vars": {"a": 1,\n"a": 2}}', 3, 2),
    ],
)
def test_what_is_given_twice_is_reported_with_both_lines(text: str, line: int, first: int) -> None:
    """At every level of the file."""
    (problem,) = parse(text).problems

    assert (problem.code, problem.line) == ("plan.duplicate", line)
    assert problem.message.endswith(f"is given twice, on lines {first} and {line}")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("requires: 5", "artifact A: requires must be a list of ids, not a number"),
        ("requires: {a: b}", "artifact A: requires must be a list of ids, not a mapping"),
        ("requires: [1]", "artifact A: requires must be a list of ids, but item 1 is a number (write it in quotes)"),
        ("produces: [[a]]", "artifact A: produces must be a list of paths, but item 1 is a list"),
        ("run: true", "artifact A: run must be text, not true or false (write it in quotes)"),
        ("run: [a]", "artifact A: run must be text, not a list"),
        ("timeout: soon", "artifact A: timeout must be a number, not text"),
        ("timeout: .inf", "artifact A: timeout must be a finite number"),
        ("complexity: 1.5", "artifact A: complexity must be a whole number, not a number"),
        ("complexity: true", "artifact A: complexity must be a whole number, not true or false"),
        ("args: [a]", "artifact A: args must be a mapping, not a list"),
        ("retry: 3", "artifact A: retry must be a mapping of attempts, backoff, not a number"),
        ("retry: {attempts: x}", "artifact A: retry.attempts must be a whole number, not text"),
        ("on_edit: aks", "artifact A: on_edit must be ask or accept or discard, not 'aks' (did you mean ask?)"),
        ("effects: all", "artifact A: effects must be external, not 'all'"),
        ("description: 2026-01-01", "artifact A: description must be text, not a date (write it in quotes)"),
        ("id: A", "artifact A has the unknown key id (its id is the key that it stands under)"),
    ],
)
def test_a_value_of_the_wrong_kind_says_what_was_expected(text: str, message: str) -> None:
    """And what was found, once."""
    assert said(f"goal: x\nartifacts:\n  A:\n    {text}\n") == [f"line 4: {message}"]


def test_a_problem_of_a_pipeline_or_phase_is_said_of_it() -> None:
    """It is no artifact."""
    text = "goal: x\npipelines:\n  t:\n    unit: [a]\n    units: [a]\n    phases:\n      w: {rum: x, run: [y]}\n"
    assert said(text) == [
        "line 4: pipeline t has the unknown key unit (did you mean units?)",
        "line 7: pipeline t, phase w has the unknown key rum (did you mean run?)",
        "line 7: pipeline t, phase w: run must be text, not a list",
    ]


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ("2026-01-01", "vars.a must be a JSON value, not a date (write it in quotes)"),
        (".nan", "vars.a must be a finite number (write it in quotes)"),
        ("99999999999999999999", "vars.a is a number of more than 64 bits (write it in quotes)"),
        ("9" * 5000, "vars.a is a number of more than 64 bits (write it in quotes)"),
        ("!!python/name:os.system x", "vars.a must be a JSON value, not a value with the tag !!python/name:os.system"),
        ("!mine [1]", "vars.a must be a JSON value, not a value with the tag !mine"),
        ("!!int abc", "vars.a must be a JSON value, not a malformed !!int"),
        ("{1: b}", "the key vars.a.1 must be text (write it in quotes)"),
        ("{[1]: b}", "the key vars.a. must be text"),
        ("[1, .inf]", "vars.a must be a finite number"),
    ],
)
@pytest.mark.usefixtures("loader")
def test_values_that_json_cannot_hold_are_problems(value: str, message: str) -> None:
    """Dates, infinities, huge numbers, tags and keys that are not text."""
    (found,) = said(f"goal: x\nvars:\n  a: {value}\n")

    assert found.startswith(f"line 3: {message}")


@pytest.mark.parametrize(
    ("text", "line", "message"),
    [
        (b"", 1, "the file is empty"),
        (b" \n\n", 1, "the file is empty"),
        (b"# only a comment\n", 1, "the file is empty"),
        (b"goal: x\nid: \xff\xfe", 2, "the file is not UTF-8"),
        ("goal: x".encode("utf-16"), 1, "the file is not UTF-8"),
        (b"goal: x\n\0", 2, "the file holds a NUL byte"),
        (b"goal: x\nid: \x07", 2, "the file holds the control character '\\x07'"),
        (b"goal: x\nvars:\n\ta: 1\n", 3, "indent with blanks, not with tabs"),
        (b"- a\n- b\n", 1, "a plan file is a mapping, but this is a list"),
        (b"just text", 1, "a plan file is a mapping, but this is text"),
        (b"goal: x\nvars: 'never ends\n\n", 2, "this is not YAML"),
        (b"goal: x\nid: a: b\n", 2, "this is not YAML"),
        (b"goal: x\nvars: &a [*a]\n", 2, "stands inside its own anchor"),
        (b"goal: x\nvars: &a {b: {c: *a}}\n", 2, "stands inside its own anchor"),
        (b"goal: x\nvars: *nobody\n", 2, "nobody"),
        (b"goal: x\nvars: {<<: 5}\n", 2, "<< takes a mapping"),
        (b'goal: x\nid: "\\0"\n', 2, "a text holds a NUL character"),
        (b"goal: x\nvars: " + b"[" * 100_000, 2, "nested deeper than"),
        (b'{"goal":\n"\\ud800"}', 2, "half of a surrogate pair"),
        (b'{"goal": "x",\n"vars": {"a": ' + b"[" * 100_000, 2, "nested deeper than"),
        (b'{"goal": "x",\n"vars": {"a": ' + b"[" * 90 + b"]" * 90 + b"}}", 2, "nested deeper than"),
    ],
)
@pytest.mark.usefixtures("loader")
def test_what_is_no_plan_file_is_one_clear_problem(text: bytes, line: int, message: str) -> None:
    """With its line, and without a plan."""
    plan, problems = parse(text)

    assert plan is None
    assert [problem.line for problem in problems] == [line]
    assert message in str(problems[0])


@pytest.mark.usefixtures("loader")
def test_a_second_document_is_a_problem_and_the_first_is_the_plan() -> None:
    """One plan in one file."""
    plan, problems = parse("goal: x\n---\ngoal: y\n")

    assert plan == PlanSpec(goal="x")
    assert [str(problem) for problem in problems] == [
        "line 2: a second document starts here (keep one plan in one file)"
    ]


@pytest.mark.usefixtures("loader")
def test_an_alias_bomb_is_refused_before_it_expands() -> None:
    """Ten to the ninth values are counted, not made."""
    lines = ["goal: x", "vars:", "  a0: &a0 [1, 1, 1, 1, 1, 1, 1, 1, 1, 1]"]
    lines += [f"  a{i}: &a{i} [{', '.join([f'*a{i - 1}'] * 10)}]" for i in range(1, 10)]
    start = time.perf_counter()

    plan, problems = parse("\n".join(lines))

    assert plan is None
    assert "aliases expand to more than" in problems[0].message
    assert time.perf_counter() - start < 10


def test_a_byte_order_mark_and_windows_line_ends_are_accepted() -> None:
    """Editors write them without asking."""
    assert read(b"\xef\xbb\xbfgoal: x\r\nid: y\r\n") == PlanSpec(goal="x", id="y")
    assert read(b'\xef\xbb\xbf{"goal": "x"}', "plan.json") == PlanSpec(goal="x")


def test_escaped_pairs_of_surrogates_are_one_character() -> None:
    """As JSON writes what is beyond 16 bits."""
    assert read('{"goal": "\\ud83d\\ude00"}').goal == "😀"


@pytest.mark.parametrize("form", ["yaml", "json", "problems"])
def test_twenty_thousand_artifacts_are_no_trouble(form: str) -> None:
    """A generous bound that anything quadratic would miss."""
    key = "gone" if form == "problems" else "n"
    specs = {f"n{i}": {"requires": [f"{key}{i - 1}"], "produces": f"out/{i}"} for i in range(1, 20_000)}
    text = json.dumps({"goal": "x", "artifacts": {"n0": None, **specs}}, indent=0)
    text = text if form == "json" else "---\n" + text
    start = time.perf_counter()

    plan, problems = parse(text)

    assert plan is not None
    assert len(plan.artifacts) == 20_000
    assert len(problems) == (19_999 if form == "problems" else 0)
    assert time.perf_counter() - start < 60


def scraps() -> st.SearchStrategy[bytes]:
    """Bytes that look somewhat like a plan file."""
    pieces = st.sampled_from([
        "goal", "artifacts", "A", "run", "requires", "vars", "retry", "profile", "version", "<<", "id", ": ", ":", "- ",
        "\n", "\n  ", "\n    ", "{", "}", "[", "]", ", ", "&a ", "*a", "'", '"', "!!int ", "!x ", "? ", "|\n", "---\n",
        "#", "1", "1.5", "true", "null", "2026-01-01", ".inf", "0x", "1:2", "\\ud800", "\\u0000", "\t", "é", "\u2028",
        "{output}",
    ])  # fmt: skip
    return st.lists(pieces, max_size=40).map(lambda found: "".join(found).encode())


@given(st.one_of(st.binary(max_size=80), scraps()), st.sampled_from(["a.yaml", "a.json"]))
def test_no_bytes_raise_and_every_draft_can_be_stored(text: bytes, name: str) -> None:
    """Whatever is read can be written as JSON and read back; whatever is not read has a problem with a line."""
    plan, problems = parse(text, name)

    assert all(problem.line is not None for problem in problems)
    assert [p.line for p in problems] == sorted(p.line or 0 for p in problems)
    if plan is None:
        assert problems
    else:
        assert msgspec.json.decode(msgspec.json.encode(plan), type=PlanSpec) == plan


JSON_VALUES = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=5)),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3),
        st.dictionaries(
            st.one_of(st.sampled_from([*ARTIFACT_KEYS, *PLAN_KEYS, *RETRY_KEYS]), st.text(max_size=3)), inner
        ),
    ),
    max_leaves=12,
)


@given(st.dictionaries(st.sampled_from([*PLAN_KEYS, "other"]), JSON_VALUES))
def test_any_values_under_known_keys_give_a_draft_that_can_be_stored(root: dict[str, Any]) -> None:
    """The wrong kinds are problems; the rest is kept, and YAML and JSON agree on it."""
    text = json.dumps(root)

    plan, problems = parse(text, "plan.json")

    if plan is not None:
        assert msgspec.json.decode(msgspec.json.encode(plan), type=PlanSpec) == plan
    assert all(problem.line == 1 for problem in problems)


# The schema


def mismatches(schema: Mapping[str, Any], value: object, root: Mapping[str, Any], where: str = "$") -> Iterator[str]:
    """What a value breaks of those parts of JSON Schema that the plan's schema uses."""
    if "$ref" in schema:
        yield from mismatches(root["$defs"][schema["$ref"].rpartition("/")[2]], value, root, where)
        return
    if "anyOf" in schema and all(any(mismatches(option, value, root)) for option in schema["anyOf"]):
        yield f"{where} fits none of anyOf"
    names = {dict: "object", list: "array", str: "string", bool: "boolean", int: "integer", float: "number"}
    kind = names.get(type(value), "null")
    kinds = schema.get("type", kind)
    allowed = {kinds} if isinstance(kinds, str) else set(kinds)
    if kind not in allowed | ({"integer"} if "number" in allowed else set()):
        yield f"{where} is {kind}, not {kinds}"
    if "enum" in schema and value not in schema["enum"]:
        yield f"{where} is not in {schema['enum']}"
    if isinstance(value, int | float) and value < schema.get("minimum", value):
        yield f"{where} is below the minimum"
    for index, item in enumerate(value if isinstance(value, list) else []):
        yield from mismatches(schema.get("items", {}), item, root, f"{where}[{index}]")
    for name, item in value.items() if isinstance(value, dict) else ():
        inner = schema.get("properties", {}).get(name, schema.get("additionalProperties", {}))
        if inner is False:
            yield f"{where}.{name} is not known"
        else:
            yield from mismatches(inner, item, root, f"{where}.{name}")


def test_the_designs_example_fits_the_schema() -> None:
    """And what the parser refuses does not."""
    schema = plan_schema()
    example = yaml.safe_load(DESIGN)

    assert list(mismatches(schema, example, schema)) == []
    assert list(mismatches(schema, example | {"jbos": 1}, schema)) == ["$.jbos is not known"]
    assert list(mismatches(schema, example | {"jobs": 0}, schema)) == ["$.jobs is below the minimum"]
    assert list(mismatches(schema, example | {"artifacts": [{"id": "A", "run": "x"}]}, schema)) == []
    assert list(mismatches(schema, example | {"artifacts": {"A": {"rum": "x"}}}, schema)) == [
        "$.artifacts fits none of anyOf"
    ]


def objects(schema: object) -> Iterator[dict[str, Any]]:
    """Every object type of a schema that lists its properties."""
    if isinstance(schema, dict):
        if "properties" in schema:
            yield schema
        for inner in schema.values():
            yield from objects(inner)


def test_the_schema_describes_every_key_and_admits_no_other() -> None:
    """So that an editor can complete and complain."""
    found = list(objects(plan_schema()))

    assert len(found) == 20
    assert all(item["additionalProperties"] is False for item in found)
    assert all(key["description"].endswith(".") for item in found for key in item["properties"].values())


def test_schema_and_parser_know_the_same_keys() -> None:
    """The parser says "unknown key" exactly about what the schema does not list."""
    schema = plan_schema()
    artifact = schema["$defs"]["artifact"]["properties"]
    listed = schema["$defs"]["listed_artifact"]["properties"]
    words = sorted({"nonsense", "id", *schema["properties"], *listed, *PROFILE_KEYS, *RETRY_KEYS})
    nulls = ", ".join(f"{word}: null" for word in words)

    def refused(text: str) -> set[str]:
        return {p.key.rpartition(".")[2] for p in parse(text).problems if p.code == "plan.key"}

    assert set(words) - refused(f"{{{nulls}}}") == set(schema["properties"])
    assert set(words) - refused(f"{{goal: x, artifacts: {{A: {{{nulls}}}}}}}") == set(artifact)
    assert set(words) - refused(f"{{goal: x, artifacts: [{{{nulls.replace('id: null', 'id: A')}}}]}}") == set(listed)
    assert set(words) - refused(f"{{goal: x, retry: {{{nulls}}}}}") == set(artifact["retry"]["properties"])
    assert set(words) - refused(f"{{goal: x, profile: {{{nulls}}}}}") == set(
        schema["properties"]["profile"]["properties"]
    )


OF_UNITS = {
    "after", "file", "gathers", "item", "iteration", "optional", "outputs", "phase", "pipeline", "reads", "unit",
}  # fmt: skip
"""What only a pipeline says of its artifacts."""


@pytest.mark.parametrize(
    ("table", "struct", "elsewhere"),
    [
        (ARTIFACT_KEYS, ArtifactSpec, {"id", *OF_UNITS}),
        (SETTINGS_KEYS, Settings, set()),
        (RETRY_KEYS, Retry, set()),
        (PROFILE_KEYS, Profile, set()),
        (PLAN_KEYS, PlanSpec, {"settings"}),
    ],
)
def test_every_field_of_a_plan_has_a_key(table: Table, struct: type[msgspec.Struct], elsewhere: set[str]) -> None:
    """A field that is added to the plan must be added to the file, too."""
    fields = {field.name for field in msgspec.structs.fields(struct)}
    keys = {key.field or name for name, key in table.items()}

    assert fields - keys == elsewhere
    assert keys - fields <= SETTINGS_KEYS.keys()
