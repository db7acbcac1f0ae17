"""Placeholders: what is replaced, what stays, and what is nearly one."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headway.core.placeholders import Offer, Placeholder, faults, find, substitute

ALL = Offer(outputs=2, inputs=("X", "ch1/write"), variables={"style": 1})
NONE = Offer(outputs=0, inputs=(), variables=())


def shown(placeholder: Placeholder) -> str:
    """A stand-in for a value, so that tests see what was asked for."""
    return f"<{placeholder.name}:{placeholder.key}>"


@pytest.mark.parametrize(
    ("command", "result"),
    [
        ("cc -o {output}", "cc -o <output:>"),
        ("touch {outputs}", "touch <outputs:>"),
        ("{outputs.0} {outputs.1}", "<outputs:0> <outputs:1>"),
        ("cat {inputs.X}", "cat <inputs:X>"),
        ("cat {inputs[ch1/write]}", "cat <inputs:ch1/write>"),
        ("cat {inputs[my id]}", "cat <inputs:my id>"),
        ("cat {sources}", "cat <sources:>"),
        ("echo {id}{contract}", "echo <id:><contract:>"),
        ("--style {vars.style}", "--style <vars:style>"),
        ('{"path":{output}}', '{"path":<output:>}'),
    ],
)
def test_documented_placeholders_are_replaced(command: str, result: str) -> None:
    """Each is handed to the caller with its name and key, and its value put in its place."""
    assert substitute(command, shown) == result


@pytest.mark.parametrize(
    "command",
    [
        "awk '{print $1}'",
        "echo {a,b} {1..3} {} ${HOME} ${id} ${output}",
        "find . -exec ls {} +",
        "python -c \"print(f'{x} {i} {args.x} {name!r} {resources}')\"",
        "docker inspect --format '{{.Id}} {{output}} {{ id }}'",
        "curl -d '{\"id\": 1}'",
        "{ id; }",
        "jq '{id: .x}'",
        "echo {output:>3}",
        "no braces at all",
        "",
    ],
)
def test_every_other_brace_stays_as_written(command: str) -> None:
    """Braces of shells, templates and other languages are neither replaced nor complained about."""
    assert substitute(command, shown) == command
    assert faults(command, NONE) == []


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("{ouput}", "{output}"),
        ("{out}", "{output}"),
        ("{src}", "{sources}"),
        ("{outptu}", "{output}"),
        ("{Output}", "{output}"),
        ("{ output }", "{output}"),
        ("{output.0}", "{outputs.0}"),
        ("{outputs[0]}", "{outputs.0}"),
        ("{outputs.x}", "{outputs} or {outputs.0}"),
        ("{ouputs}", "{outputs}"),
        ("{input.X}", "{inputs.X}"),
        ("{input[X]}", "{inputs[X]}"),
        ("{inputs}", "{inputs.X} or {inputs[X]}"),
        ("{inputs.}", "{inputs.X} or {inputs[X]}"),
        ("{source}", "{sources}"),
        ("{ID}", "{id}"),
        ("{contrct}", "{contract}"),
        ("{var.x}", "{vars.x}"),
        ("{vars[x]}", "{vars.x}"),
        ("${vars.x}", "{vars.x}"),
        ("{inputs.X[1]}", "{inputs.X}"),
        ("{inputs[X].prose}", "{inputs[X]}"),
    ],
)
def test_a_near_miss_is_a_fault_that_says_what_was_meant(written: str, meant: str) -> None:
    """A slip of the finger is not passed on as a literal."""
    (fault,) = faults(f"echo {written}", ALL)

    assert fault.text in written
    assert meant in fault.hint
    assert find(f"echo {written}") == [] or written == "{outputs.x}"  # which names an output, where outputs have names


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("{unitt}", "{unit}"),
        ("{unti}", "{unit}"),
        ("{Unit}", "{unit}"),
        ("{flie}", "{file}"),
        ("{stat}", "{state}"),
        ("{promt}", "{prompt}"),
    ],
)
def test_what_only_a_phase_has_can_be_missed_there_alone(written: str, meant: str) -> None:
    """In the command of any other artifact it means nothing; nor do words that are merely similar."""
    phase = Offer(outputs=1, inputs=(), variables=(), own=("unit", "file", "state", "prompt"), phase=True)
    (fault,) = faults(f"echo {written} {{tile}} {{unix}} {{stage}} {{stats}} {{files}} {{units}} {{prompts}}", phase)
    assert (fault.text, fault.hint) == (written, f"did you mean {meant}?")
    assert faults(f"echo {written}", ALL) == []


def test_what_a_phase_has_not_cannot_be_missed_in_it() -> None:
    """Nobody means the state of a pipeline that has none."""
    phase = Offer(outputs=1, inputs=(), variables=(), own=("unit",), phase=True)
    assert [fault.text for fault in faults("echo {stat} {flie} {promt} {unti}", phase)] == ["{unti}"]


@pytest.mark.parametrize(
    ("name", "message", "hint"),
    [
        ("unit", "only phases of pipelines have a unit", "where these braces mean something else, write { unit }"),
        ("file", "only phases of pipelines have a file", "where these braces mean something else, write { file }"),
        ("state", "only phases of pipelines have a state", "where these braces mean something else, write { state }"),
        ("prompt", "there is no prompt here", "name templates"),
    ],
)
def test_what_only_phases_have_is_a_fault_elsewhere(name: str, message: str, hint: str) -> None:
    """It is not passed on as a literal; with blanks inside, as awk and Python take it as well, it is."""
    (fault,) = faults(f"echo '{{{name}}}'", ALL)
    assert (fault.text, fault.message, fault.hint) == (f"{{{name}}}", f"{{{name}}} is used, but {message}", hint)
    assert faults(f"echo '{{ {name} }}' ${{{name}}} {{{{{name}}}}} {{{name}s}} {{{name},x}}", ALL) == []


def test_whatever_has_templates_has_a_prompt() -> None:
    """It need not be a phase."""
    offer = Offer(outputs=0, inputs=(), variables=(), own=("prompt",))
    assert [fault.text for fault in faults("ask < {prompt} {unit}", offer)] == ["{unit}"]


@pytest.mark.parametrize(
    ("command", "message"),
    [
        ("{output}", "nothing is produced"),
        ("{outputs}", "nothing is produced"),
        ("{inputs.X}", "X is not required"),
        ("{inputs[ch1/write]}", "ch1/write is not required"),
        ("{vars.style}", "there is no variable style"),
    ],
)
def test_a_placeholder_without_a_value_is_a_fault(command: str, message: str) -> None:
    """The same command is in order where the artifact has what it asks for."""
    (fault,) = faults(command, NONE)

    assert message in fault.message
    assert faults(command, ALL) == []


@pytest.mark.parametrize(
    ("command", "message", "hint"),
    [
        ("{inputs.alfa}", "alfa is not required", "did you mean {inputs.alpha}?"),
        ("{inputs.alpha.1}", "{inputs.alpha} is the first output of alpha", "write the path of another one"),
        ("{inputs.other}", "other is not required", "add other to requires"),
        ("{inputs[out/b.json]}", "out/b.json is not required", "path of an output is written as it is: out/b.json"),
    ],
)
def test_an_input_that_is_none_says_what_to_write(command: str, message: str, hint: str) -> None:
    """Mistyped, a second output, or something that is really not required."""
    (fault,) = faults(command, Offer(0, ["alpha", "beta"], []))

    assert message in fault.message
    assert hint in fault.hint


def test_what_is_missed_twice_is_one_fault() -> None:
    """Whoever corrects it corrects both."""
    assert len(faults("cat {inputs.Y} {inputs.Z} {inputs.Y}", ALL)) == 2


def test_an_output_out_of_range_is_a_fault() -> None:
    """Outputs are counted from zero."""
    assert faults("{outputs.0} {outputs.1}", ALL) == []
    assert [fault.text for fault in faults("{outputs.2} {outputs.3}", ALL)] == ["{outputs.2}", "{outputs.3}"]


def test_a_command_shows_all_its_faults_in_order() -> None:
    """One look is enough to mend it."""
    found = faults("{ouput} {inputs.Y} {vars.q} {output}", ALL)

    assert [fault.text for fault in found] == ["{ouput}", "{inputs.Y}", "{vars.q}"]


@given(st.text(alphabet="{}$[]. aoutpinsvrdc0x", max_size=60))
def test_positions_are_those_of_the_text(command: str) -> None:
    """Replacing every placeholder by its own text gives the command again, whatever it is."""
    assert substitute(command, lambda placeholder: placeholder.text) == command
    assert all(command[p.start : p.end] == p.text for p in find(command))
    assert {p.text for p in find(command)}.isdisjoint(
        f.text for f in faults(command, Offer(10**6, (), ())) if "not a" in f.message
    )
