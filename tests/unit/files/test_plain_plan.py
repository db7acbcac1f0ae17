"""Plain plan files: what is read all at once is what the careful reader would have read, or is left to it."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from headway import Plan
from headway.core.check import check_plan
from headway.core.plan import PlanSpec
from headway.files.json_tree import locate_json, read_json
from headway.files.plain_plan import read_plain
from headway.files.plan_lines import read_tree
from headway.files.planfile import parse_plan

TEXTS = st.sampled_from(["", "a", "b b", "./c//d", "o/e", "é", 'q"\\\n', "\x7f"])
LISTS = TEXTS | st.lists(TEXTS, max_size=3)
ODD = st.sampled_from([None, 1, 1.5, True, [1], {"x": "y"}, [["a"]]])
ARTIFACTS = st.dictionaries(
    TEXTS,
    st.fixed_dictionaries(
        {},
        optional={
            "description": TEXTS,
            "contract": TEXTS,
            "requires": LISTS,
            "sources": LISTS,
            "produces": LISTS,
            "run": TEXTS,
            "make": TEXTS,
        },
    ),
    max_size=4,
)
HEADS = st.fixed_dictionaries({}, optional={"goal": TEXTS, "id": TEXTS, "tags": LISTS, "vars": st.just({"x": 1})})


def read_with_care(text: str) -> PlanSpec | None:
    """The plan by the careful reader; None if that has anything to say about the file."""
    plan, problems = read_tree(read_json(text).root, lambda _: [])
    return None if problems else plan


@given(head=HEADS, artifacts=ARTIFACTS, indent=st.sampled_from([None, 1]))
def test_plain_files_are_read_to_the_last_byte_as_with_care(
    head: dict[str, Any], artifacts: dict[str, Any], indent: int | None
) -> None:
    """What is recorded of a plan does not depend on who read it."""
    text = json.dumps({**head, "artifacts": artifacts}, indent=indent, ensure_ascii=False)
    plain = read_plain(text.encode())
    assert plain is not None
    assert plain == read_with_care(text)
    assert msgspec.json.encode(plain) == msgspec.json.encode(read_with_care(text))


@given(artifacts=ARTIFACTS, name=TEXTS, key=TEXTS | st.sampled_from(["run", "requires", "produces_file"]), odd=ODD)
def test_whatever_is_odd_is_read_as_with_care_or_not_at_all(
    artifacts: dict[str, Any], name: str, key: str, odd: object
) -> None:
    """No value of a kind that is not expected slips through."""
    text = json.dumps({"goal": "g", "artifacts": {**artifacts, name: {key: odd}}})
    plain = read_plain(text.encode())
    assert plain is None or plain == read_with_care(text)


@pytest.mark.parametrize(
    "text",
    [
        '{"goal": "g", "artifacts": {"a": {"run": "x"}, "a": {"run": "y"}}}',
        '{"goal": "g", "artifacts": {"a": {"run": "x", "run": "y"}}}',
        '{"goal": "g", "goal": "g", "artifacts": {}}',
        '{"goal": "g", "artifacts": {}, "artifacts": {"a": {}}}',
        '{"goal": "g", "vars": {"x": 1e2, "x": 1e2}, "artifacts": {}}',
        '{"goal": "g", "artifacts": {"a": {"run": "\\u0041"}}}',
        '{"goal": "g", "artifacts": {"a": {"run": "a\\/b"}}}',
        '{"goal": "g", "artifacts": {"a": null}}',
        '{"goal": "g", "artifacts": {"a": {"run": null}}}',
        '{"goal": "g", "artifacts": {"a": {"version": "1"}}}',
        '{"goal": "g", "artifacts": []}',
        '{"goal": "g"}',
        '{"goal": 1, "artifacts": {}}',
        '{"goal": "g", "jobs": "x", "artifacts": {}}',
        '{"goal": "g", "vars": {"x": NaN}, "artifacts": {}}',
        '{"goal": "g", "artifacts": {}} x',
        "[]",
        "goal: g",
    ],
)
def test_what_is_not_plain_is_left_to_those_who_can_say_what_it_is(text: str) -> None:
    """Keys given twice, odd spellings, nulls, other keys and other syntax are not guessed at."""
    assert read_plain(text.encode()) is None


@pytest.mark.parametrize("odd", [b"\xff", b"\xc3(", b"\xed\xa0\x80", b"\0"])
@pytest.mark.parametrize(
    "text",
    [
        b'{"goal": "ODD", "artifacts": {}}',
        b'{"goal": "g", "vars": {"x": "ODD"}, "artifacts": {}}',
        b'{"goal": "g", "vars": {"ODD": 1}, "artifacts": {}}',
        b'{"goal": "g", "artifacts": {"ODD": {}}}',
        b'{"goal": "g", "artifacts": {"a": {"run": "ODD"}}}',
    ],
)
def test_what_is_no_text_is_not_plain(text: bytes, odd: bytes) -> None:
    """Wherever it stands: those who read with care say in which line."""
    data = text.replace(b"ODD", odd)
    assert read_plain(data) is None
    assert [problem.code for problem in parse_plan(data, name="headway.json").problems] == ["plan.syntax"]


def test_what_is_plain_can_be_located_when_it_has_problems() -> None:
    """The careful reader says where the problem is."""
    text = '{"goal": "g", "artifacts": {\n"a": {"requires": ["b"]}}}'
    assert read_plain(text.encode()) is not None
    _, problems = read_tree(locate_json(text), check_plan)
    assert [(p.code, p.line) for p in problems] == [("plan.missing", 2)]


def test_an_artifact_has_one_name_wherever_it_is_named() -> None:
    """It is looked up many times: the same text is found without comparing it. What is nobody's here stays as it is."""
    text = json.dumps({"goal": "g", "artifacts": {"first one": {}, "b": {"requires": ["p:x", "first one"]}}})
    plan = read_plain(text.encode())
    assert plan is not None
    first, second = plan.artifacts
    assert second.requires == ("first one", "p:x")
    assert second.requires[0] is first.id


def test_no_two_artifacts_share_what_can_be_changed() -> None:
    """Whoever changes what one of them says changes nobody else's, in this plan or another."""
    text = json.dumps({"goal": "g", "artifacts": {"a": {"run": "true"}, "b": {"make": "m:f"}}})
    read, built = read_plain(text.encode()), Plan("g", id="p")
    assert read is not None
    for name in "cd":
        built.add(name, make=str, produces=name)
    specs = [*read.artifacts, *built.spec.artifacts]
    held = [getattr(spec, field) for spec in specs for field in spec.__struct_fields__]
    changeable = [value for value in held if isinstance(value, (dict, list, set))]
    assert len({*map(id, changeable)}) == len(changeable) > len(specs)
