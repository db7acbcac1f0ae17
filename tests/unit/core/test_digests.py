"""Digests of what is asked for and how it is made: what was made by them before must be found by them later."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from msgspec.structs import replace

from headway.core.fingerprint import (
    plain_function_digests,
    precedent_key,
    precedent_keys,
    recipe_digest,
    reuse_key,
    spec_digest,
    spec_digests,
)
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


BARE = [ArtifactSpec(id=f"a{n}", requires=("b",) * n, produces=("out/a.txt",) * n, make="tasks:make") for n in range(4)]
GATHERING = ArtifactSpec(id="g", gathers="last", optional=("x",))
UMLAUT = ArtifactSpec(id="ü", produces=("ü.txt",), make="tasks:make")


@pytest.mark.parametrize(
    "specs",
    [[], BARE, [*BARE, PLAIN], [*BARE, GATHERING], [*BARE, UMLAUT], [PLAIN, FOREIGN]],
    ids=["none", "bare", "with one that says more", "with one that gathers", "with other letters", "with both"],
)
def test_many_have_the_digests_that_each_has(specs: list[ArtifactSpec]) -> None:
    """Whatever one of them has to say, and in whatever letters."""
    assert spec_digests(specs) == [spec_digest(spec) for spec in specs]
    codes = [f"c0de{number}" for number, _ in enumerate(specs)]
    bare = [ArtifactSpec(id=spec.id, make="tasks:make") for spec in specs]
    each = [recipe_digest(spec, Settings(), code=code, env={}) for spec, code in zip(bare, codes, strict=True)]
    assert plain_function_digests(codes, [spec.id for spec in specs]) == each


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
def test_keys_tell_apart_what_is_made_from_other_things(key: Callable[[Fingerprint], str | bytes]) -> None:
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


@pytest.mark.parametrize("name", ["x", "x\n", "x\udce4"], ids=["plain", "escaped", "no text"])
def test_the_keys_of_many_are_those_of_each(name: str) -> None:
    """Also where a name is no text, or has to be escaped."""
    fps = [Fingerprint(spec="s", inputs={"b": "1", "a": "2"}), Fingerprint(sources={name: "3"}), Fingerprint()]
    assert precedent_keys(fps) == [precedent_key(fp) for fp in fps]
    assert precedent_keys([]) == []


@pytest.mark.parametrize(("one", "other"), [(("ab", "c"), ("a", "bc")), (("é",), ("e\u0301",)), (("a", ""), ("a",))])
def test_no_two_lists_of_texts_share_a_digest(one: tuple[str, ...], other: tuple[str, ...]) -> None:
    """Each text counts with its length in bytes."""
    assert spec_digest(ArtifactSpec(id="a", produces=one)) != spec_digest(ArtifactSpec(id="a", produces=other))
