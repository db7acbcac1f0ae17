"""Units and phases by name: what `why` says of them, and what `accept` takes."""

from __future__ import annotations

from tests.behaviour.scenes import Book


def test_why_of_a_unit_tells_of_every_phase_and_explains_the_first_that_is_stale(book: Book) -> None:
    """What only stands for others has no line of its own."""
    book.go()
    told = book.do("why", "s1").out.splitlines()
    assert [line.split(maxsplit=2)[::2] for line in told] == [["✓", "up to date"]] * 8
    (book.root / "work/s1/card.json").unlink()
    book.prompt("write", "write anew {{ unit }}")
    told = book.do("why", "s1", "--json").json
    assert (told["artifact"], told["reason"]["code"]) == ("s1/plan", "output_missing")
    assert told["named"]["s1/write"]["code"] == "prompt_changed"
    assert "s1/lint" not in told["named"]


def test_why_leads_across_the_state_to_where_it_began(book: Book) -> None:
    """And what it takes counts the units before it."""
    book.go()
    book.prompt("write", "write anew {{ unit }}")
    book.prompt("continuity_pack", "pack anew {{ unit }}")
    told = book.do("why", "s2/apply", "--json").json
    assert {root["artifact"] for root in told["root_causes"]} >= {"s1/write", "s2/write"}
    assert "s1/apply" in told["cascade"]
    assert told["cost"]["artifacts"] == len(book.do("run", "-n", "book", "--json").json["stale"])


def test_a_unit_or_a_phase_of_its_loop_is_accepted_by_name(book: Book) -> None:
    """What stands for a loop means its last round; what is as it was made is not accepted once more."""
    book.go()
    assert "Nothing to accept" in book.do("accept", "s2").out
    report = book.root / "work/s1/report.json"
    report.write_text(report.read_text().replace('"pass"', '"pass", "by": "me"'))
    assert book.do("accept", "s1/lint", "--json").json["accepted"] == ["s1/lint~1"]
    assert book.do("accept", "s1/lint", "--json").json["accepted"] == []
    accepted = book.do("accept", "s2", "--reason", "it is fine", "--json").json["accepted"]
    assert "s2/preflight" in accepted, "it need not have left a snapshot"
    report.write_text(report.read_text().replace("me", "us"))
    assert "s1/lint~1" in book.do("accept", "s1", "--json").json["accepted"]
    assert book.go("s1")["decisions"] == []
