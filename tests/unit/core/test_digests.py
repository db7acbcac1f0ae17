"""Digests of what is asked for and how it is made: what was made by them before must be found by them later."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from msgspec.structs import replace

from headway.core.fingerprint import precedent_key, recipe_digest, reuse_key, spec_digest
from headway.core.plan import ArtifactSpec, Settings
from headway.core.state import Fingerprint

PLAIN = ArtifactSpec(
    id="a", description="d", requires=("b", "c"), produces=("out/a.txt",), make="tasks:make", args={"n": 1}
)
FOREIGN = ArtifactSpec(
    id="ä",
    description="Übersicht",
    requires=("b",),
    produces=("out/ä.txt", "x\udce4"),
    run="tr ä ö",
    phase="w",
    unit="日",
    outputs={"p": "é"},
    templates={"t": "ü.md"},
    reads=("ß",),
)


@pytest.mark.parametrize(
    ("spec", "asked", "made"),
    [
        (PLAIN, "861dda552e7068ba8b706d732feb3756", "063ae06754eca921d5be94bee3f4fe9a"),
        (FOREIGN, "1569c64d6a26e0b5049955d090df8e58", "787caae987d467e8165f780cb4d39a77"),
    ],
)
def test_specs_and_recipes_have_the_digests_that_ledgers_hold(spec: ArtifactSpec, asked: str, made: str) -> None:
    """A digest that came out differently would have everything made again, whatever its letters are."""
    assert spec_digest(spec) == asked
    assert recipe_digest(spec, Settings(vars={"v": "ü"}), code="c0de", env={"E": None}) == made


def test_what_is_made_from_the_same_things_has_the_key_that_it_always_had() -> None:
    """In whatever order they are named; templates count only where there are any."""
    few = Fingerprint(spec="s", recipe="r", inputs={"b": "1", "a": "2"})
    many = Fingerprint(
        spec="s",
        recipe="r",
        inputs={"a": "2", "b": "1"},
        sources={"ä": "3"},
        before={"x": "4"},
        templates={"ü": "5"},
    )
    assert reuse_key(few) == "c6efa1949eb1bd4d12a127fcc98dcfe1"
    assert reuse_key(many) == "5518f4df531f86c7e1ea02f9a4309a65"


@pytest.mark.parametrize("key", [reuse_key, precedent_key])
def test_keys_tell_apart_what_is_made_from_other_things(key: Callable[[Fingerprint], str]) -> None:
    """In whatever order they are named, and also where a name is no text."""
    made = Fingerprint(spec="s", recipe="r", inputs={"b": "1", "a": "2"}, sources={"x\udce4": "3"})
    assert key(made) == key(replace(made, inputs={"a": "2", "b": "1"}))
    for other in (
        replace(made, inputs={"b": "2", "a": "1"}),
        replace(made, sources={"x\udce5": "3"}),
        replace(made, sources={}, before=made.sources),
        replace(made, templates={"a": "2"}),
        replace(made, sources={}),
        replace(made, recipe="s", spec="r"),
    ):
        assert key(other) != key(made)


@pytest.mark.parametrize(("one", "other"), [(("ab", "c"), ("a", "bc")), (("é",), ("e\u0301",)), (("a", ""), ("a",))])
def test_no_two_lists_of_texts_share_a_digest(one: tuple[str, ...], other: tuple[str, ...]) -> None:
    """Each text counts with its length in bytes."""
    assert spec_digest(ArtifactSpec(id="a", produces=one)) != spec_digest(ArtifactSpec(id="a", produces=other))
